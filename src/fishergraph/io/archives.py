"""Packed files: limits on what they unpack to and on what their headers declare, checked before memory is allocated.

A file that unpacks to `UNPACKED_BYTES` or less is always read. A larger one may unpack to `UNPACK_RATIO` times its own
size; the environment variable FISHERGRAPH_UNPACK_RATIO changes that factor.

Checks that do not know the path raise a `FileFormatError` without one; `files.unreadable` adds it.
"""

from __future__ import annotations

import gzip
import math
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from fishergraph._errors import FileFormatError, InputError
from fishergraph.io.files import check_readable, check_regular, unreadable

UNPACKED_BYTES = 1 << 28
UNPACK_RATIO = 500
RATIO_VARIABLE = "FISHERGRAPH_UNPACK_RATIO"
FREE_COUNT = 1 << 20  # columns or nodes that may be declared without content
TABLE_COLUMNS = 1 << 17  # of a table; each takes about 10 kB while it is read
DEFLATE_RATIO = 1032  # the largest ratio of gzip and zip files
_BLOCK, _BUFFER = 1 << 20, 1 << 18  # bytes


def unpack_limit(packed: int) -> int:
    """The bytes that a file of `packed` bytes may unpack to."""
    ratio = os.environ.get(RATIO_VARIABLE, "")
    if ratio and not (ratio.isdecimal() and int(ratio) > 0):
        raise InputError(parameter=RATIO_VARIABLE, value=ratio, expected="be a positive integer")
    return max(UNPACKED_BYTES, packed * int(ratio or UNPACK_RATIO))


def _too_large(unpacked: int, packed: int) -> FileFormatError:
    advice = f"set {RATIO_VARIABLE} to more than {UNPACK_RATIO} if you trust the file"
    return FileFormatError(reason=f"its {packed:,} bytes unpack to more than {unpacked:,}", advice=advice)


def check_zip(archive: zipfile.ZipFile, members: Iterable[zipfile.ZipInfo] | None = None) -> None:
    """Raise if members of a zip file (by default all) are encrypted or unpack to too much."""
    members = archive.infolist() if members is None else list(members)
    if any(member.flag_bits & 1 for member in members):
        raise FileFormatError(reason="it is encrypted")
    stream: Any = archive.fp
    packed = stream.seek(0, os.SEEK_END)
    limit = unpack_limit(packed)
    # Reading stops at the declared size, so the sum holds for any packed bytes.
    if sum(member.file_size for member in members) > limit:
        raise _too_large(limit, packed)


def check_npz(source: Path | IO[bytes], keys: Collection[str] | None = None) -> None:
    """Raise unless the members of an npz file (or those in `keys`) are arrays as large as their headers declare."""
    with zipfile.ZipFile(source) as archive:
        stream: Any = archive.fp
        stream.seek(0)
        if stream.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):  # np.load would take it for a pickle
            raise FileFormatError(reason="it is not an npz file")
        members = [member for member in archive.infolist() if keys is None or _key(member) in keys]
        check_zip(archive, members)
        for member in members:
            with archive.open(member) as stream:
                shape, dtype = read_npy_header(stream, _key(member))
                declared = stream.tell() + math.prod(shape) * dtype.itemsize
            if declared != member.file_size:
                declares = f"{_key(member)!r} declares shape {shape} and type {dtype}, which need {declared:,} bytes"
                raise FileFormatError(reason=f"{declares}, but has {member.file_size:,}")


def npz_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays of an npz file, from their headers."""
    check_regular(path)
    with zipfile.ZipFile(path) as archive:
        members = {_key(member): member for member in archive.infolist()}
        shapes = {}
        for key, member in members.items():
            with archive.open(member) as stream:
                shapes[key] = read_npy_header(stream, _key(member))[0]
    return shapes


def read_npy_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and the type in the header of an array; pickled objects are refused."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        shape, _, dtype = readers[np.lib.format.read_magic(stream)](stream)
    except Exception:  # a header is parsed as Python, which can fail in many ways
        raise FileFormatError(reason=f"{name!r} is not an array of numbers or text") from None
    if dtype.hasobject:
        raise FileFormatError(reason=f"{name!r} holds pickled objects, which are not read")
    empty = dtype.itemsize == 0 or 0 in shape
    if min(shape, default=0) < 0 or (empty and max(shape, default=0) > FREE_COUNT):
        raise FileFormatError(reason=f"{name!r} declares shape {shape} without content")
    return shape, dtype


def _key(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def check_gzip(path: Path) -> None:
    """Raise if a gzip file unpacks to too much; unpacks no more of it than necessary."""
    head = check_readable(path)
    packed, unpacked = path.stat().st_size, 0
    limit = unpack_limit(packed)
    try:
        with path.open("rb") as file, gzip.GzipFile(fileobj=file) as stream:
            # Buffered bytes count as not yet unpacked.
            while unpacked + min(packed, packed - file.tell() + _BUFFER) * DEFLATE_RATIO > limit:
                block = stream.read(_BLOCK)
                if not block:
                    return
                unpacked += len(block)
                if unpacked > limit:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, head, error) from error
    if unpacked > limit:
        raise unreadable(path, b"", _too_large(limit, packed))


def check_packed(path: Path, packing: str) -> None:
    """Raise if a gzip or zstd file unpacks to too much, before anything is made of it."""
    if packing == "gzip":
        check_gzip(path)
    elif packing:
        head = check_readable(path)
        with path.open("rb") as file:
            stream = Unpacked(file, packing, path.stat().st_size)
            while stream.read(_BLOCK):
                pass
        if stream.error is not None:
            raise unreadable(path, b"" if isinstance(stream.error, FileFormatError) else head, stream.error)


class Unpacked:
    """An open gzip or zstd file as its unpacked bytes, which end when they are too many; `error` is the reason.

    Nothing is raised, for the threads of Arrow that read do not survive it.
    """

    closed = False
    error: Exception | None = None

    def __init__(self, file: Any, packing: str, packed: int):
        import pyarrow as pa

        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), packing)
        self._packed, self._left = packed, unpack_limit(packed)

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if self.error is not None:
            return b""
        try:
            data = self._stream.read(_BLOCK if size < 0 else size)
        except (OSError, ValueError) as error:
            self.error = error
            return b""
        self._left -= len(data)
        if self._left < 0:
            self.error = _too_large(unpack_limit(self._packed), self._packed)
            return b""
        return data


def check_parquet(path: Path) -> None:
    """Raise if a Parquet file declares more cells, of 8 bytes each, than a file of its size may unpack to.

    A list has as many cells as it has entries, and a missing list of fixed size as many as that size.
    """
    import pyarrow.parquet as pq

    metadata, packed = pq.read_metadata(path), path.stat().st_size
    columns = [metadata.schema.column(j) for j in range(metadata.num_columns)]
    lists = [j for j, column in enumerate(columns) if column.max_repetition_level]
    cells = metadata.num_rows * (metadata.num_columns - len(lists))
    for number in range(metadata.num_row_groups if lists else 0):
        group = metadata.row_group(number)
        cells += sum(group.column(j).num_values for j in lists)
    if lists:
        cells = max(cells, metadata.num_rows * sum(map(fixed_size, metadata.schema.to_arrow_schema().types)))
    check_cells(cells, packed)


def check_cells(cells: int, packed: int) -> None:
    """Raise if more cells, of 8 bytes each, are declared than files of so many bytes may unpack to."""
    if cells * 8 > unpack_limit(packed):
        raise _too_large(unpack_limit(packed), packed)


def fixed_size(kind: Any) -> int:
    """The entries of a value of an Arrow type: those of a list of fixed size, else one."""
    import pyarrow as pa

    return kind.list_size * fixed_size(kind.value_type) if pa.types.is_fixed_size_list(kind) else 1


def check_width(n_columns: int, n_entries: int, what: str) -> None:
    """Raise if a sparse matrix has many more columns than entries: arrays that are fitted to them are dense."""
    if n_columns > max(FREE_COUNT, n_entries):
        expected = f"have at most {max(FREE_COUNT, n_entries):,} columns for {n_entries:,} entries"
        advice = "drop columns without entries"
        raise InputError(parameter=what, value=n_columns, expected=expected, got=f"{n_columns:,}", advice=advice)


def check_columns(n_columns: int, what: str) -> None:
    """Raise if a table has too many columns to be read or written."""
    if n_columns > TABLE_COLUMNS:
        expected, advice = f"have at most {TABLE_COLUMNS:,} columns", "use an npz file with a CSR matrix"
        raise InputError(parameter=what, value=n_columns, expected=expected, got=f"{n_columns:,}", advice=advice)


# --- folders and zip files ------------------------------------------------------------------------------


class Members:
    """The files of a folder or of a zip file."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.archive: zipfile.ZipFile | None = None
        if not self.path.is_dir():
            head = check_readable(self.path)
            try:
                self.archive = zipfile.ZipFile(self.path)
                check_zip(self.archive)
            except Exception as error:  # a damaged list of members can fail in any way
                self.__exit__()
                raise unreadable(self.path, head, error) from error

    def __enter__(self) -> Members:
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.archive is not None:
            self.archive.close()

    def find(self, *names: str) -> str | None:
        """The member at the first of these paths that exists, or None.

        Paths start at the root, or in the only folder of the root.
        """
        for name in names:
            if self.archive is not None:
                matches = [m for m in self.archive.namelist() if m == name or m.endswith("/" + name)]
            else:
                folders = [path for path in self.path.iterdir() if path.is_dir()]
                paths = [base / name for base in (self.path, *(folders if len(folders) == 1 else []))]
                matches = [path.relative_to(self.path).as_posix() for path in paths if os.path.lexists(path)]
            if matches:
                return min(matches, key=lambda member: (member.count("/"), member))
        return None

    def need(self, *names: str) -> str:
        """The member that `find` returns; raises if there is none."""
        member = self.find(*names)
        if member is None:
            raise FileNotFoundError(
                f"'{self.path}' has no file {names[0]}, so it is incomplete; download or copy it again."
            )
        return member

    def size(self, member: str) -> int:
        """The size of a member in bytes, unpacked."""
        if self.archive is None:
            return (self.path / member).stat().st_size
        return self.archive.getinfo(member).file_size

    def where(self, member: str) -> str:
        """The path of a member, for messages."""
        return f"{self.path}/{member}"

    @contextmanager
    def open(self, member: str, *, seekable: bool = False) -> Iterator[IO[bytes]]:
        """The bytes of a member; a seekable stream of a zip file is a temporary copy."""
        if self.archive is None:
            check_regular(self.path / member)
            with (self.path / member).open("rb") as stream:
                yield stream
            return
        with ExitStack() as stack:
            try:
                stream: Any = stack.enter_context(self.archive.open(member))
                if seekable:
                    copy = stack.enter_context(tempfile.TemporaryFile())
                    shutil.copyfileobj(stream, copy, 1 << 20)
                    copy.seek(0)
                    stream = copy
            except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError) as error:
                raise FileFormatError(path=self.where(member), reason=f"it cannot be unpacked ({error})") from error
            yield stream
