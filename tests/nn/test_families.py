"""`FisherConv(family=…)` and `FisherAggregation(family=…)`: the arrays' φ, gradients, training, explainers, states."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph.em.moments import block_moments, see  # noqa: E402
from fishergraph.family import DiagonalMixture, VonMisesFisherMixture, choose_family  # noqa: E402
from fishergraph.family.base import map_arrays  # noqa: E402
from fishergraph.multiset import Multisets  # noqa: E402
from fishergraph.nn import FisherAggregation, FisherConv, FisherNet  # noqa: E402
from fishergraph.ops import choose_backend  # noqa: E402

NAMES = ["diagonal-mixture", "von-mises-fisher"]
FAMILIES = pytest.mark.parametrize("name", NAMES)
_rng = np.random.default_rng(0)
N, D, P = 12, 3, 2
X = torch.tensor(_rng.normal(size=(N, D)))
EDGES = torch.tensor(np.stack([_rng.integers(N, size=30), _rng.integers(N - 1, size=30)]))  # the last has no members
WEIGHTS = torch.tensor(_rng.uniform(0.5, 2, size=30))


def conv(name, **options):
    torch.manual_seed(0)
    given = {"head": "identity", "family": name, "add_self_loops": False, **options}
    made = FisherConv(D, None if given["head"] == "identity" else 4, P, **given).double()
    with torch.no_grad():
        made.mixture.bias.normal_()
        made.mixture.anchors.add_(0.3 * torch.randn_like(made.mixture.anchors))
    return made


@FAMILIES
@pytest.mark.parametrize("backend", [None, "torch"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior": 0.6, "counts": True},
        {"num_em_steps": 3},
        {"e_step": "balanced"},
        {"num_em_steps": 0},
        {"heads": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("tangent", ["estimate", "score"])
def test_phi_is_that_of_arrays(name, backend, options, tangent):
    if tangent == "score" and options.get("num_em_steps", 1) > 1:
        pytest.skip("a gradient at θ_0 has one iteration")
    family = choose_family(name, tangent=tangent)
    made = conv(family, backend=backend, **options)
    got = made(X, EDGES, WEIGHTS).detach().numpy()
    order = np.argsort(EDGES[1].numpy(), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(EDGES[1].numpy(), minlength=N))])
    sets = Multisets(indptr, EDGES[0].numpy()[order], WEIGHTS.numpy()[order], N)
    points, prior = made.mixture.points(X).numpy(), options.get("prior", 0.0)
    parts, masses = [], []
    for h in range(made.heads):
        theta = map_arrays(made.mixture.theta(h, torch.float64), lambda part: part.detach().numpy())
        seen, steps = see(family, points, theta), options.get("num_em_steps", 1)
        slack = 0.0 if "e_step" in options else np.inf
        found = block_moments(
            choose_backend("numba"), family, seen, sets, theta, prior=prior, n_em_iter=steps, slack=slack
        )
        parts.append(family.phi(*found, theta, prior=prior))
        masses.append(np.log1p(found.mass))
    expected = np.concatenate([*parts, *masses] if options.get("counts") else parts, axis=1)
    assert made.mixture.out_channels == expected.shape[1]
    np.testing.assert_allclose(got, expected, atol=1e-9)
    assert np.abs(got[-1]).max() < 1e-12  # an empty set


@FAMILIES
@pytest.mark.parametrize("backend", [None, "torch"])
@pytest.mark.parametrize(
    "options", [{"prior": 0.3, "counts": True}, {"num_em_steps": 2}, {"e_step": "unbalanced"}], ids=str
)
def test_gradients_are_those_of_differences(name, backend, options):
    if backend is not None and "prior" not in options:
        pytest.skip("several iterations and transport have one engine")
    made = conv(name, backend=backend, normalize=False, **options)
    names, values = zip(*made.named_parameters(), strict=True)

    def run(x, weights, *given):
        return torch.func.functional_call(made, dict(zip(names, given, strict=True)), (x, EDGES, weights))

    inputs = [tensor.detach().clone().requires_grad_() for tensor in (X, WEIGHTS, *values)]
    assert torch.autograd.gradcheck(run, inputs, atol=1e-5, nondet_tol=1e-12, fast_mode=True)


@FAMILIES
def test_it_starts_from_data_and_learns(name):
    """Two classes of directions with one mean: what a mixture sees and an average does not."""
    rng = np.random.default_rng(1)
    n = 200
    labels = rng.integers(2, size=n)
    axes = np.eye(4)[labels] * rng.choice([-1.0, 1.0], size=(n, 1))
    x = torch.tensor(axes + 0.2 * rng.normal(size=(n, 4)), dtype=torch.float32)
    groups = torch.arange(n // 4).repeat_interleave(4)
    y = torch.tensor(labels.reshape(-1, 4)[:, 0])
    x = x[torch.tensor(np.argsort(labels, kind="stable"))]
    y = torch.tensor(np.sort(labels)[::4])
    torch.manual_seed(0)
    aggr = FisherAggregation(4, 2, num_anchors=4, family=name).init_from_data(x)
    optimiser = torch.optim.Adam(aggr.parameters(), lr=0.05)
    before = None
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(aggr(x, groups), y)
        before = loss.item() if before is None else before
        optimiser.zero_grad()
        loss.backward()
        assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in aggr.parameters())
        optimiser.step()
    assert loss.item() < 0.2 * before
    assert (aggr(x, groups).argmax(dim=1) == y).float().mean() > 0.95


@FAMILIES
def test_initial_parameters_are_those_of_em(name):
    points = torch.nn.functional.normalize(X, dim=1)
    made = conv(name).mixture
    made.init_from_data(X, 0)
    theta = made.theta(0, torch.float64)
    family = choose_family(name)
    learned = family.log_likelihood(points, theta).mean()
    assert learned > family.log_likelihood(points, conv(name).mixture.theta(0, torch.float64)).mean()


@FAMILIES
def test_a_network_of_such_layers(name):
    x = X.float()
    net = FisherNet(-1, 8, 2, 3, num_anchors=2, family=name).init_from_data(x, EDGES)
    out = net(x, EDGES)
    assert out.shape == (N, 3)
    out.sum().backward()
    other = FisherNet(**net.config())
    other.load_state_dict(net.state_dict())
    torch.testing.assert_close(other.eval()(x, EDGES), net.eval()(x, EDGES))


@FAMILIES
def test_explainers_see_the_same(name):
    made = conv(name, counts=True, heads=2)
    fused = made(X, EDGES, WEIGHTS)
    _, (_, attention) = made(X, EDGES, WEIGHTS, return_attention_weights=True)
    sums = torch.zeros(N, 2 * P, dtype=torch.float64).index_add(0, torch.sort(EDGES[1]).values, attention)
    filled = torch.bincount(EDGES[1], minlength=N)[:, None] > 0
    torch.testing.assert_close(sums, filled.double().expand_as(sums))
    made.register_message_forward_hook(lambda *_: None)
    torch.testing.assert_close(made(X, EDGES, WEIGHTS), fused)


def test_what_a_module_cannot_do():
    with pytest.raises(
        ValueError, match=r"family of a module .* must be one of 'diagonal-mixture', 'von-mises-fisher'"
    ):
        FisherConv(D, 4, P, family="multinomial")
    with pytest.raises(ValueError, match="has weights of its own, got mixture_bias=True"):
        FisherConv(D, 4, P, family="diagonal-mixture", mixture_bias=True)
    with pytest.raises(ValueError, match="closed form, got fisher='exact'"):
        FisherConv(D, 4, P, family=DiagonalMixture(fisher="exact"))
    with pytest.raises(ValueError, match="takes num_em_steps=1, got 2"):
        FisherConv(D, 4, P, 2, family=VonMisesFisherMixture(tangent="score"))


@FAMILIES
def test_short_floats_and_zero_rows(name):
    made = conv(name).float()
    x = X.float()
    x[3] = 0
    out = made(x, EDGES)
    assert out.dtype == torch.float32
    out.sum().backward()
    assert bool(torch.isfinite(out).all())
    assert all(bool(torch.isfinite(p.grad).all()) for p in made.parameters())
