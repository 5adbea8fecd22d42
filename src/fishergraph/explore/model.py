"""What a fitted model adds to a page: attention, words for its anchors, predictions, features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fishergraph._arrays import as_floats, is_table
from fishergraph._errors import InputError, InputTypeError
from fishergraph._progress import Progress
from fishergraph._records import row_labels
from fishergraph.estimators.table_input import names_of_features
from fishergraph.explain import Explainer
from fishergraph.explore.columns import Column, category_column, coded_column, number_column
from fishergraph.explore.inputs import Nodes, places

_PAIRS = 8  # of nodes whose similarity tells whether the model made the embedding
_FAR = 2e-3  # by which it may differ
_ODD = 3.0  # anomaly score from which a reason is given: the oddest twentieth in one of them
_WORDS = 3  # columns of X that describe an anchor
_REASONS = {
    "context": "being unlike its neighbours",
    "discord": "its neighbours, which are unlike each other",
    "novelty": "being unlike all others",
}


@dataclass(eq=False)
class Explained:
    """What was learned from a model.

    Attributes
    ----------
    name : str
        What the page calls it.
    attention : AttentionRows or None
        The attention in the first layer.
    words : list of str or None
        What its anchors stand for.
    columns : list of Column
        Predictions, and how odd nodes are.
    """

    name: str
    attention: Any = None
    words: list[str] | None = None
    columns: list[Column] = field(default_factory=list)


def in_node_order(X: Any, nodes: Nodes) -> Any:
    """Features in the order of the embedding: by the index of a table, else as they are."""
    if X is None:
        return None
    labels = row_labels(X)
    if labels is None:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if n != nodes.n:
            expected = f"have one row for each of the {nodes.n:,} nodes"
            raise InputError(parameter="X", value=n, expected=expected, advice="pass the features that were embedded")
        return X
    place = places(np.array([str(label) for label in labels.tolist()]), nodes.ids.astype(str))
    if (place < 0).any():
        absent = nodes.ids[int(np.argmin(place))].item()
        expected = "have a row for every node of the embedding"
        raise InputError(parameter="X", value=absent, expected=expected, got=f"none for {absent!r}")
    return X.iloc[place]


def read_model(model: Any, X: Any, feature_names: Any, nodes: Nodes, progress: Progress) -> Explained:
    """Ask a fitted embedding, or a classifier on one, about the nodes; raises if it did not make the embedding."""
    with progress("model", 1) as bar:
        columns: list[Column] = []
        if hasattr(model, "predict_proba"):
            columns = _predictions(model, X, nodes)
            embedding = getattr(model, "embedding_", None)
        else:
            embedding = model
        found = Explained(type(model).__name__, columns=columns)
        if embedding is not None:
            _explain(found, embedding, X, feature_names, nodes)
        bar.update(1)
    return found


def _predictions(model: Any, X: Any, nodes: Nodes) -> list[Column]:
    """The class of every node, and the probability of that class."""
    proba = np.asarray(model.predict_proba(X, graph=nodes.graph))
    classes = [str(label) for label in model.classes_]
    return [
        category_column("prediction", proba.argmax(axis=1), classes, role="prediction"),
        number_column("confidence", np.round(proba.max(axis=1).astype(np.float64), 4), role="confidence"),
    ]


def _explain(found: Explained, model: Any, X: Any, feature_names: Any, nodes: Nodes) -> None:
    widths = [width for _, width in getattr(model, "blocks_", None) or ()]
    if not widths:
        expected, got = "be a fitted FisherEmbedding or FisherClassifier", type(model).__name__
        raise InputTypeError(
            parameter="model", expected=expected, got=got, advice="fit it first, or load it from its file"
        )
    if sum(widths) != nodes.Z.shape[1]:
        raise _other_model(f"one whose embedding has {sum(widths):,} columns and not {nodes.Z.shape[1]:,}")
    explainer = Explainer(model, X, graph=nodes.graph, feature_names=feature_names)
    _check_similarities(explainer, nodes)
    nodes.blocks = list(model.blocks_)
    if explainer.layers:
        first = explainer.layers[0]
        found.columns += _anomalies(explainer)
        found.attention = explainer.attention_all(blocks=[first])[first]
        found.words = _anchor_words(explainer, first, found.attention.attention.shape[1])


def _check_similarities(explainer: Explainer, nodes: Nodes) -> None:
    """Raise if the model gives other similarities than the embedding has."""
    rng = np.random.default_rng(0)
    names = explainer.ids.tolist()
    for v, w in rng.integers(nodes.n, size=(_PAIRS, 2)).tolist():
        mine = float(nodes.Z[v].astype(np.float64) @ nodes.Z[w])
        scale = float(np.linalg.norm(nodes.Z[v]) * np.linalg.norm(nodes.Z[w])) or 1.0
        theirs = float(explainer.explain(names[v], names[w]).value)
        if abs(mine - theirs) > _FAR * scale:
            raise _other_model(
                f"another one: the similarity of {nodes.ids[v]} and {nodes.ids[w]} is {mine:.3g} in the embedding and "
                f"{theirs:.3g} by the model"
            )


def _other_model(got: str) -> InputError:
    return InputError(
        parameter="model",
        expected="be the one that made the embedding, with the same features and graph",
        got=f"{got} (without a seed every fit learns another model, and may give another number of columns)",
        advice="save the model in the run that writes the embedding, embed again with this one, or leave it out",
    )


def _anomalies(explainer: Explainer) -> list[Column]:
    """How odd every node is, and in which way."""
    odd = explainer.anomaly_scores()
    note = "−log(1 − rank): 3 is the oddest twentieth, 4.6 the oddest hundredth of the nodes."
    scores = number_column("anomaly", np.round(odd.scores.astype(np.float64), 2), role="anomaly", note=note)
    found = zip(odd.reasons.tolist(), (odd.scores >= _ODD).tolist(), strict=True)
    reasons = [_REASONS.get(reason, reason) if is_odd else None for reason, is_odd in found]
    return [scores, coded_column("odd by", reasons, role="anomaly")]


def _anchor_words(explainer: Explainer, block: str, n_anchors: int) -> list[str] | None:
    """The columns that set the nodes of each anchor apart; None for a single anchor."""
    if n_anchors < 2:
        return None
    described = explainer.describe_anchors(block=block, n_columns=_WORDS)
    columns, anchors = described.columns, described.anchors["anchor"].tolist()
    words = []
    for anchor in anchors:
        own = np.flatnonzero(np.asarray(columns["anchor"]) == anchor)
        named = [f"{columns['name'][k]} {'high' if columns['z'][k] > 0 else 'low'}" for k in own[:_WORDS].tolist()]
        words.append(", ".join(named))
    return words if len(words) == n_anchors else words[:n_anchors] + [""] * (n_anchors - len(words))


def feature_table(X: Any, names: Any, model: Any) -> tuple[Any, list[str]]:
    """X as floats, dense or sparse, and the names of its columns; None and none without X."""
    if X is None:
        return None, []
    encoder = getattr(model, "encoder_", None)
    X = encoder.transform(X) if encoder is not None and is_table(X) else X
    rows, known = as_floats(X, "X"), names_of_features(model)
    if names is None:
        names = X.columns if is_table(X) else known if known is not None and len(known) == rows.shape[1] else None
    listed = [f"x{k}" for k in range(rows.shape[1])] if names is None else [str(name) for name in names]
    if len(listed) != rows.shape[1]:
        expected = f"name the {rows.shape[1]:,} columns of X"
        raise InputError(parameter="feature_names", expected=expected, got=f"{len(listed):,} names")
    return rows, listed
