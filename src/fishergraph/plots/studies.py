"""Figures of the experiments, at the width of a column: panels one below the other, curves with bands.

A panel draws the records that a study's `summarize` gives: value, curve, median, low and high. Nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph.io.files import check_folder
from fishergraph.plots.style import INK, PALETTE, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT, LEGEND = 3.4, 1.55, 0.24  # inches: a column, a panel, and a line of the legend
TEXT = 7.5  # points
DPI = 220
FORMATS = (".png", ".pdf")
BLUE, ORANGE, GREEN, RED, BLACK = (*PALETTE[:4], PALETTE[6])


@dataclass(frozen=True)
class Curve:
    """What a curve is called in the legend, and how it looks: never by its colour alone."""

    label: str
    colour: str
    line: str = "-"
    marker: str = ""
    band: bool = True


@dataclass(frozen=True)
class Panel:
    """The axes of one or more studies: for each, its curves."""

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[tuple[str, str], Curve]  # (study, curve)
    xlog: bool = False
    ylog: bool = False
    ylim: tuple[float, float] | None = None
    xticks: tuple[float, ...] | None = None
    yticks: tuple[float, ...] = ()
    one: bool = True  # whether to draw the line at one, and the paper's band around it
    marks: Mapping[tuple[str, str], Curve] | None = None  # curves of a single record: a point, or a level line


@dataclass(frozen=True)
class FigureSpec:
    """Panels, and the studies whose rows they need."""

    studies: tuple[str, ...]
    panels: tuple[Panel, ...]


_RATIO = "‖φ − φ′‖² / 2 KL"
_PAPER = Curve("Id/p, as in the paper", BLUE, "-", "o")
_BACKWARD = Curve("Id/p over KL(p′‖p)", RED, ":", "x", band=False)
_EXACT = Curve("exact Fisher matrix", GREEN, "--", "s")


def _ratio_panel(title: str, xlabel: str, study: str, *, xlog: bool = False, more: Any = None) -> Panel:
    curves = {(study, "paper"): _PAPER, (study, "exact"): _EXACT, (study, "backward"): _BACKWARD, **(more or {})}
    return Panel(title, xlabel, _RATIO, curves, xlog=xlog, ylim=(0, 1.3))


_ONE_STEP = {("anchors-one-step", "paper"): Curve("Id/p, one EM iteration", ORANGE, "-.", "^")}


def _divergence_panel(title: str, direction: str) -> Panel:
    curves = {
        ("divergence", f"monte_carlo_{direction}"): Curve("Monte Carlo ± 2 s.e.", BLUE, "-", "o"),
        ("divergence", f"goldberger_{direction}"): Curve("Goldberger", ORANGE, "--", "^"),
        ("divergence", f"matched_{direction}"): Curve("Goldberger, no weights", RED, ":", "x"),
    }
    return Panel(title, "components of p′", "divergence, nats", curves, one=False)


_CLOSENESS = {
    ("closeness", "forward"): Curve("Id/p", BLUE, "-", "o"),
    ("closeness", "exact"): _EXACT,
    ("closeness", "backward"): _BACKWARD,
}

FIGURES: dict[str, FigureSpec] = {
    "figure2": FigureSpec(
        ("modes", "shift", "spread"),
        (
            _ratio_panel("(a)", "components of p′", "modes"),
            _ratio_panel("(b)", "distance between the means of p and p′", "shift", xlog=True),
            _ratio_panel("(c)", "distance among the components", "spread", xlog=True),
        ),
    ),
    "figure3": FigureSpec(
        ("iterations", "anchors", "anchors-one-step"),
        (
            _ratio_panel("(a)", "EM iterations, 10 components", "iterations"),
            _ratio_panel("(b)", "components of the family, 10 EM iterations", "anchors", xlog=True, more=_ONE_STEP),
        ),
    ),
    "divergence": FigureSpec(
        ("divergence",),
        (_divergence_panel("(a) KL(p‖p′)", "forward"), _divergence_panel("(b) KL(p′‖p)", "backward")),
    ),
    "closeness": FigureSpec(
        ("closeness",),
        (Panel("", "distance among the components", _RATIO, _CLOSENESS, xlog=True, ylog=True, yticks=(1, 2, 5, 10)),),
    ),
    "attention": FigureSpec(
        ("attention",),
        (
            Panel(
                "", "variance σ² of the components", "1 − H / log n   (flat: 0)",
                {("attention", "posterior"): Curve("attention of Eq. 17", BLUE, "-", "")},
                xlog=True, ylog=True, one=False,
                marks={
                    ("attention", "auto"): Curve("variance='auto', default", GREEN, "", "s"),
                    ("attention", "published"): Curve("the published code", RED, "--", ""),
                    ("attention", "paper"): Curve("the paper's σ² = 1", ORANGE, "", "^"),
                },
            ),
        ),
    ),
}  # fmt: skip


def draw_figure(spec: FigureSpec, records: Sequence[Mapping[str, Any]], path: str | Path | None = None) -> Figure:
    """The figure of some records; with a path, saved as PNG and as PDF beside it, whatever its suffix."""
    paths = [Path(path).with_suffix(suffix) for suffix in FORMATS] if path is not None else []
    for each in paths:
        check_folder(each)
    n_lines = len(_handles(spec))
    tall = HEIGHT * (len(spec.panels) if len(spec.panels) > 1 else 1.4) + LEGEND * ((n_lines + 1) // 2)
    figure = new_figure((WIDTH, tall), pad=0.03, dpi=DPI)
    rows = figure.subplots(len(spec.panels), 1, squeeze=False)
    for ax, panel in zip(rows[:, 0], spec.panels, strict=True):
        _draw_panel(ax, panel, records)
    figure.legend(
        handles=_handles(spec), loc="outside upper center", ncols=min(2, n_lines), frameon=False,
        fontsize=TEXT, labelcolor=INK, handlelength=2.4, columnspacing=1.0, handletextpad=0.5,
    )  # fmt: skip
    for each in paths:
        save(figure, each)
    return figure


def _handles(spec: FigureSpec) -> list[Any]:
    """A line of the legend per curve, each once."""
    from matplotlib.lines import Line2D

    curves = {curve: None for panel in spec.panels for curve in [*panel.curves.values(), *(panel.marks or {}).values()]}
    return [Line2D([], [], **_look(curve), label=curve.label) for curve in curves]


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
    if panel.one:
        ax.axhspan(0.8, 1.2, color="0.93", linewidth=0, zorder=0)
        ax.axhline(1, color="0.55", linewidth=0.7, zorder=0.5)
    for key, curve in panel.curves.items():
        points = [record for record in records if (record["study"], record["curve"]) == key]
        x, low, median, high = ([point[name] for point in points] for name in ("value", "low", "median", "high"))
        if curve.band:
            ax.fill_between(x, low, high, color=curve.colour, alpha=0.22, linewidth=0)
        ax.plot(x, median, **_look(curve))
    for key, curve in (panel.marks or {}).items():
        for record in records:
            if (record["study"], record["curve"]) == key:
                _draw_mark(ax, record, curve)
    _dress(ax, panel)


def _draw_mark(ax: Any, record: Mapping[str, Any], curve: Curve) -> None:
    """A point with its band, or a level line where there is no value on the x axis."""
    if record["value"] is None:
        ax.axhline(record["median"], **_look(curve))
    else:
        ax.plot([record["value"]] * 2, [record["low"], record["high"]], color=curve.colour, linewidth=1)
        ax.plot([record["value"]], [record["median"]], **{**_look(curve), "markersize": 6}, zorder=3)


def _dress(ax: Any, panel: Panel) -> None:
    """Scales, names of the axes, and no more ink than that."""
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
