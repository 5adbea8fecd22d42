"""Columns of text: their distinct values, and the numbers, dates and flags that are written in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow.compute import (
    ExtractRegexOptions,
    MatchSubstringOptions,
    SliceOptions,
    StrptimeOptions,
    TrimOptions,
    call_function,
)

from fishergraph.tables.faults import Unfit

TRUE, FALSE = ("true", "yes", "y", "t", "on"), ("false", "no", "n", "f", "off")
MOST = 0.9  # the share of cells that must be of a kind; the others are missing
_SAMPLE = 1000  # distinct values that decide whether all are looked at
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_LEADING_ZERO = r"^[+-]?0\d"
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?Z?)?$"
# Regular expressions of other dates, and how they are read, the first that fits
_FORMATS = (
    (r"^\d{4}/\d{1,2}/\d{1,2}$", ("%Y/%m/%d",)),
    (r"^\d{1,2}\.\d{1,2}\.\d{4}$", ("%d.%m.%Y",)),
    (r"^\d{1,2}/\d{1,2}/\d{4}$", ("%m/%d/%Y", "%d/%m/%Y")),
)
# Where a layout has the day of the month
_DAYS = {
    "%Y-%m-%d": r"^\d+-\d+-(?P<day>\d+)",
    "%Y/%m/%d": r"^\d+/\d+/(?P<day>\d+)",
    "%m/%d/%Y": r"^\d+/(?P<day>\d+)",
    "%d.%m.%Y": r"^(?P<day>\d+)",
    "%d/%m/%Y": r"^(?P<day>\d+)",
}


class Words(NamedTuple):
    """A column of text: its distinct values without blanks around them, and the value of each row, −1 if missing."""

    texts: pa.Array  # large_string
    codes: np.ndarray  # (row,)

    @property
    def counts(self) -> np.ndarray:
        """How many rows have each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))


def as_words(column: pa.Array) -> Words:
    """The distinct values of a column of text; text of nothing but blanks is missing."""
    coded = column.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = coded.dictionary
    bare = call_function("utf8_trim_whitespace", [texts])
    empty = np.asarray(call_function("equal", [call_function("binary_length", [bare]), 0]))
    if not empty.any() and call_function("all", [call_function("equal", [bare, texts])]).as_py() is not False:
        return Words(texts, codes)
    again = bare.dictionary_encode()
    kept = np.asarray(call_function("not_equal", [call_function("binary_length", [again.dictionary]), 0]))
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    new = np.append(again.indices.to_numpy(zero_copy_only=False), len(kept))  # a code for missing ones
    return Words(again.dictionary.filter(pa.array(kept)), number[new[codes]])


def matches(texts: pa.Array, pattern: str) -> np.ndarray:
    """Whether texts match a regular expression."""
    found = call_function("match_substring_regex", [texts], MatchSubstringOptions(pattern))
    return found.to_numpy(zero_copy_only=False).astype(bool)


def cell_numbers(values: pa.Array) -> np.ndarray:
    """Complete Arrow numbers as an array."""
    return values.to_numpy(zero_copy_only=False)


def _share(words: Words, fits: np.ndarray) -> float:
    """The share of cells, missing ones aside, whose value fits."""
    counts = words.counts
    return float(counts[fits].sum() / max(counts.sum(), 1))


def reads_as_numbers(words: Words) -> bool:
    """Whether nearly all cells are numbers, none with a leading zero, which a code has."""
    sample = words.texts.slice(0, _SAMPLE)
    if not len(sample) or matches(sample, _NUMBER).mean() < MOST / 2:
        return False
    fits = matches(words.texts, _NUMBER)
    return _share(words, fits) >= MOST and not matches(words.texts, _LEADING_ZERO).any()


def numbers_of_words(words: Words) -> np.ndarray:
    """The number of each value, NaN if it is none, and NaN in the end for a missing cell."""
    fits = matches(words.texts, _NUMBER)
    if _share(words, fits) < MOST and len(words.texts):
        odd = words.texts[int(np.flatnonzero(~fits)[0])].as_py()
        raise Unfit(f"holds words such as {odd[:40]!r}, which are no numbers")
    found = np.full(len(fits) + 1, np.nan)
    found[:-1][fits] = cell_numbers(words.texts.filter(pa.array(fits)).cast(pa.float64()))
    found[np.isinf(found)] = np.nan
    return found


def odd_words(words: Words) -> list[str]:
    """The values that are no numbers, which count as missing in a column of numbers."""
    return words.texts.filter(pa.array(~matches(words.texts, _NUMBER))).to_pylist()


def reads_as_flags(words: Words) -> bool:
    """Whether all cells say yes or no."""
    return 0 < len(words.texts) <= 8 and {text.lower() for text in words.texts.to_pylist()} <= {*TRUE, *FALSE}


def _looks_like_dates(words: Words) -> bool:
    """Whether many of the first words are dates."""
    sample = words.texts.slice(0, _SAMPLE)
    patterns = [_ISO, *(pattern for pattern, _ in _FORMATS)]
    return len(sample) > 0 and max(matches(sample, pattern).mean() for pattern in patterns) >= MOST / 2


def words_beside_dates(words: Words) -> tuple[list[str], float]:
    """The words that are no dates in a column where most cells are, the most frequent first, and their share."""
    if not _looks_like_dates(words):
        return [], 0.0
    odd = np.isnat(_dates(words.texts))
    counts = np.where(odd, words.counts, 0)
    share = float(counts.sum() / max(words.counts.sum(), 1))
    first = np.argsort(-counts, kind="stable")[: min(int(odd.sum()), 3)]
    return ([words.texts[int(k)].as_py() for k in first], share) if share <= 0.5 else ([], 0.0)


def reads_as_dates(words: Words) -> bool:
    """Whether nearly all cells are dates."""
    if not _looks_like_dates(words):
        return False
    try:
        dates_of_words(words)
    except Unfit:
        return False
    return True


def dates_of_words(words: Words) -> np.ndarray:
    """The date of each value as datetime64, NaT if it is none."""
    dates = _dates(words.texts)
    valid = ~np.isnat(dates)
    if _share(words, valid) < MOST and len(words.texts):
        odd = words.texts[int(np.flatnonzero(~valid)[0])].as_py()
        raise Unfit(f"holds words such as {odd[:40]!r}, which are no dates")
    return dates


def _dates(texts: pa.Array) -> np.ndarray:
    """Texts as dates; NaT for others."""
    dates = _iso_dates(texts)
    for pattern, formats in _FORMATS:
        fits = matches(texts, pattern)
        if fits.any():
            read = [_read_dates(texts, fits, layout) for layout in formats]
            best = min(read, key=lambda found: int(np.isnat(found[fits]).sum()))
            dates = np.where(np.isnat(dates), best, dates)
    return dates


def _iso_dates(texts: pa.Array) -> np.ndarray:
    """Dates such as 2024-05-31 and 2024-05-31T12:30:00Z; NaT for other texts."""
    found = np.full(len(texts), np.datetime64("NaT"), dtype="M8[us]")
    fits = matches(texts, _ISO)
    chosen = texts.filter(pa.array(fits))
    if not len(chosen):
        return found
    try:
        bare = call_function("utf8_rtrim", [chosen], TrimOptions("Z"))
        found[fits] = bare.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy().astype("M8[us]")
    except pa.ArrowException:  # days that do not exist
        days = call_function("utf8_slice_codeunits", [chosen], SliceOptions(0, 10))
        found[fits] = _parsed(days, "%Y-%m-%d")
    return found


def _read_dates(texts: pa.Array, fits: np.ndarray, layout: str) -> np.ndarray:
    found = np.full(len(texts), np.datetime64("NaT"), dtype="M8[us]")
    found[fits] = _parsed(texts.filter(pa.array(fits)), layout)
    return found


def _parsed(texts: pa.Array, layout: str) -> np.ndarray:
    """Dates of one layout; NaT for a day that does not exist."""
    options = StrptimeOptions(format=layout, unit="us", error_is_null=True)
    times = call_function("strptime", [texts.cast(pa.string())], options)
    numbers = times.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
    found = numbers.astype("M8[us]")
    # strptime goes on counting after the end of a month: 30 February is 2 March.
    written = call_function("extract_regex", [texts], ExtractRegexOptions(_DAYS[layout])).field(0).cast(pa.int64())
    days = (found.astype("M8[D]") - found.astype("M8[M]").astype("M8[D]")).astype(np.int64) + 1
    found[days != cell_numbers(written)] = np.datetime64("NaT")
    return found
