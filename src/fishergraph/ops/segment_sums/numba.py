"""Sums of rows by label, compiled: the averages of k-means."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, compiled_sum, readonly


@compiled
def _add_segments(rows, labels, sums):
    for i in range(len(labels)):
        row, total = rows[i], sums[labels[i]]
        for k in range(len(row)):
            total[k] += row[k]


def add_segments(rows: np.ndarray, labels: np.ndarray, sums: np.ndarray) -> None:
    """sums[labels[i]] += rows[i], in the order of the rows."""
    _add_segments(readonly(rows), readonly(labels), sums)


@compiled_sum
def add_scaled_segments(rows, scales, labels, sums):
    """sums[labels[i]] += scales[i] · rows[i], in the order of the rows."""
    for i in range(rows.shape[0]):
        x, scale, row = rows[i], scales[i], sums[labels[i]]
        for k in range(len(x)):
            row[k] += scale * x[k]
