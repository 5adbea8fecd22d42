"""The stack: an input map, PageRank-smoothed features, and layers, as stages of one pass over the data (Eq. 2).

A `Stack` holds its settings and, once fitted, what it learned. A `Pass` runs it over some rows, and learns on the way
if it has random streams. Its stages are yielded one after the other: "psi0", "walk", "psi1", …, "psiT", "smooth".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from array_api_compat import array_namespace

from fishergraph._parallel import block_rows, map_blocks, row_blocks
from fishergraph._progress import costing
from fishergraph._repr import short_repr
from fishergraph._typing import Array, Rng, Rows, Sets, Write
from fishergraph.axes import Smooth, fit_axes, fit_sharpening
from fishergraph.em.settings import EM
from fishergraph.em.unit import NOISE, unit_rows
from fishergraph.kernel_map import Identity, IdentityMap, Kernel, KernelMap, fit_projection
from fishergraph.layer import Blocks, Layer, Run, sampled_rows
from fishergraph.walk import Walk, WalkMap, fit_centre, walk_means

# A block of rows that the input map sees at once: bag-of-words rows are never dense beyond it.
_INPUT_ROWS = 1024

_ONE_STEP = EM()  # how averaged features are iterated

T = TypeVar("T")


@dataclass(frozen=True)
class Stack:
    """The settings of a stack, and what it learned.

    layer : the settings of the first layer; `layer_at` are those of the others.
    input_kernel : the kernel of ψ_0.
    walk : PageRank-smoothed features, or None.
    n_layers : the number of layers T.
    normalize : divide the rows of X, and the points of every layer, by their lengths.
    block_weights : one weight per stage (Eq. 2); 0 leaves its block out of the output.
    """

    layer: Layer
    input_kernel: Kernel
    walk: Walk | None
    n_layers: int
    normalize: bool
    block_weights: tuple[float, ...]
    input_map: KernelMap | None = None
    walk_map: WalkMap | None = None
    layers: tuple[Layer, ...] = ()
    smooth: Smooth | None = None

    __repr__ = short_repr

    @property
    def reads_counts(self) -> bool:
        """Whether the first layer takes X itself: counts live there, not in ψ_0."""
        return self.layer.family.support == "counts"

    @property
    def unit_points(self) -> bool:
        """Whether the points of a layer are unit vectors."""
        return self.normalize and self.layer.family.unit_points

    @property
    def names(self) -> list[str]:
        """The names of the stages."""
        walk = ["walk"] if self.walk else []
        return ["psi0", *walk, *(f"psi{t}" for t in range(1, self.n_layers + 1)), *(["smooth"] if self.smooths else [])]

    @property
    def smooths(self) -> bool:
        """Whether there is a stage "smooth"."""
        return self.walk is not None and self.walk.n_axes > 0

    @property
    def widths(self) -> list[int]:
        """The columns of every stage, once the stack is fitted."""
        assert self.input_map is not None
        walk = [] if self.walk_map is None else [self.walk_map.n_outputs]
        smooth = [] if self.smooth is None else [self.smooth.n_outputs]
        return [self.input_map.n_outputs, *walk, *(layer.n_outputs for layer in self.layers), *smooth]

    def layer_at(self, t: int) -> Layer:
        """The settings of layer t = 1, …, T."""
        layer = self.layer if t == 1 else replace(self.layer, family=self.layer.family.later)
        return layer if t < self.n_layers or layer.kernel.maps_last else replace(layer, kernel=Identity())

    def asked_widths(self, n_features: int, sets: Sets) -> list[int]:
        """The most columns of every stage, for X of so many features.

        Data give at most as many landmarks as rows, and as many anchors as members.
        """
        dim, members = min(self.layer.dim, max(sets.n_sets, 1)), max(sets.n_entries, sets.n_points, 1)
        widths = [self.input_kernel.width(dim, n_features)]
        points = n_features if self.reads_counts else widths[0]
        if self.walk is not None:
            walked = self.walk.width(self.layer.dim, n_features)
            widths.append(points := self.layer.kernel.width(dim, walked))
        for t in range(1, self.n_layers + 1):
            layer = self.layer_at(t)
            phi = layer.phi_width(min(layer.n_anchors, members), sets.slots * points)
            widths.append(points := layer.kernel.width(dim, phi))
        if self.walk is not None and self.smooths:
            widths.append(min(self.walk.axes(self.layer.dim, n_features), max(sets.n_sets, 1)))
        return widths

    def kept(self, per_stage: Sequence[T]) -> list[T]:
        """The entries of a list with one per stage, of the stages in the output."""
        return [entry for entry, weight in zip(per_stage, self.block_weights, strict=True) if weight > 0]


@dataclass
class Stage:
    """One stage of a pass.

    name : "psi0", "walk", "psi1", …
    title : its name in progress bars.
    blocks : its values, by row blocks.
    points : the points it leaves for the next stage, if that takes them.
    noise : of `unit_rows`, by which its values become the points; None if they stay as they are.
    fills : whether its values become the points.
    """

    name: str
    title: str
    blocks: Blocks
    points: Array | None
    noise: float | None = None
    fills: bool = True
    is_written: bool = False

    @property
    def n_outputs(self) -> int:
        """The columns of its values."""
        return self.blocks.kernel_map.n_outputs

    def run(self, run: Run, write: Write | None = None) -> None:
        """Compute the stage once; `write(rows, block)` gets its values while a block is in cache."""
        if self.is_written:
            return
        points, noise = self.points if self.fills else None, self.noise

        def take(rows: slice, block: Array) -> None:
            if points is not None:
                points[rows] = block if noise is None else unit_rows(block, noise=noise)
            if write is not None:
                write(rows, block)

        self.blocks.write(take, run, self.title)
        self.is_written = True


class Pass:
    """One pass of a stack over rows and their multisets; it learns if it has random streams.

    Parameters
    ----------
    stack : Stack
        The settings, and if there are no streams also what was learned.
    X : matrix of shape (n_rows, n_features)
        The rows.
    sets : Sets
        Their multisets.
    run : Run
        Workspace, threads and progress.
    streams : sequence of Rng, optional
        One per stage.
    keep_last : bool, default=False
        Keep the points of every stage, also those that no layer reads.
    want_last : bool, default=True
        Whether the values of the last stage are wanted.
    """

    def __init__(
        self,
        stack: Stack,
        X: Rows,
        sets: Sets,
        run: Run,
        *,
        streams: Sequence[Rng] | None = None,
        keep_last: bool = False,
        want_last: bool = True,
    ):
        self.stack, self.X, self.sets, self.run = stack, X, sets, run
        self.streams, self.keep_last, self.want_last = streams, keep_last, want_last
        self._phi: Array | None = None  # of the layer before, whose memory the next one uses

    def stages(self) -> Iterator[Stage]:
        """Yield the stages in order; one that is not run by the caller is run here if the next one needs it."""
        stage = self._input_stage()
        yield stage
        if self.stack.walk is not None:
            stage = self._walk_stage(self.stack.walk)
            yield stage
        for t in range(1, self.stack.n_layers + 1):
            stage.run(self.run)
            assert stage.points is not None
            stage = self._layer_stage(t, stage.points)
            yield stage
        if self.keep_last:
            stage.run(self.run)
        if self.stack.walk is not None and self.stack.smooths:
            yield self._smooth_stage(self.stack.walk)

    def _stage(self, name: str, title: str, blocks: Blocks, *, last: bool, noise: float = NOISE) -> Stage:
        """A stage, with memory for its points unless it is the last that has any."""
        workspace, points = self.run.workspace, None
        if self.keep_last or not last:
            shape = (blocks.rows[-1].stop if blocks.rows else 0, blocks.kernel_map.n_outputs)
            points = workspace.empty(shape, workspace.storage(self.X.dtype))
        return Stage(name, title, blocks, points, noise if self.stack.unit_points else None)

    # --- ψ_0 ---------------------------------------------------------------------------------------------

    def _input_stage(self) -> Stage:
        stack, rows, psi, title = self.stack, self._row_blocks(), None, "learning input map"
        if self.streams is not None:
            kernel, rng, n_jobs = stack.input_kernel, self.streams[0], self.run.n_jobs
            with costing(self.run.progress, title, self.run.costs.get(title, 1.0)):
                sample = self._sample(rng)
                if sample.shape[0] < self.X.shape[0] or self.keep_last:
                    input_map = kernel.fit(sample, stack.layer.dim, rng=rng, n_jobs=n_jobs)
                else:
                    input_map, psi = kernel.fit_and_map(sample, stack.layer.dim, rows, rng=rng, n_jobs=n_jobs)
            self.stack = stack = replace(stack, input_map=input_map)
        assert stack.input_map is not None
        blocks = Blocks(rows, self._rows, stack.input_map, all_psi=psi)
        last = stack.n_layers == 0 or stack.walk is not None
        if not stack.reads_counts or (last and not self.keep_last):
            return self._stage("psi0", "input map", blocks, last=last, noise=0.0)
        return Stage("psi0", "input map", blocks, self._dense(IdentityMap(self.X.shape[1]), unit=False), fills=False)

    def _sample(self, rng: Rng) -> Any:
        """Rows of X, as the input map sees them, that maps of X are learned from."""
        return self._rows(self._sampled(rng))

    def _sampled(self, rng: Rng) -> Any:
        """The numbers of some rows to learn from."""
        layer = self.stack.layer
        return sampled_rows(self.X.shape[0], layer.dim, layer.em.max_samples, rng)[0]

    def _rows(self, rows: slice | Array) -> Any:
        """Rows of X as the input map sees them."""
        return unit_rows(self.X[rows]) if self.stack.normalize else self.X[rows]

    def _row_blocks(self) -> list[slice]:
        width = 4 * self.X.shape[1]
        return row_blocks(self.X.shape[0], block_rows(self.run.workspace.device, width, _INPUT_ROWS))

    def _dense(self, row_map: KernelMap, *, unit: bool = False) -> Any:
        """The rows of X, unit vectors or as they are, through a map: dense points."""
        points = self.run.workspace.empty((self.X.shape[0], row_map.n_outputs), self.X.dtype)

        def fill(rows: slice) -> None:
            points[rows] = row_map(unit_rows(self.X[rows]) if unit else self.X[rows])

        map_blocks(fill, self._row_blocks(), n_jobs=self.run.n_jobs)
        return points

    # --- the walk ----------------------------------------------------------------------------------------

    def _walk_stage(self, walk: Walk) -> Stage:
        stack, run, walk_map = self.stack, self.run, self.stack.walk_map
        directions = self._directions(walk) if walk_map is None else walk_map.directions
        means = self._averaged(walk, self._dense(directions, unit=stack.normalize), "walking")
        if walk_map is not None:
            blocks = self._walk_blocks(walk_map, means)
        else:
            title = "learning walks"
            with costing(run.progress, title, run.costs.get(title, 1.0)):
                walk_map, blocks = self._fit_walk(directions, means)
            self.stack = replace(stack, walk_map=walk_map)
        return self._stage("walk", "walks", blocks, last=stack.n_layers == 0)

    def _averaged(self, walk: Walk, points: Array, title: str, *, symmetric: bool = False) -> Any:
        """The points averaged along walks, in their own memory."""
        run = self.run
        options: dict[str, Any] = {"engine": run.engine(_ONE_STEP), "n_jobs": run.n_jobs, "symmetric": symmetric}
        with run.progress(title, walk.n_passes(points.shape[1], symmetric=symmetric)) as bar:
            return walk_means(points, self.sets, walk, advance=bar.update, **options)

    def _directions(self, walk: Walk) -> KernelMap:
        """The leading directions of wide features; narrow ones are averaged as they are."""
        assert self.streams is not None
        n_features = self.X.shape[1]
        width = walk.width(self.stack.layer.dim, n_features)
        if width == n_features:
            return IdentityMap(width)
        return fit_projection(self._sample(self.streams[0]), width, self.streams[0])

    def _walk_blocks(self, walk_map: WalkMap, means: Array) -> Blocks:
        """φ and ψ of averaged features, by row blocks."""
        n_rows, width = means.shape

        def phi(rows: slice) -> Any:
            return walk_map.phi(means[rows], unit=self.stack.normalize)

        rows = row_blocks(n_rows, block_rows(self.run.workspace.device, 4 * width))
        return Blocks(rows, phi, walk_map.kernel_map)

    def _fit_walk(self, directions: KernelMap, means: Array) -> tuple[WalkMap, Blocks]:
        """The map learned from averaged features, and their blocks."""
        assert self.streams is not None
        layer, rng, xp = self.stack.layer, self.streams[1], array_namespace(means)
        walk_map = WalkMap(directions, fit_centre(means, layer.em.max_samples, rng), IdentityMap(means.shape[1]))

        def take(rows: Array) -> Blocks:
            return self._walk_blocks(walk_map, xp.take(means, rows, axis=0))

        def empty(n_rows: int) -> Any:
            return xp.empty_like(means[:n_rows])

        whole, runs = self._walk_blocks(walk_map, means), self.stack.n_layers > 0 or self.want_last
        blocks = layer.learn_map(whole, means.shape[0], take, empty, self.run, rng, runs=runs)
        return replace(walk_map, kernel_map=blocks.kernel_map), blocks

    # --- layers ------------------------------------------------------------------------------------------

    def _layer_stage(self, t: int, points: Array) -> Stage:
        stack, run, sets = self.stack, self.run, self.sets
        last, title = t == stack.n_layers, f"layer {t}/{stack.n_layers}"
        if self.streams is None:
            blocks = stack.layers[t - 1].over(points, sets, run)
        else:
            rng, runs = self.streams[t + (stack.walk is not None)], not self.keep_last and (not last or self.want_last)
            with costing(run.progress, f"learning {title}", run.costs.get(f"learning {title}", 1.0)):
                layer, blocks = stack.layer_at(t).fit(points, sets, run, rng, runs=runs, memory=self._phi)
            self._phi = blocks.all_phi
            self.stack = replace(stack, layers=(*stack.layers, layer))
        return self._stage(f"psi{t}", title, blocks, last=last)

    # --- principal axes ----------------------------------------------------------------------------------

    def _smooth_stage(self, walk: Walk) -> Stage:
        stack, run, smooth, title = self.stack, self.run, self.stack.smooth, "learning axes"
        if smooth is not None:
            means = self._averaged(walk, self._dense(smooth.axes), "smoothing", symmetric=True)
        else:
            assert self.streams is not None
            rng, unit = self.streams[-1], stack.normalize
            with costing(run.progress, title, run.costs.get(title, 1.0)):
                sample = self.X[self._sampled(rng)]
                n_axes = walk.axes(stack.layer.dim, self.X.shape[1])
                axes = fit_axes(sample, n_axes, walk.whitening, rng, unit=unit)
            means = self._averaged(walk, self._dense(axes), "smoothing", symmetric=True)
            chosen = array_namespace(means).take(means, self._sampled(rng), axis=0)
            smooth = Smooth(axes, fit_sharpening(chosen, walk.sharpening, unit=unit))
            self.stack = replace(stack, smooth=smooth)
        rows = row_blocks(means.shape[0], block_rows(run.workspace.device, 4 * means.shape[1]))
        blocks = Blocks(rows, lambda rows: means[rows], smooth.sharpening)
        return self._stage("smooth", "smooth axes", blocks, last=True)
