"""File layouts of graphs: how each is recognised, and its reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fishergraph._errors import FileFormatError
from fishergraph.datasets.npz import read_npz
from fishergraph.datasets.ogb import holds_ogb, read_ogb
from fishergraph.datasets.planetoid import planetoid_names, read_planetoid
from fishergraph.datasets.pyg import from_pyg, holds_pyg, is_pyg, read_pyg
from fishergraph.datasets.records import GraphData
from fishergraph.datasets.reddit import holds_reddit, read_reddit
from fishergraph.datasets.shchur import read_shchur
from fishergraph.datasets.table_pair import holds_tables, read_tables
from fishergraph.io.files import check_readable, unreadable
from fishergraph.io.npz import npz_keys


@dataclass(frozen=True)
class Format:
    """A file layout: its description, whether a path has it (with a graph of that name), and its reader."""

    words: str
    holds: Callable[[Path, str | None], bool]
    read: Callable[[Path, str | None], GraphData]


def holds_npz(path: Path, key: str = "edge_index") -> bool:
    """Whether a path is an npz file with an array of that name."""
    return path.is_file() and path.suffix == ".npz" and key in npz_keys(path)


def _holds_planetoid(path: Path, name: str | None) -> bool:
    names = planetoid_names(path)
    return bool(names) if name is None else name in names


FORMATS = {
    "npz": Format("an npz with edge_index, y and x", lambda path, name: holds_npz(path), read_npz),
    "shchur": Format(
        "an npz with adj_data, attr_data and labels", lambda path, name: holds_npz(path, "adj_indptr"), read_shchur
    ),
    "planetoid": Format("a folder of ind.<name>.* files", _holds_planetoid, read_planetoid),
    "reddit": Format("reddit_data.npz with reddit_graph.npz", lambda path, name: holds_reddit(path), read_reddit),
    "ogb": Format("OGB's raw/ and split/, or its zip", lambda path, name: holds_ogb(path), read_ogb),
    "tables": Format(
        "<name>.nodes.csv beside <name>.edges.csv (or .tsv, .parquet)",
        lambda path, name: holds_tables(path),
        read_tables,
    ),
    "pyg": Format("a processed .pt file of PyTorch Geometric", lambda path, name: holds_pyg(path), read_pyg),
}


def read_graph(source: Any, name: str | None = None) -> GraphData:
    """Read a graph from a file or folder in any known layout.

    Parameters
    ----------
    source : str, path, or PyTorch Geometric Data or dataset
        An npz file of this library or of Shchur et al., a folder of Planetoid's files, the files of Reddit, a folder
        or zip file of OGB, two tables of nodes and edges, or a processed file of PyTorch Geometric.
    name : str, default=None
        The name of the graph; by default that of the file.

    Returns
    -------
    GraphData
        Features, adjacency, labels and split. Edges go both ways.

    See Also
    --------
    fishergraph.load_graph : Load a graph by name or path.

    Examples
    --------
    >>> import tempfile
    >>> from fishergraph.datasets import load_graph, read_graph, write_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_npz(load_graph("cora"), f"{folder}/mine.npz")
    ...     read_graph(f"{folder}/mine.npz")
    GraphData('mine': 2,708 nodes, 10,556 directed edges, 1,433 sparse features, 7 classes, one split)
    """
    if is_pyg(source):
        return from_pyg(source, name)
    path = Path(source).expanduser()
    head = b"" if path.is_dir() else check_readable(path)
    if path.suffix in (".npz", ".zip") and not head.startswith(b"PK"):
        raise unreadable(path, head, "it is not a zip file")
    for layout in FORMATS.values():
        if layout.holds(path, name):
            return layout.read(path, name)
    layouts = "; ".join(layout.words for layout in FORMATS.values())
    reason = f"it is {_description(path)}, and has none of the layouts: {layouts}"
    from fishergraph.io.edge_files import EDGE_SUFFIXES

    advice = "name another, or convert it"
    if path.name.lower().endswith(EDGE_SUFFIXES) and not npz_keys(path):
        advice = (
            "pass as_graph(read_edges(path)) to an estimator, with X=node_table(path) if it has attributes of nodes"
        )
    raise FileFormatError(path=path, reason=reason, advice=advice)


def _description(path: Path) -> str:
    """What a path of unknown layout holds, in a few words."""
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir())
        return "a folder with " + (", ".join(names[:5]) + (", …" if len(names) > 5 else "") or "nothing in it")
    keys = npz_keys(path) if path.suffix == ".npz" else set()
    if "graph_ptr" in keys:
        return "a set of graphs, which load_graphs reads"
    if keys:
        return f"an npz file with the arrays {', '.join(sorted(keys)[:8])}"
    return f"a file of the type '{path.suffix or 'without suffix'}'"
