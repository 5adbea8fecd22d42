"""What a command prints: a progress bar, warnings of one line, and the message and exit code of a failure."""

from __future__ import annotations

import dis
import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import typer

from fishergraph._errors import FishergraphError
from fishergraph._warn import ColumnsWarning, SchemaWarning
from fishergraph.cli.options import in_options

# Types of the errors that the library raises with a message of its own.
_WORDED = (ValueError, TypeError, ImportError, OSError, RuntimeError, FloatingPointError, MemoryError)
_RAISE = dis.opmap["RAISE_VARARGS"]
_ADVICE = {
    errno.ENOSPC: "free some space, or choose another disk",
    errno.EDQUOT: "free some space, or choose another disk",
    errno.EACCES: "change its permissions, or choose another path",
    errno.EPERM: "change its permissions, or choose another path",
    errno.EROFS: "choose a path that can be written",
}


@contextmanager
def explained(*, debug: bool) -> Iterator[None]:
    """Turn an exception into one line on stderr and exit code 1, and Ctrl-C into exit code 130."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        say("interrupted; no file was left half-written.")
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader of stdout has left, as `head` does
        _print_no_more(sys.stdout)
        raise SystemExit(0) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        say(f"error: {_message(error)}")
        raise SystemExit(1) from None


def flush() -> None:
    """Write the rest of stdout, if anybody reads it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _print_no_more(sys.stdout)


def _print_no_more(stream: Any) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def printer(**options: Any) -> Any:
    """Return a console of Rich for stdout, without highlighting; `explained` handles a reader who leaves."""
    from rich.console import Console

    class Printer(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Printer(highlight=False, **options)


def say(line: str) -> None:
    """Print one line on stderr; the work continues if nobody reads it."""
    try:
        print(" ".join(line.split()), file=sys.stderr, flush=True)
    except BrokenPipeError:
        _print_no_more(sys.stderr)


def _message(error: Exception) -> str:
    text = in_options(error) or "no message"
    if isinstance(error, FishergraphError):
        return text
    if isinstance(error, OSError) and error.strerror is not None:
        paths = " and ".join(f"'{name}'" for name in (error.filename, error.filename2) if name is not None) or "a file"
        advice = _ADVICE.get(error.errno or 0, "check the path")
        return f"{paths} could not be read or written ({error.strerror.rstrip('. ')}); {advice}."
    if isinstance(error, OSError) or (isinstance(error, _WORDED) and _raised_here(error)):
        return text
    if isinstance(error, MemoryError):
        return f"the work must fit into memory, got {text}; use a smaller --dim or a larger machine."
    return f"unexpected {type(error).__name__}: {text}; add --debug to see where it comes from."


def _raised_here(error: Exception) -> bool:
    """Whether a raise statement of the library made this error, so that its message explains it.

    Compiled code has no frame. The innermost frame of an error from there is at a call, not at a raise.
    """
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or not tb.tb_frame.f_globals.get("__name__", "").startswith("fishergraph."):
        return False
    return tb.tb_frame.f_code.co_code[tb.tb_lasti] == _RAISE


@contextmanager
def one_line_warnings() -> Iterator[list[str]]:
    """Show each warning once, as one line on stderr, and list what was shown."""
    shown: list[str] = []

    def show(message: Any, *args: Any, **kwargs: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:
            shown.append(text)
            say(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("always", RuntimeWarning)
        warnings.simplefilter("ignore", ColumnsWarning)  # the command has a line about the columns
        warnings.simplefilter("always", SchemaWarning)
        warnings.showwarning = show
        yield shown


def bytes_progress(quiet: bool) -> Any:
    """Return what shows progress in bytes and their rate, for people who watch; else False."""
    return _bytes_bar if not quiet and sys.stderr.isatty() else False


@contextmanager
def _bytes_bar(title: str, total: int | None) -> Iterator[Any]:
    """A bar of bytes on stderr, with their rate."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield SimpleNamespace(update=partial(progress.advance, task))


class Bar:
    """One bar on stderr for all of the work; estimators take it as their `verbose`.

    It shows the current part and keeps the seconds of each. It moves in proportion to the costs of the parts, and
    swings until it receives them.
    """

    def __init__(self, *, quiet: bool):
        self.quiet = quiet
        self.seconds: dict[str, float] = {}
        self.costs: dict[str, float] = {}
        self.later: dict[str, float] = {}  # costs of parts that come after those of the estimator
        self.done = 0.0  # the cost of the parts that are finished

    def __enter__(self) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<10}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        # A file or a pipe gets no bar: there it would be noise.
        off = self.quiet or not sys.stderr.isatty()
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True, disable=off)
        self.task = self.progress.add_task("start", total=None)
        self.progress.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.progress.stop()

    def part(self, title: str) -> None:
        """Name the part that begins."""
        self.progress.update(self.task, description=title)

    def expect(self, parts: int | Mapping[str, float]) -> None:
        """Fill the bar from here on: by so many calls of `count`, or by the costs of parts."""
        self.costs = {} if isinstance(parts, int) else {**parts, **self.later}
        total = parts if isinstance(parts, int) else sum(self.costs.values())
        self.done = 0.0
        self.progress.update(self.task, total=total, completed=0)

    def forget(self) -> None:
        """Swing again, until the costs of the next parts arrive."""
        self.costs, self.done = {}, 0.0
        self.progress.reset(self.task)
        self.progress.tasks[0].total = None

    @contextmanager
    def __call__(self, title: str, steps: int) -> Iterator[Bar]:
        """A part of the work in so many steps."""
        self.part(title)
        began, cost = perf_counter(), self.costs.get(title, 0.0 if self.costs else 1.0)
        self.step, self.end = cost / max(steps, 1), self.done + cost
        yield self
        self.done = self.end
        self._move_to(self.end)
        self.seconds[title] = round(perf_counter() - began, 4)

    def count(self, title: str) -> None:
        """Name the part that is done and move on by one."""
        self.part(title)
        self.progress.advance(self.task, 1)

    def set_postfix(self, **values: Any) -> None:
        """Show numbers beside the name of this part."""
        shown = (f"{name} {value:.4g}" for name, value in values.items() if value is not None)
        self.part(" · ".join(shown))

    def update(self, n: int) -> None:
        """Move on by n of the steps of this part, at most to its end."""
        self.done = min(self.done + n * self.step, self.end)
        self._move_to(self.done)

    def _move_to(self, done: float) -> None:
        self.progress.update(self.task, completed=done)
