"""Labels as scikit-learn users have them: any classes, some rows without one, and some held out for validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

UNLABELLED = -1


def read_labels(y: Any, n_rows: int, known_classes: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """(classes, codes): the classes in order, and for each row the number of its class, or −1 where it has none.

    A row has no label where y is −1 (numbers), None or NaN. Where −1 and 1 are all there is, they are two classes;
    where the classes are known already, −1 is one if it is among them.
    """
    if y is None:
        raise ValueError("FisherClassifier requires y to be passed, but the target y is None; pass a label per row.")
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y must have one label for each of the {n_rows} rows of X, got {len(y)}; pass as many.")
    labelled = ~_missing(y)
    known = y[labelled]
    texts = {isinstance(value, str) for value in known} if known.dtype == object else set()
    if len(texts) == 2:
        raise ValueError(
            "Unknown label type: y must hold classes that are all numbers or all strings, got both; "
            "convert the numbers to strings."
        )
    if texts == {False}:
        known = np.array(known.tolist())  # numbers with None among them
    if len(known) and (kind := type_of_target(known)) not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}; y must hold classes, whole numbers or strings, got {known.tolist()[0]!r} and "
            "others; bin numbers into classes."
        )
    two = set(np.unique(known).tolist()) == {-1, 1} if known_classes is None else UNLABELLED in list(known_classes)
    if known.dtype.kind in "iuf" and not two:
        marked = known == UNLABELLED
        labelled[np.flatnonzero(labelled)[marked]] = False
        known = known[~marked]
    if not len(known):
        raise ValueError(
            "y must hold the class of at least one row, got none (-1, None and NaN mark rows without a label); "
            "label the rows to train on."
        )
    classes, numbers = np.unique(known, return_inverse=True)
    codes = np.full(n_rows, UNLABELLED, dtype=np.int64)
    codes[labelled] = numbers
    return classes, codes


def _missing(y: np.ndarray) -> np.ndarray:
    """Where y is None or NaN."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype != object:
        return np.zeros(len(y), dtype=bool)
    return np.array([value is None or type(value).__name__ == "NAType" or value != value for value in y], dtype=bool)


def hold_out(codes: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """The rows that are held out: of every class the given share of its labelled rows, rounded down."""
    rng = np.random.default_rng(seed)
    chosen = [np.zeros(0, dtype=np.int64)]
    for label in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == label)
        chosen.append(rng.permutation(rows)[: int(fraction * len(rows))])
    return np.sort(np.concatenate(chosen))


def given_rows(val: Any, n_rows: int) -> np.ndarray:
    """Row numbers, of a mask or of numbers."""
    val = np.asarray(val)
    val = val if val.size else np.zeros(0, dtype=np.int64)  # nobody is held out
    mask = val.dtype == bool
    if val.ndim != 1 or val.dtype.kind not in "biu" or (mask and len(val) != n_rows):
        raise ValueError(
            f"val must be a mask with an entry for each of the {n_rows} rows, or row numbers, got {val.dtype} of shape "
            f"{val.shape}; pass one of these."
        )
    rows = np.flatnonzero(val) if mask else np.unique(val)
    if len(rows) and not 0 <= rows[0] <= rows[-1] < n_rows:
        raise ValueError(f"val must hold rows 0 to {n_rows - 1}, got {rows[0]} to {rows[-1]}; leave others out.")
    return rows


def check_split(classes: np.ndarray, codes: np.ndarray, val: np.ndarray) -> np.ndarray:
    """The rows to train on: labelled and not held out, some of every class."""
    bare = val[codes[val] == UNLABELLED]
    if len(bare):
        raise ValueError(
            f"val must hold rows with a label, got row {bare[0]} without (the first of {len(bare)}); leave these out."
        )
    train = np.setdiff1d(np.flatnonzero(codes != UNLABELLED), val)
    absent = np.setdiff1d(codes[val], codes[train])
    if len(absent):
        label, count = classes[absent[:1]].tolist()[0], int((codes == absent[0]).sum())
        raise ValueError(
            f"class {label!r} must have a row to train on, got {count} labelled rows of it, all in val; "
            "take one out of val, or remove its labels."
        )
    return train
