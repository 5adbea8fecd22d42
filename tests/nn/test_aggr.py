"""`FisherAggregation`: the contract of PyG's aggregations, and φ of the groups."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.nn import MessagePassing, SAGEConv  # noqa: E402
from torch_geometric.nn.aggr import MultiAggregation  # noqa: E402

import reference  # noqa: E402
from fishergraph import EM  # noqa: E402
from fishergraph._errors import InputError, NotEnoughMemory  # noqa: E402
from fishergraph.nn import FisherAggregation  # noqa: E402

ROWS, D = 9, 4
INDEX = torch.tensor([2, 0, 2, 5, 0, 2, 3, 3, 5])  # groups 1 and 4 are empty


def make(out=None, dtype=torch.float64, **options):
    torch.manual_seed(0)
    return FisherAggregation(D, out, 3, **options).to(dtype)


def rows(dtype=torch.float64):
    return torch.randn(ROWS, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)


def test_phi_of_every_group():
    aggr, x = make(), rows()
    sets = [[(i, 1.0) for i in range(ROWS) if INDEX[i] == g] for g in range(7)]
    anchors = aggr.mixture.anchors[0].detach().numpy()
    points = (x / x.norm(dim=1, keepdim=True)).numpy()
    means, _ = reference.em_means(points, sets, anchors, aggr.mixture.variance)
    found = aggr(x, INDEX, dim_size=7).detach().numpy()
    np.testing.assert_allclose(found, reference.fisher_embedding(means, anchors), atol=1e-12)
    assert (found[[1, 4, 6]] == 0).all()


@pytest.mark.parametrize("options", [{}, {"out": 5}, {"heads": 2, "counts": True}, {"em": EM(n_iter=2), "out": 2}])
def test_index_in_any_order_and_ptr_agree(options):
    aggr, x = make(**options), rows()
    expected = aggr(x, INDEX)
    order = torch.argsort(INDEX, stable=True)
    ptr = torch.searchsorted(INDEX[order], torch.arange(7))
    torch.testing.assert_close(aggr(x[order], INDEX[order]), expected)
    torch.testing.assert_close(aggr(x[order], ptr=ptr), expected)
    torch.testing.assert_close(aggr(x[order], ptr=ptr.int()), expected)
    shuffled = torch.randperm(ROWS, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(aggr(x[shuffled], INDEX[shuffled]), expected)
    assert aggr(x, INDEX, dim_size=10).shape == (10, expected.shape[1])
    assert aggr(x).shape == (1, expected.shape[1])  # everything is one group
    assert aggr(x[:0], INDEX[:0], dim_size=2).shape == (2, expected.shape[1])


def test_counts_tell_a_row_from_the_row_twice():
    x = rows()[:1]
    twice, once = torch.cat([x, x]), torch.zeros(1, dtype=torch.int64)
    plain, counted = make(), make(counts=True)
    torch.testing.assert_close(plain(x, once), plain(twice))
    assert not torch.allclose(counted(x, once), counted(twice))


def test_in_message_passing():
    x = rows()
    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 1, 2, 2, 7, 1]])

    class Layer(MessagePassing):
        def forward(self, x, edge_index):
            return self.propagate(edge_index, x=x)

        def message(self, x_j):
            return 2 * x_j

    aggr = make(normalize=False)
    torch.testing.assert_close(Layer(aggr=aggr)(x, edges), aggr(2 * x[edges[0]], edges[1], dim_size=ROWS))
    sage = SAGEConv(D, 3, aggr=make(out=D)).double()
    assert sage(x, edges).shape == (ROWS, 3)
    multi = MultiAggregation(["mean", make(out=2), "max"])
    assert multi(x, INDEX).shape == (6, 2 * D + 2)


def test_gradcheck():
    aggr = make(out=2)
    assert torch.autograd.gradcheck(lambda x: aggr(x, INDEX, dim_size=7), (rows().requires_grad_(),))
    x = rows()
    aggr(x, INDEX).square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in aggr.parameters())


@pytest.mark.parametrize("by_ptr", [False, True])
def test_compile_sees_one_graph(by_ptr):
    torch._dynamo.reset()
    aggr, x = make(out=3, dtype=torch.float32), rows(torch.float32)
    order = torch.argsort(INDEX)
    how = {"ptr": torch.searchsorted(INDEX[order], torch.arange(7))} if by_ptr else {"index": INDEX[order]}
    compiled = torch.compile(aggr, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x[order], **how, dim_size=6), aggr(x[order], **how, dim_size=6))


def test_a_module_among_modules():
    aggr, x = make(out=3), rows()
    assert repr(aggr) == "FisherAggregation(4, 3, num_anchors=3, heads=1)"
    other = make(out=3)
    other.reset_parameters()
    assert not torch.equal(other(x, INDEX), aggr(x, INDEX))
    other.load_state_dict(aggr.state_dict())
    for same in (other, copy.deepcopy(aggr)):
        torch.testing.assert_close(same(x, INDEX), aggr(x, INDEX), rtol=0, atol=0)
    lazy = FisherAggregation(-1, 3).double()
    assert lazy(x, INDEX).shape == (6, 3)
    before = aggr.mixture.anchors.detach().clone()
    aggr.init_from_data(x)
    assert not torch.equal(before, aggr.mixture.anchors)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda aggr, x: aggr(x, INDEX, dim_size=3), "targets"),
        (lambda aggr, x: aggr(x, -INDEX - 1, dim_size=7), "targets"),
        (lambda aggr, x: aggr(x[:, :2], INDEX), "4 features"),
        (lambda aggr, x: aggr(x[None], INDEX), "shape"),
        (lambda aggr, x: aggr(x, ptr=torch.tensor([0, 20])), "indptr"),
        (lambda aggr, x: aggr(x.to_sparse_csr(), INDEX), "dense"),
        (lambda aggr, x: aggr(x, ptr=torch.tensor(3)), "ptr"),
        (lambda aggr, x: aggr(x, ptr=torch.zeros(0).long()), "ptr"),
        (lambda aggr, x: aggr(x, ptr=torch.tensor([0.0, 9.0])), "ptr"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(make(), rows())


@pytest.mark.parametrize("value", [int, EM(), 1e300, 2.5, "3", True, [1], np.ones(2), -1, 2**40, 2**70], ids=repr)
@pytest.mark.parametrize("name", ["dim_size", "dim", "index", "ptr", "x"])
def test_an_argument_of_another_kind_is_named(name, value):
    arguments = {"x": rows(), "index": INDEX, name: value}
    with pytest.raises((InputError, NotEnoughMemory), match=name):
        make(out=2)(**arguments)
