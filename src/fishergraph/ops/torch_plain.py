"""The plain PyTorch engine: `torch_scatter` as one record; its gradients are autograd's."""

from __future__ import annotations

import torch
from torch import Tensor

from fishergraph.ops import torch_scatter
from fishergraph.ops.registry import Backend, Responsibilities
from fishergraph.ops.torch_kernels import Kernels
from fishergraph.ops.torch_sets import TensorSets


def posterior(points: Tensor, anchors: Tensor, variance: float, bias: Tensor | None) -> Tensor:
    """log α_ij = log softmax_j((⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2)/σ² + b_j), (point, anchor), c the mean anchor."""
    kind = torch.promote_types(points.dtype, torch.float32)
    anchors = anchors.to(kind)
    centre = anchors.mean(dim=0)
    shifted = anchors - centre
    scores = ((points.to(kind) - centre) @ shifted.T - 0.5 * (shifted * shifted).sum(dim=1)) / variance
    return torch.log_softmax(scores if bias is None else scores + bias, dim=1)


def attend(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool, wide: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch_scatter.attend`, with means in the dtype of the points unless `wide`."""
    means, mass, log_total = torch_scatter.attend(points, logs, sets, anchors, prior=prior, by_entry=by_entry)
    return means if wide else means.to(points.dtype), mass, log_total


def attend_backward(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, prior: float, by_entry: bool,
    means: Tensor | None, log_total: Tensor, grad_means: Tensor, grad_mass: Tensor | None, need_weights: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:  # fmt: skip
    """The gradients that autograd finds for `attend`."""
    weights = sets.weights.detach().requires_grad_() if need_weights and sets.weights is not None else sets.weights
    leaves = [tensor.detach().requires_grad_() for tensor in (points, logs, anchors)]
    with torch.enable_grad():
        outputs = attend(leaves[0], leaves[1], sets.weighted(weights), leaves[2], prior, by_entry, True)
        wanted = [*leaves, weights] if need_weights else leaves
        grads = torch.autograd.grad(
            outputs[: 1 if grad_mass is None else 2],
            wanted,  # type: ignore
            [grad_means] if grad_mass is None else [grad_means, grad_mass],
        )
    return grads[0], grads[1], grads[3] if need_weights else None, grads[2]


def score_backward(points: Tensor, means: Tensor, sets: TensorSets, grad: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients that autograd finds for `score`."""
    leaves = [tensor.detach().requires_grad_() for tensor in (points, means)]
    with torch.enable_grad():
        grads = torch.autograd.grad(torch_scatter.score(leaves[0], leaves[1], sets), leaves, grad)
    return grads[0], grads[1]


_DEVICES = frozenset({"cpu", "cuda"})
KERNELS = Kernels(
    name="torch",
    devices=_DEVICES,
    dtypes=frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16}),
    posterior=posterior,
    attend=attend,
    attend_backward=attend_backward,
    score=torch_scatter.score,
    score_backward=score_backward,
    em=lambda *_: None,
)


def run(
    points: Tensor, responsibilities: Responsibilities, sets: TensorSets, anchors: Tensor, *, variance: float,
    prior: float, n_em_iter: int, means: Tensor, mass: Tensor, slack: float = torch.inf,
) -> None:  # fmt: skip
    """Fill the means and the mass of one row block."""
    from fishergraph.ops.torch_iterations import Steps, em_from_logs

    logs: Tensor = responsibilities.log  # type: ignore
    steps = Steps(variance, prior, n_em_iter, slack)
    means[:], mass[:] = em_from_logs(KERNELS, points, logs, sets, anchors, steps)


BACKEND = Backend("torch", _DEVICES, several_iterations=True, run=run, tensors=True, transports=True)
