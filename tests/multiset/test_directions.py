"""In- and out-neighbours: what they are, how they stay apart, and what the estimators make of them."""

import dataclasses
import os
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import reference as ref
from contracts import members_of
from directed_graph import directed_graph
from fishergraph import (
    EM,
    Differences,
    FisherEmbedding,
    FisherGraphEmbedding,
    Multisets,
    Neighbourhood,
    Walk,
    as_graph,
    config_context,
    neighbourhoods,
)
from fishergraph._errors import InputError
from fishergraph.multiset import SplitSets
from fishergraph.multiset.directions import reverse
from fishergraph.multiset.split import side_by_side, split_sets

# a → b, b → c twice, c → c, and d, without an edge
EDGES = [("a", "b"), ("b", "c"), ("b", "c"), ("c", "c")]
IDS = ["a", "b", "c", "d"]
ENDS = np.array([["abcd".index(u), "abcd".index(v)] for u, v in EDGES]).T


def edge_table(make):
    source, target = zip(*EDGES, strict=True)
    return as_graph(make({"source": list(source), "target": list(target)}), node_ids=IDS)


def digraph():
    graph = nx.MultiDiGraph(EDGES)
    graph.add_node("d")
    return as_graph(graph, node_ids=IDS)


def directed_igraph():
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph(directed=True)
    graph.add_vertices(IDS)
    graph.add_edges(EDGES)
    return as_graph(graph)


def pyg():
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    return as_graph(data.Data(edge_index=torch.from_numpy(ENDS), num_nodes=4))


KINDS = {
    "networkx": digraph,
    "igraph": directed_igraph,
    "pyg": pyg,
    "pandas": lambda: edge_table(pd.DataFrame),
    "polars": lambda: edge_table(pl.DataFrame),
    "pyarrow": lambda: edge_table(pa.table),
    "list": lambda: as_graph(EDGES, node_ids=IDS),
    "edge_index": lambda: as_graph(ENDS, n_nodes=4),
    "transposed matrix": lambda: as_graph(sp.coo_array((np.ones(4), tuple(ENDS)), shape=(4, 4)).T),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_graph_keeps_its_direction(kind):
    """In-neighbours have an edge to the node, out-neighbours one from it; parallel edges add, and a loop is both."""
    graph = KINDS[kind]()
    assert members_of(Neighbourhood(closed=False, direction="in")(graph)) == [
        [],
        [(0, 1.0)],
        [(1, 2.0), (2, 1.0)],
        [],
    ]
    assert members_of(Neighbourhood(closed=False, direction="out")(graph)) == [
        [(1, 1.0)],
        [(2, 2.0)],
        [(2, 1.0)],
        [],
    ]


@st.composite
def edge_lists(draw):
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, st.sampled_from([0.5, 1.0, 2.25])), max_size=16))
    return n, edges if draw(st.booleans()) else [(u, v, 1.0) for u, v, _ in edges]


def graph_of(n, edges):
    index = np.array([(u, v) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2).T
    return as_graph((index, np.array([w for *_, w in edges])), n_nodes=n)


@settings(max_examples=80, deadline=None)
@given(edge_lists(), st.booleans())
def test_neighbours_are_the_references(case, closed):
    n, edges = case
    graph = graph_of(n, edges)
    expected = {side: ref.directed_members(edges, n, side, closed) for side in ("in", "out")}
    for side in ("in", "out"):
        found = members_of(Neighbourhood(closed=closed, direction=side)(graph))
        assert [sorted(members) for members in found] == expected[side]
    both = Neighbourhood(closed=closed, direction="both")(graph)
    assert [sorted(m) for m in members_of(both.parts)[0::2]] == expected["in"]
    assert [sorted(m) for m in members_of(both.parts)[1::2]] == expected["out"]
    together = [sorted(one + two) for one, two in zip(*expected.values(), strict=True)]
    assert [sorted(members) for members in members_of(both)] == together
    assert (both.n_sets, both.n_points, both.n_entries) == (n, n, sum(map(len, together)))


@pytest.mark.parametrize("weights", [None, "uniform", "symmetric"])
@pytest.mark.parametrize("closed", [True, False])
def test_rows_as_given_are_in_neighbours_to_the_bit(weights, closed):
    graph = as_graph(directed_graph(40, 0.1))
    today = neighbourhoods(graph, closed=closed, weights=weights)
    for direction in (None, "in"):
        same_sets(Neighbourhood(closed=closed, weights=weights, direction=direction)(graph), today)
    turned = neighbourhoods(as_graph(graph.adjacency.T.tocsr()), closed=closed, weights=weights)
    same_sets(Neighbourhood(closed=closed, weights=weights, direction="out")(graph), turned)


def same_sets(found, expected):
    assert_array_equal(found.indptr, expected.indptr)
    assert_array_equal(found.indices, expected.indices)
    assert (found.weights is None) == (expected.weights is None)
    if expected.weights is not None:
        assert_array_equal(found.weights, expected.weights)
        assert found.weights.dtype == expected.weights.dtype
    assert found.indices.dtype == expected.indices.dtype


def test_symmetric_weights_divide_by_what_the_source_sends_and_the_target_receives():
    graph = as_graph(directed_graph(15, 0.2))
    A = graph.adjacency.toarray().astype(np.float64)  # row: target, column: source
    A += np.diag(np.where(np.diag(A) == 0, 1.0, 0.0))
    expected = A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=0)))
    sets = Neighbourhood(direction="both", weights="symmetric")(graph, dtype=np.float64)
    for v, (into, out) in enumerate(zip(members_of(sets.parts)[0::2], members_of(sets.parts)[1::2], strict=True)):
        assert_allclose([a for _, a in into], [expected[v, u] for u, _ in into], rtol=1e-12)
        assert_allclose([a for _, a in out], [expected[u, v] for u, _ in out], rtol=1e-12)


def test_a_reversed_graph_is_a_valid_graph_with_its_ids():
    graph = edge_table(pd.DataFrame)
    turned = reverse(graph)
    dataclasses.replace(turned)  # validates
    assert_array_equal(turned.adjacency.toarray(), graph.adjacency.toarray().T)
    assert_array_equal(turned.ids, graph.ids)
    plain = as_graph(ENDS[:, :2])
    assert plain.weights is None
    assert reverse(plain).weights is None
    assert reverse(reverse(plain)).indices.dtype == plain.indices.dtype


# --- split sets -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(edge_lists(), st.data())
def test_blocks_and_rows_keep_kinds_apart(case, data):
    n, edges = case
    sets = Neighbourhood(closed=data.draw(st.booleans()), direction="both")(graph_of(n, edges))
    parts = members_of(sets.parts)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    block = sets.block(slice(start, stop))
    assert block.indices is sets.indices
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=6)), dtype=np.int64)
    wanted = [part for v in rows for part in parts[2 * v : 2 * v + 2]]
    for found, expected in [(block, parts[2 * start : 2 * stop]), (sets.take(rows), wanted)]:
        assert isinstance(found, SplitSets)
        assert members_of(found.parts) == expected
        assert members_of(found) == [one + two for one, two in zip(expected[0::2], expected[1::2], strict=True)]
        SplitSets(**{f.name: getattr(found, f.name) for f in dataclasses.fields(found)})  # validates
        own = found.own_entries()
        assert_array_equal(own.indices, np.arange(found.n_entries))
        assert_array_equal(np.diff(own.parts.indptr), np.diff(found.parts.indptr))


def test_parts_must_be_those_of_the_sets():
    one = Multisets(np.array([0, 1, 2]), np.array([0, 1]), None, 2)
    sets = side_by_side([one, one])
    assert repr(sets) == "SplitSets(2 sets over 2 points, 4 members)"
    fields = {f.name: getattr(sets, f.name) for f in dataclasses.fields(sets)}
    for wrong in ({"parts": one}, {"parts": None}, {"kinds": 0}, {"kinds": 3}):
        with pytest.raises(InputError, match="kinds"):
            SplitSets(**{**fields, **wrong})
    assert split_sets(one, 1) is one


# --- parameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Neighbourhood, Differences])
def test_bad_directions_list_the_known_ones(kind):
    for wrong in ("IN", "", "forward", 1, True, ["in"]):
        with pytest.raises(InputError, match="'in', 'out', 'both'"):
            kind(direction=wrong)
    with pytest.raises(InputError, match="undirected=True"):
        kind(direction="both", undirected=True)
    assert kind(direction="out", undirected=True).kinds == 1
    assert repr(Neighbourhood(direction="both")) == "Neighbourhood(direction='both')"


# --- the estimator --------------------------------------------------------------------------------------

GRAPH, X = directed_graph(60, 0.08), np.random.default_rng(1).normal(size=(60, 4))
BOTH = Neighbourhood(direction="both")
PLAIN = {"n_layers": 1, "n_anchors": 3, "kernel": "identity", "normalize": False, "walk": None, "structure": None}


def fitted(direction="both", **options):
    options = {**PLAIN, "random_state": 0, "n_jobs": 1, **options}
    return FisherEmbedding(multiset=Neighbourhood(direction=direction), **options).fit(X, graph=GRAPH)


@pytest.mark.parametrize("n_iter", [1, 3])
def test_phi_is_that_of_both_sides_of_the_reference(n_iter):
    model = fitted(counts=True, em=EM(n_iter=n_iter), block_weights=[0, 1])
    theta, edges = model.stack_.layers[0].theta, sp.coo_array(GRAPH)
    listed = list(zip(edges.col, edges.row, edges.data, strict=True))  # the column of an entry is the source
    columns = []
    for side in ("in", "out"):
        members = ref.directed_members(listed, 60, side, True)
        means, mass = ref.em_means(X, members, theta.anchors, theta.variance, n_iter=n_iter)
        columns += [ref.fisher_embedding(means, theta.anchors), np.log1p(mass)]
    assert_allclose(model.transform(X, graph=GRAPH), np.concatenate(columns, axis=1), atol=2e-6)


def test_turning_all_edges_exchanges_the_sides():
    model = fitted(block_weights=[0, 1])
    Z, turned = (model.transform(X, graph=A) for A in (GRAPH, GRAPH.T.tocsr()))
    assert_allclose(turned, np.roll(Z, 12, axis=1), atol=1e-6)
    assert np.abs(turned - Z).max() > 0.1


def test_an_undirected_graph_says_the_same_twice():
    Z = fitted(block_weights=[0, 1]).transform(X, graph=(GRAPH + GRAPH.T).tocsr())
    assert_array_equal(Z[:, :12], Z[:, 12:])


@pytest.mark.parametrize("engine", ["numba", "scipy", "torch", "triton"])
def test_engines_agree(engine):
    if engine in ("torch", "triton"):
        pytest.importorskip(engine)
    if engine == "triton" and os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("needs TRITON_INTERPRET=1")
    walk = None if engine == "triton" else 0.1  # its interpreter is slow
    model = FisherEmbedding(1, dim=4, walk=walk, multiset=BOTH, random_state=0).fit(X, graph=GRAPH)
    expected = model.transform(X, graph=GRAPH)
    with config_context(engine=engine):
        assert_allclose(model.transform(X, graph=GRAPH), expected, atol=1e-6)


def test_blocks_and_threads_change_no_bit(monkeypatch):
    A, rows = directed_graph(300, 0.05), np.random.default_rng(1).normal(size=(300, 8))
    options = {"n_layers": 2, "dim": 16, "multiset": BOTH, "random_state": 0}
    whole = FisherEmbedding(**options, n_jobs=1).fit_transform(rows, graph=A)
    monkeypatch.setattr("fishergraph.layer.block_rows", lambda *_: 37)
    assert_allclose(FisherEmbedding(**options, n_jobs=1).fit_transform(rows, graph=A), whole, atol=1e-6)
    monkeypatch.undo()
    assert_array_equal(FisherEmbedding(**options, n_jobs=3).fit(rows, graph=A).transform(rows, graph=A), whole)


def test_walks_follow_edges_both_ways():
    """The walk sees the members of both sides: A + Aᵀ, with the node itself on either side."""
    options = {"n_layers": 0, "dim": 8, "walk": Walk(0.2), "structure": None, "random_state": 0}
    both = FisherEmbedding(**options, multiset=BOTH).fit_transform(X, graph=GRAPH)
    A = GRAPH.toarray()
    A += np.diag(np.where(np.diag(A) == 0, 1.0, 0.0))
    assert_allclose(both, FisherEmbedding(**options).fit_transform(X, graph=sp.csr_array(A + A.T)), atol=1e-5)


@pytest.mark.parametrize("walk", [None, 0.1])
def test_without_a_graph_a_row_is_its_own_neighbour_on_both_sides(walk):
    model = FisherEmbedding(2, dim=8, walk=walk, multiset=BOTH, structure=None, random_state=0)
    assert_array_equal(model.fit_transform(X), model.fit_transform(X, graph=sp.csr_array((60, 60))))


@pytest.mark.parametrize("family", ["diagonal-mixture", "gaussian", "von-mises-fisher", "multinomial"])
@pytest.mark.parametrize("kernel", ["exp", "identity"])
def test_any_family_and_kernel_keeps_directions_apart(family, kernel):
    counts = np.random.default_rng(1).poisson(1.0, size=(60, 4)) + 1.0
    model = FisherEmbedding(2, n_anchors=2, dim=6, multiset=BOTH, family=family, kernel=kernel, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asked for")
        Z = model.fit_transform(counts, graph=GRAPH)
    assert np.isfinite(Z).all()
    assert sum(model.stack_.widths) == Z.shape[1]
    assert np.abs(model.transform(counts, graph=GRAPH.T.tocsr()) - Z).max() > 1e-3


@pytest.mark.parametrize("e_step", ["balanced", "unbalanced"])
def test_any_e_step_keeps_directions_apart(e_step):
    model = fitted(em=EM(e_step=e_step), block_weights=[0, 1])
    into, out = (model.transform(X, graph=A)[:, :12] for A in (GRAPH, GRAPH.T.tocsr()))
    assert_allclose(model.transform(X, graph=GRAPH), np.hstack([into, out]), atol=1e-6)


def test_an_edgeless_graph_serves_and_open_sets_give_zeros():
    rule = Neighbourhood(closed=False, direction="both")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FisherEmbedding(**PLAIN, multiset=rule, random_state=0).fit(X, graph=sp.csr_array((60, 60)))
    assert np.isfinite(model.transform(X, graph=GRAPH)).all()
    alone = GRAPH.tolil()
    alone[:, 7] = 0  # 7 points to nobody
    Z = FisherEmbedding(**PLAIN, multiset=rule, random_state=0, block_weights=[0, 1]).fit_transform(
        X, graph=alone.tocsr()
    )
    assert_array_equal(Z[7, 12:], 0)
    assert np.abs(Z[7, :12]).max() > 0


@pytest.mark.parametrize("rule", [BOTH, Neighbourhood(direction="out", weights="symmetric")], ids=str)
def test_a_direction_is_saved_cloned_and_searched(rule, tmp_path):
    model = FisherEmbedding(2, dim=8, multiset=rule, random_state=0).fit(X, graph=GRAPH)
    model.save(tmp_path / "m.safetensors")
    loaded = FisherEmbedding.load(tmp_path / "m.safetensors")
    assert loaded.multiset == rule
    assert_array_equal(loaded.transform(X, graph=GRAPH), model.transform(X, graph=GRAPH))
    assert clone(model).multiset == rule
    assert model.get_params()["multiset__direction"] == rule.direction
    with pytest.raises(InputError, match="multiset"):
        model.set_params(multiset__direction="in").transform(X, graph=GRAPH)


def test_structural_features_and_feature_names_of_directed_graphs():
    model = FisherEmbedding(2, dim=8, multiset=BOTH, structure="degree", random_state=0)
    Z = model.fit_transform(graph=as_graph(EDGES * 2 + [("d", "a")]))
    assert Z.shape == (4, len(model.get_feature_names_out()))


# --- tensors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("weights", [None, "uniform", "symmetric"])
@pytest.mark.parametrize("closed", [True, False])
def test_edges_on_a_device_give_the_sets_of_arrays(direction, weights, closed):
    torch = pytest.importorskip("torch")
    from fishergraph.ops.tensor_edges import edge_neighbourhoods

    coo = sp.coo_array(GRAPH)
    ends, values = torch.from_numpy(np.stack([coo.col, coo.row])), torch.from_numpy(coo.data)
    ends, values = torch.cat([ends, ends[:, :3]], dim=1), torch.cat([values, values[:3]])  # parallel edges
    graph = as_graph((ends.numpy(), values.numpy()), n_nodes=60)
    options = {"closed": closed, "weights": weights, "direction": direction}
    found = edge_neighbourhoods(ends, values, 60, **options, dtype=torch.float64)
    expected = Neighbourhood(**options)(graph, dtype=np.float64)
    for one, two in [(found, expected), (found.apart(), expected.apart())]:
        wanted = [sorted(members) for members in members_of(two)]
        assert [[u for u, _ in sorted(members)] for members in members_of(one)] == [[u for u, _ in m] for m in wanted]
        assert_allclose(
            [a for members in members_of(one) for _, a in sorted(members)], [a for m in wanted for _, a in m]
        )


def test_tensors_give_what_arrays_give():
    torch = pytest.importorskip("torch")
    from fishergraph.ops.tensor_edges import tensor_sets

    simple = sp.csr_array(GRAPH - sp.diags_array(GRAPH.diagonal()))  # closed sets do not say which node has a loop
    simple.eliminate_zeros()
    model = FisherEmbedding(2, dim=8, multiset=BOTH, random_state=0).fit(X, graph=simple)
    out, rows = model.transform(X, graph=simple), torch.from_numpy(X)
    coo = sp.coo_array(simple)
    edges = (torch.from_numpy(np.stack([coo.col, coo.row])), torch.from_numpy(coo.data))
    for graph in (simple, edges, tensor_sets(BOTH(simple))):
        assert_allclose(model.transform(rows, graph=graph).numpy(), out, atol=1e-8)
    with pytest.raises(InputError, match="hold edges"):
        model.transform(rows, graph=tensor_sets(Neighbourhood()(GRAPH)))
    with pytest.raises(InputError, match="hold edges"):
        FisherEmbedding(1, dim=4).fit(rows, graph=tensor_sets(BOTH(GRAPH)))
    with config_context(engine="torch"):
        assert np.isfinite(FisherEmbedding(2, dim=8, multiset=BOTH, random_state=0).fit_transform(X, graph=GRAPH)).all()


@pytest.mark.gpu
def test_a_card_gives_what_the_cpu_gives():
    torch = pytest.importorskip("torch")
    A, rows = directed_graph(300, 0.05), np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    A[7] = 1.0  # a hub, which is cut into parts
    for rule in (BOTH, Neighbourhood(direction="out"), Differences(direction="both")):
        model = FisherEmbedding(2, dim=16, multiset=rule, random_state=0).fit(rows, graph=A)
        out = model.transform(rows, graph=A)
        model.set_params(device="cuda")
        assert_allclose(model.transform(rows, graph=A), out, atol=2e-3)
        assert_allclose(model.transform(torch.from_numpy(rows).cuda(), graph=A).cpu().numpy(), out, atol=2e-3)


# --- what they are for ----------------------------------------------------------------------------------


def readers(n=200, seed=0):
    """Readers without words of their own among pages of two topics, as (words, edges, class of every reader).

    Readers of class 0 point to pages of topic 0, and pages of topic 1 point to them; in class 1 it is the other way
    round. Every reader has neighbours of both topics: which of them it points to tells the class.
    """
    rng = np.random.default_rng(seed)
    y, topic = rng.integers(2, size=n), np.arange(100) % 2
    words = np.concatenate([np.ones((n, 4)), 3 * np.eye(4)[topic]]) + 0.3 * rng.normal(size=(n + 100, 4))
    edges = [(v, n + u) for v in range(n) for u in rng.choice(np.flatnonzero(topic == y[v]), 3)]
    edges += [(n + u, v) for v in range(n) for u in rng.choice(np.flatnonzero(topic != y[v]), 3)]
    return words, np.array(edges).T, y


def accuracy(rule, **options):
    words, edges, y = readers()
    Z = FisherEmbedding(2, dim=32, multiset=rule, random_state=0, **options).fit_transform(words, graph=edges)[: len(y)]
    return LogisticRegression(C=10, max_iter=2000).fit(Z[::2], y[::2]).score(Z[1::2], y[1::2])


@pytest.mark.parametrize("walk", [None, 0.1])
def test_direction_alone_can_tell_the_class(walk):
    assert accuracy(BOTH, walk=walk) > 0.95
    assert accuracy(Neighbourhood(direction="in"), walk=walk) > 0.9
    assert accuracy(Neighbourhood(direction="out"), walk=walk) > 0.9
    assert accuracy(Neighbourhood(undirected=True), walk=walk) < 0.65


def test_whole_graphs_know_the_direction_of_their_edges():
    """Sources of one colour point to targets of another, or the other way round."""

    def star(n, inwards):
        graph = nx.DiGraph([(i, 0) if inwards else (0, i) for i in range(1, n)])
        nx.set_node_attributes(graph, {v: int(v == 0) for v in graph}, "label")
        return graph

    graphs = [star(n, inwards) for n in range(4, 14) for inwards in (True, False)]
    nodes = FisherEmbedding(1, dim=16, walk=None, multiset=BOTH)
    Z = FisherGraphEmbedding(nodes=nodes, random_state=0).fit_transform(graphs)
    gap = [np.linalg.norm(Z[i] - Z[i + 1]) for i in range(0, len(Z), 2)]
    assert min(gap) > 0.1
    plain = FisherEmbedding(1, dim=16, walk=None, multiset=Neighbourhood(undirected=True))
    Z = FisherGraphEmbedding(nodes=plain, random_state=0).fit_transform(graphs)
    assert max(np.linalg.norm(Z[i] - Z[i + 1]) for i in range(0, len(Z), 2)) < 1e-4
