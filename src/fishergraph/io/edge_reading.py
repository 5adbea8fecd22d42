"""What was read of a table of edges: a record that goes along with the table and its graph."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

METADATA = b"fishergraph.edges"
_TOKEN = secrets.token_hex(8)  # of this process: records that a file brings along are not believed


@dataclass(frozen=True)
class EdgeReading:
    """What was read of a table of edges, and what became of it.

    Attributes
    ----------
    path : str
        The file, if there is one.
    rows : int
        The edges that were listed.
    columns : dict
        Role → name of the column; the roles are source, target, weight and time.
    left : tuple of str
        The names of the columns that are not used.
    both_ways : bool
        Whether the edges have no direction: each was listed once and counts both ways.
    merged : int
        Parallel edges whose weights were added to those of another.
    zeros : int
        Edges of weight zero, which were left out.
    dropped, unknown, added : int
        Edges that were left out because they end at an unknown id; the unknown ids; and those of them that became
        nodes.
    notes : tuple of str
        What was found out about the file, such as its separator.
    options : dict
        How the file was asked for, which finds the lines of its rows.
    """

    path: str = ""
    rows: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    both_ways: bool = False
    merged: int = 0
    zeros: int = 0
    dropped: int = 0
    unknown: int = 0
    added: int = 0
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(table: Any) -> EdgeReading | None:
        """The record that goes along with an Arrow table; None if there is none."""
        metadata = getattr(getattr(table, "schema", None), "metadata", None) or {}
        try:
            values = json.loads(metadata[METADATA])
            if values["token"] != _TOKEN:
                return None
            known = {one.name for one in fields(EdgeReading)}
            record = EdgeReading(**{name: value for name, value in values.items() if name in known})
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return None
        return replace(record, left=tuple(record.left), notes=tuple(record.notes))

    def attached(self, table: pa.Table) -> pa.Table:
        """The table with this record in its metadata."""
        values = json.dumps(asdict(self) | {"token": _TOKEN}).encode()
        return table.replace_schema_metadata({**(table.schema.metadata or {}), METADATA: values})
