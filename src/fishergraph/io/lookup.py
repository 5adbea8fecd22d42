"""Ids of rows: which row a node has, which ids are meant by ones that are not known, and pairs of ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from fishergraph._arrays import is_table, plain_array
from fishergraph._errors import InputError, UnknownNodeError, shown
from fishergraph._parallel import cached_attribute
from fishergraph.io.columns import check_edge_table, distinct_ids, table_columns, to_ids
from fishergraph.io.id_column import usual_id_column
from fishergraph.io.near import near_matches

_LISTED = 5  # unknown ids that a message names


class IdRows:
    """The ids of rows: integers, text, or the row numbers.

    Parameters
    ----------
    ids : array-like or None
        Distinct ids, one per row; None: 0 … n_rows - 1.
    n_rows : int
        The number of rows.
    noun : str, default="vectors"
        What the rows are, for errors.
    """

    def __init__(self, ids: Any, n_rows: int, noun: str = "vectors"):
        self.n_rows, self.noun = n_rows, noun
        self.values = np.arange(n_rows) if ids is None else _read_ids(ids, n_rows)
        # Of 0 … n - 1, an id is its row.
        self.counted = self.values.dtype.kind == "i" and np.array_equal(self.values, np.arange(n_rows))

    @property
    def text(self) -> bool:
        """Whether the ids are text."""
        return self.values.dtype.kind != "i"

    @cached_attribute
    def _places(self) -> dict[Any, int]:
        return {value: row for row, value in enumerate(self.values.tolist())}

    def rows(self, nodes: Any, name: str = "nodes") -> np.ndarray:
        """The rows of some ids; raises for unknown ones, with ids that look like them.

        Integers match text of the same digits, and the reverse.
        """
        wanted = [self._key(node, name) for node in _listed(nodes, name)]
        if self.counted:
            rows = [key if isinstance(key, int) and 0 <= key < self.n_rows else -1 for key in wanted]
        else:
            rows = [self._places.get(key, -1) for key in wanted]
        if -1 in rows:
            raise self._unknown([key for key, row in zip(wanted, rows, strict=True) if row < 0], name)
        return np.array(rows, dtype=np.int64)

    def _key(self, node: Any, name: str) -> int | str:
        """An id in the type of the others."""
        if isinstance(node, (bool, np.bool_)) or not isinstance(node, (int, np.integer, str)):
            expected = "be ids: integers or text"
            advice = "pass rows=… for row numbers, or vectors=… for vectors that have no row"
            raise InputError(parameter=name, value=node, expected=expected, got=shown(node), advice=advice)
        if self.text:
            return str(node)
        if isinstance(node, str):
            try:
                number = int(node)
            except ValueError:
                return node
            return number if str(number) == node.strip() else node
        return int(node)

    def _unknown(self, missing: list[int | str], name: str) -> UnknownNodeError:
        """The error for ids that no row has."""
        first, more = missing[0], len(missing) - _LISTED
        got = ", ".join(map(shown, missing[:_LISTED])) + (f" and {more:,} more" if more > 0 else "")
        if self.counted:
            advice = f"they go from 0 to {self.n_rows - 1:,}, the numbers of the rows"
        else:
            near = near_matches(first, self.values.tolist())
            alike = f"similar ids: {', '.join(map(repr, near))}" if near else ""
            advice = alike or f"ids are such as {', '.join(map(repr, self.values[:3].tolist()))}"
        expected = f"be ids of the {self.n_rows:,} {self.noun}"
        return UnknownNodeError(parameter=name, value=first, expected=expected, got=got, advice=advice)


def in_order(X: Any, ids: np.ndarray | None) -> Any:
    """A table in the order of these ids, if its index or its column of ids has them; others as they are."""
    if ids is None or not is_table(X):
        return X
    index = getattr(X, "index", None) if hasattr(X, "iloc") else None
    if index is not None and type(index).__name__ != "RangeIndex":
        return X.iloc[IdRows(index, len(index)).rows(ids, "the index of X")]
    names, column = table_columns(X) or ([], None)
    key = usual_id_column(names)
    if key is None or column is None:
        return X
    rows = IdRows(column(names.index(key)), X.shape[0]).rows(ids, f"the column {key!r} of X")
    if hasattr(X, "iloc"):
        return X.iloc[rows].set_index(X.columns[names.index(key)])
    return X.drop(key)[rows] if hasattr(X, "to_arrow") else X.drop_columns([key]).take(rows)


def _listed(nodes: Any, name: str) -> list[Any]:
    """A single id or several as a list."""
    if isinstance(nodes, (str, int, np.integer)):
        return [nodes]
    try:
        listed = plain_array(nodes, name).tolist() if hasattr(nodes, "dtype") else list(nodes)
    except TypeError:
        listed = [nodes]
    if not isinstance(listed, list):  # an array without dimensions
        listed = [listed]
    if not listed:
        raise InputError(parameter=name, value=nodes, expected="name at least one node", got="none")
    return listed


def _read_ids(ids: Any, n_rows: int) -> np.ndarray:
    """Distinct ids, one per row; those that are neither integers nor text become text."""
    if hasattr(ids, "__array__") and not hasattr(ids, "dtype") and not hasattr(ids, "type"):
        ids = np.asarray(ids)  # of a store
    values = ids.tolist() if isinstance(ids, np.ndarray) and ids.dtype == object else ids
    if isinstance(values, (list, tuple)):
        plain = all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values)
        values = list(values) if plain else [str(value) for value in values]
    checked = to_ids(distinct_ids(values, "ids"))
    if len(checked) != n_rows:
        expected = f"have one entry for each of the {n_rows:,} rows"
        raise InputError(parameter="ids", value=len(checked), expected=expected)
    return checked


# --- pairs ----------------------------------------------------------------------------------------------


def pair_columns(pairs: Any, name: str = "pairs") -> tuple[list[Any], list[Any]]:
    """The first and the second nodes of a list of pairs, an array of two columns, or an edge table."""
    table = None if isinstance(pairs, (list, tuple, np.ndarray)) else check_edge_table(pairs)
    if table is not None:
        return table[0].to_pylist(), table[1].to_pylist()
    listed: list[Any]
    if isinstance(pairs, np.ndarray) or hasattr(pairs, "detach"):
        listed = plain_array(pairs, name).tolist()
    else:
        listed = list(pairs) if hasattr(pairs, "__iter__") and not isinstance(pairs, str) else [pairs]
    if len(listed) == 2 and all(isinstance(node, (int, str, np.integer)) for node in listed):
        listed = [listed]  # a single pair
    bad = next((k for k, pair in enumerate(listed) if not _is_pair(pair)), -1)
    if bad >= 0 or not listed:
        got = "none" if not listed else f"{str(listed[bad])[:40]} as entry {bad}"
        advice = "transpose an edge_index: pass edge_index.T"
        expected = "be pairs of nodes, at least one"
        raise InputError(parameter=name, expected=expected, got=got, advice=advice if listed else "")
    return [pair[0] for pair in listed], [pair[1] for pair in listed]


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2
