"""Node tables in files: their ids and their columns, as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fishergraph._errors import InputError
from fishergraph.explore.columns import read_cells
from fishergraph.io.arrow import column_names, explained, node_header, open_table
from fishergraph.io.columns import check_ids
from fishergraph.io.files import check_suffix
from fishergraph.io.npz import ARRAYS, MATRIX_SUFFIXES, npz_keys
from fishergraph.io.parquet import BlockTable
from fishergraph.io.tables import TEXTS, open_nodes, read_columns, split_columns
from fishergraph.io.text_options import ANY_TEXT, TextOptions

MOST_FIELDS = 40  # columns of a node table that are shown if nobody names them


def read_field_table(
    path: Path,
    id_column: str | None = None,
    only: Sequence[str] | None = None,
    named: Any = None,
    text: TextOptions = ANY_TEXT,
) -> tuple[list[Any] | None, dict[str, Any], int]:
    """The ids of a node file, or None, its columns by name, and how many columns were left out.

    Of very many columns the first are read, or those in `only`. The ids in `named` tell the column of the ids if its
    name does not.
    """
    suffix = check_suffix(path, MATRIX_SUFFIXES)
    if suffix in ARRAYS:
        return _array_columns(path, suffix, only)
    table: BlockTable | None = None
    if suffix == ".lance":
        from fishergraph.io.folders import LanceBlocks

        table = LanceBlocks(path)
        names = table.schema.names
    else:
        names = column_names(path, suffix, node_header, text)
    keys, columns = split_columns(path, names, id_column, [])
    if not keys and named is not None:
        id_column = open_nodes(path, suffix, None, [], named=check_ids(named, "ids"), text=text).key
        keys, columns = split_columns(path, names, id_column, [])
    wanted = _chosen(columns, only)
    left = len(columns) - len(wanted) if only is None else 0
    read = [*keys, *wanted]
    if suffix in TEXTS:
        cells = dict(zip(read, read_columns(path, read, text), strict=True))
        fields: dict[str, Any] = {name: read_cells(name, cells[name]) for name in wanted}
        return (cells[keys[0]] if keys else None), fields, left
    with explained(path) if suffix == ".parquet" else nullcontext():
        table = open_table(path, suffix, node_header, lambda _: read) if table is None else table
        found = table.columns(read)
    ids = found.column(keys[0]).to_pylist() if keys else None
    return ids, {name: found.column(name) for name in wanted}, left


def _chosen(columns: Sequence[str], only: Sequence[str] | None) -> list[str]:
    """The columns to read: those that are named, else the first."""
    if only is None:
        return list(columns[:MOST_FIELDS])
    unknown = [name for name in only if name not in columns]
    if unknown:
        listed = ", ".join(map(repr, columns[:10])) + (", …" if len(columns) > 10 else "")
        expected = "name columns of the node table"
        raise InputError(parameter="fields", value=unknown[0], expected=expected, advice=f"it has {listed or 'none'}")
    return list(only)


def _array_columns(path: Path, suffix: str, only: Sequence[str] | None) -> tuple[list[Any] | None, dict[str, Any], int]:
    """The arrays of an npz file with one value per node."""
    if suffix != ".npz":
        return None, {}, 0
    names = npz_keys(path) - {"x", "ids", "names", "edge_index", "edge_weight", "undirected"}
    names = sorted(name for name in names if not name.startswith("x_"))
    fields = {}
    for name in _chosen(names, only):
        try:
            fields[name] = read_columns(path, [name])[0]
        except ValueError:  # an array of another kind
            if only is not None:
                raise
    lengths = [len(values) for values in fields.values()]
    usual = max(set(lengths), key=lengths.count) if lengths else 0
    plain = [name for name, values in fields.items() if len(values) == usual and not isinstance(values[0], list)]
    ids = read_columns(path, ["ids"])[0] if "ids" in npz_keys(path) else None
    return ids, {name: fields[name] for name in plain}, 0
