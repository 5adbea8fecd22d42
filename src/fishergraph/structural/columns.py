"""Columns of nodes that are computed from the graph alone: random projections, degrees, local counts."""
# numba infers the types of the arguments of a kernel.
# SciPy declares no shapes.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportOptionalSubscript=false

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._compile import compiled, readonly
from fishergraph._parallel import progress_steps
from fishergraph.cores import core_numbers
from fishergraph.counters import STEP, mix
from fishergraph.graph import Graph
from fishergraph.structural.factors import symmetric

N_POWERS = 3  # steps of the walk in "projection"
SPARSITY = 3  # one entry in so many of the random matrix is not zero (Achlioptas)
DEGREE_SCALE = 0.1  # log-degrees rarely pass 10, so the three columns stay below the unit rows beside them
MAX_BINS = 32  # log2 bins reach 2**30 edges at a node
_COUNTS = ("in-degree", "out-degree", "neighbours' degree", "triangles", "clustering", "PageRank", "core number")
_AROUND = [f"{name}, {steps}" for steps in ("around", "two steps around") for name in _COUNTS]
LOCAL_NAMES = (*_COUNTS, *_AROUND, "constant")
LOCAL_COLUMNS = len(LOCAL_NAMES)
BLOCK = 1 << 14  # rows of the random matrix drawn at once
_RESTART = 0.15  # teleport probability of PageRank in the local columns
_N_PAGERANK = 50

# --- projection -----------------------------------------------------------------------------------------


def projection_columns(graph: Graph, keys: np.ndarray, width: int, seed: int) -> np.ndarray:
    """[0.1 · log-degrees | mean over k of normalise(Pᵏ L R)], P = D⁻¹A, L = diag(d^-1/2), R very sparse."""
    A = sp.csr_array(graph.adjacency, dtype=np.float32)
    incoming, outgoing = _degrees(A)
    P = sp.csr_array(sp.diags_array(power_or_zero(incoming, -1.0).astype(np.float32)) @ A)
    degrees = np.log1p(np.stack([incoming, outgoing], axis=1))  # (node, 2)
    neighbours = P @ degrees[:, :1].astype(np.float32)  # (node, 1)
    out = np.zeros((graph.n_nodes, width), dtype=np.float32)
    out[:, :2], out[:, 2:3] = DEGREE_SCALE * degrees, DEGREE_SCALE * neighbours
    reach = random_rows(keys, width - 3, seed)  # (node, width - 3)
    reach *= power_or_zero(outgoing, -0.5).astype(np.float32)[:, None]
    advance = progress_steps(1.0, N_POWERS) or (lambda _: None)
    for _ in range(N_POWERS):
        reach = P @ reach
        out[:, 3:] += _unit_rows(reach) / N_POWERS
        advance(1)
    return out


def random_rows(keys: np.ndarray, width: int, seed: int) -> np.ndarray:
    """A very sparse random matrix (key, width): ±√3 with probability 1/6 each, else 0.

    An entry is a hash of the seed, the key and the column, so a node has the same row in every graph.
    """
    n = len(keys)
    out = np.empty((n, width), dtype=np.float32)
    scramble = mix.py_func  # on arrays NumPy needs no compilation
    start = scramble(np.array([seed], dtype=np.uint64) + STEP)
    columns = np.arange(1, width + 1, dtype=np.uint64) * STEP
    for first in range(0, n, BLOCK):
        rows = keys[first : first + BLOCK]
        bits = scramble(scramble((rows + np.uint64(1)) * STEP ^ start)[:, None] + columns)  # (row, column)
        sixth = (bits >> np.uint64(32)) * np.uint64(2 * SPARSITY) >> np.uint64(32)  # 0 … 5, equally likely
        sign = (sixth == 0).astype(np.float32) - (sixth == 1).astype(np.float32)
        out[first : first + BLOCK] = np.float32(SPARSITY**0.5) * sign
    return out


def _degrees(A: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Row sums and column sums in float64."""
    return A.sum(axis=1, dtype=np.float64), A.sum(axis=0, dtype=np.float64)


def power_or_zero(values: np.ndarray, exponent: float) -> np.ndarray:
    """values^exponent, and 0 where a value is 0."""
    powers = np.zeros_like(values)
    np.power(values, exponent, out=powers, where=values > 0)
    return powers


def _unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows of length 1; a zero row stays zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return X * power_or_zero(norms, -1.0).astype(np.float32)[:, None]


# --- degree ---------------------------------------------------------------------------------------------


def degree_columns(graph: Graph, width: int) -> np.ndarray:
    """One-hot bins of the number of members: 0, 1, 2–3, 4–7, …; the last bin holds all that is larger."""
    counts = np.diff(graph.indptr)
    bins = np.frexp(counts.astype(np.float64))[1]  # 0 for 0, else 1 + floor(log2)
    out = np.zeros((graph.n_nodes, width), dtype=np.float32)
    out[np.arange(graph.n_nodes), np.minimum(bins, width - 1)] = 1
    return out


# --- local columns --------------------------------------------------------------------------------------


def local_columns(A: Any) -> np.ndarray:
    """Logarithms of local counts, their means over one and two steps, and a column of ones, (node, 22).

    The seven counts are the in- and out-degree (by weight), the mean log-degree of the neighbours, triangles, the
    clustering coefficient, n · PageRank, and the core number; every one is about one at a node of ten edges. All but
    the PageRank depend on nothing but the neighbourhood or the core of a node. All but the degrees read the edges both
    ways. With the ones, equal counts at another scale are another direction.
    """
    A = sp.csr_array(A, dtype=np.float64)
    both_ways = symmetric(A)
    degrees = np.asarray(both_ways.sum(axis=1))
    inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    P = sp.csr_array(sp.diags_array(inverse) @ both_ways)
    simple = sp.csr_array(both_ways - sp.diags_array(both_ways.diagonal()))
    simple.eliminate_zeros()
    simple.sort_indices()
    counts = np.diff(simple.indptr).astype(np.float64)
    count, mark = np.zeros(len(counts), np.int64), np.full(len(counts), -1)
    _count_triangles(readonly(simple.indptr), readonly(simple.indices), count, mark)
    triangles = count.astype(np.float64)
    pairs = counts * (counts - 1) / 2
    clustering = np.divide(triangles, pairs, out=np.zeros_like(pairs), where=pairs > 0)
    into = np.log1p(np.asarray(A.sum(axis=1)))
    columns = [
        into,
        np.log1p(np.asarray(A.sum(axis=0))),
        P @ into,
        np.log1p(triangles),
        clustering,
        np.log1p(_pagerank(P)),
        np.log1p(core_numbers(simple.indptr, simple.indices)),
    ]
    scale = np.log1p([10.0, 10.0, 10.0, 10.0, np.e - 1, np.e - 1, 10.0])
    own = np.stack(columns, axis=1) / scale
    own[degrees == 0] = 0
    near = P @ own
    return np.hstack([own, near, P @ near, np.ones((len(own), 1))]).astype(np.float32)


def _pagerank(P: sp.csr_array) -> np.ndarray:
    """n times the PageRank of every node; a walk stops at a node without edges."""
    rank: Any = np.ones(P.shape[0])
    walk: Any = sp.csr_array(P.T)
    for _ in range(_N_PAGERANK):
        rank = (1 - _RESTART) * (walk @ rank) + _RESTART
    return rank


@compiled
def _count_triangles(indptr, indices, count, mark):
    """Add the number of triangles at every node of symmetric, sorted rows without self-loops; `mark` is scratch of −1.

    The arrays are made by the caller: here they would take half of the time to compile.
    """
    for v in range(len(indptr) - 1):
        degree = indptr[v + 1] - indptr[v]
        for entry in range(indptr[v], indptr[v + 1]):
            mark[indices[entry]] = v
        for entry in range(indptr[v], indptr[v + 1]):
            u = indices[entry]
            d = indptr[u + 1] - indptr[u]
            if d > degree or (d == degree and u >= v):  # v is the last of the triangle by (degree, number)
                continue
            for other in range(indptr[u], indptr[u + 1]):
                w = indices[other]
                e = indptr[w + 1] - indptr[w]
                if mark[w] == v and (e < d or (e == d and w < u)):
                    count[v] += 1
                    count[u] += 1
                    count[w] += 1
