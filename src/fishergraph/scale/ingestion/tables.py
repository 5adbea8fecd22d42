"""Tables of edges and nodes in batches of rows: Parquet, CSV and TSV files of any size."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow.compute import SetLookupOptions, call_function

from fishergraph._errors import FileFormatError, FishergraphWarning, InputError
from fishergraph._records import check_weights
from fishergraph._warn import warn
from fishergraph.io.archives import check_columns, check_gzip, check_parquet
from fishergraph.io.arrow import edge_header, node_header
from fishergraph.io.cells import MISSING, as_integers, distinct_names
from fishergraph.io.columns import check_column, check_ids, listed
from fishergraph.io.edge_columns import EdgeOptions, find_columns
from fishergraph.io.features import not_numbers
from fishergraph.io.files import check_readable, check_text
from fishergraph.io.npz import loses_digits, within_single
from fishergraph.io.tables import split_columns
from fishergraph.io.vectors import is_number
from fishergraph.scale.ingestion.places import explained
from fishergraph.scale.ingestion.scratch import Ids

Advance = Callable[[int], Any]
Header = Callable[[Path, list[str]], list[str] | None]
SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".txt": "", ".txt.gz": "", ".parquet": ""}
SUFFIXES = tuple(SEPARATORS)
_TEXT_BLOCK = 2**24  # bytes
_NOT_IDS = SetLookupOptions(value_set=pa.array(sorted(MISSING)))


@dataclass(frozen=True)
class EdgeBatch:
    """Some edges of a file."""

    source: Ids
    target: Ids
    weights: np.ndarray | None


@dataclass
class EdgeReader:
    """Reads edge tables.

    Parameters
    ----------
    source, target, weight : str or None
        The columns; None finds them by their names.
    batch_rows : int
        Rows that are in memory at once.
    """

    source: str | None
    target: str | None
    weight: str | None
    batch_rows: int
    # Columns of text files that say NA or the like in place of a number, and where; and columns of words.
    _marks: dict[str, tuple[str, int]] = field(default_factory=dict)
    _words: set[str] = field(default_factory=set)

    def read(self, path: Path, name: str, suffix: str, advance: Advance) -> Iterator[EdgeBatch]:
        """The edges of a file; errors call it `name`."""
        with explained(path, name):
            table = open_table(path, suffix, edge_header)
            *names, weight = self._columns(name, table)
            numbers = [] if weight is None else [weight]
            done = 0
            for batch in table.batches(names + numbers, names, numbers, self.batch_rows, advance):
                ends = [self.ids(batch.column(i), names[i], name, done, is_text=table.is_text) for i in (0, 1)]
                weights = None
                if weight is not None:
                    values = np.asarray(_complete(batch.column(2), f"column {weight!r} of '{name}'", done))
                    weights = check_weights(values, len(values), lambda i, ends=ends: f"{ends[0][i]} -> {ends[1][i]}")
                done += batch.num_rows
                yield EdgeBatch(ends[0], ends[1], weights)

    def finish(self) -> None:
        """Raise if ids are missing in a file whose other ids are numbers."""
        for column in self._marks.keys() - self._words:
            name, row = self._marks[column]
            what, got = f"column {column!r} of '{name}'", f"a missing value in row {row}"
            raise InputError(parameter=what, value=row, expected="be complete", got=got, advice="drop such rows")

    def _columns(self, name: str, table: _Parquet | _Text) -> list[Any]:
        """The columns of the sources, the targets and the weights; None if there are no weights."""
        names, numbers = table.names, [True] * len(table.names) if table.header else []
        called = [str(place + 1) for place in range(len(names))] if numbers else names
        try:
            roles = find_columns(called, EdgeOptions(self.source, self.target, self.weight), numbers=numbers)
        except InputError as error:
            raise error.revised(got=f"{error.got} in '{name}'") from error
        return [names[place] if place is not None else None for place in (roles.source, roles.target, roles.weight)]

    def ids(self, column: pa.Array, name: str, path: str, done: int, *, is_text: bool) -> Ids:
        """Ids as int64 or large_string; in text files they are numbers if all are written as numbers are printed."""
        column = self._numbers_of(column, name, path, done) if is_text else column
        try:
            ids = check_ids(column, f"column {name!r}")
        except InputError as error:
            raise _further(error, f"column {name!r} of '{path}'", done) from error
        return ids.to_numpy() if ids.type == pa.int64() else ids

    def _numbers_of(self, words: pa.Array, name: str, path: str, done: int) -> pa.Array:
        """The numbers that are written in a column of text, or the text."""
        numbers = _as_integers(words)
        if pa.types.is_integer(numbers.type):
            return numbers
        marks = np.asarray(call_function("is_in", [numbers], _NOT_IDS))
        if marks.any() and pa.types.is_integer(_as_integers(numbers.filter(pa.array(~marks))).type):
            self._marks.setdefault(name, (path, done + int(np.flatnonzero(marks)[0])))
        else:
            self._words.add(name)
        return numbers


def _as_integers(words: pa.Array) -> pa.Array:
    column = as_integers(pa.chunked_array([words]))
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


class NodeReader:
    """Reads node tables: ids, if a column has them, and numbers.

    Parameters
    ----------
    id_column : str or None
        The column of the ids; None finds it by its name.
    drop : sequence of str
        Columns that are not features.
    batch_bytes : int
        Bytes of the numbers that are in memory at once.
    dtype : dtype
        The type that the features will have.
    """

    def __init__(self, id_column: str | None, drop: Sequence[str], batch_bytes: int, dtype: np.dtype):
        self.id_column, self.drop, self.batch_bytes = id_column, list(drop), batch_bytes
        self.dtype = np.promote_types(dtype, np.float32)
        self.names: list[str] | None = None
        self.key: str | None = None
        self.has_lists = False
        self._ids = EdgeReader(None, None, None, 0)

    def read(self, path: Path, name: str, suffix: str, advance: Advance) -> Iterator[tuple[Ids | None, np.ndarray]]:
        """The ids and the numbers of a file, in blocks."""
        with explained(path, name):
            table = open_table(path, suffix, node_header)
            keys, names = split_columns(name, table.names, self.id_column, self.drop)
            if self.names is not None and (keys, names) != ([self.key] if self.key else [], self.names):
                reason = f"its columns are {listed(keys + names)}, others than in the files before it"
                raise FileFormatError(path=name, reason=reason, advice="give all files the same columns")
            self.names, self.key = names, (keys[0] if keys else None)
            rows = max(self.batch_bytes // (16 * max(len(names), 1)), 256)
            done = 0
            for batch in table.batches(keys + names, keys, names, rows, advance):
                features = batch.select(names)
                if done == 0:
                    plain = [column for column in features.schema if not is_list(column.type)]
                    self.has_lists = len(plain) < len(names)
                    if words := [column.name for column in plain if not is_number(column.type)]:
                        raise not_numbers(name, words, named=bool(keys))
                ids = None
                if keys:
                    ids = self._ids.ids(batch.column(0), keys[0], name, done, is_text=table.is_text)
                yield ids, self._numbers(features, name, done)
                done += batch.num_rows

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features; None before a file was read, or if a column holds lists."""
        return None if self.has_lists else self.names

    def finish(self) -> None:
        """Raise if ids are missing in a file whose other ids are numbers."""
        self._ids.finish()

    def _numbers(self, batch: pa.RecordBatch, name: str, done: int) -> np.ndarray:
        """The numbers of a batch, (row, column); a column of lists counts as columns of numbers."""
        columns = [
            self._column(column, f"column {what!r} of '{name}'", done)
            for what, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        out = np.empty((batch.num_rows, sum(column.shape[1] for column in columns)), self.dtype)
        at = 0
        for column in columns:
            out[:, at : at + column.shape[1]] = column
            at += column.shape[1]
        return out

    def _column(self, column: pa.Array, what: str, done: int) -> np.ndarray:
        """A column as a matrix of numbers within the range of float32."""
        column = _complete(column, what, done)
        width = 1
        if is_list(column.type):
            lengths = call_function("list_value_length", [column]).to_numpy()
            if (lengths != lengths[0]).any():
                bad = int(np.flatnonzero(lengths != lengths[0])[0])
                got = f"{lengths[bad]} in row {done + bad} (the first bad one)"
                raise InputError(parameter=what, value=done + bad, expected=f"hold {lengths[0]} numbers a row", got=got)
            width, column = int(lengths[0]), _complete(column.flatten(), f"the lists of {what}", 0)
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.float64(), safe=False)
        values = np.asarray(column)
        if values.dtype.itemsize > self.dtype.itemsize and loses_digits(values):
            text = f"{what} holds numbers beyond 2**24, which {self.dtype} rounds; pass dtype='float64' to keep them."
            warn(FishergraphWarning(text, kind=f"digits of {what}"))
        return within_single(values, what).reshape(-1, width)


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _complete(column: pa.Array, what: str, done: int) -> pa.Array:
    """A column without missing entries."""
    if column.null_count == 0 and pa.types.is_primitive(column.type):
        return column
    try:
        return check_column(column, what)
    except InputError as error:
        raise _further(error, what, done) from error


def _further(error: InputError, parameter: str, done: int) -> InputError:
    """An error of a batch as one of its file: rows before the batch count."""
    if error.expected != "be complete":
        return error.revised(parameter=parameter)
    row = done + int(error.value)
    return error.revised(parameter=parameter, value=row, got=f"a missing value in row {row}")


# --- files ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parquet:
    """A Parquet file."""

    path: Path
    names: list[str]
    header: None = None
    is_text: bool = False

    def batches(
        self, columns: list[str], words: list[str], numbers: list[str], rows: int, advance: Advance
    ) -> Iterator[pa.RecordBatch]:
        """Some columns in batches of rows."""
        size = self.path.stat().st_size
        with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
            total = max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(rows, columns=columns, use_threads=True):
                batch.validate(full=True)
                yield batch.select(columns)
                advance(size * batch.num_rows // total)


@dataclass(frozen=True)
class _Text:
    """A CSV or TSV file; `skip` lines at its begin are comments, and `header` are its names if it has none."""

    path: Path
    names: list[str]
    fields: list[str]
    header: list[str] | None
    separator: str
    skip: int
    is_text: bool = True

    def batches(
        self, columns: list[str], words: list[str], numbers: list[str], rows: int, advance: Advance
    ) -> Iterator[pa.RecordBatch]:
        """Some columns in batches; `words` are kept as written, and `numbers` are float64."""
        own = dict(zip(self.names, self.header or self.fields, strict=True))
        types: dict[str, pa.DataType] = {own[name]: pa.string() for name in words}
        types |= {own[name]: kind for name, kind in self._number_types(numbers, own).items()}
        convert = pacsv.ConvertOptions(
            column_types=types, include_columns=[own[name] for name in columns], strings_can_be_null=False
        )
        with self.path.open("rb") as raw:
            before = 0
            for batch in self._open(raw, convert, newlines=bool(words)):
                for start in range(0, batch.num_rows, max(rows, 1)):
                    yield batch.slice(start, rows).rename_columns(columns)
                advance(raw.tell() - before)
                before = raw.tell()

    def _number_types(self, numbers: list[str], own: dict[str, str]) -> dict[str, pa.DataType]:
        """float64 for columns that begin with numbers; true or false stay what they are, and words too."""
        if not numbers:
            return {}
        with self.path.open("rb") as raw:
            schema = self._open(raw, pacsv.ConvertOptions(include_columns=[own[name] for name in numbers])).schema
        kinds = dict(zip(numbers, schema.types, strict=True))
        plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
        return {name: pa.float64() if any(is_one(k) for is_one in plain) else k for name, k in kinds.items()}

    def _open(self, raw: Any, convert: pacsv.ConvertOptions, *, newlines: bool = False) -> Any:
        stream: Any = pa.PythonFile(raw, mode="r")
        if self.path.name.lower().endswith(".gz"):
            stream = pa.CompressedInputStream(stream, "gzip")
        read = pacsv.ReadOptions(block_size=_TEXT_BLOCK, column_names=self.header, skip_rows=self.skip)
        parse = pacsv.ParseOptions(delimiter=self.separator, newlines_in_values=newlines)
        return pacsv.open_csv(stream, read, parse, convert)


def open_table(path: Path, suffix: str, header: Header) -> _Parquet | _Text:
    """A table, whose columns are known."""
    if suffix == ".parquet":
        check_parquet(path)
        return _Parquet(path, distinct_names(path, pq.read_schema(path).names))
    zipped = suffix.endswith(".gz")
    check_text(path, check_readable(path), zipped=zipped)
    if zipped:
        check_gzip(path)
    with gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig") as file:
        skip, line = 0, file.readline()
        while line.startswith(("#", "%")) or (line and not line.strip()):
            skip, line = skip + 1, file.readline()
        separator = SEPARATORS[suffix] or next((s for s in "\t,;" if s in line), " ")
        fields = next(csv.reader([line], delimiter=separator), [])
    if not fields:
        raise FileFormatError(path=path, reason="it has no line of data", advice="name another file")
    check_columns(len(fields), f"'{path}'")
    if len(fields) == 1 and any(other in fields[0] for other in ",;\t|"):
        words = {",": "commas", "\t": "tabs"}.get(separator, "blanks")
        reason = f"its columns must be separated by {words}, got the first line {fields[0][:60]!r}"
        advice = "replace the separators, or name a file of commas .csv and one of tabs .tsv"
        raise FileFormatError(path=path, line=skip + 1, reason=reason, advice=advice)
    fields = [name.rstrip("\r\n") for name in fields]
    made = header(path, fields)
    names = distinct_names(path, [name.strip() for name in made or fields])
    return _Text(path, names, fields, made, separator, skip)
