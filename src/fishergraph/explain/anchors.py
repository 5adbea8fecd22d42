"""`AnchorDescriptions`: what the anchors of a layer stand for, in the columns of X and in nodes.

The mean of a column over the nodes of an anchor, m_j = Σ_u α_uj x_u / Σ_u α_uj, is compared with the mean m of all
nodes: z = (m_j − m) / (s √(Σ_u α_uj²) / Σ_u α_uj) with s the standard deviation of the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError
from fishergraph._listing import Listing, html, lines, strongest
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph.explain.binding import Binding
from fishergraph.explain.layers import LayerView
from fishergraph.explain.records import listing_of, plain_fields

_ROWS = 4096  # of a dense matrix that are float64 at once


@dataclass(frozen=True, eq=False, repr=False)
class AnchorDescriptions:
    """The anchors of a layer in words.

    Parameters
    ----------
    block : str
        The layer.
    anchors : Listing
        ``anchor, n_nodes, n_closest``: the sum of the responsibilities of an anchor, and the number of nodes it is the
        most responsible for.
    columns : Listing
        The columns in which the nodes of an anchor differ most from all nodes: ``anchor, column, name, mean, overall,
        z``. `z` is the difference in units of its standard error.
    nodes : Listing
        The nodes an anchor is most responsible for: ``anchor, row, node, responsibility``.

    See Also
    --------
    Explainer.describe_anchors : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Explainer, FisherEmbedding
    >>> X, ring = np.eye(4), np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=ring)
    >>> Explainer(model, X, graph=ring).describe_anchors(n_columns=1).anchors["n_closest"].sum()
    np.int64(4)
    """

    block: str
    anchors: Listing
    columns: Listing
    nodes: Listing

    def __repr__(self) -> str:
        return f"AnchorDescriptions({self.block}: {len(self.anchors)} anchors)"

    def __str__(self) -> str:
        return "\n\n".join([f"Anchors of {self.block}", *(self._text(j) for j in self.anchors["anchor"].tolist())])

    def _repr_html_(self) -> str:
        parts = [
            f"<h4>{escape(self._title(j))}</h4>{html(self._own(self.columns, j))}{html(self._own(self.nodes, j))}"
            for j in self.anchors["anchor"].tolist()
        ]
        return f"<p>Anchors of {escape(self.block)}</p>{''.join(parts)}"

    def to_pandas(self, part: str = "columns") -> Any:
        """Return a part as a pandas DataFrame.

        Parameters
        ----------
        part : {"anchors", "columns", "nodes"}, default="columns"
            The listing.

        Returns
        -------
        DataFrame
            Its columns, with their types.
        """
        return listing_of(self, part).to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON.

        Returns
        -------
        dict
            The attributes by name; listings are dicts of lists.
        """
        return plain_fields(self)

    def _own(self, listing: Listing, anchor: int) -> Listing:
        rows = listing.take(listing["anchor"] == anchor)
        return Listing({name: rows[name] for name in rows if name not in ("anchor", "row", "column")})

    def _title(self, anchor: int) -> str:
        row = self.anchors.take(self.anchors["anchor"] == anchor)
        return f"Anchor {anchor}: {row['n_nodes'][0]:,.0f} nodes, the closest anchor of {row['n_closest'][0]:,}"

    def _text(self, anchor: int) -> str:
        return "\n".join(
            [self._title(anchor), lines(self._own(self.columns, anchor)), lines(self._own(self.nodes, anchor))]
        )


def describe(view: LayerView, binding: Binding, names: np.ndarray, n_columns: int, n_nodes: int) -> AnchorDescriptions:
    """The anchors of a layer, by the responsibilities of its points."""
    if view.sets.lifted:
        raise InputError(
            parameter="model",
            expected="have nodes as members",
            got=f"multiset={binding.rule!r}, whose anchors are made of several nodes",
            advice="fit one with multiset='neighbourhood' to describe its anchors",
        )
    alpha = np.exp(view.point_logs(binding.n_jobs))  # (node, anchor)
    n_anchors = alpha.shape[1]
    closest = np.bincount(alpha.argmax(axis=1), minlength=n_anchors)
    anchors = {"anchor": np.arange(n_anchors), "n_nodes": alpha.sum(axis=0), "n_closest": closest}
    columns, nodes = _columns(alpha, binding, names, n_columns), _nodes(alpha, binding, n_nodes)
    return AnchorDescriptions(view.name, Listing(anchors), columns, nodes)


def _columns(alpha: np.ndarray, binding: Binding, names: np.ndarray, most: int) -> Listing:
    """The most unusual columns of every anchor."""
    totals = alpha.sum(axis=0)
    weights = np.concatenate(
        [alpha / np.where(totals > 0, totals, 1), np.full((len(alpha), 1), 1 / len(alpha))], axis=1
    )
    means, squares = _averages(binding, weights)
    overall = means[-1]
    spread = np.sqrt(np.maximum(squares - overall**2, 0.0))
    parts = []
    for j in range(alpha.shape[1]):
        error = spread * np.linalg.norm(weights[:, j])
        gaps = means[j] - overall
        z = np.divide(gaps, error, out=np.zeros_like(gaps), where=error > 0)
        order = strongest(z)[:most]
        numbers = {"mean": means[j][order], "overall": overall[order], "z": z[order]}
        parts.append({"anchor": np.full(len(order), j), "column": order, "name": names[order], **numbers})
    return Listing({key: np.concatenate([part[key] for part in parts]) for key in parts[0]})


def _averages(binding: Binding, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of the columns of X, (weight, column), and the means of their squares, in a fixed order."""
    rows = binding.rows
    if sp.issparse(rows):
        return np.asarray((rows.T @ weights).T), np.asarray(rows.astype(np.float64).power(2).mean(axis=0)).ravel()

    def part(block: slice) -> tuple[np.ndarray, np.ndarray]:
        wide = rows[block].astype(np.float64)
        return weights[block].T @ wide, (wide * wide).sum(axis=0)

    parts = map_blocks(part, row_blocks(len(rows), _ROWS), n_jobs=binding.n_jobs)
    means, squares = (np.sum([each[k] for each in parts], axis=0) for k in (0, 1))
    return means, squares / len(rows)


def _nodes(alpha: np.ndarray, binding: Binding, most: int) -> Listing:
    """The nodes with the largest responsibilities of every anchor."""
    orders = [np.argsort(-alpha[:, j], kind="stable")[:most] for j in range(alpha.shape[1])]
    rows = np.concatenate(orders)
    anchors = np.repeat(np.arange(len(orders)), [len(order) for order in orders])
    return Listing(
        {"anchor": anchors, "row": rows, "node": binding.member_names[rows], "responsibility": alpha[rows, anchors]}
    )
