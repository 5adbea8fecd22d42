"""The EM of the appendix: one iteration maximises a lower bound of the likelihood, and iterations never lower it."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference as ref
from contracts import from_lists
from fishergraph.em import em_means, posterior
from fishergraph.family import log_likelihood

SEEDS = st.integers(0, 2**32 - 1)


def sample(seed, *, n=9):
    """Points, weights, anchors, a variance and the weighted multiset of all points."""
    rng = np.random.default_rng(seed)
    p, d = rng.integers(1, 5), rng.integers(1, 4)
    points, anchors = rng.normal(size=(n, d)), rng.normal(size=(p, d))
    weights = rng.uniform(0.1, 3.0, size=n)
    sets = from_lists([list(enumerate(weights))], n)
    return points, weights, anchors, float(rng.uniform(0.1, 3.0)), sets


def gap(points, weights, theta0, theta, variance):
    """Σ_i a_i KL(p_θ0(z|x_i) ‖ p_θ(z|x_i)), by the library's E-step."""
    first, second = posterior(points, theta0, variance), posterior(points, theta, variance)
    return float(weights @ np.sum(np.exp(first) * (first - second), axis=1))


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.floats(0, 3))
def test_the_bound_misses_the_likelihood_by_a_divergence_of_posteriors(seed, distance):
    """log p_θ(x) − E_{z|x,θ0}[log p_θ(x, z)/p_θ0(z|x)] = KL(p_θ0(z|x) ‖ p_θ(z|x)) ≥ 0, and 0 at θ = θ0."""
    points, weights, anchors, variance, _ = sample(seed)
    theta = anchors + distance * np.random.default_rng(seed + 1).normal(size=anchors.shape)
    likelihood = float(weights @ log_likelihood(points, theta, variance))
    bound = ref.em_lower_bound(points, weights, theta, anchors, variance)
    missing = gap(points, weights, anchors, theta, variance)
    assert missing >= -1e-12
    scale = 1 + abs(likelihood) + abs(bound)
    assert abs(likelihood - bound - missing) < 1e-11 * scale
    if distance == 0:
        assert abs(likelihood - bound) < 1e-11 * scale


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_one_iteration_maximises_the_bound(seed):
    points, weights, anchors, variance, sets = sample(seed)
    rng = np.random.default_rng(seed + 1)
    theta = em_means(points, sets, anchors, variance=variance).means[0]
    best = ref.em_lower_bound(points, weights, theta, anchors, variance)
    assert best >= ref.em_lower_bound(points, weights, anchors, anchors, variance) - 1e-10
    for size in (1e-3, 0.1, 2.0):
        other = theta + size * rng.normal(size=theta.shape)
        assert ref.em_lower_bound(points, weights, other, anchors, variance) < best
    # The bound is a concave parabola: its central difference vanishes at the top alone.
    step = 1e-3 * rng.normal(size=theta.shape)
    up, down = (ref.em_lower_bound(points, weights, theta + s * step, anchors, variance) for s in (1, -1))
    assert abs(up - down) < 1e-9 * (1 + abs(best))


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_iterations_never_lower_the_likelihood(seed):
    points, weights, anchors, variance, sets = sample(seed)
    values = []
    for n in range(7):
        theta = em_means(points, sets, anchors, variance=variance, n_iter=n).means[0]
        values.append(float(weights @ log_likelihood(points, theta, variance)))
    assert all(later >= earlier - 1e-10 * (1 + abs(earlier)) for earlier, later in itertools.pairwise(values))
    if len(anchors) == 1:  # one Gaussian: the first iteration is the maximum
        assert_allclose(values[1:], values[1], rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(0.01, 10.0))
def test_with_a_prior_iterations_never_lower_the_posterior(seed, prior):
    """Σ_i a_i log p_θ(x_i) − κ/(2σ²) Σ_j ‖μ_j − w_j‖²: each component has κ observations at its anchor."""
    points, weights, anchors, variance, sets = sample(seed)
    values = []
    for n in range(7):
        theta = em_means(points, sets, anchors, variance=variance, prior=prior, n_iter=n).means[0]
        penalty = prior / (2 * variance) * float(np.sum((theta - anchors) ** 2))
        values.append(float(weights @ log_likelihood(points, theta, variance)) - penalty)
    assert all(later >= earlier - 1e-10 * (1 + abs(earlier)) for earlier, later in itertools.pairwise(values))


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_many_iterations_end_at_a_stationary_point_of_the_likelihood(seed):
    """θ_ML of Eq. 11 has Σ_i a_i α_ij (x_i − μ_j) = 0: what is left of the score falls with the iterations."""
    points, weights, anchors, variance, sets = sample(seed)

    def score(n):
        theta = em_means(points, sets, anchors, variance=variance, n_iter=n).means[0]
        return np.linalg.norm(weights @ ref.score(points, theta, variance))

    assert score(400) <= 0.3 * score(0) + 1e-9


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_means_stay_in_the_hull_of_the_members_and_the_mass_is_the_weight(seed):
    points, weights, anchors, variance, sets = sample(seed)
    for n in (1, 2, 4):
        means, mass = em_means(points, sets, anchors, variance=variance, n_iter=n)
        assert (means[0] >= points.min(axis=0) - 1e-12).all()
        assert (means[0] <= points.max(axis=0) + 1e-12).all()
        assert_allclose(mass[0].sum(), weights.sum(), rtol=1e-12)
        # Σ_j mass_j μ_j = Σ_i a_i x_i: the parts of every point add up to it.
        assert_allclose(mass[0] @ means[0], weights @ points, rtol=0, atol=1e-11)
