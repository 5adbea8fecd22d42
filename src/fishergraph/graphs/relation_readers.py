"""`as_relations`: mappings, edge tables with a column `type` and `HeteroData` become `Relations`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed, plain_array
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import check_edge_index, check_weights, type_name
from fishergraph._typing import GraphLike
from fishergraph._validation import check_flag
from fishergraph.graph import as_graph
from fishergraph.graphs.relation_ends import Ends, OpenKey, Read, locate_lines, named_error, with_types
from fishergraph.graphs.relation_nodes import numbered
from fishergraph.graphs.relations import NODE, Key, Relations, check_key
from fishergraph.io.columns import (
    check_column,
    column_named,
    edge_table,
)
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.edge_table import UNKNOWN, Edges, read_edge_table, warn_of_columns_left
from fishergraph.io.faults import Locate, TableFault, no_lines, raise_faults
from fishergraph.times import as_times

TYPE_COLUMNS = ("type", "relation", "edge_type")
# What the column `Type` of a table of Gephi holds, which says nothing of kinds of edges.
_DIRECTED = {"directed", "undirected", "mutual"}


class Kinds(NamedTuple):
    """Several kinds of edges before their nodes are numbered.

    reads : (source type, name, target type) → edges; a type is None if a table leaves it to the ids.
    sizes : the number of nodes of a type, where it is known.
    faults : what is wrong with a table of all of them, which is not raised yet.
    reading : what was read of such a table.
    """

    reads: Mapping[OpenKey, Read]
    sizes: Mapping[str, int] = {}
    faults: Sequence[TableFault] = ()
    reading: EdgeReading = EdgeReading()


def as_relations(
    obj: GraphLike,
    *,
    undirected: bool = False,
    nodes: Mapping[str, Any] | Iterable[Any] | int | None = None,
    unknown: str = "error",
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
        Ends of a relation in a table of which `nodes` lists none are nodes of one more type, "node", and a warning
        says so.
    unknown : {"error", "drop", "add"}, default="error"
        What happens to edges of tables and lists that end at an id which `nodes` does not list: an error, or they are
        dropped, or the nodes added after the others. An end of another type is always an error.

    Returns
    -------
    Relations
        Compressed rows of every relation; `summary` tells what was read.

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
    if unknown not in UNKNOWN:
        expected = f"be one of {', '.join(map(repr, UNKNOWN))}"
        raise InputError(parameter="unknown", value=unknown, expected=expected)
    if unknown != "error" and nodes is None:
        expected = "be 'error' without nodes, of which an id can be unknown"
        raise InputError(parameter="unknown", value=unknown, expected=expected, advice="pass nodes=…")
    relations = obj if isinstance(obj, Relations) else number_kinds(read_kinds(obj), _given_nodes(nodes), unknown)
    return relations.both_ways() if check_flag(undirected, "undirected") else relations


def read_kinds(obj: Any) -> Kinds:
    """The kinds of edges of anything but `Relations`."""
    if is_hetero(obj):
        sizes = {name: obj[name].num_nodes for name in obj.node_types}
        return Kinds({key: _stored(obj[key]) for key in obj.edge_types}, sizes)
    if isinstance(obj, Mapping) and obj:
        if all(isinstance(key, str) for key in obj):
            obj = {(NODE, name, NODE): graph for name, graph in obj.items()}
        for key in obj:
            check_key(key)
        return Kinds({key: named_error(key, lambda key=key: _edges(obj[key], key)) for key in obj})
    if column_named(obj, TYPE_COLUMNS) is not None:
        return _by_type(obj)
    expected = (
        "be a mapping {name: graph} or {(source type, name, target type): edges}, an edge table with a column 'type', "
        "HeteroData or Relations"
    )
    got = "an empty one" if isinstance(obj, Mapping) else type_name(obj)
    raise InputTypeError(parameter="graph", value=obj, expected=expected, got=got)


def number_kinds(
    kinds: Kinds,
    given: Mapping[str, Any],
    unknown: str = "error",
    *,
    faults: Sequence[TableFault] = (),
    locate: Locate | None = None,
) -> Relations:
    """The relations of kinds of edges, with the nodes of every type as given, or as the edges name them.

    All faults of a table are raised together, those of its file, `faults`, among them; `locate` finds their lines.
    """
    nodes = {**kinds.sizes, **given}
    reads = with_types(kinds.reads, nodes)
    return numbered(reads, nodes, unknown, [*faults, *kinds.faults], kinds.reading.path, locate)


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
    edges = None if sp.issparse(table) or hasattr(table, "detach") else read_edge_table(table)
    if edges is not None:
        raise_faults(edges.faults, edges.path, locate_lines(edges.reading) if edges.faults else no_lines)
        return _table_ends(edges)
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


def _table_ends(edges: Edges) -> Ends:
    """The edges of a table; warns of columns that are not read."""
    known = {*TYPE_COLUMNS, "source_type", "target_type"}
    left = tuple(name for name in edges.reading.left if name.strip().lower() not in known)
    reading = replace(edges.reading, left=left)
    warn_of_columns_left(reading, [name for name in edges.spare if name in left])
    rows = np.arange(len(edges.source))
    return Ends(edges.source, edges.target, edges.weights, edges.times, reading, rows)


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


def _by_type(table: Any) -> Kinds:
    """The relations of an edge table by its column `type`."""
    edges = read_edge_table(table)
    assert edges is not None
    whole = _table_ends(edges)
    kinds, codes = _texts(column_named(table, TYPE_COLUMNS), "column 'type'")
    ends = [column_named(table, (f"{end}_type",)) for end in ("source", "target")]
    sides = [None if column is None else _texts(column, "the types of the ends") for column in ends]
    complete = np.ones(len(codes), dtype=bool)
    complete[[] if edges.gaps is None else edges.gaps] = False  # an end is missing, which is a fault
    relations: dict[OpenKey, Read] = {}
    for number, kind in enumerate(kinds):
        rows = np.flatnonzero((codes == number) & complete)
        if sides[0] is None or sides[1] is None:
            relations[None, kind, None] = whole.take(rows)
            continue
        pairs = np.unique(np.stack([side[1][rows] for side in sides if side is not None]), axis=1).T
        for a, b in pairs.tolist():
            chosen = rows[(sides[0][1][rows] == a) & (sides[1][1][rows] == b)]
            relations[sides[0][0][a], kind, sides[1][0][b]] = whole.take(chosen)
    return Kinds(relations, {}, edges.faults, whole.reading)


def _texts(values: Any, what: str) -> tuple[list[str], np.ndarray]:
    """The distinct values of a column as texts, in the order in which they come, and the number of each entry."""
    coded = check_column(values, what).dictionary_encode()
    return [str(value) for value in coded.dictionary.to_pylist()], coded.indices.to_numpy()
