"""The two products of a linear head's backward on a GPU, each with the reduction that follows it.

z_v = Σ_j W_j φ_vj has W of the shape (out, anchor · feature); here its blocks are (anchor, feature, out), as the matrix
units want them. Neither kernel writes its product, (row, anchor, feature): `head_inner` reads φ once, `head_contract`
reads R once, and W_j comes from the second-level cache.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# (rows, features, summands) of a tile.
_ROWS, _FEATURES, _DEPTH = 64, 128, 32


@triton.jit
def _product(
    a, weight, rows, n_rows, features, anchor, row_stride, OUT: tl.constexpr, D: tl.constexpr,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Σ_o a_ro W_o,(j, k) of a tile of rows and features."""
    acc = tl.zeros([ROWS, FEATURES], tl.float32)
    for begin in range(0, OUT, DEPTH):
        outs = begin + tl.arange(0, DEPTH)
        left = tl.load(
            a + rows[:, None] * row_stride + outs[None, :],
            mask=(rows < n_rows)[:, None] & (outs < OUT)[None, :],
            other=0.0,
        )
        right = tl.load(
            weight + (anchor * D + features)[:, None] * OUT + outs[None, :],
            mask=(features < D)[:, None] & (outs < OUT)[None, :], other=0.0,
        )  # fmt: skip
        acc = tl.dot(left, tl.trans(right), acc, input_precision=PRECISION)
    return acc


@triton.jit
def _head_inner(
    inner, phi, grad, weight, w, scale, n_rows, OUT: tl.constexpr, D: tl.constexpr, P: tl.constexpr,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Q_vj = Σ_k (φ_vjk + c w_jk) (W_jᵀ g_v)_k of a block of rows, one anchor per program."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    anchor = tl.program_id(1)
    total = tl.zeros([ROWS], tl.float32)
    for begin in range(0, D, FEATURES):
        features = begin + tl.arange(0, FEATURES)
        acc = _product(grad, weight, rows, n_rows, features, anchor, OUT, OUT, D, ROWS, FEATURES, DEPTH, PRECISION)
        inside = (rows < n_rows)[:, None] & (features < D)[None, :]
        known = tl.load(phi + (rows[:, None] * P + anchor) * D + features[None, :], mask=inside, other=0.0)
        known += scale * tl.load(w + anchor * D + features, mask=features < D, other=0.0)[None, :]
        total += tl.sum(acc * known, axis=1)
    tl.store(inner + rows * P + anchor, total, mask=rows < n_rows)


@triton.jit
def _head_contract(
    grad_x, dots, reversed_sums, x, weight, n_rows, stride, OUT: tl.constexpr, D: tl.constexpr, P: tl.constexpr,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dx_u = Σ_j W_jᵀ R_uj and ⟨x_u, W_jᵀ R_uj⟩ of a block of rows, one tile of features per program."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    features = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    inside = (rows < n_rows)[:, None] & (features < D)[None, :]
    total = tl.zeros([ROWS, FEATURES], tl.float32)
    for anchor in range(P):
        acc = _product(
            reversed_sums + anchor * OUT, weight, rows, n_rows, features, anchor, P * OUT, OUT, D,
            ROWS, FEATURES, DEPTH, PRECISION,
        )  # fmt: skip
        points = tl.load(x + rows[:, None] * stride + features[None, :], mask=inside, other=0.0).to(tl.float32)
        slab = (tl.program_id(1) * n_rows + rows) * P + anchor
        tl.store(dots + slab, tl.sum(acc * points, axis=1), mask=rows < n_rows)
        total += acc
    tl.store(grad_x + rows[:, None] * D + features[None, :], total, mask=inside)


def _tile(n_features: int, precision: str) -> dict:
    features = max(16, min(_FEATURES, triton.next_power_of_2(n_features)))
    return {
        "ROWS": _ROWS,
        "FEATURES": features,
        "DEPTH": _DEPTH,
        "PRECISION": precision,
        "num_warps": 4,
        "num_stages": 4,
    }


def head_inner(
    phi: Tensor, grad: Tensor, weight: Tensor, anchors: Tensor, fisher_root: float, *, precision: str
) -> Tensor:
    """Q_vj = ⟨φ_vj + c w_j, W_jᵀ g_v⟩, (row, anchor)."""
    n_rows, n_anchors, n_features = phi.shape
    inner = torch.empty((n_rows, n_anchors), dtype=phi.dtype, device=phi.device)
    _head_inner[(triton.cdiv(n_rows, _ROWS), n_anchors)](
        inner, phi, grad, weight, anchors, fisher_root, n_rows, grad.shape[1], n_features, n_anchors,
        **_tile(n_features, precision),
    )  # fmt: skip
    return inner


def head_contract(
    reversed_sums: Tensor, points: Tensor, weight: Tensor, grad_points: Tensor, *, precision: str
) -> Tensor:
    """⟨x_u, W_jᵀ R_uj⟩, (row, anchor), with dx_u = Σ_j W_jᵀ R_uj, (row, feature), written to `grad_points`."""
    n_rows, n_anchors, n_out = reversed_sums.shape
    n_features = points.shape[1]
    options = _tile(n_features, precision)
    tiles = triton.cdiv(n_features, options["FEATURES"])
    dots = torch.empty((tiles, n_rows, n_anchors), dtype=reversed_sums.dtype, device=points.device)
    _head_contract[(triton.cdiv(n_rows, _ROWS), tiles)](
        grad_points,
        dots,
        reversed_sums,
        points,
        weight,
        n_rows,
        points.stride(0),
        n_out,
        n_features,
        n_anchors,
        **options,
    )
    return dots.sum(0) if tiles > 1 else dots[0]
