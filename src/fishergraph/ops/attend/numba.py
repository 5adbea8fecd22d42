"""The M-step of a whole graph and its gradients, compiled, on arrays.

The gradient of a point is summed over the sets that hold it, on the transposed graph: no two threads write to one row.
Nothing of the size entries × features exists. Bytes per entry of such a sum: the rows of the set (4·p·d), gathered
once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fishergraph._compile import compiled, inner, readonly
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._records import unchecked
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.members import (
    dot,
    four_moments,
    longest_row,
    moment,
    prefetch_member,
    rows_ahead,
    sum_members,
)
from fishergraph.ops._numba.tasks import Transpose, as_weights, entry_array, exponential, fill_tasks
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate.numba import em_block
from fishergraph.ops.segment_sums.numba import add_over_anchors, sum_over_sets

# Sets whose gradients of the anchors are added up at once.
_SETS = 2048
# The factors of a set and an anchor: 1/total, Q/total − ∂L/∂mass and Q = ⟨μ, G⟩.
INVERSE, OFFSET, PRODUCT = 0, 1, 2


def attend(
    points: np.ndarray,
    logs: np.ndarray,
    sets: Multisets,
    anchors: np.ndarray,
    prior: float,
    by_entry: bool,
    wide: bool = True,
    *,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """means (set, anchor, feature), mass and log(κ + mass) (set, anchor) of every set (Eq. 17).

    μ_vj = (κ w_j + Σ_e a_e α_ej x_e) / (κ + Σ_e a_e α_ej); the anchor if the denominator is empty, with log −∞.
    logs: log α, (point, anchor), or (entry, anchor) if `by_entry`. The arrays are C-ordered and of one float type, so
    `wide`, which asks for means in the type of the logs, changes nothing.
    """
    means = np.empty((sets.n_sets, *anchors.shape), points.dtype)
    mass, totals, shift = (np.empty(means.shape[:2], points.dtype) for _ in range(3))
    alpha = None if by_entry else exponential(logs, n_jobs)

    def fill(rows: slice, bounds: np.ndarray, is_part: bool, *outputs: np.ndarray) -> None:
        block_logs = logs[bounds[0] : bounds[-1]] if by_entry else logs
        responsibilities = Responsibilities(block_logs, exponential(block_logs, 1) if alpha is None else alpha)
        block = unchecked(Multisets, bounds, sets.indices, sets.weights, len(points))
        options: dict[str, Any] = {"prior": 0.0 if is_part else prior, "means": outputs[0], "mass": outputs[1]}
        outputs[2][:], outputs[3][:] = em_block(points, responsibilities, block, anchors, by_entry=by_entry, **options)

    def combine(parts: list[list[np.ndarray]]) -> list[np.ndarray]:
        return _join_parts(parts, anchors, prior)

    fill_tasks(sets.indptr, fill, (means, mass, totals, shift), combine=combine, n_jobs=n_jobs)
    with np.errstate(divide="ignore"):
        np.log(totals, out=totals)
    return means, mass, np.add(totals, shift, out=totals)


def _join_parts(parts: list[list[np.ndarray]], anchors: np.ndarray, prior: float) -> list[np.ndarray]:
    """The outputs of one set from those of its parts: means weighted by their denominators, and the prior's anchor."""
    means, mass, totals, shift = (np.stack(same).astype(np.float64) for same in zip(*parts, strict=True))
    with np.errstate(divide="ignore"):
        log_prior = np.log(np.float64(prior))
    shift = np.where(totals > 0, shift, -np.inf)
    highest = np.maximum(shift.max(axis=0), log_prior)  # (1, anchor)
    highest = np.where(np.isneginf(highest), 0.0, highest)
    c, anchor_c = totals * np.exp(shift - highest), np.exp(log_prior - highest)
    total = c.sum(axis=0) + anchor_c
    filled = ~(total <= 0)  # NaN propagates
    numerator = (c[..., None] * means).sum(axis=0) + anchor_c[..., None] * anchors
    joined = np.where(filled[..., None], numerator / np.where(filled, total, 1)[..., None], anchors)
    return [joined, mass.sum(axis=0), total, highest]


class SetRows(NamedTuple):
    """What the gradients read of the sets: log(κ + mass), G = ∂L/∂means, ∂L/∂mass, and the factors."""

    log_total: np.ndarray
    grad_means: np.ndarray
    grad_mass: np.ndarray  # empty if nothing depends on the mass
    factors: np.ndarray  # (set, factor, anchor)


def attend_backward(
    points: np.ndarray,
    logs: np.ndarray,
    sets: Multisets,
    transpose: Transpose,
    anchors: np.ndarray,
    prior: float,
    by_entry: bool,
    means: np.ndarray | None,
    log_total: np.ndarray,
    grad_means: np.ndarray,
    grad_mass: np.ndarray | None,
    need_weights: bool,
    *,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """(∂L/∂points, ∂L/∂logs, ∂L/∂weights or None, ∂L/∂anchors) of `attend`, with G = ∂L/∂means and t the attention.

    ∂L/∂log α_ej = t_ej ⟨x_e − μ_vj, G_vj⟩ + a_e α_ej ∂L/∂mass_vj; ∂L/∂x_u = Σ_e Σ_j t_ej G_vj over the entries of u;
    ∂L/∂a_e is the first without its factor a_e, summed over j; ∂L/∂w_j = Σ_v κ/total_vj G_vj. Means of None are
    computed again; if only points and anchors need them, a block at a time.
    """
    dtype, nothing = points.dtype, np.empty((0, logs.shape[1]), points.dtype)
    weights = as_weights(sets.weights, dtype)
    responsibilities = Responsibilities(logs, nothing if by_entry else exponential(logs, n_jobs))
    if means is None and (by_entry or need_weights):
        means = attend(points, logs, sets, anchors, prior, by_entry, n_jobs=n_jobs)[0]
    factors = np.empty((sets.n_sets, 3, logs.shape[1]), dtype)
    of_sets = SetRows(log_total, grad_means, nothing if grad_mass is None else grad_mass, factors)

    def fill(rows: slice) -> np.ndarray:
        if means is not None:
            return block_factors(means[rows], rows, of_sets, prior)
        return block_factors(
            block_means(points, responsibilities, sets.block(rows), anchors, prior), rows, of_sets, prior
        )

    parts = map_blocks(fill, row_blocks(sets.n_sets, _SETS), n_jobs=n_jobs)
    grad_anchors = np.sum(parts or np.zeros((1, *anchors.shape)), axis=0, dtype=np.float64).astype(dtype)
    if by_entry:
        grad_logs = entry_array(logs.shape, logs, sets.indptr)
        _fill_attention(logs, log_total, sets.indptr, grad_logs, n_jobs)
        grad_points = sum_over_sets(None, grad_means, grad_logs, weights, transpose, n_jobs)
    else:
        grad_points, grad_logs = pull_back(points, responsibilities, of_sets, weights, transpose, n_jobs)
    grad_weights = entry_array((len(sets.indices) if need_weights else 0,), logs, sets.indptr)
    if by_entry or need_weights:
        assert means is not None
        outputs = grad_logs, grad_weights
        _fill_entries(points, responsibilities, by_entry, of_sets, means, sets, weights, outputs, n_jobs)
    return grad_points, grad_logs, grad_weights if need_weights else None, grad_anchors


def block_means(
    points: np.ndarray, responsibilities: Responsibilities, block: Multisets, anchors: np.ndarray, prior: float
) -> np.ndarray:
    """The means of a block of sets whose logs belong to the points."""
    means = np.empty((block.n_sets, *anchors.shape), points.dtype)
    mass = np.empty(means.shape[:2], points.dtype)
    em_block(points, responsibilities, block, anchors, prior=prior, means=means, mass=mass)
    return means


def block_factors(means: np.ndarray, rows: slice, sets: SetRows, prior: float) -> np.ndarray:
    """Fill the factors of a block of sets from their means; returns its summand of ∂L/∂anchors."""
    dtype, grad_anchors = means.dtype, np.empty(means.shape[1:], means.dtype)
    with np.errstate(divide="ignore"):
        log_prior = dtype.type(np.log(np.float64(prior)))
    # The attention may be off by the least normal number over the least total: e^−25 in float32.
    limit = dtype.type(0.7 * np.log(np.finfo(dtype).max))
    arrays = (readonly(array) for array in (sets.log_total[rows], means, sets.grad_means[rows], sets.grad_mass[rows]))
    _set_factors(*arrays, log_prior, limit, sets.factors[rows], grad_anchors)
    return grad_anchors


@compiled
def _set_factors(log_total, means, grad_means, grad_mass, log_prior, limit, factors, grad_anchors):
    """Per set and anchor 1/total, Q/total − ∂L/∂mass and Q_vj = ⟨μ_vj, G_vj⟩; and ∂L/∂w_j = Σ_v κ/total_vj G_vj.

    1/total is −1 if it would leave the range of the floats, and 0 if nothing was summed: the mean is the anchor.
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
            coefficient = row.dtype.type(1) if empty else np.exp(log_prior - log)
            if coefficient > 0:
                for k in range(len(row)):
                    grad_anchors[j, k] += coefficient * row[k]


@inner
def _attention(alpha, log, inverse, log_total):
    """α/total = exp(log α − log total), from the logs if one of them leaves the range of the floats."""
    return alpha * inverse if inverse >= 0 and alpha < np.inf else np.exp(log - log_total)


@inner
def _plain_coefficients(factors, sets, entries, weights, step, start, stop, c, offsets):
    """c_tj = a_t/total_vj over the sets v of one point, and offsets_j = Σ_t a_t (Q/total − ∂L/∂mass)_vj.

    Returns whether every 1/total was in the range of the floats.
    """
    offsets[:] = 0
    least = offsets[0]
    for t in range(start, stop):
        weight, factor = weights[entries[t] * step], factors[sets[t]]
        for j in range(len(offsets)):
            least = min(least, factor[INVERSE, j])
            c[t - start, j] = weight * factor[INVERSE, j]
            offsets[j] += weight * factor[OFFSET, j]
    return least >= 0


@inner
def _log_coefficients(log, alpha, of_sets, sets, entries, weights, step, start, stop, c, offsets):
    """The same with the factor α_j, which keeps them in range: c_tj = a_t exp(log α_j − log total_vj)."""
    log_total, _, grad_mass, factors = of_sets
    offsets[:] = 0
    for t in range(start, stop):
        weight, v, row = weights[entries[t] * step], sets[t], c[t - start]
        for j in range(len(offsets)):
            row[j] = 0
            if weight != 0:
                row[j] = weight * _attention(alpha[j], log[j], factors[v, INVERSE, j], log_total[v, j])
                offsets[j] += row[j] * factors[v, PRODUCT, j]
                if len(grad_mass):
                    offsets[j] -= weight * alpha[j] * grad_mass[v, j]


@compiled
def _pull_points(points, logs, alphas, of_sets, bounds, sets, entries, weights, step, grad_points, grad_logs):
    """With R_uj = Σ_t a_t α_uj/total_vj G_vj over the sets v of point u: ∂L/∂x_u = Σ_j R_uj, and
    ∂L/∂log α_uj = ⟨x_u, R_uj⟩ − Σ_t a_t α_uj (Q_vj/total_vj − ∂L/∂mass_vj).
    """
    _, grad_means, _, factors = of_sets
    shape, dtype = grad_means.shape[1:], points.dtype
    c, sums = np.empty((longest_row(bounds), shape[0]), dtype), np.empty(shape, dtype)
    offsets, wide = np.empty(shape[0], dtype), np.empty(shape)
    for u in range(len(bounds) - 1):
        start, stop, log, alpha = bounds[u], bounds[u + 1], logs[u], alphas[u]
        plain = _plain_coefficients(factors, sets, entries, weights, step, start, stop, c, offsets)
        for j in range(len(alpha)):
            plain = plain and alpha[j] < np.inf
        if not plain:
            _log_coefficients(log, alpha, of_sets, sets, entries, weights, step, start, stop, c, offsets)
        sum_members(grad_means, sets, start, stop, c, sums, wide, None)
        if plain:
            for j in range(len(alpha)):
                offsets[j] *= alpha[j]
                for k in range(sums.shape[1]):
                    sums[j, k] *= alpha[j]
        add_over_anchors(sums, grad_points[u])
        for j in range(len(alpha)):
            grad_logs[u, j] = dot(points[u], sums[j]) - offsets[j]


def pull_back(
    points: np.ndarray,
    responsibilities: Responsibilities,
    of_sets: SetRows,
    weights: tuple[np.ndarray, int],
    transpose: Transpose,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """(∂L/∂points, ∂L/∂logs) if the logs belong to the points, from the factors of the sets and G = ∂L/∂means."""
    grad_points, grad_logs = np.empty_like(points), np.empty_like(responsibilities.log)
    points, logs, alpha = map(readonly, (points, *responsibilities))
    indptr, sets, entries = map(readonly, transpose)
    set_rows, used = tuple(map(readonly, of_sets)), readonly(weights[0])

    def fill(rows: slice, bounds: np.ndarray, is_part: bool, *outputs: np.ndarray) -> None:
        point_rows = points[rows], logs[rows], alpha[rows]
        _pull_points(*point_rows, set_rows, readonly(bounds), sets, entries, used, weights[1], *outputs)

    fill_tasks(indptr, fill, (grad_points, grad_logs), n_jobs=n_jobs)
    return grad_points, grad_logs


@compiled
def _attention_logs(logs, log_total, bounds, result):
    """log α_ej − log total_vj of the entries of a block of sets, −∞ if nothing was summed."""
    first = bounds[0]
    for v in range(len(bounds) - 1):
        for e in range(bounds[v] - first, bounds[v + 1] - first):
            for j in range(logs.shape[1]):
                total = log_total[v, j]
                result[e, j] = logs[e, j] - total if total > -np.inf else total


def _fill_attention(
    logs: np.ndarray, log_total: np.ndarray, indptr: np.ndarray, attention: np.ndarray, n_jobs: int | None
) -> None:
    """Fill α_ej/total_vj of every entry; NumPy's exp over whole blocks is vectorised."""
    logs, log_total = readonly(logs), readonly(log_total)

    def fill(rows: slice, bounds: np.ndarray, is_part: bool) -> None:
        entries = slice(bounds[0], bounds[-1])
        _attention_logs(logs[entries], log_total[rows], readonly(bounds), attention[entries])
        with np.errstate(over="ignore"):  # of a member of weight zero
            np.exp(attention[entries], out=attention[entries])

    fill_tasks(indptr, fill, n_jobs=n_jobs)


@inner
def _entry_moments(x, means, grad_means, moments):
    """moments_j = ⟨x − μ_j, G_j⟩."""
    n_anchors = len(moments)
    for j in range(0, n_anchors - 3, 4):
        moments[j], moments[j + 1], moments[j + 2], moments[j + 3] = four_moments(x, means, grad_means, j)
    for j in range(n_anchors - n_anchors % 4, n_anchors):
        moments[j] = moment(x, means[j], grad_means[j])


@compiled
def _entry_gradients(points, responsibilities, by_entry, of_sets, means, members, ahead, grad_logs, grad_weights):
    """With D_ej = α_ej/total_vj ⟨x_e − μ_vj, G_vj⟩ + α_ej ∂L/∂mass_vj: ∂L/∂a_e = Σ_j D_ej, ∂L/∂log α_ej = a_e D_ej.

    By entry, grad_logs holds the attention α_ej/total_vj on input. Empty outputs are not computed.
    """
    (logs, alpha), (log_total, grad_means, grad_mass, factors) = responsibilities, of_sets
    bounds, indices, weights, step = members
    moments = np.empty(means.shape[1], points.dtype)
    for v in range(len(bounds) - 1):
        for e in range(bounds[v], bounds[v + 1]):
            prefetch_member(points, indices, e + ahead)
            u, weight = indices[e], weights[e * step]
            row, factor = e if by_entry else u, factors[v]
            _entry_moments(points[u], means[v], grad_means[v], moments)
            total = weight - weight
            for j in range(len(moments)):
                if by_entry:
                    attention = grad_logs[e, j]
                elif factor[INVERSE, j] == 0:
                    attention = total - total
                else:
                    attention = _attention(alpha[u, j], logs[u, j], factor[INVERSE, j], log_total[v, j])
                gradient = attention * moments[j]
                if len(grad_mass):
                    gradient += np.exp(logs[row, j]) * grad_mass[v, j]
                total += gradient
                if by_entry:
                    grad_logs[e, j] = weight * gradient if weight != 0 else weight
            if len(grad_weights):
                grad_weights[e] = total


def _fill_entries(
    points: np.ndarray,
    responsibilities: Responsibilities,
    by_entry: bool,
    of_sets: SetRows,
    means: np.ndarray,
    sets: Multisets,
    weights: tuple[np.ndarray, int],
    outputs: tuple[np.ndarray, np.ndarray],
    n_jobs: int | None,
) -> None:
    """Fill the gradients that belong to the entries, (logs, weights), in the order of the sets."""
    x, means, indices, used = map(readonly, (points, means, sets.indices, weights[0]))
    logs = tuple(map(readonly, responsibilities))

    def fill(rows: slice, bounds: np.ndarray, is_part: bool) -> None:
        block = tuple(readonly(array[rows]) for array in of_sets)
        members = readonly(bounds), indices, used, weights[1]
        _entry_gradients(x, logs, by_entry, block, means[rows], members, rows_ahead(points), *outputs)

    fill_tasks(sets.indptr, fill, n_jobs=n_jobs)
