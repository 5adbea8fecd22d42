"""Validation of what a probe receives: an embedding, labels, training rows and validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import as_floats, check_finite_rows, check_within, plain_array
from fishergraph._errors import InputError
from fishergraph._records import check_row_order
from fishergraph._typing import MatrixLike

_LARGEST = 1e100  # the squares of such entries can be added

FIT_ON = {"train": False, "train+val": True}  # whether the last fit uses the validation rows too


def validate_problem(Z: MatrixLike, y: Any, train: Any, val: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """The embedding, the labels, and the numbers of the training and validation rows."""
    check_row_order(y, getattr(Z, "index", None) if hasattr(Z, "iloc") else None, "y.reindex(Z.index)")
    rows = validate_embedding(Z)
    return rows, *validate_split(y, train, val, rows.shape[0])


def validate_embedding(Z: MatrixLike, name: str = "Z", n_features: int | None = None) -> Any:
    """Z as a dense matrix or CSR array of finite numbers, with as many columns as in fit."""
    rows = as_floats(Z, name)
    if rows.ndim != 2:
        got = f"shape {rows.shape} and dtype {rows.dtype}"
        raise InputError(parameter=name, expected="be a matrix of numbers with one row per node", got=got)
    check_finite_rows(rows, name)
    values, indptr = (rows.data, rows.indptr) if sp.issparse(rows) else (rows, None)
    check_within(values, name, _LARGEST, indptr=indptr)
    if n_features is not None and rows.shape[1] != n_features:
        expected = f"have {n_features} columns, as in fit"
        raise InputError(parameter=name, value=rows.shape[1], expected=expected, advice="pass the same embedding")
    return rows


def validate_split(
    y: Any, train: Any, val: Any, n_rows: int, names: tuple[str, str] = ("train", "val")
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The labels, and the numbers of the training and validation rows, which are disjoint."""
    y = plain_array(y, "y")
    if y.shape != (n_rows,):
        raise InputError(parameter="y", value=y.shape, expected=f"have shape ({n_rows},), one label per row")
    train, val = (_row_numbers(rows, name, n_rows) for rows, name in zip((train, val), names, strict=True))
    common = np.intersect1d(train, val)
    both = f"{names[0]} and {names[1]}"
    if common.size:
        got, advice = f"{common.size} common rows, {common[0]} the first", "remove them from one of the two"
        raise InputError(parameter=both, expected="be disjoint", got=got, advice=advice)
    rows = np.concatenate([train, val])
    missing = rows[[_is_missing(label) for label in y[rows].tolist()]]
    if missing.size:
        expected, got = f"hold a label for every row of {both}", f"none in row {missing[0]}"
        raise InputError(parameter="y", expected=expected, got=got, advice="drop such rows")
    return y, train, val


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, or pandas' NA, whose comparison with itself is not a boolean."""
    same = label == label
    return label is None or not (isinstance(same, (bool, np.bool_)) and same)


def _row_numbers(rows: Any, name: str, n_rows: int) -> np.ndarray:
    """The row numbers of an index array or a boolean mask, at least one and each once."""
    rows = plain_array(rows, name)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        raise InputError(parameter=name, expected="select at least one row", got="none")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        got = f"shape {rows.shape} and dtype {rows.dtype}"
        raise InputError(parameter=name, expected=f"be row numbers or a mask of {n_rows} rows", got=got)
    repeated = rows.size - len(np.unique(rows))
    if rows.min() < 0 or rows.max() >= n_rows or repeated:
        got = f"{rows.min()} to {rows.max()} with {repeated} repeated"
        raise InputError(parameter=name, expected=f"hold row numbers from 0 to {n_rows - 1}, each once", got=got)
    return rows.astype(np.intp)


def encode(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes that occur, at least two, and each label's class number."""
    if labels.dtype.kind == "f" and (fractions := labels[labels != np.round(labels)]).size:
        advice = "bin such numbers, or pass class names"
        raise InputError(parameter="y", expected="hold classes", got=f"the number {fractions[0]:g}", advice=advice)
    classes, codes = unique_labels(labels, "y")
    if len(classes) < 2:
        got, advice = f"only {classes.tolist()[0]!r}", "add rows of another class"
        raise InputError(parameter="train", expected="hold at least two classes", got=got, advice=advice)
    return classes, codes


def unique_labels(labels: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The labels that occur, sorted, and the index of each label among them."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:  # they cannot be sorted
        types = " and ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise InputError(parameter=name, expected="hold labels of one type", got=types, advice="convert them") from None


def read_classes(values: Any, name: Any) -> np.ndarray:
    """The labels of the classes, in order, in the dtype of that name."""
    if not isinstance(values, list) or not isinstance(name, str) or len(values) < 1:
        raise TypeError("classes that are not a list")
    dtype = np.dtype(name)
    if all(isinstance(value, str) for value in values):
        fits = dtype.kind == "O" or (dtype.kind == "U" and dtype.itemsize == 4 * max(map(len, values)))
    else:
        fits = dtype.kind in "biuf" and all(isinstance(value, (int, float)) for value in values)
    if not fits:
        raise ValueError(f"classes must have the dtype {name} of the file.")
    classes = np.array(values, dtype=dtype)
    if classes.tolist() != values or classes.tolist() != sorted(set(values)):
        raise ValueError("classes must be sorted and distinct.")
    return classes


def take(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array of floats of that shape, taken out of the others."""
    array = arrays.pop(name)
    if array.shape != shape or array.dtype not in (np.float32, np.float64):
        raise ValueError(f"{name} must hold floats of shape {shape}, got {array.dtype} of shape {array.shape}.")
    return array
