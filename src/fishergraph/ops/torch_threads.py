"""The number of threads of PyTorch's operators on the CPU during a call of this library."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from threading import Event, Lock, Thread, local
from typing import Any, TypeVar

import torch

from fishergraph._parallel import at_most
from fishergraph._validation import check_n_jobs

T = TypeVar("T")
_state = {"inside": 0, "before": 0, "forked": False, "sleepers": 0}
# Numbers that PyTorch gives a thread at least.
_GRAIN = 2**15
_lock, _thread = Lock(), local()


@contextmanager
def torch_threads(n_jobs: int | None) -> Iterator[None]:
    """Limit the compiled loops to `n_jobs` threads, and PyTorch's operators to one thread if it is a positive number.

    PyTorch's sums and thin products round differently with another number of threads; with one thread any `n_jobs`
    gives the same result. None and −1, every core, leave PyTorch as it is. In a forked child PyTorch always has one
    thread: it inherits OpenMP's pool without its threads, and would wait for them.
    """
    one = _state["forked"] or (n_jobs is not None and n_jobs > 0)
    with nullcontext() if n_jobs is None else at_most(n_jobs), _one_thread() if one else nullcontext():
        yield


@contextmanager
def sleeping_threads() -> Iterator[None]:
    """Let the threads of PyTorch's operators sleep while they wait, as training on busy cores needs.

    The threads of OpenMP wait for each other in a loop. If other programs have the cores, a small operator then takes
    as long as a slice of time, and an epoch minutes. GNU's OpenMP knows its own threads alone, and has them sleep after
    microseconds if they outnumber the cores: so they do, as long as another thread is there that has run an operator,
    and has threads of its own for that. On free cores a sleep costs more than a loop, so there they do not.
    """
    with _lock:
        needed = _state["sleepers"] == 0 and torch.get_num_threads() > 1 and are_busy()
        _state["sleepers"] += 1
    leave, ready = Event(), Event()

    def hold() -> None:
        try:
            torch.ones(_GRAIN * torch.get_num_threads()).exp_()
        finally:
            ready.set()
        leave.wait()

    holder = Thread(target=hold, name="fishergraph-threads", daemon=True) if needed else None
    if holder is not None:
        holder.start()
        ready.wait()
    try:
        yield
    finally:
        leave.set()
        if holder is not None:
            holder.join()
        with _lock:
            _state["sleepers"] = max(_state["sleepers"] - 1, 0)


def are_busy() -> bool:
    """Whether other programs want the cores: the load of the last minute is half above their number."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return load > 1.5 * (os.cpu_count() or 1)


def bounded(method: Callable[..., T]) -> Callable[..., T]:
    """A method that runs inside `torch_threads(self.n_jobs)`."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> T:
        with torch_threads(check_n_jobs(self.n_jobs)):
            return method(self, *args, **kwargs)

    return run


@contextmanager
def _one_thread() -> Iterator[None]:
    """Give PyTorch one thread, and restore the number that it had before the first of the nested callers."""
    if getattr(_thread, "inside", False):
        yield
        return
    with _lock:
        if _state["inside"] == 0:
            _state["before"] = torch.get_num_threads()
        _state["inside"] += 1
        torch.set_num_threads(1)
    _thread.inside = True
    try:
        yield
    finally:
        _thread.inside = False
        with _lock:
            _state["inside"] = max(_state["inside"] - 1, 0)  # a child that was forked here starts at zero
            # OpenMP keeps a number per thread: each caller restores that of its thread.
            torch.set_num_threads(_state["before"])


def _begin_child() -> None:
    """A forked child has none of the calls of other threads."""
    global _lock
    _lock = Lock()
    _state.update(inside=0, forked=True, sleepers=0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
