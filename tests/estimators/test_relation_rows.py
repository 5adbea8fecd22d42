"""Rows of features meet the nodes of relations by their ids, wherever these are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from fishergraph import FisherEmbedding, as_relations
from fishergraph._errors import InputError

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
WRITTEN = [("ann", "p1"), ("bob", "p1"), ("bob", "p2"), ("eve", "p3"), ("ann", "p4")]
CITED = [("p2", "p1"), ("p3", "p2"), ("p4", "p1")]
IDS = {"paper": ["p1", "p2", "p3", "p4"], "author": ["ann", "bob", "eve"]}
VALUES = {
    "paper": pd.DataFrame({"year": [1.0, 2, 4, 3], "pages": [3.0, 1, 2, 2]}),
    "author": pd.DataFrame({"age": [3.0, 5, 2], "height": [1.0, 2, 3]}),
}
TYPED = pd.DataFrame(
    [(*edge, "writes") for edge in WRITTEN] + [(*edge, "cites") for edge in CITED], columns=["source", "target", "type"]
)
GRAPHS = {
    "lists": lambda: {WRITES: WRITTEN, CITES: CITED},
    "a table": lambda: TYPED,
}
MAKERS = {
    "an index": lambda frame, ids: frame.set_index(pd.Index(ids)),
    "a column": lambda frame, ids: frame.assign(id=ids),
    "a column of another name": lambda frame, ids: frame.assign(who=ids),
    "polars": lambda frame, ids: pl.from_pandas(frame.assign(id=ids)),
    "arrow": lambda frame, ids: pa.Table.from_pandas(frame.assign(id=ids), preserve_index=False),
}


def model():
    return FisherEmbedding(n_anchors=2, dim=3, walk=None, structure=None, random_state=0)


def tables(make, order=None, ids=IDS):
    """The features of both types, those of authors in another order."""
    rows = {"paper": [0, 1, 2, 3], "author": order or [0, 1, 2]}
    return {
        name: make(VALUES[name].iloc[rows[name]].reset_index(drop=True), [ids[name][row] for row in rows[name]])
        for name in rows
    }


@pytest.mark.filterwarnings("ignore:the column 'who'", "ignore:the column 'type'")
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("make", MAKERS)
def test_edges_take_the_order_of_the_rows(make, graph):
    graph, make = GRAPHS[graph](), MAKERS[make]
    fitted = model().fit(tables(make), graph=graph)
    Z = fitted.transform(tables(make), graph=graph)
    Y = fitted.transform(tables(make, [2, 0, 1]), graph=graph)
    assert_allclose(Y["paper"], Z["paper"], atol=1e-6)
    assert_allclose(Y["author"], Z["author"][[2, 0, 1]], atol=1e-6)
    X = {name: frame.to_numpy() for name, frame in VALUES.items()}
    assert_allclose(model().fit_transform(X, graph=as_relations(graph, nodes=IDS))["paper"], Z["paper"], atol=1e-6)


@pytest.mark.filterwarnings("ignore:the column 'who'")
@pytest.mark.parametrize("make", MAKERS)
def test_relations_must_have_the_order_of_the_rows(make):
    make, relations = MAKERS[make], as_relations(TYPED, nodes=IDS)
    fitted = model().fit(tables(make), graph=relations)
    assert fitted.transform(tables(make), graph=relations)["author"].shape[0] == 3
    with pytest.raises(InputError, match="order of the nodes") as caught:
        fitted.transform(tables(make, [1, 0, 2]), graph=relations)
    assert "author" in caught.value.parameter
    with pytest.raises(InputError, match="ids of the nodes"):
        fitted.transform(tables(make, ids={**IDS, "author": ["ann", "bob", "zoe"]}), graph=relations)


@pytest.mark.parametrize("make", ["a column", "polars", "arrow"])
def test_numbers_as_ids_are_not_rows(make):
    """Ids 0 … n - 1 in another order, which would go by the order of the rows without a word."""
    ids = {"paper": [0, 1, 2, 3], "author": [0, 1, 2]}
    number = {name: k for names in IDS.values() for k, name in enumerate(names)}
    graph = {WRITES: [(number[u], number[v]) for u, v in WRITTEN], CITES: [(number[u], number[v]) for u, v in CITED]}
    fitted = model().fit(tables(MAKERS[make], ids=ids), graph=graph)
    Z, Y = (fitted.transform(tables(MAKERS[make], order, ids), graph=graph) for order in (None, [1, 2, 0]))
    assert_allclose(Y["paper"], Z["paper"], atol=1e-6)
    with pytest.raises(InputError, match="order of the nodes"):
        fitted.transform(tables(MAKERS[make], [1, 2, 0], ids), graph=as_relations(graph))


@pytest.mark.parametrize("make", ["a column", "polars", "arrow"])
def test_ids_beside_edges_without_names_are_refused(make):
    graph = {WRITES: np.array([[0, 1], [0, 3]]), CITES: np.array([[1], [0]])}
    with pytest.raises(InputError, match="'id'"):
        model().fit(tables(MAKERS[make]), graph=graph)


def test_one_type_of_nodes_needs_no_name():
    papers = tables(MAKERS["polars"])["paper"]
    graph = {"cites": CITED, "likes": [("p1", "p3")]}
    Z = model().fit(papers, graph=graph).transform(papers, graph=graph)
    Y = model().fit(papers, graph=graph).transform(papers[::-1], graph=graph)
    assert_allclose(Y, Z[::-1], atol=1e-6)


def test_a_type_without_relations_has_its_ids_in_a_column():
    X = tables(MAKERS["arrow"])
    with pytest.warns(UserWarning, match="no relation"):
        Z = model().set_output(transform="pandas").fit_transform(X, graph={CITES: CITED})
    assert Z["author"].index.tolist() == IDS["author"]
