"""The gradients of the M-step and of the score of a whole graph, compiled, on arrays: the backward half on the CPU.

Nothing of the size entries × features exists. `transpose` is (indptr (point + 1,), the set of each entry in the order
of the points (entry,), its number in the order of the sets (entry,)).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fishergraph._compile import readonly
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._records import unchecked
from fishergraph.multiset import Multisets
from fishergraph.ops._numba.members import rows_ahead
from fishergraph.ops._numba.tasks import entry_array, exponential, fill_tasks
from fishergraph.ops.attend import numba_gradients as loops
from fishergraph.ops.attend.numba import attend
from fishergraph.ops.engine import Responsibilities
from fishergraph.ops.iterate.numba import fill_rows

Transpose = tuple[np.ndarray, np.ndarray, np.ndarray]
# Sets whose gradients of the anchors are added up in one go.
_SETS = 2048


class Problem(NamedTuple):
    """What every step of the backward pass reads: read-only arrays, so that one compiled version serves them all."""

    points: np.ndarray
    logs: np.ndarray
    alpha: np.ndarray  # (point, anchor); empty if the logs belong to entries
    log_total: np.ndarray
    grad_means: np.ndarray
    grad_mass: np.ndarray  # empty if nothing depends on the mass
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray  # (entry,), or a single one
    step: int  # 1, or 0 for the single one
    by_entry: bool
    n_jobs: int | None
    means: Any  # (set, anchor, feature), or None where each block makes its own again


def attend_backward(
    points: np.ndarray,
    logs: np.ndarray,
    log_total: np.ndarray,
    means: np.ndarray | None,
    grad_means: np.ndarray,
    grad_mass: np.ndarray | None,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None,
    anchors: np.ndarray,
    prior: float,
    by_entry: bool,
    transpose: Transpose,
    *,
    need_weights: bool,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """(∂L/∂points, ∂L/∂logs, ∂L/∂weights or None, ∂L/∂anchors) of `attend`, with G = ∂L/∂means and t the attention.

    ∂L/∂log α_ej = t_ej ⟨x_e − μ_vj, G_vj⟩ + a_e α_ej ∂L/∂mass_vj; ∂L/∂x_u = Σ_e Σ_j t_ej G_vj over the entries of u;
    ∂L/∂a_e is the first without its factor a_e, summed over j; ∂L/∂w_j = Σ_v κ/total_vj G_vj. Means of None are made
    again, for points and anchors alone a block at a time.
    """
    dtype = points.dtype
    used, step = (np.ones(1, dtype), 0) if weights is None else (weights.astype(dtype, copy=False), 1)
    alpha = np.empty((0, logs.shape[1]), dtype) if by_entry else exponential(logs, n_jobs)
    given = np.empty((0, logs.shape[1]), dtype) if grad_mass is None else grad_mass
    if means is None and (by_entry or need_weights):
        means = attend(points, logs, indptr, indices, weights, anchors, prior, by_entry, n_jobs=n_jobs)[0]
    problem = Problem(
        *map(readonly, (points, logs, alpha, log_total, grad_means, given, indptr, indices, used)),
        step=step, by_entry=by_entry, n_jobs=n_jobs, means=None if means is None else readonly(means),
    )  # fmt: skip
    factors, grad_anchors = _factors(problem, anchors, prior)
    if by_entry:
        grad_points, grad_logs = np.empty_like(points), entry_array(logs.shape, logs, indptr)
        _attention(problem, grad_logs)
        pull_entries(None, problem.grad_means, grad_logs, used, step, transpose, grad_points, n_jobs)
    else:
        grad_points, grad_logs = pull_back(
            points, logs, alpha, log_total, factors, given, grad_means, used, step, transpose, n_jobs
        )
    grad_weights = entry_array((len(indices) if need_weights else 0,), logs, indptr)
    if by_entry or need_weights:
        _entries(problem, factors, grad_logs, grad_weights)
    return grad_points, grad_logs, grad_weights if need_weights else None, grad_anchors


def _factors(problem: Problem, anchors: np.ndarray, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """The factors of every set, (set, factor, anchor), and ∂L/∂anchors, added up block by block in their order."""
    n_sets, n_anchors, n_features = problem.grad_means.shape
    dtype = problem.points.dtype
    factors = np.empty((n_sets, 3, n_anchors), dtype)

    known, weights = Responsibilities(problem.logs, problem.alpha), problem.weights if problem.step else None
    whole = unchecked(Multisets, problem.indptr, problem.indices, weights, len(problem.points))

    def fill(rows: slice) -> np.ndarray:
        again = problem.means is None
        means = block_means(problem.points, known, whole.block(rows), anchors, prior) if again else problem.means[rows]
        return block_factors(
            problem.log_total[rows], means, problem.grad_means[rows], problem.grad_mass[rows], prior, factors[rows]
        )

    parts = map_blocks(fill, row_blocks(n_sets, _SETS), n_jobs=problem.n_jobs)
    return factors, np.sum(parts or np.zeros((1, n_anchors, n_features)), axis=0, dtype=np.float64).astype(dtype)


def block_means(
    points: np.ndarray, known: Responsibilities, block: Multisets, anchors: np.ndarray, prior: float
) -> np.ndarray:
    """The means of a block of sets whose logs belong to the points, computed again."""
    means = np.empty((block.n_sets, *anchors.shape), points.dtype)
    mass = np.empty(means.shape[:2], points.dtype)
    fill_rows(points, known, False, block, anchors, variance=1.0, prior=prior, n_em_iter=1, means=means, mass=mass)
    return means


def block_factors(
    log_total: np.ndarray, means: np.ndarray, slopes: np.ndarray, grad_mass: np.ndarray, prior: float,
    factors: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Fill the factors of a block of sets from their means and G = ∂L/∂means; returns its share of ∂L/∂anchors."""
    dtype, part = slopes.dtype, np.empty(slopes.shape[1:], slopes.dtype)
    with np.errstate(divide="ignore"):
        log_prior = dtype.type(np.log(np.float64(prior)))
    # The attention may be off by the least normal number over the least total: e^−25 in float32.
    limit = dtype.type(0.7 * np.log(np.finfo(dtype).max))
    arrays = map(readonly, (log_total, means, slopes, grad_mass))
    loops.set_factors(*arrays, log_prior, limit, factors, part)
    return part


def pull_back(
    points: np.ndarray, logs: np.ndarray, alpha: np.ndarray, log_total: np.ndarray, factors: np.ndarray,
    grad_mass: np.ndarray, slopes: np.ndarray, weights: np.ndarray, step: int, transpose: Transpose,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(∂L/∂points, ∂L/∂logs) where the logs belong to the points, from the factors of the sets and G = ∂L/∂means."""
    grad_points, grad_logs = np.empty_like(points), np.empty_like(logs)
    points, logs, alpha, log_total, factors = map(readonly, (points, logs, alpha, log_total, factors))
    indptr, sets, entries, grad_mass, slopes, weights = map(readonly, (*transpose, grad_mass, slopes, weights))

    def fill(rows: slice, bounds: np.ndarray, part: bool, *outputs: np.ndarray) -> None:
        scratch = _scratch(bounds, slopes.shape[1:], points.dtype)
        loops.pull_points(
            points[rows], logs[rows], alpha[rows], log_total, factors, grad_mass, slopes, readonly(bounds), sets,
            entries, weights, step, *outputs, *scratch, np.empty(slopes.shape[1], points.dtype),
        )  # fmt: skip

    fill_tasks(indptr, fill, (grad_points, grad_logs), n_jobs=n_jobs)
    return grad_points, grad_logs


def pull_entries(centres, rows, by_entry, weights, step, transpose: Transpose, grad_points: np.ndarray, n_jobs) -> None:
    """Fill ∂L/∂x_u = Σ_t Σ_j a_t s_tj (row_vj − c_u) over the entries t of every point, s given by entry."""
    indptr, sets, entries = map(readonly, transpose)
    rows, by_entry, weights = readonly(rows), readonly(by_entry), readonly(weights)

    def fill(own: slice, bounds: np.ndarray, part: bool, *outputs: np.ndarray) -> None:
        scratch = _scratch(bounds, rows.shape[1:], grad_points.dtype)
        middle = None if centres is None else centres[own]
        loops.pull_entries(
            middle, rows, by_entry, readonly(bounds), sets, entries, weights, step, *outputs, *scratch
        )  # fmt: skip

    fill_tasks(indptr, fill, (grad_points,), n_jobs=n_jobs)


def _scratch(bounds: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays for the shares of the largest row, (entry, anchor), and for its sums, (anchor, feature), twice."""
    return np.empty((int(np.diff(bounds).max(initial=0)), shape[0]), dtype), np.empty(shape, dtype), np.empty(shape)


def _attention(problem: Problem, attention: np.ndarray) -> None:
    """Fill α_ej/total_vj of every entry; exp runs over whole blocks, where NumPy has it in vectors."""

    def fill(rows: slice, bounds: np.ndarray, part: bool) -> None:
        own = slice(bounds[0], bounds[-1])
        loops.attention_logs(problem.logs[own], problem.log_total[rows], readonly(bounds), attention[own])
        with np.errstate(over="ignore"):  # of a member that weighs nothing
            np.exp(attention[own], out=attention[own])

    fill_tasks(problem.indptr, fill, n_jobs=problem.n_jobs)


def _entries(problem: Problem, factors: np.ndarray, grad_logs: np.ndarray, grad_weights: np.ndarray) -> None:
    """Fill what belongs to the entries, in the order of the sets."""
    factors, ahead = readonly(factors), rows_ahead(problem.points)

    def fill(rows: slice, bounds: np.ndarray, part: bool) -> None:
        loops.entry_gradients(
            problem.points, problem.logs, problem.alpha, problem.by_entry, problem.log_total[rows], factors[rows],
            problem.grad_mass[rows], problem.means[rows], problem.grad_means[rows], readonly(bounds), problem.indices,
            problem.weights, problem.step, ahead, grad_logs, grad_weights, np.empty(factors.shape[2], factors.dtype),
        )  # fmt: skip

    fill_tasks(problem.indptr, fill, n_jobs=problem.n_jobs)
