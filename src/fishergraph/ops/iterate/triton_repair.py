"""Several EM iterations of the sets of which a mass would underflow, in logs: a program checks some sets (`triton`)."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr

from fishergraph.ops._triton.lanes import add_member, divide, fold_products, lane_anchors, softmax_lanes
from fishergraph.ops._triton.members import load_row, narrowed, store_row, tile_features, zeros


@triton.jit
def frame_of(centre, S: constexpr):
    """The frame of a program."""
    features = tile_features(S.BLOCK)
    lanes, anchors = lane_anchors(S)
    return features, lanes, anchors, load_row(centre, 0, features, S.D, S)


@triton.jit
def keep_total(log_totals, total, shift, row, anchors, S: constexpr):
    """Write log total + shift of a row, folded."""
    log = tl.where(total > 0, tl.log(tl.where(total > 0, total, 1.0)) + shift, -float("inf"))
    tl.store(log_totals + row * S.P + anchors, log, mask=anchors < S.P)


@triton.jit
def _member_logs(means, bias, logs, member, point, lanes, anchors, inverse, FIRST: constexpr, S: constexpr):
    """log α of one member, folded: the given one, or that at the means of its set.

    By distances, not by products: logs are large here, and between two means that nearly agree products lose digits.
    """
    if FIRST:
        return tl.load(logs + point * S.P + anchors, mask=anchors < S.P, other=-float("inf"))
    differences = ()
    for j in tl.static_range(S.P):
        differences = differences + (member - means[j],)
    offsets = tl.load(bias + anchors, mask=anchors < S.P, other=-float("inf"))
    scores = offsets - 0.5 * inverse * fold_products(differences, differences, lanes, S)
    _, total, high = softmax_lanes(scores, lanes, S)
    return scores - high - tl.log(total)


@triton.jit
def _log_pass(
    means,
    points,
    logs,
    bias,
    kept,
    members,
    start,
    stop,
    frame,
    w,
    prior,
    inverse,
    FIRST: constexpr,
    KEEP: constexpr,
    S: constexpr,
):
    """The next means, the mass and the total without its shift, folded, and the shift.

    One pass over the members is for the largest log, one for the sums.
    """
    features, lanes, anchors, origin = frame
    indices, weights = members
    shift = anchors * 0 + tl.log(prior)
    # In float64: the members of a hub are one chain of additions here.
    wide, wide_totals = zeros(features, S.P, tl.float64), tl.zeros_like(shift).to(tl.float64)
    for entry in range(start, 2 * stop - start):
        summing = entry >= stop
        at = entry - (stop - start) if summing else entry
        shift = tl.where(summing & (shift == -float("inf")), 0.0, shift)
        point = tl.load(indices + at).to(tl.int64)
        weight = tl.load(weights + at).to(S.KIND) if S.WEIGHTED else tl.full([], 1.0, S.KIND)
        member = load_row(points[0], point, features, points[1], S) - origin
        log = _member_logs(means, bias, logs, member, point, lanes, anchors, inverse, FIRST, S)
        shift = tl.where(summing | (weight <= 0), shift, tl.maximum(shift, log))
        if KEEP and not FIRST:
            tl.store(kept + at * S.P + anchors, log, mask=anchors < S.P)
        # A member of weight zero may have a log above the shift: exp could be ∞, and 0 · ∞ is NaN.
        c = tl.where(summing & (weight > 0), weight * tl.exp(log - shift), 0.0)
        wide, wide_totals = add_member(wide, c, member, lanes, S), wide_totals + c
    sums, totals = narrowed(wide, S.P, S.KIND), wide_totals.to(S.KIND)
    anchor_c = tl.exp(tl.log(prior) - shift)
    means = divide(sums, totals, anchor_c, w, features, lanes, anchors, S)
    return means, totals * tl.exp(shift), totals + anchor_c, shift


@triton.jit
def em_repair(
    results,
    kept,
    points,
    logs,
    w,
    centre,
    bias,
    sets,
    constants,
    n_sets,
    n_iter,
    sizes,
    ROWS: constexpr,
    KEEP: constexpr,
    S: constexpr,
):
    """The sets among ROWS of which some plain mass has lost digits, computed again in logs."""
    out, mass, least = results
    indptr, indices, weights = sets
    entry_logs, log_totals = kept
    per_pass, per_total = sizes
    begin = tl.program_id(0).to(tl.int64) * ROWS
    rows = begin + tl.arange(0, ROWS)
    prior, low = tl.load(constants), tl.full([ROWS], float("inf"), S.KIND)
    for j in tl.static_range(S.P):
        low = tl.minimum(low, tl.load(least + rows * S.P + j, mask=rows < n_sets, other=1.0) + prior)
    if tl.min(low, axis=0) >= 1e-30:
        return
    frame, members, inverse = frame_of(centre, S), (indices, weights), 1 / tl.load(constants + 1)
    features, anchors, origin = frame[0], frame[2], frame[3]
    for row in range(begin, tl.minimum(begin + ROWS, n_sets)):
        start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
        # Such a mass may have made the next one NaN, which is not small.
        fine = tl.sum(tl.where((rows == row) & (low >= 1e-30), 1, 0), axis=0) > 0
        if (not fine) & (stop > start):
            nothing = zeros(features, S.P, S.KIND)
            means, total, whole, shift = _log_pass(
                nothing, points, logs, bias, logs, members, start, stop, frame, w, prior, inverse, True, KEEP, S
            )
            at, log_total = entry_logs, log_totals
            if KEEP:
                keep_total(log_total, whole, shift, row, anchors, S)
            for _ in range(1, n_iter):
                means, total, whole, shift = _log_pass(
                    means, points, logs, bias, at, members, start, stop, frame, w, prior, inverse, False, KEEP, S
                )
                if KEEP:
                    at, log_total = at + per_pass, log_total + per_total
                    keep_total(log_total, whole, shift, row, anchors, S)
            for j in tl.static_range(S.P):
                store_row(out, row * S.P + j, features, means[j] + origin, S)
            tl.store(mass + row * S.P + anchors, total, mask=anchors < S.P)
