"""Section 4.1 to 4.3: φ as a local picture of the KL divergence. Asymptotic claims are tested by their slopes.

Theorem 4.3 as printed is empty: both sides are O(Δ²). True is: with the exact Fisher matrix the error is cubic; with
the Id/p of Eq. 18 the error over Δ² tends to a constant, and the constant falls as the components separate.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from fishergraph import fisher_embedding, tangent_kernel

STEPS = np.geomspace(0.03, 0.12, 4)
MIXTURES = {
    "three on a line": (np.array([[-1.0], [0.4], [2.1]]), 1.0),
    "narrow": (np.array([[-1.0], [0.4], [2.1]]), 0.5),
    "two in the plane": (np.array([[-0.7, 0.2], [0.9, -0.4]]), 1.0),
}


def setting(name):
    """Anchors, variance, the exact root of the Fisher matrix, and two generic directions of θ."""
    anchors, variance = MIXTURES[name]
    root = ref.matrix_root(ref.fisher_matrix_quadrature(anchors, variance))
    rng = np.random.default_rng(1)
    directions = [u / np.linalg.norm(u) for u in rng.normal(size=(2, *anchors.shape))]
    return anchors, variance, root, directions


def slope(errors):
    """The exponent k of error ∝ Δ^k."""
    return np.polyfit(np.log(STEPS), np.log(np.abs(errors)), 1)[0]


def half_square(theta, other, anchors, root):
    """‖φ(θ) − φ(θ')‖² / 2, by the library."""
    a, b = fisher_embedding(np.stack([theta, other]), anchors, fisher_root=root)
    return 0.5 * float(np.sum((a - b) ** 2))


@pytest.mark.parametrize("name", MIXTURES)
def test_lemma_4_2_the_divergence_from_the_anchors_is_half_the_square_up_to_a_cube(name):
    anchors, variance, root, (u, _) = setting(name)
    errors = [
        ref.kl_divergence_quadrature(anchors, anchors + h * u, variance)
        - half_square(anchors, anchors + h * u, anchors, root)
        for h in STEPS
    ]
    assert 2.7 < slope(errors) < 3.3


@pytest.mark.parametrize("name", MIXTURES)
def test_theorem_4_1_the_tangent_kernel_is_the_divergences_polar_form_up_to_a_cube(name):
    """D(u‖μ) + D(μ‖v) − D(u‖v) = K_μ(u, v) + O(Δ³), with μ the anchors."""
    anchors, variance, root, (u, v) = setting(name)
    errors = []
    for h in STEPS:
        first, second = anchors + h * u, anchors + h * v
        polar = (
            ref.kl_divergence_quadrature(first, anchors, variance)
            + ref.kl_divergence_quadrature(anchors, second, variance)
            - ref.kl_divergence_quadrature(first, second, variance)
        )
        errors.append(polar - tangent_kernel(first[None], second[None], anchors, fisher_root=root)[0, 0])
    assert 2.7 < slope(errors) < 3.3


@pytest.mark.parametrize("name", MIXTURES)
def test_theorem_4_3_with_the_exact_fisher_matrix_the_error_is_cubic(name):
    anchors, variance, root, (u, v) = setting(name)
    errors = [
        ref.kl_divergence_quadrature(anchors + h * u, anchors + h * v, variance)
        - half_square(anchors + h * u, anchors + h * v, anchors, root)
        for h in STEPS
    ]
    assert 2.7 < slope(errors) < 3.3


def test_theorem_4_3_with_the_approximate_matrix_the_error_is_quadratic():
    """The error over Δ² tends to ½ (u − v)ᵀ (I − Id/p) (u − v)."""
    anchors, variance, _, (u, v) = setting("three on a line")
    errors = [
        ref.kl_divergence_quadrature(anchors + h * u, anchors + h * v, variance)
        - half_square(anchors + h * u, anchors + h * v, anchors, None)
        for h in STEPS / 10
    ]
    assert 1.9 < np.polyfit(np.log(STEPS), np.log(np.abs(errors)), 1)[0] < 2.1
    gap = ref.fisher_matrix_quadrature(anchors, variance) - np.eye(3) / 3
    limit = 0.5 * float((u - v).ravel() @ gap @ (u - v).ravel())
    assert errors[0] / (STEPS[0] / 10) ** 2 == pytest.approx(limit, rel=0.05)


def test_theorem_4_3_the_constant_falls_as_the_components_separate():
    h, u, v = 1e-2, np.array([[0.6], [0.2], [-0.3]]), np.array([[-0.1], [0.5], [0.4]])
    constants = []
    for separation in (2.0, 4.0, 6.0, 8.0, 10.0):
        anchors = separation * np.array([[-1.0], [0.0], [1.1]])
        error = ref.kl_divergence_quadrature(anchors + h * u, anchors + h * v) - half_square(
            anchors + h * u, anchors + h * v, anchors, None
        )
        constants.append(abs(error) / h**2)
    assert all(later < 0.5 * earlier for earlier, later in itertools.pairwise(constants))
    assert constants[-1] < 1e-4 < 1e-2 < constants[0]


# -------------------------------------------------------------------------------------- finite claims

VALUES = st.floats(-5, 5, allow_nan=False)


def parameters(p, d):
    return st.lists(VALUES, min_size=p * d, max_size=p * d).map(lambda values: np.reshape(values, (p, d)))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3).flatmap(lambda d: st.tuples(*[parameters(1, d)] * 3)))
def test_for_one_gaussian_the_divergence_is_exactly_half_the_square(triple):
    """D(N(μ, I) ‖ N(μ', I)) = ‖φ − φ'‖² / 2, at any distance and from any anchor."""
    mu, other, anchor = triple
    expected = 0.5 * float(np.sum((mu - other) ** 2))
    np.testing.assert_allclose(half_square(mu, other, anchor, None), expected, rtol=1e-9, atol=1e-12)
    if mu.shape[1] == 1 and np.abs(mu - other).max() < 3:
        np.testing.assert_allclose(ref.kl_divergence_quadrature(mu, other), expected, rtol=1e-8, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(parameters(2, 2), parameters(2, 2), parameters(2, 2), st.integers(0, 2**32 - 1))
def test_theorem_4_5_phi_is_lipschitz_with_the_norm_of_the_root(theta, other, anchors, seed):
    root = np.random.default_rng(seed).normal(size=(4, 4))
    a, b = fisher_embedding(np.stack([theta, other]), anchors, fisher_root=root)
    bound = np.linalg.norm(root, 2) * np.linalg.norm(theta - other)
    assert np.linalg.norm(a - b) <= bound * (1 + 1e-9) + 1e-12
    a, b = fisher_embedding(np.stack([theta, other]), anchors)  # a multiple of the identity: an equality
    np.testing.assert_allclose(np.linalg.norm(a - b), 2**-0.5 * np.linalg.norm(theta - other), rtol=1e-9, atol=1e-12)


def test_theorem_4_5_the_constant_is_attained():
    anchors, _, root, _ = setting("two in the plane")
    top = np.linalg.svd(root)[2][0].reshape(anchors.shape)
    a, b = fisher_embedding(np.stack([anchors + top, anchors]), anchors, fisher_root=root)
    assert np.linalg.norm(a - b) == pytest.approx(np.linalg.norm(root, 2), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_the_tangent_kernel_is_the_inner_product_of_phi_and_positive_semidefinite(seed, p, d, with_matrix):
    rng = np.random.default_rng(seed)
    means, anchors = rng.normal(size=(7, p, d)), rng.normal(size=(p, d))
    root = rng.normal(size=(p * d, p * d)) if with_matrix else None
    kernel = tangent_kernel(means, means, anchors, fisher_root=root)
    phi = fisher_embedding(means, anchors, fisher_root=root)
    fisher = root.T @ root if with_matrix else 1 / p
    expected = [[ref.tangent_kernel(a, b, anchors, fisher) for b in means] for a in means]
    np.testing.assert_allclose(kernel, phi @ phi.T, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel, expected, rtol=1e-9, atol=1e-9)
    values = np.linalg.eigvalsh(kernel)
    assert values[0] >= -1e-10 * max(values[-1], 1)
