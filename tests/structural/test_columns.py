"""Features from edges alone: finite, deterministic, and about the graph."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fishergraph.graph import as_graph
from fishergraph.structural import structural_features
from fishergraph.structural.columns import random_rows

KINDS = ["projection", "degree", "spectral", "factors", "local"]


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=25))
    weights = draw(st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=len(edges), max_size=len(edges)))
    return as_graph((np.array(edges, dtype=np.int64).reshape(-1, 2).T, weights), n_nodes=n)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(graph=graphs(), dim=st.integers(4, 20), seed=st.integers(0, 2**63))
def test_finite_deterministic_and_of_the_stated_width(kind, graph, dim, seed):
    X = structural_features(graph, kind, dim, seed)
    assert X.shape == (graph.n_nodes, dim)
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, structural_features(graph, kind, dim, seed))


@pytest.mark.parametrize("kind", KINDS)
def test_no_global_state(kind):
    graph = as_graph(nx.karate_club_graph())
    before: Any = np.random.get_state()  # noqa: NPY002
    first = structural_features(graph, kind, seed=3)
    after: Any = np.random.get_state()  # noqa: NPY002
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]
    np.random.seed(0)  # noqa: NPY002
    np.testing.assert_array_equal(first, structural_features(graph, kind, seed=3))
    np.random.set_state(before)  # noqa: NPY002


def test_the_seed_matters_for_the_projection():
    graph = as_graph(nx.path_graph(30))
    assert not np.array_equal(*(structural_features(graph, "projection", seed=seed) for seed in (0, 1)))


def test_nodes_without_edges_are_zero():
    graph = as_graph(np.array([[0], [1]]), n_nodes=3)
    for kind in ("projection", "spectral", "factors", "local"):
        features = structural_features(graph, kind, 16)  # without the ones of "local"
        assert not features[2].any()
        assert features[:2].any(axis=1).all()
    assert structural_features(graph, "degree", 8)[2].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_weights_and_seeds_beyond_the_numbers_inside():
    heavy = sp.csr_array(np.array([[0, 1e100], [1e100, 0]]))
    with pytest.raises(ValueError, match="1e-30"):
        structural_features(heavy)
    with pytest.raises(ValueError, match="seed"):
        structural_features(as_graph(np.eye(2, dtype=int)), seed=2**64)


# --- projection -----------------------------------------------------------------------------------------


def test_random_rows_do_not_depend_on_the_size():
    keys = np.arange(20_000, dtype=np.uint64)
    small, large = random_rows(keys[:100], 20, seed=5), random_rows(keys, 31, seed=5)
    np.testing.assert_array_equal(small, large[:100, :20])
    assert not np.array_equal(small, random_rows(keys[:100], 20, seed=6))
    np.testing.assert_array_equal(random_rows(keys[:100][::-1], 20, seed=5), small[::-1])


def test_random_rows_are_very_sparse_and_centred():
    R = random_rows(np.arange(20_000, dtype=np.uint64), 50, seed=0).astype(np.float64)
    assert set(np.unique(R)) == {-np.float32(3**0.5), 0.0, np.float32(3**0.5)}
    assert abs((R > 0).mean() - 1 / 6) < 2e-3
    assert abs((R < 0).mean() - 1 / 6) < 2e-3
    assert np.abs(R.T @ R / len(R) - np.eye(50)).max() < 0.05  # columns are uncorrelated
    assert np.abs(R[:200] @ R[200:400].T / 50).mean() < 0.2  # and so are rows


def test_the_projection_against_its_formula():
    A = sp.random_array((40, 40), density=0.1, format="csr", rng=1)
    X = structural_features(A, "projection", 19, seed=4)
    A = A.toarray()
    rows, columns = A.sum(1), A.sum(0)
    P = np.divide(A, rows[:, None], out=np.zeros_like(A), where=rows[:, None] > 0)
    np.testing.assert_allclose(X[:, 0], 0.1 * np.log1p(rows), atol=1e-6)
    np.testing.assert_allclose(X[:, 1], 0.1 * np.log1p(columns), atol=1e-6)
    np.testing.assert_allclose(X[:, 2], 0.1 * (P @ np.log1p(rows)), atol=1e-6)
    reach = (
        random_rows(np.arange(40, dtype=np.uint64), 16, 4)
        * np.where(columns > 0, np.maximum(columns, 1e-30) ** -0.5, 0)[:, None]
    )
    total = np.zeros((40, 16))
    for _ in range(3):
        reach = P @ reach
        norms = np.linalg.norm(reach, axis=1, keepdims=True)
        total += np.divide(reach, norms, out=np.zeros_like(reach), where=norms > 0) / 3
    np.testing.assert_allclose(X[:, 3:], total, atol=1e-5)


def two_blocks(n: int = 300) -> tuple:
    rng = np.random.default_rng(0)
    block = np.arange(n) >= n // 2
    chance = np.where(block[:, None] == block[None], 0.1, 0.005)
    A = np.triu(rng.random((n, n)) < chance, 1)
    return as_graph(sp.csr_array((A | A.T).astype(float))), block


@pytest.mark.parametrize("kind", ["projection", "spectral"])
def test_communities_come_apart(kind):
    graph, block = two_blocks()
    X = structural_features(graph, kind, 64)[:, 3 if kind == "projection" else 1 :]
    if kind == "spectral":
        assert ((X[:, 0] > 0) == block).mean() > 0.95 or ((X[:, 0] > 0) == ~block).mean() > 0.95
    inside = (X[block].mean(0) @ X[block].T).mean()
    across = (X[block].mean(0) @ X[~block].T).mean()
    assert inside > across


# --- degree ---------------------------------------------------------------------------------------------


def test_degree_bins_and_their_cap():
    star = as_graph(nx.star_graph(9))  # degree 9 at the centre
    X = structural_features(star, "degree", 16)
    assert X[0].argmax() == 4  # 8–15
    assert X[1].argmax() == 1
    assert structural_features(star, "degree", 3)[0].tolist() == [0, 0, 1]
    assert structural_features(star, "degree", 128).shape[1] == 32


# --- spectral -------------------------------------------------------------------------------------------


def normalised(graph) -> np.ndarray:
    A = graph.adjacency.toarray().astype(float)
    S = A + A.T
    d = S.sum(0)
    r = np.where(d > 0, np.maximum(d, 1e-300) ** -0.5, 0)
    return r[:, None] * S * r


@pytest.mark.parametrize("n", [3, 40, 700])
def test_spectral_vectors_are_leading_eigenvectors(n):
    graph = as_graph(nx.gnp_random_graph(n, min(0.9, 8 / n), seed=1, directed=True))
    k = min(6, n)
    X = structural_features(graph, "spectral", 6).astype(float)[:, :k] / np.sqrt(n / k)
    S = normalised(graph)
    np.testing.assert_allclose(X.T @ X, np.eye(k), atol=1e-4)
    top = np.sort(np.linalg.eigvalsh(S))[::-1][:k]
    np.testing.assert_allclose(np.diag(X.T @ S @ X), top, atol=1e-4)
    assert not structural_features(graph, "spectral", 6)[:, k:].any()


def test_spectral_on_many_components():
    graph = as_graph(nx.disjoint_union_all([nx.cycle_graph(5)] * 200 + [nx.empty_graph(7)]))
    X = structural_features(graph, "spectral", 12)
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, structural_features(graph, "spectral", 12))
    empty = structural_features(as_graph(np.zeros((2, 0), int), n_nodes=600), "spectral", 5)
    assert np.isfinite(empty).all()


def test_spectral_signs_are_fixed():
    graph, _ = two_blocks(200)
    X = structural_features(graph, "spectral", 10)
    size = np.abs(X)
    first = (size >= size.max(0) / 2).argmax(0)
    assert (X[first, np.arange(10)] > 0).all()


# --- records and errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"kind": "spectrum"}, "'spectral'"),
        ({"kind": None}, "got None"),
        ({"dim": 0}, "dim"),
        ({"kind": "degree", "dim": 0}, "dim"),
        ({"seed": -1}, "seed.*got -1"),
        ({"seed": 0.5}, "seed.*got 0.5"),
    ],
)
def test_errors(options, pattern):
    with pytest.raises(ValueError, match=pattern):
        structural_features(nx.path_graph(3), **options)
