"""What a person sees of a run of Table 1: where its columns stand."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fishergraph.cli.console import say

if TYPE_CHECKING:
    from fishergraph.experiments.plan import Status


class Watch:
    """A live table of the columns on stderr; a line per finished column where stderr is no terminal."""

    def __init__(self, *, quiet: bool):
        self.quiet, self.start, self.told = quiet, perf_counter(), set()

    def __enter__(self) -> Watch:
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

    def __call__(self, found: list[Status]) -> None:
        """Show where the columns stand."""
        if self.live:
            self.live.update(self._table(found), refresh=True)
        for status in found:
            name = f"{status.column.spec.method} on {status.column.dataset}"
            if status.finished and name not in self.told and not self.quiet:
                self.told.add(name)
                if self.live is None:
                    say(f"{perf_counter() - self.start:6.0f} s: {name}: validation {_percent(status.val)}")

    def _table(self, found: list[Status]) -> Any:
        from rich.table import Table

        done = sum(status.finished for status in found)
        table = Table("method", "graph", "stage", "runs", "validation", "test", box=None, pad_edge=False)
        table.title = f"{done} of {len(found)} columns, {perf_counter() - self.start:.0f} s"
        for status in found:
            style = "green" if status.finished else "dim" if not status.done else None
            runs = f"{status.done}/{status.total}"
            numbers = _percent(status.val), _percent(status.test)
            table.add_row(status.column.spec.title, status.column.dataset, status.stage, runs, *numbers, style=style)
        return table


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"
