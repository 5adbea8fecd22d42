"""The logistic probe: scikit-learn's minimiser, computed in the span of the training rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fishergraph.datasets import load_graph
from fishergraph.probes import PAPER_CS, LogisticProbe
from shared_data import needs_shared_data, shared_data


def problem(n_rows=300, n_features=40, n_classes=3, noise=1.0, seed=0):
    """Noisy clusters with a mean far from zero, so that the intercept matters."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    centres = rng.normal(size=(n_classes, n_features))
    Z = centres[y] + noise * rng.normal(size=(n_rows, n_features)) + 5.0
    return Z.astype(np.float32), y


def two_hop(data, projection=None):
    """Unit-norm features, as they are or projected, and their one- and two-hop means: a plain embedding."""
    X = data.X.toarray().astype(np.float64)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    X = X if projection is None else X @ projection
    A = data.graph + sp.eye_array(data.n_nodes)
    P = sp.diags_array(1 / A.sum(axis=1)) @ A
    return np.hstack([X, P @ X, P @ (P @ X)]).astype(np.float32)


def sklearn_twin(Z, y, train, C):
    model = LogisticRegression(C=C, tol=1e-12, max_iter=100_000, solver="newton-cg")
    return model.fit(Z[train].astype(np.float64), y[train])


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e5])
@pytest.mark.parametrize(
    ("n_train", "n_features", "n_classes"),
    [(30, 80, 4), (30, 80, 2), (150, 20, 3), (150, 20, 2), (40, 40, 3)],
    ids=["wide", "wide-binary", "tall", "tall-binary", "square"],
)
def test_agrees_with_sklearn(C, n_train, n_features, n_classes):
    Z, y = problem(n_features=n_features, n_classes=n_classes, noise=2.0)
    train, val = np.arange(n_train), np.arange(n_train, 220)
    probe = LogisticProbe(Cs=[C]).fit(Z, y, train, val)
    twin = sklearn_twin(Z, y, train, C)
    ours, theirs = probe.decision_function(Z), twin.decision_function(Z.astype(np.float64))
    assert ours.shape == theirs.shape
    assert probe.coef_.shape == twin.coef_.shape
    assert probe.intercept_.shape == twin.intercept_.shape
    np.testing.assert_allclose(ours, theirs, atol=2e-4 * np.abs(theirs).max())
    np.testing.assert_array_equal(probe.predict(Z), twin.predict(Z))
    np.testing.assert_allclose(probe.predict_proba(Z), twin.predict_proba(Z.astype(np.float64)), atol=1e-3)
    assert probe.val_score_ == pytest.approx(twin.score(Z[val], y[val]))


def test_the_path_ends_where_single_solves_end():
    Z, y = problem(n_features=100, noise=2.0)
    train, val = np.arange(60), np.arange(60, 200)
    path = LogisticProbe().fit(Z, y, train, val)
    singles = [LogisticProbe(Cs=[C]).fit(Z, y, train, val).val_score_ for C in PAPER_CS]
    np.testing.assert_array_equal(path.val_scores_, singles)
    assert path.Cs_.shape == path.val_scores_.shape == (19,)
    np.testing.assert_allclose(PAPER_CS[[0, -1]], [1e-4, 1e5])


def test_ties_go_to_the_smallest_C():
    Z, y = problem(noise=0.01)
    probe = LogisticProbe(Cs=[10.0, 0.1, 1.0]).fit(Z, y, np.arange(50), np.arange(50, 100))
    assert probe.val_scores_.tolist() == [1.0, 1.0, 1.0]
    assert probe.C_ == 0.1


def test_the_validation_rows_do_not_enter_the_fit_unless_asked():
    Z, y = problem(noise=2.0)
    train, val = np.arange(60), np.arange(60, 200)
    plain = LogisticProbe().fit(Z, y, train, val)
    joined = LogisticProbe(fit_on="train+val").fit(Z, y, train, val)
    assert joined.C_ == plain.C_
    for probe, rows in ((plain, train), (joined, np.concatenate([train, val]))):
        twin = sklearn_twin(Z, y, rows, probe.C_)
        np.testing.assert_allclose(probe.coef_, twin.coef_, atol=1e-3 * np.abs(twin.coef_).max())


def test_masks_sparse_rows_and_text_labels_are_the_same_problem():
    Z, y = problem()
    mask = np.arange(300) < 100
    rows = LogisticProbe(Cs=[0.1]).fit(Z, y, np.arange(100), np.arange(100, 300))
    masks = LogisticProbe(Cs=[0.1]).fit(Z, y, mask, ~mask)
    sparse = LogisticProbe(Cs=[0.1]).fit(sp.csr_array(Z), np.array(["a", "b", "c"])[y], mask, ~mask)
    np.testing.assert_array_equal(rows.coef_, masks.coef_)
    np.testing.assert_allclose(rows.coef_, sparse.coef_, atol=1e-12)
    assert sparse.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(Z)), sparse.classes_[rows.predict(Z)])


def test_labels_outside_train_and_val_are_not_looked_at():
    Z, y = problem()
    labels = y.astype(np.float64)
    labels[200:] = np.nan
    probe = LogisticProbe(Cs=[1.0]).fit(Z, labels, np.arange(100), np.arange(100, 200))
    assert probe.classes_.tolist() == [0.0, 1.0, 2.0]


def test_rank_deficient_and_constant_embeddings():
    Z, y = problem()
    doubled = np.hstack([Z, Z, np.ones_like(Z)])
    train, val = np.arange(100), np.arange(100, 300)
    twin = sklearn_twin(doubled, y, train, 1.0)
    probe = LogisticProbe(Cs=[1.0]).fit(doubled, y, train, val)
    np.testing.assert_allclose(probe.decision_function(doubled), twin.decision_function(doubled), atol=1e-3)
    constant = LogisticProbe().fit(np.ones((300, 5)), y, train, val)
    np.testing.assert_allclose(constant.predict_proba(np.ones((1, 5)))[0], np.bincount(y[:100]) / 100, atol=1e-6)


def test_is_a_scikit_learn_estimator():
    probe = LogisticProbe(Cs=[1.0], max_iter=7)
    settings = {"Cs": [1.0], "max_iter": 7, "tol": 1e-7, "fit_on": "train", "patience": None, "verbose": False}
    assert clone(probe).get_params() == settings
    Z, y = problem()
    fitted = LogisticProbe(Cs=[1.0]).fit(Z, y, train=np.arange(100), val=np.arange(100, 300))
    assert fitted.score(Z[100:], y[100:]) == pytest.approx(fitted.val_score_)


def test_patience_ends_the_path_and_a_bar_follows_it():
    Z, y = problem(n_features=20, n_classes=3, noise=2.0)
    train, val = np.arange(60), np.arange(60, 220)
    whole = LogisticProbe().fit(Z, y, train, val)
    best = int(np.argmax(whole.val_scores_))
    assert best + 2 < len(whole.Cs_)  # else nothing is left out below
    seen = []

    class Bar:
        def __call__(self, title, steps):
            seen.append((title, steps))
            return self

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def set_postfix(self, **values):
            seen.append(values)

        def update(self, n):
            pass

    short = LogisticProbe(patience=len(whole.Cs_) - 1 - best - 1, verbose=Bar()).fit(Z, y, train, val)
    np.testing.assert_array_equal(short.val_scores_, whole.val_scores_[: len(short.Cs_)])
    assert len(short.Cs_) == len(whole.Cs_) - 1
    np.testing.assert_array_equal(short.coef_, whole.coef_)
    assert seen[0] == ("probing", 19)
    assert [set(values) for values in seen[1:]] == [{"C", "best"}] * len(short.Cs_)
    assert seen[-1]["best"] == whole.val_score_
    with pytest.raises(ValueError, match="patience"):
        LogisticProbe(patience=0).fit(Z, y, train, val)


def test_too_few_steps_are_reported():
    from sklearn.exceptions import ConvergenceWarning

    Z, y = problem(noise=3.0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        LogisticProbe(Cs=[1e5], max_iter=2).fit(Z, y, np.arange(100), np.arange(100, 300))


TRAIN, VAL = np.arange(100), np.arange(100, 300)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": []}, "train"),
        ({"val": np.zeros(300, dtype=bool)}, "val"),
        ({"val": np.arange(99, 200)}, "disjoint"),
        ({"train": np.arange(250, 301)}, "0 to 299"),
        ({"train": np.array([1, 1, 2])}, "1 repeated"),
        ({"train": np.ones(299, dtype=bool)}, "300 rows"),
        ({"train": np.linspace(0, 9, 10)}, "mask"),
        ({"Z": np.full((300, 2), np.nan)}, "NaN in row 0"),
        ({"Z": np.ones(300)}, "matrix"),
        ({"y": np.zeros(299, dtype=int)}, r"shape \(300,\)"),
        ({"y": np.zeros(300, dtype=int)}, "at least two classes"),
        ({"y": np.where(np.arange(300) == 7, np.nan, np.arange(300) % 3)}, "row 7"),
        ({"y": np.array([None] * 300)}, "row 0"),
        ({"y": np.array([pd.NA, *range(299)], dtype=object)}, "row 0"),
        ({"y": np.array(["a", 1, 2.5] * 100, dtype=object)}, "one type"),
        ({"Z": np.full((300, 2), 1e200)}, r"1e\+200"),
        ({"Cs": "many"}, "Cs must"),
        ({"Cs": []}, "Cs must"),
        ({"Cs": [1.0, -1.0]}, "Cs must"),
        ({"fit_on": "all"}, "fit_on"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol must"),
    ],
)
def test_bad_input(changes, message):
    Z, y = problem()
    call = {"Z": Z, "y": y, "train": TRAIN, "val": VAL}
    call.update({key: value for key, value in changes.items() if key in call})
    settings = {key: value for key, value in changes.items() if key not in call}
    with pytest.raises(ValueError, match=message) as caught:
        LogisticProbe(**settings).fit(**call)
    assert str(caught.value).endswith(".")


def test_another_embedding_is_refused():
    Z, y = problem()
    probe = LogisticProbe(Cs=[1.0]).fit(Z, y, TRAIN, VAL)
    with pytest.raises(ValueError, match="40 columns"):
        probe.predict(Z[:, 1:])


def test_cora_grid_is_exact():
    cora = load_graph("cora")
    Z = two_hop(cora)
    probe = LogisticProbe().fit(Z, cora.y, cora.train, cora.val)
    twin = sklearn_twin(Z, cora.y, cora.train, probe.C_)
    np.testing.assert_array_equal(probe.predict(Z), twin.predict(Z))
    assert probe.score(Z[cora.test], cora.y[cora.test]) > 0.75


@pytest.mark.slow
@needs_shared_data
def test_more_rows_than_columns():
    data = load_graph("amazon_computers", data_home=shared_data())
    rng = np.random.default_rng(0)
    Z = np.tanh(two_hop(data, rng.normal(size=(data.n_features, 100)))).astype(np.float32)
    nodes = rng.permutation(data.n_nodes)
    probe = LogisticProbe(Cs=PAPER_CS[:14:3]).fit(Z, data.y, nodes[:1375], nodes[1375:2750])
    assert probe.val_score_ > 0.8
    twin = sklearn_twin(Z, data.y, nodes[:1375], probe.C_)
    assert np.mean(probe.predict(Z) == twin.predict(Z)) > 0.9999
