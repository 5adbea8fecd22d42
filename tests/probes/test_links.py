"""`LinkProbe`: no edge is seen before it is judged, features and measures of the reference, heads, bits, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import reference_vectors as reference
from fishergraph import FisherEmbedding, LinkProbe, Vectors, as_graph, split_edges, suggest_links
from fishergraph._errors import InputError, InputTypeError, UnknownNodeError
from fishergraph.datasets import load_tables
from fishergraph.probes import Links, edges, link_metrics
from fishergraph.probes.blocks import read_blocks
from fishergraph.probes.pairs import PairFeatures
from link_problem import Recorder, community_graph, edges_of, random_graph

X, GRAPH = community_graph()
SPLIT = split_edges(GRAPH, random_state=0)
DX, DIRECTED = community_graph(seed=1, directed=True)


def small(**options):
    return FisherEmbedding(n_layers=1, dim=16, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted():
    return LinkProbe(small(), random_state=0, n_folds=2).fit(X, SPLIT)


@pytest.fixture
def seen():
    Recorder.seen.clear()
    return Recorder.seen


# --- what an embedding may see ----------------------------------------------------------------------------


def check_seen(graphs, split):
    """No graph that was embedded has an edge that is judged, and each fold's has not its own."""
    judged = {tuple(pair) for part in (split.val, split.test) for pair in part.pairs[part.edges].tolist()}
    for graph in graphs:
        present = edges_of(graph)
        assert not judged & present, "a judged edge was embedded"
        assert not {(v, u) for u, v in judged} & present, "the reverse of a judged edge was embedded"


def test_no_embedding_sees_an_edge_that_is_judged(seen):
    LinkProbe(Recorder(), random_state=0).fit(X, SPLIT)
    assert len(seen) == 6
    check_seen(seen, SPLIT)
    whole = edges_of(SPLIT.graph)
    missing = [whole - edges_of(graph) for graph in seen]
    assert missing[0] == set()
    assert all(missing[1:])
    assert sum(map(len, missing)) == len(set().union(*missing)), "folds hold out disjoint parts"


def test_an_embedding_that_sees_too_much_is_noticed(seen, monkeypatch):
    monkeypatch.setattr(edges, "_without", lambda graph, held, directed: graph)
    split = split_edges(GRAPH, random_state=0)
    LinkProbe(Recorder(), random_state=0).fit(X, split)
    with pytest.raises(AssertionError, match="embedded"):
        check_seen(seen, split)


def areas(**options):
    """Areas under the ROC curve on random graphs, on which no method can be better than chance."""
    found = []
    for seed in range(3):
        features, graph = random_graph(seed=seed)
        split = split_edges(graph, random_state=seed)
        probe = LinkProbe(small(**options), n_folds=2, random_state=0).fit(features, split)
        found.append(probe.score(split.test))
    return np.mean(found)


@pytest.mark.parametrize("options", [{}, {"structure": "local"}], ids=["default", "local"])
def test_chance_is_chance(options):
    """Columns of the features, of averages and of the structure: if one had seen the edges, it would tell them."""
    assert abs(areas(**options) - 0.5) < 0.07


def test_an_edge_that_was_seen_is_told_from_chance(monkeypatch):
    monkeypatch.setattr(edges, "_without", lambda graph, held, directed: graph)
    assert areas() > 0.8


def test_the_judging_edges_change_nothing(fitted):
    nothing = Links(np.zeros((2, 2), int), np.array([True, False]))
    split = edges.EdgeSplit(SPLIT.graph, SPLIT.train, SPLIT.val, nothing, SPLIT.directed)
    other = LinkProbe(small(), random_state=0, n_folds=2).fit(X, split)
    np.testing.assert_array_equal(other.decision_function(SPLIT.test), fitted.decision_function(SPLIT.test))


# --- features and measures --------------------------------------------------------------------------------


def test_features_are_those_of_the_reference():
    Z = np.random.default_rng(0).normal(size=(GRAPH.n_nodes, 7)).astype(np.float32)
    Z[5] = 0
    features = PairFeatures(Z, read_blocks([3, 4], Z, 7), GRAPH, directed=False, n_jobs=1)
    pairs = SPLIT.test.pairs[:20].copy()
    pairs[0] = 5, 9
    degree = np.diff(GRAPH.indptr)
    for (u, v), found, whole in zip(pairs, features(pairs), features.similarities(pairs), strict=True):
        expected = [reference.cosine_of_block(Z, *block, u, v) for block in ((0, 3), (3, 7))]
        expected += [np.log1p(min(degree[u], degree[v])), np.log1p(max(degree[u], degree[v]))]
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert whole[0] == pytest.approx(reference.similarity(Z[u], Z[v], "cosine"), abs=1e-7)
    np.testing.assert_allclose(features.products(pairs), Z[pairs[:, 0]] * Z[pairs[:, 1]])


def test_features_of_directed_graphs_tell_sources_from_targets():
    Z = np.ones((DIRECTED.n_nodes, 2), np.float32)
    features = PairFeatures(Z, read_blocks(None, Z, 2), DIRECTED, directed=True, n_jobs=1)
    u, v = 3, 8
    sent, received = (
        np.bincount(DIRECTED.indices, minlength=DIRECTED.n_nodes),
        np.diff(DIRECTED.indptr),
    )
    expected = np.log1p([sent[u], received[u], sent[v], received[v]])
    np.testing.assert_allclose(features(np.array([[u, v]]))[0, 1:], expected)
    assert features.names[1:] == ["sent by source", "received by source", "sent by target", "received by target"]


def test_measures_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    truth, scores = rng.random(90) < 0.4, rng.integers(12, size=90) / 4  # with ties
    found = link_metrics(scores, truth, hits=(1, 5, 20, 500))
    assert found["auc"] == pytest.approx(reference.area_under_roc(scores, truth))
    for k in (1, 5, 20):
        assert found[f"hits@{k}"] == pytest.approx(reference.hits(scores, truth, k))
    assert "hits@500" not in found


@pytest.mark.parametrize("truth", [[True, True], [False, False], [True]])
def test_measures_need_both_kinds(truth):
    with pytest.raises(InputError, match="pairs"):
        link_metrics([0.1, 0.2], truth)


# --- heads ------------------------------------------------------------------------------------------------


def test_it_tells_edges_from_other_pairs(fitted):
    assert [record["head"] for record in fitted.report_] == ["similarity", "logistic", "boosted"]
    assert fitted.head_ == max(fitted.report_, key=lambda record: record["auc"])["head"]
    assert fitted.score(SPLIT.test) > 0.75
    assert fitted.evaluate(SPLIT.test)["auc"] == fitted.score(SPLIT.test)
    assert fitted.feature_names_[-2:] == ["smaller degree", "larger degree"]


@pytest.mark.parametrize("head", ["similarity", "logistic", "boosted", "products"])
@pytest.mark.parametrize("own", [True, False], ids=["embedding", "vectors"])
def test_every_head_learns(head, own):
    probe = LinkProbe(small() if own else None, heads=head, n_folds=3, random_state=0)
    Z = X if own else small().fit_transform(X, graph=SPLIT.graph)
    split = split_edges(GRAPH, val=0.15, random_state=0)
    if not own:
        Z = small().fit_transform(X, graph=split.graph)
    probe.fit(Z, split)
    assert probe.head_ == head
    assert probe.score(split.test) > 0.7
    P = probe.predict_proba(split.test)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(probe.predict(split.test), P[:, 1] > 0.5)


def test_the_head_similarity_ranks_as_vectors_do(fitted):
    probe = LinkProbe(heads="similarity", random_state=0).fit(fitted.vectors_, SPLIT)
    similarities = Vectors(fitted.vectors_).link_scores(SPLIT.test)
    assert probe.score(SPLIT.test) == pytest.approx(link_metrics(similarities, SPLIT.test.edges)["auc"], abs=1e-3)


def test_directed_graphs():
    """Edges go from the first half of the nodes to the second, whatever the features are."""
    rng = np.random.default_rng(0)
    source, target = rng.integers(60, size=900), 60 + rng.integers(60, size=900)
    graph = as_graph(np.stack([source, target]), n_nodes=120)
    split = split_edges(graph, random_state=0)
    probe = LinkProbe(small(), n_folds=2, random_state=0).fit(rng.normal(size=(120, 3)), split)
    assert split.directed
    assert probe.score(split.test) > 0.9
    assert (probe.decision_function([(3, 100), (9, 70)]) > probe.decision_function([(100, 3), (70, 9)])).all()


def test_threads_change_no_bit(fitted):
    other = LinkProbe(small(), random_state=0, n_folds=2, n_jobs=2).fit(X, SPLIT)
    np.testing.assert_array_equal(other.decision_function(SPLIT.test), fitted.decision_function(SPLIT.test))


def test_pairs_are_ids_in_any_form(fitted):
    pd = pytest.importorskip("pandas")
    pairs = [("n0", "n9"), ("n12", "n3")]
    expected = fitted.predict_proba(pairs)
    for same in (np.array(pairs), pd.DataFrame(pairs, columns=["source", "target"]), [[*pair] for pair in pairs]):
        np.testing.assert_array_equal(fitted.predict_proba(same), expected)
    rows = Links(np.array([[0, 9], [12, 3]]), np.array([True, True]))
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected)
    np.testing.assert_array_equal(fitted.predict_proba([pair[::-1] for pair in pairs]), expected)


def test_the_whole_graph_is_used_afterwards(fitted):
    probe = pickle.loads(pickle.dumps(fitted))
    before = probe.decision_function(SPLIT.test)
    assert not probe.has_edge(SPLIT.test).any()
    probe.use(X, GRAPH)
    np.testing.assert_array_equal(probe.has_edge(SPLIT.test), SPLIT.test.edges)
    assert (probe.decision_function(SPLIT.test) != before).any()
    again = LinkProbe(small(), random_state=0, n_folds=2).fit(X, SPLIT).use(X, GRAPH)
    np.testing.assert_array_equal(again.decision_function(SPLIT.test), probe.decision_function(SPLIT.test))


def test_a_copy_has_the_same_parameters(fitted):
    assert repr(clone(fitted)) == repr(fitted)
    assert "n_folds=2" in repr(fitted)


# --- suggestions ------------------------------------------------------------------------------------------


def test_suggested_links_are_new_and_the_most_probable_first(fitted):
    probe = pickle.loads(pickle.dumps(fitted)).use(X, GRAPH)
    found = suggest_links(probe, k=30)
    assert len(found) == 30
    pairs = list(zip(found.source, found.target, strict=True))
    assert not probe.has_edge(pairs).any()
    assert len({frozenset(pair) for pair in pairs}) == 30
    assert all(u != v for u, v in pairs)
    assert (np.diff(found.probability) <= 0).all()
    np.testing.assert_allclose(probe.predict_proba(pairs)[:, 1], found.probability)


def test_suggested_links_are_the_best_of_all_pairs_if_all_are_candidates(fitted):
    probe, n = pickle.loads(pickle.dumps(fitted)).use(X, GRAPH), GRAPH.n_nodes
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    every = Links(pairs, np.zeros(len(pairs), bool))
    scores = np.where(probe.has_edge(every), -1, probe.predict_proba(every)[:, 1])
    found = suggest_links(probe, k=10, candidates=n)
    np.testing.assert_allclose(found.probability, np.sort(scores)[::-1][:10])
    table = found.to_arrow()
    assert table.column_names == ["source", "target", "probability"]
    assert found.to_pandas().shape == (10, 3)


def test_suggestions_need_a_fitted_probe_and_pairs_without_an_edge():
    with pytest.raises(NotFittedError):
        suggest_links(LinkProbe())
    probe = LinkProbe(heads="similarity", random_state=0).fit(X, SPLIT)
    whole = as_graph(np.stack(np.nonzero(~np.eye(len(X), dtype=bool))), n_nodes=len(X))
    with pytest.raises(InputError, match="without an edge"):
        suggest_links(probe.use(X, whole))


# --- what cannot be asked ---------------------------------------------------------------------------------


def test_a_split_is_what_a_fit_takes(fitted):
    with pytest.raises(InputTypeError, match="split_edges"):
        LinkProbe().fit(X, GRAPH)
    with pytest.raises(InputTypeError, match=r"split\.test"):
        fitted.score([("n0", "n1")])
    with pytest.raises(NotFittedError):
        LinkProbe().predict([("n0", "n1")])


@pytest.mark.parametrize(
    ("options", "word"), [({"heads": "best"}, "logistic"), ({"heads": ()}, "heads"), ({"n_folds": 11}, "n_folds")]
)
def test_parameters(options, word):
    with pytest.raises(InputError, match=word):
        LinkProbe(small(), **options).fit(X, SPLIT)


def test_vectors_need_validation_edges():
    with pytest.raises(InputError, match="validation"):
        LinkProbe().fit(X, split_edges(GRAPH, val=0))


def test_an_embedding_learns_without_validation_edges():
    split = split_edges(GRAPH, val=0, random_state=0)
    assert LinkProbe(small(), n_folds=3, random_state=0).fit(X, split).score(split.test) > 0.7


@pytest.mark.parametrize("n_edges", [3, 4, 8])
def test_a_graph_without_enough_edges_to_learn_from(n_edges):
    path = as_graph([(u, u + 1) for u in range(n_edges)], undirected=True)
    split = split_edges(path, val=0.3, test=0.3, random_state=0)
    with pytest.raises(InputError, match="edges to learn from"):
        LinkProbe(Recorder(), n_folds=1).fit(np.eye(n_edges + 1), split)


def test_vectors_of_other_nodes(fitted):
    with pytest.raises(InputError, match="100 rows"):
        LinkProbe().fit(X[:100], SPLIT)
    with pytest.raises(InputError, match="row 7"):
        LinkProbe().fit(np.where(np.arange(len(X))[:, None] == 7, np.nan, X), SPLIT)
    with pytest.raises(InputError, match="100 rows"):
        fitted.use(X[:100], GRAPH)


def test_a_graph_that_cannot_be_used_changes_nothing(fitted):
    before = fitted.decision_function(SPLIT.test)
    with pytest.raises(InputError, match="columns"):
        fitted.use(np.zeros((GRAPH.n_nodes, 90)), GRAPH)
    with pytest.raises(InputError):
        fitted.use(X[:, :2], GRAPH)
    with pytest.raises(InputError, match="100 rows"):
        fitted.use(X[:100], GRAPH)
    assert fitted.graph_ is SPLIT.graph
    np.testing.assert_array_equal(fitted.decision_function(SPLIT.test), before)


def test_the_whole_graph_may_give_more_columns():
    """A small table has as many landmarks as it has distinct points, which differ from graph to graph."""
    data = load_tables("penguins")
    nodes = data.nodes.drop_columns(["id", "Species"])
    graph = as_graph(data.edges, node_ids=data.nodes["id"], undirected=True)
    split = split_edges(graph, random_state=0)
    probe = LinkProbe(FisherEmbedding(random_state=0), random_state=0, n_folds=2).fit(nodes, split)
    before = probe.vectors_.shape[1]
    assert probe.use(nodes, graph).vectors_.shape[1] != before
    assert np.isfinite(probe.decision_function(split.test)).all()


def test_the_head_products_belongs_to_its_vectors():
    probe = LinkProbe(heads="products", random_state=0).fit(X, SPLIT)
    with pytest.raises(InputError, match="products"):
        probe.use(X, GRAPH)


def test_unknown_nodes_of_pairs_are_named(fitted):
    with pytest.raises(UnknownNodeError, match="n16") as raised:
        fitted.predict([("n0", "n161"), ("n3", "n4")])
    assert raised.value.value == "n161"
    with pytest.raises(InputError, match="pairs"):
        fitted.predict([])
    with pytest.raises(InputError, match="pairs"):
        fitted.predict([("n0", "n1", "n2")])


@pytest.mark.parametrize("named", ["index", "column", "Arrow"])
def test_rows_of_a_table_meet_the_nodes_of_the_split(named):
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    split, frame = SPLIT, pd.DataFrame(X, index=GRAPH.ids).add_prefix("x")
    expected = LinkProbe(small(), random_state=0, n_folds=2).fit(frame, split)
    shuffled = frame.sample(frac=1, random_state=0)
    if named != "index":
        shuffled = shuffled.reset_index(names="id")
    table = pa.Table.from_pandas(shuffled, preserve_index=False) if named == "Arrow" else shuffled
    found = LinkProbe(small(), random_state=0, n_folds=2).fit(table, split)
    np.testing.assert_array_equal(found.vectors_, expected.vectors_)
