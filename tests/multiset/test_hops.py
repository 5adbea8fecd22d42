"""The nodes within k hops."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference_multisets as slow
from contracts import members_of
from fishergraph import FisherEmbedding, Hops
from fishergraph.graph import as_graph
from fishergraph.multiset import neighbourhoods


def random_neighbours(n, density, seed):
    return (np.random.default_rng(seed).random((n, n)) < density).astype(float)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 4), st.floats(0, 0.5), st.sampled_from([1.0, 0.5]), st.integers(0, 2**32 - 1))
def test_members_are_those_the_steps_reach_nearest_first(n, k, density, decay, seed):
    matrix = random_neighbours(n, density, seed)
    sets = Hops(k, decay, members=None)(as_graph(sp.csr_array(matrix)))
    neighbours = [list(np.flatnonzero(row)) for row in matrix]
    for v, members in enumerate(members_of(sets)):
        distance = slow.hop_distances(neighbours, v, k)
        assert dict(members) == {u: decay**steps for u, steps in distance.items()}
        assert len(members) == len(distance)
        assert [distance[u] for u, _ in members] == sorted(distance.values())
    assert decay < 1 or sets.weights is None


def test_one_hop_is_the_closed_neighbourhood():
    graph = as_graph(sp.csr_array(random_neighbours(20, 0.2, 0)))
    expected = [sorted(members) for members in members_of(neighbourhoods(graph))]
    assert [sorted(members) for members in members_of(Hops(1)(graph))] == expected


def test_the_ring_that_does_not_fit_is_drawn_from_and_keeps_its_weight():
    graph = as_graph(nx.balanced_tree(5, 3))  # 5 children, 25, 125
    members = members_of(Hops(3, decay=0.5, members=16)(graph))[0]
    assert len(members) == 16
    assert [u for u, _ in members[:6]] == [0, 1, 2, 3, 4, 5]
    assert [a for _, a in members] == [1.0] + [0.5] * 5 + [0.25 * 25 / 10] * 10
    assert {u for u, _ in members[6:]} <= set(range(6, 31))
    assert len({u for u, _ in members}) == 16


def test_every_node_of_the_ring_is_drawn_alike():
    graph = as_graph(nx.star_graph(10))
    seen = np.zeros(11)
    for seed in range(2000):
        seen[[u for u, _ in members_of(Hops(1, members=5, seed=seed)(graph))[0]]] += 1
    assert seen[0] == 2000
    assert_allclose(seen[1:], 800, atol=4 * np.sqrt(2000 * 0.4 * 0.6))


def test_threads_change_nothing_and_the_seed_does():
    graph = as_graph(nx.barabasi_albert_graph(1500, 4, seed=0))
    one, two = Hops(2, members=30)(graph, n_jobs=1), Hops(2, members=30)(graph, n_jobs=3)
    assert_array_equal(one.indices, two.indices)
    assert_array_equal(one.weights, two.weights)
    assert not np.array_equal(one.indices, Hops(2, members=30, seed=1)(graph).indices)


def test_weights_are_applied_to_the_sets():
    graph = as_graph(nx.path_graph(5))
    assert Hops(2, decay=0.5, weights="uniform")(graph).weights is None
    sets = Hops(1, weights="symmetric")(graph)
    expected = [dict(members) for members in members_of(neighbourhoods(graph, weights="symmetric"))]
    for members, wanted in zip(members_of(sets), expected, strict=True):
        assert dict(members) == pytest.approx(wanted)


@pytest.mark.parametrize("wrong", [{"k": -1}, {"decay": 0.0}, {"decay": 1.5}, {"members": 0}, {"seed": -1}])
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}.* must be"):
        FisherEmbedding(multiset=Hops(**wrong)).fit(np.eye(3), graph=sp.csr_array(np.ones((3, 3))))


def test_more_hops_and_members_than_nodes_are_all_that_there_are():
    graph = as_graph(nx.path_graph(9))
    sets, every = Hops(2**70, members=10**30)(graph), Hops(9, members=None)(graph)
    assert_array_equal(sets.indices, every.indices)
    assert_array_equal(np.diff(sets.indptr), np.full(9, 9))
