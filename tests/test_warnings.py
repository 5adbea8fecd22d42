"""Each kind of warning is issued once per fit, and points to the line that called the library."""

from __future__ import annotations

import warnings
from collections import Counter
from threading import Thread

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph import (
    EM,
    FisherEmbedding,
    FisherSetEmbedding,
    GaussianMixture,
    LogisticProbe,
    em_means,
)
from fishergraph._errors import FewPointsWarning
from fishergraph._warn import each_warning_once, warn
from fishergraph.multiset import Multisets
from fishergraph.ops.transport import rules
from models import graph_model

N = 1200  # several row blocks
RING = sp.csr_array((np.ones(N), (np.arange(N), (np.arange(N) + 1) % N)), shape=(N, N))
FEW = np.eye(3)[np.arange(N) % 3]  # three distinct rows


def kinds(call) -> Counter:
    """How often each kind of warning is issued."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        call()
    return Counter(_kind(entry.message) for entry in issued)


def _kind(warning: Warning) -> str:
    return warning.what if isinstance(warning, FewPointsWarning) else str(warning).partition(" ")[0]


@pytest.fixture
def unmet(monkeypatch):
    """Every row block says that its transport steps did not converge."""
    from fishergraph.ops.iterate import numba as iterate

    em_rows = iterate.em_rows
    monkeypatch.setattr(iterate, "em_rows", lambda *inputs: em_rows(*inputs) or 1.0)


def test_few_points_in_every_layer():
    model = FisherEmbedding(n_layers=3, n_anchors=5, dim=8, random_state=0)
    found = kinds(lambda: model.fit(FEW, graph=RING))
    assert found == {"landmarks": 1, "anchors": 1}


def test_the_next_fit_says_it_again():
    model = FisherEmbedding(n_layers=1, n_anchors=2, dim=8, random_state=0)
    found = kinds(lambda: [model.fit(FEW, graph=RING) for _ in range(3)])
    assert found["landmarks"] == 3


def test_every_block_of_every_layer_misses_its_masses(unmet):
    model = FisherEmbedding(
        n_layers=2, n_anchors=4, dim=8, random_state=0, em=EM(e_step="balanced"), family=GaussianMixture(variance=1e-3)
    )
    X = np.random.default_rng(0).normal(size=(N, 6))
    assert kinds(lambda: model.fit_transform(X, graph=RING)) == {"a": 1}
    assert kinds(lambda: model.transform(X, graph=RING)) == {"a": 1}


def test_all_kinds_of_one_fit(unmet):
    X = np.repeat(np.array([[-1.0], [2.0]]), N // 2, axis=0)
    model = FisherEmbedding(
        n_layers=2, n_anchors=2, dim=8, random_state=0, em=EM(e_step="balanced"), family=GaussianMixture(variance=1e-6)
    )
    found = kinds(lambda: model.fit_transform(X, graph=RING))
    assert {"X", "landmarks"} <= set(found)
    assert set(found.values()) == {1}


def test_sets(unmet):
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(3, 2)) for _ in range(N)]
    sets[-3:] = sets[:3]
    model = FisherSetEmbedding(
        n_anchors=4,
        dim=N,
        random_state=0,
        em=EM(e_step="balanced", prior=1.0),
        family=GaussianMixture(variance=1e-3, sharpness=0.5),
    )
    assert kinds(lambda: model.fit_transform(sets)) == {"a": 1, "landmarks": 1}


def test_fewer_rows_than_landmarks_are_no_surprise():
    X = np.random.default_rng(0).normal(size=(9, 4))
    assert kinds(lambda: FisherEmbedding(random_state=0).fit_transform(X)) == {}
    assert kinds(lambda: FisherEmbedding(dim=9, random_state=0).fit_transform(X[[*range(8), 0]])) == {"landmarks": 1}


def test_em_means(unmet):
    rng = np.random.default_rng(0)
    sets = Multisets(RING.indptr.astype(np.int64), RING.indices.astype(np.int32), None, N)
    points, anchors = rng.normal(size=(N, 3)), rng.normal(size=(4, 3))
    assert kinds(lambda: em_means(points, sets, anchors, variance=1e-3, e_step="balanced")) == {"a": 1}


def test_graphs_do_not_warn_of_few_points():
    star = sp.csr_array((np.ones(3), ([1, 2, 3], [0, 0, 0])), shape=(4, 4))
    assert kinds(lambda: graph_model(nodes__n_layers=2, random_state=0).fit([star] * 3)) == {}


def test_a_probe_that_ends_early_at_every_strength():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    rows = np.arange(60)
    assert kinds(lambda: LogisticProbe(max_iter=1, tol=1e-12).fit(Z, y, rows[:40], rows[40:])) == {"the": 1}


def test_the_classifier_learns_from_few_points():
    pytest.importorskip("torch")
    from fishergraph import FisherClassifier
    from fishergraph.nn import Training

    model = FisherClassifier(n_layers=3, n_anchors=5, dim=8, training=Training(max_epochs=3), random_state=0)
    found = kinds(lambda: model.fit(FEW, np.arange(N) % 2, graph=RING))
    assert found == {"landmarks": 1, "anchors": 1}


def test_every_epoch_misses_its_masses(monkeypatch):
    pytest.importorskip("torch")
    from fishergraph import FisherClassifier
    from fishergraph.nn import Training
    from fishergraph.ops.transport import torch as transport

    def solve(*inputs):
        rules.warn_unmet(1.0, 1e-6, 1)
        return chunk(*inputs)

    chunk = transport._solve_chunk
    monkeypatch.setattr(transport, "_solve_chunk", solve)
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    steps = {"em": EM(e_step="balanced"), "training": Training(max_epochs=3)}
    model = FisherClassifier(n_layers=2, n_anchors=3, dim=4, **steps, random_state=0)
    assert kinds(lambda: model.fit(X, y, graph=RING[:60][:, :60])) == {"a": 1}


def test_a_warning_points_to_the_call():
    with pytest.warns(FewPointsWarning) as issued:
        FisherEmbedding(n_layers=1, n_anchors=2, dim=8, random_state=0).fit_transform(FEW, graph=RING)
    assert {entry.filename for entry in issued} == {__file__}


def test_contexts_and_threads():
    def both():
        with each_warning_once(), each_warning_once(silence=(FewPointsWarning,)):
            from contextvars import copy_context

            context = copy_context()
            threads = [Thread(target=context.copy().run, args=(warn, "loud", "loud")) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            warn(FewPointsWarning(what="quiet"))
            warn("loud", "loud")

    assert kinds(both) == {"loud": 1}
    with each_warning_once():
        with each_warning_once(silence=(FewPointsWarning,)):
            pass
        with pytest.warns(FewPointsWarning, match="quiet"):
            warn(FewPointsWarning(what="quiet"))
