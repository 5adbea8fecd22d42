"""Multisets on tensors: from what people have, without needless copies, and never with an index that is not one."""

from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fishergraph.ops.tensor_sets as sets_module  # noqa: E402
from fishergraph.multiset import Multisets  # noqa: E402
from fishergraph.ops.tensor_edges import tensor_sets  # noqa: E402
from fishergraph.ops.tensor_sets import TensorSets, check_sets, unpack  # noqa: E402

# Sets 0 … 4 over six points; set 3 is empty, set 1 holds point 4 twice.
LISTS = [[2, 0], [4, 1, 4], [5], [], [3, 0, 1, 2]]
SOURCES = [u for members in LISTS for u in members]
TARGETS = [v for v, members in enumerate(LISTS) for _ in members]
WEIGHTS = [0.5, 1.0, 2.0, 0.0, 3.0, 1.5, 0.25, 4.0, 1.0, 0.75]


def lists_of(sets):
    """The members of every set with their weights, as they lie there."""
    weights = torch.ones(len(sets.indices)) if sets.weights is None else sets.weights
    pairs = list(zip(sets.indices.tolist(), weights.tolist(), strict=True))
    return [pairs[first:last] for first, last in pairwise(sets.indptr.tolist())]


KNOWN = [
    [(u, WEIGHTS[TARGETS.index(v) + i]) for i, u in enumerate(members)] if members else []
    for v, members in enumerate(LISTS)
]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


def example(device="cpu", dtype=torch.int64, weighted=True):
    indptr = torch.tensor([0, 2, 5, 6, 6, 10], device=device)
    weights = torch.tensor(WEIGHTS, device=device) if weighted else None
    return TensorSets(indptr, torch.tensor(SOURCES, device=device, dtype=dtype), weights, 6)


def shuffled(device, seed=0):
    """The edges in another order, which keeps that of the members of a set, and their weights."""
    order = np.random.default_rng(seed).permutation(10)
    places = [sorted(i for i, e in enumerate(order) if TARGETS[e] == v) for v in range(5)]
    entries = np.empty(10, int)
    for v, own in enumerate(places):
        entries[own] = [e for e in range(10) if TARGETS[e] == v]
    edges = torch.tensor([np.array(SOURCES)[entries].tolist(), np.array(TARGETS)[entries].tolist()], device=device)
    return edges, torch.tensor(np.array(WEIGHTS)[entries], device=device)


# ---------------------------------------------------------------------------------------- the ways in


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_edges_in_any_order(device, dtype):
    edges, weights = shuffled(device)
    sets = tensor_sets(edges.to(dtype), weights=weights)
    assert lists_of(sets) == KNOWN
    assert sets.indices.dtype == dtype
    assert (sets.n_sets, sets.n_points, sets.n_entries) == (5, 6, 10)
    assert lists_of(tensor_sets(edges)) == [[(u, 1.0) for u, _ in members] for members in KNOWN]


def test_edges_say_how_many_or_are_told():
    edges = torch.tensor([[0, 1], [1, 0]])
    assert (tensor_sets(edges).n_sets, tensor_sets(edges).n_points) == (2, 2)
    told = tensor_sets(edges, n_sets=4, n_points=3)
    assert lists_of(told) == [[(1, 1.0)], [(0, 1.0)], [], []]
    assert told.n_points == 3
    none = tensor_sets(torch.empty((2, 0), dtype=torch.int64), n_sets=3, n_points=2)
    assert (none.n_sets, none.n_points, none.n_entries) == (3, 2, 0)
    assert tensor_sets(torch.empty((2, 0), dtype=torch.int64)).n_sets == 0


@pytest.mark.parametrize("order", ["col", "row", None])
def test_an_edge_index(device, order):
    EdgeIndex = pytest.importorskip("torch_geometric").EdgeIndex
    edges, weights = shuffled(device)
    if order is not None:
        edges, places = edges[:, (by := torch.argsort(edges[1 if order == "col" else 0], stable=True))], by
        weights = weights[places]
    given = EdgeIndex(edges.contiguous(), sparse_size=(7, 6), sort_order=order)
    sets = tensor_sets(given, weights=weights)
    assert type(sets.indices) is torch.Tensor
    assert (sets.n_points, sets.n_sets) == (7, 6)
    found = lists_of(sets)
    if order == "row":  # the members of a set are then sorted too
        assert [sorted(members) for members in found] == [sorted(members) for members in [*KNOWN, []]]
    else:
        assert found == [*KNOWN, []]
    if order == "col":
        assert sets.indices.data_ptr() == given.as_tensor().data_ptr()
        assert sets.weights.data_ptr() == weights.data_ptr()


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_sparse_tensors(device, layout):
    dense = torch.zeros((5, 6), device=device)
    dense[TARGETS, SOURCES] = torch.arange(1.0, 11.0, device=device)
    matrix = getattr(dense, f"to_sparse_{layout}")() if layout != "coo" else dense.to_sparse()
    sets = tensor_sets(matrix)
    assert [dict(members) for members in lists_of(sets)] == [
        {u: float(dense[v, u]) for u in sorted(set(members))} for v, members in enumerate(LISTS)
    ]
    if layout == "csr":
        assert sets.indptr.data_ptr() == matrix.crow_indices().data_ptr()
        assert sets.indices.data_ptr() == matrix.col_indices().data_ptr()
        assert sets.weights.data_ptr() == matrix.values().data_ptr()


def test_a_coo_tensor_adds_what_stands_twice():
    twice = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 4.0], (2, 2))
    assert lists_of(tensor_sets(twice)) == [[(1, 3.0)], [(0, 4.0)]]


def test_multisets_share_their_memory_unless_it_is_read_only():
    arrays = np.array([0, 2, 3]), np.array([1, 0, 1], np.int32), np.array([1.0, 2.0, 3.0])
    sets = tensor_sets(Multisets(*arrays, 2))
    assert [tensor.data_ptr() for tensor in (sets.indptr, sets.indices, sets.weights)] == [
        a.ctypes.data for a in arrays
    ]
    arrays[1].flags.writeable = False
    assert lists_of(tensor_sets(Multisets(*arrays, 2))) == lists_of(sets)
    assert tensor_sets(Multisets(*arrays[:2], None, 2)).weights is None
    block = tensor_sets(Multisets(*arrays, 2).block(slice(1, 2)))
    assert lists_of(block.cut(0, 1)) == [[(1, 3.0)]]


def test_tensor_sets_pass_with_other_weights():
    sets = example()
    assert tensor_sets(sets) is sets
    other = tensor_sets(sets, weights=torch.ones(10))
    assert other.indices is sets.indices
    assert lists_of(other) == [[(u, 1.0) for u, _ in members] for members in KNOWN]


def test_rows_of_a_matrix_of_edges_are_read_with_their_stride():
    edges, weights = shuffled("cpu")
    assert lists_of(tensor_sets(edges.T.contiguous().T, weights=torch.stack([weights] * 2, dim=1)[:, 0])) == KNOWN
    strided = TensorSets(example().indptr, torch.tensor(SOURCES).repeat_interleave(2)[::2], None, 6)
    assert strided.indices.is_contiguous()


# ---------------------------------------------------------------------------------- what is found once


def test_the_transpose_is_right_and_found_once(device):
    sets = example(device, torch.int32)
    back, entries = sets.transpose
    assert sets.transpose is sets.transpose
    assert (back.n_sets, back.n_points, back.n_entries) == (6, 5, 10)
    assert back.indices.dtype == torch.int32
    for u in range(6):
        own = entries[back.indptr[u] : back.indptr[u + 1]].tolist()
        assert own == [e for e in range(10) if SOURCES[e] == u]
        assert [TARGETS[e] for e in own] == back.indices[back.indptr[u] : back.indptr[u + 1]].tolist()


def test_the_transpose_of_a_block_counts_the_entries_of_the_whole():
    block = example().block(slice(1, 5))
    back, entries = block.transpose
    assert sorted(entries.tolist()) == list(range(2, 10))
    for u in range(6):
        own = entries[back.indptr[u] : back.indptr[u + 1]].tolist()
        assert own == [e for e in range(2, 10) if SOURCES[e] == u]
        assert back.indices[back.indptr[u] : back.indptr[u + 1]].tolist() == [TARGETS[e] - 1 for e in own]


def test_rows_are_the_sets_of_the_entries(device):
    assert example(device).rows.tolist() == TARGETS
    assert example(device).block(slice(2, 5)).rows.tolist() == [0, 2, 2, 2, 2]


def test_hubs_are_cut_into_parts_that_cover_them(device, monkeypatch):
    monkeypatch.setattr(sets_module, "HUB", 2)
    whole = example(device)
    hubs = whole.hubs
    assert hubs.rows.tolist() == [1, 4]
    assert hubs.offsets.tolist() == [0, 2, 4]
    assert hubs.part_row.tolist() == [1, 1, 4, 4]
    assert list(zip(hubs.part_first.tolist(), hubs.part_last.tolist(), strict=True)) == [
        (2, 4),
        (4, 5),
        (6, 8),
        (8, 10),
    ]
    assert (hubs.n_hubs, hubs.n_parts) == (2, 4)
    for rows in (slice(0, 1), slice(1, 3), slice(2, 5), slice(0, 5), slice(5, 5)):
        block = whole.block(rows)
        alone = TensorSets(block.indptr, block.indices, None, 6)
        for ours, theirs in zip(block.hubs, alone.hubs, strict=True):
            assert torch.equal(ours, theirs)
        again = block.block(slice(1, None))
        assert again.hubs.rows.tolist() == [r - 1 for r in alone.hubs.rows.tolist() if r >= 1]


# ------------------------------------------------------------------------------------------ round trips


def test_blocks_views_and_copies(device):
    sets = example(device)
    block = sets.block(slice(1, 4))
    assert block.indices is sets.indices
    assert (block.n_sets, block.n_entries) == (3, 4)
    assert lists_of(block.cut(0, 3)) == KNOWN[1:4]
    assert lists_of(sets.cut(2, 5)) == KNOWN[2:5]
    assert sets.cut(0, 5) is sets
    assert lists_of(sets.take(torch.tensor([4, 0, 0, 3], device=device))) == [KNOWN[4], KNOWN[0], KNOWN[0], []]
    assert lists_of(block.take(torch.tensor([1], device=device))) == [KNOWN[2]]
    assert sets.to(device) is sets
    assert sets.weighted(None).weights is None


@pytest.mark.parametrize("transpose", [False, True])
def test_pack_and_unpack(device, transpose, monkeypatch):
    monkeypatch.setattr(sets_module, "HUB", 2)
    sets = example(device)
    packed = sets.pack(transpose=transpose)
    assert all(type(tensor) is torch.Tensor for tensor in packed)
    again = unpack(packed, sets.weights, 6)
    assert lists_of(again) == KNOWN
    assert again.hubs.rows.tolist() == sets.hubs.rows.tolist()
    assert ("transpose" in again.__dict__) == transpose
    if transpose:
        assert torch.equal(again.transpose.entries, sets.transpose.entries)
        assert lists_of(again.transpose.sets) == lists_of(sets.transpose.sets)
        assert torch.equal(again.transpose.sets.hubs.part_last, sets.transpose.sets.hubs.part_last)


def test_what_is_known_of_the_shape_stays_with_other_weights():
    sets = example().prepare()
    other = sets.weighted(torch.ones(10))
    for name in ("sound", "transpose", "rows", "hubs", "n_entries"):
        assert other.__dict__[name] is sets.__dict__[name], name


# -------------------------------------------------------------------------------------------- bad input

EDGES = torch.tensor([[0, 1, 2], [1, 0, 1]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tensor_sets([[0, 1], [1, 0]]), TypeError, "got list"),
        (lambda: tensor_sets(np.array([[0, 1], [1, 0]])), TypeError, "ndarray"),
        (lambda: tensor_sets(EDGES[0]), ValueError, r"\(3,\)"),
        (lambda: tensor_sets(EDGES.T), ValueError, r"\(3, 2\)"),
        (lambda: tensor_sets(EDGES.float()), ValueError, "float32"),
        (lambda: tensor_sets(EDGES.bool()), ValueError, "of torch.bool"),
        (lambda: tensor_sets(EDGES.cfloat()), ValueError, "of torch.complex64"),
        (lambda: tensor_sets(EDGES - 1), ValueError, "sources"),
        (lambda: tensor_sets(EDGES, n_points=2), ValueError, "sources"),
        (lambda: tensor_sets(EDGES, n_sets=1), ValueError, "targets"),
        (lambda: tensor_sets(EDGES, n_sets=2.5), ValueError, "n_sets"),
        (lambda: tensor_sets(EDGES, n_points=-1), ValueError, "n_points"),
        (lambda: tensor_sets(EDGES, weights=torch.ones(2)), ValueError, "3 edges"),
        (lambda: tensor_sets(EDGES, weights=torch.ones(3, 1)), ValueError, r"got shape \(3, 1\)"),
        (lambda: tensor_sets(EDGES, weights=torch.ones(3).long()), ValueError, "int64"),
        (lambda: tensor_sets(EDGES, weights=np.ones(3)), TypeError, "weights"),
        (lambda: tensor_sets(EDGES, weights=torch.ones(3).to("meta")), ValueError, "meta"),
        (lambda: tensor_sets(EDGES, weights=torch.tensor([1.0, -1.0, 0.0])), ValueError, "minimum"),
        (lambda: tensor_sets(EDGES, weights=torch.tensor([1.0, torch.nan, 0.0])), ValueError, "weights"),
        (lambda: tensor_sets(EDGES, weights=torch.tensor([1.0, torch.inf, 0.0])), ValueError, "weights"),
        (lambda: tensor_sets(torch.eye(2).to_sparse(), n_sets=3), ValueError, "n_sets"),
        (lambda: tensor_sets(example(), n_points=5), ValueError, "n_points"),
        (lambda: tensor_sets(torch.eye(2).to_sparse(), weights=torch.ones(2)), ValueError, "leave them out"),
        (lambda: tensor_sets(torch.ones(2, 2, 2).to_sparse()), ValueError, r"\(2, 2, 2\)"),
        (lambda: tensor_sets(torch.eye(4).to_sparse_bsr((2, 2))), ValueError, "got torch.sparse_bsr"),
        (lambda: tensor_sets(torch.eye(2).long().to_sparse()), ValueError, "int64"),
        (lambda: tensor_sets((-torch.eye(2)).to_sparse_csr()), ValueError, "minimum"),
    ],
)
def test_edges_that_are_none(call, error, message):
    with pytest.raises(error, match=message):
        call()


def bad(*, indptr=(0, 1, 2), indices=(0, 1), weights=None, n_points=2, kind=torch.int64, **how):
    given = None if weights is None else torch.tensor(weights, **how)
    return TensorSets(torch.tensor(indptr, dtype=kind), torch.tensor(indices), given, n_points)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bad(kind=torch.int32), "indptr"),
        (lambda: bad(indptr=[[0, 1]]), "indptr"),
        (lambda: bad(indptr=[]), "indptr"),
        (lambda: bad(indices=[0.0, 1.0]), "indices"),
        (lambda: bad(indices=[[0, 1]]), "indices"),
        (lambda: bad(indptr=[0, 2, 1]), "indptr"),
        (lambda: bad(indptr=[-1, 1, 2]), "indptr"),
        (lambda: bad(indptr=[0, 1, 3]), "indptr"),
        (lambda: bad(indices=[0, 2]), "members"),
        (lambda: bad(indices=[-1, 1]), "members .* got -1 … 1"),
        (lambda: bad(weights=[1.0]), "2 entries"),
        (lambda: bad(weights=[1, 1]), "got torch.int64"),
        (lambda: bad(weights=[1.0, 1.0], device="meta"), "weights"),
        (lambda: bad(weights=[1.0, -0.5]), "minimum -0.5"),
        (lambda: bad(weights=[1.0, float("nan")]), "weights"),
        (lambda: TensorSets(torch.tensor([0, 1]), torch.tensor([0], device="meta"), None, 1), "indices"),
    ],
)
def test_sets_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        check_sets(make())


def test_sets_are_made_of_tensors():
    with pytest.raises(TypeError, match="indices"):
        TensorSets(torch.tensor([0, 1]), np.array([0]), None, 1)


@pytest.mark.parametrize(("mean", "hub"), [(1, 96), (24, 96), (25, 128), (50, 256), (500, 1024)])
def test_parts_grow_with_the_mean_set(mean, hub):
    indptr = mean * torch.arange(51)
    sets = TensorSets(indptr, torch.zeros(50 * mean, dtype=torch.int32), None, 1)
    assert sets.hub == sets.block(slice(1, 3)).hub == hub


def test_a_large_set_is_cut_into_small_parts():
    indptr = torch.tensor([0, 2000, 10_000])
    sets = TensorSets(indptr, torch.zeros(10_000, dtype=torch.int32), None, 1)
    lengths = sets.hubs.part_last - sets.hubs.part_first
    assert sets.hub == 1024
    assert lengths[sets.hubs.part_row == 0].tolist() == [1024, 976]
    assert lengths[sets.hubs.part_row == 1].max() == 96
