"""`fishergraph train --mode probe` and `predict` with such a model, without torch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from commands import fails, ok, record_of, wrong
from fishergraph import FisherClassifier, Neighbourhood, as_graph
from labelled_graph import EDGES, NODES, TOPIC, N, write_tables

PROBE = ["--mode", "probe", "--n-layers", "1", "--dim", "16", "--seed", "0"]


@pytest.fixture
def files(tmp_path):
    return write_tables(tmp_path)


def test_a_split_of_the_file(files, tmp_path):
    model = tmp_path / "m.safetensors"
    result = ok("train", *files, "--label", "topic", "--split", "part", "-o", model, *PROBE, "--undirected")
    record = record_of(model)
    results = record["results"]
    assert results["test_accuracy"] > 0.6
    assert sum(results["heads"].values()) == pytest.approx(1)
    assert 0 <= results["val_ece"] <= 1
    assert "3 classes" in result.stdout
    assert next(iter(results["heads"])) in result.stdout
    assert record["parameters"]["mode"] == "probe"
    assert not any(name.startswith("training") for name in record["parameters"] if "__" in name)
    X, y = NODES[[f"f{j}" for j in range(4)]].to_numpy(), NODES["topic"].to_numpy(dtype=object, copy=True)
    y[30:] = None
    multiset = Neighbourhood(undirected=True)
    same = FisherClassifier(n_layers=1, dim=16, mode="probe", multiset=multiset, random_state=0)
    graph = as_graph(EDGES, node_ids=NODES["id"].to_numpy())
    same.fit(X, y, graph=graph, val=np.arange(18, 30))
    loaded = FisherClassifier.load(model)
    assert loaded.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3"]
    del loaded.feature_names_in_
    np.testing.assert_allclose(loaded.predict_proba(X, graph=graph), same.predict_proba(X, graph=graph), atol=1e-6)


def test_predictions_of_a_probe(files, tmp_path):
    model, out = tmp_path / "m", tmp_path / "p.csv"
    ok("train", *files, "--label", "topic", "--drop", "part", "-o", model, *PROBE, "--undirected", "-q")
    ok("predict", *files, "--model", model, "--proba", "-o", out)
    table = pd.read_csv(out)
    assert list(table.columns) == ["id", "prediction", "p_ape", "p_bee", "p_cat"]
    assert (table["prediction"] == TOPIC).mean() > 0.7
    np.testing.assert_allclose(table.filter(regex="^p_").sum(axis=1), 1, atol=1e-5)


def test_neither_command_needs_torch(files, tmp_path):
    code = """
import sys
class NoTorch:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "torch_geometric"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
from fishergraph.cli import app
app(sys.argv[1:])
"""

    def run(*line):
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, line)], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    model, network = tmp_path / "m", [*files, "--label", "topic", "--drop", "part", "-o", tmp_path / "n", "--directed"]
    assert run("train", *files, "--label", "topic", "--drop", "part", "-o", model, *PROBE, "-q", "--directed")[0] == 0
    status, said = run("predict", *files, "--model", model, "-o", tmp_path / "p.csv", "-q")
    assert status == 0
    assert "feature names" not in said
    assert len(pd.read_csv(tmp_path / "p.csv")) == N
    code_of_network, said = run("train", *network)
    assert code_of_network == 1
    assert "fishergraph[torch]" in said


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--lr", "0.1"], "--lr"),
        (["--dropout", "0.1"], "--dropout"),
        (["--validation-fraction", "0.2"], "--validation-fraction"),
        (["--log", "rows.csv"], "--log"),
        (["--plot", "c.svg"], "--plot"),
        (["--checkpoint", "c"], "--checkpoint"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_options_of_a_network(files, tmp_path, options, word):
    wrong(word, "train", *files, "--label", "topic", "-o", tmp_path / "m", *PROBE, *options)
    assert not (tmp_path / "m").exists()


def test_an_unknown_mode_and_one_class(files, tmp_path):
    wrong("'probe'", "train", *files, "--label", "topic", "-o", tmp_path / "m", "--mode", "forest")
    NODES.assign(topic="ape").to_csv(tmp_path / "nodes.csv", index=False)
    line = ["train", *files, "--label", "topic", "--drop", "part", "-o", tmp_path / "m", *PROBE]
    fails(tmp_path, "two classes, got 'ape'", *line)  # the class as the file has it
