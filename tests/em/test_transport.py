"""Room 3, the transport E-steps of one multiset: against Sinkhorn's sweeps, POT, optimality conditions and limits."""

import math
import warnings

import numpy as np
import ot
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

import reference as ref
from fishergraph.family.base import log_softmax
from plain_transport import balanced, newton_step, solve_network, unbalanced

PENALTIES = pytest.mark.parametrize("penalty", [math.inf, 100.0, 1.0, 0.03])
SHAPES = pytest.mark.parametrize("shape", [(1, 3), (2, 2), (2, 5), (3, 4), (13, 3), (6, 1), (40, 8)])


def example(shape, *, scale=2.0, weighted=True, seed=0):
    rng = np.random.default_rng([seed, *shape])
    scores = scale * rng.normal(size=shape)
    return scores, rng.uniform(0.2, 3.0, size=shape[0]) if weighted else None


def objective(log_alpha, scores, weights, penalty):
    """What the docstring maximises, at finite τ."""
    alpha = np.exp(log_alpha)
    mass = weights @ alpha
    gain = np.sum(weights[:, None] * alpha * (scores - log_alpha))
    return gain - penalty * np.sum(mass * np.log(mass / (weights.sum() / len(mass))))


@PENALTIES
@SHAPES
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_references(shape, penalty, weighted):
    scores, weights = example(shape, weighted=weighted)
    got = unbalanced(scores, weights, column_penalty=penalty)
    assert_allclose(got, ref.transport(scores, weights, penalty), rtol=0, atol=1e-11)
    if penalty == math.inf:
        assert np.array_equal(got, balanced(scores, weights))


@SHAPES
def test_balanced_is_pots_plan(shape):
    scores, weights = example(shape)
    share, (_, p) = weights / weights.sum(), shape
    plan = ot.sinkhorn(share, np.full(p, 1 / p), -scores, 1.0, method="sinkhorn_log", stopThr=1e-13, numItermax=100_000)
    assert_allclose(share[:, None] * np.exp(balanced(scores, weights)), plan, rtol=0, atol=1e-12)


@SHAPES
@pytest.mark.parametrize("penalty", [10.0, 0.5])
def test_unbalanced_is_pots_plan(shape, penalty):
    scores, weights = example(shape)
    share, (_, p) = weights / weights.sum(), shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # POT computes ∞/∞ for the constrained side and replaces it
        plan = ot.unbalanced.sinkhorn_unbalanced(
            share, np.full(p, 1 / p), -scores, 1.0, (math.inf, penalty), stopThr=1e-14, numItermax=100_000
        )
    got = unbalanced(scores, weights, column_penalty=penalty)
    assert_allclose(share[:, None] * np.exp(got), plan, rtol=0, atol=1e-10)


@pytest.mark.parametrize("penalty", [0.3, 5.0])
def test_no_direction_improves_the_objective(penalty):
    scores, weights = example((5, 3))
    best = unbalanced(scores, weights, column_penalty=penalty)

    def loss(values):
        return -objective(log_softmax(values.reshape(5, 3)), scores, weights, penalty)

    found = optimize.minimize(loss, np.zeros(15), tol=1e-12)
    assert loss(best.ravel()) <= found.fun + 1e-12
    assert_allclose(np.exp(best), np.exp(log_softmax(found.x.reshape(5, 3))), rtol=0, atol=1e-5)


@PENALTIES
@pytest.mark.parametrize("scale", [1e2, 1e3, 1e4])
@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (3, 4), (4, 4), (12, 4), (30, 8)])
def test_optimality_at_large_scores(shape, scale, penalty):
    """The problem is concave: rows that sum to one, log α = s + f + g, and m_j ∝ exp(−g_j / τ) are its solution."""
    scores, weights = example(shape, scale=scale)
    logs = unbalanced(scores, weights, column_penalty=penalty)
    assert np.isfinite(logs).all()
    assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)
    part = logs - scores
    part = part - part[:, :1] - (part - part[:, :1])[:1]
    assert_allclose(part, 0, rtol=0, atol=1e-12 * scale)
    potentials = (logs - scores)[0]
    mass = weights @ np.exp(logs) / weights.sum()
    target = np.exp(log_softmax(-potentials / penalty))
    assert_allclose(mass, target, rtol=0, atol=1e-10 + 1e-12 * scale / penalty)


def test_the_limits_of_the_penalty():
    scores, weights = example((9, 4))
    assert np.array_equal(unbalanced(scores, weights, column_penalty=0.0), log_softmax(scores))
    assert_allclose(unbalanced(scores, weights, column_penalty=1e-9), log_softmax(scores), rtol=0, atol=1e-7)
    assert_allclose(unbalanced(scores, weights, column_penalty=1e9), balanced(scores, weights), rtol=0, atol=1e-7)
    violations = []
    for penalty in (0.0, 0.1, 1.0, 10.0, math.inf):
        mass = weights @ np.exp(unbalanced(scores, weights, column_penalty=penalty))
        violations.append(np.abs(mass - mass.mean()).max())
    assert violations == sorted(violations, reverse=True)
    assert violations[-1] < 1e-9


@PENALTIES
def test_a_constant_of_the_member_cancels(penalty):
    scores, weights = example((7, 3))
    shift = 100 * np.random.default_rng(1).normal(size=(7, 1))
    expected = unbalanced(scores, weights, column_penalty=penalty)
    assert_allclose(unbalanced(scores + shift, weights, column_penalty=penalty), expected, rtol=0, atol=1e-11)


def test_a_constant_of_the_anchor_cancels_where_marginals_are_fixed():
    scores, weights = example((7, 3))
    assert_allclose(
        balanced(scores + np.array([0.0, 5.0, -3.0]), weights), balanced(scores, weights), rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("weights", [None, np.array([0.0, 0.0])])
def test_nobody_with_a_weight_keeps_the_posterior(weights):
    scores = np.zeros((0, 3)) if weights is None else np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 4.0]])
    for penalty in (math.inf, 1.0):
        got = unbalanced(scores, weights, column_penalty=penalty)
        assert got.shape == scores.shape
        assert_allclose(got, log_softmax(scores), rtol=1e-15)


def test_a_network_by_dense_algebra():
    rng = np.random.default_rng(5)
    half = rng.uniform(size=(6, 6))
    conductances, leaks, currents = half + half.T, rng.uniform(size=6), rng.normal(size=6)
    free = conductances - np.diag(np.diag(conductances))
    laplacian = np.diag(free.sum(axis=1)) - free
    got = solve_network(conductances, leaks, currents, np.zeros(6), 0.0)
    assert_allclose(got, np.linalg.solve(laplacian + np.diag(leaks), currents), rtol=1e-12)
    currents -= currents.mean()
    got = solve_network(conductances, np.zeros(6), currents, np.zeros(6), 0.0)
    assert_allclose(laplacian @ got, currents, rtol=0, atol=1e-13)


def test_a_network_of_tiny_conductances_keeps_its_digits():
    """Two pairs of anchors, and 1e-30 between the pairs: dense algebra rounds that away."""
    conductances = np.array([[0, 1, 1e-30, 0], [1, 0, 0, 0], [1e-30, 0, 0, 1], [0, 0, 1, 0]])
    got = solve_network(conductances, np.zeros(4), np.array([1.0, 0, 0, -1.0]), np.zeros(4), 0.0)
    assert_allclose(got[:2] - got[2:], 1e30, rtol=1e-15)


def test_steps_are_few():
    scores, weights = example((40, 8), scale=10.0)
    logs, potentials, count = log_softmax(scores), np.zeros(8), 0
    violation = math.inf
    while violation > 1e-10:
        step, violation, _ = newton_step(logs, weights / weights.sum(), potentials, 0.0)
        logs, count = log_softmax(logs + step), count + 1
    assert count <= 25  # without the stages; Sinkhorn alone takes thousands


CALLS = {
    "balanced": balanced,
    "unbalanced": lambda scores, weights: unbalanced(scores, weights, column_penalty=0.7),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_strict_arrays_give_the_same(name, scale):
    xp = pytest.importorskip("array_api_strict")
    scores, weights = example((6, 3), scale=scale)
    got = CALLS[name](xp.asarray(scores), xp.asarray(weights))
    assert_allclose(np.asarray(got), CALLS[name](scores, weights), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_torch_tensors_give_the_same_and_gradients(name, scale):
    """At equal scores the first guess is the solution: the gradient of the marginal must be there all the same."""
    torch = pytest.importorskip("torch")
    arrays = example((5, 3), scale=scale)
    scores, weights = (torch.tensor(array, requires_grad=True) for array in arrays)
    assert_allclose(CALLS[name](scores, weights).detach().numpy(), CALLS[name](*arrays), rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(CALLS[name], (scores, weights))
