"""The edges, nodes and columns of npz files, as tables have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fishergraph import _graph_checks, _table_checks
from fishergraph._npz_files import Arrays, entry, has_features, read_features


def npz_edges(path: Path, arrays: Arrays) -> pa.Table:
    """The edges as a table of ids, or of row numbers where there are no ids."""
    ends = _graph_checks.check_edge_index(entry(path, arrays, "edge_index"))
    ids = _npz_ids(path, arrays) if "ids" in arrays else None
    n_nodes = (int(ends.max()) + 1 if ends.size else 0) if ids is None else len(ids)
    _graph_checks.check_endpoints(ends[0], ends[1], n_nodes)
    source, target = ends if ids is None else (ids.take(pa.array(end.astype(np.int64))) for end in ends)
    columns: dict[str, Any] = {"source": source, "target": target}
    if "edge_weight" in arrays:
        columns["weight"] = _npz_weights(path, entry(path, arrays, "edge_weight", ends.shape[1:]))
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if not _is_undirected(path, arrays):
        return table
    back = table.filter(pa.array(ends[0] != ends[1]))  # a self-loop has no other direction
    back = back.rename_columns(["target", "source", *table.column_names[2:]])
    return pa.concat_tables([table, back.select(table.column_names)])


def _npz_ids(path: Path, arrays: Arrays) -> pa.Array:
    """The node ids of an npz file, int64 or text."""
    ids, what = arrays["ids"], f"ids in '{path}'"
    if ids.ndim != 1:
        raise ValueError(f"{what} must be one per node, got an array of shape {ids.shape}; repair it.")
    return _table_checks.check_ids(ids, what)


def _npz_weights(path: Path, weights: np.ndarray) -> np.ndarray:
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"edge_weight in '{path}' must hold numbers, got {weights.dtype}; repair it.")
    return weights.astype(np.float64) if weights.dtype == np.longdouble else weights


def _is_undirected(path: Path, arrays: Arrays) -> bool:
    flag = arrays.get("undirected", np.array(False))
    if flag.shape != () or flag.dtype != bool:
        raise ValueError(
            f"undirected in '{path}' must be true or false, got {flag.dtype} of shape {flag.shape}; repair it."
        )
    return bool(flag)


def npz_nodes(path: Path, arrays: Arrays) -> tuple[pa.Array | None, Any, list[str]]:
    """The ids, None where the nodes are numbered, the features, and their names."""
    ids = _npz_ids(path, arrays) if "ids" in arrays else None
    if ids is not None and not has_features(arrays):  # ids alone, as in a table of ids
        X: Any = np.empty((len(ids), 0), dtype=np.float32)
    else:
        X = read_features(path, arrays)
    n, d = X.shape
    if ids is not None:
        entry(path, arrays, "ids", (n,))
    names = [str(name) for name in entry(path, arrays, "names", (d,))] if "names" in arrays else None
    if names is not None:
        _table_checks.positions(names, f"names in '{path}'")
    return ids, X, names or [f"x{j}" for j in range(d)]


def npz_cells(path: Path, arrays: Arrays, name: str) -> list[Any]:
    """The values of an array with one per row."""
    array = entry(path, arrays, name)
    if array.ndim == 0 or array.dtype.kind not in "biufU":
        raise ValueError(
            f"{name} in '{path}' must hold a number or a text per row, got {array.dtype} of shape {array.shape}; "
            "repair it."
        )
    return array.tolist()
