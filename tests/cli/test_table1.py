"""`fishergraph run table1`, `report table1`, `run figure4`: lists of words, tables on disk, an interrupted run."""

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
from fishergraph.cli.lists import _repeated
from fishergraph.experiments.plan import by_key, status
from fishergraph.experiments.rows import read_rows, row_key
from small_table import DATASET, data_home

CHEAP = ["--methods", "wwl", "label-propagation"]


@pytest.fixture
def options(tmp_path):
    (tmp_path / "data").mkdir()
    home = data_home(tmp_path / "data")
    return ["--datasets", DATASET, "--data", home, "--jobs", 1, "--quick", "-o", tmp_path / "results"]


def test_words_of_an_option_are_repeated():
    many = {"--datasets"}
    assert list(_repeated(["--datasets", "a", "b,c", "--quick", "d"], many)) == [
        "--datasets", "a", "--datasets", "b", "--datasets", "c", "--quick", "d",
    ]  # fmt: skip
    assert list(_repeated(["--datasets", "--quick"], many)) == ["--datasets", "--quick"]
    assert list(_repeated(["-o", "x", "--datasets"], many)) == ["-o", "x", "--datasets"]


@pytest.mark.slow
def test_a_quick_run_leaves_rows_and_tables(options, tmp_path):
    folder = tmp_path / "results"
    result = ok("run", "table1", *CHEAP, *options)
    assert "| WWL |" in result.output
    assert "wwl on citeseer: validation" in result.stderr
    rows = read_rows(folder / "table1.jsonl")
    assert len({row_key(row) for row in rows}) == len(rows) == (2 + 2) + 2
    tables = {path.suffix: path.read_text() for path in folder.glob("table1.*")}
    assert {".md", ".tex", ".csv"} <= set(tables)
    assert tables[".md"] in result.output
    before = (folder / "table1.jsonl").read_bytes()
    ok("run", "table1", *CHEAP, *options)
    assert (folder / "table1.jsonl").read_bytes() == before
    (folder / "table1.md").unlink()
    assert "A quick run" in tables[".md"]
    fails(tmp_path, r"are those of a quick run, .*; add --quick", "report", "table1", "--results", folder)
    folder.rename(tmp_path / "quick")  # as it is beside the whole table
    fails(tmp_path, r"are those of a quick run, .*; add --quick", "report", "table1", "--results", tmp_path)
    (tmp_path / "quick").rename(folder)
    ok("report", "table1", "--results", folder, "--quick")
    assert (folder / "table1.md").read_text() == tables[".md"]
    only = ok("report", "table1", "--results", folder, "--quick", "--methods", "wwl")
    assert "Label Propagation" not in only.output


def test_unknown_names_list_the_known_ones(options, tmp_path):
    for command in ("run", "report"):
        (tmp_path / "results").mkdir(exist_ok=True)
        where = [command, "table1", "-o", tmp_path / "results"]
        wrong(r"a method must be one of 'wwl', .* got 'fei'", *where, "--methods", "wwl", "fei")
        wrong(r"a dataset must be one of 'cora', .* got 'core'", *where, "--datasets", "cora", "core")
    wrong(r"an experiment must be one of .*table1.* got 'table9'", "run", "table9")
    wrong(r"an experiment must be one of table1, figure4.* got 'table9'", "report", "table9")


def test_a_report_without_rows_says_how_to_get_them(tmp_path):
    fails(
        tmp_path,
        r"must hold a finished column, got none; use fishergraph run table1",
        "report",
        "table1",
        "-o",
        tmp_path,
    )
    fails(tmp_path, r"use fishergraph run figure4", "report", "figure4", "-o", tmp_path)
    fails(tmp_path, r"must hold all maps of Figure 5, got some missing", "report", "figure5", "-o", tmp_path)


def test_a_report_makes_no_folder(tmp_path):
    for name in ("table1", "figure4", "figure5"):
        fails(tmp_path, "the results must be a folder, got none at", "report", name, "-o", tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_the_committed_rows_are_all_that_the_documented_command_needs(tmp_path, monkeypatch):
    """No column of `run table1` is left to run, and a part of the table leaves its files alone."""
    import fishergraph.cli.table1 as table1

    committed = Path(__file__).parents[2] / "results"
    if not (committed / "table1.jsonl").is_file():
        pytest.skip("needs the rows of the repository")
    (tmp_path / "table1.jsonl").write_bytes((committed / "table1.jsonl").read_bytes())

    def fill(columns, path, *args, **options):
        rows = by_key(read_rows(path))
        assert len(columns) == 3 * 13
        assert all(status(column, rows).finished for column in columns)

    monkeypatch.setattr(table1, "_fill", fill)
    ok("run", "table1", "--datasets", "cora", "citeseer", "pubmed", "-o", tmp_path)
    for suffix in (".md", ".tex", ".csv"):
        assert (tmp_path / f"table1{suffix}").read_text() == (committed / f"table1{suffix}").read_text()
        (tmp_path / f"table1{suffix}").unlink()
    assert "| WWL |" in ok("report", "table1", "--methods", "wwl", "-o", tmp_path).output
    assert os.listdir(tmp_path) == ["table1.jsonl"]


@pytest.mark.slow
def test_figure_5_is_drawn_from_its_rows(tmp_path, monkeypatch):
    pytest.importorskip("torch_geometric")
    from fishergraph.experiments import tsne

    monkeypatch.setattr(tsne, "tsne_map", lambda Z, seed: Z[:, :2])  # t-SNE itself takes its time
    ok("run", "figure5", "--quick", "-o", tmp_path)
    rows = read_rows(tmp_path / "figure5.jsonl")
    assert [row["parameters"]["method"] for row in rows] == ["gat", "fie-supervised", "fie"]
    assert all(np.shape(row["values"]["coordinates"]) == (2708, 2) for row in rows)
    assert {row["values"]["width"] for row in rows} == {64}
    (tmp_path / "figure5.pdf").unlink()
    ok("report", "figure5", "--quick", "-o", tmp_path)
    assert (tmp_path / "figure5.pdf").stat().st_size > 2000


def test_a_folder_without_rights_or_that_is_a_file(options, tmp_path):
    (tmp_path / "file").write_text("")
    fails(tmp_path, "must be a folder, got the file", "run", "table1", *CHEAP, *options, "-o", tmp_path / "file")


def test_a_device_that_is_none(options, tmp_path):
    (tmp_path / "results").mkdir()
    wrong("device must be", "run", "table1", *CHEAP, *options, "--device", "gpu")


@pytest.mark.slow
def test_data_that_cannot_be_read_fail_their_column_only(options, tmp_path):
    (tmp_path / "data" / f"{DATASET}.npz").write_bytes(b"half a file")
    result = call("run", "table1", *CHEAP, *options)
    assert result.exit_code == 1
    assert "got 2 that failed: " in result.stderr
    assert "mend the cause and run the same command again" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals to a group of processes")
def test_ctrl_c_leaves_a_state_to_resume_from(options, tmp_path):
    path = tmp_path / "results" / "table1.jsonl"
    command = ["run", "table1", "--methods", "fie", "wwl", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "fishergraph", *map(str, command)], start_new_session=True, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, text=True,
    )  # fmt: skip
    end = time.monotonic() + 120
    while not (path.exists() and path.read_bytes().count(b"\n")):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.splitlines()[-1].startswith("interrupted; the rows so far are in")
    assert "Traceback" not in told
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
    ok("run", "figure4", *options)
    for suffix in ("png", "pdf"):
        assert (folder / f"figure4-{DATASET}.{suffix}").stat().st_size > 2000  # a part of the figure
    stages = [row["parameters"]["stage"] for row in read_rows(folder / "table1.jsonl")]
    assert "components" in stages
    assert all(
        ("test" in row["values"]) == (row["parameters"]["stage"] == "final")
        for row in read_rows(folder / "table1.jsonl")
    )
    (folder / f"figure4-{DATASET}.png").unlink()
    ok("report", "figure4", "--datasets", DATASET, "--quick", "-o", folder)
    assert (folder / f"figure4-{DATASET}.png").exists()
    assert not (folder / "figure4.png").exists()
