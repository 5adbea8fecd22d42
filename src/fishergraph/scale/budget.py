"""What a run over a store holds in memory, and how it is made to fit: counted before it begins.

Everything but these arrays is read and written by row blocks:

- the points of a layer, all columns or a tile of them, and their responsibilities;
- three tiles of columns that are averaged over the graph;
- samples that maps and anchors are learned from;
- numbers of nodes and a few columns, while structural columns are computed (`structure_size`);
- the multisets, if there is room for them.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fishergraph._errors import NotEnoughMemory
from fishergraph._parallel import BLOCK_ROWS, n_threads
from fishergraph.axes import EXTRA_AXES
from fishergraph.em.kmeans import CHUNKS
from fishergraph.em.learn import sample_size
from fishergraph.layer import PERMUTED
from fishergraph.scale.memory import memory_text, taken_bytes
from fishergraph.scale.structure_size import StructureRoom, StructureSize
from fishergraph.scale.tiles import COLUMN_ROWS, SCORED_ROWS
from fishergraph.stack import Stack
from fishergraph.walk import TILE

# What the process has after its imports, at least, and what it takes beside the arrays that are counted here: compiled
# code, buffers of parts, and memory that was freed but not returned.
LIBRARIES, BUFFERS = 250 * 2**20, 120 * 2**20
BASE = LIBRARIES + BUFFERS
LEAST_TILE = 4  # columns
LEAST_GROUP = 2**12  # rows whose means are computed together
# About the seconds of reading a byte of a tile, and of gathering a member from it: their proportion is what matters.
_READ, _GATHER = 0.4e-9, 10e-9
# Arrays of one number for each node that averaging holds: weights, masses, and their iterates.
_WALK_NUMBERS = 12
# Copies of a sample: of φ, and of X while its axes are learned, partly in float64.
_SAMPLE_COPIES, _AXES_COPIES = 2, 6
_MEMBER_BYTES = 48  # of a member of a set while the sets of a sample are taken
_BLOCK_COPIES = 4  # of φ of a row block, for each thread


@dataclass(frozen=True)
class Budget:
    """How the arrays of a run are held.

    base : bytes of libraries and buffers.
    available : bytes for arrays.
    tiles : layer t → the columns of a tile of its points; None if whole rows are held.
    group_rows : layer t → rows whose means are computed together, if there are tiles.
    walk_tile : columns that are averaged at once.
    sets_bytes : bytes of the multisets.
    sets_in_memory : whether the multisets are held.
    held : stage → bytes of the arrays it holds, the multisets included.
    structure : how structural columns are held, if they are computed.
    n_workers : processes that share the work; each has its own memory.
    """

    base: int
    available: int
    tiles: Mapping[int, int | None]
    group_rows: Mapping[int, int]
    walk_tile: int
    sets_bytes: int
    sets_in_memory: bool
    held: Mapping[str, int]
    structure: StructureRoom | None = None
    n_workers: int = 1

    @property
    def resident(self) -> int:
        """The most memory that a process has."""
        return self.base + max(self.held.values())

    def averaged_tile(self, width: int) -> int:
        """The columns, of so many, that are averaged at once: every worker gets some."""
        share = -(-width // self.n_workers)
        return min(self.walk_tile, max(-(-share // 16) * 16, LEAST_TILE), width)


def return_memory() -> None:
    """Give memory that was freed back to the system, where the C library keeps it for later arrays."""
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@cache
def _c_library() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def plan_budget(
    stack: Stack,
    X: Any,
    sets: Any,
    memory: int,
    *,
    structure: StructureSize | None = None,
    base: int | None = None,
    n_jobs: int | None = None,
    n_workers: int = 1,
) -> Budget:
    """Return how a run fits into so much memory.

    Parameters
    ----------
    stack : Stack
        The settings.
    X : Rows or Shape
        The features, or what is known of them: shape, dtype and number of entries.
    sets : Sets or SetsSize
        The multisets, or their sizes.
    memory : int
        Bytes the process may have.
    structure : StructureSize, optional
        The structural columns, if they are computed.
    base : int, optional
        Bytes that libraries and buffers take; by default what the process has now and 60 MiB, at least 370 MiB.
    n_jobs : int, optional
        Threads; None uses every core.
    n_workers : int, default=1
        Processes that share the work, each with so much memory.

    Returns
    -------
    Budget
        The plan.
    """
    if base is None:
        return_memory()
        base = taken_bytes(BASE, BUFFERS // 2)
    threads = n_threads(n_jobs)
    needs = _Needs(stack, X, sets)
    base += threads * needs.block_bytes
    without = needs.smallest()
    smallest = without if structure is None else max(without, structure.smallest(threads))
    if memory < base + smallest:
        settings: dict[str, Any] = {"memory": memory_text(base + smallest)}
        purpose = f"the embedding of {sets.n_sets:,} nodes"
        if without < smallest:
            settings["structure"] = None
            purpose += f" (without structural columns {memory_text(base + without)})"
        raise NotEnoughMemory(purpose=purpose, needed=base + smallest, available=memory, settings=settings)
    available = memory - base
    tiles, group_rows = {}, {}
    for t in range(1, stack.n_layers + 1):
        tiles[t], group = needs.layer_plan(t, available)
        group_rows[t] = min(group, max(-(-needs.n // (2 * n_workers)), LEAST_GROUP)) if n_workers > 1 else group
    walk_tile = needs.walk_plan(available)
    held = needs.stages(tiles, group_rows, walk_tile)
    in_memory = max(held.values()) + needs.sets_bytes <= available
    if in_memory:
        held = {name: n_bytes + needs.sets_bytes for name, n_bytes in held.items()}
    room = None if structure is None else structure.room(base, available, threads)
    if room is not None:
        held = {"structure": room.n_bytes, **held}
    return Budget(base, available, tiles, group_rows, walk_tile, needs.sets_bytes, in_memory, held, room, n_workers)


class _Needs:
    """The bytes of the arrays of a run."""

    def __init__(self, stack: Stack, X: Any, sets: Any):
        self.stack, self.n, self.size = stack, sets.n_sets, max(X.dtype.itemsize, 4)
        self.widths = stack.asked_widths(X.shape[1], sets)
        self.n_features, self.n_entries = X.shape[1], int(sets.n_entries)
        stored = getattr(getattr(X, "rows", X), "nnz", None)  # of a sparse matrix, with the numbers of its columns
        self.row_numbers = X.shape[1] if stored is None else 2 * -(-int(stored) // max(self.n, 1))
        self.points = [X.shape[1] if stack.reads_counts else self.widths[0], *self.widths[1:]]
        index = 4 if sets.n_points < 2**31 else 8
        weights = getattr(sets, "weights", None)
        member = index + (0 if weights is None else weights.dtype.itemsize)
        offsets = self.n if sets.kinds == 1 else (1 + sets.kinds) * self.n
        self.sets_bytes = 8 * (offsets + 1) + member * self.n_entries
        self.members = self.n_entries // max(self.n, 1) + 1  # of a set, on average

    @property
    def block_bytes(self) -> int:
        """Of the row block of a thread."""
        phis = [self.phi(t) for t in range(1, self.stack.n_layers + 1)]
        return _BLOCK_COPIES * BLOCK_ROWS * max([*phis, *self.widths]) * self.size

    def phi(self, t: int) -> int:
        """The columns of φ of a layer."""
        layer = self.stack.layer_at(t)
        return layer.phi_width(layer.n_anchors, self.points[t - 1])

    def learning(self, width: int, columns: int, copies: int = _SAMPLE_COPIES) -> int:
        """Of learning a map of so many columns from a sample whose rows take so many numbers."""
        layer = self.stack.layer
        rows = sample_size(layer.dim, layer.em.max_samples, self.n)
        drawn = 8 * self.n if self.n <= PERMUTED else 16 * rows
        sample = rows * (copies * width + layer.dim) * self.size
        centres = CHUNKS * layer.dim * columns * self.size
        return max(drawn, rows * self.members * _MEMBER_BYTES, sample + centres)

    def input_bytes(self) -> int:
        """Of learning the input map."""
        return self.learning(self.row_numbers, self.n_features)

    def layer_bytes(self, t: int, tile: int | None, group_rows: int) -> int:
        """Of a layer with tiles of so many columns."""
        layer, width, phi = self.stack.layer_at(t), self.points[t - 1], self.phi(t)
        held = 2 * self.n * layer.n_anchors * self.size  # responsibilities, and their logs
        learning = self.learning(phi, phi)
        if tile is None:
            return held + learning + self.n * width * self.size
        scored = min(self.n, SCORED_ROWS) * (width + tile)  # rows of all tiles
        rows = sample_size(layer.dim, layer.em.max_samples, self.n)
        learning = max(learning + min(group_rows, rows) * phi * self.size, scored * self.size)
        last = 0 if tile == 0 else width % tile  # the columns of the last tile are copied
        return held + self.n * (tile + last) * self.size + max(group_rows * phi * self.size, learning)

    def layer_plan(self, t: int, available: int) -> tuple[int | None, int]:
        """The tile and the group of a layer: whole rows if they fit, else few and wide passes over the tiles."""
        width = self.points[t - 1]
        if self.layer_bytes(t, None, 0) <= available:
            return None, 0
        least, row = min(LEAST_GROUP, self.n), self.phi(t) * self.size
        found = (LEAST_TILE, least)
        lowest = math.inf
        for tile in sorted({_even(tile, width) for tile in (LEAST_TILE, 8, *range(16, width + 16, 16))}):
            if self.layer_bytes(t, tile, least) > available:
                break
            group = (available - self.layer_bytes(t, tile, 0)) // row
            while group > least and self.layer_bytes(t, tile, group) > available:  # a sample of rows takes a group too
                group -= min(group - least, -(-(self.layer_bytes(t, tile, group) - available) // row))
            group = min(max(group, least), self.n)
            read = -(-self.n // group) * self.n * width * self.size
            cost = _READ * read + _GATHER * -(-width // tile) * self.n_entries
            if cost < lowest:
                lowest, found = cost, (tile, int(group))
        return found

    def walk_bytes(self, tile: int) -> int:
        """Of averaging so many columns at once, or learning their axes and maps."""
        stack, width = self.stack, max((width for _, width in self.stack.structure), default=0)
        if stack.walk is None:
            return self.learning(width, width)
        axes = stack.walk.axes(self.n_features) if stack.averages_features else 0
        wide = 4 * (axes + EXTRA_AXES) * self.n_features * self.size if axes else 0
        learning = self.learning(self.row_numbers + 3 * axes if axes else width, max(axes, width), _AXES_COPIES)
        read = min(self.n, COLUMN_ROWS) * 2 * width * self.size
        return max(self.n * self.size * (3 * tile + _WALK_NUMBERS) + read, learning + wide)

    def walk_plan(self, available: int) -> int:
        """The columns that are averaged at once."""
        if self.stack.walk is None:
            return 0
        width = max((width for _, width in self.stack.structure), default=0)
        room = available - self.n * self.size * _WALK_NUMBERS - min(self.n, COLUMN_ROWS) * 2 * width * self.size
        tile = int(room // (3 * self.n * self.size))
        return min(max(_even(tile, self.walk_columns), LEAST_TILE), self.walk_columns)

    @property
    def walk_columns(self) -> int:
        """The columns of a tile, if memory does not matter."""
        stack, widths = self.stack, [width for _, width in self.stack.structure]
        if stack.walk is not None and stack.averages_features:
            widths.append(stack.walk.axes(self.n_features))
        return min(TILE, max(widths, default=TILE))

    def stages(self, tiles: Mapping[int, int | None], group_rows: Mapping[int, int], walk_tile: int) -> dict[str, int]:
        """Of every stage."""
        held = {"psi0": self.input_bytes()}
        for t, tile in tiles.items():
            held[f"psi{t}"] = self.layer_bytes(t, tile, group_rows[t])
        return held | dict.fromkeys(self.stack.column_names, self.walk_bytes(walk_tile))

    def smallest(self) -> int:
        """The least that works, without structural columns."""
        group, tiles, groups = min(LEAST_GROUP, self.n), {}, {}
        for t in range(1, self.stack.n_layers + 1):
            least = min(LEAST_TILE, self.points[t - 1])
            whole = self.layer_bytes(t, None, 0) <= self.layer_bytes(t, least, group)
            tiles[t], groups[t] = (None, 0) if whole else (least, group)
        return max(self.stages(tiles, groups, LEAST_TILE).values())


def _even(tile: int, width: int) -> int:
    """At most so many columns of a tile: a multiple of 16, if there are as many, with which the last one is fullest."""
    if tile >= width:
        return width
    if tile < 16:
        return max(tile, 1)
    tile = tile // 16 * 16
    return -(-width // -(-width // tile) // 16) * 16


def describe(budget: Budget) -> dict[str, Any]:
    """The plan as JSON."""
    return {
        "available_bytes": budget.available,
        "tiles": {str(t): tile for t, tile in budget.tiles.items()},
        "walk_tile": budget.walk_tile,
        "sets_in_memory": budget.sets_in_memory,
    }
