"""The LightGBM probe: settings by either tuner, chosen on validation rows alone, the same for the same seed."""

from __future__ import annotations

import itertools
import sys
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from fishergraph.probes import BoostedProbe, boosted

pytest.importorskip("flaml.automl")
pytest.importorskip("lightgbm")
pytest.importorskip("optuna")

each_tuner = pytest.mark.parametrize("tuner", ["flaml", "optuna"])
TRAIN, VAL, TEST = np.arange(120), np.arange(120, 200), np.arange(200, 300)


def rings(seed=0):
    """Three rings around one centre: trees can tell them apart, no linear model can. Labels are strings."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=300)
    Z = rng.normal(size=(300, 2))
    Z *= ((1 + y + 0.2 * rng.random(300)) / np.linalg.norm(Z, axis=1))[:, None]
    return Z.astype(np.float32), np.array(["in", "mid", "out"])[y]


Z, Y = rings()


def fitted(tuner, n_trials=6, **options):
    return BoostedProbe(tuner, None, n_trials, **options).fit(Z, Y, TRAIN, VAL)


@each_tuner
def test_it_learns_what_a_line_cannot(tuner):
    probe = fitted(tuner, n_trials=12)
    assert probe.n_trials_ == 12
    assert probe.score(Z[TEST], Y[TEST]) > 0.8
    assert probe.val_score_ == pytest.approx(probe.score(Z[VAL], Y[VAL]))
    np.testing.assert_allclose(probe.predict_proba(Z[TEST]).sum(axis=1), 1)
    assert list(probe.classes_) == ["in", "mid", "out"]


@each_tuner
def test_a_search_goes_on_from_small_trees(tuner):
    first, last = fitted(tuner, n_trials=1), fitted(tuner, n_trials=20)
    assert (first.params_["n_estimators"], first.params_["num_leaves"], first.params_["max_bin"]) == (
        len(TRAIN),
        15,
        63,
    )
    assert first.params_["extra_trees"] is True
    assert last.n_trials_ == 20
    assert last.val_score_ > first.val_score_


@each_tuner
def test_a_seed_decides_and_other_rows_are_never_seen(tuner):
    first = fitted(tuner, random_state=5)
    y, changed = Y.copy(), Z.copy()
    y[TEST], changed[TEST] = "out", 100.0
    second = BoostedProbe(tuner, None, 6, random_state=5).fit(changed, y, TRAIN, VAL)
    assert first.params_ == second.params_
    np.testing.assert_array_equal(first.predict_proba(Z), second.predict_proba(Z))


@each_tuner
def test_the_global_random_state_is_left_alone(tuner):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fitted(tuner, n_trials=3)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@each_tuner
def test_it_is_silent(tuner, capfd):
    fitted(tuner, n_trials=3)
    assert capfd.readouterr() == ("", "")


@each_tuner
def test_seconds_end_a_search(tuner):
    probe = BoostedProbe(tuner, 1.0).fit(Z, Y, TRAIN, VAL)
    assert probe.n_trials_ >= 1
    assert probe.score(Z[TEST], Y[TEST]) > 0.5


def test_a_trial_that_outlasts_the_budget_is_given_up(monkeypatch):
    clock = itertools.count(step=60)
    monkeypatch.setattr(boosted, "perf_counter", lambda: next(clock))  # a minute passes with every look
    probe = BoostedProbe("optuna", 30.0, n_trials=4).fit(Z, Y, TRAIN, VAL)
    assert probe.n_trials_ == 1  # the first is never given up: there is a result
    assert probe.params_ == fitted("optuna", n_trials=1).params_


@each_tuner
@pytest.mark.parametrize("fit_on", ["train", "train+val"])
def test_several_models_are_averaged(tuner, fit_on):
    """As many as there are seeds, with the settings that one has."""
    options = {"n_trials": 2, "fit_on": fit_on}
    one, three = fitted(tuner, **options, random_state=7), fitted(tuner, **options, random_state=7, n_models=3)
    assert (len(one.models_), len(three.models_)) == (1, 3)
    assert one.params_ == three.params_
    np.testing.assert_array_equal(three.models_[0].predict_proba(Z), one.predict_proba(Z))
    expected = sum(model.predict_proba(Z) for model in three.models_) / 3
    np.testing.assert_allclose(three.predict_proba(Z), expected)
    assert np.abs(expected - one.predict_proba(Z)).max() > 1e-3  # the seeds do differ
    if fit_on == "train":
        assert three.val_score_ == pytest.approx(three.score(Z[VAL], Y[VAL]))


@each_tuner
def test_progress_counts_trials_and_models(tuner):
    seen = {}

    class Bar:
        def __init__(self, title):
            self.title = title

        def update(self, n):
            seen[self.title][0] += n

        def set_postfix(self, **values):
            assert 0 <= values["best"] <= 1

    @contextmanager
    def bar(title, steps):
        seen[title] = [0, steps]
        yield Bar(title)

    fitted(tuner, n_trials=4, n_models=3, verbose=bar)
    assert seen == {"tuning": [4, 4], "fitting": [3, 3]}


@each_tuner
def test_validation_rows_can_join_the_last_fit(tuner):
    y = Y.astype("<U8")
    y[VAL[:5]] = "far"  # a class that training rows do not have
    plain = BoostedProbe(tuner, None, 3).fit(Z, y, TRAIN, VAL)
    assert list(plain.classes_) == ["in", "mid", "out"]
    assert plain.val_score_ <= 1 - 5 / len(VAL)
    joined = BoostedProbe(tuner, None, 3, fit_on="train+val").fit(Z, y, TRAIN, VAL)
    assert list(joined.classes_) == ["far", "in", "mid", "out"]
    assert joined.val_score_ == plain.val_score_


def test_sparse_rows_are_as_good_as_dense_ones():
    dense = fitted("optuna", n_trials=2).predict_proba(Z)
    sparse = BoostedProbe("optuna", None, 2).fit(sp.csr_array(Z), Y, TRAIN, VAL).predict_proba(sp.csr_array(Z))
    np.testing.assert_allclose(sparse, dense)


def test_it_is_a_scikit_learn_estimator():
    probe = BoostedProbe("optuna", 30, n_trials=7)
    assert clone(probe).get_params() == probe.get_params()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tuner": "grid"}, "tuner"),
        ({"time_budget": None}, "time_budget or n_trials"),
        ({"time_budget": 0}, "time_budget"),
        ({"n_trials": 0}, "n_trials"),
        ({"n_models": 0}, "n_models"),
        ({"fit_on": "test"}, "fit_on"),
        ({"random_state": None}, "random_state"),
        ({"time_budget": 1e-6}, "time_budget"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        BoostedProbe(**options).fit(Z, Y, TRAIN, VAL)


@pytest.mark.parametrize(("tuner", "package"), [("flaml", "flaml"), ("optuna", "optuna"), ("flaml", "lightgbm")])
def test_a_missing_package_is_named_with_the_line_to_type(tuner, package, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}.*fishergraph\[automl\]"):
        fitted(tuner)
