"""`fishergraph train`: files in, a model out, the record, Ctrl-C, and one sentence per failure."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import signal
import subprocess
import sys
from time import monotonic, sleep

import numpy as np
import pandas as pd
import pytest

from commands import besides_reading, call, fails, ok, record_of, wrong
from labelled_graph import EDGES, NODES, SMALL, N, write_tables

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import FisherClassifier, Neighbourhood, as_graph  # noqa: E402
from fishergraph.cli.options import CLASSIFIER, documented  # noqa: E402
from fishergraph.nn import Network, Training  # noqa: E402

QUICK = [*SMALL, "--max-epochs", "5", "--directed"]


@pytest.fixture
def files(tmp_path):
    return write_tables(tmp_path)


# --- training -------------------------------------------------------------------------------------------


def test_a_split_of_the_file(files, tmp_path):
    model = tmp_path / "m.safetensors"
    arguments = [
        "train",
        *files,
        "--label",
        "topic",
        "--split",
        "part",
        "-o",
        model,
        "--seed",
        3,
        *SMALL,
        "--undirected",
    ]
    result = ok(*arguments, "--max-epochs", 40, "--log", tmp_path / "rows.csv", "--plot", tmp_path / "c.svg")
    record = record_of(model)
    results = record["results"]
    assert results["test_accuracy"] > 0.7
    assert re.search(
        rf"3 classes, epoch {results['best_epoch']} of \d+, training .*%, validation .*%, test ", result.stdout
    )
    assert (record["seed"], record["classes"]) == (3, ["ape", "bee", "cat"])
    assert (record["input"]["label"], record["input"]["split"], record["input"]["n_features"]) == ("topic", "part", 4)
    assert record["versions"]["torch"] == torch.__version__
    assert record["parameters"]["multiset__undirected"] is True
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert rows["val_accuracy"].max() == pytest.approx(results["val_accuracy"])
    assert len(rows) == results["epochs"]
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")

    X, y = NODES[[f"f{j}" for j in range(4)]].to_numpy(), NODES["topic"].to_numpy(dtype=object, copy=True)
    y[30:] = None
    same = FisherClassifier(
        n_layers=1,
        n_anchors=2,
        dim=8,
        multiset=Neighbourhood(undirected=True),
        network=Network(head="linear", dropout=0.0),
        training=Training(lr=0.05, max_epochs=40),
        random_state=3,
    )
    graph = as_graph(EDGES, node_ids=NODES["id"].to_numpy())
    same.fit(X, y, graph=graph, val=np.arange(18, 30))
    loaded = FisherClassifier.load(model)
    assert loaded.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3"]
    del loaded.feature_names_in_
    np.testing.assert_allclose(loaded.predict_proba(X, graph=graph), same.predict_proba(X, graph=graph), atol=1e-6)


def test_a_share_is_held_out_and_empty_cells_have_no_label(files, tmp_path):
    model = tmp_path / "m"
    ok(
        "train",
        *files,
        "--label",
        "topic",
        "--drop",
        "part",
        "-o",
        model,
        "--validation-fraction",
        0.25,
        "--seed",
        0,
        *QUICK,
    )
    record = record_of(model)
    assert record["parameters"]["training__validation_fraction"] == 0.25
    assert "test_accuracy" not in record["results"]
    accuracy = record["results"]["val_accuracy"]
    assert accuracy * 9 == pytest.approx(round(accuracy * 9))  # three of the fourteen of each class


@pytest.mark.parametrize("family", ["multinomial", "gaussian"])
def test_other_families(files, tmp_path, family):
    model = tmp_path / "m"
    if family == "multinomial":
        counts = np.random.default_rng(0).poisson(1 + 2 * np.eye(4)[np.arange(N) % 3])
        NODES.assign(**{f"f{j}": counts[:, j] for j in range(4)}).to_csv(tmp_path / "nodes.csv", index=False)
    call_it = ["train", *files, "--label", "topic", "--split", "part", "-o", model, "--seed", 0, *SMALL, "--undirected"]
    ok(*call_it, "--family", family, "--max-epochs", 40)
    assert record_of(model)["results"]["test_accuracy"] > 0.6
    ok("predict", *files, "--model", model, "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == N


@pytest.mark.parametrize("suffix", [".tsv", ".parquet", ".npz"])
def test_other_files_and_labels_of_numbers(tmp_path, suffix):
    numbers = NODES.assign(topic=[{"ape": 4, "bee": 7, "cat": 9}.get(name) for name in NODES["topic"]])
    numbers = numbers.drop(columns="part")
    edge_file, node_file, out = (tmp_path / f"{name}{suffix}" for name in ("edges", "nodes", "out"))
    if suffix == ".npz":
        row = {name: k for k, name in enumerate(NODES["id"])}
        ends = np.array([[row[name] for name in EDGES[column]] for column in ("source", "target")])
        np.savez(edge_file, edge_index=ends, ids=NODES["id"].to_numpy().astype(str))
        X = NODES[[f"f{j}" for j in range(4)]].to_numpy()
        topic = numbers["topic"].fillna(-1).to_numpy().astype(int)
        np.savez(node_file, x=X, ids=NODES["id"].to_numpy().astype(str), topic=topic)
    elif suffix == ".parquet":
        EDGES.to_parquet(edge_file)
        numbers.to_parquet(node_file)
    else:
        EDGES.to_csv(edge_file, sep="\t", index=False)
        numbers.to_csv(node_file, sep="\t", index=False)
    ok("train", edge_file, "-n", node_file, "--label", "topic", "-o", tmp_path / "m", *QUICK)
    assert FisherClassifier.load(tmp_path / "m").classes_.tolist() == [4, 7, 9]
    ok("predict", edge_file, "-n", node_file, "--model", tmp_path / "m", "-o", out, "--proba")
    if suffix == ".npz":
        with np.load(out) as found:
            assert found["ids"].tolist() == NODES["id"].tolist()
            assert found["classes"].tolist() == [4, 7, 9]
            np.testing.assert_array_equal(found["classes"][found["proba"].argmax(1)], found["prediction"])
        return
    table = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, sep="\t")
    assert list(table.columns) == ["id", "prediction", "p_4", "p_7", "p_9"]
    assert table["id"].tolist() == NODES["id"].tolist()
    assert set(table["prediction"]) <= {4, 7, 9}


def test_nodes_without_features_and_mini_batches(files, tmp_path):
    NODES[["id", "topic"]].to_csv(tmp_path / "nodes.csv", index=False)
    arguments = ["train", *files, "--label", "topic", "-o", tmp_path / "m", "--batch-size", 8, "--fan-out", "5,4"]
    ok(
        *arguments,
        *SMALL[2:],
        "--n-layers",
        2,
        "--max-epochs",
        3,
        "--structure",
        "degree",
        "--undirected",
        "--amp",
        "bf16",
    )
    record = record_of(tmp_path / "m")
    assert record["structure"]["columns"] == ["degree"]
    assert (record["parameters"]["training__fan_out"], record["parameters"]["training__amp"]) == ([5, 4], "bf16")
    ok("predict", *files, "--model", tmp_path / "m", "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == N


@pytest.mark.parametrize("multiset", ["hops", "pairs", "paths", "tuples"])
def test_multisets_of_subgraphs(multiset, files, tmp_path):
    arguments = ["train", *files, "--label", "topic", "--multiset", multiset, "--seed", 0, "--drop", "part", *QUICK]
    ok(*arguments, "-o", tmp_path / "m")
    assert record_of(tmp_path / "m")["parameters"]["multiset"] == multiset
    assert FisherClassifier.load(tmp_path / "m").multiset == multiset
    ok("predict", *files, "--model", tmp_path / "m", "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == N
    if multiset != "hops":
        wrong("--batch-size", *arguments, "-o", tmp_path / "n", "--batch-size", 8)


def test_a_config_file(files, tmp_path):
    (tmp_path / "c.toml").write_text(
        'label = "topic"\nsplit = "part"\nlr = 0.02\nmax-epochs = 3\nn_layers = 2\ndirected = true\nfan-out = [5]'
        "\nbatch_size = 8"
    )
    ok("train", *files, "-o", tmp_path / "m", "--config", tmp_path / "c.toml", *SMALL[:2])
    parameters = record_of(tmp_path / "m")["parameters"]
    assert parameters["training__fan_out"] == 5
    assert (parameters["training__lr"], parameters["training__max_epochs"], parameters["n_layers"]) == (0.02, 3, 1)


def test_a_resumed_run_writes_the_same_model(files, tmp_path):
    arguments = ["train", *files, "--label", "topic", "--split", "part", "--seed", 0, *QUICK[:-3], "--directed"]
    ok(*arguments, "-o", tmp_path / "whole", "--max-epochs", 6)
    ok(*arguments, "-o", tmp_path / "half", "--max-epochs", 3, "--checkpoint", tmp_path / "c")
    resumed = ["-o", tmp_path / "again", "--max-epochs", 6, "--checkpoint", tmp_path / "c", "--resume"]
    ok(*arguments, *resumed, "--log", tmp_path / "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 6
    one, two = (FisherClassifier.load(tmp_path / name).net_.state_dict() for name in ("whole", "again"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_resume_begins_anew_where_there_is_no_checkpoint_yet(files, tmp_path):
    """A run that was killed before its first checkpoint is repeated by the same command."""
    arguments = ["train", *files, "--label", "topic", "--split", "part", "--seed", 0, *QUICK[:-3], "--directed"]
    ok(*arguments, "-o", tmp_path / "whole", "--max-epochs", 3)
    again = [*arguments, "-o", tmp_path / "again", "--max-epochs", 3, "--checkpoint", tmp_path / "c", "--resume"]
    first = ok(*again)
    assert besides_reading(first.stderr) == [
        f"no checkpoint at '{tmp_path / 'c'}' yet; training starts with the first epoch."
    ]
    assert besides_reading(ok(*again).stderr) == []
    one, two = (FisherClassifier.load(tmp_path / name).net_.state_dict() for name in ("whole", "again"))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("kind", [FisherClassifier, Network, Training])
def test_docstrings_have_the_defaults_of_the_signature(kind):
    file = "estimators/classifier.py" if kind is FisherClassifier else "nn/settings.py"
    described, signature = documented(file, kind.__name__), inspect.signature(kind).parameters
    assert list(described) == list(signature)
    for name, entry in described.items():
        shown = (entry.default or "None").replace("5e-4", "0.0005")
        assert shown == str(signature[name].default), name


def test_every_parameter_is_an_option():
    paths = {setting.path for setting in CLASSIFIER}
    parameters = set(inspect.signature(FisherClassifier).parameters) - {"random_state", "n_jobs", "verbose"}
    held = {f"network__{name}" for name in Network().get_params()}
    held |= {f"training__{name}" for name in Training().get_params()}
    assert paths == parameters - {"network", "training"} | held


def test_the_suffixes_are_those_of_the_library():
    from fishergraph.nn import history

    assert importlib.import_module("fishergraph.cli.train").LOGS == history.SUFFIXES


# --- labels ---------------------------------------------------------------------------------------------


def train_on(tmp_path, topics, *options):
    """Predictions, as text, of a model that was trained on these labels."""
    NODES.drop(columns=["part", "topic"]).assign(topic=topics).to_csv(tmp_path / "nodes.csv", index=False)
    arguments = [tmp_path / "edges.csv", "-n", tmp_path / "nodes.csv"]
    EDGES.to_csv(arguments[0], index=False)
    ok(
        "train",
        *arguments,
        "--label",
        "topic",
        "-o",
        tmp_path / "m",
        *SMALL,
        "--max-epochs",
        30,
        "--undirected",
        *options,
    )
    ok("predict", *arguments, "--model", tmp_path / "m", "-o", tmp_path / "p.csv")
    return pd.read_csv(tmp_path / "p.csv", dtype=str, keep_default_na=False)["prediction"].to_numpy()


def test_minus_one_is_a_class_like_any_other(tmp_path):
    truth = np.arange(N) % 3 - 1
    found = train_on(tmp_path, truth, "--seed", 0)
    assert record_of(tmp_path / "m")["classes"] == ["-1", "0", "1"]
    assert set(found) == {"-1", "0", "1"}
    assert (found == truth.astype(str)).mean() > 0.7
    classes = FisherClassifier.load(tmp_path / "m").classes_
    assert classes.tolist() == [-1, 0, 1]
    assert classes.dtype == np.int64


@pytest.mark.parametrize(
    "words",
    [
        ["01", "1", "2"],
        ["2024-01-01", "2024-01-02", "2024-02-01"],
        ["12:30", "12:31", "9:00"],
        ["12345678901234567890", "12345678901234567891", "7"],
        ["False", "True", "maybe"],
        ["False", "True"],
    ],
    ids=lambda words: words[0],
)
def test_classes_are_kept_as_they_are_written(tmp_path, words):
    truth = np.array(words)[np.arange(N) % len(words)]
    found = train_on(tmp_path, truth, "--seed", 0)
    assert record_of(tmp_path / "m")["classes"] == sorted(words)
    assert set(found) == set(words)


def test_usual_marks_are_no_labels_in_any_column(tmp_path):
    for words in (["4", "7", "9"], ["ape", "bee", "cat"]):
        topics = ["NA", "null", "NaN", "", *(words[k % 3] for k in range(4, N))]
        train_on(tmp_path, topics, "--seed", 0)
        assert record_of(tmp_path / "m")["classes"] == words


def test_the_masks_of_an_npz_split_it(tmp_path):
    row = {name: k for k, name in enumerate(NODES["id"])}
    ends = np.array([[row[name] for name in EDGES[column]] for column in ("source", "target")])
    y = np.arange(N) % 3
    masks = {f"{part}_mask": (NODES["part"] == part).to_numpy() for part in ("train", "val", "test")}
    X = NODES[[f"f{j}" for j in range(4)]].to_numpy()
    np.savez(tmp_path / "g.npz", edge_index=ends, x=X, y=y, **masks)
    arguments = ["train", tmp_path / "g.npz", "--label", "y", "--seed", 0, "--undirected"]
    ok(*arguments, *SMALL, "--max-epochs", 20, "-o", tmp_path / "a")
    record = record_of(tmp_path / "a")
    assert record["input"]["split"] == "train_mask, val_mask, test_mask"
    assert "test_accuracy" in record["results"]
    np.savez(tmp_path / "g.npz", edge_index=ends, x=X, y=np.where(masks["test_mask"], (y + 1) % 3, y), **masks)
    ok(*arguments, *SMALL, "--max-epochs", 20, "-o", tmp_path / "b")
    one, two = (FisherClassifier.load(tmp_path / name).net_.state_dict() for name in "ab")
    assert all(torch.equal(one[name], two[name]) for name in one), "test labels were trained on"
    ok(
        *arguments, *SMALL, "--max-epochs", 20, "-o", tmp_path / "c", "--validation-fraction", 0.5
    )  # goes before the mask
    assert record_of(tmp_path / "c")["parameters"]["training__validation_fraction"] == 0.5
    np.savez(
        tmp_path / "g.npz", edge_index=ends, x=X, y=y, **{name: mask.astype(np.uint8) for name, mask in masks.items()}
    )
    ok(*arguments, *SMALL, "--max-epochs", 20, "-o", tmp_path / "d")
    one, two = (FisherClassifier.load(tmp_path / name).net_.state_dict() for name in "ad")
    assert all(torch.equal(one[name], two[name]) for name in one)
    np.savez(tmp_path / "g.npz", edge_index=ends, x=X, y=y, test_mask=masks["test_mask"])
    ok(*arguments, *SMALL, "--max-epochs", 20, "-o", tmp_path / "e")  # without a train_mask there is no split
    assert record_of(tmp_path / "e")["input"]["split"] is None


def test_na_is_a_class_where_files_have_nulls(files, tmp_path):
    table = NODES.assign(topic=["NA" if k % 2 else "cat" for k in range(N)])
    table.to_csv(tmp_path / "n.csv", index=False)
    table.to_parquet(tmp_path / "n.parquet")
    arguments = ["train", files[0], "--label", "topic", "--drop", "part", *SMALL, "--max-epochs", 2]
    ok(*arguments, "-n", tmp_path / "n.parquet", "-o", tmp_path / "a")
    assert FisherClassifier.load(tmp_path / "a").classes_.tolist() == ["NA", "cat"]
    result = call(*arguments, "-n", tmp_path / "n.csv", "-o", tmp_path / "b")
    assert "column 'topic' of" in result.output
    assert "says 'NA' in some rows" in result.output


# --- failures -------------------------------------------------------------------------------------------


def changed(column, row, value):
    return NODES.assign(**{column: [value if k == row else old for k, old in enumerate(NODES[column])]})


BROKEN = {
    "no label": (NODES.assign(topic=None), [], r"class of at least one row, got none"),
    "label column": (NODES.rename(columns={"topic": "t"}), [], r"no column 'topic'"),
    "continuous": (NODES.assign(topic=NODES["f0"] + 0.123), [], r"hold classes, got numbers such as -?\d\.\d+; bin"),
    "split word": (changed("part", 5, "dev"), ["--split", "part"], r"val, test or nothing, got 'dev' in row 5"),
    "no training row": (NODES.assign(part="test"), ["--split", "part"], r"'train' for some labelled rows, got none"),
    "class in test alone": (
        changed("topic", 31, "dog"),
        ["--split", "part"],
        r"class 'dog' must have a training node, got it in test and not in train",
    ),
    "split not named": (NODES, [], r"part.*--drop"),
    "counts": (NODES, ["--split", "part", "--family", "multinomial"], r"Negative values in data: X must hold counts"),
    "log": (NODES, ["--split", "part", "--log", "rows.txt"], r"must end in .csv, .jsonl"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_input_is_one_sentence(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    nodes, options, pattern = BROKEN[case]
    EDGES.to_csv("edges.csv", index=False)
    nodes.to_csv("nodes.csv", index=False)
    arguments = ["train", "edges.csv", "-n", "nodes.csv", "--label", "topic", "-o", "m", *SMALL, "--directed"]
    if case in ("no label", "label column", "continuous"):
        options = ["--drop", "part"]
    fails(tmp_path, pattern, *arguments, *options)


def test_a_loss_that_is_not_finite(files, tmp_path, monkeypatch):
    from fishergraph.nn.models import FisherNet

    forward = FisherNet.forward
    calls = []

    def poisoned(self, *args, **options):
        calls.append(1)
        return forward(self, *args, **options) * (float("nan") if len(calls) > 6 else 1)

    monkeypatch.setattr(FisherNet, "forward", poisoned)
    result = call(
        "train",
        *files,
        "--label",
        "topic",
        "--split",
        "part",
        "-o",
        tmp_path / "m",
        *QUICK,
        "--seed",
        0,
        "--checkpoint",
        tmp_path / "c",
    )
    assert result.exit_code == 1
    (line,) = besides_reading(result.stderr)
    assert re.fullmatch(r"error: the loss must stay finite, got NaN or infinity in epoch 4, .*", line)
    assert not (tmp_path / "m").exists()
    assert (tmp_path / "c").is_file()


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        (["-o", "m"], "--label"),
        (["--label", "topic"], "--output"),
        (["--label", "topic", "-o", "m", "--split", "part", "--validation-fraction", "0.2"], "give one of the two"),
        (["--label", "topic", "-o", "m", "--resume"], "--resume.*checkpoint"),
        (["--label", "topic", "-o", "m", "--checkpoint", "c"], "--checkpoint needs --seed"),
        (["--label", "topic", "-o", "m", "--max-epochs", "0"], "--max-epochs"),
        (["--label", "topic", "-o", "m", "--lr", "0"], "--lr"),
        (["--label", "topic", "-o", "m", "--fan-out", "5,x"], "--fan-out"),
        (["--label", "topic", "-o", "m", "--amp", "int8"], "--amp.*'bf16', 'fp16'.*'int8'"),
        (["--label", "topic", "-o", "m", "--head", "tanh"], "--head.*'nystrom'.*'tanh'"),
        (["--label", "topic", "-o", "m", "--jk", "max"], "--jk.*'cat', 'last'.*'max'"),
        (["--label", "topic", "-o", "m", "--init", "zeros"], "--init.*'data', 'random'.*'zeros'"),
        (["--label", "topic", "-o", "m", "--schedule", "step"], "--schedule.*'cosine', 'plateau'.*'step'"),
        (["--label", "topic", "-o", "m", "--device", "gpu"], "--device.*'cpu'"),
        (["--label", "topic", "-o", "m", "--drop", "x"], "need a node table"),
    ],
)
def test_a_wrong_call(arguments, pattern, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong(pattern, "train", "e.csv", *arguments)
    assert not list(tmp_path.iterdir())


def test_an_npz_that_is_none(tmp_path):
    arguments = ["--label", "y", "-o", tmp_path / "m"]
    fails(
        tmp_path,
        "absent.npz' does not exist",
        "train",
        tmp_path / "absent.npz",
        *arguments,
    )
    (tmp_path / "fake.npz").write_bytes(b"some text")
    fails(tmp_path, "cannot be read", "train", tmp_path / "fake.npz", *arguments)


def test_messages_speak_of_options(files, tmp_path):
    arguments = ["train", *files, "--label", "topic", "--split", "part", "-o", tmp_path / "m", *SMALL]
    fails(tmp_path, "batch", *arguments, "--fan-out", 3)


def test_a_node_file_is_needed(files, tmp_path):
    fails(
        tmp_path,
        "train needs a node file with the column 'topic', got none",
        "train",
        files[0],
        "--label",
        "topic",
        "-o",
        tmp_path / "m",
    )


def test_unwritable_outputs_are_found_before_the_work(files, tmp_path, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("the work began")

    monkeypatch.setattr(importlib.import_module("fishergraph.cli.train"), "make_estimator", never)
    arguments = ["train", *files, "--label", "topic", "--seed", 0]
    for option in ("-o", "--log", "--plot", "--checkpoint"):
        paths = {"-o": tmp_path / "m", option: tmp_path / "absent" / "x.csv"}
        flat = [part for pair in paths.items() for part in pair]
        fails(tmp_path, "the folder of .* does not exist", *arguments, *flat)
    fails(tmp_path, "must end in .png, .svg, .pdf", *arguments, "-o", tmp_path / "m", "--plot", tmp_path / "c.txt")
    fails(tmp_path, "must end in .csv, .jsonl", *arguments, "-o", tmp_path / "m", "--log", tmp_path / "c.txt")
    fails(tmp_path, "choose a shorter one", *arguments, "-o", tmp_path / ("m" * 250))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    fails(tmp_path, "pip install", *arguments, "-o", tmp_path / "m", "--plot", tmp_path / "c.png")
    fails(tmp_path, "every file must have its own path", *arguments, "-o", files[0])
    fails(tmp_path, "every file must have its own path", *arguments, "-o", tmp_path / "m", "--log", tmp_path / "m")


# --- the real command -----------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is not a signal there")
def test_ctrl_c_saves_the_best_model_so_far(files, tmp_path):
    line = [sys.executable, "-m", "fishergraph", "train", "edges.csv", "-n", "nodes.csv", "--label", "topic", "-o", "m"]
    line += ["--split", "part", *SMALL, "--max-epochs", "1000000", "--patience", "1000000", "--log", "rows.csv"]
    process = subprocess.Popen(
        [*line, "--directed"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    log = tmp_path / "rows.csv"
    try:
        end = monotonic() + 60
        while monotonic() < end and not (log.exists() and log.read_text().count("\n") > 4):
            sleep(0.05)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, stderr
    record = record_of(tmp_path / "m")
    assert record["results"]["interrupted"] is True
    best = record["results"]["best_epoch"]
    assert besides_reading(stderr) == [f"interrupted; the best model so far, of epoch {best}, is in 'm'."]
    assert stdout.startswith("m: 3 classes")
    assert FisherClassifier.load(tmp_path / "m").history_.best_epoch == best
    assert sorted(os.listdir(tmp_path)) == ["edges.csv", "m", "m.run.json", "nodes.csv", "rows.csv"]


def test_help_starts_light():
    code = (
        "import sys; from fishergraph.cli import app; from typer.testing import CliRunner; "
        "assert all(CliRunner().invoke(app, [name, '--help']).exit_code == 0 for name in ('train', 'predict')); "
        "print([m for m in ('numba', 'sklearn', 'scipy', 'numpy', 'pyarrow', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
