"""A^{-1/2} by matrix products alone: nothing waits for a GPU, so a CUDA graph can hold it, as it cannot an `eigh`.

Let x² be an eigenvalue of A over the largest. An odd polynomial x q(x²) takes x nearer to 1, and Z = Π q(M) of
M ← M q(M)² becomes A^{-1/2}. The first five polynomials are the best of degree five for the interval that the ones
before them leave (Remez; Amsel et al. 2025, "The Polar Express"), and take an eigenvalue at the cutoff, x² = 10⁻⁶, to
M = 1/2. What lies above tends to 1 and what lies below to 0 by McWeeny's P ← 3 P² − 2 P³: P projects onto the span that
is kept. Four steps of Newton and Schulz end it. An eigenvalue within a tenth of the cutoff may be kept in part.

All are products of polynomials in A, so that of the block matrix (A, G; 0, A) has the derivative of A^{-1/2} in the
direction G as its upper right block. The derivative is its own adjoint: this is the gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fishergraph.ops.tensor_ops import once_only

# (a, b, c) of q(m) = a + b m + c m².
_APPROACH = (
    (8.44197, -24.9961, 18.5402),
    (4.1362, -3.07625, 0.576906),
    (3.79627, -2.83662, 0.549598),
    (2.92613, -2.18914, 0.476285),
    (2.05014, -1.43329, 0.39375),
)
_FINISH = 4 * ((1.875, -1.25, 0.375),)
_PURIFY, _SQUARINGS = 10, 5


def _largest(matrices: Tensor) -> Tensor:
    """The largest eigenvalue, (…, 1, 1): tr(A^64)^{1/64}, exact if it is apart, else up to d^{1/64} of it too much."""
    power, log = matrices, matrices.new_zeros(())
    least = torch.finfo(matrices.dtype).tiny  # of a matrix of zeros
    for k in range(_SQUARINGS):
        trace = power.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None].clamp(min=least)
        power, log = power / trace, log + trace.log() / 2**k
        power = power @ power
    length = torch.linalg.vector_norm(power, dim=(-2, -1), keepdim=True).clamp(min=least)
    return torch.exp(log + length.log() / 2**_SQUARINGS).clamp(min=least)


def _step(m: Tensor, z: Tensor | None, eye: Tensor, step: tuple[float, float, float]) -> tuple[Tensor, Tensor]:
    """M q(M)² and Z q(M); None is Z = I."""
    a, b, c = step
    q = torch.baddbmm(torch.add(a * eye, m, alpha=b), m, m, alpha=c)
    return m @ q @ q, q if z is None else z @ q


def _iterate(matrices: Tensor, scale: Tensor) -> Tensor:
    """A^{-1/2} on the kept span, (matrix, d, d), of matrices whose largest eigenvalue is `scale`."""
    eye = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    m, z = _step(matrices / scale, None, eye, _APPROACH[0])
    for step in _APPROACH[1:]:
        m, z = _step(m, z, eye, step)
    kept = m
    for _ in range(_PURIFY):
        kept = (kept @ kept) @ torch.add(3 * eye, kept, alpha=-2)
    m, z = torch.baddbmm(eye - kept, m, kept), z @ kept
    for step in _FINISH:
        m, z = _step(m, z, eye, step)
    return z * scale.rsqrt()


@torch.library.custom_op("fishergraph::inverse_root", mutates_args=())
def _inverse_root(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """A^{-1/2}, and the largest eigenvalues, (matrix, 1, 1)."""
    scale = _largest(matrices)
    root = _iterate(matrices, scale)
    return 0.5 * (root + root.mT), scale


@_inverse_root.register_fake
def _(matrices):
    return torch.empty_like(matrices), matrices.new_empty(matrices.shape[0], 1, 1)


@torch.library.custom_op("fishergraph::inverse_root_backward", mutates_args=())
def _inverse_root_backward(grad: Tensor, matrices: Tensor, scale: Tensor) -> Tensor:
    d = matrices.shape[-1]
    upper = torch.cat([matrices, 0.5 * (grad + grad.mT)], dim=-1)
    lower = torch.cat([torch.zeros_like(matrices), matrices], dim=-1)
    slope = _iterate(torch.cat([upper, lower], dim=-2), scale)[..., :d, d:]
    return 0.5 * (slope + slope.mT)


@_inverse_root_backward.register_fake
def _(grad, matrices, scale):
    return torch.empty_like(matrices)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], output[1])
    ctx.set_materialize_grads(False)


def _gradient(ctx: Any, grad: Tensor | None, _: Any) -> Tensor | None:
    return None if grad is None else torch.ops.fishergraph.inverse_root_backward(grad, *ctx.saved_tensors)


_inverse_root.register_autograd(_gradient, setup_context=_save)
_inverse_root_backward.register_autograd(once_only("an inverse root"), setup_context=lambda ctx, inputs, output: None)


def inverse_root(matrices: Tensor) -> Tensor:
    """A^{-1/2} of symmetric positive semidefinite matrices, on the span of the eigenvalues above 10⁻⁶ λ_max.

    Parameters
    ----------
    matrices : Tensor of shape (n_matrices, d, d)
        In float64.

    Returns
    -------
    Tensor of shape (n_matrices, d, d)
        What `fishergraph.nn.charts.inverse_sqrt` finds by eigenvalues, up to rounding.
    """
    return torch.ops.fishergraph.inverse_root(matrices)[0]
