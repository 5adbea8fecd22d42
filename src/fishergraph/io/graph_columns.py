"""Attributes of nodes and edges as Arrow columns, and the record of a graph that was read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.compute import call_function

from fishergraph._errors import FileFormatError
from fishergraph.io.archives import check_columns, unpack_limit

MOST_BYTES = 1 << 31  # of a graph in text that is parsed by Python
_PART = 1 << 20


@dataclass(frozen=True)
class GraphFile:
    """A graph that was read from a file.

    edges : columns source, target and the attributes of the edges; edges without direction are listed both ways.
    nodes : columns id and the attributes of the nodes.
    both_ways : whether the edges have no direction.
    notes : what to say of the file.
    """

    edges: pa.Table
    nodes: pa.Table
    both_ways: bool = False
    notes: tuple[str, ...] = ()


def read_all(stream: Any, path: Path) -> bytes:
    """All bytes of an open file, if they are not too many for a parser in Python."""
    parts, size = [], 0
    while data := stream.read(_PART):
        parts.append(data)
        size += len(data)
        if size > MOST_BYTES:
            reason = f"it has more than {MOST_BYTES:,} bytes, which is too long for this format"
            raise FileFormatError(path=path, reason=reason, advice="write its edges as Parquet or CSV")
    return b"".join(parts)


def as_text(data: bytes, path: Path) -> str:
    """Bytes as text, by their byte-order mark, else UTF-8."""
    marks = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
    encoding = next((name for mark, name in marks if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        advice = "convert it: iconv -f latin1 -t utf-8"
        raise FileFormatError(path=path, line=line, reason=f"it is not text in {encoding}", advice=advice) from None


class Attributes:
    """Rows of attributes, which become columns; what a row does not have is missing."""

    def __init__(self, path: Path):
        self._columns: dict[str, list[Any]] = {}
        self._rows, self._path = 0, path
        self._most = unpack_limit(path.stat().st_size) // 8  # cells, as in a Parquet file

    def add(self, values: Mapping[str, Any]) -> None:
        """The attributes of one more row."""
        for name, value in values.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = []
                self._check()
            if len(column) < self._rows:
                column.extend([None] * (self._rows - len(column)))
            column.append(value)
        self._rows += 1

    def _check(self) -> None:
        """Raise if the attributes, each of which is a column, would take too much memory."""
        check_columns(len(self._columns), f"'{self._path}'")
        if len(self._columns) * self._rows > self._most:
            reason = f"its {len(self._columns):,} attributes of {self._rows:,} nodes or edges are mostly missing"
            advice = "write the attributes as a table"
            raise FileFormatError(path=self._path, reason=reason, advice=advice)

    def columns(self, *taken: str) -> dict[str, pa.Array]:
        """The columns; one with a taken name gets another."""
        self._check()
        columns: dict[str, pa.Array] = {}
        for name, values in self._columns.items():
            filled = values + [None] * (self._rows - len(values))
            key = name
            while key in taken or key in columns:
                key += "_"
            columns[key] = as_column(filled)
        return columns


def as_column(values: Sequence[Any]) -> pa.Array:
    """Values of any kind as one column; those of several kinds become text."""
    try:
        column = pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([None if value is None else _text(value) for value in values], pa.string())
    simple = (pa.types.is_list(column.type) and _of_numbers(column.type.value_type)) or not pa.types.is_nested(
        column.type
    )
    return column if simple else pa.array([None if v is None else _text(v) for v in values], pa.string())


def _of_numbers(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "replace").decode("utf-8")


def graph_file(
    path: Path,
    ids: Sequence[Any],
    nodes: Attributes,
    ends: tuple[Sequence[Any], Sequence[Any]],
    edges: Attributes,
    directed: Sequence[bool],
    notes: Sequence[str] = (),
) -> GraphFile:
    """The record of nodes with their ids, and of edges between ids, some of them directed."""
    source, target = (_ids(end, path, "the end of an edge") for end in ends)
    keys = _ids(ids, path, "the id of a node")
    if len({str(column.type) for column in (source, target, keys) if len(column)}) > 1:
        source, target, keys = (column.cast(pa.string()) for column in (source, target, keys))
    if pa.types.is_string(keys.type) and (numbers := _integers(source, target, keys)) is not None:
        source, target, keys = numbers
    table = pa.table({"source": source, "target": target, **edges.columns("source", "target")})
    both = ~np.asarray(directed, dtype=bool)
    if both.any():
        loops = np.asarray(call_function("equal", [source, target]))
        back = table.filter(pa.array(both & ~loops))
        back = back.rename_columns(["target", "source", *table.column_names[2:]]).select(table.column_names)
        table = pa.concat_tables([table, back])
    notes = (*notes, "directed and undirected edges") if both.any() and not both.all() else tuple(notes)
    node_table = pa.table({"id": keys, **nodes.columns("id")})
    return GraphFile(table, node_table, bool(len(both)) and bool(both.all()), notes)


def _ids(values: Sequence[Any], path: Path, what: str) -> pa.Array:
    """Ids as integers or text; if some are text, all are."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        try:
            return pa.array(values, pa.int64())
        except (OverflowError, pa.ArrowInvalid):
            return pa.array([str(value) for value in values])
    for place, value in enumerate(values):
        if not isinstance(value, (int, str)) or isinstance(value, bool) or value == "":
            got = f"{str(value)[:40]!r} as number {place}" if value not in (None, "") else f"nothing as number {place}"
            raise FileFormatError(
                path=path, reason=f"{what} must be an integer or a text, got {got}", advice="repair it"
            )
    try:
        return pa.array([str(value) for value in values])
    except UnicodeEncodeError:
        raise FileFormatError(path=path, reason=f"{what} must be Unicode text", advice="repair it") from None


def _integers(*columns: pa.Array) -> tuple[pa.Array, ...] | None:
    """Columns of text as integers, if each is written as an integer is printed."""
    try:
        numbers = tuple(column.cast(pa.int64()) for column in columns)
    except pa.ArrowInvalid:
        return None
    same = all(number.cast(pa.string()).equals(column) for number, column in zip(numbers, columns, strict=True))
    return numbers if same else None


def check_known(path: Path, ids: Sequence[Any], ends: tuple[Sequence[Any], Sequence[Any]]) -> None:
    """Raise for edges to nodes that the file does not list."""
    known = set(ids)
    bad = [(number, end) for number, pair in enumerate(zip(*ends, strict=True)) for end in pair if end not in known]
    if bad:
        shown = ", ".join(f"{end!r} of edge {number}" for number, end in bad[:5]) + (", …" if len(bad) > 5 else "")
        reason = f"{len(bad):,} ends of edges are no nodes of it: {shown}"
        raise FileFormatError(path=path, reason=reason, advice="add these nodes or drop these edges")


def check_distinct(path: Path, ids: Sequence[Any]) -> None:
    """Raise if two nodes have the same id."""
    seen: set[Any] = set()
    for place, value in enumerate(ids):
        if value in seen:
            raise FileFormatError(
                path=path, reason=f"two nodes have the id {value!r} (number {place})", advice="rename one"
            )
        seen.add(value)
