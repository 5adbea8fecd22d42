"""Edges that are held out: which part an edge is in, pairs without an edge, and graphs with too few of either."""

from __future__ import annotations

import numpy as np
import pytest

from fishergraph import as_graph, split_edges
from fishergraph._errors import InputError
from fishergraph.probes import Links
from link_problem import community_graph, edges_of

UNDIRECTED = community_graph()[1]
DIRECTED = community_graph(directed=True, seed=1)[1]
each_graph = pytest.mark.parametrize("graph", [UNDIRECTED, DIRECTED], ids=["undirected", "directed"])


def pairs_of(links, edges):
    return {tuple(pair) for pair in links.pairs[links.edges == edges].tolist()}


def both_ways(pairs):
    return pairs | {(v, u) for u, v in pairs}


def check_split(split, whole):
    """What a split promises; a test below breaks each promise."""
    parts = [split.train, split.val, split.test]
    edges, others = [pairs_of(part, True) for part in parts], [pairs_of(part, False) for part in parts]
    all_edges, rest = edges_of(whole), edges_of(split.graph)
    for k, part in enumerate(parts):
        assert len(edges[k]) + len(others[k]) == len(part), "a pair stands twice in a part"
        assert edges[k] <= all_edges, "an edge is none of the graph"
        assert not others[k] & (all_edges if split.directed else both_ways(all_edges)), "a pair has an edge"
        assert all(u != v for u, v in edges[k] | others[k])
        for j in range(k):
            assert not both_ways(edges[j]) & edges[k], "two parts share a pair of nodes"
            assert not (others[j] if split.directed else both_ways(others[j])) & others[k]
    held = both_ways(edges[1] | edges[2])
    assert not held & rest, "an edge that is held out is in the graph"
    assert rest == all_edges - (edges[1] | edges[2] if split.directed else held)
    covered = edges[0] if split.directed else both_ways(edges[0])
    assert covered == {(u, v) for u, v in rest if u != v}


@each_graph
@pytest.mark.parametrize("seed", range(3))
def test_no_edge_that_is_held_out_is_in_the_graph(graph, seed):
    check_split(split_edges(graph, random_state=seed), graph)


def test_an_edge_that_stays_in_the_graph_is_noticed(monkeypatch):
    monkeypatch.setattr("fishergraph.probes.edges._without", lambda graph, edges, directed: graph)
    with pytest.raises(AssertionError, match="held out"):
        check_split(split_edges(UNDIRECTED, random_state=0), UNDIRECTED)


def test_an_edge_of_which_one_direction_stays_is_noticed(monkeypatch):
    from fishergraph.probes import edges

    whole = edges._without
    monkeypatch.setattr(edges, "_without", lambda graph, held, directed: whole(graph, held, True))
    with pytest.raises(AssertionError, match="held out"):
        check_split(split_edges(UNDIRECTED, random_state=0), UNDIRECTED)


def test_a_pair_that_has_an_edge_is_noticed(monkeypatch):
    from fishergraph.probes import edges

    monkeypatch.setattr(edges, "_other_pairs", lambda ends, n, count, rng, directed: ends[:count])
    with pytest.raises(AssertionError, match="has an edge"):
        check_split(split_edges(UNDIRECTED, random_state=0), UNDIRECTED)


@each_graph
def test_shares_are_those_that_were_asked_for(graph):
    split = split_edges(graph, val=0.1, test=0.2, negatives=3, random_state=0)
    count = sum(int(part.edges.sum()) for part in (split.train, split.val, split.test))
    assert count == (graph.n_edges if split.directed else graph.n_edges // 2)
    for part, share in ((split.train, 0.7), (split.val, 0.1), (split.test, 0.2)):
        assert part.edges.sum() == pytest.approx(share * count, abs=1 + 0.03 * count * split.directed)
        assert (~part.edges).sum() == 3 * part.edges.sum()
    assert split.directed is (graph is DIRECTED)


def test_an_edge_and_its_reverse_are_in_one_part():
    """A directed graph of pairs that point at each other, and of pairs that do not."""
    graph = as_graph([(u, u + 1) for u in range(60)] + [(u + 1, u) for u in range(0, 60, 2)])
    split = split_edges(graph, val=0.2, test=0.2, random_state=0)
    assert split.directed
    check_split(split, graph)


def test_weights_and_ids_stay():
    weights = {(u, v): 0.5 + u * v for u, v in edges_of(UNDIRECTED) if u <= v}
    names = UNDIRECTED.ids.tolist()
    table = [(names[u], names[v], weight) for (u, v), weight in weights.items()]
    graph = as_graph(table, node_ids=names, undirected=True)
    split = split_edges(graph, random_state=0)
    assert split.graph.ids.tolist() == names
    assert split.graph.weights is not None
    rest = split.graph.adjacency.tocoo()
    assert len(rest.data) == split.graph.n_edges
    for v, u, weight in zip(rest.row.tolist(), rest.col.tolist(), rest.data.tolist(), strict=True):
        assert weight == pytest.approx(weights[min(u, v), max(u, v)])


def test_self_loops_stay_and_are_no_pairs():
    graph = as_graph([*((u, (u + 1) % 40) for u in range(40)), (3, 3), (7, 7)], undirected=True)
    split = split_edges(graph, val=0.2, test=0.2, random_state=0)
    assert {(3, 3), (7, 7)} <= edges_of(split.graph)
    check_split(split, graph)


def test_the_seed_alone_decides():
    first, second, other = (split_edges(UNDIRECTED, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.test.pairs, second.test.pairs)
    np.testing.assert_array_equal(first.train.pairs, second.train.pairs)
    assert pairs_of(first.test, True) != pairs_of(other.test, True)


def test_a_dense_graph_has_all_of_its_free_pairs():
    """Half of all pairs have an edge, and every other pair is needed: it is listed, not drawn."""
    pairs = [(u, v) for u in range(12) for v in range(u + 1, 12)]
    graph = as_graph(pairs[::2], n_nodes=12, undirected=True)
    split = split_edges(graph, val=0.1, test=0.2, random_state=0)
    check_split(split, graph)
    free = pairs_of(split.train, False) | pairs_of(split.val, False) | pairs_of(split.test, False)
    assert free == set(pairs[1::2])


@each_graph
def test_folds_hold_out_disjoint_parts_of_the_training_edges(graph):
    split, held = split_edges(graph, random_state=0), []
    for rest, links in split.folds(5, 0.2, random_state=1):
        edges = pairs_of(links, True)
        gone = edges if split.directed else both_ways(edges)
        assert edges_of(rest) == edges_of(split.graph) - gone
        assert pairs_of(links, False) <= pairs_of(split.train, False)
        held.append(edges)
    assert set().union(*held) == pairs_of(split.train, True)
    assert sum(map(len, held)) == split.train.edges.sum()


@pytest.mark.parametrize(
    ("graph", "options", "word"),
    [
        ([(0, 1), (1, 2)], {}, "val"),
        ([(0, 1), (1, 2)], {"val": 0}, "test"),
        (UNDIRECTED, {"val": 0.5, "test": 0.5}, "below 1"),
        (UNDIRECTED, {"test": -0.1}, "test"),
        (UNDIRECTED, {"negatives": 0}, "negatives"),
        (as_graph(np.stack(np.nonzero(np.triu(np.ones((9, 9)), 1))), undirected=True), {"val": 0.1}, "without an edge"),
        (as_graph(np.empty((2, 0), int), n_nodes=5), {}, "val"),
    ],
)
def test_graphs_and_shares_that_do_not_fit(graph, options, word):
    with pytest.raises(InputError, match=word):
        split_edges(graph, **options)


def test_links_print_their_numbers():
    assert repr(Links(np.zeros((3, 2), int), np.array([True, False, False]))) == "Links(1 edge, 2 pairs without one)"
