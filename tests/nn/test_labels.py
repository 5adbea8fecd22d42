"""Labels given to the classifier: which of them are none, and what is said of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fishergraph.nn.labels import read_labels


@pytest.mark.parametrize(
    ("y", "classes", "codes", "said"),
    [
        (["ape", "", "bee"], ["ape", "bee"], [0, -1, 1], "y is '' in some rows, which have no label then"),
        (["ape", "-1", "bee"], ["ape", "bee"], [0, -1, 1], "y is '-1' in some rows, which have no label then"),
        (np.array(["0", "-1", "1", " "]), ["0", "1"], [0, -1, 1, -1], "y is ' ' and '-1' in some rows"),
        (["ape", None, ""], ["ape"], [0, -1, -1], "y is '' in some rows"),
    ],
)
def test_texts_that_mark_rows_without_a_label(y, classes, codes, said):
    with pytest.warns(UserWarning, match=said):
        found = read_labels(np.array(y, dtype=object) if isinstance(y, list) else y, len(y))
    assert (found[0].tolist(), found[1].tolist()) == (classes, codes)


def test_texts_that_are_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_labels(np.array(["-1", "1", "-1"]), 3)[0].tolist() == ["-1", "1"]
        assert read_labels(np.array(["ape", "bee"]), 2)[0].tolist() == ["ape", "bee"]
        # What the model has as a class is one.
        assert read_labels(np.array(["-1", "-1"]), 2, np.array(["-1", "1"]))[1].tolist() == [0, 0]
