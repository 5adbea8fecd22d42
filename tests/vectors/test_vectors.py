"""`Vectors`: ids and blocks from whatever holds them, similarities of pairs, and questions that cannot be answered."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import reference_vectors as reference
from fishergraph import FisherEmbedding, FisherSetEmbedding, Vectors, load_graph, split_edges
from fishergraph._errors import FishergraphWarning, InputError, InputTypeError, MissingExtra, UnknownNodeError
from fishergraph.io.embedding_file import write_embedding
from fishergraph.scale import write_store
from link_problem import community_graph, edges_of

pd = pytest.importorskip("pandas")
IDS = [f"node {k:02}" for k in range(30)]
Z = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
Z[7] = 0
EDGES = community_graph(n=30, seed=3)[1]


def same(vectors, ids=IDS):
    """Whether these are the vectors above, with their ids."""
    np.testing.assert_array_equal(np.asarray(vectors.Z[:]), Z)
    assert vectors.ids.tolist() == ids
    return True


# --- where vectors come from ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "layout"),
    [*((f"z.{kind}", None) for kind in ("parquet", "csv", "tsv", "npz", "npy")), ("z.parquet", "wide")],
)
def test_what_embed_writes_is_read(tmp_path, name, layout):
    path = tmp_path / name
    write_embedding(path, IDS, Z, blocks=[("psi0", 2), ("walk", 3)], layout=layout)
    vectors = Vectors.read(path)
    assert same(vectors)
    if path.suffix == ".parquet":
        assert vectors.blocks == [("psi0", 2), ("walk", 3)]


def frames():
    wide = dict(zip(["psi0_0", "psi0_1", "walk_0", "walk_1", "walk_2"], Z.T, strict=True))
    yield "pandas wide", pd.DataFrame({"id": IDS, **wide})
    yield "pandas indexed", pd.DataFrame(wide, index=IDS)
    yield "pandas lists", pd.DataFrame({"id": IDS, "embedding": list(Z)})
    yield "arrow wide", pa.table({"node_id": IDS, **wide})
    yield "arrow lists", pa.table({"id": IDS, "embedding": list(Z)})
    polars = pytest.importorskip("polars")
    yield "polars wide", polars.DataFrame({"Node": IDS, **wide})
    yield "polars lists", polars.DataFrame({"id": IDS, "embedding": Z})


@pytest.mark.parametrize(("name", "table"), list(frames()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_table_brings_its_ids(name, table):
    vectors = Vectors(table)
    assert same(vectors)
    if "lists" not in name:
        assert vectors.blocks == [("psi0", 2), ("walk", 3)]


def test_ids_that_are_given_win():
    table = pd.DataFrame(Z, index=IDS)
    assert same(Vectors(table, ids=range(30)), list(range(30)))
    assert Vectors(Z).ids.tolist() == list(range(30))


def test_a_fitted_estimator_gives_vectors_with_ids_and_blocks():
    X, graph = community_graph()
    model = FisherEmbedding(n_layers=1, dim=8, random_state=0).fit(X, graph=graph)
    vectors = Vectors.from_estimator(model, X, graph=graph)
    np.testing.assert_array_equal(vectors.Z, model.transform(X, graph=graph))
    assert vectors.ids.tolist() == graph.ids.tolist()
    assert vectors.blocks == list(model.blocks_)
    edges = pd.DataFrame(np.array(sorted(edges_of(graph))), columns=["source", "target"]).map(lambda row: f"n{row}")
    table = pd.DataFrame(X, index=graph.ids).iloc[::-1]
    assert Vectors.from_estimator(model, table, graph=edges).ids.tolist() == graph.ids[::-1].tolist()
    other = [f"m{k}" for k in range(len(X))]
    assert Vectors.from_estimator(model, X, graph=graph, ids=other).ids.tolist() == other


def test_edges_alone_and_sets_give_vectors_too():
    edges = [(u, (u + 1) % 20) for u in range(20)] + [(0, 7), (3, 11)]
    model = FisherEmbedding(n_layers=1, dim=8, random_state=0).fit(graph=edges)
    assert len(Vectors.from_estimator(model, graph=edges)) == 20
    sets = [np.random.default_rng(k).normal(size=(k % 4 + 2, 3)) for k in range(12)]
    bags = FisherSetEmbedding(n_anchors=2, dim=4, random_state=0).fit(sets)
    assert Vectors.from_estimator(bags, sets, ids=[f"bag {k}" for k in range(12)]).nearest("bag 3", k=2).k == 2


def test_a_model_is_one_that_transforms():
    with pytest.raises(InputTypeError, match=r"Vectors\(Z"):
        Vectors.from_estimator(Z)


def test_the_embedding_of_a_store(tmp_path):
    X, graph = community_graph(n=60)
    store = write_store(tmp_path / "store", graph, X)
    model = FisherEmbedding(n_layers=1, dim=8, random_state=0)
    stored = model.fit_transform(store)
    for vectors in (Vectors(stored, stored.ids), Vectors.read(stored.path)):
        assert vectors.ids.tolist() == graph.ids.tolist()
        plain = Vectors(np.asarray(stored), graph.ids)
        np.testing.assert_array_equal(vectors.neighbours(4).values, plain.neighbours(4).values)


# --- pairs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_similarities_of_pairs_are_those_of_the_reference(metric):
    vectors, pairs = Vectors(Z, IDS), [(IDS[3], IDS[9]), (IDS[7], IDS[2]), (IDS[4], IDS[4])]
    expected = [reference.similarity(Z[IDS.index(u)], Z[IDS.index(v)], metric) for u, v in pairs]
    np.testing.assert_allclose(vectors.link_scores(pairs, metric=metric), expected, rtol=1e-6, atol=1e-12)


def test_pairs_come_in_any_form():
    vectors = Vectors(Z, IDS)
    pairs = [(IDS[3], IDS[9]), (IDS[7], IDS[2])]
    expected = vectors.link_scores(pairs)
    table = pd.DataFrame(pairs, columns=["source", "target"])
    for other in (np.array(pairs), table, pa.Table.from_pandas(table), [list(pair) for pair in pairs]):
        np.testing.assert_array_equal(vectors.link_scores(other), expected)
    np.testing.assert_array_equal(vectors.link_scores(pairs[0]), expected[:1])
    links = split_edges(EDGES, random_state=0).test
    names = [(IDS[u], IDS[v]) for u, v in links.pairs]
    np.testing.assert_array_equal(vectors.link_scores(links), vectors.link_scores(names))


@pytest.mark.parametrize(
    ("pairs", "word"),
    [([], "at least one"), ([(1, 2, 3)], "pairs"), (np.zeros((2, 5), int), "edge_index"), (3, "pairs")],
)
def test_what_is_no_pairs(pairs, word):
    with pytest.raises(InputError, match=word):
        Vectors(Z).link_scores(pairs)


def test_pairs_of_unknown_ids_are_named():
    vectors = Vectors(Z, IDS)
    with pytest.raises(UnknownNodeError, match="node 04") as raised:
        vectors.link_scores([("node 03", "node 02"), ("node 4", "node 05"), ("node 99", "node 05")])
    assert raised.value.parameter == "pairs"
    assert "node 99" in str(raised.value)
    links = split_edges(community_graph()[1], random_state=0).test
    with pytest.raises(InputError, match="29"):
        vectors.link_scores(links)


# --- questions that cannot be answered --------------------------------------------------------------------


def test_unknown_nodes_have_near_matches():
    vectors = Vectors(Z, IDS)
    with pytest.raises(UnknownNodeError, match="'node 12'") as raised:
        vectors.nearest("nod 12")
    assert raised.value.value == "nod 12"
    with pytest.raises(UnknownNodeError, match="0 to 29"):
        Vectors(Z).nearest(30)
    with pytest.raises(UnknownNodeError):
        Vectors(Z).nearest(-1)
    numbers = Vectors(Z, ids=range(100, 130))
    assert numbers.nearest("107", k=1, metric="dot").nodes.tolist() == [107]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda v: v.nearest(), "only one"),
        (lambda v: v.nearest(3, rows=[3]), "only one"),
        (lambda v: v.nearest([]), "at least one"),
        (lambda v: v.nearest(3.5), "ids"),
        (lambda v: v.nearest(True), "ids"),
        (lambda v: v.nearest(3, k=30), "at most 29"),
        (lambda v: v.nearest(3, k=0), "at least 1"),
        (lambda v: v.nearest(3, k=2.5), "integer"),
        (lambda v: v.nearest(rows=[30]), "29"),
        (lambda v: v.nearest(rows=[]), "at least one"),
        (lambda v: v.nearest(rows=[0.5]), "row numbers"),
        (lambda v: v.nearest(vectors=np.zeros((2, 4))), "5 columns"),
        (lambda v: v.nearest(vectors=np.full((2, 5), np.nan)), "row 0"),
        (lambda v: v.nearest(vectors=Z, k=31), "at most 30"),
        (lambda v: v.nearest(3, metric="cos"), "cosine"),
        (lambda v: v.neighbours(metric="cos"), "cosine"),
        (lambda v: v.link_scores([(0, 1)], metric="cos"), "cosine"),
        (lambda v: v.nearest(3, n_jobs=0), "n_jobs"),
        (lambda v: v.nearest(3, approximate="yes"), "approximate"),
    ],
)
def test_questions_that_make_no_sense(call, word):
    with pytest.raises(InputError, match=word):
        call(Vectors(Z))


def test_a_vector_of_zeros_has_no_direction():
    with pytest.raises(InputError, match="node 07"):
        Vectors(Z, IDS).nearest("node 07")
    assert Vectors(Z, IDS).nearest("node 07", k=1, metric="euclidean").values[0, 0] > 0
    with pytest.warns(FishergraphWarning, match="node 07"):
        found = Vectors(Z, IDS).neighbours(3)
    assert found.values[7].tolist() == [0, 0, 0]


def test_one_node_has_no_neighbours():
    with pytest.raises(InputError, match="two rows"):
        Vectors(Z[:1]).neighbours(1)
    assert Vectors(Z[:1]).nearest(vectors=Z[:2], k=1).rows.tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("matrix", "word"),
    [
        (Z[0], "matrix"),
        (np.empty((0, 3)), "matrix"),
        (np.empty((3, 0)), "matrix"),
        (np.where(np.arange(30)[:, None] == 4, np.nan, Z), "row 4"),
        (np.array([["a", "b"]]), "numbers"),
        (EDGES.adjacency, "sparse"),
    ],
)
def test_what_is_no_embedding(matrix, word):
    with pytest.raises(InputError, match=word):
        Vectors(matrix)


def test_a_bad_row_is_named_by_its_id():
    bad = np.where(np.arange(30)[:, None] == 4, np.inf, Z)
    with pytest.raises(InputError, match="node 04"):
        Vectors(bad, IDS)


def test_ids_are_one_per_row_and_distinct():
    with pytest.raises(InputError, match="30"):
        Vectors(Z, IDS[:-1])
    with pytest.raises(InputError, match="node 00"):
        Vectors(Z, [*IDS[:-1], IDS[0]])


def test_without_pynndescent_the_extra_is_named(monkeypatch):
    def absent(package, *, extra):
        raise MissingExtra(package=package, extra=extra)

    monkeypatch.setattr("fishergraph.vectors.approximate.require", absent)
    with pytest.raises(MissingExtra, match="approximate"):
        Vectors(Z).neighbours(3, approximate=True)


def test_an_approximate_search_knows_two_metrics():
    pytest.importorskip("pynndescent")
    with pytest.raises(InputError, match="euclidean"):
        Vectors(Z).neighbours(3, metric="dot", approximate=True)


# --- what comes back --------------------------------------------------------------------------------------


def test_neighbours_as_tables():
    found = Vectors(Z, IDS).nearest(["node 03", "node 12"], k=2, metric="euclidean")
    table = found.to_arrow()
    assert table.column_names == ["node", "rank", "neighbour", "distance"]
    assert table["node"].to_pylist() == ["node 03"] * 2 + ["node 12"] * 2
    assert table["rank"].to_pylist() == [1, 2, 1, 2]
    assert table["neighbour"].to_pylist() == found.ids.ravel().tolist()
    assert found.to_pandas().shape == (4, 4)
    assert repr(found) == "Neighbours(2 of each of 2 nodes, euclidean)"


def test_cora_has_papers_of_one_topic_beside_each_other():
    cora = load_graph("cora")
    model = FisherEmbedding(random_state=0)
    vectors = Vectors(model.fit_transform(cora.X, graph=cora.graph), cora.ids, model.blocks_)
    found = vectors.neighbours(10)
    assert np.mean(cora.y[found.rows] == cora.y[:, None]) > 0.75


def test_neighbours_by_default_are_as_many_as_there_are_and_a_given_number_is_refused():
    vectors = Vectors(Z[:4], ids=IDS[:4])
    assert vectors.nearest(IDS[0]).ids.shape == (1, 3)
    assert vectors.neighbours().k == 3
    assert Vectors(Z, ids=IDS).neighbours().k == 10
    with pytest.raises(InputError, match="k must"):
        vectors.nearest(IDS[0], 4)
