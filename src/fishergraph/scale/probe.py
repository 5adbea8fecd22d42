"""What a unit of work takes on this machine, measured in a few seconds with arrays as large as those of a run.

Members of multisets are gathered from all over the points, so what matters is whether these fit into the caches: points
are as many as in the run, up to a quarter of a gigabyte. With a store the members are its own.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._parallel import map_blocks, n_threads, one_blas_thread, row_blocks
from fishergraph._records import unchecked
from fishergraph.em.kmeans import kmeans
from fishergraph.em.means import block_means
from fishergraph.em.unit import unit_rows
from fishergraph.graph import as_graph
from fishergraph.kernel_map import NystromMap
from fishergraph.layer import Run
from fishergraph.multiset import Multisets
from fishergraph.multiset.split import split_sets
from fishergraph.ops import Responsibilities
from fishergraph.passes import ONE_STEP
from fishergraph.scale.arrays import FileArray, checksum
from fishergraph.scale.budget import Budget
from fishergraph.scale.sets import StoredSets, open_sets, sets_folder
from fishergraph.scale.sizes import RunSize
from fishergraph.scale.stored_pass import PART_BYTES
from fishergraph.structural import fit_structure

_POINT_BYTES = 2**28  # of the points that are gathered from
_WORK = 3 * 10**8  # multiplications of a measurement
_MOST_ENTRIES, _MOST_MEMBERS = 2**20, 2**14
_BLOCK, _WALK_BLOCK = 512, 2048  # rows of a block, as in layers and in averaging
_REPEATS, _SECONDS = 3, 0.4  # of a measurement
_HURRY = 4.0  # seconds after which everything that is left is done once
_SMALL = 4096  # rows that something is learned from
_WRITTEN_PARTS, _FILE_PARTS = 6, 18  # of a file: so many are written to the disk, and so many are read
_READ_PARTS, _ROW_BYTES = 6, 1024  # parts that are read at once, and the bytes of their rows
_STRUCTURE_NODES, _STRUCTURE_DEGREE = 20_000, 100  # at most


@dataclass(frozen=True)
class Rates:
    """Seconds of units of work on this machine, on all threads of a run.

    maps : columns of a row → of unit vectors and the kernel map, per row.
    layers : layer t → of its responsibilities, means, φ and ψ, per row.
    gathers : (columns, anchors) → of the means of a tile, per row.
    multiplication : of k-means.
    structure : of structural columns, per node.
    written, cached, read : per byte: written until it is on the disk, read from the memory of the system, and read from
        the disk.
    sought : of one row of a sample in a file.
    threads : how many there were.
    seconds : of the measurements.
    """

    maps: Mapping[int, float]
    layers: Mapping[int, float]
    gathers: Mapping[tuple[int, int], float]
    multiplication: float
    structure: float
    written: float
    cached: float
    read: float
    sought: float
    threads: int
    seconds: float


def probe(size: RunSize, budget: Budget, folder: Path, *, clock: Callable[[], float] = perf_counter) -> Rates:
    """Measure what a run needs to know.

    Parameters
    ----------
    size : RunSize
        The run.
    budget : Budget
        How its arrays are held.
    folder : Path
        An existing folder on the disk of the run.
    clock : callable, optional
        The time in seconds.

    Returns
    -------
    Rates
        Seconds per unit.
    """
    start = perf_counter()
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random points may be few, or far from a family
        return _Probe(size, budget, clock, start).rates(folder)


@dataclass
class _Probe:
    """The measurements of one run."""

    size: RunSize
    budget: Budget
    clock: Callable[[], float]
    start: float
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        self.stack, self.run = self.size.job.stack, Run(n_jobs=self.size.job.n_jobs)
        self.dtype, self.n = self.size.X.dtype, self.size.sets.n_sets
        self.source = _members_of(self.size)

    def rates(self, folder: Path) -> Rates:
        """All of them."""
        stack, width = self.stack, self.size.X.shape[1]
        points = self.size.points
        mapped, gathered = {width, *(columns for _, columns in stack.structure)}, set()
        whole: dict[int, float] = {}  # of points of that width
        layers: dict[int, float] = {}
        for t in range(1, stack.n_layers + 1):
            tile, layer = self.budget.tiles[t], stack.layer_at(t)
            if tile is not None:
                gathered.add((tile, layer.n_anchors))
                mapped.add(layer.phi_width(layer.n_anchors, points[t - 1]))
                continue
            if t == 1 or points[t - 1] not in whole:
                whole[points[t - 1]] = self.layer(t, points[t - 1])
            layers[t] = whole[points[t - 1]]
        if stack.walk is not None and self.budget.walk_tile and stack.column_names:
            gathered |= {(self.budget.walk_tile, 1), (1, 1)}
            mapped.add(stack.walk.axes(width))
        maps = {columns: self.map(columns) for columns in sorted(mapped)}
        return Rates(
            maps,
            layers,
            {key: self.gather(*key) for key in sorted(gathered)},
            self.learning(),
            self.structure(),
            *self.disk(folder),
            n_threads(self.run.n_jobs),
            perf_counter() - self.start,
        )

    def seconds(self, work: Callable[[], Any]) -> float:
        """The median time of some work, which is done once before if there is time for it."""
        found: list[float] = []
        begin = perf_counter()
        if begin < self.start + _HURRY:
            work()
        while not found or (len(found) < _REPEATS and perf_counter() - begin < _SECONDS):
            start = self.clock()
            work()
            found.append(self.clock() - start)
        return median(found)

    def n_points(self, width: int) -> int:
        """How many points of so many columns are made."""
        return int(min(self.n, max(_POINT_BYTES // (width * self.dtype.itemsize), _SMALL)))

    def sets(self, n_points: int, work_per_member: int, block: int) -> Multisets:
        """Some blocks of multisets, over so many points."""
        degree = max(self.size.sets.n_entries / max(self.n, 1), 1.0)
        n_entries = int(np.clip(_WORK / work_per_member, _MOST_MEMBERS, _MOST_ENTRIES))
        n_blocks = int(np.clip(n_entries / (degree * block), 2 * n_threads(self.run.n_jobs), 4096 * _BLOCK // block))
        if self.source is not None:
            starts = self.rng.integers(max(self.n - block, 0) + 1, size=min(n_blocks, -(-self.n // block)))
            parts = [self.source.block(slice(int(k), int(k) + block)) for k in np.sort(starts)]
            indices = np.concatenate([part.indices for part in parts]) % n_points
            sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        else:
            n_rows = min(n_blocks * block, max(self.n, block))
            sizes = self.rng.poisson(degree, size=n_rows)
            popular = (n_points * self.rng.random(int(sizes.sum())) ** 2).astype(np.int64)  # some nodes have many edges
            indices = (popular * 1_000_003 % n_points).astype(self.size.sets.index)
        indptr = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        weights = self.size.sets.weights
        weights = None if weights is None else np.ones(len(indices), weights.dtype)
        return unchecked(Multisets, indptr, np.ascontiguousarray(indices), weights, n_points)

    def rows(self, n_rows: int, width: int) -> np.ndarray:
        """Random unit vectors, or counts."""
        if self.stack.reads_counts:
            return self.rng.integers(1, 5, size=(n_rows, width)).astype(self.dtype)
        return unit_rows(self.rng.standard_normal((n_rows, width)).astype(self.dtype))

    def map(self, width: int) -> float:
        """Of unit vectors and the kernel map, per row."""
        n_rows = int(np.clip(_WORK / (width * self.stack.layer.dim), 2 * _BLOCK, 2**14))
        nnz = self.size.X.nnz
        if nnz is not None and width == self.size.X.shape[1]:
            density = min(nnz / max(self.n * width, 1), 1.0)
            rows: Any = sp.random_array((n_rows, width), density=density, format="csr", dtype=self.dtype, rng=self.rng)
        else:
            rows = self.rows(n_rows, width)
        landmarks = unit_rows(self.rng.standard_normal((self.stack.layer.dim, width)).astype(self.dtype))
        kernel_map, out = NystromMap(landmarks, np.eye(len(landmarks), dtype=self.dtype), 1.5), {}

        def block(part: slice) -> None:
            out[part.start] = kernel_map(unit_rows(rows[part]))

        return self.seconds(lambda: map_blocks(block, row_blocks(n_rows), n_jobs=self.run.n_jobs)) / n_rows

    def layer(self, t: int, width: int) -> float:
        """Of layer t over points in memory, per row."""
        layer, n_rows = self.stack.layer_at(t), max(1024, 2 * self.stack.layer.dim)
        small, indptr = self.rows(_SMALL, width), 8 * np.arange(n_rows + 1, dtype=np.int64)
        members = self.rng.integers(_SMALL, size=8 * n_rows).astype(np.int32)
        kinds = self.size.sets.kinds
        rate = replace(layer, em=replace(layer.em, max_samples=n_rows))
        learned = _of_kinds(unchecked(Multisets, indptr, members, None, _SMALL), kinds)
        fitted, _ = rate.fit(small, learned, self.run, self.rng)
        points = np.resize(small, (self.n_points(width), width))
        sets = _of_kinds(self.sets(len(points), layer.n_anchors * width, _BLOCK), kinds)
        scoring = self.clock()
        blocks = fitted.over(points, sets, self.run)
        scoring = self.clock() - scoring
        out = np.empty((sets.n_sets, fitted.n_outputs), self.dtype)

        def write(rows: slice, values: Any) -> None:
            out[rows] = values

        return scoring / len(points) + self.seconds(lambda: blocks.write(write, self.run, "")) / sets.n_sets

    def gather(self, width: int, n_anchors: int) -> float:
        """Of the means of so many columns, per row."""
        n_points = self.n_points(width)
        points = np.full((n_points, width), 0.1, self.dtype)
        ones = np.ones((n_points, n_anchors), self.dtype)
        alpha = Responsibilities(np.zeros_like(ones), ones)
        origin, engine = np.zeros((n_anchors, width), self.dtype), self.run.engine(ONE_STEP)
        sets = self.sets(n_points, n_anchors * width, _WALK_BLOCK)
        after = np.empty((sets.n_sets, n_anchors, width), self.dtype)

        def block(rows: slice) -> None:
            means = block_means(engine, points, alpha, sets.block(rows), origin).means
            means *= 0.9
            after[rows] = means

        blocks = row_blocks(sets.n_sets, _WALK_BLOCK)
        return self.seconds(lambda: map_blocks(block, blocks, n_jobs=self.run.n_jobs)) / sets.n_sets

    def learning(self) -> float:
        """Of a multiplication of k-means."""
        dim, width = min(self.stack.layer.dim, 512), 256
        sample = self.rows(_SMALL, width)
        work = 4 * _SMALL * width * dim
        return self.seconds(lambda: kmeans(sample, dim, rng=self.rng, spherical=True, n_jobs=self.run.n_jobs)) / work

    def structure(self) -> float:
        """Of structural columns, per node of a graph with as many edges per node; 0 if there are none."""
        job, graph, structure = self.size.job, self.size.graph, self.size.job.structure
        if structure is None:
            return 0.0
        width = structure.n_columns(job.stack.layer.dim, features=graph.n_features > 0)
        degree = float(np.clip(graph.n_edges / max(graph.n_nodes, 1), 2, _STRUCTURE_DEGREE))

        def learn(n_nodes: int) -> None:
            ends = self.rng.integers(n_nodes, size=(2, int(n_nodes * degree / 2)))
            adjacency = sp.csr_array((np.ones(ends.shape[1], np.float32), tuple(ends)), shape=(n_nodes, n_nodes))
            random = as_graph(adjacency, undirected=True)
            fit_structure(structure, random, None, width=width, seed=0, n_jobs=self.run.n_jobs)

        n_nodes = min(max(graph.n_nodes, 200), _STRUCTURE_NODES)
        learn(200)  # compiled code is made or loaded
        start = self.clock()
        learn(n_nodes)
        return (self.clock() - start) / n_nodes

    def disk(self, folder: Path) -> tuple[float, float, float, float]:
        """(written, cached, read, sought): per byte, and of a row of a sample."""
        rows, n_parts = np.ones((PART_BYTES // _ROW_BYTES, _ROW_BYTES // 4), np.float32), _FILE_PARTS
        handle, name = tempfile.mkstemp(prefix=".fishergraph-probe-", dir=folder)
        os.close(handle)
        try:
            array = FileArray.create(name, (n_parts * len(rows), rows.shape[1]), np.float32)
            parts = list(array.blocks(PART_BYTES))

            def write(chosen: list[slice], *, sync: bool) -> None:
                for part in chosen:
                    array[part] = rows
                    if sync:
                        checksum(rows)
                        array.sync()

            def read(n_read: int) -> None:
                for k in range(0, n_read, _READ_PARTS):  # into new memory, as points and tiles are
                    array[parts[k].start : parts[min(k + _READ_PARTS, n_read) - 1].stop]

            start = self.clock()
            write(parts[:_WRITTEN_PARTS], sync=True)
            written = (self.clock() - start) / (_WRITTEN_PARTS * rows.nbytes)
            _forget(name)  # what was written to the disk is read from there, and the rest from memory
            start = self.clock()
            read(_WRITTEN_PARTS)
            cold = (self.clock() - start) / (_WRITTEN_PARTS * rows.nbytes)
            write(parts[_WRITTEN_PARTS:], sync=False)
            cached = self.seconds(lambda: read(n_parts)) / array.nbytes
            chosen = np.sort(self.rng.integers(len(array), size=500))
            sought = self.seconds(lambda: array[chosen]) / len(chosen)
            return written, cached, max(cold, cached), sought
        finally:
            Path(name).unlink(missing_ok=True)


def _of_kinds(sets: Multisets, kinds: int) -> Multisets:
    """The sets with their members shared out among so many kinds."""
    shares = np.arange(kinds) / kinds
    starts = sets.indptr[:-1, None] + (np.diff(sets.indptr)[:, None] * shares).astype(np.int64)
    offsets = np.append(starts.ravel(), sets.indptr[-1])
    return split_sets(unchecked(Multisets, offsets, sets.indices, sets.weights, sets.n_points), kinds)


def _members_of(size: RunSize) -> StoredSets | None:
    """The multisets of a store, or its graph, which has nearly the same members."""
    store = size.store
    if store is None or not size.graph.n_edges or (size.sets.kinds > 1 and not size.sets.built):
        return None
    folder = sets_folder(store, size.job.rule, size.X.dtype)
    if size.sets.built:
        return open_sets(store, folder)
    return StoredSets(store.indptr, store.indices, store.weights, store.n_nodes)


def _forget(path: str) -> None:
    """Let the system forget what it holds of a file, where it can be asked to."""
    if hasattr(os, "posix_fadvise"):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
