"""The plain PyTorch engine: any device, and gradients that autograd differentiates again."""

from __future__ import annotations

import torch
from torch import Tensor

from fishergraph.ops.attend.torch import plain_attend, plain_attend_backward
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate.torch import Steps, em_from_logs, plain_score, plain_score_backward
from fishergraph.ops.posterior.torch import plain_posterior, posterior_gradient
from fishergraph.ops.tensor_ops import TensorOps
from fishergraph.ops.tensor_sets import TensorSets

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
    variance: float,
    prior: float,
    n_em_iter: int,
    means: Tensor,
    mass: Tensor,
    slack: float = torch.inf,
) -> None:
    """Fill the means and the mass of one row block."""
    logs: Tensor = responsibilities.log  # type: ignore
    steps = Steps(variance, prior, n_em_iter, slack)
    means[:], mass[:] = em_from_logs(OPERATIONS, points, logs, sets, anchors, steps)
