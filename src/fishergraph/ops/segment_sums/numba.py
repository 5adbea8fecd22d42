"""Sums of rows, compiled: by label, for k-means, and over the sets that hold a point, for gradients."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, compiled_sum, inner, readonly
from fishergraph.ops._numba.members import longest_row, sum_members
from fishergraph.ops._numba.tasks import Transpose, fill_tasks


@compiled
def _add_segments(rows, labels, sums):
    for i in range(len(labels)):
        row, total = rows[i], sums[labels[i]]
        for k in range(len(row)):
            total[k] += row[k]


def add_segments(rows: np.ndarray, labels: np.ndarray, sums: np.ndarray) -> None:
    """sums[labels[i]] += rows[i], in the order of the rows."""
    _add_segments(readonly(rows), readonly(labels), sums)


@compiled_sum
def add_scaled_segments(rows, scales, labels, sums):
    """sums[labels[i]] += scales[i] · rows[i], in the order of the rows."""
    for i in range(rows.shape[0]):
        x, scale, row = rows[i], scales[i], sums[labels[i]]
        for k in range(len(x)):
            row[k] += scale * x[k]


@inner
def add_over_anchors(sums, total):
    """total = Σ_j sums_j."""
    for k in range(len(total)):
        total[k] = sums[0, k]
    for j in range(1, sums.shape[0]):
        for k in range(len(total)):
            total[k] += sums[j, k]


@compiled
def _sum_sets(centres, rows, values, bounds, sets, entries, weights, step, out):
    """The sums of `sum_over_sets` of a block of points."""
    shape = rows.shape[1:]
    c, sums, wide = np.empty((longest_row(bounds), shape[0]), rows.dtype), np.empty(shape, rows.dtype), np.empty(shape)
    for u in range(len(bounds) - 1):
        start, stop = bounds[u], bounds[u + 1]
        for t in range(start, stop):
            weight, value = weights[entries[t] * step], values[entries[t]]
            for j in range(len(value)):
                c[t - start, j] = weight * value[j] if weight != 0 else weight
        if centres is None:
            sum_members(rows, sets, start, stop, c, sums, wide, None)
        else:
            sum_members(rows, sets, start, stop, c, sums, wide, centres[u])
        add_over_anchors(sums, out[u])


def sum_over_sets(
    centres: np.ndarray | None,
    rows: np.ndarray,
    values: np.ndarray,
    weights: tuple[np.ndarray, int],
    transpose: Transpose,
    n_jobs: int | None,
) -> np.ndarray:
    """Σ_e Σ_j a_e s_ej (row_vj − c_u) over the entries e of every point u, (point, feature), s the values by entry."""
    out = np.empty((len(transpose.indptr) - 1, rows.shape[2]), rows.dtype)
    rows, values, sets, entries, used = map(readonly, (rows, values, transpose.sets, transpose.entries, weights[0]))

    def fill(points: slice, bounds: np.ndarray, is_part: bool, target: np.ndarray) -> None:
        centre = None if centres is None else centres[points]
        _sum_sets(centre, rows, values, readonly(bounds), sets, entries, used, weights[1], target)

    fill_tasks(transpose.indptr, fill, (out,), n_jobs=n_jobs)
    return out
