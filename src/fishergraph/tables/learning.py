"""What is done with every column of a table, in threads: its kind, what is learned of it, its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from fishergraph._parallel import n_threads
from fishergraph.tables.columns import Column
from fishergraph.tables.decide import KINDS, Decision, decide
from fishergraph.tables.faults import Faults, Unfit
from fishergraph.tables.numbers import Date, Number
from fishergraph.tables.record import Encoded, Presence, Record, Sizes, Values, missing_weight
from fishergraph.tables.schema import SchemaColumn
from fishergraph.tables.words import odd_words, words_beside_dates

T = TypeVar("T")
_DOMINATES = 4.0  # a mean square before the cut that is worth a word


class Learned:
    """What was learned of a column: its record if it is used, its rows, its line in the schema, and odd words."""

    def __init__(self, column: Column, decision: Decision, record: Record | None, values: Values | None):
        self.record = record
        self.encoded = None if record is None or values is None else record.encode(values)
        self.odd: list[str] = []
        self.undated = 0.0  # the share of words in a column of text that is one of dates otherwise
        if isinstance(record, Number) and column.is_text:
            self.odd = odd_words(column.words)
        elif column.is_text and decision.kind not in ("boolean", "number"):
            self.odd, share = words_beside_dates(column.words)
            self.undated = 0.0 if isinstance(record, Date) else share
        learned, outputs = decision.reason, 0
        if record is not None and values is not None:
            empty = int(values.missing.sum())
            learned = record.about() + (f"; {empty:,} missing" if empty else "")
            outputs = len(record.outputs)
        kind = None if record is None else record.kind
        self.entry = SchemaColumn(column.name, column.source, kind, outputs, learned)


def learn(column: Column, asked: str | None, sizes: Sizes) -> Learned:
    """Decide the kind of a column, and learn."""
    decision = decide(column, asked)
    if decision.kind is None:
        return Learned(column, decision, None, None)
    kind = KINDS[decision.kind]
    values = kind.convert(column)
    if values.missing.all():
        return Learned(column, Decision(None, "no value"), None, None)
    record = kind.learn(column.name, values, sizes)
    if record is None:
        weight = missing_weight(values.missing)
        if not weight:
            return Learned(column, Decision(None, "one value"), None, None)
        record = Presence(column.name, weight, decision.kind)
        values = record.convert(column)
    return Learned(column, decision, record, values)


def notes_of(learned: list[Learned]) -> list[tuple[str, str]]:
    """Columns whose numbers were cut or are partly words, and what is said of them."""
    notes, groups = [], sum(found.record is not None for found in learned) - 1
    for found in learned:
        name, record = found.entry.name, found.record
        if isinstance(record, Number) and groups and record.largest > max(groups, _DOMINATES):
            share = record.largest / (record.largest + groups)
            notes.append((name, f"{name!r} would be {share:.0%} of the length of a row, and is cut at 3 deviations"))
        if found.undated:
            words = " and ".join(map(repr, found.odd))
            notes.append((name, f"{name!r} holds dates but for {words}, {found.undated:.0%} of its cells"))
        elif found.odd:
            notes.append((name, f"{name!r} says {' and '.join(map(repr, found.odd[:3]))}, which count as missing"))
    return notes


def encode(record: Record, column: Column) -> Encoded:
    """The rows of a column; one without any value fits every kind."""
    if column.values.null_count == len(column) and not isinstance(record, Presence):
        width = len(record.value_names())
        blocks: list[Any] = [sp.csr_array((len(column), width), dtype=np.float32)]
        missing = Values(None, np.ones(len(column), dtype=bool))
        beside = Presence(record.name, record.missing).encode(missing) if record.missing else Encoded([], len(column))
        return Encoded([*blocks, *beside.blocks], beside.unseen)
    return record.encode(record.convert(column))


def each_column(faults: Faults, names: list[str], items: Sequence[Any], work: Callable[[Any], T]) -> list[T]:
    """The results of the columns, in threads; what is wrong with some goes to `faults`."""

    def attempt(item: Any) -> tuple[T | None, str]:
        try:
            return work(item), ""
        except Unfit as unfit:
            return None, str(unfit)

    with ThreadPoolExecutor(max(1, min(n_threads(None), len(items)))) as pool:
        done = list(pool.map(attempt, items))
    for name, (_, problem) in zip(names, done, strict=True):
        if problem:
            faults.add(name, problem)
    return [result for result, problem in done if not problem]  # type: ignore[misc]
