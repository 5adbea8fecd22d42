"""A Fisher layer with a linear head on a GPU: z_v = Σ_j W_j φ_vj, and the low-rank backward (`torch_linear`)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fishergraph.ops import triton_attend, triton_linear, triton_pull
from fishergraph.ops.torch_sets import TensorSets

# Bytes of φ that exist at a time, and of R.
_CHUNK = 3 << 29
_BACK_CHUNK = 3 << 27


def _row_chunks(n_sets: int, width: int, most: int) -> list[slice]:
    rows = max(1, most // (4 * width))
    return [slice(start, min(start + rows, n_sets)) for start in range(0, n_sets, rows)]


def keeps_phi(n_sets: int, weight: Tensor) -> bool:
    """Whether φ is small enough to be kept for the backward pass."""
    return 4 * n_sets * weight.shape[1] <= _CHUNK


def _precision() -> str:
    """What float32 products may be rounded to, as the user set it for the rest of PyTorch."""
    settings = torch.backends.cuda.matmul
    tf32 = settings.fp32_precision == "tf32" if hasattr(settings, "fp32_precision") else settings.allow_tf32
    return "tf32" if tf32 else "tf32x3"


def head(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, weight: Tensor, prior: float, fisher_root: float,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """z (set, out), log(κ + mass) (set, anchor), and φ where it is to be kept and small."""
    z = points.new_empty((sets.n_sets, weight.shape[0]))
    log_total = logs.new_empty((sets.n_sets, anchors.shape[0]))
    alpha, chunks = logs.exp(), _row_chunks(sets.n_sets, weight.shape[1], _CHUNK)
    phi = points.new_empty(0)
    for rows in chunks:
        block = sets if len(chunks) == 1 else sets.block(rows)
        phi, _, log_total[rows] = triton_attend.attend(
            points, logs, block, anchors, prior=prior, fisher_root=fisher_root, alpha=alpha
        )
        torch.mm(phi.flatten(1), weight.T, out=z[rows])
    return z, log_total, phi if keep and keeps_phi(sets.n_sets, weight) else points.new_empty(0)


def head_backward(
    points: Tensor, logs: Tensor, sets: TensorSets, anchors: Tensor, weight: Tensor, prior: float, fisher_root: float,
    log_total: Tensor, phi: Tensor, grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of points, logs, anchors and weight."""
    grad = _aligned(grad)
    blocks = _aligned(weight.view(-1, *anchors.shape).permute(1, 2, 0))  # (anchor, feature, out)
    fixed = (points, logs, sets, anchors)
    inner, grad_weight = _forward_again(*fixed, weight, blocks, prior, fisher_root, log_total, phi, grad)
    grad_points, grad_logs = _through_members(points, logs, sets, blocks, fisher_root, log_total, inner, grad)
    log_prior = math.log(prior) if prior > 0 else -math.inf
    own = torch.where(log_total > -torch.inf, torch.exp(log_prior - log_total), 1.0)
    pulled = (own - 1).T @ grad  # (anchor, out)
    grad_anchors = fisher_root * torch.einsum("jo,jko->jk", pulled, blocks)
    return grad_points, grad_logs, grad_anchors, grad_weight


def _aligned(matrix: Tensor) -> Tensor:
    """Contiguous, with columns of zeros up to a multiple that the copy engine takes."""
    missing = -matrix.shape[-1] % triton_linear.ALIGNED
    matrix = torch.nn.functional.pad(matrix, (0, missing)) if missing else matrix.contiguous()
    return matrix if matrix.data_ptr() % 16 == 0 else matrix.clone()


def _forward_again(
    points, logs, sets, anchors, weight, blocks, prior, fisher_root, log_total, phi, grad
) -> tuple[Tensor, Tensor]:
    """Q_vj = ⟨μ_vj, ∂L/∂μ_vj⟩ and ∂L/∂W, from φ, which is computed again where it was not kept."""
    inner, grad_weight, precision = torch.empty_like(log_total), torch.zeros_like(weight), _precision()
    alpha = logs.exp()
    for rows in _row_chunks(sets.n_sets, weight.shape[1], _CHUNK):
        part = phi
        if len(phi) == 0:
            part, _, _ = triton_attend.attend(
                points, logs, sets.block(rows), anchors, prior=prior, fisher_root=fisher_root, alpha=alpha
            )
        inner[rows] = triton_linear.head_inner(part, grad[rows], blocks, anchors, fisher_root, precision=precision)
        grad_weight.addmm_(grad[rows, : len(weight)].T, part.flatten(1))
        del part
    return inner, grad_weight


def _through_members(
    points, logs, sets: TensorSets, blocks, fisher_root, log_total, inner, grad
) -> tuple[Tensor, Tensor]:
    """∂L/∂x and ∂L/∂log α: R is pulled over the transposed sets, a chunk of points at a time, hubs last."""
    back, entries = sets.transpose
    back = back.weighted(None if sets.weights is None else sets.weights[entries])
    safe = torch.where(log_total > -torch.inf, -log_total, -torch.inf)
    grad_points, precision = torch.empty_like(points), _precision()
    dots = logs.new_empty((triton_linear.contract_tiles(points.shape[1], precision), *logs.shape))
    pull = triton_pull.Pull(grad, safe.exp(), back, logs=safe, row_logs=logs, scale=fisher_root)
    for rows in _row_chunks(back.n_sets, len(blocks) * grad.shape[1], _BACK_CHUNK):
        triton_linear.head_contract(
            pull.rows(rows), points[rows], blocks, grad_points[rows], dots[:, rows], precision=precision
        )
    if back.hubs.n_hubs:
        rows = back.hubs.rows
        part, part_dots = torch.empty_like(points[: len(rows)]), torch.empty_like(dots[:, : len(rows)])
        triton_linear.head_contract(pull.hubs(), points[rows], blocks, part, part_dots, precision=precision)
        grad_points[rows], dots[:, rows] = part, part_dots
    grad_logs = dots[0] - triton_pull.pull_inner(inner, log_total, logs, back)
    for more in dots[1:]:
        grad_logs += more
    return grad_points, grad_logs
