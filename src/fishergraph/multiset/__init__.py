"""Room 1: which points belong to which multiset (Section 3.2 of the paper).

A `Multisets` record is a CSR list: set v holds the points `indices[indptr[v]:indptr[v + 1]]` with the weights
beside them. Where a member is a subgraph of several points, `LiftedSets` says which points, and how they become one.
Everything behind this room sees multisets only; no graph.

members      Multisets, neighbourhoods, the nodes of a graph, and their weights
lifted       LiftedSets: members made of several points, and the lifts h
neighbourhood    Neighbourhood
rule         Rule: what a multiset is, with parameters of its own
diffused     PageRank, HeatKernel, StepAverage
hops         Hops
pairs        Pairs
paths        Paths; path_search finds or draws them
tuples       Tuples, node_tuples; tuple_search finds them
choice       the rules by name
"""

from fishergraph.multiset.choice import MULTISETS, RULES, choose_multiset
from fishergraph.multiset.diffused import Diffusion, HeatKernel, PageRank, StepAverage
from fishergraph.multiset.hops import Hops
from fishergraph.multiset.lifted import LIFTS, LiftedSets
from fishergraph.multiset.members import WEIGHTS, Multisets, neighbourhoods, node_sets, singletons
from fishergraph.multiset.neighbourhood import Neighbourhood
from fishergraph.multiset.pairs import Pairs
from fishergraph.multiset.paths import Paths
from fishergraph.multiset.rule import Rule
from fishergraph.multiset.tuples import NodeTuples, Tuples, node_tuples

__all__ = [
    "LIFTS",
    "MULTISETS",
    "RULES",
    "WEIGHTS",
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
    "StepAverage",
    "Tuples",
    "choose_multiset",
    "neighbourhoods",
    "node_sets",
    "node_tuples",
    "singletons",
]
