"""FisherEmbedding on graphs: one pass, the same bits, new nodes, and what every parameter means."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import reference as ref
from directed_graph import directed_graph
from fishergraph import FisherEmbedding, Structure, as_graph, config_context
from fishergraph._errors import InputError
from fishergraph.multiset import HeatKernel, PageRank, StepAverage, neighbourhoods
from models import PUBLISHED, node_model

N = 60


def small(**changes) -> FisherEmbedding:
    """A small model of layers alone; `test_walks.py` has averaged features, `structural/test_structure.py` the rest."""
    given = {"n_layers": 2, "n_anchors": 3, "dim": 6, "walk": None, "random_state": 0, **changes}
    return node_model(**given)


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, 5))


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return directed_graph(N)


def widths(model: FisherEmbedding) -> list[int]:
    """The number of columns of each block, in their order."""
    names = [name.partition("_")[0] for name in model.get_feature_names_out()]
    return [names.count(block) for block in dict.fromkeys(names)]


def blocks(model: FisherEmbedding, Z: np.ndarray) -> list[np.ndarray]:
    """ψ_0 … ψ_T, cut out of the concatenation."""
    return np.split(Z, np.cumsum(widths(model))[:-1], axis=1)


def listed(graph, *, closed: bool = True, weights: str | None = None) -> list:
    """The multisets as lists of (point, weight), for the reference."""
    sets = neighbourhoods(as_graph(graph), closed=closed, weights=weights)
    values = np.ones(sets.n_entries) if sets.weights is None else sets.weights
    rows = [slice(sets.indptr[v], sets.indptr[v + 1]) for v in range(sets.n_sets)]
    return [list(zip(sets.indices[r].tolist(), values[r].tolist(), strict=True)) for r in rows]


def unit_rows(Z: np.ndarray) -> np.ndarray:
    return np.array([ref.unit(z) for z in Z])


# --- one pass, the same bits ----------------------------------------------------------------------------

VARIANTS = [
    {},
    {"walk": 0.1, "structure": "auto"},
    {"walk": 0.1, "structure": "projection", "multiset": "ppr"},
    {"structure": Structure(("spectral", "degree")), "kernel": "identity"},
    PUBLISHED,
    {"kernel": "identity"},
    {"normalize": False, "family__variance": 0.5},
    {"em__n_iter": 3, "counts": True, "em__prior": 0.5},
    {"em__init": "spherical", "block_weights": [0, 1, 2]},
    {"em__init": "em", "multiset__weights": "symmetric"},
    {"em__init": "random", "multiset": "open-neighbourhood"},
    {"multiset": "ppr", "multiset__weights": "symmetric"},
    {"multiset": HeatKernel(time=2.0, members=4)},
    {"multiset": StepAverage(steps=3, members=None)},
    {"multiset__undirected": True},
    {"n_layers": 0},
    {"em__n_iter": 0},
]


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_fit_transform_is_fit_then_transform(X, A, variant):
    Z = small(**variant).fit_transform(X, graph=A)
    model = small(**variant).fit(X, graph=A)
    np.testing.assert_array_equal(model.transform(X, graph=A), Z)
    assert np.isfinite(Z).all()
    assert Z.shape == (N, len(model.get_feature_names_out()))
    assert Z.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
def test_threads_and_repetition_change_no_bit(dtype, rule):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 16)).astype(dtype)  # several row blocks
    A = sp.random_array((3000, 3000), density=0.002, rng=rng, format="csr")
    results = [small(**rule, dim=16, n_jobs=n_jobs).fit_transform(X, graph=A) for n_jobs in (1, 1, 2, 4, None)]
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_the_seed_decides(X, A):
    first, second = (small(random_state=seed).fit_transform(X, graph=A) for seed in (0, 1))
    assert np.abs(first - second).max() > 1e-3
    state = small(random_state=np.random.RandomState(0)).fit_transform(X, graph=A)
    np.testing.assert_array_equal(state, first)


def test_the_global_random_state_is_left_alone(X, A):
    before = np.random.get_state()  # noqa: NPY002
    small().fit_transform(X, graph=A)
    small(structure="auto").fit_transform(None, graph=A)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]


# --- the same graph, a larger one, another one ----------------------------------------------------------


@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_rows_that_new_nodes_cannot_reach_stay(X, A, rule, n_layers):
    model = small(**rule, n_layers=n_layers).fit(X, graph=A)
    rng = np.random.default_rng(5)
    larger = sp.lil_array((N + 10, N + 10))
    larger[:N, :N] = A
    larger[[3, 7], [N, N + 1]] = 1.0  # new nodes enter the multisets of 3 and 7
    larger[N:, rng.integers(N, size=10)] = 0.5
    more = np.vstack([X, rng.normal(size=(10, X.shape[1]))])
    Z, Z_more = model.transform(X, graph=A), model.transform(more, graph=sp.csr_array(larger))
    assert Z_more.shape == (N + 10, Z.shape[1])
    assert np.isfinite(Z_more).all()
    touched = np.zeros(N + 10)
    touched[[3, 7]] = 1
    for _ in range(n_layers - 1):
        touched = touched + sp.csr_array(larger) @ touched
    kept = touched[:N] == 0
    assert 10 < kept.sum() < N
    np.testing.assert_allclose(Z_more[:N][kept], Z[kept], atol=1e-12)
    assert np.abs(Z_more[[3, 7]] - Z[[3, 7]]).max() > 1e-3


@pytest.mark.parametrize("multiset", ["neighbourhood", PageRank(members=None, tolerance=1e-14)], ids=str)
def test_another_graph_needs_no_refit(X, A, multiset):
    model = small(multiset=multiset).fit(X, graph=A)
    rng = np.random.default_rng(6)
    other, graph = rng.normal(size=(9, 5)), sp.random_array((9, 9), density=0.3, rng=rng, format="csr")
    Z = model.transform(other, graph=graph)
    assert Z.shape == (9, 18)
    order = rng.permutation(9)
    np.testing.assert_allclose(model.transform(other[order], graph=graph[order][:, order]), Z[order], atol=1e-12)
    alone = model.transform(other, graph=sp.csr_array((9, 9)))  # without edges every row is its own multiset
    assert alone.shape == (9, 18)


def test_rows_do_not_depend_on_their_companions(X, A):
    model = small().fit(X, graph=A)
    alone = np.vstack([model.transform(X[i : i + 1], graph=sp.csr_array((1, 1))) for i in range(5)])
    np.testing.assert_allclose(alone, model.transform(X, graph=sp.csr_array((N, N)))[:5], atol=1e-12)


# --- what comes out -------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("weights", [None, "uniform", "symmetric"])
@pytest.mark.parametrize("undirected", [True, False])
def test_a_layer_is_the_reference_formula(X, A, closed, weights, undirected):
    model = small(
        n_layers=1,
        kernel="identity",
        family__variance=0.3,
        em__prior=0.2,
        multiset="neighbourhood" if closed else "open-neighbourhood",
        multiset__weights=weights,
        multiset__undirected=undirected,
    )
    points, phi = blocks(model, model.fit_transform(X, graph=A))
    np.testing.assert_allclose(points, unit_rows(X), atol=1e-15)
    layer = model.stack_.layers[0]
    graph = as_graph(A, undirected=undirected)
    sets = listed(graph, closed=closed, weights=weights)
    means = ref.em_means(points, sets, layer.theta.anchors, variance=0.3, prior=0.2)[0]
    atol = 1e-6 if weights == "symmetric" else 1e-10  # those weights are float32
    np.testing.assert_allclose(phi, ref.fisher_embedding(means, layer.theta.anchors), atol=atol)


@pytest.mark.parametrize("n_iter", [1, 2, 4])
def test_em_iterations_are_the_reference_loop(X, A, n_iter):
    model = small(n_layers=1, kernel="identity", em__n_iter=n_iter, family__variance=0.2)
    points, phi = blocks(model, model.fit_transform(X, graph=A))
    layer = model.stack_.layers[0]
    means = ref.em_means(points, listed(A), layer.theta.anchors, variance=0.2, n_iter=n_iter)[0]
    np.testing.assert_allclose(phi, ref.fisher_embedding(means, layer.theta.anchors), atol=1e-9)


def test_the_published_code_gives_flat_attention(X, A):
    model = small(**PUBLISHED)
    _, points, phi = blocks(model, model.fit_transform(X, graph=A))
    anchors = model.stack_.layers[-1].theta.anchors
    means = ref.reference_attention_means(points, listed(A), anchors)
    np.testing.assert_allclose(phi, (means - anchors).reshape(N, -1), atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(anchors, axis=1), 1, atol=1e-12)
    operator = neighbourhoods(as_graph(A))
    dense = sp.csr_array((operator.weights, operator.indices, operator.indptr), shape=(N, N)).toarray()
    pooled = dense @ points / dense.sum(axis=1, keepdims=True)  # mean pooling: no attention at all
    assert np.abs(means - pooled[:, None, :]).max() < 0.1 * np.abs(means).max()
    sharp = small(kernel="identity", n_layers=1)
    first, phi = blocks(sharp, sharp.fit_transform(X, graph=A))
    sharp_means = phi.reshape(N, 3, -1) * np.sqrt(3) + sharp.stack_.layers[0].theta.anchors
    sharp_pooled = dense @ first / dense.sum(axis=1, keepdims=True)
    assert np.abs(sharp_means - sharp_pooled[:, None, :]).max() > 0.3


def test_block_weights_are_those_of_the_multilayer_kernel(X, A):
    plain = small()
    parts = blocks(plain, plain.fit_transform(X, graph=A))
    weighted = small(block_weights=[0.25, 0, 3]).fit_transform(X, graph=A)
    np.testing.assert_allclose(weighted, np.hstack([0.5 * parts[0], np.sqrt(3) * parts[2]]), rtol=1e-14)
    kernel = 0.25 * parts[0] @ parts[0].T + 3 * parts[2] @ parts[2].T  # Eq. 2
    np.testing.assert_allclose(weighted @ weighted.T, kernel, atol=1e-12)
    fitted = small(block_weights=[0.25, 0, 3]).fit(X, graph=A)
    np.testing.assert_array_equal(fitted.transform(X, graph=A), weighted)
    np.testing.assert_array_equal(fitted.set_params(block_weights=None).transform(X, graph=A), np.hstack(parts))


def test_no_layers_give_the_input_map_alone(X, A):
    Z = small(n_layers=0).fit_transform(X, graph=A)
    model = small()
    np.testing.assert_array_equal(Z, blocks(model, model.fit_transform(X, graph=A))[0])
    np.testing.assert_array_equal(Z, small(n_layers=0).fit_transform(X))


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
def test_no_em_iterations_give_zero(X, A):
    model = small(em__n_iter=0)
    psi0, *rest = blocks(model, model.fit_transform(X, graph=A))
    assert psi0.any()
    assert not any(block.any() for block in rest)
    model = small(em__n_iter=0, kernel="identity", n_layers=1)
    assert not blocks(model, model.fit_transform(X, graph=A))[1].any()


def test_counts_tell_a_point_from_its_double():
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 4)), 2, axis=0)
    A = np.zeros((12, 12))
    A[[1, 0], [0, 1]] = 1  # rows 0 and 1 hold {x, x}; the others hold {x} alone
    for counts in (False, True):
        model = small(n_layers=1, kernel="identity", counts=counts, n_anchors=2, dim=4, family__variance=0.5)
        _, phi = blocks(model, model.fit_transform(X, graph=sp.csr_array(A)))
        lonely = model.transform(X[:1], graph=sp.csr_array((1, 1)))[:, -phi.shape[1] :]
        assert phi.shape[1] == 2 * 4 + 2 * counts
        assert np.allclose(phi[0], lonely) is not counts
        if counts:
            mass = np.exp(phi[:, -2:]) - 1
            np.testing.assert_allclose(mass.sum(axis=1), [2, 2] + [1] * 10, rtol=1e-12)


def test_one_anchor_is_mean_pooling(X, A):
    model = small(n_layers=1, n_anchors=1, kernel="identity", multiset__weights="uniform")
    points, phi = blocks(model, model.fit_transform(X, graph=A))
    pooled = [np.mean([points[u] for u, _ in members], axis=0) for members in listed(A, weights="uniform")]
    np.testing.assert_allclose(phi, pooled - model.stack_.layers[0].theta.anchors, atol=1e-12)


def test_an_empty_multiset_maps_to_zero(X, A):
    model = small(multiset="open-neighbourhood")
    _, *rest = blocks(model, model.fit_transform(X, graph=A))
    empty = np.diff(A.indptr) == 0
    assert empty.any()
    for block in rest:
        assert not block[empty].any()
        assert block[~empty].any(axis=1).all()


def test_automatic_variance_meets_its_entropy(X, A):
    for sharpness in (0.3, 0.8):
        model = small(n_layers=1, family__sharpness=sharpness).fit(X, graph=A)
        layer = model.stack_.layers[0]
        members = [u for members in listed(A) for u, _ in members]
        points = small(n_layers=0, kernel="identity").fit_transform(X)[members]
        psi0 = model.stack_.input_map(points)
        alpha = np.exp(ref.log_responsibilities(unit_rows(psi0), layer.theta.anchors, layer.theta.variance))
        entropy = -np.mean(np.sum(alpha * np.log(alpha), axis=1))
        assert entropy == pytest.approx(sharpness * np.log(3), rel=1e-2)
    assert small(family__variance=2).fit(X, graph=A).stack_.layers[1].theta.variance == 2.0


def test_scale_of_the_features_does_not_matter_when_normalised(X, A):
    rows = np.random.default_rng(0).uniform(0.1, 10, size=(N, 1))
    np.testing.assert_allclose(small().fit_transform(X * rows, graph=A), small().fit_transform(X, graph=A), atol=1e-10)


def test_undirected_adds_the_reverse_edges(X, A):
    both = A.maximum(A.T)
    np.testing.assert_array_equal(
        small(multiset__undirected=True).fit_transform(X, graph=A), small().fit_transform(X, graph=sp.csr_array(both))
    )


@pytest.mark.parametrize("engine", ["scipy", "torch"], indirect=True)
def test_engines_agree(X, A, engine):
    model = small(multiset__undirected=True)
    Z = model.fit_transform(X, graph=A)
    np.testing.assert_array_equal(model.transform(X, graph=A), Z)
    with config_context(engine="numba"):
        np.testing.assert_allclose(model.transform(X, graph=A), Z, atol=1e-8)


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
@pytest.mark.parametrize(("structure", "dim"), [("projection", 8), ("degree", 6), ("spectral", 5)])
def test_a_graph_without_features_uses_its_structure(A, structure, dim):
    model = small(structure=structure, dim=dim, n_anchors=2)
    Z = model.fit_transform(None, graph=A)
    assert Z.dtype == np.float32
    assert np.isfinite(Z).all()
    assert Z.std(axis=0).max() > 0
    np.testing.assert_array_equal(model.transform(None, graph=A), Z)
    np.testing.assert_array_equal(small(structure=structure, dim=dim, n_anchors=2).fit_transform(None, graph=A), Z)
    assert model.transform(None, graph=A[:30][:, :30]).shape == (30, Z.shape[1])


def test_widths_grow_with_the_identity(X, A):
    model = small(kernel="identity", n_anchors=2, counts=True).fit(X, graph=A)
    assert widths(model) == [5, 12, 26]


# --- quiet, and small -----------------------------------------------------------------------------------


def test_nothing_is_printed_unless_asked(X, A, capfd):
    small().fit_transform(X, graph=A)
    assert capfd.readouterr() == ("", "")
    small(verbose=True).fit_transform(X, graph=A)
    out, err = capfd.readouterr()
    assert out == ""
    assert all(title in err for title in ("input map", "layer 1/2", "layer 2/2"))


def test_a_callable_shows_progress_in_its_own_way(X, A):
    seen = []

    class Bar:
        def __init__(self, title, steps):
            self.title, self.left = title, steps

        def __enter__(self):
            return self

        def __exit__(self, *error):
            seen.append((self.title, self.left))

        def update(self, n):
            self.left -= n

    small(verbose=Bar).fit_transform(X, graph=A)
    parts = ["input map", "layer 1/2", "layer 2/2"]
    assert seen == [(title, 0) for part in parts for title in (f"learning {part}", part)]
    seen.clear()
    small(verbose=Bar, multiset="ppr", structure="auto").fit(None, graph=A)
    assert [title for title, _ in seen[:2]] == ["structure", "multisets"]
    assert all(left == 0 for _, left in seen)


@pytest.mark.parametrize(("teleport", "words", "most"), [(None, 50_000, 100e6), (0.1, 10_000, 160e6)])
def test_bags_of_words_are_never_dense(teleport, words, most):
    rng = np.random.default_rng(0)
    X = sp.random_array((20_000, words), density=2e-4, rng=rng, format="csr", dtype=np.float32)  # 4 and 0.8 GB, dense
    A = sp.random_array((20_000, 20_000), density=1e-4, rng=rng, format="csr")
    model = small(n_layers=1, dim=4, n_anchors=2, walk=teleport)
    model.fit(X[:50], graph=A[:50][:, :50])  # compile first
    tracemalloc.start()
    Z = model.fit_transform(X, graph=A)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(Z).all()
    assert peak < most


# --- a fit that fails -----------------------------------------------------------------------------------


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(20, 6)), sp.random_array((20, 20), density=0.2, rng=rng, format="csr")
    bad = X[:, :4].copy()
    bad[3, 2] = np.nan
    fresh = FisherEmbedding(n_layers=1, n_anchors=2, dim=5)
    with pytest.raises(ValueError, match="NaN in row 3"):
        fresh.fit(bad, graph=A)
    with pytest.raises(NotFittedError):
        fresh.transform(X, graph=A)
    model = FisherEmbedding(n_layers=1, n_anchors=2, dim=5)
    for features, other in ((X, bad), (None, None)):
        Z = model.fit(features, graph=A).transform(features, graph=A)
        with pytest.raises(ValueError, match=r"NaN in row 3|shape \(2, E\)"):
            model.fit(other, graph=A if other is not None else np.zeros((3, 3)))
        np.testing.assert_array_equal(model.transform(features, graph=A), Z)


def test_a_fit_that_is_interrupted_leaves_the_model_as_it_was(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 6))
    model = FisherEmbedding(n_layers=1, n_anchors=2, dim=5).fit(X)
    Z = model.transform(X)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fishergraph.estimators.node.Pass", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :4])
    np.testing.assert_array_equal(model.transform(X), Z)


# --- edges and names beside X -----------------------------------------------------------------------------


@pytest.mark.parametrize("edges", [np.array([[0, 1], [1, 2]]), np.empty((2, 0), dtype=int)], ids=["some", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_nodes_behind_the_last_edge_are_rows_of_X(edges, weighted):
    X = np.random.default_rng(0).normal(size=(5, 3))
    graph = (edges, np.full(edges.shape[1], 2.0)) if weighted else edges
    whole = as_graph(graph, n_nodes=5)
    found = FisherEmbedding(n_layers=1, n_anchors=2, dim=3, random_state=0).fit_transform(X, graph=graph)
    known = FisherEmbedding(n_layers=1, n_anchors=2, dim=3, random_state=0).fit_transform(X, graph=whole)
    np.testing.assert_array_equal(found, known)


def test_rows_and_nodes_of_other_names_or_another_order_are_refused():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 3)))
    numbers = as_graph(pd.DataFrame({"source": [0, 1, 2], "target": [1, 2, 3]}))
    names = as_graph(pd.DataFrame({"source": list("abc"), "target": list("bcd")}))
    model = FisherEmbedding(n_layers=1, n_anchors=2, dim=3, random_state=0)
    with pytest.raises(ValueError, match="sort_index"):
        model.fit(X.iloc[[2, 0, 1, 3]], graph=numbers)
    with pytest.raises(ValueError, match="'c'"):
        model.fit(X.set_axis(list("acbd")), graph=names)
    with pytest.raises(ValueError, match="'v'"):
        model.fit(X.set_axis(list("vbcd")), graph=names)
    table = pd.DataFrame({"source": list("abc"), "target": list("bcd")})
    with pytest.raises(InputError, match=r"ids of X .*'a'"):
        model.fit(X.set_axis(list("vbcd")), graph=table)
    Z = model.fit_transform(X, graph=names)
    for index, graph in ((list("abcd"), names), ([10, 20, 30, 40], numbers), (list("wxyz"), numbers)):
        np.testing.assert_array_equal(model.fit_transform(X.set_axis(index), graph=graph), Z)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_layers": 3}, "n_layers"),
        ({"n_layers": 1}, "n_layers"),
        ({"multiset": "paths"}, "multiset"),
    ],
)
def test_parameters_that_no_longer_fit_what_was_learned(X, A, changes, sentence):
    model = small(dim=6).fit(np.hstack([X, X**2]), graph=A).set_params(**changes)
    with pytest.raises(ValueError, match=sentence):
        model.transform(np.hstack([X, X**2]), graph=A)


def test_a_model_of_features_wants_features(tmp_path, A):
    features = np.random.default_rng(0).normal(size=(N, 6))
    small().fit(features, graph=A).save(tmp_path / "m.safetensors")
    for model in (small().fit(features, graph=A), FisherEmbedding.load(tmp_path / "m.safetensors")):
        with pytest.raises(ValueError, match="X must be given"):
            model.transform(None, graph=A)


def test_tensors_and_edges_without_the_last_nodes(X):
    torch = pytest.importorskip("torch")
    edges, tensor = np.array([[0, 1], [1, 2]]), torch.tensor(X)
    for multiset in ("neighbourhood", "hops"):
        known = small(multiset=multiset).fit_transform(X, graph=edges)
        found = small(multiset=multiset).fit_transform(tensor, graph=torch.tensor(edges))
        assert found.shape == known.shape == (N, known.shape[1])


# --- nothing to tell nodes apart by -----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("changes", [{}, {"multiset__weights": "symmetric"}, {"n_anchors": 1}], ids=str)
def test_rounding_errors_of_a_zero_are_not_a_direction(A, dtype, changes):
    """All rows point one way, so φ is zero; its last bits, made as long as one, would be what later layers see."""
    rows = np.outer(np.arange(1, N + 1), [1.0, 2.0, 3.0]).astype(dtype)
    model = small(n_layers=3, **changes)
    Z = model.fit_transform(rows, graph=A)
    first, second, *later = np.split(Z, np.cumsum(model.stack_.widths)[:-1], axis=1)
    assert np.abs(first).max() > 0.9
    assert np.abs(second).max() < 4 * np.finfo(dtype).eps
    assert not any(block.any() for block in later)
    order = np.random.default_rng(0).permutation(N)
    again = model.transform(rows[order], graph=A[order][:, order])
    np.testing.assert_allclose(again, Z[order], rtol=0, atol=8 * np.finfo(dtype).eps)


def test_edges_of_pyg_that_do_not_say_how_many_nodes_there_are(X):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric")
    edges = torch.tensor([[0, 1], [1, 2]])
    known = small().fit_transform(X, graph=edges.numpy())
    for graph in (pyg.data.Data(edge_index=edges), pyg.EdgeIndex(edges, sparse_size=(N, N))):
        np.testing.assert_array_equal(small().fit_transform(X, graph=graph), known)
    for graph in (pyg.data.Data(edge_index=edges, num_nodes=3), pyg.data.Data(x=torch.ones(3, 1), edge_index=edges)):
        with pytest.raises(ValueError, match=f"{N} rows"):
            small().fit(X, graph=graph)
