"""A page of one type of nodes of several relations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from fishergraph import FisherEmbedding, as_relations
from fishergraph._errors import InputError
from fishergraph.explore import explore

PAPERS, AUTHORS = [f"p{k}" for k in range(5)], ["ann", "bob"]
EDGES = {
    ("author", "writes", "paper"): [("ann", "p0"), ("bob", "p0"), ("bob", "p3")],
    ("paper", "cites", "paper"): [("p1", "p0"), ("p2", "p1"), ("p4", "p3")],
    ("paper", "likes", "paper"): [("p1", "p0"), ("p0", "p1"), ("p3", "p2")],
}
Z = np.random.default_rng(0).normal(size=(5, 3))


def relations():
    return as_relations(EDGES, nodes={"paper": PAPERS, "author": AUTHORS})


def found(page):
    """{(source, target): relations} of the edges of a page."""
    content = page._content
    ids, edges = content.nodes.ids[content.rows], content.edges
    target, source = (ids[ends].tolist() for ends in edges.ends())
    return {(u, v): edges.words[kind] for u, v, kind in zip(source, target, edges.kinds.tolist(), strict=True)}


def columns(page):
    """The columns of a page, in the order of the embedding."""
    content = page._content
    order = np.argsort(content.rows)
    return {column.name: column.values[order] for column in content.columns}


@pytest.mark.parametrize("graph", [relations, lambda: EDGES], ids=["relations", "a mapping"])
def test_every_edge_has_the_names_of_its_relations(graph):
    page = explore(Z, graph(), ids=PAPERS, maps="pca")
    assert found(page) == {
        ("p1", "p0"): ["cites", "likes"],
        ("p2", "p1"): ["cites"],
        ("p4", "p3"): ["cites"],
        ("p0", "p1"): ["likes"],
        ("p3", "p2"): ["likes"],
    }
    assert_array_equal(columns(page)["writes: from author"], [2, 0, 0, 1, 0])
    assert any("3 kinds of edges" in note for note in page.notes)


def test_the_ids_say_which_type_is_shown():
    frame = pd.DataFrame(Z[:2], index=AUTHORS)
    page = explore(frame, relations(), maps="pca")
    assert_array_equal(columns(page)["writes: to paper"], [1, 2])
    assert found(page) == {}
    counted = explore(Z, relations(), maps="pca")  # five rows, five papers
    assert counted._content.nodes.ids.tolist() == PAPERS


def test_an_edge_table_without_types_of_nodes():
    """Ids that the embedding does not have are counted, and nothing is lost without a word."""
    table = pd.DataFrame([(u, v, key[1]) for key, edges in EDGES.items() for u, v in edges])
    page = explore(Z, table.set_axis(["source", "target", "type"], axis=1), ids=PAPERS, maps="pca")
    assert ("p1", "p0") in found(page)
    assert_array_equal(columns(page)["writes: from others"], [2, 0, 0, 1, 0])


def test_an_undirected_page_has_the_names_of_both_directions():
    graph = {"a": [("x", "y"), ("y", "z")], "b": [("y", "x"), ("z", "y")]}
    edges = found(explore(Z[:3], graph, ids=["x", "y", "z"], maps="pca"))
    assert {frozenset(ends): words for ends, words in edges.items()} == {
        frozenset("xy"): ["a", "b"],
        frozenset("yz"): ["a", "b"],
    }


def test_one_kind_of_edges_has_no_names():
    page = explore(Z, [("p0", "p1")], ids=PAPERS, maps="pca")
    assert page._content.edges.kinds is None


def test_what_does_not_belong_is_refused():
    with pytest.raises(InputError, match="one type of nodes"):
        explore(Z[:3], relations(), maps="pca")
    with pytest.raises(InputError, match="one type of nodes"):
        explore(Z, relations(), ids=list("abcde"), maps="pca")
    model = FisherEmbedding(n_anchors=2, dim=2, walk=None, random_state=0).fit(graph=relations())
    with pytest.raises(InputError, match="model"):
        explore(Z, relations(), ids=PAPERS, model=model)
