"""Components: frozen records with scikit-learn's parameter protocol."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from fishergraph import (
    EM,
    DiagonalMixture,
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
from fishergraph._errors import InputError, InputTypeError
from fishergraph.device import Device, choose_device
from fishergraph.em.settings import choose_em
from fishergraph.estimators.graphs import choose_nodes, choose_readout
from fishergraph.family import choose_family
from fishergraph.kernel_map import Identity, Standardize, choose_kernel
from fishergraph.multiset import choose_multiset
from fishergraph.published import PublishedMixture, PublishedNystrom
from fishergraph.walk import choose_walk

COMPONENTS = [
    EM, Neighbourhood, PageRank, HeatKernel, StepAverage, Hops, Pairs, Paths, Tuples, GaussianMixture, Gaussian,
    DiagonalMixture, VonMisesFisherMixture, MultinomialMixture, PublishedMixture, PublishedNystrom, Nystrom, Identity,
    Standardize, Walk, Readout, Device,
]  # fmt: skip


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


def test_an_option_of_what_is_no_component():
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
