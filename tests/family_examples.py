"""One small θ of every family, with what other libraries say of it: its log-density, a rule for its integrals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from fishergraph.family import DiagonalMixture, Gaussian, GaussianMixture, MultinomialMixture, VonMisesFisherMixture
from fishergraph.family.diagonal_mixture import DiagonalMixtureTheta
from fishergraph.family.gaussian import GaussianTheta
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta
from fishergraph.family.multinomial import MultinomialTheta
from fishergraph.family.von_mises_fisher import VonMisesFisherTheta


@dataclass(frozen=True)
class Example:
    """A family, a θ, log p(x, z = j) of other libraries, and points with weights for ∫ f(x) dx."""

    family: Any
    theta: Any
    log_joint: Callable[[np.ndarray, Any], np.ndarray]
    rule: Callable[[], tuple[np.ndarray, np.ndarray]]

    @property
    def name(self) -> str:
        return self.family.name

    def log_density(self, points: np.ndarray, theta: Any) -> np.ndarray:
        return np.logaddexp.reduce(self.log_joint(points, theta), axis=1)


def plane(reach: float = 14.0, n: int = 281) -> tuple[np.ndarray, np.ndarray]:
    """The trapezoid rule on a square."""
    nodes = np.linspace(-reach, reach, n)
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid, np.full(len(grid), (nodes[1] - nodes[0]) ** 2)


def sphere(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre in the height, the trapezoid rule around."""
    heights, weights = np.polynomial.legendre.leggauss(n)
    angles = 2 * np.pi * np.arange(2 * n) / (2 * n)
    z, a = np.repeat(heights, len(angles)), np.tile(angles, n)
    rest = np.sqrt(1 - z**2)
    return np.stack([rest * np.cos(a), rest * np.sin(a), z], axis=1), np.repeat(weights, len(angles)) * np.pi / n


def tables(trials: int, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """All counts of that sum."""
    rows = [row for row in itertools.product(range(trials + 1), repeat=n_words) if sum(row) == trials]
    return np.array(rows, dtype=np.float64), np.ones(len(rows))


def gaussian_joint(points, theta):
    return np.stack([stats.multivariate_normal(theta.means[0], theta.covariances[0]).logpdf(points)], axis=1)


def mixture_joint(points, theta):
    p = len(theta.anchors)
    cov = theta.variance * np.eye(theta.anchors.shape[1])
    return np.stack([stats.multivariate_normal(w, cov).logpdf(points) - np.log(p) for w in theta.anchors], axis=1)


def diagonal_joint(points, theta):
    parts = zip(theta.log_weights, theta.means, theta.variances, strict=True)
    return np.stack([w + stats.norm(m, np.sqrt(v)).logpdf(points).sum(axis=1) for w, m, v in parts], axis=1)


def direction_joint(points, theta):
    logs = []
    for weight, mean in zip(theta.log_weights, theta.means, strict=True):
        length = np.linalg.norm(mean)
        # In three dimensions A(κ) = coth κ − 1/κ, solved here by bisection.
        low, high = 1e-6, 1e4
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if 1 / np.tanh(middle) - 1 / middle < length else (low, middle)
        logs.append(weight + stats.vonmises_fisher(mean / length, middle).logpdf(points))
    return np.stack(logs, axis=1)


def count_joint(points, theta):
    parts = zip(theta.log_weights, theta.probabilities, strict=True)
    n = points.sum(axis=1).astype(int)
    return np.stack([w + stats.multinomial(n, q).logpmf(points.astype(int)) for w, q in parts], axis=1)


def logs(*weights: float) -> np.ndarray:
    return np.log(np.array(weights))


SINGLE = [
    Example(
        Gaussian(),
        GaussianTheta(np.array([[0.4, -0.3]]), np.array([[[1.1, 0.5], [0.5, 0.8]]]), np.array([0.2, 0.1])),
        gaussian_joint,
        plane,
    ),
    Example(GaussianMixture(), GaussianMixtureTheta(np.array([[0.4, -0.3]]), 1.0), mixture_joint, plane),
    Example(
        DiagonalMixture(),
        DiagonalMixtureTheta(logs(1.0), np.array([[0.4, -0.3]]), np.array([[0.6, 1.3]]), np.array([0.2, 0.1])),
        diagonal_joint,
        plane,
    ),
    Example(
        VonMisesFisherMixture(), VonMisesFisherTheta(logs(1.0), np.array([[0.3, 0.5, -0.2]])), direction_joint, sphere
    ),
    Example(
        MultinomialMixture(),
        MultinomialTheta(logs(1.0), np.array([[0.2, 0.5, 0.3]]), 3.0),
        count_joint,
        lambda: tables(3, 3),
    ),
]
MIXED = [
    Example(
        GaussianMixture(),
        GaussianMixtureTheta(np.array([[0.4, -0.3], [1.5, 1.0], [-1.0, 1.2]]), 0.7),
        mixture_joint,
        plane,
    ),
    Example(
        DiagonalMixture(),
        DiagonalMixtureTheta(
            logs(0.3, 0.7),
            np.array([[0.4, -0.3], [1.9, 1.0]]),
            np.array([[0.6, 1.3], [0.9, 0.5]]),
            np.array([0.2, 0.1]),
        ),
        diagonal_joint,
        plane,
    ),
    Example(
        VonMisesFisherMixture(),
        VonMisesFisherTheta(logs(0.6, 0.4), np.array([[0.3, 0.5, -0.2], [-0.6, 0.2, 0.5]])),
        direction_joint,
        sphere,
    ),
    Example(
        MultinomialMixture(),
        MultinomialTheta(logs(0.6, 0.4), np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]), 4.0),
        count_joint,
        lambda: tables(4, 3),
    ),
]
