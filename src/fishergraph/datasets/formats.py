"""Files of any layout we know: how each is recognised, and what reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fishergraph._file_checks import check_readable, unreadable
from fishergraph.datasets.npz import npz_keys, read_npz
from fishergraph.datasets.ogb import holds_ogb, read_ogb
from fishergraph.datasets.planetoid import planetoid_names, read_planetoid
from fishergraph.datasets.pyg import from_pyg, holds_pyg, is_pyg, read_pyg
from fishergraph.datasets.record import GraphData
from fishergraph.datasets.reddit import holds_reddit, read_reddit
from fishergraph.datasets.shchur import holds_shchur, read_shchur
from fishergraph.datasets.table_pair import holds_tables, read_tables


@dataclass(frozen=True)
class Format:
    """A layout of files: in words, whether a path has it (and there a graph of that name), and its reader."""

    words: str
    holds: Callable[[Path, str | None], bool]
    read: Callable[[Path, str | None], GraphData]


def _npz_holds(path: Path, name: str | None) -> bool:
    return path.is_file() and path.suffix == ".npz" and "edge_index" in npz_keys(path)


def _planetoid_holds(path: Path, name: str | None) -> bool:
    names = planetoid_names(path)
    return bool(names) if name is None else name in names


FORMATS = {
    "npz": Format("an npz with edge_index, y and x", _npz_holds, read_npz),
    "shchur": Format("an npz with adj_data, attr_data and labels", lambda path, name: holds_shchur(path), read_shchur),
    "planetoid": Format("a folder of ind.<name>.* files", _planetoid_holds, read_planetoid),
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
    """The graph of a file or folder in any layout of `FORMATS`, or of a PyTorch Geometric `Data` or dataset."""
    if is_pyg(source):
        return from_pyg(source, name)
    path = Path(source).expanduser()
    head = b"" if path.is_dir() else check_readable(path)
    if path.suffix in (".npz", ".zip") and not head.startswith(b"PK"):
        raise unreadable(path, head, "other bytes")
    for layout in FORMATS.values():
        if layout.holds(path, name):
            return layout.read(path, name)
    known = "; ".join(layout.words for layout in FORMATS.values())
    raise ValueError(
        f"'{path}' must have one of the layouts {known}; got {_description(path)}: name another, or convert it."
    )


def _description(path: Path) -> str:
    """What is there instead, in a few words."""
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir())
        return "a folder with " + (", ".join(names[:5]) + (", …" if len(names) > 5 else "") or "nothing in it")
    keys = npz_keys(path) if path.suffix == ".npz" else set()
    if "graph_ptr" in keys:
        return "a set of graphs, which load_graphs reads"
    return (
        f"arrays {', '.join(sorted(keys)[:8])}" if keys else f"a file of the type '{path.suffix or 'without suffix'}'"
    )


def described(data: GraphData, licence: str, home: str) -> GraphData:
    """The data with the licence and source of the table where its files say nothing of them."""
    return replace(data, licence=data.licence or licence, source=home)
