"""What people pass as several kinds of nodes: features and relations whose rows and nodes have the same order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import check_same_order, type_name
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph._warn import warn
from fishergraph.estimators.row_ids import NamedRows, named_rows
from fishergraph.graphs.relation_ends import ends_of, node_column
from fishergraph.graphs.relation_readers import number_kinds, read_kinds
from fishergraph.graphs.relations import NODE, Key, Relations


class TypedRows(NamedTuple):
    """Relations, the features of every type in the order of its nodes, and the ids of these rows."""

    relations: Relations
    features: dict[str, Any]
    labels: dict[str, Any]


def read_relations(X: MatrixLike, graph: GraphLike) -> TypedRows:
    """The relations, with the nodes of a type in the order of its features.

    Ids that a table of features has, as its index or in a column, name its rows. A raw graph takes their order, and
    `Relations` must have it.
    """
    if isinstance(graph, Relations):
        relations = graph
        rows = {
            name: _named_rows(name, part, [node_column(relations.names(name))] if name in relations.sizes else None)
            for name, part in _by_type(X, relations.types).items()
        }
        for name in relations.types:
            if name in rows and rows[name].ids is not None:
                _check_order(name, rows[name], relations)
    else:
        kinds = read_kinds(graph)
        types = tuple(dict.fromkeys(end or NODE for key in kinds.reads for end in (key[0], key[2])))
        parts, is_open = _by_type(X, types), any(key[0] is None for key in kinds.reads)
        named = ((name, ends_of(kinds.reads, name) if name in types or is_open else None) for name in parts)
        rows = {name: _named_rows(name, parts[name], nodes) for name, nodes in named if parts[name] is not None}
        relations = number_kinds(kinds, {name: _nodes(part) for name, part in rows.items()})
    _check_types(X, relations)
    features = {name: _host(rows[name].X) if name in rows else None for name in relations.types}
    labels = {name: _labels(part, relations.ids.get(name)) for name, part in features.items()}
    return TypedRows(relations, features, labels)


def _by_type(X: MatrixLike, types: Sequence[str]) -> dict[str, Any]:
    """The features by type; those of the only type need no name."""
    if isinstance(X, Mapping):
        return dict(X)
    return {} if X is None or len(types) != 1 else {types[0]: X}


def _named_rows(name: str, X: MatrixLike, nodes: Sequence[Any] | None) -> NamedRows:
    """The features of a type and the ids of their rows; an error names the type."""
    try:
        return named_rows(X, nodes)
    except InputError as error:
        raise error.revised(parameter=f"the features of {name!r}") from error


def _nodes(rows: NamedRows) -> Any:
    """The ids of the rows of a table, or their number."""
    X: Any = rows.X
    return int(X.shape[0] if hasattr(X, "shape") else len(X)) if rows.ids is None else rows.ids


def _check_order(name: str, rows: NamedRows, relations: Relations) -> None:
    """Raise if ids of features are those of the nodes of their type in another order, or others.

    Other numbers in an index are accepted, as for one graph; a column of ids must hold those of the nodes.
    """
    ids, given = relations.ids.get(name), np.asarray(rows.ids)
    nodes = relations.names(name).tolist()
    if rows.column is None:
        try:
            check_same_order(given, ids)
            return
        except InputError as error:
            value: Any = error.value
    else:
        if len(given) != len(nodes) or list(map(str, given.tolist())) == list(map(str, nodes)):
            return
        value = next(row for row, node in zip(given.tolist(), nodes, strict=True) if str(row) != str(node))
    at = given.tolist().index(value)
    raise InputError(
        parameter=f"the features of {name!r}",
        value=value,
        expected=f"have their rows in the order of the nodes, of which number {at} is {nodes[at]!r}",
        got=f"{value!r} there",
        advice=f"put them in the order of graph.ids[{name!r}], or pass the edges themselves, which take their order"
        if set(map(str, given.tolist())) == set(map(str, nodes))
        else "give the features the ids of the nodes",
    )


def _check_types(X: MatrixLike, relations: Relations) -> None:
    """Raise unless X has features by the names of the types, or there is one type."""
    types = listed(relations.types)
    if X is None or (len(relations.types) == 1 and not isinstance(X, Mapping)):
        return
    if not isinstance(X, Mapping):
        expected, got = f"be a mapping of the types of nodes, {types}, to their features", type_name(X)
        raise InputTypeError(parameter="X", expected=expected, got=got, advice="None stands for a type without any")
    reached = {end for key in relations.keys for end in (key[0], key[2])}
    for name in X:
        if name not in relations.sizes:
            raise InputError(parameter="a type of nodes in X", value=name, expected=f"be one of {types}")
        if name not in reached:
            text = f"no relation has nodes of the type {name!r} of X, whose blocks come from its features alone"
            warn("type without relations", f"{text}; the types with relations are {listed(sorted(reached))}.")


def _host(X: MatrixLike) -> Any:
    """Features in host memory."""
    rows: Any = X
    if rows is None:
        return None
    if hasattr(rows, "detach"):
        return rows.detach().cpu().numpy()
    return rows if hasattr(rows, "shape") else np.asarray(rows)


def _labels(rows: MatrixLike, ids: object) -> Any:
    """The ids of rows, which a DataFrame has as its index."""
    return getattr(rows, "index") if hasattr(rows, "iloc") else ids  # noqa: B009


def listed(names: Iterable[str | Key]) -> str:
    """Types and relations for an error: the first six."""
    names = [name if isinstance(name, str) else " ".join(name) for name in names]
    return ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
