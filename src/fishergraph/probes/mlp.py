"""A network with one hidden layer in NumPy: ReLU, dropout, Adam, averaged weights, stopped early on validation rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
from scipy.special import softmax

from fishergraph.probes.calibrate import log_loss

_HIDDEN, _DROPOUT, _INPUT_DROPOUT = 256, 0.5, 0.2
_BATCH, _EPOCHS, _PATIENCE = 128, 100, 10
_RATE, _DECAY = 2e-3, 1e-4
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # of Adam
_MEMORY = 0.99  # of the average of the weights
Weights = list[np.ndarray]  # (input, hidden), (hidden,), (hidden, class), (class,)


@dataclass(frozen=True, eq=False)
class MLP:
    """The map x → softmax(relu(x W_1 + b_1) W_2 + b_2) of rows that are scaled to a mean square entry of one."""

    weights: Weights
    n_epochs: int = 0

    def proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities of unit rows, float64, (row, class)."""
        W1, b1, W2, b2 = self.weights
        return softmax((np.maximum(scaled(X) @ W1 + b1, 0) @ W2 + b2).astype(np.float64), axis=1)


def scaled(X: np.ndarray) -> np.ndarray:
    """Unit rows, scaled to a mean square entry of one."""
    return X * np.sqrt(X.shape[1]).astype(X.dtype)


def mlp_gradient(weights: Weights, X: np.ndarray, targets: np.ndarray, mask: np.ndarray) -> tuple[float, Weights]:
    """The mean cross-entropy of a batch, and its gradient; `mask` multiplies the hidden units (dropout)."""
    W1, b1, W2, b2 = weights
    before = X @ W1 + b1  # (row, hidden)
    hidden = np.maximum(before, 0) * mask
    P = softmax(hidden @ W2 + b2, axis=1)
    value = -float(np.mean(np.log(np.maximum(np.sum(P * targets, axis=1), 1e-12))))
    error = (P - targets) / len(X)
    back = (error @ W2.T) * mask * (before > 0)
    return value, [X.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


def fit_mlp(
    X: np.ndarray,
    codes: np.ndarray,
    n_classes: int,
    rng: np.random.Generator,
    *,
    val: tuple[np.ndarray, np.ndarray] | None = None,
    n_epochs: int = _EPOCHS,
) -> MLP:
    """The network after the epoch with the least log-loss on `val`, rows and class numbers; else after all epochs."""
    X, targets = scaled(X), np.eye(n_classes, dtype=X.dtype)[codes]
    weights = _start(X.shape[1], n_classes, X.dtype, rng)
    moments = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    average, steps = weights, count(1)
    best, least, since = MLP(weights), np.inf, 0
    for epoch in range(1, n_epochs + 1):
        for rows in np.array_split(rng.permutation(len(X)), max(1, len(X) // _BATCH)):
            batch = X[rows] * _mask((len(rows), X.shape[1]), _INPUT_DROPOUT, X.dtype, rng)
            _, gradients = mlp_gradient(
                weights, batch, targets[rows], _mask((len(rows), _HIDDEN), _DROPOUT, X.dtype, rng)
            )
            step = next(steps)
            weights = _adam(weights, gradients, moments, step)
            share = np.asarray(1 - min(_MEMORY, step / (step + 10)), dtype=X.dtype)  # the first steps are forgotten
            average = [a + share * (w - a) for a, w in zip(average, weights, strict=True)]
        if val is None:
            continue
        loss = log_loss(MLP(average).proba(val[0]), val[1])
        best, least, since = (MLP(average, epoch), loss, 0) if loss < least else (best, least, since + 1)
        if since >= _PATIENCE:
            break
    return MLP(average, n_epochs) if val is None else best


def _start(n_inputs: int, n_classes: int, dtype: np.dtype, rng: np.random.Generator) -> Weights:
    """Normal weights of the size that keeps the scale of a row, and zero intercepts."""
    first = rng.standard_normal((n_inputs, _HIDDEN)) * np.sqrt(2 / n_inputs)
    second = rng.standard_normal((_HIDDEN, n_classes)) * np.sqrt(1 / _HIDDEN)
    return [part.astype(dtype) for part in (first, np.zeros(_HIDDEN), second, np.zeros(n_classes))]


def _mask(shape: tuple[int, int], dropout: float, dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Zeros with probability `dropout`, else 1 / (1 − dropout)."""
    return (rng.random(shape, dtype=np.float32) >= dropout).astype(dtype) / np.asarray(1 - dropout, dtype=dtype)


def _adam(weights: Weights, gradients: Weights, moments: tuple[Weights, Weights], step: int) -> Weights:
    """New weights after a step of Adam with decoupled decay; updates the moments in place."""
    moved = []
    for w, g, m, v in zip(weights, gradients, *moments, strict=True):
        m += (1 - _BETA1) * (g - m)
        v += (1 - _BETA2) * (g * g - v)
        rate = _RATE * np.sqrt(1 - _BETA2**step) / (1 - _BETA1**step)
        moved.append((w * (1 - _RATE * _DECAY) - rate * m / (np.sqrt(v) + _EPSILON)).astype(w.dtype))
    return moved
