"""Rows as unit vectors, compiled: one read and one write of a matrix."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled_sum
from fishergraph._parallel import map_blocks, row_blocks

# Rows of a block that a thread takes at a time.
_ROWS = 4096

# The square of a length in this range neither overflows nor underflows.
_SMALL, _LARGE = 1e-15, 1e15


@compiled_sum
def unit_rows_into(points, least, out):
    """out_i = x_i / ‖x_i‖, zero for a row without an entry beyond ±least.

    A row is divided by its largest entry first: no square overflows or underflows, and multiples of a unit vector all
    give that vector to the last bit.
    """
    for i in range(points.shape[0]):
        x, unit = points[i], out[i]
        largest = x[0] - x[0]
        for k in range(len(x)):
            largest = max(largest, abs(x[k]))
        divisor = largest if largest > least else points.dtype.type(np.inf)
        square = 0.0
        for k in range(len(x)):
            unit[k] = x[k] / divisor
            square += np.float64(unit[k]) * np.float64(unit[k])
        length = points.dtype.type(np.sqrt(square)) if square > 0 else divisor
        for k in range(len(x)):
            unit[k] = unit[k] / length


@compiled_sum
def row_scales_into(points, scales):
    """scales_i = 1 / ‖x_i‖, zero for a zero row; returns whether the length of every row can be squared."""
    for i in range(points.shape[0]):
        x = points[i]
        square = 0.0
        for k in range(len(x)):
            square += np.float64(x[k]) * np.float64(x[k])
        largest = np.sqrt(square)
        if not (_SMALL <= largest <= _LARGE):
            for k in range(len(x)):
                if x[k] != 0:
                    return False
        scales[i] = 1 / largest if square > 0 else 0.0
    return True


@compiled_sum
def _unit_rows_and_scales(points, most, units, scales):
    """units_i = x_i / ‖x_i‖ and scales_i = 1 / ‖x_i‖, at most `most`; zero for a zero row. NaN propagates."""
    for i in range(points.shape[0]):
        x, unit = points[i], units[i]
        divisor, square = 1.0, 0.0
        for k in range(len(x)):
            square += np.float64(x[k]) * np.float64(x[k])
        if not (_SMALL * _SMALL <= square <= _LARGE * _LARGE):  # computed again in units of the largest entry
            largest, square = 0.0, 0.0
            for k in range(len(x)):
                largest = max(largest, abs(np.float64(x[k])))
            divisor = largest if largest > 0 else 1.0
            for k in range(len(x)):
                square += (np.float64(x[k]) / divisor) * (np.float64(x[k]) / divisor)
        scale = 0.0 if square == 0 else 1 / np.sqrt(square)
        scales[i] = points.dtype.type(min(scale / divisor, most))
        if divisor == 1.0:
            for k in range(len(x)):
                unit[k] = scales[i] * x[k]
        else:
            for k in range(len(x)):
                unit[k] = points.dtype.type(scale * (np.float64(x[k]) / divisor))


@compiled_sum
def _unit_rows_gradient(units, scales, grad, out):
    """out_i = (g_i − ⟨u_i, g_i⟩ u_i) / ‖x_i‖, the gradient of `_unit_rows_and_scales`."""
    for i in range(units.shape[0]):
        unit, slope, scale, result = units[i], grad[i], scales[i], out[i]
        product = unit[0] - unit[0]
        for k in range(len(unit)):
            product += unit[k] * slope[k]
        for k in range(len(unit)):
            result[k] = scale * (slope[k] - product * unit[k])


def unit_rows(points: np.ndarray, least: float = 0.0) -> np.ndarray:
    """The rows divided by their lengths, in a new array; zero for a row without an entry beyond ±least."""
    points = np.ascontiguousarray(points)
    out = np.empty_like(points)
    unit_rows_into(points, points.dtype.type(least), out)
    return out


def unit_rows_and_scales(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows divided by their lengths, and 1 / length of every row, on threads."""
    # NumPy's large arrays have large pages, which are ready in a quarter of the time that PyTorch's take.
    units, scales, most = np.empty_like(x), np.empty(len(x), x.dtype), float(np.finfo(x.dtype).max)
    blocks = row_blocks(len(x), _ROWS)
    map_blocks(lambda rows: _unit_rows_and_scales(x[rows], most, units[rows], scales[rows]), blocks)
    return units, scales


def unit_rows_backward(units: np.ndarray, scales: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """∂L/∂x from ∂L/∂u."""
    out, blocks = np.empty_like(units), row_blocks(len(units), _ROWS)
    map_blocks(lambda rows: _unit_rows_gradient(units[rows], scales[rows], grad[rows], out[rows]), blocks)
    return out
