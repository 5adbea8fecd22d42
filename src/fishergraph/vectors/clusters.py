"""`Clusters`: groups of nodes that are alike, with names and their most central members."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from fishergraph._listing import Listed, Listing, html, lines
from fishergraph.vectors.clustering import Clustering
from fishergraph.vectors.columns import Columns
from fishergraph.vectors.naming import Trait, name_of, traits_of


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Listed):
    """Clusters of nodes, the largest first.

    Parameters
    ----------
    ids : array of shape (n_nodes,)
        The ids of the nodes.
    labels : array of shape (n_nodes,)
        The cluster of every node, 0 … k - 1.
    names : list of str
        A name for every cluster: the columns that set it apart, or its most central member.
    distance : array of shape (n_nodes,)
        How far every vector, or its direction, is from the centre of its cluster.
    central : list of arrays
        The ids of the most central members of every cluster.
    traits : list of lists of Trait
        The columns that set every cluster apart, the clearest first.
    report : list of dict
        Of every number of clusters that was compared: silhouette, stability and their product.
    left_out : tuple of str
        Columns of the table that could not name a cluster.

    See Also
    --------
    Vectors.cluster : Find them.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Vectors
    >>> Z = np.repeat(np.eye(2), 6, axis=0) + 0.01 * np.arange(12)[:, None]
    >>> found = Vectors(Z).cluster(2, X=np.arange(12)[:, None], columns=["age"])
    >>> found.names, found.sizes.tolist()
    (['age low', 'age high'], [6, 6])
    """

    ids: np.ndarray
    labels: np.ndarray
    names: list[str]
    distance: np.ndarray
    central: list[np.ndarray]
    traits: list[list[Trait]]
    report: list[dict[str, Any]] = field(default_factory=list)
    left_out: tuple[str, ...] = ()

    @property
    def k(self) -> int:
        """The number of clusters."""
        return len(self.names)

    @property
    def sizes(self) -> np.ndarray:
        """The number of nodes of every cluster."""
        return np.bincount(self.labels, minlength=self.k)

    def __len__(self) -> int:
        return self.k

    def __repr__(self) -> str:
        smallest, largest = int(self.sizes.min()), int(self.sizes.max())
        return f"Clusters({self.k} of {len(self.labels):,} nodes, with {smallest:,} to {largest:,} each)"

    def listing(self) -> Listing:
        """Return a row per node.

        Returns
        -------
        Listing
            ``id, cluster, name, distance``.
        """
        names = np.array(self.names, dtype=object)[self.labels]
        return Listing({"id": self.ids, "cluster": self.labels, "name": names, "distance": self.distance})

    def summary(self) -> Listing:
        """Return a row per cluster.

        Returns
        -------
        Listing
            ``cluster, size, name``, and ``central``, the ids of its most central members.
        """
        central = np.array([", ".join(map(str, ids.tolist())) for ids in self.central], dtype=object)
        columns = {"cluster": np.arange(self.k), "size": self.sizes, "name": np.array(self.names, dtype=object)}
        return Listing({**columns, "central": central})

    def __str__(self) -> str:
        return f"{self!r}\n{lines(self.summary(), self.k)}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{html(self.summary(), self.k)}"


def describe(
    found: Clustering, ids: np.ndarray, columns: Columns | None, most_central: int, report: list[dict[str, Any]]
) -> Clusters:
    """The clusters with their names and central members."""
    labels, k = found.labels, len(found.centres)
    order = np.lexsort((np.arange(len(labels)), found.squares, labels))
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=k))])
    central = [ids[order[a:b][:most_central]] for a, b in pairwise(starts)]
    traits: list[list[Trait]] = [[] for _ in range(k)] if columns is None else traits_of(columns, labels, k)
    names = [name_of(own) or f"around {members[0]}" for own, members in zip(traits, central, strict=True)]
    left_out = () if columns is None else columns.left_out
    return Clusters(ids, labels, names, np.sqrt(found.squares), central, traits, report, left_out)
