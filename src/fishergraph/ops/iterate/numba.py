"""The compiled CPU backend: one fused pass per multiset, one read of a point for all anchors.

Bytes per entry: the point (4·d) and its responsibilities (4·p), gathered once; the means of a row (4·p·d) stay in
the first-level cache. Nothing of the size of the entries is written.

Two rules give the members their shares. The plain one is a·α, which loses nothing as long as the mass of every anchor
is a normal number. Where a mass would underflow, and from the second iteration on, the shares are a softmax of the logs
over the multiset.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, inlined, leaf, readonly
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.members import squared_distance, sum_members
from fishergraph.ops.attend.numba_coefficients import add_anchors, normalise, plain_coefficients, softmax_coefficients
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.transport.numba import scratch, transport_row
from fishergraph.ops.transport.rules import MAX_ITER, default_tolerance, warn_unmet


@leaf
def _e_step_row(points, indices, start, stop, means, variance, logs):
    """log α_ij of the members of one multiset at that multiset's own means."""
    n_anchors = means.shape[0]
    for i in range(stop - start):
        x, row = points[indices[start + i]], logs[i]
        highest = -variance * np.inf
        for j in range(n_anchors):
            row[j] = -squared_distance(x, means[j]) / (variance + variance)
            highest = max(highest, row[j])
        total = variance - variance
        for j in range(n_anchors):
            row[j] -= highest
            total += np.exp(row[j])
        total = np.log(total)
        for j in range(n_anchors):
            row[j] -= total


@inlined
def _gather_logs(log_alpha, by_entry, indices, start, stop, logs):
    """The log-responsibilities of the members of one multiset, side by side."""
    for i in range(stop - start):
        row = start + i if by_entry else indices[start + i]
        for j in range(logs.shape[1]):
            logs[i, j] = log_alpha[row, j]


@compiled
def em_rows(
    points, log_alpha, alpha, by_entry, indptr, indices, weights, step, anchors, prior, variance, n_em_iter, slack,
    tolerance, max_iter, least_mass, means, mass, totals, shift, logs, shares, wide, anchor_shares, network,
):  # fmt: skip
    """The means of each multiset of the block after `n_em_iter` iterations (Eq. 17).

    The responsibilities of the first iteration belong to the point, or to the entry if `by_entry`; from the second on,
    and with a finite slack (Appendix C) from the first, to the pair (set, point). The denominators are
    totals · exp(shift). Returns what is left of the marginals' violation, zero where every transport converged.

    `network` is the scratch of a transport. Where it is None there is none, and none is compiled: that takes as long as
    all the rest. Likewise `variance` is None where there is one iteration, whose responsibilities are given.
    """
    transported, unmet = network is not None, 0.0
    for v in range(len(indptr) - 1):
        start, stop = indptr[v], indptr[v + 1]
        for iteration in range(n_em_iter):
            in_logs = iteration > 0 or transported
            if iteration == 0 and transported:
                # A constant of the member does not matter to the transport: the log-posterior serves as its score.
                _gather_logs(log_alpha, by_entry, indices, start, stop, logs)
            elif iteration == 0:
                plain_coefficients(alpha, by_entry, indices, weights, step, start, stop, shares, mass[v])
                for j in range(anchors.shape[0]):
                    totals[v, j], shift[v, j], anchor_shares[j] = mass[v, j] + prior, 0, prior
                    in_logs = in_logs or not least_mass <= totals[v, j] < np.inf
                if in_logs:
                    _gather_logs(log_alpha, by_entry, indices, start, stop, logs)
            elif variance is not None:
                _e_step_row(points, indices, start, stop, means[v], variance, logs)
            if network is not None:
                _, left = transport_row(logs, weights, step, start, stop - start, slack, tolerance, max_iter, network)
                unmet = max(unmet, left)
            if in_logs:
                softmax_coefficients(
                    logs, weights, step, start, stop, prior, shares, totals[v], shift[v], anchor_shares, mass[v]
                )
            normalise(shares, stop - start, totals[v])
            sum_members(points, indices, start, stop, shares, means[v], wide, None)
            add_anchors(means[v], totals[v], anchor_shares, anchors)
    return unmet


def fill_rows(
    points: np.ndarray,
    responsibilities: Responsibilities,
    by_entry: bool,
    sets: Multisets,
    anchors: np.ndarray,
    *,
    variance: float,
    prior: float,
    n_em_iter: int,
    means: np.ndarray,
    mass: np.ndarray,
    slack: float = np.inf,
    max_iter: int = MAX_ITER,
) -> tuple[np.ndarray, np.ndarray]:
    """Fill the means and the mass of one row block; returns its denominators as (totals, shift): totals · exp(shift).

    The responsibilities belong to the points, or, if `by_entry`, to the entries of the block.
    """
    dtype = points.dtype.type
    # The block's own entries alone: a cast of all weights for every block would be quadratic in the blocks.
    first, last = int(sets.indptr[0]), int(sets.indptr[-1])
    indptr, indices = sets.indptr - first, sets.indices[first:last]
    weights = np.ones(1, dtype) if sets.weights is None else sets.weights[first:last].astype(dtype, copy=False)
    step = 0 if sets.weights is None else 1
    largest, n_anchors = int((indptr[1:] - indptr[:-1]).max(initial=0)), anchors.shape[0]
    logs, shares = np.empty((largest, n_anchors), dtype), np.empty((largest, n_anchors), dtype)
    totals, shift = np.empty_like(mass), np.empty_like(mass)
    least_mass = dtype(np.finfo(dtype).tiny * 1e8)  # below it the plain sums would lose digits
    tolerance = 0.0 if slack == np.inf else default_tolerance(points.itemsize)
    unmet = em_rows(
        readonly(points), readonly(responsibilities.log), readonly(responsibilities.plain), by_entry,
        readonly(indptr), readonly(indices), readonly(weights), step, readonly(anchors),
        dtype(prior), None if n_em_iter == 1 else dtype(variance), n_em_iter,
        np.float64(slack), tolerance, max_iter, least_mass,
        means, mass, totals, shift, logs, shares, np.empty(anchors.shape), np.empty(n_anchors, dtype),
        None if slack == np.inf else scratch(n_anchors),
    )  # fmt: skip
    if unmet > 0:
        warn_unmet(unmet, tolerance, max_iter)
    return totals, shift


def em_block(
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
    slack: float = np.inf,
) -> None:
    """Fill the means and the mass of one row block."""
    fill_rows(
        points, responsibilities, False, sets, anchors,
        variance=variance, prior=prior, n_em_iter=n_em_iter, means=means, mass=mass, slack=slack,
    )  # fmt: skip
