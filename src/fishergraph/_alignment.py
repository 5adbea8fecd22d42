"""Do the rows of X, the labels y and the nodes of a graph have the same number and order?"""

from __future__ import annotations

from typing import Any

import numpy as np

from fishergraph._errors import InputError


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


def check_same_order(labels: np.ndarray | None, ids: np.ndarray | None) -> None:
    """Raise if the rows of X have the ids of the graph's nodes in another order, or are named by other texts.

    Nodes without ids are 0 … n - 1. Other numbers are accepted: a subgraph has those of its rows.
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
    raise InputError(
        parameter="X",
        value=rows[at],
        expected=f"have its rows in the order of the graph's nodes, of which number {at} is {nodes[at]!r}",
        got=f"{rows[at]!r} there",
        advice=f"{advice}, or X.reset_index(drop=True) if its rows are in that order",
    )


def check_row_order(y: Any, ids: Any, call: str) -> None:
    """Raise if a Series y names its labels by the ids of the rows, in another order or not all of them."""
    if ids is None or not hasattr(y, "iloc"):
        return
    rows, labels = list(ids), y.index.tolist()
    if labels == rows or list(range(len(labels))) == labels:
        return
    same, texts = set(labels) == set(rows), all(isinstance(name, str) for name in (*labels, *rows))
    if same or texts:
        at = next((k for k, (label, row) in enumerate(zip(labels, rows, strict=False)) if label != row), None)
        got = f"{len(labels)} for {len(rows)} rows" if at is None else f"{labels[at]!r} for row {rows[at]!r}"
        expected = "have one label per row, in the order of the rows"
        raise InputError(parameter="y", expected=expected, got=got, advice=f"pass {call}")
