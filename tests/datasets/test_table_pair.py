"""Graphs as tables: what other programs find in them, and what the library reads again."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fishergraph import as_graph
from fishergraph.datasets import GraphData, load_graph, read_graph, table_pair, write_tables
from fishergraph.io import arrow
from fishergraph.io.tables import read_edges, read_nodes


def small(**changes):
    graph = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
    X = np.array([[0.5, 0], [1, 2], [0, -3]], dtype=np.float32)
    parts = {"train": np.array([0]), "val": np.array([2]), "test": np.zeros(0, dtype=int)}
    return GraphData(**({"name": "small", "X": X, "graph": graph, "y": np.array([1, -1, 0])} | parts | changes))


@pytest.mark.parametrize("suffix", table_pair.TABLES)
@pytest.mark.parametrize("sparse", [False, True])
def test_tables_of_a_graph(tmp_path, monkeypatch, suffix, sparse):
    monkeypatch.setattr(arrow, "CELLS", 8)  # a row or two at a time
    data = small(class_names=("no", "yes"), ids=np.array(["a", "b", "c"]))
    edges, nodes = write_tables(
        small(**{**vars(data), "X": sp.csr_array(data.X)}) if sparse else data, tmp_path / f"g{suffix}"
    )
    assert (edges.name, nodes.name) == (f"g.edges{suffix}", f"g.nodes{suffix}")
    read = pd.read_parquet if suffix == ".parquet" else lambda path: pd.read_csv(path, sep=table_pair.TABLES[suffix])
    table = read(nodes)
    assert table.columns.tolist() == ["id", "label", "split", "x0", "x1"]
    assert table["id"].tolist() == ["a", "b", "c"]
    assert table["label"].fillna("").tolist() == ["yes", "", "no"]
    assert table["split"].fillna("").tolist() == ["train", "", "val"]
    np.testing.assert_array_equal(table[["x0", "x1"]].to_numpy(), data.X)
    assert read(edges).to_numpy().tolist() == [["a", "b"], ["b", "a"], ["b", "c"], ["c", "b"]]


def test_a_class_without_a_name_is_written_as_its_number(tmp_path):
    _, nodes = write_tables(small(class_names=("no",), y=np.array([31, -1, 0])), tmp_path / "g.csv")
    assert pd.read_csv(nodes)["label"].fillna("").tolist() == ["31", "", "no"]


def test_both_tables_or_neither(tmp_path, monkeypatch):
    """The nodes cannot be written: the old tables stay, and nothing else is there."""
    paths = write_tables(small(), tmp_path / "g.csv")
    before = {path: path.read_bytes() for path in paths}
    write, calls = arrow._block, []

    def fill_the_disk(columns, rows, X, names):
        calls.append(X)
        if X is not None and len(calls) > 3:
            raise OSError(28, "No space left on device")
        return write(columns, rows, X, names)

    monkeypatch.setattr(arrow, "_block", fill_the_disk)
    with pytest.raises(OSError, match="No space"):
        write_tables(small(y=np.array([0, 0, 0])), tmp_path / "g.csv")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    calls.clear()
    with pytest.raises(OSError, match="could not be written"):
        write_tables(small(), tmp_path / "new.csv")
    assert set(tmp_path.iterdir()) == set(paths)


def test_several_splits_and_no_names(tmp_path):
    several = small(train=[np.array([0]), np.array([1])], val=[np.array([1]), np.array([2])], test=[np.array([2])] * 2)
    _, nodes = write_tables(several, tmp_path / "g.parquet")
    table = pd.read_parquet(nodes)
    assert table.columns.tolist() == ["id", "label", "split0", "split1", "x0", "x1"]
    assert table["id"].tolist() == [0, 1, 2]
    assert table["label"].isna().tolist() == [False, True, False]
    assert table["label"].dropna().tolist() == [1, 0]


def test_cora_comes_back(tmp_path):
    cora = load_graph("cora")
    edges, nodes = write_tables(cora, tmp_path / "cora.parquet")
    ids, X, _ = read_nodes(nodes, drop=["label", "split"])
    graph = as_graph(read_edges(edges), node_ids=ids)
    np.testing.assert_array_equal(X, cora.X.toarray())
    np.testing.assert_array_equal(graph.indices, cora.graph.indices)
    np.testing.assert_array_equal(ids, cora.ids)


def test_a_name_that_is_no_table(tmp_path):
    with pytest.raises(ValueError, match=r"g\.xlsx"):
        write_tables(small(), tmp_path / "g.xlsx")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_tables(small(), tmp_path / "absent" / "g.csv")


def equal(one, two):
    for matrix in ("X", "graph"):
        a, b = (m.toarray() if sp.issparse(m) else m for m in (getattr(one, matrix), getattr(two, matrix)))
        np.testing.assert_array_equal(a, b)
    for array in ("y", "train", "val", "test", "ids"):
        np.testing.assert_equal(getattr(one, array), getattr(two, array))
    assert one.class_names == two.class_names


@pytest.mark.parametrize("suffix", table_pair.TABLES)
def test_what_is_written_is_read_again(tmp_path, suffix):
    several = {
        "train": [np.array([0])] * 11,
        "val": [np.array([2])] * 11,
        "test": [np.array([1])] * 10 + [np.array([], int)],
    }
    for data in (
        small(class_names=("no", "yes"), ids=np.array(["a", "b", "c"])),
        small(**several),
        small(train=None, val=None, test=None),
    ):
        for path in write_tables(data, tmp_path / f"small{suffix}"):
            again = read_graph(path)
            equal(again, data)
            assert again.name == "small"


def test_tables_that_do_not_fit(tmp_path):
    _, nodes = write_tables(small(), tmp_path / "g.csv")
    good = nodes.read_text()
    nodes.write_text(good.replace("train", "training"))
    with pytest.raises(ValueError, match="got 'training'"):
        read_graph(nodes)
    nodes.write_text(good.replace('"label"', '"topic"'))
    with pytest.raises(ValueError, match="no column 'label'"):
        read_graph(nodes)
    nodes.write_text(good)
    (tmp_path / "g.edges.csv").write_text("source,target,weight\n0,1,2.5\n")
    with pytest.raises(ValueError, match="without weights"):
        read_graph(nodes)
    (tmp_path / "g.edges.csv").write_text("source,target\n0,7\n")
    with pytest.raises(ValueError, match="7"):
        read_graph(nodes)
    (tmp_path / "g.edges.csv").unlink()
    with pytest.raises(ValueError, match="layouts"):
        read_graph(nodes)
