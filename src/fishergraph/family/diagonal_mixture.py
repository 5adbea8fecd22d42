"""The mixture of Gaussians with diagonal covariances; its parameters are the weights, the means and the variances.

    p_θ(x) = Σ_j π_j N(x; μ_j, diag v_j)

Its Fisher vector, in the reading "score", is that of Sánchez et al. (2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from fishergraph._arrays import least_factor
from fishergraph._repr import short_repr
from fishergraph._typing import Array
from fishergraph.family.base import (
    Family,
    join,
    log_mixture_weights,
    mixture_weights,
    pick_components,
    score_weights,
    split,
    unwhitened_weights,
    whitened_weights,
)

# A variance is estimated as this part of that of θ_0 at least: one member has none, and its likelihood no bound.
LEAST_VARIANCE = 1e-3


class DiagonalMixtureTheta(NamedTuple):
    """log π (…, anchor); means and variances (…, anchor, feature); and the origin (feature,) that moments are taken
    from, which is no parameter: near the data it keeps the digits of a variance."""

    log_weights: Array
    means: Array
    variances: Array
    origin: Array

    __repr__ = short_repr


@dataclass(frozen=True, repr=False)
class DiagonalMixture(Family[DiagonalMixtureTheta]):
    """Gaussian mixtures with weights and diagonal covariances.

    p_θ(x) = Σ_j π_j N(x; μ_j, diag v_j), t(x) = (x, x²) and φ = (weights ‖ means ‖ variances), p (2d + 1) numbers.

    Parameters
    ----------
    fisher, tangent, power, unit : options
        See `Family`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `family`.
    GaussianMixture : One variance for all components.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, DiagonalMixture
    >>> FisherEmbedding(family=DiagonalMixture(tangent="score"))
    FisherEmbedding(family=DiagonalMixture(tangent='score'))
    """

    name: ClassVar[str] = "diagonal-mixture"
    theta: ClassVar[type[Any]] = DiagonalMixtureTheta

    def n_statistics(self, n_features: int) -> int:
        """2d."""
        return 2 * n_features

    def statistics(self, points: Array, theta: DiagonalMixtureTheta) -> Any:
        """t(x) = (x − o, (x − o)²), (point, 2 · feature)."""
        shifted = points - theta.origin
        return array_namespace(shifted).concat([shifted, shifted * shifted], axis=1)

    def natural(self, theta: DiagonalMixtureTheta) -> tuple[Any, Any]:
        """η = (μ/v, −1/2v) and c = log π − Σ (μ²/v + log v)/2, with μ measured from the origin."""
        xp = array_namespace(theta.means)
        means, precisions = theta.means - theta.origin, 1 / theta.variances
        offsets = theta.log_weights - 0.5 * xp.sum(means * means * precisions + xp.log(theta.variances), axis=-1)
        return xp.concat([means * precisions, -0.5 * precisions], axis=-1), offsets

    def mean_statistics(self, theta: DiagonalMixtureTheta) -> Any:
        """E[t] = (μ, μ² + v), with μ measured from the origin."""
        means = theta.means - theta.origin
        return array_namespace(means).concat([means, means * means + theta.variances], axis=-1)

    def sample(self, theta: DiagonalMixtureTheta, n: int, rng: np.random.Generator) -> np.ndarray:
        labels = pick_components(theta.log_weights, n, rng)
        noise = rng.standard_normal((n, theta.means.shape[-1]))
        return theta.means[labels] + np.sqrt(theta.variances[labels]) * noise

    def estimate(
        self, means: Array, mass: Array, theta_0: DiagonalMixtureTheta, prior: float = 0.0
    ) -> DiagonalMixtureTheta:
        """μ = E x, v = E x² − μ² (at least a thousandth of θ_0's), π = the fractions of the mass (Eq. 11)."""
        xp = array_namespace(means)
        first, second = _moments(means)
        variances = xp.maximum(second - first * first, LEAST_VARIANCE * theta_0.variances)
        weights = log_mixture_weights(mass, theta_0.log_weights, prior)
        return DiagonalMixtureTheta(weights, first + theta_0.origin, variances, theta_0.origin)

    def single(self, points: Array) -> DiagonalMixtureTheta:
        """The mean and the variances of all points; a constant feature has a thousandth of their mean, or one."""
        xp = array_namespace(points)
        wide = xp.astype(points, xp.float64)
        mean, variances = xp.mean(wide, axis=0), xp.var(wide, axis=0)
        spread = xp.mean(variances)
        least = LEAST_VARIANCE * xp.clip(spread, min=least_factor(points.dtype)) if spread > 0 else xp.ones_like(spread)
        variances = xp.maximum(variances, least)
        return DiagonalMixtureTheta(xp.zeros_like(mean[:1]), mean[None, :], variances[None, :], mean)

    def whitened(self, theta: DiagonalMixtureTheta, theta_0: DiagonalMixtureTheta) -> Any:
        """((π − π_0)/√π_0 ‖ √π_0 (μ − μ_0)/√v_0 ‖ √(π_0/2) (v − v_0)/v_0): I = diag(1/π, π/v, π/2v²)."""
        xp = array_namespace(theta.means)
        roots = xp.exp(0.5 * theta_0.log_weights)[:, None]
        means = roots * (theta.means - theta_0.means) / xp.sqrt(theta_0.variances)
        variances = roots * math.sqrt(0.5) * (theta.variances / theta_0.variances - 1)
        return join([whitened_weights(xp.exp(theta.log_weights), theta_0.log_weights), means, variances])

    def unwhitened(self, phi: Array, theta_0: DiagonalMixtureTheta) -> DiagonalMixtureTheta:
        xp = array_namespace(phi)
        p, d = theta_0.means.shape
        weights, means, variances = split(phi, p, 1, d, d)
        roots = xp.exp(0.5 * theta_0.log_weights)[:, None]
        variances = theta_0.variances * xp.clip(1 + math.sqrt(2.0) * variances / roots, min=LEAST_VARIANCE)
        means = theta_0.means + means * xp.sqrt(theta_0.variances) / roots
        return DiagonalMixtureTheta(
            unwhitened_weights(weights[..., 0], theta_0.log_weights), means, variances, theta_0.origin
        )

    def score(self, means: Array, mass: Array, theta_0: DiagonalMixtureTheta, prior: float = 0.0) -> Any:
        """((π − π_0)/√π_0 ‖ Σ α (x − μ_0)/(√v_0 √π_0) ‖ Σ α ((x − μ_0)²/v_0 − 1)/√(2π_0)) over the sum of weights."""
        xp = array_namespace(means)
        first, second = _moments(means)
        centres = theta_0.means - theta_0.origin
        scale = score_weights(mass, theta_0.log_weights, prior)
        spread = second - 2 * centres * first + centres * centres  # about μ_0
        weights = whitened_weights(mixture_weights(mass, theta_0.log_weights, prior), theta_0.log_weights)
        ahead = scale * (first - centres) / xp.sqrt(theta_0.variances)
        return join([weights, ahead, math.sqrt(0.5) * scale * (spread / theta_0.variances - 1)])

    def component_divergences(self, p: DiagonalMixtureTheta, q: DiagonalMixtureTheta) -> Any:
        """KL = ½ Σ (v_p/v_q − 1 − log(v_p/v_q) + (μ_p − μ_q)²/v_q), (component of p, component of q)."""
        xp = array_namespace(p.means)
        ratio = p.variances[:, None, :] / q.variances[None, :, :]
        gap = p.means[:, None, :] - q.means[None, :, :]
        return 0.5 * xp.sum(ratio - 1 - xp.log(ratio) + gap * gap / q.variances[None, :, :], axis=-1)


def _moments(means: Array) -> tuple[Any, Any]:
    """The means of x and of x², both from the origin."""
    d = means.shape[-1] // 2
    return means[..., :d], means[..., d:]
