"""Edge tables and node tables in CSV, TSV (either may be gzipped), Parquet and npz files.

The suffix of a file name tells its format.

- An edge file has columns source and target (or src/dst, from/to, u/v, node1/node2), and optionally weight. CSV and TSV
  files need no header if they have two or three columns and the first line holds only numbers: source, target and
  weight. Names cannot be told from a header, so a file of names needs one.
- A node file has a row per node: an id column and numeric features.
- Ids of text files are integers if each is written as an integer is printed, else text: 007 stays 007. Blanks around an
  id or a name are ignored.
- An npz file holds `edge_index` (2, E) in row numbers, optionally `edge_weight`, and `undirected`, true if every edge
  represents both directions; features as a dense `x` or as the arrays `x_data`, `x_indices`, `x_indptr`, `x_shape` of a
  CSR matrix; optionally `ids` and `names`. Without features, `ids` lists the nodes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import FileFormatError, FishergraphWarning, InputError
from fishergraph._records import check_edge_index, check_endpoints
from fishergraph._warn import warn
from fishergraph.io.arrow import (
    Advance,
    CountedFile,
    check_kept,
    edge_header,
    node_header,
    read_cells,
    read_table,
    write_table,
)
from fishergraph.io.columns import check_column, check_edge_columns, check_ids, distinct_ids, listed, positions, to_ids
from fishergraph.io.files import check_folder, check_suffix, replacing
from fishergraph.io.npz import (
    SUFFIXES,
    Arrays,
    entry,
    has_features,
    loses_digits,
    misfit,
    read_features,
    read_npz,
    within_single,
)

PathLike = str | os.PathLike
# The last three are how pandas writes an index without a name.
ID_COLUMNS = ("id", "node", "node_id", "", "unnamed: 0", "__index_level_0__")
_NUMBERS = ("int", "uint", "half", "float", "double", "bool", "decimal", "null")  # type names of Arrow


# --- edges ----------------------------------------------------------------------------------------------


def read_edges(path: PathLike) -> pa.Table:
    """Read the edge table of a file, for `as_graph`.

    Parameters
    ----------
    path : str or path
        A CSV, TSV, Parquet or npz file. The edges of an npz file with `ids` are read as pairs of these ids.

    Returns
    -------
    pyarrow.Table
        Columns source and target, and weight if the file has one.
    """
    path = Path(path)
    suffix = check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        return _npz_edges(path, read_npz(path))
    return read_table(path, suffix, edge_header, lambda names: [names[k] for k in check_edge_columns(names)[:2]])


def _npz_edges(path: Path, arrays: Arrays) -> pa.Table:
    """The edges as a table of ids, or of row numbers if there are no ids."""
    ends = check_edge_index(entry(path, arrays, "edge_index"), f"edge_index in '{path}'")
    ids = _npz_ids(path, arrays) if "ids" in arrays else None
    n_nodes = (int(ends.max()) + 1 if ends.size else 0) if ids is None else len(ids)
    check_endpoints(ends[0], ends[1], n_nodes)
    source, target = ends if ids is None else (ids.take(pa.array(end.astype(np.int64))) for end in ends)
    columns: dict[str, Any] = {"source": source, "target": target}
    if "edge_weight" in arrays:
        weights = entry(path, arrays, "edge_weight", ends.shape[1:])
        if weights.dtype.kind not in "biuf":
            raise misfit(path, "numbers in 'edge_weight'", str(weights.dtype))
        columns["weight"] = weights.astype(np.float64) if weights.dtype == np.longdouble else weights
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    flag = arrays.get("undirected", np.array(False))
    if flag.shape != () or flag.dtype != bool:
        raise misfit(path, "true or false in 'undirected'", f"{flag.dtype} of shape {flag.shape}")
    if not flag:
        return table
    back = table.filter(pa.array(ends[0] != ends[1]))  # a self-loop has one direction
    back = back.rename_columns(["target", "source", *table.column_names[2:]])
    return pa.concat_tables([table, back.select(table.column_names)])


def _npz_ids(path: Path, arrays: Arrays) -> pa.Array:
    ids = arrays["ids"]
    if ids.ndim != 1:
        raise misfit(path, "one id per node in 'ids'", f"shape {ids.shape}")
    return check_ids(ids, f"ids in '{path}'")


# --- nodes ----------------------------------------------------------------------------------------------


def read_nodes(
    path: PathLike, id_column: str | None = None, *, drop: Iterable[str] = (), only: Iterable[str] | None = None
) -> tuple[np.ndarray, np.ndarray | sp.csr_array, list[str]]:
    """Read ids and features from a node file.

    Parameters
    ----------
    path : str or path
        A CSV, TSV, Parquet or npz file.
    id_column : str, default=None
        The column of the ids. By default the first of id, node and node_id (in any case), else the index that pandas
        wrote, else the row numbers.
    drop : iterable of str, default=()
        Columns that are neither ids nor features.
    only : iterable of str, default=None
        The features to read. By default all other columns.

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
    suffix = check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        return _npz_nodes(path, read_npz(path))
    drop = list(drop)
    table = read_table(path, suffix, node_header, lambda names: split_columns(path, names, id_column, drop)[0])
    keys, names = split_columns(path, table.column_names, id_column, drop)
    ids = to_ids(distinct_ids(table.column(keys[0]), f"column {keys[0]!r}")) if keys else np.arange(len(table))
    if only is not None:
        wanted = set(only)
        names = [name for name in names if name in wanted]
    first = table.column(names[0]) if names and not keys else None
    if first is not None and str(first.type).startswith(("int", "uint")) and 1 < len(first) == len(first.unique()):
        text = (
            f"'{path}' has no column id, node or node_id: its rows are the nodes 0, 1, …, and {names[0]!r}, which "
            f"holds distinct integers, is a feature. If it holds the ids, pass id_column={names[0]!r} (--id-column)."
        )
        warn(FishergraphWarning(text, kind=f"ids of {path}"))
    return ids, _features(path, table.select(names), named=bool(keys)), names


def split_columns(
    path: PathLike, columns: list[str], id_column: str | None, drop: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The column of the ids, in a list that is empty if there is none, and those of the features."""
    check_columns_exist(path, columns, [*drop, *([] if id_column is None else [id_column])])
    folded = {name.strip().lower(): name for name in reversed(columns) if name not in drop}
    candidates = [folded[name] for name in ID_COLUMNS if name in folded]
    keys = candidates[:1] if id_column is None else [id_column]
    pandas_index = [name for name in columns if name.startswith("__index_level_")]
    aside = {*drop, *pandas_index, *keys}
    return keys, [name for name in columns if name not in aside]


def check_numbers(path: PathLike, schema: pa.Schema, *, named: bool) -> None:
    """Raise unless all columns hold numbers; `named` says whether another column is known to hold the ids."""
    words = [field.name for field in schema if not str(field.type).startswith(_NUMBERS)]
    if words:
        columns = listed(words)
        advice = "" if named else "name the column of the ids by id_column (--id-column on the command line), "
        raise FileFormatError(
            path=path,
            reason=f"features must be numbers, but the columns {columns} hold other values",
            advice=f"{advice}leave labels out with drop=[{columns}] (--drop on the command line) and encode the rest",
        )


def _npz_nodes(path: Path, arrays: Arrays) -> tuple[np.ndarray, np.ndarray | sp.csr_array, list[str]]:
    """The ids, the features and their names in an npz file."""
    ids = _npz_ids(path, arrays) if "ids" in arrays else None
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
            raise FileFormatError(path=path, reason=reason, advice="name one of these")


def _features(path: Path, table: pa.Table, *, named: bool) -> np.ndarray:
    """The columns of a table as (n, d) float32, or float64 if that would lose digits."""
    check_numbers(path, table.schema, named=named)
    wide = any(loses_digits(np.asarray(column.cast(pa.float64(), safe=False))) for column in table.columns)
    X = np.empty((len(table), table.num_columns), dtype=np.float64 if wide else np.float32)
    for j, name in enumerate(table.column_names):
        what = f"feature {name!r} of '{path}'"
        column = check_column(table.column(j), what).cast(pa.float64(), safe=False)
        X[:, j] = within_single(np.asarray(column), what)
    check_finite_rows(X, f"the features of '{path}'")
    return X


def read_columns(path: PathLike, names: Sequence[str]) -> list[list[Any]]:
    """Read columns of a node file, or arrays of an npz file.

    Parameters
    ----------
    path : str or path
        A CSV, TSV, Parquet or npz file.
    names : sequence of str
        The columns.

    Returns
    -------
    list of lists
        The values of each column, None for a missing one. Text files give integers if all cells of a column are, each
        written as it is printed, else text; cells that are empty, or say NA or the like without quotes, are missing.
    """
    path = Path(path)
    suffix = check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        arrays = read_npz(path)
        for name in names:
            array = entry(path, arrays, name)
            if array.ndim == 0 or array.dtype.kind not in "biufU":
                got = f"{array.dtype} of shape {array.shape}"
                raise misfit(path, f"a number or a text per row in {name!r}", got)
        return [arrays[name].tolist() for name in names]

    def wanted(columns: list[str]) -> list[str]:
        check_columns_exist(path, columns, names)
        return list(dict.fromkeys(names))

    if suffix == ".parquet":  # which has nulls, so NA is an ordinary word
        table = read_table(path, suffix, node_header, wanted)
        columns = [table.column(name).to_pylist() for name in names]
        return [[None if value == "" else value for value in column] for column in columns]
    cells = read_cells(path, suffix, node_header, wanted)
    for name, (_, marks) in cells.items():
        if marks:
            text = (
                f"column {name!r} of '{path}' says {' and '.join(map(repr, marks))} in some rows, which count as "
                "missing. If it is a value, put it in quotes or use another word."
            )
            warn(FishergraphWarning(text, kind=f"marks in {name} of {path}"))
    return [[None if value == "" else value for value in cells[name][0]] for name in names]


# --- writing --------------------------------------------------------------------------------------------


def check_writable(path: PathLike) -> Path:
    """The path, if an embedding can be written there; call it before the work is done."""
    check_suffix(Path(path), SUFFIXES)
    check_folder(Path(path))
    return Path(path)


def write_embedding(
    path: PathLike, ids: Any, Z: np.ndarray, names: Sequence[str] | None = None, *, advance: Advance | None = None
) -> None:
    """Write an embedding and its node ids; the file appears complete or not at all.

    Tables have a column `id` and one per dimension; an npz file has `ids`, `x` and `names`. `read_nodes` reads them
    back.

    Parameters
    ----------
    path : str or path
        A CSV, TSV, Parquet or npz file.
    ids : sequence or None
        Node ids; None: 0 … n - 1. Ids that are neither integers nor strings are written as their text.
    Z : array of shape (n_nodes, dim)
        The embedding.
    names : sequence of str, default=None
        Names of the dimensions; by default z0, z1, ….
    advance : callable, default=None
        `advance(n)` is called as bytes of Z are written; all n together are about `Z.nbytes`.
    """
    path = check_writable(path)
    suffix = check_suffix(path, SUFFIXES)
    names = [f"z{j}" for j in range(Z.shape[1])] if names is None else [str(name) for name in names]
    keys = check_written_ids(path, np.arange(len(Z)) if ids is None else ids)
    if (len(keys), len(names)) != Z.shape or "id" in names or Z.dtype.kind not in "biuf" or Z.dtype.itemsize > 8:
        raise InputError(
            parameter=f"an embedding, {Z.dtype} of shape {Z.shape},",
            expected="have numbers, an id per row and a name other than 'id' per column",
            got=f"{len(keys)} ids and {len(names)} names",
        )
    positions([name.strip() for name in names], "the names of the columns")
    check_finite_rows(Z, "the embedding")
    plain = to_ids(keys)
    plain = plain.astype(np.str_) if suffix == ".npz" and plain.dtype == object else plain
    with replacing(path) as part, part.open("wb") as opened:
        file: Any = opened if advance is None else CountedFile(opened, suffix, advance)
        if suffix == ".npz":
            np.savez(file, ids=plain, x=Z, names=np.array(names, dtype=np.str_))
        else:
            write_table(file, suffix, {"id": plain.__getitem__}, len(Z), Z, names)


def check_written_ids(path: PathLike, ids: Iterable) -> pa.Array:
    """Ids as int64 or text; raises if `read_nodes` could not read them back from a file of this name."""
    values = ids if isinstance(ids, np.ndarray) else list(ids)
    if not isinstance(values, np.ndarray) or values.dtype == object:
        integers = [isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values]
        plain = all(integers) and all(-(2**63) <= value < 2**63 for value in values)
        values = [int(value) if plain else str(value) for value in values]
    keys = distinct_ids(values, "ids")
    check_kept(check_suffix(Path(path), SUFFIXES), pa.table({"id": keys}))
    return keys
