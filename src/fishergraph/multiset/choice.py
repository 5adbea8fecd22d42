"""The choice of multisets: a rule's name, or a rule with parameters of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fishergraph._checks import look_up
from fishergraph.multiset.diffused import HeatKernel, PageRank, StepAverage
from fishergraph.multiset.hops import Hops
from fishergraph.multiset.members import neighbourhoods
from fishergraph.multiset.pairs import Pairs
from fishergraph.multiset.paths import Paths
from fishergraph.multiset.rule import Rule
from fishergraph.multiset.tuples import Tuples

# The records a model file may name.
RULES = (PageRank, HeatKernel, StepAverage, Hops, Pairs, Paths, Tuples)

MULTISETS: dict[str, Callable[..., Any]] = {
    "neighbourhood": lambda graph, weights, n_jobs=None: neighbourhoods(graph, closed=True, weights=weights),
    "open-neighbourhood": lambda graph, weights, n_jobs=None: neighbourhoods(graph, closed=False, weights=weights),
    "hops": Hops(),
    "pairs": Pairs(),
    "paths": Paths(),
    "tuples": Tuples(),
    "ppr": PageRank(),
    "heat": HeatKernel(),
    "s2gc": StepAverage(),
}


def choose_multiset(multiset: str | Rule) -> Callable[..., Any]:
    """What builds the multisets, (graph, weights, n_jobs) → Multisets or LiftedSets: by name, or a rule itself."""
    if isinstance(multiset, Rule):
        multiset.check()
        return multiset
    return look_up(MULTISETS, multiset, "multiset (or a record such as PageRank(members=32))")


def makes_lifted(multiset: Any) -> bool:
    """Whether the members of these multisets are made of several points."""
    chosen = MULTISETS.get(multiset) if isinstance(multiset, str) else multiset
    return isinstance(chosen, Rule) and chosen.lifts
