"""Features of a table: its columns of numbers, and its columns of vectors, side by side in one matrix."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from fishergraph._arrays import check_finite_rows
from fishergraph._errors import FileFormatError, FishergraphWarning
from fishergraph._warn import warn
from fishergraph.io.columns import check_column, listed, missing_value, positions
from fishergraph.io.files import Advance, count_nothing
from fishergraph.io.npz import loses_digits, within_single
from fishergraph.io.parquet import BlockTable, described
from fishergraph.io.vectors import as_numbers, is_number, is_vector, read_vectors, vector_names

_READERS = 2  # blocks that are read at once
_TILE = 2048  # rows whose columns are copied together: the same cache lines hold neighbouring columns
# Arrow types of which float32 keeps every digit.
_SINGLE = ("halffloat", "float", "bool", "int8", "uint8", "int16", "uint16")


@dataclass(frozen=True)
class Feature:
    """A column of a table, and the columns of the matrix that it fills."""

    name: str
    kind: pa.DataType
    names: list[str]
    vector: bool

    @property
    def exact(self) -> bool:
        """Whether float32 keeps the digits of all possible values."""
        return str(self.kind.value_type if self.vector else self.kind) in _SINGLE


class _LosesDigits(Exception):
    """A number beyond 2²⁴ that float32 would change."""


def not_numbers(path: str | Path, words: list[str], *, named: bool) -> FileFormatError:
    """The error about columns that hold no numbers; `named` says whether another column is known to hold the ids."""
    columns = listed(words)
    advice = "" if named else "name the column of the ids by id_column (--id-column on the command line), "
    return FileFormatError(
        path=path,
        reason=f"features must be numbers, but the columns {columns} hold other values",
        advice=f"{advice}leave labels out with drop=[{columns}] (--drop on the command line) and encode the rest",
    )


class FeatureReader:
    """The features of a table.

    A column of vectors stands for the columns NAME_0, …; that of a file of `embed` for the columns that the file names.

    Parameters
    ----------
    path : Path
        The file, for messages.
    table : BlockTable
        The table.
    aside : collection of str
        Columns that are no features.
    only : iterable of str, optional
        The features that are wanted; by default all.
    named : bool
        Whether the table has a column of ids.
    """

    def __init__(
        self, path: Path, table: BlockTable, aside: Collection[str], only: Iterable[str] | None, *, named: bool
    ):
        self.path, self.table = path, table
        wanted = None if only is None else set(only)
        self.features: list[Feature] = []
        words = []
        for field in table.schema:
            if field.name in aside:
                continue
            feature = self._feature(field, wanted)
            if feature is None:
                words.append(field.name)
            elif wanted is None or wanted.intersection(feature.names):
                self.features.append(feature)
        words = words if wanted is None else [name for name in words if name in wanted]
        if words:
            raise not_numbers(self.path, words, named=named)
        every = [name for feature in self.features for name in feature.names]
        positions(every, f"the names of the features of '{path}'")
        self._kept = [j for j, name in enumerate(every) if wanted is None or name in wanted]
        self.names = [every[j] for j in self._kept]
        self._width = len(every)

    def _feature(self, field: pa.Field, wanted: set[str] | None) -> Feature | None:
        """The feature of a column; None if it holds no numbers."""
        if is_number(field.type):
            return Feature(field.name, field.type, [field.name], False)
        if not is_vector(field.type):
            return None
        about = described(self.table.schema)
        names, fixed = about.get("names"), pa.types.is_fixed_size_list(field.type)
        if about.get("column") == field.name and are_names(names) and fixed and len(names) == field.type.list_size:
            return Feature(field.name, field.type, names, True)
        if wanted is not None and not any(name.startswith(f"{field.name}_") for name in wanted):
            return Feature(field.name, field.type, [], True)
        width = field.type.list_size if fixed else self._first_length(field.name)
        return Feature(field.name, field.type, vector_names(field.name, width), True)

    def _first_length(self, name: str) -> int:
        """The length of the first list of a column."""
        if not len(self.table):
            return 0
        first = self.table.read(0, [name]).column(0)[0]
        if not first.is_valid:
            raise missing_value(self._what(name), 0)
        return len(first)

    def _what(self, name: str) -> str:
        return f"feature {name!r} of '{self.path}'"

    def matrix(self, advance: Advance = count_nothing) -> np.ndarray:
        """The features (row, feature) as float32, or float64 if float32 would change numbers beyond 2²⁴.

        `advance(n)` is called with the rows that were read.
        """
        try:
            X = self._filled(np.float32, advance)
        except _LosesDigits:
            X = self._filled(np.float64, advance)
        return X if len(self._kept) == self._width else np.ascontiguousarray(X[:, self._kept])

    def _filled(self, dtype: Any, advance: Advance) -> np.ndarray:
        X = np.empty((len(self.table), self._width), dtype=dtype)
        if not self.features:
            return X

        def fill(k: int) -> int:
            self._fill(X, k)
            return self.table.blocks[k].stop - self.table.blocks[k].start

        with ThreadPoolExecutor(_READERS) as pool:
            for n_rows in pool.map(fill, range(len(self.table.blocks))):
                advance(n_rows)
        return X

    def _fill(self, X: np.ndarray, k: int) -> None:
        """Read a block into its rows of the matrix."""
        rows = self.table.blocks[k]
        block = self.table.read(k, [feature.name for feature in self.features])
        first, scalars = 0, []
        for feature in self.features:
            column = block.column(feature.name)
            if feature.vector:
                at = rows.start
                for values in read_vectors(column, len(feature.names), self._what(feature.name), first_row=rows.start):
                    self._check(values, feature, X.dtype)
                    X[at : at + len(values), first : first + values.shape[1]] = values
                    at += len(values)
            else:
                scalars.append((first, self._scalar(column, feature, rows.start, X.dtype)))
            first += len(feature.names)
        for start in range(rows.start, rows.stop if scalars else rows.start, _TILE):
            stop = min(start + _TILE, rows.stop)
            for j, values in scalars:
                X[start:stop, j] = values[start - rows.start : stop - rows.start]
        what = f"the features of '{self.path}'"
        check_finite_rows(X[rows], what, name_row=lambda row: f"row {rows.start + row}")

    def _scalar(self, column: pa.ChunkedArray, feature: Feature, first_row: int, dtype: Any) -> np.ndarray:
        """A column of numbers of a block."""
        what = self._what(feature.name)
        if column.null_count:
            check_column(column, what, first_row=first_row)
        values = as_numbers(column)
        self._check(values, feature, dtype)
        return values

    def _check(self, values: np.ndarray, feature: Feature, dtype: Any) -> None:
        if not feature.exact:
            within_single(values, self._what(feature.name))
            if dtype == np.float32 and loses_digits(values):
                raise _LosesDigits


def are_names(names: Any) -> TypeGuard[list[str]]:
    """Whether a value is a list of distinct texts."""
    return isinstance(names, list) and all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def warn_of_unread_ids(path: Path, table: BlockTable, name: str) -> None:
    """Warn if the first feature of a table without ids holds distinct integers."""
    if not str(table.schema.field(name).type).startswith(("int", "uint")):
        return
    first = table.columns([name]).column(0)
    if 1 < len(first) == len(first.unique()):
        text = (
            f"'{path}' has no column id, node or node_id: its rows are the nodes 0, 1, …, and {name!r}, which "
            f"holds distinct integers, is a feature. If it holds the ids, pass id_column={name!r} (--id-column)."
        )
        warn(FishergraphWarning(text, kind=f"ids of {path}"))
