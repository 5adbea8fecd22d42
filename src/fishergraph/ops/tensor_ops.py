"""The operations of an engine on whole tensors as one record, and the choice of an engine for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fishergraph.config import engine_setting
from fishergraph.ops.engine import choose_engine, find_engine


@dataclass(frozen=True)
class TensorOps:
    """The operations of one engine on tensors.

    posterior(points, anchors, variance, bias) → log α (point, anchor)
    posterior_backward(points, anchors, logs, grad, variance) → grad_points, grad_anchors, grad_bias, in the dtype of
        the logs
    attend(points, logs, sets, anchors, prior, by_entry, wide) → means, mass, log_total; the means are in the dtype of
        the points, or when `wide` in that of the logs, in which sums are kept
    attend_backward(points, logs, sets, anchors, prior, by_entry, means, log_total, grad_means, grad_mass, need_weights)
        → grad_points, grad_logs, grad_weights or None, grad_anchors; means of None are computed again
    score(points, means, sets) → (entry, anchor); score_backward(points, means, sets, grad) → grad_points, grad_means
    em(points, logs, sets, anchors, variance, prior, n_iter, bias, keep=False) → means, mass and, if they are to be
        kept, log α (iteration, entry, anchor) and log totals (iteration, set, anchor), else empty tensors; None if the
        engine has no kernel for several iterations
    em_backward(points, logs, sets, anchors, variance, prior, kept log α, kept log totals, grad_means, grad_mass,
        need_weights) → the gradients of points, logs, anchors, bias, weights or None, without those of the first E-step
    goes_back(n_anchors, n_features) → whether `em` keeps and `em_backward` takes mixtures of that size
    unit_rows(x) → x / ‖x‖ and 1 / ‖x‖ by rows; unit_rows_backward(units, scales, grad) → grad_x; None leaves both to
        autograd
    head, head_backward, keeps_phi : a layer with a linear head as one operator (`linear_head`); None computes φ
    """

    posterior: Callable[..., Tensor]
    posterior_backward: Callable[..., tuple[Tensor, Tensor, Tensor]]
    attend: Callable[..., tuple[Tensor, Tensor, Tensor]]
    attend_backward: Callable[..., tuple[Tensor, Tensor, Tensor | None, Tensor]]
    score: Callable[..., Tensor]
    score_backward: Callable[..., tuple[Tensor, Tensor]]
    em: Callable[..., tuple[Tensor, ...] | None] = lambda *_: None
    em_backward: Callable[..., Any] = lambda *_: None
    goes_back: Callable[[int, int], bool] = lambda n_anchors, n_features: False
    unit_rows: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None
    unit_rows_backward: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    head: Callable[..., tuple[Tensor, Tensor, Tensor]] | None = None
    head_backward: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]] | None = None
    keeps_phi: Callable[[int, Tensor], bool] = lambda n_sets, weight: False


_loaded: dict[str, TensorOps] = {}
# The chosen engines, by (name, device, dtype), and the preferred ones.
_choices: dict[tuple[str | None, str, torch.dtype], str] = {}
_PREFERRED = {"cpu": "numba", "cuda": "triton"}


def tensor_ops(engine: str) -> TensorOps:
    """The operations of the engine of that name."""
    operations = _loaded.get(engine)
    if operations is None:
        operations = _loaded[engine] = find_engine(engine).tensor_ops
    return operations


def tensor_engine(name: str | None, tensor: Tensor) -> str:
    """The name of the engine for such a tensor: the named or configured one, or the first able one."""
    return _constant_choice(name, tensor.device.type, tensor.dtype)


@torch.compiler.assume_constant_result
def _constant_choice(name: str | None, device: str, dtype: torch.dtype) -> str:
    key = (engine_setting.get() if name is None else name, device, dtype)
    chosen = _choices.get(key)
    if chosen is None:
        chosen = choose_engine(key[0], device=device, dtype=str(dtype).removeprefix("torch.")).name
        if chosen in (key[0], _PREFERRED.get(device)):  # a fallback is logged every time
            _choices[key] = chosen
    return chosen


def work_type(dtype: torch.dtype) -> torch.dtype:
    """The dtype that sums are kept in: float32 for the half types, else the type itself."""
    return torch.promote_types(dtype, torch.float32)


def wide_type(device: torch.device) -> torch.dtype:
    """The widest float of a device, for long sums."""
    return torch.float32 if device.type == "mps" else torch.float64


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether autograd needs the gradient of one of these tensors."""
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


def once_only(name: str, advice: str = "use config_context(engine='torch') for second derivatives") -> Any:
    """A backward function that raises: the gradient of a compiled operator has no derivative."""

    def backward(ctx: Any, *grads: Tensor) -> None:
        raise NotImplementedError(f"the gradient of {name} cannot be differentiated again; {advice}.")

    return backward
