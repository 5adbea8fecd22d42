"""Divergences: closed forms against integrals, Goldberger's approximation and the bound, Monte Carlo, the order."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference as ref
from family_examples import MIXED, SINGLE
from fishergraph.family import goldberger, kl_bound, kl_divergence, monte_carlo_kl, retract
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta


def moved(example, size=0.15, seed=0):
    """Another θ near that of the example."""
    family, theta = example.family, example.theta
    width = family.score(family.mean_statistics(theta)[None], np.ones((1, len(theta[0]))), theta).shape[1]
    found = retract(family, size * np.random.default_rng(seed).normal(size=(1, width)), theta)
    return type(theta)(
        *(
            part[0] if isinstance(part, np.ndarray) and name != "origin" else part
            for name, part in zip(theta._fields, found, strict=True)
        )
    )


def integrated(example, p, q):
    points, weights = example.rule()
    log_p, log_q = example.log_density(points, p), example.log_density(points, q)
    return float(weights @ (np.exp(log_p) * (log_p - log_q)))


@pytest.mark.parametrize("example", SINGLE, ids=lambda e: e.name)
def test_closed_forms_are_the_integrals(example):
    p, q = example.theta, moved(example)
    forth, back = integrated(example, p, q), integrated(example, q, p)
    assert abs(forth - back) > 1e-6 or example.name == "gaussian-mixture"  # the order can be seen
    assert_allclose(kl_divergence(p, q), forth, atol=1e-7)
    assert_allclose(kl_divergence(q, p), back, atol=1e-7)
    assert_allclose(kl_divergence(p, p), 0, atol=1e-12)


@pytest.mark.parametrize("example", MIXED, ids=lambda e: e.name)
def test_mixtures(example):
    p, q = example.theta, moved(example)
    exact = integrated(example, p, q)
    sampled = monte_carlo_kl(p, q, n_samples=100_000, rng=0)
    assert abs(sampled.value - exact) < 4 * sampled.standard_error
    assert 0 < sampled.standard_error < 0.01
    assert kl_bound(p, q) >= exact - 1e-9
    assert goldberger(p, q) <= kl_bound(p, q) + 1e-12  # the match is among the pairs
    assert_allclose(goldberger(p, p), 0, atol=1e-12)
    assert kl_divergence(p, q) == goldberger(p, q)


def test_goldberger_matches_components_and_weighs_them():
    """Far components, in another order: only the weights differ, and their term counts."""
    example = MIXED[1]
    p = example.theta._replace(means=20 * example.theta.means)
    q = type(p)(p.log_weights, p.means[::-1], p.variances[::-1], p.origin)
    own = np.exp(p.log_weights)
    assert_allclose(goldberger(p, q), own @ np.log(own / own[::-1]), atol=1e-9)
    assert_allclose(monte_carlo_kl(p, q, rng=0).value, own @ np.log(own / own[::-1]), atol=0.02)


def test_the_mixture_of_the_paper_against_the_reference():
    theta, other = np.array([[0.0], [2.0]]), np.array([[0.1], [1.7]])
    p, q = GaussianMixtureTheta(theta, 0.5), GaussianMixtureTheta(other, 0.5)
    sampled = monte_carlo_kl(p, q, n_samples=200_000, rng=1)
    assert abs(sampled.value - ref.kl_divergence_quadrature(theta, other, 0.5)) < 4 * sampled.standard_error


def test_small_steps_cost_half_their_square():
    """KL(θ_0 ‖ θ) ≈ ‖φ‖²/2 with the Fisher matrix of the pair (x, z): the bound's expansion."""
    for example in [*SINGLE, *MIXED]:
        theta = moved(example, size=1e-3)
        batch = type(theta)(
            *(
                part[None] if isinstance(part, np.ndarray) and name != "origin" else part
                for name, part in zip(theta._fields, theta, strict=True)
            )
        )
        phi = example.family.whitened(batch, example.theta)
        units = example.theta.variance if example.name == "gaussian-mixture" else 1.0
        assert_allclose(kl_bound(example.theta, theta), 0.5 * (phi**2).sum() / units, rtol=2e-2)


def test_parameters_of_two_families_do_not_compare():
    with pytest.raises(TypeError, match="GaussianTheta"):
        kl_divergence(SINGLE[0].theta, SINGLE[1].theta)
    with pytest.raises(TypeError, match="parameter"):
        kl_divergence(1.0, 2.0)
    with pytest.raises(ValueError, match="components"):
        kl_bound(SINGLE[1].theta, MIXED[0].theta)
