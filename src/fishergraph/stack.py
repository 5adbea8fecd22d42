"""The stack: settings of the input map, the layers and the blocks of averaged columns, and what they learned (Eq. 2).

Its stages have names: "psi0", the input map; "psi1", …, "psiT", the layers; "walk" and "smooth", of features averaged
over the graph; and one for each kind of structural columns. `fishergraph.passes` runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, TypeVar

import numpy as np

from fishergraph._repr import short_repr
from fishergraph._typing import Sets
from fishergraph._validation import check_block_weights
from fishergraph.axes import Axes, ScaledMap, Sharpening
from fishergraph.kernel_map import Identity, Kernel, KernelMap
from fishergraph.layer import Layer
from fishergraph.multiset import Rule
from fishergraph.structural import TELLING_APART, Structure
from fishergraph.walk import Walk

# The kernel map of structural columns has at most so many landmarks: the columns are few.
_MOST_LANDMARKS = 64

T = TypeVar("T")
ColumnMap = ScaledMap | Sharpening


@dataclass(frozen=True)
class Stack:
    """The settings of a stack, and what it learned.

    layer : the settings of the first layer; `layer_at` are those of the others.
    input_kernel : the kernel of ψ_0.
    walk : how columns are averaged over the graph, or None.
    n_layers : the number of layers T.
    normalize : divide the rows of X, and the points of every layer, by their lengths.
    structure : the kinds of structural columns that are blocks, with the most columns of each.
    averages_features : whether there are the blocks "walk" and "smooth".
    block_weights : one weight per stage (Eq. 2); 0 leaves its block out of the output.
    axes, columns : what the blocks "walk" and "smooth", and those of the structure learned.
    """

    layer: Layer
    input_kernel: Kernel
    walk: Walk | None
    n_layers: int
    normalize: bool
    structure: tuple[tuple[str, int], ...] = ()
    averages_features: bool = False
    block_weights: tuple[float, ...] = ()
    input_map: KernelMap | None = None
    layers: tuple[Layer, ...] = ()
    axes: Axes | None = None
    columns: tuple[ColumnMap, ...] = ()

    __repr__ = short_repr

    @property
    def reads_counts(self) -> bool:
        """Whether the first layer takes X itself: counts live there, not in ψ_0."""
        return self.layer.family.support == "counts"

    @property
    def unit_points(self) -> bool:
        """Whether the points of a layer are unit vectors."""
        return self.normalize and self.layer.family.unit_points

    @property
    def names(self) -> list[str]:
        """The names of the stages."""
        features = ("walk", "smooth") if self.averages_features else ()
        return [*map("psi{}".format, range(self.n_layers + 1)), *features, *dict(self.structure)]

    @property
    def column_names(self) -> list[str]:
        """The names of the stages of columns, which follow the layers."""
        return self.names[self.n_layers + 1 :]

    @property
    def widths(self) -> list[int]:
        """The columns of every stage, once the stack is fitted."""
        assert self.input_map is not None
        return [part.n_outputs for part in (self.input_map, *self.layers, *self.columns)]

    @property
    def blocks(self) -> Any:
        """Name and width of every block of the output, once the stack is fitted."""
        return self.kept(list(zip(self.names, self.widths, strict=True)))

    @property
    def titles(self) -> Any:
        """The names of the columns of the output, once the stack is fitted."""
        return block_titles(self.blocks)

    @property
    def again(self) -> Callable[..., Stack]:
        """What makes settings of the same kind of stack."""
        return Stack

    def of_one_graph(self) -> Stack:
        """Return the stack as one that runs over one kind of edges, or raise."""
        return self

    def layer_at(self, t: int) -> Layer:
        """The settings of layer t = 1, …, T."""
        layer = self.layer if t == 1 else replace(self.layer, family=self.layer.family.later)
        return layer if t < self.n_layers or layer.kernel.maps_last else replace(layer, kernel=Identity())

    def asked_widths(self, n_features: int, sets: Sets) -> list[int]:
        """The most columns of every stage, for X of so many features.

        Data give at most as many landmarks as rows, and as many anchors as members.
        """
        dim, members = min(self.layer.dim, max(sets.n_sets, 1)), max(sets.n_entries, sets.n_points, 1)
        widths = [self.input_kernel.width(dim, n_features)]
        points = n_features if self.reads_counts else widths[0]
        for t in range(1, self.n_layers + 1):
            layer = self.layer_at(t)
            phi = layer.phi_width(min(layer.n_anchors, members), sets.slots * points)
            widths.append(points := layer.kernel.width(dim, phi))
        if self.averages_features and self.walk is not None:
            axes = min(self.walk.axes(n_features), max(sets.n_sets, 1))
            widths += [self.layer.kernel.width(dim, axes), min(dim, axes)]
        for kind, width in self.structure:
            layer = self.mapping_layer(kind)
            mapped = layer.kernel.width(min(dim, layer.dim), width)
            widths.append(min(self.layer.dim, width) if kind in TELLING_APART else mapped)
        return widths

    def mapping_layer(self, name: str) -> Layer:
        """The layer whose kernel maps the columns of a stage."""
        return self.layer if name == "walk" else replace(self.layer, dim=min(self.layer.dim, _MOST_LANDMARKS))

    def kept(self, per_stage: Sequence[T]) -> list[T]:
        """The entries of a list with one per stage, of the stages in the output."""
        return list(compress(per_stage, self.block_weights))


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
    make: Callable[..., Stack] = Stack,
) -> Stack:
    """The settings of a stack with the blocks that X and a graph give, if there are `features` and a `graph`.

    `make` is the kind of stack. Counts and members of several nodes are not averaged. There is structure if the points
    of a layer are nodes.
    """
    if layer.family.support == "counts" or rule.lifts:
        walk = None
    kinds, weights = (), {}
    if structure is not None and graph and rule.keeps_nodes:
        kinds, weights = structure.blocks(layer.dim, features=features), structure.weights(features=features)
    stack = make(layer, layer.kernel, walk, n_layers, normalize, kinds, walk is not None and features)
    return replace(stack, block_weights=check_block_weights(block_weights, stack.names, weights))


def block_titles(blocks: Sequence[tuple[str, int]]) -> np.ndarray:
    """The names of the columns of blocks: psi0_0, psi0_1, …."""
    return np.array([f"{name}_{k}" for name, width in blocks for k in range(width)], dtype=object)
