"""What is wrong with a table, collected: all of it is reported together."""

from __future__ import annotations

from fishergraph._errors import TableError

_MOST = 10  # faults that a message names


class Unfit(Exception):
    """A column cannot be read as a kind; the text follows the name of the column."""


class Faults:
    """The faults of a table by column."""

    def __init__(self, what: str = "X"):
        self.what = what
        self.found: list[tuple[str, str]] = []

    def add(self, column: str, problem: str) -> None:
        """Remember a fault: "{column!r} {problem}"."""
        self.found.append((column, problem))

    def raise_all(
        self,
        expected: str = "have columns that can be encoded",
        advice: str = "repair these columns, name their kinds, or drop them",
    ) -> None:
        """Raise one error of all faults, if there are any."""
        if not self.found:
            return
        listed = [f"{column!r} {problem}" for column, problem in self.found[:_MOST]]
        count = "one fault" if len(self.found) == 1 else f"{len(self.found)} faults"
        more = "; …" if len(self.found) > _MOST else ""
        raise TableError(
            parameter=self.what,
            value=[column for column, _ in self.found],
            expected=expected,
            got=f"{count}: {'; '.join(listed)}{more}",
            advice=advice,
            faults=tuple(self.found),
        )
