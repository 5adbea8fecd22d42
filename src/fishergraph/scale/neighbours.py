"""Neighbourhoods of the graph of a store, built by chunks of rows in a small amount of memory.

Neighbours by the other direction are the rows of the reversed graph. It is written beside the multisets and removed
when they are there. Its rows are gathered a range of them at a time; for each range the edges are read once, in order.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._arrays import check_weight_scale
from fishergraph._compile import compiled
from fishergraph._records import unchecked
from fishergraph.multiset import Multisets, Neighbourhood
from fishergraph.multiset.members import inverse_sqrt_or_zero, weight_dtype
from fishergraph.multiset.split import side_by_side
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.budget import BASE
from fishergraph.scale.store import Store

PARTS = "parts"  # the array of the offsets of every kind, if there are several
_CHUNK_ENTRIES = 2**23  # of a chunk of rows that is read at once
_CHUNK_COPIES = 4  # of a chunk, while the node of each row is added
_REVERSED = "reversed"

Advance = Callable[[int], Any]


@dataclass(frozen=True)
class EdgeRows:
    """A graph in compressed rows, in files."""

    indptr: FileArray
    indices: FileArray
    weights: FileArray | None

    @property
    def n_nodes(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def rows(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """(offsets from zero, neighbours, weights) of consecutive rows."""
        indptr = self.indptr[rows.start : rows.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        weights = None if self.weights is None else self.weights[entries]
        return indptr - indptr[0], self.indices[entries], weights


def neighbourhood_bytes(n_nodes: int, n_edges: int, member: int, rule: Neighbourhood) -> int:
    """The least bytes of the arrays that building takes, with so many bytes for a member."""
    per_node = 1 + 36 * rule.kinds * (rule.weights == "symmetric")
    chunk = min(n_edges + rule.kinds * n_nodes, _CHUNK_ENTRIES) * _CHUNK_COPIES * rule.kinds * member
    if not _reverses(rule):
        return per_node * n_nodes + chunk
    return per_node * n_nodes + max(chunk, _reversing_bytes(n_nodes, min(n_edges, _CHUNK_ENTRIES), member))


def reversed_bytes(n_nodes: int, n_edges: int, member: int, rule: Neighbourhood) -> int:
    """The bytes of files that are removed when the multisets are there."""
    return 8 * (n_nodes + 1) + member * n_edges if _reverses(rule) else 0


def write_neighbourhoods(
    folder: Path, store: Store, rule: Neighbourhood, dtype: Any, *, memory: int, advance: Advance
) -> dict[str, FileArray]:
    """Write the arrays of N(v), or N(v) ∪ {v}, with the bits of the rule in memory.

    Parameters
    ----------
    folder : Path
        Where they are written.
    store : Store
        The graph.
    rule : Neighbourhood
        Which neighbours are members.
    dtype : dtype
        Of the points.
    memory : int
        Bytes that the process may have; more makes fewer passes over the edges.
    advance : callable
        Called with the number of edges that were done.

    Returns
    -------
    dict
        The arrays by name; `PARTS` has the offsets of both directions if they are kept apart.
    """
    graph = EdgeRows(store.indptr, store.indices, store.weights)
    graphs = [graph] if rule.direction != "out" else []
    if _reverses(rule):
        graphs.append(write_reversed(folder / _REVERSED, graph, memory))
    missing = np.zeros(store.n_nodes, bool)  # rows that get their own node
    for rows in row_chunks(graph.indptr) if rule.closed else ():
        indptr, indices, _ = graph.rows(rows)
        _find_missing(rows.start, indptr, indices, missing)
    kind = weights_kind(None if store.weights is None else store.weights.dtype, rule, dtype)
    sides = [_Side(one, missing, rule, kind) for one in graphs]
    shape = (len(sides) * (store.n_edges + int(missing.sum())),)
    arrays = {"indptr": FileArray.create(folder / "indptr.npy", (store.n_nodes + 1,), np.int64)}
    if len(sides) > 1:
        arrays[PARTS] = FileArray.create(folder / f"{PARTS}.npy", (len(sides) * store.n_nodes + 1,), np.int64)
    arrays["indices"] = FileArray.create(folder / "indices.npy", shape, store.indices.dtype)
    if kind is not None:
        arrays["weights"] = FileArray.create(folder / "weights.npy", shape, kind)
    _write_sides(sides, arrays, advance)
    shutil.rmtree(folder / _REVERSED, ignore_errors=True)
    return arrays


def _reverses(rule: Neighbourhood) -> bool:
    return rule.direction in ("out", "both")


def _write_sides(sides: list[_Side], arrays: dict[str, FileArray], advance: Advance) -> None:
    """Write the members of all sides, chunk by chunk."""
    position, kinds = 0, len(sides)
    for rows in row_chunks(*(side.graph.indptr for side in sides)):
        blocks = [side.block(rows) for side in sides]
        sets = blocks[0] if kinds == 1 else side_by_side(blocks)
        entries = slice(position, position + len(sets.indices))
        arrays["indptr"][rows.start + 1 : rows.stop + 1] = sets.indptr[1:] + position
        if kinds > 1:
            arrays[PARTS][kinds * rows.start + 1 : kinds * rows.stop + 1] = sets.apart().indptr[1:] + position
        arrays["indices"][entries] = sets.indices
        if "weights" in arrays:
            arrays["weights"][entries] = sets.weights
        position = entries.stop
        advance(len(sets.indices) // kinds)


class _Side:
    """The neighbourhoods by the rows of one graph."""

    def __init__(self, graph: EdgeRows, missing: np.ndarray, rule: Neighbourhood, kind: Any):
        self.graph, self.missing, self.rule, self.kind = graph, missing, rule, kind
        self.scale: list[np.ndarray] | None = None
        if rule.weights == "symmetric":
            self.scale = [values.astype(kind) for values in _symmetric_scale(graph, missing)]

    def block(self, rows: slice) -> Multisets:
        """The multisets of consecutive rows."""
        missing = self.missing[rows]
        indptr, members, weights = self.graph.rows(rows)
        if self.rule.weights == "uniform":
            weights = None
        full, full_weights = with_loops(np.arange(rows.start, rows.stop), indptr, members, weights, missing)
        offsets = indptr + np.append(0, np.cumsum(missing))
        if self.scale is not None:
            check_weight_scale(full_weights, self.kind)
            received, sent = self.scale
            scaled = sent[full]
            scaled *= np.repeat(received[rows], np.diff(offsets))
            full_weights = scaled if full_weights is None else scaled * full_weights
        return unchecked(Multisets, offsets, full, full_weights, self.graph.n_nodes)


def weights_kind(own: np.dtype | None, rule: Neighbourhood, dtype: Any) -> Any:
    """The dtype of the weights of the members, or None if all are one; `own` is that of the weights of the graph."""
    if rule.weights == "symmetric":
        return weight_dtype(None if own is None else np.empty(0, own), dtype)
    return None if rule.weights == "uniform" else own


def with_loops(
    nodes: np.ndarray, indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, missing: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """The members of the rows of these nodes, with the node in front of each row that misses it."""
    where = np.flatnonzero(missing)
    full = np.insert(indices, indptr[where], nodes[where].astype(indices.dtype))
    if weights is None:
        return full, None
    return full, np.insert(weights, indptr[where], np.ones(len(where), weights.dtype))


def _symmetric_scale(graph: EdgeRows, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d_v^-½ of what every node receives and sends, the added loops included, float64."""
    received, sent = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
    ones = np.ones(1)
    for rows in row_chunks(graph.indptr):
        indptr, indices, weights = graph.rows(rows)
        nodes = np.arange(rows.start, rows.stop)
        full, full_weights = with_loops(nodes, indptr, indices, weights, missing[rows])
        offsets = indptr + np.append(0, np.cumsum(missing[rows]))
        _add_weights(rows.start, offsets, full, ones if full_weights is None else full_weights, received, sent)
    return inverse_sqrt_or_zero(received), inverse_sqrt_or_zero(sent)


def row_chunks(*offsets: FileArray) -> list[slice]:
    """Consecutive rows that have about `_CHUNK_ENTRIES` entries together, and a row for each at most.

    Several lists of offsets are those of matrices whose rows are read together.
    """
    chunks, n_rows, start = [], len(offsets[0]) - 1, 0
    while start < n_rows:
        window = slice(start, min(start + _CHUNK_ENTRIES, n_rows) + 1)
        ends = np.sum([indptr[window] for indptr in offsets], axis=0)
        last = int(ends.searchsorted(ends[0] + _CHUNK_ENTRIES, side="right")) - 1
        stop = start + min(max(last, 1), len(ends) - 1)
        chunks.append(slice(start, stop))
        start = stop
    return chunks


# --- the reversed graph -----------------------------------------------------------------------------------


def _reversing_bytes(n_nodes: int, n_entries: int, member: int) -> int:
    """Of the arrays that hold so many entries of the reversed graph, and as many of the graph."""
    return 24 * n_nodes + 2 * member * n_entries


def write_reversed(folder: Path, graph: EdgeRows, memory: int) -> EdgeRows:
    """Write the graph whose edges point the other way; the order of a row is that of the rows of the graph."""
    folder.mkdir()
    n_nodes, kind = graph.n_nodes, graph.indices.dtype
    offsets = np.zeros(n_nodes + 1, np.int64)
    for entries in graph.indices.blocks():
        _count_columns(graph.indices[entries], offsets[1:])
    np.cumsum(offsets, out=offsets)
    indptr = FileArray.create(folder / "indptr.npy", offsets.shape, np.int64)
    indptr[:] = offsets
    found = EdgeRows(indptr, FileArray.create(folder / "indices.npy", graph.indices.shape, kind), None)
    member = kind.itemsize
    if graph.weights is not None:
        weights = FileArray.create(folder / "weights.npy", graph.weights.shape, graph.weights.dtype)
        found = EdgeRows(indptr, found.indices, weights)
        member += weights.dtype.itemsize
    spare = memory - BASE - _reversing_bytes(n_nodes, _CHUNK_ENTRIES, member)
    most, first = _CHUNK_ENTRIES + max(spare, 0) // member, 0
    while first < n_nodes:
        last = max(int(offsets.searchsorted(offsets[first] + most, side="right")) - 1, first + 1)
        _write_range(found, graph, first, offsets[first : last + 1])
        first = last
    return found


def _write_range(found: EdgeRows, graph: EdgeRows, first: int, offsets: np.ndarray) -> None:
    """Write consecutive rows of the reversed graph; the edges are read once."""
    entries = slice(int(offsets[0]), int(offsets[-1]))
    indices = np.empty(entries.stop - entries.start, graph.indices.dtype)
    own = None if graph.weights is None else graph.weights.dtype
    values = np.empty(0 if own is None else len(indices), own or np.float32)
    places = offsets[:-1] - offsets[0]
    for rows in row_chunks(graph.indptr):
        indptr, columns, weights = graph.rows(rows)
        weights = values[:0] if weights is None else weights
        _place_entries(rows.start, indptr, columns, weights, first, places, indices, values)
    found.indices[entries] = indices
    if found.weights is not None:
        found.weights[entries] = values


@compiled
def _count_columns(indices, counts):
    """Count the entries of every column."""
    for entry in range(len(indices)):
        counts[indices[entry]] += 1


@compiled
def _place_entries(start, indptr, columns, weights, first, places, indices, values):
    """Put the rows of the entries whose column is one of a range to the next place of that column."""
    for v in range(len(indptr) - 1):
        for entry in range(indptr[v], indptr[v + 1]):
            column = columns[entry] - first
            if 0 <= column < len(places):
                place = places[column]
                indices[place] = start + v
                if len(weights):
                    values[place] = weights[entry]
                places[column] = place + 1


@compiled
def _find_missing(start, indptr, indices, missing):
    """Mark the rows that do not hold their own node."""
    for v in range(len(indptr) - 1):
        missing[start + v] = True
        for entry in range(indptr[v], indptr[v + 1]):
            if indices[entry] == start + v:
                missing[start + v] = False


@compiled
def _add_weights(start, indptr, indices, weights, received, sent):
    """Add the weight of every entry to its row and to its point; one weight serves all."""
    step = 0 if len(weights) == 1 else 1
    for v in range(len(indptr) - 1):
        total = 0.0
        for entry in range(indptr[v], indptr[v + 1]):
            weight = np.float64(weights[entry * step])
            total += weight
            sent[indices[entry]] += weight
        received[start + v] = total
