"""Structural columns as blocks: who is known again, new nodes, other graphs, files."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fishergraph import FisherEmbedding, Neighbourhood, Structure, as_graph
from fishergraph._errors import InputError, InputTypeError
from fishergraph.structural import StructureMap, choose_structure, fit_structure
from fishergraph.structural.keys import known_rows, node_keys

TELLING = ("factors", "spectral", "projection")
PLAIN = nx.connected_watts_strogatz_graph(200, 6, 0.1, seed=1)


def named(graph: nx.Graph, names) -> nx.Graph:
    return nx.relabel_nodes(graph, dict(enumerate(names)))


def cosines(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.sum(one * two, axis=1) / lengths


def learned(graph, kind: str = "factors", width: int = 16) -> tuple[StructureMap, np.ndarray]:
    graph = as_graph(graph)
    fitted, columns = fit_structure(Structure(kind), graph, graph.ids, width=width, seed=0)
    return fitted, columns[kind]


def columns(fitted: StructureMap, graph) -> np.ndarray:
    graph = as_graph(graph)
    return fitted.columns(graph, graph.ids)[fitted.structure.kinds[0]]


# --- keys -----------------------------------------------------------------------------------------------


def test_keys_of_ids():
    assert_array_equal(node_keys(None, 3), [0, 1, 2])
    assert_array_equal(node_keys(np.array([5, -1]), 2), np.array([5, 2**64 - 1], dtype=np.uint64))
    assert_array_equal(node_keys(np.array(["5", "-1"]), 2), node_keys(np.array([5, -1]), 2))
    texts = np.array(["5", "05", "a", "-0", "²", "", "5 ", str(2**70)], dtype=object)
    assert len(np.unique(node_keys(texts, len(texts)))) == len(texts)
    mixed = np.empty(3, dtype=object)
    mixed[:] = [("a", 1), True, 1]
    assert len(np.unique(node_keys(mixed, 3))) == 3


def test_known_rows():
    known = np.array([7, 3, 9], dtype=np.uint64)
    assert_array_equal(known_rows(known, np.array([9, 1, 7, 100], dtype=np.uint64)), [2, -1, 0, -1])


# --- the same nodes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TELLING)
def test_a_renumbered_graph_has_the_columns_of_its_nodes(kind):
    names = [f"n{v:03}" for v in np.random.default_rng(0).permutation(200)]
    fitted, before = learned(PLAIN, kind)
    assert_array_equal(columns(fitted, PLAIN), before)
    fitted, before = learned(named(PLAIN, names), kind)
    shuffled = nx.Graph()
    shuffled.add_nodes_from(reversed(list(named(PLAIN, names))))
    shuffled.add_edges_from(named(PLAIN, names).edges)
    assert_allclose(columns(fitted, shuffled)[::-1], before, atol=1e-4)


@pytest.mark.parametrize("kind", TELLING)
def test_a_new_node_leaves_the_others_where_they_were(kind):
    """Row numbers of sorted ids shift by one: nodes are known by their ids."""
    names = [f"n{v:03}" for v in range(200)]
    fitted, before = learned(named(PLAIN, names), kind)
    grown = named(PLAIN, names)
    grown.add_edges_from([("a new one", "n005"), ("a new one", "n007")])
    graph = as_graph(list(grown.edges), undirected=True)
    assert graph.ids is not None
    after = fitted.columns(graph, graph.ids)[kind]
    rows = [list(graph.ids).index(name) for name in names]
    assert graph.ids[0] == "a new one"
    kept = cosines(after[rows], before)
    # Two nodes have a new neighbour, which a random projection of near nodes tells.
    assert kept.min() > (0.87 if kind == "projection" else 0.99)
    assert np.delete(kept, [5, 7]).min() > (0.97 if kind == "projection" else 0.99)
    new = after[:1]
    near = cosines(np.repeat(new, 2, axis=0), before[[5, 7]]).mean()
    assert near > cosines(np.repeat(new, 200, axis=0), before).mean() + 0.3


@pytest.mark.parametrize("kind", ["factors", "spectral"])
@pytest.mark.parametrize("other", [nx.gnm_random_graph(200, 600, seed=9), nx.gnm_random_graph(50, 200, seed=9)])
def test_another_graph_gives_zeros_and_a_warning(kind, other):
    fitted, _ = learned(PLAIN, kind)
    with pytest.warns(UserWarning, match="not those of the fit"):
        assert not columns(fitted, other).any()
    with pytest.warns(UserWarning, match="not those of the fit"):
        assert not columns(fitted, named(other, [f"x{v}" for v in range(200)])).any()


def test_local_columns_carry_over():
    fitted, before = learned(PLAIN, "local")
    other = nx.connected_watts_strogatz_graph(80, 6, 0.1, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = columns(fitted, other)
    assert_allclose(after.mean(axis=0), before.mean(axis=0), atol=0.1)


# --- in an embedding ------------------------------------------------------------------------------------


def table(graph: nx.Graph):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(list(graph.edges), columns=["source", "target"])


def test_a_saved_model_knows_nodes_by_their_ids(tmp_path):
    """One edge to a new node shifts the rows of all others, and moves them hardly."""
    names = [f"n{v:03}" for v in range(200)]
    edges = table(named(PLAIN, names))
    model = FisherEmbedding(dim=32, random_state=0, multiset=Neighbourhood(undirected=True))
    before = model.fit_transform(graph=edges)
    model.save(tmp_path / "model")
    grown = named(PLAIN, names)
    grown.add_edge("a new one", "n005")
    graph = as_graph(table(grown), undirected=True)
    after = FisherEmbedding.load(tmp_path / "model").transform(graph=graph)
    assert after.shape == (201, before.shape[1])
    assert_allclose(cosines(after[1:], before), 1, atol=0.02)


@pytest.mark.parametrize("X", [None, np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)])
@pytest.mark.parametrize("structure", ["auto", *TELLING, "local", "degree", Structure(("local", "projection"))])
def test_blocks_files_and_threads(tmp_path, X, structure):
    model = FisherEmbedding(1, dim=8, structure=structure, random_state=0, n_jobs=1)
    Z = model.fit_transform(X, graph=PLAIN)
    kinds = choose_structure(structure).kinds
    assert [name for name, _ in model.blocks_][-len(kinds) :] == list(kinds)
    assert sum(width for _, width in model.blocks_) == Z.shape[1]
    assert np.isfinite(Z).all()
    assert_array_equal(model.transform(X, graph=PLAIN), Z)
    assert_array_equal(FisherEmbedding(1, dim=8, structure=structure, random_state=0).fit_transform(X, graph=PLAIN), Z)
    model.save(tmp_path / "model")
    assert_array_equal(FisherEmbedding.load(tmp_path / "model").transform(X, graph=PLAIN), Z)


def test_structure_beside_poor_features():
    """Planted communities, and four columns that say nothing: a linear model finds the communities all the same."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(2)
    y = rng.integers(4, size=400)
    chance = np.where(y[:, None] == y, 0.08, 0.008)
    A = np.triu(rng.random((400, 400)) < chance, 1)
    X, graph = rng.normal(size=(400, 4)), sp.csr_array((A | A.T).astype(np.float32))
    train, test = np.arange(100), np.arange(100, 400)
    scores = {}
    for structure in (None, "auto"):
        Z = FisherEmbedding(dim=32, structure=structure, random_state=0).fit_transform(X, graph=graph)
        scores[structure] = LogisticRegression(C=10, max_iter=2000).fit(Z[train], y[train]).score(Z[test], y[test])
    assert scores[None] < 0.5
    assert scores["auto"] > 0.9


def test_weights_of_the_blocks():
    X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    model = FisherEmbedding(1, dim=8, random_state=0)
    Z, blocks = model.fit_transform(X, graph=PLAIN), dict(model.blocks_)
    heavy = FisherEmbedding(1, dim=8, random_state=0, block_weights={"factors": 0.4, "psi1": 0})
    W = heavy.fit_transform(X, graph=PLAIN)
    assert "psi1" not in dict(heavy.blocks_)
    ends = np.cumsum([0, *blocks.values()])
    factors = slice(*ends[[list(blocks).index("factors"), list(blocks).index("factors") + 1]])
    width = blocks["psi1"]
    assert_allclose(W[:, factors.start - width : factors.stop - width], 2 * Z[:, factors], rtol=1e-6)
    alone = FisherEmbedding(1, dim=8, random_state=0).fit(graph=PLAIN)
    assert alone.settings(features=False).block_weights == (1, 1, 1, 0.1)
    with pytest.raises(InputError, match="psi0"):
        FisherEmbedding(block_weights={"psi7": 1}).settings()


def test_without_a_graph_there_is_no_structure():
    X = np.random.default_rng(0).normal(size=(50, 5))
    assert "factors" not in dict(FisherEmbedding(1, dim=8).fit(X).blocks_)


def test_nothing_to_embed():
    with pytest.raises(InputError, match="structure"):
        FisherEmbedding(structure=None).fit(graph=PLAIN)
    with pytest.warns(UserWarning, match="no edges"):
        FisherEmbedding(dim=4).fit(graph=sp.csr_array((5, 5)))


def test_changed_after_the_fit():
    model = FisherEmbedding(1, dim=8).fit(graph=PLAIN).set_params(structure="spectral")
    with pytest.raises(InputError, match="structure"):
        model.transform(graph=PLAIN)


@pytest.mark.parametrize(
    "options",
    [{"columns": "walks"}, {"columns": ()}, {"columns": ("local", "local")}, {"n_factors": 2}, {"weight": -1}],
    ids=str,
)
def test_options_out_of_range(options):
    with pytest.raises((InputError, InputTypeError), match=next(iter(options))):
        Structure(**options)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="'spectral'"):
        FisherEmbedding(structure="spectrum").fit(graph=PLAIN)
