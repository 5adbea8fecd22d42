"""Maps of embeddings: what is drawn, in which colours, and what explains them. Data are checked, not pixels."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_hex
from matplotlib.figure import Figure

from fishergraph._errors import InputError, InputTypeError, MissingExtra
from fishergraph.plots import MARKERS, PALETTE, embedding_map, project
from fishergraph.plots.figures import new_axes, save
from fishergraph.plots.style import MISSING, OTHER

rng = np.random.default_rng(0)
POINTS = rng.standard_normal((40, 2))


def legend_of(ax):
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def drawn(ax, points=POINTS):
    """The colour of every point, by its row; a point that is not drawn has none."""
    colours = {}
    for dots in ax.collections:
        dots.update_scalarmappable()  # as when it is drawn
        own = dots.get_facecolors()
        offsets = np.asarray(dots.get_offsets())
        own = own if len(own) == len(offsets) else np.repeat(own, len(offsets), axis=0)
        for xy, colour in zip(offsets, own, strict=True):
            (row,) = np.flatnonzero((points == xy).all(axis=1))
            assert row not in colours, "a point is drawn twice"
            colours[int(row)] = to_hex(colour).upper()
    return [colours.get(row) for row in range(len(points))]


def bar_of(ax):
    """The axes of the bar of colours."""
    (bar,) = (other for other in ax.figure.axes if other is not ax)
    return bar


# --- classes --------------------------------------------------------------------------------------------


def test_points_have_the_colour_of_their_class():
    labels = rng.integers(0, 4, 40)
    ax = embedding_map(POINTS, labels=labels, title="four classes")
    assert isinstance(ax, Axes)
    assert drawn(ax) == [PALETTE[label] for label in labels]
    assert ax.get_title(loc="left") == "four classes"
    assert legend_of(ax) == ["0", "1", "2", "3"]
    assert ax.get_aspect() == 1


def test_points_without_a_class_are_grey_and_lie_below():
    labels = np.where(np.arange(40) % 4 == 0, -1, np.arange(40) % 3)
    ax = embedding_map(POINTS, labels=labels)
    assert drawn(ax) == [MISSING if label < 0 else PALETTE[label] for label in labels]
    assert legend_of(ax) == ["0", "1", "2", "no label"]
    grey, coloured = ax.collections
    assert grey.get_zorder() < coloured.get_zorder()
    assert legend_of(embedding_map(POINTS, labels=[None] * 40)) == ["no label"]


def test_beyond_eight_classes_the_marker_changes():
    labels = np.repeat(np.arange(20), 2)
    ax = embedding_map(POINTS, labels=labels, max_classes=20)
    assert len(ax.collections) == 3
    assert drawn(ax) == [PALETTE[label % 8] for label in labels]
    handles = ax.get_legend().legend_handles
    looks = [(handle.get_marker(), to_hex(handle.get_color())) for handle in handles]
    assert len(set(looks)) == 20
    assert looks[9][0] == MARKERS[1]


def test_classes_of_several_markers_are_drawn_in_turn():
    points, labels = rng.standard_normal((4000, 2)), np.arange(4000) % 10
    ax = embedding_map(points, labels=labels)
    assert drawn(ax, points) == [PALETTE[label % 8] for label in labels]
    paths = [len(dots.get_paths()[0].vertices) for dots in ax.collections]  # circles and triangles
    assert len(paths) > 8
    assert all(one != other for one, other in pairwise(paths))


def test_the_smallest_classes_are_grey():
    labels = np.repeat(["big", "mid", "small", "tiny"], [20, 15, 3, 2])
    ax = embedding_map(POINTS, labels=labels, max_classes=3)
    assert drawn(ax) == [PALETTE[0]] * 20 + [PALETTE[1]] * 15 + [OTHER] * 5
    assert legend_of(ax) == ["big", "mid", "other (2 classes)"]
    names = {"big": "B", "mid": "M", "small": "S", "tiny": "T"}
    assert legend_of(embedding_map(POINTS, labels=labels, names=names)) == ["B", "M", "S", "T"]


def test_names_are_shown_as_they_are_written():
    labels = ["<b>bold</b> & $x^2$", "_hidden", "two\nlines", "n" * 99]
    ax = embedding_map(POINTS[:4], labels=labels, title="$5 and $6")
    save_to_nothing(ax)
    assert legend_of(ax) == [r"<b>bold</b> & \$x^2\$", "_hidden", "n" * 39 + "…", "two lines"]
    assert ax.get_title(loc="left") == r"\$5 and \$6"


def save_to_nothing(ax):
    with open(os.devnull, "wb") as file:
        ax.figure.savefig(file, format="png")


@pytest.mark.parametrize("size", [(3.4, 3.4), (3.4, 2.5), (8.0, 5.6)])
@pytest.mark.parametrize("n_classes", [2, 7, 16])
@pytest.mark.parametrize(("name", "shape"), [("a class with the name", (1, 0.6)), ("WWWW WWWW", (3, 1))])
def test_the_legend_stays_inside_the_figure(size, n_classes, name, shape):
    names = [f"{name} {k}" for k in range(n_classes)]
    (ax,) = new_axes(1, 1, width=size[0], height=size[1])
    embedding_map(POINTS * shape, labels=np.arange(40) % n_classes, names=names, title="t", ax=ax)
    ax.figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= ax.figure.bbox.width
    if size != (3.4, 2.5) or n_classes < 16:  # sixteen lines do not fit below points in so low a figure
        assert box.y0 >= 0
    assert box.y1 <= ax.figure.bbox.height


def test_without_colours_there_is_no_legend():
    ax = embedding_map(POINTS)
    assert drawn(ax) == [PALETTE[0]] * 40
    assert ax.get_legend() is None
    assert embedding_map(POINTS, labels=np.arange(40) % 2, legend=False).get_legend() is None


# --- numbers and dates ----------------------------------------------------------------------------------


def test_numbers_have_colours_of_a_scale():
    numbers = np.linspace(-2, 5, 40)
    numbers[3] = np.nan
    ax = embedding_map(POINTS, colour=pd.Series(numbers, name="score"), cmap="cividis")
    cmap = matplotlib.colormaps["cividis"]
    expected = [MISSING if np.isnan(v) else to_hex(cmap((v + 2) / 7)).upper() for v in numbers]
    assert drawn(ax) == expected
    assert legend_of(ax) == ["no value"]
    assert bar_of(ax).get_ylabel() == "score"
    assert bar_of(ax).get_ylim() == pytest.approx((-2, 5))


def test_a_few_far_numbers_do_not_flatten_the_scale():
    points = rng.standard_normal((1000, 2))
    numbers = np.append(rng.random(996), [50, 60, 70, -np.inf])
    ax = embedding_map(points, colour=numbers)
    low, high = np.percentile(numbers[:-1], [1, 99])
    norm = ax.collections[0].norm
    assert (norm.vmin, norm.vmax) == pytest.approx((low, high))
    shades = drawn(ax, points)
    cmap = matplotlib.colormaps["viridis"]
    assert {shades[k] for k in (996, 997, 998)} == {to_hex(cmap(1.0)).upper()}
    assert shades[999] == to_hex(cmap(0.0)).upper()
    save_to_nothing(ax)  # with arrows at both ends
    assert embedding_map(points, colour=np.arange(1000)).collections[0].norm.vmax == 999


def test_a_logarithmic_scale():
    numbers = np.concatenate([np.geomspace(1, 1000, 38), [0, -3]])
    ax = embedding_map(POINTS, colour=numbers, scale="log")
    norm = ax.collections[0].norm
    assert isinstance(norm, LogNorm)
    assert (norm.vmin, norm.vmax) == (1, pytest.approx(1000))
    cmap = matplotlib.colormaps["viridis"]
    assert drawn(ax)[38:] == [to_hex(cmap(0.0)).upper()] * 2
    save_to_nothing(ax)
    ticks = [text.get_text() for text in bar_of(ax).get_yticklabels()]
    assert "100" in ticks
    with pytest.raises(InputError, match="positive"):
        embedding_map(POINTS, colour=-numbers[:40] * 0 - 1, scale="log")


def test_dates_have_ticks_of_dates():
    dates = np.datetime64("2001-01-01") + np.arange(40) * 100
    ax = embedding_map(POINTS, colour=dates)
    save_to_nothing(ax)
    ticks = [text.get_text() for text in bar_of(ax).get_yticklabels()]
    assert {"2002", "2010"} <= set(ticks)


@pytest.mark.parametrize("numbers", [np.full(40, 3.0), np.full(40, np.nan), np.full(40, "7"), np.full(40, np.inf)])
def test_numbers_that_are_all_alike(numbers):
    ax = embedding_map(POINTS, colour=numbers)
    assert None not in drawn(ax)
    save_to_nothing(ax)


def test_texts_and_booleans_in_colour_are_classes():
    assert legend_of(embedding_map(POINTS[:2], colour=["b", "a"])) == ["a", "b"]
    assert legend_of(embedding_map(POINTS[:2], colour=[True, False])) == ["False", "True"]


# --- sizes, samples, projections --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 20, 1_000, 30_000])
def test_points_become_smaller_and_then_an_image(n):
    points = rng.standard_normal((n, 2))
    (dots,) = embedding_map(points).collections
    (own,) = embedding_map(points, size=2.5).collections
    assert own.get_sizes() == 2.5
    areas = {1: (10, 30), 20: (10, 30), 1_000: (3, 8), 30_000: (0.3, 1.5)}[n]
    assert areas[0] < dots.get_sizes()[0] < areas[1]
    assert bool(dots.get_rasterized()) == (n > 5_000)


def test_a_sample_is_drawn_and_said():
    Z, labels = rng.standard_normal((300, 2)), np.arange(300) % 30
    ax = embedding_map(Z, labels=labels, sample=50, max_classes=2)
    colours = drawn(ax, Z)
    assert sum(colour is not None for colour in colours) == 50
    assert [text.get_text() for text in ax.texts] == ["50 of 300 rows, at random"]
    assert legend_of(ax) == ["0", "other (29 classes)"]  # of all rows
    for row, colour in enumerate(colours):
        assert colour in (None, PALETTE[0] if labels[row] == 0 else OTHER)
    again = drawn(embedding_map(Z, labels=labels, sample=50, max_classes=2), Z)
    assert again == colours
    assert drawn(embedding_map(Z, labels=labels, sample=50, max_classes=2, random_state=1), Z) != colours
    assert not embedding_map(Z, sample=300).texts


def test_many_rows_are_sampled_before_tsne(monkeypatch):
    monkeypatch.setitem(sys.modules["fishergraph.plots.maps"]._SAMPLE, "tsne", 60)
    Z = rng.standard_normal((100, 4))
    assert len(embedding_map(Z).collections[0].get_offsets()) == 60
    assert len(embedding_map(Z, method="pca").collections[0].get_offsets()) == 100


def test_an_embedding_is_projected_by_the_method():
    Z = rng.standard_normal((60, 5))
    for method in ("pca", "tsne"):
        ax = embedding_map(Z, method=method, labels=np.arange(60) % 2, random_state=3)
        assert None not in drawn(ax, project(Z, method, random_state=3))
    shown = []
    embedding_map(Z, verbose=lambda title, steps: shown.append(title) or _Bar())
    assert shown == ["t-SNE"]


class _Bar:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def update(self, n):
        pass


def test_a_stored_embedding_is_read_by_rows():
    Z = rng.standard_normal((50, 2))

    class Stored:
        shape = Z.shape

        def slices(self):
            raise AssertionError("all rows are read")

        def __getitem__(self, rows):
            assert len(rows) == 10
            return Z[rows]

    assert sum(colour is not None for colour in drawn(embedding_map(Stored(), sample=10), Z)) == 10


# --- ids ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["frame", "record"])
def test_values_by_id_are_put_in_the_order_of_the_rows(kind):
    ids = [f"n{k}" for k in range(40)]
    labels = pd.Series(["ant", "bee"] * 20, index=ids)
    expected = [PALETTE[0], PALETTE[1]] * 20
    Z = pd.DataFrame(POINTS, index=ids) if kind == "frame" else SimpleNamespace(Z=POINTS, ids=np.array(ids))
    assert drawn(embedding_map(Z, labels=labels[::-1])) == expected
    assert drawn(embedding_map(Z, labels=dict(labels[::-1]))) == expected
    assert drawn(embedding_map(Z, labels=labels.to_numpy())) == expected
    assert drawn(embedding_map(Z, labels=labels.reset_index(drop=True))) == expected
    assert drawn(embedding_map(Z, labels=labels.rename("x{}".format))) == expected  # other names: the order counts
    assert drawn(embedding_map(Z, labels=labels[5:][::-1])) == [MISSING] * 5 + expected[5:]
    assert (
        drawn(embedding_map(Z, colour={"n3": 1.0}))[:5]
        == [MISSING] * 3 + drawn(embedding_map(Z, colour={"n3": 1.0}))[3:5]
    )
    with pytest.raises(InputError, match="distinct"):
        embedding_map(Z, labels=pd.concat([labels, labels[:1]]))


def test_columns_of_a_table_may_have_any_names():
    Z = pd.DataFrame({"ids": POINTS[:, 0], "slices": POINTS[:, 1]})
    assert drawn(embedding_map(Z, labels=np.arange(40) % 2)) == [PALETTE[0], PALETTE[1]] * 20


def test_a_list_has_no_ids():
    assert drawn(embedding_map(POINTS.tolist(), labels=pd.Series(["ant", "bee"] * 20, index=range(40, 0, -1))))[:2] == [
        PALETTE[0],
        PALETTE[1],
    ]


def test_an_index_with_an_id_twice_may_be_that_of_the_rows():
    Z = pd.DataFrame(POINTS[:3], index=["a", "a", "b"])
    assert drawn(embedding_map(Z, labels=pd.Series([1, 0, 1], index=Z.index)), POINTS[:3])[1] == PALETTE[0]


def test_values_by_id_need_ids():
    with pytest.raises(InputError, match=r"labels.*order"):
        embedding_map(POINTS, labels=dict(enumerate("ab" * 20)))


# --- axes and figures -----------------------------------------------------------------------------------


def test_axes_of_the_caller():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert embedding_map(np.eye(2), labels=[0, 1], ax=right) is right
    assert not left.collections
    assert right.collections
    inner = figure.subfigures(1, 2)[0].subplots()
    embedding_map(np.eye(2), colour=[0.5, 1], ax=inner)
    save_to_nothing(left)
    shared = Figure().subplots(1, 2, sharex=True, sharey=True)
    for ax in shared:
        embedding_map(POINTS, labels=np.arange(40) % 3, ax=ax)
    save_to_nothing(shared[0])


def test_a_notebook_shows_new_axes_as_a_picture():
    ax = embedding_map(POINTS)
    assert ax._repr_png_().startswith(b"\x89PNG")
    assert ax.figure.get_figwidth() == 3.4


def test_pyplot_and_the_backend_are_left_alone():
    code = (
        "import sys, numpy as np; from fishergraph.plots import embedding_map; assert 'matplotlib' not in sys.modules; "
        "embedding_map(np.eye(2), labels=[0, 1]).figure.savefig('/dev/null', format='png'); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MPLBACKEND")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "False\n"
    before = dict(matplotlib.rcParams)
    embedding_map(np.eye(2), labels=[0, 1])
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_figure_is_written(tmp_path, suffix):
    path = tmp_path / f"z{suffix}"
    save(embedding_map(POINTS, labels=np.arange(40) % 3, title="z").figure, path)
    head = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(head)
    assert os.listdir(tmp_path) == [path.name]


def test_equal_input_gives_equal_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        save(embedding_map(POINTS, labels=np.arange(40) % 5).figure, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Z", "options", "pattern"),
    [
        (np.ones((3, 2)), {"labels": [0, 1]}, "labels.*3 rows.*2"),
        (np.ones((3, 2)), {"colour": [0, 1, 2, 3]}, "colour.*3 rows.*4"),
        (np.ones((3, 2)), {"labels": [0, 1, 2], "colour": [0, 1, 2]}, "not both"),
        (np.ones((3, 4)), {"method": "t-sne"}, "'pca', 'tsne', 'umap'"),
        (np.ones((3, 2)), {"method": "t-sne"}, "'pca', 'tsne', 'umap'"),
        ([[0, 1], [np.nan, 1]], {}, "NaN in row 1"),
        (np.ones(3), {}, r"matrix.*\(3,\)"),
        (np.ones((0, 3)), {}, "row"),
        (np.ones((3, 0)), {}, "column"),
        (np.ones((3, 2)), {"scale": "sqrt"}, "'linear', 'log'"),
        (np.ones((3, 2)), {"colour": [1, 2, 3], "cmap": "virids"}, "cmap.*'virids'"),
        (np.ones((3, 2)), {"max_classes": 1}, "max_classes"),
        (np.ones((3, 2)), {"sample": 0}, "sample"),
        (np.ones((3, 2)), {"size": -1}, "size"),
        (np.ones((3, 2)), {"legend": "left"}, "legend"),
        (np.ones((3, 4)), {"random_state": -1}, "random_state"),
        (np.ones((3, 2)), {"labels": ["a", 1, None]}, "one type"),
    ],
)
def test_bad_input(Z, options, pattern):
    with pytest.raises(InputError, match=pattern):
        embedding_map(Z, **options)


@pytest.mark.parametrize("ax", [Figure(), 3, np.array([1, 2])])
def test_axes_that_are_none(ax):
    with pytest.raises(InputTypeError, match=r"ax.*subplots"):
        embedding_map(POINTS, ax=ax)


def test_labels_are_checked_before_the_work(monkeypatch):
    monkeypatch.setattr("fishergraph.plots.maps.project", None)
    with pytest.raises(InputError, match="labels"):
        embedding_map(np.ones((9, 9)), labels=[1])


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"fishergraph\[plots\]"):
        embedding_map(np.eye(2), labels=[0, 1])


def test_without_umap_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtra, match=r"fishergraph\[umap\]"):
        embedding_map(np.ones((9, 3)), method="umap")
