"""Parts of a run, computed in another process: it opens the files of the run, and returns checksums.

What is sent is small: the path of the run, the name of a task, and the numbers of parts. The process keeps the run
open, with the points of the current layer in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from fishergraph._errors import ClusterError
from fishergraph._parallel import one_blas_thread
from fishergraph._validation import host_bytes
from fishergraph._version import __version__
from fishergraph.config import config_context
from fishergraph.estimators import FisherEmbedding
from fishergraph.estimators.model_file import given_params
from fishergraph.estimators.source import NodeJob
from fishergraph.estimators.state import read_learned
from fishergraph.layer import Run
from fishergraph.multiset import choose_multiset
from fishergraph.scale.budget import Budget
from fishergraph.scale.cpu import cpu_target
from fishergraph.scale.run import StoreInputs, read_inputs
from fishergraph.scale.run_folder import BegunFolder, PartLog
from fishergraph.scale.store import Store
from fishergraph.scale.stored_pass import StoredPass, Task
from fishergraph.structural import choose_structure

# Seconds that a file system of a network may take until it shows a file as it was written elsewhere.
_SEEN_SOON, _SEEN_AFTER = 5.0, 90.0


@dataclass(frozen=True)
class RemoteRun:
    """A run, as other processes open it.

    path : of the run folder.
    digest : of its run.json.
    budget : what is held in memory.
    part_bytes : of the rows of a part.
    n_jobs : threads; None is those of the worker.
    engine : of the settings of the library.
    """

    path: str
    digest: str
    budget: Budget
    part_bytes: int
    n_jobs: int | None
    engine: str | None


class _Held:
    """What a process keeps between calls: one run, and the task of one array."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.forget()

    def forget(self) -> None:
        """Drop everything."""
        self.run: RemoteRun | None = None
        self.job: NodeJob | None = None
        self.inputs: StoreInputs | None = None
        self.key, self.task = ("", ""), None

    def opened(self, run: RemoteRun, learned: str, name: str) -> Task:
        """The task of that name, of the run in which that much was learned."""
        if self.run != run:
            self.forget()
            self.job, self.inputs = _open(run, learned)
            self.run = run
        if self.task is None or self.key != (learned, name):
            self.task = None  # the memory of the task before is free first
            assert self.job is not None
            assert self.inputs is not None
            self.task = _open_task(run, self.job, self.inputs, learned, name)
            self.key = (learned, name)
        return self.task


_held = _Held()


def compute_parts(run: RemoteRun, learned: str, name: str, parts: list[int], n_threads: int = 1) -> list[int]:
    """Compute parts of a task and return their checksums, once they are on the disk.

    Parameters
    ----------
    run : RemoteRun
        The run.
    learned : str
        The digest of its file of what was learned.
    name : str
        The task.
    parts : list of int
        Numbers of its parts.
    n_threads : int, default=1
        Threads, unless the run names a number.

    Returns
    -------
    list of int
        The checksum of every part.
    """
    with _held.lock, one_blas_thread(), config_context(engine=run.engine):
        run = replace(run, n_jobs=run.n_jobs or n_threads)
        task = _held.opened(run, learned, name)
        checksums = [task.compute(part, lambda n: None) for part in parts]
        task.array.sync()
    return checksums


def forget() -> None:
    """Drop what this process keeps, unless it is computing."""
    if _held.lock.acquire(blocking=False):
        _held.forget()
        _held.lock.release()


def probe(path: str, digest: str) -> dict[str, Any]:
    """Return what a process that is to compute parts is like: why it cannot, and its memory."""
    try:
        reason = _reason(Path(path), digest)
    except OSError as error:
        reason = f"it cannot read '{path}' ({error})"
    return {"reason": reason, "memory": host_bytes()}


def digest_of(path: Path) -> str:
    """A text that another content of a file would change."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reason(folder: Path, digest: str) -> str:
    """Why this process cannot compute parts of a run; empty if it can."""
    path = folder / "run.json"
    if not path.is_file():
        return f"it does not see the file '{path}'"
    if not _seen(path, digest, _SEEN_SOON):
        return f"it sees another file '{path}'"
    identity = json.loads(path.read_text())
    if identity["fishergraph"] != __version__:
        return f"it has version {__version__} of fishergraph, and the run has {identity['fishergraph']}"
    here, there = cpu_target(), identity["cpu"]
    differing = [f"{key} is {here.get(key)!r}, not {there.get(key)!r}" for key in there if here.get(key) != there[key]]
    return f"its results would have other bits, because {', '.join(differing)}" if differing else ""


def _seen(path: Path, digest: str, patience: float) -> bool:
    """Whether a file has these bytes, perhaps after a while."""
    end = time.monotonic() + patience
    while True:
        os.listdir(path.parent)  # some file systems look for new files only then
        if path.is_file() and digest_of(path) == digest:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.5)


def _open(run: RemoteRun, learned: str) -> tuple[NodeJob, StoreInputs]:
    """The work of a run, and what it reads, by its path."""
    folder = BegunFolder(Path(run.path))
    reason = _reason(folder.path, run.digest)
    if reason:
        raise ClusterError(where=_here(), reason=reason)
    identity, store = folder.identity, Store(folder.path.parents[1])
    estimator = FisherEmbedding(**given_params(identity["parameters"]))
    stack = estimator.settings(features=store.n_features > 0)
    stack = replace(stack, block_weights=tuple(identity["weights"]))
    structure = choose_structure(estimator.structure) if stack.structure or store.n_features == 0 else None
    rule = choose_multiset(estimator.multiset)
    job = NodeJob(stack, rule, structure, None, identity["parameters"], n_jobs=run.n_jobs)
    _wait_for(folder, learned)
    return job, read_inputs(store, folder, job, run.budget)


def _open_task(run: RemoteRun, job: NodeJob, inputs: StoreInputs, learned: str, name: str) -> Task:
    """A task of a run in which that much was learned."""
    folder = BegunFolder(Path(run.path))
    _wait_for(folder, learned)
    stages = StoredPass(
        read_learned(folder.learned, job.stack, job.structure)[0],
        inputs.X,
        inputs.sets,
        Run(n_jobs=run.n_jobs),
        folder=folder,
        budget=run.budget,
        perform=_check_complete,
        structural=inputs.structural,
        part_bytes=run.part_bytes,
    )
    return stages.opened(name)


def _wait_for(folder: BegunFolder, learned: str) -> None:
    if not _seen(folder.learned, learned, _SEEN_AFTER):
        raise ClusterError(where=_here(), reason=f"it sees another file '{folder.learned}' than that of the run")


def _check_complete(task: Task, log: PartLog) -> None:
    """Raise unless an array that others are made from is complete."""
    if not log.is_complete:
        raise ClusterError(where=_here(), reason=f"it does not see all parts of '{task.array.path}'")


def _here() -> str:
    """The name of this process."""
    return f"process {os.getpid()} of {platform.node()}"
