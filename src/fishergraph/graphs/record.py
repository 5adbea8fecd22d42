"""`Graphs`: several graphs as one disjoint union, with what their nodes carry.

A `Graphs` record holds all graphs as one graph without edges between them: the nodes of graph g are the rows
graph_ptr[g] … graph_ptr[g + 1] − 1. Beside them stand what the nodes carry: features (vectors), tags (one label per
node, numbers or texts), and the tags of their edges; each is there for all graphs or for none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._checks import check_compressed
from fishergraph._record_checks import as_indices, as_offsets, normalise, unchecked
from fishergraph._repr import short_repr
from fishergraph.graph import Graph


class EdgeTags(NamedTuple):
    """One label per edge and end: edge k ends at node nodes[k] and carries tags[k]."""

    nodes: np.ndarray
    tags: np.ndarray

    __repr__ = short_repr


NO_EDGE_TAGS = EdgeTags(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class Graphs:
    """Several graphs as one disjoint union.

    graph      the union, a `Graph`
    graph_ptr  int64, (graph + 1,): the first node of every graph, and the number of all nodes
    X          features (node, feature), dense or CSR, or None
    tags       (node,), whole numbers or texts, or None
    edge_tags  the tags of edges, or None

    The fields are checked once, when the record is made.
    """

    graph: Graph
    graph_ptr: np.ndarray
    X: Any = None
    tags: np.ndarray | None = None
    edge_tags: EdgeTags | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.graph, Graph):
            raise TypeError(f"graph must be a Graph, the union of all, got {type(self.graph).__name__}; use as_graphs.")
        n_nodes, graph_ptr = self.graph.n_nodes, as_offsets(self.graph_ptr)
        if graph_ptr[0] != 0 or graph_ptr[-1] != n_nodes:
            raise ValueError(
                f"graph_ptr must go from 0 to the {n_nodes} nodes, got {graph_ptr[0]} to {graph_ptr[-1]}; "
                "count the nodes of each graph with np.cumsum."
            )
        _check_disjoint(self.graph, graph_ptr)
        X = None if self.X is None else _node_features(self.X, n_nodes)
        if self.tags is not None:
            _check_tags(self.tags, n_nodes, "tags", "node")
        edge_tags = None if self.edge_tags is None else _end_tags(self.edge_tags, n_nodes)
        normalise(self, graph_ptr=graph_ptr, X=X, edge_tags=edge_tags)

    def __len__(self) -> int:
        return len(self.graph_ptr) - 1

    @property
    def shape(self) -> tuple[int]:
        """(number of graphs,): with it scikit-learn cuts out graphs[rows] in cross-validation."""
        return (len(self),)

    @property
    def n_nodes(self) -> int:
        """The number of nodes of all graphs."""
        return int(self.graph_ptr[-1])

    def __iter__(self) -> Iterator[Graphs]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Graphs:
        """Some of the graphs, by number, slice, mask or numbers; one number gives one graph, as a union of one."""
        key = key[0] if isinstance(key, tuple) else key
        chosen = np.atleast_1d(np.arange(len(self))[key])
        starts, sizes = self.graph_ptr[chosen], np.diff(self.graph_ptr)[chosen]
        graph_ptr = offsets(sizes)
        nodes = np.repeat(starts - graph_ptr[:-1], sizes) + np.arange(graph_ptr[-1])
        graph = _take_rows(self.graph, nodes, np.repeat(graph_ptr[:-1] - starts, sizes))
        return unchecked(
            Graphs,
            graph,
            graph_ptr,
            None if self.X is None else self.X[nodes],
            None if self.tags is None else self.tags[nodes],
            None if self.edge_tags is None else _take_edge_tags(self.edge_tags, nodes, self.n_nodes),
        )

    def __repr__(self) -> str:
        has = [name for name in ("X", "tags", "edge_tags") if getattr(self, name) is not None]
        with_ = f" with {', '.join(has)}" if has else ""
        return f"Graphs({len(self):,} graphs: {self.n_nodes:,} nodes, {self.graph.n_edges:,} directed edges{with_})"


def offsets(sizes: np.ndarray) -> np.ndarray:
    """0, s_0, s_0 + s_1, …: where parts of these sizes begin."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _check_disjoint(graph: Graph, graph_ptr: np.ndarray) -> None:
    """Raise where an edge joins two graphs. The members of a row are sorted, so the first and the last tell."""
    sizes = np.diff(graph_ptr)
    filled = np.flatnonzero(np.diff(graph.indptr))
    starts, stops = np.repeat(graph_ptr[:-1], sizes)[filled], np.repeat(graph_ptr[1:], sizes)[filled]
    first, last = graph.indices[graph.indptr[filled]], graph.indices[graph.indptr[filled + 1] - 1]
    across = np.flatnonzero((first < starts) | (last >= stops))
    if len(across):
        raise ValueError(
            f"edges must stay within one graph, got one that leaves the graph of node {filled[across[0]]} (the first "
            "bad one); repair graph_ptr or drop such edges."
        )


def _node_features(X: Any, n_nodes: int) -> Any:
    """Features as an array or CSR, one row of numbers per node."""
    X = sp.csr_array(check_compressed(X, "X")) if sp.issparse(X) else X
    known = isinstance(X, np.ndarray) or sp.issparse(X)
    if not known or X.ndim != 2 or X.shape[0] != n_nodes or X.dtype.kind not in "fiub":
        got = f"shape {X.shape} and dtype {X.dtype}" if known else type(X).__name__
        raise ValueError(
            f"X must be a matrix of numbers with {n_nodes} rows, one per node, got {got}; pass such a one."
        )
    return X


def _check_tags(tags: Any, n: int, name: str, what: str) -> None:
    """Raise unless tags are an array of integers or texts, one each."""
    if not isinstance(tags, np.ndarray) or tags.shape != (n,) or tags.dtype.kind not in "iuU":
        got = f"shape {tags.shape} and dtype {tags.dtype}" if isinstance(tags, np.ndarray) else type(tags).__name__
        raise ValueError(
            f"{name} must be an array of integers or texts, one for each of the {n} {what}s, got {got}; use as_graphs."
        )


def _end_tags(edge_tags: Any, n_nodes: int) -> EdgeTags:
    """The tags of edges, at nodes that exist."""
    nodes, tags = edge_tags
    nodes = as_indices(nodes, slice(None), n_nodes)
    _check_tags(tags, len(nodes), "edge_tags", "edge end")
    return EdgeTags(nodes, tags)


def _take_rows(graph: Graph, nodes: np.ndarray, shift: np.ndarray) -> Graph:
    """The rows of whole graphs, in that order; `shift` is what the numbers of a row's graph change by."""
    degrees = np.diff(graph.indptr)[nodes]
    indptr = offsets(degrees)
    entries = np.repeat(graph.indptr[nodes] - indptr[:-1], degrees) + np.arange(indptr[-1])
    indices = (graph.indices[entries] + np.repeat(shift, degrees)).astype(graph.indices.dtype)
    return unchecked(Graph, indptr, indices, None if graph.weights is None else graph.weights[entries])


def _take_edge_tags(edge_tags: EdgeTags, nodes: np.ndarray, n_nodes: int) -> EdgeTags:
    """The tags at the given nodes, under their new numbers; a node taken twice has them twice."""
    order = np.argsort(edge_tags.nodes, kind="stable")
    indptr = offsets(np.bincount(edge_tags.nodes, minlength=n_nodes))
    sizes = np.diff(indptr)[nodes]
    starts = offsets(sizes)
    entries = order[np.repeat(indptr[nodes] - starts[:-1], sizes) + np.arange(starts[-1])]
    return EdgeTags(np.repeat(np.arange(len(nodes)), sizes), edge_tags.tags[entries])
