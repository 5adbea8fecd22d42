"""EM on multisets: `em_means`, the one hot primitive, and the same for any family (Eq. 14, 17).

In the first iteration responsibilities belong to the point, so they are computed once for all row blocks and nothing
per entry exists. From the second on they belong to the pair (set, point). The engines iterate the mixture of Eq. 16
themselves. For the other families the statistics of the members of a block are gathered, scored at the parameters of
their set, and averaged again by the same engine.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph._arrays import as_floats, check_finite_rows, check_heaviest, check_in_range, check_squares
from fishergraph._errors import InputError, InputTypeError
from fishergraph._parallel import block_rows, map_blocks, one_blas_thread, row_blocks
from fishergraph._repr import short_repr
from fishergraph._typing import Array, MatrixLike, Sets
from fishergraph._validation import MOST_ITERATIONS, check_integer, check_number
from fishergraph._warn import each_warning_once
from fishergraph.device import device_kind
from fishergraph.em.settings import e_step_slack
from fishergraph.family import Family, check_theta, theta_sizes
from fishergraph.family.base import log_softmax
from fishergraph.family.gaussian_mixture import GaussianMixture, GaussianMixtureTheta
from fishergraph.multiset import Multisets
from fishergraph.ops import Engine, Responsibilities, choose_engine

# Rows of a block whose means are written straight to where they stay, and of one that is scored.
_ROWS, SCORED_ROWS = 2048, 4096
# Numbers that the statistics of all points may be, where these are much wider than the points.
_MOST_HELD = 2**26
_MIXTURE = GaussianMixture()


class EMMeans(NamedTuple):
    """means (set, anchor, feature), and mass (set, anchor): Σ_u a_vu α_uj of the last E-step."""

    means: Any
    mass: Any

    __repr__ = short_repr


class Scored(NamedTuple):
    """The points of a layer for its family: t(x), (point, statistic), and α at θ_0, (point, anchor)."""

    statistics: Array
    alpha: Responsibilities

    __repr__ = short_repr


def sum_dtype(points: Array, anchors: Array) -> Any:
    """The dtype means are summed in: that of the points, or of the anchors if points are stored in 16 bits."""
    return points.dtype if points.dtype.itemsize >= 4 else anchors.dtype


# --- the first E-step ------------------------------------------------------------------------------------


def held_statistics(family: Family, n_points: int, n_features: int) -> int:
    """How many numbers the statistics of all points take.

    0 if they are too many, so that those of the members of each row block are made instead, or if t(x) = x.
    """
    width = family.n_statistics(n_features)
    many = width > 2 * n_features and n_points * width > _MOST_HELD
    return 0 if many or family.fused else n_points * width


def score_points(family: Family, points: Array, theta: NamedTuple, *, n_jobs: int | None = None) -> Scored:
    """Return the statistics and first responsibilities of all points, by row blocks."""
    means, fused = family.mean_statistics(theta), family.fused  # (anchor, statistic)
    n_points, (n_anchors, n_statistics) = points.shape[0], means.shape
    if fused and points.shape[1] != n_statistics:  # compiled loops would read past the shorter ones
        expected, got = f"be as wide as the anchors, {n_statistics}", f"{points.shape[1]} columns"
        advice = "fit again if parameters were changed after the fit"
        raise InputError(parameter="points", expected=expected, got=got, advice=advice)
    xp, dtype, device = array_namespace(points), means.dtype, device_of(points)
    if fused:
        dtype = sum_dtype(points, means)
    statistics: Any = points if fused else xp.empty((n_points, n_statistics), dtype=dtype, device=device)
    log = xp.empty((n_points, n_anchors), dtype=dtype, device=device)
    plain, mixture = xp.empty_like(log), cast(Any, theta)

    def fill(rows: slice) -> None:
        if fused and family.is_posterior and isinstance(points, np.ndarray):
            from fishergraph.ops.posterior.numba import posterior_block

            posterior_block(points[rows], mixture.anchors, mixture.variance, log[rows], plain[rows])
            return
        block = xp.astype(points[rows], dtype, copy=False)
        if not fused:
            statistics[rows] = family.statistics(block, theta)
            block = statistics[rows]
        log[rows] = family.log_responsibilities(block, theta)
        plain[rows] = xp.exp(log[rows])

    size = block_rows(device_kind(points), 4 * n_statistics, SCORED_ROWS)
    map_blocks(fill, row_blocks(n_points, size), n_jobs=n_jobs)
    return Scored(statistics, Responsibilities(log, plain))


def first_responsibilities(
    points: Array, anchors: Array, variance: float, *, n_jobs: int | None = None
) -> Responsibilities:
    """The posterior of all points at the anchors of the mixture of Eq. 16, (point, anchor)."""
    theta = GaussianMixtureTheta(anchors, variance)
    return score_points(_MIXTURE, points, theta, n_jobs=n_jobs).alpha


# --- one row block ---------------------------------------------------------------------------------------


def block_means(
    engine: Engine,
    points: Array,
    responsibilities: Responsibilities,
    sets: Sets,
    anchors: Array,
    *,
    variance: float = 1.0,
    prior: float = 0.0,
    n_iter: int = 1,
    slack: float = math.inf,
    out: EMMeans | None = None,
) -> EMMeans:
    """`em_means` of one row block. An empty multiset, or no iteration at all, gives the anchors and no mass."""
    if out is None:
        shape, options = (sets.n_sets, *anchors.shape), {"dtype": sum_dtype(points, anchors)}
        empty: Any = np.empty  # looking up the array namespace takes a quarter of what a block spends in Python
        if not isinstance(points, np.ndarray):
            empty, options["device"] = array_namespace(points).empty, device_of(points)
        out = EMMeans(empty(shape, **options), empty(shape[:2], **options))
    means, mass = out
    if n_iter == 0:
        means[:], mass[:] = anchors, 0
        return out
    steps: dict[str, Any] = {"variance": variance, "prior": prior, "n_iter": n_iter}
    if slack != math.inf:
        steps["slack"] = slack
    engine.em_block(points, responsibilities, sets, anchors, means=means, mass=mass, **steps)
    return out


def block_moments(
    engine: Engine,
    family: Family,
    scored: Scored,
    sets: Sets,
    theta: NamedTuple,
    *,
    prior: float = 0.0,
    n_iter: int = 1,
    slack: float = math.inf,
) -> EMMeans:
    """The means of t, (set, anchor, statistic), and the masses, (set, anchor), after `n_iter` iterations from θ_0.

    An empty multiset, or no iteration at all, gives the mean statistics of θ_0 and no mass.
    """
    start = family.mean_statistics(theta)
    steps: dict[str, Any] = {"prior": prior, "slack": slack, "n_iter": n_iter}
    if family.fused:
        return block_means(engine, *scored, sets, start, variance=cast(Any, theta).variance, **steps)
    steps["n_iter"] = min(n_iter, 1)
    moments = block_means(engine, *scored, sets, start, **steps)
    if n_iter > 1:
        members, entries = sets.gather(scored.statistics)
        for _ in range(n_iter - 1):
            estimate = family.estimate(moments.means, moments.mass, theta, prior)
            logs = log_softmax(_entry_scores(members, entries, *family.natural(estimate)))
            alpha = Responsibilities(logs, array_namespace(logs).exp(logs))
            moments = block_means(engine, members, alpha, entries, start, **steps)
    return moments


def block_mass(engine: Engine, family: Family, scored: Scored, sets: Sets, theta: NamedTuple, **steps: Any) -> Any:
    """The masses of `block_moments` alone, (set, anchor); after one posterior E-step no statistic is averaged."""
    if steps["n_iter"] != 1 or steps["slack"] != math.inf:
        return block_moments(engine, family, scored, sets, theta, **steps).mass
    nothing = family.mean_statistics(theta)[:, :0]
    return block_means(engine, scored.statistics[:, :0], scored.alpha, sets, nothing).mass


def _entry_scores(members: Array, sets: Sets, natural: Array, offsets: Array) -> Any:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    if isinstance(members, np.ndarray):
        from fishergraph.ops.iterate.numba import entry_scores

        indptr = np.asarray(sets.indptr)
        return entry_scores(members, indptr, np.ascontiguousarray(natural), np.ascontiguousarray(offsets))
    xp = array_namespace(members)
    rows = xp.repeat(xp.arange(sets.n_sets, device=device_of(members)), sets.indptr[1:] - sets.indptr[:-1])
    columns = [xp.vecdot(members, natural[rows, j, :]) for j in range(natural.shape[1])]
    return xp.stack(columns, axis=1) + offsets[rows, :]


# --- whole sets ------------------------------------------------------------------------------------------


def em_means(
    points: MatrixLike,
    multisets: Multisets,
    anchors: Any,
    *,
    variance: float = 1.0,
    prior: float = 0.0,
    n_iter: int = 1,
    e_step: str = "posterior",
    column_penalty: float = 1.0,
    bias: Any = None,
    n_jobs: int | None = None,
) -> EMMeans:
    """Means of every multiset after EM that starts at the anchors (Eq. 14, 17).

    One iteration gives μ_vj = (κ w_j + Σ_u a_vu α_uj x_u) / (κ + Σ_u a_vu α_uj).

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        NumPy array or tensor, float32 or float64.
    multisets : Multisets
        The sets over these points; `TensorSets` for tensors.
    anchors : array of shape (n_anchors, n_features)
        The parameters θ_0.
    variance : float, default=1.0
        The variance σ² of every component.
    prior : float, default=0.0
        The weight κ of the anchor as one more member of every component; 0 is the paper.
    n_iter : int, default=1
        The number of iterations.
    e_step : {"posterior", "balanced", "unbalanced"}, default="posterior"
        "balanced" gives every anchor the same mass in every set, "unbalanced" penalises deviations from that.
    column_penalty : float, default=1.0
        The weight τ of the penalty of the unbalanced E-step.
    bias : tensor of shape (n_anchors,), optional
        Log-weights of the components; for tensors only.
    n_jobs : int, optional
        Threads; None uses every core.

    Returns
    -------
    EMMeans
        `means` of shape (n_sets, n_anchors, n_features) and `mass` of shape (n_sets, n_anchors). Tensors give tensors,
        differentiable in points, anchors, bias and the weights of `TensorSets`.

    See Also
    --------
    em_estimate : The same for any family.
    fisher_embedding : Tangent vectors of the means.

    Notes
    -----
    Layers never call this on all rows at once; they run the same engine per row block. `config_context` names the
    engine.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import em_means, neighbourhoods
    >>> points, path = np.array([[0.0], [1.0], [4.0]]), np.array([[0, 1], [1, 2]])
    >>> em_means(points, neighbourhoods(path), points[:1]).means.ravel()
    array([0. , 0.5, 2.5])
    """
    variance = check_number(variance, "variance", strict=True)
    prior = check_number(prior, "prior")
    n_iter = check_integer(n_iter, "n_iter", least=0, most=MOST_ITERATIONS)
    steps: dict[str, Any] = {"prior": prior, "n_iter": n_iter, "slack": e_step_slack(e_step, column_penalty)}
    if is_torch_array(points):
        from fishergraph.ops.iterate.torch_checked import checked_em_means

        return EMMeans(*checked_em_means(points, multisets, anchors, variance=variance, bias=bias, **steps))
    if bias is not None:
        raise InputError("bias is for tensors, got NumPy points; pass torch tensors, or leave bias=None.")
    return _array_means(points, multisets, anchors, variance, n_jobs, **steps)


@each_warning_once()
def _array_means(
    points: MatrixLike, multisets: Multisets, anchors: MatrixLike, variance: float, n_jobs: int | None, **steps: Any
) -> EMMeans:
    """`em_means` of NumPy arrays, row block by row block."""
    rows = as_points(points, "points")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, which the next lines refuse
        start = as_points(anchors, "anchors").astype(rows.dtype, copy=False)
    check_squares(rows, "points", over=variance)
    check_squares(start, "anchors", over=variance)
    check_in_range(variance, rows.dtype, "variance")
    check_in_range(steps["prior"], rows.dtype, "prior")
    if start.shape[0] == 0 or start.shape[1] != rows.shape[1]:
        expected = f"have the shape (anchor, {rows.shape[1]}) with at least one anchor"
        advice = "learn them from these points with learn_anchors"
        raise InputError(parameter="anchors", expected=expected, got=f"{start.shape}", advice=advice)
    check_sets(multisets, rows.shape[0])
    check_heaviest(multisets.weights, rows.dtype)
    engine = choose_engine(n_iter=steps["n_iter"], slack=steps["slack"], tensors=False)
    alpha = first_responsibilities(rows, start, variance, n_jobs=n_jobs)
    means = np.empty((multisets.n_sets, *start.shape), rows.dtype)
    mass = np.empty((multisets.n_sets, start.shape[0]), rows.dtype)

    def fill(block: slice) -> None:
        out = EMMeans(means[block], mass[block])
        block_means(engine, rows, alpha, multisets.block(block), start, variance=variance, out=out, **steps)

    map_blocks(fill, row_blocks(multisets.n_sets, _ROWS), n_jobs=n_jobs)
    return EMMeans(means, mass)


@one_blas_thread()
def em_estimate(
    points: MatrixLike,
    multisets: Multisets,
    theta: NamedTuple,
    *,
    prior: float = 0.0,
    n_iter: int = 1,
    e_step: str = "posterior",
    column_penalty: float = 1.0,
) -> tuple[Any, Any]:
    """Maximum-likelihood parameters of every multiset by EM from θ_0.

    This is Eq. 11 and 14, for any family.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        The points, float32 or float64.
    multisets : Multisets
        The sets over these points.
    theta : parameter record
        The parameters θ_0, as `learn_family` returns it, in the dtype of the points; its type says which family it is.
    prior, n_iter, e_step, column_penalty : options
        See `em_means`.

    Returns
    -------
    theta : parameter record
        One θ per set along its first axis.
    mass : array of shape (n_sets, n_anchors)
        Σ_u a_vu α_uj of the last E-step.

    See Also
    --------
    em_means : The same for the mixture of Eq. 16.
    tangent_kernel : Compares the estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import DiagonalMixture, em_estimate, learn_family, neighbourhoods
    >>> points = np.random.default_rng(0).normal(size=(6, 2))
    >>> sets = neighbourhoods(np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]))
    >>> theta, mass = em_estimate(points, sets, learn_family(DiagonalMixture(), points, 2, rng=0))
    >>> theta.means.shape, mass.shape
    ((6, 2, 2), (6, 2))
    """
    family = check_theta(theta)
    n_iter = check_integer(n_iter, "n_iter", least=0, most=MOST_ITERATIONS)
    prior, slack = check_number(prior, "prior"), e_step_slack(e_step, column_penalty)
    rows = as_points(points, "points")
    n_features = theta_sizes(theta, "theta")["features"]
    if rows.shape[1] != n_features:
        expected, advice = f"have the {n_features} features of theta", "pass points of that kind"
        raise InputError(parameter="points", expected=expected, got=f"{rows.shape[1]}", advice=advice)
    family.check_points(rows, "points")
    check_sets(multisets, rows.shape[0])
    engine = choose_engine(n_iter=n_iter, slack=slack, tensors=False)
    steps: dict[str, Any] = {"prior": prior, "n_iter": n_iter, "slack": slack}
    moments = block_moments(engine, family, score_points(family, rows, theta), multisets, theta, **steps)
    return family.estimate(*moments, theta, prior), moments.mass


def check_sets(sets: Multisets, n_rows: int) -> None:
    """Raise unless these are multisets over so many rows; the record has checked its arrays."""
    if not isinstance(sets, Multisets):
        got, advice = type(sets).__name__, "pass neighbourhoods(graph)"
        raise InputTypeError(parameter="multisets", expected="be Multisets", got=got, advice=advice)
    if sets.n_points != n_rows:
        raise InputError(
            f"the multisets are over {sets.n_points} points, got {n_rows} rows; pass the points they were built for."
        )


def as_points(array: MatrixLike, name: str) -> np.ndarray:
    """A C-ordered float matrix by the rule of `as_floats`, with finite entries."""
    if sp.issparse(array):
        advice = f"pass {name}.toarray()"
        raise InputTypeError(parameter=name, expected="be a dense matrix", got="a sparse one", advice=advice)
    points = as_floats(array, name)
    if points.ndim != 2:
        expected, got = "be a matrix of shape (rows, features)", f"shape {points.shape}"
        raise InputError(parameter=name, expected=expected, got=got, advice="reshape it")
    check_finite_rows(points, name)
    return points
