"""Graphs to learn on: bundled, published, from files, and synthetic.

`load_graph("cora")` works offline, since Cora is part of the package. Other names are searched in data folders, and
published ones are downloaded once.

    records     GraphData and GraphSet, which loaders return
    sources     the table of published data: licences, addresses, checksums
    prepare     scaled rows and self-loops, before an embedding
    download    data folders; resumed and verified downloads
    formats     read_graph: recognises the layouts below
    npz, planetoid, reddit, ogb, shchur, pyg, tu    one layout each; pickled parses Planetoid's files
    table_pair  tables of nodes and edges, in and out
    examples    load_tables: bundled tables with words, dates and gaps
    synthetic   sets and neighbourhoods that have the same mean
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fishergraph._errors import InputError
from fishergraph._validation import look_up
from fishergraph.datasets.download import (
    cache_folder,
    check_file,
    data_folders,
    existing_folders,
    fetch_file,
    npz_files,
    source_paths,
)
from fishergraph.datasets.examples import TableData, load_tables
from fishergraph.datasets.formats import FORMATS, read_graph
from fishergraph.datasets.npz import BUNDLED, read_bundled, read_graph_npz, read_npz, write_graph_npz, write_npz
from fishergraph.datasets.planetoid import read_planetoid
from fishergraph.datasets.prepare import Preparation, prepare
from fishergraph.datasets.pyg import is_pyg
from fishergraph.datasets.records import GraphData, GraphSet
from fishergraph.datasets.sources import SOURCES, TU_FILES, File, Source, published
from fishergraph.datasets.synthetic import equal_mean_graph, equal_mean_sets
from fishergraph.datasets.table_pair import read_tables, write_tables
from fishergraph.datasets.tu import find_tu, holds_tu, read_tu
from fishergraph.io.npz import npz_keys

__all__ = [
    "BUNDLED",
    "GraphData",
    "GraphSet",
    "Preparation",
    "TableData",
    "cache_folder",
    "data_folders",
    "equal_mean_graph",
    "equal_mean_sets",
    "fetch",
    "known_graphs",
    "load_graph",
    "load_graphs",
    "load_tables",
    "prepare",
    "read_graph",
    "read_graph_npz",
    "read_npz",
    "read_planetoid",
    "read_tables",
    "read_tu",
    "write_graph_npz",
    "write_npz",
    "write_tables",
]


def load_graph(name: Any, *, data_home: str | Path | None = None, verbose: Any = False) -> GraphData:
    """Load a graph by name or path; a published graph is downloaded once.

    "cora" is always the bundled graph. Other names are searched as `<name>.npz`, then in the layout of their
    publishers, in `data_home`, else in the folder of the environment variable FISHERGRAPH_DATA and in the cache folder.

    Parameters
    ----------
    name : str, path, or PyTorch Geometric Data or dataset
        The name of a graph (see `known_graphs`), the path of a file or folder that `read_graph` can read, or an object
        of PyTorch Geometric.
    data_home : str or path, default=None
        The only folder to search, and the folder of downloads.
    verbose : bool, default=False
        Show a progress bar during a download.

    Returns
    -------
    GraphData
        Features, adjacency, labels and standard split.

    See Also
    --------
    load_graphs : Sets of labelled graphs.

    Examples
    --------
    >>> from fishergraph import load_graph
    >>> cora = load_graph("cora")
    >>> cora.X.shape, cora.n_classes
    ((2708, 1433), 7)
    """
    if is_pyg(name) or isinstance(name, Path):
        return read_graph(name)
    if name in BUNDLED:
        return read_bundled(name)
    files, source = npz_files(data_home), published(name)
    if isinstance(name, str) and name in files:
        return read_graph(files[name], name)
    if source is not None:
        path = find_graph(source, data_home)
        if path is None:
            fetch(source.name, data_home=data_home, verbose=verbose)
            path = find_graph(source, data_home)
        data = FORMATS[source.reader].read(path, source.name)  # type: ignore[arg-type]
        return replace(data, licence=data.licence or source.licence, source=source.home)
    if isinstance(name, str) and name and Path(name).expanduser().exists():
        return read_graph(name)
    raise InputError(
        parameter="name",
        value=name,
        expected=f"be one of {', '.join(repr(other) for other in known_graphs(data_home))}",
        advice=f"pass the path of a file, or put an .npz file of that name into {data_folders(data_home)[0]}",
    )


def known_graphs(data_home: str | Path | None = None) -> list[str]:
    """List the names that `load_graph` can load.

    Parameters
    ----------
    data_home : str or path, default=None
        The only folder to search, as in `load_graph`.

    Returns
    -------
    list of str
        Published graphs, and `.npz` files in the data folders.

    See Also
    --------
    load_graph : Load one of them.

    Examples
    --------
    >>> from fishergraph.datasets import known_graphs
    >>> known_graphs()[:3]
    ['cora', 'citeseer', 'pubmed']
    """
    return list(dict.fromkeys([*SOURCES, *sorted(npz_files(data_home))]))


def load_graphs(name: str | Path, *, data_home: str | Path | None = None, verbose: Any = False) -> GraphSet:
    """Load a set of labelled graphs by name or path.

    Published sets are downloaded once.

    Parameters
    ----------
    name : str or path
        The path of a folder or zip file in the text format of the TU collection, or of an `.npz` file; or the name of
        one in the folders that `load_graph` searches, or in their `tu` subfolder.
    data_home : str or path, default=None
        The only folder to search, and the folder of downloads.
    verbose : bool, default=False
        Show a progress bar during a download.

    Returns
    -------
    GraphSet
        Graphs, labels and folds.

    See Also
    --------
    load_graph : One graph with labelled nodes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fishergraph import as_graphs, load_graphs
    >>> from fishergraph.datasets import GraphSet, write_graph_npz
    >>> pair = as_graphs([[(0, 1)], [(0, 1), (1, 2)]], undirected=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph_npz(GraphSet("pair", pair, np.array([0, 1])), f"{folder}/pair.npz")
    ...     load_graphs(f"{folder}/pair.npz")
    GraphSet('pair': Graphs(2 graphs: 5 nodes, 6 directed edges), 2 classes, no folds)
    """
    path = Path(name).expanduser()
    prefix = None if path.exists() else str(name)  # of the files of a set in the format of the TU collection
    if prefix is not None and (local := find_graphs(prefix, data_home)) is not None:
        path = local
    elif prefix in TU_FILES:
        (path,) = fetch(prefix, data_home=data_home, verbose=verbose)
    elif prefix is not None:
        raise FileNotFoundError(
            f"there is no graph set at {path}, nor as {name}/{name}_A.txt, {name}.zip or {name}.npz in "
            f"{data_folders(data_home)[0]}; put it there, pass data_home, or choose one that can be downloaded: "
            f"{', '.join(TU_FILES)}."
        )
    return read_graph_npz(path) if path.suffix == ".npz" else read_tu(path, prefix)


def find_graphs(name: str, data_home: str | Path | None = None) -> Path | None:
    """The file or folder of a graph set, or None; a download that was changed is renamed."""
    for folder in (path for home in existing_folders(data_home) for path in (home, home / "tu")):
        if (path := find_tu(folder, name)) is not None:
            if path.is_file():
                check_file(path)
            return path
        if (folder / f"{name}.npz").is_file():
            return folder / f"{name}.npz"
    return None


def is_graph_set(name: Any, data_home: str | Path | None = None) -> bool:
    """Whether a name or path is that of a set of graphs, which `load_graphs` reads."""
    if published(name) is not None or name in npz_files(data_home):
        return False
    path = Path(name).expanduser()
    if not path.exists():
        return name in TU_FILES or find_graphs(name, data_home) is not None
    return "graph_ptr" in npz_keys(path) if path.suffix == ".npz" else holds_tu(path)


def find_graph(source: Source, data_home: str | Path | None = None) -> Path | None:
    """The file or folder of a published graph, or None; a download that was changed is renamed."""
    for path in source_paths(source, data_home):
        for file in source.files:
            target = path / Path(file.path).name if path.is_dir() else path
            if target.is_file():
                check_file(target)
        if FORMATS[source.reader].holds(path, source.name):
            return path
    return None


def fetch(name: str, *, data_home: str | Path | None = None, verbose: Any = False) -> list[Path]:
    """Download the files of a published graph or set of graphs.

    Files that exist are verified. The next call continues a broken download. A file with a wrong checksum is renamed
    to a name that ends in .old.

    Parameters
    ----------
    name : str
        The name of a graph or set of graphs.
    data_home : str or path, default=None
        The folder of downloads; by default the cache folder.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    list of paths
        The files.

    See Also
    --------
    load_graph : Download and read a graph.

    Examples
    --------
    >>> from fishergraph.datasets import fetch
    >>> fetch("ogbn-arxiv", data_home="data")  # doctest: +SKIP
    [PosixPath('data/ogbn-arxiv/arxiv.zip')]
    """
    (files,) = check_names([name])
    folder = data_folders(data_home)[-1]
    return [fetch_file(file, folder, verbose) for file in files]


def check_names(names: Iterable[Any]) -> list[tuple[File, ...]]:
    """The files of published datasets, by name."""
    table = {key: one.files for key, one in SOURCES.items()} | {key: (file,) for key, file in TU_FILES.items()}
    sources = [(name, published(name)) for name in names]
    return [look_up(table, name, "name") if source is None else source.files for name, source in sources]
