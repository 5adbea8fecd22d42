"""Room 3, the M-step of one multiset against the reference, the quotient it stands for, and `em_means`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference as ref
from contracts import from_lists
from fishergraph.em import em_means, m_step, posterior

_rng = np.random.default_rng(2)
POINTS, ANCHORS, VARIANCE = _rng.normal(size=(20, 3)), _rng.normal(size=(4, 3)), 0.7


def test_it_is_the_references():
    logs = posterior(POINTS, ANCHORS, VARIANCE)
    assert_allclose(m_step(POINTS, logs), ref.m_step(POINTS, np.ones(20), logs, ANCHORS), rtol=0, atol=1e-13)


def test_it_is_the_quotient_where_the_quotient_is_safe():
    logs = posterior(POINTS, ANCHORS, VARIANCE)
    alpha = np.exp(logs)
    assert_allclose(m_step(POINTS, logs), alpha.T @ POINTS / alpha.sum(axis=0)[:, None], rtol=0, atol=1e-13)


def test_it_is_one_iteration_of_em_means():
    sets = from_lists([[(u, 1.0) for u in range(20)]], 20)
    expected = em_means(POINTS, sets, ANCHORS, variance=VARIANCE).means[0]
    assert_allclose(m_step(POINTS, posterior(POINTS, ANCHORS, VARIANCE)), expected, rtol=0, atol=1e-13)


def test_an_anchor_responsible_for_nothing_still_has_a_mean():
    points = np.array([[0.0], [1.0], [3.0]])
    logs = posterior(points, np.array([[0.0], [1e4]]), 0.5)
    assert np.exp(logs[:, 1]).sum() == 0
    assert_allclose(m_step(points, logs)[1], 3.0, rtol=1e-14)  # the nearest of them


def test_the_mean_depends_on_the_column_only_up_to_a_factor():
    logs = posterior(POINTS, ANCHORS, VARIANCE)
    assert_allclose(m_step(POINTS, logs - np.array([0.0, 1e3, -1e3, 5.0])), m_step(POINTS, logs), rtol=0, atol=1e-9)


def test_strict_arrays_give_the_same():
    xp = pytest.importorskip("array_api_strict")
    logs = posterior(POINTS, ANCHORS, VARIANCE)
    got = m_step(xp.asarray(POINTS), xp.asarray(logs))
    assert_allclose(np.asarray(got), m_step(POINTS, logs), rtol=1e-13)


def test_torch_tensors_give_the_same_and_gradients_through_both_steps():
    torch = pytest.importorskip("torch")
    points, anchors = torch.tensor(POINTS[:6], requires_grad=True), torch.tensor(ANCHORS, requires_grad=True)

    def one_iteration(x, w):
        return m_step(x, posterior(x, w, VARIANCE))

    expected = one_iteration(POINTS[:6], ANCHORS)
    assert_allclose(one_iteration(points, anchors).detach().numpy(), expected, rtol=1e-12, atol=1e-13)
    assert torch.autograd.gradcheck(one_iteration, (points, anchors))
