"""The diagonal mixture against scikit-learn's mixture and scikit-image's Fisher vector."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.mixture import GaussianMixture

from fishergraph.em.learn import em_step, learn_family
from fishergraph.family import DiagonalMixture
from fishergraph.family.base import repeated
from fishergraph.family.diagonal_mixture import DiagonalMixtureTheta

_rng = np.random.default_rng(0)
POINTS = np.concatenate([_rng.normal(c, s, size=(300, 3)) for c, s in ((-2, 0.5), (0, 1.0), (2.5, 0.7))])


def fitted(n_components=3, **options):
    model = GaussianMixture(n_components, covariance_type="diag", random_state=0, tol=1e-10, max_iter=2000, **options)
    return model.fit(POINTS)


def as_theta(model):
    return DiagonalMixtureTheta(np.log(model.weights_), model.means_, model.covariances_, model.means_.mean(axis=0))


def set_moments(family, points, theta):
    joint = family.log_joint(points, theta)
    alpha = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    mass = alpha.sum(axis=0)
    return (alpha.T @ family.statistics(points, theta) / mass[:, None])[None], mass[None]


def test_likelihoods_are_scikit_learns():
    model, family = fitted(), DiagonalMixture()
    assert_allclose(family.log_likelihood(POINTS, as_theta(model)), model.score_samples(POINTS), rtol=1e-10)


def test_an_em_step_is_scikit_learns():
    family = DiagonalMixture()
    theta = learn_family(family, POINTS, 3, n_iter=0, rng=0)
    options = {"weights_init": np.exp(theta.log_weights), "means_init": theta.means, "reg_covar": 0.0, "max_iter": 1}
    with pytest.warns(UserWarning, match="did not converge"):
        model = GaussianMixture(3, covariance_type="diag", precisions_init=1 / theta.variances, **options).fit(POINTS)
    found = em_step(family, POINTS, theta, repeated(family.single(POINTS), 3))
    assert_allclose(np.exp(found.log_weights), model.weights_, rtol=1e-9)
    assert_allclose(found.means, model.means_, rtol=1e-9, atol=1e-12)
    assert_allclose(found.variances, model.covariances_, rtol=1e-9)


def test_the_learned_mixture_is_scikit_learns():
    model, family = fitted(reg_covar=0.0), DiagonalMixture()
    theta = learn_family(family, POINTS, 3, n_iter=500, rng=0)
    order, other = np.argsort(theta.means[:, 0]), np.argsort(model.means_[:, 0])
    assert_allclose(theta.means[order], model.means_[other], atol=1e-4)
    assert_allclose(theta.variances[order], model.covariances_[other], atol=1e-4)
    assert_allclose(np.exp(theta.log_weights)[order], model.weights_[other], atol=1e-4)


@pytest.mark.parametrize("improved", [False, True])
def test_the_score_is_scikit_images_fisher_vector(improved):
    feature = pytest.importorskip("skimage.feature")
    model = fitted()
    family = DiagonalMixture(tangent="score", power=0.5 if improved else 1.0, unit=improved)
    descriptors = np.random.default_rng(1).normal(0.5, 1.5, size=(40, 3))
    means, mass = set_moments(family, descriptors, as_theta(model))
    expected = feature.fisher_vector(descriptors, model, improved=improved)
    # scikit-image has the part of the variances with the other sign, 1 − (x − μ)²/v, which is not the gradient's.
    expected[-9:] *= -1
    assert_allclose(family.phi(means, mass, as_theta(model))[0], expected, rtol=1e-6, atol=1e-8)


def test_both_readings_agree_to_first_order():
    """On large samples of p_θ_0 both are small, and their difference is smaller."""
    model = fitted()
    theta, gaps = as_theta(model), []
    for n in (300, 30_000):
        family = DiagonalMixture()
        means, mass = set_moments(family, family.sample(theta, n, np.random.default_rng(2)), theta)
        both = [DiagonalMixture(tangent=tangent).phi(means, mass, theta) for tangent in ("estimate", "score")]
        gaps.append(np.linalg.norm(both[0] - both[1]) / np.linalg.norm(both[1]))
    assert gaps[1] < 0.3 * gaps[0]


def test_constant_features_and_single_points_have_finite_vectors():
    points = np.column_stack([POINTS, np.full(len(POINTS), 3.0)])
    family = DiagonalMixture()
    theta = learn_family(family, points, 3, rng=0)
    means, mass = set_moments(family, points[:1], theta)
    assert np.isfinite(family.phi(means, mass, theta)).all()
    assert np.isfinite(DiagonalMixture(tangent="score").phi(means, mass, theta)).all()
    with pytest.warns(UserWarning, match="only 1 distinct points"):
        alone = learn_family(family, np.ones((5, 2)), 2, rng=0)
    assert np.isfinite(family.log_likelihood(np.ones((2, 2)), alone)).all()
