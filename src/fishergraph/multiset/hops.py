# numba infers the types of the arguments of a kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
"""All nodes within k hops of a node, ring by ring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from fishergraph._parallel import map_blocks, per_thread, row_blocks
from fishergraph._records import unchecked
from fishergraph._validation import check_integer, check_number, check_seed
from fishergraph.counters import STEP, below, compiled, row_state
from fishergraph.graph import Graph
from fishergraph.multiset.members import Multisets, weigh_members, weight_dtype
from fishergraph.multiset.rule import Rule


@compiled
def _next_ring(indptr, indices, queue, first, last, v, stamp):
    """The end of the queue after the unseen members of queue[first:last] have joined it."""
    end = last
    for i in range(first, last):
        u = queue[i]
        for e in range(indptr[u], indptr[u + 1]):
            w = indices[e]
            if stamp[w] != v + 1:
                stamp[w] = v + 1
                queue[end] = w
                end += 1
    return end


@compiled
def _reach_block(start, stop, indptr, indices, k, decay, members, key, stamp, queue):
    """(sizes, members, weights) of the rows start … stop − 1, nearest first; no `stamp` (node,) is a v + 1 of them."""
    sizes = np.empty(stop - start, np.int64)
    out, out_weights = np.empty(32 * (stop - start), indices.dtype), np.empty(32 * (stop - start), np.float64)
    filled = 0
    for v in range(start, stop):
        stamp[v], queue[0] = v + 1, v
        first, last, size, weight, state = 0, 1, 0, 1.0, row_state(key, v)
        for hop in range(k + 1):
            kept = min(last - first, members - size)
            if kept < last - first:  # a sample represents the last ring
                for i in range(first, first + kept):
                    state += STEP
                    j = i + below(state, last - i)
                    queue[i], queue[j] = queue[j], queue[i]
            if filled + kept > len(out):
                capacity = 2 * len(out) + kept
                wider, wider_weights = np.empty(capacity, out.dtype), np.empty(capacity, np.float64)
                wider[:filled], wider_weights[:filled] = out[:filled], out_weights[:filled]
                out, out_weights = wider, wider_weights
            for i in range(kept):
                out[filled + i], out_weights[filled + i] = queue[first + i], weight * (last - first) / kept
            filled, size, weight = filled + kept, size + kept, weight * decay
            if hop == k or size == members:
                break
            first, last = last, _next_ring(indptr, indices, queue, first, last, v, stamp)
            if first == last:
                break
        sizes[v - start] = size
    return sizes, out[:filled], out_weights[:filled]


@dataclass(frozen=True, repr=False)
class Hops(Rule):
    """Nodes within k hops of a node, which is one of them.

    A node that is h hops away has the weight ``decay ** h``. Hops follow edges of any weight; ``weights="symmetric"``
    divides by the degrees of the multisets themselves.

    Parameters
    ----------
    k : int, default=2
        The number of hops.
    decay : float in (0, 1], default=1.0
        The factor of a weight per hop.
    members : int or None, default=128
        The most members of a multiset, nearest first. If a ring of nodes does not fit, nodes are drawn from it and
        weighted for the rest of it, and farther ones are left out. None keeps all.
    seed : int, default=0
        The seed of the draws.
    weights, undirected : options
        See `Rule`.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `multiset`.
    PageRank : Nodes weighted by a diffusion.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Hops
    >>> FisherEmbedding(multiset=Hops(k=3, decay=0.5))
    FisherEmbedding(multiset=Hops(k=3, decay=0.5))
    """

    k: int = 2
    decay: float = 1.0
    members: int | None = 128
    seed: int = 0

    def check(self) -> None:
        super().check()
        check_integer(self.k, "k", least=0)
        check_number(self.decay, "decay", strict=True, most=1.0)
        if self.members is not None:
            check_integer(self.members, "members (or None)", least=1)
        check_seed(self.seed)

    def sets(self, graph: Graph, n_jobs: int | None = None, dtype: DTypeLike = np.float32) -> Multisets:
        """Return the nodes within k hops of every node, nearest first."""
        n = graph.n_nodes
        members, k = n if self.members is None else min(self.members, n), min(self.k, n)  # there are no more of either
        kind = weight_dtype(graph.weights, dtype)

        # Of the size of the graph, while a block sees a small part of it.
        scratch = per_thread(lambda: (np.zeros(n, graph.indices.dtype), np.empty(n, graph.indices.dtype)))

        def reach(rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            arrays = (graph.indptr, graph.indices, k, float(self.decay), members, np.uint64(self.seed))
            sizes, out, out_weights = _reach_block(rows.start, rows.stop, *arrays, *scratch())
            return sizes, out, out_weights.astype(kind)

        blocks = map_blocks(reach, row_blocks(n), n_jobs=n_jobs)
        sizes, out, out_weights = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
        indptr = np.append(0, np.cumsum(sizes))
        weights = None if bool((out_weights == 1).all()) else out_weights
        weights = weigh_members(self.weights or "edge", indptr, out, weights, kind)
        return unchecked(Multisets, indptr, out, weights, n)
