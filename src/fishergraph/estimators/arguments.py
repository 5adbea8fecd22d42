"""Which argument is which: a graph passed as X is the graph, and what looks like a mistake is answered."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from fishergraph._arrays import is_table
from fishergraph._errors import InputTypeError
from fishergraph._records import type_name
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph._warn import warn
from fishergraph.estimators.relational import RelationalSource
from fishergraph.estimators.row_ids import named_by_ids
from fishergraph.estimators.source import Source
from fishergraph.graph import Graph
from fishergraph.graph_readers import attribute_names
from fishergraph.graphs.relation_readers import is_hetero, kinds_of_edges
from fishergraph.graphs.relations import Relations
from fishergraph.io.columns import EDGE_COLUMNS, WEIGHT_COLUMNS, reads_as_edges

_PYG_USED = ("x", "y", "n_id", "input_id")  # features and labels, and what a loader adds
_MOST_LISTED = 4  # attributes that a call names
# Columns of a table of members that say which set a row belongs to.
_SET_COLUMNS = ("set", "set_id", "bag", "bag_id", "group", "group_id", "id")


def features_and_graph(X: MatrixLike, graph: GraphLike, *, fitting: bool) -> tuple[Any, Any]:
    """(X, graph): a graph passed as X becomes the graph, with the features it holds as X if there are any."""
    if isinstance(X, (str, PathLike)):
        raise InputTypeError(
            parameter="X",
            expected="be the features of the nodes",
            got=f"the text {str(X)[:60]!r}",
            advice="read the file first",
        )
    package = type(X).__module__.partition(".")[0]
    record = package == "fishergraph" and hasattr(X, "X") and hasattr(X, "graph")  # such as `load_graph` returns
    if isinstance(X, Graph) or record or package in ("networkx", "igraph", "torch_geometric"):
        if graph is not None:
            raise InputTypeError(
                parameter="X",
                expected="be the features of the nodes",
                got=f"{type_name(X)}, a graph, beside graph=",
                advice="pass one of the two graphs, as graph=…",
            )
        if fitting:
            _warn_of_others(X)
        X, graph = _parts(X)
    elif X is not None and graph is None:
        _check_no_edges(X)
    elif is_table(X):
        X, graph = named_by_ids(X, graph)
    if X is None and graph is not None and fitting:
        _warn_of_attributes(graph)
    return X, graph


def find_source(X: MatrixLike, graph: GraphLike) -> tuple[Source | None, GraphLike]:
    """(what runs the work itself, the graph that is left); a matrix and one graph are no source."""
    if isinstance(X, Source):
        return X, graph
    several = isinstance(graph, (Mapping, Relations)) or hasattr(graph, "node_types")
    table = not several and (hasattr(graph, "columns") or hasattr(graph, "column_names"))
    kinds = kinds_of_edges(graph) if table else []
    whole = isinstance(X, Relations) or hasattr(X, "node_types")
    if not (several or whole or len(kinds) > 1):
        return None, graph
    if len(kinds) > 1:
        shown = ", ".join(map(repr, kinds[:4])) + (", …" if len(kinds) > 4 else "")
        text = (
            f"the column 'type' of the edge table has {len(kinds)} kinds of edges, {shown}, each of which is embedded"
        )
        warn("relations", f"{text} apart. Pass as_relations(table) to say so, or drop the column.")
    if whole and graph is not None:
        got, advice = f"{type_name(X)} beside graph=", "pass one of the two, as graph=…"
        raise InputTypeError(parameter="X", expected="be the features of the nodes", got=got, advice=advice)
    if whole:
        return RelationalSource(_features_by_type(X) if is_hetero(X) else None, X), None
    if X is None and is_hetero(graph) and any(x is not None for x in _features_by_type(graph).values()):
        text = "the nodes of graph have features x, which are not used: pass the HeteroData as X to use them."
        warn("attributes", text)
    return RelationalSource(X, graph), None


def _features_by_type(data: Any) -> dict[str, Any]:
    """The features of the nodes of `HeteroData`; None for a type that has none."""
    return {name: getattr(data[name], "x", None) for name in data.node_types}


def _parts(graph: Any) -> tuple[Any, Any]:
    """(features or None, graph) of a graph or of a record with both."""
    if hasattr(graph, "X") and hasattr(graph, "graph"):
        return graph.X, graph.graph
    return _pyg_features(graph), graph


def _pyg_features(data: object) -> Any:
    pyg = type(data).__module__.startswith("torch_geometric.") and hasattr(data, "edge_index")
    return getattr(data, "x", None) if pyg else None


def _check_no_edges(X: Any) -> None:
    """Raise for edges passed as X without a graph, or warn if they may be features."""
    if _has_edge_columns(X):
        raise InputTypeError(
            parameter="X",
            expected="be the features of the nodes",
            got=f"an edge table with the columns {_names(_columns(X))}",
            advice="pass it as graph=X, or X.to_numpy() if these are features",
        )
    if reads_as_edges(X):
        raise InputTypeError(
            parameter="X",
            expected="be the features of the nodes",
            got=f"a list of tuples such as {X[0]!r}, which reads as edges",
            advice="pass it as graph=X, or np.asarray(X) if these are features",
        )
    if _is_adjacency(X):
        warn(
            "adjacency",
            f"X is a square matrix of shape {np.shape(X)} and there is no graph: its rows are features. If it is an "
            "adjacency matrix, pass it as graph=scipy.sparse.csr_array(X), with the features as X if there are any.",
        )


def _columns(table: object) -> list[str]:
    """The columns of a pandas, Polars or pyarrow table; none of anything else."""
    names = getattr(table, "column_names", getattr(table, "columns", ()))
    return [str(name) for name in names] if hasattr(table, "shape") else []


def _names(columns: list[str]) -> str:
    return ", ".join(map(repr, columns[:4])) + (", …" if len(columns) > 4 else "")


def _has_edge_columns(X: object) -> bool:
    """Whether the columns of a table are those of edges; u and v may be features beside others."""
    names = {name.strip().lower() for name in _columns(X)}
    pairs = [pair for pair in EDGE_COLUMNS if set(pair) <= names]
    return any(pair != ("u", "v") or names <= {"u", "v", *WEIGHT_COLUMNS} for pair in pairs)


def _is_adjacency(X: Any) -> bool:
    """Whether a square matrix can be an adjacency matrix; a dense one if it is symmetric with a diagonal of zeros."""
    shape = getattr(X, "shape", ())
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 3:
        return False
    if sp.issparse(X):
        return X.data.dtype.kind in "biuf" and not (X.data < 0).any()
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf" or X.diagonal().any():
        return False
    return bool(X.any() and (X >= 0).all() and (X == X.T).all())


def _kind(table: Any, name: str) -> str:
    """What a column holds: "text", "integer", "sets", that is arrays or lists, or "other"."""
    values = np.asarray(table[name])
    if values.dtype.kind in "iu":
        return "integer"
    listed = values.tolist() if values.dtype.kind in "OUT" else []
    kinds = {type(value) for value in listed if value is not None}
    if kinds and all(issubclass(kind, (list, np.ndarray)) for kind in kinds):
        return "sets"
    return "text" if str in kinds else "integer" if kinds == {int} else "other"


def _warn_of_attributes(graph: GraphLike) -> None:
    """Warn of attributes that the nodes of a graph have, if features come from the edges alone."""
    names = attribute_names(graph)
    if not names:
        return
    call = "graph.x" if _pyg_features(graph) is not None and names == ["x"] else _table_call(names)
    warn(
        "attributes",
        f"the nodes of graph have the attributes {_names(names)}, which are not used: without X, features come from "
        f"the edges, as with graph=as_graph(graph). To use them, pass X={call}.",
    )


def _warn_of_others(data: Any) -> None:
    """Warn of attributes that the nodes of PyTorch Geometric `Data` have beside x, labels and masks."""
    names = [name for name in attribute_names(data) if name not in _PYG_USED and not name.endswith("_mask")]
    if names and _pyg_features(data) is not None:
        text = f"the features are x: the attributes {_names(names)} of the nodes of Data are not used"
        warn("attributes", f"{text}. To use them, pass X={_table_call(['x', *names])} and graph=data.")


def _table_call(names: list[str]) -> str:
    """The X that holds attributes of nodes."""
    listed = f", columns={names!r}" if len(names) <= _MOST_LISTED else ""
    return f"node_table(graph{listed}, output='pandas')"


def check_no_long_table(X: Any) -> None:
    """Raise if a table has one row per member, and a column or the index says which set a row belongs to."""
    names = _columns(X)
    if not names:
        return
    pandas = hasattr(X, "iloc")
    if pandas and X.index.has_duplicates:
        raise _long_table("the index", "X.index", "X.to_numpy()")
    kinds = {name: _kind(X, name) for name in names}
    if "sets" in kinds.values():
        name = next(name for name in names if kinds[name] == "sets")
        raise InputTypeError(
            parameter="X",
            expected="be a list of sets",
            got=f"a table with sets in its column {name!r}",
            advice=f"pass X[{name!r}]",
        )
    texts, integers = ([name for name in names if kinds[name] == kind] for kind in ("text", "integer"))
    likely = integers if len(integers) == 1 < len(names) else [n for n in integers if n.strip().lower() in _SET_COLUMNS]
    for name in (*texts, *(name for name in likely if _repeats(X[name]))):
        drop = f"drop(columns={name!r})" if pandas else f"drop({name!r})"
        alone = f"X.{drop}" if name in texts else "X.to_numpy()"
        raise _long_table(f"the column {name!r}", repr(name), alone)


def _repeats(column: ArrayLike) -> bool:
    values = np.asarray(column)
    return len(np.unique(values)) < len(values)


def _long_table(what: str, groups: str, alone: str) -> TypeError:
    return TypeError(
        f"X must be a list of sets, got a table in which {what} reads as the set that each row belongs to; "
        f"pass groups={groups}, or {alone} if every row is a set of its own."
    )
