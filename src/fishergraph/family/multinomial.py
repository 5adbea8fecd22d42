"""The mixture of multinomials, for counts and tags; a tag is one count, and its density categorical.

    p_θ(x) = Σ_j π_j · n! / Π_w x_w! · Π_w q_jw^{x_w},    n = Σ_w x_w, which says nothing of z

The coordinates are 2 √q_j, in which the Fisher matrix is the same everywhere: √q lies on a sphere, and its chords are
the Hellinger distance. No probability of zero makes it infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from fishergraph._arrays import check_in_range, plain_row
from fishergraph._errors import InputError
from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rows
from fishergraph._validation import check_number
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
from fishergraph.family.gaussian_mixture import GaussianMixture
from fishergraph.family.special import log_factorial
from fishergraph.family.support import first_negative


class MultinomialTheta(NamedTuple):
    """log π (…, anchor), the probabilities q (…, anchor, feature), and the mean number of counts of a point."""

    log_weights: Array
    probabilities: Array
    trials: float

    __repr__ = short_repr


@dataclass(frozen=True, repr=False)
class MultinomialMixture(Family[MultinomialTheta]):
    """Multinomial mixtures for counts: p_θ(x) = Σ_j π_j Mult(x; n, q_j).

    t(x) = x and φ = (weights ‖ 2 √n̄ √π (√q − √q_0)), p (d + 1) numbers. The first layer reads X as it is.

    Parameters
    ----------
    fisher, tangent, power, unit : options
        See `Family`.
    smoothing : float, default=0.5
        The counts that every word has beforehand in every component of θ_0: a Dirichlet prior of 1 + smoothing.
    following : Family, default=GaussianMixture()
        The family of the later layers, whose points are not counts.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `family`.
    VonMisesFisherMixture : For directions.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, MultinomialMixture
    >>> FisherEmbedding(family=MultinomialMixture(smoothing=0.1))
    FisherEmbedding(family=MultinomialMixture(smoothing=0.1))
    """

    smoothing: float = 0.5
    following: Family = GaussianMixture()

    name: ClassVar[str] = "multinomial"
    theta: ClassVar[type[Any]] = MultinomialTheta
    support: ClassVar[str] = "counts"

    def check(self) -> None:
        super().check()
        if not isinstance(self.following, Family) or self.following.support == "counts":
            raise InputError(
                f"following must be a family of real vectors such as GaussianMixture(), got {self.following!r}; "
                "pass such a family.",
                parameter="following",
                value=self.following,
            )
        check_in_range(check_number(self.smoothing, "smoothing", strict=True), "float32", "smoothing")

    @property
    def later(self) -> Family:
        """The family of the layers after the first."""
        return self.following

    def check_points(self, points: Rows, name: str = "X", name_row: Callable[[int], str] = plain_row) -> None:
        """Raise if a count is negative."""
        negative = first_negative(points)
        if negative is not None:
            row, count = negative
            raise InputError(
                parameter=f"Negative values in data: {name}",
                expected="hold counts of at least 0 for the family 'multinomial'",
                got=f"{count:g} in {name_row(row)} (the first bad one)",
                advice="pass counts, or use another family",
            )

    def clustered(self, points: Array) -> Any:
        """√(x/n), (point, feature), whose distances are Hellinger's."""
        xp = array_namespace(points)
        totals = xp.sum(points, axis=1, keepdims=True)
        return xp.sqrt(points / xp.where(totals > 0, totals, xp.ones_like(totals)))

    def statistics(self, points: Array, theta: MultinomialTheta) -> Any:
        """t(x) = x, (point, feature)."""
        return points

    def base_measure(self, points: Array, theta: MultinomialTheta) -> Any:
        """h(x) = log (n! / Π_w x_w!), (point,)."""
        xp = array_namespace(points)
        return log_factorial(xp.sum(points, axis=1)) - xp.sum(log_factorial(points), axis=1)

    def natural(self, theta: MultinomialTheta) -> tuple[Any, Any]:
        """η = log q and c = log π. A probability of zero belongs to a word that no member has: any log will do."""
        xp = array_namespace(theta.probabilities)
        least = float(xp.finfo(theta.probabilities.dtype).smallest_normal)
        return xp.log(xp.clip(theta.probabilities, min=least)), theta.log_weights

    def mean_statistics(self, theta: MultinomialTheta) -> Any:
        """E[t] = n̄ q."""
        return theta.trials * theta.probabilities

    def sample(self, theta: MultinomialTheta, n: int, rng: np.random.Generator) -> np.ndarray:
        """n points of p_θ, (point, feature); the number of their counts is n̄ on average, next to it up or down."""
        labels = pick_components(theta.log_weights, n, rng)
        chances = np.asarray(theta.probabilities, dtype=np.float64)
        chances = chances / chances.sum(axis=1, keepdims=True)
        most = min(theta.trials, 2.0**53)  # beyond it doubles are no counts
        trials = np.floor(most + rng.random(n)).astype(np.int64)
        return rng.multinomial(trials, chances[labels]).astype(np.float64)

    def estimate(self, means: Array, mass: Array, theta_0: MultinomialTheta, prior: float = 0.0) -> MultinomialTheta:
        """q_w = E x_w / Σ_w E x_w, that of θ_0 if no member has a count, and π = the fractions of the mass (Eq. 11)."""
        probabilities = _normalised(means, theta_0.probabilities)
        return MultinomialTheta(log_mixture_weights(mass, theta_0.log_weights, prior), probabilities, theta_0.trials)

    def single(self, points: Array) -> MultinomialTheta:
        """The smoothed frequencies of the words in all counts, and the mean number of counts."""
        xp = array_namespace(points)
        counts = xp.sum(points, axis=0, dtype=xp.float64)[None, :]
        trials = float(xp.sum(counts)) / points.shape[0]
        theta = MultinomialTheta(xp.zeros_like(counts[:, 0]), counts, trials if trials > 0 else 1.0)
        return self.smoothed(theta, counts, xp.ones_like(counts[:, 0]))

    def smoothed(self, theta: MultinomialTheta, means: Array, mass: Array) -> MultinomialTheta:
        """θ with q_w = (Σ α x_w + s) / (Σ_w Σ α x_w + d s), s the smoothing: the MAP estimate, without a zero."""
        xp = array_namespace(means)
        counts = mass[..., None] * means + self.smoothing
        return theta._replace(probabilities=counts / xp.sum(counts, axis=-1, keepdims=True))

    def whitened(self, theta: MultinomialTheta, theta_0: MultinomialTheta) -> Any:
        """((π − π_0)/√π_0 ‖ 2 √n̄ √π_0 (√q − √q_0)): I = n̄ π Id in the coordinates 2 √q."""
        xp = array_namespace(theta.probabilities)
        roots = 2 * math.sqrt(theta_0.trials) * xp.exp(0.5 * theta_0.log_weights)[:, None]
        chords = roots * (_root(theta.probabilities) - _root(theta_0.probabilities))
        return join([whitened_weights(xp.exp(theta.log_weights), theta_0.log_weights), chords])

    def unwhitened(self, phi: Array, theta_0: MultinomialTheta) -> MultinomialTheta:
        xp = array_namespace(phi)
        weights, chords = split(phi, theta_0.probabilities.shape[0], 1, theta_0.probabilities.shape[1])
        roots = 2 * math.sqrt(theta_0.trials) * xp.exp(0.5 * theta_0.log_weights)[:, None]
        squares = xp.clip(xp.sqrt(theta_0.probabilities) + chords / roots, min=0.0) ** 2
        log_weights = unwhitened_weights(weights[..., 0], theta_0.log_weights)
        return MultinomialTheta(log_weights, _normalised(squares, theta_0.probabilities), theta_0.trials)

    def score(self, means: Array, mass: Array, theta_0: MultinomialTheta, prior: float = 0.0) -> Any:
        """((π − π_0)/√π_0 ‖ Σ α (x − n q_0)/√(n̄ π_0 q_0)) over the sum of the weights."""
        xp = array_namespace(means)
        scale = score_weights(mass, theta_0.log_weights, prior) / math.sqrt(theta_0.trials)
        gaps = means - xp.sum(means, axis=-1, keepdims=True) * theta_0.probabilities
        weights = whitened_weights(mixture_weights(mass, theta_0.log_weights, prior), theta_0.log_weights)
        return join([weights, scale * gaps / xp.sqrt(theta_0.probabilities)])

    def component_divergences(self, p: MultinomialTheta, q: MultinomialTheta) -> Any:
        """KL = n̄ Σ_w p_w log(p_w / q_w), (component of p, component of q)."""
        xp = array_namespace(p.probabilities)
        log_p, log_q = self.natural(p)[0], self.natural(q)[0]
        entropies = xp.sum(p.probabilities * log_p, axis=-1)
        return p.trials * (entropies[:, None] - p.probabilities @ log_q.T)


def _root(chances: Array) -> Any:
    """√q, whose infinite slope at zero, of a word that is missing, is taken as zero."""
    xp = array_namespace(chances)
    live = chances > 0
    return xp.where(live, xp.sqrt(xp.where(live, chances, xp.ones_like(chances))), xp.zeros_like(chances))


def _normalised(counts: Array, default: Array) -> Any:
    """Counts over their sum; the default probabilities if there are no counts."""
    xp = array_namespace(counts)
    totals = xp.sum(counts, axis=-1, keepdims=True)
    some = totals > 0
    return xp.where(some, counts / xp.where(some, totals, xp.ones_like(totals)), default)
