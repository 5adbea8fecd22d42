"""The neighbour loader: exact where it takes all, unbiased where it samples, the same batches for the same seed."""

import logging
import math
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

import torch_geometric.typing  # noqa: E402
from torch_geometric import EdgeIndex  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.loader import NeighborLoader  # noqa: E402
from torch_geometric.nn import GCNConv, SAGEConv  # noqa: E402
from torch_geometric.utils import k_hop_subgraph, trim_to_layer  # noqa: E402

from fishergraph.multiset import Multisets  # noqa: E402
from fishergraph.nn import loader as loader_module  # noqa: E402
from fishergraph.nn.loader import CSRNeighborLoader, neighbor_loader  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402
from fishergraph.ops.tensor_sets import TensorSets  # noqa: E402

N_NODES, N_EDGES = 60, 200


def example(*, dtype=torch.int64, seed=0):
    """A directed graph with parallel edges, self-loops and isolated nodes (the last five), edges in no order."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, N_NODES - 5, (2, N_EDGES))
    edges[:, :10] = edges[:, 10:20]  # parallel
    edges[0, 20:30] = edges[1, 20:30]  # loops
    return Data(
        x=torch.from_numpy(rng.normal(size=(N_NODES, 4))).float(),
        y=torch.arange(N_NODES),
        edge_index=torch.from_numpy(edges).to(dtype),
        edge_weight=torch.arange(N_EDGES) + 0.5,
        edge_attr=torch.arange(N_EDGES).repeat(3, 1).T,
        train_mask=torch.from_numpy(rng.random(N_NODES) < 0.5),
        name="example",
    )


def star(n_leaves, *, loops=0):
    """Node 0 with edges from all the others and `loops` self-loops in the middle of its row."""
    leaves = torch.arange(1, n_leaves + 1)
    sources = torch.cat([leaves[: n_leaves // 2], torch.zeros(loops, dtype=torch.long), leaves[n_leaves // 2 :]])
    return Data(x=torch.zeros(n_leaves + 1, 1), edge_index=torch.stack([sources, torch.zeros_like(sources)]))


def pairs(batch):
    """(source, target, entry) of the edges of a batch, in the numbers of the whole graph."""
    source, target = batch.n_id[batch.edge_index.as_tensor()]
    return sorted(zip(source.tolist(), target.tolist(), batch.e_id.tolist(), strict=True))


def content(batch):
    """All tensors and lists of a batch, comparable."""
    values = batch.to_dict().items()
    return {key: value.tolist() if isinstance(value, torch.Tensor) else value for key, value in values}


def only(data, num_neighbors, nodes, **kwargs):
    """The one batch with these seeds."""
    (batch,) = CSRNeighborLoader(data, num_neighbors, nodes, batch_size=len(nodes), **kwargs)
    return batch


# ------------------------------------------------------------------------------------- what a batch holds


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_full_fan_out_is_the_subgraph_of_k_hops(hops, dtype):
    data = example(dtype=dtype)
    for seeds in ([3], [7, 1, 30], [N_NODES - 1, 2]):
        batch = only(data, [-1] * hops, seeds)
        nodes, _, _, mask = k_hop_subgraph(seeds, hops, data.edge_index, directed=True, num_nodes=N_NODES)
        assert batch.n_id.tolist()[: len(seeds)] == seeds
        assert sorted(batch.n_id.tolist()) == nodes.tolist()
        assert sorted(batch.e_id.tolist()) == torch.nonzero(mask).ravel().tolist()


def test_an_edge_is_the_edge_of_its_number():
    data = example()
    for batch in CSRNeighborLoader(data, [2, 2], batch_size=7):
        for source, target, entry in pairs(batch):
            assert [source, target] == data.edge_index[:, entry].tolist()


def test_nodes_and_edges_are_sliced_along():
    data = example()
    for batch in CSRNeighborLoader(data, [2, 3], batch_size=9):
        for key in ("x", "y", "train_mask"):
            torch.testing.assert_close(batch[key], data[key][batch.n_id], rtol=0, atol=0)
        for key in ("edge_weight", "edge_attr"):
            torch.testing.assert_close(batch[key], data[key][batch.e_id], rtol=0, atol=0)
        assert batch.name == "example"
        assert batch.num_nodes == len(batch.n_id)
    assert len(data.edge_index[0]) == N_EDGES  # the data itself is left alone
    assert "n_id" not in data


def test_arrays_are_sliced_and_numbers_of_an_earlier_sample_kept():
    data = example()
    data.n_id, data.year = torch.arange(N_NODES) + 1000, np.arange(N_NODES)
    batch = only(data, [-1], [5, 6])
    assert batch.n_id.tolist() == (batch.y + 1000).tolist()
    assert batch.year.tolist() == batch.y.tolist()


@pytest.mark.filterwarnings("ignore:.*beta state")
def test_sparse_features_stay_sparse():
    data, dense = example(), example().x.relu()
    data.x = dense.to_sparse_csr()
    batch = only(data, [2, 2], [7, 3, 59])
    assert batch.x.layout == torch.sparse_csr
    assert batch.num_nodes == len(batch.n_id)
    torch.testing.assert_close(batch.x.to_dense(), dense[batch.n_id], rtol=0, atol=0)


def test_hops_are_contiguous_and_each_node_is_expanded_once():
    for batch in CSRNeighborLoader(example(), [3, 2, 2], batch_size=6):
        n_nodes, n_edges = batch.num_sampled_nodes, batch.num_sampled_edges
        assert (len(n_nodes), len(n_edges)) == (4, 3)
        assert (sum(n_nodes), sum(n_edges)) == (len(batch.n_id), len(batch.e_id))
        assert n_nodes[0] == batch.batch_size
        assert len(set(batch.n_id.tolist())) == len(batch.n_id)
        borders = np.cumsum([0, *n_nodes])
        sources, targets = batch.edge_index.as_tensor()
        for hop, (own_sources, own_targets) in enumerate(
            zip(sources.split(n_edges), targets.split(n_edges), strict=True)
        ):
            assert bool((own_targets >= borders[hop]).all())
            assert bool((own_targets < borders[hop + 1]).all())
            assert bool((own_sources < borders[hop + 2]).all())


def test_multisets_take_the_edges_of_a_batch_without_sorting(monkeypatch):
    data = example()
    batch = only(data, [-1, -1], [0, 1, 2])
    assert isinstance(batch.edge_index, EdgeIndex)
    batch.edge_index.validate()
    monkeypatch.setattr(torch, "sort", None)
    sets = tensor_sets(batch.edge_index, weights=batch.edge_weight)
    assert (sets.n_sets, sets.n_points) == (len(batch.n_id), len(batch.n_id))
    assert sets.indices.tolist() == batch.edge_index.as_tensor()[0].tolist()
    assert sets.rows.tolist() == batch.edge_index.as_tensor()[1].tolist()


@pytest.mark.parametrize("layer", [GCNConv, SAGEConv])
def test_trimming_changes_nothing_at_the_seeds(layer):
    torch.manual_seed(0)
    data = example()
    kwargs = {"normalize": False} if layer is GCNConv else {}  # a normalised edge needs the degrees of the graph
    convs = [layer(4, 5, **kwargs), layer(5, 5, **kwargs), layer(5, 3, **kwargs)]
    batch = only(data, [-1, -1, -1], [4, 9, 50, 59])
    whole, full, trimmed = data.x, batch.x, batch.x
    edge_index = batch.edge_index
    for number, conv in enumerate(convs):
        whole, full = conv(whole, data.edge_index), conv(full, batch.edge_index)
        hops = batch.num_sampled_nodes, batch.num_sampled_edges
        trimmed, edge_index, _ = trim_to_layer(number, *hops, trimmed, edge_index)
        trimmed = conv(trimmed, edge_index)
    assert len(trimmed) < len(full)
    torch.testing.assert_close(full[:4], whole[[4, 9, 50, 59]])
    torch.testing.assert_close(trimmed[:4], whole[[4, 9, 50, 59]])


def test_an_isolated_node_is_a_batch_of_its_own():
    batch = only(example(), [-1, 3], [N_NODES - 1])
    assert batch.n_id.tolist() == [N_NODES - 1]
    assert batch.edge_index.shape == (2, 0)
    assert (batch.num_sampled_nodes, batch.num_sampled_edges) == ([1, 0, 0], [0, 0])


def test_a_graph_without_edges():
    data = Data(x=torch.zeros(3, 2), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert [batch.n_id.tolist() for batch in CSRNeighborLoader(data, [2])] == [[0], [1], [2]]


def test_a_seed_given_twice_has_two_equal_rows():
    data = example()
    batch = only(data, [2], [11, 11, 12])
    sets = tensor_sets(batch.edge_index)
    first, second = (sets.take(torch.tensor([row])).indices.tolist() for row in (0, 1))
    assert batch.n_id[:3].tolist() == [11, 11, 12]
    assert first == second != []
    # The map is clean again: another batch is not disturbed.
    assert pairs(only(data, [-1], [11]))[0][1] == 11


# ------------------------------------------------------------------------------------------------ samples


@pytest.mark.parametrize("fan_out", [1, 3, 10, 29])
def test_samples_are_without_replacement_and_full(fan_out):
    for seed in range(20):
        batch = only(star(30), [fan_out], [0], seed=seed)
        assert len(set(batch.e_id.tolist())) == batch.num_sampled_edges[0] == fan_out


@pytest.mark.parametrize(("n_leaves", "fan_out"), [(100, 5), (12, 1), (12, 9), (20, 15), (1000, 3)])
def test_every_member_and_every_pair_is_equally_likely(n_leaves, fan_out):
    """χ² of inclusions has mean n (1 − k/n) and a spread of √(2 n); of joint inclusions with member 1 likewise."""
    rounds = 20_000 if n_leaves < 1000 else 50_000
    # Rows of many nodes with the same members: one batch draws once for each.
    rows = Multisets(
        np.arange(rounds + 1) * n_leaves, np.tile(np.arange(n_leaves, dtype=np.int32), rounds), None, rounds
    )
    batch = only(rows, [fan_out], range(rounds), x=torch.zeros(rounds, 1), keep_loops=False)
    chosen = (batch.e_id % n_leaves).reshape(rounds, fan_out)
    share = fan_out / n_leaves
    counts = np.bincount(chosen.ravel(), minlength=n_leaves)
    score = ((counts - rounds * share) ** 2 / (rounds * share)).sum()
    assert abs(score - n_leaves * (1 - share)) < 5 * math.sqrt(2 * n_leaves)
    if fan_out > 1:
        with_first = chosen[(chosen == 1).any(1)].ravel().numpy()
        others = np.delete(np.bincount(with_first, minlength=n_leaves), 1)
        expected = others.sum() / (n_leaves - 1)
        spread = math.sqrt(2 * n_leaves) + 1
        joint = ((others - expected) ** 2 / expected).sum()
        assert joint < n_leaves + 5 * spread
        # By the rows alone: neighbouring nodes must not draw alike.
        same = (chosen[1:].sort(1).values == chosen[:-1].sort(1).values).all(1).float().mean()
        alike = 1 / math.comb(n_leaves, fan_out)
        assert float(same) < alike + 5 * math.sqrt(alike / rounds) + 1 / rounds


def test_batches_and_epochs_draw_anew():
    data = star(100)
    loader = CSRNeighborLoader(data, [5], [0] * 40, batch_size=1)
    draws = [tuple(batch.e_id.tolist()) for _ in range(2) for batch in loader]
    assert len(set(draws)) == len(draws)
    counts = np.bincount(np.ravel(draws), minlength=100)
    assert counts.max() < 20  # 400 draws over 100 members


def test_self_loops_are_always_kept_and_not_counted():
    data = star(30, loops=2)
    loops = {15, 16}
    for seed in range(10):
        entries = set(only(data, [3], [0], seed=seed).e_id.tolist())
        assert loops < entries
        assert len(entries) == 5
    assert set(only(data, [30], [0]).e_id.tolist()) == set(range(32))
    counts = [len(loops & set(only(data, [3], [0], seed=seed, keep_loops=False).e_id.tolist())) for seed in range(200)]
    assert 0.05 < np.mean(counts) < 0.4  # 2 · 3 / 32 = 0.19


# -------------------------------------------------------------------------------------- order and threads


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_same_seed_gives_the_same_batches_at_any_number_of_threads(shuffle):
    kwargs = {"batch_size": 7, "shuffle": shuffle, "seed": 3}
    loaders = [CSRNeighborLoader(example(), [2, 2], num_workers=w, **kwargs) for w in (0, 1, 4)]
    for _ in range(2):
        first, *others = [[content(batch) for batch in loader] for loader in loaders]
        assert others == [first, first]


def test_epochs_and_seeds_differ_and_an_epoch_can_be_had_again():
    loader = CSRNeighborLoader(example(), [2, 2], batch_size=20, shuffle=True)
    assert loader.epoch == 0
    first, second = ([content(batch) for batch in loader] for _ in range(2))
    assert [batch["n_id"][:20] for batch in first] != [batch["n_id"][:20] for batch in second]
    assert loader.epoch == 2
    loader.epoch = 0
    assert [content(batch) for batch in loader] == first
    other = CSRNeighborLoader(example(), [2, 2], batch_size=20, shuffle=True, seed=1)
    assert [content(batch) for batch in other] != first
    plain = CSRNeighborLoader(example(), [2, 2], batch_size=20)
    one, two = ([content(batch) for batch in plain] for _ in range(2))
    assert [batch["input_id"] for batch in one] == [batch["input_id"] for batch in two]
    assert [batch["e_id"] for batch in one] != [batch["e_id"] for batch in two]


def test_the_global_random_state_is_left_alone():
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    list(CSRNeighborLoader(example(), [2], shuffle=True))
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()  # noqa: NPY002


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("kind", ["none", "mask", "index", "list", "array"])
def test_every_input_node_is_seen_once(kind, drop_last):
    data = example()
    index = torch.tensor([50, 3, 8, 21, 22, 23, 5])
    nodes = {"none": None, "mask": data.train_mask, "index": index, "list": index.tolist(), "array": index.numpy()}[
        kind
    ]
    known = {"none": list(range(N_NODES)), "mask": torch.nonzero(data.train_mask).ravel().tolist()}.get(
        kind, index.tolist()
    )
    loader = CSRNeighborLoader(data, [2], nodes, batch_size=4, shuffle=True, drop_last=drop_last)
    batches = list(loader)
    assert len(batches) == len(loader) == (len(known) // 4 if drop_last else math.ceil(len(known) / 4))
    seen = [node for batch in batches for node in batch.n_id[: batch.batch_size].tolist()]
    named = [number for batch in batches for number in batch.input_id.tolist()]
    if drop_last:
        assert len(set(seen)) == len(seen) == len(known) // 4 * 4
        assert set(seen) <= set(known)
    else:
        assert sorted(seen) == sorted(known)
    assert seen == (named if kind in ("none", "mask") else index[named].tolist())


def test_batches_are_prepared_ahead_but_not_all_of_them(monkeypatch):
    prepared = []
    plain = CSRNeighborLoader._prepare

    def counted(self, *task):
        prepared.append((task[1], threading.current_thread() is threading.main_thread()))
        return plain(self, *task)

    monkeypatch.setattr(CSRNeighborLoader, "_prepare", counted)
    batches = iter(CSRNeighborLoader(example(), [2], num_workers=2, prefetch_factor=2))
    next(batches)
    time.sleep(0.1)  # enough for all of them
    before = threading.active_count()
    batches.close()  # leaving early ends the threads
    assert threading.active_count() < before
    assert 1 <= len(prepared) <= 5  # one given out, four ahead
    assert not any(main for _, main in prepared)


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    loader = CSRNeighborLoader(example(), [2], num_workers=2)
    monkeypatch.setattr(loader_module, "sample_neighbourhood", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        next(iter(loader))


def test_a_transform_is_applied_at_last():
    loader = CSRNeighborLoader(example(), [2], transform=lambda batch: (batch.batch_size, threading.current_thread()))
    assert next(iter(loader)) == (1, threading.main_thread())


def test_what_lies_on_another_device_is_sliced_there():
    data, near = example(), next(iter(CSRNeighborLoader(example(), [2, 2], batch_size=9)))
    data.x = data.x.to("meta")
    batch = next(iter(CSRNeighborLoader(data, [2, 2], batch_size=9)))
    assert batch.x.shape == near.x.shape
    assert {value.device.type for value in (batch.x, batch.y, batch.edge_index, batch.n_id)} == {"meta"}
    assert batch.edge_index.is_sorted_by_col
    assert batch.edge_index.sparse_size() == near.edge_index.sparse_size()
    assert next(iter(CSRNeighborLoader(example(), [2], device="meta"))).x.device.type == "meta"


@pytest.mark.gpu
@pytest.mark.parametrize("pin_memory", [False, True])
@pytest.mark.parametrize("features", ["cpu", "cuda"])
def test_batches_on_a_card_are_those_on_the_cpu(pin_memory, features):
    data, near = example(), [content(batch) for batch in CSRNeighborLoader(example(), [2, 2], batch_size=9)]
    data.x = data.x.to(features)
    device = "cuda" if features == "cpu" else None
    loader = CSRNeighborLoader(data, [2, 2], batch_size=9, pin_memory=pin_memory, device=device)
    batches = list(loader)
    assert all(
        value.device.type == "cuda"
        for batch in batches
        for value in batch.to_dict().values()
        if isinstance(value, torch.Tensor)
    )
    assert all(batch.edge_index.is_sorted_by_col for batch in batches)
    assert [content(batch) for batch in batches] == near


# ------------------------------------------------------------------------------------------- the ways in


@pytest.mark.filterwarnings("ignore:.*beta state", "ignore:Sparse invariant checks")
def test_all_ways_in_give_the_same_neighbourhoods():
    data = example()
    edges, weights = data.edge_index, data.edge_weight
    order = torch.argsort(edges[1], stable=True)
    sets = tensor_sets(edges, n_sets=N_NODES, n_points=N_NODES, weights=weights)
    size = (N_NODES, N_NODES)
    csr = torch.sparse_csr_tensor(sets.indptr, sets.indices, weights[order], size=size)

    of_torch_sparse = SimpleNamespace(csr=lambda: (sets.indptr, sets.indices, weights[order]))
    index = EdgeIndex(edges[:, order].contiguous(), sparse_size=size, sort_order="col")
    arrays = Multisets(sets.indptr.numpy(), sets.indices.numpy().astype(np.int32), weights[order].numpy(), N_NODES)
    nodes = {"x": data.x, "y": data.y}
    ways = [
        CSRNeighborLoader(Data(**nodes, edge_index=edges, edge_weight=weights), [-1, -1], batch_size=8),
        CSRNeighborLoader(Data(**nodes, edge_index=index, edge_weight=weights[order]), [-1, -1], batch_size=8),
        CSRNeighborLoader(Data(**nodes, adj_t=csr), [-1, -1], batch_size=8),
        CSRNeighborLoader(Data(**nodes, adj_t=of_torch_sparse), [-1, -1], batch_size=8),
        CSRNeighborLoader(sets, [-1, -1], batch_size=8, **nodes),
        CSRNeighborLoader(arrays, [-1, -1], batch_size=8, **nodes),
    ]
    first, *others = [
        [[*batch.edge_index.tolist(), *(batch[key].tolist() for key in ("edge_weight", "x", "y"))] for batch in way]
        for way in ways
    ]
    assert others == [first] * 5
    assert "adj_t" not in next(iter(ways[2]))


@pytest.mark.filterwarnings("ignore:.*beta state")
def test_sparse_matrices_of_other_layouts():
    data = example()
    matrix = torch.sparse_coo_tensor(data.edge_index.flip(0), data.edge_weight, (N_NODES, N_NODES))
    for adj_t in (matrix, matrix.coalesce().to_sparse_csc()):
        batch = only(Data(x=data.x, adj_t=adj_t), [-1], list(range(N_NODES)))
        found = torch.sparse_coo_tensor(batch.n_id[batch.edge_index.as_tensor()].flip(0), batch.edge_weight)
        torch.testing.assert_close(found.to_dense(), matrix.to_dense()[: found.shape[0], : found.shape[1]])
        assert batch.num_edges == matrix.coalesce()._nnz()


def test_sets_that_do_not_begin_at_zero():
    indices = torch.tensor([9, 9, 1, 0, 2, 1])
    sets = TensorSets(torch.tensor([2, 4, 5, 6]), indices, torch.arange(6.0), 3)
    batch = only(sets, [-1], [0], x=torch.arange(3.0))
    assert pairs(batch) == [(0, 0, 3), (1, 0, 2)]
    assert sorted(batch.edge_weight.tolist()) == [2.0, 3.0]


def test_closed_neighbourhoods_keep_their_roots():
    leaves = 50
    indices = torch.cat([torch.arange(leaves), torch.arange(1, leaves)])  # root in front of set 0, loops elsewhere
    indptr = torch.cat([torch.tensor([0]), leaves + torch.arange(leaves)])
    batch = only(TensorSets(indptr, indices, None, leaves), [4, 4], [0], x=torch.zeros(leaves, 1))
    assert batch.num_sampled_edges == [5, 4]
    assert "edge_weight" not in batch
    assert "y" not in batch


@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without")
def test_the_choice_of_loader_and_its_reason(monkeypatch, caplog):
    data = example()
    caplog.set_level(logging.INFO, logger="fishergraph.nn.loader")
    for name in ("WITH_PYG_LIB", "WITH_TORCH_SPARSE"):
        monkeypatch.setattr(torch_geometric.typing, name, False)
    loader = neighbor_loader(data, [2, 2], input_nodes=data.train_mask, batch_size=4, shuffle=True)
    assert isinstance(loader, CSRNeighborLoader)
    assert "neither can be imported" in caplog.text
    monkeypatch.setattr(torch_geometric.typing, "WITH_TORCH_SPARSE", True)
    loader = neighbor_loader(data, [2, 2], input_nodes=data.train_mask, batch_size=4, shuffle=True)
    assert isinstance(loader, NeighborLoader)
    assert isinstance(neighbor_loader(data, [2], seed=1), CSRNeighborLoader)
    assert "seed" in caplog.text
    sets = tensor_sets(data.edge_index, n_sets=N_NODES, n_points=N_NODES)
    assert isinstance(neighbor_loader(sets, [2], x=data.x), CSRNeighborLoader)


# -------------------------------------------------------------------------------------------- bad input


def without(key):
    data = example()
    del data[key]
    return data


def changed(**kwargs):
    data = example()
    for key, value in kwargs.items():
        data[key] = value
    return data


BAD_DATA = [
    (without("edge_index"), ValueError, "edge_index"),
    (without("x"), ValueError, "features"),
    (changed(x=np.zeros((N_NODES, 2))), TypeError, "ndarray"),
    (changed(x=torch.eye(N_NODES).to_sparse()), TypeError, "sparse_coo"),
    (changed(num_nodes=N_NODES + 1), ValueError, "61 nodes"),
    (changed(edge_index=torch.rand(2, 5)), ValueError, "float32"),
    (changed(edge_index=torch.zeros(3, 5).long()), ValueError, "edge_index must"),
    (changed(edge_index=[[0], [1]]), TypeError, "list"),
    (changed(edge_index=torch.tensor([[0], [60]])), ValueError, "targets"),
    (changed(edge_index=torch.tensor([[-1], [0]])), ValueError, "sources"),
    (changed(title=["a"] * N_NODES), TypeError, "title"),
    (Data(x=torch.zeros(3, 1), adj_t=torch.eye(3)), TypeError, "sparse matrix"),
    (
        Data(x=torch.zeros(3, 1), adj_t=torch.eye(3)[:2].to_sparse()),
        ValueError,
        "adj_t",
    ),
    (
        Data(x=torch.zeros(3, 1), adj_t=torch.ones(3, 5).to_sparse()),
        ValueError,
        "members",
    ),
    (HeteroData(), TypeError, "HeteroData"),
]


@pytest.mark.filterwarnings("ignore:.*beta state")
@pytest.mark.parametrize(("data", "error", "match"), BAD_DATA, ids=[match for _, _, match in BAD_DATA])
def test_bad_data_is_named(data, error, match):
    with pytest.raises(error, match=match):
        CSRNeighborLoader(data, [2])


@pytest.mark.parametrize("num_neighbors", [5, [], [0], [-2], [2.0], [True], ["3"], {"a": 1}, None])
def test_fan_outs_are_integers_for_each_hop(num_neighbors):
    with pytest.raises(ValueError, match="num_neighbors"):
        CSRNeighborLoader(example(), num_neighbors)


@pytest.mark.parametrize(
    ("input_nodes", "match"),
    [
        (torch.ones(5, dtype=torch.bool), "mask"),
        (torch.zeros(N_NODES, dtype=torch.bool), "none"),
        (torch.tensor([0.0, 1.0]), "float32"),
        (torch.zeros(2, 2, dtype=torch.long), "int64"),
        (torch.tensor([1, 60]), "60"),
        ([-1], "-1"),
        ("train", "str"),
    ],
)
def test_bad_input_nodes_are_named(input_nodes, match):
    with pytest.raises(ValueError, match=f"input_nodes must .*{match}"):
        CSRNeighborLoader(example(), [2], input_nodes)


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"shuffle": "yes"}, "shuffle"),
        ({"drop_last": None}, "drop_last"),
        ({"seed": -1}, "seed"),
        ({"num_workers": -1}, "num_workers"),
        ({"prefetch_factor": 0}, "prefetch_factor"),
        ({"keep_loops": 1}, "keep_loops"),
        ({"pin_memory": 1}, "pin_memory"),
        ({"device": 1.5}, "device"),
        ({"x": torch.zeros(N_NODES, 1)}, "attributes"),
    ],
)
def test_bad_arguments_are_named(kwargs, match):
    with pytest.raises(ValueError, match=match):
        CSRNeighborLoader(example(), [2], **kwargs)


def test_bad_multisets_are_named():
    sets = TensorSets(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), None, 2)
    x = torch.zeros(2, 1)
    with pytest.raises(ValueError, match="features"):
        CSRNeighborLoader(sets, [2])
    with pytest.raises(ValueError, match="x must"):
        CSRNeighborLoader(sets, [2], x=torch.zeros(3, 1))
    with pytest.raises(ValueError, match="y must"):
        CSRNeighborLoader(sets, [2], x=x, y=torch.zeros(3))
    with pytest.raises(ValueError, match="2 points"):
        CSRNeighborLoader(sets.block(slice(0, 1)), [2], x=x)
    with pytest.raises(ValueError, match="members"):
        CSRNeighborLoader(TensorSets(torch.tensor([0, 1, 2]), torch.tensor([0, 5]), None, 2), [2], x=x)
