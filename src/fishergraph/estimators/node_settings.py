"""The settings of a node embedding: its layers, and the blocks of averaged features and structure beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fishergraph._validation import check_block_weights
from fishergraph.layer import Layer
from fishergraph.multiset import Rule
from fishergraph.stack import Stack
from fishergraph.structural import Structure
from fishergraph.walk import Walk

# Fields of the settings that may not change between fit and transform, with the parameters they come from.
STACK_PARAMETERS = {
    "n_layers": "n_layers",
    "layer.n_anchors": "n_anchors",
    "layer.dim": "dim",
    "layer.family": "family",
    "layer.em": "em",
    "layer.kernel": "kernel",
    "layer.counts": "counts",
    "input_kernel": "kernel",
    "walk": "walk",
    "structure": "structure",
    "normalize": "normalize",
}


def stack_settings(
    layer: Layer,
    n_layers: int,
    rule: Rule,
    walk: Walk | None,
    structure: Structure | None,
    block_weights: Mapping[str, float] | Sequence[float] | None,
    *,
    normalize: bool,
    features: bool,
    graph: bool,
) -> Stack:
    """The settings of a stack with the blocks that X and a graph give, if there are `features` and a `graph`.

    Counts and members of several nodes are not averaged. There is structure if the points of a layer are nodes.
    """
    if layer.family.support == "counts" or rule.lifts:
        walk = None
    kinds, weights = (), {}
    if structure is not None and graph and rule.keeps_nodes:
        kinds, weights = structure.blocks(layer.dim, features=features), structure.weights(features=features)
    stack = Stack(layer, layer.kernel, walk, n_layers, normalize, kinds, walk is not None and features)
    return replace(stack, block_weights=check_block_weights(block_weights, stack.names, weights))
