"""Similarities of pairs of rows."""

from __future__ import annotations

import numpy as np

from fishergraph._compile import readonly
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.vectors.kernels import pair_distances, pair_products
from fishergraph.vectors.points import Metric, Points, inverse

_PAIRS = 4096  # pairs that are compared at once


def pair_values(
    points: Points, metric: Metric, first: np.ndarray, second: np.ndarray, n_jobs: int | None = None
) -> np.ndarray:
    """The similarities or distances of pairs of rows, float64."""
    values = np.empty(len(first))

    def fill(part: slice) -> None:
        a, b = readonly(points.read(first[part])), readonly(points.read(second[part]))
        if metric.name == "euclidean":
            pair_distances(a, b, values[part])
            return
        pair_products(a, b, values[part])
        if metric.name == "cosine":
            values[part] *= inverse(points.norms[first[part]]) * inverse(points.norms[second[part]])
            np.clip(values[part], -1.0, 1.0, out=values[part])

    map_blocks(fill, row_blocks(len(first), _PAIRS), n_jobs=n_jobs)
    return values
