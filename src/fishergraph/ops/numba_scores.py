"""The scores of members at the parameters of their own multiset, compiled: what later E-steps of any family need.

Bytes per entry: its statistic (4·s), read once for all anchors; the parameters of a set (4·p·s) stay in the cache.
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled
from fishergraph.ops.numba_leaves import readonly


@compiled
def _scores(statistics, indptr, natural, offsets, scores):
    for v in range(len(indptr) - 1):
        for e in range(indptr[v], indptr[v + 1]):
            row = statistics[e]
            for j in range(natural.shape[1]):
                own, total = natural[v, j], offsets[v, j] - offsets[v, j]
                for k in range(len(row)):
                    total += row[k] * own[k]
                scores[e, j] = total + offsets[v, j]


def entry_scores(statistics: np.ndarray, indptr: np.ndarray, natural: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """⟨t_e, η_vj⟩ + c_vj of every entry e of every set v, (entry, anchor)."""
    scores = np.empty((len(statistics), natural.shape[1]), statistics.dtype)
    _scores(readonly(statistics), readonly(indptr), readonly(natural), readonly(offsets), scores)
    return scores
