"""A network with one hidden layer in NumPy: ReLU, dropout, Adam, stopped early on validation rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

_BATCH, _EPOCHS, _PATIENCE = 128, 150, 20
_RATE, _DECAY = 2e-3, 1e-4
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # of Adam
Weights = list[np.ndarray]  # (input, hidden), (hidden,), (hidden, class), (class,)


@dataclass(frozen=True)
class MLP:
    """The map x → softmax(relu(x W_1 + b_1) W_2 + b_2)."""

    weights: Weights

    def proba(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities, float64, (row, class)."""
        W1, b1, W2, b2 = self.weights
        return softmax((np.maximum(X @ W1 + b1, 0) @ W2 + b2).astype(np.float64), axis=1)


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
    val: tuple[np.ndarray, np.ndarray],
    rng: np.random.Generator,
    *,
    n_hidden: int = 256,
    dropout: float = 0.5,
) -> MLP:
    """The network of the epoch with the highest accuracy on `val`, a pair of rows and class numbers."""
    targets = np.eye(n_classes, dtype=X.dtype)[codes]
    weights = _start(X.shape[1], n_hidden, n_classes, X.dtype, rng)
    first, second = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    best, best_score, since, step = MLP(weights), (-1.0, 0.0), 0, 0
    for _ in range(_EPOCHS):
        order = rng.permutation(len(X))
        for rows in np.array_split(order, max(1, len(X) // _BATCH)):
            mask = (rng.random((len(rows), n_hidden), dtype=np.float32) >= dropout).astype(X.dtype) / (1 - dropout)
            _, gradients = mlp_gradient(weights, X[rows], targets[rows], mask)
            step += 1
            weights = _adam(weights, gradients, first, second, step)
        score = _score(MLP(weights).proba(val[0]), val[1])
        best, best_score, since = (MLP(weights), score, 0) if score > best_score else (best, best_score, since + 1)
        if since >= _PATIENCE:
            break
    return best


def _start(n_inputs: int, n_hidden: int, n_classes: int, dtype: np.dtype, rng: np.random.Generator) -> Weights:
    """Normal weights of the size that keeps the scale of a row, and zero intercepts."""
    first = rng.standard_normal((n_inputs, n_hidden)) * np.sqrt(2 / n_inputs)
    second = rng.standard_normal((n_hidden, n_classes)) * np.sqrt(1 / n_hidden)
    parts = [first, np.zeros(n_hidden), second, np.zeros(n_classes)]
    return [part.astype(dtype) for part in parts]


def _adam(weights: Weights, gradients: Weights, first: Weights, second: Weights, step: int) -> Weights:
    """New weights after a step of Adam with decoupled decay; updates the moments in place."""
    moved = []
    for w, g, m, v in zip(weights, gradients, first, second, strict=True):
        m += (1 - _BETA1) * (g - m)
        v += (1 - _BETA2) * (g * g - v)
        rate = _RATE * np.sqrt(1 - _BETA2**step) / (1 - _BETA1**step)
        moved.append((w * (1 - _RATE * _DECAY) - rate * m / (np.sqrt(v) + _EPSILON)).astype(w.dtype))
    return moved


def _score(P: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Accuracy, and the mean probability of the true class, which breaks ties."""
    true = np.where(codes >= 0, P[np.arange(len(codes)), np.maximum(codes, 0)], 0.0)
    return float(np.mean(P.argmax(axis=1) == codes)), float(true.mean())
