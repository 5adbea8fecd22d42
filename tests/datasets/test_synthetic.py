"""The check that attention matters: one mean, different modes. Mean pooling stays at chance, the mixture does not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fishergraph import FisherEmbedding, FisherSetEmbedding, GaussianMixture
from fishergraph.datasets import equal_mean_graph, equal_mean_sets


def probe():
    return make_pipeline(StandardScaler(), LogisticRegression())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_sets_have_one_mean(n_classes):
    sets, y = equal_mean_sets(60, 10, n_classes)
    assert {len(s) for s in sets} == {10}
    assert np.abs([s.mean(axis=0) for s in sets]).max() < 1e-15
    assert np.bincount(y).tolist() == [60 // n_classes] * n_classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_on_sets_the_mixture_sees_what_the_mean_does_not(n_classes):
    sets, y = equal_mean_sets(n_classes=n_classes, seed=1)
    scores = {
        p: cross_val_score(make_pipeline(FisherSetEmbedding(p, counts=False, random_state=0), probe()), sets, y).mean()
        for p in (1, 8)
    }
    assert scores[8] > 0.95
    assert abs(scores[1] - 1 / n_classes) < 0.1


def test_soft_counts_do_not_help_mean_pooling():
    sets, y = equal_mean_sets(seed=2)
    model = FisherSetEmbedding(1, counts=True, random_state=0)
    assert abs(cross_val_score(make_pipeline(model, probe()), sets, y).mean() - 0.5) < 0.1


def test_on_neighbourhoods_the_mixture_sees_what_the_mean_does_not():
    data = equal_mean_graph(seed=3)
    neighbours = [data.X[data.graph.indices[a:b]] for a, b in itertools.pairwise(data.graph.indptr[:401])]
    assert np.abs([s.mean(axis=0) for s in neighbours]).max() < 1e-6
    scores = {}
    for p in (1, 8):
        components = {"family": GaussianMixture(sharpness=0.5), "kernel": "identity", "walk": None, "structure": None}
        model = FisherEmbedding(1, p, normalize=False, random_state=0, **components)
        Z = model.fit_transform(data.X, graph=data.graph)
        seen = np.concatenate([data.train, data.val])
        scores[p] = probe().fit(Z[seen], data.y[seen]).score(Z[data.test], data.y[data.test])
    assert scores[8] > 0.95
    assert abs(scores[1] - 0.5) < 0.12


def test_the_graph_is_what_it_says():
    data = equal_mean_graph(40, 6, 2)
    assert data.n_nodes == 120
    assert (data.X[:40] == 0).all()
    assert set(data.y[40:]) == {-1}
    assert sorted(np.concatenate(data.split())) == list(range(40))
    assert (np.diff(data.graph.indptr)[:40] == 6).all()


@pytest.mark.parametrize("changes", [{"n_members": 3}, {"n_classes": 1}, {"noise": -1.0}, {"n_sets": 2}])
def test_what_cannot_be_made(changes):
    with pytest.raises(ValueError, match="must be"):
        equal_mean_sets(**changes)
