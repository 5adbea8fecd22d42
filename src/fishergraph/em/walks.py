"""Means over the whole graph: every node's multiset is all nodes, weighted by where a walk from it ends.

    μ_v = Σ_u π_v(u) b_u x_u / Σ_u π_v(u) b_u,    b_u = d_u^-½

π_v(u) is personalised PageRank along the multisets: a walk from v goes on to a member of the multiset it is at with
probability 1 − α, and ends there with probability α. d_u is the weight with which u is a member, so that b makes these
the means of D^-½ A D^-½ on an undirected graph, and one popular node does not speak for all. With a single component
no multiset has to be listed: numerator and denominator are iterated, h ← (1 − α) P h + α b x, and P h is `em_means`
with one anchor. Columns are walked a tile at a time, so nothing but the means has the size of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph.em.loop import EMMeans, block_means
from fishergraph.multiset import Multisets
from fishergraph.multiset.members import degrees
from fishergraph.ops import Backend, Responsibilities
from fishergraph.ops.place import device_kind

# Walks stop where they are when at most this share of them is still under way.
_UNDER_WAY = 0.3
TILE = 128  # columns
_ROWS = 2048


def walk_steps(teleport: float) -> int:
    """The number of steps of a walk: (1 − α)^K ≤ 0.3."""
    return 0 if teleport == 1.0 else math.ceil(math.log(_UNDER_WAY) / math.log1p(-teleport))


def walk_tiles(n_columns: int) -> list[slice]:
    """The columns that are walked together."""
    return [slice(start, min(start + TILE, n_columns)) for start in range(0, n_columns, TILE)]


def walk_passes(n_columns: int, teleport: float) -> int:
    """How often the edges are passed over: for every tile, and once more for the masses."""
    return (1 + len(walk_tiles(n_columns))) * walk_steps(teleport)


def walk_means(
    points: Any,
    sets: Any,
    teleport: float,
    *,
    backend: Backend,
    n_jobs: int | None = None,
    advance: Callable[[int], Any] = lambda n: None,
) -> Any:
    """μ_v of every multiset v, (set, feature), written over the points; there are as many sets as points.

    `advance` hears of every pass.
    """
    xp = array_namespace(points)
    weights = xp.asarray(_member_weights(sets), dtype=points.dtype, device=device_of(points))[:, None]
    walk = _Walk(sets, teleport, backend, n_jobs, advance)
    mass = walk(weights)
    for columns in walk_tiles(points.shape[1]):
        points[:, columns] = walk(points[:, columns] * weights) / mass
    return points


def _member_weights(sets: Any) -> Any:
    """d_u^-½, (point,); of the mean d where u is nobody's member."""
    if isinstance(sets, Multisets):
        sent: Any = degrees(sets.indptr, sets.indices, sets.weights)[1]
    else:
        from fishergraph.ops.torch_graph import sent_weights

        sent = sent_weights(sets)
    xp = array_namespace(sent)
    heard = int(xp.sum(xp.astype(sent > 0, xp.int64)))
    usual = float(xp.sum(sent)) / heard if heard else 1.0
    return 1 / xp.sqrt(xp.where(sent > 0, sent, xp.full_like(sent, usual)))


class _Walk:
    """h_K of h_0 = `start`, h_k+1 = (1 − α) P h_k + α `start`; an empty multiset ends its walk."""

    def __init__(self, sets: Any, teleport: float, backend: Backend, n_jobs: int | None, advance: Callable[[int], Any]):
        self.sets, self.teleport, self.backend, self.n_jobs, self.advance = sets, teleport, backend, n_jobs, advance

    def __call__(self, start: Any) -> Any:
        here, there = start, None
        for _ in range(walk_steps(self.teleport)):
            after = array_namespace(start).empty_like(start) if there is None else there
            self._step(start, here, after)
            self.advance(1)
            here, there = after, None if here is start else here
        return here

    def _step(self, start: Any, here: Any, after: Any) -> None:
        xp, device = array_namespace(start), device_of(start)
        n_points, width = start.shape
        alone = Responsibilities(
            *(make((n_points, 1), dtype=start.dtype, device=device) for make in (xp.zeros, xp.ones))
        )
        nothing = xp.zeros((1, width), dtype=start.dtype, device=device)

        def step(rows: slice) -> None:
            means, block = after[rows], self.sets.block(rows)
            mass = xp.empty((means.shape[0], 1), dtype=start.dtype, device=device)
            block_means(self.backend, here, alone, block, nothing, out=EMMeans(means[:, None, :], mass))
            means *= 1 - self.teleport
            means += self.teleport * start[rows]

        size = block_rows(device_kind(start), 4 * width, _ROWS)
        map_blocks(step, row_blocks(n_points, size), n_jobs=self.n_jobs)
