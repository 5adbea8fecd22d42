"""The graph of a page holds the edges of its nodes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import unpacked_page as unpack
from fishergraph import as_graph
from fishergraph.explore.edges import degree_columns, page_edges
from fishergraph.explore.pack import Parts


def read(edges):
    parts = Parts()
    page = type("Page", (), {"about": {"edges": edges.packed(parts)}, "parts": parts.texts})
    return unpack.edges(page), page


def undirected():
    return as_graph(nx.barabasi_albert_graph(60, 3, seed=0))


@pytest.mark.parametrize("order", ["same", "shuffled", "some"])
def test_undirected_edges_are_stored_once(order):
    graph = undirected()
    rows = np.random.default_rng(0).permutation(60) if order != "same" else np.arange(60)
    rows = rows[:30] if order == "some" else rows
    edges = page_edges(graph, rows)
    found, _ = read(edges)
    A = graph.adjacency.toarray()[np.ix_(rows, rows)]
    assert sorted(found) == [(int(v), int(u)) for v, u in zip(*np.nonzero(np.triu(A)), strict=True)]
    assert (edges.directed, edges.weighted, edges.total) == (False, False, 171)


def test_directed_edges_with_loops_and_weights():
    A = sp.csr_array(np.array([[0.5, 2, 0], [0, 0, 0], [1.5, 0, 3]]))
    edges = page_edges(as_graph(A), np.arange(3))
    found, page = read(edges)
    assert found == [(0, 0), (0, 1), (2, 0), (2, 2)]
    assert edges.directed
    assert unpack.numbers(page.parts, page.about["edges"]["weight"]) == [0.5, 2, 1.5, 3]


def test_loops_of_an_undirected_graph():
    graph = as_graph(sp.csr_array(np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1]])))
    found, page = read(page_edges(graph, np.array([2, 0, 1])))
    assert found == [(0, 0), (1, 1), (1, 2)]
    assert page.about["edges"]["total"] == 3


def test_weights_that_differ_by_direction_make_a_graph_directed():
    assert page_edges(as_graph(sp.csr_array(np.array([[0.0, 1], [2, 0]]))), np.arange(2)).directed


def test_very_many_edges_are_thinned_evenly():
    graph = undirected()
    edges = page_edges(graph, np.arange(60), most=100)
    assert 60 <= edges.shown <= 100
    assert edges.total == 171
    found, _ = read(edges)
    assert {v for edge in found for v in edge} == set(range(60))  # nobody loses all neighbours
    again, _ = read(page_edges(graph, np.arange(60), most=100))
    assert again == found


def test_a_graph_without_edges():
    found, page = read(page_edges(as_graph(sp.csr_array((4, 4))), np.arange(4)))
    assert found == []
    assert page.about["edges"]["shown"] == 0


def test_degrees_count_neighbours():
    graph = nx.barabasi_albert_graph(40, 2, seed=1)
    graph.add_edge(3, 3)
    (degree,) = degree_columns(as_graph(graph))
    assert degree.values.tolist() == [len(set(graph[v]) - {v}) for v in range(40)]
    directed = nx.gnp_random_graph(30, 0.1, seed=0, directed=True)
    into, out = degree_columns(as_graph(directed))
    assert into.values.tolist() == [directed.in_degree(v) for v in range(30)]
    assert out.values.tolist() == [directed.out_degree(v) for v in range(30)]
