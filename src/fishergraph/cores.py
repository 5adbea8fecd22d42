"""Core numbers of nodes: the largest k such that a subgraph in which every node has k neighbours contains the node."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, readonly


def core_numbers(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The core number of every node, int64, (node,), of symmetric rows without self-loops or repetitions.

    Nodes are removed in the order of their remaining degrees, which are kept in buckets: every edge is read once.
    """
    degrees = np.diff(indptr).astype(np.int64)
    order = np.argsort(degrees, kind="stable").astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(degrees))]).astype(np.int64)
    _peel(readonly(indptr), readonly(indices), degrees, order, np.empty_like(order), starts)
    return degrees


@compiled
def _peel(indptr, indices, degrees, order, position, starts):
    """Turn degrees into core numbers, in place; `order` sorts the nodes by degree, `starts` has the bucket borders.

    `position` is scratch for the places of the nodes in the order.
    """
    for k in range(len(order)):
        position[order[k]] = k
    for k in range(len(order)):
        v = order[k]
        for entry in range(indptr[v], indptr[v + 1]):
            u = indices[entry]
            if degrees[u] > degrees[v]:  # u moves to the front of its bucket, and the bucket below grows by one
                front = starts[degrees[u]]
                w = order[front]
                order[position[u]], order[front] = w, u
                position[w], position[u] = position[u], front
                starts[degrees[u]] = front + 1
                degrees[u] -= 1
