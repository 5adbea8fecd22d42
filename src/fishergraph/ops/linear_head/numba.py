"""A Fisher layer with a linear head on the CPU: a block of φ is projected while it is in the cache.

The backward pass computes the means again, block by block. Of the size of φ it keeps only G = c Wᵀ g, which the members
of other blocks read.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.tasks import Transpose, as_weights, exponential
from fishergraph.ops.attend.numba import SetRows, block_factors, block_means, pull_back
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate.numba import em_block

# The gradients of W of up to 32 runs of sets are added up: each is as large as W, and threads need several.
_RUNS, _LEAST = 32, 4096


def head(
    points: np.ndarray,
    logs: np.ndarray,
    sets: Multisets,
    anchors: np.ndarray,
    weight: np.ndarray,
    prior: float,
    fisher_root: float,
    keep: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """z_v = Σ_j W_j φ_vj, (set, out), and log(κ + mass), (set, anchor); weight is (out, anchor · feature).

    The third result would be φ, which is never kept.
    """
    responsibilities = Responsibilities(logs, exponential(logs))
    z = np.empty((sets.n_sets, weight.shape[0]), points.dtype)
    log_total = np.empty((sets.n_sets, len(anchors)), points.dtype)
    blocks = np.ascontiguousarray((fisher_root * weight).T, dtype=points.dtype)

    def fill(rows: slice) -> None:
        block = sets.block(rows)
        means, mass = np.empty((block.n_sets, *anchors.shape), points.dtype), np.empty_like(log_total[rows])
        totals, shift = em_block(points, responsibilities, block, anchors, prior=prior, means=means, mass=mass)
        means -= anchors
        np.matmul(means.reshape(block.n_sets, -1), blocks, out=z[rows])
        with np.errstate(divide="ignore"):
            np.add(np.log(totals), shift, out=log_total[rows])

    map_blocks(fill, row_blocks(sets.n_sets))
    return z, log_total, np.empty(0, points.dtype)


def head_backward(
    points: np.ndarray,
    logs: np.ndarray,
    sets: Multisets,
    transpose: Transpose,
    anchors: np.ndarray,
    weight: np.ndarray,
    prior: float,
    fisher_root: float,
    log_total: np.ndarray,
    phi: np.ndarray,
    grad: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(∂L/∂points, ∂L/∂logs, ∂L/∂anchors, ∂L/∂weight) with g = ∂L/∂z."""
    responsibilities, dtype = Responsibilities(logs, exponential(logs)), points.dtype
    slopes = np.empty((sets.n_sets, *anchors.shape), dtype)
    factors = np.empty((sets.n_sets, 3, len(anchors)), dtype)
    of_sets = SetRows(log_total, slopes, np.empty((0, len(anchors)), dtype), factors)
    scaled = np.ascontiguousarray(fisher_root * weight, dtype=dtype)

    # Scaled gradients of half floats may overflow. The gradient scaler checks for that, so no warning here.
    @np.errstate(over="ignore", invalid="ignore")
    def of_block(here: slice) -> tuple[np.ndarray, np.ndarray]:
        g, means = grad[here], block_means(points, responsibilities, sets.block(here), anchors, prior)
        np.matmul(g, scaled, out=slopes[here].reshape(len(g), -1))
        grad_anchors = block_factors(means, here, of_sets, prior)
        return g.T @ means.reshape(len(g), -1), grad_anchors

    def added(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        grad_weight, grad_anchors = np.zeros_like(scaled), np.zeros_like(anchors)
        for weights, centres in parts:
            grad_weight += weights
            grad_anchors += centres
        return grad_weight, grad_anchors

    def fill(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        blocks = row_blocks(rows.stop - rows.start)
        return added(of_block(slice(rows.start + block.start, rows.start + block.stop)) for block in blocks)

    if sets.n_sets <= _LEAST:  # one run: its blocks are the tasks, added in the same order
        runs = [added(map_blocks(of_block, row_blocks(sets.n_sets)))]
    else:
        runs = map_blocks(fill, row_blocks(sets.n_sets, max(_LEAST, -(-sets.n_sets // _RUNS))))
    weights = as_weights(sets.weights, dtype)
    grad_points, grad_logs = pull_back(points, responsibilities, of_sets, weights, transpose, None)
    with np.errstate(over="ignore", invalid="ignore"):
        pulled = fisher_root * grad.sum(axis=0, dtype=np.float64)  # φ subtracts the anchor
        sums = [sum((run[k] for run in runs), np.zeros(1)) for k in (0, 1)]
        grad_weight = fisher_root * sums[0] - np.outer(pulled, anchors.ravel())
        grad_anchors = sums[1] - (pulled @ weight).reshape(anchors.shape)
    return grad_points, grad_logs, grad_anchors.astype(dtype), grad_weight.astype(dtype)
