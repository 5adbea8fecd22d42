"""Lists of graphs: `as_graphs` makes one disjoint union of them, a `Graphs` record."""

from fishergraph.graphs.join import as_graphs
from fishergraph.graphs.record import NO_EDGE_TAGS, EdgeTags, Graphs

__all__ = ["NO_EDGE_TAGS", "EdgeTags", "Graphs", "as_graphs"]
