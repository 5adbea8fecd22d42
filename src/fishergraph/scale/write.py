"""A store from a graph and features in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import as_floats, check_finite_rows
from fishergraph._records import check_same_rows
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph.graph import as_graph
from fishergraph.scale.store import Store
from fishergraph.scale.writer import StoreWriter


def write_store(
    path: str | Path,
    graph: GraphLike,
    X: MatrixLike = None,
    *,
    ids: Any = None,
    feature_names: list[str] | None = None,
    undirected: bool = False,
    overwrite: bool = False,
) -> Store:
    """Write a graph and its features in memory to a store.

    Parameters
    ----------
    path : path
        The folder of the store.
    graph : graph
        Anything that `as_graph` takes.
    X : matrix of shape (n_nodes, n_features), optional
        Features, dense or sparse.
    ids : array of shape (n_nodes,), optional
        Ids of the nodes; by default those of the graph.
    feature_names : list of str, optional
        Names of the columns of X.
    undirected : bool, default=False
        Add the reverse of every edge.
    overwrite : bool, default=False
        Replace a store at `path`.

    Returns
    -------
    Store
        The store.

    See Also
    --------
    Store : A graph on disk.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fishergraph.scale import write_store
    >>> write_store(pathlib.Path(tempfile.mkdtemp()) / "path", [(0, 1), (1, 2)], undirected=True)
    Store(3 nodes, 4 edges)
    """
    graph = as_graph(graph, undirected=undirected)
    ids = graph.ids if ids is None else ids
    with StoreWriter(path, overwrite=overwrite) as writer:
        for name in ("indptr", "indices", "weights"):
            if (values := getattr(graph, name)) is not None:
                writer.array(name, values.shape, values.dtype)[:] = values
        if X is not None:
            _write_features(writer, X, graph.n_nodes)
            writer.feature_names = feature_names
        if ids is not None:
            write_ids(writer, np.asarray(ids))
        writer.facts = {"source": "memory", "undirected": undirected}
    return Store(path)


def _write_features(writer: StoreWriter, X: Any, n_nodes: int) -> None:
    rows: Any = as_floats(X, "X")
    check_finite_rows(rows, "X")
    check_same_rows(rows.shape[0], n_nodes)
    writer.n_features = int(rows.shape[1])
    if not sp.issparse(rows):
        writer.array("features", rows.shape, rows.dtype)[:] = rows
        return
    rows = sp.csr_array(rows)
    rows.sum_duplicates()
    for name in ("data", "indices", "indptr"):
        values = getattr(rows, name)
        values = values.astype(np.int64) if name == "indptr" else values
        writer.array(f"features_{name}", values.shape, values.dtype)[:] = values


def write_ids(writer: StoreWriter, ids: np.ndarray) -> None:
    """Write the ids of the nodes: integers as they are, everything else as text."""
    if ids.dtype.kind in "iu":
        writer.array("ids", ids.shape, np.int64)[:] = ids
        return
    texts = [str(name).encode() for name in ids]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    writer.array("ids_text", (int(offsets[-1]),), np.uint8)[:] = np.frombuffer(b"".join(texts), np.uint8)
    writer.array("ids_offsets", offsets.shape, np.int64)[:] = offsets
