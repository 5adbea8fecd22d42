"""Nearest nodes and clusters of a page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import unpacked_page as unpack
from fishergraph._progress import silent
from fishergraph.explore import neighbours
from fishergraph.explore.neighbours import clusters, nearest, unit
from fishergraph.explore.pack import Parts


def rows(n=120, d=80, seed=0):
    """Groups of ten rows that are alike."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n // 10, d))
    return unit((centres[np.arange(n) % (n // 10)] + 0.6 * rng.normal(size=(n, d))).astype(np.float32))


def by_loops(U, k):
    """The k nearest other rows, by the definition."""
    found = []
    for v in range(len(U)):
        others = [(-float(U[v].astype(np.float64) @ U[w]), w) for w in range(len(U)) if w != v]
        found.append([w for _, w in sorted(others)[:k]])
    return found


def test_nearest_nodes_by_their_definition():
    U = rows()
    found = nearest(U, 5, silent, 0)
    assert found.rows.tolist() == by_loops(U, 5)
    exact = [[float(U[v] @ U[w]) for w in own] for v, own in enumerate(found.rows)]
    assert np.allclose(found.similarities, exact, atol=1e-5)


def test_candidates_on_axes_find_nearly_all(monkeypatch):
    U = rows(400, 200)
    monkeypatch.setattr(neighbours, "MOST_EXACT", 100)
    found, exact = nearest(U, 5, silent, 0), by_loops(U, 5)
    shared = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(found.rows.tolist(), exact, strict=True)])
    assert shared > 0.9
    assert (np.diff(found.similarities, axis=1) <= 0).all()
    assert not (found.rows == np.arange(400)[:, None]).any()


@pytest.mark.parametrize("n", [1, 2, 4])
def test_fewer_nodes_than_neighbours(n):
    found = nearest(unit(np.ones((n, 3), np.float32)), 10, silent, 0)
    assert found.k == n - 1


def test_rows_of_zeros_have_neighbours_too():
    U = unit(np.zeros((5, 3), np.float32))
    assert nearest(U, 2, silent, 0).similarities.tolist() == [[0, 0]] * 5


@pytest.mark.parametrize("fine", [True, False])
def test_neighbours_survive_the_page(fine, monkeypatch):
    found, parts = nearest(rows(), 4, silent, 0), Parts()
    monkeypatch.setattr(neighbours, "_FINE", 120 * 4 if fine else 10)
    page = type("Page", (), {"about": {"n": 120, "nearest": found.packed(parts)}, "parts": parts.texts})
    assert unpack.nearest(page) == found.rows.tolist()
    about = page.about["nearest"]
    similarities = np.array(unpack.array(parts.texts, about["similarity"])) * about["scale"]
    assert np.abs(similarities - found.similarities.ravel()).max() <= (0.5 / 1000 if fine else 0.5 / 127) + 1e-6


def test_unit_rows():
    U = unit(np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0]], dtype=np.float32))
    assert np.allclose(U, [[0.6, 0.8], [0, 0], [1, 0]])


def test_clusters_are_named_by_what_sets_them_apart():
    rng = np.random.default_rng(0)
    group = np.arange(300) % 3
    U = unit((np.eye(3, 6)[group] + 0.05 * rng.normal(size=(300, 6))).astype(np.float32))
    table = pa.table({"fruit": np.array(["apple", "pear", "plum"])[group], "size": rng.normal(size=300)})
    column = clusters(U, table, silent, 0)
    assert column.role == "cluster"
    assert sorted(column.categories) == ["apple", "pear", "plum"]
    assert [column.categories[code] for code in column.values.tolist()] == table["fruit"].to_pylist()


def test_clusters_of_one_name_are_told_apart():
    group = np.arange(200) % 4
    U = unit((np.eye(4, 6)[group] + 0.05 * np.random.default_rng(0).normal(size=(200, 6))).astype(np.float32))
    column = clusters(U, pa.table({"kind": np.array(["a", "b"])[group % 2]}), silent, 0)
    assert len(set(column.categories)) == len(column.categories) == 4


def test_a_handful_of_nodes_has_no_clusters():
    assert clusters(rows(10, 5), None, silent, 0) is None
