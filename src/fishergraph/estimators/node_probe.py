"""The probe of a `FisherClassifier`: the embedding of the nodes, and `GraphProbe` on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError
from fishergraph._records import UNLABELLED, check_row_order
from fishergraph._typing import Array, MatrixLike, NodesLike
from fishergraph.estimators.asked import read_nodes_of
from fishergraph.estimators.labels import check_held_out, hold_out, read_labels, read_rows
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.estimators.node_classifier import IN_ORDER, Outputs
from fishergraph.estimators.state import ModelState
from fishergraph.graph import Graph
from fishergraph.probes.graph import GraphProbe

_FRACTION = 1 / 3  # of the labelled rows of each class, held out if there are no validation rows
_PREFIX = "probe."  # of its arrays in a model file


class NodeProbe(NamedTuple):
    """A fitted embedding, and a fitted probe of it, whose classes are class numbers."""

    embedding: FisherEmbedding
    probe: GraphProbe

    def outputs(self, X: MatrixLike, graph: Graph | None, nodes: NodesLike = None) -> Outputs:
        """What the probe says of the nodes that are asked for; of all rows if they are None."""
        ids = row_ids(X, graph)
        if nodes is None:
            P = self.probe.predict_proba(on_host(self.embedding.transform(X, graph=graph)))
            return Outputs(P.argmax(axis=1), P, ids, len(P))
        matrix: Any = X
        n_rows: int = graph.n_nodes if graph is not None else np.shape(matrix)[0]
        rows = read_nodes_of(nodes, ids, n_rows)[0]
        mask = np.zeros(n_rows, bool)
        mask[rows] = True
        kept = np.flatnonzero(mask)
        Z = on_host(self.embedding.transform(X, graph=graph, nodes=mask))
        P = self.probe.predict_proba(Z, rows=kept if n_rows == self.embedding.n_samples_fit_ else None)
        P = P[np.searchsorted(kept, rows)]
        return Outputs(P.argmax(axis=1), P, ids, n_rows, rows)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The records and the arrays of a model file."""
        entry, arrays = self.probe.pack()
        return {"probe": entry, **self.embedding.records()}, {f"{_PREFIX}{k}": array for k, array in arrays.items()}

    @classmethod
    def unpack(cls, params: dict[str, Any], state: ModelState, n_classes: int) -> NodeProbe:
        """The probe of a model file, with the parameters of its embedding."""
        names = [name for name in state.arrays if name.startswith(_PREFIX)]
        arrays = {name.removeprefix(_PREFIX): state.arrays.pop(name) for name in names}
        probe = GraphProbe.unpack(state.parts.pop("probe"), arrays)
        state.arrays |= arrays  # what is left belongs to nothing, and is refused
        embedding = FisherEmbedding.from_state(params, state)
        if probe.n_features_in_ != len(embedding.get_feature_names_out()):
            raise ValueError("the probe must have as many columns as the embedding.")
        if probe.classes_.tolist() != list(range(n_classes)):
            raise ValueError(f"the classes of the probe must be the numbers of {n_classes} classes.")
        return cls(embedding, probe)


def fit_probe(
    embedding: FisherEmbedding, X: MatrixLike, y: object, graph: Graph | None, val: object, seed: int
) -> tuple[np.ndarray, NodeProbe]:
    """The classes of the labels y, and the probe of an embedding, which is fitted to X and the graph of its rows.

    Without validation rows `val`, a third of the labelled rows of each class is held out, and the probe is fitted once
    more to all labelled rows in the end.
    """
    ids, split = row_ids(X, graph), None
    if graph is not None:  # labels are checked before the work
        split = split_labels(y, graph.n_nodes, ids, val=val, seed=seed)
    Z = on_host(embedding.fit_transform(X, graph=graph))
    split = split_labels(y, len(Z), ids, val=val, seed=seed) if split is None else split
    options: dict[str, Any] = {name: getattr(embedding, name) for name in ("random_state", "n_jobs", "verbose")}
    probe = GraphProbe(graph, blocks=embedding.get_feature_names_out().tolist(), fit_on=split.fit_on, **options)
    return split.classes, NodeProbe(embedding, probe.fit(Z, split.codes, split.train, split.val))


class LabelSplit(NamedTuple):
    """Labels as class numbers, −1 without one, and the rows that train and those that choose."""

    classes: np.ndarray
    codes: np.ndarray  # (row,)
    train: np.ndarray
    val: np.ndarray
    fit_on: str  # the rows of the last fit, as `GraphProbe` takes it

    @property
    def labels(self) -> np.ndarray:
        """The label of every row; of rows without one, any."""
        return self.classes[np.maximum(self.codes, 0)]


def split_labels(
    y: object, n_rows: int, ids: Any, *, train: object = None, val: object = None, seed: int = 0
) -> LabelSplit:
    """The labels y of rows with these ids, split.

    Without training rows `train`, all labelled rows that are not in `val` train. Without `val`, a third of the labelled
    rows of each class is held out.
    """
    check_row_order(y, ids, IN_ORDER)
    classes, codes = read_labels(y, n_rows)
    held = None if val is None else read_rows(val, n_rows, "val")
    if train is not None:
        classes, codes = _only(classes, codes, read_rows(train, n_rows, "train"), held)
    if len(classes) < 2:
        got, advice = f"one class, {classes.tolist()[0]!r}", "label rows of another one"
        raise InputError(parameter="y", expected="hold at least two classes", got=got, advice=advice)
    if held is not None:
        if not len(held):
            expected, advice = "hold a labelled row to choose the probe on", "name some, or leave val out"
            raise InputError(parameter="val", expected=expected, got="none", advice=advice)
        return LabelSplit(classes, codes, check_held_out(codes, held, classes), held, "train")
    held = hold_out(codes, _FRACTION, seed, least=1)
    if not len(held):
        expected, advice = "hold two labels of some class", "label more rows, or name validation rows with val="
        raise InputError(parameter="y", expected=expected, got="one label per class", advice=advice)
    return LabelSplit(classes, codes, check_held_out(codes, held, classes), held, "train+val")


def _only(
    classes: np.ndarray, codes: np.ndarray, train: np.ndarray, held: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The classes and class numbers of the rows that train or are held out alone."""
    kept = train
    if held is not None:
        common = np.intersect1d(train, held)
        if len(common):
            got, advice = f"{len(common)} common rows, {common[0]} the first", "remove them from one of the two"
            raise InputError(parameter="train and val", expected="be disjoint", got=got, advice=advice)
        kept = np.concatenate([train, held])
    bare = train[codes[train] == UNLABELLED]
    if len(bare) or not len(train):
        got = f"row {bare[0]} without one (the first of {len(bare)})" if len(bare) else "none"
        raise InputError(parameter="train", expected="hold rows with labels", got=got, advice="leave train out")
    present = np.unique(codes[kept][codes[kept] != UNLABELLED])
    numbers = np.full(len(codes), UNLABELLED)
    numbers[kept] = np.where(codes[kept] == UNLABELLED, UNLABELLED, np.searchsorted(present, codes[kept]))
    return classes[present], numbers


def check_left_out(given: dict[str, Any], expected: str, advice: str) -> None:
    """Raise if one of these arguments, which a probe does not have, was passed."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(parameter=name, value=value, expected=expected, advice=advice)


def row_ids(X: MatrixLike, graph: Graph | None) -> Any:
    """The ids of the rows, if they have any."""
    return getattr(X, "index", None) if hasattr(X, "iloc") else getattr(graph, "ids", None)


def on_host(Z: Array) -> np.ndarray:
    """An embedding as an array of NumPy."""
    tensor: Any = Z
    return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else np.asarray(Z)
