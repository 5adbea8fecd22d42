"""The gradient of several EM iterations on a GPU: one program goes back through all iterations of a set.

With t the iteration, G^t_vj = ∂L/∂μ^t_vj, c^t_ej = a_e α^t_ej / D^t_vj and D^t_vj = κ + Σ_e a_e α^t_ej:

    Q^t_vj  = Σ_e c^t_ej ⟨x_e, G^t_vj⟩ + κ/D^t_vj ⟨w_j, G^t_vj⟩       (which is ⟨μ^t_vj, G^t_vj⟩)
    ℓ^t_ej  = c^t_ej (⟨x_e, G^t_vj⟩ − Q^t_vj) + a_e α^t_ej g_vj        ∂L/∂log α^t_ej; g, of the mass, in the last one
    s^t_ej  = ℓ^t_ej − α^t_ej Σ_k ℓ^t_ek                               ∂L/∂ of the score −‖x_e − μ^{t−1}_vj‖²/2σ² + b_j
    G^{t−1} = (Σ_e s^t_ej x_e − (Σ_e s^t_ej) μ^{t−1}_vj) / σ²
    ∂L/∂x_e = Σ_t Σ_j (c^t_ej G^t_vj + s^t_ej μ^{t−1}_vj / σ²)         since Σ_j s^t_ej = 0
    ∂L/∂w_j = Σ_v Σ_t κ/D^t_vj G^t_vj                                  and what the first E-step adds
    ∂L/∂a_e = Σ_t Σ_j ℓ^t_ej / a_e,     ∂L/∂b_j = Σ_e Σ_{t>0} s^t_ej

The forward pass keeps log α^t of the entries for t > 0 and log D^t: p numbers of an entry and an iteration. The means
μ^{t−1} are summed again from them while G^t is held, a member read once for both. Members are read again from the
caches. Bytes per entry from memory: x_e once, the vector ∂L/∂x_e, written and read once (4 · d each), and some tables
of 4 · p. Nothing of the size entries × anchors × features exists. Hubs go part by part, an iteration at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops._triton.launch import members_of, numbers
from fishergraph.ops.attend.triton_backward import anchor_rows, run_entries
from fishergraph.ops.iterate.triton_passes import (
    add_anchor,
    anchor_share,
    earlier_slopes,
    inner_products,
    load_tile,
    push_members,
    score_slopes,
    spread_members,
    store_tile,
    sum_members,
)
from fishergraph.ops.posterior.triton import lane_shape
from fishergraph.ops.segment_sums.triton import EntrySums, entry_runs, merge_parts
from fishergraph.ops.tensor_sets import Hubs, TensorSets

# Registers of a thread: eight programs of a warp each fit a multiprocessor, and three tiles a program.
_REGISTERS = 255
# Exponents are bounded as in the plain version: only members of weight zero come near.
_BOUNDS = {torch.float32: 79.0, torch.float64: 638.0}
# Entries of one program of `_coefficients`, and of a step of the passes over tables.
_BLOCK, _STEP = 128, 8


@triton.jit
def _coefficients(
    out, logs, log_totals, owner, members, first, n_entries, sizes, BLOCK: constexpr, COLUMNS: constexpr, S: constexpr
):
    """c_ej = a_e α_ej / D_vj of a run of entries in one iteration, (iteration, entry, anchor)."""
    entry_logs, point_logs = logs
    indices, weights = members
    per_logs, per_total = sizes
    number = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live, columns, iteration = number < n_entries, tl.arange(0, COLUMNS), tl.program_id(1).to(tl.int64)
    mask = live[:, None] & (columns < S.P)[None, :]
    row = tl.load(owner + number, mask=live, other=0).to(tl.int64)
    if iteration == 0:
        point = tl.load(indices + first + number, mask=live, other=0).to(tl.int64)
        log = tl.load(point_logs + point[:, None] * S.P + columns[None, :], mask=mask, other=0.0)
    else:
        at = entry_logs + (iteration - 1) * per_logs + (first + number)[:, None] * S.P
        log = tl.load(at + columns[None, :], mask=mask, other=0.0)
    at = log_totals + iteration * per_total + row[:, None] * S.P
    total = tl.load(at + columns[None, :], mask=mask, other=0.0)
    counts = mask & (total > -float("inf"))
    weight = tl.full([BLOCK, 1], 1.0, S.KIND)
    if S.WEIGHTED:
        weight = tl.load(weights + first + number, mask=live, other=0.0).to(S.KIND)[:, None]
        counts = counts & (weight > 0)
    c = tl.where(counts, weight * tl.exp(tl.where(counts, log - total, 0.0)), 0.0)
    tl.store(out + (iteration * n_entries + number)[:, None] * S.P + columns[None, :], c, mask=mask)


@triton.jit
def _back_rows(
    outs,
    points,
    sets,
    grads,
    kept,
    w,
    constants,
    first_row,
    offset,
    hub,
    n_iter,
    sizes,
    ENTRIES: constexpr,
    COLUMNS: constexpr,
    PRIOR: constexpr,
    MASS: constexpr,
    NEED: constexpr,
    S: constexpr,
):
    """All iterations of one set that is not a hub, the last one first."""
    buffer, dots, grad_weights, grad_bias, shares = outs
    indptr, indices, weights = sets
    grad_means, grad_mass = grads
    coefs, entry_logs, point_logs, log_totals = kept
    per_coefs, per_logs, per_total = sizes
    local = tl.program_id(0).to(tl.int64)
    start, stop = tl.load(indptr + local), tl.load(indptr + local + 1)
    if stop - start > hub:
        return
    row, span, members = first_row + local, (start, stop, offset), (indices, weights)
    log_prior, inverse, bound = tl.log(tl.load(constants)), 1 / tl.load(constants + 1), tl.load(constants + 2)
    slopes, columns = load_tile(grad_means, row, S), tl.arange(0, COLUMNS)
    bias, is_last = tl.zeros([COLUMNS], S.KIND), row >= 0
    # At the tables of the last iteration; then one back at a time.
    log_totals += row * S.P
    grad_mass += row * S.P
    for _ in range(1, n_iter):
        log_totals += per_total
        coefs += per_coefs
        entry_logs += per_logs
    entry_logs -= per_logs  # those of the first iteration belong to the points
    for _ in range(1, n_iter):
        earlier = coefs - per_coefs
        means = sum_members(points, indices, earlier, dots, span, slopes, S)
        tl.debug_barrier()
        inner = inner_products(coefs, dots, span, ENTRIES, COLUMNS, S)
        if PRIOR:
            means = add_anchor(means, w, log_totals - per_total, log_prior, S)
            inner += anchor_share(shares, slopes, w, log_totals, log_prior, row, COLUMNS, S)
        mass_counts = is_last if MASS else row < 0
        of_set, tables = (inner, log_totals, grad_mass, mass_counts), (coefs, dots, entry_logs)
        counts = score_slopes(tables, of_set, members, grad_weights, span, bound, False, NEED, ENTRIES, COLUMNS, S)
        tl.debug_barrier()
        tables = (coefs, dots)
        sums = push_members(points, indices, tables, buffer, span, slopes, means, inverse, is_last, S)
        tl.debug_barrier()
        slopes = earlier_slopes(sums, means, counts, inverse, COLUMNS, S)
        bias += counts
        is_last = row < 0
        coefs, entry_logs, log_totals = earlier, entry_logs - per_logs, log_totals - per_total
    spread_members(points, indices, coefs, (buffer, dots), span, slopes, S)
    tl.debug_barrier()
    inner = inner_products(coefs, dots, span, ENTRIES, COLUMNS, S)
    if PRIOR:
        inner += anchor_share(shares, slopes, w, log_totals, log_prior, row, COLUMNS, S)
    of_set, tables = (inner, log_totals, grad_mass, row < 0), (coefs, dots, point_logs)
    score_slopes(tables, of_set, members, grad_weights, span, bound, True, NEED, ENTRIES, COLUMNS, S)
    tl.store(grad_bias + row * S.P + columns, bias, mask=columns < S.P)


@triton.jit
def _back_parts(
    outs,
    points,
    items,
    members,
    coefs,
    slopes,
    offset,
    ENTRIES: constexpr,
    COLUMNS: constexpr,
    FIRST: constexpr,
    S: constexpr,
):
    """The products of one part of a hub, and its sums with the coefficients of the iteration before."""
    part_sums, part_inner, buffer, dots = outs
    part_first, part_last, part_hub, _ = items
    now, earlier = coefs
    item, columns = tl.program_id(0).to(tl.int64), tl.arange(0, COLUMNS)
    start, stop, hub = tl.load(part_first + item), tl.load(part_last + item), tl.load(part_hub + item)
    span, tile = (start, stop, offset), load_tile(slopes, hub, S)
    if FIRST:
        spread_members(points, members[0], now, (buffer, dots), span, tile, S)
    else:
        store_tile(part_sums, item, sum_members(points, members[0], earlier, dots, span, tile, S), S)
    tl.debug_barrier()
    inner = inner_products(now, dots, span, ENTRIES, COLUMNS, S)
    tl.store(part_inner + item * S.P + columns, inner, mask=columns < S.P)


@triton.jit
def _push_parts(
    outs,
    points,
    items,
    members,
    tables,
    of_hubs,
    of_sets,
    constants,
    offset,
    ENTRIES: constexpr,
    COLUMNS: constexpr,
    FIRST: constexpr,
    LAST: constexpr,
    MASS: constexpr,
    NEED: constexpr,
    S: constexpr,
):
    """The slopes of the scores of one part of a hub, and what they add up to."""
    part_sums, part_counts, buffer, grad_weights = outs
    part_first, part_last, part_hub, part_row = items
    slopes, means, inner = of_hubs
    log_total, grad_mass = of_sets
    item, columns = tl.program_id(0).to(tl.int64), tl.arange(0, COLUMNS)
    start, stop, hub = tl.load(part_first + item), tl.load(part_last + item), tl.load(part_hub + item)
    row, span = tl.load(part_row + item), (start, stop, offset)
    mine = tl.load(inner + hub * S.P + columns, mask=columns < S.P, other=0.0)
    is_last, mass_counts = start >= 0 if LAST else start < 0, start >= 0 if LAST and MASS else start < 0
    of_set = (mine, log_total + row * S.P, grad_mass + row * S.P, mass_counts)
    bound = tl.load(constants + 2)
    counts = score_slopes(tables, of_set, members, grad_weights, span, bound, FIRST, NEED, ENTRIES, COLUMNS, S)
    tl.store(part_counts + item * S.P + columns, counts, mask=columns < S.P)
    if not FIRST:
        tl.debug_barrier()
        tiles = (load_tile(slopes, hub, S), load_tile(means, hub, S))
        inverse, pair = 1 / tl.load(constants + 1), (tables[0], tables[1])
        sums = push_members(points, members[0], pair, buffer, span, tiles[0], tiles[1], inverse, is_last, S)
        store_tile(part_sums, item, sums, S)


# ------------------------------------------------------------------------------------------------ the host


class Through(NamedTuple):
    """Gradients, but for what the first E-step adds: of points, log α of the points, anchors, bias, weights or None."""

    points: Tensor
    logs: Tensor
    anchors: Tensor
    bias: Tensor
    weights: Tensor | None


class _Tables(NamedTuple):
    """What the passes of a run of sets read and write.

    The coefficients are (iteration, entry of the run, anchor), log α of the points and, after the first iteration, of
    all entries; log totals, products and gradients are of all sets and entries; `offset` is the first entry of the run.
    """

    coefs: Tensor
    point_logs: Tensor
    entry_logs: Tensor
    log_totals: Tensor
    dots: Tensor
    buffer: Tensor
    grad_weights: Tensor
    offset: int


def em_backward(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    variance: float,
    prior: float,
    entry_logs: Tensor,
    log_totals: Tensor,
    grad_means: Tensor,
    grad_mass: Tensor | None,
    need_weights: bool,
) -> Through:
    """The gradients of `em_rows`, from what it kept."""
    (n_anchors, n_features), n_iter, new = anchors.shape, len(log_totals), {"dtype": logs.dtype, "device": logs.device}
    grad_means, w = grad_means.to(logs.dtype).contiguous(), anchors.to(logs.dtype)
    weighted = sets.weights is not None
    shape, _ = lane_shape(n_anchors, n_features, logs.dtype, weighted=weighted)
    runs, dots = entry_runs(sets, run_entries(grad_means)), torch.empty((sets.n_entries, n_anchors), **new)
    longest = max((last - first for _, first, last in runs), default=0)
    by_entry = {"coefs": (n_iter, longest, n_anchors), "buffer": (longest, n_features)}
    coefs, buffer = (torch.empty(size, **new) for size in by_entry.values())
    grad_weights = torch.zeros(sets.n_entries if need_weights else 0, **new)
    grad_bias = torch.zeros((sets.n_sets, n_anchors), **new)
    shares = torch.zeros(grad_means.shape if prior > 0 else (0,), **new)
    sums = EntrySums(sets, n_features, logs.dtype, at_once=len(runs) == 1)
    flags: dict[str, Any] = {"COLUMNS": triton.next_power_of_2(n_anchors), "S": shape, "num_warps": 1}
    constants = numbers(prior, variance, _BOUNDS[logs.dtype], **new)
    grads, rows = (grad_means, logs if grad_mass is None else grad_mass), (points, points.stride(0))
    has_mass, grad_anchors = grad_mass is not None, torch.zeros_like(w)
    for block_rows, first, last in runs:
        block, owner = sets if len(runs) == 1 else sets.block(block_rows), sets.rows[first:last]
        n_run, members = last - first, members_of(block, logs)
        tables = _Tables(coefs, logs, entry_logs, log_totals, dots, buffer, grad_weights, first)
        sizes = (n_run * n_anchors, sets.n_entries * n_anchors, sets.n_sets * n_anchors)
        if n_run:
            inputs = (coefs, (entry_logs, logs), log_totals, owner, members, first, n_run, sizes[1:])
            _coefficients[(triton.cdiv(n_run, _BLOCK), n_iter)](*inputs, BLOCK=_BLOCK, **flags)
        options = {**flags, "ENTRIES": _STEP, "MASS": has_mass, "NEED": need_weights, "maxnreg": _REGISTERS}
        if block.n_sets:
            outs, kept = (buffer, dots, grad_weights, grad_bias, shares), (coefs, entry_logs, logs, log_totals)
            inputs = (rows, (block.indptr, *members), grads, kept, w, constants, block_rows.start, first)
            _back_rows[(block.n_sets,)](outs, *inputs, sets.hub, n_iter, sizes, PRIOR=prior > 0, **options)
        if block.hubs.n_hubs:
            hubs = _Hubs(block.hubs, block_rows.start, rows, members, w, constants, variance, prior, options)
            grad_anchors += hubs.run(tables, n_run, grad_means, grads[1], grad_bias)
        sums.add(buffer, first, last)
    if prior > 0:
        grad_anchors += shares.sum(dim=0)
    else:
        grad_anchors += anchor_rows(w, grad_means, log_totals[-1], prior)[1]
    by_point = EntrySums(sets, n_anchors, logs.dtype, at_once=True)
    by_point.add(dots, 0, sets.n_entries)
    bias = grad_bias.sum(dim=0)
    return Through(sums.result(), by_point.result(), grad_anchors, bias, grad_weights if need_weights else None)


class _Hubs(NamedTuple):
    """The hubs of a run of sets, which go back an iteration at a time."""

    hubs: Hubs
    first_row: int
    points: tuple[Tensor, int]
    members: tuple[Tensor, Tensor]
    w: Tensor
    constants: Tensor
    variance: float
    prior: float
    options: dict[str, Any]

    def run(self, tables: _Tables, n_run: int, grad_means: Tensor, grad_mass: Tensor, grad_bias: Tensor) -> Tensor:
        """Go through all iterations; return what the hubs add to the gradient of the anchors."""
        hubs, rows = self.hubs, self.hubs.rows + self.first_row
        n_iter, n_anchors = len(tables.log_totals), len(self.w)
        number = torch.arange(hubs.n_hubs, device=rows.device)
        owner = torch.repeat_interleave(number, torch.diff(hubs.offsets), output_size=hubs.n_parts)
        items = (hubs.part_first, hubs.part_last, owner, hubs.part_row + self.first_row)
        sums, counts = (
            grad_means.new_empty((hubs.n_parts, *self.w.shape)),
            grad_means.new_empty(hubs.n_parts, n_anchors),
        )
        coefs = tables.coefs.flatten()[: n_iter * n_run * n_anchors].view(n_iter, n_run, n_anchors)
        slopes, means, total = grad_means[rows], grad_means, torch.zeros_like(self.w)
        for t in reversed(range(n_iter)):
            first, is_last = t == 0, t == n_iter - 1
            flags = {"FIRST": first, **{k: v for k, v in self.options.items() if k not in ("MASS", "NEED")}}
            outs = (sums, counts, tables.buffer, tables.dots)
            pair = (coefs[t], coefs[max(t - 1, 0)])
            _back_parts[(hubs.n_parts,)](outs, self.points, items, self.members, pair, slopes, tables.offset, **flags)
            inner = merge_parts(counts, hubs)
            means = means if first else merge_parts(sums, hubs)
            if self.prior > 0:
                now = (self.prior * torch.exp(-tables.log_totals[t, rows]))[..., None] * slopes
                inner, total = inner + (now * self.w).sum(dim=2), total + now.sum(dim=0)
                if not first:
                    means += self.prior * torch.exp(-tables.log_totals[t - 1, rows])[..., None] * self.w
            logs = tables.point_logs if first else tables.entry_logs[t - 1]
            outs = (sums, counts, tables.buffer, tables.grad_weights)
            of_sets = (tables.log_totals[t], grad_mass)
            _push_parts[(hubs.n_parts,)](
                outs,
                self.points,
                items,
                self.members,
                (coefs[t], tables.dots, logs),
                (slopes, means, inner),
                of_sets,
                self.constants,
                tables.offset,
                LAST=is_last,
                **{"FIRST": first, **self.options},
            )
            if not first:
                added = merge_parts(counts, hubs)
                grad_bias[rows] += added
                slopes = (merge_parts(sums, hubs) - added[..., None] * means) / self.variance
        return total
