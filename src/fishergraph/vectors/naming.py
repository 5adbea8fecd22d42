"""Names of clusters: the columns of a table that set one apart from the others.

Of a column, with mean m and variance within the two groups,

    t = (m_in − m_out) / √(variance · (1 / n_in + 1 / n_out)),

the statistic of a difference of means. Flags, words and categories name a cluster if they are more frequent in it;
numbers and dates if they are larger or smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph.vectors.columns import Columns

_NAMED = 3  # columns of a name
_KEPT = 10  # columns that are kept of each cluster
_LEAST = 3.0  # t from which on a column sets a cluster apart
_BESIDE = 0.2  # times the t of the clearest column: others are not part of the name


@dataclass(frozen=True)
class Trait:
    """A column that sets a cluster apart.

    Attributes
    ----------
    text : str
        What it says of the cluster, such as "age high" or "topic = theory".
    column : str
        The name of the column.
    inside, outside : float
        Its mean in the cluster and outside; of flags, words and categories their shares.
    t : float
        The statistic of the difference.
    """

    text: str
    column: str
    inside: float
    outside: float
    t: float


def traits_of(columns: Columns, labels: np.ndarray, n_clusters: int) -> list[list[Trait]]:
    """The columns that set every cluster apart, the clearest first."""
    if n_clusters < 2:
        return [[] for _ in range(n_clusters)]
    t, inside, outside = _differences(columns.values, labels, n_clusters)
    strength = np.where(columns.one_sided, t, np.abs(t))
    inside, outside = (means * columns.spread + columns.centre for means in (inside, outside))
    found = []
    for c in range(n_clusters):
        order = np.argsort(-strength[c], kind="stable")[:_KEPT]
        numbers = [int(j) for j in order if strength[c, j] >= _LEAST]
        found.append([_trait(columns, j, float(t[c, j]), inside[c, j], outside[c, j]) for j in numbers])
    return found


def name_of(traits: list[Trait]) -> str:
    """The clearest columns of a cluster as its name; empty if there are none."""
    return ", ".join(trait.text for trait in traits[:_NAMED] if abs(trait.t) >= _BESIDE * abs(traits[0].t))


def _differences(values: Any, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """t, the means inside and the means outside, (cluster, column)."""
    n = len(labels)
    pick = sp.csr_array((np.ones(n), (labels, np.arange(n))), (n_clusters, n))
    sums, squares = pick @ values, pick @ (values.multiply(values) if sp.issparse(values) else values * values)
    sums, squares = (_dense(part) for part in (sums, squares))
    sizes = np.bincount(labels, minlength=n_clusters).astype(np.float64)[:, None]
    inside, outside, total = sums / sizes, (sums.sum(axis=0) - sums) / (n - sizes), squares.sum(axis=0)
    within = (total - sizes * inside**2 - (n - sizes) * outside**2) / max(n - 2, 1)
    # A column without variance in both groups sets them apart completely if it differs; rounding is no difference.
    floor = np.maximum(1e-9 * total / n, np.finfo(np.float64).tiny)
    spread = np.sqrt(np.maximum(within, floor) * (1 / sizes + 1 / (n - sizes)))
    return (inside - outside) / spread, inside, outside


def _trait(columns: Columns, j: int, t: float, inside: float, outside: float) -> Trait:
    text = columns.high[j] if t > 0 else columns.low[j]
    return Trait(str(text), columns.names[j], float(inside), float(outside), t)


def _dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
