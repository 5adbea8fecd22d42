"""Graphs with their nodes, in and out: attributes as a table, results as a graph of another package."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._arrays import is_table
from fishergraph._errors import InputError, InputTypeError
from fishergraph._optional import require
from fishergraph._typing import GraphLike, MatrixLike
from fishergraph._validation import look_up
from fishergraph.graph import Graph, as_graph
from fishergraph.graph_readers import attribute_columns

if TYPE_CHECKING:
    import pyarrow as pa


def node_table(graph: GraphLike, *, columns: Any = None, output: str = "arrow") -> Any:
    """Read the attributes of the nodes of a graph as a table with their ids.

    Parameters
    ----------
    graph : graph or path
        A NetworkX or igraph graph, PyTorch Geometric `Data`, or the path of a .graphml, .gml or .json file.
    columns : list of str, default=None
        The attributes to read. By default all.
    output : {"arrow", "pandas"}, default="arrow"
        A pyarrow table with the column id, or a DataFrame whose index are the ids, which the estimators take as X.

    Returns
    -------
    pyarrow.Table or pandas.DataFrame
        A row per node, in the order of `as_graph`. What a node does not have is missing.

    See Also
    --------
    to_networkx : Write columns into the attributes of a graph.

    Examples
    --------
    >>> import networkx as nx
    >>> from fishergraph import node_table
    >>> people = nx.Graph([("ann", "bob")])
    >>> nx.set_node_attributes(people, {"ann": 30, "bob": 40}, "age")
    >>> node_table(people).to_pydict()
    {'id': ['ann', 'bob'], 'age': [30, 40]}
    """
    import pyarrow as pa

    if isinstance(graph, (str, os.PathLike)):
        table = _file_table(Path(graph))
    else:
        from fishergraph.io.graph_columns import as_column

        ids, values = attribute_columns(graph)
        taken = {"id (attribute)" if name == "id" else name: column for name, column in values.items()}
        cells = {name: as_column(_cells(column)) for name, column in taken.items()}
        table = pa.table({"id": as_column(ids), **cells})
    if columns is not None:
        unknown = [name for name in columns if name not in table.column_names]
        if unknown:
            expected = f"be attributes of the nodes: {', '.join(map(repr, table.column_names[1:])) or 'there are none'}"
            raise InputError(parameter="columns", value=unknown[0], expected=expected)
        table = table.select(["id", *columns])
    make = look_up({"arrow": lambda: table, "pandas": lambda: _frame(table)}, output, "output")
    return make()


def _file_table(path: Path) -> pa.Table:
    """The nodes of a file of a graph."""
    from fishergraph.io.files import check_suffix
    from fishergraph.io.graph_files import GRAPH_SUFFIXES, read_graph_file

    return read_graph_file(path, check_suffix(path, GRAPH_SUFFIXES)).nodes


def _cells(column: Any) -> list[Any]:
    """Values as Python's; the rows of a matrix are lists."""
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value for value in values]


def _frame(table: pa.Table) -> Any:
    require("pandas", extra="plots")
    frame = table.to_pandas()
    return frame.set_index("id")


def to_networkx(
    graph: GraphLike, Z: MatrixLike = None, *, attributes: Any = None, name: str = "embedding", directed: Any = None
) -> Any:
    """Make a NetworkX graph, with an embedding and columns as attributes of nodes.

    Parameters
    ----------
    graph : graph
        Anything that `as_graph` takes.
    Z : array of shape (n_nodes, n_columns), default=None
        An embedding, rows in the order of the nodes. Every node gets its row as a list.
    attributes : DataFrame, pyarrow table or dict, default=None
        Columns that become attributes of the nodes, rows in the order of the nodes, such as clusters or classes. The
        index of a DataFrame, or the column id of a table, may be in another order.
    name : str, default="embedding"
        The attribute that holds the rows of Z.
    directed : bool, default=None
        Make a DiGraph or a Graph. By default a Graph if every edge has its reverse with the same weight.

    Returns
    -------
    networkx.Graph or networkx.DiGraph
        Its nodes are the ids of the graph, its edges have the attribute weight if the graph has weights.

    See Also
    --------
    node_table : Read attributes of nodes as a table.
    to_pyg : The same for PyTorch Geometric.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import as_graph, to_networkx
    >>> graph = as_graph([("a", "b"), ("b", "c", 2.0)], undirected=True)
    >>> out = to_networkx(graph, np.eye(3), attributes={"part": [0, 0, 1]})
    >>> out.nodes["c"], out.edges["b", "c"]
    ({'part': 1, 'embedding': [0.0, 0.0, 1.0]}, {'weight': 2.0})
    """
    require("networkx", extra="dev")
    import networkx as nx

    graph = as_graph(graph)
    A: Any = graph.adjacency
    symmetric = (A.T.tocsr() != A).nnz == 0
    if directed is False and not symmetric:
        expected, got = "be left out for a graph with directed edges", "False"
        raise InputError(
            parameter="directed", expected=expected, got=got, advice="pass as_graph(graph, undirected=True)"
        )
    one_way = not symmetric if directed is None else directed
    out: Any = nx.DiGraph() if one_way else nx.Graph()
    ids = _ids(graph)
    columns = _columns(attributes, graph, ids)
    if Z is not None:
        columns[name] = _rows(Z, "Z", graph.n_nodes).tolist()
    for row, node in enumerate(ids):
        out.add_node(node, **{key: values[row] for key, values in columns.items()})
    target = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    kept = np.ones(graph.n_edges, bool) if one_way else graph.indices <= target
    ends = [[ids[row] for row in end[kept].tolist()] for end in (graph.indices, target)]
    if graph.weights is None:
        out.add_edges_from(zip(*ends, strict=True))
    else:
        out.add_weighted_edges_from(zip(*ends, graph.weights[kept].tolist(), strict=True))
    return out


def to_pyg(graph: GraphLike, X: MatrixLike = None, y: Any = None, *, Z: MatrixLike = None) -> Any:
    """Make PyTorch Geometric `Data`, with features, labels and an embedding.

    Parameters
    ----------
    graph : graph
        Anything that `as_graph` takes.
    X : array of shape (n_nodes, n_features), default=None
        Features, rows in the order of the nodes: `data.x`, float32.
    y : array of shape (n_nodes,), default=None
        Labels: `data.y`. Texts become class numbers, in sorted order, and their names `data.class_names`.
    Z : array of shape (n_nodes, n_columns), default=None
        An embedding: `data.z`.

    Returns
    -------
    torch_geometric.data.Data
        With edge_index from source to target, edge_weight if the graph has weights, and the ids of the nodes as
        `data.node_ids`, if they are not the row numbers.

    See Also
    --------
    to_networkx : The same for NetworkX.

    Examples
    --------
    >>> import numpy as np
    >>> from fishergraph import as_graph, to_pyg
    >>> data = to_pyg(as_graph([("a", "b"), ("b", "c")]), np.eye(3))
    >>> data.edge_index.tolist(), data.node_ids
    ([[0, 1], [1, 2]], ['a', 'b', 'c'])
    """
    require("torch_geometric", extra="torch")
    from fishergraph.nn.pyg_data import make_data

    graph = as_graph(graph)
    n = graph.n_nodes
    matrices = {key: None if M is None else _rows(M, key, n) for key, M in (("X", X), ("Z", Z))}
    ids = None if graph.ids is None else _ids(graph)
    return make_data(graph, matrices["X"], _labels(y, n), matrices["Z"], ids)


def _ids(graph: Graph) -> list[Any]:
    """The ids of the nodes as Python's."""
    return list(range(graph.n_nodes)) if graph.ids is None else graph.ids.tolist()


def _rows(M: Any, name: str, n_nodes: int) -> np.ndarray:
    """A matrix with a row per node."""
    M = M.toarray() if hasattr(M, "toarray") else M
    M = np.asarray(M.detach().cpu() if hasattr(M, "detach") else M)
    if M.ndim != 2 or M.shape[0] != n_nodes:
        expected = f"be a matrix with a row for each of the {n_nodes} nodes"
        raise InputError(parameter=name, value=M.shape, expected=expected)
    return M


def _labels(y: Any, n_nodes: int) -> np.ndarray | None:
    if y is None:
        return None
    y = np.asarray(y.detach().cpu() if hasattr(y, "detach") else y)
    if y.ndim < 1 or y.shape[0] != n_nodes:
        raise InputError(parameter="y", value=y.shape, expected=f"have one label for each of the {n_nodes} nodes")
    return y


def _columns(attributes: Any, graph: Graph, ids: list[Any]) -> dict[str, list[Any]]:
    """Columns in the order of the nodes."""
    if attributes is None:
        return {}
    if isinstance(attributes, Mapping):
        columns, keys = {str(name): _cells(values) for name, values in attributes.items()}, None
    elif hasattr(attributes, "column_names"):
        columns = {name: attributes.column(name).to_pylist() for name in attributes.column_names}
        keys = columns.pop("id", None)
    elif is_table(attributes):
        columns = {str(name): _cells(attributes[name]) for name in attributes.columns}
        keys = attributes.index.tolist() if hasattr(attributes, "index") and graph.ids is not None else None
    else:
        expected = "be a DataFrame, a pyarrow table or a dictionary of columns"
        raise InputTypeError(parameter="attributes", value=attributes, expected=expected)
    for name, values in columns.items():
        if len(values) != graph.n_nodes:
            expected = f"have {graph.n_nodes} rows, one per node"
            raise InputError(parameter=f"attribute {name!r}", value=len(values), expected=expected)
    if keys is None or keys == ids:
        return columns
    place = {key: row for row, key in enumerate(keys)}
    missing = [node for node in ids if node not in place]
    if missing:
        expected, got = "name every node of the graph", f"no row for {missing[0]!r}"
        raise InputError(parameter="the index of attributes", value=missing[0], expected=expected, got=got)
    return {name: [values[place[node]] for node in ids] for name, values in columns.items()}
