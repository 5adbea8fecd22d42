"""Label propagation: labels of the training nodes, spread along the edges (Zhu and Ghahramani 2002)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._progress import progress_bar
from fishergraph._validation import check_integer, check_number
from fishergraph.lab.baselines.base import Baseline, Task


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
        sums = task.A.sum(axis=1)
        mean = sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ task.A)
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
