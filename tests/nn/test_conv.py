"""`FisherConv`: the mathematics by the reference, and every habit that users of PyG's layers count on."""

import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric import EdgeIndex  # noqa: E402
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer  # noqa: E402
from torch_geometric.nn import HeteroConv, to_hetero  # noqa: E402
from torch_geometric.utils import k_hop_subgraph, scatter  # noqa: E402

import reference  # noqa: E402
from fishergraph import (  # noqa: E402
    EM,
    FisherEmbedding,
    GaussianMixture,
    Neighbourhood,
    Nystrom,
    PageRank,
    as_graph,
    config_context,
)
from fishergraph.nn import FisherConv, WeightedMixture, tensor_sets  # noqa: E402
from fishergraph.ops.posterior.torch import posterior  # noqa: E402

N, D, OUT = 12, 6, 5

# One of each kind; a test that asks something of every layer goes through them.
KINDS = {
    "linear": {},
    "relu": {"head": "relu"},
    "nystrom": {"head": "nystrom"},
    "identity": {"head": "identity"},
    "heads": {"heads": 2, "family": WeightedMixture()},
    "mean heads": {"heads": 2, "concat": False},
    "steps": {"em": EM(n_iter=3)},
    "balanced": {"em": EM(e_step="balanced")},
    "unbalanced": {"em": EM(n_iter=2, e_step="unbalanced", column_penalty=0.5)},
    "prior": {"em": EM(prior=0.7), "counts": True, "multiset": Neighbourhood(weights="symmetric")},
    "residual": {"residual": True, "normalize": False, "family": GaussianMixture(variance=2.0)},
}
OPEN = Neighbourhood(closed=False)
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind="linear", dtype=torch.float32, in_channels=D, **more):
    torch.manual_seed(0)
    return FisherConv(in_channels, OUT, 3, **{**KINDS[kind], **more}).to(dtype).eval()


def graph(dtype=torch.float32, seed=0):
    """Features, edges with a loop, a parallel edge and an isolated node, and weights."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(N, D, generator=g, dtype=torch.float64).to(dtype)
    edges = torch.randint(0, N - 1, (2, 30), generator=g)
    edges = torch.cat([edges, torch.tensor([[3, 4, 4], [3, 5, 5]])], dim=1)
    return x, edges, torch.rand(edges.shape[1], generator=g, dtype=torch.float64).to(dtype) + 0.1


def members_of(edges, weights, n, loops=True):
    """The multisets as the reference wants them: lists of (point, weight)."""
    sets = [[] for _ in range(n)]
    for e, (u, v) in enumerate(edges.T.tolist()):
        sets[v].append((u, 1.0 if weights is None else float(weights[e])))
    for v in range(n):
        if loops and v not in [u for u, _ in sets[v]]:
            sets[v].append((v, 1.0))
    return sets


# -------------------------------------------------------------------------------------- mathematics


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "more",
    [{}, {"em": EM(n_iter=3)}, {"em": EM(prior=0.5)}, {"normalize": False, "family": GaussianMixture(variance=0.8)}],
    ids=str,
)
def test_phi_is_that_of_the_reference(more, weighted):
    x, edges, weights = graph(torch.float64)
    conv = make("identity", torch.float64, **more)
    points = x / x.norm(dim=1, keepdim=True) if more.get("normalize", True) else x
    weights = weights if weighted else None
    anchors = conv.mixture.anchors[0].detach().numpy()
    em = conv.mixture.em
    members = members_of(edges, weights, N)
    means, _ = reference.em_means(points.numpy(), members, anchors, conv.mixture.variance, em.prior, em.n_iter)
    expected = reference.fisher_embedding(means, anchors)
    np.testing.assert_allclose(conv(x, edges, weights).detach().numpy(), expected, atol=1e-12)


def test_the_linear_head_is_a_product_with_phi():
    x, edges, weights = graph(torch.float64)
    conv = make("linear", torch.float64)
    phi = conv.mixture(x, conv.sets(edges, weights, (N, N)))
    expected = phi @ conv.head.weight.T + conv.head.bias
    torch.testing.assert_close(conv(x, edges, weights), expected, rtol=0, atol=1e-13)


def test_heads_are_mixtures_side_by_side():
    x, edges, _ = graph(torch.float64)
    both = make("identity", torch.float64, heads=2)
    parts = []
    for h in range(2):
        one = make("identity", torch.float64)
        one.mixture.anchors.data = both.mixture.anchors.data[h : h + 1].clone()
        parts.append(one(x, edges))
    torch.testing.assert_close(both(x, edges), torch.cat(parts, dim=1))
    width = {concat: make("linear", heads=2, concat=concat)(*graph()[:2]).shape[1] for concat in (True, False)}
    assert width == {True: 2 * OUT, False: OUT}


def test_a_layer_agrees_with_the_estimator():
    """The same anchors, variance and landmarks give the columns of `FisherEmbedding`'s layer."""
    x, edges, _ = graph()
    A = as_graph(edges.numpy(), n_nodes=N)
    model = FisherEmbedding(2, 3, 4, walk=None, random_state=0).fit(x.numpy(), graph=A)
    Z = model.transform(x.numpy(), graph=A)
    psi0, expected = (torch.from_numpy(Z[:, 4 * t : 4 * t + 4]) for t in (0, 1))
    layer = model.stack_.layers[0]
    conv = FisherConv(4, 4, 3, head=Nystrom(), family=GaussianMixture(variance=layer.theta.variance))
    with torch.no_grad():
        conv.mixture.anchors[0] = torch.from_numpy(layer.theta.anchors)
        conv.head.weight.copy_(torch.from_numpy(layer.kernel_map.landmarks))
    torch.testing.assert_close(conv(psi0, edges), expected, atol=2e-6, rtol=1e-5)


def test_init_from_data_learns_anchors_variance_and_landmarks():
    x, edges, _ = graph()
    conv = make("nystrom")
    before = copy.deepcopy(conv.state_dict())
    again = copy.deepcopy(conv).init_from_data(x, edges, seed=3)
    conv.init_from_data(x, edges, seed=3)
    for name, value in conv.state_dict().items():
        torch.testing.assert_close(value, again.state_dict()[name])
        assert not torch.equal(value, before[name]), name
    points = conv.mixture.points(x)[1]
    alpha = posterior("torch", points, conv.mixture.anchors[0], conv.mixture.variance).exp()
    assert alpha.argmax(dim=1).unique().numel() == 3  # every anchor has points of its own


def test_init_from_data_with_fewer_points_than_anchors():
    none = torch.zeros(2, 0, dtype=torch.int64)
    with pytest.warns(UserWarning, match="only 2 distinct points"):
        conv = FisherConv(2, 3, 5, head="nystrom").init_from_data(torch.eye(2), none)
    assert torch.isfinite(conv(torch.eye(2), none)).all()


# -------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("kind", ["linear", "nystrom", "heads", "steps", "prior", "residual", "unbalanced"])
def test_gradcheck(kind):
    x, edges, weights = graph(torch.float64)
    conv = make(kind, torch.float64)
    names = [name for name, _ in conv.named_parameters()]

    def run(x, weights, *values):
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x, edges, weights))

    values = [p.detach().clone() for p in conv.parameters()]
    inputs = [tensor.requires_grad_() for tensor in (x, weights, *values)]
    every_entry = kind in ("linear", "nystrom")  # the others along random directions, which is much quicker
    assert torch.autograd.gradcheck(run, inputs, atol=1e-6, nondet_tol=1e-12, fast_mode=not every_entry)


def test_second_derivatives_by_the_plain_engine():
    x, edges, _ = graph(torch.float64)
    conv = make("linear", torch.float64)
    with config_context(engine="torch"):
        assert torch.autograd.gradgradcheck(lambda x: conv(x, edges), (x.requires_grad_(),))
    loss = make("linear", torch.float64)(x, edges).square().sum()
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(NotImplementedError, match="engine='torch'"):
        grad.sum().backward()


def test_forward_writes_to_no_parameter():
    x, edges, _ = graph()
    for kind in KINDS:
        conv = make(kind).train()
        versions = {name: p._version for name, p in conv.named_parameters()}
        conv(x, edges).sum().backward()
        assert versions == {name: p._version for name, p in conv.named_parameters()}


# -------------------------------------------------------------------------------------- graphs


@every_kind
def test_all_forms_of_a_graph_agree(kind):
    x, edges, weights = graph()
    conv = make(kind)
    expected = conv(x, edges, weights)
    order = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(1))
    coo = torch.sparse_coo_tensor(edges.flip(0), weights, (N, N))
    index = EdgeIndex(edges, sparse_size=(N, N))
    by_target, perm = index.sort_by("col")
    same = {
        "any order": conv(x, edges[:, order], weights[order]),
        "int32": conv(x, edges.int(), weights),
        "EdgeIndex": conv(x, index, weights),
        "sorted EdgeIndex": conv(x, by_target, weights[perm]),
        "COO": conv(x, coo),
        "CSR": conv(x, coo.to_sparse_csr()),
        "CSC": conv(x, coo.to_sparse_csc()),
        "size": conv(x, edges, weights, size=(N, N)),
        "pair": conv((x, x), edges, weights),
    }
    for name, found in same.items():
        torch.testing.assert_close(found, expected, atol=3e-6, rtol=1e-5, msg=lambda m, name=name: f"{name}: {m}")


def test_self_loops_are_added_once():
    x, edges, weights = graph()
    conv = make()
    loops = torch.arange(N).expand(2, -1)
    missing = loops[:, [v for v in range(N) if v not in edges[0][edges[0] == edges[1]]]]
    full = torch.cat([edges, missing], dim=1)
    full_weights = torch.cat([weights, torch.ones(missing.shape[1])])
    expected = make(multiset=OPEN)(x, full, full_weights)
    torch.testing.assert_close(conv(x, edges, weights), expected)
    torch.testing.assert_close(conv(x, full, full_weights), expected)


def test_multisets_are_taken_as_they_are():
    x, edges, _ = graph()
    sets = tensor_sets(edges, n_sets=N, n_points=N)
    torch.testing.assert_close(make()(x, sets), make(multiset=OPEN)(x, edges))


@pytest.mark.parametrize("weights", [None, "symmetric"])
@pytest.mark.parametrize("closed", [True, False])
def test_reverse_edges_are_those_of_the_rule(closed, weights):
    x, edges, edge_weight = graph()
    rule = Neighbourhood(closed=closed, weights=weights, undirected=True)
    conv = make(multiset=rule)
    for given in (None, edge_weight):
        pair = edges.numpy() if given is None else (edges.numpy(), given.numpy())
        table = as_graph(pair, n_nodes=N)
        expected = conv(x, tensor_sets(rule(table)))
        torch.testing.assert_close(conv(x, edges, given), expected)
    conv.explain = True  # as explainers set it
    with pytest.raises(ValueError, match="undirected"):
        conv(x, edges)


def test_other_multisets_come_prepared():
    x, edges, _ = graph()
    sets = tensor_sets(PageRank()(as_graph(edges.numpy(), n_nodes=N)))
    torch.testing.assert_close(make(multiset=PageRank())(x, sets), make()(x, sets))


def test_the_first_anchors_are_found_as_em_says():
    x, edges, _ = graph()
    drawn = make(em=EM(init="random")).init_from_data(x, edges)
    rows = torch.cdist(drawn.mixture.anchors[0], torch.nn.functional.normalize(x, dim=1))
    assert (rows.min(dim=1).values < 1e-6).all()  # distinct points
    lengths = make(em=EM(init="spherical")).init_from_data(x, edges).mixture.anchors[0].norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_a_graph_is_sorted_once_and_again_when_it_is_written_to():
    x, edges, _ = graph()
    conv = make()
    first = conv.sets(edges, None, (N, N))
    assert conv.sets(edges, None, (N, N)) is first
    before = conv(x, edges)
    edges[0, 0] = (edges[0, 0] + 1) % N
    assert conv.sets(edges, None, (N, N)) is not first
    assert not torch.equal(conv(x, edges), before)


@every_kind
def test_bipartite(kind):
    x, _, _ = graph()
    targets = torch.randn(4, D, generator=torch.Generator().manual_seed(2))
    edges = torch.stack([torch.arange(N), torch.arange(N) % 3])  # target 3 has no member
    conv = make(kind, multiset=OPEN)
    z = conv((x, targets), edges)
    assert z.shape[0] == 4
    assert torch.isfinite(z).all()
    if kind != "residual":
        torch.testing.assert_close(conv((x, None), edges, size=(N, 4)), z)
        torch.testing.assert_close(conv((x, None), EdgeIndex(edges, sparse_size=(N, 4))), z)
        empty = make(kind, multiset=OPEN)((x, None), edges[:, :0], size=(N, 4))
        torch.testing.assert_close(z[3], empty[0])


def test_an_empty_multiset_gives_phi_zero():
    x, _, _ = graph()
    conv = make("identity", multiset=OPEN)
    assert (conv(x, torch.zeros(2, 0, dtype=torch.int64)) == 0).all()


def test_dropout_leaves_members_out_in_training_alone():
    x, edges, _ = graph()
    conv = make("identity", dropout=0.5)
    torch.testing.assert_close(conv(x, edges), make("identity")(x, edges))
    conv.train()
    torch.manual_seed(0)
    first = conv(x, edges)
    assert not torch.equal(first, conv(x, edges))
    torch.manual_seed(0)
    torch.testing.assert_close(conv(x, edges), first)
    conv.dropout = 1.0
    assert (conv(x, edges) == 0).all()


# -------------------------------------------------------------------------------------- a module among modules


@every_kind
def test_repr_reset_state_and_pickle(kind):
    x, edges, _ = graph()
    conv = make(kind)
    assert repr(conv).startswith(f"FisherConv({D}, {OUT}, num_anchors=3")
    expected = conv(x, edges)
    conv.reset_parameters()
    if kind != "identity":
        assert not torch.equal(conv(x, edges), expected)
    other = make(kind)
    other.mixture.variance = 9.0
    file = io.BytesIO()
    torch.save(conv.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert other.mixture.variance == conv.mixture.variance
    for same in (other, copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        torch.testing.assert_close(same(x, edges), conv(x, edges), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["linear", "nystrom", "relu", "residual"])
def test_lazy_channels(kind):
    x, edges, _ = graph()
    lazy = make(kind, in_channels=-1)
    blank = copy.deepcopy(lazy.state_dict())
    assert lazy(x, edges).shape == (N, OUT)
    torch.testing.assert_close(lazy.mixture.anchors.shape, (1, 3, D))
    for state in (lazy.state_dict(), None):  # a full state fills a lazy layer, and an empty one is filled by data
        other = make(kind, in_channels=-1)
        other.load_state_dict(blank if state is None else state)
        found = other(x, edges)
        if state is not None:
            torch.testing.assert_close(found, lazy(x, edges))


@pytest.mark.parametrize("kind", ["linear", "nystrom", "relu", "heads", "steps", "balanced", "prior", "residual"])
def test_compile_sees_one_graph(kind):
    x, edges, weights = graph()
    conv = make(kind)
    torch._dynamo.reset()
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, edges, weights), conv(x, edges, weights))
    grads = []
    for run in (compiled, conv):
        conv.zero_grad()
        run(x, edges, weights).square().sum().backward()
        grads.append([p.grad.clone() for p in conv.parameters()])
    for found, expected in zip(*grads, strict=True):
        torch.testing.assert_close(found, expected)
    more = torch.cat([edges, edges.flip(0)], dim=1)  # another number of edges
    torch.testing.assert_close(compiled(x, more), conv(x, more))


@pytest.mark.parametrize("kind", ["linear", "relu", "nystrom", "steps"])
def test_amp(kind):
    x, edges, _ = graph()
    conv = make(kind)
    expected = conv(x, edges)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        halved = torch.nn.functional.linear(x, torch.eye(D))  # what a layer before gives under autocast
        assert halved.dtype == torch.bfloat16
        z = conv(halved, edges)
        z.float().square().sum().backward()
    torch.testing.assert_close(z.float(), expected, atol=0.06, rtol=0.06)
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in conv.parameters())
    assert all(p.grad.dtype == torch.float32 for p in conv.parameters())


def test_hetero():
    kinds = [("user", "likes", "item"), ("item", "liked", "user"), ("user", "knows", "user")]
    x = {"user": torch.randn(5, D), "item": torch.randn(7, D)}
    sizes = {"user": 5, "item": 7}
    edges = {k: torch.stack([torch.randint(0, sizes[k[i]], (9,)) for i in (0, 2)]) for k in kinds}
    layer = HeteroConv({k: FisherConv(-1, OUT, multiset=OPEN) for k in kinds}, aggr="sum")
    assert {k: v.shape for k, v in layer(x, edges).items()} == {"user": (5, OUT), "item": (7, OUT)}

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = FisherConv(-1, 8, multiset=OPEN)
            self.second = FisherConv(8, OUT, multiset=OPEN)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    net = to_hetero(Net(), (list(x), kinds))
    out = net(x, edges)
    assert {k: v.shape for k, v in out.items()} == {"user": (5, OUT), "item": (7, OUT)}
    sum(v.sum() for v in out.values()).backward()
    with pytest.raises(ValueError, match="add_self_loops"):  # PyG's own warning reads the attribute
        HeteroConv({kinds[0]: FisherConv(-1, OUT)})


# -------------------------------------------------------------------------------------- attention and explainers


@every_kind
def test_attention_weights_are_those_of_the_means(kind):
    x, edges, weights = graph(torch.float64)
    conv = make(kind, torch.float64)
    z, (listed, alpha) = conv(x, edges, weights, return_attention_weights=True)
    torch.testing.assert_close(z, conv(x, edges, weights))
    assert alpha.shape == (listed.shape[1], 3 * conv.heads)
    total = scatter(alpha, listed[1], dim_size=N)
    prior = conv.mixture.em.prior
    torch.testing.assert_close(total, torch.ones_like(total)) if prior == 0 else None
    assert (total <= 1 + 1e-12).all()
    anchors = conv.mixture.anchors.flatten(0, 1)
    points = conv.mixture.points(x)[1]
    shift = alpha[..., None] * (points[listed[0]][:, None] - anchors)
    phi = scatter(shift, listed[1], dim_size=N).flatten(1) * 3**-0.5
    found = conv.mixture(x, conv.sets(edges, weights, (N, N)))[:, : phi.shape[1]]
    torch.testing.assert_close(found, phi)


@every_kind
def test_the_plain_path_gives_the_same(kind):
    x, edges, weights = graph()
    conv = make(kind)
    expected = conv(x, edges, weights)
    seen = []
    handle = conv.register_message_forward_hook(lambda module, inputs, out: seen.append(out.shape))
    torch.testing.assert_close(conv(x, edges, weights), expected, atol=2e-6, rtol=1e-5)
    assert seen[0][1:] == (3 * conv.heads, D)
    handle.remove()
    conv(x, edges, weights)
    assert len(seen) == 1  # and nothing of that size is made when nobody listens


@every_kind
def test_the_plain_path_has_the_same_gradients(kind):
    """Masks of features are learned by them."""
    x, edges, weights = graph(torch.float64)
    conv = make(kind, torch.float64)
    weights = torch.cat([weights[:-1], weights.new_zeros(1)])
    weights[edges[1] == 7] = 0  # and a set whose weights are zero
    found = []
    for _ in range(2):
        x = x.detach().requires_grad_()
        conv.zero_grad()
        conv(x, edges, weights).square().sum().backward()
        found.append([x.grad, *(parameter.grad.clone() for parameter in conv.parameters())])
        conv.register_message_forward_hook(lambda module, inputs, out: None)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("algorithm", [AttentionExplainer(), GNNExplainer(epochs=3)])
def test_explainers(algorithm):
    x, edges, _ = graph()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = FisherConv(D, 8), FisherConv(8, 3)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    torch.manual_seed(0)
    mode = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    masks = {"node_mask_type": "attributes"} if isinstance(algorithm, GNNExplainer) else {}
    explain = Explainer(
        Net(), algorithm=algorithm, explanation_type="model", edge_mask_type="object", model_config=mode, **masks
    )
    mask = explain(x, edges, index=2).edge_mask
    assert mask.shape == (edges.shape[1],)
    assert mask.max() > 0
    near = k_hop_subgraph(2, 2, edges, num_nodes=N)[3]
    assert (mask[~near] == 0).all()
    assert not near.all()


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, e, w: make()(x, e.float()), "integers"),
        (lambda x, e, w: make()(x, e[0]), "edge_index"),
        (lambda x, e, w: make()(x, e.numpy()), "edge_index"),
        (lambda x, e, w: make()(x[:, :4], e), "6 features"),
        (lambda x, e, w: make()(x.long(), e), "float"),
        (lambda x, e, w: make()(None, e), "NoneType"),
        (lambda x, e, w: make()(x, e + N), "nodes"),
        (lambda x, e, w: make()(x, e, w[:-1]), "edge_weight"),
        (lambda x, e, w: make()(x, e, -w), "at least 0"),
        (lambda x, e, w: make()(x, e, w * torch.nan), "finite"),
        (lambda x, e, w: make("residual")((x, None), e), "targets"),
        (lambda x, e, w: make(head="softplus"), "head"),
        (lambda x, e, w: make(em="posterior"), "EM"),
        (lambda x, e, w: make(multiset="degree"), "multiset"),
        (lambda x, e, w: make(family="normal"), "family"),
        (lambda x, e, w: make(em=EM(init="spherical"), normalize=False), "spherical"),
        (lambda x, e, w: make(multiset=PageRank())(x, e), "tensor_sets"),
        (lambda x, e, w: make(multiset=Neighbourhood(undirected=True))((x, x[:3]), e % 3), "undirected"),
        (lambda x, e, w: make(heads=0), "heads"),
        (lambda x, e, w: make(dropout=2), "dropout"),
        (lambda x, e, w: make(flow="target_to_source"), "flow"),
        (lambda x, e, w: make()(x.to_sparse_csr(), e), "dense"),
        (lambda x, e, w: FisherConv(D, None), "out_channels"),
        (lambda x, e, w: FisherConv(0, 3), "in_channels"),
        (lambda x, e, w: make()(x, tensor_sets(e, n_sets=N, n_points=N + 1)), "12 points"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call(*graph())
    assert str(caught.value).count("\n") == 0
