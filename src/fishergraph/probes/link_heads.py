"""Heads of `LinkProbe`: what turns features of pairs into scores of edges.

similarity   the cosine of whole vectors, the same as `Vectors.link_scores`
logistic     logistic regression on the cosines of blocks and the degrees
boosted      gradient-boosted trees on them, scikit-learn's
products     logistic regression on the products of all columns
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from fishergraph.probes.pairs import PairFeatures

Read = Callable[[PairFeatures, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LinkHead:
    """A kind of head: the features that it reads, and the classifier of them.

    comparable : whether its features mean the same in two embeddings.
    """

    read: Read
    make: Callable[[int], Any]
    comparable: bool = True


def _logistic(seed: int, C: float = 1.0) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=1000, random_state=seed))


def _boosted(seed: int) -> Any:
    """Small trees: there may be a few hundred pairs to learn from."""
    options: dict[str, Any] = {"max_iter": 150, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 40}
    options["early_stopping"] = False
    return HistGradientBoostingClassifier(**options, random_state=seed)


LINK_HEADS = {
    "similarity": LinkHead(PairFeatures.similarities, _logistic),
    "logistic": LinkHead(PairFeatures.__call__, _logistic),
    "boosted": LinkHead(PairFeatures.__call__, _boosted),
    "products": LinkHead(PairFeatures.products, lambda seed: _logistic(seed, C=1e-3), comparable=False),
}


def fitted(head: LinkHead, features: np.ndarray, edges: np.ndarray, seed: int) -> Any:
    """The classifier of features of pairs; one thread, so that sums have one order."""
    with threadpool_limits(limits=1):
        return head.make(seed).fit(features, edges)


def scores(model: Any, features: np.ndarray) -> np.ndarray:
    """The logits of pairs."""
    with threadpool_limits(limits=1):
        return model.decision_function(features)
