"""Heads of other packages: LightGBM itself, and a stand-in of TabICL, whose weights a test cannot download."""

import sys
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from fishergraph import GraphProbe
from fishergraph._errors import InputError, MissingExtra
from probe_problem import problem


class TabICLClassifier(LogisticRegression):
    """A classifier with the constructor and the methods of TabICL that the head uses."""

    seen: tuple = ()

    def __init__(self, random_state=None):
        super().__init__(random_state=random_state)

    def fit(self, X, y):
        type(self).seen = (X.shape, self.random_state)
        return super().fit(X, y)


class WithoutWeights(TabICLClassifier):
    """The same on a machine without a connection."""

    def fit(self, X, y):
        raise OSError("cannot reach the hub, and the checkpoint is not cached")


def stand_in(kind):
    package = ModuleType("tabicl")
    package.TabICLClassifier = kind
    return package


def test_tabicl(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tabicl", stand_in(TabICLClassifier))
    Z, y, A, train, val = problem(noise=1.0)
    probe = GraphProbe(A, heads=("tabicl",), random_state=0).fit(Z, y, train, val)
    assert {record["head"] for record in probe.report_} == {"logistic", "tabicl"}
    assert TabICLClassifier.seen[0] == (30, 12)  # training rows on principal axes
    again = GraphProbe(A, heads=("tabicl",), random_state=0).fit(Z, y, train, val)
    assert_array_equal(again.predict_proba(), probe.predict_proba())
    assert_allclose(probe.predict_proba(Z[:7]), probe.predict_proba()[:7], atol=1e-6)
    assert probe.chosen_["tabicl"] > 0
    with pytest.raises(InputError, match="joblib"):
        probe.save(tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_tabicl_without_the_package_or_its_weights(monkeypatch):
    Z, y, A, train, val = problem()
    monkeypatch.setitem(sys.modules, "tabicl", None)
    with pytest.raises(MissingExtra, match="pip install tabicl"):
        GraphProbe(A, heads=("tabicl",)).fit(Z, y, train, val)
    monkeypatch.setitem(sys.modules, "tabicl", stand_in(WithoutWeights))
    with pytest.raises(InputError, match="weights"):
        GraphProbe(A, heads=("tabicl",)).fit(Z, y, train, val)


def test_lightgbm():
    pytest.importorskip("lightgbm")
    Z, y, A, *_ = problem(n=600, noise=2.0)
    train, val = np.arange(300), np.arange(300, 450)
    one, two = (GraphProbe(A, heads=("lightgbm",), random_state=0).fit(Z, y, train, val) for _ in range(2))
    assert_array_equal(one.predict_proba(), two.predict_proba())
    record = one.report_[1]
    assert record["head"] == "lightgbm"
    assert record["val_accuracy"] > 0.5
    refit = GraphProbe(A, heads=("lightgbm",), fit_on="train+val", random_state=0).fit(Z, y, train, val)
    assert np.abs(refit.predict_proba() - one.predict_proba()).max() > 1e-3


def test_they_are_tried_only_if_they_are_named():
    Z, y, A, train, val = problem()
    probe = GraphProbe(A, random_state=0).fit(Z, y, train, val)
    assert {"lightgbm", "tabicl"}.isdisjoint(record["head"] for record in probe.report_)
