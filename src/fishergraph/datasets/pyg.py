"""Graphs of PyTorch Geometric: `Data`, a dataset of one graph, or a processed file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from fishergraph._arrays import check_compressed, check_finite_rows
from fishergraph._errors import InputError
from fishergraph._optional import require
from fishergraph._records import check_edge_index, check_endpoints
from fishergraph._validation import check_integer
from fishergraph.datasets.records import GraphData, Split, undirected_graph
from fishergraph.io.npz import single

PROCESSED = ("processed/data.pt", "processed/geometric_data_processed.pt", "data.pt")


def is_pyg(obj: Any) -> bool:
    """Whether an object comes from PyTorch Geometric, without importing it."""
    return any(base.__module__.partition(".")[0] == "torch_geometric" for base in type(obj).__mro__)


def holds_pyg(path: Path) -> bool:
    """Whether a path is a `.pt` file, or a folder with a processed one."""
    return _file(path) is not None


def processed_file(path: Path) -> Path:
    """The processed file at a path, or in a folder."""
    return _file(path) or path


def _file(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix == ".pt" else None
    return next((path / file for file in PROCESSED if (path / file).is_file()), None)


def read_pyg(path: str | Path, name: str | None = None) -> GraphData:
    """The graph of a processed file, or of the folder of a dataset; nothing in it is run."""
    require("torch_geometric", extra="torch")
    from fishergraph.nn.pyg_file import load_processed

    path = Path(path)
    return from_pyg(load_processed(processed_file(path)), name or path.stem)


def from_pyg(obj: Any, name: str | None = None) -> GraphData:
    """The graph of a `Data` object, or of a dataset with one graph.

    It needs `edge_index` and `y`; without `x` the nodes have no features. Edges go both ways. `train_mask`, `val_mask`
    and `test_mask`, (node,) or (node, split), are its splits, or `get_idx_split()` of OGB's datasets.
    """
    named = getattr(obj, "name", None)
    data, name = _one(obj), name or (named if isinstance(named, str) else type(obj).__name__.lower())
    edges, y = (_numpy(getattr(data, key, None), key, name) for key in ("edge_index", "y"))
    n_nodes = _n_nodes(data, name)
    y = y.reshape(-1) if y.size == n_nodes else y
    if y.shape != (n_nodes,):
        expected, advice = f"have a label for each of its {n_nodes} nodes", "choose one task, or another dataset"
        raise InputError(parameter=name, expected=expected, got=f"y of shape {y.shape}", advice=advice)
    sources, targets = check_edge_index(edges, f"edge_index of {name}")
    check_endpoints(sources, targets, n_nodes)
    graph = undirected_graph(sources, targets, n_nodes)
    if hasattr(obj, "get_idx_split"):
        split = obj.get_idx_split()
        train, val, test = (np.sort(split[part].numpy()).astype(np.int64) for part in ("train", "valid", "test"))
    else:
        train, val, test = (_part(data, key, n_nodes, name) for key in ("train_mask", "val_mask", "test_mask"))
    return GraphData(name, _features(data, n_nodes, name), graph, _labels(y, name), train, val, test, source=name)


def _one(obj: Any) -> Any:
    """The `Data` of an object: itself, or the only one of a dataset."""
    if hasattr(obj, "edge_types"):
        expected, advice = "have one type of nodes", "call its to_homogeneous() first"
        raise InputError(parameter="a graph", expected=expected, got="a HeteroData", advice=advice)
    if hasattr(obj, "edge_index") and not hasattr(obj, "get_summary"):
        return obj
    if not hasattr(obj, "get_summary") or len(obj) != 1:
        n = len(obj) if hasattr(obj, "__len__") else "no"
        raise InputError(
            parameter="a dataset of labelled nodes",
            expected="hold one graph",
            got=f"{type(obj).__name__} with {n} graphs",
            advice="choose one of them, or pass all of them to FisherGraphEmbedding",
        )
    return obj[0]


def _numpy(tensor: Any, key: str, name: str) -> np.ndarray:
    """A tensor of the data as an array of numbers."""
    if tensor is None:
        raise InputError(parameter=name, expected=f"have {key}", got="Data without it", advice=f"set data.{key}")
    dense = hasattr(tensor, "detach") and str(tensor.layout) == "torch.strided"
    if not dense or tensor.is_quantized or tensor.is_complex():
        kind = f"{tensor.dtype} ({tensor.layout})" if hasattr(tensor, "detach") else type(tensor).__name__
        raise InputError(parameter=f"{key} of {name}", expected="be a dense tensor of numbers", got=kind)
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor).numpy()


def _n_nodes(data: Any, name: str) -> int:
    """The number of nodes, by `num_nodes` or by the tensors."""
    try:
        return check_integer(data.num_nodes, "num_nodes", least=1)
    except Exception as error:  # PyTorch Geometric infers it from any attribute
        raise InputError(parameter=name, expected="have num_nodes", got="none", advice="set data.num_nodes") from error


def _labels(y: np.ndarray, name: str) -> np.ndarray:
    """Class numbers, −1 for missing ones."""
    finite = np.isfinite(y)
    fractions = y[finite & (y != np.trunc(np.clip(y, -(2.0**53), 2.0**53)))] if y.dtype.kind == "f" else y[:0]
    if len(fractions):
        value, advice = float(fractions[0]), "bin the values into classes"
        raise InputError(parameter=f"y of {name}", value=value, expected="hold class numbers", advice=advice)
    return np.where(finite, y, -1).astype(np.int64)


def _features(data: Any, n_nodes: int, name: str) -> Any:
    """The features, (node, feature); CSR if they are a sparse tensor."""
    x = getattr(data, "x", None)
    if x is None:
        return np.empty((n_nodes, 0), dtype=np.float32)
    if hasattr(x, "to_torch_sparse_csr_tensor"):
        x = x.to_torch_sparse_csr_tensor()
    shape = tuple(getattr(x, "shape", ()))
    if not hasattr(x, "detach") or len(shape) not in (1, 2) or len(x) != n_nodes:
        expected = f"have a row for each of the {n_nodes} nodes"
        raise InputError(parameter=f"x of {name}", expected=expected, got=f"shape {shape}")
    what = f"x of {name}"
    if str(x.layout) == "torch.strided":
        X: Any = np.ascontiguousarray(single(_numpy(x, "x", name), what)).reshape(n_nodes, -1)
    else:
        x = x.detach().cpu().to_sparse_csr()
        pieces = (single(_numpy(x.values(), "x", name), what), x.col_indices().numpy(), x.crow_indices().numpy())
        X = check_compressed(sp.csr_array(pieces, shape=shape), what)
    check_finite_rows(X, f"the features of {name}")
    return X


def _part(data: Any, key: str, n_nodes: int, name: str) -> Split:
    mask = getattr(data, key, None)
    if mask is None:
        return None
    marks = _numpy(mask, key, name)
    if marks.ndim not in (1, 2) or len(marks) != n_nodes or not np.isin(marks, (0, 1)).all():
        expected, got = f"be true or false for each of {n_nodes} nodes", f"{marks.dtype} of shape {marks.shape}"
        raise InputError(parameter=f"{key} of {name}", expected=expected, got=got)
    parts = [np.flatnonzero(column).astype(np.int64) for column in marks.reshape(n_nodes, -1).T]
    return parts if marks.ndim == 2 else parts[0]
