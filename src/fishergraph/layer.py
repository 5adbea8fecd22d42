"""One layer: a pure function of a row block that aggregates multisets, subtracts the anchors, and maps the result.

A `Layer` holds its settings and what it learned. Fitting and running are the same pass over row blocks, so nothing of
size sets × anchors × features exists beyond a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, to_device
from array_api_compat import device as device_of

from fishergraph._parallel import SPARSE, block_rows, cut_blocks, map_blocks, progress_steps, row_blocks
from fishergraph._progress import Progress, silent
from fishergraph._repr import short_repr
from fishergraph.device import NUMPY, Workspace
from fishergraph.em.anchors import sample_members, sample_size
from fishergraph.em.learn import learn_theta
from fishergraph.em.loop import sum_dtype
from fishergraph.em.moments import Scored, block_mass, block_moments, held_statistics, score_points
from fishergraph.em.settings import EM
from fishergraph.embedding import append_counts, log_counts, root_shares
from fishergraph.family import Family, GaussianMixture, exact_root
from fishergraph.family.base import map_arrays
from fishergraph.kernel_map import Identity, IdentityMap, Kernel, KernelMap, Nystrom
from fishergraph.ops import Engine, choose_engine
from fishergraph.ops.engine import named_engine

# The gathered points of a block on the CPU: more than this leaves its caches many times over.
_GATHERED_BYTES = 16 * 2**20

# What a layer keeps of a multiset: φ of its means, with the soft counts or without, or a function of the masses alone.
MASS_READINGS: dict[str, Callable[[Any], Any]] = {"counts": log_counts, "shares": root_shares}
READINGS = {"means": None, "both": None, **MASS_READINGS}


@dataclass(frozen=True)
class Run:
    """How work is run: where its arrays live, by how many threads, and how progress is shown."""

    workspace: Workspace = NUMPY
    n_jobs: int | None = None
    progress: Progress = silent

    def engine(self, em: EM) -> Engine:
        """The engine of a layer with these settings: the configured one, or the first that can do the work."""
        tensors, device = self.workspace.tensors, self.workspace.device
        name = named_engine() or ("torch" if tensors and device == "cpu" else None)
        return choose_engine(name, device=device, n_em_iter=em.n_iter, slack=em.slack, tensors=tensors)


class Cached(NamedTuple):
    """What fitting a layer leaves for running it on the same points; φ and ψ if the sample was all rows."""

    scored: Scored | None = None
    phi: Any = None
    psi: Any = None


_NOTHING = Cached()


@dataclass(frozen=True)
class Layer:
    """One layer: its settings, and θ_0, the root of the Fisher matrix and the kernel map once it is fitted.

    n_anchors : components p of the mixture.
    dim : the most outputs of the kernel map.
    reading : "means", φ; "both", φ and the soft counts; "counts" or "shares", a function of the masses alone.
    """

    n_anchors: int
    dim: int
    family: Family = field(default_factory=GaussianMixture)
    em: EM = field(default_factory=EM)
    kernel: Kernel = field(default_factory=Nystrom)
    reading: str = "means"
    theta: Any = None
    root: Any = None
    kernel_map: KernelMap | None = None

    __repr__ = short_repr

    @property
    def n_outputs(self) -> int:
        """The columns of ψ, once the layer is fitted."""
        assert self.kernel_map is not None
        return self.kernel_map.n_outputs

    @property
    def counts(self) -> bool:
        """Whether soft counts stand beside φ."""
        return self.reading == "both"

    def settings(self) -> Layer:
        """The layer before it was fitted."""
        return replace(self, theta=None, root=None, kernel_map=None)

    def following(self) -> Layer:
        """The settings of the layers after this one."""
        return replace(self.settings(), family=self.family.later)

    def moved(self, move: Callable[[Any], Any]) -> Layer:
        """The layer with its arrays moved."""
        assert self.kernel_map is not None
        root = None if self.root is None else move(self.root)
        return replace(self, theta=map_arrays(self.theta, move), root=root, kernel_map=self.kernel_map.moved(move))

    # --- sizes -------------------------------------------------------------------------------------------

    def asked_width(self, n_anchors: int, n_features: int) -> int:
        """The columns of φ for so many anchors of so many features."""
        if self.reading in MASS_READINGS:
            return n_anchors
        return self.family.width(n_anchors, n_features) + (n_anchors if self.reading == "both" else 0)

    def phi_width(self, theta: Any) -> int:
        """The columns of φ; θ may have fewer components than the layer has anchors."""
        n_anchors, n_statistics = self.family.mean_statistics(theta).shape
        return self.asked_width(n_anchors, self.family.n_features(n_statistics))

    def gathers(self, sets: Any, n_features: int) -> bool:
        """Whether a row block gathers its members and scores those alone: they are lifted, or have wide statistics."""
        return sets.lifted or not (self.family.fused or held_statistics(self.family, sets.n_points, n_features))

    def blocks(self, sets: Any, n_features: int, device: str) -> list[slice]:
        """The row blocks for points of so many features; members that are gathered count too."""
        lifted = n_features * sets.slots
        width = 4 * self.family.n_statistics(lifted)
        blocks = row_blocks(sets.n_sets, block_rows(device, 4 * self.family.width(self.n_anchors, lifted)))
        iterates = self.em.n_iter > 1 and not self.family.fused
        if not (iterates or self.gathers(sets, n_features)):
            return blocks
        indptr = np.asarray(to_device(sets.indptr, "cpu"))
        return cut_blocks(indptr, blocks, block_rows(device, width, _GATHERED_BYTES // width))

    # --- one row block -----------------------------------------------------------------------------------

    def phi(self, points: Any, scored: Scored | None, sets: Any, engine: Engine) -> Any:
        """φ of the multisets of one row block (Eq. 13, 18), (set, coordinate [+ anchor])."""
        if scored is None:
            points, sets = sets.gather(points)
            scored = score_points(self.family, points, self.theta, n_jobs=1)
        steps: dict[str, Any] = {"prior": self.em.prior, "n_em_iter": self.em.n_iter, "slack": self.em.slack}
        if self.reading in MASS_READINGS:
            return MASS_READINGS[self.reading](block_mass(engine, self.family, scored, sets, self.theta, **steps))
        means, mass = block_moments(engine, self.family, scored, sets, self.theta, **steps)
        phi = self.family.block_phi(means, mass, self.theta, root=self.root, prior=self.em.prior)
        return append_counts(phi, mass) if self.reading == "both" else phi

    # --- fit and run -------------------------------------------------------------------------------------

    def fit(
        self, points: Any, sets: Any, run: Run, rng: Any, *, mapped: bool = True, runs: bool = False, reuse: Any = None
    ) -> tuple[Layer, Cached]:
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
        mapped : bool, default=True
            Whether the layer has its kernel map; the last layer of some stacks has none.
        runs : bool, default=False
            Whether the layer is run next on the same points, so that ψ of the sample is worth keeping.
        reuse : array, optional
            φ of an earlier layer, which is overwritten if it has the right shape.

        Returns
        -------
        tuple of (Layer, Cached)
            The fitted layer, and what running it on the same points can use.
        """
        self.family.check_width(points.shape[1] * sets.slots)
        members = sampled_points(points, sets, self.n_anchors, self.em.max_samples, rng)
        theta = learn_theta(self.family, self.em, members, self.n_anchors, rng=rng, n_jobs=run.n_jobs)
        width = self.phi_width(theta)
        layer = replace(self, theta=theta, root=_fit_root(self.family, theta, rng), kernel_map=IdentityMap(width))
        scored = layer._score(points, sets, run.n_jobs)
        if not mapped or isinstance(self.kernel, Identity):
            return layer, Cached(scored)
        rows, whole = sampled_rows(sets.n_sets, self.dim, self.em.max_samples, rng)
        phi = layer._sample_phi(points, scored, sets if whole else sets.take(rows), run, reuse)
        if not (runs and whole):
            kernel_map = self.kernel.fit(phi, self.dim, rng=rng, n_jobs=run.n_jobs)
            return replace(layer, kernel_map=kernel_map), Cached(scored, phi if whole else None)
        blocks = self.blocks(sets, points.shape[1], run.workspace.device)
        kernel_map, psi = self.kernel.fit_and_map(phi, self.dim, blocks, rng=rng, n_jobs=run.n_jobs)
        return replace(layer, kernel_map=kernel_map), Cached(scored, phi, psi)

    def run(
        self, points: Any, sets: Any, run: Run, write: Callable[[slice, Any], None], *, cached: Cached = _NOTHING,
        title: str = "layer",
    ) -> None:  # fmt: skip
        """Hand ψ(φ) of every row block to `write(rows, block)`, which is called while the block is in cache."""
        scored, phi, psi = cached
        scored = self._score(points, sets, run.n_jobs) if scored is None else scored
        engine, kernel_map = run.engine(self.em), self.kernel_map
        assert kernel_map is not None

        def block(rows: slice) -> None:
            if psi is not None:
                return write(rows, psi[rows])
            found = self.phi(points, scored, sets.block(rows), engine) if phi is None else phi[rows]
            return write(rows, kernel_map(found))

        blocks = self.blocks(sets, points.shape[1], run.workspace.device)
        with run.progress(title, len(blocks)) as bar:
            map_blocks(block, blocks, n_jobs=run.n_jobs, advance=bar.update)

    def _score(self, points: Any, sets: Any, n_jobs: int | None) -> Scored | None:
        """Statistics and responsibilities of all points; None if every block gathers its members."""
        if self.gathers(sets, points.shape[1]):
            return None
        return score_points(self.family, points, self.theta, n_jobs=n_jobs)

    def _sample_phi(self, points: Any, scored: Scored | None, sets: Any, run: Run, reuse: Any) -> Any:
        """φ of all the given sets, filled block by block."""
        shape = (sets.n_sets, self.n_outputs)
        # Pages that exist already are filled in half the time of new ones.
        fits = reuse is not None and tuple(reuse.shape) == shape
        like = self.theta[0]
        xp, dtype = array_namespace(like), sum_dtype(points, like)
        phi: Any = reuse if fits else xp.empty(shape, dtype=dtype, device=device_of(like))
        engine = run.engine(self.em)

        def fill(rows: slice) -> None:
            phi[rows] = self.phi(points, scored, sets.block(rows), engine)

        blocks = self.blocks(sets, points.shape[1], run.workspace.device)
        cost = SPARSE * sets.n_entries * sets.slots * points.shape[1] * self.n_anchors
        map_blocks(fill, blocks, n_jobs=run.n_jobs, advance=progress_steps(cost, len(blocks)))
        return phi


def sampled_rows(n_rows: int, n_centres: int, max_samples: int, rng: Any) -> tuple[Any, bool]:
    """Return rows to learn so many centres from, in order, and whether they are all rows."""
    rows = rng.permutation(n_rows)[: sample_size(n_centres, max_samples, n_rows)]
    return array_namespace(rows).sort(rows), len(rows) == n_rows


def sampled_points(points: Any, sets: Any, n_anchors: int, max_samples: int, rng: Any) -> Any:
    """Return the points of members drawn from all sets, to learn so many anchors from."""
    chosen = sample_members(sets, sample_size(n_anchors, max_samples, sets.n_entries), rng)
    # Without a single member φ is zero here, but another graph may have some: the points themselves serve.
    return sets.members(points, chosen) if len(chosen) else sets.alone(points[:max_samples])


def _fit_root(family: Family, theta: Any, rng: Any) -> Any:
    """The root of the exact Fisher matrix beside the arrays of θ_0; None if the closed form is used."""
    if family.fisher != "exact":
        return None
    host = map_arrays(theta, lambda array: np.asarray(to_device(array, "cpu")))
    root = exact_root(family, host, np.random.default_rng(int(rng.integers(2**31))))
    like = theta[0]
    return array_namespace(like).asarray(root, dtype=like.dtype, device=device_of(like))
