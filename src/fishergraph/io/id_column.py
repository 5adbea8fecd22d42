"""Which column of a table of nodes holds their ids: one with a usual name, or the one that names the graph's nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fishergraph._errors import InputError, InputTypeError

if TYPE_CHECKING:
    import pyarrow as pa

ID_COLUMNS = ("id", "node", "node_id", "nodeid")
INDEX_COLUMNS = ("", "unnamed: 0", "__index_level_0__")  # how pandas writes an index without a name
IN_FILES = (*ID_COLUMNS, *INDEX_COLUMNS)


def usual_id_column(names: Sequence[str], usual: Sequence[str] = ID_COLUMNS) -> str | None:
    """The column with the first of the usual names, in any case; None if there is none."""
    folded = {name.strip().lower(): name for name in reversed(names)}
    return next((folded[name] for name in usual if name in folded), None)


def id_column_of(
    names: Sequence[str], column: Callable[[str], Any], nodes: pa.Array, usual: Sequence[str] = ID_COLUMNS
) -> str | None:
    """The column of ids of a table beside a graph with these nodes, or None.

    It is the column with a usual name, unless it names less than half of the nodes and another column at least half:
    then the one that names most of them, one of distinct values before others.
    """
    key = usual_id_column(names, usual)
    if key is not None and _share(column(key), nodes) >= 0.5:
        return key
    shares = {name: _share(column(name), nodes) for name in names if not _are_floats(column(name))}
    best = max(
        shares, key=lambda name: (shares[name] >= 0.5 and _are_distinct(column(name)), shares[name]), default=None
    )
    if best is not None and shares[best] >= 0.5:
        return best
    return key if key is not None and holds_ids(column(key)) else None


def holds_ids(values: Any) -> bool:
    """Whether the values of a column are integers or text."""
    from fishergraph.io.columns import check_ids

    try:
        check_ids(values, "a column")
    except InputTypeError:
        return False
    except InputError:  # some are missing
        return True
    return True


def distinct_ends(source: pa.Array, target: pa.Array) -> pa.Array:
    """The distinct ids at the ends of edges."""
    import pyarrow as pa

    ends = [source, target]
    if source.type != target.type:
        ends = [column.cast(pa.large_string()) for column in ends]
    return pa.concat_arrays(ends).unique()


def are_rows(nodes: pa.Array, n_rows: int) -> bool:
    """Whether ids can be the numbers of so many rows."""
    if str(nodes.type) != "int64":
        return False
    numbers = nodes.to_numpy()
    return len(numbers) == 0 or bool(numbers.min() >= 0 and numbers.max() < n_rows)


def _share(values: Any, nodes: pa.Array) -> float:
    """How many of the nodes a column names; 0 if its values are no ids, or most of them repeated."""
    import pyarrow as pa
    from pyarrow.compute import SetLookupOptions, call_function

    from fishergraph.io.columns import ids_with_gaps

    try:
        ids = ids_with_gaps(values, "a column")[0]
    except (InputError, InputTypeError):
        return 0.0
    every, ids = len(ids), ids.unique()
    if 2 * len(ids) < every:
        return 0.0
    if ids.type != nodes.type:
        ids, nodes = ids.cast(pa.large_string()), nodes.cast(pa.large_string())
    named = call_function("is_in", [nodes], SetLookupOptions(value_set=ids))
    return named.true_count / max(len(nodes), 1)


def _are_distinct(values: Any) -> bool:
    """Whether ids are complete and distinct."""
    from fishergraph.io.columns import distinct_ids

    try:
        distinct_ids(values, "a column")
    except InputError:
        return False
    return True


def _are_floats(values: Any) -> bool:
    """Whether a column holds floats, which are ids only if its name says so."""
    return str(getattr(values, "dtype", getattr(values, "type", ""))).lower().startswith(("float", "double", "half"))
