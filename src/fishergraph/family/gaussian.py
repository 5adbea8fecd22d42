"""The single Gaussian with mean and full covariance: the mixture of one.

    p_θ(x) = N(x; μ, Σ)

The single Gaussian of fixed covariance is the Gaussian mixture of one anchor, that of diagonal covariance the diagonal
mixture of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._arrays import least_factor
from fishergraph._errors import InputError
from fishergraph._repr import short_repr
from fishergraph._typing import Array
from fishergraph.family.base import Family, join, split
from fishergraph.family.special import Spectral, pack, pack_products, symmetric_floor, symmetric_power, unpack

# Eigenvalues of a covariance, in units of that of θ_0, are at least this.
LEAST_VARIANCE = 1e-3
# φ has d (d + 3) / 2 numbers; beyond it a row block no longer fits a cache, and its sample no longer fits a machine.
MOST_FEATURES = 128


class GaussianTheta(NamedTuple):
    """means (…, 1, feature), covariances (…, 1, feature, feature), and the origin (feature,) of the moments."""

    means: Array
    covariances: Array
    origin: Array

    __repr__ = short_repr


@dataclass(frozen=True, repr=False)
class Gaussian(Family[GaussianTheta]):
    """One Gaussian with a full covariance: p_θ(x) = N(x; μ, Σ).

    t(x) = (x, xxᵀ) and φ = (Σ_0^{-1/2} (μ − μ_0) ‖ Σ_0^{-1/2} (Σ − Σ_0) Σ_0^{-1/2} / √2), d (d + 3) / 2 numbers.

    Parameters
    ----------
    fisher, tangent, power, unit : options
        See `Family`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `family`.
    DiagonalMixture : Several components.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Gaussian
    >>> FisherEmbedding(family=Gaussian(tangent="score"))
    FisherEmbedding(family=Gaussian(tangent='score'))
    """

    name: ClassVar[str] = "gaussian"
    theta: ClassVar[type[Any]] = GaussianTheta
    # Functions of eigenvalues; networks replace them by functions that have gradients.
    spectral: ClassVar[Spectral] = Spectral(symmetric_power, symmetric_floor)

    def check_width(self, n_features: int) -> None:
        """Raise if points have too many features for a full covariance."""
        if n_features > MOST_FEATURES:
            raise InputError(
                f"the family 'gaussian' takes points of at most {MOST_FEATURES} features, got {n_features}; lower "
                "dim, or use 'diagonal-mixture' with one anchor."
            )

    def n_components(self, n_anchors: int) -> int:
        """One, however many anchors are asked for."""
        return 1

    def n_statistics(self, n_features: int) -> int:
        """d (d + 3) / 2."""
        return n_features * (n_features + 3) // 2

    def width(self, n_anchors: int, n_features: int) -> int:
        """d (d + 3) / 2, however many anchors are asked for."""
        return self.n_statistics(n_features)

    def statistics(self, points: Array, theta: GaussianTheta) -> Any:
        """t(x) = (x − o, (x − o)(x − o)ᵀ packed), (point, feature · (feature + 3)/2)."""
        shifted = points - theta.origin
        return array_namespace(shifted).concat([shifted, pack_products(shifted)], axis=1)

    def natural(self, theta: GaussianTheta) -> tuple[Any, Any]:
        """η = (Σ⁻¹μ, −Σ⁻¹/2 packed) and c = −(μᵀΣ⁻¹μ + log det Σ)/2, with μ measured from the origin."""
        xp = array_namespace(theta.means)
        means = theta.means - theta.origin
        precisions = xp.linalg.inv(theta.covariances)
        towards = (precisions @ means[..., None])[..., 0]
        offsets = -0.5 * (xp.vecdot(means, towards) + xp.linalg.slogdet(theta.covariances)[1])
        return xp.concat([towards, -0.5 * pack(precisions)], axis=-1), offsets

    def mean_statistics(self, theta: GaussianTheta) -> Any:
        """E[t] = (μ, μμᵀ + Σ packed), with μ measured from the origin."""
        means = theta.means - theta.origin
        products = means[..., :, None] * means[..., None, :] + theta.covariances
        return array_namespace(means).concat([means, pack(products)], axis=-1)

    def sample(self, theta: GaussianTheta, n: int, rng: np.random.Generator) -> np.ndarray:
        root = np.linalg.cholesky(theta.covariances[0])
        return theta.means[0] + rng.standard_normal((n, theta.means.shape[-1])) @ root.T

    def estimate(self, means: Array, mass: Array, theta_0: GaussianTheta, prior: float = 0.0) -> GaussianTheta:
        """μ = E x, Σ = E xxᵀ − μμᵀ, with no eigenvalue below a thousandth in units of Σ_0 (Eq. 11)."""
        d = theta_0.means.shape[-1]
        first = means[..., :d]
        covariances = unpack(means[..., d:], d) - first[..., :, None] * first[..., None, :]
        return GaussianTheta(first + theta_0.origin, self._bounded(covariances, theta_0.covariances), theta_0.origin)

    def _bounded(self, covariances: Array, units: Array) -> Any:
        """The covariances with no eigenvalue below the least, measured in units of another covariance."""
        inverse, root = self.spectral.power(units, -0.5), self.spectral.power(units, 0.5)
        return root @ self.spectral.floor(inverse @ covariances @ inverse, LEAST_VARIANCE) @ root

    def single(self, points: Array) -> GaussianTheta:
        """The mean and the covariance of all points, and a thousandth of the mean variance, or one, on its diagonal."""
        xp = array_namespace(points)
        wide = xp.astype(points, xp.float64)
        mean = xp.mean(wide, axis=0)
        covariance = (wide - mean).T @ (wide - mean) / wide.shape[0]
        spread = xp.mean(xp.linalg.diagonal(covariance))
        ridge = LEAST_VARIANCE * xp.clip(spread, min=least_factor(points.dtype)) if spread > 0 else xp.ones_like(spread)
        covariance = covariance + ridge * xp.eye(wide.shape[1], dtype=wide.dtype, device=device_of(wide))
        return GaussianTheta(mean[None, :], covariance[None, :, :], mean)

    def whitened(self, theta: GaussianTheta, theta_0: GaussianTheta) -> Any:
        """(Σ_0^{-1/2} (μ − μ_0) ‖ Σ_0^{-1/2} (Σ − Σ_0) Σ_0^{-1/2} / √2): I = (Σ⁻¹, Σ⁻¹ ⊗ Σ⁻¹ / 2)."""
        root = self.spectral.power(theta_0.covariances, -0.5)
        means = ((theta.means - theta_0.means)[..., None, :] @ root)[..., 0, :]
        return join([means, math.sqrt(0.5) * pack(root @ (theta.covariances - theta_0.covariances) @ root)])

    def unwhitened(self, phi: Array, theta_0: GaussianTheta) -> GaussianTheta:
        _, d = theta_0.means.shape
        means, spread = split(phi, 1, d, d * (d + 1) // 2)
        root = self.spectral.power(theta_0.covariances, 0.5)
        covariances = theta_0.covariances + math.sqrt(2.0) * (root @ unpack(spread, d) @ root)
        means = theta_0.means + (means[..., None, :] @ root)[..., 0, :]
        return GaussianTheta(means, self._bounded(covariances, theta_0.covariances), theta_0.origin)

    def score(self, means: Array, mass: Array, theta_0: GaussianTheta, prior: float = 0.0) -> Any:
        """(Σ_0^{-1/2} (E x − μ_0) ‖ (Σ_0^{-1/2} E (x − μ_0)(x − μ_0)ᵀ Σ_0^{-1/2} − Id) / √2)."""
        d = theta_0.means.shape[-1]
        root = self.spectral.power(theta_0.covariances, -0.5)
        first = means[..., :d]
        gap = first - (theta_0.means - theta_0.origin)
        # E (x − μ_0)(x − μ_0)ᵀ = E xxᵀ − E x E xᵀ + (E x − μ_0)(E x − μ_0)ᵀ
        spread = unpack(means[..., d:], d) - first[..., :, None] * first[..., None, :]
        spread = spread + gap[..., :, None] * gap[..., None, :] - theta_0.covariances
        return join([(gap[..., None, :] @ root)[..., 0, :], math.sqrt(0.5) * pack(root @ spread @ root)])

    def component_divergences(self, p: GaussianTheta, q: GaussianTheta) -> Any:
        """KL = ½ (tr Σ_q⁻¹Σ_p − d − log det Σ_q⁻¹Σ_p + (μ_p − μ_q)ᵀ Σ_q⁻¹ (μ_p − μ_q)), (1, 1)."""
        xp = array_namespace(p.means)
        precision, gap = xp.linalg.inv(q.covariances[0]), p.means[0] - q.means[0]
        logs = xp.linalg.slogdet(p.covariances[0])[1] - xp.linalg.slogdet(q.covariances[0])[1]
        trace = xp.sum(precision * p.covariances[0])
        return xp.reshape(0.5 * (trace - gap.shape[0] - logs + gap @ precision @ gap), (1, 1))
