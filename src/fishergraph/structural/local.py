"""Local columns: degrees, triangles, clustering, PageRank and core numbers, and their means around a node."""
# numba infers the types of the arguments of a kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fishergraph._compile import compiled, compiled_exactly, readonly
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.cores import Peeling
from fishergraph.structural.both_ways import Edges
from fishergraph.structural.rows import Matrix, Rows, Storage, column_sums, row_sums

_COUNTS = ("in-degree", "out-degree", "neighbours' degree", "triangles", "clustering", "PageRank", "core number")
_AROUND = [f"{name}, {steps}" for steps in ("around", "two steps around") for name in _COUNTS]
LOCAL_NAMES = (*_COUNTS, *_AROUND, "constant")
LOCAL_COLUMNS = len(LOCAL_NAMES)
_SCALE = np.log1p([10.0, 10.0, 10.0, 10.0, np.e - 1, np.e - 1, 10.0])
_RESTART = 0.15  # teleport probability of PageRank
_N_PAGERANK = 50
_ROWS = 4096  # of a block
_PEELED = 2**13  # nodes that are removed between two looks at the memory


def local_columns(edges: Edges) -> Any:
    """Logarithms of local counts, their means over one and two steps, and a column of ones, (node, 22).

    The seven counts are the in- and out-degree (by weight), the mean log-degree of the neighbours, triangles, the
    clustering coefficient, n · PageRank, and the core number; every one is about one at a node of ten edges. All but
    the PageRank depend on nothing but the neighbourhood or the core of a node. All but the degrees read the edges both
    ways. With the ones, equal counts at another scale are another direction.
    """
    A, both, storage, n_jobs = edges.A, edges.both, edges.storage, edges.n_jobs
    degrees = row_sums(both, storage.most_entries)
    inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    del degrees
    shape = (A.n_rows, len(_COUNTS))
    own = storage.matrix("local-own", shape, np.float64, partial(_fill_own, edges, inverse))
    near = storage.matrix("local-near", shape, np.float64, partial(_fill_means, both, inverse, own, storage, n_jobs))
    far = storage.matrix("local-far", shape, np.float64, partial(_fill_means, both, inverse, near, storage, n_jobs))

    def fill(out: Any) -> None:
        for rows in row_blocks(A.n_rows, _ROWS):
            ones = np.ones((rows.stop - rows.start, 1))
            out[rows] = np.hstack([own[rows], near[rows], far[rows], ones]).astype(np.float32)

    columns = storage.table("local", (A.n_rows, LOCAL_COLUMNS), fill)
    storage.forget("local-own", "local-near", "local-far")
    return columns


def _fill_own(edges: Edges, inverse: np.ndarray, out: Matrix) -> None:
    """Write the seven counts, one after the other: each takes a few numbers of every node."""
    A, both, storage, n_jobs = edges.A, edges.both, edges.storage, edges.n_jobs
    linked, most = inverse > 0, storage.most_entries

    def put(k: int, column: np.ndarray) -> None:
        values = np.where(linked, column / _SCALE[k], 0.0)
        for rows in row_blocks(A.n_rows, _ROWS):
            block = out[rows]
            block[:, k] = values[rows]
            out[rows] = block

    into = np.log1p(row_sums(A, most))
    put(0, into)
    near = np.empty((A.n_rows, 1))
    for rows in both.chunks(most):
        _find_means(both, inverse, into[:, None], rows, near[rows], n_jobs)
    put(2, near[:, 0])
    del into, near
    put(1, np.log1p(column_sums(A, most)))
    put(5, np.log1p(_pagerank(both, inverse, most, n_jobs)))
    sizes = np.diff(both.indptr) - _count_loops(both, most)
    triangles = _triangles(both, sizes, most).astype(np.float64)
    put(3, np.log1p(triangles))
    pairs = sizes * (sizes - 1.0) / 2
    put(4, np.divide(triangles, pairs, out=np.zeros_like(pairs), where=pairs > 0))
    del triangles, pairs
    put(6, np.log1p(_cores(both, sizes, storage)))


def _fill_means(
    both: Rows, inverse: np.ndarray, columns: Matrix, storage: Storage, n_jobs: int | None, out: Matrix
) -> None:
    """Write the means of columns over the neighbours."""
    for k in range(columns.n_tiles):
        tile = columns.tile(k)
        for rows in both.chunks(storage.most_entries):
            with out.filling(k, rows) as values:
                _find_means(both, inverse, tile, rows, values, n_jobs)


def _find_means(
    both: Rows, inverse: np.ndarray, X: np.ndarray, rows: slice, out: np.ndarray, n_jobs: int | None
) -> None:
    """Compute means of columns over the neighbours of consecutive nodes."""
    arrays = *both.read(rows), readonly(inverse[rows]), readonly(X), out
    map_blocks(partial(_mean_rows, *arrays), row_blocks(len(out), _ROWS), n_jobs=n_jobs)


def _pagerank(both: Rows, inverse: np.ndarray, most: int, n_jobs: int | None) -> np.ndarray:
    """n times the PageRank of every node; a walk stops at a node without edges."""
    rank = np.ones(both.n_rows)
    for _ in range(_N_PAGERANK):
        after = np.empty_like(rank)
        for part in both.chunks(most):
            arrays = *both.read(part), readonly(inverse), readonly(rank), after[part]
            map_blocks(partial(_walk_rows, *arrays), row_blocks(part.stop - part.start, _ROWS), n_jobs=n_jobs)
        rank = (1 - _RESTART) * after + _RESTART
    return rank


def _count_loops(both: Rows, most: int) -> np.ndarray:
    """1 for every node with a loop, else 0."""
    loops = np.zeros(both.n_rows, np.int64)
    for part in both.chunks(most):
        indptr, indices, _ = both.read(part)
        _find_loops(part.start, indptr, indices, loops)
    return loops


def _triangles(both: Rows, sizes: np.ndarray, most: int) -> np.ndarray:
    """The number of triangles at every node; `sizes` are the numbers of neighbours.

    The rows are read once for as many of the same rows as are in memory.
    """
    count, mark = np.zeros(both.n_rows, np.int64), np.full(both.n_rows, -1)
    chunks = both.chunks(most)
    for lower in chunks:
        held = both.read(lower)[:2]
        for part in chunks:
            arrays = held if part == lower else both.read(part)[:2]
            _count_triangles(part.start, *arrays, lower.start, *held, readonly(sizes), count, mark)
    return count


def _cores(both: Rows, sizes: np.ndarray, storage: Storage) -> np.ndarray:
    """The core number of every node."""
    peeling = Peeling(sizes)
    with storage.whole(both) as (indptr, indices, _):
        for nodes in row_blocks(len(sizes), _PEELED):
            peeling.remove(nodes, indptr, indices)
            storage.give_back()
    return peeling.degrees


@compiled_exactly
def _mean_rows(indptr, indices, weights, inverse, X, out, rows):
    """Weighted means of rows of X, added from the last neighbour to the first."""
    for v in range(rows.start, rows.stop):
        for c in range(X.shape[1]):
            out[v, c] = 0.0
        for entry in range(indptr[v + 1] - 1, indptr[v] - 1, -1):
            weight = inverse[v] if weights is None else inverse[v] * weights[entry]
            for c in range(X.shape[1]):
                out[v, c] += weight * X[indices[entry], c]


@compiled_exactly
def _walk_rows(indptr, indices, weights, inverse, rank, out, rows):
    """What a step of the walk brings to each node."""
    for v in range(rows.start, rows.stop):
        total = 0.0
        for entry in range(indptr[v], indptr[v + 1]):
            u = indices[entry]
            total += (inverse[u] if weights is None else inverse[u] * weights[entry]) * rank[u]
        out[v] = total


@compiled
def _find_loops(start, indptr, indices, loops):
    """Mark the nodes with a loop."""
    for k in range(len(indptr) - 1):
        for entry in range(indptr[k], indptr[k + 1]):
            if indices[entry] == start + k:
                loops[start + k] = 1


@compiled
def _count_triangles(start, indptr, indices, first, lower_indptr, lower_indices, sizes, count, mark):
    """Add the triangles whose last node is one of those from `start` on, and the next one of those from `first` on.

    Nodes are in the order of (size, number). Loops are in no triangle. `mark` is scratch of −1.
    """
    for k in range(len(indptr) - 1):
        v = start + k
        for entry in range(indptr[k], indptr[k + 1]):
            mark[indices[entry]] = v
        for entry in range(indptr[k], indptr[k + 1]):
            u = indices[entry]
            d, row = sizes[u], u - first
            if row < 0 or row >= len(lower_indptr) - 1 or d > sizes[v] or (d == sizes[v] and u >= v):
                continue
            for other in range(lower_indptr[row], lower_indptr[row + 1]):
                w = lower_indices[other]
                if mark[w] == v and (sizes[w] < d or (sizes[w] == d and w < u)):
                    count[v] += 1
                    count[u] += 1
                    count[w] += 1
