"""k-tuples of nodes with the neighbours of the local k-dimensional Weisfeiler–Lehman algorithm.

A tuple t = (v_1, …, v_k) is a point. Its neighbours at position j have a member u of v_j in place of v_j,

    N_j(t) = {θ_j(t, u) : u ∈ N(v_j)},     c_{i+1}(t) = (c_i(t), N_1, …, N_k as multisets of c_i)

and its multiset has t itself and all of them, each in a slot of its own: h(t) = (ψ(t), 0, …, 0), and
h(t, θ_j(t, u)) = (ψ(t), 0, …, ψ(θ_j(t, u)), …, 0) with the neighbour at position j. So positions are never mixed up:
a mean of the set has the means of all positions side by side. Only tuples whose subgraph has at most s parts exist:
the (k, s)-SpeqNets of Morris et al. (2022). s = k is the local k-WL on all n^k tuples.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_torch_array
from numpy.typing import ArrayLike, DTypeLike

from fishergraph._arrays import check_compressed
from fishergraph._errors import InputError, InputTypeError, NotEnoughMemory
from fishergraph._records import check_same_rows, unchecked
from fishergraph._repr import short_repr
from fishergraph._typing import GraphLike, Rows
from fishergraph._validation import check_integer
from fishergraph.graph import Graph, as_graph
from fishergraph.multiset.lifted import LiftedSets
from fishergraph.multiset.members import Multisets, consecutive, neighbourhoods, node_sets
from fishergraph.multiset.rule import Rule, SetsOfGraph
from fishergraph.multiset.tuple_search import N_RELATIONS, fill_neighbours, fill_relations, find_tuples

logger = logging.getLogger(__name__)

MOST_TUPLES = 10**12  # more fit into no memory
_MOST_TRIED = 2**36  # triples that are looked at one by one, in a few minutes


@dataclass(frozen=True)
class NodeTuples:
    """The tuples of a graph, or of several side by side, in order.

    Attributes
    ----------
    members : array of shape (n_tuples, k)
        The nodes of every tuple.
    types : float32 array of shape (n_tuples, n_columns)
        The isomorphism type: for each pair of positions one of five columns (apart, the same, joined both ways, or one
        way), and for each position whether the node has a loop.
    sets : LiftedSets
        The multiset of every tuple, over the tuples.
    nodes, graphs : Multisets
        The tuples that begin with a node, and those of a graph, as multisets over the tuples.

    See Also
    --------
    node_tuples : The tuples of a graph.
    """

    members: np.ndarray
    types: np.ndarray
    sets: LiftedSets
    nodes: Multisets
    graphs: Multisets

    __repr__ = short_repr

    def features(self, X: Rows, *, normalize: bool = False) -> Any:
        """Return X of the nodes side by side, then the type: (tuple, k · feature + column); CSR if X is.

        `normalize` divides the rows of X by their lengths first, so that features do not outweigh types.
        """
        rows: Any = check_compressed(X, "X").tocsr() if sp.issparse(X) else X
        check_same_rows(rows.shape[0], self.nodes.n_sets)
        if normalize:
            from sklearn.preprocessing import normalize as unit_rows

            rows = unit_rows(rows)
        columns = [rows[self.members[:, position]] for position in range(self.members.shape[1])]
        if sp.issparse(rows):
            return sp.csr_array(sp.hstack([*columns, sp.csr_array(self.types, dtype=rows.dtype)], format="csr"))
        return np.concatenate([*columns, self.types.astype(rows.dtype)], axis=1)


def node_tuples(
    graph: GraphLike,
    k: int = 2,
    s: int | None = None,
    *,
    weights: str | None = None,
    graph_ptr: ArrayLike | None = None,
    max_tuples: int = 200_000,
    dtype: DTypeLike = np.float32,
) -> NodeTuples:
    """Tuples of nodes whose subgraph has at most s connected parts.

    Parameters
    ----------
    graph : graph
        Anything that `as_graph` takes.
    k : int, default=2
        Nodes of a tuple, 1 to 3.
    s : int, optional
        The most connected parts, 1 to k; None is k, all tuples.
    weights : {None, "uniform", "symmetric"}, default=None
        Of the neighbours, as in `neighbourhoods`; a tuple itself weighs one.
    graph_ptr : array of int, optional
        Graph g has the nodes graph_ptr[g] … graph_ptr[g + 1] − 1, and tuples stay within it; None is one graph.
    max_tuples : int, default=200_000
        More tuples are an error before they fill the memory.
    dtype : dtype, default=float32
        The precision of computed weights, at least.

    Returns
    -------
    NodeTuples
        The tuples, their isomorphism types, their multisets, and those of nodes and graphs over them.

    See Also
    --------
    Tuples : The same as a component of the estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import node_tuples
    >>> node_tuples(np.array([[0, 1], [1, 2]]), k=2, s=1).members.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [2, 1], [2, 2]]
    """
    rule = Tuples(k, s, max_tuples)
    graph = as_graph(graph)
    borders = node_sets([0, graph.n_nodes] if graph_ptr is None else graph_ptr).indptr
    if borders[-1] != graph.n_nodes:
        expected = f"end at the {graph.n_nodes} nodes of the graph"
        raise InputError(parameter="graph_ptr", expected=expected, got=f"{borders[-1]}", advice="count all nodes")
    members = rule.find(graph, borders)
    begins = np.searchsorted(members[:, 0], np.arange(graph.n_nodes + 1))
    types = np.zeros((len(members), N_RELATIONS * k * (k - 1) // 2 + k), np.float32)
    fill_relations(graph.indptr, graph.indices, members, types)
    nodes = consecutive(begins)
    sets = _neighbours(neighbourhoods(graph, closed=False, weights=weights, dtype=dtype), members, nodes)
    counts = (k, rule.parts, graph.n_nodes, len(members), sets.n_entries)
    logger.info("(%d, %d)-tuples of %d nodes: %d, with %d members", *counts)
    return NodeTuples(members, types, sets, nodes, consecutive(begins[borders]))


def _neighbours(near: Multisets, members: np.ndarray, nodes: Multisets) -> LiftedSets:
    """The multiset of every tuple, counted first and then filled."""
    sizes, width = np.empty(len(members), np.int64), members.shape[1] + 1
    dtype = np.float32 if near.weights is None else near.weights.dtype
    arrays = (near.indptr, near.indices, near.weights, members, nodes.indptr, sizes)
    n_entries = fill_neighbours(*arrays, np.empty((0, width), members.dtype), np.empty(0, dtype))
    subgraphs, weights = np.empty((n_entries, width), members.dtype), np.empty(n_entries, dtype)
    fill_neighbours(*arrays, subgraphs, weights)
    entries = consecutive(np.append(0, np.cumsum(sizes)), None if near.weights is None else weights)
    return unchecked(LiftedSets, entries, subgraphs, len(members), pool=nodes)


@dataclass(frozen=True, repr=False)
class Tuples(Rule):
    """The k-tuples of nodes as points, for small graphs.

    A node is the mean of the tuples that begin with it. The points of the first layer are the features of the k nodes
    side by side and the isomorphism type of the tuple.

    Parameters
    ----------
    k : {1, 2, 3}, default=2
        The number of nodes of a tuple.
    s : int or None, default=1
        The most connected parts of the subgraph of a tuple, 1 to k; None takes all tuples.
    max_tuples : int, default=200_000
        The most tuples; more are refused before they fill the memory.
    weights, undirected : options
        See `Rule`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    node_tuples : The same as a function.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Tuples
    >>> FisherEmbedding(multiset=Tuples(k=3))
    FisherEmbedding(multiset=Tuples(k=3))
    """

    k: int = 2
    s: int | None = 1
    max_tuples: int = 200_000

    lifts: ClassVar[bool] = True
    keeps_nodes: ClassVar[bool] = False

    @property
    def slots(self) -> int:
        """A tuple, and a neighbour of it at each position."""
        return self.k + 1

    def n_columns(self, n_features: int) -> int:
        """The columns of `NodeTuples.features` for so many features of a node."""
        return self.k * n_features + N_RELATIONS * self.k * (self.k - 1) // 2 + self.k

    @property
    def parts(self) -> int:
        """s, or k where it is None."""
        return self.k if self.s is None else self.s

    def check(self) -> None:
        super().check()
        check_integer(self.k, "k", least=1)
        check_integer(self.parts, "s (or None)", least=1)
        check_integer(self.max_tuples, "max_tuples", least=1, most=MOST_TUPLES)
        if self.k > 3 or self.parts > self.k:
            expected, got = "have k from 1 to 3 and s from 1 to k", f"k={self.k} and s={self.s}"
            raise InputError(parameter="tuples", expected=expected, got=got, advice="choose smaller ones")

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> LiftedSets:
        """Return the multisets of the tuples, over the tuples; `build` gives the points that go with them."""
        return self._tuples(graph, None, dtype).sets

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
        """Return the tuples as points, with their multisets; `normalize` divides the rows of X by their lengths."""
        if is_torch_array(X):
            raise InputTypeError(
                "multiset=Tuples(…) takes NumPy or CSR features, got a tensor; pass X.cpu().numpy(), and device='cuda' "
                "to compute on a GPU."
            )
        tuples = self._tuples(graph, graph_ptr, dtype)
        return SetsOfGraph(tuples.features(X, normalize=normalize), tuples.sets, tuples.graphs)

    def _tuples(self, graph: Graph, graph_ptr: ArrayLike | None, dtype: DTypeLike) -> NodeTuples:
        options: dict[str, Any] = {"weights": self.weights, "max_tuples": self.max_tuples, "dtype": dtype}
        return node_tuples(graph, self.k, self.s, graph_ptr=graph_ptr, **options)

    def find(self, graph: Graph, borders: np.ndarray) -> np.ndarray:
        """Return the tuples, (tuple, position), counted before they are listed."""
        pattern = graph.adjacency + graph.adjacency.T
        pattern.sort_indices()
        arrays = (pattern.indptr, pattern.indices, borders, self.k, self.parts)
        every = int((np.diff(borders).astype(object) ** self.k).sum())
        if 1 < self.parts < self.k and every > _MOST_TRIED:
            expected, advice = f"be found among at most {_MOST_TRIED} triples of nodes", "take s=1 or k=2"
            raise InputError(parameter="tuples with k=3 and s=2", expected=expected, got=f"{every}", advice=advice)
        empty = np.empty((0, self.k), graph.indices.dtype)
        count = every if self.parts == self.k else find_tuples(*arrays, self.max_tuples, empty)
        if count > self.max_tuples:
            raise InputError(
                parameter=f"the ({self.k}, {self.parts})-tuples of {graph.n_nodes} nodes",
                expected=f"be at most max_tuples={self.max_tuples}",
                got=f"{every}" if self.parts == self.k else "more",
                advice="take a smaller k or s, or raise max_tuples if memory allows",
            )
        try:
            members = np.empty((count, self.k), graph.indices.dtype)
        except MemoryError:
            message = f"{count} tuples must fit into memory, got less of it; take a smaller k or s."
            raise NotEnoughMemory(message) from None
        find_tuples(*arrays, count, members)
        return members
