"""The runner: no method sees a test label; all columns run to their ends, and a killed run is resumed exactly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fishergraph.lab.baselines.base import HIDDEN
from fishergraph.lab.experiments import runner
from fishergraph.lab.experiments.plan import FINAL, Column, columns_of
from fishergraph.lab.experiments.runner import (
    Job,
    fit_each,
    fit_nested,
    group_cells,
    only_run,
    processes,
    run_columns,
    run_job,
    visible_data,
)
from fishergraph.lab.experiments.specs import SPECS
from fishergraph.lab.rows import read_rows, row_key
from small_table import ALL, DATASET, FIE, SPREAD, WWL, data_home, small_graph

TESTS = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(tmp_path):
    load = runner.load  # a test may replace it
    load.cache_clear()
    yield data_home(tmp_path)
    load.cache_clear()


# --- one job ----------------------------------------------------------------------------------------------


def test_what_a_method_is_given_has_no_test_label_and_no_test_nodes():
    data = small_graph()
    visible = visible_data(data)
    train, val, test = data.split()
    assert np.all(visible.y[test] == HIDDEN)
    assert np.array_equal(visible.y[train], data.y[train])
    assert np.array_equal(visible.y[val], data.y[val])
    assert set(vars(visible)) == {"X", "graph", "y", "train", "val"}
    assert not set(test) & ({*visible.train} | {*visible.val})
    assert np.all(data.y >= 0)  # the graph itself is left as it was


@pytest.mark.parametrize("stage", ["search 1", FINAL])
def test_every_method_is_handed_that_and_nothing_else(home, monkeypatch, stage):
    data, seen = small_graph(), []
    real = runner.baseline

    def spied(name, **settings):
        model = real(name, **settings)
        fit = model.fit

        def spy(X, y, **arguments):
            seen.append((y, arguments))
            return fit(X, y, **arguments)

        model.fit = spy
        return model

    monkeypatch.setattr(runner, "baseline", spied)
    column = Column(WWL, DATASET)
    (row,) = run_job(Job(column, (column.cell(stage, {"n_iter": 1}, 0),), home))
    ((y, arguments),) = seen
    assert set(arguments) == {"graph", "train", "val", "seed"}
    assert np.all(y[data.split()[2]] == HIDDEN)
    assert ("test" in row["values"]) == (stage == FINAL)


def test_other_test_labels_change_no_row_of_a_search(home, monkeypatch):
    column = Column(FIE, DATASET)
    cells = tuple(column.stages({})[0].missing({}))
    groups = group_cells(column, list(cells))
    before = [row["values"] for group in groups for row in run_job(Job(column, group, home))]
    data = small_graph()
    data.y[data.split()[2]] = 0
    monkeypatch.setattr(runner, "load", lambda name, folder: data)
    assert [row["values"] for group in groups for row in run_job(Job(column, group, home))] == before


def test_cells_that_differ_in_the_depth_share_a_fit():
    column = Column(FIE, DATASET)
    groups = group_cells(column, column.stages({})[0].missing({}))
    assert sorted(len(group) for group in groups) == [2, 2, 2, 2]
    other = Column(WWL, DATASET)
    assert all(len(group) == 1 for group in group_cells(other, other.stages({})[0].missing({})))


def test_a_shared_fit_gives_the_bits_of_separate_ones():
    column, visible = Column(FIE, DATASET), visible_data(small_graph())
    for group in group_cells(column, column.stages({})[0].missing({})):
        job = Job(column, group)
        for one, other in zip(fit_nested(job, visible), fit_each(job, visible), strict=True):
            assert np.array_equal(one.classes, other.classes)
            assert (one.val, one.notes) == (other.val, other.notes)


def test_a_row_says_with_what_it_was_made_and_what_it_took(home):
    column = Column(SPREAD, DATASET)
    (row,) = run_job(Job(column, (column.cell(FINAL, {}, 1),), home))
    assert row["seed"] == 1
    assert row["parameters"]["settings"] == {}
    assert row["versions"]["numpy"] == np.__version__
    assert row["peak_mb"] > 10
    assert row["seconds"] > 0
    assert row["cpu_seconds"] >= 0
    assert "git" in row
    assert row["device"] == "cpu"


# --- all jobs ---------------------------------------------------------------------------------------------


def run(folder, specs=ALL, **options):
    with ThreadPoolExecutor(2) as pool:
        return run_columns(
            columns_of(specs, [DATASET]), folder / "rows.jsonl", pool, data_home=folder, jobs=2, **options
        )


def test_every_column_runs_to_its_end(home):
    seen = []
    rows = run(home, watch=seen.append)
    assert len({row_key(row) for row in rows}) == len(rows) == (8 + 3) + (2 + 2) + (4 + 2 + 2) + 2
    assert all(status.finished for status in seen[-1])
    assert not any(status.finished for status in seen[0])
    assert all(("test" in row["values"]) == (row["parameters"]["stage"] == FINAL) for row in rows)


def test_what_is_there_is_not_run_again(home, monkeypatch):
    first = run(home)
    count = []
    monkeypatch.setattr(runner, "run_job", lambda job: count.append(job) or run_job(job))
    assert run(home) == first
    assert not count
    path = home / "rows.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))
    again = run(home)
    assert sum(len(job.cells) for job in count) == 3
    assert {row_key(row): row["values"] for row in again} == {row_key(row): row["values"] for row in first}


def test_a_column_that_fails_does_not_stop_the_others(home, monkeypatch):
    def fail(job):
        if job.column.spec is WWL:
            raise ValueError("it rained")
        return run_job(job)

    monkeypatch.setattr(runner, "run_job", fail)
    with pytest.raises(RuntimeError, match=r"wwl on citeseer .*it rained"):
        run(home)
    methods = [row["parameters"]["method"] for row in read_rows(home / "rows.jsonl")]
    assert set(methods) == {"fie", "fie-reference", "label-propagation"}


def test_two_runs_do_not_write_one_file(home):
    with only_run(home / "rows.jsonl"), pytest.raises(RuntimeError, match="another run"):
        run(home, (SPREAD,))
    run(home, (SPREAD,))


def test_what_takes_longest_comes_first():
    columns = columns_of(SPECS.values(), ["cora", "pubmed"])
    assert [(c.spec.method, c.dataset) for c in columns[:2]] == [
        ("fie-supervised", "pubmed"),
        ("fie-supervised", "cora"),
    ]


CHILD = """
import sys
from pathlib import Path
from small_table import ALL, DATASET
from fishergraph.lab.experiments.plan import columns_of
from fishergraph.lab.experiments.runner import processes, run_columns

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with processes(2) as pool:
        run_columns(columns_of(ALL, [DATASET]), folder / "rows.jsonl", pool, data_home=folder, jobs=2)
"""


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def children(pid):
    """The processes that a process has started."""
    result = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in result]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
def test_a_killed_run_is_resumed_with_nothing_lost_or_run_twice(home):
    script, path = home / "child.py", home / "rows.jsonl"
    script.write_text(CHILD)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    process = subprocess.Popen([sys.executable, script, home], env=environment, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(path.read_bytes().splitlines()) >= 3 if path.exists() else False)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(_runs(worker) for worker in workers))  # they end with it
    left = path.read_bytes()
    kept = read_rows(path)
    assert 3 <= len(kept) < 25
    rows = run(home)
    assert path.read_bytes().startswith(left[: left.rfind(b"\n") + 1])  # not a byte of a whole row was lost
    assert len({row_key(row) for row in rows}) == len(rows) == 25
    path.unlink()
    whole = {row_key(row): row["values"] for row in run(home)}
    assert {row_key(row): row["values"] for row in rows} == whole


def _runs(pid):
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.slow
def test_processes_have_one_thread_and_leave_the_environment_alone(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    with processes(1) as pool:
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_a_column_knows_its_cells_whatever_the_order_of_settings():
    column = Column(WWL, DATASET)
    assert column.cell("x", {"n_iter": 1, "rows": True}, 0).key == column.cell("x", {"rows": True, "n_iter": 1}, 0).key
