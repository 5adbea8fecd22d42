"""`to_table`: what a graph says of its nodes, as named and typed columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph._validation import check_flag, check_integer, check_n_jobs, look_up
from fishergraph.estimators import FisherEmbedding
from fishergraph.estimators.inputs import read_graph
from fishergraph.estimators.labels import read_rows
from fishergraph.estimators.node import transform_input
from fishergraph.graph import Graph
from fishergraph.kernel_map import IdentityMap
from fishergraph.layer import Run
from fishergraph.multiset import Neighbourhood
from fishergraph.passes import Pass, side_by_side
from fishergraph.tabular.around import is_directed, label_columns, smoothed_columns, structural_columns
from fishergraph.tabular.own import own_columns
from fishergraph.walk import Walk

KINDS = ("pandas", "polars", "arrow")
ID = "id"


def to_table(
    X: MatrixLike = None,
    graph: GraphLike = None,
    model: FisherEmbedding | None = None,
    *,
    features: MatrixLike = None,
    kind: str = "pandas",
    names: Any = None,
    y: Any = None,
    label: str = "label",
    train: Any = None,
    inductive: bool = False,
    axes: int = 0,
    n_categories: int = 10,
    walk: Walk | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Make a table of what a graph says of its nodes, for boosted trees.

    The columns are named and typed: the nodes' own; means of numbers, and shares of categories, over the neighbours;
    means by PageRank; log-degree, triangles, clustering, PageRank and core number; with a model soft counts of the
    neighbourhood at its anchors, and if asked the principal axes of its embedding. Edges are read both ways.

    Parameters
    ----------
    X : table or matrix of shape (n_nodes, n_columns), or None
        The nodes' own columns, of any types, which are kept. The index of a DataFrame is the node ids.
    graph : graph
        Anything that `as_graph` takes, with a node for every row of X.
    model : FisherEmbedding, optional
        A fitted model, for the columns ``anchor_k``: log(1 + the mass of the neighbours at anchor k) in its first
        layer.
    features : table or matrix of shape (n_nodes, n_features), optional
        What `model.transform` takes; None is X.
    kind : {"pandas", "polars", "arrow"}, default="pandas"
        The table. pandas has the ids as its index and texts as categories; the others have a column "id".
    names : list of str, optional
        The columns of a matrix X.
    y : array of shape (n_nodes,), optional
        Labels, missing ones as None or NaN. The neighbours' labels become columns: shares of classes, or the mean of
        floats. The label of a node is never in its own row.
    label : str, default="label"
        What these columns are called.
    train : mask or row numbers, optional
        The rows whose labels may be seen; required with `y` and with `inductive`. Categories are theirs too.
    inductive : bool, default=False
        Compute the rows of `train` from the graph of these rows alone, as if the others did not exist yet, and the
        others from the whole graph. Fit the model on the training graph too.
    axes : int, default=0
        So many principal axes of the embedding of `model`, found on the training rows: the columns ``axis_k``.
    n_categories : int, default=10
        The most frequent values of a column of texts whose shares are columns.
    walk : Walk, optional
        The teleport probability of the PageRank means; None is ``Walk(0.1)``.
    n_jobs : int, optional
        Threads; None uses every core.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
        A row per node, in the order of X.

    See Also
    --------
    FisherEmbedding : An embedding, for linear models and distances.
    structural_features : The columns of the edges as a matrix.

    Examples
    --------
    >>> import pandas as pd
    >>> from fishergraph import to_table
    >>> people = pd.DataFrame({"age": [20, 40, 60]}, index=["ann", "bob", "eve"])
    >>> friends = pd.DataFrame({"source": ["ann", "bob"], "target": ["bob", "eve"]})
    >>> to_table(people, friends)["age_mean_neighbours"].to_dict()
    {'ann': 40.0, 'bob': 40.0, 'eve': 40.0}
    """
    look_up(dict.fromkeys(KINDS), kind, "kind")
    settings = _Settings(
        label=label,
        walk=Walk(0.1) if walk is None else walk,
        n_categories=check_integer(n_categories, "n_categories", least=0),
        n_jobs=check_n_jobs(n_jobs),
    )
    axes = check_integer(axes, "axes", least=0)
    if graph is None:
        expected, advice = "be given", "pass the edges; without any there is nothing beside X"
        raise InputError(parameter="graph", expected=expected, got="None", advice=advice)
    if axes and model is None:
        raise InputError(parameter="model", expected="be a fitted FisherEmbedding for axes", got="None")
    nodes = read_graph(X, graph, Neighbourhood())
    assert nodes is not None
    ids = np.asarray(X.index) if hasattr(X, "iloc") else nodes.ids  # type: ignore[union-attr]
    rows = _training_rows(train, nodes.n_nodes, needed=y is not None or check_flag(inductive, "inductive"))
    own, labels = own_columns(X, names, nodes.n_nodes), _labels(y, nodes.n_nodes)
    whole = _Part(own, X if features is None else features, nodes, labels, rows)
    learning = whole.of(rows) if inductive else whole
    settings = replace(settings, directed=is_directed(nodes), principal=_principal(model, learning, axes))
    columns = settings.columns(whole, model)
    if inductive:
        columns = _replaced(columns, settings.columns(learning, model), rows)
    return _as_kind({**own, **columns}, ids if ids is not None else np.arange(nodes.n_nodes), kind)


@dataclass(frozen=True)
class _Part:
    """Columns, features, graph and labels of some nodes, and the training rows among them."""

    own: dict[str, pa.Array]
    X: Any
    graph: Graph
    labels: pa.Array | None
    train: np.ndarray

    def of(self, rows: np.ndarray) -> _Part:
        """The part of these rows, which all train."""
        index = pa.array(rows)
        own = {name: column.take(index) for name, column in self.own.items()}
        X: Any = self.X
        if X is not None:
            taken = X.iloc[rows] if hasattr(X, "iloc") else X.take(index) if hasattr(X, "column_names") else X[rows]
        labels = None if self.labels is None else self.labels.take(index)
        return _Part(own, None if X is None else taken, self.graph[rows], labels, np.arange(len(rows)))


@dataclass(frozen=True)
class _Settings:
    label: str
    walk: Walk
    n_categories: int
    n_jobs: int | None
    directed: bool = False
    principal: Any = None

    def columns(self, part: _Part, model: FisherEmbedding | None) -> dict[str, Any]:
        """The columns of a part, all but the nodes' own ones."""
        with one_blas_thread():
            found = dict(self._around(part))
        if model is not None:
            found |= _counts(model, part)
            if self.principal is not None:
                Z = np.asarray(model.transform(part.X, graph=part.graph))
                found |= {f"axis_{k}": column for k, column in enumerate(self.principal.transform(Z).T)}
        return found

    def _around(self, part: _Part) -> Iterator[tuple[str, np.ndarray]]:
        yield from smoothed_columns(part.own, part.graph, self.walk, part.train, self.n_categories, self.n_jobs)
        yield from structural_columns(part.graph, directed=self.directed)
        if part.labels is not None:
            yield from label_columns(self.label, part.labels, part.graph, part.train)


def _training_rows(train: Any, n_rows: int, *, needed: bool) -> np.ndarray:
    """The rows that train; all if nothing depends on them."""
    if train is None and not needed:
        return np.arange(n_rows)
    expected = "name the training rows, whose labels and edges may be seen"
    if train is None:
        raise InputError(parameter="train", expected=expected, got="None", advice="pass a mask or row numbers")
    rows = read_rows(train, n_rows, "train")
    if not len(rows):
        raise InputError(parameter="train", expected=expected, got="none")
    return rows


def _labels(y: Any, n_rows: int) -> pa.Array | None:
    """The labels as a column of Arrow."""
    if y is None:
        return None
    values: Any = y.to_arrow() if hasattr(y, "to_arrow") else y
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        plain = np.asarray(values)
        values = pa.array(plain.tolist() if plain.dtype.kind == "O" else plain, from_pandas=True)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if len(values) != n_rows:
        raise InputError(parameter="y", value=len(values), expected=f"hold a label for each of the {n_rows} rows")
    return values


# --- columns of a model ----------------------------------------------------------------------------------


def _counts(model: FisherEmbedding, part: _Part) -> dict[str, np.ndarray]:
    """log(1 + mass) of every neighbourhood at the anchors of the first layer."""
    stack, (rows, sets, workspace, _, _) = transform_input(model, part.X, part.graph)
    if not stack.layers:
        raise InputError(parameter="model", value=model, expected="have a layer, whose anchors count", got="none")
    layer = stack.layers[0]
    n_counts = sets.kinds * layer.family.mean_statistics(layer.theta).shape[0]
    first = replace(layer, reading="counts", kernel_map=IdentityMap(n_counts))
    weights = (0.0, 1.0)
    alone = replace(
        stack, n_layers=1, layers=(first,), structure=(), averages_features=False, columns=(), block_weights=weights
    )
    with one_blas_thread():
        Z = sets.pooled(side_by_side(Pass(alone, rows, sets, Run(workspace)), alone.widths))
    return {f"anchor_{k}": column for k, column in enumerate(np.asarray(Z).T)}


def _principal(model: FisherEmbedding | None, part: _Part, most: int) -> Any:
    """The leading principal axes of the embedding, found on the training rows; None if they are not wanted."""
    if model is None or not most:
        return None
    from sklearn.decomposition import PCA

    Z = np.asarray(model.transform(part.X, graph=part.graph))[part.train]
    return PCA(min(most, *Z.shape), random_state=0).fit(Z)


# --- the table -------------------------------------------------------------------------------------------


def _replaced(columns: dict[str, Any], others: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """The columns with other values in some rows."""
    found = {}
    for name, column in columns.items():
        values = np.array(column)
        values[rows] = others.get(name, np.nan if values.dtype.kind == "f" else 0)
        found[name] = values
    return found


def _as_kind(columns: dict[str, Any], ids: np.ndarray, kind: str) -> Any:
    """The table, with NaN as a missing value."""
    if kind != "pandas" and ID in columns:
        advice = "rename it, or ask for kind='pandas', whose index holds the ids"
        raise InputError(
            parameter="X", expected="have no column 'id' beside the ids of nodes", got="one", advice=advice
        )
    arrays = {name: _column(values) for name, values in columns.items()}
    if kind == "pandas":
        from pandas import Index

        texts = [
            name
            for name, values in arrays.items()
            if pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        ]
        frame = pa.table(
            {name: v.dictionary_encode() if name in texts else v for name, v in arrays.items()}
        ).to_pandas()
        frame.index = Index(ids, name=ID)
        return frame
    table = pa.table({ID: pa.array(ids), **arrays})
    if kind == "arrow":
        return table
    from polars import from_arrow

    return from_arrow(table)


def _column(values: Any) -> pa.Array:
    if not isinstance(values, np.ndarray):
        return values
    narrow = values.astype(np.float32) if values.dtype == np.float64 else values
    return pa.array(narrow, from_pandas=True)
