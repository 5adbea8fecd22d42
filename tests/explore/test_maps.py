"""Coordinates, frames and samples."""

from __future__ import annotations

import numpy as np
import pytest

from fishergraph._errors import InputError, InputTypeError, MissingExtra
from fishergraph._progress import silent
from fishergraph.explore.maps import (
    CELLS,
    MOST_TSNE,
    Map,
    chosen_maps,
    computed_map,
    curve_order,
    density_sample,
    in_square,
    principal_axes,
)


def embedding(n=300, d=8, seed=0):
    rng = np.random.default_rng(seed)
    centres = 6 * rng.normal(size=(3, d))
    return (centres[np.arange(n) % 3] + rng.normal(size=(n, d))).astype(np.float32)


# --- frames ---------------------------------------------------------------------------------------------------


def test_a_frame_keeps_shapes():
    points = np.random.default_rng(0).normal(size=(50, 2)) * [3, 1] + 100
    square = in_square(points)
    assert np.abs(square).max() == pytest.approx(1)
    assert np.ptp(square[:, 0]) / np.ptp(square[:, 1]) == pytest.approx(np.ptp(points[:, 0]) / np.ptp(points[:, 1]))


def test_far_points_do_not_push_the_others_together():
    points = np.random.default_rng(0).normal(size=(5000, 2))
    points[:2] = [[1e6, 0], [2e6, 0]]
    square = in_square(points)
    assert np.quantile(np.abs(square[2:]), 0.9) > 0.3
    assert 0.97 < square[0, 0] <= square[1, 0] <= 1


@pytest.mark.parametrize("points", [np.zeros((3, 2)), np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 0.0]])])
def test_frames_of_few_points(points):
    assert np.isfinite(in_square(points)).all()


# --- coordinates ----------------------------------------------------------------------------------------------


def test_axes_are_those_of_the_covariance():
    Z = embedding()
    found = principal_axes(Z, 0).project(Z, 2)
    centred = Z.astype(np.float64) - Z.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    expected = centred @ vectors[:, np.argsort(-values)[:2]]
    assert np.abs(np.abs(found) - np.abs(expected)).max() < 1e-3


def test_an_embedding_of_one_column_is_a_line():
    Z = embedding(d=1)
    assert (principal_axes(Z, 0).project(Z, 2)[:, 1] == 0).all()


@pytest.mark.parametrize("name", ["tsne", "umap"])
@pytest.mark.parametrize("n", [3, 20, 200])
def test_maps_keep_groups_together(name, n):
    if name == "umap":
        pytest.importorskip("umap")
    Z = embedding(n)
    made = computed_map(name, principal_axes(Z, 0).project(Z, min(50, *Z.shape)), 0, silent)
    assert made.points.shape == (n, 2)
    assert np.abs(made.points).max() <= 1
    if n == 200:
        gaps = np.linalg.norm(made.points[:, None] - made.points[None], axis=-1) + 9 * np.eye(n)
        assert np.mean(gaps.argmin(axis=1) % 3 == np.arange(n) % 3) > 0.95


def test_a_seed_gives_the_same_map():
    Z = embedding(60)
    first, second = (computed_map("tsne", Z, 5, silent).points for _ in range(2))
    assert (first == second).all()


# --- which maps -----------------------------------------------------------------------------------------------


def test_maps_by_size(monkeypatch):
    assert chosen_maps("auto", 3, 3)[0] == ["pca"]
    assert chosen_maps("auto", 100, 100)[0] == ["tsne", "pca"]
    monkeypatch.setattr("fishergraph.explore.maps.require", lambda *args, **kwargs: None)
    assert chosen_maps("auto", MOST_TSNE + 1, 10**6)[0] == ["umap", "pca"]

    def absent(package, *, extra):
        raise MissingExtra(package=package, extra=extra)

    monkeypatch.setattr("fishergraph.explore.maps.require", absent)
    assert chosen_maps("auto", MOST_TSNE + 1, 10**6)[0] == ["pca"]
    with pytest.raises(MissingExtra, match="umap"):
        chosen_maps("umap", 10, 10)


def test_names_and_coordinates_of_maps():
    assert chosen_maps(["PCA", "t-SNE", "pca"], 10, 10)[0] == ["pca", "tsne"]
    names, given = chosen_maps({"mine": np.ones((10, 2))}, 10, 10)
    assert names == []
    assert given["mine"].shape == (10, 2)
    with pytest.raises(InputError, match="isomap"):
        chosen_maps(["isomap"], 10, 10)
    with pytest.raises(InputError, match="shape"):
        chosen_maps({"mine": np.ones((9, 2))}, 10, 10)
    with pytest.raises(InputError, match="NaN"):
        chosen_maps({"mine": np.full((10, 2), np.nan)}, 10, 10)
    with pytest.raises(InputTypeError, match="maps"):
        chosen_maps(3, 10, 10)


# --- very many nodes ------------------------------------------------------------------------------------------


def crowded(n=20_000):
    rng = np.random.default_rng(0)
    dense = rng.normal(scale=0.02, size=(n - 200, 2))
    sparse = rng.uniform(-1, 1, size=(200, 2))
    return Map("", np.concatenate([dense, sparse]).clip(-1, 1))


def test_a_sample_thins_dense_regions_and_keeps_sparse_ones():
    made = crowded()
    rows, stands = density_sample(made.cells, 2000, 0)
    assert len(rows) == pytest.approx(2000, rel=0.1)
    assert (np.diff(rows) > 0).all()
    assert (rows >= 19_800).sum() > 190
    assert (rows < 19_800).mean() < 0.95
    # Every node of the page stands for those of its cell that are not on it.
    cells = made.cells
    weight = np.bincount(cells[rows], weights=stands, minlength=CELLS**2)
    counts = np.bincount(cells, minlength=CELLS**2)
    kept = np.bincount(cells[rows], minlength=CELLS**2) > 0
    assert np.allclose(weight[kept], counts[kept])
    assert made.take(rows).raster(stands).sum() > 0.99 * 20_000


def test_a_denser_cell_still_has_more_points():
    cells = np.repeat([0, 1, 2], [10_000, 400, 4])
    rows, _ = density_sample(cells, 300, 0)
    kept = np.bincount(cells[rows])
    assert kept[0] > kept[1] > kept[2] >= 4
    assert kept[0] / kept[1] == pytest.approx(5, rel=0.3)


def test_a_sample_never_exceeds_its_size():
    cells = np.arange(5000)
    rows, _ = density_sample(cells, 1000, 0)
    assert len(rows) == 1000


def test_a_curve_visits_neighbours_in_turn():
    points = np.random.default_rng(0).uniform(-1, 1, size=(4000, 2))
    order = curve_order(points)
    assert sorted(order.tolist()) == list(range(4000))

    def steps(path):
        return np.linalg.norm(np.diff(points[path], axis=0), axis=1).mean()

    assert steps(order) < 0.1 * steps(np.arange(4000))
