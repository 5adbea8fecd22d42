"""What fitted estimators say of themselves in a notebook: rows, features, blocks, layers, anchors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fishergraph._diagram import Summary
from fishergraph.axes import ScaledMap, Sharpening
from fishergraph.kernel_map import IdentityMap, NystromMap, StandardMap
from fishergraph.layer import Layer
from fishergraph.relational import RelationalStack
from fishergraph.stack import Stack

_COLUMNS = ("block", "columns", "weight", "learned")


def summarize(fitted: Mapping[str, Any]) -> Summary | None:
    """What the attributes of a fitted estimator say; None before the fit."""
    return next((summary(fitted) for name, summary in _SUMMARIES.items() if name in fitted), None)


def _fitted_on(fitted: Mapping[str, Any], rows: str) -> str:
    """The rows and columns of the fit."""
    columns = "structural columns" if fitted.get("structural_") else "features"
    return f"Fitted on {_counted(fitted['n_samples_fit_'], rows)} with {_counted(fitted['n_features_in_'], columns)}"


def _stack_summary(fitted: Mapping[str, Any]) -> Summary:
    """That of an embedding of nodes: the blocks of the output."""
    stack: Stack = fitted["stack_"]
    if isinstance(stack, RelationalStack):
        return _relational_summary(fitted, stack)
    parts = map(_learned, (stack.input_map, *stack.layers, *stack.columns))
    table = stack.kept(list(zip(stack.names, stack.widths, stack.block_weights, parts, strict=True)))
    total = sum(width for _, width, _, _ in table)
    blocks, layers = _counted(len(table), "blocks"), _counted(len(stack.layers), "layers")
    facts = (_fitted_on(fitted, "nodes"), f"{layers}, {_counted(total, 'columns')} in {blocks}")
    return Summary(facts, _COLUMNS, tuple(table))


def _relational_summary(fitted: Mapping[str, Any], stack: RelationalStack) -> Summary:
    """That of several relations: the blocks of every type of nodes."""
    weights, names = stack.weights, stack.layout.names
    table = [
        (f"{one}: {name}" if len(names) > 1 else name, part.n_outputs, weights[name], _learned(part))
        for one in names
        for name, part in stack.parts_of(one)
    ]
    relations, types = _counted(len(stack.layout.relations), "relations"), _counted(len(names), "types of nodes")
    facts = (_fitted_on(fitted, "nodes"), f"{_counted(stack.n_layers, 'layers')} of {relations} over {types}")
    return Summary(facts, _COLUMNS, tuple(table))


def _sets_summary(fitted: Mapping[str, Any]) -> Summary:
    """That of an embedding of sets: the input map and the layer."""
    layer: Layer = fitted["layer_"]
    facts = (_fitted_on(fitted, "sets"), f"Input map: {_learned(fitted['stack_'].input_map)}")
    return Summary(facts, _COLUMNS, (("sets", layer.n_outputs, 1.0, _learned(layer)),))


def _graphs_summary(fitted: Mapping[str, Any]) -> Summary:
    """That of an embedding of graphs: the readout of every stage."""
    stack: Stack = fitted["stack_"]
    stages = zip(stack.names, fitted["readouts_"], stack.block_weights, strict=True)
    table = tuple((name, layer.n_outputs, w, _learned(layer)) for name, layer, w in stages if layer is not None)
    anchors = ", ".join(str(_anchors_of(layer)) for layer in stack.layers) or "none"
    facts = (_fitted_on(fitted, "graphs"), f"Layers of nodes: {len(stack.layers)}; anchors: {anchors}")
    return Summary(facts, ("readout", *_COLUMNS[1:]), table)


def _classifier_summary(fitted: Mapping[str, Any]) -> Summary:
    """That of a classifier: the heads of its probe, or the training of its network."""
    facts = [f"{_fitted_on(fitted, 'nodes')}; {_counted(len(fitted['classes_']), 'classes')}"]
    if "probe_" in fitted:
        probe = fitted["probe_"]
        facts.append(f"{probe.val_score_:.1%} of the validation nodes right")
        return Summary(tuple(facts), ("head", "weight"), tuple(probe.chosen_.items()))
    history, best = fitted["history_"], fitted["history_"].best
    facts.append(f"Epoch {history.best_epoch} of {len(history)}")
    if best is not None and best["val_accuracy"] is not None:
        facts[-1] += f", {best['val_accuracy']:.1%} of the validation nodes right"
    config = fitted["net_"].config()
    layers = f"{_counted(config['num_layers'], 'layers')} of width {config['hidden_channels']:,}"
    return Summary((*facts, f"{layers} with {_counted(config['num_anchors'], 'anchors')} each"))


def _anchors_of(layer: Layer) -> int:
    """The number of anchors of a fitted layer."""
    return layer.family.mean_statistics(layer.theta).shape[0]


def _learned(part: Any) -> str:
    """What a stage learned, in words."""
    if isinstance(part, Layer):
        return f"{_counted(_anchors_of(part), 'anchors')}, {_learned(part.kernel_map)}"
    if isinstance(part, NystromMap):
        return _counted(part.landmarks.shape[0], "landmarks")
    if isinstance(part, ScaledMap):
        return _learned(part.kernel_map)
    words = {Sharpening: "principal axes", StandardMap: "mean and variance", IdentityMap: "no map"}
    return words[type(part)]


def _counted(number: int, words: str) -> str:
    """A number of things: 1 layer, 2 layers."""
    return f"{number:,} {words.removesuffix('s') if number == 1 and words != 'classes' else words}"


# The attribute that only one kind of fitted estimator has, and what says something of it.
_SUMMARIES = {"readouts_": _graphs_summary, "layer_": _sets_summary, "classes_": _classifier_summary}
_SUMMARIES["stack_"] = _stack_summary
