"""Categories and short texts: the kinds whose values are words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow.compute import ReplaceSubstringOptions, SetLookupOptions, call_function

from fishergraph._validation import check_integer
from fishergraph.tables.columns import Column
from fishergraph.tables.faults import Unfit
from fishergraph.tables.kernels import count_words, hash_texts, hash_words, unique_in_rows
from fishergraph.tables.record import (
    Encoded,
    Record,
    Sizes,
    Values,
    floats_of,
    missing_weight,
    one_hot,
    share_weights,
)
from fishergraph.tables.words import Words, as_words

MOST_HASHED = 2**24
_FEWEST = 2  # rows that a value of its own column must have


# --- text in Arrow ---------------------------------------------------------------------------------------


def _bytes(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of a large_string array, and where each text begins."""
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64, len(texts) + 1 + texts.offset)[texts.offset :] if offsets else None
    starts = np.zeros(len(texts) + 1, np.int64) if starts is None else starts
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8), starts


def buckets_of(texts: pa.Array, n_buckets: int) -> np.ndarray:
    """The bucket of each text."""
    buckets = np.empty(len(texts), np.int64)
    hash_texts(*_bytes(texts), n_buckets, buckets)
    return buckets


def word_rows(texts: pa.Array, n_buckets: int) -> sp.csr_array:
    """How often the words of each text fall into each bucket, in lower case."""
    data, offsets = _bytes(call_function("utf8_lower", [texts]))
    counts = np.empty(len(texts), np.int64)
    count_words(data, offsets, counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    buckets = np.empty(indptr[-1], np.int64)
    hash_words(data, offsets, n_buckets, indptr, buckets)
    return distinct_rows(indptr, buckets, n_buckets)


def distinct_rows(indptr: np.ndarray, buckets: np.ndarray, width: int) -> sp.csr_array:
    """Rows of sorted columns as a matrix of counts."""
    kept, columns = np.empty_like(indptr), np.empty(len(buckets), np.int32)
    counts = np.empty(len(buckets), np.float32)
    unique_in_rows(indptr, buckets, kept, columns, counts)
    end = int(kept[-1])
    rows = kept.astype(np.int32) if end < 2**31 else kept
    return sp.csr_array((counts[:end], columns[:end], rows), shape=(len(indptr) - 1, width))


def mean_words(texts: pa.Array) -> float:
    """The mean number of words of the first texts."""
    sample = texts.slice(0, 10_000)
    counts = np.empty(len(sample), np.int64)
    count_words(*_bytes(sample), counts)
    return float(counts.mean()) if len(counts) else 0.0


def words_of(column: Column) -> Words:
    """The distinct values of any column as text."""
    return column.words if column.is_text else as_words(text_of(column.values))


def text_of(column: pa.Array) -> pa.Array:
    """Any plain column as text: 1.0 is written 1, as integers are that pandas keeps beside missing ones."""
    name = str(column.type)
    if name == "large_string":
        return column
    if "list" in name:
        raise Unfit("holds lists, which are no words")
    text = column.cast(pa.large_string())
    if name in ("float", "double"):
        text = call_function("replace_substring_regex", [text], ReplaceSubstringOptions(r"\.0$", ""))
    return text


# --- categories ------------------------------------------------------------------------------------------


class Known(NamedTuple):
    """Values that have columns of their own, how many rows have each or another one, and the hashes of the others."""

    values: tuple[str, ...]
    counts: np.ndarray
    others: int
    rare: np.ndarray


def known_values(words: Words, counts: np.ndarray, sizes: Sizes) -> Known | None:
    """The values of at least two rows; None if they are too many."""
    frequent = np.flatnonzero(counts >= _FEWEST)
    if len(frequent) > sizes.categories:
        return None
    texts = words.texts.take(pa.array(frequent)).to_pylist()
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    shared = counts[frequent][order]
    rare = words.texts.filter(pa.array((counts > 0) & (counts < _FEWEST)))
    return Known(tuple(texts[k] for k in order), shared, int(counts.sum() - shared.sum()), np.sort(marks_of(rare)))


def marks_of(texts: pa.Array) -> np.ndarray:
    """A hash of 63 bits of each text."""
    return buckets_of(texts, 2**63 - 1)


def new_among(texts: pa.Array, place: np.ndarray, rare: np.ndarray, n_known: int) -> np.ndarray:
    """Whether the fit did not know a text, and False in the end for a missing one."""
    new = np.zeros(len(place) + 1, dtype=bool)
    others = np.flatnonzero(place == n_known)
    new[others] = ~np.isin(marks_of(texts.take(pa.array(others))), rare)
    return new


def check_rare(rare: object, name: str) -> None:
    """Raise unless the rare values of a model file are hashes."""
    if not isinstance(rare, np.ndarray) or rare.dtype != np.int64 or rare.ndim != 1:
        raise ValueError(f"the rare values of {name!r} must be hashes of 64 bits; get the file again.")


def places_of(texts: pa.Array, known: tuple[str, ...]) -> np.ndarray:
    """The place of each text among the known values, −1 for another."""
    found = call_function("index_in", [texts], SetLookupOptions(value_set=pa.array(list(known), pa.large_string())))
    return found.fill_null(-1).to_numpy(zero_copy_only=False)


@dataclass(frozen=True, eq=False)
class Category(Record):
    """One of several words: a column for each that at least two rows have, and one for all others."""

    kind: ClassVar[str] = "category"
    tag: ClassVar[str] = "category"

    values: tuple[str, ...]
    rare: np.ndarray  # hashes of the values of the fit without a column of their own
    weights: np.ndarray  # of the values, and of others

    @classmethod
    def convert(cls, values: Column) -> Values:
        words = words_of(values)
        return Values(words, words.codes < 0)

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        words, counts = values.cells, values.cells.counts
        if (counts > 0).sum() < 2:
            return None
        known = known_values(words, counts, sizes)
        missing = missing_weight(values.missing)
        if known is None:
            return HashedCategory(name, missing, sizes.hashed, int((counts > 0).sum()))
        weights = share_weights(np.append(known.counts, known.others), int(counts.sum()))
        return cls(name, missing, known.values, known.rare, weights)

    def value_names(self) -> list[str]:
        return [*(f"{self.name}={value}" for value in self.values), f"{self.name} other"]

    def encode_values(self, values: Values) -> Encoded:
        words = values.cells
        place = places_of(words.texts, self.values)
        place = np.where(place < 0, len(self.values), place)
        new = new_among(words.texts, place, self.rare, len(self.values))
        return Encoded([one_hot(np.append(place, -1)[words.codes], self.weights)], int(new[words.codes].sum()))

    def about(self) -> str:
        shown = ", ".join(value[:20] for value in self.values[:3]) + (", …" if len(self.values) > 3 else "")
        rare = f"; {len(self.rare)} rare" if len(self.rare) else ""
        return f"{len(self.values)} values: {shown}{rare}" if self.values else f"{len(self.rare)} rare values"

    def check(self) -> None:
        texts = all(isinstance(value, str) for value in self.values)
        if not texts or len(set(self.values)) != len(self.values):
            raise ValueError(f"the values of {self.name!r} must be distinct texts; get the file again.")
        check_rare(self.rare, self.name)
        weights = floats_of(self.weights, f"the weights of {self.name!r}", len(self.values) + 1)
        if weights.min() < 0 or weights.max() > 1:
            raise ValueError(f"the weights of {self.name!r} must lie between 0 and 1; get the file again.")


@dataclass(frozen=True, eq=False)
class HashedCategory(Record):
    """One of very many words: its hash is its column."""

    kind: ClassVar[str] = "category"
    tag: ClassVar[str] = "hashed category"

    width: int
    distinct: int

    convert = Category.convert  # type: ignore[assignment]
    learn = Category.learn  # type: ignore[assignment]

    def value_names(self) -> list[str]:
        return [f"{self.name} #{k}" for k in range(self.width)]

    def encode_values(self, values: Values) -> Encoded:
        at = np.append(buckets_of(values.cells.texts, self.width), -1)[values.cells.codes]
        return Encoded([one_hot(at, np.ones(self.width, np.float32))])

    def about(self) -> str:
        return f"{self.distinct:,} values in {self.width} hashed columns"

    def check(self) -> None:
        check_integer(self.width, f"the width of {self.name!r}", least=1, most=MOST_HASHED)
        check_integer(self.distinct, f"the number of values of {self.name!r}", least=2)


# --- texts -----------------------------------------------------------------------------------------------


def idf(counts: np.ndarray, n_rows: int) -> np.ndarray:
    """log((1 + n) / (1 + count)): what a word says that so many rows have; 1 at least for one that no row has."""
    return np.log((1 + n_rows) / (1 + counts)).astype(np.float32)


def unit_rows(rows: sp.csr_array) -> sp.csr_array:
    """Sparse rows divided by their lengths, in place."""
    counts = np.diff(rows.indptr)
    squares = np.zeros(len(counts))
    filled = np.flatnonzero(counts)
    if len(filled):
        squares[filled] = np.add.reduceat(np.square(rows.data, dtype=np.float64), rows.indptr[filled])
    lengths = np.sqrt(np.where(squares > 0, squares, 1))
    rows.data /= np.repeat(lengths, counts).astype(np.float32)
    return rows


@dataclass(frozen=True, eq=False)
class Text(Record):
    """Short texts: their words in hashed columns, weighted by how rare they are, as rows of length one."""

    kind: ClassVar[str] = "text"
    tag: ClassVar[str] = "text"

    weights: np.ndarray  # idf of each column

    @classmethod
    def convert(cls, values: Column) -> Values:
        words = words_of(values)
        return Values(words, words.codes < 0)

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        words, counts = values.cells, values.cells.counts
        if (counts > 0).sum() < 2:
            return None
        rows = word_rows(words.texts, sizes.hashed)
        times = np.repeat(counts, np.diff(rows.indptr))
        shared = np.bincount(rows.indices, weights=times, minlength=sizes.hashed)
        return cls(name, missing_weight(values.missing), idf(shared, int(counts.sum())))

    def value_names(self) -> list[str]:
        return [f"{self.name} word {k}" for k in range(len(self.weights))]

    def encode_values(self, values: Values) -> Encoded:
        rows = word_rows(values.cells.texts, len(self.weights))
        rows.data *= self.weights[rows.indices]
        rows.eliminate_zeros()
        return Encoded([_rows_of(unit_rows(rows), values.cells.codes)])

    def about(self) -> str:
        return f"words in {len(self.weights)} hashed columns"

    def check(self) -> None:
        weights = floats_of(self.weights, f"the weights of {self.name!r}", None)
        if not 0 < len(weights) <= MOST_HASHED or weights.min() < 0 or weights.max() > 100:
            raise ValueError(f"the weights of {self.name!r} must lie between 0 and 100; get the file again.")


def _rows_of(distinct: sp.csr_array, codes: np.ndarray) -> sp.csr_array:
    """The row of each code; that of a negative code is empty."""
    n_distinct = len(distinct.indptr) - 1
    if len(codes) == n_distinct and len(codes) and np.array_equal(codes, np.arange(len(codes))):
        return distinct
    ends = np.append(distinct.indptr, distinct.indptr[-1])  # an empty row for code −1
    width: Any = distinct.shape
    rows: Any = sp.csr_array((distinct.data, distinct.indices, ends), shape=(n_distinct + 1, width[1]))
    return sp.csr_array(rows[np.where(codes < 0, n_distinct, codes)])
