"""Cells and names of text tables: numbers as they are written, decimal commas, blanks, missing values."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
from pyarrow.compute import MatchSubstringOptions, ReplaceSubstringOptions, SetLookupOptions, call_function

from fishergraph._errors import FileFormatError

MISSING = frozenset(pacsv.ConvertOptions().null_values)  # words for a missing value: nothing, NA, NaN, null, …
_MARKS = pa.array(sorted(MISSING), pa.string())
# A number with a decimal comma, which may have points between thousands.
_COMMA = r"^\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?\s*$"
_MOST = 0.9  # the share of such cells that makes a column of them; the others are words


def distinct_names(path: Path, names: list[str]) -> list[str]:
    """The names of columns unchanged; raises if two are the same."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        reason = f"two columns have the name {repeated[0][:60]!r}"
        raise FileFormatError(path=path, reason=reason, advice="rename one")
    return names


def bare_name(name: str) -> str:
    """The name of a column without blanks around it, and without quotes that follow a blank."""
    bare = name.strip()
    return bare[1:-1] if name[:1].isspace() and len(bare) > 1 and bare[0] == bare[-1] == '"' else bare


def are_numbers(fields: list[str]) -> bool:
    """Whether all of some cells are numbers."""
    try:
        return bool([float(field) for field in fields])
    except ValueError:
        return False


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds text."""
    return str(column.type) in ("string", "large_string")


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
        bare = call_function("is_in", [text], SetLookupOptions(value_set=_MARKS))
        blank = call_function("and", [bare, call_function("not_equal", [text, column])])
        text = call_function("if_else", [blank, pa.scalar(None, pa.string()), text])
    column = text
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    same = call_function("equal", [numbers.cast(pa.string()), column])
    return numbers if call_function("all", [same]).as_py() is not False else column


def without_decimal_commas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of numbers such as 8,5 and 1.234,56 as float64; the column itself if it is none.

    If a tenth of the cells or fewer are other words, the column remains text, with a point in every number.
    """
    text = call_function("utf8_trim_whitespace", [column])
    empty = call_function("is_in", [text], SetLookupOptions(value_set=_MARKS.cast(column.type), skip_nulls=False))
    empty = call_function("or_kleene", [empty, call_function("is_null", [text])])
    commas = MatchSubstringOptions(",")
    if call_function("any", [call_function("match_substring", [text], commas)]).as_py() is not True:
        return column
    fits = call_function("match_substring_regex", [text], MatchSubstringOptions(_COMMA)).combine_chunks()
    cells = len(column) - _count(empty)
    if _count(fits) < _MOST * cells:
        return column
    plain: Any = call_function("replace_substring", [text], ReplaceSubstringOptions(".", ""))
    plain = call_function("replace_substring", [plain], ReplaceSubstringOptions(",", "."))
    if _count(fits) < cells:
        return call_function("if_else", [fits, plain, column])
    return call_function("if_else", [fits, plain, pa.scalar(None, column.type)]).cast(pa.float64())


def _count(mask: Any) -> int:
    """How many entries are true."""
    return int(call_function("sum", [mask]).as_py() or 0)
