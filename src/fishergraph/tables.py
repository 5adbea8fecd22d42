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
from fishergraph._npz_files import SUFFIXES, entry, has_features, read_features, read_npz, single
from fishergraph._table_files import MISSING, Advance, counted, edge_header, node_header, read_table, write_blocks

PathLike = str | os.PathLike
# The last three are how pandas writes an index without a name.
ID_COLUMNS = ("id", "node", "node_id", "", "unnamed: 0", "__index_level_0__")
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
        ids, rank = np.unique(np.array(coded.dictionary.to_pylist(), dtype=np.str_), return_inverse=True)
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
        raise ValueError(f"node_ids must hold every endpoint, got none for {stranger!r}; add it.")
    ids = to_ids(known)
    dense = ids.dtype.kind == "i" and np.array_equal(ids, np.arange(len(ids)))
    return found.to_numpy().astype(np.int64), len(ids), None if dense else ids


def to_ids(column: pa.Array) -> np.ndarray:
    """Ids as a NumPy array of int64 or of strings."""
    return column.to_numpy() if column.type == pa.int64() else np.array(column.to_pylist(), dtype=np.str_)


# --- reading --------------------------------------------------------------------------------------------


def read_edges(path: PathLike) -> pa.Table:
    """The edge table of a file, for `as_graph`; the edges of an npz with `ids` are given by these ids."""
    path = Path(path)
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        return _npz_edges(path, read_npz(path))
    return read_table(path, suffix, edge_header, _edge_ids)


def _edge_ids(names: list[str]) -> list[str]:
    return [names[k] for k in _table_checks.check_edge_columns(names)[:2]]


def read_nodes(
    path: PathLike, id_column: str | None = None, *, drop: Iterable[str] = (), only: Iterable[str] | None = None
) -> tuple[np.ndarray, np.ndarray | sp.csr_array, list[str]]:
    """The ids (n,), the float32 features (n, d), CSR where the file holds CSR, and the names of the features.

    The ids are the column `id_column`, else the first of id, node and node_id (in any case) that is there, else the
    index that pandas wrote, else the row numbers. All other columns but those in `drop` are features, or of them those
    in `only`; a file of ids alone gives d = 0.
    """
    path = Path(path)
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        return _npz_nodes(path, read_npz(path))
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

    Text files have whole numbers where a column holds nothing else, each written as it is printed, and text elsewhere;
    there a cell is missing where it is empty or says NA or the like.
    """
    path = Path(path)
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    if suffix == ".npz":
        arrays = read_npz(path)
        return [entry(path, arrays, name).tolist() for name in names]

    def wanted(found: list[str]) -> list[str]:
        _check_columns(path, found, names)
        return list(names)

    table = read_table(path, suffix, node_header, wanted)
    columns = [table.column(name).to_pylist() for name in names]
    if suffix == ".parquet":  # which has nulls, so that NA is a word like any other
        return [[None if value == "" else value for value in column] for column in columns]
    for name, column in zip(names, columns, strict=True):
        marks = sorted({value for value in column if value in MISSING} - {""})
        if marks:
            warnings.warn(
                f"column {name!r} of '{path}' says {' and '.join(map(repr, marks))} in some rows, which have no value "
                "then; if it is one, write another word.",
                stacklevel=2,
            )
    return [[None if value in MISSING else value for value in column] for column in columns]


def _check_columns(path: Path, found: list[str], wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in found:
            shown = ", ".join(found[:10]) + (f", … ({len(found)} columns)" if len(found) > 10 else "")
            raise ValueError(f"'{path}' must have a column {name!r}, got {shown}; name one of these.")


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
    """The columns of a table as (n, d) float32, none of them missing."""
    words = [field.name for field in table.schema if not str(field.type).startswith(_NUMBERS)]
    if words:
        advice = "" if named else "name the column of the ids by id_column (--id-column on the command line), "
        raise ValueError(
            f"features must be numbers, got other values in the columns {', '.join(map(repr, words))} of '{path}'; "
            f"{advice}leave labels out with drop={words!r} (--drop on the command line) and encode the rest."
        )
    X = np.empty((len(table), table.num_columns), dtype=np.float32)
    for j, name in enumerate(table.column_names):
        what = f"feature {name!r} of '{path}'"
        column = _table_checks.check_column(table.column(j), what).cast(pa.float64(), safe=False)
        X[:, j] = single(np.asarray(column), what)
    _checks.check_finite_rows(X, f"the features of '{path}'")
    return X


def _npz_edges(path: Path, arrays: dict[str, np.ndarray]) -> pa.Table:
    ends = _graph_checks.check_edge_index(entry(path, arrays, "edge_index"))
    n_nodes = len(np.atleast_1d(arrays["ids"])) if "ids" in arrays else int(ends.max(initial=-1)) + 1
    _graph_checks.check_endpoints(ends[0], ends[1], n_nodes)
    source, target = arrays["ids"][ends] if "ids" in arrays else ends
    columns = {"source": source, "target": target}
    if "edge_weight" in arrays:
        columns["weight"] = entry(path, arrays, "edge_weight", source.shape)
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if not _is_undirected(path, arrays):
        return table
    back = table.filter(pa.array(ends[0] != ends[1]))  # a self-loop has no other direction
    back = back.rename_columns(["target", "source", *table.column_names[2:]])
    return pa.concat_tables([table, back.select(table.column_names)])


def _is_undirected(path: Path, arrays: dict[str, np.ndarray]) -> bool:
    flag = arrays.get("undirected", np.array(False))
    if flag.shape != () or flag.dtype != bool:
        raise ValueError(
            f"undirected in '{path}' must be true or false, got {flag.dtype} of shape {flag.shape}; repair it."
        )
    return bool(flag)


def _npz_nodes(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, Any, list[str]]:
    if "ids" in arrays and not has_features(arrays):  # ids alone, as in a table of ids
        X: Any = np.empty((len(arrays["ids"]), 0), dtype=np.float32)
    else:
        X = read_features(path, arrays)
    n, d = X.shape
    ids = entry(path, arrays, "ids", (n,)) if "ids" in arrays else np.arange(n)
    names = entry(path, arrays, "names", (d,)) if "names" in arrays else [f"x{j}" for j in range(d)]
    return _distinct_ids(ids, "ids"), X, [str(name) for name in names]


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

    Tables have a column `id` and one per dimension; an npz has `ids`, `x` and `names`, as in `read_nodes`.
    Without `names` the dimensions are z0, z1, …; without `ids` the nodes are 0 … n - 1. `advance(n)` is called as bytes
    of Z are written, n of about `Z.nbytes`.
    """
    path = check_writable(path)
    names = [f"z{j}" for j in range(Z.shape[1])] if names is None else [str(name) for name in names]
    keys = np.arange(len(Z)) if ids is None else np.asarray(ids)
    keys = np.array([str(key) for key in keys.tolist()], dtype=np.str_) if keys.dtype == object else keys
    if (len(keys), len(names)) != Z.shape or "id" in names or Z.dtype.kind not in "biuf":
        raise ValueError(
            f"an embedding, {Z.dtype} of shape {Z.shape}, needs numbers, an id per row and a name other than "
            f"'id' per column, got {len(keys)} ids and {len(names)} names; pass matching ones."
        )
    suffix = _file_checks.check_suffix(path, SUFFIXES)
    with _file_checks.replacing(path) as part, part.open("wb") as opened:
        file = opened if advance is None else counted(opened, suffix, advance)
        if suffix == ".npz":
            np.savez(file, ids=keys, x=Z, names=np.array(names, dtype=np.str_))
        else:
            schema, blocks = _blocks(keys, Z, names)
            write_blocks(file, suffix, schema, blocks)


def _blocks(ids: np.ndarray, Z: np.ndarray, names: list[str]) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The schema of a table and its blocks of rows, made one by one: a memory-mapped Z is never read at once."""
    kind = pa.from_numpy_dtype(Z.dtype)
    schema = pa.schema([("id", pa.array(ids[:1]).type), *((name, kind) for name in names)])

    def block(rows: slice) -> pa.Table:
        columns = np.ascontiguousarray(np.asarray(Z[rows]).T)
        return pa.table([pa.array(ids[rows]), *map(pa.array, columns)], schema=schema)

    return schema, (block(slice(start, start + 65536)) for start in range(0, len(Z), 65536))
