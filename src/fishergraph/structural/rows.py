"""Compressed rows and tall matrices of structural columns, in memory or in files: `Rows`, `Matrix`, `Storage`.

Every computation reads consecutive rows, or a few columns of all rows, so it is the same for a graph in memory and for
one in files, with the same bits. `Storage` says where its arrays are, and how much of them is read at once.
"""

# SciPy declares no shapes.
# pyright: reportOptionalSubscript=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from fishergraph._compile import compiled_exactly, readonly
from fishergraph._parallel import cut_blocks, map_blocks, row_blocks
from fishergraph._validation import check_host_memory

GROUP_ROWS = 2**18  # of a tall matrix whose row blocks are in memory at once
T = TypeVar("T")
Chunk = tuple[np.ndarray, np.ndarray, "np.ndarray | None"]  # offsets from zero, or sizes; indices; weights


class Rows(NamedTuple):
    """A square matrix in compressed rows whose indices rise.

    indptr : offsets, int64, in memory.
    indices, weights : arrays, or arrays in files; `weights` is None if all are one.
    """

    indptr: np.ndarray
    indices: Any
    weights: Any

    @classmethod
    def of(cls, graph: Any) -> Rows:
        """The rows of a graph, or of one in files."""
        return cls(graph.indptr[:], graph.indices, graph.weights)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def chunks(self, most: int) -> list[slice]:
        """Consecutive rows with at most so many entries together, or single rows."""
        return cut_blocks(self.indptr, [slice(0, self.n_rows)], most)

    def read(self, rows: slice) -> Chunk:
        """(offsets from zero, indices, weights) of consecutive rows."""
        indptr = self.indptr[rows.start : rows.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        weights = None if self.weights is None else readonly(self.weights[entries])
        return readonly(indptr - indptr[0]), readonly(self.indices[entries]), weights

    def csr(self) -> sp.csr_array:
        """The matrix, in memory."""
        data = np.ones(len(self.indices), np.float32) if self.weights is None else self.weights[:]
        return sp.csr_array((data, self.indices[:], self.indptr), shape=(self.n_rows, self.n_rows))


class Matrix(Protocol):
    """A matrix of many rows and few columns, read and written by rows, or by tiles of columns of all rows."""

    shape: tuple[int, int]
    dtype: np.dtype

    @property
    def n_tiles(self) -> int:
        """The number of tiles."""
        ...

    def tile(self, k: int) -> np.ndarray:
        """A tile of all rows, in memory."""
        ...

    def filling(self, k: int, rows: slice) -> AbstractContextManager[np.ndarray]:
        """Memory for some rows of a tile, which are written when it is left."""
        ...

    def __getitem__(self, rows: slice) -> np.ndarray: ...

    def __setitem__(self, rows: slice, values: np.ndarray) -> None: ...


class Held:
    """A matrix in memory, of one tile."""

    n_tiles = 1

    def __init__(self, values: np.ndarray):
        self.values, self.shape, self.dtype = values, (values.shape[0], values.shape[1]), values.dtype

    def tile(self, k: int) -> np.ndarray:
        """All columns."""
        return self.values

    def filling(self, k: int, rows: slice) -> AbstractContextManager[np.ndarray]:
        """Some rows."""
        return nullcontext(self.values[rows])

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.values[rows]

    def __setitem__(self, rows: slice, values: np.ndarray) -> None:
        self.values[rows] = values


class Storage(Protocol):
    """Where the arrays of structural columns are.

    most_entries : of compressed rows that are read, or made, at once.
    block_edges : that a block of rows may read anywhere before `give_back`.
    """

    most_entries: int
    block_edges: int

    def rows(self, name: str, chunks: Callable[[], Iterator[Chunk]]) -> Rows:
        """Compressed rows, from consecutive (sizes, indices, weights), unless they were made before."""
        ...

    def matrix(self, name: str, shape: tuple[int, int], dtype: Any, fill: Callable[[Any], object]) -> Matrix:
        """A matrix that `fill` writes, unless it was made before."""
        ...

    def table(self, name: str, shape: tuple[int, int], fill: Callable[[Any], object]) -> Any:
        """A float32 array that `fill` writes by rows, unless it was made before: the columns of a kind."""
        ...

    def keep(self, name: str, values: np.ndarray) -> None:
        """Keep an array that is in memory for later."""
        ...

    def has(self, name: str) -> bool:
        """Whether an array was made before."""
        ...

    def whole(self, rows: Rows) -> AbstractContextManager[Chunk]:
        """(offsets, indices, weights), whose entries are read anywhere."""
        ...

    def give_back(self) -> None:
        """Give memory of `whole` back, if it has become much."""
        ...

    def forget(self, *names: str) -> None:
        """Remove arrays that are not needed any more."""
        ...


class InMemory:
    """Arrays in memory."""

    most_entries = block_edges = 2**60

    def rows(self, name: str, chunks: Callable[[], Iterator[Chunk]]) -> Rows:
        """Compressed rows."""
        sizes, indices, weights = zip(*chunks(), strict=True)
        indptr = np.append(0, np.cumsum(_joined(sizes), dtype=np.int64))
        return Rows(indptr, _joined(indices), _joined(weights))

    def matrix(self, name: str, shape: tuple[int, int], dtype: Any, fill: Callable[[Any], object]) -> Held:
        """A matrix that `fill` writes."""
        n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
        check_host_memory(2 * n_bytes, f"{shape[0]} nodes need", "for structural columns", "lower n_factors")
        out = Held(np.empty(shape, dtype))
        fill(out)
        return out

    def table(self, name: str, shape: tuple[int, int], fill: Callable[[Any], object]) -> np.ndarray:
        """An array that `fill` writes."""
        out = np.empty(shape, np.float32)
        fill(out)
        return out

    def keep(self, name: str, values: np.ndarray) -> None:
        """Nothing: whoever made it holds it."""

    def has(self, name: str) -> bool:
        """Nothing was made before."""
        return False

    def whole(self, rows: Rows) -> AbstractContextManager[Chunk]:
        """The arrays."""
        weights = None if rows.weights is None else readonly(rows.weights)
        return nullcontext((readonly(rows.indptr), readonly(rows.indices), weights))

    def give_back(self) -> None:
        """Nothing."""

    def forget(self, *names: str) -> None:
        """Nothing: an array ends with its last user."""


def _joined(parts: tuple[Any, ...]) -> Any:
    """Arrays one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def over_blocks(function: Callable[[slice], T], n_rows: int, size: int, n_jobs: int | None) -> Iterator[T]:
    """`function` of the row blocks, in order; the results of a few of them are in memory at once."""
    blocks = row_blocks(n_rows, size)
    group = max(GROUP_ROWS // size, 1)
    for first in range(0, len(blocks), group):
        yield from map_blocks(function, blocks[first : first + group], n_jobs=n_jobs)


def row_sums(A: Rows, most: int) -> np.ndarray:
    """The sum of every row in float64."""
    if A.weights is None:
        return np.diff(A.indptr).astype(np.float64)
    out = np.zeros(A.n_rows)
    for rows in A.chunks(most):
        indptr, _, weights = A.read(rows)
        filled = np.flatnonzero(np.diff(indptr))
        if weights is not None and len(filled):
            out[rows.start + filled] = np.add.reduceat(np.asarray(weights, np.float64), indptr[filled])
    return out


def column_sums(A: Rows, most: int) -> np.ndarray:
    """The sum of every column in float64, in the order of the rows."""
    out = np.zeros(A.n_rows)
    for rows in A.chunks(most):
        _, indices, weights = A.read(rows)
        _add_columns(indices, weights, out)
    return out


@compiled_exactly
def _add_columns(indices, weights, out):  # pyright: ignore
    """Add every entry to the sum of its column."""
    for entry in range(len(indices)):
        out[indices[entry]] += 1.0 if weights is None else weights[entry]
