"""The Nyström map against the reference and the kernel it stands for; inverse roots; any array library."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from sklearn.preprocessing import StandardScaler

import reference as ref
from fishergraph._parallel import row_blocks
from fishergraph.em.unit import unit_rows
from fishergraph.kernel_map import (
    KERNELS,
    Identity,
    IdentityMap,
    Nystrom,
    NystromMap,
    exponential_kernel,
    fit_standard,
    inverse_sqrt,
    nystrom,
)
from fishergraph.published import PublishedNystrom

_rng = np.random.default_rng(0)
X, Y = _rng.normal(size=(12, 5)), _rng.normal(size=(9, 5))


def fitted(dim=12, *, data=X, bandwidth=1.0, dtype=np.float64, **options):
    kernel = Nystrom(bandwidth=bandwidth)
    return kernel.fit(data.astype(dtype), dim, rng=np.random.default_rng(0), n_jobs=1, **options)


# ---------------------------------------------------------------------------------------- the kernel


@pytest.mark.parametrize("bandwidth", [0.5, 1.0, 3.0])
def test_the_kernel_is_the_references(bandwidth):
    expected = [[ref.exponential_kernel(x, y, bandwidth) for y in Y] for x in X]
    assert_allclose(exponential_kernel(X, Y, bandwidth), expected, rtol=1e-13)


def test_the_kernel_is_zero_at_zero_and_the_square_of_the_norm_on_the_diagonal():
    with_zero = np.concatenate([X, np.zeros((1, 5))])
    kernel = exponential_kernel(with_zero, with_zero)
    assert_array_equal(kernel[-1], 0)
    assert_allclose(np.diag(kernel), np.sum(with_zero**2, axis=1), rtol=1e-13)


def test_the_kernel_is_positive_semidefinite():
    values = np.linalg.eigvalsh(exponential_kernel(np.concatenate([X, Y]), np.concatenate([X, Y])))
    assert values[0] > -1e-12 * values[-1]


# ----------------------------------------------------------------------------------------- the root


def test_inverse_sqrt_is_scipys_and_the_references():
    matrix = X.T @ X + np.eye(5)
    assert_allclose(inverse_sqrt(matrix), linalg.inv(linalg.sqrtm(matrix)), rtol=0, atol=1e-12)
    assert_allclose(inverse_sqrt(matrix), ref.inverse_root(matrix), rtol=0, atol=1e-13)


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e16])
def test_inverse_sqrt_of_an_ill_conditioned_matrix_inverts_on_the_kept_span(condition):
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    values = np.geomspace(1 / condition, 1, 6)
    matrix = (basis * values) @ basis.T
    root = inverse_sqrt((matrix + matrix.T) / 2)
    kept = values > 1e-6
    projector = basis[:, kept] @ basis[:, kept].T
    assert_allclose(root @ matrix @ root, projector, rtol=0, atol=1e-7)
    assert np.linalg.norm(root, 2) < 1.001e3
    assert_allclose(root, root.T, rtol=0, atol=1e-9)


def test_inverse_sqrt_of_a_singular_matrix_and_of_zero():
    vector = np.array([[3.0, 4.0]])
    assert_allclose(inverse_sqrt(vector.T @ vector), vector.T @ vector / 125, rtol=1e-12)
    assert_array_equal(inverse_sqrt(np.zeros((3, 3))), 0)


def test_shrinkage_is_the_rule_of_the_authors_code():
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    values = np.array([0.0, 0.01, 1.0, 4.0])
    expected = (basis / (np.sqrt(values) + 0.01)) @ basis.T
    # A zero eigenvalue is found to 1e-16, its root to 1e-8, a millionth of the shrinkage.
    assert_allclose(inverse_sqrt((basis * values) @ basis.T, shrinkage=0.01), expected, rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------------------------- the map


@pytest.mark.parametrize("bandwidth", [0.6, 1.0])
def test_psi_is_the_references(bandwidth):
    psi = fitted(8, bandwidth=bandwidth)
    assert_allclose(psi(Y), ref.nystrom(Y, psi.landmarks, bandwidth), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 2e-4)])
def test_psi_is_exact_on_the_landmarks(dtype, tolerance):
    psi = fitted(8, dtype=dtype)
    w = psi.landmarks
    exact = [[ref.exponential_kernel(a, b) for b in w.astype(float)] for a in w.astype(float)]
    assert_allclose(psi(w) @ psi(w).T, exact, rtol=0, atol=tolerance)
    assert psi(w).dtype == dtype


def test_psi_is_exact_on_every_row_whose_direction_is_a_landmark():
    psi = fitted(len(X))
    assert_allclose(psi(X) @ psi(X).T, exponential_kernel(X, X), rtol=0, atol=1e-9)


def test_away_from_the_landmarks_psi_never_overstates_the_kernel():
    """Nyström projects in the feature space: k(x, x) − ‖ψ(x)‖² is a squared distance, and the gap matrix is PSD."""
    psi = fitted(4)
    gap = exponential_kernel(Y, Y) - psi(Y) @ psi(Y).T
    assert np.linalg.eigvalsh(gap)[0] > -1e-10
    more = fitted(10)
    assert np.trace(exponential_kernel(Y, Y) - more(Y) @ more(Y).T) < np.trace(gap)


def test_psi_is_homogeneous_and_zero_at_zero():
    psi = fitted(8)
    for c in (1e-3, 2.0, 1e4):
        assert_allclose(psi(c * Y), c * psi(Y), rtol=1e-10, atol=1e-10 * c)
    assert_array_equal(psi(np.zeros((2, 5))), 0)
    assert_array_equal(psi(sp.csr_array((2, 5))), 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_gives_what_dense_gives(dtype):
    data = sp.csr_array(sp.random_array((60, 30), density=0.15, rng=np.random.default_rng(0)).astype(dtype))
    dense_map = fitted(10, data=data.toarray(), dtype=dtype)
    sparse_map = Nystrom(bandwidth=1.0).fit(data, 10, rng=np.random.default_rng(0), n_jobs=1)
    tolerance = 1e-11 if dtype == np.float64 else 2e-4
    assert_allclose(sparse_map.landmarks, dense_map.landmarks, rtol=0, atol=tolerance)
    assert_allclose(dense_map(data), dense_map(data.toarray()), rtol=0, atol=tolerance)
    assert dense_map(data).dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_landmarks_that_coincide_stay_harmless(dtype):
    """The kernel matrix is then singular: the same kernel as with the distinct landmarks, and no large numbers."""
    w = unit_rows(X[:6]).astype(dtype)
    twice = np.concatenate([w, w, w * (1 + np.finfo(dtype).eps)])
    maps = []
    for landmarks in (w, twice):
        gram = exponential_kernel(landmarks.astype(np.float64), landmarks.astype(np.float64))
        maps.append(NystromMap(landmarks, inverse_sqrt(gram).astype(dtype), 1.0))
    y = Y.astype(dtype)
    once, thrice = (psi(y) @ psi(y).T for psi in maps)
    assert_allclose(thrice, once, rtol=0, atol=1e-9 if dtype == np.float64 else 2e-3)
    assert np.abs(maps[1](y)).max() < 10 * np.abs(y).max()


def test_fewer_directions_than_landmarks_narrow_the_map():
    with pytest.warns(UserWarning, match="asked for 9 landmarks"):
        psi = fitted(9, data=np.repeat(X[:3], 4, axis=0))
    assert psi.n_outputs == 3
    assert psi(Y).shape == (9, 3)


def test_a_sample_of_zeros_gives_a_finite_map():
    with pytest.warns(UserWarning, match="1 are used"):
        psi = fitted(4, data=np.zeros((5, 5)))
    assert np.isfinite(psi(Y)).all()
    assert_array_equal(psi(np.zeros((1, 5))), 0)


def test_psi_has_the_same_bits_at_any_number_of_threads():
    data = np.random.default_rng(0).normal(size=(5000, 6)).astype(np.float32)
    maps = [Nystrom(bandwidth=1.0).fit(data, 32, rng=np.random.default_rng(1), n_jobs=jobs) for jobs in (1, 2, 3)]
    for other in maps[1:]:
        assert_array_equal(other.landmarks, maps[0].landmarks)
        assert_array_equal(other.root, maps[0].root)


@pytest.mark.parametrize("kernel", [Nystrom(), PublishedNystrom()], ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_a_map_fitted_with_its_values_is_the_map_and_its_values(n_jobs, sparse, kernel):
    data = np.maximum(np.random.default_rng(0).normal(size=(900, 40)), 0).astype(np.float32)
    data[7] = 0
    data = sp.csr_array(data) if sparse else data
    blocks = row_blocks(900, 128)
    alone = kernel.fit(data, 32, rng=np.random.default_rng(1), n_jobs=n_jobs)
    psi, values = kernel.fit_and_map(data, 32, blocks, rng=np.random.default_rng(1), n_jobs=n_jobs)
    assert_array_equal(psi.landmarks, alone.landmarks)
    assert_array_equal(psi.root, alone.root)
    assert_array_equal(values, np.concatenate([alone(data[rows]) for rows in blocks]))


def test_the_identity_is_the_identity():
    psi = Identity().fit(X, 3, rng=np.random.default_rng(0))
    assert psi == IdentityMap(5)
    assert_array_equal(psi(X), X)
    assert_array_equal(psi(sp.csr_array(X)), X)
    assert set(KERNELS) == {"exp", "identity"}


# ---------------------------------------------------------------------------------------- any library

W = unit_rows(X[:6])
CALLS = {
    "exponential_kernel": lambda x: exponential_kernel(x, x, 0.8),
    "inverse_sqrt": lambda x: inverse_sqrt(exponential_kernel(x, x, 0.8)),
    "shrunk": lambda x: inverse_sqrt(exponential_kernel(x, x, 0.8), shrinkage=0.1),
}


@pytest.mark.parametrize("name", CALLS)
def test_strict_arrays_give_the_same(name):
    xp = pytest.importorskip("array_api_strict")
    assert_allclose(np.asarray(CALLS[name](xp.asarray(W))), CALLS[name](W), rtol=0, atol=1e-11)


def test_strict_nystrom_gives_the_same():
    xp = pytest.importorskip("array_api_strict")
    norms, root = np.linalg.norm(Y, axis=1, keepdims=True), inverse_sqrt(exponential_kernel(W, W))
    norms[2] = 0
    got = nystrom(xp.asarray(Y @ W.T), xp.asarray(norms), xp.asarray(root), 0.8)
    assert_allclose(np.asarray(got), nystrom(Y @ W.T, norms, root, 0.8), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_torch_tensors_give_the_same_and_gradients(name):
    torch = pytest.importorskip("torch")
    w = torch.tensor(W, requires_grad=True)
    assert_allclose(CALLS[name](w).detach().numpy(), CALLS[name](W), rtol=0, atol=1e-11)
    assert torch.autograd.gradcheck(CALLS[name], (w,), atol=1e-4)


def test_torch_gradients_through_the_whole_map():
    torch = pytest.importorskip("torch")
    w = torch.tensor(W, requires_grad=True)
    y = torch.tensor(Y, requires_grad=True)

    def psi(y, w):
        norms = torch.sqrt(torch.sum(y * y, dim=1, keepdim=True))
        return nystrom(y @ w.T, norms, inverse_sqrt(exponential_kernel(w, w, 0.8)), 0.8)

    expected = NystromMap(W, inverse_sqrt(exponential_kernel(W, W, 0.8)), 0.8)(Y)
    assert_allclose(psi(y, w).detach().numpy(), expected, rtol=0, atol=1e-10)
    assert torch.autograd.gradcheck(psi, (y[:3], w), atol=1e-4)


def test_a_zero_vector_has_finite_gradients():
    """An empty multiset has φ = 0, where the length has no derivative: NaN there would spread to every anchor."""
    torch = pytest.importorskip("torch")
    y = torch.tensor(np.concatenate([np.zeros((1, 5)), Y[:2]]), requires_grad=True)
    exponential_kernel(y, torch.tensor(W)).sum().backward()
    assert torch.isfinite(y.grad).all()
    assert (y.grad[1:] != 0).any()


def test_sparse_rows_are_standardised_by_blocks():
    """Against scikit-learn's scaler; the rows are never dense all at once."""
    rows = sp.random_array((20_000, 400), density=1e-3, rng=np.random.default_rng(0), format="csr", dtype=np.float32)
    tracemalloc.start()
    found = fit_standard(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = StandardScaler().fit(rows.toarray().astype(np.float64))
    assert_allclose(found.centre, expected.mean_, rtol=1e-5)
    assert_allclose(found.scale, expected.scale_, rtol=1e-5)
    assert peak < 20_000 * 400 * 4
