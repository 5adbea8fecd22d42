"""One graph of a list: what people have → a `Graph`, and the features and tags of its nodes and edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._checks import check_compressed
from fishergraph.graph import Graph, as_graph
from fishergraph.graphs.record import EdgeTags, Graphs


class Entry(NamedTuple):
    """One graph and what its nodes carry."""

    graph: Graph
    X: Any = None
    tags: Any = None
    edge_tags: EdgeTags | None = None


def read_entry(entry: Any, names: dict[str, str], undirected: bool) -> Entry:
    """One entry of the list, checked for itself."""
    read = next((reader for known, reader in _READERS if known(entry)), _read_plain)
    graph, X, tags, edge_tags = read(entry, names)
    graph = as_graph(graph, undirected=undirected, n_nodes=None if X is None else _n_rows(X))
    if tags is not None:
        tags = _check_tags(tags, graph.n_nodes, "tags", "node")
    if X is not None and _n_rows(X) != graph.n_nodes:
        raise ValueError(
            f"features must have {graph.n_nodes} rows, one per node, got {_n_rows(X)}; pass such a matrix."
        )
    return Entry(graph, X, tags, edge_tags)


def _read_plain(entry: Any, names: dict[str, str]) -> tuple:
    return entry, None, None, None


def _read_graphs(entry: Graphs, names: dict[str, str]) -> tuple:
    if len(entry) != 1:
        raise ValueError(f"Graphs in a list must hold one graph each, got {len(entry)}; pass them without the list.")
    return entry.graph, entry.X, entry.tags, entry.edge_tags


def _read_dictionary(entry: dict, names: dict[str, str]) -> tuple:
    known = ("graph", "X", "tags", "edge_tags")
    if "graph" not in entry or set(entry) - set(known):
        raise ValueError(
            f"a dictionary must have 'graph' and any of {known[1:]}, got {sorted(entry)}; rename its keys."
        )
    edge_tags = entry.get("edge_tags")
    if edge_tags is not None:
        edge_tags = _given_edge_tags(entry["graph"], edge_tags)
    return entry["graph"], _matrix(entry.get("X")), entry.get("tags"), edge_tags


def _read_pair(entry: tuple, names: dict[str, str]) -> tuple:
    data, graph = entry
    if len(getattr(data, "shape", np.shape(data))) == 1:
        return graph, None, data, None
    return graph, _matrix(data), None, None


def _read_pyg(data: Any, names: dict[str, str]) -> tuple:
    X, tags, edge_tags = (getattr(data, names[key], None) for key in ("features", "tags", "edge_tags"))
    edge_tags = None if names["edge_tags"] == names["tags"] else edge_tags  # nodes and edges share one name space here
    ends = None if edge_tags is None else _given_edge_tags(data.edge_index, edge_tags)
    return data, _matrix(X), None if tags is None else _array(tags), ends


def _read_networkx(graph: Any, names: dict[str, str]) -> tuple:
    nodes = list(graph)
    if set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))  # the rows of `as_graph`
    X = _node_attribute(graph, nodes, names["features"], "features")
    tags = _node_attribute(graph, nodes, names["tags"], "tags")
    edges = [(u, v, tag) for u, v, tag in graph.edges(data=names["edge_tags"]) if tag is not None]
    ends = None
    if edges:
        row = {node: k for k, node in enumerate(nodes)}
        pairs = [(row[v], tag) for _, v, tag in edges]
        pairs += [] if graph.is_directed() else [(row[u], tag) for u, v, tag in edges if u != v]
        ends = EdgeTags(np.array([k for k, _ in pairs]), _check_tags([t for _, t in pairs], len(pairs), "tags", "edge"))
    return graph, None if X is None else np.stack([np.asarray(x) for x in X]), tags, ends


def _node_attribute(graph: Any, nodes: list, name: str, what: str) -> list | None:
    """The attribute of all nodes, or None where no node has it."""
    values = [graph.nodes[node].get(name) for node in nodes]
    missing = [node for node, value in zip(nodes, values, strict=True) if value is None]
    if 0 < len(missing) < len(nodes):
        raise ValueError(f"{what} must be there for every node, got none at node {missing[0]!r}; set {name!r} there.")
    return values if nodes and not missing else None


def _given_edge_tags(edges: Any, tags: Any) -> EdgeTags:
    """Tags beside a (2, E) edge index: each belongs to the end its edge points to."""
    ends = _array(edges[0] if isinstance(edges, tuple) else edges)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise ValueError("edge_tags need a graph given as a (2, E) edge index, got another kind; pass edge_index.")
    return EdgeTags(ends[1], _check_tags(tags, ends.shape[1], "edge_tags", "edge"))


_READERS: list[tuple[Callable[[Any], bool], Callable[[Any, dict[str, str]], tuple]]] = [
    (lambda entry: isinstance(entry, Graphs), _read_graphs),
    (lambda entry: isinstance(entry, dict), _read_dictionary),
    # (edge_index, weights) is a graph of `as_graph`; everything else in two parts is node data and a graph.
    (lambda e: isinstance(e, tuple) and len(e) == 2 and len(getattr(e[1], "shape", (0, 0))) != 1, _read_pair),
    (lambda entry: type(entry).__module__.startswith("torch_geometric."), _read_pyg),
    (lambda entry: hasattr(entry, "nodes") and hasattr(entry, "is_directed"), _read_networkx),
]


def _array(values: Any) -> np.ndarray:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _matrix(X: Any) -> Any:
    """Features as a float matrix, dense or CSR."""
    if X is None or sp.issparse(X):
        return None if X is None else sp.csr_array(check_compressed(X, "features"))
    dense = _array(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if dense.ndim != 2 or dense.dtype.kind not in "fiub":
        raise ValueError(
            f"features must be a matrix of numbers, (node, feature), got shape {dense.shape} and dtype {dense.dtype}; "
            "pass one row per node, or tags as a list."
        )
    return dense


def _n_rows(X: Any) -> int:
    return X.shape[0]


def _check_tags(tags: Any, n: int, name: str, what: str) -> np.ndarray:
    """Tags as whole numbers or texts, one each."""
    array = _array(tags)
    array = array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array
    if array.shape != (n,):
        raise ValueError(
            f"{name} must hold one tag for each of the {n} {what}s, got shape {array.shape}; pass so many."
        )
    if array.dtype.kind == "f" and np.array_equal(array, np.rint(array)):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iuUb":
        raise ValueError(
            f"{name} must be whole numbers or texts, got {array.dtype}; numbers with a comma are features."
        )
    return array if array.dtype.kind == "U" else array.astype(np.int64)
