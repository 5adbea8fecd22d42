"""Clusters: those that were planted, how many, their names and central members, bits, and bad input."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, silhouette_score

import reference_vectors as reference
from fishergraph import Vectors
from fishergraph._errors import FewPointsWarning, FishergraphWarning, InputError
from fishergraph.vectors import clustering
from fishergraph.vectors.columns import read_columns
from fishergraph.vectors.naming import traits_of

pd = pytest.importorskip("pandas")
SIZES = (60, 40, 30, 20)


def planted(d=20, noise=0.15, seed=0):
    """Vectors around four directions, of other lengths, in a random order, and the group of each."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(4), SIZES))
    Z = np.linalg.qr(rng.normal(size=(d, 4)))[0].T[y] + noise * rng.normal(size=(len(y), d))
    return (Z * rng.uniform(0.5, 5, size=(len(y), 1))).astype(np.float32), y


Z, Y = planted()
IDS = [f"n{k}" for k in range(len(Z))]


@pytest.mark.parametrize("d", [20, 100])  # below and above the axes that are kept
def test_planted_groups_are_found(d):
    vectors, y = planted(d, noise=0.08)
    found = Vectors(vectors).cluster(4)
    assert adjusted_rand_score(y, found.labels) == 1
    assert found.sizes.tolist() == list(SIZES)
    assert found.labels.tolist() == y.tolist(), "the largest cluster is the first"


def test_auto_finds_how_many_there_are():
    found = Vectors(Z).cluster()
    assert found.k == 4
    scores = {record["k"]: record["score"] for record in found.report}
    assert max(scores, key=scores.__getitem__) == 4
    assert set(scores) == set(clustering.AUTO)
    several = Vectors(Z).cluster([3, 4, 9])
    assert [record["k"] for record in several.report] == [3, 4, 9]
    assert several.k == 4


def test_the_silhouette_is_that_of_scikit_learn():
    assert clustering.silhouette(Z, Y) == pytest.approx(silhouette_score(Z.astype(float), Y))
    assert clustering.silhouette(Z, np.zeros(len(Z), int)) == 0
    assert clustering.silhouette(Z[:3], np.arange(3)) == 0


def test_lengths_count_if_they_are_asked_for():
    """Two directions at two lengths each."""
    rng = np.random.default_rng(0)
    base = np.repeat(np.eye(2), 40, axis=0) * np.tile(np.repeat([1.0, 9.0], 20), 2)[:, None]
    rows = base + 0.01 * rng.normal(size=base.shape)
    group = np.repeat(np.arange(4), 20)
    assert adjusted_rand_score(group, Vectors(rows).cluster(2).labels) < 0.6
    assert adjusted_rand_score(group, Vectors(rows).cluster(4, metric="euclidean").labels) == 1


def test_distances_and_central_members():
    found = Vectors(Z, IDS).cluster(4, central=3)
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    for c in range(4):
        own = np.flatnonzero(found.labels == c)
        centre = unit[own].mean(axis=0)
        np.testing.assert_allclose(found.distance[own], np.linalg.norm(unit[own] - centre, axis=1), atol=1e-5)
        assert found.central[c].tolist() == [IDS[v] for v in own[np.argsort(found.distance[own])[:3]]]
        assert found.names[c] == f"around {found.central[c][0]}"


def test_threads_and_turns_of_the_axes_change_nothing():
    one, two = (Vectors(Z).cluster([2, 4], n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.distance, two.distance)
    assert one.report == two.report
    np.testing.assert_array_equal(one.labels, Vectors(Z.copy()).cluster([2, 4]).labels)


# --- names ------------------------------------------------------------------------------------------------


def test_the_statistic_is_that_of_the_reference():
    numbers = np.random.default_rng(0).normal(size=(len(Y), 3)) + Y[:, None]
    for matrix in (numbers, np.where(numbers > 1, 1.0, 0.0), sp.csr_array(np.maximum(numbers, 0))):
        columns = read_columns(matrix, ["a", "b", "c"], len(Y))
        dense = matrix.toarray() if sp.issparse(matrix) else matrix
        for c, traits in enumerate(traits_of(columns, Y, 4)):
            for trait in traits:
                column = dense[:, ["a", "b", "c"].index(trait.column)]
                assert trait.t == pytest.approx(reference.difference_of_means(column, c == Y), rel=1e-9)
                assert trait.inside == pytest.approx(column[c == Y].mean())
                assert trait.outside == pytest.approx(column[c != Y].mean())


def test_columns_of_every_kind_name_clusters():
    rng = np.random.default_rng(0)
    day = datetime.date(2020, 1, 1)
    table = pd.DataFrame(
        {
            "age": np.where(Y == 0, 70.0, 30.0) + rng.normal(size=len(Y)),
            "town": np.where(Y == 1, "Bern", np.where(rng.random(len(Y)) < 0.5, "Ulm", "Graz")),
            "vip": Y == 2,
            "since": [day + datetime.timedelta(days=int(3000 * (v == 3) + rng.integers(30))) for v in Y],
            "abstract": ["graphs are nice" if v == 3 else "a paper on cats" for v in Y],
            "nothing": 1.0,
            "code": [f"x{k}" for k in range(len(Y))],
        },
        index=IDS,
    )
    found = Vectors(Z, IDS).cluster(4, X=table.drop(columns="abstract"))
    assert [name.split(", ")[0] for name in found.names] == ["age high", "town = Bern", "vip", "since late"]
    assert set(found.left_out) == {"nothing", "code"}
    words = Vectors(Z, IDS).cluster(4, X=table[["abstract"]])
    assert set(words.names[3].split(", ")) <= {"abstract = graphs are nice", "graphs", "nice", "are"}
    turned = Vectors(Z, IDS).cluster(4, X=table.drop(columns="abstract").iloc[::-1])
    assert turned.names == found.names


def test_missing_values_set_nothing_apart():
    age = np.where(Y == 0, 70.0, 30.0) + np.random.default_rng(0).normal(size=len(Y))
    age[::3] = np.nan
    found = Vectors(Z).cluster(4, X=pd.DataFrame({"age": age}))
    trait = found.traits[0][0]
    assert trait.text == "age high"
    known = np.isfinite(age) & (Y == 0)
    assert 30 < trait.inside <= age[known].max()


def test_a_faint_column_is_not_part_of_a_name():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"loud": 1.0 * (Y == 0) + 0.01 * rng.normal(size=len(Y)), "faint": 0.8 * (Y == 0) + rng.normal(size=len(Y))}
    )
    found = Vectors(Z).cluster(4, X=table)
    assert {trait.column for trait in found.traits[0]} == {"loud", "faint"}
    assert found.names[0] == "loud high"


def test_words_of_a_sparse_matrix_name_clusters_if_they_are_more_frequent():
    X = sp.csr_array(
        (np.random.default_rng(0).random((len(Y), 5)) < np.where(np.arange(5) == Y[:, None], 0.9, 0.1)).astype(float)
    )
    found = Vectors(Z).cluster(4, X=X, columns=["ant", "bee", "cat", "dog", "eel"])
    assert found.names == ["ant", "bee", "cat", "dog"]


# --- tables and bad input ---------------------------------------------------------------------------------


def test_tables_of_clusters():
    found = Vectors(Z, IDS).cluster(4)
    table = found.to_arrow()
    assert table.column_names == ["id", "cluster", "name", "distance"]
    assert table["id"].to_pylist() == IDS
    assert table["name"].to_pylist() == [found.names[c] for c in found.labels]
    summary = found.summary()
    assert summary["size"].tolist() == list(SIZES)
    assert str(found).splitlines()[1].split() == ["cluster", "size", "name", "central"]
    assert all(name in str(found) and name in found._repr_html_() for name in found.names)
    assert found.to_pandas().shape == (len(Z), 4)
    assert repr(found) == "Clusters(4 of 150 nodes, with 20 to 60 each)"
    assert len(found) == 4


def test_few_and_equal_rows():
    assert Vectors(Z[:1]).cluster().sizes.tolist() == [1]
    assert Vectors(Z[:2]).cluster().sizes.tolist() == [2]
    assert Vectors(Z[:3]).cluster(3).sizes.tolist() == [1, 1, 1]
    with pytest.warns(FewPointsWarning):
        found = Vectors(np.ones((20, 3))).cluster(3)
    assert found.sizes.tolist() == [20]
    doubled = Vectors(np.repeat(Z, 2, axis=0)).cluster(4)
    assert doubled.sizes.tolist() == [2 * size for size in SIZES]


def test_vectors_of_zeros_are_put_together():
    rows = np.concatenate([Z, np.zeros((9, Z.shape[1]), np.float32)])
    with pytest.warns(FishergraphWarning, match="9 vectors are zero"):
        found = Vectors(rows).cluster(5)
    assert len(set(found.labels[-9:])) == 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"k": 0}, "k"),
        ({"k": 151}, "150"),
        ({"k": "many"}, "auto"),
        ({"k": [3, 2.5]}, "k"),
        ({"metric": "dot"}, "cosine"),
        ({"central": 0}, "central"),
        ({"X": np.ones((3, 2))}, "3 rows"),
        ({"X": np.full((150, 2), np.nan)}, "row 0"),
        ({"X": np.ones((150, 2)), "columns": ["a"]}, "columns"),
        ({"X": np.ones((150, 2)), "columns": ["a", "a"]}, "a"),
        ({"X": np.ones((150, 2))}, "differs"),
        ({"X": pd.DataFrame({"code": IDS})}, "code"),
        ({"X": pd.DataFrame({"age": range(150)}, index=[f"m{k}" for k in range(150)])}, "index of X"),
    ],
)
def test_questions_that_make_no_sense(options, word):
    with pytest.raises(InputError, match=word):
        Vectors(Z, IDS).cluster(**options)
