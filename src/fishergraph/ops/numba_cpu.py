"""The compiled CPU backend: one fused pass per multiset, one read of a point for all anchors.

Bytes per entry: the point (4·d) and its responsibilities (4·p), gathered once; the means of a row (4·p·d) stay in
the first-level cache. Nothing of the size of the entries is written.

Two rules give the members their shares. The plain one is a·α, which loses nothing as long as the mass of every anchor
is a normal number. Where a mass would underflow, and from the second iteration on, the shares are a softmax of the logs
over the multiset.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, inlined, leaf
from fishergraph.multiset import Multisets
from fishergraph.ops.numba_leaves import (
    CHAIN,
    CHUNK,
    four_products,
    moment,
    readonly,
    squared_distance,
    sum_members,
)
from fishergraph.ops.numba_shares import normalise, plain_shares
from fishergraph.ops.numba_transport import scratch, transport_row
from fishergraph.ops.registry import Backend, Responsibilities
from fishergraph.ops.transport_rules import MAX_ITER, default_tolerance, warn_unmet


@inlined
def _softmax_shares(logs, weights, step, start, stop, prior, shares, totals, shift, anchor_shares, mass):
    """shares_ij = a_i exp(log α_ij − h_j), where h_j is the largest log of the row; returns nothing that underflows.

    shift[j] is h_j and totals[j] the denominator in the same units; the anchor is one more member, with weight κ.
    """
    for j in range(shares.shape[1]):
        highest = np.log(prior)  # −inf without a prior
        for i in range(stop - start):
            if weights[(start + i) * step] > 0:
                highest = max(highest, logs[i, j])
        if highest == -np.inf:  # nobody: what is no number must stay none, and −∞ − −∞ would be one more
            highest = prior - prior
        anchor_share = np.exp(np.log(prior) - highest) if prior > 0 else prior
        total, sum_mass, wide_total, wide_mass = anchor_share, prior - prior, 0.0, 0.0
        chunk = CHAIN if stop - start <= CHAIN else CHUNK
        for i in range(stop - start):
            weight = weights[(start + i) * step]
            shares[i, j] = weight * np.exp(logs[i, j] - highest) if weight > 0 else weight
            total += shares[i, j]
            sum_mass += weight * np.exp(logs[i, j])
            if i % chunk == chunk - 1:
                wide_total, wide_mass = wide_total + total, wide_mass + sum_mass
                total, sum_mass = prior - prior, prior - prior
        totals[j], shift[j], anchor_shares[j] = wide_total + total, highest, anchor_share
        mass[j] = wide_mass + sum_mass


@inlined
def _add_anchors(means, totals, anchor_shares, anchors):
    """μ_j += prior share · w_j / total_j; the anchor where nothing was summed. A total that is no number keeps none."""
    for j in range(anchors.shape[0]):
        row, anchor, total, anchor_share = means[j], anchors[j], totals[j], anchor_shares[j]
        if total <= 0:
            for k in range(len(row)):
                row[k] = anchor[k]
        elif anchor_share > 0:
            for k in range(len(row)):
                row[k] += anchor_share / total * anchor[k]


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
                plain_shares(alpha, by_entry, indices, weights, step, start, stop, shares, mass[v])
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
                _softmax_shares(
                    logs, weights, step, start, stop, prior, shares, totals[v], shift[v], anchor_shares, mass[v]
                )
            normalise(shares, stop - start, totals[v])
            sum_members(points, indices, start, stop, shares, means[v], wide, None)
            _add_anchors(means[v], totals[v], anchor_shares, anchors)
    return unmet


@compiled
def _posterior_rows(points, centre, anchors, halves, scale, logs, plain):
    """log α_ij and α_ij of a block of points: log-softmax of (⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2)/σ² (Section 4.4)."""
    n_anchors = anchors.shape[0]
    for i in range(points.shape[0]):
        row, share = logs[i], plain[i]
        # With a j that begins at the literal 0 the leaf would be compiled a second time, for that value.
        for j in range(0, n_anchors - 3, 4):
            row[j], row[j + 1], row[j + 2], row[j + 3] = four_products(points[i], centre, anchors, j)
        for j in range(n_anchors - n_anchors % 4, n_anchors):
            row[j] = moment(points[i], centre, anchors[j])
        highest = -scale * np.inf
        for j in range(n_anchors):
            row[j] = (row[j] - halves[j]) * scale
            highest = max(highest, row[j])
        total = scale - scale
        for j in range(n_anchors):
            row[j] -= highest
            share[j] = np.exp(row[j])
            total += share[j]
        inverse, total = 1 / total, np.log(total)
        for j in range(n_anchors):
            row[j] -= total
            share[j] *= inverse


def posterior_block(
    points: np.ndarray, anchors: np.ndarray, variance: float, logs: np.ndarray, plain: np.ndarray
) -> None:
    """Fill log α and α of a block of points, (point, anchor): `posterior` and its exponential in one pass."""
    dtype = points.dtype.type
    centre = anchors.mean(axis=0)
    shifted = anchors - centre
    halves = (shifted * shifted).sum(axis=1) / 2
    _posterior_rows(
        readonly(points), readonly(centre), readonly(shifted), readonly(halves), dtype(1 / variance), logs, plain
    )


@compiled
def _add_segments(rows, labels, sums):
    for i in range(len(labels)):
        row, total = rows[i], sums[labels[i]]
        for k in range(len(row)):
            total[k] += row[k]


def add_segments(rows: np.ndarray, labels: np.ndarray, sums: np.ndarray) -> None:
    """sums[labels[i]] += rows[i], in the order of the rows: the averages of k-means."""
    _add_segments(readonly(rows), readonly(labels), sums)


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
    tolerance = default_tolerance(points.itemsize)
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
    slack: float = np.inf,
) -> None:
    """Fill the means and the mass of one row block."""
    fill_rows(
        points, responsibilities, False, sets, anchors,
        variance=variance, prior=prior, n_em_iter=n_em_iter, means=means, mass=mass, slack=slack,
    )  # fmt: skip


BACKEND = Backend("numba", frozenset({"cpu"}), several_iterations=True, run=run, transports=True)
