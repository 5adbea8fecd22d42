"""The door of the estimators: X checked, its graph as multisets, and the place where the work is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_torch_array
from sklearn.utils.validation import validate_data

from fishergraph import _checks, _graph_checks
from fishergraph._optional import require
from fishergraph.family import choose_family
from fishergraph.graph import Graph, as_graph, lists_edges, names_nodes
from fishergraph.multiset import Tuples, choose_multiset, makes_lifted, node_tuples, singletons
from fishergraph.ops import choose_backend
from fishergraph.ops.place import NUMPY, Place
from fishergraph.structural import structural_features

# Multisets that are built where the edges are; the others are built on the host.
_ON_DEVICE = {"neighbourhood": True, "open-neighbourhood": False}


def open_door(model: Any, X: Any, graph: Any, *, fitting: bool) -> tuple[Any, Any, Place]:
    """(X, multisets, place): the only place where input is looked at.

    Tensors stay tensors, on their device. NumPy and CSR matrices stay where they are too: on a device they are read in
    blocks. `model` is the estimator, whose parameters are checked.
    """
    if is_torch_array(X):
        _same_source(model, X, fitting)
        X = tensor_rows(model, X, fitting=fitting)
        return tensor_placed(model, X, _tensor_sets(model, X, graph, X.device))
    return host_placed(model, *host_door(model, X, graph, fitting=fitting))


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


def host_door(model: Any, X: Any, graph: Any, *, fitting: bool) -> tuple[Any, Any]:
    """X as NumPy or CSR, and the multisets of the graph."""
    if X is None and graph is None:
        raise ValueError("X or graph must be given, got None for both; pass features, a graph, or both.")
    _same_source(model, X, fitting)
    if graph is not None:
        graph = _labelled_graph(X, graph, model.undirected)
    if X is None:
        assert graph is not None
        X = structural_features(graph, model.structure, dim=model.dim, seed=model.structure_seed_)
    X = host_rows(model, X, fitting=fitting)
    return _host_sets(model, X, graph)


def check_no_graph(y: Any, X: Any) -> None:
    """Raise where a graph came in the place of y, which nothing looks at."""
    if y is None:
        return
    package, length = type(y).__module__.partition(".")[0], _length(y)
    square = sp.issparse(y) and y.shape[0] == y.shape[1]
    other = X is not None and None not in (length, _length(X)) and length != _length(X)
    if isinstance(y, Graph) or package in ("networkx", "igraph", "torch_geometric") or square or other:
        raise TypeError(
            f"y must be labels, one for each row of X, or be left out, got {type(y).__name__}, which are none; "
            "pass a graph as graph=…."
        )


def _length(values: Any) -> int | None:
    """The number of rows of an array, a matrix, a table or a list."""
    shape: Any = getattr(values, "shape", None)
    return shape[0] if shape else len(values) if isinstance(values, (list, tuple)) else None


def _same_source(model: Any, X: Any, fitting: bool) -> None:
    """Remember whether features come with the graph or from it; raise where a model that had them gets none.

    The other way round is allowed: a user may have computed the structural features.
    """
    if fitting:
        model.structural_ = X is None
    elif X is None and not getattr(model, "structural_", True):  # files of 0.1.0 do not say
        raise ValueError("X must be given, as it was for the fit, got None; pass the features, or fit again without.")


def _labelled_graph(X: Any, graph: Any, undirected: bool) -> Any:
    """The graph with its nodes in the order of X, where X and the graph name them."""
    labels, rows = _graph_checks.row_labels(X), _length(X)
    known: dict[str, Any] = {"node_ids": labels} if labels is not None and names_nodes(graph) else {}
    if rows and lists_edges(graph):
        known = {"n_nodes": rows}
    table = graph if labels is None and hasattr(graph, "columns") else None
    try:
        graph = as_graph(graph, undirected=undirected, **known)
    except ValueError as error:  # its wording is that of a call of as_graph
        said = str(error).replace("node_ids", "the index of X").replace("a larger n_nodes", "X with a row per node")
        raise ValueError(said) from error
    if rows and table is not None and graph.ids is not None:  # some rows have no edge, or the ids are no row numbers
        _graph_checks.check_counted(graph.ids, rows)
        graph = as_graph(table, undirected=undirected, n_nodes=rows)
    _graph_checks.check_same_order(labels, graph.ids)
    return graph


def host_rows(model: Any, X: Any, *, fitting: bool, name_row: Callable[[int], str] = _checks.plain_row) -> Any:
    """X as a C-ordered float matrix or CSR, with finite entries; `name_row(i)` names a row in an error."""
    if sp.issparse(X):
        _checks.check_compressed(X, "X")
    X = validate_data(
        model, X, reset=fitting, accept_sparse="csr", dtype=_float_types(X), order="C", ensure_all_finite=False
    )
    _checks.check_finite_rows(X, name_row=name_row)
    _checks.check_scale(X, normalize=enters_unit(model))
    if sp.issparse(X):
        X = sp.csr_array(X, copy=not X.has_canonical_format)
        X.sum_duplicates()
    _check_support(model, X, name_row)
    return X


def _float_types(X: Any) -> list[type]:
    """The types X may keep; the first is for what has neither: float64 for Python's numbers, float32 for integers."""
    # Of the types of columns scikit-learn looks at pandas' alone, and there not at objects.
    columns = getattr(X, "dtypes", getattr(getattr(X, "schema", None), "types", ()))
    wide = isinstance(X, (list, tuple)) or getattr(X, "dtype", None) in (object, np.longdouble)
    wide = wide or not {"float64", "double", "object"}.isdisjoint(str(kind).lower() for kind in columns)
    return [np.float64, np.float32] if wide else [np.float32, np.float64]


def _check_support(model: Any, X: Any, name_row: Callable[[int], str]) -> None:
    """Raise where rows of X lie outside the support of the model's family."""
    choose_family(model.family).check_points(X, name_row=name_row)


def _host_sets(model: Any, X: Any, graph: Any) -> tuple[Any, Any]:
    """(X, multisets) of a checked graph; without one every row is its own, or has no members where these are lifted."""
    if graph is None and not makes_lifted(model.multiset):
        return X, singletons(X.shape[0])
    if graph is None:
        graph = as_graph(sp.csr_array((X.shape[0], X.shape[0])))
    _graph_checks.check_same_rows(X.shape[0], graph.n_nodes)
    _checks.check_weight_scale(graph.weights, X.dtype)
    rule = choose_multiset(model.multiset)
    if isinstance(rule, Tuples):
        return _tuple_points(model, rule, X, graph)
    sets = rule(graph, model.weights, model.n_jobs)
    if sets.lifted:  # a path weighs the product of its edges
        _checks.check_weight_scale(sets.weights, X.dtype)
    return X, sets


def _tuple_points(model: Any, rule: Tuples, X: Any, graph: Any) -> tuple[Any, Any]:
    """(points, multisets) of the tuples of a graph."""
    if is_torch_array(X):
        raise TypeError(
            f"multiset={model.multiset!r} takes NumPy or CSR features, got a tensor; pass X.cpu().numpy(), "
            "and device='cuda' for the work on a card."
        )
    tuples = node_tuples(graph, rule.k, rule.s, weights=model.weights, max_tuples=rule.max_tuples)
    return tuples.features(X, normalize=enters_unit(model)), tuples.sets


def enters_unit(model: Any) -> bool:
    """Whether the rows of tuples are divided by their lengths: counts are never."""
    return model.normalize and choose_family(model.family).support != "counts"


def tensor_rows(model: Any, X: Any, *, fitting: bool, name_row: Callable[[int], str] = _checks.plain_row) -> Any:
    """X as a float tensor on the model's device, dense or in compressed rows, with finite entries."""
    from fishergraph.ops.torch_rows import check_tensor

    X = check_tensor(X, _device(model.device))
    _checks.check_feature_count(model, X.shape[1], fitting)
    values, sparse = (X, False) if str(X.layout) == "torch.strided" else (X.values(), True)
    _checks.check_finite_rows(values, indptr=X.crow_indices() if sparse else None, name_row=name_row)
    _checks.check_scale(values, normalize=enters_unit(model), n_features=X.shape[1])
    _check_support(model, X, name_row)
    return X


def tensor_placed(model: Any, X: Any, sets: Any) -> tuple[Any, Any, Place]:
    """Checked tensors, and the place they are in."""
    from fishergraph.ops.torch_device import tensor_place
    from fishergraph.ops.torch_rows import SparseRows

    _checks.check_weight_scale(sets.weights, X.dtype)
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
            *pair, X.shape[0], closed=_ON_DEVICE[model.multiset], weights=model.weights, undirected=model.undirected
        )
    if graph is not None:
        graph = _labelled_graph(X, graph, model.undirected)
    return moved_sets(_host_sets(model, X, graph)[1], device)
