"""Unit vectors: rows divided by their lengths, as an array or as rows with their scales; dense, CSR or tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._typing import DType, Rows

# What rounding leaves of a φ that is zero, beside points of length one, in units of the last place.
NOISE = 16


def unit_rows(rows: Rows, *, noise: float = 0.0) -> Any:
    """The rows divided by their lengths; a zero row stays zero. Dense, canonical CSR, or a tensor.

    A row is divided by its largest entry first, so that no square can overflow or vanish. Dense rows whose largest
    entry is at most `noise` units of the last place of 1 become zero: rounding must not become a direction.
    """
    points: Any = rows
    if sp.issparse(points):
        counts = np.diff(points.indptr)
        largest = abs(points).max(axis=1).toarray().ravel()
        data = points.data / np.repeat(np.where(largest > 0, largest, 1), counts)
        scaled = sp.csr_array((data, points.indices, points.indptr), shape=points.shape)
        lengths = row_lengths(scaled)
        data /= np.repeat(np.where(lengths > 0, lengths, 1), counts)
        return scaled
    xp = array_namespace(points)
    least = noise * float(xp.finfo(points.dtype).eps) if noise else 0.0
    if not is_torch_array(points):
        from fishergraph.ops.unit_rows.numba import unit_rows as compiled

        return compiled(points, least)
    largest = xp.linalg.vector_norm(points, ord=float("inf"), axis=1, keepdims=True)
    scaled = points / xp.where(largest > least, largest, xp.full_like(largest, float("inf")))
    lengths = xp.linalg.vector_norm(scaled, axis=1, keepdims=True)
    scaled /= xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return scaled


def row_lengths(rows: Rows) -> Any:
    """‖x_i‖ of every row, (row,)."""
    points: Any = rows
    if sp.issparse(points):
        return np.sqrt(np.asarray(points.multiply(points).sum(axis=1))).ravel()
    if is_torch_array(points):
        return array_namespace(points).linalg.vector_norm(points, axis=1)
    return np.sqrt(array_namespace(points).vecdot(points, points))


@dataclass(frozen=True)
class UnitRows:
    """The unit vectors of a dense sample, as the sample and 1 / ‖x‖: a second array of its size costs more to fill.

    The nearest direction is the same for x and x / ‖x‖, so only sums and gains see the scales.
    """

    points: np.ndarray
    scales: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.points.shape

    @property
    def dtype(self) -> DType:
        return self.points.dtype

    def __getitem__(self, rows: Any) -> np.ndarray:
        return unit_rows(self.points[rows])


def directions(rows: Rows, n_jobs: int | None) -> Any:
    """The unit vectors of the rows that have a direction."""
    points: Any = rows
    if not (sp.issparse(points) or is_torch_array(points)):
        from fishergraph.ops.unit_rows.numba import row_scales_into

        points = np.ascontiguousarray(points)
        scales = np.empty(len(points), points.dtype)
        parts = row_blocks(len(points), 512)
        if all(map_blocks(lambda part: row_scales_into(points[part], scales[part]), parts, n_jobs=n_jobs)):
            nonzero = scales > 0
            return UnitRows(points, scales) if nonzero.all() else UnitRows(points[nonzero], scales[nonzero])
    points = unit_rows(points)
    nonzero = row_lengths(points) > 0
    return points if nonzero.all() else points[nonzero]


def stored(points: Rows) -> tuple[Any, Any]:
    """(rows as they are in memory, the scales that make them unit vectors, or None)."""
    return (points.points, points.scales) if isinstance(points, UnitRows) else (points, None)
