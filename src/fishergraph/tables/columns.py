"""Any table as Arrow columns of a few plain types: pandas, Polars, pyarrow, or an array of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.compute import call_function
from sklearn.utils import check_array

from fishergraph._arrays import as_floats, is_table, plain_array
from fishergraph.io.vectors import is_number, is_vector
from fishergraph.tables.faults import Faults, Unfit
from fishergraph.tables.words import Words, as_words

KIND = b"fishergraph.kind"  # the key under which the metadata of a field say which kind a column is
WORDS = ("string", "large_string", "string_view")
_TIMES = ("date", "timestamp", "time", "duration")
_OF_NUMPY = {"M": "datetime64", "m": "timedelta64"}


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its name.
    values : pyarrow.Array
        Its cells: null, booleans, integers, floats without NaN, text (large_string), times, or lists of these.
    kind : str, optional
        The kind that the table asks for, such as "category" for the categories of pandas.
    source : str
        The name of its type in the table.
    """

    name: str
    values: pa.Array
    kind: str | None
    source: str

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_text(self) -> bool:
        """Whether it is a column of text."""
        return str(self.values.type) == "large_string"

    @cached_property
    def words(self) -> Words:
        """The distinct texts of a column of text."""
        return as_words(self.values)


def as_columns(table: Any, faults: Faults) -> list[Column]:
    """The columns of a table, or of a matrix whose columns are called x0, x1, …; what is wrong goes to `faults`."""
    if not is_table(table):
        return _array_columns(table)
    names = column_names(table)
    for name, times in Counter(names).items():
        if times > 1:
            faults.add(name, f"stands {times} times")
    columns = []
    for k, name in enumerate(names):
        try:
            columns.append(_column(table, k, name))
        except Unfit as unfit:
            faults.add(name, str(unfit))
    return columns


def column_names(table: Any) -> list[str]:
    """The names of a table's columns as text."""
    return [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]


def as_matrix(X: Any) -> np.ndarray:
    """An array of numbers, some of them NaN, as floats."""
    allowed: Any = "allow-nan"
    return check_array(as_floats(plain_array(X, "X"), "X"), ensure_all_finite=allowed, input_name="X")


def _array_columns(X: np.ndarray) -> list[Column]:
    columns = [pa.array(np.ascontiguousarray(X[:, k]), from_pandas=True) for k in range(X.shape[1])]
    return [Column(f"x{k}", column, None, str(X.dtype)) for k, column in enumerate(columns)]


def _column(table: Any, k: int, name: str) -> Column:
    """The k-th column of a table as one of the plain types."""
    asked = None
    if hasattr(table, "iloc"):
        series = table.iloc[:, k]
        source, values = str(series.dtype), _from_pandas(series)
    elif hasattr(table, "column_names"):
        values, field = table.column(k), table.schema.field(k)
        source, asked = str(field.type), (field.metadata or {}).get(KIND, b"").decode() or None
    else:
        values = table.to_series(k).to_arrow()
        source = str(table.dtypes[k])
    if isinstance(values, pa.ChunkedArray):
        values = _one(values)
    if isinstance(values, pa.ExtensionArray):
        raise Unfit(f"holds values of the type {values.type}, which is not known")
    if pa.types.is_dictionary(values.type):
        values, asked = values.cast(values.type.value_type), asked or "category"
    return Column(name, _plain(values), asked, source)


def _one(values: pa.ChunkedArray) -> pa.Array:
    """A chunked column as one array, whose text is wide enough for all of it."""
    if str(values.type) in WORDS:
        values = values.cast(pa.large_string())
    return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)


def _from_pandas(series: Any) -> Any:
    """A column of pandas; a mixture of text, numbers and flags becomes text."""
    values, dtype = series, series.dtype
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        values = values if dtype.isnative else values.astype(dtype.newbyteorder("="))
    try:
        return pa.array(values, from_pandas=True)
    except UnicodeEncodeError:
        raise Unfit("holds text that is not Unicode") from None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    cells = series[series.notna()]
    kinds = sorted({type(cell).__name__ for cell in cells})
    if not set(kinds) <= {"str", "int", "float", "bool", "int64", "float64", "bool_", "Decimal"}:
        raise Unfit(f"holds values of the types {', '.join(kinds[:4])}")
    try:
        return pa.array(
            series.astype(object).where(series.notna(), None).map(str, na_action="ignore"), from_pandas=True
        )
    except UnicodeEncodeError:
        raise Unfit("holds text that is not Unicode") from None


def _plain(values: pa.Array) -> pa.Array:
    """An array as one of the plain types; NaN becomes null, and infinity is refused."""
    name = str(values.type)
    if name in WORDS:
        return values.cast(pa.large_string())
    if name.startswith(("half", "decimal")):
        values = values.cast(pa.float32() if name.startswith("half") else pa.float64())
        name = str(values.type)
    if name in ("float", "double"):
        return without_nan(values)
    if is_number(values.type) or name.startswith(_TIMES):
        return values
    if any(test(values.type) for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)):
        inner = values.type.value_type
        if is_vector(values.type) or str(inner) in WORDS or str(inner) == "null":
            return values
        raise Unfit(f"holds lists of {inner}")
    words = {"binary": "bytes", "large_binary": "bytes", "binary_view": "bytes"}
    advice = ": decode them to text" if name in words else ""
    raise Unfit(f"holds {words.get(name, f'values of the type {name[:40]}')}{advice}")


def without_nan(values: pa.Array) -> pa.Array:
    """Floats whose NaN are null; infinity is refused with its row."""
    finite = call_function("is_finite", [values])
    if call_function("all", [finite]).as_py() is not False:
        return values
    infinite = call_function("is_inf", [values])
    if call_function("any", [infinite]).as_py():
        row = int(np.asarray(infinite.fill_null(False)).argmax())
        raise Unfit(f"holds infinity in row {row}")
    return call_function("if_else", [finite, values, pa.scalar(None, values.type)])


def with_kinds(table: pa.Table, kinds: Mapping[str, str]) -> pa.Table:
    """An Arrow table whose fields say which kinds these columns are."""
    for name, kind in kinds.items():
        k = table.column_names.index(name)
        table = table.set_column(k, table.schema.field(k).with_metadata({KIND: kind.encode()}), table.column(k))
    return table


def needs_encoder(table: Any) -> bool:
    """Whether a table has other columns than complete numbers and vectors, so that its rows must be encoded."""
    if hasattr(table, "iloc"):
        return any(_pandas_needs(table.iloc[:, k]) for k in range(table.shape[1]))
    if hasattr(table, "column_names") and any(KIND in (field.metadata or {}) for field in table.schema):
        return True
    for k in range(table.shape[1]):
        values = table.column(k) if hasattr(table, "column_names") else table.to_series(k).to_arrow()
        if _arrow_needs(values):
            return True
    return False


def _pandas_needs(series: Any) -> bool:
    """Whether a column of pandas is not one of complete numbers, or of vectors."""
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, np.dtype) and kind in "biufc":
        return kind == "f" and bool(np.isnan(series.to_numpy()).any())
    if isinstance(series.dtype, np.dtype) and kind in "Mm":
        return True
    try:
        values = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, UnicodeEncodeError):
        return kind == "O" and not any(isinstance(cell, complex) for cell in series)
    return _arrow_needs(values)


def _arrow_needs(values: pa.Array | pa.ChunkedArray) -> bool:
    if is_vector(values.type):
        return bool(values.null_count)
    if not is_number(values.type) or values.null_count or str(values.type) == "null":
        return True
    floats = str(values.type) in ("halffloat", "float", "double")
    return floats and bool(call_function("any", [call_function("is_nan", [values])]).as_py())
