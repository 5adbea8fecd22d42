"""`Explainer`: a fitted embedding bound to its data, which says why two nodes are alike and whom a node attends to."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from fishergraph._errors import InputError
from fishergraph._listing import Listing
from fishergraph._parallel import one_blas_thread
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph._validation import check_flag, check_integer, check_n_jobs, check_seed, look_up
from fishergraph.estimators import FisherEmbedding, FisherSetEmbedding
from fishergraph.explain.anchors import AnchorDescriptions, describe
from fishergraph.explain.anomaly import AnomalyScores, anomaly_scores
from fishergraph.explain.attention import AttentionRows, all_attention, attention_of
from fishergraph.explain.binding import Data, bind
from fishergraph.explain.compare import similarity
from fishergraph.explain.errors import standard_errors
from fishergraph.explain.layers import LayerView
from fishergraph.explain.names import column_names
from fishergraph.explain.pvalues import TAILS
from fishergraph.explain.records import Attention, Similarity
from fishergraph.explain.surprise import NeighbourhoodScores, neighbourhood_scores
from fishergraph.explain.views import make_views


class Explainer:
    """Explain a fitted embedding: similarities, attention, anchors.

    The model is bound to its data once. Then every question about nodes is answered in milliseconds. Nodes are named by
    their ids, or by their rows if they have none.

    Parameters
    ----------
    model : FisherEmbedding or FisherSetEmbedding
        The fitted model.
    X, graph : matrix and graph
        What `transform` takes: the data of the fit, or other nodes. For an embedding of sets X are the sets, and they
        take the place of nodes in everything below.
    weights : list of arrays, optional
        The weights of the members of sets.
    ids : array, optional
        Names of the rows. None takes the index of a DataFrame X, or the ids of the graph.
    feature_names : sequence of str, optional
        Names of the columns of X. None takes those of the fit, else x0, x1, ….

    Attributes
    ----------
    ids : ndarray
        The ids in row order.
    layers : list of str
        The layers that have multisets: "psi1", "psi2", ….

    See Also
    --------
    FisherEmbedding : The model.
    node_kernel : The similarities of all nodes, as a matrix.

    Examples
    --------
    >>> from fishergraph import Explainer, FisherEmbedding
    >>> from fishergraph.datasets import load_graph
    >>> cora = load_graph("cora")
    >>> model = FisherEmbedding(dim=64, random_state=0).fit(cora.X, graph=cora.graph)
    >>> explainer = Explainer(model, cora.X, graph=cora.graph, ids=cora.ids)
    >>> why = explainer.explain(31336, 1061127)  # print(why) shows everything
    >>> len(why.blocks)
    7
    >>> explainer.explain(31336)
    Attention(31336, psi1: 6 members, 4 anchors)
    """

    def __init__(
        self,
        model: FisherEmbedding | FisherSetEmbedding,
        X: MatrixLike = None,
        *,
        graph: GraphLike = None,
        weights: Any = None,
        ids: Any = None,
        feature_names: Any = None,
    ):
        with one_blas_thread():
            self._binding = bind(model, Data(X, graph, weights, ids, feature_names))
            self._views = make_views(self._binding)

    @property
    def ids(self) -> np.ndarray:
        """The ids in row order; row numbers if there are none."""
        return self._binding.names[np.arange(self._binding.n_rows)]

    @property
    def layers(self) -> list[str]:
        """The names of the layers."""
        return [name for name, view in self._views.items() if isinstance(view, LayerView)]

    def __repr__(self) -> str:
        kind = "sets" if self._binding.rule is None else "nodes"
        return f"Explainer({self._binding.n_rows:,} {kind}, {', '.join(self._views)})"

    def row(self, v: Any) -> int:
        """Return the row of a node.

        Parameters
        ----------
        v : id or int
            The id of the node, or its row if the nodes have no ids.

        Returns
        -------
        int
            Its row.
        """
        return self._binding.names.row(v)

    @overload
    def explain(self, v: Any, w: None = None, *, cosine: bool = ..., block: str | None = ...) -> Attention: ...

    @overload
    def explain(self, v: Any, w: Any, *, cosine: bool = ..., block: str | None = ...) -> Similarity: ...

    def explain(
        self, v: Any, w: Any = None, *, cosine: bool = False, block: str | None = None
    ) -> Similarity | Attention:
        """Say why two nodes are alike, or whom one node attends to.

        Parameters
        ----------
        v : id or int
            A node, by its id, or by its row if the nodes have no ids.
        w : id or int, optional
            Another node. None asks for the attention of the first.
        cosine : bool, default=False
            Divide the similarity, and all its parts, by the lengths of the two vectors.
        block : str, optional
            The layer whose attention is wanted; None is "psi1", the first. Of two nodes: this block alone.

        Returns
        -------
        Similarity or Attention
            The parts of ⟨Z_v, Z_w⟩, or the attention of v.
        """
        names, cosine = self._binding.names, check_flag(cosine, "cosine")
        with one_blas_thread():
            if w is None:
                return attention_of(self._layer(block), self._binding, names.row(v))
            views = self._views if block is None else {block: look_up(self._views, block, "block")}
            return similarity(self._binding, views, names.row(v), names.row(w, "w"), cosine=cosine)

    def attention_all(self, *, blocks: Any = None) -> dict[str, AttentionRows]:
        """Return the attention of every node to every member, in compressed rows.

        Parameters
        ----------
        blocks : sequence of str, optional
            The layers; None is all of them.

        Returns
        -------
        dict of str to AttentionRows
            By layer: ``indptr``, ``indices``, and ``attention`` of shape (n_entries, n_anchors).
        """
        names = self.layers if blocks is None else [blocks] if isinstance(blocks, str) else list(blocks)
        with one_blas_thread():
            return {name: all_attention(self._layer(name), self._binding) for name in names}

    def describe_anchors(
        self, feature_names: Any = None, *, block: str | None = None, n_columns: int = 5, n_nodes: int = 3
    ) -> AnchorDescriptions:
        """Describe every anchor of a layer by its columns of X and its typical nodes.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the columns of X; None takes those of the explainer.
        block : str, optional
            The layer; None is "psi1", the first.
        n_columns : int, default=5
            How many columns to list for each anchor: those in which its nodes differ most from all nodes.
        n_nodes : int, default=3
            How many nodes to list: those it is most responsible for.

        Returns
        -------
        AnchorDescriptions
            The anchors, their columns, their nodes.
        """
        names = self._binding.column_names
        names = column_names(feature_names, names, len(names))
        n_columns = check_integer(n_columns, "n_columns", least=1)
        n_nodes = check_integer(n_nodes, "n_nodes", least=1)
        with one_blas_thread():
            return describe(self._layer(block), self._binding, names, n_columns, n_nodes)

    def standard_errors(self, nodes: Any = None, *, block: str | None = None) -> Listing:
        """Say how sure the estimates of nodes are.

        The effective size of a multiset is (Σ_u a_vu)² / Σ_u a_vu². The standard error of φ_v is estimated from the
        spread of its members, as if they were drawn independently; it is NaN for less than two of them.

        Parameters
        ----------
        nodes : sequence of ids, optional
            The nodes; None is all of them.
        block : str, optional
            The layer; None is "psi1", the first.

        Returns
        -------
        Listing
            ``node, row, n_members, effective_size, standard_error``.
        """
        with one_blas_thread():
            return standard_errors(self._layer(block), self._binding, self._binding.names.rows(nodes))

    def neighbourhood_scores(
        self,
        nodes: Any = None,
        *,
        n_permutations: int = 199,
        tail: str = "counts",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> NeighbourhoodScores:
        """Measure how far neighbourhoods are from an ordinary sample of the graph.

        The score of a node is n_v ‖φ_v‖² in the first layer. It is compared with the same multiset over permuted
        features, and with all multisets of the same weights. A permutation takes about as long as the first layer does
        in `transform`; the scores of sixteen of them are held at a time.

        Parameters
        ----------
        nodes : sequence of ids, optional
            The nodes; None is all of them.
        n_permutations : int, default=199
            How often features are permuted over the nodes.
        tail : {"counts", "gamma"}, default="counts"
            How p-values are computed. "counts": (1 + permuted scores that reach the observed one) / (1 + permuted
            scores). "gamma": where fewer than ten reach it, the tail of a gamma distribution with their mean, variance
            and skewness.
        random_state : int, default=0
            Seed of the permutations.
        n_jobs : int, optional
            Threads; None is the number of the model. The result has the same bits at any number.

        Returns
        -------
        NeighbourhoodScores
            Scores, p-values, and p-values adjusted for the number of nodes.
        """
        binding, seed = self._binding, check_seed(random_state, "random_state")
        self._layer(None)
        look_up(TAILS, tail, "tail")
        n_permutations = check_integer(n_permutations, "n_permutations", least=1, most=10**7)
        options: dict[str, Any] = {"n_permutations": n_permutations, "tail": tail, "seed": seed}
        n_jobs = binding.n_jobs if n_jobs is None else check_n_jobs(n_jobs)
        rows = binding.names.rows(nodes)
        with one_blas_thread():
            return neighbourhood_scores(binding, rows, n_jobs=n_jobs, **options)

    def anomaly_scores(self, nodes: Any = None, *, n_jobs: int | None = None) -> AnomalyScores:
        """Rank nodes by how odd they are, and say why.

        A node is odd if it is unlike its neighbours (context), if its neighbours are unlike each other (discord), or
        if nothing like it was there when the model was fitted (novelty). It takes about as long as `transform`.

        Parameters
        ----------
        nodes : sequence of ids, optional
            The nodes whose scores are wanted; None is all of them. Ranks are among all nodes in any case.
        n_jobs : int, optional
            Threads; None is the number of the model. The result has the same bits at any number.

        Returns
        -------
        AnomalyScores
            The scores, their three parts, and the reason of each.
        """
        binding, rows = self._binding, self._binding.names.rows(nodes)
        self._layer(None)
        if binding.rule is None:
            expected, advice = "embed nodes", "use neighbourhood_scores, which says how odd sets are"
            raise InputError(parameter="model", expected=expected, got="an embedding of sets", advice=advice)
        with one_blas_thread():
            return anomaly_scores(binding, rows, binding.n_jobs if n_jobs is None else check_n_jobs(n_jobs))

    def _layer(self, name: str | None) -> LayerView:
        """The view of a layer; the first one for None."""
        layers: dict[str, LayerView] = {key: self._views[key] for key in self.layers}
        if not layers:
            expected, advice = "have a layer", "fit one with n_layers of at least 1"
            raise InputError(parameter="model", expected=expected, got="n_layers=0", advice=advice)
        return next(iter(layers.values())) if name is None else look_up(layers, name, "block")
