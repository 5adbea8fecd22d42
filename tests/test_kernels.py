"""Gram matrices: inner products of embeddings, symmetric to the bit, positive semidefinite, ready for an SVM."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import SVC

from fishergraph import (
    FisherEmbedding,
    FisherSetEmbedding,
    GaussianMixture,
    graph_kernel,
    node_kernel,
    set_kernel,
)
from fishergraph.datasets import equal_mean_graph, equal_mean_sets
from fishergraph.kernels import gram
from models import graph_model

rng = np.random.default_rng(0)
X = rng.normal(size=(1100, 4)).astype(np.float32)
A = sp.random_array((1100, 1100), density=0.003, rng=rng, format="csr")
SETS, Y = equal_mean_sets(700, 6)


def nodes() -> FisherEmbedding:
    return FisherEmbedding(2, 2, 8, random_state=0)


def assert_is_a_kernel(K):
    np.testing.assert_array_equal(K, K.T)
    assert K.dtype == np.float64
    values = np.linalg.eigvalsh(K)
    assert values[0] > -1e-12 * values[-1]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_node_kernel_is_the_multilayer_kernel(n_jobs):
    model = nodes()
    Z = model.fit_transform(X, graph=A).astype(np.float64)
    K = node_kernel(X, A, embedding=nodes(), n_jobs=n_jobs)
    assert_is_a_kernel(K)
    np.testing.assert_allclose(K, Z @ Z.T, atol=1e-12)
    np.testing.assert_array_equal(K, node_kernel(X, A, embedding=model, n_jobs=1))


def test_a_rectangle_is_fitted_on_the_columns():
    model = nodes()
    alone = sp.csr_array((5, 5))
    K = node_kernel(X[:5], alone, X, A, embedding=model)
    assert K.shape == (5, 1100)
    expected = nodes().fit(X, graph=A)
    np.testing.assert_allclose(
        K,
        expected.transform(X[:5], graph=alone).astype(float) @ expected.transform(X, graph=A).T.astype(float),
        atol=1e-12,
    )
    np.testing.assert_array_equal(node_kernel(X[:5], alone, X, A, embedding=model), K)  # the fit stays


def test_a_graph_without_features():
    K = node_kernel(None, A[:60, :60], embedding=nodes())
    assert K.shape == (60, 60)
    assert node_kernel(None, A[:9, :9], None, A[:60, :60], embedding=nodes()).shape == (9, 60)


@pytest.mark.parametrize("kernel", ["identity", "exp"])
@pytest.mark.parametrize("cosine", [False, True])
def test_set_kernel(kernel, cosine):
    model = FisherSetEmbedding(4, 16, kernel=kernel, random_state=0)
    Z = model.fit_transform(SETS)
    if cosine:
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    K = set_kernel(SETS, embedding=model, cosine=cosine)
    assert_is_a_kernel(K)
    np.testing.assert_allclose(K, Z @ Z.T, atol=1e-12)
    np.testing.assert_allclose(set_kernel(SETS[:9], SETS, embedding=model, cosine=cosine), K[:9], atol=1e-12)
    if cosine:
        np.testing.assert_allclose(np.diag(K), 1)


def test_the_default_is_one_embedding_from_call_to_call():
    train, test = SETS[:50], SETS[50:60]
    K = set_kernel(train + test, train)
    np.testing.assert_allclose(K[:50], set_kernel(train), atol=1e-12)


def test_weights_reach_both_sides():
    weights = [rng.random(len(s)) for s in SETS[:20]]
    model = FisherSetEmbedding(3, random_state=0)
    K = set_kernel(SETS[:20], weights=weights, embedding=model)
    both = set_kernel(SETS[:4], SETS[:20], weights=weights[:4], other_weights=weights, embedding=model)
    np.testing.assert_allclose(both, K[:4], atol=1e-12)
    assert np.abs(set_kernel(SETS[:20], embedding=model) - K).max() > 1e-3


def test_an_empty_set_has_a_row_of_zeros_in_the_cosine_too():
    K = set_kernel([*SETS[:5], []], embedding=FisherSetEmbedding(2, random_state=0), cosine=True)
    np.testing.assert_array_equal(K[5], 0)


def test_a_precomputed_machine_learns_sets():
    train, test = SETS[:500], SETS[500:]
    embedding = FisherSetEmbedding(random_state=0)
    svm = SVC(kernel="precomputed").fit(set_kernel(train, embedding=embedding, cosine=True), Y[:500])
    K = set_kernel(test, train, embedding=embedding, cosine=True)
    assert K.shape == (200, 500)
    assert svm.score(K, Y[500:]) > 0.95


def test_a_precomputed_machine_learns_nodes_and_is_the_linear_one():
    data = equal_mean_graph(seed=1)
    model = FisherEmbedding(
        1, 8, kernel="identity", normalize=False, random_state=0, family=GaussianMixture(sharpness=0.5)
    )
    K = node_kernel(data.X, data.graph, embedding=model)
    train, test = np.concatenate([data.train, data.val]), data.test
    svm = SVC(kernel="precomputed").fit(K[train][:, train], data.y[train])
    assert svm.score(K[test][:, train], data.y[test]) > 0.95
    Z = model.transform(data.X, graph=data.graph).astype(np.float64)
    linear = SVC(kernel="linear").fit(Z[train], data.y[train])
    np.testing.assert_array_equal(linear.predict(Z[test]), svm.predict(K[test][:, train]))
    assert RidgeClassifier().fit(Z[train], data.y[train]).score(Z[test], data.y[test]) > 0.95


def test_gram_of_tensors():
    torch = pytest.importorskip("torch")
    Z = torch.randn(600, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    K = gram(Z)
    assert isinstance(K, torch.Tensor)
    assert torch.equal(K, K.T)
    torch.testing.assert_close(K, Z @ Z.T)
    sets = [Z[k : k + 3] for k in range(20)]
    assert set_kernel(sets, embedding=FisherSetEmbedding(2, random_state=0)).shape == (20, 20)


@pytest.mark.parametrize("change", [{"cosine": "yes"}, {"n_jobs": 0}])
def test_options_are_checked(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        set_kernel(SETS[:5], **change)


def test_the_kernel_of_graphs_is_the_inner_product_of_their_embeddings():
    graphs = [nx.cycle_graph(n) for n in range(4, 9)] + [nx.star_graph(n) for n in range(4, 9)]
    model = graph_model(nodes__n_layers=1, nodes__n_anchors=2, nodes__dim=8, readout__n_anchors=4, random_state=0)
    K = graph_kernel(graphs[:4], graphs, embedding=model)
    Z = model.transform(graphs).astype(float)
    np.testing.assert_allclose(K, Z[:4] @ Z.T, rtol=1e-6)
    square = graph_kernel(graphs, embedding=model, cosine=True)
    np.testing.assert_array_equal(square, square.T)
    np.testing.assert_allclose(np.diag(square), 1)
    assert np.linalg.eigvalsh(square)[0] > -1e-9


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_a_table_as_scikit_learns_output_changes_nothing(container):
    model = FisherSetEmbedding(3, random_state=0).fit(SETS[:20])
    K = set_kernel(SETS[:20], embedding=model)
    with sklearn.config_context(transform_output=container):
        np.testing.assert_array_equal(set_kernel(SETS[:20], embedding=model), K)
        assert node_kernel(X[:9], embedding=nodes()).shape == (9, 9)
        assert graph_kernel([nx.path_graph(3), nx.path_graph(4)]).shape == (2, 2)
    np.testing.assert_array_equal(set_kernel(SETS[:20], embedding=model.set_output(transform=container)), K)


def test_what_belongs_to_no_argument_is_an_error():
    with pytest.raises(ValueError, match="other_weights"):
        set_kernel(SETS[:5], other_weights=[np.ones(6)] * 5)
    with pytest.raises(TypeError, match="FisherSetEmbedding"):
        set_kernel(SETS[:5], embedding=nodes())
