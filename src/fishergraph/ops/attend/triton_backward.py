"""Gradients of the M-step on a GPU: sums over the sets of a point (the transposed graph), without atomics.

Bytes per entry: the gradient of the set's means (4 · p · d) and its totals; per point dx (4 · d) and the gradient of
its log-responsibilities (4 · p). Hubs are summed in parts that are added in order, so the bits never change.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops import tensor_sets
from fishergraph.ops._triton.launch import numbers, tile
from fishergraph.ops._triton.members import load_row, store_row, zeros
from fishergraph.ops.attend.torch import bounded, entry_terms
from fishergraph.ops.attend.triton import attend
from fishergraph.ops.segment_sums.triton import sum_parts
from fishergraph.ops.tensor_sets import TensorSets

# Sets that one program of `inner_rows` sums over.
_ROWS = 64


@triton.jit
def _push_one(
    pushed, inners, row_logs, of_sets, coefficients, back, entry, tile, fresh, HAS_MASS: constexpr, S: constexpr
):
    """pushed_j + t_j G_vj and inners_j + t_j Q_vj − a α_j g_vj of one entry; anchors of another tile count as zero."""
    values, log_total, inner, grad_mass = of_sets
    members, entries, weights = back
    features, anchor = tile
    v = tl.load(members + entry).to(tl.int64)
    number = tl.load(entries + entry)
    weight = tl.load(weights + number).to(S.KIND) if S.WEIGHTED else tl.full([], 1.0, S.KIND)
    new_pushed, new_inners = (), ()
    for j in tl.static_range(S.P):
        at = v * S.N + anchor + j
        if S.BY_ENTRY:
            t, more = tl.load(coefficients + number * S.N + anchor + j), tl.full([], 0.0, S.KIND)
        else:
            total = tl.load(log_total + at)
            t = tl.where((total > -float("inf")) & (weight > 0), weight * tl.exp(row_logs[j] - total), 0.0)
            more = t * tl.load(inner + at)
            if HAS_MASS:
                more -= weight * tl.exp(row_logs[j]) * tl.load(grad_mass + at)
        t = tl.where(anchor + j >= fresh, t, 0.0)
        value = load_row(values, at, features, S.D, S)
        new_pushed, new_inners = new_pushed + (pushed[j] + t * value,), new_inners + (inners[j] + more,)
    return new_pushed, new_inners


@triton.jit
def _push_rows(
    grads, points, of_sets, logs, items, back, hub, n_rows, PARTS: constexpr, HAS_MASS: constexpr, S: constexpr
):
    """dx_u = Σ_v Σ_j t_vuj G_vj, and by point Σ_v t_vuj (⟨x_u, G_vj⟩ − Q_vj) + a α_uj g_vj, one tile of each.

    `logs` are log α by point, or the coefficients t by entry.
    """
    grad_x, grad_logs = grads
    first, last, owner = items
    item = tl.program_id(0).to(tl.int64)
    row = tl.load(owner + item) if PARTS else item
    start, stop = tl.load(first + item), tl.load(last + item)
    if (not PARTS) and stop - start > hub:
        return
    features = tl.program_id(1) * S.BLOCK + tl.arange(0, S.BLOCK)
    fresh = tl.program_id(2) * S.P
    anchor = tl.minimum(fresh, S.N - S.P)
    pushed, inners, row_logs = zeros(features, S.P, S.KIND), (), ()
    for j in tl.static_range(S.P):
        inners = inners + (tl.full([], 0.0, S.KIND),)
        row_logs = row_logs + (tl.full([], 0.0, S.KIND) if S.BY_ENTRY else tl.load(logs + row * S.N + anchor + j),)
    tile = (features, anchor)
    for entry in range(start, stop):
        pushed, inners = _push_one(pushed, inners, row_logs, of_sets, logs, back, entry, tile, fresh, HAS_MASS, S)
    total = pushed[0]
    for j in tl.static_range(1, S.P):
        total += pushed[j]
    store_row(grad_x, tl.program_id(2).to(tl.int64) * n_rows + item, features, total, S)
    if not S.BY_ENTRY:
        point = load_row(points[0], row, features, points[1], S)
        for j in tl.static_range(S.P):
            dot = tl.sum(pushed[j] * point, axis=0)
            dot = dot - inners[j] if tl.program_id(1) == 0 else dot
            at = (tl.program_id(1).to(tl.int64) * n_rows + item) * S.N + anchor + j
            tl.store(grad_logs + at, dot, mask=anchor + j >= fresh)


@triton.jit
def _inner_rows(inner, grad_w, means, grad, log_total, constants, n_sets, ROWS: constexpr, S: constexpr):
    """Q_vj = ⟨μ_vj, G_vj⟩ of ROWS sets at one anchor, and Σ_v κ/total_vj G_vj over them, G read once."""
    anchor = tl.program_id(1)
    first = tl.program_id(0).to(tl.int64) * ROWS
    log_prior = tl.log(tl.load(constants))
    for begin in tl.static_range(0, S.D, S.BLOCK):
        features = begin + tl.arange(0, S.BLOCK)
        sums = tl.zeros([S.BLOCK], S.KIND)
        for row in range(first, tl.minimum(first + ROWS, n_sets)):
            at = row * S.N + anchor
            slope = load_row(grad, at, features, S.D, S)
            dot = tl.sum(slope * load_row(means, at, features, S.D, S), axis=0)
            total = tl.load(log_total + at)
            # The mean of an empty set is the anchor.
            sums += tl.where(total > -float("inf"), tl.exp(log_prior - total), 1.0) * slope
            tl.store(inner + at, dot if begin == 0 else dot + tl.load(inner + at))
        store_row(grad_w, tl.program_id(0) * S.N + anchor, features, sums, S)


def inner_rows(means: Tensor, grad_means: Tensor, log_total: Tensor, prior: float) -> tuple[Tensor, Tensor]:
    """⟨μ_vj, G_vj⟩ (set, anchor), and the gradient of the anchors, Σ_v κ/total_vj G_vj (anchor, feature)."""
    n_sets, n_anchors, n_features = means.shape
    new = {"dtype": log_total.dtype, "device": means.device}
    blocks, (_, shape, warps) = (
        triton.cdiv(n_sets, _ROWS),
        tile(n_anchors, n_features, log_total.dtype, one_anchor=True),
    )
    inner, grad_w = torch.empty((n_sets, n_anchors), **new), torch.zeros((blocks, n_anchors, n_features), **new)
    if n_sets:
        inputs = (means, grad_means, log_total, numbers(prior, **new), n_sets)
        _inner_rows[(blocks, n_anchors)](inner, grad_w, *inputs, ROWS=_ROWS, S=shape, num_warps=warps)
    return inner, grad_w.sum(dim=0)


@triton.jit
def _entry_dots(out, points, values, sets, n_entries, ENTRIES: constexpr, SQUARED: constexpr, S: constexpr):
    """⟨x_u, G_vj⟩, or −‖x_u − μ_vj‖²/2, of the entries of one program (entry, anchor)."""
    indptr, owner, members = sets
    anchor = tl.minimum(tl.program_id(1) * S.P, S.N - S.P)
    first = tl.load(indptr)
    begin = tl.program_id(0).to(tl.int64) * ENTRIES
    for entry in range(begin, tl.minimum(begin + ENTRIES, n_entries)):
        u = tl.load(members + first + entry).to(tl.int64)
        v = tl.load(owner + entry)
        products = zeros(tl.arange(0, S.BLOCK), S.P, S.KIND)
        for tile_start in tl.static_range(0, S.D, S.BLOCK):
            features = tile_start + tl.arange(0, S.BLOCK)
            point = load_row(points[0], u, features, points[1], S)
            new = ()
            for j in tl.static_range(S.P):
                value = load_row(values, v * S.N + anchor + j, features, S.D, S)
                new = new + (products[j] + ((point - value) * (point - value) if SQUARED else point * value),)
            products = new
        for j in tl.static_range(S.P):
            dot = tl.sum(products[j], axis=0)
            tl.store(out + entry * S.N + anchor + j, -0.5 * dot if SQUARED else dot)


def push(
    points: Tensor | None,
    values: Tensor,
    sets: TensorSets,
    logs: Tensor,
    *,
    by_entry: bool = False,
    log_total: Tensor | None = None,
    inner: Tensor | None = None,
    grad_mass: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """dx (point, feature) and, by point, ∂ log α (point, anchor); if `by_entry` dx alone, from coefficients as logs."""
    back, entries = sets.transpose
    _, n_anchors, n_features = values.shape
    weighted, new = sets.weights is not None, {"dtype": logs.dtype, "device": values.device}
    grid, shape, warps = tile(n_anchors, n_features, logs.dtype, weighted=weighted, by_entry=by_entry)
    rows = (values, 0) if points is None else (points, points.stride(0))
    # Tensors that are not read are replaced by any tensor.
    of_sets = (values, *(logs if tensor is None else tensor for tensor in (log_total, inner, grad_mass)))
    members = (back.indices, entries, logs if sets.weights is None else sets.weights)

    def launch(n_items: int, items: tuple[Tensor, Tensor, Tensor], parts: bool) -> tuple[Tensor, Tensor]:
        grads = (
            torch.empty((grid[1], n_items, n_features), **new),
            torch.empty((grid[0], 0 if by_entry else n_items, n_anchors), **new),
        )
        if n_items:
            inputs = (grads, rows, of_sets, logs, items, members, tensor_sets.HUB, n_items)
            flags = {"PARTS": parts, "HAS_MASS": grad_mass is not None}
            _push_rows[(n_items, *grid)](*inputs, **flags, S=shape, num_warps=warps)
        return grads

    grads, hubs = launch(back.n_sets, (back.indptr, back.indptr[1:], back.indptr), False), back.hubs
    if hubs.n_hubs:
        parts = launch(hubs.n_parts, (hubs.part_first, hubs.part_last, hubs.part_row), True)
        for grad, part in zip(grads, parts, strict=True):
            if grad.shape[1]:
                sum_parts(grad, part, hubs)
    grad_x, grad_logs = (grad.sum(0) if grad.shape[0] > 1 else grad[0] for grad in grads)
    return grad_x, grad_logs


def entry_dots(points: Tensor, values: Tensor, sets: TensorSets, *, squared: bool = False) -> Tensor:
    """⟨x_u, G_vj⟩ of every entry (entry, anchor), or −‖x_u − G_vj‖²/2 if `squared`."""
    _, n_anchors, n_features = values.shape
    out = torch.empty((sets.n_entries, n_anchors), dtype=values.dtype, device=values.device)
    (_, anchor_tiles), shape, warps = tile(n_anchors, n_features, values.dtype)
    if sets.n_entries:
        inputs = ((points, points.stride(0)), values, (sets.indptr, sets.rows, sets.indices), sets.n_entries)
        grid = (triton.cdiv(sets.n_entries, 8), anchor_tiles)
        _entry_dots[grid](out, *inputs, ENTRIES=8, SQUARED=squared, S=shape, num_warps=warps)
    return out


def attend_backward(
    points: Tensor,
    logs: Tensor,
    sets: TensorSets,
    anchors: Tensor,
    prior: float,
    by_entry: bool,
    means: Tensor | None,
    log_total: Tensor,
    grad_means: Tensor,
    grad_mass: Tensor | None,
    need_weights: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """∂L/∂(points, logs, weights or None, anchors) of `attend`; means of None are computed again."""
    grad_means = grad_means.to(logs.dtype).contiguous()
    if means is None:
        out = logs.new_empty((sets.n_sets, *anchors.shape))
        means = attend(points, logs, sets, anchors, prior=prior, by_entry=by_entry, out=out)[0]
    inner, grad_anchors = inner_rows(means, grad_means, log_total, prior)
    grad_weights = None
    if by_entry or need_weights:
        dots = entry_dots(points, grad_means, sets)
        terms = entry_terms(logs, sets, by_entry, log_total, dots, inner, grad_mass)
        grad_weights = terms.sum(dim=1) if need_weights else None
    if by_entry:
        attention = torch.exp(bounded(logs - log_total[sets.rows]))
        if sets.weights is not None:
            attention = torch.where(sets.weights[:, None] > 0, sets.weights[:, None] * attention, 0.0)
        grad_points, _ = push(None, grad_means, sets, attention.contiguous(), by_entry=True)
        grad_logs = terms if sets.weights is None else sets.weights[:, None] * terms
    else:
        of_sets = {"log_total": log_total, "inner": inner, "grad_mass": grad_mass}
        grad_points, grad_logs = push(points, grad_means, sets, logs, **of_sets)
    return grad_points, grad_logs, grad_weights, grad_anchors
