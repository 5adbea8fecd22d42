"""Smoothing of class probabilities over a graph: PageRank, and Correct & Smooth (Huang et al., 2021).

Both use the symmetric operator S = D^{-1/2} (A + I) D^{-1/2} of the undirected graph, whose eigenvalues lie in (−1, 1].
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fishergraph.graph import Graph

STEPS = 10  # of PageRank
TELEPORT = 0.1
_SPREAD_STEPS = 20  # of each half of Correct & Smooth
_MOST_SCALE = 1000.0  # of a residual: one that hardly arrives is not magnified


def symmetric_operator(graph: Graph) -> sp.csr_array:
    """S = D^{-1/2} (A + I) D^{-1/2}, float64; an edge has the larger weight of its two directions."""
    A = graph.adjacency.astype(np.float64)
    loops = sp.csr_array(A.maximum(A.T.tocsr()) + sp.eye_array(graph.n_nodes, format="csr"))
    root = 1 / np.sqrt(np.asarray(loops.sum(axis=1)).ravel())  # (node,)
    return sp.csr_array(sp.diags_array(root) @ loops @ sp.diags_array(root))


def pagerank_smooth(S: sp.csr_array, P: np.ndarray, teleport: float = TELEPORT, n_steps: int = STEPS) -> np.ndarray:
    """Q_k = (1 − teleport) S Q_{k−1} + teleport P with Q_0 = P, after `n_steps` steps, (node, class)."""
    Q = P
    for _ in range(n_steps):
        Q = (1 - teleport) * (S @ Q) + teleport * P
    return Q


def spread_residuals(S: sp.csr_array, P: np.ndarray, Y: np.ndarray, train: np.ndarray, share: float) -> np.ndarray:
    """P + the residuals Y − P[train], spread over the graph and rescaled: the first half of Correct & Smooth.

    A residual that arrives at a node has the direction of the spread ones and the mean size of those of labelled nodes.
    Nodes that no residual reaches keep their row of P.
    """
    residuals = np.zeros_like(P)
    residuals[train] = Y - P[train]
    size = np.abs(residuals[train]).sum(axis=1).mean()
    spread = pagerank_smooth(S, residuals, 1 - share, _SPREAD_STEPS)
    lengths = np.abs(spread).sum(axis=1, keepdims=True)
    scale = size / np.where(lengths > 0, lengths, 1.0)
    scale[scale > _MOST_SCALE] = 1.0
    spread *= scale
    spread[train] = residuals[train]
    return P + spread


def spread_labels(S: sp.csr_array, P: np.ndarray, Y: np.ndarray, train: np.ndarray, share: float) -> np.ndarray:
    """The rows of P, those of `train` replaced by Y, smoothed: the second half. Rows sum to one."""
    start = P.copy()
    start[train] = Y
    return unit_sums(np.maximum(pagerank_smooth(S, start, 1 - share, _SPREAD_STEPS), 0.0))


def unit_sums(P: np.ndarray) -> np.ndarray:
    """The rows of P divided by their sums; a row of zeros becomes uniform."""
    sums = P.sum(axis=1, keepdims=True)
    return np.where(sums > 0, P / np.where(sums > 0, sums, 1.0), 1 / P.shape[1])


def smoothed(
    S: sp.csr_array, P: np.ndarray, Y: np.ndarray, train: np.ndarray, correct: float | None, smooth: float
) -> np.ndarray:
    """Correct & Smooth: the probabilities P of all nodes, corrected unless `correct` is None, then smoothed."""
    P = P if correct is None else spread_residuals(S, P, Y, train, correct)
    return spread_labels(S, P, Y, train, smooth)
