"""Some rows alone: the bits of `transform` without `nodes`, from the rows that these read."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from directed_graph import directed_graph
from fishergraph import (
    EM,
    DiagonalMixture,
    FisherClassifier,
    FisherEmbedding,
    GaussianMixture,
    Neighbourhood,
    PageRank,
    Structure,
    Walk,
    as_graph,
    config_context,
)
from fishergraph._errors import InputError, UnknownNodeError
from fishergraph.part import blocks, rows, sets
from fishergraph.walk import walked

N = 1500  # several row blocks, of two heights


@pytest.fixture(scope="module")
def graph():
    """Directed, weighted, with loops, empty rows, and a node that most others point to."""
    A = directed_graph(N, density=0.002, seed=5).tolil()
    A[7, ::2] = 0.5
    return sp.csr_array(A)


def features(dtype="float32", *, sparse=False, n=N):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 12)).astype(dtype)
    return sp.csr_array(np.where(rng.random(X.shape) < 0.3, np.abs(X), 0).astype(dtype)) if sparse else X


CHOSEN = [np.array([7]), np.array([1499, 0, 7, 3, 3]), np.random.default_rng(1).permutation(N)[:60], np.arange(N)]


def check(model, X, graph, chosen=CHOSEN, host=np.asarray):
    Z = host(model.transform(X, graph=graph))
    for nodes in chosen:
        z = host(model.transform(X, graph=graph, nodes=nodes))
        assert z.dtype == Z.dtype
        assert z.tobytes() == Z[nodes].tobytes()
    return Z


SMALL = {"dim": 24, "n_anchors": 3, "random_state": 0}
MODELS = {
    "default": {},
    "one layer": {"n_layers": 1},
    "no layer": {"n_layers": 0},
    "three layers": {"n_layers": 3, "walk": None, "structure": None},
    "features alone": {"block_weights": {"psi1": 0, "psi2": 0, "factors": 0, "local": 0}},
    "last layer left out": {"block_weights": {"psi2": 0, "walk": 0}},
    "structures": {"structure": Structure(("spectral", "projection", "degree", "local", "factors"))},
    "structures without walk": {"structure": Structure(("factors", "degree")), "walk": None},
    "teleport": {"walk": Walk(0.5, n_axes=5)},
    "identity": {"kernel": "identity", "n_anchors": 2},
    "counts": {"counts": True, "normalize": False},
    "several iterations": {"em": EM(n_iter=3, prior=0.5)},
    "balanced": {"em": EM(e_step="balanced")},
    "exact": {"family": GaussianMixture(fisher="exact"), "walk": None, "structure": None},
    "diagonal": {"family": DiagonalMixture(tangent="score")},
    "diagonal, iterated": {"family": DiagonalMixture(), "em": EM(n_iter=2)},
    "directions": {"family": "von-mises-fisher"},
    "open": {"multiset": Neighbourhood(closed=False, direction="out", weights="symmetric")},
    "both directions": {"multiset": Neighbourhood(direction="both")},
    "both directions, iterated": {"multiset": Neighbourhood(direction="both"), "em": EM(n_iter=2)},
    "undirected": {"multiset": Neighbourhood(undirected=True)},
    "ppr": {"multiset": PageRank(members=6)},
    "heat": {"multiset": "heat"},
    "s2gc": {"multiset": "s2gc"},
    "hops": {"multiset": "hops"},
    "differences": {"multiset": "differences"},
    "pairs": {"multiset": "pairs"},
    "paths": {"multiset": "paths"},
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_have_the_bits_of_the_whole(graph, name):
    model = FisherEmbedding(**(SMALL | MODELS[name])).fit(features(), graph=graph)
    check(model, features(), graph)


def test_tuples(graph):
    small = graph[:60, :60]
    X = features(n=60)
    model = FisherEmbedding(multiset="tuples", **SMALL).fit(X, graph=small)
    check(model, X, small, [np.array([5, 0, 59]), np.arange(60)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sparse", [False, True])
def test_kinds_of_features(graph, dtype, sparse):
    X = features(dtype, sparse=sparse)
    Z = check(FisherEmbedding(**SMALL).fit(X, graph=graph), X, graph)
    assert Z.dtype == dtype


def test_counts_of_the_multinomial_family(graph):
    X = sp.csr_array(np.random.default_rng(0).poisson(0.5, size=(N, 20)).astype(np.float32))
    check(FisherEmbedding(family="multinomial", **SMALL).fit(X, graph=graph), X, graph)


def test_without_features(graph):
    check(FisherEmbedding(**SMALL).fit(graph=graph), None, graph)


def test_without_a_graph():
    check(FisherEmbedding(**SMALL).fit(features()), features(), None)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_any_number_of_threads(graph, n_jobs):
    model = FisherEmbedding(n_jobs=n_jobs, **SMALL).fit(features(), graph=graph)
    check(model, features(), graph, CHOSEN[2:3])


@pytest.mark.parametrize("engine", ["numba", "scipy"])
def test_every_engine_of_arrays(graph, engine):
    with config_context(engine=engine):
        check(FisherEmbedding(**SMALL).fit(features(), graph=graph), features(), graph)


@pytest.mark.parametrize(
    "name", ["default", "both directions", "paths", "pairs", "diagonal", "counts", "structures", "several iterations"]
)
def test_tensors(graph, name):
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(features())
    model = FisherEmbedding(**(SMALL | MODELS[name])).fit(X, graph=graph)
    check(model, X, graph, host=lambda Z: Z.numpy())


@pytest.mark.parametrize("name", ["default", "both directions"])
def test_arrays_on_the_engine_of_tensors(graph, name):
    pytest.importorskip("torch")
    with config_context(engine="torch"):
        model = FisherEmbedding(**(SMALL | MODELS[name])).fit(features(sparse=True), graph=graph)
        check(model, features(sparse=True), graph)


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 1400))
    graph = directed_graph(n, density=min(1.0, float(rng.choice([0.5, 2, 8])) / n), seed=seed)
    X = rng.normal(size=(n, int(rng.integers(1, 30))))
    model = FisherEmbedding(int(rng.integers(0, 4)), int(rng.integers(1, 6)), 16, random_state=seed)
    model.set_params(multiset=rng.choice(["neighbourhood", "hops", "ppr"])).fit(X, graph=graph)
    check(model, X, graph, [rng.integers(n, size=k) for k in (1, 2, 40)])


@pytest.mark.parametrize("direction", [None, "both"])
def test_large_sets_are_cut_as_they_are_in_the_whole(direction):
    """A GPU sums sets in parts whose length depends on the mean size of all sets; those of a few rows are larger."""
    pytest.importorskip("torch")
    from fishergraph.nn import tensor_sets

    graph = sp.lil_array((130, 130), dtype=np.float32)
    graph[:2, 5:] = 1
    whole = tensor_sets(Neighbourhood(direction=direction)(sp.csr_array(graph)))
    two = np.array([0, 1])
    some = sets.part_sets(whole, two, sets.members_of(whole, two))
    assert whole.take(some.indptr.new_tensor([0, 1])).hub != whole.hub
    assert (some.hub, some.apart().hub) == (whole.hub, whole.apart().hub)


# --- what is computed ------------------------------------------------------------------------------------


def chain(n):
    return np.array([[*range(n - 1)], [*range(1, n)]])


def test_only_the_rows_within_reach_are_computed(monkeypatch):
    """On a path of many nodes, layer t of the last one reads t more; the walk no more than its steps."""
    n = 20_000
    X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    walk = Walk(0.5)
    model = FisherEmbedding(2, 2, 8, walk=walk, structure=None, random_state=0).fit(X, graph=chain(n))
    seen = {}
    compute = rows.PartPass._compute

    def spy(self, title, groups, *rest):
        seen[title] = sum(int((group >= 0).sum()) for group in groups)
        return compute(self, title, groups, *rest)

    monkeypatch.setattr(rows.PartPass, "_compute", spy)
    near = []
    monkeypatch.setattr(rows, "walked", lambda start, *rest: near.append(len(start)) or walked(start, *rest))

    z = model.transform(X, graph=chain(n), nodes=[n - 1])
    assert seen == {"input map": 3, "layer 1/2": 2, "layer 2/2": 1, "walk": 1, "smooth": 1}
    assert set(near) == {walk.n_steps + 1}
    monkeypatch.undo()
    assert z.tobytes() == model.transform(X, graph=chain(n))[-1:].tobytes()


def test_gathered_rows_keep_their_places():
    rng = np.random.default_rng(0)
    borders = [slice(0, 10), slice(10, 21), slice(21, 31), slice(31, 42)]
    for _ in range(50):
        chosen = np.flatnonzero(rng.random(42) < rng.random())
        groups = blocks.gathered(borders, chosen) if len(chosen) else []
        found = []
        for group in groups:
            assert len(group) in (10, 11)
            for place, position in enumerate(group):
                if position >= 0:
                    block = next(b for b in borders if b.start <= chosen[position] < b.stop)
                    assert (chosen[position] - block.start, block.stop - block.start) == (place, len(group))
                    found.append(position)
        assert sorted(found) == list(range(len(chosen)))
        assert len(groups) <= len(borders)


# --- which nodes -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named():
    """A model of a graph with ids, its edges, and X with these ids as its index."""
    ids = [f"node {k}" for k in range(30)]
    rng = np.random.default_rng(0)
    edges = pd.DataFrame({"source": rng.choice(ids, 80), "target": rng.choice(ids, 80)})
    X = pd.DataFrame(rng.normal(size=(30, 3)), index=ids, columns=list("abc"))
    return FisherEmbedding(dim=4, n_anchors=2, random_state=0).fit(X, graph=edges), X, edges


def test_ids_masks_and_row_numbers(named):
    model, X, edges = named
    Z = model.transform(X, graph=edges)
    mask = np.zeros(30, bool)
    mask[[4, 9]] = True
    for nodes in (["node 4", "node 9"], np.array(["node 4", "node 9"]), X.index[[4, 9]], mask, mask.tolist()):
        assert (model.transform(X, graph=edges, nodes=nodes) == Z[[4, 9]]).all()
    assert (model.transform(X, graph=edges, nodes=pd.Series(mask, index=X.index)) == Z[[4, 9]]).all()
    assert (model.transform(X, graph=edges, nodes="node 4") == Z[[4]]).all()


def test_integers_are_ids_if_there_are_ids():
    ids = np.arange(100, 130)
    graph = as_graph(pd.DataFrame({"source": ids[:-1], "target": ids[1:]}), node_ids=ids)
    X = features(n=30)
    model = FisherEmbedding(**SMALL).fit(X, graph=graph)
    assert (model.transform(X, graph=graph, nodes=[104, 129]) == model.transform(X, graph=graph)[[4, 29]]).all()
    with pytest.raises(UnknownNodeError, match="mask"):
        model.transform(X, graph=graph, nodes=[4])


def test_ids_stay_with_the_rows(named):
    _, X, edges = named
    frames = FisherEmbedding(dim=4, n_anchors=2, random_state=0).set_output(transform="pandas").fit(X, graph=edges)
    part = frames.transform(X, graph=edges, nodes=["node 9", "node 4"])
    assert part.index.tolist() == ["node 9", "node 4"]
    assert part.columns.tolist() == frames.get_feature_names_out().tolist()
    pd.testing.assert_frame_equal(part, frames.transform(X, graph=edges).loc[["node 9", "node 4"]])
    rows = frames.fit(X.to_numpy(), graph=np.array([[0], [1]])).transform(
        X.to_numpy(), graph=np.array([[0], [1]]), nodes=[7, 2]
    )
    assert rows.index.tolist() == [7, 2]


def test_unknown_ids_have_near_matches(named):
    model, X, edges = named
    with pytest.raises(UnknownNodeError, match=r"Node 4.*similar ids: 'node 4'") as caught:
        model.transform(X, graph=edges, nodes=["node 1", "Node 4"])
    assert (caught.value.parameter, caught.value.value) == ("nodes", "Node 4")


@pytest.mark.parametrize("nodes", [[], [30], [-1], [0.5], np.zeros(30, bool), np.ones(29, bool), [[1, 2]], 3.5])
def test_nodes_that_are_not_there(nodes):
    X = features(n=30)
    model = FisherEmbedding(**SMALL).fit(X, graph=chain(30))
    with pytest.raises(InputError, match="nodes"):
        model.transform(X, graph=chain(30), nodes=nodes)


def test_a_store_says_what_to_do(tmp_path):
    from fishergraph.scale import write_store

    X = features(n=30)
    store = write_store(tmp_path / "store", as_graph(chain(30)), X)
    model = FisherEmbedding(walk=None, structure=None, **SMALL).fit(X, graph=chain(30))
    with pytest.raises(InputError, match="store"):
        model.transform(store, nodes=[1])


# --- the classifier --------------------------------------------------------------------------------------


def labelled(graph):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=graph.shape[0])
    X = rng.normal(size=(len(y), 8)).astype(np.float32)
    X[np.arange(len(y)), y] += 2
    return X, y


@pytest.mark.parametrize("smooth", [False, True])
def test_the_probe_of_some_nodes(graph, smooth):
    X, y = labelled(graph)
    fitted = y.copy()
    fitted[::2] = -1
    model = FisherClassifier(2, 2, 16, mode="probe", random_state=0).fit(X, fitted, graph=graph)
    other = graph if smooth else sp.csr_array(graph.T)  # the graph of the fit is smoothed
    rows = np.array([1400, 3, 7, 8])
    P = model.predict_proba(X, graph=other)
    np.testing.assert_allclose(model.predict_proba(X, graph=other, nodes=rows), P[rows], atol=1e-12)
    assert (model.predict(X, graph=other, nodes=rows) == model.predict(X, graph=other)[rows]).all()


@pytest.mark.parametrize("multiset", ["neighbourhood", "paths", Neighbourhood(direction="both")])
def test_the_network_of_some_nodes(graph, multiset):
    pytest.importorskip("torch_geometric")
    from fishergraph.nn import Training

    X, y = labelled(graph)
    model = FisherClassifier(2, 2, 8, multiset=multiset, training=Training(max_epochs=2), random_state=0).fit(
        X, y, graph=graph
    )
    rows = np.array([1400, 3, 7, 8])
    P = model.predict_proba(X, graph=graph)
    np.testing.assert_allclose(model.predict_proba(X, graph=graph, nodes=rows), P[rows], atol=2e-6)


@pytest.mark.parametrize("mode", ["probe", "network"])
def test_the_score_of_some_nodes(graph, mode):
    if mode == "network":
        pytest.importorskip("torch_geometric")
    X, y = labelled(graph)
    model = FisherClassifier(1, 2, 8, mode=mode, random_state=0)
    model.fit(X, np.where(np.arange(N) % 3, y, -1), graph=graph)
    rows = np.arange(0, N, 3)
    predicted = model.predict(X, graph=graph)
    assert model.score(X, y, graph=graph, nodes=rows) == pytest.approx((predicted == y)[rows].mean())
    weights = np.random.default_rng(0).random(N)
    expected = np.average((predicted == y)[rows], weights=weights[rows])
    assert model.score(X, y, sample_weight=weights, graph=graph, nodes=rows) == pytest.approx(expected)
    y[rows[0]] = -1
    assert model.score(X, y, graph=graph, nodes=rows) == pytest.approx((predicted == y)[rows[1:]].mean())
