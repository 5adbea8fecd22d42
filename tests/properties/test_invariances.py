"""What the embedding does not see: the numbering of nodes and sets, the origin, the axes; and Eq. 2."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from contracts import random_problem
from fishergraph import Structure, as_graph, em_means
from models import PUBLISHED, node_model

SEEDS = st.integers(0, 2**32 - 1)
N_NODES = 700  # more than one row block


def means_of(points, sets, anchors, variance, n_iter, prior=0.0):
    return em_means(points, sets, anchors, variance=variance, prior=prior, n_iter=n_iter, n_jobs=1)


# ------------------------------------------------------------------------------------------- em_means


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([1, 3]), st.floats(0, 100), st.sampled_from([0.0, 0.5]))
def test_a_translation_of_points_and_anchors_translates_the_means(seed, n_iter, size, prior):
    problem = random_problem(seed=seed)
    shift = size * np.random.default_rng(seed).normal(size=3)
    base = means_of(problem.points, problem.sets, problem.anchors, problem.variance, n_iter, prior)
    moved = means_of(problem.points + shift, problem.sets, problem.anchors + shift, problem.variance, n_iter, prior)
    assert_allclose(moved.means, base.means + shift, rtol=0, atol=1e-9)
    assert_allclose(moved.mass, base.mass, rtol=0, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([1, 3]), st.sampled_from([0.0, 0.5]))
def test_a_rotation_of_points_and_anchors_rotates_the_means(seed, n_iter, prior):
    problem = random_problem(seed=seed)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    base = means_of(problem.points, problem.sets, problem.anchors, problem.variance, n_iter, prior)
    moved = means_of(problem.points @ turn, problem.sets, problem.anchors @ turn, problem.variance, n_iter, prior)
    assert_allclose(moved.means, base.means @ turn, rtol=0, atol=1e-11)
    assert_allclose(moved.mass, base.mass, rtol=0, atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([1, 3]), st.floats(1e-3, 1e3))
def test_units_do_not_matter_when_the_variance_follows(seed, n_iter, unit):
    problem = random_problem(seed=seed)
    base = means_of(problem.points, problem.sets, problem.anchors, problem.variance, n_iter)
    scaled = means_of(unit * problem.points, problem.sets, unit * problem.anchors, unit**2 * problem.variance, n_iter)
    assert_allclose(scaled.means / unit, base.means, rtol=0, atol=1e-10)
    assert_allclose(scaled.mass, base.mass, rtol=0, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from([1, 3]))
def test_the_order_of_the_anchors_orders_the_means(seed, n_iter):
    problem = random_problem(seed=seed)
    order = np.random.default_rng(seed).permutation(4)
    base = means_of(problem.points, problem.sets, problem.anchors, problem.variance, n_iter)
    moved = means_of(problem.points, problem.sets, problem.anchors[order], problem.variance, n_iter)
    assert_allclose(moved.means, base.means[:, order], rtol=0, atol=1e-11)


# ---------------------------------------------------------------------------------- the whole embedding


@pytest.fixture(scope="module")
def graph():
    """Features and a weighted, directed graph."""
    rng = np.random.default_rng(0)
    adjacency = sp.random_array((N_NODES, N_NODES), density=4 / N_NODES, rng=rng, data_sampler=rng.random)
    return rng.normal(size=(N_NODES, 6)), sp.csr_array(adjacency)


MODELS = {
    "default": {},
    "counts": {"counts": True, "em__prior": 0.5},
    "iterations": {"em__n_iter": 3, "normalize": False},
    "identity": {"kernel": "identity", "multiset__weights": "symmetric"},
    "open": {"multiset": "open-neighbourhood", "multiset__weights": "uniform"},
    "reference": PUBLISHED,
    "local": {"structure": "local"},
}
ROUNDING = {"local": 1e-5}  # structural columns are float32


def fitted(graph, **options):
    X, A = graph
    return node_model(2, n_anchors=3, dim=12, random_state=0, n_jobs=1, **options).fit(X, graph=A)


def blocks_of(model, out):
    """ψ_0, ψ_1, … and what follows them, by the names of the columns."""
    owners = [name.rpartition("_")[0] for name in model.get_feature_names_out()]
    assert len(owners) == out.shape[1]
    return [out[:, [owner == block for owner in owners]] for block in dict.fromkeys(owners)]


@pytest.mark.parametrize("name", MODELS)
def test_the_numbering_of_the_nodes_does_not_matter(graph, name):
    X, A = graph
    model = fitted(graph, **MODELS[name])
    order = np.random.default_rng(1).permutation(N_NODES)
    expected = model.transform(X, graph=A)[order]
    got = model.transform(X[order], graph=sp.csr_array(A[order][:, order]))
    assert_allclose(got, expected, rtol=0, atol=ROUNDING.get(name, 1e-9) * np.abs(expected).max())


@pytest.mark.parametrize("structure", ["auto", "spectral", "projection"])
def test_nor_does_it_for_columns_that_tell_nodes_apart_if_nodes_have_ids(graph, structure):
    X, A = graph
    model = fitted(graph, structure=structure)
    order = np.random.default_rng(1).permutation(N_NODES)
    expected = model.transform(X, graph=A)[order]
    got = model.transform(X[order], graph=as_graph(A)[order])  # whose ids are `order`
    assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_two_copies_of_a_graph_have_two_copies_of_the_embedding(graph, name):
    X, A = graph
    model = fitted(graph, **MODELS[name])
    once = model.transform(X, graph=A)
    twice = model.transform(np.concatenate([X, X]), graph=sp.csr_array(sp.block_diag([A, A])))
    assert_allclose(twice, np.concatenate([once, once]), rtol=0, atol=ROUNDING.get(name, 1e-9) * np.abs(once).max())


def test_a_block_sees_one_step_further_than_the_one_before(graph):
    """ψ_t(v) depends on the nodes within t steps of v, and on no other."""
    X, A = graph
    model = fitted(graph, walk=None)
    changed = X.copy()
    changed[0] = -changed[0]
    before, after = (blocks_of(model, model.transform(x, graph=A)) for x in (X, changed))
    assert len(before) >= 3
    reach = np.zeros(N_NODES, dtype=bool)
    reach[0] = True
    for t, (old, new) in enumerate(zip(before, after, strict=True)):
        assert_array_equal(old[~reach], new[~reach])
        assert (np.abs(old - new).max(axis=1) > 1e-6)[reach].mean() > 0.9, f"block {t} sees the node"
        assert 0 < reach.sum() < N_NODES
        reach = reach | ((A != 0).astype(int) @ reach.astype(int) > 0)


@pytest.mark.parametrize("weights", [None, "ones", "mixed", "first left out"])
def test_eq_2_the_inner_product_of_outputs_is_the_weighted_sum_over_blocks(graph, weights):
    X, A = graph
    plain = fitted(graph, structure=Structure(weight=1.0))
    psis = blocks_of(plain, plain.transform(X, graph=A))
    kinds = {"ones": np.ones(len(psis)), "mixed": np.linspace(0.5, 3.0, len(psis))}
    kinds["first left out"] = np.concatenate([[0.0], kinds["mixed"][1:]])
    chosen = None if weights is None else kinds[weights].tolist()
    out = fitted(graph, structure=Structure(weight=1.0), block_weights=chosen).transform(X, graph=A)
    for v, u in [(0, 0), (1, 2), (5, 600), (699, 3)]:
        expected = ref.multilayer_kernel([psi[v] for psi in psis], [psi[u] for psi in psis], chosen)
        assert out[v] @ out[u] == pytest.approx(expected, rel=1e-10, abs=1e-12)
    left_out = psis[0].shape[1] if weights == "first left out" else 0
    assert out.shape[1] == sum(psi.shape[1] for psi in psis) - left_out
