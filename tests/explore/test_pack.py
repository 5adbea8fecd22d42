"""Arrays, numbers and texts survive the way into a page, by the plain reader in unpacked_page.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unpacked_page as unpack
from fishergraph.explore.pack import Parts


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_arrays_of_every_type(kind, n):
    parts = Parts()
    values = (np.random.default_rng(0).normal(size=n) * 100).astype(kind)
    assert unpack.array(parts.texts, parts.array(values)) == values.tolist()


def test_sorted_arrays_hold_differences():
    parts = Parts()
    values = np.cumsum(np.random.default_rng(0).integers(0, 9, size=1000)).astype(np.uint32)
    spec = parts.array(values, sorted_=True)
    assert unpack.array(parts.texts, spec) == values.tolist()
    assert len(parts.texts[spec["part"]]) < len(parts.texts[parts.array(values)["part"]])


def test_differences_wrap_around():
    parts = Parts()
    values = np.array([250, 3, 255, 0], dtype=np.uint8)
    assert unpack.array(parts.texts, parts.array(values, sorted_=True)) == values.tolist()


@settings(deadline=None)
@given(st.lists(st.text(), max_size=20))
def test_any_texts(texts):
    parts = Parts()
    clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    assert unpack.strings(parts.texts, parts.strings(texts)) == clean


def test_a_lone_surrogate_is_replaced():
    parts = Parts()
    assert unpack.strings(parts.texts, parts.strings(["a\ud800", "😀b"])) == ["a?", "😀b"]


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([3, -5, 3_000_000_000], 0),
        ([0.1, 2.25, -7.5], 2),
        ([1.0, 2.0], 0),
        ([0.123456], 6),
        ([1 / 3, 2.0], None),
        ([1e300, 1.0], None),
        ([float("inf"), 1.0], None),
        ([-0.0, 1.0], None),
        ([0.0, 1e15 + 0.5], None),
        ([], 0),
    ],
)
def test_numbers_are_exact(values, decimals):
    parts = Parts()
    array = np.array(values)
    spec = parts.numbers(array, np.zeros(len(array), dtype=bool))
    assert spec["decimals"] == decimals
    found = unpack.numbers(parts.texts, spec)
    assert found == values
    assert [np.signbit(value) for value in found] == [np.signbit(value) for value in values]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=True, width=64), max_size=30))
def test_any_floats(values):
    array = np.array(values, dtype=np.float64)
    missing = np.isnan(array)
    parts = Parts()
    found = unpack.numbers(parts.texts, parts.numbers(array, missing))
    assert found == [None if gone else value for value, gone in zip(values, missing, strict=True)]


@settings(deadline=None)
@given(st.lists(st.integers(-(2**53), 2**53), max_size=30))
def test_any_integers(values):
    parts = Parts()
    missing = np.zeros(len(values), dtype=bool)
    assert unpack.numbers(parts.texts, parts.numbers(np.array(values, dtype=np.int64), missing)) == values


def test_floats_of_four_bytes_are_the_decimals_that_were_written():
    parts = Parts()
    spec = parts.numbers(np.array([0.1, 0.25], dtype=np.float32), np.zeros(2, dtype=bool))
    assert unpack.numbers(parts.texts, spec) == [0.1, 0.25]


def test_the_same_bytes_at_any_time(monkeypatch):
    first, second = Parts(), Parts()
    first.array(np.arange(100))
    monkeypatch.setattr("time.time", lambda: 1e9)
    second.array(np.arange(100))
    assert first.texts == second.texts
