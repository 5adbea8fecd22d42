"""Functions of the eigenvalues of symmetric matrices, with gradients to which equal eigenvalues do no harm.

f(A) = V f(Λ) Vᵀ has the gradient V (D ∘ Vᵀ G V) Vᵀ, where D holds the divided differences of f (Daleckii and Krein),
here without a division by λ_i − λ_j that could be zero. All f are constant up to a bound and smooth beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fishergraph.family import Gaussian
from fishergraph.family.special import Spectral
from fishergraph.ops.tensor_ops import once_only

# As in `kernel_map`: smaller eigenvalues are noise of the products.
_CUTOFF = 1e-6


class _Function(NamedTuple):
    """f(λ) by the eigenvalues in rising order and a number `least`; its differences for two λ beyond the bound."""

    bound: Callable[[Tensor, float], Tensor]
    beyond: Callable[[Tensor], Tensor]
    below: Callable[[float], float]
    differences: Callable[[Tensor, Tensor], Tensor]


_FUNCTIONS = {
    # λ^{-1/2}, and λ^{1/2}, of what is above least · λ_max, 0 of the rest.
    "inverse root": _Function(
        lambda values, least: least * values[..., -1:],
        lambda values: values.rsqrt(),
        lambda least: 0.0,
        lambda a, b: -1 / (a.sqrt() * b.sqrt() * (a.sqrt() + b.sqrt())),
    ),
    "root": _Function(
        lambda values, least: least * values[..., -1:],
        lambda values: values.sqrt(),
        lambda least: 0.0,
        lambda a, b: 1 / (a.sqrt() + b.sqrt()),
    ),
    # max(λ, least)
    "floor": _Function(
        lambda values, least: torch.full_like(values[..., -1:], least),
        lambda values: values,
        lambda least: least,
        lambda a, b: torch.ones_like(a + b),
    ),
}


def _image(values: Tensor, name: str, least: float) -> tuple[Tensor, Tensor]:
    """(which λ lie beyond the bound, f(λ))."""
    function = _FUNCTIONS[name]
    beyond = values > function.bound(values, least)
    return beyond, torch.where(beyond, function.beyond(torch.where(beyond, values, 1.0)), function.below(least))


@torch.library.custom_op("fishergraph::spectral", mutates_args=())
def _spectral(matrices: Tensor, name: str, least: float) -> tuple[Tensor, Tensor, Tensor]:
    """f(A) ≥ 0, NaN where A is not finite, and the eigenvalues and vectors of A, (…, d, d)."""
    good = matrices.isfinite().all(dim=-1).all(dim=-1)[..., None, None]
    values, vectors = torch.linalg.eigh(torch.where(good, matrices, 0.0))
    half = vectors * _image(values, name, least)[1].sqrt()[..., None, :]
    return torch.where(good, half @ half.mT, torch.nan), values.contiguous(), vectors.contiguous()


@_spectral.register_fake
def _(matrices, name, least):
    return torch.empty_like(matrices), matrices.new_empty(matrices.shape[:-1]), torch.empty_like(matrices)


@torch.library.custom_op("fishergraph::spectral_backward", mutates_args=())
def _spectral_backward(grad: Tensor, values: Tensor, vectors: Tensor, name: str, least: float) -> Tensor:
    """∂L/∂A = V (D ∘ Vᵀ G V) Vᵀ. One λ beyond the bound and one below give (f_i − f_j) / (λ_i − λ_j); two below, 0."""
    beyond, found = _image(values, name, least)
    safe = torch.where(beyond, values, 1.0)
    both = _FUNCTIONS[name].differences(safe[..., :, None], safe[..., None, :])
    mixed = beyond[..., :, None] ^ beyond[..., None, :]
    gaps = torch.where(mixed, values[..., :, None] - values[..., None, :], 1.0)
    apart = torch.where(mixed, (found[..., :, None] - found[..., None, :]) / gaps, 0.0)
    differences = torch.where(beyond[..., :, None] & beyond[..., None, :], both, apart)
    inner = vectors.mT @ (0.5 * (grad + grad.mT)) @ vectors
    return vectors @ (differences * inner) @ vectors.mT


@_spectral_backward.register_fake
def _(grad, values, vectors, name, least):
    return torch.empty_like(grad)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.function = inputs[1:]
    ctx.save_for_backward(output[1], output[2])
    ctx.set_materialize_grads(False)


def _gradient(ctx: Any, grad: Tensor | None, *_: Any):
    if grad is None:
        return None, None, None
    found = torch.ops.fishergraph.spectral_backward(grad.contiguous(), *ctx.saved_tensors, *ctx.function)
    return found, None, None


_spectral.register_autograd(_gradient, setup_context=_save)
_spectral_backward.register_autograd(
    once_only("a function of eigenvalues"), setup_context=lambda ctx, inputs, output: None
)


def inverse_sqrt(matrices: Tensor, cutoff: float = _CUTOFF) -> Tensor:
    """A^{-1/2} of symmetric positive semidefinite matrices on the span of the eigenvalues above cutoff · λ_max."""
    return torch.ops.fishergraph.spectral(matrices, "inverse root", cutoff)[0]


def floor(matrices: Tensor, least: float) -> Tensor:
    """The symmetric matrices with their eigenvalues raised to at least `least` > 0."""
    return torch.ops.fishergraph.spectral(matrices, "floor", least)[0]


def _power(matrices: Tensor, exponent: float) -> Tensor:
    """A^{1/2} or A^{-1/2}."""
    return torch.ops.fishergraph.spectral(matrices, {0.5: "root", -0.5: "inverse root"}[exponent], 0.0)[0]


@dataclass(frozen=True)
class TrainedGaussian(Gaussian):
    """The single Gaussian with gradients of its eigenvalues."""

    spectral = Spectral(_power, floor)
