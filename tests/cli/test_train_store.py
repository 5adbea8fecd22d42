"""`fishergraph train STORE`: a store and a table of labels in, a model out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from commands import fails, ok, record_of, wrong

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import FisherClassifier, as_graph  # noqa: E402
from fishergraph.scale import Store, write_store  # noqa: E402

N = 120
QUICK = ["--dim", "8", "--n-anchors", "2", "--max-epochs", "8", "--batch-size", "16", "--fan-out", "5", "--seed", "0"]


@pytest.fixture
def store(tmp_path):
    """Two classes that prefer their own members; ids are texts, in an order of their own."""
    rng = np.random.default_rng(0)
    topic = np.arange(N) % 2
    sources, targets = np.nonzero(rng.random((N, N)) < np.where(topic[:, None] == topic, 0.15, 0.01))
    X = (rng.normal(size=(N, 5)) + topic[:, None]).astype(np.float32)
    ids = [f"n{k}" for k in rng.permutation(N)]
    graph = as_graph(np.stack([sources, targets]), n_nodes=N, undirected=True)
    made = write_store(tmp_path / "graph.store", graph, X, ids=ids)
    part = np.where(np.arange(N) < 60, "train", np.where(np.arange(N) < 80, "val", "test"))
    table = pd.DataFrame({"id": ids, "topic": np.array(["x", "y"])[topic], "part": part})
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "labels.csv", index=False)
    return made


def test_labels_meet_the_nodes_of_the_store(store, tmp_path):
    model = tmp_path / "m.safetensors"
    line = ["train", store.path, "-n", tmp_path / "labels.csv", "--label", "topic", "--split", "part", "-o", model]
    ok(*line, *QUICK, "--memory", "16G")
    record = record_of(model)
    assert record["results"]["test_accuracy"] > 0.8
    assert record["input"]["n_nodes"] == N
    loaded = FisherClassifier.load(model)
    predicted = loaded.predict(Store(store.path, name="classes"))
    table = pd.read_csv(tmp_path / "labels.csv").set_index("id")["topic"]
    assert (table[np.asarray(store.ids)].to_numpy() == predicted).mean() > 0.8
    assert (store.path / "embeddings" / "classes").is_dir()


def test_nodes_that_the_table_leaves_out_have_no_label(store, tmp_path):
    table = pd.read_csv(tmp_path / "labels.csv").head(70)[["id", "topic"]]
    table.to_csv(tmp_path / "some.csv", index=False)
    line = ["train", store.path, "-n", tmp_path / "some.csv", "--label", "topic", "-o", tmp_path / "m", "--name", "t"]
    ok(*line, *QUICK)
    assert len(FisherClassifier.load(tmp_path / "m").classes_) == 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda table: table.assign(id=["no", *table["id"][1:]]), "'no'"),
        (lambda table: table.assign(id=[table["id"].iloc[1], *table["id"][1:]]), "distinct"),
    ],
)
def test_ids_that_do_not_fit(store, tmp_path, change, word):
    table = pd.read_csv(tmp_path / "labels.csv")
    change(table).to_csv(tmp_path / "bad.csv", index=False)
    line = ["train", store.path, "-n", tmp_path / "bad.csv", "--label", "topic", "-o", tmp_path / "m", *QUICK]
    fails(tmp_path, word, *line)


def test_options_that_a_store_does_not_have(store, tmp_path):
    line = ["train", store.path, "-n", tmp_path / "labels.csv", "--label", "topic", "-o", tmp_path / "m"]
    wrong("--mode", *line, "--mode", "probe")
    wrong("--undirected", *line, "--undirected")
    wrong("--nodes", "train", store.path, "--label", "topic", "-o", tmp_path / "m")
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    wrong("--memory", "train", tmp_path / "e.csv", *line[2:], "--memory", "1G")
    fails(tmp_path, "batch_size|--batch-size", *line)
