"""`em_means`, the one hot primitive: the means of every multiset after EM that starts at the anchors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fishergraph._checks import check_finite_rows, check_integer, check_number
from fishergraph.blocks import map_blocks, row_blocks
from fishergraph.em.e_step import posterior
from fishergraph.multiset import Multisets
from fishergraph.ops import Backend, Responsibilities, choose_backend


class EMMeans(NamedTuple):
    """means (set, anchor, feature), and mass (set, anchor): Σ_u a_vu α_uj of the last E-step."""

    means: np.ndarray
    mass: np.ndarray


def first_responsibilities(
    points: np.ndarray,
    anchors: np.ndarray,
    variance: float,
    *,
    e_step: Callable[..., Any] = posterior,
    n_jobs: int | None = None,
) -> Responsibilities:
    """The responsibilities of all points at the anchors, by row blocks, (point, anchor)."""
    log = np.empty((points.shape[0], anchors.shape[0]), points.dtype)
    plain = np.empty_like(log)

    def fill(rows: slice) -> None:
        log[rows] = e_step(points[rows], anchors, variance)
        np.exp(log[rows], out=plain[rows])

    map_blocks(fill, row_blocks(points.shape[0], 4096), n_jobs=n_jobs)
    return Responsibilities(log, plain)


def block_means(
    backend: Backend,
    points: np.ndarray,
    responsibilities: Responsibilities,
    sets: Multisets,
    anchors: np.ndarray,
    *,
    variance: float = 1.0,
    prior: float = 0.0,
    n_em_iter: int = 1,
) -> EMMeans:
    """`em_means` of one row block. An empty multiset, or no iteration at all, gives the anchors and no mass."""
    n_anchors, n_features = anchors.shape
    means = np.empty((sets.n_sets, n_anchors, n_features), points.dtype)
    mass = np.zeros((sets.n_sets, n_anchors), points.dtype)
    if n_em_iter == 0:
        means[:] = anchors
    else:
        backend.run(
            points,
            responsibilities,
            sets,
            anchors,
            variance=variance,
            prior=prior,
            n_em_iter=n_em_iter,
            means=means,
            mass=mass,
        )
    return EMMeans(means, mass)


def em_means(
    points: np.ndarray,
    multisets: Multisets,
    anchors: np.ndarray,
    *,
    variance: float = 1.0,
    prior: float = 0.0,
    n_em_iter: int = 1,
    backend: str | None = None,
    n_jobs: int | None = None,
) -> EMMeans:
    """θ_ML(x_v) by `n_em_iter` EM iterations from the anchors, for every multiset v (Eq. 14, 17).

    One iteration gives μ_vj = (κ w_j + Σ_u a_vu α_uj x_u) / (κ + Σ_u a_vu α_uj).

    Parameters
    ----------
    points : (point, feature), float32 or float64.
    multisets : the sets over these points.
    anchors : (anchor, feature), the parameters θ_0.
    variance : σ² of every component.
    prior : κ, the weight of the anchor as one more member of every component; 0 is the paper.
    n_em_iter : the number of iterations M.

    Returns
    -------
    means (set, anchor, feature) and mass (set, anchor). The layers never call this on all rows at once; they run
    the same backend per row block.
    """
    points = _as_points(points, "points")
    anchors = _as_points(anchors, "anchors").astype(points.dtype, copy=False)
    if anchors.shape[0] == 0 or anchors.shape[1] != points.shape[1]:
        raise ValueError(
            f"anchors must have the shape (anchor, {points.shape[1]}) with at least one anchor, "
            f"got {anchors.shape}; learn them from these points with learn_anchors."
        )
    _check_sets(multisets, points.shape[0])
    variance = check_number(variance, "variance", strict=True)
    prior = check_number(prior, "prior")
    n_em_iter = check_integer(n_em_iter, "n_em_iter", least=0)
    chosen = choose_backend(backend, n_em_iter=n_em_iter)
    responsibilities = first_responsibilities(points, anchors, variance, n_jobs=n_jobs)
    means = np.empty((multisets.n_sets, *anchors.shape), points.dtype)
    mass = np.empty((multisets.n_sets, anchors.shape[0]), points.dtype)

    def fill(rows: slice) -> None:
        means[rows], mass[rows] = block_means(
            chosen,
            points,
            responsibilities,
            multisets.block(rows),
            anchors,
            variance=variance,
            prior=prior,
            n_em_iter=n_em_iter,
        )

    map_blocks(fill, row_blocks(multisets.n_sets), n_jobs=n_jobs)
    return EMMeans(means, mass)


def _check_sets(sets: Multisets, n_rows: int) -> None:
    """Raise unless every member is one of the rows and every weight a share: compiled loops check nothing."""
    if sets.n_points != n_rows:
        raise ValueError(
            f"the multisets are over {sets.n_points} points, got {n_rows} rows; pass the points they were built for."
        )
    first, last = int(sets.indptr[0]), int(sets.indptr[-1])
    members, weights = sets.indices[first:last], None if sets.weights is None else sets.weights[first:last]
    if first < 0 or len(members) != last - first or (np.diff(sets.indptr) < 0).any():
        raise ValueError(
            f"indptr must rise from set to set up to at most the {len(sets.indices)} indices, "
            f"got {first} … {last}; count the members of each set with np.cumsum."
        )
    if len(members) and (members.min() < 0 or members.max() >= n_rows):
        raise ValueError(
            f"the members of the multisets must be points 0 … {n_rows - 1}, "
            f"got {members.min()} … {members.max()}; number the points by their rows."
        )
    if weights is not None and (len(weights) != len(members) or not (np.isfinite(weights) & (weights >= 0)).all()):
        raise ValueError(
            f"weights must hold one finite number of at least 0 for each of the {len(members)} members, "
            f"got {len(weights)} with minimum {weights.min(initial=np.inf):g}; pass such weights."
        )


def _as_points(array: Any, name: str) -> np.ndarray:
    """A C-ordered float matrix; float64 is kept, everything else becomes float32."""
    array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix of shape (rows, features), got shape {array.shape}; reshape it.")
    dtype = np.float64 if array.dtype == np.float64 else np.float32
    array = np.ascontiguousarray(array, dtype=dtype)
    check_finite_rows(array, name)
    return array
