"""`WalkRows`: where walks from one node end, as the blocks of averaged columns weigh them.

    h_v = row v of Σ_{k<K} α (1 − α)^k P^k + (1 − α)^K P^K,    p_vu = h_vu b_u / Σ_u h_vu b_u,    s_vu = h_vu b_u / b_v

p are the weights of the means μ, which sum to one, s those of the sums (`fishergraph.walk`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph.walk import Walk, member_weights

_RECENT = 4


class WalkRows:
    """The steps of a walk, transposed."""

    def __init__(self, sets: Any, walk: Walk):
        n = sets.n_sets
        weights = np.ones(len(sets.indices)) if sets.weights is None else np.asarray(sets.weights, np.float64)
        steps = sp.csr_array((weights, sets.indices, sets.indptr), shape=(n, n))
        mass = steps @ np.ones(n)
        self.walk = walk
        self.back: Any = sp.csr_array((sp.diags_array(np.divide(1.0, mass, out=np.zeros(n), where=mass > 0)) @ steps).T)
        self.ends = lru_cache(maxsize=_RECENT)(self._ends)  # several blocks ask for the same two rows
        self.member_weights = member_weights(np.empty((n, 0)), sets)[:, 0]

    def _ends(self, v: int) -> np.ndarray:
        """h_v, (node,); a walk that reaches an empty multiset is lost."""
        under_way, ended = np.zeros(self.back.shape[0]), np.zeros(self.back.shape[0])
        under_way[v] = 1
        for _ in range(self.walk.n_steps):
            ended += self.walk.teleport * under_way
            under_way = (1 - self.walk.teleport) * (self.back @ under_way)
        return ended + under_way

    def means(self, v: int) -> np.ndarray:
        """p_v, (node,)."""
        weights = self.ends(v) * self.member_weights
        return weights / weights.sum()

    def sums(self, v: int) -> np.ndarray:
        """s_v, (node,)."""
        return self.ends(v) * self.member_weights / self.member_weights[v]
