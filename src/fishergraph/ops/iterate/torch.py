"""`em_means` on tensors: EM iterations on the operations of one engine, differentiable on any device.

One iteration of the posterior E-step is made of the operators `posterior` and `attend`. Several, or a transport E-step,
are one operator that keeps its inputs alone: its backward pass runs the iterations again, a chunk of sets at a time.
The plain engine takes the loop alone, and autograd differentiates it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fishergraph.ops.attend.torch import attend
from fishergraph.ops.posterior.torch import plain_posterior, posterior
from fishergraph.ops.segment_sums.torch import sum_segments
from fishergraph.ops.tensor_ops import TensorOps, once_only, tensor_engine, tensor_ops, work_type
from fishergraph.ops.tensor_sets import TensorSets, entries_of, unpack
from fishergraph.ops.transport.torch import transport

# Numbers (entry × anchor and set × anchor × feature) that the backward of several iterations works on at a time.
_CHUNK = 1 << 27


@dataclass(frozen=True)
class Steps:
    """How many iterations of which EM: σ², κ, and the E-step's slack, 1/τ (∞ is the posterior, 0 is balanced)."""

    variance: float
    prior: float
    n_em_iter: int
    slack: float = torch.inf


class Iteration(NamedTuple):
    """One iteration: log α, by entry or by point, and what the M-step made of it, in the dtype of the sums."""

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
        # A constant of the point does not matter to the transport: the log-posterior serves as its score.
        logs = transport(logs[sets.indices], sets.indptr, sets.weights, slack=steps.slack)
    for left in reversed(range(steps.n_em_iter)):
        found = ops.attend(points, logs, sets, anchors, steps.prior, by_entry, True)
        yield Iteration(logs, by_entry, *found)
        if left:
            scores = ops.score(points, found[0], sets) / steps.variance
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
    ops: TensorOps, points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, steps: Steps,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """means and mass, without gradients, from log α of the first E-step: in one program where there is one."""
    if steps.n_em_iter == 1 and steps.slack == torch.inf:
        return ops.attend(points, logs, sets, anchors, steps.prior, False, False)[:2]
    rest = anchors, steps, bias
    if steps.slack < torch.inf:
        return last_iteration(ops, points, logs, sets, *rest)
    found = ops.em(points, logs, sets, anchors, steps.variance, steps.prior, steps.n_em_iter, bias)
    if found is None:
        return last_iteration(ops, points, logs, sets, *rest)
    return found[0].to(points.dtype), found[1]


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
    if steps.n_em_iter == 0:
        n_sets, kind = sets.n_sets, work_type(points.dtype)
        means = anchors.to(points.dtype).expand(n_sets, *anchors.shape)
        return means, torch.zeros((n_sets, anchors.shape[0]), dtype=kind, device=points.device)
    if engine == "torch":
        logs = plain_posterior(points, anchors, steps.variance, bias)
        return last_iteration(tensor_ops(engine), points, logs, sets, anchors, steps, bias)
    if steps.n_em_iter == 1 and steps.slack == torch.inf:
        logs = posterior(engine, points, anchors, steps.variance, bias)
        return attend(engine, points, logs, sets, anchors, prior=steps.prior)
    sets = sets.cut(0, sets.n_sets)
    wanted = [tensor for tensor in (points, anchors, bias, sets.weights) if tensor is not None]
    transpose = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in wanted)
    return torch.ops.fishergraph.em(
        points,
        anchors,
        bias,
        sets.weights,
        sets.pack(transpose=transpose),
        steps.variance,
        steps.prior,
        steps.n_em_iter,
        steps.slack,
        engine,
    )


def plain_score(points: Tensor, means: Tensor, sets: TensorSets) -> Tensor:
    """s_ej = −‖x_e − μ_vj‖² / 2 of every member at the means of its own set, (entry, anchor)."""
    x = points[entries_of(sets, sets.indices).long()].to(means.dtype)
    return torch.stack([-0.5 * ((x - means[sets.rows, j]) ** 2).sum(dim=1) for j in range(means.shape[1])], dim=1)


def plain_score_backward(points: Tensor, means: Tensor, sets: TensorSets, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients that autograd gives for `plain_score`."""
    inputs = [tensor.detach().requires_grad_() for tensor in (points, means)]
    with torch.enable_grad():
        grads = torch.autograd.grad(plain_score(inputs[0], inputs[1], sets), inputs, grad)
    return grads[0], grads[1]


class Gradients(NamedTuple):
    """Of the inputs of EM, in the dtype of the sums; no weights where none are wanted."""

    points: Tensor
    anchors: Tensor
    bias: Tensor
    weights: Tensor | None


def _go_back(
    ops: TensorOps, points: Tensor, sets: TensorSets, anchors: Tensor, bias: Tensor | None, steps: Steps,
    grad_means: Tensor, grad_mass: Tensor | None, total: Gradients,
) -> None:  # fmt: skip
    """Add to `total` what these sets have to say."""
    first = ops.posterior(points, anchors, steps.variance, bias)
    iterations = list(iterate(ops, points, first, sets, anchors, steps, bias))
    slopes = first
    while iterations:
        logs, by_entry, means, _, log_total = iterations.pop()
        moved = ops.attend_backward(
            points, logs, sets, anchors, steps.prior, by_entry, means, log_total, grad_means, grad_mass,
            total.weights is not None,
        )  # fmt: skip
        slopes, grad_mass = moved[1], None
        total.points.add_(moved[0])
        total.anchors.add_(moved[3])
        if total.weights is not None:
            total.weights.add_(moved[2])  # type: ignore
        if by_entry:
            slopes = _through_e_step(logs, slopes, sets, steps.slack, total)
        if iterations:
            total.bias.add_(slopes.sum(dim=0))
            pushed, grad_means = ops.score_backward(points, iterations[-1].means, sets, slopes / steps.variance)
            total.points.add_(pushed)
    if steps.slack < torch.inf:
        back, entries = sets.transpose
        slopes = sum_segments(slopes[entries], back.indptr)  # (point, anchor)
    moved = ops.posterior_backward(points, anchors, first, slopes, steps.variance)
    for known, part in zip((total.points, total.anchors, total.bias), moved, strict=True):
        known.add_(part)


def _through_e_step(logs: Tensor, grad: Tensor, sets: TensorSets, slack: float, total: Gradients) -> Tensor:
    """∂L/∂s of log α = the E-step of s, (entry, anchor)."""
    if slack == torch.inf:
        return grad - logs.exp() * grad.sum(dim=1, keepdim=True)
    slopes, own = torch.ops.fishergraph.transport_backward(grad.contiguous(), logs, sets.indptr, sets.weights, slack)
    if total.weights is not None:
        total.weights.add_(own)
    return slopes


def _chunks(sets: TensorSets, anchors: Tensor) -> Iterator[tuple[int, int]]:
    """Row ranges of bounded work; one where everything fits."""
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
    "int n_em_iter, float slack, str engine) -> (Tensor, Tensor)",
)
def _em(points, anchors, bias, weights, sets, variance, prior, n_em_iter, slack, engine):
    ops, whole = tensor_ops(engine), unpack(sets, weights, points.shape[0])
    logs = ops.posterior(points, anchors, variance, bias)
    return em_from_logs(ops, points, logs, whole, anchors, Steps(variance, prior, n_em_iter, slack), bias)


@_em.register_fake
def _(points, anchors, bias, weights, sets, variance, prior, n_em_iter, slack, engine):
    n_sets = sets[0].shape[0] - 1
    mass = points.new_empty((n_sets, anchors.shape[0]), dtype=work_type(points.dtype))
    return points.new_empty((n_sets, *anchors.shape)), mass


@torch.library.custom_op(
    "fishergraph::em_backward",
    mutates_args=(),
    schema="(Tensor points, Tensor anchors, Tensor? bias, Tensor? weights, Tensor[] sets, float variance, float prior, "
    "int n_em_iter, float slack, str engine, Tensor grad_means, Tensor? grad_mass, bool need_weights) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
)
def _em_backward(
    points, anchors, bias, weights, sets, variance, prior, n_em_iter, slack, engine, grad_means, grad_mass, need_weights
):
    ops, whole = tensor_ops(engine), unpack(sets, weights, points.shape[0])
    steps, new = Steps(variance, prior, n_em_iter, slack), {"dtype": work_type(points.dtype), "device": points.device}
    by_entry = torch.zeros(len(weights) if need_weights else 0, **new)
    total = Gradients(
        torch.zeros(points.shape, **new), torch.zeros(anchors.shape, **new), torch.zeros(len(anchors), **new), None
    )
    for first, last in _chunks(whole, anchors):
        part, rows = whole.cut(first, last), slice(first, last)
        start = 0 if part is whole else int(whole.indptr[first])
        own = by_entry[start : start + part.n_entries] if need_weights else None
        grad_means_here, grad_mass_here = grad_means[rows], None if grad_mass is None else grad_mass[rows]
        _go_back(ops, points, part, anchors, bias, steps, grad_means_here, grad_mass_here, total._replace(weights=own))
    by_entry = by_entry.to(weights.dtype) if need_weights else by_entry
    return total.points.to(points.dtype), total.anchors.to(anchors.dtype), total.bias, by_entry


@_em_backward.register_fake
def _(
    points, anchors, bias, weights, sets, variance, prior, n_em_iter, slack, engine, grad_means, grad_mass, need_weights
):
    kind = work_type(points.dtype)
    own = torch.empty_like(weights) if need_weights else points.new_empty(0, dtype=kind)
    by_anchor = points.new_empty(anchors.shape[0], dtype=kind)
    return points.new_empty(points.shape), anchors.new_empty(anchors.shape), by_anchor, own


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
    wanted = bool(ctx.needs_input_grad[3])
    found = torch.ops.fishergraph.em_backward(
        points, anchors, bias, weights, list(sets), *ctx.numbers, grad_means.contiguous(), grad_mass, wanted
    )
    grad_bias = found[2].to(bias.dtype) if ctx.needs_input_grad[2] else None
    return found[0], found[1], grad_bias, found[3] if wanted else None, *rest


_em.register_autograd(_gradient, setup_context=_save)
_em_backward.register_autograd(once_only("EM"), setup_context=lambda ctx, inputs, output: None)
