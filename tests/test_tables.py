"""Edge and node files: round trips in every format, and one sentence for every broken file."""

from __future__ import annotations

import gzip
import io
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fishergraph._errors import FishergraphWarning
from fishergraph.graph import as_graph
from fishergraph.io import arrow, columns, text_columns, text_table
from fishergraph.io.embedding_file import check_writable, write_embedding
from fishergraph.io.npz import SUFFIXES
from fishergraph.io.tables import read_columns, read_edges, read_nodes

FORMATS = list(SUFFIXES)


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


# --- edges ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "ids"),
    [
        (("7", "8", "10"), None),
        (("007", "008", "009"), ["007", "008", "009"]),  # as numbers they would lose their zeros
        (("1", "01", "001"), ["001", "01", "1"]),  # or become one node
        (("2024-01-01", "2024-01-02", "2024-01-03"), ["2024-01-01", "2024-01-02", "2024-01-03"]),
        (("true", "12:30", "1e5"), ["12:30", "1e5", "true"]),
        (("+1", "-0", "1.5"), ["+1", "-0", "1.5"]),
        (("9223372036854775808", "1", "2"), ["1", "2", "9223372036854775808"]),
        ((" 7", "8 ", "10"), None),  # spaces around numbers are no part of them
    ],
)
def test_ids_of_text_files_are_kept_as_they_are_written(tmp_path, ends, ids):
    a, b, c = ends
    graph = as_graph(read_edges(put(tmp_path, "e.csv", f"source,target\n{a},{b}\n{b},{c}\n")))
    assert graph.ids is not None
    assert graph.ids.tolist() == (ids or [7, 8, 10])
    rows = f"node,x\n{c},3\n{a},1\n{b},2\n"
    known, X, _ = read_nodes(put(tmp_path, "n.tsv.gz", rows.replace(",", "\t")))
    assert known.tolist() == ([10, 7, 8] if ids is None else [c, a, b])
    same = as_graph(read_edges(tmp_path / "e.csv"), node_ids=known)
    assert same.adjacency.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert X.tolist() == [[3], [1], [2]]


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz"])
def test_blanks_after_the_marks_split_no_nodes(tmp_path, suffix):
    mark = "," if suffix == ".csv" else "\t"
    edges = 'source, target , weight\na, b,1\n b ,"a b", 2\na, "a b",3\n'.replace(",", mark)
    graph = as_graph(read_edges(put(tmp_path, f"e{suffix}", edges)))
    assert graph.ids.tolist() == ["a", "a b", "b"]
    assert graph.adjacency.T.toarray().tolist() == [[0, 3, 1], [0, 0, 0], [0, 2, 0]]
    nodes = "x0, id, x1\n1, b, 2\n3,a ,4\n".replace(",", mark)
    ids, X, names = read_nodes(put(tmp_path, f"n{suffix}", nodes))
    assert (ids.tolist(), X.tolist(), names) == (["b", "a"], [[1, 2], [3, 4]], ["x0", "x1"])
    quoted = '"id", "x 0"\n"b", 2\n"a", 4\n'.replace(",", mark)
    assert read_nodes(put(tmp_path, f"q{suffix}", quoted))[2] == ["x 0"]
    dates = "source, target\n 2024-01-01, 007\n007,2024-01-01\n".replace(",", mark)
    assert as_graph(read_edges(put(tmp_path, f"d{suffix}", dates))).ids.tolist() == ["007", "2024-01-01"]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (("3", "-1", "NA"), [3, -1, None]),
        (("01", "1", ""), ["01", "1", None]),
        (("2024-01-01", "null", "2024-01-02"), ["2024-01-01", None, "2024-01-02"]),
        (("12:30", "12:31", "nan"), ["12:30", "12:31", None]),
        (("98765432109876543210", "1", "2"), ["98765432109876543210", "1", "2"]),
        (("True", "False", "1.50"), ["True", "False", "1.50"]),
        (("True", "False", "True"), ["True", "False", "True"]),
        (("1.50", "2.5", "NaN"), ["1.50", "2.5", None]),
        ((" ape", "bee ", "NA"), ["ape", "bee", None]),
    ],
)
def test_columns_are_kept_as_they_are_written(tmp_path, cells, values):
    path = put(tmp_path, "n.csv", "id, label,x\n" + "".join(f"{k},{cell},0.5\n" for k, cell in enumerate(cells)))
    assert read_columns(path, ["label"]) == [values]
    with pytest.raises(ValueError, match="column 'topic'"):
        read_columns(path, ["topic"])


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_zero_that_leads_is_found_wherever_the_text_is_cut(tmp_path, monkeypatch, chunk, suffix):
    monkeypatch.setattr(text_table, "CHUNK", chunk)
    for text, leads in (
        ("s,t\n10,20\n0,100\n", False),
        ("0,1\n1,0", False),
        ("s,t,w\n1,2,0.5\n3,0,-0.25\n", False),
        ("s,t\n10,020\n", True),
        ("s,t\n07,2\n", True),
        ('s,t\n1,"01"\n', True),
        ("s,t\r\n1,2\r\n-01,2\r\n", True),
        ("00,1\n", True),
        ("\ufeff007,1\n", True),
        ("\ufeff0,1\n7,10", False),
        ("s,t\n1,-0", True),
        ("1,-0\n", True),
        ("s,t\n1,0x1F\n", True),
        ("0X1,1\n", True),
    ):
        layout = arrow.TableLayout(lambda path, fields: None)
        file = text_table.open_text(put(tmp_path, f"e{suffix}", text), suffix, layout)
        assert text_columns.loses_zeros(file) is leads, text


@pytest.mark.parametrize("nothing", ["", "NA", "nan"])
def test_a_missing_number_is_not_a_name(tmp_path, nothing):
    with pytest.raises(ValueError, match=r"column 'target'.*row 1"):
        as_graph(read_edges(put(tmp_path, "e.csv", f"source,target\n1,2\n2,{nothing}\n")))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_index_of_pandas_names_the_rows(tmp_path, suffix):
    frame = pd.DataFrame({"f": [1.0, 2.0, 3.0]}, index=[2, 0, 1])
    path = tmp_path / f"n{suffix}"
    frame.to_csv(path) if suffix == ".csv" else frame.to_parquet(path)
    ids, X, names = read_nodes(path)
    assert (ids.tolist(), X.ravel().tolist(), names) == ([2, 0, 1], [1, 2, 3], ["f"])


def test_rows_without_ids_are_numbered_and_a_column_of_numbers_is_asked_about(tmp_path):
    path = put(tmp_path, "n.csv", "paper,f\n2,1\n1,2\n0,3\n")
    with pytest.warns(FishergraphWarning, match="id_column='paper'"):
        ids, X, names = read_nodes(path)
    assert (ids.tolist(), names, X.shape) == ([0, 1, 2], ["paper", "f"], (3, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_nodes(path, "paper")[0].tolist() == [2, 1, 0]
        assert read_nodes(put(tmp_path, "m.csv", "0,1\n2,1\n2,2\n"))[2] == ["0", "1"]  # as pandas names columns


def test_whole_numbers_of_any_size_are_features(tmp_path):
    _, X, _ = read_nodes(put(tmp_path, "n.csv", "id,a\nx,9007199254740993\n"))
    assert X[0, 0] == np.float32(2**53)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_format_gives_the_same_graph(tmp_path, suffix, weighted):
    edges = np.array([[0, 1, 2, 2], [1, 2, 0, 0]])
    weights = np.array([0.5, 2.0, 1.0, 0.25])
    frame = pd.DataFrame({"source": edges[0], "target": edges[1]})
    frame = frame.assign(weight=weights) if weighted else frame
    path = tmp_path / f"edges{suffix}"
    if suffix == ".npz":
        np.savez(path, edge_index=edges, **({"edge_weight": weights} if weighted else {}))
    elif suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep=SUFFIXES[suffix], index=False)
    graph = as_graph(read_edges(path))
    expected = as_graph((edges, weights) if weighted else edges)
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected.adjacency.toarray())
    assert graph.ids is None


@pytest.mark.parametrize("text", ["0,1\n1,2\n", "0,1,0.5\n1,2,2\n", "0,1\r\n1,2\r\n", "\ufeff0,1\n1,2\n"])
def test_a_file_of_numbers_needs_no_header(tmp_path, text):
    table = read_edges(put(tmp_path, "e.csv", text))
    assert table.column_names == ["source", "target", "weight"][: table.num_columns]
    assert table.column("source").to_pylist() == [0, 1]
    assert as_graph(table).n_nodes == 3


def test_headers_of_known_names_in_any_case(tmp_path):
    table = read_edges(put(tmp_path, "e.tsv.gz", "From\tTo\tWeight\nx\ty\t2\n"))
    graph = as_graph(table)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["x", "y"]
    assert graph.weights is not None
    assert graph.weights.tolist() == [2.0]


def test_an_npz_with_ids_speaks_in_ids(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, edge_index=np.array([[0], [2]]), x=np.ones((3, 2)), ids=np.array(["c", "b", "a"]))
    ids, X, names = read_nodes(path)
    graph = as_graph(read_edges(path), node_ids=ids)
    assert graph.adjacency.toarray()[2, 0] == 1
    assert graph.ids is not None
    assert graph.ids.tolist() == ids.tolist() == ["c", "b", "a"]
    assert (X.shape, names) == ((3, 2), ["x0", "x1"])


@pytest.mark.parametrize("ids", [None, ["a", "b", "c"]])
def test_an_npz_may_list_every_edge_for_both_directions(tmp_path, ids):
    arrays = {"edge_index": np.array([[0, 1, 2], [1, 2, 2]]), "edge_weight": np.array([2.0, 3.0, 5.0])}
    arrays |= {} if ids is None else {"ids": np.array(ids)}
    for undirected, expected in ((False, [[0, 2, 0], [0, 0, 3], [0, 0, 5]]), (True, [[0, 2, 0], [2, 0, 3], [0, 3, 5]])):
        np.savez(tmp_path / "g.npz", **arrays, undirected=undirected)
        assert as_graph(read_edges(tmp_path / "g.npz")).adjacency.T.toarray().tolist() == expected


def test_edges_without_rows_are_legal(tmp_path):
    table = read_edges(put(tmp_path, "e.csv", "source,target\n"))
    assert as_graph(table, node_ids=["a", "b"]).n_edges == 0
    assert as_graph(table, n_nodes=2).n_nodes == 2


def test_a_type_that_changes_late_in_a_large_file(tmp_path):
    rows = "\n".join(f"{i},{i + 1}" for i in range(200_000))
    table = read_edges(put(tmp_path, "e.csv", f"source,target\n{rows}\nlast,0\n"))
    graph = as_graph(table)
    assert graph.n_nodes == 200_002


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz"])
def test_the_first_id_behind_a_byte_order_mark_keeps_its_zeros(tmp_path, suffix):
    text = "\ufeff007,1\n7,2\n".replace(",", SUFFIXES[suffix])
    assert as_graph(read_edges(put(tmp_path, f"e{suffix}", text))).ids.tolist() == ["007", "1", "2", "7"]


@pytest.mark.parametrize(("one", "two"), [("31", "0x1F"), ("0", "-0"), ("1", "0X1"), ("7", "+7"), ("16", "0x00000010")])
def test_two_ways_to_write_a_number_are_two_ids(tmp_path, one, two):
    graph = as_graph(read_edges(put(tmp_path, "e.csv", f"source,target\n{one},{two}\n{two},{one}\n")))
    assert graph.ids.tolist() == sorted([one, two])


def test_nul_in_an_id_is_refused_before_numpy_drops_it(tmp_path):
    frame = pd.DataFrame({"source": ["x", "x\0"], "target": ["y", "y"]})
    with pytest.raises(ValueError, match="NUL"):
        as_graph(frame)
    frame.to_parquet(tmp_path / "e.parquet")
    with pytest.raises(ValueError, match="NUL"):
        as_graph(read_edges(tmp_path / "e.parquet"))
    with pytest.raises(ValueError, match="NUL"):
        as_graph(frame[:1], node_ids=["x", "y", "x\0"])


def test_text_that_is_not_unicode_is_refused():
    with pytest.raises(ValueError, match="Unicode"):
        as_graph(pd.DataFrame({"source": pd.Series(["\ud800"], dtype=object), "target": ["a"]}))


def test_tables_of_another_byte_order(tmp_path):
    frame = pd.DataFrame({"source": np.array([3, 5], ">i8"), "target": np.array([5, 7], ">i4")})
    assert as_graph(frame).ids.tolist() == [3, 5, 7]


@pytest.mark.parametrize("chunk", [40, 100, 1000])
def test_lines_in_quotes_and_late_types_at_any_cut(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(text_table, "CHUNK", chunk)
    names = [f'"a\n{k}"' for k in range(30)]
    text = "source,target\n" + "".join(f"{name},{names[0]}\n" for name in names)
    assert as_graph(read_edges(put(tmp_path, "e.csv", text))).ids.tolist() == sorted(f"a\n{k}" for k in range(30))
    late = "source,target\n" + "".join(f"{k},{k}\n" for k in range(30)) + "last,0\n"
    assert as_graph(read_edges(put(tmp_path, "l.csv", late))).n_nodes == 31


def test_a_long_id_does_not_widen_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "_WIDEST", 1000)
    path = put(tmp_path, "e.csv", f"source,target\n{'x' * 500},a\na,b\n")
    graph = as_graph(read_edges(path))
    assert graph.ids.dtype == object
    assert graph.ids.tolist() == ["a", "b", "x" * 500]
    write_embedding(tmp_path / "z.npz", graph.ids, np.zeros((3, 1)))
    assert read_nodes(tmp_path / "z.npz")[0].tolist() == graph.ids.tolist()


# --- nodes ----------------------------------------------------------------------------------------------


def test_nodes_from_csv(tmp_path):
    ids, X, names = read_nodes(
        put(tmp_path, "n.csv", "a,Node_ID,b,label\n1,x,2.5,red\n3,y,true,blue\n"), drop=["label", "b"]
    )
    assert ids.tolist() == ["x", "y"]
    assert isinstance(X, np.ndarray)
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    assert X.tolist() == [[1.0], [3.0]]
    assert names == ["a"]


def test_a_named_id_column_and_row_numbers(tmp_path):
    path = put(tmp_path, "n.csv", "a,b\n7,2\n5,4\n")
    assert read_nodes(path, "a")[0].tolist() == [7, 5]
    ids, X, names = read_nodes(path)
    assert ids.tolist() == [0, 1]
    assert names == ["a", "b"]
    assert X.shape == (2, 2)


def test_ids_alone_give_no_features(tmp_path):
    ids, X, names = read_nodes(put(tmp_path, "n.csv", "id\na\nb\n"))
    assert ids.tolist() == ["a", "b"]
    assert X.shape == (2, 0)
    assert names == []


def test_a_pandas_index_is_not_a_feature(tmp_path):
    path = tmp_path / "n.parquet"
    pd.DataFrame({"id": [1, 2], "a": [True, False]}, index=[5, 9]).to_parquet(path)
    _, X, names = read_nodes(path)
    assert names == ["a"]
    assert X.tolist() == [[1.0], [0.0]]  # type: ignore[union-attr]


def test_a_folder_that_looks_like_a_partition_adds_no_column(tmp_path):
    (tmp_path / "year=2020").mkdir()
    path = tmp_path / "year=2020" / "n.parquet"
    pq.write_table(pa.table({"id": [1], "a": [2.0]}), path)
    assert read_nodes(path)[2] == ["a"]


def test_sparse_features_from_npz(tmp_path):
    X = sp.random_array((5, 7), density=0.4, format="csr", rng=0)
    path = tmp_path / "n.npz"
    np.savez(path, x_data=X.data, x_indices=X.indices, x_indptr=X.indptr, x_shape=np.array(X.shape))
    ids, Y, names = read_nodes(path)
    assert sp.issparse(Y)
    np.testing.assert_allclose(Y.toarray(), X.toarray(), rtol=1e-6)  # type: ignore[union-attr]
    assert len(ids) == 5
    assert len(names) == 7


def test_what_a_sparse_matrix_of_an_npz_may_look_like(tmp_path):
    pieces = csr_pieces(x_data=np.ones(3), x_indices=[1, 0, 1], x_indptr=[0, 3, 3, 3])
    np.savez(tmp_path / "twice.npz", **pieces)  # a position twice, and not in order
    _, X, _ = read_nodes(tmp_path / "twice.npz")
    assert (X.indices.tolist(), X.data.tolist(), X.dtype) == ([0, 1], [1, 2], np.float32)  # type: ignore[union-attr]
    np.savez(tmp_path / "zeros.npz", **csr_pieces(x_data=[], x_indices=[], x_indptr=[0, 0, 0, 0]))  # of float64
    assert read_nodes(tmp_path / "zeros.npz")[1].toarray().tolist() == [[0, 0]] * 3  # type: ignore[union-attr]
    np.savez(tmp_path / "both.npz", x=np.eye(2), **pieces)
    np.testing.assert_array_equal(read_nodes(tmp_path / "both.npz")[1], np.eye(2))  # the dense one


def test_the_features_that_count_may_be_named_by_an_iterator(tmp_path):
    path = put(tmp_path, "n.csv", "id,a,b,c\nx,1,2,3\n")
    assert read_nodes(path, only=(name for name in ("c", "id", "a")))[2] == ["a", "c"]
    assert read_nodes(path, only=[])[2] == []


TIMES = [1_700_000_000, 1_700_000_001, 1_700_000_002]


def test_integers_beyond_float32_keep_their_digits(tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "t": TIMES, "x": [0.5, 1.5, 2.5]})
    pq.write_table(table, tmp_path / "n.parquet")
    rows = "".join(f"{name},{time},{x}\n" for name, time, x in zip("abc", TIMES, (0.5, 1.5, 2.5), strict=True))
    matrix = sp.csr_array(np.array(TIMES)[:, None])
    pieces = {f"x_{key}": getattr(matrix, key) for key in ("data", "indices", "indptr")} | {"x_shape": [3, 1]}
    np.savez(tmp_path / "d.npz", x=np.array(TIMES)[:, None])
    np.savez(tmp_path / "s.npz", **pieces)
    for path in (
        put(tmp_path, "n.csv", "id,t,x\n" + rows),
        tmp_path / "n.parquet",
        tmp_path / "d.npz",
        tmp_path / "s.npz",
    ):
        _, X, _ = read_nodes(path)
        X = X.toarray() if sp.issparse(X) else X
        assert X.dtype == np.float64, path
        assert X[:, 0].tolist() == TIMES


@pytest.mark.parametrize(
    "values", [["1", "2"], ["16777216", "-16777216"], ["0.1", "0.2"], ["33554432", "1"], ["1e20", "2e20"]]
)
def test_other_numbers_are_float32(tmp_path, values):
    _, X, _ = read_nodes(put(tmp_path, "n.csv", "id,x\n" + "".join(f"n{v},{v}\n" for v in values)))
    assert X.dtype == (np.float64 if "1e20" in values else np.float32)
    np.testing.assert_array_equal(X[:, 0], np.array(values, dtype=X.dtype))


@pytest.mark.parametrize(
    "number",
    [
        "0x1F",
        "0X10",
        "1e999",
        "-1e999",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        '"1,234"',
        '"3,14"',
        "1_000",
        "1 000",
        "5%",
        "1/2",
        "٣",
        "0b1",
        "1d3",
        "--5",
        "2024-01-01",
        "12:30",
        "NA",
        "null",
        "",
    ],
)
def test_what_is_not_a_plain_number_is_never_another_one(tmp_path, number):
    for rows in ([f"a,{number}", "b,2"], ["a,2", f"b,{number}"], [f"a,{number}", f"b,{number}"]):
        with pytest.raises(ValueError, match=r"features must be numbers|missing|finite numbers"):
            read_nodes(put(tmp_path, "n.csv", "\n".join(["id,x", *rows, ""])))


@pytest.mark.parametrize("weight", ["0x10", "1e999", "nan", '"1,5"', "NA", "1_0"])
def test_nor_is_a_weight(tmp_path, weight):
    with pytest.raises((ValueError, TypeError), match=r"edge weights must be|missing"):
        as_graph(read_edges(put(tmp_path, "e.csv", f"source,target,weight\na,b,1\nb,c,{weight}\n")))


def test_hexadecimal_names_are_names(tmp_path):
    ids, X, _ = read_nodes(put(tmp_path, "n.csv", "id,x\n0xAB,1\n0xCD,2\n"))
    assert (ids.tolist(), X.tolist()) == (["0xAB", "0xCD"], [[1], [2]])


def swapped(arrays_):
    return {key: value.astype(value.dtype.newbyteorder(">")) for key, value in arrays_.items()}


@pytest.mark.parametrize("ids", [np.array(["b", "a", "é"]), np.array([30, 10, 20])], ids=["text", "integers"])
@pytest.mark.parametrize("sparse", [False, True])
def test_an_npz_of_another_byte_order(tmp_path, ids, sparse):
    X = sp.csr_array(np.array([[1.5, 0], [0, 2.5], [3, 4]]))
    pieces = {f"x_{key}": getattr(X, key) for key in ("data", "indices", "indptr")} | {"x_shape": np.array(X.shape)}
    known = {"edge_index": np.array([[0, 1], [1, 2]]), "edge_weight": np.array([1.5, 2.5]), "ids": ids}
    known |= pieces if sparse else {"x": X.toarray()}
    found = []
    for name, arrays_ in (("little.npz", known), ("big.npz", swapped(known))):
        np.savez(tmp_path / name, **arrays_)
        keys, features, _ = read_nodes(tmp_path / name)
        graph = as_graph(read_edges(tmp_path / name), node_ids=keys)
        features = features.toarray() if sparse else features
        found.append((keys.tolist(), features.tolist(), str(features.dtype), graph.adjacency.toarray().tolist()))
    assert found[0] == found[1]


def test_members_of_an_npz_that_are_not_arrays(tmp_path):
    np.savez(tmp_path / "n.npz", x=np.ones((2, 1)))
    with zipfile.ZipFile(tmp_path / "n.npz", "a") as archive:
        archive.writestr("notes", "text")
    with pytest.raises(ValueError, match="'notes'"):
        read_nodes(tmp_path / "n.npz")


def test_the_advice_to_unpickle_is_not_passed_on(tmp_path):
    np.savez(tmp_path / "n.npz", x=np.array([[None]]))
    with pytest.raises(ValueError, match="pickled") as caught:
        read_nodes(tmp_path / "n.npz")
    assert "allow_pickle" not in str(caught.value)


# --- round trips ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@settings(deadline=None, max_examples=15)
@given(
    Z=arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(-1e6, 1e6, width=32)),
    kind=st.sampled_from(["none", "strings", "integers"]),
)
def test_an_embedding_comes_back(tmp_path_factory, suffix, Z, kind):
    path = tmp_path_factory.mktemp("out") / f"z{suffix}"
    n = len(Z)
    ids = {
        "none": None,
        "strings": np.array([f"é,{i}" for i in range(n)]),
        "integers": np.arange(n)[::-1] * 10,
    }[kind]
    write_embedding(path, ids, Z)
    back, X, names = read_nodes(path)
    np.testing.assert_array_equal(back, np.arange(n) if ids is None else ids)
    np.testing.assert_array_equal(X, Z)
    assert names == [f"z{j}" for j in range(Z.shape[1])]
    assert os.listdir(path.parent) == [path.name]


NASTY = st.one_of(
    st.sampled_from(
        [
            "NA",
            "",
            "null",
            "nan",
            "NaN",
            "None",
            "#N/A",
            "-nan",
            "N/A",
            "007",
            "7",
            "-0",
            "0",
            "0x1F",
            "31",
            "+7",
            "1e5",
            "1.0",
            "true",
            "x",
            "x\0",
            " a",
            "a ",
            "a",
            "a,b",
            "a\tb",
            'q"',
            '"',
            "l\nm",
            "r\rs",
            "\r\n",
            "\ufeffb",
            "12:30",
            "2024-01-01",
            "é",
            "e\u0301",
            "9223372036854775808",
            "id",
            "#",
            "\x1a",
            "\x85",
        ]
    ),
    st.text(min_size=1, max_size=4),
)


@pytest.mark.parametrize("suffix", FORMATS)
@settings(deadline=None, max_examples=60)
@given(ids=st.lists(NASTY, min_size=1, max_size=5, unique=True))
def test_whatever_id_is_written_is_read_back(tmp_path_factory, suffix, ids):
    path = tmp_path_factory.mktemp("out") / f"z{suffix}"
    Z = np.arange(len(ids), dtype=np.float32)[:, None]
    text = suffix not in (".parquet", ".npz")
    if any("\0" in name or not name or (text and name != _bare(name)) for name in ids):
        with pytest.raises(ValueError, match=r"NUL|missing|blanks around|distinct"):  # what a file cannot keep
            write_embedding(path, ids, Z)
        assert os.listdir(path.parent) == []
        return
    write_embedding(path, ids, Z)
    back, X, _ = read_nodes(path)
    # A text file has no types: ids that all are printed integers are read as such.
    assert [str(name) for name in back.tolist()] == ids
    assert text or back.tolist() == ids
    np.testing.assert_array_equal(X, Z)


def _bare(name):
    return pa.compute.utf8_trim_whitespace(name).as_py()


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_embedding_that_could_not_be_read_back_is_refused(tmp_path, suffix):
    path, Z = tmp_path / f"z{suffix}", np.zeros((2, 1))
    for ids, pattern in (
        (["a", "a"], "'a' again"),
        ([1, "1"], "'1' again"),
        (["a", ""], "complete"),
        (["a", "b\0"], "NUL"),
        (["a", "\ud800"], "Unicode"),
        (np.array([2**63, 1], dtype=np.uint64), "below"),
    ):
        with pytest.raises(ValueError, match=pattern):
            write_embedding(path, ids, Z)
    with pytest.raises(ValueError, match="NaN in row 1"):
        write_embedding(path, ["a", "b"], np.array([[0], [np.nan]]))
    with pytest.raises(ValueError, match="distinct"):
        write_embedding(path, ["a", "b"], np.zeros((2, 2)), names=["u", "u "])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("dtype", [np.float16, ">f4", np.int64, np.uint8, bool])
def test_embeddings_of_other_types(tmp_path, suffix, dtype):
    Z = np.array([[0, 1], [1, 0]]).astype(dtype)
    write_embedding(tmp_path / f"z{suffix}", ["a", "b"], Z)
    np.testing.assert_array_equal(read_nodes(tmp_path / f"z{suffix}")[1], Z.astype(np.float32))


def test_words_in_quotes_are_not_missing_values(tmp_path):
    path = put(tmp_path, "n.csv", 'id,label,x\n1,"NA",0\n2,NA,0\n3,"null",0\n4,"",0\n5, NA ,0\n')
    with pytest.warns(FishergraphWarning, match="'NA'"):
        assert read_columns(path, ["label"]) == [["NA", None, "null", None, None]]


def test_many_blocks_of_a_memory_map(tmp_path):
    Z = np.lib.format.open_memmap(tmp_path / "z.npy", mode="w+", dtype=np.float32, shape=(70_000, 2))
    Z[:] = np.arange(140_000).reshape(-1, 2)
    write_embedding(tmp_path / "z.parquet", None, Z, names=["a", "b"])
    ids, X, names = read_nodes(tmp_path / "z.parquet")
    np.testing.assert_array_equal(X, Z)
    assert names == ["a", "b"]
    assert ids[-1] == 69_999


def test_objects_as_ids_are_written_as_text(tmp_path):
    ids = np.empty(2, dtype=object)
    ids[:] = [(0, 1), "x"]
    write_embedding(tmp_path / "z.csv", ids, np.zeros((2, 1)))
    assert read_nodes(tmp_path / "z.csv")[0].tolist() == ["(0, 1)", "x"]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("broken", ["savez", "table", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, suffix, broken):
    path = tmp_path / f"z{suffix}"
    write_embedding(path, ["a"], np.ones((1, 1), dtype=np.float32))
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    owner, name = {"savez": (zipfile.ZipFile, "open"), "table": (pa, "table"), "replace": (os, "replace")}[broken]
    if broken != "replace" and (broken == "savez") != (suffix == ".npz"):
        pytest.skip("this format does not pass there")
    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(OSError, match="disk full"):
        write_embedding(path, ["b"], np.zeros((1, 1), dtype=np.float32))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_an_embedding_holds_numbers(tmp_path):
    with pytest.raises(ValueError, match="object of shape"):
        write_embedding(tmp_path / "z.npz", None, np.array([[object()]]))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [suffix for suffix in FORMATS if suffix != ".npz"])
def test_blocks_of_rows_make_one_table(tmp_path, monkeypatch, suffix):
    a, b = np.array([1, 2, 3]), np.array(["x", "é", "z,y"])
    read = pd.read_parquet if suffix == ".parquet" else lambda path: pd.read_csv(path, sep=SUFFIXES[suffix])
    path = tmp_path / f"t{suffix}"
    for cells, n_rows in ((1000, 3), (4, 3), (1, 3), (1000, 0)):
        monkeypatch.setattr(arrow, "CELLS", cells)
        with path.open("wb") as file:
            arrow.write_table(file, suffix, {"a": a.__getitem__, "b": b.__getitem__}, n_rows)
        found = read(path)
        assert found.columns.tolist() == ["a", "b"]
        assert found.to_numpy().tolist() == ([[1, "x"], [2, "é"], [3, "z,y"]] if n_rows else [])


@pytest.mark.parametrize("suffix", FORMATS[:-1])
def test_blanks_that_a_text_file_would_lose_are_not_written(suffix):
    columns = {"id": np.array([1, 2]).__getitem__, "label": np.array(["ape", "bee "]).__getitem__}
    if suffix == ".parquet":
        arrow.write_table(io.BytesIO(), suffix, columns, 2)
        return
    with pytest.raises(ValueError, match="'bee '"):
        arrow.write_table(io.BytesIO(), suffix, columns, 2)


# --- errors ---------------------------------------------------------------------------------------------

HTML = "<!DOCTYPE html>\n<html><body>not found</body></html>"
EDGE_FILES = {
    "text as parquet": ("e.parquet", "source,target\n0,1\n", "e.parquet"),
    "html as csv": ("e.csv", HTML, "e.csv.*HTML"),
    "html as parquet": ("e.parquet", HTML, "e.parquet.*HTML"),
    "html as npz": ("e.npz", HTML, "e.npz.*HTML"),
    "text as npz": ("e.npz", "0,1\n", "e.npz"),
    "gzip as csv": ("e.csv", gzip.compress(b"source,target\n"), "e.csv.*gz"),
    "parquet as csv": ("e.csv", b"PAR1abc", "e.csv.*parquet"),
    "binary as csv": ("e.csv", b"a\0b\0c", "e.csv"),
    "torn npz": ("e.npz", b"PK\x03\x04abc", "e.npz"),
    "torn parquet": ("e.parquet", b"PAR1abcdefgh", "e.parquet"),
    "latin-1": ("e.csv", "sourçe,target\n".encode("latin-1"), "e.csv"),
    "empty csv": ("e.csv", b"", "e.csv.*empty"),
    "empty npz": ("e.npz", b"", "e.npz.*empty"),
    "ragged": ("e.csv", "source,target\n0,1\n2\n", "2 columns"),
    "columns": ("e.csv", "begin,end\na,b\n", "got 'begin', 'end'"),
    "names without a header": ("e.csv", "ann,bob\nbob,cy\n", "got 'ann', 'bob'"),
    "twice": ("e.csv", "source,source,target\n0,1,2\n", "'source'"),
    "unknown suffix": ("e.xlsx", b"abc", "'e.xlsx'"),
    "one number": ("e.csv", "1\n2\n", "two columns"),
}


@pytest.mark.parametrize("case", EDGE_FILES)
def test_broken_edge_files(tmp_path, case):
    name, content, pattern = EDGE_FILES[case]
    with pytest.raises(ValueError, match=pattern) as caught:
        read_edges(put(tmp_path, name, content))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_plain_text_named_gz(tmp_path):
    path = tmp_path / "e.csv.gz"
    path.write_text("source,target\n0,1\n")
    with pytest.raises(ValueError, match=r"e.csv.gz"):
        read_edges(path)
    path.write_bytes(gzip.compress(b"source,target\n" + os.urandom(5000))[:200])
    with pytest.raises(ValueError, match=r"e.csv.gz"):
        read_edges(path)


@pytest.mark.parametrize("read", [read_edges, read_nodes])
@pytest.mark.parametrize("suffix", FORMATS)
def test_no_file_and_a_folder(tmp_path, read, suffix):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read(tmp_path / f"nowhere{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(IsADirectoryError, match="folder"):
        read(tmp_path / f"folder{suffix}")


NODE_FILES = {
    "words in place of an id": ("name,x0\na,1\nb,2\n", {}, "columns 'name'"),
    "words": ("id,a,colour,shape\n1,2,red,round\n", {}, r"'colour', 'shape'.*drop=\['colour', 'shape'\]"),
    "missing value": ("id,a,b\nx,1,2\ny,,3\n", {}, "feature 'a'.*row 1"),
    "nan value": ("id,a\nx,1\ny,2\nz,nan\n", {}, "feature 'a'.*row 2"),
    "all missing": ("id,a\nx,\ny,\n", {}, "feature 'a'.*row 0"),
    "infinite": ("id,a\nx,1\ny,inf\n", {}, "infinity in row 1"),
    "duplicate id": ("id,a\nx,1\ny,2\nx,3\n", {}, "row 2"),
    "duplicate number": ("id,a\n4,1\n4,2\n", {}, "4 again"),
    "missing id": ("id,a\nx,1\n,2\n", {}, "column 'id'.*row 1"),
    "no header": ("3,0.5\n4,1\n", {}, "line of column names"),
    "beyond float32": ("id,a\nx,1e39\n", {}, "feature 'a'"),
    "no such id column": ("id,a\nx,1\n", {"id_column": "key"}, "column 'key'"),
    "no such column to drop": ("id,a\nx,1\n", {"drop": ["label"]}, "column 'label'"),
}


@pytest.mark.parametrize("case", NODE_FILES)
def test_broken_node_files(tmp_path, case):
    content, options, pattern = NODE_FILES[case]
    with pytest.raises((ValueError, TypeError), match=pattern):
        read_nodes(put(tmp_path, "n.csv", content), **options)


def csr_pieces(**changes):
    return {"x_data": np.ones(2), "x_indices": [0, 1], "x_indptr": [0, 1, 1, 2], "x_shape": [3, 2], **changes}


NPZ_FILES = {
    "no edges": (read_edges, {"x": np.ones((2, 2))}, "'edge_index'"),
    "edge shape": (read_edges, {"edge_index": np.zeros((3, 2), int)}, r"got \(3, 2\)"),
    "edge kind": (read_edges, {"edge_index": np.ones((2, 3))}, "float64"),
    "weight shape": (
        read_edges,
        {"edge_index": np.zeros((2, 3), int), "edge_weight": np.ones(2)},
        "edge_weight",
    ),
    "edge beyond ids": (
        read_edges,
        {"edge_index": np.array([[0], [3]]), "ids": np.array(["a"])},
        "edge 0",
    ),
    "no features": (
        read_nodes,
        {"edge_index": np.zeros((2, 0), int)},
        "'x'",
    ),
    "feature shape": (read_nodes, {"x": np.ones(3)}, "'x', got float64"),
    "feature kind": (read_nodes, {"x": np.array([["a"]])}, "'x', got <U1"),
    "beyond float32": (read_nodes, {"x": np.array([[1e39]])}, r"1e\+39"),
    "matrix of text": (read_nodes, csr_pieces(x_data=np.array(["a", "b"])), "x_data"),
    "matrix beyond float32": (
        read_nodes,
        csr_pieces(x_data=np.array([1.0, 1e39])),
        r"^x_data",
    ),
    "matrix outside": (read_nodes, csr_pieces(x_indices=[0, 99]), "< 2"),
    "matrix pointers": (read_nodes, csr_pieces(x_indptr=[0, 5, 1, 2]), "non-decreasing"),
    "matrix shape": (read_nodes, csr_pieces(x_shape=[3, 2, 1]), "'x_shape'"),
    "matrix cut": (
        read_nodes,
        csr_pieces(x_indptr=[0, 1, 1]),
        "index pointer",
    ),
    "matrix of halves": (read_nodes, csr_pieces(x_indices=[0.5, 1.5]), "'x_indices'"),
    "both directions": (
        read_edges,
        {"edge_index": np.array([[0], [1]]), "undirected": np.ones(2)},
        "'undirected'",
    ),
    "members of a 0-d id": (
        read_edges,
        {"edge_index": np.array([[0], [0]]), "ids": np.array("a")},
        "'ids', got shape",
    ),
    "ids of two axes": (
        read_nodes,
        {"x": np.ones((1, 1)), "ids": np.array([["a"]])},
        "'ids', got shape",
    ),
    "ids of records": (
        read_nodes,
        {"x": np.ones((1, 1)), "ids": np.zeros(1, dtype="i4,f8")},
        "ids in .* one type",
    ),
    "large ids": (read_nodes, {"x": np.ones((1, 1)), "ids": np.array([2**64 - 1], dtype=np.uint64)}, "numbers below 2"),
    "complex weights": (
        read_edges,
        {"edge_index": np.zeros((2, 1), int), "edge_weight": np.ones(1, complex)},
        "complex128",
    ),
    "columns without end": (
        read_nodes,
        csr_pieces(x_shape=[3, 10**9]),
        "1,048,576",
    ),
    "names twice": (
        read_nodes,
        {"x": np.ones((1, 2)), "names": np.array(["a", "a"])},
        "distinct",
    ),
    "negative edge": (read_edges, {"edge_index": np.array([[0, -1], [1, 0]])}, "edge 1"),
    "half a matrix": (read_nodes, {"x_data": np.ones(1)}, "'x_indices'"),
    "id shape": (read_nodes, {"x": np.ones((3, 1)), "ids": np.arange(2)}, "'ids' of shape"),
    "name shape": (
        read_nodes,
        {"x": np.ones((3, 1)), "names": np.array(["a", "b"])},
        "'names' of shape",
    ),
    "same ids": (read_nodes, {"x": np.ones((2, 1)), "ids": np.array(["a", "a"])}, "row 1"),
    "nan": (read_nodes, {"x": np.array([[1.0], [np.nan]])}, "NaN in row 1"),
    "pickle": (read_nodes, {"x": np.array([[None]])}, "n.npz"),
}


@pytest.mark.parametrize("case", NPZ_FILES)
def test_broken_npz_files(tmp_path, case):
    read, arrays_, pattern = NPZ_FILES[case]
    np.savez(tmp_path / "n.npz", **arrays_)
    with pytest.raises((ValueError, TypeError), match=pattern):
        read(tmp_path / "n.npz")


def test_check_writable(tmp_path, monkeypatch):
    assert check_writable(tmp_path / "z.csv") == tmp_path / "z.csv"
    with pytest.raises(ValueError, match=r"\.parquet.*'z\.docx'"):
        check_writable(tmp_path / "z.docx")
    with pytest.raises(FileNotFoundError, match="absent"):
        check_writable(tmp_path / "absent" / "z.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"d\.csv"):
        check_writable(tmp_path / "d.csv")
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match=str(tmp_path)):
        check_writable(tmp_path / "z.csv")


@pytest.mark.parametrize(
    ("ids", "names", "pattern"),
    [
        (["a"], None, "1 ids"),
        (None, ["a"], "1 names"),
        (None, ["id", "b"], "other than 'id'"),
    ],
)
def test_an_embedding_needs_matching_ids_and_names(tmp_path, ids, names, pattern):
    with pytest.raises(ValueError, match=pattern):
        write_embedding(tmp_path / "z.csv", ids, np.zeros((3, 2)), names)
    assert os.listdir(tmp_path) == []
