"""A graph as two tables, `<name>.nodes.csv` and `<name>.edges.csv` (or .tsv, .parquet, gzipped), for other programs.

Edges have source and target. Nodes have id, label, the split as train, val, test or empty (split0, split1, … if there
are several), and the features in all other columns.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import FileFormatError
from fishergraph.datasets.records import GraphData, Split, undirected_graph
from fishergraph.graph import as_graph
from fishergraph.io.archives import check_columns
from fishergraph.io.files import check_folder, check_suffix, naming, replacing_all
from fishergraph.io.npz import SUFFIXES

TABLES = {suffix: separator for suffix, separator in SUFFIXES.items() if suffix != ".npz"}
_WORDS = ("train", "val", "test")


def table_paths(path: str | Path) -> tuple[Path, Path]:
    """The paths of the edges and of the nodes: `graph.csv` gives `graph.edges.csv` and `graph.nodes.csv`."""
    path = Path(path)
    suffix = check_suffix(path, TABLES)
    stem = path.name[: -len(suffix)]
    return path.with_name(f"{stem}.edges{suffix}"), path.with_name(f"{stem}.nodes{suffix}")


def write_tables(data: GraphData, path: str | Path) -> tuple[Path, Path]:
    """Write a table of edges and one of nodes, both or neither.

    Edges go both ways. Labels are the names of classes, if they have names, and empty if a node has none. Features are
    x0, x1, ….

    Parameters
    ----------
    data : GraphData
        The graph.
    path : str or path
        `graph.csv` stands for the files `graph.edges.csv` and `graph.nodes.csv`; or .tsv, either with .gz, or .parquet.

    Returns
    -------
    tuple of two paths
        The tables of edges and of nodes.

    See Also
    --------
    read_graph : Read them back.

    Examples
    --------
    >>> import tempfile
    >>> from fishergraph.datasets import equal_mean_graph, write_tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edges, nodes = write_tables(equal_mean_graph(8, 2), f"{folder}/graph.csv")
    ...     nodes.read_text().splitlines()[0]
    '"id","label","split","x0","x1"'
    """
    from fishergraph.io.arrow import write_table

    edges, nodes = table_paths(path)
    for target in (edges, nodes):
        check_folder(target)
    check_columns(data.X.shape[1], f"'{nodes}'")
    ids = np.arange(data.n_nodes) if data.ids is None else data.ids
    ids = ids.astype(str) if ids.dtype == object else ids
    ends = data.graph.tocoo()
    columns = {"source": lambda rows: ids[ends.row[rows]], "target": lambda rows: ids[ends.col[rows]]}
    labels, names = data.y, data.class_names or ()
    if names:
        numbers, codes = np.unique(labels, return_inverse=True)
        labels = np.array([names[k] if 0 <= k < len(names) else str(k) for k in numbers])[codes]
    label = np.ma.masked_where(data.y < 0, labels)
    more = {"id": ids.__getitem__, "label": label.__getitem__} | _split_columns(data)
    features = [f"x{j}" for j in range(data.X.shape[1])]
    with replacing_all(edges, nodes) as (edges_part, nodes_part):
        with naming(edges), edges_part.open("wb") as file:
            write_table(file, check_suffix(edges, TABLES), columns, data.graph.nnz)
        with naming(nodes), nodes_part.open("wb") as file:
            write_table(file, check_suffix(nodes, TABLES), more, data.n_nodes, data.X, features)
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
    """Read a graph from a table of nodes and one of edges.

    Edges go both ways. Labels that are non-negative integers are kept, others are numbered in the order of their text;
    empty ones are −1.

    Parameters
    ----------
    path : str or path
        One of the two files that `write_tables` makes.
    name : str, default=None
        The name of the graph; by default that of the files.

    Returns
    -------
    GraphData
        Features, adjacency, labels and split.

    See Also
    --------
    read_graph : Read a graph in any layout.

    Examples
    --------
    >>> import tempfile
    >>> from fishergraph.datasets import equal_mean_graph, read_tables, write_tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     edges, nodes = write_tables(equal_mean_graph(8, 2), f"{folder}/graph.csv")
    ...     read_tables(nodes).n_nodes
    24
    """
    from fishergraph.io.arrow import column_names, node_header
    from fishergraph.io.tables import read_columns, read_edges, read_nodes

    path = Path(path)
    pair = _pair(path)
    if pair is None:
        raise FileNotFoundError(f"'{path}' is not one of two tables of nodes and edges; see write_tables.")
    edges, nodes = pair
    columns = column_names(nodes, check_suffix(nodes, TABLES), node_header)
    splits = [name for name in columns if re.fullmatch(r"split\d*", name)]
    splits.sort(key=lambda name: int(name.removeprefix("split") or -1))
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


def _split_columns(data: GraphData) -> dict[str, Any]:
    columns = {}
    for k in range(data.n_splits):
        column = np.full(data.n_nodes, "", dtype="<U5")
        for word, part in zip(_WORDS, data.split(k), strict=True):
            if part is not None:
                column[part] = word
        columns["split" if data.n_splits == 1 else f"split{k}"] = column.__getitem__
    return columns
