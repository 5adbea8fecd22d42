"""Paths that are no files, and writing: whole files, both or neither, and nothing that a killed run leaves for ever."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from fishergraph.io import files
from fishergraph.io.files import check_folder, check_readable, check_regular, replacing, replacing_all

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes in the file system")


def make(kind: str, folder: Path) -> Path:
    """A path that leads to something of this kind."""
    path = folder / "input"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            os.chdir(folder)  # the path of a socket is short
            server.bind("input")
            os.chdir(here)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(folder / "other")
        (folder / "other").symlink_to(path)
    elif kind == "link to a pipe":
        os.mkfifo(folder / "pipe")
        path.symlink_to(folder / "pipe")
    elif kind == "file as folder":
        (folder / "file").write_text("a")
        path = folder / "file" / "input"
    elif kind == "long name":
        path = folder / ("a" * 300)
    elif kind == "null":
        path = folder / "a\0b"
    return path


KINDS = {
    "pipe": (OSError, "pipe"),
    "link to a pipe": (OSError, "pipe"),
    "socket": (OSError, "socket"),
    "device": (OSError, "device"),
    "folder": (IsADirectoryError, "folder"),
    "loop": (OSError, "symbolic links"),
    "nothing": (FileNotFoundError, "does not exist"),
    "file as folder": (FileNotFoundError, "does not exist"),
    "long name": (OSError, "too long"),
    "null": (ValueError, "null character"),
}


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", [check_regular, check_readable])
def test_pipes_and_the_like_are_refused_without_being_opened(tmp_path, kind, check):
    error, pattern = KINDS[kind]
    path = make(kind, tmp_path)
    with pytest.raises(error, match=pattern) as caught:
        check(path)
    assert str(path) in str(caught.value) or kind == "null"


def test_a_file_without_rights(tmp_path, monkeypatch):
    (tmp_path / "input").write_text("a")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read everything
    with pytest.raises(PermissionError, match="not readable"):
        check_readable(tmp_path / "input")


def test_a_sound_file_and_an_empty_one(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"a" * 5000)
    assert check_readable(path) == b"a" * 4096
    (tmp_path / "link").symlink_to(path)
    assert check_readable(tmp_path / "link") == b"a" * 4096
    path.write_bytes(b"")
    check_regular(path)
    with pytest.raises(ValueError, match="empty"):
        check_readable(path)


@posix
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
def test_an_output_never_replaces_a_pipe_or_the_like(tmp_path, kind):
    path = make(kind, tmp_path)
    with pytest.raises(OSError, match="the output"):
        check_folder(path)


# Everything that is read from a path, and what it is called there.
READERS = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
from fishergraph import FisherEmbedding, datasets
from fishergraph.io import tables
from fishergraph.cli.data_pages import show_list
from fishergraph.datasets import formats, npz, planetoid, reddit, shchur, table_pair, tu
from fishergraph.io.archives import Members
from fishergraph.lab.rows import append_rows, read_rows, run_cells
from fishergraph import plots

def attempt(name, read, file, pattern="a pipe"):
    path = folder / file
    try:
        read(path)
    except (OSError, ValueError) as error:
        print("ok" if pattern in str(error) else "other", name, error)
    else:
        print("read", name)

for suffix in (".csv", ".tsv", ".csv.gz", ".parquet", ".npz"):
    attempt("edges" + suffix, tables.read_edges, "pipe" + suffix)
    attempt("nodes" + suffix, tables.read_nodes, "pipe" + suffix)
    attempt("columns" + suffix, lambda path: tables.read_columns(path, ["a"]), "pipe" + suffix)
attempt("model", FisherEmbedding.load, "pipe.safetensors")
attempt("log", plots.training, "pipe.csv")
attempt("rows", read_rows, "pipe.csv")
attempt("run_cells", lambda path: run_cells(path, [], print), "pipe.csv")
for name, read in (("npz", npz.read_npz), ("shchur", shchur.read_shchur), ("set", datasets.read_graph_npz),
                   ("load", datasets.load_graph), ("load_graphs", datasets.load_graphs), ("any", datasets.read_graph)):
    attempt(name, read, "pipe.npz")
attempt("zip", Members, "pipe.zip")
attempt("tu zip", tu.read_tu, "pipe.zip")
attempt("ogb", datasets.read_graph, "pipe.zip")
attempt("pt", datasets.read_graph, "pipe.pt")
attempt("pickle", planetoid.load_pickle, "ind.pipe.x")
attempt("tu text", tu.read_tu, "PIPES")
attempt("is_graph_set", lambda path: print(datasets.is_graph_set(path), "is_graph_set"), "pipe.npz", "")
show_list(folder)
"""


@posix
def test_no_reader_waits_for_a_pipe(tmp_path):
    for suffix in (".csv", ".tsv", ".csv.gz", ".parquet", ".npz", ".safetensors", ".zip", ".pt"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
    os.mkfifo(tmp_path / "ind.pipe.x")
    (tmp_path / "PIPES").mkdir()
    (tmp_path / "PIPES" / "PIPES_A.txt").write_text("1,1\n")
    os.mkfifo(tmp_path / "PIPES" / "PIPES_graph_indicator.txt")
    done = subprocess.run(
        [sys.executable, "-c", READERS, str(tmp_path)], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if re.match("ok|other|read|False", line)]
    assert [line for line in lines if not line.startswith("ok")] == ["False is_graph_set", "read is_graph_set"]
    assert len(lines) == 33


# --- writing --------------------------------------------------------------------------------------------


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out"
    with replacing(path) as part:
        part.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    with pytest.raises(TypeError), replacing(path) as part:
        part.write_text(len("half"))  # type: ignore[arg-type]
    assert path.read_text() == "new"
    assert names(tmp_path) == ["out"]


def test_files_have_the_rights_that_others_have(tmp_path):
    old = os.umask(0o022)
    try:
        with replacing(tmp_path / "out") as part:
            part.write_text("new")
    finally:
        os.umask(old)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127])
def test_the_longest_names_can_be_written(tmp_path, name):
    with replacing(tmp_path / name) as part:
        part.write_text("new")
    with replacing_all(tmp_path / name, tmp_path / "b") as (one, two):
        one.write_text("newer")
        two.write_text("b")
    assert (tmp_path / name).read_text() == "newer"


KILLED = """
import os, signal, sys
from pathlib import Path
from fishergraph.io.files import replacing, replacing_all
with replacing_all(*map(Path, sys.argv[1:])) as parts:
    for part in parts:
        part.write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def writer(*paths: Path) -> subprocess.Popen:
    """A process that is in the middle of writing these files."""
    command = [sys.executable, "-c", KILLED, *map(str, paths)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def end(process: subprocess.Popen) -> None:
    process.communicate()
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
def test_what_a_killed_run_leaves_is_removed_by_the_next_and_what_is_being_written_is_not(tmp_path):
    path = tmp_path / "out"
    live, dead = writer(path), writer(path)
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    assert len(names(tmp_path)) == 2
    with replacing(path) as part:
        part.write_text("mine")
        assert len(names(tmp_path)) == 2  # the live one's and this one
    assert path.read_text() == "mine"
    assert len(names(tmp_path)) == 2
    end(live)
    assert path.read_text() == "half"
    assert names(tmp_path) == ["out"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
def test_several_parts_of_a_killed_run_are_removed(tmp_path):
    dead = writer(tmp_path / "a", tmp_path / "b")
    dead.kill()
    dead.communicate()
    assert len(names(tmp_path)) == 2
    for name in ("a", "b"):
        with replacing(tmp_path / name) as part:
            part.write_text("new")
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
def test_many_writers_at_once(tmp_path):
    """More than there are names of parts: each writes a file of its own, the last one stays."""
    path, start = tmp_path / "out", threading.Barrier(2 * files.SLOTS)
    failures = []

    def write(number: int) -> None:
        try:
            with replacing(path) as part:
                part.write_text(str(number) * 1000)
                start.wait(30)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(2 * files.SLOTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert path.read_text() in {str(k) * 1000 for k in range(2 * files.SLOTS)}
    assert names(tmp_path) == ["out"]


def test_without_locks_files_are_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_lock", lambda handle: files._NO_LOCKS)
    for number in range(3):
        with replacing(tmp_path / "out") as part:
            part.write_text(str(number))
    assert (tmp_path / "out").read_text() == "2"
    assert names(tmp_path) == ["out"]


@posix
def test_a_planted_link_is_not_followed(tmp_path):
    """A link in place of a part must not lead the writer to another file."""
    (tmp_path / "victim").write_text("precious")
    with replacing(tmp_path / "out") as part:
        part.write_text("new")
    part.symlink_to(tmp_path / "victim")
    with replacing(tmp_path / "out") as other:
        other.write_text("newer")
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "out").read_text() == "newer"


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def write_both(a: Path, b: Path) -> None:
    with replacing_all(a, b) as (one, two):
        one.write_text("new a")
        two.write_text("new b")


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
@pytest.mark.parametrize("before", [{"a": "old a", "b": "old b"}, {"b": "old b"}, {}], ids=["both", "one", "none"])
def test_both_files_or_neither(tmp_path, monkeypatch, before, links):
    a, b = tmp_path / "a", tmp_path / "b"
    for name, text in before.items():
        (tmp_path / name).write_text(text)
    move, link = os.replace, os.link

    def refuse_b(source, target):
        if Path(target) == b:
            raise PermissionError(1, "Operation not permitted", str(source))
        move(source, target)

    def link_if_there(source, target, **options):
        link(source, target, **options)
        if not links:
            os.unlink(target)
            raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", link_if_there)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse_b)
        with pytest.raises(PermissionError, match=f"'{b}' could not be written"):
            write_both(a, b)
    assert contents(tmp_path) == before
    write_both(a, b)
    assert contents(tmp_path) == {"a": "new a", "b": "new b"}


def test_errors_of_the_system_name_the_file(tmp_path):
    path = tmp_path / "out.npz"
    full = OSError(28, "No space left on device")
    with pytest.raises(OSError, match=rf"'{path}'.*No space"), replacing(path):
        raise full
    own = OSError("a sentence of our own")
    with pytest.raises(OSError, match=r"^a sentence of our own$"), replacing(path):
        raise own
    elsewhere = FileNotFoundError(2, "No such file", "elsewhere")
    with pytest.raises(FileNotFoundError, match="elsewhere"), replacing(path):
        raise elsewhere
    with pytest.raises(OSError, match="absent/out"), replacing(tmp_path / "absent" / "out"):
        pass
    assert names(tmp_path) == []


def _with_little_space(folder: Path, write, answers) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        write(folder)
    except OSError as error:
        answers.put((str(error), names(folder)))
    else:
        answers.put(("written", names(folder)))


def write_npz(folder: Path) -> None:
    from fishergraph.datasets import load_graph
    from fishergraph.datasets import write_npz as write

    write(load_graph("cora"), folder / "out.npz")


def write_tables(folder: Path, suffix: str = ".csv") -> None:
    import scipy.sparse as sp

    from fishergraph.datasets import GraphData
    from fishergraph.datasets import write_tables as write

    X = np.random.default_rng(0).normal(size=(50, 100)).astype(np.float32)  # the nodes take more than the edges
    data = GraphData("g", X, sp.csr_array(np.eye(50, k=1) + np.eye(50, k=-1)), np.zeros(50, np.int64), None, None, None)
    write(data, folder / f"out{suffix}")


def write_packed_tables(folder: Path) -> None:
    write_tables(folder, ".csv.gz")


def write_parquet_tables(folder: Path) -> None:
    write_tables(folder, ".parquet")


def write_embedding(folder: Path) -> None:
    from fishergraph.io.embedding_file import write_embedding as write

    write(folder / "out.csv", None, np.ones((1000, 64)))


def write_vectors(folder: Path) -> None:
    from fishergraph.io.embedding_file import write_embedding as write

    write(folder / "out.parquet", None, np.ones((1000, 64), np.float32))


def write_matrix(folder: Path) -> None:
    from fishergraph.io.embedding_file import write_embedding as write

    write(folder / "out.npy", None, np.ones((1000, 64), np.float32))


def write_arrays(folder: Path) -> None:
    from fishergraph.io.embedding_file import write_embedding as write

    write(folder / "out.npz", None, np.ones((1000, 64), np.float32))


def write_model(folder: Path) -> None:
    from fishergraph.io.array_file import write_file

    write_file(folder / "out.safetensors", {}, {"a": np.ones(100_000)})


def write_figure(folder: Path) -> None:
    from fishergraph.plots.figures import new_figure, save

    figure = new_figure((4, 3))
    figure.add_subplot().imshow(np.random.default_rng(0).normal(size=(100, 100)))
    save(figure, folder / "out.png")


WRITERS = [
    write_npz,
    write_tables,
    write_packed_tables,
    write_parquet_tables,
    write_embedding,
    write_vectors,
    write_matrix,
    write_arrays,
    write_model,
    write_figure,
]


@posix
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path, write):
    """Files may have 20,000 bytes, in a process of its own, which is how a full disk looks to a writer."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=_with_little_space, args=(tmp_path, write, answers))
    process.start()
    message, left = answers.get(timeout=60)
    process.join()
    assert re.search(rf"'{tmp_path}/out\S*' could not be written \(File too large\)", message), message
    assert left == []
    if "tables" in write.__name__:
        assert "out.nodes" in message


def test_arrays_are_read_by_other_readers_of_their_format(tmp_path):
    from safetensors.numpy import load_file

    from fishergraph.io.array_file import read_file, write_file

    kinds = ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8")
    arrays = {f"{kind} α": np.arange(7 * 3).reshape(7, 3).astype(kind) for kind in kinds}
    arrays |= {"empty": np.zeros((0, 4), np.float32), "one": np.array(2.5), "turned": np.ones((3, 2)).T * [1, 2, 3]}
    write_file(tmp_path / "a", {"text": "ψ"}, arrays)
    header, found = read_file(tmp_path / "a")
    others = load_file(tmp_path / "a")
    assert header == {"text": "ψ"}
    assert arrays.keys() == found.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(others[name], array)
