"""The changed graph of a store, written beside it: rows that change are replaced, all others are copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph._version import __version__
from fishergraph.multiset import Neighbourhood, Rule
from fishergraph.scale.arrays import FileArray, FileRows
from fishergraph.scale.commit import linked
from fishergraph.scale.neighbours import row_chunks, weights_kind, with_loops
from fishergraph.scale.sets import (
    StoredSets,
    build_sets,
    graph_digest,
    open_sets,
    sets_key,
)
from fishergraph.scale.stage_rows import different_rows
from fishergraph.scale.store import FORMAT, FORMAT_VERSION, MANIFEST, Store, array_entry, write_json
from fishergraph.scale.updating.changes import Change, sparse_rows
from fishergraph.scale.updating.kernels import mark_changed, mark_rows, splice
from fishergraph.scale.updating.patched import PatchedRows, copied

_FIRST = 5
_MANY_NODES = 2**31
GRAPH = ("indptr", "indices", "weights")


@dataclass(frozen=True)
class SparseRows:
    """Rows of a sparse matrix in memory, for the rows of `numbers`, which rise."""

    numbers: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray | None


@dataclass(frozen=True)
class StagedGraph:
    """The changed store.

    store : opened where it was written.
    rows : rows of the graph that changed, and those of new nodes.
    X_rows : rows whose features changed, and those of new nodes.
    files : the new files, relative to the store.
    n_edges_added, n_edges_removed : stored edges that came and went.
    """

    store: Store
    rows: SparseRows
    X_rows: np.ndarray
    files: list[str]
    n_edges_added: int
    n_edges_removed: int


def stage_graph(store: Store, change: Change, folder: Path, *, strict: bool) -> StagedGraph:
    """Write the changed graph to a folder; edges to remove that are not there are an error if `strict`."""
    rows, n_added, n_removed = changed_rows(store, change, strict=strict)
    names, written = dict(store.manifest["arrays"]), {}
    if len(rows.numbers):
        pieces = store.indptr, store.indices, store.weights
        dtype = np.int64 if change.n_nodes >= _MANY_NODES else store.indices.dtype
        written |= write_spliced(folder, pieces, rows, change.n_nodes, dtype, GRAPH)
    X_rows = np.empty(0, np.int64)
    if store.features is not None:
        X_rows, arrays = _write_features(store, change, folder)
        written |= arrays
    written |= _write_ids(store, change, folder)
    kept = [store.path / f"{name}.npy" for name in names if name not in written]
    linked(kept, folder)
    entries = {name: array_entry(written[name]) if name in written else names[name] for name in {**names, **written}}
    manifest = {**store.manifest, "format": FORMAT, "format_version": FORMAT_VERSION, "fishergraph": __version__}
    write_json(folder / MANIFEST, {**manifest, "arrays": entries})
    files = [*(f"{name}.npy" for name in written), MANIFEST]
    return StagedGraph(Store(folder), rows, X_rows, files, n_added, n_removed)


def changed_rows(store: Store, change: Change, *, strict: bool) -> tuple[SparseRows, int, int]:
    """The rows of the graph that change, and how many stored edges come and go."""
    added, dropped, n_old = change.added, change.dropped, store.n_nodes
    if added.weights is not None and store.weights is None and (added.weights != 1).any():
        advice = "leave them out, or ingest the graph with weights"
        raise InputError(parameter="edges", expected="have no weights, as the store", got="weights", advice=advice)
    gone = np.zeros(change.n_nodes, bool)
    gone[change.removed] = True
    parts = [added.targets, dropped.targets, change.removed, np.arange(n_old, change.n_nodes)]
    if len(change.removed):
        parts.append(rows_that_list(store.indptr, store.indices, gone))
    numbers = np.unique(np.concatenate(parts))
    graph = StoredSets(store.indptr, store.indices, store.weights, n_old)
    old = graph.take(numbers[numbers < n_old])
    n_rows = int((numbers < n_old).sum())
    places = np.repeat(np.arange(n_rows), np.diff(old.indptr))
    keys = places * change.n_nodes + old.indices
    more = np.searchsorted(numbers, added.targets) * change.n_nodes + added.sources
    left = np.searchsorted(numbers, dropped.targets) * change.n_nodes + dropped.sources
    if strict:
        _check_there(store, dropped, np.isin(left, keys))
    weights: Any = None
    if store.weights is not None:
        own = np.ones(len(more), store.weights.dtype) if added.weights is None else added.weights
        weights = np.concatenate([np.asarray(old.weights), own.astype(store.weights.dtype)])
    every = np.concatenate([keys, more])
    order = np.argsort(every, kind="stable")
    ranked = every[order]
    last = np.append(ranked[1:] != ranked[:-1], True) if len(ranked) else np.zeros(0, bool)  # a new weight replaces
    kept, order = ranked[last], order[last]
    stays = ~np.isin(kept, left)
    if len(change.removed):
        stays &= ~(gone[kept % change.n_nodes] | gone[numbers[kept // change.n_nodes]])
    kept, order = kept[stays], order[stays]
    indptr = np.searchsorted(kept, np.arange(len(numbers) + 1) * change.n_nodes)
    values = None if weights is None else weights[order]
    rows = SparseRows(numbers, indptr.astype(np.int64), kept % change.n_nodes, values)
    n_same = int(np.isin(kept, keys).sum())
    return _only_different(rows, old, n_rows), len(kept) - n_same, len(np.unique(keys)) - n_same


def _only_different(rows: SparseRows, old: Any, n_rows: int) -> SparseRows:
    """The rows without those that are as they were."""
    found = np.zeros(len(rows.numbers), bool)
    found[n_rows:] = True
    pairs: list[tuple[Any, Any]] = [(old.indices.astype(np.int64), rows.indices)]
    if rows.values is not None:
        pairs.append((_as_integers(old.weights), _as_integers(rows.values)))
    for before, after in pairs:
        mark_changed(old.indptr, before, rows.indptr[: n_rows + 1], after, found)
    sizes = np.diff(rows.indptr)
    entries = np.repeat(found, sizes)
    indptr = np.append(0, np.cumsum(sizes[found]))
    values = None if rows.values is None else rows.values[entries]
    return SparseRows(rows.numbers[found], indptr, rows.indices[entries], values)


def _check_there(store: Store, dropped: Any, there: np.ndarray) -> None:
    """Raise if edges that are to go are not in the graph."""
    missing = np.flatnonzero(~there)
    if len(missing) == 0:
        return
    numbers = np.unique(dropped.numbers[missing])
    words = []
    for k in missing[:_FIRST].tolist():
        ends = [
            row if store.ids is None else store.ids[row : row + 1][0]
            for row in (int(dropped.sources[k]), int(dropped.targets[k]))
        ]
        words.append(f"{ends[0]!r} to {ends[1]!r}")
    raise InputError(
        parameter="remove",
        value=int(numbers[0]),
        expected="list edges of the store",
        got=f"{len(numbers):,} that are not there: {', '.join(words)}" + (", …" if len(missing) > _FIRST else ""),
        advice="leave them out",
        settings={"unknown": "drop"},
    )


def rows_that_list(indptr: FileArray, indices: FileArray, marked: np.ndarray) -> np.ndarray:
    """The rows of a sparse matrix in files that list a marked column."""
    found = np.zeros(len(indptr) - 1, bool)
    for rows in row_chunks(indptr):
        offsets = indptr[rows.start : rows.stop + 1]
        mark_rows(offsets - offsets[0], indices[int(offsets[0]) : int(offsets[-1])], marked, found[rows])
    return np.flatnonzero(found)


def write_spliced(
    folder: Path,
    pieces: tuple[FileArray, FileArray, FileArray | None],
    rows: SparseRows,
    n_rows: int,
    dtype: Any,
    names: tuple[str, str, str],
) -> dict[str, FileArray]:
    """Write a sparse matrix of files with other rows in the place of some, and with new rows."""
    indptr, indices, values = pieces
    n_old = len(indptr) - 1
    place = np.full(n_rows, -1, np.int64)
    place[rows.numbers] = np.arange(len(rows.numbers))
    replaced = rows.numbers[rows.numbers < n_old]
    n_entries = len(indices) - int((indptr[replaced + 1] - indptr[replaced]).sum()) + len(rows.indices)
    out = {names[0]: FileArray.create(folder / f"{names[0]}.npy", (n_rows + 1,), np.int64)}
    out[names[1]] = FileArray.create(folder / f"{names[1]}.npy", (n_entries,), dtype)
    if values is not None:
        out[names[2]] = FileArray.create(folder / f"{names[2]}.npy", (n_entries,), values.dtype)
    chunks = [*row_chunks(indptr), *([slice(n_old, n_rows)] if n_rows > n_old else [])]
    sizes, done = np.diff(rows.indptr), 0
    for part in chunks:
        old = indptr[min(part.start, n_old) : min(part.stop, n_old) + 1]
        entries = slice(int(old[0]), int(old[-1]))
        here = place[part]
        counts = np.zeros(len(here), np.int64)
        counts[: len(old) - 1] = np.diff(old)
        counts[here >= 0] = sizes[here[here >= 0]]
        offsets = np.append(0, np.cumsum(counts))
        if part.start == 0:
            out[names[0]][0:1] = 0
        out[names[0]][part.start + 1 : part.stop + 1] = offsets[1:] + done
        sources: list[tuple[str, FileArray | None, Any]] = [
            (names[1], indices, rows.indices),
            (names[2], values, rows.values),
        ]
        for name, before, new in sources:
            if before is not None:
                block = np.empty(int(offsets[-1]), out[name].dtype)
                args = old - old[0], before[entries], here, rows.indptr, np.asarray(new).astype(block.dtype)
                splice(*args, offsets, block)
                out[name][done : done + len(block)] = block
        done += int(offsets[-1])
    return out


def _write_features(store: Store, change: Change, folder: Path) -> tuple[np.ndarray, dict[str, FileArray]]:
    """The rows whose features differ, and the new files."""
    features, n_old = store.features, store.n_nodes
    rows = np.union1d(change.rows, change.removed)
    if len(rows) == 0:
        return rows, {}
    where = np.searchsorted(rows, change.rows)
    if isinstance(features, FileRows):
        kept = ~np.isin(change.rows, change.removed)
        shape = (len(rows), features.shape[1])
        sparse: Any = sparse_rows(change.X, where[kept], np.flatnonzero(kept), shape, features.dtype)
        new = SparseRows(rows, sparse.indptr.astype(np.int64), sparse.indices, sparse.data)
        names = ("features_indptr", "features_indices", "features_data")
        pieces = features.indptr, features.indices, features.data
        return rows, write_spliced(folder, pieces, new, change.n_nodes, features.indices.dtype, names)
    assert isinstance(features, FileArray)
    values = np.zeros((len(rows), features.shape[1]), features.dtype)
    if len(change.rows):
        values[where] = change.X
    values[np.searchsorted(rows, change.removed)] = 0
    old = features[rows[rows < n_old]]
    different = np.append(different_rows(rows[: len(old)], values[: len(old)], old), rows[len(old) :])
    if len(different) == 0:
        return different, {}
    patched = PatchedRows(features, different, values[np.searchsorted(rows, different)], change.n_nodes)
    out = FileArray.create(folder / "features.npy", patched.shape, features.dtype)
    copied(patched, out)
    return different, {"features": out}


def _write_ids(store: Store, change: Change, folder: Path) -> dict[str, FileArray]:
    """The files of new ids, and of the rows of removed nodes."""
    out = {}
    removed = np.empty(0, np.int64) if store.removed is None else store.removed[:]
    now = np.setdiff1d(np.union1d(removed, change.removed), np.setdiff1d(change.revived, change.removed))
    if len(now) != len(removed) or (now != removed).any():
        out["removed"] = FileArray.create(folder / "removed.npy", now.shape, np.int64)
        out["removed"][:] = now
    if store.ids is None or change.new_ids is None or len(change.new_ids) == 0:
        return out
    if not store.ids.is_text:
        return {**out, "ids": _longer(store, "ids", change.new_ids.astype(np.int64), folder)}
    texts = [str(name).encode() for name in change.new_ids]
    start = store.manifest["arrays"]["ids_text"]["shape"][0]
    ends = start + np.cumsum([len(text) for text in texts])
    content = np.frombuffer(b"".join(texts), np.uint8)
    return {
        **out,
        "ids_text": _longer(store, "ids_text", content, folder),
        "ids_offsets": _longer(store, "ids_offsets", ends, folder),
    }


def _longer(store: Store, name: str, more: np.ndarray, folder: Path) -> FileArray:
    """A copy of an array of the store with more numbers."""
    old = FileArray(store.path / f"{name}.npy")
    n_rows = len(old) + len(more)
    out = FileArray.create(folder / f"{name}.npy", (n_rows,), old.dtype)
    copied(PatchedRows(old, np.arange(len(old), n_rows), more, n_rows), out)
    return out


# --- multisets ------------------------------------------------------------------------------------------


def stage_sets(
    store: Store, staged: StagedGraph, rule: Rule, dtype: Any, memory: int
) -> tuple[StoredSets, StoredSets, np.ndarray]:
    """The multisets before and after, and the rows that differ."""
    before = build_sets(store, rule, dtype, memory=memory)
    if graph_digest(store) == graph_digest(staged.store):
        folder = staged.store.path / "multisets" / sets_key(rule, dtype)
        if not folder.is_dir():
            folder.mkdir(parents=True)
            source = store.path / "multisets" / folder.name
            linked(sorted(source.iterdir()), folder)
        return before, open_sets(staged.store, folder), np.empty(0, np.int64)
    plain = isinstance(rule, Neighbourhood) and rule.direction in (None, "in") and rule.weights != "symmetric"
    if not plain:
        after = build_sets(staged.store, rule, dtype, memory=memory)
        return before, after, different_sets(before, after)
    rows = _neighbourhoods(store, staged.rows, rule, dtype)
    folder = staged.store.path / "multisets" / sets_key(rule, dtype)
    if not folder.is_dir():
        folder.mkdir(parents=True)
        pieces = before.indptr, before.indices, before.weights
        kind = staged.store.indices.dtype
        arrays = write_spliced(folder, pieces, rows, staged.store.n_nodes, kind, GRAPH)
        entries = {name: array_entry(array) for name, array in arrays.items()}
        manifest = {"rule": repr(rule), "graph": graph_digest(staged.store), "arrays": entries}
        write_json(folder / MANIFEST, manifest)
    return before, open_sets(staged.store, folder), rows.numbers


def _neighbourhoods(store: Store, rows: SparseRows, rule: Any, dtype: Any) -> SparseRows:
    """The multisets of rows of the graph."""
    values = rows.values
    kind = weights_kind(None if store.weights is None else store.weights.dtype, rule, dtype)
    values = None if kind is None or values is None else values.astype(kind)
    if not rule.closed:
        return SparseRows(rows.numbers, rows.indptr, rows.indices, values)
    owners = np.repeat(rows.numbers, np.diff(rows.indptr))
    missing = np.ones(len(rows.numbers), bool)
    missing[np.searchsorted(rows.numbers, owners[owners == rows.indices])] = False
    members, weights = with_loops(rows.numbers, rows.indptr, rows.indices, values, missing)
    return SparseRows(rows.numbers, rows.indptr + np.append(0, np.cumsum(missing)), members, weights)


def different_sets(before: StoredSets, after: StoredSets) -> np.ndarray:
    """The rows whose multisets differ, and new rows."""
    kinds, parts = before.kinds, (before.apart(), after.apart())
    found = np.zeros(parts[1].n_sets, bool)
    found[parts[0].n_sets :] = True
    for rows in row_chunks(parts[0].indptr):
        old, new = (part.block(rows) for part in parts)
        pairs: Mapping[str, tuple[Any, Any]] = {
            "indices": (old.indices, new.indices),
            "weights": (old.weights, new.weights),
        }
        for one, other in pairs.values():
            if one is not None:
                arrays = (_as_integers(one), _as_integers(other))
                mark_changed(old.indptr, arrays[0], new.indptr, arrays[1], found[rows])
    return np.flatnonzero(found.reshape(-1, kinds).any(axis=1))


def _as_integers(values: Any) -> np.ndarray:
    """The bytes of numbers as integers of their size."""
    values = np.ascontiguousarray(values)
    return values.view(np.dtype(f"i{values.dtype.itemsize}"))
