"""`fishergraph lab`: rows, tables and figures, lists of words, interrupted runs and wrong calls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from commands import call, fails, ok, wrong
from fishergraph.lab.cli import repeat_options
from fishergraph.lab.experiments.plan import by_key, status
from fishergraph.lab.figures import FIGURES, studies_of
from fishergraph.lab.rows import read_rows, row_key
from fishergraph.lab.studies import STUDIES
from small_table import DATASET, data_home

PNG, PDF = b"\x89PNG\r\n\x1a\n", b"%PDF"
CHEAP = ["--methods", "wwl", "label-propagation"]


@pytest.fixture
def options(tmp_path):
    (tmp_path / "data").mkdir()
    home = data_home(tmp_path / "data")
    return ["--datasets", DATASET, "--data", home, "--jobs", 1, "--quick", "-o", tmp_path / "results"]


def test_an_option_is_repeated_for_each_of_its_words():
    many = {"--datasets"}
    assert list(repeat_options(["--datasets", "a", "b,c", "--quick", "d"], many)) == [
        "--datasets",
        "a",
        "--datasets",
        "b",
        "--datasets",
        "c",
        "--quick",
        "d",
    ]
    assert list(repeat_options(["--datasets", "--quick"], many)) == ["--datasets", "--quick"]
    assert list(repeat_options(["-o", "x", "--datasets"], many)) == ["-o", "x", "--datasets"]


@pytest.mark.slow
def test_a_quick_run_leaves_rows_and_tables(options, tmp_path):
    folder = tmp_path / "results"
    result = ok("lab", "run", "table1", *CHEAP, *options)
    assert "| WWL |" in result.output
    assert "wwl on citeseer: validation" in result.stderr
    rows = read_rows(folder / "table1.jsonl")
    assert len({row_key(row) for row in rows}) == len(rows) == (2 + 2) + 2
    tables = {path.suffix: path.read_text() for path in folder.glob("table1.*")}
    assert {".md", ".tex", ".csv"} <= set(tables)
    assert tables[".md"] in result.output
    before = (folder / "table1.jsonl").read_bytes()
    ok("lab", "run", "table1", *CHEAP, *options)
    assert (folder / "table1.jsonl").read_bytes() == before
    (folder / "table1.md").unlink()
    assert "A quick run" in tables[".md"]
    fails(tmp_path, "--quick", "lab", "report", "table1", "--results", folder)
    folder.rename(tmp_path / "quick")  # as it is beside the whole table
    fails(tmp_path, "--quick", "lab", "report", "table1", "--results", tmp_path)
    (tmp_path / "quick").rename(folder)
    ok("lab", "report", "table1", "--results", folder, "--quick")
    assert (folder / "table1.md").read_text() == tables[".md"]
    only = ok("lab", "report", "table1", "--results", folder, "--quick", "--methods", "wwl")
    assert "Label Propagation" not in only.output


def test_unknown_names_list_the_known_ones(options, tmp_path):
    for command in ("run", "report"):
        (tmp_path / "results").mkdir(exist_ok=True)
        where = ["lab", command, "table1", "-o", tmp_path / "results"]
        wrong("'wwl', .* got 'fei'", *where, "--methods", "wwl", "fei")
        wrong("'cora', .* got 'core'", *where, "--datasets", "cora", "core")
        wrong("'table1'.* got 'table9'", "lab", command, "table9")


def test_an_option_of_another_experiment_is_refused(tmp_path):
    wrong("--methods", "lab", "run", "figure4", "--methods", "fie", "-o", tmp_path / "new")
    wrong("--jobs", "lab", "run", "figure2", "--jobs", 2, "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_report_without_rows_says_how_to_get_them(tmp_path):
    for name in ("table1", "figure2", "figure4", "figure5"):
        fails(tmp_path, f"lab run {name}", "lab", "report", name, "-o", tmp_path)


def test_a_report_makes_no_folder(tmp_path):
    for name in ("table1", "figure4", "figure5"):
        fails(tmp_path, "folder", "lab", "report", name, "-o", tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_the_committed_rows_are_all_that_the_documented_command_needs(tmp_path, monkeypatch):
    """No column of `run table1` is left to run, and a part of the table leaves its files alone."""
    from fishergraph.lab import commands

    committed = Path(__file__).parents[2] / "results"
    if not (committed / "table1.jsonl").is_file():
        pytest.skip("needs the rows of the repository")
    (tmp_path / "table1.jsonl").write_bytes((committed / "table1.jsonl").read_bytes())

    def fill(columns, path, *args, **options):
        rows = by_key(read_rows(path))
        assert len(columns) == 3 * 13
        assert all(status(column, rows).finished for column in columns)

    monkeypatch.setattr(commands, "run_columns", fill)
    ok("lab", "run", "table1", "--datasets", "cora", "citeseer", "pubmed", "-o", tmp_path)
    for suffix in (".md", ".tex", ".csv"):
        assert (tmp_path / f"table1{suffix}").read_text() == (committed / f"table1{suffix}").read_text()
        (tmp_path / f"table1{suffix}").unlink()
    assert "| WWL |" in ok("lab", "report", "table1", "--methods", "wwl", "-o", tmp_path).output
    assert os.listdir(tmp_path) == ["table1.jsonl"]


@pytest.mark.slow
def test_figure_5_is_drawn_from_its_rows(tmp_path, monkeypatch):
    pytest.importorskip("torch_geometric")
    from fishergraph.lab.studies import maps

    monkeypatch.setattr(maps, "project", lambda Z, random_state: Z[:, :2])  # t-SNE itself takes its time
    ok("lab", "run", "figure5", "--quick", "-o", tmp_path)
    rows = read_rows(tmp_path / "figure5.jsonl")
    assert [row["parameters"]["method"] for row in rows] == ["gat", "fie-supervised", "fie"]
    assert all(np.shape(row["values"]["coordinates"]) == (2708, 2) for row in rows)
    assert {row["values"]["width"] for row in rows} == {64}
    (tmp_path / "figure5.pdf").unlink()
    ok("lab", "report", "figure5", "--quick", "-o", tmp_path)
    assert (tmp_path / "figure5.pdf").stat().st_size > 2000


def test_a_folder_without_rights_or_that_is_a_file(options, tmp_path):
    (tmp_path / "file").write_text("")
    fails(tmp_path, "folder", "lab", "run", "table1", *CHEAP, *options, "-o", tmp_path / "file")


def test_a_wrong_device(options, tmp_path):
    (tmp_path / "results").mkdir()
    wrong("device .*'gpu'", "lab", "run", "table1", *CHEAP, *options, "--device", "gpu")


@pytest.mark.slow
def test_data_that_cannot_be_read_fail_their_column_only(options, tmp_path):
    (tmp_path / "data" / f"{DATASET}.npz").write_bytes(b"half a file")
    result = call("lab", "run", "table1", *CHEAP, *options)
    assert result.exit_code == 1
    assert "got 2 that failed: " in result.stderr
    assert "run the same command again" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals to a group of processes")
def test_ctrl_c_leaves_a_state_to_resume_from(options, tmp_path):
    path = tmp_path / "results" / "table1.jsonl"
    command = ["lab", "run", "table1", "--methods", "fie", "wwl", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "fishergraph", *map(str, command)],
        start_new_session=True,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    end = time.monotonic() + 120
    while not (path.exists() and path.read_bytes().count(b"\n")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output.splitlines()[-1].startswith("interrupted; the rows so far are in")
    assert "Traceback" not in output
    kept = read_rows(path)
    assert kept
    ok(*command)
    rows = read_rows(path)
    assert rows[: len(kept)] == kept
    assert len({row_key(row) for row in rows}) == len(rows) == (4 + 2) + (2 + 2)


@pytest.mark.slow
def test_figure_4_is_drawn_from_the_rows_of_both_modes(options, tmp_path):
    pytest.importorskip("torch_geometric")
    folder: Path = tmp_path / "results"
    ok("lab", "run", "figure4", *options)
    for suffix in ("png", "pdf"):
        assert (folder / f"figure4-{DATASET}.{suffix}").stat().st_size > 2000  # a part of the figure
    stages = [row["parameters"]["stage"] for row in read_rows(folder / "table1.jsonl")]
    assert "components" in stages
    assert all(
        ("test" in row["values"]) == (row["parameters"]["stage"] == "final")
        for row in read_rows(folder / "table1.jsonl")
    )
    (folder / f"figure4-{DATASET}.png").unlink()
    ok("lab", "report", "figure4", "--datasets", DATASET, "--quick", "-o", folder)
    assert (folder / f"figure4-{DATASET}.png").exists()
    assert not (folder / "figure4.png").exists()


# --- studies ----------------------------------------------------------------------------------------------


def test_every_study_has_a_figure():
    assert {study for panels in FIGURES.values() for study in studies_of(panels)} == set(STUDIES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_from_nothing_and_then_from_its_rows(tmp_path, name):
    folder = tmp_path / "new" / "folder"
    result = ok("lab", "run", name, "--quick", "-o", folder)
    assert str(folder / f"{name}.png") in result.stdout
    assert (folder / f"{name}.png").read_bytes().startswith(PNG)
    assert (folder / f"{name}.pdf").read_bytes().startswith(PDF)
    rows = (folder / "simulations.jsonl").read_bytes()
    ok("lab", "report", name, "--quick", "-o", folder)
    ok("lab", "run", name, "--quick", "-o", folder)
    assert (folder / "simulations.jsonl").read_bytes() == rows


def test_a_study_prints_its_table(tmp_path):
    result = ok("lab", "simulate", "shift", "--quick", "-o", tmp_path)
    assert "exact" in result.stdout
    assert len(result.stdout.splitlines()) == 1 + 4 * len(STUDIES["shift"].quick().values)  # pyright: ignore
    studies = {row["study"] for row in read_rows(tmp_path / "simulations.jsonl")}
    assert studies == {"shift", "divergence"}


def test_an_unknown_study_or_figure_lists_the_known(tmp_path):
    wrong("'modes', .* got 'shfit'", "lab", "simulate", "shfit", "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    wrong("'figure2', 'figure3', .* got 'figure9'", "lab", "run", "figure9")


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "results").write_text("mine")
    fails(tmp_path, "folder", "lab", "run", "figure2", "--quick", "-o", tmp_path / "results")


def test_without_matplotlib_the_line_to_type_and_no_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    fails(tmp_path, r"pip install .*fishergraph\[plots\]", "lab", "run", "figure2", "--quick", "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()


# --- the command itself -----------------------------------------------------------------------------------


def test_help_lists_the_laboratory_without_importing_it():
    code = r"""
import sys
from typer.testing import CliRunner
from fishergraph.cli import app
shown = CliRunner().invoke(app, ["--help"]).output
print("\u2502 lab " in shown, [name for name in sys.modules if name.startswith("fishergraph.lab")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"
    assert all(name in ok("lab", "--help").stdout for name in ("run", "report", "simulate"))
    assert all(name in ok("lab", "run", "--help").stdout for name in (*FIGURES, "table1", "figure4", "figure5"))
