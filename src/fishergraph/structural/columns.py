"""Columns of nodes that are computed from the graph alone: random projections, degrees."""
# SciPy declares no shapes.
# pyright: reportOptionalSubscript=false

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fishergraph._parallel import progress_steps
from fishergraph.counters import STEP, mix
from fishergraph.graph import Graph

N_POWERS = 3  # steps of the walk in "projection"
SPARSITY = 3  # one entry in so many of the random matrix is not zero (Achlioptas)
DEGREE_SCALE = 0.1  # log-degrees rarely pass 10, so the three columns stay below the unit rows beside them
MAX_BINS = 32  # log2 bins reach 2**30 edges at a node
BLOCK = 1 << 14  # rows of the random matrix drawn at once

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


def degree_columns(indptr: np.ndarray, width: int) -> np.ndarray:
    """One-hot bins of the number of members: 0, 1, 2–3, 4–7, …; the last bin holds all that is larger."""
    counts = np.diff(indptr)
    bins = np.frexp(counts.astype(np.float64))[1]  # 0 for 0, else 1 + floor(log2)
    out = np.zeros((len(counts), width), dtype=np.float32)
    out[np.arange(len(counts)), np.minimum(bins, width - 1)] = 1
    return out
