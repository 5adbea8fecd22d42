"""The compiled leaves that give the members of one multiset their shares, four anchors to a vector register."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from fishergraph._compile import inlined
from fishergraph.ops._numba.codegen import INDEX, Members, Rows, ask_for, vector_tools, widened
from fishergraph.ops._numba.members import CHAIN, CHUNK

# How many entries ahead of the current one responsibilities are asked for.
_AHEAD = 64
# Half of the chunks in which points are summed, because the errors of both meet in the mean.
_CHUNK = CHUNK // 2


@intrinsic(prefer_literal=True)
def _share_tile(typingctx, alpha, indices, by_entry, weights, step, start, stop, chunk, shares, mass, anchor, lanes):
    """shares_ij = a_i α_ij and mass_j = Σ_i shares_ij for the anchors anchor … anchor + lanes − 1.

    The mass of `chunk` members is one chain of additions; those of the chunks are added in float64.
    """
    n_lanes = lanes.literal_value

    def codegen(context, builder, signature, args):
        kinds = signature.args
        given, share, total = (Rows(context, builder, kinds[i], args[i]) for i in (0, 8, 9))
        members = Members(context, builder, kinds[1], args[1])
        weight_of = context.make_array(kinds[3])(context, builder, args[3]).data
        _, _, by_entry, _, step, start, stop, chunk, _, _, anchor, _ = args
        real = given.data.type.pointee
        load, store, broadcast, _ = vector_tools(builder, real, n_lanes)
        none = ir.Constant(ir.VectorType(real, n_lanes), None)
        register, wide = (cgutils.alloca_once_value(builder, value) for value in (none, widened(builder, none)))
        with cgutils.for_range_slice(builder, start, stop, chunk) as (first, _):
            builder.store(none, register)
            end = builder.add(first, chunk)
            end = builder.select(builder.icmp_signed("<", end, stop), end, stop)
            with cgutils.for_range_slice(builder, first, end, INDEX(1)) as (entry, _):
                ask_for(builder, given.at(members.after(entry, INDEX(_AHEAD)), anchor))
                row = builder.select(by_entry, entry, members.of(entry))
                weight = builder.load(builder.gep(weight_of, [builder.mul(entry, step)]))
                value = builder.fmul(broadcast(weight), load(given.at(row, anchor)))
                store(value, share.at(builder.sub(entry, start), anchor))
                builder.store(builder.fadd(builder.load(register), value), register)
            builder.store(builder.fadd(builder.load(wide), widened(builder, builder.load(register))), wide)
        narrow = builder.load(wide)
        narrow = narrow if narrow.type == none.type else builder.fptrunc(narrow, none.type)
        store(narrow, total.at(INDEX(0), anchor))
        return context.get_dummy_value()

    integer = types.intp
    given = (alpha, indices, types.boolean, weights, *[integer] * 4, shares, mass, integer, lanes)
    return types.void(*given), codegen


@intrinsic(prefer_literal=True)
def _divide_tile(typingctx, shares, n_members, totals, anchor, lanes):
    """shares_ij /= totals_j for the anchors anchor … anchor + lanes − 1."""
    n_lanes = lanes.literal_value

    def codegen(context, builder, signature, args):
        share, total = (Rows(context, builder, signature.args[i], args[i]) for i in (0, 2))
        load, store, *_ = vector_tools(builder, share.data.type.pointee, n_lanes)
        divisor = load(total.at(INDEX(0), args[3]))
        with cgutils.for_range(builder, args[1]) as loop:
            place = share.at(loop.index, args[3])
            store(builder.fdiv(load(place), divisor), place)
        return context.get_dummy_value()

    return types.void(shares, types.intp, totals, types.intp, lanes), codegen


@inlined
def plain_coefficients(alpha, by_entry, indices, weights, step, start, stop, shares, mass):
    """shares_ij = a_i α_ij of the members of one multiset, and their sum over the members."""
    j, chunk = 0, CHAIN if stop - start <= CHAIN else _CHUNK
    while j + 4 <= len(mass):
        _share_tile(alpha, indices, by_entry, weights, step, start, stop, chunk, shares, mass, j, 4)  # pyright: ignore
        j += 4
    while j < len(mass):
        _share_tile(alpha, indices, by_entry, weights, step, start, stop, chunk, shares, mass, j, 1)  # pyright: ignore
        j += 1


@inlined
def normalise(shares, n_members, totals):
    """shares_ij /= total_j, so that the shares of an anchor sum to one; no numbers where nothing was summed."""
    j = 0
    while j + 4 <= len(totals):
        _divide_tile(shares, n_members, totals, j, 4)  # pyright: ignore
        j += 4
    while j < len(totals):
        _divide_tile(shares, n_members, totals, j, 1)  # pyright: ignore
        j += 1


@inlined
def softmax_coefficients(logs, weights, step, start, stop, prior, shares, totals, shift, anchor_shares, mass):
    """shares_ij = a_i exp(log α_ij − h_j), where h_j is the largest log of the row; returns nothing that underflows.

    shift[j] is h_j and totals[j] the denominator in the same units; the anchor is one more member, with weight κ.
    """
    for j in range(shares.shape[1]):
        highest = np.log(prior)  # −inf without a prior
        for i in range(stop - start):
            if weights[(start + i) * step] > 0:
                highest = max(highest, logs[i, j])
        if highest == -np.inf:  # nobody: what is no number must stay none, and −∞ − −∞ would be one more
            highest = prior - prior
        anchor_share = np.exp(np.log(prior) - highest) if prior > 0 else prior
        total, sum_mass, wide_total, wide_mass = anchor_share, prior - prior, 0.0, 0.0
        chunk = CHAIN if stop - start <= CHAIN else CHUNK
        for i in range(stop - start):
            weight = weights[(start + i) * step]
            shares[i, j] = weight * np.exp(logs[i, j] - highest) if weight > 0 else weight
            total += shares[i, j]
            sum_mass += weight * np.exp(logs[i, j])
            if i % chunk == chunk - 1:
                wide_total, wide_mass = wide_total + total, wide_mass + sum_mass
                total, sum_mass = prior - prior, prior - prior
        totals[j], shift[j], anchor_shares[j] = wide_total + total, highest, anchor_share
        mass[j] = wide_mass + sum_mass


@inlined
def add_anchors(means, totals, anchor_shares, anchors):
    """μ_j += prior share · w_j / total_j; the anchor where nothing was summed. A total that is no number keeps none."""
    for j in range(anchors.shape[0]):
        row, anchor, total, anchor_share = means[j], anchors[j], totals[j], anchor_shares[j]
        if total <= 0:
            for k in range(len(row)):
                row[k] = anchor[k]
        elif anchor_share > 0:
            for k in range(len(row)):
                row[k] += anchor_share / total * anchor[k]
