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

from collections.abc import Callable, Iterator
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
from fishergraph.structural.both_ways import Edges, merged
from fishergraph.structural.rows import Chunk, Matrix, Rows, over_blocks, row_sums

WINDOW = 20  # steps of the walk (benchmarks/bench_structure.py compares it with the ten of NetMF)
MOST_MEMBERS, LEAST_MEMBERS = 256, 16  # entries of a row that are kept
_FEW_MEMBERS = 128  # as many as there are columns, but no fewer than this unless the graph is large
_MOST_ENTRIES = 2**24  # of all rows together: large graphs keep fewer entries of a row
_MOST_NUMBERS = 2**27  # of the columns of all nodes: large graphs get fewer columns
_LEAST_COLUMNS = 16
_TOLERANCE = 1e-5  # mass that a node may keep to itself, per neighbour, for 256 members; four times as much for half
_FINE_NODES = 3000  # of a graph with this tolerance; it grows with the nodes beyond, up to 100 times
EXTRA = 32  # columns of the range finder beyond those that are returned
_N_ITER = 2  # power iterations of the range finder
_ROWS = 4096  # of a block of a product
WALKED = 2**22  # entries of the rows that are walked from at once
# What is in the storage while factors are learned.
_MADE = ("log-walks", f"range-{_N_ITER + 1}", "image")
_NO_LENGTH = 1e-12  # squares of lengths below this share of the largest are rounding
_DENSE_NODES = 512  # up to here the full eigendecomposition is quick, and exact for repeated eigenvalues
_LEAST_VALUE = 1e-3  # an eigenvalue nearer to zero than this gives no column: others could not be told from it


class Factors(NamedTuple):
    """A basis (node, column), and the values (column,) that make it the columns of the graph it was learned from."""

    basis: np.ndarray
    values: np.ndarray

    __repr__ = short_repr


class Operator(NamedTuple):
    """An operator of a graph, (edges, columns) → matrix, and how it is factored, (matrix, k, seed, edges) → factors.

    The matrix is as fine as so many columns can show.
    """

    matrix: Callable[[Edges, int], Rows]
    factor: Callable[[Rows, int, int, Edges], Factors]


def learn_factors(operator: Operator, edges: Edges, width: int, seed: int, name: str) -> tuple[Factors, Any]:
    """Factors of an operator, and the columns of the graph itself, (node, column); zeros beyond the rank."""
    n_nodes, storage = edges.A.n_rows, edges.storage
    width = most_columns(n_nodes, width)
    M = operator.matrix(edges, width)
    basis, values = operator.factor(M, min(width, n_nodes), seed, edges)
    missing = width - len(values)
    if missing:
        basis = np.pad(basis, ((0, 0), (0, missing)))
    factors = Factors(basis.astype(np.float32, copy=False), np.pad(values, (0, missing)).astype(np.float32))
    del basis
    for part, array in factors._asdict().items():
        storage.keep(f"{name}-{part}", array)
    columns = storage.table(name, (n_nodes, width), partial(write_product, M, factors.basis, edges))
    storage.forget(*_MADE)
    return factors, columns


def most_columns(n_nodes: int, width: int) -> int:
    """The columns that a graph of so many nodes has, of those that are wanted."""
    return min(width, max(_MOST_NUMBERS // max(n_nodes, 1), _LEAST_COLUMNS))


def write_product(M: Rows, basis: np.ndarray, edges: Edges, out: Any) -> None:
    """Write an operator times a basis."""
    for rows in M.chunks(edges.storage.most_entries):
        out[rows] = _times(M, rows, basis, edges.n_jobs)


def product(M: Rows, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """M X, of a matrix in memory."""
    return _times(M, slice(0, M.n_rows), X, n_jobs)


def _times(M: Rows, rows: slice, X: np.ndarray, n_jobs: int | None, out: np.ndarray | None = None) -> np.ndarray:
    """Consecutive rows of M X by row blocks on threads; the bits do not depend on their number."""
    arrays = M.read(rows)
    if out is None:
        out = np.empty((rows.stop - rows.start, X.shape[1]), np.result_type(M.weights.dtype, X.dtype))
    multiply = partial(_product_rows, *arrays, readonly(np.ascontiguousarray(X)), out)
    map_blocks(multiply, row_blocks(len(out), _ROWS), n_jobs=n_jobs)
    return out


def _multiply(M: Rows, X: Matrix, edges: Edges, out: Matrix) -> None:
    """Write M X, tile by tile."""
    for k in range(X.n_tiles):
        tile = X.tile(k)
        for rows in M.chunks(edges.storage.most_entries):
            with out.filling(k, rows) as values:
                _times(M, rows, tile, edges.n_jobs, values)


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


# --- log-walks ------------------------------------------------------------------------------------------


def log_walks(edges: Edges, width: int = MOST_MEMBERS) -> Rows:
    """log max(1, vol · (mean of P^1 … P^20)_vu / d_u), cut and symmetric, float32; no entries without edges."""
    storage = edges.storage
    walks = merged(lambda: storage.rows("walks", lambda: _cut_walks(edges, width)), "log-walks", storage, largest=True)
    storage.forget("walks")
    return walks


def kept_members(n_linked: int, width: int) -> int:
    """The most entries of a row of the log-walks, if so many nodes have edges."""
    wanted = min(max(width, _FEW_MEMBERS), MOST_MEMBERS)
    return min(max(_MOST_ENTRIES // max(n_linked, 1), LEAST_MEMBERS), wanted)


def _cut_walks(edges: Edges, width: int) -> Iterator[Chunk]:
    """(sizes, nodes, logarithms) of consecutive rows, cut to their largest entries."""
    both, storage = edges.both, edges.storage
    degrees = row_sums(both, storage.most_entries)
    n_linked, volume = int(np.count_nonzero(degrees)), degrees[degrees > 0].sum()
    series = np.append(1e-9, np.full(WINDOW, 1 / WINDOW))  # the push needs a positive first term
    wanted = min(max(width, _FEW_MEMBERS), MOST_MEMBERS)
    tolerance = _TOLERANCE * (MOST_MEMBERS / wanted) ** 2 * min(max(n_linked / _FINE_NODES, 1.0), 100.0)
    members = kept_members(n_linked, width)
    degrees[degrees == 0] = np.inf  # no entry of such a row is left
    right = 1 / np.where(np.isinf(degrees), 1.0, degrees)
    # The scales make the push rank the entries of a row by (P^k)_vu / d_u.
    scales = np.broadcast_to(1.0, right.shape), right, series
    options: dict[str, Any] = {"block_edges": storage.block_edges, "after_block": storage.give_back}
    for rows in row_blocks(both.n_rows, max(min(storage.most_entries, WALKED) // members, 1)):
        with storage.whole(both) as arrays:
            indptr, nodes, weights = diffuse(
                arrays, *scales, members, tolerance, np.float64, edges.n_jobs, rows=rows, **options
            )
        values = np.log(np.maximum(1.0, weights * volume / np.repeat(degrees[rows], np.diff(indptr))))
        M = sp.csr_array((values.astype(np.float32), nodes, indptr), shape=(len(indptr) - 1, both.n_rows))
        M.sort_indices()
        M.eliminate_zeros()
        yield np.diff(M.indptr), M.indices.astype(both.indices.dtype, copy=False), M.data


def _log_factors(M: Rows, k: int, seed: int, edges: Edges) -> Factors:
    """W S^-½ of M ≈ U S Wᵀ, so that M times it is U S^½, the factors of NetMF."""
    n_nodes, storage, n_jobs = M.n_rows, edges.storage, edges.n_jobs
    shape = n_nodes, min(k + EXTRA, n_nodes)
    done = max((step for step in range(1, _N_ITER + 2) if storage.has(f"range-{step}")), default=0)
    Q = storage.matrix(f"range-{done}", shape, np.float32, partial(_fill_normal, seed))
    for step in range(done + 1, _N_ITER + 2):

        def fill(out: Matrix, Q: Matrix = Q) -> None:
            _multiply(M, Q, edges, out)
            _orthonormalise(out, n_jobs)

        Q = storage.matrix(f"range-{step}", shape, np.float32, fill)
        storage.forget(f"range-{step - 1}")
    # M is symmetric, so this is (Qᵀ M)ᵀ, (node, direction).
    B = storage.matrix("image", shape, np.float32, partial(_multiply, M, Q, edges))
    squares, turn = np.linalg.eigh(_gram(B, n_jobs))
    squares, turn = squares[::-1][:k], turn[:, ::-1][:, :k]
    kept = squares > 16 * np.finfo(np.float32).eps * max(squares[0], 0.0)
    values, turn = np.sqrt(squares[kept]), turn[:, kept]
    right, left = (turn / values).astype(np.float32), turn.astype(np.float32)
    of_eigenvalues, of_vectors = _signs(B, Q, right, left, n_jobs)
    basis, scale = np.empty((n_nodes, len(values)), np.float32), of_vectors / np.sqrt(values)
    for rows in row_blocks(n_nodes, _ROWS):
        basis[rows] = (B[rows] @ right) * scale
    return Factors(basis, values * of_eigenvalues)


def _fill_normal(seed: int, out: Matrix) -> None:
    """Write normal random numbers, row after row."""
    rng = np.random.default_rng(seed)
    for rows in row_blocks(out.shape[0], _ROWS):
        out[rows] = rng.standard_normal((rows.stop - rows.start, out.shape[1]), dtype=np.float32)


def _gram(Y: Matrix, n_jobs: int | None) -> np.ndarray:
    """YᵀY in float64, added block by block."""

    def square(rows: slice) -> np.ndarray:
        block = Y[rows].astype(np.float64)
        return block.T @ block

    return np.asarray(sum(over_blocks(square, Y.shape[0], _ROWS, n_jobs)))


def _orthonormalise(Y: Matrix, n_jobs: int | None) -> None:
    """Make the columns of Y orthonormal; a column of zeros for every dimension that they lack.

    Y is turned to the eigenvectors of YᵀY and divided by their lengths, in a fraction of the time of a QR factorisation
    of long columns. The second round repairs what the first one rounded.
    """
    for _ in range(2):
        squares, vectors = np.linalg.eigh(_gram(Y, n_jobs))
        kept = squares > _NO_LENGTH * squares[-1]
        turned = (vectors * np.where(kept, 1 / np.sqrt(np.where(kept, squares, 1.0)), 0.0)).astype(Y.dtype)

        def turn(rows: slice, turned: np.ndarray = turned) -> None:
            Y[rows] = Y[rows] @ turned

        map_blocks(turn, row_blocks(Y.shape[0], _ROWS), n_jobs=n_jobs)


def _signs(
    B: Matrix, Q: Matrix, right: np.ndarray, left: np.ndarray, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The signs of the eigenvalues, and those of the eigenvectors, which are the columns of Q times `left`."""

    def part(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        vectors = Q[rows] @ left
        return np.abs(vectors).max(axis=0), np.einsum("ij,ij->j", vectors, B[rows] @ right)

    largest, sums = zip(*over_blocks(part, Q.shape[0], _ROWS, n_jobs), strict=True)
    half = np.max(largest, axis=0) / 2
    signs = np.zeros(left.shape[1], np.float32)
    for rows in row_blocks(Q.shape[0], _ROWS):
        vectors = Q[rows] @ left
        large = np.abs(vectors) >= half
        found = vectors[np.argmax(large, axis=0), np.arange(len(signs))]
        signs = np.where((signs == 0) & large.any(axis=0), np.where(found < 0, -1, 1), signs)
        if signs.all():
            break
    return np.where(np.sum(sums, axis=0) < 0, -1, 1), signs.astype(np.float32)


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


def _normalised(edges: Edges, width: int) -> Rows:
    """D^-½ (A + Aᵀ) D^-½ in float64, for any number of columns; zeros for nodes without edges."""
    both_ways = symmetric(edges.A.csr())
    degrees = np.asarray(both_ways.sum(axis=1))
    root = sp.diags_array(np.power(degrees, -0.5, out=np.zeros_like(degrees), where=degrees > 0))
    S = sp.csr_array(root @ both_ways @ root)
    return Rows(S.indptr.astype(np.int64), S.indices, S.data)


def symmetric(A: Any) -> sp.csr_array:
    """A + Aᵀ in float64: the edges of a directed graph count both ways."""
    A = sp.csr_array(A, dtype=np.float64)
    return sp.csr_array(A + A.T)


def _eigen_factors(S: Rows, k: int, seed: int, edges: Edges) -> Factors:
    """√(n/k) times the k leading eigenvectors, each divided by its eigenvalue; rows have mean square length 1."""
    n_nodes = S.n_rows
    if n_nodes <= max(_DENSE_NODES, k + 1):
        check_host_memory(24 * n_nodes**2, f"{n_nodes} nodes need", "for all eigenvectors", "lower n_factors")
        values, vectors = np.linalg.eigh(S.csr().toarray())
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    else:
        values, vectors = _leading_vectors(S, k, seed, edges.n_jobs)
    safe = np.where(np.abs(values) > _LEAST_VALUE, values, np.inf)
    return Factors(vectors * (first_signs(vectors) * np.sqrt(n_nodes / k) / safe), values)


def _leading_vectors(
    S: Rows, k: int, seed: int, n_jobs: int | None, n_iter: int = 60, degree: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """The k leading eigenvalues and eigenvectors (node, k) of a symmetric S with spectrum in [−1, 1], largest first.

    Subspace iteration, each round with a Chebyshev polynomial that is small below the eigenvalues that are sought.
    It ends after `n_iter` rounds, or if no leading eigenvalue moves by more than 1e-9.
    """
    n = S.n_rows
    width = min(k + EXTRA, n)
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
