"""The door of the probes: an embedding, labels, and two sets of rows, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np

from fishergraph._arrays import as_floats, check_finite_rows, plain_array
from fishergraph._errors import InputError
from fishergraph._records import check_row_order

_LARGEST = 1e100  # entries whose squares a model can add up

FIT_ON = {"train": False, "train+val": True}  # whether the validation rows join the last fit


def check_embedding(Z: Any, name: str = "Z") -> Any:
    """Z as a dense matrix or CSR array of finite numbers."""
    Z = as_floats(Z, name)
    if Z.ndim != 2:
        raise InputError(
            parameter=name,
            expected="be a matrix of numbers, one row a node",
            got=f"shape {Z.shape} and dtype {Z.dtype}",
            advice="pass an embedding",
        )
    check_finite_rows(Z, name)
    largest = max(float(Z.max()), -float(Z.min())) if 0 not in Z.shape else 0.0
    if largest > _LARGEST:
        raise InputError(
            parameter=name,
            expected=f"have entries of at most {_LARGEST:g}",
            got=f"{largest:g}",
            advice="rescale the embedding",
        )
    return Z


def check_label_order(y: Any, Z: Any) -> None:
    """Raise where the labels of a Series are not in the order of the rows of a table."""
    check_row_order(y, Z.index if hasattr(Z, "iloc") else None, "y.reindex(Z.index)")


def check_same_columns(Z: Any, n_features: int) -> Any:
    """Z, which has the columns of the embedding in fit."""
    if Z.shape[1] != n_features:
        raise InputError(
            parameter="Z",
            expected=f"have {n_features} columns, as in fit",
            got=f"{Z.shape[1]}",
            advice="pass rows of the same embedding",
        )
    return Z


def check_split(
    y: Any, train: Any, val: Any, n_rows: int, *, what: str = "row of Z", names: tuple[str, str] = ("train", "val")
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels and the node numbers of the training and validation rows."""
    y = plain_array(y, "y")
    if y.shape != (n_rows,):
        raise InputError(
            parameter="y",
            expected=f"have shape ({n_rows},), a label per {what}",
            got=f"{y.shape}",
            advice="pass such labels",
        )
    train, val = (_node_numbers(rows, name, n_rows) for rows, name in zip((train, val), names, strict=True))
    shared = np.intersect1d(train, val)
    if shared.size:
        raise InputError(
            parameter=f"{names[0]} and {names[1]}",
            expected="be disjoint",
            got=f"{shared.size} common rows, {shared[0]} the first",
            advice="remove them from one of the two",
        )
    for nodes in (train, val):
        missing = nodes[[_is_missing(label) for label in y[nodes].tolist()]]
        if missing.size:
            raise InputError(
                parameter="y",
                expected=f"hold a label for every row of {names[0]} and {names[1]}",
                got=f"none in row {missing[0]}",
                advice="drop it",
            )
    return y, train, val


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or pandas' NA, of which nobody can say that it equals itself."""
    same = label == label
    return label is None or not (isinstance(same, (bool, np.bool_)) and same)


def _node_numbers(rows: Any, name: str, n_rows: int) -> np.ndarray:
    """The row numbers that an index array or a boolean mask selects, at least one and each once."""
    rows = plain_array(rows, name)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        raise InputError(
            parameter=name,
            expected="select at least one row",
            got="none",
            advice="pass row numbers or a mask",
        )
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InputError(
            parameter=name,
            expected=f"be row numbers or a mask of {n_rows} rows",
            got=f"shape {rows.shape} and dtype {rows.dtype}",
            advice="pass one of these",
        )
    if rows.min() < 0 or rows.max() >= n_rows or len(np.unique(rows)) != rows.size:
        raise InputError(
            parameter=name,
            expected=f"hold row numbers from 0 to {n_rows - 1}, each once",
            got=f"{rows.min()} to {rows.max()} with {rows.size - len(np.unique(rows))} repeated",
            advice="correct the split",
        )
    return rows.astype(np.intp)


def encode(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes that occur and each label's class number."""
    if labels.dtype.kind == "f" and (broken := labels[labels != np.round(labels)]).size:
        raise InputError(
            parameter="y",
            expected="hold classes",
            got=f"the number {broken[0]:g}",
            advice="bin such numbers, or pass class names",
        )
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:  # they cannot be sorted
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise InputError(
            parameter="y",
            expected="hold labels of one type",
            got=f"{' and '.join(kinds)}",
            advice="convert them to one",
        ) from None
    if len(classes) < 2:
        only = classes.tolist()[0]
        raise InputError(
            parameter="train",
            expected="hold at least two classes",
            got=f"only {only!r}",
            advice="add rows of another",
        )
    return classes, codes
