"""What φ of one multiset is made of: responsibilities, attention, and the share of every member.

    φ_v = Σ_u g_vu + r_v,        g_vu = I^{1/2} c_vu (t(x_u) − t_0),        c_vuj = a_vu α_uj / (κ + D_vj)

The shares are exact. r is what belongs to no member: of the prior, of a variance that was bounded, of a mean direction
that was shortened; it is zero for the Gaussian mixture and for all scores. Everything is float64, of one multiset at a
time, so that nothing of the size of all members exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fishergraph._parallel import cached_attribute, row_blocks
from fishergraph.embedding import append_counts
from fishergraph.explain.moments import Moments, last_moments
from fishergraph.family import (
    DiagonalMixture,
    Family,
    Gaussian,
    MultinomialMixture,
    VonMisesFisherMixture,
    theta_sizes,
)
from fishergraph.family.base import join
from fishergraph.family.gaussian_mixture import CentreMixture, fisher_root
from fishergraph.family.special import pack, pack_products, symmetric_power
from fishergraph.family.von_mises_fisher import stretched
from fishergraph.layer import Layer

_MEMBERS = 4096  # whose shares exist at once


@dataclass(frozen=True, eq=False)
class Estimate:
    """One multiset and its φ.

    moments : its last M-step.
    phi : φ_v, (coordinate,).
    """

    layer: Layer
    moments: Moments
    phi: np.ndarray

    @property
    def responsibilities(self) -> np.ndarray:
        """α of the last E-step, (member, anchor)."""
        return np.exp(self.moments.log_alpha)

    @cached_attribute
    def stretch(self) -> Any:
        """What a power and a unit length multiply every coordinate of φ by."""
        family, layer = self.layer.family, self.layer
        if family.power == 1 and not family.unit:
            return 1.0
        phi = self.phi[: len(self.phi) - len(self.moments.mass)] if layer.counts else self.phi
        before = _phi(replace(layer, family=replace(family, power=1.0, unit=False), reading="means"), self.moments)
        return np.divide(phi, before, out=np.zeros_like(phi), where=before != 0)

    def shares(self, members: slice | np.ndarray) -> np.ndarray:
        """g of some members, (member, coordinate)."""
        moments, layer = self.moments.of(members), self.layer
        shares = plain_shares(layer, moments)
        shares = (shares if layer.root is None else shares @ layer.root.T) * self.stretch
        if not layer.counts:
            return shares
        some = moments.mass > 0
        per_mass = np.divide(np.log1p(moments.mass), moments.mass, out=np.zeros_like(moments.mass), where=some)
        return np.concatenate([shares, moments.weights[:, None] * np.exp(moments.log_alpha) * per_mass], axis=1)

    def along(self, other: np.ndarray) -> np.ndarray:
        """⟨g_vuj, φ'_j⟩ of every member and anchor, (member, anchor)."""
        anchors, n_members = coordinate_anchors(self.layer), len(self.moments.weights)
        sums = np.zeros((len(anchors), len(self.moments.mass)))
        sums[np.arange(len(anchors)), anchors] = other
        blocks = [self.shares(rows) @ sums for rows in row_blocks(n_members, _MEMBERS)] if n_members else []
        return np.concatenate([np.zeros((0, sums.shape[1])), *blocks])

    @property
    def standard_error(self) -> float:
        """√E ‖φ_v − E φ_v‖² for members drawn again, from their spread: √(n/(n − 1) Σ_u ‖g_vu − f_vu φ_v‖²).

        f are the weights in the averages that φ consists of, n is the effective size: the delta method for quotients of
        sums. Without a power, a unit length and soft counts; NaN for less than two members.
        """
        moments, layer = self.moments, replace(self.layer, reading="means")
        if np.count_nonzero(moments.weights) < 2 or not splits_members(layer.family):
            return math.nan
        blocks = row_blocks(len(moments.weights), _MEMBERS)
        whole = np.sum([plain_shares(layer, moments.of(rows)).sum(axis=0) for rows in blocks], axis=0)
        squares = 0.0
        for rows in blocks:
            part = moments.of(rows)
            gaps = plain_shares(layer, part) - _fractions(layer, part) * whole
            gaps = gaps if layer.root is None else gaps @ layer.root.T
            squares += float(np.sum(gaps * gaps))
        size = effective_size(moments.weights)
        return math.sqrt(size / (size - 1) * squares)


def effective_size(weights: np.ndarray) -> float:
    """n_v = (Σ_u a_vu)² / Σ_u a_vu²; 0 if the multiset is empty."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def estimate(layer: Layer, points: np.ndarray, weights: np.ndarray) -> Estimate:
    """The estimate of a layer from the points of the members of one multiset and their weights."""
    moments = last_moments(layer, points, weights)
    return Estimate(layer, moments, _phi(layer, moments))


def _phi(layer: Layer, moments: Moments) -> Any:
    """φ of one multiset (Eq. 13, 18)."""
    means, mass = moments.means[None].copy(), moments.mass[None]
    phi = layer.family.block_phi(means, mass, layer.theta, root=layer.root, prior=layer.em.prior)
    return (append_counts(phi, mass) if layer.counts else phi)[0]


def _fractions(layer: Layer, moments: Moments) -> Any:
    """The weights of members in the averages that the coordinates of φ are, (member, coordinate)."""
    own = coordinate_anchors(layer)
    of_all = np.broadcast_to((moments.weights / moments.total)[:, None], (len(moments.weights), len(own)))
    if layer.family.tangent == "score":
        return of_all
    n_weights = len(moments.mass) if "log_weights" in layer.family.theta._fields else 0
    return np.where(np.arange(len(own)) < n_weights, of_all, moments.attention[:, own])


def coordinate_anchors(layer: Layer) -> np.ndarray:
    """The anchor of every coordinate of φ, (coordinate,)."""
    n_anchors = len(layer.family.mean_statistics(layer.theta))
    return np.concatenate([np.repeat(np.arange(n_anchors), len(block)) for block in _blocks(layer)])


def coordinate_columns(layer: Layer) -> np.ndarray:
    """The feature that every coordinate of φ belongs to, (coordinate,); −1 for weights, covariances and counts."""
    n_anchors = len(layer.family.mean_statistics(layer.theta))
    return np.concatenate([np.tile(block, n_anchors) for block in _blocks(layer)])


def _blocks(layer: Layer) -> list[np.ndarray]:
    """The features of the coordinates of one anchor, by blocks of φ: weights, moments of each order, counts."""
    family, d = layer.family, theta_sizes(layer.theta, "layer")["features"]
    none, first, second = np.array([-1]), np.arange(d), family.n_statistics(d) - d
    blocks = [none] if "log_weights" in family.theta._fields else []
    blocks += [first, *([first if second == d else np.full(second, -1)] if second else [])]
    return [*blocks, *([none] if layer.counts else [])]


# --- the shares of the members -----------------------------------------------------------------------------


def plain_shares(layer: Layer, moments: Moments) -> np.ndarray:
    """g before the exact Fisher matrix, a power and a unit length, without counts; zeros if the family has no rule."""
    family, theta, prior = layer.family, layer.theta, layer.em.prior
    rules = [rule for kind, rule in SHARES.items() if isinstance(family, kind)]
    rule = _score_shares if family.tangent == "score" else rules[0] if rules else None
    if rule is None or not moments.mass.any():
        return np.zeros((len(moments.weights), len(coordinate_anchors(replace(layer, reading="means")))))
    return rule(family, theta, prior, moments)


def splits_members(family: Family) -> bool:
    """Whether φ of the family is split over the members of a multiset."""
    return family.tangent == "score" or isinstance(family, tuple(SHARES))


def _score_shares(family: Family, theta: Any, prior: float, moments: Moments) -> Any:
    """The scores of the members one by one: the score of a multiset is their weighted mean."""
    n_members, n_anchors = moments.log_alpha.shape
    each = np.broadcast_to(moments.statistics[:, None, :], (n_members, n_anchors, moments.statistics.shape[1]))
    total = prior * n_anchors + moments.total
    return family.score(each, np.exp(moments.log_alpha), theta) * (moments.weights / total)[:, None]


def _centre_shares(family: CentreMixture, theta: Any, prior: float, moments: Moments) -> Any:
    """p^{-1/2} c_vuj (x_u − w_j)."""
    root = scalar_root(family, len(theta.anchors))
    gaps = moments.statistics[:, None, :] - theta.anchors
    return join([root * moments.coefficients[:, :, None] * gaps])


def scalar_root(family: CentreMixture, n_anchors: int) -> float:
    """I(θ_0)^{1/2} in the closed form, which the published code leaves out of its φ."""
    return family.fisher_root(n_anchors) if family.plain else fisher_root(n_anchors)


def _weight_shares(theta: Any, prior: float, moments: Moments) -> np.ndarray:
    """a_vu (α_uj − π_0j) / √π_0j over the sum of the weights, (member, anchor, 1): those of the mixture weights."""
    weights_0 = np.exp(theta.log_weights)
    total = prior * len(weights_0) + moments.total
    gaps = np.exp(moments.log_alpha) - weights_0
    return ((moments.weights / total)[:, None] * gaps / np.sqrt(weights_0))[:, :, None]


def _diagonal_shares(family: DiagonalMixture, theta: Any, prior: float, moments: Moments) -> Any:
    """Those of weights, means and variances: v − v_0 = Σ_u c_u ((x_u − μ)² − v_0) at the mean μ of the multiset."""
    d = theta.means.shape[1]
    x, means = moments.statistics[:, None, :d], moments.means[:, :d]
    scaled = moments.coefficients[:, :, None] * np.exp(0.5 * theta.log_weights)[:, None]
    ahead = scaled * (x - (theta.means - theta.origin)) / np.sqrt(theta.variances)
    spread = math.sqrt(0.5) * scaled * ((x - means) ** 2 / theta.variances - 1)
    return join([_weight_shares(theta, prior, moments), ahead, spread])


def _gaussian_shares(family: Gaussian, theta: Any, prior: float, moments: Moments) -> Any:
    """Those of the mean and the covariance: Σ − Σ_0 = Σ_u c_u ((x_u − μ)(x_u − μ)ᵀ − Σ_0)."""
    d = theta.means.shape[1]
    root = symmetric_power(theta.covariances[0], -0.5)
    x, mean, c = moments.statistics[:, :d], moments.means[0, :d], moments.coefficients
    ahead = (x - (theta.means[0] - theta.origin)) @ root
    spread = pack_products((x - mean) @ root) - pack(np.eye(d))
    return np.concatenate([c * ahead, math.sqrt(0.5) * c * spread], axis=1)


def _direction_shares(family: VonMisesFisherMixture, theta: Any, prior: float, moments: Moments) -> Any:
    """Those of weights and mean directions, which are linear in the members."""
    gaps = stretched(moments.statistics[:, None, :] - theta.means, theta, -0.5)
    scaled = moments.coefficients[:, :, None] * np.exp(0.5 * theta.log_weights)[:, None]
    return join([_weight_shares(theta, prior, moments), scaled * gaps])


def _count_shares(family: MultinomialMixture, theta: Any, prior: float, moments: Moments) -> Any:
    """Those of weights and of chords: √q_w − √q_0w = Σ_u c_u (x_uw / (N √q_w) − √q_0w), N the mean count."""
    totals = moments.means.sum(axis=1, keepdims=True)
    some = totals > 0
    q = np.where(some, moments.means / np.where(some, totals, 1), theta.probabilities)
    scale = np.divide(1.0, np.sqrt(q) * totals, out=np.zeros_like(q), where=(q > 0) & some)
    chords = moments.statistics[:, None, :] * scale - np.where(some, np.sqrt(theta.probabilities), 0)
    roots = 2 * math.sqrt(theta.trials) * np.exp(0.5 * theta.log_weights)[:, None]
    return join([_weight_shares(theta, prior, moments), roots * moments.coefficients[:, :, None] * chords])


SHARES: dict[type, Callable[[Any, Any, float, Moments], Any]] = {
    CentreMixture: _centre_shares,
    DiagonalMixture: _diagonal_shares,
    Gaussian: _gaussian_shares,
    VonMisesFisherMixture: _direction_shares,
    MultinomialMixture: _count_shares,
}
