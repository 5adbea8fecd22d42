"""A^{-1/2} by products: against eigenvalues, its gradient, the cutoff, and the heads that use it on a GPU."""

import copy

import numpy as np
import pytest

import reference

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph.nn import FisherNet, NystromHead  # noqa: E402
from fishergraph.nn import heads as heads_module  # noqa: E402
from fishergraph.nn.charts import inverse_sqrt  # noqa: E402
from fishergraph.nn.inverse_root import inverse_root  # noqa: E402


def gram(n, d, bandwidth, seed=0):
    """The kernel of n random landmarks, float64."""
    g = torch.Generator().manual_seed(seed)
    w = torch.nn.functional.normalize(torch.randn(n, d, generator=g, dtype=torch.float64), dim=1)
    return torch.exp((w @ w.T - 1) / bandwidth**2)


def of_values(values, seed=0):
    g = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(len(values), len(values), generator=g, dtype=torch.float64)).Q
    matrix = (basis * torch.tensor(values, dtype=torch.float64)) @ basis.T
    return 0.5 * (matrix + matrix.T)


MATRICES = {
    "a network's": gram(64, 64, 0.7),
    "wide": gram(32, 16, 3.0),
    "one": gram(1, 4, 1.0),
    "equal eigenvalues": of_values([2.0] * 20),
    "a small scale": 1e-5 * gram(16, 16, 0.7),
    "no full rank": of_values([3.0, 1.0, 0.2] + [0.0] * 12),
    "beside the cutoff": of_values([1.0, 1.0, 2e-6, 5e-7, 1e-9]),
}


@pytest.mark.parametrize("name", MATRICES)
def test_it_is_that_of_the_eigenvalues(name):
    matrix = MATRICES[name]
    expected = reference.inverse_root(matrix.numpy(), 1e-6)
    np.testing.assert_allclose(inverse_root(matrix[None])[0], expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["a network's", "wide", "equal eigenvalues", "no full rank"])
def test_its_gradient_is_that_of_the_eigenvalues(name):
    matrix = MATRICES[name].clone().requires_grad_()
    slopes = torch.randn(matrix.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (ours,) = torch.autograd.grad((inverse_root(matrix[None])[0] * slopes).sum(), matrix)
    (known,) = torch.autograd.grad((inverse_sqrt(matrix) * slopes).sum(), matrix)
    torch.testing.assert_close(ours, known, rtol=0, atol=1e-7 * float(known.abs().max()))


def test_gradcheck():
    matrices = torch.stack([gram(5, 3, 0.7), gram(5, 3, 2.0, seed=1)]).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: inverse_root(0.5 * (a + a.mT)), (matrices,))


def test_zeros_and_what_is_not_finite():
    matrices = torch.stack([torch.zeros(3, 3), torch.eye(3), torch.full((3, 3), torch.nan)]).double()
    found = inverse_root(matrices)
    torch.testing.assert_close(found[:2], matrices[:2])
    assert bool(found[2].isnan().all())


def test_for_pytorch():
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    matrix = gram(5, 3, 0.7)[None].requires_grad_()
    torch.library.opcheck(torch.ops.fishergraph.inverse_root, (matrix,), test_utils=tests)


def test_a_second_derivative_is_an_error():
    matrix = gram(5, 3, 0.7)[None].requires_grad_()
    (grad,) = torch.autograd.grad(inverse_root(matrix).square().sum(), matrix, create_graph=True)
    with pytest.raises(NotImplementedError, match="inverse root"):
        grad.sum().backward()


def example():
    g = torch.Generator().manual_seed(0)
    return torch.randn(30, 6, generator=g), torch.randint(30, (2, 90), generator=g)


def test_a_network_makes_all_roots_at_once_where_the_host_would_wait(monkeypatch):
    """As on a GPU: one batch in a pass, with the output and the gradients of the roots one by one."""
    torch.manual_seed(0)
    net, (x, edges) = FisherNet(6, 8, 2, 3).double(), example()
    other = copy.deepcopy(net)
    net(x.double(), edges).square().sum().backward()
    batches = []

    def counted(matrices):
        batches.append(len(matrices))
        return inverse_root(matrices)

    monkeypatch.setattr(heads_module, "_waits", lambda device: True)
    monkeypatch.setattr(heads_module, "inverse_root", counted)
    out = other(x.double(), edges)
    out.square().sum().backward()
    assert batches == [3]
    torch.testing.assert_close(out, net(x.double(), edges))
    for ours, theirs in zip(other.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    assert all(module._held is None for module in other.modules() if isinstance(module, NystromHead))


def test_an_error_in_a_pass_leaves_no_root_behind(monkeypatch):
    monkeypatch.setattr(heads_module, "_waits", lambda device: True)
    net, (x, edges) = FisherNet(6, 8, 2, 3), example()
    net.classifier.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        net(x, edges)
    assert all(module._held is None for module in net.modules() if isinstance(module, NystromHead))


def test_a_network_of_unknown_width_takes_that_of_its_first_input(monkeypatch):
    monkeypatch.setattr(heads_module, "_waits", lambda device: True)
    x, edges = example()
    assert FisherNet(-1, 8, 2, 3)(x, edges).shape == (30, 3)


@pytest.mark.gpu
def test_on_a_gpu_it_waits_for_nothing():
    matrix = torch.stack([gram(64, 64, 0.7), gram(64, 16, 2.0)]).cuda().requires_grad_()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        root = inverse_root(matrix)
        root.square().sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(root.cpu(), torch.stack([inverse_sqrt(m) for m in matrix.detach().cpu()]))
