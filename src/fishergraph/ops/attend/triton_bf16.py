"""The M-step of points in bf16 on a GPU's matrix units: products (coefficient, member) · (member, feature).

Half the bytes of float32 would wait just as long for their neighbours' numbers. Here a program takes two sets that lie
side by side and sixteen of their members at a time, all in flight at once; eight rows of the first factor are the
anchors of one set and eight those of the other. The coefficients are rounded to bf16 like the points, and the sums
scaled so that a set's coefficients still add up to its mass. Sums and masses are float32. A point that is not finite
spoils both sets of a pair: zero times infinity is no number.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fishergraph.ops._triton.members import load_row, store_row

# Members of one product. Triton's interpreter multiplies the bits of bf16 as integers, hence its factors.
_MEMBERS = 16
_FACTORS = tl.float32 if os.environ.get("TRITON_INTERPRET") == "1" else tl.bfloat16
OPTIONS: dict[str, Any] = {"MEMBERS": _MEMBERS, "FACTORS": _FACTORS, "num_warps": 4}


def takes(points: Tensor, out: Tensor, logs: Tensor, fisher_root: float | None) -> bool:
    """Whether these are for the matrix units: points and means in bf16, the rest in float32."""
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
def _sum_pair(
    x, alpha, indices, weights, first, middle, last, features, anchor, stride, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    BY_ENTRY: tl.constexpr, FACTORS: tl.constexpr,
):  # fmt: skip
    """Σ_e r(c_ej) x_e (16, feature), Σ_e c_ej and Σ_e r(c_ej) (16,), with r the rounding to bf16.

    Rows 0 … 7 sum over the entries before `middle`, rows 8 … 15 over those from it on.
    """
    halves, lanes = tl.arange(0, 16), tl.arange(0, MEMBERS)
    column, second = halves % 8, halves >= 8
    sums = tl.zeros([16, BLOCK], tl.float32)
    exact, rounded = tl.zeros([16, MEMBERS], tl.float32), tl.zeros([16, MEMBERS], tl.float32)
    # Two sets that are no hubs: 32 bits count their entries.
    for begin in tl.range(0, (last - first).to(tl.int32), MEMBERS, num_stages=2):
        entry = first + begin + lanes
        live = entry < last
        point = tl.load(indices + entry, mask=live, other=0).to(tl.int64)
        mask = live[:, None] if D % BLOCK == 0 else live[:, None] & (features < D)[None, :]
        members = tl.load(x + point[:, None] * stride + features[None, :], mask=mask, other=0.0)
        mine = live[None, :] & ((entry >= middle)[None, :] == second[:, None]) & (column < P)[:, None]
        where = (entry if BY_ENTRY else point) * N_ANCHORS + anchor
        c = tl.load(alpha + where[None, :] + column[:, None], mask=mine, other=0.0)
        if WEIGHTED:
            c *= tl.load(weights + entry, mask=live, other=0.0).to(tl.float32)[None, :]
        half = c.to(tl.bfloat16)
        exact += c
        rounded += half.to(tl.float32)
        sums = tl.dot(half.to(FACTORS), members.to(FACTORS), sums)
    return sums, tl.sum(exact, axis=1), tl.sum(rounded, axis=1)


@triton.jit
def attend_tiles(
    out, mass, log_total, part_sums, part_total, x, alpha, w, indptr, indices, weights, part_first, part_last, numbers,
    n_sets, n_parts, hub, stride, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    BY_ENTRY: tl.constexpr, PRIOR: tl.constexpr, KIND: tl.constexpr, FACTORS: tl.constexpr,
):  # fmt: skip
    """Two sets per program, all their members. The first programs take one part of a hub each instead."""
    item = tl.program_id(0).to(tl.int64)
    row = 2 * (item - n_parts)
    begin, middle, end = _bounds(item, row, n_sets, n_parts, indptr, part_first, part_last)
    first_hub, second_hub = middle - begin > hub, end - middle > hub
    features = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    anchor = tl.minimum(tl.program_id(2) * P, N_ANCHORS - P)  # the last tile may repeat anchors of the one before
    sums, totals, rounded = _sum_pair(
        x, alpha, indices, weights, tl.where(first_hub, middle, begin), middle, tl.where(second_hub, middle, end),
        features, anchor, stride, N_ANCHORS, D, BLOCK, P, MEMBERS, WEIGHTED, BY_ENTRY, FACTORS,
    )  # fmt: skip
    scale = totals / tl.where(rounded > 0, rounded, 1.0)
    halves = tl.arange(0, 16)
    column, second, inside = halves % 8, halves >= 8, features < D
    if item < n_parts:
        where, own = item * N_ANCHORS + anchor + column, (column < P) & (halves < 8)
        cells, mask = where[:, None] * D + features[None, :], own[:, None] & inside[None, :]
        tl.store(part_sums + cells, sums * scale[:, None], mask=mask)
        tl.store(part_total + where, totals, mask=own & (tl.program_id(1) == 0))
    else:
        own = (column < P) & (row + second < n_sets) & tl.where(second, end - middle <= hub, middle - begin <= hub)
        where = (row + second) * N_ANCHORS + anchor + column
        cells, mask = where[:, None] * D + features[None, :], own[:, None] & inside[None, :]
        prior = tl.load(numbers)
        whole = totals + prior
        filled = whole != 0  # also where it is no number, which stays none
        inverse = 1 / tl.where(filled, whole, 1.0)
        if PRIOR:
            known = tl.load(w + (anchor + column)[:, None] * D + features[None, :], mask=mask, other=0.0).to(KIND)
            mean = (sums * scale[:, None] + prior * known) * inverse[:, None]
            tl.store(out + cells, mean.to(out.dtype.element_ty), mask=mask)
        else:
            mean, full = sums * (scale * inverse)[:, None], mask & filled[:, None]
            tl.store(out + cells, mean.to(out.dtype.element_ty), mask=full, eviction_policy="evict_first")
            if tl.min(tl.where(own, whole, 1.0), axis=0) <= 0:  # row by row: a tile of anchors would take registers
                for i in range(16):
                    if tl.sum(tl.where(own & ~filled & (halves == i), 1, 0), axis=0) > 0:
                        known = load_row(w, anchor + i % 8, features, D, D, BLOCK, KIND)
                        store_row(out, (row + i // 8) * N_ANCHORS + anchor + i % 8, features, known, D, BLOCK)
        own = own & (tl.program_id(1) == 0)
        tl.store(mass + where, totals, mask=own)
        tl.store(log_total + where, tl.where(filled, tl.log(tl.where(filled, whole, 1.0)), -float("inf")), mask=own)
