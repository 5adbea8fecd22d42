"""Hashes of texts and of their words, over the bytes of an Arrow column."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, inlined

_START, _FACTOR = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a of 64 bits
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(33)


@inlined
def _mixed(code):
    """The bits of a hash, spread over all of them."""
    code ^= code >> _SHIFT
    code *= _MIX
    return code ^ (code >> _SHIFT)


@inlined
def _is_letter(byte):
    """Whether a byte is a letter or a digit; every byte beyond ASCII is."""
    return byte >= 128 or 48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122


@compiled
def hash_texts(data, offsets, n_buckets, buckets):
    """Write the bucket of each text."""
    for i in range(len(buckets)):
        code = _START
        for k in range(offsets[i], offsets[i + 1]):
            code = (code ^ np.uint64(data[k])) * _FACTOR
        buckets[i] = _mixed(code) % np.uint64(n_buckets)


@compiled
def count_words(data, offsets, counts):
    """Write the number of words of each text."""
    for i in range(len(counts)):
        inside, count = False, 0
        for k in range(offsets[i], offsets[i + 1]):
            letter = _is_letter(data[k])
            count += letter and not inside
            inside = letter
        counts[i] = count


@compiled
def hash_words(data, offsets, n_buckets, indptr, buckets):
    """Write the bucket of each word; those of text i go to buckets[indptr[i]:indptr[i + 1]], sorted."""
    for i in range(len(indptr) - 1):
        at, code, inside = indptr[i], _START, False
        for k in range(offsets[i], offsets[i + 1]):
            letter = _is_letter(data[k])
            if letter:
                code = (code ^ np.uint64(data[k])) * _FACTOR
            if inside and not letter:
                buckets[at] = _mixed(code) % np.uint64(n_buckets)
                at, code = at + 1, _START
            inside = letter
        if inside:
            buckets[at] = _mixed(code) % np.uint64(n_buckets)
        for k in range(indptr[i] + 1, indptr[i + 1]):  # texts are short
            value, j = buckets[k], k - 1
            while j >= indptr[i] and buckets[j] > value:
                buckets[j + 1] = buckets[j]
                j -= 1
            buckets[j + 1] = value


@compiled
def unique_in_rows(indptr, buckets, kept, columns, counts):
    """Write the distinct buckets of each sorted row, how often each occurs, and where rows begin."""
    at = 0
    for i in range(len(indptr) - 1):
        kept[i] = at
        for k in range(indptr[i], indptr[i + 1]):
            if k > indptr[i] and buckets[k] == buckets[k - 1]:
                counts[at - 1] += 1
            else:
                columns[at] = buckets[k]
                counts[at] = 1
                at += 1
    kept[len(indptr) - 1] = at
