"""NetMF (Qiu et al. 2018): factors of the matrix that skip-gram on random walks factors implicitly, and a probe.

    M = log max(1, vol / (b T) Σ_{r=1…T} P^r D^-1),    M ≈ U S Vᵀ,    Z = U √S

P = D^-1 A is the random walk of the undirected graph, vol the sum of its degrees d, T the window and b the number of
negative samples. The matrix is full: n² numbers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from fishergraph._validation import check_host_memory, check_integer, check_number
from fishergraph.lab.baselines.base import Probed, Task
from fishergraph.structural.columns import power_or_zero


@dataclass(eq=False, repr=False)
class NetMF(Probed):
    """Factors of the log-walk matrix. Features are not used.

    Parameters
    ----------
    dim : int, default=128
        Width.
    window : int, default=10
        Steps of the walk T.
    n_negative : float, default=1.0
        The number of negative samples b.
    """

    needs_features = False

    dim: int = 128
    _: KW_ONLY
    window: int = 10
    n_negative: float = 1.0

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        M = netmf_matrix(task.A, self.window, self.n_negative)
        options: Any = {"n_iter": 5, "random_state": seed}
        n_axes = min(check_integer(self.dim, "dim", least=1), len(M))
        U, S, _ = randomized_svd(M, n_axes, **options)
        return U * np.sqrt(S)


def netmf_matrix(A: Any, window: int, n_negative: float = 1.0) -> np.ndarray:
    """M, (node, node), float32; rows of nodes without edges are zero."""
    window = check_integer(window, "window", least=1, most=1000)
    b = check_number(n_negative, "n_negative", strict=True)
    n_nodes = A.shape[0]
    check_host_memory(12 * n_nodes**2, f"{n_nodes} nodes need", "for NetMF's matrix", "use a smaller graph")
    both_ways = sp.csr_array(A.maximum(A.T), dtype=np.float32)
    degrees = np.asarray(both_ways.sum(axis=1, dtype=np.float64))
    inverse = power_or_zero(degrees, -1.0).astype(np.float32)
    P = sp.csr_array(sp.diags_array(inverse) @ both_ways)
    power: Any = P.toarray()
    total = power.copy()
    for _ in range(window - 1):
        power = P @ power
        total += power
    total *= np.float32(degrees.sum() / (b * window)) * inverse  # columns are divided by their degrees
    return np.log(np.maximum(total, 1, out=total), out=total)
