"""The Reddit graph of GraphSAGE as two files, in a folder, in its `raw` folder or in the zip file that is downloaded.

reddit_data.npz    feature (node, feature), label (node,), node_types (node,): 1 train, 2 validation, 3 test
reddit_graph.npz   the adjacency matrix as SciPy saves it
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fishergraph._archive_checks import check_npz
from fishergraph._checks import check_compressed
from fishergraph._npz_files import plain_reason
from fishergraph.datasets.archive import Members
from fishergraph.datasets.npz import UNREADABLE, misfit, read_arrays, read_features, read_integers
from fishergraph.datasets.prepare import check_nodes, undirected_graph
from fishergraph.datasets.record import GraphData

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
        y, kinds = (read_integers(arrays, key, where) for key in ("label", "node_types"))
        if y.ndim != 1 or y.shape != kinds.shape or y.size == 0:
            raise misfit(where, "'label' and 'node_types' of shape (node,)", f"shapes {y.shape} and {kinds.shape}")
        X = read_features(arrays, len(y), where, "feature", "feature")
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
    except (*UNREADABLE, AttributeError) as error:
        raise ValueError(
            f"{where} must be a sparse matrix as SciPy saves it, but it cannot be read ({plain_reason(error)}); "
            "replace it."
        ) from error
    if matrix.shape != (n_nodes, n_nodes):
        raise misfit(where, f"a matrix of shape ({n_nodes}, {n_nodes})", f"shape {matrix.shape}")
    matrix = check_compressed(matrix, f"the matrix in '{where}'").tocoo()
    rows, columns = matrix.row, matrix.col
    del matrix  # a gigabyte of ones
    check_nodes(f"'{where}'", n_nodes, rows, columns)
    return undirected_graph(rows, columns, n_nodes)
