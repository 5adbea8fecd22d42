"""Soft self-training: a multinomial regression that also learns from its own smoothed, sharpened predictions.

A round replaces the probabilities P of all nodes by

    Q = rows of (PageRank-smoothed P)², divided by their sums,    Q_v = one-hot(y_v) if v is labelled,

and fits the regression again, to Q on all nodes: labelled rows have weight 1, the others n_train / n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from fishergraph.probes.smooth import pagerank_smooth, unit_sums
from fishergraph.probes.soft import fit_soft, soft_proba

ROUNDS = 4
_MOST_ROWS = 20_000  # without a label, in one regression


def soft_targets(S: sp.csr_array, P: np.ndarray, Y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Q: P with labelled rows fixed to Y, smoothed over the graph, squared, rows divided by their sums."""
    P = P.copy()
    P[train] = Y
    Q = unit_sums(pagerank_smooth(S, P) ** 2)
    Q[train] = Y
    return Q


def row_weights(n_rows: int, train: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the regressions and their weights: 1 if labelled, else n_train / n.

    Of more than 20,000 rows without a label a random part is used, which has the weight of all of them.
    """
    free = np.setdiff1d(np.arange(n_rows), train)
    used = free if len(free) <= _MOST_ROWS else np.sort(rng.choice(free, _MOST_ROWS, replace=False))
    weight = len(train) / n_rows * len(free) / max(len(used), 1)
    return np.concatenate([train, used]), np.append(np.ones(len(train)), np.full(len(used), weight))


def self_train(
    X: np.ndarray,
    S: sp.csr_array,
    Y: np.ndarray,
    train: np.ndarray,
    C: float,
    start: np.ndarray,
    sample: tuple[np.ndarray, np.ndarray],
    after_round: Callable[[np.ndarray], None] = lambda theta: None,
) -> np.ndarray:
    """θ after the rounds of self-training on the rows of X, from the regression `start`; `sample` is `row_weights`."""
    rows, weights = sample
    inputs = X if len(rows) == len(X) and np.array_equal(rows, np.arange(len(X))) else X[rows]
    theta = start
    for _ in range(ROUNDS):
        Q = soft_targets(S, soft_proba(X, theta), Y, train)
        theta = fit_soft(inputs, Q[rows], weights, C, theta)
        after_round(theta)
    return theta
