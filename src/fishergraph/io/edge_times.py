"""Times of edges: numbers as they are, dates as seconds since 1970 (UTC)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.compute import call_function

from fishergraph._errors import InputError, shown
from fishergraph.io.columns import missing_value
from fishergraph.io.faults import SHOWN, TableFault


def read_times(column: Any, what: str) -> tuple[pa.Array, list[TableFault]]:
    """A column of times as int64 or float64, and the faults of those that are missing or no times."""
    values = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    values = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    missing = np.asarray(values.is_null())
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        missing |= np.asarray(call_function("binary_length", [values]).fill_null(0)) == 0
        numbers = _parsed(values, missing)
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        numbers = _seconds(values)
    elif pa.types.is_integer(kind):
        numbers = values.cast(pa.int64())
    elif pa.types.is_floating(kind):
        numbers = values.cast(pa.float64())
    else:
        got = str(kind)
        raise InputError(parameter=what, expected="hold numbers or dates", got=got, advice="convert them")
    faults = []
    bad = np.zeros(len(values), dtype=bool)
    if not pa.types.is_integer(numbers.type):
        seconds = numbers.to_numpy(zero_copy_only=False)
        bad = ~np.isfinite(seconds) & ~missing
    if missing.any():
        rows = np.flatnonzero(missing)
        faults.append(TableFault(missing_value(what, int(rows[0])), f"missing value{{s}} in {what}", rows))
    if bad.any():
        rows = np.flatnonzero(bad)
        texts = [shown(values[row].as_py()) for row in rows[:SHOWN].tolist()]
        advice = "write dates as 2026-11-19 or 2026-11-19T12:00:00"
        error = InputError(parameter=what, expected="hold numbers or dates", got=texts[0], advice=advice)
        faults.append(TableFault(error, f"value{{s}} of {what} without a time", rows, texts))
    return numbers, faults


def _seconds(values: pa.Array) -> pa.Array:
    """Dates as seconds since 1970; those without a zone are taken as UTC."""
    zone = getattr(values.type, "tz", None)
    micros = values.cast(pa.timestamp("us", tz=zone)).cast(pa.int64())
    return call_function("divide", [micros.cast(pa.float64()), pa.scalar(1e6)])


def _parsed(values: pa.Array, missing: np.ndarray) -> pa.Array:
    """Texts as numbers or dates; NaN if they are neither."""
    filled = call_function("if_else", [pa.array(missing), pa.scalar(None, values.type), values]).cast(pa.string())
    for kind in (pa.int64(), pa.float64()):
        try:
            return filled.cast(kind)
        except pa.ArrowInvalid:
            pass
    try:
        return _seconds(filled.cast(pa.timestamp("us", tz="UTC")))
    except pa.ArrowInvalid:
        pass
    try:
        return _seconds(filled.cast(pa.timestamp("us")))
    except pa.ArrowInvalid:
        return pa.array([np.nan if text is None else _one(text) for text in filled.to_pylist()], pa.float64())


def _one(text: str) -> float:
    """A text as a number or a date; NaN if it is neither."""
    for kind in (pa.float64(), pa.timestamp("us", tz="UTC"), pa.timestamp("us")):
        try:
            value = pa.array([text]).cast(kind)
        except pa.ArrowInvalid:
            continue
        return float(value[0].as_py()) if kind == pa.float64() else float(_seconds(value)[0].as_py())
    return float("nan")
