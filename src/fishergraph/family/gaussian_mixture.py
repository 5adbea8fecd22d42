"""The mixture of p Gaussians with equal weights and covariance σ² Id; its parameters are the means (Eq. 16).

The axes are named point, anchor, feature throughout. NumPy arrays and torch tensors pass through the same lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._arrays import least_factor
from fishergraph._parallel import one_blas_thread
from fishergraph._repr import short_repr
from fishergraph._typing import Array
from fishergraph._validation import check_number
from fishergraph.family.base import Family, entropy, join, log_softmax, log_sum_exp, score_weights, split

# Points the variance is calibrated on.
_CALIBRATION_POINTS = 4096


def relative_log_joint(points: Array, anchors: Array, variance: float = 1.0) -> Any:
    """log p(x_i, z_i = j) up to a constant of the point: (⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2) / σ², (point, anchor).

    The constant is all that the responsibilities cancel. c, the mean anchor, keeps the products small where the
    data lie far from the origin.
    """
    xp = array_namespace(points, anchors)
    centre = xp.mean(anchors, axis=0, keepdims=True)  # (1, feature)
    shifted = anchors - centre
    products = (points - centre) @ shifted.T  # (point, anchor)
    return (products - 0.5 * xp.sum(shifted * shifted, axis=1)) / variance


def log_joint(points: Array, anchors: Array, variance: float = 1.0) -> Any:
    """log p(x_i, z_i = j) = log 1/p − ‖x_i − w_j‖² / 2σ² − (d/2) log 2πσ² (Eq. 16), (point, anchor)."""
    xp = array_namespace(points, anchors)
    n_anchors, n_features = anchors.shape
    from_centre = points - xp.mean(anchors, axis=0, keepdims=True)
    base = -xp.sum(from_centre * from_centre, axis=1, keepdims=True) / (2 * variance)
    constant = -math.log(n_anchors) - 0.5 * n_features * math.log(2 * math.pi * variance)
    return relative_log_joint(points, anchors, variance) + base + constant


def log_likelihood(points: Array, means: Array, variance: float = 1.0) -> Any:
    """log p_θ(x_i) = log Σ_j p(x_i, z_i = j) (Eq. 16), (point,)."""
    return log_sum_exp(log_joint(points, means, variance))


def fisher_root(n_anchors: int) -> float:
    """I(θ_0)^{1/2} ≈ p^{-1/2} (a multiple of the identity, for well separated components), the scalar of Eq. 18.

    It is measured in units of σ: the factor 1/σ is the same for every set and is left out, so that stacked
    layers keep their scale whatever the variance.
    """
    return n_anchors**-0.5


@one_blas_thread()
def calibrate_variance(points: Array, anchors: Array, target: float) -> float:
    """The variance at which the mean entropy of the responsibilities is `target` · log p, by bisection on log σ².

    This is what perplexity does in t-SNE. With one anchor, or anchors that coincide, every variance gives the same
    responsibilities and the answer is 1.
    """
    xp = array_namespace(points, anchors)
    points = points[:: max(1, len(points) // _CALIBRATION_POINTS)][:_CALIBRATION_POINTS]
    scores = xp.astype(relative_log_joint(points, anchors, 1.0), xp.float64)
    spread = float(xp.mean(xp.max(scores, axis=1) - xp.min(scores, axis=1)))
    if len(anchors) == 1 or spread == 0:
        return 1.0
    wanted = target * np.log(len(anchors))
    # The borders stay on the device of the points: no synchronisation before the end.
    low = xp.asarray(np.log(spread) - 20, dtype=xp.float64, device=device_of(points))
    high = low + 40
    for _ in range(60):
        middle = 0.5 * (low + high)
        higher = xp.mean(entropy(log_softmax(scores / xp.exp(middle)))) < wanted
        low, high = xp.where(higher, middle, low), xp.where(higher, high, middle)
    # A smaller value is the rounding of points that coincide, and 1/σ² would leave the range of their dtype.
    return max(float(xp.exp(0.5 * (low + high))), least_factor(anchors.dtype))


class GaussianMixtureTheta(NamedTuple):
    """anchors (…, anchor, feature), the means; and σ², which is not a parameter."""

    anchors: Array
    variance: float = 1.0

    __repr__ = short_repr


@dataclass(frozen=True, repr=False)
class CentreMixture(Family[GaussianMixtureTheta]):
    """Mixtures of equal weights and variances, whose only parameters are the means: t(x) = x, p · d coordinates."""

    theta: ClassVar[type[Any]] = GaussianMixtureTheta
    fused: ClassVar[bool] = True

    @property
    def plain(self) -> bool:
        """Whether φ is that of Eq. 18."""
        return self.fisher == "approximate" and self.tangent == "estimate" and self.power == 1 and not self.unit

    def fisher_root(self, n_anchors: int) -> float:
        """I(θ_0)^{1/2}, the scalar of Eq. 18."""
        return fisher_root(n_anchors)

    def block_phi(
        self, means: Array, mass: Array, theta_0: GaussianMixtureTheta, *, root: Array | None, prior: float
    ) -> Any:
        """φ of a row block; that of Eq. 18 is written over the means, which need not leave the cache."""
        if not self.plain:
            return super().block_phi(means, mass, theta_0, root=root, prior=prior)
        means -= theta_0.anchors
        means *= self.fisher_root(theta_0.anchors.shape[0])
        return array_namespace(means).reshape(means, (means.shape[0], means.shape[1] * means.shape[2]))

    def statistics(self, points: Array, theta: GaussianMixtureTheta) -> Any:
        """t(x) = x, (point, feature)."""
        return points

    def base_measure(self, points: Array, theta: GaussianMixtureTheta) -> Any:
        """h(x) = log p(x, z = j) less the relative log-joint, (point,)."""
        gaps = log_joint(points, theta.anchors, theta.variance) - self.scores(points, theta)
        return gaps[:, 0]

    def natural(self, theta: GaussianMixtureTheta) -> tuple[Any, Any]:
        """η = μ/σ² and c = −‖μ‖²/2σ²."""
        xp = array_namespace(theta.anchors)
        return theta.anchors / theta.variance, -0.5 * xp.vecdot(theta.anchors, theta.anchors) / theta.variance

    def scores(self, statistics: Array, theta: GaussianMixtureTheta) -> Any:
        """The relative log-joint, measured from the mean anchor, (point, anchor)."""
        return relative_log_joint(statistics, theta.anchors, theta.variance)

    def mean_statistics(self, theta: GaussianMixtureTheta) -> Any:
        """E[t] = μ."""
        return theta.anchors

    def sample(self, theta: GaussianMixtureTheta, n: int, rng: np.random.Generator) -> np.ndarray:
        p, d = theta.anchors.shape
        return theta.anchors[rng.integers(p, size=n)] + math.sqrt(theta.variance) * rng.standard_normal((n, d))

    def estimate(
        self, means: Array, mass: Array, theta_0: GaussianMixtureTheta, prior: float = 0.0
    ) -> GaussianMixtureTheta:
        """μ = E x (Eq. 17)."""
        return GaussianMixtureTheta(means, theta_0.variance)

    def single(self, points: Array) -> GaussianMixtureTheta:
        """The mean of all points, and the mean of their variances."""
        xp = array_namespace(points)
        wide = xp.astype(points, xp.float64)
        variance = float(xp.mean(xp.var(wide, axis=0)))
        variance = max(variance, least_factor(points.dtype)) if variance > 0 else 1.0
        return GaussianMixtureTheta(xp.mean(wide, axis=0, keepdims=True), variance)

    def whitened(self, theta: GaussianMixtureTheta, theta_0: GaussianMixtureTheta) -> Any:
        """p^{-1/2} (μ − w) (Eq. 18)."""
        return join([fisher_root(theta_0.anchors.shape[0]) * (theta.anchors - theta_0.anchors)])

    def unwhitened(self, phi: Array, theta_0: GaussianMixtureTheta) -> GaussianMixtureTheta:
        (steps,) = split(phi, *theta_0.anchors.shape)
        return GaussianMixtureTheta(theta_0.anchors + steps / fisher_root(theta_0.anchors.shape[0]), theta_0.variance)

    def score(self, means: Array, mass: Array, theta_0: GaussianMixtureTheta, prior: float = 0.0) -> Any:
        """p^{1/2} Σ α (x − w) over the sum of the weights."""
        xp = array_namespace(means)
        n_anchors = theta_0.anchors.shape[0]
        scale = score_weights(mass, xp.full_like(mass[0, :], -math.log(n_anchors)), prior)
        return join([scale * (means - theta_0.anchors)])

    def component_divergences(self, p: GaussianMixtureTheta, q: GaussianMixtureTheta) -> Any:
        """KL = ½ (d (r − 1 − log r) + ‖μ_p − μ_q‖²/σ_q²) with r = σ_p²/σ_q², (component of p, component of q)."""
        xp = array_namespace(p.anchors)
        gaps = p.anchors[:, None, :] - q.anchors[None, :, :]
        ratio = p.variance / q.variance
        spread = p.anchors.shape[1] * (ratio - 1 - math.log(ratio))
        return 0.5 * (spread + xp.sum(gaps * gaps, axis=-1) / q.variance)


@dataclass(frozen=True, repr=False)
class GaussianMixture(CentreMixture):
    """Gaussian mixtures with one variance, the family of the paper.

    p_θ(x) = (1/p) Σ_j N(x; μ_j, σ² Id) (Eq. 16) and φ = p^{-1/2} (μ − w) (Eq. 18), in units of σ in both readings.

    Parameters
    ----------
    fisher, tangent, power, unit : options
        See `Family`.
    variance : float or "auto", default="auto"
        The variance σ² of every component. "auto" takes the value at which the mean entropy of the responsibilities is
        ``sharpness * log(n_anchors)``, layer by layer.
    sharpness : float in (0, 1], default=0.9
        Near 0 every member has one anchor; 1 is mean pooling. Used if the variance is "auto".

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `family`.
    DiagonalMixture : Weights and variances are parameters, too.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, GaussianMixture
    >>> FisherEmbedding(family=GaussianMixture(sharpness=0.5))
    FisherEmbedding(family=GaussianMixture(sharpness=0.5))
    """

    variance: float | str = "auto"
    sharpness: float = 0.9

    name: ClassVar[str] = "gaussian-mixture"

    def check(self) -> None:
        super().check()
        if not isinstance(self.variance, str) or self.variance != "auto":
            check_number(self.variance, "variance (or 'auto')", least=1e-12, most=1e12)
        check_number(self.sharpness, "sharpness", strict=True, most=1.0)

    def at_centres(self, centres: Array, members: Array) -> GaussianMixtureTheta:
        """θ_0 with these means, and the variance that was asked for or that goes with the members."""
        if isinstance(self.variance, str):
            return GaussianMixtureTheta(centres, calibrate_variance(members, centres, self.sharpness))
        return GaussianMixtureTheta(centres, float(self.variance))
