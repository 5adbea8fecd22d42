"""Pairs of a node and a neighbour, lifted by their mean, and paths, lifted by concatenation (Section 3.2)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from fishergraph._errors import InputError, NotEnoughMemory
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._records import unchecked
from fishergraph._validation import check_integer, check_seed
from fishergraph.graph import Graph
from fishergraph.multiset.lifted import LiftedSets
from fishergraph.multiset.members import Multisets, consecutive, neighbourhoods, weight_dtype
from fishergraph.multiset.path_search import block_size, count_block, fill_block, patience_of, walk_masses
from fishergraph.multiset.rule import Rule

logger = logging.getLogger(__name__)

_NEVER = 2**62
# Of a path: a lifted point has as many points side by side, and one more. Of all paths: more fit into no memory.
MOST_EDGES, MOST_PATHS = 64, 10**12


@dataclass(frozen=True, repr=False)
class Pairs(Rule):
    """The pairs of a node and a neighbour, as their mean.

    S_G(v) = {(v, u) : u ∈ N(v)}, h(v, u) = ½ (ψ(v) + ψ(u)). A pair has the weight of its edge.

    Parameters
    ----------
    weights, undirected : options
        See `Rule`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    Paths : Longer paths.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Pairs
    >>> FisherEmbedding(multiset=Pairs())
    FisherEmbedding(multiset=Pairs())
    """

    lifts: ClassVar[bool] = True

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> LiftedSets:
        """Return the pairs of every node; a node without neighbours has none."""
        near = neighbourhoods(graph, closed=False, weights=self.weights, dtype=dtype)
        roots = np.repeat(np.arange(graph.n_nodes, dtype=near.indices.dtype), np.diff(near.indptr))
        members = np.stack([roots, near.indices], axis=1)
        return unchecked(LiftedSets, consecutive(near.indptr, near.weights), members, graph.n_nodes, lift="mean")


@dataclass(frozen=True, repr=False)
class Paths(Rule):
    """The simple paths from a node, their points side by side.

    h(v, u_1, …, u_k) = (ψ(v), ψ(u_1), …, ψ(u_k)). Every node of a path is a member of the one before it, and none
    appears twice. A path has the product of the weights of its edges. A node without a path of this length has an empty
    multiset.

    Parameters
    ----------
    length : int, default=2
        The number of edges k, at most 64.
    max_paths : int or None, default=128
        The most paths of a node that are listed. If there are more, as many are drawn, and weighted so that sums over
        the multiset have the sums over all paths as their mean. None lists all.
    max_total : int, default=100_000_000
        The most paths of all nodes together; more are refused before they fill the memory.
    seed : int, default=0
        The seed of the draws.
    weights, undirected : options
        See `Rule`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    Pairs : A node and a neighbour.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Paths
    >>> FisherEmbedding(multiset=Paths(length=3))
    FisherEmbedding(multiset=Paths(length=3))
    """

    length: int = 2
    max_paths: int | None = 128
    max_total: int = 100_000_000
    seed: int = 0

    lifts: ClassVar[bool] = True

    @property
    def slots(self) -> int:
        """The nodes of a path."""
        return self.length + 1

    def check(self) -> None:
        super().check()
        check_integer(self.length, "length", least=1, most=MOST_EDGES)
        if self.max_paths is not None:
            check_integer(self.max_paths, "max_paths (or None)", least=1, most=MOST_PATHS)
        check_integer(self.max_total, "max_total", least=1, most=MOST_PATHS)
        check_seed(self.seed)

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> LiftedSets:
        """Return the paths of every node, with their number in `totals`: counted, or estimated if they are drawn."""
        near = neighbourhoods(graph, closed=False, weights=self.weights, dtype=dtype)
        counts = self._count(near, n_jobs)
        paths, path_weights, sizes, totals = self._find(near, counts, n_jobs, weight_dtype(near.weights, dtype))
        n_drawn = int((counts < 0).sum())
        about = "about " if n_drawn else ""
        message = "paths of length %d: %s%d, of which %d are listed; those of %d of %d nodes are a sample"
        logger.info(message, self.length, about, round(totals.sum()), len(paths), n_drawn, len(counts))
        if path_weights is not None and not np.isfinite(path_weights).all():
            raise InputError(
                parameter=f"the weights of a path's {self.length} edges",
                expected="have a finite product",
                got=f"more than {path_weights.dtype} holds",
                advice="rescale the edge weights, or set weights='uniform'",
            )
        indptr = np.append(0, np.cumsum(sizes))
        return unchecked(LiftedSets, consecutive(indptr, path_weights), paths, graph.n_nodes, "concatenation", totals)

    def _count(self, near: Multisets, n_jobs: int | None) -> np.ndarray:
        """How many paths every node has, (node,); −1 where they are drawn."""
        most = _NEVER if self.max_paths is None else self.max_paths
        patience = patience_of(self.max_paths, self.length)
        counts = np.zeros(near.n_sets, np.int64)
        seen: list[int] = []

        def count(rows: slice) -> None:
            rest = self.max_total - sum(seen)
            limits = (self.length, most, patience, rest)
            if rest >= 0:  # once they are too many, no thread goes on
                seen.append(count_block(rows.start, rows.stop, near.indptr, near.indices, *limits, counts))

        map_blocks(count, row_blocks(near.n_sets, block_size(patience)), n_jobs=n_jobs)
        if sum(seen) > self.max_total:
            first = "set max_paths, so that they are drawn" if self.max_paths is None else "lower max_paths"
            raise InputError(
                parameter=f"the paths of length {self.length} of all {near.n_sets} nodes",
                expected=f"be at most max_total={self.max_total}",
                got="more",
                advice=f"{first}, take a smaller length, or raise max_total if memory allows",
            )
        return counts

    def _find(
        self, near: Multisets, counts: np.ndarray, n_jobs: int | None, dtype: np.dtype
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray]:
        """(paths (path, length + 1), their weights, and of every node the number listed and the number in all)."""
        indptr, indices, weights = near.indptr, near.indices, near.weights
        most = self.max_paths or 0
        drawn = bool((counts < 0).any())
        mass = walk_masses(indptr, indices, weights, self.length) if drawn else np.empty((0, 0))
        sizes, totals = np.zeros(near.n_sets, np.int64), np.zeros(near.n_sets)

        def fill(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            capacity = int(np.where(counts[rows] < 0, most, counts[rows]).sum())
            try:
                out, out_weights = np.empty((capacity, self.length + 1), indices.dtype), np.empty(capacity)
            except MemoryError:
                message = f"{capacity} paths of length {self.length} must fit into memory, got less of it"
                raise NotEnoughMemory(f"{message}; lower max_paths.") from None
            graph, limits = (indptr, indices, weights, self.length), (counts, most, _NEVER, np.uint64(self.seed))
            arrays = (mass, out, out_weights, sizes, totals)
            filled = fill_block(rows.start, rows.stop, *graph, *limits, *arrays)
            return out[:filled], out_weights[:filled].astype(dtype)

        blocks = map_blocks(fill, row_blocks(near.n_sets), n_jobs=n_jobs)
        paths, path_weights = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
        return paths, path_weights if drawn or weights is not None else None, sizes, totals
