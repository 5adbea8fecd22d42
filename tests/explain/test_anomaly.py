"""Anomaly scores: the three parts from their equations, and the nodes they find."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import reference as ref
from directed_graph import directed_graph
from fishergraph import Explainer, FisherEmbedding, Neighbourhood
from fishergraph.explain.anomaly import neighbours, residuals, surprisal
from fishergraph.multiset import Differences
from models import node_model

N = 40


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, 5))


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return directed_graph(N, density=0.1)


def test_context_and_discord_are_those_of_the_equations(X, A):
    """With kernel="identity" the points are the unit rows of X."""
    model = node_model(1, 2, 6, kernel="identity", random_state=0).fit(X, graph=A)
    found = Explainer(model, X, graph=A).anomaly_scores()
    points = np.array([ref.unit(row) for row in X])
    points -= points.mean(axis=0)
    context, coherence, sizes = np.full((3, N), np.nan)
    for v in range(N):
        near = [(u, a) for u, a in enumerate(A.toarray()[v]) if a > 0 and u != v]
        total = sum(a for _, a in near)
        if not near:
            continue
        mean = sum(a * points[u] for u, a in near) / total
        context[v] = -(points[v] @ mean) / np.linalg.norm(points[v])
        pairs = [(a * b, points[u] @ points[w]) for u, a in near for w, b in near if u != w]
        sizes[v] = total**2 / sum(a * a for _, a in near)
        if pairs:
            coherence[v] = sum(ab * product for ab, product in pairs) / sum(ab for ab, _ in pairs)
    np.testing.assert_allclose(found.context, context, rtol=1e-6)
    np.testing.assert_allclose(
        found.discord, (np.nanmedian(coherence) - coherence) * np.sqrt(sizes), rtol=1e-5, atol=1e-7
    )
    assert np.isnan(found.novelty).all()  # the identity has no landmarks


def test_residuals_are_what_landmarks_do_not_represent(X, A):
    model = node_model(1, 2, 6, random_state=0).fit(X, graph=A)
    explainer = Explainer(model, X, graph=A)
    found = residuals(explainer._binding, None)
    Z, ends = model.transform(X, graph=A), np.cumsum([width for _, width in model.blocks_])[:-1]
    blocks = dict(zip([name for name, _ in model.blocks_], np.split(Z, ends, axis=1), strict=True))
    assert list(found) == ["psi0", "psi1", "walk"]
    np.testing.assert_allclose(found["psi0"], 1 - (blocks["psi0"] ** 2).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(found["walk"], 1 - (blocks["walk"] ** 2).sum(axis=1), rtol=1e-9)
    for v in (0, 7, 30):
        phi = explainer._views["psi1"].row(v).phi
        assert found["psi1"][v] == pytest.approx(1 - (blocks["psi1"][v] ** 2).sum() / (phi @ phi))
    spreads = [(r - np.median(r)) / np.median(np.abs(r - np.median(r))) for r in found.values()]
    np.testing.assert_allclose(explainer.anomaly_scores().novelty, np.sum(spreads, axis=0))


def test_the_score_is_the_largest_surprise_of_the_three(X, A):
    found = Explainer(node_model(1, 2, 6, random_state=0).fit(X, graph=A), X, graph=A).anomaly_scores()
    for v in range(N):
        own = {}
        for part in ("context", "discord", "novelty"):
            values = getattr(found, part)
            known = values[~np.isnan(values)]
            rank = (
                0.5
                if np.isnan(values[v])
                else (np.sum(known < values[v]) + 0.5 * np.sum(known == values[v])) / len(known)
            )
            own[part] = -np.log(1 - rank)
        assert found.scores[v] == pytest.approx(max(own.values()))
        assert found.reasons[v] == max(own, key=own.get)
    listing = found.listing()
    assert (np.diff(listing["score"]) <= 0).all()
    assert listing["reason"][0] == found.reasons[listing["row"][0]]
    assert found.to_pandas()["score"].dtype == np.float64


def test_equal_values_share_a_rank():
    np.testing.assert_allclose(surprisal(np.array([1.0, 1.0, 2.0, np.nan])), -np.log1p(-np.array([1, 1, 2.5, 1.5]) / 3))
    np.testing.assert_allclose(surprisal(np.full(3, np.nan)), np.log(2))


@pytest.fixture(scope="module")
def communities():
    """Three groups that prefer their own words and their own members."""
    rng, n = np.random.default_rng(0), 300
    group = np.arange(n) % 3
    X = (rng.random((n, 60)) < np.where(np.arange(60) % 3 == group[:, None], 0.25, 0.05)).astype(float)
    same = np.triu(rng.random((n, n)) < np.where(group[:, None] == group, 0.06, 0.003), 1)
    return X, sp.csr_array((same | same.T).astype(float)), group


def test_nodes_with_the_words_of_another_group_are_out_of_context(communities):
    X, A, group = communities
    odd = np.random.default_rng(1).choice(300, 12, replace=False)
    X = X.copy()
    X[odd] = X[[np.flatnonzero(group != group[v])[k] for k, v in enumerate(odd)]]
    found = Explainer(FisherEmbedding(2, 2, 32, random_state=0).fit(X, graph=A), X, graph=A).anomaly_scores()
    assert roc_auc_score(np.isin(np.arange(300), odd), np.nan_to_num(found.context)) > 0.9


def test_strangers_that_are_joined_are_in_discord(communities):
    X, A, _ = communities
    odd = np.random.default_rng(1).choice(300, 10, replace=False)
    joined = sp.lil_array(A)
    for v in odd:
        joined[[v], odd[odd != v]] = 1
    joined = sp.csr_array(joined)
    found = Explainer(FisherEmbedding(2, 2, 32, random_state=0).fit(X, graph=joined), X, graph=joined).anomaly_scores()
    assert roc_auc_score(np.isin(np.arange(300), odd), np.nan_to_num(found.discord)) > 0.9


def test_a_group_that_the_fit_has_not_seen_is_new(communities):
    X, A, group = communities
    known = np.flatnonzero(group != 2)
    model = FisherEmbedding(2, 2, 32, structure=None, random_state=0).fit(
        X[known], graph=sp.csr_array(A[known][:, known])
    )
    found = Explainer(model, X, graph=A).anomaly_scores()
    assert roc_auc_score(group == 2, found.novelty) > 0.9


@pytest.mark.parametrize("variant", [{}, {"multiset": Neighbourhood(direction="both")}, {"multiset": "pairs"}], ids=str)
def test_threads_change_no_bit_and_ranks_are_among_all_nodes(X, A, variant):
    explainer = Explainer(node_model(2, 2, 6, random_state=0, **variant).fit(X, graph=A), X, graph=A)
    whole, other = explainer.anomaly_scores(n_jobs=1), explainer.anomaly_scores(n_jobs=3)
    some = explainer.anomaly_scores([5, 9])
    for name in ("scores", "context", "discord", "novelty"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[[5, 9]])
    assert some.nodes.tolist() == [5, 9]


def test_neighbours_are_the_other_members():
    edges = np.array([[0, 1, 1], [1, 1, 2]])  # 0 → 1, 1 → 1, 1 → 2
    expected = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert neighbours(Neighbourhood()(edges)).toarray().tolist() == expected
    assert neighbours(Differences()(edges)).toarray().tolist() == expected
    both = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert neighbours(Neighbourhood(direction="both")(edges)).toarray().tolist() == both
