"""Structural columns of a store have the bits of those in memory, with any room, and go on after a kill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph import FisherEmbedding, Structure
from fishergraph._errors import FishergraphWarning
from fishergraph.graph import as_graph
from fishergraph.scale import Store, write_store
from fishergraph.scale.structure_files import FileStorage
from fishergraph.scale.structure_size import StructureRoom, StructureSize
from fishergraph.structural.both_ways import Edges, is_symmetric
from fishergraph.structural.rows import InMemory, Rows
from scale.stores import random_graph, small_budget, small_parts

# A few entries at once, two columns of float32 and one of float64, and mapped pages that are given back at once.
TINY = StructureRoom(most_entries=700, column_bytes=8, block_edges=1, n_bytes=10**6, limit=0)


@pytest.fixture
def little_room(monkeypatch):
    monkeypatch.setattr(StructureSize, "room", lambda *args: TINY)
    small_budget(monkeypatch)
    small_parts(monkeypatch)


def directed(n_nodes: int = 900, *, weighted: bool = False):
    """A directed graph with loops, hubs and isolated nodes."""
    rng = np.random.default_rng(1)
    ends = (n_nodes * rng.random(5 * n_nodes) ** 3).astype(int), rng.integers(n_nodes - 9, size=5 * n_nodes)
    weights = rng.random(5 * n_nodes) + 0.1 if weighted else np.ones(5 * n_nodes, np.float32)
    return as_graph(sp.csr_array((weights, ends), shape=(n_nodes, n_nodes)))


def undirected(*, weighted: bool = False):
    return random_graph(weighted=weighted)[0]


GRAPHS = {
    "undirected": undirected,
    "undirected, weights": lambda: undirected(weighted=True),
    "directed": directed,
    "directed, weights": lambda: directed(weighted=True),
    "no edges": lambda: as_graph(sp.csr_array((30, 30), dtype=np.float32)),
}


def model(**settings) -> FisherEmbedding:
    return FisherEmbedding(**{"n_layers": 1, "dim": 16, "random_state": 3, **settings})


def features(graph) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((graph.n_nodes, 6)).astype(np.float32)


@pytest.mark.filterwarnings("ignore::fishergraph._errors.FishergraphWarning")
@pytest.mark.parametrize("with_features", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_bits_are_those_of_memory_with_little_room(tmp_path, little_room, name, with_features):
    graph = GRAPHS[name]()
    X = features(graph) if with_features else None
    expected = model().fit(X, graph=graph)
    Z = expected.transform(X, graph=graph)
    fitted = model()
    stored = fitted.fit_transform(write_store(tmp_path / "s", graph, X))
    np.testing.assert_array_equal(np.asarray(stored), Z)
    np.testing.assert_array_equal(fitted.structure_.factors[0].basis, expected.structure_.factors[0].basis)
    again = fitted.transform(Store(tmp_path / "s", name="again"))
    np.testing.assert_array_equal(np.asarray(again), Z)


@pytest.mark.parametrize("text", [False, True])
def test_a_changed_graph_is_known_by_its_ids(tmp_path, little_room, text):
    graph, X = random_graph()
    ids = np.arange(5, 5 + graph.n_nodes)
    ids = np.array([f"node {k}" for k in ids], dtype=object) if text else ids
    graph = replace(graph, ids=ids)
    order = np.random.default_rng(0).permutation(graph.n_nodes)[:-20]
    fitted = model().fit(write_store(tmp_path / "s", graph, X))
    changed = graph[order]
    Z = model().fit(X, graph=graph).transform(X[order], graph=changed)
    np.testing.assert_array_equal(np.asarray(fitted.transform(write_store(tmp_path / "t", changed, X[order]))), Z)


def test_columns_of_another_graph_are_zero_with_a_warning(tmp_path, little_room):
    graph, X = random_graph()
    other, _ = random_graph(seed=9)
    shuffled = other[np.random.default_rng(0).permutation(other.n_nodes)]
    shuffled = replace(shuffled, ids=None)
    fitted = model(structure="factors").fit(write_store(tmp_path / "s", graph, X))
    with pytest.warns(FishergraphWarning, match="not those of the fit"):
        stored = fitted.transform(write_store(tmp_path / "t", shuffled, X))
    with pytest.warns(FishergraphWarning, match="not those of the fit"):
        Z = fitted.transform(X, graph=shuffled)
    np.testing.assert_array_equal(np.asarray(stored), Z)


class Killed(BaseException):
    """The process ends."""


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("graph", [undirected(), directed(weighted=True)])
def test_a_killed_run_goes_on_behind_the_last_array(tmp_path, monkeypatch, graph, changed):
    """A kill after every array in turn: none is made twice unless the room, which decides the tiles, changes."""
    X, done, mark = features(graph), [], FileStorage._mark
    Z = model().fit_transform(X, graph=graph)
    write_store(tmp_path / "s", graph, X)

    def killed(storage, name, *column_bytes):
        mark(storage, name, *column_bytes)
        done.append(name)
        raise Killed

    monkeypatch.setattr(FileStorage, "_mark", killed)
    for run in range(40):
        room = TINY._replace(column_bytes=24 if changed and run > 7 else 8)
        monkeypatch.setattr(StructureSize, "room", lambda *args, room=room: room)
        try:
            stored = model().fit_transform(Store(tmp_path / "s"))
            break
        except Killed:
            continue
    np.testing.assert_array_equal(np.asarray(stored), Z)
    assert len(done) > 10
    assert changed or len(set(done)) == len(done)


def test_a_torn_array_is_made_again(tmp_path, monkeypatch, little_room):
    graph, X = random_graph()
    Z = model().fit_transform(X, graph=graph)
    write_store(tmp_path / "s", graph, X)
    mark, killed = FileStorage._mark, []

    def torn(storage, name, *column_bytes):
        if not killed:
            killed.append(name)
            path = storage._path(f"{name}-indices")
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            raise Killed
        mark(storage, name, *column_bytes)

    monkeypatch.setattr(FileStorage, "_mark", torn)
    with pytest.raises(Killed):
        model().fit_transform(Store(tmp_path / "s"))
    np.testing.assert_array_equal(np.asarray(model().fit_transform(Store(tmp_path / "s"))), Z)


@pytest.mark.parametrize("most", [300, 2**60])
def test_a_symmetric_graph_is_told_from_others(most):
    graph = undirected(weighted=True)
    rows = Rows.of(graph)
    assert is_symmetric(rows, most)
    assert is_symmetric(rows._replace(weights=None), most)
    assert not is_symmetric(Rows.of(directed()), most)
    weights = graph.weights.copy()
    weights[100] += 1
    off_diagonal = graph.indices[100] != graph.indptr.searchsorted(100, side="right") - 1
    assert off_diagonal
    assert not is_symmetric(rows._replace(weights=weights), most)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_graph_both_ways_in_pieces(weighted):
    graph = directed(weighted=weighted)
    storage = InMemory()
    storage.most_entries = 200
    A = graph.adjacency.astype(np.float64)
    np.testing.assert_array_equal(Edges(graph, storage).both.csr().toarray(), (A + A.T).toarray())


def test_a_budget_is_enough_for_a_graph_that_is_larger():
    size = StructureSize(Structure(), 2_450_000, 124_000_000, 64, 0, symmetric=True)
    assert size.smallest(2) < 1.2e9
    loaded = replace(size, structure=Structure("spectral"))
    assert loaded.smallest(2) > 15e9
    for available in (1.2e9, 4e9, 20e9):
        room = size.room(0, int(available), 2)
        assert room.n_bytes <= available
        assert room.most_entries >= 2**20
    assert size.room(0, 10**9, 2).column_bytes < size.room(0, 8 * 10**9, 2).column_bytes == 4 * (54 + 32)
