"""A Fisher layer with a linear head on a GPU: z_v = Σ_j W_j φ_vj, and the low-rank backward (`linear_head.torch`).

W has the shape (out, anchor · feature); the kernels read its blocks as (anchor, feature, out), the layout of the matrix
units. Neither kernel writes its product, (row, anchor, feature). Bytes from memory: `head_inner` reads φ once,
`head_contract` R once. Every tile of rows reads all of W from the second-level cache: hence large tiles, fetched by the
copy engine, which needs no registers for addresses.

Full float32 is three products of TF32 parts, high and low: on an H200 five times as fast as the plain units, and its
error is smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr
from triton.tools.tensor_descriptor import TensorDescriptor

from fishergraph.ops._triton.launch import as_constants
from fishergraph.ops.attend.triton import attend
from fishergraph.ops.segment_sums.triton import Pull, attention_sums
from fishergraph.ops.tensor_sets import TensorSets

# Bytes of φ that exist at a time, and of R.
_CHUNK = 3 << 29
_BACK_CHUNK = 3 << 27

# (rows, features, summands) of a tile.
_ROWS, _FEATURES, _DEPTH = 128, 128, 32
# The copy engine needs rows of a multiple of 16 bytes.
ALIGNED = 4


@triton.jit
def _product(acc, a, weight, row, column, feature, OUT: constexpr, DEPTH: constexpr, PRECISION: constexpr):
    """acc + Σ_o a_ro W_fo of a tile; beyond the last o the weight counts as zero."""
    for begin in range(0, OUT, DEPTH):
        left, right = a.load([row, column + begin]), weight.load([feature, begin])
        acc = tl.dot(left, right.T, acc, input_precision=PRECISION)
    return acc


@triton.jit
def _row_dots(acc, values, starts, w, shift, begin, live, scale, D: constexpr, ROWS: constexpr, FEATURES: constexpr):
    """Σ_k acc_rk (v_rk + c w_k) of a tile, half of the features at a time: registers cannot hold a second tile."""
    halves = tl.split(tl.permute(tl.reshape(acc, [ROWS, 2, FEATURES // 2]), 0, 2, 1))
    total = tl.zeros([ROWS], tl.float32)
    for half in tl.static_range(2):
        features = begin + half * (FEATURES // 2) + tl.arange(0, FEATURES // 2)
        inside = live[:, None] & (features < D)[None, :]
        means = tl.load(values + starts[:, None] + features[None, :], mask=inside, other=0.0).to(tl.float32)
        means += scale * tl.load(w + shift + features, mask=features < D, other=0.0)[None, :]
        total += tl.sum(halves[half] * means, axis=1)
    return total


@triton.jit
def _head_inner(inner, phi, grad, weight, w, scale, n_rows, OUT: constexpr, D: constexpr, P: constexpr, T: constexpr):
    """Q_vj = Σ_k (φ_vjk + c w_jk) (W_jᵀ g_v)_k of a block of rows, one anchor per program; T is the tile."""
    first, anchor = tl.program_id(0) // P * T.ROWS, tl.program_id(0) % P
    rows = first.to(tl.int64) + tl.arange(0, T.ROWS)
    starts, live = (rows * P + anchor) * D, rows < n_rows
    total = tl.zeros([T.ROWS], tl.float32)
    for begin in range(0, D, T.FEATURES):
        acc = tl.zeros([T.ROWS, T.FEATURES], tl.float32)
        acc = _product(acc, grad, weight, first, 0, anchor * D + begin, OUT, T.DEPTH, T.PRECISION)
        total += _row_dots(acc, phi, starts, w, anchor * D, begin, live, scale, D, T.ROWS, T.FEATURES)
    tl.store(inner + rows * P + anchor, total, mask=live)


@triton.jit
def _head_contract(
    grad_x,
    dots,
    pulled,
    x,
    weight,
    n_rows,
    slab,
    STRIDE: constexpr,
    OUT: constexpr,
    D: constexpr,
    P: constexpr,
    T: constexpr,
):
    """dx_u = Σ_j W_jᵀ R_uj and, after every anchor, the increase of ⟨x_u, the sum so far⟩; a tile of features."""
    TILES: constexpr = (D + T.FEATURES - 1) // T.FEATURES
    first, tile = tl.program_id(0) // TILES * T.ROWS, tl.program_id(0) % TILES
    feature = tile * T.FEATURES
    rows, features = first.to(tl.int64) + tl.arange(0, T.ROWS), feature + tl.arange(0, T.FEATURES)
    live = rows < n_rows
    inside = live[:, None] & (features < D)[None, :]
    points = tl.load(x + rows[:, None] * STRIDE + features[None, :], mask=inside, other=0.0)  # for all anchors
    acc, before = tl.zeros([T.ROWS, T.FEATURES], tl.float32), tl.zeros([T.ROWS], tl.float32)
    for anchor in range(P):
        acc = _product(acc, pulled, weight, first, anchor * OUT, anchor * D + feature, OUT, T.DEPTH, T.PRECISION)
        dot = tl.sum(acc * points, axis=1)
        tl.store(dots + tile.to(tl.int64) * slab + rows * P + anchor, dot - before, mask=live)
        before = dot
    tl.store(grad_x + rows[:, None] * D + features[None, :], acc, mask=inside)


@dataclass(frozen=True)
class HeadTile:
    """The compile-time constants of a tile of the head: rows, features, summands, and the precision of products."""

    ROWS: Any
    FEATURES: Any
    DEPTH: Any
    PRECISION: Any

    def __post_init__(self) -> None:
        as_constants(self)


def _tile(n_features: int, precision: str, features: int = _FEATURES) -> tuple[int, dict[str, Any]]:
    """The features of a tile, at most `features`, and its options.

    Three products hold more factors, and distribute them over more warps, as wide tiles do with their sums.
    """
    width = max(32, min(features, triton.next_power_of_2(n_features)))
    warps = 4 if precision == "tf32" and width <= _FEATURES else 8
    return width, {"T": HeadTile(_ROWS, width, _DEPTH, precision), "num_warps": warps, "num_stages": 3}


def _contract_tile(n_features: int, precision: str) -> tuple[int, dict[str, Any]]:
    """The tile of `head_contract`, which holds points too: all features if one product is enough, to read R once."""
    once = precision == "tf32"
    width, options = _tile(n_features, precision, 2 * _FEATURES if once else _FEATURES)
    return width, {**options, "num_warps": 8, "num_stages": 4 if once else 3}


def contract_tiles(n_features: int, precision: str) -> int:
    """The number of tiles of features of `head_contract`: its dots come in as many parts."""
    return triton.cdiv(n_features, _contract_tile(n_features, precision)[0])


def _described(matrix: Tensor, rows: int) -> TensorDescriptor:
    """A matrix of which the copy engine fetches tiles; zero outside."""
    return TensorDescriptor.from_tensor(matrix, [rows, _DEPTH])


def head_inner(
    phi: Tensor, grad: Tensor, weight: Tensor, anchors: Tensor, fisher_root: float, *, precision: str
) -> Tensor:
    """Q_vj = ⟨φ_vj + c w_j, W_jᵀ g_v⟩, (row, anchor)."""
    n_rows, n_anchors, n_features = phi.shape
    inner, (width, options) = phi.new_empty((n_rows, n_anchors)), _tile(n_features, precision)
    if n_rows:
        matrices = _described(grad, _ROWS), _described(weight.flatten(0, 1), width)
        sizes = (n_rows, grad.shape[1], n_features, n_anchors)
        grid = (n_anchors * triton.cdiv(n_rows, _ROWS),)
        _head_inner[grid](inner, phi, *matrices, anchors, fisher_root, *sizes, **options)
    return inner


def head_contract(
    pulled: Tensor, points: Tensor, weight: Tensor, grad_points: Tensor, dots: Tensor, *, precision: str
) -> None:
    """Write dx_u = Σ_j W_jᵀ R_uj, (row, feature), to `grad_points`; ⟨x_u, W_jᵀ R_uj⟩ to `dots`, (tile, row, anchor).

    The dots are summands over `contract_tiles`. Rows of `dots` may be those of a larger tensor.
    """
    n_rows, n_anchors, n_out = pulled.shape
    n_features, (width, options) = points.shape[1], _contract_tile(points.shape[1], precision)
    if n_rows:
        matrix, blocks = _described(pulled.flatten(1), _ROWS), _described(weight.flatten(0, 1), width)
        sizes = (n_rows, dots.stride(0), points.stride(0), n_out, n_features, n_anchors)
        grid = (len(dots) * triton.cdiv(n_rows, _ROWS),)
        _head_contract[grid](grad_points, dots, matrix, points, blocks, *sizes, **options)


def _row_chunks(n_sets: int, width: int, most: int) -> list[slice]:
    rows = max(1, most // (4 * width))
    return [slice(start, min(start + rows, n_sets)) for start in range(0, n_sets, rows)]


def keeps_phi(n_sets: int, weight: Tensor) -> bool:
    """Whether φ is small enough to be kept for the backward pass."""
    return 4 * n_sets * weight.shape[1] <= _CHUNK


def _precision() -> str:
    """The precision of float32 products, as the user set it for the rest of PyTorch."""
    settings = torch.backends.cuda.matmul
    tf32 = settings.fp32_precision == "tf32" if hasattr(settings, "fp32_precision") else settings.allow_tf32
    return "tf32" if tf32 else "tf32x3"


def head(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    weight: Tensor,
    prior: float,
    fisher_root: float,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """z (set, out), log(κ + mass) (set, anchor), and φ if it is to be kept and small."""
    z = points.new_empty((sets.n_sets, weight.shape[0]))
    log_total = logs.new_empty((sets.n_sets, anchors.shape[0]))
    alpha, chunks = logs.exp(), _row_chunks(sets.n_sets, weight.shape[1], _CHUNK)
    phi = points.new_empty(0)
    for rows in chunks:
        block = sets if len(chunks) == 1 else sets.block(rows)
        phi, _, log_total[rows] = attend(
            points, logs, block, anchors, prior=prior, fisher_root=fisher_root, alpha=alpha
        )
        torch.mm(phi.flatten(1), weight.T, out=z[rows])
    return z, log_total, phi if keep and keeps_phi(sets.n_sets, weight) else points.new_empty(0)


def head_backward(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    weight: Tensor,
    prior: float,
    fisher_root: float,
    log_total: Tensor,
    phi: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of points, logs, anchors and weight."""
    grad = _aligned(grad)
    blocks = _aligned(weight.view(-1, *anchors.shape).permute(1, 2, 0))  # (anchor, feature, out)
    inputs = (points, logs, sets, anchors, weight, blocks, prior, fisher_root)
    inner, grad_weight = _forward_again(*inputs, log_total, phi, grad)
    grad_points, grad_logs = _through_members(points, logs, sets, blocks, fisher_root, log_total, inner, grad)
    log_prior = math.log(prior) if prior > 0 else -math.inf
    attention = torch.where(log_total > -torch.inf, torch.exp(log_prior - log_total), 1.0)  # of the anchors
    pulled = (attention - 1).T @ grad  # (anchor, out)
    grad_anchors = fisher_root * torch.einsum("jo,jko->jk", pulled, blocks)
    return grad_points, grad_logs, grad_anchors, grad_weight


def _aligned(matrix: Tensor) -> Tensor:
    """Contiguous, padded with columns of zeros for the copy engine."""
    missing = -matrix.shape[-1] % ALIGNED
    matrix = torch.nn.functional.pad(matrix, (0, missing)) if missing else matrix.contiguous()
    return matrix if matrix.data_ptr() % 16 == 0 else matrix.clone()


def _forward_again(
    points, logs, sets, anchors, weight, blocks, prior, fisher_root, log_total, phi, grad
) -> tuple[Tensor, Tensor]:
    """Q_vj = ⟨μ_vj, ∂L/∂μ_vj⟩ and ∂L/∂W, from φ, which is computed again if it was not kept."""
    inner, grad_weight, precision = torch.empty_like(log_total), torch.zeros_like(weight), _precision()
    alpha = logs.exp()
    for rows in _row_chunks(sets.n_sets, weight.shape[1], _CHUNK):
        block = phi
        if len(phi) == 0:
            options: dict[str, Any] = {"prior": prior, "fisher_root": fisher_root, "alpha": alpha}
            block, _, _ = attend(points, logs, sets.block(rows), anchors, **options)
        inner[rows] = head_inner(block, grad[rows], blocks, anchors, fisher_root, precision=precision)
        grad_weight.addmm_(grad[rows, : len(weight)].T, block.flatten(1))
        del block
    return inner, grad_weight


def _through_members(
    points, logs, sets: TensorSets, blocks, fisher_root, log_total, inner, grad
) -> tuple[Tensor, Tensor]:
    """∂L/∂x and ∂L/∂log α from R, a sum over the transposed sets, a chunk of points at a time, hubs last."""
    back, entries = sets.transpose
    back = back.weighted(None if sets.weights is None else sets.weights[entries])
    safe = torch.where(log_total > -torch.inf, -log_total, -torch.inf)
    grad_points, precision = torch.empty_like(points), _precision()
    dots = logs.new_empty((contract_tiles(points.shape[1], precision), *logs.shape))
    pull = Pull(grad, safe.exp(), back, logs=safe, row_logs=logs, scale=fisher_root)
    for rows in _row_chunks(back.n_sets, len(blocks) * grad.shape[1], _BACK_CHUNK):
        head_contract(pull.rows(rows), points[rows], blocks, grad_points[rows], dots[:, rows], precision=precision)
    if back.hubs.n_hubs:
        rows = back.hubs.rows
        hub_grad, hub_dots = torch.empty_like(points[: len(rows)]), torch.empty_like(dots[:, : len(rows)])
        head_contract(pull.hubs(), points[rows], blocks, hub_grad, hub_dots, precision=precision)
        grad_points[rows], dots[:, rows] = hub_grad, hub_dots
    grad_logs = attention_sums(logs, log_total, back, back=True, inner=inner)
    for more in dots:
        grad_logs += more
    return grad_points, grad_logs
