"""Coordinates in the plane: principal axes against their definition, seeds, and data too small for a method."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph._errors import InputError
from fishergraph.plots import project
from fishergraph.plots import projection as module

rng = np.random.default_rng(0)


def reference_axes(Z):
    """Coordinates on the two principal axes, in float64, up to the signs of the axes."""
    Z = np.asarray(Z, dtype=np.float64)
    centred = Z - Z.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    return centred @ vectors[:, np.argsort(-values)[:2]]


@pytest.mark.parametrize("kind", [np.float32, np.float64, list, "sparse steps"])
def test_principal_axes(kind):
    Z = rng.standard_normal((50, 6)) * [9, 5, 1, 1, 1, 0.1]
    given = Z.tolist() if kind is list else Z.astype(np.float32 if isinstance(kind, str) else kind)
    found = project(given, "pca")
    np.testing.assert_allclose(np.abs(found), np.abs(reference_axes(given)), rtol=1e-4, atol=1e-4)


def test_more_rows_than_axes_are_learned_from(monkeypatch):
    Z = rng.standard_normal((3000, 5)) * [9, 5, 1, 1, 1]
    whole = project(Z, "pca")
    monkeypatch.setattr(module, "_LEARNED_FROM", 1000)
    monkeypatch.setattr(module, "_BLOCK", 5 * 700)  # rows are projected in five blocks
    sampled = project(Z, "pca")
    assert sampled.shape == whole.shape
    assert np.array_equal(project(Z, "pca"), sampled)
    for k in range(2):
        assert abs(np.corrcoef(sampled[:, k], whole[:, k])[0, 1]) > 0.999


def test_wide_embeddings(monkeypatch):
    monkeypatch.setattr(module, "_MOST_COLUMNS", 4)
    Z = rng.standard_normal((60, 6)) * [9, 5, 0.1, 0.1, 0.1, 0.1]
    np.testing.assert_allclose(np.abs(project(Z, "pca")), np.abs(reference_axes(Z)), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("method", ["pca", "tsne", pytest.param("umap", marks=pytest.mark.slow)])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 30])
def test_few_rows(method, n):
    if method == "umap":
        pytest.importorskip("umap")
    for width in (1, 3):
        found = project(rng.standard_normal((n, width)), method)
        assert found.shape == (n, 2)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("method", ["tsne", pytest.param("umap", marks=pytest.mark.slow)])
def test_a_seed_gives_the_same_bits_and_neighbours_stay_together(method):
    if method == "umap":
        pytest.importorskip("umap")
    groups = np.repeat(np.arange(3), 40)
    Z = np.eye(3).repeat(40, axis=0) @ rng.standard_normal((3, 80)) * 4 + rng.standard_normal((120, 80))
    found = project(Z, method, random_state=0)
    assert np.array_equal(found, project(Z, method, random_state=0))
    other = project(Z, method, random_state=1)
    assert np.array_equal(found, other) == (method == "tsne")  # which draws nothing
    centres = np.stack([found[groups == k].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(found[:, None] - centres, axis=2).argmin(axis=1)
    assert np.mean(nearest == groups) > 0.95


def test_rows_that_are_alike():
    copies = np.repeat(rng.standard_normal((3, 4)), [50, 1, 40], axis=0)
    for method in ("pca", "tsne"):
        np.testing.assert_allclose(project(np.ones((20, 3)), method), 0, atol=1e-12)
        assert np.isfinite(project(copies, method)).all()
        tiny = (rng.standard_normal((20, 3)) * 1e-30).astype(np.float32)  # the squares are zeros
        assert np.isfinite(project(tiny, method)).all()
        for dtype in (np.float32, np.float64):
            nearly = np.ones((20, 3), dtype)
            nearly[3, 1] = np.nextafter(dtype(1), dtype(2))
            assert np.isfinite(project(nearly, method)).all()


@pytest.mark.parametrize(
    ("Z", "method", "pattern"),
    [
        (np.ones((3, 3)), "isomap", "'pca', 'tsne', 'umap'"),
        (sp.csr_array(np.eye(3)), "pca", "dense"),
        (np.array([["a"]]), "pca", "numbers"),
        (np.full((3, 3), np.inf), "pca", "infinity"),
        ([[1, 2], [3]], "pca", "length"),
    ],
)
def test_bad_input(Z, method, pattern):
    with pytest.raises(InputError, match=pattern):
        project(Z, method)
