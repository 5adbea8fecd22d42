"""ψ of chosen rows of a finished run, without the other rows: to check them, and to compute those that changed.

The rows are computed by the functions of the full run, from the same points and multisets, in blocks of chosen rows.
Only the members of these rows are read. Products of matrices may give a row other bits in another block: `exact_rows`
finds out whether they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fishergraph._parallel import map_blocks, row_blocks
from fishergraph._records import unchecked
from fishergraph._typing import Sets
from fishergraph.device import aligned_empty
from fishergraph.em.means import Scored, held_statistics, score_points
from fishergraph.em.unit import NOISE, unit_rows
from fishergraph.layer import Blocks, Layer, Run
from fishergraph.multiset import Multisets
from fishergraph.multiset.split import split_sets
from fishergraph.ops.unit_rows.numba import unit_rows_into
from fishergraph.passes import INPUT_ROWS
from fishergraph.stack import Stack

LEAST_ROOM = 2**26  # bytes of the points of a batch
READ_ROWS = 4096  # that are read at once
# take(k, φ, ψ) of the k-th group of rows
Take = Callable[[int, Any, Any], Any]


@dataclass(frozen=True)
class Source:
    """Rows in files that become points.

    rows : an array that is read by slices and by numbers of rows.
    noise : of `unit_rows`, by which rows become points; None if they stay as they are.
    """

    rows: Any
    noise: float | None = None

    def __getitem__(self, numbers: Any) -> Any:
        rows = self._dense(numbers)
        return rows if self.noise is None else unit_rows(rows, noise=self.noise)

    def write(self, numbers: Any, out: np.ndarray) -> None:
        """Write the points of some rows to an array."""
        rows = self._dense(numbers)
        if self.noise is None:
            out[:] = rows
        else:
            unit_rows_into(rows, rows.dtype.type(self.noise * float(np.finfo(rows.dtype).eps)), out)

    def _dense(self, numbers: Any) -> Any:
        rows = self.rows[numbers]
        return rows.toarray() if hasattr(rows, "toarray") else rows

    def gathered(self, numbers: np.ndarray | slice, n_jobs: int | None) -> np.ndarray:
        """The points of many rows, read by several threads."""
        n = numbers.stop - numbers.start if isinstance(numbers, slice) else len(numbers)
        points = aligned_empty((n, self.rows.shape[1]), self.rows.dtype)

        def fill(rows: slice) -> None:
            if isinstance(numbers, slice):
                self.write(slice(numbers.start + rows.start, numbers.start + rows.stop), points[rows])
            else:
                self.write(numbers[rows], points[rows])

        map_blocks(fill, row_blocks(n, READ_ROWS), n_jobs=n_jobs)
        return points


def points_of(stack: Stack, t: int, X: Any, values: Callable[[str], Any]) -> Source:
    """The points of layer t, from X or from the values of the stage before."""
    if t == 1 and stack.reads_counts:
        return Source(X)
    noise = 0.0 if t == 1 else NOISE
    return Source(values(f"psi{t - 1}"), noise if stack.unit_points else None)


class InputRows:
    """ψ_0 of chosen rows.

    Parameters
    ----------
    stack : Stack
        The fitted stack.
    X : Rows
        The features, in files.
    run : Run
        Threads.
    """

    title = "input map"

    def __init__(self, stack: Stack, X: Any, run: Run):
        self.stack, self.X, self.run = stack, X, run

    def blocks(self) -> list[slice]:
        """The row blocks of a run over all rows."""
        return row_blocks(self.X.shape[0], INPUT_ROWS)

    @property
    def is_cut(self) -> bool:
        """Whether blocks have other heights than those of `row_blocks`."""
        return False

    def compute(self, groups: Sequence[np.ndarray], take: Take) -> None:
        """Compute ψ of groups of rows, each as one block, and hand it on."""
        kernel_map: Any = self.stack.input_map

        def block(k: int) -> None:
            found = self.X[groups[k]]
            x = unit_rows(found) if self.stack.normalize else found
            take(k, x, kernel_map(x))

        map_blocks(block, range(len(groups)), n_jobs=self.run.n_jobs)


class LayerRows:
    """ψ of chosen rows of a layer.

    Parameters
    ----------
    layer : Layer
        The fitted layer.
    source : Source
        Its points.
    sets : Sets
        The multisets, in files or in memory.
    run : Run
        Threads.
    room : int
        Bytes that points may take.
    """

    def __init__(self, layer: Layer, source: Source, sets: Any, run: Run, room: int):
        self.layer, self.source, self.sets, self.run = layer, source, sets, run
        self.room = max(room, LEAST_ROOM)
        self.width: int = source.rows.shape[1]
        family = layer.family
        self.gathers = not (family.fused or held_statistics(family, sets.n_points, self.width))
        # The responsibilities of a point are computed beside those of others unless they are compiled loops.
        self.all_points = not self.gathers and not (family.fused and family.is_posterior)
        self._all: tuple[np.ndarray, Scored] | None = None  # the points and their statistics, if all are needed

    def blocks(self) -> list[slice]:
        """The row blocks of a run over all rows."""
        return self.layer._row_blocks(self.sets, self.width, "cpu", gathers=self.gathers)

    @property
    def is_cut(self) -> bool:
        """Whether blocks have other heights than those of `row_blocks`."""
        return self.gathers or (self.layer.em.n_iter > 1 and not self.layer.family.fused)

    def compute(self, groups: Sequence[np.ndarray], take: Take) -> None:
        """Compute ψ of groups of rows, each as one block, and hand it on."""
        done = 0
        for batch in self._batches(groups):
            rows = np.concatenate(batch)
            points, scored, sets = self._points(self.sets.take(rows))
            blocks: Blocks = self.layer.over_scored(points, scored, sets, self.run)
            self._map(blocks, batch, partial(_shifted, take, done))
            done += len(batch)

    def _map(self, blocks: Blocks, batch: list[np.ndarray], take: Take) -> None:
        ends = np.cumsum([len(rows) for rows in batch]).tolist()
        slices = [slice(end - len(rows), end) for end, rows in zip(ends, batch, strict=True)]

        def block(k: int) -> None:
            phi = blocks.phi(slices[k])
            take(k, phi, blocks.kernel_map(phi))

        map_blocks(block, range(len(batch)), n_jobs=self.run.n_jobs)

    def _batches(self, groups: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
        """Groups whose members fit into memory together, and one at least."""
        row_bytes = self.width * self.source.rows.dtype.itemsize
        most = self.room // row_bytes
        if self.all_points or self.sets.n_points <= most:
            if groups:
                yield list(groups)
            return
        batch: list[np.ndarray] = []
        held = 0
        for rows in groups:
            size = int((self.sets.indptr[rows + 1] - self.sets.indptr[rows]).sum())
            if batch and held + size > most:
                yield batch
                batch, held = [], 0
            batch.append(rows)
            held += size
        if batch:
            yield batch

    def _points(self, sets: Multisets) -> tuple[np.ndarray, Scored | None, Sets]:
        """The points of the members of some sets, their statistics, and these sets over them."""
        if self.all_points:
            if self._all is None:
                points = self.source.gathered(slice(0, self.sets.n_points), self.run.n_jobs)
                self._all = points, self._score(points)
            return *self._all, sets
        marks = np.zeros(self.sets.n_points, bool)
        marks[sets.indices] = True
        members = np.flatnonzero(marks)
        if len(members) == 0:
            members = np.zeros(1, np.int64)  # a layer reads the type of its points
        places = np.cumsum(marks, dtype=sets.indices.dtype)
        places -= 1
        points = self.source.gathered(members, self.run.n_jobs)
        parts = sets.apart()
        local = unchecked(Multisets, parts.indptr, places[parts.indices], parts.weights, len(points))
        return points, None if self.gathers else self._score(points), split_sets(local, sets.kinds)

    def _score(self, points: np.ndarray) -> Scored:
        return score_points(self.layer.family, points, self.layer.theta, n_jobs=self.run.n_jobs)


def _shifted(take: Take, first: int, k: int, phi: Any, psi: Any) -> None:
    """Hand on group k of a batch that begins with the group `first`."""
    take(first + k, phi, psi)


StageRows = InputRows | LayerRows


def stage_rows(stack: Stack, t: int, X: Any, sets: Any, values: Callable[[str], Any], run: Run, room: int) -> StageRows:
    """The rows of stage t = 0, …, T, from X and the values of the stages before."""
    if t == 0:
        return InputRows(stack, X, run)
    return LayerRows(stack.layers[t - 1], points_of(stack, t, X, values), sets, run, room)


def different_rows(rows: np.ndarray, psi: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """The numbers of the rows whose bytes differ."""
    if len(rows) == 0:
        return rows
    same = np.ascontiguousarray(psi).view(np.uint8) == np.ascontiguousarray(stored).view(np.uint8)
    return rows[~same.reshape(len(rows), -1).all(axis=1)]
