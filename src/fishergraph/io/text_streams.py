"""Text files as bytes in UTF-8: unpacked, recoded, and without comments or runs of blanks."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fishergraph.io.archives import Unpacked
from fishergraph.io.files import Advance, CountedReader, count_nothing, unreadable

MAGIC = {"": b"", "gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
CHUNK = 1 << 24  # bytes that are read at once
MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF8: "utf-8-sig"}
MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # after those of UTF-32, which begin alike


@contextmanager
def open_bytes(path: Path, packing: str, encoding: str, advance: Advance = count_nothing) -> Iterator[Any]:
    """The text of a file as bytes in UTF-8 without a byte-order mark, unpacked.

    What goes wrong as it is read is raised at the end, for the threads of Arrow that read do not survive errors.
    """
    with path.open("rb") as raw:
        stream: Any = CountedReader(raw, advance)
        chain = []
        if packing:
            stream = Unpacked(stream, packing, path.stat().st_size)
            chain.append(stream)
        if encoding not in ("utf-8", "utf-8-sig"):
            stream = _Recoded(stream, encoding)
            chain.append(stream)
        try:
            yield _Unmarked(stream)
        except Exception as error:
            for part in chain:
                if part.error is not None:
                    raise part.error from error
            raise
        for part in chain:
            if part.error is not None:
                raise part.error


class _Stream:
    """What Arrow asks of an open file."""

    closed = False
    error: Exception | None = None

    def __init__(self, stream: Any):
        self._stream = stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class _Unmarked(_Stream):
    """A stream without its byte-order mark."""

    _first = True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        if self._first:
            self._first = False
            while len(data) < len(codecs.BOM_UTF8) and (more := self._stream.read(size)):
                data += more
            data = data.removeprefix(codecs.BOM_UTF8)
            return data or self._stream.read(size)
        return data


class _Recoded(_Stream):
    """A stream in another encoding as UTF-8."""

    def __init__(self, stream: Any, encoding: str):
        super().__init__(stream)
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int = -1) -> bytes:
        while self.error is None:
            data = self._stream.read(size)
            try:
                text = self._decoder.decode(data, final=not data).encode("utf-8")
            except UnicodeError as error:
                self.error = error
                break
            if text or not data:
                return text
        return b""


class Cleaned(_Stream):
    """A stream without its first lines, comments, and runs of blanks."""

    _COMMENTS = re.compile(rb"(?m)^[ \t]*[#%][^\n]*\n")
    _BLANKS = re.compile(rb" {2,}")

    def __init__(self, stream: Any, skip: int, *, blanks: bool):
        super().__init__(stream)
        self._rest, self._blanks, self._ended, self._skip = b"", blanks, False, skip

    def read(self, size: int = -1) -> bytes:
        while not self._ended:
            data = self._stream.read(CHUNK)
            self._ended = not data
            text = self._rest + data
            cut = len(text) if self._ended else text.rfind(b"\n") + 1
            text, self._rest = text[:cut], text[cut:]
            if self._ended and text:
                text += b"\n"
            while self._skip and text:
                text, self._skip = text.partition(b"\n")[2], self._skip - 1
            if text := self._cleaned(text):
                return text
        return b""

    def _cleaned(self, text: bytes) -> bytes:
        text = text.replace(b"\r\n", b"\n")
        if b"#" in text or b"%" in text:
            text = self._COMMENTS.sub(b"", text)
        if not self._blanks:
            return text
        text = self._BLANKS.sub(b" ", text.replace(b"\t", b" ")).replace(b" \n", b"\n").replace(b"\n ", b"\n")
        return text.removeprefix(b" ")


class Raw(io.RawIOBase):
    """A stream as Python's buffers want it."""

    def __init__(self, stream: Any):
        self._stream, self._left = stream, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._left or self._stream.read(len(buffer))
        part, self._left = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def check_magic(path: Path, packing: str, head: bytes) -> None:
    """Raise unless a file begins as one of this packing does."""
    if not head.startswith(MAGIC[packing]):
        raise unreadable(path, head, f"it is not packed with {packing}")
