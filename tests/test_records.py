"""Records of compressed rows check themselves when they are made: compiled loops index with them and check nothing."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from fishergraph import (
    FisherSetEmbedding,
    Graph,
    Graphs,
    LiftedSets,
    Multisets,
    PageRank,
    as_graph,
    em_means,
    node_sets,
)
from fishergraph._records import unchecked
from fishergraph.graphs import EdgeTags
from fishergraph.multiset import Hops

INDPTR, INDICES = np.array([0, 2, 3, 3]), np.array([0, 2, 1], dtype=np.int32)
WEIGHTS = np.array([1.0, 2.0, 0.5])

BAD_ROWS = {
    "a list": ({"indptr": [0, 2, 3, 3]}, TypeError, "got list"),
    "a masked array": ({"indices": np.ma.masked_array(INDICES, [0, 1, 0])}, TypeError, "MaskedArray"),
    "floats": ({"indices": INDICES.astype(float)}, ValueError, "integers"),
    "truth values": ({"indices": INDICES.astype(bool)}, ValueError, "integers"),
    "a matrix": ({"indices": INDICES[None]}, ValueError, "shape \\(1, 3\\)"),
    "no offsets": ({"indptr": INDPTR[:0]}, ValueError, "empty"),
    "a negative offset": ({"indptr": np.array([-1, 2, 3, 3])}, ValueError, "got -1 first"),
    "falling offsets": ({"indptr": np.array([0, 3, 2, 3])}, ValueError, "got 3 before 2"),
    "huge offsets": ({"indptr": np.array([0, 2, 3, 2**64 - 1], dtype=np.uint64)}, ValueError, "never decrease"),
    "offsets beyond": ({"indptr": np.array([0, 2, 3, 4])}, ValueError, "indptr must"),
    "an index beyond": ({"indices": np.array([0, 3, 1])}, ValueError, "0 to 3"),
    "a negative index": ({"indices": np.array([0, 2, -1])}, ValueError, "-1 to 2"),
    "a wrapped index": ({"indices": np.array([0, 2, 2**32 + 1])}, ValueError, "4294967297"),
    "a huge index": ({"indices": np.array([0, 2, 2**64 - 1], dtype=np.uint64)}, ValueError, "points 0 to 2"),
    "few weights": ({"weights": WEIGHTS[:2]}, ValueError, "3 indices"),
    "complex weights": ({"weights": WEIGHTS.astype(complex)}, ValueError, "flat"),
    "NaN": ({"weights": np.array([1, np.nan, 1])}, ValueError, "finite"),
    "infinity": ({"weights": np.array([1, np.inf, 1])}, ValueError, "finite"),
    "a negative weight": ({"weights": np.array([1, -0.5, 1])}, ValueError, "finite"),
}


@pytest.mark.parametrize("make", [Graph, lambda **fields: Multisets(**fields, n_points=3)], ids=["Graph", "Multisets"])
@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_are_refused(make, name):
    fields, kind, words = BAD_ROWS[name]
    with pytest.raises(kind, match=words):
        make(**{"indptr": INDPTR, "indices": INDICES, "weights": WEIGHTS, **fields})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"indptr": np.array([1, 2, 3, 3])}, "1 to 3"),
        ({"indptr": np.array([0, 2, 2, 2])}, "0 to 2"),
        ({"indices": np.array([2, 0, 1])}, "row 0"),
        ({"indices": np.array([2, 2, 1])}, "row 0"),
        ({"weights": np.array([1.0, 0.0, 1.0])}, "finite and positive"),
        ({"ids": np.array(["a", "b"])}, "3 nodes"),
        ({"ids": ["a", "b", "c"]}, "3 nodes"),
    ],
)
def test_a_graph_promises_more_than_multisets(fields, words):
    with pytest.raises(ValueError, match=words):
        Graph(**{"indptr": INDPTR, "indices": INDICES, **fields})


def test_rows_that_begin_with_smaller_members_than_the_row_before_end_are_sorted():
    graph = Graph(np.array([0, 0, 2, 4, 4]), np.array([1, 3, 0, 1]))
    assert graph.n_edges == 4


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.uint64, ">i4", ">i8"])
def test_other_integers_become_what_compiled_loops_read(kind):
    """Two hundred points do not fit into signed bytes, and a loop that multiplies unsigned ones leaves the array."""
    n = 100 if kind is np.int8 else 200
    points, anchors = np.random.default_rng(0).normal(size=(n, 3)), np.zeros((2, 3))
    plain = Multisets(np.arange(n + 1), np.arange(n, dtype=np.int32), None, n)
    sets = Multisets(np.arange(n + 1).astype(np.uint16), np.arange(n).astype(kind), None, n)
    assert (sets.indptr.dtype, sets.indices.dtype.isnative) == (np.int64, True)
    assert sets.indices.dtype in (np.int32, np.int64)
    assert np.array_equal(em_means(points, sets, anchors).means, em_means(points, plain, anchors).means)
    assert Graph(np.arange(n + 1), np.arange(n).astype(kind)).indices.dtype in (np.int32, np.int64)


def test_strided_and_short_floats_are_made_plain():
    wide = np.repeat(INDICES, 2)
    sets = Multisets(INDPTR, wide[::2], np.array([1, 2, 3], dtype=np.float16), 3)
    assert sets.indices.flags.c_contiguous
    assert sets.weights is not None
    assert sets.weights.dtype == np.float32
    assert Multisets(INDPTR, INDICES, np.array([1, 2, 3]), 3).weights.dtype == np.float64


def test_what_is_right_is_not_copied():
    graph = Graph(INDPTR, INDICES, WEIGHTS)
    assert (graph.indptr is INDPTR, graph.indices is INDICES, graph.weights is WEIGHTS) == (True, True, True)


def test_a_block_is_a_view_that_starts_above_zero():
    sets = Multisets(INDPTR[1:], INDICES, None, 3)
    assert (sets.n_sets, sets.n_entries) == (2, 1)
    outside = np.array([9, 9, 1], dtype=np.int32)  # of a row that this block does not have
    assert Multisets(INDPTR[1:], outside, None, 3).own_entries().indices.tolist() == [0]
    assert sets.block(slice(2, 1)).n_sets == 0


def test_inner_code_makes_records_without_a_check():
    broken = unchecked(Multisets, INDPTR, INDICES + 100, None, 3)
    assert broken.block(slice(0, 1)).indices is broken.indices
    assert unchecked(Graph, INDPTR, INDICES).ids is None


SETS = Multisets(INDPTR, INDICES, None, 3)
SUBGRAPHS = np.array([[0, 1], [1, -1], [2, 0]])


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"sets": None}, TypeError, "Multisets"),
        ({"subgraphs": SUBGRAPHS[:2]}, ValueError, "2 subgraphs"),
        ({"subgraphs": SUBGRAPHS.astype(float)}, ValueError, "integer"),
        ({"subgraphs": SUBGRAPHS[:, :0]}, ValueError, "integer"),
        ({"subgraphs": SUBGRAPHS + 3}, ValueError, "2 to 5"),
        ({"subgraphs": SUBGRAPHS - 1}, ValueError, "got -2 to 1"),
        ({"subgraphs": np.array([[0, 1], [-1, -1], [2, 0]]), "lift": "mean"}, ValueError, "at least one point"),
        ({"lift": "sum"}, ValueError, "lift"),
        ({"n_points": -1}, ValueError, "n_points"),
        ({"totals": np.ones(2)}, ValueError, "totals"),
        ({"pool": node_sets([0, 2])}, ValueError, "pool"),
        ({"pool": node_sets([0, 0, 3])}, ValueError, "pool"),
    ],
)
def test_lifted_sets_are_checked(fields, kind, words):
    with pytest.raises(kind, match=words):
        LiftedSets(**{"sets": SETS, "subgraphs": SUBGRAPHS, "n_points": 4, **fields})


UNION = Graph(np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2]))


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({"graph": None}, TypeError, "a Graph"),
        ({"graph_ptr": np.array([0, 2, 5])}, ValueError, "0 to 5"),
        ({"graph_ptr": np.array([0, 1, 4])}, ValueError, "node 0"),
        ({"graph_ptr": np.array([0, 3, 4])}, ValueError, "node 2"),
        ({"X": np.ones((3, 2))}, ValueError, "with 4 rows"),
        ({"X": [[1], [1], [1], [1]]}, ValueError, "got list"),
        ({"tags": np.ones(4)}, ValueError, "tags"),
        ({"tags": np.array(["a", "b"])}, ValueError, "4 nodes"),
        ({"edge_tags": EdgeTags(np.array([0, 4]), np.array([1, 1]))}, ValueError, "0 to 4"),
        ({"edge_tags": EdgeTags(np.array([0, 3]), np.array([1]))}, ValueError, "edge ends"),
    ],
)
def test_graphs_are_checked(fields, kind, words):
    with pytest.raises(kind, match=words):
        Graphs(**{"graph": UNION, "graph_ptr": np.array([0, 2, 4]), **fields})


def test_a_union_with_empty_graphs_is_sound():
    graphs = Graphs(UNION, np.array([0, 0, 2, 2, 4, 4]))
    assert [part.n_nodes for part in graphs] == [0, 2, 0, 2, 0]


def damaged(format: str) -> sp.sparray:
    """A sparse matrix whose indices were overwritten after it was made."""
    A = sp.csr_array(np.eye(4)).asformat(format)
    if format == "coo":
        A.coords[0][1] = 10**8
    elif format == "lil":
        A.rows[1] = [10**8]
    else:
        A.indptr[1] = 10**8
    return A


@pytest.mark.parametrize("format", ["csr", "csc", "bsr", "coo", "lil"])
def test_damaged_matrices_are_refused_before_compiled_code_sees_them(format):
    for use in (as_graph, lambda A: FisherSetEmbedding().fit([A, np.ones((2, 4))]), FisherSetEmbedding().fit):
        with pytest.raises(ValueError, match="indices"):
            use(damaged(format))


def test_a_matrix_does_not_remember_the_order_it_had():
    A = sp.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=float))
    assert A.has_canonical_format
    A.indices[:2] = [2, 1]
    assert as_graph(A).indices.tolist() == [1, 2, 0, 0]


def test_the_sum_of_parallel_edges_is_finite():
    with pytest.raises(ValueError, match="edge 0 -> 1"):
        as_graph((np.array([[0, 0], [1, 1]]), np.array([1e308, 1e308])))


@pytest.mark.parametrize("rule", [PageRank(), Hops()])
def test_rules_meet_sound_graphs_alone(rule):
    with pytest.raises(ValueError, match="points 0 to 2"):
        rule(Graph(INDPTR, np.array([0, 10**6, 1])))


def test_records_need_no_compiler():
    code = "import sys, fishergraph, numpy as np; fishergraph.Graph(np.array([0]), np.array([], int)); "
    assert (
        subprocess.run([sys.executable, "-c", code + "sys.exit('numba' in sys.modules)"], check=False).returncode == 0
    )
