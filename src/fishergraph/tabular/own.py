"""The columns that nodes have themselves, with their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from fishergraph._arrays import as_floats, is_table
from fishergraph._errors import InputError
from fishergraph._records import check_same_rows


def own_columns(X: Any, names: Any, n_rows: int) -> dict[str, pa.Array]:
    """The columns of a table, or of a matrix whose columns have these names, by name."""
    if X is None:
        return {}
    if is_table(X):
        table = _as_arrow(X)
        check_same_rows(len(table), n_rows)
        columns = {str(name): table.column(k) for k, name in enumerate(table.column_names)}
        if len(columns) < len(table.column_names):
            expected = "have a name of its own for each of its columns"
            raise InputError(parameter="X", expected=expected, got="two of one name", advice="rename one")
        return {
            name: column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            for name, column in columns.items()
        }
    values = as_floats(X, "X")
    check_same_rows(values.shape[0], n_rows)
    texts = [f"x{k}" for k in range(values.shape[1])] if names is None else [str(name) for name in names]
    if len(texts) != values.shape[1] or len(set(texts)) < len(texts):
        expected = f"name each of the {values.shape[1]} columns of X, each another name"
        raise InputError(parameter="names", expected=expected, got=f"{len(set(texts))} names")
    dense = values.toarray() if sp.issparse(values) else np.asarray(values)
    return {name: pa.array(np.ascontiguousarray(column)) for name, column in zip(texts, dense.T, strict=True)}


def _as_arrow(X: Any) -> pa.Table:
    if isinstance(X, pa.Table):
        return X
    if hasattr(X, "to_arrow"):
        return X.to_arrow()
    return pa.Table.from_pandas(X, preserve_index=False)


def as_number(column: pa.Array) -> np.ndarray | None:
    """A column of numbers or booleans as float64, NaN where one is missing; None of anything else."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    values = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(values), values, np.nan)


def as_categories(column: pa.Array, rows: np.ndarray, most: int) -> tuple[list[str], np.ndarray] | None:
    """(the most frequent values of some rows, their number in every row or −1) of a column of texts; None of others.

    Values that appear once alone are names of rows, not categories.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    plain = pc.cast(column, pa.string())
    coded = plain.dictionary_encode()
    codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    counts = np.bincount(codes[rows][codes[rows] >= 0], minlength=len(coded.dictionary))
    words = coded.dictionary.to_pylist()
    kept = sorted(
        (k for k in range(len(words)) if counts[k] > 1 and words[k].strip()), key=lambda k: (-counts[k], words[k])
    )
    kept = kept[:most]
    place = np.full(len(words) + 1, -1)
    place[kept] = np.arange(len(kept))
    return [words[k] for k in kept], place[codes]
