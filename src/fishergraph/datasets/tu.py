"""Graph sets in the text format of the TU collection.

A set NAME is a folder (or a zip file) of text files with one line per edge, node or graph; nodes and graphs are counted
from 1:

    NAME_A.txt                "row, column" of every edge
    NAME_graph_indicator.txt  the graph of every node
    NAME_graph_labels.txt     the class of every graph
    NAME_node_labels.txt      optional: the tag of every node (several columns make one tag)
    NAME_node_attributes.txt  optional: the features of every node, separated by commas
    NAME_edge_labels.txt      optional: the tag of every edge, in the order of NAME_A.txt
    NAME_edge_attributes.txt  optional: numbers of every edge, in that order; a single column is the weight
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import FileFormatError
from fishergraph.datasets.records import GraphSet
from fishergraph.graph import as_graph
from fishergraph.graphs import EdgeTags, Graphs
from fishergraph.io.archives import Members
from fishergraph.io.npz import single

Texts = dict[str, tuple[str, bytes]]  # by the part of a file's name after NAME_: the name and the content
_NEEDED = ("A", "graph_indicator", "graph_labels")
_OPTIONAL = ("node_labels", "node_attributes", "edge_labels", "edge_attributes")


def read_tu(path: str | Path, name: str | None = None) -> GraphSet:
    """Read a set of graphs in the text format of the TU collection.

    Edges are made undirected; repeated lines are one edge. Features are float32.

    Parameters
    ----------
    path : str or path
        A folder or a zip file.
    name : str, default=None
        The prefix of the files; by default the name of the folder.

    Returns
    -------
    GraphSet
        Graphs, labels and folds.

    See Also
    --------
    fishergraph.load_graphs : Load a set by name or path.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fishergraph.datasets import read_tu
    >>> lines = {"A": "1, 2\\n3, 4", "graph_indicator": "1\\n1\\n2\\n2", "graph_labels": "0\\n1"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part, text in lines.items():
    ...         _ = Path(folder, f"TWO_{part}.txt").write_text(text)
    ...     read_tu(folder, "TWO")
    GraphSet('TWO': Graphs(2 graphs: 4 nodes, 4 directed edges), 2 classes, no folds)
    """
    path = Path(path)
    name = name or path.name.removesuffix(".zip")
    texts = _texts(path, name)
    graph_of, graph_ptr, order = _nodes(texts)
    row = np.empty_like(order)
    row[order] = np.arange(len(order))  # the rows of a graph are consecutive, in any order of the file
    edges = row[_edges(texts, graph_of)]
    classes, y = np.unique(_numbers(texts, "graph_labels", int, len(graph_ptr) - 1, "graph")[:, 0], return_inverse=True)
    _, first = np.unique(edges @ [len(order), 1], return_index=True)  # repeated lines are one edge
    X = tags = edge_tags = None
    if "node_attributes" in texts:
        X = _numbers(texts, "node_attributes", float, len(order), "node")[order]
    if "node_labels" in texts:
        tags = _tags(_numbers(texts, "node_labels", int, len(order), "node")[order])
    if "edge_labels" in texts:
        edge_tags = _tags_at_ends(edges, _tags(_numbers(texts, "edge_labels", int, len(edges), "edge")))
    weights = np.ones(len(edges), dtype=np.float32)
    if "edge_attributes" in texts:
        attributes = _numbers(texts, "edge_attributes", float, len(edges), "edge")
        weights = attributes[:, 0] if attributes.shape[1] == 1 and (attributes >= 0).all() else weights
    graph = as_graph((edges[first].T, weights[first]), undirected=True, n_nodes=len(order))
    graphs = Graphs(graph, graph_ptr, X, tags, edge_tags)
    return GraphSet(name, graphs, y.astype(np.int64), (), tuple(map(str, classes)), str(path))


def find_tu(folder: Path, name: str) -> Path | None:
    """The folder or zip file of a set in a data folder, or None."""
    for path in (folder / name, folder / f"{name}.zip"):
        if path.is_file() or (path / f"{name}_A.txt").is_file():
            return path
    return None


def holds_tu(path: Path) -> bool:
    """Whether a folder or zip file has the files of a set."""
    if path.is_dir():
        return any(path.glob("*_graph_indicator.txt"))
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(member.endswith("_graph_indicator.txt") for member in archive.namelist())
    except Exception:  # a damaged list of members can fail in any way; reading the file then explains it
        return False


def _texts(path: Path, name: str) -> Texts:
    """The names and contents of a set's files."""
    texts: Texts = {}
    with Members(path) as members:
        for part in (*_NEEDED, *_OPTIONAL):
            if (member := members.find(f"{name}_{part}.txt")) is not None:
                with members.open(member, seekable=True) as stream:
                    texts[part] = (f"{name}_{part}.txt", stream.read())
    missing = [f"{name}_{part}.txt" for part in _NEEDED if part not in texts]
    if missing:
        raise FileNotFoundError(
            f"'{path}' must hold {', '.join(f'{name}_{part}.txt' for part in _NEEDED)}, but has no {missing[0]}; check "
            "the path, or pass the prefix of its files as name."
        )
    return texts


def _numbers(
    texts: Texts, part: str, kind: type, n_lines: int | None, what: str, width: int | None = None
) -> np.ndarray:
    """The numbers of a file, (line, column), integers or finite float32; lines have `width` numbers, or all as many."""
    file, text = texts[part][0], texts[part][1].rstrip()
    table = _parsed(text, kind, width)
    table = _parsed_by_line(text, file, kind, width) if table is None else table
    if n_lines is not None and len(table) != n_lines:
        raise FileFormatError(path=file, reason=f"it must have {n_lines} lines, one per {what}, got {len(table)}")
    if kind is int:
        return table
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise _bad_line(file, bad[0] + 1, "finite numbers", table[bad[0]].tolist())
    return single(table, file)


def _parsed(text: bytes, kind: type, width: int | None) -> np.ndarray | None:
    """The numbers of a file, (line, column), by Arrow; None if it cannot read them."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    dtype = np.dtype(np.int64 if kind is int else np.float64)
    width = width or text.count(b",", 0, text.find(b"\n") if b"\n" in text else None) + 1
    if not text:
        return np.empty((0, width), dtype)
    if b"x" in text or b"X" in text:  # 0x1F is a number to Arrow only
        return None
    names = [str(j) for j in range(width)]
    types = dict.fromkeys(names, pa.from_numpy_dtype(dtype))
    try:
        columns = pacsv.read_csv(
            pa.BufferReader(text),
            pacsv.ReadOptions(column_names=names),
            pacsv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            pacsv.ConvertOptions(column_types=types, null_values=[]),
        ).columns
    except pa.ArrowInvalid:
        return None
    table = np.empty((len(columns[0]), width), dtype)
    for j, column in enumerate(columns):
        np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks], out=table[:, j])  # to_numpy loads pandas
    return table


def _parsed_by_line(text: bytes, file: str, kind: type, width: int | None) -> np.ndarray:
    """The numbers of a file, (line, column), by Python; the error names the first bad line."""
    rows: list[list[np.number]] = []
    number = np.int64 if kind is int else np.float64
    for k, line in enumerate(text.decode(errors="replace").split("\n"), 1):
        try:
            rows.append([number(cell) for cell in line.split(",")])
        except (ValueError, OverflowError):
            noun = "integers" if kind is int else "numbers"
            raise _bad_line(file, k, f"{noun} separated by commas", repr(line[:60])) from None
        if len(rows[-1]) != (width or len(rows[0])):
            expected = f"{width} numbers" if width else f"{len(rows[0])} numbers, as line 1 does"
            raise _bad_line(file, k, expected, len(rows[-1]))
    return np.array(rows)


def _bad_line(file: str, line: int, expected: str, got: Any) -> FileFormatError:
    return FileFormatError(path=file, line=int(line), reason=f"it must hold {expected}, got {got}", advice="repair it")


def _nodes(texts: Texts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The graph of every line's node, graph_ptr, and the lines in the order of their graphs."""
    file, graph_of = texts["graph_indicator"][0], _numbers(texts, "graph_indicator", int, None, "node")
    if graph_of.size == 0:
        raise FileFormatError(path=file, reason="it must hold the graph of every node, but is empty")
    numbers = graph_of[:, 0] - 1
    wrong = numbers[(numbers < 0) | (numbers >= len(numbers))]  # with more graphs than nodes, some are empty
    sizes = np.bincount(np.clip(numbers, 0, len(numbers)))
    if len(wrong) or (sizes == 0).any():
        got = f"number {wrong[0] + 1}" if len(wrong) else f"no node of graph {np.flatnonzero(sizes == 0)[0] + 1}"
        raise FileFormatError(path=file, reason=f"it must number the graphs from 1, each with a node, got {got}")
    return numbers, np.concatenate([[0], np.cumsum(sizes)]), np.argsort(numbers, kind="stable")


def _edges(texts: Texts, graph_of: np.ndarray) -> np.ndarray:
    """The ends (edge, 2) of every line as node numbers from 0; an edge stays inside its graph."""
    file, edges = texts["A"][0], _numbers(texts, "A", int, None, "edge", width=2)
    wrong = np.flatnonzero(((edges < 1) | (edges > len(graph_of))).any(axis=1))
    if len(wrong):
        raise _bad_line(file, wrong[0] + 1, f"nodes 1 to {len(graph_of)}", edges[wrong[0]].tolist())
    edges = edges - 1
    across = np.flatnonzero(graph_of[edges[:, 0]] != graph_of[edges[:, 1]])
    if len(across):
        one, two = graph_of[edges[across[0]]] + 1
        raise _bad_line(file, across[0] + 1, "an edge inside one graph", f"one from graph {one} to {two}")
    return edges


def _tags(columns: np.ndarray) -> np.ndarray:
    """One tag per row; several columns make one tag, the index of their combination."""
    if columns.shape[1] == 1:
        return columns[:, 0]
    return np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)


def _tags_at_ends(edges: np.ndarray, tags: np.ndarray) -> EdgeTags:
    """The tags of edges at the ends they point to; at both ends if the file lists one direction."""
    ends, tags = np.concatenate([edges, edges[:, ::-1]]), np.concatenate([tags, tags])
    n = int(edges.max()) + 1 if len(edges) else 1
    _, first = np.unique(ends[:, 0] * n + ends[:, 1], return_index=True)
    return EdgeTags(ends[first, 1], tags[first])
