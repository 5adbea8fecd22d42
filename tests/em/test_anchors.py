"""Anchors and the variance that goes with them, against scikit-learn's mixtures and the entropy they aim at."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import reference as ref
from contracts import from_lists
from fishergraph.em.learn import (
    METHODS,
    learn_anchors,
    mixture_em_step,
    sample_members,
    sample_size,
)
from fishergraph.em.settings import posterior
from fishergraph.family.base import entropy
from fishergraph.family.gaussian_mixture import calibrate_variance


def blobs(n=500, d=3, k=4, seed=0):
    return make_blobs(n, d, centers=k, cluster_std=1.0, random_state=seed)[0]


def sklearn_means(points, means, variance):
    """scikit-learn's means after one EM step from equal weights and one variance."""
    p = len(means)
    model = GaussianMixture(
        p,
        covariance_type="spherical",
        max_iter=1,
        reg_covar=0.0,
        weights_init=np.full(p, 1 / p),
        means_init=means,
        precisions_init=np.full(p, 1 / variance),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(points).means_


@pytest.mark.parametrize("variance", [0.3, 2.0, 30.0])
def test_one_em_step_is_scikit_learns_and_the_references(variance):
    points = blobs(n=200)
    start = points[:4] + 0.1
    step = mixture_em_step(points, start, variance)
    assert_allclose(step, sklearn_means(points, start, variance), rtol=0, atol=1e-10)
    expected, _ = ref.em_means(points, [[(u, 1.0) for u in range(200)]], start, variance)
    assert_allclose(step, expected[0], rtol=0, atol=1e-10)


def test_an_em_step_leaves_a_component_without_mass_where_it_is():
    points = blobs(n=50)
    start = np.concatenate([points[:2], np.full((1, 3), 1e4)])
    step = mixture_em_step(points, start, 0.5)
    assert_array_equal(step[2], start[2])
    assert np.isfinite(step).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_em_step_over_many_blocks_has_the_same_bits_at_any_number_of_threads(dtype):
    points = np.random.default_rng(0).normal(size=(10_000, 3)).astype(dtype)
    steps = [mixture_em_step(points, points[:5], 1.0, n_jobs=jobs) for jobs in (1, 2, 3)]
    assert steps[0].dtype == dtype
    assert_array_equal(steps[0], steps[1])
    assert_array_equal(steps[0], steps[2])
    assert_allclose(steps[0], sklearn_means(points.astype(float), points[:5].astype(float), 1.0), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_anchors_and_one_seed_one_answer(method):
    points = blobs().astype(np.float32)
    anchors = learn_anchors(points, 4, method=method, rng=3)
    assert anchors.shape == (4, 3)
    assert anchors.dtype == np.float32
    assert np.isfinite(anchors).all()
    for n_jobs in (1, 2):
        assert_array_equal(learn_anchors(points, 4, method=method, rng=3, n_jobs=n_jobs), anchors)
    assert not np.array_equal(learn_anchors(points, 4, method=method, rng=4), anchors)


def test_each_method_is_what_it_says():
    points = blobs()
    spherical = learn_anchors(points, 4, method="spherical", rng=0)
    assert_allclose(np.linalg.norm(spherical, axis=1), 1)
    drawn = learn_anchors(points, 4, method="random", rng=0)
    assert {row.tobytes() for row in drawn} <= {row.tobytes() for row in points}
    found = learn_anchors(points, 4, method="kmeans", init="k-means++", rng=0)
    assert ref.kmeans_objective(points, found) < ref.kmeans_objective(points, drawn)


def test_mixture_em_raises_the_likelihood_and_ends_at_a_fixed_point():
    points = blobs()
    likelihood = [
        float(np.sum(ref.log_mixture_many(points, learn_anchors(points, 4, method="em", n_iter=n, rng=0), 1.0)))
        for n in (0, 1, 3, 100)
    ]
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(likelihood))
    assert likelihood[-1] > likelihood[0]
    last = learn_anchors(points, 4, method="em", n_iter=100, rng=0)
    assert_allclose(mixture_em_step(points, last, 1.0), last, atol=1e-4)


def test_fewer_distinct_points_than_anchors():
    points = np.repeat(np.eye(3), 5, axis=0)
    for method in ("kmeans", "spherical", "random"):
        with pytest.warns(UserWarning, match="3 are used"):
            anchors = learn_anchors(points, 7, method=method, rng=0)
        assert_allclose(anchors[np.lexsort(anchors.T)], np.eye(3)[np.lexsort(np.eye(3).T)], atol=1e-15)
    with pytest.warns(UserWarning, match="3 are used"):
        assert learn_anchors(points, 7, method="em", rng=0).shape == (3, 3)


def test_an_unknown_method_lists_the_known_ones():
    with pytest.raises(ValueError, match="'kmeans'"):
        learn_anchors(blobs(), 2, method="k-means")


# ----------------------------------------------------------------------------------------- the sample


def test_sample_size_has_a_floor_a_rate_and_a_ceiling():
    assert sample_size(4, 300_000, 10**6) == 4096
    assert sample_size(1000, 300_000, 10**6) == 128_000
    assert sample_size(10_000, 300_000, 10**6) == 300_000
    assert sample_size(4, 300_000, 100) == 100


def test_members_count_once_per_set_and_a_block_gives_its_own():
    sets = from_lists([[(0, 1.0), (2, 1.0)], [(2, 1.0)], [(1, 1.0), (2, 1.0)]], 3)
    rng = np.random.default_rng(0)
    assert sorted(sample_members(sets, 10, rng)) == [0, 1, 2, 2, 2]
    assert sorted(sample_members(sets.block(slice(1, 3)), 10, rng)) == [1, 2, 2]


def test_a_sample_is_drawn_in_proportion_to_membership():
    lists = [[(0, 1.0), (1, 1.0)]] * 2000 + [[(1, 1.0)]] * 4000
    sets = from_lists(lists, 2)
    drawn = sample_members(sets, 3000, np.random.default_rng(0))
    assert 2000 < len(drawn) <= 3000
    assert abs(np.mean(drawn == 0) - 0.25) < 0.03
    inner = sample_members(sets.block(slice(2000, 6000)), 1000, np.random.default_rng(0))
    assert (inner == 1).all()


# --------------------------------------------------------------------------------------- the variance


@pytest.mark.parametrize("target", [0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_calibrated_variance_hits_the_entropy(target, scale, dtype):
    points = (scale * np.random.default_rng(0).normal(size=(400, 5))).astype(dtype)
    variance = calibrate_variance(points, points[:6] * dtype(1.1), target)
    mean = np.mean(entropy(posterior(points.astype(float), points[:6].astype(float) * 1.1, variance)))
    assert mean == pytest.approx(target * np.log(6), rel=1e-3)


def test_more_entropy_needs_more_variance():
    points = blobs()
    values = [calibrate_variance(points, points[:5], target) for target in (0.1, 0.5, 0.9)]
    assert values[0] < values[1] < values[2]


def test_the_variance_scales_with_the_square_of_the_data():
    points = blobs()
    one, ten = calibrate_variance(points, points[:5], 0.7), calibrate_variance(10 * points, 10 * points[:5], 0.7)
    assert ten == pytest.approx(100 * one, rel=1e-9)


def test_where_every_variance_is_alike_it_is_one():
    points = blobs()
    assert calibrate_variance(points, points[:1], 0.8) == 1.0
    assert calibrate_variance(points, np.repeat(points[:1], 3, axis=0), 0.8) == 1.0
    assert calibrate_variance(np.zeros((5, 2)), np.zeros((2, 2)), 0.8) == 1.0


def test_full_entropy_is_a_large_finite_variance():
    points = blobs()
    variance = calibrate_variance(points, points[:5], 1.0)
    assert np.isfinite(variance)
    assert_allclose(np.exp(posterior(points, points[:5], variance)), 0.2, atol=1e-6)


def test_a_large_sample_is_calibrated_on_a_part_of_it():
    points = np.random.default_rng(0).normal(size=(20_000, 3))
    variance = calibrate_variance(points, points[:4], 0.8)
    assert np.mean(entropy(posterior(points, points[:4], variance))) == pytest.approx(0.8 * np.log(4), rel=0.02)


@pytest.mark.parametrize(
    ("points", "options", "sentence"),
    [
        (np.ones((4, 2)), {"n_anchors": 0}, "n_anchors"),
        (np.ones((4, 2)), {"method": "em", "variance": -1.0}, "variance"),
        (np.ones((4, 2)), {"method": "means"}, "'means'"),
        (np.ones(4), {}, r"shape \(4,\)"),
        (np.ones((0, 2)), {}, r"shape \(0, 2\)"),
        (np.full((4, 2), np.nan), {}, "NaN in row 0"),
        (sp.csr_array(np.eye(4)), {"method": "em"}, "toarray"),
    ],
)
@pytest.mark.filterwarnings("ignore:asked for")
def test_what_anchors_cannot_be_learned_from(points, options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        learn_anchors(points, **{"n_anchors": 2, "rng": 0, **options})


def test_lists_and_whole_numbers_are_points():
    rows = [[0, 1], [5, 6], [0, 2], [5, 7]]
    known = learn_anchors(np.array(rows, float), 2, rng=0)
    np.testing.assert_array_equal(learn_anchors(rows, 2, rng=0), known)
    np.testing.assert_array_equal(learn_anchors(np.array(rows), 2, rng=0), known)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_that_nearly_coincide_have_a_variance_that_can_be_divided_by(dtype):
    points = np.random.default_rng(0).normal(size=(20, 3)).astype(dtype) * dtype(
        1e-20 if dtype == np.float32 else 1e-155
    )
    variance = calibrate_variance(points, points[:3], 0.9)
    assert np.isfinite(dtype(1 / variance))
