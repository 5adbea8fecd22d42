"""The text format of the TU collection and npz graph sets: MUTAG as grakel carries it, small files, broken files."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph import as_graphs
from fishergraph.datasets import GraphSet, load_graphs, read_graph_npz, read_tu, tu, write_graph_npz
from shared_data import needs_shared_data, shared_data

FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "0\n1\n0\n2\n2\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n",
    "edge_labels": "7\n7\n8\n8\n7\n7\n",
}


def write(folder: Path, name: str = "TINY", **changes: str | None) -> Path:
    place = folder / name
    place.mkdir()
    for part, text in {**FILES, **changes}.items():
        if text is not None:
            (place / f"{name}_{part}.txt").write_text(text)
    return place


def grakel_folder(name: str) -> Path:
    spec = importlib.util.find_spec("grakel")
    if spec is None or spec.origin is None:
        pytest.skip("needs the wheel of grakel, which carries MUTAG: pip install grakel")
    folder = Path(spec.origin).parent / "tests" / "data" / name
    if not folder.is_dir():
        pytest.skip("this wheel of grakel carries no data")
    return folder


def test_a_name_may_have_a_dot(tmp_path):
    assert read_tu(write(tmp_path, "TINY.v2")).name == "TINY.v2"


def test_a_small_set_is_read_as_it_is_written(tmp_path):
    found = read_tu(write(tmp_path))
    graphs = found.graphs
    assert graphs.graph_ptr.tolist() == [0, 3, 5]
    assert found.y.tolist() == [0, 1]
    assert found.classes == ("-1", "1")
    assert graphs.tags.tolist() == [0, 1, 0, 2, 2]
    np.testing.assert_array_equal(graphs.X[:, 0], [0.5, 1.5, 2.5, 3.5, 4.5])
    expected = np.zeros((5, 5))
    for a, b in ((0, 1), (1, 2), (3, 4)):
        expected[a, b] = expected[b, a] = 1
    np.testing.assert_array_equal(graphs.graph.adjacency.toarray(), expected)
    ends = sorted(zip(graphs.edge_tags.nodes.tolist(), graphs.edge_tags.tags.tolist(), strict=True))
    assert ends == [(0, 7), (1, 7), (1, 8), (2, 8), (3, 7), (4, 7)]


def test_edges_listed_once_or_twice_and_nodes_out_of_order(tmp_path):
    changes = {"A": "1,3\n3,5\n2,4\n2,4\n", "graph_indicator": "1\n2\n1\n2\n1\n", "edge_labels": "7\n8\n9\n9"}
    graphs = read_tu(write(tmp_path, **changes)).graphs
    assert graphs.graph_ptr.tolist() == [0, 3, 5]
    assert graphs.tags.tolist() == [0, 0, 2, 1, 2]  # of the lines 1, 3, 5, 2, 4
    expected = np.zeros((5, 5))
    for a, b in ((0, 1), (1, 2), (3, 4)):
        expected[a, b] = expected[b, a] = 1
    np.testing.assert_array_equal(graphs.graph.adjacency.toarray(), expected)
    ends = sorted(zip(graphs.edge_tags.nodes.tolist(), graphs.edge_tags.tags.tolist(), strict=True))
    assert ends == [(0, 7), (1, 7), (1, 8), (2, 8), (3, 9), (4, 9)]


def test_several_columns_of_labels_are_one_tag_and_one_of_attributes_a_weight(tmp_path):
    changes = {"node_labels": "0,1\n1,0\n0,1\n1,1\n1,1\n", "edge_attributes": "2\n2\n3\n3\n4\n4\n"}
    graphs = read_tu(write(tmp_path, **changes)).graphs
    assert len(set(graphs.tags.tolist())) == 3
    assert graphs.tags[0] == graphs.tags[2]
    assert graphs.graph.adjacency[1, 2] == 3


def test_optional_files_may_be_missing(tmp_path):
    changes = dict.fromkeys(("node_labels", "node_attributes", "edge_labels"))
    graphs = read_tu(write(tmp_path, **changes)).graphs
    assert (graphs.X, graphs.tags, graphs.edge_tags) == (None, None, None)


def test_a_zip_file_is_a_folder(tmp_path):
    place = write(tmp_path)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for file in place.iterdir():
            archive.write(file, f"TINY/{file.name}")
    packed, plain = read_tu(tmp_path / "packed.zip", "TINY"), read_tu(place)
    np.testing.assert_array_equal(packed.graphs.graph.indices, plain.graphs.graph.indices)
    np.testing.assert_array_equal(packed.graphs.X, plain.graphs.X)


def test_names_are_found_in_data_folders(tmp_path):
    (tmp_path / "tu").mkdir()
    write(tmp_path / "tu")
    assert len(load_graphs("TINY", data_home=tmp_path)) == 2
    with pytest.raises(FileNotFoundError, match="NONE"):
        load_graphs("NONE", data_home=tmp_path)


BROKEN = [
    ({"A": None}, "TINY_A.txt"),
    ({"A": "1, 2\n2; 1\n"}, "line 2 of 'TINY_A.txt'"),
    ({"A": "1, 2\n2, 9\n"}, "line 2 of 'TINY_A.txt'"),
    ({"A": "1, 2\n3, 4\n"}, "line 2 of 'TINY_A.txt'"),
    ({"A": "1, 2\n2\n"}, "line 2 of 'TINY_A.txt'"),
    ({"A": "1, 2, 3\n"}, "line 1 of 'TINY_A.txt'"),
    ({"node_attributes": "1\n1,2\n1\n1\n1"}, "line 2"),
    ({"graph_indicator": "1\n1\n1\n2\n9000000000\n"}, "9000000000"),
    ({"edge_attributes": "2\n2\nnan\n3\n4\n4\n"}, "line 3 of 'TINY_edge_attributes.txt'"),
    ({"graph_indicator": "1\n1\n1\n3\n3\n"}, "graph 2"),
    ({"graph_indicator": "0\n1\n1\n1\n1\n"}, "got number 0"),
    ({"graph_indicator": ""}, "empty"),
    ({"graph_labels": "1\n"}, "2 lines"),
    ({"node_labels": "1\n1\n"}, "5 lines"),
    ({"node_attributes": "1\nx\n1\n1\n1"}, "line 2 of 'TINY_node_attributes.txt'"),
    ({"A": "1, 2\n\n2, 1\n"}, "line 2 of 'TINY_A.txt'"),
    ({"node_labels": "1\n\n1\n1\n1\n"}, "line 2 of 'TINY_node_labels.txt'"),
    ({"node_labels": "1\n1\n0x1F\n1\n1\n"}, "line 3 of 'TINY_node_labels.txt'"),
    ({"node_labels": "1\n1.5\n1\n1\n1\n"}, "line 2 of 'TINY_node_labels.txt'"),
    ({"node_labels": f"1\n{10**20}\n1\n1\n1\n"}, "line 2 of 'TINY_node_labels.txt'"),
    ({"node_attributes": "1\nNA\n1\n1\n1"}, "line 2 of 'TINY_node_attributes.txt'"),
    ({"node_attributes": "1\n1e39\n1\n1\n1"}, "node_attributes"),
    (
        {"node_attributes": "1\n1\nnan\n1\n1"},
        "line 3 of 'TINY_node_attributes.txt'",
    ),
    ({"node_attributes": "1,1\n1,NaN\n1,1\n1,1\n1,1"}, "line 2 of 'TINY_node_attributes.txt'"),
    (
        {"node_attributes": "1\n1e999\n1\n1\n1"},
        "line 2 of 'TINY_node_attributes.txt'",
    ),
    ({"node_attributes": "1\n1\n1\n1\n-inf"}, "line 5 of 'TINY_node_attributes.txt'"),
    ({"edge_attributes": "2\n2\n3\n3\n1e999\n4\n"}, "line 5 of 'TINY_edge_attributes.txt'"),
    ({"edge_attributes": "2\n2\n3\n3\n4\n1e39\n"}, "edge_attributes"),
    ({"edge_labels": "1\n"}, "6 lines"),
]


def test_lines_are_counted_in_the_file_whatever_the_order_of_the_graphs(tmp_path):
    changes = {"graph_indicator": "2\n2\n1\n1\n1\n", "A": "1, 2\n3, 4\n", "edge_labels": None}
    with pytest.raises(ValueError, match="line 1"):
        read_tu(write(tmp_path, **changes, node_attributes="nan\n1\n2\n3\n4\n"))


@pytest.mark.parametrize(("changes", "sentence"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_told_in_one_sentence(tmp_path, changes, sentence):
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        read_tu(write(tmp_path, **changes))


def test_lines_are_read_as_python_reads_them(tmp_path):
    """Spaces, tabs, another end of line, blank lines at the end, and what Arrow does not take for a number."""
    changes = {
        "A": "1, 2\r\n 2 ,1\r\n2,\t3\r\n+3, 2\r\n4, 5\r\n005, 4\r\n \r\n\r\n",
        "node_attributes": "-.5, 1\n1.5e0, 2\n2_5, 3\n3.5, 4\n4.5, 5.\n\n\n",
        "graph_labels": "-1 \n 1",
    }
    found, plain = read_tu(write(tmp_path, **changes)), read_tu(write(tmp_path, "PLAIN"))
    np.testing.assert_array_equal(found.graphs.graph.indices, plain.graphs.graph.indices)
    assert found.graphs.X.tolist() == [[-0.5, 1], [1.5, 2], [25, 3], [3.5, 4], [4.5, 5]]
    assert found.classes == ("-1", "1")


def test_sound_files_are_not_read_line_by_line(tmp_path, monkeypatch):
    monkeypatch.setattr(tu, "_parsed_by_line", None)
    more = {"A": FILES["A"].replace("\n", "\r\n") + "\n\n", "edge_attributes": "0.1\n2\n3\n1e-3\n4\n4\n"}
    graphs = read_tu(write(tmp_path, **more)).graphs
    assert graphs.graph.n_edges == 6
    assert graphs.X.dtype == np.float32


@pytest.mark.parametrize("kind", [int, float])
def test_numbers_of_both_parsers_are_the_same_bits(kind):
    rng = np.random.default_rng(0)
    rows = (
        rng.integers(-(2**62), 2**62, (200, 3))
        if kind is int
        else rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-300, 300, (200, 3))
    )
    text = "\n".join(", ".join(map(repr, row)) for row in rows.tolist()).encode()
    for table in (tu._parsed(text, kind, None), tu._parsed_by_line(text, "F.txt", kind, None)):
        assert table is not None
        assert table.dtype == rows.dtype
        np.testing.assert_array_equal(table, rows)


def test_a_file_that_is_no_zip(tmp_path):
    (tmp_path / "X.zip").write_text("no")
    with pytest.raises(ValueError, match="not a zip file"):
        read_tu(tmp_path / "X.zip")


# --- real ones --------------------------------------------------------------------------------------------


def test_mutag_of_grakel():
    found = load_graphs(grakel_folder("MUTAG"))
    graphs = found.graphs
    assert (len(found), graphs.n_nodes, graphs.graph.n_edges) == (188, 3371, 7442)
    assert np.bincount(found.y).tolist() == [63, 125]
    assert np.bincount(graphs.tags).tolist() == [2395, 345, 593, 12, 1, 23, 2]  # C N O F I Cl Br
    assert np.bincount(graphs.edge_tags.tags).sum() == 7442
    assert (np.diff(graphs.graph.adjacency.toarray().sum(axis=0)) != 0).any()


def test_cuneiform_of_grakel_has_attributes():
    graphs = load_graphs(grakel_folder("Cuneiform")).graphs
    assert (len(graphs), graphs.n_nodes, graphs.X.shape) == (267, 5680, (5680, 3))
    assert graphs.tags is not None


@needs_shared_data
def test_the_npz_mutag_is_the_same_set_in_another_order():
    packed, text = load_graphs("MUTAG", data_home=shared_data()), load_graphs(grakel_folder("MUTAG"))

    def fingerprints(graphs):
        degrees = np.diff(graphs.graph.indptr)
        return sorted(tuple(sorted(degrees[a:b])) for a, b in zip(graphs.graph_ptr, graphs.graph_ptr[1:], strict=False))

    assert fingerprints(packed.graphs) == fingerprints(text.graphs)
    assert len(packed.folds) == 10


# --- npz --------------------------------------------------------------------------------------------------

ARRAYS = {
    "graph_ptr": np.array([0, 3, 5]),
    "edge_index": np.array([[0, 1, 3], [1, 2, 4]]),
    "node_tag": np.array([0, 1, 0, 2, 2]),
    "y": np.array([1, 5]),
    "fold1_train": np.array([0]),
    "fold1_test": np.array([1]),
}


def test_an_npz_set(tmp_path):
    np.savez(tmp_path / "set.npz", **ARRAYS)
    found = read_graph_npz(tmp_path / "set.npz")
    assert found.y.tolist() == [0, 1]
    assert found.classes == ("1", "5")
    assert found.graphs.tags.tolist() == [0, 1, 0, 2, 2]
    assert [(a.tolist(), b.tolist()) for a, b in found.folds] == [([0], [1])]
    assert found.graphs.graph.n_edges == 6


def test_packed_triangles_are_the_same_edges(tmp_path):
    bits = np.packbits([1, 0, 1, 1])  # (0, 1) and (1, 2) of three nodes, then the one pair of two
    arrays = {key: value for key, value in ARRAYS.items() if key != "edge_index"}
    np.savez(tmp_path / "packed.npz", **arrays, adj_upper_bits=bits)
    np.savez(tmp_path / "set.npz", **ARRAYS)
    packed, plain = read_graph_npz(tmp_path / "packed.npz"), read_graph_npz(tmp_path / "set.npz")
    np.testing.assert_array_equal(packed.graphs.graph.adjacency.toarray(), plain.graphs.graph.adjacency.toarray())


def test_a_tag_that_all_share_is_none_and_folds_with_inner_splits_are_left(tmp_path):
    more = {"inner1_train": [0], "inner1_val": [1], "inner1_test": [1]}
    np.savez(tmp_path / "set.npz", **{**ARRAYS, "node_tag": np.zeros(5, int)}, **more)
    found = read_graph_npz(tmp_path / "set.npz")
    assert found.graphs.tags is None
    assert len(found.folds) == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_a_set_that_is_written_is_read_again(tmp_path, sparse):
    X = np.array([[0, 0.5], [1, 0], [0, 0], [0, 2], [3, 4]], dtype=np.float32)
    edges = np.array([[0, 1], [1, 0]])
    parts = [sp.csr_array(X[:3]), sp.csr_array(X[3:])] if sparse else [X[:3], X[3:]]
    graphs = as_graphs([(part, edges) for part in parts])
    data = GraphSet("set", graphs, np.array([1, 0]), classes=("3", "7"))
    write_graph_npz(data, tmp_path / "set.npz")
    with np.load(tmp_path / "set.npz") as file:
        assert ("x" in file.files) is not sparse  # what is sparse is not made dense
    found = read_graph_npz(tmp_path / "set.npz")
    assert sp.issparse(found.graphs.X) is sparse
    np.testing.assert_array_equal(found.graphs.X.toarray() if sparse else found.graphs.X, X)
    np.testing.assert_array_equal(found.graphs.graph.indices, graphs.graph.indices)
    assert (found.y.tolist(), found.classes) == ([1, 0], ("3", "7"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"graph_ptr": np.array([0, 3, 3, 5])}, "'graph_ptr' that increases"),
        ({"y": np.array([1])}, r"'y' of shape \(2,\)"),
        ({"edge_index": np.array([[0], [9]])}, "between 0 and 4"),
        ({"edge_index": np.array([[0], [4]])}, "edge 0"),
        ({"edge_index": np.zeros((3, 2), int)}, "'edge_index', got int64"),
        ({"edge_tag": np.array([1]), "edge_tag_node": np.array([5])}, "got 5"),
        ({"edge_tag": np.array([1]), "edge_tag_node": np.array([1, 2])}, "'edge_tag'"),
        ({"x": np.ones((4, 2))}, "features of 5 nodes"),
        ({"node_tag": np.array([1, 2])}, "'node_tag' of shape"),
        ({"fold1_test": np.array([0])}, "fold 1"),
        ({"adj_upper_bits": np.zeros(0, np.uint8)}, "'adj_upper_bits'"),
    ],
)
def test_broken_npz_sets(tmp_path, changes, sentence):
    np.savez(tmp_path / "set.npz", **{**ARRAYS, **changes})
    with pytest.raises(ValueError, match=sentence):
        read_graph_npz(tmp_path / "set.npz")
