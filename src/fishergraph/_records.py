"""Frozen records of compressed rows (`Graph`, `Multisets`): their arrays are validated once, when a record is made.

Compiled loops index with these arrays without bounds checks. One NumPy pass over each array validates them: a few
milliseconds for the 2.3 million edges of ogbn-arxiv.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import numpy as np

from fishergraph._errors import InputError, InputTypeError

R = TypeVar("R")

_ADVICE = {"indptr": "count the members of each row with np.cumsum", "indices": "number the points by their rows"}


def unchecked(kind: type[R], *values: Any, **named: Any) -> R:
    """A record of valid values, made without validation; the other fields have their defaults."""
    record = object.__new__(kind)
    # At once, not field by field through `object.__setattr__`: every row block of a layer makes such a record.
    record.__dict__.update(zip(_field_names(kind), values, strict=False), **named)
    return record


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def changed(record: R, **values: Any) -> R:
    """A copy of a record with other, valid values, made without validation."""
    return unchecked(type(record), **{name: getattr(record, name) for name in _field_names(type(record))} | values)


def normalise(record: Any, **values: Any) -> None:
    """Set fields of a frozen record."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def as_offsets(indptr: Any) -> np.ndarray:
    """Row offsets as int64: at least one entry, not negative, never decreasing."""
    array = _plain(indptr, "indptr", "iu").astype(np.int64, copy=False)
    if len(array) == 0 or array[0] < 0 or (array[1:] < array[:-1]).any():
        got = "an empty array" if len(array) == 0 else _first_decrease(array)
        expected = "start at 0 or more and never decrease"
        raise InputError(parameter="indptr", expected=expected, got=got, advice=_ADVICE["indptr"])
    return array


def _first_decrease(indptr: np.ndarray) -> str:
    decreases = np.flatnonzero(indptr[1:] < indptr[:-1])
    return f"{indptr[0]} first" if indptr[0] < 0 else f"{indptr[decreases[0]]} before {indptr[decreases[0] + 1]}"


def as_indices(indices: Any, rows: slice, n_points: int) -> np.ndarray:
    """Indices as int32 or int64; those in `rows` are points 0 … n_points − 1."""
    array = _plain(indices, "indices", "iu")
    if array.dtype not in (np.int32, np.int64):  # 2**63 and more become negative, and are refused below
        array = array.astype(np.int32 if array.dtype.itemsize < 4 else np.int64)
    used = array[rows]
    if len(used) and (used.min() < 0 or used.max() >= n_points):
        expected, got = f"be points 0 to {n_points - 1}", f"{used.min()} to {used.max()}"
        raise InputError(parameter="indices", expected=expected, got=got, advice=_ADVICE["indices"])
    return array


def check_sorted(indptr: np.ndarray, indices: np.ndarray) -> None:
    """Raise unless the indices of every row increase."""
    increases = np.ones(len(indices), dtype=bool)
    np.greater(indices[1:], indices[:-1], out=increases[1:])
    starts = indptr[:-1]
    increases[starts[starts < len(indices)]] = True
    if not increases.all():
        row = int(np.searchsorted(indptr, np.argmin(increases), side="right")) - 1
        raise InputError(
            parameter="indices",
            value=row,
            expected="be sorted and distinct within each row",
            got=f"others in row {row} (the first bad one)",
            advice="pass a SciPy matrix to as_graph, which sorts and adds them",
        )


def as_weights(weights: Any, n_entries: int, rows: slice, *, least: str) -> np.ndarray | None:
    """Weights as float32 or float64, one per entry; those in `rows` finite and "positive" or "not negative"."""
    if weights is None:
        return None
    array = _plain(weights, "weights", "biuf")
    if len(array) != n_entries:
        raise InputError(
            parameter="weights", value=len(array), expected=f"hold one number for each of the {n_entries} indices"
        )
    single = array.dtype.kind == "b" or (array.dtype.kind == "f" and array.dtype.itemsize <= 4)
    array = array.astype(np.float32 if single else np.float64, copy=False)
    used = array[rows]
    if len(used):
        low, high = used.min(), used.max()
        if not ((low > 0 if least == "positive" else low >= 0) and high < np.inf):
            expected, got = f"be finite and {least}", f"{low:g} to {high:g}"
            raise InputError(parameter="weights", expected=expected, got=got, advice="repair or drop such entries")
    return array


def as_subgraphs(subgraphs: Any, n_points: int, *, filled: bool) -> Any:
    """Subgraphs (subgraph, slot) of points 0 … n_points − 1, −1 in an empty slot; `filled`: each has a point."""
    shape, kind = getattr(subgraphs, "shape", ()), str(getattr(subgraphs, "dtype", "")).removeprefix("torch.")
    if len(shape) != 2 or shape[1] < 1 or kind not in ("int8", "int16", "int32", "int64"):
        got = f"{type(subgraphs).__name__} of shape {tuple(shape)} and dtype {kind or 'none'}"
        raise InputError(parameter="subgraphs", expected="be an integer array of shape (subgraph, slot)", got=got)
    if isinstance(subgraphs, np.ndarray):
        subgraphs = np.ascontiguousarray(subgraphs, dtype=np.int64 if kind == "int64" else np.int32)
    low, high = (int(subgraphs.min()), int(subgraphs.max())) if shape[0] else (0, -1)
    if low < -1 or high >= n_points:
        expected, got = f"hold points 0 to {n_points - 1}, or -1 in an empty slot", f"{low} to {high}"
        raise InputError(parameter="subgraphs", expected=expected, got=got, advice="number the points by rows")
    if filled and low < 0 and bool(((subgraphs >= 0).sum(1) == 0).any()):
        expected = "have at least one point for lift='mean'"
        raise InputError(parameter="a subgraph", expected=expected, got="one of -1 only", advice="drop it")
    return subgraphs


def _plain(values: Any, name: str, kinds: str) -> np.ndarray:
    """A flat, contiguous array of one of the dtype kinds."""
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        got, advice = type(values).__name__, "convert it with np.asarray"
        raise InputTypeError(parameter=name, expected="be a NumPy array", got=got, advice=advice)
    if values.ndim != 1 or values.dtype.kind not in kinds:
        what = "numbers" if "f" in kinds else "integers"
        got = f"shape {values.shape} and dtype {values.dtype}"
        raise InputError(parameter=name, expected=f"be a flat array of {what}", got=got)
    return np.ascontiguousarray(values)
