"""Columns of nodes from what people have: tables by ids or by rows, labels, predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fishergraph._errors import InputError, InputTypeError
from fishergraph._records import row_labels
from fishergraph.explore.columns import Column, arrow_column, category_column, coded_column
from fishergraph.explore.inputs import Nodes, places
from fishergraph.explore.tables import MOST_FIELDS, read_field_table
from fishergraph.io.columns import check_ids
from fishergraph.io.id_column import are_rows, id_column_of, usual_id_column

_MOST_CLASSES = 1000  # integers with more values are numbers, not classes


def read_fields(fields: Any, nodes: Nodes) -> list[Column]:
    """The columns of a table of nodes, in the order of the embedding: by its index or id column, else by rows."""
    if fields is None:
        return []
    if isinstance(fields, (str, os.PathLike)):
        fields = _field_file(Path(fields), nodes)
    keys, columns = _table(fields, nodes)
    rows = _rows_of(fields, keys, columns, nodes)
    found = {name: v if isinstance(v, Column) else arrow_column(name, v) for name, v in columns.items()}
    if vectors := [name for name, column in found.items() if column is None]:
        nodes.notes.append(f"Columns of vectors are not shown: {_listed(vectors)}.")
    kept = [column for column in found.values() if column is not None]
    if len(kept) > MOST_FIELDS:
        kept = _first(kept, nodes)
    return [_placed(column, rows) for column in kept]


def _field_file(path: Path, nodes: Nodes) -> dict[str, Any]:
    """The columns of a node file, with its ids as the column id."""
    ids, columns, left = read_field_table(path, named=nodes.ids)
    if left:
        nodes.notes.append(f"{left:,} more columns of {path.name} are not on the page.")
    return columns if ids is None else {"id": ids, **columns}


def _first(columns: list[Column], nodes: Nodes) -> list[Column]:
    """The columns that people read first: all that are no numbers, then numbers."""
    words = [column for column in columns if column.kind != "number"][:MOST_FIELDS]
    chosen = {id(column) for column in (words + [c for c in columns if c.kind == "number"])[:MOST_FIELDS]}
    nodes.notes.append(
        f"{len(columns) - MOST_FIELDS:,} of {len(columns):,} columns of the node table are not on the page, because "
        "they are many. Pass a table of those that you want."
    )
    return [column for column in columns if id(column) in chosen]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _table(fields: Any, nodes: Nodes) -> tuple[Any, dict[str, Any]]:
    """The ids that a table names its rows by, or None, and its columns by name."""
    if hasattr(fields, "iloc") and hasattr(fields, "columns"):  # pandas
        names = _distinct([str(name) for name in fields.columns])
        columns = {name: fields.iloc[:, k] for k, name in enumerate(names)}
        labels = row_labels(fields)
        return (labels, columns) if labels is not None else _id_column(columns, nodes)
    if hasattr(fields, "to_arrow"):  # Polars
        fields = fields.to_arrow()
    if hasattr(fields, "column_names"):
        names = _distinct(fields.column_names)
        return _id_column({name: fields.column(k) for k, name in enumerate(names)}, nodes)
    if isinstance(fields, Mapping):
        return _id_column({str(name): values for name, values in fields.items()}, nodes)
    expected = "be a pandas, Polars or pyarrow table, or a mapping of names to columns"
    raise InputTypeError(parameter="fields", value=fields, expected=expected, got=type(fields).__name__)


def _distinct(names: list[str]) -> list[str]:
    """The names, with a number behind those that occur again."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _id_column(columns: dict[str, Any], nodes: Nodes) -> tuple[Any, dict[str, Any]]:
    named = check_ids(nodes.ids, "ids")
    names = [name for name, values in columns.items() if not isinstance(values, Column)]  # which is in order already
    key = usual_id_column(names)
    if key is not None or not are_rows(named, nodes.n):
        key = id_column_of(names, columns.__getitem__, named)
    return (None, columns) if key is None else (columns[key], columns)


def _rows_of(fields: Any, keys: Any, columns: dict[str, Any], nodes: Nodes) -> np.ndarray:
    """The row of the table for each node, −1 for none."""
    length = len(next(iter(columns.values()))) if columns else 0
    if any(len(values) != length for values in columns.values()):
        raise InputError(parameter="fields", expected="have columns of one length", got="several lengths")
    if keys is not None:
        known = np.array([str(value) for value in _plain_list(keys)])
        place = places(known, nodes.ids.astype(str))
        if (place >= 0).any():
            if len(set(known.tolist())) < len(known):
                raise InputError(
                    parameter="fields", expected="have one row per node", got="an id twice", advice="drop repeated rows"
                )
            key_name = next((name for name, values in columns.items() if values is keys), None)
            if key_name is not None:
                columns.pop(key_name)
            if missing := int((place < 0).sum()):
                nodes.notes.append(f"{missing:,} nodes have no row in the node table; their values are missing.")
            return place
        if len(known) and not are_rows(check_ids(nodes.ids, "ids"), nodes.n):
            expected, got = f"name nodes of the embedding, such as {nodes.ids[0]!s}", f"none, but {known[0]!s}"
            raise InputError(parameter="the ids of fields", expected=expected, got=got, advice="pass their table")
    if columns and length != nodes.n:
        expected = f"have a row for each of the {nodes.n:,} nodes, or their ids as index or in a column id"
        raise InputError(
            parameter="fields", expected=expected, got=f"{length:,} rows", advice="pass the table of these nodes"
        )
    return np.arange(nodes.n)


def _plain_list(values: Any) -> list[Any]:
    for name in ("to_pylist", "tolist"):
        if hasattr(values, name):
            return getattr(values, name)()
    return list(values)


def _placed(column: Column, rows: np.ndarray) -> Column:
    """A column of a table, for the nodes; −1 is a missing value."""
    placed = column.take(rows)
    absent = rows < 0
    if absent.any():
        placed.missing[absent] = True
        if column.kind == "category":
            placed.values[absent] = -1
        elif column.kind == "text":
            placed.values[absent] = None
        elif placed.values.dtype.kind == "f":
            placed.values[absent] = np.nan
    return placed


def read_labels(
    labels: Any, nodes: Nodes, role: str, names: Sequence[str] | Mapping[Any, str] | None = None
) -> Column | None:
    """Labels or predictions as one column: classes, or numbers if they are measured.

    They are an array of one label per row, a Series or mapping by id, or the name of a column of the fields.
    """
    name = role
    if labels is None:
        return None
    if isinstance(labels, str):
        return _named_column(labels, nodes, role)
    values = _label_values(labels, nodes, f"{role}s")
    column = arrow_column(name, values)
    if column is None:
        raise InputTypeError(parameter=f"{role}s", expected="hold one label per node", got="vectors")
    if column.kind == "number" and column.values.dtype.kind == "f" and _whole(column):
        filled = np.where(column.missing, 0, column.values).astype(np.int64)
        column = Column(name, "number", filled, column.missing)
    if column.kind == "number" and column.values.dtype.kind == "i":
        return _class_numbers(column, nodes, name, role, names)
    if column.kind == "text":
        return coded_column(name, column.texts(), role=role)
    if column.kind == "category" and names is not None:
        column = _renamed(column, names, name)
    return _in_role(column, role)


def _whole(column: Column) -> bool:
    present = column.values[~column.missing]
    return bool(np.isfinite(present).all() and (present == np.rint(present)).all())


def _named_column(label: str, nodes: Nodes, role: str) -> Column:
    """A column of the fields, in another role."""
    for k, column in enumerate(nodes.columns):
        if column.name == label:
            found = nodes.columns.pop(k)
            whole = found.kind == "number" and found.values.dtype.kind == "i"
            return _class_numbers(found, nodes, label, role, None) if whole else _in_role(found, role)
    have = _listed([repr(column.name) for column in nodes.columns]) or "none"
    expected = "be one label per node, or the name of a column of fields"
    raise InputError(parameter="labels", value=label, expected=expected, got=f"{label!r}, and columns {have}")


def _in_role(column: Column, role: str) -> Column:
    return replace(column, role=role)


def _label_values(labels: Any, nodes: Nodes, name: str) -> Any:
    if isinstance(labels, Mapping):
        table = {str(key): value for key, value in labels.items()}
        if not any(text in table for text in nodes.texts):
            raise InputError(parameter=name, expected="name nodes of the embedding", got="none of them")
        return [table.get(text) for text in nodes.texts]
    index = row_labels(labels)
    if index is not None:
        place = places(np.array([str(key) for key in index.tolist()]), nodes.ids.astype(str))
        if (place >= 0).any():
            values = labels.to_numpy()
            return [values[k] if k >= 0 else None for k in place.tolist()]
    length = len(labels) if hasattr(labels, "__len__") else None
    if length != nodes.n or getattr(labels, "ndim", 1) != 1:
        raise InputError(
            parameter=name,
            expected=f"hold one label for each of the {nodes.n:,} nodes",
            got="an array of shape " + str(labels.shape) if getattr(labels, "ndim", 1) != 1 else f"{length:,}",
            advice="pass them in the order of the rows, or as a mapping from id to label",
        )
    return labels


def _class_numbers(
    column: Column, nodes: Nodes, name: str, role: str, names: Sequence[str] | Mapping[Any, str] | None
) -> Column:
    """Integers as classes in their order; −1 beside classes from 0 on is a missing label."""
    present = column.values[~column.missing]
    classes = np.unique(present)
    if len(classes) > _MOST_CLASSES:
        return _in_role(column, role)
    gone = column.missing.copy()
    named = isinstance(names, Mapping) and not {-1, "-1"}.isdisjoint(names)
    if len(classes) > 2 and classes[0] == -1 and classes[1] == 0 and not named:
        gone |= column.values == -1
        classes = classes[1:]
        nodes.notes.append(f"Nodes whose {name} is −1 are shown as missing.")
    codes = np.where(gone, -1, np.searchsorted(classes, column.values))
    texts = [str(value) for value in classes.tolist()]
    found = category_column(name, codes, texts, role=role)
    return found if names is None else _renamed(found, names, name)


def _renamed(column: Column, names: Sequence[str] | Mapping[Any, str], what: str) -> Column:
    """The categories under other names: `names[label]`."""
    table = {str(key): str(text) for key, text in (names.items() if isinstance(names, Mapping) else enumerate(names))}
    missing = [text for text in column.categories if text not in table]
    if missing:
        expected = f"hold a name for each of the {what}"
        raise InputError(parameter="names", expected=expected, got=f"none for {missing[0]!r}")
    return category_column(column.name, column.values, [table[text] for text in column.categories], role=column.role)
