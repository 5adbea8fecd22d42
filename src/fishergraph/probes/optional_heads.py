"""Heads of other packages, which `GraphProbe` tries if they are named: LightGBM and TabICL.

Both get the principal axes of the embedding. Their models are objects of those packages, which a model file of this
library cannot hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._errors import FishergraphError, InputError, MissingExtra
from fishergraph._optional import require
from fishergraph.probes.models import Model
from fishergraph.probes.problem import Problem

_AXES = 100  # that these heads get
_TREES = {"n_estimators": 200, "num_leaves": 15, "learning_rate": 0.1, "reg_lambda": 10.0, "extra_trees": True}
_DETERMINISTIC = {"verbose": -1, "deterministic": True, "force_row_wise": True, "n_jobs": 1}


@dataclass(frozen=True, eq=False)
class Foreign:
    """A fitted classifier of another package, whose classes are class numbers."""

    estimator: Any
    n_classes: int

    def proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities, float64, (row, class)."""
        P = np.zeros((len(X), self.n_classes))
        P[:, np.asarray(self.estimator.classes_, dtype=np.intp)] = self.estimator.predict_proba(X[:, :_AXES])
        return P


def fit_lightgbm(problem: Problem) -> Model:
    """Gradient-boosted trees with random splits, which suit columns that say little each."""
    package: Any = require("lightgbm", extra="automl")
    seed = int(problem.rng(3).integers(2**31))
    return _fitted(package.LGBMClassifier(**_TREES, **_DETERMINISTIC, random_state=seed), problem)


def fit_tabicl(problem: Problem) -> Model:
    """TabICL, a network that was trained on tables beforehand and reads the labelled rows at each prediction."""
    try:
        package: Any = require("tabicl", extra="")
    except MissingExtra as error:
        text = "the head 'tabicl' needs the package 'tabicl', which is not installed; run: pip install tabicl"
        raise MissingExtra(text, package="tabicl") from error
    seed = int(problem.rng(4).integers(2**31))
    try:
        return _fitted(package.TabICLClassifier(random_state=seed), problem)
    except FishergraphError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"the head 'tabicl' cannot start ({reason}); it downloads its weights at the first use, so connect once "
            "or leave it out of `heads`.",
            parameter="heads",
        ) from error


def _fitted(estimator: Any, problem: Problem) -> Model:
    sharp = problem.sharpened(problem.names)[0.0]
    estimator.fit(sharp.rows[problem.train][:, :_AXES], problem.codes)
    return Model(sharp.input, Foreign(estimator, problem.n_classes))


FITS = {"lightgbm": fit_lightgbm, "tabicl": fit_tabicl}
