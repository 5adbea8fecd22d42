"""`fishergraph data list | info | fetch | convert`: what they show, write and refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import pickles
from commands import call, fails, ok, wrong
from fishergraph.datasets import load_graph, load_graphs, prepare, read_npz
from fishergraph.datasets.planetoid import PARTS
from fishergraph.datasets.sources import SOURCES, TU_FILES
from published import Web, example, ogb_files, reddit_files, shchur_file, write_files, zipped


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder with an npz, Reddit and a set of graphs; nothing else is known, and there is no network."""
    folder = tmp_path / "data"
    write_files(folder / "reddit", reddit_files(example()))
    np.savez(folder / "mine.npz", edge_index=np.array([[0, 1], [1, 2]]), y=np.array([0, 1, 1]), x=np.eye(3))
    (folder / "broken.npz").write_bytes(b"PK\x03\x04")
    write_set(folder / "tu" / "TINY")
    monkeypatch.setenv("FISHERGRAPH_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def write_set(folder):
    """Two graphs, a path of three nodes and an edge, in the text format of the TU collection."""
    texts = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
        "graph_indicator": "1\n1\n1\n2\n2\n",
        "graph_labels": "-1\n1\n",
        "node_labels": "0\n1\n0\n0\n0\n",
        "edge_labels": "7\n7\n8\n8\n7\n7\n",
        "edge_attributes": "0.5\n0.5\n2\n2\n1\n1\n",
    }
    return write_files(folder, {f"TINY_{name}.txt": text.encode() for name, text in texts.items()})


@pytest.fixture
def web(monkeypatch):
    """A server that has ogbn-arxiv, small, and MUTAG."""
    web = Web()
    web.files = {"arxiv.zip": zipped(ogb_files(example()), "arxiv/"), "MUTAG.zip": zipped({"MUTAG_A.txt": b""})}
    source = SOURCES["ogbn-arxiv"]
    file = replace(source.files[0], url=web.url + "arxiv.zip", sha256=None)
    monkeypatch.setitem(SOURCES, "ogbn-arxiv", replace(source, files=(file,)))
    monkeypatch.setitem(TU_FILES, "MUTAG", replace(TU_FILES["MUTAG"], url=web.url + "MUTAG.zip"))
    yield web
    web.close()


@pytest.mark.parametrize("name", ["g.zip", "g.npz", "g.pt"])
def test_a_damaged_archive_is_one_sentence(tmp_path, name):
    content = zipped({"TINY/TINY_graph_indicator.txt": b"1\n"})
    at = content.index(b"PK\x01\x02")
    (tmp_path / name).write_bytes(content[:at] + b"?" + content[at + 1 :])  # in the list of members
    fails(tmp_path, name, "data", "info", tmp_path / name)


# --- list -----------------------------------------------------------------------------------------------


def rows_of(text):
    return {line.split()[0]: line for line in text.splitlines() if line.strip()}


def test_list(home):
    rows = rows_of(ok("data", "list").stdout)
    assert rows["cora"].split()[1:5] == ["2,708", "5,278", "1,433", "7"]
    assert "Apache-2.0" in rows["cora"]
    assert "yes, in the package" in rows["cora"]
    assert f"yes, {home}/reddit" in rows["reddit"]
    assert "no, data fetch downloads it (83.1 MB)" in rows["ogbn-arxiv"]
    assert "Amazon licence" in rows["ogbn-products"]
    assert rows["mine"].split()[1:5] == ["3", "2", "3", "2"]
    assert "broken" not in rows
    assert f"yes, {home}/tu/TINY" in rows["TINY"]
    assert "no, data fetch" in rows["MUTAG"]
    assert set(SOURCES) <= set(rows)


def test_list_of_another_folder(home, tmp_path):
    rows = rows_of(ok("data", "list", "--data", tmp_path / "empty").stdout)
    assert "mine" not in rows
    assert "no, data fetch downloads it (1.4 GB)" in rows["reddit"]


def test_list_of_a_closed_folder(home, tmp_path):
    (tmp_path / "file").write_text("no folder")
    fails(tmp_path, "not a readable folder", "data", "list", "--data", tmp_path / "file")


# --- info -----------------------------------------------------------------------------------------------


def test_info_of_a_published_graph(home):
    text = ok("data", "info", "ogbn_products").stdout
    assert "2,449,029" in text
    assert "by sales rank" in text
    assert "https://snap.stanford.edu/ogb/data/nodeproppred/products.zip" in text
    assert "5ea0a112edaec2141c0a2a612dd4aed58df97ff3e1ab1a0ca8238f43cbbb50a8" in text
    assert "not computed by us" in text
    assert "rows of length one" in text
    assert "SHA-256 none known: stored at the first download" in ok("data", "info", "coauthor-cs").stdout
    assert "words present, not counted" in ok("data", "info", "coauthor-cs").stdout


@pytest.mark.parametrize("by_path", [False, True])
def test_info_of_a_local_graph(home, by_path):
    text = ok("data", "info", home / "mine.npz" if by_path else "mine").stdout
    assert "3, 0 of them without edges" in text
    assert "2, each counted once, 0 of them self-loops" in text
    assert "2: 0 (1), 1 (2)" in text
    assert rows_of(text)["split"].split() == ["split", "none"]


def test_info_of_a_path_with_a_split(home):
    text = ok("data", "info", home / "reddit").stdout
    assert "18 train, 5 validation, 7 test" in text
    assert "1 of them self-loops" in text


def test_info_of_sets(home):
    text = ok("data", "info", "TINY").stdout
    assert "2 to 3" in text
    assert "2: -1 (1), 1 (1)" in text
    assert "graphkerneldatasets/MUTAG.zip" in ok("data", "info", "MUTAG").stdout


def test_info_of_an_unknown_name(home):
    fails(home, r"name must be one of 'cora', .*'reddit', .*'mine', got 'arxiv'", "data", "info", "arxiv")


# --- fetch ----------------------------------------------------------------------------------------------


def test_fetch(home, web, tmp_path):
    result = ok("data", "fetch", "ogbn-arxiv", "cora", "MUTAG", "--data", tmp_path / "there")
    there = tmp_path / "there"
    assert result.stdout.splitlines() == [
        str(there / "ogbn-arxiv" / "arxiv.zip"),
        "cora comes with the package",
        str(there / "tu" / "MUTAG.zip"),
    ]
    assert load_graph("ogbn-arxiv", data_home=there).n_nodes == 30
    assert ok("data", "fetch", "ogbn-arxiv", "--data", there, "-q").stdout == ""
    assert len(web.requests) == 2


def test_fetch_of_an_unknown_name_fetches_nothing(home, web):
    wrong(r"name must be one of .*'ogbn-arxiv'.*got 'arxiv'", "data", "fetch", "ogbn-arxiv", "arxiv")
    assert web.requests == []


def test_fetch_that_breaks_off_goes_on(home, web, tmp_path):
    web.break_after = 300
    result = call("data", "fetch", "ogbn-arxiv", "--data", tmp_path)
    assert result.exit_code == 1
    assert "1,500 bytes are kept" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    web.break_after = None
    ok("data", "fetch", "ogbn-arxiv", "--data", tmp_path)
    assert web.requests[-1] == ("arxiv.zip", "bytes=1500-")
    assert load_graph("ogbn-arxiv", data_home=tmp_path).n_nodes == 30


def test_fetch_finds_a_tampered_file(home, web, tmp_path):
    ok("data", "fetch", "ogbn-arxiv", "--data", tmp_path)
    path = tmp_path / "ogbn-arxiv" / "arxiv.zip"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    result = call("data", "fetch", "ogbn-arxiv", "--data", tmp_path)
    assert result.exit_code == 1
    assert f"renamed to '{path}.old'" in result.stderr
    assert not path.exists()
    ok("data", "fetch", "ogbn-arxiv", "--data", tmp_path)
    assert path.exists()


def test_fetch_into_a_file(home, web, tmp_path):
    (tmp_path / "file").write_text("no folder")
    fails(tmp_path, "data folder", "data", "fetch", "MUTAG", "--data", tmp_path / "file")


# --- convert --------------------------------------------------------------------------------------------


def test_convert_to_npz(home, tmp_path):
    result = ok("data", "convert", "reddit", tmp_path / "out.npz")
    assert "30 nodes" in result.stdout
    ours, data = read_npz(tmp_path / "out.npz"), load_graph("reddit")
    assert (ours.graph != data.graph).nnz == 0
    np.testing.assert_array_equal(ours.X, data.X)
    np.testing.assert_array_equal(ours.test, data.test)
    assert (ours.licence, ours.source) == ("not stated", "https://snap.stanford.edu/graphsage/")


@pytest.mark.parametrize("layout", ["ogb", "shchur", "npz"])
def test_convert_from_paths(home, tmp_path, layout):
    path = {"ogb": tmp_path / "arxiv.zip", "shchur": tmp_path / "amazon.npz", "npz": home / "mine.npz"}[layout]
    if layout != "npz":
        path.write_bytes(zipped(ogb_files(example()), "arxiv/") if layout == "ogb" else shchur_file(example()))
    ok("data", "convert", path, tmp_path / "out.npz", "-q")
    assert (read_npz(tmp_path / "out.npz").graph != load_graph(path).graph).nnz == 0


def test_convert_prepared(home, tmp_path):
    ok("data", "convert", "cora", tmp_path / "out.npz", "--prepared")
    expected, got = prepare(load_graph("cora")), read_npz(tmp_path / "out.npz")
    np.testing.assert_array_equal(got.X.data, expected.X.data)
    np.testing.assert_array_equal(got.graph.indices, expected.graph.indices)


def test_convert_to_tables_which_other_commands_take(home, tmp_path):
    result = ok("data", "convert", "reddit", tmp_path / "r.csv")
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == [
        str(tmp_path / "r.edges.csv"),
        str(tmp_path / "r.nodes.csv"),
    ]
    options = ("--n-layers", "1", "--dim", "8", "--n-anchors", "2", "--seed", "0", "-q")
    drop = ("--drop", "label", "--drop", "split")
    from_tables, from_npz = tmp_path / "a.csv", tmp_path / "b.csv"
    ok("embed", tmp_path / "r.edges.csv", "--nodes", tmp_path / "r.nodes.csv", "-o", from_tables, *drop, *options)
    ok("data", "convert", "reddit", tmp_path / "r.npz")
    for undirected in ([], ["--undirected"]):
        ok("embed", tmp_path / "r.npz", *undirected, "-o", from_npz, *options)
        pd.testing.assert_frame_equal(pd.read_csv(from_tables), pd.read_csv(from_npz))


def test_convert_a_set_of_graphs(home, tmp_path):
    ok("data", "convert", "TINY", tmp_path / "tiny.npz")
    text, packed = load_graphs("TINY"), load_graphs(tmp_path / "tiny.npz")
    assert packed.classes == text.classes == ("-1", "1")
    for array in ("indptr", "indices", "weights"):
        np.testing.assert_array_equal(getattr(packed.graphs.graph, array), getattr(text.graphs.graph, array))
    np.testing.assert_array_equal(packed.graphs.tags, text.graphs.tags)
    for mine, other in zip(packed.graphs.edge_tags, text.graphs.edge_tags, strict=True):
        np.testing.assert_array_equal(mine, other)
    pattern = r"a set of graphs must go into an \.npz file as it is, got"
    fails(tmp_path, pattern, "data", "convert", "TINY", tmp_path / "tiny.csv")
    fails(tmp_path, pattern, "data", "convert", "TINY", tmp_path / "again.npz", "--prepared")


@pytest.mark.parametrize(
    ("source", "target", "pattern"),
    [
        ("reddit", "out.xlsx", r"must end in \.npz, \.csv"),
        ("reddit", "absent/out.npz", "does not exist"),
        ("reddit", "data", "must end in"),
        ("arxiv", "out.npz", "name must be one of .*got 'arxiv'"),
        ("data/mine.npz", "data/mine.npz", "another file than the source"),
        ("data/broken.npz", "out.npz", "none of the layouts"),
        ("data", "out.npz", r"it is a folder with broken\.npz, mine\.npz, reddit, tu.* none of the layouts"),
    ],
)
def test_convert_refuses(home, tmp_path, monkeypatch, source, target, pattern):
    monkeypatch.chdir(tmp_path)
    fails(tmp_path, pattern, "data", "convert", source, tmp_path / target)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes in the file system")
def test_pipes_and_links_in_a_circle(home, tmp_path):
    for suffix in ("npz", "zip", "pt", "parquet"):
        os.mkfifo(tmp_path / f"pipe.{suffix}")
        (tmp_path / f"loop.{suffix}").symlink_to(f"loop.{suffix}")
        fails(home, "is a pipe; copy its content to a file", "data", "info", tmp_path / f"pipe.{suffix}")
        fails(home, "is a pipe", "data", "convert", tmp_path / f"pipe.{suffix}", tmp_path / "out.npz")
        fails(home, "name must be one of", "data", "convert", tmp_path / f"loop.{suffix}", tmp_path / "out.npz")
    fails(home, "the output .* is a pipe", "data", "convert", "mine", tmp_path / "pipe.npz")
    os.mkfifo(home / "waits.npz")
    assert "waits" not in rows_of(ok("data", "list").stdout)


def test_a_pickle_of_pointers(home, tmp_path):
    """In a process of its own, which an unpickler would end with a segmentation fault."""
    pointers = pickles.array(b"A" * 48, b"K\x03K\x02\x86", pickles.dtype(b"O8", b"|"))
    content = pickles.file_of(pointers)
    for part in PARTS:
        (tmp_path / f"ind.small.{part}").write_bytes(content)
    command = [sys.executable, "-m", "fishergraph", "data", "info", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ind.small.x' cannot be read" in done.stderr


def test_wrong_calls(home):
    wrong("Missing argument", "data", "convert", "cora")
    wrong("Missing argument", "data", "fetch")
    wrong("No such command 'remove'", "data", "remove")
    assert "convert" in call("data").output
