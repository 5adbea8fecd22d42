"""Files of edges: text of many kinds, Parquet, npz, GraphML, GML, JSON and MatrixMarket.

- A text file is .csv, .tsv, .txt, .edges, .el or .edgelist, or one of these with .gz or .zst. Its separator, header,
  comments (lines that begin with # or %) and encoding are found in the first lines.
- A file without header has sources, targets and, if the third column holds numbers, weights. Files of numbers have no
  header; of .txt, .edges, .el and .edgelist, files of names have none either unless they name known columns.
- Ids of text files are integers if each is written as an integer is printed, else text: 007 stays 007. Blanks around an
  id or a name are ignored.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fishergraph._errors import InputError
from fishergraph._records import check_edge_index, check_endpoints
from fishergraph.io.arrow import edge_header, read_table
from fishergraph.io.columns import check_ids
from fishergraph.io.edge_columns import ANY, ROLES, EdgeOptions, find_columns
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.edge_table import read_edge_table
from fishergraph.io.edge_text import EdgeLayout
from fishergraph.io.edge_times import read_times
from fishergraph.io.faults import Locate, TableFault, no_lines, raise_faults
from fishergraph.io.files import Advance, check_suffix, count_nothing
from fishergraph.io.graph_files import GRAPH_SUFFIXES, read_graph_file
from fishergraph.io.npz import Arrays, entry, misfit, read_npz
from fishergraph.io.text_columns import load_text, ragged_faults
from fishergraph.io.text_table import TEXT_SUFFIXES, open_text

EDGE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".npz", *GRAPH_SUFFIXES)
PathLike = str | os.PathLike


@dataclass(frozen=True)
class EdgeFile:
    """A file of edges that was read.

    table : the edges, as `read_edges` describes them.
    faults : what is wrong with its lines.
    locate : rows of the table → lines of the file, or None.
    """

    table: pa.Table
    faults: list[TableFault]
    locate: Locate = no_lines


def read_edges(
    path: PathLike,
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | bool | None = None,
    time: str | int | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    advance: Advance = count_nothing,
) -> pa.Table:
    """Read the edge table of a file, for `as_graph`.

    Parameters
    ----------
    path : str or path
        A .csv, .tsv, .txt, .edges, .el or .edgelist file, or one of these with .gz or .zst; a .parquet, .npz, .graphml,
        .gml, .json (node-link) or .mtx file. The edges of an npz file with `ids` are read as pairs of these ids.
    source, target : str or int, default=None
        The columns of the ends, by name, or by number from 1 in a file without header. By default source and target,
        src and dst, from and to, u and v, or node1 and node2, in any case; else the first two of a file without header.
    weight : str, int or False, default=None
        The column of the weights; False reads none. By default weight, weights or edge_weight, or the third column of a
        file of numbers without header.
    time : str or int, default=None
        The column of the times: numbers, or dates, which become seconds since 1970 (UTC).
    separator : str, default=None
        What separates the columns of a text file: a character, or "tab", "comma", "semicolon", "space" or "bar". By
        default it is found in the first lines.
    header : bool, default=None
        Whether the first line names the columns. By default it is found out.
    encoding : str, default=None
        The encoding of a text file. By default that of its byte-order mark, else UTF-8.
    advance : callable, optional
        `advance(n)` is called as bytes of the file are read.

    Returns
    -------
    pyarrow.Table
        Columns source and target, weight and time if the file has them or they were named, and the other columns under
        their own names. Its metadata say what was read; edges without direction are listed both ways.

    See Also
    --------
    fishergraph.as_graph : Make a graph of the table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fishergraph import as_graph
    >>> from fishergraph.io.tables import read_edges
    >>> path = Path(tempfile.mkdtemp()) / "trips.txt"
    >>> _ = path.write_text("# from to km\\nrome paris 1100\\nparis oslo 1340\\n")
    >>> graph = as_graph(read_edges(path))
    >>> graph
    Graph(3 nodes, 2 edges, weighted, with ids)
    """
    options = EdgeOptions(source, target, weight, time, separator, header, encoding)
    file = load_edges(path, options, advance=advance)
    raise_file_faults(file)
    return file.table


def raise_file_faults(file: EdgeFile) -> None:
    """Raise one error for everything that is wrong with the lines of a file."""
    edges = read_edge_table(file.table)
    assert edges is not None
    raise_faults([*file.faults, *edges.faults], edges.path, file.locate)


def load_edges(path: PathLike, options: EdgeOptions = ANY, *, advance: Advance = count_nothing) -> EdgeFile:
    """A file of edges with its faults, which are not raised."""
    path = Path(path)
    suffix = check_suffix(path, EDGE_SUFFIXES)
    if suffix in TEXT_SUFFIXES:
        return _load_text(path, suffix, options, advance)
    of_text = [name for name in ("separator", "header", "encoding") if getattr(options, name) is not None]
    if of_text:
        expected = f"be left out for a {suffix} file"
        raise InputError(parameter=of_text[0], value=getattr(options, of_text[0]), expected=expected)
    if suffix == ".npz":
        reading, table = EdgeReading(), _npz_edges(path, read_npz(path, advance=advance))
    elif suffix == ".parquet":
        ends = lambda names: [names[place] for place in find_columns(names, options).used.values()][:2]  # noqa: E731
        reading, table = EdgeReading(), read_table(path, suffix, edge_header, ends, advance)
    else:
        file = read_graph_file(path, suffix, advance)
        table, reading = file.edges, EdgeReading(both_ways=file.both_ways, notes=file.notes)
    loaded = _with_roles(path, table, options, reading)
    return _weighted(loaded) if suffix in GRAPH_SUFFIXES else loaded


def _weighted(file: EdgeFile) -> EdgeFile:
    """The edges of a graph; those without a weight beside others have weight 1, as in NetworkX."""
    table, names = file.table, file.table.column_names
    reading = EdgeReading.of(table)
    missing = table.column("weight").null_count if "weight" in names else 0
    if not missing or reading is None or not str(table.column("weight").type).startswith(("int", "double")):
        return file
    table = table.set_column(names.index("weight"), "weight", table.column("weight").fill_null(1))
    note = f"{missing:,} without a weight count 1"
    return replace(file, table=replace(reading, notes=(*reading.notes, note)).attached(table))


def _with_roles(
    path: Path,
    table: pa.Table,
    options: EdgeOptions,
    reading: EdgeReading,
    numbers: tuple[bool, ...] = (),
    *,
    clean: bool = False,
) -> EdgeFile:
    """The table with its columns called source, target, weight and time, and the record of that in its metadata."""
    names = table.column_names
    roles = find_columns(names, options, numbers=numbers)
    used = roles.used
    columns: dict[str, Any] = {role: table.column(place) for role, place in used.items()}
    faults = []
    if roles.time is not None:
        what = f"column {names[roles.time]!r} of '{path}'"
        columns["time"], faults = read_times(columns["time"], what)
    for place, name in enumerate(names):
        if place not in used.values():
            taken = name.strip().lower() in ROLES or name in columns
            columns[f"{name} (file)" if taken else name] = table.column(place)
    record = replace(
        reading,
        path=str(path),
        rows=table.num_rows,
        columns={role: names[place] for role, place in used.items()},
        left=roles.left(names),
        options=asdict(options) | {"clean": clean},
    )
    return EdgeFile(record.attached(pa.table(columns)), faults)


# --- text -----------------------------------------------------------------------------------------------


def _load_text(path: Path, suffix: str, options: EdgeOptions, advance: Advance) -> EdgeFile:
    file = open_text(path, suffix, EdgeLayout(options), options.text, advance)
    try:
        roles = find_columns(file.names, options, numbers=file.numbers)
    except InputError as error:
        if error.parameter != "an edge table" or options.header:
            raise
        advice = f"{error.advice}; if the first line is an edge, pass header=False (--no-header)"
        raise error.revised(advice=advice) from error
    file, table = load_text(file, lambda names: [names[place] for place in (roles.source, roles.target)])
    loaded = _with_roles(path, table, options, EdgeReading(notes=file.notes), file.numbers, clean=file.clean)
    return EdgeFile(loaded.table, [*ragged_faults(file), *loaded.faults], file.lines_if_readable)


def lines_of(reading: EdgeReading) -> Locate:
    """Rows → lines, of the file that a table was read from."""
    if not reading.path or not reading.options or not reading.path.lower().endswith(tuple(TEXT_SUFFIXES)):
        return no_lines

    def locate(rows: Any) -> list[int] | None:
        path, options = Path(reading.path), dict(reading.options)
        try:
            clean = options.pop("clean", False)
            asked = EdgeOptions(**options)
            file = open_text(path, check_suffix(path, TEXT_SUFFIXES), EdgeLayout(asked), asked.text)
            return (file.cleaned() if clean else file).lines(rows)
        except (OSError, ValueError, TypeError, pa.ArrowException):
            return None

    return locate


# --- npz ------------------------------------------------------------------------------------------------


def _npz_edges(path: Path, arrays: Arrays) -> pa.Table:
    """The edges as a table of ids, or of row numbers if there are no ids."""
    ends = check_edge_index(entry(path, arrays, "edge_index"), f"edge_index in '{path}'")
    ids = npz_ids(path, arrays) if "ids" in arrays else None
    n_nodes = (int(ends.max()) + 1 if ends.size else 0) if ids is None else len(ids)
    check_endpoints(ends[0], ends[1], n_nodes)
    source, target = ends if ids is None else (ids.take(pa.array(end.astype(np.int64))) for end in ends)
    columns: dict[str, Any] = {"source": source, "target": target}
    if "edge_weight" in arrays:
        weights = entry(path, arrays, "edge_weight", ends.shape[1:])
        if weights.dtype.kind not in "biuf":
            raise misfit(path, "numbers in 'edge_weight'", str(weights.dtype))
        columns["weight"] = weights.astype(np.float64) if weights.dtype == np.longdouble else weights
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    flag = arrays.get("undirected", np.array(False))
    if flag.shape != () or flag.dtype != bool:
        raise misfit(path, "true or false in 'undirected'", f"{flag.dtype} of shape {flag.shape}")
    if not flag:
        return table
    back = table.filter(pa.array(ends[0] != ends[1]))  # a self-loop has one direction
    back = back.rename_columns(["target", "source", *table.column_names[2:]])
    return pa.concat_tables([table, back.select(table.column_names)])


def npz_ids(path: Path, arrays: Arrays) -> pa.Array:
    """The ids in an npz file."""
    ids = arrays["ids"]
    if ids.ndim != 1:
        raise misfit(path, "one id per node in 'ids'", f"shape {ids.shape}")
    return check_ids(ids, f"ids in '{path}'")
