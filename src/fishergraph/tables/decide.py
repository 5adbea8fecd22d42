"""Which kind a column is, and which columns say nothing: `decide`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow.compute import call_function

from fishergraph._validation import look_up
from fishergraph.io.spreads import are_row_numbers, names_ids
from fishergraph.tables.categories import Category, HashedCategory, Text, mean_words
from fishergraph.tables.columns import Column
from fishergraph.tables.numbers import Date, Flag, Number, Vector, is_binary
from fishergraph.tables.record import Presence, Record
from fishergraph.tables.tags import SEPARATORS, Tags
from fishergraph.tables.words import Words, matches, reads_as_dates, reads_as_flags, reads_as_numbers

KINDS: dict[str, type[Record]] = {
    "number": Number,
    "boolean": Flag,
    "category": Category,
    "date": Date,
    "text": Text,
    "tags": Tags,
    "vector": Vector,
}
# By the tag of a model file.
RECORDS: dict[str, type[Record]] = {kind.tag: kind for kind in (*KINDS.values(), HashedCategory, Presence)}
_FEW = 20  # distinct values that are categories whatever they look like
_NEARLY_ALL = 0.95  # the share of distinct words that makes them ids
_SOME = 0.2  # the share of cells with a separator that makes them tags


class Decision(NamedTuple):
    """The kind of a column, or None and why it is left aside."""

    kind: str | None
    reason: str = ""


def decide(column: Column, asked: str | None) -> Decision:
    """The kind of a column: the one that is asked for, else the one that its type and its cells tell."""
    if _is_empty(column):
        return Decision(None, "no value")
    asked = asked or column.kind
    if asked is not None:
        look_up(KINDS, asked, f"the kind of the column {column.name!r}")
        return Decision(asked)
    name = str(column.values.type)
    if column.is_text:
        return _decide_words(column.words, column.name)
    if name == "bool":
        return Decision("boolean")
    if name.startswith(("int", "uint")):
        return _decide_integers(column)
    if name.startswith(("date", "time")):
        return Decision("date")
    if "list" in name:
        return _decide_lists(column)
    return Decision("number")


def _is_empty(column: Column) -> bool:
    return column.values.null_count == len(column) or (column.is_text and not (column.words.codes >= 0).any())


def _decide_integers(column: Column) -> Decision:
    values = column.values.drop_null()
    if is_binary(values):
        return Decision("boolean")
    n = len(values)
    numbers = values.to_numpy(zero_copy_only=False)
    if n == len(column) and are_row_numbers(numbers):
        return Decision(None, "row numbers")
    if names_ids(column.name) and 2 * len(values.unique()) >= n > 1:
        return Decision(None, "an id")
    return Decision("number")


def _decide_lists(column: Column) -> Decision:
    values = column.values.drop_null()
    inner = str(values.type.value_type)
    if inner in ("string", "large_string", "string_view", "null"):
        return Decision("tags")
    lengths = call_function("list_value_length", [values])
    alike = pa.types.is_fixed_size_list(values.type) or is_one(lengths)
    return Decision("tags" if not alike and inner.startswith(("int", "uint")) else "vector")


def is_one(values: pa.Array) -> bool:
    """Whether all values are the same."""
    return call_function("min", [values]) == call_function("max", [values])


def _decide_words(words: Words, name: str) -> Decision:
    counts = words.counts
    distinct, cells = len(words.texts), int(counts.sum())
    if reads_as_flags(words):
        return Decision("boolean")
    if reads_as_numbers(words):
        return Decision("number")
    if reads_as_dates(words):
        return Decision("date")
    if _reads_as_tags(words, counts):
        return Decision("tags")
    if distinct <= _FEW and distinct < cells:
        return Decision("category")
    length = mean_words(words.texts)
    if length < 1.5:
        named = names_ids(name) and 2 * distinct >= cells
        return Decision(None, "an id") if named or distinct > _NEARLY_ALL * cells > 1 else Decision("category")
    return Decision("text" if 2 * distinct > cells or length >= 3 else "category")


def _reads_as_tags(words: Words, counts: np.ndarray) -> bool:
    """Whether some cells are several short words between separators."""
    sample = words.texts.slice(0, 10_000)
    separated = matches(sample, SEPARATORS)
    share = counts[: len(sample)][separated].sum() / max(counts[: len(sample)].sum(), 1)
    if share < _SOME:
        return False
    pieces = call_function("count_substring_regex", [sample], _pattern(SEPARATORS)).to_numpy(zero_copy_only=False)
    return mean_words(sample) <= 3 * (1 + float(pieces.mean()))


def _pattern(pattern: str) -> object:
    from pyarrow.compute import MatchSubstringOptions

    return MatchSubstringOptions(pattern)
