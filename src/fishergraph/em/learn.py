"""θ_0, learned from a sample of the points: anchors of a Gaussian mixture, or the parameters of any family.

Both begin with k-means; a family then learns all of its parameters by its own EM (Section 4.5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph._arrays import as_floats, check_finite_rows, check_in_range, check_squares
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import block_rows, map_blocks, one_blas_thread, progress_steps, row_blocks
from fishergraph._typing import Array, MatrixLike, Rng, Sets
from fishergraph._validation import MOST_ANCHORS, MOST_ITERATIONS, check_integer, check_number, look_up
from fishergraph.device import device_kind
from fishergraph.em.kmeans import INITS, kmeans
from fishergraph.em.settings import EM, METHODS, posterior
from fishergraph.family import Family
from fishergraph.family.base import log_softmax, map_arrays, repeated
from fishergraph.ops.streams import random_stream

# Enough for a handful of anchors; with many anchors the sample grows with their number.
_LEAST_SAMPLE = 4096
_SAMPLES_PER_CENTRE = 128
# Rows of a block at most, and the numbers their statistics take.
_BLOCK, _FLOATS = 4096, 2**22


def sample_size(n_centres: int, max_samples: int, n_available: int) -> int:
    """How many points k-means looks at: 128 per centre, at least 4,096, at most `max_samples`."""
    return min(n_available, max_samples, max(_LEAST_SAMPLE, _SAMPLES_PER_CENTRE * n_centres))


def mean_anchor(points: Array) -> Any:
    """The mean of the points, (1, feature); exactly the point if all are equal."""
    xp, first = array_namespace(points), points[:1]
    return first + xp.astype(xp.mean(xp.astype(points - first, xp.float64), axis=0, keepdims=True), points.dtype)


def sample_members(sets: Sets, size: int, rng: Rng) -> Any:
    """Points drawn from the union of the multisets: a point counts once for every set it belongs to (Section 4.5)."""
    start, n_entries = int(sets.indptr[0]), sets.n_entries
    if n_entries <= size:
        return sets.indices[start : start + n_entries]
    drawn = rng.integers(n_entries, size=size)
    xp = array_namespace(drawn)
    entries = xp.sort(xp.unique_values(drawn))  # in order, as rows are read
    return sets.indices[start + entries]


def learn_anchors(
    points: MatrixLike,
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
    rows = _points(points, sparse=method != "em")
    check_in_range(variance, rows.dtype, "variance")
    if method == "em":
        check_squares(rows, "points", over=variance)
    options: dict[str, Any] = {"init": init, "n_iter": n_iter, "variance": variance}
    anchors = fit_anchors(rows, n_anchors, method=method, rng=random_stream(rng, rows), n_jobs=n_jobs, **options)
    xp = array_namespace(anchors)
    if not bool(xp.all(xp.isfinite(anchors))):  # tensors are searched only if something went wrong
        check_finite_rows(rows, "points")
    return anchors


def fit_anchors(
    points: Any,
    n_anchors: int,
    *,
    method: str,
    rng: Rng,
    init: str = "random",
    n_iter: int = 5,
    variance: float = 1.0,
    n_jobs: int | None = None,
) -> Any:
    """`learn_anchors` of validated points."""
    steps = {"random": 0, "em": 2}.get(method, n_iter)
    spherical = method == "spherical"
    anchors = kmeans(points, n_anchors, rng=rng, spherical=spherical, init=init, n_iter=steps, n_jobs=n_jobs)
    for _ in range(n_iter if method == "em" else 0):
        anchors = mixture_em_step(points, anchors, variance, n_jobs=n_jobs)
    return anchors


def _points(points: Any, *, sparse: bool = False, family: Family | None = None) -> Any:
    """Validated points, (point, feature), with at least one row and column."""
    if is_torch_array(points):
        xp = array_namespace(points)
        points = points if xp.isdtype(points.dtype, "real floating") else xp.astype(points, xp.float64)
    elif sp.issparse(points) and not sparse:
        expected, advice = "be a dense matrix", "pass points.toarray()"
        raise InputTypeError(parameter="points", expected=expected, got="a sparse one", advice=advice)
    else:
        points = as_floats(points, "points")
    if points.ndim != 2 or 0 in points.shape:
        expected = "be (point, feature) with at least one row and column"
        got = f"shape {tuple(points.shape)}"
        raise InputError(parameter="points", expected=expected, got=got, advice="reshape them")
    if not is_torch_array(points):
        check_finite_rows(points, "points")
        check_squares(points, "points")
        if family is not None:
            family.check_points(points, "points")
            family.check_width(points.shape[1])
    return points


def mixture_em_step(points: Array, means: Array, variance: float, *, n_jobs: int | None = None) -> Any:
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


def learn_family(
    family: Family, points: MatrixLike, n_anchors: int, *, n_iter: int = 20, rng: Any = None, n_jobs: int | None = None
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
    rows = _points(points, family=family)
    return fit_family(family, rows, n_anchors, n_iter=n_iter, rng=random_stream(rng, rows), n_jobs=n_jobs)


def learn_theta(family: Family, em: EM, points: Array, n_anchors: int, *, rng: Rng, n_jobs: int | None = None) -> Any:
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
    family: Family, points: Array, n_anchors: int, *, rng: Rng, n_iter: int = 20, n_jobs: int | None = None
) -> Any:
    """`learn_family` of validated points."""
    bounds = family.single(points)
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


def em_step(family: Family, points: Array, theta: NamedTuple, bounds: NamedTuple, *, n_jobs: int | None = None) -> Any:
    """θ after one EM iteration on all points (Eq. 14); the likelihood, with the smoothing's prior, does not fall."""
    start = _cast(theta, points)

    def responsibilities(rows: slice) -> Any:
        scores = family.scores(family.statistics(points[rows], start), start)
        return array_namespace(scores).exp(log_softmax(scores))

    return _m_step(family, points, responsibilities, bounds, n_jobs)


def _m_step(
    family: Family, points: Array, alpha: Callable[[slice], Any], bounds: NamedTuple, n_jobs: int | None
) -> Any:
    """θ of the weighted means of t with responsibilities (point, anchor), summed block by block in order."""
    xp, like = array_namespace(points), _cast(bounds, points)

    def block_sums(rows: slice) -> tuple[Any, Any]:
        weights = alpha(rows)
        statistics = family.statistics(points[rows], like)
        return xp.astype(weights.T @ statistics, xp.float64), xp.sum(weights, axis=0, dtype=xp.float64)

    n_anchors, width = family.mean_statistics(like).shape
    size = block_rows(device_kind(points), 8 * width, min(_BLOCK, max(256, _FLOATS // width)))
    blocks = row_blocks(points.shape[0], size)
    advance = progress_steps(2 * points.shape[0] * width * n_anchors, len(blocks))
    parts = map_blocks(block_sums, blocks, n_jobs=n_jobs, advance=advance)
    sums, mass = (xp.sum(xp.stack(part), axis=0) for part in zip(*parts, strict=True))
    filled = (mass > 0)[:, None]
    means = sums / xp.where(filled, mass[:, None], xp.ones_like(mass[:, None]))
    means = xp.where(filled, means, family.mean_statistics(bounds))
    return family.smoothed(family.estimate(means, mass, bounds), means, mass)


def _cast(theta: NamedTuple, points: Array) -> Any:
    """θ in the dtype of the points (of at least 32 bits)."""
    xp = array_namespace(points)
    dtype = points.dtype if xp.finfo(points.dtype).bits >= 32 else xp.float32
    return map_arrays(theta, lambda part: xp.astype(part, dtype))
