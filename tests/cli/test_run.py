"""`fishergraph run` and `fishergraph simulate`: rows, figures, what is there is not run again, and wrong calls."""

from __future__ import annotations

import sys

import pytest

from commands import call, fails, ok, wrong
from fishergraph.cli.run import FIGURES
from fishergraph.experiments.rows import read_rows
from fishergraph.experiments.studies import STUDIES
from fishergraph.plots import FIGURES as SPECS

PNG, PDF = b"\x89PNG\r\n\x1a\n", b"%PDF"


def test_every_figure_has_a_command_and_every_study_a_figure():
    assert set(FIGURES) == set(SPECS)
    assert {study for spec in SPECS.values() for study in spec.studies} == set(STUDIES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_from_nothing_and_then_from_its_rows(tmp_path, name):
    folder = tmp_path / "new" / "folder"
    result = ok("run", name, "--quick", "-o", folder)
    assert str(folder / f"{name}.png") in result.stdout
    assert (folder / f"{name}.png").read_bytes().startswith(PNG)
    assert (folder / f"{name}.pdf").read_bytes().startswith(PDF)
    rows = (folder / "simulations.jsonl").read_bytes()
    ok("run", name, "--quick", "-o", folder)
    assert (folder / "simulations.jsonl").read_bytes() == rows


def test_a_study_prints_its_table(tmp_path):
    result = ok("simulate", "shift", "--quick", "-o", tmp_path)
    assert "exact" in result.stdout
    assert len(result.stdout.splitlines()) == 1 + 4 * len(STUDIES["shift"].quick().values)  # pyright: ignore
    studies = {row["study"] for row in read_rows(tmp_path / "simulations.jsonl")}
    assert studies == {"shift", "divergence"}


def test_an_unknown_name_lists_the_known(tmp_path):
    wrong("a study must be one of 'modes', .* got 'shfit'", "simulate", "shfit", "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    result = call("run", "figure9")
    assert result.exit_code == 2
    text = " ".join(result.stderr.replace("│", " ").split())
    assert "an experiment must be one of figure2, figure3" in text
    assert "got 'figure9'" in text


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "results").write_text("mine")
    fails(tmp_path, "the output must be a folder", "run", "figure2", "--quick", "-o", tmp_path / "results")


def test_without_matplotlib_the_line_to_type_and_no_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    fails(tmp_path, r"pip install .*fishergraph\[plots\]", "run", "figure2", "--quick", "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()
