"""The features of baselines against loops from their papers' formulas and against PyTorch Geometric's layers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import reference_baselines as reference
from fishergraph.lab.baselines import baseline
from fishergraph.lab.baselines.base import Task
from fishergraph.lab.baselines.netmf import NetMF, netmf_matrix
from fishergraph.lab.baselines.node2vec import _Walks
from fishergraph.lab.baselines.smoothing import S2GC, SGC, SIGN, WWL, scaled_rows, smoother


def weighted_graph(n_nodes=12, seed=0):
    """A weighted, undirected graph with an isolated node and one self-loop."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n_nodes, n_nodes)) < 0.3, 1) * rng.uniform(0.5, 2, (n_nodes, n_nodes))
    A[:, -1] = 0
    A = A + A.T
    A[0, 0] = 1.5
    return sp.csr_array(A)


A = weighted_graph()
X = np.random.default_rng(1).normal(size=(12, 5))


def features(model, X=X, A=A):
    none = np.zeros(0, dtype=np.intp)
    return model._features(Task(X, A, none, none, none, none), 0, False)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_wwl(steps):
    expected = reference.wwl(A.toarray(), X, steps)
    np.testing.assert_allclose(features(WWL(steps, rows=False)), expected, atol=1e-12)


def test_wwl_with_scaled_columns():
    counts = np.abs(X) * [1.0, 5.0, 0.0, 100.0, 0.01]  # one column is constant, and stays 0
    scaled = np.where(counts.std(axis=0) > 0, (counts - counts.mean(axis=0)) / np.maximum(counts.std(axis=0), 1e-12), 0)
    expected = reference.wwl(A.toarray(), scaled, 2)
    np.testing.assert_allclose(features(WWL(2, rows=False, columns=True), counts), expected, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 3])
def test_smoothings(steps):
    S = reference.symmetric_smoother(A.toarray())
    powers = [np.linalg.matrix_power(S, k) @ X for k in range(steps + 1)]
    np.testing.assert_allclose(features(SGC(steps, rows=False)), powers[-1], atol=1e-12)
    np.testing.assert_allclose(features(SIGN(steps, rows=False)), np.hstack(powers), atol=1e-12)
    mean = sum(0.9 * power + 0.1 * X for power in powers[1:]) / steps
    np.testing.assert_allclose(features(S2GC(steps, 0.1, rows=False)), mean, atol=1e-12)


def test_smoothings_agree_with_pytorch_geometric():
    torch = pytest.importorskip("torch")
    layers = pytest.importorskip("torch_geometric.nn")
    edges = torch.from_numpy(np.stack([A.tocoo().col, A.tocoo().row]).astype(np.int64))
    weights, x = torch.from_numpy(A.tocoo().data), torch.from_numpy(X)
    for ours, theirs in (
        (SGC(3, rows=False), layers.SGConv(5, 5, K=3, bias=False)),
        (S2GC(4, 0.1, rows=False), layers.SSGConv(5, 5, alpha=0.1, K=4, bias=False)),
    ):
        with torch.no_grad():
            theirs.double().lin.weight.copy_(torch.eye(5))
            expected = theirs(x, edges, weights).numpy()
        np.testing.assert_allclose(features(ours), expected, atol=1e-12)


def test_bags_of_words_sum_to_one_and_other_rows_stay():
    bags = sp.csr_array(np.array([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]]))
    np.testing.assert_array_equal(scaled_rows(bags, None), [[0.25, 0.75], [0, 0], [1, 0]])
    np.testing.assert_array_equal(scaled_rows(bags, False), bags.toarray())
    np.testing.assert_array_equal(scaled_rows(X, None), X)


def test_a_node_alone_is_smoothed_by_itself():
    S = smoother(A).toarray()
    np.testing.assert_array_equal(S[-1], np.eye(12)[-1])


def test_label_propagation_ends_at_the_harmonic_function():
    y, train, val = np.arange(12) % 2, np.array([0, 1, 2]), np.array([3])
    model = baseline("label-propagation", tol=0.0, max_iter=5000).fit(None, y, graph=A, train=train, val=val)
    np.testing.assert_allclose(model.predict_proba(), reference.harmonic(A.toarray(), y, train), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba([11])[0], [2 / 3, 1 / 3])  # nothing reaches the node alone


# --- NetMF ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "negative"), [(1, 1.0), (4, 2.0)])
def test_netmf(window, negative):
    dense = A.toarray()
    degrees = dense.sum(axis=1)
    P = np.divide(dense, degrees[:, None], out=np.zeros_like(dense), where=degrees[:, None] > 0)
    walks = sum(np.linalg.matrix_power(P, r) for r in range(1, window + 1))
    inverse = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    expected = np.log(np.maximum(1, degrees.sum() / (negative * window) * walks * inverse))
    M = netmf_matrix(A, window, negative)
    np.testing.assert_allclose(M, expected, atol=1e-5)
    Z = features(NetMF(3, window=window, n_negative=negative))
    U, S, _ = np.linalg.svd(expected)
    np.testing.assert_allclose(np.abs(Z), np.abs(U[:, :3] * np.sqrt(S[:3])), atol=1e-3)
    assert not M[-1].any()  # a node without edges


# --- node2vec ---------------------------------------------------------------------------------------------


class _Counter:
    count = 0

    def update(self, n):
        self.count += n


def walks(A, n_walks, length, p, q, seed=0):
    result = _Walks(A, n_walks, length, p, q, seed)
    result.bar = _Counter()
    sentences = [[int(name) for name in walk] for walk in result]
    assert result.bar.count == len(sentences) == result.count
    return sentences


def test_walks_follow_edges_from_every_node():
    result = walks(A, 5, 8, 0.5, 2.0)
    assert sorted(walk[0] for walk in result) == sorted(list(range(12)) * 5)
    for walk in result:
        assert len(walk) == (1 if walk[0] == 11 else 8)
        assert all(A[u, x] > 0 for u, x in pairwise(walk))
    assert result == walks(A, 5, 8, 0.5, 2.0)
    assert result != walks(A, 5, 8, 0.5, 2.0, seed=1)


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (4.0, 0.5)])
def test_third_nodes_have_the_chances_of_the_paper(p, q):
    seen: dict[tuple[int, int], np.ndarray] = {}
    for t, u, x in (walk for walk in walks(A, 20_000, 3, p, q) if len(walk) == 3):
        seen.setdefault((t, u), np.zeros(12))[x] += 1
    assert len(seen) == A.nnz
    for (t, u), counts in seen.items():
        chances = reference.node2vec_chances(A.toarray(), t, u, p, q)
        deviation = np.sqrt(counts.sum() * chances * (1 - chances))
        assert np.all(np.abs(counts - counts.sum() * chances) <= 5 * deviation)
