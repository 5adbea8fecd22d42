"""Arrays, CSR matrices and neighbour lists in pickle files, read without unpickling.

A pickle is a program, and `pickle.Unpickler` runs it: even one that can name nothing but NumPy arrays can be made to
follow pointers that are written in the file. Planetoid's files use few of its instructions, always in the same way.
`parse` knows only these instructions and makes the values itself, from bytes whose number fits the shape. Names of
classes and functions are compared with a short list and never looked up.

Allowed are integers, text, bytes, lists of integers, dictionaries of integers to such lists, arrays of numbers with one
or two axes, and CSR matrices of them, as protocols 2 to 4 write them. Everything else is a `FileFormatError`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed
from fishergraph._errors import FileFormatError
from fishergraph.io.archives import check_width

STACK = 10_000  # values at once; Python writes at most a thousand items of a container before it joins them
SHARED = 64  # bytes of a text that may be referred to again
_NUMBERS = re.compile(r"[iu][1248]|f[248]")
_MARK, _UNSHARED = object(), object()


def parse(data: bytes) -> Any:
    """The array, CSR matrix, list or dictionary in a pickle; anything else raises a `FileFormatError` without path."""
    return _Parser(data).run()


# --- values ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Name:
    """A class or function that a file names."""

    name: str


NAMES = {
    *(("scipy.sparse.csr", "csr_matrix"), ("scipy.sparse._csr", "csr_matrix")),
    *(("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")),
    *(("numpy", "ndarray"), ("numpy", "dtype"), ("collections", "defaultdict")),
    *(("__builtin__", "list"), ("builtins", "list")),  # of Python 2 and 3
    *(("_codecs", "encode"), ("__builtin__", "bytes")),  # how Python 3 writes bytes, and empty ones, in protocol 2
}


def refuse(what: str) -> NoReturn:
    """Raise the error for a file with other content than allowed."""
    raise FileFormatError(reason=what, advice="replace it with the published file")


def text(value: Any) -> str:
    """Text as Python 2 or 3 writes it."""
    if not isinstance(value, (str, bytes)):
        refuse(f"it has {type(value).__name__} in place of text")
    return value if isinstance(value, str) else value.decode("latin1")


def final(value: Any) -> Any:
    """A value as `parse` returns it."""
    if isinstance(value, (Array, Matrix)):
        return refuse("it has an array without content") if value.value is None else value.value
    return value if isinstance(value, (list, dict)) else refuse("it holds neither array, matrix, list nor dictionary")


class Dtype:
    """A number type; `fill` sets its byte order."""

    def __init__(self, code: str):
        self.code, self.dtype = code, np.dtype(code)

    def fill(self, state: Any) -> None:
        """Set the byte order; a state with more than that is refused."""
        plain = isinstance(state, tuple) and len(state) == 8 and state[0] == 3
        if not plain or state[2:] != (None, None, None, -1, -1, 0):
            refuse(f"it has the type {self.code!r} with a state of its own")
        order = text(state[1])
        if order not in (("|",) if self.code.endswith("1") else ("<", ">")):
            refuse(f"it has the type {self.code!r} in the byte order {order!r}")
        self.dtype = np.dtype(order + self.code)


class Array:
    """An array; `fill` sets its content, once."""

    value: np.ndarray | None = None

    def fill(self, state: Any) -> None:
        """Set version, shape, type, order and bytes; the array has native byte order."""
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
    """A CSR matrix; `fill` sets its content, once."""

    value: sp.csr_array | None = None

    def fill(self, state: Any) -> None:
        """Set the attributes of a csr_matrix; its indices are validated."""
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


def _new_array(arguments: tuple[Any, ...]) -> Array:
    return Array() if arguments[:1] == (Name("ndarray"),) else refuse("it makes something other than an array")


def _new_dtype(arguments: tuple[Any, ...]) -> Dtype:
    code = text(arguments[0]) if arguments else ""
    return Dtype(code) if _NUMBERS.fullmatch(code) else refuse(f"it has an array of the type {code!r}, not of numbers")


def _new_table(arguments: tuple[Any, ...]) -> dict[int, list[int]]:
    return {} if arguments in ((), (Name("list"),)) else refuse("it has a dictionary with an unknown default")


def _latin1(arguments: tuple[Any, ...]) -> bytes:
    if len(arguments) != 2 or not isinstance(arguments[0], str) or arguments[1] not in ("latin1", "latin-1"):
        refuse("it encodes bytes in another way than as latin1")
    return arguments[0].encode("latin1")


CALLS: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "_reconstruct": _new_array,
    "dtype": _new_dtype,
    "defaultdict": _new_table,
    "encode": _latin1,
    "bytes": lambda arguments: b"" if arguments == () else refuse("it makes bytes from a value"),
}


# --- instructions ---------------------------------------------------------------------------------------


class _Parser:
    """One pass over the instructions of a file."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The value on the stack at the end of the program."""
        if self.data[:1] != b"\x80" or self.data[1:2] not in (b"\x02", b"\x03", b"\x04"):
            refuse("it does not begin like a pickle of protocol 2, 3 or 4")
        self.at = 2
        while (code := self.take(1)) != b".":
            step = _STEPS.get(code)
            if step is None:
                refuse(f"it has the instruction {code!r} at byte {self.at - 1}, which Planetoid's files do not use")
            step(self)
            if len(self.stack) > STACK:
                refuse(f"it holds more than {STACK} values outside of containers")
        if len(self.stack) != 1:
            refuse(f"it ends with {len(self.stack)} values instead of one")
        return final(self.stack[0])

    # --- bytes ---

    def take(self, count: int) -> bytes:
        """The next bytes of the file."""
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            refuse("it is cut short")
        self.at += count
        return part

    def number(self, layout: str) -> int:
        """The next integer of the file."""
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def counted(self, layout: str) -> bytes:
        """The next bytes of the file, counted by the integer before them."""
        return self.take(self.number(layout))

    def line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + 200)
        return self.take(end + 1 - self.at)[:-1].decode("latin1") if end >= 0 else refuse("it has a name without end")

    # --- the stack ---

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            refuse("it takes a value that does not exist")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            refuse(f"it fills something other than a {kind.__name__}")
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        """The values after the last mark, which is removed too."""
        for start in range(len(self.stack) - 1, -1, -1):
            if self.stack[start] is _MARK:
                values = self.stack[start + 1 :]
                del self.stack[start:]
                return values
        return refuse("it takes values up to a mark that does not exist")

    # --- instructions ---

    def remember(self, key: int) -> None:
        """Keep names, types and short texts; containers are not shared, so that none can hold itself."""
        value = self.stack[-1] if self.stack else refuse("it remembers a value that does not exist")
        short = isinstance(value, (str, bytes)) and len(value) <= SHARED
        self.memo[key] = value if short or isinstance(value, (Name, Dtype)) else _UNSHARED

    def recall(self, key: int) -> None:
        value = self.memo.get(key, _UNSHARED)
        self.stack.append(refuse("it refers to a value a second time") if value is _UNSHARED else value)

    def name(self, module: str, name: str) -> None:
        if (module, name) not in NAMES:
            refuse(f"it names {module}.{name}, which is not an array, CSR matrix or list")
        self.stack.append(Name(name))

    def name_on_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(text(module), text(name))

    def tuple_of(self, values: list[Any]) -> None:
        """A tuple of plain values and of tuples of these."""
        if any(isinstance(inner, tuple) for value in values if isinstance(value, tuple) for inner in value):
            refuse("it has tuples within tuples within tuples")
        self.stack.append(tuple(values))

    def last(self, count: int) -> None:
        self.tuple_of([self.pop() for _ in range(count)][::-1])

    def append(self, values: list[Any]) -> None:
        if not all(type(value) is int for value in values):
            refuse("it has a list of something other than integers")
        self.top(list).extend(values)

    def set_items(self, values: list[Any]) -> None:
        """Entries of a dictionary of neighbours (integers to lists) or of the arrays of a matrix (by their names)."""
        if len(values) % 2:
            refuse("it has a key without value")
        table = self.top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(key) is int and not isinstance(value, list):
                refuse(f"it has {type(value).__name__} instead of a list at key {key}")
            table[key if type(key) is int else text(key)] = value

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        made = CALLS.get(function.name) if isinstance(function, Name) else None
        if made is None or not isinstance(arguments, tuple):
            refuse("it calls something other than NumPy's constructors of arrays and types")
        self.stack.append(made(arguments))

    def new_object(self) -> None:
        arguments, kind = self.pop(), self.pop()
        if kind != Name("csr_matrix") or arguments != ():
            refuse("it makes an object other than a CSR matrix")
        self.stack.append(Matrix())

    def build(self) -> None:
        state = self.pop()
        target = self.stack[-1] if self.stack else None
        if not isinstance(target, (Dtype, Array, Matrix)):
            refuse("it sets the state of something other than an array, a matrix or a number type")
        target.fill(state)


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
    b"U": _push(lambda p: p.counted("<B")),  # text and bytes of Python 2
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
    b"\x95": lambda p: p.number("<Q"),  # the length of a frame, which is not needed
}
