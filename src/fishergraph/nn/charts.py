"""Charts: coordinates of the families' parameters that no gradient step can leave.

"diagonal-mixture"   logits of the weights, means, and log-variances
"von-mises-fisher"   logits of the weights, and κ u, any vector
"multinomial"        logits of the weights, and logits of the words
"gaussian"           the mean, and B with log Σ = (B + Bᵀ)/2, any matrix
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fishergraph.family import Family, choose_family
from fishergraph.family.diagonal_mixture import DiagonalMixtureTheta
from fishergraph.family.gaussian import GaussianTheta
from fishergraph.family.multinomial import MultinomialTheta
from fishergraph.family.special import mean_length
from fishergraph.family.von_mises_fisher import VonMisesFisherTheta
from fishergraph.nn.spectral import TrainedGaussian


class Chart(NamedTuple):
    """Coordinates of a family, in blocks (anchor, feature): their number, θ of them, the way back, and a start.

    θ takes log π, which it may lack, the blocks, and the mean number of counts, which nobody but counts looks at.
    """

    n_blocks: Callable[[int], int]  # by the number of features
    theta: Callable[[Any, Tensor, float], Any]
    blocks: Callable[[Any], Tensor]
    start: Callable[[Tensor], Any]  # fills (block, head, anchor, feature)
    trained: Callable[[Any], Family] = lambda family: family  # the family, able to give gradients


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
    """q = softmax of the logits; one that underflows is the smallest number, by whose root a score can be divided."""
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
    return torch.cat([theta.means, ((vectors * logs) @ vectors.T).to(theta.means.dtype)])[:, None]


def _start_around_points(blocks: Tensor) -> None:
    """Means in random directions of about unit length, variances 1/d."""
    d = blocks.shape[-1]
    nn.init.normal_(blocks[0], std=d**-0.5)
    spread = blocks[1] if len(blocks) == 2 else blocks[1:].diagonal(dim1=0, dim2=-1)
    nn.init.zeros_(blocks[1:])
    nn.init.constant_(spread, -math.log(d))


CHARTS = {
    "diagonal-mixture": Chart(
        lambda d: 2, _diagonal_theta, lambda theta: torch.stack([theta.means, theta.variances.log()]),
        _start_around_points,
    ),
    "von-mises-fisher": Chart(lambda d: 1, _direction_theta, _direction_blocks, nn.init.normal_),
    "multinomial": Chart(
        lambda d: 1, _count_theta, lambda theta: theta.probabilities.log()[None], nn.init.normal_
    ),
    "gaussian": Chart(
        lambda d: 1 + d, _gaussian_theta, _gaussian_blocks, _start_around_points,
        lambda family: TrainedGaussian(**vars(family)),
    ),
}  # fmt: skip
