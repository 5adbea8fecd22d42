"""Diffusion multisets: the closed forms, the error of the push, the cut, and the same bits at any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import reference as ref
from contracts import members_of
from fishergraph._errors import InputError
from fishergraph.graph import Graph, as_graph
from fishergraph.multiset import MULTISETS, HeatKernel, PageRank, StepAverage, choose_multiset

WHOLE = {"members": None, "tolerance": 1e-12}

# (record, its closed form as a function of the operator)
FORMS = [
    (PageRank(teleport=0.15, **WHOLE), lambda M: ref.pagerank(M, 0.15)),
    (PageRank(teleport=1.0, **WHOLE), lambda M: np.eye(len(M))),
    (HeatKernel(time=2.5, **WHOLE), lambda M: ref.heat_kernel(M, 2.5)),
    (HeatKernel(time=0.0, **WHOLE), lambda M: np.eye(len(M))),
    (StepAverage(steps=6, root=0.1, **WHOLE), lambda M: ref.step_average(M, 6, 0.1)),
    (StepAverage(steps=1, root=1.0, **WHOLE), lambda M: np.eye(len(M))),
]
each_form = pytest.mark.parametrize(("record", "form"), FORMS, ids=lambda x: repr(x) if isinstance(x, PageRank) else "")


def adjacency(n, *, density=0.2, directed=False, weighted=True, seed=0):
    """A dense float64 adjacency with a few self-loops and a node without edges (where there is a second one)."""
    rng = np.random.default_rng(seed)
    matrix = (rng.random((n, n)) < density) * (rng.uniform(0.2, 3.0, (n, n)) if weighted else 1.0)
    matrix = matrix if directed else np.triu(matrix) + np.triu(matrix, 1).T
    if n > 1:
        matrix[n // 2] = matrix[:, n // 2] = 0.0
    return matrix


def dense(sets):
    """(set, point): the multisets as a matrix of weights."""
    return sp.csr_array((sets.weights, sets.indices, sets.indptr), shape=(sets.n_sets, sets.n_points)).toarray()


# --- against the closed forms ---------------------------------------------------------------------------


@each_form
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", [None, "uniform", "symmetric"])
def test_a_diffusion_is_its_closed_form(record, form, directed, weights):
    A = adjacency(17, directed=directed)
    operator = ref.walk_operator((A > 0) * 1.0 if weights == "uniform" else A, symmetric=weights == "symmetric")
    sets = record.set_params(weights=weights)(as_graph(sp.csr_array(A)))
    # "uniform" drops the float64 weights of the graph, and what is left is kept in float32.
    assert_allclose(dense(sets), form(operator), rtol=0, atol=6e-8 if weights == "uniform" else 1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.floats(0, 1), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_any_small_graph(n, density, directed, weighted, symmetric, seed):
    A = adjacency(n, density=density, directed=directed, weighted=weighted, seed=seed)
    graph, operator = as_graph(sp.csr_array(A)), ref.walk_operator(A, symmetric)
    for record, form in FORMS:
        sets = record.set_params(weights="symmetric" if symmetric else None)(graph)
        assert_allclose(dense(sets), form(operator), rtol=0, atol=1e-6)
        assert [members[0][0] for members in members_of(sets)] == list(range(n))  # the root comes first
        assert sets.indptr.dtype == np.int64
        assert sets.indices.dtype == graph.indices.dtype


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("float_kind", [None, np.float32, np.float64])
def test_types_are_those_of_the_graph(kind, float_kind):
    A = sp.csr_array(adjacency(12))
    weights = None if float_kind is None else A.data.astype(float_kind)
    graph = Graph(A.indptr.astype(np.int64), A.indices.astype(kind), weights)
    sets = PageRank()(graph)
    assert (sets.indices.dtype, sets.weights.dtype) == (kind, float_kind or np.float32)


def test_a_node_without_edges_is_its_own_set():
    sets = PageRank()(as_graph(sp.csr_array((3, 3))))
    assert_array_equal(sets.indices, [0, 1, 2])
    assert_allclose(sets.weights, 1.0, atol=2e-4)  # but for the tail of the series


def test_direction_is_kept():
    """Row 0 lists 1 and row 1 nobody: mass from 0 reaches 1 and stays there; mass from 1 goes nowhere."""
    sets = PageRank(teleport=0.5, **WHOLE)(as_graph(sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))))
    assert_allclose(dense(sets), [[2 / 3, 1 / 3], [0, 1]], atol=1e-10)


def test_the_series_sum_to_one_up_to_their_tail():
    for tolerance in (1e-2, 1e-6, 1e-12):
        rules = (PageRank(teleport=0.05), HeatKernel(time=30.0), StepAverage(steps=9, root=0.2))
        for series in (rule.set_params(tolerance=tolerance).series() for rule in rules):
            assert 1 - tolerance - 1e-12 <= series.sum() <= 1 + 1e-12
            assert series.min() > 0


# --- the push -------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.sampled_from([1e-1, 1e-2, 1e-3, 1e-4]), st.booleans(), st.integers(0, 2**32 - 1))
def test_what_is_lost_is_the_error(n, tolerance, directed, seed):
    """Every weight is a lower bound, and the missing mass is the error of the row in ℓ1."""
    A = adjacency(n, density=min(1.0, 4 / n), directed=directed, seed=seed)
    exact = ref.pagerank(ref.walk_operator(A), 0.1)
    found = dense(PageRank(teleport=0.1, members=None, tolerance=tolerance)(as_graph(sp.csr_array(A))))
    assert np.all(found <= exact + 1e-12)
    assert_allclose(np.abs(exact - found).sum(axis=1), 1 - found.sum(axis=1), atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.sampled_from([1e-1, 1e-2, 1e-3]), st.integers(0, 2**32 - 1))
def test_the_error_of_a_node_is_bounded_by_its_degree(n, tolerance, seed):
    """Undirected, unweighted: a level loses at most tolerance · d_u at any u, in all tolerance · d_w at w."""
    A = adjacency(n, density=min(1.0, 4 / n), weighted=False, seed=seed)
    operator = ref.walk_operator(A)
    degrees = np.count_nonzero(operator, axis=1)
    found = dense(PageRank(teleport=0.1, members=None, tolerance=tolerance)(as_graph(sp.csr_array(A))))
    n_levels = len(PageRank(teleport=0.1, tolerance=tolerance).series())
    bound = tolerance * (n_levels * degrees + 1)
    assert np.all(ref.pagerank(operator, 0.1) - found <= bound + 1e-6)


def test_a_finer_tolerance_is_closer():
    graph, errors = as_graph(sp.csr_array(adjacency(60, density=0.08))), []
    exact = dense(PageRank(**WHOLE)(graph))
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
        errors.append(np.abs(exact - dense(PageRank(members=None, tolerance=tolerance)(graph))).sum())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-2 * errors[0]


def test_the_work_does_not_grow_with_the_graph():
    """On a long cycle a set is as large as the tolerance allows, however long the cycle is."""
    sizes = []
    for n in (200, 2000):
        ring = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
        sets = PageRank(members=None, tolerance=1e-3)(as_graph(ring, undirected=True))
        sizes.append(np.diff(sets.indptr).max())
    assert sizes[0] == sizes[1] < 60


# --- the cut --------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 25), st.integers(1, 8), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_cut_keeps_the_root_and_the_largest(n, members, weighted, symmetric, seed):
    graph = as_graph(sp.csr_array(adjacency(n, weighted=weighted, seed=seed)))
    weights = "symmetric" if symmetric else None
    for kind in (PageRank, HeatKernel, StepAverage):
        whole = members_of(kind(members=None, tolerance=1e-3, weights=weights)(graph))
        cut = members_of(kind(members=members, tolerance=1e-3, weights=weights)(graph))
        for v in range(n):
            (root, weight), *others = whole[v]
            assert root == v
            # Descending, and of equals the first; float32 may make equals of what was told apart.
            assert [a for _, a in others] == sorted((a for _, a in others), reverse=True)
            assert cut[v] == [(root, weight), *others][:members]


def test_of_equals_the_first_are_kept():
    star = np.zeros((7, 7))
    star[0, 1:] = star[1:, 0] = 1.0
    sets = PageRank(members=3)(as_graph(sp.csr_array(star)))
    assert [u for u, _ in members_of(sets)[0]] == [0, 1, 2]
    assert [u for u, _ in members_of(sets)[5]] == [5, 0, 1]


@pytest.mark.parametrize("name", ["ppr", "heat", "s2gc"])
@pytest.mark.parametrize("weights", [None, "symmetric"])
def test_the_same_bits_at_any_number_of_threads(name, weights):
    graph = as_graph(sp.csr_array(adjacency(1300, density=0.003)))
    rule = MULTISETS[name]().set_params(weights=weights)
    one = rule(graph, n_jobs=1)
    for n_jobs in (2, 3):
        other = rule(graph, n_jobs=n_jobs)
        for part in ("indptr", "indices", "weights"):
            assert_array_equal(getattr(one, part), getattr(other, part))


def test_the_result_does_not_depend_on_the_rows_before():
    """The scratch of a block is clean after every row: a row of a block is the row alone."""
    A = adjacency(40, density=0.1)
    graph = as_graph(sp.csr_array(A))
    order = np.random.default_rng(0).permutation(40)
    moved = as_graph(sp.csr_array(A[order][:, order]))
    assert_allclose(dense(PageRank(**WHOLE)(moved)), dense(PageRank(**WHOLE)(graph))[order][:, order], atol=1e-12)


# --- validation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (PageRank, {"teleport": 0.0}, "greater than 0"),
        (PageRank, {"teleport": 1.5}, "at most 1"),
        (PageRank, {"members": 0}, "at least 1"),
        (PageRank, {"tolerance": 0.0}, "at least 1e-15"),
        (PageRank, {"tolerance": float("nan")}, "finite"),
        (HeatKernel, {"time": -1.0}, "at least 0"),
        (StepAverage, {"steps": 0}, "at least 1"),
        (StepAverage, {"root": 0.0}, "greater than 0"),
        (PageRank, {"teleport": 1e-6}, "at least 0.000922"),
        (PageRank, {"teleport": 1e-3, "tolerance": 1e-9}, "at least 0.00207"),
        (PageRank, {"tolerance": 1e-300}, "at least 1e-15"),
        (HeatKernel, {"time": 1e300}, "at most 100"),
        (StepAverage, {"steps": 10**9}, "at most 10000"),
    ],
)
def test_a_wrong_parameter_is_named_when_the_rule_is_made(kind, options, words):
    for call in (lambda: kind(**options), lambda: kind().set_params(**options)):
        with pytest.raises(InputError, match=words) as error:
            call()
        assert next(iter(options)) in error.value.parameter


@pytest.mark.parametrize(("tolerance", "least"), [(1e-4, 0.000922), (1e-1, 0.000231), (1e-12, 0.00277)])
def test_the_smallest_teleport_has_its_whole_series(tolerance, least):
    series = PageRank(teleport=least, tolerance=tolerance).series()
    assert len(series) <= 10_000
    assert series.sum() >= 1 - tolerance - 1e-13
    with pytest.raises(ValueError, match="teleport"):
        PageRank(teleport=0.98 * least, tolerance=tolerance)


def test_more_members_than_nodes_are_all_nodes():
    graph = as_graph(sp.csr_array(adjacency(12)))
    assert_array_equal(PageRank(members=10**30)(graph).weights, PageRank(members=None)(graph).weights)


def test_a_slow_walk_is_cut_into_smaller_blocks_with_the_same_result(monkeypatch):
    graph = as_graph(sp.csr_array(adjacency(40)))
    whole = PageRank()(graph)
    monkeypatch.setattr("fishergraph.diffusion._BLOCK_EDGES", 1)
    assert_array_equal(PageRank()(graph).weights, whole.weights)


@pytest.mark.parametrize("scale", [1e-310, 1e305])
def test_weights_whose_sums_leave_float64_are_refused(scale):
    with pytest.raises(ValueError, match="1e-300"):
        PageRank()(as_graph(sp.csr_array(adjacency(6) * scale)))


def test_an_unknown_multiset_lists_the_known_ones():
    for wrong in ("pagerank", None, PageRank):
        with pytest.raises(ValueError, match="'open-neighbourhood'"):
            choose_multiset(wrong)


def test_unknown_weights_list_the_known_ones():
    with pytest.raises(ValueError, match="'uniform', 'symmetric'"):
        PageRank(weights="symetric")
