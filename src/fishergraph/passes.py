"""One pass of a stack over the data: its stages, one after the other.

A `Pass` runs a stack over some rows, and learns on the way what the stack has not learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from array_api_compat import array_namespace

from fishergraph._errors import FewPointsWarning
from fishergraph._parallel import BLOCK_ROWS, block_rows, map_blocks, row_blocks
from fishergraph._progress import costing
from fishergraph._typing import Array, Rng, Rows, Sets, Write
from fishergraph._warn import each_warning_once
from fishergraph.axes import ScaledMap, fit_axes, fit_scaled, fit_sharpening
from fishergraph.device import LARGE
from fishergraph.em.settings import EM
from fishergraph.em.unit import NOISE, unit_rows
from fishergraph.kernel_map import IdentityMap, KernelMap
from fishergraph.layer import Blocks, Run, sampled_rows
from fishergraph.stack import Stack
from fishergraph.structural import TELLING_APART
from fishergraph.walk import Averages, walk_averages

# A block of rows that the input map sees at once: bag-of-words rows are never dense beyond it.
INPUT_ROWS = 1024

ONE_STEP = EM()  # how averaged features are iterated

Columns = Callable[[Any], Any]  # rows, by a slice or by their numbers → their columns


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
    """One pass of a stack over rows and their multisets; it learns what the stack has not learned.

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
    structural : mapping of str to array, optional
        The structural columns of the rows, by kind.
    streams : sequence of Rng, optional
        One per stage, for those that learn.
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
        structural: Mapping[str, Array] | None = None,
        streams: Sequence[Rng] | None = None,
        keep_last: bool = False,
        want_last: bool = True,
    ):
        self.stack, self.X, self.sets, self.run = stack, X, sets, run
        self.structural = structural or {}
        self.streams: Sequence[Rng] = streams or ()
        self.keep_last, self.want_last = keep_last, want_last
        self._phi: Array | None = None  # of the layer before, whose memory the next one uses
        self._feature_averages: Averages | None = None  # of the axes of X, between "walk" and "smooth"

    def stages(self) -> Iterator[Stage]:
        """Yield the stages in order; one that is not run by the caller is run here if the next one needs it."""
        points = None
        for t, name in enumerate(self.stack.names):
            stage = self.stage(name, points)
            yield stage
            points = None
            if t < self.stack.n_layers or self.keep_last:
                stage.run(self.run)
                points = stage.points
            del stage.blocks, stage.points  # whoever holds the stage does not hold what it read

    def stage(self, name: str, points: Array | None = None) -> Stage:
        """Return a stage, learned if the stack has not; a layer takes `points`, those of the stage before."""
        stack = self.stack
        if name in dict(stack.structure):
            return self._structural_stage(name)
        if name in ("walk", "smooth"):
            return self._feature_stage(name)
        t = stack.names.index(name)
        return self._input_stage() if t == 0 or points is None else self._layer_stage(t, points)

    def _stage(self, name: str, title: str, blocks: Blocks, *, last: bool, noise: float = NOISE) -> Stage:
        """A stage, with memory for its points unless it is the last that has any."""
        workspace, points = self.run.workspace, None
        if self.keep_last or not last:
            shape = (blocks.rows[-1].stop if blocks.rows else 0, blocks.kernel_map.n_outputs)
            points = workspace.empty(shape, workspace.storage(self.X.dtype))
        return Stage(name, title, blocks, points, noise if self.stack.unit_points else None)

    # --- ψ_0 ---------------------------------------------------------------------------------------------

    def _input_stage(self) -> Stage:
        stack, psi, title = self.stack, None, "learning input map"
        rows = self._row_blocks(self.X.shape[0], self.X.shape[1], INPUT_ROWS)
        if stack.input_map is None:
            kernel, rng, n_jobs = stack.input_kernel, self.streams[0], self.run.n_jobs
            with costing(self.run.progress, title, self.run.costs.get(title, 1.0)):
                sample = self._rows(self._sampled(rng))
                if sample.shape[0] < self.X.shape[0] or self.keep_last:
                    input_map = kernel.fit(sample, stack.layer.dim, rng=rng, n_jobs=n_jobs)
                else:
                    input_map, psi = kernel.fit_and_map(sample, stack.layer.dim, rows, rng=rng, n_jobs=n_jobs)
            self.stack = stack = replace(stack, input_map=input_map)
        assert stack.input_map is not None
        blocks = Blocks(rows, self._rows, stack.input_map, all_psi=psi)
        last = stack.n_layers == 0
        if not stack.reads_counts or (last and not self.keep_last):
            return self._stage("psi0", "input map", blocks, last=last, noise=0.0)
        return Stage("psi0", "input map", blocks, self._dense(IdentityMap(self.X.shape[1])), fills=False)

    def _sampled(self, rng: Rng) -> Any:
        """The numbers of some rows to learn from."""
        layer = self.stack.layer
        return sampled_rows(self.X.shape[0], layer.dim, layer.em.max_samples, rng)[0]

    def _rows(self, rows: slice | Array) -> Any:
        """Rows of X as the input map sees them."""
        return unit_rows(self.X[rows]) if self.stack.normalize else self.X[rows]

    def _row_blocks(self, n_rows: int, width: int, size: int = BLOCK_ROWS) -> list[slice]:
        """The blocks of rows of so many columns."""
        return row_blocks(n_rows, block_rows(self.run.workspace.device, 4 * width, size))

    def _dense(self, row_map: KernelMap) -> Any:
        """The rows of X through a map: dense points."""
        points = self.run.workspace.empty((self.X.shape[0], row_map.n_outputs), self.X.dtype)

        def fill(rows: slice) -> None:
            points[rows] = row_map(self.X[rows])

        map_blocks(fill, self._row_blocks(self.X.shape[0], self.X.shape[1], INPUT_ROWS), n_jobs=self.run.n_jobs)
        return points

    # --- layers ------------------------------------------------------------------------------------------

    def _layer_stage(self, t: int, points: Array) -> Stage:
        stack, run, sets = self.stack, self.run, self.sets
        last, title = t == stack.n_layers, f"layer {t}/{stack.n_layers}"
        if len(stack.layers) >= t:
            blocks = stack.layers[t - 1].over(points, sets, run)
        else:
            rng, runs = self.streams[t], not self.keep_last and (not last or self.want_last)
            with costing(run.progress, f"learning {title}", run.costs.get(f"learning {title}", 1.0)):
                layer, blocks = stack.layer_at(t).fit(points, sets, run, rng, runs=runs, memory=self._phi)
            self._phi = blocks.all_phi
            self.stack = replace(stack, layers=(*stack.layers, layer))
        return self._stage(f"psi{t}", title, blocks, last=last)

    # --- columns -----------------------------------------------------------------------------------------

    def _feature_stage(self, name: str) -> Stage:
        """The principal axes of X, averaged: their means through a kernel map, or their sums, sharpened."""
        unit, axes, title = self.stack.normalize, self.stack.axes, "learning axes"
        if axes is None:
            walk, rng = self.stack.walk, self.streams[self.stack.n_layers + 1]
            assert walk is not None
            with costing(self.run.progress, title, self.run.costs.get(title, 1.0)):
                sample = self.X[self._sampled(rng)]
                axes = fit_axes(sample, walk.axes(self.X.shape[1]), walk.whitening, rng, unit=unit)
            self.stack = replace(self.stack, axes=axes)
        if self._feature_averages is None:
            self._feature_averages = self._averaged(partial(self._dense, axes), "walking")
        sums, ratio = self._feature_averages
        if name == "walk":
            return self._mapped_stage(name, lambda rows: sums[rows] * ratio[rows], axes.spread, unit=unit)
        self._feature_averages = None  # the stage alone holds them
        return self._sharpened_stage(name, sums, unit=unit)

    def _structural_stage(self, kind: str) -> Stage:
        """Structural columns: those that tell nodes apart averaged and sharpened, others through a kernel map."""
        columns = self.structural[kind]
        if kind not in TELLING_APART:
            with each_warning_once(silence=(FewPointsWarning,)):  # nobody asked for a number of landmarks
                return self._mapped_stage(kind, columns.__getitem__, None, unit=True)
        if self.stack.walk is not None:
            columns = self._averaged(partial(deepcopy, columns), f"averaging {kind}").sums
        return self._sharpened_stage(kind, columns, unit=True)

    def _averaged(self, make: Callable[[], Any], title: str) -> Averages:
        """The points that `make` returns averaged along walks, in their own memory."""
        run, walk, points = self.run, self.stack.walk, make()
        assert walk is not None
        with run.progress(title, (1 + len(walk.tiles(*points.shape))) * walk.n_steps) as bar:
            engine = run.engine(ONE_STEP)
            return walk_averages(points, self.sets, walk, engine=engine, n_jobs=run.n_jobs, advance=bar.update)

    def _sharpened_stage(self, name: str, sums: Array, *, unit: bool) -> Stage:
        """Sums on their own principal axes, the leading ones alone."""
        stack, number = self.stack, self.stack.names.index(name)
        if len(stack.columns) <= number - stack.n_layers - 1:
            power = 1.0 if stack.walk is None else stack.walk.sharpening
            sample = sums[self._sampled(self.streams[number])]
            learned = fit_sharpening(sample, stack.layer.dim, power, unit=unit)
            self.stack = stack = replace(stack, columns=(*stack.columns, learned))
        rows = self._row_blocks(self.sets.n_sets, sums.shape[1])
        blocks = Blocks(rows, sums.__getitem__, stack.columns[number - stack.n_layers - 1])
        return self._stage(name, name, blocks, last=True)

    def _mapped_stage(self, name: str, columns: Columns, scale: Array | None, *, unit: bool) -> Stage:
        """Columns in a scale, or standardised ones, through a kernel map."""
        stack, number, title, run = self.stack, self.stack.names.index(name), f"learning {name}", self.run
        if len(stack.columns) > number - stack.n_layers - 1:
            fitted: Any = stack.columns[number - stack.n_layers - 1]
            return self._stage(name, name, self._scaled_blocks(columns, fitted), last=True)
        rng, layer, n_rows = self.streams[number], stack.mapping_layer(name), self.sets.n_sets
        with costing(run.progress, title, run.costs.get(title, 1.0)):
            scaled = fit_scaled(columns(self._sampled(rng)), scale, unit=unit)
            whole, empty = self._scaled_blocks(columns, scaled), partial(run.workspace.empty, dtype=self.X.dtype)
            take = partial(self._scaled_blocks, columns, scaled)
            blocks = layer.learn_map(whole, n_rows, take, empty, run, rng, runs=self.want_last)
        self.stack = replace(stack, columns=(*stack.columns, replace(scaled, kernel_map=blocks.kernel_map)))
        return self._stage(name, name, blocks, last=True)

    def _scaled_blocks(self, columns: Columns, scaled: ScaledMap, chosen: Array | None = None) -> Blocks:
        """φ and ψ of columns, of all rows or of the chosen ones, by row blocks."""
        rows = self._row_blocks(self.sets.n_sets if chosen is None else len(chosen), len(scaled.scale))
        return Blocks(
            rows, lambda rows: scaled.phi(columns(rows if chosen is None else chosen[rows])), scaled.kernel_map
        )


def side_by_side(stages: Pass, widths: list[int]) -> Any:
    """√weight · ψ of the kept stages side by side (Eq. 2), written while each block of rows is in cache.

    The array is allocated at the largest widths; if the data gave fewer landmarks it is cut at the end.
    """
    stack, workspace, output, used = stages.stack, stages.run.workspace, None, 0
    for stage, weight in zip(stages.stages(), stack.block_weights, strict=True):
        if weight == 0:
            continue
        if output is None:
            shape, dtype = (stages.sets.n_sets, sum(stack.kept(widths))), stages.X.dtype
            is_large = shape[0] * shape[1] * dtype.itemsize >= LARGE
            output = (workspace.large_output if is_large else workspace.empty_output)(shape, dtype)
        first, used = used, used + stage.blocks.kernel_map.n_outputs
        columns, scale = output[:, first:used], math.sqrt(weight)
        stage.run(stages.run, partial(_write, columns, scale))
    result = workspace.result(output)
    if used == result.shape[1]:
        return result
    return array_namespace(result).asarray(result[:, :used], copy=True)


def _write(columns: Array, scale: float, rows: slice, block: Array) -> None:
    columns[rows] = block if scale == 1 else block * scale
