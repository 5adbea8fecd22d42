"""Files that hold a graph with its nodes: GraphML, GML, JSON (node-link) and MatrixMarket.

Each has a reader of its own, (open bytes, path) → GraphFile. Attributes of nodes and edges become columns.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from fishergraph._errors import FileFormatError
from fishergraph.io.archives import Unpacked, check_packed
from fishergraph.io.files import Advance, CountedReader, check_readable, count_nothing, unreadable
from fishergraph.io.gml import read_gml
from fishergraph.io.graph_columns import GraphFile
from fishergraph.io.graphml import read_graphml
from fishergraph.io.matrix_market import read_matrix_market
from fishergraph.io.node_link import read_node_link
from fishergraph.io.text_streams import MAGIC

_READERS: dict[str, Callable[[Any, Path], GraphFile]] = {
    ".graphml": read_graphml,
    ".gml": read_gml,
    ".json": read_node_link,
    ".mtx": read_matrix_market,
}
_PACKED = {"": "", ".gz": "gzip", ".zst": "zstd"}
_SUFFIXES = {kind + packed: (kind, packing) for kind in _READERS for packed, packing in _PACKED.items()}
GRAPH_SUFFIXES = tuple(_SUFFIXES)


def read_graph_file(path: Path, suffix: str, advance: Advance = count_nothing) -> GraphFile:
    """The edges and the nodes of a file whose suffix is one of `GRAPH_SUFFIXES`."""
    head = check_readable(path)
    kind, packing = _SUFFIXES[suffix]
    if not head.startswith(MAGIC[packing]) or (not packing and head.startswith((b"\x1f\x8b", b"PK\x03\x04", b"PAR1"))):
        raise unreadable(path, head, f"it is not {kind[1:]}" + (f" packed with {packing}" if packing else ""))
    check_packed(path, packing)
    unpacked: Unpacked | None = None
    try:
        with path.open("rb") as raw:
            stream: Any = CountedReader(raw, advance)
            unpacked = Unpacked(stream, packing, path.stat().st_size) if packing else None
            file = _READERS[kind](stream if unpacked is None else unpacked, path)
            if unpacked is not None and unpacked.error is not None:
                raise unpacked.error
            return file
    except FileFormatError as error:
        failed = None if unpacked is None else unpacked.error  # the text ended too early for a reason
        if failed is not None and failed is not error:
            raise unreadable(path, head, failed) from error
        raise error if error.path else error.revised(path=path) from error
    except (pa.ArrowException, OSError, EOFError) as error:
        raise unreadable(path, head, error) from error


def holds_nodes(path: Path) -> bool:
    """Whether the name of a file is that of a graph with its nodes."""
    return path.name.lower().endswith(GRAPH_SUFFIXES)
