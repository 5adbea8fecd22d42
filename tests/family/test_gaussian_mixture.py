"""Room 2: the densities of the mixture against the reference, SciPy and scikit-learn; any array library."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.mixture import GaussianMixture

import reference as ref
from fishergraph.family import fisher_root, log_joint, log_likelihood, relative_log_joint

_rng = np.random.default_rng(0)
POINTS, ANCHORS, VARIANCE = _rng.normal(size=(25, 3)), _rng.normal(size=(4, 3)), 0.7
FUNCTIONS = [relative_log_joint, log_joint, log_likelihood]


def test_log_joint_is_the_references():
    expected = [ref.log_joint(x, ANCHORS, VARIANCE) for x in POINTS]
    assert_allclose(log_joint(POINTS, ANCHORS, VARIANCE), expected, rtol=0, atol=1e-12)


def test_log_joint_is_scipys():
    expected = np.stack(
        [stats.multivariate_normal(w, VARIANCE * np.eye(3)).logpdf(POINTS) - np.log(4) for w in ANCHORS], axis=1
    )
    assert_allclose(log_joint(POINTS, ANCHORS, VARIANCE), expected, rtol=0, atol=1e-12)


def test_log_likelihood_is_the_references_and_scikit_learns():
    expected = [ref.log_mixture(x, ANCHORS, VARIANCE) for x in POINTS]
    assert_allclose(log_likelihood(POINTS, ANCHORS, VARIANCE), expected, rtol=0, atol=1e-12)
    model = GaussianMixture(4, covariance_type="spherical")
    model.means_, model.weights_ = ANCHORS, np.full(4, 0.25)
    model.covariances_, model.precisions_cholesky_ = np.full(4, VARIANCE), np.full(4, VARIANCE**-0.5)
    assert_allclose(log_likelihood(POINTS, ANCHORS, VARIANCE), model.score_samples(POINTS), rtol=0, atol=1e-12)


def test_relative_log_joint_differs_from_log_joint_by_a_constant_of_the_point():
    gap = log_joint(POINTS, ANCHORS, VARIANCE) - relative_log_joint(POINTS, ANCHORS, VARIANCE)
    assert_allclose(gap, np.broadcast_to(gap[:, :1], gap.shape), rtol=0, atol=1e-12)


def test_far_components_have_a_likelihood():
    points = np.array([[0.0], [200.0]])
    expected = [ref.log_mixture(x, [[0.0], [100.0]], 0.1) for x in points]
    assert_allclose(log_likelihood(points, np.array([[0.0], [100.0]]), 0.1), expected, rtol=1e-13)
    assert np.isfinite(expected).all()


def test_data_far_from_the_origin_keep_their_digits():
    """At 10^3 from the origin, float32 products of uncentred vectors would be off by 0.1; the centred ones are not."""
    shift = np.float32(1000.0)
    points, anchors = POINTS.astype(np.float32) + shift, ANCHORS.astype(np.float32) + shift
    exact = ref.log_responsibilities(points, anchors, VARIANCE)
    got = relative_log_joint(points, anchors, VARIANCE).astype(np.float64)
    got -= np.log(np.exp(got - got.max(1, keepdims=True)).sum(1, keepdims=True)) + got.max(1, keepdims=True)
    assert np.abs(got - exact).max() < 2e-3
    assert relative_log_joint(points, anchors).dtype == np.float32


def test_one_component_is_one_gaussian():
    expected = stats.multivariate_normal(ANCHORS[0], np.eye(3)).logpdf(POINTS)
    assert_allclose(log_likelihood(POINTS, ANCHORS[:1]), expected, rtol=0, atol=1e-12)


def test_fisher_root_is_one_over_root_p_where_components_are_far_apart():
    assert fisher_root(1) == 1
    anchors = 20.0 * np.arange(3.0)[:, None]
    assert_allclose(ref.matrix_root(ref.fisher_matrix_quadrature(anchors)), fisher_root(3) * np.eye(3), atol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_strict_arrays_give_the_same(function):
    xp = pytest.importorskip("array_api_strict")
    got = function(xp.asarray(POINTS), xp.asarray(ANCHORS), VARIANCE)
    assert type(got) is type(xp.asarray(POINTS))
    assert_allclose(np.asarray(got), function(POINTS, ANCHORS, VARIANCE), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_torch_tensors_give_the_same_and_gradients(function):
    torch = pytest.importorskip("torch")
    points, anchors = torch.tensor(POINTS, requires_grad=True), torch.tensor(ANCHORS, requires_grad=True)
    got = function(points, anchors, VARIANCE)
    assert_allclose(got.detach().numpy(), function(POINTS, ANCHORS, VARIANCE), rtol=1e-13, atol=1e-13)
    assert torch.autograd.gradcheck(lambda x, w: function(x, w, VARIANCE), (points[:4], anchors))


def test_the_gradient_of_the_likelihood_is_the_score():
    torch = pytest.importorskip("torch")
    anchors = torch.tensor(ANCHORS, requires_grad=True)
    for i in (0, 7):
        (gradient,) = torch.autograd.grad(
            log_likelihood(torch.tensor(POINTS[i : i + 1]), anchors, VARIANCE)[0], anchors
        )
        assert_allclose(gradient.numpy().ravel(), ref.score(POINTS[i : i + 1], ANCHORS, VARIANCE)[0], atol=1e-12)
