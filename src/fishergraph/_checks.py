"""The door: every input is checked here, once, and every error is worded here.

A message is one sentence: what was expected, what came, what to do.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from fishergraph._warn import warn

T = TypeVar("T")

# What parameters may be at most: more layers or iterations take days, and sizes are counted in 32 bits.
MOST_LAYERS = 1000
MOST_ITERATIONS = 10_000
_MOST_WEIGHT = 1e12
MOST_ANCHORS = MOST_COLUMNS = 2**31 - 1


def look_up(table: Mapping[str, T], name: Any, what: str) -> T:
    """The entry of a table of named choices; an unknown name lists the known ones."""
    if isinstance(name, str) and name in table:
        return table[name]
    known = ", ".join(repr(key) for key in table)
    raise ValueError(f"{what} must be one of {known}, got {name!r}; choose one of these names.")


def check_integer(value: Any, name: str, *, least: int, most: float = math.inf) -> int:
    """`value` as an int from `least` to `most`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        bound = f"of at least {least}" + (f" and at most {most}" if whole and value > most else "")
        raise ValueError(f"{name} must be an integer {bound}, got {value!r}; pass such a number.")
    return int(value)


def check_seed(value: Any, name: str = "seed") -> int:
    """`value` as a seed of 64 bits."""
    return check_integer(value, name, least=0, most=2**64 - 1)


def check_random_seed(value: Any) -> Any:
    """`random_state` as it is; raises for an integer that is no seed of scikit-learn's generators."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return check_integer(value, "random_state", least=0, most=2**32 - 1)
    return value


def check_number(value: Any, name: str, *, least: float = 0.0, most: float = np.inf, strict: bool = False) -> float:
    """`value` as a finite float from `least` (above it when `strict`) to `most`."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most or (strict and value == least):
        bound = f"greater than {least:g}" if strict else f"of at least {least:g}"
        bound += f" and at most {most:g}" if np.isfinite(most) else ""
        raise ValueError(f"{name} must be a finite number {bound}, got {value!r}; pass such a number.")
    return float(value)


def check_flag(value: Any, name: str) -> bool:
    """`value` as a bool; only True and False are."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}; pass one of the two.")
    return bool(value)


def check_n_jobs(value: Any) -> int | None:
    """A number of threads: None, or an integer that is not zero (−1 is every core)."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {value!r}; -1 uses every core.")
    return None if value is None else int(value)


def check_host_memory(n_bytes: int, what: str, purpose: str, advice: str) -> None:
    """Raise where more bytes are needed than the machine has, or than this process may take."""
    memory = _host_bytes()
    if n_bytes > memory:
        gigabytes = f"{n_bytes / 1e9:.1f}" if n_bytes < 2**200 else f"more than 2**{n_bytes.bit_length() - 31}"
        raise MemoryError(f"{what} about {gigabytes} GB {purpose}, got {memory / 1e9:.1f} GB of memory; {advice}.")


def _host_bytes() -> float:
    """The memory of the machine, or the limit of the process; infinite where the system does not tell."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ImportError, ValueError, AttributeError):
        return math.inf
    return total if limit in (-1, resource.RLIM_INFINITY) else min(total, limit)


def check_device(device: Any, precision: Any) -> None:
    """Raise unless the device is "cpu", "cuda" or "cuda:1", and the precision one that it has."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(
            f"device must be one of 'cpu', 'cuda', 'cuda:0', 'cuda:1', …, got {device!r}; choose one of these."
        )
    look_up({"float32": 0, "tf32": 0, "bf16": 0}, precision, "precision")
    if device == "cpu" and precision != "float32":
        raise ValueError(
            f"precision on the CPU must be 'float32' (the type of X is kept), got {precision!r}; "
            "leave it out, or set device='cuda'."
        )


def check_feature_count(model: Any, n_features: int, fitting: bool) -> None:
    """Remember the number of features when fitting; raise where another number comes later."""
    if fitting:
        model.n_features_in_ = n_features
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
    elif n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input; pass the features it was fitted with."
        )


def check_block_weights(weights: Any, n_blocks: int) -> tuple[float, ...]:
    """One non-negative weight per block of the output, at least one of them positive; None is all ones."""
    if weights is None:
        return (1.0,) * n_blocks
    values = np.asarray(weights, dtype=object).ravel()
    if len(values) != n_blocks:
        raise ValueError(
            f"block_weights must hold one weight per block, {n_blocks} for the input, walks if any, and layers, "
            f"got {len(values)}; pass that many."
        )
    checked = tuple(check_number(value, "a block weight") for value in values)
    if max(checked, default=0) > _MOST_WEIGHT:
        raise ValueError(
            f"block_weights must be at most {_MOST_WEIGHT:g}, got {max(checked):g}; divide them all by one number."
        )
    if not any(checked):
        raise ValueError("block_weights must leave at least one block, got zeros only; make one of them positive.")
    return checked


def check_scale(X: Any, *, normalize: bool, n_features: int | None = None) -> None:
    """Raise where products of X's entries would leave the range of its dtype, unless its rows are normalised.

    Warn where normalising leaves nothing: the unit vector of a single feature is its sign.
    """
    if normalize:
        if (X.shape[1] if n_features is None else n_features) == 1:
            warn("one feature", "X has one feature, of which normalize=True keeps the sign alone; set normalize=False.")
        return
    values = X.data if sp.issparse(X) else X
    xp = array_namespace(values)
    largest = max(float(xp.max(values)), -float(xp.min(values)), 0.0) if 0 not in values.shape else 0.0
    bound = 1e16 if xp.finfo(values.dtype).bits == 32 else 1e150
    if largest != 0 and not 1 / bound <= largest <= bound:
        raise ValueError(
            f"X must have a largest entry between {1 / bound:g} and {bound:g} where its rows are not normalised, got "
            f"{largest:g}; rescale X, or set normalize=True, which leaves counts alone."
        )


def check_squares(values: Any, name: str, *, over: float = 1.0) -> None:
    """Raise where sums of squares of differences of the entries, divided by `over`, would leave the range of the dtype.

    `values` are dense, (…, feature), or sparse. A variance that they are divided by is `over`.
    """
    width = max(values.shape[-1], 1) if len(values.shape) else 1
    values = values.data if sp.issparse(values) else values
    xp = array_namespace(values)
    if 0 in values.shape:
        return
    info, largest = xp.finfo(values.dtype), max(float(xp.max(values)), -float(xp.min(values)))
    bound = math.sqrt(float(info.max) / 16 / width) * math.sqrt(min(over, 1.0))
    if not largest <= bound:
        beside = f" beside a variance of {over:g}" if over < 1 else ""
        raise ValueError(
            f"{name} must have entries of at most {bound:.2g} in {str(values.dtype).removeprefix('torch.')}{beside}, "
            f"got {largest:g}; rescale them{', or pass float64' if info.bits < 64 else ''}."
        )


def least_factor(dtype: Any) -> float:
    """The smallest size of a parameter that numbers of the dtype can be multiplied and divided by."""
    return 1e-300 if str(dtype).removeprefix("torch.") == "float64" else 1e-30


def check_in_range(value: float, dtype: Any, name: str) -> float:
    """A parameter, zero or of a size that numbers of the dtype can be multiplied and divided by."""
    kind, bound = str(dtype).removeprefix("torch."), 1 / least_factor(dtype)
    if value and not 1 / bound <= abs(value) <= bound:
        raise ValueError(
            f"{name} must lie between {1 / bound:g} and {bound:g} beside numbers in {kind}, got {value:g}; "
            "rescale the data, and this with them."
        )
    return value


def check_heaviest(weights: Any, dtype: Any) -> None:
    """Raise where weights, of which zero is one, are so large that their sums leave the range of the dtype."""
    kind = str(dtype).removeprefix("torch.")
    bound = 1e300 if kind == "float64" else 1e30
    if weights is not None and len(weights) and float(weights.max()) > bound:
        raise ValueError(
            f"weights must be at most {bound:g} beside points in {kind}, got {float(weights.max()):g}; divide them all "
            "by one number, which leaves the means as they are."
        )


def check_finite_result(result: Any, what: str) -> Any:
    """A result as it is; raises where numbers that were sound left the range of their dtype on the way."""
    xp = array_namespace(result) if hasattr(result, "dtype") else np
    if not bool(xp.all(xp.isfinite(result))):
        raise ValueError(
            f"{what} must stay within the range of {getattr(result, 'dtype', 'float64')}, got numbers beyond it; "
            "rescale what goes in, or pass float64."
        )
    return result


def check_weight_scale(weights: Any, dtype: Any, what: str = "edge") -> None:
    """Raise where sums of weights would leave the range of the dtype they are added in."""
    name = str(dtype).removeprefix("torch.")
    bound = 1e30 if name == "float32" else 1e300
    if weights is not None and len(weights) and not 1 / bound <= float(weights.min()) <= float(weights.max()) <= bound:
        raise ValueError(
            f"{what} weights must lie between {1 / bound:g} and {bound:g} beside features in {name}, "
            f"got {weights.min():g} to {weights.max():g}; rescale them, or drop the {what}s that hardly weigh."
        )


def plain_row(row: int) -> str:
    """How an error calls a row of a matrix."""
    return f"row {row}"


def check_finite_rows(
    X: Any, name: str = "X", *, indptr: Any = None, name_row: Callable[[int], str] = plain_row
) -> None:
    """Raise if a dense or CSR matrix holds NaN or infinity; the message names the first bad row, by `name_row(i)`.

    A tensor in compressed rows is given by its values and its `indptr`.
    """
    values, indptr = (X.data, X.indptr) if sp.issparse(X) else (X, indptr)
    xp = array_namespace(values)
    # One reduction finds the sunny case; the row is looked for only when there is a bad one.
    # A tensor is added up in its own type: PyTorch would make a wider copy of it, and overflow only takes the long way.
    wide = {"dtype": np.float64} if isinstance(values, np.ndarray) else {}
    with np.errstate(over="ignore", invalid="ignore"):  # of the sum, where it is not finite
        total = float(xp.sum(values, **wide))
    if np.isfinite(total) or bool(xp.all(xp.isfinite(values))):
        return
    if not values.shape:
        raise ValueError(f"{name} must be a finite number, got {float(values)}; pass such a number.")
    position = [int(index[0]) for index in xp.nonzero(~xp.isfinite(values))]
    row = position[0] if indptr is None else int((indptr <= position[0]).sum()) - 1
    kind = "NaN" if bool(xp.isnan(values[tuple(position)])) else "infinity"
    raise ValueError(
        f"{name} must hold finite numbers, got {kind} in {name_row(row)} (the first bad one); "
        "fill or drop such rows, with sklearn.impute.SimpleImputer for example."
    )


def check_within(
    values: Any, what: str, bound: float, *, indptr: Any = None, name_row: Callable[[int], str] = plain_row
) -> None:
    """Raise where an entry lies outside ±bound or is NaN; the message begins with `what` and names the first bad row.

    Compressed rows are given by their values and their `indptr`.
    """
    xp = array_namespace(values)
    if 0 in values.shape or max(float(xp.max(values)), -float(xp.min(values))) <= bound:
        return
    position = [int(index[0]) for index in xp.nonzero(~(xp.abs(values) <= bound))]
    row = position[0] if indptr is None else int((indptr <= position[0]).sum()) - 1
    raise ValueError(
        f"{what} must lie between {-bound:.3g} and {bound:.3g}, got {float(values[tuple(position)]):g} in "
        f"{name_row(row)} (the first bad one); rescale such rows, or fit again on numbers of their size."
    )


def check_dense(X: Any) -> None:
    """Raise where a sparse matrix as a dense array would be larger than the memory of this process can be."""
    needed, memory = math.prod(X.shape) * X.dtype.itemsize, _memory()
    if needed > memory:
        raise MemoryError(
            f"{X.shape[0]:,} rows of {X.shape[1]:,} features need {needed / 1e9:,.1f} GB, got {memory / 1e9:,.1f} GB "
            "of memory; drop features without entries, or reduce them with sklearn.decomposition.TruncatedSVD."
        )


def _memory() -> float:
    """The bytes of this machine's memory, or as many of them as this process may have."""
    try:
        import resource

        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, ValueError, OSError, AttributeError):  # a system that does not say
        return math.inf
    return physical if allowed == resource.RLIM_INFINITY else min(physical, allowed)


def check_compressed(A: Any, what: str) -> Any:
    """A sparse matrix, checked: compiled code, SciPy's too, trusts its indices. Formats without any become CSR."""
    A = A if A.format in ("csr", "csc", "bsr", "coo") else A.tocsr()
    try:
        fault = _coordinate_fault(A) if A.format == "coo" else A.check_format(full_check=True)
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        fault = str(error)
    if fault:
        raise ValueError(
            f"{what} must be a sparse matrix whose indices lie inside its shape {tuple(A.shape)}, got one where "
            f"{fault.rstrip('. ')}; build it again from its rows, columns and values."
        )
    return A


def _coordinate_fault(A: Any) -> str | None:
    """What is wrong with the coordinates of a COO matrix."""
    coordinates = getattr(A, "coords", None) or (A.row, A.col)  # SciPy 1.12 has no coords
    for numbers, size in zip(coordinates, A.shape, strict=True):
        if numbers.shape != A.data.shape or numbers.dtype.kind not in "iu":
            return f"coordinates of shape {numbers.shape} and dtype {numbers.dtype} stand beside {A.nnz} values"
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= size):
            return f"coordinates go from {numbers.min()} to {numbers.max()}"
    return None
