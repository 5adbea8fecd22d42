"""Groups of rows that are equal to the last bit: they are searched once, and stand for each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fishergraph._compile import readonly
from fishergraph.vectors.kernels import hash_rows

_COMPARED = 4096  # rows that are compared at once


@dataclass(frozen=True)
class Distinct:
    """The groups of equal rows, in the order of their first rows.

    Attributes
    ----------
    first : array of shape (n_groups,)
        The first row of every group.
    group : array of shape (n_rows,)
        The group of every row.
    order : array of shape (n_rows,)
        The rows by group, ascending within one.
    start : array of shape (n_groups + 1,)
        Where a group begins in `order`.
    """

    first: np.ndarray
    group: np.ndarray
    order: np.ndarray
    start: np.ndarray

    @property
    def largest(self) -> int:
        """The number of rows of the largest group."""
        return int(np.diff(self.start).max(initial=0))


def row_hashes(rows: np.ndarray) -> np.ndarray:
    """A hash of every row of floats; −0.0 and 0.0 are one number."""
    hashes, words = np.empty(len(rows), np.uint64), rows + rows.dtype.type(0)
    whole = words.shape[1] * words.dtype.itemsize % 8 == 0
    hash_rows(readonly(words.view(np.uint64 if whole else np.uint32)), hashes)
    return hashes


def distinct_rows(hashes: np.ndarray, read: Callable[[np.ndarray], np.ndarray]) -> Distinct:
    """The groups of equal rows; rows with one hash are compared. `read` returns rows by their numbers."""
    while True:
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        repeated = np.flatnonzero(first[group] != np.arange(len(hashes)))
        others = first[group[repeated]]
        parts = [slice(start, start + _COMPARED) for start in range(0, len(repeated), _COMPARED)]
        differ = [repeated[part][(read(repeated[part]) != read(others[part])).any(axis=1)] for part in parts]
        unlike = np.concatenate(differ) if differ else repeated
        if not len(unlike):
            break
        hashes = hashes.copy()
        hashes[unlike] += np.uint64(1)  # different rows of one hash, about once in 2^64 pairs
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    group = rank[group]
    start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(first)))])
    return Distinct(np.sort(first), group, np.argsort(group, kind="stable"), start)
