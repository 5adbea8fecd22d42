"""Sums over lanes on a GPU: the P scores of one point, and their softmax, with each lane working on one anchor.

A plain sum over 32 lanes takes five exchanges, for P anchors 5 · P. Here the first exchanges fold: half of the lanes
continue with one half of the anchors, the others with the other half, until lane l works on anchor l · A / LANES alone,
with A the power of two from P on. For eight anchors that is 4 + 2 + 1 + 1 + 1 exchanges instead of 40, and each lane
computes one exponential, not eight. A folded tensor has one value per lane; anchors beyond P only pad.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr

from fishergraph.ops._triton.members import load_row


@triton.constexpr_function
def log2(number):
    """The exponent of a power of two."""
    return number.bit_length() - 1


@triton.constexpr_function
def round_up(n_anchors):
    """The power of two from n_anchors on."""
    return 1 << (n_anchors - 1).bit_length()


@triton.constexpr_function
def count_lanes(block, n_anchors):
    """Lanes of a program that holds a tile of all anchors, at most 64 numbers of it each."""
    return 32 * max(1, round_up(n_anchors) * block // 2048)


def lane_tile(n_anchors: int, n_features: int) -> tuple[int, int]:
    """The features of a tile that holds a whole row, and the warps of its program."""
    block = max(128, triton.next_power_of_2(n_features))
    return block, count_lanes(block, n_anchors) // 32


@triton.jit
def lane_anchors(S: constexpr):
    """The lanes of a program, and the anchor of each."""
    LANES: constexpr = count_lanes(S.BLOCK, S.P)
    lanes = tl.arange(0, LANES)
    return lanes, lanes // (LANES // round_up(S.P))


@triton.jit
def _partner(values, lanes, step: constexpr, LANES: constexpr):
    """The values of the lanes that differ in one bit, the highest at step 0."""
    return tl.gather(values, lanes ^ (LANES >> (step + 1)), 0)


@triton.jit
def _fold_once(values, lanes, step: constexpr, HALF: constexpr, LANES: constexpr):
    """HALF tensors of 2 · HALF: the lanes with the bit continue with the second half of them."""
    upper, folded = (lanes & (LANES >> (step + 1))) != 0, ()
    for k in tl.static_range(HALF):
        a, b = values[k], values[k + HALF]
        folded = folded + (tl.where(upper, b, a) + _partner(tl.where(upper, a, b), lanes, step, LANES),)
    return folded


@triton.jit
def _fold_lanes(values, lanes, P: constexpr, LANES: constexpr):
    """Σ over the lanes of `round_up(P)` tensors (lane,), in lane l that of its anchor."""
    for step in tl.static_range(log2(round_up(P))):
        values = _fold_once(values, lanes, step, round_up(P) >> (step + 1), LANES)
    total = values[0]
    for step in tl.static_range(log2(round_up(P)), log2(LANES)):
        total += _partner(total, lanes, step, LANES)
    return total


@triton.jit
def fold_products(left, right, lanes, S: constexpr):
    """(⟨left_j, right_j⟩)_j of P pairs of tiles (feature,), folded; 0 for padding."""
    LANES: constexpr = count_lanes(S.BLOCK, S.P)
    products = ()
    for j in tl.static_range(S.P):
        # A lane holds four neighbours at a time, so the sums over the first and the last axis stay in the lane.
        product = tl.reshape(left[j] * right[j], [left[j].shape[0] // (4 * LANES), LANES, 4])
        products = products + (tl.sum(tl.sum(product, axis=2), axis=0),)
    for _ in tl.static_range(S.P, round_up(S.P)):
        products = products + (tl.zeros_like(products[0]),)
    return _fold_lanes(products, lanes, S.P, LANES)


@triton.jit
def fold_pieces(row, tiles, lanes, S: constexpr):
    """(⟨row, tile_j⟩)_j of a row and P rows, all in pieces of 128 features, folded over 32 lanes; 0 for padding.

    The pieces of the tiles are one tuple, that of anchor j and piece h at h · P + j.
    """
    PIECES: constexpr = S.BLOCK // 128
    products = ()
    for j in tl.static_range(S.P):
        product = row[0] * tiles[j]
        for h in tl.static_range(1, PIECES):
            product += row[h] * tiles[h * S.P + j]
        products = products + (tl.sum(tl.reshape(product, [32, 4]), axis=1),)
    for _ in tl.static_range(S.P, round_up(S.P)):
        products = products + (tl.zeros_like(products[0]),)
    return _fold_lanes(products, lanes, S.P, 32)


@triton.jit
def fold_offsets(means, bias, lanes, anchors, inverse, S: constexpr):
    """b_j − ‖μ_j‖²/2σ², folded; −∞ for padding, which a softmax ignores."""
    offsets = tl.load(bias + anchors, mask=anchors < S.P, other=-float("inf"))
    return offsets - 0.5 * inverse * fold_products(means, means, lanes, S)


@triton.jit
def softmax_lanes(scores, lanes, S: constexpr):
    """exp(s_j − max), its sum over the anchors, and max, from folded scores (−∞ for padding)."""
    LANES: constexpr = count_lanes(S.BLOCK, S.P)
    high = scores
    for step in tl.static_range(log2(round_up(S.P))):
        high = tl.maximum(high, _partner(high, lanes, step, LANES))
    powers = tl.exp(scores - high)
    total = powers
    for step in tl.static_range(log2(round_up(S.P))):
        total += _partner(total, lanes, step, LANES)
    return powers, total, high


@triton.jit
def unfold(values, lanes, j: constexpr, S: constexpr):
    """The value of anchor j at every feature, (feature,)."""
    LANES: constexpr = count_lanes(S.BLOCK, S.P)
    one = tl.gather(values, lanes * 0 + j * (LANES // round_up(S.P)), 0)
    return tl.reshape(tl.broadcast_to(one[None, :, None], [S.BLOCK // (4 * LANES), LANES, 4]), [S.BLOCK])


@triton.jit
def fold_scalars(values, anchors, S: constexpr):
    """P scalars as one folded tensor; `anchors` are the anchors of the lanes."""
    folded = anchors * (values[0] - values[0])
    for j in tl.static_range(S.P):
        folded = tl.where(anchors == j, values[j], folded)
    return folded


@triton.jit
def add_member(sums, c, member, lanes, S: constexpr):
    """sums_j + c_j x, with c folded."""
    new = ()
    for j in tl.static_range(S.P):
        new = new + (sums[j] + unfold(c, lanes, j, S) * member,)
    return new


@triton.jit
def divide(sums, totals, anchor_c, w, features, lanes, anchors, S: constexpr):
    """(c_j w_j + sums_j) / (c_j + total_j) with c the anchors' coefficients; the anchor if nothing was summed."""
    whole = totals + anchor_c
    filled = whole != 0  # also if it is NaN, which propagates
    inverse = 1 / tl.where(filled, whole, 1.0)
    # Registers are scarce: the anchors are only read if they count.
    if tl.max(tl.where((anchors < S.P) & ((anchor_c > 0) | (whole <= 0)), 1, 0), axis=0) > 0:
        numerators = ()
        for j in tl.static_range(S.P):
            c = unfold(tl.where(filled, anchor_c, 1.0), lanes, j, S)
            numerators = numerators + (sums[j] + c * load_row(w, j, features, S.D, S),)
        sums = numerators
    means = ()
    for j in tl.static_range(S.P):
        means = means + (sums[j] * unfold(inverse, lanes, j, S),)
    return means
