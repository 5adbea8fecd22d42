"""Columns of values of any type: as classes, or as numbers and dates; what counts as missing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fishergraph._errors import InputError
from fishergraph.plots.columns import Classes, Values, as_classes, as_column

DAY = np.datetime64("2020-03-01")
DAYS = float((DAY - np.datetime64(0, "D")) / np.timedelta64(1, "D"))


def classes_of(values, **options):
    found = as_classes(values, len(values), "labels", **options)
    return [None if code < 0 else found.names[code] for code in found.codes.tolist()]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([2, 0, 2], ["2", "0", "2"]),
        ([10, 9, None], ["10", "9", None]),
        (np.array([0.0, np.nan, 3.0]), ["0", None, "3"]),
        (["b", " a ", "", None], ["b", "a", None, None]),
        (np.array(["x", "y"]), ["x", "y"]),
        (np.array(["x", None, float("nan")], dtype=object), ["x", None, None]),
        ([True, False], ["True", "False"]),
        (np.array([0, 1, -1, 5]), ["0", "1", None, "5"]),
        ([0, 1, -1, None], ["0", "1", None, None]),
        (np.array([-1, 1, -1]), ["-1", "1", "-1"]),
        (["0", "-1", "1"], ["0", None, "1"]),
        (["a", "-1"], ["a", "-1"]),
        (np.array([[1], [2]]), ["1", "2"]),
        (np.ma.masked_array([4, 5], [False, True]), ["4", None]),
        (pd.Series(["p", pd.NA]), ["p", None]),
        (pd.Series([3, None], dtype="Int64"), ["3", None]),
        (pl.Series(["p", None]), ["p", None]),
        (pa.array(["p", None]), ["p", None]),
        (pa.chunked_array([["p"], [None]]), ["p", None]),
        (pd.Categorical(["lo", "hi", None], ["lo", "mid", "hi"]), ["lo", "hi", None]),
    ],
    ids=str,
)
def test_labels_are_classes(labels, expected):
    assert classes_of(labels) == expected


def test_classes_are_in_order_and_categories_in_theirs():
    assert as_classes([10, 9, 10], 3, "labels").names == ["9", "10"]
    assert as_classes(["a10", "b1", "a9", "a", "a" + "9" * 5000], 5, "labels").names[:3] == ["a", "a9", "a10"]
    levels = pd.Series(pd.Categorical(["hi", "lo"], ["lo", "mid", "hi"], ordered=True))
    assert as_classes(levels, 2, "labels").names == ["lo", "hi"]
    assert as_column(levels, 2, "colour").names == ["lo", "hi"]


def test_the_callers_values_stay_as_they_are():
    labels = np.array([" a", None, "b"], dtype=object)
    series = pd.Series(labels.copy(), dtype=object)
    as_classes(labels, 3, "labels")
    as_column(series, 3, "colour")
    assert labels.tolist() == series.tolist() == [" a", None, "b"]


def test_torch_labels():
    torch = pytest.importorskip("torch")
    assert classes_of(torch.tensor([1, -1, 0])) == ["1", None, "0"]


def test_what_is_missing_can_be_said():
    assert classes_of([0, 1, -1, 7], missing=7) == ["0", "1", "-1", None]
    assert classes_of([0, 1, -1], missing=()) == ["0", "1", "-1"]
    assert classes_of(["a", "unknown", "?"], missing=["unknown", "?"]) == ["a", None, None]
    numbers = as_column([1.5, -99, 3], 3, "colour", missing=-99)
    np.testing.assert_array_equal(numbers.numbers, [1.5, np.nan, 3])


@pytest.mark.parametrize("names", [("north", "south", "west"), {0: "north", 2: "west"}])
def test_names_belong_to_labels_not_to_positions(names):
    assert as_classes([2, 0], 2, "labels", names=names).names == ["north", "west"]


def test_the_smallest_classes_become_other():
    labels = np.repeat(np.arange(6), [5, 1, 4, 1, 3, 2])
    kept, n_other = as_classes(labels, 16, "labels").largest(4)
    assert n_other == 3
    assert kept.names == ["0", "2", "4", "other (3 classes)"]
    np.testing.assert_array_equal(kept.codes, np.array([0, 3, 1, 3, 2, 3])[labels])
    whole, n_other = as_classes(labels, 16, "labels").largest(6)
    assert (len(whole.names), n_other) == (6, 0)
    without, _ = Classes(np.array([-1, 0, 1, 2]), ["a", "b", "c"]).largest(2)
    np.testing.assert_array_equal(without.codes, [-1, 0, 1, 1])


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5, None],
        ["1", " 2.5 ", ""],
        np.array([1, 2.5, np.nan], dtype=np.float32),
        [Decimal(1), Decimal("2.5"), None],
        pd.Series([1, 2.5, None]),
        pl.Series([1.0, 2.5, None]),
        pa.array([1, 2.5, None]),
        np.array(["1", "2.5e0", None], dtype=object),
    ],
    ids=lambda values: type(values).__name__,
)
def test_numbers(values):
    found = as_column(values, 3, "colour")
    assert isinstance(found, Values)
    assert not found.dates
    np.testing.assert_array_equal(found.numbers, [1, 2.5, np.nan])


@pytest.mark.parametrize(
    "values",
    [
        np.array([DAY, DAY + 1, np.datetime64("NaT")]),
        [date(2020, 3, 1), date(2020, 3, 2), None],
        [datetime(2020, 3, 1), datetime(2020, 3, 2), None],
        [datetime(2020, 3, 1, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2020, 3, 2, tzinfo=UTC), None],
        ["2020-03-01", "2020-03-02", None],
        ["2020-03-01T00:00:00Z", "2020-03-02 00:00", ""],
        pd.Series(pd.to_datetime(["2020-03-01", "2020-03-02", None])),
        pd.Series(pd.to_datetime(["2020-03-01", "2020-03-02", None], utc=True)),
        pl.Series([date(2020, 3, 1), date(2020, 3, 2), None]),
    ],
    ids=str,
)
def test_dates(values):
    found = as_column(values, 3, "colour")
    assert isinstance(found, Values)
    assert found.dates
    np.testing.assert_array_equal(found.numbers, [DAYS, DAYS + 1, np.nan])


@pytest.mark.parametrize("values", [["a", "1"], [True, False], ["2020-02-31", "2020-01-01"], ["1", "x"]])
def test_other_values_are_classes(values):
    assert isinstance(as_column(values, 2, "colour"), Classes)


def test_minus_one_is_a_number_of_a_scale():
    np.testing.assert_array_equal(as_column([-1, 0, 5], 3, "colour").numbers, [-1, 0, 5])


@pytest.mark.parametrize(
    ("labels", "pattern"),
    [
        ([0, 1], "labels.*3 rows.*2"),
        (np.ones((3, 2)), r"labels.*\(3, 2\)"),
        ("abc", "labels.*'abc'"),
        (["a", 1, None], "one type"),
        ([0.5, 1.0, 2.0], r"0\.5.*colour"),
        (["0.5", "1", "2"], r"0\.5.*colour"),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "dates.*colour"),
        ([[1], [2], [3, 4]], "rows of several lengths|one class per row"),
        ([{1}, {2}, {1}], "one type"),
        (np.array([1j, 2, 3]), "complex"),
    ],
    ids=str,
)
def test_values_that_are_no_labels(labels, pattern):
    with pytest.raises(InputError, match=pattern):
        as_classes(labels, 3, "labels")


@pytest.mark.parametrize("names", [["zero"], {"0": "zero"}, 7])
def test_names_that_lack_a_label(names):
    with pytest.raises(InputError, match="labels 0, 1"):
        as_classes([0, 1], 2, "labels", names=names)
