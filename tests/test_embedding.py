"""Room 4: φ and the tangent kernel against the reference; NumPy, torch and strict arrays alike."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from fishergraph import fisher_embedding, tangent_kernel

_rng = np.random.default_rng(0)
MEANS, OTHERS, ANCHORS = _rng.normal(size=(6, 3, 2)), _rng.normal(size=(4, 3, 2)), _rng.normal(size=(3, 2))
MASS = _rng.uniform(0, 5, size=(6, 3))
MATRIX = _rng.normal(size=(6, 6))  # not symmetric: a transposed root would show


def test_phi_is_the_references_flattened_anchor_then_feature():
    phi = fisher_embedding(MEANS, ANCHORS)
    assert_allclose(phi, ref.fisher_embedding(MEANS, ANCHORS), rtol=1e-14)
    assert_allclose(phi[0], np.ravel(MEANS[0] - ANCHORS) / np.sqrt(3), rtol=1e-14)


@pytest.mark.parametrize("root", [1.0, 0.3, MATRIX], ids=["one", "number", "matrix"])
def test_a_root_is_a_number_or_a_matrix(root):
    expected = ref.fisher_embedding(MEANS, ANCHORS, root)
    assert_allclose(fisher_embedding(MEANS, ANCHORS, fisher_root=root), expected, rtol=1e-12, atol=1e-14)


def test_counts_are_appended_as_logs():
    phi = fisher_embedding(MEANS, ANCHORS, mass=MASS)
    assert phi.shape == (6, 9)
    assert_array_equal(phi[:, :6], fisher_embedding(MEANS, ANCHORS))
    assert_allclose(phi[:, 6:], ref.soft_counts(MASS), rtol=1e-14)


def test_the_anchors_themselves_map_to_zero():
    empty = np.broadcast_to(ANCHORS, (2, 3, 2))
    assert_array_equal(fisher_embedding(empty, ANCHORS, mass=np.zeros((2, 3))), 0)


@pytest.mark.parametrize("root", [None, 0.3, MATRIX], ids=["default", "number", "matrix"])
def test_the_tangent_kernel_is_the_references(root):
    fisher = 1 / 3 if root is None else root**2 if np.ndim(root) == 0 else root.T @ root
    expected = [[ref.tangent_kernel(a, b, ANCHORS, fisher) for b in OTHERS] for a in MEANS]
    assert_allclose(tangent_kernel(MEANS, OTHERS, ANCHORS, fisher_root=root), expected, rtol=1e-11, atol=1e-13)


def test_the_precision_is_the_inputs():
    means, anchors = MEANS.astype(np.float32), ANCHORS.astype(np.float32)
    assert fisher_embedding(means, anchors, mass=MASS.astype(np.float32)).dtype == np.float32
    assert tangent_kernel(means, means, anchors).dtype == np.float32


def test_no_set_at_all():
    assert fisher_embedding(MEANS[:0], ANCHORS).shape == (0, 6)
    assert tangent_kernel(MEANS[:0], OTHERS, ANCHORS).shape == (0, 4)


@pytest.mark.parametrize("with_matrix", [False, True])
def test_strict_arrays_give_the_same(with_matrix):
    xp = pytest.importorskip("array_api_strict")
    means, others, anchors, mass = map(xp.asarray, (MEANS, OTHERS, ANCHORS, MASS))
    root, strict_root = (MATRIX, xp.asarray(MATRIX)) if with_matrix else (None, None)
    phi = fisher_embedding(means, anchors, fisher_root=strict_root, mass=mass)
    kernel = tangent_kernel(means, others, anchors, fisher_root=strict_root)
    assert_allclose(np.asarray(phi), fisher_embedding(MEANS, ANCHORS, fisher_root=root, mass=MASS), rtol=1e-12)
    expected = tangent_kernel(MEANS, OTHERS, ANCHORS, fisher_root=root)
    assert_allclose(np.asarray(kernel), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("with_matrix", [False, True])
def test_torch_tensors_give_the_same_and_gradients(with_matrix):
    torch = pytest.importorskip("torch")
    means, others, anchors, mass = (torch.tensor(a, requires_grad=True) for a in (MEANS, OTHERS, ANCHORS, MASS))
    root, their_root = (MATRIX, torch.tensor(MATRIX)) if with_matrix else (None, None)
    phi = fisher_embedding(means, anchors, fisher_root=their_root, mass=mass)
    expected = fisher_embedding(MEANS, ANCHORS, fisher_root=root, mass=MASS)
    assert_allclose(phi.detach().numpy(), expected, rtol=1e-12)
    assert torch.autograd.gradcheck(
        lambda m, a, s: fisher_embedding(m, a, fisher_root=their_root, mass=s), (means, anchors, mass)
    )
    assert torch.autograd.gradcheck(
        lambda m, o, a: tangent_kernel(m, o, a, fisher_root=their_root), (means, others, anchors)
    )
