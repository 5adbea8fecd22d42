"""Factors, local columns and eigenvectors against dense references."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph.graph import as_graph
from fishergraph.structural import structural_features
from fishergraph.structural_factors import factor_columns


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


def test_factors_have_the_same_bits_at_any_number_of_threads():
    A = as_graph(nx.gnm_random_graph(1500, 4000, seed=2)).adjacency
    np.testing.assert_array_equal(factor_columns(A, 16, 0, n_jobs=1), factor_columns(A, 16, 0, n_jobs=2))


@pytest.mark.parametrize("kind", ["factors", "local"])
def test_a_graph_without_edges_gives_zeros(kind):
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
