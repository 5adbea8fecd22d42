"""Rows as unit vectors: every engine agrees with plain PyTorch, forward and backward."""

import os

import pytest

torch = pytest.importorskip("torch")

from fishergraph.ops.unit_rows.torch import unit_rows  # noqa: E402

interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")
ENGINES = pytest.mark.parametrize(
    ("engine", "device"),
    [
        ("numba", "cpu"),
        pytest.param("triton", "cpu", marks=interpreted),
        pytest.param("triton", "cuda", marks=pytest.mark.gpu),
    ],
)


def rows(shape, device="cpu", dtype=torch.float64):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x.to(device, dtype)


@ENGINES
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 7), (9000, 2), (3, 1500)])
def test_agrees_with_plain_pytorch(engine, device, shape):
    if device == "cpu" and engine == "triton":
        shape = (min(shape[0], 9), shape[1])
    x, slope = rows(shape, device).requires_grad_(), rows(shape, device).cos()
    plain = torch.nn.functional.normalize(x, dim=1)
    units = unit_rows(engine, x)
    torch.testing.assert_close(units, plain, rtol=1e-12, atol=1e-12)
    found, known = (torch.autograd.grad(z, x, slope)[0] for z in (units, plain))
    torch.testing.assert_close(found, known, rtol=1e-10, atol=1e-12)


@ENGINES
def test_a_zero_row_and_nan(engine, device):
    x = rows((4, 5), device, torch.float32)
    x[1], x[2, 3] = 0, torch.nan
    x.requires_grad_()
    units = unit_rows(engine, x)
    (grad,) = torch.autograd.grad(units.sum(), x)
    assert torch.equal(units[1], torch.zeros_like(units[1]))
    assert torch.equal(grad[1], torch.zeros_like(grad[1]))
    assert units[2].isnan().all()
    assert not units[[0, 3]].isnan().any()


@pytest.mark.parametrize("exponent", [-44, -40, -25, -19, 20, 30, 38])
@pytest.mark.parametrize(("engine", "device"), [*ENGINES.args[1], ("torch", "cpu")])
def test_rows_of_any_length_that_float32_holds(engine, device, exponent):
    """Squares overflow or vanish from 1e±19 on; the last rows are subnormal, of few digits."""
    x = (rows((3, 5), device) * 10.0**exponent).to(torch.float32)
    exact = x.double() / x.double().norm(dim=1, keepdim=True)
    torch.testing.assert_close(unit_rows(engine, x).double(), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("exponent", [-200, 200, 300])
@pytest.mark.parametrize(("engine", "device"), [*ENGINES.args[1], ("torch", "cpu")])
def test_rows_of_any_length_that_float64_holds(engine, device, exponent):
    plain = rows((3, 5), device)
    exact = plain / plain.norm(dim=1, keepdim=True)
    torch.testing.assert_close(unit_rows(engine, plain * 10.0**exponent), exact, rtol=1e-12, atol=1e-12)


@ENGINES
def test_gradcheck_and_the_registration(engine, device):
    x = rows((3, 4), device).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: unit_rows(engine, x), (x,))
    torch.library.opcheck(torch.ops.fishergraph.unit_rows, (x, engine))
    with pytest.raises(NotImplementedError, match="engine='torch'"):
        torch.autograd.grad(torch.autograd.grad(unit_rows(engine, x).sum(), x, create_graph=True)[0].sum(), x)


@ENGINES
def test_rows_that_are_not_contiguous(engine, device):
    x = rows((6, 4), device)
    turned = x.T.contiguous().T
    assert torch.equal(unit_rows(engine, turned), unit_rows(engine, x))


def test_the_plain_engine_has_second_derivatives():
    assert torch.autograd.gradgradcheck(lambda x: unit_rows("torch", x), (rows((3, 4)).requires_grad_(),))
