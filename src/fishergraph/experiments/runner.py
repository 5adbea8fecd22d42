"""The runner of Table 1: columns → jobs → processes → rows. Killed at any time, it goes on where the rows end.

Rows are written by this process alone, each group when its job is done. A job that was under way when the run was
killed left no row, and is run again; its process ends with this one.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from fishergraph.experiments.jobs import Job, run_job, share_fits
from fishergraph.experiments.plan import Column, Status, by_key, status
from fishergraph.experiments.rows import append_rows, read_rows
from fishergraph.experiments.specs import DATASETS, Spec
from fishergraph.io.files import check_folder

# One thread per process: numbers do not depend on how many there are.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def columns_of(specs: Iterable[Spec], datasets: Sequence[str], **options: Any) -> list[Column]:
    """A column of work per method and graph, what takes longest first."""
    size = {name: place for place, name in enumerate(DATASETS)}
    found = [Column(spec, name, **options) for name in datasets for spec in specs]
    return sorted(found, key=lambda column: (-column.spec.heavy, -size[column.dataset]))


def run_columns(
    columns: Sequence[Column],
    path: Path,
    pool: Executor,
    *,
    jobs: int = 1,
    data_home: Path | None = None,
    device: str = "cpu",
    watch: Callable[[list[Status]], None] = lambda found: None,
) -> list[dict[str, Any]]:
    """Run what the rows in `path` lack, `jobs` jobs at a time; returns all rows of the file.

    Args:
        columns: what is wanted, in the order in which it is begun.
        pool: where jobs run.
        data_home, device: of every job.
        watch: called after every job with where the columns stand.

    A column whose job fails is given up, the others go on; at the end a RuntimeError says which and why.
    """
    check_folder(path)
    with alone(path):
        rows, work = by_key(read_rows(path)), _Work(data_home, device)
        while True:
            watch([status(column, rows) for column in columns])
            for job in work.next_jobs(columns, rows, jobs):
                work.running[pool.submit(run_job, job)] = job
            if not work.running:
                break
            for found in work.finished():
                append_rows(path, found)
                rows |= by_key(found)
        work.check()
    return read_rows(path)


class _Work:
    """The jobs that are running, and the columns that failed."""

    def __init__(self, data_home: Path | None, device: str):
        self.data_home, self.device = data_home, device
        self.running: dict[Future, Job] = {}
        self.failed: dict[tuple[str, str], str] = {}

    def next_jobs(self, columns: Sequence[Column], rows: dict[str, Any], jobs: int) -> Iterator[Job]:
        """Jobs to start now, until `jobs` are running."""
        busy = {cell.key for job in self.running.values() for cell in job.cells}
        for column in columns:
            if _name(column) in self.failed:
                continue
            missing = [cell for cell in column.stages(rows)[-1].missing(rows) if cell.key not in busy]
            for cells in share_fits(column, missing):
                if len(self.running) >= jobs:
                    return
                yield Job(column, cells, self.data_home, self.device)

    def finished(self) -> list[list[dict[str, Any]]]:
        """The rows of the jobs that are done, at least one of them."""
        done, _ = wait(self.running, return_when=FIRST_COMPLETED)
        found = []
        for future in done:
            job, error = self.running.pop(future), future.exception()
            if error is None:
                found.append(future.result())
            else:
                self.failed[_name(job.column)] = f"{type(error).__name__}: {error}"
        return found

    def check(self) -> None:
        if self.failed:
            told = "; ".join(f"{method} on {dataset} ({why})" for (method, dataset), why in self.failed.items())
            raise RuntimeError(
                f"every column must run to its end, got {len(self.failed)} that failed: {told}. All other rows are "
                "kept; mend the cause and run the same command again."
            )


def _name(column: Column) -> tuple[str, str]:
    return column.spec.method, column.dataset


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """A pool of processes of one thread each; they end with this one, however it ends."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)
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


def _begin() -> None:
    """Leave Ctrl-C to the parent, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a file of rows against a second run, which would run the same cells; the hold ends with the process."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(path.with_name(path.name + ".lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RuntimeError(
                f"one run at a time must write '{path}', got a second one; wait for the first, or name another folder."
            ) from None
        yield
