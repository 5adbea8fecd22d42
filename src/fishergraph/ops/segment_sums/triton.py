"""Unnormalised sums over the members of a set on a GPU: what gradients are made of.

`pull` reads a member's vector once for all anchors, like the M-step (bytes per entry: 4 · d + 4 · p); `pull_inner`
reads p numbers. On the transposed graph `pull` is the low-rank backward of a linear head.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fishergraph.ops import tensor_sets
from fishergraph.ops._triton.launch import REGISTERS, tile
from fishergraph.ops._triton.members import pull as pull_members
from fishergraph.ops._triton.members import store_row, tile_features
from fishergraph.ops.tensor_sets import Hubs, TensorSets


@triton.jit
def _sum_parts(out, parts, rows, offsets, width, slab, BLOCK: tl.constexpr):
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
    out, x, plain, logs, row_logs, first, last, owner, indices, weights, scale, hub, stride, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, MEMBERS: tl.constexpr, WEIGHTED: tl.constexpr,
    BY_ENTRY: tl.constexpr, PARTS: tl.constexpr, HAS_ROW: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """scale · Σ_e a_e c_ej x_e; with row logs r_j, scale · Σ_e a_e exp(log c_ej + r_j) x_e."""
    item = tl.program_id(0).to(tl.int64)
    row = tl.load(owner + item) if PARTS else item
    start, stop = tl.load(first + item), tl.load(last + item)
    if (not PARTS) and stop - start > hub:
        return
    features = tl.program_id(1) * BLOCK + tile_features(BLOCK)
    anchor = tl.minimum(tl.program_id(2) * P, N_ANCHORS - P)
    shifts = ()
    for j in tl.static_range(P):
        if HAS_ROW:
            shifts = shifts + (-tl.load(row_logs + row * N_ANCHORS + anchor + j),)
        else:
            shifts = shifts + (tl.full([], 0.0, KIND),)
    sums, totals = pull_members(
        x, plain, indices, weights, start, stop, features, anchor, shifts, stride, N_ANCHORS,
        D, BLOCK, P, MEMBERS, WEIGHTED, BY_ENTRY, False, KIND,
    )  # fmt: skip
    sound = totals[0] <= 1e30
    for j in tl.static_range(1, P):
        sound = sound & (totals[j] <= 1e30)
    for j in tl.static_range(P):
        factor = tl.exp(-shifts[j]) * scale if HAS_ROW else scale
        store_row(out, item * N_ANCHORS + anchor + j, features, sums[j] * factor, D, BLOCK)
    if HAS_ROW:
        if not sound:  # a factor overflows where the product does not, or was multiplied by a weight of zero
            sums, totals = pull_members(
                x, logs, indices, weights, start, stop, features, anchor, shifts, stride, N_ANCHORS,
                D, BLOCK, P, 1, WEIGHTED, BY_ENTRY, True, KIND,
            )  # fmt: skip
            for j in tl.static_range(P):
                store_row(out, item * N_ANCHORS + anchor + j, features, sums[j] * scale, D, BLOCK)


@triton.jit
def _pull_inner(
    out, inner, log_total, row_logs, first, last, owner, members, weights, hub, P,
    BLOCK_E: tl.constexpr, BLOCK_P: tl.constexpr, WEIGHTED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Σ_v t_vuj Q_vj over the sets v of one point, (anchor,)."""
    item = tl.program_id(0).to(tl.int64)
    anchors = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    row = tl.load(owner + item) if PARTS else item
    start, stop = tl.load(first + item), tl.load(last + item)
    if (not PARTS) and stop - start > hub:
        return
    own = tl.load(row_logs + row * P + anchors, mask=anchors < P, other=0.0)
    kind = out.dtype.element_ty
    sums = tl.zeros([BLOCK_E, BLOCK_P], kind)
    for begin in range(start, stop, BLOCK_E):
        entry = begin + tl.arange(0, BLOCK_E)
        live = entry < stop
        v = tl.load(members + entry, mask=live, other=0).to(tl.int64)
        where = v[:, None] * P + anchors[None, :]
        mask = live[:, None] & (anchors < P)[None, :]
        total = tl.load(log_total + where, mask=mask, other=float("inf"))
        part = tl.where(total > -float("inf"), tl.exp(own[None, :] - total), 0.0)
        part *= tl.load(inner + where, mask=mask, other=0.0)
        if WEIGHTED:
            weight = tl.load(weights + entry, mask=live, other=0.0).to(kind)[:, None]
            part = tl.where(weight > 0, weight * part, 0.0)
        sums += part
    tl.store(out + item * P + anchors, tl.sum(sums, axis=0), mask=anchors < P)


class Pull:
    """scale · Σ_e a_e c_ej x_e of the sets, (set, anchor, feature), all at once or in ranges of rows.

    With `row_logs` (set, anchor) and `logs` = log c, scale · Σ_e a_e exp(log c_ej + r_vj) x_e, which holds even where c
    itself overflows.
    """

    def __init__(
        self, points: Tensor, coefficients: Tensor, sets: TensorSets, *, by_entry: bool = False,
        logs: Tensor | None = None, row_logs: Tensor | None = None, scale: float = 1.0,
    ):  # fmt: skip
        self.points, self.coefficients, self.sets, self.scale = points, coefficients, sets, scale
        self.logs, self.row_logs = logs, row_logs
        self.shape = (coefficients.shape[1], points.shape[1])
        self.grid, options = tile(*self.shape, coefficients.dtype)
        self.flags: dict[str, Any] = {
            **options, "MEMBERS": 3, "WEIGHTED": sets.weights is not None, "BY_ENTRY": by_entry,
            "HAS_ROW": row_logs is not None, "maxnreg": REGISTERS,
        }  # fmt: skip

    def _launch(self, first: Tensor, last: Tensor, owner: Tensor, row_logs: Tensor | None, parts: bool) -> Tensor:
        c, sets = self.coefficients, self.sets
        out = torch.empty((first.shape[0], *self.shape), dtype=c.dtype, device=c.device)
        if len(out):
            _pull_rows[(len(out), *self.grid)](
                out, self.points, c, c if self.logs is None else self.logs, c if row_logs is None else row_logs, first,
                last, owner, sets.indices, c if sets.weights is None else sets.weights, self.scale, tensor_sets.HUB,
                self.points.stride(0), self.shape[0], PARTS=parts, **self.flags,
            )  # fmt: skip
        return out

    def rows(self, rows: slice) -> Tensor:
        """The sums of the given rows; those of hubs are left undefined."""
        indptr = self.sets.indptr[rows.start : rows.stop + 1]
        known = None if self.row_logs is None else self.row_logs[rows]
        return self._launch(indptr[:-1], indptr[1:], indptr, known, False)

    def hubs(self) -> Tensor:
        """The sums of the hubs, (hub, anchor, feature): of their parts, added in order."""
        hubs = self.sets.hubs
        parts = self._launch(hubs.part_first, hubs.part_last, hubs.part_row, self.row_logs, True)
        out = torch.empty((hubs.n_hubs, *self.shape), dtype=parts.dtype, device=parts.device)
        own = torch.arange(hubs.n_hubs, device=parts.device)
        sum_parts(out.view(1, hubs.n_hubs, -1), parts.view(1, hubs.n_parts, -1), hubs._replace(rows=own))
        return out

    def all(self) -> Tensor:
        """The sums of all sets."""
        out = self.rows(slice(0, self.sets.n_sets))
        if self.sets.hubs.n_hubs:
            out[self.sets.hubs.rows] = self.hubs()
        return out


def pull_inner(inner: Tensor, log_total: Tensor, row_logs: Tensor, sets: TensorSets) -> Tensor:
    """Σ_v t_vuj Q_vj, (point, anchor), over the transposed sets."""
    n_anchors = inner.shape[1]
    out = torch.empty((sets.n_sets, n_anchors), dtype=inner.dtype, device=inner.device)
    block = min(16, triton.next_power_of_2(n_anchors))
    flags: dict[str, Any] = {
        "BLOCK_E": 32, "BLOCK_P": block, "WEIGHTED": sets.weights is not None, "num_warps": 1,
    }  # fmt: skip
    weights = inner if sets.weights is None else sets.weights

    def launch(target: Tensor, first: Tensor, last: Tensor, owner: Tensor, parts: bool) -> None:
        if len(target):
            _pull_inner[(len(target), triton.cdiv(n_anchors, block))](
                target, inner, log_total, row_logs, first, last, owner,
                sets.indices, weights, tensor_sets.HUB, n_anchors, PARTS=parts, **flags,
            )  # fmt: skip

    return _with_parts(launch, out, sets)


def _with_parts(launch: Any, out: Tensor, sets: TensorSets) -> Tensor:
    """All sets; the hubs among them into scratch part by part, then added in order."""
    launch(out, sets.indptr, sets.indptr[1:], sets.indptr, False)
    hubs = sets.hubs
    if hubs.n_hubs:
        n_parts = hubs.n_parts
        parts = torch.empty((n_parts, *out.shape[1:]), dtype=out.dtype, device=out.device)
        launch(parts, hubs.part_first, hubs.part_last, hubs.part_row, True)
        sum_parts(out.view(1, out.shape[0], -1), parts.view(1, n_parts, -1), hubs)
    return out
