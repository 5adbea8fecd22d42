"""Lists of tags: words or integers of which a row has several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from pyarrow.compute import SplitPatternOptions, call_function

from fishergraph.io.vectors import is_number
from fishergraph.tables.categories import (
    MOST_HASHED,
    buckets_of,
    check_rare,
    distinct_rows,
    idf,
    known_values,
    new_among,
    places_of,
    text_of,
    unit_rows,
)
from fishergraph.tables.columns import WORDS, Column
from fishergraph.tables.faults import Unfit
from fishergraph.tables.record import Encoded, Record, Sizes, Values, floats_of, missing_weight
from fishergraph.tables.words import Words, as_words, matches

SEPARATORS = r"\s*[;|]\s*"  # of tags in a text
_ALL_SEPARATORS = r"\s*[;|,]\s*"


class _TagCells(NamedTuple):
    """The tags of every row: distinct tags, their codes one row after the other, and where rows begin."""

    words: Words
    indptr: np.ndarray


@dataclass(frozen=True, eq=False)
class Tags(Record):
    """Lists of words, weighted by how rare they are, as rows of length one."""

    kind: ClassVar[str] = "tags"
    tag: ClassVar[str] = "tags"

    values: tuple[str, ...]  # empty if tags are hashed
    rare: np.ndarray  # hashes of other tags of the fit
    weights: np.ndarray

    @classmethod
    def convert(cls, values: Column) -> Values:
        column, name = values.values, str(values.values.type)
        if name == "large_string":
            words = values.words
            pieces = call_function("split_pattern_regex", [words.texts], SplitPatternOptions(_separators(words.texts)))
            column = pieces.take(pa.array(np.where(words.codes < 0, 0, words.codes), mask=words.codes < 0))
        elif "list" not in name or not _is_tag(column.type.value_type):
            raise Unfit(f"holds {name}, which are no lists of tags")
        missing = np.asarray(column.is_null())
        lengths = call_function("list_value_length", [column]).fill_null(0).to_numpy(zero_copy_only=False)
        indptr = np.concatenate([[0], np.cumsum(lengths.astype(np.int64))])
        flat = column.flatten()
        text = flat.cast(pa.large_string()) if str(flat.type) in WORDS else text_of(flat)
        return Values(_TagCells(as_words(text), indptr), missing)

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        cells, present = values.cells, int((~values.missing).sum())
        rows = _tag_rows(cells, cells.words.codes, len(cells.words.texts))
        counts = np.bincount(rows.indices, minlength=len(cells.words.texts))
        if not len(counts) or (counts == present).all():
            return None
        known, missing = known_values(cells.words, counts, sizes), missing_weight(values.missing)
        if known is None:
            buckets = buckets_of(cells.words.texts, sizes.hashed)
            hashed = _tag_rows(cells, np.append(buckets, -1)[cells.words.codes], sizes.hashed)
            rare = np.empty(0, np.int64)
            return cls(name, missing, (), rare, idf(np.bincount(hashed.indices, minlength=sizes.hashed), present))
        return cls(
            name, missing, known.values, known.rare, idf(np.append(known.counts, min(known.others, present)), present)
        )

    @property
    def _hashed(self) -> bool:
        return len(self.weights) != len(self.values) + 1

    def value_names(self) -> list[str]:
        if self._hashed:
            return [f"{self.name} #{k}" for k in range(len(self.weights))]
        return [*(f"{self.name}={value}" for value in self.values), f"{self.name} other"]

    def encode_values(self, values: Values) -> Encoded:
        cells, unseen = values.cells, 0
        if self._hashed:
            place = buckets_of(cells.words.texts, len(self.weights))
        else:
            place = places_of(cells.words.texts, self.values)
            place = np.where(place < 0, len(self.values), place)
        at = np.append(place, -1)[cells.words.codes]
        if not self._hashed:
            new = new_among(cells.words.texts, place, self.rare, len(self.values))
            unseen = int(new[cells.words.codes].sum())
        rows = _tag_rows(cells, at, len(self.weights))
        rows.data[:] = self.weights[rows.indices]
        rows.eliminate_zeros()
        return Encoded([unit_rows(rows)], unseen)

    def about(self) -> str:
        if self._hashed:
            return f"tags in {len(self.weights)} hashed columns"
        shown = ", ".join(value[:20] for value in self.values[:3]) + (", …" if len(self.values) > 3 else "")
        return f"{len(self.values)} tags: {shown}" + (f"; {len(self.rare)} rare" if len(self.rare) else "")

    def check(self) -> None:
        texts = all(isinstance(value, str) for value in self.values)
        if not texts or len(set(self.values)) != len(self.values):
            raise ValueError(f"the tags of {self.name!r} must be distinct texts; get the file again.")
        check_rare(self.rare, self.name)
        weights = floats_of(self.weights, f"the weights of {self.name!r}", None)
        fits = len(weights) == len(self.values) + 1 or not self.values
        if not fits or not 0 < len(weights) <= MOST_HASHED or weights.min() < 0 or weights.max() > 100:
            raise ValueError(f"the weights of {self.name!r} must lie between 0 and 100; get the file again.")


def _is_tag(kind: pa.DataType) -> bool:
    return is_number(kind) or str(kind) in WORDS


def _separators(texts: pa.Array) -> str:
    """The regular expression that splits tags: at ; and | if some text has one, else at commas."""
    return SEPARATORS if matches(texts, "[;|]").any() else _ALL_SEPARATORS


def _tag_rows(cells: _TagCells, codes: np.ndarray, width: int) -> sp.csr_array:
    """How often each row has each code; negative codes are left out."""
    rows = np.repeat(np.arange(len(cells.indptr) - 1), np.diff(cells.indptr))
    used = codes >= 0
    counts = np.bincount(rows[used], minlength=len(cells.indptr) - 1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    order = np.lexsort((codes[used], rows[used]))
    return distinct_rows(indptr, codes[used][order].astype(np.int64), width)
