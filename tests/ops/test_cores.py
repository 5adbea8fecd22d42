"""Core numbers against NetworkX."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph.cores import core_numbers


def cores(graph: nx.Graph) -> list[int]:
    rows = sp.csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(len(graph))))
    return core_numbers(rows.indptr, rows.indices).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_of_every_density(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(rng.integers(1, 60)), float(rng.random() ** 2), seed=seed)
    known = nx.core_number(graph)
    assert cores(graph) == [known[v] for v in range(len(graph))]


@pytest.mark.parametrize(
    "graph",
    [nx.path_graph(7), nx.complete_graph(5), nx.star_graph(6), nx.empty_graph(3), nx.barabasi_albert_graph(500, 4, 1)],
    ids=["path", "clique", "star", "no edges", "hubs"],
)
def test_graphs_of_a_kind(graph):
    known = nx.core_number(graph)
    assert cores(graph) == [known[v] for v in range(len(graph))]


def test_both_widths_of_numbers_and_no_node():
    rows = sp.csr_array(nx.to_scipy_sparse_array(nx.complete_graph(3)))
    for kind in (np.int32, np.int64):
        assert core_numbers(rows.indptr.astype(kind), rows.indices.astype(kind)).tolist() == [2, 2, 2]
    assert core_numbers(np.zeros(1, np.int64), np.zeros(0, np.int64)).tolist() == []
