"""The base classes of all baselines, and the validated task that they get."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fishergraph._errors import InputError
from fishergraph._records import check_same_rows
from fishergraph._repr import short_params
from fishergraph._validation import check_seed, look_up
from fishergraph.graph import as_graph
from fishergraph.probes import PROBES
from fishergraph.probes.validation import encode, unique_labels, validate_embedding, validate_split

HIDDEN = -1  # the code of a label that no method may see


@dataclass(frozen=True)
class Task:
    """A validated task without the labels of any other node."""

    X: Any  # (node, feature), dense or csr_array, floats; no columns if there are no features
    A: sp.csr_array  # (node, node), row v lists the neighbours of v; no entries if there is no graph
    codes: np.ndarray  # (node,) class numbers of the training and validation nodes, −1 for all others
    classes: np.ndarray  # (class,) the label of each class number
    train: np.ndarray  # node numbers
    val: np.ndarray

    @property
    def n_nodes(self) -> int:
        return len(self.codes)


def validate_task(X: Any, y: Any, graph: Any, train: Any, val: Any) -> Task:
    """The task of validated inputs; X or graph may be None."""
    A: Any = None if graph is None else as_graph(graph).adjacency
    X = None if X is None else validate_embedding(X, "X")
    if A is not None and X is not None:
        check_same_rows(X.shape[0], A.shape[0])
    rows: Any = A if X is None else X
    n_nodes = int(rows.shape[0])
    y, train, val = validate_split(y, train, val, n_nodes)
    encode(y[train])  # raises unless there are two classes
    labelled = np.concatenate([train, val])
    codes = np.full(n_nodes, HIDDEN, dtype=np.int64)
    classes, codes[labelled] = unique_labels(y[labelled], "y")
    X = np.zeros((n_nodes, 0), dtype=np.float32) if X is None else X
    return Task(X, sp.csr_array((n_nodes, n_nodes)) if A is None else A, codes, classes, train, val)


class Baseline(ABC, BaseEstimator):
    """Base class of transductive classifiers of the nodes of one graph.

    Settings are plain values, so an object can be cloned, printed and pickled before and after `fit`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels of the training and validation nodes.
    proba_ : array of shape (n_nodes, n_classes)
        Class probabilities of all nodes.
    val_score_ : float
        Accuracy on the validation nodes.

    See Also
    --------
    baseline : Makes a baseline by name.

    Examples
    --------
    >>> from fishergraph.datasets import load_graph
    >>> from fishergraph.lab import baseline
    >>> cora = load_graph("cora")
    >>> model = baseline("label-propagation")
    >>> model = model.fit(None, cora.y, graph=cora.graph, train=cora.train, val=cora.val)
    >>> model.score(cora.y, cora.test)
    0.734
    """

    needs_features = True
    needs_graph = True

    __repr__ = short_params

    def fit(
        self, X: Any, y: Any, *, graph: Any = None, train: Any, val: Any, seed: int = 0, progress: Any = False
    ) -> Baseline:
        """Fit to the labels of the training nodes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_nodes, n_features), or None
            Features. None is allowed if the method uses the graph alone.
        y : array of shape (n_nodes,)
            Labels. Only those of `train` and `val` are read.
        graph : anything that `as_graph` takes, or None
            None is allowed if the method uses the features alone.
        train : array of int or bool
            Training nodes, as numbers or as a mask.
        val : array of int or bool
            Validation nodes: they stop a training and choose the strength of a probe.
        seed : int, default=0
            Seed of everything random.
        progress : bool or callable, default=False
            True shows bars. A callable is used as in `FisherEmbedding(verbose=…)`.

        Returns
        -------
        Baseline
            The fitted object.
        """
        seed = check_seed(seed)
        for name, value, needed in (("X", X, self.needs_features), ("graph", graph, self.needs_graph)):
            if needed and value is None:
                raise InputError(f"{name} must be given for {type(self).__name__}, got None.")
        task = validate_task(X, y, graph, train, val)
        self.classes_ = task.classes
        self.proba_ = self._run(task, seed, progress)
        self.val_score_ = float(np.mean(np.argmax(self.proba_[task.val], axis=1) == task.codes[task.val]))
        return self

    @abstractmethod
    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        """The class probabilities of all nodes, (node, class)."""

    def predict_proba(self, nodes: Any = None) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        nodes : array of int or bool, default=None
            Nodes, as numbers or as a mask; None is all.

        Returns
        -------
        array of shape (n, n_classes)
            Probabilities in the order of `classes_`.
        """
        check_is_fitted(self)
        return self.proba_ if nodes is None else self.proba_[np.asarray(nodes)]

    def predict(self, nodes: Any = None) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        nodes : array of int or bool, default=None
            Nodes, as numbers or as a mask; None is all.

        Returns
        -------
        array of shape (n,)
            A label for each node.
        """
        return self.classes_[np.argmax(self.predict_proba(nodes), axis=1)]

    def score(self, y: Any, nodes: Any) -> float:
        """Compute the accuracy on some nodes.

        Parameters
        ----------
        y : array of shape (n_nodes,)
            Labels of all nodes.
        nodes : array of int or bool
            The nodes to score, as numbers or as a mask.

        Returns
        -------
        float
            The fraction of correct predictions.
        """
        nodes = np.asarray(nodes)
        return float(np.mean(self.predict(nodes) == np.asarray(y)[nodes]))


@dataclass(eq=False, repr=False)
class Probed(Baseline):
    """Base class of methods that compute features of all nodes and fit a probe to them.

    Parameters
    ----------
    probe : {'logistic', 'lightgbm', 'mlp'} or object, default='logistic'
        Classifier of the features; an object has the methods of `LogisticProbe`.
    probe_options : dict, default=None
        Arguments of the named probe, for instance {"time_budget": 600}.

    Attributes
    ----------
    probe_ : object
        The fitted probe.
    """

    _: KW_ONLY
    probe: Any = "logistic"
    probe_options: dict[str, Any] | None = None

    @abstractmethod
    def _features(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        """The features of all nodes, (node, feature), computed without labels."""

    def vectors(self, X: Any, graph: Any, *, seed: int = 0, progress: Any = False) -> np.ndarray:
        """Compute the features that the probe reads, for tasks without labels.

        Parameters
        ----------
        X, graph : matrix and graph
            As in `fit`.
        seed : int, default=0
            Seed of everything random.
        progress : bool or callable, default=False
            As in `fit`.

        Returns
        -------
        array of shape (n_nodes, n_columns)
            A vector for each node.
        """
        rows = None if X is None else validate_embedding(X, "X")
        A: Any = as_graph(graph).adjacency
        rows = np.zeros((A.shape[0], 0), dtype=np.float32) if rows is None else rows
        none = np.empty(0, dtype=np.intp)
        task = Task(rows, A, np.full(A.shape[0], HIDDEN, dtype=np.int64), np.arange(0), none, none)
        return np.asarray(self._features(task, check_seed(seed), progress))

    def _run(self, task: Task, seed: int, progress: Any) -> np.ndarray:
        probe = _make_probe(self.probe, self.probe_options, seed, progress)
        Z = self._features(task, seed, progress)
        self.probe_ = probe.fit(Z, task.codes, task.train, task.val)
        proba = np.zeros((task.n_nodes, len(task.classes)))
        proba[:, probe.classes_] = probe.predict_proba(Z)
        return proba


def _make_probe(probe: Any, options: dict[str, Any] | None, seed: int, progress: Any) -> Any:
    """The probe, with the seed if it draws random numbers."""
    if not isinstance(probe, str) and hasattr(probe, "fit"):
        return probe
    kind = look_up({**PROBES, "mlp": _mlp_probe}, probe, "probe")
    defaults = {} if probe == "logistic" else {"random_state": seed, "verbose": progress}
    return kind(**{**defaults, **(options or {})})


def _mlp_probe(**options: Any) -> Any:
    from fishergraph.lab.baselines.networks import MLPProbe  # needs torch

    return MLPProbe(**options)
