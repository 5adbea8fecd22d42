"""`em_means` on tensors: any number of iterations, differentiable on any device.

One iteration of the posterior E-step is made of the operators of `torch_ops`; more of them, or a transport E-step, are
one operator of `torch_iterations` that keeps its inputs alone. The plain engine is differentiated by autograd.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fishergraph.ops import torch_plain
from fishergraph.ops.torch_iterations import Steps, last_iteration
from fishergraph.ops.torch_kernels import choose_engine, work_type
from fishergraph.ops.torch_ops import attend, posterior
from fishergraph.ops.torch_sets import TensorSets


def em_means(
    points: Tensor, sets: TensorSets, anchors: Tensor, steps: Steps, *, bias: Tensor | None = None,
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """means (set, anchor, feature) and mass (set, anchor) after EM from the anchors (Eq. 14, 17)."""
    engine = choose_engine(backend, points)
    if steps.n_em_iter == 0:
        n_sets, kind = sets.n_sets, work_type(points.dtype)
        means = anchors.to(points.dtype).expand(n_sets, *anchors.shape)
        return means, torch.zeros((n_sets, anchors.shape[0]), dtype=kind, device=points.device)
    if engine == "torch":
        logs = torch_plain.posterior(points, anchors, steps.variance, bias)
        return last_iteration(torch_plain.KERNELS, points, logs, sets, anchors, steps, bias)
    if steps.n_em_iter == 1 and steps.slack == torch.inf:
        logs = posterior(engine, points, anchors, steps.variance, bias)
        return attend(engine, points, logs, sets, anchors, prior=steps.prior)
    sets = sets.cut(0, sets.n_sets)
    wanted = [tensor for tensor in (points, anchors, bias, sets.weights) if tensor is not None]
    transpose = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in wanted)
    return torch.ops.fishergraph.em(
        points, anchors, bias, sets.weights, sets.pack(transpose=transpose),
        steps.variance, steps.prior, steps.n_em_iter, steps.slack, engine,
    )  # fmt: skip
