# numba infers the types of the arguments of a kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
"""Simple paths from a node, listed one by one, or drawn if they are too many.

A path of length k from v is (v, u_1, …, u_k), each node a member of the one before it, no node twice; it weighs the
product of its edges. Counting stops at a bound, and after so many steps where paths end early. Beyond it paths are
drawn, node by node: the next node u has a chance in proportion to the weight of the walks that go on from it,

    q(u) = a(u', u) W_l(u) / Σ_{w not yet on the path} a(u', w) W_l(w),     W_0 = 1,  W_{l+1} = A W_l,

which is uniform but for walks that meet themselves, and what is left over is made up for by the weight of the draw:
Π a / (n Π q) for n draws. So Σ weight · f(path) over the sample has the sum over all paths as its mean, for every f.
"""

from __future__ import annotations

import numpy as np

from fishergraph._parallel import BLOCK_ROWS
from fishergraph.counters import STEP, compiled, row_state, uniform

# Edges looked at per path that is wanted, before a node's paths are drawn instead.
_PATIENCE = 64
# Comparisons of nodes at most for a node, and for a block of nodes where one does not need more: a second or so.
_MOST_WORK = 2**29


@compiled
def _search(v, indptr, indices, weights, length, most, patience, path, cursor, out, out_weights):
    """The number of paths from v; −1 if they are more than `most`, or need more than `patience` steps to count.

    They are written to `out` (path, length + 1), and their weights beside it, as far as they fit.
    """
    n_paths, steps, depth = 0, 0, 0
    path[0], cursor[0] = v, indptr[v]
    while depth >= 0:
        u = path[depth]
        if cursor[depth] == indptr[u + 1]:
            depth -= 1
            continue
        entry = cursor[depth]
        cursor[depth] += 1
        steps += 1
        if steps > patience:
            return -1
        w = indices[entry]
        met = False
        for i in range(depth + 1):
            met = met or path[i] == w
        if met:
            continue
        path[depth + 1] = w
        if depth + 1 < length:
            depth += 1
            cursor[depth] = indptr[w]
            continue
        if n_paths == most:
            return -1
        if n_paths < len(out):
            weight = 1.0
            for i in range(length + 1):
                out[n_paths, i] = path[i]
                if i < length and weights is not None:
                    weight *= weights[cursor[i] - 1]
            out_weights[n_paths] = weight
        n_paths += 1
    return n_paths


@compiled
def count_block(start, stop, indptr, indices, length, most, patience, limit, counts):
    """Fill the numbers of paths of the rows start … stop − 1, −1 if they must be drawn; return their sum.

    A row that is drawn counts `most`. The rest is left out once the sum exceeds `limit`.
    """
    path, cursor = np.empty(length + 1, np.int64), np.empty(length + 1, np.int64)
    nothing, no_weights = np.empty((0, length + 1), indices.dtype), np.empty(0)
    total = 0
    for v in range(start, stop):
        bound = min(most, limit)
        counts[v] = _search(v, indptr, indices, None, length, bound, patience, path, cursor, nothing, no_weights)
        total += min(most, limit + 1) if counts[v] < 0 else counts[v]
        if total > limit:
            break
    return total


@compiled
def walk_masses(indptr, indices, weights, length):
    """(length, entry): mass[l, e], the sums of a W_l over a row up to entry e, W_l the walks of l more steps.

    Every W_l is divided by its largest: only ratios matter, and no power overflows.
    """
    n = len(indptr) - 1
    mass, walks, further = np.empty((length, len(indices))), np.ones(n), np.empty(n)
    for level in range(length):
        largest = 0.0
        for v in range(n):
            total = 0.0
            for e in range(indptr[v], indptr[v + 1]):
                if indices[e] != v:
                    total += walks[indices[e]] if weights is None else weights[e] * walks[indices[e]]
                mass[level, e] = total
            further[v] = total
            largest = max(largest, total)
        for v in range(n):
            walks[v] = further[v] / largest if largest > 0.0 else 0.0
    return mass


@compiled
def _entry_of(indices, first, last, node):
    """The entry of a node in a sorted row first … last − 1, or −1."""
    e = first + np.searchsorted(indices[first:last], node)
    return e if e < last and indices[e] == node else -1


@compiled
def _step(u, depth, state, indptr, indices, mass, path, met):
    """(entry, its chance): the next node from u, of those not on the path; entry −1 if there is none."""
    first, last = indptr[u], indptr[u + 1]
    n_met, gone = 0, 0.0
    for i in range(depth):  # u itself, path[depth], has no mass in its row
        e = _entry_of(indices, first, last, path[i])
        if e < 0:
            continue
        gone += mass[e] - (mass[e - 1] if e > first else 0.0)
        j = n_met
        while j > 0 and met[j - 1] > e:
            met[j] = met[j - 1]
            j -= 1
        met[j] = e
        n_met += 1
    free = mass[last - 1] - gone if last > first else 0.0
    if free <= 1e-12 * gone or free <= 0.0:
        return -1, 0.0
    drawn = uniform(state) * free
    for j in range(n_met):
        before = mass[met[j] - 1] if met[j] > first else 0.0
        if drawn >= before:
            drawn += mass[met[j]] - before
    e = min(first + np.searchsorted(mass[first:last], drawn, side="right"), last - 1)
    chance = (mass[e] - (mass[e - 1] if e > first else 0.0)) / free
    for i in range(depth + 1):
        chance = 0.0 if indices[e] == path[i] else chance
    return (e, chance) if chance > 0.0 else (-1, 0.0)  # zero by rounding alone


@compiled
def _draw(v, n_draws, state, indptr, indices, weights, mass, path, met, out, out_weights):
    """(paths drawn, the estimated number of all): at most `n_draws`, fewer if walks end early."""
    length = len(mass)
    drawn, total = 0, 0.0
    for _ in range(n_draws):
        path[0] = v
        weight, inverse = 1.0, 1.0
        for depth in range(length):
            state += STEP
            e, chance = _step(path[depth], depth, state, indptr, indices, mass[length - 1 - depth], path, met)
            if e < 0:
                inverse = 0.0
                break
            path[depth + 1] = indices[e]
            weight *= 1.0 if weights is None else weights[e]
            inverse /= chance
        if inverse > 0.0:
            for i in range(length + 1):
                out[drawn, i] = path[i]
            out_weights[drawn] = weight * inverse / n_draws
            total += inverse / n_draws
            drawn += 1
    return drawn, total


@compiled
def fill_block(
    start, stop, indptr, indices, weights, length, counts, most, patience, key, mass, out, out_weights, sizes, totals
):
    """The number of paths of the rows start … stop − 1, written one by one, listed or drawn as `counts` says."""
    path, cursor = np.empty(length + 1, np.int64), np.empty(length + 1, np.int64)
    filled = 0
    for v in range(start, stop):
        rest, rest_weights = out[filled:], out_weights[filled:]
        if counts[v] >= 0:
            bound = counts[v]
            sizes[v] = _search(v, indptr, indices, weights, length, bound, patience, path, cursor, rest, rest_weights)
            totals[v] = sizes[v]
        else:
            state = row_state(key, v)
            sizes[v], totals[v] = _draw(
                v, most, state, indptr, indices, weights, mass, path, cursor, rest, rest_weights
            )
        filled += sizes[v]
    return filled


def patience_of(max_paths: int | None, length: int) -> int:
    """The steps after which the paths of a node are drawn and no longer counted, or too many if all are wanted."""
    most = _MOST_WORK // (length + 1)
    return most if max_paths is None else min(_PATIENCE * max_paths + 1024, most)


def block_size(patience: int) -> int:
    """How many nodes are counted between two chances to interrupt."""
    return max(min(BLOCK_ROWS, _MOST_WORK // patience), 1)
