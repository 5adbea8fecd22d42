"""One layer: a pure function of a row block that aggregates multisets, subtracts the anchors, and maps the result.

A `Layer` holds its settings and what it learned. Fitting and running are the same pass over row blocks, so nothing of
size sets × anchors × features exists beyond a block. `Blocks` are the values of any stage, by row blocks: a layer's,
the walk's, or the input map's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, to_device
from array_api_compat import device as device_of

from fishergraph._parallel import SPARSE, block_rows, cut_blocks, map_blocks, progress_steps, row_blocks
from fishergraph._progress import Progress, silent
from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rng, Sets, Write
from fishergraph.device import NUMPY, Workspace
from fishergraph.em.learn import learn_theta, sample_members, sample_size
from fishergraph.em.means import Scored, block_mass, block_moments, held_statistics, score_points, sum_dtype
from fishergraph.em.settings import EM
from fishergraph.embedding import append_counts, log_counts, root_weights
from fishergraph.family import Family, GaussianMixture, exact_root
from fishergraph.family.base import map_arrays
from fishergraph.kernel_map import IdentityMap, Kernel, KernelMap, Nystrom
from fishergraph.ops import Engine, choose_engine
from fishergraph.ops.engine import named_engine

# The gathered points of a block on the CPU: more than this leaves its caches many times over.
_GATHERED_BYTES = 16 * 2**20

# A sample is the beginning of a permutation of up to so many rows; that of more would take too much memory.
PERMUTED = 2**24

# What a layer keeps of a multiset: φ of its means, with the soft counts or without, or a function of the masses alone.
MASS_READINGS: dict[str, Callable[[Any], Any]] = {"counts": log_counts, "weights": root_weights}
READINGS = {"means": None, "both": None, **MASS_READINGS}


@dataclass(frozen=True)
class Run:
    """How work is run: where its arrays live, by how many threads, and how progress is shown.

    costs : title of a part → about how many multiplications it takes; for progress bars.
    """

    workspace: Workspace = NUMPY
    n_jobs: int | None = None
    progress: Progress = silent
    costs: Mapping[str, float] = field(default_factory=dict)

    def engine(self, em: EM) -> Engine:
        """The engine of a layer with these settings: the configured one, or the first that can do the work."""
        tensors, device = self.workspace.tensors, self.workspace.device
        name = "torch" if tensors and device == "cpu" and named_engine() is None else None
        return choose_engine(name, device=device, n_iter=em.n_iter, slack=em.slack, tensors=tensors)


@dataclass(frozen=True)
class Blocks:
    """φ and ψ of rows, by row blocks.

    rows : the row blocks, which cover all rows.
    phi : rows of a block → their φ.
    kernel_map : the map ψ of φ.
    all_phi, all_psi : φ and ψ of all rows, if learning the map left them.
    """

    rows: list[slice]
    phi: Callable[[slice], Any]
    kernel_map: KernelMap
    all_phi: Array | None = None
    all_psi: Array | None = None

    def write(self, write: Write, run: Run, title: str) -> None:
        """Hand ψ of every row block to `write(rows, block)`, which is called while the block is in cache."""

        def block(rows: slice) -> None:
            if self.all_psi is not None:
                write(rows, self.all_psi[rows])
            else:
                write(rows, self.kernel_map(self.phi(rows) if self.all_phi is None else self.all_phi[rows]))

        with run.progress(title, len(self.rows)) as bar:
            map_blocks(block, self.rows, n_jobs=run.n_jobs, advance=bar.update)


def sampled_rows(n_rows: int, n_centres: int, max_samples: int, rng: Rng) -> tuple[Any, bool]:
    """Return rows to learn so many centres from, in order, and whether they are all rows."""
    size = sample_size(n_centres, max_samples, n_rows)
    if n_rows > PERMUTED and size < n_rows:  # a few are drawn twice
        rows = rng.integers(n_rows, size=size)
        return array_namespace(rows).unique_values(rows), False
    rows = rng.permutation(n_rows)[:size]
    return array_namespace(rows).sort(rows), len(rows) == n_rows


@dataclass(frozen=True)
class Layer:
    """One layer: its settings, and θ_0, the root of the Fisher matrix and the kernel map once it is fitted.

    n_anchors : components p of the mixture.
    dim : the most outputs of the kernel map.
    reading : "means", φ; "both", φ and the soft counts; "counts" or "weights", a function of the masses alone.
    """

    n_anchors: int
    dim: int
    family: Family = field(default_factory=GaussianMixture)
    em: EM = field(default_factory=EM)
    kernel: Kernel = field(default_factory=Nystrom)
    reading: str = "means"
    theta: Any = None
    root: Array | None = None
    kernel_map: KernelMap | None = None

    __repr__ = short_repr

    @property
    def n_outputs(self) -> int:
        """The columns of ψ, once the layer is fitted."""
        assert self.kernel_map is not None
        return self.kernel_map.n_outputs

    @property
    def counts(self) -> bool:
        """Whether soft counts are appended to φ."""
        return self.reading == "both"

    def phi_width(self, n_anchors: int, n_features: int) -> int:
        """The columns of φ for so many anchors of so many features."""
        if self.reading in MASS_READINGS:
            return n_anchors
        return self.family.width(n_anchors, n_features) + (n_anchors if self.reading == "both" else 0)

    def phi(self, points: Array, scored: Scored | None, sets: Sets, engine: Engine) -> Any:
        """φ of the multisets of one row block (Eq. 13, 18), (set, coordinate [+ anchor])."""
        if scored is None:
            points, sets = sets.gather(points)
            scored = score_points(self.family, points, self.theta, n_jobs=1)
        steps: dict[str, Any] = {"prior": self.em.prior, "n_iter": self.em.n_iter, "slack": self.em.slack}
        if self.reading in MASS_READINGS:
            return MASS_READINGS[self.reading](block_mass(engine, self.family, scored, sets, self.theta, **steps))
        means, mass = block_moments(engine, self.family, scored, sets, self.theta, **steps)
        phi = self.family.block_phi(means, mass, self.theta, root=self.root, prior=self.em.prior)
        return append_counts(phi, mass) if self.reading == "both" else phi

    def over(self, points: Array, sets: Sets, run: Run) -> Blocks:
        """φ and ψ of multisets over points, by row blocks."""
        return self.over_scored(points, self.score(points, sets, run), sets, run)

    def score(self, points: Array, sets: Sets, run: Run) -> Scored | None:
        """Statistics and responsibilities of all points.

        None if every block gathers its members and scores those alone: they are lifted, or have wide statistics.
        """
        family = self.family
        if sets.lifted or not (family.fused or held_statistics(family, sets.n_points, points.shape[1])):
            return None
        return score_points(family, points, self.theta, n_jobs=run.n_jobs)

    def over_scored(self, points: Array, scored: Scored | None, sets: Sets, run: Run) -> Blocks:
        """`over` for points that `score` has seen."""
        engine, kernel_map = run.engine(self.em), self.kernel_map
        assert kernel_map is not None

        def phi(rows: slice) -> Any:
            return self.phi(points, scored, sets.block(rows), engine)

        rows = self._row_blocks(sets, points.shape[1], run.workspace.device, gathers=scored is None)
        return Blocks(rows, phi, kernel_map)

    def _row_blocks(self, sets: Sets, n_features: int, device: str, *, gathers: bool) -> list[slice]:
        """The row blocks for points of so many features; members that are gathered count too."""
        lifted = n_features * sets.slots
        blocks = row_blocks(sets.n_sets, block_rows(device, 4 * self.family.width(self.n_anchors, lifted)))
        iterates = self.em.n_iter > 1 and not self.family.fused
        if not (iterates or gathers):
            return blocks
        width = 4 * self.family.n_statistics(lifted)
        indptr = np.asarray(to_device(sets.indptr, "cpu"))
        return cut_blocks(indptr, blocks, block_rows(device, width, _GATHERED_BYTES // width))

    def fit(
        self, points: Array, sets: Sets, run: Run, rng: Rng, *, runs: bool = False, memory: Array | None = None
    ) -> tuple[Layer, Blocks]:
        """Learn the layer from a sample of members and a sample of rows.

        Parameters
        ----------
        points : array of shape (n_points, n_features)
            The points of the layer.
        sets : Sets
            The multisets over them.
        run : Run
            Workspace, threads and progress.
        rng : Rng
            The random stream of this layer.
        runs : bool, default=False
            Whether the layer is run next on the same points, so that ψ of the sample is worth keeping.
        memory : array, optional
            φ of an earlier layer, which is overwritten if it has the right shape.

        Returns
        -------
        tuple of (Layer, Blocks)
            The fitted layer, and φ and ψ of the same multisets.
        """
        family, width = self.family, points.shape[1] * sets.slots
        family.check_width(width)
        members = sampled_points(points, sets, self.n_anchors, self.em.max_samples, rng)
        theta = learn_theta(family, self.em, members, self.n_anchors, rng=rng, n_jobs=run.n_jobs)
        root = None if family.fisher != "exact" else _exact_root(family, theta, rng)
        n_outputs = self.phi_width(family.mean_statistics(theta).shape[0], width)
        layer = replace(self, theta=theta, root=root, kernel_map=IdentityMap(n_outputs))
        scored = layer.score(points, sets, run)
        whole = layer.over_scored(points, scored, sets, run)

        def take(rows: Array) -> Blocks:
            return layer.over_scored(points, scored, sets.take(rows), run)

        def empty(shape: tuple[int, int]) -> Any:
            if memory is not None and tuple(memory.shape) == shape:
                return memory  # pages that exist already are filled in half the time of new ones
            return array_namespace(theta[0]).empty(shape, dtype=sum_dtype(points, theta[0]), device=device_of(theta[0]))

        cost = SPARSE * sets.n_entries * width * self.n_anchors
        blocks = self.learn_map(whole, sets.n_sets, take, empty, run, rng, runs=runs, cost=cost)
        return replace(layer, kernel_map=blocks.kernel_map), blocks

    def learn_map(
        self,
        whole: Blocks,
        n_rows: int,
        take: Callable[[Array], Blocks],
        empty: Callable[[tuple[int, int]], Any],
        run: Run,
        rng: Rng,
        *,
        runs: bool,
        cost: float = 1.0,
    ) -> Blocks:
        """Learn the kernel map of the layer from φ of all rows, or of a sample.

        Parameters
        ----------
        whole : Blocks
            φ of all rows.
        n_rows : int
            Their number.
        take : callable
            Some rows → their `Blocks`.
        empty : callable
            A shape → memory for φ.
        run : Run
            Threads and progress.
        rng : Rng
            The random stream.
        runs : bool
            Whether the blocks are written next, so that ψ of the sample is worth keeping.
        cost : float, default=1.0
            About how many multiplications φ of all rows takes.

        Returns
        -------
        Blocks
            `whole` with its map.
        """
        if not self.kernel.learns:
            return whole
        rows, all_rows = sampled_rows(n_rows, self.dim, self.em.max_samples, rng)
        sample, phi = whole if all_rows else take(rows), empty((len(rows), whole.kernel_map.n_outputs))

        def fill(block: slice) -> None:
            phi[block] = sample.phi(block)

        advance = progress_steps(cost * len(rows) / max(n_rows, 1), len(sample.rows))
        map_blocks(fill, sample.rows, n_jobs=run.n_jobs, advance=advance)
        if not all_rows:
            return replace(whole, kernel_map=self.kernel.fit(phi, self.dim, rng=rng, n_jobs=run.n_jobs))
        if not runs:
            kernel_map, psi = self.kernel.fit(phi, self.dim, rng=rng, n_jobs=run.n_jobs), None
        else:
            kernel_map, psi = self.kernel.fit_and_map(phi, self.dim, whole.rows, rng=rng, n_jobs=run.n_jobs)
        return replace(whole, kernel_map=kernel_map, all_phi=phi, all_psi=psi)


@dataclass(frozen=True, repr=False)
class SplitLayer(Layer):
    """A layer on multisets of several kinds of members (`SplitSets`): the φ of all kinds side by side, at one θ_0.

    kinds : their number.
    """

    kinds: int = 2

    def phi_width(self, n_anchors: int, n_features: int) -> int:
        return self.kinds * super().phi_width(n_anchors, n_features)

    def phi(self, points: Array, scored: Scored | None, sets: Sets, engine: Engine) -> Any:
        phi = super().phi(points, scored, sets.apart(), engine)
        return phi.reshape(sets.n_sets, self.kinds * phi.shape[1])

    def _row_blocks(self, sets: Sets, n_features: int, device: str, *, gathers: bool) -> list[slice]:
        return super()._row_blocks(sets, self.kinds * n_features, device, gathers=gathers)


def sampled_points(points: Array, sets: Sets, n_anchors: int, max_samples: int, rng: Rng) -> Any:
    """Return the points of members drawn from all sets, to learn so many anchors from."""
    chosen = sample_members(sets, sample_size(n_anchors, max_samples, sets.n_entries), rng)
    # Without a single member φ is zero here, but another graph may have some: the points themselves serve.
    return sets.members(points, chosen) if len(chosen) else sets.alone(points[:max_samples])


def _exact_root(family: Family, theta: NamedTuple, rng: Rng) -> Any:
    """The root of the exact Fisher matrix at θ_0, beside the arrays of θ_0."""
    host = map_arrays(theta, lambda array: np.asarray(to_device(array, "cpu")))
    root = exact_root(family, host, np.random.default_rng(int(rng.integers(2**31))))
    like: Any = theta[0]
    return array_namespace(like).asarray(root, dtype=like.dtype, device=device_of(like))
