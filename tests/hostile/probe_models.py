"""Probes, alone and as classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fishergraph import FisherClassifier, GraphProbe, LogisticProbe
from hostile.model_kinds import GRAPH, N, X, Y

ROWS = np.arange(12), np.arange(12, N)


def _alone(probe: Any) -> tuple[Any, Callable[[Any], Any]]:
    probe.fit(X, np.array(["a", "bb", "c"])[Y], *ROWS)
    return probe, lambda probe: [probe.predict_proba(X), probe.predict_proba(X[:5]), probe.predict(X)]


def _classifier() -> tuple[Any, Callable[[Any], Any]]:
    model = FisherClassifier(1, 2, 4, mode="probe", random_state=0, n_jobs=1)
    model.fit(X, Y, graph=GRAPH, val=ROWS[1])
    return model, lambda model: [model.predict_proba(X, graph=GRAPH), model.predict_proba(X[:9], graph=GRAPH[:9, :9])]


MODELS: dict[str, Callable[[], tuple[Any, Callable[[Any], Any]]]] = {
    "probe, logistic": lambda: _alone(LogisticProbe()),
    "probe, graph": lambda: _alone(GraphProbe(GRAPH, blocks=[2, 2], heads=("sharpen", "mlp"), random_state=0)),
    "probe, classifier": _classifier,
}
