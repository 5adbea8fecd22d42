"""Every kind is encoded as the slow reference does it, from any library, and kinds are told apart."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import reference_tables as reference
from fishergraph._warn import ColumnsWarning
from fishergraph.tables import TableEncoder

pytestmark = pytest.mark.filterwarnings("ignore::fishergraph._warn.ColumnsWarning")

rng = np.random.default_rng(0)
N = 60
DAYS = [date(2019, 1, 1 + k % 28) if k % 3 else date(2020 + k % 4, 1 + k % 12, 5) for k in range(N)]
NAMES = ["red", "green", "blue", "rare", "", "green "]
WORDS = ["the", "quick", "brown", "fox", "jumps", "über", "dog", "42"]

COLUMNS = {
    "number": [None if k % 7 == 0 else float(x) for k, x in enumerate(rng.normal(size=N))],
    "heavy": [float(np.exp(3 * x)) for x in rng.normal(size=N)],
    "mostly zero": [float(k % 10 == 0) * k for k in range(N)],
    "integer": [int(x) for x in rng.integers(0, 1000, N)],
    "boolean": [None if k == 3 else bool(k % 3) for k in range(N)],
    "category": ["one of a kind" if k == 5 else None if k % 11 == 0 else NAMES[k % 3] for k in range(N)],
    "date": [None if k == 4 else day for k, day in enumerate(DAYS)],
    "time": [datetime(2020, 1, 1 + k % 20, k % 24, k % 60) for k in range(N)],
    "text": [
        None if k == 9 else f"{' '.join(WORDS[: k % 8])} Number{k}, {WORDS[k % 5]}-{WORDS[k % 3]}" for k in range(N)
    ],
    "tags": [
        None if k == 2 else [NAMES[j] for j in range(3) if (k + j) % (2 + j)] + ["x"] * (k == 7) for k in range(N)
    ],
    "vector": [None if k == 1 else [float(x) for x in row] for k, row in enumerate(rng.normal(size=(N, 3)))],
}
EXPECTED = {
    "number": (reference.number, "number"),
    "heavy": (reference.number, "number"),
    "mostly zero": (reference.number, "number"),
    "integer": (reference.number, "number"),
    "boolean": (reference.boolean, "boolean"),
    "category": (reference.category, "category"),
    "date": (reference.dates, "date"),
    "time": (reference.dates, "date"),
    "text": (lambda cells: reference.text(cells, 256), "text"),
    "tags": (reference.tags, "tags"),
    "vector": (reference.vector, "vector"),
}
LIBRARIES = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "arrow": pa.table,
    "chunks": lambda columns: pa.concat_tables([pa.table(columns).slice(0, 7), pa.table(columns).slice(7)]),
}


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_encoded_as_the_reference_does(name, library):
    encode, kind = EXPECTED[name]
    encoder = TableEncoder()
    rows = dense(encoder.fit_transform(LIBRARIES[library]({name: COLUMNS[name]})))
    assert [column.kind for column in encoder.schema_.columns] == [kind]
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, reference.array(encode(COLUMNS[name])), atol=2e-6)
    assert len(encoder.get_feature_names_out()) == rows.shape[1]


def test_columns_stand_side_by_side_and_none_has_a_mean_square_beyond_one():
    table = pa.table(COLUMNS)
    encoder = TableEncoder().fit(table)
    rows, first = dense(encoder.transform(table)), 0
    for column in encoder.schema_.columns:
        block = rows[:, first : first + column.outputs]
        alone = dense(TableEncoder().fit_transform(table.select([column.name])))
        np.testing.assert_array_equal(block, alone)
        assert np.square(block, dtype=np.float64).sum(axis=1).mean() <= 1 + 1e-6
        first += column.outputs
    assert first == rows.shape[1]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1.5, 2.5, None] * 5, "number"),
        ([0, 1, 1] * 5, "boolean"),
        ([0, 1, 2] * 5, "number"),
        (["yes", "No", None] * 5, "boolean"),
        (["1.5", " 2 ", "-3e2"] * 5, "number"),
        (["007", "123", "045"] * 5, "category"),  # codes
        (["1.5", "2"] * 19 + ["?", "3"], "number"),
        (["2020-01-05", "2021-02-03"] * 5, "date"),
        (["2020-01-05T12:30:00Z", "2021-02-03 08:00"] * 5, "date"),
        (["05.01.2020", "31.12.2021"] * 5, "date"),
        (["12/31/2020", "1/2/2021"] * 5, "date"),
        (["31/12/2020", "1/2/2021"] * 5, "date"),
        (["a|b", "b|c", "c"] * 5, "tags"),
        (["a; b", "b; c", "c"] * 5, "tags"),
        (["red", "blue"] * 5, "category"),
        ([f"word{k}" for k in range(30)], None),  # ids
        ([f"some words about {k}" for k in range(30)], "text"),
        ([f"name {k % 25}" for k in range(200)], "category"),
        ([[1.0, 2.0], [3.0, 4.0]] * 5, "vector"),
        ([[1, 2], [3], []] * 5, "tags"),
        ([["a"], ["a", "b"]] * 5, "tags"),
        (list(range(5, 40)), None),  # row numbers
        ([3, 1, 4, 1, 5] * 5, "number"),
        (["same"] * 9, None),
        ([None] * 9, None),
        ([" ", ""] * 9, None),
        (["same", None] * 9, "category"),
    ],
    ids=str,
)
def test_kinds_are_told_apart(cells, kind):
    table = pa.table({"x": cells, "other": [float(k % 7) for k in range(len(cells))]})
    assert TableEncoder().fit(table).schema_.columns[0].kind == kind


def test_an_id_is_told_by_its_name_too():
    numbers = {name: rng.permutation(500)[:N].tolist() for name in ("user_id", "userId", "USER ID", "size", "valid")}
    schema = TableEncoder().fit(pa.table(numbers)).schema_
    assert {column.name: column.kind for column in schema.columns} == {
        **dict.fromkeys(("user_id", "userId", "USER ID")),
        **dict.fromkeys(("size", "valid"), "number"),
    }


def test_numbers_and_dates_in_words_are_those_that_are_written():
    numbers = [None if k % 9 == 0 else k * 1.25 - 3 for k in range(N)]
    written = pa.table({"x": [None if x is None else f" {x} " for x in numbers]})
    np.testing.assert_array_equal(
        TableEncoder().fit_transform(written), TableEncoder().fit_transform(pa.table({"x": numbers}))
    )
    expected = TableEncoder().fit_transform(pa.table({"x": DAYS}))
    for layout in ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%Y-%m-%dT00:00:00Z"):
        texts = pa.table({"x": [day.strftime(layout) for day in DAYS]})
        np.testing.assert_array_equal(TableEncoder().fit_transform(texts), expected, err_msg=layout)


def test_words_among_numbers_are_missing_and_are_named():
    table = pa.table({"x": ["1", "2", "3", "4"] * 10 + ["?"]})
    encoder = TableEncoder()
    with pytest.warns(ColumnsWarning, match="'\\?'"):
        rows = encoder.fit_transform(table)
    assert encoder.get_feature_names_out().tolist() == ["x", "x missing"]
    assert rows[-1, 0] == 0 < rows[-1, 1]


def test_days_that_do_not_exist_are_missing():
    table = pa.table({"x": ["2020-01-05", "2021-02-28"] * 20 + ["2021-02-30"]})
    encoder = TableEncoder().fit(table)
    assert encoder.schema_.columns[0].kind == "date"
    assert "1 missing" in encoder.schema_.columns[0].learned


def test_times_without_a_date_have_no_age():
    times = pa.array([3600 * (k % 24) for k in range(48)], pa.time32("s"))
    names = TableEncoder().fit(pa.table({"t": times})).get_feature_names_out().tolist()
    assert names == ["t day sin", "t day cos"]


def test_many_values_are_hashed_and_few_are_not():
    cells = [f"v{k % 40}" for k in range(400)]
    few = TableEncoder(max_categories=40, n_hashed=16).fit(pa.table({"x": cells}))
    many = TableEncoder(max_categories=39, n_hashed=16).fit(pa.table({"x": cells}))
    assert few.schema_.columns[0].outputs == 41
    rows = dense(many.transform(pa.table({"x": [*cells, "new"]})))
    expected = np.zeros((401, 16))
    for row, cell in zip(expected, [*cells, "new"], strict=True):
        row[reference.bucket(cell, 16)] = 1
    np.testing.assert_array_equal(rows, expected)
    tags = pa.table({"x": [[cell, "all"] for cell in cells]})
    assert TableEncoder(max_categories=39, n_hashed=16).fit(tags).schema_.columns[0].outputs == 16


@pytest.mark.parametrize("sparse", [True, False])
def test_dense_and_sparse_rows_are_the_same(sparse):
    table = pa.table(COLUMNS)
    rows = TableEncoder(sparse=sparse).fit_transform(table)
    assert sp.issparse(rows) == sparse
    np.testing.assert_array_equal(dense(rows), dense(TableEncoder(sparse=not sparse).fit_transform(table)))


def test_kinds_can_be_named():
    table = pa.table({"zip": [10115, 10117, 10119, 10115, 10117] * 4, "note": ["a b", "c"] * 10})
    encoder = TableEncoder(kinds={"zip": "category", "note": "text"}).fit(table)
    assert [column.kind for column in encoder.schema_.columns] == ["category", "text"]
    assert encoder.get_feature_names_out()[0] == "zip=10115"
    frame = table.to_pandas().astype({"zip": "category"})
    assert TableEncoder().fit(frame).schema_.columns[0].kind == "category"
    polars = pl.from_arrow(table).with_columns(pl.col("note").cast(pl.Categorical))
    assert TableEncoder().fit(polars).schema_.columns[1].kind == "category"
    gaps = pd.DataFrame({"zip": [10115.0, np.nan, 10117.0, 10115.0, 10117.0] * 4})  # as pandas keeps integers
    assert TableEncoder(kinds={"zip": "category"}).fit(gaps).get_feature_names_out()[0] == "zip=10115"
