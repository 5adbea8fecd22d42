"""Edges weighed by their age: exact for parallel edges, in every kind of graph that has times."""

import datetime
import math

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fishergraph import FisherEmbedding, Neighbourhood, as_graph
from fishergraph._errors import InputError
from fishergraph.scale import Store

# a → b at 1, 5 and 5, b → c at 3, c → c at 4, a → c at 0 with weight 0
EDGES = [("a", "b", 1.0, 1.0), ("a", "b", 5.0, 2.0), ("b", "c", 3.0, 1.0), ("a", "b", 5.0, 1.0), ("c", "c", 4.0, 0.5)]
FRAME = pd.DataFrame([*EDGES, ("a", "c", 0.0, 0.0)], columns=["source", "target", "time", "weight"])


def weights_of(graph, **options):
    """{(member, owner): weight} of open neighbourhoods."""
    sets = Neighbourhood(closed=False, **options)(graph)
    ids = np.arange(sets.n_sets) if not hasattr(graph, "ids") or graph.ids is None else graph.ids
    owners = np.repeat(np.arange(sets.n_sets), np.diff(sets.indptr))
    weights = np.ones(len(sets.indices)) if sets.weights is None else sets.weights
    pairs = zip(ids[sets.indices].tolist(), ids[owners].tolist(), strict=True)
    return dict(zip(pairs, weights.tolist(), strict=True))


def reference(edges, decay, now):
    """The sums over parallel edges, one by one."""
    sums: dict = {}
    for source, target, time, weight in edges:
        sums[source, target] = sums.get((source, target), 0.0) + weight * math.exp(-(now - time) / decay)
    return {pair: weight for pair, weight in sums.items() if weight > 0}


def check(found, expected):
    assert found.keys() == expected.keys()
    assert_allclose([found[pair] for pair in expected], list(expected.values()), rtol=1e-6)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("name", ["time", "Timestamp"])
def test_a_table(make, name):
    graph = as_graph(make({c if c != "time" else name: FRAME[c].tolist() for c in FRAME}))
    check(weights_of(graph, decay=2.0), reference(FRAME.values.tolist(), 2.0, 5.0))
    check(weights_of(graph, decay=2.0, now=9.0), reference(FRAME.values.tolist(), 2.0, 9.0))
    check(weights_of(graph), reference(FRAME.values.tolist(), np.inf, 5.0))  # without decay the weights add


@pytest.mark.parametrize("directed", [True, False])
def test_networkx(directed):
    graph = (nx.MultiDiGraph if directed else nx.MultiGraph)()
    for source, target, time, weight in EDGES:
        graph.add_edge(source, target, time=time, weight=weight)
    back = [] if directed else [(v, u, t, w) for u, v, t, w in EDGES if u != v]
    check(weights_of(as_graph(graph), decay=3.0), reference(EDGES + back, 3.0, 5.0))


def test_igraph():
    igraph = pytest.importorskip("igraph")
    source, target, times, weights = zip(*EDGES, strict=True)
    graph = igraph.Graph([["abc".index(u), "abc".index(v)] for u, v in zip(source, target, strict=True)], directed=True)
    graph.vs["name"], graph.es["time"], graph.es["weight"] = list("abc"), times, weights
    check(weights_of(as_graph(graph), decay=3.0), reference(EDGES, 3.0, 5.0))


@pytest.mark.parametrize("name", ["edge_time", "time"])
def test_pyg(name):
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    source, target, times, _ = zip(*EDGES, strict=True)
    index = torch.tensor([["abc".index(u) for u in source], ["abc".index(v) for v in target]])
    graph = as_graph(data.Data(edge_index=index, num_nodes=3, **{name: torch.tensor(times)}))
    plain = [("abc".index(u), "abc".index(v), t, 1.0) for u, v, t, _ in EDGES]
    check(weights_of(graph, decay=3.0), reference(plain, 3.0, 5.0))


def test_undirected_counts_what_is_listed_both_ways_at_once_once():
    edges = [
        ("a", "b", 1.0, 1.0),
        ("b", "a", 1.0, 3.0),
        ("a", "b", 2.0, 1.0),
        ("a", "b", 2.0, 1.0),
        ("c", "c", 2.0, 1.0),
    ]
    graph = as_graph(pd.DataFrame(edges, columns=["source", "target", "time", "weight"]), undirected=True)
    once = [(u, v, *rest) for u, v in ["ab", "ba"] for rest in [(1.0, 3.0), (2.0, 2.0)]] + [("c", "c", 2.0, 1.0)]
    check(weights_of(graph, decay=0.5), reference(once, 0.5, 2.0))


@pytest.mark.parametrize("direction", ["in", "out"])
def test_directions(direction):
    graph = as_graph(FRAME)
    expected = reference(FRAME.values.tolist(), 2.0, 5.0)
    expected = expected if direction == "in" else {(v, u): w for (u, v), w in expected.items()}
    check(weights_of(graph, decay=2.0, direction=direction), expected)


def test_dates_count_in_seconds_and_durations_have_units():
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 31)]
    expected = {("a", "c"): math.exp(-3.0), ("b", "c"): 1.0}
    for column in (days, pd.to_datetime(days), pd.to_datetime(days).tz_localize("UTC"), pa.array(days)):
        table = pa.table({"source": ["a", "b"], "target": ["c", "c"], "time": column})
        for decay in (10 * 86400, "10d", "240 h"):
            check(weights_of(as_graph(table), decay=decay), expected)
    later = weights_of(as_graph(table), decay="10d", now="2024-02-10")
    check(later, {pair: weight * math.exp(-1.0) for pair, weight in expected.items()})


def test_a_subgraph_keeps_its_times():
    graph = as_graph(FRAME)[[2, 0, 1]]
    check(weights_of(graph, decay=2.0), reference(FRAME.values.tolist(), 2.0, 5.0))
    part = as_graph(FRAME)[[1, 2]]  # the last edge of it is at 4
    check(weights_of(part, decay=2.0), reference([edge for edge in EDGES if "a" not in edge[:2]], 2.0, 4.0))


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 2, st.floats(-50, 50), st.integers(0, 3)), min_size=1), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_sum_over_parallel_edges_is_exact_in_any_order(edges, random):
    edges = [(*edge[:3], float(edge[3])) for edge in edges]
    shuffled = edges[:]
    random.shuffle(shuffled)
    frames = [pd.DataFrame(rows, columns=["source", "target", "time", "weight"]) for rows in (edges, shuffled)]
    one, other = (as_graph(frame, node_ids=range(5)) for frame in frames)
    kept = [edge for edge in edges if edge[3] > 0]
    if kept:
        latest = max(edge[2] for edge in kept)
        check(weights_of(one, decay=7.0), reference(edges, 7.0, latest))
        check(weights_of(one, decay=7.0), weights_of(other, decay=7.0))


def test_very_old_edges_still_have_weights():
    edges = pd.DataFrame({"source": [0, 1], "target": [2, 2], "time": [0.0, 1e9]})
    old, new = Neighbourhood(closed=False, decay=1.0)(as_graph(edges)).weights
    assert 0 < old <= 1e-29
    assert new == 1


def test_an_embedding_depends_on_the_decay_and_is_the_same_without():
    rng = np.random.default_rng(0)
    edges = pd.DataFrame(rng.integers(0, 30, (120, 2)), columns=["source", "target"])
    timed, X = edges.assign(time=rng.random(120)), rng.normal(size=(30, 5))

    def embed(table, **options):
        return FisherEmbedding(2, 2, 8, multiset=Neighbourhood(**options), random_state=0).fit_transform(X, graph=table)

    assert_array_equal(embed(edges), embed(timed))
    assert not np.allclose(embed(timed), embed(timed, decay=0.1))
    assert_allclose(embed(edges), embed(timed, decay=1e12), atol=1e-4)


def test_a_model_with_decay_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    edges = pd.DataFrame(rng.integers(0, 30, (120, 2)), columns=["source", "target"]).assign(time=rng.random(120))
    model = FisherEmbedding(1, 2, 8, multiset=Neighbourhood(decay="2s", now=3.0), random_state=0)
    Z = model.fit_transform(graph=edges)
    model.save(tmp_path / "model.safetensors")
    again = FisherEmbedding.load(tmp_path / "model.safetensors")
    assert again.multiset == model.multiset
    assert_array_equal(again.transform(graph=edges), model.transform(graph=edges))
    assert Z.shape == again.transform(graph=edges).shape


UNTIMED = {
    "no column": pd.DataFrame({"source": [0], "target": [1]}),
    "words": pd.DataFrame({"source": [0], "target": [1], "time": ["soon"]}),
    "a gap": pd.DataFrame({"source": [0, 1], "target": [1, 0], "time": [1.0, np.nan]}),
    "an infinite one": pd.DataFrame({"source": [0, 1], "target": [1, 0], "time": [1.0, np.inf]}),
    "a missing date": pd.DataFrame({"source": [0, 1], "target": [1, 0], "time": pd.to_datetime(["2024-01-01", None])}),
    "a matrix": sp.csr_array(np.eye(2)),
    "some of the edges": nx.DiGraph([(0, 1, {"time": 1}), (1, 0)]),
}


@pytest.mark.parametrize("graph", UNTIMED.values(), ids=UNTIMED)
def test_a_graph_without_times(graph):
    Neighbourhood()(graph)
    with pytest.raises(InputError, match="times"):
        Neighbourhood(decay=1.0)(graph)


def test_a_store_and_tensors_have_no_times(tmp_path):
    torch = pytest.importorskip("torch")
    model = FisherEmbedding(1, 2, 4, multiset=Neighbourhood(decay=1.0))
    with pytest.raises(InputError, match="times"):
        model.fit(torch.rand(3, 2), graph=torch.tensor([[0, 1], [1, 2]]))
    from fishergraph.nn import FisherConv

    with pytest.raises(TypeError, match="tensor_sets"):
        FisherConv(2, 2, multiset=Neighbourhood(decay=1.0))(torch.rand(3, 2), torch.tensor([[0, 1], [1, 2]]))
    store = Store.create(tmp_path / "s", np.ones((3, 2)), sp.csr_array(np.eye(3))) if hasattr(Store, "create") else None
    if store is not None:
        with pytest.raises(InputError, match="times"):
            model.fit(store)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"decay": 0}, "decay"),
        ({"decay": -1.0}, "decay"),
        ({"decay": np.inf}, "decay"),
        ({"decay": "30"}, "decay"),
        ({"decay": "d"}, "decay"),
        ({"decay": "-3d"}, "decay"),
        ({"decay": "soon"}, "decay"),
        ({"decay": 1, "now": "soon"}, "now"),
        ({"decay": 1, "now": np.nan}, "now"),
        ({"now": 3.0}, "now"),
    ],
)
def test_bad_options(options, word):
    with pytest.raises(InputError) as caught:
        Neighbourhood(**options)
    assert caught.value.parameter == word


def test_now_is_not_before_the_last_edge():
    with pytest.raises(InputError, match="before the last edge") as caught:
        Neighbourhood(decay=1.0, now=4.5)(as_graph(FRAME))
    assert caught.value.parameter == "now"
