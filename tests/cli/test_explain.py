"""`fishergraph explain` and `fishergraph anomalies`: a fitted model and its files in, reasons and ranks out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from commands import call, fails, ok, record_of, wrong
from fishergraph import Explainer, FisherClassifier, FisherEmbedding
from labelled_graph import EDGES, NODES, write_tables


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files, and the model that embed saves."""
    folder = tmp_path_factory.mktemp("explain")
    tables = write_tables(folder)
    model = folder / "model.safetensors"
    options = ["--drop", "topic", "--drop", "part", "--undirected", "--dim", 8, "--seed", 0, "-q"]
    ok("embed", *tables, *options, "--save", model, "-o", folder / "z.parquet")
    return [*tables, "--model", model]


@pytest.fixture(scope="module")
def explainer(files):
    X = NODES.set_index("id")[[f"f{j}" for j in range(4)]].astype(np.float32)
    return Explainer(FisherEmbedding.load(files[-1]), X, graph=EDGES)


def test_a_pair_is_explained_as_text_and_as_json(files, explainer):
    pair = ["--node", "paper 03", "--with", "paper 41"]
    expected = explainer.explain("paper 03", "paper 41")
    assert ok("explain", *files, *pair).stdout == f"{expected}\n"
    found = json.loads(ok("explain", *files, *pair, "--json").stdout)
    assert found["first"] == "paper 03"
    assert found["value"] == pytest.approx(expected.value)
    assert found["pairs"]["value"] == pytest.approx(expected.pairs["value"].tolist())
    assert found["columns"]["name"] == expected.columns["name"].tolist()
    cosine = json.loads(ok("explain", *files, *pair, "--json", "--cosine", "--block", "psi1").stdout)
    assert cosine["value"] == pytest.approx(explainer.explain("paper 03", "paper 41", cosine=True, block="psi1").value)


def test_a_node_and_the_anchors(files, explainer):
    assert ok("explain", *files, "--node", "paper 03").stdout == f"{explainer.explain('paper 03')}\n"
    assert ok("explain", *files, "--node", "paper 03", "--drop", "topic").stdout == f"{explainer.explain('paper 03')}\n"
    assert ok("explain", *files, "--block", "psi2").stdout == f"{explainer.describe_anchors(block='psi2')}\n"
    found = json.loads(ok("explain", *files, "--node", "paper 03", "--json").stdout)
    np.testing.assert_allclose(np.sum(found["attention"], axis=0), 1)


def test_ids_in_a_column_of_another_name(files, tmp_path):
    """The features of the model are read by name, so nothing else says which column holds the ids."""
    named = tmp_path / "nodes.csv"
    NODES.rename(columns={"id": "who"}).to_csv(named, index=False)
    arguments = ["explain", files[0], "-n", named, "--model", files[-1]]
    assert ok(*arguments, "--id-column", "who").stdout == ok(*arguments).stdout == ok("explain", *files).stdout
    NODES.assign(id="x").to_csv(named, index=False)
    fails(tmp_path, r"must be distinct", *arguments)


def test_tables_hold_a_part(files, explainer, tmp_path):
    pair = ["--node", "paper 03", "--with", "paper 41"]
    assert ok("explain", *files, *pair, "-q", "-o", tmp_path / "pairs.csv").stdout == ""
    why = explainer.explain("paper 03", "paper 41")
    table = pd.read_csv(tmp_path / "pairs.csv")
    assert list(table.columns) == list(why.pairs)
    np.testing.assert_allclose(table["value"], why.pairs["value"])
    assert table["first"].tolist() == why.pairs["first"].tolist()
    ok("explain", *files, *pair, "--part", "columns", "-q", "-o", tmp_path / "columns.parquet")
    assert pd.read_parquet(tmp_path / "columns.parquet")["name"].tolist() == why.columns["name"].tolist()
    ok("explain", *files, "--node", "paper 03", "-q", "-o", tmp_path / "attention.tsv")
    assert len(pd.read_csv(tmp_path / "attention.tsv", sep="\t")) == explainer.explain("paper 03").attention.size
    ok("explain", *files, "-q", "-o", tmp_path / "anchors.json")
    assert len(json.loads((tmp_path / "anchors.json").read_text())["anchors"]["anchor"]) == 4


def test_an_engine_may_be_named(files):
    plain = json.loads(ok("explain", *files, "--node", "paper 03", "--json").stdout)
    named = json.loads(ok("explain", *files, "--node", "paper 03", "--json", "--engine", "scipy").stdout)
    np.testing.assert_allclose(named["attention"], plain["attention"], rtol=1e-5)


def test_anomalies_rank_every_node(files, explainer, tmp_path):
    out = tmp_path / "odd.csv"
    result = ok("anomalies", *files, "-o", out, "--permutations", 20, "--seed", 3)
    table, expected = pd.read_csv(out), explainer.anomaly_scores()
    assert table["id"].tolist() == expected.listing()["node"].tolist()
    np.testing.assert_allclose(table["score"], expected.listing()["score"])
    near = explainer.neighbourhood_scores(n_permutations=20, random_state=3)
    np.testing.assert_allclose(table["p_value"], near.p_values[expected.listing()["row"]])
    assert table["id"][0] in result.stdout
    record = record_of(out)
    assert record["model"]["used"] == str(files[-1])
    assert record["permutations"] == 20
    ok("anomalies", *files, "-o", tmp_path / "short.parquet", "--permutations", 0, "-q")
    assert list(pd.read_parquet(tmp_path / "short.parquet")) == [
        "id",
        "score",
        "reason",
        "context",
        "discord",
        "novelty",
    ]


def test_what_cannot_be_answered(files, tmp_path):
    fails(tmp_path, "--node must be the id of a node, got 'paper 3'; similar", "explain", *files, "--node", "paper 3")
    fails(tmp_path, "--with must be", "explain", *files, "--node", "paper 03", "--with", "x")
    fails(tmp_path, "block must be one of 'psi1', 'psi2'", "explain", *files, "--node", "paper 03", "--block", "psi0")
    wrong("--with needs --node", "explain", *files, "--with", "paper 03")
    wrong("belong to two nodes", "explain", *files, "--node", "paper 03", "--cosine")
    wrong("--part must be one of", "explain", *files, "--node", "paper 03", "--with", "paper 04", "--part", "x")
    wrong("at least 0", "anomalies", *files, "-o", tmp_path / "o.csv", "--permutations", -1)
    fails(tmp_path, r"\.csv", "anomalies", *files, "-o", tmp_path / "o.npz")
    fails(tmp_path, r"\.json", "explain", *files, "-o", tmp_path / "o.txt")
    fails(tmp_path, "a model file is expected", "explain", *files[:-1], tmp_path / "absent")
    assert call("explain", *files[:3]).exit_code == 2  # no model


def test_a_classifier_is_no_embedding(files, tmp_path):
    pytest.importorskip("torch_geometric")
    y = np.arange(len(NODES)) % 2
    model = FisherClassifier(mode="probe", random_state=0).fit(NODES[[f"f{j}" for j in range(4)]].to_numpy(), y)
    model.save(tmp_path / "c.safetensors")
    fails(tmp_path, "must hold a FisherEmbedding", "explain", *files[:-1], tmp_path / "c.safetensors")
