"""Columns of any type as numbers, with the words that larger and smaller ones stand for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import as_floats, check_column_names, check_finite_rows, is_table
from fishergraph._errors import InputError
from fishergraph._records import check_same_rows
from fishergraph.io.columns import listed, positions

_CATEGORIES = 100  # distinct texts of a column of categories
_SHARE = 0.2  # and their largest share of the rows
_WORDS = 20_000  # words of a column of text
_TEXT = 2.0  # words that texts have on average; others are names


@dataclass(frozen=True)
class Columns:
    """Columns of numbers side by side, with what each of them says.

    values : (row, column), float64, dense or CSC, standardised or as they are.
    names : of the columns of the table.
    high, low : texts for larger and smaller values; None if smaller ones say nothing.
    centre, spread : (column,) what values are multiplied with and added to, to be those of the table.
    left_out : columns of the table that say nothing.
    """

    values: Any
    names: list[str]
    high: list[str]
    low: list[str | None]
    centre: np.ndarray
    spread: np.ndarray
    left_out: tuple[str, ...] = ()

    @property
    def one_sided(self) -> np.ndarray:
        """Whether smaller values of a column say nothing."""
        return np.array([text is None for text in self.low], dtype=bool)


def read_columns(X: Any, names: Any, n_rows: int) -> Columns:
    """The columns of a table, or of a matrix whose columns have these names."""
    if is_table(X):
        check_column_names(X)
        check_same_rows(len(X), n_rows)
        return _joined(_arrow_columns(X))
    values = as_floats(X, "X")
    if values.ndim != 2:
        raise InputError(parameter="X", value=values.shape, expected="be a matrix or a table with a row per node")
    check_same_rows(values.shape[0], n_rows)
    check_finite_rows(values, "X")
    texts = [f"x{j}" for j in range(values.shape[1])] if names is None else [str(name) for name in names]
    if len(texts) != values.shape[1]:
        raise InputError(parameter="columns", value=len(texts), expected=f"name the {values.shape[1]:,} columns of X")
    positions(texts, "columns")
    if sp.issparse(values) and not (values.data < 0).any():
        return _flags(sp.csc_array(values).astype(np.float64), texts)
    dense = values.toarray() if sp.issparse(values) else values
    return _joined([(name, dense[:, j].astype(np.float64)) for j, name in enumerate(texts)])


def _joined(columns: list[tuple[str, Any]]) -> Columns:
    """Columns of all kinds side by side."""
    read = [(name, _read(name, column)) for name, column in columns]
    parts = [part for _, part in read if part is not None]
    left_out = tuple(name for name, part in read if part is None)
    if not parts:
        got = f"only {listed(left_out)}" if left_out else "none"
        expected = "have a column of numbers, flags, categories or text that differs between rows"
        raise InputError(parameter="X", expected=expected, got=got)
    values = sp.csc_array(sp.hstack([sp.csc_array(part.values) for part in parts]))
    names, high, low = (list(chain(*(getattr(part, field) for part in parts))) for field in ("names", "high", "low"))
    centre, spread = (np.concatenate([getattr(part, field) for part in parts]) for field in ("centre", "spread"))
    return Columns(values, names, high, low, centre, spread, left_out)


def _arrow_columns(table: Any) -> list[tuple[str, Any]]:
    """The columns of a pandas, Polars or pyarrow table as Arrow arrays, by name."""
    import pyarrow as pa

    if hasattr(table, "iloc"):
        table = pa.Table.from_pandas(table, preserve_index=False)
    elif hasattr(table, "to_arrow"):
        table = table.to_arrow()
    chunks = [table.column(j).chunks for j in range(table.num_columns)]
    arrays = [pa.concat_arrays(parts) if parts else pa.array([]) for parts in chunks]
    return list(zip(map(str, table.column_names), arrays, strict=True))


def _read(name: str, column: Any) -> Columns | None:
    """One column; None if it says nothing that could be a name."""
    if isinstance(column, np.ndarray):
        return _numbers(name, column, "high", "low")
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_boolean(kind):
        return _numbers(name, column.fill_null(False).cast("int8").cast("float64").to_numpy(), "high", "low")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _texts(name, ["" if value is None else value for value in column.to_pylist()])
    if types.is_timestamp(kind) or types.is_date(kind):
        column = column.cast(pa.timestamp("us")).cast("int64")
        return _numbers(name, column.cast("float64", safe=False).to_numpy(zero_copy_only=False), "late", "early")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        numbers = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
        return _numbers(name, numbers, "high", "low")
    return None


def _flags(values: Any, texts: list[str], names: list[str] | None = None) -> Columns:
    """Columns of which larger values alone say something."""
    width = values.shape[1]
    return Columns(values, names or texts, texts, [None] * width, np.zeros(width), np.ones(width))


def _numbers(name: str, numbers: np.ndarray, high: str, low: str) -> Columns | None:
    """A column of numbers; missing ones are the mean, which sets nothing apart."""
    finite = np.isfinite(numbers)
    known = numbers[finite]
    if not len(known) or (known == known[0]).all():
        return None
    other = known[known != 0]
    if finite.all() and other[0] > 0 and (other == other[0]).all():
        return _flags(numbers[:, None], [name])
    centre, spread = known.mean(), known.std()
    values = np.where(finite, (numbers - centre) / spread, 0.0)[:, None]
    return Columns(values, [name], [f"{name} {high}"], [f"{name} {low}"], np.array([centre]), np.array([spread]))


def _texts(name: str, texts: list[str]) -> Columns | None:
    """A column of text: categories if there are few of them, else words, else names, which say nothing."""
    kinds = sorted({text for text in texts if text})
    if 1 < len(kinds) <= min(_CATEGORIES, max(_SHARE * len(texts), 2)):
        place = {text: j for j, text in enumerate(kinds)}
        rows = [row for row, text in enumerate(texts) if text]
        entries = (np.ones(len(rows)), (rows, [place[texts[row]] for row in rows]))
        values = sp.csc_array(entries, shape=(len(texts), len(kinds)))
        return _flags(values, [f"{name} = {text}" for text in kinds], [name] * len(kinds))
    if len(kinds) < 2 or sum(len(text.split()) for text in texts) < _TEXT * len(texts):
        return None
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        counter = CountVectorizer(binary=True, min_df=2, max_features=_WORDS)
        values = sp.csc_array(counter.fit_transform(texts)).astype(np.float64)
    except ValueError:  # no word occurs twice
        return None
    words = [str(word) for word in counter.get_feature_names_out()]
    return _flags(values, words, [name] * len(words))
