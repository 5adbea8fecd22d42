"""PageRank-smoothed features: every node's multiset is all nodes, weighted by where a walk from it ends.

    μ_v = Σ_u π_v(u) b_u x_u / Σ_u π_v(u) b_u,    b_u = d_u^-½

π_v(u) is personalised PageRank along the multisets: a walk from v goes on to a member of the multiset it is at with
probability 1 − α, and ends there with probability α. d_u is the weight with which u is a member, so that b makes these
the means of D^-½ A D^-½ on an undirected graph, and one popular node does not dominate. With a single component no
multiset has to be listed: numerator and denominator are iterated, h ← (1 − α) P h + α b x, and P h is `em_means` with
one anchor. Columns are iterated a tile at a time, so that nothing but the means has the size of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from array_api_compat import array_namespace
from array_api_compat import device as device_of

from fishergraph._component import Component
from fishergraph._errors import InputTypeError
from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rng, Sets
from fishergraph._validation import MOST_COLUMNS, check_integer, check_number
from fishergraph.device import device_kind
from fishergraph.em.learn import mean_anchor, sample_size
from fishergraph.em.means import EMMeans, block_means
from fishergraph.em.unit import NOISE, unit_rows
from fishergraph.kernel_map import KernelMap
from fishergraph.multiset import Multisets
from fishergraph.multiset.members import degrees
from fishergraph.ops import Engine, Responsibilities

# Walks stop where they are when at most this share of them is still under way.
_UNDER_WAY = 0.3
TILE = 128  # columns
_ROWS = 2048
# A walk carries as many directions of wide features as two blocks of the output have columns, and at least so many; but
# if they would take more numbers than this together, beyond 131,072 features with the defaults, then as many as that,
# and at least 64.
_LEAST_DIRECTIONS = 256
_MOST_NUMBERS = 2**26


@dataclass(frozen=True, repr=False)
class Walk(Component):
    """Features averaged over the whole graph by personalised PageRank.

    They are a block of the output ("walk") and the input of the first layer. The principal axes of the features are
    averaged too, and are a block of their own ("smooth"). If neighbours differ more than they agree (heterophily),
    ``walk=None`` may serve better.

    Parameters
    ----------
    teleport : float in [0.01, 1], default=0.1
        The probability that a walk ends at each step.
    n_axes : int, default=256
        Largest width of the block "smooth", beside the embedding's `dim`; 0 leaves it out.
    whitening : float in [0, 1], default=0.5
        How far the axes are made alike before they are averaged: singular values are raised to the power 1 − whitening.
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
        check_integer(self.n_axes, "n_axes", least=0, most=MOST_COLUMNS)
        check_number(self.whitening, "whitening", most=1.0)
        check_number(self.sharpening, "sharpening", most=2.0)

    @property
    def n_steps(self) -> int:
        """The number of steps of a walk: (1 − α)^K ≤ 0.3."""
        return 0 if self.teleport == 1.0 else math.ceil(math.log(_UNDER_WAY) / math.log1p(-self.teleport))

    def n_passes(self, n_columns: int, *, symmetric: bool = False) -> int:
        """How often the edges are read: once per step for every tile of columns, and for the masses of means."""
        return ((not symmetric) + math.ceil(n_columns / TILE)) * self.n_steps

    def width(self, dim: int, n_features: int) -> int:
        """How many directions of so many features are averaged."""
        return min(n_features, max(2 * dim, _LEAST_DIRECTIONS), max(_MOST_NUMBERS // n_features, 64))

    def axes(self, dim: int, n_features: int) -> int:
        """How many principal axes of so many features are averaged."""
        return min(self.n_axes, dim, n_features, max(_MOST_NUMBERS // n_features, 64))


def choose_walk(walk: float | Walk | None) -> Walk | None:
    """Return the component; a number is its teleport probability."""
    if walk is None or isinstance(walk, Walk):
        return walk
    if isinstance(walk, str):
        raise InputTypeError(
            parameter="walk", value=walk, expected="be a Walk, a teleport probability or None", advice="pass Walk(…)"
        )
    return Walk(walk)


@dataclass(frozen=True)
class WalkMap:
    """What a walk learned: the directions of wide features, the mean of the averaged features, and ψ of the rest."""

    directions: KernelMap
    centre: Array  # (1, direction)
    kernel_map: KernelMap

    __repr__ = short_repr

    @property
    def n_outputs(self) -> int:
        return self.kernel_map.n_outputs

    def phi(self, means: Array, *, unit: bool) -> Any:
        """Averaged features about their mean, as unit vectors if `unit`: φ of Eq. 18 with one component."""
        phi = means - self.centre
        return unit_rows(phi, noise=8 * NOISE) if unit else phi  # every step of a walk rounds


def fit_centre(means: Array, max_samples: int, rng: Rng) -> Any:
    """The mean of a sample of averaged features, (1, direction)."""
    n_rows, size = means.shape[0], sample_size(1, max_samples, means.shape[0])
    if n_rows <= size:
        return mean_anchor(means)
    rows = rng.integers(n_rows, size=size)
    xp = array_namespace(rows)
    return mean_anchor(array_namespace(means).take(means, xp.sort(xp.unique_values(rows)), axis=0))


def walk_means(
    points: Array,
    sets: Sets,
    walk: Walk,
    *,
    engine: Engine,
    n_jobs: int | None = None,
    advance: Callable[[int], Any] = lambda n: None,
    symmetric: bool = False,
) -> Any:
    """μ_v of every multiset v, (set, feature), written over the points; there are as many sets as points.

    `symmetric` gives Σ_u π_v(u) (b_u / b_v) x_u instead: PageRank of D^-½ A D^-½ on an undirected graph, whose rows are
    longer for nodes with more neighbours. `advance` is called after every pass.
    """
    xp = array_namespace(points)
    weights = xp.asarray(_member_weights(sets), dtype=points.dtype, device=device_of(points))[:, None]
    mass = weights if symmetric else _iterate(weights, sets, walk, engine, n_jobs, advance)
    for start in range(0, points.shape[1], TILE):
        columns = slice(start, start + TILE)
        points[:, columns] = _iterate(points[:, columns] * weights, sets, walk, engine, n_jobs, advance) / mass
    return points


def _member_weights(sets: Sets) -> Any:
    """d_u^-½, (point,); of the mean d where u is nobody's member."""
    if isinstance(sets, Multisets):
        sent: Any = degrees(sets.indptr, sets.indices, sets.weights)[1]
    else:
        from fishergraph.ops.tensor_edges import sent_weights

        sent = sent_weights(cast(Any, sets))
    xp = array_namespace(sent)
    n_members = int(xp.sum(xp.astype(sent > 0, xp.int64)))
    usual = float(xp.sum(sent)) / n_members if n_members else 1.0
    return 1 / xp.sqrt(xp.where(sent > 0, sent, xp.full_like(sent, usual)))


def _iterate(
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
