"""Graphs whose rows are read as they are needed, such as a store on disk: what networks ask of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from fishergraph._compile import readonly
from fishergraph._errors import InputError
from fishergraph.multiset import Rule
from fishergraph.nn.rows import as_tensor
from fishergraph.nn.sampling import Hop, loops_first

# Members that are read at once for a hop of a sample; a single row may have more.
HOP_ENTRIES = 2**22
_TYPES = {torch.float32: np.float32, torch.float64: np.float64}


class GraphRows(Protocol):
    """The features and the multisets of a graph, and arrays beside them.

    features : rows by a slice or by numbers, NumPy or CSR.
    sets : `Multisets`, or the same in files: `take` and `block` return `Multisets`, and `indptr` is in memory.
    block_bytes : what the arrays of a block of rows may take.
    """

    @property
    def features(self) -> Any: ...

    @property
    def sets(self) -> Any: ...

    @property
    def block_bytes(self) -> int: ...

    def array(self, shape: tuple[int, int], dtype: Any, /) -> Any:
        """A new array, in memory or in a file, that is read and written by rows."""
        ...

    def drop(self, array: Any, /) -> None:
        """Remove an array."""
        ...

    def kept(self, identity: Mapping[str, Any], /) -> Any:
        """The output that was kept for this identity; None if it is not there yet."""
        ...

    def keep(self, outputs: Mapping[str, Any], /) -> Any:
        """Keep these arrays, by their names, as the output of the graph."""
        ...


class RowSource(Protocol):
    """Opens the rows of a graph."""

    def open(self, rule: Rule, dtype: Any, /) -> AbstractContextManager[GraphRows]: ...


@runtime_checkable
class StoredGraph(Protocol):
    """A graph with features that is read by rows."""

    @property
    def n_nodes(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def digest(self) -> str: ...

    @property
    def rows(self) -> RowSource: ...


@dataclass(frozen=True)
class OpenGraph:
    """A stored graph that a network reads, with features in the dtype of its parameters.

    digest : a text that another graph, or other features, would change.
    """

    data: GraphRows
    n_nodes: int
    n_features: int
    digest: str
    dtype: torch.dtype

    def __len__(self) -> int:
        return self.n_nodes

    def read(self, key: Any) -> Tensor:
        """The features of a slice of nodes, or of nodes by their numbers; sparse ones are CSR."""
        return as_tensor(self.data.features[key]).to(self.dtype)

    def array(self, n_columns: int) -> Any:
        """A new array with a row for each node."""
        return self.data.array((self.n_nodes, n_columns), _TYPES[self.dtype])

    def members(self, *, keep_loops: bool = True) -> StoredMembers:
        """What is sampled from."""
        return StoredMembers(self.data.sets, keep_loops)


@dataclass(frozen=True)
class DenseRows:
    """The features of an open graph as dense rows."""

    graph: OpenGraph

    def __getitem__(self, key: Any) -> np.ndarray:
        rows = self.graph.data.features[key]
        return rows.toarray() if sp.issparse(rows) else rows


@dataclass(frozen=True)
class FeatureColumn:
    """The features of an open graph as a column of batches."""

    graph: OpenGraph
    name = "x"
    device = torch.device("cpu")

    def take(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """The rows of a batch."""
        return self.graph.read(nodes.numpy())


@dataclass(frozen=True)
class StoredMembers:
    """Members in files: the rows of the nodes that are expanded are read, `HOP_ENTRIES` members at a time."""

    sets: Any
    keep_loops: bool

    @property
    def n_nodes(self) -> int:
        return self.sets.n_sets

    def hops(self, nodes: np.ndarray) -> Iterator[Hop]:
        """The members of these nodes, of one part of them after the other."""
        ends = np.cumsum(self.sets.indptr[nodes + 1] - self.sets.indptr[nodes])
        start = 0
        while start < len(nodes):
            before = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, before + HOP_ENTRIES, side="right")), start + 1)
            yield self._read(nodes[start:stop])
            start = stop

    def _read(self, nodes: np.ndarray) -> Hop:
        """The members of some nodes, read in the order of the file."""
        order = np.argsort(nodes, kind="stable")
        rows = np.empty_like(order)
        rows[order] = np.arange(len(order))
        nodes = nodes[order]
        taken = self.sets.take(nodes)
        indptr, indices, weights = taken.indptr, taken.indices, taken.weights
        entries = np.repeat(self.sets.indptr[nodes] - indptr[:-1], np.diff(indptr)) + np.arange(len(indices))
        loops = np.zeros(len(nodes), dtype=np.int32)
        if self.keep_loops:
            loops, first = loops_first(nodes, readonly(indptr), readonly(indices))
            if first is not None:
                indices, entries = indices[first], entries[first]
                weights = None if weights is None else weights[first]
        return Hop(rows, readonly(indptr), readonly(indices), loops, entries, weights)


@contextmanager
def opened(net: Any, x: Any, edge_index: Any, edge_weight: Any) -> Iterator[Any]:
    """The rows of a stored graph inside, for this network; anything else as it is."""
    if not isinstance(x, StoredGraph):
        yield x
        return
    for name, value in (("edge_index", edge_index), ("edge_weight", edge_weight)):
        if value is not None:
            expected = "be left out beside a store, which has its own graph"
            raise InputError(parameter=name, value=value, expected=expected, got=type(value).__name__)
    if not hasattr(net, "sets") or getattr(net, "pooling", None) is not None or not len(net.convs):
        expected = "be a FisherNet with layers and without a readout for a graph in a store"
        raise InputError(parameter="model", expected=expected, got=type(net).__name__)
    dtype = next(net.parameters()).dtype
    if dtype not in _TYPES:
        raise InputError(parameter="model", expected="have float32 or float64 parameters", got=str(dtype))
    if x.n_features == 0 or x.n_nodes == 0:
        advice = "ingest it with the columns of its nodes"
        raise InputError(parameter="the store", expected="have nodes with features", got=f"{x}", advice=advice)
    width = net.config()["in_channels"]
    if width not in (-1, x.n_features):
        expected = f"have {width} features, the in_channels of the model"
        raise InputError(parameter="the store", expected=expected, got=str(x.n_features))
    with x.rows.open(net.convs[0].multiset, _TYPES[dtype]) as rows:
        yield OpenGraph(rows, x.n_nodes, x.n_features, x.digest, dtype)
