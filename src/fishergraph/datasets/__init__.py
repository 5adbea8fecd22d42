"""Room 8: graphs to learn on.

`load_graph("cora")` works offline, Cora being part of the package. Other names are looked for in a folder of
data and, for the Planetoid graphs, downloaded once.
"""

from __future__ import annotations

import os
from pathlib import Path

from fishergraph.datasets.bundled import BUNDLED, read_bundled
from fishergraph.datasets.npz import read_npz
from fishergraph.datasets.planetoid import PLANETOID, download_planetoid, find_planetoid, read_planetoid
from fishergraph.datasets.record import GraphData
from fishergraph.datasets.synthetic import equal_mean_graph, equal_mean_sets

__all__ = [
    "GraphData", "data_folders", "equal_mean_graph", "equal_mean_sets", "known_graphs", "load_graph", "read_npz",
    "read_planetoid",
]  # fmt: skip


def load_graph(name: str, *, data_home: str | Path | None = None) -> GraphData:
    """The graph called `name`, as a `GraphData`.

    "cora" is always the bundled one. Any other name is looked for as `<name>.npz`, then as Planetoid files
    (there or in a `planetoid` subfolder), in `data_home` if given, else in the folder that the environment
    variable FISHERGRAPH_DATA names and then in the cache folder. "citeseer" and "pubmed" are downloaded if
    found nowhere, into `data_home` if given, else into the cache folder.
    """
    if name in BUNDLED:
        return read_bundled(name)
    folders = data_folders(data_home)
    known = known_graphs(data_home)
    if name not in known:
        listed = ", ".join(repr(other) for other in known)
        raise ValueError(
            f"name must be one of {listed}, got {name!r}; choose one of these names, or put an .npz file of "
            f"that name into {folders[0]}."
        )
    for folder in folders:
        if (folder / f"{name}.npz").is_file():
            return read_npz(folder / f"{name}.npz", name)
        if name in PLANETOID and (place := find_planetoid(folder, name)):
            return read_planetoid(place, name)
    return read_planetoid(download_planetoid(name, folders[-1]), name)


def known_graphs(data_home: str | Path | None = None) -> list[str]:
    """The names that `load_graph` can load: bundled, Planetoid's, and `.npz` files in the data folders."""
    found = {path.stem for folder in data_folders(data_home) for path in folder.glob("*.npz")}
    return list(dict.fromkeys([*BUNDLED, *PLANETOID, *sorted(found)]))


def data_folders(data_home: str | Path | None = None) -> list[Path]:
    """The folders to look in, in order; the last one receives downloads."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get("FISHERGRAPH_DATA")
    return [*([Path(named).expanduser()] if named else []), cache_folder()]


def cache_folder() -> Path:
    """The folder for downloads: `fishergraph` in $XDG_CACHE_HOME, else in ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fishergraph"
