"""p-values from permutations: counts, the tail of a gamma distribution, and the correction for many tests.

Nodes whose multisets have the same weights have the same null distribution: that of a random sample of as many points,
weighed alike. Their permuted scores are pooled, so the smallest p-value is 1 / (1 + permutations × nodes of the group).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

_FEW = 10  # exceedances below which a tail is used
_TIED = 1e-5  # scores that differ by less, relative to their size, are equal up to rounding


class NullCounts:
    """Permuted scores counted beside the observed ones, group by group; none of them is kept.

    observed : (row,).
    groups : the number of the group of every row; all from 0 to the largest occur.
    """

    def __init__(self, observed: np.ndarray, groups: np.ndarray):
        self.observed, self.groups = observed, groups
        self.sizes = np.bincount(groups)
        self.limits = observed - _TIED * np.abs(observed)
        self.n_permutations = 0
        self.exceeding = np.zeros(len(observed), np.int64)
        self.centres = np.zeros(len(self.sizes))
        self.powers = np.zeros((3, len(self.sizes)))  # sums of powers of permuted scores, about their centre

    def add(self, permuted: np.ndarray) -> None:
        """Count the scores of one permutation, (row,)."""
        if self.n_permutations == 0:
            self.centres = np.bincount(self.groups, permuted) / self.sizes
        self.exceeding += self._reaching(permuted)
        gaps = permuted - self.centres[self.groups]
        for power in range(3):
            self.powers[power] += np.bincount(self.groups, gaps ** (power + 1))
        self.n_permutations += 1

    def _reaching(self, permuted: np.ndarray) -> np.ndarray:
        """How many permuted scores of the group of a row are at least its own, (row,)."""
        n = len(permuted)
        if len(self.sizes) == n:  # every row is a group
            return (permuted >= self.limits).astype(np.int64)
        values, is_permuted = np.concatenate([self.limits, permuted]), np.repeat([0, 1], n)
        order = np.lexsort((is_permuted, values, np.tile(self.groups, 2)))
        smaller = np.cumsum(is_permuted[order])  # permuted scores up to here, of this group and all before
        before = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]
        own = order < n
        rows = order[own]
        reaching = np.empty(n, np.int64)
        reaching[rows] = self.sizes[self.groups[rows]] - (smaller[own] - before[self.groups[rows]])
        return reaching

    @property
    def n_null(self) -> np.ndarray:
        """The permuted scores that a row is compared with, (row,)."""
        return self.n_permutations * self.sizes[self.groups]

    def moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, standard deviation and skewness of the null distribution of every row."""
        first, second, third = self.powers / (self.n_permutations * self.sizes)
        variance = np.maximum(second - first**2, 0.0)
        deviation = np.sqrt(variance)
        cubes = third - 3 * first * second + 2 * first**3
        skewness = np.divide(cubes, deviation**3, out=np.zeros_like(cubes), where=deviation > 0)
        return tuple(values[self.groups] for values in (self.centres + first, deviation, skewness))  # type: ignore[return-value]

    def p_values(self) -> np.ndarray:
        """(1 + permuted scores that reach the observed one) / (1 + permuted scores)."""
        return (1 + self.exceeding) / (1 + self.n_null)


def counted(null: NullCounts) -> np.ndarray:
    """p-values from counts alone."""
    return null.p_values()


def gamma_tail(null: NullCounts) -> np.ndarray:
    """p-values from counts, and where fewer than ten scores reach the observed one, from a gamma distribution.

    It has the mean, the variance and the skewness of the permuted scores (Pearson's type III), the usual approximation
    for quadratic forms under permutation.
    """
    from scipy.stats import norm, pearson3

    mean, deviation, skewness = null.moments()
    counts = null.p_values()
    few = (null.exceeding < _FEW) & (deviation > 0)
    z = np.divide(null.observed - mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
    skewed = few & (skewness > 1e-3)
    tail = norm.sf(z)
    tail[skewed] = pearson3.sf(z[skewed], skewness[skewed])
    return np.where(few, np.minimum(tail, counts), counts)


def adjusted(p_values: np.ndarray) -> np.ndarray:
    """q-values of Benjamini and Hochberg: of the nodes with q ≤ a, an expected share of at most a is no exception."""
    n = len(p_values)
    if n == 0:
        return p_values
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * n / np.arange(1, n + 1)
    out = np.empty(n)
    out[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return out


TAILS: dict[str, Callable[[NullCounts], np.ndarray]] = {"counts": counted, "gamma": gamma_tail}


def weight_groups(sets: Any) -> np.ndarray:
    """The number of the group of every row: rows whose members have the same weights.

    Members of several kinds, or of several nodes, may share nodes: every row is then a group of its own.
    """
    if sets.kinds > 1 or sets.lifted:
        return np.arange(sets.n_sets)
    sizes = np.diff(sets.indptr)
    if sets.weights is None:
        return np.unique(sizes, return_inverse=True)[1]
    start = int(sets.indptr[0])
    weights = np.asarray(sets.weights[start : int(sets.indptr[-1])])
    rows = np.repeat(np.arange(sets.n_sets), sizes)
    weights, borders = weights[np.lexsort((weights, rows))], (sets.indptr - start).tolist()
    numbers: dict[bytes, int] = {}
    keys = (weights[first:stop].tobytes() for first, stop in pairwise(borders))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
