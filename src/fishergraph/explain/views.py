"""The views of a binding: one for each block of the embedding, which compares two rows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from fishergraph.explain.binding import Binding
from fishergraph.explain.columns import Averaged, InputView, LocalView, sharpened_view, walk_view
from fishergraph.explain.layers import LayerView
from fishergraph.explain.parts import Parts
from fishergraph.explain.walks import WalkRows
from fishergraph.kernel_map import IdentityMap, StandardMap
from fishergraph.structural import TELLING_APART


class View(Protocol):
    """One block, asked about single rows."""

    name: str

    def compare(self, v: int, w: int) -> Parts: ...


def make_views(binding: Binding) -> dict[str, Any]:
    """The views of the blocks in the output, and of the layers that are not in it, by name."""
    stack, views = binding.stack, {}
    weights = dict(zip(stack.names, stack.block_weights, strict=True))
    assert stack.input_map is not None
    if weights["psi0"]:
        views["psi0"] = InputView("psi0", binding.rows, stack.input_map, unit=stack.normalize)
    for t, layer in enumerate(stack.layers, 1):
        names = binding.column_names if t == 1 and _points_are_rows(binding) else None
        views[f"psi{t}"] = LayerView(f"psi{t}", layer, binding.points[t - 1], binding.sets, names)
    wanted = [name for name in stack.column_names if weights[name]]
    return views | _column_views(binding, wanted)


def _points_are_rows(binding: Binding) -> bool:
    """Whether the features of the points of the first layer are the columns of X."""
    stack = binding.stack
    return (stack.reads_counts or isinstance(stack.input_map, (IdentityMap, StandardMap))) and binding.sets.slots == 1


def _column_views(binding: Binding, names: list[str]) -> dict[str, Any]:
    """The views of the blocks of columns."""
    stack, noise = binding.stack, binding.noise
    maps: dict[str, Any] = dict(zip(stack.column_names, stack.columns, strict=True))
    walks = WalkRows(binding.sets, stack.walk) if stack.walk is not None and names else None
    features = None
    if stack.axes is not None and {"walk", "smooth"} & set(names):
        features = Averaged(binding.rows, np.asarray(stack.axes.column_weights), unit=stack.axes.unit)
    views: dict[str, Any] = {}
    for name in names:
        if features is not None and walks is not None and stack.axes is not None and name in ("walk", "smooth"):
            if name == "walk":
                views[name] = walk_view(features, walks, stack.axes, maps[name], noise)
            else:
                views[name] = sharpened_view(name, features, walks.sums, stack.axes, maps[name], noise)
        elif name in TELLING_APART:
            weigh = _alone(binding.n_rows) if walks is None else walks.sums
            views[name] = sharpened_view(name, Averaged(binding.structural[name]), weigh, None, maps[name], noise)
        else:
            views[name] = LocalView(name, binding.structural[name], maps[name], noise)
    return views


def _alone(n_rows: int) -> Any:
    """A row → its own weight alone: columns that are not averaged."""

    def weigh(v: int) -> np.ndarray:
        weights = np.zeros(n_rows)
        weights[v] = 1
        return weights

    return weigh
