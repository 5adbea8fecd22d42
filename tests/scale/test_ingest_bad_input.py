"""Bad files, budgets and disks: the message says what and where, and nothing is left under the name of the store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fishergraph._errors import (
    FileFormatError,
    InputError,
    InputTypeError,
    NotEnoughMemory,
    UnknownNodeError,
)
from fishergraph.scale import Store, ingest

GOOD = "source,target\n0,1\n1,2\n"


@pytest.fixture
def files(tmp_path):
    """A function that writes a file, and one that fails to ingest and leaves nothing."""
    (tmp_path / "out").mkdir()

    def fails(error, match, edges, nodes=None, **options):
        paths = [content if content is None else write(name, content) for name, content in (edges, nodes or ("", None))]
        with pytest.raises(error, match=match):
            ingest(paths[0], tmp_path / "out" / "store", paths[1], **options)
        assert list((tmp_path / "out").iterdir()) == []

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        elif isinstance(content, np.ndarray):
            np.save(path, content)
        elif isinstance(content, dict):
            np.savez(path, **content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return fails


# --- edges ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "match", "name", "content"),
    [
        (FileFormatError, "empty", "e.csv", ""),
        (FileFormatError, "no line of data", "e.txt", "# nothing\n"),
        (InputError, "at least one edge", "e.csv", "source,target\n"),
        (
            InputError,
            "at least one edge",
            "e.parquet",
            pa.table({"source": pa.array([], "int64"), "target": pa.array([], "int64")}),
        ),
        (InputError, "at least one edge", "e.npy", np.empty((2, 0), np.int64)),
        (InputError, "columns source/target", "e.csv", "a,b\n1,2\n"),
        (FileFormatError, r"e\.csv.*Expected 2 columns, got 3", "e.csv", GOOD + "1,2,3\n"),
        (FileFormatError, "separated by commas", "e.csv", "source\ttarget\n1\t2\n"),
        (FileFormatError, "looks like parquet", "e.csv", b"PAR1" + bytes(40)),
        (FileFormatError, r"e\.parquet", "e.parquet", "source,target\n1,2\n"),
        (FileFormatError, r"e\.parquet", "e.parquet", b"PAR1" + bytes(40)),
        (FileFormatError, "not text", "e.csv.gz", GOOD),
        (FileFormatError, r"e\.csv\.gz", "e.csv.gz", b"\x1f\x8b" + bytes(40)),
        (FileFormatError, r"e\.npy", "e.npy", "source,target\n"),
        (FileFormatError, r"e\.npz", "e.npz", b"PK\x03\x04" + bytes(40)),
        (FileFormatError, "edge_index", "e.npz", {"other": np.arange(3)}),
        (InputError, "shape", "e.npy", np.zeros((3, 5), np.int64)),
        (InputTypeError, "integers", "e.npy", np.zeros((2, 5))),
        (InputError, "counted from 0", "e.npy", np.array([[0, -1], [1, 1]])),
        (InputError, "counted from 0", "e.npy", np.array([[0, 2**60], [1, 1]])),
        (InputError, "missing value in row 1", "e.csv", "source,target\n0,1\n,2\n"),
        (InputError, "missing value in row 1", "e.csv", "source,target\n0,1\n1,NA\n"),
        (InputError, "missing value in row 2", "e.parquet", pa.table({"source": [0, 1, None], "target": [1, 2, 3]})),
        (InputTypeError, "integers or strings", "e.parquet", pa.table({"source": [0.5, 1.0], "target": [1, 2]})),
        (InputError, "negative", "e.csv", "source,target,weight\n0,1,-1\n"),
        (InputError, "finite", "e.csv", "source,target,weight\n0,1,1\n0,2,inf\n"),
        (InputError, "finite", "e.csv", "source,target,weight\n0,1,nan\n"),
        (InputTypeError, "heavy", "e.csv", "source,target,weight\n0,1,1\n0,2,heavy\n"),
        (
            InputError,
            "finite sum",
            "e.parquet",
            pa.table({"source": [0, 0], "target": [1, 1], "weight": pa.array([3e38, 3e38], "float32")}),
        ),
        (InputError, "end in", "e.xlsx", "PK"),
    ],
)
def test_edges(files, error, match, name, content):
    files(error, match, (name, content))


def test_the_row_of_a_later_block(files):
    rows = "".join(f"{k},{k + 1}\n" for k in range(3000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fishergraph.scale.ingestion.job.np.clip", lambda value, low, high: 70)
        files(InputError, "missing value in row 3000", ("e.csv", "source,target\n" + rows + ",5\n"))
        table = pa.table({"id": range(3000), "x": [0.5] * 2999 + [None]})
        files(InputError, "missing value in row 2999", ("e.csv", GOOD), ("n.parquet", table))


def test_files_that_do_not_belong_together(tmp_path):
    (tmp_path / "edges").mkdir()
    (tmp_path / "edges" / "a.csv").write_text(GOOD)
    (tmp_path / "edges" / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileFormatError, match="several formats"):
        ingest(tmp_path / "edges", tmp_path / "store")
    (tmp_path / "edges" / "b.parquet").unlink()
    (tmp_path / "edges" / "a.csv").unlink()
    with pytest.raises(FileFormatError, match="no file that ends in"):
        ingest(tmp_path / "edges", tmp_path / "store")
    with pytest.raises(FileNotFoundError, match="pattern"):
        ingest(tmp_path / "edges" / "*.csv", tmp_path / "store")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ingest(tmp_path / "none.csv", tmp_path / "store")
    with pytest.raises(InputTypeError, match="path"):
        ingest(7, tmp_path / "store")
    pytest.importorskip("fsspec")
    with pytest.raises(FileNotFoundError, match="URL"):
        ingest("memory://nowhere/e.csv", tmp_path / "store")
    with pytest.raises(InputError, match="URL"):
        ingest("nonsense://nowhere/e.csv", tmp_path / "store")
    with pytest.raises(InputError, match="this machine"):
        ingest(tmp_path / "edges", "s3://bucket/store")


# --- nodes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "match", "name", "content"),
    [
        (InputError, "at least one row", "n.csv", "id,x\n"),
        (FileFormatError, "Expected 2 columns, got 3", "n.csv", "id,x\n0,1\n1,2,3\n2,3\n"),
        (FileFormatError, "'topic'", "n.csv", "id,topic\n0,a\n1,b\n2,c\n"),
        (FileFormatError, "column names", "n.csv", "5,1\n1,2\n2,3\n"),
        (InputError, "distinct.*again in row 2", "n.csv", "id,x\n0,1\n1,1\n0,1\n2,1\n"),
        (InputError, "distinct.*'b' again in row 2", "n.csv", "id,x\na,1\nb,1\nb,1\n"),
        (InputError, "missing value in row 1", "n.csv", "id,x\n0,1\n1,\n2,3\n"),
        (InputError, "NaN in row 1", "n.parquet", pa.table({"id": [0, 1, 2], "x": [1.0, np.nan, 2.0]})),
        (InputError, "infinity in row 2", "n.csv", "id,x\n0,1\n1,2\n2,inf\n"),
        (InputError, "within", "n.csv", "id,x\n0,1\n1,2\n2,1e300\n"),
        (InputError, "2 numbers a row", "n.parquet", pa.table({"id": [0, 1, 2], "z": [[1.0, 2.0], [1.0], [3.0, 4.0]]})),
        (InputError, "matrix", "n.npy", np.zeros(3)),
        (
            FileFormatError,
            "declares",
            "n.npy",
            b"\x93NUMPY\x01\x00\x76\x00"
            + b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }".ljust(117)
            + b"\n"
            + bytes(8),
        ),
        (UnknownNodeError, "2 of edge 1", "n.npy", np.zeros((2, 3))),
    ],
)
def test_nodes(files, error, match, name, content):
    files(error, match, ("e.csv", GOOD), (name, content))


def test_infinity_of_half_precision(files):
    files(InputError, "infinity in row 1", ("e.csv", GOOD), ("n.csv", "id,x\n0,1\n1,70000\n2,1\n"), dtype="float16")


def test_files_of_nodes_with_other_columns(tmp_path):
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "a.csv").write_text("id,x\n0,1\n")
    (tmp_path / "nodes" / "b.csv").write_text("id,y\n1,1\n")
    (tmp_path / "e.csv").write_text(GOOD)
    with pytest.raises(FileFormatError, match=r"b\.csv.*others than"):
        ingest(tmp_path / "e.csv", tmp_path / "store", tmp_path / "nodes")


def test_lists_of_other_lengths_in_another_file(tmp_path):
    (tmp_path / "nodes").mkdir()
    for k in (0, 1):
        pq.write_table(pa.table({"id": [k], "z": [[0.5] * (k + 2)]}), tmp_path / "nodes" / f"{k}.parquet")
    (tmp_path / "e.csv").write_text("source,target\n0,1\n")
    with pytest.raises(InputError, match="2 numbers in every row, got 3 from row 1 on"):
        ingest(tmp_path / "e.csv", tmp_path / "store", tmp_path / "nodes")


def test_columns_of_nodes_without_nodes(files):
    files(InputError, "nodes", ("e.csv", GOOD), drop=["x"])
    files(InputError, "nodes", ("e.csv", GOOD), id_column="x")
    files(FileFormatError, "no column 'y'", ("e.csv", GOOD), ("n.csv", "id,x\n0,1\n"), drop=["y"])
    files(InputError, "'y' among .* in '.*e.csv'", ("e.csv", GOOD), weight="y")


# --- unknown nodes --------------------------------------------------------------------------------------


def test_unknown_nodes_are_counted_and_compared(tmp_path):
    (tmp_path / "e.csv").write_text(
        "source,target\nann,bob\nanne,bob\nbob,BOB\nzzz,ann\nanne,q1\nq2,q3\nq4,q5\nq6,q7\n"
    )
    (tmp_path / "n.csv").write_text("id,x\nann,1\nbob,2\n")
    with pytest.raises(UnknownNodeError) as caught:
        ingest(tmp_path / "e.csv", tmp_path / "store", tmp_path / "n.csv")
    error, text = caught.value, str(caught.value)
    assert error.value == "anne"
    assert error.count == 7
    assert [edge for edge, _ in error.first] == [1, 2, 3, 4, 5]
    assert "7 edges" in text
    assert "'anne' of edge 1 (near 'ann')" in text
    assert "'BOB' of edge 2 (near 'bob')" in text
    assert "'zzz' of edge 3," in text
    assert "unknown='drop'" in text


@pytest.mark.parametrize("ids", ["0,1\n1,1\n", "5,1\n1,1\n0,1\n"])
def test_one_unknown_number(files, ids):
    files(UnknownNodeError, "2 of edge 1", ("e.csv", GOOD), ("n.csv", "id,x\n" + ids))


def test_ids_whose_hashes_collide(tmp_path):
    """Texts are compared, not their hashes; numbers that differ in their last bit are two nodes."""
    close = [2**62, 2**62 + 1, -(2**62)]
    pq.write_table(pa.table({"source": close, "target": close[1:] + close[:1]}), tmp_path / "e.parquet")
    assert ingest(tmp_path / "e.parquet", tmp_path / "numbers").ids[:].tolist() == sorted(close)
    texts = ["a", "A", "a ", "\u00e1", "a\u0301", "aa"]  # the same letter, composed and not
    pq.write_table(pa.table({"source": texts, "target": texts[1:] + texts[:1]}), tmp_path / "e.parquet")
    assert ingest(tmp_path / "e.parquet", tmp_path / "texts").ids[:].tolist() == sorted(texts)


# --- budgets, options, disks ----------------------------------------------------------------------------


def test_a_budget_that_cannot_work(tmp_path):
    (tmp_path / "e.csv").write_text(GOOD)
    with pytest.raises(NotEnoughMemory, match="set memory") as caught:
        ingest(tmp_path / "e.csv", tmp_path / "store", memory="100M")
    needed = str(caught.value).split("memory='")[1].split("'")[0]
    assert ingest(tmp_path / "e.csv", tmp_path / "store", memory=needed).n_nodes == 3


@pytest.mark.parametrize("memory", ["much", "-4G", 0, True, "0G", [4]])
def test_a_budget_that_is_none(files, memory):
    files(InputError, "memory", ("e.csv", GOOD), memory=memory)


@pytest.mark.parametrize(
    "options",
    [
        {"duplicates": "sum"},
        {"self_loops": "yes"},
        {"unknown": "ignore"},
        {"dtype": "int8"},
        {"undirected": "yes"},
        {"overwrite": 1},
    ],
    ids=str,
)
def test_options_that_do_not_exist(files, options):
    files(InputError, next(iter(options)), ("e.csv", GOOD), **options)


def test_a_store_that_exists_is_kept(tmp_path):
    (tmp_path / "e.csv").write_text(GOOD)
    digest = ingest(tmp_path / "e.csv", tmp_path / "store").digest
    with pytest.raises(InputError, match="overwrite"):
        ingest(tmp_path / "e.csv", tmp_path / "store")
    (tmp_path / "e.csv").write_text("source,target\n0,-1,7\n")
    with pytest.raises(FileFormatError):
        ingest(tmp_path / "e.csv", tmp_path / "store", overwrite=True)
    assert Store(tmp_path / "store").digest == digest


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from fishergraph.scale import ingest
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
try:
    ingest(sys.argv[1], sys.argv[2])
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("limit", [1000, 150_000, 300_000])
def test_a_disk_that_fills(tmp_path, limit):
    """Scratch files, buckets and arrays of the store may be what does not fit."""
    edges = np.random.default_rng(0).integers(20_000, size=(2, 40_000))
    np.save(tmp_path / "e.npy", edges)
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", LIMITED, tmp_path / "e.npy", tmp_path / "out" / "store", str(limit)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert "could not be written" in done.stdout, done.stderr
    assert list((tmp_path / "out").iterdir()) == []


KILLED = """
import sys
from fishergraph.scale import ingest
from fishergraph.scale.ingestion import rows
def wait(*args):
    print("sorting", flush=True)
    import time
    time.sleep(100)
rows.Buckets.rows = wait
ingest(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle(tmp_path, how):
    (tmp_path / "e.csv").write_text(GOOD)
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", KILLED, str(tmp_path / "e.csv"), str(tmp_path / "out" / "store")]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "sorting\n"
    run.send_signal(how)
    run.wait()
    assert not (tmp_path / "out" / "store").exists()
    assert len(os.listdir(tmp_path / "out")) == (how == signal.SIGKILL)
    assert ingest(tmp_path / "e.csv", tmp_path / "out" / "store").n_nodes == 3
    assert os.listdir(tmp_path / "out") == ["store"]
