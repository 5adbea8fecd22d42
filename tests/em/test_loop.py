"""`em_means` with the E-steps of Appendix C, on arrays and on tensors, against the loops of the reference."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import reference as ref
from contracts import from_lists, members_of, random_problem
from fishergraph import config_context, em_means, neighbourhoods

torch = pytest.importorskip("torch")

E_STEPS = {"balanced": math.inf, "unbalanced": 2.0, "posterior": 0.0}


def reference_means(problem, penalty, n_iter):
    """E-step, transport, M-step of every set, in float64 loops."""
    means = np.repeat(problem.anchors[None], problem.sets.n_sets, axis=0)
    mass = np.zeros(means.shape[:2])
    for v, members in enumerate(members_of(problem.sets)):
        x, weights = problem.points[[u for u, _ in members]], [a for _, a in members]
        for _ in range(n_iter if members else 0):
            logs = np.array(ref.log_responsibilities(x, means[v], problem.variance))
            logs = logs if penalty == 0 else ref.transport(logs, weights, penalty)
            means[v] = ref.m_step(x, weights, logs, problem.anchors, problem.prior)
            mass[v] = weights @ np.exp(logs)
    return means, mass


@pytest.mark.parametrize("n_iter", [1, 2])
@pytest.mark.parametrize("prior", [0.0, 0.4])
@pytest.mark.parametrize("e_step", E_STEPS)
@pytest.mark.parametrize("engine", ["array", "numba", "torch"])
def test_every_e_step_agrees_with_the_reference(engine, e_step, prior, n_iter):
    problem = random_problem(prior=prior)
    known = reference_means(problem, E_STEPS[e_step], n_iter)
    points, anchors, name = problem.points, problem.anchors, None
    if engine != "array":
        points, anchors, name = torch.from_numpy(points), torch.from_numpy(anchors), engine
    with config_context(engine=name):
        got = em_means(
            points,
            problem.sets,
            anchors,
            variance=problem.variance,
            prior=prior,
            n_iter=n_iter,
            e_step=e_step,
            column_penalty=2.0,
        )
    for mine, theirs in zip(got, known, strict=True):
        assert_allclose(np.asarray(mine), theirs, rtol=0, atol=1e-7)


def test_balanced_masses_are_equal_within_every_set():
    problem = random_problem(p=5, n_sets=30)
    got = em_means(problem.points, problem.sets, problem.anchors, variance=problem.variance, e_step="balanced")
    total = got.mass.sum(axis=1, keepdims=True)
    assert_allclose(got.mass, np.broadcast_to(total / 5, got.mass.shape), rtol=1e-8, atol=1e-12)


def test_a_large_penalty_is_balanced_and_none_is_the_posterior():
    problem = random_problem()
    fixed = (problem.points, problem.sets, problem.anchors)

    def means(**options):
        return em_means(*fixed, variance=problem.variance, **options).means

    balanced, posterior = means(e_step="balanced"), means(e_step="posterior")
    assert_allclose(means(e_step="unbalanced", column_penalty=1e9), balanced, rtol=0, atol=1e-6)
    assert_allclose(means(e_step="unbalanced", column_penalty=0.0), posterior, rtol=0, atol=1e-12)
    assert np.abs(balanced - posterior).max() > 1e-2


def test_bad_e_steps_are_named():
    problem = random_problem()
    fixed = (problem.points, problem.sets, problem.anchors)
    with pytest.raises(ValueError, match="'posterior', 'balanced', 'unbalanced'"):
        em_means(*fixed, e_step="sinkhorn")
    with pytest.raises(ValueError, match="column_penalty"):
        em_means(*fixed, e_step="unbalanced", column_penalty=-1.0)
    with config_context(engine="scipy"), pytest.raises(ValueError, match=r"'scipy' .* balanced"):
        em_means(*fixed, e_step="balanced")
    with pytest.raises(ValueError, match="tensors"):
        em_means(*fixed, bias=np.zeros(4))


def test_sets_without_members_give_the_anchors():
    problem = random_problem()
    sets = from_lists([[], [(0, 1.0)], [(1, 0.0)]], 40)
    got = em_means(problem.points, sets, problem.anchors, e_step="balanced")
    assert_allclose(got.means[[0, 2]], np.stack([problem.anchors] * 2))
    assert_allclose(got.means[1], np.repeat(problem.points[:1], 4, axis=0))


def test_a_graph_in_place_of_multisets():
    matrix = sp.csr_array(np.eye(4, k=1))
    with pytest.raises(TypeError, match="csr_array"):
        em_means(np.eye(4), matrix, np.eye(4)[:2])
    assert em_means(np.eye(4), neighbourhoods(matrix), np.eye(4)[:2]).means.shape == (4, 2, 4)
