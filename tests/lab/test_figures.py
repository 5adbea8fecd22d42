"""The figures of the paper: every record is drawn, curves are told apart, legends fit."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from fishergraph.lab.figures import FIGURES, draw_components, draw_figure, draw_maps
from fishergraph.plots import PALETTE

rng = np.random.default_rng(0)


def records_of(panels):
    """Two records for every curve of a figure, and one for every mark, the last without a value."""
    for panel in panels:
        for study, curve in panel.curves:
            yield from (
                {"study": study, "curve": curve, "value": v, "low": 0.4, "median": 0.5 * v, "high": 2.0} for v in (1, 2)
            )
        for study, curve in panel.marks:
            yield {"study": study, "curve": curve, "value": None, "low": 0.4, "median": 0.7, "high": 2.0}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_draws_each_record_as_it_is(tmp_path, name):
    panels = FIGURES[name]
    figure = draw_figure(panels, list(records_of(panels)), tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}.pdf", f"{name}.png"]
    assert figure.get_size_inches()[0] == pytest.approx(3.4)
    for ax, panel in zip(figure.axes, panels, strict=True):
        drawn = [line.get_ydata() for line in ax.get_lines() if list(line.get_xdata()) == [1, 2]]
        assert [list(y) for y in drawn] == [[0.5, 1.0]] * len(panel.curves)
        levels = [line.get_ydata() for line in ax.get_lines() if list(line.get_ydata()) == [0.7, 0.7]]
        assert len(levels) == len(panel.marks)
    curves = {curve for panel in panels for curve in panel.looks().values()}
    assert sorted(text.get_text() for text in figure.legends[0].get_texts()) == sorted(c.label for c in curves)
    # No two curves differ by their colour alone.
    assert len({(curve.line, curve.marker) for curve in curves}) == len(curves)


def test_a_figure_fits_its_legend(tmp_path):
    """The names of the curves stay inside the width of the column."""
    for name, panels in FIGURES.items():
        figure = draw_figure(panels, list(records_of(panels)), tmp_path / name)
        box = figure.legends[0].get_window_extent()
        assert box.x0 >= 0, name
        assert box.x1 <= figure.bbox.width, name


def test_maps_of_the_same_nodes_share_colours_and_a_legend(tmp_path):
    labels = rng.integers(0, 3, 30)
    maps = {name: rng.standard_normal((30, 2)) for name in ("one", "two", "three")}
    figure = draw_maps(maps, labels, names=["ant", "bee", "cat"], path=tmp_path / "maps.png")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["(a) one", "(b) two", "(c) three", ""]
    assert [text.get_text() for text in figure.axes[3].get_legend().get_texts()] == ["ant", "bee", "cat"]
    for ax, points in zip(figure.axes, maps.values(), strict=False):
        (drawn,) = ax.collections
        for xy, colour in zip(np.asarray(drawn.get_offsets()), drawn.get_facecolors(), strict=True):
            node = int(np.flatnonzero((points == xy).all(axis=1))[0])
            assert to_hex(colour).upper() == PALETTE[labels[node]]
    assert {path.name for path in tmp_path.iterdir()} == {"maps.png", "maps.pdf"}


def test_components_have_a_panel_per_graph_and_a_curve_per_method():
    records = [
        {"study": graph, "curve": method, "value": p, "low": 70.0, "median": 71.0 + p, "high": 90.0}
        for graph in ("cora", "pubmed")
        for method in ("fie", "fie-supervised")
        for p in (1, 2, 4, 8)
    ]
    figure = draw_components(records)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["Cora", "Pubmed"]
    for ax in figure.axes:
        assert [list(line.get_xdata()) for line in ax.lines] == [[1, 2, 4, 8]] * 2
        assert [list(line.get_ydata()) for line in ax.lines] == [[72.0, 73.0, 75.0, 79.0]] * 2
        assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "4", "8"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["unsupervised", "supervised"]
