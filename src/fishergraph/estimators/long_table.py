"""Long tables: one row per member, and which group it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from array_api_compat import is_torch_array

from fishergraph._arrays import is_table, plain_array
from fishergraph._errors import InputError, InputTypeError
from fishergraph._repr import short_repr
from fishergraph.estimators.arguments import check_no_long_table
from fishergraph.estimators.set_input import SetsLike, WeightsLike
from fishergraph.io.columns import listed, to_ids
from fishergraph.io.near import did_you_mean, near_matches
from fishergraph.part.sets import index_like

GroupsLike = object  # the name of a column, or the group of every row


class GroupedSets(NamedTuple):
    """Sets whose members are the rows of a table.

    Attributes
    ----------
    points : matrix or table of shape (n_members, n_features)
        The members, those of one group below each other.
    indptr : array of shape (n_groups + 1,)
        Group k has the points indptr[k] … indptr[k + 1] − 1.
    ids : array of shape (n_groups,)
        The groups, in the order in which they first appear.
    order : array of shape (n_members,)
        The row of the table that every member was.
    """

    points: Any
    indptr: np.ndarray
    ids: np.ndarray
    order: np.ndarray

    __repr__ = short_repr

    @property
    def sets(self) -> tuple[Any, np.ndarray]:
        """(points, indptr), which `FisherSetEmbedding` takes."""
        return self.points, self.indptr


def group_sets(X: Any, groups: GroupsLike) -> GroupedSets:
    """Make sets of the rows of a long table that belong to one group.

    Parameters
    ----------
    X : table or matrix of shape (n_members, n_features)
        A row per member: pandas, Polars or pyarrow, NumPy, CSR or a tensor.
    groups : str or array of shape (n_members,)
        The name of a column of the table, which is no feature then, or the group of every row. A group may not be
        missing, and its rows need not be together.

    Returns
    -------
    GroupedSets
        The sets, in the order in which their groups first appear; the members of a group keep their order.

    See Also
    --------
    FisherSetEmbedding : Its methods take `groups` too.

    Examples
    --------
    >>> import pandas as pd
    >>> from fishergraph import group_sets
    >>> visits = pd.DataFrame({"patient": ["b", "a", "b"], "age": [30.0, 40.0, 31.0]})
    >>> bags = group_sets(visits, "patient")
    >>> bags.ids.tolist(), bags.indptr.tolist(), bags.points["age"].tolist()
    (['b', 'a'], [0, 2, 3], [30.0, 31.0, 40.0])
    """
    column = None
    if isinstance(groups, str):
        column = table_column(X, groups, "groups")
        X = without_column(X, groups)
    elif not hasattr(X, "shape") or len(X.shape) != 2:
        expected, advice = "be a table or a matrix with a row per member, beside groups", "leave groups out for a list"
        raise InputTypeError(parameter="X", expected=expected, got=type(X).__name__, advice=advice)
    codes, ids = _encoded(groups if column is None else column, X.shape[0])
    order = np.argsort(codes, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ids)))])
    return GroupedSets(_rows(X, order), indptr, ids, order)


def table_column(X: Any, name: str, parameter: str) -> Any:
    """A column of a table, or the index of that name."""
    names = [str(known) for known in getattr(X, "column_names", getattr(X, "columns", ()))] if is_table(X) else None
    if names is None:
        expected, got = "be the group of every row if X is no table", f"the name {name!r} and X of {type(X).__name__}"
        if parameter != "groups":
            expected = "be one number per row if X is no table"
        raise InputTypeError(parameter=parameter, expected=expected, got=got)
    if name in names:
        return X[name]
    if name == getattr(getattr(X, "index", None), "name", None):
        return X.index
    near = did_you_mean(near_matches(name, names)) or f"the columns are {listed(names)}"
    raise InputError(parameter=parameter, value=name, expected="be a column of X", advice=near)


def without_column(X: Any, name: str) -> Any:
    """The table without a column, if it has it."""
    if hasattr(X, "iloc"):
        return X.drop(columns=name, errors="ignore")
    return X.drop(name) if hasattr(X, "lazy") else X.drop_columns([name])


def _encoded(groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The number of the group of every row, and the groups, in the order of their first rows."""
    try:
        values = groups if hasattr(groups, "dictionary_encode") else _as_arrow(groups)
    except InputError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as error:
        expected, advice = "hold one kind of values: texts, integers or dates", "convert them, for example to text"
        raise InputError(parameter="groups", expected=expected, got="others", advice=advice) from error
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if len(values) != n_rows:
        raise InputError(parameter="groups", value=len(values), expected=f"hold the group of each of the {n_rows} rows")
    if values.null_count:
        row = int(np.flatnonzero(np.asarray(values.is_null()))[0])
        got = f"none in row {row} (the first of {values.null_count})"
        advice = "drop such rows, or name their group"
        raise InputError(parameter="groups", expected="have a group in every row", got=got, advice=advice)
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes = coded.indices.to_numpy().astype(np.int64)
    used, first, codes = np.unique(codes, return_index=True, return_inverse=True)  # a categorical has others too
    rank = np.argsort(first)
    place = np.empty(len(used), np.int64)
    place[rank] = np.arange(len(used))
    kinds = coded.dictionary.take(pa.array(used[rank]))
    texts = pa.types.is_string(kinds.type) or pa.types.is_large_string(kinds.type) or pa.types.is_integer(kinds.type)
    return place[codes], to_ids(kinds) if texts else kinds.to_numpy(zero_copy_only=False)


def _as_arrow(groups: Any) -> Any:
    """The groups as an array of Arrow, in which NaN, NaT and None are missing."""
    if hasattr(groups, "to_arrow"):  # Polars
        return groups.to_arrow()
    if is_torch_array(groups):
        groups = groups.cpu().numpy()
    values = groups.to_numpy() if hasattr(groups, "to_numpy") else groups
    if np.ndim(values) != 1 or isinstance(values, str):
        expected = "be the name of a column, or one value per row"
        raise InputError(parameter="groups", expected=expected, got=f"shape {np.shape(values)}")
    values = values.tolist() if str(getattr(values, "dtype", "")) == "object" else values
    return pa.array(values, from_pandas=True)


def _rows(X: Any, order: np.ndarray) -> Any:
    """The rows of a table or a matrix, in another order."""
    if np.array_equal(order, np.arange(len(order))):
        return X
    if hasattr(X, "iloc"):
        return X.iloc[order]
    if is_torch_array(X):
        return X[index_like(X, order)]
    if sp.issparse(X):
        return sp.csr_array(X)[order]
    return X.take(pa.array(order)) if hasattr(X, "column_names") else X[order]


def by_groups(X: SetsLike, weights: WeightsLike, groups: GroupsLike) -> tuple[Any, Any, np.ndarray | None]:
    """The sets and the weights of their members, and the groups of a long table."""
    if groups is None:
        check_no_long_table(X)
        return X, weights, None
    table: Any = X
    if isinstance(weights, str):
        weights, table = table_column(table, weights, "weights"), without_column(table, weights)
    bags = group_sets(table, groups)
    return bags.sets, in_order(weights, bags.order), bags.ids


def in_order(weights: Any, order: np.ndarray) -> np.ndarray | None:
    """Weights of the rows of a long table as those of the members of its sets."""
    if weights is None:
        return None
    values = plain_array(weights, "weights")
    if values.shape != (len(order),):
        got, expected = f"shape {values.shape}", f"hold one number for each of the {len(order)} rows"
        raise InputError(parameter="weights", expected=expected, got=got)
    return values[order]
