"""`TableEncoder`: faults together, other schemas, files, scikit-learn."""

from __future__ import annotations

import json
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

from fishergraph._errors import (
    FileFormatError,
    InputError,
    InputTypeError,
    NotEnoughMemory,
    TableError,
)
from fishergraph._warn import ColumnsWarning, SchemaWarning
from fishergraph.datasets import load_tables
from fishergraph.io.array_file import write_file
from fishergraph.tables import TableEncoder, needs_encoder
from fishergraph.tables.columns import with_kinds
from fishergraph.tables.decide import KINDS
from fishergraph.tables.pack import ENCODER, pack_encoder

N = 30
TABLE = pa.table(
    {
        "age": [float(k % 13) for k in range(N)],
        "team": ["red" if k % 3 else "blue" for k in range(N)],
        "born": pa.array(np.datetime64("2000-01-01") + np.arange(N) * 37),
        "gaps": [None if k % 4 == 0 else k % 5 for k in range(N)],
        "note": [f"a note about {k} and {k % 3}" for k in range(N)],
        "tags": [["a"] * (k % 2) + ["b"] for k in range(N)],
        "vector": [[float(k), 1.0] for k in range(N)],
        "flag": [k % 2 == 0 for k in range(N)],
        "many": [f"v{k % 10}" for k in range(N)],
        "half": [None if k % 5 else "once" for k in range(N)],
    }
)


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


def fitted(**params) -> TableEncoder:
    return TableEncoder(**params).fit(TABLE)


# --- faults ------------------------------------------------------------------------------------------------


def test_all_faults_are_reported_together():
    frame = pd.DataFrame(
        {
            "bytes": [b"a", b"b", b"c"],
            "mixed": [1, ["a"], {"b": 2}],
            "infinite": [1.0, np.inf, 2.0],
            "words": ["one", "two", "two"],
            "fine": [1.0, 2.0, 3.0],
        }
    )
    frame = pd.concat([frame, frame[["fine"]]], axis=1)
    with pytest.raises(TableError) as caught:
        TableEncoder(kinds={"words": "number", "wrods": "text"}, drop=["fin"]).fit(frame)
    faults = caught.value.faults
    assert {name for name, _ in faults} == {"bytes", "mixed", "infinite", "words", "wrods", "fin", "fine"}
    assert caught.value.value == [name for name, _ in faults]
    problems = dict(faults)
    assert "row 1" in problems["infinite"]
    assert "'words'" in problems["wrods"]
    assert "'one'" in problems["words"]
    assert "2 times" in problems["fine"]
    assert str(caught.value).count(".") <= 2


@pytest.mark.parametrize(
    ("column", "word"),
    [
        (pd.Series(["\ud800", "a"], dtype=object), "Unicode"),
        (pd.Series(pd.period_range("2020", periods=2, freq="D")), "type"),
        (pd.Series([1 + 2j, 3j]), "complex"),
        (pd.Series([[1.0, 2.0], [3.0]]), "several lengths"),
        (pd.Series([[1.0, None], [3.0, 4.0]]), "entry"),
        (pd.Series([{"a": 1}, {"a": 2}]), "struct"),
    ],
    ids=["surrogate", "period", "complex", "ragged", "hole", "records"],
)
def test_a_column_that_cannot_be_read(column, word):
    with pytest.raises((TableError, InputError), match=word):
        TableEncoder().fit(pd.DataFrame({"x": column, "y": [1, 2]}))


def test_text_and_numbers_in_one_column_are_text():
    mixed = pd.DataFrame({"x": ["a", 1, 2.5, True, None, Decimal("3"), "a", 1] * 2})
    names = TableEncoder().fit(mixed).get_feature_names_out().tolist()
    assert names == ["x=1", "x=2.5", "x=3", "x=True", "x=a", "x other", "x missing"]


def test_columns_that_say_nothing_are_named_once():
    table = TABLE.append_column("one", pa.array([7] * N)).append_column("none", pa.nulls(N))
    table = table.append_column("key", pa.array([f"k{k}" for k in range(N)]))
    with pytest.warns(ColumnsWarning) as caught:
        encoder = TableEncoder(drop=["age"]).fit(table)
    (warning,) = [entry.message for entry in caught]
    assert warning.columns == ("one", "none", "key")
    aside = {column.name: column.learned for column in encoder.schema_.aside}
    assert aside == {"age": "dropped", "one": "one value", "none": "no value", "key": "an id"}
    assert [column.name for column in encoder.schema_.columns] == table.column_names
    assert "left aside: age (dropped), one (one value), none (no value), key (an id)" in encoder.schema_.line()
    assert len(str(encoder.schema_).splitlines()) == table.num_columns + 1


def test_a_column_that_would_dominate_is_cut_and_named():
    rng = np.random.default_rng(0)
    table = pa.table({"heavy": np.exp(6 * rng.normal(size=200)), "a": rng.normal(size=200), "b": rng.normal(size=200)})
    with pytest.warns(ColumnsWarning, match="'heavy' would be") as caught:
        rows = TableEncoder().fit_transform(table)
    assert caught[0].message.columns == ("heavy",)
    assert np.abs(rows).max() <= 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder().fit(table.drop(["heavy"]))


def test_a_table_of_which_nothing_is_left():
    with pytest.raises(InputError, match="'x' \\(one value\\)"):
        TableEncoder().fit(pa.table({"x": [1, 1, 1], "y": [None, None, None]}))


def test_parameters_are_checked():
    for params in ({"kinds": {"age": "nubmer"}}, {"drop": "age"}, {"max_categories": 0}, {"sparse": "yes"}):
        with pytest.raises(InputError):
            fitted(**params)
    with pytest.raises(InputTypeError):
        fitted(kinds=["age"])
    with pytest.raises(InputTypeError, match="sparse"):
        TableEncoder().fit(sp.eye_array(3).tocsr())


def test_rows_that_do_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr("fishergraph._validation.host_bytes", lambda: 1000.0)
    with pytest.raises(NotEnoughMemory, match="sparse=True"):
        fitted(sparse=False).transform(TABLE)


# --- another table -----------------------------------------------------------------------------------------


def test_what_differs_from_the_fit_is_listed():
    encoder = fitted()
    other = TABLE.drop(["team", "flag"]).set_column(0, "age", pa.array(["old", "young"] * (N // 2)))
    other = other.set_column(other.column_names.index("vector"), "vector", pa.array([[1.0]] * N))
    with pytest.raises(TableError) as caught:
        encoder.transform(other)
    assert {name for name, _ in caught.value.faults} == {"team", "flag", "age", "vector"}


def test_new_columns_are_left_aside_and_the_order_does_not_matter():
    encoder = fitted()
    rows = dense(encoder.transform(TABLE))
    with pytest.warns(SchemaWarning, match="'new'") as caught:
        more = encoder.transform(
            TABLE.append_column("new", pa.array([b"?"] * N)).select(["new", *TABLE.column_names[::-1]])
        )
    assert caught[0].message.columns == ("new",)
    np.testing.assert_array_equal(rows, dense(more))


def test_a_column_that_was_left_aside_may_be_missing_or_broken():
    table = TABLE.append_column("one", pa.array([7] * N))
    with pytest.warns(ColumnsWarning):
        encoder = TableEncoder().fit(table)
    np.testing.assert_array_equal(dense(encoder.transform(TABLE)), dense(encoder.transform(table)))
    encoder.transform(TABLE.append_column("one", pa.array([b"x"] * N)))


def test_values_that_the_fit_did_not_know_are_counted():
    encoder = fitted()
    encoder.transform(TABLE)
    assert encoder.unseen_ == {}
    teams = pa.array(["green", None, "red", "blue", "green"] * (N // 5))
    other = TABLE.set_column(1, "team", teams).set_column(5, "tags", pa.array([["new", "b"]] * N))
    with pytest.warns(SchemaWarning) as caught:
        rows = dense(encoder.transform(other))
    assert encoder.unseen_ == {"team": 3 * N // 5, "tags": N}
    assert [entry.message.kind for entry in caught] == ["unseen values"]
    names = encoder.get_feature_names_out().tolist()
    assert rows[0, names.index("team other")] == 1
    assert not rows[1, [k for k, name in enumerate(names) if name.startswith("team")]].any()


def test_rare_values_of_the_fit_are_not_new():
    encoder = TableEncoder().fit(
        pa.table({"x": ["a", "b", "rare"] + ["a", "b"] * 9, "t": [["a"], ["b", "once"], ["b"]] * 1 + [["a"]] * 18})
    )
    with pytest.warns(SchemaWarning):
        encoder.transform(pa.table({"x": ["rare", "new", "new", "a"], "t": [["once"], ["new", "a"], [], None]}))
    assert encoder.unseen_ == {"x": 2, "t": 2}


def test_a_column_without_values_fits_every_kind():
    encoder = fitted()
    empty = pa.table({name: pa.nulls(N) for name in TABLE.column_names})
    with pytest.warns(SchemaWarning):
        rows = dense(encoder.transform(empty))
    names = encoder.get_feature_names_out().tolist()
    filled = {name for name, column in zip(names, rows.T, strict=True) if column.any()}
    assert filled == {"gaps missing", "half missing"}
    assert encoder.transform(TABLE.slice(0, 0)).shape == (0, rows.shape[1])


def test_rows_are_encoded_one_by_one():
    encoder = fitted()
    rows = dense(encoder.transform(TABLE))
    parts = [dense(encoder.transform(TABLE.slice(k, 7))) for k in range(0, N, 7)]
    np.testing.assert_array_equal(np.vstack(parts), rows)


# --- libraries ---------------------------------------------------------------------------------------------


def test_every_library_gives_the_same_rows():
    expected = dense(fitted().transform(TABLE))
    for table in (TABLE.to_pandas(), pl.from_arrow(TABLE), pa.Table.from_batches(TABLE.to_batches(7))):
        np.testing.assert_array_equal(dense(TableEncoder().fit_transform(table)), expected)
        np.testing.assert_array_equal(dense(fitted().transform(table)), expected)


def test_output_tables():
    encoder = TableEncoder().set_output(transform="pandas")
    frame = TABLE.to_pandas().set_axis([f"v{k}" for k in range(N)])
    table = encoder.fit_transform(frame)
    assert table.index.equals(frame.index)
    assert table.columns.tolist() == encoder.get_feature_names_out().tolist()
    assert isinstance(TableEncoder().set_output(transform="polars").fit_transform(TABLE), pl.DataFrame)


def test_names_of_outputs_are_distinct():
    encoder = TableEncoder().fit(pa.table({"a": ["b", "c"] * 9, "a=b": [1.0, 2.0, 5.0] * 6}))
    names = encoder.get_feature_names_out().tolist()
    assert names == ["a=b", "a=c", "a other", "a=b'"]


def test_fields_may_say_their_kinds():
    table = with_kinds(pa.table({"zip": [1, 2, 3] * 9}), {"zip": "category"})
    assert needs_encoder(table)
    assert TableEncoder().fit(table).schema_.columns[0].kind == "category"


@pytest.mark.parametrize(
    ("table", "needed"),
    [
        (pd.DataFrame({"x": [1.0, 2.0], "y": [1, 2], "z": [True, False]}), False),
        (pd.DataFrame({"x": [1.0, np.nan]}), True),
        (pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}), True),
        (pd.DataFrame({"x": pd.array([1, 2], dtype="Int64")}), False),
        (pd.DataFrame({"x": pd.Series([1, 2.5], dtype=object)}), False),
        (pd.DataFrame({"x": ["a", "b"]}), True),
        (pd.DataFrame({"x": pd.to_datetime(["2020", "2021"])}), True),
        (pd.DataFrame({"x": [[1.0, 2.0], [3.0, 4.0]]}), False),
        (pl.DataFrame({"x": [1, 2], "y": [0.5, 1.5]}), False),
        (pl.DataFrame({"x": [1.0, float("nan")]}), True),
        (pa.table({"x": [1, None]}), True),
        (pa.table({"x": [[1.0], [2.0]]}), False),
        (pa.table({"x": pa.nulls(2)}), True),
    ],
)
def test_complete_numbers_and_vectors_need_no_encoder(table, needed):
    assert needs_encoder(table) == needed


# --- files -------------------------------------------------------------------------------------------------


def test_a_file_gives_the_same_rows(tmp_path):
    encoder = fitted(kinds={"many": "text"}, drop=["flag"])
    encoder.save(tmp_path / "encoder.safetensors")
    read = TableEncoder.load(tmp_path / "encoder.safetensors")
    np.testing.assert_array_equal(dense(read.transform(TABLE)), dense(encoder.transform(TABLE)))
    assert read.get_params() == {**encoder.get_params(), "drop": ("flag",)}
    assert read.schema_ == encoder.schema_
    assert read.n_features_in_ == TABLE.num_columns
    assert read.feature_names_in_.tolist() == TABLE.column_names


def test_a_file_of_something_else_is_refused(tmp_path):
    encoder, path = fitted(), tmp_path / "e.safetensors"
    arrays: dict = {}
    entry = pack_encoder(encoder, "encoder", arrays)

    def read(change):
        changed = json.loads(json.dumps(entry))
        copies = {name: array.copy() for name, array in arrays.items()}
        change(changed, copies)
        write_file(path, {"fishergraph": "0", "encoder": changed}, copies, ENCODER)
        with pytest.raises(FileFormatError):
            TableEncoder.load(path)

    places = {record["tag"]: k for k, record in enumerate(entry["records"])}
    assert set(places) == {*KINDS, "presence"}
    changes = [
        lambda e, a: e.pop("records"),
        lambda e, a: e.update(more=1),
        lambda e, a: e["params"].update(n_hashed=-1),
        lambda e, a: e["records"].pop(),
        lambda e, a: e["records"][0].update(tag="unknown"),
        lambda e, a: e["records"][places["number"]].update(spread=0),
        lambda e, a: e["records"][places["number"]].update(centre="x"),
        lambda e, a: e["records"][places["number"]].update(missing=2.0),
        lambda e, a: e["records"][places["boolean"]].update(share=1.5),
        lambda e, a: e["records"][places["category"]].update(values=["a", "a"]),
        lambda e, a: e["records"][places["date"]].update(parts=["month"]),
        lambda e, a: e["records"][places["vector"]].update(width=10**12),
        lambda e, a: e["schema"][0].pop(),
        lambda e, a: a.popitem(),
        lambda e, a: a.update(extra=np.zeros(1, np.float32)),
        lambda e, a: a.update({f"encoder.{places['text']}.weights": np.full(256, -1, np.float32)}),
        lambda e, a: a.update({f"encoder.{places['category']}.rare": np.zeros(1)}),
        lambda e, a: a.update({f"encoder.{places['tags']}.weights": np.zeros((2, 2), np.float32)}),
    ]
    for change in changes:
        read(change)
    with pytest.raises(FileNotFoundError):
        TableEncoder.load(tmp_path / "none")


def test_no_pickle_in_the_file(tmp_path):
    fitted().save(tmp_path / "e.safetensors")
    with safe_open(str(tmp_path / "e.safetensors"), framework="numpy") as file:
        assert file.metadata()["format"] == "fishergraph-encoder"


def test_it_can_be_copied():
    encoder = fitted()
    copy = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(dense(copy.transform(TABLE)), dense(encoder.transform(TABLE)))
    assert not hasattr(clone(encoder), "schema_")


# --- scikit-learn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "check"),
    list(estimator_checks_generator(TableEncoder())),
    ids=lambda value: getattr(getattr(value, "func", value), "__name__", ""),
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_check_estimator(estimator, check):
    check(estimator)


def test_in_a_pipeline():
    pipeline = make_pipeline(TableEncoder(sparse=False), FunctionTransformer())
    assert pipeline.fit_transform(TABLE).shape[0] == N


def test_the_penguins():
    nodes = load_tables("penguins").nodes
    with pytest.warns(ColumnsWarning):
        encoder = TableEncoder(drop=["id"]).fit(nodes)
    kinds = {column.name: column.kind for column in encoder.schema_.columns}
    assert kinds["Region"] is kinds["Stage"] is kinds["Individual ID"] is None
    assert (kinds["Date Egg"], kinds["Clutch Completion"], kinds["Sex"]) == ("date", "boolean", "category")
