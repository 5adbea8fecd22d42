"""`NodeClassifier`: what every classifier of nodes does with its class probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from fishergraph._records import UNLABELLED, check_row_order
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph.estimators.base import FisherEstimator
from fishergraph.estimators.labels import read_labels, read_weights

IN_ORDER = "y.reindex(X.index), or y.reindex(as_graph(graph).ids) if X is not a DataFrame"


class NodeClassifier(ClassifierMixin, FisherEstimator):
    """The base of classifiers of nodes: a subclass implements `_outputs`."""

    classes_: np.ndarray

    @abstractmethod
    def _outputs(self, X: MatrixLike, graph: GraphLike) -> tuple[np.ndarray, np.ndarray, Any]:
        """Class numbers (row,), class probabilities (row, class), and the ids of the rows."""

    def predict(self, X: MatrixLike = None, *, graph: GraphLike = None) -> np.ndarray:
        """Return the most likely class of every row.

        Parameters
        ----------
        X, graph : matrix and graph
            See `fit`. The same graph, a larger one, or another one. A probe that smooths its predictions over the graph
            does so for the graph of the fit alone.

        Returns
        -------
        ndarray of shape (n_nodes,)
            One class per row.
        """
        numbers, *_ = self._outputs(X, graph)
        return self.classes_[numbers]

    def predict_proba(self, X: MatrixLike = None, *, graph: GraphLike = None) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X, graph : matrix and graph
            See `predict`.

        Returns
        -------
        ndarray of shape (n_nodes, n_classes)
            Columns in the order of `classes_`. Those of a probe are calibrated.
        """
        return self._outputs(X, graph)[1]

    def score(
        self, X: MatrixLike = None, y: object = None, sample_weight: object = None, *, graph: GraphLike = None
    ) -> float:
        """Return the accuracy on the rows that have a label in y.

        Parameters
        ----------
        X, y, sample_weight, graph : matrix, labels, weights, graph
            See `fit`; `sample_weight` has a weight for every row.

        Returns
        -------
        float
            The fraction of correct rows.
        """
        numbers, _, ids = self._outputs(X, graph)
        check_row_order(y, ids, IN_ORDER)
        predicted = self.classes_[numbers]
        classes, codes = read_labels(y, len(predicted), self.classes_)
        rows = np.flatnonzero(codes != UNLABELLED)
        weight = None if sample_weight is None else read_weights(sample_weight, len(predicted))[rows]
        return float(accuracy_score(classes[codes[rows]], predicted[rows], sample_weight=weight))
