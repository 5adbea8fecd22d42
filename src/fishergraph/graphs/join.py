"""The door for several graphs: `as_graphs` turns a list of what people have into one disjoint union."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._edge_lists import reads_as_edges
from fishergraph._graph_checks import type_name
from fishergraph._record_checks import unchecked
from fishergraph._warn import each_warning_once
from fishergraph.graph import Graph
from fishergraph.graphs.entries import Entry, read_entry, undirected_graphs
from fishergraph.graphs.record import NO_EDGE_TAGS, EdgeTags, Graphs, offsets

_DATASET = "torch_geometric.data.dataset"


@each_warning_once()
def as_graphs(
    graphs: Any, *, features: str = "x", tags: str = "label", edge_tags: str = "label", undirected: bool = False
) -> Graphs:
    """The `Graphs` of a list of graphs.

    Parameters
    ----------
    graphs : a list of graphs, a PyTorch Geometric dataset or `Batch`, or `Graphs`, which pass through. A graph is
        anything that `as_graph` takes, without node data; a pair (X, graph), X a matrix of features or a list of tags;
        a dictionary with "graph" and any of "X", "tags", "edge_tags"; PyTorch Geometric `Data` or a NetworkX graph
        with attributes; or `Graphs` that hold one graph.
    features, tags, edge_tags : the names of the attributes of `Data` and of NetworkX's nodes and edges that hold
        features, tags and the tags of edges; an attribute that nobody has is not read.
    undirected : add the reverse of every edge.
    """
    if isinstance(graphs, Graphs):
        _check_some(len(graphs))
        return undirected_graphs(graphs) if undirected else graphs
    names = {"features": features, "tags": tags, "edge_tags": edge_tags}
    entries = []
    for number, entry in enumerate(_listed(graphs)):
        try:
            entries.append(read_entry(entry, names, undirected))
        except (ValueError, TypeError) as error:
            raise type(error)(f"graph {number} of the list cannot be read: {error}") from None
    _check_some(len(entries))
    sizes = np.array([entry.graph.n_nodes for entry in entries])
    graph_ptr = offsets(sizes)
    return unchecked(
        Graphs,
        _union([entry.graph for entry in entries], graph_ptr),
        graph_ptr,
        _joined_features(_all_or_none(entries, "X", "features")),
        _joined_tags(_all_or_none(entries, "tags", "tags")),
        _joined_edge_tags(_all_or_none(_tagged(entries), "edge_tags", "tags of edges"), graph_ptr),
    )


def _check_some(n_graphs: int) -> None:
    if n_graphs == 0:
        raise ValueError("graphs must hold at least one graph, got an empty list; pass a list of graphs.")


def _tagged(entries: list[Entry]) -> list[Entry]:
    """The entries, of which those without edges have all the tags they can have where others have some."""
    if all(entry.edge_tags is None for entry in entries):
        return entries
    full = [entry.edge_tags is not None or entry.graph.n_edges > 0 for entry in entries]
    return [e if known else e._replace(edge_tags=NO_EDGE_TAGS) for e, known in zip(entries, full, strict=True)]


def _listed(graphs: Any) -> Any:
    """The graphs of a list, a dataset or a batch; one graph alone is no list."""
    if hasattr(graphs, "to_data_list"):
        return graphs.to_data_list()
    known = any(base.__module__ == _DATASET for base in type(graphs).__mro__)
    objects = isinstance(graphs, np.ndarray) and graphs.ndim == 1 and graphs.dtype == object
    if reads_as_edges(graphs):
        raise TypeError(f"graphs must be a list of graphs, got the edges of one, {graphs[0]!r} first; pass [graphs].")
    if isinstance(graphs, (list, tuple)) or known or objects:
        return graphs
    if hasattr(graphs, "iloc") and graphs.ndim == 1:  # a column of a table
        return np.asarray(graphs)
    advice = "pass [graph], or a list of several"
    if isinstance(graphs, (dict, Iterator)):
        advice = "pass list(graphs.values())" if isinstance(graphs, dict) else "pass list(graphs)"
    raise TypeError(f"graphs must be a list of graphs, got one {type_name(graphs)}; {advice}.")


def _union(graphs: list[Graph], graph_ptr: np.ndarray) -> Graph:
    """The disjoint union."""
    kind = np.int32 if graph_ptr[-1] < 2**31 else np.int64
    indptr = offsets(np.concatenate([np.diff(graph.indptr) for graph in graphs]))
    indices = [graph.indices.astype(kind) + kind(start) for graph, start in zip(graphs, graph_ptr, strict=False)]
    weights = None
    if any(graph.weights is not None for graph in graphs):
        weights = np.concatenate([graph.adjacency.data for graph in graphs])
    return unchecked(Graph, indptr, np.concatenate(indices), weights)


def _all_or_none(entries: list[Entry], field: str, what: str) -> list[Any] | None:
    """What every graph has, or None where no graph has it."""
    values = [getattr(entry, field) for entry in entries]
    missing = [number for number, value in enumerate(values) if value is None]
    if not missing:
        return values
    if len(missing) < len(values):
        has = next(number for number, value in enumerate(values) if value is not None)
        raise ValueError(
            f"all graphs must have {what}, or none, got {what} in graph {has} and none in graph {missing[0]}; "
            "add or drop them."
        )
    return None


def _joined_features(parts: list[Any] | None) -> Any:
    if parts is None:
        return None
    width = parts[0].shape[1]
    wrong = next((number for number, part in enumerate(parts) if part.shape[1] != width), None)
    if wrong is not None:
        raise ValueError(
            f"all graphs must have the same number of features, got {width} in graph 0 and {parts[wrong].shape[1]} in "
            f"graph {wrong}; pass features of one kind."
        )
    if not any(sp.issparse(part) for part in parts):
        return np.concatenate(parts)
    # SciPy has no sparse float16.
    return sp.vstack([part.astype(np.float32) if part.dtype == np.float16 else part for part in parts], format="csr")


def _joined_tags(parts: list[Any] | None) -> np.ndarray | None:
    if parts is None:
        return None
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1:
        raise ValueError("tags must be numbers in all graphs or texts in all, got both; convert the numbers with str.")
    return np.concatenate(parts)


def _joined_edge_tags(parts: list[Any] | None, graph_ptr: np.ndarray) -> EdgeTags | None:
    if parts is None:
        return None
    placed = [(part.nodes + start, part.tags) for part, start in zip(parts, graph_ptr, strict=False) if len(part.tags)]
    if not placed:
        return None
    tags = _joined_tags([tags for _, tags in placed])
    return None if tags is None else EdgeTags(np.concatenate([nodes for nodes, _ in placed]), tags)
