"""How well scores rank edges before pairs without one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fishergraph._arrays import plain_array
from fishergraph._errors import InputError
from fishergraph._validation import check_integer

HITS = (10, 50, 100)


def link_metrics(scores: ArrayLike, edges: ArrayLike, hits: Sequence[int] = HITS) -> dict[str, float]:
    """Measure how well scores rank edges before pairs without one.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Larger for pairs that are more likely an edge.
    edges : array of bool of shape (n_pairs,)
        Whether a pair has an edge.
    hits : sequence of int, default=(10, 50, 100)
        The k of hits@k; those above the number of pairs without an edge are left out.

    Returns
    -------
    dict
        "auc", the area under the ROC curve; "average_precision"; and "hits@k", the share of edges with a larger score
        than all but k − 1 of the pairs without one.

    See Also
    --------
    LinkProbe.evaluate : The same for the predictions of a probe.

    Examples
    --------
    >>> from fishergraph.probes import link_metrics
    >>> link_metrics([0.9, 0.6, 0.7, 0.1], [True, True, False, False], hits=[1])
    {'auc': 0.75, 'average_precision': 0.8333333333333333, 'hits@1': 0.5}
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    values, truth = plain_array(scores, "scores").astype(np.float64), plain_array(edges, "edges").astype(bool)
    if values.shape != truth.shape or values.ndim != 1 or truth.all() or not truth.any():
        expected = "hold a score per pair, of edges and of pairs without one"
        got = f"{values.shape} scores, {int(truth.sum()):,} of {truth.size:,} pairs with an edge"
        raise InputError(parameter="scores and edges", expected=expected, got=got)
    measures = {"auc": float(roc_auc_score(truth, values))}
    measures["average_precision"] = float(average_precision_score(truth, values))
    others = np.sort(values[~truth])[::-1]
    for k in (check_integer(k, "hits", least=1) for k in hits):
        if k <= len(others):
            measures[f"hits@{k}"] = float(np.mean(values[truth] > others[k - 1]))
    return measures
