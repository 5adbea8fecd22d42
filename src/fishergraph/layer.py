"""Room 6: one layer, a pure function of a row block: aggregate the block's multisets, subtract the anchors, map.

Fitting and running are the same pass: a fitted `Layer` holds the anchors and the kernel map, and `run_layer` sends
every row block through them. N × p × d is never allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph.blocks import block_rows, map_blocks, row_blocks
from fishergraph.em.anchors import calibrate_variance, learn_anchors, sample_members, sample_size
from fishergraph.em.e_step import posterior, published_code
from fishergraph.em.loop import block_means, first_responsibilities, sum_dtype
from fishergraph.embedding import fisher_embedding
from fishergraph.family import fisher_root
from fishergraph.kernel_map import IdentityMap, KernelMap
from fishergraph.ops import Responsibilities, choose_backend

# The lifted points of a block on the CPU: more than this leaves its caches many times over.
_LIFTED_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Attention:
    """One reading of the method: its E-step, its anchors, its metric, and how the stack ends."""

    e_step: Callable[..., Any]
    anchor_method: str | None  # None: the one that was asked for
    unit_points: bool  # whether `normalize` reaches the points of a layer, or the rows of X alone
    fisher_root: Callable[[int], float]
    has_variance: bool
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


@dataclass(frozen=True)
class Layer:
    """A fitted layer: anchors (anchor, feature), the variance they go with, and ψ."""

    anchors: Any
    variance: float
    kernel_map: KernelMap

    def moved(self, move: Callable[[Any], Any]) -> Layer:
        """The layer with its arrays somewhere else."""
        return Layer(move(self.anchors), self.variance, self.kernel_map.moved(move))


class Known(NamedTuple):
    """What fitting a layer leaves for running it: responsibilities (`_shares`), and φ where the sample was all rows."""

    alpha: Responsibilities | None = None
    phi: Any = None


def _shares(
    spec: LayerSpec, anchors: Any, variance: float, points: Any, sets: Any, n_jobs: int | None
) -> Responsibilities | None:
    """The responsibilities of all points; None where members are lifted, whose own are found block by block."""
    if sets.lifted:
        return None
    return first_responsibilities(points, anchors, variance, e_step=spec.attention.e_step, n_jobs=n_jobs)


def block_phi(
    spec: LayerSpec, anchors: Any, variance: float, points: Any, alpha: Responsibilities | None, sets: Any
) -> Any:
    """φ of the multisets of one row block (Eq. 18), (set, anchor·feature [+ anchor])."""
    if alpha is None:
        points, sets = sets.gather(points)
        alpha = first_responsibilities(points, anchors, variance, e_step=spec.attention.e_step, n_jobs=1)
    backend = choose_backend(spec.backend, device=spec.device, n_em_iter=spec.n_em_iter, slack=spec.slack)
    means, mass = block_means(
        backend,
        points,
        alpha,
        sets,
        anchors,
        variance=variance,
        prior=spec.prior,
        n_em_iter=spec.n_em_iter,
        slack=spec.slack,
    )
    root = spec.attention.fisher_root(len(anchors))
    return fisher_embedding(means, anchors, fisher_root=root, mass=mass if spec.counts else None, overwrite=True)


def phi_blocks(spec: LayerSpec, sets: Any, n_features: int) -> list[slice]:
    """The row blocks of a layer whose points have that many features; lifted members are counted too."""
    width = 4 * n_features * sets.slots
    blocks = row_blocks(sets.n_sets, block_rows(spec.device, spec.n_anchors * width))
    return sets.cut(blocks, block_rows(spec.device, width, _LIFTED_BYTES // width)) if sets.lifted else blocks


def fit_layer(
    spec: LayerSpec, points: Any, sets: Any, *, last: bool, rng: Any, n_jobs: int | None, reuse: Any = None
) -> tuple[Layer, Known]:
    """The layer learned from a sample of members and a sample of rows, and what is known for running it.

    φ of the sample is written over `reuse`, that of an earlier layer, where it has the shape.
    """
    anchors, variance = _fit_anchors(spec, points, sets, rng, n_jobs)
    alpha = _shares(spec, anchors, variance, points, sets, n_jobs)
    if spec.keeps_phi or (last and not spec.attention.maps_last):
        return Layer(anchors, variance, IdentityMap(_phi_width(spec, anchors))), Known(alpha)
    rows = rng.permutation(sets.n_sets)[: sample_size(spec.dim, spec.max_samples, sets.n_sets)]
    rows = array_namespace(rows).sort(rows)
    whole = len(rows) == sets.n_sets
    phi = _sample_phi(spec, anchors, variance, points, alpha, sets if whole else sets.take(rows), n_jobs, reuse)
    kernel_map = spec.fit_map(
        phi,
        spec.dim,
        bandwidth=spec.bandwidth,
        shrinkage=spec.attention.shrinkage,
        rng=rng,
        n_jobs=n_jobs,
    )
    return Layer(anchors, variance, kernel_map), Known(alpha, phi if whole else None)


def _fit_anchors(spec: LayerSpec, points: Any, sets: Any, rng: Any, n_jobs: int | None) -> tuple[Any, float]:
    """Anchors from a sample of members, and the variance that goes with them."""
    xp = array_namespace(points)
    members = _sampled_points(spec, points, sets, rng)
    if xp.finfo(members.dtype).bits < 32:  # stored short, learned from in full
        members = xp.astype(members, xp.float32)
    method = spec.attention.anchor_method or spec.anchor_method
    anchors = learn_anchors(members, spec.n_anchors, method=method, rng=rng, n_jobs=n_jobs)
    if isinstance(spec.variance, float):
        return anchors, spec.variance
    has_variance = spec.attention.has_variance
    return anchors, calibrate_variance(members, anchors, spec.sharpness) if has_variance else 1.0


def _sampled_points(spec: LayerSpec, points: Any, sets: Any, rng: Any) -> Any:
    """Points, or lifted points, of members drawn from all sets."""
    size = sample_size(spec.n_anchors, spec.max_samples, sets.n_entries)
    chosen = sample_members(sets.sets if sets.lifted else sets, size, rng)
    if len(chosen):
        return sets.points(points, chosen) if sets.lifted else array_namespace(points).take(points, chosen, axis=0)
    # Without a single member φ is zero here, but another graph may have some: the points themselves serve.
    alone = points[: spec.max_samples]
    return sets.points_alone(alone) if sets.lifted else alone


def _phi_width(spec: LayerSpec, anchors: Any) -> int:
    return math.prod(anchors.shape) + (len(anchors) if spec.counts else 0)


def _sample_phi(spec, anchors, variance, points, alpha, sets, n_jobs, reuse) -> Any:
    """φ of all the given sets, filled block by block."""
    shape = (sets.n_sets, _phi_width(spec, anchors))
    # Pages that are already there are filled in half the time of new ones.
    known = reuse is not None and tuple(reuse.shape) == shape
    xp, dtype = array_namespace(anchors), sum_dtype(points, anchors)
    phi: Any = reuse if known else xp.empty(shape, dtype=dtype, device=device_of(anchors))

    def fill(rows: slice) -> None:
        phi[rows] = block_phi(spec, anchors, variance, points, alpha, sets.block(rows))

    map_blocks(fill, phi_blocks(spec, sets, points.shape[1]), n_jobs=n_jobs)
    return phi


_NOTHING = Known()


def run_layer(
    spec: LayerSpec,
    layer: Layer,
    points: Any,
    sets: Any,
    write: Callable[[slice, Any], None],
    *,
    known: Known = _NOTHING,
    n_jobs: int | None = None,
    advance: Callable[[int], Any] | None = None,
) -> None:
    """ψ(φ) of every row block, handed to `write(rows, block)`; the rows of a block are in cache when it is called."""
    alpha, whole = known
    if alpha is None:
        alpha = _shares(spec, layer.anchors, layer.variance, points, sets, n_jobs)

    def block(rows: slice) -> None:
        phi = whole[rows] if whole is not None else None
        if phi is None:
            phi = block_phi(spec, layer.anchors, layer.variance, points, alpha, sets.block(rows))
        write(rows, layer.kernel_map(phi))

    map_blocks(block, phi_blocks(spec, sets, points.shape[1]), n_jobs=n_jobs, advance=advance)
