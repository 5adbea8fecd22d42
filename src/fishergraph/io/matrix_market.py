"""MatrixMarket: a square matrix of coordinates, whose entry (i, j) is an edge from i to j."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from fishergraph._errors import FileFormatError
from fishergraph.io.archives import FREE_COUNT
from fishergraph.io.graph_columns import GraphFile
from fishergraph.io.text_streams import Cleaned

_FIELDS = ("real", "double", "integer", "pattern")
_SYMMETRIES = ("general", "symmetric")


class _Begun:
    """A stream of which the first bytes were read."""

    def __init__(self, begin: bytes, stream: Any):
        self._begin, self._stream = begin, stream

    def read(self, size: int = -1) -> bytes:
        begin, self._begin = self._begin, b""
        return begin or self._stream.read(size)


def read_matrix_market(stream: Any, path: Path) -> GraphFile:
    """The graph in an open MatrixMarket file; its nodes are 1 … n, as in the file."""
    begin, skip, head, sizes = b"", 0, [], []
    while data := stream.read(1 << 16):
        begin += data
        lines = begin.split(b"\n")[:-1]
        skip = next((k + 1 for k, line in enumerate(lines) if line.strip() and not line.startswith(b"%")), 0)
        if skip or len(begin) > 1 << 24:
            break
    if skip:
        head = lines[0].decode("ascii", "replace").lower().split()
        sizes = lines[skip - 1].split()
    kind, symmetry = _check_head(path, head)
    if len(sizes) != 3 or not all(size.isdigit() and len(size) < 16 for size in sizes):
        raise FileFormatError(
            path=path, line=skip or None, reason="it must say how many rows, columns and entries it has"
        )
    rows, columns, entries = map(int, sizes)
    if rows != columns:
        reason, advice = f"its matrix must be square, got {rows:,} × {columns:,}", "a graph has as many rows as columns"
        raise FileFormatError(path=path, line=skip, reason=reason, advice=advice)
    if rows > max(FREE_COUNT, 8 * entries):
        reason = f"it declares {rows:,} nodes, but has {entries:,} entries"
        raise FileFormatError(path=path, line=skip, reason=reason, advice="repair it")
    names = ["source", "target"] + ["weight"] * (kind != "pattern")
    types: dict[str, Any] = {"source": pa.int64(), "target": pa.int64(), "weight": pa.float64()}
    body = Cleaned(_Begun(begin, stream), skip, blanks=True)
    options = pacsv.ReadOptions(block_size=1 << 24, column_names=names)
    convert = pacsv.ConvertOptions(column_types={name: types[name] for name in names})
    table = (
        pacsv.read_csv(body, options, pacsv.ParseOptions(delimiter=" "), convert) if entries else _empty(names, types)
    )
    return _as_graph(path, table, rows, entries, symmetry == "symmetric")


def _check_head(path: Path, head: list[str]) -> tuple[str, str]:
    """The kind of the entries and the symmetry, from the words of the first line."""
    if len(head) != 5 or head[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
        reason = "its first line must say %%MatrixMarket matrix coordinate"
        raise FileFormatError(path=path, line=1, reason=reason, advice="name a MatrixMarket file of a sparse matrix")
    if head[3] not in _FIELDS or head[4] not in _SYMMETRIES:
        reason = f"it must be one of {', '.join(_FIELDS)} and one of {', '.join(_SYMMETRIES)}, got {head[3]} {head[4]}"
        raise FileFormatError(path=path, line=1, reason=reason[:300], advice="convert it")
    return head[3], head[4]


def _empty(names: list[str], types: dict[str, Any]) -> pa.Table:
    return pa.table({name: pa.array([], types[name]) for name in names})


def _as_graph(path: Path, table: pa.Table, n: int, entries: int, symmetric: bool) -> GraphFile:
    """The graph of the entries, checked."""
    source, target = (np.asarray(table.column(place).combine_chunks()) for place in (0, 1))
    if len(table) != entries or any(column.null_count for column in table.columns):
        reason = f"it must have {entries:,} complete entries, got {len(table):,}"
        raise FileFormatError(path=path, reason=reason, advice="download it again")
    if entries and (min(source.min(), target.min()) < 1 or max(source.max(), target.max()) > n):
        bad = int(np.flatnonzero((source < 1) | (source > n) | (target < 1) | (target > n))[0])
        reason = f"entry {bad + 1:,} must be inside the {n:,} × {n:,} matrix, got ({source[bad]}, {target[bad]})"
        raise FileFormatError(path=path, reason=reason, advice="repair it")
    if symmetric:
        back = table.filter(pa.array(source != target)).rename_columns(["target", "source", *table.column_names[2:]])
        table = pa.concat_tables([table, back.select(table.column_names)])
    nodes = pa.table({"id": np.arange(1, n + 1)})
    return GraphFile(table, nodes, symmetric, ("rows are sources, columns are targets, counted from 1",))
