"""Rows in a file with others in their place, and the checksums of their parts."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fishergraph.scale.arrays import FileArray, checksum
from fishergraph.scale.updating.kernels import shifted_checksum

_ONES = 0xFFFFFFFF


class PatchedRows:
    """The rows of an array in a file, some of which have other values; read by slices and by numbers.

    Parameters
    ----------
    base : FileArray
        The rows as they were.
    rows : array of int
        The numbers of the others, which rise. Rows behind the end of `base` are among them.
    values : array of shape (len(rows), …)
        Their values, in a file or in memory.
    n_rows : int
        The number of rows.
    """

    def __init__(self, base: Any, rows: np.ndarray, values: Any, n_rows: int):
        self.base, self.rows, self._values = base, rows, values
        self.shape, self.dtype = (n_rows, *base.shape[1:]), base.dtype

    ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        if isinstance(key, slice):
            start, stop, _ = key.indices(len(self))
            first, last = np.searchsorted(self.rows, [start, stop]).tolist()
            old = self.base[start : min(max(stop, start), len(self.base))]
            out = np.empty((max(stop - start, 0), *self.shape[1:]), self.dtype)
            out[: len(old)] = old
            if last > first:
                out[self.rows[first:last] - start] = self._values[first:last]
            return out
        numbers = np.asarray(key)
        places = np.searchsorted(self.rows, numbers)
        places[places == len(self.rows)] = 0
        is_new = self.rows[places] == numbers if len(self.rows) else np.zeros(len(numbers), bool)
        if is_new.all():
            return self._values[places]
        out = self.base[np.minimum(numbers, len(self.base) - 1)]
        if is_new.any():
            out[is_new] = self._values[places[is_new]]
        return out


def row_differences(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the checksum of old XOR new, without the inversions of CRC-32; whether they differ) of every row."""
    if len(old) == 0:
        return np.zeros(0, np.uint32), np.zeros(0, bool)
    delta: Any = (np.ascontiguousarray(old).view(np.uint8) ^ np.ascontiguousarray(new).view(np.uint8)).reshape(
        len(old), -1
    )
    view, size = memoryview(delta).cast("B"), delta.shape[1]
    starts = range(0, len(view), size)
    checksums = np.array([zlib.crc32(view[start : start + size], _ONES) for start in starts], np.uint32) ^ _ONES
    return checksums, delta.any(axis=1)


def patched_checksums(
    entry: dict[str, Any], borders: Sequence[int], patched: PatchedRows, changed: np.ndarray, differences: np.ndarray
) -> list[int]:
    """The checksums of the parts of patched rows.

    Parts with the rows of before follow from their checksums and the differences of the rows that changed: the others
    are not read.
    """
    parts = list(pairwise(borders))
    if list(borders) != list(entry["borders"]):
        return [checksum(patched[a:b]) for a, b in parts]
    row_bytes = patched.dtype.itemsize * int(np.prod(patched.shape[1:], dtype=np.int64))
    found = []
    for (a, b), before in zip(parts, entry["checksums"], strict=True):
        first, last = np.searchsorted(changed, [a, b]).tolist()
        rows = changed[first:last] - a
        found.append(before ^ int(shifted_checksum(differences[first:last], rows, b - a, row_bytes)))
    return found


def copied(patched: PatchedRows, out: FileArray) -> None:
    """Write patched rows to a new file."""
    for rows in out.blocks():
        out[rows] = patched[rows]
