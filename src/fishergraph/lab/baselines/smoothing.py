"""Features or labels, smoothed along the edges without training: WWL, SGC, S²GC, SIGN, label propagation.

With Ã = A + I, D̃ its degrees and S = D̃^-½ Ã D̃^-½, and rows of X that are bags of words divided by their sums:

    WWL    X_{t+1} = ½ (X_t + D^-1 A X_t),      Z = [X_0 | … | X_T]       Togninalli et al. 2019, Eq. 4
    SGC    Z = S^K X                                                      Wu et al. 2019
    S²GC   Z = (1/K) Σ_{k=1…K} ((1 − α) S^k X + α X)                      Zhu and Koniusz 2021, Eq. 12
    SIGN   Z = [X | S X | … | S^r X]                                      Frasca et al. 2020, (r, 0, 0)

These features are classified by a probe. Label propagation smooths the labels (Zhu and Ghahramani 2002).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from fishergraph._progress import progress_bar
from fishergraph._validation import check_flag, check_integer, check_number
from fishergraph.lab.baselines.base import Baseline, Probed, Task
from fishergraph.structural.columns import power_or_zero

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
        mean = neighbour_means(task.A)
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


@dataclass(eq=False, repr=False)
class LabelPropagation(Baseline):
    """Iterate F ← D^-1 A F with F of the training nodes fixed, to the harmonic function.

    Features are not used. The classes are then scaled to their frequencies q among the training nodes (class mass
    normalisation, their Section 2.3): with few labels F is nearly the same at all nodes, and its largest entry means
    little. A node that no label reaches gets q.

    Parameters
    ----------
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=1e-6
        Stop at this largest change of an entry.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations.
    """

    needs_features = False

    max_iter: int = 1000
    _: KW_ONLY
    tol: float = 1e-6

    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        max_iter, tol = check_integer(self.max_iter, "max_iter", least=1, most=10**6), check_number(self.tol, "tol")
        labels = np.eye(len(task.classes))[task.codes[task.train]]  # (training node, class)
        mean = neighbour_means(task.A)
        F = np.zeros((task.n_nodes, labels.shape[1]))
        F[task.train] = labels
        with progress_bar(progress, unit="step")("propagating", max_iter) as bar:
            for self.n_iter_ in range(1, max_iter + 1):
                before, F = F, np.asarray(mean @ F)
                F[task.train] = labels
                bar.update(1)
                if np.abs(F - before).max() <= tol:
                    break
        return _normalised_masses(F, task.train, labels.mean(axis=0))


def _normalised_masses(F: np.ndarray, train: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Class probabilities, (node, class): q_c F_vc / Σ_u F_uc divided by the sum over c; q if F_v = 0."""
    masses = np.delete(F, train, axis=0).sum(axis=0)
    scaled = F * np.where(masses > 0, prior / np.where(masses > 0, masses, 1), 1)
    scaled[train] = F[train]
    total = scaled.sum(axis=1, keepdims=True)
    return np.where(total > 0, scaled / np.where(total > 0, total, 1), prior)


def neighbour_means(A: sp.csr_array) -> sp.csr_array:
    """D^-1 A; the row of a node without neighbours is zero."""
    return sp.csr_array(sp.diags_array(power_or_zero(A.sum(axis=1), -1.0)) @ A)


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
