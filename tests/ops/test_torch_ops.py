"""The operators as PyTorch sees them, and the linear head, whose backward is an operator of its own."""

import os

import pytest

torch = pytest.importorskip("torch")

import fishergraph.ops.iterate.torch  # noqa: E402, F401
from fishergraph.ops.linear_head.torch import fisher_linear  # noqa: E402
from fishergraph.ops.posterior.torch import posterior  # noqa: E402
from fishergraph.ops.transport.torch import transport  # noqa: E402
from gradients import assert_close, make  # noqa: E402

USUAL = {"n": 7, "sizes": (0, 2, 8, 1)}
interpreted = pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="needs TRITON_INTERPRET=1")
ENGINES = pytest.mark.parametrize("engine", ["numba", pytest.param("triton", marks=interpreted)])


@pytest.fixture
def small_hubs(monkeypatch):
    monkeypatch.setattr("fishergraph.ops.tensor_sets.HUB", 4)


def logs_of(case, engine="torch"):
    return posterior(engine, case.points, case.anchors, case.variance, case.bias)


# -------------------------------------------------------------------------------------- registration


def check(op, *arguments):
    """What PyTorch asks of an operator: its schema, its shapes, its gradient, and all of it under the compiler."""
    torch.library.opcheck(op, arguments)


def check_backward(op, *arguments):
    """The same of one that has no gradient and is compiled with the operator it belongs to."""
    torch.library.opcheck(op, arguments, test_utils=("test_schema", "test_faketensor"))


@ENGINES
@pytest.mark.parametrize("weighted", [False, True])
def test_the_m_step(engine, weighted, small_hubs):
    case = make(n=3, sizes=(0, 2, 5), p=2, d=2, weighted=weighted)
    sets, logs = case.sets.pack(transpose=True), logs_of(case)
    fixed = (case.points, logs, case.weights, case.anchors, sets, 0.3, engine)
    leaves = [t if t is None or isinstance(t, list) else t.clone().requires_grad_() for t in fixed[:4]]
    check(torch.ops.fishergraph.attend, *leaves, *fixed[4:], False)
    log_total = torch.ops.fishergraph.attend(*fixed, True)[2]
    rest = (log_total, case.grad_means, case.grad_mass, weighted)
    check_backward(torch.ops.fishergraph.attend_backward, *fixed, *rest)


@pytest.mark.parametrize(
    ("engine", "slack"),
    [("numba", torch.inf), ("numba", 0.0), pytest.param("triton", torch.inf, marks=interpreted)],
)
def test_several_iterations(engine, slack, small_hubs):
    case = make(n=3, sizes=(0, 2, 5), p=2, d=2)
    numbers = (case.sets.pack(transpose=True), case.variance, 0.3, 2, slack, engine)
    given = (case.points, case.anchors, case.bias, case.weights)
    for keep in (False, True):
        check(torch.ops.fishergraph.em, *(t.clone().requires_grad_() for t in given), *numbers, keep)
        kept = list(torch.ops.fishergraph.em(*given, *numbers, keep)[2:])
        upstream = (kept, case.grad_means, case.grad_mass, True)
        check_backward(torch.ops.fishergraph.em_backward, *given, *numbers, *upstream)


@ENGINES
def test_the_e_step(engine):
    case = make(**USUAL)
    leaves = [t.clone().requires_grad_() for t in (case.points, case.anchors, case.bias)]
    check(torch.ops.fishergraph.posterior, *leaves, case.variance, engine)


def test_the_transport():
    case = make(**USUAL)
    scores = logs_of(case)[case.sets.indices].clone().requires_grad_()
    weights = (case.weights + 0.5).requires_grad_()
    check(torch.ops.fishergraph.transport, scores, case.sets.indptr, weights, 0.5, 1e-10, 50)
    logs = transport(scores, case.sets.indptr, weights, slack=0.5).detach()
    arguments = (torch.ones_like(logs), logs, case.sets.indptr, weights.detach(), 0.5)
    check_backward(torch.ops.fishergraph.transport_backward, *arguments)


@ENGINES
@pytest.mark.parametrize("weighted", [False, True])
def test_the_head(engine, weighted, small_hubs):
    case = make(n=3, sizes=(0, 2, 5), weighted=weighted).to("cpu", torch.float32)
    given = (case.points, logs_of(case), case.weights, case.anchors, torch.rand(5, 12))
    leaves = [t if t is None or t is case.weights else t.clone().requires_grad_() for t in given]
    rest = (case.sets.pack(transpose=True), 0.3, 0.6, engine)
    check(torch.ops.fishergraph.head, *leaves, *rest, True)
    _, log_total, phi = torch.ops.fishergraph.head(*given, *rest, True)
    check_backward(torch.ops.fishergraph.head_backward, *given, *rest, log_total, phi, torch.rand(3, 5))


# --------------------------------------------------------------------------------------- the linear head


def layer(case, engine, out=5):
    """z and the gradients of everything, by the head or, in plain PyTorch, by way of φ."""
    generator = torch.Generator().manual_seed(0)
    _, p, d = case.grad_means.shape
    weight, grad = (torch.randn(shape, generator=generator) for shape in ((out, p * d), (case.sets.n_sets, out)))
    names = ("points", "logs", "anchors", "weight")
    given = (case.points, logs_of(case).detach(), case.anchors, weight.to(case.points))
    leaves = [tensor.clone().requires_grad_() for tensor in given]
    points, logs, anchors, weight = leaves
    z = fisher_linear(
        engine, points, logs, case.sets.weighted(case.weights), anchors, weight, fisher_root=0.6, prior=case.prior
    )
    found = torch.autograd.grad(z, leaves, grad.to(z))
    return {"z": z.detach(), **dict(zip(names, found, strict=True))}


CASES = pytest.mark.parametrize(
    "options",
    [
        {},
        {"weighted": False},
        {"prior": 0.3},
        {"p": 1, "d": 1},
        {"p": 9, "d": 20},
        {"scale": 30.0, "variance": 0.5},
        {"scale": 30.0, "variance": 0.5, "prior": 1e-3, "weighted": False},
    ],
    ids=str,
)


@CASES
@pytest.mark.parametrize(
    ("engine", "device"),
    [
        ("numba", "cpu"),
        pytest.param("triton", "cpu", marks=interpreted),
        pytest.param("triton", "cuda", marks=pytest.mark.gpu),
    ],
)
def test_the_linear_head_agrees_with_the_plain_composition(engine, device, options, monkeypatch):
    if device == "cpu":
        monkeypatch.setattr("fishergraph.ops.tensor_sets.HUB", 2)
    exact = make(**{**USUAL, "sizes": (0, 2, 8, 1, 5)}, **options)
    if device == "cpu":  # in both directions, and not all of them
        for sets in (exact.sets, exact.sets.transpose.sets):
            assert 0 < sets.hubs.n_hubs < sets.n_sets
    single = exact.to("cpu", torch.float32)
    # A share is exp(log α − log total): it has the digits that these logs have left. The gradient of the logs is a
    # difference of two sums that the head's backward takes apart.
    rounding = 4e-6 + torch.finfo(torch.float32).eps * float(logs_of(exact).abs().max())
    known, plain = layer(exact, "torch"), layer(single, "torch")
    got = layer(single.to(device, torch.float32), engine)
    for name, expected in known.items():
        scale = float(expected.abs().max()) + 1e-30
        ours, theirs = (float((t[name].cpu().double() - expected).abs().max()) / scale for t in (got, plain))
        assert ours <= 2 * theirs + rounding, f"{name}: off by {ours:.2g}, the plain version by {theirs:.2g}"


@interpreted
@pytest.mark.parametrize("weighted", [False, True])
def test_the_linear_head_in_chunks_of_rows(weighted, small_hubs, monkeypatch):
    case = make(**USUAL, weighted=weighted).to("cpu", torch.float32)
    expected = layer(case, "triton")
    for name in ("_CHUNK", "_BACK_CHUNK"):
        monkeypatch.setattr(f"fishergraph.ops.linear_head.triton.{name}", 4 * 12 * 2)
    assert_close(layer(case, "triton"), expected, rtol=1e-5)


@ENGINES
def test_the_linear_head_of_a_row_block(engine, small_hubs):
    case = make(**USUAL).to("cpu", torch.float32)
    rest = case.points, logs_of(case), case.sets.weighted(case.weights).block(slice(2, 4)), case.anchors
    ours, theirs = (fisher_linear(name, *rest, torch.ones(5, 12), fisher_root=0.6) for name in (engine, "torch"))
    assert ours.shape == (2, 5)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@ENGINES
def test_the_linear_head_is_differentiated_once(engine):
    case = make(**USUAL).to("cpu", torch.float32)
    points = case.points.clone().requires_grad_()
    z = fisher_linear(engine, points, logs_of(case), case.sets, case.anchors, torch.ones(5, 12), fisher_root=0.6)
    first = torch.autograd.grad(z.sum(), points, create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="differentiated"):
        torch.autograd.grad((first**2).sum(), points)


@ENGINES
def test_the_compiler_takes_the_linear_head_whole(engine):
    case = make(**USUAL).to("cpu", torch.float32)
    case.sets.prepare()
    torch._dynamo.reset()
    weight = torch.rand(5, 12)

    def loss(points, anchors):
        logs = posterior(engine, points, anchors, case.variance)
        z = fisher_linear(engine, points, logs, case.sets, anchors, weight, fisher_root=0.6, prior=0.1)
        return (z**2).sum()

    results = []
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        leaves = [t.clone().requires_grad_() for t in (case.points, case.anchors)]
        value = function(*leaves)
        results.append([value, *torch.autograd.grad(value, leaves)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
