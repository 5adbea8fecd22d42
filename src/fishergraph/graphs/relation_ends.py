"""The ends of relations before their nodes are numbered: which type they are of, and which are of none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError, InputTypeError, UnknownNodeError, shown
from fishergraph._warn import warn
from fishergraph.graph import Graph
from fishergraph.graphs.relations import NODE, Key
from fishergraph.io.columns import distinct_ids, to_ids
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.faults import SHOWN, Locate, TableFault, no_lines
from fishergraph.io.near import near_matches

OpenKey: TypeAlias = tuple[str | None, str, str | None]

_MOST_NEAR = 200_000  # ids that are searched for near matches
_ADD = "correct it, or pass unknown='drop' or 'add' to as_relations (--unknown)"


class Ends(NamedTuple):
    """The edges of a relation before their nodes are numbered: Arrow ids, or row numbers.

    rows : where the edges are in their table.
    """

    source: Any
    target: Any
    weights: Any
    times: np.ndarray | None
    reading: EdgeReading = EdgeReading()
    rows: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Ends:
        """Some of the edges of a table."""
        assert self.rows is not None
        weights, times = (None if part is None else part[rows] for part in (self.weights, self.times))
        reading = replace(self.reading, rows=len(rows))
        return Ends(self.source.take(rows), self.target.take(rows), weights, times, reading, self.rows[rows])


Read = Ends | Graph | sp.csr_array


def named_error(key: OpenKey, read: Callable[[], Any]) -> Any:
    """What `read` returns; an error names the relation."""
    try:
        return read()
    except (InputError, InputTypeError) as error:
        if error.parameter.endswith(f"relation {key[1]!r}"):
            raise
        raise error.revised(parameter=f"{error.parameter} in the relation {key[1]!r}") from error


def node_column(ids: Any) -> Any:
    """Return the ids of nodes as one Arrow array; a number of nodes stands for their row numbers."""
    import pyarrow as pa

    return pa.array(np.arange(ids)) if isinstance(ids, (int, np.integer)) else distinct_ids(ids, "the ids of nodes")


def node_rows(ends: Any, nodes: Any) -> Any:
    """The row of every id among the nodes, null if it is not one of them."""
    from pyarrow.compute import SetLookupOptions, call_function

    if str(ends.type) != str(nodes.type):
        ends, nodes = ends.cast("large_string"), nodes.cast("large_string")
    return call_function("index_in", [ends], SetLookupOptions(value_set=nodes))


def ends_of(reads: Mapping[OpenKey, Read], node_type: str) -> list[Any]:
    """The distinct ids at each end of a relation that is of a type, or may be."""
    found = []
    for key, read in reads.items():
        for side, column in ((0, "source"), (2, "target")):
            if key[side] not in (None, node_type):
                continue
            if isinstance(read, Graph) and read.ids is not None:
                found.append(node_column(read.ids.tolist()))
            elif isinstance(read, Ends) and not isinstance(read.source, np.ndarray):
                found.append(getattr(read, column).unique())
    return found


def locate_lines(reading: EdgeReading) -> Locate:
    """Rows → lines of the file that a table was read from, if it was."""
    if not reading.path:
        return no_lines
    from fishergraph.io.edge_files import lines_of

    return lines_of(reading)


# --- the types of ends ------------------------------------------------------------------------------------


def with_types(reads: Mapping[OpenKey, Read], given: Mapping[str, Any]) -> dict[Key, Read]:
    """The relations with the types of their ends, which the ids of the given nodes tell if the table does not.

    The ends of a relation are of the type that has the most of them. If no type has any, they are of the only type that
    no end was found for, or else of a type of their own, "node".
    """
    open_keys = [key for key in reads if key[0] is None]
    if not open_keys or len(given) == 0 or set(given) == {NODE}:
        return {(key[0] or NODE, key[1], key[2] or NODE): read for key, read in reads.items()}
    columns = {name: node_column(ids) for name, ids in given.items()}
    types: dict[tuple[OpenKey, str], str | None] = {}
    for key in open_keys:
        for side in ("source", "target"):
            types[key, side] = _type_of(getattr(reads[key], side).unique(), columns, key[1], side)
    without = [place for place, found in types.items() if found is None]
    idle = [name for name in given if name not in types.values()]
    if len(idle) > 1 and without:
        key, side = without[0]
        raise _no_type(key[1], side, getattr(reads[key], side)[0].as_py(), given)
    types |= dict.fromkeys(without, idle[0] if idle else NODE)
    if without and not idle:
        _warn_of_others(reads, without, given)
    return {(types[key, "source"] or NODE, key[1], types[key, "target"] or NODE): reads[key] for key in open_keys}


def _type_of(ends: Any, columns: Mapping[str, Any], kind: str, side: str) -> str | None:
    """The type whose nodes hold the most of some distinct ends; None if no type holds any."""
    held = {name: len(ends) - node_rows(ends, column).null_count for name, column in columns.items()}
    most = max(held.values())
    fits = [name for name, number in held.items() if number == most]
    if most == 0:
        return None
    if len(fits) == 1:
        return fits[0]
    got, advice = f"ids that are in {' and '.join(map(repr, fits))}", "add columns source_type and target_type"
    expected = "be nodes of one type"
    raise InputError(parameter=f"the {side}s of {kind!r}", value=got, expected=expected, got=got, advice=advice)


def _no_type(kind: str, side: str, node: Any, given: Mapping[str, Any]) -> InputError:
    """The error for ends of which no type holds any, if several types have no ends."""
    expected, got = f"be nodes of one type, {' or '.join(map(repr, given))}", f"{shown(node)} and others"
    advice = "check the ids, or add columns source_type and target_type"
    return InputError(parameter=f"the {side}s of {kind!r}", value=node, expected=expected, got=got, advice=advice)


def _warn_of_others(
    reads: Mapping[OpenKey, Any], places: Sequence[tuple[OpenKey, str]], given: Mapping[str, Any]
) -> None:
    """Warn of ends that are nodes of no given type."""
    ends = " and ".join(f"the {side}s of {key[1]!r}" for key, side in places)
    key, side = places[0]
    first = shown(getattr(reads[key], side)[0].as_py())
    text = (
        f"{ends}, such as {first}, are none of the nodes of {', '.join(map(repr, given))}: they are of one more type, "
        f"{NODE!r}, whose nodes come from the edges. Give their nodes, or columns source_type and target_type."
    )
    warn("another type", text)


# --- ends that are no nodes -------------------------------------------------------------------------------


def match_ends(
    reads: Mapping[Key, Read], columns: Mapping[str, Any], unknown: str
) -> tuple[dict[Key, Read], dict[str, Any], list[TableFault]]:
    """The relations, the ids of the nodes of each type, and the faults that other ends are.

    With `unknown` "drop" edges to ids that no type has are left out, and with "add" these become nodes. An id that
    another type has is a fault in any case.
    """
    matched, added, faults = dict(reads), {name: [] for name in columns}, []
    for key, read in reads.items():
        if not isinstance(read, Ends) or isinstance(read.source, np.ndarray):
            continue
        stray = {side: _stray(read, side, columns.get(key[side])) for side in (0, 2)}
        for side, mask in stray.items():
            faults += _faults(key, read, side, mask, columns, unknown)
        outside = stray[0] | stray[2]
        if faults or unknown == "error" or not outside.any():
            continue
        lost = [_column(read, side).filter(mask).unique() for side, mask in stray.items()]
        ids = len({value for part in lost for value in part.to_pylist()})
        if unknown == "add":
            for side, part in zip((0, 2), lost, strict=True):
                added[key[side]] = [*added.get(key[side], []), part]
            matched[key] = read._replace(reading=replace(read.reading, unknown=ids, added=ids))
        else:
            kept = read.take(np.flatnonzero(~outside))
            record = replace(read.reading, unknown=ids, dropped=int(outside.sum()))
            matched[key] = kept._replace(reading=record)
    return matched, {name: _extended(column, added[name]) for name, column in columns.items()}, faults


def _column(read: Ends, side: int) -> Any:
    return read.source if side == 0 else read.target


def _stray(read: Ends, side: int, nodes: Any) -> np.ndarray:
    """Which edges end at an id that the nodes of the type do not have."""
    ends = _column(read, side)
    return np.zeros(len(ends), bool) if nodes is None else np.asarray(node_rows(ends, nodes).is_null())


def _extended(column: Any, parts: list[Any]) -> Any:
    """The ids of nodes with others after them, sorted."""
    import pyarrow as pa

    if column is None or not any(map(len, parts)):
        return column
    texts = len({str(part.type) for part in (column, *parts)}) > 1
    column, *parts = [part.cast("large_string") if texts else part for part in (column, *parts)]
    more = pa.concat_arrays(parts).unique()
    return pa.concat_arrays([column, more.take(np.argsort(to_ids(more), kind="stable"))])


def _faults(
    key: Key, read: Ends, side: int, stray: np.ndarray, columns: Mapping[str, Any], unknown: str
) -> list[TableFault]:
    """The faults that ends of a relation are: of another type, or of none."""
    assert read.rows is not None
    found: list[TableFault] = []
    where, left = "source" if side == 0 else "target", stray.copy()
    if not stray.any():
        return found
    for name, column in columns.items():
        mask = left & ~_stray(read, side, column) if column is not None and name != key[side] else left & False
        if mask.any():
            rows, values = read.rows[mask], _first(read, side, mask)
            error = _unknown_end(key, where, values[0], len(columns[key[side]]), of=name)
            words = f"edge{{s}} of {key[1]!r} whose {where} is of type {name!r}"
            found.append(TableFault(error, words, rows, list(map(shown, values))))
            left &= ~mask
    if left.any() and unknown == "error":
        rows, values = read.rows[left], _first(read, side, left)
        listed = columns[key[side]].slice(0, _MOST_NEAR).to_pylist()
        near = [near_matches(value, listed, most=2) for value in values]
        error = _unknown_end(key, where, values[0], len(columns[key[side]]), near=near[0], count=len(rows))
        texts = [
            shown(value) + (f" (near {' or '.join(map(shown, close))})" if close else "")
            for value, close in zip(values, near, strict=True)
        ]
        words = f"edge{{s}} of {key[1]!r} whose {where} is no {key[side]}"
        found.append(TableFault(error, words, rows, texts))
    return found


def _first(read: Ends, side: int, mask: np.ndarray) -> list[Any]:
    """The ends of the first of some edges."""
    return _column(read, side).take(np.flatnonzero(mask)[:SHOWN]).to_pylist()


def _unknown_end(
    key: Key, where: str, node: Any, size: int, *, of: str = "", near: Sequence[Any] = (), count: int = 1
) -> UnknownNodeError:
    """The error for an end that its type does not have."""
    alike = f", near {' and '.join(map(shown, near))}" if near else ""
    return UnknownNodeError(
        parameter=f"every {where} of the relation {key[1]!r}",
        value=node,
        expected=f"be one of the {size} nodes of type {(key[0] if where == 'source' else key[2])!r}",
        got=f"{shown(node)}, which is of type {of!r}" if of else f"{shown(node)}{alike}",
        advice="correct the edge, or the types of the relation" if of else _ADD,
        count=count,
        near=list(near),
    )
