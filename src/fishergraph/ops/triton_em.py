"""E-steps on a GPU: the responsibilities of all points at the anchors, and several EM iterations in one program.

`posterior` reads every point once (4 · d bytes) and writes its p logs. `em_rows` holds the means of a set in registers
from one iteration to the next; the members' points come from memory once, and from the caches afterwards. Nothing of
the size of the entries is written.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from fishergraph.ops import torch_plain
from fishergraph.ops.torch_sets import TensorSets
from fishergraph.ops.triton_launch import numbers, tile
from fishergraph.ops.triton_leaves import load_live_row, load_members, load_row, no_shift, pull, store_row, zeros

# The largest tile of means (anchor × feature) that a program of `em_rows` holds.
_MOST_ANCHORS, _MOST_FEATURES = 8, 512
# Members above which a set is left to the general path: its passes run one member after the other.
_LONG = 512
# Points that one program of `posterior` sees.
_POINTS = 16


@triton.jit
def _log_softmax(scores, P: tl.constexpr):
    """log softmax over the P scalars."""
    high = scores[0]
    for j in tl.static_range(1, P):
        high = tl.maximum(high, scores[j])
    total = tl.exp(scores[0] - high)
    for j in tl.static_range(1, P):
        total += tl.exp(scores[j] - high)
    base = high + tl.log(total)
    result = ()
    for j in tl.static_range(P):
        result = result + (scores[j] - base,)
    return result


@triton.jit
def _shares(scores, weight, P: tl.constexpr):
    """(a · softmax_j(scores))_j."""
    high = scores[0]
    for j in tl.static_range(1, P):
        high = tl.maximum(high, scores[j])
    powers, total = (), high - high
    for j in tl.static_range(P):
        power = tl.exp(scores[j] - high)
        powers, total = powers + (power,), total + power
    factor = weight / total
    result = ()
    for j in tl.static_range(P):
        result = result + (powers[j] * factor,)
    return result


@triton.jit
def _centred(
    means, row, bias, scale, features,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, BIASED: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """The mean c of P means, the means relative to it, and b_j − ‖μ_j − c‖²/2σ²."""
    origin = load_row(means, row * P, features, D, D, BLOCK, KIND)
    for j in tl.static_range(1, P):
        origin += load_row(means, row * P + j, features, D, D, BLOCK, KIND)
    origin *= 1 / P
    centres, offsets = (), ()
    for j in tl.static_range(P):
        centre = load_row(means, row * P + j, features, D, D, BLOCK, KIND) - origin
        offset = -0.5 * scale * tl.sum(centre * centre, axis=0)
        if BIASED:
            offset += tl.load(bias + j)
        centres, offsets = centres + (centre,), offsets + (offset,)
    return origin, centres, offsets


@triton.jit
def _posterior_rows(
    logs, x, w, bias, variance, n_points, stride,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, POINTS: tl.constexpr, BIASED: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """log α of POINTS points: log softmax_j((⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2)/σ² + b_j), c the mean anchor."""
    features, scale = tl.arange(0, BLOCK), 1 / tl.load(variance)
    centre, centres, offsets = _centred(w, 0, bias, scale, features, D, BLOCK, P, BIASED, KIND)
    first = tl.program_id(0).to(tl.int64) * POINTS
    for row in range(first, tl.minimum(first + POINTS, n_points)):
        point = load_row(x, row, features, stride, D, BLOCK, KIND) - centre
        scores = ()
        for j in tl.static_range(P):
            scores = scores + (tl.sum(point * centres[j], axis=0) * scale + offsets[j],)
        scores = _log_softmax(scores, P)
        for j in tl.static_range(P):
            tl.store(logs + row * P + j, scores[j])


def _whole_rows(n_anchors: int, n_features: int, kind: torch.dtype) -> dict:
    """A program that sees all anchors and all features at once."""
    options = tile(n_anchors, n_features, kind).options
    options["BLOCK"] = max(16, triton.next_power_of_2(n_features))
    options["num_warps"] = max(1, triton.next_power_of_2(n_anchors) * options["BLOCK"] // 2048)
    return options


def posterior(points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None = None) -> Tensor:
    """log α of the points at the anchors, (point, anchor): the log-joint normalised over the anchors.

    What does not fit into a program is an ordinary product of matrices.
    """
    (n_points, n_features), n_anchors = points.shape, anchors.shape[0]
    if not fits(n_anchors, n_features):
        return torch_plain.posterior(points, anchors, variance, bias)
    kind = torch.promote_types(points.dtype, torch.float32)
    logs = torch.empty((n_points, n_anchors), dtype=kind, device=points.device)
    if n_points:
        _posterior_rows[(triton.cdiv(n_points, _POINTS),)](
            logs, points, anchors, logs if bias is None else bias, numbers(variance, dtype=kind, device=points.device),
            n_points, points.stride(0), POINTS=_POINTS, BIASED=bias is not None,
            **_whole_rows(n_anchors, n_features, kind),
        )  # fmt: skip
    return logs


@triton.jit
def _divide(sums, totals, w, prior, features, D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr,
            KIND: tl.constexpr):  # fmt: skip
    """(κ w_j + sums_j) / (κ + total_j), relative to the origin; the anchor where nothing was summed."""
    means = ()
    for j in tl.static_range(P):
        anchor = load_row(w, j, features, D, D, BLOCK, KIND)
        whole = totals[j] + prior
        mean = (sums[j] + prior * anchor) / tl.where(whole > 0, whole, 1.0)
        means = means + (tl.where(whole > 0, mean, anchor),)
    return means


@triton.jit
def _em_pass(
    means, x, bias, indices, weights, start, stop, features, origin, variance, stride,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """(Σ_e a α_ej (x_e − o))_j and (Σ_e a α_ej)_j, with α the responsibilities at the set's own means."""
    offsets = ()
    for j in tl.static_range(P):
        offsets = offsets + (tl.load(bias + j) - 0.5 * tl.sum(means[j] * means[j], axis=0) / variance,)
    sums, totals = zeros(BLOCK, P, KIND), no_shift(P, KIND)
    points = load_members(indices, start, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        following = load_members(indices, first + MEMBERS, stop, MEMBERS)
        for k in tl.static_range(MEMBERS):
            live = first + k < stop
            member = load_live_row(x, points[k], live, features, stride, D, BLOCK, KIND) - origin
            scores = ()
            for j in tl.static_range(P):
                scores = scores + (tl.sum(member * means[j], axis=0) / variance + offsets[j],)
            if WEIGHTED:
                weight = tl.load(weights + first + k, mask=live, other=0.0).to(KIND)
            else:
                weight = tl.where(live, tl.full([], 1.0, KIND), 0.0)
            c = _shares(scores, weight, P)
            new_sums, new_totals = (), ()
            for j in tl.static_range(P):
                new_sums, new_totals = new_sums + (sums[j] + c[j] * member,), new_totals + (totals[j] + c[j],)
            sums, totals = new_sums, new_totals
        points = following
    return sums, totals


@triton.jit
def _em_rows(
    out, mass, lost, x, alpha, w, centre, bias, indptr, indices, weights, constants, hub, stride, n_em_iter,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """All iterations of one set. `lost` marks one for which plain sums will not do: a hub, or a mass that vanishes."""
    row = tl.program_id(0).to(tl.int64)
    start, stop = tl.load(indptr + row), tl.load(indptr + row + 1)
    if stop - start > hub:
        tl.store(lost + row, 1)
        return
    features = tl.arange(0, BLOCK)
    prior, variance = tl.load(constants), tl.load(constants + 1)
    origin = load_row(centre, 0, features, D, D, BLOCK, KIND)
    sums, totals = pull(
        x, alpha, indices, weights, start, stop, features, 0, no_shift(P, KIND), stride, P,
        D, BLOCK, P, MEMBERS, WEIGHTED, False, False, KIND,
    )  # fmt: skip
    moved = ()
    for j in tl.static_range(P):
        moved = moved + (sums[j] - totals[j] * origin,)
    means = _divide(moved, totals, w, prior, features, D, BLOCK, P, KIND)
    least = totals[0]
    for j in tl.static_range(1, P):
        least = tl.minimum(least, totals[j])
    for _ in range(1, n_em_iter):
        sums, totals = _em_pass(
            means, x, bias, indices, weights, start, stop, features, origin, variance, stride,
            D, BLOCK, P, MEMBERS, WEIGHTED, KIND,
        )  # fmt: skip
        means = _divide(sums, totals, w, prior, features, D, BLOCK, P, KIND)
        for j in tl.static_range(P):
            least = tl.minimum(least, totals[j])
    tl.store(lost + row, ((least + prior < 1e-30) & (stop > start)).to(tl.int8))
    for j in tl.static_range(P):
        store_row(out, row * P + j, features, means[j] + origin, D, BLOCK)
        tl.store(mass + row * P + j, totals[j])


def fits(n_anchors: int, n_features: int) -> bool:
    """Whether the means of one set fit into the registers of a program."""
    return n_anchors <= _MOST_ANCHORS and n_features <= _MOST_FEATURES


def em_rows(
    points: Tensor, alpha: Tensor, sets: TensorSets, anchors: Tensor, *, variance: float, prior: float, n_em_iter: int,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """means, mass, and which sets are lost: hubs, and sets of which a plain mass would vanish, (set,) int8.

    `alpha` (point, anchor) are the responsibilities of the first iteration.
    """
    (n_anchors, n_features), kind = anchors.shape, alpha.dtype
    new = {"dtype": kind, "device": points.device}
    out, mass = torch.empty((sets.n_sets, n_anchors, n_features), **new), torch.empty((sets.n_sets, n_anchors), **new)
    lost = torch.empty(sets.n_sets, dtype=torch.int8, device=points.device)
    centre = anchors.mean(dim=0)
    constants = numbers(prior, variance, **new)
    bias = torch.zeros(n_anchors, **new) if bias is None else bias.to(kind)
    options = _whole_rows(n_anchors, n_features, kind)
    if sets.n_sets:
        _em_rows[(sets.n_sets,)](
            out, mass, lost, points, alpha, anchors - centre, centre, bias, sets.indptr, sets.indices,
            alpha if sets.weights is None else sets.weights, constants, _LONG, points.stride(0), n_em_iter,
            MEMBERS=2, WEIGHTED=sets.weights is not None, **options,
        )  # fmt: skip
    return out, mass, lost
