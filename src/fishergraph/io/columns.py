"""Columns of tables: ids, weights and edges, from pandas, Polars, pyarrow or lists of tuples.

pyarrow is imported when a table is read, not with this module.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._errors import InputError, InputTypeError, MissingValueError, UnknownNodeError, shown
from fishergraph._records import check_endpoints
from fishergraph._warn import warn
from fishergraph.io.edge_reading import EdgeReading

if TYPE_CHECKING:
    import pyarrow as pa

EDGE_COLUMNS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("node1", "node2"))
WEIGHT_COLUMNS = ("weight", "weights", "edge_weight")
_NAMES = ("source", "target", "weight")
_WIDEST = 1 << 30  # bytes of an array of strings, all as wide as the longest


def listed(values: Sequence, most: int = 10) -> str:
    """The first values, for an error message."""
    more = f", … ({len(values)} in all)" if len(values) > most else ""
    return ", ".join(shown(value) for value in values[:most]) + more


# --- one column -----------------------------------------------------------------------------------------


def check_column(values: Any, what: str, *, first_row: int = 0) -> pa.Array:
    """A column of any type as one Arrow array without missing entries; categories become their values.

    Errors count rows from `first_row`.
    """
    import pyarrow as pa
    from pyarrow.compute import call_function

    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and not dtype.isnative:  # Arrow does not accept them
        values = np.asarray(values).astype(dtype.newbyteorder("="))
    try:
        arrow = isinstance(values, (pa.Array, pa.ChunkedArray))
        column = values if arrow else pa.array(values, from_pandas=True)
    except OverflowError:
        raise _too_large(what) from None
    except UnicodeEncodeError as error:
        raise InputError(parameter=what, value=error.object, expected="hold Unicode text") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise InputTypeError(
            parameter=what, expected="hold values of one type", got="several", advice="convert them"
        ) from None
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    missing = np.asarray(column.is_null())
    if str(column.type) in ("string", "large_string", "string_view"):
        column = column.cast(pa.large_string())
        missing = np.asarray(call_function("binary_length", [column]).fill_null(0)) == 0
    if missing.any():
        raise missing_value(what, first_row + int(np.flatnonzero(missing)[0]))
    return column


def missing_value(what: str, row: int) -> MissingValueError:
    """The error for a missing value in a row."""
    got, advice = f"a missing value in row {row}", "fill in or drop such rows"
    return MissingValueError(parameter=what, value=row, expected="be complete", got=got, advice=advice)


def _too_large(what: str) -> InputError:
    advice = "convert them to text"
    return InputError(parameter=what, expected="hold numbers below 2**63", got="a larger one", advice=advice)


def check_ids(values: Any, what: str) -> pa.Array:
    """Node ids as one Arrow array of int64 or large_string, complete."""
    import pyarrow as pa
    from pyarrow.compute import MatchSubstringOptions, call_function

    column = check_column(values, what)
    kind = str(column.type)
    if kind == "large_string":
        nul = call_function("match_substring", [column], MatchSubstringOptions("\0")).to_numpy(zero_copy_only=False)
        if nul.any():  # NumPy's strings end before it, so "x" and "x\0" would be one node
            bad = column[int(nul.argmax())].as_py()
            raise InputError(parameter=what, value=bad, expected="be text without NUL characters")
    if kind in ("float", "double"):  # integers, as pandas has them beside missing ones
        column = _integers(column)
        kind = str(column.type)
    if len(column) and kind != "large_string" and not kind.startswith(("int", "uint")):
        raise InputTypeError(
            parameter=what, expected="be integers or strings", got=kind, advice="convert to int or str"
        )
    try:
        return column if kind == "large_string" else column.cast("int64")
    except pa.ArrowInvalid:
        raise _too_large(what) from None


def _integers(column: pa.Array) -> pa.Array:
    """Floats as int64 if they are integers that floats can count; else the column itself."""
    values = column.to_numpy()
    most = 1 / np.finfo(values.dtype).eps  # beyond it some integers are missing
    whole = np.isfinite(values) & (np.floor(values) == values) & (np.abs(values) <= most)
    return column.cast("int64") if whole.all() else column


def ids_with_gaps(values: Any, what: str) -> tuple[pa.Array, np.ndarray]:
    """Ids as `check_ids` returns them, and the rows in which they are missing, which hold 0 or empty text."""
    import pyarrow as pa
    from pyarrow.compute import call_function

    try:
        return check_ids(values, what), np.zeros(0, np.int64)
    except InputError as error:
        if error.expected != "be complete":
            raise
    column = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, from_pandas=True)
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    missing = np.asarray(column.is_null())
    if pa.types.is_string(column.type) or str(column.type) in ("large_string", "string_view"):
        column = column.cast(pa.large_string())
        missing = np.asarray(call_function("binary_length", [column]).fill_null(0)) == 0
    rest = check_ids(column.filter(pa.array(~missing)), what) if not missing.all() else None
    kind = pa.int64() if rest is None else rest.type
    filler = 0 if kind == pa.int64() else ""
    filled = call_function("if_else", [pa.array(missing), pa.scalar(None, column.type), column])
    return filled.cast(kind).fill_null(filler), np.flatnonzero(missing)


def check_distinct(ids: Any, codes: np.ndarray, what: str) -> None:
    """Raise if two of `ids` are the same (have equal `codes`)."""
    _, first = np.unique(codes, return_index=True)
    if len(first) < len(codes):
        repeated = np.ones(len(codes), dtype=bool)
        repeated[first] = False
        row = int(np.flatnonzero(repeated)[0])
        raise repeated_id(ids, row, what)


def repeated_id(ids: Any, row: int, what: str) -> InputError:
    """The error for an id that stands in an earlier row too."""
    value = getattr(ids[row], "as_py", getattr(ids[row], "item", lambda: ids[row]))()  # Arrow, NumPy, Python
    got, advice = f"{shown(value)} again in row {row}", "drop repeated rows"
    return InputError(parameter=what, value=value, expected="be distinct", got=got, advice=advice)


def distinct_ids(values: Any, what: str) -> pa.Array:
    """Node ids as one Arrow array of int64 or large_string, complete and distinct."""
    ids = check_ids(values, what)
    check_distinct(ids, ids.dictionary_encode().indices.to_numpy(), what)
    return ids


def positions(nodes: Sequence[Hashable], what: str) -> dict[Hashable, int]:
    """The row of every node; raises if one occurs twice."""
    position: dict[Hashable, int] = {}
    codes = np.fromiter((position.setdefault(v, len(position)) for v in nodes), np.int64, len(nodes))
    check_distinct(nodes, codes, what)
    return position


def to_ids(column: pa.Array) -> np.ndarray:
    """Ids as a NumPy array of int64 or of strings."""
    return column.to_numpy() if str(column.type) == "int64" else _text_array(column.to_pylist())


def _text_array(texts: list[str]) -> np.ndarray:
    """Strings as an array; one of objects if a single long string would make the others as wide."""
    width = max(map(len, texts), default=0)
    return np.array(texts, dtype=object if 4 * width * len(texts) > _WIDEST else np.str_)


# --- edge tables ----------------------------------------------------------------------------------------


def check_edge_columns(names: list[str]) -> tuple[int, int, int | None]:
    """The positions of the source, target and weight columns of an edge table, by name in any case."""
    folded = [name.strip().lower() for name in names]
    for source, target in EDGE_COLUMNS:
        if source in folded and target in folded:
            weight = next((folded.index(name) for name in WEIGHT_COLUMNS if name in folded), None)
            return folded.index(source), folded.index(target), weight
    expected = f"have columns {', '.join('/'.join(pair) for pair in EDGE_COLUMNS)}"
    got = listed(names) or "none"
    advice = "rename two of its columns, or name them with source= and target= (--source, --target)"
    raise InputError(parameter="an edge table", expected=expected, got=got, advice=advice)


def check_edge_table(table: Any) -> tuple[pa.Array, pa.Array, np.ndarray | None] | None:
    """The two id columns and the weights of a pandas, Polars or pyarrow table; None for anything else."""
    parts = table_columns(table)
    if parts is None:
        return None
    names, column = parts
    first, second, third = check_edge_columns(names)
    source, target = (check_ids(column(i), f"column {names[i]!r}") for i in (first, second))
    if third is None:
        _warn_of_unread_weights(names, column)
        return source, target, None
    return source, target, np.asarray(check_column(column(third), f"column {names[third]!r}"))


def table_columns(table: Any) -> tuple[list[str], Callable[[int], Any]] | None:
    """The names of the columns of a pandas, Polars or pyarrow table, and the column of a number; None if it is none."""
    if hasattr(table, "column_names"):  # pyarrow
        names, column = table.column_names, table.column
    elif hasattr(table, "to_series") and hasattr(table, "to_arrow"):  # Polars
        names, column = table.columns, lambda i: table.to_series(i).to_arrow()
    elif hasattr(table, "iloc") and table.ndim == 2:  # pandas
        names, column = table.columns, lambda i: table.iloc[:, i]
    else:
        return None
    return [str(name) for name in names], column


def column_named(table: Any, wanted: Sequence[str]) -> Any:
    """The column of a table that has the first of these names, in any case; None if it has none of them."""
    names, column = table_columns(table) or ([], None)
    folded = [name.strip().lower() for name in names]
    position = next((folded.index(name) for name in wanted if name in folded), None)
    return None if position is None or column is None else column(position)


def _warn_of_unread_weights(names: list[str], column: Callable[[int], Any]) -> None:
    """Warn if the only other column of an edge table holds numbers that differ: weights under another name."""
    if len(names) != 3:
        return
    other = next(name for name in names if name.strip().lower() not in {end for pair in EDGE_COLUMNS for end in pair})
    values = np.asarray(column(names.index(other)))
    if values.dtype.kind in "iuf" and len(values) and (values != values[0]).any():
        warn(
            "third column",
            f"the column {other!r} of the edge table is not read: every edge has weight 1. Rename it to 'weight' if it "
            "holds weights, or drop it.",
        )


def reads_as_edges(entries: object) -> bool:
    """Whether an object is a list of tuples that begin with two ids."""
    return (
        isinstance(entries, list)
        and bool(entries)
        and all(isinstance(entry, tuple) and len(entry) in (2, 3) for entry in entries)
        and all(isinstance(end, (int, np.integer, str)) for entry in entries for end in entry[:2])
    )


def edge_table(edges: list, weight: Any = None) -> pa.Table:
    """The table (source, target[, weight]) of a list of tuples; if some have a weight, the others have weight 1.

    A weight is a number, or a dictionary with the key `weight`, "weight" by default, as in NetworkX's
    `graph.edges(data=True)`. The other keys are in the metadata. A list of dictionaries has a column for each key.
    """
    import pyarrow as pa

    if edges and all(isinstance(edge, dict) for edge in edges):
        return _dictionary_table(edges)
    for number, edge in enumerate(edges):
        if not isinstance(edge, tuple) or not _is_edge(edge):
            raise InputTypeError(
                parameter="a list of edges",
                value=edge,
                expected="hold tuples (source, target) or (source, target, weight), or dictionaries",
                got=f"{type(edge).__name__} {str(edge)[:40]} as entry {number}",
                advice="pass [tuple(edge) for edge in edges], or scipy.sparse.csr_array(A) for an adjacency matrix A",
            )
    ends = ([edge[side] for edge in edges] for side in (0, 1))
    columns = [check_ids(column, f"the {name} of an edge") for name, column in zip(_NAMES, ends, strict=False)]
    key = weight if isinstance(weight, str) else "weight"
    weights = [_weight(edge, key) for edge in edges] if weight is not False else [None] * len(edges)
    keys = dict.fromkeys(str(name) for edge in edges if isinstance(edge[-1], Mapping) for name in edge[-1])
    if any(value is not None for value in weights):
        columns.append(check_column([1 if value is None else value for value in weights], "the weight of an edge"))
    elif isinstance(weight, str) and edges:
        got = listed(list(keys)) or "none"
        raise InputError(
            parameter="weight", value=weight, expected="be a key of the edges", got=f"{weight!r} among {got}"
        )
    table = pa.table(columns, names=list(_NAMES[: len(columns)]))
    left = tuple(name for name in keys if name != key or len(columns) < 3)
    return EdgeReading(rows=len(edges), left=left).attached(table) if left else table


def _is_edge(edge: tuple) -> bool:
    """Whether a tuple is (source, target), with a weight or attributes, or with a key and attributes."""
    return len(edge) in (2, 3) or (len(edge) == 4 and isinstance(edge[3], Mapping))


def _weight(edge: tuple, key: str) -> Any:
    if len(edge) == 2:
        return None
    return edge[-1].get(key) if isinstance(edge[-1], Mapping) else edge[2]


def _dictionary_table(edges: list[dict]) -> pa.Table:
    """A list of dictionaries as a table; what is missing is null."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for edge in edges for name in edge))
    columns = {}
    for name in names:
        values = [edge.get(name) for edge in edges]
        try:
            columns[str(name)] = pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            columns[str(name)] = pa.array([None if value is None else str(value) for value in values])
    return pa.table(columns)


# --- ids to row numbers ---------------------------------------------------------------------------------


def factorise(
    source: pa.Array, target: pa.Array, *, node_ids: Any = None, n_nodes: int | None = None
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray | None]:
    """The rows of both endpoints, the number of nodes, and the ids (None if they are 0 … n - 1)."""
    import pyarrow as pa

    nodes = None if node_ids is None else check_ids(node_ids, "node_ids")
    columns = [column for column in (source, target, nodes) if column is not None]
    if len({str(column.type) for column in columns}) > 1:
        columns = [column.cast(pa.large_string()) for column in columns]
    ends = pa.concat_arrays(columns[:2])
    if nodes is not None:
        codes, n, ids = _match(ends, columns[2], nodes)
    elif ends.type == pa.int64():
        codes, n, ids = _number_ids(ends.to_numpy(), n_nodes)
    else:
        coded = ends.dictionary_encode()
        ids, rank = np.unique(_text_array(coded.dictionary.to_pylist()), return_inverse=True)
        codes, n = rank[coded.indices.to_numpy()], len(ids)
    return codes[: len(source)], codes[len(source) :], n, ids


def _number_ids(values: np.ndarray, n_nodes: int | None) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Codes of integer ids, in sorted order, by counting if the ids are dense enough."""
    if n_nodes is not None:
        half = len(values) // 2
        check_endpoints(values[:half], values[half:], n_nodes)
        return values, n_nodes, None
    if len(values) and (values.min() < 0 or values.max() > 4 * len(values) + 1024):
        ids, codes = np.unique(values, return_inverse=True)
        return codes, len(ids), ids
    present = np.zeros(int(values.max(initial=-1)) + 1, dtype=bool)
    present[values] = True
    if present.all():
        return values, len(present), None
    return (np.cumsum(present) - 1)[values], int(present.sum()), np.flatnonzero(present)


def _match(ends: pa.Array, keys: pa.Array, nodes: pa.Array) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Codes of the endpoints in a list of ids."""
    from pyarrow.compute import SetLookupOptions, call_function

    check_distinct(nodes, keys.dictionary_encode().indices.to_numpy(), "node_ids")
    codes = call_function("index_in", [ends], SetLookupOptions(value_set=keys))
    if codes.null_count:
        raise unknown_node(ends[int(np.asarray(codes.is_null()).argmax())].as_py())
    ids = to_ids(nodes)
    counted = ids.dtype.kind == "i" and np.array_equal(ids, np.arange(len(ids)))
    return codes.to_numpy().astype(np.int64), len(ids), None if counted else ids


def unknown_node(node: Any, near: Sequence[Any] = (), count: int = 1) -> UnknownNodeError:
    """The error for a node that `node_ids` does not list."""
    alike = f", but for {' and '.join(map(shown, near))}" if near else ""
    return UnknownNodeError(
        parameter="node_ids",
        value=node,
        expected="hold every node of the graph",
        got=f"no entry for {shown(node)}{alike}",
        advice="add it, or pass unknown='drop' or 'add' to as_graph (--unknown)",
        count=count,
        near=list(near),
    )
