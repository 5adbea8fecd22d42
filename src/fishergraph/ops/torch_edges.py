"""The ways into `TensorSets`: what people have, with nothing copied that already is in compressed rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fishergraph._records import changed
from fishergraph._validation import check_integer
from fishergraph.multiset import LiftedSets, Multisets
from fishergraph.ops.torch_sets import TensorSets, check_range, check_sets

_MOST_SETS = 2**28  # whose offsets take 2 GiB


def tensor_sets(
    edges: Any, *, n_sets: int | None = None, n_points: int | None = None, weights: Tensor | None = None
) -> Any:
    """Multisets on tensors from what people have; nothing is copied that already is in compressed rows.

    Parameters
    ----------
    edges : `TensorSets`; `Multisets`, or `LiftedSets`, which stay lifted; a (2, edge) tensor or PyG `EdgeIndex`, from
        points (sources) to sets (targets); a sparse COO, CSR or CSC tensor whose rows are the sets and whose values are
        the weights.
    n_sets, n_points : where the edges do not say; the largest index plus one otherwise.
    weights : (edge,), in the order of the edges.
    """
    if weights is not None and not isinstance(weights, Tensor):
        raise TypeError(f"weights must be a tensor, got {type(weights).__name__}; use torch.as_tensor.")
    if isinstance(edges, LiftedSets):
        if weights is not None:
            raise ValueError("lifted sets have weights of their own, got weights too; leave them out.")
        return changed(edges, sets=tensor_sets(edges.sets), subgraphs=torch.as_tensor(edges.subgraphs))
    if isinstance(edges, (TensorSets, Multisets)) or getattr(edges, "layout", torch.strided) != torch.strided:
        sets = _from_compressed(edges, weights)
        _check_count("n_sets", n_sets, sets.n_sets)
        _check_count("n_points", n_points, sets.n_points)
        return sets
    if not isinstance(edges, Tensor):
        raise TypeError(
            f"edges must be a (2, edge) tensor, an EdgeIndex, a sparse tensor, Multisets or TensorSets, "
            f"got {type(edges).__name__}; convert it with torch.as_tensor."
        )
    return _from_edge_index(edges, n_sets, n_points, weights)


def _check_count(name: str, asked: int | None, found: int) -> None:
    if asked is not None and asked != found:
        raise ValueError(f"{name} must be {found}, as the edges say, got {asked!r}; leave it out.")


def _from_compressed(edges: Any, weights: Tensor | None) -> TensorSets:
    """Of sets that know their own sizes."""
    if isinstance(edges, TensorSets):
        return check_sets(edges if weights is None else edges.weighted(weights))
    if isinstance(edges, Multisets):
        arrays = [
            None if a is None else torch.from_numpy(_own(a)) for a in (edges.indptr, edges.indices, edges.weights)
        ]
        return check_sets(TensorSets(arrays[0], arrays[1], arrays[2] if weights is None else weights, edges.n_points))  # type: ignore
    if weights is not None:
        raise ValueError("the values of a sparse tensor are its weights, got weights too; leave them out.")
    return _from_sparse(edges)


def _own(array: np.ndarray) -> np.ndarray:
    """The array, copied where it is read-only: torch has no read-only tensors."""
    return array if array.flags.writeable else array.copy()


def _from_sparse(matrix: Tensor) -> TensorSets:
    """Rows are sets; CSR without a copy, the others sorted once."""
    if matrix.ndim != 2 or matrix.layout not in (torch.sparse_csr, torch.sparse_csc, torch.sparse_coo):
        raise ValueError(
            f"a sparse tensor must be a COO, CSR or CSC matrix, got {matrix.layout} of {tuple(matrix.shape)}; "
            "convert it."
        )
    n_sets, n_points = matrix.shape
    if matrix.layout == torch.sparse_csr:
        return check_sets(TensorSets(matrix.crow_indices().long(), matrix.col_indices(), matrix.values(), n_points))
    if matrix.layout == torch.sparse_csc:
        points = torch.repeat_interleave(torch.diff(matrix.ccol_indices()))
        targets, values = matrix.row_indices(), matrix.values()
    else:
        matrix = matrix.coalesce()
        (targets, points), values = matrix.indices(), matrix.values()
    return _sorted_by_set(points, targets, values, n_sets, n_points)


def _from_edge_index(edges: Tensor, n_sets: int | None, n_points: int | None, weights: Tensor | None) -> TensorSets:
    """Sources are points, targets are sets (PyG's flow)."""
    if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"edges must be int32 or int64 of shape (2, edge), got {tuple(edges.shape)} of {edges.dtype}; "
            "stack sources and targets."
        )
    size: Sequence[int | None] = getattr(edges, "sparse_size", lambda: (None, None))()
    in_order = getattr(edges, "is_sorted_by_col", False)
    points, targets = getattr(edges, "as_tensor", lambda: edges)()
    n_points, n_sets = (
        None if count is None else check_integer(count, name, least=0, most=_MOST_SETS)
        for name, count in (("n_points", n_points), ("n_sets", n_sets))
    )
    n_points = check_range(points, size[0] if n_points is None else n_points, "sources")
    n_sets = check_range(targets, size[1] if n_sets is None else n_sets, "targets")
    if weights is not None and weights.shape != points.shape:
        raise ValueError(
            f"weights must hold one number for each of the {len(points)} edges, got shape {tuple(weights.shape)}; "
            "pass them in the order of the edges."
        )
    if weights is not None and weights.device != edges.device:
        raise ValueError(f"weights must be on {edges.device} like the edges, got {weights.device}; move them there.")
    if in_order:
        borders = torch.arange(n_sets + 1, device=edges.device, dtype=targets.dtype)
        return check_sets(TensorSets(torch.searchsorted(targets.contiguous(), borders), points, weights, n_points))
    return _sorted_by_set(points, targets, weights, n_sets, n_points)


def _sorted_by_set(points: Tensor, targets: Tensor, weights: Tensor | None, n_sets: int, n_points: int) -> TensorSets:
    targets, order = torch.sort(targets, stable=True)
    borders = torch.arange(n_sets + 1, device=points.device, dtype=targets.dtype)
    indptr = torch.searchsorted(targets, borders)
    return check_sets(TensorSets(indptr, points[order], None if weights is None else weights[order], n_points))
