"""Input that modules refuse, NaN that they propagate, and the multisets of edges that they keep."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric import EdgeIndex  # noqa: E402

from fishergraph import EM, Neighbourhood, config_context, em_means  # noqa: E402
from fishergraph._errors import InputError  # noqa: E402
from fishergraph.nn import FisherAggregation, FisherConv, FisherNet, NystromHead, train  # noqa: E402
from fishergraph.nn.edges import edge_sets  # noqa: E402
from fishergraph.nn.rows import row_norms, unit_rows  # noqa: E402
from fishergraph.ops._numba import tasks  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402
from fishergraph.ops.tensor_ops import tensor_ops  # noqa: E402
from fishergraph.ops.tensor_sets import TensorSets  # noqa: E402

N, D = 10, 5
torch.manual_seed(0)
X = torch.randn(N, D)
EDGES = torch.randint(0, N, (2, 30))
MEMBERS = [{v, *EDGES[0][EDGES[1] == v].tolist()} for v in range(N)]


# --- NaN and infinity ----------------------------------------------------------------------------------

FORMS = {
    "linear": {},
    "phi": {"head": "identity"},
    "nystrom": {"head": "nystrom"},
    "two steps": {"em": EM(n_iter=2)},
    "balanced": {"em": EM(e_step="balanced")},
    "prior": {"em": EM(prior=1.0)},
    "raw": {"normalize": False},
    "diagonal": {"family": "diagonal-mixture"},
    "diagonal twice": {"family": "diagonal-mixture", "em": EM(n_iter=2)},
    "directions": {"family": "von-mises-fisher"},
    "gaussian": {"family": "gaussian", "num_anchors": 1},
}


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("engine", [None, "torch"])
@pytest.mark.parametrize("form", FORMS)
def test_nan_reaches_the_sets_that_hold_it_and_no_others(form, engine, bad):
    conv, x = FisherConv(D, 3, **FORMS[form]), X.clone()
    x[3, 1] = bad
    with config_context(engine=engine):
        found, expected = conv(x, EDGES), conv(X, EDGES)
    touched = torch.tensor([3 in members for members in MEMBERS])
    assert torch.equal(~found.isfinite().all(dim=1), touched)
    torch.testing.assert_close(found[~touched], expected[~touched])


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS)
def test_nan_reaches_the_same_sets_on_a_gpu(form):
    conv, x = FisherConv(D, 3, **FORMS[form]).cuda(), X.cuda()
    x[3, 1] = torch.nan
    touched = torch.tensor([3 in members for members in MEMBERS])
    assert torch.equal(~conv(x, EDGES.cuda()).isfinite().all(dim=1).cpu(), touched)


def test_nan_propagates_through_a_hub_that_is_cut(monkeypatch):
    monkeypatch.setattr(tasks, "HUB_ENTRIES", 4)
    sets = tensor_sets(EDGES[:, :9] * torch.tensor([[1], [0]]), n_sets=1, n_points=N)
    x = X.clone()
    x[sets.indices[-1]] = torch.nan
    assert FisherConv(D, None, head="identity")((x, None), sets).isnan().all()


def test_networks_and_readouts_let_it_through_and_an_empty_set_is_still_zero():
    x, index = X.clone(), torch.tensor([0] * 5 + [2] * 5)
    x[3, 1] = torch.nan
    phi = FisherAggregation(D)(x, index, dim_size=3)
    assert phi[0].isnan().all()
    assert torch.equal(phi[1], torch.zeros_like(phi[1]))
    assert phi[2].isfinite().all()
    for head in ("nystrom", "linear"):
        for rows in (x, x.to_sparse_csr()):
            assert FisherNet(D, 4, 1, 2, head=head)(rows, EDGES)[3].isnan().all()


def test_a_member_that_weighs_all_but_counts_for_nothing_leaves_the_anchor():
    """log α = −∞ of all members is an empty component, not NaN."""
    logs = torch.tensor([[0.0, -torch.inf]] * N)
    sets = TensorSets(torch.tensor([0, N]), torch.arange(N), None, N)
    for name in ("numba", "torch"):
        means, _, log_total = tensor_ops(name).attend(X, logs, sets, X[:2], 0.0, False, False)
        torch.testing.assert_close(means[0], torch.stack([X.mean(dim=0), X[1]]))
        assert log_total[0, 1] == -torch.inf


def test_em_means_of_tensors_names_the_row():
    x = X.clone()
    x[4, 0] = torch.nan
    with pytest.raises(ValueError, match="row 4"):
        em_means(x, tensor_sets(EDGES, n_sets=N, n_points=N), X[:2])


# --- groups, sizes, hops, sets --------------------------------------------------------------------------

SETS = tensor_sets(EDGES, n_sets=N, n_points=N)
LABELS = torch.arange(N) % 2
WRONG = {
    "index too long": (lambda: FisherAggregation(D)(X, torch.zeros(12, dtype=torch.int64)), "index"),
    "index too short": (lambda: FisherAggregation(D)(X, torch.zeros(8, dtype=torch.int64)), "index"),
    "index of floats": (lambda: FisherAggregation(D)(X, torch.zeros(N)), "index"),
    "index as a column": (lambda: FisherAggregation(D)(X, torch.zeros(N, 1).long()), "index"),
    "ptr too short": (lambda: FisherAggregation(D)(X, ptr=torch.tensor([0, 3, 8])), "ptr"),
    "batch too short": (
        lambda: FisherNet(D, 4, 1, pooling="mean")(X, EDGES, batch=torch.zeros(8).long()),
        "batch",
    ),
    "more sources": (lambda: FisherConv(D, 3)(X, EDGES, size=(20, N)), "sources"),
    "fewer targets": (lambda: FisherConv(D, 3)(X, EDGES, size=(N, 5)), "targets"),
    "more targets": (lambda: FisherConv(D, 3)((X, X[:4]), EDGES % 4, size=(N, 5)), "targets"),
    "one size": (lambda: FisherConv(D, 3)(X, EDGES, size=10), "size"),
    "three sizes": (lambda: FisherConv(D, 3)(X, EDGES, size=(1, 2, 3)), "size"),
    "later hops": (
        lambda: FisherNet(D, 4, 2, 2)(X, EDGES, batch_size=2, num_sampled_nodes_per_hop=[2, 3, 1]),
        "hops",
    ),
    "foreign members": (
        lambda: FisherConv(D, 3)(X, TensorSets(torch.arange(N + 1), torch.arange(N) + 5, None, N)),
        "members",
    ),
    "negative weights": (lambda: FisherConv(D, 3)(X, SETS.weighted(-torch.ones(30))), "weights"),
    "weights of sets": (
        lambda: em_means(X, SETS.weighted(torch.full((30,), torch.nan)), X[:2]),
        "weights",
    ),
    "a list of weights": (lambda: FisherConv(D, 3)(X, EDGES, [1.0] * 30), "edge_weight"),
    "a list of targets": (lambda: FisherConv(D, 3)((X, [1, 2]), EDGES), "x"),
    "three kinds of nodes": (lambda: FisherConv(D, 3)((X, X, X), EDGES), "x"),
    "more targets than memory": (lambda: FisherConv(D, 3)((X, None), EDGES, size=(N, 2**70)), "size"),
    "integers as targets": (lambda: FisherConv(D, 3, residual=True)((X, X.long()), EDGES), "x"),
    "targets of another width": (lambda: FisherConv((D, 3), 3, residual=True)((X, X), EDGES), "3 features"),
    "a class as batch_size": (lambda: FisherNet(D, 4, 1, 2)(X, EDGES, batch_size=int), "batch_size"),
    "more seeds than nodes": (lambda: FisherNet(D, 4, 1, 2)(X, EDGES, batch_size=N + 1), "batch_size"),
    "a class as number of graphs": (lambda: FisherNet(D, 4, 1, pooling="mean")(X, EDGES, batch_size=int), "batch_size"),
    "a number as hops": (lambda: FisherNet(D, 4, 1, 2)(X, EDGES, num_sampled_nodes_per_hop=3), "hop"),
    "texts as hops": (lambda: FisherNet(D, 4, 1, 2)(X, EDGES, num_sampled_nodes_per_hop=["1", 2]), "hop"),
    "more hops than nodes": (lambda: FisherNet(D, 4, 1, 2)(X, EDGES, num_sampled_nodes_per_hop=[N, 1]), "hop"),
    "a number as device": (lambda: FisherNet(D, 4, 1, 2).inference(X, EDGES, device=1.5), "device"),
    "a number as progress": (lambda: FisherNet(D, 4, 1, 2).inference(X, EDGES, progress=3), "progress"),
    "a list into a head": (lambda: NystromHead(D, 3)([1.0]), "x"),
    "a list to start from": (lambda: FisherAggregation(D).init_from_data([1.0]), "x"),
    "a pair with a text": (lambda: FisherConv((D, "5"), 3), "in_channels"),
    "a number as log": (lambda: train(FisherNet(D, 4, 1, 2), X, LABELS, EDGES, train=[0, 1], log=3), "log"),
    "a number as checkpoint": (
        lambda: train(FisherNet(D, 4, 1, 2), X, LABELS, EDGES, train=[0, 1], checkpoint=3),
        "checkpoint",
    ),
    "no width": (lambda: FisherConv(None, 3), "in_channels"),
    "three widths": (lambda: FisherConv((5, 5, 5), 3), "in_channels"),
    "option of a layer": (lambda: FisherConv(D, 3, anchors=3), "anchors"),
    "option of a readout": (lambda: FisherAggregation(D, 3, loops=3), "loops"),
    "option of a network": (lambda: FisherNet(D, 3, 1, loops=3), "loops"),
    "sparse triples": (lambda: FisherNet(D, 3, 1)(X.to_sparse_coo(), EDGES), "dense"),
    "empty blocks": (lambda: FisherNet(D, 3, 1).inference(X, EDGES, batch_size=0), "batch_size"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_one_sentence(case):
    work, pattern = WRONG[case]
    with pytest.raises((InputError, TypeError), match=pattern) as error:
        work()
    assert str(error.value).count("\n") == 0


def test_a_size_that_says_nothing_new():
    conv = FisherConv([D, D], 3)
    for size in ((None, None), (N, None), [N, N]):
        assert torch.equal(conv(X, EDGES, size=size), conv(X, EDGES))


def test_weights_of_sets_are_looked_at_once(monkeypatch):
    sets = SETS.weighted(torch.ones(30))
    conv = FisherConv(D, 3)
    conv(X, sets)
    monkeypatch.setattr("fishergraph.ops.tensor_sets.check_values", lambda weights: pytest.fail("looked at again"))
    conv(X, sets)


# --- what is kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["edges", "sets", "weighted", "groups"])
def test_inference_mode_does_not_spoil_a_training(form):
    edges = EDGES.clone()
    given = {"edges": edges, "sets": tensor_sets(edges, n_sets=N, n_points=N), "weighted": edges.clone()}
    if form == "groups":
        module, index = FisherAggregation(D), torch.arange(N) // 3
        work = lambda: module(X, index)  # noqa: E731
    else:
        module = FisherConv(D, 3, multiset=Neighbourhood(weights="symmetric" if form == "weighted" else None))
        work = lambda: module(X, given[form])  # noqa: E731
    with torch.inference_mode():
        seen = work()
    work().sum().backward()
    assert torch.equal(seen, work().detach())


def test_edges_that_were_written_to_are_read_again():
    other = EDGES.flip(0)

    def sets(edges):
        return edge_sets(edges, n_points=N, n_sets=N).indices.tolist()

    fresh = sets(other.clone())
    replaced = EDGES.clone()
    sets(replaced)
    replaced.data = other.clone()
    assert sets(replaced) == fresh
    inner = EDGES.clone()
    wrapped = EdgeIndex(inner, sparse_size=(N, N))
    sets(wrapped)
    wrapped.as_tensor().copy_(other)
    assert sets(wrapped) == fresh
    with torch.inference_mode():
        written = EDGES.clone()
        sets(written)
        written.copy_(other)
        assert sets(written) == fresh


# --- types and scales -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("head", ["linear", "relu", "nystrom"])
def test_the_result_has_the_type_of_x(kind, head):
    x = X.to(kind)
    assert FisherConv(D, 3, head=head, residual=True).to(kind)(x, EDGES).dtype == kind
    assert FisherAggregation(D, 3).to(kind)(x, torch.arange(N) // 3).dtype == kind
    net = FisherNet(D, 4, 2, 3, head=head)
    for model, given in ((net, x), (net.to(kind), x), (net.to(kind), X)):
        own = next(model.parameters()).dtype
        z = model(given, EDGES)
        z.sum().backward()
        assert z.dtype == own
        near = {"rtol": 0.05, "atol": 0.02} if kind.itemsize == 2 else {}
        torch.testing.assert_close(model.eval().inference(given, EDGES), model(given, EDGES), **near)
        model.train()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("stored", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("head", ["linear", "relu", "nystrom"])
def test_x_may_have_another_type_than_the_weights(kind, stored, head):
    conv = FisherConv(D, 3, head=head, residual=True).to(stored)
    exact = copy.deepcopy(conv).double()(X.double(), EDGES).to(kind)
    z = conv(X.to(kind), EDGES)
    assert z.dtype == kind
    single = {"rtol": 1e-5, "atol": 1e-5}  # a batch norm is computed in the type of its weights
    near = {"rtol": 0.1, "atol": 0.1} if 2 in (kind.itemsize, stored.itemsize) else single
    torch.testing.assert_close(z, exact, **near, check_dtype=False)


@pytest.mark.parametrize("kind", [torch.float16, torch.float64])
def test_targets_may_have_another_type_than_sources(kind):
    torch.manual_seed(0)
    conv = FisherConv((-1, -1), 3, residual=True)
    expected = conv((X, X), EDGES)
    torch.testing.assert_close(conv((X, X.to(kind)), EDGES), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("head", ["linear", "relu", "nystrom"])
def test_inference_under_autocast(head):
    net = FisherNet(D, 4, 2, 3, head=head).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = net.inference(X, EDGES)
    torch.testing.assert_close(found, net(X, EDGES), rtol=0.05, atol=0.02)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_no_square_overflows_or_vanishes(scale):
    net = FisherNet(D, 4, 1, 3)
    for x in (X * scale, (X * scale).to_sparse_csr()):
        torch.testing.assert_close(net(x, EDGES), net(X, EDGES))
        torch.testing.assert_close(row_norms(x) / scale, row_norms(X))
    for engine in (None, "torch"):
        with config_context(engine=engine):
            torch.testing.assert_close(unit_rows(X * scale), unit_rows(X))


def test_lengths_of_zero_rows_have_a_gradient_of_zero():
    x = X.double().clone()
    x[2] = 0
    for rows in (x.clone().requires_grad_(), x.to_sparse_csr().requires_grad_()):
        (slope,) = torch.autograd.grad(row_norms(rows).sum(), rows)
        assert slope.to_dense().isfinite().all()
    x = x[[0, 1, 3]].requires_grad_()
    assert torch.autograd.gradcheck(row_norms, (x,))
    assert torch.autograd.gradgradcheck(row_norms, (x,))


def test_weights_of_an_end_without_any_have_a_gradient():
    weights = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        weights[0] = 0
    edges = torch.tensor([[0, 2], [1, 2]])
    conv = FisherConv(D, 3, multiset=Neighbourhood(closed=False, weights="symmetric"))
    (slope,) = torch.autograd.grad(conv(X[:3], edges, weights).sum(), weights)
    assert slope.isfinite().all()


def test_small_things_of_networks():
    assert FisherNet(D, 4, 1, 3, pooling="fisher").classifier.in_channels > 0
    assert FisherNet(D, 4, 1, 3).inference(X[:0], EDGES[:, :0]).shape == (0, 3)
    assert FisherNet(D, 4, 1, 3, dropout=0.9999999)(X, EDGES).isfinite().all()
    net = FisherNet(D, 4, 1, 3)
    with pytest.raises(ValueError, match="targets"):
        net.init_from_data(X, EDGES + torch.tensor([[0], [99]]))
    assert net.training
    assert np.isfinite(net.eval()(X, EDGES).detach().numpy()).all()
