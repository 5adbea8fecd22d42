"""Columns of complete numbers side by side: whether they need one scale, and which of them say nothing or too much."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fishergraph.io.columns import table_columns

MOST_NAMED = 64  # columns that have names of their own; more are a matrix, such as one of words
_APART = 10.0  # a ratio of spreads that makes the columns of a table unequal
_SCALED = 3.0  # the largest spread of columns that were scaled before, some of which hardly vary
_DOMINATES = 0.99  # the share of one column in the length of the rows
_FEWEST_NUMBERED = 10  # rows whose numbers can be those of the rows
_SHOWN = 5  # columns of a kind that are named
_ID_NAME = re.compile(
    r"(?i:(^|[^a-z])(id|ids|uuid|guid|key|hash|url|uri|email|e-mail|phone|barcode|isbn)$)|[a-z]I[dD]$"
)


class Note(NamedTuple):
    """What is said of some columns."""

    columns: tuple[str, ...]
    text: str


def names_ids(name: str) -> bool:
    """Whether the name of a column is one of ids."""
    return bool(_ID_NAME.search(name.strip()))


def are_row_numbers(values: np.ndarray) -> bool:
    """Whether complete integers count the rows."""
    return len(values) >= _FEWEST_NUMBERED and bool((np.diff(values.astype(np.int64, copy=False)) == 1).all())


def are_numbered(names: Sequence[str]) -> bool:
    """Whether names are one word with a number, as those of the columns of a matrix: x0, x1, x2."""
    stems = {name.rstrip("0123456789") for name in names}
    return len(stems) == 1 and all(name[-1:].isdigit() for name in names)


def needs_scale(table: Any) -> bool:
    """Whether the columns of a table of complete numbers have very different spreads, or one is nearly all of a row.

    Tables of flags or counts, and those that are matrices by their names or number of columns, are as they should be.
    """
    names, column = table_columns(table) or ([], None)
    if column is None or not 2 <= len(names) <= MOST_NAMED or are_numbered(names):
        return False
    columns = [np.asarray(column(k)) for k in range(len(names))]
    if any(values.ndim != 1 or values.dtype.kind not in "biuf" for values in columns) or not len(columns[0]):
        return False
    columns = [values.astype(np.float64) for values in columns]
    telling = [values for name, values in zip(names, columns, strict=True) if _tells(name, values)]
    if not telling or all(_counts(values) for values in columns):
        return False
    spreads = np.array([_spread(values) for values in columns])
    varying = spreads[spreads > 0]
    apart = len(varying) > 1 and bool(varying.max() > max(_APART * varying.min(), _SCALED))
    return apart or bool(_shares(np.stack(columns, axis=1)).max() > _DOMINATES)


def _tells(name: str, values: np.ndarray) -> bool:
    """Whether a column is neither constant nor one of ids."""
    return bool(values.min() < values.max()) and not _is_id(name, values)


def _spread(values: np.ndarray) -> float:
    """The standard deviation of a column, or the distance of its two values, of which one may be rare."""
    low, high = values.min(), values.max()
    return float(high - low if ((values == low) | (values == high)).all() else values.std())


def _counts(values: np.ndarray) -> bool:
    """Whether numbers are flags, or counts of what most rows have none of."""
    if values.min() < 0 or (np.floor(values) != values).any():
        return False
    return bool(values.max() <= 1 or (values == 0).mean() >= 0.5)


def _shares(rows: np.ndarray) -> np.ndarray:
    """The share of every column in the squared length of the rows."""
    squares = np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    return squares / squares.sum() if squares.sum() else squares


def notes_of_numbers(names: Sequence[str], rows: Any) -> list[Note]:
    """What is said of columns of numbers that are constant, ids, or nearly all of the length of the rows.

    Those of a sparse matrix, and constants and ids of a wide one, are not looked for. Columns of zeros change nothing.
    """
    if hasattr(rows, "indptr") or len(rows) < 2 or len(names) < 2:
        return []
    notes = []
    if len(names) <= MOST_NAMED:
        columns = dict(zip(names, rows.T, strict=True))
        constant = [name for name, values in columns.items() if values[0] and (values == values[0]).all()]
        ids = [name for name, values in columns.items() if name not in constant and _is_id(name, values)]
        notes += [Note(tuple(constant), f"{_listed(constant)} the same in all rows")] if constant else []
        notes += [Note(tuple(ids), f"{_listed(ids)} unique as ids are")] if ids else []
    with np.errstate(over="ignore", invalid="ignore"):
        shares = _shares(rows)
    if shares.max() > _DOMINATES:
        name = names[int(shares.argmax())]
        text = f"{name!r} is {shares.max():.1%} of the squared length of the rows, so the others hardly count"
        notes.append(Note((name,), text))
    return notes


def _is_id(name: str, values: np.ndarray) -> bool:
    """Whether a column counts the rows, or has the name and the distinct integers of ids."""
    if (np.floor(values) != values).any():
        return False
    return are_row_numbers(values) or (names_ids(name) and 2 * len(np.unique(values)) >= len(values) > 1)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(map(repr, names[:_SHOWN]))}{more} {'is' if len(names) == 1 else 'are'}"
