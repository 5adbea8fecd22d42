"""Neighbours by direction: the nodes that point to a node, those it points to, or both, apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph._records import changed, unchecked
from fishergraph.graph import Graph
from fishergraph.multiset.members import Multisets, neighbourhoods
from fishergraph.multiset.split import SplitSets, side_by_side


def reverse(graph: Graph) -> Graph:
    """The graph whose edges point the other way."""
    columns = graph.adjacency.tocsc()
    indptr, indices = columns.indptr.astype(graph.indptr.dtype), columns.indices.astype(graph.indices.dtype, copy=False)
    return unchecked(Graph, indptr, indices, None if graph.weights is None else columns.data, graph.ids)


def aged(graph: Any, decay: float | str, now: float | str | None) -> Any:
    """The graph whose edges weigh what they do at their age."""
    if graph.times is None:
        raise InputError(
            parameter="graph",
            value=graph,
            expected="have times of its edges, numbers or dates, with decay",
            got="none",
            advice="give the edges a complete column or attribute 'time', or leave decay out",
        )
    weights = graph.times.aged_weights(decay, now).astype(np.float32 if graph.weights is None else graph.weights.dtype)
    return changed(graph, weights=weights, times=None)


def _out_neighbourhoods(graph: Graph, **options: Any) -> Multisets:
    """The nodes that every node points to."""
    return neighbourhoods(reverse(graph), **options)


def _both_neighbourhoods(graph: Graph, **options: Any) -> SplitSets:
    """The nodes that point to every node, and those it points to."""
    return side_by_side([neighbourhoods(graph, **options), _out_neighbourhoods(graph, **options)])


# (graph, and the options of `neighbourhoods`) → multisets. Row v of a graph lists the nodes that point to v.
DIRECTIONS: dict[str, Callable[..., Multisets]] = {
    "in": neighbourhoods,
    "out": _out_neighbourhoods,
    "both": _both_neighbourhoods,
}
