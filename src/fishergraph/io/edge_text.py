"""Text files of edges: whether their first line holds the names of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fishergraph._errors import InputError
from fishergraph.io.cells import are_numbers
from fishergraph.io.columns import check_edge_columns
from fishergraph.io.edge_columns import EdgeOptions
from fishergraph.io.text_table import Lines


@dataclass(frozen=True)
class EdgeLayout:
    """The layout of a file of edges, whose first line may be an edge.

    options : what a user says of the file.
    """

    options: EdgeOptions
    least: int = 2

    def is_header(self, cells: list[str], below: list[str]) -> bool:
        """Whether a line that begins as a comment does names an edge table."""
        return _names_edges(cells)

    def header(self, path: Path, lines: Lines) -> tuple[list[str] | None, tuple[bool, ...], list[str]]:
        """The names of the columns of a file without header, whether they hold numbers, and what to say of them."""
        fields, named = lines.fields, [str(value) for value in self.options.named.values()]
        by_name = bool(named) and all(name in [field.strip() for field in fields] for name in named)
        header = self.options.header
        if header is None and (are_numbers(fields) or lines.kind not in (".csv", ".tsv")):
            others = [are_numbers(row) for row in lines.rows[1:]]
            # Numbers below words have a header above them.
            header = by_name or _names_edges(fields) or (not are_numbers(fields) and bool(others) and all(others))
            header = header and not are_numbers(fields)
        if header or header is None:
            return None, (), []
        numbers = tuple(are_numbers([field]) for field in fields)
        if lines.above and _names_edges(lines.above) and not are_numbers(lines.above):
            return lines.above, (), ["names from the comment above them"]
        return [str(k + 1) for k in range(len(fields))], numbers, ["no header"]


def _names_edges(fields: list[str]) -> bool:
    """Whether some cells are the names of the columns of an edge table."""
    try:
        check_edge_columns(fields)
    except InputError:
        return False
    return True
