"""The first E-step on a GPU: the responsibilities of all points at the anchors, and their gradient.

Bytes per point: the point itself, read once (d · its width), and its p logs (4 · p). The gradient reads these and p
slopes, and writes the point's gradient (4 · d); the anchors' is summed block by block.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from fishergraph.ops._triton.lanes import count_lanes, fold_offsets, fold_products, lane_tile, round_up, softmax_lanes
from fishergraph.ops._triton.launch import KINDS, numbers
from fishergraph.ops._triton.members import load_live_row, load_row, no_shift, store_row, tile_features, zeros
from fishergraph.ops.posterior.torch import plain_posterior, posterior_gradient

# The largest tile of anchors (anchor × feature) that a program holds.
_MOST_ANCHORS, _MOST_FEATURES = 8, 512
# Points that one program of `posterior` sees, and of its gradient.
_POINTS, _BACK_POINTS = 16, 32


@triton.jit
def _centred(w, features, D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, KIND: tl.constexpr):
    """The mean of P anchors, and the anchors relative to it."""
    origin = load_row(w, 0, features, D, D, BLOCK, KIND)
    for j in tl.static_range(1, P):
        origin += load_row(w, j, features, D, D, BLOCK, KIND)
    origin *= 1 / P
    centres = ()
    for j in tl.static_range(P):
        centres = centres + (load_row(w, j, features, D, D, BLOCK, KIND) - origin,)
    return origin, centres


@triton.jit
def _posterior_rows(
    logs, x, w, bias, variance, n_points, stride,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, POINTS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """log α of POINTS points: log softmax_j((⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2)/σ² + b_j), c the mean anchor."""
    LANES: tl.constexpr = count_lanes(BLOCK, P)
    features, lanes, inverse = tile_features(BLOCK), tl.arange(0, LANES), 1 / tl.load(variance)
    anchors = lanes // (LANES // round_up(P))
    centre, centres = _centred(w, features, D, BLOCK, P, KIND)
    offsets = fold_offsets(centres, bias, lanes, anchors, inverse, P, LANES)
    first = tl.program_id(0).to(tl.int64) * POINTS
    last = tl.minimum(first + POINTS, n_points)
    coming = load_row(x, first, features, stride, D, BLOCK, KIND)
    for row in range(first, last):
        point = coming - centre
        coming = load_live_row(x, row + 1, row + 1 < last, features, stride, D, BLOCK, KIND)  # used in the next round
        scores = fold_products((point,) * P, centres, lanes, P, LANES) * inverse + offsets
        _, total, high = softmax_lanes(scores, lanes, P, LANES)
        tl.store(logs + row * P + anchors, scores - high - tl.log(total), mask=anchors < P)


def posterior(points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None = None) -> Tensor:
    """log α of the points at the anchors, (point, anchor): the log-joint normalised over the anchors.

    What does not fit into a program is an ordinary product of matrices.
    """
    (n_points, n_features), n_anchors = points.shape, anchors.shape[0]
    if not fits(n_anchors, n_features):
        return plain_posterior(points, anchors, variance, bias)
    new = {"dtype": torch.promote_types(points.dtype, torch.float32), "device": points.device}
    logs = torch.empty((n_points, n_anchors), **new)
    bias = numbers(*[0.0] * n_anchors, **new) if bias is None else bias.to(logs.dtype)
    block, warps = lane_tile(n_anchors, n_features)
    if n_points:
        _posterior_rows[(triton.cdiv(n_points, _POINTS),)](
            logs, points, anchors, bias, numbers(variance, **new), n_points, points.stride(0), D=n_features,
            BLOCK=block, P=n_anchors, POINTS=_POINTS, KIND=KINDS[logs.dtype], num_warps=warps,
        )  # fmt: skip
    return logs


@triton.jit
def _slopes(logs, grad, row, live, P: tl.constexpr):
    """∂L/∂s_j = g_j − α_j Σ_i g_i of one point, with s the scores that α is the softmax of; zeros where not live."""
    given, total = (), 0.0
    for j in tl.static_range(P):
        g = tl.load(grad + row * P + j, mask=live, other=0.0)
        given, total = given + (g,), total + g
    slopes = ()
    for j in tl.static_range(P):
        slopes = slopes + (given[j] - tl.exp(tl.load(logs + row * P + j, mask=live, other=0.0)) * total,)
    return slopes


@triton.jit
def _posterior_slopes(
    grad_x, moved, counts, x, w, logs, grad, variance, n_points, stride,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, POINTS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """dx_i = Σ_j s_ij (w_j − c)/σ² of POINTS points; over them Σ_i s_ij (x_i − c) and Σ_i s_ij, s the slopes."""
    features, inverse = tile_features(BLOCK), 1 / tl.load(variance)
    centre, centres = _centred(w, features, D, BLOCK, P, KIND)
    block = tl.program_id(0).to(tl.int64)
    first, last = block * POINTS, tl.minimum(block * POINTS + POINTS, n_points)
    sums, totals = zeros(features, P, KIND), no_shift(P, KIND)
    coming, slopes = load_row(x, first, features, stride, D, BLOCK, KIND), _slopes(logs, grad, first, True, P)
    for row in range(first, last):
        point, own = coming - centre, slopes
        coming = load_live_row(x, row + 1, row + 1 < last, features, stride, D, BLOCK, KIND)  # used in the next round
        slopes = _slopes(logs, grad, row + 1, row + 1 < last, P)
        pull, new_sums, new_totals = own[0] * centres[0], (), ()
        for j in tl.static_range(1, P):
            pull += own[j] * centres[j]
        for j in tl.static_range(P):
            new_sums, new_totals = new_sums + (sums[j] + own[j] * point,), new_totals + (totals[j] + own[j],)
        sums, totals = new_sums, new_totals
        store_row(grad_x, row, features, pull * inverse, D, BLOCK)
    for j in tl.static_range(P):
        store_row(moved, block * P + j, features, sums[j], D, BLOCK)
        tl.store(counts + block * P + j, totals[j])


def posterior_backward(
    points: Tensor, anchors: Tensor, logs: Tensor, grad: Tensor, variance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """∂L/∂(points, anchors, bias) from ∂L/∂(log α), in the dtype of the logs."""
    (n_points, n_features), n_anchors = points.shape, anchors.shape[0]
    if not n_points or not fits(n_anchors, n_features):
        return posterior_gradient(points, anchors, logs, grad, variance)
    new, n_blocks = {"dtype": logs.dtype, "device": points.device}, triton.cdiv(n_points, _BACK_POINTS)
    grad_points, moved = torch.empty((n_points, n_features), **new), torch.empty((n_blocks, *anchors.shape), **new)
    counts = torch.empty((n_blocks, n_anchors), **new)
    block, warps = lane_tile(n_anchors, n_features)
    _posterior_slopes[(n_blocks,)](
        grad_points, moved, counts, points, anchors, logs, grad.contiguous(), numbers(variance, **new), n_points,
        points.stride(0), D=n_features, BLOCK=block, P=n_anchors, POINTS=_BACK_POINTS, KIND=KINDS[logs.dtype],
        num_warps=2 * warps,
    )  # fmt: skip
    total, shifted = counts.sum(dim=0), anchors.to(logs.dtype) - anchors.to(logs.dtype).mean(dim=0)
    return grad_points, (moved.sum(dim=0) - total[:, None] * shifted) / variance, total


def fits(n_anchors: int, n_features: int) -> bool:
    """Whether the anchors, or the means of one set, fit into the registers of a program."""
    return n_anchors <= _MOST_ANCHORS and n_features <= _MOST_FEATURES
