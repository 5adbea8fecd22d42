"""In- and out-neighbours in trained layers: agreement with the estimator, gradients, batches, files."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from directed_graph import directed_graph  # noqa: E402
from fishergraph import (  # noqa: E402
    EM,
    Differences,
    FisherClassifier,
    FisherEmbedding,
    Neighbourhood,
    Nystrom,
    as_graph,
)
from fishergraph._errors import InputError, InputTypeError  # noqa: E402
from fishergraph.nn import FisherConv, FisherNet, Network, Training, tensor_sets, train  # noqa: E402
from fishergraph.nn.lifted import block_sets  # noqa: E402
from fishergraph.ops.tensor_split import SplitTensorSets  # noqa: E402

N, D, OUT = 16, 4, 5
MATRIX = sp.coo_array(directed_graph(N, 0.15))  # with loops, and nodes without an edge in or out
EDGES = torch.from_numpy(np.stack([MATRIX.col, MATRIX.row]).astype(np.int64))  # from the column to the row
WEIGHTS = torch.from_numpy(MATRIX.data)
GRAPH = as_graph(MATRIX.tocsr())
BOTH = Neighbourhood(direction="both")
HEADS = ("linear", "relu", "nystrom", "identity")
DIRECTIONS = ("in", "out", "both")


def sample(dtype=torch.float64):
    return torch.randn(N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)


def layer(rule, head="identity", **options):
    torch.manual_seed(0)
    return FisherConv(D, OUT, 3, head=head, multiset=rule, **options).double().eval()


# -------------------------------------------------------------------------------------- mathematics


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("weights", [None, "uniform", "symmetric"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_edges_and_sets_of_the_rule_are_the_same(direction, weights, closed):
    rule, x = Neighbourhood(direction=direction, weights=weights, closed=closed), sample()
    conv = layer(rule, counts=True)
    found = conv(x, EDGES, WEIGHTS)
    torch.testing.assert_close(found, conv(x, tensor_sets(rule(GRAPH, dtype=np.float64))))
    sparse = torch.sparse_coo_tensor(EDGES.flip(0), WEIGHTS, (N, N)).to_sparse_csr()
    torch.testing.assert_close(found, conv(x, sparse))


@pytest.mark.parametrize("weights", [None, "symmetric"])
def test_both_is_in_and_out_side_by_side(weights):
    x = sample()
    both, into, out = (layer(Neighbourhood(direction=side, weights=weights)) for side in ("both", "in", "out"))
    torch.testing.assert_close(
        both(x, EDGES, WEIGHTS), torch.cat([into(x, EDGES, WEIGHTS), out(x, EDGES, WEIGHTS)], dim=1)
    )
    torch.testing.assert_close(out(x, EDGES, WEIGHTS), into(x, EDGES.flip(0), WEIGHTS))
    assert not torch.allclose(into(x, EDGES), out(x, EDGES))


@pytest.mark.parametrize("options", [{}, {"counts": True}, {"em": EM(n_iter=2)}, {"heads": 2}], ids=str)
def test_a_linear_head_is_a_product_with_phi(options):
    x, conv, plain = sample(), layer(BOTH, "linear", **options), layer(BOTH, **options)
    plain.mixture.load_state_dict(conv.mixture.state_dict())
    expected = plain(x, EDGES, WEIGHTS) @ conv.head.weight.T + conv.head.bias
    torch.testing.assert_close(conv(x, EDGES, WEIGHTS), expected)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("rule", [BOTH, Neighbourhood(direction="out"), Differences(direction="both")], ids=str)
def test_a_network_agrees_with_the_estimator(rule, steps):
    x, hidden = sample(torch.float32).numpy(), 6
    options = {"kernel": Nystrom(bandwidth=0.9), "walk": None, "structure": None, "em": EM(n_iter=steps)}
    model = FisherEmbedding(2, 3, hidden, multiset=rule, random_state=0, **options).fit(x, graph=GRAPH)
    net = FisherNet(D, hidden, 2, num_anchors=3, head=Nystrom(bandwidth=0.9), multiset=rule, em=EM(n_iter=steps))
    with torch.no_grad():
        net.input_map.weight.copy_(torch.from_numpy(model.stack_.input_map.landmarks))
        for conv, fitted in zip(net.convs, model.stack_.layers, strict=True):
            conv.mixture.anchors[0] = torch.from_numpy(fitted.theta.anchors)
            conv.mixture.variance = fitted.theta.variance
            conv.head.weight.copy_(torch.from_numpy(fitted.kernel_map.landmarks))
        found = net.eval()(torch.from_numpy(x), tensor_sets(rule(GRAPH)))
    assert_allclose(found, model.transform(x, graph=GRAPH), atol=2e-5)


@pytest.mark.parametrize("head", ["linear", "nystrom", "identity"])
@pytest.mark.parametrize("rule", [BOTH, Neighbourhood(direction="both", weights="symmetric")], ids=str)
def test_gradients_of_rows_weights_and_parameters(rule, head):
    conv = layer(rule, head)
    x, weights = sample().requires_grad_(), WEIGHTS.clone().requires_grad_()
    names, values = zip(*conv.named_parameters(), strict=True)

    def run(x, weights, *parameters):
        return torch.func.functional_call(conv, dict(zip(names, parameters, strict=True)), (x, EDGES, weights))

    assert torch.autograd.gradcheck(run, (x, weights, *values))


@pytest.mark.parametrize("head", ["linear", "nystrom", "identity"])
@pytest.mark.parametrize("direction", [None, "both"])
@pytest.mark.parametrize("normalize", [True, False])
def test_gradients_through_differences(head, direction, normalize):
    rule = Differences(direction=direction)
    conv, sets = layer(rule, head, normalize=normalize), tensor_sets(rule(GRAPH, dtype=np.float64))
    assert torch.autograd.gradcheck(lambda x: conv(x, sets), (sample().requires_grad_(),))


def test_a_vector_added_to_all_rows_moves_no_difference():
    rule, x = Differences(direction="both"), sample()
    conv, sets = layer(rule, "nystrom", normalize=False), rule(GRAPH, dtype=np.float64)
    torch.testing.assert_close(conv(x + torch.arange(D), sets), conv(x, sets))


@pytest.mark.parametrize("rule", [BOTH, Differences(direction="both")], ids=str)
@pytest.mark.parametrize("head", ["linear", "nystrom"])
def test_row_blocks_change_nothing(rule, head, monkeypatch):
    x, conv = sample().requires_grad_(), layer(rule, head)
    sets = tensor_sets(rule(GRAPH, dtype=np.float64))
    whole = conv(x, sets)
    (expected,) = torch.autograd.grad(whole.square().sum(), x)
    monkeypatch.setitem(__import__("fishergraph.nn.lifted", fromlist=["x"]).BLOCK_BYTES, "cpu", 600)
    found = conv(x, sets)
    torch.testing.assert_close(found, whole)
    torch.testing.assert_close(torch.autograd.grad(found.square().sum(), x)[0], expected)


# -------------------------------------------------------------------------------------- sets of tensors


def test_split_tensors_keep_kinds_apart():
    sets = tensor_sets(BOTH(GRAPH, dtype=np.float64))
    assert isinstance(sets, SplitTensorSets)
    rows = torch.tensor([3, 0, 3])
    for found, numbers in [(sets.take(rows), rows.tolist()), (sets.block(slice(2, 9)), range(2, 9)), (sets, range(N))]:
        assert found.n_sets == len(list(numbers))
        for i, v in enumerate(numbers):
            for kind in range(2):
                part, whole, side = found.parts, sets.parts, found.sides[kind]
                here = slice(int(part.indptr[2 * i + kind]), int(part.indptr[2 * i + kind + 1]))
                there = slice(int(whole.indptr[2 * v + kind]), int(whole.indptr[2 * v + kind + 1]))
                own = slice(int(side.indptr[i]), int(side.indptr[i + 1]))
                assert_array_equal(part.indices[here], whole.indices[there])
                assert_array_equal(side.indices[own], whole.indices[there])
                assert_array_equal(side.weights[own], whole.weights[there])
    assert_array_equal(sets.from_sides([side.weights for side in sets.sides]), sets.weights)
    assert sets.to("cpu") is sets
    assert sets.cut(0, N) is sets
    assert sets.prepare().sound
    bad = SplitTensorSets(sets.indptr, sets.indices, None, 2, parts=type(sets.parts)(*_arrays(sets), 2), kinds=2)
    with pytest.raises(InputError, match="members"):
        tensor_sets(bad)


def _arrays(sets):
    return sets.parts.indptr, sets.parts.indices, None


def test_sets_of_the_same_edges_are_found_once():
    conv = layer(BOTH)
    one, two = (conv.sets(EDGES, None, (N, N)) for _ in range(2))
    assert one is two
    assert layer(Neighbourhood(direction="out")).sets(EDGES, None, (N, N)) is not one
    weighted = conv.sets(EDGES, WEIGHTS, (N, N))
    assert weighted.parts.indices is one.parts.indices
    assert "transpose" in weighted.parts.__dict__  # kept from the sets without weights


def test_a_block_of_rows_has_its_members_alone():
    for rule in (BOTH, Differences(direction="both")):
        sets, x = tensor_sets(rule(GRAPH, dtype=np.float64)), sample()
        points, local = block_sets(sets, slice(4, 9), "cpu")
        conv = layer(rule)
        torch.testing.assert_close(conv((x[points.long()], None), local), conv(x, sets)[4:9])


def test_attention_sums_to_one_on_each_side():
    conv, x = layer(BOTH, "linear"), sample()
    _, (pairs, attention) = conv(x, EDGES, WEIGHTS, return_attention_weights=True)
    sets = conv.sets(EDGES, WEIGHTS, (N, N))
    assert_array_equal(pairs[0], sets.indices)
    assert_array_equal(pairs[1], sets.rows)
    total = torch.segment_reduce(attention, "sum", lengths=torch.diff(sets.parts.indptr), axis=0)
    torch.testing.assert_close(total, torch.ones_like(total))


def test_dropout_of_members_keeps_sides_apart():
    conv = layer(BOTH, "linear", dropout=0.5).train()
    assert conv(sample(), EDGES, WEIGHTS).isfinite().all()
    lifted = layer(Differences(direction="both"), dropout=0.5).train()
    assert lifted(sample(), Differences(direction="both")(GRAPH, dtype=np.float64)).isfinite().all()


@pytest.mark.parametrize("head", ["linear", "nystrom"])
def test_compile_takes_prepared_sets(head):
    conv, x = layer(BOTH, head), sample()
    torch._dynamo.reset()
    sets = conv.sets(EDGES, None, (N, N)).prepare()
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, sets), conv(x, sets))
    out = layer(Neighbourhood(direction="out"), head)
    compiled = torch.compile(out, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, EDGES, WEIGHTS), out(x, EDGES, WEIGHTS))


# -------------------------------------------------------------------------------------- networks


def network(**options):
    torch.manual_seed(0)
    return FisherNet(D, 8, 2, 3, multiset=BOTH, **options).double()


@pytest.mark.parametrize("head", ["linear", "relu", "nystrom"])
def test_a_network_learns_from_data_and_infers_by_blocks(head):
    net, x = network(head=head).init_from_data(sample(), EDGES, WEIGHTS).eval(), sample()
    torch.testing.assert_close(net.inference(x, EDGES, WEIGHTS, batch_size=5), net(x, EDGES, WEIGHTS))
    lazy = FisherConv(-1, OUT, 3, head=head, multiset=BOTH).double().eval()
    assert lazy(x, EDGES).shape == (N, OUT)
    state = lazy.state_dict()
    again = FisherConv(D, OUT, 3, head=head, multiset=BOTH).double().eval()
    again.load_state_dict(state)
    torch.testing.assert_close(again(x, EDGES), lazy(x, EDGES))


def test_training_near_the_labels_has_the_same_numbers():
    y = torch.arange(N) % 3
    histories = []
    for near in (False, True):
        options = {"train": torch.arange(6), "val": torch.arange(6, 9), "epochs": 4, "near": near}
        histories.append(train(network(), sample(), y, EDGES, edge_weight=WEIGHTS, **options))
    assert_allclose(*([row["loss"] for row in history.rows] for history in histories), rtol=1e-9)


def test_what_both_directions_refuse():
    y, x = torch.arange(N) % 3, sample()
    with pytest.raises(InputError, match="batch_size"):
        train(network(), x, y, EDGES, train=torch.arange(6), epochs=1, batch_size=2)
    with pytest.raises(InputError, match="batch_size"):
        FisherClassifier(multiset=BOTH, training=Training(batch_size=2)).check()
    with pytest.raises(InputTypeError, match="be multisets"):
        layer(BOTH)(x, tensor_sets(Neighbourhood()(GRAPH)))
    with pytest.raises(InputTypeError, match="be multisets"):
        layer(Neighbourhood())(x, tensor_sets(BOTH(GRAPH)))
    with pytest.raises(InputError, match="kinds"):
        layer(Differences())(x, Differences(direction="both")(GRAPH))
    for direction in ("out", "both"):
        with pytest.raises(InputError, match="bipartite"):
            layer(Neighbourhood(direction=direction))((x, x[:5]), EDGES[:, :1] * 0)
        conv = layer(Neighbourhood(direction=direction), "linear")
        conv.explain = True
        with pytest.raises(InputError, match="explanation"):
            conv(x, EDGES)
    with pytest.raises(InputError, match="Differences"):
        FisherConv(D, OUT, family="multinomial", multiset=Differences())
    assert layer(Neighbourhood(direction="in"))((x, x[:5]), EDGES[:, :1] * 0).shape[0] == 5


@pytest.mark.parametrize("rule", [BOTH, Neighbourhood(direction="out"), Differences()], ids=str)
def test_a_classifier_knows_the_direction(rule, tmp_path):
    x, y = sample(torch.float32).numpy(), np.arange(N) % 2
    options = {"training": Training(max_epochs=4), "network": Network(dropout=0.0), "random_state": 0}
    model = FisherClassifier(2, dim=8, multiset=rule, **options).fit(x, y, graph=GRAPH)
    found = model.predict_proba(x, graph=GRAPH)
    model.save(tmp_path / "m.safetensors")
    assert_array_equal(FisherClassifier.load(tmp_path / "m.safetensors").predict_proba(x, graph=GRAPH), found)
    assert np.abs(model.predict_proba(x, graph=GRAPH.adjacency.T.tocsr()) - found).max() > 1e-6
