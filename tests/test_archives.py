"""Bombs: small files that unpack to much or declare much are refused before the memory is taken."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from fishergraph import FisherEmbedding
from fishergraph.datasets import load_graphs, read_graph, read_graph_npz, read_npz, read_tu, write_tables
from fishergraph.datasets.records import GraphData
from fishergraph.datasets.shchur import read_shchur
from fishergraph.io import archives
from fishergraph.io.archives import RATIO_VARIABLE, check_gzip, check_npz, check_zip, unpack_limit
from fishergraph.io.tables import read_edges, read_nodes
from published import example, ogb_files, reddit_files, write_files, zipped

READERS = {"tables": read_nodes, "graph": read_npz, "set": read_graph_npz, "any": read_graph}
GRAPH = {"edge_index": np.array([[0, 1], [1, 2]]), "y": np.array([0, 1, 1])}


@pytest.fixture
def small(monkeypatch):
    """Bounds that small files reach: 100 kB, and ten times the size of the file."""
    monkeypatch.setattr(archives, "UNPACKED_BYTES", 100_000)
    monkeypatch.setattr(archives, "UNPACK_RATIO", 10)


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    """The beginning of an array of this shape, without its numbers."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def npz(path: Path, **members: bytes) -> Path:
    arrays = {f"{key}.npy": npy(array) for key, array in GRAPH.items()}
    files = arrays | {key if "." in key else f"{key}.npy": content for key, content in members.items()}
    path.write_bytes(zipped(files))
    return path


DECLARED = {
    "a wide array": (
        header((3, 10**9)),
        "'x' declares shape",
    ),
    "a long array": (header((10**12, 2)), "'x' declares shape"),
    "more than a machine word": (header((2**40, 2**40)), "'x' declares shape"),
    "an array without rows": (header((0, 10**12)), "without content"),
    "empty texts": (header((10**12,), "<U0"), "without content"),
    "a negative shape": (header((-1, 5)), "'x' declares shape"),
    "too few bytes": (
        npy(np.ones((3, 2), np.float32))[:-4],
        "but has 148",
    ),
    "too many bytes": (npy(np.ones((3, 2), np.float32)) + b"more", "'x' declares shape"),
    "objects": (npy(np.array([None, 1])), "pickled"),
    "no array": (b"some text", "not an array"),
    "a header that is no Python": (header((3, 2)).replace(b"descr", b"d(scr"), "not an array"),
    "a header of brackets": (b"\x93NUMPY\x01\x00\x00\x20" + b"(" * 0x2000, "not an array"),
    "another version": (b"\x93NUMPY\x09\x00" + header((3, 2))[8:], "not an array"),
}


@pytest.mark.parametrize("case", DECLARED)
@pytest.mark.parametrize("reader", READERS)
def test_what_an_npz_declares_is_compared_with_what_is_there(tmp_path, case, reader):
    content, reason = DECLARED[case]
    path = npz(tmp_path / "g.npz", x=content)
    with pytest.raises(ValueError, match=reason) as caught:
        READERS[reader](path)
    assert str(path) in str(caught.value)


def test_a_member_that_is_not_read_may_be_anything(tmp_path):
    path = npz(tmp_path / "g.npz", x=b"some text", **{"notes.txt": b"text"})
    check_npz(path, ["y"])
    with pytest.raises(ValueError, match="not an array"):
        check_npz(path)


def wide(n_columns: int, **changes: np.ndarray) -> dict[str, bytes]:
    """The pieces of a CSR matrix (3, n_columns) with three entries."""
    pieces = {"data": np.ones(3), "indices": np.arange(3), "indptr": np.arange(4), "shape": np.array([3, n_columns])}
    return {f"x_{key}": npy(array) for key, array in {**pieces, **changes}.items()}


@pytest.mark.parametrize("reader", ["tables", "graph"])
def test_a_matrix_that_is_wide_by_declaration_alone(tmp_path, reader):
    path = npz(tmp_path / "g.npz", **wide(10**9))
    assert path.stat().st_size < 3000
    with pytest.raises(ValueError, match="3 entries, got 1,000,000,000"):
        READERS[reader](path)
    assert READERS["graph"](npz(tmp_path / "g.npz", **wide(2**20))).n_features == 2**20  # as HashingVectorizer has


def test_sparse_rows_that_no_memory_holds_are_an_error(tmp_path):
    X = sp.csr_array((np.ones(3, np.float32), np.arange(3), np.arange(4)), shape=(3, 10**13))
    with pytest.raises(MemoryError, match=r"features need .* GB"):
        FisherEmbedding().fit(X, graph=sp.csr_array(np.eye(3)))


def test_a_set_of_more_nodes_than_there_is_data_for(tmp_path):
    np.savez(tmp_path / "s.npz", graph_ptr=[0, 10**12], y=[0], edge_index=np.zeros((2, 0), int))
    with pytest.raises(ValueError, match="1,000,000,000,000"):
        load_graphs(tmp_path / "s.npz")
    np.savez(tmp_path / "s.npz", graph_ptr=[0, 2**33], y=[0], adj_upper_bits=np.zeros(9, np.uint8))
    with pytest.raises(ValueError, match="at most 1,048,576 nodes"):
        load_graphs(tmp_path / "s.npz")


def test_packed_files_within_and_beyond_the_bound(tmp_path, small):
    for name, array, sound in (("zeros", np.zeros((3, 40_000)), False), ("small", np.zeros((3, 1000)), True)):
        np.savez_compressed(tmp_path / f"{name}.npz", x=array, **GRAPH)
        for read in (read_nodes, read_npz):
            if sound:
                read(tmp_path / f"{name}.npz")
            else:
                with pytest.raises(ValueError, match="more than 100,000"):
                    read(tmp_path / f"{name}.npz")
    noise = np.random.default_rng(0).normal(size=(3, 40_000))  # larger than the bound, but hardly packed
    np.savez_compressed(tmp_path / "noise.npz", x=noise, **GRAPH)
    assert read_npz(tmp_path / "noise.npz").n_features == 40_000


def test_the_bound_can_be_raised(tmp_path, small, monkeypatch):
    np.savez_compressed(tmp_path / "g.npz", x=np.zeros((3, 40_000)), **GRAPH)
    monkeypatch.setenv(RATIO_VARIABLE, "2000")
    assert read_npz(tmp_path / "g.npz").n_features == 40_000
    monkeypatch.setenv(RATIO_VARIABLE, "a lot")
    with pytest.raises(ValueError, match="FISHERGRAPH_UNPACK_RATIO"):
        unpack_limit(5)


def test_the_bounds_are_those_of_the_page():
    page = (Path(__file__).parent.parent / "docs" / "security.md").read_text(encoding="utf-8")
    assert unpack_limit(1) == 2**28
    assert unpack_limit(10**9) == 500 * 10**9
    for words in ("256 MiB", "500 times", RATIO_VARIABLE, f"{archives.TABLE_COLUMNS:,}", f"{archives.FREE_COUNT:,}"):
        assert words in page


@pytest.mark.parametrize("content", [b"source,target\n" + b"0,1\n" * 100_000, b"\0" * 500_000], ids=["rows", "zeros"])
@pytest.mark.parametrize("suffix", [".csv.gz", ".tsv.gz"])
def test_a_gzip_bomb(tmp_path, small, content, suffix):
    path = tmp_path / f"e{suffix}"
    path.write_bytes(gzip.compress(content))
    for read in (read_edges, read_nodes):
        with pytest.raises(ValueError, match="100,000") as caught:
            read(path)
        assert RATIO_VARIABLE in str(caught.value)


def test_a_gzip_bomb_in_several_pieces(tmp_path, small):
    (tmp_path / "e.csv.gz").write_bytes(gzip.compress(b"source,target\n") + gzip.compress(b"0,1\n" * 10_000) * 10)
    with pytest.raises(ValueError, match="more than 100,000"):
        check_gzip(tmp_path / "e.csv.gz")


def test_sound_gzip_files_are_hardly_unpacked_for_the_check(tmp_path, small, monkeypatch):
    lines = "".join(f"{a},{b}\n" for a, b in np.random.default_rng(0).integers(0, 10**9, (40_000, 2)))
    path = tmp_path / "e.csv.gz"
    path.write_bytes(gzip.compress(b"source,target\n" + lines.encode()))
    check_gzip(path)
    assert read_edges(path).num_rows == 40_000
    monkeypatch.setattr(archives, "UNPACKED_BYTES", 1 << 28)
    monkeypatch.setattr(gzip.GzipFile, "read", None)  # a file this small cannot unpack to as much
    path.write_bytes(path.read_bytes()[:100])
    check_gzip(path)


@pytest.mark.parametrize("damage", [slice(0, -9), slice(0, 40)])
def test_a_damaged_gzip_file_is_named(tmp_path, small, damage):
    path = tmp_path / "e.csv.gz"
    content = gzip.compress(np.random.default_rng(0).bytes(200_000))
    path.write_bytes(content[damage] if damage.stop == -9 else content[damage] + b"\xff" * 2000)
    with pytest.raises(ValueError, match=rf"'{path}'"):
        read_edges(path)


def test_a_parquet_bomb(tmp_path, small):
    table = pa.table({"source": np.zeros(100_000, int), "target": np.zeros(100_000, int)})
    pq.write_table(table, tmp_path / "e.parquet")
    assert (tmp_path / "e.parquet").stat().st_size < 10_000
    with pytest.raises(ValueError, match="more than 100,000"):
        read_edges(tmp_path / "e.parquet")


def test_zip_files_of_published_layouts(tmp_path, small):
    big = {"filler.txt": b"0" * 200_000}
    (tmp_path / "arxiv.zip").write_bytes(zipped({**ogb_files(example()), **big}))
    (tmp_path / "reddit.zip").write_bytes(zipped({**reddit_files(example()), **big}))
    (tmp_path / "TINY.zip").write_bytes(zipped({"TINY_A.txt": b"1,1\n" * 50_000}))
    for name in ("arxiv", "reddit"):
        with pytest.raises(ValueError, match=rf"{name}\.zip"):
            read_graph(tmp_path / f"{name}.zip")
    with pytest.raises(ValueError, match=r"TINY\.zip"):
        read_tu(tmp_path / "TINY.zip")


def test_an_encrypted_zip_file(tmp_path):
    content = bytearray(zipped({"TINY_A.txt": b"1,1\n"}))
    content[6] |= 1
    at = content.index(b"PK\x01\x02")
    content[at + 8] |= 1
    (tmp_path / "TINY.zip").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "TINY.zip") as archive, pytest.raises(ValueError, match="encrypted"):
        check_zip(archive)
    with pytest.raises(ValueError, match="encrypted"):
        read_tu(tmp_path / "TINY.zip")


def test_ogb_files_that_declare_more_rows_than_they_have_bytes(tmp_path):
    for kind in ("node", "edge"):
        files = ogb_files(example()) | {f"raw/num-{kind}-list.csv.gz": gzip.compress(b"1000000000000\n")}
        with pytest.raises(ValueError, match="too small"):
            read_graph(write_files(tmp_path / kind, files))


def test_class_names_that_unpack_to_much(tmp_path):
    files = ogb_files(example()) | {"mapping/labelidx2arxivcategeory.csv.gz": gzip.compress(b"0" * (1 << 25))}
    with pytest.raises(ValueError, match="more than 16,777,216 bytes"):
        read_graph(write_files(tmp_path / "arxiv", files))


def test_tables_of_too_many_columns(tmp_path):
    (tmp_path / "n.csv").write_text("," * 200_000 + "\n")
    with pytest.raises(ValueError, match="131,072"):
        read_nodes(tmp_path / "n.csv")
    X = sp.csr_array((2, 200_000), dtype=np.float32)
    data = GraphData("g", X, sp.csr_array(np.eye(2)), np.zeros(2, np.int64), None, None, None)
    with pytest.raises(ValueError, match="131,072"):
        write_tables(data, tmp_path / "g.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["n.csv"]


def test_reddit_and_shchur_compare_what_they_declare(tmp_path):
    files = reddit_files(example())
    with zipfile.ZipFile(io.BytesIO(files["reddit_graph.npz"])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    files["reddit_graph.npz"] = zipped(members | {"data.npy": header((10**12,))})
    with pytest.raises(ValueError, match="'data' declares shape"):
        read_graph(write_files(tmp_path / "reddit", files))
    path = tmp_path / "s.npz"
    path.write_bytes(zipped({"labels.npy": header((10**12,)), "adj_indptr.npy": npy(np.zeros(2))}))
    with pytest.raises(ValueError, match="'labels' declares shape"):
        read_shchur(path)


MEMORY = """
import resource, sys
from pathlib import Path
from fishergraph.datasets import read_graph
from fishergraph.io.tables import read_edges, read_nodes
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for read, path in ((read_nodes, "wide.npz"), (read_nodes, "header.npz"), (read_edges, "bomb.csv.gz")):
    try:
        read(Path(sys.argv[1]) / path)
    except ValueError:
        pass
    else:
        sys.exit(path)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1024)
"""


def test_refusing_takes_little_memory(tmp_path):
    """The real bounds, in a process of its own: a matrix of 10⁹ columns, an array of 10⁹ columns, 300 MB of zeros."""
    npz(tmp_path / "wide.npz", **wide(10**9))
    npz(tmp_path / "header.npz", x=header((3, 10**9)))
    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=1) as stream:
        stream.write(b"source,target\n")
    piece = gzip.compress(b"0,1\n" * (1 << 22))  # 16 MiB each
    with (tmp_path / "bomb.csv.gz").open("ab") as file:
        for _ in range(20):
            file.write(piece)
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100
