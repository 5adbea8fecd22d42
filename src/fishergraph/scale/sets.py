"""Multisets in files: built once from the graph of a store, and read by row blocks.

They are written to `multisets/KEY/` of the store, as compressed rows like the graph. KEY names the rule and its
options. Neighbourhoods are built by chunks of rows in a small amount of memory; other multisets of nodes are built in
memory, if there is enough of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._arrays import check_weight_scale
from fishergraph._compile import compiled
from fishergraph._errors import InputError, NotEnoughMemory
from fishergraph._records import unchecked
from fishergraph.graph import Graph
from fishergraph.multiset import Multisets, Neighbourhood, Rule
from fishergraph.multiset.members import SetsOfPoints, inverse_sqrt_or_zero, weight_dtype
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.folders import new_folder, read_json
from fishergraph.scale.store import Store, array_entry, check_arrays, write_json

_CHUNK_ENTRIES = 2**23  # of a chunk of rows that is read at once
_CHUNK_COPIES = 4  # of a chunk, while the node of each row is added
# Bytes of memory per edge that rules other than `Neighbourhood` take, beside the graph.
_BYTES_PER_EDGE = 64

Advance = Callable[[int], Any]


@dataclass(frozen=True)
class StoredSets(SetsOfPoints):
    """Multisets in files. Row blocks and chosen rows are `Multisets` in memory.

    indptr, indices, weights : compressed rows, as arrays in files.
    n_points : the number of points.
    """

    indptr: FileArray
    indices: FileArray
    weights: FileArray | None
    n_points: int

    @property
    def n_entries(self) -> int:
        """The number of members of all sets."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """The bytes of the sets in memory."""
        return sum(array.nbytes for array in (self.indptr, self.indices, self.weights) if array is not None)

    @property
    def largest(self) -> int:
        """The most members of a set."""
        sizes = [0]
        for rows in self.indptr.blocks():
            offsets = self.indptr[rows.start : rows.stop + 1]
            sizes.append(int(np.diff(offsets).max(initial=0)))
        return max(sizes)

    def block(self, rows: slice) -> Multisets:
        """Return the sets of consecutive rows."""
        start, stop, _ = rows.indices(self.n_sets)
        indptr = self.indptr[start : max(start, stop) + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        weights = None if self.weights is None else self.weights[entries]
        return unchecked(Multisets, indptr - indptr[0], self.indices[entries], weights, self.n_points)

    def take(self, rows: np.ndarray) -> Multisets:
        """Return the sets of the given rows, in that order."""
        starts, stops = self.indptr[rows], self.indptr[rows + 1]
        indptr = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(stops - starts, out=indptr[1:])
        entries = np.repeat(starts - indptr[:-1], stops - starts) + np.arange(indptr[-1])
        weights = None if self.weights is None else self.weights[entries]
        return unchecked(Multisets, indptr, self.indices[entries], weights, self.n_points)

    def members(self, points: Any, chosen: Any) -> Any:
        """Return the points of the chosen members."""
        return points[chosen]

    def sent_weights(self) -> np.ndarray:
        """The weight with which every point is a member, (point,), float64."""
        return _sent(self.indices, self.weights, self.n_points)

    def loaded(self) -> Multisets:
        """Return the sets in memory."""
        weights = None if self.weights is None else self.weights[:]
        return unchecked(Multisets, self.indptr[:], self.indices[:], weights, self.n_points)


def building_bytes(n_nodes: int, n_edges: int, sets: Any, rule: Rule) -> int:
    """The bytes of the arrays that building multisets takes; `sets` are the multisets, or their sizes."""
    weight = 0 if sets.weights is None else sets.weights.dtype.itemsize
    if not isinstance(rule, Neighbourhood) or rule.direction not in (None, "in"):
        return 8 * n_nodes + _BYTES_PER_EDGE * n_edges
    per_node = 37 if rule.weights == "symmetric" else 1
    return per_node * n_nodes + min(n_edges + n_nodes, _CHUNK_ENTRIES) * _CHUNK_COPIES * (4 + weight)


def build_sets(store: Store, rule: Rule, dtype: Any, *, memory: int, advance: Advance = lambda n: None) -> StoredSets:
    """Return the multisets of a store, built if no run did so before.

    Parameters
    ----------
    store : Store
        The graph.
    rule : Rule
        Which multiset belongs to a node.
    dtype : dtype
        Of the points.
    memory : int
        Bytes that may be used.
    advance : callable, optional
        Called with the number of edges that were done.

    Returns
    -------
    StoredSets
        The multisets in files.
    """
    folder = sets_folder(store, rule, dtype)
    if not has_sets(store, rule, dtype):
        _check_rule(store, rule)
        folder.parent.mkdir(exist_ok=True)
        with new_folder(folder) as part:
            if isinstance(rule, Neighbourhood) and rule.direction in (None, "in"):
                arrays = _write_neighbourhoods(part, store, rule, dtype, advance)
            else:
                arrays = _write_in_memory(part, store, rule, dtype, memory)
            entries = {name: array_entry(array) for name, array in arrays.items()}
            write_json(part / "manifest.json", {"rule": repr(rule), "graph": graph_digest(store), "arrays": entries})
    return open_sets(store, folder)


def has_sets(store: Store, rule: Rule, dtype: Any) -> bool:
    """Whether the multisets of a rule were built."""
    return (sets_folder(store, rule, dtype) / "manifest.json").is_file()


def sets_folder(store: Store, rule: Rule, dtype: Any) -> Path:
    """The folder of the multisets of a rule, whether it is there or not."""
    return store.path / "multisets" / sets_key(rule, dtype)


def open_sets(store: Store, folder: Path) -> StoredSets:
    """The multisets in a folder of the store."""
    manifest = read_json(folder / "manifest.json")
    if manifest.get("graph") != graph_digest(store):
        raise InputError(
            f"the multisets in '{folder}' belong to another graph than that of the store; delete the folder.",
            parameter="store",
            value=str(store.path),
        )
    arrays = {name: FileArray(folder / f"{name}.npy") for name in manifest["arrays"]}
    return StoredSets(arrays["indptr"], arrays["indices"], arrays.get("weights"), store.n_nodes)


def check_sets(store: Store, advance: Advance = lambda n: None) -> list[str]:
    """What differs between multisets of a store and their checksums, in words."""
    damaged = []
    for path in sorted((store.path / "multisets").glob("*/manifest.json")):
        found = check_arrays(path.parent, read_json(path)["arrays"], advance)
        damaged += [f"multisets/{path.parent.name}/{text}" for text in found]
    return damaged


def graph_digest(store: Store) -> str:
    """A text that another graph would change."""
    arrays = store.manifest["arrays"]
    checksums = [arrays[name]["checksums"] for name in ("indptr", "indices", "weights") if name in arrays]
    return hashlib.sha256(json.dumps(checksums).encode()).hexdigest()


def sets_key(rule: Rule, dtype: Any) -> str:
    """A folder name for a rule and the dtype of its weights."""
    text = f"{rule!r} {np.dtype(dtype).name}"
    return f"{type(rule).__name__.lower()}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _check_rule(store: Store, rule: Rule) -> None:
    if rule.lifts or rule.kinds > 1 or rule.signed:
        expected = "have single nodes as members, all of one kind, for a graph in a store"
        advice = "use Neighbourhood(), Hops(), PageRank(), HeatKernel() or StepAverage()"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice=advice)
    if isinstance(rule, Neighbourhood) and rule.decay is not None:
        expected = "have no decay for a graph in a store, which keeps no times"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice="weigh the edges first")
    if rule.undirected and not store.facts.get("undirected"):
        expected = "add no reverse edges to a graph in a store, whose edges are as they were ingested"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice="ingest it as an undirected graph")


# --- neighbourhoods, by chunks of rows -------------------------------------------------------------------


def _write_neighbourhoods(
    folder: Path, store: Store, rule: Neighbourhood, dtype: Any, advance: Advance
) -> dict[str, FileArray]:
    """The arrays of N(v), or N(v) ∪ {v}, with the bits of `neighbourhoods`."""
    n_nodes, chunks = store.n_nodes, row_chunks(store.indptr)
    missing = np.zeros(n_nodes, bool)  # rows that get their own node
    for rows in chunks if rule.closed else ():
        indptr, indices, _ = graph_rows(store, rows)
        _find_missing(rows.start, indptr, indices, missing)
    indptr = FileArray.create(folder / "indptr.npy", (n_nodes + 1,), np.int64)
    before = 0
    for rows in chunks:
        added = np.cumsum(missing[rows])
        if rows.start == 0:
            indptr[0:1] = 0
        indptr[rows.start + 1 : rows.stop + 1] = store.indptr[rows.start + 1 : rows.stop + 1] + before + added
        before += int(added[-1]) if len(added) else 0
    n_entries = store.n_edges + before
    indices = FileArray.create(folder / "indices.npy", (n_entries,), store.indices.dtype)
    arrays = {"indptr": indptr, "indices": indices}
    kind = weights_kind(None if store.weights is None else store.weights.dtype, rule, dtype)
    if kind is not None:
        arrays["weights"] = FileArray.create(folder / "weights.npy", (n_entries,), kind)
    scale = _symmetric_scale(store, missing) if rule.weights == "symmetric" else None
    position = 0
    for rows in chunks:
        old, members, weights = graph_rows(store, rows)
        if rule.weights == "uniform":
            weights = None
        full, full_weights = with_loops(np.arange(rows.start, rows.stop), old, members, weights, missing[rows])
        entries = slice(position, position + len(full))
        indices[entries] = full
        if kind is not None:
            if scale is not None:
                check_weight_scale(full_weights, kind)
                received, sent = scale[0][rows].astype(kind), scale[1].astype(kind)
                sizes = np.diff(old) + missing[rows]
                scaled = sent[full]
                scaled *= np.repeat(received, sizes)
                full_weights = scaled if full_weights is None else scaled * full_weights
            arrays["weights"][entries] = full_weights
        position = entries.stop
        advance(len(members))
    return arrays


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


def _symmetric_scale(store: Store, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d_v^-½ of what every node receives and sends, the added loops included, float64."""
    received, sent = np.zeros(store.n_nodes), np.zeros(store.n_nodes)
    ones = np.ones(1)
    for rows in row_chunks(store.indptr):
        indptr, indices, weights = graph_rows(store, rows)
        nodes = np.arange(rows.start, rows.stop)
        full, full_weights = with_loops(nodes, indptr, indices, weights, missing[rows])
        offsets = indptr + np.append(0, np.cumsum(missing[rows]))
        _add_weights(rows.start, offsets, full, ones if full_weights is None else full_weights, received, sent)
    return inverse_sqrt_or_zero(received), inverse_sqrt_or_zero(sent)


def row_chunks(indptr: FileArray) -> list[slice]:
    """Consecutive rows that have about `_CHUNK_ENTRIES` entries together, and a row for each at most."""
    chunks, n_rows, start = [], len(indptr) - 1, 0
    while start < n_rows:
        offsets = indptr[start : min(start + _CHUNK_ENTRIES, n_rows) + 1]
        last = int(offsets.searchsorted(offsets[0] + _CHUNK_ENTRIES, side="right")) - 1
        stop = start + min(max(last, 1), len(offsets) - 1)
        chunks.append(slice(start, stop))
        start = stop
    return chunks


def graph_rows(store: Store, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """(offsets from zero, neighbours, weights) of consecutive rows of the graph."""
    indptr = store.indptr[rows.start : rows.stop + 1]
    entries = slice(int(indptr[0]), int(indptr[-1]))
    weights = None if store.weights is None else store.weights[entries]
    return indptr - indptr[0], store.indices[entries], weights


def _sent(indices: FileArray, weights: FileArray | None, n_points: int) -> np.ndarray:
    """Sums of the columns in the order of the entries, float64, as `np.bincount` adds them."""
    sent = np.zeros(n_points)
    ones = np.ones(1)
    for entries in indices.blocks():
        _count(indices[entries], ones if weights is None else weights[entries], sent)
    return sent


@compiled
def _find_missing(start, indptr, indices, missing):
    """Mark the rows that do not hold their own node."""
    for v in range(len(indptr) - 1):
        missing[start + v] = True
        for entry in range(indptr[v], indptr[v + 1]):
            if indices[entry] == start + v:
                missing[start + v] = False


@compiled
def _count(indices, weights, sent):
    """Add the weight of every entry to its point; one weight serves all."""
    step = 0 if len(weights) == 1 else 1
    for entry in range(len(indices)):
        sent[indices[entry]] += weights[entry * step]


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


# --- other rules, in memory -------------------------------------------------------------------------------


def _write_in_memory(folder: Path, store: Store, rule: Rule, dtype: Any, memory: int) -> dict[str, FileArray]:
    """The arrays of a rule that needs the whole graph."""
    needed = store.indptr.nbytes + _BYTES_PER_EDGE * store.n_edges
    if needed > memory:
        raise NotEnoughMemory(
            purpose=f"multiset={rule!r} on {store.n_edges:,} edges",
            needed=needed,
            available=memory,
            advice="allow more memory",
            settings={"multiset": "neighbourhood"},
        )
    sets = rule.sets(loaded_graph(store), None, dtype)
    arrays = {}
    for name in ("indptr", "indices", "weights"):
        values = getattr(sets, name)
        if values is not None:
            arrays[name] = FileArray.create(folder / f"{name}.npy", values.shape, values.dtype)
            arrays[name][:] = values
    return arrays


def loaded_graph(store: Store) -> Graph:
    """The graph of a store in memory, without its ids."""
    weights = None if store.weights is None else store.weights[:]
    return Graph(store.indptr[:], store.indices[:], weights)
