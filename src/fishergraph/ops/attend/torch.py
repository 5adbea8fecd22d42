"""The M-step on tensors: in plain PyTorch, and as an operator over the engines.

The plain version is the readable one, the fallback, and the check of the kernels; autograd differentiates it any number
of times. It holds the points of all members, (entry, feature), so it is neither small nor fast; it treats one anchor at
a time, so nothing of the size entries × features × anchors exists. The operator saves only its inputs for its gradient,
which has no derivative.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fishergraph.ops.segment_sums.torch import sum_sets
from fishergraph.ops.tensor_ops import needs_gradient, once_only, tensor_ops
from fishergraph.ops.tensor_sets import TensorSets, entries_of, unpack


def plain_attend(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool, wide: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """means (set, anchor, feature), mass and log(κ + mass) (set, anchor) (Eq. 17), with gradients.

    μ_vj = (κ w_j + Σ_e a_e α_ej x_e) / (κ + Σ_e a_e α_ej), relative to the largest log of every set and anchor. The
    means are in the dtype of the points, or of the logs when `wide`.
    """
    members = entries_of(sets, sets.indices).long()
    entry_logs = entries_of(sets, logs) if by_entry else logs[members]  # (entry, anchor)
    weights = logs.new_ones(()) if sets.weights is None else entries_of(sets, sets.weights).to(logs.dtype)[:, None]
    shift = _highest(entry_logs.detach(), weights.detach(), sets, prior)  # (set, anchor)
    coefficients = weights * torch.exp(bounded(entry_logs - shift[sets.rows]))
    anchor_c = torch.exp(shift.new_tensor(prior).log() - shift)  # the anchor is one more member, with weight κ
    whole = sum_sets(coefficients, sets) + anchor_c
    filled = ~(whole <= 0)  # NaN propagates
    safe = torch.where(filled, whole, torch.ones_like(whole))
    x = points[members].to(logs.dtype)
    sums = torch.stack([sum_sets(coefficients[:, j, None] * x, sets) for j in range(anchors.shape[0])], dim=1)
    means = (sums + anchor_c[..., None] * anchors) / safe[..., None]
    means = torch.where(filled[..., None], means, anchors.to(means.dtype).expand_as(means))
    mass = sum_sets(weights * torch.exp(entry_logs), sets)
    log_total = torch.where(filled, torch.log(safe) + shift, -torch.inf)
    return means if wide else means.to(points.dtype), mass, log_total


def _highest(logs: Tensor, weights: Tensor, sets: TensorSets, prior: float) -> Tensor:
    """max(log κ, max_e log α_ej) over the members with a positive weight; 0 if there is none."""
    start = torch.full((sets.n_sets, logs.shape[1]), prior, dtype=logs.dtype, device=logs.device).log()
    weighted = torch.where(weights > 0, logs, -torch.inf)
    top = start.scatter_reduce(0, sets.rows[:, None].expand_as(weighted), weighted, "amax")
    return torch.where(top > -torch.inf, top, 0.0)


def plain_attend_backward(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    prior: float,
    by_entry: bool,
    means: Tensor | None,
    log_total: Tensor,
    grad_means: Tensor,
    grad_mass: Tensor | None,
    need_weights: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """The gradients that autograd gives for `plain_attend`."""
    weights = sets.weights.detach().requires_grad_() if need_weights and sets.weights is not None else sets.weights
    inputs = [tensor.detach().requires_grad_() for tensor in (points, logs, anchors)]
    with torch.enable_grad():
        outputs = plain_attend(inputs[0], inputs[1], sets.weighted(weights), inputs[2], prior, by_entry, True)
        upstream = [grad_means] if grad_mass is None else [grad_means, grad_mass]
        inputs = [*inputs, weights] if need_weights else inputs
        grads = torch.autograd.grad(outputs[: len(upstream)], inputs, upstream)  # type: ignore
    return grads[0], grads[1], grads[3] if need_weights else None, grads[2]


def bounded(logs: Tensor) -> Tensor:
    """The logs, clipped below the overflow of exp: only members of weight zero have such logs, and 0 · ∞ is NaN."""
    return logs.clamp(max=0.9 * math.log(torch.finfo(logs.dtype).max))


def entry_terms(
    logs: Tensor,
    sets: TensorSets,
    by_entry: bool,
    log_total: Tensor,
    dots: Tensor,
    inner: Tensor,
    grad_mass: Tensor | None,
) -> Tensor:
    """exp(log α_ej − log_total_vj)(⟨x_e, G_vj⟩ − Q_vj) + α_ej g_vj, (entry, anchor): the factor of a_e."""
    entry_logs = logs if by_entry else logs[sets.indices]
    total = log_total[sets.rows]
    attention = torch.where(total == -torch.inf, 0.0, torch.exp(bounded(entry_logs - total)))
    terms = attention * (dots - inner[sets.rows])
    return terms if grad_mass is None else terms + torch.exp(entry_logs) * grad_mass[sets.rows]


def attend(
    engine: str, points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, *, prior: float = 0.0
) -> tuple[Tensor, Tensor]:
    """means (set, anchor, feature) and mass (set, anchor) of Eq. 17; differentiable in all tensors."""
    if engine == "torch":
        return plain_attend(points, logs, sets, anchors, prior, False, False)[:2]
    sets = sets.cut(0, sets.n_sets)
    packed = sets.pack(transpose=needs_gradient(points, logs, anchors, sets.weights))
    means, mass, _ = torch.ops.fishergraph.attend(points, logs, sets.weights, anchors, packed, prior, engine, False)
    return means, mass


@torch.library.custom_op(
    "fishergraph::attend",
    mutates_args=(),
    schema="(Tensor points, Tensor logs, Tensor? weights, Tensor anchors, Tensor[] sets, float prior, "
    "str engine, bool wide) -> (Tensor, Tensor, Tensor)",
)
def _attend(points, logs, weights, anchors, sets, prior, engine, wide):
    whole = unpack(sets, weights, points.shape[0])
    return tensor_ops(engine).attend(points, logs, whole, anchors, prior, False, wide)


@_attend.register_fake
def _(points, logs, weights, anchors, sets, prior, engine, wide):
    n_sets, kind = sets[0].shape[0] - 1, logs.dtype
    small = [points.new_empty((n_sets, anchors.shape[0]), dtype=kind) for _ in range(2)]
    return points.new_empty((n_sets, *anchors.shape), dtype=kind if wide else points.dtype), *small


@torch.library.custom_op(
    "fishergraph::attend_backward",
    mutates_args=(),
    schema="(Tensor points, Tensor logs, Tensor? weights, Tensor anchors, Tensor[] sets, float prior, "
    "str engine, Tensor log_total, Tensor grad_means, Tensor? grad_mass, bool need_weights) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
)
def _attend_backward(
    points, logs, weights, anchors, sets, prior, engine, log_total, grad_means, grad_mass, need_weights
):
    whole = unpack(sets, weights, points.shape[0])
    grads = tensor_ops(engine).attend_backward(
        points, logs, whole, anchors, prior, False, None, log_total, grad_means, grad_mass, need_weights
    )
    grad_weights = logs.new_empty(0) if grads[2] is None else grads[2].to(weights.dtype)
    return grads[0].to(points.dtype), grads[1].to(logs.dtype), grad_weights, grads[3].to(anchors.dtype)


@_attend_backward.register_fake
def _(points, logs, weights, anchors, sets, prior, engine, log_total, grad_means, grad_mass, need_weights):
    empty = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (points, logs, anchors)]
    return empty[0], empty[1], torch.empty_like(weights) if need_weights else logs.new_empty(0), empty[2]


def _save_attend(ctx, inputs, output):
    points, logs, weights, anchors, sets, ctx.prior, ctx.engine, _ = inputs
    ctx.n_shape = len(sets)
    # The backward pass computes the M-step again: nothing of the size of the means is saved.
    ctx.save_for_backward(points, logs, weights, anchors, output[2], *sets)
    ctx.set_materialize_grads(False)


def _attend_gradient(ctx, grad_means, grad_mass, _):
    points, logs, weights, anchors, log_total, *sets = ctx.saved_tensors
    nothing = (None,) * 4 + ([None] * ctx.n_shape, None, None, None)
    if grad_means is None and grad_mass is None:
        return nothing
    fixed = (points, logs, weights, anchors, list(sets), ctx.prior, ctx.engine)
    if grad_means is None:
        grad_means = logs.new_zeros((log_total.shape[0], *anchors.shape))
    need_weights = bool(ctx.needs_input_grad[2])
    grads = torch.ops.fishergraph.attend_backward(
        *fixed, log_total, grad_means.contiguous(), None if grad_mass is None else grad_mass.contiguous(), need_weights
    )
    return grads[0], grads[1], grads[2] if need_weights else None, grads[3], *nothing[4:]


_attend.register_autograd(_attend_gradient, setup_context=_save_attend)
_attend_backward.register_autograd(once_only("the M-step"), setup_context=lambda ctx, inputs, output: None)
