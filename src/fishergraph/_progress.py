"""Progress bars for people who ask for them; the library prints nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from fishergraph._parallel import progress_to

# progress(title, steps) → a context manager whose value has update(n)
Progress = Callable[[str, int], Any]
Verbose = bool | Progress  # what estimators take


class _Silent:
    def update(self, n: int) -> None:
        pass

    def set_postfix(self, **values: Any) -> None:
        pass


_SILENT = _Silent()


def silent(title: str, steps: int) -> AbstractContextManager[_Silent]:
    """Show nothing."""
    return nullcontext(_SILENT)


# Steps of a part that is known by its cost.
_STEPS = 100


def _shown(title: str, steps: int, *, unit: str) -> Any:
    from tqdm.auto import tqdm

    # How many blocks there are tells nobody anything.
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}" if unit == "block" else None
    return tqdm(total=steps, desc=title, unit=unit, bar_format=form)


def progress_bar(verbose: Verbose, unit: str = "block") -> Progress:
    """progress(title, steps) → a context manager with update(n): a tqdm bar when verbose, else nothing.

    In training it also has set_postfix(**values), which shows numbers beside the bar. A callable `verbose` is used as
    it is: that is how another program shows the progress in its own way.
    """
    if callable(verbose):
        return verbose
    return partial(_shown, unit=unit) if verbose else silent


@contextmanager
def costing(progress: Progress, title: str, cost: float) -> Iterator[None]:
    """A part of the work of about so many multiplications; the bar moves as the work inside reports what it has done.

    It stays short of the end until the work ends, and is at the end then.
    """
    if progress is silent:
        yield
        return
    with progress(title, _STEPS) as bar:
        done, shown = 0.0, 0

        def advance(more: float) -> None:
            nonlocal done, shown
            done += more
            reached = min(int(_STEPS * done / max(cost, 1.0)), _STEPS - 1)
            if reached > shown:
                bar.update(reached - shown)
                shown = reached

        with progress_to(advance):
            yield
        bar.update(_STEPS - shown)
