"""The work of every stage of a run: memory, files, bytes that are read and written, and time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fishergraph._validation import host_bytes
from fishergraph.em.kmeans import kmeans_work
from fishergraph.em.learn import sample_size
from fishergraph.multiset import Neighbourhood
from fishergraph.scale.arrays import GAP
from fishergraph.scale.budget import Budget
from fishergraph.scale.probe import Rates
from fishergraph.scale.sets import building_bytes
from fishergraph.scale.sizes import RunSize
from fishergraph.scale.stored_pass import PART_BYTES
from fishergraph.structural import TELLING_APART

_INGEST_EDGE = 32  # bytes of scratch files per edge, while a store is made
_EIGEN = 12  # multiplications of an eigenvalue problem, times its size to the third power
_AXES_STEPS = 10  # products of a sample with its axes
_PHI_PASSES = 3  # over the means of a group of rows, which leave the caches
_STRUCTURE_PASSES = 60  # over the graph, for structural columns
_SHARPENED = 0.5  # the time of sharpened rows, of that of a kernel map of as many columns


@dataclass(frozen=True)
class Stage:
    """What a stage takes.

    Attributes
    ----------
    name : str
        Its name.
    memory : int
        Resident bytes of the process.
    kept, scratch : int
        Bytes of the files that stay, and of those that are removed at the end.
    read, written : int
        Bytes.
    serial, divided : float
        Seconds on one worker: what every run takes, and what workers share.
    parts : int
        The number of parts that workers can share.
    """

    name: str
    memory: int
    kept: int = 0
    scratch: int = 0
    read: int = 0
    written: int = 0
    serial: float = 0.0
    divided: float = 0.0
    parts: int = 1

    def seconds(self, workers: int = 1) -> float:
        """Return the time with so many workers.

        Parameters
        ----------
        workers : int, default=1
            How many work on parts at once.

        Returns
        -------
        float
            Seconds.
        """
        return self.serial + self.divided / min(workers, self.parts)


def stages_of(size: RunSize, budget: Budget, rates: Rates) -> Iterator[Stage]:
    """What the stages of a run take, in order."""
    work = _Work(size, budget, rates)
    if size.store is None:
        files = sum(size.graph.store_files().values())
        scratch = _INGEST_EDGE * size.graph.n_edges
        yield Stage("ingest", 0, kept=files, scratch=scratch, read=scratch, written=files + scratch)
    yield work.multisets()
    if size.structure is not None:
        yield work.structure()
    yield work.input_map()
    for t in range(1, size.job.stack.n_layers + 1):
        yield work.layer(t) if budget.tiles[t] is None else work.tiled_layer(t)
    yield from work.columns()
    yield Stage("model", budget.base, kept=size.model_bytes(), written=size.model_bytes())


class _Work:
    """Counts of the stages of one run."""

    def __init__(self, size: RunSize, budget: Budget, rates: Rates):
        self.size, self.budget, self.rates, self.stack = size, budget, rates, size.job.stack
        self.n, self.itemsize, self.columns_of_X = size.sets.n_sets, size.X.dtype.itemsize, size.X.shape[1]
        self.blocks, self.work = size.blocks(), size.scratch(budget)
        self.points = size.points
        layer = self.stack.layer
        self.sample = sample_size(layer.dim, layer.em.max_samples, self.n)
        files = size.input_bytes + size.sets.nbytes + sum(self.blocks.values()) + sum(self.work.values())
        held = files + budget.resident <= host_bytes()
        self.read = rates.cached if held else rates.read
        self.sets_bytes = 0 if budget.sets_in_memory else size.sets.nbytes  # that a pass over the edges reads

    def _stage(self, name: str, serial: float, divided: float, read: float, written: float, scratch: int = 0) -> Stage:
        """A stage whose values are a block of the run."""
        seconds = serial + read * self.read + written * self.rates.written
        parts = max(math.ceil(self.blocks[name] / PART_BYTES), 1)
        memory = self.budget.base + self.budget.held[name]
        return Stage(name, memory, self.blocks[name], scratch, int(read), int(written), seconds, divided, parts)

    def _learning(self, width: float, n_clusters: int) -> float:
        """The seconds of a kernel map from a sample."""
        work = kmeans_work(self.sample, int(width), min(n_clusters, self.sample))
        return self.rates.multiplication * (work + self.rates.threads * _EIGEN * n_clusters**3)

    def _sampled(self, n_bytes: float) -> float:
        """About the bytes that a sample of the rows of a file reads: rows near each other are read at once."""
        if self.sample >= self.n:
            return n_bytes
        row, between = n_bytes / self.n, self.n / self.sample
        gap = max(GAP / max(row, 1.0), 1.0) / between
        return self.sample * row * max(between * (1 - (1 + gap) * math.exp(-gap)), 1.0)

    @property
    def _seeking(self) -> float:
        """The seconds of finding a sample."""
        return self.sample * self.rates.sought if self.sample < self.n else 0.0

    def multisets(self) -> Stage:
        """The multisets, unless they were built, and reading them."""
        size, graph = self.size, self.size.graph
        loaded = size.sets.nbytes if self.budget.sets_in_memory else 0
        if size.sets.built:
            return Stage("multisets", self.budget.base + loaded, read=loaded, serial=loaded * self.read)
        files = graph.store_files()
        again = 2 if isinstance(size.job.rule, Neighbourhood) and size.job.rule.closed else 1
        read = again * files["indices"] + (again + 1) * files["indptr"] + files.get("weights", 0) + size.sets.nbytes
        seconds = (read + loaded) * self.read + 2 * size.sets.nbytes * self.rates.written
        memory = self.budget.base + max(building_bytes(graph.n_nodes, graph.n_edges, size.sets, size.job.rule), loaded)
        return Stage("multisets", memory, size.sets.files, 0, read + loaded, size.sets.nbytes, seconds)

    def structure(self) -> Stage:
        """Structural columns, in files; PageRank reads the graph once for each step."""
        graph, files, size = self.size.graph, self.size.graph.store_files(), self.size.structure
        assert size is not None
        edges = files["indices"] + files.get("weights", 0)
        read = files["indptr"] + edges * (_STRUCTURE_PASSES if size.by_rows else 1)
        scratch = sum(n_bytes for name, n_bytes in self.work.items() if name.startswith("structure-"))
        between = size.files_between()
        seconds = graph.n_nodes * self.rates.structure + read * self.read + (scratch + between) * self.rates.written
        memory = self.budget.base + self.budget.held["structure"]
        return Stage("structure", memory, 0, scratch + between, read + between, scratch + between, seconds)

    def input_map(self) -> Stage:
        """ψ_0."""
        learning = self._learning(self.columns_of_X, self.stack.layer.dim) + self._seeking
        read = self.size.input_bytes + self._sampled(self.size.input_bytes)
        return self._stage("psi0", learning, self.n * self.rates.maps[self.columns_of_X], read, self.blocks["psi0"])

    def layer(self, t: int) -> Stage:
        """A layer over points in memory."""
        layer, row = self.stack.layer_at(t), self.rates.layers[t]
        source = self.size.input_bytes if t == 1 and self.stack.reads_counts else self.blocks[f"psi{t - 1}"]
        phi = layer.phi_width(layer.n_anchors, self.points[t - 1])
        learning = self._learning(phi, layer.dim) if layer.kernel.learns else 0.0
        learning += self.sample * row + self._seeking * (self.sets_bytes > 0)
        read = source + self.sets_bytes + self._sampled(self.sets_bytes)
        loading = 2 * self.n * self.points[t - 1] * self.itemsize * self.rates.cached  # unit vectors, into new memory
        return self._stage(f"psi{t}", learning + loading, self.n * row, read, self.blocks[f"psi{t}"])

    def tiled_layer(self, t: int) -> Stage:
        """A layer that reads a few columns of its points at a time."""
        layer, width, rates = self.stack.layer_at(t), self.points[t - 1], self.rates
        tile, group, tiles = self.budget.tiles[t], self.budget.group_rows[t], self.work[f"points{t}"]
        assert tile is not None
        phi = layer.phi_width(layer.n_anchors, width)
        row = rates.gathers[tile, layer.n_anchors] * width / tile + rates.maps[phi] * layer.dim / self.stack.layer.dim
        row += _PHI_PASSES * phi * self.itemsize * rates.cached
        scoring = self.n * width * layer.n_anchors * rates.multiplication
        learning = self._learning(phi, layer.dim) + self.sample * row + self._seeking + scoring
        groups, sampled = math.ceil(self.n / max(group, 1)), math.ceil(self.sample / max(group, 1))
        n_tiles = math.ceil(width / tile)
        sets = n_tiles * self.sets_bytes + self._sampled(self.sets_bytes)
        read = self.blocks[f"psi{t - 1}"] + (1 + sampled + groups) * tiles + sets
        written = tiles + self.blocks[f"psi{t}"]
        return self._stage(f"psi{t}", learning, self.n * row, read, written, tiles)

    def columns(self) -> Iterator[Stage]:
        """Columns averaged over the graph, and those of the structure."""
        stack, rates, X = self.stack, self.rates, self.size.input_bytes
        if stack.averages_features and stack.walk is not None:
            axes, dim = stack.walk.axes(self.columns_of_X), stack.layer.dim
            tiles, sums, ratio = (self.work[name] for name in ("axes", "axes-averaged", "axes-ratio"))
            serial = self._seeking * 3 + self._learning(axes, dim)
            serial += rates.multiplication * rates.threads * _AXES_STEPS * self.sample * axes * self.columns_of_X
            divided = self.n * (rates.maps[self.columns_of_X] * axes / dim + rates.maps[axes])
            walked, edges = self._averaging(axes)
            read = X + self._sampled(X) + tiles + edges + 2 * self._sampled(sums) + sums + ratio
            written = tiles + sums + ratio + self.blocks["walk"]
            yield self._stage("walk", serial, divided + walked, read, written, tiles + sums + ratio)
            divided = _SHARPENED * self.n * rates.maps[axes]
            yield self._stage("smooth", self._seeking, divided, sums + self._sampled(sums), self.blocks["smooth"])
        for kind, width in stack.structure:
            columns, mapped = self.work[f"structure-{kind}"], self.n * rates.maps[width]
            if kind not in TELLING_APART:
                landmarks = stack.mapping_layer(kind).dim
                serial, share = self._learning(width, landmarks) + 2 * self._seeking, landmarks / stack.layer.dim
                read = columns + 2 * self._sampled(columns)
                yield self._stage(kind, serial, mapped * share, read, self.blocks[kind])
            elif stack.walk is None:
                read = columns + self._sampled(columns)
                yield self._stage(kind, self._seeking, _SHARPENED * mapped, read, self.blocks[kind])
            else:
                files = self.work[f"{kind}-averaged"] + self.work[f"{kind}-ratio"]
                walked, edges = self._averaging(width)
                n_tiles = math.ceil(width / self.budget.averaged_tile(width))
                read = n_tiles * columns + edges + files + self._sampled(files)
                written = files + self.blocks[kind]
                yield self._stage(kind, self._seeking, _SHARPENED * mapped + walked, read, written, files)

    def _averaging(self, width: int) -> tuple[float, float]:
        """The seconds of averaging so many columns, and the bytes of multisets that are read."""
        walk, gathers, tile = self.stack.walk, self.rates.gathers, self.budget.walk_tile
        assert walk is not None
        row = gathers[1, 1] + gathers[tile, 1] * width / tile
        passes = walk.n_steps * (1 + math.ceil(width / tile))
        return self.n * walk.n_steps * row, (passes + 1) * self.sets_bytes
