"""Progress bars for people who ask for them; the library prints nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import Any


class _Silent:
    def update(self, n: int) -> None:
        pass

    def set_postfix(self, **values: Any) -> None:
        pass


@contextmanager
def _silent(title: str, steps: int):
    yield _Silent()


def _shown(title: str, steps: int, *, unit: str) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=steps, desc=title, unit=unit)


def progress_bar(verbose: Any, unit: str = "block") -> Callable[[str, int], Any]:
    """progress(title, steps) → a context manager with update(n): a tqdm bar when verbose, else nothing.

    In training it also has set_postfix(**values), which shows numbers beside the bar. A callable `verbose` is used as
    it is: that is how another program shows the progress in its own way.
    """
    if callable(verbose):
        return verbose
    return partial(_shown, unit=unit) if verbose else _silent
