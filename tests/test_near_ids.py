"""Rows by ids, and ids that look like one that is not known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fishergraph._errors import InputError, UnknownNodeError
from fishergraph.io.lookup import IdRows, pair_columns
from fishergraph.io.near import near_matches

NAMES = ["Anna", "anna b", "Bernd", "Berndt", "paper 01", "paper 10"]


@pytest.mark.parametrize(
    ("wanted", "first"),
    [("anna", "Anna"), ("ANNA B ", "anna b"), ("bernnd", "Bernd"), ("paper 1", "paper 01"), ("Brendt", "Berndt")],
)
def test_the_first_match_is_the_most_similar(wanted, first):
    assert near_matches(wanted, NAMES)[0] == first


@pytest.mark.parametrize("wanted", ["", "zzz", "a completely different and much longer text"])
def test_ids_without_a_match_have_none(wanted):
    assert near_matches(wanted, NAMES) == []


def test_ids_may_be_text_integers_or_row_numbers():
    assert IdRows(NAMES, 6).rows(["Bernd", "Anna"]).tolist() == [2, 0]
    assert IdRows([30, 10, 20], 3).rows([10, "20"]).tolist() == [1, 2]
    assert IdRows(["7", "8"], 2).rows(8).tolist() == [1]
    assert IdRows(None, 4).rows(np.array([3, 0])).tolist() == [3, 0]
    assert IdRows(np.array([1, "a"], dtype=object), 2).rows(["a", 1]).tolist() == [1, 0]
    assert IdRows(pa.array(["x", "y"]), 2).rows("y").tolist() == [1]
    assert IdRows(pd.Index(["x", "y"]), 2).rows("y").tolist() == [1]


def test_zeros_before_an_integer_are_not_dropped():
    with pytest.raises(UnknownNodeError):
        IdRows([7, 8], 2).rows("07")


def test_unknown_ids_are_named_with_those_like_them():
    with pytest.raises(UnknownNodeError, match="Bernd") as caught:
        IdRows(NAMES, 6).rows(["Anna", "bernnd", "q"])
    assert caught.value.value == "bernnd"
    assert "'q'" in caught.value.got
    with pytest.raises(UnknownNodeError, match="0 to 3"):
        IdRows(None, 4).rows(4)
    with pytest.raises(UnknownNodeError, match="more"):
        IdRows(NAMES, 6).rows([f"z{k}" for k in range(9)])
    with pytest.raises(UnknownNodeError):
        IdRows(None, 4).rows(-1)


@pytest.mark.parametrize("nodes", [1.5, None, [None], [True], [(1, 2)]])
def test_what_is_no_id_is_refused(nodes):
    with pytest.raises(InputError, match="ids"):
        IdRows(None, 4).rows(nodes)


def test_no_id_at_all_is_refused():
    with pytest.raises(InputError, match="at least one"):
        IdRows(None, 4).rows([])


@pytest.mark.parametrize(("ids", "word"), [([1, 1, 2], "distinct"), ([1, 2], "3 rows"), (["a", None, "b"], "")])
def test_ids_that_do_not_fit_are_refused(ids, word):
    if word:
        with pytest.raises(InputError, match=word):
            IdRows(ids, 3)
    else:  # None is the text of an id, as when an embedding is written
        assert IdRows(ids, 3).rows("None").tolist() == [1]


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b"), ("b", "c")],
        [["a", "b"], ["b", "c"]],
        np.array([["a", "b"], ["b", "c"]]),
        pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]}),
        pa.table({"src": ["a", "b"], "dst": ["b", "c"]}),
    ],
)
def test_pairs_may_be_lists_arrays_and_tables(pairs):
    assert pair_columns(pairs) == (["a", "b"], ["b", "c"])


def test_one_pair_needs_no_list():
    assert pair_columns(("a", "b")) == (["a"], ["b"])


@pytest.mark.parametrize("pairs", [[], [("a",)], ["ab", "cd", "ef"], np.ones((2, 5), int), 3])
def test_what_are_no_pairs_is_refused(pairs):
    with pytest.raises(InputError, match="pairs"):
        pair_columns(pairs)
