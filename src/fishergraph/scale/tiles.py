"""Points whose columns are read a few at a time, and the layer that does so: for points that do not fit into memory.

    μ_vj[tile] = Σ_u a_vu α_uj x_u[tile] / Σ_u a_vu α_uj

The columns of the means do not depend on each other once the responsibilities are known. So the points are kept as
tiles of a few columns, each of all nodes. The means of a group of rows are computed tile by tile: every tile is read in
order, and its rows are gathered in memory. The bits are those of one pass over whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from threading import Lock
from typing import Any

import numpy as np

from fishergraph._errors import InputError
from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._typing import Sets
from fishergraph.em.means import EMMeans, Scored, block_means, score_points
from fishergraph.layer import Blocks, Layer, Run, SplitLayer
from fishergraph.ops import Responsibilities
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.run_folder import parts_of

SCORED_ROWS = 2**16  # rows that are scored at once
COLUMN_ROWS = 2**16  # whole rows whose columns are read at once
_MEAN_ROWS = 2048


class ColumnTiles:
    """A matrix in a file as tiles of columns, one after the other; rows are read and written by slices.

    Parameters
    ----------
    array : FileArray of shape (n_tiles * n_rows, tile)
        The tiles; the last one is padded with zeros.
    shape : tuple of int
        Rows and columns of the matrix.
    group_rows : int
        Rows whose means are computed together.
    part_bytes : int
        Of a part of what is computed from the matrix.
    """

    ndim = 2

    def __init__(self, array: FileArray, shape: tuple[int, int], group_rows: int = 2**16, part_bytes: int = 2**24):
        self.array, self.shape, self.group_rows, self.part_bytes = array, shape, group_rows, part_bytes
        self.dtype, self.width = array.dtype, array.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_tiles(self) -> int:
        """The number of tiles."""
        return -(-self.shape[1] // self.width)

    def columns(self, k: int) -> slice:
        """The columns of a tile."""
        return slice(k * self.width, min((k + 1) * self.width, self.shape[1]))

    def tile(self, k: int) -> np.ndarray:
        """A tile of all rows, in memory."""
        rows = self.array[k * len(self) : (k + 1) * len(self)]
        used = self.columns(k)
        width = used.stop - used.start
        return rows if width == self.width else np.ascontiguousarray(rows[:, :width])

    def put(self, k: int, values: np.ndarray) -> None:
        """Write a tile of all rows."""
        if values.shape[1] < self.width:
            values = np.pad(values, ((0, 0), (0, self.width - values.shape[1])))
        self.array[k * len(self) : (k + 1) * len(self)] = values

    @contextmanager
    def filling(self, k: int, rows: slice) -> Iterator[np.ndarray]:
        """Memory for some rows of a tile, which are written when it is left."""
        used = self.columns(k)
        padded = np.zeros((rows.stop - rows.start, self.width), self.dtype)
        values = padded if used.stop - used.start == self.width else padded[:, : used.stop - used.start].copy()
        yield values
        padded[:, : values.shape[1]] = values
        self.array[k * len(self) + rows.start : k * len(self) + rows.stop] = padded

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Whole rows, by a slice or by their numbers."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            out = np.empty((max(stop - start, 0), self.shape[1]), self.dtype)
            keys = [slice(k * len(self) + start, k * len(self) + stop) for k in range(self.n_tiles)]
        else:
            rows = np.asarray(rows)
            out = np.empty((len(rows), self.shape[1]), self.dtype)
            keys = [k * len(self) + rows for k in range(self.n_tiles)]
        for k, key in enumerate(keys):
            used = self.columns(k)
            out[:, used] = self.array[key][:, : used.stop - used.start]
        return out

    def __setitem__(self, rows: slice, values: np.ndarray) -> None:
        start, stop, _ = rows.indices(len(self))
        for k in range(self.n_tiles):
            part = values[:, self.columns(k)]
            if part.shape[1] < self.width:
                part = np.pad(part, ((0, 0), (0, self.width - part.shape[1])))
            self.array[k * len(self) + start : k * len(self) + stop] = part


def tile_shape(n_rows: int, n_columns: int, width: int) -> tuple[int, int]:
    """The shape of the array that holds the tiles of a matrix."""
    return -(-n_columns // width) * n_rows, width


@dataclass(frozen=True, repr=False)
class TiledLayer(SplitLayer):
    """A layer over `ColumnTiles`; the bits are those of `Layer` over the same points in memory."""

    kinds: int = 1

    @classmethod
    def of(cls, layer: Layer) -> TiledLayer:
        """Return the same layer over tiles."""
        kinds = layer.kinds if isinstance(layer, SplitLayer) else 1
        return cls(**{field.name: getattr(layer, field.name) for field in fields(Layer)}, kinds=kinds)

    def plain(self) -> Layer:
        """Return the same layer over points in memory."""
        own = {field.name: getattr(self, field.name) for field in fields(Layer)}
        return Layer(**own) if self.kinds == 1 else SplitLayer(**own, kinds=self.kinds)

    def score(self, points: Any, sets: Sets, run: Run) -> Scored:
        """The responsibilities of all points, which are read in order."""
        parts = row_blocks(len(points), SCORED_ROWS)
        alpha: Any = None
        for rows in parts:
            block = score_points(self.family, points[rows], self.theta, n_jobs=run.n_jobs).alpha
            if alpha is None:
                shape = (len(points), block[0].shape[1])
                alpha = Responsibilities(*(np.empty(shape, values.dtype) for values in block))
            for whole, values in zip(alpha, block, strict=True):
                whole[rows] = values
        return Scored(points, alpha)

    def over_scored(self, points: Any, scored: Scored | None, sets: Sets, run: Run) -> Blocks:
        assert scored is not None
        assert self.kernel_map is not None
        rows = self._row_blocks(sets, points.shape[1], run.workspace.device, gathers=False)
        groups = _Groups(self, points, scored, sets, run, rows)
        return Blocks(rows, groups.phi, self.kernel_map)


class _Groups:
    """φ of row blocks, from means that are computed for a group of consecutive ones."""

    def __init__(self, layer: TiledLayer, points: ColumnTiles, scored: Scored, sets: Sets, run: Run, rows: list[slice]):
        self.layer, self.points, self.scored, self.sets, self.run = layer, points, scored, sets, run
        assert layer.kernel_map is not None
        parts = parts_of(rows, layer.kernel_map.n_outputs * points.dtype.itemsize, points.part_bytes)
        self._groups = list(_row_groups(parts, points.group_rows))
        self._of = {block.start: k for k, group in enumerate(self._groups) for block in group}
        self._lock, self._held = Lock(), (-1, slice(0, 0), None)

    def phi(self, rows: slice) -> Any:
        """φ of a row block, (set, coordinate)."""
        group = self._of[rows.start]
        with self._lock:
            if self._held[0] != group:
                self._held = (-1, slice(0, 0), None)  # its memory is free before the next is taken
                blocks = self._groups[group]
                span = slice(blocks[0].start, blocks[-1].stop)
                self._held = (group, span, self._means(span))
            _, span, means = self._held
        assert means is not None
        layer, kinds = self.layer, self.layer.kinds
        part = slice(kinds * (rows.start - span.start), kinds * (rows.stop - span.start))
        phi = layer.family.block_phi(
            means.means[part].copy(), means.mass[part], layer.theta, root=layer.root, prior=layer.em.prior
        )
        if layer.reading == "both":
            from fishergraph.embedding import append_counts

            phi = append_counts(phi, means.mass[part])
        return phi.reshape(rows.stop - rows.start, kinds * phi.shape[1])

    def _means(self, span: slice) -> EMMeans:
        """The means and masses of consecutive sets, those of all kinds one after the other, tile by tile."""
        anchors = self.layer.theta.anchors
        means = np.empty((self.layer.kinds * (span.stop - span.start), *anchors.shape), anchors.dtype)
        found = EMMeans(means, np.empty(means.shape[:2], anchors.dtype))
        for k in range(self.points.n_tiles):
            self._fill(found, span, k)
        return found

    def _fill(self, found: EMMeans, span: slice, k: int) -> None:
        """Compute the columns of a tile, which is not in memory any more when the next one is read."""
        layer, run, tile, columns = self.layer, self.run, self.points.tile(k), self.points.columns(k)
        origin, engine = np.ascontiguousarray(layer.theta.anchors[:, columns]), run.engine(layer.em)

        def fill(rows: slice) -> None:
            sets = self.sets.block(slice(span.start + rows.start, span.start + rows.stop)).apart()
            part = slice(layer.kinds * rows.start, layer.kinds * rows.stop)
            shape = (part.stop - part.start, len(origin), origin.shape[1])
            out = EMMeans(np.empty(shape, found.means.dtype), found.mass[part])
            steps: dict[str, Any] = {"variance": layer.theta.variance, "prior": layer.em.prior}
            block_means(engine, tile, self.scored.alpha, sets, origin, out=out, **steps)
            found.means[part, :, columns] = out.means

        map_blocks(fill, row_blocks(span.stop - span.start, _MEAN_ROWS), n_jobs=run.n_jobs)


def check_tiled(layer: Layer) -> None:
    """Raise unless the columns of the means do not depend on each other."""
    if layer.em.n_iter > 1 or not layer.em.is_posterior or not layer.family.fused or layer.reading not in _READINGS:
        raise InputError(
            parameter="memory",
            expected="hold the points of a layer with these settings",
            got="less, and only one iteration of the default em and family reads a few columns at a time",
            advice="allow more memory, or use the default em and family",
        )


_READINGS = ("means", "both")


def grouped_parts(parts: list[list[slice]], group_rows: int) -> list[list[int]]:
    """The numbers of consecutive parts whose means are computed together, which have at most so many rows."""
    groups: list[list[int]] = []
    for number, part in enumerate(parts):
        if not groups or part[-1].stop - parts[groups[-1][0]][0].start > group_rows:
            groups.append([])
        groups[-1].append(number)
    return groups


def _row_groups(parts: list[list[slice]], group_rows: int) -> Iterator[list[slice]]:
    """Row blocks whose means are computed together: whole parts, or pieces of one."""
    for numbers in grouped_parts(parts, group_rows):
        yield from _grouped([rows for number in numbers for rows in parts[number]], group_rows)


def _grouped(rows: list[slice], group_rows: int) -> Iterator[list[slice]]:
    """Consecutive row blocks with at most so many rows together, and one block at least."""
    group: list[slice] = []
    for block in rows:
        if group and block.stop - group[0].start > group_rows:
            yield group
            group = []
        group.append(block)
    if group:
        yield group
