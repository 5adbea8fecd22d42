"""What an embedding of a store takes: memory, disk, bytes and time of every stage, before any of it is done.

Memory is that of `plan_budget`, by which a run holds its arrays. Files are counted from their shapes. Times are the
rows of the run times what a row takes on this machine (`probe`).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fishergraph._errors import InputError
from fishergraph._validation import check_integer
from fishergraph.estimators import FisherEmbedding
from fishergraph.estimators.source import NodeJob
from fishergraph.io.files import as_path
from fishergraph.multiset import choose_multiset
from fishergraph.scale.budget import Budget, plan_budget
from fishergraph.scale.memory import parse_memory
from fishergraph.scale.probe import Rates, probe
from fishergraph.scale.sizes import GraphSize, RunSize
from fishergraph.scale.store import Store
from fishergraph.scale.tiles import check_tiled
from fishergraph.scale.work import Stage, stages_of
from fishergraph.structural import choose_structure

MOST_WORKERS = 100_000


@dataclass(frozen=True, repr=False)
class Plan:
    """What an embedding takes; it prints as a table.

    Parameters
    ----------
    graph : GraphSize
        The graph.
    stages : tuple of Stage
        What every stage takes, in order.
    settings : str
        The settings that were planned.
    memory : int
        Bytes the process may have.
    resident : int
        Bytes it has at most.
    budget : Budget
        How arrays are held.
    disk_free : int
        Bytes that are free in the folder.
    workers : int
        How many workers share the parts of a stage.
    rates : Rates
        What was measured.

    See Also
    --------
    plan : Make one.

    Examples
    --------
    >>> from fishergraph.scale import GraphSize, plan
    >>> planned = plan(GraphSize(10_000, 100_000, 16), memory="2G")
    >>> planned.resident < 2e9
    True
    """

    graph: GraphSize
    stages: tuple[Stage, ...]
    settings: str
    memory: int
    resident: int
    budget: Budget
    disk_free: int
    workers: int
    rates: Rates

    @property
    def seconds(self) -> float:
        """The time of all stages, with the workers."""
        return sum(stage.seconds(self.workers) for stage in self.stages)

    @property
    def kept(self) -> int:
        """The bytes of the files that stay."""
        return sum(stage.kept for stage in self.stages)

    @property
    def scratch(self) -> int:
        """The most bytes of files that are removed, at once."""
        ingest = sum(stage.scratch for stage in self.stages if stage.name == "ingest")
        return max(ingest, sum(stage.scratch for stage in self.stages) - ingest)

    @property
    def written(self) -> int:
        """The bytes that are written."""
        return sum(stage.written for stage in self.stages)

    @property
    def read(self) -> int:
        """The bytes that are read."""
        return sum(stage.read for stage in self.stages)

    def lines(self) -> list[str]:
        """Return the table and what it means, line by line.

        Returns
        -------
        list of str
            The lines.
        """
        several = [f"{self.workers} workers"] if self.workers > 1 else []
        rows = [["stage", "time", *several, "memory", "kept", "scratch", "read", "written"]]
        for stage in self.stages:
            times = [stage.seconds(workers) for workers in ([1, self.workers] if several else [1])]
            sizes = (stage.memory, stage.kept, stage.scratch, stage.read, stage.written)
            rows.append([stage.name, *map(duration, times), *map(amount, sizes)])
        times = [sum(stage.seconds(k) for stage in self.stages) for k in ([1, self.workers] if several else [1])]
        sizes = (self.resident, self.kept, self.scratch, self.read, self.written)
        rows.append(["all", *map(duration, times), *map(amount, sizes)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        return [self._head(), "", *table, "", *self._notes()]

    def _head(self) -> str:
        graph = self.graph
        sizes = f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges, {graph.n_features:,} features"
        return f"{sizes}; {self.settings}; {self.rates.threads} threads"

    def _notes(self) -> list[str]:
        budget, tiles = self.budget, [tile for tile in self.budget.tiles.values() if tile is not None]
        points = f"points are read {min(tiles)} columns at a time" if tiles else "points of a layer are held"
        sets = "held" if budget.sets_in_memory else "read from files"
        notes = [f"memory: {amount(self.resident)} of {amount(self.memory)}; {points}, multisets are {sets}"]
        if budget.walk_tile:
            notes[0] += f", {budget.walk_tile} columns are averaged at once"
        notes.append(f"disk: {amount(self.kept + self.scratch)} at most, {amount(self.disk_free)} free")
        if self.kept + self.scratch > self.disk_free:
            notes[-1] += ": it does not fit"
        return [*notes, f"measured on this machine in {self.rates.seconds:.1f} s"]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        sizes = f"{self.graph.n_nodes:,} nodes, {self.graph.n_edges:,} edges"
        return f"Plan({sizes}: {duration(self.seconds)}, {amount(self.resident)} of memory, {amount(self.kept)} kept)"


def plan(
    graph: Store | GraphSize,
    model: FisherEmbedding | None = None,
    *,
    memory: int | float | str | None = None,
    workers: int = 1,
    folder: str | Path | None = None,
    rates: Rates | None = None,
) -> Plan:
    """Predict what an embedding of a graph takes on this machine.

    It measures the machine for a few seconds, with arrays as large as those of the run. Nothing is embedded.

    Parameters
    ----------
    graph : Store or GraphSize
        The graph: a store, or sizes alone.
    model : FisherEmbedding, optional
        The settings; by default those of ``FisherEmbedding()``.
    memory : int or str, optional
        Bytes the process may have, such as "4G"; that of the store, or half of the memory, by default.
    workers : int, default=1
        Workers that share the parts of a stage, each a machine like this one, with one disk for all.
    folder : path, optional
        An existing folder on the disk of the store; by default that of the store, or the current one.
    rates : Rates, optional
        What was measured for another plan of the same settings; measured by default.

    Returns
    -------
    Plan
        Memory, disk, bytes and time of every stage.

    See Also
    --------
    Store : What is embedded.
    FisherEmbedding : The settings.

    Examples
    --------
    >>> from fishergraph import FisherEmbedding
    >>> from fishergraph.scale import GraphSize, plan
    >>> model = FisherEmbedding(dim=32, structure=None)
    >>> planned = plan(GraphSize(100_000, 1_000_000, 16), model, memory="2G")
    >>> [stage.name for stage in planned.stages]
    ['ingest', 'multisets', 'psi0', 'psi1', 'psi2', 'walk', 'smooth', 'model']
    """
    if not isinstance(graph, (Store, GraphSize)):
        expected = "be a store or a GraphSize"
        raise InputError(parameter="graph", value=graph, expected=expected, got=type(graph).__name__)
    check_integer(workers, "workers", least=1, most=MOST_WORKERS)
    store = graph if isinstance(graph, Store) else None
    limit = parse_memory(store.memory if store is not None and memory is None else memory)
    place = as_path(folder, "folder") if folder is not None else Path() if store is None else store.path
    if not place.is_dir():
        raise InputError(parameter="folder", value=str(place), expected="be an existing folder")
    model = FisherEmbedding() if model is None else model
    size = RunSize.of(graph if isinstance(graph, GraphSize) else GraphSize.of(graph), job_of(model, graph), store)
    return plan_run(size, limit, place, workers=workers, rates=rates, settings=_words(model))


def job_of(model: FisherEmbedding, graph: Store | GraphSize) -> NodeJob:
    """What an estimator would compute on a graph."""
    stack = model.settings(features=graph.n_features > 0, graph=True)
    wanted = bool(stack.structure) or graph.n_features == 0
    structure = choose_structure(model.structure) if wanted else None
    if structure is None and graph.n_features == 0:
        options: dict[str, Any] = {"advice": "count features", "settings": {"structure": "auto"}}
        raise InputError(parameter="structure", expected="be given if there are no features", **options)
    return NodeJob(stack, choose_multiset(model.multiset), structure, None, {}, [0], model.n_jobs)


def plan_run(
    size: RunSize, memory: int, folder: Path, *, workers: int = 1, rates: Rates | None = None, settings: str = ""
) -> Plan:
    """The plan of a run, within so much memory."""
    options: dict[str, Any] = {"structure": size.structure, "n_jobs": size.job.n_jobs}
    budget = plan_budget(size.job.stack, size.X, size.sets, memory, **options)
    for t, tile in budget.tiles.items():
        if tile is not None:
            check_tiled(size.job.stack.layer_at(t))
    rates = probe(size, budget, folder) if rates is None else rates
    stages = tuple(stages_of(size, budget, rates))
    resident = max(stage.memory for stage in stages)
    free = shutil.disk_usage(folder).free
    return Plan(size.graph, stages, settings, memory, resident, budget, free, workers, rates)


def _words(model: FisherEmbedding) -> str:
    return f"{model.n_layers} layers, dim {model.dim}, {model.n_anchors} anchors"


def amount(n_bytes: float) -> str:
    """A number of bytes in words; nothing is a dash."""
    if n_bytes < 1:
        return "-"
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes / 1e3:.0f} kB"


def duration(seconds: float) -> str:
    """A time in words; none is a dash."""
    if seconds == 0:
        return "-"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"
