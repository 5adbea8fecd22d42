"""`Neighbourhood`: the neighbours of a node, with the node itself or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fishergraph._validation import check_flag
from fishergraph.graph import Graph
from fishergraph.multiset.members import Multisets, neighbourhoods
from fishergraph.multiset.rule import Rule


@dataclass(frozen=True, repr=False)
class Neighbourhood(Rule):
    """The neighbours of a node: S_G(v) = N(v), or N(v) ∪ {v} if `closed`.

    Parameters
    ----------
    closed : bool, default=True
        Make every node a member of its own multiset, once, with weight one if the graph has no self-loop there.
    weights : {None, "uniform", "symmetric"}, default=None
        None keeps the graph's own weights, "uniform" sets them to one, "symmetric" divides them by the square roots of
        the degrees of both ends.
    undirected : bool, default=False
        Add the reverse of every edge first.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    neighbourhoods : The same as a function.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Neighbourhood
    >>> Neighbourhood(undirected=True)(np.array([[0, 1], [1, 2]]))
    Multisets(3 sets over 3 points, 7 members)
    """

    closed: bool = True

    reads_edges: ClassVar[bool] = True

    def check(self) -> None:
        """Raise unless every option is valid."""
        super().check()
        check_flag(self.closed, "closed")

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: Any = np.float32) -> Multisets:
        """Return the neighbourhood of every node."""
        return neighbourhoods(graph, closed=self.closed, weights=self.weights, dtype=dtype)
