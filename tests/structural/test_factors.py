"""Factors, local columns and eigenvectors against dense references."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph._errors import FishergraphWarning
from fishergraph.graph import as_graph
from fishergraph.structural import structural_features
from fishergraph.structural.both_ways import Edges
from fishergraph.structural.factors import OPERATORS, _orthonormalise, learn_factors, product
from fishergraph.structural.rows import Held


def netmf_matrix(graph) -> np.ndarray:
    """NetMF's matrix for a window of twenty, from its equation."""
    A = graph.adjacency.toarray().astype(float)
    A = A + A.T
    d = A.sum(1)
    P = A / d[:, None]
    powers = sum(np.linalg.matrix_power(P, r) for r in range(1, 21))
    return np.log(np.maximum(1, d.sum() / 20 * powers / d))


@pytest.mark.parametrize("weighted", [False, True])
def test_factors_against_dense_netmf(weighted):
    plain = nx.connected_watts_strogatz_graph(120, 6, 0.1, seed=0)
    for k, (_, _, record) in enumerate(plain.edges(data=True)):
        record["weight"] = 1.0 + (k % 3) * weighted
    graph = as_graph(plain)
    M = netmf_matrix(graph)
    U, S, _ = np.linalg.svd(M)
    F = structural_features(graph, "factors", 16).astype(float)
    expected = (U[:, :16] * S[:16]) @ U[:, :16].T
    assert np.linalg.norm(F @ F.T - expected) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize("kind", OPERATORS)
def test_the_same_bits_at_any_number_of_threads(kind):
    graph = as_graph(nx.gnm_random_graph(1500, 4000, seed=2))
    edges = (Edges(graph, n_jobs=n_jobs) for n_jobs in (1, 2))
    (one, first), (two, second) = (learn_factors(OPERATORS[kind], each, 16, 0, kind) for each in edges)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(one.basis, two.basis)


@pytest.mark.parametrize("kind", OPERATORS)
@pytest.mark.parametrize("n", [2, 30, 700])
def test_the_basis_gives_the_columns_again_and_its_values_make_it_the_columns(kind, n):
    edges = Edges(as_graph(nx.gnm_random_graph(n, 3 * n, seed=4)))
    factors, columns = learn_factors(OPERATORS[kind], edges, 8, 0, kind)
    assert factors.basis.shape == columns.shape == (n, 8)
    again = product(OPERATORS[kind].matrix(edges, 8), factors.basis, None)
    np.testing.assert_array_equal(again.astype(np.float32), columns)
    again = factors.basis * factors.values
    assert np.linalg.norm(again - columns) < 0.25 * np.linalg.norm(columns)  # two power iterations, a flat spectrum


def orthonormal(Y: np.ndarray, n_jobs: int | None) -> np.ndarray:
    held = Held(Y.copy())
    _orthonormalise(held, n_jobs)
    return held.values


@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_an_orthonormal_basis_of_columns(spread):
    """Columns that are nearly the same, one of zeros and one that is the sum of two."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    Y = (rng.standard_normal((5000, 8)) * np.geomspace(1, 1 / spread, 8) @ turn).astype(np.float32)
    Y = np.hstack([Y, np.zeros((5000, 1), np.float32), Y[:, :1] + Y[:, 1:2]])
    Q = orthonormal(Y, None)
    lengths = np.sort(np.linalg.norm(Q, axis=0))
    np.testing.assert_allclose(lengths[-8:], 1, atol=1e-5)
    kept = Q[:, np.linalg.norm(Q, axis=0) > 0.5].astype(float)
    np.testing.assert_allclose(kept.T @ kept, np.eye(kept.shape[1]), atol=1e-5)
    rest = Y - kept @ (kept.T @ Y)
    assert np.linalg.norm(rest, axis=0).max() < 1e-5 * np.linalg.norm(Y)
    np.testing.assert_array_equal(orthonormal(Y, 1), Q)


def test_large_graphs_get_fewer_columns_and_entries(monkeypatch):
    from fishergraph.structural import factors as module

    edges = Edges(as_graph(nx.gnm_random_graph(1000, 8000, seed=5)))
    full = len(module.log_walks(edges).indices)
    monkeypatch.setattr(module, "_MOST_NUMBERS", 20 * 1000)
    monkeypatch.setattr(module, "_MOST_ENTRIES", 20 * 1000)
    assert learn_factors(OPERATORS["factors"], edges, 64, 0, "factors")[1].shape == (1000, 20)
    assert len(module.log_walks(edges).indices) < 2 * 20 * 1000 < full


@pytest.mark.parametrize("kind", ["factors", "spectral", "local"])
def test_a_graph_without_edges_gives_zeros(kind):
    with pytest.warns(FishergraphWarning, match="no edges"):
        assert not structural_features(sp.csr_array((4, 4)), kind, 5).any()


def test_local_columns_against_networkx():
    plain = nx.gnm_random_graph(80, 300, seed=3)
    X = structural_features(as_graph(plain), "local")
    nodes = sorted(plain)
    triangles, clustering, cores = nx.triangles(plain), nx.clustering(plain), nx.core_number(plain)
    ranks = nx.pagerank(plain, alpha=0.85, tol=1e-12)
    degrees = np.array([plain.degree[v] for v in nodes])
    np.testing.assert_allclose(X[:, 0], np.log1p(degrees) / np.log(11), rtol=1e-5)
    np.testing.assert_allclose(X[:, 3], np.log1p([triangles[v] for v in nodes]) / np.log(11), rtol=1e-5)
    np.testing.assert_allclose(X[:, 4], [clustering[v] for v in nodes], rtol=1e-5)
    np.testing.assert_allclose(X[:, 5], np.log1p([80 * ranks[v] for v in nodes]), rtol=1e-3)
    np.testing.assert_allclose(X[:, 6], np.log1p([cores[v] for v in nodes]) / np.log(11), rtol=1e-5)
    P = nx.to_numpy_array(plain, nodelist=nodes) / np.maximum(degrees, 1)[:, None]
    np.testing.assert_allclose(X[:, 7:14], P @ X[:, :7], atol=1e-6)
    np.testing.assert_allclose(X[:, 14:21], P @ P @ X[:, :7], atol=1e-6)
    assert (X[:, 21] == 1).all()
