"""`LinkProbe`: which pairs of nodes have an edge, learned from edges that the embedding has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fishergraph._errors import InputError, InputTypeError
from fishergraph._progress import progress_bar
from fishergraph._records import check_same_rows, type_name
from fishergraph._repr import short_params
from fishergraph._typing import GraphLike, MatrixLike, RandomState
from fishergraph._validation import check_integer, check_n_jobs, check_random_seed, look_up
from fishergraph._warn import each_warning_once
from fishergraph.graph import Graph, as_graph
from fishergraph.io.lookup import IdRows, in_order, pair_columns
from fishergraph.probes.blocks import read_blocks
from fishergraph.probes.edges import EdgeSplit, Links
from fishergraph.probes.link_heads import LINK_HEADS, LinkHead, fitted, scores
from fishergraph.probes.pairs import PairFeatures
from fishergraph.probes.ranking import HITS, link_metrics
from fishergraph.probes.validation import validate_embedding

_SHARE = 0.1  # of the training edges that a fold holds out
_MOST_TRAIN = 20_000  # training pairs of a head whose features differ between embeddings
_PARTS = 5  # of a cross-validation

Sample = tuple[np.ndarray, np.ndarray]  # features of pairs, and whether they have an edge


class LinkProbe(BaseEstimator):
    """Probability that two nodes have an edge, from their vectors and degrees.

    A head learns from edges that the embedding has not seen: seen edges look closer than new ones. With `embedding`, a
    tenth of the training edges is held out several times and the rest embedded anew; the validation edges choose the
    head. Without it, X is an embedding of the training graph, and the head learns from the validation edges. Heads are

    - "similarity": the cosine of whole vectors;
    - "logistic": logistic regression on the cosine of each block and the degrees of both nodes;
    - "boosted": gradient-boosted trees on them;
    - "products": logistic regression on the products of all columns, learned from training edges. It is tried only if
      it is named.

    Parameters
    ----------
    embedding : estimator, optional
        An embedding of nodes, such as `FisherEmbedding`; copies of it are fitted.
    heads : tuple of str, default=("similarity", "logistic", "boosted")
        The heads that are tried.
    blocks : sequence or mapping, optional
        The blocks of the columns, as in `GraphProbe`; those of the embedding if it has `blocks_`.
    n_folds : int, default=5
        How often training edges are held out.
    random_state : int, RandomState or None, default=None
        Seed of the folds and the trees.
    n_jobs : int, optional
        Threads; None uses every core. The result has the same bits at any number.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.

    Attributes
    ----------
    head_ : str
        The head with the largest area under the ROC curve on the validation edges.
    report_ : list of dict
        The area under the ROC curve and the average precision of every head on the validation edges.
    feature_names_ : list of str
        What "logistic" and "boosted" read.
    vectors_ : array of shape (n_nodes, n_columns)
        The embedding that predictions use.
    graph_ : Graph
        The graph that was embedded.
    classes_ : array of shape (2,)
        False and True.

    See Also
    --------
    split_edges : Hold out edges.
    Vectors.link_scores : Similarities of pairs, without learning.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, LinkProbe, load_graph, split_edges
    >>> cora = load_graph("cora")
    >>> split = split_edges(cora.graph, random_state=0)
    >>> probe = LinkProbe(FisherEmbedding(random_state=0), random_state=0).fit(cora.X, split)
    >>> round(probe.score(split.test), 2)
    0.97
    """

    __repr__ = short_params

    def __init__(
        self,
        embedding: Any = None,
        *,
        heads: Sequence[str] = ("similarity", "logistic", "boosted"),
        blocks: Sequence[Any] | Mapping[str, int] | None = None,
        n_folds: int = 5,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: Any = False,
    ):
        self.embedding = embedding
        self.heads = heads
        self.blocks = blocks
        self.n_folds = n_folds
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @each_warning_once()
    def fit(self, X: MatrixLike, split: EdgeSplit) -> Self:
        """Learn from edges that are held out.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_columns), or None
            What `embedding` takes: features, or None. Without `embedding` the vectors, an embedding of `split.graph`.
            A table whose index, or column id, has the ids of the graph may be in any order.
        split : EdgeSplit
            What `split_edges` returned. Its test edges are not read.

        Returns
        -------
        LinkProbe
            The fitted probe.
        """
        if not isinstance(split, EdgeSplit):
            got, advice = type_name(split), "pass split_edges(graph)"
            raise InputTypeError(parameter="split", value=split, expected="be an EdgeSplit", got=got, advice=advice)
        heads = [self.heads] if isinstance(self.heads, str) else list(self.heads)
        kinds = {name: look_up(LINK_HEADS, name, "heads") for name in heads}
        n_folds = check_integer(self.n_folds, "n_folds", least=1, most=int(1 / _SHARE))
        if not kinds or (self.embedding is None and not len(split.val)):
            what, expected = ("heads", "name one") if not kinds else ("split", "have validation edges to learn from")
            raise InputError(parameter=what, expected=expected, got="none")
        rng = check_random_state(check_random_seed(self.random_state))
        self._seed, seed = (int(rng.randint(2**31 - 1)) for _ in range(2))
        self.directed_, self.classes_ = split.directed, np.array([False, True])
        self._width = _n_columns(X)
        with progress_bar(self.verbose, unit="embedding")("embedding", 1 + n_folds) as bar:
            self._use(*self._embedded(X, split.graph), split.graph)
            bar.update(1)
            held = []
            for graph, links in () if self.embedding is None else split.folds(n_folds, _SHARE, seed):
                held.append((self._features(*self._embedded(X, graph), graph), links))
                bar.update(1)
        samples = {name: self._samples(head, held, split) for name, head in kinds.items()}
        self.report_ = [{"head": name, **self._judged(kinds[name], *samples[name])} for name in kinds]
        self.head_ = max(self.report_, key=lambda record: record["auc"])["head"]
        self._model = self._fitted(kinds[self.head_], samples[self.head_])
        return self

    def use(self, X: MatrixLike, graph: GraphLike) -> Self:
        """Predict from another graph from now on, such as the whole one.

        The head stays as it was learned.

        Parameters
        ----------
        X : matrix of shape (n_nodes, n_columns), or None
            As in `fit`: features, or the vectors of this graph.
        graph : graph
            Anything that `as_graph` takes.

        Returns
        -------
        LinkProbe
            The probe itself.
        """
        check_is_fitted(self, "head_")
        if not LINK_HEADS[self.head_].comparable:
            expected = "have a head that reads similarities, which mean the same in another graph"
            raise InputError(parameter="the probe", value=self.head_, expected=expected, got=f"the head {self.head_!r}")
        nodes, width = as_graph(graph), _n_columns(X)
        if width != self._width:  # vectors of the embedding may have more or fewer: as many as the data have landmarks
            expected, got = f"have {self._width} columns, as in fit", str(width)
            raise InputError(parameter="X", value=width, expected=expected, got=got)
        self._use(*self._embedded(X, nodes), nodes)
        return self

    def decision_function(self, pairs: Any) -> np.ndarray:
        """Compute the logits of pairs.

        Parameters
        ----------
        pairs : Links, sequence of pairs of ids, or table
            The pairs of source and target: what `split_edges` made, tuples, an array of two columns, or an edge table.

        Returns
        -------
        array of shape (n_pairs,)
            Larger for pairs that are more likely an edge.
        """
        check_is_fitted(self, "head_")
        return scores(self._model, LINK_HEADS[self.head_].read(self._pairs, self._rows(pairs)))

    def predict_proba(self, pairs: Any) -> np.ndarray:
        """Predict the probability of an edge.

        It is that among equally many edges and other pairs.

        Parameters
        ----------
        pairs : Links, sequence of pairs of ids, or table
            See `decision_function`.

        Returns
        -------
        array of shape (n_pairs, 2)
            Probabilities of no edge and of an edge.
        """
        logits = self.decision_function(pairs)
        edge = 1 / (1 + np.exp(-np.clip(logits, -500, 500)))
        return np.stack([1 - edge, edge], axis=1)

    def predict(self, pairs: Any) -> np.ndarray:
        """Predict whether pairs have an edge, with a probability above one half.

        Parameters
        ----------
        pairs : Links, sequence of pairs of ids, or table
            See `decision_function`.

        Returns
        -------
        array of bool of shape (n_pairs,)
            Whether there is an edge.
        """
        return self.decision_function(pairs) > 0

    def has_edge(self, pairs: Any) -> np.ndarray:
        """Tell whether pairs have an edge in the graph that predictions use.

        Parameters
        ----------
        pairs : Links, sequence of pairs of ids, or table
            See `decision_function`.

        Returns
        -------
        array of bool of shape (n_pairs,)
            Whether there is an edge from the source to the target.
        """
        check_is_fitted(self, "head_")
        rows, n = self._rows(pairs), self.graph_.n_nodes
        targets = np.repeat(np.arange(n), np.diff(self.graph_.indptr))
        return np.isin(rows[:, 0] * n + rows[:, 1], self.graph_.indices.astype(np.int64) * n + targets)

    def score(self, links: Links) -> float:
        """Compute the area under the ROC curve.

        Parameters
        ----------
        links : Links
            Pairs with and without an edge, such as `split.test`.

        Returns
        -------
        float
            The probability that an edge has a larger score than a pair without one.
        """
        return self.evaluate(links)["auc"]

    def evaluate(self, links: Links, hits: Sequence[int] = HITS) -> dict[str, float]:
        """Measure how well edges are ranked before pairs without one.

        Parameters
        ----------
        links : Links
            Pairs with and without an edge, such as `split.test`.
        hits : sequence of int, default=(10, 50, 100)
            The k of hits@k.

        Returns
        -------
        dict
            "auc", "average_precision" and "hits@k", see `fishergraph.probes.link_metrics`.
        """
        if not isinstance(links, Links):
            expected, got = "be Links, pairs that say whether they have an edge", type_name(links)
            raise InputTypeError(parameter="links", value=links, expected=expected, got=got, advice="pass split.test")
        return link_metrics(self.decision_function(links), links.edges, hits)

    # --- what a fit does ------------------------------------------------------------------------------------

    def _embedded(self, X: Any, graph: Graph) -> tuple[np.ndarray, Any]:
        """The vectors of a graph and their blocks; a table that names its rows may be in another order."""
        X = in_order(X, graph.ids)
        if self.embedding is None:
            return validate_embedding(X, "X"), read_blocks(self.blocks, X, np.shape(X)[1])
        model: Any = clone(self.embedding)
        Z = model.fit_transform(X, graph=graph)
        blocks = getattr(model, "blocks_", None) if self.blocks is None else self.blocks
        rows = validate_embedding(np.asarray(Z), "the embedding")
        return rows, read_blocks(blocks, Z, rows.shape[1])

    def _features(self, Z: np.ndarray, blocks: Any, graph: Graph) -> PairFeatures:
        check_same_rows(len(Z), graph.n_nodes)
        return PairFeatures(Z, blocks, graph, directed=self.directed_, n_jobs=check_n_jobs(self.n_jobs))

    def _use(self, Z: np.ndarray, blocks: Any, graph: Graph) -> None:
        """Set what predictions use, all of it or nothing."""
        pairs, ids = self._features(Z, blocks, graph), IdRows(graph.ids, graph.n_nodes)
        self.vectors_, self.graph_, self._pairs, self._ids = Z, graph, pairs, ids
        self.feature_names_ = pairs.names

    def _samples(
        self, head: LinkHead, held: list[tuple[PairFeatures, Links]], split: EdgeSplit
    ) -> tuple[Sample | None, Sample | None]:
        """What a head learns from, if it is not the validation pairs, and these, if there are any."""
        val = (head.read(self._pairs, split.val.pairs), split.val.edges) if len(split.val) else None
        if not head.comparable:
            rows = np.random.default_rng(self._seed).permutation(len(split.train))[:_MOST_TRAIN]
            return (head.read(self._pairs, split.train.pairs[rows]), split.train.edges[rows]), val
        if not held:
            return None, val
        features = [head.read(pairs, links.pairs) for pairs, links in held]
        edges = np.concatenate([links.edges for _, links in held])
        if edges.all() or not edges.any():
            raise _too_few(edges)
        return (np.concatenate(features), edges), val

    def _judged(self, head: LinkHead, train: Sample | None, val: Sample | None) -> dict[str, float]:
        """The measures of a head on the validation pairs; by cross-validation if it has to learn from them too."""
        if train is not None and val is not None:
            found, edges = scores(fitted(head, *train, self._seed), val[0]), val[1]
        else:
            features, edges = self._all((train, val))
            found = np.empty(len(edges))
            for first, second in self._parts(edges):
                found[second] = scores(fitted(head, features[first], edges[first], self._seed), features[second])
        return link_metrics(found, edges, ())

    def _parts(self, edges: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from and to judge by, several times."""
        n_parts = min(_PARTS, int(edges.sum()), int((~edges).sum()))
        if n_parts < 2:
            raise _too_few(edges)
        return StratifiedKFold(n_parts, shuffle=True, random_state=self._seed).split(edges[:, None], edges)

    def _fitted(self, head: LinkHead, samples: tuple[Sample | None, Sample | None]) -> Any:
        return fitted(head, *self._all(samples), self._seed)

    def _all(self, samples: tuple[Sample | None, Sample | None]) -> Sample:
        """All pairs to learn from."""
        given = [sample for sample in samples if sample is not None]
        return np.concatenate([features for features, _ in given]), np.concatenate([edges for _, edges in given])

    def _rows(self, pairs: Any) -> np.ndarray:
        """The rows of pairs, (pair, 2)."""
        if isinstance(pairs, Links):
            return pairs.pairs
        return np.stack([self._ids.rows(column, "pairs") for column in pair_columns(pairs)], axis=1)


def _too_few(edges: np.ndarray) -> InputError:
    """The error for too few pairs, of edges and others, to learn from."""
    got = f"{int(edges.sum()):,} that are held out, and {int((~edges).sum()):,} other pairs"
    advice = "use a larger graph, or hold out a larger share"
    return InputError(parameter="split", expected="have several edges to learn from", got=got, advice=advice)


def _n_columns(X: Any) -> int | None:
    """The columns of a matrix or a table; None for no features."""
    shape = () if X is None else getattr(X, "shape", None) or np.shape(X)
    return shape[1] if len(shape) == 2 else None
