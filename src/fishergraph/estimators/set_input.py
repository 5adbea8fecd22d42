"""The input of `FisherSetEmbedding`: whatever bags of vectors people have → points, and the multisets over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, ValuesView
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_torch_array
from array_api_compat import device as device_of

from fishergraph import _arrays
from fishergraph._arrays import real_array, unmasked
from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import unchecked
from fishergraph._typing import Rows, Sets
from fishergraph.device import Workspace
from fishergraph.estimators.inputs import (
    InputSettings,
    host_rows,
    in_host_workspace,
    in_tensor_workspace,
    tensor_rows,
)
from fishergraph.multiset import Multisets

# What users pass: a list of matrices, an array, (points, indptr), or a column of a table; validation names the rest.
SetsLike: TypeAlias = object
WeightsLike: TypeAlias = object  # one array per set, or one of all members


class SetInput(NamedTuple):
    """The points of all members, the multisets over them, the workspace, and row index → its name in an error."""

    points: Any
    sets: Sets
    workspace: Workspace
    name_row: Callable[[int], str]


def read_sets(X: SetsLike, weights: WeightsLike, settings: InputSettings, n_features: int | None) -> SetInput:
    """Validate the sets; `n_features` are those of the fit, or None while fitting."""
    points, indptr, columns = gather_sets(X)
    if indptr is not None and points.shape[0] == 0:
        points = _no_members(points, n_features)
    settings = replace(settings, name_row=_name_row(indptr))
    check_rows = tensor_rows if is_torch_array(points) else host_rows
    points = check_rows(_with_columns(points, columns), settings)
    if indptr is None:
        indptr = np.arange(points.shape[0] + 1)
    sets = _member_sets(indptr, weights, points)
    if not is_torch_array(points):
        return SetInput(*in_host_workspace(points, sets, settings.device), settings.name_row)
    from fishergraph.ops.tensor_edges import moved_sets

    return SetInput(*in_tensor_workspace(points, moved_sets(sets, points.device), settings), settings.name_row)


def gather_sets(X: Any) -> tuple[Any, np.ndarray | None, list[Any] | None]:
    """(points, indptr, columns): the members of all sets one below the other, where each set begins, and the column
    names of sets that are tables.

    `indptr` is None for a matrix, whose rows are sets of one point each.
    """
    X = _listed(X)
    if isinstance(X, tuple) and len(X) == 2 and _ndim(X[0]) == 2 and _ndim(X[1]) == 1:
        points = X[0] if hasattr(X[0], "shape") else np.asarray(X[0])
        return points, _check_indptr(X[1], points.shape[0]), None
    if _ndim(X) == 3:
        X = list(X)  # sets of one size
    if _ndim(X) == 1:
        X = getattr(X, "to_numpy", lambda: X)()  # a column of a table
    if not _lists_sets(X):
        return X, None, None
    columns = _check_columns(X)
    sets = [_as_set(entry, number) for number, entry in enumerate(X)]
    sizes = np.array([entry.shape[0] for entry in sets], dtype=np.int64)
    return _stacked(sets), np.concatenate([[0], np.cumsum(sizes)]), columns


def _listed(X: Any) -> Any:
    """X, with an iterator or the values of a dictionary as a list."""
    X = list(X) if isinstance(X, (Iterator, ValuesView)) else np.asarray(X) if isinstance(X, memoryview) else X
    if isinstance(X, (list, tuple)) and len(X) == 0:
        raise InputError(
            parameter="X",
            expected="hold at least one set",
            got="an empty list",
            advice="pass a list of (member, feature) matrices",
        )
    arrays = hasattr(X, "shape") or hasattr(X, "__array__") or (isinstance(X, Sequence) and not isinstance(X, str))
    pairs = isinstance(X, list) and any(isinstance(e, tuple) and len(e) == 2 and _ndim(e[1]) == 2 for e in X)
    if not arrays or pairs:
        got = "pairs with a matrix each" if pairs else type(X).__name__
        raise InputTypeError(
            parameter="X",
            expected="be a list of sets, an array or (points, indptr)",
            got=f"{got}",
            advice="pass list(X.values()) of a dictionary, and "
            "[rows.drop(columns='set') for _, rows in table.groupby('set')] of groups",
        )
    return X


def _check_columns(X: Sequence[Any]) -> list[Any] | None:
    """The columns of the tables among the sets, which must be the same, or None."""
    tables = [
        (k, list(e.columns)) for k, e in enumerate(X) if hasattr(e, "to_numpy") and len(getattr(e, "columns", ()))
    ]
    for number, columns in tables[1:]:
        if columns != tables[0][1]:
            raise InputError(
                parameter="all sets",
                expected="have the same columns in the same order",
                got=f"{tables[0][1]} in set {tables[0][0]} and {columns} in set {number}",
                advice="choose and order them, frame[columns]",
            )
    return tables[0][1] if tables else None


def _with_columns(points: Any, names: list[Any] | None) -> Any:
    """The members as a table, whose columns scikit-learn compares with those of fit; pandas keeps the type."""
    if names is None or not all(isinstance(name, str) for name in names):
        return points
    if not isinstance(points, np.ndarray) or points.shape[1] != len(names):
        return points
    try:
        from pandas import DataFrame
    except ImportError:
        return points
    return DataFrame(points, columns=names)


def _ndim(entry: object) -> int:
    """The number of axes of an array, a table, a tensor, or nested lists."""
    shape: Any = getattr(entry, "shape", None)
    if shape is not None:
        return len(shape)
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
        raise InputError(
            parameter="a set",
            expected="have the shape (member, feature)",
            got=f"lists of {min(lengths)} to {max(lengths)} numbers",
            advice="pass sets of single numbers as columns, numbers[:, None]",
        )
    return bool(lengths) and lengths == {0}


def _as_set(entry: Any, number: int) -> Any:
    """One set as a matrix of any kind; an empty list has no members."""
    names = list(getattr(entry, "columns", ()))
    if hasattr(entry, "to_numpy"):
        entry = entry.to_numpy()
    # Stacking is compiled, and trusts the offsets of sparse sets.
    name = f"set {number}"
    entry = _arrays.check_compressed(entry, name) if sp.issparse(entry) else unmasked(entry, name)
    try:
        matrix = entry if sp.issparse(entry) or is_torch_array(entry) else np.asarray(entry)
    except ValueError:
        raise InputError(
            parameter="a set",
            expected="have the shape (member, feature)",
            got=f"rows of several lengths in set {number}",
            advice="give all members the same features",
        ) from None
    if matrix.ndim == 1 and matrix.shape[0] == 0:
        return np.empty((0, 0), dtype=np.float32)
    if matrix.ndim != 2:
        raise InputError(
            parameter="a set",
            expected="have the shape (member, feature)",
            got=f"shape {tuple(matrix.shape)} in set {number}",
            advice="reshape it, a single vector with x[None]",
        )
    return _numbers(matrix, number, names) if isinstance(matrix, np.ndarray) else matrix


def _numbers(matrix: np.ndarray, number: int, names: list[Any]) -> np.ndarray:
    """A set as numbers; a column of something else is named."""
    if matrix.dtype.kind in "fiub":
        return matrix
    for column, values in enumerate(matrix.T):
        try:
            values.astype(np.float64, casting="unsafe" if matrix.dtype.kind in "OUS" else "safe")
        except (TypeError, ValueError):
            name = names[column] if names else column
            raise InputError(
                parameter="a set",
                expected="hold numbers",
                got=f"texts, dates or missing values in column {name!r} of set {number}",
                advice="encode, fill or drop it",
            ) from None
    return matrix.astype(np.float64)


def _stacked(sets: list[Any]) -> Any:
    """The members of all sets one below the other; all sets have one kind and one number of features."""
    filled = [(number, entry) for number, entry in enumerate(sets) if entry.shape[0] > 0]
    if not filled:
        return max(sets, key=lambda entry: entry.shape[1])
    first, like = filled[0]
    for number, entry in filled:
        if entry.shape[1] != like.shape[1]:
            raise InputError(
                parameter="all sets",
                expected="have the same number of features",
                got=f"{like.shape[1]} in set {first} and {entry.shape[1]} in set {number}",
                advice="pass vectors of one kind",
            )
        if is_torch_array(entry) != is_torch_array(like):
            raise InputTypeError(
                parameter="sets",
                expected="be all tensors or all arrays",
                got=f"{type(like).__name__} in set {first} and {type(entry).__name__} in set {number}",
                advice="convert one of them",
            )
    parts = [entry for _, entry in filled]
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return array_namespace(*parts).concat(parts, axis=0) if is_torch_array(like) else np.concatenate(parts)


def _no_members(points: Any, n_features: int | None) -> Any:
    """A point that belongs to no set, if the sets have no members; there is nothing to learn from such sets."""
    if n_features is None:
        raise InputError("fit needs at least one set with a member, got empty sets only; pass sets that have members.")
    if sp.issparse(points):
        points = points.toarray()
    xp = array_namespace(points)
    kind = points.dtype if xp.isdtype(points.dtype, "real floating") else xp.float32
    return xp.ones((1, points.shape[1] or n_features), dtype=kind, device=device_of(points))


def _check_indptr(indptr: Any, n_points: int) -> np.ndarray:
    """`indptr` of (points, indptr), which rises from 0 to the number of points."""
    array = np.asarray(indptr.cpu() if is_torch_array(indptr) else indptr)
    sound = array.dtype.kind in "iu" and len(array) > 1 and array[0] == 0 and array[-1] == n_points
    if not sound or (np.diff(array.astype(np.int64)) < 0).any():
        ends = f"{array[0]} … {array[-1]}" if len(array) else "nothing"
        raise InputError(
            parameter="indptr",
            expected=f"be integers that rise from 0 to the {n_points} points, one more than there are sets",
            got=f"{ends} of {array.dtype}",
            advice="make it of the sets' sizes, np.concatenate([[0], np.cumsum(sizes)])",
        )
    return array.astype(np.int64)


def _name_row(indptr: np.ndarray | None) -> Any:
    """row index → its name in an error."""
    if indptr is None:
        return _arrays.plain_row

    def name(row: int) -> str:
        number = int(np.searchsorted(indptr, row, side="right")) - 1
        return f"row {row - indptr[number]} of set {number}"

    return name


def _member_sets(indptr: np.ndarray, weights: WeightsLike, points: Rows) -> Multisets:
    """The multisets of consecutive points, without members of weight zero."""
    n_points = points.shape[0]
    members = np.arange(int(indptr[-1]), dtype=np.int32 if n_points < 2**31 else np.int64)
    if weights is None:
        return unchecked(Multisets, indptr, members, None, n_points)
    values = _check_weights(weights, indptr)
    positive = values > 0
    counted = np.concatenate([[0], np.cumsum(positive)])
    kept = values[positive].astype(np.float64 if "float64" in str(points.dtype) else np.float32)
    _arrays.check_weight_scale(kept, points.dtype, "member")
    return unchecked(Multisets, counted[indptr], members[positive], kept, n_points)


def _check_weights(weights: WeightsLike, indptr: np.ndarray) -> np.ndarray:
    """One finite weight, not negative, per member: a flat array, or one array per set."""
    values = _flat_weights(weights, np.diff(indptr))
    if values.shape != (int(indptr[-1]),):
        raise InputError(
            parameter="weights",
            expected=f"hold one number for each of the {indptr[-1]} members",
            got=f"shape {values.shape}",
            advice="pass one array per set, or one of all members",
        )
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise InputError(
            parameter="weights",
            expected="be finite and not negative",
            got=f"{values[wrong[0]]:g} in {_name_row(indptr)(int(wrong[0]))} (the first bad one)",
            advice="repair or drop such members",
        )
    return values


def _flat_weights(weights: Any, sizes: np.ndarray) -> np.ndarray:
    """The weights of all members as one array, from one array, or from one per set."""
    try:
        if getattr(weights, "ndim", 0) == 1 and str(weights.dtype) != "object":
            return _host(weights).astype(np.float64)
        parts = [_host(part).astype(np.float64) for part in weights]
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            parameter="weights",
            expected="be one array of numbers per set, or one number per member",
            got=f"a {type(weights).__name__} that is neither",
            advice=f"pass such numbers: {str(error).rstrip('.')}",
        ) from error
    if all(part.ndim == 0 for part in parts):
        return np.array(parts, dtype=np.float64)
    if len(parts) != len(sizes):
        raise InputError(
            parameter="weights",
            expected="hold one array per set",
            got=f"{len(parts)} for {len(sizes)} sets",
            advice="pass as many as sets, or one flat array of all members",
        )
    wrong = next((k for k, part in enumerate(parts) if part.size != sizes[k]), None)
    if wrong is not None:
        raise InputError(
            parameter="weights",
            expected="hold one number per member",
            got=f"{parts[wrong].size} for the {sizes[wrong]} members of set {wrong}",
            advice="pass one array per set",
        )
    return np.concatenate([part.ravel() for part in parts])


def _host(values: Any) -> np.ndarray:
    return real_array(values.detach().cpu() if is_torch_array(values) else values, "weights")
