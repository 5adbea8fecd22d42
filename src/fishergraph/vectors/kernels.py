"""Compiled loops of the search: lengths and hashes of rows, scaled blocks, the best of a block, exact products."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled_exactly, compiled_sum, inner, inner_sum
from fishergraph.counters import mix

_LANES = 32  # scores that are compared with the worst kept one at once


@compiled_sum
def row_norms(rows, origin, norms):
    """‖x_i − o‖ in float64. A row is divided by its largest entry first, so that no square overflows or vanishes."""
    for i in range(rows.shape[0]):
        largest = 0.0
        for k in range(rows.shape[1]):
            largest = max(largest, abs(np.float64(rows[i, k]) - origin[k]))
        total, scale = 0.0, 1.0 / largest if largest > 0 else 0.0
        for k in range(rows.shape[1]):
            entry = (np.float64(rows[i, k]) - origin[k]) * scale
            total += entry * entry
        norms[i] = largest * np.sqrt(total)


@compiled_exactly
def scale_rows(rows, origin, factors, out):
    """out_i = factors_i (x_i − o), rounded to float32."""
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            out[i, k] = np.float32((np.float64(rows[i, k]) - origin[k]) * factors[i])


@compiled_exactly
def hash_rows(words, hashes):
    """A 64-bit hash of every row of integers."""
    for i in range(words.shape[0]):
        state = np.uint64(words.shape[1])
        for k in range(words.shape[1]):
            state = mix(state ^ np.uint64(words[i, k]))
        hashes[i] = state


@inner
def _sift(scores, rows):
    """Move the root of a heap down to its place; the worst is the root, of equal ones the later row."""
    at, size = 0, len(scores)
    score, row = scores[0], rows[0]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (
            scores[right] < scores[child] or (scores[right] == scores[child] and rows[right] > rows[child])
        ):
            child = right
        if scores[child] > score or (scores[child] == score and rows[child] < row):
            break
        scores[at], rows[at] = scores[child], rows[child]
        at = child
    scores[at], rows[at] = score, row


@compiled_exactly
def keep_best(scores, first, kept_scores, kept_rows):
    """Bring a block of scores (query, row), whose first row is `first`, into the heaps (query, candidate) of the best.

    The rows of later blocks are later rows, so a score must be larger than the worst kept one to replace it.
    """
    n_rows = scores.shape[1]
    for i in range(scores.shape[0]):
        heap, rows, line = kept_scores[i], kept_rows[i], scores[i]
        for start in range(0, n_rows, _LANES):
            stop, worst, better = min(start + _LANES, n_rows), heap[0], 0
            for j in range(start, stop):
                better |= line[j] > worst
            if better:
                for j in range(start, stop):
                    if line[j] > heap[0]:
                        heap[0], rows[0] = line[j], first + j
                        _sift(heap, rows)


@inner_sum
def _product(x, y):
    """⟨x, y⟩ in float64."""
    total = 0.0
    for k in range(len(x)):
        total += np.float64(x[k]) * np.float64(y[k])
    return total


@inner_sum
def _distance(x, y):
    """‖x − y‖ in float64."""
    total = 0.0
    for k in range(len(x)):
        gap = np.float64(x[k]) - np.float64(y[k])
        total += gap * gap
    return np.sqrt(total)


@compiled_exactly
def exact_products(queries, rows, places, products):
    """⟨q_i, x⟩ for the rows x at places[i]."""
    for i in range(places.shape[0]):
        for j in range(places.shape[1]):
            products[i, j] = _product(queries[i], rows[places[i, j]])


@compiled_exactly
def exact_distances(queries, rows, places, distances):
    """‖q_i − x‖ for the rows x at places[i]."""
    for i in range(places.shape[0]):
        for j in range(places.shape[1]):
            distances[i, j] = _distance(queries[i], rows[places[i, j]])


@compiled_exactly
def pair_products(first, second, products):
    """⟨x_i, y_i⟩ of the rows of two arrays."""
    for i in range(len(products)):
        products[i] = _product(first[i], second[i])


@compiled_exactly
def pair_distances(first, second, distances):
    """‖x_i − y_i‖ of the rows of two arrays."""
    for i in range(len(distances)):
        distances[i] = _distance(first[i], second[i])


@compiled_exactly
def expand_groups(groups, keys, order, start, own, out_rows, out_keys):
    """The rows of groups that are sorted by their keys, without row own[i]; rows of equal keys ascend.

    A group has the rows order[start[g]] to order[start[g + 1] − 1].
    """
    places = np.empty(groups.shape[1], np.int64)
    for i in range(groups.shape[0]):
        filled, first = 0, 0
        while filled < out_rows.shape[1] and first < groups.shape[1]:
            last = first + 1  # groups first … last − 1 have one key
            while last < groups.shape[1] and keys[i, last] == keys[i, first]:
                last += 1
            for g in range(first, last):
                places[g] = start[groups[i, g]]
            while filled < out_rows.shape[1]:
                best = -1
                for g in range(first, last):
                    if places[g] < start[groups[i, g] + 1] and (best < 0 or order[places[g]] < order[places[best]]):
                        best = g
                if best < 0:
                    break
                row = order[places[best]]
                places[best] += 1
                if row != own[i]:
                    out_rows[i, filled], out_keys[i, filled] = row, keys[i, first]
                    filled += 1
            first = last
