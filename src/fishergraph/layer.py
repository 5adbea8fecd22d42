"""Room 6: one layer, a pure function of a row block: aggregate the block's multisets, subtract the anchors, map.

Fitting and running are the same pass: a fitted `Layer` holds the anchors and the kernel map, and `run_layer` sends
every row block through them. N × p × d is never allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fishergraph.blocks import map_blocks, row_blocks
from fishergraph.em.anchors import calibrate_variance, learn_anchors, sample_members, sample_size
from fishergraph.em.e_step import posterior, published_code
from fishergraph.em.loop import block_means, first_responsibilities
from fishergraph.embedding import fisher_embedding
from fishergraph.family import fisher_root
from fishergraph.kernel_map import IdentityMap, KernelMap
from fishergraph.multiset import Multisets
from fishergraph.ops import Responsibilities, choose_backend


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

    def with_e_step(self, e_step: Callable[..., Any]) -> Attention:
        """The same reading with another E-step."""
        return replace(self, e_step=e_step)


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


@dataclass(frozen=True)
class Layer:
    """A fitted layer: anchors (anchor, feature), the variance they go with, and ψ."""

    anchors: np.ndarray
    variance: float
    kernel_map: KernelMap


def block_phi(
    spec: LayerSpec,
    anchors: np.ndarray,
    variance: float,
    points: np.ndarray,
    alpha: Responsibilities,
    sets: Multisets,
) -> np.ndarray:
    """φ of the multisets of one row block (Eq. 18), (set, anchor·feature [+ anchor])."""
    backend = choose_backend(spec.backend, n_em_iter=spec.n_em_iter)
    means, mass = block_means(
        backend, points, alpha, sets, anchors, variance=variance, prior=spec.prior, n_em_iter=spec.n_em_iter
    )
    root = spec.attention.fisher_root(len(anchors))
    return fisher_embedding(means, anchors, fisher_root=root, mass=mass if spec.counts else None)


def fit_layer(
    spec: LayerSpec,
    points: np.ndarray,
    sets: Multisets,
    *,
    last: bool,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[Layer, Responsibilities]:
    """The layer learned from a sample of members and a sample of rows, and the responsibilities it is run with."""
    size = sample_size(spec.n_anchors, spec.max_samples, sets.n_entries)
    entries = sample_members(sets, size, rng)
    # Without a single member φ is zero here, but another graph may have some: the points themselves serve.
    members = points[entries] if len(entries) else points[: spec.max_samples]
    method = spec.attention.anchor_method or spec.anchor_method
    anchors = learn_anchors(members, spec.n_anchors, method=method, rng=rng, n_jobs=n_jobs)
    variance = spec.variance
    if not isinstance(variance, float):
        variance = calibrate_variance(members, anchors, spec.sharpness) if spec.attention.has_variance else 1.0
    del members
    alpha = first_responsibilities(points, anchors, variance, e_step=spec.attention.e_step, n_jobs=n_jobs)
    if last and not spec.attention.maps_last:
        width = anchors.size + (len(anchors) if spec.counts else 0)
        return Layer(anchors, variance, IdentityMap(width)), alpha
    rows = rng.permutation(sets.n_sets)[: sample_size(spec.dim, spec.max_samples, sets.n_sets)]
    sample = _sample_phi(spec, anchors, variance, points, alpha, sets.take(np.sort(rows)), n_jobs)
    kernel_map = spec.fit_map(
        sample,
        spec.dim,
        bandwidth=spec.bandwidth,
        shrinkage=spec.attention.shrinkage,
        rng=rng,
        n_jobs=n_jobs,
    )
    return Layer(anchors, variance, kernel_map), alpha


def _sample_phi(spec, anchors, variance, points, alpha, sets, n_jobs) -> np.ndarray:
    """φ of all the given sets, filled block by block."""
    width = anchors.size + (len(anchors) if spec.counts else 0)
    phi = np.empty((sets.n_sets, width), points.dtype)

    def fill(rows: slice) -> None:
        phi[rows] = block_phi(spec, anchors, variance, points, alpha, sets.block(rows))

    map_blocks(fill, row_blocks(sets.n_sets), n_jobs=n_jobs)
    return phi


def run_layer(
    spec: LayerSpec,
    layer: Layer,
    points: np.ndarray,
    sets: Multisets,
    write: Callable[[slice, np.ndarray], None],
    *,
    alpha: Responsibilities | None = None,
    n_jobs: int | None = None,
    advance: Callable[[int], Any] | None = None,
) -> None:
    """ψ(φ) of every row block, handed to `write(rows, block)`; the rows of a block are in cache when it is called."""
    if alpha is None:
        alpha = first_responsibilities(
            points, layer.anchors, layer.variance, e_step=spec.attention.e_step, n_jobs=n_jobs
        )
    known = alpha

    def block(rows: slice) -> None:
        phi = block_phi(spec, layer.anchors, layer.variance, points, known, sets.block(rows))
        write(rows, layer.kernel_map(phi))

    map_blocks(block, row_blocks(sets.n_sets), n_jobs=n_jobs, advance=advance)
