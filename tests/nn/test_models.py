"""`FisherNet`: the stack, its initialisation, sampled batches, layer-wise inference, readouts."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric import seed_everything  # noqa: E402
from torch_geometric.data import Batch, Data  # noqa: E402
from torch_geometric.explain import Explainer, GNNExplainer  # noqa: E402

from fishergraph import EM, FisherEmbedding, Neighbourhood, Nystrom, as_graph  # noqa: E402
from fishergraph.nn import FisherNet, tensor_sets  # noqa: E402
from fishergraph.nn.loader import CSRNeighborLoader  # noqa: E402
from fishergraph.nn.rows import dropped  # noqa: E402

N, D, HIDDEN, CLASSES = 40, 7, 6, 3
KINDS = {
    "nystrom": {},
    "relu": {"head": "relu"},
    "linear": {"head": "linear", "jk": "last"},
    "steps": {"em": EM(n_iter=2), "heads": 2},
    "no input map": {"input_map": False, "head": "relu"},
    "symmetric": {"multiset": Neighbourhood(weights="symmetric"), "em": EM(prior=0.3)},
    "residual": {"residual": True, "head": "relu"},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind="nystrom", in_channels=D, out=CLASSES, n_layers=2, **more):
    torch.manual_seed(0)
    return FisherNet(in_channels, HIDDEN, n_layers, out, **{**KINDS[kind], **more}).eval()


def graph():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=g)
    edges = torch.randint(0, N - 1, (2, 120), generator=g)
    return x, edges, torch.rand(120, generator=g) + 0.1


def test_the_stack_is_that_of_the_estimator():
    """Initialised with the same anchors and landmarks it gives ψ_0 … ψ_T of `FisherEmbedding`, side by side (Eq. 2)."""
    x, edges, _ = graph()
    A = as_graph(edges.numpy(), n_nodes=N)
    kernel = Nystrom(bandwidth=0.7)
    model = FisherEmbedding(2, 4, HIDDEN, kernel=kernel, walk=None, structure=None, random_state=0).fit(
        x.numpy(), graph=A
    )
    net = make(out=None)
    with torch.no_grad():
        net.input_map.weight.copy_(torch.from_numpy(model.stack_.input_map.landmarks))
        for conv, layer in zip(net.convs, model.stack_.layers, strict=True):
            conv.mixture.anchors[0] = torch.from_numpy(layer.theta.anchors)
            conv.mixture.variance = layer.theta.variance
            conv.head.weight.copy_(torch.from_numpy(layer.kernel_map.landmarks))
    expected = torch.from_numpy(model.transform(x.numpy(), graph=A))
    torch.testing.assert_close(net(x, edges), expected, atol=1e-5, rtol=1e-4)


@every_kind
def test_blocks_and_classifier(kind):
    x, edges, weights = graph()
    net = make(kind)
    embed = make(kind, out=None)
    embed.load_state_dict({k: v for k, v in net.state_dict().items() if not k.startswith("classifier")})
    blocks = (1 if KINDS[kind].get("jk") == "last" else 3) - (not KINDS[kind].get("input_map", True))
    z = embed(x, edges, weights)
    assert z.shape == (N, HIDDEN * blocks)
    torch.testing.assert_close(net(x, edges, weights), net.classifier(z))
    assert make(kind, n_layers=0)(x, edges).shape == (N, CLASSES) if "no input" not in kind else True


def test_jk_last_is_the_last_block():
    x, edges, _ = graph()
    torch.testing.assert_close(make(out=None, jk="last")(x, edges), make(out=None)(x, edges)[:, -HIDDEN:])


def test_init_from_data_is_seeded_and_leaves_the_mode_and_the_classifier():
    x, edges, _ = graph()
    net = make().train()
    other = copy.deepcopy(net)
    assert net.init_from_data(x, edges, seed=1) is net
    assert net.training
    other.init_from_data(x, edges, seed=1)
    torch.testing.assert_close(net.eval()(x, edges), other.eval()(x, edges), rtol=0, atol=0)
    torch.testing.assert_close(net.classifier.weight, make().classifier.weight)
    changed = copy.deepcopy(net).init_from_data(x, edges, seed=2)
    assert not torch.equal(changed.eval()(x, edges), net(x, edges))
    sparse = make().init_from_data(x.to_sparse_csr(), edges, seed=1)
    assert torch.isfinite(sparse(x, edges)).all()


@every_kind
def test_inference_is_the_forward_pass(kind):
    x, edges, weights = graph()
    for net in (make(kind), make(kind, out=None)):
        net.train()
        expected = net.eval()(x, edges, weights)
        net.train()
        for batch_size in (None, 7, 1000):
            seen = []
            found = net.inference(x, edges, weights, batch_size=batch_size, progress=seen.append)
            torch.testing.assert_close(found, expected, atol=2e-6, rtol=1e-5)
            assert sum(seen) == N * 3
        assert net.training
        assert not found.requires_grad
    sets = tensor_sets(edges, n_sets=N, n_points=N)
    torch.testing.assert_close(make(kind).inference(x, sets, batch_size=9), make(kind)(x, sets), atol=2e-6, rtol=1e-5)


def test_sparse_rows():
    x, edges, _ = graph()
    x = x * (x > 0.5)
    net, wide = make(), x.to_sparse_csr()
    short = torch.sparse_csr_tensor(wide.crow_indices().int(), wide.col_indices().int(), wide.values(), wide.shape)
    for sparse in (wide, short):
        torch.testing.assert_close(net(sparse, edges), net(x, edges))
        torch.testing.assert_close(net.inference(sparse, edges, batch_size=7), net(x, edges))
        net.init_from_data(sparse, edges)


@every_kind
def test_a_whole_neighbourhood_gives_the_exact_result(kind):
    """Sampled with no bound, a batch has all its seeds need; trimming leaves out what they do not."""
    if kind == "symmetric":
        pytest.skip("degrees of a sample are not those of the graph")
    x, edges, weights = graph()
    net = make(kind)
    expected = net(x, edges, weights)
    loader = CSRNeighborLoader(Data(x, edges, edge_weight=weights), [-1, -1], batch_size=9)
    for batch in loader:
        hops = {
            "num_sampled_nodes_per_hop": batch.num_sampled_nodes,
            "num_sampled_edges_per_hop": batch.num_sampled_edges,
        }
        for more in ({}, hops):
            found = net(batch.x, batch.edge_index, batch.edge_weight, batch_size=batch.batch_size, **more)
            torch.testing.assert_close(found, expected[batch.n_id[: batch.batch_size]], atol=2e-6, rtol=1e-5)
        sizes = net._targets(batch.batch_size, len(batch.n_id), batch.num_sampled_nodes)
        assert sizes == [sum(batch.num_sampled_nodes[:2]), batch.batch_size]
    with pytest.raises(ValueError, match="2 hops"):
        net(batch.x, batch.edge_index, num_sampled_nodes_per_hop=[3, 4], num_sampled_edges_per_hop=[2])


def test_dropout_is_for_training():
    x, edges, _ = graph()
    net = make(dropout=0.5)
    torch.testing.assert_close(net(x, edges), make()(x, edges))
    net.train()
    assert not torch.equal(net(x, edges), net(x, edges))


@pytest.mark.parametrize("sparse", [False, True])
def test_input_dropout_leaves_features_out_in_training_alone(sparse):
    x, edges, _ = graph()
    x = (x * (x > 0)).to_sparse_csr() if sparse else x
    net = make(input_dropout=0.5, n_layers=1)
    torch.testing.assert_close(net(x, edges), make(n_layers=1)(x, edges))
    net.train()
    seen = []
    net.input_map.register_forward_pre_hook(lambda _, given: seen.append(given[0].to_dense()))
    for _ in range(200):
        net(x, edges)
    held = torch.stack(seen)[:, x.to_dense() != 0] != 0
    assert abs(float(held.float().mean()) - 0.5) < 0.03
    assert not held.all(dim=0).any()


@pytest.mark.parametrize("pooling", ["mean", "max", "fisher"])
def test_graphs(pooling):
    seed_everything(0)
    parts = [Data(torch.randn(n, D), torch.randint(0, n, (2, 2 * n))) for n in (3, 5, 4)]
    batch = Batch.from_data_list(parts)
    net = make(pooling=pooling)
    z = net(batch.x, batch.edge_index, batch=batch.batch, batch_size=4)
    assert z.shape == (4, CLASSES)
    for g, part in enumerate(parts):
        torch.testing.assert_close(net(part.x, part.edge_index)[0], z[g], atol=2e-6, rtol=1e-5)
    z.sum().backward()
    with pytest.raises(ValueError, match="for nodes"):
        net.inference(batch.x, batch.edge_index)


def test_training_learns():
    """Labels that only the neighbours know: the loss falls, through every parameter."""
    x, edges, _ = graph()
    sets = tensor_sets(edges, n_sets=N, n_points=N)
    y = torch.zeros(N).index_add_(0, sets.rows, x[sets.indices, 0]).gt(0).long()
    for kind in ("nystrom", "relu"):
        net = make(kind).train()
        before = {name: p.detach().clone() for name, p in net.named_parameters()}
        optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
        losses = []
        for _ in range(150):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x, edges), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.5 * losses[0]
        assert all(not torch.equal(before[name], p) for name, p in net.named_parameters())


@every_kind
def test_a_module_among_modules(kind):
    x, edges, _ = graph()
    net = make(kind)
    again = FisherNet(**net.config()).eval()
    again.load_state_dict(net.state_dict())
    for same in (again, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        torch.testing.assert_close(same(x, edges), net(x, edges), rtol=0, atol=0)
    expected = net(x, edges)
    net.reset_parameters()
    assert not torch.equal(net(x, edges), expected)
    lazy = make(kind, in_channels=-1)
    assert lazy(x, edges).shape == (N, CLASSES)
    torch._dynamo.reset()
    # Tracing the backward pass too takes seconds, and is the layers' own: their tests do it.
    compiled = torch.compile(again, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x, edges), expected)


def test_an_explainer_masks_its_edges():
    x, edges, _ = graph()
    mode = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explain = Explainer(
        make(), GNNExplainer(epochs=3), explanation_type="model", edge_mask_type="object", model_config=mode
    )
    mask = explain(x, edges, index=2).edge_mask
    assert mask.shape == (120,)
    assert mask.max() > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, e: make()(None, e), "NoneType"),
        (lambda x, e: make()(x[:, :2], e), "7 features"),
        (lambda x, e: make()(x, e.double()), "integers"),
        (lambda x, e: make(jk="max"), "jk"),
        (lambda x, e: make(head="gelu"), "head"),
        (lambda x, e: make(dropout=-1), "dropout"),
        (lambda x, e: make(input_dropout=2), "input_dropout"),
        (lambda x, e: FisherNet(D, 0, 2), "hidden_channels"),
        (lambda x, e: FisherNet(D, 4, -1), "num_layers"),
        (lambda x, e: FisherNet(D, 4, 1, sharpnes=1), "sharpnes"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(*graph()[:2])


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_dropout_of_rows(share):
    x = torch.ones(500, 399, requires_grad=True)
    torch.manual_seed(0)
    first = dropped(x, share, True)
    torch.manual_seed(0)
    torch.testing.assert_close(dropped(x, share, True), first, rtol=0, atol=0)
    assert abs(float((first == 0).float().mean()) - share) < 0.005
    values = {0.0, 1 / (1 - share)} if 0 < share < 1 else {1 - share}
    assert set(first.unique().tolist()) == {float(torch.tensor(value)) for value in values}
    first.sum().backward()
    torch.testing.assert_close(x.grad, first.detach())
    assert dropped(x, share, False) is x
    if 0 < share < 1:  # neighbours are drawn apart
        kept = (first != 0).float()
        pairs = (kept[:, 1:] * kept[:, :-1]).mean()
        assert abs(float(pairs) - (1 - share) ** 2) < 0.005
