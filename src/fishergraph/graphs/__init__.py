"""Several graphs, or several kinds of edges.

`as_graphs` makes one disjoint union of a list of graphs, a `Graphs` record. `as_relations` reads several kinds of edges
over the same nodes, a `Relations` record.
"""

from fishergraph.graphs.join import as_graphs
from fishergraph.graphs.record import NO_EDGE_TAGS, EdgeTags, Graphs
from fishergraph.graphs.relation_readers import as_relations
from fishergraph.graphs.relation_summary import RelationsSummary, RelationSummary
from fishergraph.graphs.relations import Bipartite, Relations

__all__ = [
    "NO_EDGE_TAGS",
    "Bipartite",
    "EdgeTags",
    "Graphs",
    "RelationSummary",
    "Relations",
    "RelationsSummary",
    "as_graphs",
    "as_relations",
]
