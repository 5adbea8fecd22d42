"""The labels that commands read from node files: what is a class, what is none, and what is said of it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from fishergraph.cli.labels import read_labels


def labels_of(path):
    found = read_labels(path, "y", None)
    return [None if code is None else found.classes[code].item() for code in found.y]


def table(folder, cells, suffix=".csv"):
    path = folder / f"n{suffix}"
    frame = pd.DataFrame({"id": range(len(cells)), "y": cells})
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("cells", [["ape", "-1", "bee"], ["-1", "0", "1"]])
def test_minus_one_in_a_table_is_a_class_and_said_to_be_one(tmp_path, suffix, cells):
    with pytest.warns(UserWarning, match="class of their own"):
        found = labels_of(table(tmp_path, cells, suffix))
    assert [str(label) for label in found] == cells


def test_minus_one_in_an_npz_is_no_label_and_said_to_be_none(tmp_path):
    for y in (np.array([0, -1, 1]), np.array([0.0, -1.0, 1.0]), np.array(["0", "-1", "1"])):
        np.savez(tmp_path / "n.npz", x=np.ones((3, 1)), y=y)
        with pytest.warns(UserWarning, match="no label"):
            assert labels_of(tmp_path / "n.npz") == [0, None, 1]


def test_minus_one_and_one_are_two_classes(tmp_path):
    np.savez(tmp_path / "n.npz", x=np.ones((3, 1)), y=np.array([-1, 1, -1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert labels_of(tmp_path / "n.npz") == [-1, 1, -1]
        assert labels_of(table(tmp_path, [-1, 1, None])) == [-1, 1, None]


def test_empty_cells_have_no_label(tmp_path):
    assert labels_of(table(tmp_path, ["ape", "", "bee", None, "  "])) == ["ape", None, "bee", None, None]
    assert labels_of(table(tmp_path, ["ape", "", "bee", None, "  "], ".parquet")) == ["ape", None, "bee", None, None]
    np.savez(tmp_path / "n.npz", x=np.ones((3, 1)), y=np.array(["ape", "", "  "]))
    assert labels_of(tmp_path / "n.npz") == ["ape", None, None]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(1), "'y'"),
        (np.zeros(3, dtype="i4,f8"), "'y'"),
        (np.zeros(3, dtype="M8[s]"), "'y'"),
        (np.array([b"a", b"b", b"c"]), "'y'"),
        (np.array(["a\0b", "x", "y"]), "NUL"),
        (np.array(["a" * 1001, "x", "y"]), "1000 characters"),
        (np.ones((3, 2)), "several"),
    ],
)
def test_labels_that_are_no_classes(tmp_path, y, message):
    np.savez(tmp_path / "n.npz", x=np.ones((3, 1)), y=y)
    with pytest.raises(ValueError, match=message):
        labels_of(tmp_path / "n.npz")


def test_a_column_may_be_named_twice(tmp_path):
    path = table(tmp_path, ["train", "train"])
    assert read_labels(path, "y", "y").classes.tolist() == ["train"]
