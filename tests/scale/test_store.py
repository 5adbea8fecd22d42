"""The folder of a graph: written whole or not at all, read with plain NumPy, and noticed if something in it changed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph import as_graph
from fishergraph._errors import FileFormatError, InputError
from fishergraph.datasets import load_graph
from fishergraph.scale import Store, StoreWriter, write_store
from fishergraph.scale.arrays import FileRows
from fishergraph.scale.store import MANIFEST

EDGES = [("b", "a"), ("b", "é", 2.0), ("é", "c" * 40)]


@pytest.fixture
def store(tmp_path):
    return write_store(tmp_path / "store", EDGES, np.arange(8.0).reshape(4, 2), feature_names=["x", "y"])


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


# --- what was written is what is read -------------------------------------------------------------------


def test_a_store_holds_the_graph(store, tmp_path):
    graph = as_graph(EDGES)
    for name in ("indptr", "indices", "weights"):
        expected = getattr(graph, name)
        assert np.array_equal(getattr(store, name)[:], expected)
        assert np.load(tmp_path / "store" / f"{name}.npy").dtype == expected.dtype
    assert store.ids[:].tolist() == graph.ids.tolist() == ["a", "b", "c" * 40, "é"]
    assert store.ids[1:3].tolist() == ["b", "c" * 40]
    assert store.ids[3:1].tolist() == []
    assert len(store.ids) == store.n_nodes == 4
    assert (store.n_edges, store.n_features, store.feature_names) == (3, 2, ["x", "y"])
    assert repr(store) == "Store(4 nodes, 3 edges, 2 features)"
    assert np.load(tmp_path / "store" / "features.npy").tolist() == np.arange(8.0).reshape(4, 2).tolist()
    assert store.check() == []


def test_a_store_of_integers_without_weights_or_features(tmp_path):
    store = write_store(tmp_path / "store", [(7, -3), (-3, 2**60)])
    assert store.ids[:].tolist() == [-3, 7, 2**60]
    assert store.weights is None
    assert store.features is None
    assert store.n_features == 0
    assert write_store(tmp_path / "counted", [(0, 1)]).ids is None


def test_sparse_features_stay_sparse(tmp_path):
    cora = load_graph("cora")
    store = write_store(tmp_path / "store", cora.graph, cora.X)
    assert isinstance(store.features, FileRows)
    assert np.array_equal(store.features[100:120].toarray(), cora.X[100:120].toarray())
    assert store.indptr.dtype == np.int64


def test_features_of_one_row_too_few(tmp_path):
    with pytest.raises(InputError, match="row"):
        write_store(tmp_path / "store", [(0, 1)], np.ones((3, 2)))
    with pytest.raises(InputError, match="NaN in row 1"):
        write_store(tmp_path / "store", [(0, 1)], np.array([[1.0], [np.nan]]))
    assert list(tmp_path.iterdir()) == []


def test_equal_graphs_have_equal_digests(store, tmp_path):
    again = write_store(tmp_path / "again", EDGES, np.arange(8.0).reshape(4, 2))
    other = write_store(tmp_path / "other", EDGES, np.arange(1, 9.0).reshape(4, 2))
    assert again.digest == store.digest != other.digest


def test_a_store_keeps_its_bytes_while_many_read_it(store):
    code = "import sys; from fishergraph.scale import Store; s = Store(sys.argv[1]); print(s.check(), s.digest)"
    runs = [
        subprocess.Popen([sys.executable, "-c", code, store.path], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert {run.communicate()[0] for run in runs} == {f"[] {store.digest}\n"}


# --- a store that is not there, is another, or has changed ----------------------------------------------


def test_no_store(tmp_path):
    with pytest.raises(FileNotFoundError, match="ingest"):
        Store(tmp_path / "store")
    (tmp_path / "store").mkdir()
    with pytest.raises(FileFormatError, match="manifest"):
        Store(tmp_path / "store")


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{", "JSON"),
        ("[]", "manifest"),
        ('{"format": "other"}', "manifest"),
        ('{"format": "fishergraph-store", "format_version": 99}', "version 99"),
        ('{"format": "fishergraph-store", "format_version": 1, "arrays": {}}', "facts"),
        ('{"format": "fishergraph-store", "format_version": 1, "arrays": {}, "facts": {}}', "indptr"),
        ('{"format": "fishergraph-store", "format_version": 1, "arrays": [], "facts": {}}', "arrays"),
        ('{"format": "fishergraph-store", "format_version": 1, "arrays": {"indptr": 3}, "facts": {}}', "indptr"),
    ],
)
def test_a_manifest_that_is_not_one(store, content, word):
    (store.path / MANIFEST).write_text(content)
    with pytest.raises(FileFormatError, match=word):
        Store(store.path)


def test_a_manifest_that_is_not_text(store):
    (store.path / MANIFEST).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="JSON"):
        Store(store.path)


@pytest.mark.parametrize("name", ["indptr", "indices", "weights", "features", "ids_text", "ids_offsets"])
def test_a_missing_or_another_array(store, name):
    path = store.path / f"{name}.npy"
    content = np.load(path)
    np.save(path, content[:-1])
    with pytest.raises(FileFormatError, match=rf"{name}\.npy.*manifest says"):
        Store(store.path)
    np.save(path, content.astype(np.uint8))
    if content.dtype != np.uint8:
        with pytest.raises(FileFormatError, match="uint8"):
            Store(store.path)
    path.unlink()
    with pytest.raises(FileFormatError, match="missing"):
        Store(store.path)


@pytest.mark.parametrize("name", ["indptr", "indices", "weights", "features", "ids_text", "ids_offsets"])
def test_a_torn_array(store, name):
    path = store.path / f"{name}.npy"
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(FileFormatError, match="bytes"):
        Store(store.path)


def test_a_changed_byte_is_found_by_its_checksum(store):
    content = np.load(store.path / "features.npy")
    content[2, 1] += 1
    np.save(store.path / "features.npy", content)
    seen = []
    assert Store(store.path).check(seen.append) == ["features.npy, rows 0 to 3"]
    assert sum(seen) == sum(np.load(path).nbytes for path in store.path.glob("*.npy"))


# --- writing --------------------------------------------------------------------------------------------


def test_a_store_is_not_replaced_unless_asked(store):
    digest = store.digest
    with pytest.raises(InputError, match="overwrite"):
        write_store(store.path, [(0, 1)])
    assert Store(store.path).digest == digest
    assert write_store(store.path, [(0, 1)], overwrite=True).digest != digest
    assert hidden(store.path.parent) == []


def test_another_folder_or_file_is_never_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious").touch()
    (tmp_path / "file").touch()
    for name in ("folder", "file"):
        with pytest.raises(FileExistsError, match="not a store"):
            write_store(tmp_path / name, [(0, 1)], overwrite=True)
    assert (tmp_path / "folder" / "precious").exists()


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="create"):
        write_store(tmp_path / "no" / "store", [(0, 1)])


def fail(path, error):
    with StoreWriter(path, overwrite=True) as writer:
        writer.array("indptr", (3,), np.int64)
        writer.scratch("bucket").write_bytes(b"x")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failed_work_leaves_nothing(tmp_path, error):
    with pytest.raises(error):
        fail(tmp_path / "store", error)
    assert list(tmp_path.iterdir()) == []


def test_failed_work_keeps_the_store_that_was_there(store):
    digest = store.digest
    with pytest.raises(ValueError):
        fail(store.path, ValueError)
    assert Store(store.path).digest == digest


def test_scratch_files_are_gone(tmp_path):
    with StoreWriter(tmp_path / "store") as writer:
        writer.array("indptr", (2,), np.int64)[:] = 0
        writer.growing("indices", np.int32)
        writer.scratch("bucket").write_bytes(b"x")
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["indices.npy", "indptr.npy", MANIFEST]
    assert Store(tmp_path / "store").n_edges == 0


KILLED = """
import os, sys, time
import numpy as np
from fishergraph.scale import StoreWriter
with StoreWriter(sys.argv[1], overwrite=True) as writer:
    writer.array("indptr", (1000,), np.int64)
    print("writing", flush=True)
    time.sleep(100)
"""


def start_writer(path):
    run = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "writing\n"
    return run


@pytest.mark.parametrize("name", ["store", "store [1]*"])
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path, name):
    run = start_writer(tmp_path / name)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert len(hidden(tmp_path)) == 1
    assert not (tmp_path / name).exists()
    write_store(tmp_path / name, [(0, 1)])
    assert hidden(tmp_path) == []


def test_a_writer_leaves_the_files_of_one_that_still_writes(tmp_path):
    run = start_writer(tmp_path / "store")
    try:
        left = hidden(tmp_path)
        write_store(tmp_path / "store", [(0, 1)])
        write_store(tmp_path / "other", [(0, 1)])
        assert hidden(tmp_path) == left != []
    finally:
        run.send_signal(signal.SIGINT)
        run.wait()
    assert hidden(tmp_path) == []
    assert Store(tmp_path / "store").n_nodes == 2


def test_a_store_that_was_moved_aside_comes_back(store):
    """A writer that is killed between its two last moves has put the old store under a hidden name."""
    digest = store.digest
    os.replace(store.path, store.path.with_name(".store.999999999-abc.old.ingest"))
    with pytest.raises(InputError, match="overwrite"):
        write_store(store.path, [(0, 1)])
    assert Store(store.path).digest == digest
    assert hidden(store.path.parent) == []


FULL = """
import resource, signal, sys
import numpy as np
from fishergraph.scale import write_store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
try:
    write_store(sys.argv[1], [(0, 1)], np.ones((2, 2**14)))
except OSError as error:
    print(error)
"""


def test_a_full_disk_leaves_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path / "store"], capture_output=True, text=True)
    assert "could not be written" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_says_who_wrote_what(store):
    manifest = json.loads((store.path / MANIFEST).read_text())
    assert manifest["facts"] == {"source": "memory", "undirected": False}
    assert manifest["arrays"]["features"]["shape"] == [4, 2]
    assert manifest["feature_names"] == ["x", "y"]


def test_one_of_two_writers_wins_and_the_store_is_whole(tmp_path):
    code = "import sys; from fishergraph.scale import write_store; write_store(sys.argv[1], [(0, 1)], overwrite=True)"
    runs = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "store"]) for _ in range(2)]
    deadline = time.monotonic() + 60
    assert [run.wait(deadline - time.monotonic()) for run in runs] == [0, 0]
    assert Store(tmp_path / "store").check() == []
    assert hidden(tmp_path) == []


def test_sparse_matrices_as_graphs(tmp_path):
    matrix = sp.csr_array(np.array([[0, 2.0], [0, 1.0]]))
    store = write_store(tmp_path / "store", matrix, undirected=True)
    assert store.weights[:].tolist() == [2, 2, 1]
