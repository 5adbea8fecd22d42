"""One graph of a list: a `Graph`, and the features and tags of its nodes and edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed, real_array, unmasked
from fishergraph._errors import EndpointError, InputError
from fishergraph._records import changed, row_labels
from fishergraph._warn import warn, without_warnings
from fishergraph.graph import as_graph, lists_edges, names_nodes
from fishergraph.graphs.record import EdgeTags, Graphs


class Entry(NamedTuple):
    """One graph and the data of its nodes."""

    graph: Any
    X: Any = None
    tags: Any = None
    edge_tags: EdgeTags | None = None


def read_entry(entry: Any, names: dict[str, str], undirected: bool) -> Entry:
    """One graph of the list, validated on its own."""
    read = next((reader for matches, reader in _READERS if matches(entry)), None)
    graph, X, tags, edge_tags = Entry(entry) if read is None else read(entry, names, undirected)
    try:
        with without_warnings("columns left"):  # other attributes of edges may be their tags
            graph = as_graph(graph, undirected=undirected, n_nodes=_n_nodes(graph, X, tags))
    except EndpointError as error:
        raise error.revised(advice="repair the edge or pass features or tags of all nodes") from error
    except InputError as error:
        if error.parameter != "n_nodes":
            raise
        raise error.revised(parameter="the number of rows of features") from error
    if tags is not None:
        tags = _check_tags(tags, graph.n_nodes, "tags", "node")
    if X is not None and X.shape[0] != graph.n_nodes:
        expected = f"have {graph.n_nodes} rows, one per node"
        raise InputError(parameter="features", value=X.shape[0], expected=expected)
    return Entry(graph, X, tags, edge_tags)


def _n_nodes(graph: Any, X: Any, tags: Any) -> int | None:
    """The number of nodes by the features, or by the tags of a bare list of edges."""
    if X is not None:
        return X.shape[0]
    return len(tags) if np.ndim(tags) > 0 and len(tags) and lists_edges(graph) else None


def _read_graphs(entry: Graphs, names: dict[str, str], undirected: bool) -> Entry:
    if len(entry) != 1:
        advice = "pass them without the list"
        raise InputError(parameter="Graphs in a list", value=len(entry), expected="hold one graph each", advice=advice)
    entry = undirected_graphs(entry) if undirected else entry
    return Entry(entry.graph, entry.X, entry.tags, entry.edge_tags)


def undirected_graphs(graphs: Graphs) -> Graphs:
    """The graphs with the reverse of every edge; tags of edges do not say where their edges start."""
    both = as_graph(graphs.graph, undirected=True)
    if graphs.edge_tags is not None and len(graphs.edge_tags.tags) and both.n_edges > graphs.graph.n_edges:
        raise InputError(
            parameter="Graphs with tags of edges",
            expected="hold the reverse of every edge for undirected=True",
            got="edges in one direction",
            advice="pass undirected=True to as_graphs when the list is read",
        )
    return changed(graphs, graph=both)


def _read_dictionary(entry: dict, names: dict[str, str], undirected: bool) -> Entry:
    optional = ("X", "tags", "edge_tags")
    if "graph" not in entry or set(entry) - {"graph", *optional}:
        expected = f"have 'graph' and any of {optional}"
        raise InputError(parameter="a dictionary", expected=expected, got=str(sorted(entry)), advice="rename its keys")
    edge_tags = entry.get("edge_tags")
    if edge_tags is not None:
        edge_tags = _edge_index_tags(entry["graph"], edge_tags, undirected)
    return Entry(entry["graph"], _matrix(entry.get("X")), entry.get("tags"), edge_tags)


def _read_pair(entry: tuple, names: dict[str, str], undirected: bool) -> Entry:
    data, graph = entry
    if len(getattr(data, "shape", np.shape(data))) == 1:
        return Entry(graph, None, data)
    if (ids := row_labels(data)) is not None and names_nodes(graph):
        graph = as_graph(graph, undirected=undirected, node_ids=ids)
    return Entry(graph, _matrix(data))


def _read_pyg(data: Any, names: dict[str, str], undirected: bool) -> Entry:
    X, tags, edge_tags = (getattr(data, names[key], None) for key in ("features", "tags", "edge_tags"))
    edge_tags = None if names["edge_tags"] == names["tags"] else edge_tags  # nodes and edges share one name space here
    ends = None if edge_tags is None else _edge_index_tags(data.edge_index, edge_tags, undirected)
    return Entry(data, _matrix(X), None if tags is None else _array(tags), ends)


def _read_networkx(graph: Any, names: dict[str, str], undirected: bool) -> Entry:
    nodes = list(graph)
    if set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))  # the rows of `as_graph`
    _warn_of_unread_attributes(graph, names)
    X = _node_attribute(graph, nodes, names["features"], "features")
    tags = _node_attribute(graph, nodes, names["tags"], "tags")
    edges = [(u, v, tag) for u, v, tag in graph.edges(data=names["edge_tags"]) if tag is not None]
    ends = None
    if edges:
        row = {node: k for k, node in enumerate(nodes)}
        pairs = np.array([(row[u], row[v]) for u, v, _ in edges]).T
        values = _check_tags([tag for *_, tag in edges], len(edges), "tags", "edge")
        ends = _tags_at_ends(pairs, values, undirected or not graph.is_directed())
    return Entry(graph, None if X is None else _vectors(nodes, X), tags, ends)


def _warn_of_unread_attributes(graph: Any, names: dict[str, str]) -> None:
    """Warn of numbers that nodes have under a name that is not read."""
    numbers, vectors = numeric_attributes(attributes for _, attributes in graph.nodes(data=True))
    others = [name for name in (*numbers, *vectors) if name not in (names["features"], names["tags"])]
    if others:
        call = f"as_graphs(graphs, features={others[0]!r})"
        if len(numbers) > 1 and others[0] in numbers:
            frame = "pd.DataFrame.from_dict(dict(g.nodes(data=True)), orient='index')"
            call = f"[({frame}[{[name for name in others if name in numbers]!r}], g) for g in graphs]"
        warn(
            "attributes",
            f"the nodes have the attributes {', '.join(map(repr, others[:4]))}, which are not read: features are read "
            f"from {names['features']!r} and tags from {names['tags']!r}. To use them, pass {call}.",
        )


def numeric_attributes(nodes: Iterable[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The names of the attributes that are numbers, and of those that are vectors, by the first node that has each."""
    first: dict[str, Any] = {}
    for attributes in nodes:
        for name, value in attributes.items():
            first.setdefault(name, value)
    axes = {name: _n_axes(value) for name, value in first.items()}
    return [name for name, count in axes.items() if count == 0], [name for name, count in axes.items() if count == 1]


def _n_axes(value: object) -> int | None:
    """The number of axes of a number (0) or of a list or array of numbers; None for anything else."""
    if not isinstance(value, (int, float, list, tuple, np.number, np.ndarray)) or isinstance(value, bool):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        return None
    return array.ndim if array.dtype.kind in "iuf" and array.size else None


def _node_attribute(graph: Any, nodes: list, name: str, what: str) -> list | None:
    """The attribute of all nodes, or None if no node has it."""
    values = [graph.nodes[node].get(name) for node in nodes]
    missing = [node for node, value in zip(nodes, values, strict=True) if value is None]
    if 0 < len(missing) < len(nodes):
        got, advice = f"none at node {missing[0]!r}", f"set {name!r} there"
        raise InputError(parameter=what, value=missing[0], expected="exist for every node", got=got, advice=advice)
    return values if nodes and not missing else None


def _vectors(nodes: list, values: list) -> np.ndarray:
    """An attribute of the nodes as features, (node, feature); a number is one feature."""
    rows = []
    for node, value in zip(nodes, values, strict=True):
        try:
            row = np.atleast_1d(_array(value))
        except ValueError:  # nested lists of several lengths
            row = np.array([None])
        rows.append(row)
        if row.ndim != 1 or row.dtype.kind not in "fiub" or row.shape != rows[0].shape:
            raise InputError(
                parameter="features",
                value=node,
                expected="be numbers, or vectors of numbers of one length",
                got=f"shape {row.shape} and dtype {row.dtype} at node {node!r} (the first bad one)",
                advice="make them alike, and read text as tags",
            )
    return np.stack(rows)


def _edge_index_tags(edges: Any, tags: Any, undirected: bool) -> EdgeTags:
    """Tags of a (2, E) edge index."""
    ends = _array(edges[0] if isinstance(edges, tuple) else edges)
    if ends.ndim != 2 or ends.shape[0] != 2:
        expected = "belong to a graph that is a (2, E) edge index"
        raise InputError(parameter="edge_tags", expected=expected, got="another type", advice="pass edge_index")
    return _tags_at_ends(ends, _check_tags(tags, ends.shape[1], "edge_tags", "edge"), undirected)


def _tags_at_ends(edges: np.ndarray, tags: np.ndarray, both: bool) -> EdgeTags:
    """Each tag at the end that its edge points to; with `both` also at the other, unless the reverse is listed."""
    source, target = edges.astype(np.int64, copy=False)
    if not both:
        return EdgeTags(target, tags)
    n_nodes = 1 + edges.max(initial=0)
    alone = (source != target) & ~np.isin(target * n_nodes + source, source * n_nodes + target)
    return EdgeTags(np.concatenate([target, source[alone]]), np.concatenate([tags, tags[alone]]))


_READERS: list[tuple[Callable[[Any], bool], Callable[[Any, dict[str, str], bool], Entry]]] = [
    (lambda entry: isinstance(entry, Graphs), _read_graphs),
    (lambda entry: isinstance(entry, dict), _read_dictionary),
    # (edge_index, weights) is a graph of `as_graph`; any other pair is node data and a graph.
    (lambda e: isinstance(e, tuple) and len(e) == 2 and len(getattr(e[1], "shape", (0, 0))) != 1, _read_pair),
    (lambda entry: type(entry).__module__.startswith("torch_geometric."), _read_pyg),
    (lambda entry: hasattr(entry, "nodes") and hasattr(entry, "is_directed"), _read_networkx),
]


def _array(values: Any) -> np.ndarray:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else unmasked(values, "features and tags"))


def _matrix(X: Any) -> np.ndarray | sp.csr_array | None:
    """Features as a float matrix, dense or CSR."""
    if X is None or sp.issparse(X):
        return None if X is None else sp.csr_array(check_compressed(X, "features"))
    dense = _array(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if dense.ndim != 2 or dense.dtype.kind not in "fiub":
        got, advice = f"shape {dense.shape} and dtype {dense.dtype}", "pass one row per node, or tags as a list"
        expected = "be a matrix of numbers, (node, feature)"
        raise InputError(parameter="features", expected=expected, got=got, advice=advice)
    return real_array(dense, "features")


def _check_tags(tags: Any, n: int, name: str, what: str) -> np.ndarray:
    """Tags as n integers or texts."""
    if isinstance(tags, (list, tuple)) and any(isinstance(tag, str) and "\0" in tag for tag in tags):
        raise InputError(parameter=name, expected="be text without NUL characters", got="one with some")
    array = _array(tags)
    array = array.reshape(-1) if array.ndim == 2 and array.shape[1] == 1 else array
    if array.shape != (n,):
        expected, got = f"hold one tag for each of the {n} {what}s", f"shape {array.shape}"
        raise InputError(parameter=name, expected=expected, got=got)
    texts = array.dtype.kind == "U" or (array.dtype.kind == "O" and n > 0 and isinstance(array[0], str))
    entries = [] if array.dtype.kind in "ibU" else array
    bad = next((k for k, tag in enumerate(entries) if not _is_tag(tag, texts)), None)
    if bad is not None:
        raise InputError(
            parameter=name,
            value=array.tolist()[bad],
            expected="be integers below 2**63 or text",
            got=f"{array.tolist()[bad]!r} at {what} {bad} (the first bad one)",
            advice="convert them, and pass fractions as features",
        )
    return array.astype(np.str_ if texts else np.int64, copy=False)


def _is_tag(tag: Any, text: bool) -> bool:
    """Whether a tag is a text, or an integer that 64 bits hold."""
    if text:
        return isinstance(tag, str)
    return isinstance(tag, (int, float, np.number)) and bool(-(2**63) <= tag < 2**63 and tag == int(tag))
