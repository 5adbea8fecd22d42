"""EM on any family: the means of the statistic t(x) of every multiset of a row block, iterated from θ_0 (Eq. 14).

In the first iteration responsibilities belong to the point, as for the mixture of Eq. 16, so nothing per entry exists.
From the second on they belong to the pair (set, point): the statistics of the block's own members are gathered, scored
at the parameters of their set, and averaged again by the same engine.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._errors import InputError
from fishergraph._parallel import block_rows, map_blocks, one_blas_thread, row_blocks
from fishergraph._repr import short_repr
from fishergraph._validation import MOST_ITERATIONS, check_integer, check_number
from fishergraph.device import device_kind
from fishergraph.em.e_step import e_step_slack
from fishergraph.em.loop import EMMeans, as_points, block_means, check_sets, first_responsibilities
from fishergraph.family import Family, check_theta, theta_sizes
from fishergraph.family.base import log_softmax
from fishergraph.ops import Engine, Responsibilities, choose_engine

_ROWS = 4096
# Numbers that the statistics of all points may be, where these are much wider than the points.
_MOST_HELD = 2**26


class Scored(NamedTuple):
    """The points of a layer for its family: t(x), (point, statistic), and α at θ_0, (point, anchor)."""

    statistics: Any
    alpha: Responsibilities

    __repr__ = short_repr


def held_statistics(family: Family, n_points: int, n_features: int) -> int:
    """How many numbers the statistics of all points take.

    0 if they are too many, so that those of the members of each row block are made instead, or if t(x) = x.
    """
    width = family.n_statistics(n_features)
    many = width > 2 * n_features and n_points * width > _MOST_HELD
    return 0 if many or family.fused else n_points * width


def score_points(family: Family, points: Any, theta: Any, *, n_jobs: int | None = None) -> Scored:
    """Return the statistics and first responsibilities of all points, by row blocks."""
    if family.fused:
        own = None if family.is_posterior else partial(family.log_responsibilities, theta=theta)
        alpha = first_responsibilities(points, theta.anchors, theta.variance, log_responsibilities=own, n_jobs=n_jobs)
        return Scored(points, alpha)
    xp, like = array_namespace(points), family.mean_statistics(theta)  # (anchor, statistic)
    statistics = xp.empty((points.shape[0], like.shape[1]), dtype=like.dtype, device=device_of(points))
    log = xp.empty((points.shape[0], like.shape[0]), dtype=like.dtype, device=device_of(points))
    plain = xp.empty_like(log)

    def fill(rows: slice) -> None:
        statistics[rows] = family.statistics(xp.astype(points[rows], like.dtype, copy=False), theta)
        log[rows] = log_softmax(family.scores(statistics[rows], theta))
        plain[rows] = xp.exp(log[rows])

    size = block_rows(device_kind(points), 4 * like.shape[1], _ROWS)
    map_blocks(fill, row_blocks(points.shape[0], size), n_jobs=n_jobs)
    return Scored(statistics, Responsibilities(log, plain))


def block_moments(
    engine: Engine,
    family: Family,
    scored: Scored,
    sets: Any,
    theta: Any,
    *,
    prior: float = 0.0,
    n_em_iter: int = 1,
    slack: float = math.inf,
) -> EMMeans:
    """The means of t, (set, anchor, statistic), and the masses, (set, anchor), after `n_em_iter` iterations from θ_0.

    An empty multiset, or no iteration at all, gives the mean statistics of θ_0 and no mass.
    """
    if family.fused:
        options: dict[str, Any] = {"variance": theta.variance, "prior": prior, "n_em_iter": n_em_iter, "slack": slack}
        return block_means(engine, *scored, sets, theta.anchors, **options)
    known = family.mean_statistics(theta)
    options = {"prior": prior, "n_em_iter": min(n_em_iter, 1), "slack": slack}
    found = block_means(engine, *scored, sets, known, **options)
    if n_em_iter > 1:
        members, alone = sets.gather(scored.statistics)
        for _ in range(n_em_iter - 1):
            own = family.estimate(found.means, found.mass, theta, prior)
            logs = log_softmax(_entry_scores(members, alone, *family.natural(own)))
            alpha = Responsibilities(logs, array_namespace(logs).exp(logs))
            found = block_means(engine, members, alpha, alone, known, **options)
    return found


def block_mass(engine: Engine, family: Family, scored: Scored, sets: Any, theta: Any, **steps: Any) -> Any:
    """The masses of `block_moments` alone, (set, anchor); after one posterior E-step no statistic is averaged."""
    if steps["n_em_iter"] != 1 or steps["slack"] != math.inf:
        return block_moments(engine, family, scored, sets, theta, **steps).mass
    nothing = family.mean_statistics(theta)[:, :0]
    return block_means(engine, scored.statistics[:, :0], scored.alpha, sets, nothing).mass


@one_blas_thread()
def em_estimate(
    points: Any,
    multisets: Any,
    theta: Any,
    *,
    prior: float = 0.0,
    n_em_iter: int = 1,
    e_step: str = "posterior",
    column_penalty: float = 1.0,
) -> tuple[Any, Any]:
    """Maximum-likelihood parameters of every multiset by EM from θ_0, for any family (Eq. 11, 14).

    Parameters
    ----------
    points : array of shape (n_points, n_features)
        The points, float32 or float64.
    multisets : Multisets
        The sets over these points.
    theta : parameter record
        θ_0, as `learn_family` returns it, in the dtype of the points; its type says which family it is.
    prior, n_em_iter, e_step, column_penalty : options
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
    """
    family = check_theta(theta)
    prior, n_em_iter = (
        check_number(prior, "prior"),
        check_integer(n_em_iter, "n_em_iter", least=0, most=MOST_ITERATIONS),
    )
    slack = e_step_slack(e_step, column_penalty)
    points = as_points(points, "points")
    n_features = theta_sizes(theta, "theta")["features"]
    if points.shape[1] != n_features:
        raise InputError(
            parameter="points",
            expected=f"have the {n_features} features of theta",
            got=f"{points.shape[1]}",
            advice="pass points of that kind",
        )
    family.check_points(points, "points")
    check_sets(multisets, points.shape[0])
    chosen = choose_engine(n_em_iter=n_em_iter, slack=slack, tensors=False)
    options: dict[str, Any] = {"prior": prior, "n_em_iter": n_em_iter, "slack": slack}
    found = block_moments(chosen, family, score_points(family, points, theta), multisets, theta, **options)
    return family.estimate(*found, theta, prior), found.mass


def _entry_scores(members: Any, sets: Any, natural: Any, offsets: Any) -> Any:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    if isinstance(members, np.ndarray):
        from fishergraph.ops.iterate.numba import entry_scores

        return entry_scores(members, sets.indptr, np.ascontiguousarray(natural), np.ascontiguousarray(offsets))
    xp = array_namespace(members)
    rows = xp.repeat(xp.arange(sets.n_sets, device=device_of(members)), sets.indptr[1:] - sets.indptr[:-1])
    columns = [xp.vecdot(members, natural[rows, j, :]) for j in range(natural.shape[1])]
    return xp.stack(columns, axis=1) + offsets[rows, :]
