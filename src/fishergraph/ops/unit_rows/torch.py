"""Rows of tensors as unit vectors, as one operator: one read and one write each way; plain PyTorch has ten."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fishergraph.ops.tensor_ops import once_only, tensor_ops, work_type


def unit_rows(engine: str, x: Tensor) -> Tensor:
    """x_i / ‖x_i‖ of every row, with a gradient; a zero row stays zero, with a zero gradient."""
    if engine == "torch":
        return F.normalize(x / largest_entries(x), dim=1)
    return torch.ops.fishergraph.unit_rows(x, engine)[0]


def largest_entries(x: Tensor) -> Tensor:
    """max_k |x_ik|, (row, 1), or one for a zero row: divided by it, no square overflows or underflows."""
    x = x.detach()
    largest = torch.maximum(x.amax(dim=1, keepdim=True), -x.amin(dim=1, keepdim=True))
    return torch.where(largest > 0, largest, 1.0)


@torch.library.custom_op("fishergraph::unit_rows", mutates_args=(), schema="(Tensor x, str engine) -> (Tensor, Tensor)")
def _unit_rows(x, engine):
    return tensor_ops(engine).unit_rows(x.contiguous())  # type: ignore


@_unit_rows.register_fake
def _(x, engine):
    units = torch.empty_like(x, memory_format=torch.contiguous_format)
    return units, x.new_empty(x.shape[0], dtype=work_type(x.dtype))


@torch.library.custom_op(
    "fishergraph::unit_rows_backward",
    mutates_args=(),
    schema="(Tensor units, Tensor scales, Tensor grad, str engine) -> Tensor",
)
def _unit_rows_backward(units, scales, grad, engine):
    return tensor_ops(engine).unit_rows_backward(units, scales, grad.contiguous())  # type: ignore


@_unit_rows_backward.register_fake
def _(units, scales, grad, engine):
    return torch.empty_like(units)


def _save(ctx, inputs, output):
    _, ctx.engine = inputs
    ctx.save_for_backward(*output)
    ctx.set_materialize_grads(False)


def _gradient(ctx, grad, _):
    if grad is None:
        return None, None
    return torch.ops.fishergraph.unit_rows_backward(*ctx.saved_tensors, grad, ctx.engine), None


_unit_rows.register_autograd(_gradient, setup_context=_save)
_unit_rows_backward.register_autograd(once_only("unit rows"), setup_context=lambda ctx, inputs, output: None)
