"""What the batches of a loader are cut from: rows to sample from and tensors to slice, validated once."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from fishergraph._errors import InputError, InputTypeError
from fishergraph._validation import MOST_COLUMNS, check_integer
from fishergraph.multiset import Multisets
from fishergraph.nn.edges import checked_edges
from fishergraph.nn.rows import described, is_sparse, node_numbers, take_rows
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
    """What batches are cut from; `template` holds what all of them have in common."""

    rows: MemberRows
    template: Data
    columns: list[Column]


def read_source(data: Any, x: Tensor | None, y: Tensor | None, keep_loops: bool) -> Source:
    """The source of a PyG `Data`, or of multisets with features (and labels) beside them."""
    if isinstance(data, (TensorSets, Multisets)):
        return _source_of_sets(check_sets(tensor_sets(data)), x, y, keep_loops)
    if not isinstance(data, Data):
        expected, advice = "be a Data of PyG, TensorSets or Multisets", "convert it, as with to_homogeneous()"
        got = type(data).__name__
        raise InputTypeError(parameter="data", value=data, expected=expected, got=got, advice=advice)
    if x is not None or y is not None:
        raise InputError("x and y must be attributes of data if it is a Data; set data.x and data.y.", parameter="x")
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
        expected = f"hold one multiset for each of the {n_nodes} points"
        raise InputError(parameter="data", expected=expected, got=str(sets.n_sets))
    if y is not None and (not isinstance(y, Tensor) or y.ndim == 0 or len(y) != n_nodes):
        expected = f"be a tensor with one row for each of the {n_nodes} nodes"
        raise InputError(parameter="y", expected=expected, got=described(y))
    columns = [Column(name, values, 0, False) for name, values in (("x", x), ("y", y)) if values is not None]
    if sets.weights is not None:
        columns.append(Column("edge_weight", sets.weights, 0, True))
    rows = rows_of_sets(_numpy(sets.indptr), _numpy(sets.indices), keep_loops=keep_loops)
    return Source(rows, Data(), columns)


def _check_features(x: Any, n_nodes: int | None, name: str) -> int:
    """The number of nodes, each of which must have a row of features."""
    if x is None:
        raise InputError(parameter=name, expected="hold features, one row for each node")
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr) or x.ndim == 0:
        expected = "be a tensor, dense or sparse CSR, with a row for each node"
        raise InputTypeError(parameter=name, expected=expected, got=described(x))
    if len(x) != n_nodes:
        raise InputError(parameter=name, expected=f"have one row for each of the {n_nodes} nodes", got=str(len(x)))
    return len(x)


def _rows_of_data(data: Data, n_nodes: int, keep_loops: bool) -> tuple[MemberRows, list[Column]]:
    """The rows of `edge_index`, or of `adj_t` and its values as weights."""
    if "edge_index" in data:
        sources, targets = checked_edges(data["edge_index"])
        for name, ends in (("sources", sources), ("targets", targets)):
            check_range(ends, n_nodes, name)
        return rows_of_edges(_numpy(sources), _numpy(targets), n_nodes, keep_loops=keep_loops), []
    if "adj_t" not in data:
        raise InputError(parameter="data", expected="have an edge_index (or adj_t)", got=str(sorted(data.keys())))
    indptr, indices, values = _compressed(data["adj_t"])
    _ = TensorSets(indptr, indices, None, n_nodes).sound
    if len(indptr) - 1 != n_nodes:
        expected = f"be a square matrix with a row for each of the {n_nodes} nodes"
        raise InputError(parameter="adj_t", expected=expected, got=str(len(indptr) - 1))
    columns = [] if values is None else [Column("edge_weight", values, 0, True)]
    return rows_of_sets(_numpy(indptr), _numpy(indices), keep_loops=keep_loops), columns


def _compressed(adj_t: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """(indptr, indices, values) of a sparse matrix whose rows are the targets."""
    if hasattr(adj_t, "csr"):  # torch_sparse's SparseTensor
        return adj_t.csr()
    if not isinstance(adj_t, Tensor) or adj_t.layout == torch.strided or adj_t.ndim != 2:
        got, advice = type(adj_t).__name__, "use edge_index for pairs of nodes"
        raise InputTypeError(parameter="adj_t", expected="be a sparse matrix", got=got, advice=advice)
    matrix = adj_t if adj_t.layout == torch.sparse_csr else adj_t.to_sparse_csr()
    return matrix.crow_indices().long(), matrix.col_indices(), matrix.values()


def _columns_of_data(data: Data) -> list[Column]:
    """The attributes that PyG counts as those of nodes or of edges."""
    columns = []
    for name, values in data.to_dict().items():
        if name in _STRUCTURE or not (data.is_edge_attr(name) or data.is_node_attr(name)):
            continue
        of_edges = data.is_edge_attr(name)
        values = torch.from_numpy(values) if isinstance(values, np.ndarray) else values
        if not isinstance(values, Tensor):
            expected = f"be a tensor, because it has one entry for each {'edge' if of_edges else 'node'}"
            raise InputTypeError(parameter=f"data.{name}", expected=expected, got=type(values).__name__)
        columns.append(Column(name, values, data.__cat_dim__(name, values), of_edges))
    return columns


def check_fan_outs(num_neighbors: Any, name: str = "num_neighbors") -> list[int]:
    """The fan-outs of the hops as a list of ints: −1 for all, or at least one."""
    fan_outs = num_neighbors if isinstance(num_neighbors, (list, tuple)) else []
    integers = all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in fan_outs)
    if not fan_outs or not integers or any(k == 0 or k < -1 for k in fan_outs):
        expected = "be a list with an integer of at least 1 (or -1 for all) for each hop, such as [10, 10]"
        raise InputError(parameter=name, value=num_neighbors, expected=expected)
    return [check_integer(k, name, least=-1, most=MOST_COLUMNS) for k in fan_outs]


def check_input_nodes(input_nodes: Any, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """The seeds, and the `input_id` of a batch for each of them.

    As in PyG's loader, `input_id` counts the seeds, and is the node itself for a mask.
    """
    if input_nodes is None:
        return np.arange(n_nodes), np.arange(n_nodes)
    seeds = node_numbers(input_nodes, n_nodes, "input_nodes").numpy()
    if not len(seeds):
        raise InputError(parameter="input_nodes", expected="hold at least one node", got="none")
    masked = (input_nodes if isinstance(input_nodes, Tensor) else np.asarray(input_nodes)).dtype in (torch.bool, bool)
    return seeds, seeds if masked else np.arange(len(seeds))


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()
