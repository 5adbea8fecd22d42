"""What makes nodes alike: the parts of similarities, and the features of neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph.explore.edges import PageEdges
from fishergraph.explore.neighbours import Nearest
from fishergraph.explore.pack import Parts

MOST_PARTS = 2_000_000  # numbers of parts of similarities that a page holds
MOST_FEATURES = 1_500_000  # entries of features
_PAIRS = 4096  # whose parts are computed at once


@dataclass(frozen=True, eq=False)
class SimilarityParts:
    """The parts of cosine similarities by the blocks of the embedding.

    Attributes
    ----------
    blocks : list of str
        Their names.
    nearest : array of shape (n, k, n_blocks)
        The parts of the first k nearest nodes of every node.
    edges : array of shape (n_edges, n_blocks) or None
        The parts of the ends of every edge of the page.
    """

    blocks: list[str]
    nearest: np.ndarray
    edges: np.ndarray | None

    def packed(self, parts: Parts) -> dict[str, Any]:
        """What the browser needs to read them: integers of one byte, and what one of them stands for."""
        most = max(np.abs(self.nearest).max(initial=0), 0 if self.edges is None else np.abs(self.edges).max(initial=0))
        scale = float(most) / 127 or 1.0

        def rounded(values: np.ndarray) -> dict[str, Any]:
            return parts.array(np.rint(values / scale).astype(np.int8))

        return {
            "blocks": self.blocks,
            "k": self.nearest.shape[1],
            "nearest": rounded(self.nearest),
            "edges": None if self.edges is None else rounded(self.edges),
            "scale": scale,
        }


def similarity_parts(
    U: np.ndarray, blocks: Sequence[tuple[str, int]], near: Nearest, edges: PageEdges | None
) -> SimilarityParts | None:
    """The parts by blocks of nearest pairs and of edges, of as many as fit; None if there is one block.

    The rows of U have length one.
    """
    n, k = near.rows.shape
    if len(blocks) < 2 or n == 0 or k == 0:
        return None
    borders = np.cumsum([0, *(width for _, width in blocks)])
    k = min(k, max(1, MOST_PARTS // (n * len(blocks))))
    first, second = np.repeat(np.arange(n), k), near.rows[:, :k].reshape(-1)
    nearest = _parts(U, borders, first, second).reshape(n, k, len(blocks))
    left = MOST_PARTS - nearest.size
    of_edges = None
    if edges is not None and 0 < edges.shown * len(blocks) <= left:
        of_edges = _parts(U, borders, *edges.ends())
    return SimilarityParts([name for name, _ in blocks], nearest, of_edges)


def _parts(U: np.ndarray, borders: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """⟨u_v, u_w⟩ over the columns of each block, (pair, block)."""
    out = np.empty((len(first), len(borders) - 1), dtype=np.float32)
    for start in range(0, len(first), _PAIRS):
        pairs = slice(start, start + _PAIRS)
        products = U[first[pairs]] * U[second[pairs]]
        out[pairs] = np.add.reduceat(products, borders[:-1], axis=1)
    return out


# --- features -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PageFeatures:
    """The features of the nodes of a page.

    Attributes
    ----------
    X : CSR array of shape (n, d)
        Features; dense ones are standardised.
    names : list of str
        The names of the columns.
    means : array of shape (d,)
        Their means over all nodes.
    tells : array of shape (d,)
        Which values tell something: 0 for high and low ones, 1 for high and −1 for low ones alone. A column of two
        values tells by the rarer one; a sparse column by entries.
    dense : bool
        Whether values are standardised.
    """

    X: Any
    names: list[str]
    means: np.ndarray
    tells: np.ndarray
    dense: bool

    def packed(self, parts: Parts) -> dict[str, Any]:
        """What the browser needs to read them: values in steps of 1/127 of the largest."""
        scale = float(np.abs(self.X.data).max(initial=0)) / 127 or 1.0
        return {
            "names": self.names,
            "dense": self.dense,
            "tells": parts.array(self.tells.astype(np.int8)),
            "counts": parts.integers(np.diff(self.X.indptr)),
            "index": parts.integers(self.X.indices),
            "value": parts.array(np.rint(self.X.data / scale).astype(np.int8)),
            "scale": scale,
            "mean": parts.array(self.means.astype(np.float32)),
        }


def page_features(X: Any, names: Sequence[str], rows: np.ndarray, notes: list[str]) -> PageFeatures | None:
    """The features of the nodes of a page, if they are few enough."""
    dense = not sp.issparse(X)
    entries = len(rows) * X.shape[1] if dense else int(np.diff(sp.csr_array(X).indptr)[rows].sum())
    if entries > MOST_FEATURES:
        notes.append(
            f"The features are not on the page, because they are many ({entries:,} numbers): what two neighbourhoods "
            "share is told by their members alone."
        )
        return None
    if dense:
        values = np.asarray(X, dtype=np.float64)
        spread = values.std(axis=0)
        values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1)
        return PageFeatures(sp.csr_array(values[rows]), list(names), np.zeros(X.shape[1]), _telling(values), True)
    X = sp.csr_array(X)
    means = np.asarray(X.mean(axis=0)).reshape(-1)
    picked = sp.csr_array(X[rows])
    picked.sort_indices()
    return PageFeatures(picked, list(names), means, np.ones(X.shape[1]), False)


def _telling(values: np.ndarray) -> np.ndarray:
    """The sign of the rarer value of every standardised column that has two values; 0 for other columns."""
    low, high = values.min(axis=0), values.max(axis=0)
    two = ((values == low) | (values == high)).all(axis=0)
    return np.where(two, np.sign(high + low), 0)
