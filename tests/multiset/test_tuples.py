"""k-tuples of nodes: which there are, how they are related, their neighbours, and what the estimator makes of them."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import reference_multisets as slow
from contracts import members_of
from fishergraph import FisherEmbedding, Tuples, config_context, node_tuples
from fishergraph.graph import as_graph
from models import node_model

KINDS = [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]


def adjacency(n, *, density=0.4, weighted=False, symmetric=True, seed=0):
    rng = np.random.default_rng(seed)
    matrix = (rng.random((n, n)) < density) * (rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0)
    return np.triu(matrix) + np.triu(matrix, 1).T if symmetric else matrix


@pytest.mark.parametrize(("k", "s"), KINDS)
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.floats(0, 0.8), st.booleans(), st.integers(0, 2**32 - 1))
def test_tuples_are_those_of_the_definition(k, s, n, density, symmetric, seed):
    matrix = adjacency(n, density=density, symmetric=symmetric, seed=seed)
    found = node_tuples(as_graph(sp.csr_array(matrix)), k, s)
    assert found.members.tolist() == [list(t) for t in slow.node_tuples(matrix, k, s)]


@pytest.mark.parametrize(("k", "s"), KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_neighbours_replace_one_place_and_stand_in_its_slot(k, s, weighted):
    matrix = adjacency(6, weighted=weighted, symmetric=False, seed=k)
    found = node_tuples(as_graph(sp.csr_array(matrix)), k, s)
    tuples = [tuple(t) for t in found.members.tolist()]
    for t, members in enumerate(members_of(found.sets.sets)):
        expected = {(t, *[-1] * k): 1.0}
        for place in range(k):
            for u in np.flatnonzero(matrix[tuples[t][place]]):
                other = (*tuples[t][:place], int(u), *tuples[t][place + 1 :])
                if other in tuples:
                    slots = [-1] * k
                    slots[place] = tuples.index(other)
                    expected[(t, *slots)] = matrix[tuples[t][place], u]
        assert {tuple(found.sets.subgraphs[e].tolist()): a for e, a in members} == pytest.approx(expected, rel=1e-6)
    assert found.sets.slots == k + 1
    assert weighted or found.sets.weights is None


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_two_tuples_have_one_type_where_the_same_nodes_are_the_same_and_joined_alike(k, symmetric, seed):
    matrix = adjacency(5, symmetric=symmetric, seed=seed) > 0
    found = node_tuples(as_graph(sp.csr_array(matrix.astype(float))), k)

    def kind(t):
        return [(u == w, bool(matrix[u, w]), bool(matrix[w, u])) for u in t for w in t]

    kinds = [kind(t) for t in found.members]
    same = np.array([[one == two for two in kinds] for one in kinds])
    assert_array_equal((found.types[:, None] == found.types[None]).all(axis=-1), same)
    assert_array_equal(found.types[:, : 5 * k * (k - 1) // 2].sum(axis=1), k * (k - 1) // 2)


def test_tuples_stay_within_their_graph_and_are_pooled_to_nodes_and_graphs():
    both = nx.disjoint_union(nx.path_graph(3), nx.cycle_graph(4))
    found = node_tuples(as_graph(both), 2, graph_ptr=[0, 3, 3, 7])
    assert len(found.members) == 9 + 16
    assert (found.members.max(axis=1) < 3).sum() == 9
    for v, members in enumerate(members_of(found.nodes)):
        assert {int(found.members[t, 0]) for t, _ in members} == {v}
    assert [len(members) for members in members_of(found.graphs)] == [9, 0, 16]
    one = node_tuples(as_graph(nx.cycle_graph(4)), 2)
    assert_array_equal(found.members[9:] - 3, one.members)
    assert_array_equal(found.types[9:], one.types)


def test_features_are_those_of_the_nodes_side_by_side_and_the_type():
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    found = node_tuples(as_graph(nx.path_graph(4)), 2, 1)
    points = found.features(X)
    t = found.members.tolist().index([1, 2])
    assert_array_equal(points[t], [*X[1], *X[2], 0, 0, 1, 0, 0, 0, 0])
    assert points.dtype == np.float32
    assert_allclose(np.linalg.norm(found.features(X, normalize=True)[:, :3], axis=1), 1, rtol=1e-6)
    sparse = found.features(sp.csr_array(X))
    assert sp.issparse(sparse)
    assert_array_equal(sparse.toarray(), points)


# --- the estimator --------------------------------------------------------------------------------------

X = np.random.default_rng(1).normal(size=(12, 3))
GRAPH = as_graph(nx.gnp_random_graph(12, 0.3, seed=2))


def small(**options):
    return node_model(2, n_anchors=3, dim=8, random_state=0, **options)


@pytest.mark.parametrize("multiset", ["tuples", Tuples(2, 2), Tuples(3, 1)], ids=str)
def test_a_node_is_the_mean_of_its_tuples_and_files_keep_the_rule(multiset, tmp_path):
    model = small(multiset=multiset)
    Z = model.fit_transform(X, graph=GRAPH)
    assert Z.shape == (12, len(model.get_feature_names_out()))
    assert model.n_features_in_ == 3
    assert_array_equal(model.transform(X, graph=GRAPH), Z)
    assert_array_equal(small(multiset=multiset, n_jobs=3).fit_transform(X, graph=GRAPH), Z)
    model.save(tmp_path / "m.safetensors")
    loaded = FisherEmbedding.load(tmp_path / "m.safetensors")
    assert loaded.multiset == multiset
    assert_array_equal(loaded.transform(X, graph=GRAPH), Z)
    assert clone(model).multiset == multiset
    assert_allclose(model.transform(sp.csr_array(X), graph=GRAPH), Z, atol=1e-6)
    order = np.random.default_rng(0).permutation(12)
    assert_allclose(model.transform(X[order], graph=GRAPH[order]), Z[order], atol=1e-6)


def test_the_mean_is_over_the_tuples_that_begin_with_the_node():
    """With no layer and the identity, a point is itself: features of the node, means of the others, of the types."""
    model = FisherEmbedding(0, multiset=Tuples(2, 1), kernel="identity", normalize=False)
    Z = model.fit_transform(X, graph=GRAPH)
    tuples = node_tuples(GRAPH, 2, 1)
    points = tuples.features(X)
    expected = [points[tuples.members[:, 0] == v].mean(axis=0) for v in range(12)]
    assert_allclose(Z, expected, atol=1e-7)
    assert_allclose(Z[:, :3], X, atol=1e-7)


def test_without_a_graph_a_node_is_a_tuple_of_itself():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asked for")
        model = small(multiset=Tuples(2, 1))
        assert_array_equal(model.fit_transform(X), model.fit_transform(X, graph=sp.csr_array((12, 12))))


@pytest.mark.parametrize("engine", ["torch"], indirect=True)
def test_on_torch_the_same_points_give_the_same_rows(engine):
    with config_context(engine=None):
        model = small(multiset=Tuples(2, 1)).fit(X, graph=GRAPH)
        Z = model.transform(X, graph=GRAPH)
    assert_allclose(model.transform(X, graph=GRAPH), Z, atol=1e-8)


# --- bad input ------------------------------------------------------------------------------------------


def test_too_many_tuples_are_an_error_before_they_fill_the_memory():
    large = as_graph(nx.path_graph(100_000))
    with pytest.raises(ValueError, match="1000000000000000"):
        Tuples(3, None)(large)
    with pytest.raises(ValueError, match="max_tuples=200000"):
        FisherEmbedding(multiset="tuples").fit(np.ones((100_000, 2)), graph=large)
    assert len(node_tuples(as_graph(nx.path_graph(10)), 2, max_tuples=100).members) == 100
    with pytest.raises(ValueError, match="max_tuples=99, got 100"):
        node_tuples(as_graph(nx.path_graph(10)), 2, max_tuples=99)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, "k must"),
        ({"k": 4}, "k=4"),
        ({"k": 2, "s": 3}, "got k=2 and s=3"),
        ({"s": 0}, r"s \(or None\)"),
        ({"max_tuples": 0}, "max_tuples"),
    ],
)
def test_parameters_are_checked_before_the_work(wrong, message):
    with pytest.raises(ValueError, match=message):
        FisherEmbedding(multiset=Tuples(**wrong)).fit(X, graph=GRAPH)


def test_tensors_are_sent_back():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="tensor"):
        small(multiset="tuples").fit(torch.from_numpy(X), graph=GRAPH)


def test_tuples_that_nobody_could_list_are_refused():
    with pytest.raises(ValueError, match="max_tuples"):
        node_tuples(as_graph(nx.path_graph(3)), max_tuples=10**30)
    with pytest.raises(ValueError, match="triples"):
        node_tuples(as_graph(nx.path_graph(5000)), 3, 2, max_tuples=10**12)
    with pytest.raises(MemoryError, match="970299000000 tuples"):
        node_tuples(as_graph(nx.path_graph(9900)), 3, max_tuples=10**12)


def test_borders_that_are_not_those_of_the_graph_are_refused():
    with pytest.raises(ValueError, match="graph_ptr"):
        node_tuples(as_graph(nx.path_graph(3)), graph_ptr=[0, 10**6])
    with pytest.raises(ValueError, match="2 rows"):
        node_tuples(as_graph(nx.path_graph(3))).features(np.eye(2))
