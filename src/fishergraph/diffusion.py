# numba infers the types of the arguments of a kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
"""Diffusion on a graph: rows of a power series of an operator, by push with a cut.

    Π = Σ_k θ_k M^k,    M = diag(left) A diag(right),    θ_k ≥ 0, Σ_k θ_k = 1

Row v of Π says how much every node weighs in the diffusion that starts at v. M is similar to P = diag(left · right) A,
so Π_vu = (Σ_k θ_k P^k)_vu right_u / right_v, and it is P along which a unit of mass is pushed from v, level by level:
at level k a node u holds x_k(u), of which θ_k x_k(u) stays there for good, and the rest is handed on only if what it
still has to give, t_k x_k(u) with t_k = Σ_{j>k} θ_j, exceeds `tolerance` times the number of its members.

Where the rows of P sum to one, as they do for a random walk and for symmetric weights of an undirected graph, what is
not handed on is all that is lost: the pushed mass is one minus its error in ℓ1, and at most Σ_k t_k / tolerance edges
are walked for a row, however large the graph is (the bound of Andersen, Chung and Lang for PageRank).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from fishergraph._compile import compiled_exactly, inner_exactly
from fishergraph._parallel import BLOCK_ROWS, map_blocks, per_thread, row_blocks

# Edges that a block of rows walks at most, where a row does not walk more: a second or so, between two of which an
# interruption is noticed.
_BLOCK_EDGES = 2**28


@inner_exactly
def _push(v, indptr, indices, weights, scale, series, limits, scratch):
    """The number of nodes that mass from v reaches; they are in `touched`, and what stays with them is in `total`.

    `total`, `here` and `there`, (node,), are zero before it; `here` and `there` are zero again after it.
    """
    total, here, there, touched, frontier, following = scratch
    n_touched, n_frontier = 0, 1
    frontier[0], here[v] = v, 1.0
    for k in range(len(series)):
        n_following = 0
        for i in range(n_frontier):
            u = frontier[i]
            x = here[u]
            here[u] = 0.0
            if total[u] == 0.0 and series[k] * x > 0.0:
                touched[n_touched] = u
                n_touched += 1
            total[u] += series[k] * x
            if x <= limits[k] * (indptr[u + 1] - indptr[u]):
                continue
            x *= scale[u]
            for entry in range(indptr[u], indptr[u + 1]):
                w = indices[entry]
                y = x if weights is None else x * weights[entry]
                if there[w] == 0.0 and y > 0.0:
                    following[n_following] = w
                    n_following += 1
                there[w] += y
        if n_following == 0:
            break
        here, there = there, here
        frontier, following = following, frontier
        n_frontier = n_following
    return n_touched


@inner_exactly
def _sift(heap, size, weight, position):
    """Let a node of heap[:size] sink until no child is worse: of smaller weight, or of equal weight and later."""
    u = heap[position]
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if child + 1 < size and _worse(heap[child + 1], heap[child], weight):
            child += 1
        if not _worse(heap[child], u, weight):
            break
        heap[position] = heap[child]
        position = child
    heap[position] = u


@inner_exactly
def _worse(u, w, weight):
    return weight[u] < weight[w] or (weight[u] == weight[w] and u > w)


@inner_exactly
def _sort_largest(nodes, n_wanted, weight):
    """Put the `n_wanted` nodes of largest weight in front, in descending order; of equals the first comes first."""
    first = n_wanted - n_wanted  # the literal 0 would be compiled as a type of its own
    for position in range(n_wanted // 2 - 1, -1, -1):
        _sift(nodes, n_wanted, weight, position)
    for i in range(n_wanted, len(nodes)):
        if n_wanted > 0 and _worse(nodes[0], nodes[i], weight):
            nodes[0], nodes[i] = nodes[i], nodes[0]
            _sift(nodes, n_wanted, weight, first)
    for last in range(n_wanted - 1, 0, -1):
        nodes[0], nodes[last] = nodes[last], nodes[0]
        _sift(nodes, last, weight, first)


@compiled_exactly
def _push_rows(rows, indptr, indices, weights, scale, right, series, limits, members, out, filled, scratch):
    """Rows of Π, cut, from rows[0] on: (the first row that no longer fits into `out`, how much of it is filled).

    `out` is (sizes, nodes, weights): the sizes of these rows, and the members of all rows one after the other. The
    arrays are made by the caller: here each would take a twentieth of a second to compile.
    """
    start, stop = rows
    sizes, nodes, node_weights = out
    total, touched = scratch[0], scratch[3]
    for v in range(start, stop):
        n_touched = _push(v, indptr, indices, weights, scale, series, limits, scratch)
        for i in range(n_touched):
            total[touched[i]] *= right[touched[i]] / right[v]
        size = min(n_touched, members)
        fits = filled + size <= len(nodes)
        if fits:
            _sort_largest(touched[1:n_touched], size - 1, total)  # the root is touched first, and stays
        for i in range(n_touched):
            u = touched[i]
            if fits and i < size:
                nodes[filled], node_weights[filled] = u, total[u]
                filled += 1
            total[u] = 0.0
        if not fits:
            return v, filled
        sizes[v - start] = size
    return stop, filled


def _scratch(n: int, dtype: DTypeLike) -> tuple[np.ndarray, ...]:
    """Three masses of every node, which are zero, and memory for three lists of nodes."""
    return np.zeros(n), np.zeros(n), np.zeros(n), np.empty(n, dtype), np.empty(n, dtype), np.empty(n, dtype)


def diffuse(
    adjacency: tuple[np.ndarray, np.ndarray, np.ndarray | None],
    left: np.ndarray,
    right: np.ndarray,
    series: np.ndarray,
    members: int | None,
    tolerance: float,
    dtype: DTypeLike = np.float32,
    n_jobs: int | None = None,
    *,
    rows: slice | None = None,
    block_edges: int = _BLOCK_EDGES,
    after_block: Callable[[], object] = lambda: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of Π = Σ_k θ_k M^k by push, every row cut to its root and the largest others.

    Parameters
    ----------
    adjacency : tuple of arrays
        (indptr, indices, weights) of A in compressed sparse rows; weights None are ones.
    left, right : array of shape (n_nodes,)
        The positive scales of M = diag(left) A diag(right).
    series : array
        θ_0, θ_1, …, not negative, θ_0 positive.
    members : int or None
        The most entries of a row; None keeps all that the push reaches.
    tolerance : float
        The mass that a node may keep to itself, per member; see the text of the module.
    dtype : dtype, default=float32
        The dtype of the returned weights.
    n_jobs : int, optional
        The number of threads.
    rows : slice, optional
        Consecutive rows; by default all.
    block_edges : int, optional
        The most edges that a block of rows walks, if it has more than one row.
    after_block : callable, optional
        Called after every block of rows, on its thread.

    Returns
    -------
    tuple of arrays
        (indptr, indices, weights) of the rows: the root first, then the others in descending order.
    """
    indptr, indices, weights = adjacency
    n = len(indptr) - 1
    tails = np.append(np.cumsum(series[:0:-1])[::-1], 0.0)
    limits = np.divide(tolerance, tails, out=np.full(len(tails), np.inf), where=tails > 0)
    kept = n if members is None else min(members, n)
    operator = (indptr, indices, weights, left * right, right, series, limits, kept)
    work = min(tails.sum() / tolerance, float(len(series)) * len(indices))  # edges that a row may walk
    size = max(min(BLOCK_ROWS, int(block_edges / max(work, 1.0))), 1)
    first, last, _ = (slice(0, n) if rows is None else rows).indices(n)

    # Of the size of the graph, where a block sees a small part of it; every row leaves the masses at zero.
    scratch = per_thread(partial(_scratch, n, indices.dtype))

    def push(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n_rows, row, filled = rows.stop - rows.start, rows.start, 0
        sizes = np.empty(n_rows, np.int64)
        out, out_weights = np.empty(32 * n_rows, indices.dtype), np.empty(32 * n_rows)
        while True:
            arrays = sizes[row - rows.start :], out, out_weights
            row, filled = _push_rows((row, rows.stop), *operator, arrays, filled, scratch())
            if row == rows.stop:
                after_block()
                return sizes, out[:filled].copy(), out_weights[:filled].astype(dtype)
            out, out_weights = (np.concatenate([part, np.empty(len(part) + kept, part.dtype)]) for part in arrays[1:])

    parts = [slice(first + part.start, first + part.stop) for part in row_blocks(last - first, size)]
    blocks = map_blocks(push, parts, n_jobs=n_jobs)
    sizes, out, out_weights = map(np.concatenate, zip(*blocks, strict=True))
    return np.append(0, np.cumsum(sizes)), out, out_weights
