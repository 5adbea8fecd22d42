"""How the commands of the laboratory read lists of words and show the progress of Table 1."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from fishergraph.cli.console import say

if TYPE_CHECKING:
    from fishergraph.lab.experiments.plan import Status


class ListCommand(TyperCommand):
    """A command whose repeatable options take all words up to the next option: `--datasets cora citeseer,pubmed`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        return super().parse_args(ctx, list(repeat_options(args, options)))


def repeat_options(args: Iterable[str], options: set[str]) -> Iterable[str]:
    """The arguments with such an option before each of its words."""
    option, has_word = None, False
    for word in args:
        if word.startswith("-"):
            if option and not has_word:
                yield option  # the parser reports the missing word
            option, has_word = (word, False) if word in options else (None, False)
            if option is None:
                yield word
        elif option:
            for part in filter(None, word.split(",")):
                yield from (option, part)
                has_word = True
        else:
            yield word
    if option and not has_word:
        yield option


class LiveTable:
    """A live table of the columns on stderr; if stderr is not a terminal, a line per finished column."""

    def __init__(self, *, quiet: bool):
        self.quiet, self.start, self.reported = quiet, perf_counter(), set()

    def __enter__(self) -> LiveTable:
        from rich.console import Console
        from rich.live import Live

        self.live = None
        if not self.quiet and sys.stderr.isatty():
            self.live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self.live.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, statuses: list[Status]) -> None:
        """Show the progress of the columns."""
        if self.live:
            self.live.update(self._table(statuses), refresh=True)
        for status in statuses:
            name = status.column.name
            if status.finished and name not in self.reported and not self.quiet:
                self.reported.add(name)
                if self.live is None:
                    say(f"{perf_counter() - self.start:6.0f} s: {name}: validation {_percent(status.val)}")

    def _table(self, statuses: list[Status]) -> Any:
        from rich.table import Table

        done = sum(status.finished for status in statuses)
        table = Table("method", "graph", "stage", "runs", "validation", "test", box=None, pad_edge=False)
        table.title = f"{done} of {len(statuses)} columns, {perf_counter() - self.start:.0f} s"
        for status in statuses:
            style = "green" if status.finished else "dim" if not status.done else None
            column, runs = status.column, f"{status.done}/{status.total}"
            numbers = _percent(status.val), _percent(status.test)
            table.add_row(column.spec.title, column.dataset, status.stage, runs, *numbers, style=style)
        return table


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"
