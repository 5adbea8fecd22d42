"""The values that `pickled` makes: NumPy arrays and SciPy matrices from bytes, if type, shape and number fit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from fishergraph._archive_checks import check_width
from fishergraph._checks import check_compressed

_NUMBERS = re.compile(r"[iu][1248]|f[248]")


class Name(Enum):
    """What a file may name."""

    CSR = "csr_matrix"
    RECONSTRUCT = "_reconstruct"
    NDARRAY = "ndarray"
    DTYPE = "dtype"
    DEFAULTDICT = "defaultdict"
    LIST = "list"
    ENCODE = "encode"
    BYTES = "bytes"


NAMES = {
    ("scipy.sparse.csr", "csr_matrix"): Name.CSR,
    ("scipy.sparse._csr", "csr_matrix"): Name.CSR,
    ("numpy.core.multiarray", "_reconstruct"): Name.RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): Name.RECONSTRUCT,
    ("numpy", "ndarray"): Name.NDARRAY,
    ("numpy", "dtype"): Name.DTYPE,
    ("collections", "defaultdict"): Name.DEFAULTDICT,
    ("__builtin__", "list"): Name.LIST,  # of Python 2
    ("builtins", "list"): Name.LIST,
    ("_codecs", "encode"): Name.ENCODE,  # how Python 3 writes bytes in protocol 2
    ("__builtin__", "bytes"): Name.BYTES,  # no bytes, likewise
}


def refuse(what: str) -> NoReturn:
    """Raise the error for a file that holds something else than expected."""
    raise ValueError(what)


def text(value: Any) -> str:
    """A text as Python 2 or 3 writes it."""
    if not isinstance(value, (str, bytes)):
        refuse(f"it has {type(value).__name__} where a text is expected")
    return value if isinstance(value, str) else value.decode("latin1")


def final(value: Any) -> Any:
    """A value as the caller of `parse` gets it."""
    if isinstance(value, (Array, Matrix)):
        return refuse("it has an array without content") if value.value is None else value.value
    return value if isinstance(value, (list, dict)) else refuse("it holds neither array, matrix, list nor table")


class Dtype:
    """A type of numbers; one that has a byte order is complete once it is filled."""

    def __init__(self, code: str):
        self.code, self.dtype = code, np.dtype(code)

    def fill(self, state: Any) -> None:
        """Set the byte order; any state that says more is refused."""
        plain = isinstance(state, tuple) and len(state) == 8 and state[0] == 3
        if not plain or state[2:] != (None, None, None, -1, -1, 0):
            refuse(f"it has the type {self.code!r} with a state of its own")
        order = text(state[1])
        if order not in (("|",) if self.code.endswith("1") else ("<", ">")):
            refuse(f"it has the type {self.code!r} in the byte order {order!r}")
        self.dtype = np.dtype(order + self.code)


class Array:
    """An array that is empty until it is filled, once."""

    value: np.ndarray | None = None

    def fill(self, state: Any) -> None:
        """Set the version, shape, type, order and bytes; the array has the byte order of this machine."""
        if self.value is not None or not isinstance(state, tuple) or len(state) != 5:
            refuse("it has an array with an unknown state")
        _, shape, kind, by_columns, content = state
        _check_shape(shape)
        if not isinstance(kind, Dtype) or not isinstance(content, bytes):
            refuse("it has an array that is not made of numbers")
        if math.prod(shape) * kind.dtype.itemsize != len(content):
            refuse(f"it has {len(content)} bytes for an array of shape {shape} and type {kind.dtype}")
        flat = np.frombuffer(content, kind.dtype).astype(kind.dtype.newbyteorder("="))
        self.value = flat.reshape(shape, order="F" if by_columns else "C")


class Matrix:
    """A CSR matrix that is empty until it is filled, once."""

    value: sp.csr_array | None = None

    def fill(self, state: Any) -> None:
        """Set the attributes of a csr_matrix; every index is checked."""
        complete = isinstance(state, dict) and {"data", "indices", "indptr", "_shape"} <= state.keys()
        if self.value is not None or not complete:
            refuse("it has a CSR matrix with pieces missing")
        _check_shape(state["_shape"])
        pieces = tuple(final(state[piece]) for piece in ("data", "indices", "indptr"))
        if len(state["_shape"]) != 2 or not all(isinstance(piece, np.ndarray) and piece.ndim == 1 for piece in pieces):
            refuse("it has a CSR matrix whose pieces are not arrays")
        if any(piece.dtype.kind != "i" for piece in pieces[1:]):
            refuse("it has a CSR matrix whose indices are not integers")
        matrix = sp.csr_array(pieces, shape=state["_shape"])
        check_width(state["_shape"][1], matrix.nnz, "its matrix")
        self.value = check_compressed(matrix, "its matrix")


def _check_shape(shape: Any) -> None:
    sound = isinstance(shape, tuple) and 1 <= len(shape) <= 2
    if not sound or not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        refuse("it has an array whose shape is not one or two counts")


# --- what a file may call -------------------------------------------------------------------------------


def _new_array(arguments: tuple[Any, ...]) -> Array:
    return Array() if arguments[:1] == (Name.NDARRAY,) else refuse("it makes something other than an array")


def _new_dtype(arguments: tuple[Any, ...]) -> Dtype:
    code = text(arguments[0]) if arguments else ""
    return Dtype(code) if _NUMBERS.fullmatch(code) else refuse(f"it has an array of the type {code!r}, not of numbers")


def _new_table(arguments: tuple[Any, ...]) -> dict[int, list[int]]:
    return {} if arguments in ((), (Name.LIST,)) else refuse("it has a table with an unknown default")


def _latin1(arguments: tuple[Any, ...]) -> bytes:
    if len(arguments) != 2 or not isinstance(arguments[0], str) or arguments[1] not in ("latin1", "latin-1"):
        refuse("it encodes bytes in another way than as latin1")
    return arguments[0].encode("latin1")


CALLS: dict[Name, Callable[[tuple[Any, ...]], Any]] = {
    Name.RECONSTRUCT: _new_array,
    Name.DTYPE: _new_dtype,
    Name.DEFAULTDICT: _new_table,
    Name.ENCODE: _latin1,
    Name.BYTES: lambda arguments: b"" if arguments == () else refuse("it makes bytes of something"),
}
