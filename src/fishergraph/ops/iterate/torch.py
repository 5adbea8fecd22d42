"""`em_means` on tensors: EM iterations on the operations of one engine, differentiable on any device.

One iteration of the posterior E-step consists of the operators `posterior` and `attend`. Several, or a transport
E-step, are one operator that saves only its inputs: its backward pass runs the iterations again, a chunk of sets at a
time. With the plain engine, autograd differentiates the loop. An engine whose kernels go back through the
iterations keeps their log-responsibilities, p numbers of an entry and an iteration, and no means.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fishergraph.ops.attend.torch import attend, plain_attend, plain_attend_backward
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate.torch_backward import go_back, in_chunks
from fishergraph.ops.iterate.torch_steps import Steps, iterate
from fishergraph.ops.posterior.torch import plain_posterior, posterior, posterior_gradient
from fishergraph.ops.tensor_ops import TensorOps, needs_gradient, once_only, tensor_engine, tensor_ops, work_type
from fishergraph.ops.tensor_sets import TensorSets, entries_of, unpack

# Bytes of the log-responsibilities of entries that are kept for the backward pass; more are computed again.
_KEPT = 1 << 32


def last_iteration(
    ops: TensorOps, points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, steps: Steps, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """means, in the dtype of the points, and mass after all iterations."""
    iteration = None
    for iteration in iterate(ops, points, logs, sets.cut(0, sets.n_sets), anchors, steps, bias):  # noqa: B007
        pass
    assert iteration is not None
    return iteration.means.to(points.dtype), iteration.mass


def em_from_logs(
    ops: TensorOps,
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    steps: Steps,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """means and mass, without gradients, from log α of the first E-step; in one kernel if the engine has it."""
    if steps.slack == torch.inf:
        if steps.n_iter == 1:
            return ops.attend(points, logs, sets, anchors, steps.prior, False, False)[:2]
        results = ops.em(points, logs, sets, anchors, steps.variance, steps.prior, steps.n_iter, bias)
        if results is not None:
            return results[0].to(points.dtype), results[1]
    return last_iteration(ops, points, logs, sets, anchors, steps, bias)


def em_means(
    points: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    steps: Steps,
    *,
    bias: Tensor | None = None,
    engine: str | None = None,
) -> tuple[Tensor, Tensor]:
    """means (set, anchor, feature) and mass (set, anchor) after EM from the anchors (Eq. 14, 17)."""
    engine = tensor_engine(engine, points)
    if steps.n_iter == 0:
        n_sets, kind = sets.n_sets, work_type(points.dtype)
        means = anchors.to(points.dtype).expand(n_sets, *anchors.shape)
        return means, torch.zeros((n_sets, anchors.shape[0]), dtype=kind, device=points.device)
    if engine == "torch":
        logs = plain_posterior(points, anchors, steps.variance, bias)
        return last_iteration(OPERATIONS, points, logs, sets, anchors, steps, bias)
    if steps.n_iter == 1 and steps.slack == torch.inf:
        logs = posterior(engine, points, anchors, steps.variance, bias)
        return attend(engine, points, logs, sets, anchors, prior=steps.prior)
    sets = sets.cut(0, sets.n_sets)
    tensors = (points, anchors, bias, sets.weights)
    trained = needs_gradient(*tensors)
    if engine == "triton" and not trained and not torch.compiler.is_compiling():  # an operator takes the host's time
        ops = tensor_ops(engine)
        logs = ops.posterior(points, anchors, steps.variance, bias)
        return em_from_logs(ops, points, logs, sets, anchors, steps, bias)
    numbers = (steps.variance, steps.prior, steps.n_iter, steps.slack, engine, trained)
    return torch.ops.fishergraph.em(*tensors, sets.pack(transpose=trained), *numbers)[:2]


def plain_score(points: Tensor, means: Tensor, sets: TensorSets) -> Tensor:
    """s_ej = −‖x_e − μ_vj‖² / 2 of every member at the means of its set, (entry, anchor)."""
    x = points[entries_of(sets, sets.indices).long()].to(means.dtype)
    return torch.stack([-0.5 * ((x - means[sets.rows, j]) ** 2).sum(dim=1) for j in range(means.shape[1])], dim=1)


def plain_score_backward(points: Tensor, means: Tensor, sets: TensorSets, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients that autograd gives for `plain_score`."""
    inputs = [tensor.detach().requires_grad_() for tensor in (points, means)]
    with torch.enable_grad():
        grads = torch.autograd.grad(plain_score(inputs[0], inputs[1], sets), inputs, grad)
    return grads[0], grads[1]


# The plain PyTorch engine, for any device; autograd differentiates it any number of times.
OPERATIONS = TensorOps(
    posterior=plain_posterior,
    posterior_backward=posterior_gradient,
    attend=plain_attend,
    attend_backward=plain_attend_backward,
    score=plain_score,
    score_backward=plain_score_backward,
)


def em_block(
    points: Tensor,
    responsibilities: Responsibilities,
    sets: TensorSets,
    anchors: Tensor,
    *,
    means: Tensor,
    mass: Tensor,
    **steps: float,
) -> None:
    """Fill the means and the mass of one row block; the steps are the fields of `Steps`."""
    logs: Tensor = responsibilities.log  # type: ignore
    means[:], mass[:] = em_from_logs(OPERATIONS, points, logs, sets, anchors, Steps(**steps))  # type: ignore


def _kept_shapes(ops: TensorOps, steps: Steps, keep: bool, n_sets: int, n_entries: int, anchors: Tensor) -> Any:
    """The shapes of log α (iteration, entry, anchor) and log totals (iteration, set, anchor) that are kept."""
    n_iter, n_anchors = steps.n_iter, anchors.shape[0]
    n_bytes = work_type(anchors.dtype).itemsize * (n_iter - 1) * n_entries * n_anchors
    keep = keep and steps.slack == torch.inf and ops.goes_back(*anchors.shape) and n_bytes <= _KEPT
    return (n_iter - 1 if keep else 0, n_entries, n_anchors), (n_iter if keep else 0, n_sets, n_anchors)


@torch.library.custom_op(
    "fishergraph::em",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor? bias, Tensor? weights, Tensor[] sets, float variance, float prior, "
    "int n_iter, float slack, str engine, bool keep) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _em(points, anchors, bias, weights, sets, variance, prior, n_iter, slack, engine, keep):
    ops, whole, steps = (
        tensor_ops(engine),
        unpack(sets, weights, points.shape[0]),
        Steps(variance, prior, n_iter, slack),
    )
    logs = ops.posterior(points, anchors, variance, bias)
    shapes = _kept_shapes(ops, steps, keep, whole.n_sets, whole.n_entries, anchors)
    if shapes[0][0]:
        means, *rest = ops.em(points, logs, whole, anchors, variance, prior, n_iter, bias, True)  # type: ignore
        return means.to(points.dtype), *rest
    return *em_from_logs(ops, points, logs, whole, anchors, steps, bias), *(logs.new_empty(shape) for shape in shapes)


@_em.register_fake
def _(points, anchors, bias, weights, sets, variance, prior, n_iter, slack, engine, keep):
    n_sets, kind, steps = sets[0].shape[0] - 1, work_type(points.dtype), Steps(variance, prior, n_iter, slack)
    shapes = _kept_shapes(tensor_ops(engine), steps, keep, n_sets, sets[1].shape[0], anchors)
    small = (points.new_empty(shape, dtype=kind) for shape in ((n_sets, anchors.shape[0]), *shapes))
    return points.new_empty((n_sets, *anchors.shape)), *small


@torch.library.custom_op(
    "fishergraph::em_backward",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor? bias, Tensor? weights, Tensor[] sets, float variance, float prior, "
    "int n_iter, float slack, str engine, Tensor[] kept, Tensor grad_means, Tensor? grad_mass, bool need_weights) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
)
def _em_backward(
    points,
    anchors,
    bias,
    weights,
    sets,
    variance,
    prior,
    n_iter,
    slack,
    engine,
    kept,
    grad_means,
    grad_mass,
    need_weights,
):
    ops, whole = tensor_ops(engine), unpack(sets, weights, points.shape[0])
    steps = Steps(variance, prior, n_iter, slack)
    inputs = (ops, points, whole, anchors, bias, steps)
    if slack == torch.inf and n_iter > 1 and ops.goes_back(*anchors.shape):
        total = go_back(*inputs, kept, grad_means, grad_mass, need_weights)
    else:
        total = in_chunks(*inputs, grad_means, grad_mass, need_weights)
    grad_weights = points.new_empty(0, dtype=total.bias.dtype)
    grad_weights = grad_weights if total.weights is None else total.weights.to(weights.dtype)
    return total.points.to(points.dtype), total.anchors.to(anchors.dtype), total.bias, grad_weights


@_em_backward.register_fake
def _(
    points,
    anchors,
    bias,
    weights,
    sets,
    variance,
    prior,
    n_iter,
    slack,
    engine,
    kept,
    grad_means,
    grad_mass,
    need_weights,
):
    kind = work_type(points.dtype)
    by_entry = torch.empty_like(weights) if need_weights else points.new_empty(0, dtype=kind)
    by_anchor = points.new_empty(anchors.shape[0], dtype=kind)
    return points.new_empty(points.shape), anchors.new_empty(anchors.shape), by_anchor, by_entry


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    points, anchors, bias, weights, sets, *ctx.numbers, _ = inputs
    ctx.n_shape = len(sets)
    ctx.save_for_backward(points, anchors, bias, weights, output[2], output[3], *sets)
    ctx.set_materialize_grads(False)


def _gradient(ctx: Any, grad_means: Any, grad_mass: Any, *_: Any):
    points, anchors, bias, weights, *kept = ctx.saved_tensors
    kept, sets = kept[:2], kept[2:]
    rest = ([None] * ctx.n_shape, *[None] * 6)
    if grad_means is None and grad_mass is None:
        return None, None, None, None, *rest
    if grad_means is None:
        grad_means = points.new_zeros((sets[0].shape[0] - 1, *anchors.shape))
    grad_mass = None if grad_mass is None else grad_mass.contiguous()
    need_weights = bool(ctx.needs_input_grad[3])
    upstream = (kept, grad_means.contiguous(), grad_mass, need_weights)
    grads = torch.ops.fishergraph.em_backward(points, anchors, bias, weights, sets, *ctx.numbers, *upstream)
    grad_bias = grads[2].to(bias.dtype) if ctx.needs_input_grad[2] else None
    return grads[0], grads[1], grad_bias, grads[3] if need_weights else None, *rest


_em.register_autograd(_gradient, setup_context=_save)
_em_backward.register_autograd(once_only("EM"), setup_context=lambda ctx, inputs, output: None)
