"""Attributes of nodes as tables, and graphs of other packages with results: what goes out comes back."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fishergraph import FisherEmbedding, as_graph, node_table, to_networkx, to_pyg
from fishergraph._errors import FishergraphWarning, InputError, InputTypeError


def people() -> nx.Graph:
    G = nx.Graph([("ann", "bob"), ("bob", "eve"), ("eve", "dan"), ("dan", "ann")])
    nx.set_node_attributes(G, {"ann": 30, "bob": 40, "eve": 35}, "age")
    nx.set_node_attributes(G, {node: [float(len(node)), 1.0] for node in G}, "v")
    return G


def test_attributes_of_networkx():
    table = node_table(people())
    assert table.column_names == ["id", "age", "v"]
    assert table["id"].to_pylist() == ["ann", "bob", "eve", "dan"]
    assert table["age"].to_pylist() == [30, 40, 35, None]
    assert table["v"].to_pylist()[0] == [3.0, 1.0]
    frame = node_table(people(), columns=["age"], output="pandas")
    assert frame.index.tolist() == ["ann", "bob", "eve", "dan"]
    assert list(frame.columns) == ["age"]


def test_rows_are_in_the_order_of_as_graph():
    G = nx.Graph([(2, 0), (0, 1)])
    nx.set_node_attributes(G, {0: "x", 1: "y", 2: "z"}, "name")
    assert node_table(G).to_pydict() == {"id": [0, 1, 2], "name": ["x", "y", "z"]}
    assert as_graph(G).ids is None


def test_attributes_of_igraph_and_pyg():
    igraph, torch = pytest.importorskip("igraph"), pytest.importorskip("torch")
    from torch_geometric.data import Data

    g = igraph.Graph(n=2, edges=[(0, 1)], vertex_attrs={"name": ["p", "q"], "age": [1, 2], "id": ["u", "v"]})
    assert node_table(g).to_pydict() == {"id": ["p", "q"], "age": [1, 2], "id (attribute)": ["u", "v"]}
    data = Data(edge_index=torch.tensor([[0], [1]]), x=torch.eye(3), y=torch.tensor([0, 1, 1]), name="club")
    data.edge_attr = torch.ones(1, 3)
    assert node_table(data).column_names == ["id", "x", "y"]
    assert node_table(data)["x"].to_pylist()[2] == [0, 0, 1]
    data.name = ["a", "b", "c"]
    assert node_table(data)["name"].to_pylist() == ["a", "b", "c"]


def test_what_is_no_graph_or_no_attribute():
    with pytest.raises(InputTypeError, match="NetworkX"):
        node_table(sp.eye_array(3).tocsr())
    with pytest.raises(InputError, match="'age', 'v'"):
        node_table(people(), columns=["height"])
    with pytest.raises(InputError, match="output"):
        node_table(people(), output="numpy")


def test_attributes_are_told_once_and_not_used():
    model = FisherEmbedding(n_anchors=2, dim=2, random_state=0)
    with pytest.warns(FishergraphWarning, match=r"'age', 'v'.*as_graph") as caught:
        Z = model.fit_transform(graph=people())
    assert sum("attributes" in str(w.message) for w in caught) == 1
    with warnings.catch_warnings(record=True) as bare:
        warnings.simplefilter("always")
        again = FisherEmbedding(n_anchors=2, dim=2, random_state=0).fit_transform(graph=as_graph(people()))
    assert not [w for w in bare if "attributes" in str(w.message)]
    np.testing.assert_array_equal(Z, again)


def test_a_node_table_is_an_input(recwarn):
    X = node_table(people(), columns=["v"], output="pandas")["v"].apply(pd.Series).set_axis(["a", "b"], axis=1)
    X = X.sample(frac=1, random_state=0)
    Z = FisherEmbedding(n_anchors=1, dim=2, random_state=0).fit_transform(X, graph=people())
    assert len(Z) == 4
    assert not [w for w in recwarn if "attributes" in str(w.message)]


@st.composite
def matrices(draw):
    n = draw(st.integers(1, 7))
    entries = draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2, st.integers(1, 4)), max_size=12))
    A = np.zeros((n, n))
    for u, v, w in entries:
        A[u, v] = w / 2
    return A + np.triu(A, 1).T if draw(st.booleans()) else A


@settings(max_examples=40, deadline=None)
@given(matrices(), st.booleans())
def test_round_trips(A, named):
    graph = as_graph(sp.csr_array(A))
    if named:
        ids = np.array([f"n{k}" for k in range(len(A))])[::-1]
        graph = type(graph)(graph.indptr, graph.indices, graph.weights, ids)
    out = to_networkx(graph)
    assert out.is_directed() == (not np.array_equal(A, A.T))
    back = as_graph(out, node_ids=None if graph.ids is None else graph.ids.tolist())
    np.testing.assert_array_equal(back.adjacency.toarray(), graph.adjacency.toarray())
    assert (back.ids is None) == (graph.ids is None)
    assert graph.ids is None or back.ids.tolist() == graph.ids.tolist()
    pytest.importorskip("torch_geometric")
    data = to_pyg(graph)
    np.testing.assert_array_equal(as_graph(data).adjacency.toarray(), graph.adjacency.toarray())
    assert getattr(data, "node_ids", None) == (None if graph.ids is None else graph.ids.tolist())


def test_columns_go_out_by_name_or_by_order():
    graph = as_graph(people())
    ids = graph.ids.tolist()
    frame = pd.DataFrame({"part": [0, 1, 2, 3]}, index=ids[::-1])
    out = to_networkx(graph, np.eye(4), attributes=frame, name="z")
    assert [out.nodes[node]["part"] for node in ids] == [3, 2, 1, 0]
    assert out.nodes[ids[1]]["z"] == [0, 1, 0, 0]
    table = pa.table({"id": ids[::-1], "part": [0, 1, 2, 3]})
    assert [to_networkx(graph, attributes=table).nodes[node]["part"] for node in ids] == [3, 2, 1, 0]
    assert [to_networkx(graph, attributes={"part": range(4)}).nodes[node]["part"] for node in ids] == [0, 1, 2, 3]
    again = node_table(to_networkx(graph, attributes=node_table(people())))
    assert again.select(["id", "age"]).to_pydict() == node_table(people()).select(["id", "age"]).to_pydict()


def test_features_labels_and_embeddings_of_pyg():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    data = to_pyg(people(), sp.eye_array(4).tocsr(), ["red", "blue", "red", "blue"], Z=np.ones((4, 2)))
    assert data.x.dtype == torch.float32
    assert data.y.tolist() == [1, 0, 1, 0]
    assert data.class_names == ["blue", "red"]
    assert data.z.shape == (4, 2)
    assert data.num_nodes == 4
    assert to_pyg(people(), y=torch.tensor([1, 2, 3, 4])).y.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("call", "pattern"),
    [
        (lambda: to_networkx(people(), np.eye(3)), "4 nodes"),
        (lambda: to_networkx(people(), attributes={"a": [1]}), "'a'"),
        (lambda: to_networkx(people(), attributes=pd.DataFrame({"a": range(4)}, index=list("wxyz"))), "'ann'"),
        (lambda: to_networkx(people(), attributes=[1, 2, 3, 4]), "DataFrame"),
        (lambda: to_networkx([("a", "b")], directed=False), "undirected=True"),
        (lambda: to_pyg(people(), np.eye(3)), "4 nodes"),
        (lambda: to_pyg(people(), y=[1, 2]), "4 nodes"),
    ],
)
def test_what_does_not_fit_is_named(call, pattern):
    with pytest.raises((InputError, InputTypeError), match=pattern):
        call()
