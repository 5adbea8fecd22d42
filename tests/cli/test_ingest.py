"""`fishergraph ingest`: files of any size in, a store out."""

from __future__ import annotations

import numpy as np
import pytest

from commands import fails, ok, wrong
from fishergraph import as_graph
from fishergraph.cli.ingest import summary
from fishergraph.io.tables import read_edges, read_nodes
from fishergraph.scale import Store, write_store


@pytest.fixture
def files(tmp_path):
    """Two small tables."""
    (tmp_path / "edges.csv").write_text("source,target,weight\nann,bob,2\nbob,eve,1\neve,eve,3\nbob,eve,1\nann,eve,0\n")
    (tmp_path / "nodes.csv").write_text("id,age,topic\neve,1,x\nann,2,y\nbob,3,x\n")
    return tmp_path / "edges.csv", tmp_path / "nodes.csv"


def test_a_store_is_made_and_described(files, tmp_path):
    out = tmp_path / "store"
    result = ok("ingest", *files, "--drop", "topic", "--undirected", "-o", out, "--memory", "16G")
    ids, X, names = read_nodes(files[1], drop=["topic"])
    graph = as_graph(read_edges(files[0]), node_ids=ids, undirected=True)
    assert Store(out).digest == write_store(tmp_path / "memory", graph, X, feature_names=names).digest
    lines = result.stdout.splitlines()
    assert lines[0] == f"{out}: 3 nodes, 5 edges, 1 feature"
    assert "1 parallel edge was joined" in lines
    assert "1 edge was dropped, of weight 0" in lines
    assert lines[-1].startswith("5 edges read in ")
    assert "GB" in lines[-1]
    assert result.stderr == ""


def test_quiet_says_nothing(files, tmp_path):
    assert ok("ingest", files[0], "-o", tmp_path / "store", "-q").output == ""


def test_the_options_reach_the_store(files, tmp_path):
    options = ["--self-loops", "drop", "--duplicates", "once", "--weight", "weight", "--dtype", "float16"]
    result = ok("ingest", *files, "--drop", "topic", "-o", tmp_path / "store", *options)
    store = Store(tmp_path / "store")
    assert store.features.dtype == np.float16
    assert store.weights[:].tolist() == [1, 2]
    assert "1 self-loop was dropped" in result.stdout
    (tmp_path / "few.csv").write_text("id,age\nann,1\nbob,2\n")
    arguments = ["ingest", files[0], tmp_path / "few.csv", "-o", tmp_path / "store", "--overwrite"]
    assert "edges were dropped" not in ok(*arguments, "--unknown", "add").stdout
    assert Store(tmp_path / "store").n_nodes == 3
    assert "4 edges were dropped, to unknown nodes" in ok(*arguments, "--unknown", "drop").stdout


def test_a_config_file(files, tmp_path):
    (tmp_path / "c.toml").write_text("undirected = true\nself-loops = 'drop'\nmemory = '2G'\n")
    ok("ingest", files[0], "-o", tmp_path / "store", "--config", tmp_path / "c.toml", "-q")
    assert Store(tmp_path / "store").n_edges == 4


def test_failures_are_one_line_and_leave_nothing(files, tmp_path):
    few = tmp_path / "few.csv"
    few.write_text("id,age\nann,1\nbob,2\n")
    fails(tmp_path, "4 edges with another end: 'eve'", "ingest", files[0], few, "-o", tmp_path / "store")
    two = tmp_path / "two.csv"
    two.write_text("source,target\nann,bob\nann,eve\n")
    words = "1 edge with another end: 'eve' of edge 1; set --unknown drop or --unknown add"
    fails(tmp_path, words, "ingest", two, few, "-o", tmp_path / "store")
    fails(tmp_path, "topic", "ingest", *files, "-o", tmp_path / "store")
    fails(tmp_path, "does not exist", "ingest", tmp_path / "none.csv", "-o", tmp_path / "store")
    fails(tmp_path, "set --memory", "ingest", files[0], "-o", tmp_path / "store", "--memory", "10M")
    ok("ingest", files[0], "-o", tmp_path / "store", "-q")
    fails(tmp_path, "not exist yet", "ingest", files[0], "-o", tmp_path / "store")


def test_wrong_calls(files, tmp_path):
    wrong("--unknown must be one of 'error'", "ingest", files[0], "-o", tmp_path / "s", "--unknown", "ignore")
    wrong("--memory must be a number of bytes", "ingest", files[0], "-o", tmp_path / "s", "--memory", "much")
    wrong("Missing", "ingest", files[0])


def test_the_summary_counts_what_was_added(files, tmp_path):
    ok("ingest", files[0], "-o", tmp_path / "store", "-q")
    store = Store(tmp_path / "store")
    store.facts["nodes_added"] = 7
    assert "7 nodes were added, which only edges name" in summary(tmp_path, store, 1.0)
