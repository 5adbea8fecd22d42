"""`fishergraph demo`: it runs as it is, its files are what it says, and it does without Matplotlib."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fishergraph import FisherEmbedding, load_graph
from fishergraph.cli import app

runner = CliRunner()
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder and the text of one run."""
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder[v2]"  # brackets are markup to some printers
    result = runner.invoke(app, ["demo", "-o", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result.stdout


def test_the_demo_says_what_it_did(demo):
    folder, text = demo
    for step in ("load", "embed, without labels", "score a linear probe", "write the embedding", "draw the picture"):
        assert re.search(rf"{step} +\d+\.\d s", text)
    accuracy = re.search(r"(\d\d\.\d)% of 1,000 test papers right \(validation (\d\d\.\d)%\), from 140 labels", text)
    assert accuracy is not None
    assert min(map(float, accuracy.groups())) > 78
    assert "fishergraph embed edges.csv --nodes nodes.csv" in text
    assert "from fishergraph import FisherEmbedding" in text
    assert all(str(path) in text for path in folder.iterdir())


def test_the_files_of_the_demo(demo):
    folder, _ = demo
    assert sorted(path.name for path in folder.iterdir()) == ["cora.png", "cora_embedding.parquet"]
    assert (folder / "cora.png").read_bytes().startswith(PNG)
    cora = load_graph("cora")
    table = pd.read_parquet(folder / "cora_embedding.parquet")
    assert table["id"].tolist() == cora.ids.tolist()
    Z = FisherEmbedding(random_state=0).fit_transform(cora.X, graph=cora.graph)
    np.testing.assert_array_equal(np.stack(table["embedding"]), Z)


def test_without_matplotlib_all_but_the_picture(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["demo", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "pip install 'fishergraph[plots]'" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["cora_embedding.parquet"]


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "demo").write_text("mine")
    result = runner.invoke(app, ["demo", "-o", str(tmp_path / "demo")])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the output must be a folder")
    assert result.stdout == ""
    assert (tmp_path / "demo").read_text() == "mine"


def test_the_class_names_are_those_of_cora():
    cora = load_graph("cora")
    sizes = dict(zip(cora.class_names, np.bincount(cora.y).tolist(), strict=True))
    # The published class sizes of Cora.
    assert sizes == {
        "Theory": 351,
        "Reinforcement learning": 217,
        "Genetic algorithms": 418,
        "Neural networks": 818,
        "Probabilistic methods": 426,
        "Case-based reasoning": 298,
        "Rule learning": 180,
    }
