"""The .npz reader: symmetrised graphs, several splits, and files that are no graphs."""

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph.datasets import load_graph, read_graph_npz, read_npz, write_npz
from fishergraph.datasets import npz as graph_files
from fishergraph.io import npz
from fishergraph.io.tables import read_nodes

PLAIN = {
    "edge_index": np.array([[0, 1, 1, 3, 3], [1, 0, 2, 3, 2]]),
    "y": np.array([0, 1, 1, 0], dtype=np.int16),
    "x": np.arange(8.0).reshape(4, 2),
}


def write(path, **changes):
    arrays = {key: value for key, value in {**PLAIN, **changes}.items() if value is not None}
    np.savez_compressed(path, **arrays)
    return path


def test_graph_is_symmetric_without_duplicates_or_added_loops(tmp_path):
    data = read_npz(write(tmp_path / "g.npz"))
    expected = [
        [0, 1, 0, 0],
        [1, 0, 1, 0],
        [0, 1, 0, 1],
        [0, 0, 1, 1],
    ]  # the given loop at 3 stays, no other comes
    np.testing.assert_array_equal(data.graph.toarray(), expected)
    assert data.graph.dtype == data.X.dtype == np.float32
    assert data.y.dtype == np.int64
    assert data.name == "g"


def test_sparse_features(tmp_path):
    X = sp.csr_array(np.array([[0, 1.5], [2, 0], [0, 0], [1, 1]]))
    pieces = {f"x_{part}": getattr(X, part) for part in ("data", "indices", "indptr")}
    data = read_npz(write(tmp_path / "g.npz", x=None, x_shape=np.array(X.shape), **pieces))
    assert isinstance(data.X, sp.csr_array)
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())


def test_several_splits_are_lists(tmp_path):
    masks = np.eye(4, dtype=bool)
    data = read_npz(write(tmp_path / "g.npz", train_mask=masks[:3], val_mask=masks[1:], test_mask=masks[[3, 0, 1]]))
    assert data.n_splits == 3
    assert isinstance(data.train, list)
    train, val, test = data.split(2)
    assert (train.tolist(), val.tolist(), test.tolist()) == ([2], [3], [1])
    with pytest.raises(ValueError, match="3 fixed splits"):
        data.split(3)


CSR = {"x": None, "x_data": np.ones(1), "x_indptr": np.array([0, 1, 1, 1, 1]), "x_shape": np.array([4, 2])}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None}, "an array 'y'"),
        ({"x": None}, "'x'"),
        ({"y": np.array([0.0, 1.0, np.nan, 0.0])}, "integers in 'y'"),
        ({"edge_index": np.array([[0], [4]])}, "between 0 and 3"),
        ({"edge_index": np.array([[0], [-1]])}, "between 0 and 3"),
        ({"edge_index": np.array([0, 1])}, r"\(2, edge\)"),
        ({"x": np.ones((3, 2))}, "features of 4 nodes"),
        ({"x": np.full((4, 2), np.nan)}, "NaN in row 0"),
        ({"x": np.array(["a", "b", "c", "d"])}, "'x', got <U1"),
        ({**CSR, "x_indices": np.array([7])}, "x_shape"),
        ({**CSR, "x_indices": np.array([0]), "x_shape": np.array([4])}, "'x_shape' of shape"),
        ({"edge_index": np.ones((2, 3))}, "'edge_index', got float64"),
        ({"edge_index": None}, "an array 'edge_index'"),
        ({"train_mask": np.ones(4)}, "'train_mask' of shape"),
        ({"ids": np.arange(3)}, "'ids' of shape"),
        ({"y": np.array([None, 1, 2, 3])}, "cannot be read"),
    ],
)
def test_a_misfit_names_the_file(tmp_path, changes, message):
    path = write(tmp_path / "g.npz", **changes)
    with pytest.raises(ValueError, match=message) as caught:
        read_npz(path)
    assert str(path) in str(caught.value)


BARE = {"edge_index": np.zeros((2, 0)), "y": np.arange(4), "graph_ptr": np.arange(5)}  # a graph, and a set of four
BAD_FEATURES = {
    "NaN": ({"x": np.array([[0.0], [1], [np.nan], [2]])}, "NaN in row 2"),
    "infinity": ({"x": np.full((4, 1), np.inf)}, "infinity in row 0"),
    "beyond float32": ({"x": np.full((4, 1), 1e39)}, r"1e\+39"),
    "text": ({"x": np.full((4, 1), "a")}, "'x', got <U1"),
    "one axis": ({"x": np.ones(4)}, "'x', got float64"),
    "sparse beyond float32": (CSR | {"x_indices": np.array([0]), "x_data": np.array([-1e39])}, "x_data"),
    "sparse NaN": (CSR | {"x_indices": np.array([0]), "x_data": np.array([np.nan])}, "NaN in row 0"),
    "sparse text": (CSR | {"x_indices": np.array([0]), "x_data": np.array(["a"])}, "<U1"),
    "pointing outside": (CSR | {"x_indices": np.array([-1])}, "indices"),
    "half a matrix": ({"x_data": np.ones(1)}, "'x_indices'"),
}


@pytest.mark.parametrize("case", BAD_FEATURES)
@pytest.mark.filterwarnings("error")
def test_every_reader_says_the_same_of_features(tmp_path, case):
    changes, message = BAD_FEATURES[case]
    path = write(tmp_path / "g.npz", **{**BARE, "x": None, **changes})
    said = set()
    for read in (read_nodes, read_npz, read_graph_npz):
        with pytest.raises(ValueError, match=message) as caught:
            read(path)
        said.add(str(caught.value))
    assert len(said) == 1
    assert f"'{path}'" in said.pop()


def test_every_reader_reads_the_same_features(tmp_path):
    X = sp.csr_array(np.array([[0, 1.5], [2, 0], [0, 0], [1, 1]]))
    for features in ({"x": np.asfortranarray(X.toarray())}, npz.feature_arrays(X)):
        path = write(tmp_path / "g.npz", **{**BARE, "x": None, **features})
        for found in (read_nodes(path)[1], read_npz(path).X, read_graph_npz(path).graphs.X):
            assert found.dtype == np.float32
            assert sp.issparse(found) == ("x" not in features)
            assert sp.issparse(found) or found.flags.c_contiguous  # type: ignore[union-attr]
            np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, X.toarray())


@pytest.mark.parametrize("damage", ["text", "empty", "cut", "flipped", "npy"])
def test_a_damaged_file_is_named(tmp_path, damage):
    path = write(tmp_path / "g.npz")
    content = path.read_bytes()
    middle = len(content) // 5
    damaged = {
        "text": b"not an archive",
        "empty": b"",
        "cut": content[: len(content) // 2],
        "flipped": content[:middle]
        + bytes(255 - byte for byte in content[middle : middle + 60])
        + content[middle + 60 :],
    }
    if damage == "npy":
        with path.open("wb") as stream:
            np.save(stream, np.ones(3))
    else:
        path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match="empty" if damage == "empty" else "cannot be read") as caught:
        read_npz(path)
    assert str(path) in str(caught.value)


def equal(one, two):
    for matrix in ("X", "graph"):
        a, b = getattr(one, matrix), getattr(two, matrix)
        assert type(a) is type(b)
        a, b = (m.toarray() if sp.issparse(m) else m for m in (a, b))
        np.testing.assert_array_equal(a, b)
    for array in ("y", "train", "val", "test", "ids"):
        np.testing.assert_equal(getattr(one, array), getattr(two, array))
    assert (one.licence, one.source, one.class_names) == (two.licence, two.source, two.class_names)


@pytest.mark.parametrize("packed", [True, False])
def test_what_is_written_is_read_again(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(graph_files, "_SMALL", 1 << 30 if packed else 0)
    cora = load_graph("cora")
    write_npz(cora, tmp_path / "cora.npz")
    equal(read_npz(tmp_path / "cora.npz"), cora)
    masks = np.eye(4, dtype=bool)
    several = read_npz(write(tmp_path / "g.npz", train_mask=masks[:3], val_mask=masks[1:], test_mask=masks[[3, 0, 1]]))
    write_npz(several, tmp_path / "again.npz")
    equal(read_npz(tmp_path / "again.npz"), several)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.npz", "cora.npz", "g.npz"]


@pytest.mark.parametrize("ids", [np.zeros(2, dtype=[("a", np.int64)]), np.array([0.0, np.inf]), [np.nan, 1.0]])
def test_ids_are_finite_numbers_or_text(tmp_path, ids):
    np.savez(tmp_path / "g.npz", edge_index=[[0], [1]], y=[0, 1], x=np.ones((2, 1)), ids=ids)
    with pytest.raises(ValueError, match="'ids'"):
        read_npz(tmp_path / "g.npz")
