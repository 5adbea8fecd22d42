"""Tables of complete numbers: when they are scaled, and which of their columns are named in the one warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fishergraph import FisherEmbedding, TableEncoder
from fishergraph._warn import ColumnsWarning
from fishergraph.datasets import load_tables
from fishergraph.io.spreads import needs_scale, notes_of_numbers

N = 200
rng = np.random.default_rng(0)
AGE, INCOME = rng.integers(18, 80, N), rng.integers(10_000, 99_999, N)
UNITS = pd.DataFrame({"age": AGE, "income": INCOME})
NORMAL = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("table", "scaled"),
    [
        (UNITS, True),
        (pa.table({"age": AGE, "income": INCOME}), True),
        (UNITS.assign(member=AGE % 2), True),
        (NORMAL, False),
        (NORMAL.assign(year=2000 + NORMAL["a"]), True),  # one column is nearly all of every row
        (pd.DataFrame(UNITS.to_numpy(float)), False),  # columns 0 and 1 of a matrix
        (UNITS.set_axis(["x0", "x1"], axis=1), False),
        (pd.DataFrame({"a": AGE % 2, "b": np.arange(N) < 2}), False),  # flags
        (pd.DataFrame({"cat": (AGE > 75) * INCOME, "dog": (AGE > 70) * 1}), False),  # counts
        (pd.DataFrame({f"word{chr(97 + k % 26)}{chr(97 + k // 26)}": INCOME * 10.0**-k for k in range(70)}), False),
        (UNITS[["age"]], False),
        (pd.DataFrame({"time": np.arange(N) * 1.0, "one": 1.0}), False),  # nothing would be left
        (UNITS.iloc[:0], False),
        (UNITS.to_numpy(), False),
    ],
)
def test_columns_of_a_table_with_very_different_spreads_need_a_scale(table, scaled):
    assert needs_scale(table) is scaled


def test_age_and_income_do_not_collapse():
    edges = pd.DataFrame({"source": rng.integers(0, N, 600), "target": rng.integers(0, N, 600)})
    model = FisherEmbedding(n_anchors=4, dim=8, structure=None, walk=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = model.fit_transform(UNITS.set_axis(range(N)), graph=edges)
    assert model.encoder_ is not None
    assert model.encoder_.schema_.line() == "2 numbers (age, income)"
    assert len(np.unique(Z.round(3), axis=0)) > N / 2
    np.testing.assert_array_equal(model.transform(UNITS.set_axis(range(N)), graph=edges), Z)


def test_an_encoded_table_is_not_encoded_again():
    table: Any = load_tables("penguins").nodes
    nodes = table.to_pandas().set_index("id").drop(columns="Comments")
    encoded = TableEncoder().set_output(transform="pandas").fit_transform(nodes)
    assert encoded.shape[1] > 20
    assert not needs_scale(encoded)


def test_a_matrix_stays_as_it_is():
    model = FisherEmbedding(n_anchors=2, dim=4, random_state=0).fit(UNITS.to_numpy(float))
    assert model.encoder_ is None


def test_a_constant_an_id_and_a_dominating_column_are_named_in_one_warning():
    table = pd.DataFrame({"x0": NORMAL["a"], "x1": 3.0, "x2": np.arange(N) + 5, "x3": INCOME * 1e3})
    with pytest.warns(ColumnsWarning) as caught:
        FisherEmbedding(n_anchors=2, dim=4, random_state=0).fit(table)
    about = [one.message for one in caught if isinstance(one.message, ColumnsWarning)]
    assert [one.columns for one in about] == [("x1", "x2", "x3")]


def test_ids_are_told_by_their_name_or_as_row_numbers():
    ids = rng.permutation(N)
    assert notes_of_numbers(["a", "b"], np.stack([AGE, ids], axis=1)) == []
    assert notes_of_numbers(["a", "user_id"], np.stack([AGE, ids], axis=1))[0].columns == ("user_id",)
    assert notes_of_numbers(["a", "b"], np.stack([AGE, np.arange(N)], axis=1))[0].columns == ("b",)


def test_the_words_that_keep_a_column_from_being_dates_are_named():
    days = [f"2024-01-{1 + k % 28:02d}" for k in range(85)]
    table = pd.DataFrame({"joined": days + ["unknown"] * 14 + ["soon"], "a": rng.normal(size=100)})
    with pytest.warns(ColumnsWarning, match="'joined' holds dates but for 'unknown' and 'soon', 15%"):
        encoder = TableEncoder().fit(table)
    assert "'joined' holds dates" in encoder.schema_.line()
    few = pd.DataFrame({"joined": [*days, "unknown"], "a": rng.normal(size=86)})
    with pytest.warns(ColumnsWarning, match="'unknown', which count as missing"):
        assert TableEncoder().fit(few).schema_.used[0].kind == "date"
