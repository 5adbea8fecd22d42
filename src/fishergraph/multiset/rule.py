"""`Rule`: the component that says which multiset belongs to a node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fishergraph._component import Component
from fishergraph._validation import check_flag, look_up
from fishergraph.graph import Graph, as_graph
from fishergraph.multiset.members import WEIGHTS, Multisets, node_sets


class SetsOfGraph(NamedTuple):
    """The points of a run, the multiset of every row, and the rows of every graph as multisets over them."""

    points: Any
    sets: Any
    graphs: Multisets


@dataclass(frozen=True, repr=False)
class Rule(Component):
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

    def __call__(self, graph: Any, *, n_jobs: int | None = None, dtype: Any = np.float32) -> Any:
        """Return the multisets of a graph, `Multisets` or `LiftedSets`, with weights in `dtype` at least."""
        return self.sets(as_graph(graph, undirected=self.undirected), n_jobs, dtype)

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: Any = np.float32) -> Any:
        """Return the multisets of a graph whose edges are taken as they are."""
        raise NotImplementedError

    def build(
        self, X: Any, graph: Graph, *, graph_ptr: Any = None, normalize: bool = False, n_jobs: int | None = None,
        dtype: Any = np.float32,
    ) -> SetsOfGraph:  # fmt: skip
        """Return the points of the first layer with their multisets; graph g has the nodes from graph_ptr[g] on."""
        sets = self.sets(graph, n_jobs, dtype)
        return SetsOfGraph(X, sets, node_sets([0, graph.n_nodes] if graph_ptr is None else graph_ptr))
