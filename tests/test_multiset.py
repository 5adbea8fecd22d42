"""Room 1: the members of every multiset, and their weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from contracts import members_of
from fishergraph.graph import Graph, as_graph
from fishergraph.multiset import MULTISETS, Multisets, neighbourhoods, node_sets, singletons
from fishergraph.multiset.members import degrees


def dense(sets):
    """(set, point): the multisets as a matrix of weights."""
    out = np.zeros((sets.n_sets, sets.n_points))
    for v, members in enumerate(members_of(sets)):
        for u, a in members:
            out[v, u] += a
    return out


def random_adjacency(n, *, weighted, symmetric=False, seed=0, density=0.25):
    rng = np.random.default_rng(seed)
    matrix = (rng.random((n, n)) < density) * (rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0)
    return np.triu(matrix) + np.triu(matrix, 1).T if symmetric else matrix


def test_singletons_are_the_points():
    sets = singletons(4)
    assert members_of(sets) == [[(0, 1.0)], [(1, 1.0)], [(2, 1.0)], [(3, 1.0)]]
    assert sets.weights is None
    assert sets.indices.dtype == np.int32
    assert singletons(0).n_sets == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_open_neighbourhoods_are_the_rows_of_the_adjacency(weighted):
    adjacency = random_adjacency(12, weighted=weighted)
    sets = neighbourhoods(as_graph(sp.csr_array(adjacency)), closed=False)
    assert_allclose(dense(sets), adjacency, rtol=1e-6)
    assert (sets.n_sets, sets.n_points) == (12, 12)


@pytest.mark.parametrize("weighted", [False, True])
def test_closed_neighbourhoods_add_missing_loops_once_with_weight_one(weighted):
    adjacency = random_adjacency(12, weighted=weighted, seed=1)
    assert 0 < np.count_nonzero(np.diag(adjacency)) < 12
    expected = adjacency + np.diag(np.where(np.diag(adjacency) == 0, 1.0, 0.0))
    sets = neighbourhoods(as_graph(sp.csr_array(adjacency)))
    assert_allclose(dense(sets), expected, rtol=1e-6)
    assert all(len({u for u, _ in members}) == len(members) for members in members_of(sets))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.floats(0, 1), st.booleans(), st.integers(0, 2**32 - 1))
def test_closing_leaves_the_open_members_alone(n, density, weighted, seed):
    graph = as_graph(sp.csr_array(random_adjacency(n, weighted=weighted, seed=seed, density=density)))
    opened, closed = members_of(neighbourhoods(graph, closed=False)), members_of(neighbourhoods(graph))
    for v in range(n):
        has_loop = any(u == v for u, _ in opened[v])
        assert sorted(closed[v]) == sorted(opened[v] + ([] if has_loop else [(v, 1.0)]))


def test_direction_is_kept():
    sets = neighbourhoods(as_graph(sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))), closed=False)
    assert members_of(sets) == [[(1, 1.0)], []]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_symmetric_weights_are_the_references(weighted, closed):
    adjacency = random_adjacency(14, weighted=weighted, symmetric=True, seed=2)
    adjacency[5] = adjacency[:, 5] = 0  # a node without edges
    graph = as_graph(sp.csr_array(adjacency))
    looped = adjacency + np.diag(np.where(np.diag(adjacency) == 0, 1.0, 0.0)) if closed else adjacency
    sets = neighbourhoods(graph, closed=closed, weights="symmetric")
    assert_allclose(dense(sets), ref.symmetric_weights(looped), rtol=2e-6, atol=0)


def test_symmetric_weights_of_a_directed_graph_use_both_ends():
    """d_v counts what v receives (its row), d_u what u sends (its column)."""
    adjacency = random_adjacency(10, weighted=True, seed=3)
    adjacency += np.diag(np.where(np.diag(adjacency) == 0, 1.0, 0.0))
    expected = adjacency / np.sqrt(np.outer(adjacency.sum(axis=1), adjacency.sum(axis=0)))
    sets = neighbourhoods(as_graph(sp.csr_array(adjacency)), weights="symmetric")
    assert_allclose(dense(sets), expected, rtol=2e-6)


def test_uniform_weights_forget_the_edges_weights():
    adjacency = random_adjacency(10, weighted=True)
    sets = neighbourhoods(as_graph(sp.csr_array(adjacency)), closed=False, weights="uniform")
    assert sets.weights is None
    assert_array_equal(dense(sets), adjacency > 0)


def test_unknown_weights_list_the_known_ones():
    with pytest.raises(ValueError, match="'edge', 'uniform', 'symmetric'"):
        neighbourhoods(as_graph(sp.csr_array(np.eye(2))), weights="symetric")


def test_the_table_of_multisets_tells_open_from_closed():
    graph = as_graph(sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    assert_array_equal(dense(MULTISETS["neighbourhood"]()(graph)), np.ones((2, 2)))
    assert_array_equal(dense(MULTISETS["open-neighbourhood"]()(graph)), [[0, 1], [1, 0]])


# ---------------------------------------------------------------------------------------- rows of sets


@st.composite
def multisets(draw):
    n_points = draw(st.integers(1, 6))
    lists = draw(st.lists(st.lists(st.integers(0, n_points - 1), max_size=5), max_size=7))
    indptr = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    indices = np.array([u for members in lists for u in members], dtype=np.int32)
    weights = np.arange(1.0, len(indices) + 1) if draw(st.booleans()) else None
    return Multisets(indptr, indices, weights, n_points)


@settings(max_examples=100, deadline=None)
@given(multisets(), st.data())
def test_take_and_block_are_rows_of_the_list(sets, data):
    lists = members_of(sets)
    assert sets.n_sets == len(lists)
    assert sets.n_entries == sum(map(len, lists))
    start = data.draw(st.integers(0, sets.n_sets))
    stop = data.draw(st.integers(start, sets.n_sets))
    block = sets.block(slice(start, stop))
    assert members_of(block) == lists[start:stop]
    assert block.n_entries == sum(map(len, lists[start:stop]))
    rows = data.draw(st.lists(st.integers(0, sets.n_sets - 1), max_size=8)) if sets.n_sets else []
    assert members_of(sets.take(np.array(rows, dtype=np.int64))) == [lists[v] for v in rows]
    if stop > start:  # rows of a block count from its first
        inner = np.arange(stop - start)[::-1].copy()
        assert members_of(block.take(inner)) == lists[start:stop][::-1]


def test_a_block_copies_nothing():
    sets = neighbourhoods(as_graph(sp.csr_array(random_adjacency(20, weighted=True))))
    block = sets.block(slice(3, 9))
    assert np.shares_memory(block.indptr, sets.indptr)
    assert block.indices is sets.indices
    assert block.weights is sets.weights


def test_a_graph_is_the_multiset_of_its_nodes():
    sets = node_sets([0, 2, 2, 5])
    assert members_of(sets) == [[(0, 1.0), (1, 1.0)], [], [(2, 1.0), (3, 1.0), (4, 1.0)]]
    assert (sets.n_points, sets.weights, sets.indices.dtype) == (5, None, np.int32)


@pytest.mark.parametrize("ptr", [[], [1, 2], [0, 3, 2], [0.0, 2.0], [[0, 1]]])
def test_borders_of_graphs_begin_with_zero_and_never_fall(ptr):
    with pytest.raises(ValueError, match="graph_ptr"):
        node_sets(ptr)


def test_symmetric_weights_have_the_precision_of_the_edges():
    dense = np.random.default_rng(0).uniform(0.1, 1, size=(6, 6))
    expected = dense / np.sqrt(np.outer(dense.sum(axis=1), dense.sum(axis=0)))
    for scale in (1.0, 1e-250, 1e250):
        sets = neighbourhoods(sp.csr_array(dense * scale), weights="symmetric")
        np.testing.assert_allclose(sets.weights.reshape(6, 6), expected, rtol=1e-14)


def test_degrees_of_a_hub_are_added_in_float64():
    """10⁶ weights of 0.1 in one chain of float32 additions are off by a percent."""
    n = 1_000_000
    indptr = np.concatenate([[0], np.full(n, n)]).astype(np.int64)
    weights = np.full(n, 0.1, np.float32)
    received, _ = degrees(indptr, np.arange(n, dtype=np.int32), weights)
    assert_allclose(received[0], n * float(np.float32(0.1)), rtol=1e-9)


def test_a_graph_without_edges_may_have_weights():
    empty = Graph(np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    for rule in ("uniform", "symmetric", None):
        assert neighbourhoods(empty, closed=False, weights=rule).n_entries == 0
