"""Unnormalised sums over the members of a set on a GPU, which gradients consist of.

`Pull` reads the vector of a member once for all anchors, like the M-step (bytes per entry: 4 · d + 4 · p); `pull_inner`
reads p numbers. On the transposed graph `Pull` is the low-rank backward pass of a linear head.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops import tensor_sets
from fishergraph.ops._triton.launch import REGISTERS, members_of, tile
from fishergraph.ops._triton.members import pull as pull_members
from fishergraph.ops._triton.members import store_row, tile_features
from fishergraph.ops.tensor_sets import Hubs, TensorSets

Items = tuple[Tensor, Tensor, Tensor]  # the first entry of every program, the end of its entries, and its row


@triton.jit
def _sum_parts(out, parts, rows, offsets, width, slab, BLOCK: constexpr):
    """out[rows[h]] = Σ of the parts of hub h, in order and in float64; one slab per program of the third axis."""
    hub, columns = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    n_parts = tl.load(offsets + tl.num_programs(0))
    total = tl.zeros([BLOCK], tl.float64)
    for part in range(tl.load(offsets + hub), tl.load(offsets + hub + 1)):
        where = (tl.program_id(2).to(tl.int64) * n_parts + part) * width + columns
        total += tl.load(parts + where, mask=columns < width, other=0.0).to(tl.float64)
    row = tl.program_id(2).to(tl.int64) * slab + tl.load(rows + hub).to(tl.int64)
    tl.store(out + row * width + columns, total.to(out.dtype.element_ty), mask=columns < width)


def sum_parts(out: Tensor, parts: Tensor, hubs: Hubs) -> None:
    """Write the hubs' rows of out (slab, row, width) from their parts (slab, part, width)."""
    width = out.shape[2]
    block = min(256, triton.next_power_of_2(width))
    grid = (hubs.n_hubs, triton.cdiv(width, block), out.shape[0])
    _sum_parts[grid](out, parts, hubs.rows, hubs.offsets, width, out.shape[1], BLOCK=block)


@triton.jit
def _pull_rows(
    out, points, plain, logs, row_logs, items, members, scale, hub, PARTS: constexpr, HAS_ROW: constexpr, S: constexpr
):
    """scale · Σ_e a_e c_ej x_e; with row logs r_j, scale · Σ_e a_e exp(log c_ej + r_j) x_e."""
    first, last, owner = items
    item = tl.program_id(0).to(tl.int64)
    row = tl.load(owner + item) if PARTS else item
    start, stop = tl.load(first + item), tl.load(last + item)
    if (not PARTS) and stop - start > hub:
        return
    features = tl.program_id(1) * S.BLOCK + tile_features(S.BLOCK)
    anchor = tl.minimum(tl.program_id(2) * S.P, S.N - S.P)
    tile, shifts = (features, anchor), ()
    for j in tl.static_range(S.P):
        if HAS_ROW:
            shifts = shifts + (-tl.load(row_logs + row * S.N + anchor + j),)
        else:
            shifts = shifts + (tl.full([], 0.0, S.KIND),)
    sums, totals = pull_members(points, plain, members, start, stop, tile, shifts, False, S)
    sound = totals[0] <= 1e30
    for j in tl.static_range(1, S.P):
        sound = sound & (totals[j] <= 1e30)
    for j in tl.static_range(S.P):
        factor = tl.exp(-shifts[j]) * scale if HAS_ROW else scale
        store_row(out, item * S.N + anchor + j, features, sums[j] * factor, S)
    if HAS_ROW:
        if not sound:  # a factor overflowed and the product does not, or it was multiplied by a weight of zero
            sums, totals = pull_members(points, logs, members, start, stop, tile, shifts, True, S)
            for j in tl.static_range(S.P):
                store_row(out, item * S.N + anchor + j, features, sums[j] * scale, S)


@triton.jit
def _pull_inner(
    out,
    inner,
    log_total,
    row_logs,
    items,
    members,
    hub,
    P,
    BLOCK_E: constexpr,
    BLOCK_P: constexpr,
    WEIGHTED: constexpr,
    PARTS: constexpr,
):
    """Σ_v t_vuj Q_vj over the sets v of one point, (anchor,)."""
    first, last, owner = items
    indices, weights = members
    item = tl.program_id(0).to(tl.int64)
    anchors = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    row = tl.load(owner + item) if PARTS else item
    start, stop = tl.load(first + item), tl.load(last + item)
    if (not PARTS) and stop - start > hub:
        return
    logs = tl.load(row_logs + row * P + anchors, mask=anchors < P, other=0.0)
    kind = out.dtype.element_ty
    sums = tl.zeros([BLOCK_E, BLOCK_P], kind)
    for begin in range(start, stop, BLOCK_E):
        entry = begin + tl.arange(0, BLOCK_E)
        live = entry < stop
        v = tl.load(indices + entry, mask=live, other=0).to(tl.int64)
        where = v[:, None] * P + anchors[None, :]
        mask = live[:, None] & (anchors < P)[None, :]
        total = tl.load(log_total + where, mask=mask, other=float("inf"))
        terms = tl.where(total > -float("inf"), tl.exp(logs[None, :] - total), 0.0)
        terms *= tl.load(inner + where, mask=mask, other=0.0)
        if WEIGHTED:
            weight = tl.load(weights + entry, mask=live, other=0.0).to(kind)[:, None]
            terms = tl.where(weight > 0, weight * terms, 0.0)
        sums += terms
    tl.store(out + item * P + anchors, tl.sum(sums, axis=0), mask=anchors < P)


class Pull:
    """scale · Σ_e a_e c_ej x_e of the sets, (set, anchor, feature), all at once or in ranges of rows.

    With `row_logs` (set, anchor) and `logs` = log c, scale · Σ_e a_e exp(log c_ej + r_vj) x_e, also if c overflows.
    """

    def __init__(
        self,
        points: Tensor,
        coefficients: Tensor,
        sets: TensorSets,
        *,
        by_entry: bool = False,
        logs: Tensor | None = None,
        row_logs: Tensor | None = None,
        scale: float = 1.0,
    ):
        self.points, self.coefficients, self.sets, self.scale = points, coefficients, sets, scale
        self.logs, self.row_logs = logs, row_logs
        self.shape = (coefficients.shape[1], points.shape[1])
        weighted = sets.weights is not None
        self.grid, shape, warps = tile(*self.shape, coefficients.dtype, weighted=weighted, by_entry=by_entry)
        self.options: dict[str, Any] = {
            "HAS_ROW": row_logs is not None,
            "S": shape,
            "num_warps": warps,
            "maxnreg": REGISTERS,
        }

    def _launch(self, items: Items, row_logs: Tensor | None, parts: bool) -> Tensor:
        c, points = self.coefficients, (self.points, self.points.stride(0))
        out = torch.empty((items[0].shape[0], *self.shape), dtype=c.dtype, device=c.device)
        if len(out):
            logs = c if self.logs is None else self.logs
            inputs = (out, points, c, logs, c if row_logs is None else row_logs, items, members_of(self.sets, c))
            _pull_rows[(len(out), *self.grid)](*inputs, self.scale, tensor_sets.HUB, PARTS=parts, **self.options)
        return out

    def rows(self, rows: slice) -> Tensor:
        """The sums of a range of rows; those of hubs are left undefined."""
        indptr = self.sets.indptr[rows.start : rows.stop + 1]
        row_logs = None if self.row_logs is None else self.row_logs[rows]
        return self._launch((indptr[:-1], indptr[1:], indptr), row_logs, False)

    def hubs(self) -> Tensor:
        """The sums of the hubs, (hub, anchor, feature), from their parts, added in order."""
        hubs = self.sets.hubs
        parts = self._launch((hubs.part_first, hubs.part_last, hubs.part_row), self.row_logs, True)
        out = torch.empty((hubs.n_hubs, *self.shape), dtype=parts.dtype, device=parts.device)
        order = torch.arange(hubs.n_hubs, device=parts.device)
        sum_parts(out.view(1, hubs.n_hubs, -1), parts.view(1, hubs.n_parts, -1), hubs._replace(rows=order))
        return out

    def all(self) -> Tensor:
        """The sums of all sets."""
        out = self.rows(slice(0, self.sets.n_sets))
        if self.sets.hubs.n_hubs:
            out[self.sets.hubs.rows] = self.hubs()
        return out


def pull_inner(inner: Tensor, log_total: Tensor, row_logs: Tensor, sets: TensorSets) -> Tensor:
    """Σ_v t_vuj Q_vj, (point, anchor), over the transposed sets; hubs part by part, added in order."""
    n_anchors, hubs = inner.shape[1], sets.hubs
    block = min(16, triton.next_power_of_2(n_anchors))
    options = {"BLOCK_E": 32, "BLOCK_P": block, "WEIGHTED": sets.weights is not None, "num_warps": 1}

    def launch(n_items: int, items: Items, parts: bool) -> Tensor:
        out = torch.empty((n_items, n_anchors), dtype=inner.dtype, device=inner.device)
        if n_items:
            inputs = (out, inner, log_total, row_logs, items, members_of(sets, inner), tensor_sets.HUB, n_anchors)
            _pull_inner[(n_items, triton.cdiv(n_anchors, block))](*inputs, PARTS=parts, **options)
        return out

    out = launch(sets.n_sets, (sets.indptr, sets.indptr[1:], sets.indptr), False)
    if hubs.n_hubs:
        parts = launch(hubs.n_parts, (hubs.part_first, hubs.part_last, hubs.part_row), True)
        sum_parts(out.view(1, sets.n_sets, -1), parts.view(1, hubs.n_parts, -1), hubs)
    return out
