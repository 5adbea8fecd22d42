"""A column of values as classes, or as numbers or dates on a scale; some rows may have no value.

None, NaN, NaT, NA and empty texts are missing. In labels −1 is missing too, as for the classifiers: as a number or as a
text among texts of integers, unless −1 and 1 are the only labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from fishergraph._arrays import plain_array
from fishergraph._errors import InputError, shown
from fishergraph._repr import short_repr
from fishergraph.estimators.labels import marked_unlabelled, missing_values

Names = Sequence[str] | Mapping[Any, str] | None
_DIGITS = re.compile(r"(\d+)")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?Z?)?)?")
_NOT_CLASSES = {"M": "dates", "m": "time differences", "c": "complex numbers", "V": "records"}


@dataclass(frozen=True)
class Classes:
    """Classes by number: `codes` (row,), −1 for a row without one, and the name of each class."""

    codes: np.ndarray
    names: list[str]

    __repr__ = short_repr

    def largest(self, most: int) -> tuple[Classes, int]:
        """The classes with at most `most` of them, and how many became the last one, "other".

        The largest classes stay, in their order; of equal ones the first.
        """
        rest = len(self.names) - (most - 1)
        if len(self.names) <= most:
            return self, 0
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))
        kept = np.sort(np.argsort(-counts, kind="stable")[: most - 1])
        number = np.full(len(self.names) + 1, most - 1)  # the last entry is that of −1
        number[kept], number[-1] = np.arange(most - 1), -1
        names = [self.names[k] for k in kept]
        return Classes(number[self.codes], [*names, f"other ({rest} classes)"]), rest


@dataclass(frozen=True)
class Values:
    """Numbers (row,), NaN for a missing one; dates are days since 1970."""

    numbers: np.ndarray
    dates: bool = False

    __repr__ = short_repr


# --- labels -----------------------------------------------------------------------------------------------


def as_classes(values: Any, n_rows: int, name: str, *, names: Names = None, missing: Any = None) -> Classes:
    """The classes of labels, in order; `missing` are the values that stand for no label, instead of −1."""
    column = read_column(values, n_rows, name, missing)
    present = np.flatnonzero(~column.absent)
    labels = _of_one_type(column.entries[present])
    if missing is None and (labels.dtype.kind != "O" or _are_texts(labels)):
        column.absent[present[marked_unlabelled(labels, None)]] = True
    return _classes(column, name, names)


def _of_one_type(entries: np.ndarray) -> np.ndarray:
    """Objects that are integers or booleans alone as an array of these; other entries unchanged."""
    kinds = set(map(type, entries.tolist())) if entries.dtype.kind == "O" else set()
    return np.array(entries.tolist()) if len(kinds) == 1 and kinds <= {int, bool, float} else entries


def _are_texts(entries: np.ndarray) -> bool:
    return set(map(type, entries.tolist())) <= {str}


def _classes(column: Column, name: str, names: Names) -> Classes:
    """The classes of the entries that are not missing."""
    present = _of_one_type(column.entries[~column.absent])
    kind = present.dtype.kind
    if kind in _NOT_CLASSES or (kind == "O" and any(isinstance(entry, (list, dict, np.ndarray)) for entry in present)):
        got, advice = _NOT_CLASSES.get(kind, "several in a row"), "pass dates and numbers as colour"
        raise InputError(parameter=name, expected="hold one class per row", got=got, advice=advice)
    numbers = _parsed(present) if kind in "fOUT" else None
    if numbers is not None and numbers.dtype.kind == "f" and (broken := numbers[numbers % 1 != 0]).size:
        got, advice = f"numbers such as {broken[0]:g}", "pass numbers as colour, or bin them into classes"
        raise InputError(parameter=name, expected="hold classes", got=got, advice=advice)
    values, numbers = _distinct(present, column.order, name)
    codes = np.full(len(column.entries), -1, dtype=np.int64)
    codes[~column.absent] = numbers
    return Classes(codes, _class_names(values, names))


def _distinct(labels: np.ndarray, order: list[Any] | None, name: str) -> tuple[list[Any], np.ndarray]:
    """The classes in order, as Python's values, and the number of each label."""
    if labels.dtype.kind in "biuf":
        classes, numbers = np.unique(labels, return_inverse=True)
        return [int(value) if labels.dtype.kind == "f" else value for value in classes.tolist()], numbers
    values, first = labels.tolist(), {}
    try:
        seen = np.fromiter((first.setdefault(value, len(first)) for value in values), np.int64, len(values))
        ranked = sorted(first, key=_natural) if order is None else [value for value in order if value in first]
    except TypeError:  # they cannot be hashed, or compared
        advice = "convert them to texts"
        raise InputError(parameter=name, expected="be of one type", got="several", advice=advice) from None
    rank = {value: k for k, value in enumerate(ranked)}
    return ranked, np.array([rank[value] for value in first], dtype=np.int64)[seen]


def _natural(value: Any) -> Any:
    """What texts are sorted by: class 2 is before class 10."""
    if not isinstance(value, str):
        return value
    parts = _DIGITS.split(value)  # text and digits in turn
    return [(len(part.lstrip("0")), part.lstrip("0")) if k % 2 else part for k, part in enumerate(parts)]


def _class_names(values: list[Any], names: Names) -> list[str]:
    """The name of each class that occurs."""
    if names is None:
        return [str(value) for value in values]
    try:
        table = names if isinstance(names, Mapping) else dict(enumerate(names))  # -1 is not the last of a list
        return [str(table[value]) for value in values]
    except (KeyError, TypeError):
        expected = f"hold a name for each of the labels {', '.join(shown(value) for value in values[:20])}"
        raise InputError(parameter="names", value=names, expected=expected) from None


# --- numbers and dates ------------------------------------------------------------------------------------


def as_column(values: Any, n_rows: int, name: str, *, names: Names = None, missing: Any = None) -> Classes | Values:
    """Numbers or dates if the values are such, also as texts; else classes. `missing` are values that mean none."""
    column = read_column(values, n_rows, name, missing)
    parsed = None if column.order is not None else _parsed(column.entries[~column.absent])
    if parsed is None:
        return _classes(column, name, names)
    numbers = np.full(n_rows, np.nan)
    dates = parsed.dtype.kind == "M"
    numbers[~column.absent] = (parsed - np.datetime64(0, "us")) / np.timedelta64(1, "D") if dates else parsed
    return Values(numbers, dates)


def _parsed(present: np.ndarray) -> np.ndarray | None:
    """The entries as floats or dates, or None if they are neither."""
    if present.dtype.kind in "iuf":
        return present.astype(np.float64)
    if present.dtype.kind == "M":
        return present.astype("datetime64[us]")
    kinds = set(map(type, present.tolist()))
    if kinds == {str}:
        return _parsed_texts(present.astype(np.str_))
    if kinds and bool not in kinds and all(issubclass(kind, (int, float, np.number, Decimal)) for kind in kinds):
        return present.astype(np.float64)
    if kinds and all(issubclass(kind, (date, np.datetime64)) for kind in kinds):
        return np.array(list(map(_without_zone, present.tolist())), dtype="datetime64[us]")
    return None


def _parsed_texts(words: np.ndarray) -> np.ndarray | None:
    """Texts as floats or dates, or None if they are neither."""
    if all(map(_NUMBER.fullmatch, words.tolist())):
        return words.astype(np.float64)
    if all(map(_DATE.fullmatch, words.tolist())):
        with suppress(ValueError):  # such as 2020-02-31
            return np.strings.rstrip(words, "Z").astype("datetime64[us]")
    return None


def _without_zone(value: Any) -> Any:
    """A date, or a time in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


# --- columns of any type ----------------------------------------------------------------------------------


class Column(NamedTuple):
    """Entries (row,), which of them are missing, and the order of the categories of a categorical column."""

    entries: np.ndarray
    absent: np.ndarray
    order: list[Any] | None


def read_column(values: Any, n_rows: int, name: str, missing: Any = None) -> Column:
    """A column from a list, an array, a tensor, or a series of pandas, Polars or pyarrow."""
    order, entries = _categories(values), _entries(values, name)
    entries = entries[:, 0] if entries.ndim == 2 and entries.shape[1] == 1 else entries
    if entries.shape != (n_rows,):
        got = f"{len(entries):,}" if entries.ndim == 1 else shown(values) if entries.ndim == 0 else f"{entries.shape}"
        expected = f"have one value for each of the {n_rows:,} rows"
        raise InputError(parameter=name, value=entries.shape, expected=expected, got=got)
    if entries.dtype.kind in "UT":
        entries = np.strings.strip(entries)
    elif entries.dtype.kind == "O" and order is None:
        entries = _objects([entry.strip() if isinstance(entry, str) else entry for entry in entries.tolist()])
    absent = missing_values(entries)
    if missing is not None:
        words = list(missing) if isinstance(missing, (list, tuple, set, frozenset, np.ndarray)) else [missing]
        present = np.flatnonzero(~absent)
        absent[present] = [entry in words for entry in entries[present].tolist()]
    return Column(entries, absent, order)


def by_ids(values: Any, ids: Any, name: str) -> Any:
    """The values in the order of ids, if they are a mapping of ids or a series of pandas whose index has some of them.

    Other values are in the order of the rows already. An id without a value has none.
    """
    if isinstance(values, Mapping) and ids is None:
        expected, advice = "be in the order of the rows", "pass a list, or rows with ids"
        raise InputError(parameter=name, expected=expected, got="values by id", advice=advice)
    if ids is None or isinstance(values, Mapping):
        return values if ids is None else [values.get(entry) for entry in np.asarray(ids[:]).tolist()]
    index = getattr(values, "index", None) if hasattr(values, "reindex") else None
    if index is None or type(index).__name__ == "RangeIndex" or not index.isin(ids[:]).any():
        return values
    if index.equals(index.__class__(ids[:])):
        return values
    if not index.is_unique:
        raise InputError(parameter=f"the index of {name}", expected="be distinct", got="an id twice")
    return values.reindex(ids[:])


def _categories(values: Any) -> list[Any] | None:
    """The categories of a categorical column of pandas, in their order."""
    categories = getattr(getattr(values, "cat", values), "categories", None)
    return None if categories is None else list(categories)


def _entries(values: Any, name: str) -> np.ndarray:
    """The values as an array of numbers, dates, texts or objects."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    if isinstance(values, np.ma.MaskedArray):
        entries = values.data.astype(object)
        entries[np.ma.getmaskarray(values)] = None
        return entries
    if hasattr(values, "to_pylist"):  # pyarrow
        values = values.to_pylist()
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
        return values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if isinstance(values, (list, tuple)) and len(set(map(type, values))) > 1:  # NumPy would make one type of several
        return _objects(values)
    return plain_array(values, name)


def _objects(values: Sequence[Any]) -> np.ndarray:
    entries = np.empty(len(values), dtype=object)
    entries[:] = values
    return entries
