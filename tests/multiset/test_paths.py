"""Paths: all of them where they are few, an honest sample where they are many, an error before memory is gone."""

import logging

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference_multisets as slow
from fishergraph import FisherEmbedding, Paths
from fishergraph.graph import as_graph


def adjacency(n, *, density=0.3, weighted=False, symmetric=False, seed=0):
    rng = np.random.default_rng(seed)
    matrix = (rng.random((n, n)) < density) * (rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0)
    return np.triu(matrix, 1) + np.triu(matrix, 1).T if symmetric else matrix  # loops where it is not symmetric


def paths_of(sets):
    """For every node {path: weight}."""
    plain = sets.sets
    weights = np.ones(plain.n_entries) if plain.weights is None else plain.weights
    rows = zip(plain.indptr[:-1], plain.indptr[1:], strict=True)
    return [{tuple(map(int, sets.subgraphs[e])): float(weights[e]) for e in range(*row)} for row in rows]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 4), st.floats(0, 1), st.booleans(), st.integers(0, 2**32 - 1))
def test_paths_are_those_of_the_definition_and_weigh_their_edges(n, length, density, weighted, seed):
    matrix = adjacency(n, density=density, weighted=weighted, seed=seed)
    sets = Paths(length, max_paths=None)(as_graph(sp.csr_array(matrix)))
    neighbours = [list(np.flatnonzero(row)) for row in matrix]
    for v, found in enumerate(paths_of(sets)):
        expected = slow.simple_paths(neighbours, v, length)
        assert sorted(found) == sorted(expected)
        for path, weight in found.items():
            product = np.prod([matrix[path[i], path[i + 1]] for i in range(length)])
            assert weight == pytest.approx(product, rel=1e-6)
        assert sets.totals[v] == len(expected)
    assert sets.slots == length + 1
    assert weighted or sets.weights is None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_counts_are_those_of_networkx(length):
    graph = nx.gnp_random_graph(20, 0.2, seed=3)
    sets = Paths(length)(as_graph(graph))
    for v in graph:
        ends = (u for u in graph if u != v)
        paths = [p for u in ends for p in nx.all_simple_paths(graph, v, u, cutoff=length) if len(p) == length + 1]
        assert sorted(paths_of(sets)[v]) == sorted(map(tuple, paths))


def test_a_node_without_a_path_of_this_length_has_an_empty_set():
    chain = as_graph(nx.path_graph(4))
    assert [len(paths) for paths in paths_of(Paths(3)(chain))] == [1, 0, 0, 1]
    assert [len(paths) for paths in paths_of(Paths(4)(chain))] == [0] * 4
    X = np.eye(4, 3) + 0.1
    options = {"multiset": Paths(3), "structure": None, "kernel": "identity", "block_weights": [0, 1]}
    phi = FisherEmbedding(1, n_anchors=2, **options, random_state=0).fit_transform(X, graph=chain)
    assert_array_equal(phi[[1, 2]], 0)
    assert phi.shape == (4, 2 * 4 * 3)


# --- drawn ----------------------------------------------------------------------------------------------


def test_only_nodes_with_more_paths_than_the_bound_are_drawn():
    graph = as_graph(nx.star_graph(30))
    sets = Paths(2, max_paths=29)(graph)
    assert sets.weights is None  # a leaf has 29 paths, the centre none
    sets = Paths(2, max_paths=28)(graph)
    sizes = np.diff(sets.sets.indptr)
    assert_array_equal(sizes, [0] + [28] * 30)
    assert_allclose(sets.totals, [0] + [29] * 30)  # all walks on from here are paths, but for the way back: exact
    assert_allclose(sets.weights, 29 / 28)
    assert all(len(set(path)) == 3 for path in sets.subgraphs.tolist())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("length", [2, 3])
def test_sums_over_draws_have_the_sums_over_all_paths_as_their_mean(length, weighted):
    matrix = adjacency(14, density=0.4, weighted=weighted, symmetric=True, seed=1)
    graph = as_graph(sp.csr_array(matrix))
    exact = Paths(length, max_paths=None)(graph)
    value = np.random.default_rng(0).normal(size=(length + 1, 14))  # f(p) = Σ_i value_i(u_i) and its count

    def sums(sets):
        weights = np.ones(sets.n_entries) if sets.weights is None else sets.weights
        f = np.stack([np.ones(sets.n_entries), sum(value[i][sets.subgraphs[:, i]] for i in range(length + 1))])
        owner = np.repeat(np.arange(14), np.diff(sets.sets.indptr))
        return np.stack([np.bincount(owner, weights * row, 14) for row in f])

    runs = [Paths(length, max_paths=20, seed=seed)(graph) for seed in range(300)]
    drawn = np.stack([sums(sets) for sets in runs])
    error = drawn.std(axis=0) / np.sqrt(len(runs))
    assert (np.abs(drawn.mean(axis=0) - sums(exact)) <= 4.5 * error + 1e-5).all()
    totals = np.stack([sets.totals for sets in runs])
    assert (np.abs(totals.mean(axis=0) - exact.totals) <= 4.5 * totals.std(axis=0) / np.sqrt(len(runs)) + 1e-9).all()
    assert totals.std(axis=0).max() < 0.35 * exact.totals.max()  # one run already says how many there are


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(1, 4), st.integers(1, 5), st.floats(0.2, 1), st.integers(0, 2**32 - 1))
def test_draws_are_paths_whatever_the_graph(n, length, most, density, seed):
    matrix = adjacency(n, density=density, seed=seed)
    sets = Paths(length, max_paths=most)(as_graph(sp.csr_array(matrix)))
    sizes = np.diff(sets.sets.indptr)
    assert sizes.max() <= most
    assert sets.weights is None or (np.isfinite(sets.weights).all() and (sets.weights > 0).all())
    for v, row in enumerate(zip(sets.sets.indptr[:-1], sets.sets.indptr[1:], strict=True)):
        for path in sets.subgraphs[slice(*row)]:
            assert path[0] == v
            assert len(set(path)) == length + 1
            assert all(matrix[path[i], path[i + 1]] > 0 for i in range(length))


def test_draws_depend_on_the_seed_alone():
    graph = as_graph(sp.csr_array(adjacency(1500, density=0.02, symmetric=True)))
    one, two = Paths(3, max_paths=40)(graph, n_jobs=1), Paths(3, max_paths=40)(graph, n_jobs=3)
    assert_array_equal(one.subgraphs, two.subgraphs)
    assert_array_equal(one.weights, two.weights)
    assert_array_equal(one.totals, two.totals)
    assert not np.array_equal(Paths(3, max_paths=40, seed=1)(graph).subgraphs, one.subgraphs)


def test_dead_ends_do_not_take_for_ever():
    """Leaf, centre, another leaf, and no further: a million steps per leaf find nothing."""
    sets = Paths(3, max_paths=1)(as_graph(nx.star_graph(3000)))
    assert sets.n_entries == 0


def test_the_count_is_told(caplog):
    with caplog.at_level(logging.INFO, "fishergraph"):
        Paths(2)(as_graph(nx.complete_graph(4)))
        Paths(2, max_paths=5)(as_graph(nx.complete_graph(4)))
    assert "paths of length 2: 24, of which 24 are listed; those of 0 of 4 nodes are a sample" in caplog.text
    assert "paths of length 2: about 24, of which 20 are listed; those of 4 of 4 nodes are a sample" in caplog.text


# --- bad input ------------------------------------------------------------------------------------------


def test_paths_that_explode_are_an_error_before_they_fill_the_memory():
    graph = as_graph(nx.complete_graph(120))  # 3 · 10^12 paths
    with pytest.raises(
        ValueError,
        match="max_total=100000",
    ):
        Paths(6, max_paths=None, max_total=100_000)(graph)
    with pytest.raises(ValueError, match="max_total=1000"):
        FisherEmbedding(multiset=Paths(6, max_paths=10, max_total=1000)).fit(np.eye(120), graph=graph)
    assert Paths(6, max_paths=10, max_total=1200)(graph).n_entries == 1200


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"length": 0}, "length"),
        ({"length": 2.0}, "length"),
        ({"length": 10**9}, "at most 64"),
        ({"max_paths": 10**30}, "max_paths"),
        ({"max_total": 2**70}, "max_total"),
        ({"max_paths": 0}, "max_paths"),
        ({"max_total": 0}, "max_total"),
        ({"seed": -1}, "seed"),
    ],
)
def test_parameters_are_checked_before_the_work(wrong, message):
    with pytest.raises(ValueError, match=message):
        FisherEmbedding(multiset=Paths(**wrong)).fit(np.eye(3), graph=sp.csr_array(np.ones((3, 3))))


def test_paths_that_end_early_are_not_searched_for_ever(monkeypatch):
    """No path has 40 edges among 30 nodes, and looking for one in a complete graph would take 30! steps."""
    monkeypatch.setattr("fishergraph.multiset.path_search._MOST_WORK", 2**16)
    with pytest.raises(ValueError, match="max_total=100000000"):
        Paths(40, max_paths=None)(as_graph(nx.complete_graph(30)))


def test_what_does_not_fit_into_memory_is_refused(monkeypatch):
    monkeypatch.setattr("fishergraph.multiset.path_search._MOST_WORK", 2**16)
    with pytest.raises(MemoryError, match="memory"):
        Paths(12, max_paths=25 * 10**9, max_total=10**12)(as_graph(nx.complete_graph(40)))


def test_weights_of_paths_are_finite():
    graph = as_graph((np.array([[0, 1, 2], [1, 2, 3]]), np.full(3, 1e200)), undirected=True)
    with pytest.raises(ValueError, match="finite product"):
        Paths(3)(graph)
