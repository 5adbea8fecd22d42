"""The M-step on a GPU: one program per multiset pulls its members' points once, for all anchors.

Bytes per entry: the point (d · its width), its responsibilities (4 · p) and its number; per set the means, written
once (4 · p · d). The sums of up to eight anchors stay in registers while the members go by; a coefficient is a scalar
to the program, so no lane waits for another. Nothing of the size of the entries is written, and no sum depends on the
order in which programs run.

The plain rule a·α serves as long as every mass is a normal number. Where one would underflow, a second kernel goes
over the set again with the logs shifted by their maximum. Sets of very many members are cut into parts; the parts' sums
are merged in order. Points of bf16 go to the matrix units (`triton_tiles`).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fishergraph.ops import tensor_sets
from fishergraph.ops._triton.launch import REGISTERS, numbers, tile
from fishergraph.ops._triton.members import added, load_row, narrowed, no_shift, pull, store_row, tile_features, zeros
from fishergraph.ops.attend import triton_bf16
from fishergraph.ops.tensor_sets import TensorSets

# Rows that one program of the repair looks at.
_REPAIR_ROWS = 32


@triton.jit
def _highest(
    logs, indices, weights, start, stop, anchor, N_ANCHORS, least,
    P: tl.constexpr, WEIGHTED: tl.constexpr, BY_ENTRY: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """(max(least, max_e log α_ej))_j over the members that weigh something; 0 where there is none."""
    lanes = tl.arange(0, 32)
    result = ()
    for j in tl.static_range(P):
        high = tl.full([32], -float("inf"), KIND)
        for first in range(start, stop, 32):
            entry = first + lanes
            live = entry < stop
            if WEIGHTED:
                live = live & (tl.load(weights + entry, mask=live, other=0.0) > 0)
            row = entry if BY_ENTRY else tl.load(indices + entry, mask=live, other=0).to(tl.int64)
            high = tl.maximum(high, tl.load(logs + row * N_ANCHORS + anchor + j, mask=live, other=-float("inf")))
        top = tl.maximum(tl.max(high, axis=0), least)
        result = result + (tl.where(top > -float("inf"), top, 0.0),)
    return result


@triton.jit
def _finish(
    out, mass, log_total, w, row, sums, totals, shifts, prior, scale, features, anchor, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, OFFSET: tl.constexpr, REPAIR: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """Write the means, or (means − w)·scale; the anchor where nothing was summed. The mass, and log(κ + mass)."""
    for j in tl.static_range(P):
        # The anchor is one more member, with weight κ; a product κ · exp(−shift) could be 0 · ∞.
        own = tl.exp(tl.log(prior) - shifts[j])
        whole = totals[j] + own
        filled = whole != 0  # also where it is no number, which stays none
        known = tl.zeros_like(sums[j])
        if OFFSET | (own > 0) | (whole <= 0):  # elsewhere the anchor counts for nothing, and need not be read
            known = load_row(w, anchor + j, features, D, D, BLOCK, KIND)
        inverse = 1 / tl.where(filled, whole, 1.0)
        mean = (sums[j] + own * known) * inverse
        # One step of refinement makes it the quotient: the mean of equal points is that point, to the last bit.
        mean += ((sums[j] + own * known) - mean * whole) * inverse
        mean = tl.where(filled, mean, known)
        if OFFSET:
            mean = (mean - known) * scale
        where = row * N_ANCHORS + anchor + j
        store_row(out, where, features, mean, D, BLOCK)
        if tl.program_id(1) == 0:
            if not REPAIR:  # other programs of the repair still ask the mass
                tl.store(mass + where, totals[j] * tl.exp(shifts[j]))
            tl.store(
                log_total + where, tl.where(filled, tl.log(tl.where(filled, whole, 1.0)) + shifts[j], -float("inf"))
            )


@triton.jit
def _attend_rows(
    out, mass, log_total, part_sums, part_total, x, alpha, w, indptr, indices, weights, part_first, part_last, numbers,
    n_parts, hub, stride, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    BY_ENTRY: tl.constexpr, OFFSET: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """One set per program, all its members. The first programs take the parts of the hubs, which are long, instead."""
    item = tl.program_id(0).to(tl.int64)
    is_part = item < n_parts
    row = item - n_parts
    start = tl.load(part_first + item) if is_part else tl.load(indptr + row)
    stop = tl.load(part_last + item) if is_part else tl.load(indptr + row + 1)
    if stop - start > hub:
        return
    features = tl.program_id(1) * BLOCK + tile_features(BLOCK)
    anchor = tl.minimum(tl.program_id(2) * P, N_ANCHORS - P)  # the last tile may repeat anchors of the one before
    shifts = no_shift(P, KIND)
    sums, totals = pull(
        x, alpha, indices, weights, start, stop, features, anchor, shifts, stride, N_ANCHORS,
        D, BLOCK, P, MEMBERS, WEIGHTED, BY_ENTRY, False, KIND,
    )  # fmt: skip
    if is_part:
        for j in tl.static_range(P):
            where = item * N_ANCHORS + anchor + j
            store_row(part_sums, where, features, sums[j], D, BLOCK)
            if tl.program_id(1) == 0:
                tl.store(part_total + where, totals[j])
    else:
        _finish(
            out, mass, log_total, w, row, sums, totals, shifts, tl.load(numbers), tl.load(numbers + 1), features,
            anchor, N_ANCHORS, D, BLOCK, P, OFFSET, False, KIND,
        )  # fmt: skip


@triton.jit
def _repair_rows(
    out, mass, log_total, x, logs, w, indptr, indices, weights, numbers, stride, n_sets, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr, BY_ENTRY: tl.constexpr,
    OFFSET: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The sets among ROWS whose plain mass has lost digits, once more and in logs."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    features = tl.program_id(1) * BLOCK + tile_features(BLOCK)
    anchor = tl.minimum(tl.program_id(2) * P, N_ANCHORS - P)
    prior = tl.load(numbers)
    rows = first + tl.arange(0, ROWS)
    least = tl.full([ROWS], float("inf"), KIND)
    for j in tl.static_range(P):
        at = mass + rows * N_ANCHORS + anchor + j
        least = tl.minimum(least, tl.load(at, mask=rows < n_sets, other=1.0) + prior)
    if tl.min(least, axis=0) >= 1e-30:
        return
    for row in range(first, tl.minimum(first + ROWS, n_sets)):
        start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
        low = tl.sum(tl.where((rows == row) & (least < 1e-30), 1, 0), axis=0) > 0
        if low & (stop > start):
            shifts = _highest(
                logs, indices, weights, start, stop, anchor, N_ANCHORS, tl.log(prior), P, WEIGHTED, BY_ENTRY, KIND
            )
            wide, wide_totals = zeros(features, P, tl.float64), no_shift(P, tl.float64)
            for begin in range(start, stop, CHUNK):
                sums, totals = pull(
                    x, logs, indices, weights, begin, tl.minimum(begin + CHUNK, stop), features, anchor, shifts, stride,
                    N_ANCHORS, D, BLOCK, P, 1, WEIGHTED, BY_ENTRY, True, KIND,
                )  # fmt: skip
                wide, wide_totals = added(wide, sums, P), added(wide_totals, totals, P)
            sums, totals = narrowed(wide, P, KIND), narrowed(wide_totals, P, KIND)
            _finish(
                out, mass, log_total, w, row, sums, totals, shifts, prior, tl.load(numbers + 1), features, anchor,
                N_ANCHORS, D, BLOCK, P, OFFSET, True, KIND,
            )  # fmt: skip


@triton.jit
def _merge_parts(
    out, mass, log_total, w, part_sums, part_total, hub_rows, hub_offsets, numbers, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, OFFSET: tl.constexpr, KIND: tl.constexpr,
    PARTS: tl.constexpr,
):  # fmt: skip
    """One anchor of a hub per program: its parts, PARTS at a time, in order and in float64."""
    hub, anchor = tl.program_id(0), tl.program_id(2)
    features, lanes = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, PARTS)
    first, last = tl.load(hub_offsets + hub), tl.load(hub_offsets + hub + 1)
    sums, total = tl.zeros([BLOCK], tl.float64), tl.full([], 0.0, tl.float64)
    for begin in range(first, last, PARTS):
        part = begin + lanes
        where = part.to(tl.int64) * N_ANCHORS + anchor
        inside = (part < last)[:, None] & (features < D)[None, :]
        own = tl.load(part_sums + where[:, None] * D + features[None, :], mask=inside, other=0.0)
        sums += tl.sum(own, axis=0).to(tl.float64)
        total += tl.sum(tl.load(part_total + where, mask=part < last, other=0.0).to(tl.float64), axis=0)
    _finish(
        out, mass, log_total, w, tl.load(hub_rows + hub).to(tl.int64), (sums.to(KIND),), (total.to(KIND),),
        no_shift(1, KIND),
        tl.load(numbers), tl.load(numbers + 1), features, anchor, N_ANCHORS, D, BLOCK, 1, OFFSET, False, KIND,
    )  # fmt: skip


def attend(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    *,
    prior: float = 0.0,
    by_entry: bool = False,
    fisher_root: float | None = None,
    alpha: Tensor | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """means (set, anchor, feature), mass and log(κ + mass) (set, anchor); φ in the place of the means with a root.

    `alpha` is exp(logs) where it is known already.
    """
    (n_anchors, n_features), n_sets, kind = anchors.shape, sets.n_sets, logs.dtype
    new = {"dtype": kind, "device": points.device}
    if out is None:
        out = torch.empty((n_sets, n_anchors, n_features), dtype=points.dtype, device=points.device)
    mass, log_total = (torch.empty((n_sets, n_anchors), **new) for _ in range(2))
    if n_sets == 0:
        return out, mass, log_total
    grid, options = tile(n_anchors, n_features, kind)
    offset, stride = {"OFFSET": fisher_root is not None}, points.stride(0)
    how: dict[str, Any] = {**options, "WEIGHTED": sets.weights is not None, "BY_ENTRY": by_entry}
    constants = numbers(prior, 1.0 if fisher_root is None else fisher_root, **new)
    weights = logs if sets.weights is None else sets.weights
    results, hubs = (out, mass, log_total), sets.hubs
    sums = torch.empty((hubs.n_parts, n_anchors, n_features), **new)
    total = torch.empty((hubs.n_parts, n_anchors), **new)
    alpha = logs.exp() if alpha is None else alpha
    given = (*results, sums, total, points, alpha, anchors, sets.indptr, sets.indices, weights)
    given = (*given, hubs.part_first, hubs.part_last, constants)
    rest = (hubs.n_parts, tensor_sets.HUB, stride, n_anchors)
    if triton_bf16.takes(points, out, logs, fisher_root):
        triton_bf16.attend_tiles[(hubs.n_parts + triton.cdiv(n_sets, 2), *grid)](
            *given, n_sets, *rest, PRIOR=prior > 0, **{**how, **triton_bf16.OPTIONS}
        )
    else:
        _attend_rows[(hubs.n_parts + n_sets, *grid)](*given, *rest, MEMBERS=3, maxnreg=REGISTERS, **offset, **how)
    if hubs.n_hubs:
        _merge_parts[(hubs.n_hubs, grid[0], n_anchors)](
            *results, anchors, sums, total, hubs.rows, hubs.offsets, constants, n_anchors, PARTS=16, **offset, **options
        )
    _repair_rows[(triton.cdiv(n_sets, _REPAIR_ROWS), *grid)](
        *results, points, logs, anchors, sets.indptr, sets.indices, weights, constants, stride, n_sets, n_anchors,
        ROWS=_REPAIR_ROWS, CHUNK=tensor_sets.HUB, **offset, **how,
    )  # fmt: skip
    return results
