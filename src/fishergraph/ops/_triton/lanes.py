"""Sums over lanes on a GPU: the P scores of one point, and their softmax, with each lane working on one anchor.

A plain sum over 32 lanes takes five exchanges, for P anchors 5 · P. Here the first exchanges fold: half of the lanes go
on with one half of the anchors, the others with the other half, until lane l works on anchor l · A / LANES alone, with
A the power of two from P on. For eight anchors that is 4 + 2 + 1 + 1 + 1 exchanges in the place of 40, and each lane
takes one exponential, not eight.
"""

from __future__ import annotations

import triton
import triton.language as tl

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
def _partner(values, lanes, step: tl.constexpr, LANES: tl.constexpr):
    """The values of the lanes that differ in one bit, the highest at step 0."""
    return tl.gather(values, lanes ^ (LANES >> (step + 1)), 0)


@triton.jit
def _fold_once(values, lanes, step: tl.constexpr, HALF: tl.constexpr, LANES: tl.constexpr):
    """HALF tensors of 2 · HALF: the lanes with the bit go on with the second half of them."""
    upper, folded = (lanes & (LANES >> (step + 1))) != 0, ()
    for k in tl.static_range(HALF):
        a, b = values[k], values[k + HALF]
        folded = folded + (tl.where(upper, b, a) + _partner(tl.where(upper, a, b), lanes, step, LANES),)
    return folded


@triton.jit
def _fold_lanes(values, lanes, P: tl.constexpr, LANES: tl.constexpr):
    """Σ over the lanes of `round_up(P)` tensors (lane,), in lane l that of its anchor."""
    for step in tl.static_range(log2(round_up(P))):
        values = _fold_once(values, lanes, step, round_up(P) >> (step + 1), LANES)
    total = values[0]
    for step in tl.static_range(log2(round_up(P)), log2(LANES)):
        total += _partner(total, lanes, step, LANES)
    return total


@triton.jit
def fold_products(left, right, lanes, P: tl.constexpr, LANES: tl.constexpr):
    """(⟨left_j, right_j⟩)_j of P pairs of tiles (feature,), folded; 0 where an anchor only fills up."""
    parts = ()
    for j in tl.static_range(P):
        # A lane holds four neighbours at a time: so the sums over the first and the last axis are its own.
        product = tl.reshape(left[j] * right[j], [left[j].shape[0] // (4 * LANES), LANES, 4])
        parts = parts + (tl.sum(tl.sum(product, axis=2), axis=0),)
    for _ in tl.static_range(P, round_up(P)):
        parts = parts + (tl.zeros_like(parts[0]),)
    return _fold_lanes(parts, lanes, P, LANES)


@triton.jit
def fold_offsets(means, bias, lanes, anchors, inverse, P: tl.constexpr, LANES: tl.constexpr):
    """b_j − ‖μ_j‖²/2σ², folded; −∞ where an anchor only fills up, so that no softmax sees it."""
    known = tl.load(bias + anchors, mask=anchors < P, other=-float("inf"))
    return known - 0.5 * inverse * fold_products(means, means, lanes, P, LANES)


@triton.jit
def softmax_lanes(scores, lanes, P: tl.constexpr, LANES: tl.constexpr):
    """exp(s_j − max), its sum over the anchors, and max, from folded scores (−∞ where an anchor only fills up)."""
    high = scores
    for step in tl.static_range(log2(round_up(P))):
        high = tl.maximum(high, _partner(high, lanes, step, LANES))
    powers = tl.exp(scores - high)
    total = powers
    for step in tl.static_range(log2(round_up(P))):
        total += _partner(total, lanes, step, LANES)
    return powers, total, high


@triton.jit
def unfold(values, lanes, j: tl.constexpr, P: tl.constexpr, LANES: tl.constexpr, BLOCK: tl.constexpr):
    """The value of anchor j at every feature, (feature,)."""
    one = tl.gather(values, lanes * 0 + j * (LANES // round_up(P)), 0)
    return tl.reshape(tl.broadcast_to(one[None, :, None], [BLOCK // (4 * LANES), LANES, 4]), [BLOCK])


@triton.jit
def fold_scalars(values, anchors, P: tl.constexpr):
    """P scalars as one folded tensor; `anchors` are the lanes' anchors."""
    folded = anchors * (values[0] - values[0])
    for j in tl.static_range(P):
        folded = tl.where(anchors == j, values[j], folded)
    return folded


@triton.jit
def add_member(sums, c, member, lanes, BLOCK: tl.constexpr, P: tl.constexpr, LANES: tl.constexpr):
    """sums_j + c_j x, with c folded."""
    new = ()
    for j in tl.static_range(P):
        new = new + (sums[j] + unfold(c, lanes, j, P, LANES, BLOCK) * member,)
    return new


@triton.jit
def divide(sums, totals, own, w, features, lanes, anchors, D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr,
            LANES: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    """(own_j w_j + sums_j) / (own_j + total_j), relative to the origin like w; the anchor where nothing was summed."""
    whole = totals + own
    filled = whole != 0  # also where it is no number, which stays none
    inverse = 1 / tl.where(filled, whole, 1.0)
    # Registers are short: the anchors are read where they count alone.
    if tl.max(tl.where((anchors < P) & ((own > 0) | (whole <= 0)), 1, 0), axis=0) > 0:
        tops = ()
        for j in tl.static_range(P):
            share = unfold(tl.where(filled, own, 1.0), lanes, j, P, LANES, BLOCK)
            tops = tops + (sums[j] + share * load_row(w, j, features, D, D, BLOCK, KIND),)
        sums = tops
    means = ()
    for j in tl.static_range(P):
        means = means + (sums[j] * unfold(inverse, lanes, j, P, LANES, BLOCK),)
    return means
