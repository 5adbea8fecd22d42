"""The projection of wide rows in `FisherConv`: when there is one, and that nothing else changes."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import to_hetero  # noqa: E402

from fishergraph import EM, Differences, Neighbourhood, Paths, as_graph  # noqa: E402
from fishergraph._errors import InputError  # noqa: E402
from fishergraph.nn import FisherConv, FisherNet, LinearMap  # noqa: E402

N, D, OUT = 14, 6, 5
WIDE = 256  # four times the least width
KINDS = {
    "linear": {},
    "relu": {"head": "relu"},
    "nystrom": {"head": "nystrom"},
    "identity": {"head": "identity"},
    "heads": {"heads": 2, "em": EM(prior=0.3), "counts": True},
    "steps": {"em": EM(n_iter=2)},
    "residual": {"residual": True, "normalize": False},
    "both ways": {"multiset": Neighbourhood(direction="both")},
    "family": {"family": "diagonal-mixture"},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def graph(width=D, dtype=torch.float64):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(N, width, generator=g, dtype=torch.float64).to(dtype)
    edges = torch.randint(0, N, (2, 40), generator=g)
    return x, edges[:, edges[0] != edges[1]]


def make(width=D, dtype=torch.float64, **options):
    torch.manual_seed(0)
    return FisherConv(width, OUT, 3, **options).to(dtype).eval()


def of(rule):
    """The edges of `graph` as an input of a layer with this rule."""
    edges = graph()[1]
    return rule(as_graph(edges.numpy(), n_nodes=N)) if getattr(rule, "lifts", False) else edges


@pytest.mark.parametrize(
    ("width", "options", "expected"),
    [
        (1433, {}, 64),
        (WIDE, {}, 64),
        (WIDE - 1, {}, None),
        (WIDE, {"project": None}, None),
        (WIDE, {"heads": 13}, None),
        (4 * 65, {"heads": 13}, 65),
        (WIDE, {"heads": 13, "concat": False}, 64),
        (WIDE, {"head": "identity"}, None),
        (WIDE, {"family": "multinomial"}, None),
        (D, {"project": 3}, 3),
        (D, {"project": 3, "head": "identity"}, 3),
        (D, {"project": 9}, 9),
    ],
)
def test_when_rows_are_projected(width, options, expected):
    conv = make(width, **options)
    assert (None if conv.projection is None else conv.projection.out_channels) == expected
    assert conv.mixture.in_channels == (width if expected is None else expected)
    x, edges = graph(width)
    assert torch.isfinite(conv(x.abs(), edges)).all()


@every_kind
def test_with_the_identity_nothing_changes(kind):
    x, edges = graph()
    plain, projected = make(**KINDS[kind]), make(project=D, **KINDS[kind])
    state = {**plain.state_dict(), "projection.weight": torch.eye(D, dtype=x.dtype)}
    projected.load_state_dict(state)
    torch.testing.assert_close(projected(x, edges), plain(x, edges), rtol=0, atol=0)
    if "multiset" not in KINDS[kind]:
        pair = [layer(x, edges, return_attention_weights=True)[1][1] for layer in (plain, projected)]
        torch.testing.assert_close(*pair, rtol=0, atol=0)
    plain.init_from_data(x, edges, seed=3)
    projected.init_from_data(x, edges, seed=3)
    torch.testing.assert_close(projected(x, edges), plain(x, edges), rtol=0, atol=0)


@every_kind
def test_it_is_a_product_before_the_layer(kind):
    x, edges = graph()
    conv, plain = make(project=4, **KINDS[kind]), make(4, **{**KINDS[kind], "residual": False})
    state = {name: value for name, value in conv.state_dict().items() if not name.startswith(("proj", "resi"))}
    plain.load_state_dict(state)
    expected = plain(x @ conv.projection.weight.T, edges)
    expected = expected + x @ conv.residual.weight.T if conv.residual is not None else expected
    torch.testing.assert_close(conv(x, edges), expected)


@pytest.mark.parametrize("rule", [Paths(2), Differences()], ids=repr)
def test_rows_are_projected_before_they_are_lifted(rule):
    x, _ = graph()
    plain, projected = make(multiset=rule), make(multiset=rule, project=D)
    projected.load_state_dict({**plain.state_dict(), "projection.weight": torch.eye(D, dtype=x.dtype)})
    torch.testing.assert_close(projected(x, of(rule)), plain(x, of(rule)), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["linear", "nystrom", "steps", "residual"])
def test_gradcheck(kind):
    x, edges = graph()
    conv = make(project=3, **KINDS[kind])
    names = [name for name, _ in conv.named_parameters()]

    def function(x, *values):
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, edges))

    inputs = [x.requires_grad_(), *(value.detach().clone().requires_grad_() for value in conv.parameters())]
    assert torch.autograd.gradcheck(function, inputs)


@every_kind
def test_sparse_rows_stay_sparse_up_to_the_projection(kind):
    x, edges = graph()
    x = x * (x > 0.4)
    conv = make(project=4, **KINDS[kind])
    found, grads = [], []
    for rows in (x, x.to_sparse_csr()):
        conv.zero_grad()
        z = conv(rows, edges)
        z.square().sum().backward()
        found.append(z.detach())
        grads.append({name: value.grad.clone() for name, value in conv.named_parameters()})
    torch.testing.assert_close(*found)
    torch.testing.assert_close(*grads)
    with pytest.raises(InputError, match="dense"):
        make(**KINDS[kind])(x.to_sparse_csr(), edges)
    again = copy.deepcopy(conv)
    torch.testing.assert_close(
        again.init_from_data(x.to_sparse_csr(), edges)(x, edges), conv.init_from_data(x, edges)(x, edges)
    )


def test_anchors_start_in_the_projected_space():
    x, edges = graph()
    conv = make(project=4).init_from_data(x, edges, seed=1)
    bare = make(4).init_from_data(conv.projection(x), edges, seed=1)
    torch.testing.assert_close(conv.mixture.anchors, bare.mixture.anchors)
    assert conv.mixture.variance == bare.mixture.variance


@pytest.mark.parametrize("width", [D, WIDE])
def test_the_first_input_decides(width):
    x, edges = graph(width)
    lazy = make(-1)
    blank = copy.deepcopy(lazy.state_dict())
    assert "projection.weight" in blank
    assert lazy(x, edges).shape == (N, OUT)
    assert (lazy.projection is None) == (width == D)
    other = make(-1)
    other.load_state_dict(blank)
    assert other(x, edges).shape == (N, OUT)
    for there in (make(-1), make(width)):
        there.load_state_dict(lazy.state_dict())
        torch.testing.assert_close(there(x, edges), lazy(x, edges))
    asked = make(-1, project=3)
    assert asked(x, edges).shape == (N, OUT)
    assert asked.projection.weight.shape == (3, width)
    narrow = make(-1)
    if width == D:
        with pytest.raises(InputError, match="dense"):
            narrow(x.to_sparse_csr(), edges)


@pytest.mark.parametrize("head", ["linear", "relu", "nystrom"])
def test_a_state_without_a_projection_makes_a_layer_without_one(head):
    x, edges = graph(WIDE)
    old = make(WIDE, head=head, project=None)
    new = make(WIDE, head=head)
    new.load_state_dict(old.state_dict())
    assert new.projection is None
    torch.testing.assert_close(new(x, edges), old(x, edges))
    with pytest.raises(RuntimeError, match="projection"):  # one that was asked for stays
        make(WIDE, head=head, project=64).load_state_dict(old.state_dict())


def test_a_module_among_modules():
    x, edges = graph(WIDE, torch.float32)
    conv = make(WIDE, torch.float32)
    expected = conv(x, edges)
    torch.testing.assert_close(pickle.loads(pickle.dumps(conv))(x, edges), expected)
    torch._dynamo.reset()
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, edges), expected)
    before = conv.projection.weight.detach().clone()
    conv.reset_parameters()
    assert not torch.equal(conv.projection.weight, before)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(make(WIDE, torch.float32)(x, edges).float(), expected, atol=0.1, rtol=0.1)
    pair = make((WIDE, 3), torch.float32, residual=True)
    assert pair((x, torch.ones(4, 3)), edges % 4).shape == (4, OUT)


def test_hetero_graphs_whose_kinds_have_other_widths():
    kinds = [("user", "likes", "item"), ("item", "liked", "user")]
    x = {"user": torch.randn(5, D), "item": torch.randn(7, WIDE)}
    edges = {kind: torch.randint(0, 5, (2, 9)) for kind in kinds}

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = FisherConv(-1, 8, multiset=Neighbourhood(closed=False))

        def forward(self, x, edge_index):
            return self.first(x, edge_index)

    net = to_hetero(Net(), (list(x), kinds))
    out = net(x, edges)
    assert {name: rows.shape for name, rows in out.items()} == {"user": (5, 8), "item": (7, 8)}
    convs = [module for module in net.modules() if isinstance(module, FisherConv)]
    assert sorted(conv.projection is None for conv in convs) == [False, True]
    sum(rows.sum() for rows in out.values()).backward()


def test_a_network_projects_by_its_input_map_alone():
    assert all(conv.projection is None for conv in FisherNet(WIDE, 4, 2, input_map=False).convs)


def test_a_linear_head_without_a_bias():
    x, edges = graph()
    conv, plain = make(), make(head=LinearMap(bias=False))
    plain.load_state_dict({name: value for name, value in conv.state_dict().items() if name != "head.bias"})
    torch.nn.init.ones_(conv.head.bias)
    torch.testing.assert_close(conv(x, edges) - 1, plain(x, edges))
    with pytest.raises(InputError, match="bias"):
        LinearMap(bias=1)


@pytest.mark.parametrize("project", ["always", 0, -1, 2.5, True, "4"])
def test_other_values_are_refused(project):
    with pytest.raises(InputError, match="project"):
        make(project=project)


def test_counts_are_not_projected():
    with pytest.raises(InputError, match="counts"):
        make(family="multinomial", project=3)


def test_rows_of_another_width_are_refused():
    x, edges = graph(WIDE + 1)
    with pytest.raises(InputError, match=f"{WIDE} features"):
        make(WIDE)(x, edges)
