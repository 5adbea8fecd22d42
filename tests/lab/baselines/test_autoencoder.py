"""Graph autoencoders: they learn, the judging edges change nothing, and a seed decides."""

from __future__ import annotations

import numpy as np
import pytest

from fishergraph import split_edges
from fishergraph._errors import InputError
from fishergraph.probes import EdgeSplit, Links, link_metrics
from link_problem import community_graph

pytest.importorskip("torch_geometric")
from fishergraph.lab.baselines.autoencoder import GraphAutoencoder

X, GRAPH = community_graph()
SPLIT = split_edges(GRAPH, val=0.1, test=0.2, random_state=0)


@pytest.mark.parametrize("settings", [{}, {"variational": True}, {"decoder": "mlp"}, {"dropout": 0.3}])
def test_it_tells_edges_from_other_pairs(settings):
    model = GraphAutoencoder(16, 8, epochs=60, lr=0.02, n_jobs=1, **settings).fit(X, SPLIT)
    found = link_metrics(model.decision_function(SPLIT.test), SPLIT.test.edges)
    assert found["auc"] > 0.7
    assert model.vectors_.shape == (GRAPH.n_nodes, 8)
    assert model.val_score_ == pytest.approx(
        link_metrics(model.decision_function(SPLIT.val), SPLIT.val.edges)["auc"]
    ), "the weights are those of the best epoch"


def test_the_judging_edges_change_nothing_and_the_seed_decides():
    nothing = Links(np.zeros((2, 2), int), np.array([True, False]))
    split = EdgeSplit(SPLIT.graph, SPLIT.train, SPLIT.val, nothing, SPLIT.directed)
    fits = [
        GraphAutoencoder(8, 4, epochs=10, n_jobs=1).fit(X, part, seed=s)
        for part, s in ((SPLIT, 0), (split, 0), (split, 1))
    ]
    np.testing.assert_array_equal(fits[0].vectors_, fits[1].vectors_)
    assert (fits[1].vectors_ != fits[2].vectors_).any()


@pytest.mark.parametrize("settings", [{"hidden": 0}, {"epochs": 0}, {"dropout": 2}, {"decoder": "cosine"}])
def test_settings_are_checked(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        GraphAutoencoder(**settings).fit(X, SPLIT)
