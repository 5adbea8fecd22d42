"""The options of edge files: what is asked for is done and told, what is wrong is said with its lines."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import unpacked_page as unpack
from commands import call, fails, ok, record_of, wrong
from fishergraph import FisherEmbedding, as_graph
from fishergraph.io.tables import read_edges, read_embedding
from fishergraph.scale import Store

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


MESSY = ["--source", "payer", "--target", "payee", "--weight", "amount", "--unknown", "drop"]


@pytest.fixture
def messy(tmp_path, monkeypatch):
    """One file that no default reads: other names, bars, Latin-1, an id that is not in the node file."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    people = [f"Zoë {k}" for k in range(20)]
    rows = [f"{people[a]}|{people[b]}|{1 + a}|x" for a, b in rng.integers(0, 20, (60, 2))]
    text = "\n".join(["payer|payee|amount|note", *rows, "nobody|Zoë 1|2|x"])
    (tmp_path / "e.csv").write_text(text + "\n", encoding="latin-1")
    table = {"id": people, "x": rng.normal(size=20), "y": rng.normal(size=20), "team": ["a", "b"] * 10}
    pd.DataFrame(table).to_csv("n.csv", index=False, encoding="latin-1")
    return [*MESSY, "--separator", "bar", "--encoding", "latin-1"]


def test_one_messy_file_goes_through_all_commands(messy, tmp_path):
    files = ["-n", "n.csv", *messy]
    model = ["--drop", "team", *SMALL, "--save", "m.st", "-o", "z.parquet"]
    ok("embed", "e.csv", *files, *model, "-q")
    graph = as_graph(
        read_edges("e.csv", source="payer", target="payee", weight="amount", separator="bar", encoding="latin-1"),
        node_ids=pd.read_csv("n.csv", encoding="latin-1")["id"],
        unknown="drop",
    )
    for more in ([], ["--model", "m.st"]):
        page = explored("z.parquet", "--graph", "e.csv", *files, *more)
        edges, shown = set(unpack.edges(page)), unpack.ids(page)
        assert {(shown[v], shown[u]) for v, u in edges} == {
            (graph.ids[v], graph.ids[u]) for v, u in zip(*graph.adjacency.nonzero(), strict=True)
        }
        assert page.about["edges"]["weight"] is not None
    for more in ([], ["--model", "m.st"]):
        result = ok("table", "e.csv", *files, *more, "-o", "t.parquet")
        assert "weight = amount" in result.stderr
        table = pd.read_parquet("t.parquet")
        assert table["id"].tolist() == graph.ids.tolist()
        assert np.isfinite(table["x_mean_neighbours"]).any()
    asked = ["--model", "m.st", "--node", "Zoë 1", "--with", "Zoë 2"]
    assert "Zoë 2" in ok("explain", "e.csv", *files, *asked).stdout
    ok("anomalies", "e.csv", *files, "--model", "m.st", "-o", "odd.csv", "-q")
    (tmp_path / "pairs.csv").write_text("Zoë 1,Zoë 2\nZoë 3,Zoë 4\n".replace(",", "|"), encoding="latin-1")
    pairs = ["--embedding", "z.parquet", "--separator", "bar", "--encoding", "latin-1", "--no-header"]
    assert "Zoë 3" in ok("links", "pairs.csv", *pairs).stdout


def explored(*arguments):
    ok("explore", *arguments, "--map", "pca", "-o", "p.html", "-q")
    return unpack.Unpacked(Path("p.html").read_text(encoding="utf-8"))


def test_a_table_has_the_nodes_that_edges_add(messy):
    ok("table", "e.csv", "-n", "n.csv", *messy, "--unknown", "add", "--label", "team", "-o", "t.parquet", "-q")
    table = pd.read_parquet("t.parquet").set_index("id")
    assert len(table) == 21
    assert np.isnan(table.loc["nobody", "x"])
    assert "team=a_share_neighbours" in table


def test_edges_outside_of_an_embedding(messy, tmp_path):
    ok("embed", "e.csv", "-n", "n.csv", *messy, "--drop", "team", *SMALL, "-o", "z.parquet", "-q")
    line = ["explore", "z.parquet", "--graph", "e.csv", *messy, "--map", "pca", "-q"]
    ok(*line, "--unknown", "add")
    fails(tmp_path, "'nobody' .line 62.", *line, "--unknown", "error")
    wrong("--source is about an edge file", "explore", "z.parquet", "--source", "payer")
    wrong("--unknown must be one of", *line, "--unknown", "keep")


def test_pairs_have_the_names_of_the_edges_or_the_usual_ones(messy):
    pd.DataFrame({"payer": ["Zoë 1"], "payee": ["Zoë 2"]}).to_csv("a.csv", index=False)
    pd.DataFrame({"source": ["Zoë 1"], "target": ["Zoë 2"]}).to_csv("b.csv", index=False)
    learn = ["links", "e.csv", "-n", "n.csv", *messy, *SMALL, "--drop", "team"]
    first, second = (ok(*learn, "--pairs", name).stdout for name in ("a.csv", "b.csv"))
    assert first == second
    assert "Zoë 2" in first


def test_a_store_and_its_updates_find_columns_as_other_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text("Payer,payee,weight\na,b,2\nb,c,3\n")
    named = ["--source", "payer", "--target", "payee"]
    ok("ingest", "e.csv", *named, "-o", "weighted", "-q")
    ok("ingest", "e.csv", *named, "--weight", "none", "-o", "plain", "-q")
    assert Store("weighted").weights is not None
    assert Store("plain").weights is None
    (tmp_path / "numbers.csv").write_text("0,1\n1,2\n2,0\n0,2\n")
    ok("ingest", "numbers.csv", "--source", "2", "--target", "1", "-o", "turned", "-q")
    assert Store("turned").n_edges == 4
    (tmp_path / "new.csv").write_text("payer;payee;weight\nc;a;5\n")
    (tmp_path / "gone.csv").write_text("payer;payee\na;b\n")
    ok("update", "weighted", "--edges", "new.csv", "--remove", "gone.csv", *named, "-q")
    store = Store("weighted")
    assert store.n_edges == 2
