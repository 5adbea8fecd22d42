"""Rows as unit vectors on a GPU, and their gradient.

Bytes: every row is read once or twice, the second time from the cache, and written once (2 · d · its width). The
gradient reads one more.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops._triton.launch import KINDS
from fishergraph.ops.tensor_ops import work_type

# Numbers of a tile (row, feature).
_TILE, _MOST_FEATURES = 2048, 1024


@triton.jit
def _row_products(a, b, rows, live, D: constexpr, BLOCK: constexpr, KIND: constexpr):
    """⟨a_i, b_i⟩ of a block of rows."""
    total = tl.zeros(rows.shape, KIND)
    for begin in range(0, D, BLOCK):
        features = begin + tl.arange(0, BLOCK)
        at, inside = rows[:, None] * D + features[None, :], live[:, None] & (features < D)[None, :]
        left, right = tl.load(a + at, mask=inside, other=0.0), tl.load(b + at, mask=inside, other=0.0)
        total += tl.sum(left.to(KIND) * right.to(KIND), axis=1)
    return total


@triton.jit
def _scaled_squares(x, rows, live, D: constexpr, BLOCK: constexpr, KIND: constexpr):
    """max_k |x_ik|, or one for a zero row, and ‖x_i‖² in units of its square: neither overflows nor underflows."""
    largest = tl.zeros(rows.shape, KIND)
    for begin in range(0, D, BLOCK):
        features = begin + tl.arange(0, BLOCK)
        at, inside = rows[:, None] * D + features[None, :], live[:, None] & (features < D)[None, :]
        largest = tl.maximum(largest, tl.max(tl.abs(tl.load(x + at, mask=inside, other=0.0).to(KIND)), axis=1))
    largest = tl.where(largest == 0, 1.0, largest)
    square = tl.zeros(rows.shape, KIND)
    for begin in range(0, D, BLOCK):
        features = begin + tl.arange(0, BLOCK)
        at, inside = rows[:, None] * D + features[None, :], live[:, None] & (features < D)[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(KIND) / largest[:, None]
        square += tl.sum(value * value, axis=1)
    return largest, square


@triton.jit
def _unit_rows(units, scales, x, n_rows, most, D: constexpr, BLOCK: constexpr, ROWS: constexpr, KIND: constexpr):
    """x_i / ‖x_i‖ and 1 / ‖x_i‖, at most `most`; both are zero for a zero row."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    live = rows < n_rows
    square, divisor = _row_products(x, x, rows, live, D, BLOCK, KIND), tl.full(rows.shape, 1.0, KIND)
    # A square that overflows or underflows is computed again, in units of the largest entry of the row.
    extreme = live & ~((square > 1e-30) & (square < 1e30))
    if tl.max(extreme.to(tl.int32), axis=0) > 0:
        largest, scaled = _scaled_squares(x, rows, live, D, BLOCK, KIND)
        divisor, square = tl.where(extreme, largest, divisor), tl.where(extreme, scaled, square)
    scale = tl.where(square == 0, 0.0, 1 / tl.sqrt(tl.where(square == 0, 1.0, square)))
    tl.store(scales + rows, tl.minimum(scale / divisor, most), mask=live)
    for begin in range(0, D, BLOCK):
        features = begin + tl.arange(0, BLOCK)
        at, inside = rows[:, None] * D + features[None, :], live[:, None] & (features < D)[None, :]
        unit = tl.load(x + at, mask=inside, other=0.0).to(KIND) / divisor[:, None] * scale[:, None]
        tl.store(units + at, unit.to(units.dtype.element_ty), mask=inside)


@triton.jit
def _unit_rows_backward(
    out, units, scales, grad, n_rows, D: constexpr, BLOCK: constexpr, ROWS: constexpr, KIND: constexpr
):
    """(g_i − ⟨u_i, g_i⟩ u_i) / ‖x_i‖."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    live = rows < n_rows
    product = _row_products(units, grad, rows, live, D, BLOCK, KIND)
    scale = tl.load(scales + rows, mask=live, other=0.0)
    for begin in range(0, D, BLOCK):
        features = begin + tl.arange(0, BLOCK)
        at, inside = rows[:, None] * D + features[None, :], live[:, None] & (features < D)[None, :]
        unit = tl.load(units + at, mask=inside, other=0.0).to(KIND)
        slope = (tl.load(grad + at, mask=inside, other=0.0).to(KIND) - product[:, None] * unit) * scale[:, None]
        tl.store(out + at, slope.to(out.dtype.element_ty), mask=inside)


def _options(matrix: Tensor) -> dict[str, Any]:
    block = max(16, min(triton.next_power_of_2(matrix.shape[1]), _MOST_FEATURES))
    return {"D": matrix.shape[1], "BLOCK": block, "ROWS": _TILE // block, "KIND": KINDS[work_type(matrix.dtype)]}


def unit_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """The rows divided by their lengths, and 1 / length, (row,)."""
    units, scales = torch.empty_like(x), x.new_empty(x.shape[0], dtype=work_type(x.dtype))
    if x.numel():
        options = _options(x)
        most = torch.finfo(scales.dtype).max
        _unit_rows[(triton.cdiv(x.shape[0], options["ROWS"]),)](units, scales, x, x.shape[0], most, **options)
    return units, scales


def unit_rows_backward(units: Tensor, scales: Tensor, grad: Tensor) -> Tensor:
    """∂L/∂x from ∂L/∂u."""
    out = torch.empty_like(units)
    if units.numel():
        options = _options(units)
        _unit_rows_backward[(triton.cdiv(len(units), options["ROWS"]),)](
            out, units, scales, grad, len(units), **options
        )
    return out
