"""The multisets of some rows, over the points that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph._records import changed, unchecked
from fishergraph.multiset.split import part_rows, split_sets
from fishergraph.part.blocks import NONE


def index_like(like: Any, numbers: np.ndarray) -> Any:
    """Row numbers as an array beside another one."""
    return array_namespace(like).asarray(numbers, device=device_of(like)) if is_torch_array(like) else numbers


def members_of(sets: Any, rows: np.ndarray) -> np.ndarray:
    """The points that the multisets of some rows are made of, ascending."""
    own = sets.take(index_like(sets.indptr, rows))
    points = own.subgraphs[own.indices] if own.lifted else own.indices
    found = np.unique(np.asarray(points.cpu() if is_torch_array(points) else points)).astype(np.int64)
    return found[found >= 0]  # −1 is an empty slot


def rows_within(sets: Any, rows: np.ndarray, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows within so many steps of some rows, ascending, and which of them are within one step fewer."""
    found = np.zeros(sets.n_sets, bool)
    found[rows] = True
    inner, edge = np.zeros_like(found), rows
    for _ in range(n_steps):
        inner[edge] = True
        read = members_of(sets, edge)
        edge = read[~found[read]]
        found[edge] = True
    near = np.flatnonzero(found)
    return near, inner[near]


def part_sets(sets: Any, rows: np.ndarray, points: np.ndarray) -> Any:
    """The multisets of some rows over some points alone, which hold all their members; `NONE` is an empty one."""
    if sets.lifted:
        kept = sets.sets.take(index_like(sets.indptr, rows[rows >= 0])).indices
        subgraphs = np.unique(np.asarray(kept.cpu() if is_torch_array(kept) else kept)).astype(np.int64)
        slots = sets.subgraphs[index_like(sets.indptr, subgraphs)]
        xp, empty = array_namespace(slots), slots < 0
        found = _positions(index_like(slots, points), xp.where(empty, xp.zeros_like(slots), slots))
        over = xp.where(empty, xp.full_like(found, NONE), found)
        own = part_sets(sets.sets, rows, subgraphs)
        return changed(sets, sets=own, subgraphs=over, n_points=len(points), totals=None, pool=None)
    if sets.kinds > 1:
        every = np.where(np.repeat(rows, sets.kinds) < 0, NONE, part_rows(np.asarray(rows), sets.kinds))
        return _split(part_sets(sets.apart(), every, points), sets)
    kept, wanted = sets.take(index_like(sets.indptr, rows[rows >= 0])), index_like(sets.indptr, np.maximum(rows, 0))
    xp = array_namespace(sets.indptr)
    sizes = sets.indptr[wanted + 1] - sets.indptr[wanted]
    sizes = xp.where(index_like(sets.indptr, rows < 0), xp.zeros_like(sizes), sizes)
    indptr = xp.cumulative_sum(sizes, include_initial=True)
    indices = _positions(index_like(sets.indptr, points), kept.indices)
    return _summed_like(unchecked(type(kept), indptr, indices, kept.weights, len(points)), sets)


def _positions(points: Any, wanted: Any) -> Any:
    """Where the entries are among ascending points, in their own type."""
    xp = array_namespace(wanted)
    return xp.astype(xp.searchsorted(points, xp.astype(wanted, points.dtype)), wanted.dtype)


def _split(parts: Any, like: Any) -> Any:
    """The sets of both directions whose parts these are."""
    if not is_torch_array(parts.indptr):
        return split_sets(parts, like.kinds)
    from fishergraph.ops.tensor_split import split_tensors

    return _summed_like(split_tensors(parts, like.kinds), like)


def _summed_like(sets: Any, whole: Any) -> Any:
    """The sets, whose long ones are summed in the parts that they have in the whole."""
    if hasattr(whole, "hub"):
        vars(sets)["hub"] = whole.hub
    return sets
