"""The protocol of the families: mixtures of exponential families; a single density is a mixture of one.

Each is log p(x, z = j) = ⟨t(x), η_j⟩ + c_j + h(x). h cancels in the responsibilities, and the weighted
maximum-likelihood estimate is a function of the weighted means of the statistic t alone, so the one hot primitive of
the library, weighted means of rows, serves every family: only the rows are t(x) instead of x.

θ is a record of arrays (a `NamedTuple`), which may have leading axes: θ_0 of a layer has none, the estimates of a row
block have one, the sets. The tangent vector at θ_0 comes in two readings,

    "estimate"   φ = I^{1/2} (θ_ML − θ_0)              the paper's, Eq. 13
    "score"      φ = I^{-1/2} ∇ mean log-likelihood    the Fisher vector of Sánchez et al. (2013)

and I is the Fisher matrix of the pair (x, z), block by block in closed form ("approximate", Id/p in Eq. 18), or that
of x itself ("exact", family/exact.py). They agree where the components are well separated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from fishergraph._arrays import plain_row
from fishergraph._component import Component
from fishergraph._typing import Array, Rows, ThetaT
from fishergraph._validation import check_flag, check_number, look_up

FISHERS = {"approximate": None, "exact": None}
TANGENTS = {"estimate": None, "score": None}
# The weight of a component without any mass: float32's smallest number. Parameters are learned in float64 and used in
# float32, where the root of a smaller one could not be divided by.
LEAST_WEIGHT = 2.0**-126


@dataclass(frozen=True, repr=False)
class Family(Component, ABC, Generic[ThetaT]):
    """A statistical manifold, with its metric and the reading of φ.

    Parameters
    ----------
    fisher : {"approximate", "exact"}, default="approximate"
        The Fisher matrix at θ_0: its closed form (Id/p in Eq. 18), or the exact one by quadrature or sampling.
    tangent : {"estimate", "score"}, default="estimate"
        φ = I^{1/2} (θ_ML − θ_0), the paper's, or the Fisher vector I^{-1/2} ∇ log p.
    power : float in (0, 1], default=1.0
        The exponent a of sign(φ) |φ|^a; 1/2 is usual for Fisher vectors.
    unit : bool, default=False
        Divide φ by its length.

    See Also
    --------
    GaussianMixture, DiagonalMixture, Gaussian, VonMisesFisherMixture, MultinomialMixture : The families.
    """

    fisher: str = "approximate"
    tangent: str = "estimate"
    power: float = 1.0
    unit: bool = False

    name: ClassVar[str]
    theta: ClassVar[type[Any]]  # the record of the parameters
    # What the points of a layer have to be: "reals", "directions" (a zero row has none), or "counts" (of X itself).
    support: ClassVar[str] = "reals"
    # Whether k-means that starts EM compares directions.
    spherical: ClassVar[bool] = False
    # Whether t(x) = x and the log-joint is that of Eq. 16: engines then iterate EM without gathering members.
    fused: ClassVar[bool] = False
    # Whether the responsibilities are the posterior, which engines compute.
    is_posterior: ClassVar[bool] = True
    # Whether the points of a layer are unit vectors when the estimator normalises rows.
    unit_points: ClassVar[bool] = True

    @property
    def later(self) -> Family:
        """The family of the layers after the first."""
        return self

    def check(self) -> None:
        """Raise unless every option is valid."""
        look_up(FISHERS, self.fisher, "fisher")
        look_up(TANGENTS, self.tangent, "tangent")
        check_number(self.power, "power", strict=True, most=1.0)
        check_flag(self.unit, "unit")

    def check_points(self, points: Rows, name: str = "X", name_row: Callable[[int], str] = plain_row) -> None:
        """Raise, with the first bad row, if points lie outside the support of the family; dense or sparse rows."""

    # --- sizes -------------------------------------------------------------------------------------------

    def check_width(self, n_features: int) -> None:
        """Raise if points of so many features are too wide for the family."""

    def n_components(self, n_anchors: int) -> int:
        """Return how many components θ has for so many anchors."""
        return n_anchors

    def n_statistics(self, n_features: int) -> int:
        """Return the number of statistics of points that have so many features."""
        return n_features

    def width(self, n_anchors: int, n_features: int) -> int:
        """Return the number of coordinates of φ: per anchor the statistics, and the weight if it is a parameter."""
        return n_anchors * (self.n_statistics(n_features) + int("log_weights" in self.theta._fields))

    # --- the density -------------------------------------------------------------------------------------

    @abstractmethod
    def statistics(self, points: Array, theta: ThetaT) -> Any:
        """Return t(x), (point, statistic)."""

    def base_measure(self, points: Array, theta: ThetaT) -> Any:
        """Return h(x), (point,): −(d/2) log 2π unless a family has another one."""
        return array_namespace(points).full_like(points[:, 0], -0.5 * points.shape[1] * math.log(2 * math.pi))

    @abstractmethod
    def natural(self, theta: ThetaT) -> tuple[Any, Any]:
        """Return η, (…, anchor, statistic), and the offsets c, (…, anchor), with the log-weights in them."""

    @abstractmethod
    def mean_statistics(self, theta: ThetaT) -> Any:
        """Return E_θ[t(x) | z = j], (…, anchor, statistic)."""

    def scores(self, statistics: Array, theta: ThetaT) -> Any:
        """Return log p(x_i, z_i = j) − h(x_i) = ⟨t(x_i), η_j⟩ + c_j, (point, anchor)."""
        natural, offsets = self.natural(theta)
        return statistics @ natural.T + offsets

    def log_responsibilities(self, statistics: Array, theta: ThetaT) -> Any:
        """Return log α_ij, the scores normalised over the anchors, (point, anchor)."""
        return log_softmax(self.scores(statistics, theta))

    def log_joint(self, points: Array, theta: ThetaT) -> Any:
        """Return log p(x_i, z_i = j), (point, anchor)."""
        return self.scores(self.statistics(points, theta), theta) + self.base_measure(points, theta)[:, None]

    def log_likelihood(self, points: Array, theta: ThetaT) -> Any:
        """Return log p_θ(x_i) = log Σ_j p(x_i, z_i = j), (point,)."""
        return log_sum_exp(self.log_joint(points, theta))

    @abstractmethod
    def sample(self, theta: ThetaT, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n points of p_θ, (point, feature)."""

    # --- the manifold ------------------------------------------------------------------------------------

    def clustered(self, points: Array) -> Any:
        """Return the points as k-means sees them when it starts EM."""
        return points

    @abstractmethod
    def estimate(self, means: Array, mass: Array, theta_0: ThetaT, prior: float = 0.0) -> ThetaT:
        """Return θ_ML from the means of t, (…, anchor, statistic), and the masses, (…, anchor) (Eq. 11).

        A component without mass stays that of θ_0, whose mean statistics are then in `means`.
        """

    @abstractmethod
    def single(self, points: Array) -> ThetaT:
        """Return the θ of one component for all points together, in float64: the start of learning, and its bounds."""

    def at_centres(self, centres: Array, members: Array) -> ThetaT:
        """Return θ_0 of a fused family with these means, for members that were clustered to find them."""
        raise TypeError(f"{type(self).__name__} is not a family of centres")

    def smoothed(self, theta: ThetaT, means: Array, mass: Array) -> ThetaT:
        """Return θ_0 for the θ that `estimate` made of these means and masses, kept off the border by a prior."""
        return theta

    @abstractmethod
    def whitened(self, theta: ThetaT, theta_0: ThetaT) -> Any:
        """Return I(θ_0)^{1/2} (θ − θ_0) with the closed form of I, (set, width) (Eq. 13)."""

    @abstractmethod
    def unwhitened(self, phi: Array, theta_0: ThetaT) -> ThetaT:
        """Return the θ whose `whitened` is φ, (set, width), or the nearest that is a parameter."""

    @abstractmethod
    def score(self, means: Array, mass: Array, theta_0: ThetaT, prior: float = 0.0) -> Any:
        """Return I(θ_0)^{-1/2} ∇_θ (Σ_i a_i log p_θ(x_i) / Σ_i a_i) at θ_0 with the closed form of I, (set, width)."""

    @abstractmethod
    def component_divergences(self, p: ThetaT, q: ThetaT) -> Any:
        """Return KL(p_a ‖ q_b) of all pairs of components, in closed form, (component of p, component of q)."""

    def phi(self, means: Array, mass: Array, theta_0: ThetaT, *, root: Array | None = None, prior: float = 0.0) -> Any:
        """Return φ of every set, (set, width), from the means of the statistic and the masses (Eq. 13).

        `root` is the matrix of `exact_root` for fisher="exact".
        """
        if self.tangent == "score":
            phi = self.score(means, mass, theta_0, prior)
        else:
            phi = self.whitened(self.estimate(means, mass, theta_0, prior), theta_0)
        phi = phi if root is None else phi @ root.T
        phi = phi if self.power == 1 else power_normalize(phi, self.power)
        return unit_normalize(phi) if self.unit else phi

    def block_phi(self, means: Array, mass: Array, theta_0: ThetaT, *, root: Array | None, prior: float) -> Any:
        """Return `phi` of a row block, whose means may be overwritten; an empty set has φ = 0."""
        phi = self.phi(means, mass, theta_0, root=root, prior=prior)
        xp = array_namespace(phi)
        # Rounding leaves something of an empty set, which a power or a unit length would make large.
        return xp.where(xp.sum(mass, axis=1, keepdims=True) > 0, phi, xp.zeros_like(phi))


def log_softmax(scores: Array) -> Any:
    """log softmax over the last axis, shifted by its maximum."""
    xp = array_namespace(scores)
    shifted = scores - xp.max(scores, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))


def log_sum_exp(joint: Array) -> Any:
    """log Σ_j exp(joint_ij), (point,), shifted by the maximum of the row."""
    xp = array_namespace(joint)
    highest = xp.max(joint, axis=1, keepdims=True)
    return xp.log(xp.sum(xp.exp(joint - highest), axis=1)) + highest[:, 0]


def entropy(log_responsibilities: Array) -> Any:
    """H(α_i) = −Σ_j α_ij log α_ij of each point, in nats, (point,)."""
    xp = array_namespace(log_responsibilities)
    alpha = xp.exp(log_responsibilities)
    # α log α → 0 as α → 0: if α has underflowed, its log is finite and the product is an exact zero.
    return -xp.sum(alpha * log_responsibilities, axis=-1)


def power_normalize(phi: Array, exponent: float = 0.5) -> Any:
    """sign(φ) |φ|^a, entry by entry."""
    xp = array_namespace(phi)
    size = xp.abs(phi)
    # The derivative at zero is infinite: it is taken as zero.
    live = size > 0
    grown = xp.where(live, size, xp.ones_like(size)) ** exponent
    return xp.where(live, xp.sign(phi) * grown, xp.zeros_like(phi))


def unit_normalize(phi: Array) -> Any:
    """φ / ‖φ‖, row by row; a zero row stays zero."""
    xp = array_namespace(phi)
    squares = xp.vecdot(phi, phi)[:, None]
    live = squares > 0
    return xp.where(live, phi / xp.sqrt(xp.where(live, squares, xp.ones_like(squares))), xp.zeros_like(phi))


# --- functions of several families ------------------------------------------------------------------------


def map_arrays(theta: ThetaT, function: Callable[[Any], Any]) -> ThetaT:
    """θ with the function applied to each of its arrays; numbers stay."""
    return theta._make([function(value) if is_array_api_obj(value) else value for value in theta])


def repeated(theta: ThetaT, n_anchors: int) -> ThetaT:
    """A θ of one component as one of so many equal ones; an origin has no components."""
    fields: dict[str, Any] = theta._asdict()
    arrays = [name for name, value in fields.items() if is_array_api_obj(value) and name != "origin"]
    return theta._replace(**{name: fields[name][[0] * n_anchors] for name in arrays})


def mixture_weights(mass: Array, log_weights: Array, prior: float) -> Any:
    """π_j = (p κ π_0j + mass_j) / (p κ + Σ_l mass_l), (…, anchor): the weights of a set; π_0 if it is empty."""
    xp = array_namespace(mass)
    weights_0 = xp.exp(log_weights)
    pull = prior * mass.shape[-1]
    total = xp.sum(mass, axis=-1, keepdims=True) + pull
    full = total > 0
    return xp.where(full, (mass + pull * weights_0) / xp.where(full, total, xp.ones_like(total)), weights_0)


def log_mixture_weights(mass: Array, log_weights: Array, prior: float) -> Any:
    """log π_j of `mixture_weights`; a component without any mass keeps the least weight."""
    weights = mixture_weights(mass, log_weights, prior)
    xp = array_namespace(weights)
    return xp.log(xp.clip(weights, min=LEAST_WEIGHT))


def score_weights(mass: Array, log_weights: Array, prior: float) -> Any:
    """(κ + mass_j) / ((p κ + Σ_l mass_l) √π_0j), (…, anchor, 1): the factor of a component's score; 0 if empty."""
    xp = array_namespace(mass)
    total = xp.sum(mass, axis=-1, keepdims=True) + prior * mass.shape[-1]
    full = total > 0
    fraction = xp.where(full, (mass + prior) / xp.where(full, total, xp.ones_like(total)), xp.zeros_like(mass))
    return (fraction * xp.exp(-0.5 * log_weights))[..., None]


def whitened_weights(weights: Array, log_weights: Array) -> Any:
    """(π − π_0) / √π_0, (…, anchor, 1): the tangent vector of the weights, whose Fisher matrix is diag(1/π_0).

    The weights sum to one, so it is orthogonal to √π_0. Both readings of φ agree on it.
    """
    xp = array_namespace(weights)
    return ((weights - xp.exp(log_weights)) * xp.exp(-0.5 * log_weights))[..., None]


def unwhitened_weights(block: Array, log_weights: Array) -> Any:
    """log π of a block (…, anchor) that `whitened_weights` returns; negative weights become the least one."""
    xp = array_namespace(block)
    weights_0 = xp.exp(log_weights)
    weights = xp.clip(weights_0 + block * xp.sqrt(weights_0), min=LEAST_WEIGHT)
    return xp.log(weights / xp.sum(weights, axis=-1, keepdims=True))


def join(blocks: list[Any]) -> Any:
    """Blocks (set, anchor, coordinate) side by side, (set, width): all anchors of one block, then the next block."""
    xp = array_namespace(*blocks)
    flat = [xp.reshape(block, (block.shape[0], block.shape[1] * block.shape[2])) for block in blocks]
    return flat[0] if len(flat) == 1 else xp.concat(flat, axis=1)


def split(phi: Array, n_anchors: int, *sizes: int) -> list[Any]:
    """The blocks (set, anchor, size) that `join` put side by side."""
    xp, start = array_namespace(phi), 0
    blocks: list[Any] = []
    for size in sizes:
        stop = start + n_anchors * size
        blocks.append(xp.reshape(phi[:, start:stop], (phi.shape[0], n_anchors, size)))
        start = stop
    return blocks


def pick_components(log_weights: Array, n: int, rng: np.random.Generator) -> np.ndarray:
    """The components of n points, drawn by their weights, (point,)."""
    weights = array_namespace(log_weights).exp(log_weights)
    return rng.choice(len(weights), size=n, p=weights / weights.sum())
