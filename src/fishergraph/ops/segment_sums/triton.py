"""Unnormalised sums over the members of a set on a GPU, which gradients consist of.

`Pull` reads the vector of a member once for all anchors, like the M-step (bytes per entry: 4 · d + 4 · p). On the
transposed graph it is the low-rank backward pass of a linear head. `attention_sums` reads 8 · p bytes of numbers that
exist already; `EntrySums` one vector of every entry (4 · d).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from fishergraph.ops._triton.launch import REGISTERS, members_of, tile
from fishergraph.ops._triton.members import load_live_row, load_members, load_row, store_row, tile_features
from fishergraph.ops._triton.members import pull as pull_members
from fishergraph.ops.tensor_sets import Hubs, TensorSets

Items = tuple[Tensor, Tensor, Tensor]  # the first entry of every program, the end of its entries, and its row


@triton.jit
def _sum_parts(out, parts, rows, offsets, width, slab, PARTS: constexpr, BLOCK: constexpr):
    """out[rows[h]] = Σ of the parts of hub h, PARTS at a time, in order, in float64; one slab per program of axis 2."""
    hub, columns = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first, last, lanes = tl.load(offsets + hub), tl.load(offsets + hub + 1), tl.arange(0, PARTS)
    before = tl.program_id(2).to(tl.int64) * tl.load(offsets + tl.num_programs(0))
    total = tl.zeros([BLOCK], tl.float64)
    for begin in range(first, last, PARTS):
        part = begin + lanes
        where = (before + part)[:, None] * width + columns[None, :]
        inside = (part < last)[:, None] & (columns < width)[None, :]
        total += tl.sum(tl.load(parts + where, mask=inside, other=0.0).to(tl.float64), axis=0)
    row = tl.program_id(2).to(tl.int64) * slab + tl.load(rows + hub).to(tl.int64)
    tl.store(out + row * width + columns, total.to(out.dtype.element_ty), mask=columns < width)


def sum_parts(out: Tensor, parts: Tensor, hubs: Hubs) -> None:
    """Write the hubs' rows of out (slab, row, width) from their parts (slab, part, width)."""
    width = out.shape[2]
    block = min(256, triton.next_power_of_2(width))
    grid = (hubs.n_hubs, triton.cdiv(width, block), out.shape[0])
    # A set of 10⁵ members has thousands of parts: one at a time, each load would wait for the one before.
    _sum_parts[grid](out, parts, hubs.rows, hubs.offsets, width, out.shape[1], PARTS=16, BLOCK=block)


@triton.jit
def _sum_entries(out, values, entries, items, offset, hub, PARTS: constexpr, ADD: constexpr, S: constexpr):
    """Σ_i values[entries_i − offset] over a range of entries of a row, (feature,); added to the row of out if ADD."""
    MEMBERS: constexpr = 4
    first, last, whole = items
    item = tl.program_id(0).to(tl.int64)
    start, stop = tl.load(first + item), tl.load(last + item)
    if not PARTS:
        if tl.load(whole + item + 1) - tl.load(whole + item) > hub:
            return
    if ADD and start >= stop:
        return
    features = tl.program_id(1) * S.BLOCK + tile_features(S.BLOCK)
    total = tl.zeros([S.BLOCK], S.KIND)
    if ADD:
        total = load_row(out, item, features, S.D, S)
    following = load_members(entries, start, stop, MEMBERS)
    for begin in range(start, stop, MEMBERS):
        current = following
        following = load_members(entries, begin + MEMBERS, stop, MEMBERS)
        for k in tl.static_range(MEMBERS):
            total += load_live_row(values, current[k] - offset, begin + k < stop, features, S.D, S)
    if S.D % S.BLOCK == 0:
        tl.store(out + item * S.D + features, total)
    else:
        tl.store(out + item * S.D + features, total, mask=features < S.D)


@triton.jit
def _range_ends(ends, first, last, entries, stop, n_rows, ROWS: constexpr):
    """Where in each range of entries the first one from `stop` on is: the entries of a range rise."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    low = tl.load(first + row, mask=row < n_rows, other=0)
    high = tl.load(last + row, mask=row < n_rows, other=0)
    while tl.max(high - low, axis=0) > 0:
        middle = (low + high) // 2
        before = (low < high) & (tl.load(entries + middle, mask=low < high, other=0) < stop)
        high = tl.where(before | (low >= high), high, middle)
        low = tl.where(before, middle + 1, low)
    tl.store(ends + row, low, mask=row < n_rows)


class EntrySums:
    """Σ over the entries of every point of a vector of the entry, (point, feature).

    The vectors come in runs of entries, in order: those of all entries together may be larger than the memory.
    """

    def __init__(self, sets: TensorSets, n_features: int, kind: torch.dtype, *, at_once: bool):
        self.back, self.entries = sets.transpose
        self.at_once, hubs = at_once, self.back.hubs
        self.shape = tile(1, n_features, kind).shape
        new: dict[str, Any] = {"dtype": kind, "device": self.entries.device}
        make = torch.empty if at_once else torch.zeros
        self.out, self.parts = make((self.back.n_sets, n_features), **new), make((hubs.n_parts, n_features), **new)
        indptr = self.back.indptr
        # [first, last) of what is left of every range, and the offsets of the whole lists
        self.ranges = [(indptr[:-1], indptr[1:], indptr), (hubs.part_first, hubs.part_last, indptr)]

    def add(self, values: Tensor, first: int, last: int) -> None:
        """Add the vectors of the entries first … last − 1."""
        shape, n_tiles = self.shape, triton.cdiv(self.shape.D, self.shape.BLOCK)
        for is_parts, out in enumerate((self.out, self.parts)):
            if not len(out):
                continue
            start, stop, whole = self.ranges[is_parts]
            end = stop if self.at_once else torch.empty_like(stop)
            if not self.at_once:
                grid = (triton.cdiv(len(out), 128),)
                _range_ends[grid](end, start, stop, self.entries, last, len(out), ROWS=128)
            flags = {"PARTS": bool(is_parts), "ADD": not self.at_once, "S": shape, "num_warps": 1}
            inputs = (out, values, self.entries, (start, end, whole), first, self.back.hub)
            _sum_entries[(len(out), n_tiles)](*inputs, **flags)
            self.ranges[is_parts] = (end, stop, whole)

    def result(self) -> Tensor:
        """The sums of all entries."""
        if self.back.hubs.n_hubs:
            sum_parts(self.out[None], self.parts[None], self.back.hubs)
        return self.out


def entry_runs(sets: TensorSets, most: int) -> list[tuple[slice, int, int]]:
    """Runs of sets with up to `most` entries, or one set, and their first and last entries; without a wait if one."""
    if sets.n_entries <= most:
        return [(slice(0, sets.n_sets), 0, sets.n_entries)]
    marks = torch.arange(most, sets.n_entries + most, most, device=sets.device)
    stops = (torch.searchsorted(sets.indptr, marks, right=True) - 1).tolist()
    rows, first = [0], 0
    for stop in stops:
        first = min(max(stop, first + 1), sets.n_sets)
        if first > rows[-1]:
            rows.append(first)
    borders = sets.indptr[torch.tensor(rows, device=sets.device)].tolist()
    return [(slice(*rows[k : k + 2]), *borders[k : k + 2]) for k in range(len(rows) - 1)]


def merge_parts(parts: Tensor, hubs: Hubs) -> Tensor:
    """The sums of the hubs, (hub, …), from those of their parts, (part, …), added in order."""
    out = torch.empty((hubs.n_hubs, *parts.shape[1:]), dtype=parts.dtype, device=parts.device)
    order = torch.arange(hubs.n_hubs, device=parts.device)
    sum_parts(out.view(1, hubs.n_hubs, -1), parts.view(1, hubs.n_parts, -1), hubs._replace(rows=order))
    return out


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
def _attention_sums(
    out,
    dots,
    entries,
    fixed,
    gathered,
    of_sets,
    items,
    members,
    hub,
    P,
    BLOCK_E: constexpr,
    BLOCK_P: constexpr,
    WEIGHTED: constexpr,
    PARTS: constexpr,
    BACK: constexpr,
    HAS_DOTS: constexpr,
    HAS_MASS: constexpr,
):
    """Σ_e t_ej dot_ej of a set; of a point, if BACK, Σ_v t_vuj (dot_vuj − Q_vj) + a_vu α_uj g_vj. (anchor,).

    t = a exp(log α − log total); `fixed` belongs to the row, `gathered` to its members: log α and log total, or the
    other way round.
    """
    first, last, owner = items
    indices, weights = members
    inner, grad_mass = of_sets
    item = tl.program_id(0).to(tl.int64)
    anchors = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    row = tl.load(owner + item) if PARTS else item
    start, stop = tl.load(first + item), tl.load(last + item)
    if (not PARTS) and stop - start > hub:
        return
    mine = tl.load(fixed + row * P + anchors, mask=anchors < P, other=0.0)[None, :]
    kind = out.dtype.element_ty
    sums = tl.zeros([BLOCK_E, BLOCK_P], kind)
    for begin in range(start, stop, BLOCK_E):
        entry = begin + tl.arange(0, BLOCK_E)
        live = entry < stop
        mask = live[:, None] & (anchors < P)[None, :]
        where = tl.load(indices + entry, mask=live, other=0).to(tl.int64)[:, None] * P + anchors[None, :]
        theirs = tl.load(gathered + where, mask=mask, other=0.0)
        logs, total = (mine, theirs) if BACK else (theirs, mine)
        weight = tl.load(weights + entry, mask=live, other=0.0).to(kind)[:, None] if WEIGHTED else 1.0
        counts = mask & (total > -float("inf"))
        counts = counts & (weight > 0) if WEIGHTED else counts
        terms = tl.where(counts, weight * tl.exp(tl.where(counts, logs - total, 0.0)), 0.0)
        value = tl.zeros([BLOCK_E, BLOCK_P], kind)
        if HAS_DOTS:
            number = tl.load(entries + entry, mask=live, other=0) if BACK else entry
            value += tl.load(dots + number[:, None] * P + anchors[None, :], mask=mask, other=0.0)
        if BACK:
            value -= tl.load(inner + where, mask=mask, other=0.0)
        terms *= value
        if HAS_MASS:
            terms += tl.where(counts, weight * tl.exp(logs), 0.0) * tl.load(grad_mass + where, mask=mask, other=0.0)
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
            _pull_rows[(len(out), *self.grid)](*inputs, self.scale, self.sets.hub, PARTS=parts, **self.options)
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
        return merge_parts(parts, hubs)

    def all(self) -> Tensor:
        """The sums of all sets."""
        out = self.rows(slice(0, self.sets.n_sets))
        if self.sets.hubs.n_hubs:
            out[self.sets.hubs.rows] = self.hubs()
        return out


def attention_sums(
    fixed: Tensor,
    gathered: Tensor,
    sets: TensorSets,
    *,
    back: bool,
    dots: Tensor | None = None,
    entries: Tensor | None = None,
    inner: Tensor | None = None,
    grad_mass: Tensor | None = None,
) -> Tensor:
    """Σ_e t_ej dot_ej of the sets, (set, anchor); `back` for transposed sets, Σ_v t_vuj (dot_vuj − Q_vj) + a α_uj g_vj.

    `fixed` is log total and `gathered` log α; on transposed sets the other way round. The dots, (entry, anchor), are in
    the order of the sets that were transposed. Hubs part by part, added in order.
    """
    n_anchors, hubs = fixed.shape[1], sets.hubs
    block = min(16, triton.next_power_of_2(n_anchors))
    options = {"BLOCK_E": 32, "BLOCK_P": block, "WEIGHTED": sets.weights is not None, "num_warps": 1}
    flags = {"BACK": back, "HAS_DOTS": dots is not None, "HAS_MASS": grad_mass is not None}
    # Tensors that are not read are replaced by any tensor.
    dots, of_sets = fixed if dots is None else dots, tuple(fixed if t is None else t for t in (inner, grad_mass))
    tensors = (dots, sets.indices if entries is None else entries, fixed, gathered, of_sets)

    def launch(n_items: int, items: Items, parts: bool) -> Tensor:
        out = torch.empty((n_items, n_anchors), dtype=fixed.dtype, device=fixed.device)
        if n_items:
            inputs = (out, *tensors, items, members_of(sets, fixed), sets.hub, n_anchors)
            _attention_sums[(n_items, triton.cdiv(n_anchors, block))](*inputs, PARTS=parts, **flags, **options)
        return out

    out = launch(sets.n_sets, (sets.indptr, sets.indptr[1:], sets.indptr), False)
    if hubs.n_hubs:
        parts = launch(hubs.n_parts, (hubs.part_first, hubs.part_last, hubs.part_row), True)
        sum_parts(out.view(1, sets.n_sets, -1), parts.view(1, hubs.n_parts, -1), hubs)
    return out
