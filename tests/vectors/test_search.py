"""The exact search against loops in float64: every metric and type, ties, duplicates, blocks, threads."""

from __future__ import annotations

import numpy as np
import pytest

import reference_vectors as reference
from fishergraph import Vectors
from fishergraph.vectors import points, search

METRICS = ("cosine", "dot", "euclidean")
each_metric = pytest.mark.parametrize("metric", METRICS)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks, chunks and heaps so small that a few rows fill several of each."""
    monkeypatch.setattr(points, "BLOCK", 16)
    monkeypatch.setattr(search, "BLOCK", 16)
    monkeypatch.setattr(search, "_QUERIES", 8)
    monkeypatch.setattr(search, "_PARTS", 3)
    monkeypatch.setattr(search, "_SPARE", 1)
    monkeypatch.setattr(search, "_ORDERED", 5)


def rows(n=120, d=7, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def check(found, Z, queries, metric, *, own=None):
    for i, query in enumerate(queries):
        without = None if own is None else own[i]
        expected, values = reference.nearest(Z, query, found.k, metric, without=without)
        assert found.rows[i].tolist() == expected
        np.testing.assert_allclose(found.values[i], values, rtol=1e-12, atol=1e-12)


@each_metric
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_neighbours_are_those_of_the_reference(metric, dtype, small_blocks):
    Z = rows(dtype=dtype)
    check(Vectors(Z).neighbours(9, metric=metric), Z, Z, metric, own=range(len(Z)))


@each_metric
def test_new_vectors_have_the_neighbours_of_the_reference(metric, small_blocks):
    Z, queries = rows(), rows(11, seed=1)
    check(Vectors(Z).nearest(vectors=queries, k=6, metric=metric), Z, queries, metric)


@each_metric
def test_equal_rows_are_in_the_order_of_their_numbers(metric, small_blocks):
    Z = rows()
    Z[10:60] = Z[3]
    Z[90] = Z[80]
    found = Vectors(Z).neighbours(12, metric=metric)
    check(found, Z, Z, metric, own=range(len(Z)))
    if metric != "dot":
        assert found.rows[3].tolist() == list(range(10, 22))
        assert found.rows[15].tolist() == [3, *range(10, 15), *range(16, 22)]


@each_metric
def test_rows_that_rounding_cannot_tell_apart_are_told_apart(metric, small_blocks):
    """Rows that differ by less than products in float32 can see, more of them than a heap holds."""
    rng, base = np.random.default_rng(0), rows(1, 64, np.float64)
    Z = np.concatenate([base + 1e-5 * rng.normal(size=(60, 64)), rows(60, 64, np.float64, seed=2)])
    check(Vectors(Z).nearest(rows=[0, 7, 100], k=10, metric=metric), Z, Z[[0, 7, 100]], metric, own=[0, 7, 100])


@pytest.mark.parametrize("metric", ["cosine", "dot"])  # distances are measured from the middle of the rows
def test_a_heap_that_may_miss_a_row_is_enlarged(metric, small_blocks, monkeypatch):
    """The products lie within the tolerance of each other, so that the first heap can say nothing."""
    sizes = []
    whole = search.ExactSearch._candidates
    monkeypatch.setattr(
        search.ExactSearch, "_candidates", lambda self, *a: sizes.append(a[-1]) or whole(self, *a), raising=True
    )
    Z = np.repeat(rows(1, 8, np.float64), 100, axis=0) + 1e-10 * rows(100, 8, np.float64, seed=3)
    Vectors(Z).nearest(rows=[0], k=2, metric=metric)
    assert len(sizes) > 1
    assert sizes == sorted(sizes)


@each_metric
def test_neither_threads_nor_other_queries_change_a_bit(metric, small_blocks):
    vectors = Vectors(rows(300, 33))
    one = vectors.neighbours(7, metric=metric, n_jobs=1)
    two = vectors.neighbours(7, metric=metric, n_jobs=2)
    alone = vectors.nearest(rows=[299, 5], k=7, metric=metric)
    for other, part in ((two, slice(None)), (alone, [299, 5])):
        np.testing.assert_array_equal(one.rows[part], other.rows)
        np.testing.assert_array_equal(one.values[part], other.values)


def test_repeated_queries_have_the_same_answer():
    found = Vectors(rows()).nearest(rows=[4, 4, 2, 4], k=5)
    assert (found.rows[0] == found.rows[[1, 3]]).all()


@each_metric
def test_tiny_and_huge_vectors_are_compared(metric):
    """Their squares leave the range of float32."""
    for scale in (1e-30, 1e30, 1e140):
        Z = rows(40, 5, np.float64) * scale
        found, plain = (
            Vectors(Z).neighbours(4, metric=metric),
            Vectors(rows(40, 5, np.float64)).neighbours(4, metric=metric),
        )
        np.testing.assert_array_equal(found.rows, plain.rows)


def test_distances_far_from_the_origin_are_exact():
    """⟨x, y⟩ − ‖y‖² / 2 would lose everything at 10⁶ from the origin in float32."""
    Z = rows(80, 4, np.float64) + 1e6
    check(Vectors(Z).neighbours(5, metric="euclidean"), Z, Z, "euclidean", own=range(80))


def test_files_and_arrays_give_the_same_bits(tmp_path):
    np.save(tmp_path / "z.npy", rows(200, 9))
    mapped = np.load(tmp_path / "z.npy", mmap_mode="r")
    first, second = Vectors(mapped).neighbours(5), Vectors(rows(200, 9)).neighbours(5)
    np.testing.assert_array_equal(first.values, second.values)
    assert isinstance(Vectors(mapped).Z, np.memmap)


def test_k_may_be_all_other_rows():
    Z = rows(20)
    assert (np.sort(Vectors(Z).neighbours(19).rows, axis=1)[0] == np.arange(1, 20)).all()
    assert Vectors(Z).nearest(vectors=Z[:2], k=20).rows.shape == (2, 20)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_approximate_search_finds_nearly_all(metric, monkeypatch):
    pytest.importorskip("pynndescent")
    monkeypatch.setattr("fishergraph.vectors.vectors.FEW", 100)
    vectors = Vectors(rows(600, 6))
    exact = vectors.neighbours(8, metric=metric)
    near = [vectors.neighbours(8, metric=metric, approximate=True, n_jobs=n_jobs) for n_jobs in (1, 2)]
    assert (near[0].rows == near[1].rows).all()
    shared = [len(set(a) & set(b)) for a, b in zip(exact.rows.tolist(), near[0].rows.tolist(), strict=True)]
    assert np.mean(shared) > 7
    same = near[0].rows == exact.rows
    np.testing.assert_array_equal(near[0].values[same], exact.values[same])
    assert (near[0].rows != np.arange(600)[:, None]).all()
    asked = vectors.nearest(rows=[5, 9], k=8, metric=metric, approximate=True)
    assert len(set(asked.rows[0].tolist()) & set(exact.rows[5].tolist())) >= 6
    assert vectors.nearest(vectors=vectors.Z[:3], k=2, metric=metric, approximate=True).rows[:, 0].tolist() == [0, 1, 2]


def test_the_approximate_search_of_few_rows_is_exact():
    pytest.importorskip("pynndescent")
    vectors = Vectors(rows())
    np.testing.assert_array_equal(vectors.neighbours(5, approximate=True).values, vectors.neighbours(5).values)


def test_rows_with_too_few_found_are_searched_exactly(monkeypatch):
    """Equal rows fill each other's lists of neighbours, and pynndescent finds fewer than asked for."""
    pytest.importorskip("pynndescent")
    monkeypatch.setattr("fishergraph.vectors.vectors.FEW", 100)
    Z = rows(400, 5)
    Z[50:150] = 0
    found = Vectors(Z).neighbours(6, approximate=True)
    assert ((found.rows >= 0) & (found.rows < 400)).all()
    assert all(len(set(line)) == 6 for line in found.rows.tolist())
