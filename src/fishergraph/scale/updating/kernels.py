"""Compiled loops of updates: rows of a sparse matrix replaced, rows that list marked points, checksums of parts."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled

_POLYNOMIAL = np.uint32(0xEDB88320)


@compiled
def splice(old_indptr, old, place, new_indptr, new, out_indptr, out):
    """Copy the entries of rows; those of row v come from row `place[v]` of the new ones unless that is negative."""
    for v in range(len(place)):
        start = out_indptr[v]
        if place[v] >= 0:
            first, last = new_indptr[place[v]], new_indptr[place[v] + 1]
            out[start : start + last - first] = new[first:last]
        else:
            first, last = old_indptr[v], old_indptr[v + 1]
            out[start : start + last - first] = old[first:last]


@compiled
def mark_rows(indptr, indices, marked, found):
    """Mark the rows that list a marked point."""
    for v in range(len(indptr) - 1):
        for entry in range(indptr[v], indptr[v + 1]):
            if marked[indices[entry]]:
                found[v] = True
                break


@compiled
def mark_changed(indptr, values, other_indptr, other_values, found):
    """Mark the rows whose entries differ, in number or in bytes (which are passed as integers)."""
    for v in range(len(indptr) - 1):
        first, size = indptr[v], indptr[v + 1] - indptr[v]
        other = other_indptr[v]
        if other_indptr[v + 1] - other != size:
            found[v] = True
            continue
        for k in range(size):
            if values[first + k] != other_values[other + k]:
                found[v] = True
                break


@compiled
def _times(a, b):
    """The product of two polynomials modulo that of CRC-32, in reflected order."""
    bit, product = np.uint32(1 << 31), np.uint32(0)
    while bit:
        if a & bit:
            product ^= b
        bit >>= np.uint32(1)
        b = (b >> np.uint32(1)) ^ _POLYNOMIAL if b & np.uint32(1) else b >> np.uint32(1)
    return product


@compiled
def _powers():
    """x^(8 · 2^k) for k = 0, …, 62."""
    powers = np.empty(63, np.uint32)
    power = np.uint32(1 << 30)
    for _ in range(3):
        power = _times(power, power)
    for k in range(63):
        powers[k] = power
        power = _times(power, power)
    return powers


@compiled
def shifted_checksum(row_checksums, rows, n_rows, row_bytes):
    """The checksum of a part whose rows are zeros but for some, from the checksums of these rows.

    All of them are without the inversions of CRC-32, so that they are linear. `rows` rise, and count from the part's
    first row.
    """
    powers, total, done = _powers(), np.uint32(0), 0
    for k in range(len(rows) + 1):
        target = rows[k] + 1 if k < len(rows) else n_rows
        gap, power = (target - done) * row_bytes, 0
        while gap:
            if gap & 1:
                total = _times(powers[power], total)
            gap >>= 1
            power += 1
        if k < len(rows):
            total ^= row_checksums[k]
        done = target
    return total
