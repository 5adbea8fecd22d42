"""`SplitSets` on tensors: members of several kinds, which are embedded apart and stand side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fishergraph._parallel import cached_attribute
from fishergraph.multiset.split import interleaved, part_rows, turns
from fishergraph.ops.tensor_sets import TensorSets, outside_inference


@dataclass(frozen=True, eq=False, repr=False)
class SplitTensorSets(TensorSets):
    """`SplitSets` on tensors of one device. As `TensorSets` they hold the members of all kinds together.

    parts : the kinds apart, over the same entries: those of set v are kinds · v … kinds · v + kinds − 1.
    """

    parts: Any = None  # TensorSets
    kinds: int = 1

    def apart(self) -> TensorSets:
        """The sets of every kind, those of a row one after the other."""
        return self.parts

    @cached_attribute
    def sound(self) -> bool:
        """True, or an error: the parts are valid, and the offsets are some of theirs."""
        return self.parts.sound

    def block(self, rows: slice) -> SplitTensorSets:
        """The sets of consecutive rows, without a copy."""
        start, stop, _ = rows.indices(self.n_sets)
        return self._with(super().block(rows), self.parts.block(slice(self.kinds * start, self.kinds * stop)))

    def take(self, rows: Tensor) -> SplitTensorSets:
        """The sets of these rows, in that order (copied)."""
        return split_tensors(self.parts.take(part_rows(rows, self.kinds)), self.kinds)

    def own_entries(self) -> SplitTensorSets:
        """The sets over their own entries, one point each, counted from zero in their order."""
        return split_tensors(self.parts.own_entries(), self.kinds)

    def weighted(self, weights: Tensor | None) -> SplitTensorSets:
        """The same sets with other weights; the cached properties of their shape are kept."""
        return self._share(self._with(super().weighted(weights), self.parts.weighted(weights)), "_rows_of_sides")

    def to(self, device: Any) -> SplitTensorSets:
        """The sets on another device; these sets if they are on it."""
        parts = self.parts.to(device)
        return self if parts is self.parts else self._share(split_tensors(parts, self.kinds), "sound", "weighed")

    def cut(self, first: int, last: int) -> SplitTensorSets:
        """The sets first … last − 1, with entries that start at zero."""
        parts = self.parts.cut(self.kinds * first, self.kinds * last)
        return self if parts is self.parts else split_tensors(parts, self.kinds)

    def prepare(self) -> SplitTensorSets:
        """These sets, with all cached properties computed now, as `torch.compile` requires."""
        super().prepare()
        for sets in (self.parts, *self.sides):
            sets.prepare()
        return self

    @cached_attribute
    def sides(self) -> tuple[TensorSets, ...]:
        """The sets of each kind, one per row."""
        if self.weights is None:
            return tuple(sets for sets, _ in self._rows_of_sides)
        if torch.is_grad_enabled():
            for sets, _ in self._rows_of_sides:
                _ = sets.transpose  # found now, it is kept for other weights
        return tuple(sets.weighted(self.weights[entries]) for sets, entries in self._rows_of_sides)

    @cached_attribute
    @outside_inference
    def _rows_of_sides(self) -> tuple[tuple[TensorSets, Tensor], ...]:
        """The sets of each kind without weights, and the entries they are made of."""
        bare = self.parts.weighted(None)
        numbered = TensorSets(bare.indptr, torch.arange(len(bare.indices), device=self.device), None, len(bare.indices))
        sides = []
        for kind in range(self.kinds):
            rows = torch.arange(kind, bare.n_sets, self.kinds, device=self.device)
            entries = numbered.take(rows)
            side = TensorSets(entries.indptr, bare.indices[entries.indices], None, self.n_points)
            sides.append((side, entries.indices))
        return tuple(sides)

    def from_sides(self, values: Sequence[Tensor]) -> Tensor:
        """The values of all entries, from those of the entries of each side."""
        return torch.cat(list(values))[turns([sets.indptr for sets in self.sides])[1]]

    def _with(self, plain: TensorSets, parts: TensorSets) -> SplitTensorSets:
        """The sets with these parts, and with the cached properties of `plain`, which are all members together."""
        arrays = (plain.indptr, plain.indices, plain.weights, plain.n_points, plain._whole, plain._first)
        other = SplitTensorSets(*arrays, parts, self.kinds)
        return plain._share(other, "sound", "weighed", "transpose", "rows", "hubs", "n_entries")


def split_tensors(parts: TensorSets, kinds: int) -> Any:
    """The sets whose parts these are, one after the other; the parts themselves if there is one kind."""
    if kinds == 1:
        return parts
    indptr = parts.indptr[::kinds].contiguous()
    return SplitTensorSets(indptr, parts.indices, parts.weights, parts.n_points, parts=parts, kinds=kinds)


def tensors_side_by_side(sides: Sequence[TensorSets]) -> SplitTensorSets:
    """The sets that have set v of each of these as their parts."""
    return split_tensors(TensorSets(*interleaved(sides), sides[0].n_points), len(sides))
