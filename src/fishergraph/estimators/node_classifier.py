"""`NodeClassifier`: what every classifier of nodes does with its class probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from fishergraph._errors import InputError
from fishergraph._records import UNLABELLED, check_row_order
from fishergraph._typing import GraphLike, MatrixLike, NodesLike
from fishergraph.estimators.base import FisherEstimator
from fishergraph.estimators.labels import read_labels, read_weights

IN_ORDER = "y.reindex(X.index), or y.reindex(as_graph(graph).ids) if X is not a DataFrame"


class Outputs(NamedTuple):
    """What a classifier says of some rows, or of all.

    numbers : class numbers, (row,).
    proba : class probabilities, (row, class).
    ids : the ids of all rows, if there are any.
    n_rows : the number of all rows.
    rows : the numbers of the rows that are meant, or the slice of all.
    """

    numbers: np.ndarray
    proba: np.ndarray
    ids: Any
    n_rows: int
    rows: Any = slice(None)


class NodeClassifier(ClassifierMixin, FisherEstimator):
    """The base of classifiers of nodes: a subclass implements `_outputs`."""

    classes_: np.ndarray

    @abstractmethod
    def _outputs(self, X: MatrixLike, graph: GraphLike, nodes: NodesLike) -> Outputs:
        """What the classifier says of the nodes that are asked for; of all rows if they are None."""

    def predict(self, X: MatrixLike = None, *, graph: GraphLike = None, nodes: NodesLike = None) -> np.ndarray:
        """Return the most likely class of every row, or of some nodes alone.

        Parameters
        ----------
        X, graph : matrix and graph
            See `fit`. The same graph, a larger one, or another one. A probe that smooths its predictions over the graph
            does so for the graph of the fit alone.
        nodes : mask, ids or row numbers, optional
            The nodes that are wanted, as in `FisherEmbedding.transform`: only their neighbourhoods are computed. Rows
            that have the embedding of the fit get the probabilities of the fit. Those of a network are the same up to
            rounding.

        Returns
        -------
        ndarray of shape (n_nodes,)
            One class per row.
        """
        numbers = self._outputs(X, graph, nodes).numbers
        return self.classes_[numbers]

    def predict_proba(self, X: MatrixLike = None, *, graph: GraphLike = None, nodes: NodesLike = None) -> np.ndarray:
        """Return the probabilities of the classes, of every row or of some nodes alone.

        Parameters
        ----------
        X, graph, nodes : matrix, graph and nodes
            See `predict`.

        Returns
        -------
        ndarray of shape (n_nodes, n_classes)
            Columns in the order of `classes_`. Those of a probe are calibrated.
        """
        return self._outputs(X, graph, nodes).proba

    def score(
        self,
        X: MatrixLike = None,
        y: object = None,
        sample_weight: object = None,
        *,
        graph: GraphLike = None,
        nodes: NodesLike = None,
    ) -> float:
        """Return the accuracy on the rows, or on some nodes, that have a label in y.

        Parameters
        ----------
        X, y, sample_weight, graph : matrix, labels, weights, graph
            See `fit`; `sample_weight` has a weight for every row.
        nodes : mask, ids or row numbers, optional
            The nodes that are scored, see `predict`; y has a label for every row all the same.

        Returns
        -------
        float
            The fraction of correct rows.
        """
        out = self._outputs(X, graph, nodes)
        check_row_order(y, out.ids, IN_ORDER)
        predicted = self.classes_[out.numbers]
        classes, codes = read_labels(y, out.n_rows, self.classes_)
        labelled = codes[out.rows] != UNLABELLED
        if not labelled.any():
            raise InputError(parameter="nodes", expected="have a label in y, at least one of them", got="none")
        weight = None if sample_weight is None else read_weights(sample_weight, out.n_rows)[out.rows][labelled]
        truth = classes[codes[out.rows][labelled]]
        return float(accuracy_score(truth, predicted[labelled], sample_weight=weight))
