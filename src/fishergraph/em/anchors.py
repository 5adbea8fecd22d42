"""Anchors θ_0, learned from a sample of the points, and the variance that goes with them (Section 4.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fishergraph._checks import look_up
from fishergraph.blocks import map_blocks, row_blocks
from fishergraph.em.e_step import entropy, log_softmax, posterior
from fishergraph.em.kmeans import kmeans
from fishergraph.family import relative_log_joint
from fishergraph.multiset import Multisets

# Enough for a handful of anchors; with many anchors the sample grows with their number.
_LEAST_SAMPLE = 4096
_SAMPLES_PER_CENTRE = 128
# Points the variance is calibrated on.
_CALIBRATION_POINTS = 4096


def sample_size(n_centres: int, max_samples: int, n_available: int) -> int:
    """How many points k-means looks at: 128 per centre, at least 4,096, at most `max_samples`."""
    return min(n_available, max_samples, max(_LEAST_SAMPLE, _SAMPLES_PER_CENTRE * n_centres))


def sample_members(sets: Multisets, size: int, rng: np.random.Generator) -> np.ndarray:
    """Points drawn from the union of the multisets: a point counts once for every set it belongs to (Section 4.5)."""
    start, n_entries = int(sets.indptr[0]), sets.n_entries
    if n_entries <= size:
        return sets.indices[start : start + n_entries]
    entries = np.unique(rng.integers(n_entries, size=size))  # sorted, so that rows are read in order
    return sets.indices[start + entries]


def learn_anchors(
    points: Any,
    n_anchors: int,
    *,
    method: str = "kmeans",
    init: str = "random",
    n_iter: int = 5,
    variance: float = 1.0,
    rng: np.random.Generator | int | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Anchors (anchor, feature) of the points: centres of k-means, spherical k-means, or means of mixture EM.

    Parameters
    ----------
    method : "kmeans"; "spherical" for unit vectors; "em", which starts from k-means and then iterates the E- and
        M-step of the mixture with the given variance; "random", distinct points as they are.
    init : "random" or "k-means++".
    """
    learn = look_up(METHODS, method, "method")
    return learn(points, n_anchors, init, n_iter, variance, np.random.default_rng(rng), n_jobs)


def _plain(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    return kmeans(points, n_anchors, rng=rng, init=init, n_iter=n_iter, n_jobs=n_jobs)


def _spherical(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    return kmeans(points, n_anchors, rng=rng, spherical=True, init=init, n_iter=n_iter, n_jobs=n_jobs)


def _random(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    return kmeans(points, n_anchors, rng=rng, init=init, n_iter=0, n_jobs=n_jobs)


def _mixture_em(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    means = kmeans(points, n_anchors, rng=rng, init=init, n_iter=2, n_jobs=n_jobs)
    for _ in range(n_iter):
        means = mixture_em_step(points, means, variance, n_jobs=n_jobs)
    return means


def mixture_em_step(points: np.ndarray, means: np.ndarray, variance: float, *, n_jobs: int | None = None) -> np.ndarray:
    """The means after one EM iteration on all points (Eq. 17), summed block by block in order; a mass of zero stays."""

    def block_sums(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        alpha = np.exp(posterior(points[rows], means, variance))  # (point, anchor)
        return (alpha.T @ points[rows]).astype(np.float64), alpha.sum(axis=0, dtype=np.float64)

    parts = map_blocks(block_sums, row_blocks(points.shape[0], 4096), n_jobs=n_jobs)
    sums, mass = np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)
    filled = (mass > 0)[:, None]
    new = np.divide(sums, mass[:, None], out=means.astype(np.float64), where=filled)
    return new.astype(means.dtype)


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "kmeans": _plain,
    "spherical": _spherical,
    "em": _mixture_em,
    "random": _random,
}


def calibrate_variance(points: Any, anchors: np.ndarray, target: float) -> float:
    """The variance at which the mean entropy of the responsibilities is `target` · log p, by bisection on log σ².

    This is what perplexity does in t-SNE. With one anchor, or anchors that coincide, every variance gives the same
    responsibilities and the answer is 1.
    """
    points = points[:: max(1, len(points) // _CALIBRATION_POINTS)][:_CALIBRATION_POINTS]
    scores = np.asarray(relative_log_joint(points, anchors, 1.0), dtype=np.float64)
    spread = float(np.mean(np.max(scores, axis=1) - np.min(scores, axis=1)))
    if len(anchors) == 1 or spread == 0:
        return 1.0
    wanted = target * np.log(len(anchors))
    low, high = np.log(spread) - 20, np.log(spread) + 20
    for _ in range(60):
        middle = 0.5 * (low + high)
        mean_entropy = np.mean(entropy(log_softmax(scores / np.exp(middle))))
        low, high = (middle, high) if mean_entropy < wanted else (low, middle)
    return float(np.exp(0.5 * (low + high)))
