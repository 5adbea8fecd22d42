"""`--only`, and `fishergraph table`."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fishergraph.cli import app

runner = CliRunner()
N = 40


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids = [f"p{k}" for k in range(N)]
    nodes = pd.DataFrame({"id": ids, "f": rng.normal(size=N), "g": rng.normal(size=N)})
    nodes.to_csv("nodes.csv", index=False)
    mixed = nodes.assign(job=rng.choice(["a", "b"], N), topic=rng.choice(["x", "y"], N))
    mixed.assign(part=np.where(np.arange(N) < 25, "train", "test")).to_csv("mixed.csv", index=False)
    pd.DataFrame({"source": rng.choice(ids, 90), "target": rng.choice(ids, 90)}).to_csv("edges.csv", index=False)
    return tmp_path


def run(*words, code=0):
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def test_only_some_nodes_are_embedded(files):
    run(
        "embed",
        "edges.csv",
        "-n",
        "nodes.csv",
        "--seed",
        0,
        "--dim",
        8,
        "--save",
        "m.safetensors",
        "-o",
        "z.parquet",
        "-q",
    )
    (files / "only.txt").write_text("p30\n p2 \n\n")
    run(
        "embed",
        "edges.csv",
        "-n",
        "nodes.csv",
        "--model",
        "m.safetensors",
        "--only",
        "only.txt",
        "-o",
        "some.parquet",
        "-q",
    )
    whole, some = pd.read_parquet("z.parquet").set_index("id"), pd.read_parquet("some.parquet").set_index("id")
    assert some.index.tolist() == ["p30", "p2"]
    for node in some.index:
        assert np.array_equal(some.loc[node].iloc[0], whole.loc[node].iloc[0])
    (files / "only.txt").write_text("P30\n")
    output = run(
        "embed", "edges.csv", "-n", "nodes.csv", "--model", "m.safetensors", "--only", "only.txt", "-o", "s.csv", code=1
    )
    assert "'p30'" in output
    run("embed", "edges.csv", "-n", "nodes.csv", "--only", "only.txt", "-o", "s.csv", code=2)


def test_the_table_of_files(files):
    run("table", "edges.csv", "--nodes", "mixed.csv", "--drop", "part", "-o", "t.parquet")
    table = pd.read_parquet("t.parquet")
    assert table["id"].tolist() == [f"p{k}" for k in range(N)]
    assert {"job", "job=a_share_neighbours", "f_mean_neighbours", "f_pagerank", "triangles"} <= set(table)


def test_labels_and_their_split(files):
    command = (
        "table",
        "edges.csv",
        "-n",
        "mixed.csv",
        "--label",
        "topic",
        "--split",
        "part",
        "--inductive",
        "-o",
        "t.csv",
    )
    run(*command)
    table = pd.read_csv("t.csv")
    assert not {"topic", "part", "part=train_share_neighbours"} & set(table)
    before = table[["topic=x_share_neighbours", "topic=y_share_neighbours"]]
    mixed = pd.read_csv("mixed.csv")
    tested = mixed["part"] == "test"
    mixed.loc[tested, "topic"] = np.where(mixed.loc[tested, "topic"] == "x", "y", "x")
    mixed.to_csv("mixed.csv", index=False)
    run(*command)
    pd.testing.assert_frame_equal(pd.read_csv("t.csv")[before.columns], before)


def test_wrong_calls(files):
    run("table", "edges.csv", "-o", "t.csv", code=2)
    run("table", "edges.csv", "-n", "mixed.csv", "--split", "part", "-o", "t.csv", code=2)
    run("table", "edges.csv", "-n", "mixed.csv", "--inductive", "-o", "t.csv", code=2)
    run("table", "edges.csv", "-n", "mixed.csv", "--axes", 2, "-o", "t.csv", code=2)
