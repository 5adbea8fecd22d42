"""`fishergraph explore`: the files of other commands in, a page out."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.request

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import unpacked_page as unpack
from commands import fails, ok, wrong
from fishergraph.io.embedding_file import write_embedding

N = 40
IDS = [f"p{k}" for k in range(N)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """An embedding, edges and nodes, in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    write_embedding("z.parquet", IDS, rng.normal(size=(N, 6)).astype(np.float32), blocks=[("psi0", 2), ("walk", 4)])
    ends = rng.integers(N, size=(2, 100))
    ends = ends[:, ends[0] != ends[1]]
    edges = pd.DataFrame({"source": [IDS[v] for v in ends[0]], "target": [IDS[u] for u in ends[1]]})
    edges.drop_duplicates().to_csv("edges.csv", index=False)
    nodes = pd.DataFrame(
        {
            "id": IDS[::-1],
            "topic": [f"topic {k % 3}" for k in range(N)],
            "age": rng.integers(20, 60, size=N),
            "code": [f"{k:03d}" for k in range(N)],
        }
    )
    nodes.to_csv("nodes.csv", index=False)
    return tmp_path


def read(path):
    return unpack.Unpacked(path.read_text(encoding="utf-8"))


def test_an_embedding_alone(files):
    result = ok("explore", "z.parquet", "--map", "pca")
    assert "z.html: 40 nodes" in result.stdout
    page = read(files / "z.html")
    assert sorted(unpack.ids(page)) == sorted(IDS)
    assert page.about["title"] == "z"
    assert [block["name"] for block in page.about["blocks"]] == ["psi0", "walk"]


def test_all_files_of_a_graph(files):
    options = ["--labels", "topic", "--colour", "age", "--title", "People", "--neighbours", 3, "--map", "pca"]
    result = ok(
        "explore",
        "z.parquet",
        "--graph",
        "edges.csv",
        "-n",
        "nodes.csv",
        *options,
        "-o",
        "p.html",
        "--parquet",
        "p.parquet",
    )
    assert "embedding-atlas p.parquet --x projection_x --y projection_y --neighbors neighbors" in result.stdout
    page = read(files / "p.html")
    shown = unpack.ids(page)
    nodes = pd.read_csv("nodes.csv", dtype={"code": str}).set_index("id").loc[shown]
    assert page.about["columns"][0]["name"] == "topic"
    assert page.about["columns"][0]["role"] == "label"
    for name in ("topic", "age", "code"):
        assert unpack.column(page, name) == nodes[name].tolist()
    assert page.about["columns"][page.about["colour"]]["name"] == "age"
    assert page.about["nearest"]["k"] == 3
    edges = pd.read_csv("edges.csv")
    expected = {(target, source) for source, target in edges.itertuples(index=False)}
    assert {(shown[v], shown[u]) for v, u in unpack.edges(page)} == expected
    assert pq.read_table("p.parquet")["id"].to_pylist() == IDS


def test_columns_that_are_named(files):
    ok("explore", "z.parquet", "-n", "nodes.csv", "--field", "age", "--labels", "topic", "--map", "pca", "-q")
    names = [column["name"] for column in read(files / "z.html").about["columns"]]
    assert {"age", "topic"} <= set(names)
    assert "code" not in names


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_ids_under_another_name(files, kind):
    table = pd.read_csv("nodes.csv", dtype={"code": str}).rename(columns={"id": "who"}).iloc[::-1]
    table.to_csv("n.csv", index=False) if kind == "csv" else table.to_parquet("n.parquet", index=False)
    ok("explore", "z.parquet", "-n", f"n.{kind}", "--labels", "topic", "--map", "pca", "-q")
    page = read(files / "z.html")
    assert unpack.column(page, "topic") == table.set_index("who").loc[unpack.ids(page), "topic"].tolist()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_of_a_file(files, kind):
    table = pd.DataFrame({"id": IDS[:30], "prediction": [f"class {k % 2}" for k in range(30)]})
    table.to_csv("p.csv", index=False) if kind == "csv" else table.to_parquet("p.parquet", index=False)
    ok("explore", "z.parquet", "--predictions", f"p.{kind}", "--map", "pca", "-q")
    page = read(files / "z.html")
    predicted = dict(zip(unpack.ids(page), unpack.column(page, "prediction"), strict=True))
    assert [predicted[name] for name in IDS] == [*table["prediction"], *[None] * 10]


@pytest.mark.parametrize("command", ["embed", "train"])
def test_a_model_from_its_file(files, command):
    small = ["--dim", 8, "--n-anchors", 2, "--seed", 0, "--undirected", "-q"]
    if command == "embed":
        ok("embed", "edges.csv", "-n", "nodes.csv", "--drop", "topic", *small, "-o", "e.parquet", "--save", "m.st")
    else:
        more = ["--label", "topic", "--mode", "probe"]
        ok("train", "edges.csv", "-n", "nodes.csv", *more, *small, "-o", "m.st")
        from fishergraph import FisherClassifier, as_graph

        model = FisherClassifier.load("m.st")
        nodes = pd.read_csv("nodes.csv").set_index("id")
        graph = as_graph(pd.read_csv("edges.csv"), node_ids=nodes.index.tolist(), undirected=True)
        X = nodes[["age", "code"]].astype(np.float32)
        write_embedding("e.parquet", nodes.index.tolist(), model.embedding_.transform(X, graph=graph))
    files_of_fit = ["--graph", "edges.csv", "-n", "nodes.csv"]
    ok("explore", "e.parquet", *files_of_fit, "--model", "m.st", "--map", "pca", "-q")
    about = read(files / "e.html").about
    assert about["attention"]["anchors"] == 2
    assert about["features"]["names"] == ["age", "code"]
    assert ("prediction" in [column["name"] for column in about["columns"]]) == (command == "train")
    fails(files, "model", "explore", "z.parquet", *files_of_fit, "--model", "m.st", "--map", "pca", "-q")


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["--port", 8000], "--serve"),
        (["--field", "age"], "--nodes"),
        (["--model", "m.st"], "--graph"),
        (["--map", "isomap"], "pca, tsne, umap"),
    ],
)
def test_wrong_calls(files, arguments, pattern):
    wrong(pattern, "explore", "z.parquet", *arguments)


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["-o", "nowhere/p.html"], "nowhere"),
        (["-o", "p.txt"], "html"),
        (["--parquet", "z.parquet"], "twice"),
        (["-n", "nodes.csv", "--field", "size"], "size"),
        (["-n", "nodes.csv", "--labels", "size"], "'topic'"),
        (["--labels", "topic"], "no node file"),
        (["--colour", "size"], "size"),
        (["--graph", "absent.csv"], "absent.csv"),
        (["--graph", "edges.csv", "--model", "absent.st"], "absent.st"),
        (["--max-points", 3], "max_points|max-points"),
    ],
)
def test_failures_of_one_line(files, arguments, pattern):
    fails(files, pattern, "explore", "z.parquet", *arguments, "-q", *([] if "--map" in arguments else ["--map", "pca"]))


def test_the_graph_of_other_nodes(files):
    pd.DataFrame({"source": ["a"], "target": ["b"]}).to_csv("other.csv", index=False)
    fails(files, "none of them", "explore", "z.parquet", "--graph", "other.csv", "--map", "pca", "-q")


def test_notes_are_told(files):
    edges = pd.read_csv("edges.csv")
    more = pd.concat([edges, pd.DataFrame({"source": ["p0"], "target": ["new"]})])
    more.to_csv("more.csv", index=False)
    result = ok("explore", "z.parquet", "--graph", "more.csv", "--map", "pca")
    assert re.search(r"note: 1 of \d+ edges", result.stderr)


def test_a_port_in_use(files):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        fails(files, str(port), "explore", "z.parquet", "--map", "pca", "--serve", "--port", port, "-q")


def test_serving_until_interrupted(files):
    command = [sys.executable, "-m", "fishergraph", "explore", "z.parquet", "--map", "pca", "--serve"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    try:
        line = process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert b"fishergraph" in answer.read()
    finally:
        process.send_signal(2)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert not (files / "z.html").exists()
