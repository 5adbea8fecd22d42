"""Lemma 3.2 and Theorem 4.5 as numbers: they hold, they are as tight as they say, and the printed rate is not true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from fishergraph import fisher_embedding, lipschitz_constant, margin_bound, set_lipschitz_constant

# --- Lemma 3.2 ------------------------------------------------------------------------------------------


def sample(rng, n, noise=0.8):
    """Two classes in the plane, and the direction that tells them apart."""
    y = rng.choice([-1, 1], size=n)
    return y[:, None] * np.array([1.0, 0.0]) + noise * rng.normal(size=(n, 2)), y


def test_the_parts_are_those_of_the_formula():
    Z, y = sample(np.random.default_rng(0), 50)
    w = np.array([0.7, -0.1])
    parts = margin_bound(Z @ w, y, norm=np.linalg.norm(w), diagonal=(Z**2).sum(1), margin=0.5, delta=0.1, chosen=False)
    mean_square = math.fsum(float(z @ z) for z in Z) / 50
    assert parts.training_error == sum(label * float(z @ w) < 0.5 for z, label in zip(Z, y, strict=True)) / 50
    assert parts.complexity == pytest.approx(2 * math.sqrt(0.5) / 0.5 * math.sqrt(mean_square) / math.sqrt(50))
    assert parts.deviation == pytest.approx(3 * math.sqrt(math.log(20) / 100))
    assert parts.bound == min(1, parts.training_error + parts.complexity + parts.deviation)


def test_a_bias_is_one_more_feature():
    """f + b lies in the space of K + 1; the parts are those of the features with a column of ones."""
    Z, y = sample(np.random.default_rng(4), 80)
    w, b = np.array([0.7, -0.1]), 0.3
    wide, full = np.column_stack([Z, np.ones(80)]), np.append(w, b)
    parts = margin_bound(Z @ w + b, y, norm=math.hypot(np.linalg.norm(w), b), diagonal=(Z**2).sum(1) + 1)
    given = {"norm": float(np.linalg.norm(full)), "diagonal": (wide**2).sum(1)}
    assert parts == pytest.approx(margin_bound(wide @ full, y, **given))


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1.0, 40.0])
def test_choosing_afterwards_costs_at_most_a_factor_two_and_a_logarithm(scale):
    Z, y = sample(np.random.default_rng(1), 400)
    given = {"scores": scale * Z[:, 0], "y": y, "norm": scale, "diagonal": (Z**2).sum(1), "margin": 0.5 * scale}
    fixed, free = margin_bound(**given, chosen=False), margin_bound(**given)
    assert fixed.complexity <= free.complexity <= 2 * fixed.complexity
    assert fixed.deviation < free.deviation < 2 * fixed.deviation
    # f and γ count by their quotient: the unit of f does not matter.
    assert free == pytest.approx(margin_bound(Z[:, 0], y, norm=1.0, diagonal=(Z**2).sum(1), margin=0.5))


def test_the_strata_share_delta():
    total = sum(2 / 3 / ((abs(k) + 1) * (abs(k) + 2)) for k in range(-100_000, 100_001))
    assert total == pytest.approx(1, abs=1e-4)


def test_a_function_of_no_norm():
    given = {"scores": np.zeros(100), "y": np.ones(100), "norm": 0.0, "diagonal": np.ones(100)}
    assert margin_bound(**given, chosen=False).complexity == 0
    parts = margin_bound(**given)
    assert parts.training_error == 1
    assert parts.complexity + parts.deviation <= 2 * 1 / 10 + 3 * math.sqrt(math.log(2 / (0.05 / 3)) / 200)  # k = 0


def test_the_bound_holds_for_functions_and_margins_chosen_on_the_samples():
    """200 training sets; f is the mean difference, γ the best of many; the true error is that of the normal."""
    rng, broken, gaps = np.random.default_rng(2), 0, []
    for _ in range(200):
        Z, y = sample(rng, 300)
        w = (y[:, None] * Z).mean(axis=0)
        error = 0.5 * math.erfc(w[0] / (0.8 * np.linalg.norm(w)) / math.sqrt(2))
        norm, diagonal = np.linalg.norm(w), (Z**2).sum(1)
        bound = min(margin_bound(Z @ w, y, norm=norm, diagonal=diagonal, margin=g).bound for g in (0.1, 0.3, 1, 3, 10))
        broken += error > bound
        gaps.append(bound - error)
    assert broken <= 10  # δ = 0.05; in truth none
    assert np.mean(gaps) < 0.9  # and it says something


def test_the_printed_rate_is_not_true():
    """Orthonormal features and random labels: f = Σ y_i e_i has margin one everywhere and learns nothing.

    Its error on new samples is one half. The printed B̄‖f‖/(γN) is 1/√N, below any constant; ours stays above.
    """
    for n in (100, 10_000):
        y = np.random.default_rng(n).choice([-1.0, 1.0], size=n)
        parts = margin_bound(y, y, norm=math.sqrt(n), diagonal=np.ones(n), margin=1.0)
        printed = math.sqrt(n) / n
        assert parts.training_error == 0
        assert parts.bound >= 0.5
        assert printed + math.sqrt(math.log(20) / n) < (0.5 if n == 100 else 0.05)


@pytest.mark.parametrize("kind", ["orthogonal", "one direction", "random"])
def test_the_complexity_is_tight_to_the_root_of_two(kind):
    """R B̄/√(2N) ≤ E sup_{‖f‖ ≤ R} 1/N Σ σ_i f(v_i) ≤ R B̄/√N (Khintchine, Jensen)."""
    rng, n = np.random.default_rng(3), 60
    Z = {"orthogonal": np.eye(n), "one direction": np.ones((n, 1)), "random": rng.normal(size=(n, 5))}[kind]
    signs = rng.choice([-1.0, 1.0], size=(20_000, n))
    average = np.linalg.norm(signs @ Z, axis=1).mean() / n
    half = margin_bound(np.zeros(n), np.ones(n), norm=1.0, diagonal=(Z**2).sum(1), chosen=False).complexity / 2
    assert half / math.sqrt(2) * 0.99 <= average <= half * 1.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [0, 1, 1]}, "-1 and 1"),
        ({"scores": [1.0, 2.0]}, "per sample"),
        ({"scores": [[1.0], [2.0], [3.0]]}, "one length"),
        ({"diagonal": [1.0, -1.0, 1.0]}, "not negative"),
        ({"scores": [1.0, np.nan, 1.0]}, "scores"),
        ({"margin": 0.0}, "margin"),
        ({"norm": 1e308}, "norm"),
        ({"delta": 0.0}, "delta"),
        ({"norm": -1.0}, "norm"),
        ({"chosen": 1}, "chosen"),
    ],
)
def test_samples_that_are_not_valid(changes, message):
    given = {"scores": [1.0, 2.0, 3.0], "y": [1, -1, 1], "norm": 1.0, "diagonal": [1.0, 1.0, 1.0]}
    with pytest.raises(ValueError, match=message) as error:
        margin_bound(**{**given, **changes})
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


# --- Theorem 4.5 ----------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_the_constant_of_theorem_4_5_holds_and_is_attained(seed, p, d, with_matrix):
    rng = np.random.default_rng(seed)
    anchors, theta, other = rng.normal(size=(3, p, d))
    root = rng.normal(size=(p * d, p * d)) if with_matrix else None
    constant = lipschitz_constant(anchors, fisher_root=root)

    def gap(a, b):
        first, second = fisher_embedding(np.stack([a, b]), anchors, fisher_root=root)
        return np.linalg.norm(first - second)

    assert gap(theta, other) <= constant * np.linalg.norm(theta - other) * (1 + 1e-9)
    top = np.eye(p * d)[0] if root is None else np.linalg.svd(root)[2][0]
    assert gap(theta + top.reshape(p, d), theta) == pytest.approx(constant)


def test_the_constant_of_the_mixture_is_its_root():
    assert lipschitz_constant(np.zeros((4, 7))) == 0.5
    assert lipschitz_constant(np.zeros((4, 7)), fisher_root=-3.0) == 3.0


@pytest.mark.parametrize("anchors", [np.zeros(4), np.zeros((0, 3)), np.full((2, 2), np.nan)])
def test_anchors_that_are_not_valid(anchors):
    for call in (lipschitz_constant, lambda points: set_lipschitz_constant(points, variance=1.0, radius=1.0)):
        with pytest.raises(ValueError, match="anchors must"):
            call(anchors)
    with pytest.raises(ValueError, match=r"shape \(3, 3\)"):
        lipschitz_constant(np.zeros((2, 3)), fisher_root=np.eye(3))


def phi(members, anchors, variance, prior):
    means, _ = ref.em_means(members, [[(k, 1.0) for k in range(len(members))]], anchors, variance, prior=prior)
    return fisher_embedding(means, anchors)[0]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from([0.05, 0.3, 1.0]),
    st.sampled_from([0.0, 0.7]),
    st.sampled_from([1e-3, 0.1, 1.0]),
)
def test_phi_is_lipschitz_in_the_members(seed, p, d, n, variance, prior, step):
    rng = np.random.default_rng(seed)
    anchors, members = rng.normal(size=(p, d)), rng.normal(size=(n, d))
    moved = members + step * rng.normal(size=(n, d))
    radius = np.linalg.norm(np.concatenate([anchors, members, moved]), axis=1).max()
    constant = set_lipschitz_constant(anchors, variance=variance, radius=radius)
    furthest = np.linalg.norm(moved - members, axis=1).max()
    gap = np.linalg.norm(phi(moved, anchors, variance, prior) - phi(members, anchors, variance, prior))
    assert gap <= constant * furthest * (1 + 1e-9)


def test_the_constant_of_the_members_is_one_without_attention():
    anchors = np.array([[0.3, -1.0]])
    assert set_lipschitz_constant(anchors, variance=0.01, radius=5.0) == 1
    members = np.random.default_rng(0).normal(size=(4, 2))
    gap = np.linalg.norm(phi(members + np.array([0.1, 0.0]), anchors, 0.01, 0.0) - phi(members, anchors, 0.01, 0.0))
    assert gap == pytest.approx(0.1)


def test_half_of_the_constant_of_the_members_is_attained_where_attention_is_sharp():
    variance, step = 1e-3, 1e-7
    anchors = np.array([[-0.5, 0.0], [0.5, 0.0]])
    members = np.array([[0.0, -1.0], [0.0, 1.0]])
    moved = members + step * np.array([[1.0, 0.0], [-1.0, 0.0]])
    gap = np.linalg.norm(phi(moved, anchors, variance, 0.0) - phi(members, anchors, variance, 0.0)) / step
    constant = set_lipschitz_constant(anchors, variance=variance, radius=1.0)
    assert 0.49 < gap / constant < 0.51
