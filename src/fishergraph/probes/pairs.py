"""Features of pairs of nodes: how alike their vectors are, block by block, and how many edges they have.

    cos_b(u, v) = ⟨z_ub − m_b, z_vb − m_b⟩ / (‖z_ub − m_b‖ ‖z_vb − m_b‖),   m_b the mean of block b over the nodes

A weighted sum of cosines is the kernel of Eq. 2 with weights of its own for links. Degrees say how popular both nodes
are, which no similarity does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.graph import Graph
from fishergraph.probes.blocks import Blocks

_PAIRS = 2048  # pairs whose features are computed at once
_ROWS = 4096


class PairFeatures:
    """The features of pairs of rows of an embedding of a graph.

    Parameters
    ----------
    Z : array of shape (n_nodes, n_columns)
        The embedding.
    blocks : Blocks
        Its blocks.
    graph : Graph
        The graph that was embedded.
    directed : bool
        Whether the source and the target of a pair differ.
    n_jobs : int or None
        Threads.
    """

    def __init__(self, Z: np.ndarray, blocks: Blocks, graph: Graph, *, directed: bool, n_jobs: int | None):
        self.Z, self.blocks, self.directed, self.n_jobs = Z, blocks, directed, n_jobs
        self._mean = Z.mean(axis=0, dtype=np.float64).astype(Z.dtype)
        self._starts = np.array([part.start for _, part in blocks])
        self._norms = np.empty((len(Z), len(blocks)))
        self._lengths = np.empty(len(Z))
        map_blocks(self._measure, row_blocks(len(Z), _ROWS), n_jobs=n_jobs)
        received = np.diff(graph.indptr).astype(np.float64)
        sent = np.bincount(graph.indices, minlength=graph.n_nodes).astype(np.float64)
        self._degrees = np.log1p(np.stack([sent, received], axis=1))

    def _measure(self, rows: slice) -> None:
        block = self.Z[rows]
        self._norms[rows] = np.sqrt(self._sums(np.square(block - self._mean, dtype=np.float64)))
        self._lengths[rows] = np.sqrt(np.square(block, dtype=np.float64).sum(axis=1))

    def _sums(self, entries: np.ndarray) -> np.ndarray:
        """The sums over the columns of each block."""
        return np.add.reduceat(entries, self._starts, axis=1)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        cosines = [f"cosine of {name}" for name, _ in self.blocks]
        if self.directed:
            return [*cosines, "sent by source", "received by source", "sent by target", "received by target"]
        return [*cosines, "smaller degree", "larger degree"]

    def __call__(self, pairs: np.ndarray) -> np.ndarray:
        """The features of pairs, (pair, feature), float64."""
        return self._mapped(pairs, self._features, len(self.names))

    def similarities(self, pairs: np.ndarray) -> np.ndarray:
        """The cosines of whole vectors, (pair, 1)."""
        return self._mapped(pairs, self._similarities, 1)

    def products(self, pairs: np.ndarray) -> np.ndarray:
        """The products of all columns, (pair, column)."""
        return self._mapped(pairs, lambda pairs: self.Z[pairs[:, 0]] * self.Z[pairs[:, 1]], self.Z.shape[1])

    def _mapped(self, pairs: np.ndarray, function: Any, width: int) -> np.ndarray:
        out = np.empty((len(pairs), width))

        def fill(part: slice) -> None:
            out[part] = function(pairs[part])

        map_blocks(fill, row_blocks(len(pairs), _PAIRS), n_jobs=self.n_jobs)
        return out

    def _features(self, pairs: np.ndarray) -> np.ndarray:
        u, v = pairs.T
        products = np.multiply(self.Z[u] - self._mean, self.Z[v] - self._mean, dtype=np.float64)
        cosines = _quotients(self._sums(products), self._norms[u] * self._norms[v])
        first, second = self._degrees[u], self._degrees[v]
        if self.directed:
            return np.hstack([cosines, first, second])
        return np.hstack([cosines, np.minimum(first, second)[:, :1], np.maximum(first, second)[:, :1]])

    def _similarities(self, pairs: np.ndarray) -> np.ndarray:
        u, v = pairs.T
        products = np.multiply(self.Z[u], self.Z[v], dtype=np.float64).sum(axis=1)
        return _quotients(products, self._lengths[u] * self._lengths[v])[:, None]


def _quotients(products: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Products over lengths, zero where a vector is."""
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
