"""The Reddit graph of GraphSAGE: two files in a folder, in its `raw` folder or in the downloaded zip file.

reddit_data.npz    feature (node, feature), label (node,), node_types (node,): 1 train, 2 validation, 3 test
reddit_graph.npz   the adjacency matrix, saved by SciPy
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed
from fishergraph.datasets.npz import node_labels
from fishergraph.datasets.records import GraphData, check_nodes, undirected_graph
from fishergraph.io.archives import Members, check_npz
from fishergraph.io.files import unreadable
from fishergraph.io.npz import integers, misfit, read_arrays, read_features

DATA, GRAPH = ((f"reddit_{what}.npz", f"raw/reddit_{what}.npz") for what in ("data", "graph"))


def holds_reddit(path: Path) -> bool:
    """Whether a folder or zip file has one of the two files."""
    if not path.is_dir() and path.suffix != ".zip":
        return False
    with Members(path) as members:
        return members.find(*DATA, *GRAPH) is not None


def read_reddit(path: str | Path, name: str | None = None) -> GraphData:
    """The graph of the two files, both directions of every edge, with its split."""
    path = Path(path)
    with Members(path) as members:
        data, graph = members.need(*DATA), members.need(*GRAPH)
        where = members.where(data)
        with members.open(data, seekable=True) as stream:
            arrays = read_arrays(stream, where, ("feature", "label", "node_types"))
        y = node_labels(where, arrays, "label")
        kinds = integers(where, arrays, "node_types", y.shape)
        X = read_features(where, arrays, "feature", "feature", n_rows=len(y))
        del arrays
        adjacency = _adjacency(members, graph, len(y))
    train, val, test = (np.flatnonzero(kinds == number).astype(np.int64) for number in (1, 2, 3))
    return GraphData(name or "reddit", X, adjacency, y, train, val, test, source=str(path))


def _adjacency(members: Members, member: str, n_nodes: int) -> sp.csr_array:
    where = members.where(member)
    try:
        with members.open(member, seekable=True) as stream:
            check_npz(stream)
            stream.seek(0)
            matrix = sp.load_npz(stream)
    except Exception as error:  # zipfile, zlib, NumPy and SciPy each have errors of their own
        raise unreadable(Path(where), b"", error) from error
    if matrix.shape != (n_nodes, n_nodes):
        raise misfit(where, f"a matrix of shape ({n_nodes}, {n_nodes})", f"shape {matrix.shape}")
    matrix = check_compressed(matrix, f"the matrix in '{where}'").tocoo()
    rows, columns = matrix.row, matrix.col
    del matrix  # a gigabyte of ones
    check_nodes(where, n_nodes, rows, columns)
    return undirected_graph(rows, columns, n_nodes)
