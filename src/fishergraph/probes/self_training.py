"""Soft self-training: a multinomial regression that also learns from its own smoothed, sharpened predictions.

A round replaces the probabilities P of all nodes by

    Q = rows of (PageRank-smoothed P)², divided by their sums,    Q_v = one-hot(y_v) if v is labelled,

and fits the regression again, to Q on all nodes: labelled rows have weight 1, the others n_train / n.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from fishergraph.probes.smooth import pagerank_smooth, unit_sums

ROUNDS = 4
_MOST_ROWS = 20_000  # without a label, in one regression
_CURVATURE = 0.1  # a typical p (1 − p): only the speed depends on it
_STEPS, _TOL = 60, 1e-3


def soft_loss(
    theta: np.ndarray, X: np.ndarray, targets: np.ndarray, weights: np.ndarray, C: float
) -> tuple[float, np.ndarray]:
    """Σ_i w_i CE(t_i, softmax(W'x_i + b)) / Σ w + ‖W‖² / (2 C Σ w), and its gradient in θ = (W; b)."""
    total = weights.sum()
    W, b = theta[:-1].astype(X.dtype), theta[-1].astype(X.dtype)
    log_p = log_softmax(X @ W + b, axis=1)  # (row, class)
    share = (weights / total).astype(X.dtype)[:, None]
    value = -np.sum(share * targets * log_p, dtype=np.float64) + np.sum(theta[:-1] ** 2) / (2 * C * total)
    error = share * (np.exp(log_p) - targets)
    gradient = np.vstack([X.T @ error, error.sum(axis=0)[None]]).astype(np.float64)
    gradient[:-1] += theta[:-1] / (C * total)
    return float(value), gradient


def fit_soft(
    X: np.ndarray, targets: np.ndarray, weights: np.ndarray, C: float, start: np.ndarray, max_iter: int = _STEPS
) -> np.ndarray:
    """The minimiser θ (axis + 1, class) of `soft_loss`, from `start`, by quasi-Newton steps on scaled axes."""
    total, targets = weights.sum(), targets.astype(X.dtype, copy=False)
    C = C / 2 if targets.shape[1] == 2 else C  # two columns share the penalty of one
    extent = np.append(weights.astype(X.dtype) @ X**2 / total, 1.0)
    penalty = np.append(np.full(X.shape[1], 1 / (C * total)), 0.0)
    scale = (1 / np.sqrt(_CURVATURE * extent + penalty))[:, None]

    def scaled(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = soft_loss(scale * flat.reshape(start.shape), X, targets, weights, C)
        return value, (scale * gradient).ravel()

    options = {"maxiter": max_iter, "maxcor": 10, "gtol": _TOL, "ftol": 1e-7}
    result = minimize(scaled, (start / scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return scale * result.x.reshape(start.shape)


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
        P = softmax((X @ theta[:-1].astype(X.dtype) + theta[-1].astype(X.dtype)).astype(np.float64), axis=1)
        theta = fit_soft(inputs, soft_targets(S, P, Y, train)[rows], weights, C, theta)
        after_round(theta)
    return theta
