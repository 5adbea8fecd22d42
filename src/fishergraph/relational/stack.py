"""`RelationalStack`: the settings of a stack over several relations, and what it learned (Eq. 2).

The nodes of a type have the blocks "psi0", of their features; "psi1:cites", …, one for every layer and relation that
goes into the type; and those of columns, which are learned from the nodes of all types together.

The points of a type after a layer are made of parts: ψ of each of its relations, and its points before that layer if no
relation goes from the type to itself, since nothing else would say who the node is. A single part is used as it is. Of
k parts, each is projected to the dim / k leading principal axes of its rows, so that points keep their width:

    x_v = (P_1 ψ_1(v), …, P_k ψ_k(v)),    ⟨x_v, x_v'⟩ ≈ Σ_r ⟨ψ_r(v), ψ_r(v')⟩
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError
from fishergraph._repr import short_repr
from fishergraph._typing import Array
from fishergraph._validation import check_integer
from fishergraph.graphs.relations import Key, check_key, relation_labels
from fishergraph.kernel_map import KernelMap
from fishergraph.layer import Layer
from fishergraph.stack import Stack, block_titles


class NodeType(NamedTuple):
    """A type of nodes: its name, the number of columns of its own features, and their names, if they have any.

    n_features : 0 if its features are columns from the edges.
    """

    name: str
    n_features: int
    features: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Layout:
    """The types of nodes and the relations between them, in the order of the fit."""

    types: tuple[NodeType, ...]
    relations: tuple[Key, ...]

    __repr__ = short_repr

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the types."""
        return tuple(one.name for one in self.types)

    @cached_property
    def labels(self) -> dict[Key, str]:
        """The name of every relation in the names of blocks."""
        return relation_labels(self.relations)

    def into(self, node_type: str) -> list[Key]:
        """The relations that go into a type, in the order of their names."""
        return sorted(key for key in self.relations if key[2] == node_type)

    def keeps_points(self, node_type: str) -> bool:
        """Whether the points of a type are a part of its next ones: no relation goes from the type to itself."""
        return not any(key[0] == node_type for key in self.into(node_type))

    def n_parts(self, node_type: str) -> int:
        """How many parts the points of a type are made of."""
        return len(self.into(node_type)) + self.keeps_points(node_type)

    def plain(self) -> dict[str, Any]:
        """The layout as JSON."""
        types = [[one.name, one.n_features, None if one.features is None else list(one.features)] for one in self.types]
        return {"types": types, "relations": [list(key) for key in self.relations]}

    @classmethod
    def read(cls, entry: dict[str, Any]) -> Layout:
        """The layout that `plain` wrote, validated."""
        types = []
        for name, n_features, features in entry["types"]:
            if not isinstance(name, str) or not all(isinstance(one, str) for one in features or ()):
                raise TypeError("the names of types and of their features must be texts; get the file again.")
            n_features = check_integer(n_features, "the features of a type", least=0)
            types.append(NodeType(name, n_features, None if features is None else tuple(features)))
            if features is not None and len(features) != n_features:
                raise ValueError(
                    f"the {n_features} features of {name!r} have {len(features)} names; get the file again."
                )
        relations = tuple(tuple(key) for key in entry["relations"])
        for key in relations:
            check_key(key)
        names = {one.name for one in types}
        distinct = len(set(relations)) == len(relations) > 0 and len(names) == len(types)
        if not distinct or not {end for key in relations for end in (key[0], key[2])} <= names:
            raise ValueError("relations must be named once and go between the types of the file; get the file again.")
        return cls(tuple(types), relations)  # type: ignore[arg-type]


class Titles(dict[str, np.ndarray]):
    """The names of the columns of every type; a slice is of all of them in one list, as scikit-learn shows them."""

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return super().__getitem__(key)
        return [f"{name}: {title}" for name, titles in self.items() for title in titles][key]


class Mix(NamedTuple):
    """How the parts of points become points: the principal axes of each part as columns, (column, axis)."""

    axes: tuple[Array, ...]


@dataclass(frozen=True)
class RelationalStack(Stack):
    """The settings of a stack over several relations, and what it learned.

    `input_map` and `layers` of the base are not used; `axes` and `columns` are those of all nodes together.

    layout : the types and relations.
    inputs : the input map of every type.
    relation_layers : the layers of every relation.
    mixes : of every type and layer but the last, how its points are made; None if they have one part.
    """

    layout: Layout = Layout((), ())
    inputs: tuple[KernelMap, ...] = ()
    relation_layers: tuple[tuple[Layer, ...], ...] = ()
    mixes: tuple[tuple[Mix | None, ...], ...] = ()

    __repr__ = short_repr

    @property
    def names(self) -> list[str]:
        """The names of the blocks of all types."""
        layers = [f"psi{t}:{self.layout.labels[key]}" for t in self._numbers for key in self.layout.relations]
        return ["psi0", *layers, *self.column_names]

    @property
    def column_names(self) -> list[str]:
        features = ("walk", "smooth") if self.averages_features else ()
        return [*features, *dict(self.structure)]

    @property
    def _numbers(self) -> range:
        return range(1, self.n_layers + 1)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every block, by name."""
        return dict(zip(self.names, self.block_weights, strict=True))

    def parts_of(self, node_type: str) -> list[tuple[str, Any]]:
        """The blocks in the output of a type, with what each of them learned."""
        layout = self.layout
        layers = dict(zip(layout.relations, self.relation_layers, strict=True))
        found: list[tuple[str, Any]] = [("psi0", self.inputs[layout.names.index(node_type)])]
        for t in self._numbers:
            into = [key for key in layout.relations if key[2] == node_type]
            found += [(f"psi{t}:{layout.labels[key]}", layers[key][t - 1]) for key in into]
        found += zip(self.column_names, self.columns, strict=True)
        weights = self.weights
        return [(name, part) for name, part in found if weights[name] != 0]

    def blocks_of(self, node_type: str) -> list[tuple[str, int]]:
        """The names and widths of the blocks in the output of a type, once the stack is fitted."""
        return [(name, part.n_outputs) for name, part in self.parts_of(node_type)]

    @property
    def blocks(self) -> Any:
        """The blocks of the only type, or those of every type by its name."""
        found = {name: self.blocks_of(name) for name in self.layout.names}
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def titles(self) -> Any:
        """The names of the columns of the only type, or those of every type by its name."""
        found = Titles({name: block_titles(self.blocks_of(name)) for name in self.layout.names})
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def again(self) -> Callable[..., Stack]:
        """What makes settings of the same types and relations."""
        return partial(RelationalStack, layout=self.layout)

    def of_one_graph(self) -> Stack:
        """Raise: a stack of relations needs them."""
        kinds = ", ".join(map(repr, self.layout.labels.values()))
        expected, advice = f"have the relations of the fit, {kinds}", "pass them, or fit again with one graph"
        raise InputError(parameter="graph", expected=expected, got="one graph", advice=advice)

    def of_type(self, input_map: KernelMap | None) -> Stack:
        """The settings of the input map of a type."""
        return Stack(self.layer, self.input_kernel, None, self.n_layers, self.normalize, input_map=input_map)

    def of_columns(self) -> Stack:
        """The stack of the columns of all nodes together, without layers."""
        parts = {"structure": self.structure, "averages_features": self.averages_features, "axes": self.axes}
        stack = Stack(self.layer, self.input_kernel, self.walk, 0, self.normalize, columns=self.columns, **parts)
        return replace(stack, block_weights=(1.0,) * len(stack.names))


def part_width(dim: int, n_parts: int, width: int) -> int:
    """How many axes of a part of that width are kept."""
    return min(max(dim // n_parts, 1), width)


def principal_columns(sample: np.ndarray, n_axes: int) -> np.ndarray:
    """The leading principal axes of rows about the origin, as columns; their signs are fixed."""
    if n_axes == sample.shape[1]:
        return np.eye(n_axes, dtype=sample.dtype)
    wide = sample.astype(np.float64)
    vectors = np.linalg.eigh(wide.T @ wide)[1][:, ::-1][:, :n_axes]
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(n_axes)])
    return np.ascontiguousarray(vectors * signs, dtype=sample.dtype)
