"""Edge tables and node tables, in memory and in files.

Files are CSV, TSV (either may be gzipped), Parquet or npz, told apart by the end of their names.

- An edge file has columns source and target (or src/dst, from/to, u/v, node1/node2), optionally weight. CSV
  and TSV may come without a header if they have two or three columns and the first line holds only numbers:
  source, target and weight. Names cannot be told from a header, so a file of names needs one.
- A node file has a row per node: an id column and numeric features.
- Ids of text files are numbers where every one is written as a number is printed, else text: 007 stays 007. Blanks
  around an id or a name do not count.
- An npz file holds `edge_index` (2, E) in row numbers, optionally `edge_weight` and `undirected`, true where every
  edge stands for both directions; features as a dense `x` or as the pieces `x_data`, `x_indices`, `x_indptr`,
  `x_shape` of a CSR matrix; optionally `ids` and `names`. Without features, `ids` alone lists the nodes.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow.compute import SetLookupOptions, call_function

from fishergraph import _checks, _file_checks, _graph_checks, _table_checks
from fishergraph._npz_files import (
    SUFFIXES,
    loses_digits,
    read_npz,
    within_single,
)
from fishergraph._npz_tables import npz_cells, npz_edges, npz_nodes
from fishergraph._table_files import (
    Advance,
    check_kept,
    counted,
    edge_header,
    node_header,
    read_cells,
    read_table,
    write_blocks,
)

PathLike = str | os.PathLike
# The last three are how pandas writes an index without a name.
ID_COLUMNS = ("id", "node", "node_id", "", "unnamed: 0", "__index_level_0__")
_WIDEST = 1 << 30  # bytes of an array of strings, all of them as wide as the longest
_NUMBERS = ("int", "uint", "half", "float", "double", "bool", "decimal", "null")  # as Arrow names its types


def factorise(
    source: pa.Array, target: pa.Array, *, node_ids: Any = None, n_nodes: int | None = None
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray | None]:
    """The rows of both endpoints, the number of nodes, and the ids (None where they are 0 … n - 1)."""
    known = None if node_ids is None else _table_checks.check_ids(node_ids, "node_ids")
    columns = [column for column in (source, target, known) if column is not None]
    if len({str(column.type) for column in columns}) > 1:
        columns = [column.cast(pa.large_string()) for column in columns]
    ends = pa.concat_arrays(columns[:2])
    if known is not None:
        codes, n, ids = _match(ends, columns[2], known)
    elif ends.type == pa.int64():
        codes, n, ids = _number_ids(ends.to_numpy(), n_nodes)
    else:
        coded = ends.dictionary_encode()
        ids, rank = np.unique(_text_array(coded.dictionary.to_pylist()), return_inverse=True)
        codes, n = rank[coded.indices.to_numpy()], len(ids)
    return codes[: len(source)], codes[len(source) :], n, ids


def _number_ids(values: np.ndarray, n_nodes: int | None) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Codes of integer ids, in sorted order, by counting where the ids are dense enough for it."""
    if n_nodes is not None:
        half = len(values) // 2
        _graph_checks.check_endpoints(values[:half], values[half:], n_nodes)
        return values, n_nodes, None
    if len(values) and (values.min() < 0 or values.max() > 4 * len(values) + 1024):
        ids, codes = np.unique(values, return_inverse=True)
        return codes, len(ids), ids
    present = np.zeros(int(values.max(initial=-1)) + 1, dtype=bool)
    present[values] = True
    if present.all():
        return values, len(present), None
    return (np.cumsum(present) - 1)[values], int(present.sum()), np.flatnonzero(present)


def _match(ends: pa.Array, keys: pa.Array, known: pa.Array) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Codes of the endpoints in a given list of ids."""
    _table_checks.check_distinct(known, keys.dictionary_encode().indices.to_numpy(), "node_ids")
    found = call_function("index_in", [ends], SetLookupOptions(value_set=keys))
    if found.null_count:
        stranger = ends[int(np.asarray(found.is_null()).argmax())].as_py()
        raise ValueError(f"node_ids must hold every endpoint, got none for {_table_checks.shown(stranger)}; add it.")
    ids = to_ids(known)
    dense = ids.dtype.kind == "i" and np.array_equal(ids, np.arange(len(ids)))
    return found.to_numpy().astype(np.int64), len(ids), None if dense else ids


def to_ids(column: pa.Array) -> np.ndarray:
    """Ids as a NumPy array of int64 or of strings."""
    return column.to_numpy() if column.type == pa.int64() else _text_array(column.to_pylist())


def _text_array(texts: list[str]) -> np.ndarray:
    """Strings as an array; one of objects where a single long string would make the others as wide."""
    width = max(map(len, texts), default=0)
    return np.array(texts, dtype=object if 4 * width * len(texts) > _WIDEST else np.str_)


# --- reading --------------------------------------------------------------------------------------------


def read_edges(path: PathLike) -> pa.Table:
    """The edge table of a file, for `as_graph`; the edges of an npz with `ids` are given by these ids."""
    path = Path(path)
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        return npz_edges(path, read_npz(path))
    return read_table(path, suffix, edge_header, _edge_ids)


def _edge_ids(names: list[str]) -> list[str]:
    return [names[k] for k in _table_checks.check_edge_columns(names)[:2]]


def read_nodes(
    path: PathLike, id_column: str | None = None, *, drop: Iterable[str] = (), only: Iterable[str] | None = None
) -> tuple[np.ndarray, np.ndarray | sp.csr_array, list[str]]:
    """The ids (n,), the features (n, d), CSR where the file holds CSR, and the names of the features.

    Features are float32, and float64 where float32 would change numbers beyond 2²⁴, such as times in seconds.

    The ids are the column `id_column`, else the first of id, node and node_id (in any case) that is there, else the
    index that pandas wrote, else the row numbers. All other columns but those in `drop` are features, or of them those
    in `only`; a file of ids alone gives d = 0.
    """
    path = Path(path)
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        keys, X, names = npz_nodes(path, read_npz(path))
        return np.arange(X.shape[0]) if keys is None else _distinct_ids(keys, f"ids in '{path}'"), X, names
    drop = list(drop)

    def key(names: list[str]) -> list[str]:
        _check_columns(path, names, [*drop, *([] if id_column is None else [id_column])])
        folded = {name.strip().lower(): name for name in reversed(names) if name not in drop}
        known = [folded[name] for name in ID_COLUMNS if name in folded]
        return known[:1] if id_column is None else [id_column]

    table = read_table(path, suffix, node_header, key)
    keys = key(table.column_names)
    ids = _distinct_ids(table.column(keys[0]), f"column {keys[0]!r}") if keys else np.arange(len(table))
    pandas_index = [name for name in table.column_names if name.startswith("__index_level_")]
    aside, wanted = {*drop, *pandas_index, *keys}, set(table.column_names if only is None else only)
    names = [name for name in table.column_names if name in wanted and name not in aside]
    if not keys and names:
        _warn_of_numbers(path, names[0], table.column(names[0]))
    return ids, _features(path, table.select(names), named=bool(keys)), names


def read_columns(path: PathLike, names: Sequence[str]) -> list[list[Any]]:
    """The values of some columns of a node file (of some arrays of an npz), None where one is missing.

    Text files have integers where a column holds nothing else, each written as it is printed, and text elsewhere;
    there a cell is missing where it is empty or says NA or the like without quotes.
    """
    path = Path(path)
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        arrays = read_npz(path)
        return [npz_cells(path, arrays, name) for name in names]

    def wanted(found: list[str]) -> list[str]:
        _check_columns(path, found, names)
        return list(dict.fromkeys(names))

    if suffix == ".parquet":  # which has nulls, so that NA is a word like any other
        table = read_table(path, suffix, node_header, wanted)
        columns = [table.column(name).to_pylist() for name in names]
        return [[None if value == "" else value for value in column] for column in columns]
    cells = read_cells(path, suffix, node_header, wanted)
    for name, (_, marks) in cells.items():
        if marks:
            warnings.warn(
                f"column {name!r} of '{path}' says {' and '.join(map(repr, marks))} in some rows, which have no value "
                "then; if it is one, put it in quotes or write another word.",
                stacklevel=2,
            )
    return [[None if value == "" else value for value in cells[name][0]] for name in names]


def _check_columns(path: Path, found: list[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in found:
            columns = ", ".join(name[:60] for name in found[:10]) + (
                f", … ({len(found)} columns)" if len(found) > 10 else ""
            )
            raise ValueError(f"'{path}' must have a column {name!r}, got {columns}; name one of these.")


def _distinct_ids(column: Any, what: str) -> np.ndarray:
    keys = _table_checks.check_ids(column, what)
    _table_checks.check_distinct(keys, keys.dictionary_encode().indices.to_numpy(), what)
    return to_ids(keys)


def _warn_of_numbers(path: Path, name: str, column: pa.ChunkedArray) -> None:
    """Warn where the rows are numbered and the first column might have named them."""
    if str(column.type).startswith(("int", "uint")) and 1 < len(column) == len(column.unique()):
        warnings.warn(
            f"'{path}' has no column id, node or node_id: its rows are the nodes 0, 1, …, and {name!r}, whole numbers "
            f"that all differ, is a feature; if it holds the ids, say id_column={name!r} (--id-column for a command).",
            stacklevel=3,
        )


def _features(path: Path, table: pa.Table, *, named: bool) -> np.ndarray:
    """The columns of a table as (n, d) float32, or float64 where that would lose digits; no number is missing."""
    words = [field.name for field in table.schema if not str(field.type).startswith(_NUMBERS)]
    if words:
        columns = _table_checks.listed(words)
        advice = "" if named else "name the column of the ids by id_column (--id-column on the command line), "
        raise ValueError(
            f"features must be numbers, got other values in the columns {columns} of '{path}'; {advice}leave labels "
            f"out with drop=[{columns}] (--drop on the command line) and encode the rest."
        )
    wide = any(loses_digits(np.asarray(column.cast(pa.float64(), safe=False))) for column in table.columns)
    X = np.empty((len(table), table.num_columns), dtype=np.float64 if wide else np.float32)
    for j, name in enumerate(table.column_names):
        what = f"feature {name!r} of '{path}'"
        column = _table_checks.check_column(table.column(j), what).cast(pa.float64(), safe=False)
        X[:, j] = within_single(np.asarray(column), what)
    _checks.check_finite_rows(X, f"the features of '{path}'")
    return X


# --- writing --------------------------------------------------------------------------------------------


def check_writable(path: PathLike) -> Path:
    """The path, if an embedding can be written there; to be asked before the work is done."""
    _file_checks.check_suffix(Path(path), SUFFIXES)
    _file_checks.check_folder(Path(path))
    return Path(path)


def write_embedding(
    path: PathLike, ids: Any, Z: np.ndarray, names: Sequence[str] | None = None, *, advance: Advance | None = None
) -> None:
    """Write an embedding (n, d) and its node ids; the file appears complete or not at all.

    Tables have a column `id` and one per dimension; an npz has `ids`, `x` and `names`, as in `read_nodes`, which reads
    back what is written. Without `names` the dimensions are z0, z1, …; without `ids` the nodes are 0 … n - 1. Ids that
    are neither integers nor strings are written as their text. `advance(n)` is called as bytes of Z are written, n of
    about `Z.nbytes`.
    """
    path = check_writable(path)
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    names = [f"z{j}" for j in range(Z.shape[1])] if names is None else [str(name) for name in names]
    keys = check_written_ids(path, np.arange(len(Z)) if ids is None else ids)
    if (len(keys), len(names)) != Z.shape or "id" in names or Z.dtype.kind not in "biuf" or Z.dtype.itemsize > 8:
        raise ValueError(
            f"an embedding, {Z.dtype} of shape {Z.shape}, needs numbers, an id per row and a name other than "
            f"'id' per column, got {len(keys)} ids and {len(names)} names; pass matching ones."
        )
    _table_checks.positions([name.strip() for name in names], "the names of the columns")
    with _file_checks.replacing(path) as part, part.open("wb") as opened:
        file = opened if advance is None else counted(opened, suffix, advance)
        if suffix == ".npz":
            _checks.check_finite_rows(Z, "the embedding")
            plain = to_ids(keys)
            plain = plain.astype(np.str_) if plain.dtype == object else plain
            np.savez(file, ids=plain, x=Z, names=np.array(names, dtype=np.str_))
        else:
            write_blocks(file, suffix, *_blocks(keys, Z, names))


def check_written_ids(path: PathLike, ids: Any) -> pa.Array:
    """Ids as int64 or text; raises where `read_nodes` could not read them back from a file of this name."""
    values = ids if isinstance(ids, np.ndarray) else list(ids)
    if not isinstance(values, np.ndarray) or values.dtype == object:
        values = [value if isinstance(value, str) else _plain_id(value) for value in values]
        values = values if len({type(value) for value in values}) < 2 else [str(value) for value in values]
    keys = _table_checks.check_ids(values, "ids")
    _table_checks.check_distinct(keys, keys.dictionary_encode().indices.to_numpy(), "ids")
    check_kept(_file_checks.check_suffix(Path(path), SUFFIXES), pa.table({"id": keys}))
    return keys


def _plain_id(value: Any) -> int | str:
    """An integer of 64 bits as such, anything else as its text."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return int(value) if whole and -(2**63) <= value < 2**63 else str(value)


def _blocks(ids: pa.Array, Z: np.ndarray, names: list[str]) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The schema of a table and its blocks of rows, made one by one: a memory-mapped Z is never read at once."""
    dtype = np.dtype(np.float32) if Z.dtype == np.float16 else Z.dtype.newbyteorder("=")  # text has no halves
    kind = pa.int64() if ids.type == pa.int64() else pa.string()
    schema = pa.schema([("id", kind), *((name, pa.from_numpy_dtype(dtype)) for name in names)])

    def block(start: int) -> pa.Table:
        rows = np.asarray(Z[start : start + 65536])
        _checks.check_finite_rows(rows, "the embedding", name_row=lambda row: f"row {start + row}")
        columns = np.ascontiguousarray(rows.T, dtype=dtype)
        return pa.table([ids.slice(start, 65536).cast(kind), *map(pa.array, columns)], schema=schema)

    return schema, (block(start) for start in range(0, len(Z), 65536))
