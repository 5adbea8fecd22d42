"""Tables of nodes and edges as people have them, which are part of the package: `load_tables`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fishergraph._validation import look_up

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = Path(__file__).with_name("data")
# name: the types of its nodes; one nameless type is a plain table
EXAMPLES: dict[str, tuple[str, ...]] = {"penguins": ("nodes",), "flights": ("planes", "airports", "airlines")}
_SINGLE = ("nodes",)


@dataclass(frozen=True, eq=False, repr=False)
class TableData:
    """A graph as tables.

    Parameters
    ----------
    name : str
        The name that `load_tables` was given.
    nodes : pyarrow.Table, or dict of them
        A row per node, whose first column, id, has its name; if there are several types of nodes, a table for each.
    edges : pyarrow.Table
        Columns source and target; of several types of nodes also weight and type, the relation.
    files : dict
        The paths of the tables by name, for the command line.

    See Also
    --------
    load_tables : Load one of them.

    Examples
    --------
    >>> from fishergraph.datasets import load_tables
    >>> load_tables("flights")
    TableData('flights': 3,322 planes, 104 airports, 16 airlines, 28,978 edges)
    """

    name: str
    nodes: pa.Table | dict[str, pa.Table]
    edges: pa.Table
    files: dict[str, Path]

    def __repr__(self) -> str:
        tables = self.nodes if isinstance(self.nodes, dict) else {"nodes": self.nodes}
        sizes = ", ".join(f"{len(table):,} {kind}" for kind, table in tables.items())
        return f"TableData({self.name!r}: {sizes}, {len(self.edges):,} edges)"


def load_tables(name: str) -> TableData:
    """Load example tables that need an encoding.

    They have words, dates, missing values and columns that say nothing.
    "penguins" are 344 penguins of three species, as they were measured; an edge joins two whose eggs were laid on the
    same island on the same day. "flights" are the planes that left New York City in 2013, the airports they flew to and
    the airlines that flew them, with the relations flies_to (plane, airport), flown_by (plane, airline) and serves
    (airline, airport).

    Parameters
    ----------
    name : {"penguins", "flights"}
        The tables.

    Returns
    -------
    TableData
        The tables as pyarrow tables, and the paths of their files.

    See Also
    --------
    load_graph : A graph whose features are numbers.

    Examples
    --------
    >>> from fishergraph.datasets import load_tables
    >>> penguins = load_tables("penguins")
    >>> nodes, edges = penguins.nodes.to_pandas().set_index("id"), penguins.edges.to_pandas()
    >>> len(nodes), len(edges)
    (344, 1088)
    """
    from fishergraph.io.arrow import edge_header, node_header, read_table

    kinds = look_up(EXAMPLES, name, "name")
    files = {kind: FOLDER / f"{name}.{kind}.csv.gz" for kind in kinds} | {"edges": FOLDER / f"{name}.edges.parquet"}
    first = lambda names: names[:1]  # noqa: E731
    tables = {kind: _with_gaps(read_table(files[kind], ".csv.gz", node_header, first)) for kind in kinds}
    edges = read_table(files["edges"], ".parquet", edge_header, lambda names: names[:2])
    return TableData(name, tables["nodes"] if kinds == _SINGLE else tables, edges, files)


def _with_gaps(table: pa.Table) -> pa.Table:
    """The table with null in the place of empty text."""
    from pyarrow.compute import call_function

    for k, field in enumerate(table.schema):
        if str(field.type) == "string":
            column = table.column(k)
            filled = call_function("not_equal", [column, ""])
            table = table.set_column(k, field, call_function("if_else", [filled, column, None]))
    return table
