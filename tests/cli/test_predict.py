"""`fishergraph predict`: files and a trained model in, a class for every node out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from commands import fails, ok, record_of, wrong
from labelled_graph import NODES, SMALL, TOPIC, N, write_tables

pytest.importorskip("torch_geometric")

from fishergraph import FisherEmbedding
from fishergraph.cli.labels import write_predictions
from fishergraph.io.npz import SUFFIXES
from fishergraph.io.tables import read_columns


@pytest.fixture
def files(tmp_path):
    return write_tables(tmp_path)


@pytest.fixture
def trained(files, tmp_path):
    """A model that was trained on the files, without the column `part`."""
    model = tmp_path / "model.safetensors"
    ok(
        "train",
        *files,
        "--label",
        "topic",
        "--drop",
        "part",
        "-o",
        model,
        "--seed",
        0,
        *SMALL,
        "--max-epochs",
        30,
        "-q",
    )
    return model


def test_predictions_keep_the_ids_and_columns_are_found_by_name(files, trained, tmp_path):
    out = tmp_path / "p.csv"
    result = ok("predict", *files, "--model", trained, "-o", out)
    table = pd.read_csv(out)
    assert list(table.columns) == ["id", "prediction"]
    assert table["id"].tolist() == NODES["id"].tolist()
    assert (table["prediction"] == TOPIC).mean() > 0.8
    assert "48 nodes" in result.stdout
    record = record_of(out)
    assert record["model"]["used"] == str(trained)
    assert record["output"] == {"path": str(out), "rows": N, "proba": False}
    shuffled = NODES[["part", "f2", "id", "f0", "f3", "f1"]].sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "nodes.csv", index=False)  # no label at all, and another order
    ok("predict", *files, "--model", trained, "-o", tmp_path / "q.csv", "-q")
    again = pd.read_csv(tmp_path / "q.csv").set_index("id").loc[table["id"]]
    assert again["prediction"].tolist() == table["prediction"].tolist()


def test_a_model_asks_for_its_features(files, trained, tmp_path):
    NODES.drop(columns="f2").to_csv(tmp_path / "nodes.csv", index=False)
    arguments = ["predict", *files, "--model", trained, "-o", tmp_path / "p.csv"]
    fails(
        tmp_path,
        r"must be the 4 that '.*' was fitted with \('f2' among them\), got 'f0', 'f1', 'f3'; rename columns\.$",
        *arguments,
    )


def test_other_models(files, tmp_path):
    FisherEmbedding(n_layers=1, dim=4).fit(np.eye(4)).save(tmp_path / "e")
    arguments = ["predict", *files, "-o", tmp_path / "p.csv", "--model"]
    fails(tmp_path, "must hold a FisherClassifier, got a FisherEmbedding", *arguments, tmp_path / "e")
    fails(tmp_path, "a model file is expected at", *arguments, tmp_path / "absent")
    fails(tmp_path, "truncated or foreign", *arguments, files[0])


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("chances", [False, True])
def test_predictions_in_every_format(tmp_path, suffix, chances):
    ids, predicted, classes = np.array([7, 9]), np.array(["no", "yes"], dtype=object), np.array(["no", "yes"])
    proba = np.array([[0.75, 0.25], [0.5, 0.5]]) if chances else None
    path = tmp_path / f"p{suffix}"
    write_predictions(path, ids, predicted, classes, proba)
    if suffix == ".npz":
        with np.load(path) as file:
            found = {key: file[key].tolist() for key in file.files}
        more = {"classes": ["no", "yes"], "proba": [[0.75, 0.25], [0.5, 0.5]]} if chances else {}
        assert found == {"ids": [7, 9], "prediction": ["no", "yes"], **more}
    else:
        table = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path, sep=SUFFIXES[suffix])
        more = {"p_no": [0.75, 0.5], "p_yes": [0.25, 0.5]} if chances else {}
        assert table.to_dict("list") == {"id": [7, 9], "prediction": ["no", "yes"], **more}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_predictions_are_read_back_as_they_were_written(tmp_path, suffix):
    ids, predicted = np.array(["NA", "7", "null"]), np.array(["nan", "NA", "x,y"])
    write_predictions(tmp_path / f"p{suffix}", ids, predicted, predicted, None)
    columns = read_columns(tmp_path / f"p{suffix}", ["ids" if suffix == ".npz" else "id", "prediction"])
    assert columns == [ids.tolist(), predicted.tolist()]


def test_a_wrong_call(tmp_path):
    wrong("--model", "predict", "e.csv", "-o", "p.csv")
    wrong("need a node table", "predict", "e.csv", "-o", "p.csv", "--model", "m", "--id-column", "id")
    fails(tmp_path, "must end in .csv", "predict", "e.csv", "-o", tmp_path / "p.docx", "--model", "m")
