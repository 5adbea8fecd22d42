"""θ_0 of any family, learned from a sample of the points: k-means, then the mixture's own EM (Section 4.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph._arrays import as_floats, check_finite_rows, check_squares
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import block_rows, map_blocks, one_blas_thread, progress_steps, row_blocks
from fishergraph._validation import MOST_ANCHORS, MOST_ITERATIONS, check_integer
from fishergraph.device import device_kind
from fishergraph.em.anchors import fit_anchors
from fishergraph.em.kmeans import kmeans
from fishergraph.em.settings import EM
from fishergraph.family import Family
from fishergraph.family.base import log_softmax, map_arrays, repeated
from fishergraph.ops.streams import random_stream

# Rows of a block at most, and the numbers their statistics take.
_BLOCK, _FLOATS = 4096, 2**22


def learn_family(
    family: Family, points: Any, n_anchors: int, *, n_iter: int = 20, rng: Any = None, n_jobs: int | None = None
) -> Any:
    """Learn θ_0 of a family: clusters of k-means, then EM iterations on all points.

    Variances and the like are bounded by those of all points together; a multinomial is smoothed. Fewer distinct points
    than anchors give fewer components, with a warning.

    Parameters
    ----------
    family : Family
        The family, such as ``DiagonalMixture()``.
    points : array of shape (n_points, n_features)
        The points, dense.
    n_anchors : int
        The number of components.
    n_iter : int, default=20
        EM iterations.
    rng : int, Generator or None, default=None
        Seed or NumPy generator.
    n_jobs : int, optional
        Threads; None uses every core.

    Returns
    -------
    parameter record
        The parameters θ_0, a named tuple of arrays.

    See Also
    --------
    learn_anchors : The anchors of a Gaussian mixture.
    em_estimate : EM from θ_0 on every multiset.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import DiagonalMixture, learn_family
    >>> points = np.random.default_rng(0).normal(size=(100, 2))
    >>> learn_family(DiagonalMixture(), points, 3, rng=0).means.shape
    (3, 2)
    """
    if not isinstance(family, Family):
        raise InputTypeError(
            parameter="family",
            expected="be a record such as DiagonalMixture()",
            got=f"{type(family).__name__}",
            advice="choose_family(name) makes one",
        )
    n_anchors = check_integer(n_anchors, "n_anchors", least=1, most=MOST_ANCHORS)
    n_iter = check_integer(n_iter, "n_iter", least=0, most=MOST_ITERATIONS)
    if not is_torch_array(points):
        points = _checked_points(family, points)
    return fit_family(family, points, n_anchors, n_iter=n_iter, rng=random_stream(rng, points), n_jobs=n_jobs)


def _checked_points(family: Family, points: Any) -> Any:
    """Dense points that the family takes."""
    if sp.issparse(points):
        raise InputTypeError(
            parameter="points",
            expected="be a dense matrix",
            got="a sparse one",
            advice="pass points.toarray()",
        )
    points = as_floats(points, "points")
    if points.ndim != 2 or 0 in points.shape:
        raise InputError(
            parameter="points",
            expected="be (point, feature) with at least one row and column",
            got=f"shape {points.shape}",
            advice="reshape them",
        )
    check_finite_rows(points, "points")
    check_squares(points, "points")
    family.check_points(points, "points")
    family.check_width(points.shape[1])
    return points


def learn_theta(family: Family, em: EM, points: Any, n_anchors: int, *, rng: Any, n_jobs: int | None = None) -> Any:
    """θ_0 of a layer from a sample of its members: centres for a mixture of centres, else all the family learns."""
    xp = array_namespace(points)
    if xp.finfo(points.dtype).bits < 32:  # stored in 16 bits, learned from in 32
        points = xp.astype(points, xp.float32)
    if not family.fused:
        return fit_family(family, points, n_anchors, rng=rng, n_jobs=n_jobs)
    method = "spherical" if family.spherical else em.init
    return family.at_centres(fit_anchors(points, n_anchors, method=method, rng=rng, n_jobs=n_jobs), points)


@one_blas_thread()
def fit_family(
    family: Family, points: Any, n_anchors: int, *, rng: Any, n_iter: int = 20, n_jobs: int | None = None
) -> Any:
    """`learn_family` of checked points."""
    bounds = family.whole(points)
    n_anchors = family.n_components(n_anchors)
    if n_anchors == 1:
        return _cast(bounds, points)
    seen = family.clustered(points)
    centres = kmeans(seen, n_anchors, rng=rng, spherical=family.spherical, n_jobs=n_jobs)
    xp = array_namespace(points)
    halves = 0.5 * xp.vecdot(centres, centres)
    bounds = repeated(bounds, len(centres))

    def nearest(rows: slice) -> Any:
        labels = xp.argmax(seen[rows] @ centres.T - halves, axis=1)
        return xp.astype(labels[:, None] == xp.arange(len(centres), device=device_of(labels))[None, :], points.dtype)

    theta = _m_step(family, points, nearest, bounds, n_jobs)
    for _ in range(n_iter):
        theta = em_step(family, points, theta, bounds, n_jobs=n_jobs)
    return _cast(theta, points)


def em_step(family: Family, points: Any, theta: Any, bounds: Any, *, n_jobs: int | None = None) -> Any:
    """θ after one EM iteration on all points (Eq. 14); the likelihood, with the smoothing's prior, does not fall."""
    known = _cast(theta, points)

    def responsibilities(rows: slice) -> Any:
        scores = family.scores(family.statistics(points[rows], known), known)
        return array_namespace(scores).exp(log_softmax(scores))

    return _m_step(family, points, responsibilities, bounds, n_jobs)


def _m_step(family: Family, points: Any, alpha: Callable[[slice], Any], bounds: Any, n_jobs: int | None) -> Any:
    """θ of the weighted means of t with responsibilities (point, anchor), summed block by block in order."""
    xp, known = array_namespace(points), _cast(bounds, points)

    def block_sums(rows: slice) -> tuple[Any, Any]:
        own = alpha(rows)
        statistics = family.statistics(points[rows], known)
        return xp.astype(own.T @ statistics, xp.float64), xp.sum(own, axis=0, dtype=xp.float64)

    width = family.mean_statistics(known).shape[-1]
    size = block_rows(device_kind(points), 8 * width, min(_BLOCK, max(256, _FLOATS // width)))
    blocks, n_anchors = row_blocks(points.shape[0], size), family.mean_statistics(known).shape[0]
    advance = progress_steps(2 * points.shape[0] * width * n_anchors, len(blocks))
    parts = map_blocks(block_sums, blocks, n_jobs=n_jobs, advance=advance)
    sums, mass = (xp.sum(xp.stack(part), axis=0) for part in zip(*parts, strict=True))
    filled = (mass > 0)[:, None]
    means = sums / xp.where(filled, mass[:, None], xp.ones_like(mass[:, None]))
    means = xp.where(filled, means, family.mean_statistics(bounds))
    return family.smoothed(family.estimate(means, mass, bounds), means, mass)


def _cast(theta: Any, points: Any) -> Any:
    """θ in the dtype of the points (of at least 32 bits)."""
    xp = array_namespace(points)
    dtype = points.dtype if xp.finfo(points.dtype).bits >= 32 else xp.float32
    return map_arrays(theta, lambda part: xp.astype(part, dtype))
