"""Lists of edges in plain Python, [("a", "b"), ("b", "c", 2.0)], as an edge table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._table_checks import check_column, check_ids

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = ("source", "target", "weight")


def reads_as_edges(entries: Any) -> bool:
    """Whether something is a list of tuples that begin with two ids."""
    return isinstance(entries, list) and bool(entries) and all(_begins_with_ids(entry) for entry in entries)


def _begins_with_ids(entry: Any) -> bool:
    ends = entry[:2] if isinstance(entry, tuple) and len(entry) in (2, 3) else (None,)
    return all(isinstance(end, (int, np.integer, str)) for end in ends)


def edge_table(edges: list) -> pa.Table:
    """The table (source, target[, weight]) of tuples; where some have a weight, the others weigh 1.

    A weight is a number, or a dictionary with the key "weight", as in NetworkX's `graph.edges(data=True)`.
    """
    import pyarrow as pa

    for number, edge in enumerate(edges):
        if not isinstance(edge, tuple) or len(edge) not in (2, 3):
            raise TypeError(
                "a list of edges must hold tuples (source, target) or (source, target, weight), got "
                f"{type(edge).__name__} {str(edge)[:40]} as entry {number}; pass [tuple(edge) for edge in edges], or "
                "scipy.sparse.csr_array(A) for an adjacency matrix A."
            )
    ends = ([edge[side] for edge in edges] for side in (0, 1))
    columns = [check_ids(column, f"the {name} of an edge") for name, column in zip(NAMES, ends, strict=False)]
    weights = [_weight(edge) for edge in edges]
    if any(weight is not None for weight in weights):
        columns.append(check_column([1 if weight is None else weight for weight in weights], "the weight of an edge"))
    return pa.table(columns, names=list(NAMES[: len(columns)]))


def _weight(edge: tuple) -> Any:
    if len(edge) == 2:
        return None
    return edge[2].get("weight") if isinstance(edge[2], Mapping) else edge[2]
