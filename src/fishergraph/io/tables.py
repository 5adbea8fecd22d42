"""Node tables and embeddings in text, Parquet and npz files; edges are in `edge_files`.

The suffix of a file name tells its format.

- A text file is .csv, .tsv or .txt, or one of these with .gz or .zst, with names above its columns. Its separator,
  comments and encoding are found in the first lines, as those of edges.
- A node file has a row per node: an id column and numeric features, or columns of vectors; or it is a file of a graph
  with attributes of nodes, such as GraphML.
- An embedding is a node file too. It may also be a .npy file, or a Lance or Zarr folder (`embedding_file`).
- Ids of text files are integers if each is written as an integer is printed, else text: 007 stays 007. Blanks around an
  id or a name are ignored.
- An npz file holds `edge_index` (2, E) in row numbers, optionally `edge_weight`, and `undirected`, true if every edge
  represents both directions; features as a dense `x` or as the arrays `x_data`, `x_indices`, `x_indptr`, `x_shape` of a
  CSR matrix; optionally `ids` and `names`. Without features, `ids` lists the nodes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import FileFormatError, FishergraphWarning, shown
from fishergraph._validation import nearest
from fishergraph._warn import warn
from fishergraph.io.arrow import Opened, explained, node_header, open_rows, open_table, read_cells
from fishergraph.io.columns import distinct_ids, ids_with_gaps, missing_value, positions, repeated_id, to_ids
from fishergraph.io.edge_files import npz_ids
from fishergraph.io.edge_files import read_edges as read_edges
from fishergraph.io.embedding_file import ids_path
from fishergraph.io.faults import SHOWN, TableFault, raise_faults
from fishergraph.io.features import FeatureReader, are_names, warn_of_unread_ids
from fishergraph.io.files import Advance, check_suffix, count_nothing
from fishergraph.io.folders import LanceBlocks, folder_bytes, read_zarr
from fishergraph.io.graph_files import GRAPH_SUFFIXES
from fishergraph.io.id_column import IN_FILES, are_rows, id_column_of, usual_id_column
from fishergraph.io.npz import (
    ARRAYS,
    MATRIX_SUFFIXES,
    Arrays,
    entry,
    has_features,
    misfit,
    read_features,
    read_npy,
    read_npz,
)
from fishergraph.io.parquet import BlockTable, described
from fishergraph.io.text_options import ANY_TEXT, TextOptions
from fishergraph.io.text_table import TEXT_SUFFIXES

PathLike = str | os.PathLike
TEXTS = tuple(suffix for suffix, text in TEXT_SUFFIXES.items() if text in (".csv", ".tsv", ".txt"))
TABLES = (*TEXTS, ".parquet", ".lance", *GRAPH_SUFFIXES)  # of columns
NODE_SUFFIXES = (*TABLES, *ARRAYS)


# --- nodes ----------------------------------------------------------------------------------------------


def read_nodes(
    path: PathLike,
    id_column: str | None = None,
    *,
    drop: Iterable[str] = (),
    only: Iterable[str] | None = None,
    text: TextOptions = ANY_TEXT,
    advance: Advance = count_nothing,
) -> tuple[np.ndarray, np.ndarray | sp.csr_array, list[str]]:
    """Read ids and features from a node file.

    A column of vectors, lists of numbers of one length, stands for the columns NAME_0, NAME_1, …; in a file that
    `embed` wrote it stands for the columns of the embedding.

    Parameters
    ----------
    path : str or path
        A text, Parquet, npz or npy file, or a Lance or Zarr folder.
    id_column : str, default=None
        The column of the ids. By default the first of id, node and node_id (in any case), else the index that pandas
        wrote, else the row numbers. The ids of NAME.npy are in NAME.ids.npy, if there is one.
    drop : iterable of str, default=()
        Columns that are neither ids nor features.
    only : iterable of str, default=None
        The features to read. By default all other columns.
    text : TextOptions, optional
        The separator and the encoding of a text file, if they are not to be found out.
    advance : callable, optional
        `advance(n)` is called as bytes of the file are read.

    Returns
    -------
    ids : array of shape (n_nodes,)
        Integers or text.
    X : array or CSR array of shape (n_nodes, n_features)
        CSR if the file holds CSR; float32, or float64 if float32 would change numbers beyond 2²⁴, such as times in
        seconds. A file of ids has no features.
    names : list of str
        The names of the features.
    """
    path = Path(path)
    suffix = check_suffix(path, NODE_SUFFIXES)
    if suffix in ARRAYS:
        return _npz_nodes(path, _read_arrays(path, suffix, advance)[0])
    nodes = open_nodes(path, suffix, id_column, list(drop), advance, text=text)
    return nodes.ids, *node_matrix(nodes, only, advance)


class OpenNodes(NamedTuple):
    """A table of nodes whose ids were read."""

    path: Path
    suffix: str
    table: BlockTable
    ids: np.ndarray
    key: str | None  # the column of the ids; None for row numbers
    features: list[str]
    notes: tuple[str, ...] = ()  # what was found in a text file, in words


def open_nodes(
    path: Path,
    suffix: str,
    id_column: str | None,
    drop: list[str],
    advance: Advance = count_nothing,
    named: Any = None,
    text: TextOptions = ANY_TEXT,
) -> OpenNodes:
    """A table of nodes in a file, with its ids, or the row numbers; all that is wrong with them is one error.

    `named` are the nodes of the graph, if they are known: they tell which column holds the ids.
    """

    def key(names: list[str]) -> list[str]:
        return split_columns(path, names, id_column, drop)[0]

    lance = suffix == ".lance"
    opened = Opened(LanceBlocks(path)) if lance else open_rows(path, suffix, node_header, key, advance, text)
    table = opened.blocks
    keys, features = split_columns(path, table.schema.names, id_column, drop)
    ids, faults = np.arange(len(table)), list(opened.faults)
    with explained(path) if suffix == ".parquet" else nullcontext():
        if id_column is None and named is not None and (keys or not are_rows(named, len(table))):
            found = id_column_of([*keys, *features], lambda name: table.columns([name]).column(0), named, IN_FILES)
            if found is not None and [found] != keys:
                return open_nodes(path, suffix, found, drop, text=text)
        if keys:
            column = table.columns(keys).column(0)
            column, more = _ids_and_faults(column, f"column {keys[0]!r} of '{path}'", keys[0])
            ids, faults = to_ids(column), [*faults, *more]
    raise_faults(faults, str(path), opened.locate, "nodes")
    return OpenNodes(path, suffix, table, ids, keys[0] if keys else None, features, opened.notes)


def _ids_and_faults(values: Any, what: str, name: str) -> tuple[Any, list[TableFault]]:
    """A column of ids, and the faults of missing and repeated ones."""
    ids, missing = ids_with_gaps(values, what)
    faults = []
    if len(missing):
        error = missing_value(what, int(missing[0]))
        faults.append(TableFault(error, f"missing value{{s}} in column {name!r}", missing))
    codes = ids.dictionary_encode().indices.to_numpy()
    repeated = np.ones(len(codes), dtype=bool)
    repeated[np.unique(codes, return_index=True)[1]] = False
    repeated[missing] = False
    rows = np.flatnonzero(repeated)
    if len(rows):
        first = [shown(ids[row].as_py()) for row in rows[:SHOWN].tolist()]
        faults.append(TableFault(repeated_id(ids, int(rows[0]), what), "repeated id{s}", rows, first))
    return ids, faults


def node_matrix(nodes: OpenNodes, only: Iterable[str] | None, advance: Advance) -> tuple[np.ndarray, list[str]]:
    """The features of a table of nodes, which must be complete numbers, and their names."""
    path, suffix, table = nodes.path, nodes.suffix, nodes.table
    with explained(path) if suffix == ".parquet" else nullcontext():
        aside = set(table.schema.names).difference(nodes.features)
        reader = FeatureReader(path, table, aside, only, named=nodes.key is not None)
        if reader.features and nodes.key is None:
            warn_of_unread_ids(path, table, reader.features[0].name)
        share = 0 if suffix in TEXTS else folder_bytes(path) / max(len(table), 1)
        X = reader.matrix(lambda n_rows: advance(int(n_rows * share)))
    return X, reader.names


def _read_arrays(path: Path, suffix: str, advance: Advance = count_nothing) -> tuple[Arrays, dict[str, Any]]:
    """The arrays x, ids and names of a file or folder of arrays, and what it says of them."""
    if suffix == ".npz":
        return read_npz(path, advance=advance), {}
    if suffix == ".npy":
        arrays = {"x": read_npy(path, advance)}
        beside = ids_path(path)
        return arrays | ({"ids": read_npy(beside)} if beside.is_file() else {}), {}
    arrays, about = read_zarr(path)
    advance(folder_bytes(path))
    names = about.get("names")
    if are_names(names) and arrays["x"].shape[1:] == (len(names),):
        arrays["names"] = np.array(names, dtype=np.str_)
    return arrays, about


def split_columns(
    path: PathLike, columns: list[str], id_column: str | None, drop: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The column of the ids, in a list that is empty if there is none, and those of the features."""
    check_columns_exist(path, columns, [*drop, *([] if id_column is None else [id_column])])
    key = id_column or usual_id_column([name for name in columns if name not in drop], IN_FILES)
    keys = [] if key is None else [key]
    pandas_index = [name for name in columns if name.startswith("__index_level_")]
    aside = {*drop, *pandas_index, *keys}
    return keys, [name for name in columns if name not in aside]


def _npz_nodes(path: Path, arrays: Arrays) -> tuple[np.ndarray, np.ndarray | sp.csr_array, list[str]]:
    """The ids, the features and their names in an npz file."""
    ids = npz_ids(path, arrays) if "ids" in arrays else None
    if ids is not None and not has_features(arrays):  # only ids, as in a table of ids
        X: Any = np.empty((len(ids), 0), dtype=np.float32)
    else:
        X = read_features(path, arrays)
    n, d = X.shape
    names = [f"x{j}" for j in range(d)]
    if "names" in arrays:
        names = [str(name) for name in entry(path, arrays, "names", (d,))]
        positions(names, f"names in '{path}'")
    if ids is None:
        return np.arange(n), X, names
    entry(path, arrays, "ids", (n,))
    return to_ids(distinct_ids(ids, f"ids in '{path}'")), X, names


def check_columns_exist(path: PathLike, columns: list[str], wanted: Sequence[str]) -> None:
    """Raise if a table does not have a column."""
    for name in wanted:
        if name not in columns:
            shown = ", ".join(name[:60] for name in columns[:10])
            more = f", … ({len(columns)} columns)" if len(columns) > 10 else ""
            reason = f"it has no column {name!r}, but {shown}{more}"
            alike = " or ".join(map(repr, nearest(name, columns)))
            raise FileFormatError(path=path, reason=reason, advice=f"name {alike or 'one of these'}")


def read_columns(path: PathLike, names: Sequence[str], text: TextOptions = ANY_TEXT) -> list[list[Any]]:
    """Read columns of a node file, or arrays of an npz file.

    Parameters
    ----------
    path : str or path
        A text, Parquet or npz file, or a Lance folder.
    names : sequence of str
        The columns.
    text : TextOptions, optional
        As in `read_nodes`.

    Returns
    -------
    list of lists
        The values of each column, None for a missing one. Text files give integers if all cells of a column are, each
        written as it is printed, else text; cells that are empty, or say NA or the like without quotes, are missing.
    """
    path = Path(path)
    suffix = check_suffix(path, NODE_SUFFIXES)
    if suffix in ARRAYS:
        arrays, _ = _read_arrays(path, suffix)
        for name in names:
            array = entry(path, arrays, name)
            if array.ndim == 0 or array.dtype.kind not in "biufU":
                got = f"{array.dtype} of shape {array.shape}"
                raise misfit(path, f"a number or a text per row in {name!r}", got)
        return [arrays[name].tolist() for name in names]

    def wanted(columns: list[str]) -> list[str]:
        check_columns_exist(path, columns, names)
        return list(dict.fromkeys(names))

    if suffix not in TEXTS:  # Parquet and Lance have nulls, so NA is an ordinary word
        blocks = LanceBlocks(path) if suffix == ".lance" else open_table(path, suffix, node_header, wanted)
        with explained(path) if suffix == ".parquet" else nullcontext():
            table = blocks.columns(wanted(blocks.schema.names))
        columns = [table.column(name).to_pylist() for name in names]
        return [[None if value == "" else value for value in column] for column in columns]
    cells = read_cells(path, suffix, node_header, wanted, text)
    for name, (_, marks) in cells.items():
        if marks:
            message = (
                f"column {name!r} of '{path}' says {' and '.join(map(repr, marks))} in some rows, which count as "
                "missing. If it is a value, put it in quotes or use another word."
            )
            warn(FishergraphWarning(message, kind=f"marks in {name} of {path}"))
    return [[None if value == "" else value for value in cells[name][0]] for name in names]


# --- embeddings -----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class EmbeddingData:
    """An embedding that was read from a file.

    Attributes
    ----------
    ids : array of shape (n_nodes,)
        The node ids, integers or text.
    Z : array of shape (n_nodes, dim)
        The embedding.
    names : list of str
        The names of its columns.
    blocks : list of tuple
        (name, width) of the blocks of columns; empty if the file does not say.
    parameters : dict
        What the file says of the model.
    """

    ids: np.ndarray
    Z: np.ndarray
    names: list[str]
    blocks: list[tuple[str, int]]
    parameters: dict[str, Any]

    def __repr__(self) -> str:
        rows, columns = self.Z.shape
        blocks = f" in {len(self.blocks)} blocks" if len(self.blocks) > 1 else ""
        return f"EmbeddingData({rows:,} nodes, {columns:,} columns{blocks})"


def read_embedding(path: PathLike, *, advance: Advance = count_nothing) -> EmbeddingData:
    """Read an embedding from a file in any format that `write_embedding` writes, in either layout.

    Parameters
    ----------
    path : str or path
        A Parquet, CSV, TSV, npz or npy file, or a Lance or Zarr folder.
    advance : callable, optional
        `advance(n)` is called as bytes of the file are read.

    Returns
    -------
    EmbeddingData
        The ids, the matrix, the names of its columns, and what the file says of blocks and parameters.

    See Also
    --------
    fishergraph.datasets.read_tables : Read the tables of a graph.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fishergraph.io.embedding_file import write_embedding
    >>> from fishergraph.io.tables import read_embedding
    >>> path = tempfile.mkdtemp() + "/z.parquet"
    >>> write_embedding(path, ["a", "b"], np.eye(2), blocks=[("psi0", 1), ("walk", 1)])
    >>> read_embedding(path).blocks
    [('psi0', 1), ('walk', 1)]
    """
    path = Path(path)
    suffix = check_suffix(path, MATRIX_SUFFIXES)
    if suffix in ARRAYS:
        arrays, about = _read_arrays(path, suffix, advance)
        ids, Z, names = _npz_nodes(path, arrays)
    else:
        nodes = open_nodes(path, suffix, None, [], advance)
        ids, about = nodes.ids, described(nodes.table.schema)
        Z, names = node_matrix(nodes, None, advance)
    if not isinstance(Z, np.ndarray):
        raise misfit(path, "an embedding", "a sparse matrix")
    parameters = about.get("parameters")
    return EmbeddingData(ids, Z, names, _blocks(about, len(names)), parameters if isinstance(parameters, dict) else {})


def _blocks(about: dict[str, Any], n_columns: int) -> list[tuple[str, int]]:
    """The blocks that a file names, if they cover its columns."""
    try:
        blocks = [(str(entry["name"]), int(entry["width"])) for entry in about.get("blocks", [])]
    except (KeyError, TypeError, ValueError):
        return []
    return blocks if sum(width for _, width in blocks) == n_columns else []
