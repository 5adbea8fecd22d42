"""Rows outside a support, found in dense arrays, CSR matrices and sparse tensors alike."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp
from array_api_compat import array_namespace

from fishergraph._typing import Rows


def stored_entries(points: Rows) -> tuple[Any, Any]:
    """(the entries that are stored, the offsets of the rows in them, or None if the rows are dense)."""
    rows: Any = points
    if sp.issparse(points):
        return rows.data, rows.indptr
    if str(getattr(points, "layout", "torch.strided")) != "torch.strided":
        return rows.values(), rows.crow_indices()
    return rows, None


def first_negative(points: Rows) -> tuple[int, float] | None:
    """(row, entry) of the first entry below zero."""
    entries, indptr = stored_entries(points)
    xp = array_namespace(entries)
    bad = entries < 0
    if not bool(xp.any(bad)):
        return None
    position = [int(index[0]) for index in xp.nonzero(bad)]
    row = position[0] if indptr is None else int((indptr <= position[0]).sum()) - 1
    return row, float(entries[tuple(position)])


def first_zero_row(points: Rows) -> int | None:
    """The first row that has no entry but zeros."""
    entries, indptr = stored_entries(points)
    xp = array_namespace(entries)
    if indptr is None:
        empty = ~xp.any(entries != 0, axis=1)
    else:
        filled = xp.cumulative_sum(xp.astype(entries != 0, xp.int64), include_initial=True)
        empty = filled[indptr[1:]] == filled[indptr[:-1]]
    return int(xp.nonzero(empty)[0][0]) if bool(xp.any(empty)) else None
