"""Device functions of the Triton kernels: one tile of a row, and the sums over the members of a set.

A program holds one accumulator per anchor, a tile of features long. Coefficients are scalars of the program, so no lane
waits for another, and a tuple of accumulators needs no change of layout. `S` is the `Shape` of the kernel, points are
(pointer, stride of a row), members (indices, weights), and a tile (its features, its first anchor).
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr


@triton.jit
def tile_features(BLOCK: constexpr):
    """The indices of the BLOCK features of a tile.

    A lane holds four neighbours at a time of every tensor, whatever its dtype. With eight of a half type, all float32
    values that meet them would have to change lanes.
    """
    return tl.max_contiguous(tl.arange(0, BLOCK), 4)


@triton.jit
def zeros(features, P: constexpr, KIND: constexpr):
    """P accumulators of zeros, one for each of the features."""
    sums = ()
    for _ in tl.static_range(P):
        sums = sums + (tl.full(features.shape, 0.0, KIND),)
    return sums


@triton.jit
def no_shift(P: constexpr, KIND: constexpr):
    """P scalar zeros."""
    shifts = ()
    for _ in tl.static_range(P):
        shifts = shifts + (tl.full([], 0.0, KIND),)
    return shifts


@triton.jit
def load_row(pointer, row, features, stride, S: constexpr):
    """One tile of a row; without a mask if the tiles cover the row exactly."""
    if S.D % S.BLOCK == 0:
        return tl.load(pointer + row * stride + features).to(S.KIND)
    return tl.load(pointer + row * stride + features, mask=features < S.D, other=0.0).to(S.KIND)


@triton.jit
def load_live_row(pointer, row, live, features, stride, S: constexpr):
    """The same, or zeros if the row is not `live` (a scalar)."""
    if S.D % S.BLOCK == 0:
        return tl.load(pointer + row * stride + features, mask=live, other=0.0, eviction_policy="evict_last").to(S.KIND)
    return tl.load(pointer + row * stride + features, mask=live & (features < S.D), other=0.0).to(S.KIND)


@triton.jit
def load_members(indices, first, stop, MEMBERS: constexpr):
    """The indices of the next MEMBERS points; 0 behind the last entry."""
    points = ()
    for k in tl.static_range(MEMBERS):
        points = points + (tl.load(indices + first + k, mask=first + k < stop, other=0).to(tl.int64),)
    return points


@triton.jit
def store_row(pointer, row, features, values, S: constexpr):
    """One tile of a contiguous row, which is not read soon: the cache is kept for the points."""
    if S.D % S.BLOCK == 0:
        tl.store(pointer + row * S.D + features, values.to(pointer.dtype.element_ty), eviction_policy="evict_first")
    else:
        tl.store(pointer + row * S.D + features, values.to(pointer.dtype.element_ty), mask=features < S.D)


@triton.jit
def _coefficients(coefficients, weights, point, entry, live, anchor, shifts, IN_LOGS: constexpr, S: constexpr):
    """(c_ej)_j of one entry: a·α, or a·exp(log α − shift); zeros if it is not live."""
    where = coefficients + (entry if S.BY_ENTRY else point) * S.N + anchor
    weight = tl.load(weights + entry, mask=live, other=0.0).to(S.KIND) if S.WEIGHTED else tl.full([], 1.0, S.KIND)
    result = ()
    for j in tl.static_range(S.P):
        c = tl.load(where + j, mask=live, other=-float("inf") if IN_LOGS else 0.0)
        if IN_LOGS:
            # A member of weight zero may have a log above the shift: exp could be ∞, and 0 · ∞ is NaN.
            c = tl.where(weight > 0, tl.exp(c - shifts[j]), 0.0)
        result = result + (c * weight if S.WEIGHTED else c,)
    return result


@triton.jit
def pull(points, coefficients, members, start, stop, tile, shifts, IN_LOGS: constexpr, S: constexpr):
    """(Σ_e c_ej x_e)_j and (Σ_e c_ej)_j over the entries start … stop − 1.

    Three points are in flight at a time (in logs one), and the indices of the next ones are loaded before their use.
    """
    MEMBERS: constexpr = 1 if IN_LOGS else 3
    x, stride = points
    indices, weights = members
    features, anchor = tile
    sums, totals = zeros(features, S.P, S.KIND), no_shift(S.P, S.KIND)
    following = load_members(indices, start, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        current = following
        following = load_members(indices, first + MEMBERS, stop, MEMBERS)
        for k in tl.static_range(MEMBERS):
            live = first + k < stop
            c = _coefficients(coefficients, weights, current[k], first + k, live, anchor, shifts, IN_LOGS, S)
            member = load_live_row(x, current[k], live, features, stride, S)
            new_sums, new_totals = (), ()
            for j in tl.static_range(S.P):
                new_sums, new_totals = new_sums + (sums[j] + c[j] * member,), new_totals + (totals[j] + c[j],)
            sums, totals = new_sums, new_totals
    return sums, totals


@triton.jit
def added(left, right, P: constexpr):
    """left_j + right_j of P accumulators, in the type of the left ones."""
    result = ()
    for j in tl.static_range(P):
        result = result + (left[j] + right[j].to(left[j].dtype),)
    return result


@triton.jit
def narrowed(values, P: constexpr, KIND: constexpr):
    """P accumulators in another type."""
    result = ()
    for j in tl.static_range(P):
        result = result + (values[j].to(KIND),)
    return result
