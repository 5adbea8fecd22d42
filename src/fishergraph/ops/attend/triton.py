"""The M-step on a GPU: one program per multiset reads the points of its members once, for all anchors.

Bytes per entry: the point (d · its width), its responsibilities (4 · p) and its index; per set the means, written once
(4 · p · d). The sums of up to eight anchors stay in registers; a coefficient is a scalar of the program, so no lane
waits for another. Nothing of the size of the entries is written, and no sum depends on the order of the programs.

The plain rule a·α serves as long as every mass is a normal number. If one would underflow, a second kernel computes the
set again with the logs shifted by their maximum. Sets of very many members are cut into parts, whose sums are merged in
order. Points in bf16 use the matrix units.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops._triton.launch import INTERPRETED, REGISTERS, members_of, numbers, tile
from fishergraph.ops._triton.members import added, load_row, narrowed, no_shift, pull, store_row, tile_features, zeros
from fishergraph.ops.tensor_sets import TensorSets

# Rows that one program of the repair checks.
_REPAIR_ROWS = 32
# Members of one product of the matrix units, and its factors: Triton's interpreter multiplies the bits of bf16.
_MEMBERS = 16
_FACTORS = tl.float32 if INTERPRETED else tl.bfloat16


@triton.jit
def _highest(logs, members, start, stop, anchor, least, S: constexpr):
    """(max(least, max_e log α_ej))_j over the members with a positive weight; 0 if there is none."""
    indices, weights = members
    lanes, result = tl.arange(0, 32), ()
    for j in tl.static_range(S.P):
        high = tl.full([32], -float("inf"), S.KIND)
        for first in range(start, stop, 32):
            entry = first + lanes
            live = entry < stop
            if S.WEIGHTED:
                live = live & (tl.load(weights + entry, mask=live, other=0.0) > 0)
            row = entry if S.BY_ENTRY else tl.load(indices + entry, mask=live, other=0).to(tl.int64)
            high = tl.maximum(high, tl.load(logs + row * S.N + anchor + j, mask=live, other=-float("inf")))
        top = tl.maximum(tl.max(high, axis=0), least)
        result = result + (tl.where(top > -float("inf"), top, 0.0),)
    return result


@triton.jit
def _finish(results, w, row, sums, totals, shifts, constants, tile, OFFSET: constexpr, REPAIR: constexpr, S: constexpr):
    """Write the means, or (means − w)·scale; the anchor if nothing was summed. The mass, and log(κ + mass)."""
    out, mass, log_total = results
    features, anchor = tile
    prior, scale = tl.load(constants), tl.load(constants + 1)
    for j in tl.static_range(S.P):
        # The anchor is one more member, with weight κ; a product κ · exp(−shift) could be 0 · ∞.
        anchor_c = tl.exp(tl.log(prior) - shifts[j])
        whole = totals[j] + anchor_c
        filled = whole != 0  # also if it is NaN, which propagates
        origin = tl.zeros_like(sums[j])
        if OFFSET | (anchor_c > 0) | (whole <= 0):  # otherwise the anchor does not count, and is not read
            origin = load_row(w, anchor + j, features, S.D, S)
        inverse = 1 / tl.where(filled, whole, 1.0)
        mean = (sums[j] + anchor_c * origin) * inverse
        # One step of refinement makes it the quotient: the mean of equal points is that point, to the last bit.
        mean += ((sums[j] + anchor_c * origin) - mean * whole) * inverse
        mean = tl.where(filled, mean, origin)
        if OFFSET:
            mean = (mean - origin) * scale
        where = row * S.N + anchor + j
        store_row(out, where, features, mean, S)
        if tl.program_id(1) == 0:
            if not REPAIR:  # other programs of the repair still read the mass
                tl.store(mass + where, totals[j] * tl.exp(shifts[j]))
            log = tl.where(filled, tl.log(tl.where(filled, whole, 1.0)) + shifts[j], -float("inf"))
            tl.store(log_total + where, log)


@triton.jit
def _attend_rows(results, parts, points, alpha, w, sets, constants, n_parts, hub, OFFSET: constexpr, S: constexpr):
    """One set per program, all its members. The first programs compute one part of a hub each instead."""
    part_sums, part_total, part_first, part_last = parts
    indptr, indices, weights = sets
    item = tl.program_id(0).to(tl.int64)
    is_part = item < n_parts
    row = item - n_parts
    start = tl.load(part_first + item) if is_part else tl.load(indptr + row)
    stop = tl.load(part_last + item) if is_part else tl.load(indptr + row + 1)
    if stop - start > hub:
        return
    features = tl.program_id(1) * S.BLOCK + tile_features(S.BLOCK)
    anchor = tl.minimum(tl.program_id(2) * S.P, S.N - S.P)  # the last tile may repeat anchors of the one before
    tile, shifts = (features, anchor), no_shift(S.P, S.KIND)
    sums, totals = pull(points, alpha, (indices, weights), start, stop, tile, shifts, False, S)
    if is_part:
        for j in tl.static_range(S.P):
            where = item * S.N + anchor + j
            store_row(part_sums, where, features, sums[j], S)
            if tl.program_id(1) == 0:
                tl.store(part_total + where, totals[j])
    else:
        _finish(results, w, row, sums, totals, shifts, constants, tile, OFFSET, False, S)


@triton.jit
def _repair_rows(
    results,
    points,
    logs,
    w,
    sets,
    constants,
    n_sets,
    ROWS: constexpr,
    CHUNK: constexpr,
    OFFSET: constexpr,
    S: constexpr,
):
    """The sets among ROWS whose plain mass has lost digits, computed again in logs."""
    indptr, indices, weights = sets
    members = (indices, weights)
    first = tl.program_id(0).to(tl.int64) * ROWS
    features = tl.program_id(1) * S.BLOCK + tile_features(S.BLOCK)
    anchor = tl.minimum(tl.program_id(2) * S.P, S.N - S.P)
    tile, prior = (features, anchor), tl.load(constants)
    rows = first + tl.arange(0, ROWS)
    least = tl.full([ROWS], float("inf"), S.KIND)
    for j in tl.static_range(S.P):
        at = results[1] + rows * S.N + anchor + j
        least = tl.minimum(least, tl.load(at, mask=rows < n_sets, other=1.0) + prior)
    if tl.min(least, axis=0) >= 1e-30:
        return
    for row in range(first, tl.minimum(first + ROWS, n_sets)):
        start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
        low = tl.sum(tl.where((rows == row) & (least < 1e-30), 1, 0), axis=0) > 0
        if low & (stop > start):
            shifts = _highest(logs, members, start, stop, anchor, tl.log(prior), S)
            wide, wide_totals = zeros(features, S.P, tl.float64), no_shift(S.P, tl.float64)
            for begin in range(start, stop, CHUNK):
                end = tl.minimum(begin + CHUNK, stop)
                sums, totals = pull(points, logs, members, begin, end, tile, shifts, True, S)
                wide, wide_totals = added(wide, sums, S.P), added(wide_totals, totals, S.P)
            sums, totals = narrowed(wide, S.P, S.KIND), narrowed(wide_totals, S.P, S.KIND)
            _finish(results, w, row, sums, totals, shifts, constants, tile, OFFSET, True, S)


@triton.jit
def sum_hub_parts(part_sums, part_total, hub_offsets, hub, anchor, features, PARTS: constexpr, S: constexpr):
    """The sums of a hub at one anchor, (feature,), and its total: its parts, PARTS at a time, in order, in float64."""
    lanes, first, last = tl.arange(0, PARTS), tl.load(hub_offsets + hub), tl.load(hub_offsets + hub + 1)
    sums, total = tl.zeros([S.BLOCK], tl.float64), tl.full([], 0.0, tl.float64)
    for begin in tl.range(first, last, PARTS, num_stages=3):
        part = begin + lanes
        where = part.to(tl.int64) * S.N + anchor
        inside = (part < last)[:, None] & (features < S.D)[None, :]
        values = tl.load(part_sums + where[:, None] * S.D + features[None, :], mask=inside, other=0.0)
        sums += tl.sum(values, axis=0).to(tl.float64)
        total += tl.sum(tl.load(part_total + where, mask=part < last, other=0.0).to(tl.float64), axis=0)
    return sums.to(S.KIND), total.to(S.KIND)


@triton.jit
def _merge_parts(
    results,
    w,
    part_sums,
    part_total,
    hub_rows,
    hub_offsets,
    constants,
    PARTS: constexpr,
    OFFSET: constexpr,
    S: constexpr,
):
    """One anchor of a hub per program, from its parts."""
    hub, anchor = tl.program_id(0), tl.program_id(2)
    features = tl.program_id(1) * S.BLOCK + tl.arange(0, S.BLOCK)
    sums, total = sum_hub_parts(part_sums, part_total, hub_offsets, hub, anchor, features, PARTS, S)
    row, tile = tl.load(hub_rows + hub).to(tl.int64), (features, anchor)
    _finish(results, w, row, (sums,), (total,), no_shift(1, S.KIND), constants, tile, OFFSET, False, S)


# --------------------------------------------------------------------------------- bf16 on the matrix units
#
# A program computes products (coefficient, member) · (member, feature) of two adjacent sets and sixteen of their
# members at a time. Eight rows of the first factor are the anchors of one set and eight those of the other. The
# coefficients are rounded to bf16 like the points, and the sums scaled so that the coefficients of a set still add up
# to its mass. Sums and masses are float32. A point that is not finite makes both sets of a pair NaN.


def uses_matrix_units(points: Tensor, out: Tensor, logs: Tensor, fisher_root: float | None) -> bool:
    """Whether points and means are in bf16, and the rest in float32."""
    return points.dtype == out.dtype == torch.bfloat16 and logs.dtype == torch.float32 and fisher_root is None


@triton.jit
def _bounds(item, row, n_sets, n_parts, indptr, part_first, part_last):
    """(begin, middle, end) of the entries of two sets; of a part of a hub, whose second set is empty."""
    if item < n_parts:
        begin, middle = tl.load(part_first + item), tl.load(part_last + item)
        end = middle
    else:
        begin, middle = tl.load(indptr + row), tl.load(indptr + row + 1)
        end = tl.load(indptr + tl.minimum(row + 2, n_sets))
    return begin, middle, end


@triton.jit
def _sum_pair(points, alpha, members, first, middle, last, tile, MEMBERS: constexpr, FACTORS: constexpr, S: constexpr):
    """Σ_e r(c_ej) x_e (16, feature), Σ_e c_ej and Σ_e r(c_ej) (16,), with r the rounding to bf16.

    Rows 0 … 7 sum over the entries before `middle`, rows 8 … 15 over the others. `alpha` is (α, stride of a row): a
    constant stride would change the layout, and with it the order of the sums.
    """
    x, stride = points
    coefficients, n_anchors = alpha
    indices, weights = members
    features, anchor = tile
    halves, lanes = tl.arange(0, 16), tl.arange(0, MEMBERS)
    column, second = halves % 8, halves >= 8
    sums = tl.zeros([16, S.BLOCK], tl.float32)
    exact, rounded = tl.zeros([16, MEMBERS], tl.float32), tl.zeros([16, MEMBERS], tl.float32)
    # The sets are not hubs: 32 bits count their entries.
    for begin in tl.range(0, (last - first).to(tl.int32), MEMBERS, num_stages=2):
        entry = first + begin + lanes
        live = entry < last
        point = tl.load(indices + entry, mask=live, other=0).to(tl.int64)
        mask = live[:, None] if S.D % S.BLOCK == 0 else live[:, None] & (features < S.D)[None, :]
        rows = tl.load(x + point[:, None] * stride + features[None, :], mask=mask, other=0.0)
        mine = live[None, :] & ((entry >= middle)[None, :] == second[:, None]) & (column < S.P)[:, None]
        where = (entry if S.BY_ENTRY else point) * n_anchors + anchor
        c = tl.load(coefficients + where[None, :] + column[:, None], mask=mine, other=0.0)
        if S.WEIGHTED:
            c *= tl.load(weights + entry, mask=live, other=0.0).to(tl.float32)[None, :]
        half = c.to(tl.bfloat16)
        exact += c
        rounded += half.to(tl.float32)
        sums = tl.dot(half.to(FACTORS), rows.to(FACTORS), sums)
    return sums, tl.sum(exact, axis=1), tl.sum(rounded, axis=1)


@triton.jit
def _finish_pair(results, w, row, sums, scale, totals, live, prior, tile, PRIOR: constexpr, S: constexpr):
    """Write the means, the mass and log(κ + mass) of two sets; `live` are the rows of the sums that count."""
    out, mass, log_total = results
    features, anchor = tile
    halves = tl.arange(0, 16)
    column, second = halves % 8, halves >= 8
    where = (row + second) * S.N + anchor + column
    cells, mask = where[:, None] * S.D + features[None, :], live[:, None] & (features < S.D)[None, :]
    whole = totals + prior
    filled = whole != 0  # also if it is NaN, which propagates
    inverse = 1 / tl.where(filled, whole, 1.0)
    if PRIOR:
        origin = tl.load(w + (anchor + column)[:, None] * S.D + features[None, :], mask=mask, other=0.0).to(S.KIND)
        mean = (sums * scale[:, None] + prior * origin) * inverse[:, None]
        tl.store(out + cells, mean.to(out.dtype.element_ty), mask=mask)
    else:
        mean, full = sums * (scale * inverse)[:, None], mask & filled[:, None]
        tl.store(out + cells, mean.to(out.dtype.element_ty), mask=full, eviction_policy="evict_first")
        if tl.min(tl.where(live, whole, 1.0), axis=0) <= 0:  # row by row: a tile of anchors would take registers
            for i in range(16):
                if tl.sum(tl.where(live & ~filled & (halves == i), 1, 0), axis=0) > 0:
                    origin = load_row(w, anchor + i % 8, features, S.D, S)
                    store_row(out, (row + i // 8) * S.N + anchor + i % 8, features, origin, S)
    live = live & (tl.program_id(1) == 0)
    tl.store(mass + where, totals, mask=live)
    tl.store(log_total + where, tl.where(filled, tl.log(tl.where(filled, whole, 1.0)), -float("inf")), mask=live)


@triton.jit
def _attend_pairs(
    results,
    parts,
    points,
    alpha,
    w,
    sets,
    constants,
    n_parts,
    hub,
    n_sets,
    MEMBERS: constexpr,
    FACTORS: constexpr,
    PRIOR: constexpr,
    S: constexpr,
):
    """Two sets per program, all their members. The first programs compute one part of a hub each instead."""
    part_sums, part_total, part_first, part_last = parts
    indptr, indices, weights = sets
    item = tl.program_id(0).to(tl.int64)
    row = 2 * (item - n_parts)
    begin, middle, end = _bounds(item, row, n_sets, n_parts, indptr, part_first, part_last)
    features = tl.program_id(1) * S.BLOCK + tl.arange(0, S.BLOCK)
    anchor = tl.minimum(tl.program_id(2) * S.P, S.N - S.P)  # the last tile may repeat anchors of the one before
    tile = (features, anchor)
    first, last = tl.where(middle - begin > hub, middle, begin), tl.where(end - middle > hub, middle, end)
    sums, totals, rounded = _sum_pair(points, alpha, (indices, weights), first, middle, last, tile, MEMBERS, FACTORS, S)
    scale = totals / tl.where(rounded > 0, rounded, 1.0)
    halves = tl.arange(0, 16)
    column, second = halves % 8, halves >= 8
    if item < n_parts:
        where, live = item * S.N + anchor + column, (column < S.P) & (halves < 8)
        cells, mask = where[:, None] * S.D + features[None, :], live[:, None] & (features < S.D)[None, :]
        tl.store(part_sums + cells, sums * scale[:, None], mask=mask)
        tl.store(part_total + where, totals, mask=live & (tl.program_id(1) == 0))
    else:
        live = (column < S.P) & (row + second < n_sets) & tl.where(second, end - middle <= hub, middle - begin <= hub)
        _finish_pair(results, w, row, sums, scale, totals, live, tl.load(constants), tile, PRIOR, S)


# ------------------------------------------------------------------------------------------------ the host


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
    """means (set, anchor, feature), mass and log(κ + mass) (set, anchor); with a root φ instead of the means.

    `alpha` is exp(logs) if the caller has it.
    """
    (n_anchors, n_features), n_sets, kind = anchors.shape, sets.n_sets, logs.dtype
    new: dict[str, Any] = {"dtype": kind, "device": points.device}
    if out is None:
        out = torch.empty((n_sets, n_anchors, n_features), dtype=points.dtype, device=points.device)
    results = (out, *(torch.empty((n_sets, n_anchors), **new) for _ in range(2)))
    if n_sets == 0:
        return results
    grid, shape, warps = tile(n_anchors, n_features, kind, weighted=sets.weights is not None, by_entry=by_entry)
    constants = numbers(prior, 1.0 if fisher_root is None else fisher_root, **new)
    hubs, rows = sets.hubs, (points, points.stride(0))
    tensors = (sets.indptr, *members_of(sets, logs))
    sums = torch.empty((hubs.n_parts, n_anchors, n_features), **new)
    total = torch.empty((hubs.n_parts, n_anchors), **new)
    parts = (sums, total, hubs.part_first, hubs.part_last)
    alpha = logs.exp() if alpha is None else alpha
    inputs = (anchors, tensors, constants, hubs.n_parts, sets.hub)
    offset = fisher_root is not None
    if uses_matrix_units(points, out, logs, fisher_root):
        units: dict[str, Any] = {"MEMBERS": _MEMBERS, "FACTORS": _FACTORS, "PRIOR": prior > 0, "num_warps": 4}
        launch = _attend_pairs[(hubs.n_parts + triton.cdiv(n_sets, 2), *grid)]
        launch(results, parts, rows, (alpha, n_anchors), *inputs, n_sets, S=shape, **units)
    else:
        options: dict[str, Any] = {"OFFSET": offset, "S": shape, "num_warps": warps, "maxnreg": REGISTERS}
        _attend_rows[(hubs.n_parts + n_sets, *grid)](results, parts, rows, alpha, *inputs, **options)
    if hubs.n_hubs:
        single = tile(n_anchors, n_features, kind, one_anchor=True).shape
        inputs = (results, anchors, sums, total, hubs.rows, hubs.offsets, constants)
        _merge_parts[(hubs.n_hubs, grid[0], n_anchors)](*inputs, PARTS=16, OFFSET=offset, S=single, num_warps=warps)
    inputs, chunk = (results, rows, logs, anchors, tensors, constants, n_sets), sets.hub
    _repair_rows[(triton.cdiv(n_sets, _REPAIR_ROWS), *grid)](
        *inputs, ROWS=_REPAIR_ROWS, CHUNK=chunk, OFFSET=offset, S=shape, num_warps=warps
    )
    return results
