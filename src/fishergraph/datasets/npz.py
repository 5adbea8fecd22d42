"""Graphs stored as `<name>.npz`.

Arrays of a file: `edge_index` (2, edge), in one direction or both, and `undirected`, true where it stands for
both, which `load_graph` takes for granted and other readers do not; `y` (node,); features dense `x`
(node, feature) or the CSR pieces `x_data, x_indices, x_indptr, x_shape`; optionally `train_mask, val_mask,
test_mask` of shape (node,) or (split, node), `ids` (node,), `class_names` (class,), and the texts `licence`
and `source`.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from fishergraph import _npz_files
from fishergraph._archive_checks import check_npz
from fishergraph._file_checks import check_readable, check_regular, replacing
from fishergraph.datasets.prepare import check_edge_index, undirected_graph
from fishergraph.datasets.record import GraphData, Split

MASKS = ("train_mask", "val_mask", "test_mask")
UNREADABLE = (OSError, EOFError, ValueError, KeyError, NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error)


def read_npz(path: str | Path, name: str | None = None) -> GraphData:
    """The graph of one `.npz` file, symmetrised; pickled objects are refused."""
    path = Path(path)
    check_readable(path)
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
    sources, targets = read_edges(arrays, n_nodes, where)
    ids = arrays.get("ids")
    if ids is not None and ids.shape != (n_nodes,):
        raise misfit(where, f"'ids' of shape ({n_nodes},)", f"shape {ids.shape}")
    return GraphData(
        name=name,
        X=read_features(arrays, n_nodes, where),
        graph=undirected_graph(sources, targets, n_nodes),
        y=y,
        train=train,
        val=val,
        test=test,
        ids=ids,
        licence=str(arrays.get("licence", "")),
        source=str(arrays.get("source", where)),
        class_names=tuple(map(str, arrays["class_names"])) if "class_names" in arrays else None,
    )


def read_arrays(stream: IO[bytes], where: str, keys: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of the file by name: all, or those of `keys` that it has."""
    keys = None if keys is None else set(keys)
    try:
        check_npz(stream, keys)
        stream.seek(0)
        file = np.load(stream, allow_pickle=False)
        return _npz_files.native({key: file[key] for key in file.files if keys is None or key in keys})
    except UNREADABLE as error:
        raise ValueError(
            f"{where} must be an .npz file of plain arrays, but it cannot be read ({_npz_files.plain_reason(error)}); "
            "replace it."
        ) from error


def npz_keys(path: Path) -> set[str]:
    """The names of the arrays of a file; none where it is no npz file."""
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as file:
            return {name.removesuffix(".npy") for name in file.namelist()}
    except UNREADABLE:
        return set()


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
    if array.dtype.kind == "u" and array.max(initial=0) >= 2**63:
        raise misfit(where, f"integers below 2⁶³ in {key!r}", str(array.max()))
    return array.astype(np.int64)


def read_edges(arrays: dict[str, np.ndarray], n_nodes: int, where: str) -> np.ndarray:
    """The ends of all edges, (2, edge) int64."""
    edges = check_edge_index(f"edge_index in '{where}'", n_nodes, _array(arrays, "edge_index", where))
    return edges.astype(np.int64, copy=False)


def read_features(arrays: dict[str, np.ndarray], n_nodes: int, where: str, dense: str = "x", pieces: str = "x") -> Any:
    """The features, (node, feature) float32 and finite: the array `dense`, else CSR from the four `pieces`_data, …."""
    X: Any = _npz_files.read_features(where, arrays, dense, pieces)
    if X.shape[0] != n_nodes:
        raise misfit(where, f"features of {n_nodes} nodes, as many as there are", f"shape {X.shape}")
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


# --- writing --------------------------------------------------------------------------------------------

SMALL = 1 << 28  # bytes; more than that is written as it is, since packing it takes minutes


def write_npz(data: GraphData, path: str | Path) -> None:
    """Write a graph in the layout above, every edge once; the file appears complete or not at all."""
    path = Path(path)
    upper = sp.triu(data.graph, format="coo")
    ends = np.stack([upper.row, upper.col])
    arrays: dict[str, Any] = {"edge_index": ends, "undirected": np.array(True), "y": data.y}
    arrays |= _npz_files.feature_arrays(data.X)
    for key, part in zip(MASKS, (data.train, data.val, data.test), strict=True):
        if part is not None:
            arrays[key] = _mask(part, data.n_nodes)
    if data.ids is not None:
        arrays["ids"] = data.ids.astype(str) if data.ids.dtype == object else data.ids
    if data.class_names is not None:
        arrays["class_names"] = np.array(data.class_names, dtype=np.str_)
    arrays |= {key: np.array(text) for key in ("licence", "source") if (text := getattr(data, key))}
    save = np.savez_compressed if sum(array.nbytes for array in arrays.values()) < SMALL else np.savez
    with replacing(path) as part, part.open("wb") as stream:
        save(stream, **arrays)


def _mask(part: np.ndarray | list[np.ndarray], n_nodes: int) -> np.ndarray:
    """(node,) or (split, node), true where a node number is in the part."""
    if isinstance(part, list):
        return np.stack([_mask(one, n_nodes) for one in part])
    mask = np.zeros(n_nodes, dtype=bool)
    mask[part] = True
    return mask
