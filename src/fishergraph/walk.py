"""Columns averaged over the whole graph: every node's multiset is all nodes, weighted by where a walk from it ends.

    μ_v = Σ_u π_v(u) b_u x_u / Σ_u π_v(u) b_u,    s_v = Σ_u π_v(u) (b_u / b_v) x_u,    b_u = d_u^-½

π_v(u) is personalised PageRank along the multisets: a walk from v goes on to a member of the multiset it is at with
probability 1 − α, and ends there with probability α. d_u is the weight with which u is a member. The means μ are FIE
with a single component; on an undirected graph the sums s are PageRank of D^-½ A D^-½, whose rows are longer for nodes
with more neighbours. No multiset has to be listed: numerator and denominator are iterated, h ← (1 − α) P h + α b x, and
P h is `em_means` with one anchor. Columns are iterated a tile at a time, so that nothing but the sums has the size of
all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._component import Component
from fishergraph._errors import InputTypeError
from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph._typing import Array, PlainSets, Sets
from fishergraph._validation import MOST_COLUMNS, check_integer, check_number
from fishergraph.device import device_kind
from fishergraph.em.means import EMMeans, block_means
from fishergraph.ops import Engine, Responsibilities

# Walks stop where they are when at most this share of them is still under way.
_UNDER_WAY = 0.3
TILE, _LEAST_TILE = 128, 16  # columns
_TILE_NUMBERS = 10**8  # of a tile, of which averaging holds three
_ROWS = 2048
# The axes of wide features take at most so many numbers together, but there are at least 64 of them.
_MOST_NUMBERS = 2**26


@dataclass(frozen=True, repr=False)
class Walk(Component):
    """Features averaged over the whole graph by personalised PageRank.

    The principal axes of the features are averaged once and give two blocks of the output: "walk" is the kernel map of
    their means, "smooth" their sums, sharpened. Structural columns are averaged in the same way.

    Parameters
    ----------
    teleport : float in [0.01, 1], default=0.1
        The probability that a walk ends at each step.
    n_axes : int, default=256
        The most principal axes of the features that are averaged.
    whitening : float in [0, 1], default=0.5
        How far the axes of the block "smooth" are made alike first: singular values are raised to 1 − whitening.
    sharpening : float in [0, 2], default=1.0
        Principal axes of the averaged values are multiplied by their standard deviations to this power.

    See Also
    --------
    fishergraph.FisherEmbedding : Takes it as `walk`.
    fishergraph.PageRank : PageRank as weights of multisets.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding, Walk
    >>> FisherEmbedding(walk=Walk(teleport=0.2))
    FisherEmbedding(walk=Walk(teleport=0.2))
    """

    teleport: float = 0.1
    n_axes: int = 256
    whitening: float = 0.5
    sharpening: float = 1.0

    def check(self) -> None:
        """Raise unless every option is valid."""
        check_number(self.teleport, "teleport", least=0.01, most=1.0)
        check_integer(self.n_axes, "n_axes", least=1, most=MOST_COLUMNS)
        check_number(self.whitening, "whitening", most=1.0)
        check_number(self.sharpening, "sharpening", most=2.0)

    @property
    def n_steps(self) -> int:
        """The number of steps of a walk: (1 − α)^K ≤ 0.3."""
        return 0 if self.teleport == 1.0 else math.ceil(math.log(_UNDER_WAY) / math.log1p(-self.teleport))

    def tiles(self, n_points: int, n_columns: int) -> list[slice]:
        """Columns that are averaged together: the edges are read once per step for each tile, and for the masses."""
        width = min(TILE, max(_LEAST_TILE, _TILE_NUMBERS // max(n_points, 1) // 16 * 16))
        return row_blocks(n_columns, width)

    def axes(self, n_features: int) -> int:
        """How many principal axes of so many features are averaged."""
        return min(self.n_axes, n_features, max(_MOST_NUMBERS // n_features, 64))


def choose_walk(walk: float | Walk | None) -> Walk | None:
    """Return the component; a number is its teleport probability."""
    if walk is None or isinstance(walk, Walk):
        return walk
    if isinstance(walk, str):
        raise InputTypeError(
            parameter="walk", value=walk, expected="be a Walk, a teleport probability or None", advice="pass Walk(…)"
        )
    return _teleporting(walk) if type(walk) is float else Walk(walk)


@lru_cache(maxsize=32)
def _teleporting(teleport: float) -> Walk:
    """The walk with this probability, made and validated once."""
    return Walk(teleport)


class Averages(NamedTuple):
    """Columns averaged along walks.

    sums : s, (set, column).
    ratio : what a row of the sums is multiplied by to be a row of the means μ, (set, 1).
    """

    sums: Any
    ratio: Any


def walk_averages(
    points: Array,
    sets: Sets,
    walk: Walk,
    *,
    engine: Engine,
    n_jobs: int | None = None,
    advance: Callable[[int], Any] = lambda n: None,
) -> Averages:
    """The averages of points over every multiset; the sums are written over the points, of which there are as many.

    `advance` is called after every pass over the edges.
    """
    weights = member_weights(points, sets)
    mass = walked(weights, sets, walk, engine, n_jobs, advance)
    for columns in walk.tiles(*points.shape):
        averaged = walked(points[:, columns] * weights, sets, walk, engine, n_jobs, advance)
        averaged /= weights
        points[:, columns] = averaged
    return Averages(points, weights / mass)


def member_weights(like: Array, sets: Sets) -> Any:
    """b_u = d_u^-½, (point, 1), in the dtype of an array; of the mean d where u is nobody's member."""
    xp, sent = array_namespace(like), cast(PlainSets, sets).sent_weights()
    n_members = int(xp.sum(xp.astype(sent > 0, xp.int64)))
    usual = float(xp.sum(sent)) / n_members if n_members else 1.0
    root = 1 / xp.sqrt(xp.where(sent > 0, sent, xp.full_like(sent, usual)))
    return xp.asarray(root, dtype=like.dtype, device=device_of(like))[:, None]


def walked(
    start: Array, sets: Sets, walk: Walk, engine: Engine, n_jobs: int | None, advance: Callable[[int], Any]
) -> Any:
    """h_K of h_0 = `start`, h_k+1 = (1 − α) P h_k + α `start`; an empty multiset ends its walk."""
    xp, device = array_namespace(start), device_of(start)
    n_points, width = start.shape
    like: dict[str, Any] = {"dtype": start.dtype, "device": device}
    one_anchor = Responsibilities(xp.zeros((n_points, 1), **like), xp.ones((n_points, 1), **like))
    origin = xp.zeros((1, width), **like)
    blocks = row_blocks(n_points, block_rows(device_kind(start), 4 * width, _ROWS))
    before: Any = start
    after: Any = None
    spare: Any = None

    def step(rows: slice) -> None:
        means = after[rows]
        mass = xp.empty((means.shape[0], 1), **like)
        block_means(engine, before, one_anchor, sets.block(rows), origin, out=EMMeans(means[:, None, :], mass))
        means *= 1 - walk.teleport
        means += walk.teleport * start[rows]

    for _ in range(walk.n_steps):
        after = xp.empty_like(start) if spare is None else spare
        map_blocks(step, blocks, n_jobs=n_jobs)
        advance(1)
        before, spare = after, None if before is start else before
    return before
