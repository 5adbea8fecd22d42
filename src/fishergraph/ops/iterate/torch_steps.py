"""The iterations of EM on the operations of one engine, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fishergraph.ops.tensor_ops import TensorOps
from fishergraph.ops.tensor_sets import TensorSets
from fishergraph.ops.transport.torch import transport


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
