"""The stages of a run over a store that changed: rows are computed again only if the bits of an input changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from fishergraph.estimators.source import NodeJob
from fishergraph.layer import Run
from fishergraph.scale.arrays import FileArray
from fishergraph.scale.budget import BASE
from fishergraph.scale.commit import Commit
from fishergraph.scale.finished import FinishedRun
from fishergraph.scale.run import Capacity, FloatRows, LocalExecutor, make_pass, model_digest, read_inputs
from fishergraph.scale.run_folder import RunFolder, parts_of
from fishergraph.scale.sets import StoredSets
from fishergraph.scale.stage_rows import StageRows, different_rows, stage_rows
from fishergraph.scale.store import Store, write_json
from fishergraph.scale.stored_pass import PART_BYTES
from fishergraph.scale.updating.blocks import Groups, Misfit, Tried, has_landmarks, plan_groups
from fishergraph.scale.updating.graph import StagedGraph, rows_that_list, stage_sets
from fishergraph.scale.updating.patched import PatchedRows, patched_checksums, row_differences
from fishergraph.scale.updating.report import StageUpdate

_HELD = 16  # the part of the memory that the changed rows of a stage, or the multisets, may take
_MEASURED = 2**13  # rows whose distance from the landmarks is measured, about


@dataclass
class Stored:
    """The values of a stage after the update.

    values : its rows.
    changed : rows whose bytes differ, and new ones, which rise.
    """

    values: Any
    changed: np.ndarray


@dataclass
class RunUpdate:
    """The update of one run.

    run : the run as it was.
    job : its work, with what it learned.
    store, staged : the graph before and after.
    memory : bytes the process may have.
    commit : the steps of the change.
    """

    run: FinishedRun
    job: NodeJob
    store: Store
    staged: StagedGraph
    memory: int
    commit: Commit
    stages: list[StageUpdate] = field(default_factory=list)
    entries: dict[str, Any] = field(default_factory=dict)
    misfits: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = RunFolder(self.staged.store.path / "embeddings" / self.run.name)
        self.folder.path.mkdir(parents=True)
        self.place = f"embeddings/{self.run.name}"
        self.threads = Run(n_jobs=self.job.n_jobs)
        self.done: dict[str, Stored] = {}
        self.tried: dict[str, Any] = self.run.manifest.get("tried", {})

    def perform(self) -> None:
        """Compute what changed, and write it beside the store."""
        self.X, self.new_X = (_features(store) for store in (self.store, self.staged.store))
        dtype = np.dtype(np.float32) if self.X is None else self.X.dtype
        self.sets, self.new_sets, self.set_rows = stage_sets(self.store, self.staged, self.job.rule, dtype, self.memory)
        self.sets, self.new_sets = map(self._held, (self.sets, self.new_sets))
        columns = self._full_stages()
        if columns or self.X is None:
            self._prepare_full(columns)
        for t, name in enumerate(self.job.stack.names):
            if t <= self.job.stack.n_layers:
                self._layer(t, name)
            elif name in columns:
                self._whole(name)
            elif name in self.run.arrays:
                self._keep(name)
        self._finish()

    def _held(self, sets: StoredSets) -> Any:
        """Multisets in memory, if they are small."""
        return sets.loaded() if sets.nbytes <= self.memory // _HELD else sets

    # --- the input map and the layers --------------------------------------------------------------------

    def _layer(self, t: int, name: str) -> None:
        if name not in self.run.arrays:
            return
        began, stored = perf_counter(), FileArray(self.run.folder.path / f"{name}.npy")
        if t == 0 and self.X is None:
            self._whole(name)
            return
        affected = self._affected(t)
        if len(affected) == 0:
            self.done[name] = Stored(stored, affected)
            self._keep(name)
            return
        before = self._stage(t, self.X, self.sets, self._old_values)
        after = self._stage(t, self.new_X, self.new_sets, lambda name: self.done[name].values)
        now, tried = Misfit(), Tried(self.tried.setdefault(name, {}))
        groups = plan_groups(before, after, affected, stored, tried)
        self._compute(name, after, groups, stored, now)
        if tried.kept.get("misfit") is not None and now.mean is not None:
            self.misfits[name] = {"fit": tried.kept["misfit"], "changed": now.mean, "rows": now.count}
        done = self.done[name]
        self._report(name, groups.how, len(done.values.rows), len(done.changed), began)

    def _stage(self, t: int, X: Any, sets: StoredSets, values: Callable[[str], Any]) -> StageRows:
        return stage_rows(self.job.stack, t, X, sets, values, self.threads, (self.memory - BASE) // 3)

    def _old_values(self, name: str) -> FileArray:
        return FileArray(self.run.folder.path / f"{name}.npy")

    def _affected(self, t: int) -> np.ndarray:
        """The rows of a stage that have an input whose bits changed."""
        if t == 0:
            return self.staged.X_rows
        points = self._changed_points(t)
        rows = np.union1d(self.set_rows, np.arange(self.store.n_nodes, self.staged.store.n_nodes))
        if len(points) == 0:
            return rows
        marked = np.zeros(self.new_sets.n_points, bool)
        marked[points] = True
        return np.union1d(rows, rows_that_list(self.new_sets.indptr, self.new_sets.indices, marked))

    def _changed_points(self, t: int) -> np.ndarray:
        """The points of a layer whose bits changed, and new ones."""
        return self.staged.X_rows if t == 1 and self.job.stack.reads_counts else self.done[f"psi{t - 1}"].changed

    def _compute(self, name: str, stage: StageRows, groups: Groups, stored: FileArray, misfit: Misfit) -> None:
        """Compute rows, and note those that differ as a patch."""
        rows = np.sort(np.concatenate([groups.rows(k) for k in range(groups.n_blocks)]))
        put, values, file = self._values(name, (len(rows), stored.shape[1]), stored.dtype)
        is_changed, differences = np.ones(len(rows), bool), np.zeros(len(rows), np.uint32)
        measured = _measured(groups) if has_landmarks(stage) else range(0)
        misfits = {k: Misfit() for k in measured}

        def take(k: int, phi: Any, psi: np.ndarray) -> None:
            places, numbers = groups.places[k], groups.rows(k)
            psi, where = np.ascontiguousarray(psi if places is None else psi[places]), np.searchsorted(rows, numbers)
            put(where, psi)
            n_known = int(np.searchsorted(numbers, len(stored)))
            old, known = stored[numbers[:n_known]], where[:n_known]
            differences[known], is_changed[known] = row_differences(old, psi[:n_known])
            if k in misfits:
                differs = is_changed[where]
                misfits[k].add((phi if places is None else phi[places])[differs], psi[differs])

        stage.compute(groups.blocks, take)
        for one in misfits.values():
            misfit.total, misfit.count = misfit.total + one.total, misfit.count + one.count
        changed = np.flatnonzero(is_changed)
        patched = PatchedRows(stored, rows, values, self.staged.store.n_nodes)
        self.done[name] = Stored(patched, rows[changed])
        entry, borders = self.run.arrays[name], self._borders(name, stage, stored)
        checksums = patched_checksums(entry, borders, patched, rows[changed], differences[changed])
        self.entries[name] = {**entry, "shape": list(patched.shape), "borders": borders, "checksums": checksums}
        if file is None:
            file = self.folder.array(f"{name}.values", values.shape, values.dtype)
            file[:] = values
        where = f"{self.place}/{name}"
        self.commit.patch(f"{where}.npy", rows[changed], changed, f"{where}.values.npy", len(patched))

    def _values(self, name: str, shape: tuple[int, int], dtype: Any) -> tuple[Callable[..., Any], Any, Any]:
        """(what writes rows by their places, the rows, their file): in memory if they are few."""
        if np.dtype(dtype).itemsize * shape[0] * shape[1] <= self.memory // _HELD:
            values = np.empty(shape, dtype)
            return values.__setitem__, values, None
        file = self.folder.array(f"{name}.values", shape, dtype)
        return file.put, file, file

    def _borders(self, name: str, stage: StageRows, stored: FileArray) -> list[int]:
        """The borders of the parts: as they were, if there are no new rows."""
        if len(stored) == self.staged.store.n_nodes:
            return self.run.arrays[name]["borders"]
        row_bytes = stored.shape[1] * stored.dtype.itemsize
        return [0, *(part[-1].stop for part in parts_of(stage.blocks(), row_bytes, PART_BYTES))]

    # --- stages that need all rows -----------------------------------------------------------------------

    def _full_stages(self) -> list[str]:
        """The stages of columns whose inputs changed."""
        stack, graph = self.job.stack, len(self.set_rows) > 0 or len(self.staged.rows.numbers) > 0
        structural = dict(stack.structure)
        names = [name for name in stack.column_names if name in self.run.arrays]
        return [name for name in names if graph or (name not in structural and len(self.staged.X_rows))]

    def _prepare_full(self, columns: list[str]) -> None:
        needs_structure = self.X is None or any(name in dict(self.job.stack.structure) for name in columns)
        job = self.job
        if not needs_structure:
            job = replace(job, structure=None, stack=_without_structure(job.stack))
        inputs = read_inputs(self.staged.store, self.folder, job, Capacity(self.memory))
        self.new_X = inputs.X
        self.fitting = make_pass(inputs, self.folder, job, LocalExecutor())

    def _whole(self, name: str) -> None:
        began, stored = perf_counter(), FileArray(self.run.folder.path / f"{name}.npy")
        task = self.fitting.task(name)
        log = self.fitting.log(task)
        self.fitting.perform(task, log)
        array = self.folder.opened(name)
        found = [np.arange(len(stored), len(array))]
        for part in stored.blocks():
            found.append(different_rows(np.arange(part.start, part.stop), array[part], stored[part]))
        changed = np.sort(np.concatenate(found))
        self.done[name] = Stored(array, changed)
        checksums = [log.checksum(part) for part in range(log.n_parts)]
        entry = {"shape": list(array.shape), "borders": list(task.borders), "checksums": checksums}
        self.entries[name] = {**self.run.arrays[name], **entry}
        self.commit.replace(f"{self.place}/{name}.npy")
        self._report(name, "all", len(array), len(changed), began)

    # --- the end -----------------------------------------------------------------------------------------

    def _keep(self, name: str) -> None:
        self.entries[name] = self.run.arrays[name]
        self._report(name, "none", 0, 0, perf_counter())

    def _report(self, name: str, how: str, computed: int, changed: int, began: float) -> None:
        n_rows = self.staged.store.n_nodes
        self.stages.append(StageUpdate(self.run.name, name, how, computed, changed, n_rows, perf_counter() - began))

    def _finish(self) -> None:
        """Write what the run is now: that of `transform` with its model on the changed store."""
        identity = self.run.folder.identity
        digest = self.staged.store.digest
        now = {**identity, "store": digest, "words": None, "model": model_digest(self.job.stack)}
        write_json(self.folder.path / "run.json", now)
        manifest = {**self.run.manifest, "store": digest, "arrays": self.entries, "tried": self.tried}
        write_json(self.folder.path / "manifest.json", manifest)
        self.commit.replace(f"{self.place}/run.json", f"{self.place}/manifest.json")
        self.commit.remove(f"{self.place}/parts")


def _features(store: Store) -> Any:
    return None if store.features is None else FloatRows(store.features)


def _measured(groups: Groups) -> range:
    """The blocks whose rows are compared with the landmarks: as many as there are, or some, evenly."""
    n_rows = sum(len(groups.rows(k)) for k in range(groups.n_blocks))
    return range(0, groups.n_blocks, -(-n_rows // _MEASURED) or 1)


def _without_structure(stack: Any) -> Any:
    """The stack without its structural columns."""
    n_kept = len(stack.names) - len(stack.structure)
    weights, columns = stack.block_weights[:n_kept], stack.columns[: n_kept - stack.n_layers - 1]
    return replace(stack, structure=(), block_weights=weights, columns=columns)


def sets_files(folder: Path) -> list[str]:
    """The files of new multisets, relative to the store."""
    return [f"multisets/{path.parent.name}/{path.name}" for path in sorted(folder.glob("multisets/*/*"))]
