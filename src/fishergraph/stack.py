"""The stack: an input map, PageRank-smoothed features, and layers, as stages of one pass over the data (Eq. 2).

A `Stack` holds its settings and, once fitted, what it learned. A `Pass` runs it over some rows, and learns on the way
if it has random streams. Its stages are yielded one after the other: "psi0", "walk", "psi1", …, "psiT".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from fishergraph._parallel import SPARSE, block_rows, map_blocks, row_blocks
from fishergraph._progress import costing
from fishergraph._repr import short_repr
from fishergraph.costs import (
    KERNEL,
    Size,
    input_learning,
    layer_learning,
    layer_running,
    map_learning,
    row_width,
    size_of,
)
from fishergraph.em.anchors import sample_size
from fishergraph.em.settings import EM
from fishergraph.em.unit import noise_of, unit_rows
from fishergraph.kernel_map import Identity, IdentityMap, Kernel, KernelMap, fit_projection
from fishergraph.layer import Cached, Layer, Run, sampled_rows
from fishergraph.walk import TILE, Walk, WalkMap, fit_centre, unfitted_map, walk_means

# A block of rows that the input map sees at once: bag-of-words rows are never dense beyond it.
_INPUT_ROWS = 1024

Write = Callable[[slice, Any], None]


class Most(NamedTuple):
    """What data can give at most: as many landmarks as rows, as many anchors as members."""

    landmarks: float = math.inf
    anchors: float = math.inf

    @classmethod
    def of(cls, sets: Any) -> Most:
        """The bounds that multisets set."""
        return cls(max(sets.n_sets, 1), max(sets.n_entries, sets.n_points, 1))


NO_LIMIT = Most()


@dataclass(frozen=True)
class Stack:
    """The settings of a stack, and what it learned.

    layer : the settings of the first layer; `Layer.following` are those of the others.
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
        return ["psi0", *(["walk"] if self.walk else []), *(f"psi{t}" for t in range(1, self.n_layers + 1))]

    @property
    def widths(self) -> list[int]:
        """The columns of every stage, once the stack is fitted."""
        assert self.input_map is not None
        walk = [] if self.walk_map is None else [self.walk_map.n_outputs]
        return [self.input_map.n_outputs, *walk, *(layer.n_outputs for layer in self.layers)]

    def layer_at(self, t: int) -> Layer:
        """The settings of layer t = 1, …, T."""
        return self.layer if t == 1 else self.layer.following()

    def maps_layer(self, t: int) -> bool:
        """Whether layer t has its kernel map."""
        return t < self.n_layers or self.layer.kernel.maps_last

    def asked_widths(self, n_features: int, slots: int = 1, most: Most = NO_LIMIT) -> list[int]:
        """The most columns of every stage, for X of so many features and members of so many points side by side."""
        dim = int(min(self.layer.dim, most.landmarks))
        widths = [self.input_kernel.width(dim, n_features)]
        points = n_features if self.reads_counts else widths[0]
        if self.walk is not None:
            walked = self.walk.width(self.layer.dim, n_features)
            widths.append(points := self.layer.kernel.width(dim, walked))
        for t in range(1, self.n_layers + 1):
            layer = self.layer_at(t)
            phi = layer.asked_width(int(min(layer.n_anchors, most.anchors)), slots * points)
            widths.append(points := layer.kernel.width(dim, phi) if self.maps_layer(t) else phi)
        return widths

    def kept(self, per_stage: Sequence[Any]) -> list[Any]:
        """The entries of a list with one per stage, of the stages in the output."""
        return [entry for entry, weight in zip(per_stage, self.block_weights, strict=True) if weight > 0]

    def settings(self) -> Stack:
        """The stack before it was fitted."""
        return replace(self, input_map=None, walk_map=None, layers=())

    def moved(self, move: Callable[[Any], Any]) -> Stack:
        """The fitted stack with its arrays moved."""
        assert self.input_map is not None
        walk_map = None if self.walk_map is None else self.walk_map.moved(move)
        layers = tuple(layer.moved(move) for layer in self.layers)
        return replace(self, input_map=self.input_map.moved(move), walk_map=walk_map, layers=layers)


class Stage:
    """One stage of a pass: its name and width, its values by row blocks, and the points it leaves for the next one.

    `run` computes the values once. `points` are those of the next layer, if the pass keeps them.
    """

    def __init__(self, name: str, n_outputs: int, compute: Callable[[Write], None], points: Any, write_point: Write):
        self.name, self.n_outputs, self.points = name, n_outputs, points
        self._compute, self._write_point, self._done = compute, write_point, False

    def run(self, write: Write | None = None) -> None:
        """Compute the stage; `write(rows, block)` gets its values while a block is in cache."""

        def both(rows: slice, block: Any) -> None:
            self._write_point(rows, block)
            if write is not None:
                write(rows, block)

        if not self._done:
            self._compute(both)
            self._done = True


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
        One for the input map, one for the walk if there is one, and one per layer.
    keep_last : bool, default=False
        Keep the points of every stage, also those that no layer reads.
    """

    def __init__(
        self, stack: Stack, X: Any, sets: Any, run: Run, *, streams: Sequence[Any] | None = None,
        keep_last: bool = False, want_last: bool = True,
    ):  # fmt: skip
        self.stack, self.X, self.sets, self.run = stack, X, sets, run
        self.streams, self.keep_last, self.want_last = streams, keep_last, want_last
        self._phi: Any = None  # of the layer before, whose memory the next one uses

    def stages(self) -> Iterator[Stage]:
        """Yield the stages in order; one that is not run by the caller is run here if the next one needs it."""
        stage = self._input_stage()
        yield stage
        if self.stack.walk is not None:
            stage = self._walk_stage(self.stack.walk)
            yield stage
        for t in range(1, self.stack.n_layers + 1):
            stage.run()
            stage = self._layer_stage(t, stage.points)
            yield stage
        if self.keep_last:
            stage.run()

    # --- ψ_0 ---------------------------------------------------------------------------------------------

    def _input_stage(self) -> Stage:
        stack, run, values = self.stack, self.run, None
        if self.streams is not None:
            with costing(run.progress, "learning input map", input_learning(stack.layer, self.X)):
                input_map, values = self._fit_input(self.streams[0])
            self.stack = stack = replace(stack, input_map=input_map)
        input_map = stack.input_map
        assert input_map is not None

        def compute(write: Write) -> None:
            def block(rows: slice) -> None:
                write(rows, input_map(self._rows(rows)) if values is None else values[rows])

            blocks = self._row_blocks()
            with run.progress("input map", len(blocks)) as bar:
                map_blocks(block, blocks, n_jobs=run.n_jobs, advance=bar.update)

        needed = self.keep_last or (stack.n_layers > 0 and stack.walk is None)
        if stack.reads_counts and needed:
            points = self._dense(IdentityMap(self.X.shape[1]), unit=False)
            return Stage("psi0", input_map.n_outputs, compute, points, _keep_nothing)
        return self._stage("psi0", self.X.shape[0], input_map.n_outputs, compute, keep=needed, least=0.0)

    def _fit_input(self, rng: Any) -> tuple[KernelMap, Any]:
        """ψ_0 learned from a sample of rows, and its values if the sample was all rows and they came with it."""
        kernel, dim, n_jobs = self.stack.input_kernel, self.stack.layer.dim, self.run.n_jobs
        sample = self._sample(rng)
        if sample.shape[0] < self.X.shape[0] or self.keep_last:
            return kernel.fit(sample, dim, rng=rng, n_jobs=n_jobs), None
        return kernel.fit_and_map(sample, dim, self._row_blocks(), rng=rng, n_jobs=n_jobs)

    def _sample(self, rng: Any) -> Any:
        """Rows of X that maps of X are learned from."""
        rows, _ = sampled_rows(self.X.shape[0], self.stack.layer.dim, self.stack.layer.em.max_samples, rng)
        return self._rows(rows)

    def _rows(self, rows: Any) -> Any:
        """Rows of X as the input map sees them."""
        return unit_rows(self.X[rows]) if self.stack.normalize else self.X[rows]

    def _row_blocks(self) -> list[slice]:
        width = 4 * self.X.shape[1]
        return row_blocks(self.X.shape[0], block_rows(self.run.workspace.device, width, _INPUT_ROWS))

    def _dense(self, row_map: KernelMap, *, unit: bool) -> Any:
        """The rows of X, unit vectors or as they are, through a map: dense points."""
        points = self.run.workspace.empty((self.X.shape[0], row_map.n_outputs), self.X.dtype)

        def fill(rows: slice) -> None:
            points[rows] = row_map(unit_rows(self.X[rows]) if unit else self.X[rows])

        map_blocks(fill, self._row_blocks(), n_jobs=self.run.n_jobs)
        return points

    # --- the walk ----------------------------------------------------------------------------------------

    def _walk_stage(self, walk: Walk) -> Stage:
        stack, run, n_rows = self.stack, self.run, self.X.shape[0]
        directions = self._directions(walk) if stack.walk_map is None else stack.walk_map.directions
        means = self._walk_means(walk, directions)
        phi = psi = None
        if self.streams is not None:
            cost = map_learning(n_rows, means.shape[1], stack.layer.dim, stack.layer.em.max_samples)
            with costing(run.progress, "learning walks", cost):
                walk_map, phi, psi = self._fit_walk(directions, means, self.streams[1])
            self.stack = stack = replace(stack, walk_map=walk_map)
        walk_map = stack.walk_map
        assert walk_map is not None

        def compute(write: Write) -> None:
            def block(rows: slice) -> None:
                if psi is not None:
                    return write(rows, psi[rows])
                found = walk_map.phi(means[rows], unit=stack.normalize) if phi is None else phi[rows]
                return write(rows, walk_map.kernel_map(found))

            blocks = _phi_blocks(n_rows, means.shape[1], run)
            with run.progress("walks", len(blocks)) as bar:
                map_blocks(block, blocks, n_jobs=run.n_jobs, advance=bar.update)

        keep = stack.n_layers > 0 or self.keep_last
        return self._stage("walk", n_rows, walk_map.n_outputs, compute, keep=keep, least=None)

    def _directions(self, walk: Walk) -> KernelMap:
        """The leading directions of wide features; narrow ones are averaged as they are."""
        assert self.streams is not None
        n_features = self.X.shape[1]
        width = walk.width(self.stack.layer.dim, n_features)
        if width == n_features:
            return IdentityMap(width)
        return fit_projection(self._sample(self.streams[0]), width, self.streams[0])

    def _walk_means(self, walk: Walk, directions: KernelMap) -> Any:
        points = self._dense(directions, unit=self.stack.normalize)
        engine = self.run.engine(EM())
        with self.run.progress("walking", walk.n_passes(points.shape[1])) as bar:
            return walk_means(points, self.sets, walk, engine=engine, n_jobs=self.run.n_jobs, advance=bar.update)

    def _fit_walk(self, directions: KernelMap, means: Any, rng: Any) -> tuple[WalkMap, Any, Any]:
        """The fitted map, and φ and ψ of all rows if the sample was all rows."""
        layer, run, n_rows = self.stack.layer, self.run, means.shape[0]
        walk_map = unfitted_map(directions, fit_centre(means, layer.em.max_samples, rng))
        if isinstance(layer.kernel, Identity):
            return walk_map, None, None
        rows, whole = sampled_rows(n_rows, layer.dim, layer.em.max_samples, rng)
        sample = means if whole else array_namespace(means).take(means, rows, axis=0)
        phi = array_namespace(means).empty_like(sample)

        def fill(part: slice) -> None:
            phi[part] = walk_map.phi(sample[part], unit=self.stack.normalize)

        blocks = _phi_blocks(sample.shape[0], means.shape[1], run)
        map_blocks(fill, blocks, n_jobs=run.n_jobs)
        if whole and (self.stack.n_layers > 0 or self.want_last):
            kernel_map, psi = layer.kernel.fit_and_map(phi, layer.dim, blocks, rng=rng, n_jobs=run.n_jobs)
        else:
            kernel_map, psi = layer.kernel.fit(phi, layer.dim, rng=rng, n_jobs=run.n_jobs), None
        return replace(walk_map, kernel_map=kernel_map), phi if whole else None, psi

    # --- layers ------------------------------------------------------------------------------------------

    def _layer_stage(self, t: int, points: Any) -> Stage:
        stack, run, sets, cached = self.stack, self.run, self.sets, Cached()
        last, title = t == stack.n_layers, f"layer {t}/{stack.n_layers}"
        if self.streams is not None:
            asked, rng = stack.layer_at(t), self.streams[t + (stack.walk is not None)]
            with costing(run.progress, f"learning {title}", layer_learning(asked, size_of(sets), points.shape[1])):
                layer, cached = asked.fit(
                    points, sets, run, rng, mapped=stack.maps_layer(t), reuse=self._phi,
                    runs=not self.keep_last and (not last or self.want_last),
                )  # fmt: skip
            self._phi = cached.phi
            self.stack = replace(stack, layers=(*stack.layers, layer))
        else:
            layer = stack.layers[t - 1]

        def compute(write: Write) -> None:
            layer.run(points, sets, run, write, cached=cached, title=title)

        keep = not last or self.keep_last
        return self._stage(f"psi{t}", sets.n_sets, layer.n_outputs, compute, keep=keep, least=None)

    def _stage(
        self, name: str, n_rows: int, width: int, compute: Callable[[Write], None], *, keep: bool, least: float | None
    ) -> Stage:
        """A stage whose values become the points of the next one; entries of at most `least` are rounding."""
        if not keep:
            return Stage(name, width, compute, None, _keep_nothing)
        workspace, unit = self.run.workspace, self.stack.unit_points
        points = workspace.empty((n_rows, width), workspace.storage(self.X.dtype))

        def write_point(rows: slice, block: Any) -> None:
            if unit:
                block = unit_rows(block, least=noise_of(block) if least is None else least)
            points[rows] = block

        return Stage(name, width, compute, points, write_point)


def _keep_nothing(rows: slice, block: Any) -> None:
    pass


def _phi_blocks(n_rows: int, width: int, run: Run) -> list[slice]:
    return row_blocks(n_rows, block_rows(run.workspace.device, 4 * width))


def sample_rows(stack: Stack, n_rows: int) -> int:
    """The rows that the maps of a stack are learned from."""
    return sample_size(stack.layer.dim, stack.layer.em.max_samples, n_rows)


def stack_costs(stack: Stack, X: Any, size: Size, *, fitting: bool) -> dict[str, float]:
    """The cost of every part that a pass reports, by its title, in order."""
    (n_rows, n_features), layer = X.shape, stack.layer
    costs = {"learning input map": input_learning(layer, X)} if fitting else {}
    costs["input map"] = n_rows * layer.dim * (row_width(X) + layer.dim + KERNEL)
    widths = stack.asked_widths(n_features, size.slots)
    points = n_features if stack.reads_counts else widths[0]
    if stack.walk is not None:
        walked = stack.walk.width(layer.dim, n_features)
        costs["walking"] = SPARSE * stack.walk.n_passes(walked) * size.n_entries * min(TILE, walked)
        if fitting:
            costs["learning walks"] = map_learning(n_rows, walked, layer.dim, layer.em.max_samples)
        costs["walks"] = float(n_rows * layer.dim * (KERNEL if fitting else KERNEL + walked + layer.dim))
        points = widths[1]
    for t in range(1, stack.n_layers + 1):
        title = f"layer {t}/{stack.n_layers}"
        if fitting:
            costs[f"learning {title}"] = layer_learning(stack.layer_at(t), size, points)
        costs[title] = layer_running(stack.layer_at(t), size, points)
        points = widths[t + (stack.walk is not None)]
    return costs
