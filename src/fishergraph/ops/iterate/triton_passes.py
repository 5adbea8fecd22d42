"""Passes over the members of a set, of which the gradient of several EM iterations consists (`triton_backward`).

A row is held in pieces of 128 features; a tuple of P rows holds that of anchor j and piece h at h · P + j. Coefficients
are scalars of the program. A span is (first entry, end, the entry that is the first of the tables of this run).
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language import constexpr

from fishergraph.ops._triton.lanes import fold_pieces, lane_anchors
from fishergraph.ops._triton.members import load_members, load_row, store_row, tile_features


@triton.jit
def _piece(h: constexpr):
    """The features of a piece."""
    return h * 128 + tile_features(128)


@triton.jit
def _load_pieces(pointer, row, stride, live, S: constexpr):
    """The pieces of one row; zeros if it is not live."""
    pieces = ()
    for h in tl.static_range(S.BLOCK // 128):
        features = _piece(h)
        inside = (features >= 0) & live if S.D % S.BLOCK == 0 else (features < S.D) & live
        pieces = pieces + (tl.load(pointer + row * stride + features, mask=inside, other=0.0).to(S.KIND),)
    return pieces


@triton.jit
def load_tile(pointer, row, S: constexpr):
    """The P rows of one set."""
    rows = ()
    for h in tl.static_range(S.BLOCK // 128):
        for j in tl.static_range(S.P):
            rows = rows + (load_row(pointer, row * S.P + j, _piece(h), S.D, S),)
    return rows


@triton.jit
def store_tile(pointer, row, tile, S: constexpr):
    """Write the P rows of one set."""
    for h in tl.static_range(S.BLOCK // 128):
        for j in tl.static_range(S.P):
            store_row(pointer, row * S.P + j, _piece(h), tile[h * S.P + j], S)


@triton.jit
def _no_tile(S: constexpr):
    """P rows of zeros."""
    tile = ()
    for _ in tl.static_range(S.BLOCK // 128 * S.P):
        tile = tile + (tl.zeros([128], S.KIND),)
    return tile


@triton.jit
def _scalars(table, row, live, S: constexpr):
    """The P numbers of a row of a table."""
    result = ()
    for j in tl.static_range(S.P):
        result = result + (tl.load(table + row * S.P + j, mask=live, other=0.0),)
    return result


# Stores end a round of members: a load may not pass a store, and would wait for what is stored.


@triton.jit
def _load_members(points, current, first, stop, MEMBERS: constexpr, S: constexpr):
    """The pieces of MEMBERS members, one tuple: that of member k and piece h at k · pieces + h."""
    rows = ()
    for k in tl.static_range(MEMBERS):
        rows = rows + _load_pieces(points[0], current[k], points[1], first + k < stop, S)
    return rows


@triton.jit
def _member(rows, k: constexpr, S: constexpr):
    """The pieces of member k."""
    pieces = ()
    for h in tl.static_range(S.BLOCK // 128):
        pieces = pieces + (rows[k * (S.BLOCK // 128) + h],)
    return pieces


@triton.jit
def _round_scalars(table, first, stop, offset, MEMBERS: constexpr, S: constexpr):
    """The P numbers of MEMBERS rows of a table: that of member k and anchor j at k · P + j."""
    result = ()
    for k in tl.static_range(MEMBERS):
        result = result + _scalars(table, first + k - offset, first + k < stop, S)
    return result


@triton.jit
def _store_products(dots, products, first, stop, MEMBERS: constexpr, S: constexpr):
    """Write the folded products of MEMBERS members."""
    _, anchors = lane_anchors(S)
    for k in tl.static_range(MEMBERS):
        tl.store(dots + (first + k) * S.P + anchors, products[k], mask=(first + k < stop) & (anchors < S.P))


@triton.jit
def sum_members(points, indices, coefs, dots, span, slopes, S: constexpr):
    """(Σ_e c_ej x_e)_j, and ⟨x_e, G_j⟩ of every entry to `dots`."""
    MEMBERS: constexpr = 2
    start, stop, offset = span
    lanes, _ = lane_anchors(S)
    sums = _no_tile(S)
    current = load_members(indices, start, stop, MEMBERS)
    held = _load_members(points, current, start, stop, MEMBERS, S)
    current = load_members(indices, start + MEMBERS, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        following = load_members(indices, first + 2 * MEMBERS, stop, MEMBERS)
        coming = _load_members(points, current, first + MEMBERS, stop, MEMBERS, S)
        c, products = _round_scalars(coefs, first, stop, offset, MEMBERS, S), ()
        for k in tl.static_range(MEMBERS):
            member, new = _member(held, k, S), ()
            products = products + (fold_pieces(member, slopes, lanes, S),)
            for h in tl.static_range(S.BLOCK // 128):
                for j in tl.static_range(S.P):
                    new = new + (sums[h * S.P + j] + c[k * S.P + j] * member[h],)
            sums = new
        _store_products(dots, products, first, stop, MEMBERS, S)
        current, held = following, coming
    return sums


@triton.jit
def spread_members(points, indices, coefs, outs, span, slopes, S: constexpr):
    """Add Σ_j c_ej G_j to the vector of every entry, and write ⟨x_e, G_j⟩."""
    MEMBERS: constexpr = 2
    start, stop, offset = span
    buffer, dots = outs
    lanes, _ = lane_anchors(S)
    following = load_members(indices, start, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        current = following
        following = load_members(indices, first + MEMBERS, stop, MEMBERS)
        held = _load_members(points, current, first, stop, MEMBERS, S)
        c, vectors, products = _round_scalars(coefs, first, stop, offset, MEMBERS, S), (), ()
        for k in tl.static_range(MEMBERS):
            vectors = vectors + _load_pieces(buffer, first + k - offset, S.D, first + k < stop, S)
        for k in tl.static_range(MEMBERS):
            products = products + (fold_pieces(_member(held, k, S), slopes, lanes, S),)
        _store_products(dots, products, first, stop, MEMBERS, S)
        for k in tl.static_range(MEMBERS):
            for h in tl.static_range(S.BLOCK // 128):
                total, live = vectors[k * (S.BLOCK // 128) + h], first + k < stop
                for j in tl.static_range(S.P):
                    total += c[k * S.P + j] * slopes[h * S.P + j]
                features = _piece(h)
                inside = (features >= 0) & live if S.D % S.BLOCK == 0 else (features < S.D) & live
                tl.store(buffer + (first + k - offset) * S.D + features, total, mask=inside)


@triton.jit
def _push_piece(points, indices, tables, buffer, span, slopes, means, inverse, fresh, h: constexpr, S: constexpr):
    """(Σ_e s_ej x_e)_j of one piece; c_ej G_j + s_ej μ_j/σ² summed over j into the vectors, new ones if `fresh`."""
    MEMBERS: constexpr = 2
    start, stop, offset = span
    coefs, scores = tables
    features, sums = _piece(h), ()
    for _ in tl.static_range(S.P):
        sums = sums + (tl.zeros([128], S.KIND),)
    following = load_members(indices, start, stop, MEMBERS)
    for first in range(start, stop, MEMBERS):
        current = following
        following = load_members(indices, first + MEMBERS, stop, MEMBERS)
        held, vectors = (), ()
        for k in tl.static_range(MEMBERS):
            live = first + k < stop
            inside = (features >= 0) & live if S.D % S.BLOCK == 0 else (features < S.D) & live
            at = buffer + (first + k - offset) * S.D + features
            held = held + (tl.load(points[0] + current[k] * points[1] + features, mask=inside, other=0.0).to(S.KIND),)
            vectors = vectors + (tl.load(at, mask=inside & (fresh == 0), other=0.0),)
        c = _round_scalars(coefs, first, stop, offset, MEMBERS, S)
        s = _round_scalars(scores, first, stop, 0, MEMBERS, S)
        for k in tl.static_range(MEMBERS):
            total, new, live = vectors[k], (), first + k < stop
            for j in tl.static_range(S.P):
                total += c[k * S.P + j] * slopes[h * S.P + j]
                total += (s[k * S.P + j] * inverse) * means[h * S.P + j]
                new = new + (sums[j] + s[k * S.P + j] * held[k],)
            sums = new
            inside = (features >= 0) & live if S.D % S.BLOCK == 0 else (features < S.D) & live
            tl.store(buffer + (first + k - offset) * S.D + features, total, mask=inside)
    return sums


@triton.jit
def push_members(points, indices, tables, buffer, span, slopes, means, inverse, fresh, S: constexpr):
    """(Σ_e s_ej x_e)_j of all pieces: registers cannot hold three tiles, so one piece after the other."""
    sums = ()
    for h in tl.static_range(S.BLOCK // 128):
        sums = sums + _push_piece(points, indices, tables, buffer, span, slopes, means, inverse, fresh, h, S)
    return sums


@triton.jit
def inner_products(coefs, dots, span, ENTRIES: constexpr, COLUMNS: constexpr, S: constexpr):
    """(Σ_e c_ej ⟨x_e, G_j⟩)_j, (COLUMNS,)."""
    start, stop, offset = span
    columns = tl.arange(0, COLUMNS)
    total = tl.zeros([ENTRIES, COLUMNS], S.KIND)
    for begin in range(start, stop, ENTRIES):
        entry = begin + tl.arange(0, ENTRIES)
        mask = (entry < stop)[:, None] & (columns < S.P)[None, :]
        c = tl.load(coefs + (entry - offset)[:, None] * S.P + columns[None, :], mask=mask, other=0.0)
        total += c * tl.load(dots + entry[:, None] * S.P + columns[None, :], mask=mask, other=0.0)
    return tl.sum(total, axis=0)


@triton.jit
def score_slopes(
    tables, of_set, members, grad_weights, span, bound, FIRST: constexpr, NEED: constexpr, E: constexpr, C: constexpr, S
):
    """Replace the products by s_ej, in the first iteration by ℓ_ej, and return their sums over the entries, (C,).

    The tables are c, the products, and log α of the entries, or of the points in the first iteration.
    """
    start, stop, offset = span
    coefs, dots, logs = tables
    inner, log_total, grad_mass, is_last = of_set
    indices, weights = members
    columns = tl.arange(0, C)
    total = tl.load(log_total + columns, mask=columns < S.P, other=0.0)[None, :]
    g = tl.load(grad_mass + columns, mask=(columns < S.P) & is_last, other=0.0)[None, :]
    sums = tl.zeros([E, C], S.KIND)
    for begin in range(start, stop, E):
        entry = begin + tl.arange(0, E)
        live = entry < stop
        mask = live[:, None] & (columns < S.P)[None, :]
        at = dots + entry[:, None] * S.P + columns[None, :]
        c = tl.load(coefs + (entry - offset)[:, None] * S.P + columns[None, :], mask=mask, other=0.0)
        difference = tl.load(at, mask=mask, other=0.0) - inner[None, :]
        slope = c * difference
        weight = tl.load(weights + entry, mask=live, other=0.0).to(S.KIND)[:, None] if S.WEIGHTED else 1.0
        if (not FIRST) or NEED:
            row = tl.load(indices + entry, mask=live, other=0).to(tl.int64) if FIRST else entry
            log = tl.load(logs + row[:, None] * S.P + columns[None, :], mask=mask, other=-float("inf"))
            alpha = tl.exp(log)
            if NEED:
                share = tl.where(total > -float("inf"), tl.exp(tl.minimum(log - total, bound)), 0.0)
                by_weight = tl.sum(tl.where(mask, share * difference + alpha * g, 0.0), axis=1)
                by_weight += tl.load(grad_weights + entry, mask=live, other=0.0)
                tl.store(grad_weights + entry, by_weight, mask=live)
            if not FIRST:
                slope += weight * alpha * g
                slope -= alpha * tl.sum(slope, axis=1)[:, None]
        sums += tl.where(mask, slope, 0.0)
        tl.store(at, slope, mask=mask)
    return tl.sum(sums, axis=0)


@triton.jit
def _one(values, j: constexpr, COLUMNS: constexpr):
    """The number of anchor j."""
    return tl.sum(tl.where(tl.arange(0, COLUMNS) == j, values, 0.0), axis=0)


@triton.jit
def earlier_slopes(sums, means, counts, inverse, C: constexpr, S: constexpr):
    """G of the iteration before: (Σ_e s_ej x_e − (Σ_e s_ej) μ_j)/σ²."""
    slopes = ()
    for h in tl.static_range(S.BLOCK // 128):
        for j in tl.static_range(S.P):
            centre = _one(counts, j, C) * means[h * S.P + j]
            slopes = slopes + ((sums[h * S.P + j] - centre) * inverse,)
    return slopes


@triton.jit
def add_anchor(means, w, log_total, log_prior, S: constexpr):
    """means_j + κ/D_j w_j."""
    result = ()
    for h in tl.static_range(S.BLOCK // 128):
        for j in tl.static_range(S.P):
            share = tl.exp(log_prior - tl.load(log_total + j))
            result = result + (means[h * S.P + j] + share * load_row(w, j, _piece(h), S.D, S),)
    return result


@triton.jit
def anchor_share(shares, slopes, w, log_total, log_prior, row, C: constexpr, S: constexpr):
    """(κ/D_j ⟨w_j, G_j⟩)_j, (C,); κ/D_j G_j is added to a table, (set, anchor, feature)."""
    inner, columns = tl.zeros([C], S.KIND), tl.arange(0, C)
    for h in tl.static_range(S.BLOCK // 128):
        for j in tl.static_range(S.P):
            slope = tl.exp(log_prior - tl.load(log_total + j)) * slopes[h * S.P + j]
            inner += tl.where(columns == j, tl.sum(slope * load_row(w, j, _piece(h), S.D, S), axis=0), 0.0)
            before = load_row(shares, row * S.P + j, _piece(h), S.D, S)
            store_row(shares, row * S.P + j, _piece(h), before + slope, S)
    return inner
