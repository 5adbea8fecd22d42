"""Core numbers of nodes: the largest k such that a subgraph in which every node has k neighbours contains the node."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, readonly


def core_numbers(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The core number of every node, int64, (node,), of symmetric rows without self-loops or repetitions."""
    peeling = Peeling(np.diff(indptr))
    peeling.remove(slice(0, len(indptr) - 1), readonly(indptr), readonly(indices))
    return peeling.degrees


class Peeling:
    """Nodes are removed in the order of their remaining degrees, which are kept in buckets: every row is read once.

    Parameters
    ----------
    sizes : array of shape (n_nodes,)
        The numbers of neighbours. A loop in a row is not counted, and changes nothing.
    """

    def __init__(self, sizes: np.ndarray):
        self.degrees = sizes.astype(np.int64)
        self._order = np.argsort(self.degrees, kind="stable").astype(np.int64, copy=False)
        self._position = np.empty_like(self._order)
        self._position[self._order] = np.arange(len(sizes))
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(self.degrees))]).astype(np.int64)

    def remove(self, places: slice, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Remove the nodes at the next places of the order; `degrees` are core numbers when all are removed."""
        arrays = self.degrees, self._order, self._position, self._starts
        _peel(places.start, places.stop, indptr, indices, *arrays)


@compiled
def _peel(start, stop, indptr, indices, degrees, order, position, starts):  # pyright: ignore
    """Turn degrees into core numbers, in place; `order` sorts the nodes by degree, `starts` has the bucket borders.

    `position` has the places of the nodes in the order.
    """
    for k in range(start, stop):
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
