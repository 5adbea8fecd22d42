"""Multinomial regression on soft targets and weighted rows, in the dtype of the rows, to a loose tolerance.

    minimise over θ = (W; b):   Σ_i w_i CE(t_i, softmax(W'x_i + b)) / Σ w  +  ‖W‖² / (2 C Σ w).

The columns should be principal axes, at least within each block of columns: each is scaled by its curvature, and the
solver needs a dozen or two steps then. Inside, classes are rows: sums over them are sums of long vectors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

_LEAST_CURVATURE = 0.02  # of p (1 − p), which vanishes if every row is certain; only the speed depends on it
_STEPS, _TOL = 60, 1e-3

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]  # θ (axis + 1, class) → value, gradient


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax of every column, (class, row); SciPy's takes several times as long."""
    shifted = logits - np.maximum.reduce(logits, axis=0)
    shifted -= np.log(np.add.reduce(np.exp(shifted), axis=0))
    return shifted


def soft_objective(X: np.ndarray, targets: np.ndarray, weights: np.ndarray, C: float) -> Objective:
    """The objective, a function of θ (axis + 1, class) that returns its value and its gradient."""
    total = weights.sum()
    columns, share = X.T, (weights / total).astype(X.dtype)  # (axis, row), (row,)
    goals = np.ascontiguousarray(targets.T, dtype=X.dtype)  # (class, row)
    weighted = share * goals

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        W, b = theta[:-1], theta[-1].astype(X.dtype)
        log_p = log_softmax(W.T.astype(X.dtype) @ columns + b[:, None])  # (class, row)
        value = np.sum(W**2) / (2 * C * total) - np.sum(weighted * log_p, dtype=np.float64)
        error = np.exp(log_p, out=log_p)
        error -= goals
        error *= share
        gradient = np.empty(theta.shape)
        gradient[:-1], gradient[-1] = (error @ X).T, error.sum(axis=1)
        gradient[:-1] += W / (C * total)
        return float(value), gradient

    return objective


def fit_soft(
    X: np.ndarray, targets: np.ndarray, weights: np.ndarray, C: float, start: np.ndarray, max_iter: int = _STEPS
) -> np.ndarray:
    """The minimiser θ (axis + 1, class), from `start`, by quasi-Newton steps on scaled columns."""
    total = weights.sum()
    C = C / 2 if targets.shape[1] == 2 else C  # two columns share the penalty of one
    extent = np.append(weights.astype(X.dtype) @ X**2 / total, 1.0)
    penalty = np.append(np.full(X.shape[1], 1 / (C * total)), 0.0)
    P = soft_proba(X, start)
    curvature = max(float(np.mean(P * (1 - P))), _LEAST_CURVATURE)
    scale, objective = (1 / np.sqrt(curvature * extent + penalty))[:, None], soft_objective(X, targets, weights, C)

    def scaled(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(scale * flat.reshape(start.shape))
        return value, (scale * gradient).ravel()

    options = {"maxiter": max_iter, "maxcor": 10, "gtol": _TOL, "ftol": 1e-7}
    result = minimize(scaled, (start / scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return scale * result.x.reshape(start.shape)


def soft_proba(X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """softmax(W'x + b) of every row, float64, (row, class)."""
    W, b = theta[:-1].astype(X.dtype), theta[-1].astype(X.dtype)
    log_p = log_softmax((W.T @ X.T + b[:, None]).astype(np.float64))
    return np.ascontiguousarray(np.exp(log_p, out=log_p).T)
