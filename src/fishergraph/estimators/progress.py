"""Progress bars for people who ask for them; the library prints nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any


class _Silent:
    def update(self, n: int) -> None:
        pass


@contextmanager
def _silent(title: str, steps: int):
    yield _Silent()


def _shown(title: str, steps: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=steps, desc=title, unit="block")


def progress_bar(verbose: Any) -> Callable[[str, int], Any]:
    """progress(title, steps) → a context manager with update(n): a tqdm bar when verbose, else nothing.

    A callable `verbose` is used as it is: that is how another program shows the progress in its own way.
    """
    if callable(verbose):
        return verbose
    return _shown if verbose else _silent
