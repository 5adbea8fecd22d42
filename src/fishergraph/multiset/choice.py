"""The multisets by name."""

from __future__ import annotations

from collections.abc import Callable

from fishergraph._component import choose
from fishergraph.multiset.diffused import HeatKernel, PageRank, StepAverage
from fishergraph.multiset.hops import Hops
from fishergraph.multiset.neighbourhood import Neighbourhood
from fishergraph.multiset.pairs import Pairs
from fishergraph.multiset.paths import Paths
from fishergraph.multiset.rule import Rule
from fishergraph.multiset.tuples import Tuples

# The components a model file may name.
RULES = (Neighbourhood, PageRank, HeatKernel, StepAverage, Hops, Pairs, Paths, Tuples)

MULTISETS: dict[str, Callable[[], Rule]] = {
    "neighbourhood": Neighbourhood,
    "open-neighbourhood": lambda: Neighbourhood(closed=False),
    "hops": Hops,
    "pairs": Pairs,
    "paths": Paths,
    "tuples": Tuples,
    "ppr": PageRank,
    "heat": HeatKernel,
    "s2gc": StepAverage,
}


def choose_multiset(multiset: str | Rule) -> Rule:
    """Return the multiset of that name, or the component itself."""
    return choose(MULTISETS, multiset, Rule, "multiset", example="PageRank(members=32)")
