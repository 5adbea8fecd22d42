"""The engines registered with PyTorch: custom operators with shapes for the compiler and gradients for autograd.

`posterior` and `attend` are one EM iteration; `torch_iterations` has the operator of several. The plain engine needs
no operator: autograd differentiates it as often as it is asked to. The others have first derivatives.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fishergraph.ops import torch_plain
from fishergraph.ops.torch_kernels import find_kernels, work_type
from fishergraph.ops.torch_sets import TensorSets, unpack

_ONCE = (
    "the gradient of {} by compiled kernels cannot be differentiated again; "
    "pass backend='torch' for second derivatives."
)


def once_only(name: str) -> Any:
    """A backward that says why there is none."""

    def backward(ctx: Any, *grads: Tensor) -> None:
        raise NotImplementedError(_ONCE.format(name))

    return backward


def posterior(engine: str, points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None = None) -> Tensor:
    """log α of every point at the anchors, (point, anchor); differentiable."""
    if engine == "torch":
        return torch_plain.posterior(points, anchors, variance, bias)
    return torch.ops.fishergraph.posterior(points, anchors, bias, variance, engine)


def attend(
    engine: str, points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, *, prior: float = 0.0
) -> tuple[Tensor, Tensor]:
    """means (set, anchor, feature) and mass (set, anchor) of Eq. 17; differentiable in all tensors."""
    if engine == "torch":
        return torch_plain.attend(points, logs, sets, anchors, prior, False, False)[:2]
    sets = sets.cut(0, sets.n_sets)
    wanted = [points, logs, anchors, *([] if sets.weights is None else [sets.weights])]
    transpose = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in wanted)
    packed = sets.pack(transpose=transpose)
    means, mass, _ = torch.ops.fishergraph.attend(points, logs, sets.weights, anchors, packed, prior, engine, False)
    return means, mass


@torch.library.custom_op(
    "fishergraph::posterior",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor? bias, float variance, str engine) -> Tensor",
)
def _posterior(points, anchors, bias, variance, engine):
    return find_kernels(engine).posterior(points, anchors, variance, bias)


@_posterior.register_fake
def _(points, anchors, bias, variance, engine):
    return points.new_empty((points.shape[0], anchors.shape[0]), dtype=work_type(points.dtype))


@torch.library.custom_op(
    "fishergraph::posterior_backward",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor logs, Tensor grad, float variance, str engine) -> "
    "(Tensor, Tensor, Tensor)",
)
def _posterior_gradient(points, anchors, logs, grad, variance, engine):
    return find_kernels(engine).posterior_backward(points, anchors, logs, grad, variance)


@_posterior_gradient.register_fake
def _(points, anchors, logs, grad, variance, engine):
    new = {"dtype": logs.dtype}
    return points.new_empty(points.shape, **new), anchors.new_empty(anchors.shape, **new), logs.new_empty(logs.shape[1])


def _posterior_backward(ctx, grad):
    points, anchors, logs = ctx.saved_tensors
    found = torch.ops.fishergraph.posterior_backward(points, anchors, logs, grad, ctx.variance, ctx.engine)
    grad_bias = found[2] if ctx.needs_input_grad[2] else None
    return found[0].to(points.dtype), found[1].to(anchors.dtype), grad_bias, None, None


def _save_posterior(ctx, inputs, output):
    points, anchors, _, ctx.variance, ctx.engine = inputs
    ctx.save_for_backward(points, anchors, output)


_posterior.register_autograd(_posterior_backward, setup_context=_save_posterior)
_posterior_gradient.register_autograd(once_only("the E-step"), setup_context=lambda ctx, inputs, output: None)


@torch.library.custom_op(
    "fishergraph::attend",
    mutates_args=(),
    schema="(Tensor points, Tensor logs, Tensor? weights, Tensor anchors, Tensor[] sets, float prior, "
    "str engine, bool wide) -> (Tensor, Tensor, Tensor)",
)
def _attend(points, logs, weights, anchors, sets, prior, engine, wide):
    whole = unpack(sets, weights, points.shape[0])
    return find_kernels(engine).attend(points, logs, whole, anchors, prior, False, wide)


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
    grads = find_kernels(engine).attend_backward(
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
    # The M-step is done again in the backward pass: nothing of the size of the means is kept.
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
