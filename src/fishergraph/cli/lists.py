"""Options that take several words: `--datasets cora citeseer pubmed`, or the option again, or commas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand


class ListCommand(TyperCommand):
    """A command whose options that may be repeated take all words up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        many = {name for param in self.params if getattr(param, "multiple", False) for name in param.opts}
        return super().parse_args(ctx, list(_repeated(args, many)))


def _repeated(args: Iterable[str], many: set[str]) -> Iterable[str]:
    """The arguments with such an option before each of its words."""
    current, given = None, False
    for word in args:
        if word.startswith("-"):
            if current and not given:
                yield current  # without a word: the parser says what is wrong
            current, given = (word, False) if word in many else (None, False)
            if current is None:
                yield word
        elif current:
            for part in filter(None, word.split(",")):
                yield from (current, part)
                given = True
        else:
            yield word
    if current and not given:
        yield current
