"""Numbers, flags, dates and vectors: the kinds whose values are quantities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow.compute import call_function

from fishergraph._validation import MOST_COLUMNS, check_integer, check_number
from fishergraph.io.vectors import as_numbers, is_number, is_vector, vector_names
from fishergraph.tables.columns import Column, without_nan
from fishergraph.tables.faults import Unfit
from fishergraph.tables.record import (
    MOST_DEVIATIONS,
    Encoded,
    Record,
    Sizes,
    Values,
    missing_weight,
    scale_down,
)
from fishergraph.tables.words import FALSE, TRUE, cell_numbers, dates_of_words, numbers_of_words

_QUARTILES_PER_DEVIATION = 1.349  # of a normal distribution
_DAY, _WEEK, _YEAR = 86_400_000_000, 7, 365.2425  # microseconds, days, days
_FIRST_WEEKDAY = 3  # 1970-01-01 was a Thursday
_MOST_SPREAD = 1e300


# --- numbers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Number(Record):
    """Numbers in robust standard deviations from their median, cut at ±3."""

    kind: ClassVar[str] = "number"
    tag: ClassVar[str] = "number"

    centre: float
    spread: float
    factor: float
    largest: float  # mean square of the numbers before they are cut

    @classmethod
    def convert(cls, values: Column) -> Values:
        column, name = values.values, str(values.values.type)
        if name == "large_string":
            words = values.words
            return _filled(numbers_of_words(words)[words.codes], words.codes < 0)
        if name.startswith("duration"):
            column = call_function(
                "divide", [column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 864e8]
            )
        elif not is_number(column.type):
            raise Unfit(f"holds {_plural(name)}, which are no numbers")
        cells = as_numbers(column.cast(pa.float64(), safe=False))
        return _filled(cells, np.asarray(column.is_null()))

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        present = values.cells[~values.missing]
        centre, spread = robust(present)
        if not spread:
            return None
        z = (present - centre) / spread
        cut = np.clip(z, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        factor, largest = scale_down(float(np.mean(cut * cut))), float(np.mean(z * z))
        return cls(name, missing_weight(values.missing), centre, spread, factor, largest)

    def value_names(self) -> list[str]:
        return [self.name]

    def encode_values(self, values: Values) -> Encoded:
        return Encoded([standard(values, self.centre, self.spread, self.factor)[:, None]])

    def about(self) -> str:
        return f"median {self.centre:.6g}, spread {self.spread:.4g}"

    def check(self) -> None:
        check_number(self.centre, f"the median of {self.name!r}", least=-_MOST_SPREAD, most=_MOST_SPREAD)
        check_number(self.spread, f"the spread of {self.name!r}", strict=True, most=_MOST_SPREAD)
        check_number(self.factor, f"the factor of {self.name!r}", strict=True, most=1.0)
        check_number(self.largest, f"the largest mean square of {self.name!r}", most=_MOST_SPREAD)


def robust(present: np.ndarray) -> tuple[float, float]:
    """The median, and the standard deviation that the quartiles tell, else the usual one; 0 if all are the same."""
    low, centre, high = np.percentile(present, [25, 50, 75])
    spread = (high - low) / _QUARTILES_PER_DEVIATION
    if not spread > 1e-12 * max(abs(low), abs(high)):
        spread = float(present.std())
        spread = spread if spread > 1e-12 * np.abs(present).max(initial=0) else 0.0
    return float(centre), min(float(spread), _MOST_SPREAD)


def standard(values: Values, centre: float, spread: float, factor: float) -> np.ndarray:
    """Numbers in units of the spread, cut, as float32; missing ones are zero."""
    z = (values.cells - centre) / spread
    np.clip(z, -MOST_DEVIATIONS, MOST_DEVIATIONS, out=z)
    z *= factor
    z[values.missing] = 0
    return z.astype(np.float32)


def _filled(cells: np.ndarray, missing: np.ndarray) -> Values:
    """Numbers with 0 in the place of missing ones."""
    missing = missing | np.isnan(cells)
    return Values(np.where(missing, 0.0, cells), missing)


def _plural(name: str) -> str:
    return "lists" if "list" in name else "dates or times" if name.startswith(("date", "time")) else name


# --- flags -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Flag(Record):
    """True and false as 2(x − p), where p is the share of true."""

    kind: ClassVar[str] = "boolean"
    tag: ClassVar[str] = "boolean"

    share: float

    @classmethod
    def convert(cls, values: Column) -> Values:
        column, name = values.values, str(values.values.type)
        if name == "large_string":
            words = values.words
            known = np.array([word.lower() in (*TRUE, *FALSE) for word in words.texts.to_pylist()], dtype=bool)
            if not known.all():
                odd = words.texts[int(np.flatnonzero(~known)[0])].as_py()
                raise Unfit(f"holds the word {odd[:40]!r}, which is neither yes nor no")
            true = np.array([*(word.lower() in TRUE for word in words.texts.to_pylist()), False])
            return Values(true[words.codes], words.codes < 0)
        if not is_number(column.type):
            raise Unfit(f"holds {_plural(name)}, which are no flags")
        cells = as_numbers(column.cast(pa.float64(), safe=False))
        missing = np.asarray(column.is_null())
        if not np.isin(cells[~missing], (0, 1)).all():
            raise Unfit("holds other numbers than 0 and 1")
        return Values(np.where(missing, 0, cells) > 0, missing)

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        share = float(values.cells[~values.missing].mean())
        return cls(name, missing_weight(values.missing), share) if 0 < share < 1 else None

    def value_names(self) -> list[str]:
        return [self.name]

    def encode_values(self, values: Values) -> Encoded:
        cells = 2 * (values.cells - self.share)
        cells[values.missing] = 0
        return Encoded([cells.astype(np.float32)[:, None]])

    def about(self) -> str:
        return f"true in {self.share:.1%}"

    def check(self) -> None:
        check_number(self.share, f"the share of {self.name!r}", strict=True, most=1.0)


# --- dates -----------------------------------------------------------------------------------------------

_PARTS = ("age", "year", "week", "day")
_CYCLES = {"year": "time of the year", "week": "day of the week", "day": "time of the day"}


@dataclass(frozen=True, eq=False)
class Date(Record):
    """Dates and times: their age, and those of the cycles of year, week and day in which they differ."""

    kind: ClassVar[str] = "date"
    tag: ClassVar[str] = "date"

    parts: tuple[str, ...]
    centre: float  # in days since 1970
    spread: float
    factor: float  # of all parts together

    @classmethod
    def convert(cls, values: Column) -> Values:
        column, name = values.values, str(values.values.type)
        if name == "large_string":
            words = values.words
            dates = dates_of_words(words)
            at = np.append(dates, np.datetime64("NaT"))[words.codes]
            missing = np.isnat(at)
            return Values(np.where(missing, np.datetime64(0, "us"), at).astype(np.int64), missing)
        if name.startswith("time") and not name.startswith("timestamp"):
            unit = column.type.unit if hasattr(column.type, "unit") else "us"
            ticks = column.cast(pa.int32() if name.startswith("time32") else pa.int64()).cast(pa.int64())
            cells = ticks.fill_null(0).to_numpy(zero_copy_only=False)
            per = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}[unit]
            return Values((cells * per).astype(np.int64), np.asarray(column.is_null()))
        if not name.startswith(("date", "timestamp")):
            raise Unfit(f"holds {'words' if name == 'large_string' else _plural(name)}, which are no dates")
        try:
            times = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        except pa.ArrowException:
            raise Unfit("holds dates beyond the years that 64 bits can count") from None
        return Values(times.fill_null(0).to_numpy(zero_copy_only=False), np.asarray(column.is_null()))

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        present = values.cells[~values.missing]
        days = present / _DAY
        centre, spread = robust(days)
        if not spread:
            return None
        parts = tuple(part for part in _PARTS[1:] if _varies(_phase(present, part)))
        whole = parts == ("day",) and days.max() - days.min() < 1  # times without a date
        parts = parts if whole else ("age", *parts)
        record = cls(name, missing_weight(values.missing), parts, centre, spread, 1.0)
        block = record._parts(Values(present, np.zeros(len(present), bool)))
        factor = scale_down(float(np.mean(np.square(block).sum(axis=1, dtype=np.float64))))
        return cls(name, record.missing, parts, centre, spread, factor)

    def value_names(self) -> list[str]:
        names = []
        for part in self.parts:
            ends = [part] if part == "age" else [f"{part} sin", f"{part} cos"]
            names += [f"{self.name} {end}" for end in ends]
        return names

    def encode_values(self, values: Values) -> Encoded:
        return Encoded([self._parts(values)])

    def _parts(self, values: Values) -> np.ndarray:
        columns = []
        for part in self.parts:
            if part == "age":
                days = Values(values.cells / _DAY, values.missing)
                columns.append(standard(days, self.centre, self.spread, self.factor))
                continue
            angle = 2 * np.pi * _phase(values.cells, part)
            for wave in (np.sin(angle), np.cos(angle)):
                wave *= self.factor
                wave[values.missing] = 0
                columns.append(wave.astype(np.float32))
        return np.stack(columns, axis=1)

    def about(self) -> str:
        middle = np.datetime64(int(self.centre * _DAY), "us").astype("M8[D]")
        cycles = [_CYCLES[part] for part in self.parts if part != "age"]
        age = [f"age around {middle}"] if "age" in self.parts else []
        return ", ".join([*age, *cycles])

    def check(self) -> None:
        if not self.parts or len(set(self.parts)) != len(self.parts) or not set(self.parts) <= set(_PARTS):
            raise ValueError(f"the parts of {self.name!r} must be some of {_PARTS}; get the file again.")
        check_number(self.centre, f"the median of {self.name!r}", least=-1e9, most=1e9)
        check_number(self.spread, f"the spread of {self.name!r}", strict=True, most=1e9)
        check_number(self.factor, f"the factor of {self.name!r}", strict=True, most=1.0)


def _phase(times: np.ndarray, part: str) -> np.ndarray:
    """Where times in microseconds are in a cycle, from 0 to 1."""
    if part == "day":
        return (times % _DAY) / _DAY
    days = times // _DAY
    if part == "week":
        return ((days + _FIRST_WEEKDAY) % _WEEK) / _WEEK
    dates = days.astype("M8[D]")
    return (dates - dates.astype("M8[Y]")).astype(np.float64) / _YEAR


def _varies(phases: np.ndarray) -> bool:
    return bool(len(phases) and phases.min() < phases.max())


# --- vectors ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Vector(Record):
    """Lists of numbers of one length, divided by the root of their mean squared length."""

    kind: ClassVar[str] = "vector"
    tag: ClassVar[str] = "vector"

    width: int
    length: float

    @classmethod
    def convert(cls, values: Column) -> Values:
        column = values.values
        if not is_vector(column.type):
            raise Unfit("holds no lists of numbers")
        missing = np.asarray(column.is_null())
        lists = column.filter(pa.array(~missing))
        lengths = call_function("list_value_length", [lists]).to_numpy(zero_copy_only=False)
        width = int(lengths[0]) if len(lengths) else 0
        if (lengths != width).any():
            row = int(np.flatnonzero(~missing)[np.flatnonzero(lengths != width)[0]])
            raise Unfit(f"holds lists of several lengths, such as {width} in the first row and another in row {row}")
        entries = without_nan(lists.flatten().cast(pa.float64(), safe=False))
        if entries.null_count:
            row = int(np.flatnonzero(~missing)[int(np.flatnonzero(entries.is_null())[0]) // max(width, 1)])
            raise Unfit(f"misses an entry of the vector in row {row}")
        cells = np.zeros((len(column), width), np.float64)
        cells[~missing] = cell_numbers(entries).reshape(-1, width)
        return Values(cells, missing)

    @classmethod
    def learn(cls, name: str, values: Values, sizes: Sizes) -> Record | None:
        present = values.cells[~values.missing]
        if not present.size or (present == present[0]).all():
            return None
        length = float(np.sqrt(np.mean(np.square(present).sum(axis=1))))
        if not np.isfinite(length):
            raise Unfit("holds numbers whose squares are too large")
        return cls(name, missing_weight(values.missing), present.shape[1], length)

    def value_names(self) -> list[str]:
        return vector_names(self.name, self.width)

    def encode_values(self, values: Values) -> Encoded:
        if values.cells.shape[1] != self.width and not values.missing.all():
            raise Unfit(f"holds vectors of {values.cells.shape[1]} numbers, not of {self.width}")
        if values.missing.all():
            return Encoded([np.zeros((len(values.missing), self.width), np.float32)])
        return Encoded([(values.cells / self.length).astype(np.float32)])

    def about(self) -> str:
        return f"{self.width} numbers, length {self.length:.4g}"

    def check(self) -> None:
        check_integer(self.width, f"the width of {self.name!r}", least=1, most=MOST_COLUMNS)
        check_number(self.length, f"the length of {self.name!r}", strict=True, most=_MOST_SPREAD)


def is_binary(values: Any) -> bool:
    """Whether Arrow integers are 0 and 1 alone."""
    low, high = (call_function(name, [values]).as_py() for name in ("min", "max"))
    return low == 0 and high == 1
