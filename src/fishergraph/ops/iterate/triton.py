"""Several EM iterations on a GPU, one program per set: its means stay in registers from one iteration to the next.

Bytes per entry and iteration: the point (d · its width) and its number, from memory at first and from the caches
afterwards; per set the means, written once (4 · p · d). Nothing of the size of the entries is written. Hubs go part by
part, with their means in memory between the iterations. Where a plain mass would vanish, a last kernel goes over the
set again in logs. Nothing waits for the host.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fishergraph.ops import tensor_sets
from fishergraph.ops._triton.lanes import (
    add_member,
    count_lanes,
    divide,
    fold_offsets,
    fold_products,
    fold_scalars,
    lane_tile,
    round_up,
    softmax_lanes,
)
from fishergraph.ops._triton.launch import KINDS, numbers
from fishergraph.ops._triton.members import (
    load_live_row,
    load_members,
    load_row,
    narrowed,
    no_shift,
    pull,
    store_row,
    tile_features,
    zeros,
)
from fishergraph.ops.attend.triton_backward import entry_dots, push
from fishergraph.ops.posterior.triton import fits
from fishergraph.ops.segment_sums.torch import sum_segments
from fishergraph.ops.segment_sums.triton import Pull
from fishergraph.ops.tensor_sets import TensorSets

# Of a thread: twelve programs of a warp each then share a multiprocessor.
_REGISTERS = 168
# Rows that one program of the repair looks at.
_REPAIR_ROWS = 32


@triton.jit
def _load_rows(
    x, points, first, stop, features, stride, D: tl.constexpr, BLOCK: tl.constexpr, MEMBERS: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """The MEMBERS points of the entries from `first` on; zeros behind the last one."""
    rows = ()
    for k in tl.static_range(MEMBERS):
        rows = rows + (load_live_row(x, points[k], first + k < stop, features, stride, D, BLOCK, KIND),)
    return rows


@triton.jit
def _em_pass(
    means, x, bias, indices, weights, start, stop, features, lanes, anchors, origin, inverse, stride,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, LANES: tl.constexpr, MEMBERS: tl.constexpr,
    WEIGHTED: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """(Σ_e a α_ej (x_e − o))_j, and Σ_e a α_ej folded, with α the responsibilities at the set's own means.

    Few programs share a multiprocessor, so a member's point is asked for a round before it is used, its number two.
    """
    offsets = fold_offsets(means, bias, lanes, anchors, inverse, P, LANES)
    sums, totals = zeros(features, P, KIND), tl.zeros_like(offsets)
    points = load_members(indices, start, stop, MEMBERS)
    held = _load_rows(x, points, start, stop, features, stride, D, BLOCK, MEMBERS, KIND)
    points = load_members(indices, start + MEMBERS, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        following = load_members(indices, first + 2 * MEMBERS, stop, MEMBERS)
        coming = _load_rows(x, points, first + MEMBERS, stop, features, stride, D, BLOCK, MEMBERS, KIND)
        for k in tl.static_range(MEMBERS):
            live = first + k < stop
            member = held[k] - origin
            scores = fold_products((member,) * P, means, lanes, P, LANES) * inverse + offsets
            powers, total, _ = softmax_lanes(scores, lanes, P, LANES)
            if WEIGHTED:
                weight = tl.load(weights + first + k, mask=live, other=0.0).to(KIND)
            else:
                weight = tl.where(live, tl.full([], 1.0, KIND), 0.0)
            c = powers * (weight / total)
            sums, totals = add_member(sums, c, member, lanes, BLOCK, P, LANES), totals + c
        points, held = following, coming
    return sums, totals


@triton.jit
def _first_pass(
    x, alpha, indices, weights, start, stop, features, anchors, origin, stride,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """The sums of the first iteration, at the known responsibilities."""
    sums, totals = pull(
        x, alpha, indices, weights, start, stop, features, 0, no_shift(P, KIND), stride, P,
        D, BLOCK, P, 3, WEIGHTED, False, False, KIND,
    )  # fmt: skip
    moved = ()
    for j in tl.static_range(P):
        moved = moved + (sums[j] - totals[j] * origin,)
    return moved, fold_scalars(totals, anchors, P)


@triton.jit
def _em_rows(
    out, mass, least, x, alpha, w, centre, bias, indptr, indices, weights, constants, hub, stride, n_em_iter,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """All iterations of one set that is no hub; `least` is the smallest mass of any iteration."""
    row = tl.program_id(0).to(tl.int64)
    start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
    if stop - start > hub:
        return
    LANES: tl.constexpr = count_lanes(BLOCK, P)
    features, lanes = tile_features(BLOCK), tl.arange(0, LANES)
    anchors = lanes // (LANES // round_up(P))
    prior, inverse = tl.load(constants), 1 / tl.load(constants + 1)
    own, origin = anchors * 0 + prior, load_row(centre, 0, features, D, D, BLOCK, KIND)
    sums, totals = _first_pass(
        x, alpha, indices, weights, start, stop, features, anchors, origin, stride, D, BLOCK, P, WEIGHTED, KIND
    )
    means, low = divide(sums, totals, own, w, features, lanes, anchors, D, BLOCK, P, LANES, KIND), totals
    for _ in range(1, n_em_iter):
        sums, totals = _em_pass(
            means, x, bias, indices, weights, start, stop, features, lanes, anchors, origin, inverse, stride,
            D, BLOCK, P, LANES, MEMBERS, WEIGHTED, KIND,
        )  # fmt: skip
        means = divide(sums, totals, own, w, features, lanes, anchors, D, BLOCK, P, LANES, KIND)
        low = tl.minimum(low, totals)
    for j in tl.static_range(P):
        store_row(out, row * P + j, features, means[j] + origin, D, BLOCK)
    tl.store(mass + row * P + anchors, totals, mask=anchors < P)
    tl.store(least + row * P + anchors, low, mask=anchors < P)


@triton.jit
def _em_parts(
    part_sums, part_total, out, x, alpha, centre, bias, part_row, part_first, part_last, indices, weights, constants,
    stride, D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    FIRST: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """The sums of one part of a hub in one iteration, at the means that the last one wrote."""
    item = tl.program_id(0).to(tl.int64)
    start, stop, row = tl.load(part_first + item), tl.load(part_last + item), tl.load(part_row + item)
    LANES: tl.constexpr = count_lanes(BLOCK, P)
    features, lanes = tile_features(BLOCK), tl.arange(0, LANES)
    anchors = lanes // (LANES // round_up(P))
    origin = load_row(centre, 0, features, D, D, BLOCK, KIND)
    if FIRST:
        sums, totals = _first_pass(
            x, alpha, indices, weights, start, stop, features, anchors, origin, stride, D, BLOCK, P, WEIGHTED, KIND
        )
    else:
        means = ()
        for j in tl.static_range(P):
            means = means + (load_row(out, row * P + j, features, D, D, BLOCK, KIND) - origin,)
        sums, totals = _em_pass(
            means, x, bias, indices, weights, start, stop, features, lanes, anchors, origin,
            1 / tl.load(constants + 1), stride, D, BLOCK, P, LANES, MEMBERS, WEIGHTED, KIND,
        )  # fmt: skip
    for j in tl.static_range(P):
        store_row(part_sums, item * P + j, features, sums[j], D, BLOCK)
    tl.store(part_total + item * P + anchors, totals, mask=anchors < P)


@triton.jit
def _em_merge(
    out, mass, least, w, centre, part_sums, part_total, hub_rows, hub_offsets, constants,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, FIRST: tl.constexpr, KIND: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    """The means of a hub at one anchor: its parts, PARTS at a time, in order and in float64."""
    hub, anchor = tl.program_id(0), tl.program_id(1)
    features, lanes = tl.arange(0, BLOCK), tl.arange(0, PARTS)
    first, last = tl.load(hub_offsets + hub), tl.load(hub_offsets + hub + 1)
    prior = tl.load(constants)
    wide, wide_total = tl.zeros([BLOCK], tl.float64), tl.full([], 0.0, tl.float64)
    for begin in range(first, last, PARTS):
        part = begin + lanes
        where = part.to(tl.int64) * P + anchor
        inside = (part < last)[:, None] & (features < D)[None, :]
        own = tl.load(part_sums + where[:, None] * D + features[None, :], mask=inside, other=0.0)
        wide += tl.sum(own, axis=0).to(tl.float64)
        wide_total += tl.sum(tl.load(part_total + where, mask=part < last, other=0.0).to(tl.float64), axis=0)
    sums, total = wide.to(KIND), wide_total.to(KIND)
    known = load_row(w, anchor, features, D, D, BLOCK, KIND)
    whole = total + prior
    # A total that is no number stays none.
    mean = tl.where(whole != 0, (sums + prior * known) / tl.where(whole != 0, whole, 1.0), known)
    at = tl.load(hub_rows + hub).to(tl.int64) * P + anchor
    store_row(out, at, features, mean + load_row(centre, 0, features, D, D, BLOCK, KIND), D, BLOCK)
    tl.store(mass + at, total)
    tl.store(least + at, total if FIRST else tl.minimum(total, tl.load(least + at)))


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
def _em_repair(
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


def _em_hubs(results: tuple, rest: tuple, sets: TensorSets, n_em_iter: int, options: dict[str, Any]) -> None:
    """Fill the rows of the hubs, an iteration at a time."""
    (out, *_), (points, alpha, anchors, centre, bias, weights, constants), hubs = results, rest, sets.hubs
    sums = out.new_empty((hubs.n_parts, *out.shape[1:]))
    total = out.new_empty((hubs.n_parts, out.shape[1]))
    small = {name: value for name, value in options.items() if name not in ("MEMBERS", "WEIGHTED", "maxnreg")}
    for first in [True, *[False] * (n_em_iter - 1)]:
        _em_parts[(hubs.n_parts,)](
            sums, total, out, points, alpha, centre, bias, hubs.part_row, hubs.part_first, hubs.part_last,
            sets.indices, weights, constants, points.stride(0), FIRST=first, **options,
        )  # fmt: skip
        _em_merge[(hubs.n_hubs, out.shape[1])](
            *results, anchors, centre, sums, total, hubs.rows, hubs.offsets, constants, FIRST=first, PARTS=16, **small
        )


def em_rows(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, *, variance: float, prior: float, n_em_iter: int,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """means (set, anchor, feature) and mass (set, anchor), in the dtype of the sums.

    `logs` (point, anchor) are the log-responsibilities of the first iteration.
    """
    (n_anchors, n_features), n_sets = anchors.shape, sets.n_sets
    new = {"dtype": logs.dtype, "device": points.device}
    out = torch.empty((n_sets, n_anchors, n_features), **new)
    results = (out, *(torch.empty((n_sets, n_anchors), **new) for _ in range(2)))
    if n_sets == 0:
        return results[:2]
    anchors, constants = anchors.to(logs.dtype), numbers(prior, variance, **new)
    centre = anchors.mean(dim=0)
    bias = numbers(*[0.0] * n_anchors, **new) if bias is None else bias.to(logs.dtype)
    weights = logs if sets.weights is None else sets.weights
    block, warps = lane_tile(n_anchors, n_features)
    options: dict[str, Any] = {
        "D": n_features, "BLOCK": block, "P": n_anchors, "KIND": KINDS[logs.dtype], "MEMBERS": 2,
        "WEIGHTED": sets.weights is not None, "num_warps": warps, "maxnreg": _REGISTERS,
    }  # fmt: skip
    rest = (points, logs.exp(), anchors - centre, centre, bias, weights, constants)
    stride, hub = points.stride(0), tensor_sets.HUB
    _em_rows[(n_sets,)](
        *results, *rest[:5], sets.indptr, sets.indices, weights, constants, hub, stride, n_em_iter, **options
    )
    if sets.hubs.n_hubs:
        _em_hubs(results, rest, sets, n_em_iter, options)
    small = {name: value for name, value in options.items() if name not in ("MEMBERS", "maxnreg")}
    _em_repair[(triton.cdiv(n_sets, _REPAIR_ROWS),)](
        *results, points, logs, *rest[2:5], sets.indptr, sets.indices, weights, constants, stride, n_sets, n_em_iter,
        ROWS=_REPAIR_ROWS, **small,
    )  # fmt: skip
    return results[:2]


def em(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    variance: float,
    prior: float,
    n_em_iter: int,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor] | None:
    """`em_rows`, or None if the means of a set do not fit into the registers of a program."""
    if not fits(*anchors.shape):
        return None
    return em_rows(points, logs, sets, anchors, variance=variance, prior=prior, n_em_iter=n_em_iter, bias=bias)


def score(points: Tensor, means: Tensor, sets: TensorSets) -> Tensor:
    """s_ej = −‖x_e − μ_vj‖²/2 of every member at the means of its own set, (entry, anchor)."""
    return entry_dots(points, means, sets, squared=True)


def score_backward(points: Tensor, means: Tensor, sets: TensorSets, grad: Tensor) -> tuple[Tensor, Tensor]:
    """∂L/∂(points, means) of `score`."""
    grad, unweighted = grad.contiguous(), sets.weighted(None)
    back, entries = sets.transpose
    pulled = Pull(points, grad, unweighted, by_entry=True).all()
    grad_means = pulled - sum_segments(grad, sets.indptr)[..., None] * means
    pushed, _ = push(None, means, unweighted, coefficients=grad)
    weight = sum_segments(grad.sum(dim=1)[entries], back.indptr)
    return pushed - weight[:, None] * points, grad_means
