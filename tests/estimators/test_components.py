"""Components inside estimators: nested names, and parameters that are changed after the fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from fishergraph import (
    EM,
    DiagonalMixture,
    FisherEmbedding,
    FisherGraphEmbedding,
    FisherSetEmbedding,
    GaussianMixture,
    Hops,
    Neighbourhood,
    Nystrom,
    Readout,
    Walk,
)
from fishergraph._errors import InputError, InputTypeError

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3))
A = sp.random_array((12, 12), density=0.3, rng=rng, format="csr")
SETS = [rng.normal(size=(n, 3)) for n in (3, 2, 4, 5)]
GRAPHS = [(rng.normal(size=(n, 2)), np.array([[0, 1], [1, 0]])) for n in (3, 4, 2)]


class Nodes:
    """Uses of a node embedding."""

    @staticmethod
    def model(**changes):
        return FisherEmbedding(**{"n_layers": 1, "n_anchors": 2, "dim": 3, "random_state": 0, **changes})

    @staticmethod
    def fit(model):
        return model.fit(X, graph=A)

    @staticmethod
    def transform(model):
        return model.transform(X, graph=A)


class Sets:
    """Uses of a set embedding."""

    @staticmethod
    def model(**changes):
        return FisherSetEmbedding(**{"n_anchors": 2, "dim": 3, "random_state": 0, **changes})

    @staticmethod
    def fit(model):
        return model.fit(SETS)

    @staticmethod
    def transform(model):
        return model.transform(SETS)


class Graphs:
    """Uses of a graph embedding."""

    @staticmethod
    def model(**changes):
        nodes = FisherEmbedding(n_layers=1, n_anchors=2, dim=3)
        return FisherGraphEmbedding(
            **{"nodes": nodes, "readout": Readout(n_anchors=2, dim=3), "random_state": 0, **changes}
        )

    @staticmethod
    def fit(model):
        return model.fit(GRAPHS)

    @staticmethod
    def transform(model):
        return model.transform(GRAPHS)


CHANGES = [
    (Nodes, {"n_layers": 2}, "n_layers"),
    (Nodes, {"n_anchors": 3}, "n_anchors"),
    (Nodes, {"dim": 4}, "dim"),
    (Nodes, {"multiset": "hops"}, "multiset"),
    (Nodes, {"multiset__weights": "uniform"}, "multiset"),
    (Nodes, {"multiset__closed": False}, "multiset"),
    (Nodes, {"family__sharpness": 0.3}, "family"),
    (Nodes, {"em__prior": 2.0}, "em"),
    (Nodes, {"kernel__bandwidth": 2.0}, "kernel"),
    (Nodes, {"walk": None}, "walk"),
    (Nodes, {"walk__teleport": 0.3}, "walk"),
    (Nodes, {"structure": "degree"}, "structure"),
    (Nodes, {"structure": None}, "structure"),
    (Nodes, {"structure__n_factors": 5}, "structure"),
    (Nodes, {"normalize": False}, "normalize"),
    (Nodes, {"counts": True}, "counts"),
    (Sets, {"n_anchors": 3}, "n_anchors"),
    (Sets, {"input_map": "identity"}, "input_map"),
    (Sets, {"family": "gaussian"}, "family"),
    (Sets, {"em__n_iter": 2}, "em"),
    (Sets, {"kernel": "identity"}, "kernel"),
    (Sets, {"normalize": True}, "normalize"),
    (Sets, {"counts": True}, "counts"),
    (Graphs, {"nodes__n_layers": 2}, "nodes.n_layers"),
    (Graphs, {"nodes__multiset": "hops"}, "nodes.multiset"),
    (Graphs, {"nodes__em__n_iter": 2}, "nodes.em"),
    (Graphs, {"nodes__walk": None}, "nodes.walk"),
    (Graphs, {"nodes__block_weights": [1, 0, 1, 1]}, "nodes.block_weights"),
    (Graphs, {"readout__unit": True}, "readout.unit"),
    (Graphs, {"readout__family__sharpness": 0.3}, "readout.family"),
    (Graphs, {"readout": "means"}, "readout.n_anchors"),
    (Graphs, {"inputs": "degrees"}, "inputs"),
    (Graphs, {"inputs": ["features"]}, "inputs"),
]


@pytest.mark.parametrize(("use", "change", "parameter"), CHANGES, ids=str)
def test_a_parameter_changed_after_the_fit(use, change, parameter):
    model = use.fit(use.model())
    before = use.transform(model)
    old = clone(model).get_params(deep=False)
    model.set_params(**change)
    with pytest.raises(InputError) as error:
        use.transform(model)
    assert error.value.parameter == parameter
    np.testing.assert_array_equal(use.transform(model.set_params(**old)), before)


def test_the_weights_of_the_stages_may_change():
    model = Nodes.fit(Nodes.model())
    columns = Nodes.transform(model)
    kept = [not name.startswith("walk") for name in model.get_feature_names_out()]
    np.testing.assert_array_equal(Nodes.transform(model.set_params(block_weights={"walk": 0})), columns[:, kept])
    weights = [1, 1, 0, 1, 0.1, 0.1]  # psi0, psi1, walk, smooth, factors, local
    np.testing.assert_array_equal(Nodes.transform(model.set_params(block_weights=weights)), columns[:, kept])
    louder = Nodes.transform(model.set_params(block_weights=None, structure__weight=0.4))
    structural = [name.startswith(("factors", "local")) for name in model.get_feature_names_out()]
    np.testing.assert_allclose(louder, np.where(structural, 2 * columns, columns), rtol=1e-12)


@pytest.mark.parametrize("use", [Nodes, Sets, Graphs])
def test_how_a_model_runs_may_change(use):
    model = use.fit(use.model())
    before = use.transform(model)
    after = use.transform(model.set_params(n_jobs=2, verbose=False, random_state=5, device="cpu"))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("use", "changes"),
    [
        (Nodes, {"multiset": GaussianMixture()}),
        (Nodes, {"multiset": Hops}),
        (Nodes, {"family": Hops()}),
        (Nodes, {"em": Walk()}),
        (Nodes, {"em": {"n_iter": 2}}),
        (Nodes, {"kernel": EM()}),
        (Nodes, {"walk": Neighbourhood()}),
        (Nodes, {"device": Nystrom()}),
        (Sets, {"family": Nystrom()}),
        (Sets, {"input_map": DiagonalMixture()}),
        (Sets, {"em": EM}),
        (Graphs, {"nodes": FisherSetEmbedding()}),
        (Graphs, {"nodes": FisherEmbedding}),
        (Graphs, {"nodes": FisherEmbedding(n_jobs=2)}),
        (Graphs, {"nodes": FisherEmbedding(verbose=np.array([True, False]))}),
        (Graphs, {"readout": GaussianMixture()}),
        (Graphs, {"readout": FisherEmbedding()}),
    ],
    ids=str,
)
def test_a_component_of_the_wrong_kind(use, changes):
    with pytest.raises((InputError, InputTypeError)):
        use.fit(use.model(**changes))


def test_a_graph_is_read_after_every_stage_of_nodes_with_a_walk():
    model = Graphs.model(nodes=FisherEmbedding(n_layers=1, n_anchors=2, dim=3, walk=0.2))
    Z = model.fit_transform(GRAPHS)
    np.testing.assert_array_equal(Z, model.transform(GRAPHS))
    names = {name.partition("_")[0] for name in model.get_feature_names_out()}
    assert names == {"phi0", "phiwalk", "phi1", "phismooth"}


@pytest.mark.parametrize("em", [EM(n_iter=2), EM(e_step="balanced"), EM(n_iter=0)])
@pytest.mark.parametrize("family", ["gaussian-mixture", "diagonal-mixture"])
def test_counts_of_a_readout_after_any_e_step(em, family):
    model = Graphs.model(readout=Readout(n_anchors=2, reading="counts", family=family, em=em))
    Z = model.fit_transform(GRAPHS)
    assert np.isfinite(Z).all()
    np.testing.assert_array_equal(Z, model.transform(GRAPHS))


def test_sets_that_are_fewer_or_more_than_their_members():
    empty = [np.zeros((0, 3))] * 30
    for sets in (SETS, [*SETS, *empty]):
        model = Sets.model(kernel="identity")
        Z = model.fit_transform(sets)
        assert Z.shape == (len(sets), 6)
        np.testing.assert_array_equal(Z, model.transform(sets))


def test_memory_is_counted_for_members_and_for_sets(monkeypatch):
    counted = []
    monkeypatch.setattr("fishergraph.costs.check_host_memory", lambda needed, *words: counted.append(needed))
    n_members, width = sum(map(len, SETS)), 3
    Sets.model(n_anchors=10, kernel="identity").fit(SETS).transform(SETS)
    assert counted == [8 * len(SETS) * 10 * width] * 2  # φ of the sets
    counted.clear()
    Sets.model(n_anchors=1, kernel="identity").fit(SETS)
    assert counted == [8 * n_members * width]  # the members


@pytest.mark.parametrize("passed", [False, True])
def test_parameters_of_nodes_are_set_on_a_copy(passed):
    nodes = FisherEmbedding(n_layers=1, walk=None)
    model = FisherGraphEmbedding() if passed else FisherGraphEmbedding(nodes=nodes)
    model.set_params(nodes__dim=16, **({"nodes": nodes} if passed else {}))
    assert (model.nodes.n_layers, model.nodes.dim) == (1, 16)
    assert nodes.dim == FisherEmbedding().dim
    assert FisherGraphEmbedding().set_params(nodes__dim=16).nodes.n_layers == 3
