"""The nodes of relations: numbered by the ids that edges name, or by those that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError, UnknownNodeError, shown
from fishergraph._records import changed, check_sums, check_weights, unchecked
from fishergraph._validation import check_integer
from fishergraph.graph import Graph, graph_of
from fishergraph.graphs.relation_ends import Ends, Read, locate_lines, match_ends, named_error, node_column, node_rows
from fishergraph.graphs.relations import NODE, Bipartite, Edges, Key, Relations
from fishergraph.io.columns import distinct_ids, to_ids
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.edge_table import Numbered
from fishergraph.io.faults import Locate, TableFault, no_lines, raise_faults
from fishergraph.times import collect_times

# --- nodes ------------------------------------------------------------------------------------------------


class _Nodes(NamedTuple):
    """The nodes of a type: their number, and their ids, if edges name them by others than row numbers."""

    size: int
    column: Any = None
    ids: np.ndarray | None = None


def numbered(
    reads: Mapping[Key, Read],
    given: Mapping[str, Any],
    unknown: str = "error",
    faults: Sequence[TableFault] = (),
    path: str = "",
    locate: Locate | None = None,
) -> Relations:
    """The relations with the nodes of every type numbered; all faults are raised together."""
    names = dict.fromkeys([*given, *(end for key in reads for end in (key[0], key[2]))])
    nodes = {name: _nodes_of(name, reads, given.get(name)) for name in names}
    columns = {name: one.column for name, one in nodes.items() if one.column is not None}
    reads, extended, strangers = match_ends(reads, columns, unknown)
    if faults or strangers:
        raise_faults([*faults, *strangers], path, locate or _locate_of(reads))
    nodes |= {name: _with_ids(column) for name, column in extended.items() if column is not columns[name]}
    edges = {
        key: named_error(key, lambda key=key, read=read: _numbered_edges(key, read, nodes))
        for key, read in reads.items()
    }
    ids = {name: one.ids for name, one in nodes.items() if one.ids is not None}
    return unchecked(Relations, {name: one.size for name, one in nodes.items()}, edges, ids)


def _locate_of(reads: Mapping[Key, Read]) -> Locate:
    """Rows → lines, if all relations come from one file."""
    records = {read.reading.path: read.reading for read in reads.values() if isinstance(read, Ends)}
    return locate_lines(next(iter(records.values()))) if len(records) == 1 else no_lines


def _nodes_of(name: str, reads: Mapping[Key, Read], given: Any) -> _Nodes:
    """The nodes of one type, as they are given or as the edges name them."""
    if isinstance(given, (int, np.integer)):
        return _Nodes(check_integer(given, f"the number of {name} nodes", least=1, most=2**40))
    if given is not None:
        return _with_ids(distinct_ids(given, f"the ids of {name!r}"))
    ends = [(read, side) for key, read in reads.items() for side in (0, 2) if key[side] == name]
    listed = [getattr(read, "source" if side == 0 else "target") for read, side in ends if isinstance(read, Ends)]
    numbered: list[Any] = [column for column in listed if isinstance(column, np.ndarray)]
    named = [column for column in listed if not isinstance(column, np.ndarray)]
    graphs = [read.ids for read, _ in ends if isinstance(read, Graph) and read.ids is not None]
    sizes = [_size(read, side) for read, side in ends if not (isinstance(read, Ends) or _has_ids(read))]
    if not numbered and not sizes:
        return _union_of_names(name, named, graphs)
    if graphs or not all(str(column.type) == "int64" for column in named):
        expected, got = "all name their nodes, or all number them", "both"
        advice = f"pass the ids of the nodes: as_relations(…, nodes={{{name!r}: ids}}), or X with the ids as its index"
        raise InputError(parameter=f"the relations of {name!r}", value=name, expected=expected, got=got, advice=advice)
    if len(set(sizes)) > 1:
        expected, got = "have as many nodes in every relation", " and ".join(map(str, dict.fromkeys(sizes)))
        raise InputError(parameter=f"the type {name!r}", value=sizes, expected=expected, got=got)
    largest = max(int(np.max(np.asarray(column), initial=-1)) for column in (*listed, np.zeros(1, np.int64)))
    return _Nodes(sizes[0] if sizes else largest + 1)


def _has_ids(read: Read) -> bool:
    return isinstance(read, Graph) and read.ids is not None


def _size(read: Any, side: int) -> int:
    """How many nodes a graph or a matrix has at a side."""
    return read.n_nodes if isinstance(read, Graph) else read.shape[1 if side == 0 else 0]


def _union_of_names(name: str, named: list[Any], graphs: list[np.ndarray]) -> _Nodes:
    """All ids that edges name, sorted, or in the order of graphs that agree; they may be the row numbers."""
    import pyarrow as pa

    columns = [distinct_ids(ids.tolist(), f"the ids of {name!r}") for ids in graphs]
    if columns and not named and all(columns[0].equals(column) for column in columns):
        return _with_ids(columns[0])
    columns += named
    texts = len({str(column.type) for column in columns}) > 1
    joined = pa.chunked_array([column.cast("large_string") for column in columns] if texts else columns).unique()
    return _with_ids(joined.take(np.argsort(to_ids(joined), kind="stable")))


def _with_ids(column: Any) -> _Nodes:
    ids = to_ids(column)
    counted = ids.dtype.kind == "i" and np.array_equal(ids, np.arange(len(ids)))
    return _Nodes(len(ids), column, None if counted else ids)


# --- edges with numbers ------------------------------------------------------------------------------------


def _numbered_edges(key: Key, read: Read, nodes: Mapping[str, _Nodes]) -> Edges:
    """The compressed rows of a relation."""
    sources, targets = nodes[key[0]], nodes[key[2]]
    if isinstance(read, Graph):
        return _in_order(key, read, sources)
    if isinstance(read, sp.csr_array):
        if read.shape != (targets.size, sources.size):
            expected = (
                f"have a row for each of {targets.size} {key[2]} and a column for each of {sources.size} {key[0]}"
            )
            what = f"the matrix of the relation {key[1]!r}"
            raise InputError(
                parameter=what, value=read.shape, expected=expected, advice="pass A.T if it is turned round"
            )
        return _bipartite(read, None, EdgeReading())
    source, target = _rows(read.source, key, 0, nodes), _rows(read.target, key, 2, nodes)
    weights = read.weights
    if weights is not None:
        weights = check_weights(weights, len(source), lambda i: f"{_shown(read.source, i)} -> {_shown(read.target, i)}")
    if key[0] == key[2]:
        return graph_of(Numbered(source, target, weights, sources.size, None, read.reading, read.times))
    data = np.ones(len(source), dtype=np.float32) if weights is None else weights
    A = sp.csr_array(sp.coo_array((data, (target, source)), shape=(targets.size, sources.size)))
    check_sums(A)
    times = None if read.times is None else collect_times(source, target, read.times, weights)
    return _bipartite(A, times, replace(read.reading, merged=len(source) - A.nnz))


def _shown(column: Any, i: int) -> str:
    return str(column[int(i)])


def _bipartite(A: sp.csr_array, times: Any, reading: EdgeReading) -> Bipartite:
    """The edges of a canonical matrix (target, source)."""
    before = A.nnz
    A.eliminate_zeros()
    n_targets, n_sources = A.shape  # type: ignore[misc]
    weights = None if (A.data == 1).all() else A.data
    indices = A.indices.astype(np.int32 if max(n_targets, n_sources) < 2**31 else np.int64, copy=False)
    reading = replace(reading, zeros=before - A.nnz)
    return unchecked(Bipartite, A.indptr.astype(np.int64), indices, weights, n_sources, times, reading)


def _in_order(key: Key, graph: Graph, nodes: _Nodes) -> Graph:
    """A graph with its nodes in the order of their type, which may have more of them."""
    if graph.ids is None or nodes.column is None:
        if graph.n_nodes != nodes.size:
            expected, got = f"have {nodes.size} {key[0]} nodes", f"{graph.n_nodes}"
            raise InputError(parameter=f"the relation {key[1]!r}", value=graph, expected=expected, got=got)
        return changed(graph, ids=None)
    codes = node_rows(node_column(graph.ids.tolist()), nodes.column)
    if codes.null_count:
        _unknown(graph.ids[int(np.asarray(codes.is_null()).argmax())], key, 0, {key[0]: nodes})
    rows = codes.to_numpy()
    if nodes.size == graph.n_nodes and np.array_equal(rows, np.arange(nodes.size)):
        return changed(graph, ids=None)
    each, times = np.arange(graph.n_edges), graph.times
    each = each if times is None else np.repeat(each, np.diff(times.offsets))
    target = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))[each]
    weights = graph.weights if times is None else times.weights
    when = None if times is None else times.times
    edges = Numbered(rows[graph.indices[each]], rows[target], weights, nodes.size, None, EdgeReading(), when)
    return changed(graph_of(edges), reading=graph.reading)


def _rows(column: Any, key: Key, side: int, nodes: Mapping[str, _Nodes]) -> np.ndarray:
    """The rows of the nodes at one side of the edges of a relation."""
    one = nodes[key[side]]
    if isinstance(column, np.ndarray) or (one.column is None and str(column.type) == "int64"):
        rows = np.asarray(column).astype(np.int64, copy=False)
        bad = (rows < 0) | (rows >= one.size)
        if bad.any():
            _unknown(int(rows[bad.argmax()]), key, side, nodes)
        return rows
    if one.column is None:
        expected = f"name the {one.size} {key[side]} nodes" if key[side] != NODE else f"name its {one.size} rows"
        advice = "pass a DataFrame with the ids as its index, or nodes= of as_relations with the ids in row order"
        raise InputError(parameter="X", value=_shown(column, 0), expected=expected, got="none", advice=advice)
    return node_rows(column, one.column).to_numpy(zero_copy_only=False).astype(np.int64)


def _unknown(node: Any, key: Key, side: int, nodes: Mapping[str, _Nodes]) -> None:
    """Raise for a node that its type does not have; says which type has it."""
    import pyarrow as pa

    where = "source" if side == 0 else "target"
    others = [name for name, one in nodes.items() if name != key[side] and one.column is not None]
    held = [name for name in others if not node_rows(pa.array([node]), nodes[name].column).null_count]
    known = nodes.get(key[side])
    what = f"{key[side]!r}" if known is None else f"the {known.size} nodes of type {key[side]!r}"
    got = f"{shown(node)}, which is of type {held[0]!r}" if held else shown(node)
    raise UnknownNodeError(
        parameter=f"every {where} of the relation {key[1]!r}",
        value=node,
        expected=f"be one of {what}",
        got=got,
        advice="correct the edge, or the types of the relation" if held else "add the node, or drop the edge",
    )
