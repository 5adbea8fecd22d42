"""The figures of the paper, at the width of a column. Nothing is computed here.

A figure of studies has panels below each other. A panel draws the records of `Study.summarize` as curves with bands:
value, curve, median, low and high. Figure 5 draws maps of the same nodes side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph.io.files import check_folder
from fishergraph.plots import PALETTE, embedding_map
from fishergraph.plots.colours import ClassColours
from fishergraph.plots.columns import as_classes
from fishergraph.plots.figures import new_figure, save
from fishergraph.plots.style import INK, legend_look, mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT, LEGEND = 3.4, 1.55, 0.24  # inches: a column, a panel, and a line of the legend
MAP_HEIGHT, MAP_POINT = 1.6, 1.8  # inches of a map, points² of a node
TEXT = 7.5  # points
_MOST_CLASSES = 64
DPI, MAP_DPI = 220, 300
FORMATS = (".png", ".pdf")
BLUE, ORANGE, GREEN, RED = PALETTE[:4]


@dataclass(frozen=True)
class Curve:
    """The label and look of a curve; no two curves of a figure differ by their colour alone."""

    label: str
    colour: str
    line: str = "-"
    marker: str = ""
    band: bool = True


@dataclass(frozen=True)
class Panel:
    """The axes of one or more studies; `curves` and `marks` are by the study and the curve of the records."""

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[tuple[str, str], Curve]
    xlog: bool = False
    ylog: bool = False
    ylim: tuple[float, float] | None = None
    xticks: tuple[float, ...] = ()
    yticks: tuple[float, ...] = ()
    unit_line: bool = True  # whether to draw the line at one, and the paper's band around it
    marks: Mapping[tuple[str, str], Curve] = field(default_factory=dict)  # of one record: a point, or a line

    def looks(self) -> dict[tuple[str, str], Curve]:
        """The curves and marks."""
        return {**self.curves, **self.marks}


_RATIO = "‖φ − φ′‖² / 2 KL"
_PAPER = Curve("Id/p, as in the paper", BLUE, "-", "o")
_BACKWARD = Curve("Id/p over KL(p′‖p)", RED, ":", "x", band=False)
_EXACT = Curve("exact Fisher matrix", GREEN, "--", "s")
_ONE_STEP = {("anchors-one-step", "paper"): Curve("Id/p, one EM iteration", ORANGE, "-.", "^")}


def _ratio_panel(title: str, xlabel: str, study: str, *, xlog: bool = False, more: Any = None) -> Panel:
    curves = {(study, "paper"): _PAPER, (study, "exact"): _EXACT, (study, "backward"): _BACKWARD, **(more or {})}
    return Panel(title, xlabel, _RATIO, curves, xlog=xlog, ylim=(0, 1.3))


def _divergence_panel(title: str, direction: str) -> Panel:
    curves = {
        ("divergence", f"monte_carlo_{direction}"): Curve("Monte Carlo ± 2 s.e.", BLUE, "-", "o"),
        ("divergence", f"goldberger_{direction}"): Curve("Goldberger", ORANGE, "--", "^"),
        ("divergence", f"matched_{direction}"): Curve("Goldberger, no weights", RED, ":", "x"),
    }
    return Panel(title, "components of p′", "divergence, nats", curves, unit_line=False)


_ATTENTION = Panel(
    "",
    "variance σ² of the components",
    "1 − H / log n   (flat: 0)",
    {("attention", "posterior"): Curve("attention of Eq. 17", BLUE, "-", "")},
    xlog=True,
    ylog=True,
    unit_line=False,
    marks={
        ("attention", "auto"): Curve("variance='auto', default", GREEN, "", "s"),
        ("attention", "published"): Curve("the published code", RED, "--", ""),
        ("attention", "paper"): Curve("the paper's σ² = 1", ORANGE, "", "^"),
    },
)
_CLOSENESS = {
    ("closeness", "forward"): Curve("Id/p", BLUE, "-", "o"),
    ("closeness", "exact"): _EXACT,
    ("closeness", "backward"): _BACKWARD,
}
_DISTANCE = "distance among the components"

FIGURES: dict[str, tuple[Panel, ...]] = {
    # Embedding distance over KL divergence, varying the distributions.
    "figure2": (
        _ratio_panel("(a)", "components of p′", "modes"),
        _ratio_panel("(b)", "distance between the means of p and p′", "shift", xlog=True),
        _ratio_panel("(c)", _DISTANCE, "spread", xlog=True),
    ),
    # The same, varying EM iterations and components.
    "figure3": (
        _ratio_panel("(a)", "EM iterations, 10 components", "iterations"),
        _ratio_panel("(b)", "components of the family, 10 EM iterations", "anchors", xlog=True, more=_ONE_STEP),
    ),
    # Goldberger's approximation beside the KL divergence, in both directions.
    "divergence": (_divergence_panel("(a) KL(p‖p′)", "forward"), _divergence_panel("(b) KL(p′‖p)", "backward")),
    # Id/p beside the exact Fisher matrix, for close densities.
    "closeness": (Panel("", _DISTANCE, _RATIO, _CLOSENESS, xlog=True, ylog=True, yticks=(1, 2, 5, 10)),),
    # The concentration of the attention against the variance, and that of the published code.
    "attention": (_ATTENTION,),
}


def studies_of(panels: Sequence[Panel]) -> list[str]:
    """The studies whose rows the panels draw."""
    return list(dict.fromkeys(study for panel in panels for study, _ in panel.looks()))


_COMPONENT_CURVES = {
    "fie": Curve("unsupervised", BLUE, "-", "o"),
    "fie-reference": Curve("unsupervised, the authors' rule", GREEN, "--", "s"),
    "fie-supervised": Curve("supervised", ORANGE, "-.", "^"),
}


# --- drawing ----------------------------------------------------------------------------------------------


def draw_figure(
    panels: Sequence[Panel], records: Sequence[Mapping[str, Any]], path: str | Path | None = None
) -> Figure:
    """Draw records of `Study.summarize`, the panels below each other; saved as PNG and PDF, whatever the suffix."""
    paths = _output_paths(path)
    curves, n_panels = list(dict.fromkeys(look for panel in panels for look in panel.looks().values())), len(panels)
    height = HEIGHT * (n_panels if n_panels > 1 else 1.4) + LEGEND * ((len(curves) + 1) // 2)
    figure = new_figure((WIDTH, height), pad=0.03, dpi=DPI)
    rows = figure.subplots(n_panels, 1, squeeze=False)
    for ax, panel in zip(rows[:, 0], panels, strict=True):
        _draw_panel(ax, panel, records)
    _draw_legend(figure, curves)
    for each in paths:
        save(figure, each)
    return figure


def draw_components(records: Sequence[Mapping[str, Any]], path: str | Path | None = None) -> Figure:
    """Draw Figure 4 from the records of `component_records`, a panel per graph; `path` as in `draw_figure`."""
    methods = [name for name in _COMPONENT_CURVES if any(record["curve"] == name for record in records)]
    numbers = tuple(sorted({record["value"] for record in records}))
    axes = {"xlog": True, "xticks": numbers, "unit_line": False}
    panels = []
    for graph in dict.fromkeys(record["study"] for record in records):
        curves = {(graph, method): _COMPONENT_CURVES[method] for method in methods}
        panels.append(Panel(graph.capitalize(), "mixture components p", "validation accuracy, %", curves, **axes))
    return draw_figure(panels, records, path)


def draw_maps(
    maps: Mapping[str, Any], labels: Any, *, names: Sequence[str] | None = None, path: str | Path | None = None
) -> Figure:
    """Draw maps (node, 2) of the same nodes by their titles, coloured by label, in two columns with one legend."""
    paths = _output_paths(path)
    n_rows = (len(maps) + 2) // 2  # the last cell is the legend's
    figure = new_figure((WIDTH, MAP_HEIGHT * n_rows), pad=0.02, dpi=MAP_DPI)
    axes = figure.subplots(n_rows, 2, squeeze=False).ravel()
    look: dict[str, Any] = {"max_classes": _MOST_CLASSES, "size": MAP_POINT, "legend": False}
    for letter, ax, (title, coordinates) in zip("abcdefgh", axes, maps.items(), strict=False):
        embedding_map(coordinates, labels=labels, ax=ax, **look)
        ax.set_title(f"({letter}) {title}", loc="left", fontsize=TEXT, color=INK, pad=2)
    for ax in axes[len(maps) :]:
        ax.set_axis_off()
    marks = ClassColours.of(as_classes(labels, len(labels), "labels", names=names), _MOST_CLASSES).marks
    handles = [mark(*entry, size=4) for entry in marks]
    axes[len(maps)].legend(handles=handles, loc="center left", **legend_look(TEXT))
    for each in paths:
        save(figure, each)
    return figure


def _output_paths(path: str | Path | None) -> list[Path]:
    """The files to write, in folders that exist."""
    paths = [Path(path).with_suffix(suffix) for suffix in FORMATS] if path is not None else []
    for each in paths:
        check_folder(each)
    return paths


def _draw_legend(figure: Figure, curves: Sequence[Curve]) -> None:
    """A legend above the panels, an entry per curve."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **_look(curve), label=curve.label) for curve in curves]
    look = {"frameon": False, "fontsize": TEXT, "labelcolor": INK, "handlelength": 2.4, "handletextpad": 0.5}
    figure.legend(handles=handles, loc="outside upper center", ncols=min(2, len(handles)), columnspacing=1.0, **look)


def _look(curve: Curve) -> dict[str, Any]:
    return {
        "color": curve.colour,
        "linestyle": curve.line or "none",
        "marker": curve.marker,
        "markersize": 3.2,
        "linewidth": 1.2,
        "markeredgewidth": 0.9,
    }


def _draw_panel(ax: Any, panel: Panel, records: Sequence[Mapping[str, Any]]) -> None:
    """Bands, curves, marks, and the axes."""
    if panel.unit_line:
        ax.axhspan(0.8, 1.2, color="0.93", linewidth=0, zorder=0)
        ax.axhline(1, color="0.55", linewidth=0.7, zorder=0.5)
    for key, curve in panel.curves.items():
        points = [record for record in records if (record["study"], record["curve"]) == key]
        x, low, median, high = ([point[name] for point in points] for name in ("value", "low", "median", "high"))
        if curve.band:
            ax.fill_between(x, low, high, color=curve.colour, alpha=0.22, linewidth=0)
        ax.plot(x, median, **_look(curve))
    for key, curve in panel.marks.items():
        for record in records:
            if (record["study"], record["curve"]) == key:
                _draw_mark(ax, record, curve)
    _label_axes(ax, panel)


def _draw_mark(ax: Any, record: Mapping[str, Any], curve: Curve) -> None:
    """A point with its band, or a horizontal line if the record has no value."""
    if record["value"] is None:
        ax.axhline(record["median"], **_look(curve))
    else:
        ax.plot([record["value"]] * 2, [record["low"], record["high"]], color=curve.colour, linewidth=1)
        ax.plot([record["value"]], [record["median"]], **{**_look(curve), "markersize": 6}, zorder=3)


def _label_axes(ax: Any, panel: Panel) -> None:
    """Scales, ticks and labels of the axes."""
    from matplotlib.ticker import FuncFormatter

    if panel.xlog:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if panel.ylog:
        ax.set_yscale("log")
    if panel.xticks:
        ax.set_xticks(panel.xticks, [f"{tick:g}" for tick in panel.xticks])
        ax.set_xticks([], minor=True)
    if panel.yticks:
        ax.set_yticks(panel.yticks, [f"{tick:g}" for tick in panel.yticks])
    if panel.ylim:
        ax.set_ylim(*panel.ylim)
    ax.set_title(panel.title, loc="left", fontsize=TEXT, color=INK, pad=3)
    ax.set_xlabel(panel.xlabel, fontsize=TEXT, color=INK, labelpad=2)
    ax.set_ylabel(panel.ylabel, fontsize=TEXT, color=INK)
    ax.tick_params(labelsize=TEXT - 0.5, colors=INK, length=2.5)
    ax.spines[["top", "right"]].set_visible(False)
