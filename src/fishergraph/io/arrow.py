"""CSV, TSV and Parquet files, read and written as Arrow tables."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import scipy.sparse as sp
from pyarrow.compute import MatchSubstringOptions, ReplaceSubstringOptions, SetLookupOptions, call_function

from fishergraph._errors import FileFormatError, InputError
from fishergraph.io.archives import check_columns, check_gzip
from fishergraph.io.files import Advance, CountedReader, check_readable, check_text, count_nothing, unreadable
from fishergraph.io.npz import SUFFIXES
from fishergraph.io.parquet import BlockTable, MemoryBlocks, ParquetBlocks

MISSING = frozenset(pacsv.ConvertOptions().null_values)  # words for a missing value: nothing, NA, NaN, null, …
_READ_ERRORS = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error, FileFormatError)
_CHUNK = 1 << 24  # bytes that are read at once
_BOM = b"\xef\xbb\xbf"
# Bytes before the first digit of a number, and after its last one.
_STARTS = np.frombuffer(b',;|\t\n\r" -+', np.uint8)
_ENDS = np.frombuffer(b',;|\t\n\r" ', np.uint8)
# A hexadecimal number, which Arrow reads as an integer, and the most bytes it can have with its neighbours.
_HEX, _HEX_BYTES = re.compile(rb'(?<=[\s,;|"])0[xX][0-9a-fA-F]{1,16}(?=[\s,;|"])'), 20
_IS_HEX = MatchSubstringOptions(r"^\s*0[xX]")
# Column names → the names of some columns
Choice = Callable[[list[str]], list[str]]
# (path, fields of the first line) → the names of the columns, if that line is data
Header = Callable[[Path, list[str]], list[str] | None]


@contextmanager
def explained(path: Path, suffix: str) -> Iterator[None]:
    """Errors in the block name the file, and what its first bytes look like."""
    head = check_readable(path)
    try:
        if suffix != ".parquet":
            check_text(path, head, zipped=suffix.endswith(".gz"))
        yield
    except _READ_ERRORS as error:
        raise unreadable(path, head, error) from error


def open_table(path: Path, suffix: str, header: Header, ids: Choice, advance: Advance = count_nothing) -> BlockTable:
    """A CSV, TSV or Parquet file; `ids(names)` are the columns that hold ids, whose text is kept as written.

    Blanks around names and ids of a text file are removed. `advance(n)` is called with the bytes of a text file that
    were read.
    """
    if suffix not in SUFFIXES:
        from fishergraph.io.graph_files import read_graph_file

        return MemoryBlocks(read_graph_file(path, suffix, advance).nodes)
    with explained(path, suffix):
        if suffix != ".parquet":
            return MemoryBlocks(read_text(TextFile.open(path, suffix, header, advance), ids))
        blocks = ParquetBlocks(path)
        ids(distinct_names(path, blocks.schema.names))
        return blocks


def read_table(path: Path, suffix: str, header: Header, ids: Choice, advance: Advance = count_nothing) -> pa.Table:
    """All columns of a CSV, TSV or Parquet file, as `open_table` describes them."""
    table = open_table(path, suffix, header, ids, advance)
    with explained(path, suffix):
        columns = table.columns(table.schema.names)
    if suffix == ".parquet":
        advance(path.stat().st_size)
    return columns


def column_names(path: Path, suffix: str, header: Header) -> list[str]:
    """The names of the columns of a CSV, TSV or Parquet file."""
    with explained(path, suffix):
        if suffix == ".parquet":
            return pq.read_schema(path).names
        return TextFile.open(path, suffix, header).names


def read_cells(path: Path, suffix: str, header: Header, wanted: Choice) -> dict[str, tuple[list[Any], list[str]]]:
    """Some columns of a text file: the cells (None if missing) and the words that mark missing cells, such as NA.

    A word in quotes is never missing. Cells are integers if all cells of a column are, each written as it is printed,
    else text.
    """
    with explained(path, suffix):
        file = TextFile.open(path, suffix, header)
        columns = [file.names.index(name) for name in wanted(file.names)]
        table = file.read_words(columns, only=True)
        words = file.read_words(columns, only=True, missing=()) if any(c.null_count for c in table.columns) else table
    cells = {}
    for name, column, text in zip(table.column_names, table.columns, words.columns, strict=True):
        column = as_integers(column)
        marks = {word.strip() for word in text.filter(column.is_null()).to_pylist()}
        cells[name] = (column.to_pylist(), sorted(marks - {""}))
    return cells


def read_text(file: TextFile, ids: Choice) -> pa.Table:
    """The table in a text file; `ids(names)` are the columns that hold ids, whose text is kept as written."""
    columns = [file.names.index(key) for key in ids(file.names)]
    try:
        table = file.read().rename_columns(file.names)
    except pa.ArrowInvalid:  # a type that changes after the first chunk, or a line end in quotes
        table = None
    # Arrow keeps ids as written if all are text, or integers written as they are printed. Few files are read again.
    ids_read = [] if table is None else [table.column(k) for k in columns]
    kinds = {str(column.type) for column in ids_read}
    exact = kinds <= {"int64", "string"} and not any(column.null_count for column in ids_read)
    if table is None or not (kinds <= {"string"} or (exact and not loses_zeros(file))):
        table, repair = file.read_words(columns), as_integers
    else:
        repair = trimmed
    for k in columns:
        if str(table.column(k).type) == "string":
            table = table.set_column(k, file.names[k], cast(Any, repair(table.column(k))))
    return _without_hex(table, columns, file)


def _without_hex(table: pa.Table, ids: list[int], file: TextFile) -> pa.Table:
    """The table with text in columns of hexadecimal numbers, which Arrow has read as integers."""
    numbers = [k for k, kind in enumerate(table.schema.types) if str(kind) == "int64" and k not in ids]
    if not numbers or not has_hex(file):
        return table
    words = file.read_words(numbers, only=True)
    for k, column in zip(numbers, words.columns, strict=True):
        if call_function("any", [call_function("match_substring_regex", [column], _IS_HEX)]).as_py():
            table = table.set_column(k, file.names[k], cast(Any, column))
    return table


def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without the blanks around it, and without quotes that follow a blank, which the parser keeps."""
    text = call_function("utf8_trim_whitespace", [column])
    if call_function("all", [call_function("equal", [text, column])]).as_py() is not False:
        return column
    quoted = ReplaceSubstringOptions(r'^\s+"(.*)"\s*$', r"\1")
    return call_function("utf8_trim_whitespace", [call_function("replace_substring_regex", [column], quoted)])


def as_integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as int64 if nothing is lost, that is if every number is written as it is printed: 7, not 007.

    Blanks around a word such as NA are ignored.
    """
    text = trimmed(column)
    if text is not column:
        bare = call_function("is_in", [text], SetLookupOptions(value_set=pa.array(sorted(MISSING))))
        blank = call_function("and", [bare, call_function("not_equal", [text, column])])
        text = call_function("if_else", [blank, pa.scalar(None, pa.string()), text])
    column = text
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    same = call_function("equal", [numbers.cast(pa.string()), column])
    return numbers if call_function("all", [same]).as_py() is not False else column


def are_numbers(fields: list[str]) -> bool:
    """Whether all of some cells are numbers."""
    try:
        return bool([float(field) for field in fields])
    except ValueError:
        return False


def edge_header(path: Path, fields: list[str]) -> list[str] | None:
    """Column names of an edge file whose first line is data, that is two or three numbers."""
    return ["source", "target", "weight"][: len(fields)] if are_numbers(fields) and 2 <= len(fields) <= 3 else None


def node_header(path: Path, fields: list[str]) -> None:
    """None; raises for a node file whose first line is data. The names 0, 1, 2, … are those of pandas."""
    if are_numbers(fields) and fields != [str(k) for k in range(len(fields))]:
        reason, advice = "a line of column names is expected, not of numbers", "add one, such as id,x0,x1"
        raise FileFormatError(path=path, line=1, reason=reason, advice=advice)


# --- text files -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextFile:
    """A CSV or TSV file whose first line was read.

    `header` are the names of the columns if the first line is data, else None; `fields` are those of the first line.
    """

    path: Path
    zipped: bool
    separator: str
    header: list[str] | None
    fields: list[str]
    names: list[str]
    advance: Advance = count_nothing

    @classmethod
    def open(cls, path: Path, suffix: str, header: Header, advance: Advance = count_nothing) -> TextFile:
        """The file at a path; its names are those of its first line, or of `header` if that line is data."""
        zipped, separator = suffix.endswith(".gz"), SUFFIXES[suffix]
        if zipped:
            check_gzip(path)
        with gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig") as file:
            fields = next((fields for fields in csv.reader(file, delimiter=separator) if fields), [])
        check_columns(len(fields), f"'{path}'")
        if len(fields) == 1 and any(other in fields[0] for other in ",;\t|"):
            words = {",": "commas", "\t": "tabs"}[separator]
            reason = f"its columns must be separated by {words}, got the first line {fields[0][:60]!r}"
            advice = "replace the separators, or name a file of commas .csv and one of tabs .tsv"
            raise FileFormatError(path=path, line=1, reason=reason, advice=advice)
        made = header(path, fields)
        names = distinct_names(path, [_bare(name) for name in made or fields])
        return cls(path, zipped, separator, made, fields, names, advance)

    def read(self) -> pa.Table:
        """The table as Arrow infers it, which is fast; raises ArrowInvalid if a type changes late."""
        return self._read(pacsv.ParseOptions(delimiter=self.separator), pacsv.ConvertOptions())

    def read_words(self, chosen: list[int], *, only: bool = False, missing: Iterable[str] = MISSING) -> pa.Table:
        """The table with some columns as text, or `only` these columns; unquoted words in `missing` are null."""
        columns = [(self.header or self.fields)[k] for k in chosen]
        convert = pacsv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            include_columns=columns if only else [],
            null_values=list(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        table = self._read(pacsv.ParseOptions(delimiter=self.separator, newlines_in_values=True), convert)
        return table.rename_columns([self.names[k] for k in chosen] if only else self.names)

    def _read(self, parse: pacsv.ParseOptions, convert: pacsv.ConvertOptions) -> pa.Table:
        options = pacsv.ReadOptions(block_size=_CHUNK, column_names=self.header)
        with self.path.open("rb") as file:
            source = pa.input_stream(CountedReader(file, self.advance), compression="gzip" if self.zipped else None)
            return pacsv.read_csv(source, options, parse, convert)

    def pieces(self) -> Iterator[bytes]:
        """The text between two line ends, in pieces that overlap by the length of a hexadecimal number."""
        with gzip.open(self.path) if self.zipped else self.path.open("rb") as file:
            start = file.read(len(_BOM))
            before = b"\n" if start == _BOM else b"\n" + start
            while chunk := file.read(_CHUNK):
                piece = before + chunk
                yield piece
                before = piece[-_HEX_BYTES:]
            yield before + b"\n"


def _bare(name: str) -> str:
    """The name of a column without blanks around it, and without quotes that follow a blank."""
    bare = name.strip()
    return bare[1:-1] if name[:1].isspace() and len(bare) > 1 and bare[0] == bare[-1] == '"' else bare


def distinct_names(path: Path, names: list[str]) -> list[str]:
    """The names of columns unchanged; raises if two are the same."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        reason = f"two columns have the name {repeated[0][:60]!r}"
        raise FileFormatError(path=path, reason=reason, advice="rename one")
    return names


def loses_zeros(file: TextFile) -> bool:
    """Whether some integer has a leading zero or a sign that it would lose, such as 007 and -0."""
    for piece in file.pieces():
        text = np.frombuffer(piece, np.uint8)
        zeros = np.flatnonzero(text[1:-1] == ord("0"))
        before, behind = text[zeros], text[zeros + 2]
        longer = ((behind >= ord("0")) & (behind <= ord("9"))) | (behind | 32 == ord("x"))
        if np.isin(before[longer], _STARTS).any() or np.isin(behind[before == ord("-")], _ENDS).any():
            return True
    return False


def has_hex(file: TextFile) -> bool:
    """Whether there is a hexadecimal number, which Arrow reads as an integer."""
    # The first tests are fast, and few files pass them.
    return any(
        ((b"x" in text and b"0x" in text) or (b"X" in text and b"0X" in text)) and _HEX.search(text)
        for text in file.pieces()
    )


# --- writing --------------------------------------------------------------------------------------------

# Approximate bytes of a file per byte of the float32 numbers in it; 1 for other files.
_BYTES_PER_BYTE = {".csv": 2.6, ".tsv": 2.6, ".csv.gz": 1.2, ".tsv.gz": 1.2}
Column = Callable[[slice], Any]  # the values of some rows
CELLS = 1 << 25  # of a block of rows


class CountedFile:
    """An open file that calls `advance(n)` as it is written to, with the bytes of the numbers in it."""

    def __init__(self, file: IO[bytes], suffix: str, advance: Advance):
        self._file, self._advance, self._per_byte = file, advance, _BYTES_PER_BYTE.get(suffix, 1.0)

    def write(self, data: Any) -> int:
        written = self._file.write(data)
        self._advance(int(written / self._per_byte))
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def table_writer(file: Any, suffix: str, schema: pa.Schema) -> Iterator[Callable[[pa.Table], Any]]:
    """A function that writes rows of a CSV, TSV or Parquet table into an open file; rows of one call are one group."""
    with pa.output_stream(file, compression="gzip" if suffix.endswith(".gz") else None) as sink:
        if suffix == ".parquet":
            writer: Any = pq.ParquetWriter(sink, schema, **_parquet_options(schema))
        else:
            writer = pacsv.CSVWriter(sink, schema, write_options=pacsv.WriteOptions(delimiter=SUFFIXES[suffix]))

        def write(table: pa.Table) -> None:
            check_kept(suffix, table)
            writer.write_table(table, len(table))

        with writer:
            yield write


def _parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Floats that nearly all differ are stored as they are; other columns have dictionaries, and are compressed."""
    kinds = [kind.value_type if pa.types.is_fixed_size_list(kind) else kind for kind in schema.types]
    others = [name for name, kind in zip(schema.names, kinds, strict=True) if not pa.types.is_floating(kind)]
    return {"use_dictionary": others, "compression": dict.fromkeys(others, "snappy"), "write_statistics": others}


def write_table(
    file: Any, suffix: str, columns: Mapping[str, Column], n_rows: int, X: Any = None, names: Sequence[str] = ()
) -> None:
    """Write columns, then those of a matrix X, as one CSV, TSV or Parquet table into an open file.

    The table is made by blocks of rows, so that a memory-mapped or sparse X is never dense at once.
    """
    schema = _block(columns, slice(0, 1), X, names).schema
    step = max(CELLS // len(schema), 1)
    with table_writer(file, suffix, schema) as write:
        for start in range(0, n_rows, step):
            write(_block(columns, slice(start, min(start + step, n_rows)), X, names))


def _block(columns: Mapping[str, Column], rows: slice, X: Any, names: Sequence[str]) -> pa.Table:
    """Some rows of the table; masked values are null."""
    arrays = []
    for column in columns.values():
        values = column(rows)
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        arrays.append(pa.array(np.asarray(values), mask=mask))
    if X is not None:
        block = X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows])
        dtype = (
            np.dtype(np.float32) if block.dtype == np.float16 else block.dtype.newbyteorder("=")
        )  # CSV has no float16
        arrays += [pa.array(column) for column in np.ascontiguousarray(block.T, dtype=dtype)]
    return pa.table(arrays, names=[*columns, *names])


def check_kept(suffix: str, table: pa.Table) -> None:
    """Raise for text that a CSV or TSV file would change: `read_table` drops blanks around it."""
    if not SUFFIXES.get(suffix):  # not a text file
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        if str(column.type) not in ("string", "large_string"):
            continue
        bare = call_function("utf8_trim_whitespace", [column])
        changed = column.filter(call_function("not_equal", [bare, column]))
        if len(changed):
            expected = f"have no blanks around its words in a {suffix} file"
            advice = "remove them, or write a .parquet file"
            word = changed[0].as_py()
            raise InputError(parameter=f"column {name!r}", value=word, expected=expected, advice=advice)
