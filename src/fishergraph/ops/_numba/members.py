"""Compiled functions on the members of one multiset: their coefficients in the M-step, sums and inner products.

A sum over members holds a tile of features of four anchors in registers while it runs over a chunk of members. The
sum of a chunk is one chain in the order of the members, whatever the width of the registers. The sums of the chunks of
a long multiset are added in float64, because one chain of 10⁷ float32 additions is off by percents. Every machine gives
the same bits.

The coefficients of the M-step are a·α, as long as the mass of every anchor is a normal number. Otherwise, and from the
second iteration on, they are a softmax of the logs over the multiset.
"""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from fishergraph._compile import inlined, inner, inner_sum
from fishergraph.device import LINE
from fishergraph.ops._numba.codegen import INDEX, Members, Rows, as_index, each_entry, prefetch, vector_tools, widened

# Two vectors of features times four anchors: 8 of 32 registers with AVX-512, 8 of 16 with half the lanes.
LANES = 16 if llvm.get_host_cpu_features().get("avx512f") else 8
WIDE, NARROW = 2 * LANES, 4
# Bytes of the members of one pass over the tiles: they stay in the second-level cache.
GROUP = 65536
# A multiset of up to CHAIN members is summed in one chain of additions, a longer one in chunks. Chunks of 32 equal
# members, the worst case in float32, are off by 5e-7; one chain of 10⁷ is off by percents.
CHAIN, CHUNK = 4096, 32
# Chunks of the masses are half as long, because the errors of both meet in the mean.
MASS_CHUNK = CHUNK // 2
# How far ahead points are prefetched, in bytes of points. 64 kB measure alike, 8 kB a fifth slower.
AHEAD = 32768
# How many entries ahead responsibilities are prefetched.
_ALPHA_AHEAD = 64


@intrinsic
def _prefetch(typingctx, array, row, offset):
    """Prefetch the cache line of element `offset` of a row."""

    def codegen(context, builder, signature, args):
        rows = Rows(context, builder, signature.args[0], args[0])
        prefetch(builder, rows.at(as_index(builder, args[1]), args[2]))
        return context.get_dummy_value()

    return types.void(array, row, types.intp), codegen


@inner
def prefetch_member(points, indices, entry):
    """Prefetch the point of an entry, if there is such an entry."""
    if entry < len(indices):
        for k in range(0, points.strides[0] // points.itemsize, LINE // points.itemsize):
            _prefetch(points, indices[entry], k)  # pyright: ignore


def rows_ahead(points: np.ndarray) -> int:
    """How many rows ahead of the current one are AHEAD bytes."""
    return AHEAD // max(points.strides[0], 1) + 1


@inner
def longest_row(indptr):
    """The largest number of entries of a row."""
    longest = 0
    for v in range(len(indptr) - 1):
        longest = max(longest, indptr[v + 1] - indptr[v])
    return longest


# ------------------------------------------------------------------------------------- sums over members


@intrinsic(prefer_literal=True)
def _sum_tile(typingctx, job, anchor, column, anchors, vectors, lanes):
    """sums_jk += Σ_e c_ej (points_ejk − centre_jk) for a few anchors j and a tile of features k.

    job is (points, indices, c, start, stop, begin, sums, wide, long, centre, ahead). The entry `begin` starts the sums
    at zero. If `long`, every call starts at zero and adds to `wide`, in float64, instead. Entry e reads the row
    e − begin of c. Points of two axes are common to the anchors, of three belong to them; likewise a centre of one axis
    or two; a centre of None is zero. With each entry the tile prefetches its own features of the entry `ahead` of it: a
    core drops prefetches of all lines of a multiset at once.
    """
    n_anchors, n_lanes, points = anchors.literal_value, lanes.literal_value, job.types[0]
    width, per_line = vectors.literal_value * n_lanes, LINE * 8 // points.dtype.bitwidth
    tile = [(a, k) for a in range(n_anchors) for k in range(0, width, n_lanes)]
    lines = [(a, k) for a in range(n_anchors if points.ndim == 3 else 1) for k in range(0, width, per_line)]

    def codegen(context, builder, signature, args):
        kinds, values = signature.args[0].types, cgutils.unpack_tuple(builder, args[0])
        x, c, out, total = (Rows(context, builder, kinds[i], values[i]) for i in (0, 2, 6, 7))
        members = Members(context, builder, kinds[1], values[1])
        start, stop, begin, long, ahead = *values[3:6], values[8], values[10]
        anchor, column, zero = args[1], args[2], INDEX(0)
        fresh = builder.or_(long, builder.icmp_signed("==", start, begin))
        load, store, broadcast, fma = vector_tools(builder, x.data.type.pointee, n_lanes)
        load_wide, store_wide, _, _ = vector_tools(builder, total.data.type.pointee, n_lanes)

        def spread(first, step, offsets=tile):
            """Pointers to the tile that begins at `first`; the rows of two anchors are `step` apart."""
            return [builder.gep(first, [builder.add(builder.mul(step, INDEX(a)), INDEX(k))]) for a, k in offsets]

        step = x.length if kinds[0].ndim == 3 else zero
        begin_x = builder.add(builder.mul(anchor, step), column)
        targets = spread(out.at(anchor, column), out.length)
        centres = []
        if kinds[9] != types.none:
            centre, per_anchor = Rows(context, builder, kinds[9], values[9]), kinds[9].ndim == 2
            centres = spread(centre.at(anchor if per_anchor else zero, column), centre.length if per_anchor else zero)
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
                prefetch(builder, pointer)
            first = c.at(builder.sub(entry, begin), anchor)
            factors = [broadcast(builder.load(builder.gep(first, [INDEX(a)]))) for a in range(n_anchors)]
            for t, pointer in enumerate(spread(x.at(members.of(entry), begin_x), step)):
                value = builder.fsub(load(pointer), load(centres[t])) if centres else load(pointer)
                builder.store(fma(factors[tile[t][0]], value, builder.load(registers[t])), registers[t])
        with builder.if_else(long) as (in_chunks, at_once):
            with in_chunks:
                for register, pointer in zip(registers, spread(total.at(anchor, column), total.length), strict=True):
                    chunk = widened(builder, builder.load(register))
                    store_wide(builder.fadd(load_wide(pointer), chunk), pointer)
            with at_once:
                for register, target in zip(registers, targets, strict=True):
                    store(builder.load(register), target)
        return context.get_dummy_value()

    return types.void(job, types.intp, types.intp, anchors, vectors, lanes), codegen


@inlined
def _sum_columns(job, n_anchors, n_features):
    """`_sum_tile` over all anchors and features: wide tiles, then narrow ones, then single features."""
    j = 0
    while j < n_anchors:
        four, k = j + 4 <= n_anchors, 0
        while k + WIDE <= n_features:
            if four:
                _sum_tile(job, j, k, 4, 2, LANES)  # pyright: ignore
            else:
                _sum_tile(job, j, k, 1, 2, LANES)  # pyright: ignore
            k += WIDE
        while k + NARROW <= n_features:
            if four:
                _sum_tile(job, j, k, 4, 1, NARROW)  # pyright: ignore
            else:
                _sum_tile(job, j, k, 1, 1, NARROW)  # pyright: ignore
            k += NARROW
        while k < n_features:
            if four:
                _sum_tile(job, j, k, 4, 1, 1)  # pyright: ignore
            else:
                _sum_tile(job, j, k, 1, 1, 1)  # pyright: ignore
            k += 1
        j += 4 if four else 1


@inlined
def sum_members(points, indices, start, stop, c, sums, wide, centre):
    """sums_j = Σ_i c_ij (x_i − centre_j) over the members start … stop − 1 of one multiset.

    points (point, feature), or (point, anchor, feature) if each anchor has its own; centre None, (feature,) or
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
        job = (points, indices, c, first, last, start, sums, wide, long, centre, ahead)
        _sum_columns(job, sums.shape[0], sums.shape[1])
    if long:
        for j in range(sums.shape[0]):
            for k in range(sums.shape[1]):
                sums[j, k] = wide[j, k]


# ------------------------------------------------------------------------------ coefficients of the M-step


@intrinsic(prefer_literal=True)
def _weigh_tile(typingctx, alpha, indices, by_entry, weights, step, start, stop, c, mass, anchor, lanes):
    """c_ij = a_i α_ij and mass_j = Σ_i c_ij for the anchors anchor … anchor + lanes − 1."""
    n_lanes = lanes.literal_value

    def codegen(context, builder, signature, args):
        kinds = signature.args
        source, target, total = (Rows(context, builder, kinds[i], args[i]) for i in (0, 7, 8))
        members = Members(context, builder, kinds[1], args[1])
        weight_of = context.make_array(kinds[3])(context, builder, args[3]).data
        _, _, by_entry, _, step, start, stop, _, _, anchor, _ = args
        real = source.data.type.pointee
        load, store, broadcast, _ = vector_tools(builder, real, n_lanes)
        register = cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(real, n_lanes), None))
        with each_entry(builder, start, stop) as entry:
            prefetch(builder, source.at(members.after(entry, INDEX(_ALPHA_AHEAD)), anchor))
            row = builder.select(by_entry, entry, members.of(entry))
            weight = builder.load(builder.gep(weight_of, [builder.mul(entry, step)]))
            value = builder.fmul(broadcast(weight), load(source.at(row, anchor)))
            store(value, target.at(builder.sub(entry, start), anchor))
            builder.store(builder.fadd(builder.load(register), value), register)
        store(builder.load(register), total.at(INDEX(0), anchor))
        return context.get_dummy_value()

    integer = types.intp
    inputs = (alpha, indices, types.boolean, weights, integer, integer, integer, c, mass, integer, lanes)
    return types.void(*inputs), codegen


@intrinsic(prefer_literal=True)
def _divide_tile(typingctx, c, n_members, totals, anchor, lanes):
    """c_ij /= totals_j for the anchors anchor … anchor + lanes − 1."""
    n_lanes = lanes.literal_value

    def codegen(context, builder, signature, args):
        rows, total = (Rows(context, builder, signature.args[i], args[i]) for i in (0, 2))
        load, store, *_ = vector_tools(builder, rows.data.type.pointee, n_lanes)
        divisor = load(total.at(INDEX(0), args[3]))
        with cgutils.for_range(builder, args[1]) as loop:
            pointer = rows.at(loop.index, args[3])
            store(builder.fdiv(load(pointer), divisor), pointer)
        return context.get_dummy_value()

    return types.void(c, types.intp, totals, types.intp, lanes), codegen


@inlined
def _add_in_chunks(c, n_members, mass):
    """mass_j = Σ_i c_ij of many members: each chunk is one chain of additions, and the chunks add in float64."""
    for j in range(len(mass)):
        total = 0.0
        for first in range(0, n_members, MASS_CHUNK):
            chunk = mass.dtype.type(0)
            for i in range(first, min(first + MASS_CHUNK, n_members)):
                chunk += c[np.uintp(i), np.uintp(j)]  # unsigned: no time goes into checks for negative indices
            total += chunk
        mass[j] = total


@inlined
def plain_coefficients(alpha, by_entry, indices, weights, step, start, stop, c, mass):
    """c_ij = a_i α_ij of the members of one multiset, and their sum over the members."""
    j = 0
    while j + 4 <= len(mass):
        _weigh_tile(alpha, indices, by_entry, weights, step, start, stop, c, mass, j, 4)  # pyright: ignore
        j += 4
    while j < len(mass):
        _weigh_tile(alpha, indices, by_entry, weights, step, start, stop, c, mass, j, 1)  # pyright: ignore
        j += 1
    if stop - start > CHAIN:
        _add_in_chunks(c, stop - start, mass)


@inlined
def normalise(c, n_members, totals):
    """c_ij /= total_j, the attention: it sums to one over the members; NaN for an empty total."""
    j = 0
    while j + 4 <= len(totals):
        _divide_tile(c, n_members, totals, j, 4)  # pyright: ignore
        j += 4
    while j < len(totals):
        _divide_tile(c, n_members, totals, j, 1)  # pyright: ignore
        j += 1


@inlined
def softmax_coefficients(logs, weights, step, start, stop, prior, c, totals, shift, anchor_c, mass):
    """c_ij = a_i exp(log α_ij − h_j) with h_j the largest log of the multiset: nothing underflows.

    shift[j] is h_j and totals[j] the denominator in the same units; the anchor is one more member, with weight κ.
    """
    for j in range(c.shape[1]):
        highest = np.log(prior)  # −inf without a prior
        for i in range(stop - start):
            if weights[(start + i) * step] > 0:
                highest = max(highest, logs[i, j])
        if highest == -np.inf:  # no member: −∞ − −∞ would add a NaN, and a NaN has to propagate
            highest = prior - prior
        anchor_c[j] = np.exp(np.log(prior) - highest) if prior > 0 else prior
        total, sum_mass, wide_total, wide_mass = anchor_c[j], prior - prior, 0.0, 0.0
        chunk = CHAIN if stop - start <= CHAIN else CHUNK
        for i in range(stop - start):
            weight = weights[(start + i) * step]
            c[i, j] = weight * np.exp(logs[i, j] - highest) if weight > 0 else weight
            total += c[i, j]
            sum_mass += weight * np.exp(logs[i, j])
            if i % chunk == chunk - 1:
                wide_total, wide_mass = wide_total + total, wide_mass + sum_mass
                total, sum_mass = prior - prior, prior - prior
        totals[j], shift[j], mass[j] = wide_total + total, highest, wide_mass + sum_mass


@inlined
def add_anchors(means, totals, anchor_c, anchors):
    """μ_j += c_j w_j / total_j with c_j the coefficient of the anchor; the anchor itself if nothing was summed."""
    for j in range(anchors.shape[0]):
        row, anchor, total, coefficient = means[j], anchors[j], totals[j], anchor_c[j]
        if total <= 0:
            for k in range(len(row)):
                row[k] = anchor[k]
        elif coefficient > 0:
            for k in range(len(row)):
                row[k] += coefficient / total * anchor[k]


# ----------------------------------------------------------------------------------------- inner products


@inner_sum
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


@inner_sum
def four_moments(x, centres, rows, j):
    """⟨x − c_j, rows_j⟩ … ⟨x − c_{j+3}, rows_{j+3}⟩."""
    one = two = three = four = x[0] - x[0]
    for k in range(len(x)):
        one += (x[k] - centres[j, k]) * rows[j, k]
        two += (x[k] - centres[j + 1, k]) * rows[j + 1, k]
        three += (x[k] - centres[j + 2, k]) * rows[j + 2, k]
        four += (x[k] - centres[j + 3, k]) * rows[j + 3, k]
    return one, two, three, four


@inner_sum
def four_distances(x, rows, j):
    """‖x − rows_j‖² … ‖x − rows_{j+3}‖²."""
    one = two = three = four = x[0] - x[0]
    for k in range(len(x)):
        one += (x[k] - rows[j, k]) * (x[k] - rows[j, k])
        two += (x[k] - rows[j + 1, k]) * (x[k] - rows[j + 1, k])
        three += (x[k] - rows[j + 2, k]) * (x[k] - rows[j + 2, k])
        four += (x[k] - rows[j + 3, k]) * (x[k] - rows[j + 3, k])
    return one, two, three, four


@inner_sum
def dot(x, y):
    """⟨x, y⟩."""
    total = x[0] - x[0]
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@inner_sum
def moment(x, centre, y):
    """⟨x − c, y⟩."""
    total = x[0] - x[0]
    for k in range(len(x)):
        total += (x[k] - centre[k]) * y[k]
    return total


@inner_sum
def squared_distance(x, y):
    """‖x − y‖²."""
    square = x[0] - x[0]
    for k in range(len(x)):
        difference = x[k] - y[k]
        square += difference * difference
    return square
