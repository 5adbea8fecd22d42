"""What an explanation consists of: `Similarity` and `Attention`.

Both are listings of plain arrays, so that a plot, a page or a notebook takes them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import Any

import numpy as np

from fishergraph._listing import Listing, cell, html, lines, plain
from fishergraph._validation import look_up

_TOP = 5  # rows of a part in a text


@dataclass(frozen=True, eq=False, repr=False)
class Similarity:
    """Why two nodes are alike: their similarity as sums.

    The value is the sum of `blocks["value"]`. Within a block, value = lengths + product + remainder: what the lengths
    of φ give, what their product gives, and the error of the landmarks. The products are sums again, exactly: of the
    rows of `pairs` and the block's `unlisted`, or of `columns`, or of `nodes`, whichever the block has. All numbers
    include the weights of the blocks, and are divided by the lengths of the two vectors if `is_cosine`.

    Parameters
    ----------
    first, second : object
        The ids of the nodes.
    rows : tuple of int
        Their rows.
    value : float
        The inner product of their embeddings, or its cosine.
    is_cosine : bool
        Which of the two.
    blocks : Listing
        ``block, weight, value, lengths, product, remainder, unlisted``.
    pairs : Listing
        Pairs of members of the two multisets: ``block, anchor, first_row, first, second_row, second, value``.
    members : Listing
        Every member on its own: ``block, of, row, member, anchor, attention, value``. The members of one node sum to
        the product of the block, and so do those of the other: ``of`` is 1 or 2.
    columns : Listing
        Columns of X, or of the structure: ``block, column, name, value``.
    nodes : Listing
        Nodes whose features are averaged: ``block, row, node, value``.

    See Also
    --------
    Explainer.explain : Makes it.
    Attention : Whom one node attends to.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Explainer, FisherEmbedding
    >>> X, ring = np.eye(4), np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=ring)
    >>> why = Explainer(model, X, graph=ring).explain(0, 1)
    >>> bool(np.isclose(why.blocks["value"].sum(), why.value))
    True
    >>> why.pairs["first"].max()  # members of node 0 are itself and node 3
    np.int32(3)
    """

    first: Any
    second: Any
    rows: tuple[int, int]
    value: float
    is_cosine: bool
    blocks: Listing
    pairs: Listing
    members: Listing
    columns: Listing
    nodes: Listing

    def __repr__(self) -> str:
        return f"Similarity({self.first!r}, {self.second!r}: {self.value:.4g}, {len(self.blocks)} blocks)"

    def __str__(self) -> str:
        return "\n\n".join([self._title(), lines(self.blocks), *(f"{t}\n{lines(part)}" for t, part in self._parts())])

    def _repr_html_(self) -> str:
        parts = "".join(f"<h4>{escape(title)}</h4>{html(part)}" for title, part in self._parts())
        return f"<p>{escape(self._title())}</p>{html(self.blocks)}{parts}"

    def to_pandas(self, part: str = "blocks") -> Any:
        """Return a part as a pandas DataFrame.

        Parameters
        ----------
        part : {"blocks", "pairs", "members", "columns", "nodes"}, default="blocks"
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

    def _title(self) -> str:
        kind = "Cosine similarity" if self.is_cosine else "Similarity"
        return f"{kind} of {self.first} and {self.second}: {cell(float(self.value))}"

    def _parts(self) -> list[tuple[str, Listing]]:
        """The largest parts of every block, with their titles."""
        titles = {"pairs": "pairs of members", "columns": "columns", "nodes": "nodes"}
        parts = []
        for name, title in titles.items():
            listing = getattr(self, name)
            for block in dict.fromkeys(listing["block"].tolist()):
                own = listing.take(np.flatnonzero(listing["block"] == block)[:_TOP])
                shown = {key: own[key] for key in own if key not in ("block", "column") and not key.endswith("row")}
                parts.append((f"{block}: {title}, the largest", Listing(shown)))
        return parts


@dataclass(frozen=True, eq=False, repr=False)
class Attention:
    """Whom a node attends to in one layer, anchor by anchor.

    The attention of anchor j to member u is a_vu α_uj / D_vj: its column sums to one over the members.

    Parameters
    ----------
    node : object
        The id of the node.
    row : int
        Its row.
    block : str
        The layer: "psi1", "psi2", ….
    members : array of shape (n_members,)
        The ids of the members; of lifted ones a text of the ids of their nodes.
    rows : array of shape (n_members,) or (n_members, n_slots)
        Their rows.
    weights : array of shape (n_members,)
        Their weights a_vu.
    responsibilities : array of shape (n_members, n_anchors)
        The chances α_uj that an anchor stands for a member; rows sum to one.
    attention : array of shape (n_members, n_anchors)
        The quotients a_vu α_uj / D_vj; columns sum to one.
    mass : array of shape (n_anchors,)
        The sums D_vj = Σ_u a_vu α_uj: how much of the multiset an anchor stands for.
    anchors : array of shape (n_anchors,)
        The anchors, the heaviest first. With ``direction="both"`` those of the second direction follow the first.
    effective_size : float
        (Σ_u a_vu)² / Σ_u a_vu²: how many members of one weight say as much.
    standard_error : float
        The standard error of φ_v, from the spread of the members; NaN for less than two of them.

    See Also
    --------
    Explainer.explain : Makes it.
    Explainer.attention_all : The attention of all nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Explainer, FisherEmbedding
    >>> X, ring = np.eye(4), np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> model = FisherEmbedding(1, 2, 4, random_state=0).fit(X, graph=ring)
    >>> Explainer(model, X, graph=ring).explain(1).attention.sum(axis=0)
    array([1., 1.])
    """

    node: Any
    row: int
    block: str
    members: np.ndarray
    rows: np.ndarray
    weights: np.ndarray
    responsibilities: np.ndarray
    attention: np.ndarray
    mass: np.ndarray
    anchors: np.ndarray
    effective_size: float
    standard_error: float

    def __repr__(self) -> str:
        n_members, n_anchors = self.attention.shape
        return f"Attention({self.node!r}, {self.block}: {n_members:,} members, {n_anchors} anchors)"

    def __str__(self) -> str:
        return f"{self._title()}\n{lines(self.listing())}\n{self._masses()}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._title())}</p>{html(self.listing())}<p>{escape(self._masses())}</p>"

    def listing(self) -> Listing:
        """Return a row per member, the most attended first.

        Returns
        -------
        Listing
            ``member, weight, anchor 0, anchor 1, …``: its weight, and the attention of every anchor, the heaviest
            anchor first.
        """
        share = self.mass / self.mass.sum() if self.mass.any() else self.mass
        order = np.argsort(-(self.attention @ share), kind="stable")
        columns = {f"anchor {j}": self.attention[order, j] for j in self.anchors.tolist()}
        return Listing({"member": self.members[order], "weight": self.weights[order], **columns})

    def long_listing(self) -> Listing:
        """Return a row per member and anchor.

        Returns
        -------
        Listing
            ``member, row, weight, anchor, responsibility, attention, mass``.
        """
        n_members, n_anchors = self.attention.shape
        repeated = {"member": self.members, "row": self.rows, "weight": self.weights}
        columns = {name: np.repeat(values, n_anchors, axis=0) for name, values in repeated.items()}
        columns["anchor"] = np.tile(np.arange(n_anchors), n_members)
        columns |= {"responsibility": self.responsibilities.ravel(), "attention": self.attention.ravel()}
        return Listing({**columns, "mass": np.tile(self.mass, n_members)})

    def to_pandas(self) -> Any:
        """Return a row per member and anchor as a pandas DataFrame.

        Returns
        -------
        DataFrame
            The columns of `long_listing`, with their types.
        """
        return self.long_listing().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON.

        Returns
        -------
        dict
            The attributes by name; arrays are lists, and None stands for NaN.
        """
        return plain_fields(self)

    def _title(self) -> str:
        error = "" if np.isnan(self.standard_error) else f", standard error {self.standard_error:.3g}"
        return f"{self.node} attends to, in {self.block} (effective size {self.effective_size:.3g}{error}):"

    def _masses(self) -> str:
        return "mass: " + ", ".join(f"anchor {j} {self.mass[j]:.3g}" for j in self.anchors.tolist())


def plain_fields(record: Any) -> dict[str, Any]:
    """The fields of a record as plain values."""
    out = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, Listing):
            out[field.name] = value.to_dict()
        else:
            out[field.name] = plain(np.asarray(value, object if isinstance(value, str) else None))
    return out


def listing_of(record: Any, part: str) -> Listing:
    """The listing of that name."""
    parts = {field.name: None for field in fields(record) if isinstance(getattr(record, field.name), Listing)}
    look_up(parts, part, "part")
    return getattr(record, part)
