"""`Baseline`: what every baseline shares, the door and the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fishergraph._repr import short_params
from fishergraph._validation import check_seed
from fishergraph.baselines.door import Task, open_task


class Baseline(ABC, BaseEstimator):
    """A classifier of the nodes of one graph, some of whose labels are known.

    A constructor stores settings, all of them plain values; `fit` works and returns self; then `predict`,
    `predict_proba` and `score` answer for the nodes of that graph. `val_score_` is the accuracy on the validation
    nodes, to choose settings by. Objects can be pickled before and after `fit`.
    """

    needs_features = True
    needs_graph = True

    __repr__ = short_params

    def fit(
        self, X: Any, y: Any, *, graph: Any = None, train: Any, val: Any, seed: int = 0, progress: Any = False
    ) -> Baseline:
        """self, fitted to the labels of the nodes `train`; `val` decides when to stop and which strength to take.

        X         features, (node, feature), dense or CSR; None where the baseline reads the graph alone
        y         a label per node. Only those of `train` and `val` are read: the others are put away at the door.
        graph     anything that `as_graph` takes; None where the baseline reads the features alone
        train, val  row numbers or masks, without a node in both
        seed      of everything random
        progress  True shows bars; a callable is used as in `FisherEmbedding(verbose=…)`
        """
        seed = check_seed(seed)
        task = open_task(self, X, y, graph, train, val)
        self.classes_ = task.classes
        self.proba_ = self._run(task, seed, progress)
        self.val_score_ = float(np.mean(np.argmax(self.proba_[task.val], axis=1) == task.codes[task.val]))
        return self

    @abstractmethod
    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        """The class probabilities of all nodes, (node, class)."""

    def predict_proba(self, nodes: Any = None) -> np.ndarray:
        """The class probabilities, (node, class), of some nodes of the graph in `fit`, or of all; rows sum to 1."""
        check_is_fitted(self)
        return self.proba_ if nodes is None else self.proba_[np.asarray(nodes)]

    def predict(self, nodes: Any = None) -> np.ndarray:
        """The most probable class of some nodes of the graph in `fit`, or of all."""
        return self.classes_[np.argmax(self.predict_proba(nodes), axis=1)]

    def score(self, y: Any, nodes: Any) -> float:
        """The share of the nodes (row numbers or a mask) that are classified as y, a label per node, says."""
        nodes = np.asarray(nodes)
        return float(np.mean(self.predict(nodes) == np.asarray(y)[nodes]))
