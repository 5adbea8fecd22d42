"""A Fisher layer with a linear head on the CPU: the projection follows while a block's φ is in the cache.

Its backward computes the means again, block by block, and uses them while they are there; of the size of φ it keeps
G = c Wᵀ g alone, which the members of other blocks ask for.
"""

from __future__ import annotations

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.tasks import exponential
from fishergraph.ops.attend.numba_backward import Transpose, block_factors, block_means, pull_back
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate.numba import fill_rows

# Parts of the sets whose gradients of W are added up apart: few, since each is as large as W, and enough for threads.
_PARTS, _LEAST = 32, 4096


def head(
    points: np.ndarray,
    logs: np.ndarray,
    sets: Multisets,
    anchors: np.ndarray,
    weight: np.ndarray,
    *,
    prior: float,
    fisher_root: float,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """z_v = Σ_j W_j φ_vj, (set, out), and log(κ + mass), (set, anchor); weight is (out, anchor · feature)."""
    known = Responsibilities(logs, exponential(logs, n_jobs))
    z = np.empty((sets.n_sets, weight.shape[0]), points.dtype)
    log_total = np.empty((sets.n_sets, len(anchors)), points.dtype)
    blocks = np.ascontiguousarray((fisher_root * weight).T, dtype=points.dtype)

    def fill(rows: slice) -> None:
        block = sets.block(rows)
        means, mass = np.empty((block.n_sets, *anchors.shape), points.dtype), np.empty_like(log_total[rows])
        totals, shift = fill_rows(
            points, known, False, block, anchors, variance=1.0, prior=prior, n_em_iter=1, means=means, mass=mass
        )
        means -= anchors
        np.matmul(means.reshape(block.n_sets, -1), blocks, out=z[rows])
        with np.errstate(divide="ignore"):
            np.add(np.log(totals), shift, out=log_total[rows])

    map_blocks(fill, row_blocks(sets.n_sets), n_jobs=n_jobs)
    return z, log_total


def head_backward(
    points: np.ndarray, logs: np.ndarray, sets: Multisets, anchors: np.ndarray, weight: np.ndarray,
    log_total: np.ndarray, grad: np.ndarray, transpose: Transpose, *, prior: float, fisher_root: float,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """(∂L/∂points, ∂L/∂logs, ∂L/∂anchors, ∂L/∂weight) with g = ∂L/∂z."""
    known, dtype = Responsibilities(logs, exponential(logs, n_jobs)), points.dtype
    slopes = np.empty((sets.n_sets, *anchors.shape), dtype)
    factors = np.empty((sets.n_sets, 3, len(anchors)), dtype)
    scaled, none = np.ascontiguousarray(fisher_root * weight, dtype=dtype), np.empty((0, len(anchors)), dtype)

    # Scaled gradients of half floats may overflow: whoever scaled them looks for that, and numbers pass through here.
    @np.errstate(over="ignore", invalid="ignore")
    def fill(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        own_weight, own_anchors = np.zeros_like(scaled), np.zeros_like(anchors)
        for block in row_blocks(rows.stop - rows.start):
            here = slice(rows.start + block.start, rows.start + block.stop)
            g, means = grad[here], block_means(points, known, sets.block(here), anchors, prior)
            np.matmul(g, scaled, out=slopes[here].reshape(len(g), -1))
            own_anchors += block_factors(log_total[here], means, slopes[here], none, prior, factors[here])
            own_weight += g.T @ means.reshape(len(g), -1)
        return own_weight, own_anchors

    parts = map_blocks(fill, row_blocks(sets.n_sets, max(_LEAST, -(-sets.n_sets // _PARTS))), n_jobs=n_jobs)
    weights, step = (np.ones(1, dtype), 0) if sets.weights is None else (sets.weights, 1)
    grad_points, grad_logs = pull_back(
        points, logs, known.plain, log_total, factors, none, slopes, weights, step, transpose, n_jobs
    )
    with np.errstate(over="ignore", invalid="ignore"):
        pulled = fisher_root * grad.sum(axis=0, dtype=np.float64)  # what φ loses with its anchor
        sums = [sum((part[k] for part in parts), np.zeros(1)) for k in (0, 1)]
        grad_weight = fisher_root * sums[0] - np.outer(pulled, anchors.ravel())
        grad_anchors = sums[1] - (pulled @ weight).reshape(anchors.shape)
    return grad_points, grad_logs, grad_anchors.astype(dtype), grad_weight.astype(dtype)
