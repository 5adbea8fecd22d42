"""A Fisher layer with a linear head on the CPU: the projection follows while a block's φ is in the cache."""

from __future__ import annotations

import numpy as np

from fishergraph.blocks import map_blocks, row_blocks
from fishergraph.multiset import Multisets
from fishergraph.ops.numba_attend import exponential
from fishergraph.ops.numba_cpu import fill_rows
from fishergraph.ops.registry import Responsibilities


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
