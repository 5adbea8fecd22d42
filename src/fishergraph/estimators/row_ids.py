"""Tables X with a column of node ids: rows meet the nodes of their graph by it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError, InputTypeError, UnknownNodeError
from fishergraph._records import row_labels
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph._warn import warn
from fishergraph.graph import as_graph, names_nodes
from fishergraph.io.columns import check_ids, edge_table, table_columns, to_ids
from fishergraph.io.edge_columns import find_columns
from fishergraph.io.id_column import ID_COLUMNS, are_rows, distinct_ends, holds_ids, id_column_of, usual_id_column


def named_by_ids(X: MatrixLike, graph: GraphLike) -> tuple[Any, Any]:
    """(X, graph) of a table beside a graph that names its nodes, so that rows and nodes meet.

    The column of X that holds the ids becomes the index of a DataFrame. Of another table it is left out, and the graph
    gets its order. An index that names the nodes is used first.
    """
    table: Any = X
    names, column = table_columns(table) or ([], None)
    nodes = _nodes_of(graph) if names_nodes(graph) else None
    if column is None or nodes is None:
        return _without_ids(X, names), graph
    if row_labels(X) is not None and id_column_of(["index"], lambda _: table.index, nodes) is not None:
        return _without_ids(X, names), graph
    key = usual_id_column(names)
    if key is not None or not are_rows(nodes, len(table)):
        key = id_column_of(names, lambda name: column(names.index(name)), nodes)
    if key is None:
        return X, graph
    _tell_of_ids(key)
    if hasattr(table, "set_index"):
        return table.set_index(table.columns[names.index(key)]), graph
    ids = check_ids(column(names.index(key)), f"column {key!r}")
    try:
        return _without(table, key), as_graph(graph, node_ids=ids)
    except UnknownNodeError as error:
        raise unknown_to_rows(error) from error


class NamedRows(NamedTuple):
    """Rows of features without their ids, and these; `column` is the one they were in."""

    X: Any
    ids: Any = None
    column: str | None = None


def named_rows(X: MatrixLike, nodes: Sequence[Any] | None) -> NamedRows:
    """The features of a type of nodes, and the ids of their rows.

    `nodes` are the ids at each end of a relation of the type; the ids of rows are the index of a DataFrame or a column
    that names them. Without nodes they are in a column with a usual name.
    """
    table: Any = X
    names, column = table_columns(table) or ([], None)
    labels = row_labels(table)
    if column is None or nodes == []:
        return NamedRows(X if column is None else _without_ids(X, names), labels)
    if labels is not None and any(id_column_of(["index"], lambda _: table.index, ids) for ids in nodes or ()):
        return NamedRows(_without_ids(X, names), labels)
    read = lambda name: column(names.index(name))  # noqa: E731
    key = usual_id_column(names)
    if nodes is None:
        key = key if key is not None and holds_ids(read(key)) else None
    elif key is not None or not all(are_rows(ids, len(table)) for ids in nodes):
        found = [one for ids in nodes if (one := id_column_of(names, read, ids)) is not None]
        key = key if key in found else next(iter(found), None)
    if key is None:
        return NamedRows(X, labels)
    _tell_of_ids(key)
    ids = check_ids(read(key), f"column {key!r}")
    if hasattr(table, "set_index"):
        table = table.set_index(table.columns[names.index(key)])
        return NamedRows(table, np.asarray(table.index), key)
    return NamedRows(_without(table, key), to_ids(ids), key)


def _tell_of_ids(key: str) -> None:
    """Warn of a column that is the id of the nodes though its name does not say so."""
    if key.strip().lower() not in ID_COLUMNS:
        warn("ids", f"the column {key!r} of X names the nodes of the graph: it is their id, and no feature.")


def _without(X: MatrixLike, key: str) -> Any:
    """A Polars or pyarrow table without a column."""
    table: Any = X
    return table.drop(key) if hasattr(table, "drop") else table.drop_columns(key)


def unknown_to_rows(error: UnknownNodeError) -> UnknownNodeError:
    """The error about ends of edges that no row of X has, in the words of an estimator."""
    advice = "add it, or pass graph=as_graph(edges, node_ids=…, unknown='drop') with the ids of the rows"
    return error.revised(parameter="the ids of X", advice=advice)


def _nodes_of(graph: GraphLike) -> Any:
    """The distinct nodes that an edge table or a NetworkX graph names; None if that is an error, which comes later."""
    given: Any = graph
    try:
        if hasattr(given, "nodes"):
            return check_ids(list(given), "the nodes")
        names, column = table_columns(edge_table(given) if isinstance(given, list) else given) or ([], None)
        roles = find_columns(names)
        assert column is not None
        return distinct_ends(check_ids(column(roles.source), "an end"), check_ids(column(roles.target), "an end"))
    except (InputError, InputTypeError):
        return None


def _without_ids(X: MatrixLike, names: list[str]) -> MatrixLike:
    """X; raises if a column reads as ids, which would be a feature, and rows would go by their order."""
    table: Any = X
    key = usual_id_column(names)
    if key is None or not holds_ids(table[key]):
        return X
    drop = f"X.drop(columns={key!r})" if hasattr(table, "iloc") else f"X.drop({key!r})"
    raise InputError(
        parameter="X",
        expected="hold features alone if the graph does not name its nodes",
        got=f"the column {key!r}, which reads as node ids",
        advice=f"pass the edges as a table with these ids, or {drop} if the rows are in the graph's order",
    )
