"""Labels of scikit-learn users: any classes, and some rows without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from fishergraph._arrays import unmasked
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import UNLABELLED
from fishergraph._warn import warn

_LABELS = (str, int, float, np.bool_, np.integer, np.floating)


def read_labels(y: object, n_rows: int, fitted_classes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The classes in order, and for each row the number of its class, or −1 without one.

    A row has no label if y is −1 (a number, or a text among texts of integers), None, NaN or an empty text. If −1 and 1
    are the only values, they are two classes; if the classes are known already, −1 is one if it is among them.
    """
    if y is None:
        text = "FisherClassifier requires y to be passed, but the target y is None; pass a label per row."
        raise InputError(text, parameter="y")
    if isinstance(y, Mapping):
        advice = "pass pd.Series(y).reindex(ids) with the ids of the rows"
        raise InputTypeError(parameter="y", expected="be one label per row", got="a dict", advice=advice)
    y = _column(y, "y")
    if len(y) != n_rows:
        expected = f"have one label for each of the {n_rows} rows of X"
        raise InputError(parameter="y", expected=expected, got=str(len(y)), advice="pass as many")
    labelled = ~missing_values(y)
    labels = y[labelled]
    texts = {isinstance(value, str) for value in labels} if labels.dtype == object else set()
    if len(texts) == 2:
        raise InputError(
            "Unknown label type: y must hold classes that are all numbers or all strings, got both; "
            "convert the numbers to strings."
        )
    if labels.dtype.kind not in "biufOUT" or not all(isinstance(value, _LABELS) for value in labels.tolist()):
        raise InputError(f"Unknown label type: y must hold integers or strings, got {labels.dtype}.", parameter="y")
    if texts == {False}:
        labels = np.array(labels.tolist())  # numbers with None among them
    if len(labels) and (kind := type_of_target(labels)) not in ("binary", "multiclass"):
        raise InputError(
            f"Unknown label type: {kind}; y must hold classes, integers or strings, got {labels.tolist()[0]!r} and "
            "others; bin numbers into classes."
        )
    marked = marked_unlabelled(labels, fitted_classes)
    if marked.any() and labels.dtype.kind not in "biuf":
        warn(
            "marks",
            "y is '-1' in some rows, which count as rows without a label, like the number -1; if it is a class, "
            "rename it.",
        )
    labelled[np.flatnonzero(labelled)[marked]] = False
    labels = labels[~marked]
    if not len(labels):
        raise InputError(
            parameter="y",
            expected="hold the class of at least one row",
            got="none (-1, None, NaN and '' mark rows without a label)",
            advice="label the rows to train on",
        )
    classes, numbers = np.unique(labels, return_inverse=True)
    codes = np.full(n_rows, UNLABELLED, dtype=np.int64)
    codes[labelled] = numbers
    return classes, codes


def read_weights(weights: object, n_rows: int) -> np.ndarray:
    """One finite number for each row."""
    weights = _column(weights, "sample_weight")
    if len(weights) != n_rows or weights.dtype.kind not in "biuf" or not np.isfinite(weights).all():
        got = f"{weights.dtype} of shape {weights.shape}"
        expected = f"hold one finite number for each of the {n_rows} rows"
        raise InputError(parameter="sample_weight", expected=expected, got=got)
    return weights


def _column(values: Any, name: str) -> np.ndarray:
    """The values as a vector, from a list, an array, a series or one column."""
    values = unmasked(values, name)
    try:
        return column_or_1d(values, warn=True)
    except (TypeError, ValueError) as error:
        shape = f" of shape {values.shape}" if hasattr(values, "shape") else ""
        got, advice = f"{type(values).__name__}{shape}", "pass a list or a vector"
        raise InputError(parameter=name, expected="hold one value per row", got=got, advice=advice) from error


def missing_values(y: np.ndarray) -> np.ndarray:
    """Which entries of y are None, NaN, NaT or an empty text."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind in "Mm":
        return np.isnat(y)
    if y.dtype.kind not in "OUT":
        return np.zeros(len(y), dtype=bool)
    return np.array([_is_missing(value) for value in y.tolist()], dtype=bool)


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ == "NAType" or value != value


def marked_unlabelled(labels: np.ndarray, fitted_classes: np.ndarray | None) -> np.ndarray:
    """Which rows −1 marks as unlabelled: beside other integers, as numbers or as texts, unless it is a class."""
    texts = labels.dtype.kind not in "biuf"
    values = set(np.unique(labels).tolist())
    mark, two = ("-1", {"-1", "1"}) if texts else (UNLABELLED, {-1, 1})
    classes = values if fitted_classes is None else set(np.asarray(fitted_classes).tolist())
    is_class = values == two if fitted_classes is None else mark in classes
    numbers = not texts or all(_is_integer(value) for value in values | classes)
    if labels.dtype.kind == "b" or is_class or not numbers or mark not in values:
        return np.zeros(len(labels), dtype=bool)
    return labels == mark


def _is_integer(text: object) -> bool:
    return isinstance(text, str) and text.strip().lstrip("-").isdigit()


def hold_out(codes: np.ndarray, fraction: float, seed: int, least: int = 0) -> np.ndarray:
    """The rows that are held out: of every class this fraction of its labelled rows, rounded down.

    At least `least` rows of a class are held out, but never its last one.
    """
    rng = np.random.default_rng(seed)
    chosen = [np.zeros(0, dtype=np.int64)]
    for label in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == label)
        count = max(int(fraction * len(rows)), min(least, len(rows) - 1))
        chosen.append(rng.permutation(rows)[:count])
    return np.sort(np.concatenate(chosen))


def read_rows(rows: object, n_rows: int, name: str) -> np.ndarray:
    """Row numbers, ascending and each once, from a mask or from integers."""
    expected = f"be a mask with an entry for each of the {n_rows} rows, or a list of their numbers"
    try:
        numbers = np.asarray(rows)
    except (TypeError, ValueError):
        raise InputError(parameter=name, expected=expected, got=type(rows).__name__) from None
    mask = numbers.dtype == bool
    numbers = numbers.astype(np.int64) if numbers.size == 0 else numbers  # an empty list has floats
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu" or (mask and len(numbers) not in (0, n_rows)):
        got = f"{numbers.dtype} of shape {numbers.shape}"
        raise InputError(parameter=name, expected=expected, got=got)
    numbers = np.flatnonzero(numbers) if mask else np.unique(numbers).astype(np.int64)
    if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < n_rows:
        raise InputError(parameter=name, expected=f"hold rows 0 to {n_rows - 1}", got=f"{numbers[0]} to {numbers[-1]}")
    return numbers


def check_held_out(codes: np.ndarray, held: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The labelled rows that are not held out; raises unless they have all classes and `held` has labels alone."""
    bare = held[codes[held] == UNLABELLED]
    if len(bare):
        got = f"row {bare[0]} without one (the first of {len(bare)})"
        raise InputError(parameter="val", expected="hold rows with labels", got=got)
    train = np.setdiff1d(np.flatnonzero(codes != UNLABELLED), held)
    absent = np.setdiff1d(codes[held], codes[train])
    if len(absent):
        name, count = classes.tolist()[absent[0]], int(np.sum(codes == absent[0]))
        raise InputError(
            f"class {name!r} must have a row to train on, got {count} labelled rows of it, all held out; "
            "take one of them out of val, or remove their labels.",
            parameter="val",
        )
    return train
