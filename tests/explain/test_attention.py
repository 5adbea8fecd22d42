"""Attention of one node and of all nodes, anchors in words, and how sure an estimate is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import reference as ref
import reference_explain as slow
from directed_graph import directed_graph
from fishergraph import Explainer, FisherEmbedding, GaussianMixture, Neighbourhood, PageRank
from fishergraph._errors import InputError
from fishergraph.explain.layers import LayerView
from fishergraph.layer import Layer
from fishergraph.multiset import Multisets
from models import node_model

N = 40


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, 5))


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return directed_graph(N, density=0.1)


def fitted(X, A, **variant) -> FisherEmbedding:
    return node_model(**{"n_layers": 2, "n_anchors": 3, "dim": 6, "random_state": 0, **variant}).fit(X, graph=A)


def test_attention_is_that_of_the_equation(X, A):
    model = fitted(X, A, n_layers=1)
    psi0 = model.transform(X, graph=A)[:, : model.blocks_[0][1]]
    points, sets = np.array([ref.unit(row) for row in psi0]), Neighbourhood()(A)
    theta = model.stack_.layers[0].theta
    explainer = Explainer(model, X, graph=A)
    for v in (0, 7, 30):
        rows = slice(sets.indptr[v], sets.indptr[v + 1])
        members = list(zip(sets.indices[rows].tolist(), sets.weights[rows].tolist(), strict=True))
        found = explainer.explain(v)
        np.testing.assert_array_equal(found.members, sets.indices[rows])
        np.testing.assert_allclose(found.attention, slow.attention(points, members, theta.anchors, theta.variance))
        _, mass = ref.em_means(points, [members], theta.anchors, theta.variance)
        np.testing.assert_allclose(found.mass, mass[0])
        weights = np.array([a for _, a in members])
        assert found.effective_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
        assert found.anchors.tolist() == np.argsort(-mass[0]).tolist()


VARIANTS = [
    {},
    {"multiset": Neighbourhood(direction="both")},
    {"multiset": PageRank(members=8)},
    {"multiset": "open-neighbourhood"},
    {"multiset": "pairs"},
    {"em__e_step": "balanced"},
    {"em__n_iter": 2},
    {"family": "diagonal-mixture"},
    {"family__variance": 1e-4},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_attention_of_all_nodes_is_that_of_each(X, A, variant):
    explainer = Explainer(fitted(X, A, **variant), X, graph=A)
    for block, rows in explainer.attention_all().items():
        assert len(rows.indptr) == N + 1
        for v in range(N):
            own, one = slice(rows.indptr[v], rows.indptr[v + 1]), explainer.explain(v, block=block)
            np.testing.assert_array_equal(rows.indices[own], one.rows)
            np.testing.assert_allclose(rows.weights[own], one.weights, rtol=1e-6)
            np.testing.assert_allclose(rows.attention[own], one.attention, rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(rows.mass[v], one.mass, rtol=1e-5, atol=1e-7)


def test_threads_change_no_bit_of_the_attention(X, A):
    model = fitted(X, A)
    first, second = (
        Explainer(model.set_params(n_jobs=n_jobs), X, graph=A).attention_all()["psi2"].attention for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(first, second)


def test_attention_is_a_share_of_each_anchor(X, A):
    for variant in VARIANTS:
        found = Explainer(fitted(X, A, **variant), X, graph=A).explain(int(np.argmax(np.diff(A.indptr))))
        np.testing.assert_allclose(found.attention.sum(axis=0), 1)
        kinds = 2 if "both" in str(variant) else 1
        np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1)
        assert found.attention.shape == (len(found.members), 3 * kinds)


def test_anchors_are_described_by_what_their_nodes_have():
    """Two groups of nodes with words of their own, apart in the graph: an anchor for each."""
    rng = np.random.default_rng(0)
    group = np.arange(60) % 2
    X = (rng.random((60, 6)) < 0.1).astype(float)
    X[:, [0, 2]] = 0
    X[np.arange(60), 2 * group] = 1
    A = sp.csr_array((group[:, None] == group) * (rng.random((60, 60)) < 0.2).astype(float))
    model = node_model(1, 2, 16, family=GaussianMixture(sharpness=0.1), random_state=0).fit(X, graph=A)
    for matrix in (X, sp.csr_array(X)):
        found = Explainer(model, matrix, graph=A).describe_anchors(["tea", "b", "sea", "d", "e", "f"], n_columns=2)
        assert found.anchors["n_closest"].tolist() == [30, 30]
        assert found.anchors["n_nodes"].sum() == pytest.approx(60)
        words = [{"tea", "sea"} == set(found.columns["name"][found.columns["anchor"] == j]) for j in range(2)]
        assert all(words)
        for j in range(2):
            nodes = found.nodes["node"][found.nodes["anchor"] == j]
            assert len(nodes) == 3
            assert len(set(group[nodes])) == 1
            own = found.columns.take(found.columns["anchor"] == j)
            more = own["name"][own["z"] > 0].tolist()
            assert more == [["tea", "sea"][group[nodes[0]]]]
            weights = np.exp(found_logs(model, matrix, A)[:, j])
            mean = (weights @ X) / weights.sum()
            np.testing.assert_allclose(own["mean"], mean[own["column"]])
            np.testing.assert_allclose(own["overall"], X.mean(axis=0)[own["column"]])


def found_logs(model, X, A):
    """log α of the points of the first layer."""
    return Explainer(model, X, graph=A)._views["psi1"].point_logs(None)


def test_anchors_of_pairs_are_not_described(X, A):
    explainer = Explainer(fitted(X, A, multiset="pairs"), X, graph=A)
    with pytest.raises(InputError, match="several nodes"):
        explainer.describe_anchors()


# --- how sure ---------------------------------------------------------------------------------------------


def view_of(points: np.ndarray, sets: Multisets, **layer) -> LayerView:
    """A layer fitted on these points, which needs no graph."""
    from fishergraph.layer import Run

    fitted, _ = Layer(2, 4, **layer).fit(points, sets, Run(), np.random.default_rng(0))
    return LayerView("psi1", fitted, points, sets, None)


def test_the_standard_error_is_that_of_new_samples():
    """Multisets drawn again and again from one distribution: the spread of φ is what one of them says on average."""
    rng = np.random.default_rng(0)
    size, n_sets = 12, 4000
    points = rng.normal(size=(size * n_sets, 3)) * [1.0, 0.5, 2.0]
    sets = Multisets(np.arange(0, size * n_sets + 1, size), np.arange(size * n_sets), None, size * n_sets)
    for family in (GaussianMixture(), GaussianMixture(tangent="score"), GaussianMixture(fisher="exact")):
        view = view_of(points, sets, family=family)
        found = [view.row(v) for v in range(n_sets)]
        phi = np.array([each.phi for each in found])
        spread = ((phi - phi.mean(axis=0)) ** 2).sum(axis=1).mean()
        assert np.mean([each.standard_error**2 for each in found]) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("variant", [*VARIANTS, {"em__prior": 0.5}, {"family__tangent": "score"}], ids=str)
def test_standard_errors_of_all_nodes_are_those_of_each(X, A, variant):
    explainer = Explainer(fitted(X, A, **variant), X, graph=A)
    for block in explainer.layers:
        found = explainer.standard_errors(block=block)
        each = [explainer.explain(v, block=block) for v in range(N)]
        np.testing.assert_allclose(found["standard_error"], [one.standard_error for one in each], rtol=1e-6)
        np.testing.assert_allclose(found["effective_size"], [one.effective_size for one in each], rtol=1e-6)
        assert found["n_members"].tolist() == [len(one.members) for one in each]
        some = explainer.standard_errors([7, 3], block=block)
        np.testing.assert_array_equal(some["standard_error"], found["standard_error"][[7, 3]])


def test_one_member_says_nothing_of_its_error(X):
    single = Explainer(node_model(1, 2, 4, random_state=0).fit(X), X).explain(0)
    assert single.effective_size == 1
    assert np.isnan(single.standard_error)
