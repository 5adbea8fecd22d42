"""Means over the whole graph, by iteration, against walks that are followed one step after the other."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from contracts import members_of
from directed_graph import directed_graph
from fishergraph import as_graph
from fishergraph import walk as walk_module
from fishergraph.multiset import Multisets, neighbourhoods, singletons
from fishergraph.ops import choose_engine
from fishergraph.walk import TILE, Walk, walk_averages

N = 40


def means(points, sets, teleport=0.2, *, engine="numba", n_jobs=1) -> np.ndarray:
    sums, ratio = walk_averages(points.copy(), sets, Walk(teleport), engine=choose_engine(engine), n_jobs=n_jobs)
    return sums * ratio


def directed(seed: int = 0, n: int = N, density: float = 0.06) -> Multisets:
    """Closed neighbourhoods of a directed graph with weights."""
    return neighbourhoods(as_graph(directed_graph(n, density, seed)))


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, 7))


@pytest.mark.parametrize("engine", ["numba", "scipy"])
@pytest.mark.parametrize("teleport", [0.05, 0.2, 0.9, 1.0])
def test_agrees_with_the_reference(points, teleport, engine):
    sets = directed()
    known = ref.walk_means(points, members_of(sets), teleport, Walk(teleport).n_steps)
    assert_allclose(means(points, sets, teleport, engine=engine), known, rtol=0, atol=1e-13)
    single = means(points.astype(np.float32), sets, teleport, engine=engine)
    assert single.dtype == np.float32
    assert_allclose(single, known, rtol=0, atol=2e-6)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_tensors_agree_with_arrays(points, device):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    from fishergraph.ops.tensor_edges import tensor_sets

    sets = directed()
    engine = choose_engine(None, device=device, tensors=True)
    x = torch.tensor(points, device=device)
    sums, ratio = walk_averages(x, tensor_sets(sets).to(device), Walk(0.2), engine=engine)
    assert_allclose((sums * ratio).cpu().numpy(), means(points, sets), rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.floats(0, 0.6), st.sampled_from([0.1, 0.5, 1.0]), st.booleans(), st.integers(0, 10**6))
def test_agrees_with_the_reference_on_any_graph(n, density, teleport, closed, seed):
    rng = np.random.default_rng(seed)
    A = sp.csr_array((rng.random((n, n)) < density) * rng.random((n, n)))
    sets, points = neighbourhoods(as_graph(A), closed=closed), rng.normal(size=(n, 3))
    known = ref.walk_means(points, members_of(sets), teleport, Walk(teleport).n_steps)
    assert_allclose(means(points, sets, teleport), known, rtol=0, atol=1e-11)


def test_many_steps_are_personalised_pagerank(points, monkeypatch):
    monkeypatch.setattr(walk_module, "_UNDER_WAY", 1e-13)
    graph = nx.gnp_random_graph(N, 0.1, seed=3)
    graph.add_edges_from((v, v) for v in range(N))
    ranks = [nx.pagerank(graph, alpha=0.8, personalization={v: 1}, tol=1e-13, max_iter=1000) for v in range(N)]
    sets = neighbourhoods(as_graph(nx.to_scipy_sparse_array(graph, format="csr")))
    shares = np.array([[rank[u] for u in range(N)] for rank in ranks]) / np.sqrt(np.diff(sets.indptr))
    assert_allclose(means(points, sets), shares @ points / shares.sum(axis=1, keepdims=True), rtol=0, atol=1e-10)


def test_on_an_undirected_graph_they_are_means_of_the_symmetric_operator(points):
    """Σ_k θ_k S^k X over Σ_k θ_k S^k 1 with S = D^-½ A D^-½: what the sums of both sides leave of the left root."""
    A = sp.random_array((N, N), density=0.06, rng=np.random.default_rng(4), format="csr")
    sets = neighbourhoods(as_graph(A, undirected=True))
    closed = sp.csr_array(
        (np.ones(sets.n_entries) if sets.weights is None else sets.weights, sets.indices, sets.indptr)
    )
    roots = sp.diags_array(closed.sum(axis=1) ** -0.5)
    both = start = np.hstack([points, np.ones((N, 1))])
    for _ in range(Walk(0.2).n_steps):
        both = 0.8 * (roots @ closed @ roots) @ both + 0.2 * start
    assert_allclose(means(points, sets), both[:, :-1] / both[:, -1:], rtol=0, atol=1e-12)
    sums, _ = walk_averages(points.copy(), sets, Walk(0.2), engine=choose_engine("numba"))
    assert_allclose(sums, both[:, :-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("closed", [False, True])
def test_the_unit_of_the_weights_does_not_matter(points, closed):
    """Some nodes are nobody's members in open neighbourhoods."""
    sets = neighbourhoods(as_graph(directed_graph(N, 0.03)), closed=closed)
    other = Multisets(sets.indptr, sets.indices, 1e4 * sets.weights, N)
    assert closed or len(np.unique(sets.indices)) < N
    assert_allclose(means(points, other), means(points, sets), rtol=0, atol=1e-12)


def test_a_node_alone_keeps_its_row(points):
    assert_allclose(means(points, singletons(N)), points, rtol=1e-14)
    empty = Multisets(np.zeros(N + 1, np.int64), np.zeros(0, np.int32), None, N)
    assert_allclose(means(points, empty), points, rtol=1e-14)


def test_means_stay_within_the_points():
    points = np.full((N, 3), 2.5, np.float32)
    assert_allclose(means(points, directed()), points, rtol=3e-7)


def test_tiles_are_the_columns_one_by_one():
    wide = np.random.default_rng(5).normal(size=(N, 2 * TILE + 3))
    alone = np.hstack([means(wide[:, [k]], directed()) for k in (0, TILE, 2 * TILE + 2)])
    assert_allclose(means(wide, directed())[:, [0, TILE, 2 * TILE + 2]], alone, rtol=0, atol=1e-13)
    told: list[int] = []
    walk_averages(wide.copy(), directed(), Walk(0.2), engine=choose_engine("numba"), advance=told.append)
    assert sum(told) == 5 * Walk(0.2).n_steps  # four tiles, and the masses


@pytest.mark.parametrize("width", [1, 7, 48])
def test_the_width_of_a_tile_does_not_change_bits(monkeypatch, width):
    points = np.random.default_rng(5).normal(size=(N, 100)).astype(np.float32)
    whole = means(points, directed())
    tiles = [slice(start, min(start + width, 100)) for start in range(0, 100, width)]
    monkeypatch.setattr(Walk, "tiles", lambda *_: tiles)
    assert_array_equal(means(points, directed()), whole)


def test_the_same_bits_at_any_number_of_threads():
    sets = directed(6, n=5000, density=0.001)
    points = np.random.default_rng(7).normal(size=(5000, 20)).astype(np.float32)
    assert_array_equal(means(points, sets, n_jobs=1), means(points, sets, n_jobs=3))


def test_steps():
    assert Walk(1.0).n_steps == 0
    for teleport in (0.01, 0.1, 0.5, 0.99):
        assert (1 - teleport) ** Walk(teleport).n_steps <= 0.3 < (1 - teleport) ** (Walk(teleport).n_steps - 1)
