"""Validation of graph objects and of arrays of edges: endpoints and weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from fishergraph._arrays import plain_array
from fishergraph._errors import EndpointError, InputError, InputTypeError

# More nodes must be asked for with n_nodes: their row offsets alone take 8 GiB.
_MOST_NODES = 2**30


def check_edge_index(edge_index: np.ndarray, name: str = "edge_index") -> np.ndarray:
    """`edge_index` unchanged: a (2, E) array of integers."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        transposed = edge_index.ndim == 2 and edge_index.shape[1] == 2
        advice = "transpose it, edge_index.T" if transposed else "wrap an adjacency matrix as scipy.sparse.csr_array(A)"
        raise InputError(parameter=name, value=edge_index.shape, expected="have shape (2, E)", advice=advice)
    if edge_index.size == 0:  # np.array([[], []]) is float64
        return edge_index.astype(np.int64)
    if edge_index.dtype.kind not in "iu":
        got, advice = str(edge_index.dtype), "convert it with astype(int)"
        raise InputTypeError(parameter=name, expected="hold integers", got=got, advice=advice)
    return edge_index


def count_nodes(source: np.ndarray, target: np.ndarray) -> int:
    """One more than the largest endpoint."""
    if len(source) == 0:
        return 0
    largest = max(int(source.max()), int(target.max()), 0)
    if largest >= _MOST_NODES:
        raise InputError(
            parameter="edge_index",
            value=largest,
            expected="count the nodes from 0",
            got=f"node {largest} without n_nodes",
            advice="pass ids as a table with columns source and target",
        )
    return largest + 1


def check_endpoints(source: np.ndarray, target: np.ndarray, n_nodes: int) -> None:
    """Raise an `EndpointError` for the first edge that ends outside 0 … n_nodes - 1."""
    if len(source) == 0:
        return
    low, high = min(source.min(), target.min()), max(source.max(), target.max())
    if low >= 0 and high < n_nodes:
        return
    bad = (source < 0) | (source >= n_nodes) | (target < 0) | (target >= n_nodes)
    edge = int(np.flatnonzero(bad)[0])
    ends = (int(source[edge]), int(target[edge]))
    node = next(end for end in ends if not 0 <= end < n_nodes)
    raise EndpointError(
        parameter="edge endpoints",
        value=node,
        expected=f"be nodes 0 to {n_nodes - 1}",
        got=f"{node} in edge {edge} ({ends[0]} -> {ends[1]}, the first bad one)",
        advice="repair the edge or pass a larger n_nodes",
        edge=edge,
        n_nodes=n_nodes,
    )


def check_weights(weights: Any, n_edges: int, name_edge: Callable[[int], str]) -> np.ndarray:
    """Edge weights as float32 or float64, finite and not negative; `name_edge(i)` is the i-th edge in a message."""
    weights = plain_array(weights, "edge weights")
    if weights.shape != (n_edges,):
        raise InputError(parameter="edge weights", value=weights.shape, expected=f"have shape ({n_edges},)")
    if weights.dtype.kind not in "biuf":
        times = weights.dtype.kind in "mM"  # Python has some of them as integers
        bad = [i for i, weight in enumerate(weights.tolist()) if times or not isinstance(weight, Real)]
        if bad:
            edge = next((i for i in bad if not _reads_as_number(weights[i])), bad[0])
            got = f"{weights[edge]!r} on edge {name_edge(edge)}"
            raise InputTypeError(
                parameter="edge weights",
                value=weights[edge],
                expected="be real numbers",
                got=got,
                advice="convert them",
            )
        weights = weights.astype(np.float64)
    single = weights.dtype.kind == "b" or weights.dtype in (np.float16, np.float32)
    weights = weights.astype(np.float32 if single else np.float64, copy=False)
    if n_edges and not (weights.min() >= 0 and weights.max() < np.inf):
        edge = int(np.flatnonzero(~((weights >= 0) & (weights < np.inf)))[0])
        raise InputError(
            parameter="edge weights",
            value=float(weights[edge]),
            expected="be finite and not negative",
            got=f"{weights[edge]:g} on edge {name_edge(edge)} (the first bad one)",
            advice="repair or drop such edges",
        )
    return weights


def _reads_as_number(value: Any) -> bool:
    """Whether a value is the text of a number."""
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


def check_sums(A: Any) -> None:
    """Raise if the weights of parallel edges, added up in a CSR matrix, overflow."""
    if A.nnz and not A.data.max() < np.inf:
        entry = int(np.argmax(A.data))
        row = int(np.searchsorted(A.indptr, entry, side="right")) - 1
        raise InputError(
            parameter="the weights of parallel edges",
            expected="have a finite sum",
            got=f"more than {A.dtype} holds on edge {A.indices[entry]} -> {row}",
            advice="rescale the weights",
        )


def type_name(obj: Any) -> str:
    """The package and the type of an object, for an error."""
    return f"{type(obj).__module__.partition('.')[0]} {type(obj).__name__}"


def not_a_graph(obj: Any) -> InputTypeError:
    """The error for an object that is not a graph, with advice for what people often have."""
    advice = "convert it to one of these"
    if isinstance(obj, dict):
        advice = "pass networkx.Graph(graph) if it lists the neighbours of every node"
    elif isinstance(obj, (tuple, set, frozenset, Iterator)):
        advice = "pass list(graph) if these are edges"
    elif type(obj).__module__.startswith("networkx."):
        advice = "pass the NetworkX graph itself"
    elif isinstance(obj, (str, PathLike)):
        advice = "pass the table in that file, fishergraph.io.tables.read_edges(path)"
    elif hasattr(obj, "graph"):
        advice = "pass its graph, graph=data.graph"
    expected = (
        "be a SciPy sparse matrix, a (2, E) integer array or tensor or (edge_index, weights), a list of edges "
        "[(source, target), …], a NetworkX or igraph graph, PyTorch Geometric Data, a pandas, Polars or pyarrow table "
        "or Graph"
    )
    return InputTypeError(parameter="graph", expected=expected, got=type_name(obj), advice=advice)
