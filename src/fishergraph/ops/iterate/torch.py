"""`em_means` on tensors: EM iterations on the operations of one engine, differentiable on any device.

One iteration of the posterior E-step consists of the operators `posterior` and `attend`. Several, or a transport
E-step, are one operator that saves only its inputs: its backward pass runs the iterations again, a chunk of sets at a
time. With the plain engine, autograd differentiates the loop. `checked_em_means` validates the tensors of a caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fishergraph._arrays import check_finite_result, check_finite_rows, check_heaviest, check_in_range, check_squares
from fishergraph._errors import InputError
from fishergraph.multiset import Multisets
from fishergraph.ops.attend.torch import attend, plain_attend, plain_attend_backward
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.posterior.torch import plain_posterior, posterior, posterior_gradient
from fishergraph.ops.segment_sums.torch import sum_segments
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_ops import TensorOps, needs_gradient, once_only, tensor_engine, tensor_ops, work_type
from fishergraph.ops.tensor_sets import (
    TensorSets,
    bad_input,
    bad_type,
    check_device,
    check_weights,
    entries_of,
    unpack,
)
from fishergraph.ops.transport.torch import transport

# Numbers (entry × anchor and set × anchor × feature) that the backward of several iterations works on at a time.
_CHUNK = 1 << 27
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Steps:
    """The settings of EM: σ², κ, iterations, and the slack 1/τ of the E-step (∞ is the posterior, 0 is balanced)."""

    variance: float
    prior: float
    n_iter: int
    slack: float = torch.inf


class Iteration(NamedTuple):
    """One iteration: log α, by entry or by point, and the results of the M-step, in the dtype of the sums."""

    logs: Tensor
    by_entry: bool
    means: Tensor
    mass: Tensor
    log_total: Tensor


def iterate(
    ops: TensorOps, points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, steps: Steps, bias: Tensor | None
) -> Iterator[Iteration]:
    """The iterations, from log α of the points at the anchors; after the first α belongs to the pair (set, point)."""
    by_entry = steps.slack < torch.inf
    if by_entry:
        # A constant of the point does not change the transport: the log-posterior serves as its score.
        logs = transport(logs[sets.indices], sets.indptr, sets.weights, slack=steps.slack)
    for left in reversed(range(steps.n_iter)):
        iteration = Iteration(logs, by_entry, *ops.attend(points, logs, sets, anchors, steps.prior, by_entry, True))
        yield iteration
        if left:
            scores = ops.score(points, iteration.means, sets) / steps.variance
            scores, by_entry = scores if bias is None else scores + bias, True
            if steps.slack == torch.inf:
                logs = torch.log_softmax(scores, dim=1)
            else:
                logs = transport(scores, sets.indptr, sets.weights, slack=steps.slack)


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
    packed = sets.pack(transpose=needs_gradient(*tensors))
    return torch.ops.fishergraph.em(*tensors, packed, steps.variance, steps.prior, steps.n_iter, steps.slack, engine)


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


class Gradients(NamedTuple):
    """Gradients of the inputs of EM, in the dtype of the sums; the weights are None if theirs is not needed."""

    points: Tensor
    anchors: Tensor
    bias: Tensor
    weights: Tensor | None


def _add_gradients(
    ops: TensorOps,
    points: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    bias: Tensor | None,
    steps: Steps,
    grad_means: Tensor,
    grad_mass: Tensor | None,
    total: Gradients,
) -> None:
    """Add the gradients of these sets to `total`."""
    first = ops.posterior(points, anchors, steps.variance, bias)
    iterations = list(iterate(ops, points, first, sets, anchors, steps, bias))
    need_weights, slopes = total.weights is not None, first
    while iterations:
        logs, by_entry, means, _, log_total = iterations.pop()
        inputs = (points, logs, sets, anchors, steps.prior, by_entry)
        grads = ops.attend_backward(*inputs, means, log_total, grad_means, grad_mass, need_weights)
        slopes, grad_mass = grads[1], None
        total.points.add_(grads[0])
        total.anchors.add_(grads[3])
        if need_weights:
            total.weights.add_(grads[2])  # type: ignore
        if by_entry:
            slopes = _e_step_slopes(logs, slopes, sets, steps.slack, total)
        if iterations:
            total.bias.add_(slopes.sum(dim=0))
            grad_points, grad_means = ops.score_backward(points, iterations[-1].means, sets, slopes / steps.variance)
            total.points.add_(grad_points)
    if steps.slack < torch.inf:
        back, entries = sets.transpose
        slopes = sum_segments(slopes[entries], back.indptr)  # (point, anchor)
    grads = ops.posterior_backward(points, anchors, first, slopes, steps.variance)
    for result, grad in zip((total.points, total.anchors, total.bias), grads, strict=True):
        result.add_(grad)


def _e_step_slopes(logs: Tensor, grad: Tensor, sets: TensorSets, slack: float, total: Gradients) -> Tensor:
    """∂L/∂s of log α = the E-step of s, (entry, anchor)."""
    if slack == torch.inf:
        return grad - logs.exp() * grad.sum(dim=1, keepdim=True)
    backward = torch.ops.fishergraph.transport_backward
    slopes, grad_weights = backward(grad.contiguous(), logs, sets.indptr, sets.weights, slack)
    if total.weights is not None:
        total.weights.add_(grad_weights)
    return slopes


def _chunks(sets: TensorSets, anchors: Tensor) -> Iterator[tuple[int, int]]:
    """Ranges of sets of bounded work; one range if everything fits."""
    n_anchors, n_features = anchors.shape
    whole = sets.n_entries * n_anchors + sets.n_sets * n_anchors * n_features
    if whole <= _CHUNK:
        yield 0, sets.n_sets
        return
    sizes = torch.diff(sets.indptr).cpu() * n_anchors + n_anchors * n_features
    number = torch.cumsum(sizes, 0) // _CHUNK
    borders = [0, *(torch.nonzero(torch.diff(number)).ravel() + 1).tolist(), sets.n_sets]
    yield from pairwise(borders)


@torch.library.custom_op(
    "fishergraph::em",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor? bias, Tensor? weights, Tensor[] sets, float variance, float prior, "
    "int n_iter, float slack, str engine) -> (Tensor, Tensor)",
)
def _em(points, anchors, bias, weights, sets, variance, prior, n_iter, slack, engine):
    ops, whole = tensor_ops(engine), unpack(sets, weights, points.shape[0])
    logs = ops.posterior(points, anchors, variance, bias)
    return em_from_logs(ops, points, logs, whole, anchors, Steps(variance, prior, n_iter, slack), bias)


@_em.register_fake
def _(points, anchors, bias, weights, sets, variance, prior, n_iter, slack, engine):
    n_sets = sets[0].shape[0] - 1
    mass = points.new_empty((n_sets, anchors.shape[0]), dtype=work_type(points.dtype))
    return points.new_empty((n_sets, *anchors.shape)), mass


@torch.library.custom_op(
    "fishergraph::em_backward",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor? bias, Tensor? weights, Tensor[] sets, float variance, float prior, "
    "int n_iter, float slack, str engine, Tensor grad_means, Tensor? grad_mass, bool need_weights) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
)
def _em_backward(
    points, anchors, bias, weights, sets, variance, prior, n_iter, slack, engine, grad_means, grad_mass, need_weights
):
    ops, whole = tensor_ops(engine), unpack(sets, weights, points.shape[0])
    steps, new = Steps(variance, prior, n_iter, slack), {"dtype": work_type(points.dtype), "device": points.device}
    by_entry = torch.zeros(len(weights) if need_weights else 0, **new)
    shapes = points.shape, anchors.shape, len(anchors)
    total = Gradients(*(torch.zeros(shape, **new) for shape in shapes), weights=None)
    for first, last in _chunks(whole, anchors):
        block, rows = whole.cut(first, last), slice(first, last)
        start = 0 if block is whole else int(whole.indptr[first])
        block_total = total._replace(weights=by_entry[start : start + block.n_entries] if need_weights else None)
        block_mass = None if grad_mass is None else grad_mass[rows]
        _add_gradients(ops, points, block, anchors, bias, steps, grad_means[rows], block_mass, block_total)
    by_entry = by_entry.to(weights.dtype) if need_weights else by_entry
    return total.points.to(points.dtype), total.anchors.to(anchors.dtype), total.bias, by_entry


@_em_backward.register_fake
def _(
    points, anchors, bias, weights, sets, variance, prior, n_iter, slack, engine, grad_means, grad_mass, need_weights
):
    kind = work_type(points.dtype)
    by_entry = torch.empty_like(weights) if need_weights else points.new_empty(0, dtype=kind)
    by_anchor = points.new_empty(anchors.shape[0], dtype=kind)
    return points.new_empty(points.shape), anchors.new_empty(anchors.shape), by_anchor, by_entry


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    points, anchors, bias, weights, sets, *ctx.numbers = inputs
    ctx.n_shape = len(sets)
    ctx.save_for_backward(points, anchors, bias, weights, *sets)
    ctx.set_materialize_grads(False)


def _gradient(ctx: Any, grad_means: Any, grad_mass: Any):
    points, anchors, bias, weights, *sets = ctx.saved_tensors
    rest = ([None] * ctx.n_shape, *[None] * 5)
    if grad_means is None and grad_mass is None:
        return None, None, None, None, *rest
    if grad_means is None:
        grad_means = points.new_zeros((sets[0].shape[0] - 1, *anchors.shape))
    grad_mass = None if grad_mass is None else grad_mass.contiguous()
    need_weights = bool(ctx.needs_input_grad[3])
    grads = torch.ops.fishergraph.em_backward(
        points, anchors, bias, weights, list(sets), *ctx.numbers, grad_means.contiguous(), grad_mass, need_weights
    )
    grad_bias = grads[2].to(bias.dtype) if ctx.needs_input_grad[2] else None
    return grads[0], grads[1], grad_bias, grads[3] if need_weights else None, *rest


_em.register_autograd(_gradient, setup_context=_save)
_em_backward.register_autograd(once_only("EM"), setup_context=lambda ctx, inputs, output: None)


def checked_em_means(
    points: Tensor, sets: Any, anchors: Tensor, *, bias: Tensor | None, variance: float, prior: float, **steps: Any
) -> tuple[Tensor, Tensor]:
    """`em_means` of tensors whose shapes, dtypes and devices are checked before any kernel is launched."""
    _check_float_matrix(points, "points")
    _check_tensor(anchors, "anchors")
    _check_float_matrix(anchors, "anchors")
    if points.shape[1] == 0:
        raise bad_input("points", "have at least one feature", "none", "pass the columns of the features")
    if anchors.shape[0] == 0 or anchors.shape[1] != points.shape[1]:
        expected = f"have the shape (anchor, {points.shape[1]}) with at least one anchor"
        advice = "learn them from these points with learn_anchors"
        raise bad_input("anchors", expected, tuple(anchors.shape), advice)
    check_device(anchors, points.device, "anchors", "points")
    kind = work_type(points.dtype)
    if bias is not None:
        _check_tensor(bias, "bias")
        if bias.shape != anchors.shape[:1]:
            expected = f"hold one number per anchor, shape ({anchors.shape[0]},)"
            raise bad_input("bias", expected, tuple(bias.shape), "reshape it")
        check_device(bias, points.device, "bias", "points")
        bias = bias.to(kind).contiguous()
    sets = _check_sets(sets, points)
    check_in_range(variance, kind, "variance")
    check_in_range(prior, kind, "prior")
    if _is_cheap(points):
        for tensor, name in ((points, "points"), (anchors, "anchors")):
            check_squares(tensor.detach().to(kind), name, over=variance)
        check_finite_result(anchors.detach().to(points.dtype), "anchors beside these points")
        check_heaviest(None if sets.weights is None else sets.weights.detach(), kind)
    rows = points if points.stride(-1) == 1 or points.shape[1] == 1 else points.contiguous()
    return em_means(rows, sets, anchors.to(kind).contiguous(), Steps(variance, prior, **steps), bias=bias)


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise bad_type(name, "be a tensor like points", value, "use torch.as_tensor")


def _check_float_matrix(tensor: Tensor, name: str) -> None:
    if tensor.ndim != 2 or tensor.dtype not in _FLOATS:
        got = f"{tensor.dtype} of shape {tuple(tensor.shape)}"
        raise bad_input(name, "be a float matrix of shape (rows, features)", got, "reshape or cast it")
    if _is_cheap(tensor):
        check_finite_rows(tensor.detach(), name)


def _is_cheap(tensor: Tensor) -> bool:
    """Whether checks of values need neither a device synchronisation nor a break of a compiled graph."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _check_sets(sets: Any, points: Tensor) -> TensorSets:
    """Tensor sets over these points."""
    if isinstance(sets, Multisets):
        sets = tensor_sets(sets).to(points.device)
    if not isinstance(sets, TensorSets):
        raise bad_type("multisets", "be TensorSets or Multisets", sets, "build them with tensor_sets")
    if sets.n_points != points.shape[0]:
        raise InputError(
            f"the multisets are over {sets.n_points} points, got {points.shape[0]} rows; "
            "pass the points they were built for."
        )
    check_device(sets.indptr, points.device, "the multisets", "points")
    check_weights(sets)
    if sets.device.type != "meta":  # meta tensors have no values, and no engine
        _ = sets.sound, torch.compiler.is_compiling() or sets.weighed
    return sets
