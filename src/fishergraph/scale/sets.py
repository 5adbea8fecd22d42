"""Multisets in files: built once from the graph of a store, and read by row blocks.

They are written to `multisets/KEY/` of the store, as compressed rows like the graph. KEY names the rule and its
options. Neighbourhoods are built by chunks of rows in a small amount of memory (`neighbours`); other multisets of nodes
are built in memory, if there is enough of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._compile import compiled
from fishergraph._errors import InputError, NotEnoughMemory
from fishergraph._records import unchecked
from fishergraph.graph import Graph
from fishergraph.multiset import Multisets, Neighbourhood, Rule
from fishergraph.multiset.members import SetsOfPoints
from fishergraph.multiset.split import SplitSets, part_rows, split_sets
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.folders import new_folder, read_json
from fishergraph.scale.neighbours import PARTS, neighbourhood_bytes, write_neighbourhoods
from fishergraph.scale.store import Store, array_entry, check_arrays, write_json

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


@dataclass(frozen=True)
class StoredSplitSets(StoredSets):
    """Multisets in files whose members are of several kinds. Row blocks and chosen rows are `SplitSets` in memory.

    parts : the kinds apart, over the same entries.
    kinds : their number.
    """

    parts: StoredSets
    kinds: int

    @property
    def nbytes(self) -> int:
        """The bytes of the sets in memory."""
        return super().nbytes + self.parts.indptr.nbytes

    def apart(self) -> StoredSets:
        """Return the sets of every kind, those of a row one after the other."""
        return self.parts

    def block(self, rows: slice) -> SplitSets:
        """Return the sets of consecutive rows."""
        start, stop, _ = rows.indices(self.n_sets)
        return split_sets(self.parts.block(slice(self.kinds * start, self.kinds * max(start, stop))), self.kinds)

    def take(self, rows: np.ndarray) -> SplitSets:
        """Return the sets of the given rows, in that order."""
        return split_sets(self.parts.take(part_rows(np.asarray(rows), self.kinds)), self.kinds)

    def loaded(self) -> SplitSets:
        """Return the sets in memory."""
        return split_sets(self.parts.loaded(), self.kinds)


def building_bytes(n_nodes: int, n_edges: int, sets: Any, rule: Rule) -> int:
    """The bytes of the arrays that building multisets takes; `sets` are the multisets, or their sizes."""
    weight = 0 if sets.weights is None else sets.weights.dtype.itemsize
    if not isinstance(rule, Neighbourhood):
        return 8 * n_nodes + _BYTES_PER_EDGE * n_edges
    return neighbourhood_bytes(n_nodes, n_edges, 4 + weight, rule)


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
            if isinstance(rule, Neighbourhood):
                arrays = write_neighbourhoods(part, store, rule, dtype, memory=memory, advance=advance)
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
    members = arrays["indices"], arrays.get("weights"), store.n_nodes
    if PARTS not in arrays:
        return StoredSets(arrays["indptr"], *members)
    kinds = (len(arrays[PARTS]) - 1) // max(store.n_nodes, 1)
    return StoredSplitSets(arrays["indptr"], *members, StoredSets(arrays[PARTS], *members), kinds)


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
    if rule.lifts or rule.signed:
        expected = "have single nodes as members for a graph in a store"
        advice = "use Neighbourhood(), Hops(), PageRank(), HeatKernel() or StepAverage()"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice=advice)
    if isinstance(rule, Neighbourhood) and rule.decay is not None:
        expected = "have no decay for a graph in a store, which keeps no times"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice="weigh the edges first")
    if rule.undirected and not store.facts.get("undirected"):
        expected = "add no reverse edges to a graph in a store, whose edges are as they were ingested"
        raise InputError(parameter="multiset", value=rule, expected=expected, advice="ingest it as an undirected graph")


def _sent(indices: FileArray, weights: FileArray | None, n_points: int) -> np.ndarray:
    """Sums of the columns in the order of the entries, float64, as `np.bincount` adds them."""
    sent = np.zeros(n_points)
    ones = np.ones(1)
    for entries in indices.blocks():
        _count(indices[entries], ones if weights is None else weights[entries], sent)
    return sent


@compiled
def _count(indices, weights, sent):
    """Add the weight of every entry to its point; one weight serves all."""
    step = 0 if len(weights) == 1 else 1
    for entry in range(len(indices)):
        sent[indices[entry]] += weights[entry * step]


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
