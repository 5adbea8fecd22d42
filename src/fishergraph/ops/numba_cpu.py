"""The compiled CPU backend: one fused pass per multiset, one read of a point for all anchors.

Bytes per entry: the point (4·d) and its responsibilities (4·p), gathered once; the means of a row (4·p·d) stay in
the first-level cache. Nothing of the size of the entries is written.

Two rules give the members their shares. The plain one is a·α, which loses nothing as long as the mass of every anchor
is a normal number. Where a mass would underflow, and from the second iteration on, the shares are a softmax of the logs
over the multiset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from fishergraph.multiset import Multisets
from fishergraph.ops.registry import Backend, Responsibilities

# "contract" only lets a·b + c be one instruction; infinities stay what they are.
compiled: Any = njit(nogil=True, cache=True, fastmath={"contract"})  # pyright: ignore
# "reassoc" also lets a sum run in lanes; for sums of finite squares alone.
compiled_sum: Any = njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})  # pyright: ignore

# Entries ahead of the current one whose points are asked for; 8 to 16 measure alike.
_AHEAD = 12


@intrinsic
def _prefetch(typingctx, array, row, column):
    """Ask for the cache line of array[row, column] without waiting for it."""

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        strides = cgutils.unpack_tuple(builder, view.strides, 2)
        wide, byte, word = ir.IntType(64), ir.IntType(8).as_pointer(), ir.IntType(32)
        index = [builder.sext(a, wide) if a.type.width < 64 else a for a in args[1:]]
        offset = builder.add(*[builder.mul(i, s) for i, s in zip(index, strides, strict=True)])
        pointer = builder.gep(builder.bitcast(view.data, byte), [offset])
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        # for reading, kept in the second-level cache, data
        builder.call(function, [pointer, ir.Constant(word, 0), ir.Constant(word, 2), ir.Constant(word, 1)])
        return context.get_dummy_value()

    return types.void(array, row, column), codegen


@compiled
def _prefetch_points(points, indices, first, last):
    """Ask for the points of the entries first … last − 1."""
    per_line = 64 // points.itemsize
    for entry in range(first, min(last, len(indices))):
        for k in range(0, points.shape[1], per_line):
            _prefetch(points, indices[entry], k)  # pyright: ignore


@compiled
def _sum_members(points, indices, start, stop, shares, sums):
    """sums_j = Σ_i shares_ij x_i over the members of one multiset, four members at a time."""
    n_anchors, n_features = sums.shape
    for j in range(n_anchors):
        for k in range(n_features):
            sums[j, k] = 0
    entry = start
    while entry + 4 <= stop:
        _prefetch_points(points, indices, entry + _AHEAD, entry + _AHEAD + 4)
        x0, x1 = points[indices[entry]], points[indices[entry + 1]]
        x2, x3 = points[indices[entry + 2]], points[indices[entry + 3]]
        i = entry - start
        j = 0
        while j + 1 < n_anchors:  # two anchors share one read of the points
            s0, s1, s2, s3 = shares[i, j], shares[i + 1, j], shares[i + 2, j], shares[i + 3, j]
            t0, t1, t2, t3 = shares[i, j + 1], shares[i + 1, j + 1], shares[i + 2, j + 1], shares[i + 3, j + 1]
            one, two = sums[j], sums[j + 1]
            for k in range(n_features):
                one[k] += (s0 * x0[k] + s1 * x1[k]) + (s2 * x2[k] + s3 * x3[k])
                two[k] += (t0 * x0[k] + t1 * x1[k]) + (t2 * x2[k] + t3 * x3[k])
            j += 2
        if j < n_anchors:
            s0, s1, s2, s3 = shares[i, j], shares[i + 1, j], shares[i + 2, j], shares[i + 3, j]
            row = sums[j]
            for k in range(n_features):
                row[k] += (s0 * x0[k] + s1 * x1[k]) + (s2 * x2[k] + s3 * x3[k])
        entry += 4
    while entry < stop:
        _prefetch_points(points, indices, entry + _AHEAD, entry + _AHEAD + 1)
        x = points[indices[entry]]
        for j in range(n_anchors):
            share, row = shares[entry - start, j], sums[j]
            for k in range(n_features):
                row[k] += share * x[k]
        entry += 1


@compiled
def _plain_shares(alpha, indices, weights, step, start, stop, shares, mass):
    """shares_ij = a_i α_ij of the members of one multiset, and their sum over the members."""
    for j in range(len(mass)):
        mass[j] = 0
    for i in range(stop - start):
        weight, u = weights[(start + i) * step], indices[start + i]
        for j in range(shares.shape[1]):
            shares[i, j] = weight * alpha[u, j]
            mass[j] += shares[i, j]


@compiled
def _softmax_shares(logs, weights, step, start, stop, prior, shares, totals, mass):
    """shares_ij = a_i exp(log α_ij − h_j), where h_j is the largest log of the row; returns nothing that underflows.

    totals[j] is the denominator in the same units, and totals[p + j] the share of the prior in it: the anchor is one
    more member, with weight κ.
    """
    n_anchors = shares.shape[1]
    for j in range(n_anchors):
        highest = np.log(prior)  # −inf without a prior
        for i in range(stop - start):
            if weights[(start + i) * step] > 0:
                highest = max(highest, logs[i, j])
        anchor_share = np.exp(np.log(prior) - highest) if prior > 0 else prior
        total, sum_mass = anchor_share, prior - prior
        for i in range(stop - start):
            weight = weights[(start + i) * step]
            shares[i, j] = weight * np.exp(logs[i, j] - highest) if weight > 0 else weight
            total += shares[i, j]
            sum_mass += weight * np.exp(logs[i, j])
        totals[j], totals[n_anchors + j], mass[j] = total, anchor_share, sum_mass


@compiled
def _divide(sums, totals, anchors):
    """μ_j = (sums_j + prior share · w_j) / total_j, in place; the anchor where nothing was summed."""
    n_anchors = anchors.shape[0]
    for j in range(n_anchors):
        row, anchor, total, anchor_share = sums[j], anchors[j], totals[j], totals[n_anchors + j]
        for k in range(len(row)):
            row[k] = (row[k] + anchor_share * anchor[k]) / total if total > 0 else anchor[k]


@compiled_sum
def _squared_distance(x, mean):
    square = x[0] - x[0]
    for k in range(len(x)):
        difference = x[k] - mean[k]
        square += difference * difference
    return square


@compiled
def _e_step_row(points, indices, start, stop, means, variance, logs):
    """log α_ij of the members of one multiset at that multiset's own means."""
    n_anchors = means.shape[0]
    for i in range(stop - start):
        x, row = points[indices[start + i]], logs[i]
        highest = -variance * np.inf
        for j in range(n_anchors):
            row[j] = -_squared_distance(x, means[j]) / (variance + variance)
            highest = max(highest, row[j])
        total = variance - variance
        for j in range(n_anchors):
            row[j] -= highest
            total += np.exp(row[j])
        total = np.log(total)
        for j in range(n_anchors):
            row[j] -= total


@compiled
def _gather_logs(log_alpha, indices, start, stop, logs):
    """The log-responsibilities of the members of one multiset, side by side."""
    for i in range(stop - start):
        for j in range(logs.shape[1]):
            logs[i, j] = log_alpha[indices[start + i], j]


@compiled
def em_rows(
    points, log_alpha, alpha, indptr, indices, weights, step, anchors, prior, variance, n_em_iter, least_mass,
    means, mass, logs, shares, totals,
):  # fmt: skip
    """The means of each multiset of the block after `n_em_iter` iterations (Eq. 17).

    The responsibilities of the first iteration belong to the point; from the second on, to the pair (set, point).
    """
    n_anchors = anchors.shape[0]
    for v in range(len(indptr) - 1):
        start, stop = indptr[v], indptr[v + 1]
        for iteration in range(n_em_iter):
            in_logs = iteration > 0
            if iteration == 0:
                _plain_shares(alpha, indices, weights, step, start, stop, shares, mass[v])
                for j in range(n_anchors):
                    totals[j], totals[n_anchors + j] = mass[v, j] + prior, prior
                    in_logs = in_logs or totals[j] < least_mass
                if in_logs:
                    _gather_logs(log_alpha, indices, start, stop, logs)
            else:
                _e_step_row(points, indices, start, stop, means[v], variance, logs)
            if in_logs:
                _softmax_shares(logs, weights, step, start, stop, prior, shares, totals, mass[v])
            _sum_members(points, indices, start, stop, shares, means[v])
            _divide(means[v], totals, anchors)


@compiled
def _add_segments(rows, labels, sums):
    for i in range(len(labels)):
        row, total = rows[i], sums[labels[i]]
        for k in range(len(row)):
            total[k] += row[k]


def add_segments(rows: np.ndarray, labels: np.ndarray, sums: np.ndarray) -> None:
    """sums[labels[i]] += rows[i], in the order of the rows: the averages of k-means."""
    _add_segments(_readonly(rows), _readonly(labels), sums)


def _readonly(array: np.ndarray) -> np.ndarray:
    """A read-only view: one compiled version then serves writable and read-only input."""
    view = array.view()
    view.flags.writeable = False
    return view


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
    """Fill the means and the mass of one row block."""
    dtype = points.dtype.type
    # The block's own entries alone: a cast of all weights for every block would be quadratic in the blocks.
    first, last = int(sets.indptr[0]), int(sets.indptr[-1])
    indptr, indices = sets.indptr - first, sets.indices[first:last]
    weights = np.ones(1, dtype) if sets.weights is None else sets.weights[first:last].astype(dtype, copy=False)
    step = 0 if sets.weights is None else 1
    largest, n_anchors = int(np.diff(sets.indptr).max(initial=0)), anchors.shape[0]
    logs, shares = np.empty((largest, n_anchors), dtype), np.empty((largest, n_anchors), dtype)
    least_mass = dtype(np.finfo(dtype).tiny * 1e8)  # below it the plain sums would lose digits
    em_rows(
        _readonly(points), _readonly(responsibilities.log), _readonly(responsibilities.plain),
        _readonly(indptr), _readonly(indices), _readonly(weights), step, _readonly(anchors),
        dtype(prior), dtype(variance), n_em_iter, least_mass, means, mass, logs, shares, np.empty(2 * n_anchors, dtype),
    )  # fmt: skip


BACKEND = Backend("numba", frozenset({"cpu"}), several_iterations=True, run=run)
