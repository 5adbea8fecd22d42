"""Validation of parameters and of numeric arrays: one function per question, each raising a typed error."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from fishergraph._errors import InputError, NotEnoughMemory, gigabytes
from fishergraph._warn import warn

T = TypeVar("T")

# What parameters may be at most: more layers or iterations take days, and sizes are counted in 32 bits.
MOST_LAYERS = 1000
MOST_ITERATIONS = 10_000
_MOST_WEIGHT = 1e12
MOST_ANCHORS = MOST_COLUMNS = 2**31 - 1


def look_up(table: Mapping[str, T], name: Any, what: str) -> T:
    """The entry `name` of a table of named choices."""
    if isinstance(name, str) and name in table:
        return table[name]
    known = ", ".join(repr(key) for key in table)
    raise InputError(parameter=what, value=name, expected=f"be one of {known}")


def check_integer(value: Any, name: str, *, least: int, most: float = math.inf) -> int:
    """`value` as an int from `least` to `most`."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integer or not least <= value <= most:
        bound = f"of at least {least}" + (f" and at most {most}" if integer and value > most else "")
        raise InputError(parameter=name, value=value, expected=f"be an integer {bound}")
    return int(value)


def check_seed(value: Any, name: str = "seed") -> int:
    """`value` as a seed of 64 bits."""
    return check_integer(value, name, least=0, most=2**64 - 1)


def check_random_seed(value: Any) -> Any:
    """`random_state` unchanged; an integer must be a seed that scikit-learn's generators accept."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return check_integer(value, "random_state", least=0, most=2**32 - 1)
    return value


def check_number(value: Any, name: str, *, least: float = 0.0, most: float = np.inf, strict: bool = False) -> float:
    """`value` as a finite float from `least` (above it when `strict`) to `most`."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most or (strict and value == least):
        bound = f"greater than {least:g}" if strict else f"of at least {least:g}"
        bound += f" and at most {most:g}" if np.isfinite(most) else ""
        raise InputError(parameter=name, value=value, expected=f"be a finite number {bound}")
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    """`value` as a bool; nothing but True and False is accepted."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(parameter=name, value=value, expected="be True or False")
    return bool(value)


def check_n_jobs(value: Any) -> int | None:
    """A number of threads: None, or an integer that is not zero (−1 is every core)."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0):
        expected = "be None or an integer other than 0"
        raise InputError(parameter="n_jobs", value=value, expected=expected, advice="-1 uses every core")
    return None if value is None else int(value)


def check_host_memory(n_bytes: int, what: str, purpose: str, advice: str) -> None:
    """Raise if more bytes are needed than the machine has, or than this process may take.

    The message reads "{what} about 12.0 GB {purpose}, got 4.0 GB of memory; {advice}."
    """
    available = _host_bytes()
    if n_bytes > available:
        text = f"{what} about {gigabytes(n_bytes)} {purpose}, got {gigabytes(available)} of memory; {advice}."
        raise NotEnoughMemory(text, purpose=purpose, needed=n_bytes, available=available, advice=advice)


def _host_bytes() -> float:
    """The memory of the machine, or the limit of the process; infinite if the system does not tell."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ImportError, ValueError, OSError, AttributeError):
        return math.inf
    return total if limit in (-1, resource.RLIM_INFINITY) else min(total, limit)


def check_device(device: Any, precision: Any) -> None:
    """Raise unless the device is "cpu", "cuda" or "cuda:1", and supports the precision."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        expected = "be one of 'cpu', 'cuda', 'cuda:0', 'cuda:1', …"
        raise InputError(parameter="device", value=device, expected=expected)
    look_up({"float32": 0, "tf32": 0, "bf16": 0}, precision, "precision")
    if device == "cpu" and precision != "float32":
        raise InputError(
            parameter="precision",
            value=precision,
            expected="be 'float32' on the CPU, which keeps the type of X",
            advice="leave it out",
            settings={"device": "cuda"},
        )


def check_feature_count(model: Any, n_features: int, fitting: bool) -> None:
    """Store the number of features when fitting; later calls must have the same number."""
    if fitting:
        model.n_features_in_ = n_features
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
    elif n_features != model.n_features_in_:
        raise InputError(
            f"X has {n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input; pass the features it was fitted with.",
            parameter="X",
            value=n_features,
        )


def check_block_weights(weights: Any, n_blocks: int) -> tuple[float, ...]:
    """One non-negative weight per block of the output, at least one of them positive; None is all ones."""
    if weights is None:
        return (1.0,) * n_blocks
    values = np.asarray(weights, dtype=object).ravel()
    if len(values) != n_blocks:
        expected = f"hold {n_blocks} weights: one for the input, one for the walk if there is one, one for every layer"
        raise InputError(parameter="block_weights", value=weights, expected=expected, got=f"{len(values)}")
    checked = tuple(check_number(value, "a block weight") for value in values)
    if max(checked, default=0) > _MOST_WEIGHT:
        expected, advice = f"be at most {_MOST_WEIGHT:g}", "divide all of them by one number"
        raise InputError(parameter="block_weights", value=max(checked), expected=expected, advice=advice)
    if not any(checked):
        raise InputError(parameter="block_weights", value=weights, expected="have a positive entry", got="zeros only")
    return checked


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
    """The smallest size of a parameter that numbers of the dtype can be multiplied and divided by."""
    return 1e-300 if str(dtype).removeprefix("torch.") == "float64" else 1e-30


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
    name = _dtype_name(dtype)
    bound = 1e30 if name == "float32" else 1e300
    if weights is not None and len(weights) and not 1 / bound <= float(weights.min()) <= float(weights.max()) <= bound:
        raise InputError(
            parameter=f"{what} weights",
            value=(float(weights.min()), float(weights.max())),
            expected=f"lie between {1 / bound:g} and {bound:g} for features in {name}",
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
    raise InputError(
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
