"""Features for a graph without any: what the edges alone say about a node.

- "projection": three degree features and a random projection of the neighbourhoods of one to three steps, as
  in FastRP. Two nodes come close when they reach the same nodes.
- "degree": a one-hot code of the degree. It names no node, so it carries over from one graph to another.
- "spectral": leading eigenvectors of the normalised adjacency. They show the coarse communities.
- "factors": factors of the logarithm of random walks of up to twenty steps, as in NetMF. Edges count both ways. They
  separate communities best, but their axes belong to one graph: on a changed graph the columns are others.
- "local": log-degrees, triangles, clustering, PageRank and core numbers, seven columns that name no node.

Every kind gives finite rows, zeros for a node without edges, and depends on nothing but
the graph, the dimension and the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_weight_scale
from fishergraph._parallel import one_blas_thread, progress_steps
from fishergraph._typing import GraphLike
from fishergraph._validation import MOST_COLUMNS, check_host_memory, check_integer, check_seed, look_up
from fishergraph.counters import STEP, mix
from fishergraph.graph import Graph, as_graph
from fishergraph.structural_factors import LOCAL_COLUMNS, factor_columns, fixed_signs, leading_vectors, local_columns

N_POWERS = 3  # steps of the walk in "projection"
SPARSITY = 3  # one entry in so many of the random matrix is not zero (Achlioptas)
DEGREE_SCALE = 0.1  # log-degrees rarely pass 10, so the three columns stay below the unit rows beside them
MAX_BINS = 32  # log2 bins reach 2**30 edges at a node
DENSE_NODES = 512  # up to here the full eigendecomposition is quick, and exact for repeated eigenvalues
BLOCK = 1 << 14  # rows of the random matrix drawn at once


def structural_features(graph: GraphLike, kind: str = "projection", dim: int = 128, seed: int = 0) -> np.ndarray:
    """Features of the nodes from the edges of a graph alone.

    Parameters
    ----------
    graph : graph
        Anything that `as_graph` takes.
    kind : {"projection", "degree", "spectral", "factors", "local"}, default="projection"
        Random projections of the adjacency powers with degrees, degree histograms, leading eigenvectors, factors of
        log-walks as in NetMF, or local columns. A graph without edges gives zeros, except for "degree".
    dim : int, default=128
        The number of features; for "degree" at most 32, for "local" at most 7.
    seed : int, default=0
        Of the random projection and of the first vector of the eigensolver.

    Returns
    -------
    ndarray of shape (n_nodes, dim)
        The features, float32.

    See Also
    --------
    FisherEmbedding : Uses them for ``X=None``.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import structural_features
    >>> structural_features(np.array([[0, 1], [1, 2]]), "degree", dim=3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    build = look_up(_KINDS, kind, "a structure")
    width = describe_structure(kind, dim, seed)["width"]
    graph = as_graph(graph)
    check_weight_scale(graph.weights, np.dtype(np.float32))
    # Features, what they are made of, and a product: four arrays of their size at most.
    needed = 4 * 4 * graph.n_nodes * width
    check_host_memory(needed, f"{graph.n_nodes} nodes need", "for structural features", "lower dim")
    with one_blas_thread():  # sums of several threads would have other bits at another number of them
        return build(graph, width, check_seed(seed))


def describe_structure(kind: str = "projection", dim: int = 128, seed: int = 0) -> dict[str, Any]:
    """What a run record needs to make the same features again; "width" is their number."""
    look_up(_KINDS, kind, "a structure")
    dim = check_integer(dim, "dim", least=4 if kind == "projection" else 1, most=MOST_COLUMNS)
    width = min(dim, {"degree": MAX_BINS, "local": LOCAL_COLUMNS}.get(kind, dim))
    record: dict[str, Any] = {"kind": kind, "dim": dim, "width": width}
    if kind not in ("degree", "local"):
        record["seed"] = check_seed(seed)
    if kind == "projection":
        record |= {"n_powers": N_POWERS, "sparsity": SPARSITY, "degree_scale": DEGREE_SCALE}
    return record


# --- projection -----------------------------------------------------------------------------------------


def _projection(graph: Graph, dim: int, seed: int) -> np.ndarray:
    """[0.1 · log-degrees | mean over k of normalise(Pᵏ L R)], P = D⁻¹A, L = diag(d^-1/2), R very sparse."""
    A = sp.csr_array(graph.adjacency, dtype=np.float32)
    incoming, outgoing = _degrees(A)
    P = sp.csr_array(sp.diags_array(power_or_zero(incoming, -1.0).astype(np.float32)) @ A)
    degrees = np.log1p(np.stack([incoming, outgoing], axis=1))  # (node, 2)
    neighbours = P @ degrees[:, :1].astype(np.float32)  # (node, 1)
    out = np.zeros((graph.n_nodes, dim), dtype=np.float32)
    out[:, :2], out[:, 2:3] = DEGREE_SCALE * degrees, DEGREE_SCALE * neighbours
    reach = random_rows(graph.n_nodes, dim - 3, seed)  # (node, dim - 3)
    reach *= power_or_zero(outgoing, -0.5).astype(np.float32)[:, None]
    advance = progress_steps(1.0, N_POWERS) or (lambda _: None)
    for _ in range(N_POWERS):
        reach = P @ reach
        out[:, 3:] += _unit_rows(reach) / N_POWERS
        advance(1)
    return out


def random_rows(n: int, dim: int, seed: int) -> np.ndarray:
    """A very sparse random matrix (n, dim): ±√3 with probability 1/6 each, else 0.

    Entry (i, j) is a hash of (seed, i, j), so the matrix of a larger graph begins with the same rows.
    """
    out = np.empty((n, dim), dtype=np.float32)
    scramble = mix.py_func  # on arrays NumPy needs no compilation
    start = scramble(np.array([seed], dtype=np.uint64) + STEP)
    columns = np.arange(1, dim + 1, dtype=np.uint64) * STEP
    for first in range(0, n, BLOCK):
        rows = np.arange(first, min(first + BLOCK, n), dtype=np.uint64)
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


def _degree(graph: Graph, dim: int, seed: int) -> np.ndarray:
    """One-hot bins of the number of members: 0, 1, 2–3, 4–7, …; the last bin holds all that is larger."""
    counts = np.diff(graph.indptr)
    bins = np.frexp(counts.astype(np.float64))[1]  # 0 for 0, else 1 + floor(log2)
    out = np.zeros((graph.n_nodes, dim), dtype=np.float32)
    out[np.arange(graph.n_nodes), np.minimum(bins, dim - 1)] = 1
    return out


# --- spectral -------------------------------------------------------------------------------------------


def _spectral(graph: Graph, dim: int, seed: int) -> np.ndarray:
    """√(n/k) times the k leading eigenvectors of D^-1/2 (A + Aᵀ) D^-1/2, then zeros up to `dim`.

    The rows have mean square length 1 if every node has an edge. A sign is fixed by the first entry of at least
    half the largest size.
    """
    A = sp.csr_array(graph.adjacency, dtype=np.float64)
    both_ways = A + A.T
    degrees = _degrees(both_ways)[0]
    scale = sp.diags_array(power_or_zero(degrees, -0.5))
    S = sp.csr_array(scale @ both_ways @ scale)
    n, k = graph.n_nodes, min(dim, graph.n_nodes)
    vectors = _dense_leading(S, k) if n <= max(DENSE_NODES, k + 1) else leading_vectors(S, k, seed)
    vectors = fixed_signs(vectors)
    out = np.zeros((n, dim), dtype=np.float32)
    out[:, :k] = vectors * np.sqrt(n / k)
    out[degrees == 0] = 0  # the vectors of the null space say nothing about a node without edges
    return out


def _dense_leading(S: Any, k: int) -> np.ndarray:
    """The k leading eigenvectors (node, k), largest eigenvalue first."""
    check_host_memory(24 * S.shape[0] ** 2, f"{S.shape[0]} nodes need", "for all eigenvectors", "lower dim")
    return np.linalg.eigh(S.toarray())[1][:, ::-1][:, :k]


# --- factors and local columns --------------------------------------------------------------------------


def _factors(graph: Graph, dim: int, seed: int) -> np.ndarray:
    return factor_columns(graph.adjacency, dim, seed)


def _local(graph: Graph, dim: int, seed: int) -> np.ndarray:
    return local_columns(graph.adjacency)[:, :dim]


_KINDS: dict[str, Callable[[Graph, int, int], np.ndarray]] = {
    "projection": _projection,
    "degree": _degree,
    "spectral": _spectral,
    "factors": _factors,
    "local": _local,
}
