"""`fishergraph nearest`, `links` and `cluster`: files in, tables out, and calls that are wrong."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from commands import fails, ok, wrong
from fishergraph import LinkProbe, Vectors
from fishergraph.io.embedding_file import write_embedding
from link_problem import community_graph, edges_of

X, GRAPH = community_graph(n=80)
IDS = GRAPH.ids.tolist()
TOWN = np.array(["Bern", "Graz", "Ulm", "Zug"])
SMALL = ("--n-layers", 1, "--dim", 8, "--n-anchors", 2, "--seed", 0)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """An embedding, edges, nodes in another order, and pairs, in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    write_embedding("z.parquet", IDS, X, blocks=[("psi0", 2), ("walk", 2)])
    edges = sorted((IDS[u], IDS[v]) for u, v in edges_of(GRAPH) if u < v)
    pd.DataFrame(edges, columns=["source", "target"]).to_csv("edges.csv", index=False)
    columns = {"town": TOWN[X.argmax(axis=1)], "size": np.linspace(0, 1, 80), **{f"x{j}": X[:, j] for j in range(4)}}
    pd.DataFrame({"id": IDS, **columns}).iloc[::-1].to_csv("nodes.csv", index=False)
    pd.DataFrame({"source": IDS[:3], "target": IDS[5:8]}).to_csv("pairs.csv", index=False)
    return tmp_path


# --- nearest ----------------------------------------------------------------------------------------------


def test_the_nearest_nodes_are_shown(files):
    text = ok("nearest", "z.parquet", "n3", "n9", "-k", 2).stdout
    expected = Vectors(X, IDS).nearest(["n3", "n9"], k=2)
    lines = [line.split() for line in text.splitlines() if line.split()[:1] in (["n3"], ["n9"])]
    assert [(line[0], line[2]) for line in lines] == list(
        zip(np.repeat(["n3", "n9"], 2), expected.ids.ravel(), strict=True)
    )
    assert [float(line[3]) for line in lines] == pytest.approx(expected.values.ravel(), abs=1e-4)


@pytest.mark.parametrize("name", ["near.csv", "near.parquet", "near.json", "near.tsv"])
def test_the_neighbours_of_every_node_are_written(files, name):
    text = ok("nearest", "z.parquet", "-k", 3, "--metric", "euclidean", "-o", name).stdout
    assert f"{name}: 3 neighbours of each of 80 nodes" in text
    readers = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".json": pd.read_json}
    read = readers.get(files.joinpath(name).suffix, lambda path: pd.read_csv(path, sep="\t"))(name)
    expected = Vectors(X, IDS).neighbours(3, metric="euclidean")
    assert list(read.columns) == ["node", "rank", "neighbour", "distance"]
    assert read["neighbour"].tolist() == expected.ids.ravel().tolist()
    np.testing.assert_allclose(read["distance"], expected.values.ravel())


def test_nearest_calls_that_are_wrong(files):
    wrong("name nodes", "nearest", "z.parquet")
    fails(files, "n8", "nearest", "z.parquet", "n80")
    wrong("at most 79", "nearest", "z.parquet", "n3", "-k", 80)
    wrong("cosine", "nearest", "z.parquet", "n3", "--metric", "cos")
    fails(files, "csv", "nearest", "z.parquet", "n3", "-o", "near.txt")
    fails(files, "twice", "nearest", "z.parquet", "n3", "-o", "z.parquet")
    fails(files, "nothing.parquet", "nearest", "nothing.parquet", "n3")


# --- links ------------------------------------------------------------------------------------------------


def test_new_links_are_suggested(files):
    text = ok(
        "links", "edges.csv", "-n", "nodes.csv", "--undirected", *SMALL, "--drop", "town", "-k", 7, "-o", "new.csv"
    ).stdout
    assert "pairs held out, half of them edges: AUC 0." in text
    assert "hits@10" in text
    found = pd.read_csv("new.csv")
    assert list(found.columns) == ["source", "target", "probability"]
    assert len(found) == 7
    known = {frozenset(pair) for pair in pd.read_csv("edges.csv").to_numpy().tolist()}
    assert not known & {frozenset(pair) for pair in found[["source", "target"]].to_numpy().tolist()}
    assert found["probability"].is_monotonic_decreasing


def test_the_test_edges_are_held_out_of_what_is_judged(files, monkeypatch):
    """The measures are taken before the probe gets the whole graph."""
    order = []
    for name in ("evaluate", "use"):
        whole = getattr(LinkProbe, name)
        monkeypatch.setattr(
            LinkProbe, name, lambda self, *a, name=name, whole=whole, **k: order.append(name) or whole(self, *a, **k)
        )
    ok("links", "edges.csv", "--undirected", *SMALL, "-k", 1)
    assert order == ["evaluate", "use"]


def test_pairs_get_probabilities(files):
    text = ok(
        "links",
        "edges.csv",
        "-n",
        "nodes.csv",
        "--undirected",
        *SMALL,
        "--drop",
        "town",
        "--pairs",
        "pairs.csv",
        "-o",
        "p.json",
    )
    assert "p.json: 3 pairs" in text.stdout
    found = json.loads((files / "p.json").read_text())
    assert [(row["source"], row["target"]) for row in found] == list(zip(IDS[:3], IDS[5:8], strict=True))
    edges = edges_of(GRAPH)
    assert [row["edge"] for row in found] == [(k, k + 5) in edges for k in range(3)]
    assert all(0 < row["probability"] < 1 for row in found)


def test_pairs_are_compared_by_an_embedding(files):
    ok("links", "pairs.csv", "--embedding", "z.parquet", "-o", "s.parquet")
    found = pq.read_table("s.parquet")
    expected = Vectors(X, IDS).link_scores(list(zip(IDS[:3], IDS[5:8], strict=True)))
    np.testing.assert_allclose(found["similarity"].to_numpy(), expected)


def test_links_calls_that_are_wrong(files):
    wrong("give one of the two", "links", "edges.csv", "--pairs", "pairs.csv", "-k", 3)
    wrong("belongs to learning", "links", "pairs.csv", "--embedding", "z.parquet", "-k", 3)
    wrong("belongs to learning", "links", "pairs.csv", "--embedding", "z.parquet", "-n", "nodes.csv")
    pd.DataFrame({"source": ["n1"], "target": ["n99"]}).to_csv("unknown.csv", index=False)
    fails(files, "n99", "links", "unknown.csv", "--embedding", "z.parquet")
    fails(files, "n99", "links", "edges.csv", "--undirected", *SMALL, "--pairs", "unknown.csv")
    pd.DataFrame({"source": ["a"], "target": ["b"]}).to_csv("one.csv", index=False)
    fails(files, "val must hold out", "links", "one.csv", "--undirected", *SMALL)


# --- cluster ----------------------------------------------------------------------------------------------


def test_clusters_are_named_and_written(files):
    text = ok("cluster", "z.parquet", "-k", 4, "-n", "nodes.csv", "-o", "c.csv").stdout
    assert "c.csv: 4 clusters of 80 nodes" in text
    found = pd.read_csv("c.csv")
    assert list(found.columns) == ["id", "cluster", "name", "distance"]
    assert found["id"].tolist() == IDS
    towns = TOWN[X.argmax(axis=1)]
    agree = [
        f"town = {town}" in name or f"x{np.flatnonzero(town == TOWN)[0]} high" in name
        for town, name in zip(towns, found["name"], strict=True)
    ]
    assert np.mean(agree) > 0.8
    assert "town = Bern" in text


def test_ids_under_another_name(files):
    ok("cluster", "z.parquet", "-k", 4, "-n", "nodes.csv", "-o", "c.csv")
    pd.read_csv("nodes.csv").rename(columns={"id": "who"}).to_parquet("n.parquet", index=False)
    ok("cluster", "z.parquet", "-k", 4, "-n", "n.parquet", "-o", "d.csv")
    assert files.joinpath("d.csv").read_bytes() == files.joinpath("c.csv").read_bytes()


def test_the_number_of_clusters_is_chosen(files):
    text = ok("cluster", "z.parquet", "-k", "3,4,5").stdout
    assert "k = 4, of silhouette x stability: 3 0." in text
    assert "around n" in text
    assert "k = " in ok("cluster", "z.parquet").stdout


def test_cluster_calls_that_are_wrong(files):
    wrong("give --nodes", "cluster", "z.parquet", "--drop", "town")
    wrong("auto", "cluster", "z.parquet", "-k", "many")
    wrong("at most 80", "cluster", "z.parquet", "-k", 81)
    pd.DataFrame({"id": IDS[1:], "age": range(79)}).to_csv("less.csv", index=False)
    fails(files, "n0", "cluster", "z.parquet", "-n", "less.csv")
    fails(files, "town", "cluster", "z.parquet", "-n", "less.csv", "--drop", "town")


def test_quiet_commands_say_nothing(files):
    for call in (
        ("nearest", "z.parquet", "n3"),
        ("cluster", "z.parquet", "-k", 2),
        ("links", "pairs.csv", "--embedding", "z.parquet"),
    ):
        assert ok(*call, "-o", "out.csv", "--quiet").output == ""
