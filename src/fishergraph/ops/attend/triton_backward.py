"""Gradients of the M-step on a GPU, without atomics and without the means.

A program holds the gradients G_vj of the means of its set, reads every member x_e once, and writes two things of the
entry: Σ_j t_ej G_vj, a vector of features, and the p products ⟨x_e, G_vj⟩. The vectors are then added point by point,
in the order of the transposed sets, so the bits never change. Q_vj = ⟨μ_vj, G_vj⟩ is Σ_e t_ej ⟨x_e, G_vj⟩, plus what
the anchor adds with a prior.

Bytes per entry: x_e read, the vector written and read again (3 · 4 · d), and some tables of 4 · p; per set G, read once
(4 · p · d). To read G for every entry instead, as a sum over the transposed sets would, takes 4 · p · d per entry. The
vectors of all entries may be larger than the memory: they exist for a run of sets at a time.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops._triton.lanes import fold_products, lane_anchors
from fishergraph.ops._triton.launch import REGISTERS, members_of, numbers, tile
from fishergraph.ops._triton.members import load_live_row, load_members, load_row, store_row, tile_features, zeros
from fishergraph.ops.attend.torch import bounded, entry_terms
from fishergraph.ops.segment_sums.torch import sum_segments
from fishergraph.ops.segment_sums.triton import EntrySums, attention_sums, entry_runs
from fishergraph.ops.tensor_sets import TensorSets

# Sets that one program of `anchor_rows` sums over.
_ROWS = 64
# Bytes of the vectors of entries that exist at a time; half of those of the gradient that comes in, if that is more.
_RUN = 3 << 29


@triton.jit
def _attention(coefficients, totals, weights, point, entry, live, anchor, fresh, S: constexpr):
    """(t_ej)_j of one entry: the one given, or a exp(log α − log total); zeros for anchors of another tile."""
    result = ()
    weight = tl.load(weights + entry, mask=live, other=0.0).to(S.KIND) if S.WEIGHTED else tl.full([], 1.0, S.KIND)
    for j in tl.static_range(S.P):
        if S.BY_ENTRY:
            t = tl.load(coefficients + entry * S.N + anchor + j, mask=live, other=0.0)
        else:
            log = tl.load(coefficients + point * S.N + anchor + j, mask=live, other=-float("inf"))
            counts = (totals[j] > -float("inf")) & (weight > 0)
            t = tl.where(counts, weight * tl.exp(tl.where(counts, log - totals[j], 0.0)), 0.0)
        result = result + (tl.where(anchor + j >= fresh, t, 0.0),)
    return result


@triton.jit
def _load_rows(points, current, first, stop, features, MEMBERS: constexpr, S: constexpr):
    """One tile of the points of MEMBERS entries; zeros behind the last one."""
    rows = ()
    for k in tl.static_range(MEMBERS):
        rows = rows + (load_live_row(points[0], current[k], first + k < stop, features, points[1], S),)
    return rows


@triton.jit
def _spread_members(outs, points, coefs, members, bounds, slopes, totals, tile, fresh, DOTS: constexpr, S: constexpr):
    """Write Σ_j t_ej G_j of the entries of a set, or add it, and ⟨x_e, G_j⟩; for one tile of anchors."""
    MEMBERS: constexpr = 2
    buffer, dots, offset = outs
    features, anchor = tile
    indices, weights = members
    start, stop = bounds
    lanes, anchors = lane_anchors(S)
    current = load_members(indices, start, stop, MEMBERS)
    if DOTS:
        held = _load_rows(points, current, start, stop, features, MEMBERS, S)
    following = load_members(indices, start + MEMBERS, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        # Loads begin a round and stores end it: a load may not pass a store, and would wait for what is stored.
        t, vectors = (), ()
        for k in tl.static_range(MEMBERS):
            entry, live = first + k, first + k < stop
            t = t + _attention(coefs, totals, weights, current[k], entry, live, anchor, fresh, S)
        if DOTS:
            coming = _load_rows(points, following, first + MEMBERS, stop, features, MEMBERS, S)
        current = following
        following = load_members(indices, first + 2 * MEMBERS, stop, MEMBERS)
        for k in tl.static_range(MEMBERS):
            vector = t[k * S.P] * slopes[0]
            for j in tl.static_range(1, S.P):
                vector += t[k * S.P + j] * slopes[j]
            vectors = vectors + (vector,)
        for k in tl.static_range(MEMBERS):
            at, live = (first + k - offset) * S.D + features, first + k < stop
            inside = (features >= 0) & live if S.D % S.BLOCK == 0 else (features < S.D) & live
            vector = vectors[k]
            if fresh > 0:
                vector += tl.load(buffer + at, mask=inside, other=0.0)
            tl.store(buffer + at, vector, mask=inside)
        if DOTS:
            for k in tl.static_range(MEMBERS):
                products = fold_products((held[k],) * S.P, slopes, lanes, S)
                inside = (first + k < stop) & (anchors < S.P)
                tl.store(dots + (first + k) * S.N + anchor + anchors, products, mask=inside)
            held = coming


@triton.jit
def _spread_rows(
    outs, points, values, coefs, log_total, sets, parts, n_parts, n_entries, hub, DOTS: constexpr, S: constexpr
):
    """The entries of one set, or of one part of a hub, at all anchors; one tile of features per program."""
    buffer, dots, offset = outs
    part_first, part_last, part_row = parts
    indptr, indices, weights = sets
    item = tl.program_id(0).to(tl.int64)
    is_part = item < n_parts
    row = tl.load(part_row + item).to(tl.int64) if is_part else item - n_parts
    start = tl.load(part_first + item) if is_part else tl.load(indptr + row)
    stop = tl.load(part_last + item) if is_part else tl.load(indptr + row + 1)
    if stop - start > hub:
        return
    features = tl.program_id(1) * S.BLOCK + tile_features(S.BLOCK)
    dots += tl.program_id(1).to(tl.int64) * n_entries * S.N
    for fresh in range(0, S.N, S.P):
        anchor, slopes, totals = tl.minimum(fresh, S.N - S.P), (), ()
        for j in tl.static_range(S.P):
            slopes = slopes + (load_row(values, row * S.N + anchor + j, features, S.D, S),)
            totals = totals + (tl.load(log_total + row * S.N + anchor + j),)
        _spread_members(
            (buffer, dots, offset),
            points,
            coefs,
            (indices, weights),
            (start, stop),
            slopes,
            totals,
            (features, anchor),
            fresh,
            DOTS,
            S,
        )


@triton.jit
def _anchor_rows(inner, grad_w, w, grad, log_total, constants, n_sets, ROWS: constexpr, S: constexpr):
    """κ/total_vj ⟨w_j, G_vj⟩ of ROWS sets at one anchor, and Σ_v κ/total_vj G_vj; G is only read where that counts."""
    anchor = tl.program_id(1)
    first = tl.program_id(0).to(tl.int64) * ROWS
    log_prior = tl.log(tl.load(constants))
    for begin in tl.static_range(0, S.D, S.BLOCK):
        features = begin + tl.arange(0, S.BLOCK)
        sums = tl.zeros([S.BLOCK], S.KIND)
        origin = load_row(w, anchor, features, S.D, S)
        for row in range(first, tl.minimum(first + ROWS, n_sets)):
            at = row * S.N + anchor
            total = tl.load(log_total + at)
            # The mean of an empty set is the anchor.
            share = tl.where(total > -float("inf"), tl.exp(log_prior - total), 1.0)
            dot = tl.full([], 0.0, S.KIND)
            if share != 0:
                slope = share * load_row(grad, at, features, S.D, S)
                sums += slope
                dot = tl.sum(slope * origin, axis=0)
            tl.store(inner + at, dot if begin == 0 else dot + tl.load(inner + at))
        store_row(grad_w, tl.program_id(0) * S.N + anchor, features, sums, S)


def anchor_rows(anchors: Tensor, grad_means: Tensor, log_total: Tensor, prior: float) -> tuple[Tensor, Tensor]:
    """κ/total_vj ⟨w_j, G_vj⟩ (set, anchor), and the gradient of the anchors, Σ_v κ/total_vj G_vj (anchor, feature)."""
    n_sets, n_anchors, n_features = grad_means.shape
    new = {"dtype": log_total.dtype, "device": grad_means.device}
    blocks, (_, shape, warps) = (
        triton.cdiv(n_sets, _ROWS),
        tile(n_anchors, n_features, log_total.dtype, one_anchor=True),
    )
    inner, grad_w = torch.empty((n_sets, n_anchors), **new), torch.zeros((blocks, n_anchors, n_features), **new)
    if n_sets:
        inputs = (anchors, grad_means, log_total, numbers(prior, **new), n_sets)
        _anchor_rows[(blocks, n_anchors)](inner, grad_w, *inputs, ROWS=_ROWS, S=shape, num_warps=warps)
    return inner, grad_w.sum(dim=0)


@triton.jit
def _entry_distances(out, points, values, sets, n_entries, ENTRIES: constexpr, S: constexpr):
    """−‖x_u − μ_vj‖²/2 of the entries of one program (entry, anchor)."""
    indptr, owner, members = sets
    anchor = tl.minimum(tl.program_id(1) * S.P, S.N - S.P)
    first = tl.load(indptr)
    begin = tl.program_id(0).to(tl.int64) * ENTRIES
    for entry in range(begin, tl.minimum(begin + ENTRIES, n_entries)):
        u = tl.load(members + first + entry).to(tl.int64)
        v = tl.load(owner + entry)
        squares = zeros(tl.arange(0, S.BLOCK), S.P, S.KIND)
        for tile_start in tl.static_range(0, S.D, S.BLOCK):
            features = tile_start + tl.arange(0, S.BLOCK)
            point = load_row(points[0], u, features, points[1], S)
            new = ()
            for j in tl.static_range(S.P):
                value = load_row(values, v * S.N + anchor + j, features, S.D, S)
                new = new + (squares[j] + (point - value) * (point - value),)
            squares = new
        for j in tl.static_range(S.P):
            tl.store(out + entry * S.N + anchor + j, -0.5 * tl.sum(squares[j], axis=0))


def entry_distances(points: Tensor, values: Tensor, sets: TensorSets) -> Tensor:
    """−‖x_u − μ_vj‖²/2 of every entry (entry, anchor)."""
    _, n_anchors, n_features = values.shape
    out = torch.empty((sets.n_entries, n_anchors), dtype=values.dtype, device=values.device)
    (_, anchor_tiles), shape, warps = tile(n_anchors, n_features, values.dtype)
    if sets.n_entries:
        inputs = ((points, points.stride(0)), values, (sets.indptr, sets.rows, sets.indices), sets.n_entries)
        grid = (triton.cdiv(sets.n_entries, 8), anchor_tiles)
        _entry_distances[grid](out, *inputs, ENTRIES=8, S=shape, num_warps=warps)
    return out


# ------------------------------------------------------------------------------------------------ the host


def run_entries(values: Tensor) -> int:
    """The entries whose vectors exist at a time, beside gradients G (set, anchor, feature) of these means."""
    n_bytes = values.element_size()
    return max(_RUN, n_bytes * values.numel() // 2) // (n_bytes * values.shape[2])


def push(
    points: Tensor | None, values: Tensor, sets: TensorSets, coefficients: Tensor, log_total: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Σ_v Σ_j t_vuj G_vj of every point, (point, feature); with points ⟨x_e, G_vj⟩ of every entry, (entry, anchor).

    With `log_total` the coefficients are log α of the points, without it t of the entries.
    """
    (_, n_anchors, n_features), by_entry = values.shape, log_total is None
    weighted, new = sets.weights is not None, {"dtype": values.dtype, "device": values.device}
    options: dict[str, Any] = {"weighted": weighted and not by_entry, "by_entry": by_entry, "folded": True}
    (n_tiles, _), shape, warps = tile(n_anchors, n_features, values.dtype, **options)
    options = {"DOTS": points is not None, "S": shape, "num_warps": warps, "maxnreg": REGISTERS}
    dots = torch.empty((n_tiles, 0 if points is None else sets.n_entries, n_anchors), **new)
    rows, runs = (values, 0) if points is None else (points, points.stride(0)), entry_runs(sets, run_entries(values))
    sums = EntrySums(sets, n_features, values.dtype, at_once=len(runs) == 1)
    buffer = torch.empty((max((last - first for _, first, last in runs), default=0), n_features), **new)
    for block_rows, first, last in runs:
        block = sets if len(runs) == 1 else sets.block(block_rows)
        hubs, totals = block.hubs, coefficients if log_total is None else log_total[block_rows]
        inputs = (rows, values[block_rows], coefficients, totals, (block.indptr, *members_of(block, values)))
        parts = (hubs.part_first, hubs.part_last, hubs.part_row)
        if last > first:
            _spread_rows[(hubs.n_parts + block.n_sets, n_tiles)](
                (buffer, dots, first), *inputs, parts, hubs.n_parts, sets.n_entries, sets.hub, **options
            )
        sums.add(buffer, first, last)
    return sums.result(), dots[0] if n_tiles == 1 else dots.sum(dim=0)


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
    """∂L/∂(points, logs, weights or None, anchors) of `attend`; the means are not used."""
    grad_means = grad_means.to(logs.dtype).contiguous()
    inner, grad_anchors = anchor_rows(anchors, grad_means, log_total, prior)
    if by_entry:
        attention = torch.exp(bounded(logs - log_total[sets.rows]))
        if sets.weights is not None:
            attention = torch.where(sets.weights[:, None] > 0, sets.weights[:, None] * attention, 0.0)
        grad_points, dots = push(points, grad_means, sets, attention.contiguous())
        inner += sum_segments(attention * dots, sets.indptr)
    else:
        grad_points, dots = push(points, grad_means, sets, logs, log_total)
        inner += attention_sums(log_total, logs, sets, back=False, dots=dots)
    grad_weights = grad_logs = None
    if by_entry or need_weights:
        terms = entry_terms(logs, sets, by_entry, log_total, dots, inner, grad_mass)
        grad_weights = terms.sum(dim=1) if need_weights else None
        grad_logs = terms if sets.weights is None else sets.weights[:, None] * terms
    if not by_entry:
        back, entries = sets.transpose
        back = back.weighted(None if sets.weights is None else sets.weights[entries])
        of_entries = {"dots": dots, "entries": entries, "inner": inner, "grad_mass": grad_mass}
        grad_logs = attention_sums(logs, log_total, back, back=True, **of_entries)
    assert grad_logs is not None
    return grad_points, grad_logs, grad_weights, grad_anchors
