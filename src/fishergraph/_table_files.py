"""Files of tables as they are read: text and Parquet as Arrow tables, npz as arrays."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from pyarrow.compute import SetLookupOptions, call_function

from fishergraph import _file_checks

SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".parquet": "", ".npz": ""}
_READ_ERRORS = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, csv.Error)
_CHUNK = 1 << 24  # bytes that are read at once
# What may stand before the first digit of a number.
_STARTS = np.frombuffer(b',\t\n\r" -+', np.uint8)
# (the path, the fields of the first line) → the names of the columns, where that line is data
Header = Callable[[Path, list[str]], list[str] | None]


def read_table(path: Path, suffix: str, header: Header, ids: Callable[[list[str]], list[str]]) -> pa.Table:
    """A CSV, TSV or Parquet file; `ids(names)` are the columns that hold ids, whose text is kept as it is written."""
    head = _file_checks.check_readable(path)
    try:
        if suffix == ".parquet":
            table = pq.read_table(path, partitioning=cast(Any, None))
            ids(_distinct_names(path, table.column_names))
            return table
        _file_checks.check_text(path, head, zipped=suffix.endswith(".gz"))
        return _read_text(path, suffix, header, ids)
    except _READ_ERRORS as error:
        raise _file_checks.unreadable(path, head, error) from error


def _read_text(path: Path, suffix: str, header: Header, ids: Callable[[list[str]], list[str]]) -> pa.Table:
    zipped, mark = suffix.endswith(".gz"), SUFFIXES[suffix]
    with gzip.open(path, "rt", encoding="utf-8-sig") if zipped else path.open(encoding="utf-8-sig") as file:
        fields = next((fields for fields in csv.reader(file, delimiter=mark) if fields), [])
    _check_separator(path, fields, mark)
    given = header(path, fields)
    keys = ids(_distinct_names(path, given or fields))

    def read(types: dict[str, pa.DataType]) -> pa.Table:
        options = pacsv.ReadOptions(block_size=_CHUNK, column_names=given)
        return pacsv.read_csv(
            path, options, pacsv.ParseOptions(delimiter=mark), pacsv.ConvertOptions(column_types=types)
        )

    table = read({})
    kinds = {str(table.column(key).type) for key in keys}
    if kinds <= {"string", "null"} or (kinds <= {"int64", "string", "null"} and not _zeros_lead(path, zipped)):
        return table
    table = read(dict.fromkeys(keys, pa.string()))  # again, which takes longer, and few files need it
    for key in keys:
        table = table.set_column(table.column_names.index(key), key, cast(Any, _whole_numbers(table.column(key))))
    return table


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
    text = call_function("utf8_trim_whitespace", [column])
    nothing = SetLookupOptions(value_set=pa.array(pacsv.ConvertOptions().null_values))
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


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, none of them pickled."""
    head = _file_checks.check_readable(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except Exception as error:  # zipfile, zlib and NumPy each have errors of their own
        raise _file_checks.unreadable(path, head, error) from error


def entry(path: Path, arrays: dict[str, np.ndarray], key: str, shape: tuple[int, ...] = ()) -> np.ndarray:
    """An array of an npz file, of the given shape if there is one."""
    if key not in arrays:
        raise ValueError(f"'{path}' must hold an array {key!r}, got {', '.join(arrays) or 'none'}; add it.")
    if shape and arrays[key].shape != shape:
        raise ValueError(f"{key} in '{path}' must have shape {shape}, got {arrays[key].shape}; repair it.")
    return arrays[key]
