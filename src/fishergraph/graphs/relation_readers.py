"""`as_relations`: mappings, edge tables with a column `type` and `HeteroData` become `Relations`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed, plain_array
from fishergraph._errors import InputError, InputTypeError, shown
from fishergraph._records import check_edge_index, check_weights, type_name
from fishergraph._typing import GraphLike
from fishergraph._validation import check_flag
from fishergraph.graph import as_graph
from fishergraph.graphs.relation_nodes import Ends, Read, named_error, node_column, node_rows, numbered
from fishergraph.graphs.relations import NODE, Key, Relations, check_key
from fishergraph.io.columns import (
    check_column,
    column_named,
    edge_table,
)
from fishergraph.io.edge_table import read_edge_table, warn_of_columns_left
from fishergraph.io.faults import no_lines, raise_faults
from fishergraph.times import as_times

TYPE_COLUMNS = ("type", "relation", "edge_type")
# What the column `Type` of a table of Gephi holds, which says nothing of kinds of edges.
_DIRECTED = {"directed", "undirected", "mutual"}


def as_relations(
    obj: GraphLike, *, undirected: bool = False, nodes: Mapping[str, Any] | Iterable[Any] | int | None = None
) -> Relations:
    """Convert several kinds of edges to `Relations`.

    Parameters
    ----------
    obj : mapping, table or HeteroData
        One of

        - a mapping {name: graph} over one set of nodes; a graph is anything that `as_graph` takes;
        - a mapping {(source type, name, target type): edges}. Edges between two types are a SciPy matrix with a row
          per target and a column per source, a (2, E) integer array or tensor, a pair (edge_index, weights), a list of
          tuples, or an edge table;
        - an edge table with a column `type` (or `relation`, `edge_type`), and with columns `source_type` and
          `target_type` if nodes have types that `nodes` does not tell;
        - `HeteroData` of PyTorch Geometric;
        - `Relations`, which is returned.
    undirected : bool, default=False
        Add the reverse of every edge: within a type in place, between types as the relation "rev_name".
    nodes : mapping of str, optional
        The ids of the nodes of every type in row order, or their number; the value itself if there is one type. By
        default ids are those that the edges name, sorted, and the largest row number says how many nodes there are.

    Returns
    -------
    Relations
        Compressed rows of every relation.

    See Also
    --------
    as_graph : One kind of edges.

    Examples
    --------
    >>> from fishergraph import as_relations
    >>> writes, cites = [("ann", 1), ("bob", 1), ("bob", 2)], [(1, 2)]
    >>> edges = {("author", "writes", "paper"): writes, ("paper", "cites", "paper"): cites}
    >>> as_relations(edges, undirected=True)
    Relations(2 author, 2 paper; 'writes' 3 edges, 'cites' 2 edges, 'rev_writes' 3 edges)
    """
    relations = _read(obj, nodes)
    return relations.both_ways() if check_flag(undirected, "undirected") else relations


def _read(obj: Any, nodes: Any) -> Relations:
    if isinstance(obj, Relations):
        return obj
    given = _given_nodes(nodes)
    if is_hetero(obj):
        given = {**{name: obj[name].num_nodes for name in obj.node_types}, **given}
        return numbered({key: _stored(obj[key]) for key in obj.edge_types}, given)
    if isinstance(obj, Mapping) and obj:
        if all(isinstance(key, str) for key in obj):
            obj = {(NODE, name, NODE): graph for name, graph in obj.items()}
        for key in obj:
            check_key(key)
        return numbered({key: named_error(key, lambda key=key: _edges(obj[key], key)) for key in obj}, given)
    if column_named(obj, TYPE_COLUMNS) is not None:
        return numbered(_by_type(obj, given), given)
    expected = (
        "be a mapping {name: graph} or {(source type, name, target type): edges}, an edge table with a column 'type', "
        "HeteroData or Relations"
    )
    got = "an empty one" if isinstance(obj, Mapping) else type_name(obj)
    raise InputTypeError(parameter="graph", value=obj, expected=expected, got=got)


def is_hetero(obj: object) -> bool:
    """Whether an object is PyTorch Geometric's `HeteroData`."""
    return any(
        kind.__name__ == "HeteroData" and kind.__module__.startswith("torch_geometric") for kind in type(obj).__mro__
    )


def kinds_of_edges(table: Any) -> list[str]:
    """The values of the column `type` of an edge table, in their order; none if there is no such column."""
    column = column_named(table, TYPE_COLUMNS)
    if column is None:
        return []
    values = getattr(column, "to_pylist", getattr(column, "tolist", list))()
    kinds = list(dict.fromkeys(str(value) for value in values))
    return [] if {kind.lower() for kind in kinds} <= _DIRECTED else kinds


def _given_nodes(nodes: Any) -> dict[str, Any]:
    """The ids or the number of nodes of every type, if they are given."""
    if nodes is None:
        return {}
    return dict(nodes) if isinstance(nodes, Mapping) else {NODE: nodes}


# --- reading ----------------------------------------------------------------------------------------------


def _edges(obj: Any, key: Key) -> Read:
    """The edges of one relation: a graph, a matrix, or the two ends of every edge."""
    weights = None
    if isinstance(obj, tuple) and len(obj) == 2:
        obj, weights = obj
    table = edge_table(obj) if isinstance(obj, list) else obj
    ends = None if sp.issparse(table) or hasattr(table, "detach") else _table_ends(table)
    if ends is not None:
        return ends
    if isinstance(obj, np.ndarray) or (hasattr(obj, "detach") and str(getattr(obj, "layout", "")) == "torch.strided"):
        return _numbered(obj, weights, None)
    if key[0] == key[2]:
        return as_graph(obj)
    if not sp.issparse(obj):
        expected = (
            f"be a SciPy matrix with a row per {key[2]} and a column per {key[0]}, a (2, E) array, or an edge table"
        )
        got = f"a {type_name(obj)}"
        raise InputTypeError(parameter=f"the relation {key[1]!r}", value=obj, expected=expected, got=got)
    A = sp.csr_array(check_compressed(obj, "graph"))
    A.sum_duplicates()
    rows = A.indptr.searchsorted
    data = check_weights(A.data, A.nnz, lambda i: f"({rows(i, side='right') - 1}, {A.indices[i]})")
    return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)


def _table_ends(table: Any) -> Ends | None:
    """The edges of a table, after all its faults were raised; None for anything else."""
    edges = read_edge_table(table)
    if edges is None:
        return None
    raise_faults(edges.faults, edges.path, no_lines)
    known = {*TYPE_COLUMNS, "source_type", "target_type"}
    left = tuple(name for name in edges.reading.left if name.strip().lower() not in known)
    warn_of_columns_left(replace(edges.reading, left=left), [name for name in edges.spare if name in left])
    return Ends(edges.source, edges.target, edges.weights, edges.times)


def _numbered(edge_index: Any, weights: Any, times: Any) -> Ends:
    """The edges of a (2, E) array of row numbers."""
    index = check_edge_index(plain_array(_host(edge_index), "edge_index")).astype(np.int64, copy=False)
    if index.size and index.min() < 0:
        raise InputError(parameter="edge_index", value=int(index.min()), expected="hold row numbers from 0 on")
    values = None if weights is None else plain_array(_host(weights), "the weights")
    return Ends(index[0], index[1], values, as_times(times, index.shape[1]))


def _host(array: Any) -> Any:
    return array.detach().cpu().numpy() if hasattr(array, "detach") else array


def _stored(store: Any) -> Ends:
    """The edges of one relation of `HeteroData`."""
    weights, features = getattr(store, "edge_weight", None), getattr(store, "edge_attr", None)
    if weights is None and features is not None and features.numel() == store.edge_index.shape[1]:
        weights = features.reshape(-1)
    return _numbered(store.edge_index, weights, getattr(store, "edge_time", getattr(store, "time", None)))


def _by_type(table: Any, given: Mapping[str, Any]) -> dict[Key, Read]:
    """The relations of an edge table by its column `type`."""
    edges = _table_ends(table)
    assert edges is not None
    source, target, weights, times = edges
    kinds, codes = _texts(column_named(table, TYPE_COLUMNS), "column 'type'")
    ends = [column_named(table, (f"{end}_type",)) for end in ("source", "target")]
    sides = [None if column is None else _texts(column, "the types of the ends") for column in ends]
    relations: dict[Key, Read] = {}
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero(codes == number)
        parts = [side.take(rows) for side in (source, target)]
        if sides[0] is not None and sides[1] is not None:
            pairs = np.unique(np.stack([side[1][rows] for side in sides if side is not None]), axis=1).T
            groups = [
                ((sides[0][0][a], kind, sides[1][0][b]), rows[(sides[0][1][rows] == a) & (sides[1][1][rows] == b)])
                for a, b in pairs.tolist()
            ]
        elif len(given) > 1:
            groups = [
                ((_type_of(parts[0], given, kind, "source"), kind, _type_of(parts[1], given, kind, "target")), rows)
            ]
        else:
            only = next(iter(given), NODE)
            groups = [((only, kind, only), rows)]
        for key, chosen in groups:
            values = (part if part is None else part[chosen] for part in (weights, times))
            relations[key] = Ends(source.take(chosen), target.take(chosen), *values)
    return relations


def _texts(values: Any, what: str) -> tuple[list[str], np.ndarray]:
    """The distinct values of a column as texts, in the order in which they come, and the number of each entry."""
    coded = check_column(values, what).dictionary_encode()
    return [str(value) for value in coded.dictionary.to_pylist()], coded.indices.to_numpy()


def _type_of(ends: Any, given: Mapping[str, Any], kind: str, side: str) -> str:
    """The type whose nodes hold all these ends of a relation."""
    missing = {name: _first_missing(ends, ids) for name, ids in given.items()}
    fits = [name for name, node in missing.items() if node is None]
    if len(fits) == 1:
        return fits[0]
    if fits:
        got, advice = f"ids that are in {' and '.join(map(repr, fits))}", "add columns source_type and target_type"
    else:
        node = shown(next(iter(missing.values())))
        got, advice = f"{node} and others", "check the ids, or split the type"
    expected = "be nodes of one type"
    raise InputError(parameter=f"the {side}s of {kind!r}", value=got, expected=expected, got=got, advice=advice)


def _first_missing(ends: Any, ids: Any) -> Any:
    """The first of some ids that is not in a list of nodes; None if all are."""
    codes = node_rows(ends, node_column(ids))
    return ends[int(np.asarray(codes.is_null()).argmax())].as_py() if codes.null_count else None
