"""The pages of `fishergraph data list` and `data info`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from fishergraph.cli.console import printer
from fishergraph.datasets import BUNDLED, find_graph, find_graphs, is_graph_set, load_graph, load_graphs
from fishergraph.datasets.download import data_folders, existing_folders, npz_files
from fishergraph.datasets.formats import FORMATS
from fishergraph.datasets.prepare import preparation_of
from fishergraph.datasets.records import GraphData
from fishergraph.datasets.sources import SOURCES, TU_FILES, TU_HOME, File, Source, published
from fishergraph.io.archives import npz_shapes
from fishergraph.io.npz import read_npz

_COLUMNS = ("name", "nodes", "edges", "features", "classes", "licence", "here?")
_ABSENT = "no, data fetch downloads it"


def show_list(home: Path | None) -> None:
    """Print the tables of graphs and of sets of graphs."""
    console = _console()
    graphs = _table("Graphs, for load_graph (edges counted once; lines of the file for your own)", *_COLUMNS)
    for source in SOURCES.values():
        counts = (f"{n:,}" for n in (source.n_nodes, source.n_edges, source.n_features, source.n_classes))
        graphs.add_row(source.name, *counts, source.licence, _here(source, home))
    for name, path in sorted(npz_files(home).items()):
        if name not in SOURCES and (counts := _counts(path)):
            graphs.add_row(name, *counts, "", f"yes, {path}")
    console.print(graphs)
    sets = _table("Sets of graphs, for load_graphs", "name", "graphs", "here?")
    for name in [*TU_FILES, *sorted(_local_sets(home) - set(TU_FILES))]:
        path = find_graphs(name, home)
        sets.add_row(name, _set_size(path), _ABSENT if path is None else f"yes, {path}")
    console.print(sets)
    looked = ", ".join(str(folder) for folder in data_folders(home))
    console.print(f"Looked in {looked}. Downloads go to the last.", soft_wrap=True)


def _console() -> Any:
    console = printer(markup=False)  # a path may have brackets
    return console if console.is_terminal else printer(markup=False, width=200)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        numeric = name in ("nodes", "edges", "features", "classes", "graphs")
        table.add_column(
            name, justify="right" if numeric else "left", no_wrap=numeric or name == "name", overflow="fold"
        )
    return table


def _here(source: Source, home: Path | None) -> str:
    if source.name in BUNDLED:
        return "yes, in the package"
    path = npz_files(home).get(source.name) or find_graph(source, home)
    if path is not None:
        return f"yes, {path}"
    return _ABSENT if source.size is None else f"{_ABSENT} ({_size(source.size)})"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"


def _counts(path: Path) -> tuple[str, str, str, str] | None:
    """The numbers of nodes, lines of edges, features and classes of an npz file; None if it is not a graph."""
    try:
        shapes = npz_shapes(path)
        (n_nodes,), n_lines = shapes["y"], shapes["edge_index"][1]
        arrays = read_npz(path, ("y", "x_shape"))
        n_classes = len(np.unique(arrays["y"]))
        n_features = shapes["x"][1] if "x" in shapes else int(arrays["x_shape"][1])
    except Exception:  # a damaged file can fail in any way, and is listed without numbers
        return None
    return f"{n_nodes:,}", f"{n_lines:,}", f"{n_features:,}", f"{n_classes:,}"


def _local_sets(home: Path | None) -> set[str]:
    """The names of sets of graphs in the `tu` folders."""
    folders = [folder / "tu" for folder in existing_folders(home)]
    names = {path.stem for folder in folders for kind in ("*.npz", "*.zip") for path in folder.glob(kind)}
    return names | {path.parent.name for folder in folders for path in folder.glob("*/*_A.txt")}


def _set_size(path: Path | None) -> str:
    if path is None or path.suffix != ".npz":
        return ""
    try:
        return f"{npz_shapes(path)['y'][0]:,}"
    except (OSError, KeyError, ValueError):
        return ""


# --- one dataset ----------------------------------------------------------------------------------------


def show_info(name: str, home: Path | None) -> None:
    """Print what is published about a dataset, or what reading a local one shows."""
    source = published(name)
    if source is not None and name not in npz_files(home):
        facts = _of_source(source, home)
    elif name in TU_FILES and find_graphs(name, home) is None:
        facts = {"name": name, "licence": "not stated", "source": TU_HOME, **_of_files((TU_FILES[name],)), "here": "no"}
    elif is_graph_set(name, home):
        data = load_graphs(name, data_home=home)
        sizes = np.diff(data.graphs.graph_ptr)
        classes = _sizes(data.y, data.classes)
        facts = {"name": data.name, "what": repr(data), "nodes of a graph": f"{sizes.min()} to {sizes.max()}"}
        facts |= {"classes": classes, "folds": str(len(data.folds) or "none"), "source": data.source}
    else:
        facts = _of_data(load_graph(name, data_home=home))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in facts.items():
        table.add_row(key, value)
    _console().print(table)


def _of_source(source: Source, home: Path | None) -> dict[str, str]:
    return {
        "name": source.name,
        "what": source.about,
        "nodes": f"{source.n_nodes:,}",
        "edges": f"{source.n_edges:,}, each counted once",
        "features": f"{source.n_features:,}",
        "classes": f"{source.n_classes:,}",
        "split": source.split,
        "licence": source.licence,
        "source": source.home,
        "layout": FORMATS[source.reader].words,
        "prepared": str(source.preparation),
        "here": _here(source, home),
        **({} if source.name in BUNDLED else _of_files(source.files)),
    }


def _of_files(files: Iterable[File]) -> dict[str, str]:
    """Where files come from, and how they are checked."""
    facts = {}
    for number, file in enumerate(files, 1):
        checksum = file.sha256 or "none known"
        size = "" if file.size is None else f" ({_size(file.size)})"
        facts[f"file {number}"] = f"{file.url}{size}\nSHA-256 {checksum}: {file.checksum_from}"
    return facts


def _of_data(data: GraphData) -> dict[str, str]:
    loops = int((data.graph.diagonal() != 0).sum())
    degrees = np.diff(data.graph.indptr)  # type: ignore[arg-type]
    X: Any = data.X
    filled = (X.nnz if hasattr(X, "nnz") else int(np.count_nonzero(X))) / max(X.shape[0] * X.shape[1], 1)
    return {
        "name": data.name,
        "nodes": f"{data.n_nodes:,}, {int((degrees == 0).sum()):,} of them without edges",
        "edges": f"{(data.graph.nnz + loops) // 2:,}, each counted once, {loops:,} of them self-loops",
        "degree": f"{degrees.mean():.1f} on average, {degrees.max():,} at most",
        "features": f"{data.n_features:,}, {filled:.1%} of them not zero",
        "classes": _sizes(data.y, data.class_names),
        "split": _split(data),
        "licence": data.licence or "not stated",
        "source": data.source,
        "prepared": str(preparation_of(data.name)),
    }


def _split(data: GraphData) -> str:
    if not data.n_splits:
        return "none"
    parts = zip(("train", "validation", "test"), data.split(), strict=True)
    sizes = ", ".join(f"{len(part):,} {word}" for word, part in parts if part is not None)
    return f"{sizes} (the first of {data.n_splits})" if data.n_splits > 1 else sizes


def _sizes(y: np.ndarray, names: tuple[str, ...] | None) -> str:
    """The classes and how often each occurs."""
    labels, counts = np.unique(y, return_counts=True)
    words = [names[k] if names and 0 <= k < len(names) else str(k) for k in labels]
    shown = [f"{word} ({count:,})" for word, count in zip(words[:12], counts, strict=False)]
    return f"{len(labels)}: {', '.join(shown)}{', …' if len(labels) > 12 else ''}"
