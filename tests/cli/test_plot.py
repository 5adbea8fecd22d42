"""`fishergraph plot`: pictures of embeddings and trainings, columns matched by id, and calls that are wrong."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from commands import fails, ok, wrong
from fishergraph import plots
from fishergraph.io.embedding_file import write_embedding
from scale.stores import random_store

PNG = b"\x89PNG"
rng = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path):
    """An embedding of 30 nodes, and a node table that lacks two of them, lists another and has another order."""
    ids = [f"n{k:02}" for k in range(30)]
    write_embedding(tmp_path / "z.parquet", ids, rng.standard_normal((30, 4)).astype(np.float32))
    columns = {"topic": ["ant", "bee"] * 15, "year": range(1990, 2020), "score": np.linspace(0.5, 3, 30)}
    table = pd.DataFrame({"id": ids, **columns, "day": [f"2020-01-{k + 1:02}" for k in range(30)]})
    other = pd.DataFrame([{"id": "n99", "topic": "cat", "year": 1, "score": 9.0, "day": "2021-01-01"}])
    pd.concat([other, table.iloc[2:].iloc[::-1]]).to_csv(tmp_path / "nodes.csv", index=False)
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """The arguments of the calls of `embedding_map`."""
    calls = []

    def draw(Z, **options):
        calls.append({"Z": np.asarray(Z), **options})
        return plots.maps.embedding_map(Z, **options)

    monkeypatch.setattr(plots, "embedding_map", draw)
    return calls


def test_a_map_without_colours(folder):
    text = ok("plot", folder / "z.parquet", "--method", "pca", "-o", folder / "map.png").stdout
    assert "map.png: 30 nodes, in " in text
    assert (folder / "map.png").read_bytes().startswith(PNG)
    assert sorted(path.name for path in folder.iterdir()) == ["map.png", "nodes.csv", "z.parquet"]


def test_a_column_is_matched_by_the_ids(folder, asked):
    arguments = ("--nodes", folder / "nodes.csv", "--method", "pca", "-o", folder / "map.png")
    text = ok("plot", folder / "z.parquet", "--labels", "topic", *arguments).stdout
    assert "30 nodes by topic, 2 of them grey" in text
    (call,) = asked
    assert call["labels"] == [None, None, *["ant", "bee"] * 14]
    assert call["Z"].shape == (30, 4)


@pytest.mark.parametrize(("column", "flag"), [("year", "--colour"), ("score", "--color"), ("day", "--colour")])
def test_numbers_and_dates_of_a_text_file(folder, asked, column, flag):
    ok(
        "plot",
        folder / "z.parquet",
        "-n",
        folder / "nodes.csv",
        flag,
        column,
        "--method",
        "pca",
        "-o",
        folder / "m.pdf",
    )
    (call,) = asked
    found = plots.columns.as_column(call["colour"], 30, "colour")
    assert found.dates == (column == "day")
    expected = {"year": 1992, "score": 0.5 + 2 * 2.5 / 29, "day": 18264.0}[column]
    np.testing.assert_allclose(found.numbers[:3], [np.nan, np.nan, expected])
    assert call["legend_title"] == column
    assert (folder / "m.pdf").read_bytes().startswith(b"%PDF")


def test_options_are_those_of_the_function(folder, asked):
    options = [
        "--max-classes",
        "3",
        "--scale",
        "log",
        "--cmap",
        "magma",
        "--size",
        "2.5",
        "--sample",
        "20",
        "--seed",
        "5",
        "--title",
        "T",
        "--missing",
        "1992",
    ]
    where = ("-n", folder / "nodes.csv", "--colour", "year", "--method", "pca", "-o", folder / "m.png")
    assert "20 of 30 nodes by year" in ok("plot", folder / "z.parquet", *where, *options).stdout
    (call,) = asked
    wanted = {
        "max_classes": 3,
        "scale": "log",
        "cmap": "magma",
        "size": 2.5,
        "sample": 20,
        "random_state": 5,
        "title": "T",
    }
    assert {name: call[name] for name in wanted} == wanted
    assert call["missing"] == ["1992", 1992]


def test_the_width_of_the_picture(folder, asked):
    ok("plot", folder / "z.parquet", "--method", "pca", "--width", 6, "-o", folder / "m.svg")
    assert asked[0]["ax"].figure.get_size_inches()[0] == 6


def test_ids_that_are_numbers_in_one_file(tmp_path, asked):
    write_embedding(tmp_path / "z.npz", np.arange(12), np.eye(12, 2))
    pd.DataFrame({"id": [*map(str, range(11)), "eleven"], "topic": list("abcabcabcabc")}).to_csv(tmp_path / "n.csv")
    where = ("-n", tmp_path / "n.csv", "--id-column", "id", "--labels", "topic", "-o", tmp_path / "m.png")
    assert "1 of them grey" in ok("plot", tmp_path / "z.npz", *where).stdout
    assert asked[0]["labels"] == [*"abcabcabcab", None]


def test_a_store(tmp_path, asked):
    from fishergraph import FisherEmbedding

    store, *_ = random_store(tmp_path / "s")
    Z = np.asarray(FisherEmbedding(1, 2, 4, structure=None, random_state=0, n_jobs=1).fit_transform(store))
    for path in (store.path, store.path / "embeddings" / "default"):
        ok("plot", path, "--method", "pca", "--sample", 50, "-o", tmp_path / "m.png")
        np.testing.assert_array_equal(asked.pop()["Z"], Z)


def test_a_training(folder):
    rows = pd.DataFrame(
        {"epoch": [1, 2], "loss": [2, 1], "train_accuracy": [0.5, 0.6], "val_accuracy": 0.4, "val_loss": 3}
    )
    rows.to_csv(folder / "log.csv", index=False)
    text = ok("plot", "--training", folder / "log.csv", "--title", "mine", "-o", folder / "c.png").stdout
    assert "c.png: losses and accuracies" in text
    assert (folder / "c.png").read_bytes().startswith(PNG)
    assert not ok("plot", "--training", folder / "log.csv", "-o", folder / "c.svg", "--quiet", "--width", 5).output


@pytest.mark.parametrize(
    ("pattern", "arguments"),
    [
        ("EMBEDDING.*--training", ()),
        ("EMBEDDING.*--training", ("z.parquet", "--training", "log.csv")),
        ("--nodes", ("z.parquet", "--labels", "topic")),
        ("--labels or --colour", ("z.parquet", "--nodes", "nodes.csv")),
        ("--labels and --colour", ("z.parquet", "--nodes", "nodes.csv", "--labels", "topic", "--colour", "year")),
        ("--method", ("--training", "log.csv", "--method", "pca")),
        ("--labels", ("--training", "log.csv", "--labels", "topic")),
        ("--method.*'pca', 'tsne', 'umap'", ("z.parquet", "--method", "t-sne")),
        ("--cmap.*'viridis'", ("z.parquet", "--cmap", "nope")),
        ("--sample", ("z.parquet", "--sample", "some")),
        ("--max-classes", ("z.parquet", "--max-classes", "1")),
        ("--width", ("z.parquet", "--width", "0")),
        ("--width", ("z.parquet", "--width", "nan")),
    ],
)
def test_wrong_calls(folder, monkeypatch, pattern, arguments):
    monkeypatch.chdir(folder)
    wrong(pattern, "plot", *arguments, "-o", "map.png")
    assert not (folder / "map.png").exists()


def test_a_suffix_that_is_no_picture(folder):
    wrong(r"--output.*\.png, \.svg, \.pdf", "plot", folder / "z.parquet", "-o", folder / "map.docx")


def test_failures_leave_no_file(folder, monkeypatch):
    monkeypatch.chdir(folder)
    nodes = ("--nodes", "nodes.csv", "--method", "pca", "-o", "map.png")
    fails(folder, "no column 'topc'.*name 'topic'", "plot", "z.parquet", "--labels", "topc", *nodes)
    fails(folder, r"numbers such as 0\.\d+.*colour", "plot", "z.parquet", "--labels", "score", *nodes)
    fails(folder, "absent.parquet", "plot", "absent.parquet", "-o", "map.png")
    fails(folder, "absent", "plot", "z.parquet", "-o", "absent/map.png")
    fails(folder, "its own path", "plot", "--training", "log.png", "-o", "log.png")
    fails(folder, "train_accuracy", "plot", "--training", "nodes.csv", "-o", "map.png")
    pd.DataFrame({"id": [1, 2], "topic": ["a", "b"]}).to_csv("other.csv", index=False)
    fails(
        folder, "ids of 'other.csv'.*'n00'", "plot", "z.parquet", "-n", "other.csv", "--labels", "topic", "-o", "m.png"
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    fails(folder, r"fishergraph\[plots\]", "plot", "z.parquet", "-o", "map.png")
