"""Files of tables as they are read and written, text and Parquet, by way of Arrow tables."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow.compute import ReplaceSubstringOptions, SetLookupOptions, call_function

from fishergraph import _archive_checks, _file_checks
from fishergraph._npz_files import SUFFIXES

_READ_ERRORS = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error)
MISSING = frozenset(pacsv.ConvertOptions().null_values)  # what stands for a missing value: nothing, NA, NaN, null, …
_CHUNK = 1 << 24  # bytes that are read at once
# What may stand before the first digit of a number.
_STARTS = np.frombuffer(b',\t\n\r" -+', np.uint8)
# (the path, the fields of the first line) → the names of the columns, where that line is data
Header = Callable[[Path, list[str]], list[str] | None]


def read_table(path: Path, suffix: str, header: Header, ids: Callable[[list[str]], list[str]]) -> pa.Table:
    """A CSV, TSV or Parquet file; `ids(names)` are the columns that hold ids, whose text is kept as it is written.

    Blanks around a name or an id in a text file belong to neither.
    """
    head = _file_checks.check_readable(path)
    try:
        if suffix == ".parquet":
            _archive_checks.check_parquet(path)
            table = pq.read_table(path, partitioning=cast(Any, None))
            ids(_distinct_names(path, table.column_names))
            return table
        _file_checks.check_text(path, head, zipped=suffix.endswith(".gz"))
        if suffix.endswith(".gz"):
            _archive_checks.check_gzip(path)
        return _read_text(path, suffix, header, ids)
    except _READ_ERRORS as error:
        raise _file_checks.unreadable(path, head, error) from error


def _read_text(path: Path, suffix: str, header: Header, ids: Callable[[list[str]], list[str]]) -> pa.Table:
    zipped, mark = suffix.endswith(".gz"), SUFFIXES[suffix]
    with gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig") as file:
        fields = next((fields for fields in csv.reader(file, delimiter=mark) if fields), [])
    _archive_checks.check_columns(len(fields), f"'{path}'")
    _check_separator(path, fields, mark)
    given = header(path, fields)
    names = _distinct_names(path, [_bare(name) for name in given or fields])
    places = [names.index(key) for key in ids(names)]

    def read(types: dict[str, pa.DataType]) -> pa.Table:
        options = pacsv.ReadOptions(block_size=_CHUNK, column_names=given)
        parse, convert = pacsv.ParseOptions(delimiter=mark), pacsv.ConvertOptions(column_types=types)
        return pacsv.read_csv(path, options, parse, convert).rename_columns(names)

    table, repair = read({}), _trimmed
    kinds = {str(table.column(place).type) for place in places}
    if not (kinds <= {"string", "null"} or (kinds <= {"int64", "string", "null"} and not _zeros_lead(path, zipped))):
        # Again, which takes longer, and few files need it.
        table, repair = read({(given or fields)[place]: pa.string() for place in places}), _whole_numbers
    for place in places:
        if str(table.column(place).type) == "string":
            table = table.set_column(place, names[place], cast(Any, repair(table.column(place))))
    return table


def _bare(name: str) -> str:
    """The name of a column without blanks around it, and without quotes that were none for the blanks before them."""
    bare = name.strip()
    return bare[1:-1] if name[:1].isspace() and len(bare) > 1 and bare[0] == bare[-1] == '"' else bare


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without the blanks around it, and without the quotes that were none for the blanks before them."""
    text = call_function("utf8_trim_whitespace", [column])
    if call_function("all", [call_function("equal", [text, column])]).as_py() is not False:
        return column
    quoted = ReplaceSubstringOptions(r'^\s+"(.*)"\s*$', r"\1")
    return call_function("utf8_trim_whitespace", [call_function("replace_substring_regex", [column], quoted)])


def _zeros_lead(path: Path, zipped: bool) -> bool:
    """Whether some number begins with a zero that it would lose, as 007 does."""
    before = b"\n"
    with gzip.open(path) if zipped else path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            text = np.frombuffer(before + chunk, np.uint8)
            zeros = np.flatnonzero(text[1:-1] == ord("0"))
            digit = (text[zeros + 2] >= ord("0")) & (text[zeros + 2] <= ord("9"))
            if np.isin(text[zeros[digit]], _STARTS).any():
                return True
            before = text[-2:].tobytes()
    return False


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as int64 where nothing is lost, that is where every number is written as it would be printed: 7, not 007."""
    column = text = _trimmed(column)
    nothing = SetLookupOptions(value_set=pa.array(sorted(MISSING)))
    text = call_function("if_else", [call_function("is_in", [text], nothing), pa.scalar(None, pa.string()), text])
    try:
        numbers = text.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    same = call_function("equal", [numbers.cast(pa.string()), text])
    return numbers if call_function("all", [same]).as_py() is not False else column


def _distinct_names(path: Path, names: list[str]) -> list[str]:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"column names must differ, got {repeated[0]!r} twice in '{path}'; rename one.")
    return names


def _check_separator(path: Path, fields: list[str], mark: str) -> None:
    """Raise where a line is one field that another separator would cut."""
    if len(fields) == 1 and any(other in fields[0] for other in ",;\t|"):
        named = {",": "commas", "\t": "tabs"}[mark]
        raise ValueError(
            f"'{path}' must have its columns separated by {named}, got the first line {fields[0][:60]!r}; "
            "replace the separators, or name a file of commas .csv and one of tabs .tsv."
        )


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
                writer.write_table(block)
