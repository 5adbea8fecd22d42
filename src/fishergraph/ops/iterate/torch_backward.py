"""The gradients of several EM iterations: by kernels of the engine, or by its operations, a chunk of sets at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from fishergraph.ops.iterate.torch_steps import Steps, iterate
from fishergraph.ops.segment_sums.torch import sum_segments
from fishergraph.ops.tensor_ops import TensorOps, work_type
from fishergraph.ops.tensor_sets import TensorSets

# Numbers (entry × anchor and set × anchor × feature) that the operations work on at a time.
_CHUNK = 1 << 27


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


def go_back(
    ops: TensorOps,
    points: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    bias: Tensor | None,
    steps: Steps,
    kept: list[Tensor],
    grad_means: Tensor,
    grad_mass: Tensor | None,
    need_weights: bool,
) -> Gradients:
    """The gradients by the engine's own way through the iterations; what was not kept is computed again."""
    logs, numbers = ops.posterior(points, anchors, steps.variance, bias), (steps.variance, steps.prior)
    if len(kept[1]) == 0:
        kept = ops.em(points, logs, sets, anchors, *numbers, steps.n_iter, bias, True)[2:]  # type: ignore
    found = ops.em_backward(points, logs, sets, anchors, *numbers, *kept, grad_means, grad_mass, need_weights)
    first = ops.posterior_backward(points, anchors, logs, found.logs, steps.variance)
    whole = (given + more for given, more in zip((found.points, found.anchors, found.bias), first, strict=True))
    return Gradients(*whole, weights=found.weights)


def in_chunks(
    ops: TensorOps,
    points: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    bias: Tensor | None,
    steps: Steps,
    grad_means: Tensor,
    grad_mass: Tensor | None,
    need_weights: bool,
) -> Gradients:
    """The gradients by the operations, a chunk of sets at a time."""
    new = {"dtype": work_type(points.dtype), "device": points.device}
    by_entry = torch.zeros(sets.n_entries if need_weights else 0, **new)
    shapes = points.shape, anchors.shape, len(anchors)
    total = Gradients(*(torch.zeros(shape, **new) for shape in shapes), weights=None)
    for first, last in _chunks(sets, anchors):
        block, rows = sets.cut(first, last), slice(first, last)
        start = 0 if block is sets else int(sets.indptr[first])
        block_total = total._replace(weights=by_entry[start : start + block.n_entries] if need_weights else None)
        block_mass = None if grad_mass is None else grad_mass[rows]
        _add_gradients(ops, points, block, anchors, bias, steps, grad_means[rows], block_mass, block_total)
    return total._replace(weights=by_entry if need_weights else None)
