"""The nearest rows, exactly: products of float32 blocks find candidates, float64 orders them.

Blocks of rows times blocks of queries are matrix products, of which a heap per query keeps the best. The product of a
candidate differs from the exact one by at most a tolerance. If rows outside the heap could belong into it by that, the
query is asked again with a larger heap. Candidates are then compared in float64, and equal ones go by row. Neither
threads nor the other queries change a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fishergraph._parallel import map_blocks, per_thread, row_blocks
from fishergraph._progress import Progress, silent
from fishergraph.vectors.kernels import expand_groups, keep_best
from fishergraph.vectors.points import BLOCK, Space

_QUERIES = 1024  # queries that are asked at once
_PARTS = 16  # pieces of work if there are few queries
_SPARE = 16  # candidates beyond those that are asked for
_MOST_SPARE = 4096
_ORDERED = 64  # queries whose candidates are compared at once

Found = tuple[np.ndarray, np.ndarray]  # rows and values, (query, neighbour)
Read = Callable[[np.ndarray], np.ndarray]  # numbers of queries → their vectors


@dataclass(frozen=True)
class ExactSearch:
    """Searches in a space that compare with all rows."""

    space: Space
    n_jobs: int | None = None
    progress: Progress = silent

    def nearest_rows(self, own: np.ndarray, k: int) -> Found:
        """The k rows nearest to every row in `own`, itself left out, and their values."""
        points = self.space.points
        asked, place = np.unique(points.distinct.group[own], return_inverse=True)
        first = points.distinct.first[asked]
        groups, keys = self._nearest_groups(lambda numbers: points.read(first[numbers]), len(asked), k + 1)
        return self._expand(groups[place], keys[place], own, k)

    def nearest_to(self, queries: np.ndarray, k: int) -> Found:
        """The k rows nearest to every vector, and their values."""
        groups, keys = self._nearest_groups(queries.__getitem__, len(queries), k)
        return self._expand(groups, keys, np.full(len(queries), -1), k)

    def _expand(self, groups: np.ndarray, keys: np.ndarray, own: np.ndarray, k: int) -> Found:
        """Groups of equal rows as rows."""
        distinct = self.space.points.distinct
        rows, values = np.empty((len(groups), k), np.int64), np.empty((len(groups), k))
        expand_groups(groups, keys, distinct.order, distinct.start, own, rows, values)
        return rows, self.space.metric.sign * values

    def _nearest_groups(self, read: Read, n_queries: int, k: int) -> Found:
        """The k groups nearest to every query, and their values times the sign of the metric, ascending."""
        n_groups = len(self.space.points.distinct.first)
        k = min(k, n_groups)
        groups, keys = np.empty((n_queries, k), np.int64), np.empty((n_queries, k))
        pending, spare = np.arange(n_queries), _SPARE
        while len(pending):
            size = min(k + spare, n_groups)
            found, scores = self._candidates(read, pending, size)
            groups[pending], keys[pending] = self._ordered(read, pending, found, k)
            if size == n_groups or spare >= _MOST_SPARE:
                break
            pending = pending[scores[:, -1] >= scores[:, k - 1] - 2 * self.space.tolerance]
            spare *= 4
        return groups, keys

    def _candidates(self, read: Read, pending: np.ndarray, size: int) -> Found:
        """The `size` groups of largest products of every query, and these, descending."""
        space, first = self.space, self.space.points.distinct.first
        chunks = [slice(start, start + _QUERIES) for start in range(0, len(pending), _QUERIES)]
        parts = row_blocks(len(first), -(-len(first) // max(1, _PARTS // len(chunks))))
        queries = [space.queries(read(pending[chunk])) for chunk in chunks]
        scratch = per_thread(lambda: np.empty((BLOCK, space.width), np.float32))

        def best(item: tuple[int, slice]) -> Found:
            asked, part = queries[item[0]], item[1]
            groups = np.full((len(asked), size), len(first))
            scores = np.full((len(asked), size), -np.inf, np.float32)
            for block in row_blocks(part.stop - part.start, BLOCK):
                start = part.start + block.start
                rows = space.rows(first[start : part.start + block.stop], scratch())
                keep_best(asked @ rows.T, start, scores, groups)
            return groups, scores

        items = [(number, part) for number in range(len(chunks)) for part in parts]
        with self.progress("searching", len(items)) as bar:
            results = map_blocks(best, items, n_jobs=self.n_jobs, advance=bar.update)
        return _joined([_merged(results[at : at + len(parts)], size) for at in range(0, len(items), len(parts))])

    def _ordered(self, read: Read, pending: np.ndarray, candidates: np.ndarray, k: int) -> Found:
        """The k nearest of the candidates of every query, compared in float64, and their keys."""
        first = self.space.points.distinct.first

        def order(rows: slice) -> Found:
            groups = candidates[rows]
            keys = self.space.metric.sign * self.space.values(read(pending[rows]), first[groups])
            best = np.lexsort((groups, keys), axis=1)[:, :k]
            return np.take_along_axis(groups, best, axis=1), np.take_along_axis(keys, best, axis=1)

        return _joined(map_blocks(order, row_blocks(len(pending), _ORDERED), n_jobs=self.n_jobs))


def _merged(parts: list[Found], size: int) -> Found:
    """The best of several parts of the rows, descending; of equal ones the first."""
    groups, scores = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    order = np.lexsort((groups, -scores), axis=1)[:, :size]
    return np.take_along_axis(groups, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _joined(parts: list[Found]) -> Found:
    """The results of several parts of the queries."""
    groups, values = zip(*parts, strict=True)
    return np.concatenate(groups), np.concatenate(values)
