"""What people have becomes nodes in one order, or a message says what is wrong."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from fishergraph import as_graph
from fishergraph._errors import FishergraphWarning, InputError, InputTypeError
from fishergraph.explore.columns import arrow_column
from fishergraph.explore.fields import read_fields, read_labels
from fishergraph.explore.inputs import read_embedding, read_graph
from fishergraph.explore.tables import MOST_FIELDS
from fishergraph.io.embedding_file import write_embedding

Z = np.arange(12, dtype=np.float32).reshape(4, 3)
IDS = ["d", "b", "a", "c"]


def nodes(ids=IDS, graph=None):
    return read_embedding(Z, ids, None, graph)


# --- embeddings -----------------------------------------------------------------------------------------------


def test_rows_are_the_ids_of_an_embedding_without_ids():
    found = nodes(None)
    assert found.ids.tolist() == [0, 1, 2, 3]
    assert not found.named
    assert found.blocks == [("embedding", 3)]


@pytest.mark.parametrize("kind", ["pandas", "file", "vectors", "graph"])
def test_ids_come_with_the_embedding(kind, tmp_path):
    graph = None
    if kind == "pandas":
        source = pd.DataFrame(Z, index=IDS)
    elif kind == "file":
        source = tmp_path / "z.parquet"
        write_embedding(source, IDS, Z, blocks=[("psi0", 1), ("walk", 2)])
    elif kind == "vectors":
        from fishergraph import Vectors

        source = Vectors(Z, ids=IDS)
    else:
        source, graph = Z, as_graph([("a", "b"), ("c", "d")])
    found = read_embedding(source, None, None, graph)
    assert found.ids.tolist() == (["a", "b", "c", "d"] if kind == "graph" else IDS)
    assert found.named
    assert np.array_equal(found.Z, Z)
    if kind == "file":
        assert found.blocks == [("psi0", 1), ("walk", 2)]


def test_ids_of_other_types_are_shown_as_texts():
    found = read_embedding(Z, [("a", 1), ("a", 2), 3, None], None, None)
    assert found.ids.tolist() == ["('a', 1)", "('a', 2)", "3", "None"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"ids": ["a", "b"]}, "ids"),
        ({"ids": ["a", "b", "a", "c"]}, "distinct"),
        ({"blocks": [("psi0", 2)]}, "blocks"),
        ({"Z": np.zeros((0, 3))}, "row"),
        ({"Z": np.zeros(3)}, "matrix"),
        ({"Z": np.array([[0.0, np.nan]] * 4)}, "row 0"),
        ({"Z": sp.csr_array(Z)}, "dense"),
        ({"Z": np.array([["a"] * 3] * 4)}, "numbers"),
    ],
)
def test_embeddings_that_cannot_be_used(arguments, word):
    with pytest.raises((InputError, InputTypeError), match=word):
        read_embedding(arguments.get("Z", Z), arguments.get("ids"), arguments.get("blocks"), None)


def test_a_wrong_row_is_named_by_its_id():
    wrong = Z.copy()
    wrong[2, 1] = np.inf
    with pytest.raises(InputError, match="'a'"):
        read_embedding(wrong, IDS, None, None)


# --- graphs ---------------------------------------------------------------------------------------------------


def pairs(graph, ids):
    A = graph.adjacency.tocoo()
    return {(ids[v], ids[u]) for v, u in zip(A.row.tolist(), A.col.tolist(), strict=True)}


@pytest.mark.parametrize("kind", ["table", "list", "networkx", "graph"])
def test_named_graphs_are_put_in_order(kind):
    table = pd.DataFrame({"source": ["a", "c"], "target": ["b", "a"]})
    graphs = {
        "table": table,
        "list": [("a", "b"), ("c", "a")],
        "networkx": nx.DiGraph([("a", "b"), ("c", "a")]),
        "graph": as_graph(table),
    }
    found = nodes()
    graph = read_graph(graphs[kind], found)
    assert pairs(graph, IDS) == {("b", "a"), ("a", "c")}
    assert any("no edge" in note for note in found.notes)  # d


def test_unnamed_graphs_go_by_rows():
    A = sp.csr_array((np.ones(1), ([0], [3])), shape=(4, 4))
    assert pairs(read_graph(A, nodes()), IDS) == {("d", "c")}
    assert pairs(read_graph(np.array([[0], [3]]), nodes(None)), [0, 1, 2, 3]) == {(3, 0)}


def test_integers_match_texts():
    found = nodes(["10", "20", "30", "40"])
    graph = read_graph(pd.DataFrame({"source": [10], "target": [40]}), found)
    assert pairs(graph, found.ids.tolist()) == {("40", "10")}


def test_edges_of_other_nodes_are_left_out_and_said():
    found = nodes()
    with pytest.warns(FishergraphWarning, match="left out"):
        graph = read_graph([("a", "b"), ("a", "z")], found)
    assert pairs(graph, IDS) == {("b", "a")}
    assert any("1 of 2 edges" in note for note in found.notes)


def test_an_embedding_of_some_nodes_of_a_graph():
    whole = as_graph(nx.cycle_graph(6))
    with pytest.warns(FishergraphWarning):
        found = read_graph(whole, nodes([4, 5, 0, 1]))
    assert pairs(found, [4, 5, 0, 1]) == {(4, 5), (5, 4), (5, 0), (0, 5), (0, 1), (1, 0)}


def test_the_graph_of_another_embedding():
    with pytest.raises(InputError, match="none of them"):
        read_graph([("x", "y")], nodes())
    with pytest.raises(InputError, match="9 nodes"):
        read_graph(sp.csr_array((9, 9)), nodes(None))


# --- columns --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["index", "id column", "polars", "arrow", "mapping"])
def test_tables_are_matched_by_ids(kind):
    data = {"age": [1, 2, 3, 4], "note": ["w", "x", None, "z"]}
    ids = ["a", "b", "c", "d"]
    tables = {
        "index": pd.DataFrame(data, index=ids),
        "id column": pd.DataFrame({"ID": ids, **data}),
        "polars": pl.DataFrame({"node": ids, **data}),
        "arrow": pa.table({"id": ids, **data}),
        "mapping": {"id": ids, **data},
    }
    found = read_fields(tables[kind], nodes())
    assert [column.name for column in found] == ["age", "note"]
    assert found[0].texts() == ["4", "2", "1", "3"]
    assert found[1].texts() == ["z", "x", "w", None]


def test_tables_without_ids_go_by_rows():
    (age,) = read_fields(pd.DataFrame({"age": [1, 2, 3, 4]}), nodes())
    assert age.texts() == ["1", "2", "3", "4"]


def test_a_table_of_some_nodes_leaves_values_missing():
    found = nodes()
    table = pd.DataFrame({"n": [1], "x": [0.5], "t": ["long text"], "d": pd.to_datetime(["2021-03-05"])}, index=["b"])
    columns = read_fields(table, found)
    assert [column.texts() for column in columns] == [
        [None, "1", None, None],
        [None, "0.5", None, None],
        [None, "long text", None, None],
        [None, "2021-03-05", None, None],
    ]
    assert any("3 nodes" in note for note in found.notes)


def test_tables_that_do_not_fit():
    with pytest.raises(InputError, match="3 rows"):
        read_fields({"age": [1, 2, 3]}, nodes())
    with pytest.raises(InputError, match="twice"):
        read_fields({"id": ["a", "a", "b", "c"], "age": [1, 2, 3, 4]}, nodes())
    with pytest.raises(InputTypeError, match="table"):
        read_fields(3, nodes())
    with pytest.raises(InputError, match="one length"):
        read_fields({"a": [1, 2, 3, 4], "b": [1]}, nodes())


def test_columns_that_are_not_shown_are_named():
    found = nodes()
    wide = {f"c{k}": np.arange(4) for k in range(MOST_FIELDS + 5)} | {"word": ["p", "q", "r", "s"]}
    columns = read_fields(wide, found)
    assert len(columns) == MOST_FIELDS
    assert "word" in [column.name for column in columns]
    assert any("6 of" in note for note in found.notes)
    read_fields({"vector": [[1.0, 2.0]] * 4}, found)
    assert any("vector" in note for note in found.notes)


def test_columns_of_one_name_are_told_apart():
    table = pd.DataFrame([[1, 2]] * 4, columns=["x", "x"])
    assert [column.name for column in read_fields(table, nodes())] == ["x", "x (2)"]


def test_a_node_file(tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_text(
        'id,code,day,score,text\na,007,2021-03-05,1.50,"x, y"\nb,012,,,\nc,1,2020-01-01,2,z\nd,1,2020-01-02,3,z\n'
    )
    columns = {column.name: column for column in read_fields(path, nodes())}
    assert columns["code"].texts() == ["1", "012", "007", "1"]
    assert columns["day"].kind == "date"
    assert columns["day"].texts() == ["2020-01-02", None, "2021-03-05", "2020-01-01"]
    assert columns["score"].texts() == ["3.0", None, "1.5", "2.0"]
    assert columns["text"].texts() == ["z", None, "x, y", "z"]


# --- labels ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (["x", None, "y", "x"], ["x", None, "y", "x"]),
        (np.array([0, 1, 2, 0]), ["0", "1", "2", "0"]),
        (np.array([0, 1, -1, 2]), ["0", "1", None, "2"]),
        (np.array([-1, 1, -1, 1]), ["-1", "1", "-1", "1"]),
        (np.array([0.0, 1.0, np.nan, 2.0]), ["0", "1", None, "2"]),
        ([True, False, True, True], ["True", "False", "True", "True"]),
        (pd.Series(["p", "q", "r", "s"], index=["a", "b", "c", "d"]), ["s", "q", "p", "r"]),
        ({"a": "x", "d": "y"}, ["y", None, "x", None]),
    ],
)
def test_labels(labels, texts):
    found = read_labels(labels, nodes(), "label")
    assert (found.kind, found.role) == ("category", "label")
    assert found.texts() == texts


def test_measured_labels_are_numbers():
    found = read_labels([0.5, 1.5, None, 2.5], nodes(), "prediction")
    assert (found.kind, found.role) == ("number", "prediction")


def test_names_of_labels():
    found = read_labels(np.array([0, 1, 1, -1]), nodes(), "label", {0: "no", 1: "yes", -1: "?"})
    assert found.texts() == ["no", "yes", "yes", "?"]
    assert read_labels(["x", "y", "x", "x"], nodes(), "label", {"x": "X", "y": "Y"}).texts() == ["X", "Y", "X", "X"]
    with pytest.raises(InputError, match="names"):
        read_labels(np.array([0, 1, 5, 0]), nodes(), "label", ["no", "yes"])


def test_a_field_as_labels():
    found = nodes()
    found.columns = read_fields({"topic": ["x", "y", "x", "y"], "age": [1, 2, 3, 4]}, found)
    label = read_labels("topic", found, "label")
    assert (label.name, label.role) == ("topic", "label")
    assert [column.name for column in found.columns] == ["age"]
    with pytest.raises(InputError, match="'age'"):
        read_labels("colour", found, "label")


@pytest.mark.parametrize("labels", [["x"], np.zeros((4, 2)), {"z": 1}])
def test_labels_of_another_length(labels):
    with pytest.raises(InputError, match="label"):
        read_labels(labels, nodes(), "label")


def test_columns_that_are_made_already_are_no_ids():
    made = arrow_column("team", ["x", "y", "x", "y"])
    (team,) = read_fields({"team": made}, nodes())
    assert team.texts() == ["x", "y", "x", "y"]


def test_a_table_of_other_nodes_is_refused():
    with pytest.raises(InputError, match="none"):
        read_fields({"id": ["q1", "q2", "q3", "q4"], "age": [1, 2, 3, 4]}, nodes())
