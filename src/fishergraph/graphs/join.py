"""`as_graphs`: a list of graph objects becomes one disjoint union."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import type_name, unchecked
from fishergraph._warn import each_warning_once
from fishergraph.graph import Graph
from fishergraph.graphs.entries import Entry, read_entry, undirected_graphs
from fishergraph.graphs.record import NO_EDGE_TAGS, EdgeTags, Graphs, offsets
from fishergraph.io.columns import reads_as_edges

_DATASET = "torch_geometric.data.dataset"


@each_warning_once()
def as_graphs(
    graphs: Any, *, features: str = "x", tags: str = "label", edge_tags: str = "label", undirected: bool = False
) -> Graphs:
    """Convert a list of graphs to one disjoint union.

    Parameters
    ----------
    graphs : list of graphs, PyTorch Geometric dataset or Batch, or Graphs
        A graph is one of

        - anything that `as_graph` takes, without node data;
        - a pair (X, graph); X is a matrix of features or a list of tags;
        - a dictionary with "graph" and any of "X", "tags", "edge_tags";
        - PyTorch Geometric `Data` or a NetworkX graph with attributes;
        - `Graphs` that hold one graph.
    features, tags, edge_tags : str, default="x", "label", "label"
        Attributes of `Data`, and of nodes and edges in NetworkX, that hold features, tags and tags of edges. Graphs may
        lack them.
    undirected : bool, default=False
        Add the reverse of every edge.

    Returns
    -------
    Graphs
        The union, with features and tags if all graphs have them.

    See Also
    --------
    as_graph : A single graph.
    fishergraph.load_graphs : Published sets of labelled graphs.

    Examples
    --------
    >>> from fishergraph import as_graphs
    >>> as_graphs([(["C", "O"], [(0, 1)]), (["N", "C"], [(0, 1)])])
    Graphs(2 graphs: 4 nodes, 2 directed edges with tags)
    """
    graphs = graphs if isinstance(graphs, Graphs) else _listed(graphs)
    if len(graphs) == 0:
        raise InputError(parameter="graphs", expected="hold at least one graph", got="an empty list")
    if isinstance(graphs, Graphs):
        return undirected_graphs(graphs) if undirected else graphs
    names = {"features": features, "tags": tags, "edge_tags": edge_tags}
    entries = []
    for number, entry in enumerate(graphs):
        try:
            entries.append(read_entry(entry, names, undirected))
        except (ValueError, TypeError) as error:
            kind = InputTypeError if isinstance(error, TypeError) else InputError
            raise kind(
                f"graph {number} of the list cannot be read: {error}", parameter="graphs", value=number
            ) from error
    if any(entry.edge_tags is not None for entry in entries):  # graphs without edges have no tags
        full = [entry.edge_tags is not None or entry.graph.n_edges > 0 for entry in entries]
        entries = [e if kept else e._replace(edge_tags=NO_EDGE_TAGS) for e, kept in zip(entries, full, strict=True)]
    graph_ptr = offsets(np.array([entry.graph.n_nodes for entry in entries]))
    return unchecked(
        Graphs,
        _union([entry.graph for entry in entries], graph_ptr),
        graph_ptr,
        _joined_features(_all_or_none(entries, "X", "features")),
        _joined_tags(_all_or_none(entries, "tags", "tags")),
        _joined_edge_tags(_all_or_none(entries, "edge_tags", "tags of edges"), graph_ptr),
    )


def _listed(graphs: Any) -> Any:
    """The graphs of a list, a dataset or a batch; a single graph is refused."""
    if hasattr(graphs, "to_data_list"):
        return graphs.to_data_list()
    dataset = any(base.__module__ == _DATASET for base in type(graphs).__mro__)
    objects = isinstance(graphs, np.ndarray) and graphs.ndim == 1 and graphs.dtype == object
    got, advice = f"one {type_name(graphs)}", "pass [graph], or a list of several"
    if reads_as_edges(graphs):
        got, advice = f"the edges of one, {graphs[0]!r} first", "pass [graphs]"
    elif isinstance(graphs, (list, tuple)) or dataset or objects:
        return graphs
    elif hasattr(graphs, "iloc") and graphs.ndim == 1:  # a column of a table
        return np.asarray(graphs)
    elif isinstance(graphs, (dict, Iterator)):
        advice = "pass list(graphs.values())" if isinstance(graphs, dict) else "pass list(graphs)"
    raise InputTypeError(parameter="graphs", expected="be a list of graphs", got=got, advice=advice)


# --- the union ------------------------------------------------------------------------------------------


def _union(graphs: list[Graph], graph_ptr: np.ndarray) -> Graph:
    kind = np.int32 if graph_ptr[-1] < 2**31 else np.int64
    indptr = offsets(np.concatenate([np.diff(graph.indptr) for graph in graphs]))
    indices = [graph.indices.astype(kind) + kind(start) for graph, start in zip(graphs, graph_ptr, strict=False)]
    weights = None
    if any(graph.weights is not None for graph in graphs):
        weights = np.concatenate([graph.adjacency.data for graph in graphs])
    return unchecked(Graph, indptr, np.concatenate(indices), weights)


def _all_or_none(entries: list[Entry], field: str, what: str) -> list[Any] | None:
    """What every graph has, or None if no graph has it."""
    values = [getattr(entry, field) for entry in entries]
    missing = [number for number, value in enumerate(values) if value is None]
    if not missing:
        return values
    if len(missing) < len(values):
        first = next(number for number, value in enumerate(values) if value is not None)
        got = f"{what} in graph {first} and none in graph {missing[0]}"
        raise InputError(parameter="all graphs", expected=f"have {what}, or none", got=got, advice="add or drop them")
    return None


def _joined_features(blocks: list[Any] | None) -> Any:
    if blocks is None:
        return None
    width = blocks[0].shape[1]
    other = next((number for number, block in enumerate(blocks) if block.shape[1] != width), None)
    if other is not None:
        got = f"{width} in graph 0 and {blocks[other].shape[1]} in graph {other}"
        raise InputError(parameter="all graphs", expected="have the same number of features", got=got)
    if not any(sp.issparse(block) for block in blocks):
        return np.concatenate(blocks)
    # SciPy has no sparse float16.
    return sp.vstack([block.astype(np.float32) if block.dtype == np.float16 else block for block in blocks], "csr")


def _joined_tags(blocks: list[np.ndarray] | None) -> np.ndarray | None:
    if blocks is None:
        return None
    if len({block.dtype.kind for block in blocks}) > 1:
        expected, advice = "be integers in all graphs or text in all", "convert the integers with str"
        raise InputError(parameter="tags", expected=expected, got="both", advice=advice)
    return np.concatenate(blocks)


def _joined_edge_tags(blocks: list[EdgeTags] | None, graph_ptr: np.ndarray) -> EdgeTags | None:
    if blocks is None:
        return None
    filled = [
        (block.nodes + start, block.tags) for block, start in zip(blocks, graph_ptr, strict=False) if len(block.tags)
    ]
    if not filled:
        return None
    tags = _joined_tags([tags for _, tags in filled])
    return None if tags is None else EdgeTags(np.concatenate([nodes for nodes, _ in filled]), tags)
