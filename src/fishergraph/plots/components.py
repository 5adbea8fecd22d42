"""Figure 4: accuracy on the validation nodes against the number of mixture components, a panel per graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fishergraph.plots.studies import BLUE, GREEN, ORANGE, Curve, FigureSpec, Panel, draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = {
    "fie": Curve("unsupervised", BLUE, "-", "o"),
    "fie-reference": Curve("unsupervised, the authors' rule", GREEN, "--", "s"),
    "fie-supervised": Curve("supervised", ORANGE, "-.", "^"),
}


def draw_components(records: Sequence[Mapping[str, Any]], path: str | Path | None = None) -> Figure:
    """The figure of records with study (the graph), curve (the method), value, low, median and high, in percent."""
    graphs = list(dict.fromkeys(record["study"] for record in records))
    methods = [name for name in CURVES if any(record["curve"] == name for record in records)]
    numbers = tuple(sorted({record["value"] for record in records}))
    panels = tuple(
        Panel(
            graph.capitalize(), "mixture components p", "validation accuracy, %",
            {(graph, method): CURVES[method] for method in methods}, xlog=True, xticks=numbers, one=False,
        )
        for graph in graphs
    )  # fmt: skip
    return draw_figure(FigureSpec(tuple(graphs), panels), records, path)
