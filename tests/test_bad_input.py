"""Bad input of estimators: each error is one clear sentence; odd input works and is never NaN."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import fishergraph as fg
from fishergraph import (
    FisherEmbedding,
    FisherGraphEmbedding,
    FisherSetEmbedding,
    LogisticProbe,
    Paths,
    Structure,
    as_graph,
    config_context,
    learn_anchors,
)
from fishergraph._errors import FishergraphWarning, InputError
from fishergraph.family.gaussian_mixture import GaussianMixtureTheta
from fishergraph.lab.baselines.smoothing import SGC
from models import PUBLISHED, node_model

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 3)).astype(np.float32)
A = sp.csr_array(np.roll(np.eye(8), 1, axis=1))


def small(**changes) -> FisherEmbedding:
    return node_model(**{"n_layers": 2, "n_anchors": 2, "dim": 3, "random_state": 0, "n_jobs": 1, **changes})


def refused(match: str, features=X, graph=A, error=ValueError, **changes) -> None:
    """A component or fit refuses in one line that says `match`, and nothing is left fitted."""
    made = []

    def attempt() -> None:
        made.append(small(**changes))
        made[0].fit(features, graph=graph)

    with pytest.raises(error, match=match) as caught:
        attempt()
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert not any(hasattr(model, "stack_") for model in made)


# --- graphs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("node", [8, 100, -1])
def test_an_endpoint_out_of_range(node):
    index = np.array([[0, 1, node], [1, 2, 3]])
    for graph in (index, (index, np.ones(3))):
        refused(f"edge 2 .{node} -> 3", graph=graph)


@pytest.mark.parametrize("features", [np.float64(1), np.ones(3), 5, "x", []], ids=str)
def test_features_that_are_not_a_matrix(features):
    words = r"Expected 2D array|at least one array or dtype|got the text 'x'; read the file"
    with pytest.raises((ValueError, TypeError), match=words):
        small().fit(features, graph=np.array([[0, 1], [1, 2]]))


def test_weights_that_structural_features_cannot_hold():
    message = "1e-30"
    for features in (None, X):
        refused(message, features=features, graph=A * 1e39, structure="auto", dim=4)


def compressed(indices, indptr, shape=(8, 8)):
    return sp.csr_array((np.ones(len(indices)), np.array(indices), np.array(indptr)), shape=shape)


FUNCTIONS = {
    "sets": lambda bad: FisherSetEmbedding().fit((bad, np.array([0, 3, 8]))),
    "graphs": lambda bad: FisherGraphEmbedding().fit([(bad, nx.path_graph(8))] * 2),
    "probe": lambda bad: LogisticProbe().fit(bad, np.arange(8) % 2, [0, 1, 2, 3], [4, 5]),
    "baseline": lambda bad: SGC().fit(bad, np.arange(8) % 2, graph=A, train=[0, 1, 2, 3], val=[4, 5]),
    "anchors": lambda bad: learn_anchors(bad, 2, rng=0),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_validates_compressed_rows(function):
    with pytest.raises(ValueError, match="indices"):
        FUNCTIONS[function](compressed([0, 1, 2, 3, 4, 5, 6, 2**30], range(9)))


@pytest.mark.parametrize(
    ("indices", "indptr", "words"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 8], range(9), "< 8"),
        ([0, 1, 2, 3, 4, 5, 6, 2**30], range(9), "< 8"),
        ([0, 1, 2, 3, 4, 5, 6, -1], range(9), ">= 0"),
        ([0, 1, 2, 3, 4, 5, 6, 7], [0, 9, 2, 3, 4, 5, 6, 7, 8], "non-decreasing"),
    ],
)
def test_compressed_rows_that_point_outside(indices, indptr, words):
    """SciPy builds such a matrix without a word, and compiled code would read past its end."""
    bad = compressed(indices, indptr)
    for matrix in (bad, bad.T):
        refused(f"graph must .*{words}", graph=matrix)
        refused(f"graph must .*{words}", features=None, graph=matrix)
        refused(f"X must .*{words}", features=matrix)


@pytest.mark.parametrize(("weight", "name"), [(-1.0, "-1"), (np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_weight_that_is_not_valid(weight, name):
    bad = A.copy()
    bad.data[3] = weight
    words = rf"{name} on edge \(3, 4\)"
    refused(words, graph=bad)
    index = np.array([[0, 1, 2], [1, 2, 7]])
    refused("edge 1 -> 2", graph=(index, np.array([1.0, weight, weight])))
    table = pd.DataFrame({"source": [0, 1], "target": [1, 7], "weight": [weight, 1.0]})
    refused("weight", graph=table)


@pytest.mark.filterwarnings("ignore:asked for:UserWarning")
def test_a_weight_beyond_the_features_precision():
    words = "edge weights"
    refused(words, graph=A * 1e300)
    refused(words, graph=A * 1e-300)
    # A path weighs the product of its edges, each of which may be fine.
    refused(words, graph=A * 1e16, multiset=Paths(length=2))
    for weights in (None, "symmetric"):
        for multiset in ("neighbourhood", "open-neighbourhood", "ppr"):
            for scale in (1e30, 1e-30):
                assert np.isfinite(
                    small(multiset__weights=weights, multiset=multiset).fit_transform(X, graph=A * scale)
                ).all()
        assert np.isfinite(small(multiset__weights=weights).fit_transform(X.astype(float), graph=A * 1e290)).all()


@pytest.mark.parametrize("n", [7, 9])
def test_sizes_that_differ(n):
    refused(f"{n} rows", features=np.ones((n, 3)))
    model = small().fit(X, graph=A)
    with pytest.raises(ValueError, match=rf"got {n} rows and 8 nodes"):
        model.transform(np.ones((n, 3)), graph=A)


@pytest.mark.parametrize("graph", [sp.csr_array((0, 0)), np.empty((2, 0), dtype=int)], ids=["matrix", "edge_index"])
@pytest.mark.parametrize("features", [None, np.empty((0, 3))], ids=["none", "empty"])
def test_a_graph_without_nodes(graph, features):
    refused("at least one node", features=features, graph=graph)


def test_a_matrix_that_is_not_square():
    refused("square", graph=sp.csr_array((8, 7)))


def test_objects_that_are_not_graphs():
    refused("SciPy", graph="cora", error=TypeError)
    refused("edge_index", graph=A.toarray())
    refused("float64", graph=np.array([[0.0], [1.0]]), error=TypeError)


# --- features -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array, pd.DataFrame])
def test_a_feature_that_is_not_finite(value, name, kind):
    if kind is pd.DataFrame and name == "NaN":
        pytest.skip("a table with gaps is encoded")
    bad = X.copy()
    bad[[4, 6], [2, 0]] = value
    refused(f"{name} in row 4", features=kind(bad))
    model = small().fit(X, graph=A)
    with pytest.raises(ValueError, match=rf"got {name} in row 4"):
        model.transform(kind(bad), graph=A)


def test_infinities_of_both_signs():
    bad = X.copy()
    bad[[2, 5]] = [[np.inf], [-np.inf]]
    refused("infinity in row 2", features=bad)


@pytest.mark.parametrize("kind", [list, tuple, object, np.longdouble])
def test_numbers_of_python_are_doubles(kind):
    rows = kind(X.astype(np.float64).tolist()) if kind in (list, tuple) else X.astype(kind)
    Z = small().fit_transform(rows, graph=A)
    assert Z.dtype == np.float64
    np.testing.assert_array_equal(Z, small().fit_transform(X.astype(np.float64), graph=A))


def test_a_frame_of_polars_keeps_its_type():
    frame = pytest.importorskip("polars").DataFrame(X.astype(np.float64))
    assert small().fit_transform(frame, graph=A).dtype == np.float64
    assert small().fit_transform(frame.cast(pytest.importorskip("polars").Float32), graph=A).dtype == np.float32


def test_counts_are_not_divided_by_their_lengths():
    refused("largest entry", features=np.abs(X) * np.float32(1e37), family="multinomial")


def test_ids_of_a_table_beside_rows_without_names():
    edges = pd.DataFrame({"source": list("hgfedcba"), "target": list("gfedcbah")})
    message = "name its rows"
    for rows in (X, pd.DataFrame(X), sp.csr_array(X)):
        refused(message, features=rows, graph=edges)
        refused("node_ids=…", features=rows, graph=edges)
    named = pd.DataFrame(X, index=list("hgfedcba"))
    Z = small().fit_transform(named, graph=edges)
    np.testing.assert_array_equal(Z, small().fit_transform(X, graph=as_graph(edges, node_ids=list("hgfedcba"))))
    small().fit(X, graph=pd.DataFrame({"source": range(8), "target": [1, 2, 3, 4, 5, 6, 7, 0]}))  # these count
    gaps = pd.DataFrame({"source": [0, 1, 3], "target": [1, 3, 6]})  # and these, where some rows have no edge
    expected = small().fit_transform(X, graph=as_graph(gaps, n_nodes=8))
    for rows in (X, pd.DataFrame(X)):
        np.testing.assert_array_equal(small().fit_transform(rows, graph=gaps), expected)
    refused("id 9", graph=gaps + 3)


INDEX = np.array([[0, 1, 2], [1, 2, 3]])
TABLE = pd.DataFrame({"source": [0, 1], "target": [2, 3]})


@pytest.mark.parametrize(
    "graph", [A, as_graph(A), INDEX, (INDEX, np.ones(3)), INDEX.tolist(), TABLE, nx.path_graph(8)], ids=type
)
def test_a_graph_instead_of_y(graph):
    for call in (small().fit, small().fit_transform):
        with pytest.raises(TypeError, match="labels"):
            call(X, graph)
    small().fit(X, np.arange(8))
    small().fit(X, list("abcdefgh"))
    for rows in (X[:2], X[:2].tolist(), sp.csr_array(X[:2]), pd.DataFrame(X[:2])):
        small().fit(rows, np.zeros((2, 3)))  # labels of two rows


def test_nothing_to_embed():
    words = "X or graph"
    refused(words, features=None, graph=None, error=TypeError)


def test_extreme_features_without_normalisation():
    for scale in (1e20, 1e-20):
        for kind in (np.asarray, sp.csr_array):
            refused(
                r"largest entry",
                features=kind(X * np.float32(scale)),
                normalize=False,
            )
    Z = small(normalize=False).fit_transform(X.astype(np.float64) * 1e20, graph=A)  # float64 can represent it
    assert np.isfinite(Z).all()


# --- parameters -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("em__e_step", ["posterior"]),
        ("em__init", ["kmeans", "spherical", "em", "random"]),
        ("multiset", ["neighbourhood", "open-neighbourhood", "ppr", "heat", "s2gc"]),
        ("multiset__weights", ["uniform", "symmetric"]),
        ("kernel", ["exp", "identity"]),
        ("structure", ["factors", "spectral", "projection", "local", "degree"]),
        ("device", ["cpu", "cuda", "cuda:1"]),
        ("device__precision", ["float32", "tf32", "bf16"]),
    ],
)
@pytest.mark.parametrize("value", ["typo", 3])
def test_an_unknown_name_lists_the_known_ones(name, known, value):
    for features, graph in ((X, A), (X, None)):
        words = ".*".join(map(repr, known))
        refused(f"{words}.*got {value!r}", features=features, graph=graph, error=InputError, **{name: value})


@pytest.mark.parametrize("value", ["typo", 3])
def test_an_unknown_engine_lists_the_known_ones(value):
    with pytest.raises(InputError, match=r"'numba'.*'scipy'") as caught, config_context(engine=value):
        small().fit(X, graph=A)
    assert caught.value.value == value


@pytest.mark.parametrize("name", ["n_layers", "em__n_iter", "n_anchors", "dim", "em__max_samples"])
@pytest.mark.parametrize("value", [-1, 1.5, "2", None, True, np.nan])
def test_counts_are_integers(name, value):
    least = 0 if name in ("n_layers", "em__n_iter") else 1
    refused(f"{name.split('__')[-1]} must.*{least}", error=InputError, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("n_anchors", 0, "n_anchors"),
        ("dim", 0, "dim"),
        ("family__variance", 0, "variance"),
        ("family__variance", "atuo", "variance"),
        ("family__variance", np.inf, "variance"),
        ("family__sharpness", 0, "sharpness"),
        ("family__sharpness", 1.1, "sharpness"),
        ("em__prior", -0.1, "prior"),
        ("em__prior", None, "prior"),
        ("kernel__bandwidth", 0.0, "bandwidth"),
        ("kernel__bandwidth", np.nan, "bandwidth"),
        ("block_weights", [1, 2], "5 weights"),
        ("block_weights", [0, 0, 0, 0, 0], "block_weights"),
        ("block_weights", [1, -1, 1, 1, 1], "block weight"),
        ("block_weights", [1, np.nan, 1, 1, 1], "block weight"),
        ("n_jobs", 0, "n_jobs"),
        ("n_jobs", "all", "n_jobs"),
        ("normalize", "no", "normalize"),
        ("counts", 1, "counts"),
        ("multiset__undirected", None, "undirected"),
    ],
)
def test_wrong_values(name, value, words):
    refused(words, **{name: value})


def test_parameters_that_do_not_go_together():
    refused("em .*spherical", em__init="spherical", normalize=False)
    with config_context(engine="scipy"):
        refused("scipy", em__n_iter=2)
    refused("structure must be given", features=None)
    with pytest.raises(InputError, match="n_factors"):  # three columns of the projection are degrees
        Structure("projection", n_factors=3)


# --- odd, but fine --------------------------------------------------------------------------------------


def quiet(model: FisherEmbedding, features, graph) -> tuple[np.ndarray, list[str]]:
    """The embedding, finite, and the warnings it gave, which are all ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Z = model.fit_transform(features, graph=graph)
        again = model.transform(features, graph=graph)
    messages = [str(warning.message) for warning in caught]
    assert all(message.startswith(("asked for ", "X has one feature")) for message in messages), messages
    assert np.isfinite(Z).all()
    np.testing.assert_array_equal(Z, again)
    return Z, messages


@pytest.mark.parametrize("multiset", ["neighbourhood", "open-neighbourhood", "ppr", "heat", "s2gc"])
@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
def test_a_graph_without_edges(multiset, rule):
    Z, _ = quiet(small(multiset=multiset, **rule), X, sp.csr_array((8, 8)))
    alone = small(**rule).fit_transform(X)
    if multiset == "neighbourhood":
        np.testing.assert_array_equal(Z, alone)  # every node is its own neighbourhood
    elif multiset != "open-neighbourhood":
        np.testing.assert_allclose(Z, alone, atol=2e-5)  # the weight of the only member hardly matters
    else:
        layers = slice(3, None if rule else -6)  # between ψ_0 and walks, which end where they begin
        np.testing.assert_allclose(np.delete(Z, layers, axis=1), np.delete(alone, layers, axis=1), atol=2e-5)
        assert not Z[:, layers].any()


@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
def test_one_node(rule):
    for graph in (sp.csr_array((1, 1)), sp.csr_array(np.ones((1, 1))), None):
        _, messages = quiet(small(**rule), X[:1], graph)
        assert any("only 1 distinct points" in message for message in messages)
    assert np.isfinite(small(dim=4).fit(X).transform(X[:1])).all()


@pytest.mark.parametrize("structure", ["projection", "degree", "spectral", "factors", "local"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_structure_of_a_graph_without_edges(structure, n):
    """One warning of a call says all there is to say."""
    model, empty = small(structure=structure, dim=5), sp.csr_array((n, n))
    for call in (model.fit_transform, model.transform):
        with pytest.warns(FishergraphWarning, match="no edges") as issued:
            Z = call(None, graph=empty)
        assert len(issued) == 1
        assert (Z[0] == Z).all()
        assert np.isfinite(Z).all()
    with pytest.warns(FishergraphWarning, match="no edges") as issued:
        small(structure=structure, n_anchors=1, dim=n).fit(X[:n], graph=empty)
    assert len(issued) == 1


def test_the_default_structure_warns_of_nothing_beside_features():
    for graph in (A, sp.csr_array((8, 8)), nx.path_graph(8), nx.complete_graph(8), nx.star_graph(7)):
        expected = quiet(FisherEmbedding(dim=8, structure=None, random_state=0), X, graph)[1]
        assert quiet(FisherEmbedding(dim=8, random_state=0), X, graph)[1] == expected
    model = FisherEmbedding(dim=8, random_state=0).fit(X, graph=sp.csr_array((8, 8)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(X, graph=A)
        FisherEmbedding(dim=8, random_state=0).fit(X, graph=A).transform(X, graph=sp.csr_array((8, 8)))


def test_structure_of_other_nodes_says_so_once():
    nodes, others = nx.gnm_random_graph(60, 150, seed=1), nx.gnm_random_graph(60, 150, seed=2)
    features = np.random.default_rng(0).normal(size=(60, 4))
    for structure in ("auto", Structure(("factors", "spectral", "local"))):
        model = FisherEmbedding(1, dim=8, structure=structure, random_state=0).fit(features, graph=nodes)
        with pytest.warns(FishergraphWarning, match="not those of the fit") as issued:
            Z = model.transform(features, graph=others)
        assert len(issued) == 1
        names = model.get_feature_names_out()
        assert np.ptp(Z[:, [name.startswith(("factors", "spectral")) for name in names]], axis=0).max() == 0
        assert np.ptp(Z[:, [name.startswith("local") for name in names]], axis=0).min() > 0


@pytest.mark.parametrize("rule", [{}, PUBLISHED], ids=["posterior", "published"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("value", [0.0, 2.0])
def test_constant_features(value, sparse, normalize, rule):
    constant = np.full((8, 3), value)
    Z, messages = quiet(small(**rule, normalize=normalize), sp.csr_array(constant) if sparse else constant, A)
    assert any("distinct points" in message for message in messages)
    assert (Z[0] == Z).all()
    assert Z[:, 0].any() == (value != 0)


def test_too_few_distinct_points_warn_and_are_used():
    few = np.eye(3)[np.arange(8) % 2]
    model = small(n_layers=1, n_anchors=4, dim=6)
    Z, messages = quiet(model, few, sp.csr_array((8, 8)))
    assert "asked for 6 landmarks, but the data hold only 2 distinct points: 2 are used." in messages
    assert "asked for 4 anchors, but the data hold only 2 distinct points: 2 are used." in messages
    blocks = ("psi0", "psi1", "walk", "smooth")
    assert list(model.get_feature_names_out()) == [f"{block}_{k}" for block in blocks for k in range(2)]
    assert Z.shape == (8, 8)
    np.testing.assert_allclose(Z[0], Z[2], atol=1e-12)
    assert np.abs(Z[0] - Z[1]).max() > 0.1


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [1e20, 1e-20, 1e-30, 1e37])
def test_normalised_features_of_any_scale(scale, kind):
    expected = small().fit_transform(X, graph=A)
    Z, _ = quiet(small(), kind((X * np.float32(scale)).astype(np.float32)), A)
    np.testing.assert_allclose(Z, expected, atol=1e-4)


@st.composite
def odd_graphs(draw):
    """(n, A): isolated nodes, self-loops, several components, parallel and directed edges, odd weights."""
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=14))
    weight = st.sampled_from([1.0, 1.0, 0.0, 0.5, 1e-6, 1e6])
    weights = [draw(weight) for _ in edges]
    rows, columns = np.array(edges, dtype=int).reshape(-1, 2).T
    return n, sp.coo_array((weights, (rows, columns)), shape=(n, n))


@st.composite
def odd_features(draw, n):
    """Zero rows, doubled rows, constant columns, rows of very different scales."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    features = generator.normal(size=(n, generator.integers(1, 5)))
    features[:, 0] = generator.choice([0.0, 1.0, features[0, 0]])
    features[generator.integers(n, size=n // 2)] = features[0]
    features[generator.random(n) < generator.choice([0, 0, 0.3, 1])] = 0
    scales = ([1.0], [1e20], [1e-20], [1e20, 1.0, 1e-20])[generator.integers(4)]
    features = features * generator.choice(scales, size=(n, 1))
    features = features.astype(generator.choice(["float32", "float64"]))
    return sp.csr_array(features) if generator.random() < 0.5 else features


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_degenerate_graphs_and_features_stay_finite(data):
    n, graph = data.draw(odd_graphs())
    features = data.draw(odd_features(n))
    rule = data.draw(st.sampled_from([{}, PUBLISHED]))
    model = small(
        n_layers=data.draw(st.integers(0, 2)),
        multiset=data.draw(st.sampled_from(["neighbourhood", "open-neighbourhood", "ppr", "s2gc"])),
        multiset__weights=data.draw(st.sampled_from([None, "uniform", "symmetric"])),
        em__n_iter=data.draw(st.sampled_from([1, 1, 3])),
        em__init=data.draw(st.sampled_from(["kmeans", "spherical", "em"])),
        counts=data.draw(st.booleans()),
        em__prior=data.draw(st.sampled_from([0.0, 1.0])),
        multiset__undirected=data.draw(st.booleans()),
        **{"kernel": data.draw(st.sampled_from(["exp", "exp", "identity"])), **rule},
    )
    quiet(model, features, graph)


def test_one_normalised_feature_warns_that_only_its_sign_is_left():
    x = np.linspace(-1, 1, 30, dtype=np.float32)[:, None]
    with pytest.warns(UserWarning, match="normalize=False"):
        FisherEmbedding(dim=4).fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FisherEmbedding(dim=4, n_anchors=1, normalize=False, n_layers=0).fit(np.hstack([x, x**2]))


# --- parameters of no size --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("n_layers", 10**9, "at most 1000"),
        ("n_layers", 2**70, "at most 1000"),
        ("n_anchors", 2**70, "n_anchors"),
        ("dim", 10**30, "dim"),
        ("em__n_iter", 10**9, "n_iter"),
        ("random_state", 2**32, "random_state"),
        ("random_state", -1, "random_state"),
        ("block_weights", [1e300, 1, 1, 1, 1], "block_weights"),
    ],
)
def test_parameters_of_no_size_are_refused_before_any_work(name, value, words):
    refused(words, **{name: value})


@pytest.mark.parametrize(("name", "enough"), [("dim", 8), ("n_anchors", 8), ("em__max_samples", 300)])
def test_more_than_the_data_hold_is_what_they_hold(name, enough):
    """A width of 10⁹ is not allocated where eight rows give eight landmarks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few, many = (small(**{name: value}).fit(X, graph=A) for value in (enough, 2**31 - 1))
    np.testing.assert_array_equal(few.transform(X, graph=A), many.transform(X, graph=A))
    np.testing.assert_array_equal(few.fit_transform(X, graph=A), many.transform(X, graph=A))


def test_a_wider_dim_after_the_fit_is_refused_and_allocates_nothing():
    model = small().fit(X, graph=A)
    with pytest.raises(InputError) as caught:
        model.set_params(dim=2**31 - 1).transform(X, graph=A)
    assert caught.value.parameter == "dim"


def test_widths_that_grow_without_end_are_counted_before():
    with pytest.raises(MemoryError, match="memory"):
        small(kernel="identity", n_layers=60).fit_transform(X, graph=A)


def test_numbers_that_leave_their_range_are_refused():
    points = X.astype(np.float32)
    for call in (
        lambda: learn_anchors(points * np.float32(1e20), 2, rng=0),
        lambda: learn_anchors(points, 2, variance=1e-300, rng=0),
        lambda: fg.learn_family(fg.DiagonalMixture(), points * np.float32(1e20), 2, rng=0),
        lambda: fg.fisher_embedding(points[None] * np.float32(1e30), points),
        lambda: fg.tangent_kernel(1e160 * np.ones((2, 8, 3)), np.ones((2, 8, 3)), np.zeros((8, 3))),
        lambda: fg.set_lipschitz_constant(points, variance=1e-300, radius=1e300),
        lambda: fg.kl_divergence(GaussianMixtureTheta(points, 1e-300), GaussianMixtureTheta(points, 1.0)),
    ):
        with pytest.raises(ValueError, match=r"entries of at most|must lie between|within the range"):
            call()


@pytest.mark.parametrize("ids", [3, 1e30, "abc", object(), np.array(3)], ids=lambda bad: type(bad).__name__)
def test_ids_that_list_nothing(ids):
    for graph in (nx.path_graph(3), pd.DataFrame({"source": [0, 1], "target": [1, 2]})):
        with pytest.raises(TypeError, match="node_ids"):
            as_graph(graph, node_ids=ids)


def test_a_number_of_nodes_beyond_memory():
    with pytest.raises(MemoryError, match="offsets"):
        as_graph(np.array([[0], [1]]), n_nodes=2**39)
    with pytest.raises(ValueError, match="n_nodes"):
        as_graph(np.array([[0], [1]]), n_nodes=2**70)
