"""Arrays in files: NumPy's `.npy` format, read and written by rows without mapping the file into memory.

Reads are copies of the rows that are asked for, so that the memory of a process is what it holds, and not what the
system keeps of its files. An array is passed to another process by its path.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from fishergraph._errors import FileFormatError
from fishergraph.io.files import naming

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of one system call, of a chunk of a checksum, of a gap that `chosen` reads over, and of what it reads at once.
_CALL = 2**30
CHUNK = 2**26
GAP = 2**15
_TOGETHER = 2**24
_DENSE = 4  # of so many rows that follow each other one is asked for


class FileArray:
    """A dense array in a `.npy` file; slices of rows are read into memory, and written from it.

    Parameters
    ----------
    path : Path
        The file.
    writable : bool, default=False
        Whether rows may be written.
    shared : bool, default=False
        Whether other machines write other rows. Every write goes to the disk at once, and no byte beyond its rows: a
        file system of a network would otherwise write whole pages, with rows of others as they were before.
    """

    def __init__(self, path: str | Path, *, writable: bool = False, shared: bool = False):
        self.path, self.writable = Path(path), writable
        flags = os.O_RDWR | (getattr(os, "O_DSYNC", 0) if shared else 0)
        self._handle = os.open(self.path, flags if writable else os.O_RDONLY)
        try:
            self.shape, self.dtype, self.start = _read_header(self._handle, self.path)
        except BaseException:
            os.close(self._handle)
            self._handle = -1
            raise
        self._row_bytes = self.dtype.itemsize * math.prod(self.shape[1:])

    @classmethod
    def create(cls, path: str | Path, shape: tuple[int, ...], dtype: Any) -> FileArray:
        """Return a new array, whose disk space is there: a full disk is an error now and not later."""
        path, dtype = Path(path), np.dtype(dtype)
        size = dtype.itemsize * math.prod(map(int, shape))
        with naming(path), path.open("wb") as file:
            _write_header(file, shape, dtype)
            file.flush()
            if size:
                _reserve(file.fileno(), file.tell(), size)
        return cls(path, writable=True)

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            os.close(self._handle)
            self._handle = -1

    def __reduce__(self) -> tuple[Any, ...]:
        return open_array, (self.path, self.writable)

    def __repr__(self) -> str:
        return f"FileArray({str(self.path)!r}, shape={self.shape}, dtype={self.dtype})"

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all rows."""
        return self.shape[0] * self._row_bytes

    def __getitem__(self, key: Any) -> Any:
        """Rows by a slice, by one number, or by an array of numbers."""
        if isinstance(key, slice):
            start, stop, step = self._range(key)
            rows = self._read(start, stop)
            return rows if step == 1 else rows[::step]
        numbers = np.asarray(key)
        if numbers.dtype == bool:
            numbers = np.flatnonzero(numbers)
        if numbers.size and not -len(self) <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"rows must be 0 to {len(self) - 1}, got {numbers.min()} to {numbers.max()}.")
        numbers = np.where(numbers < 0, numbers + len(self), numbers)
        if numbers.ndim == 0:
            return self._read(int(numbers), int(numbers) + 1)[0]
        return self._chosen(numbers)

    def __setitem__(self, key: slice, values: Any) -> None:
        start, stop, step = self._range(key)
        if step != 1:
            raise IndexError(f"rows are written forwards and without gaps, got a step of {step}.")
        rows = np.ascontiguousarray(np.broadcast_to(values, (stop - start, *self.shape[1:])), dtype=self.dtype)
        self._write(start, rows)

    def _range(self, key: slice) -> tuple[int, int, int]:
        """(start, stop, step) of a slice of rows, with start <= stop."""
        start, stop, step = key.indices(len(self))
        if step < 1:
            raise IndexError(f"rows are read forwards, got a step of {step}.")
        return start, max(stop, start), step

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = self._read(0, self.shape[0])
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def blocks(self, n_bytes: int = CHUNK) -> Iterator[slice]:
        """Return slices of rows of about so many bytes, which cover the array."""
        size = max(n_bytes // max(self._row_bytes, 1), 1)
        return (slice(start, min(start + size, len(self))) for start in range(0, len(self), size))

    def checksums(self, advance: Callable[[int], Any] = lambda n: None) -> list[int]:
        """The CRC-32 of every chunk of rows."""
        found = []
        for rows in self.blocks():
            block = self[rows]
            found.append(checksum(block))
            advance(block.nbytes)
        return found

    def sync(self) -> None:
        """Wait until everything written is on the disk."""
        with naming(self.path):
            os.fsync(self._handle)

    def _read(self, start: int, stop: int) -> np.ndarray:
        rows = np.empty((stop - start, *self.shape[1:]), self.dtype)
        view, offset = _bytes(rows), self.start + start * self._row_bytes
        done = 0
        while done < len(view):
            n_read = os.preadv(self._handle, [view[done : done + _CALL]], offset + done)
            if n_read == 0:
                raise FileFormatError(path=self.path, reason=f"it ends before row {stop - 1}", advice="write it again")
            done += n_read
        return rows

    def _write(self, start: int, rows: np.ndarray) -> None:
        view, offset = _bytes(rows), self.start + start * self._row_bytes
        done = 0
        with naming(self.path):
            while done < len(view):
                done += os.pwrite(self._handle, view[done : done + _CALL], offset + done)

    def put(self, numbers: np.ndarray, rows: np.ndarray) -> None:
        """Write rows of these numbers, which rise; those in between are not touched."""
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        view, size = _bytes(rows), self._row_bytes
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        firsts, lasts = [0, *breaks.tolist()], [*breaks.tolist(), len(numbers)]
        offsets = (self.start + numbers[firsts] * size).tolist() if len(numbers) else []
        with naming(self.path):
            for first, last, offset in zip(firsts, lasts, offsets, strict=False):
                done = first * size
                while done < last * size:
                    done += os.pwrite(self._handle, view[done : last * size], offset + done - first * size)

    def _chosen(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of these numbers, in order; rows near each other are read together."""
        rows = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        if len(numbers) == 0:
            return rows
        gap = max(GAP // max(self._row_bytes, 1), 1)
        steps = np.diff(numbers)
        if (steps < 0).any():
            order = np.argsort(numbers, kind="stable")
            rows[order] = self._chosen(numbers[order])
            return rows
        if numbers[-1] - numbers[0] < _DENSE * len(numbers):
            gap = len(self)  # one call, and few rows that nobody asked for
        borders = [0, *(np.flatnonzero(steps > gap) + 1).tolist(), len(numbers)]
        most = max(_TOGETHER // max(self._row_bytes, 1), 1)
        for first, last in pairwise(borders):
            while first < last:  # rows near each other may be half of the file
                low = int(numbers[first])
                stop = first + int(numbers[first:last].searchsorted(low + most))
                found = self._read(low, int(numbers[stop - 1]) + 1)
                np.take(found, numbers[first:stop] - low, axis=0, out=rows[first:stop], mode="clip")
                first = stop
        return rows


def open_array(path: str | Path, writable: bool = False) -> FileArray:
    """The array in a file."""
    return FileArray(path, writable=writable)


def checksum(rows: np.ndarray) -> int:
    """The CRC-32 of the bytes of an array."""
    return zlib.crc32(_bytes(np.ascontiguousarray(rows)))


def _bytes(rows: Any) -> memoryview:
    """The bytes of a contiguous array, without a copy."""
    return memoryview(rows).cast("B") if rows.nbytes else memoryview(b"")


def _write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """The header of a `.npy` file; NumPy leaves room in it for any number of rows."""
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(map(int, shape))}
    npy.write_array_header_2_0(file, header)


def _reserve(handle: int, start: int, size: int) -> None:
    """Take disk space for a file; on systems that cannot, the file only gets its length."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, start, size)
    else:
        os.ftruncate(handle, start + size)


def _read_header(handle: int, path: Path) -> tuple[tuple[int, ...], np.dtype, int]:
    """(shape, dtype, offset of the first row) of a `.npy` file whose bytes are all there."""
    with os.fdopen(os.dup(handle), "rb") as file:
        file.seek(0)
        try:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
        except (ValueError, EOFError) as error:
            raise FileFormatError(
                path=path, reason=f"it is not a .npy file ({error})", advice="write it again"
            ) from None
        start = file.tell()
    if fortran or dtype.hasobject or not shape:
        reason = "it holds objects, no rows, or columns one after the other"
        raise FileFormatError(
            path=path, reason=reason, advice="save it with numpy.save as a C-ordered array of numbers"
        )
    size = start + dtype.itemsize * math.prod(shape)
    if os.fstat(handle).st_size < size:
        reason = f"it has {os.fstat(handle).st_size:,} bytes, and its header declares {size:,}"
        raise FileFormatError(path=path, reason=reason, advice="write it again")
    return shape, dtype, start


class Growing:
    """A new array whose number of rows is not known yet; rows are appended, and `finish` returns the array.

    Parameters
    ----------
    path : Path
        The file.
    dtype : dtype
        The type of the numbers.
    row_shape : tuple of int, default=()
        The shape of a row.
    """

    def __init__(self, path: str | Path, dtype: Any, row_shape: tuple[int, ...] = ()):
        self.path, self.dtype, self.row_shape = Path(path), np.dtype(dtype), tuple(row_shape)
        self.n_rows = 0
        with naming(self.path):
            self._file = self.path.open("wb")
            _write_header(self._file, (0, *self.row_shape), self.dtype)

    def append(self, rows: np.ndarray) -> None:
        """Write rows behind the last one."""
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        if rows.shape[1:] != self.row_shape:
            raise ValueError(f"rows must have shape {self.row_shape}, got {rows.shape[1:]}.")
        with naming(self.path):
            self._file.write(_bytes(rows))
        self.n_rows += len(rows)

    def finish(self) -> FileArray:
        """Return the complete array."""
        with naming(self.path), self._file as file:
            file.seek(0)
            _write_header(file, (self.n_rows, *self.row_shape), self.dtype)
        return FileArray(self.path, writable=True)


class FileRows:
    """A CSR matrix in three files: slices and chosen rows are SciPy matrices in memory.

    Parameters
    ----------
    data, indices, indptr : FileArray
        The pieces of the matrix.
    n_columns : int
        The number of its columns.
    """

    def __init__(self, data: FileArray, indices: FileArray, indptr: FileArray, n_columns: int):
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape, self.dtype = (len(indptr) - 1, n_columns), data.dtype

    ndim = 2

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return len(self.data)

    def __getitem__(self, key: Any) -> sp.csr_array:
        if isinstance(key, slice):
            start, stop, _ = key.indices(self.shape[0])
            indptr = self.indptr[start : max(stop, start) + 1]
            entries = slice(int(indptr[0]), int(indptr[-1]))
            pieces = self.data[entries], self.indices[entries], indptr - indptr[0]
            return sp.csr_array(pieces, shape=(len(indptr) - 1, self.shape[1]))
        chosen = np.asarray(key)
        starts, stops = self.indptr[chosen], self.indptr[chosen + 1]
        indptr = np.concatenate(([0], np.cumsum(stops - starts)))
        entries = np.repeat(starts - indptr[:-1], stops - starts) + np.arange(indptr[-1])
        return sp.csr_array((self.data[entries], self.indices[entries], indptr), shape=(len(chosen), self.shape[1]))


class StoredIds:
    """The ids of the nodes of a store: integers, or texts in UTF-8."""

    def __init__(self, numbers: FileArray | None, text: FileArray | None = None, offsets: FileArray | None = None):
        self._numbers, self._text, self._offsets = numbers, text, offsets

    def __len__(self) -> int:
        return len(self._numbers) if self._numbers is not None else len(self._offsets or ()) - 1

    def __getitem__(self, rows: slice) -> np.ndarray:
        """The ids of a slice of rows, int64 or an array of texts."""
        if self._numbers is not None:
            return self._numbers[rows]
        assert self._text is not None
        assert self._offsets is not None
        start, stop, _ = rows.indices(len(self))
        offsets = self._offsets[start : max(stop, start) + 1]
        text = self._text[int(offsets[0]) : int(offsets[-1])].tobytes()
        ends = (offsets - offsets[0]).tolist()
        ids = np.empty(len(ends) - 1, dtype=object)
        ids[:] = [text[a:b].decode() for a, b in pairwise(ends)]
        return ids

    @property
    def is_text(self) -> bool:
        """Whether the ids are texts."""
        return self._numbers is None

    def texts(self, rows: slice) -> pa.LargeStringArray:
        """The ids of a slice of rows, which are texts, as an Arrow array."""
        import pyarrow as pa

        assert self._text is not None
        assert self._offsets is not None
        start, stop, _ = rows.indices(len(self))
        offsets = self._offsets[start : max(stop, start) + 1]
        text = self._text[int(offsets[0]) : int(offsets[-1])]
        buffers = pa.py_buffer(offsets - offsets[0]), pa.py_buffer(text)
        return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        ids = self[:]
        return ids if dtype is None else ids.astype(dtype)


Features = FileArray | FileRows
