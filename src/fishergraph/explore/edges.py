"""The graph of a page: the edges of its nodes, and the columns that come from them.

Edges of an undirected graph are stored once. Very many are thinned, and the page says so: an edge stays if it is among
the first of one of its ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from fishergraph.explore.columns import Column, number_column
from fishergraph.explore.pack import Parts
from fishergraph.graph import Graph

if TYPE_CHECKING:
    from fishergraph.explore.relations import EdgeKinds

MOST_EDGES = 1_000_000  # that a page holds


@dataclass(frozen=True, eq=False)
class PageEdges:
    """The edges of a page.

    Attributes
    ----------
    matrix : CSR array
        Row v lists the nodes that point to v; of an undirected graph the columns from v on alone.
    directed, weighted : bool
        Whether edges have a direction, and weights.
    total : int
        The edges of the whole graph.
    kinds : array or None
        Of each edge, the relations it belongs to, as a number of `words`, if there are several.
    words : list of list of str
        What relations they are.
    """

    matrix: Any
    directed: bool
    weighted: bool
    total: int
    kinds: np.ndarray | None = None
    words: list[list[str]] = field(default_factory=list)

    @property
    def shown(self) -> int:
        """The edges on the page."""
        return self.matrix.nnz

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The row and the column of every stored edge."""
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr)), self.matrix.indices

    def packed(self, parts: Parts) -> dict[str, Any]:
        """What the browser needs to read them."""
        rows, columns = self.ends()
        first = np.diff(rows, prepend=-1) != 0
        before = np.where(first, -1 if self.directed else rows - 1, np.concatenate(([0], columns[:-1])))
        weight = None
        if self.weighted:
            weight = parts.numbers(self.matrix.data, np.zeros(self.shown, dtype=bool))
        return {
            "directed": self.directed,
            "total": self.total,
            "shown": self.shown,
            "counts": parts.integers(np.diff(self.matrix.indptr)),
            "steps": parts.integers(columns - before - 1),
            "weight": weight,
            "kinds": None if self.kinds is None else parts.integers(self.kinds),
            "words": self.words,
        }


def page_edges(
    graph: Graph, rows: np.ndarray, *, kinds: EdgeKinds | None = None, most: int = MOST_EDGES, seed: int = 0
) -> PageEdges:
    """The edges between some nodes, in the order of these rows."""
    A: Any = graph.adjacency
    directed = not _symmetric(A)
    total = A.nnz if directed else _undirected_count(A)
    if len(rows) < A.shape[0] or (rows[1:] < rows[:-1]).any():
        A = sp.csr_array(A[rows][:, rows])
    A = sp.csr_array(A if directed else sp.triu(A, format="csr"))
    A.sort_indices()
    edges = PageEdges(_thinned(A, most, seed), directed, graph.weights is not None, total)
    if kinds is None:
        return edges
    codes, of = np.unique(kinds.of(rows, *edges.ends(), both=not directed), return_inverse=True)
    return replace(edges, kinds=of, words=[kinds.words(code) for code in codes.tolist()])


def _symmetric(A: sp.csr_array) -> bool:
    """Whether every edge goes both ways with one weight."""
    difference = A - A.T.tocsr()
    return difference.nnz == 0 or bool((difference.data == 0).all())


def _undirected_count(A: sp.csr_array) -> int:
    loops = int((A.diagonal() != 0).sum())
    return (A.nnz - loops) // 2 + loops


def _thinned(A: Any, most: int, seed: int) -> Any:
    """At most so many edges: those that are among the first k of one of their ends, in a random order."""
    if A.nnz <= most:
        return A
    source, target = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices.astype(np.int64)
    order = np.random.default_rng(seed).permutation(A.nnz)
    rank = np.minimum(_rank(source, order, A.shape[0]), _rank(target, order, A.shape[0]))
    per_rank = np.cumsum(np.bincount(rank))
    k = int(np.searchsorted(per_rank, most, side="right"))
    kept = rank < max(k, 1)
    return sp.csr_array((A.data[kept], (source[kept], target[kept])), shape=A.shape)


def _rank(ends: np.ndarray, order: np.ndarray, n: int) -> np.ndarray:
    """How many edges of the same end come before, in a given order."""
    by_end = order[np.argsort(ends[order], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=n))[:-1]))
    rank = np.empty(len(ends), dtype=np.int64)
    rank[by_end] = np.arange(len(ends)) - starts[ends[by_end]]
    return rank


def degree_columns(graph: Graph) -> list[Column]:
    """How many neighbours every node has; of a directed graph by direction."""
    A: Any = graph.adjacency
    loops = (A.diagonal() != 0).astype(np.int64)
    into = np.diff(A.indptr).astype(np.int64) - loops
    if _symmetric(A):
        return [number_column("degree", into, role="degree")]
    out = np.bincount(A.indices, minlength=A.shape[0]).astype(np.int64) - loops
    return [number_column("in-degree", into, role="degree"), number_column("out-degree", out, role="degree")]
