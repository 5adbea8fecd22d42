"""Columns of nodes: of what kind they are, and how a page shows and colours them.

A column is a category, a number, a date or a text. All of them may have missing values, and are shown as they were
given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fishergraph._repr import short_repr
from fishergraph.explore.pack import Parts

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_CATEGORIES = 1000  # texts with more distinct values are no categories
_FEW = 12  # so many distinct texts are categories even of a few nodes
_EXACT = 2**53  # larger integers are texts: the browser would round them
LONGEST_TEXT = 2000  # characters of a cell; the page says where a text was cut
_DAY = 86_400_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # the years 1 to 9999
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PADDED = re.compile(r"[+-]?0\d")
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """One column of the nodes.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"category", "number", "date", "text"}
        How it is shown.
    values : array of shape (n,)
        Codes of categories, −1 if missing; numbers; days or milliseconds since 1970; or texts, None if missing.
    missing : array of bool of shape (n,)
        Which values are missing.
    categories : tuple of str
        The names of the categories.
    days : bool
        Whether dates are days without a time.
    role : str
        What the page uses it for: "field", "label", "prediction", "degree", "cluster", "anomaly", …
    note : str
        What a reader must know of it.
    """

    name: str
    kind: str
    values: np.ndarray
    missing: np.ndarray
    categories: tuple[str, ...] = ()
    days: bool = False
    role: str = "field"
    note: str = ""

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: np.ndarray) -> Column:
        """The column of some rows, in their order."""
        return replace(self, values=self.values[rows], missing=self.missing[rows])

    def texts(self) -> list[str | None]:
        """The values as the page shows them, None for missing ones."""
        if self.kind == "category":
            return [None if code < 0 else self.categories[code] for code in self.values.tolist()]
        if self.kind == "date":
            unit = "D" if self.days else "ms"
            shown = np.datetime_as_string(self.values.astype(f"datetime64[{unit}]"))
            plain = [str(text).replace("T", " ").removesuffix(".000") for text in shown]
            return [None if gone else text for text, gone in zip(plain, self.missing, strict=True)]
        values = self.values.tolist()
        return [None if gone else str(value) for value, gone in zip(values, self.missing, strict=True)]

    def arrow(self) -> pa.Array:
        """The values as an Arrow array."""
        import pyarrow as pa

        if self.kind == "number":
            return pa.array(self.values, mask=self.missing)
        if self.kind == "date":
            unit = "datetime64[D]" if self.days else "datetime64[ms]"
            return pa.array(self.values.astype(unit), mask=self.missing)
        return pa.array(self.texts(), type=pa.string())

    def packed(self, parts: Parts) -> dict[str, Any]:
        """What the browser needs to read it; its arrays go to `parts`."""
        about: dict[str, Any] = {"name": self.name, "kind": self.kind, "role": self.role, "note": self.note}
        if self.kind == "category":
            return about | {"categories": list(self.categories), "codes": parts.integers(self.values + 1)}
        if self.kind == "text":
            texts = [text or "" for text in self.values.tolist()]
            gone = parts.array(self.missing.astype(np.uint8)) if self.missing.any() else None
            return about | {"strings": parts.strings(texts), "missing": gone}
        numbers = parts.numbers(self.values, self.missing)
        return about | {"numbers": numbers, "days": self.days, "integer": self.values.dtype.kind in "iu"}


# --- making columns -----------------------------------------------------------------------------------------


def number_column(name: str, values: np.ndarray, *, role: str = "field", note: str = "") -> Column:
    """A column of numbers; NaN is missing."""
    values = np.asarray(values)
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    return Column(name, "number", values, missing, role=role, note=note)


def category_column(
    name: str, codes: np.ndarray, categories: Sequence[str], *, role: str = "field", note: str = ""
) -> Column:
    """A column of categories by their codes; −1 is missing."""
    codes = np.asarray(codes, dtype=np.int64)
    return Column(name, "category", codes, codes < 0, tuple(categories), role=role, note=note)


def text_column(name: str, texts: Sequence[str | None], *, role: str = "field") -> Column:
    """A column of texts; None is missing. Texts that repeat become categories."""
    distinct = dict.fromkeys(text for text in texts if text is not None)
    present = sum(text is not None for text in texts)
    few = len(distinct) <= _FEW < len(texts) or len(distinct) <= min(_MOST_CATEGORIES, present // 2)
    if few and max(map(len, distinct), default=0) <= LONGEST_TEXT:
        return coded_column(name, texts, role=role)
    cut = sum(len(text) > LONGEST_TEXT for text in texts if text is not None)
    values = np.empty(len(texts), dtype=object)
    values[:] = [text if text is None or len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…" for text in texts]
    missing = np.array([text is None for text in texts], dtype=bool)
    note = f"{cut:,} texts were cut after {LONGEST_TEXT:,} characters." if cut else ""
    return Column(name, "text", values, missing, role=role, note=note)


def coded_column(name: str, texts: Sequence[str | None], *, role: str = "field") -> Column:
    """A column of categories, sorted by name; None is missing."""
    categories = sorted({text for text in texts if text is not None})
    code = {text: k for k, text in enumerate(categories)}
    return category_column(name, np.array([-1 if t is None else code[t] for t in texts]), categories, role=role)


def read_cells(name: str, cells: Sequence[Any]) -> Column:
    """A column of a text file: numbers or days if all cells are written as such, else text.

    007 is a text.
    """
    present = [cell for cell in cells if cell is not None]
    if present and all(isinstance(cell, int) for cell in present):
        missing = np.array([cell is None for cell in cells], dtype=bool)
        if max(map(abs, present)) <= _EXACT:
            return Column(name, "number", np.array([cell or 0 for cell in cells], dtype=np.int64), missing)
        return _texts(name, cells)
    words = [str(cell).strip() for cell in present]
    if words and all(_NUMBER.fullmatch(word) and not _PADDED.match(word) for word in words):
        values = np.array([np.nan if cell is None else float(cell) for cell in cells])
        return number_column(name, values) if np.isfinite(values[~np.isnan(values)]).all() else _texts(name, cells)
    if words and all(map(_ISO_DAY.fullmatch, words)):
        try:
            days = np.array([cell if cell is None else str(cell).strip() for cell in cells], dtype="datetime64[D]")
        except ValueError:  # 2021-02-30
            return _texts(name, cells)
        return _date_column(name, days.astype(np.int64), np.isnat(days), days=True)
    return _texts(name, cells)


def _texts(name: str, cells: Iterable[Any]) -> Column:
    return text_column(name, [None if cell is None else str(cell) for cell in cells])


def _arrow(values: Any) -> pa.Array:
    """Values as one Arrow array; those that Arrow refuses as their texts."""
    import pyarrow as pa

    try:
        column = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        column = pa.array([None if _is_missing(value) else str(value) for value in values])
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def _is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and value != value


def arrow_column(name: str, values: Any) -> Column | None:
    """A column of a table, from any values that Arrow reads; None if it holds vectors, which are not shown."""
    import pyarrow as pa

    column = _arrow(values)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, types = column.type, pa.types
    missing = np.asarray(column.is_null())
    if types.is_boolean(kind):
        codes = np.asarray(column.cast("int8").fill_null(-1))
        return category_column(name, codes, ("False", "True"))
    if types.is_integer(kind):
        whole = np.asarray(column.fill_null(0))
        if max(int(whole.max(initial=0)), -int(whole.min(initial=0))) <= _EXACT:
            return Column(name, "number", whole.astype(np.int64), missing)
    if types.is_floating(kind):
        floats = column.cast("float32") if types.is_float16(kind) else column
        return number_column(name, np.asarray(floats.to_numpy(zero_copy_only=False)))
    if types.is_date(kind):
        return _date_column(name, np.asarray(column.cast("date32").cast("int32").fill_null(0)), missing, days=True)
    if types.is_timestamp(kind) and kind.tz is None:
        dates = _timestamps(name, column, missing)
        if dates is not None:
            return dates
    if types.is_nested(kind):
        return None
    return text_column(name, _shown(column))


def _shown(column: pa.Array) -> list[str | None]:
    """The values of a column as texts."""
    return [None if value is None else value if isinstance(value, str) else str(value) for value in column.to_pylist()]


def _timestamps(name: str, column: pa.Array, missing: np.ndarray) -> Column | None:
    """Timestamps without a zone, if milliseconds say all; None for finer ones."""
    import pyarrow as pa

    try:
        ms = np.asarray(column.cast(pa.timestamp("ms")).cast("int64").fill_null(0))
    except pa.ArrowInvalid:  # it would lose digits
        return None
    days = bool((ms % _DAY == 0).all())
    return _date_column(name, ms // _DAY if days else ms, missing, days=days)


def _date_column(name: str, values: np.ndarray, missing: np.ndarray, *, days: bool) -> Column:
    """A column of days or milliseconds; of years that have no four digits, their texts."""
    values = np.where(missing, 0, values).astype(np.int64)
    column = Column(name, "date", values, missing, days=days)
    first, last = (_FIRST_DAY, _LAST_DAY) if days else (_FIRST_DAY * _DAY, _LAST_DAY * _DAY)
    if len(values) and (values.min() < first or values.max() > last):
        return text_column(name, column.texts())
    return column
