"""Tables of edges: their ends, their weights, and everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._errors import InputError, InputTypeError, UnknownNodeError, shown
from fishergraph._records import check_weights, reads_as_number
from fishergraph._warn import warn
from fishergraph.io.columns import (
    check_column,
    check_distinct,
    check_ids,
    factorise,
    ids_with_gaps,
    missing_value,
    table_columns,
    to_ids,
    unknown_node,
)
from fishergraph.io.edge_columns import ANY, EdgeOptions, find_columns
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.faults import SHOWN, Locate, TableFault, no_lines, raise_faults
from fishergraph.io.near import near_matches
from fishergraph.times import TIME_COLUMNS, as_times

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = ("error", "drop", "add")
_MOST_NEAR = 200_000  # ids that are searched for near matches


@dataclass(frozen=True)
class Edges:
    """The edges of a table, and the faults that were found in it."""

    source: pa.Array
    target: pa.Array
    weights: np.ndarray | None
    reading: EdgeReading
    faults: list[TableFault] = field(default_factory=list)
    gaps: np.ndarray | None = None  # rows without an id
    spare: tuple[str, ...] = ()  # columns of numbers that differ, which are not used
    times: np.ndarray | None = None

    @property
    def path(self) -> str:
        """The file, if there is one."""
        return self.reading.path


@dataclass(frozen=True)
class Numbered:
    """Edges between rows of nodes; the ids are None if they are the row numbers."""

    source: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None
    n_nodes: int
    ids: np.ndarray | None
    reading: EdgeReading
    times: np.ndarray | None = None


# --- reading --------------------------------------------------------------------------------------------


def read_edge_table(table: Any, options: EdgeOptions = ANY) -> Edges | None:
    """The edges of a pandas, Polars or pyarrow table with their faults; None for anything else."""
    columns = table_columns(table)
    if columns is None:
        return None
    names, column = columns
    read = EdgeReading.of(table)
    roles = find_columns(names, options)
    if read is None:
        read = EdgeReading(columns={role: names[place] for role, place in roles.used.items()}, left=roles.left(names))
    reading: EdgeReading = read
    called = lambda role: _called(reading, role, names[getattr(roles, role)])  # noqa: E731
    ends, gaps, faults = [], [], []
    for role in ("source", "target"):
        values, missing = ids_with_gaps(column(getattr(roles, role)), called(role))
        ends.append(values)
        gaps.append(missing)
        if len(missing):
            error = missing_value(called(role), int(missing[0]))
            faults.append(TableFault(error, _missing(names[getattr(roles, role)], read, role), missing))
    weights = None
    if roles.weight is not None:
        words = _missing(names[roles.weight], read, "weight")
        weights, wrong = _weights(column(roles.weight), called("weight"), words, *ends)
        faults += wrong
    rows = len(ends[0])
    used = set(roles.used.values())
    times, place = _times(names, column, used, roles.time, rows)
    read = _with_times(read, names, place if times is not None else None)
    used |= set() if times is None else {place}
    holes = np.unique(np.concatenate(gaps)) if any(map(len, gaps)) else None
    others = [place for place in range(len(names)) if place not in used] if weights is None else []
    spare = tuple(names[place] for place in others if varies(column(place)))
    return Edges(ends[0], ends[1], weights, replace(read, rows=read.rows or rows), faults, holes, spare, times)


def varies(column: Any) -> bool:
    """Whether a column holds numbers that differ."""
    try:
        values = np.asarray(column)
    except ValueError:  # lists of several lengths
        return False
    return values.ndim == 1 and values.dtype.kind in "iuf" and len(values) > 0 and bool((values != values[0]).any())


def _times(
    names: list[str], column: Callable[[int], Any], used: set[int], place: int | None, rows: int
) -> tuple[np.ndarray | None, int]:
    """The times of the edges and the position of their column, which may have one of the usual names."""
    folded = [name.strip().lower() for name in names]
    places = [folded.index(name) for name in TIME_COLUMNS if name in folded] if place is None else [place]
    for position in places:
        if place is not None or position not in used:
            return as_times(column(position), rows), position
    return None, -1


def _with_times(read: EdgeReading, names: list[str], place: int | None) -> EdgeReading:
    """The record with the column of times among those that are used, or left aside if it holds none."""
    name = read.columns.get("time", names[place] if place is not None else None)
    columns = {role: other for role, other in read.columns.items() if role != "time"}
    left = tuple(other for other in read.left if other != name)
    if name is None:
        return read
    return (
        replace(read, columns=columns, left=(*left, name))
        if place is None
        else replace(read, columns={**columns, "time": name}, left=left)
    )


def _called(read: EdgeReading, role: str, name: str) -> str:
    """A column in words: its name in the file, or its number."""
    name = read.columns.get(role, name)
    file = f" of '{read.path}'" if read.path else ""
    return f"column {name!r}{file}"


def _missing(name: str, read: EdgeReading, role: str) -> str:
    """The words for missing values in a column."""
    return f"missing value{{s}} in column {read.columns.get(role, name)!r}"


def _weights(
    values: Any, what: str, words: str, source: pa.Array, target: pa.Array
) -> tuple[np.ndarray | None, list[TableFault]]:
    """The weights as numbers, and the faults among them; `words` are those for missing ones."""
    missing = np.zeros(0, np.int64)
    faults = []
    try:
        column = np.asarray(check_column(values, what))
    except InputError as error:
        if error.expected != "be complete":
            raise
        column = np.asarray(values)
        gaps = [value is None or value != value or value == "" for value in column.tolist()]
        missing = np.flatnonzero(gaps)
        faults = [TableFault(error, words, missing)]
        column = np.where(gaps, 1, column)
    name = lambda row: f"{_end(source[row])} -> {_end(target[row])}"  # noqa: E731
    try:
        return check_weights(column, len(source), name), faults
    except (InputError, InputTypeError) as error:
        bad, phrase = _bad_weights(column, filled=len(missing) > 0)
        if not len(bad) and not len(missing):
            raise
        if not len(bad):
            return None, faults
        first = bad[:SHOWN].tolist()
        cells = [column[row].item() if hasattr(column[row], "item") else column[row] for row in first]
        texts = [f"{shown(cell)} on edge {name(row)}" for cell, row in zip(cells, first, strict=True)]
        return None, [*faults, TableFault(error, phrase, bad, texts)]


def _end(value: Any) -> str:
    """An end of an edge in a message; "?" if it is missing."""
    return str(value) or "?"


def _bad_weights(column: np.ndarray, *, filled: bool) -> tuple[np.ndarray, str]:
    """The rows whose weights cannot be used, and what is wrong with them."""
    if column.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            return np.flatnonzero(~((column >= 0) & (column < np.inf))), "edge weight{s} below zero or infinite"
    words = "edge weight{s} without a number of at least zero"
    if column.dtype.kind in "mM":
        return np.arange(len(column)), words
    # One word makes a column of a text file a column of words: only this word is wrong.
    read: list[Any] = [value if isinstance(value, Real) else reads_as_number(value) for value in column.tolist()]
    bad = [k for k, value in enumerate(read) if value is None or not 0 <= value < np.inf]
    if not bad and not filled:
        bad = [k for k, value in enumerate(column.tolist()) if not isinstance(value, Real)]
    return np.array(bad, dtype=np.int64), words


# --- ids to rows ----------------------------------------------------------------------------------------


def number_edges(
    edges: Edges,
    *,
    node_ids: Any = None,
    n_nodes: int | None = None,
    unknown: str = "error",
    faults: Iterable[TableFault] = (),
    locate: Locate = no_lines,
) -> Numbered:
    """Edges between row numbers; all faults are raised together, those that came with the file among them.

    Edges with an end that `node_ids` does not list are faults; with `unknown` "drop" they are left out, and with "add"
    their ends become nodes after the others.
    """
    found, nodes = [*faults, *edges.faults], node_ids
    if nodes is not None and (found or unknown != "error"):
        edges, nodes, strangers = _match_nodes(edges, nodes, unknown)
        found += strangers
    raise_faults(found, edges.path, locate)
    try:
        source, target, n, ids = factorise(edges.source, edges.target, node_ids=nodes, n_nodes=n_nodes)
    except UnknownNodeError:
        raise_faults(_match_nodes(edges, nodes, unknown)[2], edges.path, locate)
        raise
    if ids is not None and ids.dtype.kind != "i":
        _warn_of_like_ids(ids)
    return Numbered(source, target, edges.weights, n, ids, edges.reading, edges.times)


def _match_nodes(edges: Edges, node_ids: Any, unknown: str) -> tuple[Edges, Any, list[TableFault]]:
    """The edges and the nodes with unknown ids left out or added, and the faults that unknown ids are."""
    import pyarrow as pa
    from pyarrow.compute import SetLookupOptions, call_function

    keys = check_ids(node_ids, "node_ids")
    check_distinct(keys, keys.dictionary_encode().indices.to_numpy(), "node_ids")
    columns = [edges.source, edges.target, keys]
    if len({str(column.type) for column in columns}) > 1:
        columns = [column.cast(pa.large_string()) for column in columns]
    options = SetLookupOptions(value_set=columns[2])
    known = [call_function("is_in", [column], options).to_numpy(zero_copy_only=False) for column in columns[:2]]
    outside = ~(known[0] & known[1])
    if edges.gaps is not None:
        outside[edges.gaps] = False
    if not outside.any():
        return edges, node_ids, []
    strange = [column.filter(pa.array(~inside & outside)) for column, inside in zip(columns[:2], known, strict=True)]
    ids = pa.concat_arrays(strange).unique()
    record = replace(edges.reading, unknown=len(ids))
    if unknown == "error":
        return edges, node_ids, [_unknown_fault(columns, known, outside)]
    if unknown == "add":
        added = to_ids(ids)
        every = pa.concat_arrays([columns[2], pa.array(np.unique(added), columns[2].type)])
        return replace(edges, reading=replace(record, added=len(ids))), every, []
    kept = pa.array(~outside)
    weights = None if edges.weights is None else edges.weights[~outside]
    times = None if edges.times is None else edges.times[~outside]
    record, parts = replace(record, dropped=int(outside.sum())), (edges.source.filter(kept), edges.target.filter(kept))
    return Edges(*parts, weights, record, edges.faults, times=times), node_ids, []


def _unknown_fault(columns: Sequence[Any], known: Sequence[np.ndarray], outside: np.ndarray) -> TableFault:
    """The fault of edges with an end that is not a node."""
    rows = np.flatnonzero(outside)
    ids = [columns[0 if not known[0][row] else 1][int(row)].as_py() for row in rows[:SHOWN].tolist()]
    listed = columns[2].slice(0, _MOST_NEAR).to_pylist()
    near = [near_matches(value, listed, most=2) for value in ids]
    shown_ids = [
        shown(value) + (f" (near {' or '.join(map(shown, close))})" if close else "")
        for value, close in zip(ids, near, strict=True)
    ]
    return TableFault(unknown_node(ids[0], near[0], len(rows)), "edge{s} to an id without a node", rows, shown_ids)


def _warn_of_like_ids(ids: np.ndarray) -> None:
    """Warn of ids that differ by case, by blanks or by leading zeros alone: they are nodes of their own."""
    import pyarrow as pa
    from pyarrow.compute import ReplaceSubstringOptions, call_function

    if ids.dtype == object and not all(isinstance(value, str) for value in ids):
        return
    folded = call_function("utf8_lower", [pa.array(ids).cast(pa.large_string())])
    folded = call_function("replace_substring_regex", [folded], ReplaceSubstringOptions(r"\s+", ""))
    folded = call_function("replace_substring_regex", [folded], ReplaceSubstringOptions(r"^0+(\d)", r"\1"))
    folded = call_function("replace_substring_regex", [folded], ReplaceSubstringOptions(r"^(\d+)\.0+$", r"\1"))
    coded = folded.dictionary_encode()
    alike = len(ids) - len(coded.dictionary)
    if not alike:
        return
    codes = coded.indices.to_numpy()
    code = int(np.flatnonzero(np.bincount(codes) > 1)[0])
    pair = " and ".join(repr(str(value)) for value in ids[np.flatnonzero(codes == code)[:2]])
    text = (
        f"{alike:,} ids differ from another by case, blanks or leading zeros alone, such as {pair}: they are different "
        "nodes. Write them alike if they are the same."
    )
    warn("ids alike", text)


def warn_of_columns_left(reading: EdgeReading, numbers: Sequence[str] = (), *, table: bool = True) -> None:
    """Warn of columns that are not used; `numbers` are those of numbers that differ, which may be weights."""
    if not reading.left:
        return
    several = len(reading.left) > 1
    listed = ", ".join(map(repr, reading.left[:10])) + (", …" if len(reading.left) > 10 else "")
    what, owner = ("column", "edge table") if table else ("attribute", "edges")
    text = f"the {what}{'s' * several} {listed} of the {owner} {'are' if several else 'is'} not read"
    if numbers and "weight" not in reading.columns:
        text += f": every edge has weight 1. Pass weight={numbers[0]!r} to as_graph if it holds weights, or drop it."
    else:
        text += "."
    warn("columns left", text)
