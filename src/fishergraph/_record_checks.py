"""Checks of records of compressed rows (`Graph`, `Multisets`), run once when a record is made.

Compiled loops index with these arrays and check nothing, so whatever they read must be right before. A pass of NumPy
over each array suffices: a few milliseconds for the 2.3 million edges of ogbn-arxiv.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import numpy as np

R = TypeVar("R")

_ADVICE = {"indptr": "count the members of each row with np.cumsum", "indices": "number the points by their rows"}


def unchecked(kind: type[R], *values: Any, **named: Any) -> R:
    """A record of values that are known to be right, made without its checks; for inner code only.

    Fields that are not given keep their defaults.
    """
    record = object.__new__(kind)
    # At once, not field by field through `object.__setattr__`: every row block of a layer makes such a record.
    record.__dict__.update(zip(_field_names(kind), values, strict=False), **named)
    return record


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def changed(record: R, **values: Any) -> R:
    """A copy of a record with other values that are known to be right, made without its checks."""
    return unchecked(type(record), **{name: getattr(record, name) for name in _field_names(type(record))} | values)


def normalise(record: Any, **values: Any) -> None:
    """Put checked values into a frozen record."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def as_offsets(indptr: Any) -> np.ndarray:
    """Row offsets as int64, of at least one entry, not negative, never falling."""
    array = _plain(indptr, "indptr", "iu").astype(np.int64, copy=False)
    if len(array) == 0 or array[0] < 0 or (array[1:] < array[:-1]).any():
        got = "an empty array" if len(array) == 0 else _first_fall(array)
        raise ValueError(f"indptr must start at 0 or more and never fall, got {got}; {_ADVICE['indptr']}.")
    return array


def _first_fall(indptr: np.ndarray) -> str:
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    return f"{indptr[0]} first" if indptr[0] < 0 else f"{indptr[falls[0]]} before {indptr[falls[0] + 1]}"


def as_indices(indices: Any, rows: slice, n_points: int) -> np.ndarray:
    """Indices as int32 or int64, of which those in `rows` are points 0 … n_points − 1."""
    array = _plain(indices, "indices", "iu")
    if array.dtype not in (np.int32, np.int64):  # a native integer that holds every value; 2**63 and more are negative
        array = array.astype(np.int32 if array.dtype.itemsize < 4 else np.int64)
    used = array[rows]
    if len(used) and (used.min() < 0 or used.max() >= n_points):
        raise ValueError(
            f"indices must be points 0 to {n_points - 1}, got {used.min()} to {used.max()}; {_ADVICE['indices']}."
        )
    return array


def check_sorted(indptr: np.ndarray, indices: np.ndarray) -> None:
    """Raise unless the indices of every row rise."""
    rises = np.ones(len(indices), dtype=bool)
    np.greater(indices[1:], indices[:-1], out=rises[1:])
    starts = indptr[:-1]
    rises[starts[starts < len(indices)]] = True
    if not rises.all():
        row = int(np.searchsorted(indptr, np.argmin(rises), side="right")) - 1
        raise ValueError(
            f"indices must be sorted and distinct within each row, got others in row {row} (the first bad one); "
            "pass a SciPy matrix to as_graph, which sorts and adds them."
        )


def as_weights(weights: Any, n_entries: int, rows: slice, *, least: str) -> np.ndarray | None:
    """Weights as float32 or float64, one per entry; those in `rows` finite and "positive" or "not negative"."""
    if weights is None:
        return None
    array = _plain(weights, "weights", "biuf")
    if len(array) != n_entries:
        raise ValueError(
            f"weights must hold one number for each of the {n_entries} indices, got {len(array)}; pass as many."
        )
    single = array.dtype.kind == "b" or (array.dtype.kind == "f" and array.dtype.itemsize <= 4)
    array = array.astype(np.float32 if single else np.float64, copy=False)
    used = array[rows]
    if len(used):
        low, high = used.min(), used.max()
        if not ((low > 0 if least == "positive" else low >= 0) and high < np.inf):
            raise ValueError(
                f"weights must be finite and {least}, got {low:g} to {high:g}; repair such entries or leave them out."
            )
    return array


def as_subgraphs(subgraphs: Any, n_points: int, *, filled: bool) -> Any:
    """Subgraphs (subgraph, slot) of points 0 … n_points − 1, −1 in an empty slot; `filled` asks for a point in each."""
    shape, kind = getattr(subgraphs, "shape", ()), str(getattr(subgraphs, "dtype", "")).removeprefix("torch.")
    if len(shape) != 2 or shape[1] < 1 or kind not in ("int8", "int16", "int32", "int64"):
        raise ValueError(
            f"subgraphs must be an integer array of shape (subgraph, slot), got {type(subgraphs).__name__} of shape "
            f"{tuple(shape)} and dtype {kind or 'none'}; pass one row per subgraph."
        )
    if isinstance(subgraphs, np.ndarray):
        subgraphs = np.ascontiguousarray(subgraphs, dtype=np.int64 if kind == "int64" else np.int32)
    low, high = (int(subgraphs.min()), int(subgraphs.max())) if shape[0] else (0, -1)
    if low < -1 or high >= n_points:
        raise ValueError(
            f"subgraphs must hold points 0 to {n_points - 1}, or -1 in an empty slot, got {low} to {high}; "
            "number the points by rows."
        )
    if filled and low < 0 and bool(((subgraphs >= 0).sum(1) == 0).any()):
        raise ValueError("a subgraph must have at least one point for lift='mean', got one of -1 alone; drop it.")
    return subgraphs


def _plain(values: Any, name: str, kinds: str) -> np.ndarray:
    """A flat array of such numbers, contiguous; anything else is refused."""
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a NumPy array, got {type(values).__name__}; convert it with np.asarray.")
    if values.ndim != 1 or values.dtype.kind not in kinds:
        what = "numbers" if "f" in kinds else "integers"
        raise ValueError(
            f"{name} must be a flat array of {what}, got shape {values.shape} and dtype {values.dtype}; convert it."
        )
    return np.ascontiguousarray(values)
