"""Node files as people have them: separators, encodings, packing, decimal commas, and all faults in one error."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fishergraph import FisherEmbedding, _validation, as_graph
from fishergraph._errors import (
    FileFormatError,
    FishergraphWarning,
    InputError,
    MissingValueError,
    NodeFaultsError,
    NotEnoughMemory,
)
from fishergraph.io.columns import check_ids
from fishergraph.io.node_table import read_node_features, read_node_table
from fishergraph.io.tables import read_columns, read_edges, read_nodes
from fishergraph.io.text_options import TextOptions

ROWS = "id,age,city\nann,1,Zürich\nbob,2,Rom\neve,4,Rom\n"


def packed(text: str, packing: str, encoding: str = "utf-8") -> bytes:
    data = text.encode(encoding)
    if packing == ".zst":
        return pa.compress(data, codec="zstd", asbytes=True)
    return gzip.compress(data) if packing else data


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_separator_in_a_file_of_any_suffix(tmp_path, separator, suffix, packing):
    path = tmp_path / f"n{suffix}{packing}"
    path.write_bytes(packed(ROWS.replace(",", separator), packing))
    ids, table = read_node_table(path)
    assert ids.tolist() == ["ann", "bob", "eve"]
    assert table.to_pydict() == {"age": [1, 2, 4], "city": ["Zürich", "Rom", "Rom"]}
    assert read_columns(path, ["city"]) == [["Zürich", "Rom", "Rom"]]
    assert read_nodes(path, drop=["city"])[1].tolist() == [[1], [2], [4]]


@pytest.mark.parametrize(
    ("encoding", "asked"), [("utf-8-sig", None), ("utf-16", None), ("latin-1", "latin-1"), ("utf-8-sig", "latin-1")]
)
def test_encodings(tmp_path, encoding, asked):
    path = tmp_path / "n.csv"
    path.write_bytes(packed(ROWS, "", encoding))
    nodes = read_node_features(path, text=TextOptions(encoding=asked))
    assert nodes.X.column("city").to_pylist()[0] == "Zürich"
    assert nodes.ids.tolist() == ["ann", "bob", "eve"]
    assert any("utf-16" in note for note in nodes.notes) == (encoding == "utf-16")


def test_an_encoding_that_is_not_named_is_advised_with_the_line(tmp_path):
    path = tmp_path / "n.csv"
    path.write_bytes(packed(ROWS, "", "latin-1"))
    with pytest.raises(FileFormatError, match="--encoding") as caught:
        read_nodes(path)
    assert caught.value.line == 2


def test_one_column_has_no_separator(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("id\nann of rome\nbob of oslo\n")
    assert read_nodes(path)[0].tolist() == ["ann of rome", "bob of oslo"]
    assert read_nodes(path, text=TextOptions(separator=";"))[0].tolist() == ["ann of rome", "bob of oslo"]


def test_names_may_be_in_the_comment_above(tmp_path):
    path = tmp_path / "n.txt"
    path.write_text("# people\n# id age\nann 3\n# half\nbob 4\n")
    assert read_nodes(path)[0].tolist() == ["ann", "bob"]
    path = tmp_path / "n.csv"
    path.write_text("#id,age\n#1,3\n2,4\n")
    assert read_nodes(path, "#id")[0].tolist() == ["#1", "2"]


def test_a_header_may_be_longer_than_the_sample(tmp_path):
    path, names = tmp_path / "n.csv", [f"a_long_name_of_a_column_{k}" for k in range(5000)]
    path.write_text("\n".join([",".join(["id", *names]), ",".join(["x", *["1"] * 5000]), ""]))
    assert read_nodes(path)[2] == names


# --- decimal commas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_numbers_and_are_told(tmp_path, separator):
    path = tmp_path / "n.csv"
    cells = [["id", "geld", "alter", "tags"], ["a", "1.234,56", "3", "1,2,3"], ["b", "-8,5", "4", "1"]]
    path.write_text("\n".join(separator.join(row) for row in cells) + "\n")
    nodes = read_node_features(path)
    assert nodes.X.column("geld").to_pylist() == [1234.56, -8.5]
    assert nodes.X.column("tags").to_pylist() == ["1,2,3", "1"]
    assert "decimal commas in geld" in nodes.notes


def test_words_beside_decimal_commas_are_told_by_the_encoder(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("id;x\n" + "".join(f"n{k};{k},5\n" for k in range(19)) + "n19;?\nn20;\n")
    column = read_node_features(path).X.column("x").to_pylist()
    assert column[:2] + column[-2:] == ["0.5", "1.5", "?", None]


def test_commas_that_separate_are_no_decimal_commas(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text('id,x\na,"1,5"\nb,"2,5"\n')
    assert read_node_table(path)[1].column("x").to_pylist() == ["1,5", "2,5"]


@pytest.mark.parametrize(("first", "header"), [("source;target;weight\n", None), ("", False)])
def test_weights_with_decimal_commas(tmp_path, first, header):
    path = tmp_path / "e.csv"
    path.write_text(first + "a;b;8,5\nb;c;1,25\n")
    graph = as_graph(read_edges(path, weight=None if first else 3, header=header))
    assert graph.adjacency.data.tolist() == [8.5, 1.25]
    assert graph.reading is not None
    assert any("decimal commas" in note for note in graph.reading.notes)


# --- faults ---------------------------------------------------------------------------------------------


def test_all_faults_of_a_node_file_are_told_together_with_their_lines(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("id,age\nann,1\n,2\nbob\nann,4\neve,5,6\nbob,1\nbob,2\n")
    with pytest.raises(NodeFaultsError) as caught:
        read_nodes(path)
    faults = {fault["what"]: (fault["count"], fault["lines"]) for fault in caught.value.faults}
    assert faults == {
        "lines without 2 columns": (2, [4, 6]),
        "missing values in column 'id'": (1, [3]),
        "repeated ids": (2, [5, 8]),
    }
    assert "\n" not in str(caught.value)


def test_five_faults_of_many_are_listed(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("id,age\n" + "a,1\n" * 30)
    with pytest.raises(InputError, match="29 repeated ids") as caught:
        read_nodes(path)
    assert caught.value.lines == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [("id,a\nx,1\n,2\n", MissingValueError, 3), ("id,a\nx,1\n\nx,2\n", InputError, 4)],
)
def test_a_single_fault_has_the_type_of_its_own(tmp_path, text, kind, line):
    path = tmp_path / "n.csv"
    path.write_text(text)
    with pytest.raises(kind) as caught:
        read_nodes(path)
    assert caught.value.lines == [line]


def test_faults_of_a_parquet_file_have_rows(tmp_path):
    pd.DataFrame({"id": ["a", None, "a"], "x": [1, 2, 3]}).to_parquet(tmp_path / "n.parquet")
    with pytest.raises(NodeFaultsError) as caught:
        read_nodes(tmp_path / "n.parquet")
    assert [fault["rows"] for fault in caught.value.faults] == [[1], [2]]


def test_labels_of_a_ragged_file_are_not_read_around(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("id,topic\na,x\nb\nc,y\n")
    with pytest.raises(FileFormatError, match="line 3"):
        read_columns(path, ["topic"])


def test_a_repeated_row_does_not_hide_the_column_of_ids(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("name,age\nann,30\nbob,31\neve,40\ndan,35\ndan,35\n")
    named = check_ids(["ann", "bob", "dan", "eve"], "ids")
    with pytest.raises(InputError, match=r"'name'.*'dan' again") as caught:
        read_node_features(path, named=named)
    assert caught.value.lines == [6]
    frame = pd.DataFrame({"age": [1, 2, 2], "name": ["ann", "bob", "bob"]})
    with pytest.raises(InputError, match="bob"):
        FisherEmbedding(random_state=0).fit(frame, graph=[("ann", "bob")])


# --- ids ------------------------------------------------------------------------------------------------


def test_ids_of_nodes_that_differ_by_zeros_are_warned_of(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("id,a\n007,1\n7,2\n8,3\n")
    with pytest.warns(FishergraphWarning, match="'007' and '7'"):
        as_graph([("7", "8")], node_ids=read_nodes(path)[0])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_integral_floats_are_ids(kind):
    assert check_ids(np.array([1, 2, 3], kind), "ids").to_pylist() == [1, 2, 3]
    graph = as_graph(pd.DataFrame({"source": [1.0, 2.0], "target": [2.0, 3.0]}), node_ids=[3, 2, 1])
    assert graph.n_edges == 2


@pytest.mark.parametrize("values", [[1.5, 2.0], [1.0, np.inf], [2.0**53 + 2, 1.0]])
def test_other_floats_are_none(values):
    with pytest.raises(TypeError, match="double"):
        check_ids(np.array(values), "ids")


def test_a_column_of_floats_is_a_feature_unless_its_name_says_otherwise():
    edges = pd.DataFrame({"source": [1, 2], "target": [2, 3]})
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 5.0, 1.0]}, index=[1, 2, 3])
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*names the nodes")
        assert FisherEmbedding(n_anchors=2, dim=2).fit(frame, graph=edges).n_features_in_ == 2


# --- size -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["n.csv", "n.csv.gz", "n.parquet"])
@pytest.mark.parametrize("read", [read_node_features, read_edges])
def test_a_table_larger_than_memory_is_refused_with_the_way_that_works(tmp_path, monkeypatch, name, read):
    path, frame = tmp_path / name, pd.DataFrame({"source": ["a"] * 999, "target": ["b"] * 999, "note": ["c"] * 999})
    frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
    monkeypatch.setattr(_validation, "host_bytes", lambda: 50)
    with pytest.raises(NotEnoughMemory, match="fishergraph ingest"):
        read(path)


# --- first lines ----------------------------------------------------------------------------------------


def test_names_in_a_file_without_header_are_asked_about(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("ann,bob\nbob,eve\n")
    with pytest.raises(InputError, match="--no-header"):
        read_edges(path)
    assert as_graph(read_edges(path, header=False)).n_nodes == 3
