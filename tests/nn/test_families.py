"""`FisherConv(family=…)` and `FisherAggregation(family=…)`: the arrays' φ, gradients, training, explainers, states."""

import copy
import math
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from fishergraph import EM, FisherEmbedding, Neighbourhood, config_context  # noqa: E402
from fishergraph.em.means import block_moments, score_points  # noqa: E402
from fishergraph.family import (  # noqa: E402
    DiagonalMixture,
    Gaussian,
    GaussianMixture,
    MultinomialMixture,
    VonMisesFisherMixture,
    choose_family,
)
from fishergraph.family.base import map_arrays  # noqa: E402
from fishergraph.multiset import Multisets  # noqa: E402
from fishergraph.nn import FisherAggregation, FisherConv, FisherNet, WeightedMixture  # noqa: E402
from fishergraph.nn.charts import CHARTS  # noqa: E402
from fishergraph.ops import choose_engine  # noqa: E402

NAMES = ["diagonal-mixture", "von-mises-fisher", "multinomial", "gaussian"]
FAMILIES = pytest.mark.parametrize("name", NAMES)
_rng = np.random.default_rng(0)
N, D, P = 12, 3, 2
REALS = torch.tensor(_rng.normal(size=(N, D)))
EDGES = torch.tensor(np.stack([_rng.integers(N, size=30), _rng.integers(N - 1, size=30)]))  # the last has no members
WEIGHTS = torch.tensor(_rng.uniform(0.5, 2, size=30))
COUNTS = torch.tensor(_rng.poisson(1.5, size=(N, D)).astype(float))  # zeros among them


def points_of(name):
    """Points in the support of a family."""
    return COUNTS if getattr(name, "name", name) == "multinomial" else REALS


def conv(name, **options):
    torch.manual_seed(0)
    given = {"head": "identity", "family": name, "multiset": Neighbourhood(closed=False), **options}
    made = FisherConv(D, None if given["head"] == "identity" else 4, P, **given).double()
    made.mixture.trials = 4.0
    with torch.no_grad():
        if made.mixture.bias is not None:
            made.mixture.bias.normal_()
        made.mixture.anchors.add_(0.3 * torch.randn_like(made.mixture.anchors))
    return made


@FAMILIES
@pytest.mark.parametrize("engine", [None, "torch"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"em": EM(prior=0.6), "counts": True},
        {"em": EM(n_iter=3)},
        {"em": EM(e_step="balanced")},
        {"em": EM(n_iter=0)},
        {"heads": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("tangent", ["estimate", "score"])
def test_phi_is_that_of_arrays(name, engine, options, tangent):
    em = options.get("em", EM())
    if tangent == "score" and em.n_iter > 1:
        pytest.skip("a gradient at θ_0 has one iteration")
    family, x = choose_family(name).set_params(tangent=tangent), points_of(name)
    made = conv(family, **options)
    with config_context(engine=engine):
        got = made(x, EDGES, WEIGHTS).detach().numpy()
    order = np.argsort(EDGES[1].numpy(), kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(EDGES[1].numpy(), minlength=N))])
    sets = Multisets(indptr, EDGES[0].numpy()[order], WEIGHTS.numpy()[order], N)
    points = made.mixture.points(x)[1].numpy()
    parts, masses = [], []
    for h in range(made.heads):
        theta = map_arrays(made.mixture.theta(h, torch.float64), lambda part: part.detach().numpy())
        steps = {"prior": em.prior, "n_iter": em.n_iter, "slack": em.slack}
        scored = score_points(family, points, theta)
        found = block_moments(choose_engine("numba"), family, scored, sets, theta, **steps)
        parts.append(family.phi(*found, theta, prior=em.prior))
        masses.append(np.log1p(found.mass))
    expected = np.concatenate([*parts, *masses] if options.get("counts") else parts, axis=1)
    assert made.mixture.out_channels == expected.shape[1]
    np.testing.assert_allclose(got, expected, atol=1e-9)
    assert np.abs(got[-1]).max() == 0  # an empty set


@FAMILIES
@pytest.mark.parametrize("engine", [None, "torch"])
@pytest.mark.parametrize(
    "options",
    [{"em": EM(prior=0.3), "counts": True}, {"em": EM(n_iter=2)}, {"em": EM(e_step="unbalanced")}],
    ids=str,
)
def test_gradients_are_those_of_differences(name, engine, options):
    if engine is not None and "counts" not in options:
        pytest.skip("several iterations and transport have one engine")
    made = conv(name, normalize=False, **options)
    names, values = zip(*made.named_parameters(), strict=True)

    def run(x, weights, *given):
        return torch.func.functional_call(made, dict(zip(names, given, strict=True)), (x, EDGES, weights))

    x = points_of(name) + (0.5 if name == "multinomial" else 0.0)  # off the words that are missing
    inputs = [tensor.detach().clone().requires_grad_() for tensor in (x, WEIGHTS, *values)]
    with config_context(engine=engine):
        assert torch.autograd.gradcheck(run, inputs, atol=1e-5, nondet_tol=1e-12, fast_mode=True)


def two_kinds_of_sets(name):
    """Sets of four points with one mean, of two kinds that a mixture, or a covariance, sees and an average does not."""
    rng, n = np.random.default_rng(1), 200
    labels = np.sort(np.arange(n) // 4 % 2)
    if name == "multinomial":  # topics of two words each: {0, 1} or {2, 3}, and {0, 2} or {1, 3}
        topics = np.array([[[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 0, 1, 0], [0, 1, 0, 1]]])
        x = rng.poisson(4 * topics[labels, rng.integers(2, size=n)]).astype(float)
    else:
        x = np.eye(4)[labels] * rng.choice([-1.0, 1.0], size=(n, 1)) + 0.2 * rng.normal(size=(n, 4))
    return torch.tensor(x, dtype=torch.float32), torch.arange(n // 4).repeat_interleave(4), torch.tensor(labels[::4])


@FAMILIES
def test_it_starts_from_data_and_learns(name):
    x, groups, y = two_kinds_of_sets(name)
    torch.manual_seed(0)
    aggr = FisherAggregation(4, 2, num_anchors=4, family=name).init_from_data(x)
    start = {key: value.clone() for key, value in aggr.named_parameters()}
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
    assert all(not torch.equal(value, start[key]) for key, value in aggr.named_parameters())


@FAMILIES
def test_initial_parameters_are_those_of_em(name):
    x = points_of(name)
    made = conv(name).mixture
    points = made.points(x)[1]
    made.init_from_data(x, 0)
    theta = made.theta(0, torch.float64)
    family = choose_family(name)
    learned = family.log_likelihood(points, theta).mean()
    assert learned > family.log_likelihood(points, conv(name).mixture.theta(0, torch.float64)).mean()
    if name == "multinomial":
        assert theta.trials == pytest.approx(float(x.sum(dim=1).mean()))


@FAMILIES
def test_a_chart_leads_back(name):
    """θ → blocks → θ."""
    made = conv(name).mixture
    theta = made.theta(0, torch.float64)
    weights = getattr(theta, "log_weights", None)
    again = CHARTS[name].theta(weights, CHARTS[name].blocks(theta), 4.0)
    for found, expected in zip(again, theta, strict=True):
        if found is not None and name != "von-mises-fisher":
            torch.testing.assert_close(found, expected)
    torch.testing.assert_close(made.family.mean_statistics(again), made.family.mean_statistics(theta))


@FAMILIES
@pytest.mark.parametrize("head", ["nystrom", "relu"])
def test_a_network_of_such_layers(name, head):
    x = points_of(name)
    torch.manual_seed(0)
    net = FisherNet(-1, 8, 2, 3, num_anchors=2, family=name, head=head).double().init_from_data(x, EDGES)
    out = net(x, EDGES)
    assert out.shape == (N, 3)
    out.sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in net.parameters() if p.grad is not None)
    other = FisherNet(**net.config()).double()
    other.load_state_dict(net.state_dict())
    copied = pickle.loads(pickle.dumps(net)), copy.deepcopy(net)
    for same in (other, *copied):
        torch.testing.assert_close(same.eval()(x, EDGES), net.eval()(x, EDGES))
    torch.testing.assert_close(net.inference(x, EDGES, batch_size=5), net(x, EDGES))
    torch.testing.assert_close(net(x.to_sparse_csr(), EDGES), net(x, EDGES))


def test_the_first_layer_of_a_network_reads_counts():
    """As in `FisherEmbedding`: ψ_0 sees unit rows, the first layer x itself, and Gaussian mixtures stand behind it."""
    net = FisherNet(D, 8, 2, family="multinomial", num_anchors=2).double().init_from_data(COUNTS, EDGES).eval()
    assert [type(layer.mixture).__name__ for layer in net.convs] == ["FamilyMixture", "Mixture"]
    psi = net(COUNTS, EDGES)
    torch.testing.assert_close(psi[:, 8:16], net.convs[0](COUNTS, EDGES))
    torch.testing.assert_close(psi[:, :8], net.input_map(torch.nn.functional.normalize(COUNTS, dim=1)))
    assert not torch.allclose(net(2 * COUNTS, EDGES)[:, 8:16], psi[:, 8:16])  # 2 x says twice as much
    bare = FisherNet(D, 8, 1, family="multinomial", input_map=False).double()
    torch.testing.assert_close(bare(COUNTS, EDGES), bare.convs[0](COUNTS, EDGES))
    relu = FisherConv(8, 4, 2, family="multinomial").double()
    assert relu(torch.relu(psi[:, :8]), EDGES).shape == (N, 4)  # what a ReLU gives is no less than zero


@FAMILIES
def test_explainers_see_the_same(name):
    x = points_of(name)
    made = conv(name, counts=True, heads=2)
    fused = made(x, EDGES, WEIGHTS)
    _, (_, attention) = made(x, EDGES, WEIGHTS, return_attention_weights=True)
    n_columns = 2 * made.mixture.num_anchors
    sums = torch.zeros(N, n_columns, dtype=torch.float64).index_add(0, torch.sort(EDGES[1]).values, attention)
    filled = torch.bincount(EDGES[1], minlength=N)[:, None] > 0
    torch.testing.assert_close(sums, filled.double().expand_as(sums))
    made.register_message_forward_hook(lambda *_: None)
    torch.testing.assert_close(made(x, EDGES, WEIGHTS), fused)


def test_what_a_module_cannot_do():
    with pytest.raises(ValueError, match="family"):
        FisherConv(D, 4, P, family=GaussianMixture(tangent="score"))
    with pytest.raises(ValueError, match="exact"):
        FisherConv(D, 4, P, family=DiagonalMixture(fisher="exact"))
    with pytest.raises(ValueError, match="n_iter"):
        FisherConv(D, 4, P, em=EM(n_iter=2), family=VonMisesFisherMixture(tangent="score"))
    with pytest.raises(ValueError, match="WeightedMixture"):
        FisherEmbedding(1, 2, 4, family=WeightedMixture()).fit(REALS.numpy())
    with pytest.raises(ValueError, match="num_anchors"):
        FisherConv(D, 4, 0, family="gaussian")


def test_too_many_features_for_a_covariance():
    with pytest.raises(ValueError, match="128"):
        FisherConv(129, 4, family="gaussian")
    with pytest.raises(ValueError, match="128"):
        FisherNet(10, 200, 1, family="gaussian")
    lazy = FisherConv(-1, 4, family="gaussian")
    with pytest.raises(ValueError, match="128"):
        lazy(torch.ones(3, 129), EDGES[:, :0])
    assert lazy(torch.ones(3, 5), EDGES[:, :0]).shape == (3, 4)  # nothing was promised by what failed
    assert (lazy.mixture.out_channels, lazy.mixture.num_anchors) == (5 * 8 // 2, 1)


def test_negative_counts_are_refused():
    """An error, and never NaN: in a layer, in an aggregation, in a network, and where data start it."""
    x = COUNTS.clone()
    x[7, 1] = -0.5
    wrong = pytest.raises(ValueError, match="counts")
    for run in (
        lambda: conv("multinomial")(x, EDGES),
        lambda: conv("multinomial").init_from_data(x, EDGES),
        lambda: FisherAggregation(D, family="multinomial").double()(x, torch.zeros(N, dtype=torch.int64)),
        lambda: FisherNet(D, 4, 1, family="multinomial").double()(x, EDGES),
    ):
        with wrong:
            run()
    torch._dynamo.reset()
    compiled = torch.compile(conv("multinomial"), fullgraph=True, backend="aot_eager")
    assert bool(torch.isfinite(compiled(x, EDGES)).all())  # a compiled graph does not check


@FAMILIES
def test_short_floats_and_zero_rows(name):
    x = points_of(name).float()
    x[3] = 0
    for kind in (torch.float32, torch.bfloat16):
        made = conv(name).to(kind)
        given = x.to(kind).detach().requires_grad_()
        out = made(given, EDGES)
        assert out.dtype == kind
        out.sum().backward()
        assert bool(torch.isfinite(out).all())
        assert all(bool(torch.isfinite(p.grad).all()) for p in (given, *made.parameters()))


@FAMILIES
def test_automatic_precision(name):
    x = points_of(name).float()
    torch.manual_seed(0)
    made = FisherConv(D, 4, P, family=name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = made(x, EDGES)
    torch.testing.assert_close(out.float(), made(x, EDGES), atol=0.1, rtol=0.1)
    out.float().square().sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in made.parameters())


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in NAMES), ("diagonal-mixture", {"em": EM(n_iter=2, e_step="balanced")})],
    ids=str,
)
def test_compile_sees_one_graph(name, options):
    x, made = points_of(name), conv(name, head="linear", **options)
    torch._dynamo.reset()
    # Tracing the backward pass too takes up to a minute where Bessel functions are solved for in every iteration.
    backend = "eager" if options or name == "von-mises-fisher" else "aot_eager"
    compiled = torch.compile(made, fullgraph=True, backend=backend)
    grads = []
    for run in (compiled, made):
        made.zero_grad()
        run(x, EDGES, WEIGHTS).square().sum().backward()
        grads.append([p.grad.clone() for p in made.parameters()])
    for found, expected in zip(*grads, strict=True):
        torch.testing.assert_close(found, expected)


@FAMILIES
def test_states_and_widths_that_the_first_input_decides(name):
    x = points_of(name)
    lazy = FisherConv(-1, 4, P, family=name).double()
    empty = FisherConv(-1, 4, P, family=name).double()
    lazy.init_from_data(x, EDGES)
    assert (lazy.in_channels, lazy.mixture.in_channels) == (-1, D)
    empty.load_state_dict(lazy.state_dict())
    torch.testing.assert_close(empty(x, EDGES), lazy(x, EDGES), rtol=0, atol=0)
    assert empty.mixture.trials == lazy.mixture.trials


@pytest.mark.parametrize(
    "family",
    [DiagonalMixture(unit=True), MultinomialMixture(power=0.5, unit=True), Gaussian(unit=True), Gaussian(power=0.5)],
    ids=repr,
)
def test_an_empty_set_stays_zero_when_lengths_are_one(family):
    made = conv(family).float()
    phi = made(points_of(family.name).float(), EDGES)
    assert float(phi[-1].detach().abs().max()) == 0
    lengths = torch.linalg.vector_norm(phi[torch.bincount(EDGES[1], minlength=N) > 0], dim=1)
    assert not family.unit or torch.allclose(lengths, torch.ones_like(lengths))


def test_words_that_are_missing_have_a_gradient_of_zero():
    """Also where no member has the word, and where a step makes a probability underflow."""
    x = COUNTS.clone()
    x[:, 1] = 0
    x.requires_grad_()
    made = conv("multinomial")
    with torch.no_grad():
        made.mixture.anchors[0, 0, 0, 2] = -2000.0
    for tangent in ("estimate", "score"):
        made.mixture.family = MultinomialMixture(tangent=tangent)
        grads = torch.autograd.grad(made(x, EDGES).square().sum(), [x, *made.parameters()])
        assert all(bool(torch.isfinite(grad).all()) for grad in grads)
    assert math.isfinite(float(made(x.detach().float(), EDGES).detach().sum()))


def test_no_step_makes_a_covariance_singular():
    made = FisherConv(D, None, head="identity", family="gaussian").double()
    with torch.no_grad():
        made.mixture.anchors.copy_(3 * torch.randn_like(made.mixture.anchors))
    covariance = made.mixture.theta(0, torch.float64).covariances[0]
    assert float(torch.linalg.eigvalsh(covariance)[0]) > 0
    torch.testing.assert_close(covariance, covariance.T, rtol=1e-12, atol=0)


@FAMILIES
@pytest.mark.gpu
def test_a_gpu_gives_what_the_cpu_gives(name):
    x, made = points_of(name), conv(name, head="linear", em=EM(prior=0.3), counts=True)
    results = []
    for device in ("cpu", "cuda"):
        run = copy.deepcopy(made).to(device)
        out = run(x.to(device), EDGES.to(device), WEIGHTS.to(device))
        out.square().sum().backward()
        results.append([out.detach().cpu(), *(p.grad.cpu() for p in run.parameters())])
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(there, here, atol=1e-6, rtol=1e-5)
