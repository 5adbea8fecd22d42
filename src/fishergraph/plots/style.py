"""Colours, markers and sizes of all figures.

The colours are those of Okabe and Ito, which people with any form of colour vision can tell apart; beyond eight classes
the marker changes too. Text is legible when a figure is printed at the width of a column, 3.4 inches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Okabe and Ito's eight colours; yellow, the faintest on white, comes last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
INK = "#333333"
OTHER, MISSING = "#8C8C8C", "#CCCCCC"  # points of classes without a colour of their own, and points without a class
COLUMN = 3.4  # inches
WIDE, _LEGEND_ROWS = 5.0, 20  # inches of a figure from which the legend is beside the axes, and its most rows there
_FEW_DECADES, _PLAIN = (1.2, 2.5), 2e4  # of a logarithmic axis with more ticks; from here on it has powers of ten
_AS_LAID_OUT = 1.25  # the width of axes once they are laid out, over that before

# The area of one of n points is that of the axes times 0.0187 n^-0.7, within bounds: many points overlap.
_INKED, _POWER, _LARGEST, _SMALLEST = 0.0187, -0.7, 4e-4, 0.15


def colour_of(code: int) -> str:
    """The colour of a class."""
    return PALETTE[code % len(PALETTE)]


def marker_of(code: int) -> str:
    """The marker of a class: the first eight classes share one."""
    return MARKERS[code // len(PALETTE) % len(MARKERS)]


def root_figure(ax: Any) -> Any:
    """The figure of axes, which may be in a figure inside of it."""
    return ax.figure.figure


def text_size(ax: Any) -> float:
    """The size of the text in points: 7.5 in a column, 10 in a figure of the width of a page."""
    from matplotlib import rcParams

    width = root_figure(ax).get_size_inches()[0]
    return float(np.clip(5.5 + 0.6 * width, 7.5, 10)) * rcParams["font.size"] / 10


def point_area(ax: Any, n_points: int) -> float:
    """The area of a point in points²."""
    width, height = ax.get_window_extent().size * 72 / root_figure(ax).dpi
    area = width * height
    return float(np.clip(_INKED * area * max(n_points, 1) ** _POWER, _SMALLEST, max(_LARGEST * area, 1)))


def mark(name: str, colour: str, marker: str, size: float) -> Any:
    """The mark of a class in a legend."""
    from matplotlib.lines import Line2D

    label = literal(shortened(name))
    return Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=size, label=label)


def plain_axes(ax: Any) -> None:
    """Two spines, and ticks in the colour of the text."""
    size = text_size(ax)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(INK)
    ax.tick_params(which="both", colors=INK, labelcolor=INK, labelsize=size, length=2.5)


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Ticks of a logarithmic axis: plain numbers up to 10,000, powers of ten beyond; more of them in few decades."""
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter

    decades = np.log10(high / low)
    subs = (1, 2, 5) if 0 < decades < _FEW_DECADES[0] else (1, 3) if decades < _FEW_DECADES[1] else (1,)
    axis.set_major_locator(LogLocator(subs=subs))
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    powers = LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf))
    axis.set_major_formatter(plain if high < _PLAIN else powers)
    axis.set_minor_formatter(NullFormatter())


def legend_look(size: float) -> dict[str, Any]:
    """How legends look, with text of this size."""
    look = {"frameon": False, "fontsize": size, "title_fontsize": size, "labelcolor": INK, "alignment": "left"}
    return {**look, "handlelength": 1.0, "handletextpad": 0.3, "columnspacing": 1.0, "borderaxespad": 0.3}


def legend_columns(marks: Sequence[Any], width: float, size: float) -> int:
    """How many columns of a legend fit into so many inches below the axes, about."""
    lengths = [0.56 * len(shortened(mark.name)) + 2.4 for mark in marks]  # in sizes of the text
    for columns in range(len(marks), 1, -1):
        rows = -(-len(marks) // columns)
        if sum(max(lengths[k : k + rows]) for k in range(0, len(marks), rows)) * size <= 72 * width:
            return columns
    return 1


def draw_legend(ax: Any, marks: Sequence[Any], title: str = "") -> None:
    """A mark per look: beside the axes in a wide figure, below them in a narrow one."""
    size = text_size(ax)
    handles = [mark(look.name, look.colour, look.marker, 0.65 * size) for look in marks]
    look: dict[str, Any] = {**legend_look(size), "title": literal(title) or None}
    if root_figure(ax).get_size_inches()[0] >= WIDE:
        columns = 1 + (len(marks) - 1) // _LEGEND_ROWS
        ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=columns, **look)
        return
    width = _AS_LAID_OUT * ax.get_window_extent().width
    for columns in range(legend_columns(marks, 1.2 * width / root_figure(ax).dpi, size), 0, -1):
        legend = ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns, **look)
        if legend.get_window_extent().width <= width:
            return


def draw_title(ax: Any, title: str, pad: float = 6) -> None:
    """A line above the axes, from the left."""
    if title:
        ax.set_title(literal(title), loc="left", fontsize=1.15 * text_size(ax), color=INK, pad=pad)


def literal(text: str) -> str:
    """Text as it is written: two dollar signs would begin a formula."""
    return text.replace("$", r"\$")


def shortened(text: str, most: int = 40) -> str:
    """One line of text, cut after so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
