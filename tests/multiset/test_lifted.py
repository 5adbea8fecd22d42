"""Multisets of subgraphs: the lifts, their row blocks, and what the estimator makes of them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import reference as ref
from contracts import members_of
from fishergraph import EM, FisherEmbedding, Hops, LiftedSets, PageRank, Pairs, Paths, Tuples, config_context
from fishergraph._errors import InputError
from fishergraph._parallel import cut_blocks, row_blocks
from fishergraph.graph import as_graph
from fishergraph.multiset import MULTISETS, Multisets, choose_multiset
from models import PUBLISHED

each_rule = pytest.mark.parametrize(
    "multiset", ["pairs", "paths", Paths(3, max_paths=6)], ids=["pairs", "paths", "drawn paths"]
)


def random_graph(n=30, *, density=0.15, weighted=True, seed=0):
    rng = np.random.default_rng(seed)
    matrix = np.triu(rng.random((n, n)) < density, 1) * (rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0)
    matrix[n - 1] = matrix[:, n - 1] = 0  # a node without neighbours
    return as_graph(sp.csr_array(matrix + matrix.T))


def slow_lift(points, subgraph, lift):
    """h(s) by loops."""
    if lift == "mean":
        return np.mean([points[u] for u in subgraph if u >= 0], axis=0)
    return np.concatenate([points[u] if u >= 0 else np.zeros(points.shape[1]) for u in subgraph])


def slow_phi(points, sets, layer, **options):
    """φ of lifted sets by the reference: every member is lifted first, and then is a point of its own."""
    lifted = np.array([slow_lift(points, s, sets.lift) for s in sets.subgraphs])
    anchors = layer.theta.anchors.astype(np.float64)
    means, mass = ref.em_means(lifted, members_of(sets.sets), anchors, layer.theta.variance, **options)
    return ref.fisher_embedding(means, anchors), mass


def three_sets(lift):
    subgraphs = np.array([[0, 1], [2, -1], [1, 1], [3, 0]], dtype=np.int32)
    sets = Multisets(np.array([0, 2, 2, 5]), np.array([0, 1, 3, 2, 0], dtype=np.int32), np.arange(1.0, 6.0), 4)
    return LiftedSets(sets, subgraphs, 4, lift=lift)


@pytest.mark.parametrize("lift", ["mean", "concatenation"])
def test_gather_lifts_the_members_of_a_block_one_by_one(lift):
    points, sets = np.random.default_rng(0).normal(size=(4, 3)), three_sets(lift)
    for part, chosen in [
        (sets, [0, 1, 3, 2, 0]),
        (sets.block(slice(1, 3)), [3, 2, 0]),
        (sets.take(np.array([2])), [3, 2, 0]),
    ]:
        lifted, plain = part.gather(points)
        assert_allclose(lifted, [slow_lift(points, sets.subgraphs[s], lift) for s in chosen])
        assert members_of(plain) == [
            [(i, a) for i, a in zip(range(start, stop), plain.weights[start:stop], strict=True)]
            for start, stop in zip(plain.indptr[:-1], plain.indptr[1:], strict=True)
        ]
        assert plain.n_points == len(chosen)
        assert lifted.shape[1] == 3 * part.slots
    assert_array_equal(sets.block(slice(1, 3)).gather(points)[1].weights, [3, 4, 5])


def test_pairs_are_a_node_with_each_neighbour():
    graph = random_graph()
    sets = Pairs()(graph)
    for v, members in enumerate(members_of(sets.sets)):
        found = {tuple(sets.subgraphs[s]): a for s, a in members}
        row = slice(graph.indptr[v], graph.indptr[v + 1])
        assert found == {(v, u): a for u, a in zip(graph.indices[row], graph.weights[row], strict=True)}
    assert sets.lift == "mean"
    assert sets.slots == 1


OPTIONS = {"n_layers": 1, "n_anchors": 3, "normalize": False, "kernel": "identity"}
LAYER_ALONE = {"structure": None, "block_weights": [0, 1]}


@pytest.mark.parametrize("n_iter", [1, 3])
@each_rule
def test_a_layer_is_the_references_on_lifted_points(multiset, n_iter):
    graph, X = random_graph(), np.random.default_rng(1).normal(size=(30, 4))
    options = {**OPTIONS, **LAYER_ALONE, "em": EM(n_iter=n_iter), "multiset": multiset}
    model = FisherEmbedding(**options, counts=True, random_state=0, n_jobs=1)
    out = model.fit_transform(X, graph=graph)
    sets = choose_multiset(multiset)(graph)
    phi, mass = slow_phi(X, sets, model.stack_.layers[0], n_iter=n_iter)
    width = 3 * 4 * sets.slots
    assert out.shape == (30, width + 3)
    assert_allclose(out[:, :width], phi, atol=1e-6)
    assert_allclose(out[:, width:], np.log1p(mass), atol=1e-6)
    assert_array_equal(out[29], np.zeros(width + 3))  # no neighbour, no pair: φ = 0


@each_rule
def test_blocks_and_threads_change_no_bit(multiset, monkeypatch):
    graph, X = random_graph(200, density=0.1), np.random.default_rng(1).normal(size=(200, 8))
    options = {"n_layers": 2, "dim": 16, "multiset": multiset, "random_state": 0}
    whole = FisherEmbedding(**options, n_jobs=1).fit_transform(X, graph=graph)
    model = FisherEmbedding(**options, n_jobs=3).fit(X, graph=graph)
    assert_array_equal(model.transform(X, graph=graph), whole)
    monkeypatch.setattr("fishergraph.layer._GATHERED_BYTES", 2048)  # a few members
    assert_allclose(FisherEmbedding(**options, n_jobs=1).fit_transform(X, graph=graph), whole, atol=1e-5)


def test_blocks_are_cut_where_members_are_many_and_a_row_stays_whole():
    indptr = np.array([0, 3, 4, 20, 20, 22, 25])
    blocks = cut_blocks(indptr, row_blocks(6, 4), 5)
    assert blocks == [slice(0, 2), slice(2, 3), slice(3, 6)]
    assert cut_blocks(indptr, row_blocks(6, 4), 1000) == row_blocks(6, 4)
    assert cut_blocks(indptr, row_blocks(6, 4), 0) == row_blocks(6, 1)


@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
@pytest.mark.parametrize("e_step", ["posterior", "balanced", "unbalanced"])
def test_lifted_sets_go_with_every_e_step(rule, e_step):
    if rule and e_step != "posterior":
        return
    graph, X = random_graph(), np.random.default_rng(1).normal(size=(30, 4))
    model = FisherEmbedding(2, dim=8, **rule, random_state=0, em=EM(e_step=e_step), multiset="pairs")
    assert np.isfinite(model.fit_transform(X, graph=graph)).all()


def test_a_graph_without_edges_has_empty_sets_and_the_model_serves_another():
    X = np.random.default_rng(0).normal(size=(30, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FisherEmbedding(1, dim=8, multiset="pairs", random_state=0).fit(X, graph=sp.csr_array((30, 30)))
    assert np.isfinite(model.transform(X, graph=random_graph())).all()


def test_spherical_anchors_want_plain_members():
    with pytest.raises(InputError, match="lifted"):
        FisherEmbedding(em=EM(init="spherical"), multiset="pairs").fit(np.eye(3), graph=sp.csr_array(np.ones((3, 3))))


def test_which_rules_lift():
    assert {name for name in MULTISETS if choose_multiset(name).lifts} == {"differences", "pairs", "paths", "tuples"}
    assert Paths(3).lifts
    assert not Hops().lifts
    assert choose_multiset("ppr") == PageRank()


# --- tensors --------------------------------------------------------------------------------------------


@each_rule
def test_tensors_give_what_arrays_give(multiset):
    torch = pytest.importorskip("torch")
    graph, X = random_graph(), np.random.default_rng(1).normal(size=(30, 4))
    model = FisherEmbedding(2, dim=8, multiset=multiset, random_state=0).fit(X, graph=graph)
    out = model.transform(X, graph=graph)
    assert_allclose(model.transform(torch.from_numpy(X), graph=graph).numpy(), out, atol=1e-8)
    with config_context(engine="torch"):
        fitted = FisherEmbedding(2, dim=8, random_state=0, multiset=multiset).fit_transform(X, graph=graph)
    assert np.isfinite(fitted).all()


def test_gathered_tensors_have_gradients():
    torch = pytest.importorskip("torch")
    from fishergraph.ops.tensor_edges import tensor_sets

    sets = tensor_sets(three_sets("concatenation")).to("cpu")
    points = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    lifted, plain = sets.gather(points)
    lifted.sum().backward()
    assert plain.n_sets == 3
    assert_array_equal(points.grad[:, 0], [3, 4, 1, 1])


def test_prepared_tensor_sets_are_no_subgraphs():
    torch = pytest.importorskip("torch")
    from fishergraph.ops.tensor_edges import tensor_sets

    sets = tensor_sets(Multisets(np.arange(4), np.arange(3, dtype=np.int32), None, 3))
    with pytest.raises(ValueError, match="TensorSets"):
        FisherEmbedding(multiset="pairs").fit(torch.eye(3), graph=sets)


@each_rule
def test_without_a_graph_there_is_no_subgraph(multiset):
    X = np.random.default_rng(1).normal(size=(30, 4))
    model = FisherEmbedding(2, dim=8, multiset=multiset, structure=None, random_state=0)
    alone = sp.csr_array((30, 30))
    assert_array_equal(model.fit_transform(X), model.fit_transform(X, graph=alone))


@pytest.mark.gpu
@each_rule
def test_a_card_gives_what_the_cpu_gives(multiset):
    torch = pytest.importorskip("torch")
    graph, X = random_graph(300, density=0.05), np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    model = FisherEmbedding(2, dim=16, multiset=multiset, random_state=0).fit(X, graph=graph)
    out = model.transform(X, graph=graph)
    model.set_params(device="cuda")
    assert_allclose(model.transform(X, graph=graph), out, atol=2e-3)
    assert_allclose(model.transform(torch.from_numpy(X).cuda(), graph=graph).cpu().numpy(), out, atol=2e-3)


def test_one_set_that_is_too_large_is_an_error_before_it_is_lifted(monkeypatch):
    graph, X = random_graph(), np.random.default_rng(1).normal(size=(30, 4))
    monkeypatch.setattr("fishergraph.costs._LARGEST_SET", 1000)
    with pytest.raises(MemoryError, match="24 features"):
        FisherEmbedding(2, dim=8, multiset="paths").fit(X, graph=graph)


# --- files and copies -----------------------------------------------------------------------------------

RULES_WITH_PARAMETERS = [Pairs(), Paths(length=np.int64(3), max_paths=5, seed=4), Hops(3, 0.5, None, 2)]


@pytest.mark.parametrize("multiset", RULES_WITH_PARAMETERS, ids=lambda rule: type(rule).__name__)
def test_a_rule_is_saved_with_the_model_and_cloned(multiset, tmp_path):
    graph, X = random_graph(), np.random.default_rng(1).normal(size=(30, 4))
    model = FisherEmbedding(1, dim=8, multiset=multiset, random_state=0).fit(X, graph=graph)
    model.save(tmp_path / "m.safetensors")
    loaded = FisherEmbedding.load(tmp_path / "m.safetensors")
    assert loaded.multiset == multiset
    assert_array_equal(loaded.transform(X, graph=graph), model.transform(X, graph=graph))
    assert clone(model).multiset == multiset
    assert model.get_params()["multiset"] is multiset


@pytest.mark.parametrize("family", ["diagonal-mixture", "gaussian", "von-mises-fisher", "multinomial"])
@pytest.mark.parametrize("multiset", ["hops", "pairs", Paths(3, max_paths=6), Tuples(2, 1)], ids=str)
def test_any_multiset_goes_with_any_family(multiset, family):
    X = np.random.default_rng(1).poisson(1.0, size=(30, 4)) + 1.0
    model = FisherEmbedding(2, n_anchors=2, dim=6, multiset=multiset, family=family, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "asked for")
        Z = model.fit_transform(X, graph=random_graph())
    assert np.isfinite(Z).all()
    assert len(Z) == 30
    assert np.abs(Z - Z[:1]).max() > 1e-3


@pytest.mark.parametrize(("family", "alike"), [("diagonal-mixture", True), ("multinomial", False)])
def test_counts_enter_tuples_as_they_are(family, alike):
    """Twice the words are the same direction, and another count."""
    X = np.random.default_rng(1).poisson(1.0, size=(30, 4)) + 1.0
    graph, once_more = random_graph(), np.where(np.arange(30) % 2, 1.0, 3.0)[:, None]
    model = FisherEmbedding(1, n_anchors=2, kernel="identity", multiset=Tuples(2, 1), family=family, random_state=0)
    Z = [model.fit_transform(rows, graph=graph) for rows in (X, once_more * X)]
    assert np.allclose(*Z, atol=1e-6) == alike
