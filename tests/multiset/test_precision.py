"""Weights that a rule computes have the precision of the points: float64 features get float64 weights."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from fishergraph import FisherEmbedding, Neighbourhood, as_graph, neighbourhoods
from fishergraph.multiset import HeatKernel, Hops, PageRank, Pairs, Paths, StepAverage, Tuples
from fishergraph.nn import FisherConv
from fishergraph.ops.tensor_edges import edge_neighbourhoods

N = 40
PLAIN = as_graph(nx.gnp_random_graph(N, 0.15, seed=3))
EDGES = np.stack([PLAIN.indices, np.repeat(np.arange(N), np.diff(PLAIN.indptr))]).astype(np.int64)
WEIGHTED = as_graph((EDGES, np.random.default_rng(0).uniform(0.5, 2, PLAIN.n_edges).astype(np.float32)), n_nodes=N)
RULES = [PageRank(), HeatKernel(), StepAverage(), Hops(2, 0.7), Pairs(), Paths(2), Paths(2, max_paths=3), Tuples(2)]


@pytest.mark.parametrize("graph", [PLAIN, WEIGHTED], ids=["plain", "float32"])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_rules_compute_weights_in_the_precision_of_the_points(rule, graph):
    rule = rule.set_params(weights="symmetric")
    single, double = rule(graph), rule(graph, dtype=np.float64)
    assert (single.weights.dtype, double.weights.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single.weights, double.weights, rtol=1e-5)
    assert not np.array_equal(double.weights, double.weights.astype(np.float32))  # not float32 numbers in wide arrays


def test_symmetric_weights_are_exact_to_float64():
    sets = neighbourhoods(PLAIN, weights="symmetric", dtype=np.float64)
    sizes = np.diff(sets.indptr)
    expected = 1 / np.sqrt(np.repeat(sizes, sizes) * sizes[sets.indices].astype(np.float64))
    np.testing.assert_allclose(sets.weights, expected, rtol=1e-15)


@pytest.mark.parametrize("weights", [None, torch.ones(PLAIN.n_edges) * 1.5])
def test_tensors_do_so_too(weights):
    edges = torch.from_numpy(EDGES)
    for dtype in (torch.float32, torch.float64):
        sets = edge_neighbourhoods(edges, weights, N, weights="symmetric", dtype=dtype)
        assert sets.weights is not None
        assert sets.weights.dtype == dtype
        layer = FisherConv(3, 4, multiset=Neighbourhood(weights="symmetric")).to(dtype)
        assert layer.sets(edges, weights, (N, N)).weights.dtype == dtype


def test_an_embedding_of_float64_does_not_round_its_weights_to_float32():
    """A walk and two layers on arrays and on tensors: the weights were all that kept them apart."""
    X = np.random.default_rng(1).normal(size=(N, 6))
    model = FisherEmbedding(2, 3, 8, random_state=0, multiset=Neighbourhood(weights="symmetric")).fit(X, graph=PLAIN)
    Z = model.transform(X, graph=PLAIN)
    tensors = model.transform(torch.from_numpy(X), graph=torch.from_numpy(EDGES)).numpy()
    np.testing.assert_allclose(tensors, Z, rtol=0, atol=1e-12)
    halves = as_graph((EDGES, np.full(PLAIN.n_edges, 0.5)), n_nodes=N)  # the same graph with float64 weights
    rule = Neighbourhood(closed=False, weights="symmetric")
    open_sets = FisherEmbedding(1, 3, 8, random_state=0, multiset=rule, structure=None)  # degrees are sums of weights
    np.testing.assert_allclose(
        open_sets.fit_transform(X, graph=halves), open_sets.fit_transform(X, graph=PLAIN), rtol=0, atol=1e-12
    )
