"""Edges that are held out: `split_edges`, and pairs of nodes without an edge beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from fishergraph._errors import InputError
from fishergraph._typing import GraphLike, RandomState
from fishergraph._validation import check_host_memory, check_integer, check_number, check_random_seed
from fishergraph.graph import Graph, as_graph


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of nodes, and whether they have an edge.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        Rows of the source and the target.
    edges : array of bool of shape (n_pairs,)
        Whether there is an edge.

    See Also
    --------
    split_edges : Edges that are held out.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.probes import Links
    >>> Links(np.array([[0, 1], [0, 2]]), np.array([True, False]))
    Links(1 edge, 1 pair without one)
    """

    pairs: np.ndarray
    edges: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        n = int(self.edges.sum())
        rest = len(self) - n
        return f"Links({n:,} edge{'s'[: n != 1]}, {rest:,} pair{'s'[: rest != 1]} without one)"


@dataclass(frozen=True, eq=False)
class EdgeSplit:
    """A graph without the edges that are held out, and these.

    Parameters
    ----------
    graph : Graph
        The graph that an embedding may see.
    train, val, test : Links
        The edges of this graph, those for choices, and those for the final judgement, each with pairs without an edge.
    directed : bool
        Whether edges have a direction. If not, a pair stands for both.

    See Also
    --------
    split_edges : Make it.

    Examples
    --------
    >>> from fishergraph import load_graph, split_edges
    >>> split_edges(load_graph("cora").graph, random_state=0).test
    Links(528 edges, 528 pairs without one)
    """

    graph: Graph
    train: Links
    val: Links
    test: Links
    directed: bool

    def folds(self, n_folds: int, share: float, random_state: RandomState = None) -> Iterator[tuple[Graph, Links]]:
        """Hold out parts of the training edges, to learn what edges look like that an embedding has not seen.

        Parameters
        ----------
        n_folds : int
            The number of folds.
        share : float in (0, 1)
            Share of the training edges that a fold holds out. Folds are disjoint: n_folds * share is at most 1.
        random_state : int, RandomState or None, default=None
            Seed.

        Yields
        ------
        tuple of Graph and Links
            The graph without the edges of a fold, and these with as many other pairs for each as in `train`.
        """
        n_folds = check_integer(n_folds, "n_folds", least=1)
        share = check_number(share, "share", most=1 / n_folds, strict=True)
        rng = check_random_state(check_random_seed(random_state))
        couples = _Couples(self.train.pairs[self.train.edges], self.graph.n_nodes, rng)
        others, used = rng.permutation(self.train.pairs[~self.train.edges]), 0
        ratio = len(others) / max(len(couples.edges), 1)
        for fold in range(n_folds):
            held = couples.part(round(fold * share * couples.count), round((fold + 1) * share * couples.count))
            more = used + round(ratio * len(held))
            yield _without(self.graph, held, self.directed), _links(held, others[used:more])
            used = more


def split_edges(
    graph: GraphLike,
    *,
    val: float = 0.05,
    test: float = 0.1,
    negatives: int = 1,
    random_state: RandomState = None,
) -> EdgeSplit:
    """Hold out edges of a graph, and draw pairs of nodes without an edge.

    An edge is held out in both directions. Both edges of a pair of nodes are in one part, also in a directed graph.
    Pairs without an edge have none in the whole graph, are drawn once, and are no self-loops. Self-loops stay in the
    graph. It is directed unless every edge has its reverse.

    Parameters
    ----------
    graph : graph
        Anything that `as_graph` takes.
    val, test : float in [0, 1), default=0.05, 0.1
        Shares of the edges that are held out.
    negatives : int, default=1
        Pairs without an edge for each edge.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    EdgeSplit
        The graph that is left, and pairs for training, choices and the final judgement.

    See Also
    --------
    LinkProbe : Learn which pairs have an edge.

    Examples
    --------
    >>> from fishergraph import load_graph, split_edges
    >>> split = split_edges(load_graph("cora").graph, random_state=0)
    >>> split.graph, split.val
    (Graph(2,708 nodes, 8,972 edges), Links(264 edges, 264 pairs without one))
    """
    whole, rng = as_graph(graph), check_random_state(check_random_seed(random_state))
    shares = [check_number(share, name, most=1.0) for share, name in ((val, "val"), (test, "test"))]
    negatives = check_integer(negatives, "negatives", least=1, most=1000)
    if sum(shares) >= 1:
        expected = "leave edges for the graph: their sum must be below 1"
        raise InputError(parameter="val and test", value=shares, expected=expected, got=f"{sum(shares):g}")
    ends = np.stack([whole.indices.astype(np.int64), np.repeat(np.arange(whole.n_nodes), np.diff(whole.indptr))], 1)
    is_directed = not np.array_equal(np.sort(_keys(ends, whole.n_nodes)), np.sort(_keys(ends[:, ::-1], whole.n_nodes)))
    couples = _Couples(ends[ends[:, 0] != ends[:, 1] if is_directed else ends[:, 0] < ends[:, 1]], whole.n_nodes, rng)
    counts = [round(share * couples.count) for share in shares]
    for name, share, count in zip(("val", "test"), shares, counts, strict=True):
        if share > 0 and count == 0:
            expected = f"hold out at least one of the {couples.count:,} edges"
            raise InputError(parameter=name, value=share, expected=expected, advice="raise it, or set it to 0")
    borders = [0, counts[1], sum(counts), couples.count]
    edges = [couples.part(*borders[k : k + 2]) for k in range(3)]
    sizes = [negatives * len(part) for part in edges]
    others = np.split(_other_pairs(ends, whole.n_nodes, sum(sizes), rng, is_directed), np.cumsum(sizes)[:-1])
    test_links, val_links, train_links = map(_links, edges, others)
    rest = _without(whole, np.concatenate(edges[:2]), is_directed)
    return EdgeSplit(rest, train_links, val_links, test_links, is_directed)


class _Couples:
    """Pairs of nodes in a random order, and the edges between them: one, or two of a directed graph."""

    def __init__(self, edges: np.ndarray, n_nodes: int, rng: np.random.RandomState):
        _, number = np.unique(_keys(np.sort(edges, axis=1), n_nodes), return_inverse=True)
        self.count = int(number.max(initial=-1)) + 1
        rank = rng.permutation(self.count)[number]
        order = np.argsort(rank, kind="stable")
        self.edges, self._rank = edges[order], rank[order]

    def part(self, start: int, stop: int) -> np.ndarray:
        """The edges of the couples from `start` to `stop`, (edge, 2)."""
        return self.edges[slice(*np.searchsorted(self._rank, [start, stop]))]


def _keys(pairs: np.ndarray, n_nodes: int) -> np.ndarray:
    """One integer for every pair."""
    return pairs[:, 0].astype(np.int64) * n_nodes + pairs[:, 1]


def _links(edges: np.ndarray, others: np.ndarray) -> Links:
    return Links(np.concatenate([edges, others]), np.arange(len(edges) + len(others)) < len(edges))


def _without(graph: Graph, edges: np.ndarray, directed: bool) -> Graph:
    """The graph without some edges, which are pairs of source and target."""
    targets = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    gone = edges if directed else np.concatenate([edges, edges[:, ::-1]])
    kept = ~np.isin(targets * graph.n_nodes + graph.indices, gone[:, 1] * graph.n_nodes + gone[:, 0])
    indptr = np.concatenate([[0], np.cumsum(kept)])[graph.indptr]
    weights = None if graph.weights is None else graph.weights[kept]
    return Graph(indptr, graph.indices[kept], weights, graph.ids)


def _other_pairs(ends: np.ndarray, n_nodes: int, count: int, rng: np.random.RandomState, directed: bool) -> np.ndarray:
    """Distinct pairs of nodes without an edge, at random, (pair, 2)."""
    taken = np.unique(_keys(ends if directed else np.sort(ends, axis=1), n_nodes))
    loops = int((ends[:, 0] == ends[:, 1]).sum())
    possible = n_nodes * (n_nodes - 1) // (1 if directed else 2) - (len(taken) - loops)
    if count > possible:
        raise InputError(
            parameter="graph",
            expected=f"have {count:,} pairs of nodes without an edge",
            got=f"{possible:,}",
            advice="lower negatives, or pass a graph that is less dense",
        )
    if 2 * count > possible:  # drawing would repeat itself
        check_host_memory(8 * n_nodes**2, f"{n_nodes:,} nodes need", "for a list of all pairs", "lower negatives")
        first, second = np.divmod(np.arange(n_nodes**2), n_nodes)
        allowed = first != second if directed else first < second
        free = np.setdiff1d(np.flatnonzero(allowed), taken, assume_unique=True)
        return np.stack(np.divmod(rng.permutation(free)[:count], n_nodes), axis=1)
    found = np.empty(0, np.int64)
    while len(found) < count:
        drawn = rng.randint(n_nodes, size=(2 * (count - len(found)) + 64, 2))
        drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        keys = np.concatenate([found, _keys(drawn if directed else np.sort(drawn, axis=1), n_nodes)])
        keys = keys[np.sort(np.unique(keys, return_index=True)[1])]  # the first of equal ones
        found = keys[~np.isin(keys, taken)]
    return np.stack(np.divmod(found[:count], n_nodes), axis=1)
