"""`auto_embed`: try a handful of settings on validation labels, as many as fit into a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fishergraph._arrays import as_floats
from fishergraph._errors import InputTypeError
from fishergraph._progress import Verbose, progress_bar
from fishergraph._typing import GraphLike, MatrixLike, RandomState
from fishergraph._validation import check_number, check_random_seed
from fishergraph._warn import each_warning_once
from fishergraph.auto.choice import AutoEmbedding
from fishergraph.auto.settings import default_settings, estimators
from fishergraph.auto.shared import SharedEmbeddings
from fishergraph.auto.trials import Trials
from fishergraph.estimators.arguments import features_and_graph
from fishergraph.estimators.inputs import read_graph
from fishergraph.estimators.node_probe import row_ids, split_labels
from fishergraph.graph import Graph
from fishergraph.multiset import Neighbourhood
from fishergraph.probes.graph import GraphProbe, read_heads


@each_warning_once()
def auto_embed(
    X: MatrixLike = None,
    graph: GraphLike = None,
    y: object = None,
    *,
    train: object = None,
    val: object = None,
    budget: float = 60.0,
    settings: Sequence[Mapping[str, Any]] | None = None,
    heads: str | Sequence[str] | None = "auto",
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: Verbose = False,
    **params: Any,
) -> AutoEmbedding:
    """Embed the nodes of a graph with the settings that suit their labels.

    Settings of `FisherEmbedding` are compared by the validation accuracy of logistic regression on the embedding. The
    default comes first, and another setting is chosen only if it is better by more than one standard error of that
    accuracy. Settings that differ in depth and block weights alone share one embedding.

    Parameters
    ----------
    X : matrix of shape (n_nodes, n_features), or None
        Features, as in `FisherEmbedding.fit`. A graph, or a record of features and a graph, may be passed as X alone.
    graph : graph, optional
        Anything that `as_graph` takes.
    y : array of shape (n_nodes,)
        Labels; −1, None, NaN and '' mark rows without one.
    train : mask or row numbers, optional
        The rows that train. None takes all labelled rows that are not in `val`.
    val : mask or row numbers, optional
        Labelled rows on which the setting is chosen. None holds out a third of the labelled rows of each class, drawn
        with `random_state`.
    budget : float, default=60.0
        Seconds for the settings. The first one always runs; another one is skipped if its predicted time does not fit.
        The probe at the end is not counted.
    settings : sequence of dict, optional
        Parameters of `FisherEmbedding` to try; the first is preferred. None is a handful that begins with the default:
        other weights of blocks, symmetric weights of edges, neighbours without the node, their differences from it,
        directions of a directed graph, and the preset "best".
    heads : {'auto', 'inductive'} or tuple of str or None, default='auto'
        The heads of the `GraphProbe` on the chosen embedding. None returns the `LogisticProbe` of the comparison, which
        learned from at most 10,000 rows.
    random_state : int, RandomState or None, default=None
        Seed of everything. The same seed gives the same result, unless the budget skips a setting in one of the runs.
    n_jobs : int, optional
        Threads; None uses every core. The result has the same bits at any number.
    verbose : bool or callable, default=False
        Show a progress bar. A callable is used as in `FisherEmbedding`.
    **params
        Parameters of `FisherEmbedding` that all settings have, such as ``device="cuda"``. A setting of the handful that
        changes one of them is left out.

    Returns
    -------
    AutoEmbedding
        The fitted embedding, the rows `Z`, the fitted probe, and a report of what was tried.

    See Also
    --------
    FisherEmbedding : The embedding with known settings; its presets need no labels.
    GraphProbe : The probe of any embedding.

    Examples
    --------
    >>> from fishergraph import auto_embed, load_graph
    >>> cora = load_graph("cora")
    >>> settings = [{}, {"block_weights": {"walk": 0, "smooth": 0}}]
    >>> split = {"train": cora.train, "val": cora.val}
    >>> result = auto_embed(cora.X, cora.graph, cora.y, **split, settings=settings, heads=None, random_state=0)
    >>> result.setting  # the first
    {}
    >>> bool(result.probe.score(result.Z[cora.test], cora.y[cora.test]) > 0.8)
    True
    """
    clock = perf_counter
    budget, seed = check_number(budget, "budget", strict=True), _seed(random_state)
    X, graph = features_and_graph(X, graph, fitting=True)
    if X is None and graph is None:
        raise InputTypeError("X or graph must be given, got None for both; pass features, a graph, or both.")
    nodes = read_graph(X, graph, Neighbourhood())
    n_rows = _n_rows(X, nodes)
    if heads is not None:
        heads = heads if isinstance(heads, str) or not hasattr(heads, "__iter__") else list(heads)
        heads = read_heads(heads, graph=nodes is not None)
    split = split_labels(y, n_rows, row_ids(X, nodes), train=train, val=val, seed=_hold_out_seed(seed))
    shared = SharedEmbeddings(X, nodes, n_rows)
    asked = default_settings(shared, params) if settings is None else settings
    models = estimators(shared, asked, {**params, "random_state": seed, "n_jobs": n_jobs})
    trials = Trials(shared, models, split, budget, clock)
    with progress_bar(verbose, unit="setting")("trying settings", len(models)) as bar:
        for number in range(len(models)):
            trials.run(number)
            bar.set_postfix(accuracy=trials.best.accuracy)
            bar.update(1)
    best, chosen, began = trials.finish(), models[trials.best.number], clock()
    embedding, Z = shared.embed(chosen)
    embedding.set_params(verbose=verbose)
    probe = best.probe
    if heads is not None:
        blocks, run = embedding.get_feature_names_out().tolist(), {"n_jobs": n_jobs, "verbose": verbose}
        probe = GraphProbe(nodes, blocks=blocks, heads=heads, fit_on=split.fit_on, random_state=seed, **run)
        probe.fit(Z, split.labels, split.train, split.val)
    seconds = {"settings": trials.seconds, "probe": clock() - began}
    setting, report = dict(asked[best.number]), trials.report(asked)
    return AutoEmbedding(embedding, Z, probe, setting, report, split.train, split.val, budget, seconds)


def _n_rows(X: MatrixLike, graph: Graph | None) -> int:
    """The number of rows of the result."""
    if graph is not None:
        return graph.n_nodes
    shape = getattr(X, "shape", None)
    return (as_floats(X, "X").shape if shape is None else shape)[0]


def _seed(random_state: RandomState) -> int:
    """One seed for all settings: a seed as it is, or one that is drawn."""
    checked = check_random_seed(random_state)
    if isinstance(checked, (int, np.integer)):
        return int(checked)
    return int(check_random_state(checked).randint(0, 2**32, dtype=np.uint32))


def _hold_out_seed(seed: int) -> int:
    """The seed with which `FisherClassifier` in the mode "probe" holds rows out, so that both do it alike."""
    return int(check_random_state(seed).randint(0, 2**31 - 1, size=3)[2])
