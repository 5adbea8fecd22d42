"""`as_relations` and `Relations`: everything that people have several kinds of edges in."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from fishergraph import Relations, as_graph, as_relations
from fishergraph._errors import EdgeFaultsError, InputError, UnknownNodeError
from fishergraph.graphs import Bipartite

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
# authors a0, a1; papers p0, p1, p2
PAIRS = [("a0", "p0", 1.0), ("a1", "p0", 2.0), ("a1", "p2", 1.0), ("a1", "p2", 0.5)]
NODES = {"author": ["a0", "a1"], "paper": ["p0", "p1", "p2"]}
MATRIX = np.array([[1.0, 2.0], [0, 0], [0, 1.5]])  # (paper, author)


def numbered():
    return np.array([[int(u[1]) for u, *_ in PAIRS], [int(v[1]) for _, v, _ in PAIRS]]), np.array(
        [w for *_, w in PAIRS]
    )


def table(make):
    return make({"src": [u for u, *_ in PAIRS], "dst": [v for _, v, _ in PAIRS], "weight": [w for *_, w in PAIRS]})


def tensors():
    torch = pytest.importorskip("torch")
    index, weights = numbered()
    return torch.from_numpy(index), torch.from_numpy(weights)


BETWEEN = {
    "a matrix": lambda: sp.coo_matrix(MATRIX),
    "a pair": numbered,
    "tensors": tensors,
    "a list": lambda: PAIRS,
    "pandas": lambda: table(pd.DataFrame),
    "polars": lambda: table(pl.DataFrame),
    "pyarrow": lambda: table(pa.table),
}


@pytest.mark.parametrize("make", BETWEEN.values(), ids=BETWEEN)
def test_edges_between_two_types(make):
    relations = as_relations({WRITES: make()}, nodes=NODES)
    edges = relations.edges[WRITES]
    assert_array_equal(edges.adjacency.toarray(), MATRIX)
    assert (edges.n_sources, edges.n_nodes, edges.n_edges) == (2, 3, 3)
    assert_array_equal(relations.names("paper"), NODES["paper"])
    back = as_relations({WRITES: make()}, nodes=NODES, undirected=True).edges["paper", "rev_writes", "author"]
    assert_array_equal(back.adjacency.toarray(), MATRIX.T)


def test_sizes_and_ids_come_from_the_edges():
    relations = as_relations({WRITES: PAIRS, CITES: [("p9", "p0")]})
    assert dict(relations.sizes) == {"author": 2, "paper": 3}
    assert relations.ids["paper"].tolist() == ["p0", "p2", "p9"]
    counted = as_relations({WRITES: numbered(), CITES: np.array([[4], [1]])})
    assert dict(counted.sizes) == {"author": 2, "paper": 5}
    assert not counted.ids
    mixed = as_relations({WRITES: [(0, 7), (1, 8)], CITES: [("x", 7)]})
    assert mixed.ids["paper"].tolist() == ["7", "8", "x"]


def test_relations_within_a_type_are_those_of_as_graph():
    frame = pd.DataFrame({"source": [3, 1, 1], "target": [1, 3, 3], "time": [1.0, 2.0, 3.0]})
    one = as_relations({"a": frame}).edges["node", "a", "node"]
    other = as_graph(frame)
    assert_array_equal(one.adjacency.toarray(), other.adjacency.toarray())
    assert_array_equal(one.times.times, other.times.times)
    assert as_relations({"a": frame}).ids["node"].tolist() == [1, 3]


def test_networkx_graphs_of_other_nodes():
    relations = as_relations({"a": nx.DiGraph([("x", "y")]), "b": nx.DiGraph([("z", "y"), ("y", "x")])})
    assert relations.ids["node"].tolist() == ["x", "y", "z"]
    assert_array_equal(relations.edges["node", "a", "node"].adjacency.toarray(), [[0, 0, 0], [1, 0, 0], [0, 0, 0]])
    assert_array_equal(relations.edges["node", "b", "node"].adjacency.toarray(), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_the_union_adds_edges_of_several_relations():
    graph = as_relations({"a": [("x", "y"), ("y", "x")], "b": [("x", "y", 2.0)]}).union()
    assert_array_equal(graph.adjacency.toarray(), [[0, 1], [3, 0]])
    assert graph.ids.tolist() == ["x", "y"]
    whole = as_relations({WRITES: PAIRS}, nodes=NODES)
    assert whole.union().ids.tolist() == ["author:a0", "author:a1", "paper:p0", "paper:p1", "paper:p2"]
    assert_array_equal(whole.union().adjacency.toarray()[2:, :2], MATRIX)
    assert whole.starts == {"author": 0, "paper": 2}


def test_a_table_by_type_with_types_of_its_ends():
    frame = pd.DataFrame(
        {
            "source": [0, 1, 0],
            "target": [0, 1, 1],
            "type": ["writes", "writes", "cites"],
            "source_type": ["author", "author", "paper"],
            "target_type": ["paper"] * 3,
        }
    )
    relations = as_relations(frame)
    assert relations.keys == (WRITES, CITES)
    assert repr(relations) == "Relations(2 author, 2 paper; 'writes' 2 edges, 'cites' 1 edges)"
    with pytest.raises(InputError, match="source_type"):  # ids 0 and 1 are in both types
        as_relations(frame.drop(columns=["source_type", "target_type"]), nodes={"author": 2, "paper": 2})


def test_relations_of_one_name():
    twice = {("a", "to", "b"): [(0, 0)], ("b", "to", "a"): [(0, 0)]}
    assert "'a-to-b'" in repr(as_relations(twice))


def test_times_of_edges_between_types_stay_with_them():
    frame = table(pd.DataFrame).assign(time=[4.0, 3.0, 2.0, 1.0])
    relations = as_relations({WRITES: frame}, nodes=NODES, undirected=True)
    there, back = (relations.edges[key].times for key in (WRITES, ("paper", "rev_writes", "author")))
    assert_array_equal(there.offsets, [0, 1, 2, 4])
    assert_array_equal(there.times, [4, 3, 1, 2])
    assert_array_equal(back.times, [4, 3, 1, 2])
    assert_array_equal(back.weights, [1, 2, 0.5, 1])


@pytest.mark.parametrize(
    ("relations", "nodes", "word"),
    [
        ({WRITES: sp.csr_array(MATRIX.T)}, NODES, "writes"),
        ({WRITES: sp.csr_array(-MATRIX)}, NODES, "writes"),
        ({WRITES: np.array([[0, 5], [0, 1]])}, NODES, "author"),
        ({WRITES: np.array([[0, -1], [0, 1]])}, None, "row numbers"),
        ({WRITES: [("a0", "p0", -1.0)]}, NODES, "weight"),
        ({WRITES: [("a0", "p7")]}, NODES, "'p7'"),
        ({WRITES: PAIRS, CITES: sp.csr_array((3, 3))}, None, "number them"),
        ({WRITES: sp.csr_array((3, 2)), CITES: sp.csr_array((4, 4))}, None, "3 and 4"),
        ({WRITES: PAIRS}, {"author": 2, "paper": 3}, "X"),
        ({WRITES: PAIRS}, {"author": ["a0", "a0"], "paper": ["p0"]}, "distinct"),
        ({WRITES: as_graph([("a", "b")])}, None, "SciPy"),
        ({("author", "", "paper"): PAIRS}, None, "key"),
        ({"a": [("x", "y")], 3: [("x", "y")]}, None, "key"),
    ],
)
def test_bad_relations(relations, nodes, word):
    with pytest.raises((InputError, TypeError), match=word):
        as_relations(relations, nodes=nodes)


def test_an_unknown_node_says_which_type_has_it():
    with pytest.raises(UnknownNodeError, match="which is of type 'paper'") as caught:
        as_relations({WRITES: [("p0", "p1")]}, nodes=NODES)
    assert caught.value.value == "p0"


TYPED = pd.DataFrame(
    {
        "source": ["a0", "a1", "a7", "p0", "p9", "p1"],
        "target": ["p0", "p2", "p1", "p1", "p0", "P2"],
        "type": ["writes"] * 3 + ["cites"] * 3,
        "weight": [1.0, 2, 1, 1, 1, 1],
        "time": [1.0, 2, 3, 4, 5, 6],
    }
)


def test_all_unknown_nodes_are_reported_together():
    with pytest.raises(EdgeFaultsError, match="unknown=") as caught:
        as_relations(TYPED, nodes=NODES)
    faults = {fault["what"]: (fault["count"], fault["rows"], fault["values"]) for fault in caught.value.faults}
    assert faults == {
        "edges of 'writes' whose source is no author": (1, [2], ["'a7'"]),
        "edges of 'cites' whose source is no paper": (1, [4], ["'p9'"]),
        "edges of 'cites' whose target is no paper": (1, [5], ["'P2' (near 'p2')"]),
    }
    with pytest.raises(UnknownNodeError) as caught:
        as_relations(TYPED[:5].drop(index=2), nodes=NODES)
    assert (caught.value.value, caught.value.count, caught.value.rows) == ("p9", 1, [3])


def test_unknown_nodes_are_dropped_or_added():
    dropped = as_relations(TYPED, nodes=NODES, unknown="drop")
    assert dict(dropped.sizes) == {"author": 2, "paper": 3}
    assert [edges.n_edges for edges in dropped.edges.values()] == [2, 1]
    assert_array_equal(dropped.edges[WRITES].adjacency.toarray(), [[1, 0], [0, 0], [0, 2]])
    assert_array_equal(dropped.edges[WRITES].times.times, [1, 2])
    assert [edges.reading.dropped for edges in dropped.edges.values()] == [1, 2]
    added = as_relations(TYPED, nodes=NODES, unknown="add")
    assert added.ids["paper"].tolist() == ["p0", "p1", "p2", "P2", "p9"]
    assert added.ids["author"].tolist() == ["a0", "a1", "a7"]
    assert [edges.n_edges for edges in added.edges.values()] == [3, 3]
    lists = as_relations({WRITES: [("a0", "p0"), ("a5", "p0")]}, nodes=NODES, unknown="add")
    assert lists.ids["author"].tolist() == ["a0", "a1", "a5"]
    wrong = {WRITES: [("p0", "p1")]}
    for choice in ("drop", "add"):  # a node of another type is no unknown one
        with pytest.raises(UnknownNodeError, match="of type 'paper'"):
            as_relations(wrong, nodes=NODES, unknown=choice)
    for options in ({"nodes": NODES, "unknown": "keep"}, {"unknown": "drop"}):
        with pytest.raises(InputError, match="unknown"):
            as_relations(TYPED, **options)


def test_ends_of_no_given_type_are_another_type():
    table = TYPED[:2]
    with pytest.warns(UserWarning, match="sources of 'writes'"):
        relations = as_relations(pd.concat([table, TYPED[3:4]]), nodes={"paper": NODES["paper"]})
    assert relations.keys == (("node", "writes", "paper"), CITES)
    assert relations.ids["node"].tolist() == ["a0", "a1"]
    # ids of a type that has no edge otherwise are that type's, and faults
    with pytest.raises(UnknownNodeError) as caught:
        as_relations(pd.concat([table, TYPED[3:4]]), nodes={**NODES, "author": ["A0", "A1"]})
    assert (caught.value.count, caught.value.near) == (2, ["A0"])


def test_the_summary_tells_every_relation():
    table = pd.concat([TYPED[:2], TYPED[:1], TYPED[3:4]]).assign(page=[3, 4, 5, 6])
    with pytest.warns(UserWarning, match="'page'"):
        relations = as_relations(table, nodes=NODES)
    assert str(relations.summary()).splitlines() == [
        "2 author, 3 paper; left aside: page",
        "  writes: 2 edges from author to paper, weights 2 to 2, 1 parallel edge added to another, "
        "1 node without edges",
        "  cites: 1 edge with direction (0.0 % reciprocated), 1 node without edges",
    ]
    first, second = relations.summary().relations
    assert (first.name, first.source, first.target, first.parallel) == ("writes", "author", "paper", 1)
    assert second.reciprocity == 0
    assert relations.summary().as_dict()["relations"][0]["edges"] == 2
    assert "rev_writes: 2 edges from paper to author" in str(relations.both_ways().summary())


def test_records_are_validated():
    square = as_graph(sp.csr_array(np.eye(3)))
    with pytest.raises(InputError, match="types"):
        Relations({"paper": 3}, {WRITES: square})
    with pytest.raises(InputError, match="go from"):
        Relations({"paper": 4}, {CITES: square})
    with pytest.raises(TypeError, match="Bipartite"):
        Relations({"paper": 3}, {CITES: np.eye(3)})
    with pytest.raises(TypeError, match="at least one"):
        Relations({"paper": 3}, {})
    with pytest.raises(InputError, match="indices"):
        Bipartite(np.array([0, 1]), np.array([3]), n_sources=3)
    with pytest.raises(InputError, match="indptr"):
        Bipartite(np.array([0, 2]), np.array([0]), n_sources=3)
    again = Relations({"paper": 3}, {CITES: square})
    assert as_relations(again) is again
