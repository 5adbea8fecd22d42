"""Room 6: one layer, a pure function of a row block: aggregate the block's multisets, subtract the anchors, map.

Fitting and running are the same pass: a fitted `Layer` holds the anchors and the kernel map, and `run_layer` sends
every row block through them. N × p × d is never allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, to_device
from array_api_compat import device as device_of

from fishergraph._parallel import SPARSE, block_rows, cut_blocks, map_blocks, progress_steps, row_blocks
from fishergraph._repr import short_repr
from fishergraph.em.anchors import (
    calibrate_variance,
    fit_anchors,
    mean_anchor,
    sample_members,
    sample_size,
)
from fishergraph.em.e_step import posterior, published_code
from fishergraph.em.learn import fit_family
from fishergraph.em.loop import sum_dtype
from fishergraph.em.moments import Seen, block_mass, block_moments, gather_entries, held_statistics, see
from fishergraph.em.unit import noise_of, unit_rows
from fishergraph.embedding import append_counts, mixture_phi
from fishergraph.family import Family, GaussianMixture, exact_root, fisher_root
from fishergraph.family.base import map_arrays
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta
from fishergraph.kernel_map import IdentityMap, KernelMap, fit_and_map
from fishergraph.ops import choose_backend

# The lifted points of a block on the CPU: more than this leaves its caches many times over.
_LIFTED_BYTES = 16 * 2**20

# The family of the paper's equations.
UNIT_MIXTURE = GaussianMixture()


@dataclass(frozen=True)
class Attention:
    """One reading of the method: its E-step, its anchors, its metric, and how the stack ends."""

    e_step: Callable[..., Any]
    anchor_method: str | None  # None: the one that was asked for
    unit_points: bool  # whether `normalize` reaches the points of a layer, or the rows of X alone
    fisher_root: Callable[[int], float]
    has_variance: bool
    walks: bool  # whether the first layer may hear the whole graph
    maps_last: bool  # whether the last layer has a ψ
    shrinkage: float  # of ψ's inverse root


ATTENTIONS = {
    # The paper's equations.
    "posterior": Attention(
        e_step=posterior,
        anchor_method=None,
        unit_points=True,
        fisher_root=fisher_root,
        has_variance=True,
        walks=True,
        maps_last=True,
        shrinkage=0.0,
    ),
    # The authors' code: cosines over d, a softmax of probabilities, unit anchors, no 1/√p, φ itself last.
    "reference": Attention(
        e_step=published_code,
        anchor_method="spherical",
        unit_points=False,
        fisher_root=lambda _: 1.0,
        has_variance=False,
        walks=False,
        maps_last=False,
        shrinkage=1e-2,
    ),
}


@dataclass(frozen=True)
class LayerSpec:
    """What is asked of a layer before it has seen data; the names are those of `FisherEmbedding`."""

    n_anchors: int
    anchor_method: str
    dim: int
    n_em_iter: int
    variance: float | str
    sharpness: float
    prior: float
    counts: bool
    attention: Attention
    fit_map: Callable[..., KernelMap]
    keeps_phi: bool  # ψ is the identity: layers grow by a factor p
    bandwidth: float
    max_samples: int
    backend: str | None
    device: str = "cpu"  # as the backends call it
    slack: float = math.inf  # of the E-step: ∞ is the posterior, 0 is balanced
    family: Family = UNIT_MIXTURE
    masses: Callable[[Any], Any] | None = None  # φ is this function of the masses alone, (set, anchor) → (set, anchor)
    unit_phi: bool = False  # φ is divided by its length


@dataclass(frozen=True)
class Layer:
    """A fitted layer: θ_0, a record of its family, ψ, and the root of the exact Fisher matrix where it is asked for."""

    theta: Any
    kernel_map: KernelMap
    root: Any = None

    __repr__ = short_repr

    @property
    def anchors(self) -> Any:
        """The means of a Gaussian mixture, (anchor, feature)."""
        return self.theta.anchors

    @property
    def variance(self) -> float:
        """σ² of a Gaussian mixture."""
        return self.theta.variance

    def moved(self, move: Callable[[Any], Any]) -> Layer:
        """The layer with its arrays somewhere else."""
        root = None if self.root is None else move(self.root)
        return Layer(map_arrays(self.theta, move), self.kernel_map.moved(move), root)


class Known(NamedTuple):
    """What fitting a layer leaves for running it: what is seen of the points (`_seen`), and where the sample was all
    rows φ, and ψ if it came with the map."""

    seen: Seen | None = None
    phi: Any = None
    psi: Any = None


def _seen(spec: LayerSpec, layer: Layer, points: Any, sets: Any, n_jobs: int | None) -> Seen | None:
    """Statistics and responsibilities of all points; None where those of members are found by blocks."""
    if _by_members(spec, sets, points.shape[1]):
        return None
    return see(spec.family, points, layer.theta, e_step=spec.attention.e_step, n_jobs=n_jobs)


def _by_members(spec: LayerSpec, sets: Any, n_features: int) -> bool:
    """Whether a row block gathers its members, and sees those alone: they are lifted, or have wide statistics."""
    plain = isinstance(spec.family, GaussianMixture)
    return sets.lifted or not (plain or held_statistics(spec.family, sets.n_points, n_features))


def block_phi(spec: LayerSpec, layer: Layer, points: Any, seen: Seen | None, sets: Any) -> Any:
    """φ of the multisets of one row block (Eq. 13, 18), (set, coordinate [+ anchor])."""
    if seen is None:
        points, sets = sets.gather(points) if sets.lifted else gather_entries(points, sets)
        seen = see(spec.family, points, layer.theta, e_step=spec.attention.e_step, n_jobs=1)
    backend = choose_backend(spec.backend, device=spec.device, n_em_iter=spec.n_em_iter, slack=spec.slack)
    steps: dict[str, Any] = {"prior": spec.prior, "n_em_iter": spec.n_em_iter, "slack": spec.slack}
    if spec.masses is not None:
        return spec.masses(block_mass(backend, spec.family, seen, sets, layer.theta, **steps))
    means, mass = block_moments(backend, spec.family, seen, sets, layer.theta, **steps)
    counts = mass if spec.counts else None
    if isinstance(spec.family, GaussianMixture) and spec.family.plain:
        root = spec.attention.fisher_root(len(layer.anchors))
        phi = mixture_phi(means, layer.anchors, root, mass=counts, overwrite=True)
        return unit_rows(phi, least=8 * noise_of(phi)) if spec.unit_phi else phi  # a walk rounds at each step
    phi = spec.family.phi(means, mass, layer.theta, root=layer.root, prior=spec.prior)
    xp = array_namespace(phi)
    # Rounding leaves something of an empty set, which a power or a unit length would make large.
    phi = xp.where(xp.sum(mass, axis=1, keepdims=True) > 0, phi, xp.zeros_like(phi))
    return phi if counts is None else append_counts(phi, counts)


def phi_blocks(spec: LayerSpec, sets: Any, n_features: int) -> list[slice]:
    """The row blocks of a layer whose points have that many features; members that are gathered are counted too."""
    lifted = n_features * sets.slots
    width = 4 * spec.family.n_statistics(lifted)
    blocks = row_blocks(sets.n_sets, block_rows(spec.device, 4 * spec.family.width(spec.n_anchors, lifted)))
    gathered = spec.n_em_iter > 1 and not isinstance(spec.family, GaussianMixture)
    if not (gathered or _by_members(spec, sets, n_features)):
        return blocks
    indptr = np.asarray(to_device((sets.sets if sets.lifted else sets).indptr, "cpu"))
    return cut_blocks(indptr, blocks, block_rows(spec.device, width, _LIFTED_BYTES // width))


def fit_layer(
    spec: LayerSpec, points: Any, sets: Any, *, last: bool, rng: Any, n_jobs: int | None, reuse: Any = None,
    runs: bool = False,
) -> tuple[Layer, Known]:  # fmt: skip
    """The layer learned from a sample of members and a sample of rows, and what is known for running it.

    φ of the sample is written over `reuse`, that of an earlier layer, where it has the shape. `runs` says that the
    layer is run next on the same points.
    """
    spec.family.check_width(points.shape[1] * sets.slots)
    theta = _fit_theta(spec, points, sets, rng, n_jobs)
    identity = IdentityMap(phi_width(spec, theta))
    layer = Layer(theta, identity, _fit_root(spec, theta, rng))
    seen = _seen(spec, layer, points, sets, n_jobs)
    if spec.keeps_phi or (last and not spec.attention.maps_last):
        return layer, Known(seen)
    rows = rng.permutation(sets.n_sets)[: sample_size(spec.dim, spec.max_samples, sets.n_sets)]
    rows = array_namespace(rows).sort(rows)
    whole = len(rows) == sets.n_sets
    phi = _sample_phi(spec, layer, points, seen, sets if whole else sets.take(rows), n_jobs, reuse)
    given: dict[str, Any] = {
        "bandwidth": spec.bandwidth, "shrinkage": spec.attention.shrinkage, "rng": rng, "n_jobs": n_jobs,
    }  # fmt: skip
    blocks = phi_blocks(spec, sets, points.shape[1]) if runs and whole else None
    kernel_map, psi = fit_and_map(spec.fit_map, phi, spec.dim, blocks, **given)
    return replace(layer, kernel_map=kernel_map), Known(seen, phi if whole else None, psi)


def _fit_theta(spec: LayerSpec, points: Any, sets: Any, rng: Any, n_jobs: int | None) -> Any:
    """θ_0 from a sample of members: anchors with the variance that goes with them, or what the family learns."""
    xp = array_namespace(points)
    members = sampled_points(points, sets, spec.n_anchors, spec.max_samples, rng)
    if xp.finfo(members.dtype).bits < 32:  # stored short, learned from in full
        members = xp.astype(members, xp.float32)
    if not isinstance(spec.family, GaussianMixture):
        return fit_family(spec.family, members, spec.n_anchors, rng=rng, n_jobs=n_jobs)
    if spec.anchor_method == "mean":
        return GaussianMixtureTheta(mean_anchor(members), 1.0)
    method = spec.attention.anchor_method or spec.anchor_method
    anchors = fit_anchors(members, spec.n_anchors, method=method, rng=rng, n_jobs=n_jobs)
    if isinstance(spec.variance, float):
        return GaussianMixtureTheta(anchors, spec.variance)
    has_variance = spec.attention.has_variance
    variance = calibrate_variance(members, anchors, spec.sharpness) if has_variance else 1.0
    return GaussianMixtureTheta(anchors, variance)


def _fit_root(spec: LayerSpec, theta: Any, rng: Any) -> Any:
    """The root of the exact Fisher matrix beside the arrays of θ_0; None where the closed form does."""
    if spec.family.fisher != "exact":
        return None
    host = map_arrays(theta, lambda array: np.asarray(to_device(array, "cpu")))
    root = exact_root(spec.family, host, np.random.default_rng(int(rng.integers(2**31))))
    like = theta[0]
    return array_namespace(like).asarray(root, dtype=like.dtype, device=device_of(like))


def sampled_points(points: Any, sets: Any, n_anchors: int, max_samples: int, rng: Any) -> Any:
    """Points, or lifted points, of members drawn from all sets: what so many anchors are learned from."""
    size = sample_size(n_anchors, max_samples, sets.n_entries)
    chosen = sample_members(sets.sets if sets.lifted else sets, size, rng)
    if len(chosen):
        return sets.points(points, chosen) if sets.lifted else array_namespace(points).take(points, chosen, axis=0)
    # Without a single member φ is zero here, but another graph may have some: the points themselves serve.
    alone = points[:max_samples]
    return sets.points_alone(alone) if sets.lifted else alone


def phi_width(spec: LayerSpec, theta: Any) -> int:
    """The columns of φ; θ may have fewer components than were asked for."""
    n_anchors, n_statistics = spec.family.mean_statistics(theta).shape
    if spec.masses is not None:
        return n_anchors
    return spec.family.width(n_anchors, spec.family.n_features(n_statistics)) + (n_anchors if spec.counts else 0)


def _sample_phi(spec, layer, points, seen, sets, n_jobs, reuse) -> Any:
    """φ of all the given sets, filled block by block."""
    shape = (sets.n_sets, layer.kernel_map.n_outputs)
    # Pages that are already there are filled in half the time of new ones.
    known = reuse is not None and tuple(reuse.shape) == shape
    like = layer.theta[0]
    xp, dtype = array_namespace(like), sum_dtype(points, like)
    phi: Any = reuse if known else xp.empty(shape, dtype=dtype, device=device_of(like))

    def fill(rows: slice) -> None:
        phi[rows] = block_phi(spec, layer, points, seen, sets.block(rows))

    blocks = phi_blocks(spec, sets, points.shape[1])
    cost = SPARSE * sets.n_entries * sets.slots * points.shape[1] * spec.n_anchors
    map_blocks(fill, blocks, n_jobs=n_jobs, advance=progress_steps(cost, len(blocks)))
    return phi


_NOTHING = Known()


def run_layer(
    spec: LayerSpec, layer: Layer, points: Any, sets: Any, write: Callable[[slice, Any], None], *,
    known: Known = _NOTHING, n_jobs: int | None = None, advance: Callable[[int], Any] | None = None,
) -> None:  # fmt: skip
    """ψ(φ) of every row block, handed to `write(rows, block)`; the rows of a block are in cache when it is called."""
    seen, phi, psi = known
    if seen is None:
        seen = _seen(spec, layer, points, sets, n_jobs)

    def block(rows: slice) -> None:
        if psi is not None:
            return write(rows, psi[rows])
        found = block_phi(spec, layer, points, seen, sets.block(rows)) if phi is None else phi[rows]
        return write(rows, layer.kernel_map(found))

    map_blocks(block, phi_blocks(spec, sets, points.shape[1]), n_jobs=n_jobs, advance=advance)
