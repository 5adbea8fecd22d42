"""The door for graphs: edges, weights and nodes are checked here, and their errors worded here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from os import PathLike
from typing import Any

import numpy as np

from fishergraph._numbers import plain_array

# More nodes than this are counted only on request: their row offsets alone take 8 GiB.
_MOST_NODES = 2**30


def type_name(obj: Any) -> str:
    """How an error calls the type of an object: its package and its name."""
    return f"{type(obj).__module__.partition('.')[0]} {type(obj).__name__}"


def unknown_graph(obj: Any) -> TypeError:
    """The error for an object that is no graph, with what to pass for what people often have."""
    advice = "convert it to one of these"
    if isinstance(obj, dict):
        advice = "pass networkx.Graph(graph) if it lists the neighbours of every node"
    elif isinstance(obj, (tuple, set, frozenset, Iterator)):
        advice = "pass list(graph) if these are edges"
    elif type(obj).__module__.startswith("networkx."):
        advice = "pass the NetworkX graph itself"
    elif isinstance(obj, (str, PathLike)):
        advice = "pass the table in that file, fishergraph.tables.read_edges(path)"
    elif hasattr(obj, "graph"):
        advice = "pass its graph, graph=data.graph"
    return TypeError(
        "graph must be a SciPy sparse matrix, a (2, E) integer array or tensor or (edge_index, weights), a list of "
        "edges [(source, target), …], a NetworkX or igraph graph, PyTorch Geometric Data, a pandas, Polars or pyarrow "
        f"table or Graph, got {type_name(obj)}; {advice}."
    )


def check_edge_index(edge_index: np.ndarray) -> np.ndarray:
    """A (2, E) array of integers, as it came."""
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        advice = "wrap an adjacency matrix as scipy.sparse.csr_array(A)"
        if edge_index.ndim == 2 and edge_index.shape[1] == 2:
            advice = "transpose it, edge_index.T"
        raise ValueError(f"edge_index must have shape (2, E), got {edge_index.shape}; {advice}.")
    if edge_index.size == 0:  # np.array([[], []]) is float64, and harmless
        return edge_index.astype(np.int64)
    if edge_index.dtype.kind not in "iu":
        raise TypeError(f"edge_index must hold integers, got {edge_index.dtype}; convert it with astype(int).")
    return edge_index


def count_nodes(source: np.ndarray, target: np.ndarray) -> int:
    """The number of nodes of edges between 0 … n - 1: one more than the largest; ids that do not count are refused."""
    if len(source) == 0:
        return 0
    largest = max(int(source.max()), int(target.max()), 0)
    if largest >= _MOST_NODES:
        raise ValueError(
            f"edge_index must count the nodes from 0, got node {largest} without n_nodes; "
            "pass ids as a table with columns source and target."
        )
    return largest + 1


def check_endpoints(source: np.ndarray, target: np.ndarray, n_nodes: int) -> None:
    """Raise if an endpoint is outside 0 … n_nodes - 1; the message names the first such edge."""
    if len(source) == 0:
        return
    low, high = min(source.min(), target.min()), max(source.max(), target.max())
    if low >= 0 and high < n_nodes:
        return
    bad = (source < 0) | (source >= n_nodes) | (target < 0) | (target >= n_nodes)
    edge = int(np.flatnonzero(bad)[0])
    ends = (int(source[edge]), int(target[edge]))
    node = next(end for end in ends if not 0 <= end < n_nodes)
    raise ValueError(
        f"edge endpoints must be nodes 0 to {n_nodes - 1}, got {node} in edge {edge} "
        f"({ends[0]} -> {ends[1]}, the first bad one); repair the edge or pass a larger n_nodes."
    )


def check_weights(weights: Any, n_edges: int, name_edge: Callable[[int], str]) -> np.ndarray:
    """Edge weights as float32 or float64, finite and not negative; `name_edge(i)` names the i-th edge."""
    weights = plain_array(weights, "edge weights")
    if weights.shape != (n_edges,):
        raise ValueError(f"edge weights must have shape ({n_edges},), got {weights.shape}; pass one per edge.")
    if weights.dtype.kind not in "biuf":
        times = weights.dtype.kind in "mM"  # some of which Python has as integers
        strange = [i for i, w in enumerate(weights.tolist()) if times or not isinstance(w, Real)]
        if strange:
            bad = next((i for i in strange if not _reads_as_number(weights[i])), strange[0])
            raise TypeError(
                f"edge weights must be real numbers, got {weights[bad]!r} on edge {name_edge(bad)}; "
                "convert the weights to numbers."
            )
        weights = weights.astype(np.float64)
    single = weights.dtype.kind == "b" or weights.dtype in (np.float16, np.float32)
    weights = weights.astype(np.float32 if single else np.float64, copy=False)
    if n_edges and not (weights.min() >= 0 and weights.max() < np.inf):
        bad = int(np.flatnonzero(~((weights >= 0) & (weights < np.inf)))[0])
        raise ValueError(
            f"edge weights must be finite and not negative, got {weights[bad]:g} on edge {name_edge(bad)} "
            "(the first bad one); repair or drop such edges."
        )
    return weights


def check_sums(A: Any) -> None:
    """Raise where the weights of parallel edges, added up in a CSR matrix, leave the range of their type."""
    if A.nnz and not A.data.max() < np.inf:
        entry = int(np.argmax(A.data))
        row = int(np.searchsorted(A.indptr, entry, side="right")) - 1
        raise ValueError(
            f"the weights of parallel edges must have a finite sum, got more than {A.dtype} holds on edge "
            f"{A.indices[entry]} -> {row}; rescale the weights."
        )


def _reads_as_number(value: Any) -> bool:
    """Whether a value is the text of a number."""
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


def check_square(shape: tuple[int, ...]) -> int:
    """The side of a square sparse matrix."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"a sparse adjacency matrix must be square, got shape {tuple(shape)}; pass an (n, n) matrix, "
            "and in cross-validation as_graph(matrix), which is cut to the fold's nodes on both sides."
        )
    return int(shape[0])


def check_node_count(found: int, n_nodes: int | None) -> None:
    """Raise for a graph without nodes, and where `n_nodes` is given and is not `found`."""
    if n_nodes is not None and n_nodes != found:
        raise ValueError(f"the graph has {found} nodes, got n_nodes={n_nodes}; pass the same number or leave it out.")
    if found == 0:
        raise ValueError("a graph must have at least one node, got none; pass its nodes, by n_nodes for example.")


def check_ids(ids: Any, n_nodes: int) -> None:
    """Raise unless ids are None, or an array of one id per node."""
    if ids is not None and (not isinstance(ids, np.ndarray) or ids.shape != (n_nodes,)):
        got = f"shape {ids.shape}" if isinstance(ids, np.ndarray) else type(ids).__name__
        raise ValueError(f"ids must be a NumPy array of one id for each of the {n_nodes} nodes, got {got}; pass such.")


# --- a graph beside X ----------------------------------------------------------------------------------------------


def check_same_rows(n_rows: int, n_nodes: int) -> None:
    """Raise unless X has one row per node."""
    if n_rows != n_nodes:
        raise ValueError(
            f"X must have one row per node of the graph, got {n_rows} rows and {n_nodes} nodes; pass the features of "
            "all nodes, in the graph's order, or as_graph(edges, n_nodes=…) where the last nodes have no edges."
        )


def row_labels(X: Any) -> np.ndarray | None:
    """The node ids a DataFrame carries as its index; None where the index only counts, or for plain arrays."""
    index: Any = X.index if hasattr(X, "iloc") else None
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    return None if index is None or counts else np.asarray(index)


def check_counted(ids: np.ndarray, n_rows: int) -> None:
    """Raise where the ids of nodes are no numbers of rows, and nothing else says which row of X belongs to which."""
    if ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < n_rows:
        return
    strange = next(name for name in ids.tolist() if not (isinstance(name, int) and 0 <= name < n_rows))
    raise ValueError(
        f"X must name its rows beside an edge table whose ids are not the numbers 0 to {n_rows - 1} of these, got the "
        f"id {strange!r}; pass a DataFrame with the ids as its index, or graph=as_graph(edges, node_ids=…) with the "
        "ids in the rows' order."
    )


def check_same_order(labels: np.ndarray | None, ids: np.ndarray | None) -> None:
    """Raise if the rows of X have the names of the graph's nodes in another order, or are named by other texts.

    Nodes without ids are 0 … n - 1. Numbers that are others say nothing: a graph that was cut has those of its rows.
    """
    if labels is None or (ids is not None and len(labels) != len(ids)):
        return
    rows, nodes = labels.tolist(), list(range(len(labels))) if ids is None else ids.tolist()
    same, texts = set(rows) == set(nodes), all(isinstance(name, str) for name in (*rows, *nodes))
    if rows == nodes or not (same or texts):
        return
    at = next(k for k, (row, node) in enumerate(zip(rows, nodes, strict=True)) if row != node)
    order = "X.sort_index()" if ids is None else "X.loc[graph.ids]"
    advice = f"pass {order} or the edge table itself" if same else "give X the ids as its index"
    raise ValueError(
        f"X must have its rows in the order of the graph's nodes, of which number {at} is {nodes[at]!r}, got "
        f"{rows[at]!r} there; {advice}, or X.reset_index(drop=True) if its rows are in that order."
    )


def check_row_order(y: Any, ids: Any, call: str) -> None:
    """Raise where a Series y names its labels by the ids of the rows, in another order or not all of them."""
    if ids is None or not hasattr(y, "iloc"):
        return
    rows, labels = list(ids), y.index.tolist()
    if labels == rows or list(range(len(labels))) == labels:
        return
    same, texts = set(labels) == set(rows), all(isinstance(name, str) for name in (*labels, *rows))
    if same or texts:
        at = next((k for k, (label, row) in enumerate(zip(labels, rows, strict=False)) if label != row), None)
        got = f"{len(labels)} for {len(rows)} rows" if at is None else f"{labels[at]!r} for row {rows[at]!r}"
        raise ValueError(f"y must have one label per row, in the order of the rows, got {got}; pass {call}.")


# --- what nodes carry ----------------------------------------------------------------------------------------------


def numeric_attributes(nodes: Iterable[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The names of the attributes that are numbers, and of those that are vectors, by the first node that has each."""
    first: dict[str, Any] = {}
    for attributes in nodes:
        for name, value in attributes.items():
            first.setdefault(name, value)
    axes = {name: _n_axes(value) for name, value in first.items()}
    return [name for name, count in axes.items() if count == 0], [name for name, count in axes.items() if count == 1]


def _n_axes(value: Any) -> int | None:
    """The number of axes of a number (0) or of a list or array of numbers; None of anything else."""
    if not isinstance(value, (int, float, list, tuple, np.number, np.ndarray)) or isinstance(value, bool):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        return None
    return array.ndim if array.dtype.kind in "iuf" and array.size else None
