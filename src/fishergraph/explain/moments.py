"""The E- and M-steps of one multiset, in float64: responsibilities, attention, means of the statistic (Eq. 14, 17).

The engines do the same for all multisets at once, but keep nothing of the size of the members.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fishergraph.family import Family
from fishergraph.family.base import log_softmax
from fishergraph.family.gaussian_mixture import relative_log_joint
from fishergraph.layer import Layer


@dataclass(frozen=True, eq=False)
class Moments:
    """The last M-step of one multiset, or of some of its members.

    statistics : t(x_u), (member, statistic).
    weights : a_vu, (member,).
    total : the sum of the weights of all members.
    log_alpha : log α of the last E-step, (member, anchor).
    attention : a_vu α_uj / D_vj, (member, anchor).
    coefficients : c_vuj = a_vu α_uj / (κ + D_vj), (member, anchor).
    means : t̄_vj, (anchor, statistic).
    mass : D_vj, (anchor,).
    """

    statistics: np.ndarray
    weights: np.ndarray
    total: float
    log_alpha: np.ndarray
    attention: np.ndarray
    coefficients: np.ndarray
    means: np.ndarray
    mass: np.ndarray

    def of(self, members: slice | np.ndarray) -> Moments:
        """The same of some members."""
        names = ("statistics", "weights", "log_alpha", "attention", "coefficients")
        return replace(self, **{name: getattr(self, name)[members] for name in names})


def last_moments(layer: Layer, points: np.ndarray, weights: np.ndarray) -> Moments:
    """The last M-step of one multiset (Eq. 14, 17)."""
    family, em, theta = layer.family, layer.em, layer.theta
    start = family.mean_statistics(theta)
    statistics = family.statistics(points, theta)
    logs = family.log_responsibilities(statistics, theta)
    moments = _no_step(statistics, weights, logs, start)
    for step in range(em.n_iter if len(points) else 0):
        if step > 0:
            logs = _later_logs(family, moments, theta, em.prior)
        if not em.is_posterior:
            logs = _transported(logs, weights, em.slack)
        moments = _m_step(statistics, weights, logs, start, em.prior)
    return moments


def _m_step(statistics: np.ndarray, weights: np.ndarray, logs: np.ndarray, start: np.ndarray, prior: float) -> Moments:
    """μ_j = (κ w_j + Σ a α t) / (κ + Σ a α) from logs, which no mass is too small for."""
    if not weights.any():
        return _no_step(statistics, weights, logs, start)
    with np.errstate(divide="ignore"):
        terms = logs + np.log(weights)[:, None]  # (member, anchor)
    highest = terms.max(axis=0)
    parts = np.exp(terms - highest)
    total = parts.sum(axis=0)
    attention, mass = parts / total, np.exp(highest) * total
    reached = mass / (prior + mass) if prior > 0 else np.ones_like(mass)
    means = start + reached[:, None] * (attention.T @ statistics - start)
    return Moments(statistics, weights, float(weights.sum()), logs, attention, attention * reached, means, mass)


def _no_step(statistics: np.ndarray, weights: np.ndarray, logs: np.ndarray, start: np.ndarray) -> Moments:
    """A multiset without weight, or before any M-step: nobody is attended to."""
    none = np.zeros_like(logs)
    return Moments(statistics, weights, float(weights.sum()), logs, none, none, start, np.zeros(len(start)))


def _later_logs(family: Family, moments: Moments, theta: Any, prior: float) -> Any:
    """log α at the parameters of the multiset."""
    if family.fused:
        return log_softmax(relative_log_joint(moments.statistics, moments.means, theta.variance))
    natural, offsets = family.natural(family.estimate(moments.means[None], moments.mass[None], theta, prior))
    return log_softmax(moments.statistics @ natural[0].T + offsets[0])


def _transported(logs: np.ndarray, weights: np.ndarray, slack: float) -> np.ndarray:
    """log α of the balanced or unbalanced E-step."""
    from fishergraph.ops.transport.numba import scratch, transport_row
    from fishergraph.ops.transport.rules import MAX_ITER, default_tolerance, warn_unmet

    logs, tolerance = logs.copy(), default_tolerance(logs.itemsize)
    one = np.ascontiguousarray(weights)
    _, unmet = transport_row(logs, one, 1, 0, len(logs), slack, tolerance, MAX_ITER, scratch(logs.shape[1]))
    if unmet > 0:
        warn_unmet(unmet, tolerance, MAX_ITER)
    return logs
