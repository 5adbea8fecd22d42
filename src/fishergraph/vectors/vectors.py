"""`Vectors`: an embedding with the ids of its rows, and the questions it answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from fishergraph._errors import InputError
from fishergraph._progress import Verbose, progress_bar
from fishergraph._typing import GraphLike, MatrixLike, RandomState
from fishergraph._validation import check_flag, check_integer, check_n_jobs, look_up
from fishergraph._warn import warn
from fishergraph.estimators.node_probe import on_host
from fishergraph.io.lookup import IdRows, in_order, pair_columns
from fishergraph.probes import Links
from fishergraph.probes.blocks import read_blocks
from fishergraph.vectors.approximate import FEW, ApproximateSearch
from fishergraph.vectors.arguments import (
    candidates,
    check_finite,
    check_k,
    check_matrix,
    check_queries,
    check_rows,
    column_names,
    drawn_seed,
    embedded,
    split_ids,
    without_direction,
)
from fishergraph.vectors.clustering import STARTS, best_clusters, choose_k, coordinates
from fishergraph.vectors.clusters import Clusters, describe
from fishergraph.vectors.columns import read_columns
from fishergraph.vectors.pairs import pair_values
from fishergraph.vectors.points import METRICS, Points, Space, make_space
from fishergraph.vectors.results import Neighbours
from fishergraph.vectors.search import ExactSearch, Found


class Vectors:
    """An embedding with the ids of its rows, which answers questions about nodes.

    Which nodes are nearest, how alike are pairs of nodes, what clusters are there?

    Parameters
    ----------
    Z : array of shape (n_nodes, n_columns), or table
        The vectors: what an estimator returned, an array in memory or mapped from a file, a `StoredEmbedding`, or a
        table, which may have the columns `id` and `embedding` that `fishergraph embed` writes.
    ids : sequence, optional
        Distinct ids of the rows, such as `graph.ids`. None takes the index of a DataFrame or the column of ids of a
        table, else 0 … n_nodes - 1.
    blocks : list, optional
        (name, width) of the blocks of columns, such as `model.blocks_`; by default the names of a table's columns tell.

    Attributes
    ----------
    Z : array of shape (n_nodes, n_columns)
        The vectors.
    ids : array of shape (n_nodes,)
        The ids, integers or text.
    blocks : list of tuple
        (name, width) of the blocks.

    See Also
    --------
    FisherEmbedding : Make an embedding.
    LinkProbe : Learn which pairs of nodes have an edge.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Vectors, load_graph
    >>> cora = load_graph("cora")
    >>> model = FisherEmbedding(random_state=0)
    >>> Z = model.fit_transform(cora.X, graph=cora.graph)
    >>> vectors = Vectors(Z, ids=cora.ids, blocks=model.blocks_)
    >>> vectors
    Vectors(2,708 nodes x 1,472 columns)
    >>> vectors.nearest(35, k=3).ids
    array([[ 82920,  85352, 141342]])
    """

    def __init__(self, Z: MatrixLike, ids: Any = None, blocks: Any = None):
        Z, ids = split_ids(Z, ids)
        rows = check_matrix(Z)
        self._ids = IdRows(ids, rows.shape[0])
        self.Z: Any = rows
        parts = read_blocks(column_names(Z) if blocks is None else blocks, None, rows.shape[1])
        self.blocks: list[tuple[str, int]] = [(name, part.stop - part.start) for name, part in parts]
        check_finite(rows, self._name_of)
        self._points = Points(rows)
        self._spaces: dict[str, Space] = {}

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: MatrixLike = None,
        *,
        graph: GraphLike = None,
        ids: Any = None,
        node_type: str | None = None,
    ) -> Self:
        """Embed nodes by a fitted model, and keep their ids and the names of its blocks.

        Parameters
        ----------
        model : estimator
            A fitted `FisherEmbedding`, or another model with `transform`.
        X, graph : matrix and graph
            What its `transform` takes; sets or whole graphs are X.
        ids : sequence, optional
            Distinct ids of the rows. None takes the index of a DataFrame X, or the ids of the graph.
        node_type : str, optional
            Which nodes, if the graph has several types of them.

        Returns
        -------
        Vectors
            The vectors with their ids.

        Examples
        --------
        >>> from fishergraph import FisherEmbedding, Vectors, load_graph
        >>> cora = load_graph("cora")
        >>> model = FisherEmbedding(dim=64, random_state=0).fit(cora.X, graph=cora.graph)
        >>> Vectors.from_estimator(model, cora.X, graph=cora.graph, ids=cora.ids).nearest(35, k=3)
        Neighbours(3 of each of 1 nodes, cosine)
        """
        Z, known, blocks = embedded(model, X, graph, node_type)
        return cls(on_host(Z), known if ids is None else ids, blocks)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read an embedding that `fishergraph embed` wrote.

        Parameters
        ----------
        path : str or path
            A Parquet, CSV, TSV, npz or npy file, a Lance or Zarr folder, or the folder of an embedding in a store.

        Returns
        -------
        Vectors
            The vectors, with the ids and blocks of the file.
        """
        if os.path.isfile(os.path.join(path, "manifest.json")):
            from fishergraph.scale import StoredEmbedding

            stored = StoredEmbedding(path)
            return cls(stored, stored.ids, stored.blocks_)
        from fishergraph.io.tables import read_embedding

        read = read_embedding(path)
        return cls(read.Z, read.ids, read.blocks or read.names)

    @property
    def ids(self) -> np.ndarray:
        """The ids of the rows, integers or text."""
        return self._ids.values

    def __len__(self) -> int:
        return self.Z.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of nodes and columns."""
        return self.Z.shape[0], self.Z.shape[1]

    def __repr__(self) -> str:
        return f"Vectors({self.shape[0]:,} nodes x {self.shape[1]:,} columns)"

    def rows(self, nodes: Any) -> np.ndarray:
        """Return the rows of nodes.

        Parameters
        ----------
        nodes : id or sequence of ids
            The nodes.

        Returns
        -------
        array of shape (n,)
            Row numbers.
        """
        return self._ids.rows(nodes)

    def nearest(
        self,
        nodes: Any = None,
        k: int | None = None,
        *,
        rows: Any = None,
        vectors: Any = None,
        metric: str = "cosine",
        approximate: bool = False,
        random_state: RandomState = 0,
        n_jobs: int | None = None,
        verbose: Verbose = False,
    ) -> Neighbours:
        """Find the nearest nodes of some nodes, or of new vectors.

        A node is not its own neighbour. Nodes that are equally near are in the order of their rows. The exact search
        compares with all rows, in blocks: it needs little memory, and gives the same bits at any number of threads.

        Parameters
        ----------
        nodes : id or sequence of ids
            The nodes, or `rows` or `vectors` in their place.
        k : int, default=None
            The number of neighbours. By default 10, or all other nodes if there are fewer.
        rows : sequence of int, optional
            Row numbers in place of ids.
        vectors : array of shape (n, n_columns) or (n_columns,), optional
            Vectors that have no row.
        metric : {"cosine", "dot", "euclidean"}, default="cosine"
            What is compared: angles, inner products (the kernel of Eq. 2), or distances.
        approximate : bool, default=False
            Search a graph of neighbours, which is built first (extra `approximate`). It misses some of them.
        random_state : int, RandomState or None, default=0
            Seed of the approximate search.
        n_jobs : int, optional
            Threads; None uses every core.
        verbose : bool or callable, default=False
            Show a progress bar. A callable is used as in `FisherEmbedding`.

        Returns
        -------
        Neighbours
            Rows, ids and similarities, from the nearest on.
        """
        given = {"nodes": nodes, "rows": rows, "vectors": vectors}
        names = [name for name, value in given.items() if value is not None]
        if len(names) != 1:
            expected = "be given, and only one of them"
            raise InputError(parameter="nodes, rows or vectors", expected=expected, got=" and ".join(names) or "none")
        search = self._search(metric, approximate, random_state, n_jobs, verbose)
        if vectors is not None:
            queries = check_queries(vectors, self.shape[1])
            k = check_k(k, len(self))
            return self._neighbours(np.arange(len(queries)), search.nearest_to(queries, k), metric)
        own = self.rows(nodes) if rows is None else check_rows(rows, len(self))
        k = check_k(k, len(self) - 1)
        if metric == "cosine" and (zero := np.flatnonzero(self._points.norms[own] == 0)).size:
            raise without_direction(row := int(own[zero[0]]), self._name_of(row))
        return self._neighbours(self.ids[own], search.nearest_rows(own, k), metric)

    def neighbours(
        self,
        k: int | None = None,
        *,
        metric: str = "cosine",
        approximate: bool = False,
        random_state: RandomState = 0,
        n_jobs: int | None = None,
        verbose: Verbose = False,
    ) -> Neighbours:
        """Find the nearest nodes of every node: a graph of neighbours.

        Parameters
        ----------
        k : int, default=None
            The number of neighbours. By default 10, or all other nodes if there are fewer.
        metric : {"cosine", "dot", "euclidean"}, default="cosine"
            What is compared. By angle, rows of zeros have similarity 0 to all others.
        approximate : bool, default=False
            See `nearest`; from some 100,000 rows on it saves much time.
        random_state : int, RandomState or None, default=0
            Seed of the approximate search.
        n_jobs : int, optional
            Threads; None uses every core.
        verbose : bool or callable, default=False
            Show a progress bar. A callable is used as in `FisherEmbedding`.

        Returns
        -------
        Neighbours
            Rows, ids and similarities; row i is that of node i.
        """
        search = self._search(metric, approximate, random_state, n_jobs, verbose)
        k = check_k(k, len(self) - 1)
        if metric == "cosine":
            self._warn_of_zeros("their similarities are 0, and their neighbours the first rows")
        return self._neighbours(self.ids, search.nearest_rows(np.arange(len(self)), k), metric)

    def link_scores(self, pairs: Any, *, metric: str = "cosine") -> np.ndarray:
        """Compare pairs of nodes.

        Parameters
        ----------
        pairs : Links, sequence of pairs of ids, or table
            The pairs: what `split_edges` made, tuples, an array of two columns, or an edge table with columns source
            and target.
        metric : {"cosine", "dot", "euclidean"}, default="cosine"
            See `nearest`.

        Returns
        -------
        array of shape (n_pairs,)
            Similarities, or distances, float64; `LinkProbe` turns vectors into probabilities of edges.
        """
        kind = look_up(METRICS, metric, "metric")
        if isinstance(pairs, Links):
            first, second = (check_rows(rows, len(self)) for rows in pairs.pairs.T)
        else:
            first, second = (self._ids.rows(nodes, "pairs") for nodes in pair_columns(pairs))
        return pair_values(self._points, kind, first, second)

    def cluster(
        self,
        k: int | str | Sequence[int] = "auto",
        *,
        X: MatrixLike = None,
        columns: Sequence[str] | None = None,
        metric: str = "cosine",
        central: int = 5,
        random_state: RandomState = 0,
        n_jobs: int | None = None,
        verbose: Verbose = False,
    ) -> Clusters:
        """Group nodes that are alike, by k-means.

        Parameters
        ----------
        k : int, "auto" or sequence of int, default="auto"
            The number of clusters, or those that are compared; "auto" compares 2 to 12, 15, 20, 25 and 30. The choice
            is the number with the largest product of silhouette (how far apart clusters are) and stability (how alike
            the clusters of random halves of the nodes are).
        X : table or matrix, optional
            What names the clusters: columns of numbers, flags, dates, categories or text, a row per node. The index of
            a DataFrame is matched with the ids.
        columns : sequence of str, optional
            Names of the columns of a matrix X.
        metric : {"cosine", "euclidean"}, default="cosine"
            Whether directions or vectors are clustered.
        central : int, default=5
            Number of most central members that are listed of every cluster.
        random_state : int, RandomState or None, default=0
            Seed.
        n_jobs : int, optional
            Threads; the result has the same bits at any number.
        verbose : bool or callable, default=False
            Show a progress bar. A callable is used as in `FisherEmbedding`.

        Returns
        -------
        Clusters
            Labels, names, sizes and central members, the largest cluster first.
        """
        kinds = {"cosine": True, "euclidean": False}
        unit, n_jobs, progress = look_up(kinds, metric, "metric"), check_n_jobs(n_jobs), progress_bar(verbose)
        sizes = candidates(k, len(self))
        central = check_integer(central, "central", least=1)
        named = None if X is None else read_columns(in_order(X, self.ids), columns, len(self))
        if unit:
            self._warn_of_zeros("they have no direction, and are put together")
        rng = np.random.default_rng(drawn_seed(random_state))
        rows = coordinates(self._points, unit=unit, rng=rng, n_jobs=n_jobs)
        chosen, report = sizes[0], []
        if len(sizes) > 1:
            chosen, report = choose_k(rows, sizes, rng, n_jobs=n_jobs, progress=progress)
        with progress("clustering", STARTS) as bar:
            found = best_clusters(rows, chosen, rng, n_jobs=n_jobs, done=bar.update)
        return describe(found, self.ids, named, central, report)

    # --- what a question needs ------------------------------------------------------------------------------

    def _search(
        self, metric: str, approximate: bool, random_state: RandomState, n_jobs: int | None, verbose: Verbose
    ) -> ExactSearch | ApproximateSearch:
        kind, n_jobs = look_up(METRICS, metric, "metric"), check_n_jobs(n_jobs)
        if metric not in self._spaces:
            self._spaces[metric] = make_space(self._points, kind)
        space, progress = self._spaces[metric], progress_bar(verbose)
        if not check_flag(approximate, "approximate"):
            return ExactSearch(space, n_jobs, progress)
        search = ApproximateSearch(space, drawn_seed(random_state), n_jobs, progress)
        return ExactSearch(space, n_jobs, progress) if len(self) <= FEW else search

    def _neighbours(self, nodes: np.ndarray, found: Found, metric: str) -> Neighbours:
        rows, values = found
        return Neighbours(nodes, rows, self.ids[rows], values, metric)

    def _name_of(self, row: int) -> str:
        node = self.ids[row : row + 1].tolist()[0]
        return f"row {row}" if self._ids.counted else f"the row of {node!r}"

    def _warn_of_zeros(self, consequence: str) -> None:
        zero = np.flatnonzero(self._points.norms == 0)
        if zero.size:
            text = f"{zero.size:,} vectors are zero, {self._name_of(zero[0])} is the first: {consequence}."
            warn("zero vectors", text)
