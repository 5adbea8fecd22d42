"""A graph as two tables, `<name>.nodes.csv` and `<name>.edges.csv` (or .tsv, .parquet, gzipped), for other programs.

Edges have source and target. Nodes have id, label, the split as train, val, test or empty (split0, split1, … if there
are several), and the features in all other columns.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import FileFormatError
from fishergraph.datasets.records import GraphData, Split, undirected_graph
from fishergraph.graph import as_graph
from fishergraph.io.archives import check_columns, check_gzip
from fishergraph.io.files import check_folder, check_suffix, naming, replacing_all
from fishergraph.io.npz import SUFFIXES

TABLES = {suffix: separator for suffix, separator in SUFFIXES.items() if suffix != ".npz"}
_WORDS = ("train", "val", "test")
CELLS = 1 << 22  # cells of a block of rows in memory


def table_paths(path: str | Path) -> tuple[Path, Path]:
    """The paths of the edges and of the nodes: `graph.csv` gives `graph.edges.csv` and `graph.nodes.csv`."""
    path = Path(path)
    suffix = check_suffix(path, TABLES)
    stem = path.name[: -len(suffix)]
    return path.with_name(f"{stem}.edges{suffix}"), path.with_name(f"{stem}.nodes{suffix}")


def write_tables(data: GraphData, path: str | Path) -> tuple[Path, Path]:
    """Write a graph as a table of nodes and a table of edges, in both directions.

    Both files appear complete or not at all. Labels are the names of classes, if they have names, and empty if a node
    has none; features are x0, x1, ….

    Parameters
    ----------
    data : GraphData
        The graph.
    path : str or path
        The path of the tables without ``.nodes`` and ``.edges``; its suffix (.csv, .tsv, .parquet) decides the format.

    Returns
    -------
    tuple of two paths
        The tables of edges and of nodes.

    See Also
    --------
    read_tables : Read them.

    Examples
    --------
    >>> import tempfile
    >>> from fishergraph.datasets import equal_mean_graph, read_tables, write_tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edges, nodes = write_tables(equal_mean_graph(10), f"{folder}/graph.csv")
    ...     read_tables(nodes).n_nodes
    30
    """
    edges, nodes = table_paths(path)
    for target in (edges, nodes):
        check_folder(target)
    check_columns(data.X.shape[1], f"'{nodes}'")
    ids = np.arange(data.n_nodes) if data.ids is None else data.ids
    ids = ids.astype(str) if ids.dtype == object else ids
    ends = data.graph.tocoo()
    columns = {"source": lambda rows: ids[ends.row[rows]], "target": lambda rows: ids[ends.col[rows]]}
    more = {"id": lambda rows: ids[rows], "label": _label_column(data)} | _split_columns(data)
    with replacing_all(edges, nodes) as (edges_part, nodes_part):
        _write(edges, edges_part, columns, data.graph.nnz)
        _write(nodes, nodes_part, more, data.n_nodes, data.X)
    return edges, nodes


def holds_tables(path: Path) -> bool:
    """Whether a path is one of two tables that both exist."""
    return _pair(path) is not None


def _pair(path: Path) -> tuple[Path, Path] | None:
    """The paths of the edges and the nodes that a path belongs to."""
    match = re.fullmatch(r"(.+)\.(?:nodes|edges)(\.(?:csv|tsv)(?:\.gz)?|\.parquet)", path.name)
    if match is None:
        return None
    edges, nodes = (path.with_name(f"{match[1]}.{kind}{match[2]}") for kind in ("edges", "nodes"))
    return (edges, nodes) if edges.is_file() and nodes.is_file() else None


def read_tables(path: str | Path, name: str | None = None) -> GraphData:
    """Read a graph from tables of nodes and edges; edges are made undirected.

    Labels that are non-negative integers are kept, others are numbered in the order of their text; empty ones are −1.

    Parameters
    ----------
    path : str or path
        The path of one of the tables, ``<name>.nodes.csv`` or ``<name>.edges.csv`` (or .tsv, .parquet).
    name : str, default=None
        The name of the graph; None takes that of the files.

    Returns
    -------
    GraphData
        Features, adjacency, labels and splits.

    See Also
    --------
    write_tables : Write such tables.

    Examples
    --------
    >>> from fishergraph.datasets import read_tables
    >>> read_tables("graph.nodes.csv")  # doctest: +SKIP
    """
    from fishergraph.io.tables import read_columns, read_edges, read_nodes

    path = Path(path)
    pair = _pair(path)
    if pair is None:
        raise FileNotFoundError(f"'{path}' is not one of two tables of nodes and edges; see write_tables.")
    edges, nodes = pair
    splits = _split_names(nodes)
    ids, X, _ = read_nodes(nodes, drop=["label", *splits])
    graph = as_graph(read_edges(edges), node_ids=ids)
    if graph.weights is not None:
        reason = "it must list every edge once, without weights"
        raise FileFormatError(path=edges, reason=reason, advice="drop the column of weights and repeated edges")
    sources, targets = graph.adjacency.nonzero()
    labels, *words = read_columns(nodes, ["label", *splits])
    y, names = _numbered(labels)
    parts = [_part(words, word, nodes) for word in _WORDS]
    kept = None if np.array_equal(ids, np.arange(len(ids))) else ids
    name = name or edges.name.rpartition(".edges")[0]
    return GraphData(
        name, X, undirected_graph(sources, targets, len(ids)), y, *parts, ids=kept, class_names=names, source=str(path)
    )


def _split_names(nodes: Path) -> list[str]:
    """The columns of a node table that hold splits, in order."""
    names = [name for name in _columns(nodes) if re.fullmatch(r"split\d*", name)]
    return sorted(names, key=lambda name: int(name.removeprefix("split") or -1))


def _columns(path: Path) -> list[str]:
    """The names of a table's columns; none if it cannot be read, which `read_nodes` then explains."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    suffix = check_suffix(path, TABLES)
    try:
        if suffix.endswith(".gz"):
            check_gzip(path)
        if suffix == ".parquet":
            return pq.read_schema(path).names
        with gzip.open(path) if suffix.endswith(".gz") else path.open("rb") as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            return [name.strip() for name in next(csv.reader(text, delimiter=TABLES[suffix]), [])]
    except (OSError, EOFError, ValueError, csv.Error, zlib.error, pa.ArrowException):
        return []


def _numbered(labels: list[Any]) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Class numbers, and their names unless the labels are numbers."""
    if all(label is None or (isinstance(label, int) and label >= 0) for label in labels):
        return np.array([-1 if label is None else label for label in labels], dtype=np.int64), None
    names = sorted({str(label) for label in labels if label is not None})
    number = {name: k for k, name in enumerate(names)}
    return np.array([-1 if label is None else number[str(label)] for label in labels], dtype=np.int64), tuple(names)


def _part(splits: list[list[Any]], word: str, nodes: Path) -> Split:
    """The rows that are in one part of each split."""
    for column in splits:
        other = next((cell for cell in column if cell is not None and cell not in _WORDS), None)
        if other is not None:
            reason = f"a split must say train, val, test or nothing, got {other!r}"
            raise FileFormatError(path=nodes, reason=reason, advice="repair it")
    parts = [np.array([i for i, cell in enumerate(column) if cell == word], dtype=np.int64) for column in splits]
    return None if not parts else parts[0] if len(parts) == 1 else parts


def _label_column(data: GraphData) -> Any:
    names = None if data.class_names is None else np.array([*data.class_names, ""])
    labels = data.y if names is None else names[np.where(data.y < 0, len(names) - 1, data.y)]
    return lambda rows: np.ma.masked_where(data.y[rows] < 0, labels[rows])


def _split_columns(data: GraphData) -> dict[str, Any]:
    columns = {}
    for k in range(data.n_splits):
        column = np.full(data.n_nodes, "", dtype="<U5")
        for word, part in zip(_WORDS, data.split(k), strict=True):
            if part is not None:
                column[part] = word
        columns["split" if data.n_splits == 1 else f"split{k}"] = column.__getitem__
    return columns


def _write(path: Path, part: Path, columns: dict[str, Any], n_rows: int, X: Any = None) -> None:
    """Write the table of `path` to `part` by blocks of rows; a column is a function of the rows."""
    from fishergraph.io.arrow import write_blocks

    width = 0 if X is None else X.shape[1]
    step = max(CELLS // (width + len(columns)), 1)
    schema = _block(columns, slice(0, 1), X).schema
    blocks = (_block(columns, slice(start, min(start + step, n_rows)), X) for start in range(0, n_rows, step))
    with naming(path), part.open("wb") as file:
        write_blocks(file, check_suffix(path, TABLES), schema, blocks)


def _block(columns: dict[str, Any], rows: slice, X: Any) -> Any:
    """Some rows of the table."""
    import pyarrow as pa

    arrays = {name: _arrow(column(rows)) for name, column in columns.items()}
    if X is not None:
        block = X[rows].toarray() if sp.issparse(X) else X[rows]
        arrays |= {f"x{j}": pa.array(np.ascontiguousarray(block[:, j])) for j in range(X.shape[1])}
    return pa.table(arrays)


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, np.ma.MaskedArray):
        return pa.array(np.asarray(values.data), mask=np.ma.getmaskarray(values))
    return pa.array(values)
