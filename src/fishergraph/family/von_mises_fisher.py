"""The mixture of von Mises–Fisher densities, for directions: unit vectors in R^d.

    p_θ(x) = Σ_j π_j C_d(κ_j) exp(κ_j ⟨u_j, x⟩),    C_d(κ) = κ^{d/2−1} / ((2π)^{d/2} I_{d/2−1}(κ)),    ‖x‖ = ‖u_j‖ = 1

The coordinates are the means m_j = E[x | j] = A(κ_j) u_j, inside the unit ball: the estimate of one direction is
itself, where its concentration would be infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from fishergraph._arrays import plain_row
from fishergraph._errors import InputError
from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rows
from fishergraph.family.base import (
    Family,
    join,
    log_mixture_weights,
    mixture_weights,
    pick_components,
    score_weights,
    split,
    unit_normalize,
    unwhitened_weights,
    whitened_weights,
)
from fishergraph.family.special import bessel, concentration, mean_length
from fishergraph.family.support import first_zero_row

# Means are at most so long: a single direction has no finite concentration.
MOST_LENGTH = 1 - 1e-4


class VonMisesFisherTheta(NamedTuple):
    """log π (…, anchor) and the means m = A(κ) u of the components, (…, anchor, feature).

    The concentrations κ (…, anchor) follow from the means; θ_0 of a layer has them beside the means.
    """

    log_weights: Array
    means: Array
    concentrations: Any = None  # an array, or None

    __repr__ = short_repr


@dataclass(frozen=True, repr=False)
class VonMisesFisherMixture(Family[VonMisesFisherTheta]):
    """Von Mises–Fisher mixtures for directions.

    p_θ(x) = Σ_j π_j C_d(κ_j) exp(κ_j ⟨u_j, x⟩), t(x) = x / ‖x‖ and φ = (weights ‖ means), p (d + 1) numbers.

    Parameters
    ----------
    fisher, tangent, power, unit : options
        See `Family`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `family`.
    MultinomialMixture : For counts.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, VonMisesFisherMixture
    >>> FisherEmbedding(family=VonMisesFisherMixture(tangent="score"))
    FisherEmbedding(family=VonMisesFisherMixture(tangent='score'))
    """

    name: ClassVar[str] = "von-mises-fisher"
    theta: ClassVar[type[Any]] = VonMisesFisherTheta
    support: ClassVar[str] = "directions"
    spherical: ClassVar[bool] = True

    def check_points(self, points: Rows, name: str = "X", name_row: Callable[[int], str] = plain_row) -> None:
        """Raise if a row is zero: it has no direction."""
        row = first_zero_row(points)
        if row is not None:
            raise InputError(
                parameter=name,
                expected="hold directions, rows that are not zero, for the family 'von-mises-fisher'",
                got=f"zeros in {name_row(row)} (the first bad one)",
                advice="drop such rows, or use another family",
            )

    def statistics(self, points: Array, theta: VonMisesFisherTheta) -> Any:
        """t(x) = x / ‖x‖, (point, feature); a zero row, which later layers may have, says nothing."""
        return unit_normalize(points)

    def natural(self, theta: VonMisesFisherTheta) -> tuple[Any, Any]:
        """η = κ u and c = log π + log (κ^{d/2−1} / I_{d/2−1}(κ))."""
        log, ratio = bessel(0.5 * theta.means.shape[-1] - 1, _kappas(theta))
        return theta.means / _like(ratio, theta.means)[..., None], theta.log_weights - _like(log, theta.means)

    def mean_statistics(self, theta: VonMisesFisherTheta) -> Any:
        """E[t] = m."""
        return theta.means

    def concentrations(self, theta: VonMisesFisherTheta) -> Any:
        """κ_j with A(κ_j) = ‖m_j‖, (…, anchor)."""
        return _like(_kappas(theta), theta.means)

    def sample(self, theta: VonMisesFisherTheta, n: int, rng: np.random.Generator) -> np.ndarray:
        """n directions of p_θ, (point, feature)."""
        from scipy.stats import uniform_direction, vonmises_fisher

        labels = pick_components(theta.log_weights, n, rng)
        if theta.means.shape[-1] == 1:  # two directions, which SciPy does not support
            return np.where(rng.random((n, 1)) < 0.5 * (1 + theta.means[labels]), 1.0, -1.0)
        points, kappas = np.empty((n, theta.means.shape[-1])), self.concentrations(theta)
        for j, mean in enumerate(np.asarray(theta.means)):
            rows, length = np.flatnonzero(labels == j), float(np.linalg.norm(mean))
            if len(rows) and kappas[j] > 0:
                density: Any = vonmises_fisher
                points[rows] = density(mean / length, float(kappas[j])).rvs(len(rows), random_state=rng)
            elif len(rows):
                points[rows] = uniform_direction(len(mean)).rvs(len(rows), random_state=rng)
        return points

    def estimate(
        self, means: Array, mass: Array, theta_0: VonMisesFisherTheta, prior: float = 0.0
    ) -> VonMisesFisherTheta:
        """m = E t, of length 1 − 10⁻⁴ at most, and π = the fractions of the mass (Eq. 11)."""
        return VonMisesFisherTheta(log_mixture_weights(mass, theta_0.log_weights, prior), _inside(means))

    def single(self, points: Array) -> VonMisesFisherTheta:
        """The mean of all directions."""
        xp = array_namespace(points)
        mean = xp.mean(unit_normalize(xp.astype(points, xp.float64)), axis=0, keepdims=True)
        return self.smoothed(
            VonMisesFisherTheta(xp.zeros_like(mean[:, 0]), _inside(mean)), mean, xp.ones_like(mean[:, 0])
        )

    def smoothed(self, theta: VonMisesFisherTheta, means: Array, mass: Array) -> VonMisesFisherTheta:
        """θ itself, with its concentrations."""
        return theta._replace(concentrations=self.concentrations(theta._replace(concentrations=None)))

    def whitened(self, theta: VonMisesFisherTheta, theta_0: VonMisesFisherTheta) -> Any:
        """((π − π_0)/√π_0 ‖ √π_0 I_j^{1/2} (m − m_0)) with I_j = uuᵀ / A' + (Id − uuᵀ) κ / A."""
        xp = array_namespace(theta.means)
        roots = xp.exp(0.5 * theta_0.log_weights)[:, None]
        means = roots * stretched(theta.means - theta_0.means, theta_0, -0.5)
        return join([whitened_weights(xp.exp(theta.log_weights), theta_0.log_weights), means])

    def unwhitened(self, phi: Array, theta_0: VonMisesFisherTheta) -> VonMisesFisherTheta:
        xp = array_namespace(phi)
        weights, means = split(phi, theta_0.means.shape[0], 1, theta_0.means.shape[1])
        roots = xp.exp(0.5 * theta_0.log_weights)[:, None]
        means = theta_0.means + stretched(means / roots, theta_0, 0.5)
        return VonMisesFisherTheta(unwhitened_weights(weights[..., 0], theta_0.log_weights), _inside(means))

    def score(self, means: Array, mass: Array, theta_0: VonMisesFisherTheta, prior: float = 0.0) -> Any:
        """((π − π_0)/√π_0 ‖ Σ α I_j^{1/2} (x − m_0)/√π_0) over the sum of the weights."""
        scale = score_weights(mass, theta_0.log_weights, prior)
        weights = whitened_weights(mixture_weights(mass, theta_0.log_weights, prior), theta_0.log_weights)
        return join([weights, scale * stretched(means - theta_0.means, theta_0, -0.5)])

    def component_divergences(self, p: VonMisesFisherTheta, q: VonMisesFisherTheta) -> Any:
        """KL = ⟨η_p − η_q, m_p⟩ + log C(κ_p) − log C(κ_q), (component of p, component of q)."""
        xp = array_namespace(p.means)
        eta_p, offsets_p = self.natural(p._replace(log_weights=0 * p.log_weights))
        eta_q, offsets_q = self.natural(q._replace(log_weights=0 * q.log_weights))
        return (xp.vecdot(eta_p, p.means) + offsets_p)[:, None] - p.means @ eta_q.T - offsets_q[None, :]


def _kappas(theta: VonMisesFisherTheta) -> Any:
    """κ of the components, (…, anchor), in float64: what follows are differences of numbers close to one."""
    xp = array_namespace(theta.means)
    if theta.concentrations is not None:
        return xp.astype(theta.concentrations, xp.float64)
    wide = xp.astype(theta.means, xp.float64)
    squares = xp.vecdot(wide, wide)
    live = squares > 0
    length = xp.where(live, xp.sqrt(xp.where(live, squares, xp.ones_like(squares))), xp.zeros_like(squares))
    return concentration(theta.means.shape[-1], length)


def stretched(vectors: Array, theta: VonMisesFisherTheta, exponent: float) -> Any:
    """Cov_j^exponent · vectors, (…, anchor, feature), with Cov_j = A' uuᵀ + (A/κ) (Id − uuᵀ) at θ."""
    xp, means = array_namespace(vectors), theta.means
    _, ratio, slope = mean_length(means.shape[-1], _kappas(theta))
    along, across = _like(slope**exponent, means)[..., None], _like(ratio**exponent, means)[..., None]
    u = xp.reshape(unit_normalize(xp.reshape(means, (-1, means.shape[-1]))), means.shape)
    return across * vectors + (along - across) * xp.sum(u * vectors, axis=-1, keepdims=True) * u


def _inside(means: Array) -> Any:
    """The means, shortened where they are longer than a density's can be."""
    xp = array_namespace(means)
    squares = xp.vecdot(means, means)[..., None]
    long = squares > MOST_LENGTH**2
    return xp.where(long, means * MOST_LENGTH / xp.sqrt(xp.where(long, squares, xp.ones_like(squares))), means)


def _like(values: Array, means: Array) -> Any:
    return array_namespace(means).astype(values, means.dtype)
