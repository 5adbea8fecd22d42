"""`Graphs`: several graphs as one disjoint union, with the data of their nodes.

The nodes of graph g are the rows graph_ptr[g] … graph_ptr[g + 1] − 1 of one graph without edges between them. Nodes
have features (vectors), tags (one label per node, integers or text) and tags of their edges; all graphs have them, or
none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import Index, as_indices, as_offsets, normalise, unchecked
from fishergraph._repr import short_repr
from fishergraph.graph import Graph


class EdgeTags(NamedTuple):
    """One label per edge and end: edge k ends at node nodes[k] and has the tag tags[k]."""

    nodes: np.ndarray
    tags: np.ndarray

    __repr__ = short_repr


NO_EDGE_TAGS = EdgeTags(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class Graphs:
    """Several graphs as one disjoint union.

    `as_graphs` makes it from a list. Indexing gives some of the graphs, as a `Graphs` again.

    Parameters
    ----------
    graph : Graph
        The union of all graphs.
    graph_ptr : array of shape (n_graphs + 1,), int64
        The first node of every graph, and the number of all nodes.
    X : array or CSR array of shape (n_nodes, n_features), default=None
        Features.
    tags : array of shape (n_nodes,), default=None
        Integers or text.
    edge_tags : EdgeTags, default=None
        Tags of edges.

    See Also
    --------
    as_graphs : Graphs from a list of graph objects.

    Examples
    --------
    >>> from fishergraph import as_graphs
    >>> graphs = as_graphs([[(0, 1), (1, 2)], [(0, 1)]], undirected=True)
    >>> graphs
    Graphs(2 graphs: 5 nodes, 6 directed edges)
    >>> graphs[1].graph
    Graph(2 nodes, 2 edges)
    """

    graph: Graph
    graph_ptr: np.ndarray
    X: Any = None  # an array or CSR array
    tags: np.ndarray | None = None
    edge_tags: EdgeTags | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.graph, Graph):
            got, advice = type(self.graph).__name__, "use as_graphs"
            raise InputTypeError(parameter="graph", expected="be a Graph, the union of all", got=got, advice=advice)
        n_nodes, graph_ptr = self.graph.n_nodes, as_offsets(self.graph_ptr)
        if graph_ptr[0] != 0 or graph_ptr[-1] != n_nodes:
            expected, got = f"go from 0 to the {n_nodes} nodes", f"{graph_ptr[0]} to {graph_ptr[-1]}"
            advice = "count the nodes of each graph with np.cumsum"
            raise InputError(parameter="graph_ptr", expected=expected, got=got, advice=advice)
        _check_disjoint(self.graph, graph_ptr)
        X: Any = sp.csr_array(check_compressed(self.X, "X")) if sp.issparse(self.X) else self.X
        matrix = X is None or isinstance(X, np.ndarray) or sp.issparse(X)
        if not matrix or (X is not None and (X.ndim != 2 or X.shape[0] != n_nodes or X.dtype.kind not in "fiub")):
            expected = f"be a matrix of numbers with {n_nodes} rows, one per node"
            raise InputError(parameter="X", expected=expected, got=_shape_and_dtype(X))
        if self.tags is not None:
            _check_tags(self.tags, n_nodes, "tags", "node")
        edge_tags = self.edge_tags
        if edge_tags is not None:
            edge_tags = EdgeTags(as_indices(edge_tags[0], slice(None), n_nodes), edge_tags[1])
            _check_tags(edge_tags.tags, len(edge_tags.nodes), "edge_tags", "edge end")
        normalise(self, graph_ptr=graph_ptr, X=X, edge_tags=edge_tags)

    def __len__(self) -> int:
        return len(self.graph_ptr) - 1

    @property
    def shape(self) -> tuple[int]:
        """(number of graphs,), which scikit-learn needs for graphs[rows]."""
        return (len(self),)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return int(self.graph_ptr[-1])

    def __iter__(self) -> Iterator[Graphs]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Index) -> Graphs:
        """Some of the graphs, by index, slice, mask or indices; one index gives a union of one graph."""
        key = key[0] if isinstance(key, tuple) else key
        chosen = np.atleast_1d(np.arange(len(self))[key])
        starts, sizes = self.graph_ptr[chosen], np.diff(self.graph_ptr)[chosen]
        graph_ptr = offsets(sizes)
        nodes = np.repeat(starts - graph_ptr[:-1], sizes) + np.arange(graph_ptr[-1])
        return unchecked(
            Graphs,
            _take_rows(self.graph, nodes, np.repeat(graph_ptr[:-1] - starts, sizes)),
            graph_ptr,
            None if self.X is None else self.X[nodes],
            None if self.tags is None else self.tags[nodes],
            None if self.edge_tags is None else _take_edge_tags(self.edge_tags, nodes, self.n_nodes),
        )

    def __repr__(self) -> str:
        fields = [name for name in ("X", "tags", "edge_tags") if getattr(self, name) is not None]
        more = f" with {', '.join(fields)}" if fields else ""
        return f"Graphs({len(self):,} graphs: {self.n_nodes:,} nodes, {self.graph.n_edges:,} directed edges{more})"


def offsets(sizes: np.ndarray) -> np.ndarray:
    """0, s_0, s_0 + s_1, …: the starts of consecutive ranges of these sizes."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _check_disjoint(graph: Graph, graph_ptr: np.ndarray) -> None:
    """Raise if an edge joins two graphs. The members of a row are sorted, so the first and the last suffice."""
    sizes = np.diff(graph_ptr)
    filled = np.flatnonzero(np.diff(graph.indptr))
    starts, stops = np.repeat(graph_ptr[:-1], sizes)[filled], np.repeat(graph_ptr[1:], sizes)[filled]
    first, last = graph.indices[graph.indptr[filled]], graph.indices[graph.indptr[filled + 1] - 1]
    across = np.flatnonzero((first < starts) | (last >= stops))
    if len(across):
        got = f"one that leaves the graph of node {filled[across[0]]} (the first bad one)"
        advice = "repair graph_ptr or drop such edges"
        raise InputError(parameter="edges", expected="stay within one graph", got=got, advice=advice)


def _shape_and_dtype(array: Any) -> str:
    """Words for what was passed in place of an array."""
    return f"shape {array.shape} and dtype {array.dtype}" if hasattr(array, "dtype") else type(array).__name__


def _check_tags(tags: object, n: int, name: str, what: str) -> None:
    """Raise unless tags are an array of n integers or texts."""
    if not isinstance(tags, np.ndarray) or tags.shape != (n,) or tags.dtype.kind not in "iuU":
        expected = f"be an array of integers or text, one for each of the {n} {what}s"
        raise InputError(parameter=name, expected=expected, got=_shape_and_dtype(tags), advice="use as_graphs")


def _take_rows(graph: Graph, nodes: np.ndarray, shift: np.ndarray) -> Graph:
    """The rows of complete graphs, in that order; `shift` is added to the indices of a row."""
    degrees = np.diff(graph.indptr)[nodes]
    indptr = offsets(degrees)
    entries = np.repeat(graph.indptr[nodes] - indptr[:-1], degrees) + np.arange(indptr[-1])
    indices = (graph.indices[entries] + np.repeat(shift, degrees)).astype(graph.indices.dtype)
    return unchecked(Graph, indptr, indices, None if graph.weights is None else graph.weights[entries])


def _take_edge_tags(edge_tags: EdgeTags, nodes: np.ndarray, n_nodes: int) -> EdgeTags:
    """The tags at some nodes, under their new indices; a node taken twice has them twice."""
    order = np.argsort(edge_tags.nodes, kind="stable")
    indptr = offsets(np.bincount(edge_tags.nodes, minlength=n_nodes))
    sizes = np.diff(indptr)[nodes]
    starts = offsets(sizes)
    entries = order[np.repeat(indptr[nodes] - starts[:-1], sizes) + np.arange(starts[-1])]
    return EdgeTags(np.repeat(np.arange(len(nodes)), sizes), edge_tags.tags[entries])
