"""The door of `FisherSetEmbedding`: whatever bags of vectors people have → points, and the multisets over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph import _checks
from fishergraph.estimators.door import host_placed, host_rows, tensor_placed, tensor_rows
from fishergraph.multiset import Multisets
from fishergraph.ops.place import Place


def open_sets(model: Any, X: Any, weights: Any, *, fitting: bool) -> tuple[Any, Any, Place]:
    """(points, multisets, place): the only place where the sets are looked at. `model` is the estimator."""
    points, indptr = gather_sets(X)
    if indptr is not None and points.shape[0] == 0:
        points = _no_members(model, points, fitting)
    check_rows = tensor_rows if is_torch_array(points) else host_rows
    points = check_rows(model, points, fitting=fitting, name_row=_name_row(indptr))
    if indptr is None:
        indptr = np.arange(points.shape[0] + 1)
    sets = _member_sets(indptr, weights, points)
    if not is_torch_array(points):
        return host_placed(model, points, sets)
    from fishergraph.ops.torch_graph import moved_sets

    return tensor_placed(model, points, moved_sets(sets, points.device))


def gather_sets(X: Any) -> tuple[Any, np.ndarray | None]:
    """(points, indptr): the members of all sets one below the other, and where each set begins.

    `indptr` is None for a matrix, whose rows are sets of one point each.
    """
    if isinstance(X, tuple) and len(X) == 2 and _ndim(X[0]) == 2 and _ndim(X[1]) == 1:
        points = X[0] if hasattr(X[0], "shape") else np.asarray(X[0])
        return points, _check_indptr(X[1], points.shape[0])
    if _ndim(X) == 3:
        X = list(X)  # sets of one size
    if _ndim(X) == 1:
        X = getattr(X, "to_numpy", lambda: X)()  # a column of a table
    if not _lists_sets(X):
        return X, None
    sets = [_as_set(entry, number) for number, entry in enumerate(X)]
    sizes = np.array([entry.shape[0] for entry in sets], dtype=np.int64)
    return _stacked(sets), np.concatenate([[0], np.cumsum(sizes)])


def _ndim(entry: Any) -> int:
    """The number of axes of an array, a table, a tensor, or nested lists."""
    if hasattr(entry, "shape"):
        return len(entry.shape)
    if not isinstance(entry, Sequence) or isinstance(entry, str):
        return 0
    return 1 + (max(_ndim(part) for part in entry[:1]) if len(entry) else 0)


def _lists_sets(X: Any) -> bool:
    """Whether X is a list (or an array of objects) with sets in it, not the rows of a matrix."""
    objects = isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype == object
    if not objects and not isinstance(X, (list, tuple)):
        return False
    kinds = [_ndim(entry) for entry in X]
    if any(kind >= 2 for kind in kinds):
        return True
    lengths = {len(entry) for entry, kind in zip(X, kinds, strict=True) if kind == 1}
    if len(lengths) > 1:  # rows of a matrix have one length, so these are sets of numbers
        raise ValueError(
            f"a set must have the shape (member, feature), got lists of {min(lengths)} to {max(lengths)} numbers; "
            "pass sets of single numbers as columns, numbers[:, None]."
        )
    return bool(lengths) and lengths == {0}


def _as_set(entry: Any, number: int) -> Any:
    """One set as a matrix of any kind; an empty list has no members."""
    if hasattr(entry, "to_numpy"):
        entry = entry.to_numpy()
    matrix = entry if sp.issparse(entry) or is_torch_array(entry) else np.asarray(entry)
    if matrix.ndim == 1 and matrix.shape[0] == 0:
        return np.empty((0, 0), dtype=np.float32)
    if matrix.ndim != 2:
        raise ValueError(
            f"a set must have the shape (member, feature), got shape {tuple(matrix.shape)} in set {number}; "
            "reshape it, a single vector with x[None]."
        )
    return matrix


def _stacked(sets: list[Any]) -> Any:
    """The members of all sets one below the other; all sets have one kind and one number of features."""
    filled = [(number, entry) for number, entry in enumerate(sets) if entry.shape[0] > 0]
    if not filled:
        return max(sets, key=lambda entry: entry.shape[1])
    first, like = filled[0]
    for number, entry in filled:
        if entry.shape[1] != like.shape[1]:
            raise ValueError(
                f"all sets must have the same number of features, got {like.shape[1]} in set {first} and "
                f"{entry.shape[1]} in set {number}; pass vectors of one kind."
            )
        if is_torch_array(entry) != is_torch_array(like):
            raise TypeError(
                f"sets must be all tensors or all arrays, got {type(like).__name__} in set {first} and "
                f"{type(entry).__name__} in set {number}; convert one of them."
            )
    parts = [entry for _, entry in filled]
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return array_namespace(*parts).concat(parts, axis=0) if is_torch_array(like) else np.concatenate(parts)


def _no_members(model: Any, points: Any, fitting: bool) -> Any:
    """A point that belongs to no set, where the sets have no members; there is nothing to learn from such sets."""
    if fitting:
        raise ValueError("fit needs at least one set with a member, got empty sets only; pass sets that have members.")
    if sp.issparse(points):
        points = points.toarray()
    xp = array_namespace(points)
    return xp.zeros((1, points.shape[1] or model.n_features_in_), dtype=xp.float32, device=device_of(points))


def _check_indptr(indptr: Any, n_points: int) -> np.ndarray:
    """`indptr` of (points, indptr), which rises from 0 to the number of points."""
    array = np.asarray(indptr.cpu() if is_torch_array(indptr) else indptr)
    sound = array.dtype.kind in "iu" and len(array) > 1 and array[0] == 0 and array[-1] == n_points
    if not sound or (np.diff(array.astype(np.int64)) < 0).any():
        ends = f"{array[0]} … {array[-1]}" if len(array) else "nothing"
        raise ValueError(
            f"indptr must be whole numbers that rise from 0 to the {n_points} points, one more than there are sets, "
            f"got {ends} of {array.dtype}; make it of the sets' sizes, np.concatenate([[0], np.cumsum(sizes)])."
        )
    return array.astype(np.int64)


def _name_row(indptr: np.ndarray | None) -> Any:
    """row number → how an error calls it."""
    if indptr is None:
        return _checks.plain_row

    def name(row: int) -> str:
        number = int(np.searchsorted(indptr, row, side="right")) - 1
        return f"row {row - indptr[number]} of set {number}"

    return name


def _member_sets(indptr: np.ndarray, weights: Any, points: Any) -> Multisets:
    """The multisets of consecutive points; a member of weight zero is none."""
    n_points = points.shape[0]
    members = np.arange(int(indptr[-1]), dtype=np.int32 if n_points < 2**31 else np.int64)
    if weights is None:
        return Multisets(indptr, members, None, n_points)
    values = _check_weights(weights, indptr)
    live = values > 0
    counted = np.concatenate([[0], np.cumsum(live)])
    kept = values[live].astype(np.float64 if "float64" in str(points.dtype) else np.float32)
    _checks.check_weight_scale(kept, points.dtype, "member")
    return Multisets(counted[indptr], members[live], kept, n_points)


def _check_weights(weights: Any, indptr: np.ndarray) -> np.ndarray:
    """One finite weight, not negative, per member: a flat array, or one array per set."""
    if not hasattr(weights, "shape") or (isinstance(weights, np.ndarray) and weights.dtype.kind == "O"):
        parts = [np.asarray(part, dtype=np.float64).ravel() for part in weights]
        sizes = np.diff(indptr)
        if len(parts) == len(sizes):
            bad = next((k for k, part in enumerate(parts) if len(part) != sizes[k]), None)
            if bad is not None:
                raise ValueError(
                    f"weights must hold one number per member, got {len(parts[bad])} for the {sizes[bad]} members of "
                    f"set {bad}; pass one array per set."
                )
        weights = np.concatenate(parts) if parts else np.zeros(0)
    values = np.asarray(weights.cpu() if is_torch_array(weights) else weights, dtype=np.float64)
    if values.shape != (int(indptr[-1]),):
        raise ValueError(
            f"weights must hold one number for each of the {indptr[-1]} members, got shape {values.shape}; pass one "
            "array per set, or one of all members."
        )
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(
            f"weights must be finite and not negative, got {values[wrong[0]]:g} in {_name_row(indptr)(int(wrong[0]))} "
            "(the first bad one); repair or drop such members."
        )
    return values
