"""Issue warnings: each kind once per call of the library, however many blocks, layers or stages cause it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from fishergraph._errors import FishergraphWarning

_issued: ContextVar[set[str] | None] = ContextVar("issued", default=None)
_silenced: ContextVar[tuple[type[Warning], ...]] = ContextVar("silenced", default=())
_lock = Lock()
# Frames of these packages are not what a warning points to.
_INNER = ("fishergraph", "sklearn", "contextlib", "threading")


@contextmanager
def each_warning_once(*, silence: tuple[type[FishergraphWarning], ...] = ()) -> Iterator[None]:
    """Issue each kind of warning once while inside, also in the threads that are started there.

    Warnings of the types in `silence` are not issued at all. A nested context continues the outer one.
    """
    outer = _issued.get()
    token = _issued.set(set() if outer is None else outer)
    types = _silenced.set((*_silenced.get(), *silence))
    try:
        yield
    finally:
        _silenced.reset(types)
        _issued.reset(token)


@contextmanager
def without_warnings(*kinds: str) -> Iterator[None]:
    """Issue no warnings of these kinds while inside."""
    outer = _issued.get()
    token = _issued.set({*(outer or ()), *kinds})
    try:
        yield
    finally:
        inner = _issued.get() or set()
        _issued.reset(token)
        if outer is not None:
            outer.update(inner.difference(kinds))


def warn(
    warning: Warning | str,
    text: str = "",
    category: type[Warning] = FishergraphWarning,
    *,
    explains: tuple[str, ...] = (),
) -> None:
    """Issue a warning at the line that called the library, unless this call has issued one of its kind.

    A string in place of a warning is the kind of one of type `category`, which says `text`. Warnings of the kinds that
    it explains are not issued after it.
    """
    kind = warning if isinstance(warning, str) else getattr(warning, "kind", type(warning).__name__)
    issue = category(text) if isinstance(warning, str) else warning
    if isinstance(issue, _silenced.get()):
        return
    issued = _issued.get()
    if issued is not None:
        with _lock:
            if kind in issued:
                return
            issued.update((kind, *explains))
    warnings.warn(issue, stacklevel=_caller_level())


def _caller_level() -> int:
    """The `stacklevel` of the innermost frame outside the library, for a warning of the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        level, frame = level + 1, frame.f_back
    return level


class ColumnsWarning(FishergraphWarning):
    """Columns of a table are left aside, cut or not known.

    Attributes
    ----------
    columns : tuple of str
        Their names.
    """

    def __init__(self, message: str = "", *, kind: str = "columns", columns: tuple[str, ...] = ()):
        super().__init__(message, kind=kind)
        self.columns = columns


class SchemaWarning(ColumnsWarning):
    """A table has columns or values that the fit did not know; `columns` are their names."""
