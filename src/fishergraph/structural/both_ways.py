"""The edges of a graph both ways: A + Aᵀ, of which a graph that lists every edge both ways already has the pattern.

Everything that is computed from A + Aᵀ is a function of quotients of its entries. If A is symmetric, A takes its place:
a factor of two changes no bit of them.
"""
# numba infers the types of the arguments of a kernel.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from fishergraph._compile import compiled_exactly, readonly
from fishergraph._parallel import cached_attribute, cut_blocks, map_blocks, row_blocks
from fishergraph.counters import STEP, mix
from fishergraph.structural.rows import Chunk, InMemory, Rows, Storage

_ROWS = 4096  # of a block
_AGAIN = np.uint64(0xD1342543DE82EF95)  # the step of the second end of an edge


class Edges:
    """The edges of a graph, as they are and both ways.

    Parameters
    ----------
    graph : Graph or Store
        Its `indptr`, `indices` and `weights` are read.
    storage : Storage, optional
        Where arrays are kept; by default in memory.
    n_jobs : int, optional
        Threads.
    """

    def __init__(self, graph: Any, storage: Storage | None = None, n_jobs: int | None = None):
        self.A, self.storage, self.n_jobs = Rows.of(graph), storage or InMemory(), n_jobs

    @cached_attribute
    def both(self) -> Rows:
        """A if it is symmetric, else A + Aᵀ, in float64 if there are weights."""
        if is_symmetric(self.A, self.storage.most_entries, self.n_jobs):
            return self.A
        return merged(lambda: self.A, "both-ways", self.storage, largest=False)


def is_symmetric(A: Rows, most: int, n_jobs: int | None = None) -> bool:
    """Whether A has the entries of Aᵀ: sums of 64-bit hashes of all entries are compared, in one pass."""
    total = 0
    for rows in A.chunks(most):
        indptr, indices, weights = A.read(rows)
        bits = None if weights is None else weights.view(np.uint32 if weights.itemsize == 4 else np.uint64)
        difference = partial(_difference, rows.start, indptr, indices, bits)
        total += sum(map(int, map_blocks(difference, row_blocks(rows.stop - rows.start, _ROWS), n_jobs=n_jobs)))
    return total % 2**64 == 0


@compiled_exactly
def _difference(start, indptr, indices, bits, rows):
    """The sum of the hashes of the entries less that of the entries of the transpose, modulo 2**64."""
    total = np.uint64(0)
    for k in range(rows.start, rows.stop):
        v = np.uint64(start + k)
        for entry in range(indptr[k], indptr[k + 1]):
            u = np.uint64(indices[entry])
            weight = np.uint64(1) if bits is None else np.uint64(bits[entry])
            own = mix(mix(v * STEP ^ weight) + u * _AGAIN)
            total += own - mix(mix(u * STEP ^ weight) + v * _AGAIN)
    return total


def merged(make: Callable[[], Rows], name: str, storage: Storage, *, largest: bool) -> Rows:
    """A + Aᵀ of a matrix that is made if it is needed, or the larger entries of the two; all entries are positive."""
    return storage.rows(name, lambda: _merged_chunks(make(), storage.most_entries, largest=largest))


def _merged_chunks(A: Rows, most: int, *, largest: bool) -> Iterator[Chunk]:
    """Consecutive rows of A and Aᵀ together. A is read once for as many rows of Aᵀ as may be in memory."""
    incoming = np.zeros(A.n_rows, np.int64)
    for rows in A.chunks(most):
        _count_columns(A.read(rows)[1], incoming)
    offsets = np.append(0, np.cumsum(incoming))
    for rows in cut_blocks(A.indptr + offsets, [slice(0, A.n_rows)], most):
        own, other = A.read(rows), _transposed(A, rows, offsets, most)
        sizes = np.empty(rows.stop - rows.start, np.int64)
        _count_together(own[0], own[1], other[0], other[1], sizes)
        starts = np.append(0, np.cumsum(sizes))
        kind = _kind(A, largest=largest)
        out = np.empty(starts[-1], A.indices.dtype), np.empty(starts[-1], kind)
        _merge(*own, *other, largest, readonly(starts), *out)
        yield sizes, *out


def _kind(A: Rows, *, largest: bool) -> np.dtype:
    """The type of the merged entries: sums of ones are exact in float32."""
    if largest:
        return A.weights.dtype
    return np.dtype(np.float32 if A.weights is None else np.float64)


def _transposed(A: Rows, rows: slice, offsets: np.ndarray, most: int) -> Chunk:
    """Consecutive rows of Aᵀ."""
    indptr = offsets[rows.start : rows.stop + 1] - offsets[rows.start]
    indices = np.empty(indptr[-1], A.indices.dtype)
    weights = None if A.weights is None else np.empty(indptr[-1], A.weights.dtype)
    ends = indptr[:-1].copy()
    for part in A.chunks(most):
        _scatter(part.start, rows.start, *A.read(part), ends, indices, weights)
    return readonly(indptr), readonly(indices), None if weights is None else readonly(weights)


@compiled_exactly
def _count_columns(indices, counts):
    """Add the number of entries of every column."""
    for entry in range(len(indices)):
        counts[indices[entry]] += 1


@compiled_exactly
def _scatter(start, first, indptr, indices, weights, ends, out, out_weights):
    """Put the entries of rows from `start` on whose column is one of those from `first` on into the rows of Aᵀ."""
    for k in range(len(indptr) - 1):
        for entry in range(indptr[k], indptr[k + 1]):
            u = indices[entry] - first
            if 0 <= u < len(ends):
                out[ends[u]] = start + k
                if weights is not None:
                    out_weights[ends[u]] = weights[entry]
                ends[u] += 1


@compiled_exactly
def _count_together(indptr, indices, other_indptr, other_indices, sizes):
    """The number of columns that each row has in one of two matrices."""
    for k in range(len(sizes)):
        i, j, size = indptr[k], other_indptr[k], 0
        while i < indptr[k + 1] and j < other_indptr[k + 1]:
            a, b = indices[i], other_indices[j]
            i += a <= b
            j += b <= a
            size += 1
        sizes[k] = size + indptr[k + 1] - i + other_indptr[k + 1] - j


@compiled_exactly
def _merge(indptr, indices, weights, other_indptr, other_indices, other_weights, largest, starts, out, out_weights):
    """The sums of the entries of two matrices, or the larger ones, row by row."""
    for k in range(len(starts) - 1):
        i, j = indptr[k], other_indptr[k]
        for position in range(starts[k], starts[k + 1]):
            has = i < indptr[k + 1] and (j == other_indptr[k + 1] or indices[i] <= other_indices[j])
            has_other = j < other_indptr[k + 1] and (i == indptr[k + 1] or other_indices[j] <= indices[i])
            x, y = 0.0, 0.0
            if has:
                x = 1.0 if weights is None else np.float64(weights[i])
                out[position] = indices[i]
            if has_other:
                y = 1.0 if other_weights is None else np.float64(other_weights[j])
                out[position] = other_indices[j]
            i += has
            j += has_other
            out_weights[position] = max(x, y) if largest else x + y
