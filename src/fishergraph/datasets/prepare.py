"""What is done to data before it is embedded, in one place: both directions of an edge, self-loops, scaled rows.

Readers give the features as published and the graph with both directions of every edge. `prepare` does the rest, as the
method asks: unit rows and closed neighbourhoods. What a dataset needs beyond that stands with it in `sources.SOURCES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._checks import check_compressed, check_finite_rows, check_flag, check_squares, look_up
from fishergraph._numbers import as_floats
from fishergraph.datasets.record import GraphData


@dataclass(frozen=True)
class Preparation:
    """The steps of `prepare`, in this order: words counted become words present, rows are scaled, loops are set."""

    binary: bool = False
    rows: str = "unit"  # "unit": Σ_j x_ij² = 1; "sum": Σ_j |x_ij| = 1; "raw": as published; a row of zeros stays
    loops: str = "add"  # "add": every node once among its neighbours; "drop": none; "keep": as published

    def __str__(self) -> str:
        steps = [*(["words present, not counted"] if self.binary else []), _ROWS[self.rows][0], _LOOPS[self.loops][0]]
        return ", ".join(["both directions of an edge", *steps])


METHOD = Preparation()


def prepare(data: GraphData, preparation: Preparation | None = None) -> GraphData:
    """The data as the method takes it: x_i / ‖x_i‖ for every row of X, and A with a diagonal of ones.

    Without a `preparation` it is that of the dataset of this name in `sources.SOURCES`, else `METHOD`. The result of
    `prepare` is left as it is by a second call.
    """
    preparation = preparation_of(data.name) if preparation is None else preparation
    check_flag(preparation.binary, "binary")
    scale = look_up(_ROWS, preparation.rows, "rows")[1]
    set_loops = look_up(_LOOPS, preparation.loops, "loops")[1]
    X = as_floats(data.X, "X")
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix of shape (node, feature), got shape {X.shape}; reshape it.")
    check_finite_rows(X, "X")
    X = _present(X) if preparation.binary else X
    if preparation.rows != "raw":
        check_squares(X, "X")
    return replace(data, X=scale(X), graph=set_loops(check_compressed(data.graph, "graph")))


def preparation_of(name: str) -> Preparation:
    """The preparation of the published dataset of this name, else `METHOD`."""
    from fishergraph.datasets.sources import published

    source = published(name)
    return METHOD if source is None else source.preparation


def check_nodes(what: str, n_nodes: int, *numbers: np.ndarray) -> None:
    """Raise where arrays hold other node numbers than 0 … n_nodes − 1; `what` names their file."""
    there = [part for part in numbers if part.size]
    low, high = min((part.min() for part in there), default=0), max((part.max() for part in there), default=-1)
    if low < 0 or high >= n_nodes:
        raise ValueError(
            f"{what} must hold node numbers 0 to {n_nodes - 1}, got {low} to {high}; repair it, or get it again."
        )


def check_edge_index(what: str, n_nodes: int, edges: np.ndarray) -> np.ndarray:
    """Edges as they came, (2, edge) whole numbers of nodes; `what` names their file."""
    whole = edges.dtype.kind in "iu" or edges.size == 0  # np.array([[], []]) is float64, and harmless
    if edges.ndim != 2 or edges.shape[0] != 2 or not whole:
        raise ValueError(
            f"{what} must be whole numbers of shape (2, edge), got {edges.dtype} of shape {edges.shape}; repair it."
        )
    check_nodes(what, n_nodes, edges)
    return edges


def undirected_graph(sources: np.ndarray, targets: np.ndarray, n_nodes: int) -> sp.csr_array:
    """The symmetric 0/1 adjacency (csr_array, float32) of an edge list: max(A, Aᵀ), both directions, each edge once."""
    there = np.ones(len(sources), dtype=bool)  # a byte an edge, and edges listed twice stay one
    kind = np.int32 if n_nodes < 2**31 else np.int64
    ends = (sources.astype(kind, copy=False), targets.astype(kind, copy=False))
    graph = sp.csr_array(sp.coo_array((there, ends), shape=(n_nodes, n_nodes)))
    back = graph.T.tocsr()
    if not np.array_equal(graph.indptr, back.indptr) or not np.array_equal(graph.indices, back.indices):
        graph = sp.csr_array(graph + back)
    return sp.csr_array(graph.astype(np.float32))


def _present(X: Any) -> Any:
    """1 where an entry is not zero."""
    if not sp.issparse(X):
        return (X != 0).astype(np.float32)
    X = sp.csr_array(X, copy=True)
    X.data = (X.data != 0).astype(np.float32)
    return X


def _scaled(norm: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], Any]:
    """X with each row divided by a norm, Σ_j norm(x_ij) under the outer one; a row of zeros is left."""

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
    """The graph without edges from a node to itself."""
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
