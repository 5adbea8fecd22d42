"""`FisherEmbedding(family=…)`: against loops, with every multiset and E-step, in files, on tensors; bad input."""

import numpy as np
import pytest
import scipy.sparse as sp

import reference_families as ref
from fishergraph import FisherEmbedding, layer
from fishergraph._errors import InputError
from fishergraph.em import means
from fishergraph.em.learn import learn_family
from fishergraph.em.unit import unit_rows
from fishergraph.family import FAMILIES, DiagonalMixture, MultinomialMixture
from models import PUBLISHED, node_model

NAMES = list(FAMILIES)
OTHERS = ["diagonal-mixture", "von-mises-fisher", "multinomial"]
_rng = np.random.default_rng(0)
N = 40
COUNTS = _rng.poisson(1.0, size=(N, 5)) + np.eye(5)[_rng.integers(5, size=N)]
GRAPH = sp.csr_array(np.triu(_rng.random((N, N)) < 0.12, 1).astype(float) * _rng.uniform(0.5, 2, size=(N, N)))
GRAPH = GRAPH + GRAPH.T


def model(family="gaussian-mixture", **options):
    given = {"n_layers": 1, "n_anchors": 3, "dim": 12, "random_state": 0, "n_jobs": 1, "family": family}
    return node_model(**{**given, "walk": None, **options})


def closed_sets():
    """The closed neighbourhoods: (members, weights) of every node."""
    dense = GRAPH.toarray()
    return [([v, *np.flatnonzero(dense[v])], [1.0, *dense[v][np.flatnonzero(dense[v])]]) for v in range(N)]


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "options",
    [{}, {"em__n_iter": 3}, {"em__prior": 0.7, "counts": True}, {"em__e_step": "balanced"}, {"em__n_iter": 0}],
    ids=str,
)
@pytest.mark.parametrize("engine", ["numba", "torch"], indirect=True)
def test_phi_is_the_references(name, options, engine):
    est = model(name, kernel="identity", block_weights=[0, 1], **options)
    got = est.fit_transform(COUNTS.astype(np.float64), graph=GRAPH)
    theta = est.stack_.layers[0].theta._asdict()
    points = COUNTS.astype(np.float64) if name == "multinomial" else unit_rows(COUNTS.astype(np.float64))
    n_iter, prior = options.get("em__n_iter", 1), options.get("em__prior", 0.0)
    penalty = np.inf if "em__e_step" in options else None
    for v, (members, weights) in enumerate(closed_sets()):
        found, mass = ref.em(name, points[members], weights, theta, n_iter, prior, penalty)
        expected = ref.phi(name, found, theta)
        expected = np.concatenate([expected, np.log1p(mass)]) if options.get("counts") else expected
        np.testing.assert_allclose(got[v], expected, atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("multiset", ["open-neighbourhood", "ppr", "pairs"])
@pytest.mark.parametrize("e_step", ["posterior", "unbalanced"])
def test_every_family_goes_with_every_multiset_and_e_step(name, multiset, e_step):
    options = {"n_layers": 2, "multiset": multiset, "em__e_step": e_step, "em__n_iter": 2, "counts": True}
    X = COUNTS.astype(np.float32)
    one = model(name, **options)
    Z = one.fit_transform(X, graph=GRAPH)
    assert Z.shape == (N, len(one.get_feature_names_out()))
    assert Z.dtype == np.float32
    assert np.isfinite(Z).all()
    assert Z[:, -12:].std(axis=0).max() > 1e-4
    assert np.array_equal(Z, model(name, **options).fit(X, graph=GRAPH).transform(X, graph=GRAPH))
    assert np.array_equal(Z, model(name, **{**options, "n_jobs": 2}).fit_transform(X, graph=GRAPH))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "options",
    [
        {"family__fisher": "exact"},
        {"family__tangent": "score"},
        {"family__fisher": "exact", "family__tangent": "score"},
    ],
)
def test_metrics_and_readings(name, options, tmp_path):
    est = model(name, dim=6, kernel="identity", **options)
    Z = est.fit_transform(COUNTS, graph=GRAPH)
    assert np.isfinite(Z).all()
    plain = model(name, dim=6, kernel="identity").fit_transform(COUNTS, graph=GRAPH)
    assert Z.shape == plain.shape
    if (
        options != {"family__fisher": "exact"} or name != "gaussian"
    ):  # one component has its exact matrix in closed form
        assert np.abs(Z - plain).max() > 1e-3
    else:
        np.testing.assert_allclose(Z, plain, atol=0.1)
    est.save(tmp_path / "model.safetensors")
    back = FisherEmbedding.load(tmp_path / "model.safetensors")
    assert np.array_equal(back.transform(COUNTS, graph=GRAPH), Z)


@pytest.mark.parametrize(
    "family", [DiagonalMixture(tangent="score", power=0.5, unit=True), MultinomialMixture(smoothing=2.0)]
)
def test_records_are_kept_in_files_and_clones(family, tmp_path):
    from sklearn.base import clone

    est = clone(model(family))
    Z = est.fit_transform(COUNTS, graph=GRAPH)
    est.save(tmp_path / "model.safetensors")
    back = FisherEmbedding.load(tmp_path / "model.safetensors")
    assert back.family == family
    assert np.array_equal(back.transform(COUNTS, graph=GRAPH), Z)


def test_power_and_length_of_phi():
    est = model(DiagonalMixture(power=0.5, unit=True), kernel="identity", block_weights=[0, 1])
    Z = est.fit_transform(COUNTS, graph=GRAPH)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, rtol=1e-6)


def test_counts_are_read_from_x_and_later_layers_are_gaussian():
    est = model("multinomial", n_layers=3).fit(sp.csr_array(COUNTS.astype(np.float32)), graph=GRAPH)
    kinds = [type(layer.theta).__name__ for layer in est.stack_.layers]
    assert kinds == ["MultinomialTheta", "GaussianMixtureTheta", "GaussianMixtureTheta"]
    assert est.stack_.layers[0].theta.probabilities.shape == (3, 5)
    dense = model("multinomial", n_layers=3).fit(COUNTS.astype(np.float32), graph=GRAPH)
    np.testing.assert_allclose(est.stack_.layers[0].theta.probabilities, dense.stack_.layers[0].theta.probabilities)


@pytest.mark.parametrize("name", NAMES)
def test_tensors_give_what_arrays_give(name, tmp_path):
    torch = pytest.importorskip("torch")
    est = model(name, em__n_iter=2).fit(COUNTS, graph=GRAPH)
    edges = np.stack(GRAPH.tocoo().coords[::-1])
    given = (torch.tensor(edges), torch.tensor(GRAPH.tocoo().data))
    got = est.transform(torch.tensor(COUNTS), graph=given)
    np.testing.assert_allclose(got.numpy(), est.transform(COUNTS, graph=GRAPH), atol=1e-6)
    fitted = model(name, em__n_iter=2).fit_transform(torch.tensor(COUNTS), graph=given)
    assert bool(torch.isfinite(fitted).all())


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_multiset_has_no_phi(name):
    alone = sp.csr_array((N, N))
    est = model(name, kernel="identity", block_weights=[0, 1], multiset="open-neighbourhood")
    est.fit(COUNTS, graph=GRAPH)
    assert np.abs(est.transform(COUNTS, graph=alone)).max() < 1e-6


def test_bad_input():
    zero, negative = COUNTS.copy(), COUNTS.copy()
    zero[7], negative[3, 2] = 0, -1
    for wrap in (np.asarray, sp.csr_array):
        with pytest.raises(InputError, match="row 7"):
            model("von-mises-fisher").fit(wrap(zero))
        with pytest.raises(InputError, match="row 3"):
            model("multinomial").fit(wrap(negative))
        model("multinomial").fit(wrap(zero), graph=GRAPH)  # a document without words is one
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="row 7"):
        model("von-mises-fisher").fit(torch.tensor(zero))
    with pytest.raises(InputError, match="row 7"):
        model("von-mises-fisher").fit(torch.tensor(zero).to_sparse_csr())
    est = model("von-mises-fisher").fit(COUNTS)
    with pytest.raises(InputError, match="row 7"):
        est.transform(zero)


def test_options_that_contradict_each_other():
    with pytest.raises(InputError, match="score") as error:
        model("diagonal-mixture", family__tangent="score", em__n_iter=2).fit(COUNTS)
    assert error.value.parameter == "em"
    with pytest.raises(InputError, match="e_step") as error:
        model(**PUBLISHED, em__e_step="balanced").fit(COUNTS)
    assert error.value.parameter == "em"
    with pytest.raises(InputError, match="'gaussian-mixture'") as error:
        model("poisson").fit(COUNTS)
    assert error.value.value == "poisson"
    with pytest.raises(InputError, match="128"):
        model("gaussian", kernel="identity").fit(np.random.default_rng(0).normal(size=(10, 129)))


@pytest.mark.parametrize("name", ["diagonal-mixture", "von-mises-fisher", "gaussian"])
def test_degenerate_features(name):
    """Features that do not vary, rows that repeat, and features far apart in scale."""
    X = np.column_stack([np.ones(N), 1e-4 * COUNTS[:, 0], 1e3 * COUNTS[:, 1] + 1e5]).astype(np.float32)
    with np.errstate(all="raise", under="ignore"):
        for normalize in (True, False):
            Z = model(name, normalize=normalize, em__n_iter=2).fit_transform(X, graph=GRAPH)
            assert np.isfinite(Z).all()


@pytest.mark.parametrize("engine", ["numba", "torch"], indirect=True)
@pytest.mark.parametrize("n_iter", [1, 2])
def test_wide_statistics_are_those_of_each_blocks_members(engine, n_iter, monkeypatch):
    """If the statistics of all points are too many, those of the members of a row block are made for it."""
    X = np.random.default_rng(1).normal(size=(N, 6))
    options = {"kernel": "identity", "em__n_iter": n_iter}
    expected = model("gaussian", **options).fit_transform(X, graph=GRAPH)
    assert means.held_statistics(FAMILIES["gaussian"](), N, 6) == N * 27
    monkeypatch.setattr(means, "_MOST_HELD", 26 * N)
    assert means.held_statistics(FAMILIES["gaussian"](), N, 6) == 0
    assert means.held_statistics(FAMILIES["diagonal-mixture"](), N, 6) == N * 12  # hardly more than the points
    sizes, score_points = [], layer.score_points

    def counted(family, points, *rest, **options):
        sizes.append(len(points))
        return score_points(family, points, *rest, **options)

    monkeypatch.setattr(layer, "score_points", counted)
    monkeypatch.setattr(layer, "_GATHERED_BYTES", 4 * 27 * 30)  # thirty members to a block
    got = model("gaussian", **options).fit_transform(X, graph=GRAPH)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    assert max(sizes) <= 30 < N
    assert sum(sizes) == GRAPH.nnz + N


@pytest.mark.parametrize("name", NAMES)
def test_a_family_knows_how_many_statistics_points_have(name):
    family = FAMILIES[name]()
    theta = learn_family(family, COUNTS.astype(np.float64), 2, rng=np.random.default_rng(0))
    assert family.mean_statistics(theta).shape[1] == family.n_statistics(5)
