"""`DaskExecutor`: the parts of a run on the workers of a `dask.distributed` cluster.

The store is on a file system that every worker sees. What a worker receives is in `fishergraph.scale.remote`. A part
writes the same bytes wherever and however often it is computed, so a part of a lost or slow worker is computed again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fishergraph._errors import ClusterError, InputError
from fishergraph._optional import require
from fishergraph._parallel import n_threads
from fishergraph._version import __version__
from fishergraph.config import get_config
from fishergraph.scale.dask_parts import Round
from fishergraph.scale.memory import parse_memory
from fishergraph.scale.remote import RemoteRun, compute_parts, digest_of, forget, probe
from fishergraph.scale.run import Capacity, Memory
from fishergraph.scale.run_folder import PartLog, RunFolder
from fishergraph.scale.stored_pass import StoredPass, Task

CONNECTS_WITHIN = 5.0  # seconds
# Of the memory of a worker: Dask stops giving work to one that uses 80 %.
_USED_SHARE = 0.6


class DaskExecutor:
    """Computes the parts of a run on the workers of a cluster.

    Pass it, or what it is made from, to a `Store`.

    Parameters
    ----------
    where : Client, str or int
        A client of `dask.distributed`; the address of a scheduler, such as "tcp://node1:8786", or its file
        "scheduler.json"; "local", or a number of processes, for a cluster on this machine that ends with the run.
    patience : float, default=120.0
        Seconds without any worker after which the run stops.

    See Also
    --------
    Store : Takes it as `client`.

    Examples
    --------
    >>> from fishergraph.scale import DaskExecutor
    >>> DaskExecutor("tcp://node1:8786", patience=600)
    DaskExecutor('tcp://node1:8786', patience=600)
    """

    def __init__(self, where: Any, *, patience: float = 120.0):
        self.where, self.patience = _checked(where), patience
        self._client: Any = None
        self._n_jobs: int | None = None

    def __repr__(self) -> str:
        return f"DaskExecutor({self.where!r}, patience={self.patience:g})"

    @contextmanager
    def working(self, folder: RunFolder, memory: Memory, n_jobs: int | None) -> Iterator[Capacity]:
        """Connect to the cluster for the length of a run.

        Parameters
        ----------
        folder : RunFolder
            The folder of the run, which every worker must see.
        memory : int or str, optional
            Bytes that each process may have.
        n_jobs : int, optional
            Threads of each worker.

        Yields
        ------
        Capacity
            The memory of each process, and the number of workers.
        """
        self._n_jobs = n_jobs
        with self._connected(n_jobs) as client:
            self._client = client
            n_workers = self._wait_for_workers()
            try:
                yield Capacity(self._check_workers(folder, memory), n_workers)
            finally:
                with suppress(Exception):  # the scheduler may be gone
                    client.run(_forget, wait=False)

    def run(self, stages: StoredPass, task: Task, log: PartLog, advance: Callable[[int], Any]) -> None:
        """Compute the missing parts of a task, and mark each when it is on the disk.

        Parameters
        ----------
        stages : StoredPass
            The pass that the task belongs to.
        task : Task
            The task.
        log : PartLog
            Its log.
        advance : callable
            Called with the steps that were done.
        """
        folder = stages.folder
        path, digest = str(folder.path.resolve()), digest_of(folder.path / "run.json")
        engine = get_config()["engine"]
        remote = RemoteRun(path, digest, stages.budget, stages.part_bytes, self._n_jobs, engine)
        learned, missing = digest_of(folder.learned), set(log.missing)
        groups = [part for part in ([p for p in group if p in missing] for group in task.together) if part]

        def submit(parts: list[int], **options: Any) -> Any:
            return self._client.submit(_compute, remote, learned, task.name, parts, pure=False, **options)

        for parts, checksums in Round(self._client, submit, task.name, groups, self.patience):
            for part, checksum in zip(parts, checksums, strict=True):
                log.mark(part, checksum)
            advance(sum(map(task.steps, parts)))

    @contextmanager
    def _connected(self, n_jobs: int | None) -> Iterator[Any]:
        """A client, which is closed at the end if it is ours."""
        distributed = _distributed()
        if isinstance(self.where, distributed.Client):
            yield self.where
            return
        if isinstance(self.where, int):
            self._n_jobs = n_jobs or max(n_threads(None) // self.where, 1)
            with _local_cluster(self.where) as cluster, distributed.Client(cluster, set_as_default=False) as client:
                yield client
            return
        with _client_of(self.where) as client:
            yield client

    def _wait_for_workers(self) -> int:
        """The number of workers, once there is one."""
        try:
            self._client.wait_for_workers(1, timeout=self.patience)
            return len(self._client.nthreads())
        except TimeoutError:
            reason = f"it has had no worker for {self.patience:g} seconds"
            raise ClusterError(where=_address(self._client), reason=reason, advice="start some") from None

    def _check_workers(self, folder: RunFolder, memory: Memory) -> int:
        """The bytes that each process may have; raise if a worker cannot take part."""
        digest, path = digest_of(folder.path / "run.json"), str(folder.path.resolve())
        answers = self._client.run(_probe, path, digest, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, OSError):  # lost; it is looked at when it is back
                continue
            if isinstance(answer, Exception):
                reason = f"it cannot use fishergraph {__version__} ({answer})"
                raise ClusterError(where=f"the worker {worker}", reason=reason, advice="install that version on it")
            if answer["reason"]:
                advice = "see the guide to clusters: all workers need the same files, versions and kind of processor"
                raise ClusterError(where=f"the worker {worker}", reason=answer["reason"], advice=advice)
        return self._memory(memory, answers)

    def _memory(self, memory: Memory, answers: dict[str, Any]) -> int:
        """The bytes that each process may have."""
        found = {worker: answer for worker, answer in answers.items() if isinstance(answer, dict)}
        limits = {worker: answer["limit"] or answer["memory"] for worker, answer in found.items()}
        if not limits:
            reason, advice = "its workers were lost", "run again to go on"
            raise ClusterError(where=_address(self._client), reason=reason, advice=advice)
        smallest = min(limits, key=limits.__getitem__)
        if memory is None:
            here = parse_memory(None) // (self.where + 1 if isinstance(self.where, int) else 1)
            return int(min(_USED_SHARE * limits[smallest], here))
        wanted = parse_memory(memory)
        if wanted > limits[smallest]:
            expected = f"be at most the memory of a worker: {smallest} has {limits[smallest] / 1e9:.1f}G"
            raise InputError(parameter="memory", value=memory, expected=expected)
        return wanted


def make_executor(where: Any) -> DaskExecutor:
    """Return what computes the parts of a run on a cluster.

    Parameters
    ----------
    where : Client, str, int or DaskExecutor
        See `DaskExecutor`; a number may be a text.

    Returns
    -------
    DaskExecutor
        The executor.
    """
    return where if isinstance(where, DaskExecutor) else DaskExecutor(where)


def _checked(where: Any) -> Any:
    """A client, an address, or a number of processes on this machine."""
    if isinstance(where, str):
        if where == "local":
            return n_threads(None)
        if where.isdigit():
            where = int(where)
        elif "://" in where or where.endswith(".json"):
            return where
    if isinstance(where, int) and not isinstance(where, bool) and where >= 1:
        return where
    if not isinstance(where, (str, int)) and isinstance(where, _distributed().Client):
        if where.asynchronous:
            raise InputError(parameter="client", value=where, expected="not be asynchronous", got="one that is")
        return where
    expected = (
        "be a Client of dask.distributed, an address such as 'tcp://node1:8786', 'local' or a number of processes"
    )
    raise InputError(parameter="client", value=where, expected=expected)


def _distributed() -> Any:
    return require("distributed", extra="dask")


def _address(client: Any) -> str:
    return f"the scheduler {client.scheduler.address}"


@contextmanager
def _local_cluster(n_workers: int) -> Iterator[Any]:
    """Processes on this machine, each for one part at a time."""
    distributed = _distributed()
    options: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": logging.ERROR}
    with distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, **options) as cluster:
        yield cluster


@contextmanager
def _client_of(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, or in a file that names it."""
    distributed = _distributed()
    source = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        client = distributed.Client(**source, timeout=CONNECTS_WITHIN, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        reason, advice = f"no scheduler answers ({error})", "check the address, or start one with: dask scheduler"
        raise ClusterError(where=f"'{address}'", reason=reason, advice=advice) from None
    with client:
        yield client


# --- in the workers --------------------------------------------------------------------------------------


def _compute(run: RemoteRun, learned: str, name: str, parts: list[int]) -> list[int]:
    """Compute parts on the threads of this worker."""
    from distributed import get_worker

    return compute_parts(run, learned, name, parts, get_worker().state.nthreads)


async def _forget() -> None:
    """Drop what this worker keeps, without waiting for it."""
    forget()


def _probe(path: str, digest: str, dask_worker: Any = None) -> dict[str, Any]:
    """What this worker is like."""
    return {"limit": dask_worker.memory_manager.memory_limit, **probe(path, digest)}
