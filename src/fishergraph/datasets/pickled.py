"""Arrays, CSR matrices and neighbour lists in pickle files, read without unpickling.

A pickle is a program, and `pickle.Unpickler` runs it: even one that can name nothing but NumPy arrays can be made to
follow pointers that are written in the file. The files of Planetoid use few of its instructions, always in the same
way. `parse` knows these instructions alone and makes the values itself, from bytes whose number fits the shape. Names
of classes and functions are compared with a short list and never looked up.

Known are integers, texts, bytes, lists of integers, tables of integers to such lists, arrays of numbers with one or two
axes, and CSR matrices of them, as protocols 2 to 4 write them. Everything else is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from fishergraph.datasets.pickled_values import CALLS, NAMES, Array, Dtype, Matrix, Name, final, refuse, text

STACK = 10_000  # values at once; Python writes at most a thousand items of a container before it joins them
SHARED = 64  # bytes of a text that may be referred to again


_MARK, _UNSHARED = object(), object()


def parse(data: bytes) -> Any:
    """The array, CSR matrix, list or table that a pickle holds; a ValueError says what else was found."""
    return _Parser(data).run()


class _Parser:
    """One pass over the instructions of a file."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The value on the stack at the end of the program."""
        if self.data[:1] != b"\x80" or self.data[1:2] not in (b"\x02", b"\x03", b"\x04"):
            refuse("it does not begin as a pickle of protocol 2, 3 or 4 does")
        self.at = 2
        while (code := self.take(1)) != b".":
            step = _STEPS.get(code)
            if step is None:
                refuse(f"it has the instruction {code!r} at byte {self.at - 1}, which such files do not use")
            step(self)
            if len(self.stack) > STACK:
                refuse(f"it holds more than {STACK} values that belong to no container")
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
        """The next bytes of the file, as many as the integer before them says."""
        return self.take(self.number(layout))

    def line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + 200)
        return self.take(end + 1 - self.at)[:-1].decode("latin1") if end >= 0 else refuse("it has a name without end")

    # --- the stack ---

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            refuse("it takes a value that is not there")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            refuse(f"it fills something other than a {kind.__name__}")
        return self.stack[-1]

    def since_mark(self) -> list[Any]:
        """The values behind the last mark, which goes too."""
        for start in range(len(self.stack) - 1, -1, -1):
            if self.stack[start] is _MARK:
                values = self.stack[start + 1 :]
                del self.stack[start:]
                return values
        return refuse("it takes values up to a mark that is not there")

    # --- instructions ---

    def remember(self, key: int) -> None:
        """Keep names, types and short texts; containers are not shared, so that none can hold itself."""
        value = self.stack[-1] if self.stack else refuse("it remembers a value that is not there")
        short = isinstance(value, (str, bytes)) and len(value) <= SHARED
        self.memo[key] = value if short or isinstance(value, (Name, Dtype)) else _UNSHARED

    def recall(self, key: int) -> None:
        value = self.memo.get(key, _UNSHARED)
        self.stack.append(refuse("it refers to a value a second time") if value is _UNSHARED else value)

    def name(self, module: str, name: str) -> None:
        if (module, name) not in NAMES:
            refuse(f"it names {module}.{name}, which is no array, CSR matrix or list")
        self.stack.append(NAMES[module, name])

    def name_on_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.name(text(module), text(name))

    def tuple_of(self, values: list[Any]) -> None:
        """A tuple of plain values and of tuples of these, which is as deep as they come."""
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
        """Entries of a table of neighbours (integers to lists) or of the pieces of a matrix (by their names)."""
        if len(values) % 2:
            refuse("it has a key without value")
        table = self.top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(key) is int and not isinstance(value, list):
                refuse(f"it has {type(value).__name__} instead of a list at key {key}")
            table[key if type(key) is int else text(key)] = value

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        made = CALLS.get(function) if isinstance(function, Name) else None
        if made is None or not isinstance(arguments, tuple):
            refuse("it calls something other than NumPy's constructors of arrays and types")
        self.stack.append(made(arguments))

    def new_object(self) -> None:
        arguments, kind = self.pop(), self.pop()
        if kind is not Name.CSR or arguments != ():
            refuse("it makes an object other than a CSR matrix")
        self.stack.append(Matrix())

    def build(self) -> None:
        state = self.pop()
        target = self.stack[-1] if self.stack else None
        if not isinstance(target, (Dtype, Array, Matrix)):
            refuse("it sets the state of something other than an array, a matrix or a type of numbers")
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
