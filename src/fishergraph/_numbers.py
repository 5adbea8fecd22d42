"""What users pass as numbers, as float arrays: one rule for features, points, anchors and weights.

    float64                                          stays
    float32                                          stays
    float16, booleans, integers up to 2²⁴            become float32
    larger integers, up to 2⁵³                       become float64: float32 would lose digits
    long doubles, Python's numbers (lists, objects)  become float64

Refused are integers beyond 2⁵³, complex numbers, dates, time differences, records, texts and masked entries. Arrays of
another byte order give the same bits as native ones.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._checks import check_compressed

# Integers of this size and beyond are not all exact, in float32 and in float64.
EXACT_IN_SINGLE, _EXACT_64 = 2**24, 2**53
_NOT_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "time differences", "V": "records"}
# How pandas, Polars and pyarrow name the types of such columns begins with one of these.
_NOT_COLUMNS = ("complex", "date", "time", "duration", "period", "interval")


def as_floats(values: Any, name: str) -> Any:
    """A dense array, a CSR array, a table or nested lists as float32 or float64 by the rule above, C-ordered."""
    if sp.issparse(values):
        return _sparse_floats(values, name)
    if is_table(values):
        return _table_floats(values, name)
    listed = not isinstance(values, np.ndarray)
    values = real_array(values, name)
    return np.ascontiguousarray(values, dtype=np.float64 if listed else _float_type(values)).reshape(values.shape)


def real_array(values: Any, name: str) -> np.ndarray:
    """An array, or nested lists, as native booleans, integers or floats; anything else is refused."""
    array = plain_array(values, name)
    if array.dtype.kind in _NOT_NUMBERS:
        raise _refusal(name, _NOT_NUMBERS[array.dtype.kind], array.dtype)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        check_integers(int(array.min()), int(array.max()), name)
    if array.dtype.kind not in "biuf":
        return _parsed(array, name)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def plain_array(values: Any, name: str) -> np.ndarray:
    """An array of any type, labels for example; raises for masked entries and rows of several lengths."""
    values = unmasked(values, name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array with rows of one length, got rows of several; give all of them the same length."
        ) from error


def unmasked(values: Any, name: str) -> Any:
    """The values without a mask; raises where an entry is masked, which every conversion would uncover."""
    parts = values if isinstance(values, (list, tuple)) else [values]
    masked = [part for part in parts if isinstance(part, np.ma.MaskedArray)]
    # The mask of records is one of records.
    if any(np.ascontiguousarray(np.ma.getmaskarray(part)).view(bool).any() for part in masked):
        raise ValueError(
            f"{name} must hold a value in every entry, got a masked array with masked ones; "
            "fill them with .filled(…), or drop their rows."
        )
    return values.data if isinstance(values, np.ma.MaskedArray) else values


def is_table(values: Any) -> bool:
    """Whether the values are a pandas, Polars or pyarrow table."""
    return hasattr(values, "columns") and (hasattr(values, "dtypes") or hasattr(values, "schema"))


def column_types(table: Any) -> list[str]:
    """What a table calls the types of its columns, in lower case."""
    types = getattr(table, "dtypes", None)
    return [str(kind).lower() for kind in (table.schema.types if types is None else types)]


def check_column_names(table: Any) -> None:
    """Raise where columns of a table share a name: scikit-learn compares them by their names."""
    names = Counter(map(str, table.columns)) if is_table(table) else Counter()
    name, times = names.most_common(1)[0] if names else ("", 1)
    if times > 1:
        raise ValueError(
            f"X must have columns of distinct names, got {name!r} {times} times; rename them, or pass X.to_numpy()."
        )


def _said(error: Exception) -> str:
    return str(error).rstrip(".")


def _refusal(name: str, got: str, dtype: Any) -> ValueError:
    first = "Complex data not supported: " if got.startswith("complex") else ""  # scikit-learn's words
    return ValueError(
        f"{first}{name} must hold real numbers, got {got} ({dtype}); convert them to numbers of your choice first."
    )


def check_integers(low: int, high: int, name: str) -> None:
    """Raise where integers are too large for float64."""
    if max(high, -low) >= _EXACT_64:
        raise ValueError(
            f"{name} must hold integers below 2**53 = {_EXACT_64}, beyond which floats lose digits, got {low} to "
            f"{high}; subtract an offset, or divide, before."
        )


def _float_type(array: np.ndarray) -> type:
    """float32 or float64, whichever the rule gives for a real array."""
    if array.dtype.kind == "f":
        return np.float64 if array.dtype.itemsize > 4 else np.float32
    small = array.dtype.kind == "b" or array.dtype.itemsize < 4 or array.size == 0
    return np.float32 if small or max(int(array.max()), -int(array.min())) <= EXACT_IN_SINGLE else np.float64


def _parsed(array: np.ndarray, name: str) -> np.ndarray:
    """Objects and texts as float64."""
    if array.dtype.kind == "O":
        kinds = set(map(type, array.flat))
        if kinds & {np.datetime64, np.timedelta64}:
            raise _refusal(name, "dates or time differences", array.dtype)
        whole = [value for value in array.flat if isinstance(value, int)] if int in kinds else []
        if whole:
            check_integers(min(whole), max(whole), name)
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is reported as such
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must hold numbers, got other objects: {_said(error)}; convert or drop them.") from error


def _sparse_floats(matrix: Any, name: str) -> sp.csr_array:
    """Compressed rows as floats; shares their memory where it can."""
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix of shape (rows, features), got shape {matrix.shape}; reshape it.")
    rows = sp.csr_array(check_compressed(matrix, name))
    if matrix.format in ("lil", "dok"):
        check_compressed(rows, name)
    data = real_array(rows.data, name)
    kind = _float_type(data)
    return rows if data.dtype == kind else sp.csr_array((data.astype(kind), rows.indices, rows.indptr), rows.shape)


def _table_floats(table: Any, name: str) -> np.ndarray:
    """The columns of a table side by side; missing entries are NaN."""
    types = column_types(table)
    strange = next((kind for kind in types if kind.startswith(_NOT_COLUMNS)), None)
    if strange is not None:
        raise _refusal(name, "complex numbers" if strange.startswith("complex") else "dates or times", strange)
    try:
        if hasattr(table, "iloc"):
            wide = table.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            wide = np.asarray(table).astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must hold numbers, got other objects: {_said(error)}; encode or drop them."
        ) from error
    whole = [k for k, kind in enumerate(types) if kind.startswith(("int", "uint"))]
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(np.abs(wide[:, whole]), initial=0) if whole else 0.0
    check_integers(0, int(largest), name)
    narrow = {"float64", "double", "object"}.isdisjoint(types) and largest <= EXACT_IN_SINGLE
    return np.ascontiguousarray(wide, dtype=np.float32 if narrow else np.float64)
