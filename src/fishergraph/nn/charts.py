"""Charts: coordinates of the parameters of the families that no gradient step can leave.

"diagonal-mixture"   logits of the weights, means, and log-variances
"von-mises-fisher"   logits of the weights, and κ u, any vector
"multinomial"        logits of the weights, and logits of the words
"gaussian"           the mean, and B with log Σ = (B + Bᵀ)/2, any matrix

The Gaussian needs functions of the eigenvalues of symmetric matrices with gradients that stay finite if eigenvalues are
equal. f(A) = V f(Λ) Vᵀ has the gradient V (D ∘ Vᵀ G V) Vᵀ, where D holds the divided differences of f (Daleckii and
Krein), here without a division by a zero λ_i − λ_j. All f are constant up to a bound and smooth beyond it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fishergraph.family import Family, Gaussian, choose_family
from fishergraph.family.diagonal_mixture import DiagonalMixtureTheta
from fishergraph.family.gaussian import GaussianTheta
from fishergraph.family.multinomial import MultinomialTheta
from fishergraph.family.special import Spectral, mean_length
from fishergraph.family.von_mises_fisher import VonMisesFisherTheta
from fishergraph.ops.tensor_ops import once_only

# As in `kernel_map`: smaller eigenvalues are noise of the products.
_CUTOFF = 1e-6


# --- functions of eigenvalues ------------------------------------------------------------------------------


class _Function(NamedTuple):
    """f of the eigenvalues in rising order and a number `least`, and its differences for two λ beyond the bound."""

    bound: Callable[[Tensor, float], Tensor]
    beyond: Callable[[Tensor], Tensor]
    below: Callable[[float], float]
    differences: Callable[[Tensor, Tensor], Tensor]


_FUNCTIONS = {
    # λ^{-1/2}, and λ^{1/2}, above least · λ_max, and 0 below.
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
    """Which λ lie beyond the bound, and f(λ)."""
    function = _FUNCTIONS[name]
    beyond = values > function.bound(values, least)
    return beyond, torch.where(beyond, function.beyond(torch.where(beyond, values, 1.0)), function.below(least))


@torch.library.custom_op("fishergraph::spectral", mutates_args=())
def _spectral(matrices: Tensor, name: str, least: float) -> tuple[Tensor, Tensor, Tensor]:
    """f(A) ≥ 0, NaN if A is not finite, and the eigenvalues and vectors of A, (…, d, d)."""
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
    beyond, image = _image(values, name, least)
    safe = torch.where(beyond, values, 1.0)
    both = _FUNCTIONS[name].differences(safe[..., :, None], safe[..., None, :])
    mixed = beyond[..., :, None] ^ beyond[..., None, :]
    gaps = torch.where(mixed, values[..., :, None] - values[..., None, :], 1.0)
    apart = torch.where(mixed, (image[..., :, None] - image[..., None, :]) / gaps, 0.0)
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
    slope = torch.ops.fishergraph.spectral_backward(grad.contiguous(), *ctx.saved_tensors, *ctx.function)
    return slope, None, None


_spectral.register_autograd(_gradient, setup_context=_save)
_spectral_backward.register_autograd(
    once_only("a function of eigenvalues"), setup_context=lambda ctx, inputs, output: None
)


def inverse_sqrt(matrices: Tensor, cutoff: float = _CUTOFF) -> Tensor:
    """A^{-1/2} of symmetric positive semidefinite matrices, on the span of the eigenvalues above cutoff · λ_max."""
    return torch.ops.fishergraph.spectral(matrices, "inverse root", cutoff)[0]


def floor(matrices: Tensor, least: float) -> Tensor:
    """The symmetric matrices with their eigenvalues raised to at least `least` > 0."""
    return torch.ops.fishergraph.spectral(matrices, "floor", least)[0]


def _power(matrices: Tensor, exponent: float) -> Tensor:
    """A^{1/2} or A^{-1/2}."""
    return torch.ops.fishergraph.spectral(matrices, {0.5: "root", -0.5: "inverse root"}[exponent], 0.0)[0]


@dataclass(frozen=True, repr=False)
class TrainedGaussian(Gaussian):
    """The single Gaussian with gradients of its eigenvalues."""

    spectral = Spectral(_power, floor)


# --- charts ------------------------------------------------------------------------------------------------


class Chart(NamedTuple):
    """Coordinates of a family, in blocks (anchor, feature).

    n_blocks : the number of blocks, by the number of features.
    theta : θ of log π, which may be None, the blocks, and the mean number of counts, which only counts use.
    blocks : the coordinates of θ.
    start : fills (block, head, anchor, feature).
    trained : the family, able to give gradients.
    """

    n_blocks: Callable[[int], int]
    theta: Callable[[Any, Tensor, float], Any]
    blocks: Callable[[Any], Tensor]
    start: Callable[[Tensor], Any]
    trained: Callable[[Any], Family] = lambda family: family


def _diagonal_theta(log_weights: Tensor, blocks: Tensor, trials: float) -> DiagonalMixtureTheta:
    return DiagonalMixtureTheta(log_weights, blocks[0], blocks[1].exp(), torch.zeros_like(blocks[0, 0]))


def _direction_theta(log_weights: Tensor, blocks: Tensor, trials: float) -> VonMisesFisherTheta:
    """m = A(κ) u of the vectors κ u."""
    wide = blocks[0].double()
    kappa = torch.linalg.vector_norm(wide, dim=-1)
    means = mean_length(wide.shape[-1], kappa)[1][..., None] * wide
    return VonMisesFisherTheta(log_weights, means.to(blocks.dtype), kappa)


def _direction_blocks(theta: VonMisesFisherTheta) -> Tensor:
    return choose_family("von-mises-fisher").natural(theta)[0][None]


def _count_theta(log_weights: Tensor, blocks: Tensor, trials: float) -> MultinomialTheta:
    """q = softmax of the logits; one that underflows is the smallest float, whose root a score can be divided by."""
    chances = blocks[0].softmax(dim=-1).clamp(min=torch.finfo(blocks.dtype).tiny)
    return MultinomialTheta(log_weights, chances, trials)


def _gaussian_theta(log_weights: None, blocks: Tensor, trials: float) -> GaussianTheta:
    """Σ = exp((B + Bᵀ)/2), where row i of B is block i + 1."""
    free = blocks[1:, 0].double()
    covariance = torch.linalg.matrix_exp(0.5 * (free + free.T)).to(blocks.dtype)
    return GaussianTheta(blocks[0], covariance[None], torch.zeros_like(blocks[0, 0]))


def _gaussian_blocks(theta: GaussianTheta) -> Tensor:
    values, vectors = torch.linalg.eigh(theta.covariances[0].double())
    logs = values.clamp(min=torch.finfo(theta.means.dtype).eps * values[-1]).log()
    return torch.cat([torch.as_tensor(theta.means), ((vectors * logs) @ vectors.T).to(theta.means.dtype)])[:, None]


def _start_around_points(blocks: Tensor) -> None:
    """Means in random directions of about unit length, variances 1/d."""
    d = blocks.shape[-1]
    nn.init.normal_(blocks[0], std=d**-0.5)
    spread = blocks[1] if len(blocks) == 2 else blocks[1:].diagonal(dim1=0, dim2=-1)
    nn.init.zeros_(blocks[1:])
    nn.init.constant_(spread, -math.log(d))


CHARTS = {
    "diagonal-mixture": Chart(
        n_blocks=lambda d: 2,
        theta=_diagonal_theta,
        blocks=lambda theta: torch.stack([theta.means, theta.variances.log()]),
        start=_start_around_points,
    ),
    "von-mises-fisher": Chart(lambda d: 1, _direction_theta, _direction_blocks, nn.init.normal_),
    "multinomial": Chart(lambda d: 1, _count_theta, lambda theta: theta.probabilities.log()[None], nn.init.normal_),
    "gaussian": Chart(
        n_blocks=lambda d: 1 + d,
        theta=_gaussian_theta,
        blocks=_gaussian_blocks,
        start=_start_around_points,
        trained=lambda family: TrainedGaussian(**family.get_params(deep=False)),
    ),
}
