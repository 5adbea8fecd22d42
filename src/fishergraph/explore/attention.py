"""Whom the nodes of a page attend to: c_vuj = a_vu α_uj / D_vj, in a form that fits into the page.

With one EM iteration α belongs to the member alone, so the page holds p numbers per node and multiplies them by the
weights of the graph. D_vj is on the page if some members are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph.explore.edges import MOST_EDGES, PageEdges
from fishergraph.explore.pack import Parts

_STEPS = 255  # of a responsibility
_CLOSE = 2 / _STEPS  # by which attention from α of the members alone may differ from the given one


@dataclass(frozen=True, eq=False)
class PageAttention:
    """The attention of the nodes of a page in the first layer.

    Attributes
    ----------
    alpha : array of shape (n, p)
        α of every node.
    members : PageEdges or None
        Who the members are, if they are not the graph neighbours.
    weight : array or None
        a_vu of every edge of the page, if they are not all one.
    own : array or None
        a_vv of every node, if it is not one.
    mass : array or None
        D_vj, if some members are not on the page.
    words : list of str or None
        What the anchors stand for.
    """

    alpha: np.ndarray
    members: PageEdges | None
    weight: np.ndarray | None
    own: np.ndarray | None
    mass: np.ndarray | None
    words: list[str] | None

    def packed(self, parts: Parts) -> dict[str, Any]:
        """What the browser needs to read it."""

        def numbers(values: np.ndarray | None) -> dict[str, Any] | None:
            if values is None:
                return None
            flat = values.reshape(-1).astype(np.float32)
            return parts.numbers(flat, np.zeros(len(flat), dtype=bool))

        return {
            "anchors": self.alpha.shape[1],
            "responsibilities": parts.array(np.rint(self.alpha * _STEPS).astype(np.uint8)),
            "members": None if self.members is None else self.members.packed(parts),
            "weight": numbers(self.weight),
            "self": numbers(self.own),
            "mass": numbers(self.mass),
            "words": self.words,
        }


def page_attention(
    found: Any, rows: np.ndarray, edges: PageEdges | None, words: list[str] | None, notes: list[str]
) -> PageAttention | None:
    """The attention of the nodes of a page; `found` has compressed rows of weights and attention, and masses.

    None, with a note, if it cannot be told from one α per node.
    """
    indices = np.asarray(found.indices)
    n = len(found.indptr) - 1
    alpha = _responsibilities(found, n) if indices.ndim == 1 and found.mass.shape[0] == n else None
    if alpha is None:
        notes.append(
            "The attention of neighbours is not on the page: in this model it differs from pair to pair. Explainer "
            "tells it."
        )
        return None
    M = sp.csr_array((found.weights.astype(np.float64), indices, found.indptr), shape=(n, n))
    M = sp.csr_array(M[rows][:, rows]) if len(rows) < n or (rows != np.arange(n)).any() else M
    M.sort_indices()
    kept, weight, own, members = _member_form(M, edges)
    alpha = alpha[rows]
    rounded = np.rint(alpha * _STEPS) / _STEPS
    seen, mass = kept @ rounded, found.mass[rows]
    whole = bool((np.abs(seen - mass) <= 0.02 * mass + 1e-6).all())
    return PageAttention(alpha, members, weight, own, None if whole else mass, words)


def _responsibilities(found: Any, n: int) -> np.ndarray | None:
    """α of every node from the attention it receives; None if it depends on who attends."""
    p = found.attention.shape[1]
    owners = np.repeat(np.arange(n), np.diff(found.indptr))
    weights = np.maximum(np.asarray(found.weights, dtype=np.float64), 1e-300)
    alpha = np.full((n, p), 1 / p)
    given = found.attention * found.mass[owners] / weights[:, None]
    alpha[found.indices[::-1]] = given[::-1]  # the first entry of every member stays
    again = weights[:, None] * alpha[found.indices] / np.maximum(found.mass[owners], 1e-300)
    return alpha if np.abs(again - found.attention).max(initial=0) <= _CLOSE else None


def _member_form(
    M: sp.csr_array, edges: PageEdges | None
) -> tuple[sp.csr_array, np.ndarray | None, np.ndarray | None, PageEdges | None]:
    """The members on the page, their weights by edge, the own weights, and their own list if the graph is not it."""
    own = M.diagonal()
    others = sp.csr_array(M - sp.diags_array(own))
    others.eliminate_zeros()
    if edges is not None:
        row, column = edges.ends()
        keep = row != column
        pick = sp.csr_array((np.ones(keep.sum()), (row[keep], column[keep])), shape=M.shape)
        both = pick if edges.directed else sp.csr_array(pick + pick.T)
        weight = _at(others, row, column)
        back = weight if edges.directed else _at(others, column, row)
        inside = others.multiply(both).nnz
        fits = bool((weight[keep] > 0).all() and np.allclose(weight, back)) and inside >= min(both.nnz, others.nnz)
        if fits and (others.nnz == inside or edges.shown < edges.total):
            weight = np.where(keep, weight, 0.0)
            plain = bool((weight[keep] == 1).all())
            kept = sp.csr_array(others.multiply(both) + sp.diags_array(own))
            return kept, None if plain else weight, None if (own == 1).all() else own, None
    listed = M
    if M.nnz > MOST_EDGES:
        least = np.partition(M.data, M.nnz - MOST_EDGES)[M.nnz - MOST_EDGES]
        listed = sp.csr_array(M.multiply(least <= M))
        listed.sort_indices()
    return listed, None, None, PageEdges(sp.csr_array(listed), True, True, M.nnz)


def _at(A: sp.csr_array, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Entries of a matrix."""
    return np.asarray(A[row, column]).reshape(-1) if len(row) else np.empty(0)
