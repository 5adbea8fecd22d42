"""Files of an embedding, written by consecutive blocks of rows in bounded memory.

    .parquet             a column `id` and a column `embedding` of float lists of one length (layout "vector"), or a
                         column per dimension ("wide")
    .csv .tsv (.gz)      a column `id` and a column per dimension
    .npz                 the arrays ids, names and x
    .npy                 the matrix alone; the ids are in NAME.ids.npy beside it
    .lance               a Lance dataset of the columns of the layout "vector" (extra `lance`)
    .zarr                a Zarr group of the arrays ids and embedding (extra `zarr`)

The schema of a Parquet or Lance file and the attributes of a Zarr group say the names of the dimensions, the blocks
and the parameters of the model, as JSON under the key `fishergraph`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyarrow.compute import call_function

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import InputError
from fishergraph._version import __version__
from fishergraph.io.arrow import check_kept
from fishergraph.io.columns import check_ids, distinct_ids, positions
from fishergraph.io.files import Advance, check_folder, check_suffix
from fishergraph.io.npz import FOLDER_SUFFIXES, MATRIX_SUFFIXES, SUFFIXES
from fishergraph.io.parquet import METADATA

LAYOUTS = ("vector", "wide")
COLUMN = "embedding"
ID_ROWS = 2**16  # ids that are read at once
# Bytes of the numbers of a group of rows, and the most rows of it. Columns of their own need larger groups: each column
# of a group has an entry in the footer of a file.
_GROUP, _WIDE_GROUP, _TEXT_GROUP, _ROWS = 2**25, 2**27, 2**23, 2**20
PathLike = str | os.PathLike


# --- ids ------------------------------------------------------------------------------------------------


class RowIds:
    """The ids of the rows of a file, by slices: int64 or text."""

    def __init__(self, path: PathLike, ids: Any, n_rows: int):
        self.path, self._source, self._n = path, ids, n_rows
        self._stored = _is_stored(ids)
        if ids is not None and not self._stored:
            self._source = check_written_ids(path, ids)
        self.length = n_rows if ids is None else len(self._source)
        self.type = pa.int64() if ids is None else self[0:1].type

    def __getitem__(self, rows: slice) -> pa.Array:
        if self._source is None:
            return pa.array(np.arange(rows.start, rows.stop))
        if not self._stored:
            return self._source[rows.start : rows.stop]
        found = check_ids(self._source[rows], "ids")
        if rows.start and found.type != self.type:
            expected = f"be all integers or all text, as in row 0 ({self.type})"
            raise InputError(parameter="ids", expected=expected, got=f"{found.type} from row {rows.start}")
        check_kept(check_suffix(Path(self.path), MATRIX_SUFFIXES), pa.table({"id": found}))
        return found

    @property
    def text(self) -> bool:
        """Whether the ids are text."""
        return self.type != pa.int64()

    @property
    def numpy_type(self) -> np.dtype:
        """int64, or text as wide as the longest id."""
        if not self.text:
            return np.dtype(np.int64)
        lengths = (call_function("utf8_length", [self[rows]]) for rows in self.slices())
        return np.dtype(f"<U{max((max(part.to_pylist(), default=0) for part in lengths), default=0) or 1}")

    def slices(self) -> Iterable[slice]:
        """Slices that cover the rows."""
        return (slice(start, min(start + ID_ROWS, self._n)) for start in range(0, self._n, ID_ROWS))

    def as_numpy(self, rows: slice, dtype: Any = np.str_) -> np.ndarray:
        """Some ids as an array, texts of this type."""
        return np.array(self[rows].to_pylist(), dtype) if self.text else self[rows].to_numpy()


def _is_stored(ids: Any) -> bool:
    """Whether ids are read by slices, such as those of a store, and not held in memory."""
    in_memory = (list, tuple, np.ndarray, pa.Array, pa.ChunkedArray)
    tabular = hasattr(ids, "to_numpy") or hasattr(ids, "iloc")
    return hasattr(ids, "__getitem__") and hasattr(ids, "__len__") and not tabular and not isinstance(ids, in_memory)


def check_written_ids(path: PathLike, ids: Iterable) -> pa.Array:
    """Ids as int64 or text; raises if `read_nodes` could not read them back from a file of this name."""
    values = ids if isinstance(ids, np.ndarray) else list(ids)
    if not isinstance(values, np.ndarray) or values.dtype == object:
        integers = [isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values]
        plain = all(integers) and all(-(2**63) <= value < 2**63 for value in values)
        values = [int(value) if plain else str(value) for value in values]
    keys = distinct_ids(values, "ids")
    check_kept(check_suffix(Path(path), MATRIX_SUFFIXES), pa.table({"id": keys}))
    return keys


# --- what is written ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """A file to be written: its path, its rows and columns, and what it says of them."""

    path: Path
    suffix: str
    shape: tuple[int, int]
    dtype: np.dtype
    ids: RowIds
    names: list[str]
    wide: bool
    about: dict[str, Any]
    advance: Advance | None

    @property
    def group_rows(self) -> int:
        """The rows that are written at once."""
        n_bytes = _GROUP if not self.wide else _TEXT_GROUP if SUFFIXES.get(self.suffix) else _WIDE_GROUP
        return min(max(n_bytes // max(self.shape[1] * self.dtype.itemsize, 1), 1), _ROWS)

    @property
    def schema(self) -> pa.Schema:
        """The schema of a table of these columns."""
        ids, number = pa.field("id", self.id_type, nullable=False), pa.from_numpy_dtype(self.dtype)
        if self.wide:
            columns = [pa.field(name, number, nullable=False) for name in self.names]
        else:
            entry = pa.field("element", number, nullable=False)
            columns = [pa.field(COLUMN, pa.list_(entry, self.shape[1]), nullable=False)]
        return pa.schema([ids, *columns], metadata={METADATA: json.dumps(self.about)})

    @property
    def id_type(self) -> pa.DataType:
        """The type of ids in a table."""
        return pa.string() if self.ids.text else pa.int64()

    def batch(self, rows: slice, values: np.ndarray, schema: pa.Schema) -> pa.RecordBatch:
        """Some rows of the table."""
        if self.wide:
            columns = [pa.array(column) for column in np.ascontiguousarray(values.T)]
        else:
            columns = [pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), type=schema.field(1).type)]
        return pa.RecordBatch.from_arrays([self.ids[rows].cast(self.id_type), *columns], schema=schema)


def check_layout(path: PathLike, layout: str | None) -> str:
    """The suffix of a file in which an embedding can be written with this layout."""
    suffix = check_suffix(Path(path), MATRIX_SUFFIXES)
    if layout is not None and layout not in LAYOUTS:
        raise InputError(parameter="layout", value=layout, expected=f"be one of {', '.join(LAYOUTS)}")
    fixed = "wide" if SUFFIXES.get(suffix) else "vector" if suffix != ".parquet" else None
    if layout is not None and fixed not in (None, layout):
        advice = "write a .parquet file, or leave the layout out"
        raise InputError(parameter="layout", value=layout, expected=f"be {fixed!r} in a {suffix} file", advice=advice)
    return suffix


def check_writable(path: PathLike) -> Path:
    """The path, if an embedding can be written there; call it before the work is done."""
    path = Path(path)
    suffix = check_suffix(path, MATRIX_SUFFIXES)
    if suffix in FOLDER_SUFFIXES:
        from fishergraph.io.folders import check_replaceable

        check_replaceable(path, suffix)
    else:
        check_folder(path)
        if suffix == ".npy":
            check_folder(ids_path(path))
    return path


def ids_path(path: Path) -> Path:
    """The file of the ids beside a .npy file."""
    return path.with_name(path.name[: -len(".npy")] + ".ids.npy")


class EmbeddingWriter:
    """A file of an embedding, written by consecutive blocks of rows.

    Use it in a `with` statement. The file appears complete at its end, or not at all. Rows are collected into groups of
    a fixed size, so the bytes of the file do not depend on how the rows were passed.

    Parameters
    ----------
    path : str or path
        A .parquet, .csv, .tsv (or .gz), .npz, .npy, .lance or .zarr file.
    shape : tuple of int
        The numbers of rows and columns.
    ids : sequence, optional
        Node ids; by default 0 … n - 1. Lists and arrays must hold distinct ids; those that are neither integers nor
        strings are written as their text. Other objects with a length are read by slices, and are not compared with
        each other.
    dtype : dtype, default=float32
        The type of the numbers. CSV and TSV files hold float16 as float32.
    names : sequence of str, optional
        Names of the columns; by default z0, z1, ….
    blocks : sequence of tuple, optional
        (name, width) of the blocks of columns, in order, as `FisherEmbedding.blocks_`.
    parameters : dict, optional
        What the file says of the model.
    layout : {"vector", "wide"}, optional
        Whether a Parquet file has one column of vectors, the default, or a column per dimension.
    advance : callable, optional
        `advance(n)` is called as bytes of the numbers are written; all n together are about those of the matrix.

    See Also
    --------
    fishergraph.io.tables.read_embedding : Read the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from fishergraph.io.embedding_file import EmbeddingWriter
    >>> from fishergraph.io.tables import read_embedding
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "z.parquet"
    >>> with EmbeddingWriter(path, (4, 2), ["a", "b", "c", "d"]) as writer:
    ...     for start in (0, 2):
    ...         writer.write(np.full((2, 2), start, np.float32))
    >>> read_embedding(path).ids
    array(['a', 'b', 'c', 'd'], dtype='<U1')
    """

    def __init__(
        self,
        path: PathLike,
        shape: tuple[int, int],
        ids: Any = None,
        *,
        dtype: Any = np.float32,
        names: Sequence[str] | None = None,
        blocks: Sequence[tuple[str, int]] | None = None,
        parameters: dict[str, Any] | None = None,
        layout: str | None = None,
        advance: Advance | None = None,
    ):
        path, suffix = check_writable(path), check_layout(path, layout)
        (n_rows, n_columns), dtype = shape, np.dtype(dtype).newbyteorder("=")
        names = [f"z{j}" for j in range(n_columns)] if names is None else [str(name) for name in names]
        keys = RowIds(path, ids, n_rows)
        if (keys.length, len(names)) != shape or "id" in names or dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise InputError(
                parameter=f"an embedding, {dtype} of shape {tuple(shape)},",
                expected="have numbers, an id per row and a name other than 'id' per column",
                got=f"{keys.length} ids and {len(names)} names",
            )
        positions([name.strip() for name in names], "the names of the columns")
        text = bool(SUFFIXES.get(suffix))
        if text and dtype == np.float16:
            dtype = np.dtype(np.float32)
        wide = text or n_columns == 0 or layout == "wide"
        about = _about(names, blocks, parameters, n_columns) | {"column": None if wide else COLUMN}
        self._target = Target(path, suffix, (n_rows, n_columns), dtype, keys, names, wide, about, advance)
        self.group_rows = self._target.group_rows
        self._done, self._held = 0, 0  # rows that were written, and those in the buffer

    def __enter__(self) -> Self:
        from fishergraph.io.embedding_formats import FORMATS

        self._buffer = np.empty(
            (min(self.group_rows, self._target.shape[0]), self._target.shape[1]), self._target.dtype
        )
        with ExitStack() as stack:
            self._put = stack.enter_context(FORMATS[self._target.suffix](self._target))
            self._stack = stack.pop_all()
        return self

    def write(self, rows: np.ndarray) -> None:
        """Write the next rows.

        Parameters
        ----------
        rows : array of shape (n, n_columns)
            Finite numbers.
        """
        rows = np.asarray(rows)
        before = self._done + self._held
        if rows.ndim != 2 or rows.shape[1] != self._target.shape[1] or before + len(rows) > self._target.shape[0]:
            left = (self._target.shape[0] - before, self._target.shape[1])
            raise InputError(parameter="rows", value=rows.shape, expected=f"be at most the {left} that are left")
        check_finite_rows(rows, "the embedding", name_row=lambda row: f"row {before + row}")
        while len(rows):
            if not self._held and len(rows) >= self.group_rows and rows.dtype == self._target.dtype:
                self._flush(np.ascontiguousarray(rows[: self.group_rows]))
                rows = rows[self.group_rows :]
                continue
            taken = min(len(rows), self.group_rows - self._held)
            self._buffer[self._held : self._held + taken] = rows[:taken]
            self._held, rows = self._held + taken, rows[taken:]
            if self._held == self.group_rows:
                self._flush(self._buffer)
                self._held = 0

    def _flush(self, values: np.ndarray) -> None:
        self._put(slice(self._done, self._done + len(values)), values)
        self._done += len(values)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        if kind is not None:
            return self._stack.__exit__(kind, error, trace)
        with self._stack:
            if self._held:
                self._flush(self._buffer[: self._held])
            if self._done != self._target.shape[0]:
                expected = f"be {self._target.shape[0]:,} in all"
                raise InputError(parameter="the rows of an embedding", expected=expected, got=f"{self._done:,}")


def _about(names: list[str], blocks: Any, parameters: Any, n_columns: int) -> dict[str, Any]:
    """What a file says of itself."""
    listed, first = [], 0
    for name, width in blocks or ():
        listed.append({"name": str(name), "first": first, "width": int(width)})
        first += int(width)
    if blocks is not None and first != n_columns:
        raise InputError(parameter="blocks", value=first, expected=f"have the {n_columns} columns of the embedding")
    plain = json.loads(json.dumps(parameters or {}, default=lambda value: getattr(value, "item", lambda: str(value))()))
    return {
        "format": "fishergraph-embedding",
        "fishergraph": __version__,
        "blocks": listed,
        "names": names,
        "parameters": plain,
    }


def write_embedding(
    path: PathLike,
    ids: Any,
    Z: Any,
    names: Sequence[str] | None = None,
    *,
    blocks: Sequence[tuple[str, int]] | None = None,
    parameters: dict[str, Any] | None = None,
    layout: str | None = None,
    advance: Advance | None = None,
) -> None:
    """Write an embedding and its node ids; the file appears complete or not at all.

    Parameters
    ----------
    path : str or path
        A .parquet, .csv, .tsv (or .gz), .npz, .npy, .lance or .zarr file.
    ids : sequence or None
        Node ids; None: 0 … n - 1.
    Z : array of shape (n_nodes, dim)
        The embedding; an array in a file is read by slices of rows.
    names : sequence of str, default=None
        Names of the columns; by default z0, z1, ….
    blocks : sequence of tuple, optional
        (name, width) of the blocks of columns.
    parameters : dict, optional
        What the file says of the model.
    layout : {"vector", "wide"}, optional
        Whether a Parquet file has one column of vectors, the default, or a column per dimension.
    advance : callable, default=None
        `advance(n)` is called as bytes of Z are written; all n together are about those of Z.

    See Also
    --------
    EmbeddingWriter : Write it by blocks of rows.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fishergraph.io.embedding_file import write_embedding
    >>> from fishergraph.io.tables import read_embedding
    >>> path = tempfile.mkdtemp() + "/z.npz"
    >>> write_embedding(path, ["a", "b"], np.eye(2))
    >>> read_embedding(path).ids.tolist()
    ['a', 'b']
    """
    options = {"names": names, "blocks": blocks, "parameters": parameters, "layout": layout, "advance": advance}
    with EmbeddingWriter(path, tuple(Z.shape), ids, dtype=Z.dtype, **options) as writer:
        step = writer.group_rows
        for start in range(0, Z.shape[0], step):
            writer.write(np.asarray(Z[start : min(start + step, Z.shape[0])]))
