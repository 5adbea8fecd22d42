"""FisherEmbedding on several relations and types of nodes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

import reference as ref
from fishergraph import EM, FisherEmbedding, Neighbourhood, Nystrom, PageRank, as_graph, as_relations
from fishergraph._errors import FileFormatError, InputError

SIZES = {"author": 30, "paper": 50, "venue": 12, "topic": 20}
WRITES, CITES, IN, KNOWS = (
    ("author", "writes", "paper"),
    ("paper", "cites", "paper"),
    ("paper", "in", "venue"),
    (
        "author",
        "knows",
        "author",
    ),
)
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


def random_edges(key, n_edges, seed):
    """(source, target, weight) of a relation."""
    rng = np.random.default_rng(seed)
    ends = (rng.integers(0, SIZES[key[side]], n_edges) for side in (0, 2))
    return list(zip(*(end.tolist() for end in ends), rng.integers(1, 4, n_edges).astype(float).tolist(), strict=True))


EDGES = {key: random_edges(key, n, k) for k, (key, n) in enumerate({WRITES: 90, CITES: 120, IN: 50}.items())}


def pairs(edges):
    """(edge_index, weights)"""
    source, target, weights = zip(*edges, strict=True)
    return np.array([source, target]), np.array(weights)


GRAPH = {key: pairs(edges) for key, edges in EDGES.items()}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(9)
    widths = {"author": 6, "paper": 9, "venue": 4, "topic": 5}
    return {name: rng.normal(size=(SIZES[name], width)) for name, width in widths.items()}


def model(**changes):
    given = {"n_layers": 2, "n_anchors": 3, "dim": 10, "walk": None, "structure": None, "random_state": 0, **changes}
    return FisherEmbedding(**given)


def cut(Z, blocks):
    """{name: columns} of an output."""
    ends = np.cumsum([width for _, width in blocks])
    return dict(zip([name for name, _ in blocks], np.split(Z, ends[:-1], axis=1), strict=True))


# ------------------------------------------------------------------------------------------------- the reference


@pytest.mark.parametrize("n_iter", [1, 2])
@pytest.mark.parametrize("closed", [True, False])
def test_every_block_is_what_the_equations_say(X, n_iter, closed):
    """Members, EM, φ and ψ of each relation by loops in float64; the points of the next layer from all of them."""
    em, kernel = EM(n_iter=n_iter), Nystrom(bandwidth=1.3)
    embedding = model(n_layers=3, em=em, kernel=kernel, multiset=Neighbourhood(closed=closed))
    Z = embedding.fit_transform(X, graph=GRAPH)
    stack = embedding.stack_
    layout = stack.layout
    parts = {name: cut(Z[name], embedding.blocks_[name]) for name in layout.names}
    points = {}
    for one, input_map in zip(layout.names, stack.inputs, strict=True):
        psi = ref.nystrom([ref.unit(x) for x in X[one]], input_map.landmarks, 1.3, cutoff=1e-6)
        assert_allclose(parts[one]["psi0"], psi, **CLOSE)
        points[one] = np.array([ref.unit(row) for row in psi])
    for t in (1, 2, 3):
        values = {}
        for key, layers in zip(layout.relations, stack.relation_layers, strict=True):
            layer, members = layers[t - 1], ref.relational_members(EDGES[key], SIZES[key[2]], closed, key)
            theta = layer.theta
            means, _ = ref.em_means(points[key[0]], members, theta.anchors, theta.variance, n_iter=n_iter)
            phi = ref.fisher_embedding(means, theta.anchors).reshape(len(members), -1)
            values[key] = ref.nystrom(phi, layer.kernel_map.landmarks, 1.3, cutoff=1e-6)
            assert_allclose(parts[key[2]][f"psi{t}:{key[1]}"], values[key], **CLOSE)
        for number, one in enumerate(layout.names if t < 3 else ()):
            made = [values[key] for key in sorted(values) if key[2] == one]
            made += [] if (one, one) in [(key[0], key[2]) for key in values if key[2] == one] else [points[one]]
            mix = stack.mixes[number][t - 1]
            points[one] = ref.relational_points(made, None if mix is None else mix.axes)


def test_the_kernel_is_the_sum_over_blocks(X):
    weights = {"psi1:writes": 3.0, "psi2:cites": 0.5, "psi0": 0.0}
    plain, weighed = model(), model(block_weights=weights)
    one, other = (m.fit_transform(X, graph=GRAPH)["paper"] for m in (plain, weighed))
    blocks = cut(one, plain.blocks_["paper"])
    factors = [weights.get(name, 1.0) for name in blocks]
    for v, u in [(0, 1), (3, 3), (7, 40)]:
        rows = [[block[w] for block in blocks.values()] for w in (v, u)]
        assert_allclose(other[v] @ other[u], ref.multilayer_kernel(*rows, factors), **CLOSE)
    assert "psi0" not in dict(weighed.blocks_["paper"])


def test_the_axes_of_a_part_keep_the_most_of_its_kernel(X):
    """Of all projections to so few columns, the leading axes lose the least."""
    from fishergraph.relational.stack import principal_columns

    rows = np.random.default_rng(0).normal(size=(40, 8)) * [5, 4, 3, 1, 1, 1, 1, 1] + 1
    axes = principal_columns(rows, 3)
    assert_allclose(axes.T @ axes, np.eye(3), atol=1e-12)
    lost = np.linalg.norm(rows @ rows.T - rows @ axes @ axes.T @ rows.T)
    values = np.linalg.svd(rows, compute_uv=False)
    assert_allclose(lost, np.linalg.norm(values[3:] ** 2))


# ----------------------------------------------------------------------------------------------------- properties

MULTISETS = {
    "neighbourhood": "neighbourhood",
    "open": Neighbourhood(closed=False),
    "undirected": Neighbourhood(undirected=True),
    "out": Neighbourhood(direction="out"),
    "both": Neighbourhood(direction="both"),
    "symmetric": Neighbourhood(weights="symmetric"),
    "pagerank": PageRank(members=8),
}


@pytest.mark.parametrize("options", [{}, {"walk": 0.1, "structure": "auto"}], ids=["layers", "all blocks"])
@pytest.mark.parametrize("multiset", MULTISETS.values(), ids=MULTISETS)
@pytest.mark.parametrize("features", [True, False])
def test_one_relation_has_the_bits_of_one_graph(X, multiset, options, features):
    graph = as_graph(GRAPH[CITES], n_nodes=50)
    given = X["paper"].astype(np.float32) if features else None
    plain, several = (model(multiset=multiset, **({"structure": "auto"} | options)) for _ in range(2))
    Z = plain.fit_transform(given, graph=graph)
    assert_array_equal(several.fit_transform(given, graph={"cites": graph}), Z)
    assert_array_equal(several.transform(given, graph={"cites": graph}), plain.transform(given, graph=graph))
    assert [name.partition(":")[0] for name, _ in several.blocks_] == [name for name, _ in plain.blocks_]
    named = {CITES: graph}
    assert_array_equal(clone(several).fit_transform(given, graph=named), Z)


def test_the_order_of_relations_and_types_is_that_of_blocks_alone(X):
    first, second = model(walk=0.1, structure="auto"), model(walk=0.1, structure="auto")
    Z = first.fit_transform(X, graph={**GRAPH, KNOWS: GRAPH[WRITES][0][[0, 0]]})
    turned = {KNOWS: GRAPH[WRITES][0][[0, 0]], **dict(reversed(GRAPH.items()))}
    Y = second.fit_transform(dict(reversed(X.items())), graph=turned)
    for name in SIZES:
        one, other = cut(Z[name], first.blocks_[name]), cut(Y[name], second.blocks_[name])
        assert one.keys() == other.keys()
        for block in one:
            if block.startswith("psi"):
                assert_array_equal(one[block], other[block])


def test_new_names_change_nothing(X):
    names = {"author": "person", "paper": "work", "venue": "place", "topic": "subject"}
    graph = {(names[s], f"x_{r}", names[t]): edges for (s, r, t), edges in GRAPH.items()}
    Z = model().fit_transform(X, graph=GRAPH)
    Y = model().fit_transform({names[name]: rows for name, rows in X.items()}, graph=graph)
    for name in SIZES:
        assert_allclose(Z[name] @ Z[name].T, Y[names[name]] @ Y[names[name]].T, atol=1e-4)


def test_rows_may_be_permuted(X):
    """A model applied to permuted nodes gives the permuted rows."""
    fitted = model(walk=0.1, structure="local").fit(X, graph=GRAPH)
    rng = np.random.default_rng(1)
    orders = {name: rng.permutation(size) for name, size in SIZES.items()}  # new row → old row
    places = {name: np.argsort(order) for name, order in orders.items()}
    moved = {
        key: (np.stack([places[key[0]][index[0]], places[key[2]][index[1]]]), weights)
        for key, (index, weights) in GRAPH.items()
    }
    Z = fitted.transform(X, graph=GRAPH)
    Y = fitted.transform({name: X[name][orders[name]] for name in X}, graph=moved)
    for name in SIZES:
        assert_allclose(Y[name], Z[name][orders[name]], atol=2e-4)


def test_an_edge_reaches_only_those_it_should(X):
    """One layer: an edge of one relation changes the block of its target in that relation, and nothing else."""
    fitted = model(n_layers=1).fit(X, graph=GRAPH)
    index, weights = GRAPH[WRITES]
    more = {**GRAPH, WRITES: (np.append(index, [[3], [5]], axis=1), np.append(weights, 9.0))}
    Z, Y = (fitted.transform(X, graph=graph) for graph in (GRAPH, more))
    blocks = fitted.blocks_
    for name in SIZES:
        for block, values in cut(Y[name], blocks[name]).items():
            changed = np.flatnonzero((values != cut(Z[name], blocks[name])[block]).any(axis=1)).tolist()
            assert changed == ([5] if block == "psi1:writes" else []), (name, block)


def test_a_second_layer_hears_of_a_neighbours_other_relations(X):
    """author → paper → venue: an author's features reach the venues of the papers by layer 2."""
    fitted = model().fit(X, graph=GRAPH)
    other = {**X, "author": X["author"][::-1].copy()}
    Z, Y = (fitted.transform(features, graph=GRAPH) for features in (X, other))
    one, two = (cut(rows["venue"], fitted.blocks_["venue"]) for rows in (Z, Y))
    assert_array_equal(one["psi1:in"], two["psi1:in"])
    assert (one["psi2:in"] != two["psi2:in"]).any()


def test_a_type_that_no_relation_reaches_has_its_own_blocks(X):
    embedding = model(walk=0.1, structure="local")
    Z = embedding.fit_transform(X, graph=GRAPH)
    assert [name for name, _ in embedding.blocks_["topic"]] == ["psi0", "walk", "smooth", "local"]
    assert Z["topic"].shape[0] == 20


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_bits_do_not_depend_on_threads(n_jobs):
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=(3000, 8)).astype(np.float32), "b": None}
    graph = {("a", "to", "b"): rng.integers(0, 2500, (2, 9000)), ("b", "of", "a"): rng.integers(0, 2500, (2, 9000))}
    graph["a", "on", "a"] = rng.integers(0, 3000, (2, 8000))
    graph = as_relations(graph, nodes={"a": 3000, "b": 2500})
    options = {"dim": 32, "walk": 0.1, "structure": "auto"}
    one, several = (model(n_jobs=n, **options).fit_transform(X, graph=graph) for n in (1, n_jobs))
    for name, rows in one.items():
        assert_array_equal(several[name], rows)


def test_fit_then_transform_and_fit_transform(X):
    Z = model(walk=0.1, structure="auto").fit_transform(X, graph=GRAPH)
    Y = model(walk=0.1, structure="auto").fit(X, graph=GRAPH).transform(X, graph=GRAPH)
    for name in SIZES:
        assert_allclose(Z[name], Y[name], atol=1e-5)


def test_undirected_adds_the_reverse_of_relations_between_types(X):
    embedding = model(multiset=Neighbourhood(undirected=True))
    Z = embedding.fit_transform(X, graph=GRAPH)
    turned = {WRITES: GRAPH[WRITES], IN: GRAPH[IN], CITES: as_graph(GRAPH[CITES], undirected=True, n_nodes=50)}
    turned |= {(t, f"rev_{r}", s): (GRAPH[s, r, t][0][::-1], GRAPH[s, r, t][1]) for s, r, t in (WRITES, IN)}
    Y = model().fit_transform(X, graph=turned)
    assert "psi1:rev_writes" in dict(embedding.blocks_["author"])
    for name in SIZES:
        assert_allclose(Z[name] @ Z[name].T, Y[name] @ Y[name].T, atol=1e-5)
    again = embedding.transform(X, graph=GRAPH)
    assert_allclose(again["author"], Z["author"], atol=1e-5)


def test_decay_counts_from_the_latest_edge_of_all_relations(X):
    frame = pd.DataFrame({"source": [0, 1, 2], "target": [3, 3, 4], "time": [1.0, 2.0, 3.0]})
    late = frame.assign(time=frame.time + 7)
    aged = model(n_layers=1, multiset=Neighbourhood(decay=2.0))
    now = model(n_layers=1, multiset=Neighbourhood(decay=2.0, now=10.0))
    rows = {"node": X["paper"]}
    graph = {"early": frame, "late": late}
    assert_array_equal(aged.fit_transform(rows, graph=graph), now.fit_transform(rows, graph=graph))


def test_planted_relations_are_told_apart(X):
    """Two relations with communities of their own: each block knows its own, and merged edges know neither."""
    rng = np.random.default_rng(0)
    n, first, second = 240, np.arange(240) % 2, np.arange(240) // 2 % 2

    def community(labels):
        ends = rng.integers(0, n, (2, 4000))
        return ends[:, labels[ends[0]] == labels[ends[1]]]

    graph = {"work": community(first), "home": community(second)}
    noise = rng.normal(size=(n, 4)).astype(np.float32)
    # Features say who is who; what they are among neighbours says the community.
    rows = np.hstack([noise, np.eye(2)[first], np.eye(2)[second]]).astype(np.float32)
    embedding = model(n_layers=1, dim=16)
    blocks = cut(embedding.fit_transform(rows, graph=graph), embedding.blocks_)

    def contrast(block, labels):
        rows = block - block.mean(axis=0)
        return np.linalg.norm(rows[labels == 0].mean(axis=0) - rows[labels == 1].mean(axis=0)) / rows.std()

    assert contrast(blocks["psi1:work"], first) > 3 * contrast(blocks["psi1:work"], second)
    assert contrast(blocks["psi1:home"], second) > 3 * contrast(blocks["psi1:home"], first)


# ------------------------------------------------------------------------------------------------------------ inputs


def heterodata(X):
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data").HeteroData()
    for name, rows in X.items():
        data[name].x = torch.from_numpy(rows)
    for key, (index, weights) in GRAPH.items():
        data[key].edge_index, data[key].edge_weight = torch.from_numpy(index), torch.from_numpy(weights)
    return data


def test_heterodata(X):
    data = heterodata(X)
    Z = model().fit_transform(X, graph=GRAPH)
    for Y in (model().fit_transform(data), model().fit_transform(X, graph=data)):
        for name in SIZES:
            assert_array_equal(Y[name], Z[name])
    with pytest.warns(UserWarning, match="not used"):
        model(structure="auto").fit(graph=data)


def test_tables_with_ids(X):
    """Frames with ids as their index, and tables of named edges, in any order of the nodes."""
    ids = {name: np.array([f"{name[0]}{k:02}" for k in range(size)]) for name, size in SIZES.items()}
    graph, typed = {}, []
    for key, edges in EDGES.items():
        source, target, weight = zip(*edges, strict=True)
        names = {"source": ids[key[0]][list(source)], "target": ids[key[2]][list(target)], "weight": weight}
        graph[key] = pd.DataFrame(names)
        typed.append(pd.DataFrame(names).assign(type=key[1]))
    frames = {
        name: pd.DataFrame(X[name], index=ids[name], columns=[f"x{k}" for k in range(X[name].shape[1])]) for name in X
    }
    Z = model().fit_transform(X, graph=GRAPH)
    whole = pd.concat(typed)
    with pytest.warns(UserWarning, match="kinds of edges"):
        fitted = model().fit(frames, graph=whole)
    Y, V = model().fit_transform(frames, graph=graph), fitted.transform(frames, graph=as_relations(whole, nodes=ids))
    for name in SIZES:
        assert_array_equal(Y[name], Z[name])
        assert_allclose(V[name], Z[name], atol=1e-5)


def test_a_table_with_one_type_of_nodes(X):
    table = pd.DataFrame({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0], "type": ["a", "a", "b", "b"]})
    with pytest.warns(UserWarning, match="2 kinds of edges, 'a', 'b'"):
        Z = model(n_layers=1).fit_transform(X["paper"][:4], graph=table)
    both = {"a": table[:2], "b": table[2:]}
    assert_array_equal(model(n_layers=1).fit_transform(X["paper"][:4], graph=both), Z)


@pytest.mark.parametrize("kinds", [["a"] * 4, ["Directed"] * 4, ["Directed", "Undirected"] * 2])
def test_a_table_with_one_kind_of_edges_is_one_graph(X, kinds):
    table = pd.DataFrame({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0], "Type": kinds})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = model(n_layers=1).fit(X["paper"][:4], graph=table)
    assert not [one for one in caught if "kinds of edges" in str(one.message)]
    assert [name for name, _ in fitted.blocks_] == ["psi0", "psi1"]


def test_types_without_features_get_columns_of_the_edges(X):
    rows = {"paper": X["paper"], "author": None}
    embedding = model(walk=0.1, structure="auto", multiset=Neighbourhood(undirected=True))
    Z = embedding.fit_transform(rows, graph=GRAPH)
    assert {name: rows.shape[0] for name, rows in Z.items()} == {"paper": 50, "author": 30, "venue": 12}
    assert dict(embedding.blocks_["author"])["psi0"] > 1
    assert not embedding.structural_
    alone = model(walk=0.1, structure="auto", multiset=Neighbourhood(undirected=True)).fit(graph=GRAPH)
    assert alone.structural_
    with pytest.raises(InputError, match="X"):
        alone.transform(rows, graph=GRAPH)


def test_a_type_without_relations_is_told(X):
    with pytest.warns(UserWarning, match="'topic'"):
        model().fit(X, graph=GRAPH)
    relations = as_relations(GRAPH, nodes={**SIZES, "topic": 20})
    with pytest.raises(InputError, match="type of nodes in X"):
        model().fit({**X, "papers": X["paper"]}, graph=relations)


def test_small_types_have_few_landmarks_without_a_warning(X):
    rows = {name: X[name] for name in ("author", "paper", "venue")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(dim=20).fit(rows, graph=GRAPH)


def test_sparse_features_of_several_types(X):
    options = {"walk": 0.1, "structure": "local"}
    Z = model(**options).fit_transform(X, graph=GRAPH)
    Y = model(**options).fit_transform({name: sp.csr_array(rows) for name, rows in X.items()}, graph=GRAPH)
    for name in SIZES:
        assert_allclose(Y[name] @ Y[name].T, Z[name] @ Z[name].T, atol=2e-3)


def test_new_nodes_and_relations_without_edges(X):
    """transform takes other nodes, and a relation that has no edges there."""
    fitted = model().fit(X, graph=GRAPH)
    few = {name: rows[:5] for name, rows in X.items()}
    empty = np.zeros((2, 0), dtype=int)
    graph = {WRITES: np.array([[0, 1], [0, 0]]), CITES: empty, IN: empty}
    Z = fitted.transform(few, graph=graph)
    assert {len(rows) for rows in Z.values()} == {5}
    blocks = cut(Z["venue"], fitted.blocks_["venue"])
    assert not blocks["psi1:in"].any()


def test_names_and_files(X, tmp_path):
    frames = {
        name: pd.DataFrame(rows, columns=[f"{name}{k}" for k in range(rows.shape[1])]) for name, rows in X.items()
    }
    fitted = model(walk=0.1, structure="auto", n_layers=3).fit(frames, graph=GRAPH)
    names, Z = fitted.get_feature_names_out(), fitted.transform(frames, graph=GRAPH)
    for name, rows in Z.items():
        assert len(names[name]) == rows.shape[1] == sum(width for _, width in fitted.blocks_[name])
    assert names["venue"][-1].startswith("local_")
    fitted.save(tmp_path / "model.safetensors")
    again = FisherEmbedding.load(tmp_path / "model.safetensors")
    assert again.blocks_ == fitted.blocks_
    for name, rows in again.transform(frames, graph=GRAPH).items():
        assert_array_equal(rows, Z[name])
    assert again.n_samples_fit_ == sum(SIZES.values())


def test_tables_with_words_are_encoded_type_by_type(X, tmp_path):
    venues = pd.DataFrame({"city": np.resize(["Rome", "Oslo", "Lima"], 12), "rank": np.arange(12.0)})
    rows = {**X, "venue": venues}
    fitted = model(walk=0.1, structure="local").fit(rows, graph=GRAPH)
    Z = fitted.transform(rows, graph=GRAPH)
    assert set(fitted.encoder_) == {"venue"}
    encoded = fitted.encoder_["venue"].transform(venues)
    Y = model(walk=0.1, structure="local").fit({**X, "venue": encoded}, graph=GRAPH)
    assert_allclose(Y.transform({**X, "venue": encoded}, graph=GRAPH)["venue"], Z["venue"], atol=1e-5)
    fitted.save(tmp_path / "model.safetensors")
    again = FisherEmbedding.load(tmp_path / "model.safetensors")
    for name, values in again.transform(rows, graph=GRAPH).items():
        assert_array_equal(values, Z[name])
    raises("a table", lambda: again.transform({**X, "venue": encoded}, graph=GRAPH))
    raises("city", lambda: again.transform({**X, "venue": venues.drop(columns="city")}, graph=GRAPH))


def test_a_notebook_shows_the_blocks_of_every_type(X):
    page = model(walk=0.1, structure="local").fit(X, graph=GRAPH)._repr_html_()
    for text in ("paper: psi2:cites", "topic: psi0", "2 layers of 3 relations over 4 types of nodes"):
        assert text in page
    assert "psi1:cites" in model(n_layers=1).fit(X["paper"], graph={"cites": GRAPH[CITES]})._repr_html_()


def test_progress_names_layers_and_relations(X):
    from contextlib import contextmanager

    titles = []

    @contextmanager
    def show(title, steps):
        titles.append(title)
        yield type("Bar", (), {"update": lambda self, n: None})()

    model(verbose=show).fit(X, graph=GRAPH)
    assert {"layer 1/2 writes", "learning layer 2/2 cites"} <= set(titles)


def test_other_calls_say_that_they_need_one_graph(X):
    from fishergraph import Explainer, FisherClassifier

    fitted = model().fit(X, graph=GRAPH)
    with pytest.raises(InputError, match="one graph"):
        Explainer(fitted, X["paper"], graph=as_graph(GRAPH[CITES], n_nodes=50))
    with pytest.raises(TypeError, match="several kinds"):
        FisherClassifier().fit(X["paper"], np.arange(50) % 2, graph={"cites": GRAPH[CITES]})


def test_one_type_keeps_ids_in_frames():
    table = pd.DataFrame({"source": list("abca"), "target": list("bcad"), "type": list("xxyy")})
    relations = as_relations(table)
    Z = model(structure="local", n_layers=1).set_output(transform="pandas").fit_transform(graph=relations)
    assert list(Z.index) == list("abcd")
    assert Z.columns[0] == "psi0_0"


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_several_types_are_a_table_each(X, kind):
    ids = {name: [f"{name[0]}{k:02}" for k in range(size)] for name, size in SIZES.items()}
    relations = as_relations(GRAPH, nodes={name: ids[name] for name in X})
    plain = model().fit(X, graph=relations)
    Z, tables = plain.transform(X, graph=relations), plain.set_output(transform=kind).transform(X, graph=relations)
    for name, table in tables.items():
        assert_array_equal(table.to_numpy(), Z[name])
        assert list(table.columns) == plain.get_feature_names_out()[name].tolist()
        assert kind == "polars" or table.index.tolist() == ids[name]
    again = model().set_output(transform=kind).fit_transform(X, graph=relations)
    assert list(again["venue"].columns) == list(tables["venue"].columns)


def test_some_nodes_of_some_types(X):
    ids = {name: [f"{name[0]}{k:02}" for k in range(size)] for name, size in SIZES.items()}
    relations = as_relations(GRAPH, nodes=ids)
    fitted = model().fit(X, graph=relations)
    Z = fitted.transform(X, graph=relations)
    mask = np.zeros(SIZES["author"], bool)
    mask[[3, 8]] = True
    some = fitted.transform(X, graph=relations, nodes={"paper": ["p07", "p02"], "author": mask})
    assert list(some) == ["paper", "author"]
    assert_array_equal(some["paper"], Z["paper"][[7, 2]])
    assert_array_equal(some["author"], Z["author"][[3, 8]])
    tables = fitted.set_output(transform="pandas").transform(X, graph=relations, nodes={"paper": ["p07", "p02"]})
    assert tables["paper"].index.tolist() == ["p07", "p02"]
    fitted.set_output(transform="default")
    raises("mapping", lambda: fitted.transform(X, graph=relations, nodes=["p07"]))
    raises("'book'", lambda: fitted.transform(X, graph=relations, nodes={"book": ["p07"]}))
    raises("'p99'", lambda: fitted.transform(X, graph=relations, nodes={"paper": ["p99"]}))
    two = {"cites": GRAPH[CITES], "likes": GRAPH[CITES]}
    single = model().fit(X["paper"], graph=two)
    whole = single.transform(X["paper"], graph=two)
    assert_array_equal(single.transform(X["paper"], graph=two, nodes=[5, 1]), whole[[5, 1]])


# --------------------------------------------------------------------------------------------------------- bad input


def raises(word, call, kind=InputError):
    with pytest.raises((kind, TypeError) if kind is InputError else kind, match=word) as caught:
        call()
    return caught.value


def bad_inputs(X):
    empty = np.zeros((2, 0), dtype=int)
    graph, rows = GRAPH, X
    return {
        "no edges": ("at least one edge", X, {**graph, KNOWS: empty}),
        "a matrix for several types": ("mapping of the types", X["paper"], graph),
        "too few rows": ("writes", {**X, "author": X["author"][:5]}, graph),
        "an empty mapping": ("mapping", X, {}),
        "no features and no structure": ("structure", {**X, "author": None}, graph),
        "NaN": ("author", {**X, "author": X["author"] * np.nan}, graph),
        "a bad key": ("key", X, {("author", "paper"): graph[WRITES]}),
        "mixed keys": ("key", X, {"cites": graph[CITES], WRITES: graph[WRITES]}),
        "a graph between two types": ("writes", X, {**graph, WRITES: as_graph(graph[CITES])}),
        "a turned matrix": ("writes", X, {**graph, WRITES: sp.csr_array((30, 50))}),
        "no graph": ("relation", rows, {"cites": 5}),
    }


@pytest.mark.parametrize("case", bad_inputs({name: np.ones((1, 1)) for name in SIZES}))
def test_bad_input(X, case):
    word, rows, graph = bad_inputs(X)[case]
    embedding = model()
    raises(word, lambda: embedding.fit(rows, graph=graph))
    assert not hasattr(embedding, "stack_")


def test_an_edge_of_the_wrong_type_says_so():
    nodes = {"author": ["ann", "bob"], "paper": ["p", "q"]}
    error = raises("which is of type 'author'", lambda: as_relations({WRITES: [("ann", "bob")]}, nodes=nodes))
    assert error.value == "bob"
    table = pd.DataFrame({"source": ["ann", "bob"], "target": ["p", "ann"], "type": "writes"})
    raises("targets of 'writes'", lambda: as_relations(table, nodes=nodes))


def test_another_graph_than_that_of_the_fit(X):
    fitted = model().fit(X, graph=GRAPH)
    raises("relations of the fit", lambda: fitted.transform(X["paper"], graph=as_graph(GRAPH[CITES], n_nodes=50)))
    raises("relations", lambda: fitted.transform(X, graph={WRITES: GRAPH[WRITES]}))
    raises("columns", lambda: fitted.transform({**X, "author": X["author"][:, :3]}, graph=GRAPH))
    raises("given", lambda: fitted.transform(graph=GRAPH))
    plain = model().fit(X["paper"], graph=as_graph(GRAPH[CITES], n_nodes=50))
    raises("one graph", lambda: plain.transform(X, graph=GRAPH))
    raises("n_layers", lambda: fitted.set_params(n_layers=3).transform(X, graph=GRAPH))


def test_columns_of_other_names(X):
    frames = {
        name: pd.DataFrame(rows, columns=[f"{name}{k}" for k in range(rows.shape[1])]) for name, rows in X.items()
    }
    fitted = model().fit(frames, graph=GRAPH)
    other = {**frames, "venue": frames["venue"][frames["venue"].columns[::-1]]}
    raises("venue", lambda: fitted.transform(other, graph=GRAPH))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"multiset": Neighbourhood(direction="both")}, "multiset"),
        ({"multiset": "ppr"}, "multiset"),
        ({"multiset": "paths"}, "multiset"),
        ({"family": "multinomial"}, "family"),
        ({"device": "cuda"}, "device"),
        ({"block_weights": {"psi1": 2}}, "psi1:writes"),
        ({"multiset": Neighbourhood(decay=1.0)}, "times"),
    ],
)
def test_options_that_do_not_fit(X, options, word):
    raises(word, lambda: model(**options).fit({k: abs(v) for k, v in X.items()}, graph=GRAPH))


def test_a_changed_model_file_is_refused(X, tmp_path):
    path = tmp_path / "model.safetensors"
    model(n_layers=2).fit(X, graph=GRAPH).save(path)
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        metadata = file.metadata()
    arrays = load_file(path)
    mixes = [name for name in arrays if ".mix" in name]
    assert mixes
    for change in (lambda a: a[:-1], lambda a: a * 100, lambda a: a.astype(np.int64)):
        broken = {**arrays, mixes[0]: np.ascontiguousarray(change(arrays[mixes[0]]))}
        save_file(broken, tmp_path / "broken.safetensors", metadata)
        with pytest.raises(FileFormatError):
            FisherEmbedding.load(tmp_path / "broken.safetensors")
    left = {name: array for name, array in arrays.items() if name != mixes[0]}
    save_file(left, tmp_path / "broken.safetensors", metadata)
    with pytest.raises(FileFormatError):
        FisherEmbedding.load(tmp_path / "broken.safetensors")


def test_vectors_of_one_type_keep_their_ids(X):
    from fishergraph import Vectors

    ids = {name: [f"{name[0]}{k:02}" for k in range(size)] for name, size in SIZES.items()}
    relations = as_relations(GRAPH, nodes={name: ids[name] for name in X})
    fitted = model().fit(X, graph=relations)
    vectors = Vectors.from_estimator(fitted, X, graph=relations, node_type="venue")
    assert vectors.ids.tolist() == ids["venue"]
    assert vectors.blocks == fitted.blocks_["venue"]
    assert_array_equal(vectors.Z, fitted.transform(X, graph=relations)["venue"])
    frames = {name: pd.DataFrame(rows, index=ids[name]) for name, rows in X.items()}
    graph = {key: [(ids[key[0]][u], ids[key[2]][v], w) for u, v, w in edges] for key, edges in EDGES.items()}
    framed = model().fit(frames, graph=graph)
    assert Vectors.from_estimator(framed, frames, graph=graph, node_type="paper").ids.tolist() == ids["paper"]
    for wrong in (None, "book"):
        raises("node_type", lambda wrong=wrong: Vectors.from_estimator(fitted, X, graph=relations, node_type=wrong))
    plain = model().fit(X["paper"], graph=as_graph(GRAPH[CITES], n_nodes=50))
    call = {"graph": as_graph(GRAPH[CITES], n_nodes=50), "node_type": "paper"}
    raises("node_type", lambda: Vectors.from_estimator(plain, X["paper"], **call))


def test_what_takes_one_graph_says_what_works_instead(X):
    from fishergraph import Explainer, FisherClassifier, Vectors, split_edges, to_table

    relations, X = as_relations(GRAPH), {name: X[name] for name in ("author", "paper", "venue")}
    fitted = model().fit(X, graph=relations)
    Z = fitted.transform(X, graph=relations)
    y = np.arange(50) % 2
    for graph in (relations, GRAPH, {"cites": EDGES[CITES]}):
        raises("Z\\[type\\]", lambda graph=graph: as_graph(graph))
        raises("'cites'", lambda graph=graph: FisherClassifier(mode="probe").fit(X["paper"], y, graph=graph))
        raises("several kinds", lambda graph=graph: to_table(X["paper"], graph))
        raises("several kinds", lambda graph=graph: split_edges(graph))
    raises("several relations", lambda: Explainer(fitted, X, graph=relations))
    raises("Z\\['author'\\]", lambda: Vectors(Z))
    raises("neighbours of every node", lambda: as_graph({"a": ["b", "c"]}))
