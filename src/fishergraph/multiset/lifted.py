"""`LiftedSets`: multisets whose members are subgraphs, tuples of points that a lift h makes one point (Section 3.2).

    x_v = {h(s) : s ∈ S_G(v)},   s = (u_1, …, u_k)

"mean" is h(s) = (ψ(u_1) + … + ψ(u_k)) / k. "concatenation" is h(s) = (ψ(u_1), …, ψ(u_k)), k times as wide; a slot
that holds −1 is empty and gives zeros, so that members of several kinds can have slots of their own. "difference" is
h(v, u) = ψ(u) − ψ(v), of pairs.

The lifted points of all members never exist at once: `gather` makes those of a row block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import as_subgraphs, changed, normalise
from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rows
from fishergraph._validation import check_integer, look_up
from fishergraph.multiset.members import Multisets


@dataclass(frozen=True)
class LiftedSets:
    """Multisets of subgraphs, NumPy arrays or tensors.

    The arrays are validated once, when the record is made.

    Parameters
    ----------
    sets : Multisets or TensorSets
        The multisets over the subgraphs.
    subgraphs : int32 or int64 array of shape (n_subgraphs, n_slots)
        The points of every subgraph; −1 is an empty slot.
    n_points : int
        The number of points that subgraphs are made of.
    lift : {"concatenation", "mean", "difference"}, default="concatenation"
        How the points of a subgraph become one. "difference" takes pairs: the second point less the first.
    totals : array of shape (n_sets,), optional
        How many subgraphs a set represents: more than its members if these are a sample.
    pool : Multisets, optional
        The sets of consecutive rows whose mean is one row of the result; None keeps every row.

    See Also
    --------
    Multisets : Multisets of points.
    Paths : Multisets of paths.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import LiftedSets, Multisets
    >>> pairs = Multisets(np.array([0, 1, 2]), np.array([0, 1]), None, n_points=2)
    >>> LiftedSets(pairs, np.array([[0, 1], [1, 0]]), n_points=2, lift="mean").slots
    1
    """

    sets: Any
    subgraphs: Any
    n_points: int
    lift: str = "concatenation"
    totals: np.ndarray | None = None
    pool: Multisets | None = None

    def __post_init__(self) -> None:
        look_up(LIFTS, self.lift, "lift")
        n_points = check_integer(self.n_points, "n_points", least=0)
        if not hasattr(self.sets, "own_entries"):
            got = type(self.sets).__name__
            raise InputTypeError(parameter="sets", expected="be Multisets over the subgraphs", got=got)
        subgraphs = as_subgraphs(self.subgraphs, n_points, lift=self.lift)
        n, n_sets = subgraphs.shape[0], self.sets.n_sets
        if self.sets.n_points != n:
            raise InputError(parameter="the sets", expected=f"be over the {n} subgraphs", got=f"{self.sets.n_points}")
        if self.totals is not None and np.shape(self.totals) != (n_sets,):
            expected, got = f"be one per set, {n_sets}", f"shape {np.shape(self.totals)}"
            raise InputError(parameter="totals", expected=expected, got=got)
        if self.pool is not None:
            _check_pool(self.pool, n_sets)
        normalise(self, subgraphs=subgraphs, n_points=n_points)

    __repr__ = short_repr

    @property
    def lifted(self) -> bool:
        """True: the points of members exist only once they are gathered."""
        return True

    @property
    def slots(self) -> int:
        """How many points are side by side in a lifted point: its width is so many times theirs."""
        return self.subgraphs.shape[1] if self.lift == "concatenation" else 1

    @property
    def kinds(self) -> int:
        """How many kinds of members are embedded apart."""
        return self.sets.kinds

    @property
    def n_sets(self) -> int:
        """The number of multisets."""
        return self.sets.n_sets

    @property
    def n_entries(self) -> int:
        """The number of members of all sets."""
        return self.sets.n_entries

    @property
    def largest(self) -> int:
        """The most members of a set: all of them are lifted at once, whatever the row block."""
        return self.sets.largest

    @property
    def indptr(self) -> Any:
        """The offsets of the sets."""
        return self.sets.indptr

    @property
    def indices(self) -> Any:
        """The subgraphs of the sets."""
        return self.sets.indices

    @property
    def weights(self) -> Any:
        """The weights of the subgraphs, or None."""
        return self.sets.weights

    def block(self, rows: slice) -> LiftedSets:
        """Return the sets of consecutive rows, without a copy."""
        return changed(self, sets=self.sets.block(rows), totals=None)

    def take(self, rows: Array) -> LiftedSets:
        """Return the sets of the given rows, in that order; the subgraphs are not copied."""
        return changed(self, sets=self.sets.take(rows), totals=None)

    def apart(self) -> LiftedSets:
        """Return the sets of every kind, those of a row one after the other."""
        return self if self.kinds == 1 else changed(self, sets=self.sets.apart(), totals=None)

    def to(self, device: object) -> LiftedSets:
        """Return the sets on another device, if they are tensors."""
        return changed(self, sets=self.sets.to(device), subgraphs=self.subgraphs.to(device))

    def members(self, points: Rows, chosen: Array) -> Any:
        """Return h of the chosen subgraphs, (chosen, feature · slots)."""
        return LIFTS[self.lift](points, self.subgraphs[chosen])

    def alone(self, points: Rows) -> Any:
        """Return h(u, …, u) of every point: what a member could be if there is none."""
        xp = array_namespace(points)
        alone = xp.arange(points.shape[0], device=device_of(points))[:, None]
        return LIFTS[self.lift](points, xp.tile(alone, (1, self.subgraphs.shape[1])))

    def gather(self, points: Array) -> tuple[Any, Any]:
        """Return the lifted members of these sets, one by one in their order, and plain multisets over them."""
        start, stop = int(self.sets.indptr[0]), int(self.sets.indptr[-1])
        return self.members(points, self.sets.indices[start:stop]), self.sets.own_entries()

    def pooled(self, rows: Any) -> Any:
        """Return the rows of all sets, or the means of those that belong together."""
        if self.pool is None:
            return rows
        sizes = np.diff(self.pool.indptr)[:, None]
        return np.add.reduceat(rows, self.pool.indptr[:-1], axis=0) / sizes.astype(rows.dtype)


def _check_pool(pool: Multisets, n_sets: int) -> None:
    """Raise unless every row belongs to one group of consecutive rows, and no group is empty."""
    valid = isinstance(pool, Multisets) and pool.indptr[0] == 0 and pool.indptr[-1] == n_sets
    if not valid or (np.diff(pool.indptr) == 0).any():
        expected = f"be Multisets of consecutive rows that hold each of the {n_sets} sets once"
        raise InputError(parameter="pool", expected=expected, got="others", advice="make it with node_sets")


def _mean(points: Rows, subgraphs: Array) -> Any:
    """h(s) = (ψ(u_1) + … + ψ(u_k)) / k; the mean of the slots that are not empty."""
    xp = array_namespace(points)
    filled = xp.sum(xp.astype(subgraphs >= 0, points.dtype), axis=1)
    return xp.sum(_slots(points, subgraphs), axis=1) / filled[:, None]


def _concatenation(points: Rows, subgraphs: Array) -> Any:
    """h(s) = (ψ(u_1), …, ψ(u_k)); zeros in an empty slot."""
    n, slots = subgraphs.shape
    return array_namespace(points).reshape(_slots(points, subgraphs), (n, slots * points.shape[1]))


def _difference(points: Rows, subgraphs: Array) -> Any:
    """h(v, u) = ψ(u) − ψ(v)."""
    xp = array_namespace(points)
    return xp.take(points, subgraphs[:, 1], axis=0) - xp.take(points, subgraphs[:, 0], axis=0)


def _slots(points: Rows, subgraphs: Array) -> Any:
    """The points of every slot, (subgraph, slot, feature); zeros in an empty one."""
    xp = array_namespace(points)
    flat = xp.reshape(subgraphs, (-1,))
    empty = flat < 0
    if bool(xp.any(empty)):
        rows = xp.take(points, xp.where(empty, xp.zeros_like(flat), flat), axis=0)
        rows[empty] = 0
    else:
        rows = xp.take(points, flat, axis=0)
    return xp.reshape(rows, (*subgraphs.shape, points.shape[1]))


LIFTS: dict[str, Callable[[Rows, Array], Any]] = {
    "mean": _mean,
    "concatenation": _concatenation,
    "difference": _difference,
}
