"""Figure 5: maps of one set of nodes side by side, and one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph.io.files import check_folder
from fishergraph.plots.points import check_points, draw_points, legend_handles, legend_names
from fishergraph.plots.studies import FORMATS, TEXT, WIDTH
from fishergraph.plots.style import INK, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SQUARE, POINT = 1.6, 1.8  # inches of a map; points² of a node
DPI = 300


def draw_maps(
    maps: Mapping[str, Any], labels: Any, *, names: Sequence[str] | None = None, path: str | Path | None = None
) -> Figure:
    """The figure of some maps, {title: coordinates (node, 2)}, in two columns, coloured by label.

    With a path it is saved as PNG and as PDF beside it, whatever the suffix.
    """
    paths = [Path(path).with_suffix(suffix) for suffix in FORMATS] if path is not None else []
    for each in paths:
        check_folder(each)
    checked = {title: check_points(coordinates, labels) for title, coordinates in maps.items()}
    n_rows = (len(checked) + 2) // 2  # one place is the legend's
    figure = new_figure((WIDTH, SQUARE * n_rows), pad=0.02, dpi=DPI)
    places = figure.subplots(n_rows, 2, squeeze=False).ravel()
    for ax in places:
        ax.set_axis_off()
    for letter, ax, (title, (points, _, codes)) in zip("abcdefgh", places, checked.items(), strict=False):
        draw_points(ax, points, codes, int(codes.max()) + 1, size=POINT)
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_title(f"({letter}) {title}", loc="left", fontsize=TEXT, color=INK, pad=2)
    classes = next(iter(checked.values()))[1]
    places[len(checked)].legend(
        handles=legend_handles(legend_names(classes, names), size=4), loc="center left", frameon=False, fontsize=TEXT,
        labelcolor=INK, handletextpad=0.2, labelspacing=0.5, borderaxespad=0,
    )  # fmt: skip
    for each in paths:
        save(figure, each)
    return figure
