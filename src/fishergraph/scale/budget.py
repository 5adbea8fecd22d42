"""What a run over a store holds in memory, and how it is made to fit: counted before it begins.

Everything but these arrays is read and written by row blocks:

- the points of a layer, all columns or a tile of them, and their responsibilities;
- three tiles of columns that are averaged over the graph;
- samples that maps and anchors are learned from;
- the multisets, if there is room for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fishergraph._errors import NotEnoughMemory
from fishergraph._typing import Rows, Sets
from fishergraph.em.learn import sample_size
from fishergraph.scale.memory import memory_text, resident_bytes
from fishergraph.stack import Stack
from fishergraph.walk import TILE

# Libraries, compiled code, and the buffers of row blocks.
BASE = 450 * 2**20
LEAST_TILE = 4  # columns
LEAST_GROUP = 2**12  # rows whose means are computed together
_GROUP_BYTES = 2**30  # at most, of the means of such rows
# Arrays of one number for each node that averaging holds: weights, masses, and their iterates.
_WALK_NUMBERS = 12
_SAMPLE_COPIES = 3
# Bytes per edge and per number of a column of structural columns, which are computed in memory.
_STRUCTURE_EDGE, _STRUCTURE_NUMBER = 80, 24


@dataclass(frozen=True)
class Budget:
    """How the arrays of a run are held.

    available : bytes for arrays.
    tiles : layer t → the columns of a tile of its points; None if whole rows are held.
    group_rows : layer t → rows whose means are computed together, if there are tiles.
    walk_tile : columns that are averaged at once.
    sets_in_memory : whether the multisets are held.
    n_workers : processes that share the work; each has its own memory.
    """

    available: int
    tiles: Mapping[int, int | None]
    group_rows: Mapping[int, int]
    walk_tile: int
    sets_in_memory: bool
    n_workers: int = 1

    def averaged_tile(self, width: int) -> int:
        """The columns, of so many, that are averaged at once: every worker gets some."""
        share = -(-width // self.n_workers)
        return min(self.walk_tile, max(-(-share // 16) * 16, LEAST_TILE), width)


def plan_budget(
    stack: Stack,
    X: Rows,
    sets: Sets,
    memory: int,
    *,
    structure_edges: int = 0,
    base: int | None = None,
    n_workers: int = 1,
) -> Budget:
    """Return how a run fits into so much memory.

    Parameters
    ----------
    stack : Stack
        The settings.
    X : Rows
        The features; only their shape and dtype are read.
    sets : Sets
        The multisets; only their sizes are read.
    memory : int
        Bytes the process may have.
    structure_edges : int, default=0
        The edges of the graph, if structural columns are computed.
    base : int, optional
        Bytes that libraries and buffers take; by default what the process has now, and at least 450 MiB.
    n_workers : int, default=1
        Processes that share the work, each with so much memory.

    Returns
    -------
    Budget
        The plan.
    """
    base = max(BASE, resident_bytes() + BASE // 3) if base is None else base
    needs = _Needs(stack, X, sets)
    smallest = base + max(needs.smallest(), needs.structure(structure_edges))
    if memory < smallest:
        advice = f"allow at least memory='{memory_text(smallest)}'"
        if needs.structure(structure_edges) > needs.smallest():
            advice += f", or set structure=None, which works with '{memory_text(base + needs.smallest())}'"
        raise NotEnoughMemory(
            purpose=f"the embedding of {sets.n_sets:,} nodes", needed=smallest, available=memory, advice=advice
        )
    available = memory - base
    tiles, group_rows = {}, {}
    for t in range(1, stack.n_layers + 1):
        tiles[t], group = needs.layer_plan(t, available)
        group_rows[t] = min(group, max(-(-needs.n // (2 * n_workers)), LEAST_GROUP)) if n_workers > 1 else group
    walk_tile = needs.walk_plan(available)
    held = max([needs.layer_bytes(t, tiles[t], group_rows[t]) for t in tiles] + [needs.walk_bytes(walk_tile), 0])
    return Budget(available, tiles, group_rows, walk_tile, held + needs.sets_bytes <= available, n_workers)


class _Needs:
    """The bytes of the arrays of a run."""

    def __init__(self, stack: Stack, X: Rows, sets: Sets):
        self.stack, self.n, self.size = stack, sets.n_sets, max(X.dtype.itemsize, 4)
        self.widths = stack.asked_widths(X.shape[1], sets)
        self.n_features = X.shape[1]
        self.points = [X.shape[1] if stack.reads_counts else self.widths[0], *self.widths[1:]]
        index = 4 if sets.n_points < 2**31 else 8
        weighted = 0 if getattr(sets, "weights", None) is None else self.size
        self.sets_bytes = 8 * self.n + (index + weighted) * int(sets.n_entries)

    def sample(self, width: int) -> int:
        """Of the sample of a kernel map, with copies."""
        layer = self.stack.layer
        return _SAMPLE_COPIES * sample_size(layer.dim, layer.em.max_samples, self.n) * width * self.size

    def layer_bytes(self, t: int, tile: int | None, group_rows: int) -> int:
        """Of a layer with tiles of so many columns."""
        layer, width = self.stack.layer_at(t), self.points[t - 1]
        phi = layer.phi_width(layer.n_anchors, width)
        held = 2 * self.n * layer.n_anchors * self.size  # responsibilities, and their logs
        held += self.sample(phi)
        if tile is None:
            return held + self.n * width * self.size
        return held + self.n * tile * self.size + group_rows * phi * self.size

    def layer_plan(self, t: int, available: int) -> tuple[int | None, int]:
        """The tile and the group of a layer: whole rows if they fit, else few and wide passes over the tiles."""
        layer, width = self.stack.layer_at(t), self.points[t - 1]
        if self.layer_bytes(t, None, 0) <= available:
            return None, 0
        phi = layer.phi_width(layer.n_anchors, width) * self.size
        room = available - self.layer_bytes(t, 0, 0)
        group = int(min(_GROUP_BYTES, room / 2) // phi)
        group = max(min(group, self.n), min(LEAST_GROUP, self.n))
        tile = int((room - group * phi) // (self.n * self.size))
        if tile < LEAST_TILE:
            tile, group = LEAST_TILE, min(LEAST_GROUP, self.n)
        tile = min(tile, width)
        return (tile // 16 * 16 if tile >= 16 else tile), group

    def walk_bytes(self, tile: int) -> int:
        """Of averaging so many columns at once."""
        if self.stack.walk is None or not tile:
            return 0
        return self.n * self.size * (3 * tile + _WALK_NUMBERS) + self.sample(self.n_features)

    def walk_plan(self, available: int) -> int:
        """The columns that are averaged at once."""
        if self.stack.walk is None:
            return 0
        room = available - self.walk_bytes(0) - self.n * self.size * _WALK_NUMBERS - self.sample(self.n_features)
        tile = int(room // (3 * self.n * self.size))
        return max(min(tile // 16 * 16 if tile >= 16 else tile, TILE), LEAST_TILE)

    def structure(self, n_edges: int) -> int:
        """Of structural columns, which are computed in memory."""
        if not n_edges:
            return 0
        columns = sum(width for _, width in self.stack.structure)
        return 2 * n_edges * _STRUCTURE_EDGE + self.n * columns * _STRUCTURE_NUMBER

    def smallest(self) -> int:
        """The least that works."""
        group = min(LEAST_GROUP, self.n)
        layers = [
            min(self.layer_bytes(t, None, 0), self.layer_bytes(t, min(LEAST_TILE, self.points[t - 1]), group))
            for t in range(1, self.stack.n_layers + 1)
        ]
        return max([*layers, self.walk_bytes(LEAST_TILE), self.sample(self.n_features)])


def describe(budget: Budget) -> dict[str, Any]:
    """The plan as JSON."""
    return {
        "available_bytes": budget.available,
        "tiles": {str(t): tile for t, tile in budget.tiles.items()},
        "walk_tile": budget.walk_tile,
        "sets_in_memory": budget.sets_in_memory,
    }
