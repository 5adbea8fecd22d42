"""Structural features that scale: log-PageRank factors, local columns, and leading eigenvectors.

The factors are those of NetMF (Qiu et al. 2018) without its n × n matrix: the rows of the mean of the first twenty
powers of the random walk are pushed and cut to their largest entries, and a randomised SVD factors their logarithm.
"""
# numba infers the types of the arguments of a kernel.
# SciPy declares no shapes.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportOptionalSubscript=false

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._compile import compiled, readonly
from fishergraph.cores import core_numbers
from fishergraph.diffusion import diffuse

WINDOW = 20  # steps of the walk (benchmarks/bench_structure.py compares it with the ten of NetMF)
MEMBERS = 256  # entries of a row that are kept
TOLERANCE = 1e-5  # mass that a node may keep to itself, per neighbour, in a graph of up to FINE_NODES nodes
FINE_NODES = 3000  # the tolerance grows with the nodes beyond, up to 100 times
EXTRA = 32  # columns of the range finder beyond those that are returned
N_ITER = 4  # power iterations of the range finder
LOCAL_COLUMNS = 7
RESTART = 0.15  # teleport probability of PageRank in the local columns
N_PAGERANK = 50


def symmetric(A: Any) -> sp.csr_array:
    """A + Aᵀ in float64: the edges of a directed graph count both ways."""
    A = sp.csr_array(A, dtype=np.float64)
    return sp.csr_array(A + A.T)


def log_walk_matrix(A: sp.csr_array, n_jobs: int | None = None) -> sp.csr_array:
    """log max(1, vol · (mean of P^1 … P^20)_vu / d_u), cut and symmetric; every row of A has an edge."""
    degrees = np.asarray(A.sum(axis=1))
    series = np.append(1e-9, np.full(WINDOW, 1 / WINDOW))  # the push needs a positive first term
    arrays = (readonly(A.indptr.astype(np.int64)), readonly(A.indices), readonly(A.data))
    tolerance = TOLERANCE * min(max(A.shape[0] / FINE_NODES, 1.0), 100.0)
    ones = np.ones(A.shape[0])
    # The scales make the push rank the entries of a row by (P^k)_vu / d_u.
    indptr, indices, weights = diffuse(arrays, ones, 1 / degrees, series, MEMBERS, tolerance, np.float64, n_jobs)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(indptr))
    values = np.log(np.maximum(1.0, weights * degrees.sum() / degrees[rows]))
    M = sp.csr_array((values.astype(np.float32), indices, indptr), shape=A.shape)
    M.sort_indices()
    M.eliminate_zeros()
    return sp.csr_array(M.maximum(M.T))


def factor_columns(A: Any, dim: int, seed: int, n_jobs: int | None = None) -> np.ndarray:
    """U √S of the log-walk matrix, (node, dim); zeros for nodes without edges, and beyond the rank."""
    both_ways = symmetric(A)
    out = np.zeros((both_ways.shape[0], dim), dtype=np.float32)
    linked = np.flatnonzero(both_ways.sum(axis=1) > 0)
    if len(linked) == 0:
        return out
    M = log_walk_matrix(sp.csr_array(both_ways[linked][:, linked]), n_jobs)
    n, k = len(linked), min(dim, len(linked))
    Q = np.random.default_rng(seed).standard_normal((n, min(dim + EXTRA, n))).astype(np.float32)
    for _ in range(N_ITER + 1):
        Q = np.linalg.qr(M @ Q)[0]
    U, S, _ = np.linalg.svd((M @ Q).T, full_matrices=False)  # M is symmetric
    out[linked, :k] = fixed_signs((Q @ U)[:, :k]) * np.sqrt(S[:k])
    return out


def fixed_signs(vectors: np.ndarray) -> np.ndarray:
    """The columns with a positive first entry of at least half the largest size."""
    size = np.abs(vectors)
    first = (size >= size.max(axis=0) / 2).argmax(axis=0)
    sign = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return vectors * np.where(sign == 0, 1, sign).astype(vectors.dtype)


# --- leading eigenvectors -------------------------------------------------------------------------------


def leading_vectors(S: sp.csr_array, k: int, seed: int, n_iter: int = 60, degree: int = 8) -> np.ndarray:
    """The k leading eigenvectors (node, k) of a symmetric S with spectrum in [−1, 1], largest first.

    Subspace iteration, each round with a Chebyshev polynomial that is small below the eigenvalues that are sought.
    It ends after `n_iter` rounds, or if no leading eigenvalue moves by more than 1e-9.
    """
    n = S.shape[0]
    width = min(k + EXTRA, n)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, width)))[0]
    edge, before = 0.0, np.full(k, np.inf)
    for _ in range(n_iter):
        middle, half = (edge - 1.0) / 2, (edge + 1.0) / 2  # [−1, edge] is damped
        last, Y = Q, (S @ Q - middle * Q) / half
        for _ in range(degree - 1):
            last, Y = Y, (S @ Y - middle * Y) * (2 / half) - last
        Q = np.linalg.qr(Y)[0]
        values, turn = np.linalg.eigh(Q.T @ (S @ Q))
        values, Q = values[::-1], Q @ turn[:, ::-1]
        if np.abs(values[:k] - before).max() < 1e-9:
            break
        edge, before = float(np.clip(values[-1], -0.9, 0.999)), values[:k]
    return Q[:, :k]


# --- local columns --------------------------------------------------------------------------------------


def local_columns(A: Any) -> np.ndarray:
    """Logarithms of local counts, (node, 7); every column is about one at a node of ten edges.

    In- and out-degree (by weight), the mean log-degree of the neighbours, triangles, the clustering coefficient,
    n · PageRank, and the core number. All but the PageRank depend on nothing but the neighbourhood or the core of a
    node. Triangles, clustering, PageRank and cores read the edges both ways.
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
    triangles = _triangles(readonly(simple.indptr), readonly(simple.indices)).astype(np.float64)
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
    out = np.stack(columns, axis=1) / scale
    out[degrees == 0] = 0
    return out.astype(np.float32)


def _pagerank(P: sp.csr_array) -> np.ndarray:
    """n times the PageRank of every node; a walk stops at a node without edges."""
    rank: Any = np.ones(P.shape[0])
    walk: Any = sp.csr_array(P.T)
    for _ in range(N_PAGERANK):
        rank = (1 - RESTART) * (walk @ rank) + RESTART
    return rank


@compiled
def _triangles(indptr, indices):
    """The number of triangles at every node of symmetric, sorted rows without self-loops."""
    n = len(indptr) - 1
    count = np.zeros(n, np.int64)
    mark = np.full(n, -1, np.int64)
    for v in range(n):
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
    return count
