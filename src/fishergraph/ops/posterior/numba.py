"""The first E-step on NumPy arrays, compiled: log α and α in one pass over the points.

Bytes per point: the point, read once (4·d), and its responsibilities, written once (8·p).
"""

from __future__ import annotations

import numpy as np

from fishergraph._compile import compiled, readonly
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.ops._numba.members import four_products, moment

# Points of a block that a thread takes at a time.
_POINTS = 4096


@compiled
def _posterior_rows(points, centre, anchors, halves, scale, logs, plain):
    """log α_ij and α_ij of a block of points: log-softmax of (⟨x_i − c, w_j − c⟩ − ‖w_j − c‖²/2)/σ² (Section 4.4)."""
    n_anchors = anchors.shape[0]
    for i in range(points.shape[0]):
        row, alpha = logs[i], plain[i]
        # With a j that begins at the literal 0 four_products would be compiled a second time, for that value.
        for j in range(0, n_anchors - 3, 4):
            row[j], row[j + 1], row[j + 2], row[j + 3] = four_products(points[i], centre, anchors, j)
        for j in range(n_anchors - n_anchors % 4, n_anchors):
            row[j] = moment(points[i], centre, anchors[j])
        highest = -scale * np.inf
        for j in range(n_anchors):
            row[j] = (row[j] - halves[j]) * scale
            highest = max(highest, row[j])
        total = scale - scale
        for j in range(n_anchors):
            row[j] -= highest
            alpha[j] = np.exp(row[j])
            total += alpha[j]
        inverse, total = 1 / total, np.log(total)
        for j in range(n_anchors):
            row[j] -= total
            alpha[j] *= inverse


def posterior_block(
    points: np.ndarray, anchors: np.ndarray, variance: float, logs: np.ndarray, plain: np.ndarray
) -> None:
    """Fill log α and α of a block of points, (point, anchor): `posterior` and its exponential in one pass."""
    dtype = points.dtype.type
    centre = anchors.mean(axis=0)
    shifted = anchors - centre
    halves = (shifted * shifted).sum(axis=1) / 2
    _posterior_rows(
        readonly(points), readonly(centre), readonly(shifted), readonly(halves), dtype(1 / variance), logs, plain
    )


def posterior(points: np.ndarray, anchors: np.ndarray, variance: float) -> np.ndarray:
    """log α of all points, (point, anchor), on threads."""
    logs = np.empty((len(points), len(anchors)), points.dtype)
    plain = np.empty_like(logs)

    def fill(rows: slice) -> None:
        posterior_block(points[rows], anchors, variance, logs[rows], plain[rows])

    map_blocks(fill, row_blocks(len(points), _POINTS))
    return logs
