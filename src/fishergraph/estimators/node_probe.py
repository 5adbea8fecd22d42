"""The probe of a `FisherClassifier`: the embedding of the nodes, and `GraphProbe` on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError
from fishergraph._records import check_row_order
from fishergraph._typing import Array, MatrixLike
from fishergraph.estimators.labels import check_held_out, hold_out, read_labels, read_rows
from fishergraph.estimators.node import FisherEmbedding
from fishergraph.estimators.node_classifier import IN_ORDER
from fishergraph.estimators.state import ModelState
from fishergraph.graph import Graph
from fishergraph.probes.graph import GraphProbe

_FRACTION = 1 / 3  # of the labelled rows of each class, held out if there are no validation rows
_PREFIX = "probe."  # of its arrays in a model file


class NodeProbe(NamedTuple):
    """A fitted embedding, and a fitted probe of it, whose classes are class numbers."""

    embedding: FisherEmbedding
    probe: GraphProbe

    def proba(self, X: MatrixLike, graph: Graph | None) -> np.ndarray:
        """Class probabilities, (row, class)."""
        return self.probe.predict_proba(_on_host(self.embedding.transform(X, graph=graph)))

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
    Z = _on_host(embedding.fit_transform(X, graph=graph))
    check_row_order(y, row_ids(X, graph), IN_ORDER)
    classes, codes = read_labels(y, len(Z))
    if len(classes) < 2:
        got, advice = f"one class, {classes.tolist()[0]!r}", "label rows of another one"
        raise InputError(parameter="y", expected="hold at least two classes", got=got, advice=advice)
    options: dict[str, Any] = {"random_state": embedding.random_state, "verbose": embedding.verbose}
    if val is None:
        held, options["fit_on"] = hold_out(codes, _FRACTION, seed, least=1), "train+val"
        if not len(held):
            expected, advice = "hold two labels of some class", "label more rows, or name validation rows with val="
            raise InputError(parameter="y", expected=expected, got="one label per class", advice=advice)
    else:
        held = read_rows(val, len(Z), "val")
        if not len(held):
            expected, advice = "hold a labelled row to choose the probe on", "name some, or leave val out"
            raise InputError(parameter="val", expected=expected, got="none", advice=advice)
    train = check_held_out(codes, held, classes)
    probe = GraphProbe(graph, blocks=embedding.get_feature_names_out().tolist(), **options)
    return classes, NodeProbe(embedding, probe.fit(Z, codes, train, held))


def check_left_out(given: dict[str, Any], expected: str, advice: str) -> None:
    """Raise if one of these arguments, which a probe does not have, was passed."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(parameter=name, value=value, expected=expected, advice=advice)


def row_ids(X: MatrixLike, graph: Graph | None) -> Any:
    """The ids of the rows, if they have any."""
    return getattr(X, "index", None) if hasattr(X, "iloc") else getattr(graph, "ids", None)


def _on_host(Z: Array) -> np.ndarray:
    """An embedding as an array of NumPy."""
    tensor: Any = Z
    return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else np.asarray(Z)
