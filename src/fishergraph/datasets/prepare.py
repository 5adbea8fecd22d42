"""Preparation of data before it is embedded: scaled rows and self-loops.

Readers return the features as published and the graph with both directions of every edge. `prepare` makes unit rows and
closed neighbourhoods. What a dataset needs beyond that is part of its entry in `sources.SOURCES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import as_floats, check_compressed, check_finite_rows, check_squares
from fishergraph._errors import InputError
from fishergraph._validation import check_flag, look_up
from fishergraph.datasets.records import GraphData


@dataclass(frozen=True)
class Preparation:
    """The steps of `prepare`, in this order.

    Parameters
    ----------
    binary : bool, default=False
        Replace counts by 0 and 1.
    rows : {"unit", "sum", "raw"}, default="unit"
        Scale rows to length 1, or to absolute values whose sum is 1, or keep them; a row of zeros stays.
    loops : {"add", "drop", "keep"}, default="add"
        Self-loops: one at each node, none, or as published.

    See Also
    --------
    prepare : Apply the steps.

    Examples
    --------
    >>> from fishergraph.datasets import Preparation
    >>> print(Preparation(rows="sum", loops="keep"))
    both directions of an edge, rows of sum one, self-loops as published
    """

    binary: bool = False
    rows: str = "unit"
    loops: str = "add"

    def __str__(self) -> str:
        steps = [*(["words present, not counted"] if self.binary else []), _ROWS[self.rows][0], _LOOPS[self.loops][0]]
        return ", ".join(["both directions of an edge", *steps])


METHOD = Preparation()


def prepare(data: GraphData, preparation: Preparation | None = None) -> GraphData:
    """Return the data as the method takes it.

    By default rows are x_i / ‖x_i‖, and A has a diagonal of ones. A second call changes nothing.

    Parameters
    ----------
    data : GraphData
        The graph as published.
    preparation : Preparation, default=None
        The steps. By default those of the published dataset of this name, else `Preparation()`.

    Returns
    -------
    GraphData
        The graph with other features and self-loops.

    Examples
    --------
    >>> from fishergraph.datasets import load_graph, prepare
    >>> prepare(load_graph("cora")).graph.diagonal().min()
    np.float32(1.0)
    """
    preparation = preparation_of(data.name) if preparation is None else preparation
    check_flag(preparation.binary, "binary")
    scale = look_up(_ROWS, preparation.rows, "rows")[1]
    set_loops = look_up(_LOOPS, preparation.loops, "loops")[1]
    X = as_floats(data.X, "X")
    if X.ndim != 2:
        raise InputError(parameter="X", value=X.shape, expected="be a matrix of shape (node, feature)")
    check_finite_rows(X, "X")
    if preparation.binary and sp.issparse(X):
        X = sp.csr_array(((X.data != 0).astype(np.float32), X.indices, X.indptr), shape=X.shape)
    elif preparation.binary:
        X = (X != 0).astype(np.float32)
    if preparation.rows != "raw":
        check_squares(X, "X")
    return replace(data, X=scale(X), graph=set_loops(check_compressed(data.graph, "graph")))


def preparation_of(name: str) -> Preparation:
    """The preparation of the published dataset of this name, else `METHOD`."""
    from fishergraph.datasets.sources import published

    source = published(name)
    return METHOD if source is None else source.preparation


def _scaled(norm: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], Any]:
    """A function that divides each row by its length (np.square) or its sum of sizes (np.abs); zero rows stay."""

    def scale(X: Any) -> Any:
        values = X.data if sp.issparse(X) else X
        powers = norm(values)
        if sp.issparse(X):
            sums = np.asarray(sp.csr_array((powers, X.indices, X.indptr), shape=X.shape).sum(axis=1))
        else:
            sums = powers.sum(axis=1)
        lengths = np.sqrt(sums) if norm is np.square else sums
        lengths = np.where(lengths == 0, 1, lengths).astype(values.dtype)
        if not sp.issparse(X):
            return X / lengths[:, None]
        data = X.data / np.repeat(lengths, np.diff(X.indptr))
        return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)

    return scale


def _with_loops(graph: Any) -> sp.csr_array:
    """The graph with each node among its own neighbours, once."""
    return sp.csr_array(graph.maximum(sp.eye_array(graph.shape[0], dtype=graph.dtype, format="csr")))


def _without_loops(graph: Any) -> sp.csr_array:
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    data = np.where(graph.indices == rows, 0, graph.data).astype(graph.dtype)
    graph = sp.csr_array((data, graph.indices.copy(), graph.indptr.copy()), shape=graph.shape)
    graph.eliminate_zeros()
    return graph


_ROWS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "unit": ("rows of length one", _scaled(np.square)),
    "sum": ("rows of sum one", _scaled(np.abs)),
    "raw": ("rows as published", lambda X: X),
}
_LOOPS: dict[str, tuple[str, Callable[[sp.csr_array], sp.csr_array]]] = {
    "add": ("a self-loop at each node", _with_loops),
    "drop": ("no self-loops", _without_loops),
    "keep": ("self-loops as published", lambda graph: graph),
}
