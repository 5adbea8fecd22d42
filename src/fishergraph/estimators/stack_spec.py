"""What a stack is, fitted (`Stack`) and asked for (`StackSpec`), and how wide its blocks are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fishergraph._repr import short_repr
from fishergraph.family import GaussianMixture
from fishergraph.kernel_map import KernelMap, fit_nystrom
from fishergraph.layer import Layer, LayerSpec
from fishergraph.ops import choose_engine, named_engine
from fishergraph.ops.place import NUMPY, Place

# A walk carries as many directions of wide features as two blocks have columns, and at least so many; but where they
# would be more numbers than this together, beyond 131,072 features with the defaults, as many as that, and at least 64.
_LEAST_DIRECTIONS = 256
_MOST_NUMBERS = 2**26


@dataclass(frozen=True)
class Stack:
    """The fitted state: the input map ψ_0, the layers, and what features go through before they are walked."""

    input_map: KernelMap
    layers: tuple[Layer, ...]  # the first is that of the walks where there is a `walk_map`
    walk_map: KernelMap | None = None

    __repr__ = short_repr

    @property
    def widths(self) -> list[int]:
        """The number of columns of ψ_0, …, ψ_T."""
        return [self.input_map.n_outputs, *(layer.kernel_map.n_outputs for layer in self.layers)]

    def moved(self, move: Callable[[Any], Any]) -> Stack:
        """The stack with its arrays somewhere else."""
        walk_map = None if self.walk_map is None else self.walk_map.moved(move)
        return Stack(self.input_map.moved(move), tuple(layer.moved(move) for layer in self.layers), walk_map)


@dataclass(frozen=True)
class StackSpec:
    """What is asked of the stack: the layers' spec, their number, the block weights, and how work is run and shown.

    Where features are walked, the map of what comes of it is a layer too, the first: its multisets are all nodes.
    """

    layer: LayerSpec
    n_layers: int
    normalize: bool
    block_weights: tuple[float, ...]  # one per block; zero leaves the block out
    fit_input: Callable[..., KernelMap]  # ψ_0
    n_jobs: int | None
    progress: Callable[[str, int], Any]  # (title, steps) → a context manager whose value has update(n)
    place: Place = NUMPY
    teleport: float | None = None  # of the walks; None where there are none

    @property
    def reads_counts(self) -> bool:
        """Whether the first layer sees X itself: counts live there, not in ψ_0."""
        return self.layer.family.support == "counts"

    @property
    def walks(self) -> bool:
        """Whether the first layer hears the whole graph: walks over X itself, and one component."""
        return self.teleport is not None

    def title(self, t: int) -> str:
        """What layer t is called."""
        return "walks" if self.walks and t == 1 else f"layer {t - self.walks}/{self.n_layers - self.walks}"

    def walk_width(self, n_features: int) -> int:
        """How many directions of the features are walked."""
        most = max(_MOST_NUMBERS // n_features, 64)
        return min(n_features, max(2 * self.layer.dim, _LEAST_DIRECTIONS), most)

    def layer_at(self, t: int) -> LayerSpec:
        """What is asked of layer t; behind a layer of counts stand Gaussian mixtures.

        After a walk every row is the mean of its multiset already: one component, whose anchor is the mean of a sample.
        """
        if self.walks and t == 1:
            return replace(
                self.layer, n_anchors=1, anchor_method="mean", family=GaussianMixture(), prior=0.0, counts=False,
                slack=math.inf, n_em_iter=min(self.layer.n_em_iter, 1), unit_phi=self.normalize,
            )  # fmt: skip
        return replace(self.layer, family=GaussianMixture()) if self.reads_counts and t > 1 else self.layer

    def input_width(self, n_features: int) -> int:
        """The most columns that ψ_0 can have."""
        return self.layer.dim if self.fit_input is fit_nystrom else n_features

    def at(self, place: Place) -> StackSpec:
        """The same work somewhere else; a device is fed by one thread."""
        if not place.tensors:
            return replace(self, place=place)
        name = named_engine(self.layer.backend) or ("torch" if place.device == "cpu" else None)
        engine = choose_engine(name, device=place.device, n_em_iter=self.layer.n_em_iter)
        if not engine.tensors:
            raise ValueError(
                f"engine {name!r} takes NumPy arrays, got tensors; use engine=None, or pass X as a NumPy array."
            )
        layer = replace(self.layer, device=place.device, backend=engine.name)
        return replace(self, place=place, n_jobs=1, layer=layer)


class Most(NamedTuple):
    """What data can give at most: as many landmarks as rows, as many anchors as members."""

    landmarks: float = math.inf
    anchors: float = math.inf

    @classmethod
    def of(cls, sets: Any) -> Most:
        """Of multisets."""
        return cls(max(sets.n_sets, 1), max(sets.n_entries, sets.n_points, 1))


NO_LIMIT = Most()


def asked_widths(spec: StackSpec, first: int, width: int, slots: int = 1, most: Most = NO_LIMIT) -> list[int]:
    """The most columns that ψ_first … ψ_T can have, when ψ_first has `width` and a member is `slots` points wide."""
    widths = [width]
    dim = int(min(spec.layer.dim, most.landmarks))
    for t in range(first + 1, spec.n_layers + 1):
        identity = spec.layer.keeps_phi or (t == spec.n_layers and not spec.layer.attention.maps_last)
        layer, before = spec.layer_at(t), spec.walk_width(widths[-1]) if spec.walks and t == 1 else widths[-1]
        n_anchors = int(min(layer.n_anchors, most.anchors))
        grown = layer.family.width(n_anchors, slots * before) + n_anchors * layer.counts
        widths.append(grown if identity else dim)
    return widths


def kept_widths(spec: StackSpec, first: int, width: int, slots: int = 1, most: Most = NO_LIMIT) -> list[int]:
    """Those of the blocks that are kept."""
    weights = spec.block_weights[first:]
    widths = asked_widths(spec, first, width, slots, most)
    return [width for width, weight in zip(widths, weights, strict=True) if weight > 0]
