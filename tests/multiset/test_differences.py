"""How neighbours differ from a node: the members, the reference, and what changes nothing."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import reference as ref
from contracts import members_of
from directed_graph import directed_graph
from fishergraph import EM, Differences, FisherEmbedding, FisherGraphEmbedding, LiftedSets, Multisets, neighbourhoods
from fishergraph._errors import InputError
from fishergraph.multiset import choose_multiset

GRAPH, X = directed_graph(40, 0.06), np.random.default_rng(1).normal(size=(40, 4))
PLAIN = {"n_layers": 1, "n_anchors": 3, "kernel": "identity", "normalize": False, "walk": None, "structure": None}
PLAIN |= {"block_weights": [0, 1]}


def phi(rule="differences", points=X, graph=GRAPH, **options):
    """φ of the differences, and the fitted layer."""
    model = FisherEmbedding(**{**PLAIN, **options}, multiset=rule, random_state=0, n_jobs=1)
    return model.fit_transform(points, graph=graph), model.stack_.layers[0]


def test_members_are_pairs_of_a_node_and_its_neighbours():
    sets, near = Differences()(GRAPH), neighbourhoods(GRAPH, closed=False)
    roots = np.repeat(np.arange(40), np.diff(near.indptr))
    assert_array_equal(sets.subgraphs, np.stack([roots, near.indices], axis=1))
    assert_array_equal(sets.weights, near.weights)
    assert (sets.slots, sets.kinds, sets.lift, sets.n_points) == (1, 1, "difference", 40)
    lifted, plain = sets.gather(X)
    assert_allclose(lifted, X[near.indices] - X[roots])
    assert_array_equal(plain.indptr, near.indptr)
    assert Differences(closed=True)(GRAPH).n_entries == neighbourhoods(GRAPH).n_entries
    assert choose_multiset("differences") == Differences()


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("n_iter", [1, 3])
def test_a_layer_is_the_references(closed, n_iter):
    found, layer = phi(Differences(closed=closed), em=EM(n_iter=n_iter), counts=True)
    anchors, members = layer.theta.anchors, members_of(neighbourhoods(GRAPH, closed=closed))
    means, mass = ref.difference_means(X, members, anchors, layer.theta.variance, n_iter=n_iter)
    assert_allclose(found, np.hstack([ref.fisher_embedding(means, anchors), np.log1p(mass)]), atol=2e-6)
    assert any(not m for m in members_of(neighbourhoods(GRAPH, closed=False)))  # a node without neighbours, φ = 0


def test_directions_stand_side_by_side():
    found, layer = phi(Differences(direction="both"))
    columns = []
    for A in (GRAPH, GRAPH.T.tocsr()):
        members = members_of(neighbourhoods(A, closed=False))
        means, _ = ref.difference_means(X, members, layer.theta.anchors, layer.theta.variance)
        columns.append(ref.fisher_embedding(means, layer.theta.anchors))
    assert_allclose(found, np.hstack(columns), atol=2e-6)
    out, layer = phi(Differences(direction="out"))
    turned, _ = phi(Differences(), graph=GRAPH.T.tocsr())
    assert_array_equal(out, turned)


@pytest.mark.parametrize("direction", [None, "both"])
@pytest.mark.parametrize("shift", [0.5, -3.0])
def test_a_vector_added_to_all_points_changes_nothing(direction, shift):
    moved = X + shift * np.arange(1, 5)
    for rule, same in ((Differences(direction=direction), True), ("open-neighbourhood", False)):
        model = FisherEmbedding(**PLAIN, multiset=rule, random_state=0).fit(X, graph=GRAPH)
        found, expected = (model.transform(points, graph=GRAPH) for points in (moved, X))
        assert np.allclose(found, expected, atol=1e-5) == same


@pytest.mark.parametrize("weights", [None, "uniform", "symmetric"])
def test_one_component_is_the_residual_less_its_anchor(weights):
    found, layer = phi(Differences(weights=weights), n_anchors=1)
    sets = neighbourhoods(GRAPH, closed=False, weights=weights, dtype=np.float64)
    A = sp.csr_array((np.ones(sets.n_entries) if sets.weights is None else sets.weights, sets.indices, sets.indptr))
    total = A.sum(axis=1)
    alone = total == 0
    residual = A @ X / np.where(alone, 1, total)[:, None] - X
    assert_allclose(found[~alone], (residual - layer.theta.anchors)[~alone], atol=1e-5)
    assert_array_equal(found[alone], 0)


def test_equal_points_differ_by_zero():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_array_equal(phi(points=np.ones((40, 4)))[0], 0)
        model = FisherEmbedding(1, dim=8, multiset="differences", random_state=0).fit(X, graph=sp.csr_array((40, 40)))
    assert np.isfinite(model.transform(X, graph=GRAPH)).all()


def test_blocks_and_threads_change_no_bit(monkeypatch):
    A, rows = directed_graph(300, 0.05), np.random.default_rng(1).normal(size=(300, 8))
    options = {"n_layers": 2, "dim": 16, "multiset": Differences(direction="both"), "random_state": 0}
    whole = FisherEmbedding(**options, n_jobs=1).fit_transform(rows, graph=A)
    assert_array_equal(FisherEmbedding(**options, n_jobs=3).fit(rows, graph=A).transform(rows, graph=A), whole)
    monkeypatch.setattr("fishergraph.layer._GATHERED_BYTES", 4096)  # nothing of size edges × features
    assert_allclose(FisherEmbedding(**options, n_jobs=1).fit_transform(rows, graph=A), whole, atol=1e-5)


@pytest.mark.parametrize("direction", [None, "both"])
def test_differences_are_saved_cloned_and_serve_tensors(direction, tmp_path):
    rule = Differences(direction=direction, weights="symmetric")
    model = FisherEmbedding(2, dim=8, multiset=rule, random_state=0).fit(X, graph=GRAPH)
    model.save(tmp_path / "m.safetensors")
    loaded, expected = FisherEmbedding.load(tmp_path / "m.safetensors"), model.transform(X, graph=GRAPH)
    assert loaded.multiset == rule == clone(model).multiset
    assert_array_equal(loaded.transform(X, graph=GRAPH), expected)
    torch = pytest.importorskip("torch")
    assert_allclose(model.transform(torch.from_numpy(X), graph=GRAPH).numpy(), expected, atol=1e-8)


@pytest.mark.parametrize("family", ["diagonal-mixture", "gaussian", "von-mises-fisher"])
def test_any_family_of_vectors_takes_differences(family):
    model = FisherEmbedding(2, n_anchors=2, dim=6, multiset="differences", family=family, random_state=0)
    assert np.isfinite(model.fit_transform(X, graph=GRAPH)).all()


def test_counts_have_no_differences():
    with pytest.raises(InputError, match="Differences"):
        FisherEmbedding(multiset="differences", family="multinomial").fit(np.abs(X), graph=GRAPH)


def test_whole_graphs_take_differences():
    rng = np.random.default_rng(0)
    graphs = [(rng.normal(size=(n, 3)), directed_graph(n, 0.3)) for n in range(5, 15)]
    model = FisherGraphEmbedding(nodes=FisherEmbedding(1, dim=8, multiset="differences"), random_state=0)
    Z = model.fit_transform(graphs)
    assert len(Z) == 10
    assert np.isfinite(Z).all()
    assert_allclose(model.transform(graphs), Z, atol=1e-6)


@pytest.mark.parametrize("subgraphs", [[[0, 1, 2]], [[0]], [[0, -1]]], ids=["three", "one", "empty"])
def test_a_difference_needs_pairs(subgraphs):
    sets = Multisets(np.array([0, 1]), np.array([0]), None, n_points=1)
    with pytest.raises(InputError, match="pair"):
        LiftedSets(sets, np.array(subgraphs), n_points=3, lift="difference")
