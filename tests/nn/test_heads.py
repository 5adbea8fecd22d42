"""ψ as a module: the Nyström map against the reference, its inverse root, and the heads."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

import reference  # noqa: E402
from fishergraph import kernel_map  # noqa: E402
from fishergraph.nn import NystromHead  # noqa: E402
from fishergraph.nn.heads import LinearHead, ReluHead  # noqa: E402

ROWS, D, DIM = 8, 6, 4


def rows(dtype=torch.float64):
    x = torch.randn(ROWS, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[2] = 0
    return x.to(dtype)


def make(dtype=torch.float64, **options):
    torch.manual_seed(0)
    return NystromHead(D, DIM, **options).to(dtype)


@pytest.mark.parametrize("bandwidth", [0.7, 2.0])
def test_nystrom_is_that_of_the_reference(bandwidth):
    psi, x = make(bandwidth=bandwidth), rows()
    expected = reference.nystrom(x.numpy(), psi.landmarks.detach().numpy(), bandwidth)
    np.testing.assert_allclose(psi(x).detach().numpy(), expected, atol=1e-10)
    assert (psi(x)[2] == 0).all()


def test_nystrom_of_sparse_rows():
    psi, x = make(), rows() * (torch.arange(D) % 2)
    sparse = x.to_sparse_csr()
    torch.testing.assert_close(psi(sparse), psi(x))
    psi(sparse).square().sum().backward()
    found = psi.weight.grad.clone()
    psi.zero_grad()
    psi(x).square().sum().backward()
    torch.testing.assert_close(found, psi.weight.grad)


def test_nystrom_gradcheck():
    psi = make()

    def run(x, weight):
        return torch.func.functional_call(psi, {"weight": weight}, (x,))

    weight = psi.weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(run, (rows()[[0, 1, 3]].requires_grad_(), weight))
    x = rows().requires_grad_()
    psi(x).sum().backward()
    assert (x.grad[2] == 0).all()  # an empty multiset moves nothing
    assert torch.isfinite(x.grad).all()


def test_landmarks_are_unit_vectors_whatever_the_weight():
    psi, x = make(), rows()
    before = psi(x)
    with torch.no_grad():
        psi.weight.mul_(torch.linspace(0.5, 30, DIM, dtype=torch.float64)[:, None])
    torch.testing.assert_close(psi(x), before)
    psi(x).square().sum().backward()
    along = (psi.weight.grad * psi.weight).sum(dim=1)
    torch.testing.assert_close(along, torch.zeros_like(along), atol=1e-12, rtol=0)


@pytest.mark.parametrize("sparse", [False, True])
def test_init_from_data_is_the_map_of_the_library(sparse):
    from fishergraph.ops.streams import random_stream

    x = torch.randn(60, D, generator=torch.Generator().manual_seed(5))
    psi = make(torch.float32, bandwidth=1.5)
    unit = torch.nn.functional.normalize(x, dim=1)
    before = (unit @ psi.landmarks.T).max(dim=1).values.mean()
    psi.init_from_data(x.to_sparse_csr() if sparse else x, random_stream(0, x))
    assert (unit @ psi.landmarks.T).max(dim=1).values.mean() > before + 0.1  # every row has a landmark near it
    fitted = kernel_map.Nystrom(bandwidth=1.5).fit(x, DIM, rng=random_stream(0, x))
    if not sparse:
        torch.testing.assert_close(psi(x), fitted(x), atol=2e-6, rtol=1e-5)


def test_heads_of_rows():
    x = rows(torch.float32)
    linear, relu = LinearHead(D, 3), ReluHead(D, 3)
    torch.testing.assert_close(linear(x), x @ linear.weight.T + linear.bias)
    torch.testing.assert_close(linear(x.to_sparse_csr()), linear(x))
    product = x @ relu.weight.T
    expected = ((product - product.mean(0)) / (product.var(0, unbiased=False) + 1e-5).sqrt()).relu()
    torch.testing.assert_close(relu(x), expected, atol=1e-5, rtol=1e-5)


def test_a_module_among_modules():
    psi, x = make(), rows()
    assert repr(psi) == "NystromHead(6, 4, bandwidth=1)"
    lazy = NystromHead(-1, DIM).double()
    lazy.load_state_dict(psi.state_dict())
    for same in (lazy, copy.deepcopy(psi)):
        torch.testing.assert_close(same(x), psi(x), rtol=0, atol=0)
    with pytest.raises(ValueError, match="6 features"):
        psi(x[:, :2])
    with pytest.raises(ValueError, match="bandwidth"):
        NystromHead(D, DIM, bandwidth=0)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(psi, fullgraph=True, backend="aot_eager")(x), psi(x))
