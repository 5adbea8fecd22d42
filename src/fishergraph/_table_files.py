"""Files of tables as they are read and written, text and Parquet, by way of Arrow tables."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow.compute import MatchSubstringOptions, ReplaceSubstringOptions, SetLookupOptions, call_function

from fishergraph import _archive_checks, _file_checks
from fishergraph._npz_files import SUFFIXES
from fishergraph._text_files import MISSING, Header, TextFile, distinct_names, has_hex, loses_zeros

_READ_ERRORS = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error, zlib.error)
_IS_HEX = MatchSubstringOptions(r"^\s*0[xX]")
# Column names → those of some columns
Choice = Callable[[list[str]], list[str]]


def read_table(path: Path, suffix: str, header: Header, ids: Choice) -> pa.Table:
    """A CSV, TSV or Parquet file; `ids(names)` are the columns that hold ids, whose text is kept as it is written.

    Blanks around a name or an id in a text file belong to neither.
    """
    head = _file_checks.check_readable(path)
    try:
        if suffix == ".parquet":
            table = _read_parquet(path, head)
            ids(distinct_names(path, table.column_names))
            return table
        _file_checks.check_text(path, head, zipped=suffix.endswith(".gz"))
        return _read_text(TextFile.open(path, suffix, header), ids)
    except _READ_ERRORS as error:
        raise _file_checks.unreadable(path, head, error) from error


def _read_parquet(path: Path, head: bytes) -> pa.Table:
    try:
        _archive_checks.check_parquet(path)
    except ValueError as error:
        raise _file_checks.unreadable(path, head, error) from error
    table = pq.read_table(path, partitioning=cast(Any, None))
    table.validate(full=True)  # of text, whose bytes and offsets are taken as they come otherwise
    return table


def read_cells(path: Path, suffix: str, header: Header, wanted: Choice) -> dict[str, tuple[list[Any], list[str]]]:
    """Some columns of a text file: the cells, None where one is missing, and the words that say so, such as NA.

    A word in quotes is never missing. Cells are integers where a column holds nothing else, each written as it is
    printed, else text.
    """
    head = _file_checks.check_readable(path)
    try:
        _file_checks.check_text(path, head, zipped=suffix.endswith(".gz"))
        file = TextFile.open(path, suffix, header)
        places = [file.names.index(name) for name in wanted(file.names)]
        table = file.read_words(places, only=True)
        words = file.read_words(places, only=True, missing=()) if any(c.null_count for c in table.columns) else table
    except _READ_ERRORS as error:
        raise _file_checks.unreadable(path, head, error) from error
    cells = {}
    for name, column, text in zip(table.column_names, table.columns, words.columns, strict=True):
        column = _whole_numbers(column)
        marks = {word.strip() for word in text.filter(column.is_null()).to_pylist()}
        cells[name] = (column.to_pylist(), sorted(marks - {""}))
    return cells


def _read_text(file: TextFile, ids: Choice) -> pa.Table:
    places = [file.names.index(key) for key in ids(file.names)]
    try:
        table = file.read().rename_columns(file.names)
    except pa.ArrowInvalid:  # a type that changes after the first chunk, or a line end in quotes
        table = None
    # Again, which takes longer, and few files need it.
    if table is None or not _are_exact([table.column(place) for place in places], file):
        table, repair = file.read_words(places), _whole_numbers
    else:
        repair = _trimmed
    for place in places:
        if str(table.column(place).type) == "string":
            table = table.set_column(place, file.names[place], cast(Any, repair(table.column(place))))
    return _without_hex(table, places, file)


def _are_exact(columns: list[pa.ChunkedArray], file: TextFile) -> bool:
    """Whether ids lost nothing when Arrow read them: all are text, or integers that are written as they are printed."""
    kinds = {str(column.type) for column in columns}
    if kinds <= {"string"}:
        return True
    return kinds <= {"int64", "string"} and not any(c.null_count for c in columns) and not loses_zeros(file)


def _without_hex(table: pa.Table, ids: list[int], file: TextFile) -> pa.Table:
    """The table with its other columns as text where they hold hexadecimal numbers, which nobody expects there."""
    numbers = [k for k, kind in enumerate(table.schema.types) if str(kind) == "int64" and k not in ids]
    if not numbers or not has_hex(file):
        return table
    words = file.read_words(numbers, only=True)
    for k, column in zip(numbers, words.columns, strict=True):
        if call_function("any", [call_function("match_substring_regex", [column], _IS_HEX)]).as_py():
            table = table.set_column(k, file.names[k], cast(Any, column))
    return table


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without the blanks around it, and without the quotes that were none for the blanks before them."""
    text = call_function("utf8_trim_whitespace", [column])
    if call_function("all", [call_function("equal", [text, column])]).as_py() is not False:
        return column
    quoted = ReplaceSubstringOptions(r'^\s+"(.*)"\s*$', r"\1")
    return call_function("utf8_trim_whitespace", [call_function("replace_substring_regex", [column], quoted)])


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as int64 where nothing is lost, that is where every number is written as it would be printed: 7, not 007.

    Blanks around a word such as NA do not make it another one.
    """
    text = _trimmed(column)
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


def _are_numbers(fields: list[str]) -> bool:
    try:
        return bool([float(field) for field in fields])
    except ValueError:
        return False


def edge_header(path: Path, fields: list[str]) -> list[str] | None:
    """Column names for an edge file whose first line is data, that is two or three numbers."""
    return ["source", "target", "weight"][: len(fields)] if _are_numbers(fields) and 2 <= len(fields) <= 3 else None


def node_header(path: Path, fields: list[str]) -> None:
    """None; raises for a node file whose first line is data. The names 0, 1, 2, … are those pandas gives."""
    if _are_numbers(fields) and fields != [str(k) for k in range(len(fields))]:
        raise ValueError(
            f"'{path}' must begin with a line of column names, got numbers only in its first line; "
            "add one, such as id,x0,x1."
        )


# --- writing --------------------------------------------------------------------------------------------

# Bytes of a file per byte of the float32 numbers in it, roughly; 1 for those that are not named.
_BYTES_PER_BYTE = {".csv": 2.6, ".tsv": 2.6, ".csv.gz": 1.2, ".tsv.gz": 1.2}
Advance = Callable[[int], Any]


def counted(file: IO[bytes], suffix: str, advance: Advance) -> Any:
    """An open file that calls `advance(n)` as it is written to, with the bytes of the numbers that it stands for."""
    return _CountedFile(file, advance, _BYTES_PER_BYTE.get(suffix, 1.0))


class _CountedFile:
    def __init__(self, file: IO[bytes], advance: Advance, per_byte: float):
        self._file, self._advance, self._per_byte = file, advance, per_byte

    def write(self, data: Any) -> int:
        written = self._file.write(data)
        self._advance(int(written / self._per_byte))
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def write_blocks(file: IO[bytes], suffix: str, schema: pa.Schema, blocks: Iterable[pa.Table]) -> None:
    """Write blocks of rows, one after the other, as one CSV, TSV or Parquet table into an open file."""
    with pa.output_stream(file, compression="gzip" if suffix.endswith(".gz") else None) as sink:
        if suffix == ".parquet":
            # A dictionary of floats that nearly all differ takes six times as long, and half as much space again.
            repeating: Any = [field.name for field in schema if not pa.types.is_floating(field.type)]
            writer = pq.ParquetWriter(sink, schema, use_dictionary=repeating)
        else:
            writer = pacsv.CSVWriter(sink, schema, write_options=pacsv.WriteOptions(delimiter=SUFFIXES[suffix]))
        with writer:
            for block in blocks:
                check_kept(suffix, block)
                writer.write_table(block)


def check_kept(suffix: str, table: pa.Table) -> None:
    """Raise for text that a CSV or TSV file would not give back: `read_table` drops blanks around it."""
    if not SUFFIXES[suffix]:  # of other files
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        if str(column.type) not in ("string", "large_string"):
            continue
        bare = call_function("utf8_trim_whitespace", [column])
        changed = column.filter(call_function("not_equal", [bare, column]))
        if len(changed):
            word = changed[0].as_py()[:60]
            raise ValueError(
                f"column {name!r} must have no blanks around its words in a {suffix} file, got {word!r}; remove them, "
                "or write a .parquet file."
            )
