"""The door of the neighbour loader: what people have, checked once, as rows to sample from and tensors to slice."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from fishergraph._validation import MOST_COLUMNS, check_integer
from fishergraph.multiset import Multisets
from fishergraph.nn.rows import is_sparse, take_rows
from fishergraph.nn.sampling import MemberRows, rows_of_edges, rows_of_sets
from fishergraph.ops.tensor_edges import tensor_sets
from fishergraph.ops.tensor_sets import TensorSets, check_range, check_sets

# Attributes of a graph that a batch does not slice but replaces.
_STRUCTURE = ("edge_index", "adj_t", "num_nodes")


class Column(NamedTuple):
    """A tensor with one slice along `dim` for every node (or edge), under its name in a batch."""

    name: str
    values: Tensor
    dim: int
    of_edges: bool

    def take(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """The slices of a batch (copied)."""
        chosen = (edges if self.of_edges else nodes).to(self.values.device)
        return take_rows(self.values, chosen) if is_sparse(self.values) else self.values.index_select(self.dim, chosen)


class Source(NamedTuple):
    """What batches are cut from; `template` holds what all of them share."""

    rows: MemberRows
    template: Data
    columns: list[Column]


def open_source(data: Any, x: Tensor | None, y: Tensor | None, keep_loops: bool) -> Source:
    """The source of a PyG `Data`, or of multisets with features (and labels) beside them."""
    if isinstance(data, (TensorSets, Multisets)):
        return _source_of_sets(check_sets(tensor_sets(data)), x, y, keep_loops)
    if not isinstance(data, Data):
        raise TypeError(
            f"data must be a torch_geometric Data of one node type, TensorSets or Multisets, got "
            f"{type(data).__name__}; convert it, for instance with HeteroData.to_homogeneous()."
        )
    if x is not None or y is not None:
        raise ValueError(
            "x and y must be attributes of data where it is a Data, got them apart; set data.x and data.y."
        )
    features = data.x
    n_nodes = _check_features(features, None if features is None else data.num_nodes, "data.x")
    rows, weights = _rows_of_data(data, n_nodes, keep_loops)
    columns = [*_columns_of_data(data), *weights]
    template = copy.copy(data)
    for name in (*_STRUCTURE, *(column.name for column in columns)):
        if name in template:
            del template[name]
    return Source(rows, template, columns)


def _source_of_sets(sets: TensorSets, x: Tensor | None, y: Tensor | None, keep_loops: bool) -> Source:
    n_nodes = _check_features(x, sets.n_points, "x")
    if sets.n_sets != n_nodes:
        raise ValueError(
            f"the multisets must be one for each of the {n_nodes} points, got {sets.n_sets}; "
            "pass neighbourhoods of all nodes."
        )
    if y is not None and (not isinstance(y, Tensor) or y.ndim == 0 or len(y) != n_nodes):
        got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
        raise ValueError(
            f"y must be a tensor with one row for each of the {n_nodes} nodes, got {got}; pass such labels."
        )
    columns = [Column(name, values, 0, False) for name, values in (("x", x), ("y", y)) if values is not None]
    if sets.weights is not None:
        columns.append(Column("edge_weight", sets.weights, 0, True))
    rows = rows_of_sets(_numpy(sets.indptr), _numpy(sets.indices), keep_loops=keep_loops)
    return Source(rows, Data(), columns)


def _check_features(x: Any, n_nodes: int | None, name: str) -> int:
    """The number of nodes, of which every one must have its row of features."""
    if x is None:
        raise ValueError(f"a loader must have features, one row for each node, got none; set {name}.")
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr) or x.ndim == 0:
        got = f"a {x.layout} tensor of {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(
            f"{name} must be a tensor, dense or sparse CSR, with a row for each node, got {got}; convert it."
        )
    if len(x) != n_nodes:
        raise ValueError(
            f"{name} must have one row for each of the {n_nodes} nodes, got {len(x)}; pass the features of all nodes."
        )
    return len(x)


def _rows_of_data(data: Data, n_nodes: int, keep_loops: bool) -> tuple[MemberRows, list[Column]]:
    """The rows of `edge_index`, or of `adj_t` and its values as weights."""
    if "edge_index" in data:
        sources, targets = _ends(data["edge_index"])
        for name, ends in (("sources", sources), ("targets", targets)):
            check_range(ends, n_nodes, name)
        return rows_of_edges(_numpy(sources), _numpy(targets), n_nodes, keep_loops=keep_loops), []
    if "adj_t" not in data:
        raise ValueError(f"data must have an edge_index (or adj_t), got {sorted(data.keys())}; set data.edge_index.")
    indptr, indices, values = _compressed(data["adj_t"])
    _ = TensorSets(indptr, indices, None, n_nodes).sound
    if len(indptr) - 1 != n_nodes:
        raise ValueError(
            f"adj_t must have one row for each of the {n_nodes} nodes, got {len(indptr) - 1}; pass a square matrix."
        )
    columns = [] if values is None else [Column("edge_weight", values, 0, True)]
    return rows_of_sets(_numpy(indptr), _numpy(indices), keep_loops=keep_loops), columns


def _ends(edge_index: Any) -> tuple[Tensor, Tensor]:
    """(sources, targets) of a (2, edge) tensor or `EdgeIndex`."""
    if (
        not isinstance(edge_index, Tensor)
        or edge_index.ndim != 2
        or edge_index.shape[0] != 2
        or edge_index.dtype not in (torch.int32, torch.int64)
    ):
        got = (
            f"{edge_index.dtype} of {tuple(edge_index.shape)}"
            if isinstance(edge_index, Tensor)
            else type(edge_index).__name__
        )
        raise ValueError(
            f"edge_index must be int32 or int64 of shape (2, edge), got {got}; "
            "stack sources and targets and cast them with .long()."
        )
    sources, targets = getattr(edge_index, "as_tensor", lambda: edge_index)()
    return sources, targets


def _compressed(adj_t: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """(indptr, indices, values) of a sparse matrix whose rows are the targets."""
    if hasattr(adj_t, "csr"):  # torch_sparse's SparseTensor
        return adj_t.csr()
    if not isinstance(adj_t, Tensor) or adj_t.layout == torch.strided or adj_t.ndim != 2:
        raise TypeError(
            f"adj_t must be a sparse matrix, got {type(adj_t).__name__}; use edge_index for pairs of nodes."
        )
    matrix = adj_t if adj_t.layout == torch.sparse_csr else adj_t.to_sparse_csr()
    return matrix.crow_indices().long(), matrix.col_indices(), matrix.values()


def _columns_of_data(data: Data) -> list[Column]:
    """The attributes that belong to nodes or to edges, by PyG's own reckoning."""
    columns = []
    for name, values in data.to_dict().items():
        if name in _STRUCTURE or not (data.is_edge_attr(name) or data.is_node_attr(name)):
            continue
        of_edges = data.is_edge_attr(name)
        values = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
        if not isinstance(values, Tensor):
            raise TypeError(
                f"data.{name} must be a tensor, since it has one entry for each {'edge' if of_edges else 'node'}, got "
                f"{type(values).__name__}; convert it or take it out of data."
            )
        columns.append(Column(name, values, data.__cat_dim__(name, values), of_edges))
    return columns


def check_fan_outs(num_neighbors: Any) -> list[int]:
    """The fan-outs of the hops as a list of ints: −1 for all, or at least one."""
    fan_outs = num_neighbors if isinstance(num_neighbors, (list, tuple)) else []
    whole = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in fan_outs)
    if not fan_outs or not whole or any(k == 0 or k < -1 for k in fan_outs):
        raise ValueError(
            "num_neighbors must be a list with an integer of at least 1 (or -1 for all) for each hop, got "
            f"{num_neighbors!r}; pass for instance [10, 10]."
        )
    return [check_integer(k, "num_neighbors", least=-1, most=MOST_COLUMNS) for k in fan_outs]


def check_input_nodes(input_nodes: Any, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, input_id): the nodes whose batches are wanted, and what a batch calls them.

    As in PyG's loader, `input_id` counts the given nodes, and is the node itself for a mask.
    """
    if input_nodes is None:
        return np.arange(n_nodes), np.arange(n_nodes)
    try:
        nodes = torch.as_tensor(input_nodes).cpu()
    except (TypeError, ValueError, RuntimeError):
        nodes = None
    if nodes is None or nodes.ndim != 1 or nodes.is_floating_point() or nodes.is_complex():
        got = type(input_nodes).__name__ if nodes is None else f"{nodes.dtype} of {tuple(nodes.shape)}"
        raise ValueError(
            f"input_nodes must be None, a mask or a list of whole numbers, got {got}; "
            "pass for instance data.train_mask."
        )
    masked = nodes.dtype == torch.bool
    if masked and len(nodes) != n_nodes:
        raise ValueError(
            f"a mask of input_nodes must have one entry for each of the {n_nodes} nodes, got {len(nodes)}; "
            "pass a mask of all nodes, or the numbers of the nodes."
        )
    seeds = (torch.nonzero(nodes).ravel() if masked else nodes.long()).numpy()
    if len(seeds) == 0 or seeds.min() < 0 or seeds.max() >= n_nodes:
        got = f"{seeds.min()} … {seeds.max()}" if len(seeds) else "none"
        raise ValueError(f"input_nodes must be nodes 0 … {n_nodes - 1}, at least one, got {got}; number nodes by rows.")
    return seeds, seeds if masked else np.arange(len(seeds))


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()
