"""Room 8: graphs to learn on.

`load_graph("cora")` works offline, Cora being part of the package. Other names are looked for in a folder of
data and, for the Planetoid graphs, downloaded once.
"""

from __future__ import annotations

import os
from pathlib import Path

from fishergraph.datasets.bundled import BUNDLED, read_bundled
from fishergraph.datasets.graph_set import GraphSet, read_graph_npz
from fishergraph.datasets.npz import read_npz
from fishergraph.datasets.planetoid import PLANETOID, download_planetoid, find_planetoid, read_planetoid
from fishergraph.datasets.record import GraphData
from fishergraph.datasets.synthetic import equal_mean_graph, equal_mean_sets
from fishergraph.datasets.tu import find_tu, read_tu

__all__ = [
    "GraphData", "GraphSet", "data_folders", "equal_mean_graph", "equal_mean_sets", "known_graphs", "load_graph",
    "load_graphs", "read_graph_npz", "read_npz", "read_planetoid", "read_tu",
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


def load_graphs(name: str | Path, *, data_home: str | Path | None = None) -> GraphSet:
    """The labelled graphs called `name`, as a `GraphSet`: one record of many graphs.

    `name` is the path of a folder or zip file in the text format of the TU collection, or of an `.npz` file; or the
    name of one in `data_home` or the folders that `load_graph` looks in, there or in a `tu` subfolder. Nothing is
    downloaded.
    """
    path = Path(name).expanduser()
    if path.exists():
        return read_graph_npz(path) if path.suffix == ".npz" else read_tu(path)
    folders = [place for folder in data_folders(data_home) for place in (folder, folder / "tu")]
    for folder in folders:
        if (place := find_tu(folder, str(name))) is not None:
            return read_tu(place, str(name))
        if (folder / f"{name}.npz").is_file():
            return read_graph_npz(folder / f"{name}.npz")
    raise FileNotFoundError(
        f"a graph set was expected at {path}, or as {name}/{name}_A.txt, {name}.zip or {name}.npz in {folders[0]}, got "
        "none; download it from the TU collection, or pass data_home."
    )


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
