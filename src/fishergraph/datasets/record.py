"""What every loader returns: one frozen record of a node-labelled graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

Split = np.ndarray | list[np.ndarray] | None


@dataclass(frozen=True, eq=False, repr=False)
class GraphData:
    """A node-labelled graph with its standard split.

    name    short name, as given to `load_graph`
    X       features, (node, feature) float32: dense array or `scipy.sparse.csr_array`
    graph   adjacency, (node, node) `csr_array` of float32 ones: both directions of an edge, each once
    y       class numbers, (node,) int64
    train, val, test
            node numbers (int64) of the standard split; a list of such arrays where the data has several
            fixed splits (`train[k]`, `val[k]`, `test[k]` belong together, see `split`); None if it has none
    ids     the nodes' names in their source, (node,), or None
    licence, source
            terms and provenance, as far as known
    class_names
            the name of class k in place k, or None where they are not known
    """

    name: str
    X: Any
    graph: sp.csr_array
    y: np.ndarray
    train: Split
    val: Split
    test: Split
    ids: np.ndarray | None = None
    licence: str = ""
    source: str = ""
    class_names: tuple[str, ...] | None = None

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.y.shape[0]

    @property
    def n_features(self) -> int:
        """The number of features of a node."""
        return self.X.shape[1]

    @property
    def n_classes(self) -> int:
        """The number of distinct labels that occur."""
        return len(np.unique(self.y))

    @property
    def n_splits(self) -> int:
        """The number of fixed splits: 0, 1 or as many as the lists hold."""
        if self.train is None:
            return 0
        return len(self.train) if isinstance(self.train, list) else 1

    def split(self, k: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The node numbers (train, val, test) of fixed split `k`."""
        if not 0 <= k < self.n_splits:
            have = f"{self.n_splits} fixed split{'s' if self.n_splits != 1 else ''}"
            raise ValueError(f"k must number a split of {self.name}, which has {have}, got {k!r}; draw one yourself.")
        parts = (self.train, self.val, self.test)
        train, val, test = (part[k] if isinstance(part, list) else part for part in parts)
        return train, val, test  # type: ignore[return-value]

    def __repr__(self) -> str:
        splits = {0: "no split", 1: "one split"}.get(self.n_splits, f"{self.n_splits} splits")
        features = f"{self.n_features:,} {'sparse' if sp.issparse(self.X) else 'dense'} features"
        return (
            f"GraphData({self.name!r}: {self.n_nodes:,} nodes, {self.graph.nnz:,} directed edges, "
            f"{features}, {self.n_classes} classes, {splits})"
        )
