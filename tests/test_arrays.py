"""What users pass as numbers: types, integers that float32 cannot hold, byte orders, and what is not a number."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import fishergraph as fg
from fishergraph import FisherEmbedding, FisherSetEmbedding, LogisticProbe
from fishergraph._arrays import as_floats
from fishergraph.em.means import as_points
from fishergraph.lab import nested_scores
from models import graph_model

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 3))
TIMES = 1_600_000_000 + np.arange(36).reshape(12, 3)  # Unix times: seconds of one minute


def small(**changes) -> FisherEmbedding:
    given = {"n_layers": 1, "n_anchors": 2, "dim": 4, "random_state": 0, "n_jobs": 1, "normalize": False}
    return FisherEmbedding(**{**given, **changes})


# --- the type that numbers get -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("f4", "f4"),
        ("f8", "f8"),
        ("f2", "f4"),
        ("g", "f8"),
        (">f4", "f4"),
        (">f8", "f8"),
        ("bool", "f4"),
        *((kind, "f4") for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i2", ">u8")),
    ],
)
def test_the_type_of_an_array_gives_that_of_its_floats(kind, expected):
    numbers = np.abs(10 * X).astype(kind)
    for found in (as_floats(numbers, "X"), as_points(numbers, "points")):
        assert found.dtype == np.dtype(expected)
        assert found.dtype.isnative
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, numbers.astype("f8"))
    rows = (
        as_floats(sp.csc_array(numbers.astype(numbers.dtype.newbyteorder("="))), "X") if kind not in ("f2",) else None
    )
    assert rows is None or (rows.dtype == np.dtype(expected) and rows.format == "csr")


@pytest.mark.parametrize("wrap", [lambda a: a.tolist(), lambda a: a.astype(object)], ids=["lists", "objects"])
def test_numbers_of_python_are_double(wrap):
    assert as_floats(wrap(X), "X").dtype == np.float64
    np.testing.assert_array_equal(as_floats(wrap(X), "X"), X)
    assert as_floats(wrap(np.arange(6).reshape(2, 3)), "X").dtype == np.float64


INTEGERS = {
    "array": lambda a: a,
    "unsigned": lambda a: a.astype(np.uint64),
    "negative": lambda a: -a,
    "32 bits": lambda a: a.astype(np.int32),
    "lists": lambda a: a.tolist(),
    "objects": lambda a: a.astype(object),
    "csr": sp.csr_array,
    "coo": sp.coo_array,
    "pandas": lambda a: pd.DataFrame(a, columns=list("abc")),
    "pandas, nullable": lambda a: pd.DataFrame(a, columns=list("abc")).astype("Int64"),
    "pandas, one column": lambda a: pd.DataFrame(a, columns=list("abc")).astype({"a": "float32", "b": "int8"}),
    "polars": lambda a: pl.DataFrame(a),
    "pyarrow": lambda a: pa.table({name: a[:, k] for k, name in enumerate("abc")}),
}


@pytest.mark.parametrize("form", INTEGERS)
def test_large_integers_keep_their_digits(form):
    numbers = INTEGERS[form](TIMES)
    found = as_floats(numbers, "X")
    found = found.toarray() if sp.issparse(found) else found
    assert found.dtype == np.float64
    np.testing.assert_array_equal(np.abs(found[:, 2]), TIMES[:, 2])


@pytest.mark.parametrize("form", ["array", "lists", "csr", "pandas", "objects"])
def test_unix_times_stay_apart_in_an_embedding(form):
    Z = small(n_layers=0, dim=12, kernel="identity", walk=None).fit_transform(INTEGERS[form](TIMES))
    assert len(np.unique(Z, axis=0)) == 12
    np.testing.assert_array_equal(Z, TIMES.astype(float))


def test_integers_up_to_2_24_stay_single():
    assert as_floats(np.array([[2**24, -(2**24)]]), "X").dtype == np.float32
    assert as_floats(np.array([[2**24 + 1, 0]]), "X").dtype == np.float64
    assert as_floats(np.array([[0, -(2**24) - 1]]), "X").dtype == np.float64


@pytest.mark.parametrize("form", INTEGERS)
def test_integers_that_no_float_holds_are_refused(form):
    if form == "32 bits":
        return
    numbers = INTEGERS[form](TIMES + 2**60)
    with pytest.raises(ValueError, match=r"2\*\*53"):
        as_floats(numbers, "X")


@pytest.mark.parametrize("kind", [">f4", ">f8", ">i4", ">u2"])
def test_byte_orders_give_the_same_bits(kind):
    foreign = (100 * np.abs(X)).astype(kind)
    native = foreign.astype(foreign.dtype.newbyteorder("="))
    A = sp.csr_array(np.roll(np.eye(12), 1, axis=1))
    for graph in (None, A):
        np.testing.assert_array_equal(
            small().fit_transform(foreign, graph=graph), small().fit_transform(native, graph=graph)
        )
    sets = small_sets()
    np.testing.assert_array_equal(
        sets.fit_transform(list(foreign.reshape(4, 3, 3))), sets.fit_transform(list(native.reshape(4, 3, 3)))
    )
    np.testing.assert_array_equal(fg.learn_anchors(foreign, 2, rng=0), fg.learn_anchors(native, 2, rng=0))
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    weights = np.array([1.0, 2.0, 3.0])
    given = fg.as_graph((edges.astype(">i8"), weights.astype(">f8")), n_nodes=12)
    expected = fg.as_graph((edges, weights), n_nodes=12)
    np.testing.assert_array_equal(given.adjacency.toarray(), expected.adjacency.toarray())


def small_sets() -> FisherSetEmbedding:
    return FisherSetEmbedding(n_anchors=2, dim=4, random_state=0, n_jobs=1)


# --- what is not a number ---------------------------------------------------------------------------------


NOT_NUMBERS = {
    "complex": (X.astype(complex), "Complex data not supported"),
    "dates": (np.full((12, 3), np.datetime64("2020-01-01")), "real numbers, got dates"),
    "time differences": (np.full((12, 3), np.timedelta64(5, "s")), "real numbers, got time differences"),
    "nanoseconds": (np.full((12, 3), np.timedelta64(5, "ns")), "real numbers, got time differences"),
    "records": (np.zeros((12, 3), dtype=[("a", "f4")]), "real numbers, got records"),
    "objects that are dates": (np.full((12, 3), np.datetime64("2020"), dtype=object), "dates|must hold numbers"),
    "a table of dates": (pd.DataFrame({"a": pd.date_range("2020", periods=12), "b": 1.0, "c": 2.0}), "dates or times"),
    "complex, sparse": (sp.csr_array(X.astype(complex)), "Complex data not supported"),
    "masked": (np.ma.masked_array(X, mask=X > 1), "must have no masked entries"),
}
FUNCTIONS = {
    "FisherEmbedding": lambda bad: small().fit(bad),
    "FisherSetEmbedding": lambda bad: small_sets().fit(bad if sp.issparse(bad) else [bad, bad]),
    "LogisticProbe": lambda bad: LogisticProbe().fit(bad, np.arange(12) % 2, np.arange(6), np.arange(6, 9)),
    "learn_anchors": lambda bad: fg.learn_anchors(bad, 2),
    "learn_family": lambda bad: fg.learn_family(fg.DiagonalMixture(), bad, 2),
    "em_means, points": lambda bad: fg.em_means(bad, fg.neighbourhoods(sp.eye_array(12)), X[:2]),
    "em_means, anchors": lambda bad: fg.em_means(X, fg.neighbourhoods(sp.eye_array(12)), bad),
    "fisher_embedding": lambda bad: fg.fisher_embedding(X[None], bad),
    "lipschitz_constant": lambda bad: fg.lipschitz_constant(bad),
    "nested_scores": lambda bad: nested_scores(bad, np.arange(12) % 2, [(np.arange(8), np.arange(8, 12))], inner=2),
}


@pytest.mark.parametrize("name", NOT_NUMBERS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_not_a_number_is_refused_everywhere(function, name):
    bad, words = NOT_NUMBERS[name]
    if (function, name) == ("FisherEmbedding", "a table of dates"):
        assert FUNCTIONS[function](bad).encoder_ is not None  # dates in a table are read as what they are
        return
    with pytest.raises((ValueError, TypeError), match=f"{words}|dense|a set must hold numbers"):
        FUNCTIONS[function](bad)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_mask_that_hides_nothing_passes(function):
    if function in ("em_means, anchors", "fisher_embedding"):
        return  # of other shapes
    FUNCTIONS[function](np.ma.masked_array(X, mask=np.zeros(X.shape, bool)))


def test_masked_weights_and_labels_are_refused():
    mask = np.arange(12) % 4 == 0
    hidden = np.ma.masked_array(np.arange(12) % 2, mask=mask)
    split = (np.arange(6), np.arange(6, 9))
    with pytest.raises(ValueError, match="masked"):
        LogisticProbe().fit(X, hidden, *split)
    with pytest.raises(ValueError, match="masked"):
        fg.as_graph((np.zeros((2, 12), int), np.ma.masked_array(np.ones(12), mask=mask)))
    with pytest.raises(TypeError, match="masked"):
        small_sets().fit([X], weights=[np.ma.masked_array(np.ones(12), mask=mask)])
    for weights in (np.ones(2, "m8[ns]"), np.ones(2, "M8[s]"), np.ones(2, complex)):
        with pytest.raises(TypeError, match="real numbers"):
            fg.as_graph((np.array([[0, 1], [1, 0]]), weights))
        with pytest.raises(TypeError, match="real numbers"):
            small_sets().fit([X[:2]], weights=[weights])


@pytest.mark.parametrize(
    "bad", [[[1, 2], [3]], [["a", "b"]], [[{}]], object(), {"a": 1}], ids=lambda bad: type(bad).__name__
)
def test_objects_that_are_not_arrays_are_one_sentence(bad):
    with pytest.raises((ValueError, TypeError), match=r"X must (have rows|hold numbers|be one matrix)"):
        small().fit(bad)


def test_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="distinct"):
        small().fit(pd.DataFrame(X, columns=["a"] * 3))


def test_unix_times_stay_apart_as_features_of_graphs():
    """They are centred before they become float32."""
    A = sp.csr_array(np.roll(np.eye(12), 1, axis=1))

    def embed(features):
        model = graph_model(nodes__n_layers=0, inputs="features", random_state=0, n_jobs=1, readout__n_anchors=12)
        return model.fit_transform([(features[k : k + 4], A[:4][:, :4]) for k in (0, 4, 8)])

    assert len(np.unique(embed(TIMES), axis=0)) == 3
    np.testing.assert_array_equal(embed(TIMES), embed(TIMES.astype(float)))
    np.testing.assert_allclose(embed(TIMES), embed(TIMES - TIMES[0, 0]), atol=1e-5)


def test_integers_in_tensors_keep_their_digits():
    torch = pytest.importorskip("torch")
    Z = small(n_layers=0, dim=12, kernel="identity", walk=None).fit_transform(torch.from_numpy(TIMES))
    assert Z.dtype == torch.float64
    np.testing.assert_array_equal(Z.numpy(), TIMES.astype(float))
    with pytest.raises(ValueError, match=r"integers below 2\*\*53"):
        small().fit(torch.from_numpy(TIMES + 2**60))
