"""What structural columns of a store take: memory, files between, and how much is read at once.

Held are numbers of nodes: offsets, degrees, counts, the scratch memory of walks for each thread, a few columns of a
matrix, and at the end the basis of the factors. Rows of the graph and of the walks are read by chunks. Where they are
read anywhere they are mapped, and given back when they fill the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fishergraph.structural import BY_ROWS, Structure
from fishergraph.structural.factors import EXTRA, WALKED, kept_members, most_columns
from fishergraph.structural.local import LOCAL_COLUMNS

_LEAST_ENTRIES, _MOST_ENTRIES = 2**20, 2**26  # of a chunk
_LEAST_COLUMNS = 16  # bytes per node
_WALKED_BYTES = 64  # of an entry of the rows that are walked from at once, with its copies
_MAPPED = 2**26  # bytes of pages that are mapped between two looks at the memory
_PAGE = 2**14  # bytes that the system maps for an edge that is read, about
_BLOCK = 2**12 * 12  # bytes per column of a row block, in both precisions
# Numbers of eight bytes of a node: always; and while walks are pushed, local columns counted, factors found.
_HELD, _PUSHING, _COUNTING, _FACTORING = 3, 5, 9, 2
# Bytes per edge and per number of a column of kinds that need the graph in memory, estimates.
_WHOLE_EDGE, _WHOLE_NUMBER = 160, 24


class StructureRoom(NamedTuple):
    """How structural columns are held.

    most_entries : of rows that are read at once.
    column_bytes : of the columns of a node that are held.
    block_edges : that a block of rows may walk.
    n_bytes : of all arrays.
    limit : bytes of the process from which mapped pages are given back.
    """

    most_entries: int
    column_bytes: int
    block_edges: int
    n_bytes: int
    limit: int


@dataclass(frozen=True)
class StructureSize:
    """The structural columns of a graph.

    structure : the settings.
    n_nodes, n_edges : of the graph.
    width : of the columns that tell nodes apart, as many as are asked for.
    weight_bytes : of the weight of an edge.
    symmetric : whether every edge is stored both ways.
    """

    structure: Structure
    n_nodes: int
    n_edges: int
    width: int
    weight_bytes: int
    symmetric: bool

    @property
    def by_rows(self) -> bool:
        """Whether the graph is not loaded."""
        return set(self.structure.kinds) <= BY_ROWS

    @property
    def last(self) -> str:
        """The kind that is computed last."""
        return self.structure.kinds[-1]

    @property
    def columns(self) -> int:
        """The columns that tell nodes apart."""
        return most_columns(self.n_nodes, self.width)

    @property
    def _index(self) -> int:
        return 4 if self.n_nodes < 2**31 else 8

    @property
    def _walks(self) -> int:
        """The most entries of the log-walks."""
        return 2 * self.n_nodes * kept_members(self.n_nodes, self.columns)

    @property
    def _edge_bytes(self) -> int:
        """The bytes of an entry of the graph both ways."""
        return self._index + (self.weight_bytes if self.symmetric else 8 if self.weight_bytes else 4)

    def _phases(self, n_threads: int, entries: int, column_bytes: int, mapped: int) -> dict[str, int]:
        """The bytes of what is held in turn, with chunks of so many entries."""
        n, walk, edges = self.n_nodes, self._index + 4, min(entries, 2 * self.n_edges)
        held = {"counting": n * (8 * _COUNTING + min(column_bytes, 8 * 7)) + 2 * edges * self._edge_bytes + mapped}
        if not self.symmetric:
            held["both ways"] = n * 8 * 2 + edges * (3 * self._edge_bytes + 8)
        if "factors" in self.structure.kinds:
            sides, chunk = self.columns + EXTRA, min(entries, self._walks)
            scratch = n_threads * (24 + 3 * self._index)
            held["pushing"] = n * (8 * _PUSHING + scratch) + min(entries, WALKED) * _WALKED_BYTES + mapped
            held["merging"] = n * 8 * 4 + chunk * 2 * walk + min(entries, self._walks // 2) * walk
            blocks = (n_threads * _BLOCK + 64 * 8 * sides) * sides
            held["factoring"] = n * (8 * _FACTORING + column_bytes) + blocks + chunk * walk
            held["basis"] = n * 4 * self.columns + chunk * walk
        return {name: 8 * _HELD * n + n_bytes for name, n_bytes in held.items()}

    def smallest(self, n_threads: int) -> int:
        """The least bytes that work."""
        if not self.by_rows:
            return _WHOLE_EDGE * self.n_edges + self.n_nodes * (self.columns + LOCAL_COLUMNS) * _WHOLE_NUMBER
        return max(self._phases(n_threads, _LEAST_ENTRIES, _LEAST_COLUMNS, _MAPPED).values())

    def room(self, base: int, available: int, n_threads: int) -> StructureRoom:
        """How the columns are held in so many bytes, at least the smallest number that works."""
        smallest = self.smallest(n_threads)
        if not self.by_rows:
            return StructureRoom(0, 0, 0, smallest, 0)
        available = max(available, smallest)
        needed = max(2 * self.n_edges, self._walks, _LEAST_ENTRIES)
        entries = min(_LEAST_ENTRIES + (available - smallest) // 2 // _WALKED_BYTES, _MOST_ENTRIES, needed)
        without = self._phases(n_threads, entries, 0, 0)
        spare = (available - without.get("factoring", 0)) // self.n_nodes // 16 * 16
        column_bytes = min(max(spare, _LEAST_COLUMNS), 4 * (self.columns + EXTRA))
        every = self.n_edges * self._edge_bytes * (1 if self.symmetric else 2)
        pages = max(available - max(without["counting"], without.get("pushing", 0)), _MAPPED)
        edges = 2**28 if every <= pages else max(pages // 4 // n_threads // _PAGE, 1)
        n_bytes = max(self._phases(n_threads, entries, column_bytes, min(every, pages)).values())
        return StructureRoom(entries, column_bytes, edges, n_bytes, base + available - _MAPPED // 2)

    def files(self) -> dict[str, int]:
        """The bytes of the arrays that stay until the run ends, beside the columns."""
        if "factors" not in self.structure.kinds:
            return {}
        return {"factors-basis": 4 * self.n_nodes * self.columns, "factors-values": 4 * self.columns}

    def files_between(self) -> int:
        """About the bytes of the arrays that are removed when the columns are there."""
        if not self.by_rows:
            return 0
        n_bytes = 3 * 8 * self.n_nodes * 7 if "local" in self.structure.kinds else 0
        if "factors" in self.structure.kinds:
            walks = 3 * (8 * self.n_nodes + self._walks // 2 * (self._index + 4))
            n_bytes = max(n_bytes, walks + 3 * 4 * self.n_nodes * (self.columns + EXTRA))
        if not self.symmetric:
            weight = 8 if self.weight_bytes else 4
            n_bytes += 8 * self.n_nodes + 2 * self.n_edges * (self._index + weight)
        return n_bytes
