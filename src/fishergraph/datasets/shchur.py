"""The Amazon and co-author graphs of Shchur et al., one `.npz` file per graph.

Arrays of a file: the CSR arrays `adj_data, adj_indices, adj_indptr, adj_shape` of the adjacency; features as the CSR
arrays `attr_data, attr_indices, attr_indptr, attr_shape` or dense `attr_matrix`; `labels` (node,). Names of words and
nodes are not read, because some files pickle them.
"""

from __future__ import annotations

from pathlib import Path

from fishergraph.datasets.npz import node_labels
from fishergraph.datasets.records import GraphData, undirected_graph
from fishergraph.io.npz import csr_names, misfit, read_csr, read_features, read_npz

_KEYS = (*csr_names("adj"), *csr_names("attr"), "attr_matrix", "labels")


def read_shchur(path: str | Path, name: str | None = None) -> GraphData:
    """The graph of one file: both directions of every edge, no self-loops, features as published (counts, in some)."""
    path = Path(path)
    arrays, where = read_npz(path, _KEYS), str(path)
    y = node_labels(where, arrays, "labels")
    adjacency = read_csr(where, arrays, "adj").tocoo()
    if adjacency.shape != (len(y), len(y)):
        raise misfit(where, f"an adjacency of shape ({len(y)}, {len(y)})", f"shape {adjacency.shape}")
    proper = (adjacency.row != adjacency.col) & (adjacency.data != 0)
    graph = undirected_graph(adjacency.row[proper], adjacency.col[proper], len(y))
    X = read_features(where, arrays, "attr_matrix", "attr", n_rows=len(y))
    return GraphData(name or path.stem, X, graph, y, None, None, None, source=where)
