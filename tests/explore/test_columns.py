"""Columns of every type are shown as they were given."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unpacked_page as unpack
from fishergraph.explore.columns import LONGEST_TEXT, arrow_column, read_cells, text_column
from fishergraph.explore.pack import Parts


def shown(column):
    """What the browser has, after the way through a page."""
    parts = Parts()
    page = type("Page", (), {"about": {"columns": [column.packed(parts)]}, "parts": parts.texts})
    return unpack.column(page, column.name)


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([1, 2, 30], "number", ["1", "2", "30"]),
        ([1, None, 3], "number", ["1", None, "3"]),
        ([0.5, float("nan"), 3.0], "number", ["0.5", None, "3.0"]),
        ([True, None, False], "category", ["True", None, "False"]),
        (["b", None, "a", "b", "a", "b"], "category", ["b", None, "a", "b", "a", "b"]),
        (["one", "two", None, ""], "text", ["one", "two", None, ""]),
        (["007", "7"], "text", ["007", "7"]),
        ([2**60, 1], "text", [str(2**60), "1"]),
        ([10**30, 1], "text", [str(10**30), "1"]),
        ([datetime.date(2021, 3, 5), None], "date", ["2021-03-05", None]),
        ([datetime.date(1, 1, 1)], "date", ["0001-01-01"]),
        ([datetime.datetime(2021, 3, 5)], "date", ["2021-03-05"]),
        ([datetime.datetime(2021, 3, 5, 6, 7, 8)], "date", ["2021-03-05 06:07:08"]),
        ([datetime.datetime(2021, 3, 5, 6, 7, 8, 9)], "text", ["2021-03-05 06:07:08.000009"]),
        ([datetime.time(6, 7)], "text", ["06:07:00"]),
        ([decimal.Decimal("1.10")], "text", ["1.10"]),
        ([1, "a", None], "text", ["1", "a", None]),
        ([{"a": 1}, {"a": 2}], None, None),
        ([[1.0, 2.0], [3.0, 4.0]], None, None),
        ([None, None], "category", [None, None]),
    ],
)
def test_kinds_of_columns(values, kind, texts):
    column = arrow_column("c", pd.Series(values, dtype=object) if kind == "text" else values)
    if kind is None:
        assert column is None
        return
    assert (column.kind, column.texts()) == (kind, texts)
    assert len(column) == len(values)


def test_timestamps_with_a_zone_are_texts():
    column = arrow_column("c", pd.Series(pd.to_datetime(["2021-03-05 06:00"]).tz_localize("Europe/Paris")))
    assert column.kind == "text"
    assert column.texts()[0].startswith("2021-03-05 06:00")


def test_missing_values_of_every_library():
    series = [pd.NA, None, float("nan"), pd.NaT, "x", "y"]
    assert arrow_column("c", pd.Series(series, dtype=object)).texts() == [None, None, None, None, "x", "y"]
    assert arrow_column("c", pl.Series(["x", None, "y"])).texts() == ["x", None, "y"]
    assert arrow_column("c", pd.Series([1, None], dtype="Int64")).texts() == ["1", None]
    assert arrow_column("c", pd.Categorical(["b", None, "a"])).texts() == ["b", None, "a"]


def test_values_survive_the_page():
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(50) < 0.2, np.nan, rng.normal(size=50))
    expected = [None if value != value else value for value in numbers.tolist()]
    assert shown(arrow_column("c", numbers)) == expected
    texts = [None if k % 7 == 0 else f"</script>{k}\u2028😀" for k in range(50)]
    assert shown(arrow_column("c", texts)) == texts
    words = [None if k % 7 == 0 else f"word {k % 3}" for k in range(50)]
    assert shown(arrow_column("c", words)) == words
    days = [datetime.date(1969, 12, 31), None, datetime.date(2100, 1, 1)]
    assert shown(arrow_column("c", days)) == [-1, None, 47482]


def test_rows_of_a_column():
    column = arrow_column("c", ["x", None, "y", "x", "y"])
    assert column.take(np.array([2, 1])).texts() == ["y", None]


def test_a_very_long_text_is_cut_and_says_so():
    column = text_column("c", ["a" * (LONGEST_TEXT + 1), "b" * LONGEST_TEXT])
    assert column.texts() == ["a" * LONGEST_TEXT + "…", "b" * LONGEST_TEXT]
    assert "cut" in column.note


def test_many_distinct_texts_are_no_categories():
    assert text_column("c", [str(k) for k in range(50)]).kind == "text"
    assert text_column("c", [str(k // 2) for k in range(50)]).kind == "category"
    assert text_column("c", [str(k % 1001) for k in range(5000)]).kind == "text"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.50", "2", None], "number"),
        (["1e3", "-.5"], "number"),
        (["007", "12"], "text"),
        (["0.5", "x"], "text"),
        (["1e999"], "text"),
        (["nan", "1"], "text"),
        (["2021-03-05", None], "date"),
        (["2021-02-30"], "text"),
        (["2021-3-5"], "text"),
        ([3, None], "number"),
    ],
)
def test_cells_of_text_files(cells, kind):
    column = read_cells("c", cells)
    assert column.kind == kind
    assert [text is None for text in column.texts()] == [cell is None for cell in cells]
    if kind == "text":
        assert column.texts() == cells


def test_arrow_values():
    column = arrow_column("c", pa.chunked_array([[1, None], [3]]))
    pairs = column.arrow()
    assert pairs.to_pylist() == [1, None, 3]
    assert arrow_column("c", [datetime.date(2021, 3, 5), None]).arrow().to_pylist() == [datetime.date(2021, 3, 5), None]
