"""Several EM iterations on a GPU, one program per set: its means stay in registers from one iteration to the next.

Bytes per entry and iteration: the point (d · its width) and its index, from memory at first and from the caches
afterwards; per set the means, written once (4 · p · d). Nothing of the size of the entries is written. Hubs are
computed part by part, with their means in memory between the iterations. If a plain mass would underflow, a last kernel
computes the set again in logs. Nothing waits for the host.

A frame is (features, lanes, the anchors of the lanes, the origin of the coordinates); see `lanes` for folded tensors.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops._triton.lanes import (
    add_member,
    divide,
    fold_offsets,
    fold_products,
    fold_scalars,
    softmax_lanes,
)
from fishergraph.ops._triton.launch import members_of, numbers
from fishergraph.ops._triton.members import (
    load_live_row,
    load_members,
    load_row,
    no_shift,
    pull,
    store_row,
    zeros,
)
from fishergraph.ops.attend.triton import sum_hub_parts
from fishergraph.ops.attend.triton_backward import entry_distances, push
from fishergraph.ops.iterate.triton_repair import em_repair, frame_of, keep_total
from fishergraph.ops.posterior.triton import fits, lane_shape
from fishergraph.ops.segment_sums.torch import sum_segments
from fishergraph.ops.segment_sums.triton import Pull
from fishergraph.ops.tensor_sets import TensorSets

# Registers of a thread: twelve programs of a warp each fit a multiprocessor.
_REGISTERS = 168
# Rows that one program of the repair checks.
_REPAIR_ROWS = 32


@triton.jit
def _load_rows(points, current, first, stop, features, MEMBERS: constexpr, S: constexpr):
    """The points of the MEMBERS entries from `first` on; zeros behind the last one."""
    rows = ()
    for k in tl.static_range(MEMBERS):
        rows = rows + (load_live_row(points[0], current[k], first + k < stop, features, points[1], S),)
    return rows


@triton.jit
def _em_pass(means, points, bias, kept, members, start, stop, frame, inverse, KEEP: constexpr, S: constexpr):
    """(Σ_e a α_ej (x_e − o))_j, and Σ_e a α_ej folded, with α the responsibilities at the means of the set.

    With KEEP log α of the entries is written to `kept`.

    Few programs share a multiprocessor, so a point is loaded a round before its use, its index two rounds.
    """
    MEMBERS: constexpr = 2
    features, lanes, anchors, origin = frame
    indices, weights = members
    offsets = fold_offsets(means, bias, lanes, anchors, inverse, S)
    sums, totals = zeros(features, S.P, S.KIND), tl.zeros_like(offsets)
    current = load_members(indices, start, stop, MEMBERS)
    held = _load_rows(points, current, start, stop, features, MEMBERS, S)
    current = load_members(indices, start + MEMBERS, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        following = load_members(indices, first + 2 * MEMBERS, stop, MEMBERS)
        coming = _load_rows(points, current, first + MEMBERS, stop, features, MEMBERS, S)
        for k in tl.static_range(MEMBERS):
            live = first + k < stop
            member = held[k] - origin
            scores = fold_products((member,) * S.P, means, lanes, S) * inverse + offsets
            powers, total, high = softmax_lanes(scores, lanes, S)
            if KEEP:
                at = kept + (first + k) * S.P + anchors
                tl.store(at, scores - high - tl.log(total), mask=live & (anchors < S.P))
            if S.WEIGHTED:
                weight = tl.load(weights + first + k, mask=live, other=0.0).to(S.KIND)
            else:
                weight = tl.where(live, tl.full([], 1.0, S.KIND), 0.0)
            c = powers * (weight / total)
            sums, totals = add_member(sums, c, member, lanes, S), totals + c
        current, held = following, coming
    return sums, totals


@triton.jit
def _first_pass(points, alpha, members, start, stop, frame, S: constexpr):
    """The sums of the first iteration, whose responsibilities are given."""
    features, anchors, origin = frame[0], frame[2], frame[3]
    tile, shifts = (features, 0), no_shift(S.P, S.KIND)
    sums, totals = pull(points, alpha, members, start, stop, tile, shifts, False, S)
    moved = ()
    for j in tl.static_range(S.P):
        moved = moved + (sums[j] - totals[j] * origin,)
    return moved, fold_scalars(totals, anchors, S)


@triton.jit
def _em_rows(
    results,
    kept,
    points,
    alpha,
    w,
    centre,
    bias,
    sets,
    constants,
    hub,
    n_iter,
    sizes,
    KEEP: constexpr,
    S: constexpr,
):
    """All iterations of one set that is not a hub; `least` is the smallest mass of any iteration."""
    out, mass, least = results
    logs, log_totals = kept
    per_pass, per_total = sizes
    indptr, indices, weights = sets
    row = tl.program_id(0).to(tl.int64)
    start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
    if stop - start > hub:
        return
    frame, members = frame_of(centre, S), (indices, weights)
    features, lanes, anchors, origin = frame
    prior, inverse = tl.load(constants), 1 / tl.load(constants + 1)
    anchor_c = anchors * 0 + prior
    sums, totals = _first_pass(points, alpha, members, start, stop, frame, S)
    means, low = divide(sums, totals, anchor_c, w, features, lanes, anchors, S), totals
    if KEEP:
        keep_total(log_totals, totals + prior, 0.0, row, anchors, S)
    for _ in range(1, n_iter):
        sums, totals = _em_pass(means, points, bias, logs, members, start, stop, frame, inverse, KEEP, S)
        means = divide(sums, totals, anchor_c, w, features, lanes, anchors, S)
        low = tl.minimum(low, totals)
        if KEEP:
            logs, log_totals = logs + per_pass, log_totals + per_total
            keep_total(log_totals, totals + prior, 0.0, row, anchors, S)
    for j in tl.static_range(S.P):
        store_row(out, row * S.P + j, features, means[j] + origin, S)
    tl.store(mass + row * S.P + anchors, totals, mask=anchors < S.P)
    tl.store(least + row * S.P + anchors, low, mask=anchors < S.P)


@triton.jit
def _em_parts(
    parts,
    out,
    kept,
    points,
    alpha,
    centre,
    bias,
    items,
    members,
    constants,
    FIRST: constexpr,
    KEEP: constexpr,
    S: constexpr,
):
    """The sums of one part of a hub in one iteration, at the means that the last one wrote."""
    part_sums, part_total = parts
    part_first, part_last, part_row = items
    item = tl.program_id(0).to(tl.int64)
    start, stop, row = tl.load(part_first + item), tl.load(part_last + item), tl.load(part_row + item)
    frame = frame_of(centre, S)
    features, anchors, origin = frame[0], frame[2], frame[3]
    if FIRST:
        sums, totals = _first_pass(points, alpha, members, start, stop, frame, S)
    else:
        means = ()
        for j in tl.static_range(S.P):
            means = means + (load_row(out, row * S.P + j, features, S.D, S) - origin,)
        inverse = 1 / tl.load(constants + 1)
        sums, totals = _em_pass(means, points, bias, kept, members, start, stop, frame, inverse, KEEP, S)
    for j in tl.static_range(S.P):
        store_row(part_sums, item * S.P + j, features, sums[j], S)
    tl.store(part_total + item * S.P + anchors, totals, mask=anchors < S.P)


@triton.jit
def _em_merge(
    results,
    log_total,
    w,
    centre,
    parts,
    hub_rows,
    hub_offsets,
    constants,
    PARTS: constexpr,
    FIRST: constexpr,
    KEEP: constexpr,
    S: constexpr,
):
    """The means of a hub at one anchor, from its parts."""
    out, mass, least = results
    hub, anchor, features = tl.program_id(0), tl.program_id(1), tl.arange(0, S.BLOCK)
    prior = tl.load(constants)
    sums, total = sum_hub_parts(parts[0], parts[1], hub_offsets, hub, anchor, features, PARTS, S)
    row = load_row(w, anchor, features, S.D, S)
    whole = total + prior
    # A total of NaN propagates.
    mean = tl.where(whole != 0, (sums + prior * row) / tl.where(whole != 0, whole, 1.0), row)
    at = tl.load(hub_rows + hub).to(tl.int64) * S.P + anchor
    store_row(out, at, features, mean + load_row(centre, 0, features, S.D, S), S)
    tl.store(mass + at, total)
    tl.store(least + at, total if FIRST else tl.minimum(total, tl.load(least + at)))
    if KEEP:
        tl.store(log_total + at, tl.where(whole > 0, tl.log(tl.where(whole > 0, whole, 1.0)), -float("inf")))


def em_rows(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    variance: float,
    prior: float,
    n_iter: int,
    bias: Tensor | None,
    keep: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """means (set, anchor, feature) and mass (set, anchor), in the dtype of the sums.

    `logs` (point, anchor) are the log-responsibilities of the first iteration. To `keep` them adds those of the other
    iterations (iteration, entry, anchor), and log(κ + mass) of all (iteration, set, anchor), else empty tensors.
    """
    (n_anchors, n_features), n_sets = anchors.shape, sets.n_sets
    new: dict[str, Any] = {"dtype": logs.dtype, "device": points.device}
    out = torch.empty((n_sets, n_anchors, n_features), **new)
    results = (out, *(torch.empty((n_sets, n_anchors), **new) for _ in range(2)))
    kept = (
        torch.empty((n_iter - 1 if keep else 0, sets.n_entries, n_anchors), **new),
        torch.empty((n_iter if keep else 0, n_sets, n_anchors), **new),
    )
    if n_sets == 0:
        return *results[:2], *kept
    anchors, constants, alpha = anchors.to(logs.dtype), numbers(prior, variance, **new), logs.exp()
    centre = anchors.mean(dim=0)
    w = anchors - centre
    bias = numbers(*[0.0] * n_anchors, **new) if bias is None else bias.to(logs.dtype)
    rows, members, hubs = (points, points.stride(0)), members_of(sets, logs), sets.hubs
    shape, warps = lane_shape(n_anchors, n_features, logs.dtype, weighted=sets.weights is not None)
    options: dict[str, Any] = {"KEEP": keep, "S": shape, "num_warps": warps}
    limited = {**options, "maxnreg": _REGISTERS}
    inputs = (w, centre, bias, (sets.indptr, *members), constants)
    sizes = (sets.n_entries * n_anchors, n_sets * n_anchors)
    # Tensors that are not written are replaced by any tensor.
    tables = kept if keep else (logs, logs)
    _em_rows[(n_sets,)](results, tables, rows, alpha, *inputs, sets.hub, n_iter, sizes, **limited)
    if hubs.n_hubs:
        parts = (out.new_empty((hubs.n_parts, *out.shape[1:])), out.new_empty((hubs.n_parts, n_anchors)))
        items = (hubs.part_first, hubs.part_last, hubs.part_row)
        for iteration in range(n_iter):
            first = {"FIRST": iteration == 0}
            entry_logs = kept[0][iteration - 1] if keep and iteration else logs
            _em_parts[(hubs.n_parts,)](
                parts, out, entry_logs, rows, alpha, centre, bias, items, members, constants, **first, **limited
            )
            log_total = kept[1][iteration] if keep else logs
            _em_merge[(hubs.n_hubs, n_anchors)](
                results, log_total, w, centre, parts, hubs.rows, hubs.offsets, constants, PARTS=16, **first, **options
            )
    grid = (triton.cdiv(n_sets, _REPAIR_ROWS),)
    em_repair[grid](results, tables, rows, logs, *inputs, n_sets, n_iter, sizes, ROWS=_REPAIR_ROWS, **options)
    return *results[:2], *kept


def em(points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, *rest: Any) -> tuple[Tensor, ...] | None:
    """`em_rows`, or None if the means of a set do not fit into the registers of a program."""
    return em_rows(points, logs, sets, anchors, *rest) if fits(*anchors.shape) else None


def score(points: Tensor, means: Tensor, sets: TensorSets) -> Tensor:
    """s_ej = −‖x_e − μ_vj‖²/2 of every member at the means of its set, (entry, anchor)."""
    return entry_distances(points, means, sets)


def score_backward(points: Tensor, means: Tensor, sets: TensorSets, grad: Tensor) -> tuple[Tensor, Tensor]:
    """∂L/∂(points, means) of `score`."""
    grad, unweighted = grad.contiguous(), sets.weighted(None)
    back, entries = sets.transpose
    pulled = Pull(points, grad, unweighted, by_entry=True).all()
    grad_means = pulled - sum_segments(grad, sets.indptr)[..., None] * means
    pushed, _ = push(None, means, unweighted, grad)
    weight = sum_segments(grad.sum(dim=1)[entries], back.indptr)
    return pushed - weight[:, None] * points, grad_means
