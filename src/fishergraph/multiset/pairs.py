"""Pairs (v, u) of a node and a neighbour, lifted by their mean (Section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fishergraph._records import unchecked
from fishergraph.graph import Graph
from fishergraph.multiset.lifted import LiftedSets, own_entries
from fishergraph.multiset.members import neighbourhoods
from fishergraph.multiset.rule import Rule


@dataclass(frozen=True, repr=False)
class Pairs(Rule):
    """Pairs of a node and a neighbour, each represented by its mean.

    S_G(v) = {(v, u) : u ∈ N(v)} and h(v, u) = ½ (ψ(v) + ψ(u)).

    A pair has the weight of its edge.

    Parameters
    ----------
    weights : {None, "uniform", "symmetric"}, default=None
        None keeps the graph's own weights, "uniform" sets them to one, "symmetric" divides them by the square roots of
        the degrees of both ends.
    undirected : bool, default=False
        Add the reverse of every edge first.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    Paths : Paths from a node.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Pairs
    >>> FisherEmbedding(multiset=Pairs())
    FisherEmbedding(multiset=Pairs())
    """

    lifts: ClassVar[bool] = True

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: Any = np.float32) -> LiftedSets:
        """Return the pairs of every node; a node without neighbours has none."""
        near = neighbourhoods(graph, closed=False, weights=self.weights, dtype=dtype)
        roots = np.repeat(np.arange(graph.n_nodes, dtype=near.indices.dtype), np.diff(near.indptr))
        members = np.stack([roots, near.indices], axis=1)
        return unchecked(LiftedSets, own_entries(near.indptr, near.weights), members, graph.n_nodes, lift="mean")
