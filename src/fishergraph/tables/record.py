"""The base of what is learned of a column: a small frozen record that turns its values into columns of numbers.

Every record follows one rule of scale. A value has at most the length one on average: numbers are divided by a robust
spread and cut at ±3, a flag is 2(x − p), a category or tag counts √(1 − p) where p is its share of the rows, texts
have the length one, and a group of several numbers is divided by its root mean square. A missing value is zero in
the columns of values, and √(1 − q) in the indicator column, where q is the share of missing values. So no column
dominates a row by its unit, and what most rows share counts little.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from fishergraph._validation import check_number

MOST_DEVIATIONS = 3.0  # where numbers are cut, in robust standard deviations


@dataclass(frozen=True)
class Sizes:
    """How many columns a column of the table may become.

    Parameters
    ----------
    categories : int
        The most values of a category or tags that have columns of their own.
    hashed : int
        The number of columns that hashed values and words share.
    """

    categories: int
    hashed: int


class Values(NamedTuple):
    """The cells of a column in the form of its kind, and which of them are missing."""

    cells: Any
    missing: np.ndarray  # (row,)


class Encoded(NamedTuple):
    """The rows of a column as blocks side by side, and how many of its cells hold what the fit did not know."""

    blocks: list[Any]  # float32 (row, column), dense or CSR
    unseen: int = 0


@dataclass(frozen=True, eq=False)
class Record(ABC):
    """What was learned of a column.

    Parameters
    ----------
    name : str
        The column of the table.
    missing : float
        The value of the indicator of a missing cell; 0 if the fit had none, and then there is no such column.
    """

    name: str
    missing: float

    kind: ClassVar[str]
    tag: ClassVar[str]  # of the record in a model file

    @classmethod
    @abstractmethod
    def convert(cls, values: Any) -> Values:
        """The cells in the form of the kind; raises `Unfit` if they are of another."""

    @classmethod
    @abstractmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        """What is learned of a column; None if its cells that are not missing are all alike."""

    @abstractmethod
    def value_names(self) -> list[str]:
        """The names of the columns of values."""

    @abstractmethod
    def encode_values(self, values: Values) -> Encoded:
        """The columns of values, which are zero where a cell is missing."""

    @abstractmethod
    def about(self) -> str:
        """What was learned, in a few words."""

    def check(self) -> None:  # noqa: B027
        """Raise a ValueError unless the record is one that `learn` could return."""

    @property
    def outputs(self) -> list[str]:
        """The names of the columns of numbers."""
        return [*self.value_names(), *([f"{self.name} missing"] if self.missing else [])]

    def encode(self, values: Values) -> Encoded:
        """The columns of numbers."""
        blocks, unseen = self.encode_values(values)
        if not self.missing:
            return Encoded(blocks, unseen + int(values.missing.sum()))
        return Encoded([*blocks, _indicator(values.missing, self.missing)], unseen)

    def pack(self, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        """The record as JSON; its arrays go to `arrays`."""
        entry: dict[str, Any] = {"tag": self.tag}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                arrays[f"{prefix}.{field.name}"] = np.ascontiguousarray(value)
            else:
                entry[field.name] = list(value) if isinstance(value, tuple) else value
        return entry

    @classmethod
    def unpack(cls, entry: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray]) -> Self:
        """The record that `pack` wrote, validated."""
        values = {}
        for field in fields(cls):
            if field.name in entry:
                value = entry[field.name]
                values[field.name] = tuple(value) if isinstance(value, list) else value
            else:
                values[field.name] = arrays.pop(f"{prefix}.{field.name}")
        unknown = set(entry) - set(values) - {"tag"}
        if unknown:
            raise KeyError(min(unknown))
        if not isinstance(values["name"], str):
            raise TypeError(f"{values['name']!r} is not the name of a column")
        record = cls(**values)
        check_number(record.missing, f"the indicator of {record.name!r}", most=1.0)
        record.check()
        return record


@dataclass(frozen=True, eq=False)
class Presence(Record):
    """A column of which only that a cell is missing says something."""

    tag: ClassVar[str] = "presence"
    of: str = "category"  # the kind

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The kind of the column."""
        return self.of

    @classmethod
    def convert(cls, values: Any) -> Values:
        return Values(None, values.words.codes < 0 if values.is_text else np.asarray(values.values.is_null()))

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        raise NotImplementedError

    def value_names(self) -> list[str]:
        return []

    def encode_values(self, values: Values) -> Encoded:
        return Encoded([])

    def about(self) -> str:
        return "one value, or none"


def missing_weight(missing: np.ndarray) -> float:
    """The value of the indicator of a missing cell; 0 if there are none, or no others."""
    share = float(missing.mean()) if len(missing) else 0.0
    return float(np.sqrt(1 - share)) if 0 < share < 1 else 0.0


def scale_down(mean_square: float) -> float:
    """The factor that makes a mean squared length at most one."""
    return 1 / float(np.sqrt(max(1.0, mean_square)))


def share_weights(counts: np.ndarray, n_rows: int) -> np.ndarray:
    """√(1 − p) of values that so many rows have."""
    return np.sqrt(np.maximum(1 - counts / max(n_rows, 1), 0)).astype(np.float32)


def one_hot(codes: np.ndarray, weights: np.ndarray) -> sp.csr_array:
    """Rows with one entry, the weight of their code; a negative code has none."""
    used = codes >= 0
    indptr = np.concatenate([[0], np.cumsum(used)]).astype(np.int32 if len(codes) < 2**31 else np.int64)
    columns = codes[used].astype(np.int32)
    rows = sp.csr_array((weights[columns], columns, indptr), shape=(len(codes), len(weights)))
    rows.eliminate_zeros()
    return rows


def _indicator(missing: np.ndarray, value: float) -> sp.csr_array:
    return one_hot(np.where(missing, 0, -1), np.array([value], np.float32))


def floats_of(value: object, name: str, *shape: int | None) -> np.ndarray:
    """A float32 array of a model file in this shape; None is any length."""
    fits = isinstance(value, np.ndarray) and value.dtype == np.float32 and value.ndim == len(shape)
    if not fits or any(m is not None and n != m for n, m in zip(value.shape, shape, strict=True)):  # type: ignore[union-attr]
        raise ValueError(f"{name} must be float32 of shape {shape}; get the file again.")
    return value  # type: ignore[return-value]
