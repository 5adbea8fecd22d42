"""FisherGraphEmbedding: what a graph's row is, what it tells apart, scikit-learn's habits, files, bad input."""

from __future__ import annotations

import pickle
import warnings

import networkx as nx
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import reference as ref
import reference_graphs as ref_graphs
from fishergraph import EM, FisherEmbedding, FisherGraphEmbedding, Paths, Readout, Tuples, as_graphs, config_context
from fishergraph._errors import InputError
from fishergraph.em.kmeans import unit_rows
from fishergraph.estimators.graph_input import cores_of
from fishergraph.estimators.graphs import default_nodes
from models import graph_model

rng = np.random.default_rng(0)


def tagged(graph: nx.Graph, seed: int, n_tags: int = 3) -> nx.Graph:
    draw = np.random.default_rng(seed)
    nx.set_node_attributes(graph, {v: int(draw.integers(n_tags)) for v in graph}, "label")
    return graph


LIST = [tagged(nx.gnp_random_graph(int(n), 0.3, seed=int(n)), k) for k, n in enumerate(rng.integers(5, 15, size=20))]
GRAPHS = as_graphs(LIST)


def small(**changes) -> FisherGraphEmbedding:
    return graph_model(
        **{
            "nodes__n_layers": 2,
            "nodes__n_anchors": 3,
            "nodes__dim": 16,
            "readout__n_anchors": 8,
            "random_state": 0,
            **changes,
        }
    )


def options(model: FisherGraphEmbedding) -> dict:
    """The parameters, those of the nodes by their nested names alone: estimators are equal to themselves only."""
    return {name: value for name, value in model.get_params().items() if name != "nodes"}


# --- what a row is ----------------------------------------------------------------------------------------


def test_with_hard_assignment_stage_0_counts_the_tags():
    model = small(nodes__n_layers=0, inputs="tags", readout__family__sharpness=1e-6)
    Z = model.fit_transform(LIST)
    expected = [
        [np.log1p(counts.get(tag, 0)) for tag in range(3)]
        for counts in ref_graphs.histogram(GRAPHS.tags.tolist(), GRAPHS.graph_ptr.tolist())
    ]
    # Anchors have an order of their own.
    np.testing.assert_allclose(np.sort(Z, axis=1), np.sort(expected, axis=1), atol=1e-5)


def test_a_block_is_the_soft_histogram_of_the_nodes_of_a_stage():
    model = small(nodes__n_layers=1)
    Z = model.fit_transform(LIST)
    points = unit_rows(model.stack_.input_map(unit_rows(model.code_(GRAPHS))))
    layer, pointer = model.stack_.layers[0], GRAPHS.graph_ptr.tolist()
    near = [
        [(u, 1.0) for u in sorted({v, *GRAPHS.graph.indices[GRAPHS.graph.indptr[v] : GRAPHS.graph.indptr[v + 1]]})]
        for v in range(GRAPHS.n_nodes)
    ]
    means, mass = ref.em_means(points.astype(float), near, layer.theta.anchors.astype(float), layer.theta.variance)
    phi = ref.fisher_embedding(means, layer.theta.anchors.astype(float))
    next_points = unit_rows(layer.kernel_map(np.hstack([phi, ref.soft_counts(mass)])))
    blocks = [
        ref_graphs.soft_histogram(
            np.asarray(stage, float), pointer, readout.theta.anchors.astype(float), readout.theta.variance
        )
        for stage, readout in zip((points, next_points), model.readouts_, strict=True)
    ]
    np.testing.assert_allclose(Z, np.hstack(blocks), rtol=2e-3, atol=2e-3)


def test_node_stages_are_those_of_fisher_embedding():
    """The points of the last stage are ψ_T of the union: a readout with one component and "means" is their mean."""
    model = small(readout__reading="means", readout__n_anchors=1, nodes__em__prior=0.0, inputs="tags")
    Z = model.fit_transform(LIST)
    nodes = default_nodes().set_params(n_layers=2, n_anchors=3, dim=16, structure=None, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes.fit(model.code_(GRAPHS).toarray(), graph=GRAPHS.graph)
    nodes.stack_ = model.stack_
    psi = nodes.set_params(block_weights=(0, 0, 1)).transform(model.code_(GRAPHS).toarray(), graph=GRAPHS.graph)
    means = np.add.reduceat(unit_rows(psi), GRAPHS.graph_ptr[:-1]) / np.diff(GRAPHS.graph_ptr)[:, None]
    np.testing.assert_allclose(Z[:, -psi.shape[1] :], means - model.readouts_[-1].theta.anchors, atol=1e-5)


def test_readouts_have_more_components_for_more_graphs():
    widths = [Readout().layer(EM(), n_graphs).n_anchors for n_graphs in (1, 2048, 3000, 10_000)]
    assert widths == [128, 128, 187, 256]
    assert Readout(n_anchors=7).layer(EM(), 10_000).n_anchors == 7


def test_readouts_choose_their_width_in_fit(tmp_path):
    graphs = [nx.gnp_random_graph(12, 0.3, seed=k) for k in range(40)]
    model = FisherGraphEmbedding(random_state=0)
    Z = model.fit_transform(graphs)
    assert max(len(readout.theta.anchors) for readout in model.readouts_) == 128
    np.testing.assert_array_equal(model.transform(graphs[:3]), Z[:3])
    model.save(tmp_path / "model.fg")
    np.testing.assert_array_equal(FisherGraphEmbedding.load(tmp_path / "model.fg").transform(graphs), Z)


def test_weights_are_the_roots_of_the_normalised_masses():
    counts, weights = (small(readout__reading=readout).fit_transform(LIST) for readout in ("counts", "weights"))
    block = np.expm1(counts[:, -8:])
    np.testing.assert_allclose(weights[:, -8:], np.sqrt(block / block.sum(axis=1, keepdims=True)), atol=1e-4)
    np.testing.assert_allclose(np.sum(weights[:, -8:] ** 2, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{"nodes__em__e_step": "balanced"}, {"nodes__em__n_iter": 2}, {"nodes__em__e_step": "unbalanced"}]
)
def test_masses_alone_are_those_beside_the_means(options):
    alone, both = (small(readout__reading=readout, **options).fit_transform(LIST) for readout in ("counts", "both"))
    np.testing.assert_allclose(alone[:, -8:], both[:, -8:], atol=1e-5)


def test_widths_weights_and_unit_blocks():
    model = small(nodes__block_weights=(0, 1, 4), readout__reading="both", readout__n_anchors=2)
    Z = model.fit_transform(LIST)
    widths = [2 * (model.stack_.widths[t] + 1) for t in (1, 2)]
    assert Z.shape == (20, sum(widths))
    assert model.readouts_[0] is None
    assert model.get_feature_names_out()[[0, -1]].tolist() == ["phi1_0", f"phi2_{widths[1] - 1}"]
    unit = small(nodes__block_weights=(0, 1, 4), readout__unit=True).fit_transform(LIST)
    np.testing.assert_allclose(np.sum(unit[:, -8:] ** 2, axis=1), 4, rtol=1e-5)
    mapped = small(readout__kernel="exp", readout__dim=5).fit(LIST)
    assert mapped.transform(LIST).shape == (20, 15)
    assert mapped.get_feature_names_out()[-1] == "psi2_4"


# --- what is the same, and what differs -------------------------------------------------------------


def test_a_graph_has_its_row_among_any_others_and_in_any_order():
    model = small().fit(LIST)
    Z = model.transform(LIST)
    np.testing.assert_allclose(model.transform([LIST[7]]), Z[[7]], atol=3e-5)
    np.testing.assert_allclose(model.transform(GRAPHS[[5, 2, 5]]), Z[[5, 2, 5]], atol=3e-5)


def test_names_of_nodes_do_not_matter():
    model = small().fit(LIST)
    order = np.random.default_rng(1).permutation(len(LIST[3]))
    renamed = nx.relabel_nodes(LIST[3], dict(enumerate(order.tolist())))
    np.testing.assert_allclose(model.transform([renamed]), model.transform([LIST[3]]), atol=1e-5)


def test_neighbourhoods_do_not_tell_six_cycles_from_triangles_but_tuples_do():
    hexagon, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    graphs = [hexagon, triangles, nx.path_graph(6), nx.star_graph(5), nx.complete_graph(6)]
    plain = small().fit_transform(graphs)
    np.testing.assert_allclose(plain[0], plain[1], atol=1e-5)
    assert np.abs(plain[0] - plain[2]).max() > 0.1
    tuples = small(nodes__multiset=Tuples(k=2)).fit_transform(graphs)
    assert np.abs(tuples[0] - tuples[1]).max() > 0.1


def test_counts_enter_tuples_as_they_are():
    """Whether or not points are made unit vectors, a member has whole counts: its tags, its degrees, its type."""
    graphs = [tagged(nx.gnp_random_graph(7, 0.4, seed=seed), seed) for seed in range(6)]
    options = {"nodes__multiset": Tuples(k=2, s=1), "nodes__family": "multinomial", "nodes__n_layers": 1}
    trials = [
        small(**options, nodes__normalize=unit).fit(graphs).stack_.layers[0].theta.trials for unit in (True, False)
    ]
    assert trials[0] == pytest.approx(trials[1])


def test_two_copies_of_a_graph_differ_from_one_by_counts_alone():
    twice = [nx.disjoint_union(graph, graph) for graph in LIST]
    counts, weights = (small(readout__reading=readout).fit(LIST) for readout in ("counts", "weights"))
    assert np.abs(counts.transform(LIST) - counts.transform(twice)).max() > 0.1
    np.testing.assert_allclose(weights.transform(LIST), weights.transform(twice), atol=1e-4)


def test_edge_tags_are_seen():
    single, double = nx.path_graph(3), nx.path_graph(3)
    nx.set_edge_attributes(single, 1, "label")
    nx.set_edge_attributes(double, {(0, 1): 1, (1, 2): 2}, "label")
    seen, unseen = (small(inputs=inputs).fit_transform([single, double]) for inputs in ("auto", "degrees"))
    assert np.abs(seen[0] - seen[1]).max() > 0.1
    np.testing.assert_allclose(unseen[0], unseen[1], atol=1e-6)


# --- habits -----------------------------------------------------------------------------------------------


def test_fit_then_transform_is_fit_transform_at_any_number_of_threads():
    one = small(n_jobs=1).fit_transform(LIST)
    np.testing.assert_array_equal(one, small(n_jobs=2).fit(GRAPHS).transform(LIST))
    assert one.dtype == np.float32


def test_clone_pickle_and_params():
    model = small(nodes__multiset="pairs").fit(LIST)
    assert options(clone(model)) == options(model)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(LIST), model.transform(LIST))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"readout__reading": "both", "readout__kernel": "exp", "readout__dim": 6},
        {"nodes__block_weights": (1, 0, 1), "nodes__family": "diagonal-mixture", "readout__family": "von-mises-fisher"},
        {"inputs": ("cores", "degrees")},
        {"inputs": ("features", "tags", "degrees", "edge-tags"), "nodes__multiset": Tuples(k=2, s=1)},
    ],
)
def test_a_file_keeps_every_bit(tmp_path, changes):
    entries = []
    for k, graph in enumerate(LIST):
        edges = np.array(graph.edges).reshape(-1, 2).T
        edges = np.hstack([edges, edges[::-1]])
        X = np.random.default_rng(k).normal(size=(len(graph), 2)).astype(np.float32)
        tags = ["C" if tag else "N" for tag in nx.get_node_attributes(graph, "label").values()]
        entries.append({"graph": edges, "X": X, "tags": tags, "edge_tags": edges.sum(axis=0) % 2})
    model = small(**changes).fit(entries)
    model.save(tmp_path / "model.safetensors")
    again = FisherGraphEmbedding.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.transform(entries), model.transform(entries))
    with pytest.raises(ValueError, match="FisherGraphEmbedding"):
        FisherEmbedding.load(tmp_path / "model.safetensors")


@pytest.mark.parametrize("graphs", ["list", "Graphs"])
def test_cross_validation_of_a_pipeline(graphs):
    easy = [nx.cycle_graph(n) for n in range(4, 16)] + [nx.path_graph(n) for n in range(4, 16)]
    y = np.repeat([0, 1], 12)
    given = easy if graphs == "list" else as_graphs(easy)
    pipeline = make_pipeline(small(), SVC(C=10))
    assert cross_val_score(pipeline, given, y, cv=4).mean() > 0.9


def test_progress_is_reported_and_nothing_warns():
    titles = []

    class Bar:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, n):
            pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(verbose=lambda title, steps: titles.append(title) or Bar()).fit_transform(LIST)
    parts = ["input map", "graphs, stage 0", "layer 1/2", "graphs, stage 1", "layer 2/2", "graphs, stage 2"]
    assert titles == [title for part in parts for title in (f"learning {part}", part)]


def test_tensors_do_the_same_work():
    pytest.importorskip("torch")
    with config_context(engine="torch"):
        model = small(nodes__n_layers=1).fit(LIST)
        here = model.transform(LIST)
    np.testing.assert_allclose(model.transform(LIST), here, atol=1e-3)


# --- what transform has not seen, and bad input -----------------------------------------------------------


def test_unseen_tags_and_degrees():
    model = small(nodes__n_layers=0, inputs=("tags", "degrees"), readout__family__sharpness=1e-6).fit(
        [tagged(nx.path_graph(4), 0, 1), tagged(nx.star_graph(5), 1, 1)]  # degrees 1, 2, 5; tag 0
    )
    star = tagged(nx.star_graph(9), 0, 1)
    coded = model.code_(as_graphs([star])).toarray()
    np.testing.assert_array_equal(coded[0], [1, 0, 0, 1])  # 9 counts as 5
    strange = nx.path_graph(2)
    nx.set_node_attributes(strange, 77, "label")
    np.testing.assert_array_equal(model.code_(as_graphs([strange])).toarray()[0], [0, 1, 0, 0])
    assert np.isfinite(model.transform([star, strange])).all()


def test_an_unseen_tag_has_no_direction_and_is_none():
    model = small(inputs="tags", nodes__family="von-mises-fisher").fit(LIST)
    strange = nx.path_graph(2)
    nx.set_node_attributes(strange, 77, "label")
    assert np.isfinite(model.transform([strange])).all()


def test_core_numbers_are_inputs_on_request():
    clique_with_tail = nx.disjoint_union(nx.complete_graph(4), nx.empty_graph(2))
    clique_with_tail.add_edges_from([(3, 4), (4, 4)])  # a tail with a self-loop, and a node alone
    model = small(nodes__n_layers=0, inputs=("cores",)).fit([clique_with_tail])
    np.testing.assert_array_equal(model.code_.cores, [0, 1, 3])
    coded = model.code_(as_graphs([clique_with_tail])).toarray()
    np.testing.assert_array_equal(coded.argmax(axis=1), [2, 2, 2, 2, 1, 0])
    np.testing.assert_array_equal(model.code_(as_graphs([nx.cycle_graph(3)])).toarray().argmax(axis=1), 1)  # 2: as 1
    np.testing.assert_array_equal(cores_of(as_graphs([nx.DiGraph([(0, 1), (1, 2), (2, 0)])])), 2)
    assert small().fit([clique_with_tail]).code_.parts == ("degrees",)  # "auto" leaves them out


def test_features_are_standardised_with_what_fit_saw():
    X = [np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([[4.0, 5.0], [6.0, 5.0]])]
    graphs = as_graphs([(x, nx.path_graph(2)) for x in X])
    model = small(inputs="features").fit(graphs)
    expected = (np.concatenate(X)[:, 0] - 3) / np.sqrt(5) / np.sqrt(2)
    np.testing.assert_allclose(model.code_(graphs), np.stack([expected, np.zeros(4)], axis=1), atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"inputs": "colour"}, "inputs"),
        ({"inputs": ("features",)}, "features"),
        ({"inputs": ()}, "at least one"),
        ({"inputs": None}, "inputs .*None"),
        ({"inputs": 3}, "inputs .*3"),
        ({"readout__family": "multinomial"}, "readout .*stage 0"),
        ({"readout__family": "multinomial", "nodes__family": "multinomial"}, "readout .*stage 1"),
        ({"inputs": ("tags", "tags")}, "distinct names"),
        ({"readout__reading": "sum"}, "reading"),
        ({"readout__n_anchors": 0}, "n_anchors"),
        ({"readout__family__sharpness": 2.0}, "sharpness"),
        ({"readout__kernel": "rbf"}, "kernel"),
        ({"readout__unit": 1}, "unit"),
        ({"nodes__block_weights": (1, 1)}, "block_weights"),
        ({"nodes__multiset": "ball"}, "multiset .*'neighbourhood'"),
    ],
)
def test_bad_parameters(changes, words):
    with pytest.raises(InputError, match=words):
        small(**changes).fit(LIST)


@pytest.mark.parametrize("bad", [[], nx.path_graph(3), [nx.Graph()]])
def test_bad_lists(bad):
    with pytest.raises((ValueError, TypeError), match=r"graphs must|at least one node"):
        small().fit(bad)


def test_what_fit_had_must_be_there_again():
    model = small().fit(LIST)
    with pytest.raises(ValueError, match="tags"):
        model.transform([nx.path_graph(3)])
    words = nx.path_graph(2)
    nx.set_node_attributes(words, "C", "label")
    with pytest.raises(ValueError, match="tags"):
        model.transform([words])
    features = small().fit([(np.ones((3, 2)), nx.path_graph(3)), (np.zeros((2, 2)), nx.path_graph(2))])
    with pytest.raises(ValueError, match="2 features"):
        features.transform([(np.ones((3, 5)), nx.path_graph(3))])


def test_a_bad_number_is_named_by_its_node_and_graph():
    X = np.ones((3, 2))
    X[1, 0] = np.nan
    with pytest.raises(ValueError, match="node 1 of graph 1"):
        small().fit([(np.ones((4, 2)), nx.path_graph(4)), (X, nx.path_graph(3))])


def test_a_fit_that_is_interrupted_leaves_the_model_as_it_was(monkeypatch):
    paths, stars = [nx.path_graph(k) for k in (3, 4, 5)], [nx.star_graph(k) for k in (4, 5, 6)]
    model = graph_model(nodes__n_layers=1, nodes__n_anchors=2, nodes__dim=4).fit(paths)
    known = model.transform(paths)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("fishergraph.estimators.graphs.fit_layer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(stars)
    np.testing.assert_array_equal(model.transform(paths), known)


EDGES = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
FEATURES = [(np.random.default_rng(k).normal(size=(3, 2)), EDGES) for k in range(6)]


def test_counts_must_be_counts():
    with pytest.raises(ValueError, match="counts"):
        small(nodes__family="multinomial").fit(FEATURES)
    counts = small(
        nodes__n_layers=0,
        inputs="tags",
        nodes__family="multinomial",
        readout__family="multinomial",
        readout__reading="means",
    )
    assert np.isfinite(counts.fit_transform(LIST)).all()


@pytest.mark.parametrize(
    ("scale", "sentence"),
    [
        (1e39, "node 1 of graph 0"),
        (1e30, "node 0"),
    ],
)
def test_features_far_outside_the_scale_of_fit(scale, sentence):
    model = small().fit(FEATURES)
    with pytest.raises(ValueError, match=sentence):
        model.transform([(scale * X, edges) for X, edges in FEATURES])
    assert np.isfinite(model.transform([(1e9 * X, edges) for X, edges in FEATURES])).all()


def test_features_beyond_float32_are_an_error_of_fit():
    with pytest.raises(ValueError, match="graph 2"):
        small().fit([*FEATURES[:2], (1e39 * FEATURES[2][0], EDGES)])


@pytest.mark.parametrize(
    ("first", "then", "parameter"),
    [
        ({}, {"nodes__n_layers": 3}, "nodes.n_layers"),
        ({}, {"nodes__n_layers": 1}, "nodes.n_layers"),
        ({}, {"readout__reading": "means"}, "readout.reading"),
        ({"readout__kernel": "exp"}, {"readout__reading": "both"}, "readout.reading"),
        ({}, {"nodes__family": "diagonal-mixture"}, "nodes.family"),
        ({}, {"readout__family": "diagonal-mixture"}, "readout.family"),
        ({}, {"nodes__counts": False}, "nodes.counts"),
        ({}, {"nodes__family__fisher": "exact"}, "nodes.family"),
        ({"nodes__block_weights": (0, 1, 1)}, {"nodes__block_weights": None}, "nodes.block_weights"),
        ({}, {"nodes__multiset": Tuples(k=2)}, "nodes.multiset"),
    ],
)
def test_parameters_that_shape_the_stages_are_those_of_the_fit(first, then, parameter):
    model = small(**first).fit(LIST).set_params(**then)
    with pytest.raises(InputError) as error:
        model.transform(LIST)
    assert error.value.parameter == parameter


def test_graphs_without_edges_beside_tags_of_edges():
    tagged_edges = nx.path_graph(3)
    nx.set_edge_attributes(tagged_edges, "double", "label")
    model = small().fit([tagged_edges, nx.empty_graph(2)])
    assert model.code_.parts == ("edge-tags", "degrees")
    assert np.isfinite(model.transform([nx.empty_graph(3)])).all()
    alone = as_graphs([tagged_edges, nx.empty_graph(2)])[[1]]
    assert small().fit(alone).code_.parts == ("degrees",)


def test_weights_of_paths_are_checked():
    with pytest.raises(ValueError, match=r"1e\+40"):
        small(nodes__multiset=Paths(2)).fit([(EDGES, np.full(4, 1e20))] * 3)


def test_tuples_in_parameters_come_back_as_tuples(tmp_path):
    model = small(inputs=("tags", "cores"), nodes__block_weights=(0, 2, 1)).fit(LIST)
    model.save(tmp_path / "model.safetensors")
    assert options(FisherGraphEmbedding.load(tmp_path / "model.safetensors")) == options(model)
