"""The bars of an estimator move while it learns, walks and runs, and a plan says how much work each part is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph import FisherEmbedding, FisherSetEmbedding
from fishergraph._parallel import map_blocks, progress_steps, progress_to, row_blocks
from fishergraph._progress import costing
from fishergraph.costs import writing_cost
from models import PUBLISHED, graph_model, node_model

N = 6000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 12)).astype(np.float32)
A = sp.random_array((N, N), density=1e-3, rng=RNG, format="csr")


class Watch:
    """A `verbose` that keeps the plan, and of every part its title, its steps, and the sizes of its moves."""

    def __init__(self):
        self.plan, self.parts = {}, []

    def expect(self, costs):
        self.plan = dict(costs)

    def __call__(self, title, steps):
        self.parts.append((title, steps, []))
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error): ...

    def update(self, n):
        self.parts[-1][2].append(n)

    def check(self) -> dict[str, list[int]]:
        """The moves by title; no part goes beyond its end or ends before it."""
        assert all(sum(moves) == steps for _, steps, moves in self.parts)
        assert all(n >= 0 for _, _, moves in self.parts for n in moves)
        return {title: moves for title, _, moves in self.parts}


def model(**changes) -> FisherEmbedding:
    small = {"n_layers": 2, "n_anchors": 4, "dim": 32, "structure": "auto", "random_state": 0, "n_jobs": 1}
    return node_model(**{**small, **changes})


CASES = {
    "defaults": {},
    "no structure": {"structure": None},
    "no walks": {"walk": None},
    "no features": {},
    "eigenvectors": {"structure": "spectral", "walk": None, "n_layers": 1},
    "identity": {"kernel": "identity", "n_layers": 1},
    "another family": {"family": "diagonal-mixture"},
    "published": PUBLISHED,
    "diffusion": {"multiset": "ppr"},
    "paths": {"multiset": "paths", "n_layers": 1},
    "no layer": {"n_layers": 0},
}


@pytest.mark.filterwarnings("ignore:asked for")
@pytest.mark.parametrize("case", CASES)
def test_the_plan_names_every_part_in_order(case):
    watch, again, features = Watch(), Watch(), None if case == "no features" else X
    fitted = model(verbose=watch, **CASES[case])
    Z = fitted.fit_transform(features, graph=A)
    np.testing.assert_array_equal(fitted.set_params(verbose=again).transform(features, graph=A), Z)
    reading = [title for title in ("structure", "multisets") if title in watch.check()]
    for run in (watch, again):
        run.check()
        assert [title for title, _, _ in run.parts] == [*reading, *run.plan]
        assert all(cost > 0 for cost in run.plan.values())
    assert not any(title.startswith("learning") for title in again.plan)


def test_learning_moves_step_by_step():
    watch = Watch()
    model(verbose=watch).fit_transform(X, graph=A)
    moves = watch.check()
    for title in ("learning input map", "learning layer 1/2", "learning layer 2/2"):
        assert len(moves[title]) > 4, (title, moves[title])
        assert max(moves[title]) <= 60, (title, moves[title])
    assert len(moves["walking"]) > 10


def test_structure_and_multisets_move():
    watch = Watch()
    model(verbose=watch, multiset="ppr", n_layers=1).fit(graph=A)
    moves = watch.check()
    assert len(moves["structure"]) >= 3
    assert len(moves["multisets"]) > 4


def test_sets_and_graphs_move():
    watch = Watch()
    sets = list(RNG.normal(size=(1500, 4, 3)))
    FisherSetEmbedding(8, 32, verbose=watch, random_state=0).fit(sets)
    assert len(watch.check()["learning sets"]) > 4
    watch = Watch()
    graph_model(nodes__n_layers=1, verbose=watch, random_state=0).fit([(X[:50], A[:50][:, :50])] * 30)
    assert len(watch.check()["learning graphs, stage 0"]) > 2


def test_the_classifier_learns_before_it_trains():
    pytest.importorskip("torch")
    from fishergraph import FisherClassifier
    from fishergraph.nn import Training

    class Train(Watch):
        def set_postfix(self, **values): ...

    watch = Train()
    training = Training(max_epochs=3)
    model = FisherClassifier(1, dim=16, training=training, verbose=watch, random_state=0)
    model.fit(X, np.arange(N) % 2, graph=A)
    moves = watch.check()
    assert list(moves) == ["learning", "training"]
    assert len(moves["learning"]) > 4


def test_costs_that_are_wrong_still_end_at_the_end():
    watch = Watch()
    for told, cost in ((1e9, 1.0), (1.0, 1e9), (0.0, 0.0)):
        with costing(watch, "part", cost):
            advance = progress_steps(told, 4)
            assert advance is not None
            for _ in range(4):
                advance(1)
            assert sum(watch.parts[-1][2]) < 100
    watch.check()


def test_blocks_inside_blocks_are_not_received_twice():
    received = []

    def block(rows):
        return map_blocks(lambda inner: inner, row_blocks(10, 2))

    with progress_to(received.append):
        map_blocks(block, row_blocks(40, 10), n_jobs=2)
    assert sum(received) == pytest.approx(1)
    assert progress_steps(1.0, 3) is None


def test_text_takes_longest_to_write():
    assert writing_cost(".npz", 100) < writing_cost(".parquet", 100) < writing_cost(".csv", 100)
