"""Functions of eigenvalues: their values, and gradients against differences, also where eigenvalues coincide."""

import numpy as np
import pytest

import reference

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import kernel_map  # noqa: E402
from fishergraph.family import Gaussian  # noqa: E402
from fishergraph.nn.charts import TrainedGaussian, floor, inverse_sqrt  # noqa: E402

FUNCTIONS = {
    "inverse root": (inverse_sqrt, lambda v: v**-0.5),
    "root": (lambda a: TrainedGaussian.spectral.power(a, 0.5), lambda v: v**0.5),
    "floor": (lambda a: floor(a, 1.0001), lambda v: max(v, 1.0001)),
}
EACH = pytest.mark.parametrize("name", FUNCTIONS)


def symmetric(values, seed=0):
    """V diag(values) Vᵀ with random eigenvectors."""
    g = torch.Generator().manual_seed(seed)
    vectors = torch.linalg.qr(torch.randn(len(values), len(values), generator=g, dtype=torch.float64)).Q
    return vectors @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ vectors.T


@EACH
@pytest.mark.parametrize("values", [[0.3, 1.0, 2.0, 5.0], [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 0.5, 0.5]])
def test_a_function_and_its_gradient(name, values):
    function, of_values = FUNCTIONS[name]
    matrix = symmetric(values)
    np.testing.assert_allclose(function(matrix), symmetric([of_values(v) for v in values]), atol=1e-12)
    check = lambda a: function(0.5 * (a + a.mT))  # noqa: E731
    assert torch.autograd.gradcheck(check, (matrix.requires_grad_(),))


@EACH
def test_batches(name):
    function, _ = FUNCTIONS[name]
    alone = [symmetric([0.5, 2.0, 2.0], seed) for seed in range(6)]
    batch = torch.stack(alone).view(2, 3, 3, 3)
    torch.testing.assert_close(function(batch).flatten(0, 1), torch.stack([function(a) for a in alone]))
    check = lambda a: function(0.5 * (a + a.mT))  # noqa: E731
    assert torch.autograd.gradcheck(check, (batch.requires_grad_(),), fast_mode=True)


def test_inverse_sqrt_of_a_matrix_that_is_not_of_full_rank():
    factor = torch.randn(5, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    expected = reference.inverse_root((factor @ factor.T).numpy(), 1e-6)
    np.testing.assert_allclose(inverse_sqrt(factor @ factor.T), expected, atol=1e-9)
    assert torch.autograd.gradcheck(lambda b: inverse_sqrt(b @ b.T), (factor.requires_grad_(),))


def test_floor_of_a_matrix_that_is_not_of_full_rank():
    """The covariance of two points: all but one eigenvalue are zero."""
    factor = torch.randn(5, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    found = torch.linalg.eigvalsh(floor(factor @ factor.T, 1e-3))
    torch.testing.assert_close(found[:4], torch.full((4,), 1e-3, dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda b: floor(b @ b.T, 1e-3), (factor.requires_grad_(),))


def test_the_trained_gaussian_has_the_functions_of_the_family():
    matrix = symmetric([0.2, 0.7, 3.0])
    for ours, theirs in zip(TrainedGaussian.spectral, Gaussian.spectral, strict=True):
        for number in (0.5, -0.5) if ours is TrainedGaussian.spectral.power else (0.5, 1.0):
            torch.testing.assert_close(ours(matrix, number), theirs(matrix, number))


@EACH
def test_for_pytorch(name):
    matrix = symmetric([0.3, 1.0, 2.0]).requires_grad_()
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.fishergraph.spectral, (matrix, name, 0.5), test_utils=tests)
    torch.testing.assert_close(inverse_sqrt(matrix), kernel_map.inverse_sqrt(matrix.detach()))


def test_a_second_derivative_is_an_error():
    matrix = symmetric([0.3, 1.0, 2.0]).requires_grad_()
    (grad,) = torch.autograd.grad(floor(matrix, 0.5).square().sum(), matrix, create_graph=True)
    with pytest.raises(NotImplementedError, match="a function of eigenvalues"):
        grad.sum().backward()


def test_what_is_not_finite_stays_so():
    """A loss that is NaN is reported by the training; LAPACK would raise at another place."""
    matrices = torch.stack([symmetric([0.3, 1.0, 2.0]), torch.full((3, 3), torch.nan, dtype=torch.float64)])
    found = floor(matrices, 0.5)
    assert bool(found[0].isfinite().all())
    assert bool(found[1].isnan().all())
