"""Jobs: a method sees no test label, a search no test score, and a shared fit gives what separate ones give."""

from __future__ import annotations

import numpy as np
import pytest

from fishergraph.experiments import jobs
from fishergraph.experiments.jobs import UNKNOWN, Job, fit_each, fit_nested, known_part, run_job, share_fits
from fishergraph.experiments.plan import FINAL, Column
from small_table import DATASET, FIE, SPREAD, WWL, data_home, small_graph


@pytest.fixture
def home(tmp_path):
    jobs.load.cache_clear()
    yield data_home(tmp_path)
    jobs.load.cache_clear()


def test_what_a_method_is_given_has_no_test_label_and_no_test_nodes():
    data = small_graph()
    known = known_part(data)
    train, val, test = data.split()
    assert np.all(known.y[test] == UNKNOWN)
    assert np.array_equal(known.y[train], data.y[train])
    assert np.array_equal(known.y[val], data.y[val])
    assert set(vars(known)) == {"X", "graph", "y", "train", "val"}
    assert not set(test) & ({*known.train} | {*known.val})
    assert np.all(data.y >= 0)  # the graph itself is left as it was


@pytest.mark.parametrize("stage", ["search 1", FINAL])
def test_every_method_is_handed_that_and_nothing_else(home, monkeypatch, stage):
    data, seen = small_graph(), []
    real = jobs.baseline

    def spied(name, **settings):
        model = real(name, **settings)
        fit = model.fit

        def spy(X, y, **given):
            seen.append((y, given))
            return fit(X, y, **given)

        model.fit = spy
        return model

    monkeypatch.setattr(jobs, "baseline", spied)
    column = Column(WWL, DATASET)
    (row,) = run_job(Job(column, (column.cell(stage, {"n_iter": 1}, 0),), home))
    ((y, given),) = seen
    assert set(given) == {"graph", "train", "val", "seed"}
    assert np.all(y[data.split()[2]] == UNKNOWN)
    assert ("test" in row["values"]) == (stage == FINAL)


def test_other_test_labels_change_no_row_of_a_search(home, monkeypatch):
    column = Column(FIE, DATASET)
    cells = tuple(column.stages({})[0].missing({}))
    groups = share_fits(column, list(cells))
    before = [row["values"] for group in groups for row in run_job(Job(column, group, home))]
    data = small_graph()
    data.y[data.split()[2]] = 0
    monkeypatch.setattr(jobs, "load", lambda name, folder: data)
    assert [row["values"] for group in groups for row in run_job(Job(column, group, home))] == before


def test_cells_that_differ_in_the_depth_share_a_fit():
    column = Column(FIE, DATASET)
    groups = share_fits(column, column.stages({})[0].missing({}))
    assert sorted(len(group) for group in groups) == [2, 2, 2, 2]
    other = Column(WWL, DATASET)
    assert all(len(group) == 1 for group in share_fits(other, other.stages({})[0].missing({})))


def test_a_shared_fit_gives_the_bits_of_separate_ones():
    column, known = Column(FIE, DATASET), known_part(small_graph())
    for group in share_fits(column, column.stages({})[0].missing({})):
        job = Job(column, group)
        for one, other in zip(fit_nested(job, known), fit_each(job, known), strict=True):
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
