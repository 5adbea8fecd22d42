"""Anchors θ_0, learned from a sample of the points, and the variance that goes with them (Section 4.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array

from fishergraph._arrays import as_floats, check_finite_rows, check_in_range, check_squares
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph._validation import MOST_ANCHORS, MOST_ITERATIONS, check_integer, check_number, look_up
from fishergraph.device import device_kind
from fishergraph.em.e_step import posterior
from fishergraph.em.kmeans import INITS, kmeans
from fishergraph.ops.streams import random_stream

# Enough for a handful of anchors; with many anchors the sample grows with their number.
_LEAST_SAMPLE = 4096
_SAMPLES_PER_CENTRE = 128


def sample_size(n_centres: int, max_samples: int, n_available: int) -> int:
    """How many points k-means looks at: 128 per centre, at least 4,096, at most `max_samples`."""
    return min(n_available, max_samples, max(_LEAST_SAMPLE, _SAMPLES_PER_CENTRE * n_centres))


def mean_anchor(points: Any) -> Any:
    """The mean of the points as the only anchor, (1, feature): exactly they, where all agree, and no rounding."""
    xp, first = array_namespace(points), points[:1]
    return first + xp.astype(xp.mean(xp.astype(points - first, xp.float64), axis=0, keepdims=True), points.dtype)


def sample_members(sets: Any, size: int, rng: Any) -> Any:
    """Points drawn from the union of the multisets: a point counts once for every set it belongs to (Section 4.5)."""
    start, n_entries = int(sets.indptr[0]), sets.n_entries
    if n_entries <= size:
        return sets.indices[start : start + n_entries]
    xp = array_namespace(sets.indices)
    entries = xp.sort(xp.unique_values(rng.integers(n_entries, size=size)))  # in order, as rows are read
    return sets.indices[start + entries]


def learn_anchors(
    points: Any,
    n_anchors: int,
    *,
    method: str = "kmeans",
    init: str = "random",
    n_iter: int = 5,
    variance: float = 1.0,
    rng: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """Learn the anchors of a Gaussian mixture from points.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        The points; CSR too, except for "em".
    n_anchors : int
        The number of anchors; fewer are returned, with a warning, if there are fewer distinct points.
    method : {"kmeans", "spherical", "em", "random"}, default="kmeans"
        Centres of k-means; of spherical k-means, for unit vectors; means of mixture EM that starts from k-means;
        distinct points as they are.
    init : {"random", "k-means++"}, default="random"
        How k-means starts.
    n_iter : int, default=5
        Iterations.
    variance : float, default=1.0
        The variance σ² of the mixture, for "em".
    rng : int, Generator or None, default=None
        Seed or NumPy generator.
    n_jobs : int, optional
        Threads; None uses every core.

    Returns
    -------
    array of shape (n_anchors, n_features)
        The anchors.

    See Also
    --------
    learn_family : The parameters of any family.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import learn_anchors
    >>> learn_anchors(np.random.default_rng(0).normal(size=(100, 2)), 3, rng=0).shape
    (3, 2)
    """
    look_up(METHODS, method, "method")
    look_up(INITS, init, "init")
    n_anchors = check_integer(n_anchors, "n_anchors", least=1, most=MOST_ANCHORS)
    n_iter = check_integer(n_iter, "n_iter", least=0, most=MOST_ITERATIONS)
    variance = check_number(variance, "variance", strict=True)
    points = _rows(points, method)
    check_in_range(variance, points.dtype, "variance")
    if method == "em":
        check_squares(points, "points", over=variance)
    given: dict[str, Any] = {"init": init, "n_iter": n_iter, "variance": variance}
    anchors = fit_anchors(points, n_anchors, method=method, rng=random_stream(rng, points), n_jobs=n_jobs, **given)
    xp = array_namespace(anchors)
    if not bool(xp.all(xp.isfinite(anchors))):  # looked for in all points only where something went wrong
        check_finite_rows(points, "points")
    return anchors


def fit_anchors(
    points: Any,
    n_anchors: int,
    *,
    method: str,
    rng: Any,
    init: str = "random",
    n_iter: int = 5,
    variance: float = 1.0,
    n_jobs: int | None = None,
) -> Any:
    """`learn_anchors` of checked points."""
    return METHODS[method](points, n_anchors, init, n_iter, variance, rng, n_jobs)


def _rows(points: Any, method: str) -> Any:
    """The points as floats, (point, feature), at least one of them."""
    if sp.issparse(points) and method == "em":
        raise InputTypeError("method='em' takes dense points, got a sparse matrix; pass points.toarray().")
    points = points if is_torch_array(points) else as_floats(points, "points")
    if points.ndim != 2 or 0 in points.shape:
        raise InputError(
            parameter="points",
            expected="be (point, feature) with at least one row",
            got=f"shape {tuple(points.shape)}",
            advice="pass such, and at least one column",
        )
    if not is_torch_array(points):
        check_finite_rows(points, "points")
        check_squares(points, "points")
        return points
    xp = array_namespace(points)
    return points if xp.isdtype(points.dtype, "real floating") else xp.astype(points, xp.float64)


def _plain(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    return kmeans(points, n_anchors, rng=rng, init=init, n_iter=n_iter, n_jobs=n_jobs)


def _spherical(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    return kmeans(points, n_anchors, rng=rng, spherical=True, init=init, n_iter=n_iter, n_jobs=n_jobs)


def _random(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    return kmeans(points, n_anchors, rng=rng, init=init, n_iter=0, n_jobs=n_jobs)


def _mixture_em(points, n_anchors, init, n_iter, variance, rng, n_jobs):
    means = kmeans(points, n_anchors, rng=rng, init=init, n_iter=2, n_jobs=n_jobs)
    for _ in range(n_iter):
        means = mixture_em_step(points, means, variance, n_jobs=n_jobs)
    return means


def mixture_em_step(points: Any, means: Any, variance: float, *, n_jobs: int | None = None) -> Any:
    """The means after one EM iteration on all points (Eq. 17), summed block by block in order; a mass of zero stays."""
    xp = array_namespace(points, means)

    def block_sums(rows: slice) -> tuple[Any, Any]:
        alpha = xp.exp(posterior(points[rows], means, variance))  # (point, anchor)
        return xp.astype(alpha.T @ points[rows], xp.float64), xp.sum(alpha, axis=0, dtype=xp.float64)

    size = block_rows(device_kind(points), points.shape[1] * 8, 4096)
    parts = map_blocks(block_sums, row_blocks(points.shape[0], size), n_jobs=n_jobs)
    sums, mass = (xp.sum(xp.stack(part), axis=0) for part in zip(*parts, strict=True))
    filled = (mass > 0)[:, None]
    new = xp.where(filled, sums / xp.where(filled, mass[:, None], xp.ones_like(mass[:, None])), means)
    return xp.astype(new, means.dtype)


METHODS: dict[str, Callable[..., Any]] = {
    "kmeans": _plain,
    "spherical": _spherical,
    "em": _mixture_em,
    "random": _random,
}
