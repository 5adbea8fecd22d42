"""What loaders return: `GraphData`, a graph with labelled nodes, and `GraphSet`, labelled graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import FileFormatError, InputError
from fishergraph.graphs import Graphs

Split = np.ndarray | list[np.ndarray] | None
Fold = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class GraphData:
    """A graph with labelled nodes and its standard split.

    Parameters
    ----------
    name : str
        Short name, as passed to `load_graph`.
    X : array or CSR array of shape (n_nodes, n_features), float32
        Features.
    graph : CSR array of shape (n_nodes, n_nodes), float32
        Adjacency of ones: both directions of an edge, each once.
    y : array of shape (n_nodes,), int64
        Class numbers, −1 for a node without label.
    train, val, test : array of int64, list of arrays, or None
        Node numbers of the standard split. Lists if the data has several fixed splits: `train[k]`, `val[k]`, `test[k]`
        belong together. None if there is no split.
    ids : array of shape (n_nodes,), default=None
        Names of the nodes in their source.
    licence, source : str, default=""
        Terms and provenance, as far as known.
    class_names : tuple of str, default=None
        The name of class k at index k.

    Attributes
    ----------
    n_nodes, n_features, n_classes, n_splits : int
        Numbers of nodes, of features, of distinct labels and of fixed splits.

    See Also
    --------
    fishergraph.load_graph : Load a graph by name or path.

    Examples
    --------
    >>> from fishergraph import load_graph
    >>> cora = load_graph("cora")
    >>> cora
    GraphData('cora': 2,708 nodes, 10,556 directed edges, 1,433 sparse features, 7 classes, one split)
    >>> len(cora.split(0)[0])
    140
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
        """Number of nodes."""
        return self.y.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features of a node."""
        return self.X.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of distinct labels that occur."""
        return len(np.unique(self.y))

    @property
    def n_splits(self) -> int:
        """Number of fixed splits."""
        if self.train is None:
            return 0
        return len(self.train) if isinstance(self.train, list) else 1

    def split(self, k: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the node numbers of one of the fixed splits.

        Parameters
        ----------
        k : int, default=0
            The number of the split.

        Returns
        -------
        tuple of three arrays
            The nodes for training, validation and testing.
        """
        if not 0 <= k < self.n_splits:
            expected = f"be one of the {self.n_splits} fixed splits of {self.name}"
            raise InputError(parameter="k", value=k, expected=expected, advice="draw a split yourself")
        train, val, test = (part[k] if isinstance(part, list) else part for part in (self.train, self.val, self.test))
        return train, val, test  # type: ignore[return-value]

    def __repr__(self) -> str:
        splits = {0: "no split", 1: "one split"}.get(self.n_splits, f"{self.n_splits} splits")
        features = f"{self.n_features:,} {'sparse' if sp.issparse(self.X) else 'dense'} features"
        return (
            f"GraphData({self.name!r}: {self.n_nodes:,} nodes, {self.graph.nnz:,} directed edges, "
            f"{features}, {self.n_classes} classes, {splits})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class GraphSet:
    """Labelled graphs with their fixed folds.

    Parameters
    ----------
    name : str
        Short name, as passed to `load_graphs`.
    graphs : Graphs
        The graphs with tags and features; the input of `FisherGraphEmbedding`.
    y : array of shape (n_graphs,), int64
        Class numbers.
    folds : tuple of pairs (train, test), default=()
        Graph numbers of fixed folds.
    classes : tuple of str, default=()
        The label of class k at index k, as the source writes it.
    source : str, default=""
        Provenance.

    See Also
    --------
    fishergraph.load_graphs : Load a set by name or path.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import as_graphs
    >>> from fishergraph.datasets import GraphSet
    >>> GraphSet("two", as_graphs([[(0, 1)], [(0, 1), (1, 2)]]), np.array([0, 1]))
    GraphSet('two': Graphs(2 graphs: 5 nodes, 3 directed edges), 2 classes, no folds)
    """

    name: str
    graphs: Graphs
    y: np.ndarray
    folds: tuple[Fold, ...] = ()
    classes: tuple[str, ...] = ()
    source: str = ""

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        folds = f"{len(self.folds)} folds" if self.folds else "no folds"
        return f"GraphSet({self.name!r}: {self.graphs!r}, {len(np.unique(self.y))} classes, {folds})"


# --- graphs from the edges of files ---------------------------------------------------------------------


def check_nodes(path: Any, n_nodes: int, *numbers: np.ndarray) -> None:
    """Raise if arrays of a file hold other node numbers than 0 … n_nodes − 1."""
    filled = [array for array in numbers if array.size]
    low, high = min((array.min() for array in filled), default=0), max((array.max() for array in filled), default=-1)
    if low < 0 or high >= n_nodes:
        reason = f"node numbers must lie between 0 and {n_nodes - 1}, got {low} to {high}"
        raise FileFormatError(path=path, reason=reason)


def undirected_graph(sources: np.ndarray, targets: np.ndarray, n_nodes: int) -> sp.csr_array:
    """The symmetric 0/1 adjacency max(A, Aᵀ) of an edge list, in float32: both directions, each edge once."""
    ones = np.ones(len(sources), dtype=bool)  # one byte per edge, and parallel edges stay one
    kind = np.int32 if n_nodes < 2**31 else np.int64
    ends = (sources.astype(kind, copy=False), targets.astype(kind, copy=False))
    graph = sp.csr_array(sp.coo_array((ones, ends), shape=(n_nodes, n_nodes)))
    back = graph.T.tocsr()
    if not np.array_equal(graph.indptr, back.indptr) or not np.array_equal(graph.indices, back.indices):
        graph = sp.csr_array(graph + back)
    return sp.csr_array(graph.astype(np.float32))
