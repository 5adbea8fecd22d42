"""Columns that tell nodes apart: factors of an operator of the graph, kept so that they survive changes of it.

    columns = operator(graph) · basis

"factors" are those of NetMF (Qiu et al. 2018) without its n × n matrix: the rows of the mean of the first twenty powers
of the random walk are pushed and cut to their largest entries, and a randomised method factors their logarithm.
"spectral" are leading eigenvectors of the normalised adjacency. The basis has a row for every node of the fit. On a
changed graph the operator is computed anew and multiplied by the same basis, so that a node keeps its place, and a new
node gets one from the known nodes that its walks reach.
"""
# numba infers the types of the arguments of a kernel. SciPy declares no shapes.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportOptionalSubscript=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from fishergraph._compile import compiled, readonly
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._repr import short_repr
from fishergraph._validation import check_host_memory
from fishergraph.diffusion import diffuse

WINDOW = 20  # steps of the walk (benchmarks/bench_structure.py compares it with the ten of NetMF)
MOST_MEMBERS, LEAST_MEMBERS = 256, 16  # entries of a row that are kept
_FEW_MEMBERS = 128  # as many as there are columns, but no fewer than this unless the graph is large
_MOST_ENTRIES = 2**24  # of all rows together: large graphs keep fewer entries of a row
_MOST_NUMBERS = 2**27  # of the columns of all nodes: large graphs get fewer columns
_LEAST_COLUMNS = 16
_TOLERANCE = 1e-5  # mass that a node may keep to itself, per neighbour, for 256 members; four times as much for half
_FINE_NODES = 3000  # of a graph with this tolerance; it grows with the nodes beyond, up to 100 times
_EXTRA = 32  # columns of the range finder beyond those that are returned
_N_ITER = 2  # power iterations of the range finder
_ROWS = 4096  # of a block of a product
_NO_LENGTH = 1e-12  # squares of lengths below this share of the largest are rounding
_DENSE_NODES = 512  # up to here the full eigendecomposition is quick, and exact for repeated eigenvalues
_LEAST_VALUE = 1e-3  # an eigenvalue nearer to zero than this gives no column: others could not be told from it


class Factors(NamedTuple):
    """A basis (node, column), and the values (column,) that make it the columns of the graph it was learned from."""

    basis: np.ndarray
    values: np.ndarray

    __repr__ = short_repr


class Operator(NamedTuple):
    """An operator of a graph, (adjacency, columns, n_jobs) → matrix, and how it is factored, (matrix, k, seed, n_jobs).

    The matrix is as fine as so many columns can show.
    """

    matrix: Callable[[Any, int, int | None], sp.csr_array]
    factor: Callable[[sp.csr_array, int, int, int | None], Factors]


def learn_factors(
    operator: Operator, A: Any, width: int, seed: int, n_jobs: int | None = None
) -> tuple[Factors, np.ndarray]:
    """Factors of an operator, and the columns of the graph itself, (node, column); zeros beyond the rank."""
    n_nodes = A.shape[0]
    width = min(width, max(_MOST_NUMBERS // max(n_nodes, 1), _LEAST_COLUMNS))
    check_host_memory(24 * n_nodes * width, f"{n_nodes} nodes need", "for structural columns", "lower n_factors")
    M = operator.matrix(A, width, n_jobs)
    basis, values = operator.factor(M, min(width, n_nodes), seed, n_jobs)
    missing = width - len(values)
    basis = np.pad(basis, ((0, 0), (0, missing))).astype(np.float32)
    values = np.pad(values, (0, missing)).astype(np.float32)
    return Factors(basis, values), product(M, basis, n_jobs).astype(np.float32, copy=False)


def product(M: sp.csr_array, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """M X by row blocks on threads; the bits do not depend on their number."""
    out = np.empty((M.shape[0], X.shape[1]), np.result_type(M.dtype, X.dtype))
    arrays = readonly(M.indptr), readonly(M.indices), readonly(M.data), readonly(np.ascontiguousarray(X))
    map_blocks(partial(_product_rows, *arrays, out), row_blocks(M.shape[0], _ROWS), n_jobs=n_jobs)
    return out


@compiled
def _product_rows(indptr, indices, data, X, out, rows):
    """Rows of M X, with the vector instructions of this processor, unlike SciPy's loop."""
    n_columns = X.shape[1]
    for v in range(rows.start, rows.stop):
        row = out[v]
        row[:] = 0
        for entry in range(indptr[v], indptr[v + 1]):
            weight, other = data[entry], X[indices[entry]]
            for c in range(n_columns):
                row[c] += weight * other[c]


def symmetric(A: Any) -> sp.csr_array:
    """A + Aᵀ in float64: the edges of a directed graph count both ways."""
    A = sp.csr_array(A, dtype=np.float64)
    return sp.csr_array(A + A.T)


# --- log-walks ------------------------------------------------------------------------------------------


def log_walks(A: Any, width: int = MOST_MEMBERS, n_jobs: int | None = None) -> sp.csr_array:
    """log max(1, vol · (mean of P^1 … P^20)_vu / d_u), cut and symmetric, float32; zeros for nodes without edges."""
    both_ways = symmetric(A)
    degrees = np.asarray(both_ways.sum(axis=1))
    linked = np.flatnonzero(degrees > 0)
    n_nodes = len(linked)
    if n_nodes == 0:
        return sp.csr_array(both_ways.shape, dtype=np.float32)
    if n_nodes < len(degrees):
        both_ways, degrees = sp.csr_array(both_ways[linked][:, linked]), degrees[linked]
    series = np.append(1e-9, np.full(WINDOW, 1 / WINDOW))  # the push needs a positive first term
    arrays = (readonly(both_ways.indptr.astype(np.int64)), readonly(both_ways.indices), readonly(both_ways.data))
    wanted = min(max(width, _FEW_MEMBERS), MOST_MEMBERS)
    tolerance = _TOLERANCE * (MOST_MEMBERS / wanted) ** 2 * min(max(n_nodes / _FINE_NODES, 1.0), 100.0)
    members = min(max(_MOST_ENTRIES // n_nodes, LEAST_MEMBERS), wanted)
    # The scales make the push rank the entries of a row by (P^k)_vu / d_u.
    indptr, indices, weights = diffuse(
        arrays, np.ones(n_nodes), 1 / degrees, series, members, tolerance, np.float64, n_jobs
    )
    rows = np.repeat(np.arange(n_nodes), np.diff(indptr))
    values = np.log(np.maximum(1.0, weights * degrees.sum() / degrees[rows]))
    M = sp.csr_array((values.astype(np.float32), indices, indptr), shape=both_ways.shape)
    M.sort_indices()
    M.eliminate_zeros()
    M = sp.csr_array(M.maximum(M.T))
    if n_nodes == A.shape[0]:
        return M
    M = M.tocoo()
    return sp.csr_array((M.data, (linked[M.row], linked[M.col])), shape=A.shape)


def _log_factors(M: sp.csr_array, k: int, seed: int, n_jobs: int | None) -> Factors:
    """W S^-½ of M ≈ U S Wᵀ, so that M times it is U S^½, the factors of NetMF."""
    n_nodes = M.shape[0]
    Q = np.random.default_rng(seed).standard_normal((n_nodes, min(k + _EXTRA, n_nodes)), dtype=np.float32)
    for _ in range(_N_ITER + 1):
        Q = _orthonormal(product(M, Q, n_jobs), n_jobs)
    B = product(M, Q, n_jobs)  # (node, direction): M is symmetric, so this is (Qᵀ M)ᵀ
    squares, turn = np.linalg.eigh(B.T.astype(np.float64) @ B)
    squares, turn = squares[::-1][:k], turn[:, ::-1][:, :k]
    kept = squares > 16 * np.finfo(np.float32).eps * max(squares[0], 0.0)
    values = np.sqrt(squares[kept])
    W = (B @ (turn[:, kept] / values).astype(np.float32)).astype(np.float32)
    left = Q @ turn[:, kept].astype(np.float32)
    signs = np.where(np.einsum("ij,ij->j", left, W) < 0, -1, 1)  # of the eigenvalues: U = W signs
    return Factors(W * (first_signs(left) / np.sqrt(values)), values * signs)


def _orthonormal(Y: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """An orthonormal basis of the columns of Y; a column of zeros for every dimension that they lack.

    Y is turned to the eigenvectors of YᵀY and divided by their lengths, in a fraction of the time of a QR factorisation
    of long columns. The second round repairs what the first one rounded.
    """

    def square(rows: slice) -> np.ndarray:
        block = Y[rows].astype(np.float64)
        return block.T @ block

    for _ in range(2):
        squares, vectors = np.linalg.eigh(sum(map_blocks(square, row_blocks(len(Y), _ROWS), n_jobs=n_jobs)))
        kept = squares > _NO_LENGTH * squares[-1]
        Y = Y @ (vectors * np.where(kept, 1 / np.sqrt(np.where(kept, squares, 1.0)), 0.0)).astype(Y.dtype)
    return Y


def first_signs(vectors: Any) -> Any:
    """The sign of the first entry of every column that is at least half as large as its largest.

    It tells a vector from its negative, and rounding errors do not change it.
    """
    xp = array_namespace(vectors)
    large = xp.abs(vectors) >= xp.max(xp.abs(vectors), axis=0) / 2
    first = xp.argmax(xp.astype(large, xp.uint8), axis=0)
    entries = xp.take_along_axis(vectors, first[None, :], axis=0)[0]
    return xp.where(entries < 0, -xp.ones_like(entries), xp.ones_like(entries))


# --- leading eigenvectors -------------------------------------------------------------------------------


def _normalised(A: Any, width: int, n_jobs: int | None = None) -> sp.csr_array:
    """D^-½ (A + Aᵀ) D^-½ in float64, for any number of columns; zeros for nodes without edges."""
    both_ways = symmetric(A)
    degrees = np.asarray(both_ways.sum(axis=1))
    root = sp.diags_array(np.power(degrees, -0.5, out=np.zeros_like(degrees), where=degrees > 0))
    return sp.csr_array(root @ both_ways @ root)


def _eigen_factors(S: sp.csr_array, k: int, seed: int, n_jobs: int | None) -> Factors:
    """√(n/k) times the k leading eigenvectors, each divided by its eigenvalue; rows have mean square length 1."""
    n_nodes = S.shape[0]
    if n_nodes <= max(_DENSE_NODES, k + 1):
        check_host_memory(24 * n_nodes**2, f"{n_nodes} nodes need", "for all eigenvectors", "lower n_factors")
        values, vectors = np.linalg.eigh(S.toarray())
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    else:
        values, vectors = _leading_vectors(S, k, seed, n_jobs)
    safe = np.where(np.abs(values) > _LEAST_VALUE, values, np.inf)
    return Factors(vectors * (first_signs(vectors) * np.sqrt(n_nodes / k) / safe), values)


def _leading_vectors(
    S: sp.csr_array, k: int, seed: int, n_jobs: int | None, n_iter: int = 60, degree: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """The k leading eigenvalues and eigenvectors (node, k) of a symmetric S with spectrum in [−1, 1], largest first.

    Subspace iteration, each round with a Chebyshev polynomial that is small below the eigenvalues that are sought.
    It ends after `n_iter` rounds, or if no leading eigenvalue moves by more than 1e-9.
    """
    n = S.shape[0]
    width = min(k + _EXTRA, n)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, width)))[0]
    edge, before = 0.0, np.full(k, np.inf)
    for _ in range(n_iter):
        middle, half = (edge - 1.0) / 2, (edge + 1.0) / 2  # [−1, edge] is damped
        last, Y = Q, (product(S, Q, n_jobs) - middle * Q) / half
        for _ in range(degree - 1):
            last, Y = Y, (product(S, Y, n_jobs) - middle * Y) * (2 / half) - last
        Q = np.linalg.qr(Y)[0]
        values, turn = np.linalg.eigh(Q.T @ product(S, Q, n_jobs))
        values, Q = values[::-1], Q @ turn[:, ::-1]
        moved, before = np.abs(values[:k] - before).max(), values[:k]
        if moved < 1e-9:
            break
        edge = float(np.clip(values[-1], -0.9, 0.999))
    return before, Q[:, :k]


OPERATORS = {"factors": Operator(log_walks, _log_factors), "spectral": Operator(_normalised, _eigen_factors)}
