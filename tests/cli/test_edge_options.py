"""The options of edge files: what is asked for is done and told, what is wrong is said with its lines."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from commands import call, fails, ok, record_of, wrong
from fishergraph import FisherEmbedding, as_graph
from fishergraph.io.tables import read_edges, read_embedding

SMALL = ["--n-layers", "1", "--n-anchors", "2", "--dim", "4", "--jobs", "1", "--seed", "0"]


@pytest.fixture
def files(tmp_path):
    """A messy pair of files: semicolons, other names, dates, an unknown id and one that differs by case."""
    rng = np.random.default_rng(0)
    people = [f"p{k}" for k in range(12)]
    rows = [f"{people[a]};{people[b]};{1 + a};2026-01-{b + 1:02d}" for a, b in rng.integers(0, 12, (40, 2))]
    rows += ["p1;zoe;2;2026-02-01", "P2;p1;2;2026-02-01"]
    (tmp_path / "e.csv").write_text("payer;payee;amount;day\n" + "\n".join(rows) + "\n")
    nodes = pd.DataFrame({"id": people, "x": rng.normal(size=12), "y": rng.normal(size=12)})
    nodes.to_csv(tmp_path / "n.csv", index=False)
    return tmp_path / "e.csv", "-n", tmp_path / "n.csv", "--source", "payer", "--target", "payee"


def test_unknown_ids_are_told_with_their_lines(files, tmp_path):
    error = r"2 edges.*'zoe' in line 42, 'P2' \(near 'p2'\) in line 43; .*--unknown drop"
    fails(tmp_path, error, "embed", *files, *SMALL, "-o", tmp_path / "z.csv")


@pytest.mark.parametrize(("unknown", "rows"), [("drop", 12), ("add", 14)])
def test_what_was_read_is_one_line_and_in_the_record(files, tmp_path, unknown, rows):
    out = tmp_path / "z.npz"
    options = ["--weight", "amount", "--unknown", unknown, "--directed"]
    result = ok("embed", *files, *options, *SMALL, "-o", out)
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("read ")]
    for part in (f"{rows} nodes", "weights", "source = payer", "weight = amount", "left aside: day", "semicolons"):
        assert part in line
    assert ("left out" in line) == (unknown == "drop")
    summary = record_of(out)["input"]["edges"]["summary"]
    assert (summary["nodes"], summary["unknown"]) == (rows, 2)
    assert summary["columns"] == {"source": "payer", "target": "payee", "weight": "amount", "id": "id"}
    found = read_embedding(out)
    nodes = pd.read_csv(tmp_path / "n.csv")
    table = read_edges(files[0], source="payer", target="payee", weight="amount")
    graph = as_graph(table, node_ids=nodes["id"], unknown=unknown)
    X = np.zeros((rows, 2), np.float32)
    X[:12] = nodes[["x", "y"]]
    Z = FisherEmbedding(1, 2, 4, random_state=0, n_jobs=1).fit_transform(X, graph=graph)
    np.testing.assert_array_equal(found.Z, Z)
    assert found.ids.tolist() == graph.ids.tolist()


def test_the_same_graph_from_every_kind_of_file(tmp_path):
    G = nx.les_miserables_graph()
    nx.set_node_attributes(G, {node: float(len(node)) for node in G}, "letters")
    nx.write_graphml(G, tmp_path / "g.graphml")
    nx.write_gml(G, tmp_path / "g.gml")
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(G, edges="links")))
    nx.write_edgelist(G, tmp_path / "g.edgelist", delimiter="\t", data=["weight"])
    embeddings = {}
    for name in ("g.graphml", "g.gml", "g.json"):
        ok("embed", tmp_path / name, *SMALL, "-o", tmp_path / "z.npz", "-q")
        embeddings[name] = read_embedding(tmp_path / "z.npz")
        assert record_of(tmp_path / "z.npz")["input"]["n_features"] == 1
        ok("embed", tmp_path / name, "--drop", "letters", *SMALL, "-o", tmp_path / "z.npz", "-q")
        assert record_of(tmp_path / "z.npz")["input"]["n_features"] == 0
    first = embeddings["g.graphml"]
    for other in embeddings.values():
        assert other.ids.tolist() == first.ids.tolist() == list(G)
        np.testing.assert_array_equal(other.Z, first.Z)
    result = ok("embed", tmp_path / "g.edgelist", "--undirected", *SMALL, "-o", tmp_path / "z.npz")
    assert "77 nodes, 254 edges" in result.stderr


def test_files_without_header_by_number(tmp_path):
    (tmp_path / "e.txt").write_text("# a comment\n" + "".join(f"{k % 7} {k % 5} {1 + k} {k}\n" for k in range(1, 30)))
    line = ["embed", tmp_path / "e.txt", *SMALL, "-o", tmp_path / "z.npz", "--directed"]
    result = ok(*line, "--source", "2", "--target", "1", "--weight", "4", "--time", "3")
    assert "columns source = 2, target = 1, weight = 4, time = 3;" in result.stderr
    assert "1 line of comments, separated by blanks, no header" in result.stderr
    assert "no weights" not in ok(*line, "--weight", "none").stderr
    assert "weights" not in record_of(tmp_path / "z.npz")["input"]["edges"]["summary"]["columns"]


def test_wrong_calls(files, tmp_path):
    line = ["embed", files[0], *SMALL, "-o", tmp_path / "z.csv"]
    wrong("--unknown must be one of error, drop, add", *line, "-n", tmp_path / "n.csv", "--unknown", "keep")
    wrong("--unknown needs a list of nodes", *line, "--unknown", "drop")
    fails(tmp_path, "source must be a column of the edge table, got 'payr'.*'payer'", *line, "--source", "payr")
    fails(tmp_path, "encoding", *line, "--encoding", "klingon")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "manifest.json").write_text("{}")
    wrong("--source belongs to files", "embed", tmp_path / "store", "--source", "payer")
    result = call("embed", files[0], "--source", "payer", "--target", "payee", "--no-header", "-o", tmp_path / "z.csv")
    assert result.exit_code == 1
    assert "'1', '2', '3', '4'" in result.stderr


def test_pairs_that_are_compared_are_read_the_same_way(files, tmp_path):
    ok("embed", *files, "--unknown", "drop", *SMALL, "-o", tmp_path / "z.npz", "-q")
    (tmp_path / "pairs.txt").write_text("p1 p2\np3 p4\n")
    result = ok("links", tmp_path / "pairs.txt", "--embedding", tmp_path / "z.npz")
    assert "similarity" in result.stdout
