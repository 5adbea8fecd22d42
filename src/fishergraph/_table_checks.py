"""The door for tables: what the columns of an edge table and the ids of nodes must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._warn import warn

if TYPE_CHECKING:
    import pyarrow as pa

EDGE_COLUMNS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"))
WEIGHT_COLUMNS = ("weight", "weights", "edge_weight")


def shown(value: Any, most: int = 60) -> str:
    """A value for an error message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def listed(values: Sequence, most: int = 10) -> str:
    """The first values for an error message."""
    more = f", … ({len(values)} in all)" if len(values) > most else ""
    return ", ".join(shown(value) for value in values[:most]) + more


def check_distinct(ids: Any, codes: np.ndarray, what: str) -> None:
    """Raise if two of `ids` are the same (have equal `codes`); the message names the first repeated one."""
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        repeated = np.ones(len(codes), dtype=bool)
        repeated[first] = False
        row = int(np.flatnonzero(repeated)[0])
        value = getattr(ids[row], "as_py", getattr(ids[row], "item", lambda: ids[row]))()  # Arrow, NumPy, Python
        raise ValueError(f"{what} must be distinct, got {shown(value)} again in row {row}; drop repeated rows.")


def positions(nodes: Sequence, what: str) -> dict[Any, int]:
    """The row of every node; raises where one stands twice."""
    position: dict[Any, int] = {}
    codes = np.fromiter((position.setdefault(v, len(position)) for v in nodes), np.int64, len(nodes))
    check_distinct(nodes, codes, what)
    return position


def check_edge_columns(names: list[str]) -> tuple[int, int, int | None]:
    """The positions of the source, target and weight columns of an edge table, found in any case."""
    folded = [name.strip().lower() for name in names]
    for source, target in EDGE_COLUMNS:
        if source in folded and target in folded:
            weight = next((folded.index(name) for name in WEIGHT_COLUMNS if name in folded), None)
            return folded.index(source), folded.index(target), weight
    known = ", ".join("/".join(pair) for pair in EDGE_COLUMNS)
    raise ValueError(f"an edge table must have columns {known}, got {listed(names) or 'none'}; rename its columns.")


def check_column(values: Any, what: str) -> pa.Array:
    """A column of any kind as one Arrow array with no entry missing; categories become their values."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:  # which Arrow does not take
        values = np.asarray(values).astype(dtype.newbyteorder("="))
    try:
        arrow = isinstance(values, (pa.Array, pa.ChunkedArray))
        column = values if arrow else pa.array(values, from_pandas=True)
    except OverflowError:
        raise ValueError(f"{what} must hold numbers below 2**63, got a larger one; convert them to text.") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} must hold Unicode text, got {shown(error.object)}; repair it.") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise TypeError(f"{what} must hold values of one kind, got a mixture; convert them.") from None
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    missing = np.asarray(column.is_null())
    if str(column.type) in ("string", "large_string", "string_view"):
        column = column.cast(pa.large_string())
        missing = np.asarray(call_function("binary_length", [column]).fill_null(0)) == 0
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(f"{what} must not be missing, got none in row {row}; fill in or drop such rows.")
    return column


def check_ids(values: Any, what: str) -> pa.Array:
    """Node ids as one Arrow array of int64 or large_string, none of them missing."""
    import pyarrow as pa
    from pyarrow.compute import MatchSubstringOptions, call_function

    column = check_column(values, what)
    kind = str(column.type)
    if kind == "large_string":
        nul = call_function("match_substring", [column], MatchSubstringOptions("\0")).to_numpy(zero_copy_only=False)
        if nul.any():  # NumPy's strings end before it, so that "x" and "x\0" would be one node
            bad = column[int(nul.argmax())].as_py()
            raise ValueError(f"{what} must be text without NUL characters, got {shown(bad)}; remove them.")
    if len(column) and kind != "large_string" and not kind.startswith(("int", "uint")):
        raise TypeError(f"{what} must be integers or strings, got {kind}; convert it to int or str.")
    try:
        return column if kind == "large_string" else column.cast("int64")
    except pa.ArrowInvalid:
        raise ValueError(f"{what} must hold numbers below 2**63, got a larger one; convert them to text.") from None


def check_edge_table(table: Any) -> tuple[pa.Array, pa.Array, np.ndarray | None] | None:
    """The two id columns and the weights of a pandas, Polars or pyarrow table; None if it is no table."""
    if hasattr(table, "column_names"):  # pyarrow
        names, column = table.column_names, table.column
    elif hasattr(table, "to_series") and hasattr(table, "to_arrow"):  # Polars
        names, column = table.columns, lambda i: table.to_series(i).to_arrow()
    elif hasattr(table, "iloc") and table.ndim == 2:  # pandas
        names, column = table.columns, lambda i: table.iloc[:, i]
    else:
        return None
    names = [str(name) for name in names]
    first, second, third = check_edge_columns(names)
    source, target = (check_ids(column(i), f"column {names[i]!r}") for i in (first, second))
    if third is None:
        _tell_of_third(names, column)
        return source, target, None
    return source, target, np.asarray(check_column(column(third), f"column {names[third]!r}"))


def _tell_of_third(names: list[str], column: Any) -> None:
    """Warn where the only other column of an edge table holds numbers that differ: weights under another name."""
    if len(names) != 3:
        return
    other = next(name for name in names if name.strip().lower() not in {end for pair in EDGE_COLUMNS for end in pair})
    values = np.asarray(column(names.index(other)))
    if values.dtype.kind in "iuf" and len(values) and (values != values[0]).any():
        warn(
            "third column",
            f"the column {other!r} of the edge table is not read: every edge weighs 1. Rename it to 'weight' if it "
            "holds weights, or leave it out.",
        )
