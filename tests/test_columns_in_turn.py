"""A large output takes memory column by column, and has the bits of a small one; stages free what they read."""

from __future__ import annotations

import weakref
from itertools import pairwise

import numpy as np
import pytest

from fishergraph import FisherEmbedding, load_graph, passes
from fishergraph import device as devices
from fishergraph.device import ColumnsInTurn
from fishergraph.layer import Run
from fishergraph.multiset import Neighbourhood
from fishergraph.passes import Pass


@pytest.fixture(params=[1, 300, 1000, 10**9], ids="chunk of {} bytes".format)
def all_large(request, monkeypatch):
    monkeypatch.setattr(passes, "LARGE", 0)
    monkeypatch.setattr(devices, "_CHUNK", request.param)


@pytest.mark.parametrize("n_rows", [1, 23, 40])
@pytest.mark.parametrize("borders", [(0, 5), (0, 1, 2, 7), (0, 3, 9, 11)])
def test_columns_that_are_written_in_turn_stand_side_by_side(all_large, n_rows, borders):
    rng = np.random.default_rng(0)
    expected = rng.standard_normal((n_rows, borders[-1])).astype(np.float32)
    columns = ColumnsInTurn((n_rows, borders[-1] + 2), np.float32)  # the data may give fewer columns
    for first, last in pairwise(borders):
        group = columns[:, first:last]
        cuts = [0, *sorted(rng.integers(0, n_rows + 1, 3).tolist()), n_rows]
        for start, stop in rng.permutation(list(pairwise(cuts))).tolist():
            group[slice(start, stop)] = expected[start:stop, first:last]
    result = np.asarray(columns)
    assert result.shape == (n_rows, borders[-1] + 2)
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result[:, : borders[-1]], expected)


def test_the_memory_of_later_columns_is_not_touched(monkeypatch):
    """Of a chunk with three groups, the first group is in the first third of its memory."""
    memory = np.full((10, 6), -1.0, np.float32)
    monkeypatch.setattr(devices.np, "empty", lambda shape, dtype: memory)
    columns = ColumnsInTurn((10, 6), np.float32)
    columns[:, 0:2][slice(0, 10)] = np.zeros((10, 2))
    assert (memory.reshape(-1)[:20] == 0).all()
    assert (memory.reshape(-1)[20:] == -1).all()


def test_a_large_embedding_has_the_bits_of_a_small_one(all_large, monkeypatch):
    cora = load_graph("cora")
    settings = {"dim": 24, "random_state": 0, "block_weights": [1, 0, 2, 1, 0.5, 1, 1]}
    large = FisherEmbedding(**settings).fit(cora.X, graph=cora.graph)
    Z = large.transform(cora.X, graph=cora.graph)
    fitted = FisherEmbedding(**settings).fit_transform(cora.X, graph=cora.graph)
    made = []
    monkeypatch.setattr(passes, "LARGE", 2**60)
    monkeypatch.setattr(ColumnsInTurn, "__init__", lambda self, *shape: made.append(shape))
    expected = FisherEmbedding(**settings).fit_transform(cora.X, graph=cora.graph)
    np.testing.assert_array_equal(Z, expected)
    np.testing.assert_array_equal(fitted, expected)
    assert not made


def test_a_stage_frees_what_it_read():
    """The points of a layer are gone when the one after the next begins, also if somebody keeps the stages."""
    cora = load_graph("cora")
    X = cora.X[:, :40].toarray()
    sets = Neighbourhood().sets(cora.graph, None, X.dtype)
    stack = FisherEmbedding(3, dim=8, walk=None, structure=None).settings()
    streams = list(map(np.random.default_rng, range(len(stack.block_weights))))
    kept, alive = [], []
    for stage in Pass(stack, X, sets, Run(), streams=streams).stages():
        alive.append([points() is not None for points in kept])
        stage.run(Run())
        if stage.points is not None:
            kept.append(weakref.ref(stage.points))
        stages = [stage]
    assert stages
    assert alive == [[], [True], [False, True], [False, False, True]]
