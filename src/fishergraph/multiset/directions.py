"""Which way edges are read: from a node to those that point to it, to those it points to, or to both, apart."""

from __future__ import annotations

from collections.abc import Callable

from fishergraph._records import unchecked
from fishergraph.graph import Graph


def reverse(graph: Graph) -> Graph:
    """The graph whose edges point the other way."""
    columns = graph.adjacency.tocsc()
    indptr, indices = columns.indptr.astype(graph.indptr.dtype), columns.indices.astype(graph.indices.dtype, copy=False)
    return unchecked(Graph, indptr, indices, None if graph.weights is None else columns.data, graph.ids)


# Row v of a graph lists the nodes that point to v.
DIRECTIONS: dict[str, Callable[[Graph], tuple[Graph, ...]]] = {
    "in": lambda graph: (graph,),
    "out": lambda graph: (reverse(graph),),
    "both": lambda graph: (graph, reverse(graph)),
}
