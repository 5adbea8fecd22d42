"""`SplitSets`: multisets whose members are of several kinds, which are embedded apart and stand side by side.

Set v has the parts S_1(v), …, S_k(v). Each is a sample of its own, so the parameters are a point of the product
manifold M × … × M with the anchor (θ_0, …, θ_0), whose Fisher matrix is block diagonal:

    φ_v = (φ(S_1(v)), …, φ(S_k(v)))

All parts share θ_0. The parts of a set are consecutive in memory. So the set of all members is the same arrays with
every k-th offset, φ of a row is k consecutive rows of φ of the parts, and neither is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._errors import InputError
from fishergraph._records import normalise, unchecked
from fishergraph._typing import Array, PlainSets
from fishergraph._validation import check_integer
from fishergraph.multiset.members import Multisets


@dataclass(frozen=True, repr=False)
class SplitSets(Multisets):
    """Multisets of members of several kinds.

    As `Multisets` they hold the members of all kinds together; walks and samples use them so.

    Parameters
    ----------
    indptr, indices, weights, n_points : arrays and int
        The members of all kinds; see `Multisets`.
    parts : Multisets
        The kinds apart, over the same entries: those of set v are the sets kinds · v … kinds · v + kinds − 1.
    kinds : int
        The number of kinds.

    See Also
    --------
    Neighbourhood : In- and out-neighbours with ``direction="both"``.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import Neighbourhood
    >>> Neighbourhood(direction="both")(np.array([[0, 1], [1, 2]]))
    SplitSets(3 sets over 3 points, 10 members)
    """

    parts: Multisets
    kinds: int

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds, parts = check_integer(self.kinds, "kinds", least=1), self.parts
        if not isinstance(parts, Multisets) or not np.array_equal(parts.indptr[::kinds], self.indptr):
            expected = f"be Multisets of the {kinds} kinds of each of the {self.n_sets} sets, over the same entries"
            raise InputError(parameter="parts", value=parts, expected=expected, advice="make them with side_by_side")
        normalise(self, indices=parts.indices, weights=parts.weights, kinds=kinds)

    def apart(self) -> Multisets:
        """Return the sets of every kind, those of a row one after the other."""
        return self.parts

    def block(self, rows: slice) -> SplitSets:
        """Return the sets of consecutive rows, without a copy."""
        start, stop, _ = rows.indices(self.n_sets)
        stop = max(start, stop)
        parts = self.parts.block(slice(self.kinds * start, self.kinds * stop))
        arrays = (self.indptr[start : stop + 1], self.indices, self.weights, self.n_points)
        return unchecked(SplitSets, *arrays, parts, self.kinds)

    def take(self, rows: np.ndarray) -> SplitSets:
        """Return the sets of the given rows, in that order (copied)."""
        return split_sets(self.parts.take(part_rows(rows, self.kinds)), self.kinds)

    def own_entries(self) -> SplitSets:
        """Return the sets over their own entries, one point each, counted from zero in their order."""
        return split_sets(self.parts.own_entries(), self.kinds)


def split_sets(parts: Multisets, kinds: int) -> Any:
    """The sets whose parts these are, one after the other; the parts themselves if there is one kind."""
    if kinds == 1:
        return parts
    indptr = np.ascontiguousarray(parts.indptr[::kinds])
    return unchecked(SplitSets, indptr, parts.indices, parts.weights, parts.n_points, parts, kinds)


def side_by_side(sides: Sequence[Multisets]) -> SplitSets:
    """The sets that have set v of each of these as their parts."""
    return split_sets(unchecked(Multisets, *interleaved(sides), sides[0].n_points), len(sides))


def interleaved(sides: Sequence[PlainSets]) -> tuple[Any, Any, Any]:
    """(indptr, indices, weights) of the sets taken in turn from several lists of as many; all have weights, or none."""
    indptr, order = turns([side.indptr for side in sides])
    xp = array_namespace(indptr)
    indices = xp.concat([side.indices for side in sides])[order]
    weights = [side.weights for side in sides if side.weights is not None]
    return indptr, indices, xp.concat(weights)[order] if weights else None


def turns(offsets: Sequence[Array]) -> tuple[Any, Any]:
    """(the offsets of sets taken in turn from several lists, the entry of the joined lists that each entry is).

    The offsets of every list begin at zero, and there are as many in each.
    """
    xp, device = array_namespace(offsets[0]), device_of(offsets[0])
    sizes = xp.reshape(xp.stack([indptr[1:] - indptr[:-1] for indptr in offsets], axis=1), (-1,))
    indptr = xp.cumulative_sum(sizes, include_initial=True)
    starts, before = [], 0
    for borders in offsets:
        starts.append(borders[:-1] + before)
        before += int(borders[-1])
    shift = xp.reshape(xp.stack(starts, axis=1), (-1,)) - indptr[:-1]
    return indptr, xp.repeat(shift, sizes) + xp.arange(before, device=device)


def part_rows(rows: Array, kinds: int) -> Any:
    """The sets of all kinds of some rows, one after the other."""
    xp = array_namespace(rows)
    return xp.reshape(kinds * rows[:, None] + xp.arange(kinds, device=device_of(rows)), (-1,))
