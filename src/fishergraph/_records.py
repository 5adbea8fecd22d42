"""Validation of graphs: compressed rows, edges and weights, and the order of rows and nodes.

Frozen records of compressed rows (`Graph`, `Multisets`) are validated once, when they are made, because compiled loops
index with their arrays without bounds checks. One NumPy pass over each array takes a few milliseconds for the 2.3
million edges of ogbn-arxiv.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from numbers import Real
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from fishergraph._arrays import plain_array
from fishergraph._errors import EndpointError, InputError, InputTypeError

UNLABELLED = -1  # the class number of a node without a label

R = TypeVar("R")
Index = int | slice | Sequence[int] | np.ndarray | tuple  # what [] takes; the first entry of a tuple counts

_ADVICE = {"indptr": "count the members of each row with np.cumsum", "indices": "number the points by their rows"}
# More nodes must be asked for with n_nodes: their row offsets alone take 8 GiB.
_MOST_NODES = 2**30


# --- records --------------------------------------------------------------------------------------------


def unchecked(kind: type[R], *values: Any, **named: Any) -> R:
    """A record of valid values, made without validation; the other fields have their defaults."""
    record = object.__new__(kind)
    # At once, not field by field through `object.__setattr__`: every row block of a layer makes such a record.
    record.__dict__.update(zip(_field_names(kind), values, strict=False), **named)
    return record


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def changed(record: R, **values: Any) -> R:
    """A copy of a record with other, valid values, made without validation."""
    return unchecked(type(record), **{name: getattr(record, name) for name in _field_names(type(record))} | values)


def normalise(record: Any, **values: Any) -> None:
    """Set fields of a frozen record."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def as_offsets(indptr: Any) -> np.ndarray:
    """Row offsets as int64: at least one entry, not negative, never decreasing."""
    array = _plain(indptr, "indptr", "iu").astype(np.int64, copy=False)
    if len(array) == 0 or array[0] < 0 or (array[1:] < array[:-1]).any():
        got = "an empty array" if len(array) == 0 else f"{array[0]} first"
        if len(array) and array[0] >= 0:
            row = int(np.argmax(array[1:] < array[:-1]))
            got = f"{array[row]} before {array[row + 1]}"
        expected = "start at 0 or more and never decrease"
        raise InputError(parameter="indptr", expected=expected, got=got, advice=_ADVICE["indptr"])
    return array


def as_indices(indices: Any, rows: slice, n_points: int) -> np.ndarray:
    """Indices as int32 or int64; those in `rows` are points 0 … n_points − 1."""
    array = _plain(indices, "indices", "iu")
    if array.dtype not in (np.int32, np.int64):  # 2**63 and more become negative, and are refused below
        array = array.astype(np.int32 if array.dtype.itemsize < 4 else np.int64)
    used = array[rows]
    if len(used) and (used.min() < 0 or used.max() >= n_points):
        expected, got = f"be points 0 to {n_points - 1}", f"{used.min()} to {used.max()}"
        raise InputError(parameter="indices", expected=expected, got=got, advice=_ADVICE["indices"])
    return array


def check_sorted(indptr: np.ndarray, indices: np.ndarray) -> None:
    """Raise unless the indices of every row increase."""
    increases = np.ones(len(indices), dtype=bool)
    np.greater(indices[1:], indices[:-1], out=increases[1:])
    starts = indptr[:-1]
    increases[starts[starts < len(indices)]] = True
    if not increases.all():
        row = int(np.searchsorted(indptr, np.argmin(increases), side="right")) - 1
        raise InputError(
            parameter="indices",
            value=row,
            expected="be sorted and distinct within each row",
            got=f"others in row {row} (the first bad one)",
            advice="pass a SciPy matrix to as_graph, which sorts and adds them",
        )


def as_weights(weights: Any, n_entries: int, rows: slice, *, least: str) -> np.ndarray | None:
    """Weights as float32 or float64, one per entry; those in `rows` finite and "positive" or "not negative"."""
    if weights is None:
        return None
    array = _plain(weights, "weights", "biuf")
    if len(array) != n_entries:
        raise InputError(
            parameter="weights", value=len(array), expected=f"hold one number for each of the {n_entries} indices"
        )
    single = array.dtype.kind == "b" or (array.dtype.kind == "f" and array.dtype.itemsize <= 4)
    array = array.astype(np.float32 if single else np.float64, copy=False)
    used = array[rows]
    if len(used):
        low, high = used.min(), used.max()
        if not ((low > 0 if least == "positive" else low >= 0) and high < np.inf):
            expected, got = f"be finite and {least}", f"{low:g} to {high:g}"
            raise InputError(parameter="weights", expected=expected, got=got, advice="repair or drop such entries")
    return array


def as_subgraphs(subgraphs: Any, n_points: int, *, lift: str) -> Any:
    """Subgraphs (subgraph, slot) of points 0 … n_points − 1, −1 in an empty slot, that have such a lift."""
    shape, kind = getattr(subgraphs, "shape", ()), str(getattr(subgraphs, "dtype", "")).removeprefix("torch.")
    if len(shape) != 2 or shape[1] < 1 or kind not in ("int8", "int16", "int32", "int64"):
        got = f"{type(subgraphs).__name__} of shape {tuple(shape)} and dtype {kind or 'none'}"
        raise InputError(parameter="subgraphs", expected="be an integer array of shape (subgraph, slot)", got=got)
    if isinstance(subgraphs, np.ndarray):
        subgraphs = np.ascontiguousarray(subgraphs, dtype=np.int64 if kind == "int64" else np.int32)
    low, high = (int(subgraphs.min()), int(subgraphs.max())) if shape[0] else (0, -1)
    if low < -1 or high >= n_points:
        expected, got = f"hold points 0 to {n_points - 1}, or -1 in an empty slot", f"{low} to {high}"
        raise InputError(parameter="subgraphs", expected=expected, got=got, advice="number the points by rows")
    if lift == "difference" and (shape[1] != 2 or low < 0):
        got = f"{shape[1]} slots" if shape[1] != 2 else "-1, an empty slot"
        raise InputError(parameter="a subgraph", expected="be a pair of points for lift='difference'", got=got)
    if lift == "mean" and low < 0 and bool(((subgraphs >= 0).sum(1) == 0).any()):
        expected = "have at least one point for lift='mean'"
        raise InputError(parameter="a subgraph", expected=expected, got="one of -1 only", advice="drop it")
    return subgraphs


def _plain(values: Any, name: str, kinds: str) -> np.ndarray:
    """A flat, contiguous array of one of the dtype kinds."""
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        got, advice = type(values).__name__, "convert it with np.asarray"
        raise InputTypeError(parameter=name, expected="be a NumPy array", got=got, advice=advice)
    if values.ndim != 1 or values.dtype.kind not in kinds:
        what = "numbers" if "f" in kinds else "integers"
        got = f"shape {values.shape} and dtype {values.dtype}"
        raise InputError(parameter=name, expected=f"be a flat array of {what}", got=got)
    return np.ascontiguousarray(values)


# --- edges ----------------------------------------------------------------------------------------------


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
            edge = next((i for i in bad if reads_as_number(weights[i]) is None), bad[0])
            value, got = weights[edge], f"{weights[edge]!r} on edge {name_edge(edge)}"
            expected, advice = "be real numbers", "convert them"
            raise InputTypeError(parameter="edge weights", value=value, expected=expected, got=got, advice=advice)
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


def reads_as_number(value: Any) -> float | None:
    """The finite number that a text says; None if it says none."""
    try:
        return float(value) if isinstance(value, str) and math.isfinite(float(value)) else None
    except ValueError:
        return None


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
    kinds = _kinds_of(obj)
    if kinds:
        expected, got = "be one graph here", f"several kinds of nodes or edges, {', '.join(map(repr, kinds[:4]))}"
        advice = (
            "pass the graph of one of them, or relations.union(), or embed them by FisherEmbedding and go on with the "
            "rows of one type, Z[type]"
        )
        return InputTypeError(parameter="graph", expected=expected, got=got, advice=advice)
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


def _kinds_of(obj: Any) -> list[str]:
    """The relations of `Relations` or of a mapping of names or types to edges; none of anything else."""
    if not isinstance(obj, Mapping):
        return [key[1] for key in obj.keys] if type(obj).__name__ == "Relations" else []
    typed = all(isinstance(key, tuple) and len(key) == 3 for key in obj)
    edges = [_holds_edges(value) or (isinstance(value, tuple) and _holds_edges(value[0])) for value in obj.values()]
    return [key[1] if typed else str(key) for key in obj] if typed or all(edges) else []


def _holds_edges(value: Any) -> bool:
    """Whether a value of a mapping is a graph or a list of edges, and no list of neighbours."""
    listed = isinstance(value, list) and bool(value) and isinstance(value[0], tuple)
    return listed or hasattr(value, "shape") or hasattr(value, "adjacency")


# --- the order of rows and nodes ------------------------------------------------------------------------


def check_same_rows(n_rows: int, n_nodes: int) -> None:
    """Raise unless X has one row per node."""
    if n_rows != n_nodes:
        raise InputError(
            parameter="X",
            value=n_rows,
            expected="have one row per node of the graph",
            got=f"{n_rows} rows and {n_nodes} nodes",
            advice="pass the features of all nodes, in the graph's order, or as_graph(edges, n_nodes=…) if the last "
            "nodes have no edges",
        )


def row_labels(X: Any) -> np.ndarray | None:
    """The index of a DataFrame, which holds node ids; None for 0 … n - 1 and for plain arrays."""
    index: Any = X.index if hasattr(X, "iloc") else None
    counts = type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)
    return None if index is None or counts else np.asarray(index)


def check_counted(ids: np.ndarray, n_rows: int) -> None:
    """Raise unless the ids of nodes are row numbers, so that they tell which row of X belongs to which node."""
    if ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < n_rows:
        return
    other = next(name for name in ids.tolist() if not (isinstance(name, int) and 0 <= name < n_rows))
    raise InputError(
        parameter="X",
        value=other,
        expected=f"name its rows if the ids of an edge table are not the row numbers 0 to {n_rows - 1}",
        got=f"the id {other!r}",
        advice="pass a DataFrame with the ids as its index, or graph=as_graph(edges, node_ids=…) with the ids in the "
        "order of the rows",
    )


def check_same_order(labels: np.ndarray, ids: np.ndarray | None) -> None:
    """Raise if the rows of X have the ids of the graph's nodes in another order, or are named by other texts.

    Nodes without ids are 0 … n - 1. Other numbers are accepted: a subgraph has those of its rows.
    """
    if ids is not None and len(labels) != len(ids):
        return
    rows, nodes = labels.tolist(), list(range(len(labels))) if ids is None else ids.tolist()
    if not _in_another_order(rows, nodes):
        return
    at = next(k for k, (row, node) in enumerate(zip(rows, nodes, strict=True)) if row != node)
    order = "X.sort_index()" if ids is None else "X.loc[graph.ids]"
    advice = f"pass {order} or the edge table itself" if set(rows) == set(nodes) else "give X the ids as its index"
    raise InputError(
        parameter="X",
        value=rows[at],
        expected=f"have its rows in the order of the graph's nodes, of which number {at} is {nodes[at]!r}",
        got=f"{rows[at]!r} there",
        advice=f"{advice}, or X.reset_index(drop=True) if its rows are in that order",
    )


def check_row_order(y: Any, ids: Sequence[Hashable] | np.ndarray | None, call: str) -> None:
    """Raise if a Series y names its labels by the ids of the rows, in another order or not all of them."""
    if ids is None or not hasattr(y, "iloc"):
        return
    rows, labels = list(ids), y.index.tolist()
    if list(range(len(labels))) != labels and _in_another_order(labels, rows):
        at = next((k for k, (label, row) in enumerate(zip(labels, rows, strict=False)) if label != row), None)
        got = f"{len(labels)} for {len(rows)} rows" if at is None else f"{labels[at]!r} for row {rows[at]!r}"
        expected = "have one label per row, in the order of the rows"
        raise InputError(parameter="y", expected=expected, got=got, advice=f"pass {call}")


def _in_another_order(names: Sequence[Hashable], others: Sequence[Hashable]) -> bool:
    """Whether two lists of ids differ and name the same rows, or are texts."""
    return names != others and (set(names) == set(others) or all(isinstance(name, str) for name in (*names, *others)))
