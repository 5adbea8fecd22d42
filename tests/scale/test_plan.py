"""A plan counts the files of a run exactly, its memory from above, and refuses what cannot fit."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

import fishergraph.scale.run as run
from fishergraph import FisherEmbedding
from fishergraph._errors import InputError, NotEnoughDisk, NotEnoughMemory
from fishergraph.scale import GraphSize, Store, plan
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.planning import amount, duration, job_of
from fishergraph.scale.probe import Rates
from fishergraph.scale.run_folder import RunFolder
from fishergraph.scale.sizes import RunSize
from fishergraph.scale.work import stages_of
from scale.stores import random_store, small_budget, small_parts

DIM = 16


class Everything(dict):
    """The same rate for every size."""

    def __missing__(self, key):
        return 1e-6


RATES = Rates(Everything(), Everything(), Everything(), 1e-11, 1e-8, 1e-9, 1e-10, 5e-10, 1e-6, 2, 0.0)


@pytest.fixture
def quick(monkeypatch):
    """Probes of a few rows."""
    for name, value in {"_WORK": 10**5, "_MOST_ENTRIES": 2**12, "_FILE_PARTS": 8, "PART_BYTES": 2**18}.items():
        monkeypatch.setattr(f"fishergraph.scale.probe.{name}", value)


def model(**settings):
    return FisherEmbedding(**{"dim": DIM, "random_state": 0, "n_jobs": 1, **settings})


def sizes_of(store, estimator):
    return RunSize.of(GraphSize.of(store), job_of(estimator, store), store)


# --- disk ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tile", [None, 6])
@pytest.mark.parametrize("settings", [{}, {"structure": None, "n_layers": 3}, {"walk": None, "structure": "local"}])
def test_the_files_of_a_run_are_counted_exactly(tmp_path, monkeypatch, settings, tile):
    store, *_ = random_store(tmp_path / "s")
    small_budget(monkeypatch, tile=tile)
    monkeypatch.setattr(RunFolder, "remove_work", lambda folder: None)
    budgets = []
    planned = run.plan_budget
    monkeypatch.setattr(run, "plan_budget", lambda *a, **k: budgets.append(planned(*a, **k)) or budgets[-1])
    model(**settings).fit_transform(store)
    size = sizes_of(store, model(**settings))
    folder = store.path / "embeddings" / "default"
    found = {path.stem: path.stat().st_size for path in folder.glob("*.npy")}
    assert size.blocks() == found
    assert size.scratch(budgets[-1]) == {path.stem: path.stat().st_size for path in folder.glob("work/*.npy")}
    multisets = sum(path.stat().st_size for path in (store.path / "multisets").rglob("*.npy"))
    assert size.sets.built
    assert size.sets.files == multisets
    learned = sum((folder / name).stat().st_size for name in ("learned.safetensors", "model.safetensors"))
    if size.structure is None:  # what structure learns is not counted
        assert 0.8 < size.model_bytes() / learned < 1.2


def test_the_files_of_a_store_are_counted_exactly(tmp_path):
    store, *_ = random_store(tmp_path / "s", weighted=True)
    files = GraphSize.of(store).store_files()
    assert files == {path.stem: path.stat().st_size for path in store.path.glob("*.npy")}


def test_multisets_that_are_not_built_have_at_most_a_loop_for_each_node(tmp_path):
    store, *_ = random_store(tmp_path / "s")
    before = sizes_of(store, model()).sets
    model(structure=None).fit_transform(store)
    after = sizes_of(store, model()).sets
    assert not before.built
    assert after.n_entries <= before.n_entries <= after.n_entries + store.n_nodes


def test_bytes_read_and_written_are_those_of_the_run(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s", n_nodes=6000)
    moved = {"_read": 0, "_write": 0}
    small_parts(monkeypatch, 2**16)
    settings = {"structure": None, "n_layers": 3}
    size = sizes_of(store, model(**settings))
    tiles, groups = dict.fromkeys((1, 2, 3), 8), dict.fromkeys((1, 2, 3), 1500)
    budget = replace(plan_of(size), tiles=tiles, group_rows=groups, walk_tile=8, sets_in_memory=False)
    monkeypatch.setattr(run, "plan_budget", lambda *a, **k: budget)
    stages = list(stages_of(size, budget, RATES))
    read, write = FileArray._read, FileArray._write

    def counted_read(array, start, stop):
        rows = read(array, start, stop)
        moved["_read"] += rows.nbytes
        return rows

    def counted_write(array, start, rows):
        moved["_write"] += rows.nbytes
        write(array, start, rows)

    monkeypatch.setattr(FileArray, "_read", counted_read)
    monkeypatch.setattr(FileArray, "_write", counted_write)
    model(**settings).fit_transform(store)
    assert sum(stage.read for stage in stages) == pytest.approx(moved["_read"], rel=0.1)
    assert sum(stage.written for stage in stages) == pytest.approx(moved["_write"], rel=0.05)


def test_a_full_disk_is_refused_before_the_work(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**6, 9 * 10**5, 10**5))
    with pytest.raises(NotEnoughDisk, match="disk") as raised:
        model(structure=None).fit_transform(store)
    assert raised.value.available == 10**5 < raised.value.needed
    assert str(store.path) in str(raised.value)
    assert isinstance(raised.value, OSError)
    assert not (store.path / "multisets").exists()
    monkeypatch.undo()
    assert model(structure=None).fit_transform(store).shape[0] == store.n_nodes


def test_files_that_are_there_need_no_space(tmp_path, monkeypatch):
    store, *_ = random_store(tmp_path / "s")
    estimator, usage = model(structure=None), namedtuple("usage", "total used free")
    estimator.fit_transform(store)
    (store.path / "embeddings" / "default" / "manifest.json").unlink()  # as after a kill
    size = sizes_of(store, estimator)
    free = size.model_bytes() + sum(size.scratch(plan_of(size)).values())
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 0, free))
    estimator.fit_transform(store)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 0, free))
    with pytest.raises(NotEnoughDisk):
        FisherEmbedding(dim=DIM, random_state=1).fit_transform(Store(store.path, name="other"))


def plan_of(size, memory=2e9):
    return run.plan_budget(size.job.stack, size.X, size.sets, int(memory))


# --- memory -------------------------------------------------------------------------------------------------

MEASURED = """
import re, sys
from pathlib import Path
from fishergraph import FisherEmbedding
from fishergraph.scale import Store
store = Store(sys.argv[1], memory=int(sys.argv[2]))
FisherEmbedding(dim=32, structure=None, random_state=0, n_jobs=2).fit_transform(store)
print(1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
@pytest.mark.parametrize("room", [0, 3 * 10**7, 10**9])
def test_the_resident_size_stays_under_the_budget(tmp_path, room):
    store, *_ = random_store(tmp_path / "s", n_nodes=150_000)
    size = sizes_of(store, model(dim=32, structure=None, n_jobs=2))
    with pytest.raises(NotEnoughMemory) as raised:
        run.plan_budget(size.job.stack, size.X, size.sets, 1, base=int(4e8))
    memory = int(raised.value.needed) + room
    done = subprocess.run([sys.executable, "-c", MEASURED, store.path, str(memory)], capture_output=True, check=True)
    assert int(done.stdout) <= memory


def test_what_is_planned_grows_with_the_graph():
    plans = [
        plan(GraphSize(n, 20 * n, 50), model(structure=None), memory="300G", rates=RATES)
        for n in (1000, 10**5, 10**7, 10**8)
    ]
    for name in ("resident", "kept", "scratch", "read", "written", "seconds"):
        figures = [getattr(planned, name) for planned in plans]
        assert figures == sorted(figures), name
    needed = []
    for n in (10**3, 10**5, 10**7, 10**9):
        with pytest.raises(NotEnoughMemory) as raised:
            plan(GraphSize(n, 20 * n, 50), model(structure=None), memory=1, rates=RATES)
        needed.append(raised.value.needed)
    assert needed == sorted(needed)
    assert needed[-1] > 10 * needed[0]


def test_the_smallest_memory_works_and_less_does_not():
    graph, estimator = GraphSize(10**8, 10**9, 100), model(structure=None)
    with pytest.raises(NotEnoughMemory) as raised:
        plan(graph, estimator, memory="100M", rates=RATES)
    smallest = int(raised.value.needed)
    planned = plan(graph, estimator, memory=smallest, rates=RATES)
    assert planned.resident <= smallest
    assert all(tile is not None for tile in planned.budget.tiles.values())
    with pytest.raises(NotEnoughMemory):
        plan(graph, estimator, memory=smallest - 2**20, rates=RATES)


@pytest.mark.parametrize("memory", ["12G", "20G", "50G", "200G"])
def test_the_arrays_that_are_held_fit(memory):
    estimator = model(n_layers=3, dim=128, structure=None)
    planned = plan(GraphSize(10**8, 3 * 10**9, 100), estimator, memory=memory, rates=RATES)
    held = planned.budget.held
    assert max(held.values()) <= planned.budget.available
    for t, tile in planned.budget.tiles.items():
        columns, group = (128, 0) if tile is None else (tile, planned.budget.group_rows[t])
        arrays = 4 * (10**8 * (columns + 2 * 4) + group * 4 * 128)
        assert arrays <= held[f"psi{t}"]


def test_more_memory_reads_less():
    estimator = model(n_layers=3, dim=128, structure=None)
    read = [plan(GraphSize(10**8, 10**9, 100), estimator, memory=m, rates=RATES).read for m in ("15G", "40G", "200G")]
    assert read == sorted(read, reverse=True)
    assert read[0] > 2 * read[-1]


# --- time, and what is printed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_layers": 0},
        {"walk": None, "structure": None},
        {"family": "diagonal-mixture", "structure": None},
        {"multiset": "ppr", "structure": "degree"},
        {"counts": True, "kernel": "identity", "n_layers": 1},
    ],
)
def test_every_stage_has_a_time(tmp_path, quick, settings):
    store, *_ = random_store(tmp_path / "s")
    planned = plan(store, model(**settings), memory="16G")
    names = [stage.name for stage in planned.stages]
    stack = model(**settings).settings()
    assert [name for name in names if name in stack.names] == stack.names
    assert all(stage.seconds() > 0 for stage in planned.stages if stage.name in stack.names)
    assert planned.seconds == pytest.approx(sum(stage.seconds() for stage in planned.stages))
    assert not list(store.path.glob(".fishergraph-probe*"))


@pytest.mark.parametrize("kind", ["sparse", "weighted"])
def test_stores_of_every_kind_are_planned(tmp_path, quick, kind):
    store, *_ = random_store(tmp_path / "s", **{kind: True})
    assert plan(store, model(), memory="16G").seconds > 0


def test_tiles_are_measured(tmp_path, quick):
    graph, estimator = GraphSize(10**7, 10**8, 32), model(structure=None)
    with pytest.raises(NotEnoughMemory) as raised:
        plan(graph, estimator, memory=1, folder=tmp_path)
    planned = plan(graph, estimator, memory=raised.value.needed + 2**26, folder=tmp_path)
    assert planned.budget.tiles[1] is not None
    assert planned.seconds > 0


def test_workers_share_parts_and_not_the_rest():
    graph, estimator = GraphSize(10**8, 10**9, 100), model(structure=None)
    one, many = (plan(graph, estimator, memory="100G", rates=RATES, workers=k) for k in (1, 8))
    for alone, shared in zip(one.stages, many.stages, strict=True):
        assert shared.seconds(8) <= alone.seconds(1)
        assert shared.seconds(8) >= shared.serial + shared.divided / 8
    assert one.seconds / 8 < many.seconds < one.seconds


def test_a_plan_prints_as_a_table():
    planned = plan(GraphSize(10**6, 10**7, 100), model(), memory="8G", rates=RATES, workers=3)
    lines = planned.lines()
    assert str(planned) == "\n".join(lines)
    head = next(line for line in lines if line.startswith("stage"))
    assert "3 workers" in head
    for stage in planned.stages:
        assert any(line.startswith(stage.name) for line in lines)
    assert any("does not fit" in line for line in replace(planned, disk_free=1).lines())
    assert not any("does not fit" in line for line in replace(planned, disk_free=10**15).lines())


@pytest.mark.parametrize(
    ("size", "text"), [(0, "-"), (900, "1 kB"), (2.5e6, "2.5 MB"), (3e9, "3.0 GB"), (1.25e13, "12.5 TB")]
)
def test_sizes_in_words(size, text):
    assert amount(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "-"), (3, "3.0 s"), (150, "2.5 min"), (7200, "2.0 h"), (2e5, "2.3 d")]
)
def test_times_in_words(seconds, text):
    assert duration(seconds) == text


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        ((0, 5, 3), "nodes"),
        ((-4, 5, 3), "nodes"),
        ((10**30, 5, 3), "nodes"),
        ((10.5, 5, 3), "nodes"),
        ((10, -1, 3), "edges"),
        ((10, 10**40, 3), "edges"),
        ((10, 5, -1), "features"),
    ],
)
def test_absurd_sizes_are_refused(sizes, word):
    with pytest.raises(InputError, match=word):
        GraphSize(*sizes)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"memory": "much"}, "memory"),
        ({"memory": -1}, "memory"),
        ({"workers": 0}, "workers"),
        ({"workers": 10**9}, "workers"),
        ({"folder": "/no/such/folder"}, "folder"),
    ],
)
def test_bad_options_are_refused(options, parameter):
    with pytest.raises(InputError) as raised:
        plan(GraphSize(100, 100, 3), rates=RATES, **options)
    assert raised.value.parameter == parameter


def test_a_plan_needs_a_store_or_sizes_and_columns():
    with pytest.raises(InputError, match="store"):
        plan(np.eye(3), rates=RATES)
    with pytest.raises(InputError, match="structure"):
        plan(GraphSize(100, 100), model(structure=None), rates=RATES)
    with pytest.raises(InputError, match="float16"):
        GraphSize(100, 100, 3, dtype="int8")
