"""The SciPy backend: one sparse product per anchor, with the attention as the matrix's data. One EM iteration."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fishergraph.multiset import Multisets
from fishergraph.ops.registry import Backend, Responsibilities


def run(
    points: np.ndarray,
    responsibilities: Responsibilities,
    sets: Multisets,
    anchors: np.ndarray,
    *,
    variance: float,
    prior: float,
    n_em_iter: int,
    means: np.ndarray,
    mass: np.ndarray,
) -> None:
    """Fill the means and the mass of one row block; the data of each product are shifted by their row's maximum."""
    first, last = int(sets.indptr[0]), int(sets.indptr[-1])
    indptr, indices = sets.indptr - first, sets.indices[first:last]
    weights = np.ones(last - first, points.dtype) if sets.weights is None else sets.weights[first:last]
    live = weights > 0
    if not live.all():  # a weight of zero is no member
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
        matrix = sp.csr_array((data, indices, indptr), shape=(sets.n_sets, points.shape[0]))
        total = np.bincount(rows, weights=data, minlength=sets.n_sets).astype(points.dtype)
        own = np.exp(log_prior - highest).astype(points.dtype)  # the prior's share, in the same shift
        filled = total + own > 0
        numerator = matrix @ points + own[:, None] * anchors[j]
        means[:, j] = np.where(filled[:, None], numerator, anchors[j])
        means[:, j] /= np.where(filled, total + own, 1)[:, None]
        mass[:, j] = total * np.exp(highest)


BACKEND = Backend("scipy", frozenset({"cpu"}), several_iterations=False, run=run)
