"""`StoredPass`: a pass of a stack whose rows, multisets and values are in files.

Every array it writes is a `Task`: a name and numbered parts, each a pure function of files. A part can be computed in a
thread, another process or another machine, and its bits do not depend on where. The functions of row blocks, and their
borders, are those of `fishergraph.stack`, so the values are those of a run in memory, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from fishergraph._parallel import row_blocks
from fishergraph._progress import silent
from fishergraph._typing import Rng, Rows, Sets
from fishergraph.em.unit import NOISE
from fishergraph.kernel_map import IdentityMap
from fishergraph.layer import Blocks, Layer, Run
from fishergraph.passes import INPUT_ROWS, ONE_STEP, Pass, Stage
from fishergraph.scale.arrays import FileArray, checksum
from fishergraph.scale.budget import Budget
from fishergraph.scale.run_folder import PartLog, RunFolder, parts_of
from fishergraph.scale.stage_rows import READ_ROWS, Source, points_of
from fishergraph.scale.tiles import COLUMN_ROWS, ColumnTiles, TiledLayer, check_tiled, grouped_parts, tile_shape
from fishergraph.stack import Stack
from fishergraph.walk import Averages, member_weights, walked

PART_BYTES = 2**24  # of the rows of a part
_AVERAGING = "averaging "  # the title of averages of structural columns, before their kind

Advance = Callable[[int], Any]


@dataclass(frozen=True)
class Task:
    """An array of a run, and how its parts are computed.

    name : of the array.
    title : in progress bars.
    n_parts : the number of parts.
    steps : part → how many steps of progress it has.
    compute : (part, advance) → the checksum of what was written.
    array : what is written.
    together : parts that share work, and are best computed by the same worker.
    borders : the first row of every part, and the number of rows; empty if parts are not rows.
    """

    name: str
    title: str
    n_parts: int
    steps: Callable[[int], int]
    compute: Callable[[int, Advance], int]
    array: FileArray
    together: list[list[int]] = field(default_factory=list)
    borders: tuple[int, ...] = ()


Perform = Callable[[Task, PartLog], None]


class StoredPass(Pass):
    """One pass of a stack over the rows of a store.

    Parameters
    ----------
    stack : Stack
        The settings, and what was learned.
    X : Rows
        The features, in files.
    sets : Sets
        The multisets, in files or in memory.
    run : Run
        Threads and progress.
    folder : RunFolder
        Where arrays are written.
    budget : Budget
        What may be held in memory.
    perform : callable
        (task, log) → computes the parts that are missing.
    structural : mapping of str to FileArray
        Structural columns by kind.
    streams : sequence of Rng
        One per stage.
    part_bytes : int, optional
        Of the rows of a part.
    """

    def __init__(
        self,
        stack: Stack,
        X: Rows,
        sets: Sets,
        run: Run,
        *,
        folder: RunFolder,
        budget: Budget,
        perform: Perform,
        structural: Mapping[str, Any],
        streams: Sequence[Rng] = (),
        part_bytes: int | None = None,
    ):
        super().__init__(stack, X, sets, run, structural=structural, streams=streams)
        self.folder, self.budget, self.perform = folder, budget, perform
        self.part_bytes = PART_BYTES if part_bytes is None else part_bytes
        self._held: tuple[int, Any] = (0, None)  # a layer, and its points

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return np.dtype(self.X.dtype)

    def task(self, name: str) -> Task:
        """Return the task that writes the values of a stage; the stage is learned if it was not."""
        stage, points = self._learned_stage(name)
        array = self.folder.array(name, (self.sets.n_sets, stage.blocks.kernel_map.n_outputs), self.dtype)
        group_rows = points.group_rows if isinstance(points, ColumnTiles) else 0
        return self._row_task(name, stage.title, stage.blocks, array, array, group_rows)

    def opened(self, name: str) -> Task:
        """Return the task that writes any array; the maps and arrays that it needs are there."""
        if name in self.stack.names:
            return self.task(name)
        if name == "axes":
            return self._axes_task()[0]
        if name.startswith("points"):
            return self._points_task(int(name.removeprefix("points")))[0]
        return self._walk_task(name.removesuffix("-averaged"), _AVERAGING)[0]

    def learned(self, name: str) -> None:
        """Learn a stage whose values are not wanted."""
        self._learned_stage(name)

    def _learned_stage(self, name: str) -> tuple[Stage, Any]:
        """A stage, and its points if it is a layer."""
        t = self.stack.names.index(name)
        is_layer = 1 <= t <= self.stack.n_layers
        if not is_layer:
            self._held = (0, None)  # the points of a layer take no memory while columns are averaged
        points = self._points(t) if is_layer else None
        return self.stage(name, points), points

    def log(self, task: Task) -> PartLog:
        """Return the log of a task."""
        return self.folder.log(task.name, task.n_parts)

    def _stage(self, name: str, title: str, blocks: Blocks, *, last: bool, noise: float = NOISE) -> Stage:
        """A stage; its points are read from its file when a layer takes them."""
        return Stage(name, title, blocks, None)

    def _dense(self, row_map: Any) -> Any:
        """Nothing: dense points are read from files when a layer takes them."""

    def _row_task(self, name: str, title: str, blocks: Blocks, array: FileArray, out: Any, group_rows: int = 0) -> Task:
        """The task that writes ψ of row blocks to rows of `out`, which lies in the file of `array`."""
        width, run = out.shape[1], replace(self.run, progress=silent)
        parts = parts_of(blocks.rows, width * out.dtype.itemsize, self.part_bytes)
        borders = (0, *(part[-1].stop for part in parts))

        def compute(part: int, advance: Advance) -> int:
            start, stop = parts[part][0].start, parts[part][-1].stop
            buffer = np.empty((stop - start, width), out.dtype)

            def fill(rows: slice, values: Any) -> None:
                buffer[rows.start - start : rows.stop - start] = values

            replace(blocks, rows=parts[part]).write(fill, run, title)
            advance(len(parts[part]))
            out[start:stop] = buffer
            return checksum(buffer)

        together = grouped_parts(parts, group_rows)
        return Task(name, title, len(parts), lambda part: len(parts[part]), compute, array, together, borders)

    # --- points of layers ----------------------------------------------------------------------------------

    def _layer_stage(self, t: int, points: Any) -> Stage:
        layer = self.stack.layer
        if isinstance(points, ColumnTiles):
            self.stack = _over_tiles(self.stack)
        stage = super()._layer_stage(t, cast(Any, points))
        self.stack = _over_rows(self.stack, layer)
        return stage

    def _points(self, t: int) -> Any:
        """The points of layer t: in memory, or in tiles of columns."""
        if self._held[0] != t:
            self._held = (t, None)  # the memory of the layer before is free first
            source, whole = self._point_source(t), slice(0, self.sets.n_points)
            is_whole = self.budget.tiles[t] is None
            self._held = (t, source.gathered(whole, self.run.n_jobs) if is_whole else self._tiled(t))
        return self._held[1]

    def _point_source(self, t: int) -> Source:
        """The rows that become the points of layer t, and how."""
        return points_of(self.stack, t, self.X, self.folder.opened)

    def _tiled(self, t: int) -> ColumnTiles:
        check_tiled(self.stack.layer_at(t))
        task, tiles = self._points_task(t)
        self.perform(task, self.log(task))
        return tiles

    def _points_task(self, t: int) -> tuple[Task, ColumnTiles]:
        """The task that writes the points of layer t in tiles, and the tiles."""
        source, width = self._point_source(t), self.budget.tiles[t]
        assert width is not None
        shape = source.rows.shape
        tiles = self._column_tiles(f"points{t}", shape, width, self.budget.group_rows[t])
        blocks = Blocks(row_blocks(shape[0], READ_ROWS), source.__getitem__, IdentityMap(shape[1]))
        return self._row_task(f"points{t}", f"points {t}", blocks, tiles.array, tiles), tiles

    def _column_tiles(self, name: str, shape: tuple[int, int], width: int, group_rows: int = 1) -> ColumnTiles:
        """A matrix of the work folder in tiles of columns."""
        tiles = tile_shape(*shape, min(width, shape[1]))
        self.folder.forget_unless(name, tiles)
        array = self.folder.array(name, tiles, self.dtype, work=True)
        return ColumnTiles(array, shape, group_rows, self.part_bytes)

    # --- averaged columns ----------------------------------------------------------------------------------

    def _averaged(self, make: Callable[[], Any], title: str) -> Averages:
        """Averages in files: of the axes of X, or of structural columns. The tiles are averaged one by one."""
        kind = "axes" if title == "walking" else title.removeprefix(_AVERAGING)
        task, averages = self._walk_task(kind, title)
        log = self.log(task)
        if not log.is_complete:
            if kind == "axes":
                axes = self._axes_task()[0]
                self.perform(axes, self.log(axes))
            self.perform(task, log)
        return averages

    def _axes_task(self) -> tuple[Task, ColumnTiles]:
        """The task that writes the rows of X on their principal axes, and its tiles."""
        axes = self.stack.axes
        assert axes is not None
        shape = self.sets.n_sets, axes.n_outputs
        tiles = self._column_tiles("axes", shape, self.budget.averaged_tile(axes.n_outputs))
        rows = self._row_blocks(self.X.shape[0], self.X.shape[1], INPUT_ROWS)
        blocks = Blocks(rows, lambda rows: axes(self.X[rows]), IdentityMap(axes.n_outputs))
        return self._row_task("axes", "axes", blocks, tiles.array, tiles), tiles

    def _walk_task(self, kind: str, title: str) -> tuple[Task, Averages]:
        """The task that averages the axes of X or structural columns, and the averages.

        The first part is what the means are of the sums, each other part a tile of the sums.
        """
        axes = self.stack.axes if kind == "axes" else None
        width = self.structural[kind].shape[1] if axes is None else axes.n_outputs
        tile, name = self.budget.averaged_tile(width), f"{kind}-averaged"
        source = _Columns(self.structural[kind], tile) if axes is None else self._axes_task()[1]
        sums = self._column_tiles(name, (self.sets.n_sets, width), tile)
        ratio = self.folder.array(f"{kind}-ratio", (self.sets.n_sets, 1), self.dtype, work=True)
        run, walk = self.run, self.stack.walk
        assert walk is not None
        engine = run.engine(ONE_STEP)
        weights: list[Any] = []

        def compute(part: int, advance: Advance) -> int:
            if not weights:
                weights.append(member_weights(np.empty(0, self.dtype), self.sets))
            (w,) = weights
            if part == 0:
                values = w / walked(w, self.sets, walk, engine, run.n_jobs, advance)
                ratio[:] = values
                ratio.sync()
            else:
                tile = source.tile(part - 1)
                tile *= w
                values = walked(tile, self.sets, walk, engine, run.n_jobs, advance)
                values /= w
                sums.put(part - 1, values)
            return checksum(values)

        together = [[part] for part in range(sums.n_tiles + 1)]
        task = Task(name, title, len(together), lambda part: walk.n_steps, compute, sums.array, together)
        return task, Averages(sums, ratio)


@dataclass(frozen=True)
class _Columns:
    """Tiles of the columns of an array of rows."""

    array: Any
    width: int

    def tile(self, k: int) -> np.ndarray:
        """A tile of all rows, in memory."""
        n_rows, n_columns = self.array.shape
        columns = slice(k * self.width, min((k + 1) * self.width, n_columns))
        out = np.empty((n_rows, columns.stop - columns.start), self.array.dtype)
        for rows in row_blocks(n_rows, COLUMN_ROWS):
            out[rows] = self.array[rows][:, columns]
        return out


def _over_tiles(stack: Stack) -> Stack:
    """The stack whose layers read tiles of columns."""
    return replace(stack, layer=TiledLayer.of(stack.layer), layers=tuple(map(TiledLayer.of, stack.layers)))


def _over_rows(stack: Stack, layer: Layer) -> Stack:
    """The stack whose layers read whole rows, and whose first layer has these settings."""
    layers = (fitted.plain() if isinstance(fitted, TiledLayer) else fitted for fitted in stack.layers)
    return replace(stack, layer=layer, layers=tuple(layers))
