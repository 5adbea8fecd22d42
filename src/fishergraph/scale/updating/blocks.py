"""Which rows of a stage are computed again, and at which places of blocks: so that they get the bits of a full run.

A product of matrices may give a row other bits at another place of its block, or in a block of another height: the
library computes a few rows together, and not every one of them in the same order. So it is tried out. A row is repeated
over whole blocks of all heights that occur; places where it has the same bits are of one class. Rows that changed are
then gathered into blocks, each at a place of the class it has in a full run. At last rows of the run before are
computed at other places of their class, and compared with what the run wrote. If they differ, all row blocks that hold
a row that changed are computed as they are in a full run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph.kernel_map import NystromMap, row_norms
from fishergraph.scale.stage_rows import LayerRows, StageRows, different_rows

_TRIED = 2  # rows that are repeated over blocks
_EDGES = 4  # one in so many rows that are compared is at the edge of a block

Classes = Mapping[int, np.ndarray]  # height of a block → the class of every place


@dataclass(frozen=True)
class Groups:
    """Rows to compute, in blocks.

    blocks : the rows of every block; at places that are not needed some row is repeated.
    places : the places of every block that are needed; None if all are.
    how : "rows" or "blocks".
    """

    blocks: list[np.ndarray]
    places: list[np.ndarray | None]
    how: str

    def rows(self, k: int) -> np.ndarray:
        """The rows of a block that are needed, which rise."""
        places = self.places[k]
        return self.blocks[k] if places is None else self.blocks[k][places]

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return len(self.blocks)


@dataclass
class Misfit:
    """How much of the rows their landmarks do not express: the mean of 1 − ‖ψ‖²/‖φ‖²."""

    total: float = 0.0
    count: int = 0

    def add(self, phi: Any, psi: np.ndarray) -> None:
        """Add rows; those of length zero are left out."""
        squares = np.square(np.asarray(row_norms(phi), dtype=np.float64)).ravel()
        kept = squares > 0
        found = np.einsum("ij,ij->i", psi, psi, dtype=np.float64)[kept] / squares[kept]
        self.total += float(np.maximum(1 - found, 0).sum())
        self.count += int(kept.sum())

    @property
    def mean(self) -> float | None:
        """The mean; None if there are no rows."""
        return self.total / self.count if self.count else None


def has_landmarks(stage: StageRows) -> bool:
    """Whether the map of a stage has landmarks that rows can be far from."""
    kernel_map: Any = stage.layer.kernel_map if isinstance(stage, LayerRows) else stage.stack.input_map
    return isinstance(kernel_map, NystromMap)


def heights(blocks: list[slice]) -> list[int]:
    """The numbers of rows that blocks have."""
    return sorted({block.stop - block.start for block in blocks})


def place_classes(stage: StageRows, sizes: list[int], seed: int = 0) -> Classes:
    """The classes of the places of blocks of some heights: a row has the same bits at all places of a class."""
    n_rows = stage.blocks()[-1].stop
    tried = np.random.default_rng(seed).permutation(n_rows)[:_TRIED].tolist()
    groups = [np.full(size, row) for row in tried for size in sizes]
    codes: list[Any] = [None] * len(groups)

    def take(k: int, phi: Any, psi: np.ndarray) -> None:
        codes[k] = [values.tobytes() for values in np.ascontiguousarray(psi)]

    stage.compute(groups, take)
    names: dict[Any, int] = {}
    classes = {}
    for k, size in enumerate(sizes):
        bits = zip(*codes[k :: len(sizes)], strict=True)
        classes[size] = np.array([names.setdefault(one, len(names)) for one in bits])
    return classes


def row_classes(blocks: list[slice], classes: Classes, rows: np.ndarray) -> np.ndarray:
    """The class of the place that rows have in a full run."""
    starts = np.array([block.start for block in blocks])
    sizes = np.array([block.stop - block.start for block in blocks])
    number = np.searchsorted(starts, rows, side="right") - 1
    found = np.empty(len(rows), np.int64)
    for size in heights(blocks):
        here = sizes[number] == size
        found[here] = classes[size][rows[here] - starts[number[here]]]
    return found


def gathered(rows: np.ndarray, kinds: np.ndarray, classes: Classes) -> Groups:
    """Rows in blocks of their own, each at a place of its class."""
    waiting = {kind: rows[kinds == kind] for kind in np.unique(kinds).tolist()}
    slots = {size: {kind: np.flatnonzero(places == kind) for kind in waiting} for size, places in classes.items()}
    blocks, needed = [], []
    while any(len(left) for left in waiting.values()):
        room = {size: sum(min(len(slots[size][kind]), len(waiting[kind])) for kind in waiting) for size in slots}
        size = max(room, key=lambda size: room[size])
        block, places = np.full(size, next(left[0] for left in waiting.values() if len(left))), []
        for kind in waiting:
            own = slots[size][kind][: len(waiting[kind])]
            block[own], waiting[kind] = waiting[kind][: len(own)], waiting[kind][len(own) :]
            places.append(own)
        used = np.concatenate(places)
        blocks.append(block)
        needed.append(used[np.argsort(block[used], kind="stable")])
    return Groups(blocks, needed, "rows")


def whole_blocks(before: StageRows, after: StageRows, affected: np.ndarray) -> Groups:
    """The row blocks of a full run that hold an affected row, or have other borders than before."""
    kept = set() if _reads_otherwise(before, after) else {(block.start, block.stop) for block in before.blocks()}
    chosen = []
    for block in after.blocks():
        first, last = np.searchsorted(affected, [block.start, block.stop]).tolist()
        if last > first or (block.start, block.stop) not in kept:
            chosen.append(np.arange(block.start, block.stop))
    return Groups(chosen, [None] * len(chosen), "blocks")


class Tried:
    """What was tried out for a stage: the classes of places, and the misfit of rows of the fit.

    Parameters
    ----------
    kept : dict
        What an earlier update found, as JSON; what is tried out now is added.
    """

    def __init__(self, kept: dict[str, Any]):
        self.kept = kept

    def classes(self, stage: StageRows, sizes: list[int], stored: Any) -> Classes | None:
        """The classes of places of blocks of these heights; None if rows cannot be gathered."""
        names = list(map(str, sizes))
        if self.kept.get("heights") != names:
            misfit = Misfit()
            classes = place_classes(stage, sizes)
            is_exact = _is_exact(stage, classes, stored, misfit)
            self.kept.setdefault("misfit", misfit.mean)
            places = [classes[size].tolist() for size in sizes] if is_exact else None
            self.kept.update(heights=names, places=places)
        places = self.kept["places"]
        return None if places is None else {size: np.array(one) for size, one in zip(sizes, places, strict=True)}


def plan_groups(before: StageRows, after: StageRows, affected: np.ndarray, stored: Any, tried: Tried) -> Groups:
    """The blocks in which the affected rows are computed."""
    old, new = before.blocks(), after.blocks()
    if before.is_cut or after.is_cut or _reads_otherwise(before, after):
        return whole_blocks(before, after, affected)
    classes = tried.classes(before, sorted({*heights(old), *heights(new)}), stored)
    if classes is None:
        return whole_blocks(before, after, affected)
    if new[-1].stop != old[-1].stop:  # the borders of the blocks have moved
        rows = np.arange(old[-1].stop)
        moved = row_classes(old, classes, rows) != row_classes(new, classes, rows)
        affected = np.union1d(affected, np.flatnonzero(moved))
    return gathered(affected, row_classes(new, classes, affected), classes)


def _reads_otherwise(before: StageRows, after: StageRows) -> bool:
    """Whether the responsibilities of points that did not change may have other bits in the full run."""
    if not isinstance(before, LayerRows) or not isinstance(after, LayerRows):
        return False
    if before.gathers != after.gathers:
        return True
    return after.all_points and before.sets.n_points != after.sets.n_points


def _is_exact(stage: StageRows, classes: Classes, stored: Any, misfit: Misfit, seed: int = 1) -> bool:
    """Whether rows have the bits of the run before if they are gathered into other blocks."""
    blocks, rng = stage.blocks(), np.random.default_rng(seed)
    n_rows, most = blocks[-1].stop, max(classes)
    edges = np.array([[block.start, block.stop - 1] for block in blocks]).ravel()
    chosen = np.unique(np.append(rng.permutation(edges)[: most // _EDGES], rng.permutation(n_rows)[:most]))
    chosen = rng.permutation(chosen)
    groups = gathered(chosen, row_classes(blocks, classes, chosen), classes)
    same = [False] * groups.n_blocks

    def take(k: int, phi: Any, psi: np.ndarray) -> None:
        places, rows = groups.places[k], groups.rows(k)
        same[k] = len(different_rows(rows, psi[places], stored[rows])) == 0
        if k == 0 and has_landmarks(stage):
            misfit.add(phi, psi)

    stage.compute(groups.blocks, take)
    return all(same)
