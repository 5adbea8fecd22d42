"""Smoothed features without training, and a probe: WWL, SGC, S²GC, SIGN.

With Ã = A + I, D̃ its degrees and S = D̃^-½ Ã D̃^-½, and rows of X that are bags of words divided by their sums:

    WWL    X_{t+1} = ½ (X_t + D^-1 A X_t),      Z = [X_0 | … | X_T]       Togninalli et al. 2019, Eq. 4
    SGC    Z = S^K X                                                      Wu et al. 2019
    S²GC   Z = (1/K) Σ_{k=1…K} ((1 − α) S^k X + α X)                      Zhu and Koniusz 2021, Eq. 12
    SIGN   Z = [X | S X | … | S^r X]                                      Frasca et al. 2020, (r, 0, 0)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from fishergraph._validation import check_flag, check_integer, check_number
from fishergraph.lab.baselines.base import Probed, Task
from fishergraph.structural import power_or_zero

MOST_STEPS = 10_000  # of a smoothing of the whole graph


@dataclass(eq=False, repr=False)
class Smoothed(Probed):
    """Base class of smoothed features.

    Parameters
    ----------
    rows : bool, default=None
        Divide the rows of X by their sums. None does so if X has no negative entry.
    """

    _: KW_ONLY
    rows: bool | None = None

    def _powers(self, task: Task, n_steps: Any, *, least: int = 0) -> Iterator[np.ndarray]:
        """X, S X, …, S^n X, one after the other."""
        n_steps = check_integer(n_steps, "n_steps", least=least, most=MOST_STEPS)
        S, Z = smoother(task.A), scaled_rows(task.X, self.rows)
        yield Z
        for _ in range(n_steps):
            Z = S @ Z
            yield Z


@dataclass(eq=False, repr=False)
class WWL(Smoothed):
    """Node features of the Wasserstein Weisfeiler–Leman kernel: repeated averages with the neighbours.

    Parameters
    ----------
    n_iter : int, default=4
        T, the number of averages. The width is (T + 1) times that of X.
    columns : bool, default=False
        Then give each column mean 0 and variance 1. With rows=False this is what the authors' code does.
    """

    n_iter: int = 4
    _: KW_ONLY
    columns: bool = False

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        X = scaled_rows(task.X, self.rows)
        blocks = [StandardScaler().fit_transform(X) if check_flag(self.columns, "columns") else X]
        mean = sp.diags_array(power_or_zero(task.A.sum(axis=1), -1.0)) @ task.A
        for _ in range(check_integer(self.n_iter, "n_iter", least=0, most=MOST_STEPS)):
            blocks.append((blocks[-1] + mean @ blocks[-1]) / 2)
        return np.hstack(blocks)


@dataclass(eq=False, repr=False)
class SGC(Smoothed):
    """Simple graph convolution: the last of `n_steps` smoothings.

    Parameters
    ----------
    n_steps : int, default=2
        K, the number of smoothings.
    """

    n_steps: int = 2

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        return deque(self._powers(task, self.n_steps), maxlen=1).pop()


@dataclass(eq=False, repr=False)
class S2GC(Smoothed):
    """Simple spectral graph convolution: the mean of `n_steps` smoothings, each mixed with X.

    Parameters
    ----------
    n_steps : int, default=16
        K, the number of smoothings.
    alpha : float in [0, 1], default=0.05
        Weight of X itself.
    """

    n_steps: int = 16
    alpha: float = 0.05

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        alpha = check_number(self.alpha, "alpha", most=1.0)
        steps = self._powers(task, self.n_steps, least=1)
        X = next(steps)
        total = np.zeros_like(X)
        for step in steps:
            total += step
        return (1 - alpha) / int(self.n_steps) * total + alpha * X


@dataclass(eq=False, repr=False)
class SIGN(Smoothed):
    """Scalable inception: X and its smoothings, concatenated. On large graphs its paper uses probe="mlp".

    Parameters
    ----------
    n_steps : int, default=3
        r, the number of smoothings.
    """

    n_steps: int = 3

    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        return np.hstack(list(self._powers(task, self.n_steps)))


def smoother(A: sp.csr_array) -> sp.csr_array:
    """S = D̃^-½ (A + I) D̃^-½; a self-loop of A is kept as it is."""
    loops = sp.csr_array(sp.diags_array((A.diagonal() == 0).astype(A.dtype)))
    closed = A + loops
    root = sp.diags_array(power_or_zero(closed.sum(axis=1), -0.5))
    return sp.csr_array(root @ closed @ root)


def scaled_rows(X: Any, rows: bool | None) -> np.ndarray:
    """X as a dense array, its rows divided by their sums if `rows`; None: if no entry is negative."""
    X = X.toarray() if sp.issparse(X) else X
    if rows is None:
        rows = bool(X.min(initial=0.0) >= 0)
    return X * power_or_zero(X.sum(axis=1), -1.0)[:, None] if check_flag(rows, "rows (or None)") else X
