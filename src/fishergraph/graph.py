"""`as_graph` turns graph objects of many packages into compressed sparse rows and node ids.

Row v lists the nodes whose points enter the multiset of v. Two conventions lead there:

- a SciPy sparse matrix is the operator A of `A @ X`: row v holds the members of v;
- in an edge list *source sends to target*: the source enters the multiset of the target, as in PyTorch Geometric.
  `edge_index` is therefore the transpose of the operator.

Parallel edges add their weights, self-loops are kept, edges of weight zero are dropped, and direction is kept
(`undirected=True` symmetrises).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import (
    Index,
    as_indices,
    as_offsets,
    as_weights,
    changed,
    check_edge_index,
    check_endpoints,
    check_sorted,
    check_sums,
    check_weights,
    count_nodes,
    normalise,
    not_a_graph,
    type_name,
    unchecked,
)
from fishergraph._typing import GraphLike
from fishergraph._validation import check_flag, check_host_memory, check_integer
from fishergraph.graph_readers import (
    Request,
    check_choices,
    pyg_weights,
    read_igraph,
    read_list,
    read_networkx,
    read_table,
    to_numpy,
)
from fishergraph.graph_summary import GraphSummary, as_html, summarise
from fishergraph.io.edge_columns import ANY, EdgeOptions
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.edge_table import Numbered
from fishergraph.times import EdgeTimes, as_times, collect_times


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed, weighted graph as compressed sparse rows.

    Row v lists the members of v's multiset. The arrays are validated once, when the record is made. `as_graph` makes
    graphs from other objects.

    Parameters
    ----------
    indptr : array of shape (n_nodes + 1,), int64
        Row offsets.
    indices : array of shape (n_edges,), int32 or int64
        Members of the rows, sorted and distinct within a row.
    weights : array of shape (n_edges,), float32 or float64, default=None
        Positive weights. None: every edge has weight 1.
    ids : array of shape (n_nodes,), default=None
        The user's node ids in row order. None: 0 … n_nodes - 1.
    reading : EdgeReading, default=None
        What was read to make the graph; `summary` tells it.
    times : EdgeTimes, default=None
        When the edges happened, if they say; ``Neighbourhood(decay=…)`` reads it.

    See Also
    --------
    as_graph : Graphs from matrices, edge lists, tables and other packages.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Graph
    >>> Graph(np.array([0, 1, 2]), np.array([1, 0]))
    Graph(2 nodes, 2 edges)
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None = None
    ids: np.ndarray | None = None
    reading: EdgeReading | None = field(default=None, repr=False)
    times: EdgeTimes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        indptr = as_offsets(self.indptr)
        n_nodes, every = len(indptr) - 1, slice(None)
        indices = as_indices(self.indices, every, n_nodes)
        if indptr[0] != 0 or indptr[-1] != len(indices):
            expected, got = f"go from 0 to the number of indices, {len(indices)}", f"{indptr[0]} to {indptr[-1]}"
            raise InputError(parameter="indptr", expected=expected, got=got, advice="build the graph with as_graph")
        check_sorted(indptr, indices)
        weights = as_weights(self.weights, len(indices), every, least="positive")
        ids = self.ids
        if ids is not None and (not isinstance(ids, np.ndarray) or ids.shape != (n_nodes,)):
            got = f"shape {ids.shape}" if isinstance(ids, np.ndarray) else type(ids).__name__
            expected = f"be a NumPy array of one id for each of the {n_nodes} nodes"
            raise InputError(parameter="ids", value=ids, expected=expected, got=got)
        normalise(self, indptr=indptr, indices=indices, weights=weights)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of directed edges."""
        return len(self.indices)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the adjacency matrix."""
        return self.n_nodes, self.n_nodes

    def __len__(self) -> int:
        return self.n_nodes

    def __repr__(self) -> str:
        more = (", weighted" if self.weights is not None else "") + (", with ids" if self.ids is not None else "")
        return f"Graph({self.n_nodes:,} nodes, {self.n_edges:,} edges{more})"

    def summary(self) -> GraphSummary:
        """Tell what is in the graph and what was read to make it.

        Returns
        -------
        GraphSummary
            A record that prints as one line.
        """
        return summarise(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __getitem__(self, key: Index) -> Graph:
        """The subgraph of some rows, which scikit-learn's cross-validation takes along with X[rows]."""
        rows = key[0] if isinstance(key, tuple) else key
        rows = np.arange(self.n_nodes)[rows]
        ids = rows if self.ids is None else self.ids[rows]
        cut = sp.csr_array(self.adjacency[rows][:, rows])
        cut.sort_indices()  # a new order of rows is a new order of members
        times = None if self.times is None else self.times.of_subgraph(self.adjacency, rows)
        return changed(_from_csr(cut, ids), times=times)

    @property
    def adjacency(self) -> sp.csr_array:
        """The (n_nodes, n_nodes) operator; edges without weights have weight 1, float32."""
        weights = np.ones(self.n_edges, dtype=np.float32) if self.weights is None else self.weights
        # SciPy widens the indices to the type of indptr, so the short array is narrowed if it fits.
        indptr = self.indptr.astype(self.indices.dtype) if self.n_edges < 2**31 else self.indptr
        return sp.csr_array((weights, self.indices, indptr), shape=(self.n_nodes, self.n_nodes))


def as_graph(
    obj: GraphLike,
    *,
    undirected: bool = False,
    n_nodes: int | None = None,
    node_ids: Iterable[Hashable] | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | bool | None = None,
    directed: bool | None = None,
    unknown: str = "error",
) -> Graph:
    """Convert a graph object to a `Graph`.

    Parameters
    ----------
    obj : graph
        One of

        - a SciPy sparse matrix or array; row v lists the members of v;
        - a (2, E) integer array or tensor `edge_index`, or a pair `(edge_index, edge_weight)`;
        - PyTorch Geometric `Data`, with `edge_weight`, or `edge_attr` of one column, as weights;
        - a NetworkX graph: rows in node order, except that row v is node v if the nodes are 0 … n - 1;
        - a list of edges ``[("a", "b"), ("b", "c", 2.0)]``; a third entry is a weight or a dictionary of attributes; or
          a list of dictionaries ``[{"source": "a", "target": "b"}]``;
        - an igraph graph; ids are the vertex names, if there are any;
        - a pandas, Polars or pyarrow edge table with columns source and target (or src/dst, from/to, u/v, node1/node2,
          in any case) and optionally weight; a warning names columns that are not read;
        - a `Graph`, which is returned.

        Edges of NetworkX and igraph have the attribute "weight", 1 by default. Their undirected graphs give both
        directions of every edge and one entry per self-loop.
    undirected : bool, default=False
        List every edge in both directions, with the larger weight of the two; one that is listed both ways stays one
        edge. Parallel edges, with the same source and the same target, add their weights before.
    n_nodes : int, default=None
        Number of nodes of an edge list whose last nodes have no edge.
    node_ids : sequence, default=None
        All node ids of an edge table or NetworkX graph, in row order; nodes without edges are allowed. By default the
        ids of a table are sorted. Integers match strings of the same digits if the two are mixed.
    source, target : str, default=None
        The columns of the ends of a table or a list of dictionaries, if they have other names.
    weight : str or False, default=None
        The column, or attribute of edges, of the weights, "weight" by default. False: every edge has weight 1.
    directed : bool, default=None
        False is `undirected=True`. True raises an error for an undirected graph of NetworkX or igraph.
    unknown : {"error", "drop", "add"}, default="error"
        What happens to edges to nodes that `node_ids` does not list: an error, or they are dropped, or the nodes added.

    Returns
    -------
    Graph
        Compressed sparse rows; `ids` is None if the ids are 0 … n - 1.

    See Also
    --------
    as_graphs : Lists of graphs with node features and tags.

    Examples
    --------
    >>> from fishergraph import as_graph
    >>> graph = as_graph([("a", "b"), ("b", "c", 2.0)], undirected=True)
    >>> graph
    Graph(3 nodes, 4 edges, weighted, with ids)
    >>> graph.adjacency.toarray()
    array([[0., 1., 0.],
           [1., 0., 2.],
           [0., 2., 0.]])
    """
    if n_nodes is not None:
        n_nodes = check_integer(n_nodes, "n_nodes", least=1, most=2**40)
        advice = "pass the number of nodes there are"
        check_host_memory(16 * n_nodes, f"{n_nodes} nodes need", "for their offsets", advice)
    undirected = check_flag(undirected, "undirected")
    if node_ids is not None:
        _check_node_ids(obj, node_ids)
    options = EdgeOptions(source, target, weight)
    if directed is not None or unknown != "error" or options != ANY:
        undirected = check_choices(obj, undirected, directed, unknown, node_ids, options)
    request = Request(n_nodes, node_ids, options, unknown)
    graph = obj if isinstance(obj, Graph) else _READERS[_package(obj)](obj, request)
    if n_nodes not in (None, graph.n_nodes):
        expected = f"be {graph.n_nodes}, the number of nodes in the graph"
        raise InputError(parameter="n_nodes", value=n_nodes, expected=expected)
    if graph.n_nodes == 0:
        raise InputError(parameter="a graph", expected="have at least one node", got="none", advice="pass n_nodes")
    if not undirected:
        return graph
    A = graph.adjacency
    times = None if graph.times is None else graph.times.both_ways(graph.indptr, graph.indices)
    return changed(_from_csr(sp.csr_array(A.maximum(A.T.tocsr())), graph.ids), reading=graph.reading, times=times)


def _check_node_ids(obj: GraphLike, node_ids: object) -> None:
    if not names_nodes(obj):
        expected, got = "belong to an edge table or a NetworkX graph", type_name(obj)
        raise InputError(parameter="node_ids", expected=expected, got=got, advice="leave it out")
    if not hasattr(node_ids, "__iter__") or getattr(node_ids, "ndim", 1) == 0 or isinstance(node_ids, (str, bytes)):
        raise InputTypeError(parameter="node_ids", value=node_ids, expected="be a list of ids in the order of the rows")


def names_nodes(obj: GraphLike) -> bool:
    """Whether a graph object names its nodes, so that `node_ids` can put them in order."""
    return not isinstance(obj, Graph) and _package(obj) in ("list", "networkx", "pandas", "polars", "pyarrow")


def lists_edges(obj: GraphLike) -> bool:
    """Whether a graph object is a bare list of edges, which does not say how many nodes there are."""
    package = "" if isinstance(obj, Graph) else _package(obj)
    bare = package == "torch_geometric" and not {"x", "num_nodes"} & set(getattr(obj, "keys", list)())
    return bare or package in ("numpy", "torch", "pair")


def _package(obj: GraphLike) -> str:
    """The package an object comes from, without importing it; a pair of arrays is a "pair"."""
    if isinstance(obj, tuple) and len(obj) == 2:
        return "pair"
    if isinstance(obj, list):
        return "list"
    if hasattr(obj, "detach") and hasattr(obj, "layout"):  # a tensor, also of a derived class, such as EdgeIndex
        return "torch"
    for base in type(obj).__mro__:
        package = base.__module__.partition(".")[0]
        if package in _READERS:
            return package
    raise not_a_graph(obj)


# --- compressed sparse rows -----------------------------------------------------------------------------


def _assemble(
    source: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    n_nodes: int,
    ids: np.ndarray | None = None,
    reading: EdgeReading | None = None,
    times: np.ndarray | None = None,
) -> Graph:
    """The graph of valid edges: `source` enters row `target`; parallel edges add, and each keeps its time."""
    data = np.ones(len(source), dtype=np.float32) if weights is None else weights
    kind = np.int32 if n_nodes < 2**31 else np.int64
    ends = (target.astype(kind, copy=False), source.astype(kind, copy=False))
    A = sp.csr_array(sp.coo_array((data, ends), shape=(n_nodes, n_nodes)))
    check_sums(A)
    when = None if times is None else collect_times(source, target, times, weights)
    graph = changed(_from_csr(A, ids), times=when)
    if reading is not None:
        merged = len(source) - A.nnz
        if merged and reading.both_ways:  # self-loops were listed once, other edges twice
            loops = int((source == target).sum()) - int(
                (A.indices == np.repeat(np.arange(n_nodes), np.diff(A.indptr))).sum()
            )
            merged = (merged + loops) // 2
        normalise(graph, reading=replace(reading, merged=merged, zeros=A.nnz - graph.n_edges))
    return graph


def _from_csr(A: sp.csr_array, ids: np.ndarray | None = None, reading: EdgeReading | None = None) -> Graph:
    """The graph of a canonical CSR array with valid weights, without a copy if possible."""
    if A.nnz and A.data.min() == 0:
        A = A.copy()
        A.eliminate_zeros()
    weights = None if (A.data == 1).all() else A.data
    indices = A.indices.astype(np.int32 if len(A.indptr) <= 2**31 else np.int64, copy=False)
    return unchecked(Graph, A.indptr.astype(np.int64, copy=False), indices, weights, ids, reading)


# --- readers: (object, n_nodes, node_ids) -> Graph ------------------------------------------------------


def _read_scipy(A: Any, request: Request) -> Graph:
    if not sp.issparse(A):
        raise not_a_graph(A)
    A = check_compressed(A, "graph")
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        advice = "in cross-validation pass as_graph(matrix), which is cut to the nodes of a fold on both sides"
        raise InputError(parameter="a sparse adjacency matrix", value=A.shape, expected="be square", advice=advice)
    # A new matrix of these arrays has no cached flags from before somebody changed the rows.
    if A.format == "csr" and (B := sp.csr_array((A.data, A.indices, A.indptr), shape=A.shape)).has_canonical_format:
        rows = B.indptr.searchsorted
        data = check_weights(B.data, len(B.data), lambda i: f"({rows(i, side='right') - 1}, {B.indices[i]})")
        return _from_csr(sp.csr_array((data, B.indices, B.indptr), shape=B.shape))
    A = A.tocoo()
    data = check_weights(A.data, len(A.data), lambda i: f"({A.row[i]}, {A.col[i]})")
    return _assemble(A.col, A.row, data, A.shape[0], reading=EdgeReading(rows=A.nnz))


def _read_edge_index(edge_index: Any, request: Request, weights: Any = None, times: Any = None) -> Graph:
    source, target = check_edge_index(to_numpy(edge_index))
    n_nodes = count_nodes(source, target) if request.n_nodes is None else request.n_nodes
    check_endpoints(source, target, n_nodes)
    if weights is not None:
        weights = check_weights(to_numpy(weights), len(source), lambda i: f"{source[i]} -> {target[i]}")
    when = as_times(times, len(source))
    return _assemble(source, target, weights, n_nodes, reading=EdgeReading(rows=len(source)), times=when)


def _read_pyg(data: Any, request: Request) -> Graph:
    weights = pyg_weights(data, request.options.weight)
    times = getattr(data, "edge_time", getattr(data, "time", None))
    return _read_edge_index(data.edge_index, Request(request.n_nodes or data.num_nodes or None), weights, times)


def graph_of(edges: Numbered) -> Graph:
    """The graph of edges between row numbers; parallel edges add their weights."""
    if edges.n_nodes == 0:
        raise InputError(parameter="a graph", expected="have at least one node", got="none")
    return _assemble(**vars(edges))


def _listed(read: Callable[[Any, Request], Numbered]) -> Callable[[Any, Request], Graph]:
    return lambda obj, request: _assemble(**vars(read(obj, request)))


_READERS: dict[str, Callable[[Any, Request], Graph]] = {
    "pair": lambda pair, request: _read_edge_index(pair[0], request, pair[1]),
    "list": _listed(read_list),
    "scipy": _read_scipy,
    "numpy": _read_edge_index,
    "torch": _read_edge_index,
    "torch_geometric": _read_pyg,
    "networkx": _listed(read_networkx),
    "igraph": _listed(read_igraph),
    "pandas": _listed(read_table),
    "polars": _listed(read_table),
    "pyarrow": _listed(read_table),
}
