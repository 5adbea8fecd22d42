"""Core numbers of nodes: the largest k such that a node is in a part of the graph where everyone has k neighbours."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, readonly


def core_numbers(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The core number of every node, int64, (node,), of symmetric rows without self-loops or repetitions.

    Nodes are peeled off in the order of how many neighbours they have left, which is kept by buckets: the work is that
    of reading every edge once.
    """
    degrees = np.diff(indptr).astype(np.int64)
    order = np.argsort(degrees, kind="stable").astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(degrees))]).astype(np.int64)
    return _peel(readonly(indptr), readonly(indices), degrees, order, starts)


@compiled
def _peel(indptr, indices, left, order, starts):
    """`left` counts the neighbours that are left and ends as the core numbers; `order` sorts the nodes by it, and
    `starts[k]` is the first place of those with k left."""
    place = np.empty_like(order)
    for k in range(len(order)):
        place[order[k]] = k
    for k in range(len(order)):
        v = order[k]
        for entry in range(indptr[v], indptr[v + 1]):
            u = indices[entry]
            if left[u] > left[v]:  # u moves to the front of its bucket, and the bucket below grows by one
                front = starts[left[u]]
                w = order[front]
                order[place[u]], order[front] = w, u
                place[w], place[u] = place[u], front
                starts[left[u]] = front + 1
                left[u] -= 1
    return left
