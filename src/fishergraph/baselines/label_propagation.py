"""Label propagation: the labels of the training nodes, spread along the edges (Zhu and Ghahramani 2002)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._progress import progress_bar
from fishergraph._validation import check_integer, check_number
from fishergraph.baselines.base import Baseline
from fishergraph.baselines.door import Task


class LabelPropagation(Baseline):
    """F ← D^-1 A F with F of the training nodes held at their labels, which ends at the harmonic function.

    max_iter   most steps
    tol        largest change of an entry at which the steps end

    Classes are then scaled to the shares q that they have among the training nodes (class mass normalisation, their
    Section 2.3): with few labels F is nearly the same at all nodes, and its largest entry says little. A node that no
    label reaches has the shares q. Features are not read.
    """

    needs_features = False

    def __init__(self, max_iter: int = 1000, *, tol: float = 1e-6):
        self.max_iter = max_iter
        self.tol = tol

    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        max_iter, tol = check_integer(self.max_iter, "max_iter", least=1, most=10**6), check_number(self.tol, "tol")
        given = np.eye(len(task.classes))[task.codes[task.train]]  # (training node, class)
        sums = task.A.sum(axis=1)
        mean = sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ task.A)
        F = np.zeros((task.n_nodes, given.shape[1]))
        F[task.train] = given
        with progress_bar(progress, unit="step")("propagating", max_iter) as bar:
            for self.n_iter_ in range(1, max_iter + 1):
                before, F = F, np.asarray(mean @ F)
                F[task.train] = given
                bar.update(1)
                if np.abs(F - before).max() <= tol:
                    break
        return _shares(F, task.train, given.mean(axis=0))


def _shares(F: np.ndarray, train: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Class probabilities, (node, class): q_c F_vc / Σ_u F_uc, as shares of a node, or q where F_v = 0."""
    masses = np.delete(F, train, axis=0).sum(axis=0)
    scaled = F * np.where(masses > 0, prior / np.where(masses > 0, masses, 1), 1)
    scaled[train] = F[train]  # what is given is given
    total = scaled.sum(axis=1, keepdims=True)
    return np.where(total > 0, scaled / np.where(total > 0, total, 1), prior)
