"""Nearest rows by pynndescent: a graph of neighbours that is searched, and misses some of them.

It runs on one thread, because its result depends on the number of threads. What it finds is compared in float64, so
similarities are exact. Rows for which it finds too few are searched exactly.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._progress import Progress, silent
from fishergraph.vectors.points import Space
from fishergraph.vectors.search import ExactSearch, Found

FEW = 4096  # rows that are searched exactly in any case
_METRICS = ("cosine", "euclidean")
_SPARE = 5  # neighbours in the graph beyond those that are asked for
_READ = 2**14  # rows that are read at once


@dataclass(frozen=True)
class ApproximateSearch:
    """Searches in a graph of neighbours, which is built for each of them."""

    space: Space
    seed: int
    n_jobs: int | None = None
    progress: Progress = silent

    def __post_init__(self) -> None:
        require("pynndescent", extra="approximate")
        if self.space.metric.name not in _METRICS:
            raise InputError(
                parameter="metric",
                value=self.space.metric.name,
                expected=f"be one of {', '.join(map(repr, _METRICS))} in an approximate search",
                settings={"approximate": False},
            )

    def nearest_rows(self, own: np.ndarray, k: int) -> Found:
        """About the k rows nearest to every row in `own`, itself left out, and their values."""
        with self.progress("searching", 2) as bar:
            index = self._index(k + 1)
            bar.update(1)
            every = len(own) == self.space.points.n_rows
            found = index.neighbor_graph[0][own] if every else index.query(self._compared(own), k + 1)[0]
            bar.update(1)
        found = np.where(found == own[:, None], -1, found)
        return self._finish(found, k, self.space.points.read(own), lambda rows: self._exact.nearest_rows(own[rows], k))

    def nearest_to(self, queries: np.ndarray, k: int) -> Found:
        """About the k rows nearest to every vector, and their values."""
        with self.progress("searching", 2) as bar:
            index = self._index(k)
            bar.update(1)
            found = index.query(self.space.queries(queries)[:, : queries.shape[1]], k)[0]
            bar.update(1)
        return self._finish(found, k, queries, lambda rows: self._exact.nearest_to(queries[rows], k))

    @property
    def _exact(self) -> ExactSearch:
        return ExactSearch(self.space, self.n_jobs, self.progress)

    def _index(self, k: int) -> Any:
        """The graph of neighbours of all rows."""
        options = {"n_neighbors": max(k + _SPARE, 15), "random_state": self.seed, "n_jobs": 1}
        pynndescent: Any = require("pynndescent", extra="approximate")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rows with few neighbours, which are searched exactly
            index = pynndescent.NNDescent(
                self._compared(np.arange(self.space.points.n_rows)), metric=self.space.metric.name, **options
            )
            index.prepare()
        return index

    def _compared(self, rows: np.ndarray) -> np.ndarray:
        """Rows as they are compared, float32."""
        space, columns = self.space, self.space.points.n_columns
        out, block = np.empty((len(rows), columns), np.float32), np.empty((_READ, space.width), np.float32)
        for start in range(0, len(rows), _READ):
            part = slice(start, min(start + _READ, len(rows)))
            out[part] = space.rows(rows[part], block)[:, :columns]
        return out

    def _finish(self, found: np.ndarray, k: int, queries: np.ndarray, exactly: Any) -> Found:
        """The k nearest of what was found, compared in float64; `exactly` searches for queries with too few."""
        rows, values = np.empty((len(found), k), np.int64), np.empty((len(found), k))
        few = np.flatnonzero((found >= 0).sum(axis=1) < k)
        for start in range(0, len(found), 64):
            part = slice(start, start + 64)
            keys = self.space.metric.sign * self.space.values(queries[part], np.maximum(found[part], 0))
            keys[found[part] < 0] = np.inf
            best = np.lexsort((found[part], keys), axis=1)[:, :k]
            rows[part] = np.take_along_axis(found[part], best, axis=1)
            values[part] = self.space.metric.sign * np.take_along_axis(keys, best, axis=1)
        if len(few):
            rows[few], values[few] = exactly(few)
        return rows, values
