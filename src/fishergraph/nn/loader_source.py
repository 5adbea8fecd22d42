"""What the batches of a loader are cut from: members that are sampled, and columns of nodes and edges."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from fishergraph._errors import InputError, InputTypeError
from fishergraph.multiset import Multisets
from fishergraph.nn.edges import checked_edges
from fishergraph.nn.rows import described, is_sparse, take_rows
from fishergraph.nn.sampling import MemberRows, Members, rows_of_edges, rows_of_sets
from fishergraph.nn.stored import FeatureColumn, OpenGraph
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

    @property
    def device(self) -> torch.device:
        """The device of the tensor."""
        return self.values.device


class Source(NamedTuple):
    """What batches are cut from; `template` holds what all of them have in common."""

    rows: Members
    template: Data
    columns: Sequence[Column | FeatureColumn]


def read_source(data: Any, x: Tensor | None, y: Tensor | None, keep_loops: bool) -> Source:
    """The source of a PyG `Data`, or of multisets with features (and labels) beside them."""
    if isinstance(data, OpenGraph):
        return _source_of_rows(data, y, keep_loops)
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
    assert x is not None
    columns = [Column("x", x, 0, False), *_label_column(y, n_nodes)]
    if sets.weights is not None:
        columns.append(Column("edge_weight", sets.weights, 0, True))
    rows = rows_of_sets(_numpy(sets.indptr), _numpy(sets.indices), keep_loops=keep_loops)
    return Source(rows, Data(), columns)


def _source_of_rows(graph: OpenGraph, y: Tensor | None, keep_loops: bool) -> Source:
    """The source of a graph whose rows are read as they are needed; its multisets may be in memory."""
    columns = [FeatureColumn(graph), *_label_column(y, graph.n_nodes)]
    sets = graph.data.sets
    if not isinstance(sets, Multisets):
        return Source(graph.members(keep_loops=keep_loops), Data(), columns)
    if sets.weights is not None:
        columns.append(Column("edge_weight", torch.from_numpy(sets.weights), 0, True))
    return Source(rows_of_sets(sets.indptr, sets.indices, keep_loops=keep_loops), Data(), columns)


def _label_column(y: Tensor | None, n_nodes: int) -> list[Column]:
    """The labels, if there are any."""
    if y is None:
        return []
    if not isinstance(y, Tensor) or y.ndim == 0 or len(y) != n_nodes:
        expected = f"be a tensor with one row for each of the {n_nodes} nodes"
        raise InputError(parameter="y", expected=expected, got=described(y))
    return [Column("y", y, 0, False)]


def _check_features(x: Any, n_nodes: int | None, name: str) -> int:
    """The number of nodes, each of which must have a row of features."""
    if x is None:
        raise InputError(parameter=name, expected="hold features, one row for each node")
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr) or x.ndim == 0:
        raise InputTypeError(parameter=name, expected="be a tensor, dense or sparse CSR", got=described(x))
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


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().contiguous().numpy()
