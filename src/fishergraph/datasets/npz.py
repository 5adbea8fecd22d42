"""Graphs stored as `<name>.npz`.

Arrays of a file: `edge_index` (2, edge), in one direction or both; `y` (node,); features dense `x`
(node, feature) or the CSR pieces `x_data, x_indices, x_indptr, x_shape`; optionally `train_mask, val_mask,
test_mask` of shape (node,) or (split, node), `ids` (node,), and the texts `licence` and `source`.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from fishergraph.datasets.record import GraphData, Split, undirected_graph

MASKS = ("train_mask", "val_mask", "test_mask")
UNREADABLE = (OSError, EOFError, ValueError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def read_npz(path: str | Path, name: str | None = None) -> GraphData:
    """The graph of one `.npz` file, symmetrised; pickled objects are refused."""
    path = Path(path)
    with path.open("rb") as stream:
        return read_npz_stream(stream, name or path.stem, str(path))


def read_npz_stream(stream: IO[bytes], name: str, where: str) -> GraphData:
    """The graph of an open `.npz` file; `where` names the file in errors."""
    arrays = read_arrays(stream, where)
    y = read_integers(arrays, "y", where)
    if y.ndim != 1 or y.size == 0:
        raise misfit(where, "'y' of shape (node,)", f"shape {y.shape}")
    n_nodes = y.shape[0]
    train, val, test = (_split(arrays, mask, n_nodes, where) for mask in MASKS)
    ids = arrays.get("ids")
    if ids is not None and ids.shape != (n_nodes,):
        raise misfit(where, f"'ids' of shape ({n_nodes},)", f"shape {ids.shape}")
    return GraphData(
        name=name,
        X=_features(arrays, n_nodes, where),
        graph=_graph(arrays, n_nodes, where),
        y=y,
        train=train,
        val=val,
        test=test,
        ids=ids,
        licence=str(arrays.get("licence", "")),
        source=str(arrays.get("source", where)),
    )


def read_arrays(stream: IO[bytes], where: str) -> dict[str, np.ndarray]:
    """All arrays of the file by name."""
    try:
        file = np.load(stream, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array")
        return {key: file[key] for key in file.files}
    except UNREADABLE as error:
        raise ValueError(
            f"{where} must be an .npz file of plain arrays, but it cannot be read ({error}); replace it."
        ) from error


def misfit(where: str, expected: str, got: str) -> ValueError:
    """The error for a file whose arrays do not make a graph."""
    return ValueError(f"{where} must hold {expected}, got {got}; see fishergraph.datasets.npz for the layout.")


def _array(arrays: dict[str, np.ndarray], key: str, where: str) -> np.ndarray:
    """The array called `key`, which the layout asks for."""
    if key not in arrays:
        have = ", ".join(sorted(arrays)) or "nothing"
        raise misfit(where, f"an array {key!r}", f"only {have}")
    return arrays[key]


def read_integers(arrays: dict[str, np.ndarray], key: str, where: str) -> np.ndarray:
    """The array called `key` as int64."""
    array = _array(arrays, key, where)
    if array.dtype.kind not in "iu":
        raise misfit(where, f"integers in {key!r}", f"dtype {array.dtype}")
    return array.astype(np.int64)


def _graph(arrays: dict[str, np.ndarray], n_nodes: int, where: str) -> sp.csr_array:
    """The symmetric adjacency of `edge_index`."""
    edges = read_integers(arrays, "edge_index", where)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise misfit(where, "'edge_index' of shape (2, edge)", f"shape {edges.shape}")
    if edges.size and (edges.min() < 0 or edges.max() >= n_nodes):
        raise misfit(where, f"node numbers 0 to {n_nodes - 1} in 'edge_index'", f"{edges.min()} to {edges.max()}")
    return undirected_graph(edges[0], edges[1], n_nodes)


def _features(arrays: dict[str, np.ndarray], n_nodes: int, where: str) -> Any:
    """The features, (node, feature) float32: dense from `x`, else CSR from its four pieces."""
    if "x" in arrays:
        X: Any = arrays["x"]
        if X.dtype.kind not in "fiub":
            raise misfit(where, "numbers in 'x'", f"dtype {X.dtype}")
        X = np.ascontiguousarray(X, dtype=np.float32)
    else:
        X = _csr(arrays, where)
    if X.ndim != 2 or X.shape[0] != n_nodes:
        raise misfit(where, f"features of {n_nodes} nodes, as many as 'y' has", f"shape {X.shape}")
    return X


def _csr(arrays: dict[str, np.ndarray], where: str) -> sp.csr_array:
    """The CSR features; every index is checked, since compiled code will trust them."""
    data = _array(arrays, "x_data", where)
    indices, indptr, shape = (read_integers(arrays, f"x_{key}", where) for key in ("indices", "indptr", "shape"))
    try:
        pieces = (data.astype(np.float32), indices, indptr)
        X = sp.csr_array(pieces, shape=(int(shape[0]), int(shape[1])))
        X.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise misfit(where, "matching CSR pieces x_data, x_indices, x_indptr, x_shape", str(error)) from error
    X.sum_duplicates()
    return X


def _split(arrays: dict[str, np.ndarray], key: str, n_nodes: int, where: str) -> Split:
    """The node numbers that a mask marks: one array, or a list for a mask of several splits."""
    if key not in arrays:
        return None
    mask = arrays[key]
    if mask.dtype != bool or mask.ndim not in (1, 2) or mask.shape[-1] != n_nodes:
        expected = f"{key!r} of shape ({n_nodes},) or (split, {n_nodes}) and dtype bool"
        raise misfit(where, expected, f"shape {mask.shape} and dtype {mask.dtype}")
    if mask.ndim == 1:
        return np.flatnonzero(mask).astype(np.int64)
    return [np.flatnonzero(row).astype(np.int64) for row in mask]
