"""How odd neighbourhoods are: the score, its p-values, and what they are compared with."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import reference as ref
import reference_explain as slow
from directed_graph import directed_graph
from fishergraph import Explainer, HeatKernel, Multisets, Neighbourhood
from fishergraph._errors import FewPointsWarning, InputError
from fishergraph.explain.pvalues import NullCounts, adjusted, counted, gamma_tail, weight_groups
from fishergraph.explain.surprise import effective_sizes, with_permuted_points
from fishergraph.multiset import Differences
from models import node_model

N = 40


def random_graph(seed: int, n: int = 500, degree: float = 5.0) -> sp.csr_array:
    """An undirected random graph."""
    half = sp.random_array((n, n), density=degree / 2 / n, rng=np.random.default_rng(seed), format="csr")
    return sp.csr_array(((half + half.T) > 0).astype(np.float64))


def apart(sets: Multisets, seed: int = 0) -> np.ndarray:
    """Nodes no two of which share a member: their scores are independent, up to the sampling without replacement."""
    used, chosen = np.zeros(sets.n_points, bool), []
    for v in np.random.default_rng(seed).permutation(sets.n_sets):
        members = sets.indices[sets.indptr[v] : sets.indptr[v + 1]]
        if not used[members].any():
            chosen.append(int(v))
            used[members] = True
    return np.array(chosen)


def explainer(X, A, **variant) -> Explainer:
    given = {"n_anchors": 3, "dim": 16, "walk": None, "random_state": 0, **variant}
    return Explainer(node_model(1, **given).fit(X, graph=A), X, graph=A)


def test_the_score_is_that_of_the_equation():
    X, A = np.random.default_rng(1).normal(size=(N, 5)), directed_graph(N, density=0.1)
    model = node_model(1, 3, 6, kernel="identity", walk=None, random_state=0).fit(X, graph=A)
    points, theta, sets = np.array([ref.unit(row) for row in X]), model.stack_.layers[0].theta, Neighbourhood()(A)
    found = Explainer(model, X, graph=A).neighbourhood_scores(n_permutations=1)
    for v in range(N):
        rows = slice(sets.indptr[v], sets.indptr[v + 1])
        members = list(zip(sets.indices[rows].tolist(), sets.weights[rows].tolist(), strict=True))
        assert found.scores[v] == pytest.approx(slow.surprise(points, members, theta.anchors, theta.variance))


# --- p-values ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["reals", "words", "weighted"])
def test_p_values_are_uniform_if_features_do_not_depend_on_edges(kind):
    """Kolmogorov and Smirnov reject it on none of ten graphs at the family-wise level 0.05, nor on all together.

    They compare independent values, so nodes are taken that share no member. By Holm's rule none of ten is rejected if
    the smallest p-value is above 0.05 / 10.
    """
    rule = HeatKernel(time=1.0, members=8) if kind == "weighted" else Neighbourhood()
    together, tests = [], []
    for seed in range(10):
        rng, A = np.random.default_rng(100 + seed), random_graph(seed)
        X = rng.normal(size=(500, 10)) if kind != "words" else (rng.random((500, 60)) < 0.08) + 1e-3
        found = explainer(X, A, multiset=rule).neighbourhood_scores(n_permutations=199, random_state=seed)
        together.append(found.p_values[apart(rule(A))])
        assert len(together[-1]) > 20
        tests.append(stats.kstest(together[-1], "uniform").pvalue)
        assert abs(found.p_values.mean() - 0.5) < 0.06
    assert min(tests) > 0.05 / len(tests)
    assert stats.kstest(np.concatenate(together), "uniform").pvalue > 0.05


def test_neighbours_that_are_alike_are_found_and_nothing_else_changes_them():
    """A homophilous graph is surprising; with its features permuted it is not."""
    rng, n = np.random.default_rng(0), 400
    group = rng.integers(4, size=n)
    X = rng.normal(size=(n, 8)) + 2 * np.eye(8)[group]
    same = (group[:, None] == group) & (rng.random((n, n)) < 0.06)
    A = sp.csr_array((same | same.T).astype(float))
    found = explainer(X, A).neighbourhood_scores()
    assert np.mean(found.q_values <= 0.05) > 0.9
    assert found.z.mean() > 3
    shuffled = explainer(X[rng.permutation(n)], A).neighbourhood_scores()
    assert np.mean(shuffled.q_values <= 0.05) < 0.01


def test_a_node_is_compared_with_its_own_neighbourhood_structure():
    """Hubs and leaves have other null distributions: the expected score is that of as many random nodes."""
    X = np.random.default_rng(0).normal(size=(300, 6))
    A = random_graph(1, 300)
    found = explainer(X, A).neighbourhood_scores(n_permutations=400)
    sizes = np.diff(Neighbourhood()(A).indptr)
    for size in np.unique(sizes):
        own = sizes == size
        assert len(np.unique(found.expected[own])) == 1
        assert (found.n_null[own] == 400 * own.sum()).all()
    alone = explainer(X, A).neighbourhood_scores([7], n_permutations=400)
    assert alone.n_null[0] == 400
    assert alone.scores[0] == found.scores[7]
    assert alone.expected[0] == pytest.approx(found.expected[7], rel=0.1)
    assert alone.p_values[0] == pytest.approx(found.p_values[7], abs=0.1)


@pytest.mark.parametrize("variant", [{}, {"multiset": Neighbourhood(direction="both")}, {"multiset": Differences()}])
def test_the_seed_decides_and_threads_change_no_bit(variant):
    X, A = np.random.default_rng(1).normal(size=(N, 5)), directed_graph(N, density=0.1)
    asked = explainer(X, A, **variant)
    first, second = (asked.neighbourhood_scores(n_permutations=40, n_jobs=n_jobs) for n_jobs in (1, 3))
    for name in ("scores", "p_values", "z", "q_values", "expected"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    other = asked.neighbourhood_scores(n_permutations=40, random_state=1)
    assert (other.p_values != first.p_values).any()


def test_nodes_without_members_are_not_odd():
    X, A = np.random.default_rng(1).normal(size=(N, 5)), directed_graph(N, density=0.02)
    found = explainer(X, A, multiset="open-neighbourhood").neighbourhood_scores(n_permutations=20, tail="gamma")
    empty = np.diff(A.indptr) == 0
    assert empty.any()
    assert (found.p_values[empty] == 1).all()
    assert (found.scores[empty] == 0).all()
    assert (found.z[empty] == 0).all()


def test_equal_features_are_not_odd():
    """What rounding leaves of φ = 0 is no score."""
    X = np.ones((N, 3), np.float32)
    with pytest.warns(FewPointsWarning):
        asked = explainer(X, directed_graph(N, density=0.1))
    assert (asked.neighbourhood_scores(n_permutations=20).p_values == 1).all()


# --- counting ---------------------------------------------------------------------------------------------


def test_counts_are_those_of_loops():
    rng = np.random.default_rng(0)
    groups, observed = np.array([0, 2, 1, 0, 2, 2, 0]), rng.normal(size=7).round(1)
    permuted = rng.normal(size=(30, 7)).round(1)  # with ties
    null = NullCounts(observed, groups)
    for scores in permuted:
        null.add(scores)
    mean, deviation, skewness = null.moments()
    for v in range(7):
        pool = permuted[:, groups == groups[v]].ravel()
        assert null.n_null[v] == len(pool)
        assert null.exceeding[v] == np.count_nonzero(pool >= observed[v])
        assert counted(null)[v] == (1 + np.count_nonzero(pool >= observed[v])) / (1 + len(pool))
        assert mean[v] == pytest.approx(pool.mean())
        assert deviation[v] == pytest.approx(pool.std())
        assert skewness[v] == pytest.approx(stats.skew(pool))


def test_single_rows_are_counted_alike():
    rng = np.random.default_rng(0)
    observed, permuted = rng.normal(size=5), rng.normal(size=(20, 5))
    null = NullCounts(observed, np.arange(5))
    for scores in permuted:
        null.add(scores)
    assert null.exceeding.tolist() == (permuted >= observed).sum(axis=0).tolist()


def test_the_gamma_tail_resolves_what_counts_cannot():
    rng = np.random.default_rng(0)
    observed = np.array([20.0, 5.0, 40.0])
    null = NullCounts(observed, np.arange(3))
    for _ in range(2000):
        null.add(rng.chisquare(5, size=3))
    found, exact = gamma_tail(null), stats.chi2.sf(observed, 5)
    assert found[0] == pytest.approx(exact[0], rel=0.5)
    assert found[1] == counted(null)[1]  # there are enough counts
    assert found[2] < 1e-4 < counted(null)[2]
    np.testing.assert_array_less(found, counted(null) + 1e-12)


def test_q_values_are_those_of_scipy():
    p = np.random.default_rng(0).random(50) ** 3
    np.testing.assert_allclose(adjusted(p), stats.false_discovery_control(p))
    assert len(adjusted(np.zeros(0))) == 0


def test_rows_with_the_same_weights_are_a_group():
    weights = np.array([1, 2, 2, 1, 1, 1, 3], np.float32)
    sets = Multisets(np.array([0, 2, 4, 6, 7, 7]), np.arange(7), weights, 7)
    groups = weight_groups(sets)
    assert groups[0] == groups[1]  # {1, 2} in another order
    assert len(np.unique(groups)) == 4
    assert sorted(np.unique(groups).tolist()) == list(range(4))


def test_effective_sizes_and_permuted_members():
    weights = np.array([1, 1, 3, 2], np.float32)
    sets = Multisets(np.array([0, 3, 3, 4]), np.array([0, 1, 2, 0]), weights, 3)
    np.testing.assert_allclose(effective_sizes(sets), [25 / 11, 0, 1])
    order = np.array([2, 0, 1])
    assert with_permuted_points(sets, order).indices.tolist() == [2, 0, 1, 2]
    both = Neighbourhood(direction="both")(np.array([[0, 1], [1, 2]]))
    moved = with_permuted_points(both, order)
    assert moved.parts.indices.tolist() == order[both.indices].tolist()
    lifted = with_permuted_points(Differences()(np.array([[0, 1], [1, 2]])), order)
    assert lifted.subgraphs.tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("options", "word"),
    [({"n_permutations": 0}, "n_permutations"), ({"tail": "chi2"}, "tail"), ({"nodes": [99]}, "nodes")],
)
def test_bad_options_are_named(options, word):
    X, A = np.random.default_rng(1).normal(size=(N, 5)), directed_graph(N, density=0.1)
    with pytest.raises(InputError, match=word):
        explainer(X, A).neighbourhood_scores(**options)
