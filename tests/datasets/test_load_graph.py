"""load_graph: where a name is looked for, and what the errors say."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph.datasets import GraphData, cache_folder, data_folders, known_graphs, load_graph
from fishergraph.datasets.sources import SOURCES
from published import example, ogb_files, reddit_files, shchur_file, write_files, zipped
from shared_data import needs_shared_data, shared_data

SHARED = shared_data()  # asked before the environment is emptied


@pytest.fixture(autouse=True)
def _empty_home(tmp_path, monkeypatch):
    monkeypatch.delenv("FISHERGRAPH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def write_triangle(folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([0, 1, 1]), "x": np.eye(3)}
    np.savez(folder / f"{name}.npz", **arrays)


def test_bundled_cora_is_complete():
    cora = load_graph("cora")
    assert isinstance(cora, GraphData)
    assert (cora.n_nodes, cora.n_features, cora.n_classes, cora.n_splits) == (2708, 1433, 7, 1)
    assert isinstance(cora.X, sp.csr_array)
    assert cora.X.dtype == cora.graph.dtype == np.float32
    assert cora.graph.nnz == 2 * 5278
    assert (cora.graph != cora.graph.T).nnz == 0
    assert not cora.graph.diagonal().any()
    assert np.all(cora.graph.data == 1)
    np.testing.assert_array_equal(cora.train, np.arange(140))
    np.testing.assert_array_equal(cora.val, np.arange(140, 640))
    np.testing.assert_array_equal(cora.test, np.arange(1708, 2708))
    assert np.bincount(cora.y).tolist() == [351, 217, 418, 818, 426, 298, 180]
    assert np.bincount(cora.y[cora.train]).tolist() == [20] * 7
    assert len(np.unique(cora.ids)) == 2708
    assert cora.licence == "Apache-2.0"
    assert "2,708 nodes" in repr(cora)
    assert "\n" not in repr(cora)


@needs_shared_data
def test_bundled_cora_equals_planetoid():
    cora = load_graph("cora")
    with np.load(SHARED / "cora.npz", allow_pickle=False) as other:
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(cora.X, part), other[f"x_{part}"])
        np.testing.assert_array_equal(np.stack(cora.graph.nonzero()), other["edge_index"])
        np.testing.assert_array_equal(cora.y, other["y"])


@needs_shared_data
@pytest.mark.parametrize(("name", "n_edges", "n_splits"), [("minesweeper", 39402, 10), ("pubmed", 44324, 1)])
def test_larger_graphs(name, n_edges, n_splits):
    data = load_graph(name, data_home=SHARED)
    assert (data.graph.nnz, data.n_splits) == (2 * n_edges, n_splits)
    train, val, test = data.split(n_splits - 1)
    assert train.dtype == np.int64
    assert len(np.unique(np.concatenate([train, val, test]))) == len(train) + len(val) + len(test)


def test_folders_are_searched_in_order(tmp_path, monkeypatch):
    assert data_folders() == [cache_folder()] == [tmp_path / "cache" / "fishergraph"]
    monkeypatch.setenv("FISHERGRAPH_DATA", str(tmp_path / "named"))
    assert data_folders() == [tmp_path / "named", cache_folder()]
    assert data_folders(tmp_path) == [tmp_path]
    write_triangle(tmp_path / "named", "triangle")
    write_triangle(cache_folder(), "cached")
    assert known_graphs() == [*SOURCES, "cached", "triangle"]
    assert load_graph("triangle").graph.nnz == 4
    assert load_graph("cached").name == "cached"


@pytest.mark.parametrize("name", ["crora", "Cora", "../triangle", "", None, 3, ["cora"]])
def test_unknown_name_lists_the_known_ones(tmp_path, name):
    write_triangle(tmp_path / "home", "square")
    write_triangle(tmp_path, "triangle")
    with pytest.raises(ValueError, match="'square'") as caught:
        load_graph(name, data_home=tmp_path / "home")
    assert repr(name) in str(caught.value)


LAYOUTS = {
    "reddit": ["reddit/reddit.zip", "reddit.zip", "Reddit/raw", "reddit"],
    "ogbn-arxiv": ["ogbn-arxiv/arxiv.zip", "arxiv.zip", "ogbn_arxiv", "arxiv"],
    "ogbn-products": ["products.zip", "ogbn_products"],
    "amazon-computers": ["amazon_electronics_computers.npz", "Computers/raw/amazon_electronics_computers.npz"],
    "coauthor-physics": ["coauthor-physics/ms_academic_phy.npz", "Physics/raw/ms_academic_phy.npz"],
}


@pytest.mark.parametrize(("name", "place"), [(name, place) for name, places in LAYOUTS.items() for place in places])
def test_published_graphs_are_found_where_others_keep_them(tmp_path, monkeypatch, name, place):
    files = {"reddit": reddit_files, "shchur": None, "ogb": ogb_files}[SOURCES[name].reader]
    content = {place: shchur_file(example())} if files is None else files(example())
    if place.endswith(".zip"):
        content = {place: zipped(content)}
    elif files is not None:
        content = {f"{place}/{file}": part for file, part in content.items()}
    write_files(tmp_path, content)
    monkeypatch.setenv("FISHERGRAPH_DATA", str(tmp_path))
    data = load_graph(name)
    assert (data.name, data.n_nodes, data.source) == (name, 30, SOURCES[name].home)


def test_a_path_in_place_of_a_name(tmp_path):
    write_triangle(tmp_path, "triangle")
    assert load_graph(tmp_path / "triangle.npz").name == "triangle"
    assert load_graph(str(tmp_path / "triangle.npz")).graph.nnz == 4
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_graph(tmp_path / "square.npz")


def test_a_data_folder_that_is_closed(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    monkeypatch.setenv("FISHERGRAPH_DATA", str(tmp_path / "closed"))
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "closed" not in str(path) and real(path, mode))
    with pytest.raises(PermissionError, match=r"data folder '.*closed'"):
        load_graph("citeseer")


def test_a_file_in_place_of_the_data_folder(tmp_path):
    (tmp_path / "file").write_text("a file")
    with pytest.raises(PermissionError, match="not a readable folder"):
        load_graph("citeseer", data_home=tmp_path / "file")


def test_split_of_a_graph_without_one(tmp_path):
    write_triangle(tmp_path, "triangle")
    data = load_graph("triangle", data_home=tmp_path)
    assert data.train is None
    assert "no split" in repr(data)
    with pytest.raises(ValueError, match="0 fixed splits"):
        data.split()


def test_import_is_light():
    code = "import sys, fishergraph.datasets; print({'numba', 'torch', 'pyarrow', 'tqdm'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
