"""The kernels that tensors are sent to: one record per engine, chosen by device and dtype or by name.

Each record computes the same functions: rows as unit vectors, the first E-step, the M-step (`attend`), the scores of
later E-steps (`score`), and their gradients. `ops.torch_ops` registers them with PyTorch.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fishergraph._validation import look_up
from fishergraph.ops.torch_sets import TensorSets

logger = logging.getLogger(__name__)

# Rows of a block of the E-step's gradient on the CPU.
_ROWS = 8192


def posterior_gradient(
    points: Tensor, anchors: Tensor, logs: Tensor, grad: Tensor, variance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """∂L/∂(points, anchors, bias) of log α = log softmax_j((⟨x_u, w_j⟩ − ‖w_j‖²/2)/σ² + b_j)."""
    centre = anchors.to(logs.dtype).mean(dim=0)
    shifted = anchors.to(logs.dtype) - centre
    steps = shifted / variance
    total, moved = torch.zeros_like(shifted[:, 0]), torch.zeros_like(shifted)
    grad_points = torch.empty_like(points, dtype=logs.dtype, memory_format=torch.contiguous_format)
    size = _ROWS if points.device.type == "cpu" else max(points.shape[0], 1)
    for first in range(0, points.shape[0], size):  # what a block needs stays in the cache
        rows = slice(first, first + size)
        # ∂L/∂s; its rows sum to zero, so the centre may be taken out.
        slopes = grad[rows] - logs[rows].exp() * grad[rows].sum(dim=1, keepdim=True)
        torch.mm(slopes, steps, out=grad_points[rows])
        total = total + slopes.sum(dim=0)
        moved = moved + slopes.T @ (points[rows].to(logs.dtype) - centre)
    return grad_points, (moved - total[:, None] * shifted) / variance, total


@dataclass(frozen=True)
class Kernels:
    """One engine.

    posterior(points, anchors, variance, bias) → log α (point, anchor)
    posterior_backward(points, anchors, logs, grad, variance) → grad_points, grad_anchors, grad_bias, in the dtype of
        the logs
    attend(points, logs, sets, anchors, prior, by_entry, wide) → means, mass, log_total; the means are in the dtype of
        the points, or when `wide` in that of the logs, in which sums are kept
    attend_backward(points, logs, sets, anchors, prior, by_entry, means, log_total, grad_means, grad_mass, need_weights)
        → grad_points, grad_logs, grad_weights or None, grad_anchors; means of None are computed again, at best by
        blocks
    score(points, means, sets) → (entry, anchor); score_backward(points, means, sets, grad) → grad_points, grad_means
    em(points, logs, sets, anchors, variance, prior, n_em_iter, bias) → means, mass, or None where several iterations
        have no program of their own
    unit_rows(x) → x / ‖x‖ and 1 / ‖x‖ by rows; unit_rows_backward(units, scales, grad) → grad_x; None is autograd's way
    head, head_backward, keeps_phi : a layer with a linear head as one operator (`torch_linear`); None goes through φ
    """

    name: str
    devices: frozenset[str]
    dtypes: frozenset[torch.dtype]
    posterior: Callable[..., Tensor]
    attend: Callable[..., tuple[Tensor, Tensor, Tensor]]
    attend_backward: Callable[..., tuple[Tensor, Tensor, Tensor | None, Tensor]]
    score: Callable[..., Tensor]
    score_backward: Callable[..., tuple[Tensor, Tensor]]
    em: Callable[..., tuple[Tensor, Tensor] | None]
    posterior_backward: Callable[..., tuple[Tensor, Tensor, Tensor]] = posterior_gradient
    unit_rows: Callable[[Tensor], tuple[Tensor, Tensor]] | None = None
    unit_rows_backward: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    head: Callable[..., tuple[Tensor, Tensor, Tensor]] | None = None
    head_backward: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]] | None = None
    keeps_phi: Callable[[int, Tensor], bool] = lambda n_sets, weight: False


# In order of preference; imported when first asked for.
_MODULES = {
    "triton": "fishergraph.ops.triton_gpu",
    "numba": "fishergraph.ops.torch_numba",
    "torch": "fishergraph.ops.torch_plain",
}


def find_kernels(name: str) -> Kernels:
    """The engine of that name."""
    return importlib.import_module(look_up(_MODULES, name, "backend")).KERNELS


def choose_engine(name: str | None, tensor: Tensor) -> str:
    """The name of an engine for such a tensor: the first (a fallback is logged), or the given one, or an error."""
    return _choose(name, tensor.device.type, tensor.dtype)


@torch.compiler.assume_constant_result
def _choose(name: str | None, device: str, dtype: torch.dtype) -> str:
    # Under its interpreter Triton takes tensors of the CPU too; that is for tests, which name it.
    names = [known for known in _MODULES if (known, device) != ("triton", "cpu")] if name is None else [name]
    for candidate in names:
        reason = _why_not(candidate, device, dtype)
        if reason is None:
            return candidate
        if name is not None:
            raise ValueError(f"backend {name!r} cannot take these tensors: {reason}; leave backend=None to choose one.")
        if candidate == ("triton" if device == "cuda" else "numba"):
            logger.warning("the %s kernels are not used: %s", candidate, reason)
    raise ValueError(f"no backend takes {dtype} on {device}; move the tensors to a CPU or CUDA device.")


def _why_not(name: str, device: str, dtype: torch.dtype) -> str | None:
    """Why this engine does not take such tensors, or None where it does."""
    try:
        kernels = find_kernels(name)
    except ImportError as error:
        return f"{error}"
    if device not in kernels.devices:
        return f"it runs on {' and '.join(sorted(kernels.devices))}, and these are on {device}"
    if dtype not in kernels.dtypes:
        return f"it takes {', '.join(sorted(map(str, kernels.dtypes)))}, and these are {dtype}"
    return None


def work_type(dtype: torch.dtype) -> torch.dtype:
    """The dtype that sums are kept in: float32 for the half types, else the type itself."""
    return torch.promote_types(dtype, torch.float32)


def wide_type(device: torch.device) -> torch.dtype:
    """The widest float of a device: what long sums are added in."""
    return torch.float32 if device.type == "mps" else torch.float64


def sum_segments(values: Tensor, indptr: Tensor) -> Tensor:
    """Σ over consecutive rows indptr[v] … indptr[v + 1] − 1, in order, (segment, …)."""
    return torch.segment_reduce(values, "sum", offsets=indptr, axis=0, initial=0)


def bounded(logs: Tensor) -> Tensor:
    """The logs, cut off where exp would overflow: only a member of weight zero lies so high, and 0 · ∞ is no number."""
    return logs.clamp(max=0.9 * math.log(torch.finfo(logs.dtype).max))


def entry_terms(
    logs: Tensor, sets: TensorSets, by_entry: bool, log_total: Tensor, dots: Tensor, inner: Tensor,
    grad_mass: Tensor | None,
) -> Tensor:  # fmt: skip
    """exp(log α_ej − log_total_vj)(⟨x_e, G_vj⟩ − Q_vj) + α_ej g_vj, (entry, anchor): what a_e multiplies."""
    known = logs if by_entry else logs[sets.indices]
    total = log_total[sets.rows]
    share = torch.where(total == -torch.inf, 0.0, torch.exp(bounded(known - total)))
    terms = share * (dots - inner[sets.rows])
    return terms if grad_mass is None else terms + torch.exp(known) * grad_mass[sets.rows]
