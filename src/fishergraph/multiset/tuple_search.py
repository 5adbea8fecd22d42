# numba infers the types of the arguments of a kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
"""Tuples of nodes whose subgraph falls into few parts, their relations, and their neighbours, for k up to 3."""

from __future__ import annotations

import numpy as np

from fishergraph.counters import compiled

# Relations of two nodes of a tuple: apart, the same, joined both ways, the first lists the second, or the other way.
N_RELATIONS = 5


@compiled
def _lists(indptr, indices, u, w):
    """Whether the sorted row of u holds w."""
    row = indices[indptr[u] : indptr[u + 1]]
    e = np.searchsorted(row, w)
    return e < len(row) and row[e] == w


@compiled
def _joined(indptr, indices, u, w):
    return u == w or _lists(indptr, indices, u, w)


@compiled
def _candidates(v, first, last, indptr, indices, radius, stamp, nodes):
    """The number of nodes of tuples that begin with v, in order in `nodes`: all of first … last − 1, or a ball."""
    if radius < 0:
        for u in range(first, last):
            nodes[u - first] = u
        return last - first
    nodes[0], stamp[v] = v, v
    begin, end = 0, 1
    for _ in range(radius):
        ring = end
        for i in range(begin, ring):
            for e in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
                if stamp[indices[e]] != v:
                    stamp[indices[e]] = v
                    nodes[end] = indices[e]
                    end += 1
        begin = ring
    nodes[:end].sort()
    return end


@compiled
def find_tuples(indptr, indices, graph_ptr, k, s, limit, out):
    """The number of k-tuples with at most s parts, graph by graph in order; beyond `limit` counting stops.

    (indptr, indices) lists every edge both ways, sorted. The tuples are written to `out` (tuple, k) as far as they fit.
    """
    n = len(indptr) - 1
    stamp, nodes, total = np.full(n, -1, indices.dtype), np.empty(n, np.int64), 0
    radius = k - 1 if s == 1 else -1  # what is connected lies in a ball
    for g in range(len(graph_ptr) - 1):
        for v in range(graph_ptr[g], graph_ptr[g + 1]):
            near = _candidates(v, graph_ptr[g], graph_ptr[g + 1], indptr, indices, radius, stamp, nodes)
            for i in range(near if k > 1 else 1):
                links_2 = k > 1 and _joined(indptr, indices, v, nodes[i])
                if k == 2 and s == 1 and not links_2:
                    continue
                for j in range(near if k > 2 else 1):
                    if k > 2 and s < 3:
                        links = links_2 + _joined(indptr, indices, v, nodes[j])
                        links += _joined(indptr, indices, nodes[i], nodes[j])
                        if links < 3 - s:  # two links join three nodes, one leaves two parts
                            continue
                    if total < len(out):
                        out[total, 0] = v
                        if k > 1:
                            out[total, 1] = nodes[i]
                        if k > 2:
                            out[total, 2] = nodes[j]
                    total += 1
                    if total > limit:
                        return total
    return total


@compiled
def fill_relations(indptr, indices, tuples, out):
    """Fill the relations of every tuple, one-hot for each pair of positions, and a column per position for its loop."""
    k = tuples.shape[1]
    for t in range(len(tuples)):
        column = 0
        for i in range(k):
            for j in range(i + 1, k):
                u, w = tuples[t, i], tuples[t, j]
                forth, back = _lists(indptr, indices, u, w), _lists(indptr, indices, w, u)
                kind = 2 if forth and back else 3 if forth else 4 if back else 0
                out[t, column + (1 if u == w else kind)] = 1
                column += N_RELATIONS
        for i in range(k):
            out[t, column + i] = _lists(indptr, indices, tuples[t, i], tuples[t, i])


@compiled
def _find(tuples, first, last, row, position, w):
    """The number of the tuple `row` with w at `position`, among tuples[first:last], which begin alike; −1 if none."""
    k = tuples.shape[1]
    while first < last:
        middle = (first + last) // 2
        order = 0
        for i in range(1, k):
            wanted = w if i == position else row[i]
            if order == 0 and tuples[middle, i] != wanted:
                order = -1 if tuples[middle, i] < wanted else 1
        if order == 0:
            return middle
        if order < 0:
            first = middle + 1
        else:
            last = middle
    return -1


@compiled
def fill_neighbours(indptr, indices, weights, tuples, begins, sizes, out, out_weights):
    """The number of members of all tuples: the tuple itself, then θ_j(t, u) for every position j and u ∈ N(t_j).

    Filled as far as they fit: `out` (member, k + 1) has the tuple first and its neighbour in the slot of the position,
    −1 elsewhere. `begins` (node + 1,) says where the tuples that begin with a node are.
    """
    k, total = tuples.shape[1], 0
    for t in range(len(tuples)):
        before = total
        if total < len(out):
            out[total, :], out_weights[total] = -1, 1
            out[total, 0] = t
        total += 1
        for position in range(k):
            for e in range(indptr[tuples[t, position]], indptr[tuples[t, position] + 1]):
                w = indices[e]
                head = w if position == 0 else tuples[t, 0]
                other = _find(tuples, begins[head], begins[head + 1], tuples[t], position, w)
                if other < 0:
                    continue
                if total < len(out):
                    out[total, :] = -1
                    out[total, 0], out[total, position + 1] = t, other
                    out_weights[total] = 1 if weights is None else weights[e]
                total += 1
        sizes[t] = total - before
    return total
