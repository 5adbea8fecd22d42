"""The door of the estimators: X checked, its graph as multisets, and the place where the work is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp
from array_api_compat import is_torch_array
from sklearn.utils.validation import check_array, validate_data

from fishergraph import _alignment, _arrays, _validation
from fishergraph._arrays import as_floats, check_column_names
from fishergraph._optional import require
from fishergraph.estimators.given import features_and_graph
from fishergraph.estimators.progress import costing, progress_bar
from fishergraph.family import choose_family
from fishergraph.graph import Graph, as_graph, lists_edges, names_nodes
from fishergraph.io.columns import edge_table
from fishergraph.multiset import Tuples, choose_multiset, makes_lifted, node_tuples, singletons
from fishergraph.ops import choose_backend
from fishergraph.ops.place import NUMPY, Place
from fishergraph.structural import structural_features

# Multisets that are built where the edges are; the others are built on the host.
_ON_DEVICE = {"neighbourhood": True, "open-neighbourhood": False}


def open_door(model: Any, X: Any, graph: Any, *, fitting: bool) -> tuple[Any, Any, Place, Any]:
    """(X, multisets, place, row ids): the only place where input is looked at. The ids are those of `host_door`.

    Tensors stay tensors, on their device. NumPy and CSR matrices stay where they are too: on a device they are read in
    blocks. `model` is the estimator, whose parameters are checked.
    """
    X, graph = features_and_graph(X, graph, fitting=fitting)
    if is_torch_array(X):
        _same_source(model, X, graph, fitting)
        X = tensor_rows(model, X, fitting=fitting)
        return *tensor_placed(model, X, _tensor_sets(model, X, graph, X.device)), None
    X, sets, ids = _host_input(model, X, graph, fitting)
    return *host_placed(model, X, sets), ids


def host_placed(model: Any, X: Any, sets: Any) -> tuple[Any, Any, Place]:
    """Checked host arrays where the work is done: here, or read in blocks by a device."""
    tensors = model.backend is not None and choose_backend(model.backend, device=model.device.partition(":")[0]).tensors
    if model.device == "cpu" and not tensors:
        return X, sets, NUMPY
    device = _device(model.device)
    from fishergraph.ops.torch_device import tensor_place
    from fishergraph.ops.torch_graph import moved_sets
    from fishergraph.ops.torch_rows import HostRows

    place = tensor_place(device, precision=model.precision, host_output=True)
    return HostRows(X, device), moved_sets(sets, device), place


def _device(name: str) -> Any:
    """The torch device of that name; torch is an extra."""
    require("torch", extra="torch" if name == "cpu" else "gpu")
    from fishergraph.ops import torch_device

    return torch_device.find_device(name)


def host_door(model: Any, X: Any, graph: Any, *, fitting: bool) -> tuple[Any, Any, Any]:
    """X as NumPy or CSR, the multisets of the graph, and the ids of the rows: the index of a DataFrame, else those of
    the graph's nodes, else None."""
    X, graph = features_and_graph(X, graph, fitting=fitting)
    return _host_input(model, X, graph, fitting)


def _host_input(model: Any, X: Any, graph: Any, fitting: bool) -> tuple[Any, Any, Any]:
    """`host_door` of features and a graph that stand where they belong."""
    if X is None and graph is None:
        raise TypeError("X or graph must be given, got None for both; pass features, a graph, or both.")
    _same_source(model, X, graph, fitting)
    if graph is not None:
        graph = _labelled_graph(X, graph, model.undirected)
    ids = getattr(X, "index", None) if hasattr(X, "iloc") else getattr(graph, "ids", None)
    if X is None:
        with costing(progress_bar(model.verbose), "structure", 1.0):
            X = structural_features(graph, model.structure, dim=model.dim, seed=model.structure_seed_)
    X = host_rows(model, X, fitting=fitting)
    return *_host_sets(model, X, graph), ids


def check_no_graph(y: Any, X: Any, graph: Any) -> None:
    """Raise where a graph came in the place of y, which nothing looks at."""
    if y is None:
        return
    package, length = type(y).__module__.partition(".")[0], _length(y)
    square = sp.issparse(y) and y.shape[0] == y.shape[1]
    other = None not in (length, _length(X)) and length != _length(X) if X is not None else graph is None
    if isinstance(y, Graph) or package in ("networkx", "igraph", "torch_geometric") or square or other:
        raise TypeError(
            f"y must be labels, one for each row of X, or be left out, got {type(y).__name__}, which are none; "
            "pass a graph as graph=…."
        )


def _length(values: Any) -> int | None:
    """The number of rows of an array, a matrix, a table or a list."""
    shape: Any = getattr(values, "shape", None)
    return shape[0] if shape else len(values) if isinstance(values, (list, tuple)) else None


def _same_source(model: Any, X: Any, graph: Any, fitting: bool) -> None:
    """Remember whether there were features and a graph; raise where a fitted model gets one and not the other.

    Features for a model without are allowed: a user may have computed the structural ones.
    """
    if fitting:
        model.structural_, model.needs_graph_ = X is None, graph is not None
        return
    # Files of earlier versions do not say.
    needs_graph = getattr(model, "needs_graph_", graph is not None)
    if X is None and not getattr(model, "structural_", True):
        raise ValueError("X must be given, as it was for the fit, got None; pass the features, or fit again without.")
    if needs_graph and graph is None:
        raise ValueError(
            "graph must be given, as it was for the fit, got None; add graph=… to the call, the graph of these rows, "
            "or graph=scipy.sparse.csr_array((len(X), len(X))) if they have no edges."
        )
    if graph is not None and not needs_graph:
        raise ValueError("graph must be left out, as it was for the fit, got one; leave it out, or fit again with it.")


def _labelled_graph(X: Any, graph: Any, undirected: bool) -> Any:
    """The graph with its nodes in the order of X, where X and the graph name them."""
    labels, rows = _alignment.row_labels(X), _length(X)
    graph = edge_table(graph) if isinstance(graph, list) else graph
    known: dict[str, Any] = {"node_ids": labels} if labels is not None and names_nodes(graph) else {}
    if rows and lists_edges(graph):
        known = {"n_nodes": rows}
    table = graph if labels is None and hasattr(graph, "columns") else None
    try:
        graph = as_graph(graph, undirected=undirected, **known)
    except ValueError as error:  # its wording is that of a call of as_graph
        said = str(error).replace("node_ids", "the index of X").replace("a larger n_nodes", "X with a row per node")
        raise ValueError(said) from error
    if rows and table is not None and (graph.ids is not None or graph.n_nodes < rows):
        if graph.ids is not None:  # some rows have no edge, or the ids are no row numbers
            _alignment.check_counted(graph.ids, rows)
        graph = as_graph(table, undirected=undirected, n_nodes=rows)
    _alignment.check_same_order(labels, graph.ids)
    return graph


def host_rows(model: Any, X: Any, *, fitting: bool, name_row: Callable[[int], str] = _arrays.plain_row) -> Any:
    """X as a C-ordered float matrix or CSR, with finite entries; `name_row(i)` names a row in an error."""
    rows = as_floats(X, "X")
    options: Any = {"accept_sparse": "csr", "dtype": rows.dtype, "ensure_all_finite": False, "estimator": model}
    rows = check_array(rows, input_name="X", **options)
    check_column_names(X)
    validate_data(model, X, reset=fitting, skip_check_array=True)  # the number and the names of the columns
    X = rows
    _arrays.check_finite_rows(X, name_row=name_row)
    _arrays.check_scale(X, normalize=enters_unit(model))
    if sp.issparse(X):
        X = sp.csr_array(X, copy=not X.has_canonical_format)
        X.sum_duplicates()
    _check_support(model, X, name_row)
    return X


def _check_support(model: Any, X: Any, name_row: Callable[[int], str]) -> None:
    """Raise where rows of X lie outside the support of the model's family."""
    choose_family(model.family).check_points(X, name_row=name_row)


def _host_sets(model: Any, X: Any, graph: Any) -> tuple[Any, Any]:
    """(X, multisets) of a checked graph; without one every row is its own, or has no members where these are lifted."""
    if graph is None and not makes_lifted(model.multiset):
        return X, singletons(X.shape[0])
    if graph is None:
        graph = as_graph(sp.csr_array((X.shape[0], X.shape[0])))
    _alignment.check_same_rows(X.shape[0], graph.n_nodes)
    _arrays.check_weight_scale(graph.weights, X.dtype)
    rule = choose_multiset(model.multiset)
    options: dict[str, Any] = {"dtype": str(X.dtype).removeprefix("torch.")}
    if isinstance(model.multiset, str) and model.multiset in _ON_DEVICE:  # at once
        return X, rule(graph, model.weights, model.n_jobs, **options)
    with costing(progress_bar(model.verbose), "multisets", 1.0):
        if isinstance(rule, Tuples):
            return _tuple_points(model, rule, X, graph)
        sets = rule(graph, model.weights, model.n_jobs, **options)
    if sets.lifted:  # a path weighs the product of its edges
        _arrays.check_weight_scale(sets.weights, X.dtype)
    return X, sets


def _tuple_points(model: Any, rule: Tuples, X: Any, graph: Any) -> tuple[Any, Any]:
    """(points, multisets) of the tuples of a graph."""
    if is_torch_array(X):
        raise TypeError(
            f"multiset={model.multiset!r} takes NumPy or CSR features, got a tensor; pass X.cpu().numpy(), "
            "and device='cuda' for the work on a card."
        )
    tuples = node_tuples(graph, rule.k, rule.s, weights=model.weights, max_tuples=rule.max_tuples, dtype=X.dtype)
    return tuples.features(X, normalize=enters_unit(model)), tuples.sets


def enters_unit(model: Any) -> bool:
    """Whether the rows of tuples are divided by their lengths: counts are never."""
    return model.normalize and choose_family(model.family).support != "counts"


def tensor_rows(model: Any, X: Any, *, fitting: bool, name_row: Callable[[int], str] = _arrays.plain_row) -> Any:
    """X as a float tensor on the model's device, dense or in compressed rows, with finite entries."""
    from fishergraph.ops.torch_rows import check_tensor

    X = check_tensor(X, _device(model.device))
    _validation.check_feature_count(model, X.shape[1], fitting)
    values, sparse = (X, False) if str(X.layout) == "torch.strided" else (X.values(), True)
    _arrays.check_finite_rows(values, indptr=X.crow_indices() if sparse else None, name_row=name_row)
    _arrays.check_scale(values, normalize=enters_unit(model), n_features=X.shape[1])
    _check_support(model, X, name_row)
    return X


def tensor_placed(model: Any, X: Any, sets: Any) -> tuple[Any, Any, Place]:
    """Checked tensors, and the place they are in."""
    from fishergraph.ops.torch_device import tensor_place
    from fishergraph.ops.torch_rows import SparseRows

    _arrays.check_weight_scale(sets.weights, X.dtype)
    place = tensor_place(X.device, precision=model.precision, host_output=False)
    return X if str(X.layout) == "torch.strided" else SparseRows(X), sets, place


def _tensor_sets(model: Any, X: Any, graph: Any, device: Any) -> Any:
    """Prepared sets as they are; an edge list on the device by sorting it there; anything else through the host."""
    from fishergraph.ops.torch_graph import edge_neighbourhoods, given_sets, moved_sets
    from fishergraph.ops.torch_sets import TensorSets

    if isinstance(graph, TensorSets):
        if makes_lifted(model.multiset):
            raise ValueError(
                f"graph must hold edges for multiset={model.multiset!r}, got TensorSets, which are multisets of rows; "
                "pass the edges, or leave multiset='neighbourhood'."
            )
        return given_sets(graph, X.shape[0], device)
    pair: tuple[Any, Any] = graph if isinstance(graph, tuple) and len(graph) == 2 else (graph, None)
    here = all(is_torch_array(part) and part.device == device for part in pair if part is not None)
    if graph is not None and here and isinstance(model.multiset, str) and model.multiset in _ON_DEVICE:
        return edge_neighbourhoods(
            *pair,
            X.shape[0],
            closed=_ON_DEVICE[model.multiset],
            weights=model.weights,
            undirected=model.undirected,
            dtype=X.dtype,
        )
    if graph is not None:
        graph = _labelled_graph(X, graph, model.undirected)
    return moved_sets(_host_sets(model, X, graph)[1], device)
