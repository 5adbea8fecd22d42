"""What is done to data before it is embedded: both directions, rows, loops; each dataset's own."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph._errors import FileFormatError
from fishergraph.datasets import GraphData, Preparation, load_graph, prepare
from fishergraph.datasets.records import check_nodes, undirected_graph
from published import both_ways, example

EDGES = example()["edges"]
X = np.array([[3.0, 4.0], [0.0, 0.0], [-2.0, 0.0]], dtype=np.float32)
A = sp.csr_array(np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=np.float32))
DATA = GraphData("three", X, A, np.zeros(3, dtype=np.int64), None, None, None)


def test_both_directions_each_edge_once():
    graph = undirected_graph(*EDGES.T, 30)
    np.testing.assert_array_equal(graph.toarray(), both_ways(EDGES))
    again = undirected_graph(*graph.nonzero(), 30)  # symmetric already
    for piece in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(graph, piece), getattr(again, piece))
    assert (graph.dtype, graph.indices.dtype, graph.has_canonical_format) == (np.float32, np.int32, True)
    assert undirected_graph(np.zeros(0, dtype=int), np.zeros(0, dtype=int), 3).shape == (3, 3)


def test_node_numbers_of_a_file():
    check_nodes("g.csv", 3, np.array([0, 2]), np.zeros((2, 0)))
    for numbers, got in ((([0, 3], [1]), "0 to 3"), (([1], [-1, 2]), "-1 to 2"), (([], [7]), "7 to 7")):
        with pytest.raises(FileFormatError, match=got) as caught:
            check_nodes("g.csv", 3, *map(np.array, numbers))
        assert caught.value.path == "g.csv"


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("unit", [[0.6, 0.8], [0, 0], [-1, 0]]),
        ("sum", [[3 / 7, 4 / 7], [0, 0], [-1, 0]]),
        ("raw", X.tolist()),
    ],
)
def test_rows(sparse, rows, expected):
    data = replace(DATA, X=sp.csr_array(X)) if sparse else DATA
    out = prepare(data, Preparation(rows=rows)).X
    assert sp.issparse(out) == sparse
    assert out.dtype == np.float32
    np.testing.assert_allclose(out.toarray() if sparse else out, expected, rtol=1e-6)
    np.testing.assert_array_equal(data.X.toarray() if sparse else data.X, X)  # which is not touched


@pytest.mark.parametrize(
    ("loops", "expected"),
    [
        ("add", [[1, 1, 0], [1, 1, 0], [0, 0, 1]]),
        ("drop", [[0, 1, 0], [1, 0, 0], [0, 0, 0]]),
        ("keep", [[0, 1, 0], [1, 1, 0], [0, 0, 0]]),
    ],
)
def test_loops(loops, expected):
    before = A.toarray()
    graph = prepare(DATA, Preparation(loops=loops)).graph
    np.testing.assert_array_equal(graph.toarray(), expected)
    assert graph.dtype == np.float32
    np.testing.assert_array_equal(A.toarray(), before)


@pytest.mark.parametrize("sparse", [False, True])
def test_words_present_not_counted(sparse):
    data = replace(DATA, X=sp.csr_array(X)) if sparse else DATA
    out = prepare(data, Preparation(binary=True, rows="raw")).X
    np.testing.assert_array_equal(out.toarray() if sparse else out, [[1, 1], [0, 0], [1, 0]])


def test_the_method_is_the_default_and_idempotent():
    cora = load_graph("cora")
    once = prepare(cora)
    np.testing.assert_allclose(np.sqrt(once.X.power(2).sum(axis=1)), 1, rtol=1e-6)
    assert once.graph.nnz == cora.graph.nnz + cora.n_nodes
    twice = prepare(once)
    np.testing.assert_allclose(twice.X.toarray(), once.X.toarray(), rtol=1e-6)
    np.testing.assert_array_equal(twice.graph.indices, once.graph.indices)


def test_a_dataset_has_its_own():
    for name in ("coauthor-cs", "coauthor_cs"):
        counts = replace(DATA, name=name)
        np.testing.assert_allclose(prepare(counts).X, [[0.5**0.5, 0.5**0.5], [0, 0], [1, 0]], rtol=1e-6)
    np.testing.assert_allclose(prepare(DATA).X, [[0.6, 0.8], [0, 0], [-1, 0]], rtol=1e-6)
    assert str(Preparation(binary=True)) == (
        "both directions of an edge, words present, not counted, rows of length one, a self-loop at each node"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": "l2"}, "'l2'"),
        ({"loops": None}, "'keep'"),
        ({"binary": 1}, "binary"),
    ],
)
def test_a_typo_lists_the_names(options, message):
    with pytest.raises(ValueError, match=message):
        prepare(DATA, Preparation(**options))
