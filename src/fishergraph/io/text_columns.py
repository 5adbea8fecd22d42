"""Columns of text tables: ids as they are written, numbers, and text; all lines are read, or what is wrong is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyarrow.compute import MatchSubstringOptions, call_function

from fishergraph._errors import FileFormatError
from fishergraph.io.cells import as_integers, is_text, trimmed, without_decimal_commas
from fishergraph.io.faults import TableFault
from fishergraph.io.files import check_readable, unreadable
from fishergraph.io.text_table import TextTable, first_bad_line

# Column names → the names of some columns
Choice = Callable[[list[str]], list[str]]
# Bytes before the first digit of a number, and after its last one.
_STARTS = np.frombuffer(b',;|\t\n\r" -+', np.uint8)
_ENDS = np.frombuffer(b',;|\t\n\r" ', np.uint8)
# A hexadecimal number, which Arrow reads as an integer; with its neighbours it has `OVERLAP` bytes at most.
_HEX = re.compile(rb'(?<=[\s,;|"])0[xX][0-9a-fA-F]{1,16}(?=[\s,;|"])')
_IS_HEX = MatchSubstringOptions(r"^\s*0[xX]")


def load_text(file: TextTable, ids: Choice) -> tuple[TextTable, pa.Table]:
    """The table of a file, and the file as it was read: `ids(names)` are the columns whose text is kept as written.

    A file with comments or runs of blanks between its lines is read again, without them. Lines of another width are
    left out: `ragged_faults` tells them.
    """
    columns = ids(file.names)
    return _settled(file, columns, lambda one: _read(one, columns))


def load_words(file: TextTable, names: list[str]) -> tuple[pa.Table, pa.Table]:
    """Some columns as text, without and with the words for missing values, such as NA; all lines must be alike."""
    columns = [file.names.index(name) for name in names]
    file, table = _settled(file, names, lambda one: one.read_words(columns, only=True))
    for fault in ragged_faults(file):
        raise fault.error
    missing = any(column.null_count for column in table.columns)
    return table, file.read_words(columns, only=True, missing=()) if missing else table


def _settled(file: TextTable, names: list[str], read: Callable[[TextTable], pa.Table]) -> tuple[TextTable, pa.Table]:
    """The file as it must be read, and what was read of it; these columns tell whether lines are comments."""
    head = check_readable(file.path)
    try:
        table = read(file)
        if not file.clean and _is_unclean(file, [table.column(name) for name in names]):
            file = file.cleaned()
            table = read(file)
    except UnicodeError as error:
        raise FileFormatError(path=file.path, reason=f"it is not text in {file.encoding} ({error})") from error
    except (FileFormatError, pa.ArrowException, OSError, EOFError) as error:
        if "UTF8" in str(error) or "UTF-8" in str(error):
            raise first_bad_line(file) from error
        raise unreadable(file.path, head, error) from error
    if any(str(kind) == "binary" for kind in table.schema.types):
        raise first_bad_line(file)
    return file, table


def _is_unclean(file: TextTable, columns: list[pa.ChunkedArray]) -> bool:
    """Whether some lines are comments, or have more blanks than columns."""
    if any(line.lstrip().startswith(("#", "%")) for line in file.ragged):
        return True
    if file.header is not None and not file.kept_marks and columns and _begins_with_mark(columns[0]):
        return True
    if file.separator != " ":
        return False
    texts = [column for column in columns if not pa.types.is_integer(column.type)]
    empty = any(call_function("any", [call_function("equal", [text.cast(pa.string()), ""])]).as_py() for text in texts)
    return bool(file.ragged) or empty or any(column.null_count for column in columns)


def _begins_with_mark(column: pa.ChunkedArray) -> bool:
    """Whether an id of a column looks like a comment."""
    if not is_text(column):
        return False
    marked = call_function("match_substring_regex", [column], MatchSubstringOptions(r"^\s*[#%]"))
    return call_function("any", [marked]).as_py() is True


def ragged_faults(file: TextTable) -> list[TableFault]:
    """The fault of lines with another number of columns than the others, in the last reading."""
    if not file.ragged:
        return []
    count, first = file.other_widths()
    if not count:  # only in the eyes of Arrow
        count, first = len(file.ragged), []
    width = len(file.names)
    columns = "1 column" if width == 1 else f"{width} columns"
    shown = ", ".join(f"{cells:,} in line {line:,}" for line, cells in first)
    more = f", … in all {count:,} such lines" if count > len(first) else ""
    reason = f"every line must have {columns}, got {shown or 'others'}{more}"
    error = FileFormatError(
        path=file.path, line=first[0][0] if first else None, reason=reason, advice="repair these lines"
    )
    lines = np.array([line for line, _ in first], dtype=np.int64)
    return [TableFault(error, f"line{{s}} without {columns}", lines, lines=True, count=count)]


# --- ids and numbers ------------------------------------------------------------------------------------


def _read(file: TextTable, ids: list[str]) -> pa.Table:
    """The table in a text file; the text of ids is kept as written."""
    columns = [file.names.index(key) for key in ids]
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
    return _without_commas(_without_hex(table, columns, file), columns, file)


def _without_hex(table: pa.Table, ids: list[int], file: TextTable) -> pa.Table:
    """The table with text in columns of hexadecimal numbers, which Arrow has read as integers."""
    numbers = [k for k, kind in enumerate(table.schema.types) if str(kind) == "int64" and k not in ids]
    if not numbers or not has_hex(file):
        return table
    words = file.read_words(numbers, only=True)
    for k, column in zip(numbers, words.columns, strict=True):
        if call_function("any", [call_function("match_substring_regex", [column], _IS_HEX)]).as_py():
            table = table.set_column(k, file.names[k], cast(Any, column))
    return table


def _without_commas(table: pa.Table, ids: list[int], file: TextTable) -> pa.Table:
    """The table with numbers in columns of decimal commas, if the commas separate nothing."""
    file.decimals.clear()
    if file.separator == ",":
        return table
    for k, column in enumerate(table.columns):
        if k not in ids and is_text(column) and (numbers := without_decimal_commas(column)) is not column:
            file.decimals.append(file.names[k])
            table = table.set_column(k, file.names[k], cast(Any, numbers))
    return table


def loses_zeros(file: TextTable) -> bool:
    """Whether some integer has a leading zero or a sign that it would lose, such as 007 and -0."""
    for piece in file.pieces():
        text = np.frombuffer(piece, np.uint8)
        zeros = np.flatnonzero(text[1:-1] == ord("0"))
        before, behind = text[zeros], text[zeros + 2]
        longer = ((behind >= ord("0")) & (behind <= ord("9"))) | (behind | 32 == ord("x"))
        if np.isin(before[longer], _STARTS).any() or np.isin(behind[before == ord("-")], _ENDS).any():
            return True
    return False


def has_hex(file: TextTable) -> bool:
    """Whether there is a hexadecimal number, which Arrow reads as an integer."""
    # The first tests are fast, and few files pass them.
    return any(
        ((b"x" in text and b"0x" in text) or (b"X" in text and b"0X" in text)) and _HEX.search(text)
        for text in file.pieces()
    )
