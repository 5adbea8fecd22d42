"""Small graphs for links, and embeddings that show what they were given."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from fishergraph import Graph, as_graph


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    """The (source, target) of every edge."""
    targets = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    return set(zip(graph.indices.tolist(), targets.tolist(), strict=True))


def community_graph(n=160, n_communities=4, *, seed=0, directed=False) -> tuple[np.ndarray, Graph]:
    """Features and a graph whose edges mostly join nodes of one community; ids are text."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_communities, size=n)
    drawn = rng.random((n, n)) < np.where(y[:, None] == y[None, :], 0.15, 0.01)
    source, target = np.nonzero(drawn if directed else np.triu(drawn, 1))
    X = (np.eye(n_communities)[y] + 0.4 * rng.normal(size=(n, n_communities))).astype(np.float32)
    names = [f"n{k}" for k in range(n)]
    table = [(names[u], names[v]) for u, v in zip(source[source != target], target[source != target], strict=True)]
    return X, as_graph(table, node_ids=names, undirected=not directed)


def random_graph(n=300, degree=8, *, seed=0) -> tuple[np.ndarray, Graph]:
    """Features and edges that know nothing of each other: no method can tell which pairs are held out."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(n, size=(2, n * degree // 2))
    edges = ends[:, ends[0] != ends[1]]
    return rng.normal(size=(n, 6)).astype(np.float32), as_graph(edges, n_nodes=n, undirected=True)


class Recorder(BaseEstimator):
    """An embedding by the mean of the neighbours' random rows, which keeps the graphs that it is fitted to."""

    seen: list[Graph] = []  # noqa: RUF012

    def __init__(self, dim: int = 32):
        self.dim = dim

    def fit_transform(self, X, *, graph):
        Recorder.seen.append(graph)
        Z = np.random.default_rng(0).normal(size=(graph.n_nodes, self.dim))
        return Z + 3 * (graph.adjacency @ Z)
