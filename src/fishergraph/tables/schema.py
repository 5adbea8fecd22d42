"""What an encoder makes of a table: `Schema`, a row per column, which prints as a small table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MOST_NAMES = 4  # of the columns of a kind in one line
_PLURALS = {
    "number": "numbers",
    "boolean": "booleans",
    "category": "categories",
    "date": "dates",
    "text": "texts",
    "tags": "lists of tags",
    "vector": "vectors",
}
_SINGULARS = {"tags": "list of tags"}


@dataclass(frozen=True)
class SchemaColumn:
    """A column of the table.

    Parameters
    ----------
    name : str
        Its name.
    type : str
        Its type in the table of the fit.
    kind : str or None
        What it was used as; None if it is left aside.
    outputs : int
        The columns of numbers it became.
    learned : str
        What was learned, or why it is left aside.
    """

    name: str
    type: str
    kind: str | None
    outputs: int
    learned: str


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table, and what became of them.

    Parameters
    ----------
    columns : tuple of SchemaColumn
        The columns in the order of the table.
    notes : tuple of str
        What was done with some columns: numbers that were cut, words that count as missing.
    """

    columns: tuple[SchemaColumn, ...]
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> list[SchemaColumn]:
        """The columns that are used."""
        return [column for column in self.columns if column.kind is not None]

    @property
    def aside(self) -> list[SchemaColumn]:
        """The columns that are left aside."""
        return [column for column in self.columns if column.kind is None]

    def line(self) -> str:
        """One line: which columns are used as what, and which are left aside."""
        groups: dict[str, list[str]] = {}
        for column in self.used:
            groups.setdefault(str(column.kind), []).append(column.name)
        parts = [listed_kind(kind, names) for kind, names in groups.items()]
        reasons: dict[str, list[str]] = {}
        for column in self.aside:
            reasons.setdefault(column.learned, []).append(column.name)
        left = [f"{_some(names)} ({reason})" for reason, names in reasons.items()]
        return "; ".join([", ".join(parts), *([f"left aside: {', '.join(left)}"] if left else []), *self.notes])

    def to_dict(self) -> list[dict[str, Any]]:
        """The columns as JSON."""
        return [dict(vars(column)) for column in self.columns]

    def __repr__(self) -> str:
        header = ("column", "type", "kind", "outputs", "learned")
        rows = [
            (column.name[:40], column.type[:20], column.kind or "—", str(column.outputs), column.learned[:60])
            for column in self.columns
        ]
        widths = [max(len(row[k]) for row in (header, *rows)) for k in range(5)]
        lines = []
        for row in (header, *rows):
            cells = [
                cell.rjust(width) if k == 3 else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def listed_kind(kind: str, names: list[str]) -> str:
    """How many columns of a kind there are, and their names."""
    return f"{_counted(kind, len(names))} ({_some(names)})"


def _counted(kind: str, count: int) -> str:
    return f"1 {_SINGULARS.get(kind, kind)}" if count == 1 else f"{count:,} {_PLURALS[kind]}"


def _some(names: list[str]) -> str:
    shown = ", ".join(name[:40] for name in names[:_MOST_NAMES])
    return f"{shown}, … {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else shown
