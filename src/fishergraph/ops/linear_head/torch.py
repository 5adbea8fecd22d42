"""A Fisher layer with a linear head, z_v = Σ_j W_j φ_vj, as one operator: φ of all sets need not exist.

On a GPU the backward pass never computes the gradient of φ. With g = ∂L/∂z the sum over targets has low rank:
Σ_v t_vuj ∂L/∂μ_vj = W_jᵀ R_uj with R_uj = c Σ_v t_vuj g_v, a sum on the transposed sets of (g, 1/total) instead of
(x, α). Bytes per entry: 4 · (out + p), not 4 · p · d. On the CPU the projection runs block by block while φ is in the
cache, and the backward pass uses G = c W_jᵀ g.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fishergraph.ops.attend.torch import attend
from fishergraph.ops.tensor_ops import needs_gradient, once_only, tensor_ops
from fishergraph.ops.tensor_sets import TensorSets, unpack


def fisher_linear(
    engine: str,
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    weight: Tensor,
    *,
    fisher_root: float,
    prior: float = 0.0,
) -> Tensor:
    """z (set, out) with weight (out, anchor · feature); differentiable in all tensors.

    `logs` (point, anchor) are the log-responsibilities. The plain engine, half types, and weights of the multisets that
    need a gradient compute φ.
    """
    plain = sets.weights is None or not sets.weights.requires_grad
    if engine != "torch" and plain and points.dtype == logs.dtype == torch.float32:
        keep = needs_gradient(points, logs, anchors, weight)
        sets = sets.cut(0, sets.n_sets)
        inputs = (points, logs, sets.weights, anchors, weight, sets.pack(transpose=keep), prior, fisher_root, engine)
        return torch.ops.fishergraph.head(*inputs, keep)[0]
    means, _ = attend(engine, points, logs, sets, anchors, prior=prior)
    phi = (fisher_root * (means - anchors.to(means.dtype))).flatten(1)
    return phi @ weight.T


@torch.library.custom_op(
    "fishergraph::head",
    mutates_args=(),
    schema="(Tensor points, Tensor logs, Tensor? weights, Tensor anchors, Tensor weight, Tensor[] sets, float prior, "
    "float fisher_root, str engine, bool keep) -> (Tensor, Tensor, Tensor)",
)
def _head(points, logs, weights, anchors, weight, sets, prior, fisher_root, engine, keep):
    whole = unpack(sets, weights, points.shape[0])
    return tensor_ops(engine).head(points, logs, whole, anchors, weight, prior, fisher_root, keep)  # type: ignore


@_head.register_fake
def _(points, logs, weights, anchors, weight, sets, prior, fisher_root, engine, keep):
    n_sets = sets[0].shape[0] - 1
    kept = keep and tensor_ops(engine).keeps_phi(n_sets, weight)  # type: ignore
    phi = points.new_empty((n_sets, *anchors.shape) if kept else 0)
    return points.new_empty((n_sets, weight.shape[0])), logs.new_empty((n_sets, anchors.shape[0])), phi


@torch.library.custom_op(
    "fishergraph::head_backward",
    mutates_args=(),
    schema="(Tensor points, Tensor logs, Tensor? weights, Tensor anchors, Tensor weight, Tensor[] sets, float prior, "
    "float fisher_root, str engine, Tensor log_total, Tensor phi, Tensor grad) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _head_backward(points, logs, weights, anchors, weight, sets, prior, fisher_root, engine, log_total, phi, grad):
    whole = unpack(sets, weights, points.shape[0])
    fixed = (points, logs, whole, anchors, weight, prior, fisher_root)
    return tensor_ops(engine).head_backward(*fixed, log_total, phi, grad)  # type: ignore


@_head_backward.register_fake
def _(points, logs, weights, anchors, weight, sets, prior, fisher_root, engine, log_total, phi, grad):
    return tuple(torch.empty_like(tensor) for tensor in (points, logs, anchors, weight))


def _save(ctx, inputs, output):
    points, logs, weights, anchors, weight, sets, ctx.prior, ctx.fisher_root, ctx.engine, _ = inputs
    ctx.n_shape = len(sets)
    ctx.save_for_backward(points, logs, weights, anchors, weight, output[1], output[2], *sets)
    ctx.set_materialize_grads(False)  # zeros for φ would be as large as φ


def _gradient(ctx, grad, *_):
    rest = ([None] * ctx.n_shape, None, None, None, None)
    if grad is None:
        return None, None, None, None, None, *rest
    points, logs, weights, anchors, weight, log_total, phi, *sets = ctx.saved_tensors
    inputs = (points, logs, weights, anchors, weight, list(sets), ctx.prior, ctx.fisher_root, ctx.engine)
    grads = torch.ops.fishergraph.head_backward(*inputs, log_total, phi, grad.contiguous())
    return grads[0], grads[1], None, grads[2], grads[3], *rest


_head.register_autograd(_gradient, setup_context=_save)
_head_backward.register_autograd(once_only("a Fisher layer"), setup_context=lambda ctx, inputs, output: None)
