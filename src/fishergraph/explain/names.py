"""`Names`: the nodes by id, by row, or by what people typed; and the names of the columns of X."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from fishergraph._arrays import plain_array
from fishergraph._errors import InputError, UnknownNodeError

_SUGGESTED = 100_000  # ids that are searched for similar ones


class Names:
    """The names of the rows.

    ids : the node ids in row order, or None if rows are named by their numbers.
    n_rows : their number.
    """

    def __init__(self, ids: Any, n_rows: int):
        self.n_rows = n_rows
        self.ids = None if ids is None else _as_ids(ids, n_rows)
        self._rows: dict[Any, int] = {}

    def __getitem__(self, rows: Any) -> np.ndarray:
        """The ids of rows."""
        rows = np.asarray(rows)
        return rows if self.ids is None else self.ids[rows]

    def row(self, node: Any, parameter: str = "v") -> int:
        """The row of a node; an integer typed as text is found too."""
        found = self._row_number(node) if self.ids is None else self._known().get(_key(node, self.ids.dtype))
        if found is None:
            raise self._unknown(node, parameter)
        return found

    def rows(self, nodes: Any, parameter: str = "nodes") -> np.ndarray:
        """The rows of several nodes; None is all of them."""
        if nodes is None:
            return np.arange(self.n_rows)
        listed = [nodes] if isinstance(nodes, (str, bytes)) or np.ndim(nodes) == 0 else list(nodes)
        return np.array([self.row(node, parameter) for node in listed], dtype=np.int64)

    def _known(self) -> dict[Any, int]:
        if not self._rows and self.ids is not None:
            self._rows = {node: row for row, node in reversed(list(enumerate(self.ids.tolist())))}
        return self._rows

    def _row_number(self, node: Any) -> int | None:
        number = _integer(node)
        return number if number is not None and 0 <= number < self.n_rows else None

    def _unknown(self, node: Any, parameter: str) -> UnknownNodeError:
        if self.ids is None:
            expected = f"be a row number from 0 to {self.n_rows - 1:,}, as there are no ids"
            return UnknownNodeError(parameter=parameter, value=node, expected=expected, advice="pass ids=… to use ids")
        advice = "pass one of explainer.ids"
        if self.ids.dtype.kind in "OU" and self.n_rows <= _SUGGESTED:
            near = get_close_matches(str(node), [str(name) for name in self.ids.tolist()])
            advice = f"similar ones are {', '.join(map(repr, near))}" if near else advice
        return UnknownNodeError(parameter=parameter, value=node, expected="be the id of a node", advice=advice)


class MemberNames:
    """The names of the members of sets: "SET, member 3", counted from zero in every set.

    names : of the sets.
    indptr : where each of them begins.
    """

    def __init__(self, names: Names, indptr: np.ndarray):
        self.names, self.indptr = names, indptr

    def __getitem__(self, rows: Any) -> np.ndarray:
        """The names of members."""
        rows = np.asarray(rows)
        sets = np.searchsorted(self.indptr, rows, side="right") - 1
        before = "set " if self.names.ids is None else ""
        pairs = zip(self.names[sets].tolist(), (rows - self.indptr[sets]).tolist(), strict=True)
        return np.array([f"{before}{name}, member {k}" for name, k in pairs], dtype=object)


def _as_ids(ids: Any, n_rows: int) -> np.ndarray:
    """The ids as an array of one for each row."""
    array = np.asarray(ids) if hasattr(ids, "dtype") or hasattr(ids, "to_numpy") else plain_array(ids, "ids")
    if array.shape != (n_rows,):
        expected, got = f"be one id for each of the {n_rows:,} rows", f"shape {array.shape}"
        raise InputError(parameter="ids", expected=expected, got=got, advice="pass them in the order of the rows")
    if len(set(array.tolist())) < n_rows:
        raise InputError(parameter="ids", expected="be distinct", got="some twice", advice="name every row once")
    return array


def _integer(node: Any) -> int | None:
    """An integer, also one that was typed as text; None for anything else."""
    if isinstance(node, str):
        text = node.strip()
        return int(text) if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() else None
    if isinstance(node, (bool, np.bool_)):
        return None
    try:
        number = int(node)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number == node else None


def _key(node: Any, dtype: np.dtype) -> Any:
    """What an id is compared as: an integer for integer ids, else the plain value; None if it cannot be an id."""
    if dtype.kind in "iu":
        return _integer(node)
    plain = node.item() if isinstance(node, np.generic) else node
    try:
        hash(plain)
    except TypeError:
        return None
    return plain


def column_names(given: Any, known: Any, n_columns: int) -> np.ndarray:
    """The names of the columns of X: those that are given, else those of the fit, else x0, x1, …."""
    if given is None:
        named = known if known is not None and len(known) == n_columns else [f"x{k}" for k in range(n_columns)]
        return np.array(named, dtype=object)
    names = np.array([str(name) for name in given], dtype=object)
    if names.shape != (n_columns,):
        expected, got = f"have one name for each of the {n_columns:,} columns of X", f"{len(names):,}"
        raise InputError(parameter="feature_names", expected=expected, got=got, advice="pass as many")
    return names
