"""The Triton engine as one record, and its row blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from fishergraph.ops.attend import triton as attend
from fishergraph.ops.attend.triton_backward import attend_backward
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate import triton as iterate
from fishergraph.ops.iterate.torch import em_from_logs
from fishergraph.ops.iterate.torch_steps import Steps
from fishergraph.ops.iterate.triton_backward import em_backward
from fishergraph.ops.linear_head import triton as linear_head
from fishergraph.ops.posterior import triton as posterior
from fishergraph.ops.posterior.triton import fits
from fishergraph.ops.tensor_ops import TensorOps
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.unit_rows import triton as unit_rows


def _by_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of points in any layout: the kernels read consecutive elements of a row."""

    @wraps(function)
    def call(points: Tensor, *rest: Any) -> Any:
        in_order = points.stride(1) == 1 or points.shape[1] == 1
        return function(points if in_order else points.contiguous(), *rest)

    return call


def _attend(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool, wide: bool
) -> tuple[Tensor, Tensor, Tensor]:
    out = logs.new_empty((sets.n_sets, *anchors.shape)) if wide else None
    return attend.attend(points, logs, sets, anchors, prior=prior, by_entry=by_entry, out=out)


OPERATIONS = TensorOps(
    posterior=_by_rows(posterior.posterior),
    posterior_backward=_by_rows(posterior.posterior_backward),
    attend=_by_rows(_attend),
    attend_backward=_by_rows(attend_backward),
    score=_by_rows(iterate.score),
    score_backward=_by_rows(iterate.score_backward),
    em=_by_rows(iterate.em),
    em_backward=_by_rows(em_backward),
    goes_back=fits,
    unit_rows=unit_rows.unit_rows,
    unit_rows_backward=unit_rows.unit_rows_backward,
    head=_by_rows(linear_head.head),
    head_backward=_by_rows(linear_head.head_backward),
    keeps_phi=linear_head.keeps_phi,
)


def em_block(
    points: Tensor,
    responsibilities: Responsibilities,
    sets: TensorSets,
    anchors: Tensor,
    *,
    means: Tensor,
    mass: Tensor,
    **options: Any,
) -> None:
    """Fill the means and the mass of one row block; the options are the fields of `Steps`."""
    steps, (logs, alpha) = Steps(**options), (torch.as_tensor(array) for array in responsibilities)
    if steps.n_iter == 1 and steps.slack == torch.inf:
        mass.copy_(attend.attend(points, logs, sets, anchors, prior=steps.prior, alpha=alpha, out=means)[1])
    else:
        means[:], mass[:] = em_from_logs(OPERATIONS, points, logs, sets, anchors, steps)
