"""A small graph with everything that an undirected one without weights lacks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def directed_graph(n_nodes: int, density: float = 0.04, seed: int = 2) -> sp.csr_array:
    """A directed, weighted graph with loops and nodes without members."""
    A = sp.random_array((n_nodes, n_nodes), density=density, rng=np.random.default_rng(seed), format="csr")
    A.data += 0.1
    return A
