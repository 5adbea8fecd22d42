"""Arrays, CSR matrices and neighbour lists in pickle files, read without unpickling.

A pickle is a program, and `pickle.Unpickler` runs it: even one that can name nothing but NumPy arrays can be made to
follow pointers that are written in the file. The files of Planetoid use few of its instructions, always in the same
way. `parse` knows these instructions alone and makes the values itself, from bytes whose number fits the shape. Names of
classes and functions are compared with a short list and never looked up.

Known are integers, texts, bytes, lists of integers, tables of integers to such lists, arrays of numbers with one or two
axes, and CSR matrices of them, as protocols 2 to 4 write them. Everything else is an error.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from fishergraph._archive_checks import check_width
from fishergraph._checks import check_compressed

STACK = 10_000  # values at once; Python writes at most a thousand items of a container before it joins them
SHARED = 64  # bytes of a text that may be referred to again
_NUMBERS = re.compile(r"[iu][1248]|f[248]|b1")


class _Name(Enum):
    """What a file may name."""

    CSR = "csr_matrix"
    RECONSTRUCT = "_reconstruct"
    NDARRAY = "ndarray"
    DTYPE = "dtype"
    DEFAULTDICT = "defaultdict"
    LIST = "list"
    ENCODE = "encode"


_NAMES = {
    ("scipy.sparse.csr", "csr_matrix"): _Name.CSR,
    ("scipy.sparse._csr", "csr_matrix"): _Name.CSR,
    ("numpy.core.multiarray", "_reconstruct"): _Name.RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _Name.RECONSTRUCT,
    ("numpy", "ndarray"): _Name.NDARRAY,
    ("numpy", "dtype"): _Name.DTYPE,
    ("collections", "defaultdict"): _Name.DEFAULTDICT,
    ("__builtin__", "list"): _Name.LIST,  # of Python 2
    ("builtins", "list"): _Name.LIST,
    ("_codecs", "encode"): _Name.ENCODE,  # how Python 3 writes bytes in protocol 2
}


class _Dtype:
    """A type of numbers, complete once its byte order is known."""

    def __init__(self, code: str):
        self.code, self.dtype = code, None


class _Array:
    """An array that has no shape yet."""

    value: np.ndarray | None = None


class _Matrix:
    """A CSR matrix that has no pieces yet."""

    value: sp.csr_array | None = None


_MARK, _UNSHARED = object(), object()


def parse(data: bytes) -> Any:
    """The array, CSR matrix, list or table that a pickle holds; a ValueError says what else was found."""
    return _Parser(data).run()


def _refuse(what: str) -> NoReturn:
    raise ValueError(what)


class _Parser:
    """One pass over the instructions of a file."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The value on the stack at the end of the program."""
        if self.data[:1] != b"\x80" or self.data[1:2] not in (b"\x02", b"\x03", b"\x04"):
            _refuse("it does not begin as a pickle of protocol 2, 3 or 4 does")
        self.at = 2
        while (code := self.take(1)) != b".":
            step = _STEPS.get(code)
            if step is None:
                _refuse(f"it has the instruction {code!r} at byte {self.at - 1}, which such files do not use")
            step(self)
            if len(self.stack) > STACK:
                _refuse(f"it holds more than {STACK} values that belong to no container")
        if len(self.stack) != 1:
            _refuse(f"it ends with {len(self.stack)} values instead of one")
        return _value(self.stack[0])

    # --- bytes ---

    def take(self, count: int) -> bytes:
        """The next bytes of the file."""
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            _refuse("it is cut short")
        self.at += count
        return part

    def number(self, layout: str) -> int:
        """The next integer of the file."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def counted(self, layout: str) -> bytes:
        """The next bytes of the file, as many as the integer before them says."""
        return self.take(self.number(layout))

    def line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + 200)
        return self.take(end + 1 - self.at)[:-1].decode("latin1") if end >= 0 else _refuse("it has a name without end")

    # --- the stack ---

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            _refuse("it takes a value that is not there")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            _refuse(f"it fills something other than a {kind.__name__.strip('_').lower()}")
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        """The values behind the last mark, which goes too."""
        for start in range(len(self.stack) - 1, -1, -1):
            if self.stack[start] is _MARK:
                values = self.stack[start + 1 :]
                del self.stack[start:]
                return values
        return _refuse("it takes values up to a mark that is not there")

    # --- instructions ---

    def remember(self, key: int) -> None:
        """Keep names, types and short texts; containers are not shared, so that none can hold itself."""
        value = self.stack[-1] if self.stack else _refuse("it remembers a value that is not there")
        short = isinstance(value, (str, bytes)) and len(value) <= SHARED
        self.memo[key] = value if short or isinstance(value, (_Name, _Dtype)) else _UNSHARED

    def recall(self, key: int) -> None:
        value = self.memo.get(key, _UNSHARED)
        self.stack.append(_refuse("it refers to a value a second time") if value is _UNSHARED else value)

    def name(self, module: str, name: str) -> None:
        if (module, name) not in _NAMES:
            _refuse(f"it names {module}.{name}, which is no array, CSR matrix or list")
        self.stack.append(_NAMES[module, name])

    def name_on_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(_text(module), _text(name))

    def tuple_of(self, values: list[Any]) -> None:
        """A tuple of plain values and of tuples of these, which is as deep as they come."""
        if any(isinstance(inner, tuple) for value in values if isinstance(value, tuple) for inner in value):
            _refuse("it has tuples within tuples within tuples")
        self.stack.append(tuple(values))

    def last(self, count: int) -> None:
        self.tuple_of([self.pop() for _ in range(count)][::-1])

    def append(self, values: list[Any]) -> None:
        if not all(type(value) is int for value in values):
            _refuse("it has a list of something other than integers")
        self.top(list).extend(values)

    def set_items(self, values: list[Any]) -> None:
        """Entries of a table of neighbours (integers to lists) or of the pieces of a matrix (by their names)."""
        if len(values) % 2:
            _refuse("it has a key without value")
        table = self.top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(key) is int and not isinstance(value, list):
                _refuse(f"it has {type(value).__name__} instead of a list at key {key}")
            table[key if type(key) is int else _text(key)] = value

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        made = _CALLS.get(function) if isinstance(function, _Name) else None
        if made is None or not isinstance(arguments, tuple):
            _refuse("it calls something other than NumPy's constructors of arrays and types")
        self.stack.append(made(arguments))

    def new_object(self) -> None:
        arguments, kind = self.pop(), self.pop()
        if kind is not _Name.CSR or arguments != ():
            _refuse("it makes an object other than a CSR matrix")
        self.stack.append(_Matrix())

    def build(self) -> None:
        state = self.pop()
        target = self.stack[-1] if self.stack else None
        if isinstance(target, _Dtype):
            _set_order(target, state)
        elif isinstance(target, _Array):
            target.value = _array(state) if target.value is None else _refuse("it fills an array twice")
        elif isinstance(target, _Matrix):
            target.value = _matrix(state) if target.value is None else _refuse("it fills a matrix twice")
        else:
            _refuse("it sets the state of something other than an array, a matrix or a type of numbers")


def _push(read: Callable[[_Parser], Any]) -> Callable[[_Parser], None]:
    return lambda parser: parser.stack.append(read(parser))


_STEPS: dict[bytes, Callable[[_Parser], Any]] = {
    b"(": _push(lambda p: _MARK),
    b"N": _push(lambda p: None),
    b"\x88": _push(lambda p: True),
    b"\x89": _push(lambda p: False),
    b"K": _push(lambda p: p.number("<B")),
    b"M": _push(lambda p: p.number("<H")),
    b"J": _push(lambda p: p.number("<i")),
    b"U": _push(lambda p: p.counted("<B")),  # texts and bytes of Python 2 alike
    b"T": _push(lambda p: p.counted("<I")),
    b"C": _push(lambda p: p.counted("<B")),  # bytes of Python 3
    b"B": _push(lambda p: p.counted("<I")),
    b"\x8e": _push(lambda p: p.counted("<Q")),
    b"X": _push(lambda p: p.counted("<I").decode("utf-8", "surrogatepass")),
    b"\x8c": _push(lambda p: p.counted("<B").decode("utf-8", "surrogatepass")),
    b")": _push(lambda p: ()),
    b"]": _push(lambda p: []),
    b"}": _push(lambda p: {}),
    b"q": lambda p: p.remember(p.number("<B")),
    b"r": lambda p: p.remember(p.number("<I")),
    b"\x94": lambda p: p.remember(len(p.memo)),
    b"h": lambda p: p.recall(p.number("<B")),
    b"j": lambda p: p.recall(p.number("<I")),
    b"c": lambda p: p.name(p.line(), p.line()),
    b"\x93": _Parser.name_on_stack,
    b"t": lambda p: p.tuple_of(p.since_mark()),
    b"\x85": lambda p: p.last(1),
    b"\x86": lambda p: p.last(2),
    b"\x87": lambda p: p.last(3),
    b"a": lambda p: p.append([p.pop()]),
    b"e": lambda p: p.append(p.since_mark()),
    b"s": lambda p: p.set_items([p.pop(), p.pop()][::-1]),
    b"u": lambda p: p.set_items(p.since_mark()),
    b"R": _Parser.call,
    b"\x81": _Parser.new_object,
    b"b": _Parser.build,
    b"\x95": lambda p: p.number("<Q"),  # the length of a frame, which says nothing new
}


# --- values ---------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, (str, bytes)):
        _refuse(f"it has {type(value).__name__} where a text is expected")
    return value if isinstance(value, str) else value.decode("latin1")


def _value(value: Any) -> Any:
    """A value as the caller gets it."""
    if isinstance(value, (_Array, _Matrix)):
        return _refuse("it has an array without content") if value.value is None else value.value
    return value if isinstance(value, (list, dict)) else _refuse("it holds neither array, matrix, list nor table")


def _new_array(arguments: tuple[Any, ...]) -> _Array:
    return _Array() if arguments[:1] == (_Name.NDARRAY,) else _refuse("it makes something other than an array")


def _new_dtype(arguments: tuple[Any, ...]) -> _Dtype:
    code = _text(arguments[0]) if arguments else ""
    return _Dtype(code) if _NUMBERS.fullmatch(code) else _refuse(f"it has an array of the type {code!r}, not of numbers")


def _new_table(arguments: tuple[Any, ...]) -> dict[int, list[int]]:
    return {} if arguments in ((), (_Name.LIST,)) else _refuse("it has a table with an unknown default")


def _latin1(arguments: tuple[Any, ...]) -> bytes:
    if len(arguments) != 2 or not isinstance(arguments[0], str) or arguments[1] not in ("latin1", "latin-1"):
        _refuse("it encodes bytes in another way than as latin1")
    return arguments[0].encode("latin1")


_CALLS: dict[_Name, Callable[[tuple[Any, ...]], Any]] = {
    _Name.RECONSTRUCT: _new_array,
    _Name.DTYPE: _new_dtype,
    _Name.DEFAULTDICT: _new_table,
    _Name.ENCODE: _latin1,
}


def _set_order(target: _Dtype, state: Any) -> None:
    """The type with its byte order; any state that says more is refused."""
    if not isinstance(state, tuple) or len(state) != 8 or state[2:] != (None, None, None, -1, -1, 0) or state[0] != 3:
        _refuse(f"it has the type {target.code!r} with a state of its own")
    order = _text(state[1])
    if order not in (("|",) if target.code.endswith("1") else ("<", ">")):
        _refuse(f"it has the type {target.code!r} in the byte order {order!r}")
    target.dtype = np.dtype(order + target.code)


def _array(state: Any) -> np.ndarray:
    """The array of its version, shape, type, order and bytes, in the byte order of this machine."""
    if not isinstance(state, tuple) or len(state) != 5:
        _refuse("it has an array with an unknown state")
    _, shape, kind, by_columns, content = state
    _check_shape(shape)
    if not isinstance(kind, _Dtype) or not isinstance(content, bytes):
        _refuse("it has an array that is not made of numbers")
    dtype = kind.dtype or np.dtype(kind.code)
    if math.prod(shape) * dtype.itemsize != len(content):
        _refuse(f"it has {len(content)} bytes for an array of shape {shape} and type {dtype}")
    flat = np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))
    return flat.reshape(shape, order="F" if by_columns else "C")


def _check_shape(shape: Any) -> None:
    sound = isinstance(shape, tuple) and 1 <= len(shape) <= 2
    if not sound or not all(type(size) is int and 0 <= size < 2**31 for size in shape):
        _refuse("it has an array whose shape is not one or two counts")


def _matrix(state: Any) -> sp.csr_array:
    """The matrix of a csr_matrix's attributes; every index is checked."""
    if not isinstance(state, dict) or not {"data", "indices", "indptr", "_shape"} <= state.keys():
        _refuse("it has a CSR matrix with pieces missing")
    _check_shape(state["_shape"])
    pieces = [_value(state[piece]) for piece in ("data", "indices", "indptr")]
    if not all(isinstance(piece, np.ndarray) for piece in pieces):
        _refuse("it has a CSR matrix whose pieces are not arrays")
    matrix = sp.csr_array(tuple(pieces), shape=state["_shape"])
    check_width(matrix.shape[1], matrix.nnz, "its matrix")
    return check_compressed(matrix, "its matrix")
