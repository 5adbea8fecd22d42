"""Warnings of the library: a fit issues each kind once, however many blocks, layers or stages have the same reason."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

_issued: ContextVar[set[str] | None] = ContextVar("issued", default=None)
_lock = Lock()
# Frames of these packages are not what a warning points to.
_INNER = ("fishergraph", "sklearn", "contextlib", "threading")


@contextmanager
def each_warning_once(expected: tuple[str, ...] = ()) -> Iterator[None]:
    """Issue each kind of warning once while inside, in the threads that are started there too.

    The kinds in `expected` are not issued at all. What an outer context has issued is not issued again.
    """
    outer = _issued.get()
    issued = set() if outer is None else outer
    quiet = set(expected) - issued
    issued |= quiet
    token = _issued.set(issued)
    try:
        yield
    finally:
        _issued.reset(token)
        issued -= quiet


def warn(kind: str, text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the line that called the library, unless this call has issued one of the kind."""
    issued = _issued.get()
    if issued is not None:
        with _lock:
            if kind in issued:
                return
            issued.add(kind)
    warnings.warn(text, category, stacklevel=_caller_level())


def _caller_level() -> int:
    """The `stacklevel` of the innermost frame outside the library, for a warning of the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        level, frame = level + 1, frame.f_back
    return level
