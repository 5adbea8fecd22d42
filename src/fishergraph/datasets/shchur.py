"""Amazon's and the co-authors' graphs by Shchur et al., and other files in their layout, one `.npz` per graph.

Arrays of a file: the adjacency `adj_data, adj_indices, adj_indptr, adj_shape` as CSR pieces; the features as CSR pieces
`attr_data, attr_indices, attr_indptr, attr_shape` or dense `attr_matrix`; `labels` (node,). Names of words and nodes
are not read: some files have them as pickled objects.
"""

from __future__ import annotations

from pathlib import Path

from fishergraph._file_checks import check_readable
from fishergraph._npz_files import read_csr
from fishergraph.datasets.npz import misfit, npz_keys, read_arrays, read_features, read_integers
from fishergraph.datasets.prepare import undirected_graph
from fishergraph.datasets.record import GraphData

_PIECES = ("data", "indices", "indptr", "shape")
_KEYS = (*(f"{what}_{piece}" for what in ("adj", "attr") for piece in _PIECES), "attr_matrix", "labels")


def holds_shchur(path: Path) -> bool:
    """Whether a file is an npz in this layout."""
    return path.is_file() and path.suffix == ".npz" and "adj_indptr" in npz_keys(path)


def read_shchur(path: str | Path, name: str | None = None) -> GraphData:
    """The graph of one file: both directions of every edge, no self-loops, features as they are (counts, in some)."""
    path = Path(path)
    where = str(path)
    check_readable(path)
    with path.open("rb") as stream:
        arrays = read_arrays(stream, where, _KEYS)
    y = read_integers(arrays, "labels", where)
    if y.ndim != 1 or y.size == 0:
        raise misfit(where, "'labels' of shape (node,)", f"shape {y.shape}")
    adjacency = read_csr(where, arrays, "adj").tocoo()
    if adjacency.shape != (len(y), len(y)):
        raise misfit(where, f"an adjacency of shape ({len(y)}, {len(y)})", f"shape {adjacency.shape}")
    proper = (adjacency.row != adjacency.col) & (adjacency.data != 0)
    graph = undirected_graph(adjacency.row[proper], adjacency.col[proper], len(y))
    X = read_features(arrays, len(y), where, "attr_matrix", "attr")
    return GraphData(name or path.stem, X, graph, y, None, None, None, source=where)
