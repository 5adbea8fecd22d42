"""What structural columns of a store take: memory, files between, and how much is read at once.

Held are numbers of nodes: offsets, degrees, counts, the scratch memory of walks for each thread, a few columns of a
matrix, and at the end the basis of the factors. Rows of the graph and of the walks are read by chunks. Where they are
read anywhere they are mapped, and given back when they fill the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fishergraph.structural import BY_ROWS, Structure
from fishergraph.structural.factors import EXTRA, kept_members, most_columns
from fishergraph.structural.local import LOCAL_COLUMNS

_LEAST_ENTRIES, _MOST_ENTRIES = 2**20, 2**26  # of a chunk
_ENTRY = 64  # bytes of an entry of a chunk, its copies and what is made of it included
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

    def _held(self, n_threads: int, column_bytes: int) -> int:
        """The bytes of arrays of nodes."""
        sides, per_node, blocks = self.columns + EXTRA, [8 * (_HELD + _COUNTING) + column_bytes], 0
        if "factors" in self.structure.kinds:
            per_node.append(8 * (_HELD + _PUSHING) + n_threads * (24 + 3 * self._index))
            per_node.append(8 * (_HELD + _FACTORING) + column_bytes)
            per_node.append(8 * _HELD + 4 * self.columns)
            blocks = (n_threads * _BLOCK + 64 * 8 * sides) * sides
        return self.n_nodes * max(per_node) + blocks

    def smallest(self, n_threads: int) -> int:
        """The least bytes that work."""
        if not self.by_rows:
            return _WHOLE_EDGE * self.n_edges + self.n_nodes * (self.columns + LOCAL_COLUMNS) * _WHOLE_NUMBER
        return self._held(n_threads, 16) + _LEAST_ENTRIES * _ENTRY + _MAPPED

    def room(self, base: int, available: int, n_threads: int) -> StructureRoom:
        """How the columns are held in so many bytes, at least the smallest number that works."""
        if not self.by_rows:
            return StructureRoom(0, 0, 0, self.smallest(n_threads), 0)
        spare = max(available - self.smallest(n_threads), 0)
        entries = min(_LEAST_ENTRIES + spare // 2 // _ENTRY, _MOST_ENTRIES, max(2 * self.n_edges, _LEAST_ENTRIES))
        spare -= (entries - _LEAST_ENTRIES) * _ENTRY
        column_bytes = min(16 + spare // self.n_nodes // 16 * 16, 4 * (self.columns + EXTRA))
        held = self._held(n_threads, max(column_bytes, 16)) + entries * _ENTRY + _MAPPED
        mapped = self.n_edges * (self._index + self.weight_bytes) * (1 if self.symmetric else 2)
        pages = max(available - self._held(n_threads, 16) - entries * _ENTRY, _MAPPED)
        edges = 2**28 if mapped <= pages else max(pages // 4 // n_threads // _PAGE, 1)
        limit = base + max(available, held) - _MAPPED // 2
        return StructureRoom(entries, column_bytes, edges, max(held, min(mapped, pages)), limit)

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
            walks = self.n_nodes * (8 + kept_members(self.n_nodes, self.columns) * (self._index + 4))
            n_bytes = max(n_bytes, 3 * walks + 3 * 4 * self.n_nodes * (self.columns + EXTRA))
        if not self.symmetric:
            weight = 8 if self.weight_bytes else 4
            n_bytes += 8 * self.n_nodes + 2 * self.n_edges * (self._index + weight)
        return n_bytes
