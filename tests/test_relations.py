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
from fishergraph._errors import InputError, UnknownNodeError
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
