"""Row blocks and the threads that run them: one function, mapped over fixed blocks, gives the same bits anywhere.

Block borders depend only on the number of rows, results are returned in block order, and BLAS uses one thread. Neither
the number of threads nor their timing can change a result.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from threading import RLock, Thread, local
from typing import Any, Generic, TypeVar

import joblib
from threadpoolctl import OpenBLASController, ThreadpoolController

BLOCK_ROWS = 512
# On a GPU: twice its L2 cache, and still twice as fast as smaller blocks, which need more launches.
_GPU_BYTES = 128 * 2**20
_GPU_ROWS = (1024, 65_536)

# Approximate cost of a multiplication in a sparse product, in multiplications of a dense one; for progress bars.
SPARSE = 12

T = TypeVar("T")
B = TypeVar("B")
_blas = {"depth": 0, "limits": None}
_blas_lock = RLock()
_default_jobs: ContextVar[int | None] = ContextVar("default_jobs", default=None)
# Packages with a BLAS of their own: the loaded libraries are searched again after one of them is imported.
_BLAS_PACKAGES = ("scipy.linalg", "torch")


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> list[slice]:
    """Slices of at most `size` rows that cover `n_rows` rows.

    Their lengths differ by at most one row. If there are several, their number is even, so two threads end together.
    """
    count = -(-n_rows // size)
    if count == 1:
        return [slice(0, n_rows)]
    count = min(count + count % 2, n_rows)
    return [slice(n_rows * k // count, n_rows * (k + 1) // count) for k in range(count)]


def cut_blocks(indptr: Any, blocks: list[slice], most_entries: int) -> list[slice]:
    """The row blocks, divided if their rows, from indptr[v] to indptr[v + 1], hold too many entries together.

    A row is never divided: a single one may hold more.
    """
    cut: list[slice] = []
    for block in blocks:
        start = block.start
        while start < block.stop:
            last = int(indptr.searchsorted(indptr[start] + most_entries, side="right")) - 1
            stop = min(max(last, start + 1), block.stop)
            cut.append(slice(start, stop))
            start = stop
    return cut


def block_rows(device: str, row_bytes: int, rows: int = BLOCK_ROWS) -> int:
    """The number of rows of a block: `rows` on the CPU, and as many as take 128 MB, in steps of 1,024, on a GPU."""
    if device == "cpu":
        return rows
    least, most = _GPU_ROWS
    return min(most, max(least, _GPU_BYTES // max(row_bytes, 1) // least * least))


@contextmanager
def at_most(n_jobs: int) -> Iterator[None]:
    """Make `n_jobs` the default number of threads inside, in place of every core."""
    token = _default_jobs.set(n_jobs)
    try:
        yield
    finally:
        _default_jobs.reset(token)


def n_threads(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs`; None means every core this process may use."""
    n_jobs = _default_jobs.get() if n_jobs is None else n_jobs
    if n_jobs is not None:
        return joblib.effective_n_jobs(n_jobs)
    cores = _cores(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None)
    # joblib's worker processes share the cores among themselves through this variable.
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


@cache
def _cores(allowed: int | None) -> int:
    """The cores of a process that may run on `allowed` of them; cached, since reading a container's limits is slow."""
    return joblib.cpu_count()


@cache
def _libraries(loaded: tuple[bool, ...]) -> ThreadpoolController:
    """The BLAS libraries of this process; cached, since searching them takes 2 ms."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any caller is inside; the last one to leave restores the limits."""
    with _blas_lock:
        if _blas["depth"] == 0:
            loaded = tuple(map(sys.modules.__contains__, _BLAS_PACKAGES))
            _free_control()
            _blas["limits"] = _libraries(loaded).limit(limits=1)
            _free_control()
        _blas["depth"] += 1
    process = os.getpid()
    try:
        yield
    finally:
        with _blas_lock:
            if os.getpid() == process:  # a forked child has restored them already
                _blas["depth"] -= 1
                if _blas["depth"] == 0:
                    _restore_limits()


def _restore_limits() -> None:
    limits: Any = _blas["limits"]
    _free_control()
    limits.restore_original_limits()
    _free_control()


def _free_control() -> None:
    """Let this thread set limits: since 3.8 threadpoolctl ignores all threads but the first that did."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def _begin_child() -> None:
    """Restore the limits of BLAS in a forked child, whose only thread is outside, and make a new lock."""
    global _blas_lock
    if _blas["depth"] > 0:
        _blas["depth"] = 0
        _restore_limits()
    _blas_lock = RLock()


if hasattr(os, "register_at_fork"):
    # The lock is held while a process forks, so no child starts with limits that are half restored.
    os.register_at_fork(
        before=lambda: _blas_lock.acquire(), after_in_parent=lambda: _blas_lock.release(), after_in_child=_begin_child
    )


_listener: ContextVar[Callable[[float], Any] | None] = ContextVar("listener", default=None)


@contextmanager
def progress_to(listener: Callable[[float], Any]) -> Iterator[None]:
    """Call `listener(cost)` as the work inside reports its progress through `progress_steps`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def progress_steps(cost: float, n_blocks: int) -> Callable[[int], Any] | None:
    """The `advance` of a `map_blocks` that costs so many multiplications in all; None if there is no listener."""
    listener = _listener.get()
    return None if listener is None else lambda n: listener(cost * n / n_blocks)


def map_blocks(
    function: Callable[[B], T],
    blocks: Sequence[B],
    *,
    n_jobs: int | None = None,
    advance: Callable[[int], Any] | None = None,
) -> list[T]:
    """`[function(block) for block in blocks]`, on threads, in block order.

    `advance(n)` is called in the caller's thread as blocks are done, n of them since the last call. By default the
    listener is notified of a cost of one.
    """
    if advance is None and _listener.get() is not None:
        advance = progress_steps(1.0, len(blocks))
    token = _listener.set(None)  # calls inside blocks belong to their block
    try:
        with one_blas_thread():
            if len(blocks) != 1:
                return _Work(function, blocks, advance).run(min(n_threads(n_jobs), len(blocks)))
            results = [function(blocks[0])]
            if advance is not None:
                advance(1)
            return results
    finally:
        _listener.reset(token)


def per_thread(make: Callable[[], T]) -> Callable[[], T]:
    """A function that returns a `make()` per thread, made at its first call: scratch memory that blocks leave clean."""
    kept = local()

    def own() -> T:
        if not hasattr(kept, "value"):
            kept.value = make()
        return kept.value

    return own


class cached_attribute(Generic[T]):
    """`functools.cached_property` without its lock before Python 3.12, which a forked child may inherit."""

    def __init__(self, make: Callable[[Any], T]):
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value = instance.__dict__[self.name] = self.make(instance)
        return value


class _Work:
    """A queue of blocks for several threads.

    The caller's thread is one of them: with a future per block it would wake up for each, and compete for the
    interpreter with the threads that work.
    """

    def __init__(self, function: Callable[[B], T], blocks: Sequence[B], advance: Callable[[int], Any] | None):
        self.function, self.advance = function, advance
        self.waiting = deque(enumerate(blocks))
        self.results: list[Any] = [None] * len(blocks)
        self.done: list[int] = []  # the blocks that are done, in the order they ended in
        self.reported = 0
        self.failures: dict[int, BaseException] = {}

    def run(self, threads: int) -> list[Any]:
        """The results in block order, or the error of the first block that failed."""
        helpers: list[Thread] = []
        try:
            for _ in range(threads - 1):
                helpers.append(Thread(target=copy_context().run, args=(self._take,)))  # NumPy's error state is kept
                helpers[-1].start()
            self._take(self.advance)
        finally:
            self.waiting.clear()  # empty already, unless the caller was interrupted
            for helper in helpers:
                helper.join()
        if self.failures:
            raise self.failures[min(self.failures)]
        self._report(self.advance)
        return self.results

    def _take(self, advance: Callable[[int], Any] | None = None) -> None:
        """Run blocks until none is left; the caller's thread reports what all of them have done."""
        while True:
            try:
                k, block = self.waiting.popleft()
            except IndexError:
                return
            try:
                self.results[k] = self.function(block)
                self.done.append(k)
            except BaseException as error:
                self.failures[k] = error
                self.waiting.clear()
            self._report(advance)

    def _report(self, advance: Callable[[int], Any] | None) -> None:
        done = len(self.done)
        if advance is not None and done > self.reported:
            advance(done - self.reported)
            self.reported = done
