"""`fishergraph embed --tune`: the settings are chosen on labels, the table, the record, and calls that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from commands import fails, ok, record_of, wrong
from fishergraph import FisherEmbedding, Neighbourhood, as_graph, auto_embed
from labelled_graph import EDGES, NODES, N, write_tables

SMALL = ["--dim", "8", "--n-anchors", "2", "--jobs", "1", "--seed", "3"]
TUNE = ["--tune", "--label", "topic"]


@pytest.fixture
def files(tmp_path):
    return write_tables(tmp_path)


def test_a_split_of_the_file(files, tmp_path):
    out, model = tmp_path / "z.npz", tmp_path / "m.safetensors"
    options = ["--undirected", *SMALL]
    shown = ok("embed", *files, *TUNE, "--split", "part", "-o", out, "--save", model, *options).stdout
    record = record_of(out)
    tuning = record["tuning"]
    X, y = NODES[[f"f{j}" for j in range(4)]].to_numpy(), NODES["topic"].to_numpy(dtype=object, copy=True)
    y[30:] = None
    graph = as_graph(EDGES, node_ids=NODES["id"].to_numpy())
    params = {"dim": 8, "n_anchors": 2, "multiset": Neighbourhood(undirected=True)}
    same = auto_embed(X, graph, y, val=np.arange(18, 30), heads=None, random_state=3, **params)
    assert np.array_equal(np.load(out)["x"], same.Z)
    assert tuning["setting"] == same.setting
    assert [one["val_accuracy"] for one in tuning["report"]] == [one["val_accuracy"] for one in same.report]
    assert (tuning["label"], tuning["split"], tuning["budget"]) == ("topic", "part", 60)
    assert (tuning["training_rows"], tuning["validation_rows"]) == (18, 12)
    assert "optimistic" in tuning["note"]
    assert record["input"]["n_features"] == 4
    assert record["seed"] == 3
    assert record["parameters"]["multiset__undirected"] is True
    assert not any("multiset" in one["setting"] for one in tuning["report"])
    for word in ("setting", "accuracy", "default", "block_weights={walk: 0, smooth: 0}", "optimistic"):
        assert word in shown
    loaded = FisherEmbedding.load(model)
    assert loaded.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3"]
    again = tmp_path / "again.npz"
    ok("embed", *files, "--drop", "topic", "--drop", "part", "--model", model, "-o", again, "-q")
    np.testing.assert_allclose(np.load(again)["x"], same.Z, atol=1e-6)


def test_labels_of_test_nodes_are_not_used(files, tmp_path):
    out, other = tmp_path / "z.npz", tmp_path / "other"
    ok("embed", *files, *TUNE, "--split", "part", "-o", out, *SMALL, "--directed")
    other.mkdir()
    table = NODES.copy()
    table.loc[table["part"] == "test", "topic"] = "ape"
    arguments = write_tables(other)
    table.to_csv(other / "nodes.csv", index=False)
    ok("embed", *arguments, *TUNE, "--split", "part", "-o", other / "z.npz", *SMALL, "--directed")
    reports = [[one["val_log_loss"] for one in record_of(path)["tuning"]["report"]] for path in (out, other / "z.npz")]
    assert reports[0] == reports[1]
    assert any("multiset" in one["setting"] for one in record_of(out)["tuning"]["report"])


def test_without_a_split_a_third_of_the_labels_chooses(files, tmp_path):
    out = tmp_path / "z.csv"
    result = ok("embed", *files, *TUNE, "--drop", "part", "-o", out, *SMALL, "--undirected", "-q")
    assert result.stdout == ""
    tuning = record_of(out)["tuning"]
    assert (tuning["training_rows"], tuning["validation_rows"]) == (
        30,
        12,
    )  # of 14 labels per class a third, rounded down
    assert len(out.read_text().splitlines()) == N + 1


def test_a_small_budget_runs_the_default(files, tmp_path):
    out = tmp_path / "z.npz"
    result = ok("embed", *files, *TUNE, "--drop", "part", "-o", out, *SMALL, "--budget", "1e-9", "--undirected")
    assert "warning: budget=1e-09" in result.stderr
    skipped = [one["skipped"] for one in record_of(out)["tuning"]["report"]]
    assert skipped[0] is None
    assert set(skipped[1:]) == {"budget"}
    assert "skipped (budget)" in result.stdout


def test_other_runs_have_no_tuning(files, tmp_path):
    out = tmp_path / "z.npz"
    ok("embed", *files, "--drop", "topic", "--drop", "part", "-o", out, *SMALL, "-q")
    assert record_of(out)["tuning"] is None


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ([*TUNE, "--preset", "fast"], "--tune chooses the settings, and --preset names them"),
        ([*TUNE, "--model", "m"], "--tune chooses the settings, and --model names them"),
        (["--tune"], "name their column with --label"),
        (["--label", "topic"], "--label belongs to --tune"),
        (["--split", "part"], "--split belongs to --tune"),
        (["--budget", "9"], "--budget belongs to --tune"),
        ([*TUNE, "--budget", "0"], "--budget must be a finite number greater than 0"),
        ([*TUNE, "--budget", "nan"], "--budget must be a finite number greater than 0"),
    ],
)
def test_calls_that_contradict_themselves(files, tmp_path, options, pattern):
    wrong(pattern, "embed", *files, *options, "-o", tmp_path / "z.npz")


def test_labels_that_cannot_be_used(files, tmp_path):
    out = ["-o", tmp_path / "z.npz", "-q", "--directed"]
    fails(tmp_path, "no column 'colour'|'colour'", "embed", *files, "--tune", "--label", "colour", *out)
    fails(tmp_path, "--tune needs a node file", "embed", files[0], *TUNE, *out)
    NODES.assign(topic="ape").to_csv(tmp_path / "nodes.csv", index=False)
    fails(tmp_path, "at least two classes", "embed", *files, *TUNE, "--drop", "part", *out)
    NODES.assign(topic="").to_csv(tmp_path / "nodes.csv", index=False)
    fails(tmp_path, "class of at least one row", "embed", *files, *TUNE, "--drop", "part", *out)
