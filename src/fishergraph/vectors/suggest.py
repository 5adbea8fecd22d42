"""New links: the most probable pairs of near nodes that have no edge yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fishergraph._errors import InputError
from fishergraph._listing import Listed, Listing
from fishergraph._progress import Verbose
from fishergraph._validation import check_integer
from fishergraph.probes import LinkProbe, Links
from fishergraph.vectors.vectors import Vectors


@dataclass(frozen=True, eq=False, repr=False)
class SuggestedLinks(Listed):
    """Pairs of nodes without an edge, the most probable first.

    Parameters
    ----------
    source, target : arrays of shape (n_pairs,)
        The ids of the nodes.
    probability : array of shape (n_pairs,)
        What `LinkProbe.predict_proba` says: the probability of an edge among equally many edges and other pairs.

    See Also
    --------
    suggest_links : Find them.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph.vectors import SuggestedLinks
    >>> SuggestedLinks(np.array(["ann"]), np.array(["bob"]), np.array([0.9]))
    SuggestedLinks(1 pair)
    """

    source: np.ndarray
    target: np.ndarray
    probability: np.ndarray

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"SuggestedLinks({len(self):,} pair{'s'[: len(self) != 1]})"

    def listing(self) -> Listing:
        """Return a row per pair.

        Returns
        -------
        Listing
            ``source, target, probability``.
        """
        return Listing({"source": self.source, "target": self.target, "probability": self.probability})


def suggest_links(
    probe: LinkProbe,
    k: int = 100,
    *,
    candidates: int = 50,
    n_jobs: int | None = None,
    verbose: Verbose = False,
) -> SuggestedLinks:
    """Find the most probable links that do not exist yet.

    Candidates are the pairs of a node and its nearest nodes, by the cosine of their vectors. Those that have an edge in
    the graph of the probe are left out, so call `LinkProbe.use` with the whole graph first.

    Parameters
    ----------
    probe : LinkProbe
        A fitted probe.
    k : int, default=100
        The number of pairs.
    candidates : int, default=50
        Nearest nodes of each node that are compared.
    n_jobs : int, optional
        Threads; the result has the same bits at any number.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.

    Returns
    -------
    SuggestedLinks
        At most k pairs, the most probable first.

    See Also
    --------
    LinkProbe : Learn which pairs have an edge.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, LinkProbe, load_graph, split_edges, suggest_links
    >>> cora = load_graph("cora")
    >>> model = FisherEmbedding(dim=64, random_state=0)
    >>> probe = LinkProbe(model, n_folds=1, random_state=0).fit(cora.X, split_edges(cora.graph, random_state=0))
    >>> suggest_links(probe.use(cora.X, cora.graph), k=5)
    SuggestedLinks(5 pairs)
    """
    k, candidates = check_integer(k, "k", least=1), check_integer(candidates, "candidates", least=1)
    check_is_fitted(probe, "head_")
    graph, directed = probe.graph_, probe.directed_
    vectors = Vectors(probe.vectors_, graph.ids)
    near = vectors.neighbours(min(candidates, len(vectors) - 1), n_jobs=n_jobs, verbose=verbose)
    pairs = np.stack([np.repeat(np.arange(len(vectors)), near.k), near.rows.ravel()], axis=1)
    pairs = np.concatenate([pairs, pairs[:, ::-1]]) if directed else np.sort(pairs, axis=1)
    pairs = np.stack(np.divmod(np.unique(pairs[:, 0] * len(vectors) + pairs[:, 1]), len(vectors)), axis=1)
    nearby = Links(pairs, np.zeros(len(pairs), dtype=bool))
    new = pairs[~probe.has_edge(nearby)]
    if not len(new):
        raise InputError(parameter="graph", expected="have near nodes without an edge", got="edges between all of them")
    probability = probe.predict_proba(Links(new, np.zeros(len(new), dtype=bool)))[:, 1]
    best = np.argsort(-probability, kind="stable")[:k]
    source, target = vectors.ids[new[best]].T
    return SuggestedLinks(source, target, probability[best])
