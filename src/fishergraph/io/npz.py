"""Arrays and feature matrices in npz files.

Features are a dense array `x`, or the arrays `x_data`, `x_indices`, `x_indptr`, `x_shape` of a CSR matrix.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed, check_finite_rows
from fishergraph._errors import FileFormatError, InputError
from fishergraph.io.archives import check_npz, check_width, read_npy_header
from fishergraph.io.files import Advance, CountedReader, check_readable, check_regular, count_nothing, unreadable

# Suffixes of table files, and the separators of those that are text.
SUFFIXES = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".parquet": "", ".npz": ""}
# Suffixes of folders, and of all files and folders of node features or embeddings.
FOLDER_SUFFIXES = (".lance", ".zarr")
ARRAYS = (".npz", ".npy", ".zarr")  # of arrays instead of columns
MATRIX_SUFFIXES = (*SUFFIXES, ".npy", *FOLDER_SUFFIXES)
_READ = 2**26  # bytes
_PIECES = ("data", "indices", "indptr", "shape")
Arrays = dict[str, np.ndarray]


def read_npz(path: Path, keys: Collection[str] | None = None, advance: Advance = count_nothing) -> Arrays:
    """The arrays of a file, or those in `keys` that it has; pickled ones are refused."""
    head = check_readable(path)
    with path.open("rb") as stream:
        return read_arrays(cast(Any, CountedReader(stream, advance)), path, keys, head)


def read_npy(path: Path, advance: Advance = count_nothing) -> np.ndarray:
    """The array of a .npy file; pickled objects are refused."""
    head = check_readable(path)
    with path.open("rb") as stream:
        try:
            shape, dtype = read_npy_header(stream, path.name)
            start, size = stream.tell(), math.prod(shape) * dtype.itemsize
            if start + size != path.stat().st_size:
                reason = f"it declares shape {shape} and type {dtype}, which need {size:,} bytes"
                raise FileFormatError(reason=f"{reason}, but has {path.stat().st_size - start:,}")
            stream.seek(0)
            fortran = b"'fortran_order': True" in stream.read(start)
            flat = np.empty(math.prod(shape), dtype)
            view = memoryview(cast(Any, flat.view(np.uint8))) if size else memoryview(b"")
            for at in range(0, size, _READ):
                advance(stream.readinto(view[at : at + _READ]))
        except (FileFormatError, OSError, ValueError) as error:
            raise unreadable(path, head, error) from error
    array = flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
    return native({"": array})[""]


def read_arrays(stream: IO[bytes], path: str | Path, keys: Collection[str] | None = None, head: bytes = b"") -> Arrays:
    """The arrays of an open file; errors name `path`, and what its first bytes `head` look like."""
    try:
        check_npz(stream, keys)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as file:
            return native({key: file[key] for key in file.files if keys is None or key in keys})
    except Exception as error:  # zipfile, zlib and NumPy each have errors of their own
        raise unreadable(Path(path), head, error) from error


def npz_keys(path: Path) -> set[str]:
    """The names of the arrays of a file; none if it is not an npz file."""
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as file:
            return {name.removesuffix(".npy") for name in file.namelist()}
    except Exception:  # a damaged list of members can fail in any way; reading the file then explains it
        return set()


def native(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Arrays in the byte order of this machine."""
    return {key: array.astype(array.dtype.newbyteorder("="), copy=False) for key, array in arrays.items()}


def entry(path: str | Path, arrays: Arrays, key: str, shape: tuple[int, ...] = ()) -> np.ndarray:
    """An array of an npz file, of this shape if it is not ()."""
    if key not in arrays:
        raise misfit(path, f"an array {key!r}", f"only {', '.join(sorted(arrays)) or 'no array'}")
    if shape and arrays[key].shape != shape:
        raise misfit(path, f"{key!r} of shape {shape}", f"shape {arrays[key].shape}")
    return arrays[key]


def misfit(path: str | Path, expected: str, got: str) -> FileFormatError:
    """The error for a file whose arrays do not fit its layout."""
    return FileFormatError(path=path, reason=f"it must hold {expected}, got {got}", advice="repair it")


def integers(path: str | Path, arrays: Arrays, key: str, shape: tuple[int, ...] = ()) -> np.ndarray:
    """An array of an npz file as int64."""
    array = entry(path, arrays, key, shape)
    if array.dtype.kind not in "iu":
        raise misfit(path, f"integers in {key!r}", f"dtype {array.dtype}")
    if array.dtype.kind == "u" and array.max(initial=0) >= 2**63:
        raise misfit(path, f"integers below 2⁶³ in {key!r}", str(array.max()))
    return array.astype(np.int64)


def has_features(arrays: Arrays, dense: str = "x", pieces: str = "x") -> bool:
    """Whether an npz file holds features, or some arrays of them."""
    return not arrays.keys().isdisjoint([dense, *csr_names(pieces)])


def read_features(
    path: str | Path, arrays: Arrays, dense: str = "x", pieces: str = "x", *, n_rows: int | None = None
) -> np.ndarray | sp.csr_array:
    """The finite features (node, feature) of an npz file: the array `dense`, or CSR of four `pieces`.

    They are float32, or float64 if that keeps the digits of integers.
    """
    if not has_features(arrays, dense, pieces):
        expected = f"an array {dense!r} or the arrays {', '.join(csr_names(pieces))} of a CSR matrix"
        raise misfit(path, expected, f"only {', '.join(sorted(arrays)) or 'no array'}")
    if dense in arrays:
        X: Any = arrays[dense]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise misfit(path, f"numbers of shape (node, feature) in {dense!r}", f"{X.dtype} of shape {X.shape}")
        X = np.ascontiguousarray(single(X, f"{dense} in '{path}'"))
    else:
        X = read_csr(path, arrays, pieces)
    if n_rows is not None and X.shape[0] != n_rows:
        raise misfit(path, f"features of {n_rows} nodes", f"shape {X.shape}")
    check_finite_rows(X, f"the features of '{path}'")
    return X


def read_csr(path: str | Path, arrays: Arrays, pieces: str) -> sp.csr_array:
    """The matrix of four arrays without duplicates; its indices are valid, which compiled code relies on."""
    names = csr_names(pieces)
    data, *integers = (entry(path, arrays, name) for name in names)
    for name, array in zip(names[1:], integers, strict=True):
        if array.size and array.dtype.kind not in "iu":  # an empty list is float64
            raise misfit(path, f"integers in {name!r}", str(array.dtype))
    indices, indptr = (a if a.dtype == np.int32 else a.astype(np.int64, copy=False) for a in integers[:2])
    n, d = (int(size) for size in entry(path, arrays, names[3], (2,)))
    check_width(d, data.size, f"{names[3]} in '{path}'")
    values, what = single(data, f"{names[0]} in '{path}'"), f"{', '.join(names)} in '{path}'"
    try:
        matrix = sp.csr_array((values, indices, indptr), shape=(n, d))
    except (ValueError, OverflowError) as error:
        raise misfit(path, f"a CSR matrix in {', '.join(names)}", str(error)) from error
    check_compressed(matrix, what)
    matrix.sum_duplicates()
    return matrix


def feature_arrays(X: Any) -> dict[str, np.ndarray]:
    """The arrays that hold features in an npz file, for `read_features`; sparse features stay sparse."""
    if not sp.issparse(X):
        return {"x": X}
    X = sp.csr_array(X)
    return dict(zip(csr_names("x"), (X.data, X.indices, X.indptr, np.array(X.shape)), strict=True))


def single(values: np.ndarray, what: str) -> np.ndarray:
    """Numbers within the range of float32, as float32, or as float64 if float32 would lose digits."""
    kind = np.float64 if loses_digits(values) else np.float32
    return within_single(values, what).astype(kind, copy=False)


def within_single(values: np.ndarray, what: str) -> np.ndarray:
    """The values unchanged: numbers, and those that are finite within the range of float32."""
    if values.dtype.kind not in "biuf":
        raise InputError(parameter=what, expected="hold numbers", got=str(values.dtype), advice="repair it")
    if values.dtype.itemsize > 4 and values.dtype.kind == "f":
        beyond = np.isfinite(values) & (np.abs(values) > np.finfo(np.float32).max)
        if beyond.any():
            value = float(values[beyond][0])
            raise InputError(parameter=what, value=value, expected="lie within ±3.4e38", advice="rescale it")
    return values


def loses_digits(values: np.ndarray) -> bool:
    """Whether float32 would change a number beyond 2²⁴, such as a time in seconds."""
    if values.dtype.kind not in "iuf" or values.dtype.itemsize < 4 or values.dtype == np.float32 or not values.size:
        return False
    if values.min() >= -(2**24) and values.max() <= 2**24:
        return False
    large = values[np.isfinite(values) & (np.abs(values.astype(np.float64)) > 2**24)]
    with np.errstate(over="ignore"):
        return bool((large.astype(np.float32) != large).any())


def csr_names(pieces: str) -> list[str]:
    """The names of the four arrays of a CSR matrix."""
    return [f"{pieces}_{piece}" for piece in _PIECES]
