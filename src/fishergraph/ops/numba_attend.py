"""The M-step of a whole graph at once, compiled, on arrays: the forward half of the tensor path on the CPU.

The rows are cut into tasks of about the same number of entries, by their numbers of entries alone; a row with very
many of them is cut itself and its parts are put together in their order. So neither the number of threads nor their
timing changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._records import unchecked
from fishergraph.multiset import Multisets
from fishergraph.ops.numba_cpu import fill_rows
from fishergraph.ops.registry import Responsibilities

# Entries of a task, and what a row costs beside its entries.
TASK_ENTRIES, ROW_ENTRIES = 2**15, 4
# A row with more entries than this is cut into parts of this size.
HUB_ENTRIES = 2**15

# fill(rows, bounds, part, *outputs): the rows, the offsets of their entries, whether they are one part of a row
Fill = Callable[..., Any]


def cut_rows(indptr: np.ndarray) -> tuple[list[slice], list[int]]:
    """(runs of rows with about TASK_ENTRIES entries each, the rows that are too large for one task)."""
    n_rows = len(indptr) - 1
    if n_rows and indptr[-1] - indptr[0] + ROW_ENTRIES * n_rows <= min(TASK_ENTRIES, HUB_ENTRIES):
        return [slice(0, n_rows)], []
    hubs = np.flatnonzero(np.diff(indptr) > HUB_ENTRIES)
    cost = indptr - indptr[0] + ROW_ENTRIES * np.arange(n_rows + 1)
    even = np.searchsorted(cost, np.arange(0, cost[-1], TASK_ENTRIES))
    borders = np.unique(np.concatenate([even, hubs, hubs + 1, [n_rows]]))
    large = set(hubs.tolist())
    runs = zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
    return [slice(start, stop) for start, stop in runs if start not in large], sorted(large)


def add_parts(parts: Sequence[Sequence[np.ndarray]]) -> list[Any]:
    """The sums of the outputs of a row's parts, in their order."""
    return [np.sum(np.stack(same), axis=0, dtype=np.float64) for same in zip(*parts, strict=True)]


def fill_tasks(
    indptr: np.ndarray,
    fill: Fill,
    outputs: Sequence[np.ndarray] = (),
    *,
    combine: Callable[[Any], Any] = add_parts,
    n_jobs: int | None = None,
) -> None:
    """Fill the rows of the outputs on threads; `combine` makes the outputs of a large row from those of its parts."""
    runs, large = cut_rows(indptr)
    tasks = [(rows, indptr[rows.start : rows.stop + 1], False, [out[rows] for out in outputs]) for rows in runs]
    parts: dict[int, list[list[np.ndarray]]] = {v: [] for v in large}
    for v in large:
        start, stop = int(indptr[v]), int(indptr[v + 1])
        for part in row_blocks(stop - start, HUB_ENTRIES):
            own = [np.empty_like(out[v : v + 1]) for out in outputs]
            parts[v].append(own)
            bounds = np.array([start + part.start, start + part.stop], indptr.dtype)
            tasks.append((slice(v, v + 1), bounds, True, own))

    def run(number: slice) -> None:
        rows, bounds, part, own = tasks[number.start]
        fill(rows, bounds, part, *own)

    map_blocks(run, row_blocks(len(tasks), 1), n_jobs=n_jobs)
    for v in large:
        for out, row in zip(outputs, combine(parts[v]), strict=True):
            out[v] = row[0]


def exponential(logs: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """exp(logs), by row blocks."""
    plain = np.empty_like(logs)

    def fill(rows: slice) -> None:
        with np.errstate(over="ignore"):  # a sum that is not finite is taken in logs
            np.exp(logs[rows], out=plain[rows])

    map_blocks(fill, row_blocks(logs.shape[0], TASK_ENTRIES), n_jobs=n_jobs)
    return plain


def attend(
    points: np.ndarray,
    logs: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None,
    anchors: np.ndarray,
    prior: float,
    by_entry: bool,
    *,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """means (set, anchor, feature), mass and log(κ + mass) (set, anchor) of every set (Eq. 17).

    μ_vj = (κ w_j + Σ_e a_e α_ej x_e) / (κ + Σ_e a_e α_ej); the anchor where the denominator is empty, with log −∞.
    logs: log α, (point, anchor), or (entry, anchor) if `by_entry`. The arrays are C-ordered and of one float type.
    """
    n_sets, (n_anchors, n_features) = len(indptr) - 1, anchors.shape
    means = np.empty((n_sets, n_anchors, n_features), points.dtype)
    mass, totals, shift = (np.empty((n_sets, n_anchors), points.dtype) for _ in range(3))
    alpha = None if by_entry else exponential(logs, n_jobs)

    def fill(rows: slice, bounds: np.ndarray, part: bool, *outputs: np.ndarray) -> None:
        own = logs[bounds[0] : bounds[-1]] if by_entry else logs
        sets = unchecked(Multisets, bounds, indices, weights, points.shape[0])
        known = Responsibilities(own, exponential(own, 1) if alpha is None else alpha)
        outputs[2][:], outputs[3][:] = fill_rows(
            points, known, by_entry, sets, anchors,
            variance=1.0, prior=0.0 if part else prior, n_em_iter=1, means=outputs[0], mass=outputs[1],
        )  # fmt: skip

    def combine(parts: list[list[np.ndarray]]) -> list[np.ndarray]:
        return _join_parts(parts, anchors, prior)

    fill_tasks(indptr, fill, (means, mass, totals, shift), combine=combine, n_jobs=n_jobs)
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
    shares, own = totals * np.exp(shift - highest), np.exp(log_prior - highest)
    total = shares.sum(axis=0) + own
    filled = ~(total <= 0)  # what is no number stays none
    numerator = (shares[..., None] * means).sum(axis=0) + own[..., None] * anchors
    joined = np.where(filled[..., None], numerator / np.where(filled, total, 1)[..., None], anchors)
    return [joined, mass.sum(axis=0), total, highest]
