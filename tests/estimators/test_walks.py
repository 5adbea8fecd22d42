"""Averaged features: their values, when they are left out, and that they follow the rules of all stages."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from contracts import members_of
from directed_graph import directed_graph
from fishergraph import FisherEmbedding, as_graph, neighbourhoods
from fishergraph import walk as walk_module
from fishergraph._errors import InputError, InputTypeError
from fishergraph.walk import Walk
from models import PUBLISHED, node_model

N = 60
pytestmark = pytest.mark.filterwarnings("ignore:asked for:UserWarning")


def small(**changes) -> FisherEmbedding:
    return node_model(**{"n_layers": 2, "n_anchors": 3, "dim": 6, "structure": None, "random_state": 0, **changes})


def block(model: FisherEmbedding, Z: np.ndarray, name: str) -> np.ndarray:
    names, ends = [name for name, _ in model.blocks_], np.cumsum([0, *(width for _, width in model.blocks_)])
    return Z[:, ends[names.index(name)] : ends[names.index(name) + 1]]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(N, 5))


@pytest.fixture(scope="module")
def A() -> sp.csr_array:
    return directed_graph(N)


def path(n: int) -> sp.csr_array:
    line = sp.diags_array(np.ones(n - 1), offsets=1, shape=(n, n))
    return sp.csr_array(line + line.T)


@pytest.mark.parametrize("teleport", [0.1, 0.5])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_block_is_the_map_of_smoothed_rows(X, A, teleport, normalize):
    """Nyström(unit(μ_v − w)) with μ of the reference, w their mean, the landmarks those that were learned."""
    model = small(walk=teleport, normalize=normalize)
    Z = model.fit_transform(X, graph=A)
    rows = np.array([ref.unit(x) for x in X]) if normalize else X
    smoothed = ref.walk_means(rows, members_of(neighbourhoods(as_graph(A))), teleport, Walk(teleport).n_steps)
    rotated = model.stack_.axes(X) * model.stack_.axes.spread  # all five axes: a rotation of the rows
    assert_allclose(rotated @ rotated.T, rows @ rows.T, atol=1e-9)
    turn = np.linalg.lstsq(rows, rotated, rcond=None)[0]
    layer = model.stack_.columns[0]
    assert_allclose(layer.centre, smoothed.mean(axis=0, keepdims=True) @ turn, atol=1e-9)
    phi = (smoothed - smoothed.mean(axis=0)) @ turn
    phi = np.array([ref.unit(x) for x in phi]) if normalize else phi
    known = ref.nystrom(phi, layer.kernel_map.landmarks, 1.5, cutoff=1e-6)
    assert_allclose(block(model, Z, "walk"), known, atol=1e-7)


def test_layers_take_the_features_not_their_averages(X, A):
    walks, plain = small(), small(walk=None)
    Z, without = (model.fit_transform(X, graph=A) for model in (walks, plain))
    assert_array_equal(Z[:, : without.shape[1]], without)


def test_it_depends_on_nodes_far_away(X):
    other = X.copy()
    other[6] = -other[6]
    graph, far = path(N), np.s_[:1]
    walks, plain = small(n_layers=0).fit(X, graph=graph), small(n_layers=1, walk=None).fit(X, graph=graph)
    assert_array_equal(plain.transform(X, graph=graph)[far], plain.transform(other, graph=graph)[far])
    one, two = walks.transform(X, graph=graph)[far], walks.transform(other, graph=graph)[far]
    assert np.abs(one - two).max() > 1e-4
    assert_array_equal(one[:, :5], two[:, :5])  # ψ_0 is the node's own


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("width", [5, 400])
def test_one_pass_the_same_bits_at_any_number_of_threads(A, width, sparse):
    X = np.random.default_rng(3).random((N, width)) * (np.random.default_rng(4).random((N, width)) < 0.3)
    X = sp.csr_array(X) if sparse else X
    Z = small(n_jobs=1).fit_transform(X, graph=A)
    model = small(n_jobs=3).fit(X, graph=A)
    assert_array_equal(Z, model.transform(X, graph=A))
    assert np.isfinite(Z).all()


@pytest.mark.parametrize(("most", "axes"), [(2**26, 256), (400 * 100, 100), (1, 64)])
def test_very_wide_features_have_fewer_axes(monkeypatch, most, axes):
    monkeypatch.setattr(walk_module, "_MOST_NUMBERS", most)
    X = np.random.default_rng(10).normal(size=(500, 400))
    assert small(n_layers=0).fit(X).stack_.axes.n_outputs == axes
    assert small(n_layers=0).fit(X[:30]).stack_.axes.n_outputs == 30


@pytest.mark.parametrize(
    "left_out",
    [{"multiset": "pairs"}, {"multiset": "paths"}, PUBLISHED, {"family": "multinomial"}],
)
def test_where_it_is_left_out(X, A, left_out):
    counts = np.round(np.abs(3 * X)) + 1
    one = small(**left_out).fit_transform(counts, graph=A)
    assert_array_equal(one, small(**{**left_out, "walk": None}).fit_transform(counts, graph=A))


@pytest.mark.parametrize(
    "kept",
    [
        {"family": "diagonal-mixture"},
        {"em__e_step": "balanced"},
        {"em__n_iter": 3},
        {"counts": True},
        {"em__prior": 0.5},
        {"em__init": "spherical"},
        {"em__init": "random"},
        {"family__fisher": "exact"},
        {"n_anchors": 1},
        {"family__variance": 0.5},
    ],
)
def test_it_has_one_component_whatever_the_others_have(X, A, kept):
    for normalize in (True, kept == {"em__init": "spherical"}):
        one = small(n_layers=0, normalize=normalize).fit_transform(X, graph=A)
        assert_array_equal(small(n_layers=0, normalize=normalize, **kept).fit_transform(X, graph=A), one)
    assert np.isfinite(small(**kept).fit_transform(X, graph=A)).all()


def test_without_iterations_the_averages_stay_and_the_layers_are_zero(X, A):
    model = small(em__n_iter=0)
    Z, full = model.fit_transform(X, graph=A), small().fit_transform(X, graph=A)
    for name in ("psi1", "psi2"):
        assert not block(model, Z, name).any()
    for name in ("psi0", "walk", "smooth"):
        assert_array_equal(block(model, Z, name), block(small().fit(X, graph=A), full, name))


def test_the_identity_keeps_phi(X, A):
    model = small(kernel="identity")
    Z = model.fit_transform(X, graph=A)
    assert Z.shape == (N, 5 + 3 * 5 + 9 * 5 + 5 + 5)
    assert_allclose(np.linalg.norm(block(model, Z, "walk"), axis=1), 1)
    wide = np.random.default_rng(7).normal(size=(N, 300))
    model = small(kernel="identity", n_layers=1).fit(wide, graph=A)
    assert model.blocks_ == [("psi0", 300), ("psi1", 900), ("walk", N), ("smooth", small().dim)]


def test_a_renumbered_graph_has_renumbered_rows(X, A):
    model, order = small().fit(X, graph=A), np.random.default_rng(8).permutation(N)
    mixed = model.transform(X[order], graph=sp.csr_array(A[order][:, order]))
    assert_allclose(mixed, model.transform(X, graph=A)[order], atol=1e-7)


def test_another_graph_and_new_nodes(X, A):
    model = small().fit(X, graph=A)
    assert model.transform(X[:10], graph=path(10)).shape == (10, model.get_feature_names_out().size)
    assert np.isfinite(model.transform(np.vstack([X, X]), graph=sp.block_diag([A, A], format="csr"))).all()


@pytest.mark.parametrize("graph", [None, sp.csr_array((N, N))])
def test_without_edges_a_row_is_its_own(X, graph):
    Z = small().fit_transform(X, graph=graph)
    assert np.isfinite(Z).all()
    model = small().fit(X, graph=graph)
    assert_allclose(model.transform(X[:1], graph=None if graph is None else sp.csr_array((1, 1))), Z[:1], atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [N, 3000])
@pytest.mark.parametrize("teleport", [0.01, 0.1, 1.0])
def test_rows_that_agree_are_zeros(dtype, n, teleport):
    """What walks and means round is no direction."""
    row = np.random.default_rng(11).random(6).astype(dtype)
    model = small(walk=Walk(teleport), block_weights={"smooth": 0})  # sums know the degrees
    Z = model.fit_transform(np.tile(row, (n, 1)), graph=directed_graph(n, density=6 / n))
    assert not block(model, Z, "walk").any()
    assert_allclose(Z[:, 1:], 0, atol=1e-6 if dtype == np.float32 else 1e-14)
    assert Z.dtype == dtype


@pytest.mark.parametrize("teleport", [0, 0.001, -0.1, 1.5, np.nan, "0.1", True])
def test_bad_values(X, A, teleport):
    with pytest.raises((InputError, InputTypeError), match="teleport"):
        small(walk=teleport).fit(X, graph=A)


def test_changed_after_fit(X, A):
    for one, other in ((0.1, None), (None, 0.1)):
        model = small(walk=one).fit(X, graph=A).set_params(walk=other)
        with pytest.raises(ValueError, match="walk"):
            model.transform(X, graph=A)
        with pytest.raises(ValueError, match="walk"):
            model.get_feature_names_out()


@pytest.mark.parametrize("width", [5, 300])
def test_files(tmp_path, A, width):
    X, file = np.random.default_rng(9).normal(size=(N, width)).astype(np.float32), tmp_path / "model.safetensors"
    model = small().fit(X, graph=A)
    model.save(file)
    assert_array_equal(FisherEmbedding.load(file).transform(X, graph=A), model.transform(X, graph=A))


def test_blocks_have_names_and_weights(X, A):
    model = small(block_weights=[1, 0, 0.25, 4, 0])
    Z, plain = model.fit_transform(X, graph=A), small().fit_transform(X, graph=A)
    names = [name.partition("_")[0] for name in small().fit(X, graph=A).get_feature_names_out()]
    assert list(dict.fromkeys(names)) == ["psi0", "psi1", "psi2", "walk", "smooth"]
    assert list(dict.fromkeys(n.partition("_")[0] for n in model.get_feature_names_out())) == ["psi0", "psi2", "walk"]
    parts = {name: plain[:, np.array(names) == name] for name in names}
    assert_allclose(Z, np.hstack([parts["psi0"], 0.5 * parts["psi2"], 2 * parts["walk"]]), rtol=1e-12)
    named = small(block_weights={"psi1": 0, "psi2": 0.25, "walk": 4, "smooth": 0}).fit_transform(X, graph=A)
    assert_array_equal(named, Z)
    with pytest.raises(ValueError, match="block_weights"):
        small(block_weights=[1, 1, 1]).fit(X, graph=A)


def test_layers_changed_after_fit(X, A):
    with pytest.raises(ValueError, match="n_layers"):
        small().fit(X, graph=A).set_params(n_layers=3).transform(X, graph=A)


def test_progress_names_the_walks(X, A):
    told: list[str] = []

    class Part:
        def __init__(self, title, steps):
            told.append(title)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def update(self, n):
            return None

    small(verbose=Part, structure="auto").fit_transform(X, graph=A)
    layers = ("layer 1/2", "layer 2/2")
    learned = [title for title in told if title.startswith("learning ")]
    assert learned == [f"learning {part}" for part in ("input map", *layers, "axes", "walk", "local")]
    rest = ["structure", "input map", *layers, "walking", "walk", "smooth", "averaging factors", "factors", "local"]
    assert [title for title in told if title not in learned] == rest
