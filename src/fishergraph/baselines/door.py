"""The door of the baselines: features, labels, a graph and two sets of nodes; other labels stay outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._alignment import check_same_rows
from fishergraph._arrays import as_floats, check_finite_rows
from fishergraph.graph import as_graph
from fishergraph.probes.door import check_split

HIDDEN = -1


@dataclass(frozen=True)
class Task:
    """What a baseline is given."""

    X: Any  # (node, feature) dense or csr_array, floats; no columns where there are no features
    A: sp.csr_array  # (node, node), row v lists what v hears; no entries where there is no graph
    codes: np.ndarray  # (node,) class numbers of the training and validation nodes; −1 for all others
    classes: np.ndarray  # the label of each class number
    train: np.ndarray  # node numbers
    val: np.ndarray

    @property
    def n_nodes(self) -> int:
        return len(self.codes)


def open_task(model: Any, X: Any, y: Any, graph: Any, train: Any, val: Any) -> Task:
    """The task, or the sentence that says what is wrong with it."""
    name = type(model).__name__
    if model.needs_features and X is None:
        raise ValueError(f"X must be the features of the nodes for {name}, got None; pass a (node, feature) matrix.")
    if model.needs_graph and graph is None:
        raise ValueError(f"graph must be given for {name}, got None; pass what `as_graph` takes.")
    A: Any = None if graph is None else as_graph(graph).adjacency
    X = None if X is None else features(X)
    if A is not None and X is not None:
        check_same_rows(X.shape[0], A.shape[0])
    given: Any = A if X is None else X
    n_nodes = int(given.shape[0])
    y, train, val = check_split(y, train, val, n_nodes, what="node")
    classes, known = np.unique(y[np.concatenate([train, val])], return_inverse=True)
    if len(np.unique(known[: len(train)])) < 2:
        raise ValueError(f"train must hold at least two classes, got only {y[train[0]]!r}; add nodes of another.")
    codes = np.full(n_nodes, HIDDEN, dtype=np.int64)
    codes[np.concatenate([train, val])] = known
    X = np.zeros((n_nodes, 0), dtype=np.float32) if X is None else X
    return Task(X, sp.csr_array((n_nodes, n_nodes)) if A is None else A, codes, classes, train, val)


def features(X: Any) -> Any:
    """X as a dense or CSR matrix of finite floats."""
    X = as_floats(X, "X")
    if X.ndim != 2:
        raise ValueError(
            f"X must be a matrix of numbers, one row a node, got shape {X.shape} and dtype {X.dtype}; pass features."
        )
    check_finite_rows(X, "X")
    return X
