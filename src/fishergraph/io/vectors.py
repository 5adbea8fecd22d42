"""Columns whose entries are vectors: a list of numbers per row, all of one length.

Such a column is what `embed` writes, and what vector databases, DuckDB and pandas hand on. As features it stands for
columns NAME_0, NAME_1, ….
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph.io.columns import check_column, missing_value

if TYPE_CHECKING:
    import pyarrow as pa


def is_number(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are real numbers or booleans, or all of them are missing."""
    return str(kind).startswith(("int", "uint", "half", "float", "double", "bool", "decimal", "null"))


def is_vector(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type are lists of numbers."""
    import pyarrow as pa

    lists = (pa.types.is_fixed_size_list, pa.types.is_list, pa.types.is_large_list)
    return any(is_one(kind) for is_one in lists) and is_number(kind.value_type)


def vector_names(name: str, width: int) -> list[str]:
    """The names of the columns that a column of vectors stands for."""
    return [f"{name}_{k}" for k in range(width)]


def as_numbers(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Complete Arrow numbers as an array; decimals become floats."""
    if str(values.type).startswith(("decimal", "null")):
        values = values.cast("double", safe=False)
    return values.to_numpy() if hasattr(values, "chunks") else values.to_numpy(zero_copy_only=False)


def read_vectors(column: pa.ChunkedArray, width: int, what: str, *, first_row: int = 0) -> list[np.ndarray]:
    """Vectors as arrays (row, entry), one per chunk; a missing value or another length is an error with its row."""
    import pyarrow as pa

    parts = []
    for chunk in column.chunks:
        if chunk.null_count:
            raise missing_value(what, first_row + int(np.flatnonzero(chunk.is_null())[0]))
        if not pa.types.is_fixed_size_list(chunk.type):
            lengths = np.diff(chunk.offsets.to_numpy())
            _check_lengths(lengths, width, what, first_row)
        values = chunk.flatten()
        if values.null_count:
            raise missing_value(what, first_row + int(np.flatnonzero(values.is_null())[0]) // width)
        parts.append(as_numbers(values).reshape(len(chunk), width))
        first_row += len(chunk)
    return parts


def _check_lengths(lengths: np.ndarray, width: int, what: str, first_row: int) -> None:
    if (lengths != width).any():
        row = int(np.flatnonzero(lengths != width)[0])
        expected = f"hold lists of one length, {width} as in row 0"
        got, advice = f"{lengths[row]} numbers in row {first_row + row}", "repair or drop such rows"
        raise InputError(parameter=what, value=int(lengths[row]), expected=expected, got=got, advice=advice)


# --- tables in memory -----------------------------------------------------------------------------------


def expand_vectors(table: Any) -> Any:
    """A pandas, Polars or pyarrow table with columns NAME_0, … in the place of its columns of vectors.

    A table without such columns is returned unchanged.
    """
    found = {k: values for k in range(table.shape[1]) if (values := _vectors(table, k)) is not None}
    if not found:
        return table
    if hasattr(table, "iloc"):
        return _expanded_pandas(table, found)
    return _expanded_arrow(table, found)


def _vectors(table: Any, k: int) -> np.ndarray | None:
    """The k-th column as an array (row, entry) if it holds vectors, else None."""
    import pyarrow as pa

    if hasattr(table, "iloc"):
        column, name = table.iloc[:, k], table.columns[k]
        kind, first = str(column.dtype), column.iloc[0] if len(column) else None
        if not (kind == "object" and isinstance(first, (list, tuple, np.ndarray))) and "list<" not in kind:
            return None
    elif hasattr(table, "column_names"):
        column, name = table.column(k), table.column_names[k]
    else:
        column, name = table.to_series(k).to_arrow(), table.columns[k]
    what = f"column {name!r}"
    values = check_column(column, what)
    if not is_vector(values.type) or not len(values):
        return None
    width = len(values[0])
    return np.concatenate(read_vectors(pa.chunked_array([values]), width, what))


def _expanded_pandas(table: Any, found: dict[int, np.ndarray]) -> Any:
    import pandas as pd

    pieces = [
        pd.DataFrame(found[k], index=table.index, columns=vector_names(str(name), found[k].shape[1]))
        if k in found
        else table.iloc[:, [k]]
        for k, name in enumerate(table.columns)
    ]
    return pd.concat(pieces, axis=1)


def _expanded_arrow(table: Any, found: dict[int, np.ndarray]) -> Any:
    """A pyarrow table, for a Polars one too."""
    import pyarrow as pa

    source = table if hasattr(table, "column_names") else table.to_arrow()
    arrays, names = [], []
    for k, name in enumerate(source.column_names):
        if k in found:
            arrays += [pa.array(column) for column in np.ascontiguousarray(found[k].T)]
            names += vector_names(name, found[k].shape[1])
        else:
            arrays.append(source.column(k))
            names.append(name)
    return pa.table(arrays, names=names)
