"""What questions are asked with: the matrix, numbers of neighbours and clusters, rows and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from fishergraph._arrays import as_floats, check_finite_rows, is_table, plain_array
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import type_name
from fishergraph._typing import RandomState
from fishergraph._validation import check_integer, check_random_seed
from fishergraph.estimators.arguments import find_source
from fishergraph.estimators.relational import RelationalSource
from fishergraph.graph import as_graph
from fishergraph.io.id_column import IN_FILES, usual_id_column
from fishergraph.io.vectors import expand_vectors
from fishergraph.vectors.clustering import AUTO

_CHECKED = 2**14  # rows that are checked at once
_NEIGHBOURS = 10  # if nobody says how many


def split_ids(Z: Any, ids: Any) -> tuple[Any, Any]:
    """The vectors of a table and its ids, those given, its index or its column of ids; a matrix is unchanged."""
    if not is_table(Z):
        return Z, ids
    if ids is None and hasattr(Z, "iloc") and type(Z.index).__name__ != "RangeIndex":
        ids = Z.index
    names = list(getattr(Z, "column_names", Z.columns))  # pyarrow's columns are the values
    key = usual_id_column([str(name) for name in names], IN_FILES)
    if ids is None and key is not None:
        ids, others = Z[key], [name for name in names if name != key]
        ids = ids.to_pylist() if hasattr(ids, "to_pylist") else ids.to_list()
        Z = Z.select(others) if hasattr(Z, "select") else Z[others]
    return expand_vectors(Z), ids


def embedded(model: Any, X: Any, graph: Any, node_type: str | None) -> tuple[Any, Any, Any]:
    """The vectors of nodes by a fitted model, their ids, and the blocks; of several types of nodes those of one."""
    if not hasattr(model, "transform"):
        expected, advice = "be a fitted model with transform", "pass vectors to Vectors(Z, ids=…)"
        raise InputTypeError(parameter="model", value=model, expected=expected, got=type_name(model), advice=advice)
    source, _ = find_source(X, graph)
    relations = source.relations if isinstance(source, RelationalSource) else None
    types: tuple[str, ...] = () if relations is None else relations.types
    if node_type is None and len(types) > 1:
        expected, got = f"be one of {', '.join(map(repr, types))}, the types of nodes", "none"
        raise InputError(parameter="node_type", expected=expected, got=got)
    if node_type is not None and node_type not in types:
        expected = f"be one of {', '.join(map(repr, types))}" if types else "be left out for nodes of one type"
        raise InputError(parameter="node_type", value=node_type, expected=expected)
    Z = model.transform(X) if graph is None else model.transform(X, graph=graph)
    blocks = getattr(model, "blocks_", None)
    if relations is None:
        return Z, ids_of(X, graph, len(Z)), blocks
    name = relations.types[0] if node_type is None else node_type
    Z, blocks = (part[name] if isinstance(part, dict) else part for part in (Z, blocks))
    return Z, relations.ids.get(name), blocks


def ids_of(X: Any, graph: Any, n_rows: int) -> Any:
    """The ids of the rows of an embedding: the index of a DataFrame X, or the ids of the graph."""
    if hasattr(X, "iloc") or graph is None:
        return getattr(X, "index", None) if hasattr(X, "iloc") else None
    nodes = as_graph(graph)
    return nodes.ids if nodes.n_nodes == n_rows else None  # an edge list without the last nodes has no ids


def column_names(Z: Any) -> list[str] | None:
    """The names of a table's columns, if they are all text."""
    names = list(getattr(Z, "column_names", Z.columns)) if is_table(Z) else []
    return names if names and all(isinstance(name, str) for name in names) else None


def check_matrix(Z: Any) -> Any:
    """The vectors as an object whose slices of rows are arrays."""
    if isinstance(Z, np.ndarray) or is_table(Z) or not hasattr(Z, "shape") or hasattr(Z, "detach"):
        Z = Z if isinstance(Z, np.memmap) else as_floats(Z, "Z")
    if len(Z.shape) != 2 or 0 in Z.shape or sp.issparse(Z):
        got = "a sparse matrix" if sp.issparse(Z) else f"shape {tuple(Z.shape)}"
        expected = "be a dense matrix with a row per node and at least one column"
        raise InputError(parameter="Z", expected=expected, got=got)
    return Z


def check_finite(Z: Any, name_of: Callable[[int], str]) -> None:
    """Raise for numbers that are not finite; the message has the name of the row."""
    for start in range(0, Z.shape[0], _CHECKED):
        block = np.asarray(Z[start : start + _CHECKED])
        check_finite_rows(block, "Z", name_row=lambda row, start=start: name_of(start + row))


def check_k(k: Any, most: int) -> int:
    """The number of neighbours, at most the number of other nodes; None is 10, or fewer if there are fewer."""
    if most < 1:
        raise InputError(parameter="Z", expected="have at least two rows, so that one has a neighbour", got="one")
    return min(_NEIGHBOURS, most) if k is None else check_integer(k, "k", least=1, most=most)


def without_direction(row: int, where: str) -> InputError:
    """The error for a vector of zeros that is compared by angle."""
    return InputError(
        parameter="the vector of a node",
        value=row,
        expected="have an entry other than zero to be compared by angle",
        got=f"zeros in {where}",
        settings={"metric": "euclidean"},
    )


def check_rows(rows: Any, n_rows: int) -> np.ndarray:
    """Row numbers, at least one."""
    array = np.atleast_1d(plain_array(rows, "rows"))
    if array.ndim != 1 or array.dtype.kind not in "iu" or not len(array):
        expected = "be row numbers, at least one"
        raise InputError(parameter="rows", value=rows, expected=expected, got=f"{array.dtype} of shape {array.shape}")
    if array.min() < 0 or array.max() >= n_rows:
        got = f"{array.min()} to {array.max()}"
        raise InputError(parameter="rows", value=rows, expected=f"lie between 0 and {n_rows - 1:,}", got=got)
    return array.astype(np.int64)


def check_queries(vectors: Any, n_columns: int) -> np.ndarray:
    """New vectors as a matrix of finite floats with the columns of the others."""
    queries = np.atleast_2d(as_floats(vectors, "vectors"))
    if queries.ndim != 2 or queries.shape[1] != n_columns or not len(queries):
        expected = f"have the {n_columns:,} columns of the vectors, and at least one row"
        raise InputError(parameter="vectors", value=queries.shape, expected=expected, got=f"shape {queries.shape}")
    check_finite_rows(queries, "vectors")
    return queries


def candidates(k: Any, n_rows: int) -> list[int]:
    """The numbers of clusters that are compared, or the one that was asked for."""
    if isinstance(k, str):
        if k != "auto":
            raise InputError(parameter="k", value=k, expected="be an integer, several of them, or 'auto'")
        return [size for size in AUTO if size < n_rows] or [1]
    several = isinstance(k, (Sequence, np.ndarray)) and len(k) > 0
    sizes = list(k) if several else [k]
    return sorted({check_integer(size, "k", least=1, most=n_rows) for size in sizes})


def drawn_seed(random_state: RandomState) -> int:
    """A seed of 31 bits."""
    return int(check_random_state(check_random_seed(random_state)).randint(2**31 - 1))
