"""Node graphs of the Open Graph Benchmark in its raw layout, as a folder or as the downloaded zip file.

    raw/num-node-list.csv.gz, raw/num-edge-list.csv.gz     one number
    raw/edge.csv.gz                                        "source,target" of every edge, counted from 0
    raw/node-feat.csv.gz, raw/node-label.csv.gz            a row per node
    split/<kind>/train.csv.gz, valid.csv.gz, test.csv.gz   a node number per line
    mapping/labelidx2<what>.csv.gz                         optional: "number,name" of every class, under a header

The tables are read in blocks into the final arrays, since the features of ogbn-products take a gigabyte.
"""

from __future__ import annotations

import csv
import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import FileFormatError
from fishergraph.datasets.records import GraphData, check_nodes, undirected_graph
from fishergraph.io.archives import DEFLATE_RATIO, Members, check_columns

BLOCK = 1 << 24  # bytes of text in memory at once
KINDS = ("time", "sales_ranking", "species", "random")
UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile, csv.Error)


def holds_ogb(path: Path) -> bool:
    """Whether a folder or zip file has the layout."""
    if not path.is_dir() and path.suffix != ".zip":
        return False
    with Members(path) as members:
        return members.find(*member_names("raw/edge")) is not None


def read_ogb(path: str | Path, name: str | None = None) -> GraphData:
    """The graph of a folder or zip file in the layout, with its split; edges go both ways, missing labels are −1."""
    path = Path(path)
    with Members(path) as members:
        n_nodes, n_edges = (
            int(read_numbers(members, f"raw/num-{kind}-list", np.int64, 1)[0, 0]) for kind in ("node", "edge")
        )
        if n_nodes < 1:
            raise misfit(members.where("raw/num-node-list"), "a positive number", str(n_nodes))
        if n_edges < 0:
            raise misfit(members.where("raw/num-edge-list"), "a number of at least 0", str(n_edges))
        y = read_numbers(members, "raw/node-label", np.int64, n_nodes, width=1, missing=-1)[:, 0]
        edges = read_numbers(members, "raw/edge", np.int32 if n_nodes < 2**31 else np.int64, n_edges, width=2)
        check_nodes(members.where("raw/edge"), n_nodes, edges)
        graph = undirected_graph(edges[:, 0], edges[:, 1], n_nodes)
        del edges
        X = read_numbers(members, "raw/node-feat", np.float32, n_nodes)
        train, val, test = (_split(members, part, n_nodes) for part in ("train", "valid", "test"))
        names = _class_names(members)
    return GraphData(
        name or path.stem, X, graph, np.ascontiguousarray(y), train, val, test, class_names=names, source=str(path)
    )


def member_names(stem: str) -> tuple[str, str]:
    """The names that a table can have."""
    return f"{stem}.csv.gz", f"{stem}.csv"


def _split(members: Members, part: str, n_nodes: int) -> np.ndarray | None:
    """The node numbers of one part of the split, sorted; None if there is no split."""
    member = members.find(*(name for kind in KINDS for name in member_names(f"split/{kind}/{part}")))
    if member is None:
        return None
    nodes = _read(members, member, np.int64, n_nodes, 1, None)[:, 0]
    check_nodes(members.where(member), n_nodes, nodes)
    return np.sort(nodes)


def _class_names(members: Members) -> tuple[str, ...] | None:
    kinds = ("arxivcategeory", "arxivcategory", "productcategory")  # the first is how OGB spells it
    member = members.find(*(name for kind in kinds for name in member_names(f"mapping/labelidx2{kind}")))
    if member is None:
        return None
    try:
        with members.open(member) as stream, _text(stream, member) as text:
            content = text.read(BLOCK + 1)
        if len(content) > BLOCK:
            raise ValueError(f"more than {BLOCK:,} bytes")
        rows = list(csv.reader(io.StringIO(content.decode("utf-8"))))[1:]
        names = {int(row[0]): row[1] for row in rows}
        return tuple(names[k] for k in range(len(names)))
    except (*UNREADABLE, LookupError) as error:
        raise misfit(members.where(member), "a number and a name per line", str(error)) from error


def misfit(path: str, expected: str, got: str) -> FileFormatError:
    """The error for a file whose content does not fit the layout."""
    got = " ".join(got.split())[:200]
    return FileFormatError(path=path, reason=f"it must hold {expected}, got {got}", advice="download it again")


# --- tables ---------------------------------------------------------------------------------------------


def read_numbers(
    members: Members, stem: str, kind: Any, n_rows: int, *, width: int | None = None, missing: int | None = None
) -> np.ndarray:
    """The numbers of a table, (row, column)."""
    member = members.need(*member_names(stem))
    if n_rows == 0:
        return np.empty((0, width or 1), dtype=kind)
    width = n_columns(members, member) if width is None else width
    _check_size(members, member, n_rows, width)
    table = _read(members, member, kind, n_rows, width, missing)
    if len(table) != n_rows:
        raise misfit(members.where(member), f"{n_rows} rows", f"{len(table)}")
    return table


def _read(members: Members, member: str, kind: Any, most: int, width: int, missing: int | None) -> np.ndarray:
    """The numbers of a member of at `most` so many rows, read in blocks."""
    import pyarrow as pa

    done, out = 0, np.empty((most, width), dtype=kind)
    try:
        for block in number_blocks(members, member, kind, width, missing):
            kept = min(len(block), most - done)
            out[done : done + kept] = block[:kept]
            done += len(block)
            if done > most:
                break
    except (pa.ArrowException, *UNREADABLE) as error:
        got = f"row {done} or later unread ({error})"
        raise misfit(members.where(member), f"lines of {width} numbers each", got) from error
    if done > most:
        raise misfit(members.where(member), f"{most} rows or fewer", f"{done} or more")
    return out[:done]


def _check_size(members: Members, member: str, n_rows: int, width: int) -> None:
    """Raise if a file is too small for its rows, before arrays are allocated for them."""
    check_columns(width, f"'{members.where(member)}'")
    n_bytes = members.size(member) * (DEFLATE_RATIO if member.endswith(".gz") else 1)
    if n_rows * width > n_bytes:  # a number takes a byte, or the comma next to it
        raise misfit(members.where(member), f"{n_rows} rows", f"a file too small for {n_rows:,}")


def n_columns(members: Members, member: str) -> int:
    """The number of columns, from the first line."""
    import pyarrow as pa

    try:
        with members.open(member) as stream, _text(stream, member) as text:
            return text.read(BLOCK).split(b"\n", 1)[0].count(b",") + 1
    except (pa.ArrowException, *UNREADABLE) as error:
        raise misfit(members.where(member), "lines of numbers", f"row 0 or later unread ({error})") from error


def number_blocks(members: Members, member: str, kind: Any, width: int, missing: int | None) -> Any:
    """Blocks of rows as (row, column) arrays of finite numbers; `missing` replaces empty cells."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    row = 0
    names = [str(j) for j in range(width)]
    types = dict.fromkeys(names, pa.from_numpy_dtype(np.dtype(kind)))
    read, convert = pacsv.ReadOptions(column_names=names, block_size=BLOCK), pacsv.ConvertOptions(column_types=types)
    with members.open(member) as stream, _text(stream, member) as text:
        for batch in pacsv.open_csv(text, read, convert_options=convert):
            if missing is not None:
                batch = pa.record_batch([column.fill_null(missing) for column in batch.columns], batch.schema)
            block = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
            bad = np.zeros(len(block), dtype=bool) if block.dtype.kind in "iu" else ~np.isfinite(block).all(axis=1)
            if bad.any():
                raise ValueError(f"NaN or infinity in row {row + int(bad.argmax())}")
            row += len(block)
            yield block


def _text(stream: Any, member: str) -> Any:
    """The unpacked text of a member, as an Arrow stream."""
    import pyarrow as pa

    source = pa.PythonFile(stream, mode="r")
    return pa.CompressedInputStream(source, "gzip") if member.endswith(".gz") else source
