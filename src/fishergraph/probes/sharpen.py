"""Eigen-sharpening of an embedding: rows on principal axes, axis i scaled by λ_i^{p/2}, then unit rows.

p = 0 keeps the axes as they are; p = 1 gives more weight to the axes along which all nodes vary, labelled or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOST_AXES = 256
_MOST_ROWS = 4096  # from which the axes are computed
_EXTRA, _STEPS = 32, 4  # of subspace iteration: more axes than needed, products with the covariance


@dataclass(frozen=True)
class Sharpening:
    """The map z → unit row of ((z − mean) · axes) · scale."""

    mean: np.ndarray  # (feature,)
    axes: np.ndarray  # (feature, axis)
    scale: np.ndarray  # (axis,)

    def rows(self, Z: np.ndarray) -> np.ndarray:
        """The sharpened rows of Z, (row, axis); a row equal to the mean stays zero."""
        return self.rows_on_axes((Z - self.mean) @ self.axes)

    def rows_on_axes(self, coordinates: np.ndarray) -> np.ndarray:
        """The sharpened rows of rows that are on the axes already."""
        rows = coordinates * self.scale
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)  # first, so that squares can be added
        rows /= np.where(largest > 0, largest, 1)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1)


def sharpenings(
    Z: np.ndarray, powers: tuple[float, ...], rng: np.random.Generator, n_axes: int = MOST_AXES
) -> dict[float, Sharpening]:
    """One `Sharpening` of the rows of Z per power p; they share the axes."""
    mean, axes, variances = fit_axes(Z, rng, n_axes)
    first = variances[0] if variances[0] > 0 else 1  # unit rows do not depend on a common factor
    scales = {power: ((variances / first) ** (power / 2)).astype(axes.dtype) for power in powers}
    return {power: Sharpening(mean, axes, scale) for power, scale in scales.items()}


def fit_axes(
    Z: np.ndarray, rng: np.random.Generator, n_axes: int = MOST_AXES
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean, the first principal axes (feature, axis) and their variances, descending.

    They are those of at most 4,096 random rows; axes without variance are left out, except the first. The variances
    have a common factor, so that the squares of large and of small rows can be added.
    """
    sample = Z if len(Z) <= _MOST_ROWS else Z[np.sort(rng.choice(len(Z), _MOST_ROWS, replace=False))]
    mean = sample.mean(axis=0)
    centred = sample - mean
    size = np.abs(centred).max()
    centred = centred / (size if size > 0 else 1)
    variances, axes = leading_eigenvectors(centred.T @ centred / len(sample), n_axes, rng)
    kept = max(1, int(np.sum(variances > np.finfo(variances.dtype).eps * len(axes) * variances[0])))
    return mean, np.ascontiguousarray(axes[:, :kept]), np.maximum(variances[:kept], 0.0)


def leading_eigenvectors(M: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues of a positive semidefinite matrix, descending, and their eigenvectors (row, vector).

    Of a matrix much larger than n they come from subspace iteration, in a fifth of the time.
    """
    if len(M) <= 2 * (n + _EXTRA):
        values, vectors = np.linalg.eigh(M)
        return values[::-1][:n], vectors[:, ::-1][:, :n]
    Q = rng.standard_normal((len(M), n + _EXTRA)).astype(M.dtype)
    for _ in range(_STEPS):
        Q = np.linalg.qr(M @ Q)[0]
    values, vectors = np.linalg.eigh(Q.T @ (M @ Q))
    return values[::-1][:n], Q @ vectors[:, ::-1][:, :n]
