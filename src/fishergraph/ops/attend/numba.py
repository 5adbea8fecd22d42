"""The M-step of a whole graph at once, compiled, on arrays: the forward half of the tensor path on the CPU.

The rows are cut into tasks of about the same number of entries, by their numbers of entries alone; a row with very
many of them is cut itself and its parts are put together in their order. So neither the number of threads nor their
timing changes a bit.
"""

from __future__ import annotations

import numpy as np

from fishergraph._records import unchecked
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.tasks import exponential, fill_tasks
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate.numba import fill_rows


def attend(
    points: np.ndarray,
    logs: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None,
    anchors: np.ndarray,
    prior: float,
    by_entry: bool,
    *,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """means (set, anchor, feature), mass and log(κ + mass) (set, anchor) of every set (Eq. 17).

    μ_vj = (κ w_j + Σ_e a_e α_ej x_e) / (κ + Σ_e a_e α_ej); the anchor where the denominator is empty, with log −∞.
    logs: log α, (point, anchor), or (entry, anchor) if `by_entry`. The arrays are C-ordered and of one float type.
    """
    n_sets, (n_anchors, n_features) = len(indptr) - 1, anchors.shape
    means = np.empty((n_sets, n_anchors, n_features), points.dtype)
    mass, totals, shift = (np.empty((n_sets, n_anchors), points.dtype) for _ in range(3))
    alpha = None if by_entry else exponential(logs, n_jobs)

    def fill(rows: slice, bounds: np.ndarray, part: bool, *outputs: np.ndarray) -> None:
        own = logs[bounds[0] : bounds[-1]] if by_entry else logs
        sets = unchecked(Multisets, bounds, indices, weights, points.shape[0])
        known = Responsibilities(own, exponential(own, 1) if alpha is None else alpha)
        outputs[2][:], outputs[3][:] = fill_rows(
            points, known, by_entry, sets, anchors,
            variance=1.0, prior=0.0 if part else prior, n_em_iter=1, means=outputs[0], mass=outputs[1],
        )  # fmt: skip

    def combine(parts: list[list[np.ndarray]]) -> list[np.ndarray]:
        return _join_parts(parts, anchors, prior)

    fill_tasks(indptr, fill, (means, mass, totals, shift), combine=combine, n_jobs=n_jobs)
    with np.errstate(divide="ignore"):
        np.log(totals, out=totals)
    return means, mass, np.add(totals, shift, out=totals)


def _join_parts(parts: list[list[np.ndarray]], anchors: np.ndarray, prior: float) -> list[np.ndarray]:
    """The outputs of one set from those of its parts: means weighted by their denominators, and the prior's anchor."""
    means, mass, totals, shift = (np.stack(same).astype(np.float64) for same in zip(*parts, strict=True))
    with np.errstate(divide="ignore"):
        log_prior = np.log(np.float64(prior))
    shift = np.where(totals > 0, shift, -np.inf)
    highest = np.maximum(shift.max(axis=0), log_prior)  # (1, anchor)
    highest = np.where(np.isneginf(highest), 0.0, highest)
    shares, own = totals * np.exp(shift - highest), np.exp(log_prior - highest)
    total = shares.sum(axis=0) + own
    filled = ~(total <= 0)  # what is no number stays none
    numerator = (shares[..., None] * means).sum(axis=0) + own[..., None] * anchors
    joined = np.where(filled[..., None], numerator / np.where(filled, total, 1)[..., None], anchors)
    return [joined, mass.sum(axis=0), total, highest]
