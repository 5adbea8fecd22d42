"""The Triton engine: the kernels of `triton_*` as one record for tensors, and one backend for row blocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from fishergraph.ops import (
    triton_attend,
    triton_backward,
    triton_em,
    triton_head,
    triton_iterations,
    triton_pull,
    triton_rows,
)
from fishergraph.ops.registry import Backend, Responsibilities
from fishergraph.ops.torch_kernels import Kernels, bounded, entry_terms, sum_segments
from fishergraph.ops.torch_sets import TensorSets

# Under the interpreter the kernels run on tensors of the CPU: that is how they are tested without a card.
_DEVICES = frozenset({"cpu", "cuda"} if os.environ.get("TRITON_INTERPRET") == "1" else {"cuda"})


def _by_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of points in any layout: the kernels want the numbers of a row one after the other."""

    @wraps(function)
    def call(points: Tensor, *rest: Any) -> Any:
        straight = points.stride(1) == 1 or points.shape[1] == 1
        return function(points if straight else points.contiguous(), *rest)

    return call


@_by_rows
def _attend(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool, wide: bool
) -> tuple[Tensor, Tensor, Tensor]:
    out = logs.new_empty((sets.n_sets, *anchors.shape)) if wide else None
    return triton_attend.attend(points, logs, sets, anchors, prior=prior, by_entry=by_entry, out=out)


@_by_rows
def _attend_backward(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool,
    means: Tensor | None, log_total: Tensor, grad_means: Tensor, grad_mass: Tensor | None, need_weights: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:  # fmt: skip
    grad_means = grad_means.to(logs.dtype).contiguous()
    if means is None:
        means = _attend(points, logs, sets, anchors, prior, by_entry, True)[0]
    inner, grad_anchors = triton_backward.inner_rows(means, grad_means, log_total, prior)
    if by_entry or need_weights:
        dots = triton_backward.entry_dots(points, grad_means, sets)
        terms = entry_terms(logs, sets, by_entry, log_total, dots, inner, grad_mass)
    if by_entry:
        share = torch.exp(bounded(logs - log_total[sets.rows]))
        if sets.weights is not None:
            share = torch.where(sets.weights[:, None] > 0, sets.weights[:, None] * share, 0.0)
        grad_points, _ = triton_backward.push(None, grad_means, sets, coefficients=share.contiguous())
        grad_logs = terms if sets.weights is None else sets.weights[:, None] * terms
    else:
        grad_points, grad_logs = triton_backward.push(
            points, grad_means, sets, logs=logs, log_total=log_total, inner=inner, grad_mass=grad_mass
        )
    grad_weights = terms.sum(dim=1) if need_weights else None
    return grad_points, grad_logs, grad_weights, grad_anchors


@_by_rows
def _score(points: Tensor, means: Tensor, sets: TensorSets) -> Tensor:
    return triton_backward.entry_dots(points, means, sets, squared=True)


@_by_rows
def _score_backward(points: Tensor, means: Tensor, sets: TensorSets, grad: Tensor) -> tuple[Tensor, Tensor]:
    grad, shape = grad.contiguous(), sets.weighted(None)
    back, entries = sets.transpose
    pulled = triton_pull.Pull(points, grad, shape, by_entry=True).all()
    grad_means = pulled - sum_segments(grad, sets.indptr)[..., None] * means
    pushed, _ = triton_backward.push(None, means, shape, coefficients=grad)
    weight = sum_segments(grad.sum(dim=1)[entries], back.indptr)
    return pushed - weight[:, None] * points, grad_means


@_by_rows
def _em(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, variance: float, prior: float, n_em_iter: int,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor] | None:  # fmt: skip
    if not triton_em.fits(*anchors.shape):
        return None
    return triton_iterations.em_rows(
        points, logs, sets, anchors, variance=variance, prior=prior, n_em_iter=n_em_iter, bias=bias
    )


KERNELS = Kernels(
    name="triton",
    devices=_DEVICES,
    dtypes=frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16}),
    posterior=_by_rows(triton_em.posterior),
    posterior_backward=_by_rows(triton_em.posterior_backward),
    attend=_attend,
    attend_backward=_attend_backward,
    score=_score,
    score_backward=_score_backward,
    em=_em,
    unit_rows=triton_rows.unit_rows,
    unit_rows_backward=triton_rows.unit_rows_backward,
    head=_by_rows(triton_head.head),
    head_backward=_by_rows(triton_head.head_backward),
    keeps_phi=triton_head.keeps_phi,
)


def run(
    points: Tensor, responsibilities: Responsibilities, sets: TensorSets, anchors: Tensor, *, variance: float,
    prior: float, n_em_iter: int, means: Tensor, mass: Tensor, slack: float = torch.inf,
) -> None:  # fmt: skip
    """Fill the means and the mass of one row block."""
    logs: Any = responsibilities.log
    if n_em_iter == 1 and slack == torch.inf:
        _, found, _ = triton_attend.attend(
            points,
            logs,
            sets,
            anchors,
            prior=prior,
            alpha=responsibilities.plain,
            out=means,  # type: ignore
        )
        mass.copy_(found)
    else:
        from fishergraph.ops.torch_iterations import Steps, em_from_logs

        steps = Steps(variance, prior, n_em_iter, slack)
        means[:], mass[:] = em_from_logs(KERNELS, points, logs, sets, anchors, steps)


BACKEND = Backend("triton", _DEVICES, several_iterations=True, run=run, tensors=True, transports=True)
