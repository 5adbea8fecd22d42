"""The door for graphs: `as_graph` turns what people have into compressed sparse rows and node ids.

Row v lists the nodes whose points enter the multiset of v. Two conventions lead there:

- a SciPy sparse matrix is the operator A of `A @ X`: row v holds the members of v;
- an edge list says that *source sends to target*: the source enters the multiset of the target, which is the
  flow of PyTorch Geometric. It makes `edge_index` the transpose of the operator.

Parallel edges add their weights, self-loops stay as they are, edges of weight zero are dropped, and direction
is kept (`undirected=True` symmetrises).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph import _checks, _graph_checks, _table_checks
from fishergraph._edge_lists import edge_table
from fishergraph._graph_checks import type_name
from fishergraph._numbers import plain_array
from fishergraph._record_checks import as_indices, as_offsets, as_weights, check_sorted, normalise, unchecked


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed, weighted graph as compressed sparse rows; row v lists the members of v's multiset.

    The arrays are checked once, when the record is made: compiled loops trust them.
    """

    indptr: np.ndarray  # (n_nodes + 1,) int64
    indices: np.ndarray  # (n_edges,) int32 or int64; sorted and distinct within a row
    weights: np.ndarray | None = None  # (n_edges,) float32 or float64, positive; None: every edge weighs 1
    ids: np.ndarray | None = None  # (n_nodes,) the user's node ids in row order; None: 0 … n_nodes - 1

    def __post_init__(self) -> None:
        indptr = as_offsets(self.indptr)
        n_nodes, every = len(indptr) - 1, slice(None)
        indices = as_indices(self.indices, every, n_nodes)
        if indptr[0] != 0 or indptr[-1] != len(indices):
            raise ValueError(
                f"indptr must go from 0 to the number of indices, {len(indices)}, got {indptr[0]} to {indptr[-1]}; "
                "build the graph with as_graph."
            )
        check_sorted(indptr, indices)
        weights = as_weights(self.weights, len(indices), every, least="positive")
        _graph_checks.check_ids(self.ids, n_nodes)
        normalise(self, indptr=indptr, indices=indices, weights=weights)

    @property
    def n_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        return len(self.indices)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.n_nodes, self.n_nodes)

    def __len__(self) -> int:
        return self.n_nodes

    def __repr__(self) -> str:
        more = (", weighted" if self.weights is not None else "") + (", with ids" if self.ids is not None else "")
        return f"Graph({self.n_nodes:,} nodes, {self.n_edges:,} edges{more})"

    def __getitem__(self, key: Any) -> Graph:
        """The subgraph induced by some rows: what scikit-learn's cross-validation cuts out beside X[rows]."""
        rows = key[0] if isinstance(key, tuple) else key
        rows = np.arange(self.n_nodes)[rows]
        ids = rows if self.ids is None else self.ids[rows]
        cut = sp.csr_array(self.adjacency[rows][:, rows])
        cut.sort_indices()  # rows in another order list their members in another order
        return _from_csr(cut, ids)

    @property
    def adjacency(self) -> sp.csr_array:
        """The (n_nodes, n_nodes) operator; edges without weights weigh 1 in float32."""
        weights = np.ones(self.n_edges, dtype=np.float32) if self.weights is None else self.weights
        # SciPy widens the indices to the type of indptr, so the short one is narrowed where it fits.
        indptr = self.indptr.astype(self.indices.dtype) if self.n_edges < 2**31 else self.indptr
        return sp.csr_array((weights, self.indices, indptr), shape=(self.n_nodes, self.n_nodes))


def as_graph(obj: Any, *, undirected: bool = False, n_nodes: int | None = None, node_ids: Any = None) -> Graph:
    """The `Graph` of a graph object.

    Args:
        obj: one of
            a SciPy sparse matrix or array, row v listing the members of v;
            a (2, E) integer array or tensor `edge_index`, or a pair `(edge_index, edge_weight)`;
            a PyTorch Geometric `Data` (with `edge_weight`, or `edge_attr` of one column, as weights);
            a NetworkX graph (rows in node order, but row v is node v where the nodes are 0 … n - 1);
            a list of edges [("a", "b"), ("b", "c", 2.0)], in which a third entry is a weight;
            an igraph graph (ids are the vertex names, where there are any);
            a pandas, Polars or pyarrow edge table, with columns source and target (or src/dst, from/to, u/v,
            node1/node2, in any case) and optionally weight; other columns are not read;
            a `Graph`, which passes through.
            NetworkX and igraph edges use the attribute "weight", and 1 where it is absent; their undirected
            graphs give both directions of every edge and one entry per self-loop.
        undirected: list every edge in both directions, with the larger weight of the two; an edge that is
            already listed both ways stays one edge.
        n_nodes: the number of nodes, for edge lists whose last nodes have no edge.
        node_ids: for edge tables and NetworkX: all node ids, in row order; admits nodes without edges.
            Without it the ids of a table are sorted; `ids` is None where they are just 0 … n - 1.
            Integers match strings of the same digits when the two are mixed.
    """
    if n_nodes is not None:
        n_nodes = _checks.check_integer(n_nodes, "n_nodes", least=1)
    undirected = _checks.check_flag(undirected, "undirected")
    if node_ids is not None and not names_nodes(obj):
        raise ValueError(f"node_ids belongs to edge tables and NetworkX, got it with {type_name(obj)}; leave it out.")
    graph = obj if isinstance(obj, Graph) else _READERS[_package(obj)](obj, n_nodes, node_ids)
    _graph_checks.check_node_count(graph.n_nodes, n_nodes)
    return _symmetrise(graph) if undirected else graph


def names_nodes(obj: Any) -> bool:
    """Whether a graph object names its nodes, so that `node_ids` can put them in order."""
    return not isinstance(obj, Graph) and _package(obj) in _WITH_IDS


def lists_edges(obj: Any) -> bool:
    """Whether a graph object is a bare list of edges, which does not say how many nodes there are."""
    package = "" if isinstance(obj, Graph) else _package(obj)
    bare = package == "torch_geometric" and not {"x", "num_nodes"} & set(getattr(obj, "keys", list)())
    return bare or package in ("numpy", "torch", "pair")


def _package(obj: Any) -> str:
    """The package an object comes from, found without importing it; a pair of arrays is a "pair"."""
    if isinstance(obj, tuple) and len(obj) == 2:
        return "pair"
    if isinstance(obj, list):
        return "list"
    if hasattr(obj, "detach") and hasattr(obj, "layout"):  # a tensor, also a derived one, such as EdgeIndex
        return "torch"
    for base in type(obj).__mro__:
        package = base.__module__.partition(".")[0]
        if package in _READERS:
            return package
    raise _graph_checks.unknown_graph(obj)


# --- compressed sparse rows -----------------------------------------------------------------------------


def _assemble(source: np.ndarray, target: np.ndarray, weights: np.ndarray | None, n: int, ids=None) -> Graph:
    """The graph of checked edges: `source` enters row `target`; parallel edges add."""
    kind = _index_dtype(n)
    data = np.ones(len(source), dtype=np.float32) if weights is None else weights
    ends = (target.astype(kind, copy=False), source.astype(kind, copy=False))
    A = sp.csr_array(sp.coo_array((data, ends), shape=(n, n)))
    _graph_checks.check_sums(A)
    return _from_csr(A, ids)


def _from_csr(A: Any, ids: np.ndarray | None = None) -> Graph:
    """The graph of a canonical CSR array with checked weights; shares its memory where it can."""
    if A.nnz and A.data.min() == 0:
        A = A.copy()
        A.eliminate_zeros()
    weights = None if (A.data == 1).all() else A.data
    indices = A.indices.astype(_index_dtype(A.shape[0]), copy=False)
    return unchecked(Graph, A.indptr.astype(np.int64, copy=False), indices, weights, ids)


def _index_dtype(n_nodes: int) -> type:
    return np.int32 if n_nodes < 2**31 else np.int64


def _symmetrise(graph: Graph) -> Graph:
    """The graph of max(A, Aᵀ): an edge listed both ways with equal weight is one edge, not a doubled one."""
    A = graph.adjacency
    return _from_csr(sp.csr_array(A.maximum(A.T.tocsr())), graph.ids)


# --- readers: (object, n_nodes, node_ids) -> Graph ------------------------------------------------------


def _read_scipy(A: Any, n_nodes: int | None, node_ids: None) -> Graph:
    if not sp.issparse(A):
        raise _graph_checks.unknown_graph(A)
    A = _checks.check_compressed(A, "graph")
    n = _graph_checks.check_square(A.shape)
    _graph_checks.check_node_count(n, n_nodes)
    # Made anew of its arrays, the matrix does not remember what its rows were like before somebody changed them.
    if A.format == "csr" and (B := sp.csr_array((A.data, A.indices, A.indptr), shape=A.shape)).has_canonical_format:
        A = B

        def name(i):
            return f"({np.searchsorted(A.indptr, i, side='right') - 1}, {A.indices[i]})"

        data = _graph_checks.check_weights(A.data, len(A.data), name)
        return _from_csr(sp.csr_array((data, A.indices, A.indptr), shape=A.shape))
    A = A.tocoo()
    data = _graph_checks.check_weights(A.data, len(A.data), lambda i: f"({A.row[i]}, {A.col[i]})")
    return _assemble(A.col, A.row, data, n)


def _read_edge_index(edge_index: Any, n_nodes: int | None, node_ids: None, weights: Any = None) -> Graph:
    source, target = _graph_checks.check_edge_index(_to_numpy(edge_index))
    if n_nodes is None:
        n_nodes = _graph_checks.count_nodes(source, target)
    _graph_checks.check_node_count(n_nodes, None)
    _graph_checks.check_endpoints(source, target, n_nodes)
    if weights is not None:
        weights = _graph_checks.check_weights(_to_numpy(weights), len(source), lambda i: f"{source[i]} -> {target[i]}")
    return _assemble(source, target, weights, n_nodes)


def _to_numpy(array: Any) -> np.ndarray:
    """A NumPy view of an array or a tensor on any device."""
    if hasattr(array, "detach"):
        if str(array.layout) != "torch.strided":
            raise TypeError(f"graph must be a dense (2, E) tensor, got layout {array.layout}; pass its edge_index.")
        array = array.detach().cpu()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()  # NumPy lacks that type
    return plain_array(array, "graph")


def _read_pyg(data: Any, n_nodes: int | None, node_ids: None) -> Graph:
    edge_index = getattr(data, "edge_index", None)
    if edge_index is None:
        raise TypeError(f"graph must have an edge_index, got {type_name(data)} without one; set data.edge_index.")
    weights = getattr(data, "edge_weight", None)
    features = getattr(data, "edge_attr", None)
    if weights is None and features is not None and features.numel() == edge_index.shape[1]:
        weights = features.reshape(-1)
    return _read_edge_index(edge_index, n_nodes or data.num_nodes or None, None, weights)


def _read_networkx(graph: Any, n_nodes: int | None, node_ids: Iterable | None) -> Graph:
    if not hasattr(graph, "is_directed"):
        raise _graph_checks.unknown_graph(graph)
    nodes = list(graph) if node_ids is None else list(node_ids)
    if node_ids is None and set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))
    position = _table_checks.positions(nodes, "node_ids")
    if any((stranger := v) not in position for v in graph):
        raise ValueError(f"node_ids must hold every node of the graph, got none for {stranger!r}; add it.")
    edges = list(graph.edges(data="weight", default=1))
    ends = np.array([(position[u], position[v]) for u, v, _ in edges], dtype=np.int64)
    values = [weight for *_, weight in edges]
    weights = _graph_checks.check_weights(values, len(edges), lambda i: f"{edges[i][0]!r} -> {edges[i][1]!r}")
    return _from_pairs(ends, weights, graph.is_directed(), len(nodes), _labels(nodes))


def _read_igraph(graph: Any, n_nodes: int | None, node_ids: None) -> Graph:
    if not hasattr(graph, "get_edgelist"):
        raise _graph_checks.unknown_graph(graph)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
    _table_checks.positions(names, "vertex names")
    ends = np.array(graph.get_edgelist(), dtype=np.int64)
    values = graph.es["weight"] if "weight" in graph.es.attributes() else np.ones(len(ends))
    values = [1 if w is None else w for w in values] if isinstance(values, list) else values
    weights = _graph_checks.check_weights(
        values, len(ends), lambda i: f"{names[ends[i, 0]]!r} -> {names[ends[i, 1]]!r}"
    )
    return _from_pairs(ends, weights, graph.is_directed(), len(names), _labels(names))


def _from_pairs(ends: np.ndarray, weights: np.ndarray, directed: bool, n_nodes: int, ids: Any) -> Graph:
    """The graph of (E, 2) pairs of positions; undirected ones go both ways, a self-loop once."""
    source, target = ends.reshape(-1, 2).T
    if not directed:
        back = source != target
        weights = np.concatenate((weights, weights[back]))
        source, target = np.concatenate((source, target[back])), np.concatenate((target, source[back]))
    return _assemble(source, target, weights, n_nodes, ids)


def _labels(nodes: Sequence) -> np.ndarray | None:
    """Ids as an array: integers, strings or objects; None where they are 0 … n - 1 in this order."""
    if all(isinstance(v, (int, np.integer)) for v in nodes):
        ids = np.asarray(nodes) if all(-(2**63) <= v < 2**63 for v in nodes) else np.asarray(nodes, dtype=object)
        return None if np.array_equal(ids, np.arange(len(ids))) else ids
    # NumPy's own strings lose NUL characters at their ends, and two ids would be one.
    if all(isinstance(v, str) and "\0" not in v for v in nodes):
        return np.asarray(nodes, dtype=np.str_)
    ids = np.empty(len(nodes), dtype=object)
    ids[:] = nodes
    return ids


def _read_table(table: Any, n_nodes: int | None, node_ids: Any) -> Graph:
    from fishergraph.tables import factorise  # pyarrow is imported only for tables

    columns = _table_checks.check_edge_table(table)
    if columns is None:
        raise _graph_checks.unknown_graph(table)
    source, target, weights = columns
    if weights is not None:
        weights = _graph_checks.check_weights(weights, len(source), lambda i: f"{columns[0][i]} -> {columns[1][i]}")
    source, target, n, ids = factorise(source, target, node_ids=node_ids, n_nodes=n_nodes)
    _graph_checks.check_node_count(n, None)
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
_WITH_IDS = ("list", "networkx", "pandas", "polars", "pyarrow")
