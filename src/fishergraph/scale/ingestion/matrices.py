"""Arrays of edges and features in `.npy` and `.npz` files, read as streams: packed files of any size too."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from fishergraph._errors import FileFormatError, InputError, InputTypeError
from fishergraph.io.archives import check_npz
from fishergraph.io.npz import npz_keys
from fishergraph.scale.ingestion.places import explained

Advance = Callable[[int], Any]


class StoredArray:
    """An array in a file, of which blocks are read in order.

    Parameters
    ----------
    path : Path
        A `.npy` or `.npz` file.
    name : str
        What messages call the file.
    key : str, default=""
        The array in an `.npz` file.
    """

    def __init__(self, path: Path, name: str, key: str = ""):
        self.path, self.key = path, key
        self.what = f"{key!r} in '{name}'" if key else f"'{name}'"
        self.name = name
        with ExitStack() as stack, explained(path, name):
            file = self._open(stack)
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, self.by_columns, self.dtype = read(file)
            if self.dtype.hasobject:
                raise FileFormatError(reason=f"{self.what} holds pickled objects, which are not read")
            self._start = file.tell()
            if not key and path.stat().st_size < self._start + self.nbytes:
                reason = f"it has {path.stat().st_size:,} bytes, and its header declares {self._start + self.nbytes:,}"
                raise FileFormatError(reason=reason)

    @property
    def nbytes(self) -> int:
        """The bytes of the array, unpacked."""
        return math.prod(self.shape) * self.dtype.itemsize

    def _open(self, stack: ExitStack) -> IO[bytes]:
        if not self.key:
            return stack.enter_context(self.path.open("rb"))
        archive = stack.enter_context(zipfile.ZipFile(self.path))
        return stack.enter_context(archive.open(f"{self.key}.npy"))

    def _flat(self, stack: ExitStack, first: int) -> Callable[[int], np.ndarray]:
        """A function that reads the next entries, in the order of the file, beginning with entry `first`."""
        file = self._open(stack)
        file.seek(self._start + first * self.dtype.itemsize)

        def read(count: int) -> np.ndarray:
            data = file.read(count * self.dtype.itemsize)
            if len(data) < count * self.dtype.itemsize:
                raise FileFormatError(reason=f"{self.what} ends early")
            values = np.frombuffer(data, self.dtype)
            return values.astype(self.dtype.newbyteorder("="), copy=False)

        return read

    def rows(self, block_rows: int) -> Iterator[np.ndarray]:
        """Blocks of the rows of a matrix."""
        n, d = self.shape
        with ExitStack() as stack, explained(self.path, self.name):
            # A matrix by columns is read with one stream for each.
            reads = [self._flat(stack, j * n) for j in range(d)] if self.by_columns else [self._flat(stack, 0)]
            for start in range(0, n, block_rows):
                count = min(block_rows, n - start)
                if self.by_columns:
                    yield np.stack([read(count) for read in reads], axis=1) if d else np.empty((count, 0))
                else:
                    yield reads[0](count * d).reshape(count, d)

    def entries(self, block: int) -> Iterator[np.ndarray]:
        """Blocks of a flat array."""
        with ExitStack() as stack, explained(self.path, self.name):
            read = self._flat(stack, 0)
            for start in range(0, self.shape[0], block):
                yield read(min(block, self.shape[0] - start))

    def pairs(self, block: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Blocks of the sources and targets of a (2, E) or (E, 2) array of integers."""
        by_rows = len(self.shape) == 2 and self.shape[0] == 2
        if not by_rows and (len(self.shape) != 2 or self.shape[1] != 2):
            raise InputError(parameter=self.what, value=self.shape, expected="have shape (2, E) or (E, 2)")
        n = self.shape[1] if by_rows else self.shape[0]
        if n and self.dtype.kind not in "iu":
            raise InputTypeError(parameter=self.what, expected="hold integers", got=str(self.dtype))
        with ExitStack() as stack, explained(self.path, self.name):
            apart = by_rows != self.by_columns
            reads = [self._flat(stack, 0), self._flat(stack, n)] if apart else [self._flat(stack, 0)]
            for start in range(0, n, block):
                count = min(block, n - start)
                if apart:
                    source, target = (read(count) for read in reads)
                else:
                    source, target = reads[0](2 * count).reshape(-1, 2).T
                yield self._integers(source), self._integers(target)

    def _integers(self, values: np.ndarray) -> np.ndarray:
        if values.dtype == np.uint64 and values.max(initial=0) >= 2**63:
            raise InputError(parameter=self.what, expected="hold numbers below 2**63", got=str(values.max()))
        return values.astype(np.int64)


class NpzFile:
    """The arrays of an `.npz` file."""

    def __init__(self, path: Path, name: str, keys: tuple[str, ...]):
        """Open a file; those of `keys` that it has are validated."""
        self.keys, self.path, self.name = npz_keys(path), path, name
        with explained(path, name):
            check_npz(path, keys)

    def array(self, key: str, *shape: int) -> StoredArray:
        """An array, of this shape if it is given."""
        array = StoredArray(self.path, self.name, key)
        if shape and array.shape != shape:
            raise FileFormatError(path=self.name, reason=f"{key!r} must have shape {shape}, got {array.shape}")
        return array
