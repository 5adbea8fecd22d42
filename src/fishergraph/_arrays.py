"""Arrays from users: conversion to floats, and checks of their entries.

One rule holds for features, points, anchors and weights:

    float64, float32                                 unchanged
    float16, booleans, integers up to 2²⁴            become float32
    larger integers, up to 2⁵³                       become float64, because float32 would lose digits
    long doubles, Python's numbers (lists, objects)  become float64

Integers beyond 2⁵³, complex numbers, dates, time differences, records, text and masked entries are refused. Arrays of
another byte order give the same bits as native ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from fishergraph._errors import InputError, InputTypeError, MissingValueError
from fishergraph._validation import check_host_memory
from fishergraph._warn import warn

# Larger integers are not all exact, in float32 and in float64.
EXACT_IN_SINGLE, _EXACT_64 = 2**24, 2**53
_NOT_NUMBERS = {"c": "complex numbers", "M": "dates", "m": "time differences", "V": "records"}
# The type names of such columns in pandas, Polars and pyarrow begin with one of these.
_NOT_COLUMNS = ("complex", "date", "time", "duration", "period", "interval")


def as_floats(values: Any, name: str) -> Any:
    """A dense array, a CSR array, a table or nested lists as float32 or float64 by the rule above, C-ordered."""
    if sp.issparse(values):
        return _sparse_floats(values, name)
    if is_table(values):
        return _table_floats(values, name)
    if isinstance(values, dict):
        got = f"a mapping of {', '.join(map(repr, list(values)[:4]))}"
        advice = f"pass one of its values, {name}[{next(iter(values), None)!r}]"
        raise InputTypeError(parameter=name, expected="be one matrix", got=got, advice=advice)
    listed = not isinstance(values, np.ndarray)
    values = real_array(values, name)
    return np.ascontiguousarray(values, dtype=np.float64 if listed else _float_type(values)).reshape(values.shape)


def real_array(values: Any, name: str) -> np.ndarray:
    """An array, or nested lists, as native booleans, integers or floats."""
    array = plain_array(values, name)
    if array.dtype.kind in _NOT_NUMBERS:
        raise _not_real(name, _NOT_NUMBERS[array.dtype.kind], array.dtype)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        check_integers(int(array.min()), int(array.max()), name)
    if array.dtype.kind not in "biuf":
        return _parsed(array, name)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def plain_array(values: Any, name: str) -> np.ndarray:
    """An array of any type, labels for example, without masked entries."""
    if type(values) is np.ndarray:
        return values
    values = unmasked(values, name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(parameter=name, expected="have rows of one length", got="rows of several lengths") from error


def unmasked(values: Any, name: str) -> Any:
    """The values without their mask; raises if an entry is masked, because conversions would uncover it."""
    if not isinstance(values, (list, tuple, np.ma.MaskedArray)):
        return values
    parts = [values] if isinstance(values, np.ma.MaskedArray) else values
    masked = [part for part in parts if isinstance(part, np.ma.MaskedArray)]
    # The mask of a structured array is structured too.
    if any(np.ascontiguousarray(np.ma.getmaskarray(part)).view(bool).any() for part in masked):
        advice = "fill them with .filled(…), or drop their rows"
        raise InputError(parameter=name, expected="have no masked entries", got="some", advice=advice)
    return values.data if isinstance(values, np.ma.MaskedArray) else values


def is_table(values: Any) -> bool:
    """Whether the values are a pandas, Polars or pyarrow table."""
    return hasattr(values, "columns") and (hasattr(values, "dtypes") or hasattr(values, "schema"))


def column_types(table: Any) -> list[str]:
    """The type names of a table's columns, in lower case."""
    types = getattr(table, "dtypes", None)
    return [str(kind).lower() for kind in (table.schema.types if types is None else types)]


def check_column_names(table: Any) -> None:
    """Raise if columns of a table share a name: scikit-learn compares columns by name."""
    named = getattr(table, "column_names", None) or getattr(table, "columns", ())  # pyarrow's columns are the values
    names = Counter(map(str, named)) if is_table(table) else Counter()
    name, times = names.most_common(1)[0] if names else ("", 1)
    if times > 1:
        got, advice = f"{name!r} {times} times", "rename them, or pass X.to_numpy()"
        raise InputError(parameter="X", value=name, expected="have columns of distinct names", got=got, advice=advice)


def _not_real(name: str, got: str, dtype: Any) -> InputError:
    first = "Complex data not supported: " if got.startswith("complex") else ""  # scikit-learn's words
    return InputError(
        parameter=first + name, value=dtype, expected="hold real numbers", got=f"{got} ({dtype})", advice="convert them"
    )


def _not_numbers(name: str, error: Exception) -> InputError | InputTypeError:
    kind = InputTypeError if isinstance(error, TypeError) else InputError
    got = f"other objects: {str(error).rstrip('.')}"
    return kind(parameter=name, expected="hold numbers", got=got, advice="convert or drop them")


def check_integers(low: int, high: int, name: str) -> None:
    """Raise if integers are too large for float64."""
    if max(high, -low) >= _EXACT_64:
        expected = f"hold integers below 2**53 = {_EXACT_64}, beyond which floats lose digits"
        advice = "subtract an offset, or divide"
        raise InputError(parameter=name, value=(low, high), expected=expected, got=f"{low} to {high}", advice=advice)


def _float_type(array: np.ndarray) -> type:
    """float32 or float64, by the rule for real arrays."""
    if array.dtype.kind == "f":
        return np.float64 if array.dtype.itemsize > 4 else np.float32
    small = array.dtype.kind == "b" or array.dtype.itemsize < 4 or array.size == 0
    return np.float32 if small or max(int(array.max()), -int(array.min())) <= EXACT_IN_SINGLE else np.float64


def _parsed(array: np.ndarray, name: str) -> np.ndarray:
    """Objects and text as float64."""
    if array.dtype.kind == "O":
        kinds = set(map(type, array.flat))
        if kinds & {np.datetime64, np.timedelta64}:
            raise _not_real(name, "dates or time differences", array.dtype)
        integers = [value for value in array.flat if isinstance(value, int)] if int in kinds else []
        if integers:
            check_integers(min(integers), max(integers), name)
    try:
        with np.errstate(over="ignore"):  # infinite entries are reported later
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise _not_numbers(name, error) from error


def _sparse_floats(matrix: Any, name: str) -> sp.csr_array:
    """Compressed rows as floats, without a copy if possible."""
    if matrix.ndim != 2:
        raise InputError(parameter=name, value=matrix.shape, expected="be a matrix of shape (rows, features)")
    rows = sp.csr_array(check_compressed(matrix, name))
    if matrix.format in ("lil", "dok"):
        check_compressed(rows, name)
    data = real_array(rows.data, name)
    kind = _float_type(data)
    return rows if data.dtype == kind else sp.csr_array((data.astype(kind), rows.indices, rows.indptr), rows.shape)


def _table_floats(table: Any, name: str) -> np.ndarray:
    """The columns of a table side by side; missing entries are NaN."""
    types = column_types(table)
    refused = next((kind for kind in types if kind.startswith(_NOT_COLUMNS)), None)
    if refused is not None:
        raise _not_real(name, "complex numbers" if refused.startswith("complex") else "dates or times", refused)
    try:
        if hasattr(table, "iloc"):
            wide = table.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            wide = np.asarray(table).astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise _not_numbers(name, ValueError(error)) from error
    integers = [k for k, kind in enumerate(types) if kind.startswith(("int", "uint"))]
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(np.abs(wide[:, integers]), initial=0) if integers else 0.0
    check_integers(0, int(largest), name)
    narrow = {"float64", "double", "object"}.isdisjoint(types) and largest <= EXACT_IN_SINGLE
    return np.ascontiguousarray(wide, dtype=np.float32 if narrow else np.float64)


# --- entries --------------------------------------------------------------------------------------------


def check_scale(X: Any, *, normalize: bool, n_features: int | None = None) -> None:
    """Raise if products of X's entries would overflow or underflow, unless its rows are normalised.

    Warn if normalising leaves nothing: the unit vector of a single feature is its sign.
    """
    if normalize:
        if (X.shape[1] if n_features is None else n_features) == 1:
            warn("one feature", "X has one feature, of which normalize=True keeps only the sign. Set normalize=False.")
        return
    values = X.data if sp.issparse(X) else X
    xp = array_namespace(values)
    largest = max(float(xp.max(values)), -float(xp.min(values)), 0.0) if 0 not in values.shape else 0.0
    bound = 1e16 if xp.finfo(values.dtype).bits == 32 else 1e150
    if largest != 0 and not 1 / bound <= largest <= bound:
        raise InputError(
            parameter="X",
            value=largest,
            expected=f"have a largest entry between {1 / bound:g} and {bound:g} if its rows are not normalised",
            got=f"{largest:g}",
            advice="rescale X",
            settings={"normalize": True},
        )


def check_squares(values: Any, name: str, *, over: float = 1.0) -> None:
    """Raise if sums of squared differences of the entries, divided by the variance `over`, would overflow.

    `values` are dense, (…, feature), or sparse.
    """
    width = max(values.shape[-1], 1) if len(values.shape) else 1
    values = values.data if sp.issparse(values) else values
    xp = array_namespace(values)
    if 0 in values.shape:
        return
    info, largest = xp.finfo(values.dtype), max(float(xp.max(values)), -float(xp.min(values)))
    bound = math.sqrt(float(info.max) / 16 / width) * math.sqrt(min(over, 1.0))
    if not largest <= bound:
        variance = f" at a variance of {over:g}" if over < 1 else ""
        raise InputError(
            parameter=name,
            value=largest,
            expected=f"have entries of at most {bound:.2g} in {_dtype_name(values.dtype)}{variance}",
            got=f"{largest:g}",
            advice="rescale them" + (", or pass float64" if info.bits < 64 else ""),
        )


def least_factor(dtype: Any) -> float:
    """The smallest parameter that numbers of the dtype can be multiplied and divided by."""
    return 1e-300 if str(dtype).endswith("float64") else 1e-30


def check_in_range(value: float, dtype: Any, name: str) -> float:
    """`value`, which is zero or can multiply and divide numbers of the dtype without overflow."""
    bound = _product_bound(dtype)
    if value and not 1 / bound <= abs(value) <= bound:
        raise InputError(
            parameter=name,
            value=value,
            expected=f"lie between {1 / bound:g} and {bound:g} for numbers in {_dtype_name(dtype)}",
            advice="rescale the data, and this parameter with them",
        )
    return value


def check_heaviest(weights: Any, dtype: Any) -> None:
    """Raise if non-negative weights are so large that their sums overflow in the dtype."""
    bound = _product_bound(dtype)
    if weights is not None and len(weights) and float(weights.max()) > bound:
        raise InputError(
            parameter="weights",
            value=float(weights.max()),
            expected=f"be at most {bound:g} for points in {_dtype_name(dtype)}",
            advice="divide all of them by one number, which does not change the means",
        )


def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _product_bound(dtype: Any) -> float:
    """The largest factor that numbers of the dtype are multiplied with."""
    return 1 / least_factor(dtype)


def check_finite_result(result: Any, what: str) -> Any:
    """`result` unchanged; raises if finite inputs overflowed on the way to it."""
    xp = array_namespace(result) if hasattr(result, "dtype") else np
    if not bool(xp.all(xp.isfinite(result))):
        raise InputError(
            parameter=what,
            expected=f"stay within the range of {getattr(result, 'dtype', 'float64')}",
            got="an overflow",
            advice="rescale the input, or pass float64",
        )
    return result


def check_weight_scale(weights: Any, dtype: Any, what: str = "edge") -> None:
    """Raise if sums of weights would overflow or underflow in the dtype they are added in."""
    bound = 1e30 if str(dtype).endswith("float32") else 1e300
    if weights is not None and len(weights) and not 1 / bound <= float(weights.min()) <= float(weights.max()) <= bound:
        raise InputError(
            parameter=f"{what} weights",
            value=(float(weights.min()), float(weights.max())),
            expected=f"lie between {1 / bound:g} and {bound:g} for features in {_dtype_name(dtype)}",
            got=f"{weights.min():g} to {weights.max():g}",
            advice=f"rescale them, or drop the {what}s of tiny weight",
        )


def plain_row(row: int) -> str:
    """The name of a row of a matrix in an error."""
    return f"row {row}"


def check_finite_rows(
    X: Any, name: str = "X", *, indptr: Any = None, name_row: Callable[[int], str] = plain_row
) -> None:
    """Raise if a dense or CSR matrix holds NaN or infinity; the message has `name_row(i)` of the first bad row i.

    A tensor in compressed rows is passed as its values and its `indptr`.
    """
    values, indptr = (X.data, X.indptr) if sp.issparse(X) else (X, indptr)
    xp = array_namespace(values)
    # A finite sum proves that all entries are finite. The row is searched only if it is not.
    # A tensor is summed in its own type, because PyTorch would make a wider copy; overflow only costs the search.
    wide = {"dtype": np.float64} if isinstance(values, np.ndarray) else {}
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(xp.sum(values, **wide))
    if np.isfinite(total) or bool(xp.all(xp.isfinite(values))):
        return
    if not values.shape:
        raise InputError(parameter=name, value=float(values), expected="be a finite number")
    position = [int(index[0]) for index in xp.nonzero(~xp.isfinite(values))]
    row = position[0] if indptr is None else int((indptr <= position[0]).sum()) - 1
    kind = "NaN" if bool(xp.isnan(values[tuple(position)])) else "infinity"
    error = MissingValueError if kind == "NaN" else InputError
    raise error(
        parameter=name,
        value=row,
        expected="hold finite numbers",
        got=f"{kind} in {name_row(row)} (the first bad one)",
        advice="fill or drop such rows, with sklearn.impute.SimpleImputer for example",
    )


def check_within(
    values: Any, what: str, bound: float, *, indptr: Any = None, name_row: Callable[[int], str] = plain_row
) -> None:
    """Raise if an entry of `what` lies outside ±bound or is NaN; the message names the first bad row.

    Compressed rows are passed as their values and their `indptr`.
    """
    xp = array_namespace(values)
    if 0 in values.shape or max(float(xp.max(values)), -float(xp.min(values))) <= bound:
        return
    position = [int(index[0]) for index in xp.nonzero(~(xp.abs(values) <= bound))]
    row = position[0] if indptr is None else int((indptr <= position[0]).sum()) - 1
    value = float(values[tuple(position)])
    raise InputError(
        parameter=what,
        value=value,
        expected=f"lie between {-bound:.3g} and {bound:.3g}",
        got=f"{value:g} in {name_row(row)} (the first bad one)",
        advice="rescale such rows, or fit again on numbers of their size",
    )


def check_dense(X: Any) -> None:
    """Raise if a sparse matrix as a dense array does not fit into the memory of this process."""
    advice = "drop features without entries, or reduce them with sklearn.decomposition.TruncatedSVD"
    what = f"{X.shape[0]:,} rows of {X.shape[1]:,} features need"
    check_host_memory(math.prod(X.shape) * X.dtype.itemsize, what, "as a dense matrix", advice)


def check_compressed(A: Any, what: str) -> Any:
    """A sparse matrix whose indices are valid, which compiled code relies on. Formats without indices become CSR."""
    A = A if A.format in ("csr", "csc", "bsr", "coo") else A.tocsr()
    try:
        fault = _coordinate_fault(A) if A.format == "coo" else A.check_format(full_check=True)
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        fault = str(error)
    if fault:
        raise InputError(
            parameter=what,
            expected=f"be a sparse matrix whose indices lie inside its shape {tuple(A.shape)}",
            got=f"one where {fault.rstrip('. ')}",
            advice="build it again from its rows, columns and values",
        )
    return A


def _coordinate_fault(A: Any) -> str | None:
    """What is wrong with the coordinates of a COO matrix."""
    coordinates = getattr(A, "coords", None) or (A.row, A.col)  # SciPy 1.12 has no coords
    for numbers, size in zip(coordinates, A.shape, strict=True):
        if numbers.shape != A.data.shape or numbers.dtype.kind not in "iu":
            return f"{A.nnz} values have coordinates of shape {numbers.shape} and dtype {numbers.dtype}"
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= size):
            return f"coordinates go from {numbers.min()} to {numbers.max()}"
    return None
