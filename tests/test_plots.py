"""Figures: what is drawn, what is written, and that Matplotlib's global state stays as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from fishergraph.plots import MARKERS, PALETTE, scatter, training_curves

rng = np.random.default_rng(0)


def legend_of(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_points_have_the_colour_of_their_class():
    points, labels = rng.standard_normal((40, 2)), rng.integers(0, 4, 40)
    figure = scatter(points, labels, title="four classes")
    (drawn,) = figure.axes[0].collections
    order = [int(np.flatnonzero((points == xy).all(axis=1))[0]) for xy in np.asarray(drawn.get_offsets())]
    assert sorted(order) == list(range(40))
    colours = [to_hex(colour).upper() for colour in drawn.get_facecolors()]
    assert colours == [PALETTE[label] for label in labels[order]]
    assert figure.axes[0].get_title(loc="left") == "four classes"
    assert legend_of(figure) == ["0", "1", "2", "3"]


def test_beyond_eight_classes_the_marker_changes():
    labels = np.repeat(np.arange(20), 2)
    figure = scatter(rng.standard_normal((40, 2)), labels)
    assert len(figure.axes[0].collections) == 3
    handles = figure.axes[0].get_legend().legend_handles
    looks = [(handle.get_marker(), to_hex(handle.get_color())) for handle in handles]
    assert len(set(looks)) == 20
    assert looks[9][0] == MARKERS[1]


@pytest.mark.parametrize("names", [("north", "south", "west"), {0: "north", 2: "west"}])
def test_names_belong_to_labels_not_to_positions(names):
    assert legend_of(scatter(np.eye(2), [2, 0], names=names)) == ["north", "west"]


def test_labels_may_be_strings():
    assert legend_of(scatter(np.eye(2), ["b", "a"])) == ["a", "b"]
    assert legend_of(scatter(np.eye(2), ["b", "a"], names={"a": "A", "b": "B"})) == ["A", "B"]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_figure_is_written(tmp_path, suffix):
    path = tmp_path / f"z{suffix}"
    scatter(rng.standard_normal((30, 2)), np.arange(30) % 3, title="z", path=path)
    head = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(head)
    assert os.listdir(tmp_path) == [path.name]


def test_equal_input_gives_equal_bytes(tmp_path):
    points, labels = rng.standard_normal((100, 2)), np.arange(100) % 5
    for name in ("a.png", "b.png"):
        scatter(points, labels, path=tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_axes_of_the_caller():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert scatter(np.eye(2), [0, 1], ax=right) is figure
    assert not left.collections
    assert right.collections


def test_pyplot_and_the_backend_are_left_alone():
    code = (
        "import sys, numpy as np; from fishergraph.plots import scatter; assert 'matplotlib' not in sys.modules; "
        "scatter(np.eye(2), [0, 1]); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    before = dict(matplotlib.rcParams)
    scatter(np.eye(2), [0, 1])
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("coordinates", "labels", "more", "pattern"),
    [
        (np.ones((3, 4)), [0, 1, 2], {}, r"shape \(n, 2\).*\(3, 4\).*TSNE"),
        (np.ones(3), [0, 1, 2], {}, r"shape \(n, 2\)"),
        (np.ones((3, 2)), [0, 1], {}, "labels"),
        ([[0, 1], [np.nan, 1]], [0, 1], {}, "NaN in row 1"),
        (np.eye(2), [0, 1], {"names": ["zero"]}, "labels 0, 1"),
        (np.eye(2), [0, 1], {"names": {"0": "zero"}}, "a name for each"),
        (np.eye(2), [-1, 1], {"names": ["neg", "pos"]}, "labels -1, 1"),
        (np.eye(2), np.array(["a", None], dtype=object), {}, "one type"),
        (np.eye(2), [0, 1], {"path": "z.docx"}, "docx"),
    ],
)
def test_bad_input(coordinates, labels, more, pattern, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=pattern):
        scatter(coordinates, labels, **more)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_an_error_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        scatter(np.eye(2), [0, 1], path=tmp_path / "absent" / "z.png")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"fishergraph\[plots\]"):
        scatter(np.eye(2), [0, 1])


# --- training -------------------------------------------------------------------------------------------

ROWS = [
    {"epoch": e, "loss": 1 / e, "train_accuracy": a, "val_accuracy": a - 0.1, "val_loss": 2 / e, "lr": 0.1}
    for e, a in ((1, 0.3), (2, 0.8), (3, 0.8), (4, 0.6))
]


def curves_of(figure):
    lines = [line for ax in figure.axes for line in ax.get_lines()]
    return {f"{line.axes.get_ylabel()} {line.get_label()}": line.get_ydata() for line in lines}


def test_the_curves_of_a_training(tmp_path):
    figure = training_curves(ROWS, title="Cora", path=tmp_path / "c.png")
    curves = curves_of(figure)
    np.testing.assert_array_equal(curves["loss training"], [1, 1 / 2, 1 / 3, 1 / 4])
    np.testing.assert_allclose(curves["accuracy validation"], [0.2, 0.7, 0.7, 0.5])
    assert "loss best epoch, 3" in curves  # equal accuracy, lower loss
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_the_curves_of_a_log(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    rows = [{**row, "val_accuracy": None, "val_loss": None} for row in ROWS]
    if suffix == ".csv":
        lines = (",".join("" if value is None else str(value) for value in row.values()) for row in rows)
        path.write_text("\n".join([",".join(ROWS[0]), *lines]))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    curves = curves_of(training_curves(path))
    np.testing.assert_allclose(curves["loss training"], [1, 1 / 2, 1 / 3, 1 / 4])
    assert not any("validation" in name for name in curves)
    assert "loss best epoch, 4" in curves  # without validation the last one is kept


@pytest.mark.parametrize("rows", [[], [{"epoch": 1}], [3]])
def test_rows_that_are_not_of_a_training(rows):
    with pytest.raises(ValueError, match="train_accuracy"):
        training_curves(rows)
