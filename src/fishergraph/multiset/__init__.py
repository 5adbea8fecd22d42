"""Which points belong to which multiset (Section 3.2 of the paper).

A `Multisets` record is a CSR list: set v holds the points `indices[indptr[v]:indptr[v + 1]]` with the weights
beside them. If a member is a subgraph of several points, `LiftedSets` says which points, and how they become one.
The later packages see multisets only, no graph.

members      Multisets, neighbourhoods, the nodes of a graph, and their weights
lifted       LiftedSets: members made of several points, and the lifts h
split        SplitSets: members of several kinds, which are embedded apart
directions   which way edges are read
rule         Rule: what a multiset is, with parameters of its own; Neighbourhood
differences  Differences
diffused     PageRank, HeatKernel, StepAverage
hops         Hops
paths        Pairs, Paths; path_search finds or draws paths
tuples       Tuples, node_tuples; tuple_search finds them
"""

from collections.abc import Callable

from fishergraph._validation import look_up
from fishergraph.multiset.differences import Differences
from fishergraph.multiset.diffused import Diffusion, HeatKernel, PageRank, StepAverage
from fishergraph.multiset.hops import Hops
from fishergraph.multiset.lifted import LIFTS, LiftedSets
from fishergraph.multiset.members import WEIGHTS, Multisets, neighbourhoods, node_sets, singletons
from fishergraph.multiset.paths import Pairs, Paths
from fishergraph.multiset.rule import Neighbourhood, Rule
from fishergraph.multiset.split import SplitSets
from fishergraph.multiset.tuples import NodeTuples, Tuples, node_tuples

__all__ = [
    "LIFTS",
    "MULTISETS",
    "RULES",
    "WEIGHTS",
    "Differences",
    "Diffusion",
    "HeatKernel",
    "Hops",
    "LiftedSets",
    "Multisets",
    "Neighbourhood",
    "NodeTuples",
    "PageRank",
    "Pairs",
    "Paths",
    "Rule",
    "SplitSets",
    "StepAverage",
    "Tuples",
    "choose_multiset",
    "neighbourhoods",
    "node_sets",
    "node_tuples",
    "singletons",
]

# The components a model file may name.
RULES = (Neighbourhood, PageRank, HeatKernel, StepAverage, Hops, Differences, Pairs, Paths, Tuples)

MULTISETS: dict[str, Callable[[], Rule]] = {
    "neighbourhood": Neighbourhood,
    "open-neighbourhood": lambda: Neighbourhood(closed=False),
    "differences": Differences,
    "hops": Hops,
    "pairs": Pairs,
    "paths": Paths,
    "tuples": Tuples,
    "ppr": PageRank,
    "heat": HeatKernel,
    "s2gc": StepAverage,
}
# Components are immutable: those with a name are made once, and shared.
_NAMED = {name: make() for name, make in MULTISETS.items()}


def choose_multiset(multiset: str | Rule) -> Rule:
    """Return the multiset of that name, or the component itself."""
    if isinstance(multiset, Rule):
        return multiset
    return look_up(_NAMED, multiset, "multiset (or a component such as PageRank(members=32))")
