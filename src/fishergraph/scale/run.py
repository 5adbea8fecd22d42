"""The embedding of the nodes of a store: stage after stage, part after part, in a bounded amount of memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from fishergraph._errors import InputError
from fishergraph._parallel import one_blas_thread
from fishergraph._progress import costing, silent
from fishergraph._version import __version__
from fishergraph.costs import stack_costs
from fishergraph.device import moved
from fishergraph.estimators.source import NodeJob, NodeResult
from fishergraph.estimators.state import read_learned
from fishergraph.layer import Run
from fishergraph.scale.arrays import Features, FileArray
from fishergraph.scale.budget import Budget, describe, plan_budget, return_memory
from fishergraph.scale.cpu import cpu_target
from fishergraph.scale.embedding import StoredEmbedding
from fishergraph.scale.memory import parse_memory
from fishergraph.scale.run_folder import PartLog, RunFolder
from fishergraph.scale.sets import build_sets, has_sets
from fishergraph.scale.sizes import GraphSize, RunSize, check_disk
from fishergraph.scale.store import Store, write_json
from fishergraph.scale.stored_pass import StoredPass, Task
from fishergraph.scale.structure_files import learned_structure, write_structure
from fishergraph.stack import Stack
from fishergraph.structural import StructureMap

RUN_FORMAT, RUN_VERSION = "fishergraph-run", 1
# Parameters that say how the work is run, not what it computes.
_RUNNING = ("n_jobs", "verbose", "device", "random_state", "block_weights")

Memory = int | float | str | None


class Capacity(NamedTuple):
    """The bytes that each process of a run may have, and how many processes compute parts."""

    memory: int
    n_workers: int = 1


class Executor(Protocol):
    """Where the parts of a task are computed."""

    def working(self, folder: RunFolder, memory: Memory, n_jobs: int | None) -> AbstractContextManager[Capacity]:
        """What is there for a run, for its length."""
        ...

    def run(self, stages: StoredPass, task: Task, log: PartLog, advance: Callable[[int], Any]) -> None:
        """Compute the missing parts of a task, and mark each when it is on the disk."""
        ...


class LocalExecutor:
    """Computes parts one after the other, each on the threads of this process."""

    def working(self, folder: RunFolder, memory: Memory, n_jobs: int | None) -> AbstractContextManager[Capacity]:
        """What is there for a run, for its length."""
        return nullcontext(Capacity(parse_memory(memory)))

    def run(self, stages: StoredPass, task: Task, log: PartLog, advance: Callable[[int], Any]) -> None:
        """Compute the missing parts of a task, and mark each when it is on the disk."""
        for part in log.missing:
            checksum = task.compute(part, advance)
            task.array.sync()
            log.mark(part, checksum)


@dataclass(frozen=True)
class FloatRows:
    """The features of a store in the dtype of the work: 16-bit numbers are kept in files only."""

    rows: Features

    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape[0], self.rows.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64 if self.rows.dtype == np.float64 else np.float32)

    def __getitem__(self, key: Any) -> Any:
        return self.rows[key].astype(self.dtype, copy=False)


def embed_store(
    store: Store,
    job: NodeJob,
    *,
    name: str = "default",
    memory: Memory = None,
    overwrite: bool = False,
    executor: Executor | None = None,
) -> NodeResult:
    """Embed the nodes of a store.

    Parameters
    ----------
    store : Store
        The graph and its features.
    job : NodeJob
        What is computed.
    name : str, default="default"
        Of the run: the folder in `embeddings/`.
    memory : int or str, optional
        Bytes that each process may have, such as "4G"; half of the free memory by default.
    overwrite : bool, default=False
        Replace a run of this name with other settings.
    executor : Executor, optional
        Where parts are computed; by default on the threads of this process.

    Returns
    -------
    NodeResult
        What was learned, and the embedding.
    """
    limit, executor = parse_memory(memory), executor or LocalExecutor()
    path = run_path(store, name)
    if overwrite or not RunFolder(path).is_complete:
        check_room(store, path, job, Capacity(limit))
        _fitting(store, job, Capacity(limit))  # before anything is written or replaced
    folder = begin_run(store, job, name, overwrite=overwrite)
    with folder.locked(), one_blas_thread():
        if folder.is_complete:
            stack, structure = read_learned(folder.learned, job.stack, job.structure)
        else:
            job = replace(job, words=folder.identity["words"])
            with executor.working(folder, memory, job.n_jobs) as capacity:
                stack, structure = compute_run(store, folder, job, capacity, executor)
    assert stack.input_map is not None
    fitted: dict[str, Any] = {"stack_": stack, "structure_": structure, "n_features_in_": stack.input_map.n_inputs}
    fitted["n_samples_fit_"] = store.n_nodes
    if store.feature_names is not None and store.features is not None:
        fitted["feature_names_in_"] = np.array(store.feature_names, dtype=object)
    return NodeResult(fitted, StoredEmbedding(folder.path), folder.path / "model.safetensors")


def begin_run(store: Store, job: NodeJob, name: str, *, overwrite: bool) -> RunFolder:
    """The folder of the run, whose settings are those of the job."""
    path = run_path(store, name)
    words = job.words
    if words is not None and job.params.get("random_state") is None and not overwrite:
        words = _words_of(path) or words  # a run without a seed goes on with the one that was drawn for it
    identity = {
        "format": RUN_FORMAT,
        "version": RUN_VERSION,
        "fishergraph": __version__,
        "store": store.digest,
        "parameters": {key: value for key, value in job.params.items() if key not in _RUNNING},
        "weights": list(job.stack.block_weights),
        "words": words,
        "model": None if job.words is not None else model_digest(job.stack),
        "cpu": cpu_target(),
    }
    return RunFolder.begin(path, identity, overwrite=overwrite)


def run_path(store: Store, name: str) -> Path:
    """The folder of a run of this name."""
    if not name or "/" in name or "\\" in name or name.startswith("."):
        expected = "be a folder name without a slash that does not begin with a dot"
        raise InputError(parameter="name", value=name, expected=expected)
    return store.path / "embeddings" / name


def _words_of(path: Path) -> list[int] | None:
    """The seed of a run that was begun."""
    return RunFolder(path).identity.get("words") if (path / "run.json").is_file() else None


def model_digest(stack: Stack) -> str:
    """A text that another fitted array would change."""
    found = hashlib.sha256()

    def add(array: np.ndarray) -> np.ndarray:
        found.update(f"{array.shape}{array.dtype}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
        return array

    moved(stack, add)
    return found.hexdigest()


def compute_run(
    store: Store, folder: RunFolder, job: NodeJob, capacity: Capacity, executor: Executor
) -> tuple[Stack, StructureMap | None]:
    """Compute what is missing of a run; return what it learned."""
    check_room(store, folder.path, job, capacity)
    inputs = read_inputs(store, folder, job, capacity)
    fitting = make_pass(inputs, folder, job, executor)
    borders: dict[str, tuple[int, ...]] = {}
    for name, weight in zip(job.stack.names, job.stack.block_weights, strict=True):
        is_kept = weight > 0 or name in job.stack.names[: job.stack.n_layers]
        if stage_borders := _run_stage(folder, fitting, inputs, name, is_kept=is_kept):
            borders[name] = stage_borders
    structure = learned_structure(store, folder, job)
    folder.save_learned(fitting.stack, structure)
    _finish(store, folder, fitting, inputs, borders)
    return fitting.stack, structure


def _run_stage(
    folder: RunFolder, fitting: StoredPass, inputs: StoreInputs, name: str, *, is_kept: bool
) -> tuple[int, ...]:
    """Learn a stage and write its values, if they are kept; returns the borders of their parts.

    Its task, which holds points, ends with it.
    """
    task = fitting.task(name) if is_kept else fitting.learned(name)
    folder.save_learned(fitting.stack, None)
    return_memory()
    if task is not None:
        fitting.perform(task, fitting.log(task))
    return_memory()
    return () if task is None else task.borders


def check_room(store: Store, folder: Path, job: NodeJob, room: Capacity) -> None:
    """Raise unless a run fits into the memory it may have, and on the disk of its folder."""
    size = RunSize.of(GraphSize.of(store), job, store)
    options: dict[str, Any] = {"structure": size.structure, "n_jobs": job.n_jobs}
    budget = plan_budget(job.stack, size.X, size.sets, room.memory, **options, n_workers=room.n_workers)
    check_disk(size, budget, folder)


@dataclass(frozen=True)
class StoreInputs:
    """What a pass reads.

    X : the features, or the first structural columns.
    sets : the multisets, in files or in memory.
    budget : what is held in memory.
    structural : structural columns by kind.
    stack : what was learned before.
    """

    X: Any
    sets: Any
    budget: Budget
    structural: dict[str, FileArray]
    stack: Stack


def read_inputs(store: Store, folder: RunFolder, job: NodeJob, room: Capacity | Budget) -> StoreInputs:
    """Return what a run reads; multisets and structural columns are made unless they are there.

    `room` is what there is, or a plan that was made from it.
    """
    stack = job.stack
    if folder.learned.is_file():
        stack = read_learned(folder.learned, job.stack, job.structure)[0]
        if not stack.columns and job.words is not None:  # axes and the map after them share a random stream
            stack = replace(stack, axes=None)
    X, sets, budget = _fitting(store, job, room)
    structural: dict[str, FileArray] = {}
    if budget.structure is not None:
        structural = write_structure(store, folder, job, budget.structure)
        return_memory()
    if X is None:
        if not structural:
            options: dict[str, Any] = {"advice": "ingest features", "settings": {"structure": "auto"}}
            raise InputError(parameter="structure", expected="be given if there are no features", **options)
        X = next(iter(structural.values()))
    held = sets.loaded() if budget.sets_in_memory else sets
    return StoreInputs(X, held, budget, structural, stack)


def _fitting(store: Store, job: NodeJob, room: Capacity | Budget) -> tuple[Any, Any, Budget]:
    """The features, or None, the multisets and what is held in memory; raises if it is too little."""
    X: Any = None if store.features is None else FloatRows(store.features)
    dtype = np.dtype(np.float32) if X is None else X.dtype
    memory = room.available if isinstance(room, Budget) else room.memory
    progress = silent if has_sets(store, job.rule, dtype) else job.progress
    with costing(progress, "multisets", float(store.n_edges)):
        sets: Any = build_sets(store, job.rule, dtype, memory=memory)
    if isinstance(room, Budget):
        return X, sets, room
    size = RunSize.of(GraphSize.of(store), job, store)
    options: dict[str, Any] = {"structure": size.structure, "n_workers": room.n_workers, "n_jobs": job.n_jobs}
    return X, sets, plan_budget(job.stack, size.X if X is None else X, sets, memory, **options)


def make_pass(inputs: StoreInputs, folder: RunFolder, job: NodeJob, executor: Executor) -> StoredPass:
    """Return the pass over these inputs."""
    costs = stack_costs(job.stack, inputs.X, inputs.sets, fitting=job.words is not None)
    if expect := getattr(job.progress, "expect", None):
        expect(costs)
    run = Run(n_jobs=job.n_jobs, progress=job.progress, costs=costs)
    run.engine(inputs.stack.layer.em)
    seeds = [] if job.words is None else np.random.SeedSequence(job.words).spawn(len(job.stack.block_weights))

    def perform(task: Task, log: PartLog) -> None:
        """Compute the missing parts of a task, from files that hold all it needs."""
        missing = log.missing
        if missing:
            folder.save_learned(fitting.stack, None)
            with run.progress(task.title, sum(map(task.steps, missing))) as bar:
                executor.run(fitting, task, log, bar.update)

    fitting = StoredPass(
        inputs.stack,
        inputs.X,
        inputs.sets,
        run,
        folder=folder,
        budget=inputs.budget,
        perform=perform,
        structural=inputs.structural,
        streams=list(map(np.random.default_rng, seeds)),
    )
    return fitting


def _finish(
    store: Store,
    folder: RunFolder,
    fitting: StoredPass,
    inputs: StoreInputs,
    borders: Mapping[str, tuple[int, ...]],
) -> None:
    """Write the manifest of a run that has ended, and remove the arrays between stages."""
    stack, arrays = fitting.stack, {}
    for name, weight in zip(stack.names, stack.block_weights, strict=True):
        if name in borders:
            array = folder.opened(name)
            log = folder.existing_log(name)
            arrays[name] = {
                "shape": list(array.shape),
                "dtype": str(array.dtype),
                "weight": weight,
                "borders": borders[name],
                "checksums": [log.checksum(part) for part in range(log.n_parts)],
            }
    manifest = {"store": store.digest, "arrays": arrays, "memory": describe(inputs.budget)}
    write_json(folder.path / "manifest.json", manifest)
    folder.remove_work()
