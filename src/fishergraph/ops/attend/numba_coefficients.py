"""The compiled leaves that give the members of one multiset their shares, four anchors to a vector register."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from fishergraph._compile import inlined
from fishergraph.ops._numba.codegen import INDEX, Members, Rows, ask_for, each_entry, vector_tools
from fishergraph.ops._numba.members import CHAIN, CHUNK

# How many entries ahead of the current one responsibilities are asked for.
_AHEAD = 64
# Half of the chunks in which points are summed, because the errors of both meet in the mean.
_CHUNK = CHUNK // 2


@intrinsic(prefer_literal=True)
def _share_tile(typingctx, alpha, indices, by_entry, weights, step, start, stop, shares, mass, anchor, lanes):
    """shares_ij = a_i α_ij and mass_j = Σ_i shares_ij for the anchors anchor … anchor + lanes − 1."""
    n_lanes = lanes.literal_value

    def codegen(context, builder, signature, args):
        kinds = signature.args
        given, share, total = (Rows(context, builder, kinds[i], args[i]) for i in (0, 7, 8))
        members = Members(context, builder, kinds[1], args[1])
        weight_of = context.make_array(kinds[3])(context, builder, args[3]).data
        _, _, by_entry, _, step, start, stop, _, _, anchor, _ = args
        real = given.data.type.pointee
        load, store, broadcast, _ = vector_tools(builder, real, n_lanes)
        register = cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(real, n_lanes), None))
        with each_entry(builder, start, stop) as entry:
            ask_for(builder, given.at(members.after(entry, INDEX(_AHEAD)), anchor))
            row = builder.select(by_entry, entry, members.of(entry))
            weight = builder.load(builder.gep(weight_of, [builder.mul(entry, step)]))
            value = builder.fmul(broadcast(weight), load(given.at(row, anchor)))
            store(value, share.at(builder.sub(entry, start), anchor))
            builder.store(builder.fadd(builder.load(register), value), register)
        store(builder.load(register), total.at(INDEX(0), anchor))
        return context.get_dummy_value()

    integer = types.intp
    given = (alpha, indices, types.boolean, weights, integer, integer, integer, shares, mass, integer, lanes)
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
def _add_in_chunks(shares, n_members, mass):
    """mass_j = Σ_i shares_ij of many members: each chunk is one chain of additions, and the chunks add in float64."""
    for j in range(len(mass)):
        total = 0.0
        for first in range(0, n_members, _CHUNK):
            part = mass.dtype.type(0)
            for i in range(first, min(first + _CHUNK, n_members)):
                part += shares[np.uintp(i), np.uintp(j)]  # not negative: no check for that takes time
            total += part
        mass[j] = total


@inlined
def plain_coefficients(alpha, by_entry, indices, weights, step, start, stop, shares, mass):
    """shares_ij = a_i α_ij of the members of one multiset, and their sum over the members."""
    j = 0
    while j + 4 <= len(mass):
        _share_tile(alpha, indices, by_entry, weights, step, start, stop, shares, mass, j, 4)  # pyright: ignore
        j += 4
    while j < len(mass):
        _share_tile(alpha, indices, by_entry, weights, step, start, stop, shares, mass, j, 1)  # pyright: ignore
        j += 1
    if stop - start > CHAIN:
        _add_in_chunks(shares, stop - start, mass)


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
