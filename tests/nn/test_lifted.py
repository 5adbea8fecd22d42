"""Pairs, paths and tuples in trained layers: agreement with the estimator, gradients through the lift, row blocks."""

import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

import reference  # noqa: E402
from contracts import members_of  # noqa: E402
from fishergraph import (  # noqa: E402
    EM,
    FisherClassifier,
    FisherEmbedding,
    GaussianMixture,
    Hops,
    LiftedSets,
    Nystrom,
    Pairs,
    Paths,
    Tuples,
    as_graph,
    node_tuples,
)
from fishergraph.multiset import Multisets, choose_multiset  # noqa: E402
from fishergraph.nn import FisherConv, FisherNet, Network, Training, WeightedMixture, tensor_sets, train  # noqa: E402
from fishergraph.nn.lifted import block_sets, pooled  # noqa: E402

N, D, OUT = 14, 4, 5
GRAPH = as_graph(nx.gnp_random_graph(N, 0.25, seed=2))
LIFTS = ("mean", "concatenation")
RULES = [Pairs(), Paths(2), Paths(3, max_paths=4), Tuples(2, 1)]
each_rule = pytest.mark.parametrize("rule", [*RULES, Hops(2)], ids=str)
each_lift = pytest.mark.parametrize("lift", LIFTS)


def sample(dtype=torch.float64, n=N):
    return torch.randn(n, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)


def four_sets(lift):
    """Sets over six points: one empty, members with empty slots, members that two sets share, weights."""
    subgraphs = np.array([[0, 1, 2], [2, -1, 5], [1, 1, -1], [3, 0, 4]], dtype=np.int32)
    sets = Multisets(
        np.array([0, 2, 2, 5, 6]), np.array([0, 1, 3, 2, 0, 2], np.int32), np.array([1.0, 0.5, 2, 1, 3, 1]), 4
    )
    return LiftedSets(sets, subgraphs, 6, lift=lift)


def rule_of(sets):
    """A rule whose members have as many slots as those of these sets."""
    if not sets.lifted:
        return "neighbourhood"
    return Pairs() if sets.slots == 1 else Paths(sets.slots - 1)


def layer(sets, *, in_channels=D, dtype=torch.float64, **options):
    torch.manual_seed(0)
    conv = FisherConv(in_channels, OUT, 3, multiset=rule_of(sets), **options).to(dtype)
    return conv.eval()


# -------------------------------------------------------------------------------------- mathematics


@each_lift
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_phi_is_that_of_the_reference_on_lifted_unit_rows(lift, normalize, steps):
    sets, x = four_sets(lift), sample(n=6)
    conv = layer(sets, head="identity", normalize=normalize, em=EM(n_iter=steps), counts=True)
    rows = x.numpy() / np.linalg.norm(x, axis=1, keepdims=True) if normalize else x.numpy()
    slots = [[rows[u] if u >= 0 else np.zeros(D) for u in s] for s in sets.subgraphs]
    if lift == "mean":
        lifted = np.array([np.sum(s, axis=0) / (u >= 0).sum() for s, u in zip(slots, sets.subgraphs, strict=True)])
    else:
        lifted = np.array([np.concatenate(s) for s in slots])
    anchors = conv.mixture.anchors[0].detach().numpy()
    means, mass = reference.em_means(lifted, members_of(sets.sets), anchors, conv.mixture.variance, n_iter=steps)
    expected = np.concatenate([reference.fisher_embedding(means, anchors), np.log1p(mass)], axis=1)
    found = conv((x, None), sets).detach().numpy()
    assert_allclose(found, expected, atol=1e-12)
    assert_array_equal(found[1], 0)


@pytest.mark.parametrize("rule", RULES[:3], ids=str)
@pytest.mark.parametrize("n_iter", [1, 2])
def test_a_layer_agrees_with_the_estimator(rule, n_iter):
    """The same anchors, variance and landmarks give the columns of `FisherEmbedding`'s layer."""
    x = sample(torch.float32).numpy()
    em = EM(n_iter=n_iter)
    model = FisherEmbedding(2, 3, 4, multiset=rule, em=em, structure=None, random_state=0).fit(x, graph=GRAPH)
    Z = model.transform(x, graph=GRAPH)
    psi0, expected = (torch.from_numpy(Z[:, 4 * t : 4 * t + 4]) for t in (0, 1))
    fitted, sets = model.stack_.layers[0], rule(GRAPH)
    family = GaussianMixture(variance=fitted.theta.variance)
    conv = FisherConv(4, 4, 3, head="nystrom", multiset=rule, family=family, em=em)
    with torch.no_grad():
        conv.mixture.anchors[0] = torch.from_numpy(fitted.theta.anchors)
        conv.head.weight.copy_(torch.from_numpy(fitted.kernel_map.landmarks))
    torch.testing.assert_close(conv(psi0, sets), expected, atol=2e-6, rtol=1e-5)


@each_rule
@pytest.mark.parametrize("normalize", [True, False])
def test_a_network_agrees_with_the_estimator(rule, normalize):
    """ψ_0 … ψ_T side by side, of tuples the means over those that begin with a node."""
    x, hidden = sample(torch.float32).numpy(), 6
    options = {"normalize": normalize, "multiset": rule}
    kernel = Nystrom(bandwidth=0.9)
    model = FisherEmbedding(2, 3, hidden, kernel=kernel, walk=None, structure=None, random_state=0, **options)
    model.fit(x, graph=GRAPH)
    Z = model.transform(x, graph=GRAPH)
    sets, points = rule(GRAPH), x
    if isinstance(rule, Tuples):
        points = node_tuples(GRAPH, rule.k, rule.s).features(x, normalize=normalize)
    net = FisherNet(points.shape[1], hidden, 2, num_anchors=3, head=kernel, **options)
    with torch.no_grad():
        net.input_map.weight.copy_(torch.from_numpy(model.stack_.input_map.landmarks))
        for conv, fitted in zip(net.convs, model.stack_.layers, strict=True):
            conv.mixture.anchors[0] = torch.from_numpy(fitted.theta.anchors)
            conv.mixture.variance = fitted.theta.variance
            conv.head.weight.copy_(torch.from_numpy(fitted.kernel_map.landmarks))
        found = net.eval()(torch.from_numpy(points), tensor_sets(sets))
    assert found.shape == Z.shape == (N, 3 * hidden)
    assert_allclose(found, Z, atol=2e-5)


KINDS = {
    "linear": {},
    "relu": {"head": "relu"},
    "nystrom": {"head": "nystrom"},
    "heads": {"heads": 2, "family": WeightedMixture()},
    "steps": {"em": EM(n_iter=3)},
    "balanced": {"em": EM(e_step="balanced")},
    "unbalanced": {"em": EM(n_iter=2, e_step="unbalanced")},
    "prior": {"em": EM(prior=0.7), "counts": True},
    "variances": {"family": "diagonal-mixture", "head": "nystrom"},
    "directions": {"family": "von-mises-fisher", "em": EM(n_iter=2)},
    "covariances": {"family": "gaussian"},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@each_lift
def test_whatever_a_mixture_does_it_does_to_lifted_members(kind, lift):
    sets, x = tensor_sets(four_sets(lift)), sample(n=6)
    conv = layer(sets, **KINDS[kind])
    lifted, plain = sets.gather(torch.nn.functional.normalize(x, dim=1))
    other = FisherConv(D * sets.slots, OUT, 3, normalize=False, **KINDS[kind]).double().eval()
    other.load_state_dict(conv.state_dict())
    torch.testing.assert_close(conv((x, None), sets), other((lifted, None), plain), rtol=1e-12, atol=1e-12)


@each_lift
def test_counts_are_lifted_as_they_are(lift):
    sets, x = tensor_sets(four_sets(lift)), torch.poisson(2 + 0 * sample(n=6))
    conv = layer(sets, family="multinomial")
    other = FisherConv(D * sets.slots, OUT, 3, family="multinomial").double().eval()
    other.load_state_dict(conv.state_dict())
    lifted, plain = sets.gather(x)
    torch.testing.assert_close(conv((x, None), sets), other((lifted, None), plain), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="counts"):
        conv((-x, None), sets)


@pytest.mark.parametrize("rule", [Pairs(), Paths(2)], ids=str)
def test_a_network_of_counts_agrees_with_the_estimator(rule):
    x = np.random.default_rng(0).poisson(2.0, size=(N, D)).astype(np.float64)
    model = FisherEmbedding(1, 2, 6, multiset=rule, family="multinomial", structure=None, random_state=0).fit(
        x, graph=GRAPH
    )
    sets, fitted = rule(GRAPH), model.stack_.layers[0]
    net = FisherNet(D, 6, 1, num_anchors=2, head=Nystrom(), family="multinomial", multiset=rule).double()
    mixture = net.convs[0].mixture
    with torch.no_grad():
        mixture.anchors[0, 0] = torch.from_numpy(np.log(fitted.theta.probabilities))
        mixture.bias[0] = torch.from_numpy(fitted.theta.log_weights)
        mixture.trials = fitted.theta.trials
        net.input_map.weight.copy_(torch.from_numpy(model.stack_.input_map.landmarks))
        net.convs[0].head.weight.copy_(torch.from_numpy(fitted.kernel_map.landmarks))
    found = net.eval()(torch.from_numpy(x), tensor_sets(sets)).detach()
    assert_allclose(found, model.transform(x, graph=GRAPH), atol=1e-7)


# ---------------------------------------------------------------------------------------- gradients


@each_lift
@pytest.mark.parametrize("kind", ["linear", "nystrom", "steps", "balanced", "prior", "variances", "covariances"])
@pytest.mark.parametrize("limit", [None, 200], ids=["whole", "blocks"])
def test_gradcheck_through_the_lift(lift, kind, limit, monkeypatch):
    if limit is not None:
        monkeypatch.setattr("fishergraph.nn.lifted.BLOCK_BYTES", {"cpu": limit, "cuda": limit})
    sets, x = tensor_sets(four_sets(lift)), sample(n=6).requires_grad_()
    conv = layer(sets, **KINDS[kind])
    names, parameters = zip(*conv.named_parameters(), strict=True)

    def run(x, *given):
        return torch.func.functional_call(conv, dict(zip(names, given, strict=True)), ((x, None), sets))

    given = tuple(p.detach().clone().requires_grad_() for p in parameters)
    tolerance = 1e-4 if kind == "balanced" else 1e-5
    assert torch.autograd.gradcheck(run, (x, *given), atol=tolerance, fast_mode=kind != "linear" or limit is not None)


def test_a_gradient_reaches_the_rows_on_a_path_and_no_other():
    sets, x = Paths(3)(GRAPH), sample().requires_grad_()
    layer(sets, em=EM(n_iter=2))(x, sets).sum().backward()
    assert_array_equal((x.grad.abs().sum(dim=1) > 0).numpy(), np.isin(np.arange(N), sets.subgraphs))


def test_means_of_tuples_have_a_gradient():
    sets = node_tuples(as_graph(nx.path_graph(4)), 2, 1).sets
    rows = torch.randn(sets.n_sets, 3, dtype=torch.float64, requires_grad=True)
    assert_allclose(pooled(rows, sets).detach(), sets.pooled(rows.detach().numpy()), atol=1e-14)
    assert torch.autograd.gradcheck(lambda rows: pooled(rows, sets), rows)
    assert pooled(rows, Pairs()(GRAPH)) is rows


# ------------------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize("kind", ["linear", "relu", "nystrom", "heads", "steps", "prior"])
@pytest.mark.parametrize("rule", [Pairs(), Paths(2), Tuples(2, 1)], ids=str)
def test_row_blocks_give_the_same_output_and_gradients(rule, kind, monkeypatch):
    sets = tensor_sets(rule(GRAPH))
    x = sample(n=sets.n_sets).requires_grad_()
    conv = layer(sets, **KINDS[kind]).train()
    seen = []
    mixture = type(conv.mixture)
    for name in ("forward", "linear"):
        known = getattr(mixture, name)
        monkeypatch.setattr(mixture, name, lambda *a, known=known: seen.append(a[1].numel()) or known(*a))

    def run():
        seen.clear()
        out = conv(x, sets)
        loss = (out * torch.linspace(-1, 1, OUT * conv.heads)).sum()
        return [out, *torch.autograd.grad(loss, [x, *conv.parameters()])]

    whole, calls = run(), len(set(seen))
    monkeypatch.setattr("fishergraph.nn.lifted.BLOCK_BYTES", {"cpu": 1024})
    blocks = run()
    assert calls == 1
    assert len(seen) >= 4  # a block at a time, each one again for its gradient
    largest = int(torch.diff(sets.sets.indptr).max()) * D * sets.slots
    assert max(seen) <= max(1024 // 8, largest) < sets.n_entries * D * sets.slots
    for one, other in zip(blocks, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        torch.testing.assert_close(conv(x, sets), whole[0], rtol=1e-10, atol=1e-10)


def test_one_set_that_is_too_large_is_an_error(monkeypatch):
    monkeypatch.setattr("fishergraph.nn.lifted.BLOCK_BYTES", {"cpu": 1000})
    monkeypatch.setattr("fishergraph.costs._LARGEST_SET", 100)
    sets = Paths(2)(GRAPH)
    with pytest.raises(MemoryError, match="max_paths"):
        layer(sets)(sample(), sets)


def test_dropout_leaves_members_out_in_training():
    sets, x = Pairs()(GRAPH), sample(torch.float32)
    conv = layer(sets, dtype=torch.float32, head="identity", dropout=0.5)
    usual = conv(x, sets)
    torch.manual_seed(0)
    one, other = conv.train()(x, sets), conv(x, sets)
    assert not torch.allclose(one, other)
    assert not torch.allclose(one, usual)
    conv.dropout = 1.0
    assert not conv(x, sets).any()


@each_lift
@pytest.mark.parametrize("rows", [slice(0, 4), slice(1, 3), slice(1, 2)], ids=str)
def test_a_block_has_sets_over_its_own_points(lift, rows):
    sets, x = tensor_sets(four_sets(lift)), sample(n=6)
    points, own = block_sets(sets, rows, "cpu")
    assert own.n_points == len(points)
    assert (points >= 0).all()
    expected, plain = sets.block(rows).gather(x)
    lifted, given = own.gather(x[points.long()])
    torch.testing.assert_close(lifted, expected)
    assert torch.equal(given.indptr, plain.indptr)
    assert torch.equal(given.weights, plain.weights)


@each_rule
@pytest.mark.filterwarnings("ignore:asked for")
def test_inference_is_the_forward_pass(rule):
    sets = tensor_sets(rule(GRAPH))
    x = sample(n=sets.n_sets)
    for n_layers, classes in ((2, 3), (2, None), (0, 3)):
        net = FisherNet(D, 6, n_layers, classes, num_anchors=3, multiset=rule).double().eval()
        net.init_from_data(x, sets)
        expected = net(x, sets)
        assert len(expected) == N
        for batch_size in (None, 5):
            torch.testing.assert_close(net.inference(x, sets, batch_size=batch_size), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:asked for")
def test_graphs_are_read_out_of_tuples():
    """A hexagon and two triangles, which neighbourhoods cannot tell apart."""
    graphs = [nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))]
    union, batch = as_graph(nx.disjoint_union_all(graphs)), torch.arange(12) // 6
    tuples = node_tuples(union, 2, 1, graph_ptr=[0, 6, 12])
    x = torch.from_numpy(tuples.features(np.ones((12, 1), np.float32)))
    net = FisherNet(x.shape[1], 8, 2, pooling="mean", multiset=Tuples(2, 1)).init_from_data(x, tuples.sets)
    one, other = net(x, tuples.sets, batch=batch, batch_size=2)
    assert (one - other).abs().max() > 1e-2
    edges = torch.tensor(np.stack(union.adjacency.nonzero()))
    one, other = FisherNet(1, 8, 2, pooling="mean")(torch.ones(12, 1), edges, batch=batch)
    torch.testing.assert_close(one, other)


# ----------------------------------------------------------------------------------------- learning

NETWORK, TRAINING = Network(dropout=0.0), Training(lr=0.05, max_epochs=40)
SMALL = {"n_anchors": 2, "dim": 8, "network": NETWORK, "training": TRAINING, "random_state": 0}


def rings():
    """Eight hexagons, and sixteen triangles: every node has two neighbours and the same features."""
    parts = [nx.cycle_graph(6)] * 8 + [nx.cycle_graph(3)] * 16
    y = np.repeat([0, 1], 48)
    hidden = np.where(np.arange(96) % 12 < 6, y, -1)
    return np.ones((96, 2), np.float32), y, hidden, as_graph(nx.disjoint_union_all(parts))


@pytest.mark.filterwarnings("ignore:asked for")
def test_paths_and_tuples_learn_what_neighbourhoods_cannot():
    X, y, hidden, graph = rings()
    unseen = hidden < 0
    for rule in (Paths(3), Tuples(2, 1)):
        model = FisherClassifier(multiset=rule, n_layers=1, **SMALL).fit(X, hidden, graph=graph)
        assert (model.predict(X, graph=graph) == y)[unseen].mean() == 1
    for blind in ("neighbourhood", Hops(1), Pairs()):
        model = FisherClassifier(multiset=blind, n_layers=3, **SMALL).fit(X, hidden, graph=graph)
        chances = model.predict_proba(X, graph=graph)
        assert_allclose(chances, np.broadcast_to(chances[:1], chances.shape), atol=1e-5)


def communities(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    upper = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, 0.25, 0.01), 1)
    X = rng.normal(size=(n, 5)) + 0.7 * np.eye(5)[y]
    return X.astype(np.float32), y, sp.csr_array((upper + upper.T).astype(np.float32))


X, Y, A = communities()
TEST = np.arange(36, 60)
HIDDEN = np.where(np.isin(np.arange(60), TEST), -1, Y)


@pytest.mark.parametrize("rule", ["pairs", "hops", Paths(2, max_paths=6, seed=3), "paths", "tuples"], ids=str)
@pytest.mark.parametrize(
    "options", [{"network": NETWORK.set_params(head="linear")}, {"family": "diagonal-mixture"}], ids=str
)
def test_a_classifier_of_every_rule(rule, options, tmp_path):
    model = FisherClassifier(1, multiset=rule, **{**SMALL, **options}).fit(X, HIDDEN, graph=A, val=np.arange(24, 36))
    chances = model.predict_proba(X, graph=A)
    assert chances.shape == (60, 3)
    assert_allclose(chances.sum(axis=1), 1, atol=1e-5)
    right = model.predict(X, graph=A) == Y
    assert right[:24].mean() > 0.75
    assert right[TEST].mean() > 0.5
    model.save(tmp_path / "m")
    loaded = FisherClassifier.load(tmp_path / "m")
    assert loaded.multiset == rule
    assert_array_equal(loaded.predict_proba(X, graph=A), chances)
    other, y, graph = communities(90, seed=5)
    assert loaded.score(other, y, graph=graph) > 0.5
    order = np.random.default_rng(0).permutation(60)
    if rule != Paths(2, max_paths=6, seed=3):  # drawn by the number of a node
        assert_allclose(model.predict_proba(X[order], graph=A[order][:, order]), chances[order], atol=1e-4)


@pytest.mark.parametrize("rule", ["pairs", "tuples"])
def test_sparse_rows_low_precision_and_no_graph(rule):
    options = {**SMALL, "training": Training(lr=0.05, max_epochs=5), "multiset": rule}
    model = FisherClassifier(1, **options).set_params(training__amp=True).fit(sp.csr_array(X), HIDDEN, graph=A)
    assert np.isfinite(model.predict_proba(sp.csr_array(X), graph=A)).all()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asked for")
        alone = FisherClassifier(1, **options).fit(X, HIDDEN)
    assert alone.predict(X).shape == (60,)


def test_a_checkpoint_of_tuples_goes_on_as_if_nothing_had_happened(tmp_path):
    def tuples(epochs):
        training = Training(lr=0.05, max_epochs=epochs, patience=None)
        return FisherClassifier(
            1, **{**SMALL, "training": training, "network": Network(dropout=0.3)}, multiset="tuples"
        )

    whole = tuples(6).fit(X, HIDDEN, graph=A)
    tuples(3).fit(X, HIDDEN, graph=A, checkpoint=tmp_path / "c")
    again = tuples(6)
    again.fit(X, HIDDEN, graph=A, checkpoint=tmp_path / "c", resume=True)
    assert_array_equal(again.predict_proba(X, graph=A), whole.predict_proba(X, graph=A))


def test_train_takes_lifted_sets_of_arrays():
    sets, y = Paths(2)(as_graph(A)), torch.from_numpy(Y)
    net = FisherNet(5, 8, 2, 3, multiset=Paths(2), member_dropout=0.2)
    history = train(net, torch.from_numpy(X), y, sets, train=np.arange(36), epochs=30, lr=0.05)
    assert history.rows[-1]["train_accuracy"] > 0.9


# ---------------------------------------------------------------------------------------- bad input


def test_a_layer_says_which_sets_it_takes():
    sets, x = Paths(2)(GRAPH), sample()
    conv = layer(sets)
    edges = torch.tensor(np.stack(GRAPH.adjacency.nonzero()))
    with pytest.raises(TypeError, match="LiftedSets"):
        conv(x, edges)
    with pytest.raises(ValueError, match="slots=3"):
        FisherConv(D, OUT).double()(x, sets)
    with pytest.raises(ValueError, match="slots=1"):
        conv(x, Pairs()(GRAPH))
    with pytest.raises(ValueError, match="4 features"):
        conv(x[:, :3], sets)
    with pytest.raises(ValueError, match="13 points"):
        conv((x[:13], None), sets)
    with pytest.raises(ValueError, match="weights"):
        conv(x, sets, torch.ones(edges.shape[1]))
    lazy = FisherConv(-1, OUT, multiset=Paths(2)).double()
    assert lazy(x, sets).shape == (N, OUT)
    assert lazy.mixture.in_channels == 3 * D


def test_subgraphs_of_points_that_are_not_there():
    sets, x = Paths(2)(GRAPH), sample()
    conv = layer(sets)
    wrong = sets.subgraphs.copy()
    wrong[0, 1] = N
    with pytest.raises(ValueError, match="0 to 13"):
        conv(x, replace(sets, subgraphs=wrong))
    with pytest.raises(ValueError, match="3 subgraphs"):
        conv(x, replace(sets, subgraphs=sets.subgraphs[:3]))


def test_who_needs_edges_says_so():
    sets, x, y = Pairs()(GRAPH), sample(torch.float32), torch.arange(N) % 2
    net = FisherNet(D, 6, 1, 2, multiset=Pairs())
    with pytest.raises(ValueError, match="LiftedSets"):
        net.convs[0](torch.ones(N, 6), sets, return_attention_weights=True)
    with pytest.raises(ValueError, match="sampled batch"):
        net(x, sets, batch_size=2)
    for how in ({"near": True}, {"batch_size": 4}, {"loader": []}):
        with pytest.raises(ValueError, match="batch of nodes"):
            train(net, x, y, sets, train=[0, 1, 2], **how)
    net.convs[0].explain = True  # as explainers set it
    with pytest.raises(ValueError, match="explanation"):
        net(x, sets)


def test_a_classifier_says_no_to_batches_before_it_works(monkeypatch):
    monkeypatch.setattr("fishergraph.estimators.classifier.read_host", None)
    for rule in ("paths", Tuples(2)):
        with pytest.raises(ValueError, match="batch_size"):
            FisherClassifier(multiset=rule, training=Training(batch_size=16)).fit(X, Y, graph=A)
    with pytest.raises(ValueError, match="length"):
        FisherClassifier(multiset=Paths(0)).fit(X, Y, graph=A)


# -------------------------------------------------------------------------------------------- a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_gpu_gives_what_the_cpu_gives(rule, monkeypatch):
    options = {**SMALL, "n_layers": 2, "multiset": rule, "training": Training(lr=0.05, max_epochs=30)}
    model = FisherClassifier(**options).fit(X, HIDDEN, graph=A)
    chances = model.predict_proba(X, graph=A)
    assert_allclose(model.set_params(device="cuda").predict_proba(X, graph=A), chances, atol=2e-3)
    for limit in (None, 20_000):
        if limit is not None:
            monkeypatch.setattr("fishergraph.nn.lifted.BLOCK_BYTES", {"cpu": limit, "cuda": limit})
        there = FisherClassifier(**options, device="cuda").fit(X, HIDDEN, graph=A)
        assert (there.predict(X, graph=A) == Y)[HIDDEN >= 0].mean() > 0.9
    sets = tensor_sets(choose_multiset(rule)(as_graph(A)))
    with pytest.raises(ValueError, match="cuda:0"):
        layer(sets, dtype=torch.float32).cuda()(sample(torch.float32, sets.n_sets).cuda(), sets)
