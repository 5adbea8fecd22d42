"""Tables that are read by blocks of rows: Parquet files by their row groups, Lance datasets, and tables in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fishergraph.io.archives import check_parquet

BLOCK_ROWS = 1 << 14  # of a table in memory, or of a dataset
METADATA = b"fishergraph"  # the key under which the schema of an embedding says what its columns are


class BlockTable(Protocol):
    """A table whose columns are read by blocks of rows."""

    schema: pa.Schema
    blocks: list[slice]

    def __len__(self) -> int: ...

    def read(self, k: int, names: Sequence[str]) -> pa.Table:
        """The columns of the k-th block."""
        ...

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns."""
        ...


class ParquetBlocks:
    """A Parquet file; its blocks are its row groups. Blocks may be read by several threads at once."""

    def __init__(self, path: Path):
        check_parquet(path)
        self.path, self._metadata = path, pq.read_metadata(path)
        self.schema = pq.read_schema(path)
        counts = [self._metadata.row_group(k).num_rows for k in range(self._metadata.num_row_groups)]
        self.blocks = _slices(np.cumsum([0, *counts]).tolist())

    def __len__(self) -> int:
        return self._metadata.num_rows

    def read(self, k: int, names: Sequence[str]) -> pa.Table:
        """The columns of the k-th row group."""
        with pq.ParquetFile(self.path, metadata=self._metadata) as file:
            return _checked(file.read_row_group(k, columns=list(names), use_threads=len(names) > 1))

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns."""
        with pq.ParquetFile(self.path, metadata=self._metadata) as file:
            return _checked(file.read(columns=list(names))).select(list(names))


def _checked(table: pa.Table) -> pa.Table:
    table.validate(full=True)  # bytes and offsets of text are not checked otherwise
    return table


class MemoryBlocks:
    """A table in memory."""

    def __init__(self, table: pa.Table):
        self._table, self.schema = table, table.schema
        self.blocks = row_slices(len(table), BLOCK_ROWS)

    def __len__(self) -> int:
        return len(self._table)

    def read(self, k: int, names: Sequence[str]) -> pa.Table:
        """The columns of the k-th block."""
        rows = self.blocks[k]
        return self.columns(names).slice(rows.start, rows.stop - rows.start)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns."""
        return self._table.select(list(names))


def row_slices(n_rows: int, step: int) -> list[slice]:
    """Slices of so many rows, which cover a table."""
    return _slices([*range(0, n_rows, step), n_rows])


def _slices(borders: list[int]) -> list[slice]:
    return [slice(a, b) for a, b in pairwise(borders) if a < b]


def described(schema: pa.Schema) -> dict[str, Any]:
    """What the schema of an embedding says of its columns; {} if it is the schema of another table."""
    try:
        found = json.loads((schema.metadata or {}).get(METADATA, b"{}"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
