"""Room 8: graphs to learn on.

`load_graph("cora")` works offline, Cora being part of the package. Other names are looked for in folders of data, and
published ones are downloaded once.

    record      GraphData: what every loader returns
    sources     the table of published data: licences, addresses, checksums
    prepare     what is done to data before it is embedded
    folders     where data is looked for
    download    resumed, checked downloads
    archive     a folder or a zip file, seen alike
    formats     read_graph: any of the layouts below, recognised by what is there
    npz, planetoid, reddit, ogb, shchur, pyg    one layout each
    graph_set, tu    GraphSet: labelled graphs, and the layouts of such sets
    table_pair  tables of nodes and edges, in and out
    bundled, synthetic    what comes along, what is made up
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fishergraph._checks import look_up
from fishergraph.datasets.bundled import BUNDLED, read_bundled
from fishergraph.datasets.download import check_file, fetch_file
from fishergraph.datasets.folders import cache_folder, data_folders, existing_folders, npz_files, places
from fishergraph.datasets.formats import FORMATS, described, read_graph
from fishergraph.datasets.graph_set import GraphSet, read_graph_npz, write_graph_npz
from fishergraph.datasets.npz import npz_keys, read_npz, write_npz
from fishergraph.datasets.planetoid import read_planetoid
from fishergraph.datasets.prepare import Preparation, prepare
from fishergraph.datasets.pyg import is_pyg
from fishergraph.datasets.record import GraphData
from fishergraph.datasets.sources import SOURCES, TU_FILES, File, Source, published
from fishergraph.datasets.synthetic import equal_mean_graph, equal_mean_sets
from fishergraph.datasets.table_pair import read_tables, write_tables
from fishergraph.datasets.tu import find_tu, holds_tu, read_tu

__all__ = [
    "GraphData", "GraphSet", "Preparation", "cache_folder", "data_folders", "equal_mean_graph", "equal_mean_sets",
    "fetch", "find_graph", "find_graphs", "is_graph_set", "known_graphs", "load_graph", "load_graphs", "prepare",
    "read_graph", "read_graph_npz", "read_npz", "read_planetoid", "read_tables", "read_tu", "write_graph_npz",
    "write_npz", "write_tables",
]  # fmt: skip


def load_graph(name: Any, *, data_home: str | Path | None = None, verbose: Any = False) -> GraphData:
    """The graph called `name`, as a `GraphData`.

    "cora" is always the bundled one. Any other name is looked for as `<name>.npz`, then in the layout of its
    publishers, in `data_home` if given, else in the folder that the environment variable FISHERGRAPH_DATA names and
    then in the cache folder. A published graph that is found nowhere is downloaded, into `data_home` if given, else
    into the cache folder; `verbose` shows a bar while that lasts.

    In place of a name, the path of a file or folder that `read_graph` can read, or a `Data` object or dataset of
    PyTorch Geometric.
    """
    if is_pyg(name) or isinstance(name, Path):
        return read_graph(name)
    if name in BUNDLED:
        return read_bundled(name)
    files, source = npz_files(data_home), published(name)
    if isinstance(name, str) and name in files:
        return read_graph(files[name], name)
    if source is not None:
        place = find_graph(source, data_home)
        if place is None:
            fetch(source.name, data_home=data_home, verbose=verbose)
            place = find_graph(source, data_home)
        return described(FORMATS[source.reader].read(place, source.name), source.licence, source.home)  # type: ignore
    if isinstance(name, str) and name and Path(name).expanduser().exists():
        return read_graph(name)
    listed = ", ".join(repr(other) for other in known_graphs(data_home))
    raise ValueError(
        f"name must be one of {listed}, got {name!r}; choose one of these names, give the path of a file, or put "
        f"an .npz file of that name into {data_folders(data_home)[0]}."
    )


def known_graphs(data_home: str | Path | None = None) -> list[str]:
    """The names that `load_graph` can load: published ones, and `.npz` files in the data folders."""
    return list(dict.fromkeys([*SOURCES, *sorted(npz_files(data_home))]))


def load_graphs(name: str | Path, *, data_home: str | Path | None = None, verbose: Any = False) -> GraphSet:
    """The labelled graphs called `name`, as a `GraphSet`: one record of many graphs.

    `name` is the path of a folder or zip file in the text format of the TU collection, or of an `.npz` file; or the
    name of one in `data_home` or the folders that `load_graph` looks in, there or in a `tu` subfolder. A set of
    `sources.TU_FILES` that is found nowhere is downloaded, as by `load_graph`.
    """
    path = Path(name).expanduser()
    if path.exists():
        return read_graph_npz(path) if path.suffix == ".npz" else read_tu(path)
    if (place := find_graphs(str(name), data_home)) is None:
        if name not in TU_FILES:
            raise FileNotFoundError(
                f"a graph set was expected at {path}, or as {name}/{name}_A.txt, {name}.zip or {name}.npz in "
                f"{data_folders(data_home)[0]}, got none; put it there, pass data_home, or choose one that can be "
                f"downloaded: {', '.join(TU_FILES)}."
            )
        (place,) = fetch(str(name), data_home=data_home, verbose=verbose)
    return read_graph_npz(place) if place.suffix == ".npz" else read_tu(place, str(name))


def find_graphs(name: str, data_home: str | Path | None = None) -> Path | None:
    """The file or folder that has a graph set, or None; what was downloaded and then changed is moved aside."""
    for folder in (place for home in existing_folders(data_home) for place in (home, home / "tu")):
        if (place := find_tu(folder, name)) is not None:
            if place.is_file():
                check_file(place)
            return place
        if (folder / f"{name}.npz").is_file():
            return folder / f"{name}.npz"
    return None


def is_graph_set(name: Any, data_home: str | Path | None = None) -> bool:
    """Whether a name or path stands for a set of graphs, which `load_graphs` reads, and not for one graph."""
    if published(name) is not None or name in npz_files(data_home):
        return False
    path = Path(name).expanduser()
    if not path.exists():
        return name in TU_FILES or find_graphs(name, data_home) is not None
    return "graph_ptr" in npz_keys(path) if path.suffix == ".npz" else holds_tu(path)


def find_graph(source: Source, data_home: str | Path | None = None) -> Path | None:
    """The file or folder that has a published graph, or None; what was downloaded and then changed is moved aside."""
    for place in places(source, data_home):
        for file in source.files:
            path = place / Path(file.path).name if place.is_dir() else place
            if path.is_file():
                check_file(path)
        if FORMATS[source.reader].holds(place, source.name):
            return place
    return None


def fetch(name: str, *, data_home: str | Path | None = None, verbose: Any = False) -> list[Path]:
    """The files of a published graph or set of graphs, downloaded where they are absent, and checked.

    They go into `data_home` if given, else into the cache folder. What has come of a broken download is kept, and the
    next call goes on from there. A file whose checksum is wrong is moved aside, to a name that ends in .old.
    """
    (files,) = check_names([name])
    folder = data_folders(data_home)[-1]
    return [fetch_file(file, folder, verbose) for file in files]


def check_names(names: Iterable[Any]) -> list[tuple[File, ...]]:
    """The files of published datasets; an unknown name lists the known ones."""
    table = {key: one.files for key, one in SOURCES.items()} | {key: (file,) for key, file in TU_FILES.items()}
    sources = [(name, published(name)) for name in names]
    return [look_up(table, name, "name") if source is None else source.files for name, source in sources]
