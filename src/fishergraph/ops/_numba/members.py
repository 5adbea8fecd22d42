"""The compiled leaves of the CPU engine: sums and products over the members of one multiset, in vector registers.

A sum over members holds a tile of features of four anchors in registers while it runs over a chunk of members. The
sum of a chunk is one chain in the order of the members, whatever the width of the registers. The sums of the chunks of
a long multiset are added in float64, because one chain of 10⁷ float32 additions is off by percents. Every machine gives
the same bits.
"""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from fishergraph._compile import inlined, leaf, leaf_sum
from fishergraph.device import LINE
from fishergraph.ops._numba.codegen import INDEX, Members, Rows, as_index, ask_for, each_entry, vector_tools, widened

# Two vectors of features times four anchors: 8 of 32 registers with AVX-512, 8 of 16 with half the lanes.
LANES = 16 if llvm.get_host_cpu_features().get("avx512f") else 8
WIDE, NARROW = 2 * LANES, 4
# Bytes of the members of one pass over the tiles: they stay in the second cache.
GROUP = 65536
# A multiset of up to so many members is summed in one chain of additions, a longer one in chunks. Chunks of 32 equal
# members, the worst case in float32, are off by 5e-7; one chain of 10⁷ is off by percents.
CHAIN, CHUNK = 4096, 32
# How far ahead of the current member points are asked for, in bytes of points. 64 kB measure alike, 8 kB a fifth more.
AHEAD = 32768


@intrinsic
def _prefetch(typingctx, array, row, offset):
    """Ask for the cache line of element `offset` of a row without waiting for it."""

    def codegen(context, builder, signature, args):
        rows = Rows(context, builder, signature.args[0], args[0])
        ask_for(builder, rows.at(as_index(builder, args[1]), args[2]))
        return context.get_dummy_value()

    return types.void(array, row, types.intp), codegen


@leaf
def prefetch_member(points, indices, entry):
    """Ask for the point of an entry, if there is such an entry."""
    if entry < len(indices):
        for k in range(0, points.strides[0] // points.itemsize, LINE // points.itemsize):
            _prefetch(points, indices[entry], k)  # pyright: ignore


def rows_ahead(points: np.ndarray) -> int:
    """How many rows ahead of the current one are AHEAD bytes."""
    return AHEAD // max(points.strides[0], 1) + 1


@intrinsic(prefer_literal=True)
def _sum_tile(
    typingctx, points, indices, shares, start, stop, begin, sums, wide, long, centre, ahead, anchor, column, anchors,
    vectors, lanes,
):  # fmt: skip
    """sums_jk += Σ_e shares_ej (points_ejk − centre_jk) for a few anchors j and a tile of features k.

    The entry `begin` starts the sums at zero. If `long`, every call starts at zero and adds to `wide`, in float64,
    instead. Entry e reads the row e − begin of the shares. Points of two axes are shared by the anchors, of three
    belong to them; likewise a centre of one axis or two; a centre of None is zero.
    With each entry the tile asks for its own features of the entry `ahead` of it: a few lines at a time keep the memory
    busy, where all the lines of a multiset at once would be more than a core can wait for, and are dropped.
    """
    n_anchors, n_lanes = anchors.literal_value, lanes.literal_value
    width, per_line = vectors.literal_value * n_lanes, LINE * 8 // points.dtype.bitwidth
    tile = [(a, k) for a in range(n_anchors) for k in range(0, width, n_lanes)]
    lines = [(a, k) for a in range(n_anchors if points.ndim == 3 else 1) for k in range(0, width, per_line)]

    def codegen(context, builder, signature, args):
        kinds = signature.args
        x, share, out, total = (Rows(context, builder, kinds[i], args[i]) for i in (0, 2, 6, 7))
        members = Members(context, builder, kinds[1], args[1])
        start, stop, begin, long, ahead, anchor, column = *args[3:6], args[8], *args[10:13]
        fresh = builder.or_(long, builder.icmp_signed("==", start, begin))
        load, store, broadcast, fma = vector_tools(builder, x.data.type.pointee, n_lanes)
        load_wide, store_wide, _, _ = vector_tools(builder, total.data.type.pointee, n_lanes)

        def spread(first, step, offsets=tile):
            """Pointers to the tile that begins at `first`; the next anchor's part is `step` further."""
            return [builder.gep(first, [builder.add(builder.mul(step, INDEX(a)), INDEX(k))]) for a, k in offsets]

        none, own_points = INDEX(0), kinds[0].ndim == 3
        step = x.length if own_points else none
        begin_x = builder.add(builder.mul(anchor, step), column)
        targets = spread(out.at(anchor, column), out.length)
        centres = []
        if kinds[9] != types.none:
            middle = Rows(context, builder, kinds[9], args[9])
            own = kinds[9].ndim == 2
            centres = spread(middle.at(anchor if own else none, column), middle.length if own else none)
        registers = [cgutils.alloca_once(builder, ir.VectorType(x.data.type.pointee, n_lanes)) for _ in tile]
        with builder.if_else(fresh) as (at_zero, later):
            with at_zero:
                for register in registers:
                    builder.store(ir.Constant(register.type.pointee, None), register)
            with later:
                for register, target in zip(registers, targets, strict=True):
                    builder.store(load(target), register)
        with each_entry(builder, start, stop) as entry:
            for pointer in spread(x.at(members.after(entry, ahead), begin_x), step, lines):
                ask_for(builder, pointer)
            given = share.at(builder.sub(entry, begin), anchor)
            factors = [broadcast(builder.load(builder.gep(given, [INDEX(a)]))) for a in range(n_anchors)]
            for t, pointer in enumerate(spread(x.at(members.of(entry), begin_x), step)):
                value = builder.fsub(load(pointer), load(centres[t])) if centres else load(pointer)
                builder.store(fma(factors[tile[t][0]], value, builder.load(registers[t])), registers[t])
        with builder.if_else(long) as (in_chunks, at_once):
            with in_chunks:
                for register, pointer in zip(registers, spread(total.at(anchor, column), total.length), strict=True):
                    part = widened(builder, builder.load(register))
                    store_wide(builder.fadd(load_wide(pointer), part), pointer)
            with at_once:
                for register, target in zip(registers, targets, strict=True):
                    store(builder.load(register), target)
        return context.get_dummy_value()

    integer = types.intp
    given = (points, indices, shares, integer, integer, integer, sums, wide, types.boolean, centre)
    return types.void(*given, integer, integer, integer, anchors, vectors, lanes), codegen


@inlined
def _sum_columns(x, indices, shares, start, stop, begin, sums, wide, long, centre, ahead):
    """`_sum_tile` over all anchors and features: wide tiles, then narrow ones, then single features."""
    n_anchors, n_features = sums.shape
    j = 0
    while j < n_anchors:
        four, k = j + 4 <= n_anchors, 0
        while k + WIDE <= n_features:
            if four:
                _sum_tile(x, indices, shares, start, stop, begin, sums, wide, long, centre, ahead, j, k, 4, 2, LANES)  # pyright: ignore
            else:
                _sum_tile(x, indices, shares, start, stop, begin, sums, wide, long, centre, ahead, j, k, 1, 2, LANES)  # pyright: ignore
            k += WIDE
        while k + NARROW <= n_features:
            if four:
                _sum_tile(x, indices, shares, start, stop, begin, sums, wide, long, centre, ahead, j, k, 4, 1, NARROW)  # pyright: ignore
            else:
                _sum_tile(x, indices, shares, start, stop, begin, sums, wide, long, centre, ahead, j, k, 1, 1, NARROW)  # pyright: ignore
            k += NARROW
        while k < n_features:
            if four:
                _sum_tile(x, indices, shares, start, stop, begin, sums, wide, long, centre, ahead, j, k, 4, 1, 1)  # pyright: ignore
            else:
                _sum_tile(x, indices, shares, start, stop, begin, sums, wide, long, centre, ahead, j, k, 1, 1, 1)  # pyright: ignore
            k += 1
        j += 4 if four else 1


@inlined
def sum_members(points, indices, start, stop, shares, sums, wide, centre):
    """sums_j = Σ_i shares_ij (x_i − c_j) over the members start … stop − 1 of one multiset.

    points (point, feature), or (point, anchor, feature) where each anchor has its own; centre None, (feature,) or
    (anchor, feature). `wide` is scratch of the shape of the sums, in float64.
    """
    if start == stop:
        sums[:] = 0
    stride, long = max(points.strides[0], 1), stop - start > CHAIN
    ahead, group = AHEAD // stride + 1, CHUNK if long else GROUP // stride + 1
    if long:
        for j in range(sums.shape[0]):
            for k in range(sums.shape[1]):
                wide[j, k] = 0
    for first in range(start, stop, group):
        last = min(first + group, stop)
        _sum_columns(points, indices, shares, first, last, start, sums, wide, long, centre, ahead)
    if long:
        for j in range(sums.shape[0]):
            for k in range(sums.shape[1]):
                sums[j, k] = wide[j, k]


@leaf_sum
def four_products(x, centre, rows, j):
    """⟨x − c, rows_j⟩ … ⟨x − c, rows_{j+3}⟩."""
    one = two = three = four = x[0] - x[0]
    for k in range(len(x)):
        value = x[k] - centre[k]
        one += value * rows[j, k]
        two += value * rows[j + 1, k]
        three += value * rows[j + 2, k]
        four += value * rows[j + 3, k]
    return one, two, three, four


@leaf_sum
def four_moments(x, centres, rows, j):
    """⟨x − c_j, rows_j⟩ … ⟨x − c_{j+3}, rows_{j+3}⟩."""
    one = two = three = four = x[0] - x[0]
    for k in range(len(x)):
        one += (x[k] - centres[j, k]) * rows[j, k]
        two += (x[k] - centres[j + 1, k]) * rows[j + 1, k]
        three += (x[k] - centres[j + 2, k]) * rows[j + 2, k]
        four += (x[k] - centres[j + 3, k]) * rows[j + 3, k]
    return one, two, three, four


@leaf_sum
def four_distances(x, rows, j):
    """‖x − rows_j‖² … ‖x − rows_{j+3}‖²."""
    one = two = three = four = x[0] - x[0]
    for k in range(len(x)):
        one += (x[k] - rows[j, k]) * (x[k] - rows[j, k])
        two += (x[k] - rows[j + 1, k]) * (x[k] - rows[j + 1, k])
        three += (x[k] - rows[j + 2, k]) * (x[k] - rows[j + 2, k])
        four += (x[k] - rows[j + 3, k]) * (x[k] - rows[j + 3, k])
    return one, two, three, four


@leaf_sum
def dot(x, y):
    """⟨x, y⟩."""
    total = x[0] - x[0]
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@leaf_sum
def moment(x, centre, y):
    """⟨x − c, y⟩."""
    total = x[0] - x[0]
    for k in range(len(x)):
        total += (x[k] - centre[k]) * y[k]
    return total


@leaf_sum
def squared_distance(x, y):
    """‖x − y‖²."""
    square = x[0] - x[0]
    for k in range(len(x)):
        difference = x[k] - y[k]
        square += difference * difference
    return square
