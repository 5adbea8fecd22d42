"""The runner of Table 1: columns → jobs → processes → rows. After a kill it continues from the rows.

A method gets `VisibleData` and nothing else: features, graph, and the labels of training and validation nodes. All
other labels are −1 in it, in a search and in a final run, and it does not say which nodes are the test nodes. `run_job`
reads the test labels for the cells of the final stage, after the method has predicted.

Only this process writes rows, those of a job when it is done. A job that was running when the run was killed has no
row, and is run again; its process ends with this one.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context, parent_process
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from fishergraph._version import package_versions
from fishergraph.datasets import GraphData, load_graph
from fishergraph.io.files import check_folder
from fishergraph.lab.baselines import baseline
from fishergraph.lab.baselines.base import HIDDEN
from fishergraph.lab.experiments.plan import FINAL, Column, Status, by_key, status
from fishergraph.lab.rows import Cell, append_rows, locked, new_row, peak_memory, read_rows, reset_peak
from fishergraph.probes import LogisticProbe

# One thread per process, so that results do not depend on the number of processes.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


# --- one job ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VisibleData:
    """What a method gets; labels are −1 except those of the training and validation nodes."""

    X: Any
    graph: Any
    y: np.ndarray
    train: np.ndarray
    val: np.ndarray


def visible_data(data: GraphData) -> VisibleData:
    """The data without the test labels."""
    train, val, _ = data.split()
    y = np.full_like(data.y, HIDDEN)
    for nodes in (train, val):
        y[nodes] = data.y[nodes]
    return VisibleData(data.X, data.graph, y, train, val)


@dataclass(frozen=True)
class Prediction:
    """The classes of all nodes, the validation accuracy, and other values for the row."""

    classes: np.ndarray
    val: float
    notes: dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Cells of one column that share a fit."""

    column: Column
    cells: tuple[Cell, ...]  # they differ in the nested setting alone
    data_home: Path | None = None
    device: str = "cpu"


def group_cells(column: Column, cells: list[Cell]) -> list[tuple[Cell, ...]]:
    """The cells in groups that share a fit."""
    nested, groups = _nested_setting(column), {}
    for cell in cells:
        settings = {name: value for name, value in cell.parameters["settings"].items() if name != nested}
        key = Cell(cell.parameters["stage"], settings, cell.seed).key if nested else cell.key
        groups.setdefault(key, []).append(cell)
    return [tuple(group) for group in groups.values()]


def _nested_setting(column: Column) -> str | None:
    """The nested setting, if its cells can share a fit: their probe must be the linear one."""
    return column.spec.nested if column.protocol.settings.get("probe", "logistic") == "logistic" else None


def run_job(job: Job) -> list[dict[str, Any]]:
    """The rows of the cells of a job, in their order."""
    data = load(job.column.dataset, job.data_home)
    reset_peak()
    start, busy = perf_counter(), process_time()
    fit = fit_nested if _nested_setting(job.column) else fit_each
    predictions = fit(job, visible_data(data))
    seconds, cpu = (now / len(predictions) for now in (perf_counter() - start, process_time() - busy))
    origin = {"cpu_seconds": round(cpu, 4), "peak_mb": peak_memory(), "device": job.device}
    rows = []
    for cell, prediction in zip(job.cells, predictions, strict=True):
        values = {"val": prediction.val, **prediction.notes}
        if cell.parameters["stage"] == FINAL:
            test = data.split()[2]
            values["test"] = float(np.mean(prediction.classes[test] == data.y[test]))
        rows.append(new_row(cell, values, seconds) | origin | {"versions": package_versions()})
    return rows


@lru_cache(maxsize=1)
def load(name: str, data_home: Path | None) -> GraphData:
    """The graph, kept for the next job of this process."""
    return load_graph(name, data_home=data_home)


def fit_each(job: Job, data: VisibleData) -> list[Prediction]:
    """A fit per cell."""
    return [_fit(job, cell, data) for cell in job.cells]


def _fit(job: Job, cell: Cell, data: VisibleData) -> Prediction:
    model: Any = baseline(cell.parameters["method"], **cell.parameters["settings"])
    if hasattr(model, "device"):
        model.device = job.device
    elif "options" in model.get_params():
        model.options = {"n_jobs": 1, "device": job.device, **(model.options or {})}
    model.fit(data.X, data.y, graph=data.graph, train=data.train, val=data.val, seed=cell.seed or 0)
    notes = {"C": getattr(getattr(model, "probe_", None), "C_", None)}
    history = getattr(model, "history_", None)
    notes |= {"best_epoch": history.best_epoch, "epochs": len(history)} if history else {}
    return Prediction(model.predict(), model.val_score_, {k: note for k, note in notes.items() if note is not None})


def fit_nested(job: Job, data: VisibleData) -> list[Prediction]:
    """One embedding of the deepest cell. Its blocks ψ_0 … ψ_t are the embedding of t layers, which is probed alone.

    The layers of a stack are learned one after the other, each with its own random stream.
    """
    depths = [cell.parameters["settings"]["n_layers"] for cell in job.cells]
    deepest = job.cells[int(np.argmax(depths))]
    model: Any = baseline(deepest.parameters["method"], **deepest.parameters["settings"])
    embedding = model.embedding(deepest.seed, n_jobs=1, device=job.device)
    Z = embedding.fit_transform(data.X, graph=data.graph)
    ends = np.cumsum(embedding.stack_.widths)
    predictions = []
    for depth in depths:
        blocks = np.ascontiguousarray(Z[:, : ends[depth]])
        probe = LogisticProbe(**(model.probe_options or {})).fit(blocks, data.y, data.train, data.val)
        predictions.append(Prediction(probe.predict(blocks), probe.val_score_, {"C": probe.C_}))
    return predictions


# --- all jobs ---------------------------------------------------------------------------------------------


def run_columns(
    columns: Sequence[Column],
    path: Path,
    pool: Executor,
    *,
    jobs: int = 1,
    data_home: Path | None = None,
    device: str = "cpu",
    watch: Callable[[list[Status]], None] = lambda statuses: None,
) -> list[dict[str, Any]]:
    """Run the cells that have no row in a file, `jobs` at a time; returns all rows.

    `watch` receives the status of the columns after every job. If a job fails, its column stops and the others go on;
    at the end a RuntimeError names it and the reason.
    """
    check_folder(path)
    with only_run(path):
        rows, running, failed = by_key(read_rows(path)), {}, {}
        while True:
            watch([status(column, rows) for column in columns])
            left = [column for column in columns if column.name not in failed]
            for job in _next_jobs(left, rows, running.values(), jobs, data_home, device):
                running[pool.submit(run_job, job)] = job
            if not running:
                break
            for new in _completed(running, failed):
                append_rows(path, new)
                rows |= by_key(new)
    if failed:
        reasons = "; ".join(f"{name} ({reason})" for name, reason in failed.items())
        raise RuntimeError(
            f"every column must run to its end, got {len(failed)} that failed: {reasons}. The other rows are kept. "
            "Correct the cause and run the same command again."
        )
    return read_rows(path)


def _next_jobs(
    columns: Sequence[Column], rows: Any, running: Any, jobs: int, data_home: Path | None, device: str
) -> list[Job]:
    """Jobs to start now, so that `jobs` are running."""
    busy = {cell.key for job in running for cell in job.cells}
    free, new = jobs - len(running), []
    for column in columns:
        if len(new) >= free:
            break
        missing = [cell for cell in column.stages(rows)[-1].missing(rows) if cell.key not in busy]
        new += [Job(column, cells, data_home, device) for cells in group_cells(column, missing)]
    return new[: max(free, 0)]


def _completed(running: dict[Future, Job], failed: dict[str, str]) -> Iterator[list[dict[str, Any]]]:
    """The rows of the jobs that are done, at least one; failures are entered in `failed`."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        job, error = running.pop(future), future.exception()
        if error is None:
            yield future.result()
        else:
            failed[job.column.name] = f"{type(error).__name__}: {error}"


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """A pool of processes with one thread each, which end with this process."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start_process)
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _start_process() -> None:
    """Leave Ctrl-C to the parent, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


@contextmanager
def only_run(path: Path) -> Iterator[None]:
    """Lock a file of rows against a second run, which would run the same cells."""
    with ExitStack() as stack:
        file = stack.enter_context(open(path.with_name(path.name + ".lock"), "w"))
        try:
            stack.enter_context(locked(file, wait=False))
        except OSError:
            raise RuntimeError(
                f"'{path}' is being written by another run; wait for it to end, or name another folder."
            ) from None
        yield
