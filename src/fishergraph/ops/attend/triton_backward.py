"""Gradients of the M-step on a GPU: sums over the sets of a point (the transposed graph), without atomics.

Bytes per entry: the gradient of the set's means (4 · p · d) and its totals; per point dx (4 · d) and the gradient of
its log-responsibilities (4 · p). Sums over hubs run in parts that are added in order, so the bits never change.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

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
    pushed, inners, own, values, log_total, inner, grad_mass, coefficients, members, entries, weights, entry, features,
    anchor, fresh, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr, BY_ENTRY: tl.constexpr,
    HAS_MASS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """pushed_j + t_j G_vj and inners_j + t_j Q_vj − a α_j g_vj of one entry; anchors of another tile count as zero."""
    v = tl.load(members + entry).to(tl.int64)
    number = tl.load(entries + entry)
    weight = tl.load(weights + number).to(KIND) if WEIGHTED else tl.full([], 1.0, KIND)
    new_pushed, new_inners = (), ()
    for j in tl.static_range(P):
        at = v * N_ANCHORS + anchor + j
        if BY_ENTRY:
            t, more = tl.load(coefficients + number * N_ANCHORS + anchor + j), tl.full([], 0.0, KIND)
        else:
            total = tl.load(log_total + at)
            t = tl.where((total > -float("inf")) & (weight > 0), weight * tl.exp(own[j] - total), 0.0)
            more = t * tl.load(inner + at)
            if HAS_MASS:
                more -= weight * tl.exp(own[j]) * tl.load(grad_mass + at)
        t = tl.where(anchor + j >= fresh, t, 0.0)
        value = load_row(values, at, features, D, D, BLOCK, KIND)
        new_pushed, new_inners = new_pushed + (pushed[j] + t * value,), new_inners + (inners[j] + more,)
    return new_pushed, new_inners


@triton.jit
def _push_rows(
    grad_x, grad_logs, x, values, logs, log_total, inner, grad_mass, coefficients, first, last, owner, members, entries,
    weights, hub, stride, n_rows, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, WEIGHTED: tl.constexpr, BY_ENTRY: tl.constexpr,
    PARTS: tl.constexpr, HAS_MASS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """dx_u = Σ_v Σ_j t_vuj G_vj, and by point Σ_v t_vuj (⟨x_u, G_vj⟩ − Q_vj) + a α_uj g_vj, one tile of each."""
    item = tl.program_id(0).to(tl.int64)
    row = tl.load(owner + item) if PARTS else item
    start, stop = tl.load(first + item), tl.load(last + item)
    if (not PARTS) and stop - start > hub:
        return
    features = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    fresh = tl.program_id(2) * P
    anchor = tl.minimum(fresh, N_ANCHORS - P)
    pushed, inners, own = zeros(features, P, KIND), (), ()
    for j in tl.static_range(P):
        inners = inners + (tl.full([], 0.0, KIND),)
        own = own + (tl.full([], 0.0, KIND) if BY_ENTRY else tl.load(logs + row * N_ANCHORS + anchor + j),)
    for entry in range(start, stop):
        pushed, inners = _push_one(
            pushed, inners, own, values, log_total, inner, grad_mass, coefficients, members, entries, weights, entry,
            features, anchor, fresh, N_ANCHORS, D, BLOCK, P, WEIGHTED, BY_ENTRY, HAS_MASS, KIND,
        )  # fmt: skip
    total = pushed[0]
    for j in tl.static_range(1, P):
        total += pushed[j]
    store_row(grad_x, tl.program_id(2).to(tl.int64) * n_rows + item, features, total, D, BLOCK)
    if not BY_ENTRY:
        point = load_row(x, row, features, stride, D, BLOCK, KIND)
        for j in tl.static_range(P):
            dot = tl.sum(pushed[j] * point, axis=0)
            dot = dot - inners[j] if tl.program_id(1) == 0 else dot
            at = (tl.program_id(1).to(tl.int64) * n_rows + item) * N_ANCHORS + anchor + j
            tl.store(grad_logs + at, dot, mask=anchor + j >= fresh)


@triton.jit
def _inner_rows(
    inner, grad_w, means, grad, log_total, numbers, n_sets, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Q_vj = ⟨μ_vj, G_vj⟩ of ROWS sets at one anchor, and Σ_v κ/total_vj G_vj over them, G read once."""
    anchor = tl.program_id(1)
    first = tl.program_id(0).to(tl.int64) * ROWS
    log_prior = tl.log(tl.load(numbers))
    for begin in tl.static_range(0, D, BLOCK):
        features = begin + tl.arange(0, BLOCK)
        total = tl.zeros([BLOCK], KIND)
        for row in range(first, tl.minimum(first + ROWS, n_sets)):
            at = row * N_ANCHORS + anchor
            slope = load_row(grad, at, features, D, D, BLOCK, KIND)
            dot = tl.sum(slope * load_row(means, at, features, D, D, BLOCK, KIND), axis=0)
            known = tl.load(log_total + at)
            # The anchor of a set that holds nothing counts whole.
            total += tl.where(known > -float("inf"), tl.exp(log_prior - known), 1.0) * slope
            tl.store(inner + at, dot if begin == 0 else dot + tl.load(inner + at))
        store_row(grad_w, tl.program_id(0) * N_ANCHORS + anchor, features, total, D, BLOCK)


def inner_rows(means: Tensor, grad_means: Tensor, log_total: Tensor, prior: float) -> tuple[Tensor, Tensor]:
    """⟨μ_vj, G_vj⟩ (set, anchor), and the gradient of the anchors, Σ_v κ/total_vj G_vj (anchor, feature)."""
    n_sets, n_anchors, n_features = means.shape
    new = {"dtype": log_total.dtype, "device": means.device}
    blocks, options = triton.cdiv(n_sets, _ROWS), tile(1, n_features, log_total.dtype).options
    inner, grad_w = torch.empty((n_sets, n_anchors), **new), torch.zeros((blocks, n_anchors, n_features), **new)
    if n_sets:
        _inner_rows[(blocks, n_anchors)](
            inner, grad_w, means, grad_means, log_total, numbers(prior, **new), n_sets, n_anchors, ROWS=_ROWS,
            **{name: value for name, value in options.items() if name != "P"},
        )  # fmt: skip
    return inner, grad_w.sum(dim=0)


@triton.jit
def _entry_dots(
    out, x, values, indptr, owner, members, n_entries, stride, N_ANCHORS,
    D: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, ENTRIES: tl.constexpr, SQUARED: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """⟨x_u, G_vj⟩, or −‖x_u − μ_vj‖²/2, of the entries of one program (entry, anchor)."""
    anchor = tl.minimum(tl.program_id(1) * P, N_ANCHORS - P)
    first = tl.load(indptr)
    begin = tl.program_id(0).to(tl.int64) * ENTRIES
    for entry in range(begin, tl.minimum(begin + ENTRIES, n_entries)):
        u = tl.load(members + first + entry).to(tl.int64)
        v = tl.load(owner + entry)
        products = zeros(tl.arange(0, BLOCK), P, KIND)
        for tile_start in tl.static_range(0, D, BLOCK):
            features = tile_start + tl.arange(0, BLOCK)
            point = load_row(x, u, features, stride, D, BLOCK, KIND)
            new = ()
            for j in tl.static_range(P):
                value = load_row(values, v * N_ANCHORS + anchor + j, features, D, D, BLOCK, KIND)
                new = new + (products[j] + ((point - value) * (point - value) if SQUARED else point * value),)
            products = new
        for j in tl.static_range(P):
            dot = tl.sum(products[j], axis=0)
            tl.store(out + entry * N_ANCHORS + anchor + j, -0.5 * dot if SQUARED else dot)


def push(
    points: Tensor | None,
    values: Tensor,
    sets: TensorSets,
    *,
    logs: Tensor | None = None,
    log_total: Tensor | None = None,
    inner: Tensor | None = None,
    grad_mass: Tensor | None = None,
    coefficients: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """dx (point, feature) and, by point, ∂ log α (point, anchor); with coefficients (entry, anchor), dx alone."""
    back, entries = sets.transpose
    _, n_anchors, n_features = values.shape
    known, by_entry = (logs, False) if coefficients is None else (coefficients, True)
    assert known is not None
    grid, options = tile(n_anchors, n_features, known.dtype)
    new = {"dtype": known.dtype, "device": values.device}
    x, stride = (values, 0) if points is None else (points, points.stride(0))
    rest = [known if tensor is None else tensor for tensor in (log_total, inner, grad_mass)]
    flags: dict[str, Any] = {
        **options, "WEIGHTED": sets.weights is not None, "BY_ENTRY": by_entry, "HAS_MASS": grad_mass is not None,
    }  # fmt: skip

    def launch(n_items: int, first: Tensor, last: Tensor, owner: Tensor, parts: bool) -> tuple[Tensor, Tensor]:
        grad_x = torch.empty((grid[1], n_items, n_features), **new)
        grad_logs = torch.empty((grid[0], 0 if by_entry else n_items, n_anchors), **new)
        if n_items:
            _push_rows[(n_items, *grid)](
                grad_x, grad_logs, x, values, known, *rest, known, first, last, owner, back.indices, entries,
                known if sets.weights is None else sets.weights, tensor_sets.HUB, stride, n_items, n_anchors,
                PARTS=parts, **flags,
            )  # fmt: skip
        return grad_x, grad_logs

    grads = launch(back.n_sets, back.indptr, back.indptr[1:], back.indptr, False)
    hubs = back.hubs
    if hubs.n_hubs:
        for grad, part in zip(
            grads, launch(hubs.n_parts, hubs.part_first, hubs.part_last, hubs.part_row, True), strict=True
        ):
            if grad.shape[1]:
                sum_parts(grad, part, hubs)
    grad_x, grad_logs = (grad.sum(0) if grad.shape[0] > 1 else grad[0] for grad in grads)
    return grad_x, grad_logs


def entry_dots(points: Tensor, values: Tensor, sets: TensorSets, *, squared: bool = False) -> Tensor:
    """⟨x_u, G_vj⟩ of every entry (entry, anchor), or −‖x_u − G_vj‖²/2 when `squared`."""
    _, n_anchors, n_features = values.shape
    out = torch.empty((sets.n_entries, n_anchors), dtype=values.dtype, device=values.device)
    (_, anchor_tiles), options = tile(n_anchors, n_features, values.dtype)
    if sets.n_entries:
        _entry_dots[(triton.cdiv(sets.n_entries, 8), anchor_tiles)](
            out, points, values, sets.indptr, sets.rows, sets.indices, sets.n_entries, points.stride(0), n_anchors,
            ENTRIES=8, SQUARED=squared, **options,
        )  # fmt: skip
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
        grad_points, _ = push(None, grad_means, sets, coefficients=attention.contiguous())
        grad_logs = terms if sets.weights is None else sets.weights[:, None] * terms
    else:
        grad_points, grad_logs = push(
            points, grad_means, sets, logs=logs, log_total=log_total, inner=inner, grad_mass=grad_mass
        )
    return grad_points, grad_logs, grad_weights, grad_anchors
