"""The choice of multisets: a rule's name, or a rule with parameters of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fishergraph._validation import look_up
from fishergraph.graph import Graph
from fishergraph.multiset.diffused import HeatKernel, PageRank, StepAverage
from fishergraph.multiset.hops import Hops
from fishergraph.multiset.members import Multisets, neighbourhoods
from fishergraph.multiset.pairs import Pairs
from fishergraph.multiset.paths import Paths
from fishergraph.multiset.rule import Rule
from fishergraph.multiset.tuples import Tuples

# The records a model file may name.
RULES = (PageRank, HeatKernel, StepAverage, Hops, Pairs, Paths, Tuples)


def _members(
    graph: Graph, weights: str | None = None, n_jobs: int | None = None, dtype: Any = np.float32, *, closed: bool
) -> Multisets:
    """The neighbourhoods of a graph, called as a rule is."""
    return neighbourhoods(graph, closed=closed, weights=weights, dtype=dtype)


MULTISETS: dict[str, Callable[..., Any]] = {
    "neighbourhood": partial(_members, closed=True),
    "open-neighbourhood": partial(_members, closed=False),
    "hops": Hops(),
    "pairs": Pairs(),
    "paths": Paths(),
    "tuples": Tuples(),
    "ppr": PageRank(),
    "heat": HeatKernel(),
    "s2gc": StepAverage(),
}


def choose_multiset(multiset: str | Rule) -> Callable[..., Any]:
    """What builds the multisets, (graph, weights, n_jobs, dtype) → Multisets or LiftedSets: by name, or a rule."""
    if isinstance(multiset, Rule):
        multiset.check()
        return multiset
    return look_up(MULTISETS, multiset, "multiset (or a record such as PageRank(members=32))")


def slots_of(multiset: Any) -> int:
    """How many points a member of these multisets has side by side."""
    chosen = choose_multiset(multiset)
    return chosen.slots if isinstance(chosen, Rule) else 1


def makes_lifted(multiset: Any) -> bool:
    """Whether the members of these multisets are made of several points."""
    chosen = MULTISETS.get(multiset) if isinstance(multiset, str) else multiset
    return isinstance(chosen, Rule) and chosen.lifts
