"""The Planetoid reader: pickles that are not run, the published graphs, and downloads that are checked."""

import hashlib
import pickle
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph.datasets import fetch, load_graph, read_graph, read_npz, read_planetoid
from fishergraph.datasets.planetoid import PARTS, file_name, load_pickle
from fishergraph.datasets.sources import SOURCES
from shared_data import needs_shared_data, shared_data


def small_parts():
    """Six nodes and a gap: nodes 0-2 in allx, tests 5 and 3, node 4 missing."""
    graph = defaultdict(list, {0: [1, 1, 0], 1: [2], 5: [0]})
    return {
        "x": sp.csr_matrix(np.eye(2, 3, dtype=np.float32)),
        "y": np.eye(2, dtype=np.int32),
        "tx": sp.csr_matrix(np.array([[0, 0, 5], [0, 3, 0]], dtype=np.float32)),
        "ty": np.array([[0, 1], [1, 0]], dtype=np.int32),
        "allx": sp.csr_matrix(np.eye(3, dtype=np.float32)),
        "ally": np.array([[1, 0], [0, 1], [0, 1]], dtype=np.int32),
        "graph": graph,
    }


def write_small(folder, name="small", protocol=2, **changes):
    for part, value in {**small_parts(), **changes}.items():
        (folder / file_name(name, part)).write_bytes(pickle.dumps(value, protocol=protocol))
    (folder / file_name(name, "test.index")).write_text("5\n3\n")


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_small_graph(tmp_path, protocol):
    write_small(tmp_path, protocol=protocol)
    data = read_planetoid(tmp_path, "small")
    expected = np.zeros((6, 3))
    expected[[0, 1, 2, 3, 5], [0, 1, 2, 1, 2]] = [
        1,
        1,
        1,
        3,
        5,
    ]  # row i of tx is node test[i]; node 4 is empty
    np.testing.assert_array_equal(data.X.toarray(), expected)
    assert data.y.tolist() == [0, 1, 1, 0, 0, 1]
    assert sorted(zip(*data.graph.nonzero(), strict=True)) == [(0, 1), (0, 5), (1, 0), (1, 2), (2, 1), (5, 0)]
    assert data.test.tolist() == [3, 5]
    assert data.val.tolist() == [2]  # of nodes that are there


@needs_shared_data
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_published_graphs(name):
    ours, other = read_planetoid(shared_data() / "planetoid", name), read_npz(shared_data() / f"{name}.npz")
    for matrix in ("X", "graph"):
        a, b = getattr(ours, matrix), getattr(other, matrix)
        assert a.shape == b.shape
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
    for array in ("y", "train", "val", "test"):
        np.testing.assert_array_equal(getattr(ours, array), getattr(other, array))
        assert getattr(ours, array).dtype == np.int64


class Calls:
    """A pickle of this calls a function when it is read."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def _must_not_run(*arguments):
    raise AssertionError("the pickle ran code")


@pytest.mark.parametrize(
    "payload",
    [
        Calls(_must_not_run),
        Calls(eval, "1 + 1"),
        Calls(getattr, [], "append"),
        Calls(__import__, "os"),
        Calls(np.fromfile, "x"),
        [1, {"a": Calls(exec, "pass")}],
    ],
)
def test_a_foreign_pickle_runs_nothing(tmp_path, payload):
    path = tmp_path / "ind.cora.x"
    path.write_bytes(pickle.dumps(payload, protocol=2))
    with pytest.raises(ValueError, match="it names") as caught:
        load_pickle(path)
    assert str(path) in str(caught.value)


def test_a_pickle_cannot_alter_classes(tmp_path):
    # BUILD with a (None, dict) state sets attributes on whatever object lies on the stack, here a class.
    path = tmp_path / "ind.cora.x"
    path.write_bytes(b"\x80\x02cscipy.sparse.csr\ncsr_matrix\nN}U\x05spoilK\x01s\x86b.")
    with pytest.raises(ValueError, match="state"):
        load_pickle(path)
    assert not hasattr(sp.csr_matrix, "spoil")


def test_arrays_of_objects_are_refused(tmp_path):
    path = tmp_path / "ind.cora.x"
    path.write_bytes(pickle.dumps(np.array([Calls(_must_not_run)], dtype=object), protocol=2))
    with pytest.raises(ValueError, match="'O8'"):
        load_pickle(path)


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps(np.ones(9))[:-20]])
def test_a_damaged_pickle_is_named(tmp_path, content):
    write_small(tmp_path)
    (tmp_path / "ind.small.tx").write_bytes(content)
    with pytest.raises(ValueError, match=r"ind\.small\.tx'"):
        read_planetoid(tmp_path, "small")


def test_bad_csr_indices_are_refused(tmp_path):
    matrix = sp.csr_matrix(np.eye(3, dtype=np.float32))
    matrix.indices[1] = 100
    write_small(tmp_path, allx=matrix)
    with pytest.raises(ValueError, match=r"ind\.small\.allx"):
        read_planetoid(tmp_path, "small")


@pytest.mark.parametrize(
    "changes",
    [
        {"ally": [1, 2]},
        {"tx": np.ones(3)},
        {"ty": np.eye(3)},
        {"graph": [1]},
        {"y": sp.csr_matrix(np.eye(2))},
        {"ty": np.zeros((2, 0))},
        {"tx": sp.csr_matrix(np.full((2, 3), np.nan))},
        {"tx": sp.csr_matrix(np.full((2, 3), 1e39))},
    ],
)
def test_parts_that_do_not_fit(tmp_path, changes):
    write_small(tmp_path, **changes)
    with pytest.raises(ValueError, match=r"ind\.small\.\*"):
        read_planetoid(tmp_path, "small")


def test_an_edge_to_no_node_names_the_file(tmp_path):
    write_small(tmp_path, graph={0: [17]})
    with pytest.raises(ValueError, match=r"ind\.small\.graph"):
        read_planetoid(tmp_path, "small")


def test_a_test_index_that_would_fill_the_memory(tmp_path):
    write_small(tmp_path)
    (tmp_path / "ind.small.test.index").write_text("5\n999999999999\n")
    with pytest.raises(ValueError, match="999999999999"):
        read_planetoid(tmp_path, "small")


def test_bad_test_index_is_named(tmp_path):
    write_small(tmp_path)
    (tmp_path / "ind.small.test.index").write_text("5\nthree\n")
    with pytest.raises(ValueError, match="per line"):
        read_planetoid(tmp_path, "small")


def test_the_only_graph_of_a_folder(tmp_path):
    write_small(tmp_path)
    assert read_graph(tmp_path).name == "small"
    write_small(tmp_path, "other")
    with pytest.raises(ValueError, match="Planetoid"):
        read_graph(tmp_path)
    assert read_graph(tmp_path, "other").name == "other"


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A folder that stands for the web, holding a small "citeseer"; the network itself is never used."""
    web = tmp_path / "web"
    web.mkdir()
    write_small(web, "citeseer")
    files = []
    for file in SOURCES["citeseer"].files:
        here = web / file.path.removeprefix("planetoid/")
        checksum = hashlib.sha256(here.read_bytes()).hexdigest()
        files.append(replace(file, url=here.as_uri(), sha256=checksum))
    monkeypatch.setitem(SOURCES, "citeseer", replace(SOURCES["citeseer"], files=tuple(files)))
    monkeypatch.delenv("FISHERGRAPH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return web


def test_download_then_cache(published, tmp_path):
    data = load_graph("citeseer")
    assert (data.n_nodes, data.licence, data.source) == (6, "MIT", "https://github.com/kimiyoung/planetoid")
    place = tmp_path / "cache" / "fishergraph" / "planetoid"
    names = [file_name("citeseer", part) for part in PARTS]
    assert sorted(path.name for path in place.iterdir()) == sorted([*names, *(f"{name}.sha256" for name in names)])
    for path in published.iterdir():
        path.unlink()
    assert load_graph("citeseer").n_nodes == 6  # from the cache now


def test_download_into_data_home(published, tmp_path):
    load_graph("citeseer", data_home=tmp_path / "home")
    assert (tmp_path / "home" / "planetoid" / "ind.citeseer.x").is_file()


@pytest.mark.parametrize("place", [".", "planetoid", "CiteSeer/raw"])
def test_files_that_are_there_are_not_downloaded(published, tmp_path, place):
    (tmp_path / "home" / place).mkdir(parents=True)
    write_small(tmp_path / "home" / place, "citeseer")
    for path in published.iterdir():
        path.unlink()
    assert load_graph("citeseer", data_home=tmp_path / "home").n_nodes == 6


def test_a_changed_file_is_not_kept(published, tmp_path):
    (published / "ind.citeseer.y").write_bytes(b"changed")
    with pytest.raises(ValueError, match=r"ind\.citeseer\.y'.*SHA-256"):
        fetch("citeseer", data_home=tmp_path)
    names = sorted(path.name for path in (tmp_path / "planetoid").iterdir())
    assert names == ["ind.citeseer.x", "ind.citeseer.x.sha256"]


def test_a_failed_download_says_what_to_do(published, tmp_path):
    (published / "ind.citeseer.x").unlink()
    with pytest.raises(ConnectionError, match="FISHERGRAPH_DATA"):
        load_graph("citeseer")


@needs_shared_data
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_checksums_are_those_of_the_published_files(name):
    for file in SOURCES[name].files:
        assert hashlib.sha256((shared_data() / file.path).read_bytes()).hexdigest() == file.sha256
