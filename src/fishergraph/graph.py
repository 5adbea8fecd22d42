"""`as_graph` turns graph objects of many packages into compressed sparse rows and node ids.

Row v lists the nodes whose points enter the multiset of v. Two conventions lead there:

- a SciPy sparse matrix is the operator A of `A @ X`: row v holds the members of v;
- in an edge list *source sends to target*: the source enters the multiset of the target, as in PyTorch Geometric.
  `edge_index` is therefore the transpose of the operator.

Parallel edges add their weights, self-loops are kept, edges of weight zero are dropped, and direction is kept
(`undirected=True` symmetrises).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed, plain_array
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import (
    Index,
    as_indices,
    as_offsets,
    as_weights,
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
from fishergraph.io.columns import check_edge_table, edge_table, factorise, positions, unknown_node


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

    def __getitem__(self, key: Index) -> Graph:
        """The subgraph of some rows, which scikit-learn's cross-validation takes along with X[rows]."""
        rows = key[0] if isinstance(key, tuple) else key
        rows = np.arange(self.n_nodes)[rows]
        ids = rows if self.ids is None else self.ids[rows]
        cut = sp.csr_array(self.adjacency[rows][:, rows])
        cut.sort_indices()  # a new order of rows is a new order of members
        return _from_csr(cut, ids)

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
        - a list of edges ``[("a", "b"), ("b", "c", 2.0)]``; a third entry is a weight;
        - an igraph graph; ids are the vertex names, if there are any;
        - a pandas, Polars or pyarrow edge table with columns source and target (or src/dst, from/to, u/v, node1/node2,
          in any case) and optionally weight; other columns are not read;
        - a `Graph`, which is returned.

        Edges of NetworkX and igraph have the attribute "weight", 1 by default. Their undirected graphs give both
        directions of every edge and one entry per self-loop.
    undirected : bool, default=False
        List every edge in both directions, with the larger weight of the two. An edge that is listed both ways stays
        one edge.
    n_nodes : int, default=None
        Number of nodes of an edge list whose last nodes have no edge.
    node_ids : sequence, default=None
        All node ids of an edge table or NetworkX graph, in row order; nodes without edges are allowed. By default the
        ids of a table are sorted. Integers match strings of the same digits if the two are mixed.

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
    graph = obj if isinstance(obj, Graph) else _READERS[_package(obj)](obj, n_nodes, node_ids)
    if n_nodes not in (None, graph.n_nodes):
        expected = f"be {graph.n_nodes}, the number of nodes in the graph"
        raise InputError(parameter="n_nodes", value=n_nodes, expected=expected)
    if graph.n_nodes == 0:
        raise InputError(parameter="a graph", expected="have at least one node", got="none", advice="pass n_nodes")
    if not undirected:
        return graph
    A = graph.adjacency
    return _from_csr(sp.csr_array(A.maximum(A.T.tocsr())), graph.ids)


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
    source: np.ndarray, target: np.ndarray, weights: np.ndarray | None, n: int, ids: np.ndarray | None = None
) -> Graph:
    """The graph of valid edges: `source` enters row `target`; parallel edges add."""
    data = np.ones(len(source), dtype=np.float32) if weights is None else weights
    kind = np.int32 if n < 2**31 else np.int64
    ends = (target.astype(kind, copy=False), source.astype(kind, copy=False))
    A = sp.csr_array(sp.coo_array((data, ends), shape=(n, n)))
    check_sums(A)
    return _from_csr(A, ids)


def _from_csr(A: sp.csr_array, ids: np.ndarray | None = None) -> Graph:
    """The graph of a canonical CSR array with valid weights, without a copy if possible."""
    if A.nnz and A.data.min() == 0:
        A = A.copy()
        A.eliminate_zeros()
    weights = None if (A.data == 1).all() else A.data
    indices = A.indices.astype(np.int32 if len(A.indptr) <= 2**31 else np.int64, copy=False)
    return unchecked(Graph, A.indptr.astype(np.int64, copy=False), indices, weights, ids)


# --- readers: (object, n_nodes, node_ids) -> Graph ------------------------------------------------------


def _read_scipy(A: Any, n_nodes: int | None, node_ids: None) -> Graph:
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
    return _assemble(A.col, A.row, data, A.shape[0])


def _read_edge_index(edge_index: Any, n_nodes: int | None, node_ids: None, weights: Any = None) -> Graph:
    source, target = check_edge_index(_to_numpy(edge_index))
    if n_nodes is None:
        n_nodes = count_nodes(source, target)
    check_endpoints(source, target, n_nodes)
    if weights is not None:
        weights = check_weights(_to_numpy(weights), len(source), lambda i: f"{source[i]} -> {target[i]}")
    return _assemble(source, target, weights, n_nodes)


def _to_numpy(array: Any) -> np.ndarray:
    """A NumPy view of an array or a tensor on any device."""
    if hasattr(array, "detach"):
        if str(array.layout) != "torch.strided":
            got, advice = f"layout {array.layout}", "pass its edge_index"
            raise InputTypeError(parameter="graph", expected="be a dense (2, E) tensor", got=got, advice=advice)
        array = array.detach().cpu()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()  # NumPy has no bfloat16
    return plain_array(array, "graph")


def _read_pyg(data: Any, n_nodes: int | None, node_ids: None) -> Graph:
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None:
        got, advice = f"{type_name(data)} without one", "set data.edge_index"
        raise InputTypeError(parameter="graph", expected="have an edge_index", got=got, advice=advice)
    weights = getattr(data, "edge_weight", None)
    features = getattr(data, "edge_attr", None)
    if weights is None and features is not None and features.numel() == edge_index.shape[1]:
        weights = features.reshape(-1)
    return _read_edge_index(edge_index, n_nodes or data.num_nodes or None, None, weights)


def _read_networkx(graph: Any, n_nodes: int | None, node_ids: Iterable | None) -> Graph:
    if not hasattr(graph, "is_directed"):
        raise not_a_graph(graph)
    nodes = list(graph) if node_ids is None else list(node_ids)
    if node_ids is None and set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))
    position = positions(nodes, "node_ids")
    missing = next((node for node in graph if node not in position), position)
    if missing is not position:
        raise unknown_node(missing)
    edges = list(graph.edges(data="weight", default=1))
    ends = np.array([(position[u], position[v]) for u, v, _ in edges], dtype=np.int64)
    values = [weight for *_, weight in edges]
    weights = check_weights(values, len(edges), lambda i: f"{edges[i][0]!r} -> {edges[i][1]!r}")
    return _from_pairs(ends, weights, graph.is_directed(), len(nodes), _labels(nodes))


def _read_igraph(graph: Any, n_nodes: int | None, node_ids: None) -> Graph:
    if not hasattr(graph, "get_edgelist"):
        raise not_a_graph(graph)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
    positions(names, "vertex names")
    ends = np.array(graph.get_edgelist(), dtype=np.int64)
    values = graph.es["weight"] if "weight" in graph.es.attributes() else np.ones(len(ends))
    values = [1 if w is None else w for w in values] if isinstance(values, list) else values
    weights = check_weights(values, len(ends), lambda i: f"{names[ends[i, 0]]!r} -> {names[ends[i, 1]]!r}")
    return _from_pairs(ends, weights, graph.is_directed(), len(names), _labels(names))


def _from_pairs(ends: np.ndarray, weights: np.ndarray, directed: bool, n_nodes: int, ids: np.ndarray | None) -> Graph:
    """The graph of (E, 2) pairs of positions; undirected edges go both ways, a self-loop once."""
    source, target = ends.reshape(-1, 2).T
    if not directed:
        back = source != target
        weights = np.concatenate((weights, weights[back]))
        source, target = np.concatenate((source, target[back])), np.concatenate((target, source[back]))
    return _assemble(source, target, weights, n_nodes, ids)


def _labels(nodes: Sequence) -> np.ndarray | None:
    """Ids as an array of integers, strings or objects; None if they are 0 … n - 1 in this order."""
    if all(isinstance(v, (int, np.integer)) for v in nodes):
        ids = np.asarray(nodes) if all(-(2**63) <= v < 2**63 for v in nodes) else np.asarray(nodes, dtype=object)
        return None if np.array_equal(ids, np.arange(len(ids))) else ids
    # NumPy's strings lose NUL characters at their ends, and two ids would become one.
    if all(isinstance(v, str) and "\0" not in v for v in nodes):
        return np.asarray(nodes, dtype=np.str_)
    ids = np.empty(len(nodes), dtype=object)
    ids[:] = nodes
    return ids


def _read_table(table: Any, n_nodes: int | None, node_ids: Any) -> Graph:
    columns = check_edge_table(table)
    if columns is None:
        raise not_a_graph(table)
    source, target, weights = columns
    if weights is not None:
        weights = check_weights(weights, len(source), lambda i: f"{columns[0][i]} -> {columns[1][i]}")
    source, target, n, ids = factorise(source, target, node_ids=node_ids, n_nodes=n_nodes)
    return _assemble(source, target, weights, n, ids)


_READERS: dict[str, Callable[[Any, int | None, Any], Graph]] = {
    "pair": lambda pair, n_nodes, _: _read_edge_index(pair[0], n_nodes, None, pair[1]),
    "list": lambda edges, n_nodes, node_ids: _read_table(edge_table(edges), n_nodes, node_ids),
    "scipy": _read_scipy,
    "numpy": _read_edge_index,
    "torch": _read_edge_index,
    "torch_geometric": _read_pyg,
    "networkx": _read_networkx,
    "igraph": _read_igraph,
    "pandas": _read_table,
    "polars": _read_table,
    "pyarrow": _read_table,
}
