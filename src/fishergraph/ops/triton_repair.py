"""Several EM iterations in logs on a GPU, for the sets of which a plain mass would vanish.

Bytes per entry and iteration: the point twice (d · its width), once for the largest log at every anchor and once for
the sums relative to it; per set the means (4 · p · d). Other sets cost the p masses that are looked at.
"""

from __future__ import annotations

import triton
import triton.language as tl

from fishergraph.ops.triton_lanes import (
    add_member,
    count_lanes,
    divide,
    fold_products,
    round_up,
    softmax_lanes,
)
from fishergraph.ops.triton_leaves import load_row, narrowed, store_row, tile_features, zeros


@triton.jit
def _member_logs(
    means, bias, logs, member, point, lanes, anchors, inverse, P: tl.constexpr, LANES: tl.constexpr,
    FIRST: tl.constexpr,
):  # fmt: skip
    """log α of one member, folded: the known one, or that at the means of its set.

    By distances, not by products: here logs are large, and between two means that nearly agree products lose them.
    """
    if FIRST:
        return tl.load(logs + point * P + anchors, mask=anchors < P, other=-float("inf"))
    apart = ()
    for j in tl.static_range(P):
        apart = apart + (member - means[j],)
    offsets = tl.load(bias + anchors, mask=anchors < P, other=-float("inf"))
    scores = offsets - 0.5 * inverse * fold_products(apart, apart, lanes, P, LANES)
    _, total, high = softmax_lanes(scores, lanes, P, LANES)
    return scores - high - tl.log(total)


@triton.jit
def _log_pass(
    means, x, logs, bias, indices, weights, start, stop, features, lanes, anchors, origin, w, prior, inverse, stride,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, LANES: tl.constexpr, WEIGHTED: tl.constexpr,
    FIRST: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """The next means, and the mass folded: once over the members for the largest log, once for the sums."""
    shift = anchors * 0 + tl.log(prior)
    # In float64: the members of a hub are one chain of additions here.
    wide, wide_totals = zeros(features, P, tl.float64), tl.zeros_like(shift).to(tl.float64)
    for entry in range(start, 2 * stop - start):
        summing = entry >= stop
        at = entry - (stop - start) if summing else entry
        shift = tl.where(summing & (shift == -float("inf")), 0.0, shift)
        point = tl.load(indices + at).to(tl.int64)
        weight = tl.load(weights + at).to(KIND) if WEIGHTED else tl.full([], 1.0, KIND)
        member = load_row(x, point, features, stride, D, BLOCK, KIND) - origin
        own = _member_logs(means, bias, logs, member, point, lanes, anchors, inverse, P, LANES, FIRST)
        shift = tl.where(summing | (weight <= 0), shift, tl.maximum(shift, own))
        # A member of weight zero may have a log above the shift: exp could be ∞, and 0 · ∞ no number.
        c = tl.where(summing & (weight > 0), weight * tl.exp(own - shift), 0.0)
        wide, wide_totals = add_member(wide, c, member, lanes, BLOCK, P, LANES), wide_totals + c
    sums, totals = narrowed(wide, P, KIND), wide_totals.to(KIND)
    means = divide(sums, totals, tl.exp(tl.log(prior) - shift), w, features, lanes, anchors, D, BLOCK, P, LANES, KIND)
    return means, totals * tl.exp(shift)


@triton.jit
def em_repair(
    out, mass, least, x, logs, w, centre, bias, indptr, indices, weights, constants, stride, n_sets, n_em_iter,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr, KIND: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """The sets among ROWS of which some plain mass has lost digits, once more and in logs."""
    begin = tl.program_id(0).to(tl.int64) * ROWS
    rows = begin + tl.arange(0, ROWS)
    prior, low = tl.load(constants), tl.full([ROWS], float("inf"), KIND)
    for j in tl.static_range(P):
        low = tl.minimum(low, tl.load(least + rows * P + j, mask=rows < n_sets, other=1.0) + prior)
    if tl.min(low, axis=0) >= 1e-30:
        return
    LANES: tl.constexpr = count_lanes(BLOCK, P)
    features, lanes = tile_features(BLOCK), tl.arange(0, LANES)
    anchors = lanes // (LANES // round_up(P))
    inverse, origin = 1 / tl.load(constants + 1), load_row(centre, 0, features, D, D, BLOCK, KIND)
    for row in range(begin, tl.minimum(begin + ROWS, n_sets)):
        start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
        # Such a mass may have made the next one no number, which is not small.
        fine = tl.sum(tl.where((rows == row) & (low >= 1e-30), 1, 0), axis=0) > 0
        if (not fine) & (stop > start):
            means, total = _log_pass(
                zeros(features, P, KIND), x, logs, bias, indices, weights, start, stop, features, lanes, anchors,
                origin, w, prior, inverse, stride, D, BLOCK, P, LANES, WEIGHTED, True, KIND,
            )  # fmt: skip
            for _ in range(1, n_em_iter):
                means, total = _log_pass(
                    means, x, logs, bias, indices, weights, start, stop, features, lanes, anchors, origin, w, prior,
                    inverse, stride, D, BLOCK, P, LANES, WEIGHTED, False, KIND,
                )  # fmt: skip
            for j in tl.static_range(P):
                store_row(out, row * P + j, features, means[j] + origin, D, BLOCK)
            tl.store(mass + row * P + anchors, total, mask=anchors < P)
