"""The first E-step on tensors: in plain PyTorch, and as an operator over the engines."""

from __future__ import annotations

import torch
from torch import Tensor

from fishergraph.ops.tensor_ops import once_only, tensor_ops, work_type

# Rows of a block of the gradient on the CPU.
_ROWS = 8192


def plain_posterior(points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None) -> Tensor:
    """log α_ij = log softmax_j((⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2)/σ² + b_j), (point, anchor), c the mean anchor."""
    kind = work_type(points.dtype)
    anchors = anchors.to(kind)
    centre = anchors.mean(dim=0)
    shifted = anchors - centre
    scores = ((points.to(kind) - centre) @ shifted.T - 0.5 * (shifted * shifted).sum(dim=1)) / variance
    return torch.log_softmax(scores if bias is None else scores + bias, dim=1)


def posterior_gradient(
    points: Tensor, anchors: Tensor, logs: Tensor, grad: Tensor, variance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """∂L/∂(points, anchors, bias) of log α = log softmax_j((⟨x_u, w_j⟩ − ‖w_j‖²/2)/σ² + b_j)."""
    centre = anchors.to(logs.dtype).mean(dim=0)
    shifted = anchors.to(logs.dtype) - centre
    steps = shifted / variance
    total, moved = torch.zeros_like(shifted[:, 0]), torch.zeros_like(shifted)
    grad_points = torch.empty_like(points, dtype=logs.dtype, memory_format=torch.contiguous_format)
    size = _ROWS if points.device.type == "cpu" else max(points.shape[0], 1)
    for first in range(0, points.shape[0], size):  # a block stays in the cache
        rows = slice(first, first + size)
        # ∂L/∂s; its rows sum to zero, so the centre cancels.
        slopes = grad[rows] - logs[rows].exp() * grad[rows].sum(dim=1, keepdim=True)
        torch.mm(slopes, steps, out=grad_points[rows])
        total = total + slopes.sum(dim=0)
        moved = moved + slopes.T @ (points[rows].to(logs.dtype) - centre)
    return grad_points, (moved - total[:, None] * shifted) / variance, total


def posterior(engine: str, points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None = None) -> Tensor:
    """log α of every point at the anchors, (point, anchor); differentiable."""
    if engine == "torch":
        return plain_posterior(points, anchors, variance, bias)
    return torch.ops.fishergraph.posterior(points, anchors, bias, variance, engine)


@torch.library.custom_op(
    "fishergraph::posterior",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor? bias, float variance, str engine) -> Tensor",
)
def _posterior(points, anchors, bias, variance, engine):
    return tensor_ops(engine).posterior(points, anchors, variance, bias)


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
    return tensor_ops(engine).posterior_backward(points, anchors, logs, grad, variance)


@_posterior_gradient.register_fake
def _(points, anchors, logs, grad, variance, engine):
    new = {"dtype": logs.dtype}
    return points.new_empty(points.shape, **new), anchors.new_empty(anchors.shape, **new), logs.new_empty(logs.shape[1])


def _posterior_backward(ctx, grad):
    points, anchors, logs = ctx.saved_tensors
    grads = torch.ops.fishergraph.posterior_backward(points, anchors, logs, grad, ctx.variance, ctx.engine)
    grad_bias = grads[2] if ctx.needs_input_grad[2] else None
    return grads[0].to(points.dtype), grads[1].to(anchors.dtype), grad_bias, None, None


def _save_posterior(ctx, inputs, output):
    points, anchors, _, ctx.variance, ctx.engine = inputs
    ctx.save_for_backward(points, anchors, output)


_posterior.register_autograd(_posterior_backward, setup_context=_save_posterior)
_posterior_gradient.register_autograd(once_only("the E-step"), setup_context=lambda ctx, inputs, output: None)
