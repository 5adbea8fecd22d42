"""Hostile calls of everything public that takes arrays, graphs, sets, components or parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fishergraph as fg
from hostile import estimator_cases as estimators
from hostile import function_cases as functions
from hostile import network_cases as networks
from hostile.estimator_cases import Case
from hostile.ingredients import Rng


def make(seed: int) -> Case:
    """(label, action) of a seed."""
    rng = np.random.default_rng(seed)
    names, shares = list(AREAS), np.array([share for _, share in AREAS.values()], dtype=float)
    name = names[int(rng.choice(len(names), p=shares / shares.sum()))]
    label, action = AREAS[name][0](rng)
    return f"{name}: {label}"[:400], action


AREAS: dict[str, tuple[Callable[[Rng], Case], float]] = {
    "FisherEmbedding": (estimators.estimator(fg.FisherEmbedding), 24),
    "FisherSetEmbedding": (estimators.estimator(fg.FisherSetEmbedding), 14),
    "FisherGraphEmbedding": (estimators.estimator(fg.FisherGraphEmbedding), 14),
    "named": (estimators.named, 3),
    "ranges": (estimators.ranges, 8),
    "components": (estimators.components, 8),
    "choices": (estimators.choices, 3),
    "as_graph": (functions.as_graph, 5),
    "as_graphs": (functions.as_graphs, 3),
    "rules": (functions.rules, 6),
    "neighbourhoods": (functions.neighbourhoods, 2),
    "node_tuples": (functions.tuples, 2),
    "em_means": (functions.em_means, 6),
    "em_estimate": (functions.em_estimate, 4),
    "learn": (functions.learn, 5),
    "divergence": (functions.divergence, 3),
    "retract": (functions.retract, 2),
    "embedding": (functions.embedding, 4),
    "kernels": (functions.kernels, 5),
    "structural": (functions.structural, 4),
    "bounds": (functions.bounds, 4),
    "probes": (functions.probes, 5),
    "helpers": (functions.helpers, 4),
    "tensors": (networks.tensors, 7),
    "FisherClassifier": (networks.classifier, 2),
}
