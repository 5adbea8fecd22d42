"""Multisets by the direction of edges: on a store they have the members, and give the bits, of a run in memory."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph import FisherEmbedding, Neighbourhood
from fishergraph._errors import InputError
from fishergraph.graph import as_graph
from fishergraph.scale import Store, neighbours, plan, update, verify, write_store
from fishergraph.scale.run import LocalExecutor
from fishergraph.scale.sets import build_sets
from fishergraph.scale.updating.graph import different_sets
from scale.stores import small_budget, small_parts

RULES = {
    "both": Neighbourhood(direction="both"),
    "out": Neighbourhood(direction="out"),
    "both, symmetric": Neighbourhood(direction="both", weights="symmetric"),
    "both, open, uniform": Neighbourhood(direction="both", closed=False, weights="uniform"),
}


def directed_graph(n_nodes=700, *, weighted=False):
    """Edges one way, with hubs, loops, and nodes without edges; and features."""
    rng = np.random.default_rng(1)
    sources = rng.integers(n_nodes - 9, size=5 * n_nodes)
    targets = (n_nodes * rng.random(5 * n_nodes) ** 2).astype(int)
    values = rng.integers(1, 9, size=5 * n_nodes).astype(np.float32)
    A = sp.csr_array((values, (targets, sources)), shape=(n_nodes, n_nodes))
    A.sum_duplicates()
    if not weighted:
        A.data[:] = 1
    return as_graph(A), rng.standard_normal((n_nodes, 20)).astype(np.float32)


def model(rule, **settings):
    chosen = {"n_layers": 2, "structure": None, "dim": 16, "random_state": 3, **settings}
    return FisherEmbedding(multiset=rule, **chosen)


@pytest.fixture
def ranges(monkeypatch):
    """Build from many chunks of rows, and many ranges of the reversed graph."""
    monkeypatch.setattr(neighbours, "_CHUNK_ENTRIES", 600)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_members_are_those_of_memory(tmp_path, ranges, name, weighted):
    graph, _ = directed_graph(weighted=weighted)
    store = write_store(tmp_path / "s", graph)
    stored = build_sets(store, RULES[name], np.float32, memory=0).loaded()
    expected = RULES[name].sets(graph)
    for one, other in ((stored, expected), (stored.apart(), expected.apart())):
        np.testing.assert_array_equal(one.indptr, other.indptr)
        np.testing.assert_array_equal(one.indices, other.indices)
        if other.weights is None:
            assert one.weights is None
        else:
            np.testing.assert_array_equal(one.weights, other.weights)
    folders = list((store.path / "multisets").iterdir())
    assert [path.name for folder in folders for path in folder.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_bits_are_those_of_memory(tmp_path, monkeypatch, name, tiled):
    graph, X = directed_graph(weighted=True)
    store = write_store(tmp_path / "s", graph, X)
    small_parts(monkeypatch)
    if tiled:
        small_budget(monkeypatch)
    settings = {"counts": name == "both", "walk": None if "open" in name else 0.1}
    in_memory, stored = model(RULES[name], **settings), model(RULES[name], **settings)
    Z = in_memory.fit_transform(X, graph=graph)
    np.testing.assert_array_equal(np.asarray(stored.fit_transform(store)), Z)
    again = in_memory.transform(Store(store.path, name="again"))
    np.testing.assert_array_equal(np.asarray(again), Z)
    found = verify(store, random_state=0)
    assert found.is_same, str(found)


class Interrupted(Exception):
    pass


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    graph, X = directed_graph()
    store = write_store(tmp_path / "s", graph, X)
    small_parts(monkeypatch)
    small_budget(monkeypatch)
    expected = model(RULES["both"]).fit_transform(X, graph=graph)

    def interrupted(self, folder, task, log, advance):
        """Stop after one missing part."""
        for part in log.missing[:1]:
            log.mark(part, task.compute(part, advance))
            raise Interrupted

    monkeypatch.setattr(LocalExecutor, "run", interrupted)
    count = 0
    while True:
        try:
            S = model(RULES["both"]).fit_transform(store)
            break
        except Interrupted:
            count += 1
    assert count > 10
    np.testing.assert_array_equal(np.asarray(S), expected)


def test_an_update_sees_an_edge_that_turns(tmp_path):
    graph, X = directed_graph(300)
    store = write_store(tmp_path / "s", graph, X)
    fitted = model(RULES["both"], walk=None)
    fitted.fit_transform(store)
    row = int(np.flatnonzero(np.diff(graph.indptr) == 3)[0])
    first = int(graph.indices[graph.indptr[row]])
    update(store, edges=[(row, first)], remove=[(first, row)])
    expected = fitted.transform(Store(store.path, name="full"))
    np.testing.assert_array_equal(np.load(store.path / "embeddings/default/psi2.npy"), expected.block("psi2")[:])
    assert verify(store).is_same


def test_sets_differ_if_a_member_changes_its_side(tmp_path):
    """All members together are the same there."""
    rule = RULES["both, open, uniform"]
    stores = [
        write_store(tmp_path / f"{k}", as_graph(np.array(e), n_nodes=3)) for k, e in enumerate(([[0], [1]], [[1], [0]]))
    ]
    before, after = (build_sets(store, rule, np.float32, memory=0) for store in stores)
    np.testing.assert_array_equal(before.loaded().indices, after.loaded().indices)
    assert different_sets(before, after).tolist() == [0, 1]


def test_the_plan_counts_both_sides(tmp_path):
    graph, X = directed_graph()
    store = write_store(tmp_path / "s", graph, X)
    found = plan(store, model(RULES["both"]))
    model(RULES["both"]).fit_transform(store)
    (folder,) = (store.path / "multisets").iterdir()
    files = sum(path.stat().st_size for path in folder.glob("*.npy"))
    (stage,) = (stage for stage in found.stages if stage.name == "multisets")
    assert files <= stage.kept <= 1.2 * files


def test_training_reads_one_direction(tmp_path):
    graph, X = directed_graph()
    store = write_store(tmp_path / "s", graph, X)
    with pytest.raises(InputError) as caught, store.rows.open(RULES["both"], np.float32):
        pass
    assert caught.value.parameter == "direction"
