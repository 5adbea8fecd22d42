"""Graphs as tables: what other programs find in them, and what the library reads again."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from fishergraph import as_graph
from fishergraph.datasets import GraphData, export, load_graph, write_tables
from fishergraph.tables import read_edges, read_nodes


def small(**changes):
    graph = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
    X = np.array([[0.5, 0], [1, 2], [0, -3]], dtype=np.float32)
    parts = {"train": np.array([0]), "val": np.array([2]), "test": np.zeros(0, dtype=int)}
    return GraphData(**({"name": "small", "X": X, "graph": graph, "y": np.array([1, -1, 0])} | parts | changes))


@pytest.mark.parametrize("suffix", export.TABLES)
@pytest.mark.parametrize("sparse", [False, True])
def test_tables_of_a_graph(tmp_path, monkeypatch, suffix, sparse):
    monkeypatch.setattr(export, "CELLS", 8)  # a row or two at a time
    data = small(class_names=("no", "yes"), ids=np.array(["a", "b", "c"]))
    edges, nodes = write_tables(
        small(**{**vars(data), "X": sp.csr_array(data.X)}) if sparse else data, tmp_path / f"g{suffix}"
    )
    assert (edges.name, nodes.name) == (f"g.edges{suffix}", f"g.nodes{suffix}")
    read = pd.read_parquet if suffix == ".parquet" else lambda path: pd.read_csv(path, sep=export.TABLES[suffix])
    table = read(nodes)
    assert table.columns.tolist() == ["id", "label", "split", "x0", "x1"]
    assert table["id"].tolist() == ["a", "b", "c"]
    assert table["label"].fillna("").tolist() == ["yes", "", "no"]
    assert table["split"].fillna("").tolist() == ["train", "", "val"]
    np.testing.assert_array_equal(table[["x0", "x1"]].to_numpy(), data.X)
    assert read(edges).to_numpy().tolist() == [["a", "b"], ["b", "a"], ["b", "c"], ["c", "b"]]


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
    with pytest.raises(ValueError, match=r"must end in \.csv.*got 'g\.xlsx'"):
        write_tables(small(), tmp_path / "g.xlsx")
    with pytest.raises(FileNotFoundError, match="must exist"):
        write_tables(small(), tmp_path / "absent" / "g.csv")
