"""Components: frozen records with scikit-learn's parameter protocol."""

from __future__ import annotations

import dataclasses
import pickle
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

import fishergraph
from fishergraph import (
    EM,
    DiagonalMixture,
    Differences,
    FisherEmbedding,
    FisherGraphEmbedding,
    FisherSetEmbedding,
    Gaussian,
    GaussianMixture,
    HeatKernel,
    Hops,
    MultinomialMixture,
    Neighbourhood,
    Nystrom,
    PageRank,
    Pairs,
    Paths,
    Readout,
    StepAverage,
    Tuples,
    VonMisesFisherMixture,
    Walk,
)
from fishergraph._component import Component
from fishergraph._errors import InputError, InputTypeError
from fishergraph.device import Device, choose_device
from fishergraph.em.settings import choose_em
from fishergraph.estimators.graphs import choose_nodes
from fishergraph.estimators.readout import choose_readout
from fishergraph.family import choose_family
from fishergraph.kernel_map import Identity, Standardize, choose_kernel
from fishergraph.multiset import choose_multiset
from fishergraph.published import PublishedMixture, PublishedNystrom
from fishergraph.walk import choose_walk

COMPONENTS = [
    EM,
    Neighbourhood,
    PageRank,
    HeatKernel,
    StepAverage,
    Hops,
    Differences,
    Pairs,
    Paths,
    Tuples,
    GaussianMixture,
    Gaussian,
    DiagonalMixture,
    VonMisesFisherMixture,
    MultinomialMixture,
    PublishedMixture,
    PublishedNystrom,
    Nystrom,
    Identity,
    Standardize,
    Walk,
    Readout,
    Device,
]


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_component_is_its_parameters(kind):
    component = kind()
    assert repr(component) == f"{kind.__name__}()"
    assert kind(**component.get_params(deep=False)) == component
    assert component.set_params() == component
    assert clone(component) == component
    assert pickle.loads(pickle.dumps(component)) == component
    assert hash(component) == hash(kind())
    for name in component.get_params(deep=False):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(component, name, None)


@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize("name", ["nothing", "nothing__option", "__", ""])
def test_an_unknown_option(kind, name):
    with pytest.raises(InputError, match=kind.__name__) as error:
        kind().set_params(**{name: 1})
    assert error.value.value == name


@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize("value", [np.nan, np.array([1, 2]), 1j, object(), {}, EM, Hops(), Walk()])
def test_a_value_that_no_option_takes(kind, value):
    for name in kind().get_params(deep=False):
        if (kind, name) == (Walk, "teleport") and value is None:
            continue
        with pytest.raises((InputError, InputTypeError)):
            kind(**{name: value})
        with pytest.raises((InputError, InputTypeError)):
            kind().set_params(**{name: value})


def test_nested_options():
    readout = Readout().set_params(family__sharpness=0.3, n_anchors=5)
    assert readout == Readout(n_anchors=5, family=GaussianMixture(sharpness=0.3))
    counts = MultinomialMixture().set_params(following__variance=2.0)
    assert counts.following == GaussianMixture(variance=2.0)
    assert counts.get_params()["following__variance"] == 2.0
    # A component of the same call is changed, whatever the order of the names.
    changed = readout.set_params(family__power=0.5, family=DiagonalMixture())
    assert changed.family == DiagonalMixture(power=0.5)


def test_an_option_of_something_other_than_a_component():
    with pytest.raises(InputError, match="kernel") as error:
        Readout().set_params(kernel__bandwidth=1.0)
    assert error.value.parameter == "kernel"
    with pytest.raises(InputError, match="em"):
        Readout().set_params(em__n_iter=2)


@pytest.mark.parametrize(
    ("choose", "wrong"),
    [
        (choose_multiset, GaussianMixture()),
        (choose_multiset, Hops),
        (choose_family, Hops()),
        (choose_family, None),
        (choose_em, Walk()),
        (choose_em, "em"),
        (choose_em, EM),
        (choose_kernel, EM()),
        (choose_kernel, None),
        (choose_walk, Nystrom()),
        (choose_walk, "ppr"),
        (choose_walk, True),
        (choose_device, EM()),
        (choose_device, "gpu"),
        (choose_readout, GaussianMixture()),
        (choose_readout, "sums"),
        (choose_nodes, Readout()),
        (choose_nodes, "nodes"),
    ],
)
def test_a_component_of_the_wrong_kind(choose, wrong):
    with pytest.raises((InputError, InputTypeError)):
        choose(wrong)


def test_names_stand_for_defaults():
    assert choose_multiset("ppr") == PageRank()
    assert choose_multiset("open-neighbourhood") == Neighbourhood(closed=False)
    assert choose_family("von-mises-fisher") == VonMisesFisherMixture()
    assert choose_kernel("exp") == Nystrom()
    assert choose_walk(0.2) == Walk(teleport=0.2)
    assert choose_walk(None) is None
    assert choose_em(None) == EM()
    assert choose_readout("means") == Readout(reading="means")
    assert choose_device("cuda:1") == Device("cuda:1")


# --- options are validated when a component is made, and shown when they differ -----------------------------

WRONG = [
    (EM, {"n_iter": -1}),
    (EM, {"prior": -1.0}),
    (EM, {"e_step": "posteriour"}),
    (EM, {"init": "k-means"}),
    (EM, {"max_samples": 0}),
    (EM, {"column_penalty": -1.0}),
    (Neighbourhood, {"closed": 1}),
    (Neighbourhood, {"weights": "symetric"}),
    (PageRank, {"teleport": 0.0}),
    (PageRank, {"undirected": None}),
    (HeatKernel, {"time": -1.0}),
    (StepAverage, {"steps": 0}),
    (Hops, {"k": -1}),
    (Paths, {"length": 0}),
    (Tuples, {"k": 4}),
    (GaussianMixture, {"sharpness": 2.0}),
    (GaussianMixture, {"variance": "atuo"}),
    (GaussianMixture, {"fisher": "exakt"}),
    (DiagonalMixture, {"tangent": "scores"}),
    (Gaussian, {"power": 0.0}),
    (MultinomialMixture, {"smoothing": -1.0}),
    (Nystrom, {"bandwidth": 0.0}),
    (PublishedNystrom, {"bandwidth": -1.0}),
    (Walk, {"teleport": 1.5}),
    (Readout, {"n_anchors": 0}),
    (Readout, {"reading": "sum"}),
    (Readout, {"unit": 1}),
    (Device, {"precision": "fp16"}),
]


@pytest.mark.parametrize(("kind", "options"), WRONG, ids=lambda part: getattr(part, "__name__", str(part)))
def test_a_wrong_option_is_refused_when_the_component_is_made(kind, options):
    (name,) = options
    for call in (lambda: kind(**options), lambda: kind().set_params(**options)):
        with pytest.raises(InputError) as error:
            call()
        assert name in str(error.value)


@pytest.mark.parametrize(
    ("component", "text"),
    [
        (EM(n_iter=3), "EM(n_iter=3)"),
        (EM(prior=0.0), "EM()"),
        (GaussianMixture(sharpness=0.5), "GaussianMixture(sharpness=0.5)"),
        (Neighbourhood(closed=False, weights="uniform"), "Neighbourhood(weights='uniform', closed=False)"),
        (Readout(family=GaussianMixture(sharpness=0.1)), "Readout()"),
        (Readout(family=DiagonalMixture(power=0.5)), "Readout(family=DiagonalMixture(power=0.5))"),
        (FisherEmbedding(em=EM(n_iter=2), walk=None), "FisherEmbedding(em=EM(n_iter=2), walk=None)"),
        (FisherSetEmbedding(em=EM(prior=1.0)), "FisherSetEmbedding()"),
    ],
    ids=str,
)
def test_what_differs_from_the_default_is_shown(component, text):
    assert repr(component) == text


# --- components inside estimators ---------------------------------------------------------------------------


def test_nested_names_of_an_estimator():
    model = FisherEmbedding()
    params = model.get_params()
    assert params["family__sharpness"] == GaussianMixture().sharpness
    assert params["walk__teleport"] == 0.1
    model.set_params(family__sharpness=0.3, em__n_iter=2, walk__teleport=0.2, multiset__weights="uniform")
    assert model.family == GaussianMixture(sharpness=0.3)
    assert model.em == EM(n_iter=2)
    assert model.walk == Walk(teleport=0.2)
    assert model.multiset == Neighbourhood(weights="uniform")
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(InputError) as error:
        model.set_params(walk=None, walk__teleport=0.2)
    assert error.value.parameter == "walk"


def test_get_params_of_invalid_parameters_does_not_raise():
    """scikit-learn delays validation until fit."""
    for kind in (FisherEmbedding, FisherSetEmbedding, FisherGraphEmbedding):
        names = list(kind().get_params(deep=False))
        for name in names:
            assert kind(**{name: -1}).set_params().get_params()[name] == -1


@pytest.mark.parametrize("kind", [FisherSetEmbedding, Readout])
def test_components_that_are_defaults_cannot_change(kind):
    """Which scikit-learn cannot know: it allows a few built-in types alone."""
    before = repr(kind().get_params(deep=False))
    defaults = [value for value in kind().get_params(deep=False).values() if isinstance(value, Component)]
    assert defaults
    for default in defaults:
        name, value = next(iter(default.get_params(deep=False).items()))
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(default, name, value)
    kind().set_params(family__sharpness=0.123)
    assert repr(kind().get_params(deep=False)) == before


def test_a_search_over_options_of_sets_in_a_pipeline():
    rng = np.random.default_rng(0)
    sets = [rng.normal(size=(4 + k % 3, 2)) * (1 + k % 2) for k in range(40)]
    embedding = FisherSetEmbedding(n_anchors=3, dim=6, random_state=0, n_jobs=1)
    pipeline = Pipeline([("embed", embedding), ("probe", LogisticRegression())])
    grid = {"embed__family__sharpness": [0.3, 0.8], "embed__kernel__bandwidth": [0.5, 2.0]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(sets, np.arange(40) % 2)
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_.named_steps["embed"]
    assert best.family.sharpness == search.best_params_["embed__family__sharpness"]
    assert best.layer_.kernel.bandwidth == search.best_params_["embed__kernel__bandwidth"]
    assert len({tuple(search.cv_results_[f"split{k}_test_score"]) for k in range(2)}) == 2
    assert embedding.family == GaussianMixture(sharpness=0.5)  # the one that was passed is as it was


def test_a_search_over_options_of_nodes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), np.arange(40) % 2
    embedding = FisherEmbedding(n_layers=1, n_anchors=2, dim=6, random_state=0, n_jobs=1)
    grid = {
        "fisherembedding__family__sharpness": [0.3, 0.8],
        "fisherembedding__em__n_iter": [1, 2],
        "fisherembedding__kernel__bandwidth": [2.0],
    }
    pipeline = make_pipeline(embedding, LogisticRegression())
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    layer = search.best_estimator_[0].stack_.layers[0]
    assert layer.family == GaussianMixture(sharpness=search.best_params_["fisherembedding__family__sharpness"])
    assert layer.em == EM(n_iter=search.best_params_["fisherembedding__em__n_iter"])
    assert layer.kernel == Nystrom(bandwidth=2.0)


def test_presets():
    assert FisherEmbedding.preset("default").get_params() == FisherEmbedding().get_params()
    assert FisherEmbedding.preset("paper").walk is None
    assert FisherEmbedding.preset("best").n_layers > FisherEmbedding().n_layers
    assert FisherEmbedding.preset("fast").dim < FisherEmbedding().dim
    assert FisherEmbedding.preset("fast", dim=7).dim == 7
    with pytest.raises(InputError, match="'best'") as error:
        FisherEmbedding.preset("fastest")
    assert error.value.value == "fastest"
    for name in ("default", "fast", "best", "paper"):
        FisherEmbedding.preset(name).check()


def test_the_published_code():
    model = FisherEmbedding.published_code(n_layers=3)
    expected = (PublishedMixture(), PublishedNystrom(), None, 3)
    assert (model.family, model.kernel, model.walk, model.n_layers) == expected
    assert FisherEmbedding.published_code(kernel="identity").kernel == "identity"
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(20, 4)), sp.random_array((20, 20), density=0.2, rng=rng, format="csr")
    small = {"n_layers": 1, "n_anchors": 2, "dim": 3, "random_state": 0}
    Z = FisherEmbedding.published_code(**small).fit_transform(X, graph=A)
    assert Z.shape == (20, 3 + 2 * 3)  # ψ_0, and φ of the last layer, which has no kernel map


@pytest.mark.parametrize(
    ("kind", "most"), [("FisherEmbedding", 16), ("FisherSetEmbedding", 16), ("FisherClassifier", 16)]
)
def test_estimators_have_few_parameters(kind, most):
    if kind == "FisherClassifier":
        pytest.importorskip("torch")
    assert len(getattr(fishergraph, kind)().get_params(deep=False)) <= most


def test_a_layer_of_a_network_has_few_parameters():
    pytest.importorskip("torch")
    from fishergraph.nn import FisherConv

    assert len(signature(FisherConv).parameters) <= 14


def test_a_component_with_a_list_is_hashable():
    pytest.importorskip("torch")
    from fishergraph.nn import Training

    lists, tuples = (Training(batch_size=4, fan_out=kind([2, 3])) for kind in (list, tuple))
    assert lists == tuples
    assert hash(lists) == hash(tuples)
