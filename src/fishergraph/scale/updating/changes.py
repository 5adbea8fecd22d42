"""What an update is asked to do, in row numbers: edges and nodes that come and go, and features that change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from fishergraph._arrays import as_floats, check_finite_rows
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import check_weights
from fishergraph.io.columns import check_edge_table, edge_table
from fishergraph.io.tables import read_edges, read_nodes
from fishergraph.scale.arrays import FileRows
from fishergraph.scale.store import Store
from fishergraph.scale.updating.ids import NodeIds

UNKNOWN = ("error", "drop", "add")
_FIRST = 5


@dataclass(frozen=True)
class EdgeChange:
    """Edges by the rows of their ends: row `targets[k]` lists `sources[k]`.

    numbers : of the edges in what was passed.
    """

    targets: np.ndarray
    sources: np.ndarray
    weights: np.ndarray | None
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)

    def both_ways(self) -> EdgeChange:
        """The same edges and their reverses."""
        weights = None if self.weights is None else np.tile(self.weights, 2)
        ends = self.targets, self.sources
        return EdgeChange(np.concatenate(ends), np.concatenate(ends[::-1]), weights, np.tile(self.numbers, 2))


@dataclass(frozen=True)
class Change:
    """What an update does.

    n_nodes : nodes afterwards; new ones follow the others.
    new_ids : their ids, or None if ids are row numbers.
    rows, X : rows with other features, which rise, and these features.
    added, dropped : edges.
    removed : rows of nodes that go.
    revived : rows of nodes that were removed earlier, and are there again.
    n_unknown : edges that were left out since a node of theirs is not there.
    """

    n_nodes: int
    new_ids: np.ndarray | None
    rows: np.ndarray
    X: Any
    added: EdgeChange
    dropped: EdgeChange
    removed: np.ndarray
    revived: np.ndarray
    n_unknown: int


def read_change(store: Store, edges: Any, nodes: Any, remove: Any, remove_nodes: Any, unknown: str) -> Change:
    """Return what is asked for; raises unless it fits the store."""
    ids, both = NodeIds(store), bool(store.facts.get("undirected"))
    node_ids, X = _read_nodes(store, nodes, ids)
    known = ids.rows(node_ids, removed=True)
    fresh = node_ids[known < 0]
    tables = [_edge_columns(table, name) for table, name in ((edges, "edges"), (remove, "remove"))]
    ends = [
        [ids.as_ids(column, name) for column in table[:2]]
        for table, name in zip(tables, ("edges", "remove"), strict=True)
    ]
    if unknown == "add":
        new = np.unique(np.concatenate(ends[0])) if len(ends[0][0]) else node_ids[:0]
        new = new[(ids.rows(new) < 0) & ~np.isin(new, node_ids)]
        back = ids.rows(new, removed=True)
        known, node_ids = np.append(known, back[back >= 0]), np.append(node_ids, new[back >= 0])
        fresh = np.append(fresh, new[back < 0])
    _check_new(store, fresh)
    order = np.argsort(fresh) if store.ids is None else np.arange(len(fresh))
    placed = _Placed(ids, node_ids, known, fresh[order], store.n_nodes)
    added, n_added = placed.edges("edges", ends[0], tables[0][2], unknown)
    dropped, n_dropped = placed.edges("remove", ends[1], None, "drop" if unknown == "drop" else "error")
    revived = np.intersect1d(known, ids.removed)
    n_nodes = store.n_nodes + len(fresh)
    rows, values = _features(store, placed, node_ids, X, revived, n_nodes)
    removed = _removed(ids, remove_nodes)
    return Change(
        n_nodes=n_nodes,
        new_ids=None if store.ids is None else fresh[order],
        rows=rows,
        X=values,
        added=added.both_ways() if both else added,
        dropped=dropped.both_ways() if both else dropped,
        removed=removed,
        revived=revived,
        n_unknown=n_added + n_dropped,
    )


class _Placed:
    """Rows of ids, those of new nodes too."""

    def __init__(self, ids: NodeIds, node_ids: np.ndarray, known: np.ndarray, fresh: np.ndarray, n_nodes: int):
        self.ids, self.n_nodes = ids, n_nodes
        names = [*fresh.tolist(), *node_ids[known >= 0].tolist()]
        rows = [*range(n_nodes, n_nodes + len(fresh)), *known[known >= 0].tolist()]
        self.own = dict(zip(names, rows, strict=True))  # new nodes, and those that are there again

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        names, where = np.unique(wanted, return_inverse=True)
        found = self.ids.rows(names)
        for k in np.flatnonzero(found < 0).tolist():
            found[k] = self.own.get(names[k], -1)
        return found[where]

    def edges(self, name: str, ends: list[np.ndarray], weights: Any, unknown: str) -> tuple[EdgeChange, int]:
        """The edges by rows, and how many were left out."""
        sources, targets = self.rows(ends[0]), self.rows(ends[1])
        left = (sources < 0) | (targets < 0)
        if left.any() and unknown == "error":
            where = np.flatnonzero(left)[:_FIRST].tolist()
            first = [(k, (ends[0] if sources[k] < 0 else ends[1])[k]) for k in where]
            raise self.ids.unknown(name, first, int(left.sum()))
        kept = np.flatnonzero(~left)
        weights = None if weights is None else weights[kept]
        return EdgeChange(targets[kept], sources[kept], weights, kept), int(left.sum())


def _edge_columns(edges: Any, name: str) -> tuple[Any, Any, np.ndarray | None]:
    """Sources, targets and weights of a table, a file, a list of tuples or a (2, E) array."""
    if edges is None:
        return np.empty(0, np.int64), np.empty(0, np.int64), None
    if isinstance(edges, str | Path):
        edges = read_edges(edges)
    if isinstance(edges, list):
        edges = edge_table(edges)
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.shape[0] == 2 and edges.dtype.kind in "iu":
        edges = pa.table({"source": edges[0], "target": edges[1]})
    columns = check_edge_table(edges)
    if columns is None:
        expected = "be a path, an edge table, a list of tuples or a (2, E) integer array"
        raise InputTypeError(parameter=name, value=edges, expected=expected, got=type(edges).__name__)
    source, target, weights = columns
    if weights is not None:
        weights = check_weights(weights, len(source), lambda i: f"{source[i]} -> {target[i]}")
    return source, target, weights


def sparse_rows(X: Any, places: np.ndarray, rows: np.ndarray, shape: tuple[int, int], dtype: Any) -> sp.csr_array:
    """A sparse matrix whose rows at `places` are `rows` of X, and zero elsewhere."""
    if len(places) == 0:
        return sp.csr_array(shape, dtype=dtype)
    order = sp.csr_array((np.ones(len(places), dtype), (places, rows)), shape=(shape[0], X.shape[0]))
    picked = sp.csr_array(order @ sp.csr_array(X).astype(dtype))
    picked.sum_duplicates()
    return picked


def _in_order(X: Any, columns: list[str], store: Store) -> Any:
    """Features of a file in the order of those of the store, which have names."""
    names = store.feature_names
    if names is None or columns == names:
        return X
    missing = sorted(set(names) - set(columns), key=names.index)
    if missing:
        expected = f"have the {len(names):,} columns of the store"
        got = f"none of the name {missing[0]!r}" + (f" and {len(missing) - 1:,} others" if len(missing) > 1 else "")
        raise InputError(parameter="nodes", expected=expected, got=got, advice="rename the columns of the file")
    return X[:, [columns.index(name) for name in names]]


def _read_nodes(store: Store, nodes: Any, ids: NodeIds) -> tuple[np.ndarray, Any]:
    """The ids of the nodes that were passed, and their features."""
    if nodes is None:
        return ids.as_ids(pa.array([], pa.string() if ids.is_text else pa.int64()), "nodes"), None
    if isinstance(nodes, str | Path):
        names, X, columns = read_nodes(nodes, only=store.feature_names)
        X = _in_order(X, columns, store)
    elif isinstance(nodes, tuple) and len(nodes) == 2:
        names, X = nodes
    else:
        expected = "be a path, or a pair of ids and features"
        raise InputTypeError(parameter="nodes", value=nodes, expected=expected, got=type(nodes).__name__)
    names = ids.as_ids(np.asarray(names).tolist(), "nodes")
    if len(np.unique(names)) < len(names):
        raise InputError(parameter="the ids of nodes", expected="be distinct", got="an id twice")
    if X is None:
        X = np.zeros((len(names), 0), np.float32)
    if X.shape[0] != len(names):
        raise InputError(parameter="nodes", value=X.shape[0], expected=f"have {len(names)} rows, one for each id")
    width = X.shape[1]
    if width != store.n_features:
        expected = f"have the {store.n_features:,} features of the store"
        raise InputError(parameter="nodes", value=width, expected=expected, advice="pass the columns of the store")
    if not width:
        return names, None
    X = as_floats(X, "nodes")
    check_finite_rows(X, "nodes")
    return names, X


def _check_new(store: Store, fresh: np.ndarray) -> None:
    """Raise unless new nodes of a store whose ids are row numbers are the next ones."""
    if store.ids is not None or len(fresh) == 0:
        return
    ranked = np.sort(fresh)
    if ranked[0] != store.n_nodes or ranked[-1] != store.n_nodes + len(fresh) - 1:
        expected = f"be the next row numbers, {store.n_nodes:,} to {store.n_nodes + len(fresh) - 1:,}"
        wrong = ranked[ranked != store.n_nodes + np.arange(len(fresh))][0]
        advice = "ids are row numbers in this store: leave none out"
        raise InputError(parameter="new nodes", value=int(wrong), expected=expected, advice=advice)


def _features(
    store: Store, placed: _Placed, node_ids: np.ndarray, X: Any, revived: np.ndarray, n_nodes: int
) -> tuple[np.ndarray, Any]:
    """The rows that get other features, and these; new nodes that were not described get zeros."""
    if store.features is None:
        return np.empty(0, np.int64), None
    given = np.empty(0, np.int64) if X is None else placed.rows(node_ids[: X.shape[0]])
    rows = np.union1d(np.union1d(given, revived), np.arange(store.n_nodes, n_nodes))
    dtype, width = store.features.dtype, store.n_features
    if sp.issparse(X) or isinstance(store.features, FileRows):
        shape = (len(rows), width)
        sparse = sparse_rows(X, np.searchsorted(rows, given), np.arange(len(given)), shape, dtype)
        return rows, sparse if isinstance(store.features, FileRows) else sparse.toarray()
    values = np.zeros((len(rows), width), dtype)
    if X is not None:
        values[np.searchsorted(rows, given)] = X
        check_finite_rows(values, "nodes")
    return rows, values


def _removed(ids: NodeIds, remove_nodes: Any) -> np.ndarray:
    """The rows of the nodes that go."""
    if remove_nodes is None:
        return np.empty(0, np.int64)
    if isinstance(remove_nodes, str | Path):
        remove_nodes = read_nodes(remove_nodes)[0]
    names = ids.as_ids(np.asarray(remove_nodes).tolist(), "remove_nodes")
    rows = ids.rows(names)
    if (rows < 0).any():
        count, first = int((rows < 0).sum()), names[rows < 0][:_FIRST].tolist()
        expected = "be nodes of the store"
        got = f"{count:,} others: {', '.join(map(repr, first))}" + (", …" if count > _FIRST else "")
        raise InputError(parameter="remove_nodes", value=first[0], expected=expected, got=got)
    return np.unique(rows)
