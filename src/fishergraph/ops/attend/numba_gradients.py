"""The compiled loops of the gradients: over sets for what belongs to entries, over points for what belongs to points.

The gradient of a point is pulled from the sets that hold it, on the transposed graph: no two threads write to one row.
Bytes per entry of a pull: the rows of the set (4·p·d), gathered once.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, leaf
from fishergraph.ops._numba.members import (
    dot,
    four_moments,
    moment,
    prefetch_member,
    sum_members,
)

# The factors of a set and an anchor.
INVERSE, OFFSET, PRODUCT = 0, 1, 2


@compiled
def set_factors(log_total, means, grad_means, grad_mass, log_prior, limit, factors, grad_anchors):
    """Per set and anchor 1/total, Q/total − ∂L/∂mass and Q_vj = ⟨μ_vj, G_vj⟩; and ∂L/∂w_j = Σ_v κ/total_vj G_vj.

    1/total is −1 where it would leave the range of the floats, and 0 where nothing was summed: the mean is the anchor.
    """
    grad_anchors[:] = 0
    for v in range(log_total.shape[0]):
        for j in range(log_total.shape[1]):
            log, row, factor = log_total[v, j], grad_means[v, j], factors[v]
            empty = log == -np.inf
            factor[INVERSE, j] = 0 if empty else (np.exp(-log) if abs(log) < limit else -1)
            factor[PRODUCT, j] = dot(means[v, j], row)
            factor[OFFSET, j] = factor[INVERSE, j] * factor[PRODUCT, j]
            if len(grad_mass):
                factor[OFFSET, j] -= grad_mass[v, j]
            own = row.dtype.type(1) if empty else np.exp(log_prior - log)
            if own > 0:
                for k in range(len(row)):
                    grad_anchors[j, k] += own * row[k]


@leaf
def _attention(alpha, log, inverse, log_total):
    """α/total = exp(log α − log total), by the logs where one of them leaves the range of the floats."""
    return alpha * inverse if inverse >= 0 and alpha < np.inf else np.exp(log - log_total)


@leaf
def _plain_shares(factors, sets, entries, weights, step, start, stop, shares, offsets):
    """shares_tj = a_t/total_vj over the sets v of one point, and offsets_j = Σ_t a_t (Q/total − ∂L/∂mass)_vj.

    Returns whether every 1/total was in the range of the floats.
    """
    offsets[:] = 0
    least = offsets[0]
    for t in range(start, stop):
        weight, factor = weights[entries[t] * step], factors[sets[t]]
        for j in range(len(offsets)):
            least = min(least, factor[INVERSE, j])
            shares[t - start, j] = weight * factor[INVERSE, j]
            offsets[j] += weight * factor[OFFSET, j]
    return least >= 0


@leaf
def _log_shares(
    log, alpha, log_total, factors, grad_mass, sets, entries, weights, step, start, stop, shares, offsets
):  # fmt: skip
    """The same with the factor α_j, which keeps them in range: shares_tj = a_t exp(log α_j − log total_vj)."""
    offsets[:] = 0
    for t in range(start, stop):
        weight, v, share = weights[entries[t] * step], sets[t], shares[t - start]
        for j in range(len(offsets)):
            share[j] = 0
            if weight != 0:
                share[j] = weight * _attention(alpha[j], log[j], factors[v, INVERSE, j], log_total[v, j])
                offsets[j] += share[j] * factors[v, PRODUCT, j]
                if len(grad_mass):
                    offsets[j] -= weight * alpha[j] * grad_mass[v, j]


@compiled
def pull_points(
    points, logs, alpha, log_total, factors, grad_mass, grad_means, bounds, sets, entries, weights, step,
    grad_points, grad_logs, shares, sums, wide, offsets,
):  # fmt: skip
    """With R_uj = Σ_t a_t α_uj/total_vj G_vj over the sets v of point u: ∂L/∂x_u = Σ_j R_uj, and
    ∂L/∂log α_uj = ⟨x_u, R_uj⟩ − Σ_t a_t α_uj (Q_vj/total_vj − ∂L/∂mass_vj).
    """
    for u in range(len(bounds) - 1):
        start, stop, log, own = bounds[u], bounds[u + 1], logs[u], alpha[u]
        plain = _plain_shares(factors, sets, entries, weights, step, start, stop, shares, offsets)
        for j in range(len(own)):
            plain = plain and own[j] < np.inf
        if not plain:
            _log_shares(
                log, own, log_total, factors, grad_mass, sets, entries, weights, step, start, stop, shares, offsets
            )
        sum_members(grad_means, sets, start, stop, shares, sums, wide, None)
        if plain:
            for j in range(len(own)):
                offsets[j] *= own[j]
                for k in range(sums.shape[1]):
                    sums[j, k] *= own[j]
        _add_anchors(sums, grad_points[u])
        for j in range(len(own)):
            grad_logs[u, j] = dot(points[u], sums[j]) - offsets[j]


@compiled
def pull_entries(centres, rows, by_entry, bounds, sets, entries, weights, step, grad_points, shares, sums, wide):
    """∂L/∂x_u = Σ_t Σ_j a_t s_tj (row_vj − c_u) over the sets v of point u, with s (entry, anchor); c None is zero."""
    for u in range(len(bounds) - 1):
        start, stop = bounds[u], bounds[u + 1]
        for t in range(start, stop):
            weight, given = weights[entries[t] * step], by_entry[entries[t]]
            for j in range(len(given)):
                shares[t - start, j] = weight * given[j] if weight != 0 else weight
        if centres is None:
            sum_members(rows, sets, start, stop, shares, sums, wide, None)
        else:
            sum_members(rows, sets, start, stop, shares, sums, wide, centres[u])
        _add_anchors(sums, grad_points[u])


@leaf
def _add_anchors(sums, total):
    """total = Σ_j sums_j."""
    for k in range(len(total)):
        total[k] = sums[0, k]
    for j in range(1, sums.shape[0]):
        for k in range(len(total)):
            total[k] += sums[j, k]


@compiled
def attention_logs(logs, log_total, bounds, result):
    """log α_ej − log total_vj of the entries of a block of sets, −∞ where nothing was summed."""
    first = bounds[0]
    for v in range(len(bounds) - 1):
        for e in range(bounds[v] - first, bounds[v + 1] - first):
            for j in range(logs.shape[1]):
                total = log_total[v, j]
                result[e, j] = logs[e, j] - total if total > -np.inf else total


@leaf
def _entry_moments(x, means, grad_means, moments):
    """moments_j = ⟨x − μ_j, G_j⟩."""
    n_anchors = len(moments)
    for j in range(0, n_anchors - 3, 4):
        moments[j], moments[j + 1], moments[j + 2], moments[j + 3] = four_moments(x, means, grad_means, j)
    for j in range(n_anchors - n_anchors % 4, n_anchors):
        moments[j] = moment(x, means[j], grad_means[j])


@compiled
def entry_gradients(
    points, logs, alpha, by_entry, log_total, factors, grad_mass, means, grad_means, bounds, indices, weights, step,
    ahead, grad_logs, grad_weights, moments,
):  # fmt: skip
    """With D_ej = α_ej/total_vj ⟨x_e − μ_vj, G_vj⟩ + α_ej ∂L/∂mass_vj: ∂L/∂a_e = Σ_j D_ej, ∂L/∂log α_ej = a_e D_ej.

    By entry, grad_logs holds the attention α_ej/total_vj when it comes in. Empty outputs are not wanted.
    """
    for v in range(len(bounds) - 1):
        for e in range(bounds[v], bounds[v + 1]):
            prefetch_member(points, indices, e + ahead)
            u, weight = indices[e], weights[e * step]
            row, factor = e if by_entry else u, factors[v]
            _entry_moments(points[u], means[v], grad_means[v], moments)
            total = weight - weight
            for j in range(len(moments)):
                if by_entry:
                    share = grad_logs[e, j]
                elif factor[INVERSE, j] == 0:
                    share = total - total
                else:
                    share = _attention(alpha[u, j], logs[u, j], factor[INVERSE, j], log_total[v, j])
                gradient = share * moments[j]
                if len(grad_mass):
                    gradient += np.exp(logs[row, j]) * grad_mass[v, j]
                total += gradient
                if by_entry:
                    grad_logs[e, j] = weight * gradient if weight != 0 else weight
            if len(grad_weights):
                grad_weights[e] = total
