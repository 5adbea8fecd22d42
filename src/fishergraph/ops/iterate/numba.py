"""EM iterations, compiled: one fused pass per multiset, one read of a point for all anchors.

Bytes per entry: the point (4·d) and its responsibilities (4·p), gathered once; the means of a row (4·p·d) stay in
the first-level cache. Nothing of the size of the entries is written. The scores of later E-steps read the statistic of
an entry (4·s) once for all anchors.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, inlined, inner, readonly
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.members import (
    add_anchors,
    four_distances,
    longest_row,
    normalise,
    plain_coefficients,
    prefetch_member,
    rows_ahead,
    softmax_coefficients,
    squared_distance,
    sum_members,
)
from fishergraph.ops._numba.tasks import Transpose, as_weights, entry_array, fill_tasks
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.segment_sums.numba import sum_over_sets
from fishergraph.ops.transport.numba import scratch, transport_row
from fishergraph.ops.transport.rules import MAX_ITER, default_tolerance, warn_unmet


@inner
def _e_step_row(points, indices, start, stop, means, variance, logs):
    """log α_ij of the members of one multiset at the means of that multiset."""
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
    """The log-responsibilities of the members of one multiset, in consecutive rows."""
    for i in range(stop - start):
        row = start + i if by_entry else indices[start + i]
        for j in range(logs.shape[1]):
            logs[i, j] = log_alpha[row, j]


@compiled
def plain_rows(points, alpha, by_entry, sets, anchors, prior, least_mass, results, scratch):
    """One iteration of `em_rows` from given α, without logs: whether a denominator is too small or large for that.

    It is compiled on its own, because the logs take long to compile, and are seldom needed. `scratch` has room for the
    coefficients of the largest set and of the anchors, and for means in float64.
    """
    (indptr, indices, weights, step), (means, mass, totals, shift), (c, anchor_c, wide) = sets, results, scratch
    in_logs = False
    for v in range(len(indptr) - 1):
        start, stop = indptr[v], indptr[v + 1]
        plain_coefficients(alpha, by_entry, indices, weights, step, start, stop, c, mass[v])
        for j in range(anchors.shape[0]):
            totals[v, j], shift[v, j], anchor_c[j] = mass[v, j] + prior, 0, prior
            in_logs = in_logs or not least_mass <= totals[v, j] < np.inf
        normalise(c, stop - start, totals[v])
        sum_members(points, indices, start, stop, c, means[v], wide, None)
        add_anchors(means[v], totals[v], anchor_c, anchors)
    return in_logs


@compiled
def em_rows(points, responsibilities, by_entry, sets, anchors, prior, variance, n_iter, limits, results, network):
    """The means of each multiset of the block after `n_iter` iterations (Eq. 17).

    responsibilities (log α, α) of the first iteration belong to the point, or to the entry if `by_entry`; from the
    second iteration on, and with a finite slack (Appendix C) from the first, to the pair (set, point). sets is (indptr,
    indices, weights, step), limits (least mass, slack, tolerance, max_iter), results (means, mass, totals, shift): the
    denominators are totals · exp(shift). Returns the remaining violation of the marginals, 0 if every transport
    converged.

    `network` is the scratch of a transport. If it is None, no transport is compiled: that takes as long as all the
    rest. Likewise `variance` is None if there is one iteration, whose responsibilities are given.
    """
    (log_alpha, alpha), (indptr, indices, weights, step) = responsibilities, sets
    (least_mass, slack, tolerance, max_iter), (means, mass, totals, shift) = limits, results
    shape = (longest_row(indptr), anchors.shape[0])
    logs, c, anchor_c = np.empty(shape, points.dtype), np.empty(shape, points.dtype), np.empty(shape[1], points.dtype)
    wide, transported, unmet = np.empty(anchors.shape), network is not None, 0.0
    for v in range(len(indptr) - 1):
        start, stop = indptr[v], indptr[v + 1]
        for iteration in range(n_iter):
            in_logs = iteration > 0 or transported
            if iteration == 0 and transported:
                # A constant of the member does not change the transport: the log-posterior serves as its score.
                _gather_logs(log_alpha, by_entry, indices, start, stop, logs)
            elif iteration == 0:
                plain_coefficients(alpha, by_entry, indices, weights, step, start, stop, c, mass[v])
                for j in range(anchors.shape[0]):
                    totals[v, j], shift[v, j], anchor_c[j] = mass[v, j] + prior, 0, prior
                    in_logs = in_logs or not least_mass <= totals[v, j] < np.inf
                if in_logs:
                    _gather_logs(log_alpha, by_entry, indices, start, stop, logs)
            elif variance is not None:
                _e_step_row(points, indices, start, stop, means[v], variance, logs)
            if network is not None:
                _, left = transport_row(logs, weights, step, start, stop - start, slack, tolerance, max_iter, network)
                unmet = max(unmet, left)
            if in_logs:
                softmax_coefficients(logs, weights, step, start, stop, prior, c, totals[v], shift[v], anchor_c, mass[v])
            normalise(c, stop - start, totals[v])
            sum_members(points, indices, start, stop, c, means[v], wide, None)
            add_anchors(means[v], totals[v], anchor_c, anchors)
    return unmet


def em_block(
    points: np.ndarray,
    responsibilities: Responsibilities,
    sets: Multisets,
    anchors: np.ndarray,
    *,
    prior: float,
    means: np.ndarray,
    mass: np.ndarray,
    variance: float = 1.0,
    n_iter: int = 1,
    slack: float = np.inf,
    by_entry: bool = False,
    max_iter: int = MAX_ITER,
) -> tuple[np.ndarray, np.ndarray]:
    """Fill the means and the mass of one row block; returns its denominators as (totals, shift): totals · exp(shift).

    The responsibilities belong to the points, or, if `by_entry`, to the entries of the block.
    """
    dtype = points.dtype
    # Only the entries of the block: a cast of all weights for every block would be quadratic in the blocks.
    first, last = int(sets.indptr[0]), int(sets.indptr[-1])
    step = 0 if sets.weights is None else 1
    weights = np.ones(1, dtype) if sets.weights is None else sets.weights[first:last].astype(dtype, copy=False)
    totals, shift = np.empty_like(mass), np.empty_like(mass)
    least_mass = dtype.type(np.finfo(dtype).tiny * 1e8)  # below it the plain sums would lose digits
    tolerance = 0.0 if slack == np.inf else default_tolerance(points.itemsize)
    x, w, alpha, kappa = readonly(points), readonly(anchors), readonly(responsibilities.plain), dtype.type(prior)
    members = readonly(sets.indptr - first), readonly(sets.indices[first:last]), readonly(weights), step
    results = means, mass, totals, shift
    if n_iter == 1 and slack == np.inf:
        longest = int(np.diff(members[0]).max(initial=0))
        room = np.empty((longest, len(w)), dtype), np.empty(len(w), dtype), np.empty(w.shape)
        if not plain_rows(x, alpha, by_entry, members, w, kappa, least_mass, results, room):
            return totals, shift
    unmet = em_rows(
        x,
        (readonly(responsibilities.log), alpha),
        by_entry,
        members,
        w,
        kappa,
        None if n_iter == 1 else dtype.type(variance),
        n_iter,
        (least_mass, np.float64(slack), tolerance, max_iter),
        results,
        None if slack == np.inf else scratch(anchors.shape[0]),
    )
    if unmet > 0:
        warn_unmet(unmet, tolerance, max_iter)
    return totals, shift


@compiled
def _scores(statistics, indptr, natural, offsets, scores):
    for v in range(len(indptr) - 1):
        for e in range(indptr[v], indptr[v + 1]):
            row = statistics[e]
            for j in range(natural.shape[1]):
                parameters, total = natural[v, j], offsets[v, j] - offsets[v, j]
                for k in range(len(row)):
                    total += row[k] * parameters[k]
                scores[e, j] = total + offsets[v, j]


def entry_scores(statistics: np.ndarray, indptr: np.ndarray, natural: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    scores = np.empty((len(statistics), natural.shape[1]), statistics.dtype)
    _scores(readonly(statistics), readonly(indptr), readonly(natural), readonly(offsets), scores)
    return scores


@compiled
def _score_rows(points, means, bounds, indices, ahead, scores):
    """s_ej = −‖x_e − μ_vj‖²/2 of the entries of a block of sets."""
    n_anchors = means.shape[1]
    for v in range(len(bounds) - 1):
        for e in range(bounds[v], bounds[v + 1]):
            prefetch_member(points, indices, e + ahead)
            x, row = points[indices[e]], scores[e]
            for j in range(0, n_anchors - 3, 4):
                row[j], row[j + 1], row[j + 2], row[j + 3] = four_distances(x, means[v], j)
            for j in range(n_anchors - n_anchors % 4, n_anchors):
                row[j] = squared_distance(x, means[v, j])
            for j in range(n_anchors):
                row[j] /= -2


@compiled
def _score_means(points, means, grad, bounds, indices, grad_means):
    """∂L/∂μ_vj = Σ_e ∂L/∂s_ej (x_e − μ_vj) of a block of sets."""
    wide = np.empty(means.shape[1:])
    for v in range(len(bounds) - 1):
        start, stop = bounds[v], bounds[v + 1]
        sum_members(points, indices, start, stop, grad[start:stop], grad_means[v], wide, means[v])


def score(points: np.ndarray, means: np.ndarray, sets: Multisets, *, n_jobs: int | None = None) -> np.ndarray:
    """s_ej = −‖x_e − μ_vj‖²/2 of every member at the means of its set, (entry, anchor)."""
    scores = entry_array((len(sets.indices), means.shape[1]), points, sets.indptr)
    x, centres, members = map(readonly, (points, means, sets.indices))

    def fill(rows: slice, bounds: np.ndarray, is_part: bool) -> None:
        _score_rows(x, centres[rows], readonly(bounds), members, rows_ahead(points), scores)

    fill_tasks(sets.indptr, fill, n_jobs=n_jobs)
    return scores


def score_backward(
    points: np.ndarray,
    means: np.ndarray,
    sets: Multisets,
    transpose: Transpose,
    grad: np.ndarray,
    *,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(∂L/∂points, ∂L/∂means) of `score`: ∂L/∂μ_vj = Σ_e ∂L/∂s_ej (x_e − μ_vj), and its negative for the points."""
    grad_means = np.empty_like(means)
    x, centres, slopes, members = map(readonly, (points, means, grad, sets.indices))

    def fill(rows: slice, bounds: np.ndarray, is_part: bool, target: np.ndarray) -> None:
        _score_means(x, centres[rows], slopes, readonly(bounds), members, target)

    fill_tasks(sets.indptr, fill, (grad_means,), n_jobs=n_jobs)
    return sum_over_sets(x, means, grad, as_weights(None, points.dtype), transpose, n_jobs), grad_means
