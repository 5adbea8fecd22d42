"""npz files as they are read, and the names that files of tables have; nothing here needs Arrow.

Features are a dense array `x`, else the pieces `x_data`, `x_indices`, `x_indptr`, `x_shape` of a CSR matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph import _archive_checks, _checks, _file_checks

SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".parquet": "", ".npz": ""}
_PIECES = ("data", "indices", "indptr", "shape")
Arrays = dict[str, np.ndarray]


def read_npz(path: Path) -> Arrays:
    """The arrays of a file, none of them pickled."""
    head = _file_checks.check_readable(path)
    try:
        _archive_checks.check_npz(path)
        with np.load(path, allow_pickle=False) as file:
            return native({key: file[key] for key in file.files})
    except Exception as error:  # zipfile, zlib and NumPy each have errors of their own
        raise _file_checks.unreadable(path, head, plain_reason(error)) from error


def plain_reason(error: Exception) -> str:
    """Why an npz file is refused; NumPy's advice to unpickle it is not quoted."""
    return "no npz file" if "pickle.load" in str(error) else str(error)


def native(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Arrays in the byte order of this machine."""
    return {key: array.astype(array.dtype.newbyteorder("="), copy=False) for key, array in arrays.items()}


def entry(path: str | Path, arrays: Arrays, key: str, shape: tuple[int, ...] = ()) -> np.ndarray:
    """An array of an npz file, of the given shape if there is one."""
    if key not in arrays:
        raise ValueError(f"'{path}' must hold an array {key!r}, got {', '.join(arrays) or 'none'}; add it.")
    if shape and arrays[key].shape != shape:
        raise ValueError(f"{key} in '{path}' must have shape {shape}, got {arrays[key].shape}; repair it.")
    return arrays[key]


def has_features(arrays: Arrays, dense: str = "x", pieces: str = "x") -> bool:
    """Whether an npz file holds features, or a part of them."""
    return not arrays.keys().isdisjoint([dense, *_names(pieces)])


def read_features(path: str | Path, arrays: Arrays, dense: str = "x", pieces: str = "x") -> np.ndarray | sp.csr_array:
    """The features of an npz file, (node, feature) and finite: the array `dense`, else CSR of four `pieces`.

    They are float32, and float64 where that keeps the digits of integers.
    """
    if not has_features(arrays, dense, pieces):
        raise ValueError(
            f"'{path}' must hold an array {dense!r} or the pieces {', '.join(_names(pieces))} of a CSR matrix, got "
            f"{', '.join(arrays) or 'none'}; add the features."
        )
    if dense in arrays:
        X: Any = arrays[dense]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"{dense} in '{path}' must be (n, d) numbers, got {X.dtype} of shape {X.shape}; repair it."
            )
        X = np.ascontiguousarray(single(X, f"{dense} in '{path}'"))
    else:
        X = read_csr(path, arrays, pieces)
    _checks.check_finite_rows(X, f"the features of '{path}'")
    return X


def read_csr(path: str | Path, arrays: Arrays, pieces: str) -> sp.csr_array:
    """The matrix of four arrays, every position once; every index is checked, for compiled code trusts them."""
    names = _names(pieces)
    data, *places = (entry(path, arrays, name) for name in names)
    for name, array in zip(names[1:], places, strict=True):
        if array.size and array.dtype.kind not in "iu":  # an empty list is float64, and harmless
            raise ValueError(f"{name} in '{path}' must hold whole numbers, got {array.dtype}; repair it.")
    indices, indptr = (array if array.dtype == np.int32 else array.astype(np.int64, copy=False) for array in places[:2])
    n, d = (int(size) for size in entry(path, arrays, names[3], (2,)))
    _archive_checks.check_width(d, data.size, f"{names[3]} in '{path}'")
    values, what = single(data, f"{names[0]} in '{path}'"), f"{', '.join(names)} in '{path}'"
    try:
        matrix = sp.csr_array((values, indices, indptr), shape=(n, d))
    except ValueError as error:
        raise ValueError(f"{what} must make a CSR matrix, got {error}; repair it.") from error
    _checks.check_compressed(matrix, what)
    matrix.sum_duplicates()
    return matrix


def feature_arrays(X: Any) -> dict[str, np.ndarray]:
    """The arrays that hold features in an npz file, as `read_features` reads them; what is sparse stays sparse."""
    if not sp.issparse(X):
        return {"x": X}
    X = sp.csr_array(X)
    return dict(zip(_names("x"), (X.data, X.indices, X.indptr, np.array(X.shape)), strict=True))


def single(values: np.ndarray, what: str) -> np.ndarray:
    """Finite numbers in float32, or in float64 where float32 would lose digits; none is beyond the range of float32."""
    kind = np.float64 if loses_digits(values) else np.float32
    return within_single(values, what).astype(kind, copy=False)


def within_single(values: np.ndarray, what: str) -> np.ndarray:
    """Numbers as they came; raises where they are none, or finite and beyond the range of float32."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{what} must hold numbers, got {values.dtype}; repair it.")
    if values.dtype.itemsize > 4 and values.dtype.kind == "f":
        beyond = np.isfinite(values) & (np.abs(values) > np.finfo(np.float32).max)
        if beyond.any():
            raise ValueError(f"{what} must lie within ±3.4e38, got {values[beyond][0]:g}; rescale it.")
    return values


def loses_digits(values: np.ndarray) -> bool:
    """Whether float32 would change a number beyond 2²⁴, from where on it has no place for units: a time in seconds."""
    if values.dtype.kind not in "iuf" or values.dtype.itemsize < 4 or values.dtype == np.float32 or not values.size:
        return False
    if values.min() >= -(2**24) and values.max() <= 2**24:
        return False
    large = values[np.isfinite(values) & (np.abs(values.astype(np.float64)) > 2**24)]
    with np.errstate(over="ignore"):
        return bool((large.astype(np.float32) != large).any())


def _names(pieces: str) -> list[str]:
    return [f"{pieces}_{piece}" for piece in _PIECES]
