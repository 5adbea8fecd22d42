"""Lemma 3.1 and Theorem 4.4: what a multiset's embedding tells apart, and what it cannot.

A multiset with counts is known by the sums Σ_u α_j(x_u) and Σ_u α_j(x_u) x_u. So φ with counts is injective on the
multisets over an alphabet whose lifted letters (α_j(x), α_j(x) x) ∈ R^{p(d+1)} are linearly independent, and not
beyond. A layer aggregates closed neighbourhoods and forgets which member is the root; the refinement it can follow is

    c_t(v) = {c_{t-1}(u) : u ∈ N(v) ∪ {v}},

which is coarser than Weisfeiler and Lehman's (the root's own colour is one more member among the others).
"""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from contracts import from_lists
from fishergraph import em_means, fisher_embedding
from models import node_model

APART, ALIKE = 1e-6, 1e-9


def embed(adjacency, X, *, n_layers=2, **options):
    """The blocks of a stack that keeps lengths: a normalised x cannot be told from 2x.

    They are ψ_0 … ψ_T unless `walk` adds averaged features, which depend on nodes further away than a step per layer.
    """
    options = {"normalize": False, "counts": True, "family__variance": 1.0, "random_state": 0, "n_jobs": 1, **options}
    options = {"walk": None, **options}
    model = node_model(n_layers, n_anchors=4, dim=32, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asked for")
        out = model.fit_transform(np.asarray(X, dtype=np.float64), graph=sp.csr_array(np.asarray(adjacency, float)))
    return np.split(out, np.cumsum([width for _, width in model.blocks_])[:-1], axis=1)


def closed_colours(adjacency, labels, n_rounds):
    """The colours c_0 … c_T of the refinement by closed neighbourhoods, numbered in sorted order."""
    colours = [list(labels)]
    for _ in range(n_rounds):
        last = colours[-1]
        signatures = [
            tuple(sorted([last[v], *(last[u] for u in np.flatnonzero(row) if u != v)]))
            for v, row in enumerate(adjacency)
        ]
        order = {signature: i for i, signature in enumerate(sorted(set(signatures)))}
        colours.append([order[signature] for signature in signatures])
    return colours


def distances(block):
    return np.abs(block[:, None] - block[None]).max(axis=-1)


def same(colours):
    return np.equal.outer(colours, colours)


@st.composite
def labelled_graphs(draw, max_nodes=7, n_labels=3):
    n = draw(st.integers(2, max_nodes))
    pairs = list(itertools.combinations(range(n), 2))
    present = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    adjacency = np.zeros((n, n))
    for (v, u), there in zip(pairs, present, strict=True):
        adjacency[v, u] = adjacency[u, v] = there
    return adjacency, draw(st.lists(st.integers(0, n_labels - 1), min_size=n, max_size=n))


# ------------------------------------------------------------------------------------------ Lemma 3.1


@pytest.mark.parametrize("kernel", ["identity", "exp"])
@settings(max_examples=40, deadline=None)
@given(labelled_graphs())
def test_each_layer_separates_exactly_what_closed_neighbourhoods_separate(kernel, graph):
    """c_t(v) ≠ c_t(v') implies ψ_t(v) ≠ ψ_t(v') (the lemma), and c_t(v) = c_t(v') implies ψ_t(v) = ψ_t(v')."""
    adjacency, labels = graph
    blocks = embed(adjacency, np.eye(3)[labels], kernel=kernel)
    for block, colours in zip(blocks, closed_colours(adjacency, labels, 2), strict=True):
        gaps, alike = distances(block), same(colours)
        assert gaps[alike].max() < ALIKE
        assert gaps[~alike].min(initial=np.inf) > APART


@settings(max_examples=40, deadline=None)
@given(labelled_graphs())
def test_no_stack_separates_what_weisfeiler_and_lehman_do_not(graph):
    adjacency, labels = graph
    neighbours = [list(np.flatnonzero(row)) for row in adjacency]
    alike = same(ref.wl_colours(neighbours, labels, 2))
    assert distances(np.concatenate(embed(adjacency, np.eye(3)[labels]), axis=1))[alike].max() < ALIKE


@settings(max_examples=40, deadline=None)
@given(labelled_graphs(), st.sampled_from([0.1, 0.5]))
def test_nor_do_walks_once_its_colours_are_stable(graph, teleport):
    adjacency, labels = graph
    neighbours = [list(np.flatnonzero(row)) for row in adjacency]
    alike = same(ref.wl_colours(neighbours, labels, len(labels)))
    blocks = embed(adjacency, np.eye(3)[labels], walk=teleport, kernel="identity")
    assert len(blocks) == 5  # ψ_0, ψ_1, ψ_2, the walk, and its sums
    assert distances(np.concatenate(blocks, axis=1))[alike].max() < ALIKE


def test_walks_tell_apart_what_the_layers_do_not_reach():
    """The two ends of a path, four and six steps away from its only labelled node."""
    path, X = np.diag(np.ones(10), 1) + np.diag(np.ones(10), -1), np.eye(2)[[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]]
    *layers, walk, smooth = embed(path, X, walk=0.1)
    assert max(distances(block)[0, 10] for block in layers) < ALIKE
    assert min(distances(block)[0, 10] for block in (walk, smooth)) > APART


def test_two_triangles_and_a_hexagon_stay_alike():
    triangles = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    hexagon = np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    both = np.block([[triangles, np.zeros((6, 6))], [np.zeros((6, 6)), hexagon]])
    assert distances(np.concatenate(embed(both, np.ones((12, 2))), axis=1)).max() < ALIKE


def test_the_root_is_a_member_like_the_others_but_the_blocks_before_remember_it():
    """One edge A–B: both ends have the closed neighbourhood {A, B}; ψ_0 in the concatenation still tells A from B."""
    first, second, _ = embed([[0, 1], [1, 0]], np.eye(2))
    assert distances(first)[0, 1] > APART
    assert distances(second)[0, 1] < ALIKE
    opened = embed([[0, 1], [1, 0]], np.eye(2), multiset="open-neighbourhood")[1]
    assert distances(opened)[0, 1] > APART


@settings(max_examples=25, deadline=None)
@given(labelled_graphs(max_nodes=6, n_labels=1))
def test_without_counts_a_constant_feature_says_nothing_and_with_counts_it_says_the_degree(graph):
    adjacency, labels = graph
    X = np.ones((len(labels), 2))
    assert all(distances(block).max() < ALIKE for block in embed(adjacency, X, counts=False, kernel="identity"))
    gaps, alike = distances(embed(adjacency, X, kernel="identity")[1]), same(adjacency.sum(axis=1))
    assert gaps[alike].max() < ALIKE
    assert gaps[~alike].min(initial=np.inf) > APART


def test_normalised_rows_forget_their_length():
    """The condition normalize=False of the lemma is needed."""
    X = np.array([[1.0, 1.0], [2.0, 2.0]])
    assert distances(embed(np.zeros((2, 2)), X)[0])[0, 1] > APART
    assert distances(np.concatenate(embed(np.zeros((2, 2)), X, normalize=True), axis=1)).max() < ALIKE


# ---------------------------------------------------------------------------------------- Theorem 4.4


def phi_of(lists, points, anchors, *, counts, variance=0.8, n_iter=1):
    means, mass = em_means(points, from_lists(lists, len(points)), anchors, variance=variance, n_iter=n_iter)
    return fisher_embedding(means, anchors, mass=mass if counts else None)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.integers(2, 5), st.integers(1, 4))
def test_a_set_taken_k_times_coincides_without_counts_and_differs_with(seed, p, d, k, n_iter):
    rng = np.random.default_rng(seed)
    points, anchors = rng.normal(size=(4, d)), rng.normal(size=(p, d))
    members = [(u, 1.0) for u in range(rng.integers(1, 5))]
    lists = [members, members * k]
    once, many = phi_of(lists, points, anchors, counts=False, n_iter=n_iter)
    np.testing.assert_allclose(many, once, rtol=0, atol=1e-10)
    once, many = phi_of(lists, points, anchors, counts=True, n_iter=n_iter)
    assert np.abs(many - once).max() > 0.1 / p


_rng = np.random.default_rng(5)
ALPHABET, ANCHORS = _rng.normal(size=(8, 2)), _rng.normal(size=(3, 2))  # 8 letters, p (d + 1) = 9 dimensions


def lifted(points, anchors, variance=0.8):
    """(letter, p (d + 1)): (α_j(x), α_j(x) x)."""
    alpha = ref.responsibilities(points, anchors, variance)
    return np.concatenate([alpha, (alpha[:, :, None] * points[:, None]).reshape(len(points), -1)], axis=1)


def test_the_letters_of_the_next_test_are_independent():
    assert np.linalg.svd(lifted(ALPHABET, ANCHORS), compute_uv=False)[-1] > 1e-4


@settings(max_examples=150, deadline=None)
@given(*[st.lists(st.integers(0, 7), min_size=1, max_size=8)] * 2)
def test_with_counts_phi_is_injective_on_multisets_of_independent_letters(first, second):
    lists = [[(u, 1.0) for u in first], [(u, 1.0) for u in second]]
    a, b = phi_of(lists, ALPHABET, ANCHORS, counts=True)
    if sorted(first) == sorted(second):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    else:
        assert np.abs(a - b).max() > APART


def test_dependent_letters_collide_even_with_counts():
    """p = 1 is mean pooling: {0, 2} and {1, 1} have one mean and one count. Two anchors tell them apart."""
    points, lists = np.array([[0.0], [1.0], [2.0]]), [[(0, 1.0), (2, 1.0)], [(1, 1.0), (1, 1.0)]]
    a, b = phi_of(lists, points, np.array([[0.3]]), counts=True)
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-15)
    a, b = phi_of(lists, points, np.array([[0.3], [1.9]]), counts=True)
    assert np.abs(a - b).max() > 1e-2


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_phi_of_a_parameter_is_injective(seed, p):
    """‖φ(θ) − φ(θ')‖ ≥ λ_min(I)^{1/2} ‖θ − θ'‖, and λ_min > 0 where the anchors differ.

    Of parameters, not of densities: exchanging two components of θ changes φ and not the density.
    """
    rng = np.random.default_rng(seed)
    anchors = np.sort(rng.normal(size=(p, 1)), axis=0) + np.arange(p)[:, None]  # at least 1 apart
    root = ref.matrix_root(ref.fisher_matrix_quadrature(anchors))
    theta = anchors + rng.normal(size=(2, p, 1))
    a, b = fisher_embedding(theta, anchors, fisher_root=root)
    least = np.linalg.svd(root, compute_uv=False)[-1]
    assert least > 1e-3
    assert np.linalg.norm(a - b) >= least * np.linalg.norm(theta[0] - theta[1]) * (1 - 1e-9)
    assert np.linalg.norm(a - b) > 0
