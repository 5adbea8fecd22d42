"""Multinomial regression on soft targets and weighted rows, in the dtype of the rows, to a loose tolerance.

    minimise over θ = (W; b):   Σ_i w_i CE(t_i, softmax(W'x_i + b)) / Σ w  +  ‖W‖² / (2 C Σ w).

The columns should be principal axes, at least within each block of columns: each is scaled by its curvature, and the
solver needs a dozen or two steps then.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

_LEAST_CURVATURE = 0.02  # of p (1 − p), which vanishes if every row is certain; only the speed depends on it
_STEPS, _TOL = 60, 1e-3


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax of every row; SciPy's takes several times as long for a few hundred rows."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def soft_loss(
    theta: np.ndarray, X: np.ndarray, targets: np.ndarray, weights: np.ndarray, C: float
) -> tuple[float, np.ndarray]:
    """The objective at θ (axis + 1, class), and its gradient."""
    total = weights.sum()
    W, b = theta[:-1].astype(X.dtype), theta[-1].astype(X.dtype)
    log_p = log_softmax(X @ W + b)  # (row, class)
    share = (weights / total).astype(X.dtype)[:, None]
    value = -np.sum(share * targets * log_p, dtype=np.float64) + np.sum(theta[:-1] ** 2) / (2 * C * total)
    error = share * (np.exp(log_p) - targets)
    gradient = np.vstack([X.T @ error, error.sum(axis=0)[None]]).astype(np.float64)
    gradient[:-1] += theta[:-1] / (C * total)
    return float(value), gradient


def fit_soft(
    X: np.ndarray, targets: np.ndarray, weights: np.ndarray, C: float, start: np.ndarray, max_iter: int = _STEPS
) -> np.ndarray:
    """The minimiser θ (axis + 1, class), from `start`, by quasi-Newton steps on scaled columns."""
    total, targets = weights.sum(), targets.astype(X.dtype, copy=False)
    C = C / 2 if targets.shape[1] == 2 else C  # two columns share the penalty of one
    extent = np.append(weights.astype(X.dtype) @ X**2 / total, 1.0)
    penalty = np.append(np.full(X.shape[1], 1 / (C * total)), 0.0)
    P = soft_proba(X, start)
    curvature = max(float(np.mean(P * (1 - P))), _LEAST_CURVATURE)
    scale = (1 / np.sqrt(curvature * extent + penalty))[:, None]

    def scaled(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = soft_loss(scale * flat.reshape(start.shape), X, targets, weights, C)
        return value, (scale * gradient).ravel()

    options = {"maxiter": max_iter, "maxcor": 10, "gtol": _TOL, "ftol": 1e-7}
    result = minimize(scaled, (start / scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return scale * result.x.reshape(start.shape)


def soft_proba(X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """softmax(W'x + b) of every row, float64, (row, class)."""
    logits = X @ theta[:-1].astype(X.dtype) + theta[-1].astype(X.dtype)
    return softmax(logits.astype(np.float64), axis=1)
