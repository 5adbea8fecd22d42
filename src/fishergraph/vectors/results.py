"""`Neighbours`: the nearest vectors of some nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fishergraph._listing import Listed, Listing


@dataclass(frozen=True, eq=False, repr=False)
class Neighbours(Listed):
    """The nearest vectors of some nodes, from the nearest on.

    Parameters
    ----------
    nodes : array of shape (n_queries,)
        The nodes that were asked for, by their ids; new vectors by their numbers.
    rows : array of shape (n_queries, k)
        The rows of their neighbours.
    ids : array of shape (n_queries, k)
        The ids of their neighbours.
    values : array of shape (n_queries, k)
        Similarities, or distances if the metric is "euclidean".
    metric : str
        "cosine", "dot" or "euclidean".

    See Also
    --------
    Vectors.nearest : Find them.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Vectors
    >>> Vectors(np.array([[1, 0], [2, 1], [0, 1]]), ids=["a", "b", "c"]).nearest("a", k=1).to_arrow().to_pylist()
    [{'node': 'a', 'rank': 1, 'neighbour': 'b', 'similarity': 0.8944271909999159}]
    """

    nodes: np.ndarray
    rows: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    metric: str

    @property
    def k(self) -> int:
        """The number of neighbours of a node."""
        return self.rows.shape[1]

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Neighbours({self.k} of each of {len(self):,} nodes, {self.metric})"

    def listing(self) -> Listing:
        """Return a row per pair.

        Returns
        -------
        Listing
            ``node, rank, neighbour``, and ``similarity`` or ``distance``.
        """
        columns = {
            "node": np.repeat(self.nodes, self.k),
            "rank": np.tile(np.arange(1, self.k + 1), len(self)),
            "neighbour": self.ids.ravel(),
            "distance" if self.metric == "euclidean" else "similarity": self.values.ravel(),
        }
        return Listing(columns)
