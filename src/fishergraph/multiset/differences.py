"""`Differences`: how the neighbours of a node differ from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from fishergraph._records import unchecked
from fishergraph._validation import check_flag
from fishergraph.graph import Graph
from fishergraph.multiset.directions import DIRECTIONS
from fishergraph.multiset.lifted import LiftedSets
from fishergraph.multiset.members import consecutive
from fishergraph.multiset.rule import DirectedRule
from fishergraph.multiset.split import split_sets


@dataclass(frozen=True, repr=False)
class Differences(DirectedRule):
    """The differences between the neighbours of a node and the node.

    S_G(v) = {(v, u) : u ∈ N(v)}, h(v, u) = ψ(u) − ψ(v). With one component, φ is the residual μ_v − ψ(v) less its
    anchor; with several, φ says how neighbours differ from the node. A vector that is added to all points changes
    nothing.

    Parameters
    ----------
    closed : bool, default=False
        Make every node its own neighbour, whose difference is zero, once.
    direction, weights, undirected : options
        See `Neighbourhood`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    Pairs : The means of a node and its neighbours.

    Examples
    --------
    >>> from fishergraph import Differences, FisherEmbedding
    >>> FisherEmbedding(multiset=Differences(undirected=True))
    FisherEmbedding(multiset=Differences(undirected=True))
    """

    closed: bool = False

    lifts: ClassVar[bool] = True
    signed: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        check_flag(self.closed, "closed")

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> LiftedSets:
        """Return the pairs of every node; a node without neighbours has none."""
        near = DIRECTIONS[self.direction or "in"](graph, closed=self.closed, weights=self.weights, dtype=dtype)
        roots = np.repeat(np.arange(graph.n_nodes, dtype=near.indices.dtype), np.diff(near.indptr))
        pairs, parts = np.stack([roots, near.indices], axis=1), near.apart()
        sets = split_sets(consecutive(parts.indptr, parts.weights), near.kinds)
        return unchecked(LiftedSets, sets, pairs, graph.n_nodes, lift="difference")
