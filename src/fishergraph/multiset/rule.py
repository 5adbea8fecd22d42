"""`Rule`, the component that says which multiset belongs to a node, and the first of them, `Neighbourhood`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fishergraph._component import Component
from fishergraph._typing import GraphLike, Rows, Sets
from fishergraph._validation import check_flag, look_up
from fishergraph.graph import Graph, as_graph
from fishergraph.multiset.members import WEIGHTS, Multisets, neighbourhoods, node_sets


class SetsOfGraph(NamedTuple):
    """The points of a run, the multiset of every row, and the multisets of the rows of graphs, if there are several."""

    points: Rows
    sets: Sets
    graphs: Multisets | None


@dataclass(frozen=True, repr=False)
class Rule(Component, ABC):
    """The base of the multisets that estimators take as `multiset`.

    Parameters
    ----------
    weights : {None, "uniform", "symmetric"}, default=None
        None keeps the graph's own weights, "uniform" sets them to one, "symmetric" divides them by the square roots of
        the degrees of both ends.
    undirected : bool, default=False
        Add the reverse of every edge first.
    """

    weights: str | None = field(default=None, kw_only=True)
    undirected: bool = field(default=False, kw_only=True)

    lifts: ClassVar[bool] = False  # whether it makes `LiftedSets`
    keeps_nodes: ClassVar[bool] = True  # whether the multisets belong to nodes, and not to tuples of them
    reads_edges: ClassVar[bool] = False  # whether an edge list on a device is enough to build it there

    @property
    def slots(self) -> int:
        """How many points a member has side by side."""
        return 1

    def n_columns(self, n_features: int) -> int:
        """The columns of the points that `build` makes from so many features."""
        return n_features

    def check(self) -> None:
        """Raise unless every option is valid."""
        look_up(WEIGHTS, "edge" if self.weights is None else self.weights, "weights (or None)")
        check_flag(self.undirected, "undirected")

    def __call__(self, graph: GraphLike, *, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> Sets:
        """Return the multisets of a graph, `Multisets` or `LiftedSets`, with weights in `dtype` at least."""
        return self.sets(as_graph(graph, undirected=self.undirected), n_jobs, dtype)

    @abstractmethod
    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> Sets:
        """Return the multisets of a graph whose edges are taken as they are."""

    def build(
        self,
        X: Rows,
        graph: Graph,
        *,
        graph_ptr: ArrayLike | None = None,
        normalize: bool = False,
        n_jobs: int | None = None,
        dtype: DTypeLike = np.float32,
    ) -> SetsOfGraph:
        """Return the points of the first layer with their multisets; graph g has the nodes from graph_ptr[g] on."""
        sets = self.sets(graph, n_jobs, dtype)
        return SetsOfGraph(X, sets, None if graph_ptr is None else node_sets(graph_ptr))


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
        super().check()
        check_flag(self.closed, "closed")

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> Multisets:
        """Return the neighbourhood of every node."""
        return neighbourhoods(graph, closed=self.closed, weights=self.weights, dtype=dtype)
