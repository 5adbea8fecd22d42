"""Edges of tables, lists and objects of other packages as pairs of row numbers, and what their nodes are called."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fishergraph._arrays import plain_array
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import check_weights, not_a_graph, type_name
from fishergraph._typing import GraphLike
from fishergraph._validation import check_flag, nearest
from fishergraph.io.columns import edge_table, listed, positions, table_columns, unknown_node
from fishergraph.io.edge_columns import ANY, EdgeOptions
from fishergraph.io.edge_reading import EdgeReading
from fishergraph.io.edge_table import (
    UNKNOWN,
    Numbered,
    number_edges,
    read_edge_table,
    varies,
    warn_of_columns_left,
)
from fishergraph.io.faults import no_lines
from fishergraph.times import as_times


@dataclass(frozen=True)
class Request:
    """How a graph is asked for; see `as_graph`."""

    n_nodes: int | None = None
    node_ids: Any = None
    options: EdgeOptions = ANY
    unknown: str = "error"


def check_choices(
    obj: GraphLike, undirected: bool, directed: object, unknown: object, node_ids: object, options: EdgeOptions
) -> bool:
    """Whether edges are listed both ways, by two parameters; raises for choices that the graph does not have."""
    if unknown not in UNKNOWN:
        expected = f"be one of {', '.join(map(repr, UNKNOWN))}"
        raise InputError(parameter="unknown", value=unknown, expected=expected)
    if unknown != "error" and node_ids is None:
        expected = "be 'error' without node_ids, of which an id can be unknown"
        raise InputError(parameter="unknown", value=unknown, expected=expected, advice="pass node_ids=…")
    named = {role: getattr(options, role) for role in ("source", "target", "weight")}
    asked = [role for role, value in named.items() if value is not None]
    if asked and not (isinstance(obj, list) or table_columns(obj) is not None or _package(obj)):
        expected, got = "belong to a table, a list or a graph whose edges have attributes", type_name(obj)
        raise InputError(parameter=asked[0], value=named[asked[0]], expected=expected, got=got)
    if directed is None:
        return undirected
    directed = check_flag(directed, "directed")
    if directed and undirected:
        raise InputError(parameter="directed", value=True, expected="be False or left out if undirected=True")
    ways = getattr(obj, "is_directed", None)
    if directed and _package(obj) in ("networkx", "igraph") and ways is not None and not ways():
        expected, got = "be False or left out for a graph without directions", "True"
        raise InputError(parameter="directed", expected=expected, got=got, advice="convert it: graph.to_directed()")
    return not directed


# --- tables ---------------------------------------------------------------------------------------------


def read_table(table: Any, request: Request) -> Numbered:
    """The edges of a pandas, Polars or pyarrow table."""
    edges = read_edge_table(table, request.options)
    if edges is None:
        raise not_a_graph(table)
    locate = no_lines
    if edges.path and (edges.faults or request.node_ids is not None):
        from fishergraph.io.edge_files import lines_of

        locate = lines_of(edges.reading)
    numbered = number_edges(
        edges, node_ids=request.node_ids, n_nodes=request.n_nodes, unknown=request.unknown, locate=locate
    )
    warn_of_columns_left(edges.reading, edges.spare)
    return numbered


def read_list(edges: list, request: Request) -> Numbered:
    """The edges of a list of tuples or dictionaries."""
    return read_table(edge_table(edges, request.options.weight), _of_list(edges, request))


def _of_list(edges: list, request: Request) -> Request:
    """The request for the table of a list, whose weights are in the column "weight" if it is one of tuples."""
    if edges and isinstance(edges[0], dict):
        return request
    of_table = [role for role in ("source", "target", "time") if getattr(request.options, role) is not None]
    if of_table:
        expected, got = "be left out for a list of tuples", repr(getattr(request.options, of_table[0]))
        advice = "pass a list of dictionaries, or a table"
        raise InputError(parameter=of_table[0], expected=expected, got=got, advice=advice)
    weight = False if request.options.weight is False else None
    return Request(request.n_nodes, request.node_ids, EdgeOptions(weight=weight), request.unknown)


# --- objects --------------------------------------------------------------------------------------------


def read_networkx(graph: Any, request: Request) -> Numbered:
    """The edges of a NetworkX graph."""
    if not hasattr(graph, "is_directed"):
        raise not_a_graph(graph)
    _check_no_columns(request)
    nodes = list(graph) if request.node_ids is None else list(request.node_ids)
    if request.node_ids is None and set(nodes) == set(range(len(nodes))):
        nodes = list(range(len(nodes)))
    position = positions(nodes, "node_ids")
    strange = [node for node in graph if node not in position]
    if strange and request.unknown == "error":
        raise unknown_node(strange[0])
    edges = list(graph.edges(data=True))
    rows = len(edges)
    if strange and request.unknown == "add":
        nodes = [*nodes, *strange]
        position = positions(nodes, "node_ids")
    elif strange:
        edges = [edge for edge in edges if edge[0] in position and edge[1] in position]
    key, left = _edge_attribute({name for *_, data in edges for name in data}, request.options.weight)
    values = [data.get(key, 1) for *_, data in edges] if key is not None else np.ones(len(edges))
    weights = check_weights(values, len(edges), lambda i: f"{edges[i][0]!r} -> {edges[i][1]!r}")
    ends = np.array([(position[u], position[v]) for u, v, _ in edges], dtype=np.int64)
    unknown: dict[str, Any] = {"unknown": len(strange)} if strange else {}
    if strange:
        unknown |= {"added": len(strange)} if request.unknown == "add" else {"dropped": rows - len(edges)}
    times = as_times([data.get("time") for *_, data in edges], len(edges)) if "time" in left else None
    columns, left = _with_times(_weight_column(key), left, times)
    reading = EdgeReading(rows=rows, columns=columns, left=left, **unknown)
    warn_of_columns_left(reading, _spare(left, lambda name: [data.get(name, 0) for *_, data in edges]), table=False)
    return _from_pairs(ends, weights, graph.is_directed(), len(nodes), labels(nodes), reading, times)


def read_igraph(graph: Any, request: Request) -> Numbered:
    """The edges of an igraph graph."""
    if not hasattr(graph, "get_edgelist"):
        raise not_a_graph(graph)
    _check_no_columns(request)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
    positions(names, "vertex names")
    ends = np.array(graph.get_edgelist(), dtype=np.int64)
    key, left = _edge_attribute(set(graph.es.attributes()), request.options.weight)
    values = np.ones(len(ends)) if key is None else graph.es[key]
    values = [1 if w is None else w for w in values] if isinstance(values, list) else values
    weights = check_weights(values, len(ends), lambda i: f"{names[ends[i, 0]]!r} -> {names[ends[i, 1]]!r}")
    times = as_times(graph.es["time"], len(ends)) if "time" in left else None
    columns, left = _with_times(_weight_column(key), left, times)
    reading = EdgeReading(rows=len(ends), columns=columns, left=left)
    warn_of_columns_left(reading, _spare(left, lambda name: graph.es[name]), table=False)
    return _from_pairs(ends, weights, graph.is_directed(), len(names), labels(names), reading, times)


def to_numpy(array: Any) -> np.ndarray:
    """A NumPy view of an array or a tensor on any device."""
    if hasattr(array, "detach"):
        if str(array.layout) != "torch.strided":
            got, advice = f"layout {array.layout}", "pass its edge_index"
            raise InputTypeError(parameter="graph", expected="be a dense (2, E) tensor", got=got, advice=advice)
        array = array.detach().cpu()
        array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()  # NumPy has no bfloat16
    return plain_array(array, "graph")


def pyg_weights(data: Any, weight: Any) -> Any:
    """The weights of PyTorch Geometric's `Data`, by name or by default, or None."""
    if getattr(data, "edge_index", None) is None:
        got, advice = f"{type_name(data)} without one", "set data.edge_index"
        raise InputTypeError(parameter="graph", expected="have an edge_index", got=got, advice=advice)
    if weight is False:
        return None
    if weight is not None:
        if weight not in data:
            near = nearest(str(weight), list(data.keys()))
            advice = f"name {' or '.join(map(repr, near))}" if near else "name one of them"
            got = f"{weight!r} among {listed(list(data.keys()))}"
            raise InputError(
                parameter="weight", value=weight, expected="be an attribute of data", got=got, advice=advice
            )
        values, n_edges = data[weight], data.edge_index.shape[1]
        if getattr(values, "numel", lambda: -1)() != n_edges:
            got = f"{weight!r} of shape {tuple(getattr(values, 'shape', ()))}"
            expected, advice = f"name one number for each of the {n_edges} edges", "set data.edge_weight to one column"
            raise InputError(parameter="weight", value=weight, expected=expected, got=got, advice=advice)
        return values.reshape(-1)
    weights, features = getattr(data, "edge_weight", None), getattr(data, "edge_attr", None)
    if weights is None and features is not None and features.numel() == data.edge_index.shape[1]:
        return features.reshape(-1)
    return weights


def _check_no_columns(request: Request) -> None:
    """Raise for names of columns, which such a graph does not have."""
    for role in ("source", "target", "time"):
        if (value := getattr(request.options, role)) is not None:
            raise InputError(parameter=role, value=value, expected="belong to a table or a list of dictionaries")


def _edge_attribute(names: Iterable[Any], weight: Any) -> tuple[Any, tuple[str, ...]]:
    """The attribute that holds the weights, or None, and the others."""
    names = set(names)
    if weight in (None, False) or (weight == "none" and weight not in names):
        key = "weight" if weight is None and "weight" in names else None
    elif weight in names:
        key = weight
    else:
        near = nearest(str(weight), [str(name) for name in names])
        advice = f"name {' or '.join(map(repr, near))}" if near else "leave it out, or set it"
        got = (
            f"{weight!r} among {listed(sorted(map(str, names)))}"
            if names
            else f"{weight!r} and edges without attributes"
        )
        expected = "be an attribute of the edges"
        raise InputError(parameter="weight", value=weight, expected=expected, got=got, advice=advice)
    return key, tuple(sorted(str(name) for name in names if name != key))


def _spare(left: Sequence[str], values: Callable[[str], Any]) -> list[str]:
    """The attributes that hold numbers that differ, which may be weights."""
    return [name for name in left if varies(values(name))]


def _weight_column(key: Any) -> dict[str, str]:
    return {} if key is None else {"weight": str(key)}


def _with_times(
    columns: dict[str, str], left: tuple[str, ...], times: np.ndarray | None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The columns that are used, and the others, if the attribute "time" holds times."""
    if times is None:
        return columns, left
    return {**columns, "time": "time"}, tuple(name for name in left if name != "time")


def _from_pairs(
    ends: np.ndarray,
    weights: np.ndarray,
    directed: bool,
    n_nodes: int,
    ids: np.ndarray | None,
    reading: EdgeReading,
    times: np.ndarray | None,
) -> Numbered:
    """The edges of (E, 2) pairs of positions; undirected edges go both ways, a self-loop once."""
    source, target = ends.reshape(-1, 2).T
    if not directed:
        back = source != target
        weights = np.concatenate((weights, weights[back]))
        source, target = np.concatenate((source, target[back])), np.concatenate((target, source[back]))
        times = None if times is None else np.concatenate((times, times[back]))
        reading = EdgeReading(**{**vars(reading), "both_ways": True})
    return Numbered(source, target, weights, n_nodes, ids, reading, times)


def labels(nodes: Sequence[Hashable]) -> np.ndarray | None:
    """Ids as an array of integers, strings or objects; None if they are 0 … n - 1 in this order."""
    if all(isinstance(v, (int, np.integer)) for v in nodes):
        ids = np.asarray(nodes) if all(-(2**63) <= int(v) < 2**63 for v in nodes) else np.asarray(nodes, dtype=object)  # type: ignore[arg-type]
        return None if np.array_equal(ids, np.arange(len(ids))) else ids
    # NumPy's strings lose NUL characters at their ends, and two ids would become one.
    if all(isinstance(v, str) and "\0" not in v for v in nodes):
        return np.asarray(nodes, dtype=np.str_)
    ids = np.empty(len(nodes), dtype=object)
    ids[:] = nodes
    return ids


# --- attributes of nodes --------------------------------------------------------------------------------

_PYG_EDGES = ("edge_index", "edge_attr", "edge_weight", "adj_t", "num_nodes", "batch", "ptr")


def attribute_names(graph: Any) -> list[str]:
    """The names of the attributes of the nodes of a NetworkX, igraph or PyTorch Geometric graph; [] for others."""
    package = _package(graph)
    if package == "networkx" and hasattr(graph, "nodes"):
        return list(dict.fromkeys(str(name) for _, data in graph.nodes(data=True) for name in data))
    if package == "igraph" and hasattr(graph, "vs"):
        return [name for name in graph.vs.attributes() if name != "name"]
    if package == "torch_geometric" and hasattr(graph, "edge_index"):
        n = graph.num_nodes
        keys = sorted(key for key in graph.keys() if key not in _PYG_EDGES)  # noqa: SIM118
        return [key for key in keys if _has_row_per_node(graph[key], n)]
    return []


def _has_row_per_node(values: Any, n_nodes: int) -> bool:
    """Whether an attribute of `Data` is a tensor or a list of texts with an entry for every node."""
    if isinstance(values, list):
        return len(values) == n_nodes > 0 and all(isinstance(value, str) for value in values)
    return len(getattr(values, "shape", ())) in (1, 2) and values.shape[0] == n_nodes


def attribute_columns(graph: Any) -> tuple[list[Any], dict[str, Sequence[Any]]]:
    """The ids of the nodes, in the order of `as_graph`, and their attributes; missing values are None."""
    package = _package(graph)
    names = attribute_names(graph)
    if package == "networkx":
        nodes = list(graph)
        nodes = list(range(len(nodes))) if set(nodes) == set(range(len(nodes))) else nodes
        keys = {str(name): name for _, data in graph.nodes(data=True) for name in data}
        return nodes, {name: [graph.nodes[node].get(keys[name]) for node in nodes] for name in names}
    if package == "igraph":
        ids = graph.vs["name"] if "name" in graph.vs.attributes() else list(range(graph.vcount()))
        return list(ids), {name: graph.vs[name] for name in names}
    if package == "torch_geometric":
        return list(range(graph.num_nodes)), {name: _rows(graph[name]) for name in names}
    expected = "be a NetworkX, igraph or PyTorch Geometric graph, or the path of a GraphML, GML or JSON file"
    raise InputTypeError(parameter="graph", expected=expected, got=type_name(graph))


def _rows(tensor: Any) -> Sequence[Any]:
    """The rows of a tensor: numbers, or lists of numbers; texts as they are."""
    if isinstance(tensor, list):
        return tensor
    tensor = tensor.detach().cpu() if hasattr(tensor, "detach") else tensor
    tensor = tensor.to_dense() if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided" else tensor
    tensor = tensor.float() if str(getattr(tensor, "dtype", "")) == "torch.bfloat16" else tensor
    return plain_array(np.asarray(tensor), "graph")  # type: ignore[return-value]


def _package(graph: Any) -> str:
    packages = {base.__module__.partition(".")[0] for base in type(graph).__mro__}
    return next((name for name in ("networkx", "igraph", "torch_geometric") if name in packages), "")
