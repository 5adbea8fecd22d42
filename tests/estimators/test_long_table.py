"""Long tables: one row per member, and the group it belongs to."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from fishergraph import FisherSetEmbedding, group_sets
from fishergraph._errors import InputError, InputTypeError, TableError

N = 40
RNG = np.random.default_rng(0)
GROUPS = np.array([f"g{k}" for k in RNG.integers(9, size=N - 1)] + ["alone"])  # mixed up, and a group of one row
VALUES = RNG.normal(size=(N, 3))
TABLE = pd.DataFrame({"a": VALUES[:, 0], "group": GROUPS, "b": VALUES[:, 1], "c": VALUES[:, 2]})
ORDER = list(dict.fromkeys(GROUPS))  # of first appearance
SETS = [VALUES[name == GROUPS] for name in ORDER]
MODEL = FisherSetEmbedding(3, 8, random_state=0)
EXPECTED = MODEL.fit_transform(SETS)


def tables():
    polars = pytest.importorskip("polars")
    return {
        "pandas": TABLE,
        "polars": polars.from_pandas(TABLE),
        "pyarrow": pa.Table.from_pandas(TABLE),
        "another index": TABLE.set_index(np.arange(N)[::-1]),
        "categories": TABLE.astype({"group": pd.CategoricalDtype(sorted({*ORDER, "nobody"}))}),
        "an index of groups": TABLE.set_index("group"),
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "another index", "categories", "an index of groups"])
def test_the_sets_of_a_table(kind):
    table = tables()[kind]
    assert group_sets(table, "group").ids.tolist() == ORDER
    model = FisherSetEmbedding(3, 8, random_state=0)
    assert (model.fit_transform(table, groups="group") == EXPECTED).all()
    assert (model.transform(table, groups="group") == MODEL.transform(SETS)).all()
    assert (FisherSetEmbedding(3, 8, random_state=0).fit(table, groups="group").transform(SETS) == EXPECTED).all()


@pytest.mark.parametrize(
    "groups",
    [GROUPS, GROUPS.tolist(), pd.Series(GROUPS), pd.Index(GROUPS), pa.array(GROUPS), pd.Categorical(GROUPS)],
    ids=lambda groups: type(groups).__name__,
)
def test_groups_beside_a_matrix(groups):
    assert (FisherSetEmbedding(3, 8, random_state=0).fit_transform(VALUES, groups=groups) == EXPECTED).all()


def test_sparse_rows_and_tensors():
    torch = pytest.importorskip("torch")
    sparse = FisherSetEmbedding(3, 8, input_map="identity", random_state=0)
    X = sp.csr_array(VALUES)
    expected = sparse.fit_transform([X[name == GROUPS] for name in ORDER])
    assert (sparse.fit_transform(X, groups=GROUPS) == expected).all()
    bags = group_sets(torch.from_numpy(VALUES), GROUPS)
    assert torch.equal(bags.points, torch.from_numpy(np.concatenate(SETS)))


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        (np.array([7, 3, 7, 5]), [7, 3, 5]),
        (pd.to_datetime(["2020-01-02", "2020-01-01", "2020-01-02", "2021-01-01"]), None),
        (
            [
                datetime.date(2020, 1, 2),
                datetime.date(2020, 1, 1),
                datetime.date(2020, 1, 2),
                datetime.date(2021, 1, 1),
            ],
            None,
        ),
        ([True, False, True, True], [True, False]),
    ],
)
def test_ids_are_in_the_order_of_first_appearance(values, ids):
    bags = group_sets(np.arange(8.0).reshape(4, 2), values)
    expected = list(dict.fromkeys(np.asarray(values).tolist())) if ids is None else ids
    assert bags.ids.tolist() == expected
    assert bags.points[: bags.indptr[1], 0].tolist() == [0.0, 4.0, *([6.0] if len(expected) == 2 else [])]


def test_members_keep_their_order():
    bags = group_sets(VALUES, GROUPS)
    for k, rows in enumerate(SETS):
        assert (bags.points[bags.indptr[k] : bags.indptr[k + 1]] == rows).all()
    assert (VALUES[bags.order] == bags.points).all()


def test_ids_stay_with_the_result():
    model = FisherSetEmbedding(3, 8, random_state=0).set_output(transform="pandas")
    Z = model.fit_transform(TABLE, groups="group")
    assert Z.index.tolist() == ORDER
    assert Z.columns.tolist() == model.get_feature_names_out().tolist()
    some = TABLE[TABLE["group"].isin(ORDER[2:5])][::-1]
    part = model.transform(some, groups="group")
    assert part.index.tolist() == list(dict.fromkeys(some["group"]))
    # A set has no order, but sums are rounded in theirs.
    np.testing.assert_allclose(part.sort_index(), Z.loc[part.sort_index().index], atol=1e-12)


def test_weights_of_members():
    weights = RNG.random(N)
    parts = [weights[name == GROUPS] for name in ORDER]
    expected = FisherSetEmbedding(3, 8, random_state=0).fit_transform(SETS, weights=parts)
    model = FisherSetEmbedding(3, 8, random_state=0)
    assert (model.fit_transform(TABLE, groups="group", weights=weights) == expected).all()
    assert (model.fit_transform(TABLE.assign(w=weights), groups="group", weights="w") == expected).all()
    with pytest.raises(InputError, match="weights"):
        model.fit(TABLE, groups="group", weights=weights[1:])


def test_names_of_features_are_compared():
    model = FisherSetEmbedding(3, 8, random_state=0).fit(TABLE, groups="group")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(TABLE.rename(columns={"a": "z"}), groups="group")


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, pd.NA])
def test_a_missing_group_is_named_by_its_row(missing):
    table = TABLE.astype({"group": object})
    table.loc[4, "group"] = missing
    with pytest.raises(InputError, match="row 4") as caught:
        MODEL.transform(table, groups="group")
    assert caught.value.parameter == "groups"


def test_mistakes():
    with pytest.raises(InputError, match="did you mean 'group'"):
        MODEL.transform(TABLE, groups="Group")
    with pytest.raises(InputTypeError, match="table"):
        MODEL.transform(VALUES, groups="group")
    with pytest.raises(InputError, match="39"):
        MODEL.transform(VALUES, groups=GROUPS[1:])
    with pytest.raises(InputTypeError, match="groups"):
        MODEL.transform(SETS, groups=GROUPS)
    with pytest.raises(InputError, match="shape"):
        MODEL.transform(VALUES, groups=VALUES)
    with pytest.raises(InputError, match="one kind"):
        MODEL.transform(VALUES, groups=[1, "a"] * 20)
    with pytest.raises(TypeError, match="groups='group'"):
        MODEL.transform(TABLE)


def test_categories_and_gaps_are_encoded_and_saved(tmp_path):
    table = TABLE.assign(kind=np.where(VALUES[:, 0] > 0, "ape", "bee"), age=np.where(VALUES[:, 1] > 1, np.nan, 3.0 * N))
    table.loc[5, "kind"] = None
    model = FisherSetEmbedding(3, 8, random_state=0)
    Z = model.fit_transform(table, groups="group")
    assert model.encoder_ is not None
    expected = model.encoder_.transform(table.drop(columns="group"))
    bags = group_sets(np.asarray(expected), table["group"])
    np.testing.assert_array_equal(FisherSetEmbedding(3, 8, random_state=0).fit_transform(bags.sets), Z)
    model.save(tmp_path / "m.safetensors")
    loaded = FisherSetEmbedding.load(tmp_path / "m.safetensors")
    shuffled = table.sample(frac=1, random_state=0)
    np.testing.assert_allclose(loaded.transform(pa.Table.from_pandas(table), groups="group"), Z)
    assert loaded.transform(shuffled[["b", "group", "kind", "age", "c", "a"]], groups="group").shape == Z.shape
    with pytest.raises(TableError, match="'kind' is missing"):
        loaded.transform(table.drop(columns="kind"), groups="group")
    assert model.fit(TABLE, groups="group").encoder_ is None
