"""The first E-step on a GPU: the responsibilities of all points at the anchors, and their gradient.

Bytes per point: the point, read once (d · its width), and its p logs (4 · p). The gradient reads these and p slopes,
and writes the gradient of the point (4 · d); that of the anchors is summed block by block.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops._triton.lanes import fold_offsets, fold_products, lane_anchors, lane_tile, softmax_lanes
from fishergraph.ops._triton.launch import KINDS, Shape, numbers
from fishergraph.ops._triton.members import load_live_row, load_row, no_shift, store_row, tile_features, zeros
from fishergraph.ops.posterior.torch import plain_posterior, posterior_gradient
from fishergraph.ops.tensor_ops import work_type

# The largest tile of anchors (anchor × feature) that a program holds.
_MOST_ANCHORS, _MOST_FEATURES = 8, 512
# Points of one program of `posterior`, and of its gradient.
_POINTS, _BACK_POINTS = 16, 32


@triton.jit
def _centred(w, features, S: constexpr):
    """The mean of P anchors, and the anchors relative to it."""
    origin = load_row(w, 0, features, S.D, S)
    for j in tl.static_range(1, S.P):
        origin += load_row(w, j, features, S.D, S)
    origin *= 1 / S.P
    centres = ()
    for j in tl.static_range(S.P):
        centres = centres + (load_row(w, j, features, S.D, S) - origin,)
    return origin, centres


@triton.jit
def _posterior_rows(logs, x, w, bias, variance, n_points, stride, POINTS: constexpr, S: constexpr):
    """log α of POINTS points: log softmax_j((⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2)/σ² + b_j), c the mean anchor."""
    features, inverse = tile_features(S.BLOCK), 1 / tl.load(variance)
    lanes, anchors = lane_anchors(S)
    centre, centres = _centred(w, features, S)
    offsets = fold_offsets(centres, bias, lanes, anchors, inverse, S)
    first = tl.program_id(0).to(tl.int64) * POINTS
    last = tl.minimum(first + POINTS, n_points)
    coming = load_row(x, first, features, stride, S)
    for row in range(first, last):
        point = coming - centre
        coming = load_live_row(x, row + 1, row + 1 < last, features, stride, S)  # for the next round
        scores = fold_products((point,) * S.P, centres, lanes, S) * inverse + offsets
        _, total, high = softmax_lanes(scores, lanes, S)
        tl.store(logs + row * S.P + anchors, scores - high - tl.log(total), mask=anchors < S.P)


def posterior(points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None = None) -> Tensor:
    """log α of the points at the anchors, (point, anchor): the log-joint normalised over the anchors.

    Anchors that do not fit into a program are multiplied as matrices.
    """
    (n_points, n_features), n_anchors = points.shape, anchors.shape[0]
    if not fits(n_anchors, n_features):
        return plain_posterior(points, anchors, variance, bias)
    new = {"dtype": work_type(points.dtype), "device": points.device}
    logs = torch.empty((n_points, n_anchors), **new)
    bias = numbers(*[0.0] * n_anchors, **new) if bias is None else bias.to(logs.dtype)
    shape, warps = lane_shape(n_anchors, n_features, logs.dtype)
    if n_points:
        inputs = (logs, points, anchors, bias, numbers(variance, **new), n_points, points.stride(0))
        _posterior_rows[(triton.cdiv(n_points, _POINTS),)](*inputs, POINTS=_POINTS, S=shape, num_warps=warps)
    return logs


@triton.jit
def _slopes(logs, grad, row, live, P: constexpr):
    """∂L/∂s_j = g_j − α_j Σ_i g_i of one point, with α the softmax of the scores s; zeros if it is not live."""
    gradients, total = (), 0.0
    for j in tl.static_range(P):
        g = tl.load(grad + row * P + j, mask=live, other=0.0)
        gradients, total = gradients + (g,), total + g
    slopes = ()
    for j in tl.static_range(P):
        slopes = slopes + (gradients[j] - tl.exp(tl.load(logs + row * P + j, mask=live, other=0.0)) * total,)
    return slopes


@triton.jit
def _posterior_slopes(
    grad_x, moved, counts, x, w, logs, grad, variance, n_points, stride, POINTS: constexpr, S: constexpr
):
    """dx_i = Σ_j s_ij (w_j − c)/σ² of POINTS points; over them Σ_i s_ij (x_i − c) and Σ_i s_ij, s the slopes."""
    features, inverse = tile_features(S.BLOCK), 1 / tl.load(variance)
    centre, centres = _centred(w, features, S)
    block = tl.program_id(0).to(tl.int64)
    first, last = block * POINTS, tl.minimum(block * POINTS + POINTS, n_points)
    sums, totals = zeros(features, S.P, S.KIND), no_shift(S.P, S.KIND)
    coming, coming_slopes = load_row(x, first, features, stride, S), _slopes(logs, grad, first, True, S.P)
    for row in range(first, last):
        point, slopes = coming - centre, coming_slopes
        coming = load_live_row(x, row + 1, row + 1 < last, features, stride, S)  # for the next round
        coming_slopes = _slopes(logs, grad, row + 1, row + 1 < last, S.P)
        slope, new_sums, new_totals = slopes[0] * centres[0], (), ()
        for j in tl.static_range(1, S.P):
            slope += slopes[j] * centres[j]
        for j in tl.static_range(S.P):
            new_sums, new_totals = new_sums + (sums[j] + slopes[j] * point,), new_totals + (totals[j] + slopes[j],)
        sums, totals = new_sums, new_totals
        store_row(grad_x, row, features, slope * inverse, S)
    for j in tl.static_range(S.P):
        store_row(moved, block * S.P + j, features, sums[j], S)
        tl.store(counts + block * S.P + j, totals[j])


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
    shape, warps = lane_shape(n_anchors, n_features, logs.dtype)
    inputs = (points, anchors, logs, grad.contiguous(), numbers(variance, **new), n_points, points.stride(0))
    options = {"POINTS": _BACK_POINTS, "S": shape, "num_warps": 2 * warps}
    _posterior_slopes[(n_blocks,)](grad_points, moved, counts, *inputs, **options)
    total, shifted = counts.sum(dim=0), anchors.to(logs.dtype) - anchors.to(logs.dtype).mean(dim=0)
    return grad_points, (moved.sum(dim=0) - total[:, None] * shifted) / variance, total


def fits(n_anchors: int, n_features: int) -> bool:
    """Whether the anchors, or the means of one set, fit into the registers of a program."""
    return n_anchors <= _MOST_ANCHORS and n_features <= _MOST_FEATURES


def lane_shape(n_anchors: int, n_features: int, kind: torch.dtype, *, weighted: bool = False) -> tuple[Shape, int]:
    """The shape of a program that holds all anchors and features, and its warps."""
    block, warps = lane_tile(n_anchors, n_features)
    return Shape(n_features, block, n_anchors, n_anchors, KINDS[kind], weighted), warps
