"""`em_estimate`: θ_ML of every multiset for any family, against loops; the tangent kernel of records."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference_families as ref
from fishergraph import Multisets, em_estimate, em_means, learn_family, tangent_kernel
from fishergraph.family import FAMILIES, exact_root

_rng = np.random.default_rng(0)
COUNTS = (_rng.poisson(2.0, size=(30, 4)) + np.eye(4)[_rng.integers(4, size=30)]).astype(np.float64)
SIZES = [3, 0, 5, 1, 8]
SETS = Multisets(np.concatenate([[0], np.cumsum(SIZES)]), _rng.integers(30, size=17), _rng.uniform(0.5, 2, size=17), 30)
OTHERS = ["diagonal-mixture", "von-mises-fisher", "multinomial"]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("options", [{}, {"n_iter": 3, "prior": 0.4}, {"e_step": "unbalanced", "column_penalty": 2.0}])
def test_estimates_are_the_references(name, options):
    theta_0 = learn_family(FAMILIES[name](), COUNTS, 3, rng=0)
    theta, mass = em_estimate(COUNTS, SETS, theta_0, **options)
    n_iter, prior = options.get("n_iter", 1), options.get("prior", 0.0)
    for v in range(len(SIZES)):
        own = slice(SETS.indptr[v], SETS.indptr[v + 1])
        members, weights = COUNTS[SETS.indices[own]], SETS.weights[own]
        found, expected_mass = ref.em(
            name, members, weights, theta_0._asdict(), n_iter, prior, options.get("column_penalty")
        )
        assert_allclose(mass[v], expected_mass, atol=1e-8)
        for part, expected in found.items():
            if part not in ("origin", "trials"):
                assert_allclose(getattr(theta, part)[v], expected, atol=1e-7)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_the_tangent_kernel_of_records(name):
    """⟨φ, φ'⟩ with the closed form, or J with the exact matrix between them (Eq. 4)."""
    family = FAMILIES[name]()
    theta_0 = learn_family(family, COUNTS, 2, rng=0)
    theta, _ = em_estimate(COUNTS, SETS, theta_0, prior=0.5)
    phi = family.whitened(theta, theta_0)
    kernel = tangent_kernel(theta, theta, theta_0)
    assert_allclose(kernel, phi @ phi.T, atol=1e-12)
    assert np.linalg.eigvalsh(kernel).min() > -1e-10
    root = exact_root(family, theta_0, np.random.default_rng(0))
    assert_allclose(tangent_kernel(theta, theta, theta_0, fisher_root=root), phi @ (root @ root) @ phi.T, atol=1e-10)


def test_the_mixture_of_the_paper_is_em_means():
    theta_0 = learn_family(FAMILIES["gaussian-mixture"](), COUNTS, 3, rng=0)
    theta, mass = em_estimate(COUNTS, SETS, theta_0, n_iter=2, prior=0.1)
    means, other = em_means(COUNTS, SETS, theta_0.anchors, variance=theta_0.variance, n_iter=2, prior=0.1)
    assert np.array_equal(theta.anchors, means)
    assert np.array_equal(mass, other)
    assert_allclose(tangent_kernel(theta, theta, theta_0), tangent_kernel(means, means, theta_0.anchors), atol=1e-12)


def test_bad_points_and_sets():
    theta_0 = learn_family(FAMILIES["multinomial"](), COUNTS, 2, rng=0)
    with pytest.raises(ValueError, match="row 4"):
        em_estimate(np.where(np.arange(30)[:, None] == 4, -1.0, COUNTS), SETS, theta_0)
    with pytest.raises(ValueError, match="29 rows"):
        em_estimate(COUNTS[1:], SETS, theta_0)
    with pytest.raises(TypeError, match="GaussianMixtureTheta"):
        em_estimate(COUNTS, SETS, np.zeros((2, 4)))


@pytest.mark.parametrize("name", [*OTHERS, "gaussian-mixture"])
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_of_a_set_never_falls_along_the_iterations(name, seed):
    family, rng = FAMILIES[name](), np.random.default_rng(seed)
    theta_0 = learn_family(family, COUNTS, 3, rng=seed)
    sizes = rng.integers(1, 12, size=8)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    sets = Multisets(indptr, rng.integers(30, size=indptr[-1]), rng.uniform(0.2, 3, size=indptr[-1]), 30)
    before = np.full(8, -np.inf)
    for n_iter in range(6):
        theta, _ = em_estimate(COUNTS, sets, theta_0, n_iter=n_iter)
        values = np.empty(8)
        for v in range(8):
            own = slice(indptr[v], indptr[v + 1])
            one = {
                part: value[v] if isinstance(value, np.ndarray) and part != "origin" else value
                for part, value in theta._asdict().items()
            }
            values[v] = sets.weights[own] @ family.log_likelihood(COUNTS[sets.indices[own]], type(theta)(**one))
        assert (values >= before - 1e-8 * np.abs(values)).all()
        before = values
