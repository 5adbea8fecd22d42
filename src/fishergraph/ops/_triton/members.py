"""The leaves of the Triton kernels: one tile of a row, and the sums over the members of a set.

A program holds one accumulator per anchor, a tile of features long. Coefficients are scalars to it, so that no lane
waits for another, and a tuple of accumulators needs no change of layout.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def tile_features(BLOCK: tl.constexpr):
    """The numbers of the BLOCK features of a tile.

    A lane takes four neighbours at a time of every tensor, whatever the width of its numbers: where it took eight of a
    half type, all that meets them in float32 would have to change lanes.
    """
    return tl.max_contiguous(tl.arange(0, BLOCK), 4)


@triton.jit
def zeros(features, P: tl.constexpr, KIND: tl.constexpr):
    """P accumulators of zeros, one for each of the features."""
    sums = ()
    for _ in tl.static_range(P):
        sums = sums + (tl.full(features.shape, 0.0, KIND),)
    return sums


@triton.jit
def no_shift(P: tl.constexpr, KIND: tl.constexpr):
    """P scalar zeros."""
    shifts = ()
    for _ in tl.static_range(P):
        shifts = shifts + (tl.full([], 0.0, KIND),)
    return shifts


@triton.jit
def load_row(pointer, row, features, stride, D: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr):
    """One tile of a row; the mask is left out where the tiles cover the row exactly."""
    if D % BLOCK == 0:
        return tl.load(pointer + row * stride + features).to(KIND)
    return tl.load(pointer + row * stride + features, mask=features < D, other=0.0).to(KIND)


@triton.jit
def load_live_row(pointer, row, live, features, stride, D: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr):
    """The same, or zeros where the row is not `live` (a scalar)."""
    if D % BLOCK == 0:
        return tl.load(pointer + row * stride + features, mask=live, other=0.0, eviction_policy="evict_last").to(KIND)
    return tl.load(pointer + row * stride + features, mask=live & (features < D), other=0.0).to(KIND)


@triton.jit
def load_members(indices, first, stop, MEMBERS: tl.constexpr):
    """The numbers of the next MEMBERS points; 0 behind the last entry."""
    points = ()
    for k in tl.static_range(MEMBERS):
        points = points + (tl.load(indices + first + k, mask=first + k < stop, other=0).to(tl.int64),)
    return points


@triton.jit
def store_row(pointer, row, features, values, D: tl.constexpr, BLOCK: tl.constexpr):
    """One tile of a contiguous row, which nobody will read soon: the cache is better kept for the points."""
    if D % BLOCK == 0:
        tl.store(pointer + row * D + features, values.to(pointer.dtype.element_ty), eviction_policy="evict_first")
    else:
        tl.store(pointer + row * D + features, values.to(pointer.dtype.element_ty), mask=features < D)


@triton.jit
def _coefficients(
    coefficients, weights, point, entry, live, anchor, shifts, N_ANCHORS,
    P: tl.constexpr, WEIGHTED: tl.constexpr, BY_ENTRY: tl.constexpr, IN_LOGS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """(c_ej)_j of one entry: a·α, or a·exp(log α − shift); zeros where it is not live."""
    where = coefficients + (entry if BY_ENTRY else point) * N_ANCHORS + anchor
    weight = tl.load(weights + entry, mask=live, other=0.0).to(KIND) if WEIGHTED else tl.full([], 1.0, KIND)
    result = ()
    for j in tl.static_range(P):
        c = tl.load(where + j, mask=live, other=-float("inf") if IN_LOGS else 0.0)
        if IN_LOGS:
            # A member of weight zero may have a log above the shift: exp could be ∞, and 0 · ∞ no number.
            c = tl.where(weight > 0, tl.exp(c - shifts[j]), 0.0)
        result = result + (c * weight if WEIGHTED else c,)
    return result


@triton.jit
def pull(
    x, coefficients, indices, weights, start, stop, features, anchor, shifts, stride, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    BY_ENTRY: tl.constexpr, IN_LOGS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """(Σ_e c_ej x_e)_j and (Σ_e c_ej)_j over the entries start … stop − 1.

    MEMBERS points are in flight at a time, and the numbers of the next ones are asked for before they are needed.
    """
    sums, totals = zeros(features, P, KIND), no_shift(P, KIND)
    points = load_members(indices, start, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        following = load_members(indices, first + MEMBERS, stop, MEMBERS)
        for k in tl.static_range(MEMBERS):
            live = first + k < stop
            c = _coefficients(
                coefficients, weights, points[k], first + k, live, anchor, shifts, N_ANCHORS,
                P, WEIGHTED, BY_ENTRY, IN_LOGS, KIND,
            )  # fmt: skip
            member = load_live_row(x, points[k], live, features, stride, D, BLOCK, KIND)
            new_sums, new_totals = (), ()
            for j in tl.static_range(P):
                new_sums, new_totals = new_sums + (sums[j] + c[j] * member,), new_totals + (totals[j] + c[j],)
            sums, totals = new_sums, new_totals
        points = following
    return sums, totals


@triton.jit
def added(left, right, P: tl.constexpr):
    """left_j + right_j of P accumulators, in the type of the left ones."""
    result = ()
    for j in tl.static_range(P):
        result = result + (left[j] + right[j].to(left[j].dtype),)
    return result


@triton.jit
def narrowed(values, P: tl.constexpr, KIND: tl.constexpr):
    """P accumulators in another type."""
    result = ()
    for j in tl.static_range(P):
        result = result + (values[j].to(KIND),)
    return result
