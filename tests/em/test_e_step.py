"""Room 3, the E-step: responsibilities against the reference and scikit-learn, and the rule of the authors' code."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats
from sklearn.mixture import GaussianMixture

import reference as ref
from contracts import members_of, random_problem
from fishergraph.em.means import block_means, first_responsibilities, score_points
from fishergraph.em.settings import posterior
from fishergraph.family.base import entropy, log_softmax
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta
from fishergraph.ops import choose_engine
from fishergraph.published import PublishedMixture

_rng = np.random.default_rng(1)
POINTS, ANCHORS, VARIANCE = _rng.normal(size=(25, 3)), _rng.normal(size=(4, 3)), 0.7


def published_code(points, anchors, variance=1.0):
    """The responsibilities of the authors' code, in the place of log α."""
    return PublishedMixture().log_responsibilities(points, GaussianMixtureTheta(anchors, variance))


def test_log_softmax_is_scipys_also_at_large_scores():
    rng = np.random.default_rng(3)
    for scale in (1.0, 1e4):
        scores = scale * rng.normal(size=(9, 5))
        assert_allclose(log_softmax(scores), special.log_softmax(scores, axis=1), rtol=1e-13, atol=1e-12)


def test_posterior_is_the_references():
    assert_allclose(
        posterior(POINTS, ANCHORS, VARIANCE), ref.log_responsibilities(POINTS, ANCHORS, VARIANCE), rtol=0, atol=1e-12
    )


def test_posterior_is_scikit_learns():
    model = GaussianMixture(4, covariance_type="spherical")
    model.means_, model.weights_ = ANCHORS, np.full(4, 0.25)
    model.covariances_, model.precisions_cholesky_ = np.full(4, VARIANCE), np.full(4, VARIANCE**-0.5)
    assert_allclose(np.exp(posterior(POINTS, ANCHORS, VARIANCE)), model.predict_proba(POINTS), rtol=0, atol=1e-13)


def test_rows_sum_to_one_and_logs_stay_finite_where_probabilities_vanish():
    points = 30 * np.random.default_rng(4).normal(size=(50, 8)).astype(np.float32)
    logs = posterior(points, points[:5], 0.1)
    assert logs.dtype == np.float32
    assert np.isfinite(logs).all()
    assert (np.exp(logs) == 0).any()
    assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-6)


def test_one_anchor_takes_every_point_whole():
    assert (posterior(POINTS, ANCHORS[:1], VARIANCE) == 0).all()


def test_entropy_is_scipys_and_zero_where_the_assignment_is_hard():
    logs = posterior(POINTS, ANCHORS, VARIANCE)
    assert_allclose(entropy(logs), stats.entropy(np.exp(logs), axis=1), rtol=1e-12)
    assert_allclose(entropy(np.full((2, 4), -np.log(4))), np.log(4), rtol=1e-14)
    assert_allclose(entropy(posterior(np.array([[0.0]]), np.array([[0.0], [1e3]]), 1e-3)), 0, atol=1e-300)


@pytest.mark.parametrize("engine", ["numba", "scipy"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_published_code_is_the_references(engine, weighted):
    problem = random_problem(d=6, p=3, weighted=weighted)
    theta = GaussianMixtureTheta(problem.anchors, 1.0)
    alpha = score_points(PublishedMixture(), problem.points, theta).alpha
    means, _ = block_means(choose_engine(engine), problem.points, alpha, problem.sets, problem.anchors)
    expected = ref.reference_attention_means(problem.points, members_of(problem.sets), problem.anchors)
    assert_allclose(means, expected, rtol=0, atol=1e-12)


def test_the_published_code_forgets_length_and_admits_zero_vectors():
    assert_allclose(published_code(3 * POINTS, ANCHORS), published_code(POINTS, ANCHORS), rtol=1e-12)
    assert_allclose(published_code(np.zeros((1, 3)), ANCHORS), 0.25, rtol=1e-14)


def test_responsibilities_by_blocks_are_the_posterior_at_any_number_of_threads():
    points = np.random.default_rng(5).normal(size=(9000, 3))
    results = [first_responsibilities(points, ANCHORS, VARIANCE, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    assert_allclose(results[0].log, posterior(points, ANCHORS, VARIANCE), rtol=0, atol=1e-12)
    # exp(s − max) over its sum, and exp of the log: the same to a few roundings of the log.
    assert_allclose(results[0].plain, np.exp(results[0].log), rtol=1e-13)
    for other in results[1:]:
        assert np.array_equal(other.log, results[0].log)
        assert np.array_equal(other.plain, results[0].plain)


CALLS = {
    "posterior": lambda x, w: posterior(x, w, VARIANCE),
    "entropy": lambda x, w: entropy(posterior(x, w, VARIANCE)),
    "published_code": published_code,
}


@pytest.mark.parametrize("name", CALLS)
def test_strict_arrays_give_the_same(name):
    xp = pytest.importorskip("array_api_strict")
    got = CALLS[name](xp.asarray(POINTS), xp.asarray(ANCHORS))
    assert_allclose(np.asarray(got), CALLS[name](POINTS, ANCHORS), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CALLS)
def test_torch_tensors_give_the_same_and_gradients(name):
    torch = pytest.importorskip("torch")
    points, anchors = torch.tensor(POINTS, requires_grad=True), torch.tensor(ANCHORS, requires_grad=True)
    assert_allclose(CALLS[name](points, anchors).detach().numpy(), CALLS[name](POINTS, ANCHORS), rtol=1e-12, atol=1e-13)
    assert torch.autograd.gradcheck(CALLS[name], (points[:4], anchors))


@pytest.mark.parametrize("name", CALLS)
def test_a_zero_vector_has_finite_gradients(name):
    torch = pytest.importorskip("torch")
    points = torch.tensor(np.concatenate([np.zeros((1, 3)), POINTS[:2]]), requires_grad=True)
    CALLS[name](points, torch.tensor(ANCHORS)).sum().backward()
    assert torch.isfinite(points.grad).all()
