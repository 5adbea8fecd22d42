"""The input of the estimators: X validated, its graph as multisets, and the workspace of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_torch_array
from sklearn.utils.validation import check_array

from fishergraph import _arrays, _records
from fishergraph._arrays import as_floats, is_table
from fishergraph._errors import EndpointError, InputError, InputTypeError, UnknownNodeError
from fishergraph._optional import require
from fishergraph._progress import Progress, costing, silent
from fishergraph._typing import GraphLike, MatrixLike, Rows, Sets
from fishergraph._warn import warn
from fishergraph.device import NUMPY, Device, Workspace
from fishergraph.estimators.row_ids import unknown_to_rows
from fishergraph.estimators.structure_input import StructureReader
from fishergraph.estimators.table_input import numeric_table
from fishergraph.family import Family, GaussianMixture
from fishergraph.graph import Graph, as_graph, lists_edges, names_nodes
from fishergraph.io.columns import edge_table
from fishergraph.multiset import LiftedSets, Multisets, Neighbourhood, Rule
from fishergraph.ops import choose_engine

NameRow = Callable[[int], str]


@dataclass(frozen=True)
class InputSettings:
    """What reading X and a graph depends on.

    name_row : row number → its name in an error.
    encode : a table → its rows, or the table itself if its columns are numbers.
    check_columns : called with X before it is converted: compares or remembers the number and names of its columns.
    """

    rule: Rule = field(default_factory=Neighbourhood)
    family: Family = field(default_factory=GaussianMixture)
    normalize: bool = True
    device: Device = field(default_factory=Device)
    n_jobs: int | None = None
    progress: Progress = silent
    name_row: NameRow = _arrays.plain_row
    encode: Callable[[Any], Any] = numeric_table
    check_columns: Callable[[Any], Any] = lambda X: None

    @property
    def unit_rows(self) -> bool:
        """Whether rows are divided by their lengths: counts never are."""
        return self.normalize and self.family.support != "counts"


class NodeInput(NamedTuple):
    """X, its multisets and the structural columns in the workspace of a run, and the ids of the rows, if any."""

    X: Any
    sets: Sets
    workspace: Workspace
    ids: Any
    structural: dict[str, Any]


# --- X and graph -------------------------------------------------------------------------------------------


def check_no_graph(y: object, X: MatrixLike, graph: GraphLike) -> None:
    """Raise if the ignored y is a graph."""
    package, length = type(y).__module__.partition(".")[0], _length(y)
    shape: Any = getattr(y, "shape", None)
    square = sp.issparse(y) and shape[0] == shape[1]
    other = None not in (length, _length(X)) and length != _length(X) if X is not None else graph is None
    if isinstance(y, Graph) or package in ("networkx", "igraph", "torch_geometric") or square or other:
        raise InputTypeError(
            parameter="y",
            value=y,
            expected="be labels, one for each row of X, or be left out",
            got=type(y).__name__,
            advice="pass a graph as graph=…",
        )


def _length(values: object) -> int | None:
    """The number of rows of an array, a matrix, a table or a list."""
    shape: Any = getattr(values, "shape", None)
    return shape[0] if shape else len(values) if isinstance(values, (list, tuple)) else None


def check_same_source(X: MatrixLike, graph: GraphLike, *, structural: bool, needs_graph: bool) -> None:
    """Raise if a fitted model gets features or a graph though it was fitted without, or the reverse.

    Features for a model that was fitted without are allowed: a user may have computed the structural ones.
    """
    if X is None and not structural:
        raise InputError(
            parameter="X",
            expected="be given, as it was for the fit",
            advice="pass the features, or fit again without",
        )
    if needs_graph and graph is None:
        raise InputError(
            parameter="graph",
            expected="be given, as it was for the fit",
            advice="add graph=… to the call, the graph of these rows, or "
            "graph=scipy.sparse.csr_array((len(X), len(X))) if they have no edges",
        )
    if graph is not None and not needs_graph:
        raise InputError(
            parameter="graph",
            value=graph,
            expected="be left out, as it was for the fit",
            got="one",
            advice="leave it out, or fit again with it",
        )


def read_host(
    X: MatrixLike, graph: GraphLike, settings: InputSettings, structure: StructureReader
) -> tuple[Any, Multisets | LiftedSets, Any, dict[str, np.ndarray]]:
    """Return X as NumPy or CSR, the multisets of the graph, the ids of the rows, and the structural columns.

    The ids are the index of a DataFrame X, else the node ids of the graph, else None. Without X the features are the
    structural columns of the first kind.
    """
    if X is None and graph is None:
        raise InputTypeError("X or graph must be given, got None for both; pass features, a graph, or both.")
    labelled = None if graph is None else _labelled_graph(X, graph, settings.rule.undirected)
    ids = getattr(X, "index", None) if hasattr(X, "iloc") else getattr(labelled, "ids", None)
    columns = {} if labelled is None else structure.columns(labelled, ids)
    if X is None and not columns:
        advice = "pass X, or structure='auto'"
        raise InputError(parameter="structure", expected="be given if there is no X", got="None", advice=advice)
    if X is None and labelled is not None and labelled.n_edges == 0:
        text = "the graph has no edges and there is no X, so all nodes are alike; pass X or a graph with edges."
        warn("edges", text, explains=("few anchors", "few landmarks"))
    features: Any = next(iter(columns.values())) if X is None else X
    return *_host_sets(host_rows(features, settings), labelled, settings), ids, columns


def read_nodes(X: MatrixLike, graph: GraphLike, settings: InputSettings, structure: StructureReader) -> NodeInput:
    """Return X, its multisets, the workspace, the row ids and the structural columns.

    Tensors stay tensors, on their device. NumPy and CSR matrices stay in host memory: a device reads them in blocks.
    """
    if is_torch_array(X):
        tensor = tensor_rows(X, settings)
        sets, ids = _tensor_sets(tensor, graph, settings), None
        columns = {}
        if graph is not None and structure.structure is not None:
            on_host = _host_graph(tensor, graph, settings)
            columns = structure.columns(on_host, on_host.ids)
        rows, sets, workspace = in_tensor_workspace(tensor, sets, settings)
    else:
        rows, sets, ids, columns = read_host(X, graph, settings, structure)
        rows, sets, workspace = in_host_workspace(rows, sets, settings.device)
    for kind, block in columns.items():
        columns[kind] = workspace.put(block, rows.dtype)
    return NodeInput(rows, sets, workspace, ids, columns)


def _host_graph(X: Any, graph: Any, settings: InputSettings) -> Graph:
    """The graph of tensors in host memory; prepared multisets are its rows, without the nodes themselves.

    Of multisets of both directions, those of the first say all.
    """
    from fishergraph.ops.tensor_sets import TensorSets

    if not isinstance(graph, TensorSets):
        return _labelled_graph(X, graph, settings.rule.undirected)
    sets, every = graph.apart(), graph.kinds
    points, indptr = sets.indices.cpu().numpy(), sets.indptr.cpu().numpy()
    rows = np.repeat(np.arange(sets.n_sets), np.diff(indptr))
    weights = np.ones(len(points), np.float32) if sets.weights is None else sets.weights.cpu().numpy()
    kept = (rows % every == 0) & (points != rows // every)
    edges = (weights[kept], (rows[kept] // every, points[kept]))
    return as_graph(sp.csr_array(edges, shape=(graph.n_sets, graph.n_points)))


def _labelled_graph(X: Any, graph: Any, undirected: bool) -> Graph:
    """The graph with its nodes in the order of X, if X and the graph name them."""
    labels, rows = _records.row_labels(X), _length(X)
    graph = edge_table(graph) if isinstance(graph, list) else graph
    order: dict[str, Any] = {"node_ids": labels} if labels is not None and names_nodes(graph) else {}
    if rows and lists_edges(graph):
        order = {"n_nodes": rows}
    table = graph if labels is None and hasattr(graph, "columns") else None
    try:
        graph = as_graph(graph, undirected=undirected, **order)
    except UnknownNodeError as error:
        raise unknown_to_rows(error) from error
    except EndpointError as error:
        raise error.revised(advice="repair the edge or pass X with a row per node") from error
    if rows and table is not None and (graph.ids is not None or graph.n_nodes < rows):
        if graph.ids is not None:  # some rows have no edge, or the ids are not row numbers
            _records.check_counted(graph.ids, rows)
        graph = as_graph(table, undirected=undirected, n_nodes=rows)
    if labels is not None:
        _records.check_same_order(labels, graph.ids)
    return graph


def read_graph(X: MatrixLike, graph: GraphLike, rule: Rule) -> Graph | None:
    """Return the graph with one node per row of X, in the order of the rows; None if there is none."""
    return None if graph is None else _labelled_graph(X, graph, rule.undirected)


# --- rows --------------------------------------------------------------------------------------------------


def host_rows(X: MatrixLike, settings: InputSettings) -> Any:
    """Return X as a C-ordered float matrix or CSR, with finite entries in the support of the family."""
    X = settings.encode(X) if is_table(X) else X
    rows: Any = as_floats(X, "X")
    options: Any = {"accept_sparse": "csr", "dtype": rows.dtype, "ensure_all_finite": False}
    rows = check_array(rows, input_name="X", **options)
    settings.check_columns(X)
    _arrays.check_finite_rows(rows, name_row=settings.name_row)
    _arrays.check_scale(rows, normalize=settings.unit_rows)
    if sp.issparse(rows):
        rows = sp.csr_array(rows, copy=not rows.has_canonical_format)
        rows.sum_duplicates()
    settings.family.check_points(rows, name_row=settings.name_row)
    return rows


def tensor_rows(X: Any, settings: InputSettings) -> Any:
    """Return X as a float tensor on the device, dense or in compressed rows, with finite entries."""
    from fishergraph.ops.tensor_rows import check_tensor

    X = check_tensor(X, torch_device(settings.device))
    settings.check_columns(X)
    values, sparse = (X, False) if str(X.layout) == "torch.strided" else (X.values(), True)
    _arrays.check_finite_rows(values, indptr=X.crow_indices() if sparse else None, name_row=settings.name_row)
    _arrays.check_scale(values, normalize=settings.unit_rows, n_features=X.shape[1])
    settings.family.check_points(X, name_row=settings.name_row)
    return X


# --- multisets ---------------------------------------------------------------------------------------------


def _host_sets(X: Rows, graph: Graph | None, settings: InputSettings) -> tuple[Any, Multisets | LiftedSets]:
    """Return X and its multisets; without a graph every row is its own, or has no members if these are lifted."""
    rule = settings.rule
    if graph is None and not rule.lifts:
        return X, rule.alone(X.shape[0])
    if graph is None:
        graph = as_graph(sp.csr_array((X.shape[0], X.shape[0])))
    _records.check_same_rows(X.shape[0], graph.n_nodes)
    _arrays.check_weight_scale(graph.weights, X.dtype)
    return build_sets(X, graph, settings)[:2]


def build_sets(X: Rows, graph: Graph, settings: InputSettings, graph_ptr: np.ndarray | None = None) -> Any:
    """Return the points, their multisets and those of the graphs, with progress."""
    rule = settings.rule
    progress = silent if rule.reads_edges else settings.progress  # neighbourhoods are there at once
    options: dict[str, Any] = {"dtype": str(X.dtype).removeprefix("torch."), "n_jobs": settings.n_jobs}
    with costing(progress, "multisets", 1.0):
        built = rule.build(X, graph, graph_ptr=graph_ptr, normalize=settings.unit_rows, **options)
    if built.sets.lifted:  # a path weighs the product of its edges
        _arrays.check_weight_scale(built.sets.weights, X.dtype)
    return built


def _tensor_sets(X: Any, graph: Any, settings: InputSettings) -> Any:
    """Prepared sets as they are; an edge list on the device by sorting it there; anything else through the host."""
    from fishergraph.ops.tensor_edges import edge_neighbourhoods, given_sets, moved_sets
    from fishergraph.ops.tensor_sets import TensorSets

    device, rule = X.device, settings.rule
    if isinstance(graph, TensorSets):
        if rule.lifts or rule.kinds != graph.kinds:
            raise InputError(
                parameter="graph",
                value=graph,
                expected=f"hold edges for multiset={rule!r}",
                got=f"{type(graph).__name__}, which are multisets of rows",
                advice="pass the edges, or leave multiset='neighbourhood'",
            )
        return given_sets(graph, X.shape[0], device)
    pair: tuple[Any, Any] = graph if isinstance(graph, tuple) and len(graph) == 2 else (graph, None)
    here = all(is_torch_array(part) and part.device == device for part in pair if part is not None)
    if graph is not None and here and isinstance(rule, Neighbourhood) and rule.decay is None:
        options: dict[str, Any] = {
            "closed": rule.closed,
            "weights": rule.weights,
            "undirected": rule.undirected,
            "direction": rule.direction,
            "dtype": X.dtype,
        }
        return edge_neighbourhoods(*pair, X.shape[0], **options)
    if graph is not None:
        graph = _labelled_graph(X, graph, rule.undirected)
    return moved_sets(_host_sets(X, graph, settings)[1], device)


# --- workspaces --------------------------------------------------------------------------------------------


def torch_device(device: Device) -> Any:
    """The torch device; torch is an extra."""
    require("torch", extra="torch" if device.name == "cpu" else "gpu")
    from fishergraph.ops import torch_device as devices

    return devices.find_device(device.name)


def in_host_workspace(X: Rows, sets: Multisets | LiftedSets, device: Device) -> tuple[Any, Sets, Workspace]:
    """Host arrays in their workspace: NumPy, or tensors of a device that reads X in blocks."""
    if device.name == "cpu" and not choose_engine(device="cpu").tensors:
        return X, sets, NUMPY
    target = torch_device(device)
    from fishergraph.ops.tensor_edges import moved_sets
    from fishergraph.ops.tensor_rows import HostRows
    from fishergraph.ops.torch_device import tensor_workspace

    workspace = tensor_workspace(target, precision=device.precision, host_output=True)
    return HostRows(X, target), moved_sets(sets, target), workspace


def in_tensor_workspace(X: Any, sets: Sets, settings: InputSettings) -> tuple[Any, Sets, Workspace]:
    """Validated tensors, and the workspace of their device."""
    from fishergraph.ops.tensor_rows import SparseRows
    from fishergraph.ops.torch_device import tensor_workspace

    _arrays.check_weight_scale(sets.weights, X.dtype)
    workspace = tensor_workspace(X.device, precision=settings.device.precision, host_output=False)
    return X if str(X.layout) == "torch.strided" else SparseRows(X), sets, workspace
