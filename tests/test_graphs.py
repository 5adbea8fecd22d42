"""as_graphs: what a list of graphs may be, the union they become, and what is said of bad lists."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from fishergraph import Graphs, as_graph, as_graphs

PATH, CYCLE = nx.path_graph(4), nx.cycle_graph(5)


def adjacency(graphs: Graphs) -> np.ndarray:
    return graphs.graph.adjacency.toarray()


def test_the_union_has_the_graphs_as_its_blocks():
    graphs = as_graphs([PATH, CYCLE, nx.star_graph(2)])
    expected = sp.block_diag([nx.to_numpy_array(g) for g in (PATH, CYCLE, nx.star_graph(2))]).toarray()
    np.testing.assert_array_equal(adjacency(graphs), expected)
    assert graphs.graph_ptr.tolist() == [0, 4, 9, 12]
    assert (len(graphs), graphs.n_nodes) == (3, 12)
    assert graphs.X is None
    assert repr(graphs) == "Graphs(3 graphs: 12 nodes, 20 directed edges)"


def test_weights_of_some_graphs_are_kept():
    weighted = nx.Graph([(0, 1, {"weight": 3.0})])
    graphs = as_graphs([PATH, weighted])
    np.testing.assert_array_equal(adjacency(graphs)[4:, 4:], [[0, 3], [3, 0]])
    np.testing.assert_array_equal(adjacency(graphs)[:4, :4], nx.to_numpy_array(PATH))


@pytest.mark.parametrize("key", [1, slice(1, 3), [2, 0], np.array([True, False, True]), np.array([1, 1, 0])])
def test_some_of_the_graphs_are_their_union(key):
    entries = [
        {"graph": as_graph(g), "X": np.full((len(g), 2), k), "tags": np.arange(len(g)) + 10 * k}
        for k, g in enumerate((PATH, CYCLE, nx.star_graph(2)))
    ]
    chosen = np.atleast_1d(np.arange(3)[key])
    found, expected = as_graphs(entries)[key], as_graphs([entries[k] for k in chosen])
    np.testing.assert_array_equal(adjacency(found), adjacency(expected))
    np.testing.assert_array_equal(found.graph_ptr, expected.graph_ptr)
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.tags, expected.tags)


def test_edge_tags_follow_their_graphs():
    edges = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    entries = [{"graph": edges, "edge_tags": np.array([a, a, b, b])} for a, b in ((1, 2), (3, 4))]
    both = as_graphs(entries)
    assert sorted(zip(both.edge_tags.nodes.tolist(), both.edge_tags.tags.tolist(), strict=True)) == [
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 2),
        (3, 3),
        (4, 3),
        (4, 4),
        (5, 4),
    ]
    last = both[[1]]
    assert sorted(zip(last.edge_tags.nodes.tolist(), last.edge_tags.tags.tolist(), strict=True)) == [
        (0, 3),
        (1, 3),
        (1, 4),
        (2, 4),
    ]


def test_graphs_of_one_make_a_list_again():
    graphs = as_graphs([(np.eye(4), PATH), (np.ones((5, 4)), CYCLE)])
    again = as_graphs(list(graphs))
    np.testing.assert_array_equal(adjacency(again), adjacency(graphs))
    np.testing.assert_array_equal(again.X, graphs.X)
    assert as_graphs(graphs) is graphs


def test_scikit_learn_cuts_graphs_out():
    graphs = as_graphs([PATH, CYCLE, nx.star_graph(2)])
    assert _safe_indexing(graphs, np.array([2, 0])).graph_ptr.tolist() == [0, 3, 7]


# --- kinds of graphs --------------------------------------------------------------------------------------


def test_networkx_attributes_are_read():
    graph = nx.Graph()
    graph.add_node("a", x=[1.0, 0.0], label="C")
    graph.add_node("b", x=[0.0, 1.0], label="N")
    graph.add_edge("a", "b", label="double")
    found = as_graphs([graph])
    np.testing.assert_array_equal(found.X, np.eye(2))
    assert found.tags.tolist() == ["C", "N"]
    assert sorted(found.edge_tags.nodes.tolist()) == [0, 1]
    assert set(found.edge_tags.tags.tolist()) == {"double"}


def test_networkx_nodes_that_count_keep_their_rows():
    graph = nx.Graph([(2, 0), (0, 1)])  # listed as 2, 0, 1
    for node in graph:
        graph.nodes[node]["label"] = node
    assert as_graphs([graph]).tags.tolist() == [0, 1, 2]


def test_other_names_of_attributes():
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, {0: 7, 1: 8}, "atom")
    assert as_graphs([graph]).tags is None
    assert as_graphs([graph], tags="atom").tags.tolist() == [7, 8]


def test_pyg_data_datasets_and_batches():
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    one = data.Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), label=torch.tensor([4, 5, 6]))
    two = data.Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]), label=torch.tensor([4, 4]))
    for given in ([one, two], data.Batch.from_data_list([one, two])):
        found = as_graphs(given)
        assert found.graph_ptr.tolist() == [0, 3, 5]
        assert found.tags.tolist() == [4, 5, 6, 4, 4]
        np.testing.assert_array_equal(found.X, np.concatenate([np.eye(3), np.ones((2, 3))]))
        np.testing.assert_array_equal(adjacency(found)[3:, 3:], [[0, 0], [1, 0]])  # source sends to target
    assert as_graphs([one, two], undirected=True).graph.n_edges == 6


def test_pairs_are_features_or_tags_with_a_graph():
    features = as_graphs([(np.eye(4), PATH)])
    assert features.X.shape == (4, 4)
    tags = as_graphs([(["a", "b", "a", "b"], PATH)])
    assert tags.tags.tolist() == ["a", "b", "a", "b"]
    edges = (np.array([[0, 1], [1, 2]]), np.array([2.0, 3.0]))
    weighted = as_graphs([edges])  # an edge index with weights is a graph of as_graph
    assert weighted.X is None
    assert sorted(weighted.graph.weights.tolist()) == [2.0, 3.0]


def test_undirected_reaches_graphs_that_were_read():
    graphs = as_graphs([np.array([[0], [1]])])
    assert as_graphs(graphs, undirected=True).graph.n_edges == 2


# --- bad input --------------------------------------------------------------------------------------------

BAD = [
    ([], "empty"),
    (PATH, "networkx"),
    (sp.eye_array(3, format="csr"), "csr_array"),
    ([PATH, nx.Graph()], "graph 1"),
    ([PATH, 3], "graph 1"),
    ([(np.eye(4), PATH), CYCLE], "features"),
    ([([0] * 4, PATH), CYCLE], "tags"),
    (
        [(np.ones((4, 2)), PATH), (np.ones((5, 3)), CYCLE)],
        "3 in graph 1",
    ),
    ([(np.ones((3, 2)), PATH)], "graph 0"),
    ([([1, 2], PATH)], "tags"),
    ([([0.5, 1, 2, 3], PATH)], r"0\.5 at node 0"),
    ([(["a"] * 4, PATH), ([1] * 5, CYCLE)], "got both"),
    ([{"X": np.eye(4)}], "'graph'"),
    ([{"graph": PATH, "edge_tags": [1]}], "edge_tags"),
    ([(np.array([["a"]] * 4), PATH)], "features"),
    ([as_graphs([PATH, CYCLE])], "got 2"),
    (as_graphs([PATH, CYCLE])[[]], "empty"),
    ([([1.0, np.inf, 0, 0], PATH)], "node 1"),
    ([(np.array([0, 2**63, 1, 2], np.uint64), PATH)], "got 9223372036854775808 at node 1"),
    ([(np.array(["C", 2.5, "N", "C"], object), PATH)], "got 2.5 at node 1"),
    ([(np.array(["2020-01-01"] * 4, "datetime64[ns]"), PATH)], "tags"),
    ([(["C"], np.array([[0, 1], [1, 2]]))], "edge 0"),
]


@pytest.mark.parametrize(("graphs", "sentence"), BAD, ids=range(len(BAD)))
def test_bad_lists_are_one_sentence(graphs, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        as_graphs(graphs)


def test_tags_at_some_nodes_only():
    graph = nx.path_graph(3)
    graph.nodes[1]["label"] = "C"
    with pytest.raises(ValueError, match="node 0"):
        as_graphs([graph])


# --- features and tags in other clothes -------------------------------------------------------------------


def with_attribute(values: list, name: str = "x") -> nx.Graph:
    graph = nx.path_graph(len(values))
    nx.set_node_attributes(graph, dict(enumerate(values)), name)
    return graph


def test_a_number_at_every_node_is_one_feature():
    np.testing.assert_array_equal(as_graphs([with_attribute([1.0, 2.0, 3.0])]).X, [[1], [2], [3]])


@pytest.mark.parametrize(
    ("values", "node"), [(["a", "b"], 0), ([[1, 2], [1]], 1), ([[1, 2], [1, [2, 3]]], 1), ([1.0, "b"], 1)]
)
def test_an_attribute_that_is_not_a_vector_is_named_by_graph_and_node(values, node):
    with pytest.raises(ValueError, match=rf"graph 1.* at node {node} "):
        as_graphs([with_attribute([1.0, 2.0]), with_attribute(values)])


@pytest.mark.parametrize("as_dictionary", [False, True])
def test_tags_count_the_nodes_of_a_bare_list_of_edges(as_dictionary):
    edges, tags = np.array([[0, 1], [1, 0]]), ["a", "b", "c"]
    graphs = as_graphs([{"graph": edges, "tags": tags} if as_dictionary else (tags, edges)])
    assert graphs.n_nodes == 3
    assert graphs.tags.tolist() == tags


@pytest.mark.parametrize("tags", [np.array(["C", "N", "CC", "N"], object), pd.Series(["C", "N", "CC", "N"])])
def test_texts_may_be_objects(tags):
    found = as_graphs([(tags, PATH)]).tags
    assert found.dtype.kind == "U"
    assert found.tolist() == ["C", "N", "CC", "N"]
    assert as_graphs([(np.array([3, 1, 2, 0], object), PATH)]).tags.tolist() == [3, 1, 2, 0]


def bonds(edge_tags) -> list[tuple[int, object]]:
    return sorted(zip(edge_tags.nodes.tolist(), edge_tags.tags.tolist(), strict=True))


def test_a_graph_without_edges_lacks_no_tags_of_edges():
    tagged = nx.path_graph(2)
    nx.set_edge_attributes(tagged, "double", "label")
    none = np.empty((2, 0), int)
    graphs = as_graphs([nx.empty_graph(2), tagged])
    assert bonds(graphs.edge_tags) == [(2, "double"), (3, "double")]
    assert as_graphs([{"graph": none, "X": np.eye(2), "edge_tags": []}]).edge_tags is None
    assert as_graphs([PATH, nx.empty_graph(2)]).edge_tags is None
    with pytest.raises(ValueError, match="tags"):
        as_graphs([PATH, tagged])


def test_undirected_edges_have_their_tags_at_both_ends():
    edges = np.array([[0, 1, 2, 3], [1, 0, 1, 3]])  # one is listed both ways, one is not, one is a loop
    entry = {"graph": edges, "edge_tags": [5, 5, 6, 7]}
    assert bonds(as_graphs([entry]).edge_tags) == [(0, 5), (1, 5), (1, 6), (3, 7)]
    assert bonds(as_graphs([entry], undirected=True).edge_tags) == [(0, 5), (1, 5), (1, 6), (2, 6), (3, 7)]
    directed = nx.DiGraph([(0, 1, {"label": 5})])
    assert bonds(as_graphs([directed], undirected=True).edge_tags) == [(0, 5), (1, 5)]
    for given in (as_graphs([entry]), [as_graphs([entry])]):
        with pytest.raises(ValueError, match="undirected=True"):
            as_graphs(given, undirected=True)
    both = as_graphs([entry], undirected=True)
    assert bonds(as_graphs(both, undirected=True).edge_tags) == bonds(both.edge_tags)


def test_tags_that_numpy_would_make_one_are_refused():
    with pytest.raises(ValueError, match="without NUL characters"):
        as_graphs([(["x", "x\0"], np.array([[0], [1]]))])
