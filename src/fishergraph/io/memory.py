"""Files that cannot be held in memory are refused before they are read, with the way that works."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow.parquet as pq

from fishergraph._validation import check_host_memory

# Bytes of a table per byte of its text, numbers of a few digits; and per byte of packed text.
_PER_BYTE, _PER_PACKED = 2, 8
_WAY = "use fishergraph ingest, which reads files of any size,"


def check_text_fits(path: Path, *, packed: bool) -> None:
    """Raise if the table in a text file needs more memory than there is, estimated from the size of the file."""
    size = path.stat().st_size * (_PER_PACKED if packed else _PER_BYTE)
    check_host_memory(size, f"the table in '{path}' takes", "in memory", f"{_WAY} or split it")


def check_parquet_fits(path: Path, names: Collection[str] | None = None) -> None:
    """Raise if the columns of a Parquet file need more memory than there is; by default all of them."""
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    columns = [group.column(j) for group in groups for j in range(metadata.num_columns)]
    size = sum(
        column.total_uncompressed_size
        for column in columns
        if names is None or column.path_in_schema.split(".")[0] in names
    )
    advice = f"make columns of numbers of words and {_WAY} or drop some"
    check_host_memory(size, f"the columns of '{path}' take", "in memory", advice)
