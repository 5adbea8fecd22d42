"""The nearest nodes in the embedding, and its clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._errors import FishergraphWarning, InputError
from fishergraph._progress import Progress
from fishergraph._warn import each_warning_once
from fishergraph.explore.columns import Column, category_column
from fishergraph.explore.pack import Parts
from fishergraph.vectors import Vectors

MOST_EXACT = 20_000  # nodes whose nearest nodes are searched among all others
AXES = 64  # on which those of more nodes are searched
_CANDIDATES = 4  # times as many nodes as are wanted, compared exactly
_PAIRS = 256  # nodes whose candidates are compared at once
_FINE = 200_000  # pairs whose similarities have three decimals on the page
_FEWEST = 12  # nodes that are worth clusters


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest nodes of every node by cosine similarity, the most similar first.

    Attributes
    ----------
    rows : array of shape (n, k)
        Their numbers.
    similarities : array of shape (n, k)
        Cosines.
    """

    rows: np.ndarray
    similarities: np.ndarray

    @property
    def k(self) -> int:
        """How many there are of every node."""
        return self.rows.shape[1]

    def packed(self, parts: Parts) -> dict[str, Any]:
        """What the browser needs to read them: steps from the own number, and similarities in 1/1000 or 1/127."""
        step = self.rows.astype(np.int64) - np.arange(len(self.rows))[:, None]
        zigzag = np.where(step < 0, -2 * step - 1, 2 * step)
        fine = self.rows.size <= _FINE
        steps = 1000 if fine else 127
        rounded = np.rint(self.similarities.clip(-1, 1) * steps).astype(np.int16 if fine else np.int8)
        return {"k": self.k, "steps": parts.integers(zigzag), "similarity": parts.array(rounded), "scale": 1 / steps}


def unit(Z: np.ndarray) -> np.ndarray:
    """The rows at length one, float32; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", Z, Z, dtype=np.float64))
    return (Z / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)


def nearest(U: np.ndarray, k: int, progress: Progress, seed: int) -> Nearest:
    """The k nearest other nodes; of very many nodes, candidates on principal axes are compared exactly.

    The rows of U have length one.
    """
    n, k = len(U), min(k, len(U) - 1)
    if k < 1:
        return Nearest(np.empty((n, 0), np.int64), np.empty((n, 0), np.float32))
    if n <= MOST_EXACT or U.shape[1] <= AXES:
        found = Vectors(U).neighbours(k, metric="dot", verbose=progress)
        return Nearest(found.rows.astype(np.int64), found.values.astype(np.float32))
    axes = _leading_axes(U, seed)
    candidates = Vectors(U @ axes).neighbours(min(_CANDIDATES * k, n - 1), metric="dot", verbose=progress).rows
    return _best(U, candidates.astype(np.int64), k)


def _leading_axes(U: np.ndarray, seed: int) -> np.ndarray:
    """The axes on which most of the inner products of the rows are, (column, axis)."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(U))[:MOST_EXACT])
    sample = U[chosen].astype(np.float64)
    values, vectors = np.linalg.eigh(sample.T @ sample)
    return vectors[:, np.argsort(-values, kind="stable")[:AXES]].astype(np.float32)


def _best(U: np.ndarray, candidates: np.ndarray, k: int) -> Nearest:
    """The k best of the candidates of every row, by their whole rows."""
    rows, values = np.empty((len(U), k), np.int64), np.empty((len(U), k), np.float32)
    for start in range(0, len(U), _PAIRS):
        block = slice(start, min(start + _PAIRS, len(U)))
        products = np.einsum("id,icd->ic", U[block], U[candidates[block]], optimize=True)
        order = np.argsort(-products, axis=1, kind="stable")[:, :k]
        rows[block] = np.take_along_axis(candidates[block], order, axis=1)
        values[block] = np.take_along_axis(products, order, axis=1)
    return Nearest(rows, values)


def clusters(U: np.ndarray, table: Any, progress: Progress, seed: int) -> Column | None:
    """The clusters of the nodes as a column, named by what sets them apart; None for a handful of nodes."""
    if len(U) < _FEWEST:
        return None
    vectors, asked = Vectors(U), {"random_state": seed, "verbose": progress}
    with each_warning_once(silence=(FishergraphWarning,)):  # nobody asked for clusters
        try:
            found = vectors.cluster("auto", X=table, **asked)
        except InputError:  # no column of the table tells nodes apart
            found = vectors.cluster("auto", **asked)
    if found.k < 2:
        return None
    names: list[str] = []
    for name in found.names:
        plain = ", ".join(part.partition(" = ")[2] or part for part in name.split(", "))
        twins = sum(other == plain or other.startswith(f"{plain} (") for other in names)
        names.append(plain if not twins else f"{plain} ({twins + 1})")
    note = "k-means on the embedding; the names say what sets a cluster apart from the others."
    return category_column("cluster", found.labels, names, role="cluster", note=note)
