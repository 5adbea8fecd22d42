"""The scores of members at the parameters of their own multiset, compiled: what later E-steps of any family need.

Bytes per entry: its statistic (4·s), read once for all anchors; the parameters of a set (4·p·s) stay in the cache.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, readonly
from fishergraph.ops._numba.members import four_distances, prefetch_member, rows_ahead, squared_distance, sum_members
from fishergraph.ops._numba.tasks import entry_array, fill_tasks
from fishergraph.ops.attend.numba_backward import Transpose, pull_entries


@compiled
def _scores(statistics, indptr, natural, offsets, scores):
    for v in range(len(indptr) - 1):
        for e in range(indptr[v], indptr[v + 1]):
            row = statistics[e]
            for j in range(natural.shape[1]):
                own, total = natural[v, j], offsets[v, j] - offsets[v, j]
                for k in range(len(row)):
                    total += row[k] * own[k]
                scores[e, j] = total + offsets[v, j]


def entry_scores(statistics: np.ndarray, indptr: np.ndarray, natural: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    scores = np.empty((len(statistics), natural.shape[1]), statistics.dtype)
    _scores(readonly(statistics), readonly(indptr), readonly(natural), readonly(offsets), scores)
    return scores


@compiled
def _score_rows(points, means, bounds, indices, ahead, scores):
    """s_ej = −‖x_e − μ_vj‖²/2 of the entries of a block of sets."""
    n_anchors = means.shape[1]
    for v in range(len(bounds) - 1):
        for e in range(bounds[v], bounds[v + 1]):
            prefetch_member(points, indices, e + ahead)
            x, row = points[indices[e]], scores[e]
            for j in range(0, n_anchors - 3, 4):
                row[j], row[j + 1], row[j + 2], row[j + 3] = four_distances(x, means[v], j)
            for j in range(n_anchors - n_anchors % 4, n_anchors):
                row[j] = squared_distance(x, means[v, j])
            for j in range(n_anchors):
                row[j] /= -2


@compiled
def _score_means(points, means, grad, bounds, indices, grad_means, wide):
    """∂L/∂μ_vj = Σ_e ∂L/∂s_ej (x_e − μ_vj) of a block of sets."""
    for v in range(len(bounds) - 1):
        start, stop = bounds[v], bounds[v + 1]
        sum_members(points, indices, start, stop, grad[start:stop], grad_means[v], wide, means[v])


def score(
    points: np.ndarray, means: np.ndarray, indptr: np.ndarray, indices: np.ndarray, *, n_jobs: int | None = None
) -> np.ndarray:
    """s_ej = −‖x_e − μ_vj‖²/2 of every member at the means of its own set, (entry, anchor)."""
    scores = entry_array((len(indices), means.shape[1]), points, indptr)
    x, centres, members = map(readonly, (points, means, indices))

    def fill(rows: slice, bounds: np.ndarray, part: bool) -> None:
        _score_rows(x, centres[rows], readonly(bounds), members, rows_ahead(points), scores)

    fill_tasks(indptr, fill, n_jobs=n_jobs)
    return scores


def score_backward(
    points: np.ndarray,
    means: np.ndarray,
    grad: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    transpose: Transpose,
    *,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(∂L/∂points, ∂L/∂means) of `score`: ∂L/∂μ_vj = Σ_e ∂L/∂s_ej (x_e − μ_vj), and its negative for the points."""
    grad_points, grad_means = np.empty_like(points), np.empty_like(means)
    x, centres, given, members = map(readonly, (points, means, grad, indices))

    def fill(rows: slice, bounds: np.ndarray, part: bool, *outputs: np.ndarray) -> None:
        _score_means(x, centres[rows], given, readonly(bounds), members, *outputs, np.empty(means.shape[1:]))

    fill_tasks(indptr, fill, (grad_means,), n_jobs=n_jobs)
    pull_entries(x, means, grad, np.ones(1, points.dtype), 0, transpose, grad_points, n_jobs)
    return grad_points, grad_means
