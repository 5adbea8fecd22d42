"""Nested cross-validation: what is chosen, on what, and what is scored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from fishergraph.lab.nested import inner_scores, nested_scores, squared_distances

rng = np.random.default_rng(0)
Y = np.repeat([0, 1], 60)
FOLDS = list(StratifiedKFold(4, shuffle=True, random_state=0).split(Y, Y))
RING = (
    np.stack([np.cos(t := rng.uniform(0, 7, 120)), np.sin(t)], axis=1) * (1 + Y)[:, None]
    + rng.normal(size=(120, 2)) / 9
)
LINE = (Y + rng.normal(size=120) / 9)[:, None] * [[1.0, 2.0]]
NOISE = rng.normal(size=(120, 20))


@pytest.mark.parametrize("probe", ["rbf-svm", "linear-svm", "logistic"])
def test_what_is_easy_is_learned_and_noise_is_not(probe):
    assert nested_scores(LINE, Y, FOLDS, probes=[probe], inner=3).test.mean() > 0.97
    assert abs(nested_scores(NOISE, Y, FOLDS, probes=[probe], inner=3).test.mean() - 0.5) < 0.2


def test_rings_need_the_rbf():
    result = nested_scores(RING, Y, FOLDS, probes=("linear-svm", "rbf-svm"), inner=3)
    assert {choice.probe for choice in result.choices} == {"rbf-svm"}
    assert result.test.mean() > 0.95
    assert "over 4 folds" in repr(result)


def test_the_better_embedding_is_chosen():
    result = nested_scores({"noise": NOISE, "ring": RING}, Y, FOLDS, inner=3)
    assert [choice.embedding for choice in result.choices] == ["ring"] * 4


def test_the_score_is_that_of_scikit_learn_on_the_same_split():
    train, test = FOLDS[0]
    result = nested_scores(RING, Y, [(train, test)], Cs=[3.0], gammas=[0.5], inner=3)
    gamma = 0.5 / np.median(squared_distances(RING[train]))
    assert result.choices[0].test == SVC(C=3.0, gamma=gamma).fit(RING[train], Y[train]).score(RING[test], Y[test])
    inner = StratifiedKFold(3, shuffle=True, random_state=np.random.RandomState(0))  # as RepeatedStratifiedKFold draws
    X, y, scores = RING[train], Y[train], []
    for a, b in inner.split(train, y):
        scores.append(SVC(C=3.0, gamma=gamma).fit(X[a], y[a]).score(X[b], y[b]))
    assert result.choices[0].inner == pytest.approx(np.mean(scores), abs=0.03)
    linear = nested_scores(LINE, Y, [(train, test)], probes=["linear-svm"], Cs=[1.0], inner=3)
    centred = LINE - LINE[train].mean(axis=0)
    scaled = centred / np.sqrt(np.mean(np.sum(centred[train] ** 2, axis=1)))
    model = LinearSVC(C=1.0, dual="auto", random_state=0).fit(scaled[train], Y[train])
    assert linear.choices[0].test == model.score(scaled[test], Y[test])


def test_labels_of_the_test_part_change_no_choice():
    train, test = FOLDS[1]
    turned = Y.copy()
    turned[test] = 1 - turned[test]
    one, two = (nested_scores({"a": RING, "b": NOISE}, y, [(train, test)], inner=3).choices[0] for y in (Y, turned))
    assert (one.embedding, one.gamma, one.C, one.inner) == (two.embedding, two.gamma, two.C, two.inner)
    assert one.test == pytest.approx(1 - two.test)
    np.testing.assert_array_equal(
        inner_scores(RING, Y, [(train, test)], inner=3), inner_scores(RING, turned, [(train, test)], inner=3)
    )


def test_inner_scores_are_those_of_the_choice():
    result = nested_scores(RING, Y, FOLDS, inner=3, repeats=2)
    np.testing.assert_array_equal(inner_scores(RING, Y, FOLDS, inner=3, repeats=2), result.inner)


def test_distances_are_those_of_loops():
    few = NOISE[:5]
    expected = [[sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for y in few] for x in few]
    np.testing.assert_allclose(squared_distances(few), expected, atol=1e-12)


def test_progress_is_reported():
    calls = []
    nested_scores(
        LINE, Y, FOLDS[:2], inner=2, Cs=[1.0], gammas=[1.0], progress=lambda k, choice: calls.append((k, choice.C))
    )
    assert calls == [(0, 1.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"probes": ["svm"]}, "probes .*'svm'"),
        ({"Cs": []}, "Cs"),
        ({"Cs": [-1.0]}, "Cs"),
        ({"inner": 1}, "inner"),
        ({"embeddings": RING[:5]}, "5 rows"),
        ({"embeddings": {}}, "embeddings"),
        ({"embeddings": np.full((120, 2), np.nan)}, "NaN"),
        ({"embeddings": 1e200 * RING}, "1e.100"),
        ({"folds": [([0, 1], [1, 2])]}, "fold 0 .*disjoint"),
        ({"folds": [([0, 1], [500])]}, "fold 0 test .*119"),
        ({"folds": []}, "folds"),
        ({"folds": [(np.arange(9), [70])]}, "fold 0"),
        ({"folds": [FOLDS[0], (np.arange(58, 62), np.arange(9))], "inner": 4}, "fold 1"),
        ({"y": np.where(np.arange(120) == 3, None, Y.astype(object))}, "fold 0 .*row 3"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_input(changes, sentence):
    arguments = {"embeddings": RING, "y": Y, "folds": FOLDS, **changes}
    with pytest.raises(ValueError, match=sentence):
        nested_scores(**arguments)
    if isinstance(arguments["embeddings"], np.ndarray):
        with pytest.raises(ValueError, match=sentence):
            inner_scores(arguments.pop("embeddings"), **arguments)


def test_sparse_rows_are_the_same_problem():
    options = {"inner": 2, "Cs": [1.0], "gammas": [1.0]}
    dense, sparse = (nested_scores(Z, Y, FOLDS[:2], **options).test for Z in (RING, sp.csr_array(RING)))
    np.testing.assert_array_equal(dense, sparse)


def test_numbers_with_fractions_are_no_classes():
    y = np.array([0.5, 1.5] * 6)
    with pytest.raises(ValueError, match=r"0\.5"):
        nested_scores(np.eye(12), y, [(np.arange(8), np.arange(8, 12))])


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("probe", ["rbf-svm", "linear-svm", "logistic"])
def test_an_inner_part_of_one_class_predicts_it(probe):
    Z, y = np.arange(12.0)[:, None], np.array([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1])
    scores = nested_scores({"a": Z}, y, [(np.arange(8), np.arange(8, 12))], inner=2, probes=(probe,))
    assert scores.inner[0] >= 7 / 8  # the part without the one label of class 1 is right about its own rows


def test_an_embedding_whose_name_is_no_text_is_named_in_an_error():
    with pytest.raises(ValueError, match=r"\('a', 1\)"):
        nested_scores({("a", 1): np.full((12, 1), 1j)}, np.arange(12) % 2, [(np.arange(8), np.arange(8, 12))])
