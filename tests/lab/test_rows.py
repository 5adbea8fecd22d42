"""Rows: whole or not there, resumed after a kill with nothing lost or run twice, and safe for several writers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fishergraph._version import __version__, package_versions
from fishergraph.lab.rows import (
    Cell,
    append_rows,
    git_hash,
    new_row,
    read_rows,
    remaining,
    row_key,
    run_cells,
)

CELLS = [Cell("squares", {"x": x, "unit": "m"}, seed) for x in range(3) for seed in range(2)]


def square(cell):
    return {"y": cell.parameters["x"] ** 2 + cell.seed}


def test_a_row_says_what_was_run_and_what_came_out(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert run_cells(path, CELLS, square) == 6
    rows = read_rows(path)
    assert [row["values"]["y"] for row in rows] == [0, 1, 1, 2, 4, 5]
    assert [row_key(row) for row in rows] == [cell.key for cell in CELLS]
    assert {row["version"] for row in rows} == {__version__}
    assert all(row["seconds"] >= 0 and "git" in row for row in rows)
    assert [json.loads(line) for line in path.read_text().splitlines()] == rows


def test_what_is_there_is_not_run_again(tmp_path):
    path, run = tmp_path / "rows.jsonl", []
    run_cells(path, CELLS[:4], square)
    before = path.read_bytes()
    assert run_cells(path, [*CELLS, CELLS[5]], square, run.append) == 2
    assert run == CELLS[4:]
    assert path.read_bytes().startswith(before)
    assert run_cells(path, CELLS, square) == 0


def test_the_key_knows_no_order_of_parameters_and_no_types_of_numpy():
    cell = Cell("s", {"a": 1, "b": [0.5, 2.0]}, 3)
    assert Cell("s", {"b": np.array([0.5, 2.0]), "a": np.int64(1)}, 3).key == cell.key
    others = [Cell("t", cell.parameters, 3), Cell("s", {"a": 1}, 3), Cell("s", cell.parameters, None)]
    assert len({cell.key, *(other.key for other in others)}) == 4


def test_a_torn_last_line_is_dropped_wherever_it_is_torn(tmp_path):
    path = tmp_path / "rows.jsonl"
    run_cells(path, CELLS[:3], square)
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for cut in range(start, len(whole)):
        path.write_bytes(whole[:cut])
        assert len(read_rows(path)) == 2
        assert remaining(path, CELLS[:3]) == [CELLS[2]]
        append_rows(path, [new_row(CELLS[3], {"y": 0}, 0.0)])
        assert [row_key(row) for row in read_rows(path)] == [cell.key for cell in (*CELLS[:2], CELLS[3])]


def test_a_file_of_one_torn_line_longer_than_what_is_looked_at_in_one_go(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"study": "' + b"x" * 200_000)
    assert read_rows(path) == []
    run_cells(path, CELLS, square)
    assert len(read_rows(path)) == 6


def test_a_bad_line_inside_is_an_error_that_says_where(tmp_path):
    path = tmp_path / "rows.jsonl"
    run_cells(path, CELLS[:3], square)
    lines = path.read_text().splitlines()
    for bad in ('{"study": "sq', "[1, 2]", '{"study": "squares"}'):
        path.write_text("\n".join([lines[0], bad, lines[2], ""]))
        with pytest.raises(ValueError, match="line 2"):
            read_rows(path)


def test_a_row_that_json_cannot_hold_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "rows.jsonl"
    run_cells(path, CELLS[:1], square)
    before = path.read_bytes()
    for value, error in ((float("nan"), ValueError), (object(), TypeError)):
        with pytest.raises(error, match="a row must hold"):
            run_cells(path, CELLS[:2], lambda cell, value=value: {"y": value})
        assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_told_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        run_cells(tmp_path / "no" / "rows.jsonl", CELLS, lambda cell: pytest.fail("the work began"))


SLOW = """
import sys, time
from fishergraph.lab.rows import Cell, run_cells

def work(cell):
    with open(sys.argv[2], "a") as log:
        log.write(f"{cell.seed}\\n")
    time.sleep(0.02)
    return {"text": "x" * 5000, "seed": cell.seed}

run_cells(sys.argv[1], [Cell("slow", {}, seed) for seed in range(30)], work)
"""


def start(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env={**os.environ})


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    path, log = tmp_path / "rows.jsonl", tmp_path / "log"
    kills = 0
    for wanted in (5, 12, 20):
        process = start(SLOW, path, log)
        while process.poll() is None and len(read_rows(path)) < wanted:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() != 0
    assert start(SLOW, path, log).wait() == 0
    assert kills == 3
    assert [row["values"]["seed"] for row in read_rows(path)] == list(range(30))
    # Each kill may cost the cell that was at work, and no other.
    assert 30 <= len(log.read_text().split()) <= 30 + kills


MANY = """
import sys
from fishergraph.lab.rows import append_rows
for i in range(150):
    row = {"study": "many", "parameters": {}, "seed": int(sys.argv[2]) * 1000 + i, "values": {"text": "y" * (i * 100)}}
    append_rows(sys.argv[1], [row])
"""


def test_several_writers_lose_nothing(tmp_path):
    path = tmp_path / "rows.jsonl"
    writers = [start(MANY, path, k) for k in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    rows = read_rows(path)
    assert sorted(row["seed"] for row in rows) == sorted(k * 1000 + i for k in range(3) for i in range(150))


def test_the_stamp():
    assert package_versions()["fishergraph"] == __version__
    assert package_versions()["numpy"] == np.__version__
    checkout = (Path(__file__).parents[2] / ".git").exists()
    result = git_hash()
    assert result is None or (checkout and len(result.rstrip("+")) == 12)
