"""`LayerView`: one layer of a fitted stack, asked about single rows.

    ⟨φ_v, φ_w⟩ = Σ_j Σ_{u ∈ S(v)} Σ_{u' ∈ S(w)} ⟨g_vuj, g_wu'j⟩

exactly, with the shares g of `members`: for the Gaussian mixture (1/p) c_vuj c_wu'j ⟨x_u − w_j, x_u' − w_j⟩.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._listing import strongest
from fishergraph._parallel import cached_attribute, map_blocks, row_blocks
from fishergraph.explain.members import Estimate, coordinate_anchors, coordinate_columns, estimate, splits_members
from fishergraph.explain.parts import Parts, split_kernel
from fishergraph.layer import Layer

# More members than this are not paired one by one: only those with the largest shares.
MOST_PAIRED = 64
_ROWS = 4096  # of points that are float64 at once
_ROUNDING = 1e-12  # of a sum, relative to the sizes of its terms


@dataclass(frozen=True, eq=False)
class RowEstimate:
    """The estimate of a row.

    members : rows of the members, (member,), or those in every slot, (member, slot), −1 for an empty slot.
    parts : the estimate of every kind of members, one after the other; the anchors of a kind follow those before.
    """

    members: np.ndarray
    parts: list[Estimate]

    @cached_attribute
    def phi(self) -> np.ndarray:
        """φ_v, (coordinate,)."""
        return np.concatenate([part.phi for part in self.parts])

    @property
    def weights(self) -> np.ndarray:
        """a_vu, (member,)."""
        return np.concatenate([part.moments.weights for part in self.parts])

    @property
    def mass(self) -> np.ndarray:
        """D_vj, (anchor,)."""
        return np.concatenate([part.moments.mass for part in self.parts])

    @property
    def responsibilities(self) -> np.ndarray:
        """α_uj, (member, anchor)."""
        return block_diagonal([part.responsibilities for part in self.parts])

    @property
    def attention(self) -> np.ndarray:
        """a_vu α_uj / D_vj, (member, anchor)."""
        return block_diagonal([part.moments.attention for part in self.parts])

    @property
    def standard_error(self) -> float:
        """That of φ_v."""
        return math.hypot(*(part.standard_error for part in self.parts))

    def shares(self, members: np.ndarray) -> np.ndarray:
        """g of some members, in their order, (member, coordinate)."""
        first, found = 0, []
        for part in self.parts:
            stop = first + len(part.moments.weights)
            found.append(part.shares(members[(members >= first) & (members < stop)] - first))
            first = stop
        return block_diagonal(found)

    def along(self, other: np.ndarray) -> np.ndarray:
        """⟨g_vuj, φ'_j⟩ of every member and anchor, (member, anchor)."""
        ends = np.cumsum([len(part.phi) for part in self.parts])[:-1]
        own = np.split(other, ends)
        return block_diagonal([part.along(piece) for part, piece in zip(self.parts, own, strict=True)])


class LayerView:
    """One layer, its points and its multisets.

    layer : the fitted layer, float64.
    points : (point, feature).
    column_names : of the points, if these are rows of X.
    """

    def __init__(self, name: str, layer: Layer, points: np.ndarray, sets: Any, column_names: np.ndarray | None):
        self.name, self.layer, self.points, self.sets = name, layer, points, sets
        self.column_names = column_names
        self.n_anchors = len(layer.family.mean_statistics(layer.theta)) * sets.kinds
        own = coordinate_anchors(layer)
        self.anchors = np.concatenate([own + kind * (own.max() + 1) for kind in range(sets.kinds)])

    @property
    def kernel_map(self) -> Any:
        """ψ of the layer."""
        return self.layer.kernel_map

    @property
    def point_wise(self) -> bool:
        """Whether responsibilities belong to the point, and not to the pair of a set and a point."""
        return self.layer.em.n_iter == 1 and self.layer.em.is_posterior

    def point_logs(self, n_jobs: int | None) -> np.ndarray:
        """log α of every point at θ_0, (point, anchor), float64."""
        family, theta = self.layer.family, self.layer.theta

        def logs(rows: slice) -> np.ndarray:
            return family.log_responsibilities(family.statistics(self.points[rows].astype(np.float64), theta), theta)

        blocks = row_blocks(len(self.points), _ROWS)
        return np.concatenate(map_blocks(logs, blocks, n_jobs=n_jobs))

    def row(self, v: int) -> RowEstimate:
        """The estimate of a row."""
        parts = self.sets.take(np.array([v])).apart()
        found = [self._part(parts.block(slice(kind, kind + 1))) for kind in range(self.sets.kinds)]
        return RowEstimate(np.concatenate([members for members, _ in found]), [part for _, part in found])

    def _part(self, one: Any) -> tuple[np.ndarray, Estimate]:
        """The members and the estimate of one multiset of one kind."""
        start, stop = int(one.indptr[0]), int(one.indptr[-1])
        points, _ = one.gather(self.points)
        weights = np.ones(stop - start) if one.weights is None else np.asarray(one.weights[start:stop], np.float64)
        members = one.subgraphs[one.indices[start:stop]] if one.lifted else one.indices[start:stop]
        return members, estimate(self.layer, np.asarray(points, np.float64), weights)

    def compare(self, v: int, w: int) -> Parts:
        """The parts of the similarity of two rows."""
        first = self.row(v)
        second = first if v == w else self.row(w)
        kernel, inner = split_kernel(first.phi, second.phi, self.kernel_map), float(first.phi @ second.phi)
        if not splits_members(self.layer.family):
            return Parts(kernel, inner, other=inner)
        along = first.along(second.phi), second.along(first.phi)
        members = _joined([self._members(first, along[0], 0), self._members(second, along[1], 1)])
        pairs = self._pairs(first, second, *map(_heaviest, along))
        other = inner - float(pairs["value"].sum())
        if abs(other) <= _ROUNDING * float(np.abs(pairs["value"]).sum()):
            other = 0.0
        return Parts(kernel, inner, members, pairs, self._columns(first.phi, second.phi), other=other)

    def _members(self, row: RowEstimate, along: np.ndarray, side: int) -> dict[str, np.ndarray]:
        """⟨g_vuj, φ_wj⟩ of every member of v and every anchor."""
        return {
            "side": np.full(along.size, side),
            "member": np.repeat(row.members, self.n_anchors, axis=0),
            "anchor": np.tile(np.arange(self.n_anchors), len(row.members)),
            "attention": row.attention.ravel(),
            "value": along.ravel(),
        }

    def _pairs(
        self, first: RowEstimate, second: RowEstimate, left: np.ndarray, right: np.ndarray
    ) -> dict[str, np.ndarray]:
        """⟨g_vuj, g_wu'j⟩ of pairs of these members and every anchor."""
        g, other = first.shares(left), second.shares(right)
        values = np.zeros((len(left), len(right), self.n_anchors))
        for anchor in range(self.n_anchors):
            own = self.anchors == anchor
            values[:, :, anchor] = g[:, own] @ other[:, own].T
        a, b, anchors = np.nonzero(values)
        rows = {"first": first.members[left[a]], "second": second.members[right[b]], "anchor": anchors}
        return {**rows, "value": values[a, b, anchors]}

    def _columns(self, phi: np.ndarray, other: np.ndarray) -> dict[str, np.ndarray]:
        """The products of the coordinates of φ by the column of X they belong to, −1 for those that belong to none."""
        if self.column_names is None:
            return {}
        columns = np.tile(coordinate_columns(self.layer), self.sets.kinds)
        values = np.bincount(columns + 1, weights=phi * other, minlength=len(self.column_names) + 1)
        return {"column": np.arange(-1, len(self.column_names)), "value": values}


def block_diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    """The matrix with these blocks along its diagonal, some of which may have no rows."""
    if len(blocks) == 1:
        return blocks[0]
    out, row, column = np.zeros(np.sum([block.shape for block in blocks], axis=0)), 0, 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


def _heaviest(along: np.ndarray) -> np.ndarray:
    """The members with the largest shares, at most `MOST_PAIRED`, in their order."""
    if len(along) <= MOST_PAIRED:
        return np.arange(len(along))
    return np.sort(strongest(along.sum(axis=1))[:MOST_PAIRED])


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
