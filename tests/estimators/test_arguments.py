"""What new users pass: it is understood, or the answer is a call that works."""

from __future__ import annotations

import re
import warnings

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from fishergraph import (
    FisherEmbedding,
    FisherSetEmbedding,
    LogisticProbe,
    as_graph,
    as_graphs,
    load_graph,
    node_table,
    structural_features,
)
from fishergraph._errors import InputError
from models import graph_model

NAMES = [f"p{v:02d}" for v in range(34)]
CLUB = nx.relabel_nodes(nx.karate_club_graph(), dict(enumerate(NAMES)))
for _name, _attributes in CLUB.nodes(data=True):
    _attributes.clear()
EDGES = nx.to_pandas_edgelist(CLUB)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(34, 5)), index=RNG.permutation(NAMES), columns=list("abcde"))
NOTHING_SAID = pytest.mark.filterwarnings("error")


def small(**changes) -> FisherEmbedding:
    """The default with everything small."""
    return FisherEmbedding(n_layers=1, n_anchors=2, dim=6, random_state=0, **changes)


def framed() -> FisherEmbedding:
    return small().set_output(transform="pandas")


def advised(message: str, pattern: str) -> str:
    """The call in a message."""
    found = re.search(pattern, message)
    assert found, message
    return found.group(1)


# --- the index of pandas output --------------------------------------------------------------------------


@NOTHING_SAID
@pytest.mark.parametrize(
    "graph",
    [EDGES, CLUB, pl.DataFrame(EDGES.to_dict("list")), list(CLUB.edges(data=True)), as_graph(EDGES)],
    ids=["table", "networkx", "polars", "list", "graph"],
)
def test_the_index_is_the_ids_of_the_graph(graph):
    model = framed()
    Z = model.fit_transform(graph=graph)
    assert sorted(Z.index) == NAMES
    assert list(Z.columns) == list(model.get_feature_names_out())
    pd.testing.assert_frame_equal(model.transform(graph=graph), Z)
    assert not pd.DataFrame({"age": 1.0}, index=NAMES).join(Z).isna().any().any()
    np.testing.assert_array_equal(Z.to_numpy(), small().fit_transform(graph=graph))
    ids = as_graph(graph).ids
    np.testing.assert_array_equal(Z.loc[ids].to_numpy(), Z.to_numpy())


def test_the_index_of_a_table_of_features_stays():
    for graph in (EDGES, CLUB):
        Z = framed().fit_transform(FRAME, graph=graph)
        assert list(Z.index) == list(FRAME.index)
    by_position = FRAME.reset_index(drop=True)
    assert list(framed().fit_transform(by_position, graph=as_graph(EDGES)).index) == list(range(34))


def test_plain_features_beside_a_graph_with_names():
    Z = framed().fit_transform(FRAME.to_numpy(), graph=CLUB)
    assert list(Z.index) == NAMES


def test_tuples_as_nodes_are_one_name_each():
    grid = nx.grid_graph((3, 4))
    Z = framed().fit_transform(graph=grid)
    assert not isinstance(Z.index, pd.MultiIndex)
    assert list(Z.index) == list(grid)


def test_other_output_is_as_before():
    assert isinstance(small().fit_transform(graph=EDGES), np.ndarray)
    assert small().set_output(transform="polars").fit_transform(graph=EDGES).shape == (34, 24)
    numbers = framed().fit_transform(graph=nx.karate_club_graph())
    assert list(numbers.index) == list(range(34))


# --- a graph in the fit, and none later ------------------------------------------------------------------


def test_a_graph_is_required_if_the_fit_had_one(tmp_path):
    X, graph = FRAME.to_numpy(), as_graph(CLUB)
    model = small().fit(X, graph=graph)
    model.save(tmp_path / "model.safetensors")
    for known in (model, FisherEmbedding.load(tmp_path / "model.safetensors")):
        with pytest.raises(ValueError, match="graph must be given") as error:
            known.transform(X)
        call = advised(str(error.value), r"or graph=(scipy.*) if they have no edges")
        alone = known.transform(X, graph=eval(call, {"scipy": __import__("scipy"), "X": X}))
        assert np.abs(alone - known.transform(X, graph=graph)).max() > 0.01
    without = small().fit(X)
    assert without.transform(X).shape == (34, 23)
    with pytest.raises(ValueError, match="left out"):
        without.transform(X, graph=graph)


def test_tensors_too():
    torch = pytest.importorskip("torch")
    x, edges = torch.from_numpy(FRAME.to_numpy()), torch.from_numpy(np.array(nx.karate_club_graph().edges).T)
    model = small().fit(x, graph=edges)
    with pytest.raises(ValueError, match="graph must be given"):
        model.transform(x)


# --- graphs in the place of X ----------------------------------------------------------------------------


@NOTHING_SAID
def test_a_graph_alone():
    """X is left out, or the graph stands in its place."""
    expected = small().fit_transform(None, graph=CLUB)
    ring = igraph.Graph.Ring(30)
    for Z in (
        small().fit_transform(CLUB),
        small().fit_transform(graph=CLUB),
        small().fit(CLUB).transform(CLUB),
        small().fit(graph=CLUB).transform(graph=CLUB),
        small().fit_transform(as_graph(CLUB)),
    ):
        np.testing.assert_array_equal(Z, expected)
    np.testing.assert_array_equal(small().fit_transform(ring), small().fit_transform(None, graph=ring))
    # ψ_0, ψ_1 and the walk have six columns, the smoothed axes five, the factors four, and the local columns six.
    assert small().fit_transform(X=FRAME, graph=CLUB).shape == (34, 33)


def test_records_with_features_and_a_graph():
    cora = load_graph("cora")
    expected = small().fit_transform(cora.X, graph=cora.graph)
    np.testing.assert_array_equal(small().fit_transform(cora), expected)
    with pytest.raises(TypeError, match=r"data\.graph"):
        small().fit(cora.X, graph=cora)


def test_data_of_pytorch_geometric():
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric")
    edges = torch.tensor(np.array(nx.karate_club_graph().edges).T)
    x = torch.tensor(FRAME.to_numpy())
    data = pyg.data.Data(x=x, edge_index=edges)
    model = small()
    expected = model.fit_transform(x, graph=data)
    torch.testing.assert_close(model.transform(x, graph=edges), expected)
    assert torch.equal(small().fit_transform(data), expected)
    assert torch.equal(small().fit(data).transform(data), expected)
    with pytest.warns(UserWarning, match=r"graph\.x"):
        structural = small().fit_transform(graph=data)
    np.testing.assert_array_equal(structural, small().fit_transform(graph=edges.numpy()))


def test_two_graphs_or_nothing():
    with pytest.raises(TypeError, match="networkx"):
        small().fit(CLUB, graph=CLUB)
    for call in (small().fit, small().fit_transform):
        with pytest.raises(TypeError, match="X or graph"):
            call()
    with pytest.raises(TypeError, match="positional"):
        FisherSetEmbedding().fit_transform()


@pytest.mark.parametrize("table", [EDGES, EDGES[["source", "target"]], pl.DataFrame(EDGES.to_dict("list"))], ids=repr)
def test_an_edge_table_instead_of_X(table):
    with pytest.raises(TypeError, match="edge table"):
        small().fit_transform(table)
    assert small().fit_transform(graph=table).shape == (34, 24)
    numbers = pd.DataFrame(RNG.normal(size=(9, 2)), columns=["from", "to"])
    assert small().fit_transform(numbers.to_numpy()).shape[0] == 9


def test_columns_u_and_v_may_be_features():
    wind = pd.DataFrame(RNG.normal(size=(9, 3)), columns=["u", "v", "w"])
    assert small().fit_transform(wind).shape[0] == 9
    with pytest.raises(TypeError, match="edge table"):
        small().fit(wind[["u", "v"]])


def test_lists_of_edges():
    edges = [("a", "b"), ("b", "c"), ("c", "d", 2.0)]
    Z = framed().fit_transform(graph=edges)
    assert list(Z.index) == list("abcd")
    X = np.eye(4)
    numbered = [(0, 1), (1, 2)]  # node 3 has no edge
    expected = small().fit_transform(X, graph=as_graph(np.array(numbered).T, n_nodes=4))
    np.testing.assert_array_equal(small().fit_transform(X, graph=numbered), expected)
    named = small().fit_transform(pd.DataFrame(X, index=list("dcba")), graph=edges)
    np.testing.assert_array_equal(named, small().fit_transform(X, graph=as_graph(edges, node_ids=list("dcba"))))
    for wrong in (edges, numbered, [(0, 1, 0.5)]):
        with pytest.raises(TypeError, match="graph=X"):
            small().fit(wrong)
    assert small().fit_transform(np.asarray([(0, 1), (1, 2), (5, 5)])).shape[0] == 3
    assert small().fit_transform([(0.5, 1.0), (1.0, 2.0), (3.0, 1.0)]).shape[0] == 3


def test_a_table_of_edges_and_a_last_row_without():
    table = pd.DataFrame({"source": [0, 1], "target": [1, 2]})
    X = RNG.normal(size=(4, 3))
    expected = small().fit_transform(X, graph=as_graph(table, n_nodes=4))
    np.testing.assert_array_equal(small().fit_transform(X, graph=table), expected)


@pytest.mark.parametrize("dense", [False, True])
def test_an_adjacency_matrix_instead_of_X(dense):
    A = nx.to_scipy_sparse_array(nx.karate_club_graph())
    A = A.toarray() if dense else A
    with pytest.warns(UserWarning, match="square") as said:
        small().fit(A)
    call = advised(str(said[0].message), r"graph=(scipy.*?\)),")
    graph = eval(call, {"scipy": __import__("scipy"), "X": A})
    assert small().fit_transform(graph=graph).shape == (34, 24)


@NOTHING_SAID
def test_square_features_are_not_an_adjacency():
    square = RNG.normal(size=(20, 20))
    for X in (square, square @ square.T, np.eye(20)):
        small().fit(X)
    small().fit(sp.csr_array(np.abs(square)), graph=sp.csr_array((20, 20)))


# --- nodes that carry something --------------------------------------------------------------------------


def carrying() -> nx.Graph:
    """Nodes 0 … 7 that were not added in order, with two numbers, a vector and a text."""
    graph = nx.Graph()
    for v in RNG.permutation(8).tolist():
        graph.add_node(v, age=v, income=2.0 * v, city="x", x=np.array([v, 1.0]))
    nx.add_path(graph, range(8))
    return graph


def advised_table(said, graph):
    """The X that a warning advises."""
    return eval(advised(str(said[0].message), r"pass X=(.*)\."), {"node_table": node_table, "graph": graph})


def test_a_warning_names_the_attributes_of_networkx_nodes_and_the_way_to_all_of_them():
    graph = carrying()
    with pytest.warns(UserWarning, match="'age', 'income', 'city', 'x'") as said:
        small().fit(graph=graph)
    X = advised_table(said, graph)
    assert X["city"].tolist() == ["x"] * 8
    assert X.sort_index()["income"].tolist() == [2.0 * k for k in range(8)]
    assert sorted(framed().fit_transform(X[["age", "income"]], graph=graph).index) == list(range(8))


def test_vectors_of_networkx_nodes():
    graph = nx.Graph()
    graph.add_nodes_from((name, {"where": [float(k), 1.0, 2.0]}) for k, name in enumerate("dbca"))
    nx.add_path(graph, "abcd")
    with pytest.warns(UserWarning, match="'where'") as said:
        small().fit(graph=graph)
    X = advised_table(said, graph)
    assert list(X.loc["c", "where"]) == [2.0, 1.0, 2.0]
    assert small().fit_transform(X, graph=graph).shape[0] == 4


def test_attributes_of_igraph_vertices():
    graph = igraph.Graph.Ring(12)
    graph.vs["name"], graph.vs["age"] = [f"v{k}" for k in range(12)], list(range(12))
    with pytest.warns(UserWarning, match="'age'") as said:
        small().fit(graph=graph)
    X = advised_table(said, graph)
    assert small(normalize=False).fit_transform(X, graph=graph).shape[0] == 12


@pytest.mark.filterwarnings("error:the nodes")
def test_no_warning_if_nothing_is_lost():
    graph = carrying()
    small().fit(pd.DataFrame.from_dict(dict(graph.nodes(data=True)), orient="index")[["age", "income"]], graph=graph)
    small().fit(graph=as_graph(graph))  # which says that the attributes are left aside


def test_texts_of_networkx_nodes_are_told_too():
    graph = nx.karate_club_graph()
    with pytest.warns(UserWarning, match="'club'") as said:
        small().fit(graph=graph)
    X = eval(advised(str(said[0].message), r"pass X=(.*)\."), {"node_table": node_table, "graph": graph})
    assert X.loc[0, "club"] == "Mr. Hi"


def test_attributes_of_data_beside_x_are_told():
    data = Data(x=torch.eye(12), edge_index=torch.tensor([range(11), range(1, 12)]), y=torch.zeros(12))
    data.train_mask = torch.ones(12, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().fit(data)
    data.year, data.name = torch.arange(12), [f"p{k}" for k in range(12)]
    with pytest.warns(UserWarning, match="'name', 'year'") as said:
        small().fit(data)
    X = eval(advised(str(said[0].message), r"pass X=(.*) and"), {"node_table": node_table, "graph": data})
    assert set(X.columns) == {"x", "name", "year"}


def test_whole_graphs_tell_of_numbers_that_are_not_read():
    one, two = carrying(), carrying()
    for graph in (one, two):
        for _, attributes in graph.nodes(data=True):
            del attributes["x"]
    with pytest.warns(UserWarning, match="'age', 'income'") as said:
        as_graphs([one, two])
    assert len(said) == 1
    entries = eval(advised(str(said[0].message), r"pass (.*)\."), {"pd": pd, "graphs": [one, two]})
    found = as_graphs(entries)
    assert found.X.tolist() == [[v, 2 * v] for graph in (one, two) for v in graph]
    for graph, cut in zip((one, two), found, strict=True):  # whose rows are in that order too
        np.testing.assert_array_equal(cut.graph.adjacency.toarray(), nx.to_numpy_array(graph))
    for graph in (one, two):
        for _, attributes in graph.nodes(data=True):
            del attributes["income"]
    with pytest.warns(UserWarning, match="'age'") as said:
        graph_model(nodes__n_layers=1, random_state=0).fit([one, two])
    graphs = eval(advised(str(said[0].message), r"pass (.*)\."), {"as_graphs": as_graphs, "graphs": [one, two]})
    assert graphs.X.shape == (16, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph_model(nodes__n_layers=1, random_state=0).fit_transform(graphs=graphs)


# --- ids as a column -------------------------------------------------------------------------------------


IDS = {"texts": (np.array(NAMES), EDGES), "numbers": (np.arange(34), nx.to_pandas_edgelist(nx.karate_club_graph()))}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "Polars", "Arrow"])
def test_rows_meet_their_nodes_by_a_column_of_ids(kind, make):
    ids, graph = IDS[kind]
    order = RNG.permutation(34)
    columns = {name: RNG.normal(size=34) for name in "abc"}
    expected = framed().fit_transform(pd.DataFrame(columns, index=ids).iloc[order], graph=graph)
    shuffled = {name: values[order].tolist() for name, values in {**columns, "Node_ID": ids}.items()}
    model = framed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.fit_transform(make(shuffled), graph=graph)
    assert list(found.index) == ids[order].tolist()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.transform(make(shuffled), graph=graph), found)


def test_a_column_that_names_the_nodes_holds_their_ids():
    X = pd.DataFrame({"a": RNG.normal(size=34), "who": NAMES, "id": np.arange(34)})
    with pytest.warns(UserWarning, match="'who'"):
        found = framed().fit_transform(X[["a", "who"]], graph=EDGES)
    np.testing.assert_array_equal(found, framed().fit_transform(X.set_index("who")[["a"]], graph=EDGES))
    with pytest.warns(UserWarning, match="'who'"):  # though another has the usual name
        assert list(framed().fit_transform(X, graph=EDGES).index) == NAMES
    with pytest.raises(InputError, match="row numbers"):  # repeated names are no ids
        small().fit(X[["a"]].assign(who=["x"] * 34), graph=EDGES)


def test_a_column_of_ids_beside_a_graph_without_names():
    X = pd.DataFrame({"a": RNG.normal(size=34), "id": NAMES})
    with pytest.raises(InputError, match="'id'") as error:
        small().fit(X, graph=nx.to_scipy_sparse_array(nx.karate_club_graph()))
    call = advised(str(error.value), r"these ids, or (.*) if the rows")
    assert small().fit(eval(call, {"X": X}), graph=nx.to_scipy_sparse_array(nx.karate_club_graph()))
    with pytest.raises(InputError, match="'id'"):  # the index names the nodes, so it would be a feature
        small().fit(X.set_index(np.array(NAMES)), graph=EDGES)
    floats = pd.DataFrame({"id": RNG.normal(size=34), "a": RNG.normal(size=34)}, index=NAMES)
    assert small().fit_transform(floats, graph=EDGES).shape[0] == 34  # numbers are features


# --- a table of members ----------------------------------------------------------------------------------


def members(ids) -> pd.DataFrame:
    return pd.DataFrame({"bag": np.repeat(ids, 4), "a": RNG.normal(size=12), "b": RNG.normal(size=12)})


@pytest.mark.filterwarnings("ignore:asked for")
@pytest.mark.parametrize("polars", [False, True])
@pytest.mark.parametrize("ids", [["x", "y", "z"], [10, 11, 12]], ids=["texts", "numbers"])
def test_a_long_table_of_sets(ids, polars):
    table = members(ids)
    expected = FisherSetEmbedding(2, random_state=0).fit_transform(list(table[["a", "b"]].to_numpy().reshape(3, 4, 2)))
    table = pl.DataFrame(table.to_dict("list")) if polars else table
    with pytest.raises(TypeError, match="'bag'") as error:
        FisherSetEmbedding().fit_transform(table)
    groups = eval(advised(str(error.value), r"pass groups=(.*), or"))
    np.testing.assert_array_equal(FisherSetEmbedding(2, random_state=0).fit_transform(table, groups=groups), expected)
    alone = eval(advised(str(error.value), r", or (.*) if every row"), {"X": table})
    assert FisherSetEmbedding(2, random_state=0).fit_transform(alone).shape[0] == 12


@pytest.mark.filterwarnings("ignore:asked for")
def test_a_long_table_with_the_sets_as_its_index():
    table = members(["x", "y", "z"]).set_index("bag")
    with pytest.raises(TypeError, match="index") as error:
        FisherSetEmbedding().fit(table)
    groups = eval(advised(str(error.value), r"pass groups=(.*), or"), {"X": table})
    assert FisherSetEmbedding(2, random_state=0).fit_transform(table, groups=groups).shape[0] == 3


@pytest.mark.filterwarnings("ignore:asked for")
def test_tables_of_single_points_stay():
    floats = pd.DataFrame(RNG.normal(size=(9, 2)), columns=["id", "b"])
    counts = pd.DataFrame(RNG.integers(3, size=(9, 4)), columns=list("abcd"))
    distinct = pd.DataFrame({"n": range(9), "a": RNG.normal(size=9)})
    for table in (floats, counts, distinct):
        assert FisherSetEmbedding(2, random_state=0).fit_transform(table).shape[0] == 9


def test_a_table_with_a_set_in_each_cell():
    table = pd.DataFrame({"id": range(6), "points": list(RNG.normal(size=(6, 4, 2)))})
    with pytest.raises(TypeError, match="'points'"):
        FisherSetEmbedding().fit(table)
    Z = FisherSetEmbedding(2, random_state=0).set_output(transform="pandas").fit_transform(table["points"])
    assert list(Z.index) == list(range(6))


# --- other slips -----------------------------------------------------------------------------------------


def test_lists_of_graphs_in_other_containers():
    graphs = [nx.path_graph(4), nx.star_graph(4), nx.cycle_graph(5)]
    model = graph_model(nodes__n_layers=1, random_state=0)
    expected = model.fit_transform(graphs)
    np.testing.assert_array_equal(model.fit_transform([list(graph.to_directed().edges) for graph in graphs]), expected)
    Z = model.set_output(transform="pandas").fit_transform(pd.Series(graphs, index=list("abc")))
    assert list(Z.index) == list("abc")
    np.testing.assert_array_equal(Z, expected)
    for wrong, words in (
        (dict(zip("abc", graphs, strict=True)), "builtins dict"),
        (iter(graphs), r"pass list\(graphs\)"),
        ([(0, 1), (1, 2)], "edges of one"),
    ):
        with pytest.raises(TypeError, match=words):
            model.fit(wrong)


def test_weights_under_another_name():
    named = EDGES.rename(columns={"weight": "strength"})
    with pytest.warns(UserWarning, match="'strength'"):
        bare = as_graph(named)
    assert bare.weights is None
    assert as_graph(named.rename(columns={"strength": "weight"})).weights is not None
    for table in (EDGES.assign(kind="friend"), EDGES[["source", "target"]].assign(kind="friend", year=2020)):
        with pytest.warns(UserWarning, match="'kind'") as said:
            as_graph(table)
        assert "weight=" not in str(said[0].message)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({0: [1, 2]}, "the key of a relation"),
        ({(0, 1), (1, 2)}, "builtins set"),
        (zip([0, 1], [1, 2], strict=True), "builtins zip"),
        ("edges.csv", "read_edges"),
    ],
    ids=["dict", "set", "zip", "path"],
)
def test_objects_that_are_not_graphs(wrong, words):
    with pytest.raises(TypeError, match=words):
        small().fit(graph=wrong)


def test_what_is_not_X_or_y():
    with pytest.raises(TypeError, match=r"nodes\.csv"):
        small().fit("nodes.csv", graph=CLUB)
    with pytest.raises(TypeError, match="graph="):
        small().fit(None, EDGES)
    assert small().fit(None, np.zeros(34), graph=CLUB).structural_
    with pytest.raises(ValueError, match="node_ids"):
        small().fit(np.ones((5, 2)), graph=[(0, 1), (1, 7)])


def test_a_probe_meets_labels_by_name_or_refuses():
    Z = framed().fit_transform(graph=EDGES)
    y = pd.Series([name[-1] > "4" for name in NAMES], index=NAMES)
    rows = np.arange(34)
    known = LogisticProbe().fit(Z, y, rows[:20], rows[20:])
    with pytest.raises(ValueError, match="reindex"):
        LogisticProbe().fit(Z, y[::-1], rows[:20], rows[20:])
    again = LogisticProbe().fit(Z, y[::-1].reindex(Z.index), rows[:20], rows[20:])
    assert again.val_score_ == known.val_score_


def test_structural_features_are_what_no_X_means():
    model = small()
    Z = model.fit_transform(graph=CLUB)
    X = structural_features(CLUB, dim=6, seed=model.structure_.seed)
    np.testing.assert_array_equal(Z, model.transform(X, graph=CLUB))
    assert [name for name, _ in model.blocks_] == ["psi0", "psi1", "factors", "local"]
