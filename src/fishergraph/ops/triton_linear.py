"""The two products of a linear head's backward on a GPU, each with the reduction that follows it.

z_v = Σ_j W_j φ_vj has W of the shape (out, anchor · feature); here its blocks are (anchor, feature, out), as the matrix
units want them. Neither kernel writes its product, (row, anchor, feature). Bytes from memory: `head_inner` reads φ
once, `head_contract` R once. Every tile of rows takes all of W from the second-level cache: hence large tiles, fetched
by the copy engine, which needs no registers for addresses.

Full float32 is three products of TF32 parts, high and low: on an H200 five times as fast as the plain units, and its
error is smaller.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

# (rows, features, summands) of a tile.
_ROWS, _FEATURES, _DEPTH = 128, 128, 32
# The copy engine wants rows of a multiple of 16 bytes.
ALIGNED = 4


@triton.jit
def _product(
    acc, a, weight, row, column, feature, OUT: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """acc + Σ_o a_ro W_fo of a tile; beyond the last o the weight counts as zero."""
    for begin in range(0, OUT, DEPTH):
        left, right = a.load([row, column + begin]), weight.load([feature, begin])
        acc = tl.dot(left, right.T, acc, input_precision=PRECISION)
    return acc


@triton.jit
def _row_dots(acc, values, row_starts, shift, w, begin, live, scale, D: tl.constexpr, ROWS: tl.constexpr,
              FEATURES: tl.constexpr):  # fmt: skip
    """Σ_k acc_rk (v_rk + c w_k) of a tile, half of the features at a time: registers hold no second tile."""
    halves = tl.split(tl.permute(tl.reshape(acc, [ROWS, 2, FEATURES // 2]), 0, 2, 1))
    total = tl.zeros([ROWS], tl.float32)
    for half in tl.static_range(2):
        features = begin + half * (FEATURES // 2) + tl.arange(0, FEATURES // 2)
        inside = live[:, None] & (features < D)[None, :]
        known = tl.load(values + row_starts[:, None] + features[None, :], mask=inside, other=0.0).to(tl.float32)
        known += scale * tl.load(w + shift + features, mask=features < D, other=0.0)[None, :]
        total += tl.sum(halves[half] * known, axis=1)
    return total


@triton.jit
def _head_inner(
    inner, phi, grad, weight, w, scale, n_rows, OUT: tl.constexpr, D: tl.constexpr, P: tl.constexpr,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Q_vj = Σ_k (φ_vjk + c w_jk) (W_jᵀ g_v)_k of a block of rows, one anchor per program."""
    first, anchor = tl.program_id(0) // P * ROWS, tl.program_id(0) % P
    rows = first.to(tl.int64) + tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.float32)
    for begin in range(0, D, FEATURES):
        acc = tl.zeros([ROWS, FEATURES], tl.float32)
        acc = _product(acc, grad, weight, first, 0, anchor * D + begin, OUT, DEPTH, PRECISION)
        total += _row_dots(
            acc, phi, (rows * P + anchor) * D, anchor * D, w, begin, rows < n_rows, scale, D, ROWS, FEATURES
        )
    tl.store(inner + rows * P + anchor, total, mask=rows < n_rows)


@triton.jit
def _head_contract(
    grad_x, dots, reversed_sums, x, weight, n_rows, slab, STRIDE: tl.constexpr, OUT: tl.constexpr, D: tl.constexpr,
    P: tl.constexpr, ROWS: tl.constexpr, FEATURES: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dx_u = Σ_j W_jᵀ R_uj and, after every anchor, what ⟨x_u, the sum so far⟩ has grown by; a tile of features."""
    TILES: tl.constexpr = (D + FEATURES - 1) // FEATURES
    first, tile = tl.program_id(0) // TILES * ROWS, tl.program_id(0) % TILES
    feature = tile * FEATURES
    rows, features = first.to(tl.int64) + tl.arange(0, ROWS), feature + tl.arange(0, FEATURES)
    live = rows < n_rows
    inside = live[:, None] & (features < D)[None, :]
    known = tl.load(x + rows[:, None] * STRIDE + features[None, :], mask=inside, other=0.0)  # for all anchors
    acc, before = tl.zeros([ROWS, FEATURES], tl.float32), tl.zeros([ROWS], tl.float32)
    for anchor in range(P):
        acc = _product(acc, reversed_sums, weight, first, anchor * OUT, anchor * D + feature, OUT, DEPTH, PRECISION)
        dot = tl.sum(acc * known, axis=1)
        tl.store(dots + tile.to(tl.int64) * slab + rows * P + anchor, dot - before, mask=live)
        before = dot
    tl.store(grad_x + rows[:, None] * D + features[None, :], acc, mask=inside)


def _tile(n_features: int, precision: str, features: int = _FEATURES) -> dict[str, Any]:
    """The tile of a program, of at most `features`; three products hold more factors, and share them among more
    warps, as wide tiles share their sums."""
    width = max(32, min(features, triton.next_power_of_2(n_features)))
    return {
        "ROWS": _ROWS, "FEATURES": width, "DEPTH": _DEPTH, "PRECISION": precision,
        "num_warps": 4 if precision == "tf32" and width <= _FEATURES else 8, "num_stages": 3,
    }  # fmt: skip


def _contract_tile(n_features: int, precision: str) -> dict[str, Any]:
    """That of `head_contract`, which holds a tile of points too: all features where one product is enough, so that R is
    read once."""
    once = precision == "tf32"
    options = _tile(n_features, precision, 2 * _FEATURES if once else _FEATURES)
    return {**options, "num_warps": 8, "num_stages": 4 if once else 3}


def contract_tiles(n_features: int, precision: str) -> int:
    """How many tiles of features `head_contract` has: as many parts its dots come in."""
    return triton.cdiv(n_features, _contract_tile(n_features, precision)["FEATURES"])


def _described(matrix: Tensor, rows: int, options: dict[str, Any]) -> TensorDescriptor:
    """A matrix of which the copy engine fetches tiles; what lies outside counts as zero."""
    return TensorDescriptor.from_tensor(matrix, [rows, options["DEPTH"]])


def head_inner(
    phi: Tensor, grad: Tensor, weight: Tensor, anchors: Tensor, fisher_root: float, *, precision: str
) -> Tensor:
    """Q_vj = ⟨φ_vj + c w_j, W_jᵀ g_v⟩, (row, anchor)."""
    n_rows, n_anchors, n_features = phi.shape
    inner, options = phi.new_empty((n_rows, n_anchors)), _tile(n_features, precision)
    if n_rows:
        _head_inner[(n_anchors * triton.cdiv(n_rows, _ROWS),)](
            inner, phi, _described(grad, _ROWS, options),
            _described(weight.flatten(0, 1), options["FEATURES"], options),
            anchors, fisher_root, n_rows, grad.shape[1], n_features, n_anchors, **options,
        )  # fmt: skip
    return inner


def head_contract(
    reversed_sums: Tensor, points: Tensor, weight: Tensor, grad_points: Tensor, dots: Tensor, *, precision: str
) -> None:
    """dx_u = Σ_j W_jᵀ R_uj, (row, feature), is written to `grad_points`; ⟨x_u, W_jᵀ R_uj⟩ to `dots`, (tile, row,
    anchor), as summands over `contract_tiles`. Rows of `dots` may be those of a larger tensor."""
    n_rows, n_anchors, n_out = reversed_sums.shape
    n_features, options = points.shape[1], _contract_tile(points.shape[1], precision)
    if n_rows:
        _head_contract[(len(dots) * triton.cdiv(n_rows, _ROWS),)](
            grad_points, dots, _described(reversed_sums.flatten(1), _ROWS, options), points,
            _described(weight.flatten(0, 1), options["FEATURES"], options), n_rows, dots.stride(0), points.stride(0),
            n_out, n_features, n_anchors, **options,
        )  # fmt: skip
