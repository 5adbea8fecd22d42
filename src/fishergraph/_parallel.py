"""Row blocks and the threads that run them: one function, mapped over fixed blocks, gives the same bits anywhere.

Block borders depend on the number of rows alone, results come back in block order, and BLAS is held to one
thread, so neither the number of threads nor their timing can change a result.
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
# On a card: twice its second-level cache, and still twice as fast as blocks that fit, whose launches take longer.
_CARD_BYTES = 128 * 2**20
_CARD_ROWS = (1024, 65_536)

# How long a multiplication of a sparse product takes beside one of a dense product, roughly: for progress bars.
SPARSE = 12

T = TypeVar("T")
B = TypeVar("B")
_blas = {"depth": 0, "limits": None}
_blas_lock = RLock()
_default_jobs: ContextVar[int | None] = ContextVar("default_jobs", default=None)
# Packages that bring a BLAS of their own: the loaded libraries are looked up again once one of them is imported.
_BLAS_PACKAGES = ("scipy.linalg", "torch")


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> list[slice]:
    """Slices of at most `size` rows that cover `n_rows` rows: all as long as each other, to a row, and an even number
    of them where there are several, so that two threads end together."""
    count = -(-n_rows // size)
    if count == 1:
        return [slice(0, n_rows)]
    count = min(count + count % 2, n_rows)
    return [slice(n_rows * k // count, n_rows * (k + 1) // count) for k in range(count)]


def cut_blocks(indptr: Any, blocks: list[slice], most_entries: int) -> list[slice]:
    """The row blocks, cut further where their rows, from indptr[v] to indptr[v + 1], hold too many entries together.

    A row is never cut: a single one may hold more.
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
    """How many rows a block has: `rows` on the CPU, and on a card as many as take 128 MB, in steps of 1,024."""
    if device == "cpu":
        return rows
    least, most = _CARD_ROWS
    return min(most, max(least, _CARD_BYTES // max(row_bytes, 1) // least * least))


@contextmanager
def at_most(n_jobs: int) -> Iterator[None]:
    """Give calls inside that name no number of threads those of `n_jobs`, instead of every core."""
    token = _default_jobs.set(n_jobs)
    try:
        yield
    finally:
        _default_jobs.reset(token)


def n_threads(n_jobs: int | None) -> int:
    """The number of threads `n_jobs` asks for; None means every core this process may use."""
    n_jobs = _default_jobs.get() if n_jobs is None else n_jobs
    if n_jobs is not None:
        return joblib.effective_n_jobs(n_jobs)
    cores = _cores(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None)
    # joblib's worker processes share the cores among themselves through this variable.
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


@cache
def _cores(allowed: int | None) -> int:
    """The cores of a process that may run on `allowed` of them; reading a container's limits takes 0.1 ms."""
    return joblib.cpu_count()


@cache
def _libraries(loaded: tuple[bool, ...]) -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes 2 ms, more than a small block's work."""
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread while any caller is inside, and give it back when the last one leaves."""
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
            if os.getpid() == process:  # a child that was forked inside has left already
                _blas["depth"] -= 1
                if _blas["depth"] == 0:
                    _give_back()


def _give_back() -> None:
    limits: Any = _blas["limits"]
    _free_control()
    limits.restore_original_limits()
    _free_control()


def _free_control() -> None:
    """Let this thread set limits: since 3.8 threadpoolctl obeys the first thread that did, and ignores all others."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def _begin_child() -> None:
    """A forked child has one thread, which is inside nothing: BLAS is given back, and the lock is a new one."""
    global _blas_lock
    if _blas["depth"] > 0:
        _blas["depth"] = 0
        _give_back()
    _blas_lock = RLock()


if hasattr(os, "register_at_fork"):
    # The lock is held while a process forks, so that no child begins with BLAS half given back.
    os.register_at_fork(
        before=lambda: _blas_lock.acquire(),
        after_in_parent=lambda: _blas_lock.release(),
        after_in_child=_begin_child,
    )


_listener: ContextVar[Callable[[float], Any] | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Callable[[float], Any]) -> Iterator[None]:
    """Let `listener(cost)` know of the work inside that `telling` reports."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def telling(cost: float, n_blocks: int) -> Callable[[int], Any] | None:
    """The `advance` of a `map_blocks` that costs so many multiplications in all; None where nobody listens."""
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

    `advance(n)` is called in the caller's thread as blocks are done, n of them since the last call. Without it a
    listener hears of the call as of a cost of one.
    """
    if advance is None and _listener.get() is not None:
        advance = telling(1.0, len(blocks))
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
    """A function that gives every thread its own `make()`, made when it first asks: scratch that blocks leave clean."""
    kept = local()

    def own() -> T:
        if not hasattr(kept, "value"):
            kept.value = make()
        return kept.value

    return own


class cached_attribute(Generic[T]):
    """`functools.cached_property` without the lock that it has before Python 3.12, which a forked child may inherit."""

    def __init__(self, make: Callable[[Any], T]):
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        value = instance.__dict__[self.name] = self.make(instance)
        return value


class _Work:
    """Blocks that threads take, first come, first served. The caller's thread is one of them: with a future per block
    it would be woken for each, and wait for the interpreter together with those that work."""

    def __init__(self, function: Callable[[B], T], blocks: Sequence[B], advance: Callable[[int], Any] | None):
        self.function, self.advance = function, advance
        self.waiting = deque(enumerate(blocks))
        self.results: dict[int, Any] = {}
        self.failures: dict[int, BaseException] = {}
        self.told = 0

    def run(self, threads: int) -> list[Any]:
        """The results in block order, or the error of the first block that failed."""
        n_blocks, helpers = len(self.waiting), []
        try:
            for _ in range(threads - 1):
                helper = Thread(target=copy_context().run, args=(self._take,))  # NumPy's error state is the caller's
                helper.start()
                helpers.append(helper)
            self._take(self._tell)
        finally:
            self.waiting.clear()  # nothing is left, unless the caller was interrupted
            for helper in helpers:
                helper.join()
        if self.failures:
            raise self.failures[min(self.failures)]
        self._tell()
        return [self.results[k] for k in range(n_blocks)]

    def _take(self, tell: Callable[[], Any] = lambda: None) -> None:
        while True:
            try:
                k, block = self.waiting.popleft()
            except IndexError:
                return
            try:
                self.results[k] = self.function(block)
            except BaseException as error:
                self.failures[k] = error
                self.waiting.clear()
            tell()

    def _tell(self) -> None:
        done = len(self.results)
        if done > self.told:
            if self.advance is not None:
                self.advance(done - self.told)
            self.told = done
