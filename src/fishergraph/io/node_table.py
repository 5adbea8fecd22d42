"""Node files whose columns are of any type: words, dates, lists and numbers with gaps."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow.compute import SetLookupOptions, call_function

from fishergraph._errors import FishergraphWarning, MissingValueError
from fishergraph._warn import warn
from fishergraph.io.arrow import explained
from fishergraph.io.cells import MISSING
from fishergraph.io.columns import listed
from fishergraph.io.files import Advance, check_suffix, count_nothing
from fishergraph.io.graph_files import GRAPH_SUFFIXES
from fishergraph.io.memory import check_parquet_fits
from fishergraph.io.npz import ARRAYS
from fishergraph.io.spreads import MOST_NAMED, needs_scale
from fishergraph.io.tables import NODE_SUFFIXES, TABLES, TEXTS, OpenNodes, node_matrix, open_nodes, read_nodes
from fishergraph.io.text_options import ANY_TEXT, TextOptions
from fishergraph.io.vectors import is_number, is_vector

_MARKS = pa.array(sorted(MISSING), pa.string())


def read_node_table(
    path: str | os.PathLike,
    id_column: str | None = None,
    *,
    drop: Iterable[str] = (),
    named: pa.Array | None = None,
    text: TextOptions = ANY_TEXT,
    advance: Advance = count_nothing,
) -> tuple[np.ndarray, pa.Table]:
    """Read ids and columns of any type from a node file.

    Parameters
    ----------
    path : str or path
        A text or Parquet file, a Lance folder, or a file of a graph.
    id_column, drop : str and iterable of str
        As in `read_nodes`.
    named : pyarrow.Array, optional
        The nodes of the graph, which tell the column of the ids if its name does not.
    text : TextOptions, optional
        As in `read_nodes`.
    advance : callable, optional
        `advance(n)` is called as bytes of the file are read.

    Returns
    -------
    ids : array of shape (n_nodes,)
        Integers or text.
    table : pyarrow.Table
        The other columns.
    """
    path = Path(path)
    suffix = check_suffix(path, TABLES)
    nodes = open_nodes(path, suffix, id_column, list(drop), advance, named, text)
    return nodes.ids, nodes.table.columns(nodes.features)


class NodeFeatures(NamedTuple):
    """What a node file holds.

    ids : integers or text.
    X : the features, an array, a CSR array or a table of columns of any type.
    names : the names of the columns.
    key : the column of the ids; None if they are row numbers or arrays.
    notes : what was found in a text file, in words.
    """

    ids: np.ndarray
    X: Any
    names: list[str]
    key: str | None = None
    notes: tuple[str, ...] = ()


def read_node_features(
    path: str | os.PathLike,
    id_column: str | None = None,
    *,
    drop: Iterable[str] = (),
    only: Iterable[str] | None = None,
    typed: bool = False,
    named: pa.Array | None = None,
    text: TextOptions = ANY_TEXT,
    advance: Advance = count_nothing,
) -> NodeFeatures:
    """Read ids and features from a node file: a matrix of complete numbers of one scale, or any table.

    Parameters
    ----------
    path : str or path
        A file that `read_nodes` reads.
    id_column, drop, only : str, iterable of str, iterable of str
        As in `read_nodes`. Names in `only` that a table does not have are left out.
    typed : bool, default=False
        Return a table even if its columns are complete numbers.
    named : pyarrow.Array, optional
        The nodes of the graph, which tell the column of the ids if its name does not.
    text : TextOptions, optional
        As in `read_nodes`.
    advance : callable, optional
        `advance(n)` is called as bytes of the file are read.

    Returns
    -------
    NodeFeatures
        Ids and features. In a table of a text file, empty cells and words such as NA are null.
    """
    path = Path(path)
    suffix = check_suffix(path, NODE_SUFFIXES)
    if suffix in ARRAYS:
        return NodeFeatures(*read_nodes(path, id_column, only=None if typed else only, advance=advance))
    nodes = open_nodes(path, suffix, id_column, list(drop), advance, named, text)
    wanted = set(nodes.features if only is None else only)
    if not typed and _is_matrix(path, nodes, wanted if only is not None else None):
        try:
            return NodeFeatures(nodes.ids, *node_matrix(nodes, only, advance), nodes.key, nodes.notes)
        except MissingValueError:
            if only is not None:
                raise
    names = [name for name in nodes.features if name in wanted]
    if suffix == ".parquet":
        check_parquet_fits(path, names)
    with explained(path):
        table = nodes.table.columns(names)
    if suffix in TEXTS:
        table = _without_marks(path, table)
    elif suffix not in GRAPH_SUFFIXES:  # whose bytes were counted as they were read
        advance(path.stat().st_size if path.is_file() else 0)
    return NodeFeatures(nodes.ids, table, names, nodes.key, nodes.notes)


def _is_matrix(path: Path, nodes: OpenNodes, only: set[str] | None) -> bool:
    """Whether all columns are numbers of one scale, or vectors; a model of numbers asks for some names alone."""
    if only is not None:
        return True
    kinds = {field.name: field.type for field in nodes.table.schema}
    used = [kinds[name] for name in nodes.features]
    if not all((is_number(kind) and str(kind) != "null") or is_vector(kind) for kind in used):
        return False
    if len(used) > MOST_NAMED or any(map(is_vector, used)):
        return True
    with explained(path):
        return not needs_scale(nodes.table.columns(nodes.features))


def _without_marks(path: Path, table: pa.Table) -> pa.Table:
    """The table with null in the place of text that is empty or marks a missing value, such as NA."""
    marked: dict[str, list[str]] = {}
    for k, name in enumerate(table.column_names):
        column = table.column(k)
        if str(column.type) not in ("string", "large_string"):
            continue
        bare = call_function("utf8_trim_whitespace", [column])
        marks = call_function("is_in", [bare], SetLookupOptions(value_set=_MARKS.cast(column.type)))
        words = set(bare.filter(marks).unique().to_pylist()) - {"", None}
        if words:
            marked[name] = sorted(words)
        kept = call_function("if_else", [marks, pa.scalar(None, column.type), bare])
        table = table.set_column(k, table.schema.field(k), kept)
    if marked:
        said = sorted({word for words in marked.values() for word in words})
        text = (
            f"the columns {listed(list(marked), 5)} of '{path}' say {listed(said, 5)} in some rows, which count as "
            "missing. If it is a value, use another word."
        )
        warn(FishergraphWarning(text, kind=f"marks in {path}"))
    return table
