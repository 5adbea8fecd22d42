"""The M-step of a row block with SciPy: one sparse product per anchor, whose data are the attention. One iteration."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fishergraph.multiset import Multisets
from fishergraph.ops.engine import Responsibilities

# Entries of one chain of additions; a chain of 10⁷ would be off by percents in float32.
_CHUNK = 32


def _sum_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Σ_e data_e x_e over the entries of every row, (row, feature); the parts of long rows are added in float64."""
    parts = -(-np.diff(indptr) // _CHUNK)  # of every row
    first = np.concatenate([[0], np.cumsum(parts)])
    starts = np.repeat(indptr[:-1] - _CHUNK * first[:-1], parts) + _CHUNK * np.arange(first[-1])
    chunks = sp.csr_array((data, indices, np.append(starts, indptr[-1])), shape=(len(starts), points.shape[0]))
    sums, filled = np.zeros((len(parts), points.shape[1]), points.dtype), parts > 0
    if len(starts):
        sums[filled] = np.add.reduceat(chunks @ points, first[:-1][filled], axis=0, dtype=np.float64)
    return sums


def em_block(
    points: np.ndarray,
    responsibilities: Responsibilities,
    sets: Multisets,
    anchors: np.ndarray,
    *,
    variance: float,
    prior: float,
    n_iter: int,
    means: np.ndarray,
    mass: np.ndarray,
) -> None:
    """Fill the means and the mass of one row block; the data of each product are shifted by their row's maximum."""
    first, last = int(sets.indptr[0]), int(sets.indptr[-1])
    indptr, indices = sets.indptr - first, sets.indices[first:last]
    weights = np.ones(last - first, points.dtype) if sets.weights is None else sets.weights[first:last]
    live = weights > 0
    if not live.all():  # entries of weight zero are not members
        indptr = np.concatenate([[0], np.cumsum(live)])[indptr]
        indices, weights = indices[live], weights[live]
    rows = np.repeat(np.arange(sets.n_sets), np.diff(indptr))
    log_weights = np.log(weights).astype(points.dtype, copy=False)
    log_prior = np.log(prior) if prior > 0 else -np.inf
    for j in range(anchors.shape[0]):
        logs = responsibilities.log[indices, j] + log_weights  # (entry,)
        highest = np.full(sets.n_sets, log_prior, dtype=points.dtype)
        np.maximum.at(highest, rows, logs)
        highest[np.isneginf(highest)] = 0  # an empty set without a prior: nothing is summed
        data = np.exp(logs - highest[rows])
        total = np.bincount(rows, weights=data, minlength=sets.n_sets).astype(points.dtype)
        anchor_c = np.exp(log_prior - highest).astype(points.dtype)  # the coefficient of the anchor
        filled = total + anchor_c > 0
        numerator = _sum_rows(data, indices, indptr, points) + anchor_c[:, None] * anchors[j]
        means[:, j] = np.where(filled[:, None], numerator, anchors[j])
        means[:, j] /= np.where(filled, total + anchor_c, 1)[:, None]
        mass[:, j] = total * np.exp(highest)
