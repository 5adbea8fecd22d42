"""A graph as PyTorch Geometric's `Data`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from fishergraph.graph import Graph


def make_data(graph: Graph, X: Any, y: np.ndarray | None, Z: Any, ids: list[Any] | None) -> Data:
    """The `Data` of a graph with features, labels and an embedding; what is None is left out."""
    target = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    edge_index = torch.from_numpy(np.stack([graph.indices.astype(np.int64), target]))
    data = Data(edge_index=edge_index, num_nodes=graph.n_nodes)
    if graph.weights is not None:
        data.edge_weight = torch.from_numpy(graph.weights.astype(np.float32))
    for name, matrix in (("x", X), ("z", Z)):
        if matrix is not None:
            data[name] = torch.from_numpy(np.ascontiguousarray(matrix, dtype=np.float32))
    if y is not None and y.dtype.kind in "OUS":
        names, y = np.unique([str(label) for label in y], return_inverse=True)
        data.class_names = names.tolist()
    if y is not None:
        data.y = torch.from_numpy(np.ascontiguousarray(y))
    if ids is not None:
        data.node_ids = ids
    return data
