"""Rows cut into tasks for threads: about the same number of entries each, and very long rows in parts.

The rows are cut by their numbers of entries alone, and the parts of a long row are combined in their order. So neither
the number of threads nor their timing changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks

# Entries of a task, and the cost of a row beside its entries.
TASK_ENTRIES, ROW_ENTRIES = 2**15, 4
# A row with more entries than this is cut into parts of this size.
HUB_ENTRIES = 2**15


class Transpose(NamedTuple):
    """For every point the sets that hold it.

    indptr : (point + 1,).
    sets : (entry,), the set of each entry, in the order of the points.
    entries : (entry,), its index in the order of the sets.
    """

    indptr: np.ndarray
    sets: np.ndarray
    entries: np.ndarray


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


def add_parts(parts: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The sums of the outputs of a row's parts, in their order."""
    return [np.sum(np.stack(same), axis=0, dtype=np.float64) for same in zip(*parts, strict=True)]


def fill_tasks(
    indptr: np.ndarray,
    fill: Callable[..., None],
    outputs: Sequence[np.ndarray] = (),
    *,
    combine: Callable[[Any], list[np.ndarray]] = add_parts,
    n_jobs: int | None = None,
) -> None:
    """Fill the rows of the outputs on threads; `combine` makes the outputs of a large row from those of its parts.

    fill(rows, bounds, is_part, *outputs) receives the rows, the offsets of their entries, and whether they are one part
    of a row.
    """
    runs, large = cut_rows(indptr)
    tasks = [(rows, indptr[rows.start : rows.stop + 1], False, [out[rows] for out in outputs]) for rows in runs]
    parts: dict[int, list[list[np.ndarray]]] = {v: [] for v in large}
    for v in large:
        start, stop = int(indptr[v]), int(indptr[v + 1])
        for entries in row_blocks(stop - start, HUB_ENTRIES):
            targets = [np.empty_like(out[v : v + 1]) for out in outputs]
            parts[v].append(targets)
            bounds = np.array([start + entries.start, start + entries.stop], indptr.dtype)
            tasks.append((slice(v, v + 1), bounds, True, targets))

    def run(number: slice) -> None:
        rows, bounds, is_part, targets = tasks[number.start]
        fill(rows, bounds, is_part, *targets)

    map_blocks(run, row_blocks(len(tasks), 1), n_jobs=n_jobs)
    for v in large:
        for out, row in zip(outputs, combine(parts[v]), strict=True):
            out[v] = row[0]


def exponential(logs: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """exp(logs), by row blocks."""
    plain, blocks = np.empty_like(logs), row_blocks(logs.shape[0], TASK_ENTRIES)
    with np.errstate(over="ignore"):  # a sum that is not finite is computed in logs
        if len(blocks) <= 1:
            return np.exp(logs, out=plain)
        map_blocks(lambda rows: np.exp(logs[rows], out=plain[rows]), blocks, n_jobs=n_jobs)
    return plain


def entry_array(shape: tuple[int, ...], like: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """An array to fill, by entry; zeros if the sets are a block, which leaves entries out."""
    partial = int(indptr[-1] - indptr[0]) < shape[0]
    return np.zeros(shape, like.dtype) if partial else np.empty(shape, like.dtype)


def as_weights(weights: np.ndarray | None, dtype: np.dtype) -> tuple[np.ndarray, int]:
    """(weights, 1) for loops that read weights[entry · step], or one weight and step 0 if every entry weighs one."""
    return (np.ones(1, dtype), 0) if weights is None else (weights.astype(dtype, copy=False), 1)
