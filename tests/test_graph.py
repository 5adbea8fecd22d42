"""Conversion of graphs: every kind of object gives the same rows, and errors name the bad ones."""

from __future__ import annotations

import subprocess
import sys

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

from fishergraph.graph import Graph, as_graph

EDGES = np.array([[0, 1, 2, 2, 3], [1, 2, 0, 2, 1]])  # source, target
WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0, 0.25])


def same(a: Graph, b: Graph, *, ids: bool = True) -> None:
    np.testing.assert_array_equal(a.indptr, b.indptr)
    np.testing.assert_array_equal(a.indices, b.indices)
    assert a.indptr.dtype == b.indptr.dtype == np.int64
    assert a.indices.dtype == b.indices.dtype == np.int32
    assert (a.weights is None) == (b.weights is None)
    if a.weights is not None and b.weights is not None:
        np.testing.assert_allclose(a.weights, b.weights, rtol=1e-6)
    if ids:
        assert (a.ids is None) == (b.ids is None)
        if a.ids is not None and b.ids is not None:
            np.testing.assert_array_equal(a.ids, b.ids)


def by_loops(edges, weights, n: int) -> np.ndarray:
    """The dense operator: the source enters the row of the target, parallel edges add."""
    A = np.zeros((n, n))
    for (u, v), w in zip(edges, weights, strict=True):
        A[v, u] += w
    return A


@st.composite
def edge_lists(draw):
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    weights = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.25]), min_size=len(edges), max_size=len(edges)))
    return n, edges, weights


def every_kind(n: int, edges: list, weights: list):
    """The same directed multigraph in every form."""
    index = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    w = np.array(weights, dtype=np.float64)
    yield "pair", as_graph((index, w), n_nodes=n)
    yield "int32", as_graph((index.astype(np.int32), w), n_nodes=n)
    yield "torch", as_graph((torch.tensor(index), torch.tensor(w)), n_nodes=n)
    coo = sp.coo_array((w, (index[1], index[0])), shape=(n, n))
    for kind in ("coo", "csr", "csc", "lil", "dok", "bsr", "dia"):
        yield kind, as_graph(coo.asformat(kind))
    yield "matrix", as_graph(sp.csr_matrix(coo))
    multi = nx.MultiDiGraph()
    multi.add_nodes_from(reversed(range(n)))
    multi.add_weighted_edges_from([(u, v, x) for (u, v), x in zip(edges, weights, strict=True)])
    yield "networkx", as_graph(multi)
    yield "igraph", as_graph(igraph.Graph(n=n, edges=edges, directed=True, edge_attrs={"weight": weights}))
    yield "pyg", as_graph(Data(edge_index=torch.tensor(index), edge_weight=torch.tensor(w), num_nodes=n))
    yield (
        "pyg attr",
        as_graph(Data(edge_index=torch.tensor(index), edge_attr=torch.tensor(w)[:, None], num_nodes=n)),
    )
    columns = {"source": index[0], "target": index[1], "weight": w}
    for make in (pa.table, pd.DataFrame, pl.DataFrame):
        yield make.__name__, as_graph(make(columns), n_nodes=n)
        yield make.__name__ + " ids", as_graph(make(columns), node_ids=range(n))


@settings(deadline=None, max_examples=60)
@given(edge_lists())
def test_every_kind_gives_the_same_graph(case):
    n, edges, weights = case
    expected = by_loops(edges, weights, n)
    first = None
    for name, graph in every_kind(n, edges, weights):
        first = first or graph
        np.testing.assert_allclose(graph.adjacency.toarray(), expected, err_msg=name)
        same(graph, first)
        assert graph.adjacency.has_canonical_format
        assert graph.weights is None or graph.weights.min() > 0
        same(as_graph(graph.adjacency), graph, ids=False)


@settings(deadline=None, max_examples=60)
@given(edge_lists())
def test_undirected_is_the_elementwise_maximum_and_idempotent(case):
    n, edges, weights = case
    A = by_loops(edges, weights, n)
    index = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = as_graph((index, weights), n_nodes=n, undirected=True)
    np.testing.assert_allclose(graph.adjacency.toarray(), np.maximum(A, A.T))
    same(as_graph(graph, undirected=True), graph)


@settings(deadline=None, max_examples=30)
@given(edge_lists())
def test_undirected_networkx_and_igraph_list_both_directions(case):
    n, edges, _ = case
    edges = sorted({(min(e), max(e)) for e in edges})
    expected = by_loops(edges, [1.0] * len(edges), n)
    expected = np.maximum(expected, expected.T)  # a self-loop once
    g = nx.empty_graph(n)
    g.add_edges_from(edges)
    for graph in (as_graph(g), as_graph(igraph.Graph(n=n, edges=edges))):
        np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
        assert graph.weights is None


@settings(deadline=None, max_examples=40)
@given(edge_lists(), st.sampled_from(["strings", "sparse integers", "huge integers"]))
def test_tables_sort_the_ids(case, kind):
    n, edges, weights = case
    if not edges:
        return
    make = {
        "strings": lambda i: f"n{i}",
        "sparse integers": lambda i: 3 * i + 1,
        "huge integers": lambda i: i * 10**12 - 5,
    }
    names = [make[kind](i) for i in range(n)]
    table = {"src": [names[u] for u, _ in edges], "dst": [names[v] for _, v in edges], "weight": weights}
    used = sorted({end for edge in edges for end in edge})
    A = by_loops(edges, weights, n)
    for frame in (pa.table(table), pd.DataFrame(table), pl.DataFrame(table)):
        graph = as_graph(frame)
        assert graph.ids is not None
        assert graph.ids.tolist() == [names[i] for i in used]
        np.testing.assert_allclose(graph.adjacency.toarray(), A[np.ix_(used, used)])
        order = names[::-1]
        fixed = as_graph(frame, node_ids=order)
        assert fixed.ids is not None
        assert fixed.ids.tolist() == order
        np.testing.assert_allclose(fixed.adjacency.toarray(), A[::-1, ::-1])


def test_source_enters_the_row_of_the_target_but_a_matrix_is_the_operator():
    graph = as_graph(np.array([[0], [1]]))
    assert graph.indptr.tolist() == [0, 0, 1]
    assert graph.indices.tolist() == [0]
    matrix = as_graph(sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]])))
    assert matrix.indptr.tolist() == [0, 1, 1]
    assert matrix.indices.tolist() == [1]
    assert (graph.n_nodes, graph.n_edges, graph.weights, graph.ids) == (2, 1, None, None)


def test_a_doubled_edge_weighs_two_and_self_loops_stay():
    graph = as_graph(np.array([[0, 0, 1], [1, 1, 1]]))
    assert graph.adjacency.toarray().tolist() == [[0, 0], [2, 1]]
    assert graph.weights is not None
    assert graph.weights.dtype == np.float32


@pytest.mark.parametrize(
    ("given_", "kept"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64)],
)
def test_weights_keep_their_precision(given_, kept):
    graph = as_graph((EDGES, (WEIGHTS * 4).astype(given_)))
    assert graph.weights is not None
    assert graph.weights.dtype == kept


def test_a_canonical_csr_matrix_is_shared_and_never_written_to():
    A = sp.csr_array(np.array([[0.0, 2.0], [3.0, 0.0]]))
    graph = as_graph(A)
    assert np.shares_memory(graph.indices, A.indices)
    assert np.shares_memory(graph.weights, A.data)
    messy = sp.csr_array((np.array([1.0, 0.0, 2.0, 1.0]), np.array([1, 0, 1, 0]), np.array([0, 3, 4])), shape=(2, 2))
    before = (messy.data.copy(), messy.indices.copy(), messy.indptr.copy())
    for part in (messy.data, messy.indices, messy.indptr):
        part.flags.writeable = False
    np.testing.assert_array_equal(as_graph(messy).adjacency.toarray(), [[0, 3], [1, 0]])
    for old, new in zip(before, (messy.data, messy.indices, messy.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


def test_explicit_zeros_are_dropped():
    A = sp.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 2))
    graph = as_graph(A)
    assert graph.n_edges == 1
    assert graph.weights is None
    assert A.nnz == 2


def test_read_only_edges_are_taken():
    edges = EDGES.copy()
    edges.flags.writeable = False
    assert as_graph(edges).n_edges == 5


def test_edges_both_ways_are_one_undirected_edge():
    graph = as_graph(np.array([[0, 1], [1, 0]]), undirected=True)
    assert graph.weights is None
    assert graph.n_edges == 2


@pytest.mark.parametrize(
    "obj",
    [
        np.zeros((2, 0), dtype=int),
        np.array([[], []]),
        torch.zeros((2, 0), dtype=torch.long),
        pa.table({"source": [], "target": []}),
    ],
    ids=["int", "float", "torch", "table"],
)
def test_a_graph_without_edges_is_legal(obj):
    graph = as_graph(obj, n_nodes=3)
    assert (graph.n_nodes, graph.n_edges) == (3, 0)
    assert as_graph(graph, undirected=True).n_edges == 0
    with pytest.raises(ValueError, match="at least one node"):
        as_graph(obj)


@pytest.mark.parametrize(
    "obj",
    [
        nx.Graph(),
        igraph.Graph(),
        sp.csr_array((0, 0)),
        Data(edge_index=torch.zeros((2, 0), dtype=torch.long)),
    ],
)
def test_a_graph_without_nodes_is_an_error(obj):
    with pytest.raises(ValueError, match="at least one node"):
        as_graph(obj)


def test_networkx_order_ids_and_defaults():
    g = nx.DiGraph()
    g.add_edge("b", "a", weight=2.0)
    g.add_edge("a", "c")
    graph = as_graph(g)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["b", "a", "c"]
    assert graph.adjacency.toarray().tolist() == [[0, 0, 0], [2, 0, 0], [0, 1, 0]]
    ordered = as_graph(g, node_ids=["a", "b", "c", "d"])
    assert ordered.adjacency.toarray()[0, 1] == 2
    assert ordered.n_nodes == 4
    tuples = as_graph(nx.grid_2d_graph(2, 2))
    assert tuples.ids is not None
    assert tuples.ids[3] == (1, 1)
    mixed = nx.Graph([(1, "x")])
    assert list(as_graph(mixed).ids) == [1, "x"]  # type: ignore[arg-type]


def test_integer_networkx_nodes_in_any_order_are_the_rows():
    g = nx.DiGraph([(2, 0), (0, 1)])
    graph = as_graph(g)
    assert graph.ids is None
    assert graph.adjacency.toarray()[0, 2] == 1
    shifted = as_graph(nx.DiGraph([(5, 3)]))
    assert shifted.ids is not None
    assert shifted.ids.tolist() == [5, 3]


def test_subclasses_are_recognised():
    class Mine(nx.Graph):
        pass

    assert as_graph(Mine([(0, 1)])).n_edges == 2


def test_lists_of_edges():
    """Tuples are edges from source to target, with ids of any kind, and weights where there are some."""
    named = as_graph([("b", "a"), ("b", "c", 2.0), ("c", "a", 0.5)])
    table = as_graph(pd.DataFrame({"source": list("bbc"), "target": list("aca"), "weight": [1, 2.0, 0.5]}))
    assert named.ids.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(named.adjacency.toarray(), table.adjacency.toarray())
    assert as_graph([(np.int64(0), 1), (1, 2)], n_nodes=5).n_nodes == 5
    assert as_graph([(10, 30), (30, 20)]).ids.tolist() == [10, 20, 30]
    assert as_graph([("a", "b")], node_ids=["c", "b", "a"]).ids.tolist() == ["c", "b", "a"]
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=3.0)
    graph.add_edge("b", "c")
    both = as_graph(list(graph.edges(data=True)), undirected=True)
    np.testing.assert_array_equal(both.adjacency.toarray(), as_graph(graph).adjacency.toarray())


def test_igraph_names_and_partial_weights():
    g = igraph.Graph(edges=[(0, 1), (1, 2)], directed=True)
    g.vs["name"] = ["x", "y", "z"]
    g.es[0]["weight"] = 4.0
    graph = as_graph(g)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["x", "y", "z"]
    assert graph.weights is not None
    assert graph.weights.tolist() == [4.0, 1.0]


def test_pyg_isolated_nodes_and_wide_edge_attributes():
    data = Data(x=torch.zeros(4, 2), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(1, 3))
    graph = as_graph(data)
    assert (graph.n_nodes, graph.weights) == (4, None)


@pytest.mark.parametrize(
    "names", [("source", "target"), ("SRC", "Dst"), ("from", "to"), ("u", "v"), ("node1", "node2")]
)
def test_known_column_names(names):
    table = pd.DataFrame({"time": [9, 9], names[0]: ["a", "b"], names[1]: ["b", "c"]})
    graph = as_graph(table)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["a", "b", "c"]


def test_categories_chunks_and_mixed_ids():
    plain = as_graph(pd.DataFrame({"u": ["a", "b"], "v": ["b", "a"]}))
    category = pd.DataFrame({"u": ["a", "b"], "v": ["b", "a"]}).astype("category")
    same(as_graph(category), plain)
    same(
        as_graph(pl.DataFrame({"u": ["a", "b"], "v": ["b", "a"]}, schema={"u": pl.Categorical, "v": pl.String})),
        plain,
    )
    half = pa.table({"u": ["a"], "v": ["b"]})
    same(as_graph(pa.concat_tables([half, pa.table({"u": ["b"], "v": ["a"]})])), plain)
    same(as_graph(pa.record_batch({"u": ["a", "b"], "v": ["b", "a"]})), plain)
    mixed = as_graph(pd.DataFrame({"u": [1, 2], "v": ["2", "x"]}))
    assert mixed.ids is not None
    assert mixed.ids.tolist() == ["1", "2", "x"]
    named = as_graph(pd.DataFrame({"u": [1], "v": [2]}), node_ids=["x", "2", "1"])
    assert named.adjacency.toarray()[1, 2] == 1


def test_the_adjacency_shares_the_indices():
    graph = as_graph((EDGES, WEIGHTS))
    assert np.shares_memory(graph.adjacency.indices, graph.indices)
    assert np.shares_memory(as_graph(graph.adjacency).indices, graph.indices)


def test_a_graph_passes_through():
    graph = as_graph(EDGES)
    assert as_graph(graph) is graph
    assert as_graph(graph, n_nodes=4) is graph


def _nx(weight):
    g = nx.DiGraph()
    g.add_edge("p", "q", weight=weight)
    return g


TABLE = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
ERRORS = {
    "out of range": (lambda: as_graph(np.array([[0, 7], [1, 0]]), n_nodes=3), "edge 1"),
    "negative endpoint": (lambda: as_graph(np.array([[0, 1], [1, -2]])), "edge 1"),
    "all negative": (lambda: as_graph(np.array([[-1], [-1]])), "-1 in edge 0"),
    "pyg out of range": (
        lambda: as_graph(Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2)),
        "5 in edge 0",
    ),
    "table out of range": (lambda: as_graph(pa.table({"u": [0], "v": [9]}), n_nodes=4), "9 in edge 0"),
    "negative weight": (lambda: as_graph((EDGES, -WEIGHTS)), r"edge 0 -> 1"),
    "nan weight": (lambda: as_graph((EDGES, [1, 1, np.nan, 1, 1])), r"edge 2 -> 0"),
    "infinite weight": (lambda: as_graph((EDGES, [1, np.inf, 1, 1, 1])), r"edge 1 -> 2"),
    "csr weight": (lambda: as_graph(sp.csr_array(np.array([[0, 0], [-4.0, 0]]))), r"edge \(1, 0\)"),
    "coo weight": (
        lambda: as_graph(sp.coo_array(np.array([[0, np.nan], [0, 0]]))),
        r"edge \(0, 1\)",
    ),
    "complex": (
        lambda: as_graph(sp.coo_array(np.array([[0, 1j], [0, 0]]))),
        "real",
    ),
    "networkx weight": (lambda: as_graph(_nx(-1)), r"edge 'p' -> 'q'"),
    "networkx text": (lambda: as_graph(_nx("heavy")), "'p' -> 'q'"),
    "networkx none": (lambda: as_graph(_nx(None)), "'p' -> 'q'"),
    "table weight": (lambda: as_graph(TABLE.assign(weight=[1.0, -3.0])), "edge b -> c"),
    "table weight missing": (lambda: as_graph(TABLE.assign(weight=[1.0, np.nan])), "column 'weight'.*row 1"),
    "table weight one text": (lambda: as_graph(TABLE.assign(weight=["1.5", "x"])), "edge b -> c"),
    "table weight text": (lambda: as_graph(TABLE.assign(weight=["x", "y"])), "edge a -> b"),
    "weight shape": (lambda: as_graph((EDGES, WEIGHTS[:2])), r"shape \(5,\)"),
    "float edge_index": (lambda: as_graph(EDGES * 1.0), "float64"),
    "bool edge_index": (lambda: as_graph(EDGES > 1), "bool"),
    "not square": (lambda: as_graph(sp.csr_array((2, 3))), "square"),
    "dense square": (lambda: as_graph(np.eye(5)), r"\(5, 5\)"),
    "transposed": (lambda: as_graph(EDGES.T), r"\(5, 2\)"),
    "one axis": (lambda: as_graph(np.arange(4)), r"\(4,\)"),
    "unknown type": (lambda: as_graph({"a": 1}), "builtins dict"),
    "a list of lists": (lambda: as_graph([[0, 1]]), "entry 0"),
    "a list of fours": (lambda: as_graph([(0, 1), (0, 1, 2, 3)]), "entry 1"),
    "a list of two kinds": (lambda: as_graph([(0, 1), ("a", 1)]), "one type"),
    "a list of floats": (lambda: as_graph([(0.5, 1)]), "double"),
    "a list without an end": (
        lambda: as_graph([("a", None)]),
        "row 0",
    ),
    "a list with a weight": (lambda: as_graph([("a", "b", -1.0)]), "edge a -> b"),
    "NetworkX's edges": (
        lambda: as_graph(nx.path_graph(3).edges),
        "EdgeView",
    ),
    "a path": (lambda: as_graph("edges.csv"), "read_edges"),
    "a series": (lambda: as_graph(pd.Series([1])), "pandas Series"),
    "lazy": (lambda: as_graph(pl.LazyFrame({"u": [1]})), "LazyFrame"),
    "scipy thing": (lambda: as_graph(sp.linalg.LinearOperator((2, 2), lambda x: x)), "LinearOperator"),
    "igraph thing": (lambda: as_graph(igraph.Graph(n=1).vs), "VertexSeq"),
    "torch sparse": (lambda: as_graph(torch.eye(3).to_sparse()), "layout torch.sparse_coo"),
    "hetero": (lambda: as_graph(HeteroData()), "HeteroData"),
    "pyg without edges": (lambda: as_graph(Data(x=torch.ones(2, 2))), "edge_index"),
    "columns": (lambda: as_graph(TABLE.rename(columns={"source": "begin"})), "got 'begin', 'target'"),
    "id missing": (lambda: as_graph(pd.DataFrame({"u": ["a", None], "v": ["b", "c"]})), "column 'u'.*row 1"),
    "int id missing": (lambda: as_graph(pd.DataFrame({"u": [1, 2], "v": [1, None]})), "column 'v'.*row 1"),
    "empty id": (lambda: as_graph(pd.DataFrame({"u": ["a", ""], "v": ["b", "c"]})), "column 'u'.*row 1"),
    "float id": (lambda: as_graph(pd.DataFrame({"u": [1.5], "v": [2.5]})), "column 'u'.*got double"),
    "mixture": (lambda: as_graph(pd.DataFrame({"u": [1, "a"], "v": [2, 3]})), "column 'u'.*one type"),
    "endpoint not a node": (lambda: as_graph(TABLE, node_ids=["a", "b"]), "for 'c'"),
    "int endpoint not a node": (
        lambda: as_graph(pa.table({"u": [1], "v": [8]}), node_ids=[1, 2]),
        "for 8",
    ),
    "duplicate node id": (lambda: as_graph(TABLE, node_ids=["a", "b", "c", "b"]), "row 3"),
    "missing node id": (lambda: as_graph(TABLE, node_ids=["a", None, "c"]), "node_ids.*row 1"),
    "no node ids": (lambda: as_graph(pa.table({"u": [], "v": []}), node_ids=[]), "at least one node"),
    "networkx duplicate": (lambda: as_graph(_nx(1), node_ids=["p", "q", "p"]), "row 2"),
    "networkx stranger": (lambda: as_graph(_nx(1), node_ids=["p"]), "for 'q'"),
    "igraph names": (
        lambda: as_graph(igraph.Graph(n=2, vertex_attrs={"name": ["k", "k"]})),
        "row 1",
    ),
    "ids for an array": (lambda: as_graph(EDGES, node_ids=[1]), "node_ids"),
    "n_nodes of a matrix": (lambda: as_graph(sp.csr_array((3, 3)), n_nodes=4), "n_nodes"),
    "n_nodes of a graph": (lambda: as_graph(nx.path_graph(3), n_nodes=4), "n_nodes"),
    "n_nodes zero": (lambda: as_graph(EDGES, n_nodes=0), "n_nodes"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_offender_in_one_sentence(name):
    act, pattern = ERRORS[name]
    with pytest.raises((ValueError, TypeError), match=pattern) as caught:
        act()
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


def test_no_optional_package_is_imported_for_arrays():
    code = (
        "import sys, numpy as np, scipy.sparse as sp\n"
        "from fishergraph.graph import as_graph\n"
        "as_graph(np.array([[0], [1]])); as_graph(sp.eye_array(3).tocsr())\n"
        "names = ('networkx', 'igraph', 'torch', 'pandas', 'polars', 'pyarrow', 'numba')\n"
        "assert not [n for n in names if n in sys.modules], [n for n in names if n in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_subgraph_in_another_order_lists_its_members_in_order():
    rng = np.random.default_rng(0)
    graph = as_graph(sp.csr_array((rng.random((12, 12)) < 0.5).astype(float)))
    order = rng.permutation(12)
    cut = graph[order]
    assert all((np.diff(cut.indices[a:b]) > 0).all() for a, b in zip(cut.indptr[:-1], cut.indptr[1:], strict=True))
    np.testing.assert_array_equal(cut.adjacency.toarray(), graph.adjacency.toarray()[order][:, order])


def test_node_numbers_that_do_not_count():
    with pytest.raises(ValueError, match="1099511627776"):
        as_graph(np.array([[0, 2**40], [1, 0]]))


def test_weights_in_bfloat16():
    import torch

    graph = as_graph((torch.tensor([[0, 1], [1, 2]]), torch.tensor([2.0, 3.0], dtype=torch.bfloat16)))
    np.testing.assert_array_equal(graph.weights, [2, 3])


def test_ids_beyond_the_largest_integer_are_named_or_kept():
    for source in (np.array([2**63 + 1, 2], dtype=np.uint64), np.array([2**70, 2], dtype=object)):
        with pytest.raises(ValueError, match=r"2\*\*63"):
            as_graph(pd.DataFrame({"source": source, "target": [1, 2]}))
    ids = as_graph(nx.Graph([(2**63, 1), (1, 2**70)])).ids
    assert ids is not None
    assert ids.tolist() == [2**63, 1, 2**70]


def test_flags_and_names_that_do_not_belong():
    graph = as_graph(np.array([[0, 1], [1, 2]]))
    with pytest.raises(ValueError, match="undirected"):
        as_graph(graph, undirected="no")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fishergraph Graph"):
        as_graph(graph, node_ids=[2, 1, 0])


def test_ids_that_end_in_nul_stay_apart():
    """NumPy's own strings drop NUL characters at their ends."""
    assert as_graph(nx.Graph([("x", "x\0"), ("x", "y")])).ids.tolist() == ["x", "x\0", "y"]
    named = igraph.Graph(edges=[(0, 1)])
    named.vs["name"] = ["x", "x\0"]
    assert as_graph(named).ids.tolist() == ["x", "x\0"]
