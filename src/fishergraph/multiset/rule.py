"""`Rule`, the component that says which multiset belongs to a node, and the first of them, `Neighbourhood`.

Row v of a `Graph` lists the nodes that point to v: the source of an edge is in the row of its target. `direction` says
which way edges are read: "in" takes the rows, "out" the columns, and "both" keeps the two apart (`SplitSets`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fishergraph._component import Component
from fishergraph._errors import InputError
from fishergraph._parallel import cached_attribute
from fishergraph._typing import GraphLike, Rows, Sets
from fishergraph._validation import check_flag, look_up
from fishergraph.graph import Graph, as_graph
from fishergraph.multiset.directions import DIRECTIONS, aged
from fishergraph.multiset.members import WEIGHTS, Multisets, node_sets, singletons
from fishergraph.multiset.split import side_by_side
from fishergraph.times import check_decay


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
    signed: ClassVar[bool] = False  # whether members of points that are not negative may be negative
    reads_edges: ClassVar[bool] = False  # whether an edge list on a device is enough to build it there

    @property
    def slots(self) -> int:
        """How many points a member has side by side."""
        return 1

    @cached_attribute
    def kinds(self) -> int:
        """How many kinds of members are embedded apart."""
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

    def alone(self, n_rows: int) -> Multisets:
        """Return every row as its own multiset, of each kind: those of rows without a graph, unless they are lifted."""
        rows = singletons(n_rows)
        return rows if self.kinds == 1 else side_by_side([rows] * self.kinds)

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


def not_counts(rule: Rule) -> InputError:
    """The error about a family of counts, if members are `signed`."""
    expected, advice = f"be one of real vectors with multiset={rule!r}", "use family='gaussian-mixture'"
    return InputError(parameter="family", expected=expected, got="a family of counts", advice=advice)


@dataclass(frozen=True, repr=False)
class DirectedRule(Rule):
    """The base of the multisets of neighbours, which may tell the directions of edges apart.

    Parameters
    ----------
    direction : {None, "in", "out", "both"}, default=None
        Which neighbours of a node are members: those that point to it ("in"), those it points to ("out"), or both, each
        embedded apart. None reads rows as given, which is "in"; see `Neighbourhood`.
    weights, undirected : options
        See `Rule`.
    """

    direction: str | None = field(default=None, kw_only=True)

    @cached_attribute
    def kinds(self) -> int:
        """Two if the directions are kept apart."""
        return 2 if self.direction == "both" else 1

    def check(self) -> None:
        super().check()
        if self.direction is not None:
            look_up(DIRECTIONS, self.direction, "direction (or None)")
        if self.direction == "both" and self.undirected:
            expected, advice = "be None with undirected=True, which makes directions the same", "choose one of the two"
            raise InputError(parameter="direction", value=self.direction, expected=expected, advice=advice)


@dataclass(frozen=True, repr=False)
class Neighbourhood(DirectedRule):
    """The neighbours of a node: S_G(v) = N(v), or N(v) ∪ {v} if `closed`.

    Parameters
    ----------
    closed : bool, default=True
        Make every node a member of its own multiset, once, with weight one if the graph has no self-loop there. With
        ``direction="both"`` it is a member on both sides.
    direction : {None, "in", "out", "both"}, default=None
        Which neighbours of a node v are members. "in": the nodes that point to v. "out": the nodes that v points to.
        "both": both, kept apart, so that a layer embeds each side and puts them side by side. None reads rows as they
        are given, which is "in": an edge (source, target) makes the source a member of the target, and entry (v, u) of
        a matrix makes u a member of v. If entry (v, u) of your matrix is an edge from v to u, pass its transpose. In an
        undirected graph all directions are the same, and "both" says the same thing twice.
    weights : {None, "uniform", "symmetric"}, default=None
        None keeps the graph's own weights, "uniform" sets them to one, "symmetric" divides them by the square roots of
        the degrees of both ends: of an edge from u to v, what u sends in all and what v receives in all.
    undirected : bool, default=False
        Add the reverse of every edge first.
    decay : float or str, optional
        Weigh an edge by its age too, exp(−age / decay): the graph must have the times of its edges, numbers or dates.
        It is in the unit of the times, or a duration for dates, such as "30d" (s, min, h, d, w, y). Parallel edges are
        weighed one by one, and added.
    now : float or str, optional
        The time from which ages count, such as 12.5 or "2024-01-31". None is the latest edge of the graph.

    See Also
    --------
    neighbourhoods : The same as a function, for rows as given.
    Differences : How neighbours differ from the node.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Neighbourhood
    >>> Neighbourhood(undirected=True)(np.array([[0, 1], [1, 2]]))
    Multisets(3 sets over 3 points, 7 members)
    >>> Neighbourhood(closed=False, direction="out")(np.array([[0, 1], [1, 2]])).indices  # 0 → 1 → 2
    array([1, 2], dtype=int32)
    """

    closed: bool = True
    decay: float | str | None = field(default=None, kw_only=True)
    now: float | str | None = field(default=None, kw_only=True)

    reads_edges: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        check_flag(self.closed, "closed")
        check_decay(self.decay, self.now)

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> Multisets:
        """Return the neighbourhood of every node; both directions apart are `SplitSets`."""
        graph = graph if self.decay is None else aged(graph, self.decay, self.now)
        return DIRECTIONS[self.direction or "in"](graph, closed=self.closed, weights=self.weights, dtype=dtype)
