"""FisherEmbedding is a scikit-learn transformer: its contract, its containers, and a graph that is routed."""

from __future__ import annotations

import pickle

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fishergraph import EM, DiagonalMixture, FisherEmbedding, GaussianMixture, PageRank, as_graph
from fishergraph._errors import InputError
from models import PUBLISHED, node_model

SMALL = {"n_layers": 2, "n_anchors": 2, "dim": 4, "structure": "auto", "random_state": 0}


def small(**changes) -> FisherEmbedding:
    return node_model(**{**SMALL, **changes})


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)


@pytest.fixture
def A() -> sp.csr_array:
    upper = sp.triu(sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(2)), 1)
    return sp.csr_array((upper + upper.T > 0).astype(np.float32))


@pytest.fixture
def y(X) -> np.ndarray:
    return (X[:, 0] > 0).astype(int)


def zero_rows(estimator) -> dict[str, str]:
    """The checks whose data hold rows of zeros, which have no direction."""
    checks = ("dtypes", "sparse_tag", "sparse_array", "sparse_matrix")
    names = [f"check_estimator{'s' if check == 'dtypes' else ''}_{check}" for check in checks]
    return dict.fromkeys(names, "zero rows") if estimator.family == "von-mises-fisher" else {}


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
@parametrize_with_checks(
    [
        FisherEmbedding(),
        FisherEmbedding.published_code(),
        FisherEmbedding(n_layers=1, n_anchors=2, dim=4),
        FisherEmbedding(n_layers=2, n_anchors=3, dim=3, counts=True, n_jobs=1, em=EM(prior=0.5, n_iter=2)),
        FisherEmbedding(n_layers=1, n_anchors=2, dim=4, kernel="identity", normalize=False, n_jobs=1),
        FisherEmbedding(n_layers=2, n_anchors=2, dim=4, n_jobs=1, family=DiagonalMixture(tangent="score")),
        FisherEmbedding(n_layers=2, n_anchors=2, dim=4, n_jobs=1, em=EM(n_iter=2), family="von-mises-fisher"),
        FisherEmbedding(n_layers=2, n_anchors=2, dim=4, n_jobs=1, em=EM(n_iter=2), family="multinomial"),
        FisherEmbedding(n_layers=1, dim=4, family="gaussian", n_jobs=1),
        FisherEmbedding(n_layers=1, n_anchors=2, dim=4, n_jobs=1, family=GaussianMixture(fisher="exact")),
    ],
    expected_failed_checks=zero_rows,
)
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


# --- parameters and copies ------------------------------------------------------------------------------


def test_clone_copies_parameters_and_forgets_the_fit(X, A):
    weights = {"psi0": 0, "psi2": 2, "local": 1}
    model = small(block_weights=weights, family__variance=0.5, multiset=PageRank(members=3)).fit(X, graph=A)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "stack_")
    np.testing.assert_array_equal(copy.fit_transform(X, graph=A), model.transform(X, graph=A))


def test_get_and_set_params():
    model = FisherEmbedding()
    params = model.get_params()
    assert (params["n_layers"], params["n_anchors"], params["dim"]) == (2, 4, 256)
    assert model.set_params(dim=7, em__prior=1.0) is model
    assert (model.dim, model.em) == (7, EM(prior=1.0))
    with pytest.raises(ValueError, match="Invalid parameter 'n_anchor'"):
        model.set_params(n_anchor=3)


def test_the_constructor_only_stores():
    weights, anything = [1, 2], object()
    model = FisherEmbedding(n_layers="not a number", block_weights=weights, random_state=anything)
    assert model.n_layers == "not a number"
    assert model.block_weights is weights
    assert model.random_state is anything


@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
def test_pickle_and_joblib_keep_every_bit(X, A, rule, tmp_path):
    model = small(**rule).fit(X, graph=A)
    expected = model.transform(X, graph=A)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X, graph=A), expected)
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "model.joblib").transform(X, graph=A), expected)


def test_fit_returns_the_estimator(X, A):
    model = small()
    assert model.fit(X, graph=A) is model


# --- containers and names -------------------------------------------------------------------------------


def test_feature_names_say_block_and_position(X, A):
    model = small().fit(X, graph=A)
    names = model.get_feature_names_out()
    blocks = ("psi0", "psi1", "psi2", "walk", "smooth", "factors", "local")
    assert list(names) == [f"{block}_{k}" for block in blocks for k in range(4)]
    assert model.blocks_ == [(block, 4) for block in blocks]
    assert len(names) == model.transform(X, graph=A).shape[1]


def test_feature_names_leave_out_blocks_of_weight_zero(X, A):
    model = small(block_weights=[1, 0, 1, 0, 0, 0, 0]).fit(X, graph=A)
    assert list(model.get_feature_names_out()) == [f"psi{t}_{k}" for t in (0, 2) for k in range(4)]


def test_feature_names_count_what_the_data_gave(A):
    with pytest.warns(UserWarning, match="distinct points"):
        model = small(**PUBLISHED).fit(np.eye(2)[np.arange(40) % 2], graph=A)
    assert len(model.get_feature_names_out()) == model.transform(np.ones((40, 2)), graph=A).shape[1]


def test_pandas_output_keeps_the_index(X, A):
    frame = pd.DataFrame(X, index=[f"v{i}" for i in range(40)], columns=list("abcdef"))
    model = small().set_output(transform="pandas")
    Z = model.fit_transform(frame, graph=A)
    assert isinstance(Z, pd.DataFrame)
    assert list(Z.index) == list(frame.index)
    assert list(Z.columns) == list(model.get_feature_names_out())
    pd.testing.assert_frame_equal(model.transform(frame, graph=A), Z)
    assert list(model.feature_names_in_) == list("abcdef")
    np.testing.assert_array_equal(Z.to_numpy(), small().fit_transform(X, graph=A))


def test_polars_output_and_polars_input(X, A):
    model = small().set_output(transform="polars")
    Z = model.fit_transform(pl.DataFrame(X, schema=list("abcdef")), graph=A)
    assert isinstance(Z, pl.DataFrame)
    assert Z.columns == list(model.get_feature_names_out())
    np.testing.assert_array_equal(Z.to_numpy(), small().fit_transform(X, graph=A))


def test_pandas_output_without_features(A):
    model = small().set_output(transform="pandas")
    Z = model.fit_transform(None, graph=A)
    blocks = ("psi0", "psi1", "psi2", "factors", "local")
    assert list(Z.columns) == [f"{block}_{k}" for block in blocks for k in range(4)]
    pd.testing.assert_frame_equal(model.transform(None, graph=A), Z)


def test_columns_in_another_order_are_refused(X, A):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = small().fit(frame, graph=A)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("fedcba")], graph=A)


# --- dtypes and storage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [("float32", "float32"), ("float64", "float64"), ("int64", "float32"), ("uint8", "float32"), ("bool", "float32")],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_floats_keep_their_type_and_others_become_float32(X, A, given, kept, sparse):
    data = np.abs(np.round(3 * X)).astype(given)
    data = sp.csr_array(data) if sparse else data
    model = small().fit(data, graph=A)
    assert model.transform(data, graph=A).dtype == kept
    assert small().fit_transform(data, graph=A).dtype == kept


def test_a_model_of_one_precision_serves_the_other(X, A):
    single, double = small().fit(X, graph=A), small().fit(X.astype(np.float64), graph=A)
    assert single.transform(X.astype(np.float64), graph=A).dtype == np.float64
    assert double.transform(X, graph=A).dtype == np.float32
    np.testing.assert_allclose(single.transform(X.astype(np.float64), graph=A), single.transform(X, graph=A), atol=1e-5)


@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
@pytest.mark.parametrize("normalize", [True, False])
def test_sparse_features_give_what_dense_ones_give(X, A, rule, normalize):
    bag = np.where(X > -0.5, X, 0).astype(np.float64)  # no row is a multiple of another: k-means tells points apart
    model = small(**rule, normalize=normalize)
    dense = model.fit_transform(bag, graph=A)
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array):
        np.testing.assert_allclose(model.fit_transform(kind(bag), graph=A), dense, atol=1e-10)


def test_a_sparse_matrix_out_of_order_is_read_and_left_alone(X, A):
    bag = sp.csr_array(np.where(X > 0, X, 0).astype(np.float64))
    halves = sp.csr_array(
        (np.repeat(bag.data / 2, 2)[::-1], np.repeat(bag.indices, 2)[::-1], 2 * (bag.nnz - bag.indptr[::-1])),
        shape=bag.shape,
    )[::-1]
    twice = sp.csr_array((halves.data, halves.indices, halves.indptr), shape=bag.shape)  # every entry in two halves
    before = twice.data.copy(), twice.indices.copy()
    np.testing.assert_allclose(small().fit_transform(twice, graph=A), small().fit_transform(bag, graph=A), atol=1e-10)
    np.testing.assert_array_equal(twice.data, before[0])
    np.testing.assert_array_equal(twice.indices, before[1])


@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_input_is_left_alone(X, A, order):
    data = np.array(X, order=order)
    data.setflags(write=False)
    A.data.setflags(write=False)
    np.testing.assert_array_equal(small().fit_transform(data, graph=A), small().fit_transform(X, graph=A))


# --- names of nodes -------------------------------------------------------------------------------------


@pytest.fixture
def named(X, A):
    """Features by name, in an order of their own, and the same graph as numbers in that order."""
    names = np.array([f"n{i:02d}" for i in range(40)])
    order = np.random.default_rng(3).permutation(40)
    frame = pd.DataFrame(X[order], index=names[order])
    edges = sp.coo_array(A)
    table = pd.DataFrame({"source": names[edges.col], "target": names[edges.row]})
    return frame, table, A[order][:, order]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "networkx"])
def test_rows_meet_their_nodes_by_name(named, kind):
    frame, table, ordered = named
    if kind == "networkx":
        graph = nx.from_pandas_edgelist(table.sample(frac=1, random_state=0), create_using=nx.DiGraph)
    elif kind == "polars":
        graph = pl.DataFrame({name: list(table[name]) for name in table})
    else:
        graph = table if kind == "pandas" else pl.DataFrame({name: list(table[name]) for name in table}).to_arrow()
    Z = small().fit_transform(frame, graph=graph)
    np.testing.assert_array_equal(Z, small().fit_transform(frame.to_numpy(), graph=ordered))
    model = small().fit(frame, graph=graph)
    np.testing.assert_array_equal(model.transform(frame, graph=graph), Z)


def test_integer_names_in_reversed_rows(X, A):
    frame = pd.DataFrame(X)[::-1]  # its index counts down
    edges = sp.coo_array(A)
    table = pd.DataFrame({"source": edges.col, "target": edges.row})
    Z = small().fit_transform(frame, graph=table)
    np.testing.assert_array_equal(Z, small().fit_transform(X[::-1], graph=A[::-1][:, ::-1]))


def test_a_finished_graph_in_another_order_is_refused(named):
    frame, table, _ = named
    graph = as_graph(table)
    with pytest.raises(ValueError, match=r"graph\.ids"):
        small().fit(frame, graph=graph)
    back = small().fit_transform(frame.loc[graph.ids], graph=graph)
    assert back.shape == (40, 28)


def test_a_name_without_features_is_an_error(named):
    frame, table, _ = named
    with pytest.raises(ValueError, match=frame.index[0]):
        small().fit(frame.iloc[1:], graph=table)


# --- metadata routing -----------------------------------------------------------------------------------


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield small().set_fit_request(graph=True).set_transform_request(graph=True)


def test_a_pipeline_passes_the_graph_on(X, A, y, routed):
    pipeline = make_pipeline(StandardScaler(), routed, LogisticRegression()).fit(X, y, graph=A)
    scaled = StandardScaler().fit_transform(X)
    Z = small().fit_transform(scaled, graph=A)
    np.testing.assert_array_equal(pipeline[:-1].transform(X, graph=A), Z)
    np.testing.assert_array_equal(pipeline.predict(X, graph=A), LogisticRegression().fit(Z, y).predict(Z))


def test_grid_search_cuts_the_graph_along_the_folds(X, A, y, routed):
    graph = as_graph(A)
    pipeline = Pipeline([("embed", routed), ("probe", LogisticRegression())])
    folds = KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, {"embed__n_layers": [0, 1, 2]}, cv=folds, error_score="raise")
    search.fit(X, y, graph=graph)
    expected = []
    for train, test in folds.split(X):
        model = small(n_layers=1).fit(X[train], graph=A[train][:, train])
        probe = LogisticRegression().fit(model.transform(X[train], graph=A[train][:, train]), y[train])
        expected.append(probe.score(model.transform(X[test], graph=A[test][:, test]), y[test]))
    assert [search.cv_results_[f"split{k}_test_score"][1] for k in range(4)] == pytest.approx(expected)
    assert search.best_estimator_.predict(X, graph=graph).shape == y.shape


def test_cross_val_score_follows_named_rows(X, A, y, routed):
    frame = pd.DataFrame(X, index=[f"v{i}" for i in range(40)])
    pipeline = make_pipeline(routed, LogisticRegression())
    scores = [
        cross_val_score(pipeline, data, y, cv=4, params={"graph": as_graph(A)}, error_score="raise")
        for data in (X, frame)
    ]
    np.testing.assert_array_equal(scores[0], scores[1])


def test_a_raw_matrix_in_a_grid_search_says_what_to_pass(X, A, y, routed):
    search = GridSearchCV(make_pipeline(routed, LogisticRegression()), {}, cv=2, error_score="raise")
    with pytest.raises(InputError, match="square"):
        search.fit(X, y, graph=A)


def test_a_graph_that_nobody_requested_is_an_error(X, A, y):
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(Exception, match="graph"):
        make_pipeline(small(), LogisticRegression()).fit(X, y, graph=A)
