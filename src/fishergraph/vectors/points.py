"""Rows as the search reads them: their lengths, groups of equal rows, and the spaces in which they are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._compile import readonly
from fishergraph._parallel import cached_attribute, map_blocks, row_blocks
from fishergraph.vectors.distinct import Distinct, distinct_rows, row_hashes
from fishergraph.vectors.kernels import exact_distances, exact_products, row_norms, scale_rows

BLOCK = 1024  # rows that are compared at once
_SAMPLED = 4096  # rows whose mean is the origin of distances
_UNIT = 2.0**-24  # of float32


class Points:
    """Vectors, by row, in memory or in a file.

    Parameters
    ----------
    Z : array of shape (n_rows, n_columns)
        An object whose slices and rows by number are arrays.
    """

    def __init__(self, Z: Any):
        self.Z = Z

    @property
    def n_rows(self) -> int:
        return self.Z.shape[0]

    @property
    def n_columns(self) -> int:
        return self.Z.shape[1]

    def read(self, rows: slice | np.ndarray) -> np.ndarray:
        """Some rows, contiguous, float32 or float64."""
        block = np.asarray(self.Z[rows])
        kind = np.float64 if block.dtype.itemsize > 4 else np.float32
        return np.ascontiguousarray(block, dtype=kind)

    @cached_attribute
    def norms(self) -> np.ndarray:
        """‖z_i‖ of every row, float64."""
        return self.distances_from(np.zeros(self.n_columns))

    def distances_from(self, origin: np.ndarray) -> np.ndarray:
        """‖z_i − o‖ of every row, float64."""
        norms = np.empty(self.n_rows)
        self._map(lambda rows: row_norms(readonly(self.read(rows)), origin, norms[rows]))
        return norms

    @cached_attribute
    def distinct(self) -> Distinct:
        """The groups of equal rows."""
        hashes = np.empty(self.n_rows, np.uint64)

        def fill(rows: slice) -> None:
            hashes[rows] = row_hashes(self.read(rows))

        self._map(fill)
        return distinct_rows(hashes, self.read)

    @cached_attribute
    def middle(self) -> np.ndarray:
        """The mean of some rows, float64: a point from which all rows are not far."""
        rows = np.linspace(0, self.n_rows - 1, min(self.n_rows, _SAMPLED)).astype(np.int64)
        return self.read(rows).mean(axis=0, dtype=np.float64)

    def _map(self, function: Callable[[slice], Any]) -> None:
        map_blocks(function, row_blocks(self.n_rows, BLOCK))


@dataclass(frozen=True)
class Metric:
    """How vectors are compared.

    name : "cosine", "dot" or "euclidean".
    value : what the numbers of a result are, "similarity" or "distance".
    """

    name: str
    value: str

    @property
    def sign(self) -> int:
        """What values are multiplied with so that the nearest has the smallest."""
        return 1 if self.value == "distance" else -1


METRICS = {
    "cosine": Metric("cosine", "similarity"),
    "dot": Metric("dot", "similarity"),
    "euclidean": Metric("euclidean", "distance"),
}


@dataclass(frozen=True)
class Space:
    """A space in which a larger product of float32 vectors means a nearer row.

    x' = factor (x − o), and for distances one more column: ⟨q', x'⟩ − ‖x'‖² / 2 is largest where ‖q' − x'‖ is smallest.
    """

    points: Points
    metric: Metric
    origin: np.ndarray  # (column,)
    factors: np.ndarray  # (row,)
    halves: np.ndarray | None  # (row,) ‖x'‖² / 2 for distances

    @property
    def width(self) -> int:
        """The columns of the vectors that are compared."""
        return self.points.n_columns + (self.halves is not None)

    @property
    def tolerance(self) -> float:
        """By how much a product may differ from the exact one, which is at most about 1.

        Rounding errors of n terms add up like √n; a factor of eight makes an exception less likely than 10⁻¹³.
        """
        return (8 * np.sqrt(self.width) + 4) * _UNIT

    def rows(self, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        """The rows x' of some numbers, in the first rows of `out`."""
        filled, columns = out[: len(rows)], self.points.n_columns
        scale_rows(readonly(self.points.read(rows)), self.origin, self.factors[rows], filled[:, :columns])
        if self.halves is not None:
            filled[:, columns] = -self.halves[rows]
        return filled

    def queries(self, queries: np.ndarray) -> np.ndarray:
        """The rows q', of length one at most."""
        norms = np.empty(len(queries))
        row_norms(queries, self.origin, norms)
        out = np.ones((len(queries), self.width), np.float32)
        if self.halves is None:
            factors = inverse(norms)
        else:
            factors = np.minimum(self.factors[0], inverse(norms)) if len(self.factors) else norms
            out[:, -1] = factors / self.factors[0]
        scale_rows(queries, self.origin, factors, out[:, : self.points.n_columns])
        return out

    def values(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The exact similarities or distances of queries to rows by their numbers, (query, candidate), float64."""
        kept, places = np.unique(rows, return_inverse=True)
        vectors, values = readonly(self.points.read(kept)), np.empty(rows.shape)
        queries, places = readonly(np.ascontiguousarray(queries)), places.reshape(rows.shape)
        if self.metric.name == "euclidean":
            exact_distances(queries, vectors, places, values)
            return values
        exact_products(queries, vectors, places, values)
        if self.metric.name == "cosine":
            norms = np.empty(len(queries))
            row_norms(queries, self.origin, norms)
            values *= inverse(norms)[:, None]
            values *= inverse(self.points.norms[kept])[places]
            np.clip(values, -1.0, 1.0, out=values)
        return values


def inverse(norms: np.ndarray) -> np.ndarray:
    """1 / norm, and zero for zero."""
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)


def make_space(points: Points, metric: Metric) -> Space:
    """The space of a metric."""
    origin = points.middle if metric.name == "euclidean" else np.zeros(points.n_columns)
    norms = points.distances_from(origin) if metric.name == "euclidean" else points.norms
    if metric.name == "cosine":
        return Space(points, metric, origin, inverse(norms), None)
    largest = float(norms.max(initial=0.0))
    factors = np.full(points.n_rows, 1.0 / largest if largest > 0 else 1.0)
    halves = 0.5 * (norms * factors) ** 2 if metric.name == "euclidean" else None
    return Space(points, metric, origin, factors, halves)
